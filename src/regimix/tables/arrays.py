"""From a frame and a recipe to a DataSet: numbers, rows that can be used, keys."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from regimix.errors import DataError, ParameterError
from regimix.tables.columns import as_numbers, as_text, example, is_text
from regimix.tables.data import DataSet
from regimix.tables.files import Loaded
from regimix.tables.recipe import Column, Recipe
from regimix.tables.roles import locate

__all__ = ["Terms", "to_dataset"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# Columns that a note about missing values names.
MOST_NAMED = 4


@dataclass(frozen=True)
class Terms:
    """On which terms rows are taken.

    Attributes
    ----------
    missing : {"drop", "error"}
    unknown : {"note", "error"}
        What to do about levels that the recipe does not know.
    target : {"required", "optional"}
    rows, seed : int or None, int
        Sample.
    """

    missing: Literal["drop", "error"] = "drop"
    unknown: Literal["note", "error"] = "note"
    target: Literal["required", "optional"] = "required"
    rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        allowed = {
            "missing": ("drop", "error"),
            "unknown": ("note", "error"),
            "target": ("required", "optional"),
        }
        for name, choices in allowed.items():
            value = getattr(self, name)
            if value not in choices:
                raise ParameterError(
                    f"{name} must be {' or '.join(map(repr, choices))}; got {value!r}."
                )
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
    # Looked up many times; a frame makes a new list of them each time.
    names = dict.fromkeys(frame.columns)
    for column in recipe.columns:
        locate(names, column.name, source, "a feature")
    reader = _Reader(frame, terms, notes)
    X = reader.features(recipe)
    y = reader.target(recipe.target, source)
    weights = reader.weights(recipe.weights)
    kept = reader.usable(recipe, X, y, weights, source)
    if terms.target == "optional" and y is not None and not np.isfinite(y[kept]).all():
        absent = int(np.count_nonzero(~np.isfinite(y[kept])))
        notes.append(
            f"The target {recipe.target!r} is missing in {absent} of {kept.size} rows: they are "
            "predicted without it."
        )
    kept = _sampled(kept, terms, notes)
    whole = kept.size == frame.height
    return DataSet(
        X=X if whole else X[kept],
        y=y if y is None or whole else y[kept],
        weights=weights if weights is None or whole else weights[kept],
        feature_names=recipe.feature_names,
        target_name=recipe.target,
        keys=_keys(frame, recipe.key, kept, notes),
        key_name=recipe.key or "row",
        n_read=frame.height,
        n_dropped=reader.n_dropped,
        notes=(*loaded.notes, *notes),
        recipe=recipe,
        source=source,
    )


class _Reader:
    """Reads the columns of a frame as numbers; takes notes of cells that are not."""

    def __init__(self, frame: pl.DataFrame, terms: Terms, notes: list[str]) -> None:
        self.frame, self.terms, self.notes = frame, terms, notes
        self.n_dropped = 0

    def features(self, recipe: Recipe) -> Floats:
        X = np.empty((self.frame.height, len(recipe.feature_names)))
        place = 0
        for column in recipe.columns:
            for values in self._read(column):
                X[:, place] = values
                place += 1
        return X

    def target(self, name: str, source: str) -> Floats | None:
        if name not in self.frame.columns and self.terms.target == "optional":
            return None
        locate(self.frame.columns, name, source, "the target")
        return self._read(Column(name))[0]

    def weights(self, name: str | None) -> Floats | None:
        if name is None:
            return None
        if name not in self.frame.columns:
            self.notes.append(f"There is no column {name!r} of weights: all rows count the same.")
            return None
        return self._read(Column(name))[0]

    def _read(self, column: Column) -> list[Floats]:
        series = self.frame[column.name]
        features = as_numbers(series, column)
        if is_text(series) and column.kind == "levels":
            self._check_levels(series, column)
        elif is_text(series):
            bad = np.isnan(features[0]) & as_text(series).is_not_null().to_numpy()
            if bad.any():
                self.notes.append(
                    f"Column {column.name!r} holds what is not a number in "
                    f"{np.count_nonzero(bad)} of {bad.size} rows (first: {example(series, bad)}); "
                    "such cells count as missing."
                )
        return features

    def _check_levels(self, series: pl.Series, column: Column) -> None:
        text = as_text(series)
        unknown = (text.is_not_null() & ~text.is_in(list(column.levels))).to_numpy()
        if not unknown.any():
            return
        what = (
            f"column {column.name!r} holds a value that was not there before in "
            f"{np.count_nonzero(unknown)} of {unknown.size} rows (first: "
            f"{example(series, unknown)})"
        )
        if self.terms.unknown == "error":
            known = ", ".join(map(repr, column.levels))
            raise DataError(f"{what}; known are {known}. Correct them, or drop those rows.")
        self.notes.append(f"C{what[1:]}: it is treated like {column.levels[0]!r}.")

    def usable(
        self, recipe: Recipe, X: Floats, y: Floats | None, weights: Floats | None, source: str
    ) -> Rows:
        """Return the rows in which nothing that is needed is missing."""
        needed = {}
        place = 0
        for column in recipe.columns:
            # A missing cell of text is missing in all the features it becomes: one of them tells.
            needed[column.name] = X[:, place]
            place += len(column.feature_names)
        if y is not None and self.terms.target == "required":
            needed[recipe.target] = y
        if weights is not None:
            needed[str(recipe.weights)] = weights
        lacking = {}
        usable = np.ones(len(X), dtype=bool)
        for name, values in needed.items():
            there = np.isfinite(values)
            if not there.all():
                lacking[name] = int(np.count_nonzero(~there))
                usable &= there
        self.n_dropped = int(np.count_nonzero(~usable))
        if self.n_dropped:
            self._tell(lacking, usable, source)
        return np.flatnonzero(usable)

    def _tell(self, lacking: dict[str, int], usable: NDArray[np.bool_], source: str) -> None:
        total = usable.size
        worst = sorted(lacking, key=lambda name: -lacking[name])
        where = ", ".join(f"{lacking[name]} in {name!r}" for name in worst[:MOST_NAMED])
        more = f" and {len(worst) - MOST_NAMED} other columns" if len(worst) > MOST_NAMED else ""
        if self.terms.missing == "error":
            first = int(np.flatnonzero(~usable)[0]) + 1
            raise DataError(
                f"{self.n_dropped} of the {total} rows of {source} have a missing or infinite "
                f"value ({where}{more}); the first is row {first}. Fill them in, leave those "
                "columns out, or have such rows dropped."
            )
        advice = (
            f"; leave out {worst[0]!r} to keep more of them" if 2 * self.n_dropped > total else ""
        )
        if self.n_dropped == total:
            raise DataError(
                f"each of the {total} rows of {source} has a missing or infinite value ({where}"
                f"{more}); leave out the columns with most of them."
            )
        self.notes.append(
            f"{self.n_dropped} of {total} rows have a missing or infinite value and are dropped "
            f"({where}{more}){advice}."
        )


def _sampled(kept: Rows, terms: Terms, notes: list[str]) -> Rows:
    """Draw rows, each as likely as any other, and leave them in order."""
    if terms.rows is None or terms.rows >= kept.size:
        return kept
    rng = np.random.default_rng(terms.seed)
    notes.append(f"A random sample of {terms.rows} of {kept.size} rows is used.")
    return np.sort(rng.choice(kept, terms.rows, replace=False))


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
