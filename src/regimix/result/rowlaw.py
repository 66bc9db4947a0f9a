"""What a mixture remembers of the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame
from regimix.engines.base import Engine
from regimix.model.blocks import Labelling
from regimix.model.rows import weighted_quantile

__all__ = ["Excerpt", "MOMENT_ROWS", "MOST_COVARIANCE_FEATURES", "RowLaw", "excerpt_rows"]

Floats = NDArray[np.float64]

# A covariance matrix is kept up to this many features (512 KiB): no result should be much larger
# than its labels.
MOST_COVARIANCE_FEATURES = 256
MOMENT_ROWS = 8192  # mean and covariance settle long before


@dataclass(frozen=True, eq=False)
class RowLaw:
    """What is remembered of the rows themselves, to draw new ones and to rank terms.

    Attributes
    ----------
    mean, deviation, correlation : ndarray of shape (d,), (d,), (d, d) or None
        Of the features; correlations of up to ``MOST_COVARIANCE_FEATURES`` of them.
    middle : float
        Median of the response.
    """

    mean: Floats
    deviation: Floats
    correlation: Floats | None
    middle: float

    @classmethod
    def of(cls, engine: Engine, seed: int = 0) -> RowLaw:
        """Describe the rows of an engine, or a draw of so many that the rest add nothing."""
        problem = engine.problem
        drawn = engine.sample(MOMENT_ROWS, seed)
        Z = drawn.Z[:, int(problem.fit_intercept) :]
        weights = drawn.weights / drawn.weights.sum()
        mean = weights @ Z
        Z = Z - mean
        deviation = np.sqrt(weights @ Z**2)
        correlation = None
        if problem.n_features <= MOST_COVARIANCE_FEATURES:
            # A constant column correlates with nothing.
            Z /= np.where(deviation > 0, deviation, 1.0)
            correlation = (Z * weights[:, None]).T @ Z
        middle = weighted_quantile(drawn.y, weights, 0.5)
        return cls(
            mean=problem.center + problem.scale * mean,
            deviation=problem.scale * deviation,
            correlation=correlation,
            middle=float(middle * problem.target_scale + problem.target_center),
        )

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw features from the normal law of this mean and covariance."""
        values, vectors = np.linalg.eigh(np.asarray(self.correlation))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normal: Floats = rng.standard_normal((n, values.size)) @ root.T
        return self.mean + self.deviation * normal


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
