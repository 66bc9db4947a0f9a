"""Powers of the response, zero being the logarithm: from values of a table, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import DataError

Floats = NDArray[np.float64]


def raised(values: Any, power: float) -> Floats:
    """Return a power of values; NaN where a value is missing or has none.

    Negative values have none, not even a square: it could not be turned back.
    """
    y: Floats = np.asarray(values, dtype=np.float64)
    if power == 1.0:
        return y
    has_one = np.isfinite(y) & ((y > 0) if power <= 0 else (y >= 0))
    base = np.where(has_one, y, np.nan)
    with np.errstate(over="ignore"):
        found = np.log(base) if power == 0.0 else base**power
    return np.where(np.isfinite(found), found, np.nan)


def returned(values: Any, power: float) -> Any:
    """Return the responses that have these powers, masked where there is none."""
    if power == 1.0:
        return values
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        y = np.exp(values) if power == 0.0 else np.asarray(values) ** (1.0 / power)
    # A whole power of a negative number exists, but no response has the number as its power.
    known = np.isfinite(y) & ((power == 0.0) | (np.asarray(values) >= 0))
    return y if known.all() else np.ma.MaskedArray(np.where(known, y, 0.0), mask=~known)


def no_power(column: str, power: float, where: str, value: float) -> DataError:
    """Say which value has no such power, and what to do."""
    what = "logarithm" if power == 0.0 else f"power {power:g}"
    why = "it would be too large"
    if value <= 0:
        why = "values must be above 0" if power <= 0 else "values must not be negative"
    return DataError(
        f"column {column!r} has no {what} in {where} ({value:g}): {why}. Correct the value, leave "
        "such rows out, or fit the column as it is."
    )
