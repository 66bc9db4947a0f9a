"""Random draws see what rows say: neither their order nor how often they are written."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from tests.oracles import repeat_rows

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=60, deadline=None)


def whole_table(rng, n, d):
    """Small whole numbers: their floating point mantissas are nearly empty, and rows repeat."""
    return rng.integers(-3, 4, (n, d)).astype(float), rng.integers(0, 5, n).astype(float)


def sample_of(X, y, weights, rows, seed, chunk_rows=None):
    return MemoryEngine(Problem.from_standardised(X, y, weights), chunk_rows).sample(rows, seed)


def distinct(X, y):
    return np.unique(np.column_stack([X, y]), axis=0)


def same_sample(one, other):
    np.testing.assert_array_equal(one.Z, other.Z)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.weights, other.weights)


@few
@given(seeds, st.integers(2, 80), st.integers(1, 4), st.integers(1, 90), seeds)
def test_a_sample_has_distinct_rows_and_the_weight_of_all_their_copies(seed, n, d, rows, draw):
    X, y = whole_table(np.random.default_rng(seed), n, d)
    sample = sample_of(X, y, None, rows, draw)
    table = distinct(X, y)
    drawn = np.column_stack([sample.Z, sample.y])
    assert len(drawn) == len(distinct(sample.Z, sample.y)) == min(rows, len(table))
    for row, weight in zip(drawn, sample.weights, strict=True):
        assert weight == np.count_nonzero((np.column_stack([X, y]) == row).all(axis=1))


@few
@given(seeds, st.integers(2, 60), st.integers(1, 3), st.integers(1, 60), seeds, st.integers(1, 50))
def test_order_repetition_and_chunks_do_not_matter(seed, n, d, rows, draw, chunk_rows):
    rng = np.random.default_rng(seed)
    X, y = whole_table(rng, n, d)
    weights = rng.integers(0, 4, n).astype(float)
    weights[0] = 2
    weighted = sample_of(X, y, weights, rows, draw)
    X_long, y_long = repeat_rows(X, y, weights)
    order = rng.permutation(len(y_long))
    same_sample(weighted, sample_of(X_long, y_long, None, rows, draw))
    same_sample(weighted, sample_of(X_long[order], y_long[order], None, rows, draw, chunk_rows))
    order = rng.permutation(n)
    same_sample(weighted, sample_of(X[order], y[order], weights[order], rows, draw, chunk_rows))


@few
@given(seeds, st.integers(5, 60), st.integers(1, 30), seeds)
def test_a_short_draw_begins_a_long_one(seed, n, rows, draw):
    X, y = whole_table(np.random.default_rng(seed), n, 2)
    short, long = (sample_of(X, y, None, count, draw) for count in (rows, 2 * rows))
    same_sample(short, type(short)(long.Z[:rows], long.y[:rows], long.weights[:rows]))


@few
@given(seeds, st.integers(3, 60), st.integers(1, 3), st.integers(-300, 300), st.booleans(), seeds)
def test_powers_of_two_do_not_matter(seed, n, d, power, whole, draw):
    rng = np.random.default_rng(seed)
    X, y = whole_table(rng, n, d) if whole else (rng.normal(size=(n, d)), rng.normal(size=n))
    weights = rng.integers(0, 3, n).astype(float)
    weights[:2] = 1.0
    columns = 2.0 ** rng.integers(-300, 300, d)
    plain, other = (
        MemoryEngine(Problem.from_arrays(*rows, weights)).draw(n // 2, draw)
        for rows in ((X, y), (X * columns, y * 2.0**power))
    )
    np.testing.assert_array_equal(plain.numbers, other.numbers)
    np.testing.assert_array_equal(plain.keys, other.keys)
    # Rows of weight zero are absent, however large.
    far = MemoryEngine(
        Problem.from_arrays(np.vstack([X, X[:1] * 64]), np.append(y, 64.0), np.append(weights, 0))
    )
    np.testing.assert_array_equal(plain.keys, far.draw(n // 2, draw).keys)


def test_signed_zeros_are_one_number():
    X = np.array([[0.0], [-0.0], [1.0]])
    sample = sample_of(X, np.array([-0.0, 0.0, 1.0]), None, 3, 1)
    assert sorted(sample.weights) == [1.0, 2.0]


def test_values_not_storage_make_the_draw():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 3)).astype(np.float32)
    y = rng.standard_normal(200)
    single = MemoryEngine(Problem.from_arrays(X, y)).sample(20, 9)
    double = MemoryEngine(Problem.from_arrays(X.astype(float), y)).sample(20, 9)
    np.testing.assert_allclose(single.Z, double.Z, rtol=1e-6)
    np.testing.assert_array_equal(single.y, double.y)


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 2**40))
def test_every_distinct_row_is_as_likely_as_any_other(first_seed):
    """However often a row is written, and however regular the numbers are."""
    X = np.column_stack([np.arange(20) % 5, np.arange(20) // 5]).astype(float)
    y = np.zeros(20)
    weights = 1.0 + np.arange(20) % 3
    problem = Problem.from_standardised(X, y, weights)
    counts = np.zeros((5, 4))
    for seed in range(first_seed, first_seed + 400):
        Z = MemoryEngine(problem).sample(5, seed).Z.astype(int)
        np.add.at(counts, (Z[:, 0], Z[:, 1]), 1)
    # Drawn without replacement the counts vary less than a multinomial: the test is cautious.
    assert stats.chisquare(counts.ravel()).pvalue > 1e-7


def test_many_regular_rows_stay_distinct():
    """A collision of keys would merge two rows: on a grid every row must survive."""
    X = np.stack(np.meshgrid(np.arange(500.0), np.arange(400.0)), axis=-1).reshape(-1, 2)
    sample = sample_of(X, np.zeros(len(X)), None, len(X), 3)
    assert len(sample.y) == len(X)
