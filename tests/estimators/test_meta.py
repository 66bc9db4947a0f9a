"""TrimmedEstimator: scikit-learn's checks, ILTS as a special case, label noise, weights, limits."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from regimix import ilts
from regimix.errors import ConvergenceWarning, DataError, EvidenceWarning, ParameterError
from regimix.estimators.meta import FEWEST_OF_CLASS, TrimmedEstimator
from tests.oracles import one_regime, repeat_rows

seeds = st.integers(0, 2**32 - 1)
a_few = settings(max_examples=5)
# Real data sets end with a class at its floor now and then; tests that mind look for the warning.
any_evidence = pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")


def three_classes(seed, n=600, d=4, noise=0.2):
    """Separable classes, and labels of which a share moved on to the next class."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    truth = np.argmax(X @ np.linalg.qr(rng.standard_normal((d, d)))[0][:, :3], axis=1)
    wrong = rng.choice(n, int(noise * n), replace=False)
    labels = truth.copy()
    labels[wrong] = (truth[wrong] + 1) % 3
    return X, truth, labels


def wavy(seed, n=400):
    """A curve with noise; a quarter of the responses are far too high."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    curve = np.sin(2 * X[:, 0]) + X[:, 1]
    y = curve + 0.1 * rng.standard_normal(n)
    y[rng.choice(n, n // 4, replace=False)] += rng.uniform(5, 10, n // 4)
    return X, curve, y


# --- scikit-learn ---------------------------------------------------------------------------------


# The checks fit noise, rare classes and tables of few rows, and iris without scaling.
@any_evidence
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        TrimmedEstimator(LinearRegression()),
        TrimmedEstimator(LogisticRegression()),
        TrimmedEstimator(Ridge(), keep=0.7, keep_start=0.9, growth=2, loss="absolute", n_starts=1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_nested_parameters_cloning_and_pickling():
    X, _, y = three_classes(1)
    model = TrimmedEstimator(LogisticRegression(C=2.0), keep=0.9)
    assert model.get_params()["estimator__C"] == 2.0
    model.set_params(estimator__C=3.0, keep=0.8)
    fit = clone(model).fit(X, y)
    assert fit.estimator_.C == 3.0
    assert not hasattr(model, "estimator_")
    assert not hasattr(model.estimator, "coef_")
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.predict_proba(X), fit.predict_proba(X))


def test_methods_and_kind_are_those_of_the_inner_estimator():
    X, _, y = three_classes(2)
    regressor = TrimmedEstimator(LinearRegression())
    assert is_regressor(regressor)
    assert not is_classifier(regressor)
    for name in ("predict_proba", "decision_function", "transform", "predict_log_proba"):
        assert not hasattr(regressor, name)
    with pytest.raises(NotFittedError):
        regressor.predict(X)
    fit = TrimmedEstimator(LinearDiscriminantAnalysis()).fit(X, y)
    assert is_classifier(fit)
    np.testing.assert_array_equal(fit.classes_, [0, 1, 2])
    inner = fit.estimator_
    for name in ("predict_proba", "predict_log_proba", "decision_function", "transform"):
        np.testing.assert_array_equal(getattr(fit, name)(X), getattr(inner, name)(X))
    assert fit.score(X, y) == inner.score(X, y)
    weights = np.arange(y.size)
    assert fit.score(X, y, sample_weight=weights) == inner.score(X, y, sample_weight=weights)
    assert not hasattr(TrimmedEstimator(LinearRegression()).fit(X, X[:, 0] + y), "classes_")


def test_data_frames_keep_their_names():
    X, _, y = three_classes(3)
    frame = pd.DataFrame(X, columns=list("abcd"))
    names = pd.Series(y).map({0: "low", 1: "mid", 2: "high"})
    fit = TrimmedEstimator(LogisticRegression()).fit(frame, names)
    assert list(fit.feature_names_in_) == list("abcd")
    assert list(fit.estimator_.feature_names_in_) == list("abcd")
    assert list(fit.classes_) == ["high", "low", "mid"]
    plain = TrimmedEstimator(LogisticRegression()).fit(X, names.to_numpy())
    np.testing.assert_array_equal(plain.predict(X), fit.predict(frame))


def test_sparse_rows_pass_through():
    X, _, y = three_classes(4)
    X[np.abs(X) < 0.5] = 0.0
    dense = TrimmedEstimator(LogisticRegression()).fit(X, y)
    for container in (scipy.sparse.csr_array, scipy.sparse.coo_array):
        fit = TrimmedEstimator(LogisticRegression()).fit(container(X), y)
        np.testing.assert_array_equal(fit.kept_, dense.kept_)


def test_it_works_in_a_grid_search():
    X, truth, y = three_classes(5)
    grid = {"keep": [0.8, 1.0], "estimator__C": [0.1, 10.0]}
    search = GridSearchCV(TrimmedEstimator(LogisticRegression()), grid, cv=3).fit(X, y)
    assert search.best_params_.keys() == grid.keys()
    assert search.best_estimator_.score(X, truth) > 0.8


# --- the special case of the paper ----------------------------------------------------------------


@a_few
@given(seeds)
def test_with_least_squares_it_is_ilts(seed):
    X, y, _ = one_regime(seed, n=200, d=3, corruption=0.2)
    expected = ilts(X, y, keep=0.7)
    fit = TrimmedEstimator(LinearRegression(fit_intercept=False), keep=0.7, max_iter=300).fit(X, y)
    np.testing.assert_allclose(fit.estimator_.coef_, expected.coef, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(fit.kept_, expected.kept)
    assert fit.stopped_ == expected.stopped == "fixed point"
    assert fit.n_iter_ == expected.n_iter
    np.testing.assert_allclose(fit.objective_ * 140, expected.objective, rtol=1e-6)


@a_few
@given(seeds)
def test_with_weighted_least_squares_it_is_weighted_ilts(seed):
    X, y, _ = one_regime(seed, n=150, d=2, corruption=0.2)
    weights = np.random.default_rng(seed).uniform(0.1, 2.0, 150)
    expected = ilts(X, y, keep=0.7, sample_weight=weights)
    fit = TrimmedEstimator(LinearRegression(fit_intercept=False), keep=0.7, max_iter=300)
    fit.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(fit.estimator_.coef_, expected.coef, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(fit.kept_, expected.kept)


# --- what it is for -------------------------------------------------------------------------------


@any_evidence
@a_few
@given(seeds)
@pytest.mark.parametrize(
    "inner", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_it_undoes_label_noise(inner, seed):
    X, truth, y = three_classes(seed, n=1000)
    fit = TrimmedEstimator(inner).fit(X, y)
    plain = clone(inner).fit(X, y)
    assert 1 - fit.score(X, truth) < 0.6 * (1 - plain.score(X, truth))
    assert (y == truth)[fit.kept_].mean() > 0.93
    assert fit.kept_.sum() == 800


@a_few
@given(seeds)
def test_it_undoes_wrong_responses_for_gradient_boosting(seed):
    X, curve, y = wavy(seed)
    inner = GradientBoostingRegressor(n_estimators=30, max_depth=2, random_state=0)
    fit = TrimmedEstimator(inner, keep=0.75).fit(X, y)
    plain = clone(inner).fit(X, y)
    errors = [np.mean((model.predict(X) - curve) ** 2) for model in (fit, plain)]
    assert errors[0] < 0.5 * errors[1]


@any_evidence
def test_it_works_with_boosted_classifiers():
    X, _, y = three_classes(6, n=300)
    inner = GradientBoostingClassifier(n_estimators=5, max_depth=2)
    fit = TrimmedEstimator(inner, keep=0.7, n_starts=1, random_state=3).fit(X, y)
    again = TrimmedEstimator(inner, keep=0.7, n_starts=1, random_state=3).fit(X, y)
    np.testing.assert_array_equal(fit.predict_proba(X), again.predict_proba(X))
    assert fit.estimator_.random_state == 3
    assert fit.loss_ == "log"


# --- losses ---------------------------------------------------------------------------------------


def test_the_loss_follows_the_kind():
    X, _, y = three_classes(7)
    target = X[:, 0] + np.random.default_rng(7).standard_normal(y.size)
    fit = TrimmedEstimator(LinearRegression()).fit(X, target)
    assert fit.loss_ == "squared"
    np.testing.assert_allclose(fit.losses_, (target - fit.predict(X)) ** 2)
    fit = TrimmedEstimator(LinearRegression(), loss="absolute").fit(X, target)
    np.testing.assert_allclose(fit.losses_, np.abs(target - fit.predict(X)))
    fit = TrimmedEstimator(LogisticRegression()).fit(X, y)
    assert fit.loss_ == "log"
    own = fit.predict_proba(X)[np.arange(y.size), y]
    np.testing.assert_allclose(fit.losses_, -np.log(own))
    fit = TrimmedEstimator(LogisticRegression(), loss="zero-one").fit(X, y)
    np.testing.assert_array_equal(fit.losses_, fit.predict(X) != y)


def test_hinge_losses_of_two_and_of_many_classes():
    X, _, y = three_classes(8)
    fit = TrimmedEstimator(LinearSVC()).fit(X, y)
    assert fit.loss_ == "hinge"
    scores = fit.decision_function(X)
    rival = np.where(np.eye(3, dtype=bool)[y], -np.inf, scores).max(axis=1)
    own = scores[np.arange(y.size), y]
    np.testing.assert_allclose(fit.losses_, np.maximum(0, 1 - own + rival))
    two = np.where(y > 0, "yes", "no")
    fit = TrimmedEstimator(LinearSVC()).fit(X, two)
    margin = np.where(y > 0, 1, -1) * fit.decision_function(X)
    np.testing.assert_allclose(fit.losses_, np.maximum(0, 1 - margin))


def test_a_function_as_loss():
    X, _, y = wavy(9)

    def asymmetric(model, X, y):
        return np.maximum(y - model.predict(X), 0)

    fit = TrimmedEstimator(Ridge(), keep=0.75, loss=asymmetric).fit(X, y)
    assert fit.loss_ is asymmetric
    np.testing.assert_allclose(fit.losses_, asymmetric(fit, X, y))
    for bad in (lambda model, X, y: y[:3], lambda model, X, y: np.full(y.size, np.nan)):
        with pytest.raises(DataError, match="one finite number for each of 400 rows"):
            TrimmedEstimator(Ridge(), loss=bad).fit(X, y)


# --- classes --------------------------------------------------------------------------------------


def test_a_rare_class_is_not_lost_silently():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((400, 2))
    y = np.where(np.arange(400) < 40, "rare", "common")
    with pytest.warns(EvidenceWarning, match="class.*'rare'.*class_balance=0.5"):
        fit = TrimmedEstimator(LogisticRegression()).fit(X, y)
    assert (y[fit.kept_] == "rare").sum() == 16
    assert fit.kept_.sum() == 320
    with pytest.warns(EvidenceWarning):
        fit = TrimmedEstimator(LogisticRegression(), class_balance=0.0).fit(X, y)
    assert (y[fit.kept_] == "rare").sum() == FEWEST_OF_CLASS
    fit = TrimmedEstimator(LogisticRegression(), class_balance=1.0).fit(X, y)
    assert (y[fit.kept_] == "rare").sum() == 32


@any_evidence
def test_a_class_of_few_rows_is_kept_whole():
    X, _, y = three_classes(11)
    y[:3] = 7
    fit = TrimmedEstimator(LogisticRegression()).fit(X, y)
    assert fit.kept_[:3].all()
    np.testing.assert_array_equal(fit.classes_, [0, 1, 2, 7])


# --- weights --------------------------------------------------------------------------------------


@any_evidence
@a_few
@given(seeds)
@pytest.mark.parametrize(
    "inner",
    [
        LogisticRegression(tol=1e-10, max_iter=1000),
        make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=1000)),
        KNeighborsClassifier(25),
    ],
)
def test_whole_weights_repeat_rows(inner, seed):
    X, _, y = three_classes(seed, n=120)
    weights = np.random.default_rng(seed).integers(0, 4, 120).astype(float)
    fit = TrimmedEstimator(inner, loss="log").fit(X, y, sample_weight=weights)
    copies, labels = repeat_rows(X, y, weights)
    expected = TrimmedEstimator(inner, loss="log").fit(copies, labels)
    assert not fit.kept_[weights == 0].any()
    np.testing.assert_array_equal(np.isnan(fit.losses_), weights == 0)
    np.testing.assert_allclose(fit.objective_[0], expected.objective_[0], rtol=1e-6)
    np.testing.assert_allclose(fit.predict_proba(X), expected.predict_proba(X), atol=1e-4)


def test_the_inner_estimator_gets_the_users_weights():
    X, _, y = three_classes(12)
    weights = np.random.default_rng(12).uniform(1, 9, y.size)

    class Spy(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            self.weights_ = sample_weight
            return super().fit(X, y, sample_weight)

    fit = TrimmedEstimator(Spy(), keep=1.0).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(fit.estimator_.weights_, weights)
    fit = TrimmedEstimator(Spy(), keep=0.8).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(fit.estimator_.weights_.sum(), 0.8 * weights.sum())
    assert TrimmedEstimator(Spy()).fit(X, y).estimator_.weights_ is None
    fit = TrimmedEstimator(Spy(), keep=1.0).fit(X, y, sample_weight=0.5)
    np.testing.assert_allclose(fit.estimator_.weights_, 0.5)


def test_weights_and_values_beyond_single_precision():
    X, _, y = wavy(13)
    weights = np.random.default_rng(13).uniform(1e40, 9e40, y.size)
    single = TrimmedEstimator(Ridge()).fit(X.astype(np.float32), y, sample_weight=weights)
    double = TrimmedEstimator(Ridge()).fit(X, y, sample_weight=weights / weights.mean())
    np.testing.assert_allclose(single.predict(X), double.predict(X), rtol=1e-3)
    infinite = X.copy()
    infinite[:2, 0] = -np.inf, np.inf
    with pytest.raises(DataError, match="column 'x0' of X is -inf in row 0"):
        TrimmedEstimator(Ridge()).fit(infinite, y)


@pytest.mark.parametrize("inner", [LinearRegression(), DecisionTreeRegressor(max_depth=1)])
def test_tables_without_rows_or_columns_are_refused(inner):
    for X in (np.empty((0, 2)), pd.DataFrame({"a": []}), []):
        with pytest.raises(DataError, match=r"0 row\(s\) \(n_samples=0\)"):
            TrimmedEstimator(inner).fit(X, [])
    for X in (np.empty((3, 0)), [[], [], []]):
        with pytest.raises(DataError, match=r"0 feature\(s\)"):
            TrimmedEstimator(inner).fit(X, [1.0, 2.0, 3.0])


def test_labels_of_two_types_are_refused():
    X, _, y = three_classes(12)
    mixed = y.astype(object)
    mixed[3] = "three"
    with pytest.raises(DataError, match="y holds no classes"):
        TrimmedEstimator(LogisticRegression()).fit(X, mixed)


def test_rows_of_weight_zero_are_absent_from_fit_and_score():
    X, y, _ = one_regime(0, n=30, d=2)
    weights = (np.arange(30) > 0).astype(int)
    X[0, 1] = np.nan
    fit = TrimmedEstimator(LinearRegression()).fit(X, y, sample_weight=weights)
    assert fit.score(X, y, weights) == fit.score(X[1:], y[1:])


def test_numbers_of_extended_precision_are_fitted():
    X = np.array([[0.0], [1.0], [2.0]], dtype=np.longdouble)
    fit = TrimmedEstimator(LinearRegression()).fit(X, [0.1, 0.9, 2.3])
    assert fit.losses_.dtype == np.float64


def test_weights_that_nobody_takes():
    X, _, y = wavy(13)
    with pytest.raises(ParameterError, match="takes no sample_weight"):
        TrimmedEstimator(KNeighborsRegressor()).fit(X, y, sample_weight=np.full(400, 0.5))
    with pytest.raises(DataError, match="negative"):
        TrimmedEstimator(Ridge()).fit(X, y, sample_weight=-np.ones(400))


def test_weights_are_routed():
    X, _, y = three_classes(14)
    weights = np.random.default_rng(14).integers(1, 4, y.size).astype(float)
    expected = TrimmedEstimator(LogisticRegression()).fit(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        fit = TrimmedEstimator(inner).set_fit_request(sample_weight=True)
        np.testing.assert_array_equal(
            fit.fit(X, y, sample_weight=weights).estimator_.coef_, expected.estimator_.coef_
        )
        pipeline = TrimmedEstimator(make_pipeline(scaler, inner))
        assert pipeline.fit(X, y, sample_weight=weights).score(X, y) > 0.5
        search = GridSearchCV(fit.set_score_request(sample_weight=True), {"keep": [0.7, 0.8]}, cv=3)
        search.fit(X, y, sample_weight=weights)


# --- rounds ---------------------------------------------------------------------------------------


def test_the_best_fit_is_returned():
    X, _, y = three_classes(15)
    fit = TrimmedEstimator(LogisticRegression(), n_starts=3, random_state=0).fit(X, y)
    alone = TrimmedEstimator(LogisticRegression()).fit(X, y)
    assert fit.losses_[fit.kept_].mean() == pytest.approx(fit.objective_[1:].min())
    assert fit.objective_[1:].min() <= alone.objective_[1:].min() + 1e-12
    assert fit.start_ in ("all rows", "subset")
    assert alone.start_ == "all rows"


@a_few
@given(seeds)
def test_subsets_reach_what_all_rows_do_not(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 1))
    y = 3 * X[:, 0] + 0.1 * rng.standard_normal(100)
    X[:40] += 3.0
    y[:40] = -5 * X[:40, 0] + rng.standard_normal(40)
    alone = TrimmedEstimator(LinearRegression(), keep=0.5).fit(X, y)
    fit = TrimmedEstimator(LinearRegression(), keep=0.5, n_starts=100, random_state=0).fit(X, y)
    assert fit.estimator_.coef_[0] == pytest.approx(3, abs=0.2)
    assert fit.objective_[-1] <= alone.objective_[-1]
    assert fit.start_ == "subset" or alone.estimator_.coef_[0] == fit.estimator_.coef_[0]


@pytest.mark.parametrize("keep_start", [0.3, 1.0])
def test_the_kept_fraction_moves_to_keep(keep_start):
    X, _, y = wavy(17)
    seen = []

    class Spy(Ridge):
        def fit(self, X, y):
            seen.append(len(y))
            return super().fit(X, y)

    fit = TrimmedEstimator(Spy(), keep=0.7, keep_start=keep_start, growth=2).fit(X, y)
    half = (keep_start + 0.7) / 2
    assert seen[:4] == [400, round(400 * keep_start), round(400 * half), 280]
    assert fit.kept_.sum() == 280
    assert fit.n_iter_ == len(seen) - 1 == len(fit.objective_) - 1


def test_it_says_when_it_stopped_early():
    X, _, y = wavy(18)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        fit = TrimmedEstimator(LinearRegression(), keep=0.5, max_iter=1).fit(X, y)
    assert (fit.stopped_, fit.n_iter_) == ("max_iter", 1)
    coarse = TrimmedEstimator(LinearRegression(), keep=0.5, tol=0.9).fit(X, y)
    assert coarse.stopped_ in ("no gain", "fixed point")


def test_losses_that_never_fall_end_it():
    X, _, y = wavy(19)
    rounds = []

    def restless(model, X, y):
        rounds.append(len(rounds))
        return np.roll(np.arange(y.size) + 1.0, 7 * len(rounds))

    fit = TrimmedEstimator(LinearRegression(), loss=restless).fit(X, y)
    assert fit.stopped_ == "no gain"
    assert fit.n_iter_ == 4


def test_keep_one_is_the_plain_estimator():
    X, _, y = three_classes(20)
    fit = TrimmedEstimator(LogisticRegression(), keep=1.0).fit(X, y)
    assert fit.kept_.all()
    np.testing.assert_array_equal(fit.estimator_.coef_, LogisticRegression().fit(X, y).coef_)


def test_an_exact_fit_leaves_nothing_to_trim():
    X, _, y = three_classes(21)
    with pytest.warns(EvidenceWarning, match="fits every row exactly"):
        fit = TrimmedEstimator(DecisionTreeClassifier(), n_starts=2).fit(X, y)
    assert fit.stopped_ == "exact fit"
    assert fit.kept_.all()


def test_ties_go_by_row_order():
    X = np.zeros((10, 1))
    y = np.array([0.0, 1.0] * 5)
    fit = TrimmedEstimator(LinearRegression(), keep=0.5).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(fit.kept_), [0, 2, 4, 6, 8])


@any_evidence
def test_warm_starts_go_on_from_the_last_fit():
    X, _, y = three_classes(22)
    seen = []

    class Spy(SGDClassifier):
        def fit(self, X, y, **more):
            seen.append(hasattr(self, "coef_"))
            return super().fit(X, y, **more)

    TrimmedEstimator(Spy(loss="log_loss"), warm_start=True, random_state=0).fit(X, y)
    assert seen[0] is False
    assert all(seen[1:])
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8, max_iter=1000))
    warm = TrimmedEstimator(pipeline, warm_start=True).fit(X, y)
    cold = TrimmedEstimator(pipeline).fit(X, y)
    np.testing.assert_allclose(warm.predict_proba(X), cold.predict_proba(X), atol=1e-2)
    for inner in (GradientBoostingClassifier(), LinearDiscriminantAnalysis()):
        with pytest.raises(ParameterError, match="goes on from its last coefficients"):
            TrimmedEstimator(inner, warm_start=True).fit(X, y)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "settings", "message"),
    [
        (Ridge(), {"keep": 0.0}, "keep must be a number above 0"),
        (Ridge(), {"keep": "auto"}, "keep must be"),
        (Ridge(), {"keep": True}, "keep must be"),
        (Ridge(), {"keep_start": 1.5}, "keep_start must be"),
        (Ridge(), {"keep_start": 0.5, "growth": 0}, "growth must be"),
        (Ridge(), {"keep_start": 0.5, "growth": 50}, "leaves no refit"),
        (Ridge(), {"max_iter": 0}, "leaves no refit"),
        (Ridge(), {"tol": -1}, "tol must be"),
        (Ridge(), {"n_starts": -1}, "n_starts must be 0 or"),
        (Ridge(), {"class_balance": 2}, "class_balance must be a number from 0"),
        (Ridge(), {"loss": "log"}, "loss must be"),
        (Ridge(), {"random_state": "x"}, "random_state must be"),
        (LinearSVC(), {"loss": "log"}, "needs predict_proba"),
        (LinearSVC(), {"loss": "squared"}, "loss must be"),
        (SVR(kernel="precomputed"), {}, "distances between rows"),
        (KMeans(), {}, "regressor or a classifier"),
        ("ridge", {}, "regressor or a classifier"),
    ],
)
def test_settings_that_make_no_sense_are_refused(inner, settings, message):
    X, _, y = three_classes(23)
    with pytest.raises(ParameterError, match=message):
        TrimmedEstimator(inner, **settings).fit(X, y)


BAD_TABLES = {
    "NaN": lambda X, y: (np.where(np.arange(len(X))[:, None] == 3, np.nan, X), y),
    "infinity": lambda X, y: (np.where(np.arange(len(X))[:, None] == 3, np.inf, X), y),
    "a word": lambda X, y: ([*X[:3].tolist(), ["a", 1.0], *X[4:].tolist()], y),
    "y has NaN": lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.nan, y)),
    "names of two types": lambda X, y: (pd.DataFrame(X, columns=[1, "a"]), y),
    "names twice": lambda X, y: (pd.DataFrame(X, columns=["a", "a"]), y),
    "dates": lambda X, y: (pd.DataFrame({"a": pd.date_range("2020", periods=len(X))}), y),
    "no column": lambda X, y: (X[:, :0], y),
    "two responses": lambda X, y: (X, np.column_stack([y, y])),
    "one row less": lambda X, y: (X, y[1:]),
    "no response": lambda X, y: (X, None),
}


@pytest.mark.parametrize("inner", [LinearRegression(), LogisticRegression()])
@pytest.mark.parametrize("kind", BAD_TABLES)
def test_bad_tables_are_refused_with_our_words(inner, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(float)
    with pytest.raises(DataError) as caught:
        TrimmedEstimator(inner).fit(*BAD_TABLES[kind](X, y))
    if kind in ("NaN", "infinity", "y has NaN"):
        assert "in row 3 (counting from 0)" in str(caught.value)


def test_what_the_inner_estimator_takes_is_left_to_it():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(["u", "v"], 60), "b": rng.normal(size=60)})
    y = 2.0 * (frame["a"] == "u") + 0.1 * rng.normal(size=60)
    encoded = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    assert TrimmedEstimator(encoded).fit(frame[["a"]], y).score(frame[["a"]], y) > 0.9
    with_nan = frame[["b"]].where(frame["b"] < 1)
    TrimmedEstimator(HistGradientBoostingRegressor()).fit(with_nan, y)


def test_new_rows_are_refused_with_our_words():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = TrimmedEstimator(LinearRegression()).fit(X, y)
    X[5, 1] = np.nan
    with pytest.raises(DataError, match=r"'x1' of X is nan in row 5"):
        model.predict(X)
