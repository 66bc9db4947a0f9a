"""The data that the benchmarks time: one linear model or several, and rows that are wrong."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OUTLIERS = 0.3  # their share of the rows of one model
# Outliers are gross and one-sided, in units of the spread of the clean responses:
# least squares on all rows is then biased, so a fit has to travel to reach the model.
OUTLIER_CENTRE, OUTLIER_SPREAD = 3.0, 5.0

# Several models: their shares of the clean rows, their noise, and gross errors added to the rest.
SHARES = (0.5, 0.3, 0.2)
MIXED_NOISE = 0.1
MIXED_OUTLIERS = 0.1
GROSS = 20.0
BLOCK_ROWS = 100_000


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


@dataclass(frozen=True)
class Mixed:
    """Rows of several models: features (n, d), responses (n,), and which model each follows.

    ``labels`` are −1 where a row follows none; ``theta`` (m, d + 1) ends with the intercepts.
    """

    X: Floats
    y: Floats
    labels: NDArray[np.int8]
    theta: Floats


def mixed_models(rows: int, columns: int, *, seed: int) -> Mixed:
    """Draw a whole table; no more memory is touched than the table and one block need."""
    X, y, labels = np.empty((rows, columns)), np.empty(rows), np.empty(rows, dtype=np.int8)
    start = 0
    for block in mixed_blocks(rows, columns, seed=seed):
        place = slice(start, start + len(block.y))
        X[place], y[place], labels[place] = block.X, block.y, block.labels
        start = place.stop
    return Mixed(X, y, labels, block.theta)


def mixed_blocks(
    rows: int, columns: int, *, seed: int, block_rows: int = BLOCK_ROWS
) -> Iterator[Mixed]:
    """Draw the same table piece by piece, for files that are larger than a block."""
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((len(SHARES), columns + 1))
    for start in range(0, rows, block_rows):
        yield _mixed_block(min(block_rows, rows - start), theta, rng)


def _mixed_block(rows: int, theta: Floats, rng: np.random.Generator) -> Mixed:
    X = rng.standard_normal((rows, theta.shape[1] - 1))
    labels = rng.choice(len(SHARES), rows, p=SHARES).astype(np.int8)
    y = np.einsum("ij,ij->i", X, theta[labels, :-1]) + theta[labels, -1]
    y += MIXED_NOISE * rng.standard_normal(rows)
    wrong = rng.random(rows) < MIXED_OUTLIERS
    y[wrong] += GROSS * rng.standard_normal(np.count_nonzero(wrong))
    labels[wrong] = -1
    return Mixed(X, y, labels, theta)
