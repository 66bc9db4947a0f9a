"""Cells of a table: real numbers of at most 64 bits, or a message that says which one is not."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from regimix.errors import DataError, DataKindError

__all__ = ["LARGEST_VALUE", "check_digits", "numbers", "refuse_value", "within_range"]

Floats = NDArray[np.float64]

# Sums of squares of values up to this size are finite, with room for any number of rows.
LARGEST_VALUE = 1e140
# Objects that stand for a missing number, by the name of their type: pandas is not imported here.
MISSING = ("NoneType", "NAType", "NaTType")
# Objects that would pass for a number: text that spells one, and dates.
NOT_NUMBERS = (str, bytes, np.datetime64, np.timedelta64)


def numbers(values: NDArray[Any], labels: Sequence[str]) -> NDArray[Any]:
    """Make sure of real numbers of at most 64 bits; leave arrays of such numbers where they are.

    Messages call each column by its label; one label serves an array that has no columns.
    """
    kind = values.dtype.kind
    if kind in "biuf" and values.dtype.itemsize <= np.dtype(np.float64).itemsize:
        return values
    if kind == "f":
        return _shortened(values, labels)
    if kind == "O":
        return _from_objects(values, labels)
    what = labels[0] if len(set(labels)) == 1 else "X"
    if kind == "c":
        raise DataKindError(f"{what} holds complex numbers. Complex data not supported.")
    name, advice = str(values.dtype), "for example a date to days since a reference"
    if kind in "SUT":
        name, advice = "text", "with .astype(float) if it spells numbers"
    raise DataKindError(f"{what} holds {name}, not numbers; convert it, {advice}.")


def _shortened(values: NDArray[Any], labels: Sequence[str]) -> Floats:
    """Read extended precision as double; values out of its range become infinite, or refused."""
    with np.errstate(over="ignore", under="ignore"):
        doubles = values.astype(np.float64)
    lost = np.argwhere((values != 0) & (doubles == 0))
    if lost.size:
        place = tuple(lost[0])
        raise DataError(
            f"{_label_at(place, labels)} is {values[place]!s} in row {place[0]} (counting from 0), "
            "too small for double precision; multiply it by a power of ten first."
        )
    return doubles


def _from_objects(values: NDArray[Any], labels: Sequence[str]) -> Floats:
    """Read an array of Python objects cell by cell; say which cell is not a number."""
    try:
        doubles = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        doubles = None
    for place in np.ndindex(values.shape):
        if doubles is None or isinstance(values[place], NOT_NUMBERS):
            _check_cell(values[place], place, _label_at(place, labels))
    assert doubles is not None
    return doubles


def _check_cell(cell: Any, place: tuple[int, ...], what: str) -> None:
    """Refuse an object that is not a number."""
    where = f"in row {place[0]} (counting from 0)" if place else ""
    if type(cell).__name__ in MISSING:
        raise DataError(
            f"Input contains NaN.\n{what} is {cell} {where}. Drop such rows, or fill the missing "
            "values in before the fit."
        )
    try:
        if isinstance(cell, NOT_NUMBERS):
            raise TypeError(f"it is a {type(cell).__name__}")
        alone = np.empty(1, dtype=object)
        alone[0] = cell
        alone.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataKindError(
            f"{what} holds {reprlib.repr(cell)} {where}, which is not a number ({error}). "
            "Convert it to a number, or drop that row or column."
        ) from error


def _label_at(place: tuple[int, ...], labels: Sequence[str]) -> str:
    return labels[place[1]] if len(place) == 2 and len(labels) > 1 else labels[0]


def within_range(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which values are numbers whose squares can be added; NaN is none."""
    return np.asarray(np.abs(values.astype(np.float64)) <= LARGEST_VALUE)


def refuse_value(column: NDArray[Any], first_row: int, what: str, largest: float) -> NoReturn:
    """Name the first value of a column that is missing, infinite or too large."""
    sizes = np.abs(column.astype(np.float64))
    bad = int(np.flatnonzero(~(sizes <= largest) | np.isinf(sizes))[0])
    where = f"{what} is {column[bad]} in row {first_row + bad} (counting from 0)"
    if np.isfinite(sizes[bad]):
        raise DataError(
            f"{where}, too large: sums of squares would overflow. Values up to {largest:g} are "
            "allowed; divide by a power of ten first, or drop the row if the value is a "
            "placeholder."
        )
    kind = "NaN" if np.isnan(sizes[bad]) else "infinity or a value too large for dtype('float64')"
    raise DataError(
        f"Input contains {kind}.\n{where}. Drop such rows, or fill in numbers before the fit."
    )


def check_digits(lowest: Any, highest: Any, what: str) -> None:
    """Refuse whole numbers that differ, but not in double precision."""
    if lowest != highest and float(lowest) == float(highest):
        raise DataError(
            f"{what} holds whole numbers from {lowest} to {highest}, which double precision cannot "
            f"tell apart; subtract {lowest} first."
        )
