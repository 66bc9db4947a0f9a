"""Refits to resampled rows: beside the formulas, with weights, and where components are lost."""

import dataclasses
import math

import numpy as np
import pytest

from regimix import MixedLinearRegression, global_ilts
from regimix.data.problem import Problem
from regimix.errors import DataError, ParameterError
from regimix.model.blocks import Law
from regimix.result import bootstrap as module
from regimix.result.inference import errors, estimates
from regimix.synth import make_mlrc
from tests.oracles import repeat_rows
from tests.result.test_inference import far_apart, fitted

pytestmark = pytest.mark.usefixtures("searched_once")


def slow_bootstrap(A, y, n_resamples, rng):
    """Least squares on rows drawn with replacement: errors of the coefficients."""
    found = []
    for _ in range(n_resamples):
        rows = rng.integers(0, len(y), len(y))
        found.append(np.linalg.lstsq(A[rows], y[rows], rcond=None)[0])
    return np.std(found, axis=0, ddof=1)


def within(one, other, n_resamples, errors_=5):
    """Whether deviations over so many resamples agree up to chance."""
    return (np.abs(np.log(one / other)) <= errors_ / math.sqrt(2 * n_resamples)).all()


# --- beside the formulas --------------------------------------------------------------------------


def test_apart_it_is_the_bootstrap_of_least_squares_on_each_regime():
    X, y, truth = far_apart(0, n=200)
    mixture = fitted(X, y, truth)
    again = mixture.bootstrap(X, y, 150, random_state=1)
    assert again.coef.shape == (150, 2, 3)
    assert again.intercept.shape == (150, 2)
    assert again.standard_error.shape == (2, 4)
    rng = np.random.default_rng(2)
    for j in range(2):
        rows = mixture.labels == j
        A = np.column_stack([X[rows], np.ones(rows.sum())])
        expected = slow_bootstrap(A, y[rows], 150, rng)
        assert within(again.standard_error[j], expected, 150 / 2)
    assert not again.failures.any()


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_it_agrees_with_the_recorded_errors_even_where_regimes_overlap(noise):
    X, y, truth = make_mlrc(1000, 3, 2, noise=noise, separation=1.2, random_state=3)
    mixture = fitted(X, y, truth)
    again = mixture.bootstrap(X, y, 200, random_state=1)
    ratio = again.standard_error / errors(mixture)
    assert np.exp(np.abs(np.log(ratio)).mean()) < 1.15
    for kind in ("percentile", "basic"):
        bounds = again.conf_int(kind=kind)
        assert bounds.shape == (2, 4, 2)
        assert (bounds[..., 0] < estimates(mixture)).mean() > 0.9
        widths = (bounds[..., 1] - bounds[..., 0]) / np.ptp(mixture.conf_int(), axis=-1)
        assert np.exp(np.abs(np.log(widths)).mean()) < 1.2


def test_intervals_are_quantiles_of_the_refits_or_those_mirrored():
    X, y, truth = far_apart(0, n=200)
    again = fitted(X, y, truth).bootstrap(X, y, 40, level=0.8, random_state=1)
    low, high = (np.quantile(again.values, tail, axis=0) for tail in (0.1, 0.9))
    np.testing.assert_allclose(again.conf_int(), np.stack([low, high], axis=-1))
    mirrored = np.stack([2 * again.estimate - high, 2 * again.estimate - low], axis=-1)
    np.testing.assert_allclose(again.conf_int(kind="basic"), mirrored)
    assert (np.ptp(again.conf_int(0.95), axis=-1) > np.ptp(again.conf_int(), axis=-1)).all()
    with pytest.raises(ParameterError, match="kind must be"):
        again.conf_int(kind="bca")
    assert repr(again) == "Bootstrap of 40 resamples, 2 regimes"


@pytest.mark.parametrize(
    "options",
    [{"outliers": 0.06}, {"search": "partition"}, {"fit_intercept": False}, {"noise": 0.0}],
)
def test_refits_end_as_the_fit_did(options):
    """Where nothing is resampled, nothing changes: every kind of fit is a fixed point."""
    noise = options.pop("noise", 0.02)
    apart = 5.0 * options.get("fit_intercept", True)
    clean = 0.0 if options.get("search") == "partition" else 0.06
    X, y, truth = far_apart(
        1, n=200, noise=noise, corruption=clean, norms=[1.0, 3.0], intercepts=[0.0, apart]
    )
    mixture = fitted(X, y, truth, **options)
    problem = Problem.from_arrays(X, y, fit_intercept=mixture.fit_intercept)
    law = module._law(mixture, problem)
    refit = module._refitter(problem, law, module._labels(mixture, problem), mixture.settings)
    same = refit(module.MemoryEngine(problem))
    thetas, lost, _ = module._matched(law, same, problem.mass)
    coef, intercept = problem.to_user(thetas)
    room = 0.1 * np.nan_to_num(errors(mixture)).max() + 1e-9
    np.testing.assert_allclose(coef, mixture.coef, atol=room)
    np.testing.assert_allclose(intercept, mixture.intercept, atol=room)
    assert not lost.any()
    again = mixture.bootstrap(X, y, 30, random_state=0)
    assert np.isfinite(again.values).all()
    if noise:
        assert within(again.standard_error.mean(), errors(mixture).mean(), 30)
    else:
        assert (again.standard_error < 1e-6).all()


# --- rows and weights -----------------------------------------------------------------------------


def test_every_stratum_keeps_its_size():
    labels = np.array([0] * 30 + [1] * 10 + [-1] * 5)
    X = np.arange(45.0)[:, None]
    for weights in (None, np.arange(45) % 3):
        problem = Problem.from_arrays(X, X[:, 0], weights)
        drawn = module._draw(problem, labels, np.random.default_rng(0))
        counted = np.ones(45) if weights is None else weights
        for label in (0, 1, -1):
            assert drawn[labels == label].sum() == counted[labels == label].sum()
        assert (drawn[counted == 0] == 0).all()
        assert (drawn == 0).any()


def test_repetitions_are_drawn_one_by_one_and_importances_with_their_rows():
    labels = np.zeros(4, dtype=np.int64)
    X = np.arange(4.0)[:, None]
    rng = np.random.default_rng(0)
    many = Problem.from_arrays(X, X[:, 0], [1000, 2000, 3000, 0])
    drawn = module._draw(many, labels, rng)
    assert (np.abs(drawn - [1000, 2000, 3000, 0]) <= 5 * np.sqrt([1000, 2000, 3000, 0])).all()
    few = Problem.from_arrays(X, X[:, 0], [0.5, 1.0, 1.5, 0.0])
    times = module._draw(few, labels, rng) / np.where(few.weights > 0, few.weights, 1.0)
    np.testing.assert_allclose(times, np.round(times))
    assert times.sum() == pytest.approx(3)


def test_whole_weights_are_repetitions():
    X, y, truth = far_apart(2, n=200)
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    mixture = fitted(X, y, truth, sample_weight=weights, keep_rows=True)
    short = mixture.bootstrap(X, y, 150, random_state=0, sample_weight=weights)
    long = mixture.bootstrap(*repeat_rows(X, y, weights), 150, random_state=1)
    assert within(short.standard_error, long.standard_error, 150 / 2)
    # Taken from the mixture itself, rows bring their weights.
    own = mixture.bootstrap(n_resamples=20, random_state=0)
    same = mixture.bootstrap(X, y, 20, random_state=0, sample_weight=weights)
    np.testing.assert_allclose(own.values, same.values)


def test_rows_may_be_left_out_only_if_the_mixture_holds_them_all():
    X, y, truth = far_apart(0, n=200)
    assert fitted(X, y, truth).excerpt is None
    mixture = fitted(X, y, truth, keep_rows=True)
    assert mixture.excerpt.complete
    own, given = (
        mixture.bootstrap(n_resamples=5, random_state=0),
        mixture.bootstrap(X, y, 5, random_state=0),
    )
    np.testing.assert_array_equal(own.values, given.values)
    part = dataclasses.replace(mixture.excerpt, complete=False)
    for excerpt in (None, part):
        with pytest.raises(ParameterError, match="all 200 rows of its fit: pass X and y"):
            dataclasses.replace(mixture, excerpt=excerpt).bootstrap()
    with pytest.raises(DataError, match="y is None"):
        mixture.bootstrap(X)
    with pytest.raises(ParameterError, match="n_resamples must be a whole number from 1"):
        mixture.bootstrap(n_resamples=0)


def test_seeds_repeat_and_jobs_change_nothing():
    X, y, truth = far_apart(0, n=200)
    mixture = fitted(X, y, truth)
    one = mixture.bootstrap(X, y, 8, random_state=3)
    two = mixture.bootstrap(X, y, 8, random_state=3, n_jobs=2)
    other = mixture.bootstrap(X, y, 8, random_state=4)
    np.testing.assert_array_equal(one.values, two.values)
    assert not np.array_equal(one.values, other.values)


# --- components that are lost ---------------------------------------------------------------------


def law(thetas, share):
    thetas = np.array(thetas, dtype=float)
    return Law(thetas, np.full(len(thetas), 0.1), np.array(share), -3.0)


def test_components_are_matched_back_and_lost_ones_told():
    before = law([[0.0, 0], [5, 0], [0, 5]], [0.4, 0.3, 0.2])
    swapped = law([[5.1, 0], [0.1, 0], [0, 5]], [0.3, 0.4, 0.2])
    thetas, lost, size = module._matched(before, swapped, 100.0)
    np.testing.assert_allclose(thetas, [[0.1, 0], [5.1, 0], [0, 5]])
    np.testing.assert_allclose(size, [40, 30, 20])
    assert not lost.any()
    # Two on one: the one that is further away has become another.
    two = law([[0.1, 0], [4.9, 0.2], [4.8, 0]], [0.4, 0.3, 0.2])
    thetas, lost, _ = module._matched(before, two, 100.0)
    assert lost.tolist() == [False, False, True]
    # Next to no rows.
    few = law([[0.0, 0], [5, 0], [0, 5]], [0.4, 0.3, 0.01])
    _, lost, _ = module._matched(before, few, 100.0)
    assert lost.tolist() == [False, False, True]


def test_what_is_lost_is_counted_and_does_not_count():
    X, y, truth = far_apart(0, n=200)
    again = fitted(X, y, truth).bootstrap(X, y, 10, random_state=0)
    coef, intercept = again.coef.copy(), again.intercept.copy()
    coef[:4, 1], intercept[:4, 1] = np.nan, np.nan
    part = dataclasses.replace(again, coef=coef, intercept=intercept, failures=np.array([0, 4]))
    np.testing.assert_allclose(part.standard_error[0], again.standard_error[0])
    np.testing.assert_allclose(part.standard_error[1], again.values[4:, 1].std(axis=0, ddof=1))
    assert np.isfinite(part.conf_int()).all()
    assert "; 4 times one was lost" in repr(part)
    coef[:9, 1], intercept[:9, 1] = np.nan, np.nan
    nothing = dataclasses.replace(again, coef=coef, intercept=intercept)
    assert np.isnan(nothing.standard_error[1]).all()


def test_a_component_of_few_rows_is_lost_now_and_then_and_the_others_are_not():
    """Four coefficients from nine rows, far away; what is lost is NaN, and only that."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((109, 3))
    y = X @ np.ones(3) + 0.1 * rng.standard_normal(109)
    y[:9] = 30 + X[:9] @ [5.0, -5.0, 2.0] + 0.1 * rng.standard_normal(9)
    start = [[1.0, 1, 1, 0], [5, -5, 2, 30]]
    mixture = global_ilts(X, y, n_components=2, init=start, fit_intercept=True, random_state=0)
    assert (mixture.labels[:9] == 1).all()
    again = mixture.bootstrap(X, y, 60, random_state=0)
    gone = np.isnan(again.values).all(axis=2).sum(axis=0)
    assert again.failures.tolist() == gone.tolist()
    assert again.failures[0] == 0
    assert np.isfinite(again.conf_int()).all()


def test_refits_that_could_not_move_are_failures_and_not_certainty():
    """Four rows for seven coefficients, and regimes of two or three rows: nothing is known."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((4, 6)), rng.standard_normal(4)
    mixture = global_ilts(X, y, fit_intercept=True, random_state=0)
    again = mixture.bootstrap(X, y, 10, random_state=0)
    assert again.failures.tolist() == [10]
    assert np.isnan(again.standard_error).all()
    assert np.isnan(again.conf_int()).all()
    X, y = rng.standard_normal((12, 2)), rng.standard_normal(12)
    mixture = global_ilts(
        X, y, n_components=5, search="partition", fit_intercept=True, random_state=0
    )
    again = mixture.bootstrap(X, y, 20, random_state=0)
    small = mixture.inference.degrees < 1
    assert small.any()
    assert (again.failures[small] == 20).all()
    assert np.isnan(again.standard_error[small]).all()


def test_rows_that_repeat_fewer_than_the_coefficients_determine_nothing():
    problem = Problem.from_arrays(np.arange(12.0)[:, None], np.zeros(12))
    labels = np.repeat([0, 1, -1], [6, 3, 3])
    counts = np.array([6.0] + [0] * 5 + [1, 1, 1] + [3, 0, 0])
    drawn = dataclasses.replace(problem, weights=counts, mass=12.0)
    assert module._too_few(drawn, labels, np.array([6.0, 5.0])).tolist() == [True, False]
    assert module._too_few(drawn, labels, np.array([6.0, 3.0])).tolist() == [True, True]


def test_coefficients_that_the_rows_leave_open_have_no_error_and_the_others_do():
    X, y, _ = far_apart(0, n=200)
    X = np.column_stack([X, X[:, 0]])
    mixture = global_ilts(X, y, n_components=2, fit_intercept=True, random_state=0)
    unknown = np.isnan(errors(mixture))
    assert unknown[:, [0, 3]].all()
    assert not unknown[:, [1, 2, 4]].any()
    again = mixture.bootstrap(X, y, 20, random_state=0)
    np.testing.assert_array_equal(np.isnan(again.standard_error), unknown)
    np.testing.assert_array_equal(np.isnan(again.conf_int()).all(axis=-1), unknown)
    assert not again.failures.any()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_net_is_resampled_with_its_labels_held_around_its_estimate(weighted):
    X, y, _ = make_mlrc(600, 3, 3, noise=0.1, corruption=0.06, random_state=5)
    weights = np.arange(600) % 3 if weighted else None
    options = {"search": "net", "n_components": 3, "fit_intercept": True, "random_state": 0}
    mixture = global_ilts(X, y, sample_weight=weights, **options)
    again = mixture.bootstrap(X, y, 100, random_state=0, sample_weight=weights)
    held = MixedLinearRegression(keep_rows=True, **options).fit(X, y, weights).mixture_
    own = held.bootstrap(n_resamples=5, random_state=0)
    known = np.isfinite(again.standard_error)
    assert known[0].all()
    assert own.values.shape == (5, *known.shape)
    low, high = np.moveaxis(again.conf_int(0.99), -1, 0)
    assert (low[known] < again.estimate[known]).all()
    assert (again.estimate[known] < high[known]).all()
    rows = mixture.labels == 0
    if not weighted:
        A = np.column_stack([X[rows], np.ones(rows.sum())])
        expected = slow_bootstrap(A, y[rows], 100, np.random.default_rng(0))
        assert within(again.standard_error[0], expected, 100 / 2)
