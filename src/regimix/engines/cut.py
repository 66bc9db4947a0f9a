"""The k-th smallest of values that are spread over parts, exactly, in one to three passes.

A draw of rows foretells where the threshold lies. One pass counts the values below that window and
in many bins within it, and hands over the values themselves if they are few. Otherwise the next
pass looks at the one bin that holds the threshold. Ties go by the order of rows in the table; where
they are too many to be handed over, two more passes count them block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.keep import BlockValues, Cut
from regimix.engines.select import ROUNDING

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine
    from regimix.engines.partition import PartitionEngine

__all__ = ["Window", "find_cuts", "foretell"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

BINS = 4096
# Values that all blocks together may hand over in one pass (with row number and weight: 24 bytes
# each). A block may hand over its share of these, and a few times more.
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
    """What blocks say of one window; blocks are added.

    Attributes
    ----------
    below : float
        Weight of the rows below the window.
    bins : ndarray of shape (BINS,)
        Weight inside, bin by bin.
    candidates : list or None
        Values, row numbers and weights inside; None if a block had too many.
    extremes, inside : tuple of float
        Smallest and largest value; the same of the values inside. The wrong way round if there are
        none.
    """

    below: float
    bins: Floats
    candidates: list[tuple[Floats, Numbers, Floats]] | None
    extremes: tuple[float, float]
    inside: tuple[float, float]

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
        drawn, share = engine.foretelling(), mass / engine.problem.mass
        windows = [foretell(drawn, values(drawn, *arg), share) for arg in args]
    searches = [
        _Search(Cut(values, arg, np.nan, floor, -1), window, mass)
        for arg, floor, window in zip(args, floors, windows, strict=True)
    ]
    while waiting := [search for search in searches if not search.done]:
        asked = [(search.cut.args, search.window) for search in waiting]
        counts = engine.fold(_count, values, asked, engine.problem.n_rows)
        for search, found in zip(waiting, counts, strict=True):
            search.judge(found)
    return [search.cut if search.settled else _count_ties(engine, search) for search in searches]


def foretell(
    drawn: MemoryEngine, values: Floats, share: float, margin: float | None = None
) -> Window:
    """Guess between which values of the drawn rows the threshold lies.

    ``share`` is that of the rows below it, by weight, give or take ``margin``.
    """
    weights = drawn.problem.weights
    order = np.argsort(values, kind="stable")
    filled = np.cumsum(np.ones(values.size) if weights is None else weights[order])
    filled /= filled[-1]
    if margin is None:
        margin = CERTAIN * float(np.sqrt(max(share * (1 - share), 1e-6) / values.size))
    margin = max(margin, EITHER_SIDE / values.size)
    ends = np.searchsorted(filled, [share - margin, share + margin])
    ordered = values[order]
    return Window(float(ordered[ends[0]]), float(ordered[min(int(ends[1]), values.size - 1)]))


@dataclass
class _Search:
    """The search for one threshold: where it is looked for, and what is known of it.

    ``done``: the threshold is known. ``settled``: so is the last tied row that is kept.
    """

    cut: Cut
    window: Window
    mass: float
    done: bool = False
    settled: bool = False

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
            self.done = True  # the threshold is known, and its ties are too many to be handed over
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
        """Find the threshold and its ties among values that were handed over."""
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
        self.cut = replace(self.cut, threshold=threshold)
        self.cut = _with_ties(self.cut, numbers[ties], weights[ties], room)
        self.done = self.settled = True


def _with_ties(cut: Cut, numbers: Numbers, weights: Floats, room: float) -> Cut:
    """Keep tied rows, in their order, until there is no more room; the last perhaps in part."""
    filled = np.cumsum(weights)
    last = min(int(np.searchsorted(filled, room * (1 - ROUNDING))), numbers.size - 1)
    whole = float(weights[last])
    part = room - (float(filled[last]) - whole)
    cut = replace(cut, last=int(numbers[last]))
    if part >= whole * (1 - ROUNDING):
        return cut
    return replace(cut, boundary=int(numbers[last]), boundary_weight=part)


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
    return (float(values.min()), float(values.max())) if values.size else (np.inf, -np.inf)


def _hull(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], two[0]), max(one[1], two[1])


# --- very many ties -------------------------------------------------------------------------------


def _count_ties(engine: PartitionEngine, search: _Search) -> Cut:
    """Find the last kept row among more tied rows than can be handed over."""
    cut = search.cut
    below, masses = engine.fold(_tie_mass, cut)
    room = search.mass - below
    filled = np.cumsum([mass for _, mass in masses])
    place = min(int(np.searchsorted(filled, room * (1 - ROUNDING))), len(masses) - 1)
    first, own = masses[place]
    room -= float(filled[place]) - own
    (found,) = engine.fold(_tie_at, cut, first, room)
    number, whole, part = found
    if part >= whole * (1 - ROUNDING):
        return replace(cut, last=number)
    return replace(cut, last=number, boundary=number, boundary_weight=part)


def _tie_mass(block: MemoryEngine, cut: Cut) -> tuple[float, list[tuple[int, float]]]:
    """Weigh the rows of a block below the ties, and the ties."""
    low, ties, weights = _tied(block, cut)
    return float(weights[low].sum()), [(int(block.numbers[0]), float(weights[ties].sum()))]


def _tie_at(
    block: MemoryEngine, cut: Cut, first: int, room: float
) -> list[tuple[int, float, float]]:
    """Return the tied row at which the room is full, its weight, and the part that is kept.

    Only the block that begins with row ``first`` has an answer.
    """
    if int(block.numbers[0]) != first:
        return []
    _, ties, weights = _tied(block, cut)
    rows = np.flatnonzero(ties)
    filled = np.cumsum(weights[rows])
    last = min(int(np.searchsorted(filled, room * (1 - ROUNDING))), rows.size - 1)
    whole = float(weights[rows[last]])
    part = room - (float(filled[last]) - whole)
    return [(int(block.numbers[rows[last]]), whole, part)]


def _tied(block: MemoryEngine, cut: Cut) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Floats]:
    """Return which rows lie below the ties, which are tied, and the weights of all."""
    values, weights = cut.values(block, *cut.args), block.problem.weights
    low = values < cut.threshold - cut.floor
    ties = ~low & (values <= cut.threshold + cut.floor)
    return low, ties, np.ones(values.size) if weights is None else weights
