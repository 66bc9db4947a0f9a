"""What a mixture remembers of the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Engine
from regimix.model.whiten import weighted_quantile

__all__ = ["MOMENT_ROWS", "MOST_COVARIANCE_FEATURES", "RowLaw"]

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
