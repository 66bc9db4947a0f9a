"""Evidence of one regression by sums over grids: slow, and right at a glance.

Nothing is integrated in closed form. The grid over the coefficients only has to be where the
integrand is: it is laid around the best coefficients, as wide as rows and prior let them vary.
"""

from dataclasses import dataclass

import numpy as np

from regimix.model.evidence import Prior, Sums

# Half the width of the grid over coefficients, in deviations, and its step.
REACH, STEP = 8.0, 0.8
# Nodes over the logarithm of the precision.
NODES = 240


@dataclass(frozen=True)
class Rows1:
    """Rows of one component: responsibilities count rows, and tails scale their squares."""

    X: np.ndarray
    y: np.ndarray
    count: np.ndarray
    tail: np.ndarray

    def sums(self, coef):
        """Sums over the rows with residuals at some coefficients, by plain loops."""
        width = self.X.shape[1]
        size, square = 0.0, 0.0
        gram, moment = np.zeros((width, width)), np.zeros(width)
        for x, y, count, tail in zip(self.X, self.y, self.count, self.tail, strict=True):
            left = y - x @ coef
            size += count
            gram += count * tail * np.outer(x, x)
            moment += count * tail * left * x
            square += count * tail * left**2
        return Sums(np.array(size), gram, moment, np.array(square), np.asarray(coef, float))

    def take(self, index):
        """Some of the rows."""
        return Rows1(self.X[index], self.y[index], self.count[index], self.tail[index])


def some_rows(rng, n, width, *, noise=0.3, fractions=True, tails=False):
    """Draw rows of a line, with responsibilities."""
    X = rng.standard_normal((n, width))
    if width > 1:
        X[:, 0] = 1.0
    y = X @ rng.standard_normal(width) + noise * rng.standard_normal(n)
    count = rng.uniform(0.05, 1.0, n) if fractions else np.ones(n)
    tail = rng.uniform(0.2, 1.3, n) if tails else np.ones(n)
    return Rows1(X, y, count, tail)


def wide_prior(width, smallest_noise=1e-3, deviation=None):
    """A prior with noise between this deviation and 10."""
    deviation = np.linspace(2.0, 1.0, width) if deviation is None else np.asarray(deviation)
    span = (-2 * np.log(10.0), -2 * np.log(smallest_noise))
    return Prior(deviation, span, np.log(33.0))


@dataclass(frozen=True)
class Brute:
    """Sums over the grid: evidence, and points with their posterior probability."""

    log_evidence: float
    mass: np.ndarray
    beta: np.ndarray
    log_tau: np.ndarray

    def mean(self, values):
        """Posterior mean of what is given at every point of the grid."""
        return float((self.mass * values).sum())


def brute_force_alike(rows, prior, log_evidence):
    """Sum over the grid at the order of magnitude that some evidence belongs to."""
    orders = [brute_force(rows, prior, order) for order in range(4)]
    return min(orders, key=lambda grid: abs(grid.log_evidence - float(log_evidence)))


def brute_force(rows, prior, order=0):
    """Integrate over coefficients (1 or 2 of them) and log precision on a grid.

    ``order`` is the order of magnitude by which coefficients may exceed the prior's.
    """
    X, y = rows.X, rows.y
    width = X.shape[1]
    deviation = prior.deviation * 10.0**order
    low, high = prior.log_precision
    nodes, node_weights = np.polynomial.legendre.leggauss(NODES)
    log_tau = low + (high - low) * (nodes + 1) / 2
    steps = np.arange(-REACH, REACH + STEP / 2, STEP)
    z = np.stack([axis.ravel() for axis in np.meshgrid(*[steps] * width)], axis=1)
    weight = rows.count * rows.tail
    curvature = (X * weight[:, None]).T @ X
    log_mass, points = [], []
    for u, w in zip(log_tau, node_weights, strict=True):
        tau = np.exp(u)
        precision = tau * curvature + np.diag(deviation**-2.0)
        root = np.linalg.inv(np.linalg.cholesky(precision)).T
        middle = np.linalg.solve(precision, tau * (X * weight[:, None]).T @ y)
        beta = middle + z @ root.T
        left = y - beta @ X.T
        log_like = 0.5 * rows.count.sum() * (u - np.log(2 * np.pi)) - 0.5 * tau * left**2 @ weight
        log_prior = -0.5 * ((beta / deviation) ** 2).sum(axis=1)
        log_prior -= np.log(deviation).sum() + 0.5 * width * np.log(2 * np.pi)
        cell = width * np.log(STEP) + np.linalg.slogdet(root)[1]
        log_mass.append(log_like + log_prior + cell + np.log(w * (high - low) / 2))
        points.append(beta)
    log_mass = np.stack(log_mass)
    top = log_mass.max()
    mass = np.exp(log_mass - top)
    total = mass.sum()
    probability = np.log(0.9) - order * np.log(10.0)
    log_evidence = top + np.log(total) - prior.log_span + probability
    return Brute(float(log_evidence), mass / total, np.stack(points), log_tau)
