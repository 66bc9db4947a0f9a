"""Tables in Parquet that are not read into memory: the doors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from regimix.engines.parquet import ParquetReader
from regimix.engines.parquetfile import need_pyarrow
from regimix.engines.parts import PartTable
from regimix.errors import DataKindError, Message, ParameterError, Setting
from regimix.tables.footers import Footer, cut_into_parts, read_footers
from regimix.tables.kinds import check_number, choose_columns, number_type
from regimix.tables.recipe import Recipe
from regimix.tables.roles import Roles, locate

__all__ = ["ParquetTable", "read_size", "scan_like", "scan_parquet"]

# Bytes of numbers in a part, and about how many parts even a small table has, so that every worker
# of a few has work. A part is what a worker reads at once, and what is written as one file; it does
# not depend on who reads it, so that the same files come out.
USUAL_PART, SMALLEST_PART = 128_000_000, 32_000_000
FEWEST_PARTS = 16
# A scheduler has work with every part: those of very large tables are larger, as far as workers can
# be expected to hold them (a pass takes about four times a part).
MOST_PARTS, LARGEST_PART = 2_000, 4_000_000_000
# Bytes of numbers in a piece that is read here; more do not make it faster.
PIECE_BYTES = 64_000_000
# What is in memory at a time, in pieces: one that is worked on, the next one, what it is made of,
# and the numbers that a pass makes of it.
PIECES_AT_A_TIME = 8
LEAST_MEMORY = 8_000_000
# Features that are named where a table is told in a line.
FEW = 6
UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True, kw_only=True, repr=False)
class ParquetTable(PartTable):
    """A table in Parquet files, read in parts.

    Attributes
    ----------
    source : str
        As it was named.
    n_read : int
        Rows of all files; a fit leaves out those in which a value is missing.
    recipe : Recipe
        How columns become numbers; ``scan_like`` does the same to new files.
    notes : tuple of str
        Sentences worth reading: what was left out, and why.
    """

    source: str
    n_read: int
    recipe: Recipe
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        parts = f"{len(self.readers)} part{'s' if len(self.readers) != 1 else ''}"
        where = " on a cluster" if self.on_cluster else ""
        features = ", ".join((*self.names[:FEW], *(("...",) if len(self.names) > FEW else ())))
        return (
            f"ParquetTable({self.source!r}: {self.n_read} rows, {len(self.names)} features "
            f"({features}), target {self.target_name!r}, {parts}{where})"
        )

    @property
    def part_readers(self) -> tuple[ParquetReader, ...]:
        """The readers of the parts."""
        return tuple(reader for reader in self.readers if isinstance(reader, ParquetReader))


def scan_parquet(
    source: str | Path,
    target: str,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    *,
    key: str | None = None,
    missing: Literal["drop", "error"] = "drop",
    memory: float | str = "512MB",
    on_cluster: bool = False,
) -> ParquetTable:
    """Open a table in Parquet that is read in parts, each time it is needed.

    Only the footers of the files are read now. The result takes the place of X and y:
    ``MixedLinearRegression().fit(scan_parquet("rows/*.parquet", "price"))``. Rows are used as
    ``tables.read`` uses them, so that the fit is the same; but text and dates are not.

    Parameters
    ----------
    source : str or Path
        A file, a folder, a glob (``"rows/*.parquet"``), or an address that fsspec knows
        (``"s3://..."``). All files have the same columns.
    target : str
        The column to explain.
    features : sequence of str, optional
        The columns that explain it; default: all others that hold numbers.
    drop : sequence of str
        Columns to leave out.
    weights, key : str, optional
        Columns of row weights, and of what identifies a row in what is written.
    missing : {"drop", "error"}
        Whether rows in which a needed value is missing or infinite are left out, or refused.
    memory : number or str
        Bytes that reading and a pass over the rows may take on this machine, such as "2GB".
    on_cluster : bool
        Whether the workers of the current Dask client (or of a cluster that is started for the
        time of a fit) read the files. They must find them under the same names.

    Raises
    ------
    DataError
        A file cannot be read, or has other columns than the first; the message names it.
    MissingExtraError
        pyarrow is not installed.
    """
    need_pyarrow()
    for name, value in (("features", features), ("drop", drop)):
        if isinstance(value, str):
            raise ParameterError(f"{name} must be a list of column names; got {value!r}.")
    listed = None if features is None else tuple(features)
    roles = Roles(target, listed, tuple(drop), weights, key)
    footers = read_footers(source)
    recipe, notes = choose_columns(footers, roles, str(source))
    layout = _Layout(missing, read_size(memory), on_cluster)
    return _table(footers, recipe, layout, str(source), notes)


def scan_like(
    source: str | Path,
    recipe: Recipe,
    *,
    target: Literal["required", "optional"] = "required",
    key: str | None = None,
    missing: Literal["drop", "error"] = "drop",
    memory: float | str = "512MB",
    on_cluster: bool = False,
) -> ParquetTable:
    """Open a table in Parquet as another one was opened: the same columns.

    Parameters that are not listed are those of ``scan_parquet`` and ``tables.read_like``.
    """
    need_pyarrow()
    if not isinstance(recipe, Recipe):
        raise ParameterError(
            f"recipe must be a Recipe, which says how columns become features; got an object of "
            f"type {type(recipe).__name__}. Pass the recipe of the table that was fitted: "
            "table.recipe, or, of a model file, Recipe.from_json(store.open_model(path).recipe)."
        )
    footers = read_footers(source)
    kinds = footers[0].kinds
    for column in recipe.columns:
        locate(kinds, column.name, str(source), "a feature")
        if column.kind not in ("number", "flag"):
            raise DataKindError(
                f"column {column.name!r} is {'text' if column.kind == 'levels' else 'a date'} to "
                "this model, and tables that are read in parts use numbers alone. Read the table "
                "into memory."
            )
    if key is not None:
        locate(kinds, key, str(source), "the key")
    elif recipe.key in kinds:
        key = recipe.key
    optional = target == "optional"
    if not optional:
        locate(kinds, recipe.target, str(source), "the target")
    names = [column.name for column in recipe.columns]
    roles = Roles(recipe.target, tuple(names), (), None, key)
    for name in (*names, *((recipe.target,) if recipe.target in kinds else ())):
        check_number(footers, name, roles.role(name))
    layout = _Layout(missing, read_size(memory), on_cluster, optional=optional)
    recipe = replace(recipe, key=key, weights=None)
    return _table(footers, recipe, layout, str(source), [])


def read_size(memory: float | str) -> int:
    """Read a number of bytes: 2_000_000_000, 2e9, "2GB", "500 MiB"."""
    number = r"[\d_.]+(?:e\+?\d{1,2})?"
    found = re.fullmatch(rf"\s*({number})\s*([kmgt]?)(i?)b?\s*", str(memory).lower())
    try:
        size = float(found[1]) if found is not None else 0.0
    except ValueError:
        size = 0.0
    if found is None or not size > 0:
        raise ParameterError(
            Message(
                Setting("memory"),
                f" must be a number of bytes such as 2e9 or '2GB'; got {memory!r}.",
            )
        )
    size *= (1024 if found[3] else 1000) ** UNITS[found[2]]
    if size < LEAST_MEMORY:
        least = f" must be at least {LEAST_MEMORY // 10**6}MB; got {memory!r}."
        raise ParameterError(Message(Setting("memory"), least))
    return int(size)


# --- parts ----------------------------------------------------------------------------------------


def part_bytes(table_bytes: int) -> int:
    """Say how many bytes of numbers a part of a table has, about."""
    usual = min(max(table_bytes // FEWEST_PARTS, SMALLEST_PART), USUAL_PART)
    return max(usual, min(table_bytes // MOST_PARTS, LARGEST_PART))


@dataclass(frozen=True)
class _Layout:
    """How rows are read."""

    missing: str
    memory: int
    on_cluster: bool
    optional: bool = False


def _table(
    footers: list[Footer], recipe: Recipe, layout: _Layout, source: str, notes: list[str]
) -> ParquetTable:
    if layout.missing not in ("drop", "error"):
        raise ParameterError(f"missing must be 'drop' or 'error'; got {layout.missing!r}.")
    names = recipe.feature_names
    target = recipe.target if recipe.target in footers[0].kinds else None
    width = 8 * (len(names) + (target is not None) + (recipe.weights is not None))
    total = sum(sum(footer.group_rows) for footer in footers)
    if layout.on_cluster:
        # Workers may have copies of their own, as good but written at other times.
        footers = [replace(footer, mark=replace(footer.mark, time="")) for footer in footers]
    parts = cut_into_parts(footers, max(1, part_bytes(total * width) // width))
    piece = min(PIECE_BYTES, layout.memory // PIECES_AT_A_TIME) // width
    reader = ParquetReader(
        spans=(),
        features=names,
        target=target,
        weights=recipe.weights,
        key=recipe.key,
        number=number_type(footers, names),
        missing=layout.missing,
        blank_target=layout.optional,
        piece_rows=None if layout.on_cluster else max(1, piece),
        use_threads=not layout.on_cluster,
    )
    return ParquetTable(
        names=names,
        target_name=recipe.target,
        readers=tuple(replace(reader, spans=spans) for spans in parts),
        part_names=tuple(_called(spans) for spans in parts),
        on_cluster=layout.on_cluster,
        source=source,
        n_read=total,
        recipe=recipe,
        notes=tuple(notes),
    )


def _called(spans: Sequence[Any]) -> str:
    """Name a part in a message."""
    return str(spans[0]) if len(spans) == 1 else f"{spans[0].name!r} to {spans[-1].name!r}"
