"""Normal equations of the kept rows, updated by the rows that moved.

From round to round few rows enter or leave the kept set, so the Gram matrix is corrected by those
rows instead of summed again. The equations are kept for the *next step*: ``gram @ step = moment``
with ``moment`` made of current residuals. Rounding in the Gram matrix therefore only slows the way
to the fixed point a little; it does not move the fixed point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from regimix.engines.base import RowSums

__all__ = ["NormalEquations"]

Floats = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)


# A row of high leverage that enters and leaves again leaves its rounding behind. When the Gram
# matrix has shrunk by this factor since it was summed afresh, it is summed afresh again.
SHRINK_LIMIT = 1e4
# The same after this many times the kept rows have moved: rounding adds up row by row.
TURNOVER_LIMIT = 64.0
# A direction whose share of the (equilibrated) Gram matrix is below this many roundings is empty.
RANK_ROUNDINGS = 16


class NormalEquations:
    """Gram matrix, moment and sum of squares of the kept rows at the current coefficients."""

    def __init__(self, size: int) -> None:
        self.gram: Floats = np.zeros((size, size))
        self.moment: Floats = np.zeros(size)
        self.square = 0.0
        self._peak: Floats = np.zeros(size)
        self._turnover = 0

    def add(self, sums: RowSums, square: float, n_moved: int) -> None:
        """Account for rows that entered and left, with residuals at the current coefficients."""
        self.gram += sums.gram
        self.moment += sums.moment
        self.square += square
        self._turnover += n_moved
        np.maximum(self._peak, np.diag(self.gram), out=self._peak)

    def stale(self, n_kept: float) -> bool:
        """Say whether rounding may have built up so far that fresh sums are due."""
        shrunk = bool((self._peak > SHRINK_LIMIT * np.diag(self.gram)).any())
        return shrunk or self._turnover > TURNOVER_LIMIT * n_kept

    def refresh(self, sums: RowSums) -> None:
        """Start afresh from sums over all kept rows."""
        self.gram, self.moment = sums.gram.copy(), sums.moment.copy()
        self._peak = np.diag(self.gram).copy()
        self._turnover = 0

    def solve(
        self, theta: Floats, afresh: Callable[[], RowSums] | None = None
    ) -> tuple[Floats, int]:
        """Find the least squares solution on the kept rows, seen from the current coefficients.

        Parameters
        ----------
        theta : ndarray of shape (p,)
        afresh : callable, optional
            Sums over all kept rows. Asked for when columns seem to depend on each other: the
            rounding that updates leave behind must not pass for a direction of its own.

        Returns
        -------
        theta : ndarray of shape (p,)
            The solution; the shortest one (in standardised units) if columns depend on each other.
        rank : int
        """
        if afresh is not None and self._turnover:
            diagonal = np.maximum(self.gram.diagonal(), np.finfo(np.float64).tiny)
            noise = float((self._peak / diagonal).max())
            solution = solve_symmetric(self.gram, self.moment, noise)
            if solution is not None:
                return theta + solution, theta.size
            self.refresh(afresh())
        solution = solve_symmetric(self.gram, self.moment)
        if solution is not None:
            return theta + solution, theta.size
        return solve_shortest(self.gram, self.moment + self.gram @ theta)

    def shift(self, step: Floats) -> None:
        """Move to new coefficients: the same rows, with residuals smaller by ``z @ step``."""
        image = self.gram @ step
        self.square += float(step @ image - 2 * (step @ self.moment))
        self.moment -= image


def solve_symmetric(gram: Floats, moment: Floats, noise: float = 1.0) -> Floats | None:
    """Solve ``gram @ x = moment`` by Cholesky factors; None if the matrix is not of full rank.

    Columns are brought to equal length first, so that units do not count as dependence. ``noise``
    says how many times the usual rounding the matrix carries.
    """
    diagonal = gram.diagonal()
    if not diagonal.min() > 0:
        return None
    length = np.sqrt(diagonal)
    scaled = gram / length / length[:, None]
    factor, info = lapack.dpotrf(scaled, lower=1)
    if info != 0:
        return None
    condition, _ = lapack.dpocon(factor, float(np.abs(scaled).sum(axis=0).max()), uplo="L")
    if condition <= RANK_ROUNDINGS * moment.size * EPSILON * noise:
        return None
    solution, _ = lapack.dpotrs(factor, moment / length, lower=1)
    return np.asarray(solution / length)


def solve_shortest(gram: Floats, moment: Floats) -> tuple[Floats, int]:
    """Solve a rank-deficient ``gram @ x = moment`` by its shortest solution, with the rank."""
    diagonal = np.diag(gram)
    length = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(gram / np.outer(length, length))
    usable = values > RANK_ROUNDINGS * moment.size * EPSILON * max(float(values[-1]), 1.0)
    inverse = np.where(usable, 1.0 / np.where(usable, values, 1.0), 0.0)
    solution = (vectors @ (inverse * (vectors.T @ (moment / length)))) / length
    # What the rows leave open, in the original units: drop it.
    open_directions, _ = np.linalg.qr(vectors[:, ~usable] / length[:, None])
    solution -= open_directions @ (open_directions.T @ solution)
    return solution, int(np.count_nonzero(usable))
