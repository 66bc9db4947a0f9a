"""One relation given the values of the response, beside all orders of these values."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from regimix.engines.base import Sample
from regimix.model import given_values
from regimix.model.given_values import evidence_given_values
from regimix.model.numbers import MODEL
from regimix.model.rows import whitened_rows
from tests.oracles import repeat_rows

seeds = st.integers(0, 10**6)


def evidence(x, y, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    return evidence_given_values(x, y, weights, weights)[0]


def standard(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def beside_all_orders(x, y):
    """Integrate over the slope the probability of the order seen, among all orders."""
    sums = standard(y)[np.array(list(permutations(range(y.size))))] @ x[:, 0]
    slopes = np.linspace(-12, 12, 401)[:, None]
    likely = slopes[:, 0] * sums[0] - logsumexp(slopes * sums, axis=1) + np.log(len(sums))
    prior = -0.5 * slopes[:, 0] ** 2 / MODEL.slopes_variance
    prior -= 0.5 * np.log(2 * np.pi * MODEL.slopes_variance)
    step = slopes[1, 0] - slopes[0, 0]
    return float(logsumexp(likely + prior) + np.log(0.9 * step))


@pytest.mark.parametrize("law", ["normal", "skewed", "ties"])
@pytest.mark.parametrize("slope", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_probability_of_the_order_among_all_orders(seed, slope, law):
    rng = np.random.default_rng(seed)
    x = standard(rng.standard_normal((7, 1)))
    y = slope * x[:, 0] + rng.standard_normal(7)
    y = {"normal": y, "skewed": np.exp(y), "ties": np.round(y)}[law]
    assert evidence(x, y) == pytest.approx(beside_all_orders(x, y), abs=0.25)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("law", ["normal", "skewed", "ties"])
def test_its_mean_over_all_orders_is_no_more_than_one(law, seed):
    """So that no law of the response, and none of the features, is taken for a relation.

    With the ordinary prior of the slopes it is .9, their share of all orders of magnitude.
    """
    rng = np.random.default_rng(seed)
    x, y = standard(rng.exponential(size=(6, 1)) ** 2), rng.standard_normal(6)
    y = {"normal": y, "skewed": np.exp(2 * y), "ties": np.round(y)}[law]
    orders = np.array(list(permutations(range(6))))
    ratios = np.exp([evidence(x, y[order]) for order in orders])
    assert 0.75 < np.mean(ratios) < 1.05


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("slope", [0.0, 0.3, 2.0])
def test_with_normal_noise_it_is_what_least_squares_sees(seed, slope):
    rng = np.random.default_rng(seed)
    x = standard(rng.standard_normal((300, 2)))
    y = slope * x[:, 0] + rng.standard_normal(300)
    A = np.column_stack([np.ones(300), x])
    rest = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    # The Bayesian information criterion with the variance of the prior in place of one; steep
    # slopes are less likely a priori.
    known = 150 * np.log(y.var() / rest.var()) - np.log(300 * MODEL.slopes_variance / 2)
    assert evidence(x, y) == pytest.approx(known, abs=0.05 * known + 1.0)


@given(seeds)
def test_units_order_and_repetition_of_rows_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    x, y = standard(rng.standard_normal((30, 2))), rng.integers(0, 5, 30) * 1.0
    counts = rng.integers(0, 4, 30)
    counts[:2] = 1  # two responses at least
    y[:2] = 0.0, 1.0
    known = evidence(x, y, counts * 1.0)
    order = rng.permutation(30)
    again = repeat_rows(x[order], 7.0 - 1e-5 * y[order], counts[order])
    assert evidence(*again) == pytest.approx(known, abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_values_next_to_one_another_say_as_much_together(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    x = standard(rng.standard_normal((250, 1)))
    y = np.exp(0.5 * x[:, 0] + rng.standard_normal(250))
    few = evidence(x, y)
    monkeypatch.setattr(given_values, "MODEL", replace(MODEL, values_apart=250))
    # Far values in a heavy tail are one, which makes the relation a little clearer.
    assert evidence(x, y) == pytest.approx(few, abs=0.5 + 0.1 * few)


@pytest.mark.parametrize("seed", range(4))
def test_copies_of_rows_are_no_new_evidence_and_few_values_are_no_copies(seed):
    rng = np.random.default_rng(seed)
    x, y = standard(rng.standard_normal((50, 1))), rng.standard_normal(50)
    copies, distinct = np.full(50, 8.0), np.ones(50)
    found, counted = evidence_given_values(x, y, copies, distinct)
    assert counted is distinct
    assert found == evidence(x, y)
    # Grades of two groups: many rows are equal, each of them is one.
    groups = rng.integers(0, 2, 400)
    grades = np.clip(np.round(rng.standard_normal(400) + groups + 1), 0, 4)
    (both, times) = np.unique(np.column_stack([groups, grades]), axis=0, return_counts=True)
    x = (both[:, :1] - groups.mean()) / groups.std()
    found, counted = evidence_given_values(x, both[:, 1], times * 1.0, np.ones(len(both)))
    assert (counted == times).all()
    assert found > 10


@pytest.mark.parametrize("kind", ["two groups", "mostly zero"])
@pytest.mark.parametrize("seed", range(4))
def test_copies_are_told_among_few_features_and_few_values(seed, kind):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((60, 2)), rng.poisson(3, 60) * (rng.random(60) < 0.3)
    if kind == "two groups":
        x, y = rng.integers(0, 2, (60, 1)), rng.standard_normal(60)
    copies, distinct = np.full(60, 8.0), np.ones(60)
    x = standard(x)
    assert evidence_given_values(x, y * 1.0, copies, distinct)[1] is distinct
    # Of two answers that features tell for sure, each row is one.
    x = np.array([[-1.0], [1.0]])
    found, counted = evidence_given_values(x, x[:, 0], copies[:2], distinct[:2])
    assert counted is not distinct[:2]
    assert (counted == 8).all()
    assert found > 5


def test_there_is_none_without_features_or_with_one_value():
    assert evidence(np.empty((5, 0)), np.arange(5.0)) == 0
    assert evidence(np.arange(5.0)[:, None], np.ones(5)) == 0
    assert evidence(np.arange(5.0)[:, None], np.arange(5.0), np.zeros(5)) == 0


def test_more_features_than_rows_and_collinear_ones_are_no_relation():
    rng = np.random.default_rng(0)
    assert evidence(standard(rng.standard_normal((40, 60))), rng.standard_normal(40)) < 3
    x = rng.standard_normal((100, 1))
    assert evidence(np.hstack([x, x]), rng.standard_normal(100)) < 3


@pytest.mark.parametrize("law", ["exponential", "cauchy"])
@pytest.mark.parametrize("seed", range(10))
def test_features_that_tell_the_values_for_sure_leave_matrices_that_can_be_solved(seed, law):
    """Where rows are far away, next to nothing is left open."""
    rng = np.random.default_rng(seed)
    far = rng.standard_cauchy(100) if law == "cauchy" else np.exp(3 * rng.standard_normal(100))
    sample = Sample(np.column_stack([np.ones(100), far]), np.round(far, 1), np.ones(100))
    rows = whitened_rows(sample, intercept=True)[0]
    assert 5 < evidence(rows.features, rows.y) < 100 * np.log(100)
