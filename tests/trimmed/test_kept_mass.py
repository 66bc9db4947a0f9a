"""How much is kept: floors that forgive rounding, masses of weights, clear refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix import ilts
from regimix.data.problem import Problem
from regimix.errors import ParameterError
from regimix.trimmed.ilts import kept_mass

few = settings(max_examples=80, deadline=None)


def table(n, weights=None):
    X = np.arange(float(n))[:, None]
    return Problem.from_arrays(X, np.cos(X[:, 0]), weights)


def test_twenty_nine_percent_of_a_hundred_is_twenty_nine():
    assert 0.29 * 100 < 29  # what the floor must forgive
    assert kept_mass(0.29, table(100)) == 29


def test_every_percentage_of_a_hundred_is_itself():
    problem = table(100)
    assert [kept_mass(percent / 100, problem) for percent in range(1, 101)] == [*range(1, 101)]


@few
@given(st.integers(2, 3000), st.data())
def test_k_of_n_is_k_and_a_little_less_is_less(n, data):
    k = data.draw(st.integers(1, n))
    problem = table(n)
    assert kept_mass(k / n, problem) == k
    if k > 1:
        assert kept_mass((k - 1e-3) / n, problem) == k - 1
    if k < n:
        assert kept_mass((k + 0.999) / n, problem) == k


@few
@given(st.lists(st.integers(0, 6), min_size=2, max_size=30), st.floats(0.05, 1.0))
def test_whole_weights_count_rows(weights, keep):
    weights = np.array([19, 1, *weights], dtype=float)
    total = int(weights.sum())
    long = table(total)
    assert kept_mass(keep, table(weights.size, weights)) == kept_mass(keep, long)


@few
@given(st.lists(st.floats(0.01, 9.0), min_size=3, max_size=30), st.floats(0.01, 1.0))
def test_other_weights_are_cut_where_the_fraction_ends(weights, keep):
    weights = np.array([0.5, *weights])
    problem = table(weights.size, weights)
    np.testing.assert_allclose(kept_mass(keep, problem), keep * problem.mass)


@pytest.mark.parametrize("keep", [1, 1.0, np.float32(0.5), np.float64(0.5), np.array(0.5)])
def test_numbers_of_any_make_are_fractions(keep):
    assert kept_mass(keep, table(10)) == int(10 * keep)


@pytest.mark.parametrize(
    "keep", [0, 0.0, -0.5, 1.0001, 2, np.nan, np.inf, True, "half", "auto", None]
)
def test_anything_else_is_refused(keep):
    with pytest.raises(ParameterError, match="keep must be"):
        kept_mass(keep, table(10))


def test_a_fraction_that_keeps_no_row_is_refused():
    with pytest.raises(ParameterError, match="keeps no row"):
        kept_mass(0.09, table(10))


def test_the_floor_is_what_a_fit_keeps():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 2)), rng.standard_normal(100)
    for keep, count in ((0.29, 29), (0.57, 57), (0.58, 58), (0.999, 99), (1.0, 100)):
        assert ilts(X, y, np.zeros(2), keep=keep).kept.sum() == count
