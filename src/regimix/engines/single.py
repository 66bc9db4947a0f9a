"""Reductions for one component: functions of a block of rows, for ``fold`` and ``map_rows``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import RowSums
from regimix.engines.keep import Mask

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

__all__ = [
    "Near",
    "is_within",
    "masked",
    "masked_count",
    "masked_mass",
    "present",
    "residual_sizes",
    "within_sums",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def residual_sizes(block: MemoryEngine, theta: Floats) -> Floats:
    """Absolute residuals."""
    residuals = block.residuals(theta)
    return np.abs(residuals, out=residuals)


def is_within(block: MemoryEngine, theta: Floats, bound: float) -> Bools:
    """Say whose absolute residual is at most ``bound``."""
    return residual_sizes(block, theta) <= bound


@dataclass(frozen=True, eq=False)
class Near:
    """The rows whose absolute residual is below a bound."""

    theta: Floats
    bound: float

    def mask(self, block: MemoryEngine) -> Bools:
        """Say which rows of a block are near, and present."""
        near = residual_sizes(block, self.theta) < self.bound
        if block.problem.weights is not None:
            near &= block.problem.weights > 0
        return near


def masked_mass(block: MemoryEngine, rows: Mask) -> float:
    """Return the weight of some rows of a block."""
    mask, weights = rows.mask(block), block.problem.weights
    return float(np.count_nonzero(mask) if weights is None else weights[mask].sum())


def masked_count(block: MemoryEngine, rows: Mask) -> int:
    """Count some rows of a block."""
    return int(np.count_nonzero(rows.mask(block)))


def present(block: MemoryEngine) -> Bools:
    """Say which rows have weight."""
    weights = block.problem.weights
    return np.ones(block.problem.n_rows, np.bool_) if weights is None else weights > 0


def masked(block: MemoryEngine, rows: Mask) -> Bools:
    """Say which rows of a block are meant."""
    return rows.mask(block)


def within_sums(block: MemoryEngine, theta: Floats, bound: float) -> tuple[float, float, RowSums]:
    """Sum over the rows whose absolute residual is at most ``bound``.

    Returns their weight, their weighted sum of squared residuals, and their other sums.
    """
    residuals = block.residuals(theta)
    inside = np.abs(residuals) <= bound
    weights = block.problem.weights
    if weights is not None:
        inside &= weights > 0
    rows = np.flatnonzero(inside)
    near = residuals[rows]
    row_weights = None if weights is None else weights[rows]
    mass = float(rows.size if row_weights is None else row_weights.sum())
    square = float(near @ (near if row_weights is None else near * row_weights))
    return mass, square, block.sums(rows, near, row_weights)
