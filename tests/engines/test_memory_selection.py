"""The narrow band of undecided rows: late selections look at few rows and change no answer."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix import ilts
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from tests.oracles import (
    design,
    fraction_for,
    kept_weight_by_sorting,
    noisy_table,
    slow_ilts,
)

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=20, deadline=None)

TABLES = ("normal", "heavy", "leverage", "constant residuals")


class Passes:
    """Counts passes over all rows while active."""

    def __enter__(self):
        self.count = 0
        original = MemoryEngine.residual_block

        def counted(engine, *args, **kwargs):
            self.count += 1
            return original(engine, *args, **kwargs)

        self._patch = patch.object(MemoryEngine, "residual_block", counted)
        self._patch.start()
        return self

    def __exit__(self, *_):
        self._patch.stop()


def table(kind, rng, n, d):
    """Standardised rows on which a careless band would lose rows."""
    Z, y = noisy_table(rng, n, d)
    if kind == "heavy":
        Z = rng.standard_cauchy((n, d))
        y = Z @ rng.standard_normal(d) + rng.standard_normal(n)
    elif kind == "leverage":
        # A tiny turn of the coefficients moves these rows across any threshold.
        far = rng.choice(n, n // 50, replace=False)
        Z[far] *= 10.0 ** rng.uniform(2, 6, (far.size, 1))
    elif kind == "constant residuals":
        # Half of the rows stand at the same distance from the relation: the threshold is crowded.
        y = Z @ rng.standard_normal(d) + rng.choice([-1.0, 1.0], n)
        y += 1e-6 * rng.standard_normal(n)
    return Z, y


def weights_of(kind, rng, n):
    if kind == "none":
        return None, True
    if kind == "counts":
        return rng.integers(0, 5, n).astype(float), True
    weights = rng.exponential(size=n)
    return weights * (n / weights.sum()), False


def drive(problem, mass, path):
    """Follow a path of coefficients with and without the band; compare every selection.

    Returns the number of full passes that the narrow follower made.
    """
    weights = np.ones(problem.n_rows) if problem.weights is None else problem.weights
    narrow = MemoryEngine(problem).follow(1, mass, narrow=True)
    full = MemoryEngine(problem).follow(1, mass)
    passes = 0
    for theta in path:
        with Passes() as counter:
            (seen,) = narrow.select(theta[None, :], [0])
        passes += counter.count
        (expected,) = full.select(theta[None, :], [0])
        np.testing.assert_array_equal(narrow.kept(0)[0], full.kept(0)[0])
        if problem.weights is not None:
            np.testing.assert_allclose(narrow.kept(0)[1], full.kept(0)[1], atol=1e-8)
        sizes = np.abs(problem.y - problem.X @ theta)
        oracle = kept_weight_by_sorting(sizes, weights, mass)
        np.testing.assert_array_equal(full.kept(0)[0], oracle > 0)
        assert seen.signature == expected.signature
        np.testing.assert_allclose(seen.threshold, expected.threshold, rtol=1e-9)
        if seen.objective is not None:
            np.testing.assert_allclose(seen.objective, expected.objective, rtol=1e-9)
        ours, theirs = narrow.moved_sums(0), full.moved_sums(0)
        if ours is None or theirs is None:  # too many moved: sums are due afresh
            continue
        size = 1 + np.abs(theirs.gram).max()
        np.testing.assert_allclose(ours.gram, theirs.gram, atol=1e-9 * size)
        np.testing.assert_allclose(ours.moment, theirs.moment, atol=1e-9 * size)
        np.testing.assert_allclose(seen.square_moved, expected.square_moved, rtol=1e-6, atol=1e-6)
    return passes


def settling_path(rng, d, rounds, *, step, shrink):
    """Coefficients whose steps shrink by a factor every round, as those of ILTS do."""
    theta, path = rng.standard_normal(d), []
    for _ in range(rounds):
        path.append(theta)
        direction = rng.standard_normal(d)
        theta = theta + step * direction / np.linalg.norm(direction)
        step *= shrink
    return path


@few
@given(
    seeds,
    st.sampled_from(TABLES),
    st.sampled_from(["none", "counts", "shares"]),
    st.sampled_from([0.3, 0.7, 0.95, 1.0]),
    st.floats(1e-6, 1e-1),
)
def test_the_band_selects_what_a_full_pass_selects(seed, kind, weighting, shrink, step):
    rng = np.random.default_rng(seed)
    n, d = 1500, 3
    Z, y = table(kind, rng, n, d)
    weights, counts = weights_of(weighting, rng, n)
    problem = Problem.from_standardised(Z, y, weights, counts=counts)
    share = rng.uniform(0.2, 0.9) * problem.mass
    mass = float(np.floor(share)) if counts else share
    path = settling_path(rng, d, 12, step=step, shrink=shrink)
    # Not only towards a goal: a jump, a stop, and back.
    path += [path[-1] + 0.5, path[-1] + 0.5 + 1e-4, path[-1], path[-1], path[-2], path[-1]]
    drive(problem, mass, path)


@few
@given(seeds, st.floats(1e-8, 1e-2))
def test_the_band_follows_the_worst_direction(seed, step):
    """Every step turns the coefficients along the longest rows, where residuals move most."""
    rng = np.random.default_rng(seed)
    Z, y = table("leverage", rng, 1500, 3)
    problem = Problem.from_standardised(Z, y)
    longest = Z[np.argsort(-np.linalg.norm(Z, axis=1))[:8]]
    theta, path = rng.standard_normal(3), []
    for row in longest:
        path.append(theta)
        theta = theta + step * row / np.linalg.norm(row)
    drive(problem, 700.0, path)


def test_a_threshold_that_leaves_the_band_calls_for_a_full_pass():
    """Long rows crowd the threshold and carry it away, over short rows that the band left out."""
    rng = np.random.default_rng(0)
    n, step = 2000, 1e-5
    z, residuals = np.full(n, 0.01), np.full(n, 10.0) + rng.random(n)
    long, short, inside = slice(0, 100), slice(100, 120), slice(120, 1000)
    z[long] = 1000.0
    residuals[long] = 1 + 1e-3 * rng.random(100)
    residuals[short] = 1.004 + 1e-4 * rng.random(20)
    residuals[inside] = 0.5 * rng.random(880)
    y = residuals + z * 1.0  # as seen from the coefficient 1
    path = [np.array([1.0 + move * step]) for move in (-1, 0, -2, 0, 2, -3)]
    drive(Problem.from_standardised(z[:, None], y), 930.0, path)


@few
@given(seeds, st.sampled_from([0.5, 1.0, 0.0]), st.booleans())
def test_ties_go_by_row_order_in_the_band_too(seed, shrink, weighted):
    """Small whole numbers and coefficients that are sums of powers of two: residuals are exact."""
    rng = np.random.default_rng(seed)
    n, d = 1200, 2
    Z = rng.integers(-3, 4, (n, d)).astype(float)
    y = Z @ rng.integers(-2, 3, d) + rng.integers(-40, 41, n) / 4.0
    weights = rng.integers(0, 3, n).astype(float) if weighted else None
    problem = Problem.from_standardised(Z, y, weights)
    theta, step, path = np.zeros(d), 2.0**-8, []
    for _ in range(10):
        path.append(theta)
        theta = theta + step * rng.integers(-1, 2, d)
        step = max(step * shrink, 2.0**-30)
    drive(problem, float(rng.integers(1, int(problem.mass))), path)


@settings(max_examples=6, deadline=None)
@given(seeds)
def test_late_selections_on_a_settling_path_make_no_pass(seed):
    rng = np.random.default_rng(seed)
    Z, y = table("normal", rng, 3000, 4)
    path = settling_path(rng, 4, 30, step=0.1, shrink=0.5)
    passes = drive(Problem.from_standardised(Z, y), 1500.0, path)
    assert passes <= 15


# --- whole runs -----------------------------------------------------------------------------------


def long_run(seed, n, d):
    """A table on which ILTS needs tens of rounds: noise everywhere, half of the rows kept."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + 2 * rng.standard_normal(n)
    return X, y, rng.standard_normal(d)


@settings(max_examples=6, deadline=None)
@given(seeds)
def test_late_rounds_of_a_long_run_make_no_pass_each(seed):
    """Counted work: what a round costs must not depend on n once the coefficients settle."""
    X, y, start = long_run(seed, 60_000, 4)
    passes = []
    with Passes() as counter:
        fit = ilts(X, y, start, keep=0.5, callback=lambda _: passes.append(counter.count))
    assert fit.stopped == "fixed point"
    assert fit.n_iter >= 15
    late = np.diff(passes)[-8:]
    assert late.max() <= 1
    assert late.sum() <= 5


@settings(max_examples=8, deadline=None)
@given(seeds, st.booleans(), st.sampled_from(["none", "counts", "shares"]))
def test_a_long_run_equals_full_passes_and_the_slow_twin(seed, intercept, weighting):
    """Two equal starts run without a band: the same rounds, rows and coefficients."""
    X, y, start = long_run(seed, 2000, 4)
    weights, _ = weights_of(weighting, np.random.default_rng(seed), len(y))
    options = {"keep": 0.5, "fit_intercept": intercept, "sample_weight": weights}
    alone = ilts(X, y, start, **options)
    pair = ilts(X, y, np.stack([start, start]), **options)
    A = design(X, intercept)
    theta = np.concatenate([[0.0], start]) if intercept else start
    mass = 0.5 * (len(y) if weights is None else weights.sum())
    mass = mass if weighting == "shares" else np.floor(mass)
    twin = slow_ilts(A, y, theta, int(mass) if weights is None else mass, weights=weights)
    for fit in (alone, *pair):
        assert fit.n_iter == twin.n_iter
        np.testing.assert_array_equal(fit.kept, twin.kept[-1] > 0)
        np.testing.assert_allclose(fit.coef, twin.thetas[-1][-4:], atol=1e-9)
        np.testing.assert_allclose(fit.objective, twin.objective, rtol=1e-9)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("weighting", ["none", "counts", "shares"])
def test_hard_tables_give_the_same_fit_with_and_without_the_band(kind, weighting):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = table(kind, rng, 2500, 3)
        y = y + rng.standard_normal(len(y))
        weights, _ = weights_of(weighting, rng, len(y))
        start = rng.standard_normal(3)
        options = {"keep": fraction_for(1300, 2500), "sample_weight": weights}
        alone = ilts(X, y, start, **options)
        other = ilts(X, y, np.stack([start, start]), **options)[1]
        np.testing.assert_array_equal(alone.kept, other.kept)
        np.testing.assert_allclose(alone.coef, other.coef, atol=1e-9)
        np.testing.assert_allclose(alone.objective, other.objective, rtol=1e-8)
        assert (alone.n_iter, alone.stopped) == (other.n_iter, other.stopped)


def test_the_band_keeps_its_promise_when_a_callback_watches():
    """A callback sees the same objective in a narrow round as a full pass would show."""
    X, y, start = long_run(7, 4000, 8)
    rounds = []
    fit = ilts(X, y, start, keep=0.5, callback=rounds.append)
    for state in rounds:
        residuals = y - X @ state.coef - state.intercept
        best = np.sort(residuals**2)[:2000].sum()
        np.testing.assert_allclose(state.objective, best, rtol=1e-9)
    assert len(rounds) == fit.n_iter + 1
