"""Excerpt: a bounded part of the rows of a fit, to look at when the table is gone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame
from regimix.engines.base import Engine
from regimix.model.blocks import Labelling

__all__ = ["Excerpt", "excerpt_rows"]

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
    def of(cls, engine: Engine, labelling: Labelling, seed: int) -> Excerpt:
        """Draw by what the rows say: their order and the chunks do not matter."""
        count = excerpt_rows(engine.problem)
        drawn = engine.draw(count, seed)
        drawn = drawn.take(np.argsort(drawn.numbers[:count], kind="stable"))
        return cls(
            X=drawn.X,
            y=drawn.y,
            labels=labelling(engine.block_of(drawn)),
            numbers=drawn.numbers,
            complete=engine.problem.n_present <= count,
            weights=drawn.weights if engine.problem.weighted else None,
        )


def excerpt_rows(frame: Frame) -> int:
    """Return how many rows an excerpt has at most."""
    return max(1, MOST_NUMBERS // (frame.n_features + EXTRA_COLUMNS))
