"""MixedLinearRegression among scikit-learn's tools: frames in, pipelines, searches, routing."""

import importlib

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from regimix.estimators.mixture import MixedLinearRegression
from regimix.metrics import label_accuracy

pytestmark = pytest.mark.usefixtures("searched_once")

N = 300


def houses(seed, by_district=False):
    """Prices of houses by two rules: size, a 0/1 column, perhaps the district; a few are wrong."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(100, 30, N),
            "garden": (rng.random(N) < 0.4).astype(int),
            "district": rng.choice(["east", "north", "south"], N),
        }
    )
    rule = (rng.random(N) < 0.4).astype(int)
    effect = (
        frame["district"].map({"east": 0.0, "north": 20.0, "south": -10.0}).to_numpy() * by_district
    )
    price = np.array([3.0, 1.0])[rule] * frame["size"] + np.array([30, -50])[rule] * frame["garden"]
    price = price.to_numpy() + effect + rng.normal(0, 3, N)
    wrong = rng.choice(N, 9, replace=False)
    price[wrong] += rng.normal(0, 1000, 9)
    rule[wrong] = -1
    return frame, pd.Series(price, name="price"), rule


def model(**options):
    return MixedLinearRegression(random_state=0, **options)


def encoder():
    """Scale numbers, and write the district as 0/1 columns, one of them dropped."""
    return make_column_transformer(
        (StandardScaler(), ["size"]),
        (OneHotEncoder(drop="first", sparse_output=False), ["district"]),
        remainder="passthrough",
        verbose_feature_names_out=False,
    )


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_keep_their_names_through_a_pipeline(kind):
    """A regressor has no output to set: it gets what the transformers are told to hand over."""
    frame, price, rule = houses(0, by_district=True)
    table = frame if kind == "pandas" else pl.from_pandas(frame)
    target = price if kind == "pandas" else pl.Series("price", price.to_numpy())
    pipeline = make_pipeline(encoder(), model()).set_output(transform=kind).fit(table, target)
    fit = pipeline[-1]
    assert type(pipeline[:-1].transform(table)).__module__.split(".")[0] == kind
    names = ["size", "district_north", "district_south", "garden"]
    assert fit.feature_names_in_.tolist() == names
    assert fit.mixture_.feature_names == tuple(names)
    equation = fit.mixture_.equation(0)
    assert equation.startswith("price = ")
    assert all(name in equation for name in names)
    assert label_accuracy(rule, fit.labels_) >= 0.95
    predicted = pipeline.predict(table)
    assert type(predicted) is np.ndarray
    assert predicted.shape == (N,)


def test_pandas_polars_and_numpy_give_the_same_fit():
    frame, price, _ = houses(1)
    numbers = frame.assign(district=frame["district"].eq("north").astype(float))
    plain = model().fit(numbers.to_numpy(dtype=float), price.to_numpy())
    for table, target in (
        (numbers, price),
        (pl.from_pandas(numbers), pl.Series("price", price.to_numpy())),
        (numbers.convert_dtypes(), price),
    ):
        fit = model().fit(table, target)
        np.testing.assert_allclose(fit.coef_, plain.coef_, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(fit.labels_, plain.labels_)
        np.testing.assert_allclose(fit.predict(table), plain.predict(numbers.to_numpy(dtype=float)))
        assert fit.feature_names_in_.tolist() == list(numbers.columns)
        with pytest.raises(ValueError, match="feature names"):
            fit.predict(table[["garden", "size", "district"]])


def test_a_search_over_settings_and_cross_validation():
    frame, price, _ = houses(2)
    numbers = frame[["size", "garden"]]
    grid = {"mixedlinearregression__n_components": [1, 2], "mixedlinearregression__outliers": [0.1]}
    pipeline = make_pipeline(StandardScaler(), model())
    search = GridSearchCV(pipeline, grid, cv=2, scoring="neg_median_absolute_error")
    search.fit(numbers, price)
    assert search.best_estimator_[-1].n_components_ == search.best_params_[next(iter(grid))]
    scores = cross_val_score(model(n_components=2), numbers, price, cv=3)
    assert np.isfinite(scores).all()
    predicted = cross_val_predict(model(n_components=2), numbers, price, cv=3)
    assert predicted.shape == (N,)


def test_a_target_can_be_transformed():
    frame, price, _ = houses(3)
    numbers = frame[["size", "garden"]]
    plain = model(n_components=2).fit(numbers, price)
    scaled = TransformedTargetRegressor(model(n_components=2), transformer=StandardScaler())
    scaled.fit(numbers, price)
    np.testing.assert_allclose(scaled.predict(numbers), plain.predict(numbers), rtol=1e-4)
    assert np.mean(scaled.regressor_.labels_ == plain.labels_) >= 0.99


def test_weights_are_routed_to_the_fit():
    frame, price, _ = houses(4)
    numbers = frame[["size", "garden"]]
    weights = np.random.default_rng(0).integers(0, 3, N)
    alone = model().fit(numbers, price, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        requesting = model().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, clone(requesting))
        pipeline.fit(numbers, price, sample_weight=weights)
        np.testing.assert_allclose(
            pipeline.predict(numbers), alone.predict(numbers), rtol=1e-3, atol=0.5
        )
        requesting.set_score_request(sample_weight=True)
        scores = cross_val_score(
            requesting, numbers, price, cv=3, params={"sample_weight": weights}
        )
        assert np.isfinite(scores).all()
        search = GridSearchCV(requesting, {"n_components": [2]}, cv=2)
        search.fit(numbers, price, sample_weight=weights)
        again = model(n_components=2).fit(numbers, price, sample_weight=weights)
        np.testing.assert_array_equal(search.predict(numbers), again.predict(numbers))


def test_what_the_mixture_knows_can_be_asked_of_the_estimator():
    frame, price, _ = houses(5)
    numbers = frame[["size", "garden"]]
    fit = model().fit(numbers, price)
    mixture = fit.mixture_
    assert str(fit.summary(0.9)) == str(mixture.summary(0.9))
    pd.testing.assert_frame_equal(fit.summary_frame(), mixture.summary_frame())
    np.testing.assert_array_equal(fit.conf_int(0.9), mixture.conf_int(0.9))
    np.testing.assert_array_equal(
        fit.predict_component_intervals(numbers), mixture.predict_component_intervals(numbers)
    )
    np.testing.assert_array_equal(fit.predict_interval(numbers), mixture.predict_interval(numbers))
    np.testing.assert_array_equal(fit.flag(numbers, price), mixture.flag(numbers, price))
    one, other = (
        whose.bootstrap(numbers, price, n_resamples=5, random_state=1) for whose in (fit, mixture)
    )
    np.testing.assert_array_equal(one.coef, other.coef)
    assert fit.icl(numbers, price) == mixture.icl(numbers, price) >= fit.bic(numbers, price)


def test_the_path_of_the_selection_is_kept():
    frame, price, _ = houses(6)
    fit = model().fit(frame[["size", "garden"]], price)
    assert set(fit.selection_) == {"n_components", "evidence", "bic", "icl"}
    lengths = {len(column) for column in fit.selection_.values()}
    assert len(lengths) == 1
    table = pd.DataFrame(fit.selection_)
    assert table.loc[table["evidence"].idxmax(), "n_components"] == fit.n_components_


def test_the_path_of_the_selection_is_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    frame, price, _ = houses(6)
    display = model().fit(frame[["size", "garden"]], price).plot_selection()
    assert display.ax_.get_xlabel()
    importlib.import_module("matplotlib.pyplot").close(display.figure_)
