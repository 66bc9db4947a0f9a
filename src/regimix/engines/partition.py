"""The engine for tables in parts: out of core on one machine, or on a cluster.

The driver holds coefficients and d x d sums, and a bounded draw of rows. A block of rows is made of
a part when a task works on it: standardised by the frame, its rows numbered in the whole table.

Which rows are kept: a draw of rows predicts where a threshold lies. One pass counts the values
below that window and in many bins within it, and returns the values themselves if they are few.
Otherwise the next pass looks at the one bin that holds the threshold: one to three passes. Ties go
by the order of rows in the table; where they are too many to be returned, two more passes count
them block by block.

Starts are followed by these cuts, and summed afresh every round. Once thresholds are predicted well
a round takes two passes: one finds the cuts, one sums over the kept rows. Nothing is remembered
where the rows are; whatever is lost there can be asked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame, Problem
from regimix.engines.base import Engine, Follower, Nothing, RowSums, Selected, T
from regimix.engines.memory import MemoryEngine
from regimix.engines.parts import LocalParts, Parts, PartUnits, RawRows
from regimix.engines.row_sampling import mix
from regimix.engines.selection import (
    ROUNDING,
    BlockValues,
    Cut,
    Mask,
    fill_mass,
    masked_mass,
    residual_sizes,
    same_part,
)
from regimix.threads import fitting_threads

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

# Rows of the draw that predicts thresholds, where a fit has not drawn any itself.
PREDICTING_ROWS = 20_000
# Seconds for the passes that turn what was found into an answer when the time is over.
LAST_SECONDS = 60.0
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


def _on_block(
    units: PartUnits,
    method: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    rows: RawRows,
    first: int,
) -> Any:
    """Make the block of a part, and let it "fold" or "map_rows" a function."""
    if not rows.n_rows and method == "fold":
        return Nothing()
    with fitting_threads(units.frame.n_columns):
        return getattr(units.block(rows, first), method)(function, *args)


class PartitionEngine(Engine):
    """Answer the questions of ``engines.base`` from parts of a table."""

    def __init__(self, parts: Parts, units: PartUnits, firsts: Sequence[int]) -> None:
        self.parts = parts
        self.here = isinstance(parts, LocalParts)
        self.problem: Frame = units.frame
        self._units = units
        self._firsts = firsts  # places of the parts' first rows in the whole table

    def fold(self, function: Callable[..., T], *args: Any) -> T:
        """Add up ``function(block, *args)`` over blocks of rows."""
        task = partial(_on_block, self._units, "fold", function, args)
        result: T = self.parts.fold(task, self._firsts)
        return result

    def map_rows(self, function: Callable[..., NDArray[Any]], *args: Any) -> Any:
        """Concatenate ``function(block, *args)``, one value for each row, where the rows are."""
        lengths = np.diff([*self._firsts, self.problem.n_rows]).tolist()
        frame = self.problem
        empty = Problem.framed(frame, np.empty((0, frame.n_features)), np.empty(0))
        kind = function(MemoryEngine(empty), *args).dtype
        task = partial(_on_block, self._units, "map_rows", function, args)
        return self.parts.map_rows(task, lengths, kind, self._firsts)

    def choose(self, values: BlockValues, args: tuple[Any, ...], mass: float) -> Cut:
        """Keep the rows of smallest ``values(block, *args)`` up to a total weight."""
        return find_cuts(self, values, [args], mass, [0.0])[0]

    def follow(self, n_starts: int, mass: float, *, narrow: bool = False) -> Follower:
        """Begin to follow starts that keep rows of total weight ``mass`` each."""
        del narrow  # every selection is a pass over the parts, and knows its objective
        return PartitionFollower(self, n_starts, mass)

    def without(self, rows: Mask) -> PartitionEngine:
        """Leave rows out; the table, its units and its number of rows stay."""
        mass, count = self.fold(_size_of, rows)
        frame = replace(
            self.problem,
            weighted=True,
            mass=self.problem.mass - mass,
            n_present=self.problem.n_present - count,
        )
        units = replace(self._units, frame=frame, gone=(*self._units.gone, rows))
        return PartitionEngine(self.parts, units, self._firsts)

    def hurry(self) -> None:
        """Let the last passes finish, within a minute if there was a limit, and if they can."""
        self.parts.watch = None
        if self.parts.deadline is not None and not self.parts.silent:
            self.parts.deadline = time.monotonic() + LAST_SECONDS

    def predicting(self) -> tuple[MemoryEngine, Floats]:
        """Return a block of drawn rows, and the weights of all their copies."""
        drawn = self._last_draw[2] if self._last_draw else self.draw(PREDICTING_ROWS, 0)
        drawn = drawn.distinct(PREDICTING_ROWS)
        return self.block_of(drawn), drawn.weights


def _size_of(block: MemoryEngine, rows: Mask) -> tuple[float, int]:
    """Return the weight and the number of some rows of a block."""
    return masked_mass(block, rows), int(np.count_nonzero(rows.mask(block)))


def open_parts(
    parts: Parts, names: tuple[str, ...], *, fit_intercept: bool = True
) -> PartitionEngine:
    """Check the rows of all parts, find their units, and make an engine of them."""
    return PartitionEngine(parts, *PartUnits.find(parts, names, fit_intercept=fit_intercept))


# --- thresholds over all parts --------------------------------------------------------------------


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
    """Find the rows of smallest ``values(block, *args)`` for several args, in the same passes."""
    if windows is None:
        (drawn, weights), share = engine.predicting(), mass / engine.problem.mass
        windows = [_predict_window(weights, values(drawn, *arg), share) for arg in args]
    searches = [
        _Search(Cut(values, arg, np.nan, floor, -1), window, mass)
        for arg, floor, window in zip(args, floors, windows, strict=True)
    ]
    while waiting := [search for search in searches if not search.done]:
        n_rows = engine.problem.n_rows
        asked = [(values, search.cut.args, search.window, n_rows) for search in waiting]
        counts = engine.fold(_each, _count, asked)
        for search, found in zip(waiting, counts, strict=True):
            search.judge(found)
    return [s.cut if s.cut.last >= 0 else _count_ties(engine, s.cut, mass) for s in searches]


def _predict_window(
    weights: Floats, values: Floats, share: float, margin: float | None = None
) -> Window:
    """Guess from drawn rows where a threshold lies: above their ``share``, up to a ``margin``."""
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
        low, tied = replace(self.cut, threshold=threshold).split(values)
        ties = np.flatnonzero(tied)
        ties = ties[np.argsort(numbers[ties], kind="stable")]
        last, part = fill_mass(weights[ties], self.mass - below - float(weights[low].sum()))
        self.cut = _ending_at(self.cut, int(numbers[ties[last]]), part, threshold)
        self.done = True


def _ending_at(cut: Cut, row: int, part: float | None, threshold: float) -> Cut:
    """Let a cut end at a tied row, of which a part is kept if one is given."""
    cut = replace(cut, threshold=threshold, last=row)
    return cut if part is None else replace(cut, boundary=row, boundary_weight=part)


def _each(
    block: MemoryEngine, function: Callable[..., T], asked: Sequence[tuple[Any, ...]]
) -> tuple[T, ...]:
    """Answer several questions of a block in one pass."""
    return tuple(function(block, *args) for args in asked)


def _count(
    block: MemoryEngine, of: BlockValues, args: tuple[Any, ...], window: Window, n_rows: int
) -> _Counts:
    """Count the rows of a block below and inside of a window; all blocks have ``n_rows``."""
    values, weights, numbers = of(block, *args), block.problem.row_weights, block.numbers
    few = max(FEWEST_CANDIDATES, UNEVEN * MOST_CANDIDATES * block.problem.n_rows / n_rows)
    if block.problem.weights is not None:
        present = weights > 0
        values, weights, numbers = values[present], weights[present], numbers[present]
    low = values < window.lowest
    rows = np.flatnonzero(~low & (values <= window.highest))
    near, own = values[rows], weights[rows]
    bins = np.bincount(window.bins(near), own, BINS).astype(np.float64)
    candidates = [(near, numbers[rows], own)] if rows.size <= few else None
    # Counting costs less than adding ones.
    plain = block.problem.weights is None
    below = float(np.count_nonzero(low) if plain else weights[low].sum())
    return _Counts(below, bins, candidates, _ends(values), _ends(near))


def _ends(values: Floats) -> tuple[float, float]:
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))


def _hull(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], two[0]), max(one[1], two[1])


# --- very many ties -------------------------------------------------------------------------------


def _count_ties(engine: PartitionEngine, cut: Cut, mass: float) -> Cut:
    """Find the last kept row among more tied rows than can be returned."""
    below, masses = engine.fold(_tie_mass, cut)
    left = mass - below
    filled = np.cumsum([own for _, own in masses])
    place = min(int(np.searchsorted(filled, left * (1 - ROUNDING))), len(masses) - 1)
    first, own = masses[place]
    ((row, part),) = engine.fold(_tie_at, cut, first, left - float(filled[place]) + own)
    return _ending_at(cut, row, part, cut.threshold)


def _tie_mass(block: MemoryEngine, cut: Cut) -> tuple[float, list[tuple[int, float]]]:
    """Weigh the rows of a block below the ties, and the ties."""
    low, ties = cut.split(cut.values(block, *cut.args))
    weights = block.problem.row_weights
    return float(weights[low].sum()), [(int(block.numbers[0]), float(weights[ties].sum()))]


def _tie_at(
    block: MemoryEngine, cut: Cut, first: int, left: float
) -> list[tuple[int, float | None]]:
    """Return the tied row at which the mass is full, and the part of it that is kept, if not all.

    Only the block that begins with row ``first`` has an answer.
    """
    if int(block.numbers[0]) != first:
        return []
    _, ties = cut.split(cut.values(block, *cut.args))
    last, part = fill_mass(block.problem.row_weights[ties], left)
    return [(int(block.numbers[ties][last]), part)]


# --- following starts ---------------------------------------------------------------------------


@dataclass
class _Start:
    """What the driver remembers of one start."""

    cut: Cut | None = None
    sums: RowSums | None = None
    share: float | None = None  # of the drawn rows, below the last threshold
    error: float | None = None  # by how much that share was predicted wrongly


class PartitionFollower(Follower):
    """Remembers the cuts of each of a batch of starts, and the sums over the rows they keep."""

    engine: PartitionEngine

    def __init__(self, engine: PartitionEngine, n_starts: int, mass: float) -> None:
        super().__init__(engine, mass)
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
        known = [self._starts[start] for start in starts]
        before = [start.cut for start in known]
        found = self.engine.fold(_each, _kept_sums, list(zip(cuts, before, strict=True)))
        selected = []
        for start, cut, values, sums in zip(known, cuts, sizes, found, strict=True):
            row_sums, square, moved, name = sums
            share = float(weights[values < cut.threshold].sum() / weights.sum())
            moved += start.cut is not None and not same_part(cut.part, start.cut.part)
            start.error = None if start.share is None else abs(share - start.share)
            start.cut, start.sums, start.share = cut, row_sums, share
            selected.append(Selected(square, moved, 0.0, cut.threshold, int(name[0])))
        return selected

    def _window(self, weights: Floats, values: Floats, start: _Start) -> Window:
        """Predict a threshold from the drawn rows, as well as the last ones were predicted."""
        if start.share is None:
            return _predict_window(weights, values, self.mass / self.engine.problem.mass)
        margin = None if start.error is None else CERTAIN * start.error
        return _predict_window(weights, values, start.share, margin)

    def kept_sums(self, start: int, theta: Floats) -> RowSums:
        """Sum over all kept rows; the last selection did so at its own coefficients."""
        known = self._starts[start].sums
        if known is not None and np.array_equal(self.keeper(start).args[0], theta):
            return known
        return super().kept_sums(start, theta)

    def keeper(self, start: int) -> Cut:
        """Return a rule that says which rows of any block are kept."""
        cut = self._starts[start].cut
        assert cut is not None
        return cut


def _kept_sums(
    block: MemoryEngine, cut: Cut, before: Cut | None
) -> tuple[RowSums, float, int, NDArray[np.uint64]]:
    """Sum over the kept rows of a cut; count those that moved, and hash the set."""
    residuals = block.residuals(cut.args[0])
    mask = cut.among(np.abs(residuals), block)
    rows = np.flatnonzero(mask)
    near = residuals[rows]
    row_weights = None if block.problem.weights is None else cut.factor(block, mask)[rows]
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
