"""Growing and evidence: size, noise and existence of a component come out of the data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix.engines.memory import MemoryEngine
from regimix.trimmed.evidence import Background, weigh_spikes
from regimix.trimmed.grow import grow
from tests.oracles import least_squares, one_regime, plain_engine_rows

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=30, deadline=None)


def spike_table(rng, n, share, scale):
    """Residuals of which a share is a spike; the others are as wide as the response."""
    y = rng.uniform(-5, 5, n)
    inside = rng.random(n) < share
    return y, np.where(inside, scale * rng.standard_normal(n), y)


def weigh(y, residuals, weights=None, n_columns=2, level=0.3):
    weights = np.ones(len(y)) if weights is None else weights
    edge = np.array([np.quantile(np.abs(residuals), level)])
    background = Background.of(y, weights)
    return weigh_spikes(residuals[None, :], weights, background, edge, n_columns)


# --- evidence -------------------------------------------------------------------------------------


@few
@given(seeds, st.floats(0.2, 0.9), st.floats(-4, -1))
def test_share_and_scale_of_a_spike_are_found(seed, share, power):
    n, scale = 3000, 10.0**power
    # As a trimmed fit that keeps a part of the spike would ask.
    spike = weigh(*spike_table(np.random.default_rng(seed), n, share, scale), level=0.7 * share)
    # Seven standard errors of a share, and of a deviation of the rows inside: no seed gets there.
    assert abs(spike.share[0] - share) <= 7 * np.sqrt(share * (1 - share) / n) + 0.01
    assert abs(spike.scale[0] / scale - 1) <= 7 / np.sqrt(2 * share * n) + 0.05
    assert spike.evidence[0] > 0


@few
@given(seeds, st.integers(100, 1000))
def test_residuals_as_wide_as_the_response_are_no_evidence(seed, n):
    y = np.random.default_rng(seed).standard_normal(n)
    assert weigh(y, y, n_columns=3, level=0.5).evidence[0] < 0


@few
@given(seeds, st.floats(-8, 8))
def test_units_do_not_matter(seed, power):
    y, residuals = spike_table(np.random.default_rng(seed), 400, 0.5, 0.02)
    one, other = weigh(y, residuals), weigh(10.0**power * y, 10.0**power * residuals)
    np.testing.assert_allclose(other.share, one.share, rtol=1e-6)
    np.testing.assert_allclose(other.scale, 10.0**power * one.scale, rtol=1e-6)
    np.testing.assert_allclose(other.evidence, one.evidence, rtol=1e-6)


@few
@given(seeds)
def test_weights_count_rows_and_order_does_not(seed):
    rng = np.random.default_rng(seed)
    y, residuals = spike_table(rng, 300, 0.5, 0.05)
    weights = rng.integers(0, 4, 300)
    row = rng.permutation(np.repeat(np.arange(300), weights))
    edge = np.array([0.05])
    one = weigh_spikes(
        residuals[None, :], weights.astype(float), Background.of(y, weights.astype(float)), edge, 2
    )
    ones = np.ones(row.size)
    other = weigh_spikes(residuals[None, row], ones, Background.of(y[row], ones), edge, 2)
    for name in ("share", "scale", "evidence"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9)


@few
@given(seeds, st.integers(2, 40))
def test_more_coefficients_are_less_evidence(seed, more):
    """d rows are fitted for free, and every coefficient has its price."""
    y, residuals = spike_table(np.random.default_rng(seed), 300, 0.5, 0.05)
    assert (
        weigh(y, residuals, n_columns=1 + more).evidence < weigh(y, residuals, n_columns=1).evidence
    )


def test_an_exact_fit_scores_a_finite_number():
    y = np.random.default_rng(0).uniform(-1, 1, 200)
    residuals = np.where(np.arange(200) < 120, 0.0, y)
    spike = weigh(y, residuals)
    assert np.isfinite(spike.evidence[0])
    assert spike.evidence[0] > 0
    assert 0 < spike.scale[0] <= 1e-7
    assert abs(spike.share[0] - 0.6) < 0.01


def test_a_spike_of_hardly_more_rows_than_coefficients_is_nothing():
    rng = np.random.default_rng(1)
    y = rng.uniform(-1, 1, 100)
    residuals = np.where(np.arange(100) < 10, 0.0, 50 * y)
    assert weigh(y, residuals, n_columns=10, level=0.08).evidence[0] == -np.inf


@pytest.mark.parametrize("y", [np.zeros(50), np.full(50, 3.0), np.arange(50) % 2.0])
def test_a_response_of_few_values_has_a_background(y):
    background = Background.of(y.astype(float), np.ones(50))
    assert np.isfinite(background.flat)
    assert background.smallest_scale > 0


# --- growing --------------------------------------------------------------------------------------


def grown_from(X, y, thetas):
    problem = plain_engine_rows(X, y)
    return grow(MemoryEngine(problem), thetas, Background.of(y, np.ones(len(y))))


@settings(max_examples=6, deadline=None)
@given(seeds, st.sampled_from([0.01, 0.1]))
def test_size_noise_and_coefficients_of_a_component_are_found(seed, noise):
    rng = np.random.default_rng(seed)
    X, y, truth = one_regime(seed, n=600, d=3, noise=noise, norms=1.0)
    grown = grown_from(X, y, np.stack([0.8 * truth.coef[0], *rng.standard_normal((5, 3))]))
    clean = ~truth.corrupted
    assert abs(grown.share[0] - clean.mean()) <= 0.05
    assert 0.8 <= grown.scale[0] / noise <= 1.25
    oracle = least_squares(X[clean], y[clean])
    assert np.abs(grown.thetas[0] - oracle).max() <= noise
    assert grown.evidence[0] > 0


@settings(max_examples=6, deadline=None)
@given(seeds, st.sampled_from([10.0, 1.0]))
def test_one_noisy_regime_is_not_halved(seed, signal):
    """Trap (b): scoring the kept rows alone prefers a half of the regime to the whole of it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 3))
    coef = signal * np.array([1.0, 0.0, 0.0])
    y = X @ coef + rng.standard_normal(600)
    grown = grown_from(X, y, np.stack([coef, np.zeros(3)]))
    assert grown.share[0] >= 0.85
    assert 0.8 <= grown.scale[0] <= 1.2
    assert grown.evidence[0] > 0


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_without_noise_exactly_the_clean_rows_are_counted(seed):
    X, y, truth = one_regime(seed, n=400, d=4, noise=0.0)
    grown = grown_from(X, y, (0.9 * truth.coef[0])[None, :])
    np.testing.assert_allclose(grown.thetas[0], truth.coef[0], atol=1e-9)
    assert abs(grown.share[0] * 400 - np.count_nonzero(~truth.corrupted)) <= 1
    assert grown.scale[0] <= 1e-6


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_pure_noise_gives_no_evidence(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((400, 3)), rng.standard_normal(400)
    assert grown_from(X, y, rng.standard_normal((6, 3))).evidence[0] < 10


@settings(max_examples=8, deadline=None)
@given(seeds, st.integers(1, 9))
def test_the_best_comes_first_and_knows_its_start(seed, n_starts):
    rng = np.random.default_rng(seed)
    X, y, _ = one_regime(seed, n=150, d=2)
    grown = grown_from(X, y, rng.standard_normal((n_starts, 2)))
    assert sorted(grown.start.tolist()) == list(range(n_starts))
    assert (np.diff(grown.evidence[np.isfinite(grown.evidence)]) <= 0).all()
    assert ((grown.share >= 0) & (grown.share <= 1)).all()


@few
@given(seeds, st.integers(2, 6), st.integers(0, 3))
def test_tables_of_hardly_more_rows_than_columns_grow_without_a_word(seed, d, more):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((d + more, d)), rng.standard_normal(d + more)
    grown = grown_from(X, y, rng.standard_normal((3, d)))
    assert np.isfinite(grown.thetas).all()
