"""Which rows are kept: those of smallest value, ties by row order, weights by mass.

Algorithm 1 (``alg:local``), step 5. ``numpy.partition`` is vectorised and linear; sorting is not
needed. In memory the kept rows are remembered (``Choice``). Where rows live elsewhere, a few
numbers say which they are (``Cut``): any block can be asked again, on any machine, and gives the
same answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import RowSums

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
BlockValues = Callable[..., Floats]

# A sum of weights carries rounding: a mass is full when it is full up to this share.
ROUNDING = 1e-12


class Mask(Protocol):
    """Some of the rows of a table, as a function of a block."""

    def mask(self, block: MemoryEngine) -> Bools:
        """Return which rows of a block are meant."""
        ...


class Keeper:
    """Kept rows as a function of a block, and the one row that is kept in part."""

    threshold: float  # the largest kept value
    boundary: int  # the row of which only ``boundary_weight`` is kept, -1 if there is none
    boundary_weight: float

    @property
    def part(self) -> tuple[int, float]:
        """The row that is kept in part, -1 if there is none, and how much of it."""
        return self.boundary, self.boundary_weight

    def mask(self, block: MemoryEngine) -> Bools:
        """Return which rows of a block are kept."""
        raise NotImplementedError

    def weights(self, block: MemoryEngine) -> Floats | None:
        """Weights of a block's rows in the fit, zero if not kept; None if there are no weights."""
        return None if block.problem.weights is None else self.factor(block)

    def factor(self, block: MemoryEngine, mask: Bools | None = None) -> NDArray[Any]:
        """Return what each row counts: its weight in the fit; without weights, whether it is kept.

        ``mask`` has the kept rows, if they are known already.
        """
        kept = self.mask(block) if mask is None else mask
        if block.problem.weights is None:
            return kept
        weights = np.where(kept, block.problem.weights, 0.0)
        if self.boundary >= 0:
            weights[block.numbers == self.boundary] = self.boundary_weight
        return weights


@dataclass(frozen=True, eq=False)
class Choice(Keeper):
    """Kept rows of a table in memory, remembered."""

    kept: Bools
    threshold: float
    boundary: int = -1
    boundary_weight: float = 0.0

    def mask(self, block: MemoryEngine) -> Bools:
        """Return which rows of a block are kept."""
        return block.own(self.kept)


@dataclass(frozen=True, eq=False)
class Cut(Keeper):
    """The rows of smallest value, defined by a threshold and a row number."""

    values: BlockValues  # of the rows of a block: ``values(block, *args)``
    args: tuple[Any, ...]
    threshold: float
    floor: float  # values within ``floor`` of the threshold count as tied
    last: int  # the last of the tied rows that is kept
    boundary: int = -1
    boundary_weight: float = 0.0

    def mask(self, block: MemoryEngine) -> Bools:
        """Return which rows of a block are kept."""
        return self.among(self.values(block, *self.args), block)

    def split(self, values: Floats) -> tuple[Bools, Bools]:
        """Return which values are below the threshold, and which are tied with it."""
        below = values < self.threshold - self.floor
        return below, ~below & (values <= self.threshold + self.floor)

    def among(self, values: Floats, block: MemoryEngine) -> Bools:
        """Return which rows are kept, their values being known already."""
        kept, tied = self.split(values)
        near = np.flatnonzero(tied)
        kept[near] = block.numbers[near] <= self.last
        weights = block.problem.weights
        if weights is not None:
            kept &= weights > 0
        return np.asarray(kept)


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
    ties = np.flatnonzero((np.abs(values - threshold) <= floor) & present)
    last, part = fill_mass(weights[ties], mass - float(weights[kept].sum()))
    kept[ties[: last + 1]] = True
    return Choice(kept, threshold, *((-1, 0.0) if part is None else (int(ties[last]), part)))


def fill_mass(weights: Floats, mass: float) -> tuple[int, float | None]:
    """Take rows in order until a mass is full: the last one, and how much of it if not all.

    Rounding of the sum must not add a sliver of a row.
    """
    filled = np.cumsum(weights)
    last = min(int(np.searchsorted(filled, mass * (1 - ROUNDING))), weights.size - 1)
    whole = float(weights[last])
    part = mass - (float(filled[last]) - whole)
    return last, None if part >= whole * (1 - ROUNDING) else part


def same_part(now: tuple[int, float], before: tuple[int, float]) -> bool:
    """Whether the same row is kept in the same part, up to the rounding of a sum."""
    return now[0] == before[0] and math.isclose(now[1], before[1], rel_tol=1e-9)


def smallest_of_each(
    values: Floats, count: int, floors: Floats, scratch: Floats | None = None
) -> tuple[Bools, Floats]:
    """Keep the smallest of each row, ties by column order; ``scratch`` is memory of that shape."""
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


# --- functions of a block, for ``fold`` and ``map_rows`` ------------------------------------------


def residual_sizes(block: MemoryEngine, theta: Floats) -> Floats:
    """Absolute residuals."""
    residuals = block.residuals(theta)
    return np.abs(residuals, out=residuals)


def is_within(block: MemoryEngine, theta: Floats, bound: float) -> Bools:
    """Return which rows have an absolute residual of at most ``bound``."""
    return residual_sizes(block, theta) <= bound


@dataclass(frozen=True, eq=False)
class Near:
    """The rows whose absolute residual is below a bound."""

    theta: Floats
    bound: float

    def mask(self, block: MemoryEngine) -> Bools:
        """Return which rows of a block are near, and present."""
        return np.asarray((residual_sizes(block, self.theta) < self.bound) & present(block))


def masked_mass(block: MemoryEngine, rows: Mask) -> float:
    """Return the weight of some rows of a block."""
    mask, weights = rows.mask(block), block.problem.weights
    return float(np.count_nonzero(mask) if weights is None else weights[mask].sum())


def present(block: MemoryEngine) -> Bools:
    """Return which rows have positive weight."""
    weights = block.problem.weights
    return np.ones(block.problem.n_rows, np.bool_) if weights is None else weights > 0


def within_sums(block: MemoryEngine, theta: Floats, bound: float) -> tuple[float, float, RowSums]:
    """Return weight, squared residuals and sums of rows whose absolute residual is in bounds."""
    residuals = block.residuals(theta)
    rows = np.flatnonzero((np.abs(residuals) <= bound) & present(block))
    near, weights = residuals[rows], block.problem.weights
    row_weights = None if weights is None else weights[rows]
    mass = float(rows.size if row_weights is None else row_weights.sum())
    square = float(near @ (near if row_weights is None else near * row_weights))
    return mass, square, block.sums(rows, near, row_weights)
