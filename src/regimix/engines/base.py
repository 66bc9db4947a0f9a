"""What solvers may ask of rows, wherever the rows live.

Solvers never touch X. They hold coefficients and d x d statistics, ask an ``Engine`` to *follow* a
batch of starts, and let the ``Follower`` remember which rows each start keeps. Everything else they
ask is a function of one block of rows (``fold``, ``map_rows``): memory, files and a cluster answer
the same questions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame, Problem
from regimix.engines.row_sampling import Drawn, draw_rows

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine
    from regimix.engines.selection import BlockValues, Keeper, Mask

Floats = NDArray[np.float64]
T = TypeVar("T")

# With fewer kept rows than this share of a chunk, skipping the others pays for gathering, at least
# in wide tables; measured with 20 and 200 columns, half of the rows kept, it did not.
GATHER_SHARE = 0.4


class Nothing:
    """The result of a block without rows."""


def combine(left: Any, right: Any) -> Any:
    """Add two results: numbers, arrays, lists (which grow), or tuples of these, part by part."""
    if isinstance(left, Nothing) or isinstance(right, Nothing):
        return right if isinstance(left, Nothing) else left
    if isinstance(left, tuple):
        return tuple(combine(a, b) for a, b in zip(left, right, strict=True))
    return None if left is None else left + right


@dataclass(frozen=True)
class RowSums:
    """Sums over some rows, with their weights ``w`` and their residuals ``r``."""

    gram: Floats  # (p, p), sum of w z z'
    moment: Floats  # (p,), sum of w z r

    def __add__(self, other: RowSums) -> RowSums:
        return RowSums(self.gram + other.gram, self.moment + other.moment)


@dataclass(frozen=True)
class Selected:
    """The result of one start's new selection of rows."""

    # Sum of squared residuals over the kept rows; None where only the rows that may have changed
    # sides were looked at (the caller's running sums still give it).
    objective: float | None
    n_moved: int  # rows that entered or left since the selection before
    square_moved: float  # squared residuals of the rows that entered, minus those that left
    threshold: float  # the largest kept absolute residual
    signature: int  # a 64-bit hash of the kept set: equal sets have equal hashes


@dataclass(frozen=True)
class Sample:
    """Distinct rows drawn for a search in memory, standardised."""

    Z: Floats  # (rows, p), with the leading constant column if there is an intercept
    y: Floats  # (rows,)
    weights: Floats  # (rows,), total weight of all copies of the row


class Follower(ABC):
    """Remembers which rows each of a batch of starts keeps, and sums over them.

    Sums are over the kept rows of a start, with weights ``w`` and residuals ``r`` at ``theta``.
    """

    def __init__(self, engine: Engine, mass: float) -> None:
        self.engine = engine
        self.mass = mass

    @abstractmethod
    def select(self, thetas: Floats, starts: Sequence[int]) -> list[Selected]:
        """Keep the rows of smallest residual at ``thetas[i]`` for start ``starts[i]``."""

    @abstractmethod
    def keeper(self, start: int) -> Keeper:
        """Return a rule that says which rows of any block are kept."""

    def moved_sums(self, start: int) -> RowSums | None:  # noqa: ARG002 - of use in memory only
        """Sum over the rows that entered last, minus those that left; None: not worth it."""
        return None

    def kept_sums(self, start: int, theta: Floats) -> RowSums:
        """Sum ``w z z'`` and ``w z r`` over all kept rows, afresh."""
        return self.engine.fold(_kept_sums, self.keeper(start), theta)

    def gradients(self, starts: Sequence[int], thetas: Floats) -> Floats:
        """Sum ``w z r`` for several starts; no p x p matrix."""
        return self.engine.fold(_gradients, [self.keeper(start) for start in starts], thetas)

    def diagonal(self, start: int) -> Floats:
        """Sum ``w z^2``, column by column."""
        return self.engine.fold(_diagonal, self.keeper(start))

    def product(self, start: int, direction: Floats) -> Floats:
        """Multiply the Gram matrix of the kept rows with a vector; no p x p matrix."""
        return self.engine.fold(_product, self.keeper(start), direction)

    def kept(self, start: int) -> tuple[Any, Any]:
        """Return the kept rows, and their weights in the fit if there are weights."""
        keeper = self.keeper(start)
        weighted = self.engine.problem.weighted
        weights = self.engine.map_rows(_kept_weights, keeper) if weighted else None
        return self.engine.map_rows(kept_rows, keeper), weights


def _kept_sums(block: MemoryEngine, keeper: Keeper, theta: Floats) -> RowSums:
    factor = keeper.factor(block)
    rows = np.flatnonzero(factor)
    weights = None if block.problem.weights is None else factor[rows]
    return block.sums(rows, None, weights, theta)


def _gradients(block: MemoryEngine, keepers: Sequence[Keeper], thetas: Floats) -> Floats:
    problem, (slopes, constants) = block.problem, block.slopes(thetas)
    factors = [keeper.factor(block) for keeper in keepers]
    total = np.zeros((len(thetas), problem.n_features + 1))
    for rows in block.chunks():
        values = block.read(rows)
        residuals = block.target(rows) - slopes @ values.T - constants[:, None]
        for i, factor in enumerate(factors):
            residuals[i] *= factor[rows]
        total[:, 1:] += residuals @ values
        total[:, 0] += residuals.sum(axis=1)
    total[:, 1:] *= block.inverse_scale
    return total if problem.fit_intercept else total[:, 1:]


def _diagonal(block: MemoryEngine, keeper: Keeper) -> Floats:
    problem, factor = block.problem, keeper.factor(block)
    total = np.zeros(problem.n_features)
    for rows in block.chunks():
        total += factor[rows].astype(np.float64) @ np.square(block.read(rows))
    total *= block.inverse_scale**2
    return np.append(float(factor.sum()), total) if problem.fit_intercept else total


def _product(block: MemoryEngine, keeper: Keeper, direction: Floats) -> Floats:
    """Read raw rows and standardise the vectors instead: no copy of what is read."""
    problem, factor = block.problem, keeper.factor(block)
    slopes, constant = problem.raw(direction)
    sums, mass = np.zeros(problem.n_features), 0.0
    for rows in block.chunks():
        values, own = problem.X[rows], factor[rows]
        if np.count_nonzero(own) < GATHER_SHARE * own.size:
            kept = own != 0
            values, own = values[kept], own[kept]
        values = np.asarray(values, dtype=np.float64)
        image = values @ slopes
        image += constant
        image *= own
        sums += image @ values
        mass += float(image.sum())
    if not problem.fit_intercept:
        return sums * block.inverse_scale
    return np.concatenate([[mass], (sums - problem.center * mass) * block.inverse_scale])


def kept_rows(block: MemoryEngine, rows: Mask) -> NDArray[np.bool_]:
    """Return which rows of a block are meant, as an array of its own."""
    return np.array(rows.mask(block))


def _kept_weights(block: MemoryEngine, keeper: Keeper) -> Floats:
    return keeper.factor(block).astype(np.float64)


class Engine(ABC):
    """Rows that live somewhere, seen in standardised units.

    Everything computed from all rows is a function of one block of them, whose results are added
    (``fold``) or concatenated (``map_rows``). A block is a ``MemoryEngine``. Results are added in
    the order of the blocks, so that sums do not depend on which thread or worker ends first.
    """

    problem: Frame
    here: bool = True  # whether blocks are worked on in this process
    chunk_rows: int | None = None  # rows to read at a time; default: as many as fit the cache
    _last_draw: tuple[int, int, Drawn] | None = None

    @abstractmethod
    def fold(self, function: Callable[..., T], *args: Any) -> T:
        """Add up ``function(block, *args)`` over blocks of rows."""

    @abstractmethod
    def map_rows(self, function: Callable[..., NDArray[Any]], *args: Any) -> Any:
        """Concatenate ``function(block, *args)``, one value for each row, where the rows are."""

    @abstractmethod
    def choose(self, values: BlockValues, args: tuple[Any, ...], mass: float) -> Keeper:
        """Keep the rows of smallest ``values(block, *args)`` up to a total weight."""

    @abstractmethod
    def follow(self, n_starts: int, mass: float, *, narrow: bool = False) -> Follower:
        """Begin to follow starts that keep rows of total weight ``mass`` each.

        With ``narrow``, late selections may look at undecided rows alone and then leave the
        objective to the caller's running sums.
        """

    @abstractmethod
    def without(self, rows: Mask) -> Engine:
        """Leave rows out; the table, its units and its number of rows stay."""

    def hurry(self) -> None:  # noqa: B027 - rows in memory are always at hand
        """Let the last passes finish although the time is over: only the answer is missing."""

    def block_of(self, drawn: Drawn) -> MemoryEngine:
        """Make a block of drawn rows, in the units of the table."""
        from regimix.engines.memory import MemoryEngine

        problem = Problem.framed(self.problem, drawn.X, drawn.y, drawn.weights)
        return MemoryEngine(problem, self.chunk_rows, drawn.numbers)

    def draw(self, rows: int, seed: int) -> Drawn:
        """Draw at least so many distinct rows with all their copies, in order of their keys.

        The largest draw is remembered: smaller ones are a part of it.
        """
        last = self._last_draw
        if last is None or last[0] != seed or last[1] < rows:
            last = self._last_draw = seed, rows, draw_rows(self, rows, seed)
        return last[2]

    def sample(self, rows: int, seed: int) -> Sample:
        """Draw distinct rows, whatever their order and repetition in the table."""
        drawn = self.draw(rows, seed).distinct(rows)
        block = self.block_of(drawn)
        return Sample(block.standardised(slice(None)), block.target(slice(None)), drawn.weights)
