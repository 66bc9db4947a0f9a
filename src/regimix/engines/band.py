"""The band: rows that can still change sides while the coefficients stay near a reference.

Near convergence the coefficients of successive rounds differ by little. A residual moves by at most
``length(z) * distance``; so a row whose residual is far from the threshold stays on its side, and
only the band of rows near the threshold must be looked at. The selection is exact: whenever the
certificate fails, the caller makes a full pass. Late rounds then cost a few rows instead of a pass
over the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from regimix.engines.select import Choice, smallest
from regimix.intake import CHUNK_BYTES
from regimix.problem import Problem

__all__ = ["Band"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# How far the coefficients may still travel, in units of the last step. Rounds contract by a
# constant factor at worst, so the whole rest of the way is a small multiple of the last step.
REACH = 4.0
# A band larger than this share of the rows saves little: scattered rows are slower to read.
LARGEST_SHARE = 1 / 8
# Looking for a band costs a few vector operations: not before a typical residual's possible
# movement is below this share of the threshold.
CLOSE_ENOUGH = 0.1


class _Rows(Protocol):
    problem: Problem

    def chunks(self) -> Iterator[slice]: ...
    @property
    def lengths(self) -> NDArray[np.float32]: ...
    def residuals_of(self, rows: Indices, theta: Floats, read: Floats | None = None) -> Floats: ...
    def read(self, rows: Indices) -> Floats: ...


@dataclass
class Band:
    """Undecided rows around a threshold, valid within ``radius`` of a reference.

    Attributes
    ----------
    rows : ndarray of int, ascending
    inside_mass : float
        Weight that is kept whatever happens within the radius.
    read : ndarray or None
        A copy of the rows as the engine reads them, if it fits into one chunk.
    residuals : ndarray
        Residuals of the band's rows at the coefficients last asked for.
    """

    engine: _Rows
    reference: Floats
    radius: float
    threshold: float
    margin: float
    floor: float
    mass: float
    inside_mass: float
    rows: Indices
    read: Floats | None
    weights: Floats | None
    residuals: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def around(
        cls,
        engine: _Rows,
        theta: Floats,
        last_theta: Floats,
        sizes: Floats,
        choice: Choice,
        mass: float,
        floor: float,
    ) -> Band | None:
        """Find the rows that may change sides within reach; None if they are too many."""
        radius = REACH * float(np.linalg.norm(theta - last_theta))
        typical = np.sqrt(theta.size)  # length of a standardised row
        if radius * typical > CLOSE_ENOUGH * choice.threshold:
            return None
        lengths = engine.lengths
        margin = radius * float(np.mean(lengths)) + 4 * floor
        near = np.empty(sizes.size, dtype=np.bool_)
        for part in engine.chunks():
            gap = np.abs(sizes[part] - choice.threshold)
            near[part] = gap <= radius * lengths[part] + margin
        rows = np.flatnonzero(near)
        if rows.size > max(LARGEST_SHARE * sizes.size, theta.size):
            return None
        weights = engine.problem.weights
        inside = choice.kept & ~near
        inside_mass = float(np.count_nonzero(inside) if weights is None else weights[inside].sum())
        return cls(
            engine=engine,
            reference=theta,
            radius=radius,
            threshold=choice.threshold,
            margin=margin,
            floor=floor,
            mass=mass,
            inside_mass=inside_mass,
            rows=rows,
            read=engine.read(rows) if rows.size * theta.size * 8 <= CHUNK_BYTES else None,
            weights=None if weights is None else weights[rows],
        )

    def choose(self, theta: Floats) -> Choice | None:
        """Select among the band's rows; None when that is not certain to be the whole selection.

        Certain: the coefficients lie within the radius, and the new threshold within the margin.
        Then every kept row outside the band is still below it, every other still above.
        """
        if float(np.linalg.norm(theta - self.reference)) > self.radius:
            return None
        self.residuals = self.engine.residuals_of(self.rows, theta, self.read)
        sizes = np.abs(self.residuals)
        choice = smallest(sizes, self.mass - self.inside_mass, self.weights, self.floor)
        if abs(choice.threshold - self.threshold) >= self.margin - 4 * self.floor:
            return None
        return choice
