"""The paper's bounds as functions, with the constants that it does not give as arguments.

Gaussian features: Lemmas 5, 6, 16, Theorem 7 and Corollary 8. The global algorithm: Theorem 11.
Everywhere ``share`` is c_k = k/n, ``keep`` is τ, ``coef`` holds the components as rows (m, d), and
``covariance_bound`` is σ ≥ 1 of Lemma 16 and Corollary 8, where covariances lie between I and σI
(one elsewhere).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from regimix.data.validation import read_matrix
from regimix.errors import ParameterError, read_count
from regimix.synth import nearest_distances
from regimix.theory.definitions import fraction, positive, separation


def regularity_shape(
    share: float, c_plus: float = 1.0, c_minus: float = 1.0, *, covariance_bound: float = 1.0
) -> tuple[float, float]:
    """Compute the bounds of Lemma 5 (``lem:support-1``) and Lemma 16 (``lem:support-1-extend``).

    ψ+(k)/k ≤ σ(1 + 3e√(6 log(2/c_k)) + C_1/c_k) and ψ−(k)/k ≥ C_2 c_k, with C_1 and C_2 as
    ``c_plus`` and ``c_minus``. (Lemma 16 leaves its c_{c_k,1} open; that of Lemma 5 is taken.)
    """
    c = fraction("share", share)
    sigma = positive("covariance_bound", covariance_bound, lowest=1.0)
    plus = 1 + 3 * math.e * math.sqrt(6 * math.log(2 / c)) + c_plus / c
    return sigma * plus, c_minus * c


def regularity_rows(n_features: int, share: float, *, covariance_bound: float = 1.0) -> float:
    """Compute the rows that Lemma 5 (16) asks for, without its constant: d log(σ/c_k)/c_k.

    At a share of one the lemma as printed asks for no row.
    """
    c = fraction("share", share)
    sigma = positive("covariance_bound", covariance_bound, lowest=1.0)
    return read_count("n_features", n_features, 1) * math.log(sigma / c) / c


def required_rows(n_features: int, smallest_share: float) -> float:
    """Compute the rows that Theorems 7 and 11 ask for, without their constant.

    d·max(1, log log d)/τ*_min. The paper prints d log log d/τ*_min, which is not positive below
    d = 3 and smaller than d below 16; a component needs at least d rows.
    """
    d = read_count("n_features", n_features, 1)
    slow = math.log(math.log(d)) if d > 1 else 0.0
    return d * max(1.0, slow) / fraction("smallest_share", smallest_share)


def affine_shape(
    delta: float, n: int, constant: float = 1.0, *, n_features: int | None = None
) -> float:
    """Compute the bound of Lemma 6 (``lem:help``) on V(Δ) among n rows: c·max(Δn, log n).

    That is the lemma as printed, which fails: d − 1 rows slip in whatever Δ is. Given d as
    ``n_features``, compute c·max(Δn, d log(en/d)), which the uniform bound of Vapnik and
    Chervonenkis for relative deviations proves (with some c), since slabs ``|x·v| ≤ t`` have a
    dimension of the order of d.
    """
    rows = read_count("n", n, 1)
    floor = math.log(rows)
    if n_features is not None:
        d = min(read_count("n_features", n_features, 1), rows)
        floor = d * math.log(math.e * rows / d)
    return constant * max(positive("delta", delta) * rows, floor)


def contraction_shape(
    delta: float, n: int, *, keep: float, n_corrupted: int = 0, constant: float = 1.0
) -> float:
    """Compute κ_t of Theorem 7 (``thm:local``): c_0/(τn)·(max(Δn, log n) + γ*τ*_min n).

    Δ = 2‖θ_t − θ_j‖ / (Q_j ‖θ_j‖), and γ*τ*_min n is ``n_corrupted``.
    """
    foreign = affine_shape(delta, n)
    return constant * (foreign + n_corrupted) / (fraction("keep", keep) * n)


def local_radius(
    coef: ArrayLike,
    component: int,
    *,
    constant: float = 0.5,
    keep: float = 1.0,
    covariance_bound: float = 1.0,
) -> float:
    """Compute the radius of the local region of Theorem 7 (``thm:local``), Corollary 8 (``cor:1``).

    c_j·min‖θ_j − θ_l‖ for component j, and c_j·(τ/σ)·min‖θ_j − θ_l‖ in the corollary (the theorem
    has τ in its constant). The paper does not give c_j; one half is where Theorem 4 ends.
    """
    rows = read_matrix("coef", coef)
    nearest = float(nearest_distances(rows)[read_count("component", component, 0, len(rows) - 1)])
    sigma = positive("covariance_bound", covariance_bound, lowest=1.0)
    return positive("constant", constant) * fraction("keep", keep) / sigma * nearest


def net_size_bound(dimensions: int, radius: float, granularity: float) -> float:
    """Bound the points of an ε-net by (3R/ε)^m̃, as the proof of Theorem 11 (``thm:global``) does.

    m̃ is the dimension of the subspace, R the largest norm of a component; one point does where
    ε ≥ R.
    """
    size = read_count("dimensions", dimensions, 1)
    share = positive("granularity", granularity) / positive("radius", radius)
    return _power(3 / share, size) if share < 1 else 1.0


def basin_granularity(coef: ArrayLike, *, keep: float, constant: float = 1.0) -> float:
    """Compute the granularity of the net of Theorem 11: half the radius of the smallest basin.

    Half of ``constant``·τ·min‖θ_j − θ_l‖. The other half is left for the subspace, which must then
    miss no component by more (the theorem states ε = c·min τ_j/2 for that, a number without the
    distances; see the findings in the documentation). The constant is c_2·c_{cτ,2}/c_{cτ,1} of the
    proof, which is not known; fit it to observed basins.
    """
    nearest = float(nearest_distances(read_matrix("coef", coef)).min())
    return positive("constant", constant) * fraction("keep", keep) * nearest / 2


def start_count(
    coef: ArrayLike, *, keep: float, constant: float = 1.0, dimensions: int | None = None
) -> float:
    """Bound the starts that Theorem 11 (``thm:global``) tries: (6 / (c τ Q))^m̃.

    The net of ``basin_granularity`` over the ball that holds all components, by ``net_size_bound``:
    its (1/(τQ))^O(m) with the constants spelt out. By default m̃ is the number of components, or of
    features if that is less.
    """
    rows = read_matrix("coef", coef)
    size = min(rows.shape) if dimensions is None else read_count("dimensions", dimensions, 1)
    apart = separation(rows) * fraction("keep", keep) * positive("constant", constant)
    if apart == 0:
        return np.inf
    return _power(6 / apart, size) if apart < 2 else 1.0


def starts_for_confidence(success: float, confidence: float = 0.99) -> float:
    """Compute how many random starts reach a component at least once, with given confidence.

    ``success`` is the chance that one start reaches it; 0 needs infinitely many.
    """
    if not (0 <= success <= 1 and 0 < confidence < 1):
        raise ParameterError(
            "success must be from 0 to 1 and confidence between 0 and 1; got "
            f"success={success!r}, confidence={confidence!r}."
        )
    if success in (0, 1):
        return 1.0 if success else np.inf
    return float(max(1, math.ceil(math.log1p(-confidence) / math.log1p(-success) - 1e-9)))


def _power(base: float, exponent: int) -> float:
    """Raise to a power that may be too large to write."""
    logarithm = exponent * math.log(base)
    return math.exp(logarithm) if logarithm < math.log(np.finfo(np.float64).max) else np.inf
