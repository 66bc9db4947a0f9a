"""Reading a table for a fit, and another one the same way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from regimix.data.cells import FrameCells
from regimix.data.encoding import Encoder, classify, remark
from regimix.data.power import no_power, raised
from regimix.data.recipe import Column, Recipe, check_column
from regimix.errors import DataError, Message, ParameterError, Setting, need
from regimix.paths import is_address
from regimix.tables.recipe import DataSet, Dropped, Roles, check_choice, choose_recipe

if TYPE_CHECKING:
    import polars as pl

    from regimix.tables.files import Loaded

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def read(
    source: str | Path | pl.DataFrame | Any,
    *,
    target: str,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    key: str | None = None,
    power: float = 1.0,
    gating: Sequence[str] = (),
    missing: Literal["drop", "error"] = "drop",
    rows: int | None = None,
    seed: int = 0,
    query: str | None = None,
    password_variable: str | None = None,
    file_format: str | None = None,
    encoding: str = "utf-8",
) -> DataSet:
    """Read a table and turn it into numbers.

    Parameters
    ----------
    source : str, Path or frame
        A file, a folder of Parquet files, a glob, "-" for standard input, the address of a
        database ("sqlite:///path", "postgresql://user@host/name"), or a frame.
    target : str
        The column to explain.
    features : sequence of str, optional
        The columns that explain it. Default: all other columns that can be read as numbers, and
        text columns of few values, one 0/1 column for each value but the commonest.
    drop : sequence of str
        Columns to leave out.
    weights, key : str, optional
        Columns of row weights, and of what identifies a row (default: its number, from 1).
    power : float
        ``y`` is this power of the target; 0 is the logarithm. A value that has no such power is an
        error.
    gating : sequence of str
        Columns from which the regime of a row is to be learnt: ``DataSet.gating``, as they were
        read. They are features only if ``features`` names them too.
    missing : {"drop", "error"}
        Whether rows in which a needed value is missing are dropped and counted, or refused.
    rows : int, optional
        Keep a uniform random sample of so many rows, in their order; ``seed`` decides which.
    query : str, optional
        What to select from a database.
    password_variable : str, optional
        Environment variable that holds the password of a database; default: PGPASSWORD.
    file_format : {"csv", "tsv", "parquet", "arrow", "jsonl"}, optional
        Default: that of the name, or else of the content.
    encoding : str
        Of text files.

    Raises
    ------
    DataError
        The table cannot be read or used as it is; the message says why, and what to do.
    MissingExtraError
        polars or psycopg is not installed.
    """
    roles = Roles(target, features, drop, weights, key, power, gating)
    loaded = _load(source, query, password_variable, file_format, encoding)
    cells = FrameCells(loaded.frame)
    recipe, notes = choose(loaded, cells, roles)
    terms = Terms(missing, rows=rows, seed=seed)
    return to_dataset(loaded, cells, recipe, terms, notes, gating)


def read_like(
    source: str | Path,
    recipe: Recipe,
    *,
    target: Literal["required", "optional"] = "required",
    key: str | None = None,
    gating: Sequence[str] = (),
    unknown: Literal["note", "error"] = "note",
    missing: Literal["drop", "error"] = "drop",
    rows: int | None = None,
    seed: int = 0,
    query: str | None = None,
    password_variable: str | None = None,
    file_format: str | None = None,
    encoding: str = "utf-8",
) -> DataSet:
    """Read a table as another one was read: the same columns, the same levels.

    Parameters that are not listed are those of ``read``.

    Parameters
    ----------
    recipe : Recipe
        ``DataSet.recipe``, or ``Recipe.from_json`` of what a model file holds.
    target : {"required", "optional"}
        Whether rows need a response; "optional" gives ``y=None`` where the column is absent, and
        NaN in rows where its value is.
    key : str, optional
        Another key column than that of the recipe.
    gating : sequence of str
        As of ``read``; those of a model with a gate are the names of ``mixture.gate.columns``.
    unknown : {"note", "error"}
        Whether a level that the recipe does not know is all zeros, with a note, or refused.
    """
    loaded = _load(source, query, password_variable, file_format, encoding)
    terms = Terms(missing=missing, unknown=unknown, target=target, rows=rows, seed=seed)
    recipe = recipe.with_key(key, loaded.frame.columns, loaded.source)
    for name in gating:
        check_column(loaded.frame.columns, name, loaded.source, "a column for the gating")
    return to_dataset(loaded, FrameCells(loaded.frame), recipe, terms, [], gating)


def from_frame(frame: pl.DataFrame | Any, **options: Any) -> DataSet:
    """Turn a polars (or pandas) frame into numbers; options are those of ``read``."""
    return read(frame, **options)


def _load(
    source: Any,
    query: str | None,
    password_variable: str | None,
    file_format: str | None,
    encoding: str,
) -> Loaded:
    """Read a source of any kind into a frame."""
    need("polars", "cli", "tables need")
    import polars as pl

    from regimix.tables.databases import load_query
    from regimix.tables.files import Loaded, load_file

    if not isinstance(source, str | Path):
        if not isinstance(source, pl.DataFrame):
            source = pl.from_pandas(source) if hasattr(source, "iloc") else pl.DataFrame(source)
        return Loaded(source, "the frame")
    if is_address(source):
        return load_query(str(source), query, password_variable)
    if query is not None:
        name, words = Setting("query"), f" is for databases, and {str(source)!r} is a file; leave "
        advice = " out, or pass an address such as sqlite:///path."
        raise ParameterError(Message(name, words, name, advice))
    return load_file(source, file_format, encoding)


# --- from a frame to numbers ----------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """On which terms rows are taken; the parameters of ``read`` and ``read_like``."""

    missing: Literal["drop", "error"] = "drop"
    unknown: Literal["note", "error"] = "note"
    target: Literal["required", "optional"] = "required"
    rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, "drop", "error")
        check_choice("unknown", self.unknown, "note", "error")
        check_choice("target", self.target, "required", "optional")
        if self.rows is not None and not _is_whole(self.rows, 1):
            raise ParameterError(f"rows must be None or a whole number from 1; got {self.rows!r}.")
        if not _is_whole(self.seed, 0):
            raise ParameterError(f"seed must be a whole number from 0; got {self.seed!r}.")


def _is_whole(value: Any, lowest: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= lowest


def choose(loaded: Loaded, cells: FrameCells, roles: Roles) -> tuple[Recipe, list[str]]:
    """Decide what each column becomes; return it with notes on what is not plain."""
    frame, source = loaded.frame, loaded.source
    if frame.width == 0 or frame.height == 0:
        raise DataError(f"{source} has {frame.width} columns and no rows; there is nothing to fit.")
    if frame.height == 1:
        raise DataError(f"{source} has only one row; regimes are found where there are many.")

    def wrong(name: str) -> str:
        """Say what a column does instead of holding numbers; nothing if it holds them."""
        column, reason = classify(cells[name], asked=True)
        if column is None or column.kind in ("number", "flag"):
            return reason
        some = cells[name].series.drop_nulls()[0]
        return f"holds {cells[name].held} (such as {str(some)[:40]!r})"

    def what(name: str) -> tuple[Column | None, str]:
        return classify(cells[name], asked=roles.features is not None)

    usable = "Numbers, true/false, and text of few values"
    recipe, notes = choose_recipe(roles, frame.columns, wrong, what, source, usable)
    for column in (Column(recipe.target), *recipe.columns):
        said = remark(cells[column.name], column)
        notes += [said] if said and (column.name != recipe.target or "spells" in said) else []
    return recipe, notes


def to_dataset(
    loaded: Loaded,
    cells: FrameCells,
    recipe: Recipe,
    terms: Terms,
    notes: list[str],
    gating: Sequence[str] = (),
) -> DataSet:
    """Apply a recipe to a frame."""
    frame, source = loaded.frame, loaded.source
    if frame.height == 0:
        raise DataError(f"{source} has no rows.")
    names = dict.fromkeys(frame.columns)
    for column in recipe.columns:
        check_column(names, column.name, source, "a feature")
    encoder = Encoder(cells, frame.height, source, notes, terms.unknown)
    X = encoder.features(recipe.columns)
    y = _target(encoder, recipe.target, names, optional=terms.target == "optional")
    weights = _weights(encoder, recipe.weights, names)
    there = encoder.usable(terms.missing)
    usable = np.flatnonzero(there)
    absent = 0 if y is None else int(np.count_nonzero(~np.isfinite(y[usable])))
    if absent:
        notes.append(
            f"The target {recipe.target!r} is missing in {absent} of {usable.size} rows: they are "
            "predicted without it."
        )
    kept = usable
    if terms.rows is not None and terms.rows < usable.size:
        notes.append(f"A random sample of {terms.rows} of {usable.size} rows is used.")
        drawn = np.random.default_rng(terms.seed).choice(usable, terms.rows, replace=False)
        kept = np.sort(drawn)
    some = slice(None) if kept.size == frame.height else kept
    keys = _keys(frame, recipe.key, kept, notes)
    left_out = None
    if kept is usable and kept.size < frame.height:
        every = _keys(frame, recipe.key, np.arange(frame.height), [])
        left_out = Dropped(there, every, encoder.reasons(there), frame)
    y_read = None if y is None else y[some]
    return DataSet(
        X=X[some],
        y=None if y_read is None else _response(y_read, recipe, keys),
        weights=None if weights is None else weights[some],
        keys=keys,
        n_read=frame.height,
        n_dropped=frame.height - usable.size,
        notes=(*loaded.notes, *notes),
        recipe=recipe,
        source=source,
        y_read=None if recipe.power == 1.0 else y_read,
        gating=frame.select(gating)[some] if gating else None,
        original=frame[some],
        left_out=left_out,
    )


def _target(
    encoder: Encoder, name: str, names: Collection[str], *, optional: bool
) -> Floats | None:
    if name not in names and optional:
        return None
    check_column(names, name, encoder.source, "the target")
    (y,) = encoder.read(Column(name))
    if not optional:
        encoder.needed[name] = y
    return y


def _weights(encoder: Encoder, name: str | None, names: Collection[str]) -> Floats | None:
    if name is None:
        return None
    if name not in names:
        encoder.notes.append(f"There is no column {name!r} of weights: all rows count the same.")
        return None
    (encoder.needed[name],) = encoder.read(Column(name))
    return encoder.needed[name]


def _response(y: Floats, recipe: Recipe, keys: NDArray[Any]) -> Floats:
    """Return the power of the target that is explained; refuse values that have none."""
    values = raised(y, recipe.power)
    bad = np.flatnonzero(np.isfinite(y) & ~np.isfinite(values))
    if bad.size:
        where = f"{recipe.key or 'row'} {keys[bad[0]]}"
        raise no_power(recipe.target, recipe.power, where, float(y[bad[0]]))
    return values


def _keys(frame: pl.DataFrame, name: str | None, kept: Rows, notes: list[str]) -> NDArray[Any]:
    """Return what finds the rows again: whole numbers as such, anything else as text."""
    numbers = kept.astype(np.int64) + 1
    if name is None:
        return numbers
    series = frame[name].gather(kept)
    if series.n_unique() < series.len():
        notes.append(f"The key {name!r} is not unique: some rows share one.")
    if series.dtype.is_integer() and not series.null_count():
        return series.cast(int, strict=False).to_numpy()
    keys = np.array(series.cast(str).to_list(), dtype=object)
    absent = series.is_null().to_numpy()
    keys[absent] = [f"row {number}" for number in numbers[absent]]
    return keys
