"""Columns of a frame as numbers or text."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from regimix.errors import DataKindError
from regimix.tables.recipe import Column

__all__ = ["as_numbers", "as_text", "example", "is_text"]

Floats = NDArray[np.float64]

MICROSECONDS_A_DAY = 86_400e6
FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


def is_text(series: pl.Series) -> bool:
    """Whether a column holds text, or categories, which are text."""
    return series.dtype in (pl.String, pl.Categorical, pl.Enum)


def as_text(series: pl.Series) -> pl.Series:
    """Read a column as text without blanks around it; blank cells are missing."""
    text = series.cast(pl.String).str.strip_chars()
    return text.set(text == "", None)


def as_numbers(series: pl.Series, column: Column) -> list[Floats]:
    """Turn a column into the features it stands for; what cannot be read is NaN."""
    if column.kind == "levels":
        text = as_text(series)
        return [_floats(text == level) for level in column.levels[1:]]
    if column.kind == "date":
        return [_days(series)]
    if is_text(series):
        text = as_text(series)
        if column.kind == "flag":
            return [_floats(text.str.to_lowercase().replace_strict(FLAGS, default=None))]
        return [_floats(text)]
    if not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
        raise DataKindError(
            f"column {series.name!r} holds {series.dtype} values, which are not numbers; convert "
            "it, or leave it out."
        )
    return [_floats(series)]


def example(series: pl.Series, bad: NDArray[np.bool_]) -> str:
    """Show the first cell of those marked, and where it is."""
    row = int(np.flatnonzero(bad)[0])
    return f"{str(series[row])[:40]!r} in row {row + 1}"


def _floats(series: pl.Series) -> Floats:
    return series.cast(pl.Float64, strict=False).to_numpy().astype(np.float64, copy=False)


def _days(series: pl.Series) -> Floats:
    """Days since 1970-01-01 of dates; days of durations and of times of day."""
    kind = series.dtype
    if kind == pl.Date:
        return _floats(series.cast(pl.Int32))
    if kind == pl.Duration:
        return _floats(series.dt.total_microseconds()) / MICROSECONDS_A_DAY
    if kind == pl.Time:
        return _floats(series.cast(pl.Int64)) / (1000 * MICROSECONDS_A_DAY)
    if kind == pl.Datetime:
        return _floats(series.dt.epoch("us")) / MICROSECONDS_A_DAY
    raise DataKindError(
        f"column {series.name!r} holds {kind} values where dates are expected; write dates as "
        "2024-12-31."
    )
