"""Sequential least trimmed squares: fit one component, remove its rows, repeat."""

import numpy as np

from benchmarks.recovery.cells import Cell
from benchmarks.recovery.judge import Found
from benchmarks.recovery.sample import Sample
from regimix import TrimmedRegressor


def sequential_lts(cell: Cell, sample: Sample, seed: int, _budget: float) -> Found:
    """Peel m components with our own trimmed regression, which finds each one's size."""
    left = np.arange(cell.n)
    coef, intercept = [], []
    while len(coef) < cell.m and len(left) > cell.d + 1:
        model = TrimmedRegressor(fit_intercept=cell.fit_intercept, random_state=seed)
        model.fit(sample.X[left], sample.y[left])
        coef.append(model.coef_)
        intercept.append(model.intercept_)
        left = left[~model.inlier_mask_]
    return Found(np.array(coef), np.array(intercept))
