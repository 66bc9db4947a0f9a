"""Gating: shares that depend on the row, learnt from X or from other columns."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import DataError, DataKindError, ParameterError
from regimix.estimators.gating import (
    ClassifierGate,
    _location_and_spread,
    forest_arrays,
    learn_gate,
)
from regimix.estimators.inputs import Rows
from regimix.estimators.mixture import MixedLinearRegression
from regimix.result.gate import Gate, TreeGate
from regimix.search.settings import Settings

pytestmark = pytest.mark.usefixtures("searched_once")

SLOPES, INTERCEPTS = np.array([[2.0, 0.0, 1.0], [-2.0, 1.0, 0.0]]), np.array([3.0, -1.0])
N = 600


class Regimes:
    """Two regimes; the chance of the second depends on the first feature, on W, or on nothing."""

    def __init__(self, seed, depends="x", n=N, noise=0.5):
        rng = np.random.default_rng(seed)
        self.X, self.W = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
        drive = {"x": self.X[:, 0], "w": self.W[:, 1], "nothing": np.zeros(n)}[depends]
        self.chance = expit(3 * drive)
        self.z = (rng.random(n) < self.chance).astype(int)
        self.y = np.einsum("ij,ij->i", self.X, SLOPES[self.z]) + INTERCEPTS[self.z]
        self.y += noise * rng.standard_normal(n)
        wrong = rng.choice(n, n // 40, replace=False)
        self.y[wrong] += 30 * rng.standard_normal(wrong.size)


def fitted(data, gating="logistic", features=None, **options):
    model = MixedLinearRegression(gating=gating, random_state=0, **options)
    return model.fit(data.X, data.y, gating_features=features)


def rows_of(data, weights=None):
    """Rows as an estimator has them when it learns a gate."""
    problem = Problem.from_arrays(data.X, data.y, weights)
    return Rows(MemoryEngine(problem), None, Settings())


def second(fit):
    """Which component of a fit is the second regime."""
    return int(np.argmin(np.abs(fit.coef_[:, 0] + 2)))


def clean_error(data, predicted):
    """Median distance of the predictions from the responses: outliers do not count."""
    return np.median(np.abs(data.y - predicted))


# --- what it buys ---------------------------------------------------------------------------------


@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["x", "w"]))
def test_shares_are_learnt_and_lower_the_error(seed, depends):
    old, new = Regimes(seed, depends), Regimes(seed + 1, depends)
    features = {"x": (None, None), "w": (old.W, new.W)}[depends]
    gated = fitted(old, "logistic", features[0])
    plain = fitted(old, None)
    assert gated.n_components_ == 2
    np.testing.assert_array_equal(gated.coef_, plain.coef_)
    predicted = gated.predict(new.X, gating_features=features[1])
    assert clean_error(new, predicted) < 0.7 * clean_error(new, plain.predict(new.X))
    shares = gated.predict_shares(new.X, gating_features=features[1])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.mean(np.abs(shares[:, second(gated)] - new.chance)) < 0.08


def test_predictions_are_those_of_the_likely_regime():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    X = X[np.abs(X[:, 0]) > 0.5]
    y = np.where(X[:, 0] > 0, 5.0, -5.0) + X[:, 1] + 0.1 * rng.standard_normal(len(X))
    regimes = {"n_components": 2, "random_state": 0, "outliers": False}
    plain, gated = (
        MixedLinearRegression(gating=g, **regimes).fit(X, y) for g in (None, "logistic")
    )
    # The expected response of both regimes lies between them, where there is no row.
    assert np.abs(y - plain.predict(X)).min() > 2
    likely = gated.predict_components(X)[np.arange(len(X)), gated.predict_shares(X).argmax(axis=1)]
    assert np.abs(gated.predict(X) - likely).mean() < 0.5
    assert np.abs(likely - y).max() < 1
    assert gated.score(X, y) > 0.97 > 0.5 > plain.score(X, y)


@settings(max_examples=3)
@given(st.integers(0, 2**32 - 1))
def test_where_nothing_depends_on_the_row_little_is_lost(seed):
    old, new = Regimes(seed, "nothing"), Regimes(seed + 1, "nothing")
    errors = [
        np.mean(np.abs(new.y - fitted(old, gating).predict(new.X))) for gating in ("logistic", None)
    ]
    assert errors[0] <= 1.03 * errors[1]


def test_regimes_that_overlap_do_not_blur_the_shares():
    """One look at the chances of a fit without gating would be off by more than a tenth."""
    data = Regimes(3, "x", n=2000, noise=1.5)
    gated = fitted(data, n_components=2)
    shares = gated.predict_shares(data.X)
    assert np.mean(np.abs(shares[:, second(gated)] - data.chance)) < 0.05


def test_every_method_uses_the_shares_of_the_row():
    data = Regimes(1)
    fit = fitted(data)
    shares, mixture = fit.gate_.shares(data.X), fit.mixture_
    assert mixture.gate is fit.gate_
    for method in ("assign", "responsibilities", "score_samples", "outlier_score"):
        with_shares = getattr(mixture, method)(data.X, data.y, shares=shares)
        np.testing.assert_array_equal(getattr(fit, method)(data.X, data.y), with_shares)
        assert not np.array_equal(with_shares, getattr(mixture, method)(data.X, data.y)) or (
            method == "assign"
        )
    np.testing.assert_array_equal(fit.predict(data.X), mixture.predict(data.X, shares))
    np.testing.assert_array_equal(
        fit.predict_interval(data.X, 0.8), mixture.predict_interval(data.X, 0.8, shares)
    )
    np.testing.assert_array_equal(
        fit.flag(data.X, data.y, 0.05), mixture.flag(data.X, data.y, 0.05, shares)
    )
    # Without y: the likeliest of what the components predict.
    means = fit.predict_components(data.X)
    both = [fit.score_samples(data.X, mean) for mean in means.T]
    np.testing.assert_allclose(fit.score_samples(data.X), np.max(both, axis=0))
    assert fit.score(data.X, data.y) > mixture_score(data, mixture)


def test_criteria_charge_for_what_the_gating_learnt():
    """Thirty columns that say nothing fit the rows a little better, and are not worth it."""
    data = Regimes(2, "nothing")
    useless = np.random.default_rng(0).standard_normal((N, 30))
    fit = fitted(data, "logistic", useless)
    mixture, shares = fit.mixture_, fit.gate_.shares(useless)
    for name in ("bic", "icl"):
        own, plain = getattr(fit, name), getattr(mixture, name)
        charged = own(data.X, data.y, gating_features=useless)
        free = plain(data.X, data.y, shares=shares)
        assert charged == pytest.approx(free + 30 * np.log(N))
        assert charged > plain(data.X, data.y)
    # One column that decides is.
    gated = fitted(Regimes(1))
    data = Regimes(1)
    assert gated.bic(data.X, data.y) < gated.mixture_.bic(data.X, data.y)


def test_criteria_refuse_a_gating_whose_parameters_cannot_be_counted():
    data = Regimes(2)
    fit = fitted(data, KNeighborsClassifier(25))
    for name in ("bic", "icl"):
        with pytest.raises(ParameterError, match=r"KNeighborsClassifier cannot be .*mixture_\.bic"):
            getattr(fit, name)(data.X, data.y)
        assert np.isfinite(getattr(fit.mixture_, name)(data.X, data.y))
        plain = getattr(fitted(data, None), name)(data.X, data.y)
        assert plain == getattr(fit.mixture_, name)(data.X, data.y)


def mixture_score(data, mixture):
    return 1 - np.mean((data.y - mixture.predict(data.X)) ** 2) / np.var(data.y)


def test_without_gating_shares_are_the_same_for_all_rows():
    data = Regimes(2)
    fit = fitted(data, None)
    assert fit.gate_ is None
    shares = fit.predict_shares(data.X[:5])
    np.testing.assert_allclose(shares, np.tile(fit.weights_ / fit.weights_.sum(), (5, 1)))


# --- any classifier -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(C=0.5),
        RandomForestClassifier(30, min_samples_leaf=10, random_state=0),
        KNeighborsClassifier(25),  # takes no weights
        make_pipeline(StandardScaler(), LogisticRegression()),  # nor do pipelines
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_any_classifier_with_probabilities_can_be_the_gating(classifier):
    data = Regimes(4)
    before = classifier.get_params(deep=False)
    fit = fitted(data, classifier)
    assert isinstance(fit.gate_, ClassifierGate)
    assert fit.gate_.classifier is not classifier
    assert classifier.get_params(deep=False) == before
    assert clean_error(data, fit.predict(data.X)) < 0.7 * clean_error(
        data, fitted(data, None).predict(data.X)
    )
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.predict(data.X), fit.predict(data.X))


def test_gating_features_may_be_text():
    data = Regimes(5, "w")
    frame = pd.DataFrame({"site": np.where(data.W[:, 1] > 0, "north", "south")})
    gating = make_pipeline(OneHotEncoder(), LogisticRegression())
    fit = fitted(data, gating, frame)
    shares = fit.predict_shares(data.X, gating_features=frame)
    assert len(np.unique(shares[:, 0])) == 2
    # The encoder of the library knows text as well, but not any: names tell nothing.
    for kind in ("logistic", "trees"):
        own = fitted(data, kind, frame)
        assert own.gate_.names in (("site=south",), ("site=north",))
        again = own.predict_shares(data.X, gating_features=frame)[:, second(own)]
        for north in (True, False):
            there = (frame["site"] == "north").to_numpy() == north
            assert np.ptp(again[there]) < 1e-12
            # 300 rows: five deviations of a share.
            assert abs(again[there][0] - data.z[there].mean()) < 0.12
    names = pd.DataFrame({"name": [f"n{i}" for i in range(N)]})
    with pytest.raises(DataKindError, match=r"gating_features: .*'name'.* 600 different values"):
        fitted(data, "logistic", names)


def test_nested_parameters_can_be_set_and_searched():
    data = Regimes(6)
    model = MixedLinearRegression(gating=LogisticRegression(C=3.0), random_state=0)
    assert model.get_params()["gating__C"] == 3.0
    search = GridSearchCV(model, {"gating__C": [1e-6, 1.0], "n_components": [2]}, cv=2)
    search.fit(data.X, data.y)
    assert search.best_params_["gating__C"] == 1.0
    blank = clone(search.best_estimator_)
    assert blank.gating.C == 1.0
    assert not hasattr(blank, "gate_")


@pytest.mark.parametrize("gating", ["forest", 3, LogisticRegression, RidgeClassifier()])
def test_what_cannot_be_a_gating_is_refused(gating):
    data = Regimes(0)
    with pytest.raises(ParameterError, match="gating must be None"):
        fitted(data, gating)


# --- edges ----------------------------------------------------------------------------------------


def test_one_component_has_all_of_every_row():
    data = Regimes(7)
    one = data.z == 0
    for gating in ("logistic", LogisticRegression()):
        fit = MixedLinearRegression(n_components=1, gating=gating, random_state=0)
        fit.fit(data.X[one], data.y[one])
        np.testing.assert_array_equal(fit.predict_shares(data.X), np.ones((N, 1)))
        np.testing.assert_allclose(fit.predict(data.X), fit.predict_components(data.X)[:, 0])


@pytest.mark.parametrize("gating", ["logistic", LogisticRegression(), KNeighborsClassifier()])
def test_a_component_without_rows_has_no_share(gating):
    """Its line is far from every row: nobody's label, nobody's chance."""
    data = Regimes(8)
    mixture = fitted(data, None).mixture_
    fields = {name: getattr(mixture, name) for name in mixture.__dataclass_fields__}
    fields |= {
        "coef": np.vstack([mixture.coef, np.zeros(3)]),
        "intercept": np.append(mixture.intercept, 1e6),
        "weights": np.append(mixture.weights, 1e-9),
        "scale": np.append(mixture.scale, 1.0),
    }
    gate = learn_gate(gating, type(mixture)(**fields), rows_of(data), data.X)
    shares = gate.shares(data.X)
    assert shares.shape == (N, 3)
    np.testing.assert_array_equal(shares[:, 2], 0.0)
    assert np.ptp(shares[:, 0]) > 0.5


def test_constant_columns_and_units_do_not_matter():
    data = Regimes(9, "w")
    plain = fitted(data, features=data.W).predict_shares(data.X, gating_features=data.W)
    odd = np.column_stack([1e6 * data.W[:, 0] + 7, 1e-6 * data.W[:, 1], np.full(N, 3.0)])
    fit = fitted(data, features=odd)
    np.testing.assert_allclose(fit.predict_shares(data.X, gating_features=odd), plain, atol=1e-3)
    np.testing.assert_array_equal(fit.gate_.coef[:, 2], 0.0)
    # A column that is rarely one still counts.
    rare = (data.W > 1.3).astype(int)
    assert np.all(fitted(data, features=rare).gate_.scale < 1)


def test_wild_and_repeated_columns_are_harmless():
    data = Regimes(9, "w")
    wild = np.column_stack([data.W, data.W[:, 1], np.random.default_rng(0).standard_cauchy(N)])
    wild[:3, 0] = 1e9
    fit = fitted(data, features=wild)
    shares = fit.predict_shares(data.X, gating_features=wild)
    assert np.mean(np.abs(shares[:, second(fit)] - data.chance)) < 0.08
    few = MixedLinearRegression(
        n_components=2, search="partition", gating="logistic", random_state=0
    )
    few.fit(data.X[:20], data.y[:20], gating_features=wild[:20])
    assert np.isfinite(few.predict(data.X, gating_features=wild)).all()


@settings(max_examples=3)
@given(st.integers(0, 2**32 - 1))
def test_whole_weights_equal_repeated_rows(seed):
    data = Regimes(seed)
    weights = np.random.default_rng(seed).integers(0, 3, N)
    model = MixedLinearRegression(gating="logistic", random_state=0)
    weighted = clone(model).fit(data.X, data.y, sample_weight=weights)
    repeated = clone(model).fit(*(np.repeat(part, weights, axis=0) for part in (data.X, data.y)))
    np.testing.assert_allclose(
        weighted.predict_shares(data.X), repeated.predict_shares(data.X), atol=1e-2
    )


@pytest.mark.filterwarnings("ignore::regimix.errors.RivalWarning")  # of regimes that depend on X
def test_whole_weights_equal_repeated_rows_for_classifiers_that_take_none():
    data = Regimes(3, noise=1.5)
    weights = np.random.default_rng(3).integers(0, 4, N)
    mixture = fitted(data, None).mixture_
    gating = KNeighborsClassifier(25)
    short = learn_gate(gating, mixture, rows_of(data, weights), data.X)
    long_data = Regimes(3, noise=1.5)
    long_data.X, long_data.y, labels = (
        np.repeat(part, weights, axis=0) for part in (data.X, data.y, mixture.labels)
    )
    again = replace(mixture, labels=labels)
    long = learn_gate(gating, again, rows_of(long_data), long_data.X)
    np.testing.assert_array_equal(short.shares(data.X), long.shares(data.X))
    # Importances are no repetitions.
    part = learn_gate(gating, mixture, rows_of(data, 0.3 + weights), data.X)
    once = learn_gate(gating, mixture, rows_of(data), data.X)
    np.testing.assert_array_equal(part.shares(data.X), once.shares(data.X))
    many = rows_of(data, np.full(N, 10**6))
    with pytest.raises(ParameterError, match="takes no sample_weight, and the weights count"):
        learn_gate(gating, mixture, many, data.X)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_units_of_columns_are_those_of_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.lognormal(size=40), rng.random(40) < 0.1, np.full(40, 0.1)])
    weights = rng.integers(0, 5, 40)
    weights[:2] = 1
    short = _location_and_spread(values, weights.astype(float))
    repeated = np.repeat(values, weights, axis=0)
    long = _location_and_spread(repeated, np.ones(len(repeated)))
    np.testing.assert_allclose(short, long)
    assert short[1][2] == 1.0


def test_names_of_columns_are_checked():
    data = Regimes(10, "w")
    frame = pd.DataFrame(data.W, columns=["age", "rain"])
    fit = fitted(data, features=frame)
    assert fit.gate_.names == ("age", "rain")
    shares = fit.predict_shares(data.X, gating_features=frame)
    for same in (pl.DataFrame(data.W, schema=["age", "rain"]), data.W):
        np.testing.assert_array_equal(fit.predict_shares(data.X, gating_features=same), shares)
    with pytest.raises(DataError, match="column 0 of gating_features is 'rain', but 'age'"):
        fit.predict(data.X, gating_features=frame[["rain", "age"]])
    with pytest.raises(DataError, match=r"gating_features has 1 column\(s\), but 2"):
        fit.predict(data.X, gating_features=frame[["age"]])
    # Where a column is missing, the shares are those of all rows.
    np.testing.assert_allclose(
        fit.predict_shares(data.X, gating_features=frame * np.nan),
        np.tile(fit.gate_.average, (N, 1)),
    )
    with pytest.raises(DataError, match=r"gating_features: .*NaN"):
        fit.predict(data.X, gating_features=frame.to_numpy() * np.nan)


def test_columns_and_gating_must_go_together():
    data = Regimes(11, "w")
    with pytest.raises(ParameterError, match="gating=None learns nothing"):
        fitted(data, None, data.W)
    with pytest.raises(DataError, match="X has 600, gating_features have 599"):
        fitted(data, "logistic", data.W[1:])
    other = fitted(data, "logistic", data.W)
    with pytest.raises(ParameterError, match="learnt from gating_features: pass"):
        other.predict(data.X)
    with pytest.raises(DataError, match="X has 600, gating_features have 2"):
        other.predict(data.X, gating_features=data.W[:2])
    for fit in (fitted(data, None), fitted(data, "logistic")):
        with pytest.raises(ParameterError, match="were passed, but"):
            fit.predict(data.X, gating_features=data.W)


@pytest.mark.parametrize("seed", range(3))
def test_trees_answer_as_those_of_scikit_learn_do(seed):
    """Row by row and tree by tree, by its own functions; nodes count the average as one row."""
    rng = np.random.default_rng(seed)
    Z, component = rng.standard_normal((500, 4)), rng.integers(0, 3, 500)
    component[Z[:, 1] > 0.3] = 1
    weights, present = rng.uniform(0.1, 2, 500), np.array([0, 1, 3])
    forest = RandomForestClassifier(12, max_leaf_nodes=20, random_state=seed)
    forest.fit(Z, present[component], sample_weight=weights)
    average = np.array([0.2, 0.5, 0.0, 0.3])
    names = tuple("abcd")
    arrays = forest_arrays(forest, present, average)
    center, scale = np.zeros(4), np.ones(4)
    gate = TreeGate(*arrays, center=center, scale=scale, names=names, average=average)
    assert gate.is_sound()
    new = rng.standard_normal((200, 4))
    expected = np.zeros((200, 4))
    for tree in forest.estimators_:
        weight = tree.tree_.weighted_n_node_samples[tree.apply(new)][:, None]
        chances = np.zeros((200, 4))
        chances[:, present] = tree.predict_proba(new)
        expected += (chances * weight + average) / (weight + 1)
    np.testing.assert_allclose(gate.shares(new), expected / 12, rtol=1e-10)


def test_trees_learn_what_is_not_linear_and_missing_columns_have_the_average():
    rng = np.random.default_rng(3)
    X, W = rng.standard_normal((N, 3)), rng.uniform(-1, 1, (N, 1))
    z = (np.abs(W[:, 0]) > 0.5).astype(int)
    y = np.einsum("ij,ij->i", X, SLOPES[z]) + INTERCEPTS[z] + 0.2 * rng.standard_normal(N)
    frame = pd.DataFrame(W, columns=["w"])
    fits = {
        kind: MixedLinearRegression(gating=kind, random_state=0).fit(X, y, gating_features=frame)
        for kind in ("logistic", "trees")
    }
    assert fits["trees"].gate_.hit_rate > 0.97 > 0.7 > fits["logistic"].gate_.hit_rate
    new = pd.DataFrame({"w": [0.0, 0.9, -0.9, np.nan]})
    shares = fits["trees"].predict_shares(X[:4], gating_features=new)[:, second(fits["trees"])]
    assert shares[0] < 0.1
    assert (shares[1:3] > 0.9).all()
    assert shares[3] == pytest.approx(z.mean(), abs=0.02)
    with pytest.raises(ParameterError, match="those of the gating trees cannot be counted"):
        fits["trees"].bic(X, y, gating_features=frame)


def test_a_gate_is_plain_arrays():
    gate = fitted(Regimes(12)).gate_
    assert isinstance(gate, Gate)
    again = replace(gate, columns=(), average=None)
    X = Regimes(13).X
    np.testing.assert_array_equal(again.shares(X), gate.shares(X))
    # One row or many: sums may be taken in another order.
    np.testing.assert_allclose(again.shares(X[:1]), gate.shares(X)[:1], rtol=1e-12)
    assert gate.n_components == 2
    assert gate.from_features


# --- scikit-learn ---------------------------------------------------------------------------------


def test_metadata_is_routed():
    data = Regimes(14, "w")
    with config_context(enable_metadata_routing=True):
        model = MixedLinearRegression(gating="logistic", random_state=0)
        model.set_fit_request(gating_features=True, sample_weight=True)
        model.set_predict_request(gating_features=True)
        model.set_score_request(gating_features=True, sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), model)
        passed = {"gating_features": data.W, "sample_weight": np.ones(N)}
        pipeline.fit(data.X, data.y, **passed)
        assert not pipeline[-1].gate_.from_features
        predicted = pipeline.predict(data.X, gating_features=data.W)
        scores = cross_validate(pipeline, data.X, data.y, cv=3, params=passed, error_score="raise")[
            "test_score"
        ]
    assert clean_error(data, predicted) < 1.0
    assert scores.shape == (3,)
