"""Random draws of rows that depend on what the rows say, not on where they stand.

Every distinct row has a 64-bit key made of its numbers and the seed. The rows of smallest key are a
uniform draw without replacement over distinct rows: the same rows whatever their order, however
often they repeat, and however the table is cut into chunks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.select import mix
from regimix.problem import Problem

__all__ = ["draw_distinct", "row_keys"]

Words = NDArray[np.uint64]

_ABSENT = np.uint64(2**64 - 1)
# Fixes the multipliers of the row hash; any value would do.
_HASH_SEED = 20190214


def row_keys(problem: Problem, chunks: Iterable[slice], seed: int) -> Words:
    """Give every row a key: equal rows, equal keys; absent rows the largest key.

    The numbers of a row are read as 64-bit words, multiplied by random odd words and added.
    """
    rng = np.random.default_rng(_HASH_SEED)
    factors = rng.integers(0, 2**64, problem.n_features + 1, dtype=np.uint64) | np.uint64(1)
    salt = mix(np.array([seed % 2**64], dtype=np.uint64))
    keys = np.empty(problem.n_rows, dtype=np.uint64)
    for rows in chunks:
        with np.errstate(over="ignore"):
            words = _words(problem.X[rows]) @ factors[:-1] + _words(problem.y[rows]) * factors[-1]
            keys[rows] = mix(words ^ salt)
    keys[keys == _ABSENT] = _ABSENT - np.uint64(1)
    if problem.weights is not None:
        keys[problem.weights == 0] = _ABSENT
    return keys


def draw_distinct(
    keys: Words, row_weights: NDArray[np.float64] | None, count: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Draw up to ``count`` distinct rows; return one copy of each and the weight of all copies."""
    take = count
    while True:
        take = min(take, keys.size)
        largest = np.partition(keys, take - 1)[take - 1]
        rows = np.flatnonzero((keys <= largest) & (keys != _ABSENT))
        _, first, copy_of = np.unique(keys[rows], return_index=True, return_inverse=True)
        if first.size >= count or take == keys.size:
            break
        take *= 2  # repeated rows took places: look further
    weights = np.ones(rows.size) if row_weights is None else row_weights[rows]
    totals = np.zeros(first.size)
    np.add.at(totals, copy_of, weights)
    return rows[first[:count]], totals[:count]


def _words(values: NDArray[Any]) -> Words:
    """Read numbers as 64-bit words that fill their lower half too.

    Small whole numbers use the first dozen bits of a double only, and a product would shift those
    out; folding the upper half into the lower keeps them.
    """
    doubles = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # -0.0 is 0.0
    words = doubles.view(np.uint64)
    return np.asarray(words ^ (words >> np.uint64(32)))
