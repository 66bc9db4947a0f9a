"""What fourth moments certify about all directions at once.

For squares s_i = (x_i·v)² along a unit vector v and any number c, Cauchy's inequality gives

- the k largest add up to at most kc + √(k F(c)),
- the k smallest add up to at least kc − √(k F(c)),

with F(c) = max over v of Σ_i (s_i − c)². That sum is the quadratic form of a matrix at the tensor
v⊗v, so a largest eigenvalue bounds it; and since v⊗v has trace one, any multiple of "trace squared
minus one" may be subtracted first, which makes the bound sharp for Gaussian rows (F(0) = 3n).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.optimize import minimize_scalar

__all__ = ["MOST_FEATURES", "FourthMoments"]

Floats = NDArray[np.float64]

# The matrix has d(d + 1)/2 rows: 300 at this many features.
MOST_FEATURES = 24
# Largest eigenvalues that are computed to bound one F(c).
EVALUATIONS = 15
# Rows whose tensors are made at a time.
CHUNK = 4096
# Centres c that are tried, in units of the mean square; any would give a valid bound.
CENTRES = (0.0, 0.25, 0.5, 1.0, 4.0)


class FourthMoments:
    """Certified bounds on sums of extreme squares, from the fourth moments of rows (n, d)."""

    def __init__(self, X: Floats) -> None:
        n, d = X.shape
        first, second = np.triu_indices(d)
        # Off the diagonal, x_a x_b stands for two entries of the tensor.
        weight = np.where(first == second, 1.0, np.sqrt(2.0))
        fourth = np.zeros((first.size, first.size))
        for start in range(0, n, CHUNK):
            rows = X[start : start + CHUNK]
            tensors = rows[:, first] * rows[:, second] * weight
            fourth += tensors.T @ tensors
        self.n = n
        self._fourth = fourth
        self._second = (X.T @ X)[first, second] * weight
        self._trace = (first == second).astype(np.float64)
        self._mean = max(float(self._second @ self._trace) / (n * d), np.finfo(np.float64).tiny)
        self._bounds: dict[float, float] = {}

    def spread(self, centre: float) -> float:
        """Bound F(c), the largest Σ_i ((x_i·v)² − c)² over unit vectors v."""
        if centre not in self._bounds:
            mixed = centre * np.outer(self._second, self._trace)
            matrix = self._fourth - mixed - mixed.T
            # On tensors v⊗v the trace form is one, so α comes back whole. Any α will do.
            outer, last = np.outer(self._trace, self._trace), len(matrix) - 1

            def bound(alpha: float) -> float:
                shifted = matrix - alpha * outer
                return float(eigvalsh(shifted, subset_by_index=[last, last])[0]) + alpha

            scale = float(np.trace(matrix)) / len(matrix) * self._trace.sum()
            width = abs(scale) + self.n * self._mean**2
            found = minimize_scalar(
                bound,
                bounds=(-2 * width, 4 * width),
                method="bounded",
                options={"maxiter": EVALUATIONS},
            )
            self._bounds[centre] = max(0.0, float(found.fun) + self.n * centre**2)
        return self._bounds[centre]

    def largest_sum(self, k: int) -> float:
        """Bound the sum of the k largest squares along any unit vector from above."""
        return min(k * c + math.sqrt(k * self.spread(c)) for c in self._centres())

    def smallest_sum(self, k: int) -> float:
        """Bound the sum of the k smallest squares along any unit vector from below."""
        return max(0.0, *(k * c - math.sqrt(k * self.spread(c)) for c in self._centres()))

    def _centres(self) -> list[float]:
        return [c * self._mean for c in CENTRES]

    def heaviest_directions(self) -> Floats:
        """Find unit vectors along which fourth moments are large, as columns (d, directions).

        The tensors of largest form are not of the shape v⊗v; their eigenvectors are near.
        """
        d = int(self._trace.sum())
        first, second = np.triu_indices(d)
        vectors = np.linalg.eigh(self._fourth)[1][:, -2 * d :]
        found = [np.eye(d)]
        for vector in vectors.T:
            tensor = np.zeros((d, d))
            tensor[first, second] = vector / np.where(first == second, 1.0, np.sqrt(2.0))
            tensor = tensor + tensor.T - np.diag(np.diag(tensor))
            found.append(np.linalg.eigh(tensor)[1][:, [0, -1]])
        return np.hstack(found)
