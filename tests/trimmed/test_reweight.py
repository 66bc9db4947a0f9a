"""From trimmed to efficient: scales that are right at the normal law, rows that agree with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.trimmed.reweight import CUTOFF, consistent_scale, reweight, truncation_factor
from tests.oracles import least_squares, one_regime, plain_engine_rows, repeat_rows

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=30, deadline=None)


def truncated_variance(cutoff):
    """By integration."""
    square = quad(lambda r: r**2 * stats.norm.pdf(r), -cutoff, cutoff)[0]
    return square / (2 * stats.norm.cdf(cutoff) - 1)


@pytest.mark.parametrize("cutoff", [0.1, 0.5, 1.0, 2.0, CUTOFF, 4.0, 8.0])
def test_the_factor_undoes_the_truncation(cutoff):
    expected = 1 / np.sqrt(truncated_variance(cutoff))
    np.testing.assert_allclose(truncation_factor(cutoff), expected, rtol=1e-5)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.75, 0.99, 1.0])
def test_the_scale_is_that_of_the_whole_normal_law(keep):
    n, sigma = 1e9, 3.0
    edge = stats.norm.ppf((1 + keep) / 2) if keep < 1 else np.inf
    square = n * quad(lambda r: r**2 * stats.norm.pdf(r), -edge, edge)[0]
    found = consistent_scale(sigma**2 * square, keep * n, n, 5)
    np.testing.assert_allclose(found, sigma, rtol=1e-6)


def test_fitted_coefficients_count():
    """Keeping everything: the unbiased estimate of least squares."""
    assert consistent_scale(90.0, 10.0, 10.0, 1) == pytest.approx(np.sqrt(10.0))
    assert consistent_scale(0.0, 5.0, 10.0, 1) == 0.0
    assert np.isfinite(consistent_scale(1.0, 3.0, 10.0, 7))  # fewer rows than coefficients


@settings(max_examples=15, deadline=None)
@given(seeds, st.floats(0.85, 1.2), st.floats(-0.02, 0.02))
def test_rows_scale_and_coefficients_agree(seed, wrong_scale, wrong_slope):
    """From any fair guess: inliers are the rows within the cutoff, coefficients their fit."""
    X, y, truth = one_regime(seed, n=3000, d=3, noise=0.1, norms=1.0)
    problem = plain_engine_rows(X, y)
    clean = ~truth.corrupted
    found = reweight(MemoryEngine(problem), truth.coef[0] + wrong_slope, 0.1 * wrong_scale)
    # 2100 clean rows; what gross errors slip in or good rows fall out changes little.
    assert abs(found.scale / 0.1 - 1) <= 0.15
    oracle = least_squares(X[clean], y[clean])
    assert np.abs(found.theta - oracle).max() <= 0.02
    residuals = np.abs(y - X @ found.theta)
    np.testing.assert_array_equal(found.inliers, residuals <= CUTOFF * found.scale)
    assert found.inliers[clean].mean() >= 0.95
    assert found.inliers[~clean].mean() <= 0.15


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_the_scale_of_a_clean_table_is_the_deviation_of_its_noise(seed):
    """Not that of the rows within the cutoff, which is smaller by a twentieth."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((40_000, 1)), 3 * rng.standard_normal(40_000)
    found = reweight(MemoryEngine(plain_engine_rows(X, y)), np.zeros(1), 3.0)
    assert abs(found.scale / 3 - 1) <= 0.025  # seven standard errors


@few
@given(seeds)
def test_an_exact_fit_keeps_exactly_its_rows(seed):
    X, y, truth = one_regime(seed, n=200, d=3, noise=0.0)
    found = reweight(MemoryEngine(plain_engine_rows(X, y)), truth.coef[0], 0.0)
    assert found.scale <= 1e-13
    np.testing.assert_array_equal(found.inliers, ~truth.corrupted)
    np.testing.assert_allclose(found.theta, truth.coef[0], atol=1e-12)


@few
@given(seeds)
def test_whole_weights_equal_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    X, y, truth = one_regime(seed, n=150, d=2, noise=0.1)
    weights = rng.integers(0, 4, 150)
    X_long, y_long = repeat_rows(X, y, weights)
    problems = (
        Problem.from_standardised(X, y, weights.astype(float)),
        Problem.from_standardised(X_long, y_long),
    )
    one, other = (reweight(MemoryEngine(p), truth.coef[0], 0.1) for p in problems)
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-9)
    np.testing.assert_allclose(one.scale, other.scale, rtol=1e-9)
    np.testing.assert_array_equal(np.repeat(one.inliers, weights), other.inliers)


def test_nothing_within_the_cutoff_does_no_harm():
    X, y, truth = one_regime(0, n=50, d=2, noise=0.1)
    found = reweight(MemoryEngine(plain_engine_rows(X, y)), truth.coef[0], 1e-12)
    assert np.isfinite(found.theta).all()
    assert np.isfinite(found.scale)
