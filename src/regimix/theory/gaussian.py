"""Gaussian features: shapes of Lemmas 5, 6, 16, Theorem 7 and Corollary 8, constants from data.

The paper's statements hold up to constants that it does not give. Here each is a shape (what the
statement says for given constants) and a fit (the best constants for which it covers measured
values). ``regularity_limit`` is what ψ± really tend to, with no constant at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from regimix.theory.checks import count, fraction, matrix, positive
from regimix.theory.regularity import Regularity
from regimix.theory.separation import nearest_distances

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from regimix.theory.affine import AffineCurve
    from regimix.theory.contraction import Contraction

__all__ = [
    "RegularityConstants",
    "affine_constant",
    "affine_shape",
    "contraction_constant",
    "contraction_shape",
    "local_radius",
    "regularity_constants",
    "regularity_limit",
    "regularity_rows",
    "regularity_shape",
    "required_rows",
]

Floats = NDArray[np.float64]


def regularity_limit(share: float) -> tuple[float, float]:
    """Compute the limits of ψ+(k)/k and ψ−(k)/k for x ~ N(0, I), k = share·n and n/d → ∞.

    Along any one direction the squares are those of normal numbers z, and with enough rows all
    directions are alike: the limits are the means of z² over its largest and its smallest values,

    (2qφ(q) + share)/share at q = Φ⁻¹(1 − share/2), and (share − 2qφ(q))/share at
    q = Φ⁻¹((1 + share)/2).

    For small shares they behave like 2 log(1/share) and π share²/6. The second is why Lemma 5,
    which states C_2·share, cannot hold with one C_2 for all shares.

    Parameters
    ----------
    share : float
        c_k = k/n, above 0 and at most 1.

    Returns
    -------
    plus, minus : float
    """
    c = fraction("share", share)
    if c == 1:
        return 1.0, 1.0
    outer, inner = -ndtri(c / 2), ndtri((1 + c) / 2)
    plus = 1 + 2 * outer * _density(outer) / c
    # The difference loses digits for small shares; its series has them.
    minus = 1 - 2 * inner * _density(inner) / c if c > 1e-3 else math.pi * c**2 / 6
    return float(plus), float(minus)


def regularity_shape(
    share: float, c_plus: float = 1.0, c_minus: float = 1.0, *, covariance_bound: float = 1.0
) -> tuple[float, float]:
    """Compute the bounds of Lemma 5 (``lem:support-1``) and Lemma 16 (``lem:support-1-extend``).

    ψ+(k)/k ≤ σ(1 + 3e√(6 log(2/c_k)) + C_1/c_k) and ψ−(k)/k ≥ C_2 c_k.

    Parameters
    ----------
    share : float
        c_k = k/n.
    c_plus, c_minus : float
        C_1 and C_2.
    covariance_bound : float
        σ of Lemma 16, one in Lemma 5. (Lemma 16 leaves its c_{c_k,1} open; that of Lemma 5 is
        taken.)

    Returns
    -------
    plus, minus : float
    """
    c = fraction("share", share)
    sigma = positive("covariance_bound", covariance_bound, lowest=1.0)
    plus = 1 + 3 * math.e * math.sqrt(6 * math.log(2 / c)) + c_plus / c
    return sigma * plus, c_minus * c


@dataclass(frozen=True, eq=False)
class RegularityConstants:
    """C_1 and C_2 of Lemma 5 (or 16) that fit measured ψ±(k)/k.

    Attributes
    ----------
    c_plus, c_minus : float
        The smallest C_1 (0 or more) and the largest C_2 for which the lemma covers every share.
    shares, plus, minus : ndarray of shape (shares,)
        k/n, and ψ±(k)/k as attained by subsets of rows.
    """

    c_plus: float
    c_minus: float
    shares: Floats
    plus: Floats
    minus: Floats


def regularity_constants(
    X: ArrayLike, shares: ArrayLike, *, covariance_bound: float = 1.0, most_directions: int = 2000
) -> RegularityConstants:
    """Measure ψ±(k)/k at several shares k/n and fit the constants of Lemma 5 (or 16).

    Parameters
    ----------
    X : array-like of shape (n, d)
    shares : array-like of shape (shares,)
    covariance_bound : float
        σ of Lemma 16.
    most_directions : int
        Effort, see ``feature_regularity``.
    """
    regularity = Regularity(matrix("X", X), most_directions=most_directions)
    n = len(regularity.X)
    ks = [max(1, round(fraction("shares", c) * n)) for c in np.ravel(np.asarray(shares))]
    plus = np.array([regularity.plus(k).lower / k for k in ks])
    minus = np.array([regularity.minus(k).upper / k for k in ks])
    taken = np.array(ks) / n
    sigma = positive("covariance_bound", covariance_bound, lowest=1.0)
    bare = np.array([regularity_shape(c, 0.0)[0] for c in taken])
    return RegularityConstants(
        c_plus=max(0.0, float(((plus / sigma - bare) * taken).max())),
        c_minus=float((minus / taken).min()),
        shares=taken,
        plus=plus,
        minus=minus,
    )


def regularity_rows(n_features: int, share: float, *, covariance_bound: float = 1.0) -> float:
    """Compute the rows that Lemma 5 (16) asks for, without its constant: d log(σ/c_k)/c_k.

    Parameters
    ----------
    n_features : int
        d.
    share : float
        c_k = k/n; at one the lemma as printed asks for no row.
    covariance_bound : float
        σ.
    """
    c = fraction("share", share)
    sigma = positive("covariance_bound", covariance_bound, lowest=1.0)
    return count("n_features", n_features, 1) * math.log(sigma / c) / c


def required_rows(n_features: int, smallest_share: float) -> float:
    """Compute the rows that Theorems 7 and 11 ask for, without their constant.

    d·max(1, log log d)/τ*_min. The paper prints d log log d/τ*_min, which is not positive below
    d = 3 and smaller than d below 16; a component needs at least d rows.

    Parameters
    ----------
    n_features : int
        d.
    smallest_share : float
        τ*_min.
    """
    d = count("n_features", n_features, 1)
    slow = math.log(math.log(d)) if d > 1 else 0.0
    return d * max(1.0, slow) / fraction("smallest_share", smallest_share)


def affine_shape(delta: float, n: int, constant: float = 1.0) -> float:
    """Compute the bound of Lemma 6 (``lem:help``) on V(Δ): c·max(Δn, log n).

    Parameters
    ----------
    delta : float
        Δ, from 0 (exclusive) to 1.
    n : int
        All rows.
    constant : float
        c.
    """
    rows = count("n", n, 1)
    return constant * max(positive("delta", delta) * rows, math.log(rows))


def affine_constant(curve: AffineCurve, deltas: ArrayLike, n: int) -> float:
    """Compute the smallest c with V(Δ) ≤ c·max(Δn, log n) (Lemma 6) at every Δ given.

    V is taken as found, from below: a larger one would need a larger c.

    Parameters
    ----------
    curve : AffineCurve
    deltas : array-like of shape (deltas,)
    n : int
        All rows.
    """
    values = np.ravel(np.asarray(deltas, dtype=np.float64))
    return max(curve(delta).lower / affine_shape(delta, n) for delta in values)


def contraction_shape(
    delta: float, n: int, *, keep: float, n_corrupted: int = 0, constant: float = 1.0
) -> float:
    """Compute κ_t of Theorem 7 (``thm:local``): c_0/(τn)·(max(Δn, log n) + γ*τ*_min n).

    Parameters
    ----------
    delta : float
        Δ = 2‖θ_t − θ_j‖ / (Q_j ‖θ_j‖).
    n : int
        All rows.
    keep : float
        τ.
    n_corrupted : int
        γ*τ*_min n.
    constant : float
        c_0.
    """
    foreign = affine_shape(delta, n)
    return constant * (foreign + n_corrupted) / (fraction("keep", keep) * n)


def contraction_constant(trace: Sequence[Contraction], n: int, *, keep: float) -> float:
    """Compute the smallest c_0 for which κ_t of Theorem 7 covers every round of a trace.

    Parameters
    ----------
    trace : sequence of Contraction
        From ``contraction_trace``; rounds outside the basin are left out.
    n : int
        All rows.
    keep : float
        τ.
    """
    inside = [step for step in trace if step.in_basin and step.delta > 0]
    shapes = [
        contraction_shape(step.delta, n, keep=keep, n_corrupted=step.n_corrupted) for step in inside
    ]
    return max((step.ratio / s for step, s in zip(inside, shapes, strict=True)), default=0.0)


def local_radius(
    coef: ArrayLike,
    component: int,
    *,
    constant: float = 0.5,
    keep: float = 1.0,
    covariance_bound: float = 1.0,
) -> float:
    """Compute the radius of the local region of Theorem 7 (``thm:local``), Corollary 8 (``cor:1``).

    c_j·min‖θ_j − θ_l‖, and c_j·(τ/σ)·min‖θ_j − θ_l‖ where covariances lie between I and σI.

    Parameters
    ----------
    coef : array-like of shape (m, d)
        The components.
    component : int
        j.
    constant : float
        c_j, which the paper does not give; one half is where Theorem 4 ends.
    keep : float
        τ of the corollary; the theorem has it in its constant.
    covariance_bound : float
        σ.
    """
    rows = matrix("coef", coef)
    nearest = float(nearest_distances(rows)[count("component", component, 0, len(rows) - 1)])
    sigma = positive("covariance_bound", covariance_bound, lowest=1.0)
    return positive("constant", constant) * fraction("keep", keep) / sigma * nearest


def _density(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
