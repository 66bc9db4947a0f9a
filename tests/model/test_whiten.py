"""Whitening: identity covariance, whatever the units, ranks, weights and far rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix.engines.base import Sample
from regimix.model.numbers import MODEL
from regimix.model.rows import weighted_fit, weighted_quantile, whiten

few = settings(max_examples=60, deadline=None)


def sample_of(columns, *, intercept, weights=None):
    n = len(columns)
    Z = np.column_stack([np.ones(n), columns]) if intercept else np.asarray(columns, float)
    return Sample(Z, np.zeros(n), np.ones(n) if weights is None else np.asarray(weights, float))


def mixed_columns(rng, n, d):
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.standard_normal(d)


@few
@given(st.integers(0, 2**32 - 1), st.integers(3, 8), st.booleans())
def test_gaussian_rows_become_white(seed, d, intercept):
    columns = mixed_columns(np.random.default_rng(seed), 4000, d)
    sample = sample_of(columns, intercept=intercept)
    white = whiten(sample, intercept=intercept).apply(sample.Z)
    np.testing.assert_allclose(white.T @ white / 4000, np.eye(d), atol=0.35)
    if intercept:
        np.testing.assert_allclose(white.mean(axis=0), 0, atol=0.2)


@few
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_the_way_back_is_exact(seed, intercept, degenerate):
    rng = np.random.default_rng(seed)
    columns = mixed_columns(rng, 60, 5)
    if degenerate:
        columns[:, 3] = columns[:, 0] - 2 * columns[:, 1]
        columns[:, 4] = rng.random(60) < 0.2
    sample = sample_of(columns, intercept=intercept)
    map_ = whiten(sample, intercept=intercept)
    assert map_.rank == 5 - degenerate
    white = map_.apply(sample.Z)
    design = np.column_stack([np.ones(60), white]) if intercept else white
    coef = rng.standard_normal((3, design.shape[1]))
    theta = map_.back(coef)
    assert theta.shape == (3, sample.Z.shape[1])
    size = np.abs(sample.Z) @ np.abs(theta).T + 1
    assert (np.abs(sample.Z @ theta.T - design @ coef.T) <= 1e-9 * size).all()
    np.testing.assert_allclose(map_.back(coef[0]), theta[0])


@pytest.mark.parametrize("intercept", [True, False])
def test_columns_that_say_nothing_new_are_dropped(intercept):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 2))
    rare = (np.arange(300) < 3).astype(float)
    columns = np.column_stack([x, x[:, 0], x @ [1.0, -1.0], np.zeros(300), rare, rare])
    sample = sample_of(columns, intercept=intercept)
    map_ = whiten(sample, intercept=intercept)
    assert map_.rank == 3
    assert np.isfinite(map_.apply(sample.Z)).all()
    assert np.abs(map_.transform).max() < 1e3


def test_nothing_varies():
    sample = sample_of(np.full((10, 2), 0.1), intercept=True)
    map_ = whiten(sample, intercept=True)
    assert map_.rank == 0
    np.testing.assert_array_equal(map_.back(np.array([2.0])), [2.0, 0.0, 0.0])


@few
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_weights_are_copies_and_zero_is_absent(seed, intercept):
    rng = np.random.default_rng(seed)
    columns = rng.standard_t(3, (80, 3))
    times = rng.integers(0, 4, 80)
    short = whiten(sample_of(columns, intercept=intercept, weights=times), intercept=intercept)
    long = whiten(
        sample_of(np.repeat(columns, times, axis=0), intercept=intercept), intercept=intercept
    )
    # The map is free up to a rotation: compare what it calls white.
    np.testing.assert_allclose(
        short.transform @ short.transform.T, long.transform @ long.transform.T, rtol=1e-7
    )
    np.testing.assert_allclose(short.center, long.center, atol=1e-10)


@few
@given(st.integers(0, 2**32 - 1), st.sampled_from([30.0, 1e4, 1e9]))
def test_far_rows_do_not_set_the_units(seed, far):
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((2000, 5))
    columns[:100] = far * rng.standard_normal(5) + rng.standard_normal((100, 5))
    sample = sample_of(columns, intercept=True)
    white = whiten(sample, intercept=True).apply(sample.Z)[100:]
    values = np.linalg.eigvalsh(np.cov(white.T))
    # Every far row counts as one at the edge of the bulk; plain whitening would leave 1e-2 here.
    assert values[0] > 0.3
    assert values[-1] < 3


@few
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.sampled_from([0.1, 0.5, 0.9]))
def test_a_weighted_quantile_is_a_quantile_of_copies(times, level):
    times = np.array([1, *times])
    values = np.cos(np.arange(times.size) * 1.7)
    copies = np.sort(np.repeat(values, times))
    place = int(np.ceil(level * copies.size * (1 - 1e-12))) - 1
    assert weighted_quantile(values, times.astype(float), level) == copies[place]


@few
@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_equal_weights_need_no_sort(numbers, level):
    values = np.array(numbers, dtype=float)
    place = int(np.ceil(level * values.size * (1 - 1e-12))) - 1
    equal = weighted_quantile(values, np.full(values.size, 0.3), level)
    assert equal == np.sort(values)[max(place, 0)]


@pytest.mark.parametrize("intercept", [False, True])
def test_wide_rows_are_whitened_in_their_own_space(intercept):
    """More columns than rows: the slow twin takes the covariance of the columns apart."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(12, 20)) * 10.0 ** rng.uniform(-3, 3, 20)
    if intercept:
        Z[:, 0] = 1.0
    weights = rng.uniform(0.5, 2.0, 12)
    wide = whiten(Sample(Z, np.zeros(12), weights), intercept=intercept)
    # Repeated, the rows say the same, and are more than the columns.
    often = whiten(
        Sample(np.tile(Z, (2, 1)), np.zeros(24), np.tile(weights, 2)), intercept=intercept
    )
    assert wide.rank == often.rank
    first, second = (one.apply(Z) for one in (wide, often))
    assert np.allclose(first @ first.T, second @ second.T, rtol=1e-6, atol=1e-9)


def test_wide_least_squares_is_the_same_by_rows_and_by_columns():
    rng = np.random.default_rng(3)
    design, y = rng.normal(size=(8, 15)), rng.normal(size=8)
    weights = np.append(0.0, rng.uniform(0.5, 2.0, 7))
    # The slow twin takes no products, which square what rounding does: the ridge as further rows.
    size = np.sum(weights[:, None] * design**2) / design.shape[1]
    ridge = np.sqrt(MODEL.gram_rounding * size) * np.eye(15)
    root = np.sqrt(weights)
    slow = np.linalg.lstsq(
        np.vstack([root[:, None] * design, ridge]), np.append(root * y, np.zeros(15))
    )[0]
    assert np.allclose(weighted_fit(design, y, weights), slow, atol=1e-9)
    often = weighted_fit(np.tile(design, (2, 1)), np.tile(y, 2), np.tile(weights / 2, 2))
    # Between the rows only the ridge holds the coefficients, so that rounding is divided by it.
    assert np.allclose(often, slow, atol=4 * np.finfo(float).eps / MODEL.gram_rounding)
    assert np.allclose((design @ often)[1:], y[1:], atol=1e-8)
