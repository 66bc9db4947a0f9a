"""Full-space starts for one component: least squares, reweighted fits, elemental subsets.

No source is right for every table; each is cheap, and one common test judges them all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Sample
from regimix.search.starts import Starts

__all__ = ["elemental", "reweighted", "single_starts", "weighted_fit"]

Floats = NDArray[np.float64]

# Weights 1 / (1 + eta r^2 / median r^2): a larger eta listens to fewer rows.
REWEIGHTING = (1.0, 8.0)
REWEIGHTING_ROUNDS = 15
# Keeps a Gram matrix of few or dependent rows solvable; far below any real curvature.
RIDGE = 1e-10


def single_starts(sample: Sample, n_elemental: int, rng: np.random.Generator) -> Starts:
    """Make starts for one component from a sample of rows."""
    all_rows = weighted_fit(sample.Z, sample.y, sample.weights)
    starts = Starts(all_rows[None, :], ("least squares",))
    robust = [reweighted(sample, all_rows, eta) for eta in REWEIGHTING]
    starts = starts.and_also(np.stack(robust), "reweighted")
    if n_elemental:
        starts = starts.and_also(elemental(sample, n_elemental, rng), "elemental")
    return starts


def reweighted(sample: Sample, theta: Floats, eta: float) -> Floats:
    """Reweight least squares again and again, listening to the rows it fits well."""
    for _ in range(REWEIGHTING_ROUNDS):
        squares = (sample.y - sample.Z @ theta) ** 2
        typical = float(np.median(squares))
        if typical <= 0:
            break
        theta = weighted_fit(sample.Z, sample.y, sample.weights / (1 + eta * squares / typical))
    return theta


def elemental(sample: Sample, count: int, rng: np.random.Generator) -> Floats:
    """Fit random subsets of as many rows as coefficients.

    Rows are drawn until they determine every coefficient that the sample determines: 0/1 columns
    make many small subsets degenerate, so a degenerate subset is filled up with further rows.
    """
    n_rows, p = sample.Z.shape
    size = min(p, n_rows)
    picked = np.stack([rng.permutation(n_rows)[: min(2 * p, n_rows)] for _ in range(count)])
    thetas = np.empty((count, p))
    for i, rows in enumerate(picked):
        Z = sample.Z[rows[:size]]
        if np.linalg.matrix_rank(Z) < p:
            Z, rows = sample.Z[rows], rows
        thetas[i] = np.linalg.lstsq(Z, sample.y[rows[: Z.shape[0]]], rcond=None)[0]
    return thetas


def weighted_fit(Z: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted least squares, steadied by a tiny ridge."""
    weighted = Z * weights[:, None]
    gram = weighted.T @ Z
    gram[np.diag_indices_from(gram)] += RIDGE * max(float(np.trace(gram)) / gram.shape[0], 1e-300)
    return np.asarray(np.linalg.solve(gram, weighted.T @ y))
