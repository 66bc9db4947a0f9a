"""The engine for tables in parts: out of core on one machine, or on a cluster.

The driver holds coefficients and d x d sums, and a bounded draw of rows. A block of rows is made of
a part when a task meets it: standardised by the frame, its rows numbered in the whole table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Follower, T
from regimix.engines.cut import find_cuts
from regimix.engines.draw import Drawn
from regimix.engines.drawer import RowDrawer
from regimix.engines.fold import Nothing
from regimix.engines.keep import BlockValues, Cut, Mask
from regimix.engines.memory import MemoryEngine
from regimix.engines.partfollow import PartitionFollower
from regimix.engines.parts import Parts, RawRows, Task
from regimix.engines.single import masked_count, masked_mass
from regimix.frame import Frame
from regimix.problem import Problem
from regimix.threads import fitting_threads

__all__ = ["BlockMaker", "PartitionEngine"]

Floats = NDArray[np.float64]

# Rows of the draw that foretells thresholds, where a fit has not drawn any itself.
FORETELLING_ROWS = 20_000
# Seconds for the passes that turn what was found into an answer when the time is over.
LAST_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class BlockMaker:
    """Turns the numbers of a part into a block of rows.

    Attributes
    ----------
    frame : Frame
    firsts : sequence or dict of int
        Where each part begins in the whole table.
    weight_most, weight_unit : float
        What weights are divided by and then multiplied by, so that relative importances have a mean
        of one; in two steps, so that no number is too large on the way.
    gone : tuple of Mask
        Rows that were left out, in turn.
    """

    frame: Frame
    firsts: Sequence[int] | dict[int, int]
    weight_most: float = 1.0
    weight_unit: float = 1.0
    gone: tuple[Mask, ...] = ()

    def __call__(self, rows: RawRows, part: int) -> MemoryEngine:
        """Make the block."""
        assert rows.y is not None
        weights = None
        if self.frame.weighted:
            weights = np.ones(rows.n_rows)
            if rows.weights is not None:
                weights = np.asarray(rows.weights, dtype=np.float64) / self.weight_most
                weights = weights * self.weight_unit
        numbers = range(self.firsts[part], self.firsts[part] + rows.n_rows)
        y = np.asarray(rows.y, dtype=np.float64)
        block = MemoryEngine(Problem.framed(self.frame, rows.X, y, weights), numbers=numbers)
        for mask in self.gone:
            assert weights is not None
            weights[mask.mask(block)] = 0.0
        return block


@dataclass(frozen=True, eq=False)
class _Fold(Task):
    """The task of a worker: make the block, and ask it."""

    make: BlockMaker
    function: Callable[..., Any]
    args: tuple[Any, ...]

    def for_part(self, part: int) -> _Fold:
        """Return the task for one part, which need not know where the others begin."""
        own = replace(self.make, firsts={part: self.make.firsts[part]})
        return replace(self, make=own)

    def __call__(self, rows: RawRows, part: int) -> Any:
        """Answer for one part."""
        if not rows.n_rows:
            return Nothing()
        with fitting_threads(self.make.frame.n_columns):
            return self.make(rows, part).fold(self.function, *self.args)


@dataclass(frozen=True, eq=False)
class _MapRows(_Fold):
    """The task of a worker: make the block, and ask each of its rows."""

    def __call__(self, rows: RawRows, part: int) -> Any:
        """Answer for one part."""
        with fitting_threads(self.make.frame.n_columns):
            return self.make(rows, part).map_rows(self.function, *self.args)


class PartitionEngine(RowDrawer):
    """Serve the reductions of ``engines.base`` from parts of a table."""

    def __init__(self, parts: Parts, maker: BlockMaker) -> None:
        self.parts = parts
        self.problem = maker.frame
        self._maker = maker

    def fold(self, function: Callable[..., T], *args: Any) -> T:
        """Add up ``function(block, *args)`` over blocks of rows."""
        result: T = self.parts.fold(_Fold(self._maker, function, args))
        return result

    def map_rows(self, function: Callable[..., NDArray[Any]], *args: Any) -> Any:
        """Put together what ``function(block, *args)`` says of each row, where the rows are."""
        firsts = (*self._maker.firsts, self.problem.n_rows)
        lengths = tuple(int(length) for length in np.diff(firsts))
        frame = self.problem
        nobody = Problem.framed(frame, np.empty((0, frame.n_features)), np.empty(0))
        kind = function(MemoryEngine(nobody), *args).dtype
        return self.parts.map_rows(_MapRows(self._maker, function, args), lengths, kind)

    def choose(
        self, values: BlockValues, args: tuple[Any, ...], mass: float, floor: float = 0.0
    ) -> Cut:
        """Keep the rows of smallest ``values(block, *args)`` up to a total weight."""
        return find_cuts(self, values, [args], mass, [floor])[0]

    def follow(self, n_starts: int, mass: float, *, narrow: bool = False) -> Follower:
        """Begin to follow starts that keep rows of total weight ``mass`` each."""
        del narrow  # every selection is a pass over the parts, and knows its objective
        return PartitionFollower(self, n_starts, mass)

    def without(self, rows: Mask) -> PartitionEngine:
        """Leave rows out; the table, its units and its number of rows stay."""
        maker = self._maker
        gone, count = self.fold(masked_mass, rows), self.fold(masked_count, rows)
        frame = replace(
            self.problem,
            weighted=True,
            mass=self.problem.mass - gone,
            n_present=self.problem.n_present - count,
        )
        return PartitionEngine(self.parts, replace(maker, frame=frame, gone=(*maker.gone, rows)))

    def hurry(self) -> None:
        """Let the last passes come to their end, within a while if there was a limit."""
        self.parts.watch = None
        if self.parts.deadline is not None:
            self.parts.deadline = time.monotonic() + LAST_SECONDS

    def block_of(self, drawn: Drawn) -> MemoryEngine:
        """Make a block of drawn rows, in the units of the table."""
        problem = Problem.framed(self.problem, drawn.X, drawn.y, drawn.weights)
        return MemoryEngine(problem, numbers=drawn.numbers)

    def foretelling(self) -> MemoryEngine:
        """Return a block of drawn rows, with the weight of all their copies."""
        drawn = self.drawn or self.draw(FORETELLING_ROWS, 0)
        return self.block_of(drawn.distinct(FORETELLING_ROWS))
