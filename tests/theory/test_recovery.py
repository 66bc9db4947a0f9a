"""Subspaces, nets and starts (Definition 9, Theorem 11)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regimix import theory
from regimix.errors import DataError, ParameterError
from regimix.search.net import lay_net

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 3), st.integers(1, 3))
def test_no_unit_vector_of_the_span_is_further_from_the_subspace(seed, m, r):
    rng = np.random.default_rng(seed)
    coef, basis = rng.standard_normal((m, 5)), rng.standard_normal((5, r))
    found = theory.subspace_distance(basis, coef)
    points = rng.standard_normal((300, m)) @ coef
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    inside = basis @ np.linalg.lstsq(basis, points.T, rcond=None)[0]
    distances = np.linalg.norm(points.T - inside, axis=0)
    assert distances.max() <= found + 1e-9
    if m == 1:
        assert distances.max() == pytest.approx(found)


def test_the_ends_and_a_known_angle():
    basis = np.eye(3)[:, :2]
    assert theory.subspace_distance(basis, [[1.0, 2.0, 0.0]]) == pytest.approx(0.0, abs=1e-12)
    assert theory.subspace_distance(basis, [[0.0, 0.0, 5.0]]) == pytest.approx(1.0)
    assert theory.subspace_distance(basis, [[3.0, 0.0, 4.0]]) == pytest.approx(0.8)
    assert theory.subspace_distance(basis, [[0.0, 0.0, 0.0]]) == 0.0
    with pytest.raises(DataError, match="coef has 2 column"):
        theory.subspace_distance(basis, [[1.0, 2.0]])


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
