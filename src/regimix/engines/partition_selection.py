"""Which rows are kept, over parts: exact thresholds, and sums over the rows below them.

A draw of rows predicts where a threshold lies. One pass counts the values below that window and
in many bins within it, and returns the values themselves if they are few. Otherwise the next pass
looks at the one bin that holds the threshold: one to three passes. Ties go by the order of rows in
the table; where they are too many to be returned, two more passes count them block by block.

Starts are followed by these cuts, and summed afresh every round. Once thresholds are predicted well
a round takes two passes: one finds the cuts, one sums over the kept rows. Nothing is remembered
where the rows are; whatever is lost there can be asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import RowSums, Selected
from regimix.engines.row_sampling import mix
from regimix.engines.selection import (
    ROUNDING,
    BlockValues,
    Cut,
    fill_mass,
    masked,
    residual_sizes,
    same_part,
)

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine
    from regimix.engines.partition import PartitionEngine

__all__ = ["PartitionFollower", "Window", "find_cuts"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

BINS = 4096
# Values that all blocks together may return in one pass (with row number and weight: 24 bytes
# each). A block may return its share of these, and a few times more.
MOST_CANDIDATES = 1 << 16
UNEVEN = 4
FEWEST_CANDIDATES = 64
# Half-width of the first window, in standard deviations of the rank of a drawn row; and never
# fewer drawn rows than this on either side.
CERTAIN = 4.0
EITHER_SIDE = 4


@dataclass(frozen=True)
class Window:
    """Where a threshold is looked for: ``lowest <= value <= highest``."""

    lowest: float
    highest: float

    @property
    def width(self) -> float:
        """Its extent."""
        return self.highest - self.lowest

    def bins(self, values: Floats) -> NDArray[np.intp]:
        """Return the bins of values inside the window."""
        step = self.width / BINS
        if not step > 0:
            return np.zeros(values.size, dtype=np.intp)
        return np.clip(((values - self.lowest) / step).astype(np.intp), 0, BINS - 1)

    def bin(self, place: int) -> Window:
        """Return a bin, and a little more on both sides: rounding must not lose a value."""
        step = self.width / BINS
        return Window(
            max(self.lowest, self.lowest + (place - 0.01) * step),
            min(self.highest, self.lowest + (place + 1.01) * step),
        )


@dataclass(frozen=True, eq=False)
class _Counts:
    """Counts of rows around one window; those of several blocks are added."""

    below: float  # weight of the rows below the window
    bins: Floats  # (BINS,), weight inside
    # Values, row numbers and weights inside; None if a block had too many.
    candidates: list[tuple[Floats, Numbers, Floats]] | None
    extremes: tuple[float, float]  # smallest and largest value; infinite if there are none
    inside: tuple[float, float]  # the same of the values inside

    def __add__(self, other: _Counts) -> _Counts:
        one, two = self.candidates, other.candidates
        both = None if one is None or two is None else one + two
        if both is not None and sum(len(some[0]) for some in both) > UNEVEN * MOST_CANDIDATES:
            both = None
        return _Counts(
            self.below + other.below,
            self.bins + other.bins,
            both,
            _hull(self.extremes, other.extremes),
            _hull(self.inside, other.inside),
        )


def find_cuts(
    engine: PartitionEngine,
    values: BlockValues,
    args: Sequence[tuple[Any, ...]],
    mass: float,
    floors: Sequence[float],
    windows: Sequence[Window] | None = None,
) -> list[Cut]:
    """Find for each of several selections the rows of smallest ``values(block, *args)``.

    One pass serves all of them. Values closer to a threshold than its floor count as tied.
    """
    if windows is None:
        (drawn, weights), share = engine.predicting(), mass / engine.problem.mass
        windows = [_predict_window(weights, values(drawn, *arg), share) for arg in args]
    searches = [
        _Search(Cut(values, arg, np.nan, floor, -1), window, mass)
        for arg, floor, window in zip(args, floors, windows, strict=True)
    ]
    while waiting := [search for search in searches if not search.done]:
        asked = [(search.cut.args, search.window) for search in waiting]
        counts = engine.fold(_count, values, asked, engine.problem.n_rows)
        for search, found in zip(waiting, counts, strict=True):
            search.judge(found)
    return [s.cut if s.cut.last >= 0 else _count_ties(engine, s.cut, mass) for s in searches]


def _predict_window(
    weights: Floats, values: Floats, share: float, margin: float | None = None
) -> Window:
    """Guess between which values of the drawn rows the threshold lies.

    ``share`` is that of the rows below it, by weight, give or take ``margin``.
    """
    order = np.argsort(values, kind="stable")
    filled = np.cumsum(weights[order])
    filled /= filled[-1]
    if margin is None:
        margin = CERTAIN * float(np.sqrt(max(share * (1 - share), 1e-6) / values.size))
    margin = max(margin, EITHER_SIDE / values.size)
    ends = np.searchsorted(filled, [share - margin, share + margin])
    ordered = values[order]
    return Window(float(ordered[ends[0]]), float(ordered[min(int(ends[1]), values.size - 1)]))


@dataclass
class _Search:
    """The search for one threshold; ``done`` when it is known.

    The last tied row that is kept is then in the cut, unless ties were too many to be returned.
    """

    cut: Cut
    window: Window
    mass: float
    done: bool = False

    def judge(self, found: _Counts) -> None:
        """Learn from a pass: settle, or look elsewhere."""
        lowest, highest = found.extremes
        goal = self.mass * (1 - ROUNDING)
        inside = float(found.bins.sum())
        if found.below >= goal and self.window.lowest > lowest:
            self.window = Window(lowest, self.window.lowest)
        elif found.below + inside < goal and self.window.highest < highest:
            self.window = Window(self.window.highest, highest)
        elif found.candidates is not None:
            self._settle(found.below, found.candidates)
        elif np.isfinite(self.cut.threshold):
            self.done = True  # the threshold is known, and its ties are too many to be returned
        elif found.inside[0] == found.inside[1]:
            # Very many rows of one value: it is the threshold, and they are tied.
            self.cut = replace(self.cut, threshold=found.inside[0])
            self.done = True
        else:
            filled = found.below + np.cumsum(found.bins)
            place = min(int(np.searchsorted(filled, goal)), BINS - 1)
            held, part = Window(*found.inside), self.window.bin(place)
            self.window = Window(max(held.lowest, part.lowest), min(held.highest, part.highest))

    def _settle(self, below: float, candidates: list[tuple[Floats, Numbers, Floats]]) -> None:
        """Find the threshold and its ties among values that were returned."""
        values, numbers, weights = (
            np.concatenate(column) for column in zip(*candidates, strict=True)
        )
        order = np.argsort(values, kind="stable")
        filled = below + np.cumsum(weights[order])
        place = int(np.searchsorted(filled, self.mass * (1 - ROUNDING)))
        threshold = float(values[order[min(place, order.size - 1)]])
        floor = self.cut.floor
        if threshold - floor < self.window.lowest or threshold + floor > self.window.highest:
            # Ties may lie outside: the window must reach as far as they do.
            self.cut = replace(self.cut, threshold=threshold)
            lowest, highest = self.window.lowest, self.window.highest
            reach = 2 * floor + 8 * np.spacing(abs(threshold))
            self.window = Window(min(lowest, threshold - reach), max(highest, threshold + reach))
            return
        low = values < threshold - floor
        ties = np.flatnonzero(~low & (values <= threshold + floor))
        ties = ties[np.argsort(numbers[ties], kind="stable")]
        room = self.mass - below - float(weights[low].sum())
        last, part = fill_mass(weights[ties], room)
        self.cut = _ending_at(self.cut, int(numbers[ties[last]]), part, threshold)
        self.done = True


def _ending_at(cut: Cut, row: int, part: float | None, threshold: float) -> Cut:
    """Let a cut end at a tied row, of which a part is kept if one is given."""
    cut = replace(cut, threshold=threshold, last=row)
    return cut if part is None else replace(cut, boundary=row, boundary_weight=part)


def _count(
    block: MemoryEngine,
    values: BlockValues,
    asked: Sequence[tuple[tuple[Any, ...], Window]],
    n_rows: int,
) -> tuple[_Counts, ...]:
    """Count the rows of a block below and inside of windows."""
    few = max(FEWEST_CANDIDATES, UNEVEN * MOST_CANDIDATES * block.problem.n_rows / n_rows)
    return tuple(_count_one(block, values(block, *args), window, few) for args, window in asked)


def _count_one(block: MemoryEngine, values: Floats, window: Window, few: float) -> _Counts:
    weights, numbers = block.problem.weights, block.numbers
    if weights is not None:
        present = weights > 0
        values, weights, numbers = values[present], weights[present], numbers[present]
    low = values < window.lowest
    rows = np.flatnonzero(~low & (values <= window.highest))
    near = values[rows]
    row_weights = np.ones(rows.size) if weights is None else weights[rows]
    below = float(np.count_nonzero(low) if weights is None else weights[low].sum())
    bins = np.bincount(window.bins(near), row_weights, BINS).astype(np.float64)
    candidates = [(near, numbers[rows], row_weights)] if rows.size <= few else None
    return _Counts(below, bins, candidates, _ends(values), _ends(near))


def _ends(values: Floats) -> tuple[float, float]:
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))


def _hull(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], two[0]), max(one[1], two[1])


# --- very many ties -------------------------------------------------------------------------------


def _count_ties(engine: PartitionEngine, cut: Cut, mass: float) -> Cut:
    """Find the last kept row among more tied rows than can be returned."""
    below, masses = engine.fold(_tie_mass, cut)
    room = mass - below
    filled = np.cumsum([own for _, own in masses])
    place = min(int(np.searchsorted(filled, room * (1 - ROUNDING))), len(masses) - 1)
    first, own = masses[place]
    room -= float(filled[place]) - own
    ((row, part),) = engine.fold(_tie_at, cut, first, room)
    return _ending_at(cut, row, part, cut.threshold)


def _tie_mass(block: MemoryEngine, cut: Cut) -> tuple[float, list[tuple[int, float]]]:
    """Weigh the rows of a block below the ties, and the ties."""
    low, ties, weights = _tied(block, cut)
    return float(weights[low].sum()), [(int(block.numbers[0]), float(weights[ties].sum()))]


def _tie_at(
    block: MemoryEngine, cut: Cut, first: int, room: float
) -> list[tuple[int, float | None]]:
    """Return the tied row at which the room is full, and the part of it that is kept, if not all.

    Only the block that begins with row ``first`` has an answer.
    """
    if int(block.numbers[0]) != first:
        return []
    _, ties, weights = _tied(block, cut)
    last, part = fill_mass(weights[ties], room)
    return [(int(block.numbers[ties][last]), part)]


def _tied(block: MemoryEngine, cut: Cut) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Floats]:
    """Return which rows lie below the ties, which are tied, and the weights of all."""
    values, weights = cut.values(block, *cut.args), block.problem.weights
    low = values < cut.threshold - cut.floor
    ties = ~low & (values <= cut.threshold + cut.floor)
    return low, ties, np.ones(values.size) if weights is None else weights


# --- following starts ---------------------------------------------------------------------------


@dataclass
class _Start:
    """What the driver remembers of one start.

    ``share`` is that of the drawn rows below the last threshold, ``error`` by how much that share
    was predicted wrongly.
    """

    cut: Cut | None = None
    sums: RowSums | None = None
    share: float | None = None
    error: float | None = None

    def note(self, cut: Cut, sums: RowSums, share: float) -> None:
        """Take over a new selection, and compare its share with the one predicted."""
        self.error = None if self.share is None else abs(share - self.share)
        self.cut, self.sums, self.share = cut, sums, share


class PartitionFollower:
    """Remember the cuts of each of a batch of starts, and sum over the rows they keep."""

    def __init__(self, engine: PartitionEngine, n_starts: int, mass: float) -> None:
        self.engine = engine
        self.mass = mass
        self._starts = [_Start() for _ in range(n_starts)]

    def select(self, thetas: Floats, starts: Sequence[int]) -> list[Selected]:
        """Keep the rows of smallest residual at ``thetas[i]`` for start ``starts[i]``."""
        floors = self.engine.problem.residual_floor(thetas).tolist()
        drawn, weights = self.engine.predicting()
        sizes = [residual_sizes(drawn, theta) for theta in thetas]
        windows = [
            self._window(weights, values, self._starts[start])
            for values, start in zip(sizes, starts, strict=True)
        ]
        args = [(theta,) for theta in thetas]
        cuts = find_cuts(self.engine, residual_sizes, args, self.mass, floors, windows)
        before = [self._starts[start].cut for start in starts]
        found = self.engine.fold(_kept_sums, cuts, before)
        selected = []
        for start, cut, last, values, sums in zip(starts, cuts, before, sizes, found, strict=True):
            row_sums, square, moved, name = sums
            share = float(weights[values < cut.threshold].sum() / weights.sum())
            self._starts[start].note(cut, row_sums, share)
            moved += last is not None and not same_part(cut.part, last.part)
            selected.append(Selected(square, moved, 0.0, cut.threshold, int(name[0])))
        return selected

    def _window(self, weights: Floats, values: Floats, start: _Start) -> Window:
        """Predict a threshold from the drawn rows, as well as the last ones were predicted."""
        if start.share is None:
            return _predict_window(weights, values, self.mass / self.engine.problem.mass)
        margin = None if start.error is None else CERTAIN * start.error
        return _predict_window(weights, values, start.share, margin)

    def moved_sums(self, start: int) -> RowSums | None:
        """Return nothing: sums over all kept rows are there already."""
        del start
        return None

    def kept_sums(self, start: int, theta: Floats) -> RowSums:
        """Sum over all kept rows, with residuals at ``theta``."""
        known = self._starts[start]
        cut = self.keeper(start)
        if known.sums is not None and np.array_equal(cut.args[0], theta):
            return known.sums
        sums: RowSums = self.engine.fold(_sums_at, cut, theta)
        return sums

    def gradients(self, starts: Sequence[int], thetas: Floats) -> Floats:
        """Sum ``w z r`` over each start's kept rows, residuals at ``thetas``; no p x p matrix."""
        cuts = [self.keeper(start) for start in starts]
        return self.engine.fold(_gradients, cuts, thetas)

    def diagonal(self, start: int) -> Floats:
        """Sum ``w z^2`` over the kept rows, column by column."""
        return self.engine.fold(_diagonal, self.keeper(start))

    def product(self, start: int, direction: Floats) -> Floats:
        """Multiply the kept rows' Gram matrix with a vector; no p x p matrix."""
        return self.engine.fold(_product, self.keeper(start), direction)

    def keeper(self, start: int) -> Cut:
        """Return a rule that says which rows of any block are kept."""
        cut = self._starts[start].cut
        assert cut is not None
        return cut

    def kept(self, start: int) -> tuple[Any, Any]:
        """Return the kept rows, and their weights in the fit if there are weights."""
        cut = self.keeper(start)
        weights = None
        if self.engine.problem.weighted:
            weights = self.engine.map_rows(_factor, cut)
        return self.engine.map_rows(masked, cut), weights


# --- functions of a block -------------------------------------------------------------------------


def _kept_sums(
    block: MemoryEngine, cuts: Sequence[Cut], before: Sequence[Cut | None]
) -> tuple[tuple[RowSums, float, int, NDArray[np.uint64]], ...]:
    """Sum over the kept rows of several cuts; count those that moved, and hash the set."""
    return tuple(_one_kept(block, cut, last) for cut, last in zip(cuts, before, strict=True))


def _one_kept(
    block: MemoryEngine, cut: Cut, before: Cut | None
) -> tuple[RowSums, float, int, NDArray[np.uint64]]:
    residuals = block.residuals(cut.args[0])
    mask = cut.among(np.abs(residuals), block)
    rows = np.flatnonzero(mask)
    near, weights = residuals[rows], cut.weights(block, mask)
    row_weights = None if weights is None else weights[rows]
    square = float(near @ (near if row_weights is None else near * row_weights))
    moved = rows.size if before is None else int(np.count_nonzero(mask != before.mask(block)))
    return block.sums(rows, near, row_weights), square, moved, _hash(cut, block.numbers[rows])


def _hash(cut: Cut, numbers: Numbers) -> NDArray[np.uint64]:
    """Hash a set of rows: the sum of their scrambled numbers, and of the part of the last."""
    words = mix(numbers.astype(np.uint64))
    if cut.boundary >= 0:
        # The part counts to a few digits: a sum of weights in another order is the same part.
        part = np.array([float(f"{cut.boundary_weight:.9e}")]).view(np.uint64)
        words[numbers == cut.boundary] ^= mix(part)
    with np.errstate(over="ignore"):
        return np.asarray(words.sum(keepdims=True))


def _sums_at(block: MemoryEngine, cut: Cut, theta: Floats) -> RowSums:
    mask = cut.mask(block)
    rows, weights = np.flatnonzero(mask), cut.weights(block, mask)
    return block.sums(rows, None, None if weights is None else weights[rows], theta)


def _factor(block: MemoryEngine, cut: Cut) -> Floats:
    """Return what each row counts: its weight in the fit; without weights one, or zero."""
    mask = cut.mask(block)
    weights = cut.weights(block, mask)
    return mask.astype(np.float64) if weights is None else weights


def _gradients(block: MemoryEngine, cuts: Sequence[Cut], thetas: Floats) -> Floats:
    return block.gradients(thetas, [_factor(block, cut) for cut in cuts])


def _diagonal(block: MemoryEngine, cut: Cut) -> Floats:
    return block.diagonal(_factor(block, cut))


def _product(block: MemoryEngine, cut: Cut, direction: Floats) -> Floats:
    return block.product(direction, _factor(block, cut))
