"""MixedLinearRegression: the surface with a stand-in search, then everything end to end."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import regimix.result.fit
from regimix.errors import (
    ConvergenceWarning,
    DataError,
    EvidenceWarning,
    ParameterError,
    RankWarning,
    UnrepeatedWarning,
)
from regimix.estimators.mixture import MixedLinearRegression
from regimix.metrics import components_found, label_accuracy, with_intercept
from regimix.model.em import REGIME_GAIN
from regimix.result.mixture import Mixture
from regimix.result.rowlaw import RowLaw
from regimix.search.selection import Selection
from regimix.synth import make_mlrc
from tests.oracles import design, least_squares, repeat_rows

seeds = st.integers(0, 2**32 - 1)
once = pytest.mark.usefixtures("searched_once")
early_stop = pytest.mark.filterwarnings("ignore::regimix.errors.ConvergenceWarning")


def two_regimes(seed, n=400, d=3, **options):
    """Two clear regimes, some noise, a few gross outliers."""
    options = {"corruption": 0.05, "noise": 0.05, "separation": 1.0, "norms": 2.0} | options
    return make_mlrc(n, d, 2, random_state=seed, **options)


def assert_usable(fit, X, y):
    assert fit.n_components_ >= 1
    assert np.isfinite(fit.coef_).all()
    assert np.isfinite(fit.score_samples(X, y)).all()


# --- the surface, with least squares for a search -------------------------------------------------


class Standin:
    """A search that answers with least squares on all rows, and remembers what it was told."""

    def __init__(self):
        self.changes = {}

    def __call__(self, engine, settings, init=None):
        self.problem, self.settings, self.init = engine.problem, settings, init
        problem = engine.problem
        A = design(problem.X, problem.fit_intercept)
        theta = least_squares(A, problem.y, problem.weights)
        first = int(problem.fit_intercept)
        values = {
            "coef": theta[None, first:],
            "intercept": theta[:1] if first else np.zeros(1),
            "weights": np.array([0.9]),
            "scale": np.array([(problem.y - A @ theta).std()]),
            "labels": np.zeros(problem.n_rows, dtype=np.int64),
            "outlier_share": 0.1,
            "background": 1 / np.ptp(problem.y),
            "cutoff": np.inf,
            "evidence": 5.0,
            "stopped": "nothing improves",
            "n_rows": problem.n_rows,
            "mass": problem.mass,
            "fit_intercept": problem.fit_intercept,
            "feature_names": problem.feature_names,
            "settings": settings,
            "seed": settings.seed,
            "rows": RowLaw.of(engine),
        }
        return Mixture(**(values | self.changes))


@pytest.fixture
def standin(monkeypatch):
    search = Standin()
    monkeypatch.setattr(regimix.result.fit, "fit_mixture", search)
    return search


def test_what_was_found_becomes_attributes_and_methods(standin):
    X, y, _ = two_regimes(0)
    fit = MixedLinearRegression(random_state=0).fit(X, y)
    mixture = fit.mixture_
    for name in ("coef", "intercept", "weights", "scale", "labels"):
        np.testing.assert_array_equal(getattr(fit, f"{name}_"), getattr(mixture, name))
    assert (fit.n_components_, fit.outlier_share_, fit.evidence_) == (1, 0.1, 5.0)
    assert fit.n_features_in_ == 3
    assert not hasattr(fit, "feature_names_in_")
    np.testing.assert_array_equal(fit.predict(X), mixture.predict(X))
    np.testing.assert_array_equal(fit.predict_components(X), mixture.predict_components(X))
    for method in ("assign", "responsibilities", "score_samples"):
        answer = getattr(fit, method)(X, y)
        np.testing.assert_array_equal(answer, getattr(mixture, method)(X, y))
    weights = np.arange(len(y))
    assert fit.bic(X, y, weights) == mixture.bic(X, y, weights)
    for one, other in zip(fit.sample(5, 1), mixture.sample(5, 1), strict=True):
        np.testing.assert_array_equal(one, other)
    assert fit.sample(X=X)[1].shape == y.shape


def test_scores_without_a_response_are_those_of_the_likeliest_prediction(standin):
    X, y, _ = two_regimes(0)
    standin.changes = {
        "coef": np.eye(2, 3),
        "intercept": np.zeros(2),
        "weights": np.array([0.3, 0.6]),
        "scale": np.array([1.0, 0.1]),
    }
    fit = MixedLinearRegression().fit(X, y)
    means = fit.predict_components(X)
    both = [fit.score_samples(X, means[:, j]) for j in range(2)]
    np.testing.assert_allclose(fit.score_samples(X), np.maximum(*both))


def test_settings_reach_the_search(standin):
    X, y, _ = two_regimes(0)

    def watch(progress):
        return False

    MixedLinearRegression(random_state=4).fit(X, y)
    told = standin.settings
    assert (told.n_components, told.outliers, told.keep) == (None, None, None)
    assert (told.noise, told.search, told.keep_rows, told.seed) == ("auto", "auto", False, 4)
    assert standin.init is None
    options = {
        "n_components": 1,
        "outliers": 0.2,
        "noise": "student",
        "search": "joint",
        "max_starts": 7,
        "time_limit": 3,
        "callback": watch,
        "keep_rows": True,
        "n_jobs": 2,
    }
    MixedLinearRegression(**options).fit(X, y)
    assert 0 < standin.settings.time_limit <= options.pop("time_limit")  # checks take some of it
    for name, value in options.items():
        assert getattr(standin.settings, name) == value
    assert standin.settings.keep == 0.8
    MixedLinearRegression(outliers=False).fit(X, y)
    assert standin.settings.outliers == 0.0


def test_given_components_are_translated(standin):
    X, y, _ = two_regimes(0)
    X, y = 100 * X + 7, 20 * y - 3
    coef, intercept = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]]), np.array([4.0, -5.0])
    MixedLinearRegression(init=np.column_stack([coef, intercept])).fit(X, y)
    back = standin.problem.to_user(standin.init)
    np.testing.assert_allclose(back[0], coef)
    np.testing.assert_allclose(back[1], intercept)
    MixedLinearRegression(init=coef[0], fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(standin.problem.to_user(standin.init)[0], coef[:1])


@settings(max_examples=10)
@given(seeds, st.booleans())
def test_a_given_component_without_intercept_gets_that_of_the_densest_rows(seed, weighted):
    """The median of these residuals lies far from the 35 % of rows that follow the start."""
    with pytest.MonkeyPatch.context() as patch:
        standin = Standin()
        patch.setattr(regimix.result.fit, "fit_mixture", standin)
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 2))
        y = X @ np.array([1.0, 2.0]) + 30 + 20 * rng.standard_normal(300)
        y[:105] = X[:105] @ np.array([1.0, 2.0]) - 8 + 0.01 * rng.standard_normal(105)
        weights = rng.integers(1, 3, 300) if weighted else None
        MixedLinearRegression(init=[1.0, 2.0]).fit(X, y, sample_weight=weights)
        coef, intercept = standin.problem.to_user(standin.init)
        np.testing.assert_allclose(coef, [[1.0, 2.0]])
        assert intercept[0] == pytest.approx(-8, abs=0.1)
        if weighted:
            MixedLinearRegression(init=[1.0, 2.0]).fit(*repeat_rows(X, y, weights))
            again = standin.problem.to_user(standin.init)[1]
            np.testing.assert_allclose(again, intercept, atol=1e-9)


def test_names_of_columns_and_response_are_kept(standin):
    X, y, _ = two_regimes(0)
    frame = pd.DataFrame(X, columns=["age", "height", "rooms"])
    fit = MixedLinearRegression().fit(frame, pd.Series(y, name="price"))
    assert fit.feature_names_in_.tolist() == ["age", "height", "rooms"]
    assert "price = " in str(fit.mixture_)
    assert "rooms" in str(fit.mixture_)
    np.testing.assert_allclose(fit.predict(frame), fit.mixture_.predict(X), atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        fit.predict(frame[["rooms", "height", "age"]])
    assert MixedLinearRegression().fit(frame, pd.Series(y)).mixture_.target_name == "y"


@pytest.mark.parametrize("options", [{}, {"n_components": 2}])
def test_a_warning_calls_the_target_by_its_name(options):
    rng = np.random.default_rng(0)
    y = pd.Series(rng.standard_normal(60), name="tip")
    with pytest.warns(EvidenceWarning, match="^constants explain tip "):
        MixedLinearRegression(random_state=0, **options).fit(rng.standard_normal((60, 2)), y)


LOOKED_AT = Selection(np.array([1, 2]), np.array([-4.0, 2.125]), np.zeros(2), np.zeros(2), 1)
BETTER = r"constants explain y better than linear relations do, by 3 nats\. The line that most"
NEARLY = (
    r"too little .*: 2 regimes would gain 2\.125 nats over constants, and 3 are needed "
    r"\(n_components=2"
)
ASKED = r"better than the one regime asked for, which scores 0\.5 nats less"


@pytest.mark.parametrize(
    ("options", "changes", "kind", "message"),
    [
        ({"max_starts": 9}, {"stopped": "max_starts"}, ConvergenceWarning, "max_starts=9"),
        ({"time_limit": 2}, {"stopped": "time_limit"}, ConvergenceWarning, "of 2 seconds"),
        ({}, {"stopped": "callback"}, ConvergenceWarning, "callback asked"),
        ({}, {"stopped": "interrupted"}, ConvergenceWarning, "interrupted"),
        ({}, {"evidence": -3.0, "selection": LOOKED_AT}, EvidenceWarning, BETTER),
        ({}, {"evidence": 2.125, "selection": LOOKED_AT}, EvidenceWarning, NEARLY),
        ({"n_components": 1}, {"evidence": -0.5, "selection": LOOKED_AT}, EvidenceWarning, ASKED),
        ({"search": "net"}, {"evidence": -np.inf}, EvidenceWarning, "no regime was accepted"),
        (
            {"n_components": 1, "search": "partition"},
            {"evidence": -0.5},
            EvidenceWarning,
            "with every row in the one regime asked for, y is explained no better",
        ),
        ({"n_components": 3}, {}, EvidenceWarning, "1 regime found, 3 asked"),
        ({}, {"ranks": (2,)}, RankWarning, "determine 2 of its 4 coefficients"),
        (
            {},
            {"search_evidence": (9.0, 12.5, 8.0), "n_agreed": 1},
            UnrepeatedWarning,
            "only 1 of 3 independent searches ended with these regimes",
        ),
        (
            {},
            {"search_evidence": (9.0, 9.1), "n_agreed": 1},
            UnrepeatedWarning,
            "only 1 of 2 independent searches",
        ),
    ],
)
def test_answers_that_fall_short_say_so(standin, options, changes, kind, message):
    X, y, _ = two_regimes(0)
    standin.changes = changes
    with pytest.warns(kind, match=message) as caught:
        MixedLinearRegression(**options).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_methods_want_a_fit_and_the_same_columns(standin):
    X, y, _ = two_regimes(0)
    blank = MixedLinearRegression()
    for call in (
        lambda: blank.predict(X),
        lambda: blank.assign(X, y),
        lambda: blank.bic(X, y),
        lambda: blank.sample(3),
    ):
        with pytest.raises(NotFittedError):
            call()
    fit = blank.fit(X, y)
    with pytest.raises(ValueError, match="features"):
        fit.predict(X[:, :2])
    with pytest.raises(DataError, match="NaN"):
        fit.predict_components(X * np.nan)
    with pytest.raises(DataError, match="rows"):
        fit.assign(X, y[:-1])


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("n_components", 0),
        ("outliers", 1.5),
        ("outliers", True),
        ("noise", "cauchy"),
        ("search", "em"),
        ("search", "partition"),
        ("max_starts", 0),
        ("time_limit", -1),
        ("callback", 3),
        ("random_state", -1),
        ("n_jobs", 0),
        ("init", np.zeros(7)),
        ("init", np.zeros((0, 3))),
        ("init", np.zeros((2, 2, 3))),
        ("init", [np.nan, 0.0, 0.0]),
        ("init", "k-means"),
    ],
)
def test_settings_outside_what_is_allowed_are_refused(standin, option, value):
    X, y, _ = two_regimes(0)
    with pytest.raises(ParameterError, match=option):
        MixedLinearRegression(**{option: value}).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": "partition", "n_components": 2, "outliers": 0.1}, "leave outliers out"),
        ({"search": "partition", "n_components": 2, "noise": "student"}, "Leave noise out"),
        ({"search": "net", "noise": "normal"}, "Leave noise out"),
    ],
)
def test_settings_that_would_change_nothing_are_refused(standin, options, message):
    X, y, _ = two_regimes(0)
    with pytest.raises(ParameterError, match=message):
        MixedLinearRegression(**options).fit(X, y)


def test_parameters_are_stored_and_left_alone(standin):
    X, y, _ = two_regimes(0)
    estimator = MixedLinearRegression(init=np.zeros((1, 3)), callback=print, random_state=1)
    before = dict(estimator.get_params())
    estimator.fit(X, y)
    assert all(estimator.get_params()[name] is value for name, value in before.items())


# --- end to end: scikit-learn ---------------------------------------------------------------------


# The checks fit noise, few rows and columns that repeat; the warnings are the right answer to that.
@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")
@pytest.mark.filterwarnings("ignore::regimix.errors.RankWarning")
@pytest.mark.filterwarnings("ignore::regimix.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::regimix.errors.UnrepeatedWarning")
@pytest.mark.filterwarnings("ignore::regimix.errors.RivalWarning")
@parametrize_with_checks(
    [
        MixedLinearRegression(random_state=0),
        MixedLinearRegression(
            n_components=2, outliers=0.1, noise="student", gating="logistic", random_state=0
        ),
        MixedLinearRegression(n_components=2, outliers=False, random_state=0),
        MixedLinearRegression(n_components=2, search="partition", random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check, request):
    if estimator.n_components:  # the default is searched as it is
        request.getfixturevalue("searched_once")
    check(estimator)


@once
def test_pickling_and_cloning():
    X, y, _ = two_regimes(1)
    fit = MixedLinearRegression(random_state=4).fit(X, y)
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.predict(X), fit.predict(X))
    np.testing.assert_array_equal(again.labels_, fit.labels_)
    assert str(again.mixture_) == str(fit.mixture_)
    blank = clone(fit)
    assert blank.get_params() == fit.get_params()
    assert not hasattr(blank, "coef_")
    np.testing.assert_array_equal(blank.fit(X, y).coef_, fit.coef_)


@once
def test_it_works_in_a_pipeline():
    X, y, truth = two_regimes(2)
    pipeline = make_pipeline(StandardScaler(), MixedLinearRegression(random_state=0)).fit(X, y)
    alone = MixedLinearRegression(random_state=0).fit(X, y)
    np.testing.assert_allclose(pipeline.predict(X), alone.predict(X), atol=0.05)
    assert label_accuracy(truth.labels, pipeline[-1].labels_) >= 0.95


@once
def test_frames_give_the_answer_of_their_numbers():
    X, y, _ = two_regimes(3)
    frame = pd.DataFrame(X, columns=["age", "height", "rooms"])
    named = MixedLinearRegression(random_state=0).fit(frame, pd.Series(y, name="price"))
    plain = MixedLinearRegression(random_state=0).fit(X, y)
    np.testing.assert_allclose(named.coef_, plain.coef_)
    assert named.mixture_.feature_names == ("age", "height", "rooms")


# --- end to end: what is found --------------------------------------------------------------------


@settings(max_examples=6)
@given(seeds, st.sampled_from(["gaussian", "lognormal", "half-binary"]), st.integers(1, 3))
def test_simulated_regimes_are_found_with_their_labels(seed, features, m):
    """Nothing is told; 5 % gross outliers, each component with an intercept of its own."""
    X, y, truth = make_mlrc(
        300 * m,
        3,
        m,
        corruption=0.05,
        noise=0.05,
        norms=2.0,
        separation=1.5 if m > 1 else None,
        intercepts=np.linspace(-2, 2, m),
        features=features,
        random_state=seed,
    )
    fit = MixedLinearRegression(random_state=seed % 1000).fit(X, y)
    assert fit.n_components_ == m
    found = with_intercept(fit.coef_, fit.intercept_)
    assert components_found(with_intercept(truth.coef, truth.intercept), found, 0.2) == m
    assert label_accuracy(truth.labels, fit.labels_) >= 0.9
    np.testing.assert_allclose(fit.weights_.sum() + fit.outlier_share_, 1.0)
    assert (np.diff(fit.weights_) <= 0).all()
    # Labels are those that the result gives to the same rows; a few at the edge may differ.
    assert np.mean(fit.assign(X, y) == fit.labels_) >= 0.99
    assert len(fit.mixture_.origin) == m
    assert fit.mixture_.attempts
    assert fit.evidence_ > 0


@once
@settings(max_examples=3)
@given(seeds)
def test_drawn_rows_are_found_again(seed):
    """A fit, rows drawn from it, and a fit to those tell the same story."""
    X, y, _ = two_regimes(seed, n=600)
    fit = MixedLinearRegression(n_components=2, random_state=0).fit(X, y)
    drawn, response, labels = fit.sample(600, random_state=seed % 99)
    again = MixedLinearRegression(n_components=2, random_state=0).fit(drawn, response)
    assert label_accuracy(labels, again.labels_) >= 0.9
    assert again.bic(drawn, response) <= fit.bic(drawn, response) + 1


@settings(max_examples=5)
@given(seeds)
def test_pure_noise_is_one_component_without_slopes(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((300, 3)), 5 + rng.standard_normal(300)
    with pytest.warns(EvidenceWarning, match="constants explain y"):
        fit = MixedLinearRegression(random_state=0).fit(X, y)
    assert fit.n_components_ == 1
    assert np.abs(fit.coef_).max() <= 0.4
    assert fit.intercept_[0] == pytest.approx(5, abs=0.4)


@pytest.mark.filterwarnings("ignore::regimix.errors.RankWarning")  # nothing varies
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_features_that_never_vary_are_no_evidence(value):
    y = np.random.default_rng(0).standard_normal(50)
    with pytest.warns(EvidenceWarning, match="constants at zero explain y"):
        fit = MixedLinearRegression(fit_intercept=False).fit(np.full((50, 2), value), y)
    assert fit.n_components_ == 1
    assert np.isfinite(fit.coef_).all()


def fit_of_few(seed, n):
    """Rows in which y depends on nothing, their fit, and whether a warning says so."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, 3)), rng.standard_normal(n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = MixedLinearRegression(random_state=0).fit(X, y)
    said = [str(one.message) for one in caught if one.category is EvidenceWarning]
    words = ("constants explain y", "too little evidence for a linear relation of y")
    return X, y, fit, any(word in one for word in words for one in said)


@settings(max_examples=5)
@given(seeds, st.integers(2, 8))
@example(860829492, 5)  # y lies on a line by chance
def test_a_fit_of_too_few_rows_can_be_used_and_warns_where_nothing_was_found(seed, n):
    X, y, fit, warned = fit_of_few(seed, n)
    assert fit.mixture_.found_nothing == warned == (fit.mixture_.evidence < REGIME_GAIN)
    assert not warned or fit.n_components_ == 1
    assert_usable(fit, X, y)


def test_too_few_rows_are_one_robust_component_and_a_warning(base_seed):
    """By chance a few are not: one in 200, where what must be gained allows one in 20 (Markov)."""
    n_tables, rate = 42, np.exp(-REGIME_GAIN)
    fits = [fit_of_few([base_seed, i], 2 + i % 7)[2:] for i in range(n_tables)]
    claims = sum(not warned or fit.n_components_ != 1 for fit, warned in fits)
    assert claims <= 2 * rate * n_tables, base_seed


@pytest.mark.parametrize("outliers", [0.5, 0.1, 0.0, False])
def test_a_given_share_of_rows_are_outliers(outliers):
    X, y, _ = two_regimes(5, corruption=0.05 if outliers else 0.0)
    fit = MixedLinearRegression(n_components=2, outliers=outliers, random_state=0).fit(X, y)
    assert int((fit.labels_ < 0).sum()) == round(outliers * len(y))
    if not outliers:
        assert fit.outlier_share_ == 0.0


def test_a_partition_gives_every_row_to_the_nearest_regime():
    X, y, truth = two_regimes(5, corruption=0.0)
    fit = MixedLinearRegression(n_components=2, search="partition", random_state=0).fit(X, y)
    distances = np.abs(y[:, None] - fit.predict_components(X))
    np.testing.assert_array_equal(fit.labels_, np.argmin(distances, axis=1))
    assert fit.outlier_share_ == 0.0
    for j in range(2):
        rows = fit.labels_ == j
        theta = least_squares(design(X[rows], True), y[rows])
        np.testing.assert_allclose(np.r_[fit.intercept_[j], fit.coef_[j]], theta, atol=1e-9)
    assert label_accuracy(truth.labels, fit.labels_) >= 0.9


@pytest.mark.filterwarnings("ignore::regimix.errors.RankWarning")  # so many are tiny
def test_more_components_than_there_are_is_said():
    X, y, _ = two_regimes(6, n=60, d=2)
    with pytest.warns(EvidenceWarning, match="30 asked for"):
        fit = MixedLinearRegression(n_components=30, random_state=0).fit(X, y)
    assert fit.n_components_ < 30


def test_given_starts_are_used():
    X, y, truth = two_regimes(7)
    init = with_intercept(truth.coef, 0.0)
    fit = MixedLinearRegression(init=init, random_state=0).fit(X, y)
    assert set(fit.mixture_.origin) == {"given"}
    assert label_accuracy(truth.labels, fit.labels_) >= 0.95


@pytest.mark.parametrize("search", ["joint", "net"])
def test_other_searches_find_the_same(search):
    X, y, truth = two_regimes(8, d=2, noise=0.01)
    fit = MixedLinearRegression(n_components=2, search=search, random_state=0).fit(X, y)
    assert components_found(truth.coef, fit.coef_, 0.2) == 2


# --- end to end: invariance -----------------------------------------------------------------------


def same_answer(one, other, tolerance=1e-6):
    np.testing.assert_allclose(other.coef_, one.coef_, atol=tolerance)
    np.testing.assert_allclose(other.intercept_, one.intercept_, atol=tolerance)
    np.testing.assert_allclose(other.weights_, one.weights_, atol=tolerance)
    np.testing.assert_allclose(other.scale_, one.scale_, atol=tolerance)


@settings(max_examples=3)
@given(seeds, st.sampled_from(["auto", 0.1]))
def test_whole_weights_equal_repeated_rows_in_any_order(seed, outliers):
    rng = np.random.default_rng(seed)
    X, y, _ = two_regimes(seed, n=300)
    weights = rng.integers(0, 4, 300)
    X_long, y_long = repeat_rows(X, y, weights)
    order = rng.permutation(len(y_long))
    estimator = MixedLinearRegression(outliers=outliers, random_state=5)
    weighted = clone(estimator).fit(X, y, sample_weight=weights)
    repeated = clone(estimator).fit(X_long[order], y_long[order])
    same_answer(weighted, repeated)
    if outliers == "auto":
        labels = np.repeat(weighted.labels_, weights)[order]
        assert np.mean(labels == repeated.labels_) >= 0.995


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@settings(max_examples=3)
@given(seeds)
def test_a_power_of_two_changes_nothing_but_the_unit(seed):
    X, y, _ = two_regimes(seed, n=100, d=2, noise=0.3)
    in_y, in_x = 2.0**20, np.array([2.0**-9, 2.0**5])
    plain, other = (
        MixedLinearRegression(2, random_state=1).fit(*rows)
        for rows in ((X, y), (X * in_x, y * in_y))
    )
    np.testing.assert_array_equal(plain.labels_, other.labels_)
    np.testing.assert_array_equal(plain.coef_ / in_x * in_y, other.coef_)
    np.testing.assert_array_equal(plain.scale_ * in_y, other.scale_)
    assert plain.evidence_ == other.evidence_


@pytest.mark.parametrize("search", ["auto", "net"])
def test_the_number_of_jobs_does_not_matter(search):
    X, y, _ = two_regimes(10, d=2, noise=0.01)
    fits = [
        MixedLinearRegression(n_components=2, search=search, random_state=3, n_jobs=n_jobs).fit(
            X, y
        )
        for n_jobs in (None, 1, 2)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.coef_, fits[0].coef_)
        np.testing.assert_array_equal(fit.labels_, fits[0].labels_)


@pytest.mark.parametrize("make", [lambda: 7, lambda: np.random.RandomState(7)])
def test_the_same_seed_gives_the_same_answer(make):
    X, y, _ = two_regimes(11)
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - it is looked at, not drawn from
    fits = [MixedLinearRegression(random_state=make()).fit(X, y) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].mixture_.seed == fits[1].mixture_.seed
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002 - it is looked at, not drawn from


@once
def test_user_arrays_are_not_modified():
    X, y, _ = two_regimes(12, n=200, d=2)
    weights = np.ones(200)
    weights[:5] = 2.0
    for array in (X, y, weights):
        array.flags.writeable = False
    fit = MixedLinearRegression(random_state=0).fit(X, y, sample_weight=weights)
    fit.assign(X, y)


# --- end to end: stopping -------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")  # nothing yet is the best
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"time_limit": 1e-9}, "time_limit"),
        ({"max_starts": 1}, "max_starts"),
        ({"callback": lambda progress: True}, "callback"),
    ],
)
def test_a_budget_or_a_callback_ends_the_search_with_the_best_so_far(options, reason):
    X, y, _ = two_regimes(13)
    with pytest.warns(ConvergenceWarning, match=reason):
        fit = MixedLinearRegression(random_state=0, **options).fit(X, y)
    assert fit.mixture_.stopped == reason
    assert_usable(fit, X, y)


@early_stop
@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")
def test_an_interrupt_ends_the_search_with_the_best_so_far():
    X, y, _ = two_regimes(13)

    def interrupt(progress):
        raise KeyboardInterrupt

    fit = MixedLinearRegression(random_state=0, callback=interrupt).fit(X, y)
    assert fit.mixture_.stopped == "interrupted"
    assert_usable(fit, X, y)


@once
@early_stop
@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")
@pytest.mark.parametrize("step", ["score_of_constants", "resumed_polish", "_finish", "infer"])
def test_an_interrupt_after_the_search_leaves_what_it_found(monkeypatch, step):
    X, y, _ = two_regimes(13)
    whole, interrupted = getattr(regimix.result.fit, step), []

    def interrupt_once(*known, **more):
        if not interrupted:
            interrupted.append(step)
            raise KeyboardInterrupt
        return whole(*known, **more)

    monkeypatch.setattr(regimix.result.fit, step, interrupt_once)
    fit = MixedLinearRegression(random_state=0).fit(X, y)
    assert interrupted == [step]
    assert fit.mixture_.stopped == "interrupted"
    assert fit.n_components_ == 2
    assert_usable(fit, X, y)


def test_a_callback_is_told_of_the_progress():
    X, y, _ = two_regimes(14)
    seen = []
    fit = MixedLinearRegression(random_state=0, callback=seen.append).fit(X, y)
    assert seen
    assert all(sooner.elapsed <= later.elapsed for sooner, later in pairwise(seen))
    assert fit.mixture_.settings.callback is None


def test_a_good_table_gives_no_warning():
    X, y, _ = two_regimes(15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MixedLinearRegression(random_state=0).fit(X, y)


@once
@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.filterwarnings("ignore::regimix.errors.LeftOutWarning")
def test_a_profile_leaves_out_the_rows_that_the_fit_left_out(library):
    make = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    regime = rng.integers(0, 2, 200)
    x = rng.normal(size=200)
    y = np.where(regime == 0, 3 * x, -2 * x + 5) + 0.1 * rng.normal(size=200)
    x[[3, 50]] = np.nan
    frame = make.DataFrame({"x": x, "y": y, "team": np.where(regime == 0, "a", "b")})
    model = MixedLinearRegression(random_state=0).fit(frame[["x"]], frame["y"])
    assert np.count_nonzero(np.asarray(model.labels_) == -2) == 2
    found = model.profile(frame, ["team"])
    assert found.columns[0].effect > 0.9
