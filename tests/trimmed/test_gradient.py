"""GD-ILTS: steps as Algorithm 3 writes them, schedules as Proposition 15 asks, no d x d matrix."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix import gd_ilts, ilts
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import ParameterError
from regimix.trimmed.gradient import ideal_steps
from tests.oracles import (
    fraction_for,
    kept_by_sorting,
    least_squares,
    noisy_table,
    one_regime,
    repeat_rows,
)

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=30, deadline=None)
inners = st.sampled_from(["gradient", "cg"])


def theta_of(fit):
    return np.concatenate([[fit.intercept], fit.coef])


def standardised(X, y, intercept):
    """The rows as the solver sees them."""
    problem = Problem.from_arrays(X, y, fit_intercept=intercept)
    engine = MemoryEngine(problem)
    rows = np.arange(len(y))
    return problem, engine.standardised(rows), engine.target(rows)


def first_round(X, y, start, count, intercept):
    """Rows, coefficients and kept rows of the first round; columns' root mean squares over them."""
    problem, Z, target = standardised(X, y, intercept)
    theta = problem.from_user(start, 0.0)
    kept = kept_by_sorting(np.abs(target - Z @ theta), count)
    return problem, theta, kept, Z, target, np.sqrt(np.mean(Z[kept] ** 2, axis=0))


def kept_square(X, y, fit, rows):
    return float(np.sum((y[rows] - X[rows] @ fit.coef - fit.intercept) ** 2))


# --- the inner steps ------------------------------------------------------------------------------


@few
@given(seeds, st.integers(20, 80), st.integers(1, 4), st.booleans(), st.integers(1, 6))
def test_steps_are_those_of_algorithm_3(seed, n, d, intercept, steps):
    """theta + eta / |S| sum of z r over the kept rows, M times, then a new selection.

    In units in which the kept rows' columns have mean square one.
    """
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    count = n // 2 + d
    start = rng.standard_normal(d)
    problem, theta, kept, Z, target, unit = first_round(X, y, start, count, intercept)
    rows, responses = Z[kept] / unit, target[kept]
    turned = theta * unit
    eta = 0.5 / np.linalg.eigvalsh(rows.T @ rows / count)[-1]
    for _ in range(steps):
        turned = turned + eta / count * (responses - rows @ turned) @ rows
    theta = turned / unit
    fit = gd_ilts(
        X,
        y,
        start,
        keep=fraction_for(count, n),
        steps=steps,
        step_size=eta,
        fit_intercept=intercept,
        max_iter=1,
    )
    assert fit.n_steps == (steps,)
    np.testing.assert_allclose(problem.from_user(fit.coef, fit.intercept), theta, atol=1e-10)
    np.testing.assert_array_equal(fit.kept, kept_by_sorting(np.abs(target - Z @ theta), count))


@few
@given(seeds, st.integers(20, 100), st.integers(1, 6), st.booleans(), inners)
def test_many_steps_approach_the_exact_step(seed, n, d, intercept, inner):
    """More steps are never worse on the rows they are made for; enough are the exact step."""
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    start = rng.standard_normal(d)
    options = {"keep": fraction_for(n // 2 + d, n), "fit_intercept": intercept}
    rows = ilts(X, y, start, max_iter=0, **options).kept
    exact = ilts(X, y, start, max_iter=1, **options)
    goal = kept_square(X, y, exact, rows)
    squares = []
    for steps in (1, 3, 10, 30, 3000):
        fit = gd_ilts(X, y, start, inner=inner, steps=steps, max_iter=1, **options)
        squares.append(kept_square(X, y, fit, rows))
    assert (np.diff(squares) <= 1e-9 * squares[0]).all()
    assert min(squares) >= goal * (1 - 1e-9)
    np.testing.assert_allclose(theta_of(fit), theta_of(exact), atol=1e-6)


@few
@given(seeds, st.integers(20, 100), st.integers(2, 6), st.booleans(), st.integers(1, 6))
def test_conjugate_steps_are_never_worse_than_gradient_steps(seed, n, d, intercept, steps):
    """Both search the same Krylov space; conjugate gradients find its best point."""
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    start = rng.standard_normal(d)
    options = {"keep": fraction_for(n // 2 + d, n), "fit_intercept": intercept}
    rows = ilts(X, y, start, max_iter=0, **options).kept
    squares = {
        inner: kept_square(
            X, y, gd_ilts(X, y, start, inner=inner, steps=steps, max_iter=1, **options), rows
        )
        for inner in ("gradient", "cg")
    }
    assert squares["cg"] <= squares["gradient"] * (1 + 1e-9)


@few
@given(seeds, st.integers(1, 5), st.booleans())
def test_as_many_conjugate_steps_as_coefficients_are_exact(seed, d, intercept):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, 60, d)
    start = rng.standard_normal(d)
    for steps in (d + intercept, 50):  # more than enough is no harm
        options = {"keep": 0.6, "fit_intercept": intercept, "max_iter": 1}
        fit = gd_ilts(X, y, start, inner="cg", steps=steps, **options)
        exact = ilts(X, y, start, **options)
        np.testing.assert_allclose(theta_of(fit), theta_of(exact), atol=1e-7)


@few
@given(seeds, st.integers(30, 100), st.integers(1, 6), st.booleans())
def test_the_step_size_comes_from_the_kept_rows(seed, n, d, intercept):
    """Not much below one over the largest eigenvalue of their mean Gram matrix, and downhill."""
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    X *= rng.uniform(0.5, 20, d)
    start = rng.standard_normal(d)
    count = n // 2 + d
    options = {"keep": fraction_for(count, n), "fit_intercept": intercept}
    fit = gd_ilts(X, y, start, steps=1, max_iter=1, **options)
    problem, theta, kept, Z, target, unit = first_round(X, y, start, count, intercept)
    rows = Z[kept] / unit
    gradient = (target[kept] - Z[kept] @ theta) @ rows / count
    step = (problem.from_user(fit.coef, fit.intercept) - theta) * unit
    eta = np.linalg.norm(step) / np.linalg.norm(gradient)
    np.testing.assert_allclose(step, eta * gradient, atol=1e-8 * np.linalg.norm(step))
    assert eta * np.linalg.eigvalsh(rows.T @ rows / count)[-1] >= 0.5
    before = np.sum((target[kept] - Z[kept] @ theta) ** 2) * problem.target_scale**2
    assert kept_square(X, y, fit, kept) <= before


# --- the schedule ---------------------------------------------------------------------------------


@few
@given(st.floats(1e-12, 1 / math.e), st.floats(0.5, 1e4), st.floats(0.05, 3.0))
def test_ideal_steps_follow_proposition_15(error, cost, rate):
    """u is proportional to log(w / (lambda log 1/lambda)), in whole steps and at least one."""
    formula = math.log(max(cost / (error * math.log(1 / error)), 1.0)) / rate
    if formula <= 100:  # a round has a most of its own
        assert abs(ideal_steps(error, cost, rate) - max(formula, 1.0)) <= 0.5 + 1e-9
    else:
        assert ideal_steps(error, cost, rate) >= 100


@few
@given(
    st.lists(st.floats(1e-15, 1 / math.e), min_size=2, max_size=2),
    st.lists(st.floats(0.5, 1e4), min_size=2, max_size=2),
    st.lists(st.floats(0.05, 3.0), min_size=2, max_size=2),
)
def test_ideal_steps_grow_as_the_error_falls_and_selections_cost_more(errors, costs, rates):
    assert ideal_steps(min(errors), costs[0], rates[0]) >= ideal_steps(
        max(errors), costs[0], rates[0]
    )
    assert ideal_steps(errors[0], max(costs), rates[0]) >= ideal_steps(
        errors[0], min(costs), rates[0]
    )
    assert ideal_steps(errors[0], costs[0], min(rates)) >= ideal_steps(
        errors[0], costs[0], max(rates)
    )


@pytest.mark.parametrize("error", [0.0, 1e-320, 0.5, 1.0, 7.0, math.inf])
def test_ideal_steps_are_a_whole_number_for_any_error(error):
    assert ideal_steps(error, 3.0, 0.7) >= 1


def test_a_fixed_schedule_makes_as_many_steps_as_asked():
    X, y = noisy_table(np.random.default_rng(1), 300, 4)
    fit = gd_ilts(X, y, keep=0.6, steps=7, max_iter=5)
    assert fit.n_steps == (7,) * 5
    assert fit.n_iter == 5


def test_costly_selections_make_longer_rounds():
    X, y = noisy_table(np.random.default_rng(1), 300, 4)
    cheap, costly = (gd_ilts(X, y, keep=0.6, selection_cost=w) for w in (1.0, 1e6))
    assert costly.n_steps[0] > cheap.n_steps[0]
    assert np.mean(costly.n_steps) > np.mean(cheap.n_steps)


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_ideal_rounds_get_longer_towards_the_end(seed):
    """As the error falls, more inner steps are worth their price."""
    X, y, _ = one_regime(seed, n=400, d=4, noise=0.0)
    steps = gd_ilts(X, y, keep=0.5, max_iter=60).n_steps
    assert max(steps[len(steps) // 2 :]) > steps[0]


# --- whole fits -----------------------------------------------------------------------------------


def awkward_table(kind, rng, n, d):
    X, y = noisy_table(rng, n, d)
    if kind == "leverage":
        X[: n // 20] *= 10.0 ** rng.uniform(1, 7)
    elif kind == "units":
        X *= 10.0 ** rng.uniform(-5, 5, d)
    elif kind == "noiseless":
        y = X @ rng.standard_normal(d)
        y[: n // 4] += rng.standard_normal(n // 4)
    elif kind == "grid":
        X = rng.integers(-2, 3, (n, d)).astype(float)
        y = rng.integers(-3, 4, n).astype(float)
    return X, y


@settings(max_examples=60, deadline=None)
@given(
    seeds,
    st.sampled_from(["noisy", "leverage", "units", "noiseless", "grid"]),
    inners,
    st.sampled_from(["ideal", 1, 4, 40]),
    st.booleans(),
    st.sampled_from([None, 0.3, 1e3]),
)
def test_the_objective_never_rises_and_a_fixed_point_is_one(
    seed, kind, inner, steps, intercept, step_size
):
    """What calls itself a fixed point is the least squares fit of the rows that fit it best."""
    rng = np.random.default_rng(seed)
    n, d = 60, 3
    X, y = awkward_table(kind, rng, n, d)
    fit = gd_ilts(
        X,
        y,
        rng.standard_normal(d),
        keep=0.6,
        inner=inner,
        steps=steps,
        step_size=step_size or "auto",
        fit_intercept=intercept,
        max_iter=100,
    )
    rounding = 1e-12 * (fit.objective[0] + y @ y)
    assert (np.diff(fit.objective) <= rounding).all()
    assert len(fit.n_steps) == fit.n_iter == len(fit.objective) - 1
    if fit.stopped == "fixed point":
        problem, Z, target = standardised(X, y, intercept)
        best = least_squares(Z[fit.kept], target[fit.kept])
        theta = problem.from_user(fit.coef, fit.intercept)
        size = np.abs(Z[fit.kept]).max(axis=0)  # errors that the rows can feel
        assert (np.abs(theta - best) * size).max() <= 1e-6 * (1 + (np.abs(best) * size).max())
        residuals = np.abs(y - X @ fit.coef - fit.intercept)
        assert residuals[fit.kept].max() <= residuals[~fit.kept].min() + 1e-7 * np.abs(y).max()


@few
@given(seeds, st.integers(1, 5), inners, st.booleans(), st.sampled_from(["ideal", 5]))
def test_without_noise_the_truth_is_found_as_by_the_exact_solver(seed, d, inner, intercept, steps):
    X, y, truth = one_regime(seed, n=400, d=d, noise=0.0, corruption=0.2)
    start = truth.coef[0] + 0.2
    options = {"keep": 0.6, "fit_intercept": intercept}
    exact = ilts(X, y, start, **options)
    fit = gd_ilts(X, y, start, inner=inner, steps=steps, max_iter=2000, **options)
    np.testing.assert_allclose(exact.coef, truth.coef[0], atol=1e-9)
    np.testing.assert_allclose(fit.coef, exact.coef, atol=1e-6 * np.abs(truth.coef).max())


@few
@given(seeds, inners, st.booleans(), st.booleans())
def test_a_batch_equals_one_by_one_and_chunks_do_not_matter(seed, inner, intercept, weighted):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, 60, 3)
    starts = rng.standard_normal((3, 3))
    weights = rng.integers(0, 3, 60) + (np.arange(60) < 9) if weighted else None
    options = {
        "keep": 0.7,
        "inner": inner,
        "fit_intercept": intercept,
        "sample_weight": weights,
        "max_iter": 20,
    }
    for start, fit in zip(starts, gd_ilts(X, y, starts, **options), strict=True):
        alone = gd_ilts(X, y, start, **options)
        cut = gd_ilts(X, y, start, chunk_rows=7, **options)
        for other in (alone, cut):
            np.testing.assert_array_equal(other.kept, fit.kept)
            np.testing.assert_allclose(theta_of(other), theta_of(fit), atol=1e-8)


@few
@given(seeds, inners, st.booleans())
def test_whole_weights_equal_repeated_rows(seed, inner, intercept):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, 50, 2)
    weights = rng.integers(0, 4, 50) + (np.arange(50) < 8)
    X_long, y_long = repeat_rows(X, y, weights)
    start = rng.standard_normal(2)
    options = {"keep": 0.7, "inner": inner, "fit_intercept": intercept}
    weighted = gd_ilts(X, y, start, sample_weight=weights, **options)
    repeated = gd_ilts(X_long, y_long, start, **options)
    np.testing.assert_allclose(theta_of(weighted), theta_of(repeated), atol=1e-7)


def test_without_a_start_all_coefficients_begin_at_zero():
    X, y = noisy_table(np.random.default_rng(3), 200, 3)
    states = []
    gd_ilts(X, y, keep=0.6, callback=states.append)
    np.testing.assert_array_equal(states[0].coef, 0)
    assert states[0].iteration == 0


def test_it_says_why_it_stopped():
    X, y = noisy_table(np.random.default_rng(4), 300, 3)
    assert gd_ilts(X, y, keep=0.6).stopped == "fixed point"
    short = gd_ilts(X, y, keep=0.6, max_iter=2)
    assert (short.stopped, short.n_iter) == ("max_iter", 2)
    assert gd_ilts(X, y, keep=0.6, tol=0.2).stopped == "tol"
    watched = gd_ilts(X, y, keep=0.6, callback=lambda state: state.iteration == 1)
    assert (watched.stopped, watched.n_iter) == ("callback", 1)


@pytest.mark.parametrize("inner", ["gradient", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
def test_no_matrix_of_columns_by_columns_is_ever_held(inner, intercept):
    n, d = 200, 3000
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = rng.standard_normal(n)
    tracemalloc.start()
    try:
        held = tracemalloc.get_traced_memory()[0]
        gd_ilts(X, y, keep=0.5, inner=inner, fit_intercept=intercept, max_iter=3)
        peak = tracemalloc.get_traced_memory()[1] - held
    finally:
        tracemalloc.stop()
    # A few copies of a chunk are in order (the whole table is one); a Gram matrix is not.
    assert peak <= 4 * X.nbytes
    assert peak <= 8 * d * d / 3


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("inner", "newton"),
        ("inner", None),
        ("steps", 0),
        ("steps", 2.5),
        ("steps", "many"),
        ("steps", True),
        ("step_size", 0.0),
        ("step_size", -1),
        ("step_size", "large"),
        ("step_size", math.nan),
        ("step_size", math.inf),
        ("selection_cost", 0.0),
        ("selection_cost", math.nan),
        ("selection_cost", "dear"),
        ("max_iter", -1),
        ("max_iter", 2.5),
        ("tol", -0.1),
        ("tol", math.nan),
        ("chunk_rows", 0),
        ("chunk_rows", -1),
    ],
)
def test_settings_outside_what_is_allowed_are_refused(option, value):
    X, y = noisy_table(np.random.default_rng(0), 30, 2)
    with pytest.raises(ParameterError, match=option):
        gd_ilts(X, y, keep=0.5, **{option: value})
