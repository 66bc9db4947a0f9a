"""ResidualsDisplay: residuals, guides and outliers."""

import numpy as np
import pytest

from regimix.errors import ParameterError
from regimix.plots import ResidualsDisplay


def offsets(artist):
    return np.asarray(artist.get_offsets())


def residuals_of(fit, X, y, j):
    return y - X @ fit.coef_[j] - fit.intercept_[j]


def test_columns_hold_the_residuals_of_their_regime(three):
    fit, X, y = three
    display = ResidualsDisplay.from_estimator(fit, X, y)
    for j in range(3):
        mine = fit.labels_ == j
        drawn = offsets(display.points_[j])
        np.testing.assert_allclose(drawn[:, 1], (residuals_of(fit, X, y, j) / fit.scale_[j])[mine])
        assert np.abs(drawn[:, 0] - j).max() < 0.5
    np.testing.assert_array_equal(display.ax_.get_xticks(), [0, 1, 2])


def test_outliers_are_in_the_column_of_their_nearest_regime(three):
    fit, X, y = three
    display = ResidualsDisplay.from_estimator(fit, X, y, stretch=np.inf)
    drawn = offsets(display.outliers_[0])
    out = fit.labels_ < 0
    assert len(drawn) == out.sum()
    np.testing.assert_array_equal(np.round(drawn[:, 0]), display.nearest[out])


def test_over_fitted_values_in_the_units_of_y(three):
    fit, X, y = three
    display = ResidualsDisplay.from_mixture(fit.mixture_, X, y, kind="fitted", standardise=False)
    for j in range(3):
        mine = fit.labels_ == j
        residual = residuals_of(fit, X, y, j)[mine]
        np.testing.assert_allclose(
            offsets(display.points_[j]), np.column_stack([y[mine] - residual, residual])
        )


@pytest.mark.parametrize(("standardise", "unit"), [(True, 0.0), (False, 1.0)])
def test_guides_lie_two_noise_levels_from_zero(three, standardise, unit):
    fit, X, y = three
    display = ResidualsDisplay.from_estimator(fit, X, y, standardise=standardise)
    levels = [line.get_ydata()[0] for line in display.guides_]
    expected = [2 * sign * scale**unit for scale in fit.scale_ for sign in (-1, 1)]
    np.testing.assert_allclose(levels, expected)


def test_far_outliers_are_arrows_at_the_edge(three):
    fit, X, y = three
    display = ResidualsDisplay.from_estimator(fit, X, y)
    low, high = display.ax_.get_ylim()
    beyond = np.concatenate([offsets(artist) for artist in display.outliers_[1:]])
    assert beyond.size
    assert ((beyond[:, 1] > low) & (beyond[:, 1] < high)).all()
    far = np.abs(display.residuals / fit.scale_[display.nearest]) > high
    assert len(beyond) >= far.sum() > 0


def test_an_unknown_kind_is_refused(tone):
    with pytest.raises(ParameterError, match="kind must be one of"):
        ResidualsDisplay.from_estimator(*tone, kind="violin")


def test_rows_are_thinned_and_the_title_says_so(three):
    display = ResidualsDisplay.from_estimator(*three, max_points=50)
    assert display.ax_.get_title(loc="right") == "50 of 600 rows shown"


def test_a_trimmed_regressor_has_one_column(calls):
    display = ResidualsDisplay.from_estimator(*calls)
    assert len(display.points_) == 1
    assert len(offsets(display.points_[0])) == calls[0].inlier_mask_.sum()


def test_an_exact_fit_can_be_drawn():
    zeros = np.zeros(4)
    ResidualsDisplay(
        residuals=zeros,
        fitted=np.arange(4.0),
        labels=np.zeros(4, dtype=int),
        nearest=np.zeros(4, dtype=int),
        scale=np.zeros(1),
    ).plot()
