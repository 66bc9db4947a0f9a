"""The law of outliers, and the grid that responses were rounded to."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from regimix.model.laws import ROOT_8, coincide_by_chance, fall_of_background, resolution

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=30)


# --- the law --------------------------------------------------------------------------------------


def test_the_fall_from_the_middle_makes_a_density():
    total, _ = integrate.quad(lambda x: np.exp(fall_of_background(x)) / ROOT_8, -np.inf, np.inf)
    assert total == pytest.approx(1)
    assert fall_of_background(np.zeros(1))[0] == 0


# --- resolution -----------------------------------------------------------------------------------


@few
@given(
    seeds,
    st.sampled_from([1.0, 0.5, 0.01, 0.25, 5.0, 1e-6, 1e6]),
    st.sampled_from([1.0, 2.54, 0.45359237, 1 / 3]),
    st.sampled_from([0.0, 100.0, -40.0]),
)
def test_rounded_responses_lie_on_a_grid_whatever_their_unit(seed, step, unit, start):
    """Sixty of about forty grid points, as real tables have them, and then converted."""
    rng = np.random.default_rng(seed)
    y = (np.round(12 * rng.standard_normal(60)) + start) * step * unit
    assert resolution(y) == pytest.approx(step * unit, rel=1e-4)


@few
@given(seeds)
def test_a_grid_of_two_steps_is_one_of_their_common_divisor(seed):
    rng = np.random.default_rng(seed)
    y = np.concatenate([0.6 * rng.integers(0, 30, 40), 0.4 * rng.integers(0, 30, 40), [0.6, 0.4]])
    assert resolution(y) == pytest.approx(0.2, rel=1e-4)


@few
@given(seeds, st.integers(1, 6))
# 8.8072 lies on a grid of 0.00058, as nearly as seven digits can tell.
@example(225, 1)
def test_a_few_values_off_the_grid_do_not_hide_it(seed, odd):
    rng = np.random.default_rng(seed)
    y = 0.5 * rng.integers(0, 20, 100)
    y[:odd] += rng.uniform(0.01, 0.49, odd)
    assert 0.25 <= resolution(y) <= 0.5


def test_values_typed_with_one_digit_more_do_not_hide_the_grid():
    """As in CobarOre: 36 responses are multiples of 0.5, the others are 17.4 and 19.4."""
    y = np.concatenate([np.repeat(np.arange(22, 52) / 2, 2), [17.4, 19.4]])
    assert resolution(y) == pytest.approx(0.5)


def test_values_between_those_that_repeat_are_on_the_grid():
    """Amounts: some are round, and repeat, and all others are as fine as they are written."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.zeros(60), np.repeat([5.0, 10.0], 10), rng.integers(1, 1500, 30) / 100])
    assert resolution(y) == pytest.approx(0.01)
    assert resolution(np.array([0.0] * 5 + [7.0] * 3 + [1.0, 2.0, 3.0])) == pytest.approx(1)


@few
@given(seeds, st.sampled_from([20, 200, 3000]), st.sampled_from([1e-3, 1.0, 1e5]))
def test_continuous_responses_have_next_to_none(seed, n, unit):
    y = unit * np.random.default_rng(seed).standard_normal(n)
    assert 0 <= resolution(y) < 1e-4 * unit


def test_responses_of_one_value_or_two():
    assert resolution(np.full(9, 3.7)) == 0
    assert resolution(np.array([3.7])) == 0
    assert resolution(np.array([0.0, 1.0] * 5)) == pytest.approx(1)
    assert resolution(np.array([2.0, 2.5] * 5)) == pytest.approx(0.5)


@few
@given(seeds)
def test_rounding_of_the_numbers_themselves_is_no_grid(seed):
    """The same values, computed in different ways, differ in the last digit."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 50, 80) * 0.1
    y = np.where(rng.random(80) < 0.5, y, y * (1 + 3e-16))
    assert resolution(y) == pytest.approx(0.1, rel=1e-4)


def test_a_normal_background_falls_as_the_normal_law_does():
    far = np.linspace(-4, 4, 9)
    found = fall_of_background(far, np.inf)
    np.testing.assert_allclose(found, stats.norm.logpdf(far) - stats.norm.logpdf(0))


@few
@given(seeds, st.integers(1, 400))
def test_the_order_and_repetition_of_responses_do_not_matter(seed, n):
    rng = np.random.default_rng(seed)
    y = np.round(10 * rng.standard_normal(n)) / 4
    assert resolution(rng.permutation(np.tile(y, 2))) == pytest.approx(resolution(y), rel=1e-9)


def test_values_that_differ_by_arithmetic_alone_are_no_grid():
    """Seen: repeated values 7e-15 apart made a step of that size, and roots of y no numbers."""
    off = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])
    y = np.repeat(np.concatenate([off, off * (1 + 4e-16)]), 20)
    assert np.unique(y).size > off.size
    assert resolution(y) == 0 or resolution(y) > 0.1


# --- rows that coincide ---------------------------------------------------------------------------


def _distinct(x, y):
    rows, counts = np.unique(np.column_stack([x, y]), axis=0, return_counts=True)
    return rows[:, :-1], rows[:, -1], counts.astype(float)


@given(seeds, st.sampled_from([0.1, 0.5, 2.0]), st.integers(2, 80))
def test_equal_rows_are_counted_as_in_all_pairs(seed, step, n):
    rng = np.random.default_rng(seed)
    y = np.round(rng.standard_normal(n) * rng.choice([0.2, 1.0, 5.0]) / step)
    x = rng.integers(0, 3, (n, 2)).astype(float)
    alike = (x[:, None] == x).all(axis=2)
    apart = np.abs(y[:, None] - y)
    same, near = (int((alike & (apart == steps)).sum()) for steps in (0, 1))
    wanted = 0 < same - n <= near
    assert coincide_by_chance(*_distinct(x, y * step - 7.0 * step), step) == wanted


@pytest.mark.parametrize("step", [0.1, 0.5])
def test_rounding_explains_equal_rows_and_copies_or_heaps_are_not_explained(step):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, (800, 1)).astype(float)
    exact = x[:, 0] + rng.standard_normal(800)
    Z, y, counts = _distinct(x, step * np.round(exact / step))
    assert coincide_by_chance(Z, y, counts, step)
    assert not coincide_by_chance(Z, y, counts, 0.0)
    # Weights that are nearly counts are as good.
    nearly = counts * (1 + 1e-9 * np.random.default_rng(0).standard_normal(counts.size))
    assert coincide_by_chance(Z, y, nearly, step)
    assert not coincide_by_chance(x, exact, np.full(800, 8.0), 1e-3)  # eight copies of each
    heaped = np.where(rng.random(800) < 0.4, np.round(exact), np.round(exact, 2))
    assert not coincide_by_chance(*_distinct(x, heaped), 0.01)
