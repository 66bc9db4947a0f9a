"""Lemmas 12 and 13 as properties, with their ties and zeros, and variants that are nearly true."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

seeds = st.integers(0, 2**32 - 1)


def signs_of_the_proof(A, a, b):
    """Choose N as the proof of Lemma 12 does: the signs of Nb are those of Aa."""
    wanted = np.where(A @ a >= 0, 1.0, -1.0)
    return wanted * np.where(b >= 0, 1.0, -1.0)


def largest_form(A, b):
    """Return the largest bᵀNANb over all choices of signs."""
    signed = np.array(list(product([-1.0, 1.0], repeat=len(b)))) * b
    return float(np.einsum("si,ij,sj->s", signed, A, signed).max())


def semidefinite(rng, n, rank):
    root = rng.standard_normal((n, rank))
    return root @ root.T


@given(seeds, st.integers(1, 8), st.integers(0, 8), st.booleans())
def test_lemma_12_with_ties_is_at_most(seed, n, rank, ties):
    # lem:support-3 as the proof of Theorem 4 uses it: |a| ≤ |b|, entries may be equal or zero.
    rng = np.random.default_rng(seed)
    A = semidefinite(rng, n, min(rank, n))
    b = rng.standard_normal(n) * (rng.random(n) < 0.8)
    a = b * rng.choice([-1.0, 0.0, 1.0], n) if ties else b * rng.uniform(-1, 1, n)
    signed = signs_of_the_proof(A, a, b) * b
    assert a @ A @ a <= signed @ A @ signed + 1e-9 * np.abs(A).sum() * (b @ b)


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_lemma_12_is_strict_for_every_matrix_but_zero(seed, n, rank, in_null_space):
    # x ↦ xᵀAx is convex: its maximum over the box |x| ≤ |b| is at a corner, and at an inner point
    # only if it is constant, that is A = 0. Singular matrices are no exception.
    rng = np.random.default_rng(seed)
    A = semidefinite(rng, n, min(rank, n))
    b = rng.choice([-1.0, 1.0], n) * rng.uniform(0.5, 2.0, n)
    a = b * rng.uniform(-0.9, 0.9, n)
    if in_null_space:  # where the proof's choice of signs, those of Aa = 0, says nothing
        null = np.linalg.svd(A)[2][min(rank, n) :]
        assume(len(null))
        a = 0.4 * null[0] / np.abs(null[0] / b).max()
    assert a @ A @ a < largest_form(A, b) * (1 - 1e-6)


def test_the_signs_of_the_proof_of_lemma_12_are_not_always_strict():
    A, a, b = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.zeros(2), np.ones(2)
    signed = signs_of_the_proof(A, a, b) * b
    assert signed @ A @ signed == 0.0  # Aa = 0, and "at most" is all that these signs give
    assert largest_form(A, b) == 4.0  # other signs are strict


def test_lemma_12_needs_all_entries_to_be_smaller():
    # One tie, and where A sees nothing else, strictness is gone.
    A, a, b = np.diag([1.0, 0.0]), np.array([1.0, 0.0]), np.array([1.0, 5.0])
    assert a @ A @ a == largest_form(A, b)


def sides_of_lemma_13(X, weights, order, signs):
    """Return the three norms of ‖XᵀWPNX‖ ≤ max{‖XᵀWX‖, ‖XᵀNPᵀWPNX‖}."""
    W, P, N = np.diag(weights), np.eye(len(X))[order], np.diag(signs)
    middle = W @ P @ N
    return [np.linalg.norm(X.T @ M @ X, 2) for M in (middle, W, N @ P.T @ middle)]


def drawn_for_lemma_13(seed, n, d):
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_normal((n, d)), rng.choice([0.0, 1.0], n)
    return sides_of_lemma_13(X, weights, rng.permutation(n), rng.choice([-1.0, 1.0], n))


@given(seeds, st.integers(1, 8), st.integers(1, 4))
def test_lemma_13_permuted_rows_have_no_larger_norm(seed, n, d):
    # lem:support-2 for W of zeros and ones, as in the paper. The geometric mean would do.
    left, plain, permuted = drawn_for_lemma_13(seed, n, d)
    assert left <= np.sqrt(plain * permuted) * (1 + 1e-9) + 1e-12
    assert left <= max(plain, permuted) * (1 + 1e-9)


def test_lemma_13_with_the_smaller_norm_would_be_wrong():
    broken = 0
    for seed in range(100):
        left, plain, permuted = drawn_for_lemma_13(seed, 6, 2)
        broken += left > min(plain, permuted) * (1 + 1e-9)
    assert broken > 10


def test_lemma_13_for_any_diagonal_matrix_would_be_wrong():
    # Its hypothesis that W has no negative entries is not printed, and always true in the paper.
    left, *right = sides_of_lemma_13(np.ones((2, 1)), [1.0, -1.0], [1, 0], [1.0, -1.0])
    assert left == pytest.approx(2.0)
    assert right == pytest.approx([0.0, 0.0])
