"""Affine error (Definition 3): the definition spelt out, searches, certificates, and the floor."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix import theory
from regimix.errors import DataError, ParameterError
from regimix.theory.envelopes import envelope

seeds = st.integers(0, 2**32 - 1)


def by_definition(own, other, v1, v2, slack):
    """Return the largest V of the definition, V by V."""
    falling = sorted(np.abs(own @ v1), reverse=True)
    rising = sorted(np.abs(other @ v2))
    largest = 0
    for v in range(1, len(rising) + 1):
        if v + slack <= len(falling) and falling[v + slack - 1] >= rising[v - 1]:
            largest = v
    return largest


def two_groups(seed, d, n_own=40, n_other=60):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_own, d)), rng.standard_normal((n_other, d)), rng


@given(seeds, st.integers(1, 4), st.integers(0, 50), st.floats(0.001, 3))
def test_given_directions_follow_the_definition(seed, d, slack, delta):
    own, other, rng = two_groups(seed, d)
    v1, v2 = delta * rng.standard_normal(d), rng.standard_normal(d)
    found = theory.affine_error_at(own, other, v1, v2, slack=slack)
    assert found == by_definition(own, other, v1, v2, slack)


@given(seeds)
def test_one_direction_for_each_group_is_the_union_of_their_values(seed):
    own, other, rng = two_groups(seed, 3)
    groups, directions = [other[:25], other[25:]], rng.standard_normal((2, 3))
    v1 = 0.3 * rng.standard_normal(3)
    # The same values as one feature.
    values = np.concatenate([g @ v for g, v in zip(groups, directions, strict=True)])
    expected = by_definition((own @ v1)[:, None], values[:, None], [1.0], [1.0], 5)
    assert theory.affine_error_at(own, groups, v1, directions, slack=5) == expected


@pytest.mark.parametrize("d", [1, 2, 3, 8])
@settings(max_examples=8)
@given(seed=seeds)
def test_the_search_is_attained_and_never_exceeded(d, seed):
    own, other, rng = two_groups(seed, d)
    for others in (other, [other[:20], other[20:]]):
        curve = theory.affine_curve(own, others, slack=4, most_directions=200)
        for delta in (0.01, 0.2, 1.0):
            found = curve(delta)
            assert np.linalg.norm(found.own_direction) == pytest.approx(delta)
            directions = found.other_directions
            given_ = directions[0] if isinstance(others, np.ndarray) else directions
            attained = theory.affine_error_at(own, others, found.own_direction, given_, slack=4)
            assert attained >= found.lower
            assert attained <= found.upper
            for _ in range(20):
                v1 = rng.standard_normal(d)
                v1 *= delta / np.linalg.norm(v1)
                v2 = rng.standard_normal(directions.shape)
                v2 /= np.linalg.norm(v2, axis=1, keepdims=True)
                some = v2[0] if isinstance(others, np.ndarray) else v2
                assert theory.affine_error_at(own, others, v1, some, slack=4) <= found.upper


@pytest.mark.parametrize("seed", range(4))
def test_all_directions_of_the_plane(seed):
    own, other, _ = two_groups(seed, 2)
    angles = np.linspace(0, np.pi, 3000, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    falling = np.sort(np.abs(own @ circle.T), axis=0)[::-1].max(axis=1)
    rising = np.sort(np.abs(other @ circle.T), axis=0).min(axis=1)
    curve = theory.affine_curve(own, other)
    for delta in (0.05, 0.3, 1.0):
        brute = int(np.count_nonzero(delta * falling[:40] >= rising[:40]))
        assert curve(delta).lower - 1 <= brute <= curve(delta).upper
        assert curve(delta).upper - curve(delta).lower <= 2


@pytest.mark.parametrize("largest", [True, False])
@settings(max_examples=20)
@given(seed=seeds, most=st.sampled_from([2, 8, 40]))
def test_no_direction_of_the_plane_goes_beyond_an_envelope(largest, seed, most):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((15, 2)) * np.exp(rng.standard_normal((15, 1)))
    angles = np.linspace(0, np.pi, 2000, endpoint=False)
    values = np.sort(np.abs(rows @ [np.cos(angles), np.sin(angles)]), axis=0)
    found = envelope(rows, most, rng, largest=largest)
    if largest:
        beyond, attained = found.certain - values[::-1].max(axis=1), found.found
        assert (attained <= found.certain).all()
    else:
        beyond, attained = values.min(axis=1) - found.certain, found.found
        assert (attained >= found.certain).all()
    assert (beyond >= -1e-12).all()


@pytest.mark.parametrize("seed", range(3))
def test_one_feature_is_exact(seed):
    own, other, _ = two_groups(seed, 1)
    curve = theory.affine_curve(own, other, slack=3)
    for delta in (0.01, 0.1, 0.5, 1.0):
        exact = by_definition(own, other, [delta], [1.0], 3)
        assert (curve(delta).lower, curve(delta).upper) == (exact, exact)


@pytest.mark.parametrize("d", [2, 5, 12, 30])
def test_the_floor_is_the_number_of_features_not_the_logarithm_of_rows(d):
    # Lemma 6 as printed says c log n for every direction: some direction is orthogonal to d - 1.
    own, other, _ = two_groups(d, d, 100, 200)
    tiny = theory.affine_curve(own, other, slack=10, most_directions=50)(1e-9)
    assert tiny.lower == d - 1
    several = theory.affine_curve(own, [other[:100], other[100:]], slack=10, most_directions=50)
    assert several(1e-9).lower == 2 * (d - 1)


@given(seeds)
@settings(max_examples=10)
def test_a_larger_ratio_lets_more_rows_in(seed):
    own, other, _ = two_groups(seed, 3)
    curve = theory.affine_curve(own, other, most_directions=100)
    found = [curve(delta) for delta in (0.01, 0.1, 0.3, 1.0)]
    assert [f.lower for f in found] == sorted(f.lower for f in found)
    assert [f.upper for f in found] == sorted(f.upper for f in found)


@pytest.mark.parametrize("seed", range(3))
def test_along_one_direction_the_error_is_linear_in_the_ratio(seed):
    # Lemma 6 for fixed directions: V grows like Δn.
    own, other, rng = two_groups(seed, 5, 20_000, 20_000)
    v1, v2 = (v / np.linalg.norm(v) for v in rng.standard_normal((2, 5)))
    counts = [
        theory.affine_error_at(own, other, delta * v1, v2, slack=2000)
        for delta in (0.02, 0.04, 0.08)
    ]
    assert counts[1] / counts[0] == pytest.approx(2, rel=0.15)
    assert counts[2] / counts[1] == pytest.approx(2, rel=0.15)


def test_slack_is_what_keep_leaves_of_the_own_rows():
    assert theory.own_slack(40, 100, 0.3) == 10
    assert theory.own_slack(40, 100, 0.295) == 11  # the ceiling of 10.5
    assert theory.own_slack(29, 100, 0.29) == 0
    with pytest.raises(ParameterError, match="keeps 50, but the component has only 40"):
        theory.own_slack(40, 100, 0.5)


def test_directions_and_groups_must_match():
    own, other, _ = two_groups(0, 2)
    with pytest.raises(DataError, match="1 direction"):
        theory.affine_error_at(own, [other, other], [1.0, 0.0], [1.0, 0.0])
    with pytest.raises(DataError, match="others has 3 column"):
        theory.affine_error_at(own, np.ones((5, 3)), [1.0, 0.0], [1.0, 0.0])
    with pytest.raises(ParameterError, match="delta"):
        theory.affine_curve(own, other, most_directions=10)(0.0)


def test_equal_values_count_as_at_least():
    own, other = np.array([[3.0], [2.0], [1.0]]), np.array([[1.0], [2.0], [3.0]])
    assert theory.affine_error_at(own, other, [1.0], [1.0]) == 2
    assert theory.affine_error_at(own, other, [1.0], [1.0], slack=2) == 1
    assert theory.affine_error_at(own, other, [1.0], [2.0]) == 1
