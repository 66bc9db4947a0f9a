"""Definitions 1, 3 and 9 against the definitions spelt out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regimix import theory
from regimix.errors import DataError, ParameterError
from regimix.synth import make_mlrc
from tests.theory.affine import affine_by_definition, two_groups

seeds = st.integers(0, 2**32 - 1)


# --- separation (Definition 1) -----------------------------------------------------------------


def separation_by_definition(coef):
    """Return Q and Q_j, pair by pair."""
    m = len(coef)
    norms = [np.sqrt(sum(x * x for x in row)) for row in coef]
    apart = [[np.sqrt(sum((coef[i] - coef[j]) ** 2)) for j in range(m)] for i in range(m)]
    pairs = [apart[i][j] for i in range(m) for j in range(m) if i != j]
    local = [min(apart[j][l] for l in range(m) if l != j) / norms[j] for j in range(m)]  # noqa: E741
    return min(pairs) / max(norms), local


@given(seeds, st.integers(2, 6), st.integers(1, 5))
def test_separation_is_what_the_definition_says(seed, m, d):
    coef = np.random.default_rng(seed).standard_normal((m, d))
    q, local = separation_by_definition(coef)
    assert theory.separation(coef) == pytest.approx(q)
    assert theory.local_separation(coef) == pytest.approx(local)
    assert (theory.separation(coef) <= theory.local_separation(coef) * (1 + 1e-12)).all()


@given(seeds, st.floats(1e-3, 1e3))
def test_separation_ignores_units_and_rotations(seed, unit):
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal((3, 4))
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    assert theory.separation(unit * coef @ turn) == pytest.approx(theory.separation(coef))


def test_the_generator_agrees():
    truth = make_mlrc(100, 4, 3, separation=0.7, random_state=0).truth
    assert theory.separation(truth.coef) == pytest.approx(0.7)
    assert theory.local_separation(truth.coef) == pytest.approx(truth.local_separation)


def test_one_component_is_infinitely_apart_and_equal_ones_are_not():
    assert theory.separation([[1.0, 2.0]]) == np.inf
    assert theory.separation([[0.0]]) == np.inf
    assert theory.local_separation([[1.0, 2.0]]).tolist() == [np.inf]
    assert theory.separation([[1.0], [1.0]]) == 0.0
    assert theory.local_separation([[0.0], [1.0]]).tolist() == [np.inf, 1.0]
    assert theory.local_separation([[0.0], [0.0]]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("coef", [[1.0, 2.0], [[np.nan]], "text", np.empty((2, 0))])
def test_what_is_not_a_matrix_is_refused(coef):
    with pytest.raises(DataError, match="coef"):
        theory.separation(coef)


# --- affine error at given directions (Definition 3) -------------------------------------------


@given(seeds, st.integers(1, 4), st.integers(0, 50), st.floats(0.001, 3))
def test_given_directions_follow_the_definition(seed, d, slack, delta):
    own, other, rng = two_groups(seed, d)
    v1, v2 = delta * rng.standard_normal(d), rng.standard_normal(d)
    found = theory.affine_error_at(own, other, v1, v2, slack=slack)
    assert found == affine_by_definition(own, other, v1, v2, slack)


@given(seeds)
def test_one_direction_for_each_group_is_the_union_of_their_values(seed):
    own, other, rng = two_groups(seed, 3)
    groups, directions = [other[:25], other[25:]], rng.standard_normal((2, 3))
    v1 = 0.3 * rng.standard_normal(3)
    # The same values as one feature.
    values = np.concatenate([g @ v for g, v in zip(groups, directions, strict=True)])
    expected = affine_by_definition((own @ v1)[:, None], values[:, None], [1.0], [1.0], 5)
    assert theory.affine_error_at(own, groups, v1, directions, slack=5) == expected


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
    with pytest.raises(DataError, match="own_direction must be 2 numbers; got 'ab'"):
        theory.affine_error_at(own, other, "ab", [1.0, 0.0])
    with pytest.raises(DataError, match=r"must be 2 finite numbers; got shape \(3,\)"):
        theory.affine_error_at(own, other, [1.0, 0.0, 0.0], [1.0, 0.0])
    with pytest.raises(DataError, match="others has 3 column"):
        theory.affine_error_at(own, np.ones((5, 3)), [1.0, 0.0], [1.0, 0.0])


def test_equal_values_count_as_at_least():
    own, other = np.array([[3.0], [2.0], [1.0]]), np.array([[1.0], [2.0], [3.0]])
    assert theory.affine_error_at(own, other, [1.0], [1.0]) == 2
    assert theory.affine_error_at(own, other, [1.0], [1.0], slack=2) == 1
    assert theory.affine_error_at(own, other, [1.0], [2.0]) == 1


# --- subspaces (Definition 9) ------------------------------------------------------------------


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
