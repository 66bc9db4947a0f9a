"""Random draws of rows that depend on the numbers of the rows, not on their place in the table.

Every distinct row has a 64-bit key made of its numbers and the seed. The rows of smallest key are a
uniform draw without replacement over distinct rows: the same rows whatever their order, however
often they repeat, and however the table is cut into blocks and chunks. Columns and response are
divided by a power of two near their largest size first: multiplied by any power of two, a table
has the same keys.

Keys of a large table come from the response alone where nearly all rows differ in it: one number a
row is read instead of all of them. Rows of equal response then have equal keys, and the rest of
their numbers decides between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from regimix.engines.base import Engine
    from regimix.engines.memory import MemoryEngine

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Indices = NDArray[np.intp]

LARGEST_KEY = 2**64 - 1
# Draws of several blocks that are more than so many times what is wanted have copies to spare.
SURPLUS = 3
# Fixes the multipliers of the row hash; any value would do.
_HASH_SEED = 20190214


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows of small key; equal rows have equal keys and marks, others differ in one of them."""

    keys: Words
    marks: Words
    numbers: NDArray[np.int64]  # in the table
    X: Floats
    y: Floats
    weights: Floats  # one without weights
    totals: Floats  # the same, and the weight of further copies of the row that were left out

    @classmethod
    def joined(cls, pieces: Sequence[Drawn]) -> Drawn:
        """Join the draws of several blocks in order of their keys.

        A shorter piece of an ordered draw is itself a draw.
        """
        columns = zip(*(vars(piece).values() for piece in pieces), strict=True)
        drawn = cls(*(np.concatenate(column) for column in columns))
        order = np.argsort(drawn.keys)
        if (np.diff(drawn.keys[order]) == 0).any():
            order = np.lexsort((drawn.numbers, drawn.marks, drawn.keys))
        return drawn.take(order)

    def take(self, rows: Indices | slice) -> Drawn:
        """Keep some of the rows."""
        return Drawn(*(values[rows] for values in vars(self).values()))

    def first_copies(self) -> NDArray[np.bool_]:
        """Return which of the ordered rows differ from the row before."""
        new = np.ones(self.keys.size, dtype=np.bool_)
        new[1:] = (np.diff(self.keys) != 0) | (np.diff(self.marks) != 0)
        return new

    def distinct(self, count: int) -> Drawn:
        """Return one copy of each of the first so many distinct rows, with the weight of all."""
        first = self.first_copies()
        totals = np.zeros(int(np.count_nonzero(first)))
        np.add.at(totals, np.cumsum(first) - 1, self.totals)
        drawn = self.take(slice(count) if first.all() else np.flatnonzero(first)[:count])
        return replace(drawn, weights=totals[:count], totals=totals[:count])

    def without_surplus(self, count: int) -> Drawn:
        """Leave out copies that are not needed: further ones, beyond ``count`` rows in all."""
        first = self.first_copies()
        surplus = ~first & (np.arange(first.size) >= count)
        totals = self.totals.copy()
        originals = np.flatnonzero(first)[np.cumsum(first) - 1]
        np.add.at(totals, originals[surplus], self.totals[surplus])
        return replace(self, totals=totals).take(np.flatnonzero(~surplus))


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Draws of several blocks while they are added; their size stays bounded."""

    pieces: tuple[Drawn, ...]
    count: int

    def __add__(self, other: _Drawing) -> _Drawing:
        pieces = (*self.pieces, *other.pieces)
        if sum(piece.keys.size for piece in pieces) > SURPLUS * self.count:
            pieces = (Drawn.joined(pieces).without_surplus(self.count),)
        return _Drawing(pieces, self.count)


def draw_rows(engine: Engine, count: int, seed: int) -> Drawn:
    """Draw at least ``count`` distinct rows with all their copies, in order; or all rows.

    Keys are uniform, so that one pass with a bound on them is enough; where rows repeat, more of
    the keys must be looked at.
    """
    share = (count + 5 * math.sqrt(count) + 10) / engine.problem.n_present
    while True:
        bound = LARGEST_KEY if share >= 1 else int(share * 2.0**64)
        drawn = Drawn.joined(engine.fold(_draw_block, seed, bound, count).pieces)
        if bound == LARGEST_KEY or np.count_nonzero(drawn.first_copies()) >= count:
            return drawn
        share *= 4


def _draw_block(block: MemoryEngine, seed: int, bound: int, count: int) -> _Drawing:
    """Return the rows of a block whose key is at most ``bound``."""
    problem = block.problem
    keys = np.empty(problem.n_rows, dtype=np.uint64)
    for rows in block.chunks():
        values = None if problem.distinct_response else problem.X[rows]
        keys[rows] = _keys(values, problem.y[rows], problem.key_units, seed)
    small = keys <= np.uint64(bound)
    if problem.weights is not None:
        small &= problem.weights > 0
    picked = np.flatnonzero(small)
    X, y = np.asarray(problem.X[picked], dtype=np.float64), problem.y[picked]
    weights = np.ones(picked.size) if problem.weights is None else problem.weights[picked]
    marks = np.zeros(picked.size, np.uint64)
    if problem.distinct_response:
        marks = _keys(X, y, problem.key_units, seed)
    drawn = Drawn(keys[picked], marks, block.numbers[picked], X, y, weights, weights)
    if picked.size > count:
        drawn = Drawn.joined([drawn]).without_surplus(count)
    return _Drawing((drawn,), count)


def _keys(X: NDArray[Any] | None, y: Floats, units: Floats, seed: int) -> Words:
    """Give every row a key: equal rows, equal keys.

    The numbers of a row are read as 64-bit words, multiplied by random odd words and added.
    """
    n_factors = 1 if X is None else X.shape[1] + 1
    rng = np.random.default_rng(_HASH_SEED)
    factors = rng.integers(0, 2**64, n_factors, dtype=np.uint64) | np.uint64(1)
    salt = mix(np.array([seed % 2**64], dtype=np.uint64))
    with np.errstate(over="ignore"):
        words = _words(y / units[-1]) * factors[-1]
        if X is not None:
            words += _words(X / units[:-1]) @ factors[:-1]
        return mix(words ^ salt)


def _words(values: NDArray[Any]) -> Words:
    """Read numbers as 64-bit words that fill their lower half too.

    Small whole numbers use the first dozen bits of a double only, and a product would shift those
    out; folding the upper half into the lower keeps them.
    """
    doubles = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # -0.0 is 0.0
    words = doubles.view(np.uint64)
    return np.asarray(words ^ (words >> np.uint64(32)))


def mix(words: Words) -> Words:
    """Scramble 64-bit words so that every input bit moves every output bit (splitmix64)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return words ^ (words >> np.uint64(31))
