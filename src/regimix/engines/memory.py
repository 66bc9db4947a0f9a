"""Rows in memory or in a memory map, read in bounded chunks.

Extra memory: at most four vectors of length n (residuals, their sizes, a scratch of
``numpy.partition``, row lengths in single precision) and one chunk a thread. A batch of starts is
cut so that its blocks of residuals stay within ``BLOCK_BYTES``.

Near convergence the coefficients of successive rounds differ by little. A residual moves by at most
``length(z) * distance``; so a row whose residual is far from the threshold stays on its side, and
only the ``Band`` of rows near the threshold must be looked at. The selection is exact: whenever
that is not certain, a full pass is made. Late rounds then cost a few rows instead of a pass over
the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct

from regimix.data.problem import Problem
from regimix.data.validation import CHUNK_BYTES, chunk_size, chunks
from regimix.engines.base import Engine, Follower, RowSums, Selected, T, combine
from regimix.engines.row_sampling import mix
from regimix.engines.selection import (
    BlockValues,
    Choice,
    Mask,
    same_part,
    smallest,
    smallest_of_each,
)
from regimix.threads import in_threads

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]

# Rows of a block that is worth a thread. The cuts are the same for any number of threads: sums are
# added in the same order.
BLOCK_ROWS = 1 << 16
# Centers of up to so many scales may be subtracted from sums of squares afterwards: no digits are
# lost, and a column that is constant (its center is its value) gets no variance by rounding.
NEAR_ZERO = 0.1

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


class MemoryEngine(Engine):
    """Answer the questions of ``engines.base`` from one array: a whole table, or a block of one."""

    problem: Problem

    def __init__(
        self,
        problem: Problem,
        chunk_rows: int | None = None,
        numbers: range | NDArray[np.int64] | None = None,  # in the whole table, if this is a block
    ) -> None:
        self.problem = problem
        self.chunk_rows = chunk_rows
        self.inverse_scale = 1.0 / problem.scale
        self._numbers = range(problem.n_rows) if numbers is None else numbers
        self._asked: tuple[tuple[Any, ...], Any] = ((), None)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Row numbers in the whole table."""
        if isinstance(self._numbers, range):
            return np.arange(self._numbers.start, self._numbers.stop)
        return self._numbers

    def own(self, of_all: NDArray[Any]) -> NDArray[Any]:
        """Return the part of a vector over the whole table that belongs to these rows."""
        if isinstance(self._numbers, range):
            return of_all[self._numbers.start : self._numbers.stop]
        return np.asarray(of_all[self._numbers])

    # --- the whole table, block by block ----------------------------------------------------------

    def fold(self, function: Callable[..., T], *args: Any) -> T:
        """Add up ``function(block, *args)`` over blocks of rows."""
        return reduce(combine, in_threads(lambda block: function(block, *args), self._blocks()))

    def map_rows(self, function: Callable[..., NDArray[Any]], *args: Any) -> NDArray[Any]:
        """Concatenate ``function(block, *args)``, one value for each row."""
        out = np.empty(0)
        # Filled as results come: joining them at the end would take the memory twice.
        parts = in_threads(lambda block: function(block, *args), self._blocks())
        for i, part in enumerate(parts):
            if part.size == self.problem.n_rows:
                return part
            if i == 0:
                out = np.empty(self.problem.n_rows, dtype=part.dtype)
            out[i * BLOCK_ROWS : i * BLOCK_ROWS + part.size] = part
        return out

    def choose(self, values: BlockValues, args: tuple[Any, ...], mass: float) -> Choice:
        """Keep the rows of smallest ``values(block, *args)`` up to a total weight."""
        return smallest(self.map_rows(values, *args), mass, self.problem.weights)

    def without(self, rows: Mask) -> MemoryEngine:
        """Leave rows out, by a weight of zero; the table and its units stay where they are."""
        problem = self.problem
        weights = np.where(rows.mask(self), 0.0, problem.row_weights)
        left = replace(
            problem,
            weights=weights,
            weighted=True,
            n_present=int(np.count_nonzero(weights)),
            mass=float(weights.sum()),
        )
        return MemoryEngine(left, self.chunk_rows)

    def _blocks(self) -> list[MemoryEngine]:
        n_rows = self.problem.n_rows
        if n_rows <= BLOCK_ROWS or not isinstance(self._numbers, range):
            return [self]
        return [
            MemoryEngine(self.problem.part(rows), self.chunk_rows, self._numbers[rows])
            for rows in chunks(n_rows, self.problem.n_columns, BLOCK_ROWS)
        ]

    @staticmethod
    def _shares(chunks: Iterable[slice]) -> list[list[slice]]:
        """Put chunks together until they are worth a thread; the same for any number of threads."""
        shares: list[list[slice]] = []
        for chunk in chunks:
            if not shares or chunk.stop - shares[-1][0].start > BLOCK_ROWS:
                shares.append([])
            shares[-1].append(chunk)
        return shares

    def in_row_space(self, seed: int) -> tuple[MemoryEngine, Floats] | None:
        """Write distinct rows that are fewer than their columns in a basis of what they span.

        Returns the same rows with as many columns as there are distinct ones, standardised, and the
        basis, (p, columns): coefficients ``basis @ t`` predict as ``t`` does there, and the
        shortest of either are those of the other. Draws with this seed are the same rows. None if
        there are enough rows; how often each is written does not matter.
        """
        problem = self.problem
        whole = int(np.ceil(problem.mass))
        drawn = self.draw(whole, seed)
        distinct = drawn.distinct(problem.n_columns)
        if distinct.keys.size >= problem.n_columns:
            return None
        basis = np.linalg.qr(self.block_of(distinct).standardised(slice(None)).T)[0]
        # Its last directions are those of the last rows alone: to the others, they are rounding.
        # Turned once more, every direction belongs to all rows.
        basis = dct(basis, norm="ortho")
        Z, y = self.standardised(slice(None)) @ basis, self.target(slice(None))
        known = Problem.from_standardised(Z, y, problem.weights, counts=problem.counts)
        turned, numbers = MemoryEngine(known), drawn.numbers
        again = replace(drawn, X=Z[numbers], y=y[numbers])
        turned._last_draw = seed, max(whole, problem.n_rows), again
        return turned, basis

    def once(self, function: Callable[..., T], *args: Any) -> T:
        """Return ``function(self, *args)``; asked the same again, the same answer again."""
        asked = (function, *args)
        before, answer = self._asked
        if len(asked) != len(before) or any(a is not b for a, b in zip(asked, before, strict=True)):
            answer = function(self, *args)
            self._asked = asked, answer
        found: T = answer
        return found

    # --- rows of this block -----------------------------------------------------------------------

    def follow(self, n_starts: int, mass: float, *, narrow: bool = False) -> Follower:
        """Begin to follow starts that keep rows of total weight ``mass`` each."""
        return MemoryFollower(self, n_starts, mass, narrow=narrow)

    def chunks(self) -> Iterator[slice]:
        """Cut the table into consecutive slices of bounded size."""
        return chunks(self.problem.n_rows, self.problem.n_columns, self.chunk_rows)

    def residuals(self, theta: Floats) -> Floats:
        """Residuals of all rows, standardised."""
        return np.asarray(self.residual_block(theta[None, :])[0])

    def residual_block(self, thetas: Floats, out: Floats | None = None) -> Floats:
        """Residuals of all rows for a batch of coefficients, (starts, n)."""
        problem = self.problem
        slopes, constants = problem.raw(thetas)
        # (y - center) / scale - constant, with the constants of both sides together.
        shift = problem.target_center / problem.target_scale + constants[:, None]
        block = np.empty((thetas.shape[0], problem.n_rows)) if out is None else out

        def fill(rows: slice) -> None:
            part = block[:, rows]
            values = np.asarray(problem.X[rows], dtype=np.float64)
            if thetas.shape[0] == 1:
                np.matmul(values, slopes[0], out=part[0])
            else:
                np.matmul(slopes, values.T, out=part)
            np.subtract(problem.y[rows] / problem.target_scale - shift, part, out=part)

        for _ in in_threads(lambda chunks: list(map(fill, chunks)), self._shares(self.chunks())):
            pass
        return block

    def standardised(self, rows: Indices | slice) -> Floats:
        """Copy some rows in standardised units, with the constant column first if there is one."""
        values, first = self.read(rows), int(self.problem.fit_intercept)
        out = np.ones((len(values), first + values.shape[1]))
        np.multiply(values, self.inverse_scale, out=out[:, first:])
        return out

    def target(self, rows: Indices | slice) -> Floats:
        """Standardised response of some rows."""
        problem = self.problem
        return (problem.y[rows] - problem.target_center) / problem.target_scale

    @cached_property
    def lengths(self) -> NDArray[np.float32]:
        """Euclidean length of each standardised row, rounded up to single precision."""
        lengths = np.empty(self.problem.n_rows, dtype=np.float32)
        for rows in self.chunks():
            Z = self.standardised(rows)
            lengths[rows] = np.sqrt(np.einsum("ij,ij->i", Z, Z)) * (1 + 1e-6)
        return lengths

    def sums(
        self,
        rows: Indices,
        residuals: Floats | None,
        weights: Floats | None = None,
        theta: Floats | None = None,
    ) -> RowSums:
        """Sum ``w z z'`` and ``w z r`` over the given rows; weights may be negative.

        Residuals are given, or those at ``theta``.
        """
        p = self.problem.n_features + 1
        # Adding a p x p matrix must stay cheap against computing it: no fewer than p rows at once.
        at_once = self.chunk_rows or max(p, chunk_size(p))

        def add_up(parts: list[slice]) -> tuple[Floats, Floats]:
            # The sums have a constant first column, whether it is used or not.
            gram, moment = np.zeros((p, p)), np.zeros(p)
            for part in parts:
                values = self.read(rows[part])
                if residuals is None:
                    assert theta is not None
                    near = self.residuals_of(rows[part], theta, values)
                else:
                    near = residuals[part]
                weight = None if weights is None else weights[part]
                weighted = values if weight is None else values * weight[:, None]
                gram[1:, 1:] += weighted.T @ values
                moment[1:] += near @ weighted
                if self.problem.fit_intercept:
                    gram[0, 1:] += weighted.sum(axis=0)
                    gram[0, 0] += near.size if weight is None else weight.sum()
                    moment[0] += near.sum() if weight is None else near @ weight
            return gram, moment

        shares = self._shares(chunks(rows.size, p, at_once)) or [[]]
        gram, moment = reduce(combine, in_threads(add_up, shares))
        gram[1:, 0] = gram[0, 1:]
        gram[1:] *= self.inverse_scale[:, None]
        gram[:, 1:] *= self.inverse_scale
        moment[1:] *= self.inverse_scale
        if not self.problem.fit_intercept:
            gram, moment = gram[1:, 1:], moment[1:]
        return RowSums(gram, moment)

    def read(self, rows: Indices | slice) -> Floats:
        """Copy some rows, centred but not scaled, without a constant column.

        Centring before summing costs one cheap operation and loses nothing; scales can wait until
        the sums are there.
        """
        X = self.problem.X
        picked = X[rows] if isinstance(rows, slice) else X.take(rows, axis=0)
        if not self.problem.fit_intercept:
            return np.asarray(picked, dtype=np.float64)
        out = picked if isinstance(rows, np.ndarray) and picked.dtype == np.float64 else None
        return np.asarray(np.subtract(picked, self.problem.center, out=out))

    @cached_property
    def offset(self) -> Floats:
        """The center, if rows as ``readable`` gives them are not centred; otherwise zero."""
        problem = self.problem
        near = bool((np.abs(problem.center) <= NEAR_ZERO * problem.scale).all())
        return problem.center if near else np.zeros(problem.n_features)

    def readable(self, rows: slice) -> Floats:
        """Return rows in double precision: as they are where centers are small, else centred.

        Sums over rows that lie near zero can be centred afterwards.
        """
        if self.offset is self.problem.center:
            return np.asarray(self.problem.X[rows], dtype=np.float64)
        return self.read(rows)

    def slopes(self, thetas: Floats) -> tuple[Floats, Floats]:
        """Slopes and constants that predict from rows as ``read`` gives them."""
        first = int(self.problem.fit_intercept)
        constants = thetas[..., 0] if first else np.zeros(thetas.shape[:-1])
        return thetas[..., first:] * self.inverse_scale, constants

    def residuals_of(self, rows: Indices, theta: Floats, read: Floats | None = None) -> Floats:
        """Residuals of some rows, which may have been read already."""
        slopes, constant = self.slopes(theta)
        residuals = self.target(rows)
        for part in chunks(rows.size, self.problem.n_columns, self.chunk_rows):
            values = self.read(rows[part]) if read is None else read[part]
            residuals[part] -= values @ slopes + constant
        return residuals


# --- which rows each of a batch of starts keeps ---------------------------------------------------


@dataclass
class _Start:
    """What is remembered of one start between selections."""

    signature: int = 0
    boundary: tuple[int, float] = (-1, 0.0)
    threshold: float = math.inf
    # Rows that moved in the last selection, with their residuals then and their signed weights;
    # None when so many moved that sums over all kept rows are cheaper.
    moved: tuple[Indices, Floats, Floats] | None = None

    def note(self, choice: Choice, moved: Indices) -> None:
        """Take over a new selection, in which these rows moved."""
        words = mix(moved.astype(np.uint64))
        self.signature ^= int(np.bitwise_xor.reduce(words, initial=np.uint64(0)))
        self.boundary, self.threshold = choice.part, choice.threshold

    def hashed(self) -> int:
        """Hash the kept set, with the row that is kept in part."""
        row, weight = self.boundary
        # The part counts to a few digits: a sum of weights in another order is the same part.
        return self.signature ^ (hash((row, f"{weight:.9e}")) if row >= 0 else 0)


class MemoryFollower(Follower):
    """Remembers the kept rows themselves, and which of them moved."""

    engine: MemoryEngine

    def __init__(self, engine: MemoryEngine, n_starts: int, mass: float, *, narrow: bool) -> None:
        super().__init__(engine, mass)
        self.narrow = narrow
        self._weights = engine.problem.weights
        self._kept = np.zeros((n_starts, engine.problem.n_rows), dtype=np.bool_)
        self._starts = [_Start() for _ in range(n_starts)]
        self._band: Band | None = None
        self._last_theta: Floats | None = None
        self._buffer: Floats | None = None

    def select(self, thetas: Floats, starts: Sequence[int]) -> list[Selected]:
        """Keep the rows of smallest residual at ``thetas[i]`` for start ``starts[i]``.

        One pass over the rows serves several starts. Of one start, the band of undecided rows is
        looked at alone while that is certain to be right.
        """
        if self._band is not None:
            choice = self._band.choose(thetas[0])
            if choice is not None:
                return [self._record(0, choice, self._band.residuals, self._band.rows)]
        block = max(1, BLOCK_BYTES // (8 * self.engine.problem.n_rows))
        found: list[Selected] = []
        for first in range(0, len(starts), block):
            part = slice(first, first + block)
            found += self._select_block(thetas[part], starts[part])
        return found

    def _select_block(self, thetas: Floats, starts: Sequence[int]) -> list[Selected]:
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
        found = [self._record(start, choices[i], residuals[i]) for i, start in enumerate(starts)]
        if self.narrow and len(self._kept) == 1:
            theta, last, self._band = thetas[0], self._last_theta, None
            if last is not None and found[0].n_moved:
                floor = float(floors[0])
                self._band = Band.around(self, theta, theta - last, sizes[0], choices[0], floor)
            self._last_theta = theta
        return found

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
            memory.moved = None
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
        near = residuals[places]
        memory.moved = rows, near, signs
        square = float((signs * near) @ near)
        return Selected(objective, int(rows.size), square, choice.threshold, memory.hashed())

    def moved_sums(self, start: int) -> RowSums | None:
        """Sum over the rows that entered, minus those that left, in the last selection."""
        moved = self._starts[start].moved
        return None if moved is None else self.engine.sums(*moved)

    def keeper(self, start: int) -> Choice:
        """Return a rule that says which rows of any block are kept, until the next selection."""
        memory = self._starts[start]
        return Choice(self._kept[start], memory.threshold, *memory.boundary)


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
        follower: MemoryFollower,
        theta: Floats,
        step: Floats,
        sizes: Floats,
        choice: Choice,
        floor: float,
    ) -> Band | None:
        """Find the rows that may change sides within reach; None if they are too many."""
        engine, radius = follower.engine, REACH * float(np.linalg.norm(step))
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
            mass=follower.mass - inside_mass,
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
