"""QQDisplay: the quantiles of rows, kept and trimmed."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

from regimix.plots import QQDisplay
from regimix.plots.row_displays import trimmed_quantiles
from regimix.report.charts import panels
from regimix.report.rows import Terms, read_rows
from regimix.result.answer import quantiles
from regimix.trimmed.reweight import CUTOFF


def offsets(artist):
    return np.asarray(artist.get_offsets())


def slow(distance, weights, law):
    """Where each residual of a sample would lie, one by one: what is below, and half of itself."""
    total = weights.sum()
    below = [weights[distance < z].sum() + weights[distance == z].sum() / 2 for z in distance]
    return law.ppf(np.clip(np.array(below) / total, 0.25 / total, 1 - 0.25 / total))


@given(st.integers(0, 2**32 - 1), st.sampled_from([2.0, 5.5, np.inf]))
def test_quantiles_are_those_of_the_weight_below(seed, degrees):
    rng = np.random.default_rng(seed)
    z, weights = rng.normal(size=30), rng.uniform(size=30) ** 4
    weights[:2] = 1.0
    law = norm if np.isinf(degrees) else t(degrees)
    np.testing.assert_allclose(quantiles(z, weights, degrees), slow(z, weights, law), atol=1e-9)


def test_with_equal_weights_the_quantiles_are_the_usual_ones():
    residuals = np.array([0.3, -1.0, 2.0, 0.1])
    usual = norm.ppf((np.array([3, 1, 4, 2]) - 0.5) / 4)
    np.testing.assert_allclose(quantiles(residuals, np.ones(4), np.inf), usual)


@given(st.integers(0, 2**32 - 1))
def test_rows_of_two_regimes_that_overlap_lie_on_the_diagonal(seed):
    """Sorted to the likelier regime, half of its rows would be gone beyond the middle."""
    n, apart = 4000, 1.0
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) + apart * rng.integers(0, 2, n)
    belongs = norm.pdf(z) / (norm.pdf(z) + norm.pdf(z - apart))
    found = quantiles(z, belongs, np.inf)
    near = np.abs(z) < 1.5
    # The sum of n weights is off by at most 5 of its deviations.
    off = np.abs(norm.cdf(found) - norm.cdf(z))[near].max()
    assert off < 5 / np.sqrt(n)
    own = z < apart / 2
    sorted_to_it = quantiles(z[own], np.ones(own.sum()), np.inf)
    assert np.abs(norm.cdf(sorted_to_it) - norm.cdf(z[own])).max() > 10 / np.sqrt(n)


@given(st.integers(0, 2**32 - 1))
def test_a_normal_sample_that_was_cut_lies_on_the_diagonal(seed):
    z = np.random.default_rng(seed).normal(size=4000)
    found = trimmed_quantiles(z, np.abs(z) > CUTOFF)
    # Kolmogorov: the two laws differ by at most 2.5 / sqrt(n) (one time in 10^5).
    assert np.abs(norm.cdf(found) - norm.cdf(z)).max() < 2.5 / np.sqrt(4000) + 0.01


def test_noise_of_students_law_is_compared_with_that_law(three):
    z = np.random.default_rng(0).standard_t(3, 4000)
    found = quantiles(z, np.ones(z.size), 3.0)
    assert np.abs(t.cdf(found, 3) - t.cdf(z, 3)).max() < 2.5 / np.sqrt(4000)
    fit, X, y = three
    student = replace(fit.mixture_, noise_degrees=3.0)
    display = QQDisplay.from_mixture(student, X, y)
    said = " ".join(display.ax_.get_xlabel().split())
    assert said == "quantile of Student's law with 3 degrees of freedom"
    normal = QQDisplay.from_mixture(fit.mixture_, X, y)
    assert normal.ax_.get_xlabel() == "quantile of the normal law"
    kept = (display.labels >= 0) & (normal.labels >= 0)
    assert np.abs(display.quantiles[kept]).max() > np.abs(normal.quantiles[kept]).max()


@given(st.integers(0, 2**32 - 1), st.integers(0, 10))
def test_quantiles_rise_with_the_residuals(seed, n_trimmed):
    rng = np.random.default_rng(seed)
    kept, far = rng.uniform(-CUTOFF, CUTOFF, 30), CUTOFF + rng.exponential(size=n_trimmed)
    z = np.append(kept, far * rng.choice([-1, 1], n_trimmed))
    trimmed = np.arange(z.size) >= 30
    found = trimmed_quantiles(z, trimmed)
    assert np.isfinite(found).all()
    assert (np.diff(found[np.argsort(z)]) > 0).all()
    counted = quantiles(z, np.where(trimmed, 1e-9, 1.0), np.inf)
    assert np.isfinite(counted).all()
    assert (np.diff(counted[np.argsort(z)]) >= 0).all()


def test_a_report_compares_rows_with_the_same_quantiles(three):
    """Outliers near a regime count in part: both pictures must say so alike."""
    fit, X, y = three
    display = QQDisplay.from_mixture(fit.mixture_, X, y)
    drawn = panels(read_rows(fit.mixture_, X, y, None), Terms.of(fit.mixture_, X, 0.95))
    for j, panel in enumerate(drawn):
        picture = panel["charts"][1]
        low, high, start, end = map(
            float, re.search(r'data-quantiles="([^"]*)"', picture)[1].split()[:4]
        )
        across = [
            float(x) for x in re.findall(r"M([\d.]+) ", re.search(r'd="(M[^"]*)"', picture)[1])
        ]
        shown = low + (np.array(across) - start) / (end - start) * (high - low)
        mine = np.sort(display.quantiles[display.labels == j])
        # The picture holds both tails, and places to a tenth of a pixel.
        np.testing.assert_allclose(shown[[0, 1, -2, -1]], mine[[0, 1, -2, -1]], atol=0.02)


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
