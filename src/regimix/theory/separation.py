"""How far the linear models lie apart (Definition 1, ``def:separation``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist

from regimix.theory.checks import matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["local_separation", "nearest_distances", "separation"]


def separation(coef: ArrayLike) -> float:
    """Compute Q, the largest that Definition 1 (i) (``def:separation``) allows.

    The smallest distance between two components over the largest norm of one.

    Parameters
    ----------
    coef : array-like of shape (m, d)
        The components, one per row.

    Returns
    -------
    float
        At most 2; infinite for one component, zero where two coincide.
    """
    rows = matrix("coef", coef)
    nearest, longest = float(nearest_distances(rows).min()), _norms(rows).max()
    return nearest / float(longest) if nearest > 0 else 0.0


def local_separation(coef: ArrayLike) -> NDArray[np.float64]:
    """Compute Q_j of each component (Definition 1 (ii), ``def:separation``).

    The distance to the nearest other component over the component's own norm; Q ≤ Q_j.

    Parameters
    ----------
    coef : array-like of shape (m, d)
        The components, one per row.

    Returns
    -------
    ndarray of shape (m,)
        Infinite for one component, and for a component of norm zero apart from all others.
    """
    rows = matrix("coef", coef)
    nearest, norms = nearest_distances(rows), _norms(rows)
    ratio = np.where(nearest > 0, np.inf, 0.0)
    np.divide(nearest, norms, out=ratio, where=norms > 0)
    return ratio


def nearest_distances(coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of each component to the nearest other, infinite if there is none."""
    distances = cdist(coef, coef)
    np.fill_diagonal(distances, np.inf)
    nearest: NDArray[np.float64] = distances.min(axis=1)
    return nearest


def _norms(coef: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.norm(coef, axis=1))
