"""Checks of what the functions of this folder are given."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from regimix.errors import DataError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["count", "fraction", "matrix", "positive", "vector"]

# From the floor and ceiling of products such as 0.29 * 100 that mean a whole number.
ROUNDING = 1e-9


def matrix(name: str, value: ArrayLike, columns: int | None = None) -> NDArray[np.float64]:
    """Check a finite matrix, with so many columns if that is known."""
    rows = _numbers(name, value, "a matrix of numbers")
    if rows.ndim != 2 or rows.shape[1] < 1:
        raise DataError(f"{name} must be a matrix of at least one column; got shape {rows.shape}.")
    if columns is not None and rows.shape[1] != columns:
        raise DataError(
            f"{name} has {rows.shape[1]} column(s) where {columns} are needed; pass the same "
            "features everywhere."
        )
    if not np.isfinite(rows).all():
        raise DataError(f"{name} has NaN or infinite entries; leave those rows out.")
    return rows


def vector(name: str, value: ArrayLike, size: int) -> NDArray[np.float64]:
    """Check a finite vector of given size."""
    values = _numbers(name, value, f"{size} numbers")
    if values.shape != (size,) or not np.isfinite(values).all():
        raise DataError(f"{name} must be {size} finite numbers; got shape {values.shape}.")
    return values


def _numbers(name: str, value: ArrayLike, wanted: str) -> NDArray[np.float64]:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be {wanted}; got {value!r}.") from None


def count(name: str, value: Any, lowest: int, highest: int | None = None) -> int:
    """Check a whole number within bounds."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < lowest or (highest is not None and value > highest):
        upto = "" if highest is None else f" to {highest}"
        raise ParameterError(f"{name} must be a whole number from {lowest}{upto}; got {value!r}.")
    return int(value)


def fraction(name: str, value: Any) -> float:
    """Check a number above 0 and at most 1."""
    number = positive(name, value)
    if number > 1:
        raise ParameterError(f"{name} must be above 0 and at most 1; got {value!r}.")
    return number


def positive(name: str, value: Any, *, lowest: float = 0.0) -> float:
    """Check a finite number above zero and at least ``lowest``."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not (0 < number < np.inf and number >= lowest):
        least = f"at least {lowest:g}" if lowest else "positive"
        raise ParameterError(f"{name} must be a finite number, {least}; got {value!r}.")
    return number
