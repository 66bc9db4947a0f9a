"""Mix-IRLS (Zilber and Nadler 2023), from its published description; told m and the outliers."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Floats
from benchmarks.recovery.cells import Cell
from benchmarks.recovery.judge import Found, from_design, with_ones
from benchmarks.recovery.sample import Sample

TUNING = 0.5  # ν: residuals of half a scale have weight one half
THRESHOLD, THRESHOLD_STEP, LAST_THRESHOLD = 0.1, 0.1, 0.95  # w_th: rows above it are taken
OVERSAMPLING = 1.0  # ρ, as advised for synthetic data
ROUNDS_ONE, ROUNDS_ALL = 100, 200
SETTLED = 1e-6
NORMAL_MAD = 0.6745
TINY = np.finfo(np.float64).tiny


def mix_irls(cell: Cell, sample: Sample, seed: int, _budget: float) -> Found:
    """Find components one by one, then refine them together."""
    rng = np.random.default_rng(seed)
    X = with_ones(sample.X, cell.fit_intercept)
    coef = _one_by_one(X, sample.y, cell.m, rng)
    return from_design(_together(X, sample.y, coef, cell.outliers), cell)


def _one_by_one(X: Floats, y: Floats, m: int, rng: np.random.Generator) -> Floats:
    """Phase I; with too few rows left for a component, begin again with a higher threshold."""
    columns = X.shape[1]
    threshold = THRESHOLD
    while True:
        active, found = np.arange(len(y)), []
        while len(found) < m and len(active) >= columns:
            weight = _weights(X[active], y[active], rng)
            size = min(len(active), max(columns, int(np.ceil(OVERSAMPLING * columns))))
            top = active[np.argpartition(-weight, size - 1)[:size]]
            found.append(np.linalg.lstsq(X[top], y[top])[0])
            active = active[weight <= threshold]
        if len(found) == m or threshold >= LAST_THRESHOLD:
            missing = rng.standard_normal((m - len(found), columns))
            return np.vstack([*found, missing])
        threshold += THRESHOLD_STEP


def _weights(X: Floats, y: Floats, rng: np.random.Generator) -> Floats:
    """Reweight least squares from a random start until it settles."""
    coef = rng.standard_normal(X.shape[1])
    for _ in range(ROUNDS_ONE):
        residuals = y - X @ coef
        scale = np.median(np.abs(residuals - np.median(residuals))) / NORMAL_MAD + TINY
        weight = 1.0 / (1.0 + (residuals / (TUNING * scale)) ** 2)
        before, coef = coef, _weighted(X, y, weight)
        if _moved(before[None], coef[None]) < SETTLED:
            break
    return weight


def _together(X: Floats, y: Floats, coef: Floats, outliers: float) -> Floats:
    """Phase II: shares of each row, the worst rows dropped, weighted least squares, repeated."""
    rows, columns = X.shape
    dropped = round(outliers * rows)
    for _ in range(ROUNDS_ALL):
        squares = (y[:, None] - X @ coef.T) ** 2 + TINY
        before, coef = coef, coef.copy()
        weights = _shares(squares, dropped)
        for j, weight in enumerate(weights.T):
            mine = np.flatnonzero(weight)
            if len(mine) > columns // 2:
                coef[j] = _weighted(X[mine], y[mine], weight[mine])
        if _moved(before, coef) < SETTLED:
            break
    return coef


def _shares(squares: Floats, dropped: int) -> Floats:
    weights = 1.0 / squares
    weights /= weights.sum(axis=1, keepdims=True)
    weights[weights > 2 / 3] = 1.0
    weights[weights < 1 / squares.shape[1]] = 0.0
    if dropped:
        worst: NDArray[np.int64] = np.argpartition(-squares.min(axis=1), dropped - 1)[:dropped]
        weights[worst] = 0.0
    return weights


def _weighted(X: Floats, y: Floats, weight: Floats) -> Floats:
    block = X * weight[:, None]
    gram, moment = block.T @ X, block.T @ y
    try:
        return np.linalg.solve(gram, moment)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(gram, moment)[0]


def _moved(before: Floats, after: Floats) -> float:
    steps = np.linalg.norm(after - before, axis=1)
    return float((steps / np.maximum(np.linalg.norm(before, axis=1), TINY)).max())
