"""CoefficientsDisplay: coefficients, intervals, order."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from regimix import MixedLinearRegression
from regimix.errors import ParameterError
from regimix.plots import CoefficientsDisplay
from regimix.plots.palette import colour

pytestmark = pytest.mark.usefixtures("searched_once")


def drawn(display, j):
    """Return coefficients and ends of intervals of a regime, from above."""
    coef = np.asarray(display.points_[j].get_offsets())[:, 0]
    ends = np.array([segment[:, 0] for segment in display.intervals_[j].get_segments()])
    return np.column_stack([coef, ends])


def test_coefficients_and_intervals_are_those_of_the_mixture(three):
    fit, X, _ = three
    display = CoefficientsDisplay.from_estimator(fit, X, level=0.9)
    order = np.argsort(-np.ptp(fit.coef_, axis=0) * X.std(axis=0))
    np.testing.assert_array_equal(display.order_, order)
    bounds = fit.mixture_.conf_int(0.9)
    for j in range(3):
        expected = np.column_stack([fit.coef_[j], bounds[j, :4]])[order]
        np.testing.assert_allclose(drawn(display, j), expected)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [f"x{i}" for i in order]
    assert "90% intervals" in display.ax_.get_xlabel()
    assert len(set(map(colour, range(3)))) == 3


def test_from_above_means_that_the_axis_points_down(three):
    display = CoefficientsDisplay.from_mixture(three[0].mixture_)
    bottom, top = display.ax_.get_ylim()
    assert bottom > top


def test_standardised_coefficients_are_effects_of_a_deviation(three):
    fit, X, _ = three
    display = CoefficientsDisplay.from_estimator(fit, X, standardise=True)
    unit = X.std(axis=0)[display.order_]
    plain = CoefficientsDisplay.from_estimator(fit, X)
    np.testing.assert_allclose(drawn(display, 1), drawn(plain, 1) * unit[:, None])
    assert "standard deviation" in display.ax_.get_xlabel()


def test_at_most_so_many_features_are_shown(three):
    display = CoefficientsDisplay.from_mixture(three[0].mixture_, max_features=2)
    assert display.order_.size == 2
    assert display.ax_.get_title(loc="right") == "2 of 4 features shown"
    with pytest.raises(ParameterError, match="max_features must be a whole number from 1"):
        display.plot(max_features=0)


def test_intercepts_come_last(tone):
    fit, _, _ = tone
    display = CoefficientsDisplay.from_estimator(fit, intercept=True)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == ["stretchratio", "intercept"]
    bounds = fit.mixture_.conf_int()
    np.testing.assert_allclose(drawn(display, 0)[1], [fit.intercept_[0], *bounds[0, 1]])


def test_what_is_not_known_is_refused(tone):
    fit, X, y = tone
    through_zero = MixedLinearRegression(n_components=2, fit_intercept=False, random_state=0)
    mixture = through_zero.fit(X, y).mixture_
    with pytest.raises(ParameterError, match="fit_intercept=False"):
        CoefficientsDisplay.from_mixture(mixture, intercept=True)
    with pytest.raises(ParameterError, match="pass X, or standardise=False"):
        CoefficientsDisplay.from_mixture(replace(fit.mixture_, rows=None), standardise=True)


def test_of_one_regime_the_largest_effects_come_first(one):
    fit, X, _ = one
    display = CoefficientsDisplay.from_estimator(fit, X)
    assert display.order_[0] == np.argmax(np.abs(fit.coef_[0]) * X.std(axis=0))


def test_a_trimmed_regressor_has_no_intervals(calls):
    with pytest.raises(ParameterError, match="must be a MixedLinearRegression"):
        CoefficientsDisplay.from_estimator(*calls)


def test_rows_with_text_are_read_as_in_the_fit():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(0, 2, 120), "kind": rng.choice(["a", "b"], 120)})
    y = X["size"] + 3 * (X["kind"] == "a") + rng.normal(0, 0.1, 120)
    fit = MixedLinearRegression(n_components=1, random_state=0).fit(X, y)
    display = CoefficientsDisplay.from_estimator(fit, X, y, standardise=True)
    np.testing.assert_allclose(display.deviation, fit.mixture_.rows.deviation)
    CoefficientsDisplay.from_estimator(fit, X)
