"""Fitted constants: the statement covers what was measured, and with nothing to spare."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from lab.affine_curve import affine_curve
from lab.constants import (
    affine_constant,
    contraction_constant,
    regularity_constants,
    regularity_limit,
)
from lab.contraction import contraction_trace
from regimix import theory
from regimix.synth import make_mlrc


@pytest.mark.parametrize("sigma", [1.0, 4.0])
def test_fitted_constants_cover_what_was_measured(sigma):
    X, _, _ = make_mlrc(400, 2, 2, covariance_bound=sigma, random_state=0)
    shares = [0.1, 0.3, 0.7]
    found = regularity_constants(X, shares, covariance_bound=sigma, most_directions=300)
    assert found.shares == pytest.approx(shares)
    for i, share in enumerate(found.shares):
        plus, minus = theory.regularity_shape(
            share, found.c_plus, found.c_minus, covariance_bound=sigma
        )
        assert found.plus[i] <= plus * (1 + 1e-9)
        assert found.minus[i] >= minus * (1 - 1e-9)
    assert found.c_plus == 0.0  # the bound is loose: nothing needs to be added
    # The largest for which it holds: it is met at one of the shares.
    assert (found.minus / found.shares).min() == pytest.approx(found.c_minus)


def test_a_constant_is_fitted_where_tails_need_one():
    X = np.random.default_rng(0).standard_t(1.1, (500, 1))
    found = regularity_constants(X / np.median(np.abs(X)), [0.02, 0.5], most_directions=1)
    assert found.c_plus > 0
    shapes = [theory.regularity_shape(c, found.c_plus)[0] for c in found.shares]
    assert (found.plus <= np.array(shapes) * (1 + 1e-9)).all()
    assert (found.plus / shapes).max() == pytest.approx(1.0)


def test_the_constant_of_lemma_6_covers_every_ratio():
    rng = np.random.default_rng(0)
    own, other = rng.standard_normal((2, 150, 2))
    curve = affine_curve(own, other, slack=15, most_directions=300)
    deltas = [1e-3, 0.1, 1.0]
    c = affine_constant(curve, deltas, 300)
    ratios = [curve(delta).lower / theory.affine_shape(delta, 300, c) for delta in deltas]
    assert max(ratios) == pytest.approx(1.0)


def test_the_constant_of_theorem_7_covers_every_round():
    X, y, truth = make_mlrc(300, 3, 2, random_state=1)
    keep = 0.45
    trace = contraction_trace(
        X, y, truth.coef, truth.labels, 0, truth.coef[0] + 0.1, keep=keep, most_directions=50
    )
    c = contraction_constant(trace, 300, keep=keep)
    kappa = [theory.contraction_shape(s.delta, 300, keep=keep, constant=c) for s in trace]
    assert all(s.ratio <= k * (1 + 1e-9) for s, k in zip(trace, kappa, strict=True))
    assert max(s.ratio / k for s, k in zip(trace, kappa, strict=True)) == pytest.approx(1.0)


def mean_of_squares(low, high):
    """Integrate z² over low ≤ |z| ≤ high."""
    return 2 * quad(lambda z: z * z * norm.pdf(z), low, high)[0]


@pytest.mark.parametrize("share", [1e-4, 9e-4, 2e-3, 0.05, 0.3, 0.5, 0.9, 0.999])
def test_limits_are_means_over_the_extreme_values(share):
    plus, minus = regularity_limit(share)
    assert plus == pytest.approx(mean_of_squares(norm.isf(share / 2), 12) / share, rel=1e-4)
    assert minus == pytest.approx(
        mean_of_squares(0, norm.ppf((1 + share) / 2)) / share, rel=1e-4, abs=1e-12
    )


def test_all_rows_have_the_mean_square_one():
    assert regularity_limit(1.0) == (1.0, 1.0)


def test_the_lower_constant_of_lemma_5_falls_with_the_share():
    # Lemma 5 states ψ−(k) ≥ C_2 c_k k; even for one direction the truth is π c_k² k / 6.
    constants = [regularity_limit(share)[1] / share for share in (1e-1, 1e-2, 1e-3)]
    assert constants[0] / constants[1] == pytest.approx(10, rel=0.01)
    assert constants[1] / constants[2] == pytest.approx(10, rel=0.01)
    assert regularity_limit(1e-3)[1] == pytest.approx(math.pi * 1e-6 / 6, rel=1e-4)
