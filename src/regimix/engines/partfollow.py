"""Following starts over parts: the kept rows are told by a cut, and summed afresh every round.

Two passes a round once thresholds are foretold well: one finds the cuts, one sums over the kept
rows. Nothing is remembered where the rows are; whatever is lost there can be asked again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import RowSums, Selected
from regimix.engines.cut import CERTAIN, Window, find_cuts, foretell
from regimix.engines.keep import Cut
from regimix.engines.select import mix
from regimix.engines.single import masked, residual_sizes

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine
    from regimix.engines.partition import PartitionEngine

__all__ = ["PartitionFollower"]

Floats = NDArray[np.float64]


@dataclass
class _Start:
    """What the driver remembers of one start.

    ``share`` is that of the drawn rows below the last threshold, ``error`` by how much that share
    was foretold wrongly.
    """

    cut: Cut | None = None
    sums: RowSums | None = None
    share: float | None = None
    error: float | None = None


class PartitionFollower:
    """Remember the cuts of each of a batch of starts, and sum over the rows they keep."""

    def __init__(self, engine: PartitionEngine, n_starts: int, mass: float) -> None:
        self.engine = engine
        self.mass = mass
        self._starts = [_Start() for _ in range(n_starts)]

    def select(self, thetas: Floats, starts: Sequence[int]) -> list[Selected]:
        """Keep the rows of smallest residual at ``thetas[i]`` for start ``starts[i]``."""
        floors = self.engine.problem.residual_floor(thetas).tolist()
        drawn = self.engine.foretelling()
        sizes = [residual_sizes(drawn, theta) for theta in thetas]
        windows = [
            self._window(drawn, values, self._starts[start])
            for values, start in zip(sizes, starts, strict=True)
        ]
        args = [(theta,) for theta in thetas]
        cuts = find_cuts(self.engine, residual_sizes, args, self.mass, floors, windows)
        before = [self._starts[start].cut for start in starts]
        found = self.engine.fold(_kept_sums, cuts, before)
        for start, cut, values, (sums, *_) in zip(starts, cuts, sizes, found, strict=True):
            self._starts[start].cut, self._starts[start].sums = cut, sums
            self._learn(drawn, values, self._starts[start], cut.threshold)
        return [
            Selected(square, moved + (not _same_part(cut, last)), 0.0, cut.threshold, int(name[0]))
            for cut, last, (_, square, moved, name) in zip(cuts, before, found, strict=True)
        ]

    def _window(self, drawn: MemoryEngine, values: Floats, start: _Start) -> Window:
        """Foretell a threshold from the drawn rows, as well as the last ones were foretold."""
        if start.share is None:
            return foretell(drawn, values, self.mass / self.engine.problem.mass)
        margin = None if start.error is None else CERTAIN * start.error
        return foretell(drawn, values, start.share, margin)

    @staticmethod
    def _learn(drawn: MemoryEngine, values: Floats, start: _Start, threshold: float) -> None:
        weights = drawn.problem.weights
        below = values < threshold
        share = float(below.mean() if weights is None else weights[below].sum() / weights.sum())
        start.error = None if start.share is None else abs(share - start.share)
        start.share = share

    def moved_sums(self, start: int) -> RowSums | None:
        """Say that sums over all kept rows are there already."""
        del start
        return None

    def kept_sums(self, start: int, theta: Floats) -> RowSums:
        """Sum over all kept rows, with residuals at ``theta``."""
        known = self._starts[start]
        cut = self._cut(start)
        if known.sums is not None and np.array_equal(cut.args[0], theta):
            return known.sums
        sums: RowSums = self.engine.fold(_sums_at, cut, theta)
        return sums

    def gradients(self, starts: Sequence[int], thetas: Floats) -> Floats:
        """Sum ``w z r`` over each start's kept rows, residuals at ``thetas``; no p x p matrix."""
        cuts = [self._cut(start) for start in starts]
        return self.engine.fold(_gradients, cuts, thetas)

    def gradient(self, start: int, theta: Floats) -> Floats:
        """Do the same for one start."""
        return np.asarray(self.gradients([start], theta[None, :])[0])

    def diagonal(self, start: int) -> Floats:
        """Sum ``w z^2`` over the kept rows, column by column."""
        return self.engine.fold(_diagonal, self._cut(start))

    def product(self, start: int, direction: Floats) -> Floats:
        """Multiply the kept rows' Gram matrix with a vector; no p x p matrix."""
        return self.engine.fold(_product, self._cut(start), direction)

    def keeper(self, start: int) -> Cut:
        """Return what tells the kept rows of any block."""
        return self._cut(start)

    def kept(self, start: int) -> tuple[Any, Any]:
        """Return the kept rows, and their weights in the fit if there are weights."""
        cut = self._cut(start)
        weights = None
        if self.engine.problem.weighted:
            weights = self.engine.map_rows(_kept_weights, cut)
        return self.engine.map_rows(masked, cut), weights

    def _cut(self, start: int) -> Cut:
        cut = self._starts[start].cut
        assert cut is not None
        return cut


# --- functions of a block -------------------------------------------------------------------------


def _kept_sums(
    block: MemoryEngine, cuts: Sequence[Cut], before: Sequence[Cut | None]
) -> tuple[tuple[RowSums, float, int, NDArray[np.uint64]], ...]:
    """Sum over the kept rows of several cuts; count those that moved, and name the set."""
    return tuple(_one_kept(block, cut, last) for cut, last in zip(cuts, before, strict=True))


def _one_kept(
    block: MemoryEngine, cut: Cut, before: Cut | None
) -> tuple[RowSums, float, int, NDArray[np.uint64]]:
    residuals = block.residuals(cut.args[0])
    mask = cut.of(np.abs(residuals), block)
    rows = np.flatnonzero(mask)
    near, weights = residuals[rows], cut.weights_of(mask, block)
    row_weights = None if weights is None else weights[rows]
    square = float(near @ (near if row_weights is None else near * row_weights))
    moved = rows.size if before is None else int(np.count_nonzero(mask != before.mask(block)))
    return block.sums(rows, near, row_weights), square, moved, _name(cut, block.numbers[rows])


def _same_part(cut: Cut, before: Cut | None) -> bool:
    """Say whether the same row is kept in the same part, up to the rounding of a sum."""
    return before is None or (
        cut.boundary == before.boundary
        and math.isclose(cut.boundary_weight, before.boundary_weight, rel_tol=1e-9)
    )


def _name(cut: Cut, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Name a set of rows: the sum of their scrambled numbers, and of the part of the last."""
    words = mix(numbers.astype(np.uint64))
    if cut.boundary >= 0:
        # The part is told to a few digits: a sum of weights in another order is the same part.
        part = np.array([float(f"{cut.boundary_weight:.9e}")]).view(np.uint64)
        words[numbers == cut.boundary] ^= mix(part)
    with np.errstate(over="ignore"):
        return np.asarray(words.sum(keepdims=True))


def _sums_at(block: MemoryEngine, cut: Cut, theta: Floats) -> RowSums:
    mask = cut.mask(block)
    rows, weights = np.flatnonzero(mask), cut.weights_of(mask, block)
    return block.sums(rows, None, None if weights is None else weights[rows], theta)


def _factors(block: MemoryEngine, cut: Cut) -> Floats:
    """Weights of a block's rows in the fit, one or zero without weights."""
    mask = cut.mask(block)
    weights = cut.weights_of(mask, block)
    return mask.astype(np.float64) if weights is None else weights


def _kept_weights(block: MemoryEngine, cut: Cut) -> Floats:
    return _factors(block, cut)


def _gradients(block: MemoryEngine, cuts: Sequence[Cut], thetas: Floats) -> Floats:
    factors = [_factors(block, cut) for cut in cuts]
    slopes, constants = block.slopes(thetas)
    frame = block.problem
    total = np.zeros((len(cuts), frame.n_features + 1))
    for rows in block.chunks():
        values = block.read(rows)
        residuals = block.target(rows) - slopes @ values.T - constants[:, None]
        residuals *= [factor[rows] for factor in factors]
        total[:, 1:] += residuals @ values
        total[:, 0] += residuals.sum(axis=1)
    total[:, 1:] /= frame.scale
    return total if frame.fit_intercept else total[:, 1:]


def _diagonal(block: MemoryEngine, cut: Cut) -> Floats:
    factor, total = _factors(block, cut), np.zeros(block.problem.n_columns)
    for rows in block.chunks():
        Z = block.standardised(rows)
        total += factor[rows] @ np.square(Z, out=Z)
    return total


def _product(block: MemoryEngine, cut: Cut, direction: Floats) -> Floats:
    factor, total = _factors(block, cut), np.zeros(block.problem.n_columns)
    for rows in block.chunks():
        Z = block.standardised(rows)
        total += ((Z @ direction) * factor[rows]) @ Z
    return total
