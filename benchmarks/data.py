"""The data that the benchmarks time: one linear model, and rows that are wrong."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OUTLIERS = 0.3  # their share of the rows, in every comparison
# Outliers are gross and one-sided, in units of the spread of the clean responses:
# least squares on all rows is then biased, so a fit has to travel to reach the model.
OUTLIER_CENTRE, OUTLIER_SPREAD = 3.0, 5.0


@dataclass(frozen=True)
class Sample:
    """Features (n, d), responses (n,) and the coefficients (d,) of the clean rows."""

    X: Floats
    y: Floats
    coef: Floats


def one_model(rows: int, columns: int, *, seed: int, noise: float = 0.0) -> Sample:
    """Draw Gaussian features and one model of unit norm, and spoil a share of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    coef = random_direction(columns, rng)
    y = X @ coef + noise * rng.standard_normal(rows)
    wrong = rng.permutation(rows)[: round(OUTLIERS * rows)]
    spread = y.std()
    y[wrong] = rng.normal(OUTLIER_CENTRE * spread, OUTLIER_SPREAD * spread, wrong.size)
    return Sample(X, y, coef)


def random_direction(columns: int, rng: np.random.Generator) -> Floats:
    """Draw a vector (columns,) of norm 1."""
    direction = rng.standard_normal(columns)
    return direction / np.linalg.norm(direction)


def trimmed_objective(sample: Sample, coef: Floats, intercept: float, kept: int) -> float:
    """Sum the ``kept`` smallest squared residuals: one formula for every contestant."""
    residuals = np.abs(sample.y - sample.X @ coef - intercept)
    smallest = np.partition(residuals, kept - 1)[:kept]
    return float(smallest @ smallest)
