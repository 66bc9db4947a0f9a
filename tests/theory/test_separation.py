"""Separation (Definition 1) against the definition spelt out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regimix import theory
from regimix.errors import DataError
from regimix.synth import make_mlrc

seeds = st.integers(0, 2**32 - 1)


def by_definition(coef):
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
    q, local = by_definition(coef)
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
    assert theory.local_separation([[1.0, 2.0]]).tolist() == [np.inf]
    assert theory.separation([[1.0], [1.0]]) == 0.0
    assert theory.local_separation([[0.0], [1.0]]).tolist() == [np.inf, 1.0]
    assert theory.local_separation([[0.0], [0.0]]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("coef", [[1.0, 2.0], [[np.nan]], "text", np.empty((2, 0))])
def test_what_is_not_a_matrix_is_refused(coef):
    with pytest.raises(DataError, match="coef"):
        theory.separation(coef)
