"""Directions: cells cover the sphere, and a maximum over them is certified."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix.theory import directions
from regimix.theory.directions import FourthMoments

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("d", range(1, 7))
@pytest.mark.parametrize("splits", [0, 1])
def test_every_direction_is_within_the_chord_of_a_cell(d, splits):
    cells = directions.cover(d, 300)
    for _ in range(splits):
        cells = cells.split()
    assert np.linalg.norm(cells.directions(), axis=1) == pytest.approx(1.0)
    some = np.random.default_rng(d).standard_normal((200, d))
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    cosine = np.abs(some @ cells.directions().T)
    distance = np.sqrt(np.maximum(2 - 2 * cosine, 0.0))
    assert (distance <= cells.chords() + 1e-7).any(axis=1).all()


@settings(max_examples=40)
@given(seeds, st.integers(1, 5))
def test_the_largest_eigenvalue_is_found_and_not_exceeded(seed, d):
    root = np.random.default_rng(seed).standard_normal((8, d))
    slope = np.linalg.norm(root, 2)

    def evaluate(directions, chords):
        lengths = np.linalg.norm(directions @ root.T, axis=1)
        return lengths, lengths + chords * slope

    found = directions.maximise(evaluate, d, tolerance=0.01 * slope, most=3000)
    assert found.value == pytest.approx(np.linalg.norm(root @ found.direction))
    assert found.value <= slope * (1 + 1e-9)
    assert found.ceiling >= slope * (1 - 1e-9)
    if d <= 2:  # beyond, the budget may end first
        assert found.ceiling <= found.value + 0.0101 * slope


@given(seeds, st.sampled_from([2, 20, 60, 200]))
def test_a_small_budget_still_gives_a_ceiling(seed, most):
    root = np.random.default_rng(seed).standard_normal((4, 4))
    slope = np.linalg.norm(root, 2)

    def evaluate(directions, chords):
        lengths = np.linalg.norm(directions @ root.T, axis=1)
        return lengths, lengths + slope * chords

    found = directions.maximise(evaluate, 4, tolerance=1e-9, most=most)
    assert found.value <= slope * (1 + 1e-9)
    assert slope <= found.ceiling * (1 + 1e-9)


@settings(max_examples=40)
@given(seeds, st.integers(1, 5), st.sampled_from([1.0, 0.2, 5.0]))
def test_fourth_moments_bound_every_direction(seed, d, tail):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, d)) * np.exp(tail * rng.standard_normal((30, 1)))
    moments = FourthMoments(X)
    directions = np.vstack([rng.standard_normal((50, d)), X, np.eye(d)])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    squares = np.sort((directions @ X.T) ** 2, axis=1)
    for k in (1, 7, 20, 30):
        assert moments.largest_sum(k) >= squares[:, -k:].sum(axis=1).max() * (1 - 1e-9)
        assert moments.smallest_sum(k) <= squares[:, :k].sum(axis=1).min() * (1 + 1e-9)


def test_fourth_moments_are_sharp_for_normal_rows():
    X = np.random.default_rng(0).standard_normal((40_000, 6))
    # The fourth moment of a normal number is 3, along every direction; the trivial bound on the
    # form is d + 2.
    assert 3.0 <= FourthMoments(X).spread(0.0) / len(X) <= 3.3
