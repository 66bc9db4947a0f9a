"""The law of outliers, and the grid that responses were rounded to."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from regimix.model.laws import ROOT_8, fall_of_background, resolution

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
def test_a_few_values_off_the_grid_do_not_hide_it(seed, odd):
    rng = np.random.default_rng(seed)
    y = 0.5 * rng.integers(0, 20, 100)
    y[:odd] += rng.uniform(0.01, 0.49, odd)
    assert 0.25 <= resolution(y) <= 0.5


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
