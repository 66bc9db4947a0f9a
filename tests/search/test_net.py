"""The net covers, its size is known, its random order is a permutation, and it can be refused."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import ParameterError
from regimix.search.net import lay_net, net_source, shuffled
from regimix.synth import make_mlrc

few = settings(max_examples=40, deadline=None)
EDGE = 1 + 1e-9


def adversarial(net):
    """Points that a net of cubes covers worst: corners of cubes, points of the surface."""
    half = net.spacing / 2
    steps = np.arange(1, 2 * int(net.radius / net.spacing) + 3, 2) * half
    corners = np.array(list(itertools.product(steps[:6], repeat=net.dimensions)))
    corners = corners[np.linalg.norm(corners, axis=1) <= net.radius]
    axes = net.radius * np.vstack([np.eye(net.dimensions), -np.eye(net.dimensions)])
    diagonal = np.full((1, net.dimensions), net.radius / np.sqrt(net.dimensions))
    return np.vstack([axes, diagonal, -diagonal, corners])


def random_points(net, rng, count=300):
    points = rng.standard_normal((count, net.dimensions))
    points *= net.radius / np.linalg.norm(points, axis=1, keepdims=True)
    return points * rng.random((count, 1)) ** (1 / net.dimensions)


@few
@given(st.integers(1, 4), st.floats(0.05, 20.0), st.floats(0.3, 1.6), st.integers(0, 2**32 - 1))
def test_every_point_is_within_the_granularity(dimensions, radius, share, seed):
    net = lay_net(dimensions, radius, share * radius)
    points = net.points(np.arange(net.size))
    asked = np.vstack([random_points(net, np.random.default_rng(seed)), adversarial(net)])
    distances, _ = cKDTree(points).query(asked)
    assert distances.max() <= net.granularity * EDGE
    assert (np.linalg.norm(points, axis=1) <= radius * EDGE).all()


@few
@given(st.integers(1, 4), st.floats(0.3, 0.99))
def test_the_size_is_that_of_a_plain_enumeration(dimensions, share):
    net = lay_net(dimensions, 1.0, share)
    reach = int(1 / net.spacing) + 1
    cubes = np.array(list(itertools.product(range(-reach, reach + 1), repeat=dimensions)))
    near = np.linalg.norm(np.maximum(np.abs(cubes) - 0.5, 0), axis=1) * net.spacing
    assert net.size == np.count_nonzero(near <= 1 + 1e-9)
    points = net.points(np.arange(net.size))
    assert len(np.unique(points.round(9), axis=0)) == net.size


def test_one_point_covers_what_is_small():
    net = lay_net(7, 1.0, 1.0)
    assert net.size == 1
    np.testing.assert_array_equal(net.points(np.array([0])), np.zeros((1, 7)))


@few
@given(st.integers(1, 3000), st.integers(0, 2**40))
def test_the_random_order_is_a_permutation(size, seed):
    order = shuffled(np.arange(size), size, seed)
    assert sorted(order.tolist()) == list(range(size))


def test_the_random_order_is_random():
    orders = np.stack([shuffled(np.arange(50), 50, seed) for seed in range(400)])
    counts = np.stack([np.bincount(orders[:, place], minlength=50) for place in (0, 1, 49)])
    assert counts.max() < 30  # 8 expected each
    assert len({tuple(order) for order in orders.tolist()}) == 400


def test_draws_are_lazy_and_without_replacement():
    net = lay_net(3, 1.0, 0.4)
    whole = net.draw(5, 0, 10**9)
    assert len(np.unique(whole.round(9), axis=0)) == len(whole) == net.size
    pieces = [net.draw(5, first, 7) for first in range(0, net.size, 7)]
    np.testing.assert_array_equal(np.vstack(pieces), whole)
    assert len(net.draw(5, net.size, 7)) == 0


def test_memory_does_not_grow_with_the_net():
    tracemalloc.start()
    net = lay_net(8, 1.0, 0.3)
    net.draw(0, 0, 64)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert net.size > 5_000_000
    assert peak < 2_000_000


def test_points_outside_are_refused():
    net = lay_net(2, 1.0, 0.5)
    for index in (-1, net.size):
        with pytest.raises(IndexError, match="points 0 to"):
            net.points(np.array([index]))


@pytest.mark.parametrize(
    ("dimensions", "share"), [(1, 1e-9), (2, 1e-8), (10, 0.2), (8, 0.25), (300, 0.9)]
)
def test_too_large_a_net_is_refused_with_numbers_and_a_remedy(dimensions, share):
    with pytest.raises(
        ParameterError, match=r"at least .* points, more than can be walked"
    ) as info:
        lay_net(dimensions, 2.0, 2.0 * share)
    remedy = float(str(info.value).split("A granularity of ")[1].split(" ")[0])
    assert lay_net(dimensions, 2.0, remedy).size <= 10_000_000
    with pytest.raises(ParameterError):
        lay_net(dimensions, 2.0, 0.9 * remedy if dimensions < 20 else 1.9)


@pytest.mark.parametrize("wrong", [(0, 1.0, 0.5), (2, 0.0, 0.5), (2, 1.0, 0.0), (2, np.inf, 1.0)])
def test_nonsense_is_refused(wrong):
    with pytest.raises(ParameterError, match="positive finite radius"):
        lay_net(*wrong)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_lifted_points_lie_in_the_subspace_and_cover_the_components(fit_intercept):
    X, y, truth = make_mlrc(6000, 6, 2, norms=[1.0, 0.7], corruption=0.05, random_state=3)
    problem = Problem.from_arrays(100 * X, 1000 * y, fit_intercept=fit_intercept)
    source = net_source(MemoryEngine(problem), 2)
    starts = source.draw(0, 0, source.size)
    assert starts.thetas.shape == (source.size, 6 + fit_intercept)
    assert set(starts.source) == {"net"}
    coef, _ = problem.to_user(starts.thetas)
    nearest = [np.linalg.norm(coef / 10 - true, axis=1).min() for true in truth.coef]
    # The granularity is half the radius, about half the largest norm; and the subspace is near.
    assert max(nearest) < 0.8
    assert 0.7 < source.net.radius * problem.target_scale / 1000 < 1.6


def test_a_constant_table_has_a_net_too():
    problem = Problem.from_arrays(np.ones((20, 2)), np.arange(20.0))
    source = net_source(MemoryEngine(problem), 2)
    assert np.isfinite(source.draw(0, 0, 4).thetas).all()
