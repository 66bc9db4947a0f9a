"""The memory engine: every reduction beside its dense twin, whatever the chunks and the storage."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from regimix import gd_ilts, ilts
from regimix.data.problem import Problem
from regimix.engines.base import kept_rows
from regimix.engines.memory import MemoryEngine
from regimix.engines.selection import (
    is_within,
    masked_mass,
    residual_sizes,
    within_sums,
)
from regimix.trimmed.ilts import solved
from tests.oracles import fraction_for, kept_weight_by_sorting, noisy_table

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)
chunk_sizes = st.one_of(st.none(), st.integers(1, 80))

MEBIBYTE = 2**20


def make_problem(rng, n, d, *, intercept, weighted):
    """A table with units, and weights with zeros if asked for."""
    X, y = noisy_table(rng, n, d)
    X = X * rng.uniform(0.1, 50, d) + rng.uniform(-9, 9, d)
    weights = None
    if weighted:
        weights = rng.integers(0, 4, n).astype(float)
        weights[:2] = 1, 2
    return Problem.from_arrays(X, 7 * y + 3, weights, fit_intercept=intercept)


def dense(problem):
    """Standardised rows, responses and weights, written out in full."""
    X = np.asarray(problem.X, float)
    Z = (X - problem.center) / problem.scale if problem.fit_intercept else X / problem.scale
    if problem.fit_intercept:
        Z = np.column_stack([np.ones(len(Z)), Z])
    y = (problem.y - problem.target_center) / problem.target_scale
    return Z, y, np.ones(len(y)) if problem.weights is None else problem.weights


@few
@given(seeds, st.integers(2, 60), st.integers(1, 5), st.booleans(), chunk_sizes)
def test_residuals_are_what_the_dense_table_gives(seed, n, d, intercept, chunk_rows):
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, n, d, intercept=intercept, weighted=False)
    engine = MemoryEngine(problem, chunk_rows)
    Z, y, _ = dense(problem)
    thetas = rng.standard_normal((3, problem.n_columns))
    for theta, block in zip(thetas, engine.residual_block(thetas), strict=True):
        np.testing.assert_allclose(engine.residuals(theta), y - Z @ theta, atol=1e-10)
        np.testing.assert_allclose(block, y - Z @ theta, atol=1e-10)


@few
@given(seeds, st.integers(4, 60), st.integers(1, 4), st.booleans(), st.booleans(), chunk_sizes)
def test_a_follower_sums_what_it_keeps(seed, n, d, intercept, weighted, chunk_rows):
    """Objective, moves, sums, gradients and products agree with the dense table every round."""
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, n, d, intercept=intercept, weighted=weighted)
    Z, y, weights = dense(problem)
    mass = float(rng.integers(1, int(problem.mass) + 1))
    follower = MemoryEngine(problem, chunk_rows).follow(1, mass)
    p = problem.n_columns
    gram, moment, square = np.zeros((p, p)), np.zeros(p), 0.0
    theta = before = rng.standard_normal(p)
    for _ in range(4):
        (selected,) = follower.select(theta[None, :], [0])
        residuals = y - Z @ theta
        expected = kept_weight_by_sorting(np.abs(residuals), weights, mass)
        kept, kept_weight = follower.kept(0)
        np.testing.assert_array_equal(kept, expected > 0)
        if weighted:
            np.testing.assert_allclose(kept_weight, expected, atol=1e-12)
        else:
            assert kept_weight is None
        np.testing.assert_allclose(selected.objective, expected @ residuals**2, atol=1e-9)
        np.testing.assert_allclose(selected.threshold, np.abs(residuals)[kept].max(), atol=1e-10)
        # What moved, added to what was kept before, is what is kept now.
        moved, fresh = follower.moved_sums(0), follower.kept_sums(0, theta)
        shift = before - theta
        if moved is None:  # too many rows moved: sums are due afresh
            gram, moment, square = fresh.gram, fresh.moment, selected.objective
        else:
            square += selected.square_moved + 2 * shift @ moment + shift @ gram @ shift
            moment = moment + moved.moment + gram @ shift
            gram = gram + moved.gram
        before = theta
        exact_gram = (Z * expected[:, None]).T @ Z
        exact_moment = (expected * residuals) @ Z
        for found in (gram, fresh.gram):
            np.testing.assert_allclose(found, exact_gram, atol=1e-7)
        for found in (moment, fresh.moment, follower.gradients([0], theta[None, :])[0]):
            np.testing.assert_allclose(found, exact_moment, atol=1e-7)
        np.testing.assert_allclose(square, expected @ residuals**2, atol=1e-7)
        direction = rng.standard_normal(p)
        np.testing.assert_allclose(
            follower.product(0, direction), exact_gram @ direction, atol=1e-7
        )
        theta = theta + 0.5 * rng.standard_normal(p)


@few
@given(seeds, st.integers(6, 60), st.integers(1, 4), st.booleans(), st.booleans(), chunk_sizes)
def test_a_batch_follows_each_start_as_if_alone(seed, n, d, intercept, weighted, chunk_rows):
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, n, d, intercept=intercept, weighted=weighted)
    mass = float(rng.integers(1, int(problem.mass) + 1))
    engine = MemoryEngine(problem, chunk_rows)
    batch, singles = engine.follow(4, mass), [engine.follow(1, mass) for _ in range(4)]
    active = [0, 1, 2, 3]
    for _ in range(3):
        thetas = rng.standard_normal((len(active), problem.n_columns))
        together = batch.select(thetas, active)
        gradients = batch.gradients(active, thetas)
        for i, start in enumerate(active):
            (alone,) = singles[start].select(thetas[i : i + 1], [0])
            np.testing.assert_allclose(together[i].objective, alone.objective, atol=1e-9)
            assert together[i].signature == alone.signature
            for of_batch, of_one in zip(batch.kept(start), singles[start].kept(0), strict=True):
                np.testing.assert_array_equal(of_batch, of_one)
            moved, moved_alone = batch.moved_sums(start), singles[start].moved_sums(0)
            assert (moved is None) == (moved_alone is None)
            if moved is not None:
                np.testing.assert_allclose(moved.gram, moved_alone.gram, atol=1e-9)
            np.testing.assert_allclose(
                gradients[i], singles[start].gradients([0], thetas[i : i + 1])[0], atol=1e-8
            )
            direction = rng.standard_normal(problem.n_columns)
            np.testing.assert_allclose(
                batch.product(start, direction), singles[start].product(0, direction), atol=1e-8
            )
        active = active[: -1 - (len(active) == 3)]  # starts drop out on the way


@few
@given(seeds, st.integers(4, 40), st.booleans())
def test_equal_kept_sets_have_equal_names_and_others_do_not(seed, n, weighted):
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, n, 2, intercept=False, weighted=weighted)
    mass = float(rng.integers(1, int(problem.mass)))
    follower = MemoryEngine(problem).follow(1, mass)
    names = {}
    corners = rng.standard_normal((3, 2))
    for theta in corners[rng.integers(0, 3, 12)]:
        (selected,) = follower.select(theta[None, :], [0])
        kept, kept_weight = follower.kept(0)
        key = (kept.tobytes(), b"" if kept_weight is None else kept_weight.tobytes())
        assert names.setdefault(key, selected.signature) == selected.signature
    assert len(set(names.values())) == len(names)


@pytest.mark.parametrize("gap", [1, 1024, 2048])
def test_names_of_pairs_of_rows_do_not_collide(gap):
    """Coefficient t keeps the two rows whose response is t; neighbours must not share a name."""
    n, n_pairs = 4096, 2048
    first = (np.arange(n) // (2 * gap)) * gap + np.arange(n) % gap
    follower = MemoryEngine(Problem.from_standardised(np.ones((n, 1)), first.astype(float)))
    follower = follower.follow(1, 2.0)
    names = set()
    for pair in range(n_pairs):
        (selected,) = follower.select(np.array([[float(pair)]]), [0])
        names.add(selected.signature)
    assert np.flatnonzero(follower.kept(0)[0]).tolist() == [n - 1 - gap, n - 1]
    assert len(names) == n_pairs


@few
@given(seeds, st.integers(3, 60), st.booleans(), st.booleans(), chunk_sizes, st.floats(0.0, 3.0))
def test_rows_within_a_bound(seed, n, intercept, weighted, chunk_rows, bound):
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, n, 3, intercept=intercept, weighted=weighted)
    theta = rng.standard_normal(problem.n_columns)
    Z, y, weights = dense(problem)
    residuals = y - Z @ theta
    inside = (np.abs(residuals) <= bound) & (weights > 0)
    engine = MemoryEngine(problem, chunk_rows)
    rows = engine.map_rows(is_within, theta, bound)
    np.testing.assert_array_equal(rows & (weights > 0), inside)
    mass, square, sums = engine.fold(within_sums, theta, bound)
    assert mass == weights[inside].sum()
    np.testing.assert_allclose(square, (weights * residuals**2)[inside].sum(), atol=1e-9)
    weighted_rows = Z[inside] * weights[inside, None]
    np.testing.assert_allclose(sums.gram, weighted_rows.T @ Z[inside], atol=1e-7)
    np.testing.assert_allclose(sums.moment, residuals[inside] @ weighted_rows, atol=1e-7)


def test_a_batch_too_large_for_memory_is_cut(monkeypatch):
    rng = np.random.default_rng(5)
    X, y = noisy_table(rng, 300, 3)
    starts = rng.standard_normal((7, 3))
    whole = ilts(X, y, starts, keep=0.5)
    monkeypatch.setattr("regimix.engines.memory.BLOCK_BYTES", 3 * 300 * 8)
    for cut, fit in zip(ilts(X, y, starts, keep=0.5), whole, strict=True):
        np.testing.assert_array_equal(cut.kept, fit.kept)
        np.testing.assert_allclose(cut.coef, fit.coef, rtol=1e-12)


# --- whole fits: storage and chunks do not matter -------------------------------------------------


def same_fit(one, other, tolerance=1e-9):
    np.testing.assert_array_equal(one.kept, other.kept)
    np.testing.assert_allclose(one.coef, other.coef, atol=tolerance)
    np.testing.assert_allclose(one.intercept, other.intercept, atol=tolerance)
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-9)
    assert (one.n_iter, one.stopped, one.rank) == (other.n_iter, other.stopped, other.rank)


@few
@given(seeds, st.integers(20, 200), st.integers(1, 4), st.booleans(), st.data())
def test_any_chunk_size_gives_the_same_answer(seed, n, d, intercept, data):
    rng = np.random.default_rng(seed)
    X, y = noisy_table(rng, n, d)
    start = rng.standard_normal(d)
    options = {"keep": fraction_for(max(n // 2, d + 3), n), "fit_intercept": intercept}
    whole = ilts(X, y, start, **options)
    for chunk_rows in (1, data.draw(st.integers(2, n)), n + 1):
        same_fit(ilts(X, y, start, chunk_rows=chunk_rows, **options), whole)


@few
@given(seeds, st.integers(20, 120), st.integers(1, 4), st.integers(1, 9))
def test_copies_of_a_row_in_different_chunks_still_tie(seed, n, d, chunk_rows):
    """A copy is kept before its twin further down, however the table is cut."""
    rng = np.random.default_rng(seed)
    X, y = (np.repeat(part, 2, axis=0) for part in noisy_table(rng, n, d))
    options = {"keep": fraction_for(2 * max(n // 2, d + 2) + 1, 2 * n)}
    start = rng.standard_normal(d)
    whole = ilts(X, y, start, **options)
    same_fit(ilts(X, y, start, chunk_rows=chunk_rows, **options), whole)
    copies = whole.kept.reshape(n, 2)
    assert (copies[:, 0] >= copies[:, 1]).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int8"])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "memory map", "read-only"])
def test_the_storage_does_not_matter(dtype, layout, tmp_path):
    rng = np.random.default_rng(11)
    values = (20 * rng.standard_normal((400, 3))).astype(dtype)
    y = values @ np.array([1.0, -2.0, 0.5]) + rng.standard_normal(400)
    y[::4] += 300 * rng.standard_normal(100)
    plain = values.astype(np.float64)
    if layout == "F":
        stored = np.asfortranarray(values)
    elif layout == "strided":
        stored = np.repeat(np.repeat(values, 2, axis=0), 2, axis=1)[::2, ::2]
    elif layout == "memory map":
        path = tmp_path / "rows"
        values.tofile(path)
        stored = np.memmap(path, dtype=values.dtype, mode="r", shape=values.shape)
    else:
        stored = values.copy()
        stored.flags.writeable = layout != "read-only"
    for intercept in (False, True):
        options = {"keep": 0.6, "fit_intercept": intercept, "chunk_rows": 64}
        same_fit(ilts(stored, y, **options), ilts(plain, y, **options))


@pytest.mark.parametrize("fit", [ilts, gd_ilts])
@pytest.mark.parametrize("weighted", [False, True])
def test_user_arrays_are_not_modified(fit, weighted):
    rng = np.random.default_rng(3)
    X, y = noisy_table(rng, 100, 3)
    start = rng.standard_normal((2, 3))
    weights = rng.integers(0, 3, 100).astype(float) if weighted else None
    arrays = [part for part in (X, y, start, weights) if part is not None]
    before = [part.copy() for part in arrays]
    for part in arrays:
        part.flags.writeable = False
    fit(X, y, start, keep=0.5, sample_weight=weights, fit_intercept=True)
    for part, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(part, copy)


# --- memory ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large_table():
    rng = np.random.default_rng(0)
    X, y = noisy_table(rng, 400_000, 5)
    return X, y, rng.integers(0, 4, 400_000).astype(float)


def peak_of(fit, X, y, start, weights=None, **options):
    """Largest memory held at once by a fit, beyond what was held before."""
    few = None if weights is None else weights[:100]
    fit(X[:100], y[:100], start, sample_weight=few, **options)  # imports and caches
    tracemalloc.start()
    try:
        held = tracemalloc.get_traced_memory()[0]
        with threadpool_limits(1, "blas"):  # each thread has a chunk of its own
            fit(X, y, start, sample_weight=weights, **options)
        return tracemalloc.get_traced_memory()[1] - held
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("fit", [ilts, gd_ilts])
@pytest.mark.parametrize("start", [None, np.zeros(5)], ids=["no start", "start"])
@pytest.mark.parametrize("intercept", [False, True])
def test_extra_memory_is_four_vectors_and_a_chunk(large_table, fit, start, intercept):
    X, y, _ = large_table
    peak = peak_of(fit, X, y, start, keep=0.5, fit_intercept=intercept, max_iter=3)
    assert peak <= 4 * y.nbytes + 4 * MEBIBYTE


def test_weights_add_their_own_vectors_only(large_table):
    """One checked copy of the weights, and the kept weights that are returned."""
    X, y, weights = large_table
    peak = peak_of(ilts, X, y, np.zeros(5), weights, keep=0.5, max_iter=3)
    assert peak <= (4 + 2) * y.nbytes + 4 * MEBIBYTE


@pytest.mark.parametrize("weighted", [False, True])
def test_values_of_rows_are_the_same_for_blocks_of_any_size(monkeypatch, weighted):
    """Put together from many blocks, or from one; what is chosen by them is the same too."""
    rng = np.random.default_rng(4)
    X, y = noisy_table(rng, 500, 3)
    weights = rng.integers(0, 4, 500) if weighted else None
    engine = MemoryEngine(Problem.from_arrays(X, y, weights))
    theta, mass = rng.standard_normal(4), float(np.floor(0.6 * engine.problem.mass))
    whole = engine.map_rows(residual_sizes, theta)
    chosen = engine.choose(residual_sizes, (theta,), mass)
    monkeypatch.setattr("regimix.engines.memory.BLOCK_ROWS", 64)
    np.testing.assert_allclose(engine.map_rows(residual_sizes, theta), whole, rtol=1e-12)
    np.testing.assert_array_equal(engine.map_rows(is_within, theta, 1.0), whole <= 1.0)
    cut = engine.choose(residual_sizes, (theta,), mass)
    np.testing.assert_array_equal(cut.kept, chosen.kept)
    # Blocks are asked for their own part of what was chosen.
    np.testing.assert_array_equal(engine.map_rows(kept_rows, cut), chosen.kept)
    assert engine.fold(masked_mass, cut) == masked_mass(engine, chosen)


@pytest.mark.parametrize("intercept", [True, False])
def test_few_rows_are_the_same_in_the_space_that_they_span(intercept):
    rng = np.random.default_rng(0)
    X, y = rng.normal(3.0, 2.0, (12, 40)), rng.normal(size=12)
    X[1], y[1] = X[0], y[0]  # a row twice, and one absent
    weights = np.array([1.0] * 11 + [0.0])
    engine = MemoryEngine(Problem.from_arrays(X, y, weights, fit_intercept=intercept))
    turned, basis = engine.in_row_space(5)
    width = turned.problem.n_columns
    assert width == 10
    often = MemoryEngine(Problem.from_arrays(np.tile(X[:11], (9, 1)), np.tile(y[:11], 9)))
    assert often.in_row_space(5)[0].problem.n_columns == 10
    assert MemoryEngine(Problem.from_arrays(X[:, :9], y)).in_row_space(5) is None
    np.testing.assert_allclose(basis.T @ basis, np.eye(width), atol=1e-12)
    t = rng.normal(size=width)
    np.testing.assert_allclose(turned.residuals(t), engine.residuals(basis @ t), atol=1e-10)
    # The shortest solution is that of the table.
    Z, target = engine.standardised(np.arange(11)), engine.target(np.arange(11))
    shortest = basis @ np.linalg.pinv(turned.problem.X[:11]) @ target
    np.testing.assert_allclose(shortest, np.linalg.pinv(Z) @ target, atol=1e-10)
    # So is that of some of the rows, none of which is alone in a direction.
    for left_out in range(11):
        some = np.delete(np.arange(11), left_out)
        sums = turned.sums(some, turned.target(some))
        t, _ = solved(sums, np.zeros(width))
        np.testing.assert_allclose(turned.residuals(t)[some], 0.0, atol=1e-10)
    np.testing.assert_array_equal(turned.draw(12, 5).numbers, engine.draw(12, 5).numbers)
    sample, other = turned.sample(12, 5), engine.sample(12, 5)
    np.testing.assert_allclose(sample.Z, other.Z @ basis, atol=1e-12)
    np.testing.assert_array_equal(sample.weights, other.weights)
