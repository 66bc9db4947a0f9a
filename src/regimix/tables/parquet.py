"""Tables in Parquet that are not read into memory: their files, columns and parts.

Only footers are read here: the schema, the rows and the statistics of row groups. The rows are
read part by part, wherever ``engines.parquet.ParquetReader`` is sent.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import accumulate, pairwise, permutations
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np

from regimix.data.power import raised
from regimix.data.recipe import Column, Recipe, check_column, check_columns, check_unique
from regimix.engines.parquet import (
    FileMark,
    ParquetReader,
    Span,
    need_pyarrow,
    open_parquet,
    what_failed,
)
from regimix.engines.parts import PartTable, RawRows
from regimix.errors import DataError, DataKindError, Message, ParameterError, Setting, read_choice
from regimix.paths import (
    as_os_errors,
    cannot_reach,
    canonical,
    find_paths,
    is_address,
    is_table_file,
    ordered,
    reach,
)
from regimix.tables.read import Roles, check_number
from regimix.words import count, fixed

# Bytes of numbers in a part, and about how many parts even a small table has, so that every worker
# of a few has work. A part is what a worker reads at once, and what is written as one file; it does
# not depend on who reads it, so that the same files come out.
USUAL_PART, SMALLEST_PART = 128_000_000, 32_000_000
FEWEST_PARTS = 16
# Rows that are read at a time to draw some of them.
DRAW_ROWS = 100_000
# Every part costs the scheduler time, so the parts of very large tables are larger, as far as the
# memory of workers allows (a pass takes about four times a part).
MOST_PARTS, LARGEST_PART = 2_000, 4_000_000_000
# Bytes of numbers in a piece that is read here; more do not make it faster.
PIECE_BYTES = 64_000_000
# Memory of a pass, in pieces: the one in use, the next one, the columns it is made of, and the
# results for its rows.
PIECES_AT_A_TIME = 8
LEAST_MEMORY = 8_000_000
# Footers that are read at the same time: on a network most of the time is waiting.
READERS = 16
# Features that the representation of a table names.
FEW = 6
UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
# A folder whose name holds the value of a column.
VALUE_FOLDER = re.compile(r"(?:^|[/\\])([^/\\=]+)=[^/\\]*(?=[/\\])")


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

    readers: tuple[ParquetReader, ...]
    source: str
    n_read: int
    recipe: Recipe
    columns: tuple[str, ...]  # the names of all columns, used or not
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        parts = count(len(self.readers), "part")
        where = " on a cluster" if self.on_cluster else ""
        features = ", ".join((*self.names[:FEW], *(("...",) if len(self.names) > FEW else ())))
        return (
            f"ParquetTable({self.source!r}: {self.n_read} rows, {len(self.names)} features "
            f"({features}), target {self.target_name!r}, {parts}{where})"
        )

    def notes_and_dropped(self, n_dropped: int) -> tuple[str, ...]:
        """Return the notes, and how many rows were dropped, if any."""
        if not n_dropped:
            return self.notes
        dropped = f"{fixed(n_dropped, 0)} of {count(self.n_read, 'row')}"
        return (*self.notes, f"Rows with a missing or infinite value are dropped: {dropped}.")

    def some_rows(self, rows: int, seed: int, columns: Sequence[str]) -> tuple[RawRows, Any]:
        """Draw about this many rows, with a polars frame of some of their columns, of any kind.

        Every row is as likely as any other; the draw depends on the seed and on the place of a row
        alone, so that a cluster draws the same rows.
        """
        import polars as pl

        draw = partial(_drawn, min(1.0, rows / max(self.n_read, 1)), seed)
        readers = [replace(reader, gating=tuple(columns)) for reader in self.readers]
        if self.on_cluster:
            engine = import_module("regimix.engines.dask")
            parts = engine.dask_map(draw, readers, None, self.part_names, None)
        else:
            parts = [draw(reader) for reader in readers]
        pieces = [piece for part in parts for piece in part]
        X, y, weights = (np.concatenate(column) for column in list(zip(*pieces, strict=True))[:3])
        frames = [pl.DataFrame(pl.from_arrow(piece[3])) for piece in pieces]
        return RawRows(X, y, weights), pl.concat(frames, how="vertical_relaxed")

    @property
    def spans(self) -> list[Span]:
        """The row groups of all parts, in order."""
        return [span for reader in self.readers for span in reader.spans]


def _drawn(
    share: float, seed: int, reader: ParquetReader, _labels: Any = None
) -> list[tuple[Any, ...]]:
    """Draw rows of a part: features, responses, weights and columns of any kind, in pieces."""
    import pyarrow as pa

    pieces = []
    for span in reader.spans:
        rng = np.random.default_rng((seed, span.first_row))
        for rows, kept, batch in reader.labelled(span, DRAW_ROWS):
            drawn = rng.random(kept.size) < share
            some = drawn[kept]
            y = None if rows.y is None else raised(rows.y[some], reader.power)
            weights = np.ones(some.size) if rows.weights is None else rows.weights
            columns = batch.select(list(reader.gating)).filter(pa.array(kept & drawn))
            X = rows.X[some].astype(np.float64)
            pieces.append((X, y, weights[some].astype(np.float64), columns))
    return pieces


def scan_parquet(
    source: str | Path,
    target: str,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    *,
    key: str | None = None,
    power: float = 1.0,
    gating: Sequence[str] = (),
    missing: Literal["drop", "error"] = "drop",
    memory: float | str = "512MB",
    on_cluster: bool = False,
) -> ParquetTable:
    """Open a table in Parquet that is read in parts, each time it is needed.

    Only the footers of the files are read now. The result takes the place of X and y:
    ``MixedLinearRegression().fit(scan_parquet("rows/*.parquet", "price"))``. Rows are used as
    ``tables.read`` uses them, so that the fit is the same; but text and dates are not.

    Parameters that are not listed are those of ``tables.read``.

    Parameters
    ----------
    source : str or Path
        A file, a folder, a glob (``"rows/*.parquet"``), or an address that fsspec knows
        (``"s3://..."``). All files have the same columns.
    features : sequence of str, optional
        The columns that explain the target; default: all others that hold numbers.
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
    roles = Roles(target, features, drop, weights, key, power, gating)
    footers = read_footers(source)
    recipe, notes = _choose(footers, roles, str(source))
    how: dict[str, Any] = {"on_cluster": on_cluster, "gating": gating, "notes": notes}
    return _table(footers, recipe, str(source), missing, memory, **how)


def scan_like(
    source: str | Path,
    recipe: Recipe,
    *,
    target: Literal["required", "optional"] = "required",
    key: str | None = None,
    gating: Sequence[str] = (),
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
        check_column(kinds, column.name, str(source), "a feature")
        if column.kind not in ("number", "flag"):
            raise DataKindError(
                f"column {column.name!r} is {'text' if column.kind == 'levels' else 'a date'} to "
                "this model, and tables that are read in parts use numbers alone. Read the table "
                "into memory."
            )
        check_number(column.name, "a feature", _what_is_wrong(footers, column.name))
    check_columns(kinds, gating, str(source), "a column for the gating")
    recipe = replace(recipe.with_key(key, kinds, str(source)), weights=None)
    optional = target == "optional"
    if not optional:
        check_column(kinds, recipe.target, str(source), "the target")
    if recipe.target in kinds:
        check_number(recipe.target, "the target", _what_is_wrong(footers, recipe.target))
    how: dict[str, Any] = {"on_cluster": on_cluster, "gating": gating, "optional": optional}
    return _table(footers, recipe, str(source), missing, memory, **how)


def _table(
    footers: list[Footer],
    recipe: Recipe,
    source: str,
    missing: str,
    memory: float | str,
    *,
    on_cluster: bool,
    gating: Sequence[str],
    optional: bool = False,
    notes: Sequence[str] = (),
) -> ParquetTable:
    """Cut the row groups of a table into parts."""
    read_choice("missing", missing, ("drop", "error"))
    names = recipe.feature_names
    target = recipe.target if recipe.target in footers[0].kinds else None
    width = 8 * (len(names) + (target is not None) + (recipe.weights is not None))
    total = sum(sum(footer.group_rows) for footer in footers)
    if on_cluster:
        # Workers may have their own copies of the files, with other times of change.
        footers = [replace(footer, mark=replace(footer.mark, time="")) for footer in footers]
    piece = min(PIECE_BYTES, read_size(memory) // PIECES_AT_A_TIME) // width
    small = {"bool", "halffloat", "float", "int8", "int16", "uint8", "uint16"}
    plain = all(str(footer.kinds[name]) in small for footer in footers for name in names)
    reader = ParquetReader(
        spans=(),
        features=names,
        target=target,
        weights=recipe.weights,
        key=recipe.key,
        power=recipe.power,
        number="float32" if plain else "float64",  # the smallest that holds them as they are
        missing=missing,
        blank_target=optional,
        piece_rows=None if on_cluster else max(1, piece),
        use_threads=not on_cluster,
        gating=tuple(gating),
    )
    parts = cut_into_parts(footers, max(1, part_bytes(total * width) // width))
    return ParquetTable(
        names=names,
        target_name=recipe.response,
        readers=tuple(replace(reader, spans=spans) for spans in parts),
        part_names=tuple(
            str(spans[0]) if len(spans) == 1 else f"{spans[0].name!r} to {spans[-1].name!r}"
            for spans in parts
        ),
        on_cluster=on_cluster,
        gating=tuple(gating),
        source=source,
        n_read=total,
        recipe=recipe,
        columns=tuple(footers[0].kinds),
        notes=tuple(notes),
    )


def read_size(memory: float | str) -> int:
    """Read a number of bytes: 2_000_000_000, 2e9, "2GB", "500 MiB"."""
    number = r"[\d_.]+(?:e\+?\d{1,2})?"
    found = re.fullmatch(rf"\s*({number})\s*([kmgt]?)(i?)b?\s*", str(memory).lower())
    size = 0.0
    if found is not None:
        with suppress(ValueError):
            size = float(found[1]) * (1024 if found[3] else 1000) ** UNITS[found[2]]
    if size >= LEAST_MEMORY:
        return int(size)
    wrong = f" must be a number of bytes such as 2e9 or '2GB'; got {memory!r}."
    if size > 0:
        wrong = f" must be at least {LEAST_MEMORY // 10**6}MB; got {memory!r}."
    raise ParameterError(Message(Setting("memory"), wrong))


# --- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Footer:
    """What the footer of a Parquet file says about it."""

    path: str
    name: str  # what messages call the file
    relative: str  # its name below the folder that all files have in common
    kinds: dict[str, Any]  # the pyarrow type of each column
    group_rows: tuple[int, ...]
    # Smallest and largest value of columns of which all row groups have statistics; an empty list:
    # there are no values.
    ends: dict[str, list[Any]]
    mark: FileMark = field(default_factory=FileMark)


def read_footers(source: str | Path) -> list[Footer]:
    """Find the files of a table in Parquet, and read their footers."""
    paths, names = zip(*_files(str(source)), strict=True)
    plain = [name.replace("\\", "/") for name in names]
    folder = posixpath.commonpath([posixpath.dirname(name) for name in plain])
    below = [posixpath.relpath(name, folder) for name in plain]
    with ThreadPoolExecutor(READERS) as readers:
        footers = list(readers.map(_read_footer, paths, names, below))
    pairs = [pair for other in footers[1:] for pair in permutations((footers[0], other))]
    for mine, other in pairs:
        lacking = next((name for name in mine.kinds if name not in other.kinds), None)
        if lacking is not None:
            raise DataError(
                f"{other.name!r} has no column {lacking!r}, but {mine.name!r} has; all files of a "
                "table must have the same columns. Leave out files of another table."
            )
    return footers


def _files(source: str) -> list[tuple[str, str]]:
    """Return where each file is, and what it is called."""
    local = canonical(source) if is_address(source) else source
    if not is_address(local):
        paths = find_paths(Path(local), "parquet")
        return [(str(path.resolve()), str(path)) for path in paths]
    system, place = reach(source)
    try:
        with as_os_errors():
            system.invalidate_cache()  # files may have changed since someone looked
            inside = f"{place.rstrip('/')}/**" if system.isdir(place) else place
            names = system.glob(inside) if any(sign in inside for sign in "*?[") else [inside]
            addresses = [system.unstrip_protocol(name) for name in names]
    except (OSError, ValueError) as error:
        raise cannot_reach(source, error) from error
    if place != inside:
        addresses = [name for name in addresses if is_table_file(PurePosixPath(name))]
    if not addresses:
        raise DataError(f"there is no Parquet file at {source!r}; check the address.")
    return [(address, address) for address in ordered(addresses)]


def _read_footer(path: str, name: str, relative: str) -> Footer:
    import pyarrow as pa

    try:
        with open_parquet(path) as (file, mark):
            schema, metadata = file.schema_arrow, file.metadata
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{name!r} cannot be read as Parquet: {what_failed(error)}. Check that the file is "
            "whole and what its name says."
        ) from error
    check_unique(schema.names, f"{name!r} has")
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    kinds = dict(zip(schema.names, schema.types, strict=True))
    rows = tuple(group.num_rows for group in groups)
    return Footer(path, name, relative, kinds, rows, _ends(groups, kinds), mark)


def _ends(groups: list[Any], kinds: dict[str, Any]) -> dict[str, list[Any]]:
    """Find the smallest and largest value of columns of which all row groups have statistics."""
    values: dict[str, list[Any]] = {name: [] for name in kinds}
    for group in groups:
        for i in range(group.num_columns if group.num_rows else 0):
            column = group.column(i)
            name, statistics = column.path_in_schema, column.statistics
            if name not in values:
                continue
            if statistics is not None and statistics.has_min_max:
                values[name] += [statistics.min, statistics.max]
            elif statistics is None or statistics.null_count != group.num_rows:
                del values[name]
    return {name: [min(found), max(found)] if found else [] for name, found in values.items()}


# --- columns --------------------------------------------------------------------------------------


def _choose(footers: list[Footer], roles: Roles, source: str) -> tuple[Recipe, list[str]]:
    """Decide what each column is for, in the words that are used for tables in memory."""
    kinds = footers[0].kinds
    if not any(sum(footer.group_rows) for footer in footers):
        raise DataError(f"{source} has {len(kinds)} columns and no rows; there is nothing to fit.")

    def classify(name: str) -> tuple[Column | None, str]:
        reason = _reason(footers, name, asked=roles.features is not None)
        is_flag = str(kinds[name]) == "bool"
        return None if reason else Column(name, "flag" if is_flag else "number"), reason

    wrong, usable = partial(_what_is_wrong, footers), "Numbers and true/false"
    recipe, notes = roles.recipe(list(kinds), source, wrong, classify, usable)
    named = dict.fromkeys(name for foot in footers for name in VALUE_FOLDER.findall(foot.name))
    notes += [f"Column {name!r} is left out: it stands in names of folders." for name in named]
    return recipe, notes


def _reason(footers: list[Footer], name: str, *, asked: bool) -> str:
    """Say why a column cannot be a feature; nothing if it can."""
    if not (asked or name):
        return "has no name (row numbers that a program wrote, perhaps)"
    wrong = _what_is_wrong(footers, name)
    if wrong:
        return f"{wrong}, and tables that are read in parts use numbers alone"
    filled = [footer for footer in footers if any(footer.group_rows)]
    if not all(name in footer.ends for footer in filled):
        return ""
    values = [value for footer in filled for value in footer.ends[name]]
    if not values:
        return "has no values"
    return "is the same in all rows" if min(values) == max(values) and not asked else ""


def _what_is_wrong(footers: list[Footer], name: str) -> str:
    """Say what a column does instead of holding numbers; refuse one that holds both."""
    first = _held(footers[0].kinds[name])
    for footer in () if first else footers:
        held = _held(footer.kinds[name])
        if held:
            raise DataKindError(
                f"column {name!r} holds {held} in {footer.name!r}, but numbers in "
                f"{footers[0].name!r}; all files of a table must have the same columns."
            )
    return f"holds {first}" if first else ""


def _held(kind: Any) -> str:
    """Say what a column holds; nothing if it holds numbers."""
    from pyarrow import types

    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    if any(is_kind(kind) for is_kind in numbers):
        return ""
    if types.is_string(kind) or types.is_large_string(kind):
        return "text"
    if types.is_dictionary(kind):
        return "categories"
    return f"{str(kind).partition('[')[0].partition('<')[0]} values"


# --- parts ----------------------------------------------------------------------------------------


def part_bytes(table_bytes: int) -> int:
    """Return about how many bytes of numbers a part of a table has."""
    usual = min(max(table_bytes // FEWEST_PARTS, SMALLEST_PART), USUAL_PART)
    return max(usual, min(table_bytes // MOST_PARTS, LARGEST_PART))


def cut_into_parts(footers: Iterable[Footer], part_rows: int) -> list[tuple[Span, ...]]:
    """Put row groups together until a part has about ``part_rows`` rows.

    Small files share a part; a file is cut only if it is larger than a part, between row groups.
    """
    files = [(footer, _cuts(footer.group_rows, part_rows)) for footer in footers]
    taken = {footer.relative for footer, cuts in files if len(cuts) == 1}
    parts: list[list[Span]] = []
    row = free = 0
    for footer, cuts in files:
        for i, (first, stop) in enumerate(cuts):
            n_rows = sum(footer.group_rows[first:stop])
            output = footer.relative
            if len(cuts) > 1:
                output = _numbered(output, f"{i:0{len(str(len(cuts) - 1))}}", taken)
            if not parts or n_rows > free or len(cuts) > 1:
                parts.append([])
                free = part_rows
            where = (footer.path, footer.name, first, stop)
            parts[-1].append(Span(*where, n_rows, first_row=row, output=output, mark=footer.mark))
            free -= n_rows
            row += n_rows
    return [tuple(part) for part in parts]


def _cuts(group_rows: Sequence[int], part_rows: int) -> list[tuple[int, int]]:
    """Cut a file that is too large for one part; a row group is never cut."""
    ends = [0, *accumulate(group_rows)]
    cuts = [0]
    for group in range(1, len(group_rows)):
        if ends[group + 1] - ends[cuts[-1]] > part_rows:
            cuts.append(group)
    return list(pairwise([*cuts, len(group_rows)]))


def _numbered(name: str, number: str, taken: set[str]) -> str:
    """Put a number before the ending of a name, such that no other file has it."""
    start, ending = posixpath.splitext(name)
    start += f".{number}"
    while start + ending in taken:
        start += "_"
    taken.add(start + ending)
    return start + ending
