"""Excerpt: a bounded part of the rows of a fit, to look at when the table is gone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.engines.memory import MemoryEngine

__all__ = ["Excerpt"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# Numbers in an excerpt (2 MB): a picture cannot show more, and a pickle stays small.
MOST_NUMBERS = 250_000
# A row has, beside its features, a response, a label, a number and a weight.
EXTRA_COLUMNS = 4


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Rows of the fit: all of them if they are few, otherwise a uniform draw, in row order.

    Attributes
    ----------
    X, y : ndarray of shape (k, d), (k,)
    labels : ndarray of shape (k,), int
    numbers : ndarray of shape (k,), int
        Where the rows stand in the table, counting from 0.
    complete : bool
        Whether these are all rows (but those of weight zero).
    weights : ndarray of shape (k,) or None
        Their weights, if rows had weights.
    """

    X: Floats
    y: Floats
    labels: Labels
    numbers: Labels
    complete: bool
    weights: Floats | None = None

    @classmethod
    def of(cls, engine: MemoryEngine, labels: Labels, seed: int) -> Excerpt:
        """Draw by what the rows say: their order and the chunks do not matter."""
        problem = engine.problem
        weights = problem.weights
        count = max(1, MOST_NUMBERS // (problem.n_features + EXTRA_COLUMNS))
        present = problem.n_rows if weights is None else int(np.count_nonzero(weights))
        if present <= count:
            numbers = np.arange(problem.n_rows) if weights is None else np.flatnonzero(weights)
        else:
            # Absent rows have the largest key.
            keys = engine.row_keys(seed)
            numbers = np.sort(np.argpartition(keys, count - 1)[:count])
        return cls(
            X=problem.X[numbers].astype(np.float64),
            y=problem.y[numbers].copy(),
            labels=labels[numbers],
            numbers=numbers.astype(np.int64),
            complete=present <= count,
            weights=None if weights is None else weights[numbers],
        )
