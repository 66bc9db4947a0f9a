"""The constants that the paper leaves open, fitted to measured values (Lemmas 5, 6, Theorem 7).

``regularity_limit`` is what ψ± of Lemma 5 tend to, with no constant at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from lab.affine_curve import AffineCurve
from lab.contraction import Contraction
from regimix.data.validation import read_matrix
from regimix.theory import Regularity, affine_shape, contraction_shape, regularity_shape
from regimix.theory.definitions import fraction, positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "RegularityConstants",
    "affine_constant",
    "contraction_constant",
    "regularity_constants",
    "regularity_limit",
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
    """
    c = fraction("share", share)
    if c == 1:
        return 1.0, 1.0

    def part(q: float) -> float:
        """Compute 2qφ(q)/share."""
        return 2 * q * math.exp(-0.5 * q * q) / math.sqrt(2 * math.pi) / c

    # The difference loses digits for small shares; its series has them.
    minus = 1 - part(ndtri((1 + c) / 2)) if c > 1e-3 else math.pi * c**2 / 6
    return float(1 + part(-ndtri(c / 2))), float(minus)


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
        Effort, see ``theory.feature_regularity``.
    """
    regularity = Regularity(read_matrix("X", X), most_directions=most_directions)
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


def affine_constant(curve: AffineCurve, deltas: ArrayLike, n: int) -> float:
    """Compute the smallest c with V(Δ) ≤ c·max(Δn, log n) (Lemma 6) at every Δ given; n rows.

    V is taken as found, from below: a larger one would need a larger c.
    """
    values = np.ravel(np.asarray(deltas, dtype=np.float64))
    return max(curve(delta).lower / affine_shape(delta, n) for delta in values)


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
