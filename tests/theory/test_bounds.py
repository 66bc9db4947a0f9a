"""Bounds: Lemma 5 against its limit, shapes, nets and numbers of starts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.constants import regularity_limit
from regimix import theory
from regimix.errors import ParameterError
from regimix.search.net import lay_net


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_the_upper_bound_of_lemma_5_holds_without_its_constant_and_is_loose(share):
    shape = theory.regularity_shape(share, 0.0)[0]
    assert 5 * regularity_limit(share)[0] < shape
    assert theory.regularity_shape(share, 1.0)[0] == pytest.approx(shape + 1 / share)
    wide = theory.regularity_shape(share, 1.0, 2.0, covariance_bound=3.0)
    assert wide == pytest.approx((3 * (shape + 1 / share), 2 * share))


def test_rows_asked_for():
    assert theory.regularity_rows(10, 0.1) == pytest.approx(10 * math.log(10) / 0.1)
    assert theory.regularity_rows(10, 0.1, covariance_bound=2.0) == pytest.approx(
        10 * math.log(20) / 0.1
    )
    assert theory.required_rows(1, 0.5) == 2.0
    assert theory.required_rows(2, 0.5) == 4.0  # log log 2 is negative
    assert theory.required_rows(100, 0.25) == pytest.approx(400 * math.log(math.log(100)))


def test_the_local_region_shrinks_with_the_covariance_bound():
    coef = [[1.0, 0.0], [0.0, 1.0], [4.0, 0.0]]
    assert theory.local_radius(coef, 0) == pytest.approx(math.sqrt(2) / 2)
    narrow = theory.local_radius(coef, 0, constant=1.0, keep=0.2, covariance_bound=4.0)
    assert narrow == pytest.approx(math.sqrt(2) * 0.05)
    assert theory.local_radius(coef, 2, constant=1.0) == pytest.approx(3.0)
    with pytest.raises(ParameterError, match="covariance_bound must be a finite number"):
        theory.local_radius(coef, 0, covariance_bound=0.5)


@pytest.mark.parametrize("share", [0.0, 1.2, np.nan, "half"])
def test_shares_are_fractions(share):
    with pytest.raises(ParameterError, match="share"):
        theory.regularity_rows(3, share)


def test_the_shapes_of_lemma_6_and_theorem_7():
    assert theory.affine_shape(1e-3, 300) == pytest.approx(math.log(300))
    assert theory.affine_shape(0.1, 300, 2.0) == pytest.approx(60)
    assert theory.affine_shape(1e-3, 300, n_features=20) == pytest.approx(
        20 * math.log(15 * math.e)
    )
    assert theory.affine_shape(0.5, 300, n_features=20) == pytest.approx(150)
    assert theory.contraction_shape(0.1, 1000, keep=0.5, n_corrupted=50) == pytest.approx(0.3)


# --- nets and starts (Theorem 11) --------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("granularity", [0.2, 0.5])
def test_points_that_are_apart_are_no_more_than_the_bound(dimensions, granularity):
    # A set of points that keep the granularity from each other and cannot grow is a net.
    fine = lay_net(dimensions, 1.0, granularity / 3)
    left = fine.points(np.arange(fine.size))
    chosen = 0
    while len(left):
        chosen += 1
        left = left[np.linalg.norm(left - left[0], axis=1) > granularity]
    assert chosen <= theory.net_size_bound(dimensions, 1.0, granularity)


def test_net_sizes():
    assert theory.net_size_bound(3, 2.0, 0.5) == pytest.approx(12.0**3)
    assert theory.net_size_bound(3, 2.0, 2.0) == 1.0
    assert theory.net_size_bound(10_000, 1.0, 0.1) == np.inf


def test_the_starts_of_theorem_11_are_the_net_of_its_basin():
    coef = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    granularity = theory.basin_granularity(coef, keep=0.4, constant=0.5)
    assert granularity == pytest.approx(0.5 * 0.4 * np.sqrt(5) / 2)
    starts = theory.start_count(coef, keep=0.4, constant=0.5)
    assert starts == pytest.approx(theory.net_size_bound(2, 2.0, granularity))
    assert theory.start_count(coef, keep=0.4, dimensions=3) == pytest.approx(
        (6 / (0.4 * np.sqrt(5) / 2)) ** 3
    )
    assert theory.start_count([[1.0], [1.0]], keep=0.4) == np.inf
    assert theory.start_count([[1.0]], keep=0.4) == 1.0


@given(st.floats(0.001, 0.999), st.floats(0.01, 0.999))
def test_as_many_starts_as_needed_and_not_one_more(success, confidence):
    starts = theory.starts_for_confidence(success, confidence)
    assert 1 - (1 - success) ** starts >= confidence - 1e-6
    if starts > 1:
        assert 1 - (1 - success) ** (starts - 1) < confidence + 1e-6


def test_certain_and_hopeless_starts():
    assert theory.starts_for_confidence(1.0) == 1.0
    assert theory.starts_for_confidence(0.0) == np.inf
    with pytest.raises(ParameterError, match=r"success=1\.5"):
        theory.starts_for_confidence(1.5)
