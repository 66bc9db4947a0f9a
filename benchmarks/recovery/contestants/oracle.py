"""What a perfect search would give: ILTS grown from the true coefficients of each component."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Floats
from benchmarks.recovery.cells import Cell
from benchmarks.recovery.judge import Found, from_design, with_ones
from benchmarks.recovery.sample import Sample

FIRST, GROWTH = 1.3, 1.2  # the first kept rows in units of the columns, and their growth
ROUNDS = 100  # of one trimmed fit
SCALE_ROUNDS = 20  # of the share and scale of the spike
SMALLEST_SCALE = 1e-9  # of the spread of y: data without noise would score infinity
BACKGROUND = 1.1  # the flat density reaches a little beyond the bulk of y


def oracle_start(cell: Cell, sample: Sample, _seed: int, _budget: float) -> Found:
    """Grow each component from the truth and keep the fit of best evidence."""
    X = with_ones(sample.X, cell.fit_intercept)
    truth = sample.coef
    if cell.fit_intercept:
        truth = np.column_stack([truth, sample.intercept])
    low, high = np.quantile(sample.y, [0.01, 0.99])
    flat = 1 / (BACKGROUND * (high - low))
    return from_design(np.array([_grow(X, sample.y, theta, flat) for theta in truth]), cell)


def _grow(X: Floats, y: Floats, theta: Floats, flat: float) -> Floats:
    rows, columns = X.shape
    best, best_score, size = theta, -np.inf, FIRST * columns
    while size <= rows:
        theta, kept = _trimmed_fit(X, y, theta, int(np.ceil(size)))
        score = _evidence(y - X @ theta, kept, flat, columns)
        if score < best_score:
            break  # past the component's own size; much later a larger one would take over
        best, best_score = theta, score
        size *= GROWTH
    return best


def _trimmed_fit(
    X: Floats, y: Floats, theta: Floats, size: int
) -> tuple[Floats, NDArray[np.int64]]:
    """Iterate least trimmed squares to its fixed point."""
    kept = np.empty(0, dtype=np.int64)
    for _ in range(ROUNDS):
        nearest = np.sort(np.argpartition(np.abs(y - X @ theta), size - 1)[:size])
        if np.array_equal(nearest, kept):
            break
        kept = nearest
        theta = solve(X[kept], y[kept])
    return theta, kept


def solve(X: Floats, y: Floats) -> Floats:
    """Solve least squares by normal equations, and singular ones by the shortest solution."""
    try:
        return np.linalg.solve(X.T @ X, X.T @ y)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(X, y)[0]


def _evidence(residuals: Floats, kept: NDArray[np.int64], flat: float, columns: int) -> float:
    """Score a fit on all rows: a spike and a flat background, against the background alone."""
    rows, smallest = len(residuals), SMALLEST_SCALE / flat
    share = len(kept) / rows
    scale = np.sqrt(np.sum(residuals[kept] ** 2) / max(len(kept) - columns, 1))
    for _ in range(SCALE_ROUNDS):
        scale = max(scale, smallest)
        spike = share / (scale * np.sqrt(2 * np.pi)) * np.exp(-0.5 * (residuals / scale) ** 2)
        inside = spike / (spike + (1 - share) * flat)
        size = inside.sum()
        if size < columns + 2:
            return -np.inf
        share = min(size / rows, 0.999)
        scale = np.sqrt(np.sum(inside * residuals**2) / (size - columns))
    gain = np.sum(np.log(spike + (1 - share) * flat) - np.log(flat))
    return float(gain * (1 - columns / size) - 0.5 * (columns + 2) * np.log(rows))
