"""Errors of coefficients: beside ordinary least squares, by coverage, and where there are none."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from regimix import MixedLinearRegression, global_ilts
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import ParameterError
from regimix.model.blocks import Law
from regimix.model.numbers import MODEL
from regimix.result import fit as fit_module
from regimix.result import inference as inference_module
from regimix.result.inference import errors, estimates, infer
from regimix.synth import make_mlrc
from tests.oracles import repeat_rows
from tests.result.test_mixture import mixture_of

pytestmark = pytest.mark.usefixtures("searched_once")

seeds = st.integers(0, 2**32 - 1)


def user_design(X, fit_intercept):
    """The columns in the order of the errors: the intercept last."""
    return np.column_stack([X, np.ones(len(X))]) if fit_intercept else np.asarray(X, float)


def slow_errors(A, y, weights):
    """Ordinary least squares by the book: errors, R² and degrees of freedom."""
    gram = (A * weights[:, None]).T @ A
    theta = np.linalg.solve(gram, A.T @ (weights * y))
    rest, degrees = y - A @ theta, weights.sum() - A.shape[1]
    variance = weights @ rest**2 / degrees
    middle = weights @ y / weights.sum() if (A[:, -1] == 1).all() else 0.0
    explained = 1 - weights @ rest**2 / (weights @ (y - middle) ** 2)
    return np.sqrt(variance * np.diag(np.linalg.inv(gram))), explained, degrees


def slow_scale(A, y, weights):
    """Deviation of the residuals of weighted least squares."""
    theta = np.linalg.solve((A * weights[:, None]).T @ A, A.T @ (weights * y))
    return np.sqrt(weights @ (y - A @ theta) ** 2 / (weights.sum() - A.shape[1]))


def certainty(mixture, X, y, j):
    """What each row says of a component: its share, less the doubt about it (Louis 1982)."""
    share = mixture.responsibilities(X, y)[:, j]
    away = (y - mixture.predict_components(X)[:, j]) / mixture.scale[j]
    return share - share * (1 - share) * away**2


def fitted(X, y, truth, **options):
    """Fit from the truth: quick, and still a whole fit on all rows."""
    options = {"fit_intercept": True, "random_state": 0} | options
    start = np.column_stack([truth.coef, truth.intercept])
    if not options["fit_intercept"]:
        start = truth.coef
    if not options.get("keep_rows"):
        return global_ilts(X, y, n_components=len(start), init=start, **options)
    weights = options.pop("sample_weight", None)
    estimator = MixedLinearRegression(n_components=len(start), init=start, **options)
    return estimator.fit(X, y, weights).mixture_


def far_apart(seed, n=400, m=2, **options):
    """Regimes that hardly a row could be assigned to wrongly."""
    options = {"noise": 0.02, "corruption": 0.06, "norms": 1.0} | options
    options = {"intercepts": 8.0 * np.arange(m)} | options
    return make_mlrc(n, 3, m, random_state=seed, **options)


# --- beside least squares on the rows of a label --------------------------------------------------


@settings(max_examples=15)
@given(seeds, st.booleans(), st.sampled_from(["gaussian", "lognormal", "half-binary"]))
def test_errors_are_those_of_least_squares_on_the_rows_of_a_label(seed, weighted, features):
    X, y, truth = far_apart(seed, features=features)
    X = X * [1e3, 1.0, 1e-4] + [5.0, -2.0, 1e-3]  # any units will do
    truth = dataclasses.replace(truth, coef=truth.coef / [1e3, 1.0, 1e-4])
    truth = dataclasses.replace(
        truth, intercept=truth.intercept - truth.coef @ np.array([5.0, -2.0, 1e-3])
    )
    weights = np.random.default_rng(seed).integers(1, 4, len(y)) if weighted else np.ones(len(y))
    mixture = fitted(X, y, truth, sample_weight=weights)
    assert mixture.n_components == 2
    found = errors(mixture)
    for j in range(2):
        rows = mixture.labels == j
        _, explained, degrees = slow_errors(
            user_design(X[rows], True), y[rows], weights[rows].astype(float)
        )
        # One far row in doubt may hold a tenth of what is known: it counts by how sure it is.
        certain = certainty(mixture, X, y, j)
        widened, *_ = slow_errors(user_design(X, True), y, weights * certain)
        scale = mixture.scale[j] / slow_scale(user_design(X, True), y, weights * certain)
        np.testing.assert_allclose(found[j], widened * scale, rtol=0.02)
        assert mixture.inference.r_squared[j] == pytest.approx(explained, abs=0.01)
        assert mixture.inference.degrees[j] == pytest.approx(degrees, rel=0.02)
        assert mixture.inference.size[j] == pytest.approx(weights[rows].sum(), rel=0.02)
    assert mixture.inference.notes == ("", "")


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("options", [{"outliers": 0.06}, {"search": "net"}])
def test_fits_by_label_have_exactly_the_errors_of_their_labels(fit_intercept, options):
    X, y, truth = far_apart(3, intercepts=5.0 * np.arange(2) * fit_intercept, norms=[1.0, 3.0])
    if "outliers" in options:
        mixture = fitted(X, y, truth, fit_intercept=fit_intercept, **options)
    else:
        mixture = global_ilts(X, y, fit_intercept=fit_intercept, random_state=0, **options)
    assert mixture.fitted_by_label
    found = errors(mixture)
    for j in range(mixture.n_components):
        rows = mixture.labels == j
        A = user_design(X[rows], fit_intercept)
        expected = mixture.scale[j] * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
        np.testing.assert_allclose(found[j], expected, rtol=1e-8)
        assert mixture.inference.degrees[j] == rows.sum() - A.shape[1]
    assert np.isnan(mixture.inference.intercept_error).all() == (not fit_intercept)


def test_the_covariance_is_that_of_the_errors_and_belongs_to_predictions():
    X, y, truth = far_apart(1)
    mixture = fitted(X, y, truth)
    covariance = mixture.inference.covariance
    assert covariance.shape == (2, 4, 4)
    deviation = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    np.testing.assert_allclose(deviation, errors(mixture), rtol=1e-12)
    rows = mixture.labels == 0
    A = user_design(X[rows], True)
    expected = mixture.scale[0] ** 2 * np.linalg.inv(A.T @ A)
    scale = np.outer(deviation[0], deviation[0])
    np.testing.assert_allclose(covariance[0] / scale, expected / scale, atol=0.05)


def test_overall_r_squared_is_that_of_all_rows_by_their_own_regime():
    X, y, truth = far_apart(2, m=3)
    mixture = fitted(X, y, truth)
    rows = mixture.labels >= 0
    own = mixture.predict_components(X)[rows, mixture.labels[rows]]
    total = ((y[rows] - y[rows].mean()) ** 2).sum()
    expected = 1 - ((y[rows] - own) ** 2).sum() / total
    assert 1 - mixture.inference.r_squared_overall == pytest.approx(1 - expected, rel=0.15)


# --- weights --------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(seeds)
def test_whole_weights_are_repetitions(seed):
    X, y, truth = far_apart(seed, n=200)
    weights = np.random.default_rng(seed).integers(0, 4, len(y))
    long_X, long_y = repeat_rows(X, y, weights)
    theta = np.column_stack([truth.intercept, truth.coef])
    problems = [Problem.from_arrays(X, y, weights), Problem.from_arrays(long_X, long_y)]
    one, other = (infer(MemoryEngine(problem), law_of(problem, theta)) for problem in problems)
    for name in ("standard_error", "intercept_error", "degrees", "r_squared", "covariance"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6)


def law_of(problem, theta, scale=0.02):
    thetas = problem.from_user(theta[:, 1:], theta[:, 0])
    share = np.full(len(thetas), 0.94 / len(thetas))
    return Law(thetas, np.full(len(thetas), scale / problem.target_scale), share, math.log(0.05))


def test_importances_have_no_unit_and_count_as_the_rows_that_they_leave():
    """Sandwich errors: importances that have nothing to do with the noise can only widen them."""
    X, y, truth = far_apart(5, n=3000)
    theta = np.column_stack([truth.intercept, truth.coef])
    rng = np.random.default_rng(5)
    importance = rng.uniform(0.1, 2.0, len(y)) ** 2
    found = []
    for weights in (importance, 17.3 * importance, None):
        problem = Problem.from_arrays(X, y, weights)
        found.append(infer(MemoryEngine(problem), law_of(problem, theta)))
    weighted, rescaled, plain = found
    np.testing.assert_allclose(weighted.standard_error, rescaled.standard_error, rtol=1e-9)
    loss = np.mean(importance**2) / np.mean(importance) ** 2
    np.testing.assert_allclose(
        weighted.standard_error, plain.standard_error * math.sqrt(loss), rtol=0.1
    )
    np.testing.assert_allclose(weighted.degrees + 4, (plain.degrees + 4) / loss, rtol=0.1)


# --- coverage -------------------------------------------------------------------------------------


def covers(seed, m, n, **options):
    """Which of the 95 % intervals of one simulated table hold the truth."""
    X, y, truth = make_mlrc(
        n, 3, m, separation=1.2, intercepts=np.arange(m) - m / 2, random_state=seed, **options
    )
    mixture = fitted(X, y, truth, random_state=seed)
    assert mixture.n_components == m
    true = np.column_stack([truth.coef, truth.intercept])
    nearest = ((estimates(mixture)[:, None] - true) ** 2).sum(axis=2).argmin(axis=1)
    assert sorted(nearest) == list(range(m))
    bounds = mixture.conf_int(0.95)
    return (bounds[..., 0] <= true[nearest]) & (true[nearest] <= bounds[..., 1])


@pytest.mark.parametrize(
    ("m", "n", "corruption", "noise", "features"),
    [
        (2, 200, 0.05, 0.1, "gaussian"),
        (2, 200, 0.1, 0.1, "lognormal"),
        (2, 200, 0.1, 0.05, "half-binary"),
        (3, 400, 0.1, 0.1, "gaussian"),
        (3, 400, 0.05, 0.1, "half-binary"),
        (2, 300, 0.05, 0.25, "gaussian"),  # regimes that overlap
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(
    m, n, corruption, noise, features, base_seed, monkeypatch
):
    """92 to 98 %, plus four errors of a mean over so many tables."""
    # What competes with the regimes, constants or other relations, changes no interval.
    monkeypatch.setattr(fit_module, "find_rivals", lambda *_: ())
    for constants in ("score_of_constants", "score_without_slopes"):
        monkeypatch.setattr(fit_module, constants, lambda *_: -1e6)
    tables = 100
    each = [
        covers(base_seed + i, m, n, corruption=corruption, noise=noise, features=features).mean()
        for i in range(tables)
    ]
    # The coefficients of a table share its labels: what varies is the mean over a table.
    error = 4 * np.std(each) / math.sqrt(tables)
    assert 0.92 - error <= np.mean(each) <= 0.98 + error, base_seed


def test_doubt_about_labels_widens_errors():
    """Where regimes overlap; by the formula of Louis, written out row by row."""
    X, y, truth = make_mlrc(500, 2, 2, noise=0.4, separation=1.0, random_state=0)
    mixture = fitted(X, y, truth, fit_intercept=False)
    chances = mixture.responsibilities(X, y)[:, :2]
    away = (y[:, None] - mixture.predict_components(X)) / mixture.scale
    for j in range(2):
        information = np.zeros((2, 2))
        for i in range(len(y)):
            r = chances[i, j]
            information += (r - r * (1 - r) * away[i, j] ** 2) * np.outer(X[i], X[i])
        expected = mixture.scale[j] * np.sqrt(np.diag(np.linalg.inv(information)))
        np.testing.assert_allclose(mixture.inference.standard_error[j], expected, rtol=0.01)
        gram = (X * chances[:, [j]]).T @ X
        certain = mixture.scale[j] * np.sqrt(np.diag(np.linalg.inv(gram)))
        assert (mixture.inference.standard_error[j] > 1.05 * certain).all()


# --- where errors end -----------------------------------------------------------------------------


def test_coefficients_that_rows_leave_open_have_no_error_and_a_reason():
    X, y, truth = far_apart(4)
    double = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(y), 7.0)])
    problem = Problem.from_arrays(double, y)
    theta = np.column_stack([truth.intercept, truth.coef, np.zeros((2, 2))])
    found = infer(MemoryEngine(problem), law_of(problem, theta))
    plain = Problem.from_arrays(X, y)
    known = infer(MemoryEngine(plain), law_of(plain, theta[:, :4]))
    # Columns 0, 1 and their sum depend on each other; the constant one on the intercept.
    assert np.isnan(found.standard_error[:, [0, 1, 3, 4]]).all()
    assert np.isnan(found.intercept_error).all()
    np.testing.assert_allclose(found.standard_error[:, 2], known.standard_error[:, 2], rtol=1e-6)
    assert found.notes == ("its rows determine 4 of 6 coefficients",) * 2
    np.testing.assert_allclose(found.r_squared, known.r_squared, rtol=1e-6)
    np.testing.assert_allclose(found.degrees, known.degrees, rtol=1e-6)


def test_a_component_of_few_rows_has_no_errors_and_a_reason():
    X, y, truth = far_apart(4, corruption=0.0)
    labels = np.where(truth.labels == 0, 0, -1)
    labels[np.flatnonzero(truth.labels == 1)[:4]] = 1
    problem = Problem.from_arrays(X, y)
    law = law_of(problem, np.column_stack([truth.intercept, truth.coef]))
    found = infer(MemoryEngine(problem), law, lambda block: block.own(labels))
    assert np.isnan(found.standard_error[1]).all()
    assert np.isnan(found.covariance[1]).all()
    assert found.degrees[1] == 0
    assert found.notes[1] == "no standard errors: 4 rows for 4 coefficients"
    assert np.isnan(found.r_squared[1])
    assert np.isfinite(found.r_squared[0])
    assert np.isfinite(found.standard_error[0]).all()
    mixture = fitted(X, y, truth)
    small = dataclasses.replace(mixture, inference=found)
    assert np.isnan(small.conf_int()[1]).all()
    assert np.isnan(small.p_values()[1]).all()
    assert np.isnan(small.separation()[0, 1])


def test_exact_components_have_next_to_no_errors():
    X, y, truth = far_apart(6, noise=0.0)
    mixture = fitted(X, y, truth)
    assert (errors(mixture) < 1e-6).all()
    assert (np.abs(mixture.t_values()) > 1e4).any()
    assert np.isfinite(mixture.p_values()).all()
    np.testing.assert_allclose(mixture.inference.r_squared, 1.0)
    assert (mixture.separation()[~np.eye(2, dtype=bool)] > 1e5).all()


def test_errors_cost_one_pass_and_few_numbers(monkeypatch):
    X, y, truth = far_apart(0, n=1000)
    read = []

    class Counting(MemoryEngine):
        def readable(self, rows):
            read.append(rows)
            return super().readable(rows)

    problem = Problem.from_arrays(X, y)
    law = law_of(problem, np.column_stack([truth.intercept, truth.coef]))
    chunked = infer(Counting(problem, 300), law)
    assert read == list(MemoryEngine(problem, 300).chunks())
    whole = infer(MemoryEngine(problem), law)
    np.testing.assert_allclose(chunked.standard_error, whole.standard_error, rtol=1e-12)
    monkeypatch.setattr(
        inference_module, "MODEL", dataclasses.replace(MODEL, largest_sums=2 * 4 * 4 - 1)
    )
    assert infer(MemoryEngine(problem), law) is None


def test_wide_tables_keep_errors_but_no_covariance():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 257))
    y = X[:, 0] + 0.1 * rng.standard_normal(700)
    problem = Problem.from_arrays(X, y)
    theta = np.zeros((1, 258))
    theta[0, 1] = 1.0
    everywhere = np.zeros(700, dtype=np.int64)
    law = law_of(problem, theta, 0.1)
    found = infer(MemoryEngine(problem), law, lambda block: block.own(everywhere))
    assert found.covariance is None
    A = user_design(X, True)
    expected = 0.1 * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    np.testing.assert_allclose(found.standard_error[0], expected[:-1], rtol=1e-8)


# --- intervals, tests, distances ------------------------------------------------------------------


PARTITION = {"search": "partition", "n_components": 1}


def known_mixture(**changes):
    """Two components whose errors are round numbers."""
    covariance = np.stack([np.diag([0.01, 0.04]), np.diag([0.03, 0.05])])
    found = inference_module.Inference(
        standard_error=np.sqrt([[0.01], [0.03]]),
        intercept_error=np.sqrt([0.04, 0.05]),
        degrees=np.array([10.0, 30.0]),
        r_squared=np.array([0.9, 0.5]),
        r_squared_overall=0.8,
        size=np.array([12.0, 32.0]),
        covariance=covariance,
        notes=("", ""),
    )
    return mixture_of([[1.0], [0.0]], inference=found, **changes)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize(
    "settings", [{}, {"outliers": 0}, {"outliers": 0, "n_components": 1}, PARTITION], ids=str
)
def test_errors_of_few_rows_are_those_of_least_squares_whatever_was_allowed(settings):
    """With outliers=0 the noise is that of largest likelihood, and errors were 12 % too small."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    y = X @ np.arange(1.0, 7.0) + rng.standard_normal(30)
    inference = MixedLinearRegression(random_state=0, **settings).fit(X, y).mixture_.inference
    A = np.column_stack([X, np.ones(30)])
    left = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    known = np.sqrt(np.diag(np.linalg.inv(A.T @ A)) * (left @ left) / 23)
    np.testing.assert_allclose(inference.standard_error[0], known[:6], rtol=1e-3)
    np.testing.assert_allclose(inference.intercept_error[0], known[6], rtol=1e-3)


def test_intervals_and_tests_follow_students_law():
    mixture = known_mixture()
    reach = student.ppf(0.95, 10.0)
    np.testing.assert_allclose(
        mixture.conf_int(0.9)[0], [[1 - 0.1 * reach, 1 + 0.1 * reach], [-0.2 * reach, 0.2 * reach]]
    )
    np.testing.assert_allclose(mixture.t_values(), [[10.0, 0.0], [0.0, 1 / math.sqrt(0.05)]])
    expected = 2 * student.sf(np.abs(mixture.t_values()), [[10.0], [30.0]])
    np.testing.assert_allclose(mixture.p_values(), expected)
    through_origin = known_mixture(fit_intercept=False)
    assert through_origin.conf_int().shape == (2, 1, 2)
    assert through_origin.t_values().shape == through_origin.p_values().shape == (2, 1)


def test_separation_is_a_distance_in_units_of_uncertainty():
    distances = known_mixture().separation()
    expected = math.sqrt(1 / 0.04 + 1 / 0.09)
    np.testing.assert_allclose(distances, [[0.0, expected], [expected, 0.0]])


def test_separation_of_exact_and_of_unknown_components():
    mixture = known_mixture()

    def with_covariance(value):
        found = dataclasses.replace(mixture.inference, covariance=value)
        return dataclasses.replace(mixture, inference=found).separation()[0, 1]

    zero = np.zeros((2, 2, 2))
    assert with_covariance(zero) == math.inf
    assert math.isnan(with_covariance(None))
    assert math.isnan(with_covariance(np.full((2, 2, 2), np.nan)))
    part = mixture.inference.covariance.copy()
    part[0, 1, :] = part[0, :, 1] = np.nan
    assert with_covariance(part) == pytest.approx(1 / math.sqrt(0.04))
    same = dataclasses.replace(
        mixture,
        coef=np.ones((2, 1)),
        intercept=np.zeros(2),
        inference=dataclasses.replace(mixture.inference, covariance=zero),
    )
    assert same.separation()[0, 1] == 0.0


@settings(max_examples=10)
@given(seeds)
def test_separation_does_not_depend_on_units(seed):
    rng = np.random.default_rng(seed)
    X, y, truth = far_apart(seed, n=150)
    units = 10.0 ** rng.integers(-6, 6, 3)
    theta = np.column_stack([truth.intercept, truth.coef])
    distances = []
    for table, coef in ((X, theta), (X * units, theta / np.append(1.0, units))):
        problem = Problem.from_arrays(table, y)
        found = infer(MemoryEngine(problem), law_of(problem, coef))
        mixture = mixture_of(coef[:, 1:], intercept=coef[:, 0], inference=found)
        distances.append(mixture.separation()[0, 1])
    assert distances[0] == pytest.approx(distances[1], rel=1e-5)


def test_without_recorded_errors_the_way_out_is_said():
    bare = mixture_of([[1.0]])
    for question in (bare.conf_int, bare.t_values, bare.p_values, bare.separation):
        with pytest.raises(ParameterError, match=r"no standard errors .*bootstrap\(X, y\)"):
            question()
    with pytest.raises(ParameterError, match="no standard errors"):
        str(bare.summary())


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, "wide", True, None, np.nan])
def test_a_level_is_a_probability(level):
    with pytest.raises(ParameterError, match="level must be a number above 0 and below 1"):
        known_mixture().conf_int(level)
    with pytest.raises(ParameterError, match="level must be"):
        known_mixture().summary(level)
