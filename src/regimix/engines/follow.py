"""Following starts in memory: which rows each keeps, and sums over them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from regimix.engines.band import Band
from regimix.engines.base import RowSums, Selected
from regimix.engines.keep import Held
from regimix.engines.select import Choice, mix, smallest, smallest_of_each
from regimix.problem import Problem

__all__ = ["MemoryFollower"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]

# Residuals of a batch of starts, and two scratch blocks of the same size, stay below this.
BLOCK_BYTES = 64 << 20
# With fewer kept rows than this share of a chunk, skipping the others pays for gathering.
GATHER_SHARE = 0.75
# Running sums tell an objective that is at least this part of the first one.
RUNNING_SUMS = 1e-6
# Up to so many rows, one product with signs is cheaper than two without.
FEW_ROWS = 1024
# A sum over raw rows, centred afterwards, loses as many digits as centers exceed scales.
FARTHEST_OFFSET = 100.0
# With more rows moved than this share of the kept ones, all kept rows are summed afresh: that costs
# at most twice as much, and lists of moved rows stay short.
AFRESH_SHARE = 0.5


class Rows(Protocol):
    """What a follower asks of the engine it works for."""

    problem: Problem

    def chunks(self) -> Iterator[slice]: ...
    def residual_block(self, thetas: Floats, out: Floats | None = None) -> Floats: ...
    def standardised(self, rows: Indices | slice) -> Floats: ...
    def read(self, rows: Indices | slice) -> Floats: ...
    def residuals_of(self, rows: Indices, theta: Floats, read: Floats | None = None) -> Floats: ...
    def slopes(self, thetas: Floats) -> tuple[Floats, Floats]: ...
    def target(self, rows: Indices | slice) -> Floats: ...
    def sums(
        self,
        rows: Indices,
        residuals: Floats | None,
        weights: Floats | None = None,
        theta: Floats | None = None,
    ) -> RowSums: ...
    @property
    def lengths(self) -> NDArray[np.float32]: ...


@dataclass
class _Memory:
    """What is remembered of one start between selections.

    ``rows`` are those that moved in the last selection, with their residuals then and their signed
    weights; None when so many moved that sums over all kept rows are cheaper.
    """

    signature: int = 0
    boundary: tuple[int, float] = (-1, 0.0)
    rows: Indices | None = None
    residuals: Floats = field(default_factory=lambda: np.empty(0))
    signs: Floats = field(default_factory=lambda: np.empty(0))
    first_objective: float = math.inf

    def name(self) -> int:
        """Name the kept set, with the row that is kept in part.

        The part is told to a few digits: a sum of weights in another order is the same part.
        """
        row, weight = self.boundary
        return self.signature ^ (hash((row, f"{weight:.9e}")) if row >= 0 else 0)


class MemoryFollower:
    """Remember the kept rows of each of a batch of starts, and sum over them."""

    def __init__(self, engine: Rows, n_starts: int, mass: float, *, narrow: bool) -> None:
        self.engine = engine
        self.mass = mass
        self.narrow = narrow
        self._weights = engine.problem.weights
        self._kept = np.zeros((n_starts, engine.problem.n_rows), dtype=np.bool_)
        self._memory = [_Memory() for _ in range(n_starts)]
        self._thresholds = [math.inf] * n_starts
        self._band: Band | None = None
        self._last_theta: Floats | None = None
        self._buffer: Floats | None = None

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
                return self._record_band(self._band, choice)
            self._band = None
        if self._buffer is None:
            self._buffer = np.empty((1, self.engine.problem.n_rows))
        residuals = self.engine.residual_block(theta[None, :], out=self._buffer)[0]
        sizes = np.abs(residuals)
        floor = float(self.engine.problem.residual_floor(theta))
        choice = smallest(sizes, self.mass, self._weights, floor)
        selected = self._record(0, choice, residuals, self._objective(choice, residuals))
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
        return [
            self._record(
                start, choices[i], residuals[i], self._needed(start, choices[i], residuals[i])
            )
            for i, start in enumerate(starts)
        ]

    def _needed(self, start: int, choice: Choice, residuals: Floats) -> float | None:
        """Sum the objective where the caller's running sums do not know it well enough.

        They do as long as it has not fallen to the rounding of what it was at first.
        """
        memory = self._memory[start]
        largest = choice.threshold**2 * self.mass
        if self.narrow and memory.first_objective * RUNNING_SUMS < largest:
            return None
        objective = self._objective(choice, residuals)
        if not math.isfinite(memory.first_objective):
            memory.first_objective = objective
        return objective

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
        self, start: int, choice: Choice, residuals: Floats, objective: float | None
    ) -> Selected:
        """Note the new kept rows of a start, and which rows moved."""
        changed = self._kept[start] != choice.kept
        self._kept[start] = choice.kept
        problem = self.engine.problem
        if np.count_nonzero(changed) > AFRESH_SHARE * self.mass * problem.n_rows / problem.mass:
            if objective is None:
                objective = self._objective(choice, residuals)
            return self._note_afresh(start, changed, choice, objective)
        rows = np.flatnonzero(changed)
        part = np.array([choice.boundary, self._memory[start].boundary[0]])
        selected = self._note_move(start, rows, choice, residuals[rows], residuals[part])
        return replace(selected, objective=objective)

    def _note_afresh(
        self, start: int, changed: Bools, choice: Choice, objective: float
    ) -> Selected:
        """Note a move of so many rows that it is not worth listing them."""
        memory = self._memory[start]
        for chunk in self.engine.chunks():
            memory.signature ^= _name(np.flatnonzero(changed[chunk]) + chunk.start)
        memory.boundary = (choice.boundary, choice.boundary_weight)
        self._thresholds[start] = choice.threshold
        memory.rows = None
        n_moved = int(np.count_nonzero(changed))
        return Selected(objective, n_moved, 0.0, choice.threshold, memory.name())

    def _record_band(self, band: Band, choice: Choice) -> Selected:
        """Note a selection made among the rows of the band alone."""
        moved = np.flatnonzero(self._kept[0, band.rows] != choice.kept)
        self._kept[0, band.rows] = choice.kept
        part = np.zeros(2)
        if self._weights is not None:
            # Rows kept in part lie at the threshold, before and now: inside the band.
            before = int(np.searchsorted(band.rows, self._memory[0].boundary[0]))
            part = band.residuals[[choice.boundary, min(before, band.rows.size - 1)]]
            if choice.boundary >= 0:
                choice = replace(choice, boundary=int(band.rows[choice.boundary]))
        return self._note_move(0, band.rows[moved], choice, band.residuals[moved], part)

    def _note_move(
        self, start: int, rows: Indices, choice: Choice, residuals: Floats, part: Floats
    ) -> Selected:
        """Work out signed weights of the rows that moved, and the name of the new set.

        ``part`` has the residuals of the rows that are and that were kept in part.
        """
        memory = self._memory[start]
        memory.signature ^= _name(rows)
        self._thresholds[start] = choice.threshold
        signs = np.where(self._kept[start, rows], 1.0, -1.0)
        if self._weights is not None:
            signs *= self._weights[rows]
            now, before = (choice.boundary, choice.boundary_weight), memory.boundary
            memory.boundary = now
            if not _same_part(now, before):
                rows, residuals, signs = self._with_parts(rows, residuals, signs, part, now, before)
        memory.rows, memory.residuals, memory.signs = rows, residuals, signs
        square = float((signs * residuals) @ residuals)
        return Selected(None, int(rows.size), square, choice.threshold, memory.name())

    def _with_parts(
        self,
        rows: Indices,
        residuals: Floats,
        signs: Floats,
        part: Floats,
        now: tuple[int, float],
        before: tuple[int, float],
    ) -> tuple[Indices, Floats, Floats]:
        """Account for the rows that are and were kept in part: sums may meet a row twice."""
        assert self._weights is not None
        for (row, weight), residual, sign in ((now, part[0], -1.0), (before, part[1], 1.0)):
            if row >= 0:
                rows = np.append(rows, row)
                residuals = np.append(residuals, residual)
                signs = np.append(signs, sign * (self._weights[row] - weight))
        return rows, residuals, signs

    def moved_sums(self, start: int) -> RowSums | None:
        """Sum over the rows that entered, minus those that left, in the last selection.

        None when so many moved that ``kept_sums`` is cheaper.
        """
        memory = self._memory[start]
        if memory.rows is None:
            return None
        if self._weights is not None or memory.rows.size <= FEW_ROWS:
            return self.engine.sums(memory.rows, memory.residuals, memory.signs)
        more, less = (
            self.engine.sums(memory.rows[side], memory.residuals[side])
            for side in (memory.signs > 0, memory.signs < 0)
        )
        return RowSums(more.gram - less.gram, more.moment - less.moment)

    def kept_sums(self, start: int, theta: Floats) -> RowSums:
        """Sum over all kept rows, afresh, with residuals at ``theta``."""
        rows = np.flatnonzero(self._kept[start])
        weights = self._kept_weights(start)
        return self.engine.sums(rows, None, None if weights is None else weights[rows], theta)

    def gradients(self, starts: Sequence[int], thetas: Floats) -> Floats:
        """Sum ``w z r`` over each start's kept rows, residuals at ``thetas``; no p x p matrix."""
        problem = self.engine.problem
        weights = [self._kept_weights(start) for start in starts]
        slopes, constants = self.engine.slopes(thetas)
        back, mass = np.zeros((len(starts), problem.n_features)), np.zeros(len(starts))
        for rows in self.engine.chunks():
            values = self.engine.read(rows)
            residuals = self.engine.target(rows) - slopes @ values.T - constants[:, None]
            for i, start in enumerate(starts):
                row_weights = weights[i]
                residuals[i] *= (
                    self._kept[start, rows] if row_weights is None else row_weights[rows]
                )
            back += residuals @ values
            mass += residuals.sum(axis=1)
        back /= problem.scale
        return np.column_stack([mass, back]) if problem.fit_intercept else back

    def gradient(self, start: int, theta: Floats) -> Floats:
        """Do the same for one start, as fast as rows can be read.

        The residuals of a single start are still there from its selection, so one product with
        raw rows is enough; where that would lose digits, rows are centred first.
        """
        problem = self.engine.problem
        far = np.abs(problem.center) > FARTHEST_OFFSET * problem.scale
        known = self._last_theta is not None and np.array_equal(theta, self._last_theta)
        if self._buffer is None or not known or far.any():
            return np.asarray(self.gradients([start], theta[None, :])[0])
        weights = self._kept_weights(start)
        back, mass = np.zeros(problem.n_features), 0.0
        for rows in self.engine.chunks():
            kept = self._kept[start, rows] if weights is None else weights[rows]
            residuals = self._buffer[0, rows] * kept
            back += residuals @ np.asarray(problem.X[rows], dtype=np.float64)
            mass += float(residuals.sum())
        if not problem.fit_intercept:
            return np.asarray(back / problem.scale)
        return np.concatenate([[mass], (back - problem.center * mass) / problem.scale])

    def diagonal(self, start: int) -> Floats:
        """Sum ``w z^2`` over the kept rows, column by column."""
        total = np.zeros(self.engine.problem.n_columns)
        weights = self._kept_weights(start)
        for rows in self.engine.chunks():
            Z = self.engine.standardised(rows)
            factor = (
                self._kept[start, rows].astype(np.float64) if weights is None else weights[rows]
            )
            total += factor @ np.square(Z, out=Z)
        return total

    def product(self, start: int, direction: Floats) -> Floats:
        """Multiply the kept rows' Gram matrix with a vector; no p x p matrix.

        Reads raw rows and standardises the vectors instead: no copy of what is read.
        """
        problem = self.engine.problem
        slopes, constant = problem.raw(direction)
        back, mass = np.zeros(problem.n_features), 0.0
        row_weights = self._kept_weights(start)
        for rows in self.engine.chunks():
            kept = self._kept[start, rows]
            values = problem.X[rows]
            if kept.mean() < GATHER_SHARE:
                values = values[kept]
            values = np.asarray(values, dtype=np.float64)
            image = values @ slopes
            image += constant
            if values.shape[0] == kept.size:
                image *= kept if row_weights is None else row_weights[rows]
            elif row_weights is not None:
                image *= row_weights[rows][kept]
            back += image @ values
            mass += float(image.sum())
        if not problem.fit_intercept:
            return np.asarray(back / problem.scale)
        return np.concatenate([[mass], (back - problem.center * mass) / problem.scale])

    def _kept_weights(self, start: int) -> Floats | None:
        if self._weights is None:
            return None
        weights = np.where(self._kept[start], self._weights, 0.0)
        row, weight = self._memory[start].boundary
        if row >= 0:
            weights[row] = weight
        return weights

    def keeper(self, start: int) -> Held:
        """Return what tells the kept rows of any block."""
        row, weight = self._memory[start].boundary
        return Held(Choice(self._kept[start].copy(), self._thresholds[start], row, weight))

    def kept(self, start: int) -> tuple[Bools, Floats | None]:
        """Return the kept rows, and their weights in the fit if there are weights."""
        return self._kept[start].copy(), self._kept_weights(start)


def _name(rows: Indices) -> int:
    """Name a set of rows: the exclusive or of their scrambled numbers."""
    return int(np.bitwise_xor.reduce(mix(rows.astype(np.uint64)), initial=np.uint64(0)))


def _same_part(now: tuple[int, float], before: tuple[int, float]) -> bool:
    """Say whether the same row is kept in the same part, up to the rounding of a sum."""
    return now[0] == before[0] and abs(now[1] - before[1]) <= 1e-9 * abs(now[1])
