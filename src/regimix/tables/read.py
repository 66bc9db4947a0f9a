"""Reading a table for a fit, and another one the same way: which columns, and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from regimix.data.cells import FrameCells
from regimix.data.encoding import Encoder, classify, remark
from regimix.data.power import no_power, raised
from regimix.data.recipe import Column, Recipe, check_column, check_columns, read_power
from regimix.errors import (
    DataError,
    DataKindError,
    Message,
    ParameterError,
    Setting,
    need,
    read_choice,
    read_count,
)
from regimix.paths import is_address
from regimix.words import count, fixed

if TYPE_CHECKING:
    import polars as pl

    from regimix.tables.files import Loaded

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Dropped:
    """Rows that were left out because a value is missing, among all that were read."""

    kept: NDArray[np.bool_]  # of all rows, which were used
    keys: NDArray[Any]  # of all rows
    reasons: NDArray[Any]  # of all rows: why one was left out, or ""
    original: pl.DataFrame


@dataclass(frozen=True, eq=False)
class DataSet:
    """Numbers of a table, and how they came about.

    Attributes
    ----------
    X : ndarray of shape (n, d), float64, C-contiguous
    y : ndarray of shape (n,) or None
        The response: the target, or the power of it that the recipe says. None: the table has no
        target, and none was needed. Where none was needed but the column is there, rows without a
        value are not finite.
    weights : ndarray of shape (n,) or None
    keys : ndarray of shape (n,), int64 or object (str)
        What finds a row again: the values of the key column, or else the number of the row in what
        was read, from 1, the header not counted.
    n_read, n_dropped : int
        Rows that were read, and those left out because a value that is needed is missing. (The
        rows that a sample leaves out are in neither of ``n_dropped`` and ``X``.)
    notes : tuple of str
        Sentences worth reading: what was encoded, left out, dropped, and why.
    recipe : Recipe
        How columns became numbers; ``read_like`` does the same to new data.
    source : str
        Where the rows came from; holds no password.
    y_read : ndarray of shape (n,) or None
        The target as it was read, where y is a power of it.
    gating : polars.DataFrame or None
        The columns from which the regime of a row is learnt, as they were read.
    original : polars.DataFrame or None
        All columns of the rows, as they were read.
    left_out : Dropped or None
        The rows that were dropped; None if none was, or if a sample was drawn.
    """

    X: Floats
    y: Floats | None
    weights: Floats | None
    keys: NDArray[Any]
    n_read: int
    n_dropped: int
    notes: tuple[str, ...]
    recipe: Recipe
    source: str
    y_read: Floats | None = None
    gating: pl.DataFrame | None = None
    original: pl.DataFrame | None = None
    left_out: Dropped | None = None

    @property
    def columns(self) -> list[str]:
        """Names of all columns of the table, used or not; none if they are not known any more."""
        return [] if self.original is None else list(self.original.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X; a text column gives several, "column=level"."""
        return self.recipe.feature_names

    @property
    def target_name(self) -> str:
        """Name of the response: that of the target, or "log price"."""
        return self.recipe.response

    @property
    def key_name(self) -> str:
        """Name of the key column; "row" for row numbers."""
        return self.recipe.key or "row"

    @property
    def n_rows(self) -> int:
        """Rows of X."""
        return int(self.X.shape[0])

    def frame(self) -> pl.DataFrame:
        """Return X as a polars frame with the names of its columns, for an estimator."""
        import polars as pl

        return pl.DataFrame(self.X, schema=list(self.feature_names), orient="row")

    def target(self) -> pl.Series | None:
        """Return y as a polars series with the name of the response."""
        import polars as pl

        return None if self.y is None else pl.Series(self.target_name, self.y)


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
        Keep a uniform random sample of this many rows, in their order; ``seed`` decides which.
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
    return to_dataset(loaded, cells, recipe, notes, gating, missing=missing, rows=rows, seed=seed)


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
    recipe = recipe.with_key(key, loaded.frame.columns, loaded.source)
    check_columns(loaded.frame.columns, gating, loaded.source, "a column for the gating")
    how: dict[str, Any] = {"target": target, "unknown": unknown, "missing": missing}
    how |= {"rows": rows, "seed": seed}
    return to_dataset(loaded, FrameCells(loaded.frame), recipe, [], gating, **how)


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


# --- which columns are used for what --------------------------------------------------------------


@dataclass(frozen=True)
class Roles:
    """Which columns a user wants for what; None: whatever is left and can be used."""

    target: str
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    weights: str | None = None
    key: str | None = None
    power: float = 1.0
    gating: Sequence[str] = ()

    def __post_init__(self) -> None:
        read_power(self.power)
        lists = (("features", self.features), ("drop", self.drop), ("gating", self.gating))
        for name, value in lists:
            if isinstance(value, str):
                raise ParameterError(f"{name} must be a list of column names; got {value!r}.")
        self._check_conflicts()

    def check(self, names: Collection[str], source: str) -> None:
        """Refuse names that are not there."""
        check_column(names, self.target, source, "the target")
        check_columns(names, self.features or (), source, "a feature")
        check_columns(names, self.drop, source, "to drop")
        check_columns(names, self.gating, source, "a column for the gating")
        for name, role in ((self.weights, "the weights"), (self.key, "the key")):
            check_columns(names, () if name is None else (name,), source, role)

    def _check_conflicts(self) -> None:
        """Refuse columns with two roles, which needs no table."""
        features, drop = Setting("features"), Setting("drop")
        for name in self.features or ():
            if name in (self.target, self.weights):
                words = f"column {name!r} cannot be a feature: it is the target or the weights."
                raise DataError(Message(f"{words} Leave it out of ", features, "."))
            if name in self.drop:
                words = f"column {name!r} is in "
                raise DataError(Message(words, features, " and in ", drop, "; leave it in one."))
        if self.target in self.gating:
            raise DataError(
                f"column {self.target!r} is the target, which new rows lack: it cannot tell their "
                "regime. Name other columns for the gating."
            )
        if self.target in (self.weights, self.key, *self.drop):
            raise DataError(
                f"column {self.target!r} is the target; it cannot be the weights, the key or "
                "dropped."
            )

    def recipe(
        self,
        names: Sequence[str],
        source: str,
        wrong: Callable[[str], str],
        classify: Callable[[str], tuple[Column | None, str]],
        usable: str,
    ) -> tuple[Recipe, list[str]]:
        """Decide what each column of a table becomes; return it with notes on what is not plain.

        ``wrong`` says what a column does instead of holding numbers; ``classify`` returns what a
        column becomes, or None and why it cannot be a feature; ``usable`` lists what can be used.
        """
        self.check(dict.fromkeys(names), source)
        check_number(self.target, "the target", wrong(self.target))
        if self.weights is not None:
            check_number(self.weights, "the weights", wrong(self.weights))
        # Columns for the gating are features only if they are named as such.
        taken = {self.target, self.weights, self.key, *self.drop, *self.gating}
        others = [name for name in names if name not in taken]
        columns: list[Column] = []
        reasons: dict[str, str] = {}
        for name in others if self.features is None else dict.fromkeys(self.features):
            column, reason = classify(name)
            if column is not None:
                columns.append(column)
            elif self.features is not None:
                raise DataKindError(f"column {name!r} cannot be a feature: it {reason}.")
            else:
                reasons[name] = reason
        if not columns:
            raise DataError(
                f"{source} has no column besides {self.target!r} that can be a feature"
                f"{''.join(f'; {name!r} {reason}' for name, reason in list(reasons.items())[:4])}. "
                f"{usable} can be used."
            )
        notes = [column.note for column in columns if column.note]
        notes += [f"Column {name!r} is left out: it {reason}." for name, reason in reasons.items()]
        power = float(self.power)
        return Recipe(self.target, tuple(columns), self.weights, self.key, power), notes


def check_number(name: str, role: str, wrong: str) -> None:
    """Refuse a column that does not hold numbers; ``wrong`` says what it does, if so."""
    if wrong:
        raise DataKindError(
            f"column {name!r} cannot be {role}: it {wrong}, and regimix explains numbers. Name a "
            "column of numbers."
        )


# --- from a frame to numbers ----------------------------------------------------------------------


def choose(loaded: Loaded, cells: FrameCells, roles: Roles) -> tuple[Recipe, list[str]]:
    """Decide what each column becomes; return it with notes on what is not plain."""
    frame, source = loaded.frame, loaded.source
    if frame.width == 0 or frame.height == 0:
        raise DataError(f"{source} has {frame.width} columns and no rows; there is nothing to fit.")
    if frame.height == 1:
        raise DataError(
            f"{source} has only one row; regimes are found where there are many. Check that it is "
            "the whole table, or bring more rows."
        )

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
    recipe, notes = roles.recipe(frame.columns, source, wrong, what, usable)
    for column in (Column(recipe.target), *recipe.columns):
        said = remark(cells[column.name], column)
        notes += [said] if said and (column.name != recipe.target or "spells" in said) else []
    return recipe, notes


def to_dataset(
    loaded: Loaded,
    cells: FrameCells,
    recipe: Recipe,
    notes: list[str],
    gating: Sequence[str],
    *,
    missing: str,
    rows: int | None,
    seed: int,
    target: str = "required",
    unknown: str = "note",
) -> DataSet:
    """Apply a recipe to a frame; parameters are those of ``read`` and ``read_like``."""
    read_choice("missing", missing, ("drop", "error"))
    read_choice("unknown", unknown, ("note", "error"))
    read_choice("target", target, ("required", "optional"))
    rows = None if rows is None else read_count("rows", rows, otherwise="None or ")
    read_count("seed", seed, 0)
    frame, source = loaded.frame, loaded.source
    if frame.height == 0:
        raise DataError(f"{source} has no rows.")
    names = dict.fromkeys(frame.columns)
    check_columns(names, (column.name for column in recipe.columns), source, "a feature")
    encoder = Encoder(cells, frame.height, source, notes, unknown)
    X, y, weights = encoder.features(recipe.columns), None, None
    if target == "required" or recipe.target in names:
        check_column(names, recipe.target, source, "the target")
        y = encoder.numbers(recipe.target, needed=target == "required")
    if recipe.weights in names:
        weights = encoder.numbers(recipe.weights)
    elif recipe.weights is not None:
        notes.append(f"There is no column {recipe.weights!r} of weights: all rows count the same.")
    there = encoder.usable(missing)
    usable = np.flatnonzero(there)
    absent = 0 if y is None else int(np.count_nonzero(~np.isfinite(y[usable])))
    if absent:
        notes.append(
            f"The target {recipe.target!r} is missing in {fixed(absent, 0)} of "
            f"{count(usable.size, 'row')}: predictions there do without it."
        )
    kept = usable
    if rows is not None and rows < usable.size:
        of = count(usable.size, "row")
        notes.append(f"A random sample of {fixed(rows, 0)} of {of} is used.")
        kept = np.sort(np.random.default_rng(seed).choice(usable, rows, replace=False))
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


def _response(y: Floats, recipe: Recipe, keys: NDArray[Any]) -> Floats:
    """Return the power of the target that is the response; refuse values that have none."""
    values = raised(y, recipe.power)
    bad = np.flatnonzero(np.isfinite(y) & ~np.isfinite(values))
    if bad.size:
        where = f"{recipe.key or 'row'} {keys[bad[0]]}"
        raise no_power(recipe.target, recipe.power, where, float(y[bad[0]]))
    return values


def _keys(frame: pl.DataFrame, name: str | None, kept: Rows, notes: list[str]) -> NDArray[Any]:
    """Return the keys of rows: whole numbers as such, anything else as text."""
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
