"""Slow, obvious twins of the hot code, and tables to compare them on.

Everything here is meant to be right at a glance: sorting instead of selection, ``lstsq`` on the
kept rows instead of updated normal equations, all subsets instead of a search.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from regimix.data.problem import Problem
from regimix.synth import make_mlrc

__all__ = [
    "SlowFit",
    "all_subsets_lts",
    "design",
    "fraction_for",
    "kept_by_sorting",
    "kept_weight_by_sorting",
    "least_squares",
    "multi_start_lts",
    "noisy_table",
    "one_regime",
    "plain_engine_rows",
    "random_rotation",
    "repeat_rows",
    "sizes_of_systems",
    "slow_ilts",
]


def kept_by_sorting(values, count):
    """Keep the ``count`` smallest values; a stable sort breaks ties by row order."""
    kept = np.zeros(len(values), dtype=bool)
    kept[np.argsort(values, kind="stable")[:count]] = True
    return kept


def kept_weight_by_sorting(values, weights, mass):
    """Fill up a mass with rows from the smallest value on; the last row may count in part."""
    kept_weight = np.zeros(len(values))
    room = mass
    for row in np.argsort(values, kind="stable"):
        kept_weight[row] = min(weights[row], room)
        room -= kept_weight[row]
        if room <= 0:
            break
    return kept_weight


def repeat_rows(X, y, weights):
    """Write every row as often as its weight says."""
    times = np.asarray(weights, dtype=int)
    return np.repeat(X, times, axis=0), np.repeat(y, times)


def fraction_for(count, total):
    """A keep fraction whose floor is ``count`` of ``total`` for certain."""
    return 1.0 if count >= total else (count + 0.5) / total


def design(X, fit_intercept):
    """The matrix that is really fitted."""
    return np.column_stack([np.ones(len(X)), X]) if fit_intercept else np.asarray(X, float)


def least_squares(A, y, weights=None):
    """Least squares, of minimum norm where the rows leave something open."""
    root = np.ones(len(y)) if weights is None else np.sqrt(weights)
    return np.linalg.lstsq(A * root[:, None], y * root, rcond=None)[0]


@dataclass(frozen=True)
class SlowFit:
    """What ILTS went through: one entry for the start and one for every round."""

    thetas: list
    kept: list
    objective: list
    stopped: str

    @property
    def n_iter(self):
        return len(self.thetas) - 1


def slow_ilts(A, y, theta, count, *, weights=None, max_iter=300):
    """Algorithm 1 word by word: sort, keep, least squares; stop at a kept set met before.

    With ``weights``, ``count`` is a mass and ``kept`` holds the kept weights.
    """
    thetas, kept, objective = [np.asarray(theta, float)], [], []
    for round_ in range(max_iter + 1):
        sizes = np.abs(y - A @ thetas[-1])
        if weights is None:
            now = kept_by_sorting(sizes, count).astype(float)
        else:
            now = kept_weight_by_sorting(sizes, weights, count)
        objective.append(float(now @ sizes**2))
        # A part of a row carries the rounding of the sum that it completes.
        seen = any(np.allclose(now, before, rtol=0, atol=1e-8) for before in kept)
        kept.append(now)
        if seen:
            return SlowFit(thetas, kept, objective, "fixed point")
        if round_ < max_iter:
            thetas.append(least_squares(A, y, now))
    return SlowFit(thetas, kept, objective, "max_iter")


def multi_start_lts(A, y, count, rng, n_starts=30):
    """The smallest objective that plain ILTS reaches from random subsets of p rows."""
    best = np.inf
    for _ in range(n_starts):
        rows = rng.choice(len(y), A.shape[1], replace=False)
        fit = slow_ilts(A, y, least_squares(A[rows], y[rows]), count)
        best = min(best, fit.objective[-1])
    return best


def all_subsets_lts(A, y, count):
    """The least trimmed squares fit by trying every subset of rows."""
    best = (np.inf, None, None)
    for rows in map(list, combinations(range(len(y)), count)):
        theta = least_squares(A[rows], y[rows])
        square = float(np.sum((y[rows] - A[rows] @ theta) ** 2))
        if square < best[0]:
            best = (square, theta, rows)
    return best


def random_rotation(rng, d):
    """A rotation (or reflection) of d-space."""
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def noisy_table(rng, n, d, *, outliers=0.3, noise=0.3):
    """One regime with noise, and rows that have nothing to do with it. No two residuals tie."""
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    wrong = rng.random(n) < outliers
    y[wrong] = 3 * rng.standard_normal(np.count_nonzero(wrong))
    return X, y


def one_regime(seed, n=500, d=3, *, noise=0.1, corruption=0.3, **options):
    """One component, part of its rows corrupted, from the library's own generator."""
    return make_mlrc(n, d, 1, corruption=corruption, noise=noise, random_state=seed, **options)


def plain_engine_rows(X, y, weights=None, *, counts=True):
    """Rows whose standardised units are the user's units, so that numbers can be compared."""
    return Problem.from_standardised(
        np.asarray(X, float), np.asarray(y, float), weights, counts=counts
    )


def sizes_of_systems(monkeypatch):
    """Return a list that grows by the smaller side of each matrix that NumPy factorises."""
    sizes = []
    for name in ("eigh", "eigvalsh", "lstsq", "qr", "solve", "svd"):
        plain = getattr(np.linalg, name)

        def watched(matrix, *more, plain=plain, **options):
            sizes.append(min(np.shape(matrix)[-2:]))
            return plain(matrix, *more, **options)

        monkeypatch.setattr(np.linalg, name, watched)
    return sizes
