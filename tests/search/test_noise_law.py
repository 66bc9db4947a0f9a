"""Heavy tails belong to a regime, not to two."""

import numpy as np
import pytest

from regimix import MixedLinearRegression


def one_line(seed, n, degrees):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 1))
    return X, 1 + 2 * X[:, 0] + rng.standard_t(degrees, n)


@pytest.mark.parametrize("seed", range(4))
def test_one_regime_with_heavy_tails_is_one_regime(seed):
    X, y = one_line(seed, 600, 3)
    fit = MixedLinearRegression(random_state=seed).fit(X, y)
    assert fit.n_components_ == 1
    assert fit.noise_degrees_ <= 6
    assert fit.coef_[0, 0] == pytest.approx(2.0, abs=0.25)
    assert fit.scale_[0] == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("seed", range(4))
def test_normal_noise_is_normal(seed):
    X, y = one_line(seed, 300, 1e9)
    fit = MixedLinearRegression(random_state=seed).fit(X, y)
    assert fit.n_components_ == 1
    assert np.isinf(fit.noise_degrees_)


def test_a_law_that_is_asked_for_is_the_law():
    X, y = one_line(0, 300, 3)
    normal = MixedLinearRegression(noise="normal", random_state=0).fit(X, y)
    assert np.isinf(normal.noise_degrees_)
    X, y = one_line(0, 300, 1e9)
    student = MixedLinearRegression(noise="student", random_state=0).fit(X, y)
    assert np.isfinite(student.noise_degrees_)
    assert student.coef_[0, 0] == pytest.approx(2.0, abs=0.25)


@pytest.mark.parametrize("seed", range(3))
def test_two_regimes_with_heavy_tails_are_two(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 1))
    second = rng.random(600) < 0.4
    y = np.where(second, 15 - 3 * X[:, 0], 3 * X[:, 0]) + rng.standard_t(3, 600)
    fit = MixedLinearRegression(random_state=seed).fit(X, y)
    assert fit.n_components_ == 2
    assert np.mean(fit.labels_ == (second if fit.weights_[0] > 0.5 else ~second)) > 0.9
    assert fit.noise_degrees_ <= 6
    density = fit.mixture_.score_samples(X, y)
    assert np.isfinite(density).all()
