"""Exponents and crossings read off tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["crossing", "least", "power_law", "slope"]

Floats = NDArray[np.float64]


def power_law(response: ArrayLike, *factors: ArrayLike) -> tuple[float, ...]:
    """Fit ``response = c * factor_1^a * factor_2^b ...`` on logarithms; return a, b, ...

    >>> import numpy as np
    >>> n, d = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0])
    >>> tuple(round(exponent, 6) for exponent in power_law(7 * n * d**2, n, d))
    (1.0, 2.0)
    """
    columns = [np.log(np.asarray(factor, dtype=np.float64)) for factor in factors]
    design = np.column_stack([np.ones_like(columns[0]), *columns])
    answer = np.linalg.lstsq(design, np.log(np.asarray(response, dtype=np.float64)), rcond=None)[0]
    return tuple(float(exponent) for exponent in answer[1:])


def slope(response: ArrayLike, factor: ArrayLike) -> float:
    """Fit one exponent; not a number where there are fewer than two different factors."""
    x, y = np.asarray(factor, dtype=np.float64), np.asarray(response, dtype=np.float64)
    if np.unique(x).size < 2:
        return float("nan")
    return power_law(y, x)[0]


def crossing(levels: Sequence[float], shares: Sequence[float], share: float = 0.5) -> float:
    """Find where a share of successes crosses a value, between neighbours on a log scale.

    Where chance makes it cross several times, the crossing next to success counts: the first of
    shares that fall along the levels, the last of shares that rise. Not a number where there is
    none.

    >>> round(crossing([1, 2, 4, 8], [0, 0, 1, 1]) ** 2, 6)
    8.0
    """
    order = np.argsort(levels)
    x, above = np.asarray(levels, dtype=np.float64)[order], np.asarray(shares)[order] - share
    turns = np.flatnonzero((above[:-1] < 0) != (above[1:] < 0))
    if not turns.size:
        return float("nan")
    i = int(turns[0] if above[0] >= 0 else turns[-1])
    part = above[i] / (above[i] - above[i + 1])
    return float(np.exp((1 - part) * np.log(x[i]) + part * np.log(x[i + 1])))


def least(values: Iterable[float]) -> float:
    """Return the smallest of the numbers that are numbers; not a number if none is."""
    return min((value for value in values if np.isfinite(value)), default=float("nan"))
