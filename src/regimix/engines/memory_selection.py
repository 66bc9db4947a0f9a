"""Which rows each of a batch of starts keeps, in memory, and sums over them.

Near convergence the coefficients of successive rounds differ by little. A residual moves by at most
``length(z) * distance``; so a row whose residual is far from the threshold stays on its side, and
only the ``Band`` of rows near the threshold must be looked at. The selection is exact: whenever
that is not certain, a full pass is made. Late rounds then cost a few rows instead of a pass over
the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import CHUNK_BYTES
from regimix.engines.base import RowSums, Selected
from regimix.engines.row_sampling import mix
from regimix.engines.selection import Choice, same_part, smallest, smallest_of_each

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

__all__ = ["MemoryFollower"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]

# Residuals of a batch of starts, and two scratch blocks of the same size, stay below this.
BLOCK_BYTES = 64 << 20
# With more rows moved than this share of the kept ones, all kept rows are summed afresh: that costs
# at most twice as much, and lists of moved rows stay short.
AFRESH_SHARE = 0.5
# How far the coefficients may still move, in units of the last step. Rounds contract by a constant
# factor at worst, so the distance that remains is a small multiple of the last step.
REACH = 4.0
# A band larger than this share of the rows saves little: scattered rows are slower to read.
LARGEST_SHARE = 1 / 8
# Looking for a band costs a few vector operations: not before a typical residual's possible
# movement is below this share of the threshold.
CLOSE_ENOUGH = 0.1


@dataclass
class _Start:
    """What is remembered of one start between selections.

    ``rows`` are those that moved in the last selection, with their residuals then and their signed
    weights; None when so many moved that sums over all kept rows are cheaper.
    """

    signature: int = 0
    boundary: tuple[int, float] = (-1, 0.0)
    threshold: float = math.inf
    rows: Indices | None = None
    residuals: Floats = field(default_factory=lambda: np.empty(0))
    signs: Floats = field(default_factory=lambda: np.empty(0))

    def note(self, choice: Choice, moved: Indices) -> None:
        """Take over a new selection, in which these rows moved."""
        words = mix(moved.astype(np.uint64))
        self.signature ^= int(np.bitwise_xor.reduce(words, initial=np.uint64(0)))
        self.boundary, self.threshold = choice.part, choice.threshold

    def hashed(self) -> int:
        """Hash the kept set, with the row that is kept in part.

        The part counts to a few digits: a sum of weights in another order is the same part.
        """
        row, weight = self.boundary
        return self.signature ^ (hash((row, f"{weight:.9e}")) if row >= 0 else 0)


class MemoryFollower:
    """Remember the kept rows of each of a batch of starts, and sum over them."""

    def __init__(self, engine: MemoryEngine, n_starts: int, mass: float, *, narrow: bool) -> None:
        self.engine = engine
        self.mass = mass
        self.narrow = narrow
        self._weights = engine.problem.weights
        self._kept = np.zeros((n_starts, engine.problem.n_rows), dtype=np.bool_)
        self._starts = [_Start() for _ in range(n_starts)]
        self._band: Band | None = None
        self._last_theta: Floats | None = None
        self._buffer: Floats | None = None

    # --- selections -------------------------------------------------------------------------------

    def select(self, thetas: Floats, starts: Sequence[int]) -> list[Selected]:
        """Keep the rows of smallest residual at ``thetas[i]`` for start ``starts[i]``."""
        if len(self._kept) == 1:
            return [self._select_single(thetas[0])]
        block = max(1, BLOCK_BYTES // (8 * self.engine.problem.n_rows))
        found: list[Selected] = []
        for first in range(0, len(starts), block):
            part = slice(first, first + block)
            found += self._select_block(thetas[part], starts[part])
        return found

    def _select_single(self, theta: Floats) -> Selected:
        """One start: look at the band of undecided rows alone while that is certain to be right."""
        if self._band is not None:
            choice = self._band.choose(theta)
            if choice is not None:
                return self._record(0, choice, self._band.residuals, self._band.rows)
            self._band = None
        if self._buffer is None:
            self._buffer = np.empty((1, self.engine.problem.n_rows))
        residuals = self.engine.residual_block(theta[None, :], out=self._buffer)[0]
        sizes = np.abs(residuals)
        floor = float(self.engine.problem.residual_floor(theta))
        choice = smallest(sizes, self.mass, self._weights, floor)
        selected = self._record(0, choice, residuals)
        if self.narrow and self._last_theta is not None and selected.n_moved:
            self._band = Band.around(
                self.engine, theta, self._last_theta, sizes, choice, self.mass, floor
            )
        self._last_theta = theta
        return selected

    def _select_block(self, thetas: Floats, starts: Sequence[int]) -> list[Selected]:
        """Several starts: one pass over the rows serves all of them."""
        count = len(starts)
        if self._buffer is None or len(self._buffer) < 3 * count:
            # Memory that is new every round costs more than the arithmetic in it.
            self._buffer = np.empty((3 * count, self.engine.problem.n_rows))
        residuals, sizes, scratch = (self._buffer[i * count : (i + 1) * count] for i in range(3))
        self.engine.residual_block(thetas, out=residuals)
        np.abs(residuals, out=sizes)
        floors = self.engine.problem.residual_floor(thetas)
        if self._weights is None:
            kept, thresholds = smallest_of_each(sizes, int(self.mass), floors, scratch)
            choices = [Choice(k, float(t)) for k, t in zip(kept, thresholds, strict=True)]
        else:
            choices = [
                smallest(row, self.mass, self._weights, float(floor))
                for row, floor in zip(sizes, floors, strict=True)
            ]
        return [self._record(start, choices[i], residuals[i]) for i, start in enumerate(starts)]

    def _objective(self, choice: Choice, residuals: Floats) -> float:
        """Sum of squared residuals over the kept rows, by weight."""
        total = 0.0
        for rows in self.engine.chunks():
            kept = residuals[rows] * choice.kept[rows]
            weighted = kept if self._weights is None else kept * self._weights[rows]
            total += float(weighted @ kept)
        if self._weights is not None and choice.boundary >= 0:
            spare = self._weights[choice.boundary] - choice.boundary_weight
            total -= float(spare * residuals[choice.boundary] ** 2)
        return total

    def _record(
        self, start: int, choice: Choice, residuals: Floats, among: Indices | None = None
    ) -> Selected:
        """Note the new kept rows of a start and which rows moved, among all rows or some."""
        memory, problem = self._starts[start], self.engine.problem
        changed = self._kept[start, slice(None) if among is None else among] != choice.kept
        n_moved = int(np.count_nonzero(changed))
        objective = self._objective(choice, residuals) if among is None else None
        if n_moved > AFRESH_SHARE * self.mass * problem.n_rows / problem.mass and among is None:
            self._kept[start] = choice.kept
            # So many rows moved that it is not worth listing them.
            for chunk in self.engine.chunks():
                memory.note(choice, np.flatnonzero(changed[chunk]) + chunk.start)
            memory.rows = None
            return Selected(objective, n_moved, 0.0, choice.threshold, memory.hashed())
        places = np.flatnonzero(changed)
        signs = np.where(choice.kept[places], 1.0, -1.0)
        rows, ends = places, [choice.boundary, memory.boundary[0]]
        if among is not None:
            rows = among[places]
            # Rows kept in part lie at the threshold, before and now: among these.
            ends[1] = min(int(np.searchsorted(among, ends[1])), among.size - 1)
            if choice.boundary >= 0:
                choice = replace(choice, boundary=int(among[choice.boundary]))
        self._kept[start, rows] = ~self._kept[start, rows]
        before = memory.boundary
        memory.note(choice, rows)
        if self._weights is not None:
            signs *= self._weights[rows]
            if not same_part(choice.part, before):
                # Account for the rows that are and were kept in part: a row may be listed twice.
                parts = zip(ends, (choice.part, before), (-1.0, 1.0), strict=True)
                for place, (row, weight), sign in parts:
                    if row >= 0:
                        rows, places = np.append(rows, row), np.append(places, place)
                        signs = np.append(signs, sign * (self._weights[row] - weight))
        memory.rows, memory.residuals, memory.signs = rows, residuals[places], signs
        square = float((signs * memory.residuals) @ memory.residuals)
        return Selected(objective, int(rows.size), square, choice.threshold, memory.hashed())

    # --- sums -------------------------------------------------------------------------------------

    def moved_sums(self, start: int) -> RowSums | None:
        """Sum over the rows that entered, minus those that left, in the last selection."""
        memory = self._starts[start]
        if memory.rows is None:
            return None
        return self.engine.sums(memory.rows, memory.residuals, memory.signs)

    def kept_sums(self, start: int, theta: Floats) -> RowSums:
        """Sum over all kept rows, afresh, with residuals at ``theta``."""
        rows = np.flatnonzero(self._kept[start])
        weights = None if self._weights is None else self._factor(start)[rows]
        return self.engine.sums(rows, None, weights, theta)

    def gradients(self, starts: Sequence[int], thetas: Floats) -> Floats:
        """Sum ``w z r`` over each start's kept rows, residuals at ``thetas``; no p x p matrix."""
        return self.engine.gradients(thetas, [self._factor(start) for start in starts])

    def diagonal(self, start: int) -> Floats:
        """Sum ``w z^2`` over the kept rows, column by column."""
        return self.engine.diagonal(self._factor(start))

    def product(self, start: int, direction: Floats) -> Floats:
        """Multiply the kept rows' Gram matrix with a vector; no p x p matrix."""
        return self.engine.product(direction, self._factor(start))

    def _factor(self, start: int) -> NDArray[Any]:
        """Return what each row counts: its weight in the fit, or whether it is kept."""
        if self._weights is None:
            return np.asarray(self._kept[start])
        weights = np.where(self._kept[start], self._weights, 0.0)
        row, weight = self._starts[start].boundary
        if row >= 0:
            weights[row] = weight
        return weights

    def keeper(self, start: int) -> Choice:
        """Return a rule that says which rows of any block are kept."""
        memory = self._starts[start]
        return Choice(self._kept[start].copy(), memory.threshold, *memory.boundary)

    def kept(self, start: int) -> tuple[Bools, Floats | None]:
        """Return the kept rows, and their weights in the fit if there are weights."""
        return self._kept[start].copy(), None if self._weights is None else self._factor(start)


@dataclass
class Band:
    """Undecided rows around a threshold, valid within ``radius`` of a reference."""

    engine: MemoryEngine
    reference: Floats
    radius: float
    threshold: float
    margin: float
    floor: float
    mass: float  # what the band keeps: all but the rows that are kept anyway within the radius
    rows: Indices  # ascending
    read: Floats | None  # a copy of the rows as the engine reads them, if it fits into one chunk
    weights: Floats | None
    residuals: Floats = field(default_factory=lambda: np.empty(0))  # at the last coefficients

    @classmethod
    def around(
        cls,
        engine: MemoryEngine,
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
            mass=mass - inside_mass,
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
        choice = smallest(sizes, self.mass, self.weights, self.floor)
        if abs(choice.threshold - self.threshold) >= self.margin - 4 * self.floor:
            return None
        return choice
