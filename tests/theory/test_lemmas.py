"""Lemmas 12 and 13 as properties, with the two cases that they miss as printed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

seeds = st.integers(0, 2**32 - 1)


def signs_of_the_proof(A, a, b):
    """Choose N as the proof of Lemma 12 does: the signs of Nb are those of Aa."""
    wanted = np.where(A @ a >= 0, 1.0, -1.0)
    return wanted * np.where(b >= 0, 1.0, -1.0)


def semidefinite(rng, n, rank):
    root = rng.standard_normal((n, rank))
    return root @ root.T


@given(seeds, st.integers(1, 8), st.integers(0, 8))
def test_lemma_12_larger_entries_can_be_signed_to_a_larger_form(seed, n, rank):
    # lem:support-3, with "at most" where the paper prints "less": A may be singular.
    rng = np.random.default_rng(seed)
    A = semidefinite(rng, n, min(rank, n))
    b = rng.standard_normal(n)
    a = b * rng.uniform(-1, 1, n)
    signed = signs_of_the_proof(A, a, b) * b
    assert a @ A @ a <= signed @ A @ signed + 1e-9 * np.abs(A).sum() * (b @ b)


@given(seeds, st.integers(1, 8))
def test_lemma_12_is_strict_where_the_matrix_is_definite(seed, n):
    rng = np.random.default_rng(seed)
    A = semidefinite(rng, n, n) + np.eye(n)
    b = rng.standard_normal(n) + np.where(rng.random(n) < 0.5, 1, -1)
    a = 0.9 * b * rng.uniform(-1, 1, n)
    signed = signs_of_the_proof(A, a, b) * b
    assert a @ A @ a < signed @ A @ signed


def test_lemma_12_as_printed_fails_for_a_singular_matrix():
    a, b = np.array([0.0, 0.5]), np.array([1.0, 1.0])
    A = np.zeros((2, 2))
    forms = [
        (np.array(s) * b) @ A @ (np.array(s) * b) for s in [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    ]
    assert not any(a @ A @ a < form for form in forms)


def sides_of_lemma_13(X, weights, order, signs):
    """Return both sides of ‖XᵀWPNX‖ ≤ max{‖XᵀWX‖, ‖XᵀNPᵀWPNX‖}."""
    W, P, N = np.diag(weights), np.eye(len(X))[order], np.diag(signs)
    left = np.linalg.norm(X.T @ W @ P @ N @ X, 2)
    right = max(np.linalg.norm(X.T @ W @ X, 2), np.linalg.norm(X.T @ N @ P.T @ W @ P @ N @ X, 2))
    return left, right


@given(seeds, st.integers(1, 8), st.integers(1, 4))
def test_lemma_13_permuted_rows_have_no_larger_norm(seed, n, d):
    # lem:support-2, for weights of 0 or more; the proof of Theorem 4 uses 0 and 1.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    weights = rng.choice([0.0, 1.0, 2.5], n)
    left, right = sides_of_lemma_13(X, weights, rng.permutation(n), rng.choice([-1.0, 1.0], n))
    assert left <= right * (1 + 1e-9)


def test_lemma_13_as_printed_fails_for_weights_of_both_signs():
    left, right = sides_of_lemma_13(np.ones((2, 1)), [1.0, -1.0], [1, 0], [1.0, -1.0])
    assert left == pytest.approx(2.0)
    assert right == pytest.approx(0.0)
