"""The search for one component: starts of every kind, the best fixed point, nested samples."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regimix.engines.base import Sample
from regimix.engines.memory import MemoryEngine
from regimix.model.rows import weighted_fit
from regimix.search.single import elemental, find_single, reweighted, single_starts
from regimix.trimmed.ilts import ExactSolver
from tests.oracles import (
    all_subsets_lts,
    kept_by_sorting,
    least_squares,
    multi_start_lts,
    noisy_table,
    one_regime,
    plain_engine_rows,
    slow_ilts,
)

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=30, deadline=None)


def exact(problem, n_starts, mass):
    return ExactSolver(problem, n_starts, mass)


def search(X, y, mass, seed=0, **options):
    options = {"given": None, "n_starts": 32, "max_iter": 300, "tol": 0.0, **options}
    engine = MemoryEngine(plain_engine_rows(X, y))
    return find_single(engine, mass, seed=seed, make_solver=exact, **options)


def sample_of(X, y, weights=None):
    return Sample(X, y, np.ones(len(y)) if weights is None else weights)


# --- starts ---------------------------------------------------------------------------------------


@few
@given(seeds, st.integers(1, 5), st.integers(1, 12))
def test_an_elemental_start_passes_through_as_many_rows_as_it_has_coefficients(seed, p, count):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((40, p)), rng.standard_normal(40)
    thetas = elemental(sample_of(X, y), count, rng)
    assert thetas.shape == (count, p)
    on_it = np.abs(y - thetas @ X.T) <= 1e-6 * (1 + np.abs(thetas).max(axis=1))[:, None]
    assert (on_it.sum(axis=1) >= p).all()
    if p > 1:
        assert len(np.unique(thetas.round(9), axis=0)) > count // 2


@few
@given(seeds, st.integers(2, 5))
def test_columns_of_zeros_and_ones_give_usable_starts(seed, p):
    """Most small subsets of such rows are degenerate; the starts are finite and not all alike."""
    rng = np.random.default_rng(seed)
    X = (rng.random((60, p)) < 0.2).astype(float)
    X[:, 0] = 1.0
    y = X @ rng.standard_normal(p)
    thetas = elemental(sample_of(X, y), 10, rng)
    assert np.isfinite(thetas).all()
    assert np.abs(thetas).max() < 1e6


@few
@given(seeds, st.integers(1, 4))
def test_weighted_fit_is_weighted_least_squares(seed, p):
    rng = np.random.default_rng(seed)
    X, y, weights = rng.standard_normal((50, p)), rng.standard_normal(50), rng.exponential(size=50)
    np.testing.assert_allclose(weighted_fit(X, y, weights), least_squares(X, y, weights), atol=1e-6)


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_reweighting_listens_to_the_majority(seed):
    X, y, truth = one_regime(seed, n=600, d=3, corruption=0.2)
    sample = sample_of(X, y)
    everyone = weighted_fit(X, y, sample.weights)
    found = reweighted(sample, everyone)
    assert np.abs(found - truth.coef[0]).max() <= 0.1 * (1 + np.abs(truth.coef).max())
    exact_rows = np.zeros(600)  # a fit without residuals has nothing to reweight
    np.testing.assert_allclose(reweighted(sample_of(X, exact_rows), np.zeros(3)), 0.0)


def test_every_start_says_where_it_comes_from():
    X, y = noisy_table(np.random.default_rng(0), 100, 2)
    starts = single_starts(sample_of(X, y))
    assert len(starts.thetas) == len(starts.source)
    assert starts.source == ("least squares", "reweighted")
    more = starts.and_also(np.ones((2, 2)), "given")
    assert more.source[-2:] == ("given", "given")
    np.testing.assert_array_equal(more.thetas[:-2], starts.thetas)


# --- a given size ---------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(seeds, st.integers(1, 2))
def test_enough_starts_find_the_best_of_all_subsets(seed, p):
    """Random subsets come close; with the fits to all subsets among the starts, nothing is left."""
    X, y = noisy_table(np.random.default_rng(seed), 9, p)
    square, theta, rows = all_subsets_lts(X, y, 6)
    assert search(X, y, 6.0, seed, n_starts=200).run.objective[-1] <= 1.5 * square
    subsets = map(list, combinations(range(9), 6))
    starts = np.stack([least_squares(X[subset], y[subset]) for subset in subsets])
    found = search(X, y, 6.0, seed, given=starts)
    np.testing.assert_allclose(found.run.objective[-1], square, rtol=1e-9)
    np.testing.assert_allclose(found.run.theta, theta, atol=1e-9)
    assert np.flatnonzero(found.follower.kept(0)[0]).tolist() == rows


def test_the_objective_is_no_higher_than_that_of_plain_restarts():
    """Table by table up to the flatness of the landscape, and on the whole not at all."""
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, p = 120, 3
        X, y = noisy_table(rng, n, p)
        count = int(rng.choice([n // 2 + 2, 3 * n // 4]))
        found = search(X, y, float(count), seed)
        ratios.append(found.run.objective[-1] / multi_start_lts(X, y, count, rng, 20))
    assert max(ratios) <= 1.02
    assert np.mean(ratios) <= 1.001


@settings(max_examples=10, deadline=None)
@given(seeds, st.floats(0.3, 1.0))
def test_the_answer_is_a_fixed_point_of_all_rows(seed, share):
    X, y = noisy_table(np.random.default_rng(seed), 150, 2)
    mass = float(max(20, int(150 * share)))
    found = search(X, y, mass, seed, n_starts=8)
    kept = found.follower.kept(0)[0]
    assert found.run.stopped == "fixed point"
    assert found.mass == mass
    np.testing.assert_allclose(found.share, mass / 150)
    np.testing.assert_allclose(found.run.theta, least_squares(X[kept], y[kept]), atol=1e-9)
    np.testing.assert_array_equal(kept, kept_by_sorting(np.abs(y - X @ found.run.theta), int(mass)))
    assert found.evidence is None
    assert found.scale is None


def test_a_given_start_is_tried_and_named():
    """Two regimes; half of the smaller one is a fixed point that no other source looks for."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 2))
    coef = np.array([5.0, -5.0])
    y = X @ np.array([1.0, 1.0]) + 0.5 * rng.standard_normal(400)
    y[:100] = X[:100] @ coef
    found = search(X, y, 90.0, given=coef[None, :], n_starts=0)
    assert found.source == "given"
    np.testing.assert_allclose(found.run.theta, coef, atol=1e-9)


# --- the size found -------------------------------------------------------------------------------


def line_among_noise(seed, n, share, noise, width=4.0):
    """Rows of a line, and others whose responses have nothing to do with the features."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    y = X @ [1.0, 2.0, -1.0] + noise * rng.standard_normal(n)
    others = np.arange(n) >= share * n
    y[others] = width * rng.standard_t(3, np.count_nonzero(others))
    return X, y, others


@settings(max_examples=6, deadline=None)
@given(seeds, st.sampled_from(["gross", "same-scale"]))
def test_a_majority_is_fitted_with_the_highest_breakdown(seed, kind):
    """As many rows as leave most outliers out, whatever they are; reweighting finds the rest."""
    X, y, truth = one_regime(seed, n=300, d=3, noise=0.05, norms=1.0, corruption_kind=kind)
    found = search(X, y, None, seed, n_starts=16)
    assert found.share == pytest.approx((300 + 3 + 1) / 600)
    assert found.mass == 152
    assert found.scale is None
    assert found.evidence > 3
    assert np.abs(found.run.theta - truth.coef[0]).max() <= 0.05


@settings(max_examples=5, deadline=None)
@given(seeds, st.floats(0.2, 0.4))
def test_a_sharp_line_of_a_minority_is_found(seed, share):
    X, y, others = line_among_noise(seed, 300, share, 0.05)
    found = search(X, y, None, seed, n_starts=32)
    assert found.source == "model"
    assert found.share == pytest.approx(np.mean(~others), abs=0.06)
    assert 0.7 <= found.scale / 0.05 <= 1.5
    np.testing.assert_allclose(found.run.theta, [1.0, 2.0, -1.0], atol=0.1)


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_of_two_lines_with_the_same_noise_the_majority_wins(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(200), rng.standard_normal(200)])
    y = X @ [0.0, 2.0] + 0.3 * rng.standard_normal(200)
    y[120:] -= 4 * X[120:, 1]
    found = search(X, y, None, seed, n_starts=16)
    assert found.source != "model"
    np.testing.assert_allclose(found.run.theta, [0.0, 2.0], atol=0.3)


@settings(max_examples=5, deadline=None)
@given(seeds)
# A plane through eight of the far rows has the least trimmed squares.
@example(4294967294)
def test_bad_leverage_rows_do_not_outvote_the_majority(seed):
    """As in hbk: a line through few far rows explains them, and the bulk by its noise.

    They are kept only if a half with them is nearer to its line than the best half of the others.
    """
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(75), rng.uniform(0, 3, (75, 2))])
    y = rng.uniform(-0.6, 0.6, 75)
    X[:10, 1:] = 10 + rng.uniform(0, 1, (10, 2))
    y[:10] = 9.7 + rng.uniform(0, 0.5, 10)
    found = search(X, y, None, seed, n_starts=32)
    others = slow_ilts(X, y, least_squares(X[10:], y[10:]), int(found.mass), max_iter=50)
    assert found.source != "model"
    assert found.run.objective[-1] <= others.objective[-1] * (1 + 1e-9)
    if found.follower.kept(0)[0][:10].any():
        assert found.run.objective[-1] < 0.999 * others.objective[-1]


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_nothing_to_find_is_said(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((200, 3)), rng.standard_normal(200)
    found = search(X, y, None, seed, n_starts=8)
    assert found.evidence < 3
    assert found.scale is None
    assert np.isfinite(found.run.theta).all()


# --- large tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0.5, None])
def test_nested_samples_lead_to_the_fit_of_all_rows(keep):
    """Searched on a few thousand rows, finished on all: as good as starting from the truth."""
    n = 70_000
    X, y, truth = one_regime(7, n=n, d=4, noise=0.1, norms=1.0)
    found = search(X, y, None if keep is None else keep * n, n_starts=8)
    kept = found.follower.kept(0)[0]
    assert kept.sum() == found.mass
    twin = slow_ilts(X, y, truth.coef[0], int(found.mass), max_iter=30)
    assert found.run.objective[-1] <= twin.objective[-1] * 1.001
    np.testing.assert_allclose(found.run.theta, least_squares(X[kept], y[kept]), atol=1e-9)
    assert np.abs(found.run.theta - truth.coef[0]).max() <= 0.01


def test_a_seed_gives_the_same_answer_again():
    X, y = noisy_table(np.random.default_rng(5), 300, 3)
    for mass in (150.0, None):
        one, other = (search(X, y, mass, seed=11, n_starts=8) for _ in range(2))
        np.testing.assert_array_equal(one.run.theta, other.run.theta)
        assert one.source == other.source
