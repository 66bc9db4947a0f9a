"""Which rows are kept: those of smallest value, ties by row order, weights by mass.

Algorithm 1 (``alg:local``), step 5. ``numpy.partition`` is vectorised and linear; sorting is not
needed anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Choice", "mix", "smallest", "smallest_of_each"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Words = NDArray[np.uint64]


# A sum of weights carries rounding: a mass is full when it is full up to this share.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Choice:
    """Kept rows, and the one row that is kept in part.

    Attributes
    ----------
    kept : ndarray of bool
    threshold : float
        The largest kept value.
    boundary : int
        The row of which only ``boundary_weight`` is kept, -1 if there is none.
    """

    kept: Bools
    threshold: float
    boundary: int = -1
    boundary_weight: float = 0.0


def smallest(
    values: Floats, mass: float, weights: Floats | None = None, floor: float = 0.0
) -> Choice:
    """Keep rows of smallest value up to a total weight; ties go by row order.

    Without weights ``mass`` is a whole number of rows. With weights the last row is kept in part
    where the mass ends inside it, so that a weight of 3 equals three copies of the row. Values
    within ``floor`` of the threshold count as tied: rounding must not decide.
    """
    if weights is None:
        kept, thresholds = smallest_of_each(values[None, :], int(mass), np.array([floor]))
        return Choice(kept[0], float(thresholds[0]))
    threshold = _weighted_threshold(values, weights, mass)
    present = weights > 0
    kept = (values < threshold - floor) & present
    room = mass - float(weights[kept].sum())
    ties = np.flatnonzero((np.abs(values - threshold) <= floor) & present)
    filled = np.cumsum(weights[ties])
    # The first tie at which the mass is full; rounding of a sum must not add a sliver of a row.
    last = min(int(np.searchsorted(filled, room * (1 - ROUNDING))), ties.size - 1)
    kept[ties[: last + 1]] = True
    row = int(ties[last])
    whole = float(weights[row])
    part = room - (float(filled[last]) - whole)
    if part >= whole * (1 - ROUNDING):
        return Choice(kept, threshold)
    return Choice(kept, threshold, row, part)


def smallest_of_each(
    values: Floats, count: int, floors: Floats, scratch: Floats | None = None
) -> tuple[Bools, Floats]:
    """Keep the ``count`` smallest of each row of a matrix; ties go by column order.

    ``scratch`` is memory of the same shape to partition in, made anew if not given.
    """
    if count >= values.shape[1]:
        return np.ones(values.shape, dtype=np.bool_), values.max(axis=1)
    scratch = np.empty_like(values) if scratch is None else scratch
    scratch[:] = values
    scratch.partition(count - 1, axis=1)
    thresholds = scratch[:, count - 1].copy()
    kept = values <= (thresholds + floors)[:, None]
    for row in np.flatnonzero(np.count_nonzero(kept, axis=1) > count):
        ties = np.flatnonzero(kept[row] & (values[row] >= thresholds[row] - floors[row]))
        surplus = np.count_nonzero(kept[row]) - count
        kept[row, ties[ties.size - surplus :]] = False
    return kept, thresholds


def _weighted_threshold(values: Floats, weights: Floats, mass: float) -> float:
    """Find the value at which the weight of smaller and equal values reaches ``mass``.

    Quickselect by halves: each step looks at half of the rows the step before looked at.
    """
    goal = mass * (1 - ROUNDING)
    while True:
        middle = (values.size - 1) // 2
        pivot = np.partition(values, middle)[middle]
        less, more = values < pivot, values > pivot
        mass_less = float(weights[less].sum())
        mass_more = float(weights[more].sum())
        mass_here = float(weights.sum()) - mass_less - mass_more
        if mass_less >= goal:
            values, weights = values[less], weights[less]
        elif mass_less + mass_here >= goal or mass_more == 0.0:
            return float(pivot)
        else:
            goal -= mass_less + mass_here
            values, weights = values[more], weights[more]


def mix(words: Words) -> Words:
    """Scramble 64-bit words so that every input bit moves every output bit (splitmix64)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))
