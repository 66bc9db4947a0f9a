"""From a frame to numbers: what each column becomes, which rows can be used."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from regimix.data.power import no_power, raised
from regimix.errors import DataError, DataKindError, ParameterError
from regimix.tables.files import Loaded
from regimix.tables.recipe import (
    Column,
    DataSet,
    Recipe,
    Roles,
    check_choice,
    check_column,
    choose_recipe,
)

__all__ = ["Terms", "choose", "to_dataset"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# A text column of at most so many values becomes 0/1 columns: each value needs rows of its own to
# say something about each regime.
MOST_LEVELS = 12
# A text column in which this share of the cells are numbers is a column of numbers with mistakes.
MOSTLY_NUMBERS = 0.9
# Columns that a note about missing values names.
MOST_NAMED = 4
# How polars counts: days, microseconds, nanoseconds.
UNITS_A_DAY = {pl.Date: 1.0, pl.Datetime: 86_400e6, pl.Duration: 86_400e6, pl.Time: 86_400e9}
FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


# --- what each column becomes ---------------------------------------------------------------------


def choose(loaded: Loaded, roles: Roles) -> tuple[Recipe, list[str]]:
    """Decide what each column becomes; return it with notes on what is not plain."""
    frame, source = loaded.frame, loaded.source
    if frame.width == 0 or frame.height == 0:
        raise DataError(f"{source} has {frame.width} columns and no rows; there is nothing to fit.")
    if frame.height == 1:
        raise DataError(f"{source} has only one row; regimes are found where there are many.")

    def classify(name: str) -> tuple[Column | None, str]:
        return _classify(frame[name], asked=roles.features is not None)

    def wrong(name: str) -> str:
        return _what_is_wrong(frame[name])

    usable = "Numbers, true/false, and text of few values"
    return choose_recipe(roles, frame.columns, wrong, classify, source, usable)


def _what_is_wrong(series: pl.Series) -> str:
    """Say what a column does instead of holding numbers; nothing if it holds them."""
    column, reason = _classify(series, asked=True)
    if column is None or column.kind in ("number", "flag"):
        return reason
    held = "text" if _is_text(series) else f"{series.dtype.base_type()} values"
    return f"holds {held} (such as {str(series.drop_nulls()[0])[:40]!r})"


def _classify(series: pl.Series, *, asked: bool) -> tuple[Column | None, str]:
    """Say what a column becomes, or why it cannot be a feature."""
    name, kind = series.name, series.dtype
    if series.null_count() == series.len():
        return None, "has no values"
    if not (asked or name):
        return None, "has no name (row numbers that a program wrote, perhaps)"
    if _is_text(series):
        return _classify_text(series, asked=asked)
    if kind.is_temporal():
        if asked:
            return Column(name, "date"), ""
        words = f"holds {kind.base_type()} values; to use it as days since 1970, name it a feature"
        return None, words
    if not (kind.is_numeric() or kind == pl.Boolean):
        return None, f"holds {kind.base_type()} values"
    if not asked and series.min() == series.max():
        return None, "is the same in all rows"
    return Column(name, "flag" if kind == pl.Boolean else "number"), ""


def _classify_text(series: pl.Series, *, asked: bool) -> tuple[Column | None, str]:
    text = _as_text(series).drop_nulls()
    if not text.len():
        return None, "has no values"
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.count() >= MOSTLY_NUMBERS * text.len():
        return Column(series.name), ""
    counts = text.value_counts()
    if counts.height == 1:
        return None, "is the same in all rows"
    if counts.height > MOST_LEVELS:
        return None, f"is text of {counts.height} different values (at most {MOST_LEVELS} are used)"
    if not asked and counts.height == text.len():
        return None, "is text that differs in every row, as names and remarks do"
    ordered = counts.sort("count", series.name, descending=[True, False])
    return Column(series.name, "levels", tuple(ordered[series.name].to_list())), ""


# --- columns as numbers ---------------------------------------------------------------------------


def _is_text(series: pl.Series) -> bool:
    """Whether a column holds text, or categories, which are text."""
    return series.dtype in (pl.String, pl.Categorical, pl.Enum)


def _as_text(series: pl.Series) -> pl.Series:
    """Read a column as text without blanks around it; blank cells are missing."""
    text = series.cast(pl.String).str.strip_chars()
    return text.set(text == "", None)


def _as_numbers(series: pl.Series, column: Column) -> list[Floats]:
    """Turn a column into the features it stands for; what cannot be read is NaN."""
    if column.kind == "levels":
        text = _as_text(series)
        return [_floats(text == level) for level in column.levels[1:]]
    if column.kind == "date":
        return [_days(series)]
    if _is_text(series):
        text = _as_text(series)
        if column.kind == "flag":
            return [_floats(text.str.to_lowercase().replace_strict(FLAGS, default=None))]
        return [_floats(text)]
    if not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
        raise DataKindError(
            f"column {series.name!r} holds {series.dtype} values, which are not numbers; convert "
            "it, or leave it out."
        )
    return [_floats(series)]


def _example(series: pl.Series, bad: NDArray[np.bool_]) -> str:
    """Show the first cell of those marked, and where it is."""
    row = int(np.flatnonzero(bad)[0])
    return f"{str(series[row])[:40]!r} in row {row + 1}"


def _floats(series: pl.Series) -> Floats:
    return series.cast(pl.Float64, strict=False).to_numpy().astype(np.float64, copy=False)


def _days(series: pl.Series) -> Floats:
    """Days since 1970-01-01 of dates; days of durations and of times of day."""
    kind = series.dtype.base_type()
    if kind not in UNITS_A_DAY:
        raise DataKindError(
            f"column {series.name!r} holds {series.dtype} values where dates are expected; write "
            "dates as 2024-12-31."
        )
    if kind in (pl.Datetime, pl.Duration):
        series = series.dt.cast_time_unit("us")
    return _floats(series.to_physical()) / UNITS_A_DAY[kind]


# --- rows that can be used ------------------------------------------------------------------------


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


def to_dataset(loaded: Loaded, recipe: Recipe, terms: Terms, notes: list[str]) -> DataSet:
    """Apply a recipe to a frame."""
    frame, source = loaded.frame, loaded.source
    if frame.height == 0:
        raise DataError(f"{source} has no rows.")
    encoder = _Encoder(loaded, terms, notes)
    X = encoder.features(recipe)
    y = encoder.target(recipe.target)
    weights = encoder.weights(recipe.weights)
    usable = encoder.usable()
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
        original=frame[some],
    )


def _response(y: Floats, recipe: Recipe, keys: NDArray[Any]) -> Floats:
    """Return the power of the target that is explained; refuse values that have none."""
    values = raised(y, recipe.power)
    bad = np.flatnonzero(np.isfinite(y) & ~np.isfinite(values))
    if bad.size:
        where = f"{recipe.key or 'row'} {keys[bad[0]]}"
        raise no_power(recipe.target, recipe.power, where, float(y[bad[0]]))
    return values


class _Encoder:
    """Turns columns of a frame into numbers, with notes on cells that are none."""

    def __init__(self, loaded: Loaded, terms: Terms, notes: list[str]) -> None:
        self.frame, self.source, self.terms, self.notes = loaded.frame, loaded.source, terms, notes
        # A frame makes a new list of its columns each time.
        self.names = dict.fromkeys(self.frame.columns)
        # Numbers without which a row cannot be used, by column.
        self.needed: dict[str, Floats] = {}

    def features(self, recipe: Recipe) -> Floats:
        for column in recipe.columns:
            check_column(self.names, column.name, self.source, "a feature")
        X = np.empty((self.frame.height, len(recipe.feature_names)))
        place = 0
        for column in recipe.columns:
            # A cell of text that is missing is missing in all the features that the column becomes.
            self.needed[column.name] = X[:, place]
            for values in self._read(column):
                X[:, place] = values
                place += 1
        return X

    def target(self, name: str) -> Floats | None:
        optional = self.terms.target == "optional"
        if name not in self.names and optional:
            return None
        check_column(self.names, name, self.source, "the target")
        (y,) = self._read(Column(name))
        if not optional:
            self.needed[name] = y
        return y

    def weights(self, name: str | None) -> Floats | None:
        if name is None:
            return None
        if name not in self.names:
            self.notes.append(f"There is no column {name!r} of weights: all rows count the same.")
            return None
        (self.needed[name],) = self._read(Column(name))
        return self.needed[name]

    def _read(self, column: Column) -> list[Floats]:
        series = self.frame[column.name]
        features = _as_numbers(series, column)
        if _is_text(series) and column.kind == "levels":
            self._check_levels(series, column)
        elif _is_text(series):
            bad = np.isnan(features[0]) & _as_text(series).is_not_null().to_numpy()
            if bad.any():
                self.notes.append(
                    f"Column {column.name!r} holds what is not a number in "
                    f"{np.count_nonzero(bad)} of {bad.size} rows (first: {_example(series, bad)}); "
                    "such cells count as missing."
                )
        return features

    def _check_levels(self, series: pl.Series, column: Column) -> None:
        text = _as_text(series)
        unknown = (text.is_not_null() & ~text.is_in(list(column.levels))).to_numpy()
        if not unknown.any():
            return
        what = (
            f"column {column.name!r} holds a value that was not there before in "
            f"{np.count_nonzero(unknown)} of {unknown.size} rows (first: "
            f"{_example(series, unknown)})"
        )
        if self.terms.unknown == "error":
            known = ", ".join(map(repr, column.levels))
            raise DataError(f"{what}; known are {known}. Correct them, or drop those rows.")
        self.notes.append(f"C{what[1:]}: it is treated like {column.levels[0]!r}.")

    def usable(self) -> Rows:
        """Return the rows in which nothing that is needed is missing."""
        lacking = {}
        usable = np.ones(self.frame.height, dtype=bool)
        for name, values in self.needed.items():
            there = np.isfinite(values)
            if not there.all():
                lacking[name] = int(np.count_nonzero(~there))
                usable &= there
        if lacking:
            self._note_missing(lacking, usable)
        return np.flatnonzero(usable)

    def _note_missing(self, lacking: dict[str, int], usable: NDArray[np.bool_]) -> None:
        """Say where values are missing: in a note, or as an error if no row is left."""
        total, dropped = usable.size, int(np.count_nonzero(~usable))
        worst = sorted(lacking, key=lambda name: -lacking[name])
        where = ", ".join(f"{lacking[name]} in {name!r}" for name in worst[:MOST_NAMED])
        if len(worst) > MOST_NAMED:
            where += f" and {len(worst) - MOST_NAMED} other columns"
        if self.terms.missing == "error":
            first = int(np.flatnonzero(~usable)[0]) + 1
            raise DataError(
                f"{dropped} of the {total} rows of {self.source} have a missing or infinite value "
                f"({where}); the first is row {first}. Fill them in, leave those columns out, or "
                "have such rows dropped."
            )
        if dropped == total:
            raise DataError(
                f"each of the {total} rows of {self.source} has a missing or infinite value "
                f"({where}); leave out the columns with most of them."
            )
        advice = f"; leave out {worst[0]!r} to keep more of them" if 2 * dropped > total else ""
        self.notes.append(
            f"{dropped} of {total} rows have a missing or infinite value and are dropped "
            f"({where}){advice}."
        )


def _keys(frame: pl.DataFrame, name: str | None, kept: Rows, notes: list[str]) -> NDArray[Any]:
    """Return what finds the rows again: whole numbers as such, anything else as text."""
    numbers = kept.astype(np.int64) + 1
    if name is None:
        return numbers
    series = frame[name].gather(kept)
    if series.n_unique() < series.len():
        notes.append(f"The key {name!r} is not unique: some rows share one.")
    if series.dtype.is_integer() and not series.null_count():
        return series.cast(pl.Int64, strict=False).to_numpy()
    keys = np.array(series.cast(pl.String).to_list(), dtype=object)
    absent = series.is_null().to_numpy()
    keys[absent] = [f"row {number}" for number in numbers[absent]]
    return keys
