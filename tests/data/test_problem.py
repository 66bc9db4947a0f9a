"""The data door: units that change nothing but conditioning, and an exact way back."""

import dataclasses
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regimix import TrimmedRegressor, ilts
from regimix.data.problem import CENTER_STEPS, STANDARDISE_ROWS, Problem
from regimix.data.validation import CHUNK_BYTES
from regimix.errors import DataError, ParameterError
from tests.oracles import noisy_table, repeat_rows

few = settings(max_examples=50, deadline=None)
seeds = st.integers(0, 2**32 - 1)
EPSILON = np.finfo(np.float64).eps


def draw_table(rng, n=40, d=3, *, decades=8, offset=1e4):
    """A regression whose columns have any size and lie anywhere."""
    X, y = noisy_table(rng, n, d)
    scale = 10 ** rng.uniform(-decades, decades, d)
    shift = rng.uniform(-offset, offset, d)
    target_scale = 10 ** rng.uniform(-decades, decades)
    return (X + shift) * scale, (y + rng.uniform(-offset, offset)) * target_scale


def standardised(problem):
    """The rows as solvers see them, and their response; the slow way."""
    Z = (problem.X.astype(float) - problem.center) / problem.scale
    if problem.fit_intercept:
        Z = np.column_stack([np.ones(len(Z)), Z])
    return Z, (problem.y - problem.target_center) / problem.target_scale


# --- units ---------------------------------------------------------------------------------------


@few
@given(seeds, st.booleans())
def test_standardised_columns_are_of_size_one(seed, intercept):
    X, y = draw_table(np.random.default_rng(seed), n=200)
    problem = Problem.from_arrays(X, y, fit_intercept=intercept)
    Z, target = standardised(problem)
    for column in (*Z.T[int(intercept) :], target):
        if intercept:
            lower, middle, upper = np.percentile(column, [25, 50, 75])
            assert 0.6 < (upper - lower) / 1.349 < 1.6
            assert abs(middle) < 0.8
        else:
            assert 0.6 < np.median(np.abs(column)) < 1.6
    if not intercept:
        assert not problem.center.any()
        assert problem.target_center == 0.0


@few
@given(seeds)
def test_scales_are_powers_of_two_and_centers_have_few_digits(seed):
    X, y = draw_table(np.random.default_rng(seed))
    problem = Problem.from_arrays(X, y)
    scales = np.array([*problem.scale, problem.target_scale])
    centers = np.array([*problem.center, problem.target_center])
    np.testing.assert_array_equal(np.frexp(scales)[0], 0.5)
    steps = centers / scales * CENTER_STEPS
    np.testing.assert_array_equal(steps, np.rint(steps))


@few
@given(seeds, st.booleans(), st.booleans())
def test_units_are_the_same_for_weighted_repeated_and_shuffled_rows(seed, intercept, dependent):
    rng = np.random.default_rng(seed)
    X, y = draw_table(rng)
    if dependent:
        X[:, 2] = X[:, 0] + X[:, 1]
    weights = rng.integers(0, 4, len(y))
    weights[:3] = 1, 2, 3
    order = rng.permutation(len(y))
    weighted = Problem.from_arrays(X, y, weights, fit_intercept=intercept)
    shuffled = Problem.from_arrays(X[order], y[order], weights[order], fit_intercept=intercept)
    repeated = Problem.from_arrays(*repeat_rows(X, y, weights), fit_intercept=intercept)
    for other in (shuffled, repeated):
        assert other.mass == weighted.mass == weights.sum()
        np.testing.assert_array_equal(other.center, weighted.center)
        np.testing.assert_array_equal(other.scale, weighted.scale)
        assert other.target_center == weighted.target_center
        assert other.target_scale == weighted.target_scale


def test_gross_values_do_not_stretch_the_units():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.normal(size=400)
    clean = Problem.from_arrays(X, y)
    X[::10, 0], y[::10] = 1e25, -1e25
    dirty = Problem.from_arrays(X, y)
    assert (dirty.scale <= 2 * clean.scale).all()
    assert dirty.target_scale <= 2 * clean.target_scale


@pytest.mark.parametrize("intercept", [True, False])
def test_a_rare_value_outside_the_sample_still_gives_a_scale(intercept):
    n = 3 * STANDARDISE_ROWS
    X = np.zeros((n, 2))
    X[1, 0] = 1.0  # the sample is evenly spaced, and this is not part of it
    X[::100, 1] = 1.0
    problem = Problem.from_arrays(X, np.arange(float(n)), fit_intercept=intercept)
    assert problem.scale[0] == 1.0
    assert 0.05 < problem.scale[1] <= 1.0
    np.testing.assert_array_equal(problem.center, 0.0)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.0, 1e8, 1e-300, 1e139])
def test_a_constant_column_is_centred_to_exactly_zero(value):
    X = np.column_stack([np.full(20, value), np.arange(20.0)])
    problem = Problem.from_arrays(X, np.arange(20.0))
    assert problem.center[0] == value
    assert problem.scale[0] > 0
    assert np.isfinite(1 / problem.scale[0])


@pytest.mark.parametrize("value", [0.1, -7.0, 1e8])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_constant_response_has_the_scale_of_its_value(value, intercept):
    X, y = np.arange(20.0)[:, None], np.full(20, value)
    problem = Problem.from_arrays(X, y, fit_intercept=intercept)
    assert problem.target_center == (value if intercept else 0.0)
    assert 0.5 < problem.target_scale / abs(value) < 2


@pytest.mark.parametrize("value", [0.0, 1e-300])
def test_a_response_of_nothing_has_scale_one(value):
    problem = Problem.from_arrays(np.arange(20.0)[:, None], np.full(20, value))
    assert problem.target_center == value
    assert problem.target_scale == 1.0


def test_a_response_that_is_constant_but_for_rounding_is_constant():
    y = np.where(np.arange(30) % 2, 0.3, 0.1 + 0.2)
    assert np.ptp(y) > 0
    problem = Problem.from_arrays(np.arange(30.0)[:, None], y)
    assert problem.target_scale == 0.25


# --- the way back --------------------------------------------------------------------------------


@few
@given(seeds, st.booleans(), st.integers(1, 4))
def test_to_user_and_back(seed, intercept, batch):
    rng = np.random.default_rng(seed)
    problem = Problem.from_arrays(*draw_table(rng), fit_intercept=intercept)
    theta = rng.normal(size=(batch, problem.n_columns)) * 10 ** rng.uniform(-3, 3)
    back = problem.from_user(*problem.to_user(theta))
    first = int(intercept)
    np.testing.assert_array_equal(back[:, first:], theta[:, first:])
    if intercept:
        size = (
            np.abs(theta[:, 0])
            + np.abs(theta[:, 1:]) @ np.abs(problem.center / problem.scale)
            + abs(problem.target_center / problem.target_scale)
        )
        assert (np.abs(back[:, 0] - theta[:, 0]) <= 16 * EPSILON * size).all()


@few
@given(seeds, st.booleans(), st.integers(1, 4))
def test_from_user_and_back(seed, intercept, batch):
    rng = np.random.default_rng(seed)
    problem = Problem.from_arrays(*draw_table(rng), fit_intercept=intercept)
    unit = problem.target_scale
    coef = rng.normal(size=(batch, 3)) * unit / problem.scale
    constant = rng.normal(size=batch) * unit * intercept
    back, back_constant = problem.to_user(problem.from_user(coef, constant))
    np.testing.assert_array_equal(back, coef)
    size = np.abs(constant) + np.abs(coef) @ np.abs(problem.center) + abs(problem.target_center)
    assert (np.abs(back_constant - constant) <= 16 * EPSILON * size).all()


@few
@given(seeds, st.booleans())
def test_both_units_predict_the_same(seed, intercept):
    rng = np.random.default_rng(seed)
    problem = Problem.from_arrays(*draw_table(rng, offset=10), fit_intercept=intercept)
    Z, target = standardised(problem)
    theta = rng.normal(size=problem.n_columns)
    coef, constant = problem.to_user(theta)
    residuals = (problem.y - problem.X @ coef - constant) / problem.target_scale
    np.testing.assert_allclose(residuals, target - Z @ theta, rtol=0, atol=1e-11)
    slopes, shift = problem.raw(theta)
    np.testing.assert_allclose(problem.X @ slopes + shift, Z @ theta, rtol=0, atol=1e-11)
    if not intercept:
        assert constant == 0.0
        assert shift == 0.0


def test_one_vector_and_a_batch_translate_alike():
    rng = np.random.default_rng(1)
    problem = Problem.from_arrays(*draw_table(rng))
    theta = rng.normal(size=(2, 5, 4))
    coef, constant = problem.to_user(theta)
    assert coef.shape == (2, 5, 3)
    assert constant.shape == (2, 5)
    single, single_constant = problem.to_user(theta[1, 2])
    np.testing.assert_array_equal(single, coef[1, 2])
    np.testing.assert_allclose(single_constant, constant[1, 2], rtol=1e-12)
    assert problem.from_user(coef, constant).shape == theta.shape


def test_a_coefficient_beyond_floating_point_is_refused():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 1)) * 1e-139, rng.normal(size=20) * 1e138
    problem = Problem.from_arrays(X, y)
    with pytest.raises(DataError, match=r"coefficient is too large .*rescale"):
        problem.to_user(np.array([0.0, 1e40]))


@pytest.mark.parametrize("start", [1e200, -1e308, 5e307])
def test_a_start_beyond_reason_is_refused(start):
    X, y = noisy_table(np.random.default_rng(3), 30, 2)
    for options in ({}, {"fit_intercept": True}):
        with pytest.raises(ParameterError, match=r"squares overflow.*units of the table"):
            ilts(X, y, [start, 1.0], keep=0.8, **options)


# --- rounding ------------------------------------------------------------------------------------


@few
@given(seeds, st.booleans(), st.sampled_from([1.0, 1e4, 1e8]))
def test_the_residual_floor_bounds_rounding(seed, intercept, offset):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3)) + offset
    theta = rng.normal(size=4)[: 3 + intercept]
    problem = Problem.from_arrays(X, rng.normal(size=50), fit_intercept=intercept)
    slopes, shift = problem.raw(theta)
    wide = [np.asarray(part, dtype=np.longdouble) for part in (X, slopes, shift)]
    error = (X @ slopes + shift) - (wide[0] @ wide[1] + wide[2])
    floor = problem.residual_floor(theta)
    assert floor.shape == ()
    assert np.abs(error).max() <= floor
    # A floor that is far too high would call real residuals equal.
    assert floor <= 1e-13 * (1 + offset * (problem.center != 0).any())


# --- weights -------------------------------------------------------------------------------------


def test_whole_weights_count_rows():
    X, y = noisy_table(np.random.default_rng(4), 6, 1)
    problem = Problem.from_arrays(X, y, [0, 1, 2, 3, 1, 1])
    assert problem.counts
    assert problem.mass == 8.0
    np.testing.assert_array_equal(problem.weights, [0, 1, 2, 3, 1, 1])


def test_other_weights_are_relative():
    X, y = noisy_table(np.random.default_rng(5), 4, 1)
    for unit in (1.0, 1e-30, 1e30):
        problem = Problem.from_arrays(X, y, np.array([0.0, 0.5, 1.0, 1.75]) * unit)
        assert not problem.counts
        assert problem.mass == pytest.approx(3.0)
        np.testing.assert_allclose(problem.weights, np.array([0.0, 6.0, 12.0, 21.0]) / 13)


@few
@given(seeds, st.sampled_from([0.1, 0.3, 1.7]), st.booleans())
@example(seed=113, unit=0.1, intercept=False)
def test_the_unit_of_weights_does_not_matter(seed, unit, intercept):
    """Quartiles between rows, deviations between powers of two: rounding decides neither."""
    rng = np.random.default_rng(seed)
    eighth = np.repeat(np.arange(8) == 0, 6).astype(float)
    weights = np.tile(rng.integers(1, 5, 6), 8).astype(float)
    X = np.column_stack([eighth, rng.permutation(np.repeat([0.0, 1.0], 24)), rng.normal(size=48)])
    y = rng.normal(size=48)
    whole = Problem.from_arrays(X, y, weights, fit_intercept=intercept)
    other = Problem.from_arrays(X, y, unit * weights, fit_intercept=intercept)
    for name in ("center", "scale", "target_center", "target_scale"):
        np.testing.assert_array_equal(getattr(other, name), getattr(whole, name), err_msg=name)


@pytest.mark.parametrize("power", range(0, 53, 4))
def test_light_rows_beside_a_heavy_one_keep_their_digits(power):
    """However little they weigh, the column varies by what it varies."""
    X = np.array([[2.9999], [3.0001], [3.0]])
    weights = np.array([1.0, 1.0, 2.0**power])
    problem = Problem.from_arrays(X, [1.0, 2.0, 3.0], weights)
    Z, _ = standardised(problem)
    slope, constant = problem.raw(problem.from_user(np.array([5.0]), 7.0))
    got = (X @ slope + constant) * problem.target_scale + problem.target_center
    np.testing.assert_allclose(got, 5 * X[:, 0] + 7, rtol=1e-9)
    assert np.ptp(Z[:, 1]) >= 1.0
    # A column whose values are equal in all digits that are left is refused as before.
    with pytest.raises(DataError, match="too few digits"):
        Problem.from_arrays(1e12 + 1e4 * X, [1.0, 2.0, 3.0], weights)


def test_absent_rows_do_not_shape_the_units():
    rng = np.random.default_rng(6)
    X, y = draw_table(rng)
    weights = np.ones(len(y))
    weights[::3] = 0
    present = weights > 0
    everything = Problem.from_arrays(np.where(present[:, None], X, 1e6 * X), y, weights)
    without = Problem.from_arrays(X[present], y[present])
    np.testing.assert_array_equal(everything.scale, without.scale)
    np.testing.assert_array_equal(everything.center, without.center)


def test_a_few_rows_among_many_absent_ones_give_the_units():
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(3 * STANDARDISE_ROWS, 2)), rng.normal(size=3 * STANDARDISE_ROWS)
    weights = np.zeros(len(y))
    weights[1:100:3] = 1.0  # between the evenly spaced rows of a sample of all
    problem = Problem.from_arrays(X, y, weights)
    present = Problem.from_arrays(X[1:100:3], y[1:100:3])
    np.testing.assert_array_equal(problem.scale, present.scale)
    np.testing.assert_array_equal(problem.center, present.center)


def test_rows_that_are_standardised_already_keep_their_units():
    Z, y = noisy_table(np.random.default_rng(7), 5, 2)
    problem = Problem.from_standardised(Z, y, np.ones(5), counts=False)
    assert problem.weights is None
    assert problem.counts
    assert problem.mass == 5.0
    np.testing.assert_array_equal(problem.to_user(np.array([1.0, 2.0]))[0], [1.0, 2.0])
    weighted = Problem.from_standardised(Z, y, np.arange(5.0), counts=True)
    assert weighted.mass == 10.0


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_the_door_does_not_copy_the_table(order, kind):
    rng = np.random.default_rng(8)
    n, d = 100_000, 20
    X = np.asarray(rng.normal(size=(n, d)), dtype=kind, order=order)
    y, weights = rng.normal(size=n), rng.uniform(size=n)
    tracemalloc.start()
    try:
        problem = Problem.from_arrays(X, y, weights)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.shares_memory(problem.X, X)
    assert np.shares_memory(problem.y, y)
    assert peak < 4 * 8 * n + 3 * CHUNK_BYTES


def test_many_columns_are_sampled_a_few_at_a_time():
    X = np.random.default_rng(9).normal(size=(STANDARDISE_ROWS, 600)).astype(np.float32)
    y = np.arange(float(len(X)))
    tracemalloc.start()
    try:
        Problem.from_arrays(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * CHUNK_BYTES < X.nbytes * 2


def test_a_pandas_frame_is_not_copied():
    frame = pd.DataFrame(np.random.default_rng(10).normal(size=(50, 3)), columns=list("abc"))
    problem = Problem.from_arrays(frame.drop(columns="c"), frame["c"])
    assert problem.feature_names == ("a", "b")
    whole = Problem.from_arrays(frame, frame["a"])
    assert np.shares_memory(whole.X, frame.to_numpy())
    assert np.shares_memory(whole.y, frame["a"].to_numpy())


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, ">f8"])
def test_what_the_user_passed_is_never_modified(order, kind):
    rng = np.random.default_rng(11)
    X, y = noisy_table(rng, 60, 2)
    X = np.asarray(100 * X, dtype=kind, order=order)
    y, weights = (100 * y).astype(kind), rng.uniform(0.5, 2, 60)
    start = np.array([1.0, 2.0])
    before = [part.tobytes() for part in (X, y, weights, start)]
    for writeable in (True, False):
        for part in (X, y, weights, start):
            part.setflags(write=writeable)
        ilts(X, y, start, keep=0.8, fit_intercept=True, sample_weight=weights)
        robust = TrimmedRegressor(init=start, n_starts=2, random_state=0)
        robust.fit(X, y, sample_weight=weights).predict(X)
        assert [part.tobytes() for part in (X, y, weights, start)] == before


def test_a_problem_is_frozen():
    problem = Problem.from_arrays(*noisy_table(np.random.default_rng(12), 10, 2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.mass = 3.0
