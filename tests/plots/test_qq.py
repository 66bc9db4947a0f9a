"""QQDisplay: the quantiles of rows, kept and trimmed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

from regimix.plots import QQDisplay
from regimix.plots.row_displays import expected


def offsets(artist):
    return np.asarray(artist.get_offsets())


def test_without_trimming_the_quantiles_are_the_usual_ones():
    residuals = np.array([0.3, -1.0, 2.0, 0.1])
    usual = norm.ppf((np.array([3, 1, 4, 2]) - 0.5) / 4)
    np.testing.assert_allclose(expected(residuals, np.zeros(4, dtype=bool), np.inf), usual)


@given(st.integers(0, 2**32 - 1), st.floats(1.0, 3.0))
def test_a_normal_sample_that_was_cut_lies_on_the_diagonal(seed, cut):
    z = np.random.default_rng(seed).normal(size=4000)
    quantiles = expected(z, np.abs(z) > cut, cut)
    # Kolmogorov: the two laws differ by at most 2.5 / sqrt(n) (one time in 10^5).
    assert np.abs(norm.cdf(quantiles) - norm.cdf(z)).max() < 2.5 / np.sqrt(4000) + 0.01


def test_noise_of_students_law_is_compared_with_that_law(three):
    z = np.random.default_rng(0).standard_t(3, 4000)
    quantiles = expected(z, np.zeros(z.size, dtype=bool), np.inf, 3.0)
    assert np.abs(t.cdf(quantiles, 3) - t.cdf(z, 3)).max() < 2.5 / np.sqrt(4000)
    fit, X, y = three
    student = replace(fit.mixture_, noise_degrees=3.0)
    display = QQDisplay.from_mixture(student, X, y)
    assert display.ax_.get_xlabel() == "quantile of Student's law with 3 degrees of freedom"
    normal = QQDisplay.from_mixture(fit.mixture_, X, y)
    assert normal.ax_.get_xlabel() == "quantile of the normal law"
    kept = (display.labels >= 0) & (normal.labels >= 0)
    assert np.abs(display.quantiles[kept]).max() > np.abs(normal.quantiles[kept]).max()


@given(st.integers(0, 2**32 - 1), st.integers(0, 10))
def test_quantiles_rise_with_the_residuals(seed, n_trimmed):
    rng = np.random.default_rng(seed)
    kept, far = rng.uniform(-3, 3, 30), 3 + rng.exponential(size=n_trimmed)
    z = np.append(kept, far * rng.choice([-1, 1], n_trimmed))
    trimmed = np.arange(z.size) >= 30
    quantiles = expected(z, trimmed, 3.0)
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles[np.argsort(z)]) > 0).all()


def test_a_cutoff_beyond_every_sample_leaves_room_for_trimmed_rows():
    quantiles = expected(np.array([0.0, 1.0, 1e9]), np.array([False, False, True]), 60.0)
    assert np.isfinite(quantiles).all()
    assert quantiles.argmax() == 2


def test_points_are_residuals_in_units_of_the_noise(three):
    fit, X, y = three
    display = QQDisplay.from_estimator(fit, X, y, stretch=np.inf)
    for j in range(3):
        mine = fit.labels_ == j
        residual = (y - X @ fit.coef_[j] - fit.intercept_[j])[mine] / fit.scale_[j]
        np.testing.assert_allclose(offsets(display.points_[j])[:, 1], residual)
    out = fit.labels_ < 0
    np.testing.assert_allclose(offsets(display.outliers_[0])[:, 1], display.residuals[out])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"outliers ({out.mean():.1%} of rows)" in texts


def test_kept_rows_of_normal_noise_follow_the_diagonal(three):
    display = QQDisplay.from_mixture(three[0].mixture_)
    kept = display.labels >= 0
    middle = kept & (np.abs(display.quantiles) < 1.5)
    assert np.abs(display.quantiles - display.residuals)[middle].max() < 0.5


def test_thinning_keeps_the_tails(three):
    display = QQDisplay.from_estimator(*three, max_points=60)
    drawn = np.concatenate([offsets(artist) for artist in display.points_ + display.outliers_])
    assert len(drawn) <= 60
    for j in range(3):
        mine = display.nearest == j
        for extreme in (display.quantiles[mine].min(), display.quantiles[mine].max()):
            assert np.isclose(drawn[:, 0], extreme).any()
    assert display.ax_.get_title(loc="right") == f"{len(drawn)} of 600 rows shown"


def test_one_line_and_its_trimmed_years(calls):
    fit, _, _ = calls
    display = QQDisplay.from_estimator(*calls)
    drawn = sum(len(offsets(artist)) for artist in display.outliers_)
    assert drawn == np.count_nonzero(~fit.inlier_mask_)
    assert display.diagonal_.get_slope() == pytest.approx(1.0)
