"""Rows as a model sees them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from regimix import MixedLinearRegression, TrimmedRegressor
from regimix.errors import DataError, ParameterError
from regimix.plots import QQDisplay
from regimix.plots import display as module
from regimix.plots.display import view_rows
from regimix.report.rows import read_rows

pytestmark = pytest.mark.usefixtures("searched_once")


def test_labels_means_and_residuals_are_those_of_the_mixture(three):
    fit, X, y = three
    rows = view_rows(fit, X, y)
    np.testing.assert_array_equal(rows.labels, fit.labels_)
    inlier = rows.labels >= 0
    np.testing.assert_array_equal(rows.nearest[inlier], rows.labels[inlier])
    means = X @ fit.coef_.T + fit.intercept_
    own = means[np.arange(y.size), rows.nearest]
    np.testing.assert_allclose(rows.residuals, y - own)
    np.testing.assert_allclose(rows.standardised, (y - own) / fit.scale_[rows.nearest])


def test_outliers_go_to_the_nearest_regime_as_in_a_report(three):
    fit, X, y = three
    # With heavy tails, shares tell the nearest regime from the likeliest.
    shares = {"weights": np.array([0.88, 0.01, 0.01]), "noise_degrees": 2.5}
    mixture = replace(fit.mixture_, **shares, excerpt=None)
    rows = view_rows(mixture, X, y)
    distance = np.abs(y[:, None] - X @ fit.coef_.T - fit.intercept_) / fit.scale_
    outlier = rows.labels < 0
    likeliest = mixture.log_densities(X, y)[:, :-1].argmax(axis=1)
    assert (rows.nearest != likeliest)[outlier].any()
    np.testing.assert_array_equal(rows.nearest[outlier], distance.argmin(axis=1)[outlier])
    np.testing.assert_array_equal(rows.nearest, read_rows(mixture, X, y, None).far.nearest)


def test_rows_count_by_their_probabilities_or_by_their_labels(three):
    fit, X, y = three
    rows = view_rows(*three)
    np.testing.assert_allclose(rows.belongs, fit.mixture_.responsibilities(X, y)[:, :-1])
    settings = replace(fit.mixture_.settings, search="partition")
    rows = view_rows(replace(fit.mixture_, settings=settings), X, y)
    np.testing.assert_array_equal(rows.belongs, rows.labels[:, None] == np.arange(3))


def test_without_rows_the_excerpt_is_seen(three):
    fit, X, y = three
    given, kept = view_rows(fit.mixture_, X, y), view_rows(fit.mixture_)
    for name in ("X", "y", "labels", "nearest", "means", "belongs"):
        np.testing.assert_allclose(getattr(kept, name), getattr(given, name))
    assert kept.n_rows == y.size


def test_an_excerpt_of_some_rows_knows_how_many_there_were(three):
    fit, _, y = three
    excerpt = fit.mixture_.excerpt
    part = replace(
        excerpt, X=excerpt.X[:50], y=excerpt.y[:50], labels=excerpt.labels[:50], complete=False
    )
    rows = view_rows(replace(fit.mixture_, excerpt=part))
    assert (rows.y.size, rows.n_rows) == (50, y.size)


def test_no_rows_at_all_are_refused(three):
    fit, X, _ = three
    with pytest.raises(DataError, match="Pass X and y"):
        view_rows(replace(fit.mixture_, excerpt=None))
    with pytest.raises(DataError, match="Pass X and y"):
        view_rows(fit.mixture_, X)


def test_other_columns_are_refused(three, tone):
    fit, X, y = three
    with pytest.raises(DataError, match="3 column"):
        view_rows(fit, X[:, :3], y)
    fit, X, y = tone
    with pytest.raises(DataError, match="'ratio'"):
        view_rows(fit, X.rename(columns={"stretchratio": "ratio"}), y)


def test_of_many_rows_some_are_seen_and_all_counted(three, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    monkeypatch.setattr(module, "FEWEST_ROWS", 1)
    fit, X, y = three
    rows, again = view_rows(fit, X, y), view_rows(fit, X, y)
    assert (rows.y.size, rows.n_rows) == (100, y.size)
    np.testing.assert_array_equal(rows.y, again.y)
    assert set(rows.y) <= set(y)


def test_a_trimmed_regressor_is_one_regime(calls):
    fit, X, y = calls
    rows = view_rows(fit, X, y)
    np.testing.assert_array_equal(rows.labels == 0, fit.inlier_mask_)
    np.testing.assert_allclose(rows.residuals, y - fit.predict(X))


def test_names_of_a_frame_are_kept(tone):
    _, X, y = tone
    rows = view_rows(TrimmedRegressor(random_state=0).fit(X, y), X, y)
    assert (rows.feature_names, rows.target_name) == (("stretchratio",), "tuned")
    assert view_rows(*tone).target_name == "tuned"


def test_of_a_pipeline_the_last_step_is_meant(tone):
    _, X, y = tone
    pipeline = make_pipeline(StandardScaler(), MixedLinearRegression(random_state=0)).fit(X, y)
    rows = view_rows(pipeline, X, y)
    np.testing.assert_allclose(rows.X, StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(rows.labels, pipeline[-1].labels_)


@pytest.mark.parametrize("estimator", [MixedLinearRegression(), StandardScaler()])
def test_what_is_not_fitted_is_refused(estimator):
    with pytest.raises(ParameterError, match=f"{type(estimator).__name__}. Call fit"):
        view_rows(estimator, pd.DataFrame({"a": [1.0, 2.0]}), [1.0, 2.0])


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_rows_of_weight_zero_are_not_drawn():
    """Heights by frequency: 295 crosses of outliers, a legend of <0.1 %, and quantiles of none."""
    x, y = (axis.ravel() for axis in np.meshgrid(np.linspace(-3, 3, 25), np.linspace(-3, 3, 25)))
    times = np.round(400 * np.exp(-0.5 * x**2 - 2 * (y - 0.5 * x) ** 2))
    fit = MixedLinearRegression(1, random_state=0, keep_rows=True)
    fit.fit(x[:, None], y, sample_weight=times)
    rows = view_rows(fit, x[:, None], y)
    np.testing.assert_array_equal(rows.y, y[times > 0])
    np.testing.assert_array_equal(rows.weights, times[times > 0])
    assert rows.n_rows == np.count_nonzero(times)
    # Rows that are drawn stand for themselves: within the law of the noise.
    shown = QQDisplay.from_estimator(fit, x[:, None], y)
    inside = np.abs(shown.residuals) < 2
    np.testing.assert_allclose(shown.quantiles[inside], shown.residuals[inside], atol=0.4)
