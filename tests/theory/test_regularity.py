"""Feature regularity (Definition 2): enumeration, bounds that contain it, and Gaussian limits."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.constants import regularity_limit
from regimix import theory
from regimix.errors import ParameterError
from regimix.theory import regularity

seeds = st.integers(0, 2**32 - 1)


def by_definition(X, k):
    """Return ψ+(k) and ψ−(k), subset by subset."""
    values = [np.linalg.eigvalsh(X[list(s)].T @ X[list(s)]) for s in combinations(range(len(X)), k)]
    return max(v[-1] for v in values), min(v[0] for v in values)


def rows_of_many_kinds(seed, n, d):
    """Draw rows: normal, heavy-tailed, of unequal columns, repeated, or partly zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    kind = seed % 5
    if kind == 1:
        X *= np.exp(1.5 * rng.standard_normal((n, 1)))
    elif kind == 2:
        X *= np.geomspace(0.1, 10, d)
    elif kind == 3:
        X[n // 2 :] = X[: n - n // 2]
    elif kind == 4:
        X[:3] = 0.0
    return X


@given(seeds, st.integers(1, 3), st.integers(1, 8))
def test_enumeration_is_what_the_definition_says(seed, d, k):
    X = rows_of_many_kinds(seed, 8, d)
    found = theory.exact_feature_regularity(X, k)
    plus, minus = by_definition(X, k)
    assert found.plus.lower == found.plus.upper == pytest.approx(plus)
    assert found.minus.lower == found.minus.upper == pytest.approx(minus, abs=1e-9 * plus)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
@settings(max_examples=25)
@given(seed=seeds, k=st.integers(1, 10))
def test_bounds_contain_the_exact_value(d, seed, k):
    X = rows_of_many_kinds(seed, 10, d)
    few, regularity.FEW_SUBSETS = regularity.FEW_SUBSETS, 0  # do not enumerate
    try:
        bounds = theory.feature_regularity(X, k, most_directions=500)
    finally:
        regularity.FEW_SUBSETS = few
    exact = theory.exact_feature_regularity(X, k)
    tiny = 1e-9 * exact.plus.upper
    assert bounds.plus.lower - tiny <= exact.plus.lower <= bounds.plus.upper + tiny
    assert bounds.minus.lower - tiny <= exact.minus.lower <= bounds.minus.upper + tiny


def test_too_many_subsets_are_refused_with_their_number():
    with pytest.raises(ParameterError, match=r"30 rows have 1\.55e\+08 subsets of 15"):
        theory.exact_feature_regularity(np.ones((30, 1)), 15)


def test_the_ends_are_exact():
    X = np.random.default_rng(0).standard_normal((40, 3))
    values = np.linalg.eigvalsh(X.T @ X)
    every = theory.feature_regularity(X, 40)
    assert (every.plus.lower, every.plus.upper) == pytest.approx((values[-1], values[-1]))
    assert (every.minus.lower, every.minus.upper) == pytest.approx((values[0], values[0]))
    none = theory.feature_regularity(X, 0)
    assert none.plus.upper == none.minus.upper == 0.0
    assert theory.exact_feature_regularity(X, 0) == none
    assert theory.feature_regularity(X, 2).minus.upper == 0.0  # two rows span two directions


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_spread_alike_in_all_directions(seed):
    """Asked for one of many equal eigenvalues, LAPACK may return none."""
    rng = np.random.default_rng(seed)
    for d in range(20, 40):
        noise = 10.0 ** rng.uniform(-16, -6, 10)
        for size in noise:
            X = np.sqrt(150) * np.eye(d) + size * rng.standard_normal((d, d))
            found = theory.Regularity(X).attained_plus(d)
            assert found == pytest.approx(150, rel=1e-3)


def test_one_feature_needs_no_search():
    x = np.random.default_rng(1).standard_normal(300)
    squares = np.sort(x**2)
    found = theory.feature_regularity(x[:, None], 90)
    assert found.plus.lower == pytest.approx(squares[-90:].sum())
    assert found.plus.upper == pytest.approx(squares[-90:].sum())
    assert found.minus.lower == pytest.approx(squares[:90].sum())
    assert found.minus.upper == pytest.approx(squares[:90].sum())


@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_tight_for_two_features(seed):
    X = np.random.default_rng(seed).standard_normal((150, 2))
    for k in (15, 50, 100):
        found = theory.feature_regularity(X, k)
        assert found.plus.upper <= 1.01 * found.plus.lower
        assert found.minus.lower >= 0.8 * found.minus.upper


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_many_normal_rows_approach_the_limit(share):
    X = np.random.default_rng(2).standard_normal((12_000, 2))
    found = theory.feature_regularity(X, int(share * len(X)), most_directions=300)
    plus, minus = regularity_limit(share)
    k = int(share * len(X))
    # The extreme over directions lies beyond the limit of one, and not far.
    assert plus * 0.99 <= found.plus.lower / k <= found.plus.upper / k <= 1.1 * plus
    assert 0.7 * minus <= found.minus.upper / k <= 1.02 * minus


def test_many_features_keep_a_certificate_from_above():
    X = np.random.default_rng(3).standard_normal((2000, 12))
    found = theory.feature_regularity(X, 200)
    lengths = np.sort((X**2).sum(axis=1))[::-1]
    assert found.plus.lower < found.plus.upper < 0.4 * lengths[:200].sum()
    assert found.plus.upper <= 1.5 * found.plus.lower
    nearly_all = theory.feature_regularity(X, 1900)
    assert 0 < nearly_all.minus.lower <= nearly_all.minus.upper


@pytest.mark.parametrize("missing", [1, 2, 5])
def test_rows_along_axes_show_discs_and_complements_to_be_sharp(missing):
    # Ten rows along each of seven axes: without some of them one axis has so many less, and few
    # rows have most along one axis. Seven features are too many for cells.
    X = np.repeat(np.eye(7), 10, axis=0)
    most = theory.feature_regularity(X, 70 - missing)
    assert most.minus.lower == pytest.approx(10 - missing)
    assert most.minus.upper == pytest.approx(10 - missing)
    few = theory.feature_regularity(X, missing + 3)
    assert few.plus.lower == pytest.approx(missing + 3)
    assert few.plus.upper == pytest.approx(missing + 3)


def test_one_object_serves_many_sizes():
    X = np.random.default_rng(4).standard_normal((60, 2))
    shared = theory.Regularity(X)
    sizes = (5, 20, 40)
    assert [shared(k) for k in sizes] == [theory.feature_regularity(X, k) for k in sizes]
    assert shared.attained_plus(20) <= shared.plus(20).lower * (1 + 1e-9)
    assert shared.attained_minus(20) >= shared.minus(20).upper * (1 - 1e-9)


@pytest.mark.parametrize("k", [-1, 11, 2.5, True])
def test_sizes_must_fit_the_rows(k):
    with pytest.raises(ParameterError, match="k must be a whole number from 0 to 10"):
        theory.feature_regularity(np.ones((10, 1)), k)


def test_an_interval_knows_what_it_holds():
    interval = theory.Interval(1.0, 2.0)
    assert 1.5 in interval
    assert 2.5 not in interval
    assert not interval.exact
    assert str(interval) == "1 to 2"
    assert str(theory.Interval(3.0, 3.0)) == "3"
