"""Selection: the smallest values, ties by row order, weights by mass, beside a stable sort."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix.engines.row_sampling import mix
from regimix.engines.selection import smallest, smallest_of_each
from tests.oracles import kept_by_sorting, kept_weight_by_sorting

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=100, deadline=None)


def values_of(rng, n, grid):
    """On a grid, many values tie; zeros of an exact fit included."""
    if grid:
        return rng.integers(0, 4, n).astype(float)
    return np.abs(rng.standard_normal(n))


def kept_weight(choice, weights):
    """What a choice says about every row's weight in the fit."""
    kept = np.where(choice.kept, weights, 0.0)
    if choice.boundary >= 0:
        kept[choice.boundary] = choice.boundary_weight
    return kept


@few
@given(seeds, st.integers(1, 60), st.booleans(), st.data())
def test_the_smallest_are_those_of_a_stable_sort(seed, n, grid, data):
    values = values_of(np.random.default_rng(seed), n, grid)
    count = data.draw(st.integers(1, n))
    choice = smallest(values, float(count))
    np.testing.assert_array_equal(choice.kept, kept_by_sorting(values, count))
    assert choice.threshold == np.sort(values)[count - 1]
    assert choice.boundary == -1


@few
@given(seeds, st.integers(1, 40), st.integers(1, 6), st.booleans(), st.data())
def test_the_smallest_of_each_are_the_smallest_of_every_one(seed, n, starts, grid, data):
    rng = np.random.default_rng(seed)
    values = np.stack([values_of(rng, n, grid) for _ in range(starts)])
    count = data.draw(st.integers(1, n))
    kept, thresholds = smallest_of_each(values, count, np.zeros(starts))
    for i in range(starts):
        np.testing.assert_array_equal(kept[i], kept_by_sorting(values[i], count))
        assert thresholds[i] == np.sort(values[i])[count - 1]


@few
@given(seeds, st.integers(2, 40), st.booleans(), st.data())
def test_whole_weights_equal_repeated_rows(seed, n, grid, data):
    rng = np.random.default_rng(seed)
    values = values_of(rng, n, grid)
    weights = rng.integers(0, 5, n).astype(float)
    weights[rng.integers(n)] += 1
    count = data.draw(st.integers(1, int(weights.sum())))
    choice = smallest(values, float(count), weights)
    row = np.repeat(np.arange(n), weights.astype(int))
    copies = np.bincount(row[kept_by_sorting(values[row], count)], minlength=n)
    np.testing.assert_array_equal(kept_weight(choice, weights), copies)
    np.testing.assert_array_equal(choice.kept, copies > 0)
    assert choice.threshold == np.sort(values[row])[count - 1]


@few
@given(seeds, st.integers(2, 40), st.booleans(), st.floats(0.01, 1.0))
def test_any_weights_fill_the_mass_with_one_row_in_part(seed, n, grid, share):
    rng = np.random.default_rng(seed)
    values = values_of(rng, n, grid)
    weights = rng.exponential(size=n) * (rng.random(n) < 0.8)
    weights[0] += 0.1
    mass = share * weights.sum()
    found = kept_weight(smallest(values, mass, weights), weights)
    np.testing.assert_allclose(
        found, kept_weight_by_sorting(values, weights, mass), atol=1e-8 * weights.max()
    )
    assert abs(found.sum() - mass) <= 1e-8 * weights.max()
    assert np.count_nonzero((found > 0) & (found < weights)) <= 1


@few
@given(seeds, st.integers(2, 30), st.booleans(), st.booleans(), st.floats(0.05, 1.0))
def test_a_row_of_weight_zero_is_absent(seed, n, grid, whole, share):
    rng = np.random.default_rng(seed)
    values = values_of(rng, n, grid)
    weights = rng.integers(1, 4, n).astype(float) if whole else rng.exponential(size=n) + 0.01
    absent = rng.random(n) < 0.4
    absent[0] = False
    weights[absent] = 0.0
    values[absent] *= rng.choice([0.0, 1.0, 9.0])
    mass = float(np.ceil(share * weights.sum())) if whole else share * weights.sum()
    choice = smallest(values, mass, weights)
    alone = smallest(values[~absent], mass, weights[~absent])
    assert not choice.kept[absent].any()
    np.testing.assert_array_equal(choice.kept[~absent], alone.kept)
    np.testing.assert_allclose(
        kept_weight(choice, weights)[~absent], kept_weight(alone, weights[~absent]), atol=1e-12
    )


@few
@given(seeds, st.integers(2, 40), st.booleans(), st.data())
def test_weights_of_one_are_no_weights(seed, n, grid, data):
    values = values_of(np.random.default_rng(seed), n, grid)
    count = float(data.draw(st.integers(1, n)))
    weighted = smallest(values, count, np.ones(n))
    np.testing.assert_array_equal(weighted.kept, smallest(values, count).kept)
    assert weighted.boundary == -1


def test_the_last_row_counts_in_part_and_the_first_of_equals_goes_first():
    choice = smallest(np.array([5.0, 1.0, 1.0, 9.0]), 4.0, np.array([1.0, 3.0, 3.0, 1.0]))
    assert choice.kept.tolist() == [False, True, True, False]
    assert (choice.boundary, choice.boundary_weight, choice.threshold) == (2, 1.0, 1.0)


def test_rounding_of_a_sum_adds_no_sliver_of_a_row():
    weights = np.full(10, 0.1)
    for count in range(1, 11):  # 3 * 0.1 is not 0.1 + 0.1 + 0.1
        choice = smallest(np.arange(10.0), count * 0.1, weights)
        assert np.count_nonzero(kept_weight(choice, weights) > 1e-9) == count
        assert choice.kept.sum() == count
        assert choice.boundary == -1


@few
@given(seeds, st.integers(2, 40), st.booleans(), st.data())
def test_values_closer_than_the_floor_tie(seed, n, weighted, data):
    """Rounding in the last digits decides nothing: the same rows as without it."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, n).astype(float)
    noise = 1e-12 * rng.uniform(-0.5, 0.5, (1, n))
    count = data.draw(st.integers(1, n))
    weights = np.ones(n) if weighted else None
    exact = smallest(values, float(count), weights)
    for blurred in (np.abs(values + noise[0]), np.abs(values - noise[0])):
        np.testing.assert_array_equal(
            smallest(blurred, float(count), weights, 1e-12).kept, exact.kept
        )
    kept, _ = smallest_of_each(np.abs(values + noise), count, np.array([1e-12]))
    np.testing.assert_array_equal(kept[0], exact.kept)


def test_mixed_words_do_not_collide_and_every_bit_matters():
    words = np.arange(100_000, dtype=np.uint64)
    mixed = mix(words)
    assert np.unique(mixed).size == words.size  # a bijection
    flipped = np.bitwise_count(mixed ^ mix(words ^ np.uint64(1)))
    assert 31 < flipped.mean() < 33
