"""Subspaces, nets and starts of the global algorithm (Definition 9, Theorem 11).

ε-recovery (Definition 10) is in `regimix.metrics`: ``recovery_error`` and ``is_recovery``. The net
that Algorithm 2 really walks is laid, and counted exactly, by ``search.net.lay_net``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from regimix.errors import ParameterError
from regimix.theory.checks import count, fraction, matrix, positive
from regimix.theory.separation import nearest_distances, separation

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "basin_granularity",
    "net_size_bound",
    "start_count",
    "starts_for_confidence",
    "subspace_distance",
]

# Directions with less than this share of the largest singular value are not spanned.
RANK_TOLERANCE = 1e-10


def subspace_distance(basis: ArrayLike, coef: ArrayLike) -> float:
    """Compute the smallest ε for which a subspace is ε-close (Definition 9, ``def:subspace``).

    ‖(I − ÛÛᵀ)U_m‖, the sine of the largest angle between the span of the components and the
    subspace.

    Parameters
    ----------
    basis : array-like of shape (d, r)
        Columns that span the subspace Û; need not be orthonormal.
    coef : array-like of shape (m, d)
        The components, one per row; they span U_m.

    Returns
    -------
    float
        Between 0 (all components lie in the subspace) and 1.
    """
    columns = matrix("basis", basis)
    found = _orthonormal(columns)
    wanted = _orthonormal(matrix("coef", coef, len(columns)).T)
    if wanted.shape[1] == 0:
        return 0.0
    outside = wanted - found @ (found.T @ wanted)
    return min(1.0, float(np.linalg.norm(outside, 2)))


def net_size_bound(dimensions: int, radius: float, granularity: float) -> float:
    """Bound the points of an ε-net by (3R/ε)^m̃, as the proof of Theorem 11 (``thm:global``) does.

    Parameters
    ----------
    dimensions : int
        m̃, of the subspace.
    radius, granularity : float
        R, the largest norm of a component, and ε; one point does where ε ≥ R.
    """
    size = count("dimensions", dimensions, 1)
    share = positive("granularity", granularity) / positive("radius", radius)
    return _power(3 / share, size) if share < 1 else 1.0


def basin_granularity(coef: ArrayLike, *, keep: float, constant: float = 1.0) -> float:
    """Compute the granularity of the net of Theorem 11: half the radius of the smallest basin.

    Half of ``constant``·τ·min‖θ_j − θ_l‖. The other half is left for the subspace, which must then
    miss no component by more (the theorem states ε = c·min τ_j/2 for that, a number without the
    distances; see the findings in the documentation).

    Parameters
    ----------
    coef : array-like of shape (m, d)
        The components.
    keep : float
        τ.
    constant : float
        c_2·c_{cτ,2}/c_{cτ,1} of the proof, which is not known; fit it to observed basins.
    """
    rows = matrix("coef", coef)
    nearest = float(nearest_distances(rows).min())
    return positive("constant", constant) * fraction("keep", keep) * nearest / 2


def start_count(
    coef: ArrayLike, *, keep: float, constant: float = 1.0, dimensions: int | None = None
) -> float:
    """Bound the starts that Theorem 11 (``thm:global``) tries: (6 / (c τ Q))^m̃.

    The net of ``basin_granularity`` over the ball that holds all components, by ``net_size_bound``:
    its (1/(τQ))^O(m) with the constants spelt out.

    Parameters
    ----------
    coef, keep, constant
        As for ``basin_granularity``.
    dimensions : int, optional
        m̃ of the subspace; default: the number of components, or of features if that is less.
    """
    rows = matrix("coef", coef)
    size = min(rows.shape) if dimensions is None else count("dimensions", dimensions, 1)
    apart = separation(rows) * fraction("keep", keep) * positive("constant", constant)
    if apart == 0:
        return np.inf
    return _power(6 / apart, size) if apart < 2 else 1.0


def starts_for_confidence(success: float, confidence: float = 0.99) -> float:
    """Compute how many random starts hit at least once, with the given confidence.

    Parameters
    ----------
    success : float
        Chance that one start reaches the component; 0 needs infinitely many.
    confidence : float
        Below one.
    """
    if not (0 <= success <= 1 and 0 < confidence < 1):
        raise ParameterError(
            "success must be from 0 to 1 and confidence between 0 and 1; got "
            f"success={success!r}, confidence={confidence!r}."
        )
    if success in (0, 1):
        return 1.0 if success else np.inf
    return float(max(1, math.ceil(math.log1p(-confidence) / math.log1p(-success) - 1e-9)))


def _orthonormal(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return an orthonormal basis of what columns span."""
    vectors, values, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(vectors[:, values > RANK_TOLERANCE * max(values.max(initial=0.0), 1e-300)])


def _power(base: float, exponent: int) -> float:
    """Raise to a power that may be too large to write."""
    logarithm = exponent * math.log(base)
    return math.exp(logarithm) if logarithm < math.log(np.finfo(np.float64).max) else np.inf
