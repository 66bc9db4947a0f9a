"""ILTS beside its slow twin: round by round, and as algebra says."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regimix import ilts
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import ParameterError
from regimix.synth import make_mlrc
from tests.oracles import (
    all_subsets_lts,
    design,
    fraction_for,
    least_squares,
    noisy_table,
    random_rotation,
    repeat_rows,
    slow_ilts,
)

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def theta_of(fit, intercept):
    return np.concatenate([[fit.intercept], fit.coef]) if intercept else fit.coef


def enough(n, d):
    """A number of rows to keep that leaves something to fit."""
    return max(n // 2, d + 3)


# --- round by round -------------------------------------------------------------------------------


@few
@given(seeds, st.integers(12, 80), st.integers(1, 5), st.booleans(), st.floats(0.5, 1.0))
def test_every_round_equals_the_slow_twin(seed, n, d, intercept, share):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    count = max(int(share * n), d + 3)
    start, start_intercept = rng.standard_normal(d), float(intercept * rng.standard_normal())
    theta = np.concatenate([[start_intercept], start]) if intercept else start
    twin = slow_ilts(design(X, intercept), y, theta, count)
    for max_iter in range(1, twin.n_iter + 2):
        fit = ilts(
            X,
            y,
            start,
            keep=fraction_for(count, n),
            start_intercept=start_intercept,
            fit_intercept=intercept,
            max_iter=max_iter,
        )
        now = min(max_iter, twin.n_iter)
        assert fit.n_iter == now
        np.testing.assert_array_equal(fit.kept, twin.kept[now] > 0)
        np.testing.assert_allclose(theta_of(fit, intercept), twin.thetas[now], atol=1e-9)
        np.testing.assert_allclose(fit.objective, twin.objective[: now + 1], rtol=1e-9)
    assert fit.stopped == twin.stopped == "fixed point"
    assert fit.kept_weight is None
    assert fit.rank == d + intercept


@few
@given(seeds, st.integers(30, 60), st.integers(1, 4), st.booleans(), st.booleans())
def test_weighted_rounds_equal_the_slow_twin(seed, n, d, intercept, whole):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    weights = rng.integers(1, 5, n).astype(float) if whole else rng.uniform(0.2, 2.0, n)
    start = rng.standard_normal(d)
    theta = np.concatenate([[0.0], start]) if intercept else start
    mass = 0.7 * weights.sum()
    mass = np.floor(mass + 1e-9) if whole else mass
    twin = slow_ilts(design(X, intercept), y, theta, mass, weights=weights)
    options = {"keep": 0.7, "fit_intercept": intercept, "sample_weight": weights}
    fit = ilts(X, y, start, **options)
    unit = 1.0 if whole else n / weights.sum()  # importances have a mean of one
    assert fit.n_iter == twin.n_iter
    np.testing.assert_allclose(fit.kept_weight, unit * twin.kept[-1], atol=1e-7)
    np.testing.assert_allclose(theta_of(fit, intercept), twin.thetas[-1], atol=1e-8)
    np.testing.assert_allclose(fit.objective, unit * np.array(twin.objective), rtol=1e-7)


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(1, 6), st.sampled_from([1, 3, 5, 6]), st.booleans())
@example(seed=0, n_long=1, power=6, intercept=False)
@example(seed=1, n_long=2, power=6, intercept=True)
@example(seed=2, n_long=1, power=5, intercept=True)
def test_long_rows_that_are_kept_cost_no_precision(seed, n_long, power, intercept):
    """Good rows of up to a million times the usual length: still the solution from scratch."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 3))
    X[:n_long] *= 10.0**power
    coef = rng.standard_normal(3)
    y = X @ coef + 0.3 * rng.standard_normal(200)
    y[100:160] += 5
    fit = ilts(X, y, coef, keep=0.6, fit_intercept=intercept)
    A = design(X, intercept)[fit.kept]
    # Long rows first: then the usual factorisation keeps its precision too.
    order = np.argsort(-np.linalg.norm(A, axis=1))
    expected = least_squares(A[order], y[fit.kept][order])
    np.testing.assert_allclose(theta_of(fit, intercept), expected, atol=1e-9)


def test_without_a_start_least_squares_on_all_rows_begins():
    rng = np.random.default_rng(8)
    X, y = noisy_table(rng, 150, 3)
    for intercept in (False, True):
        first = ilts(X, y, keep=0.6, fit_intercept=intercept, max_iter=1)
        A = design(X, intercept)
        twin = slow_ilts(A, y, least_squares(A, y), 90, max_iter=1)
        np.testing.assert_allclose(first.objective, twin.objective, rtol=1e-9)
        np.testing.assert_array_equal(first.kept, twin.kept[-1] > 0)


def test_keeping_everything_is_least_squares():
    rng = np.random.default_rng(9)
    X, y = noisy_table(rng, 60, 4)
    fit = ilts(X, y, rng.standard_normal(4), keep=1.0, fit_intercept=True)
    np.testing.assert_allclose(theta_of(fit, True), least_squares(design(X, True), y), atol=1e-12)
    assert fit.kept.all()


# --- the objective --------------------------------------------------------------------------------


def awkward_table(kind, rng, n, d):
    """Tables on which ties, dependence, exact fits and long rows invite a rise."""
    X, y = noisy_table(rng, n, d)
    if kind == "grid":
        X = rng.integers(-2, 3, (n, d)).astype(float)
        y = rng.integers(-3, 4, n).astype(float)
    elif kind == "noiseless":
        y = X @ rng.standard_normal(d)
        y[: n // 3] = rng.standard_normal(n // 3)
    elif kind == "collinear":
        X[:, -1] = X[:, 0]
    elif kind == "heavy":
        X = rng.standard_cauchy((n, d))
        y = X @ rng.standard_normal(d) + rng.standard_cauchy(n)
    elif kind == "repeated":
        X, y = X[rng.integers(0, n // 4, n)], y[rng.integers(0, n // 4, n)]
    elif kind == "constant":
        y = np.full(n, 2.0)
    return X, y


KINDS = ("noisy", "grid", "noiseless", "collinear", "heavy", "repeated", "constant")


@settings(max_examples=150, deadline=None)
@given(
    seeds,
    st.sampled_from(KINDS),
    st.integers(8, 60),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from(["none", "whole", "shares"]),
    st.floats(0.15, 1.0),
)
def test_the_objective_never_rises_and_the_end_is_a_fixed_point(
    seed, kind, n, d, intercept, weighting, keep
):
    rng = np.random.default_rng(seed)
    X, y = awkward_table(kind, rng, n, d)
    weights = None
    if weighting == "whole":
        weights = rng.integers(0, 3, n) + (np.arange(n) < 8)
    elif weighting == "shares":
        weights = rng.exponential(size=n) + 1e-3
    starts = rng.standard_normal((3, d))
    options = {"keep": keep, "fit_intercept": intercept, "sample_weight": weights}
    for fit in (ilts(X, y, starts[0], **options), *ilts(X, y, starts, **options)):
        # Rounding of residuals: relative to the response, and to what the start was off.
        rounding = 1e-13 * (fit.objective[0] + y @ y)
        assert (np.diff(fit.objective) <= rounding).all()
        assert (fit.objective >= 0).all()
        assert fit.objective.shape == (fit.n_iter + 1,)
        assert fit.stopped == "fixed point"
        assert fit.converged
        kept_weight = fit.kept.astype(float) if weights is None else fit.kept_weight
        np.testing.assert_array_equal(kept_weight > 0, fit.kept)
        # The last objective is that of the coefficients on the kept rows.
        residuals = y - X @ fit.coef - fit.intercept
        np.testing.assert_allclose(
            fit.objective[-1], kept_weight @ residuals**2, rtol=1e-6, atol=1e3 * rounding
        )
        # A fixed point: no other row fits better than a kept one, and the kept rows fit best.
        if not fit.kept.all():
            present = np.ones(n, bool) if weights is None else weights > 0
            sizes = np.abs(residuals)
            outside = sizes[~fit.kept & present]
            slack = 1e-9 * (1 + np.abs(X @ fit.coef).max() + np.abs(y).max())
            assert not outside.size or sizes[fit.kept].max() <= outside.min() + slack


# --- fixed points ---------------------------------------------------------------------------------


@few
@given(
    seeds,
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["gross", "same-scale", "adversarial"]),
    st.booleans(),
)
def test_without_noise_every_true_component_is_a_fixed_point(seed, d, m, kind, intercept):
    """k up to the component's clean rows: all kept rows are its own, and nothing moves."""
    X, y, truth = make_mlrc(
        60 * m,
        d,
        m,
        corruption=0.2,
        corruption_kind=kind,
        intercepts=np.arange(m) if intercept else None,
        random_state=seed,
    )
    for j in range(m):
        own = truth.labels == j
        for count in (own.sum(), own.sum() // 2 + d + 2):
            fit = ilts(
                X,
                y,
                truth.coef[j],
                start_intercept=truth.intercept[j],
                keep=fraction_for(count, len(y)),
                fit_intercept=intercept,
            )
            assert fit.n_iter <= 1
            assert fit.stopped == "fixed point"
            np.testing.assert_allclose(fit.coef, truth.coef[j], atol=1e-9)
            np.testing.assert_allclose(fit.intercept, truth.intercept[j], atol=1e-9)
            assert fit.objective[-1] <= 1e-20 * (y @ y)
            on_it = np.abs(y - X @ truth.coef[j] - truth.intercept[j]) <= 1e-9
            assert on_it[fit.kept].all()
            # Ties of an exact fit go by row order.
            np.testing.assert_array_equal(np.flatnonzero(fit.kept), np.flatnonzero(on_it)[:count])


def subsets(n, count):
    """All sets of ``count`` rows."""
    return map(list, combinations(range(n), count))


@settings(max_examples=15, deadline=None)
@given(seeds, st.integers(1, 2), st.booleans())
def test_starts_from_all_subsets_find_the_best_of_all_subsets(seed, d, intercept):
    rng = np.random.default_rng(seed)
    n, count = 9, 6
    X, y = noisy_table(rng, n, d)
    A = design(X, intercept)
    square, theta, rows = all_subsets_lts(A, y, count)
    starts = np.stack([least_squares(A[rows], y[rows]) for rows in subsets(n, count)])
    fits = ilts(
        X,
        y,
        starts[:, int(intercept) :],
        start_intercept=starts[:, 0] if intercept else 0.0,
        keep=fraction_for(count, n),
        fit_intercept=intercept,
    )
    assert min(fit.objective[-1] for fit in fits) >= square * (1 - 1e-9)
    best = min(fits, key=lambda fit: fit.objective[-1])
    np.testing.assert_allclose(best.objective[-1], square, rtol=1e-9)
    assert np.flatnonzero(best.kept).tolist() == rows
    np.testing.assert_allclose(theta_of(best, intercept), theta, atol=1e-9)


# --- algebra --------------------------------------------------------------------------------------


@few
@given(seeds, st.integers(15, 80), st.integers(1, 4), st.booleans())
def test_permuting_rows_permutes_the_kept_ones(seed, n, d, intercept):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    start, order = rng.standard_normal(d), rng.permutation(n)
    options = {"keep": fraction_for(enough(n, d), n), "fit_intercept": intercept}
    fit, other = ilts(X, y, start, **options), ilts(X[order], y[order], start, **options)
    np.testing.assert_array_equal(other.kept, fit.kept[order])
    np.testing.assert_allclose(other.coef, fit.coef, atol=1e-9)
    np.testing.assert_allclose(other.objective, fit.objective, rtol=1e-9)


@few
@given(
    seeds,
    st.integers(15, 60),
    st.integers(1, 4),
    st.booleans(),
    st.floats(-6, 6),
    st.floats(-100, 100),
)
def test_units_turn_and_shift_as_algebra_says(seed, n, d, intercept, power, shift):
    """Scaled y, scaled, turned and shifted X, and a linear function added to y."""
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    start = rng.standard_normal(d)
    unit = 10.0**power
    options = {"keep": fraction_for(enough(n, d), n), "fit_intercept": intercept}
    fit = ilts(X, y, start, **options)

    def check(other, coef, b=fit.intercept, size=1.0):
        np.testing.assert_array_equal(other.kept, fit.kept)
        assert other.n_iter == fit.n_iter
        np.testing.assert_allclose(other.coef, coef, rtol=1e-8, atol=1e-8 * np.abs(coef).max())
        np.testing.assert_allclose(other.intercept, b, atol=1e-7 * size * (1 + abs(shift)))
        np.testing.assert_allclose(other.objective, fit.objective * size**2, rtol=1e-7)

    check(
        ilts(X, -unit * y, -unit * start, **options), -unit * fit.coef, -unit * fit.intercept, unit
    )
    units = 10.0 ** rng.uniform(-6, 6, d)
    check(ilts(X * units, y, start / units, **options), fit.coef / units)
    turn = random_rotation(rng, d)
    check(ilts(X @ turn, y, start @ turn, **options), fit.coef @ turn)
    slope = rng.standard_normal(d)
    check(ilts(X, y + X @ slope, start + slope, **options), fit.coef + slope)
    if intercept:
        moved = ilts(X + shift, y, start, start_intercept=-shift * start.sum(), **options)
        check(moved, fit.coef, fit.intercept - shift * fit.coef.sum())
        raised = ilts(X, y + shift, start, start_intercept=shift, **options)
        check(raised, fit.coef, fit.intercept + shift)


@few
@given(seeds, st.integers(30, 60), st.integers(1, 4), st.booleans(), st.booleans())
def test_a_batch_equals_one_by_one(seed, n, d, intercept, weighted):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    starts, intercepts = rng.standard_normal((5, d)), rng.standard_normal(5) * intercept
    weights = rng.integers(0, 3, n) + (np.arange(n) < d + 4) if weighted else None
    options = {"keep": 0.7, "fit_intercept": intercept, "sample_weight": weights}
    batch = ilts(X, y, starts, start_intercept=intercepts, **options)
    assert isinstance(batch, tuple)
    assert len(batch) == 5
    for start, b, fit in zip(starts, intercepts, batch, strict=True):
        alone = ilts(X, y, start, start_intercept=b, **options)
        np.testing.assert_array_equal(fit.kept, alone.kept)
        np.testing.assert_allclose(theta_of(fit, True), theta_of(alone, True), atol=1e-9)
        np.testing.assert_allclose(fit.objective, alone.objective, rtol=1e-9)
        assert (fit.n_iter, fit.stopped, fit.rank) == (alone.n_iter, alone.stopped, alone.rank)


@few
@given(seeds, st.integers(30, 60), st.integers(1, 3), st.booleans(), st.floats(0.5, 1.0))
def test_whole_weights_equal_repeated_rows(seed, n, d, intercept, keep):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    weights = rng.integers(0, 4, n) + (np.arange(n) < d + 4)
    X_long, y_long = repeat_rows(X, y, weights)
    order = rng.permutation(len(y_long))
    start = rng.standard_normal(d)
    options = {"keep": keep, "fit_intercept": intercept}
    weighted = ilts(X, y, start, sample_weight=weights, **options)
    repeated = ilts(X_long[order], y_long[order], start, **options)
    row = np.repeat(np.arange(n), weights)[order]
    copies = np.bincount(row[repeated.kept], minlength=n)
    np.testing.assert_array_equal(weighted.kept_weight, copies)
    np.testing.assert_array_equal(weighted.kept, copies > 0)
    np.testing.assert_allclose(theta_of(weighted, True), theta_of(repeated, True), atol=1e-9)
    np.testing.assert_allclose(
        weighted.objective[-1], repeated.objective[-1], rtol=1e-9, atol=1e-18
    )


@few
@given(seeds, st.integers(30, 60), st.booleans(), st.booleans())
def test_a_weight_of_zero_is_an_absent_row(seed, n, intercept, whole):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, 2)
    weights = rng.integers(1, 4, n).astype(float) if whole else rng.uniform(0.2, 2.0, n)
    absent = (rng.random(n) < 0.3) & (np.arange(n) >= 7)
    weights[absent] = 0.0
    X[absent] = 0.0  # would fit anything
    y[absent] = 0.0
    start = rng.standard_normal(2)
    options = {"keep": 0.7, "fit_intercept": intercept}
    fit = ilts(X, y, start, sample_weight=weights, **options)
    alone = ilts(X[~absent], y[~absent], start, sample_weight=weights[~absent], **options)
    assert not fit.kept[absent].any()
    np.testing.assert_array_equal(fit.kept[~absent], alone.kept)
    np.testing.assert_allclose(theta_of(fit, True), theta_of(alone, True), atol=1e-9)


@few
@given(seeds, st.floats(1e-6, 1e6))
def test_the_unit_of_weights_does_not_matter(seed, unit):
    """Relative importances: ten times as much of everything is the same table."""
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, 40, 2)
    weights = rng.uniform(0.2, 2.0, 40)
    start = rng.standard_normal(2)
    one, other = (ilts(X, y, start, keep=0.6, sample_weight=w) for w in (weights, unit * weights))
    np.testing.assert_array_equal(one.kept, other.kept)
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-9)


# --- rank -----------------------------------------------------------------------------------------


def standardised(X, y, intercept):
    """The rows as the solver sees them."""
    problem = Problem.from_arrays(X, y, fit_intercept=intercept)
    rows = np.arange(len(y))
    engine = MemoryEngine(problem)
    return problem, engine.standardised(rows), engine.target(rows)


@few
@given(seeds, st.integers(2, 5), st.booleans(), st.sampled_from(["dependent", "repeated", "few"]))
def test_open_coefficients_are_the_shortest_in_standardised_units(seed, d, intercept, kind):
    rng = np.random.default_rng(seed)
    n, count = 60, 40
    X, y = noisy_table(rng, n, d)
    X *= rng.uniform(0.5, 20, d)
    if kind == "dependent":
        X[:, -1] = X[:, :-1] @ rng.standard_normal(d - 1)
    elif kind == "repeated":
        X[:, -1] = X[:, 0]
    else:
        count = d + intercept - 1
    fit = ilts(X, y, rng.standard_normal(d), keep=fraction_for(count, n), fit_intercept=intercept)
    problem, Z, target = standardised(X, y, intercept)
    assert fit.rank == d + intercept - 1
    assert fit.stopped == "fixed point"
    theta = problem.from_user(fit.coef, fit.intercept)
    shortest = least_squares(Z[fit.kept], target[fit.kept])
    np.testing.assert_allclose(theta, shortest, atol=1e-6 * (1 + np.abs(shortest).max()))


def test_a_constant_column_beside_an_intercept_is_reported():
    rng = np.random.default_rng(0)
    X, y = noisy_table(rng, 80, 3)
    X[:, 1] = 4.0
    fit = ilts(X, y, keep=0.7, fit_intercept=True)
    assert fit.rank == 3
    without = ilts(X[:, [0, 2]], y, keep=0.7, fit_intercept=True)
    np.testing.assert_array_equal(fit.kept, without.kept)
    np.testing.assert_allclose(fit.coef[[0, 2]], without.coef, atol=1e-9)
    np.testing.assert_allclose(fit.intercept + 4 * fit.coef[1], without.intercept, atol=1e-9)


# --- how it stops ---------------------------------------------------------------------------------


def slow_table(seed=1, n=500):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, X @ np.ones(3) + 2 * rng.standard_normal(n), rng.standard_normal(3)


def test_it_says_why_it_stopped():
    X, y, start = slow_table()
    whole = ilts(X, y, start, keep=0.5)
    assert whole.stopped == "fixed point"
    assert whole.converged
    short = ilts(X, y, start, keep=0.5, max_iter=3)
    assert (short.stopped, short.n_iter, short.converged) == ("max_iter", 3, False)
    np.testing.assert_allclose(short.objective, whole.objective[:4], rtol=1e-9)
    gains = -np.diff(whole.objective) / whole.objective[:-1]
    for tol in (0.3, 0.1, 0.03, 0.01, 0.003):
        loose = ilts(X, y, start, keep=0.5, tol=tol)
        assert loose.stopped == "tol"
        assert loose.converged
        assert loose.n_iter == 1 + np.flatnonzero(gains < tol)[0]


def test_a_callback_sees_every_round_and_may_stop():
    X, y, start = slow_table()
    seen = []
    whole = ilts(X, y, start, keep=0.5, callback=seen.append)
    assert [state.iteration for state in seen] == list(range(whole.n_iter + 1))
    np.testing.assert_allclose([state.objective for state in seen], whole.objective, rtol=1e-12)
    assert {state.start for state in seen} == {0}
    assert {state.n_kept for state in seen} == {250}
    np.testing.assert_allclose(seen[0].coef, start, rtol=1e-12)
    assert seen[-1].n_moved == 0
    stopped = ilts(X, y, start, keep=0.5, callback=lambda state: state.iteration == 2)
    assert (stopped.stopped, stopped.n_iter, stopped.converged) == ("callback", 2, False)
    np.testing.assert_allclose(stopped.coef, seen[2].coef, rtol=1e-9)


def test_a_callback_stops_the_whole_batch():
    X, y, start = slow_table()
    starts = np.stack([start, start + 1, start - 1])
    fits = ilts(X, y, starts, keep=0.5, callback=lambda s: s.start == 1 and s.iteration == 2)
    assert [fit.stopped for fit in fits] == ["callback"] * 3
    assert [fit.n_iter for fit in fits] == [2, 2, 2]


def test_a_fixed_point_of_one_start_leaves_the_others_running():
    X, y, start = slow_table()
    goal = ilts(X, y, start, keep=0.5)
    done, going = ilts(X, y, np.stack([goal.coef, start]), keep=0.5)
    assert done.n_iter == 1
    assert going.n_iter == goal.n_iter
    np.testing.assert_array_equal(done.kept, going.kept)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_iter", -1),
        ("max_iter", 2.5),
        ("max_iter", None),
        ("tol", -0.1),
        ("tol", np.nan),
        ("tol", "small"),
        ("chunk_rows", 0),
        ("chunk_rows", -1),
        ("chunk_rows", 2.5),
    ],
)
def test_limits_outside_what_is_allowed_are_refused(option, value):
    X, y, start = slow_table()
    with pytest.raises(ParameterError, match=option):
        ilts(X, y, start, keep=0.5, **{option: value})


@pytest.mark.parametrize(
    "start",
    [np.zeros(2), np.zeros((2, 4)), np.zeros((0, 3)), np.zeros((1, 1, 3)), [0.0, np.nan, 0.0], 0.0],
)
def test_starts_of_another_shape_are_refused(start):
    X, y, _ = slow_table()
    with pytest.raises(ParameterError, match="start"):
        ilts(X, y, start, keep=0.5)


@pytest.mark.parametrize("b", [[0.0, 1.0], np.inf, [[0.0]]])
def test_start_intercepts_of_another_shape_are_refused(b):
    X, y, start = slow_table()
    with pytest.raises(ParameterError, match="start_intercept"):
        ilts(X, y, start, keep=0.5, start_intercept=b, fit_intercept=True)
