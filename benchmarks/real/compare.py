"""Plain arithmetic that judges everybody alike: labels, densities, least squares, BIC."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

from benchmarks.data import Floats

Labels = NDArray[np.int64]
LOG_TWO_PI = float(np.log(2 * np.pi))


class Normals:
    """A mixture of regressions: shares (k,), noise (k,), theta (k, d + 1), the intercept first."""

    def __init__(self, shares: Floats, noise: Floats, theta: Floats) -> None:
        self.shares, self.noise, self.theta = shares, noise, theta

    def joint(self, X: Floats, y: Floats) -> Floats:
        """Log of share times density of each row under each regime, (n, k)."""
        distance = (y[:, None] - with_ones(X) @ self.theta.T) / self.noise
        density = -(distance**2 + LOG_TWO_PI) / 2 - np.log(self.noise)
        return np.asarray(np.log(self.shares) + density)

    def log_density(self, X: Floats, y: Floats) -> Floats:
        return np.asarray(logsumexp(self.joint(X, y), axis=1))


def with_ones(X: Floats) -> Floats:
    return np.column_stack([np.ones(len(X)), X])


def least_squares(X: Floats, y: Floats, *, corrected: bool = True) -> Normals:
    """Fit one regression with normal noise, its variance over n − rank, or over n."""
    A = with_ones(X)
    solved, _, rank, _ = np.linalg.lstsq(A, y, rcond=None)
    theta = np.asarray(solved, dtype=np.float64)
    residuals = y - A @ theta
    degrees = max(len(y) - int(rank), 1) if corrected else len(y)
    # Rows that a regression fits exactly have a noise of rounding, not none.
    noise = max(float(np.sqrt(residuals @ residuals / degrees)), 1e-9 * float(np.ptp(y)), 1e-300)
    return Normals(np.ones(1), np.array([noise]), theta[None])


def told_partition(X: Floats, y: Floats, labels: Labels) -> Normals:
    """Fit a regression to the rows of each label: what is best once the partition is known."""
    parts = [(labels == j) for j in np.unique(labels)]
    fits = [least_squares(X[rows], y[rows], corrected=False) for rows in parts]
    shares = np.array([rows.mean() for rows in parts])
    noise = np.concatenate([fit.noise for fit in fits])
    return Normals(shares, noise, np.concatenate([fit.theta for fit in fits]))


def bic(model: Normals, X: Floats, y: Floats) -> float:
    """Bayesian information criterion; lower is better."""
    k, columns = model.theta.shape
    free = k * (columns + 1) + k - 1
    return float(free * np.log(len(y)) - 2 * model.log_density(X, y).sum())


def agreement(a: Labels, b: Labels) -> float:
    """Adjusted Rand index; 1 if the labels name the same parts."""
    return float(adjusted_rand_score(a, b))


def all_agree(labels: Sequence[Labels], counts: Sequence[int], least: float) -> bool:
    """Whether all answers have one number of regimes, and labels like those of the first."""
    alike = all(a == b for a, b in pairwise(counts))
    return alike and all(agreement(labels[0], other) > least for other in labels[1:])


def folds(n: int, count: int, seed: int) -> list[NDArray[np.bool_]]:
    """Masks of the rows that are held out, each row once."""
    place = np.random.default_rng(seed).permutation(n) % count
    return [place == fold for fold in range(count)]


def gap_of_lines(X: Floats, a: Floats, b: Floats, noise: float) -> float:
    """Root mean square difference of two lines' predictions, in units of the noise."""
    return float(np.sqrt(np.mean((with_ones(X) @ (a - b)) ** 2)) / noise)


def flagged(inliers: NDArray[np.bool_]) -> tuple[int, ...]:
    """Row numbers, from 1 as R counts, of the rows that are no inliers."""
    return tuple(int(row) + 1 for row in np.flatnonzero(~inliers))


def share(values: Sequence[bool]) -> float:
    """Share that is true; NaN of none."""
    return float(np.mean(values)) if len(values) else float("nan")
