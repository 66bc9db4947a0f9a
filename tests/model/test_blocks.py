"""Reductions for all components together, beside plain loops; any chunking gives the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.model.blocks import FEW_PRODUCTS, Law, mixture_sums, nearest
from regimix.model.numbers import MODEL

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=15, deadline=None)
heavy = st.sampled_from([np.inf, 4.0])


# So few components are multiplied one by one, and so many all at once.
numbers = st.sampled_from([2, FEW_PRODUCTS + 1])


def table(seed, n=80, d=3, weighted=False, fit_intercept=True, degrees=np.inf, width=np.inf, m=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * [1.0, 50.0, 0.01][:d] + [0.0, 100.0, 1.0][:d]
    y = X @ rng.standard_normal(d) + rng.standard_normal(n)
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    problem = Problem.from_arrays(X, y, weights, fit_intercept=fit_intercept)
    law = Law(
        rng.standard_normal((m, problem.n_columns)),
        np.linspace(0.5, 1.5, m),
        np.linspace(0.5, 0.3, m) * 2 / m,
        float(np.log(0.05)),
        0.3,
        width,
        degrees,
    )
    return problem, law


def design(problem):
    """The standardised rows that the coefficients of a law belong to."""
    Z = (problem.X - problem.center) / problem.scale
    return np.column_stack([np.ones(len(Z)), Z]) if problem.fit_intercept else Z


def slow(problem, law):
    """Posterior shares (m, n) and residuals (m, n), one row at a time."""
    Z, y = design(problem), (problem.y - problem.target_center) / problem.target_scale
    share, residual = np.empty((2, len(law.scale), len(y)))
    gain = np.empty(len(y))
    for i in range(len(y)):
        residual[:, i] = y[i] - law.thetas @ Z[i]
        far = residual[:, i] / law.scale
        normal = np.isinf(law.degrees)
        heights = stats.norm.pdf(far) if normal else stats.t.pdf(far, law.degrees)
        heights = law.share * heights / law.scale
        rest = law.background_share * np.exp(law.log_background)
        if np.isfinite(law.width):
            distance = (y[i] - law.middle) / law.width
            rest *= stats.t.pdf(distance, 2) / stats.t.pdf(0, 2)
        share[:, i] = heights / (heights.sum() + rest)
        gain[i] = np.log(heights.sum() + rest)
    return Z, share, residual, gain


@few
@given(seeds, st.booleans(), st.booleans(), heavy, st.sampled_from([np.inf, 2.0]), numbers)
def test_sums_are_those_of_plain_loops(seed, weighted, fit_intercept, degrees, width, m):
    problem, law = table(
        seed, weighted=weighted, fit_intercept=fit_intercept, degrees=degrees, width=width, m=m
    )
    found = mixture_sums(MemoryEngine(problem), law)
    Z, share, residual, gain = slow(problem, law)
    weights = np.ones(len(gain)) if problem.weights is None else problem.weights
    assert found.log_gain == pytest.approx(float(gain @ weights), rel=1e-9)
    for j in range(m):
        counted = np.where(share[j] > MODEL.member, share[j], 0.0) * weights
        assert found.size[j] == pytest.approx(counted.sum())
        if np.isfinite(degrees):  # rows in the tails count less in the fit
            counted *= (degrees + 1) / (degrees + (residual[j] / law.scale[j]) ** 2)
        assert found.square[j] == pytest.approx(float(counted @ residual[j] ** 2))
        gram = (Z * counted[:, None]).T @ Z
        np.testing.assert_allclose(found.sums[j].gram, gram, rtol=1e-7, atol=1e-7)
        moment = Z.T @ (counted * residual[j])
        np.testing.assert_allclose(found.sums[j].moment, moment, rtol=1e-7, atol=1e-6)


@few
@given(seeds, st.integers(1, 40))
def test_any_chunking_gives_the_same(seed, size):
    problem, law = table(seed)
    engine = MemoryEngine(problem)
    whole, labels = mixture_sums(engine, law), nearest(engine, law)

    parts = MemoryEngine(problem, chunk_rows=size)
    assert sum(1 for _ in parts.chunks()) == -(-80 // size)
    again, relabelled = mixture_sums(parts, law), nearest(parts, law)
    assert again.log_gain == pytest.approx(whole.log_gain)
    np.testing.assert_allclose(again.size, whole.size)
    for one, other in zip(again.sums, whole.sums, strict=True):
        np.testing.assert_allclose(one.gram, other.gram, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(labels[0], relabelled[0])
    np.testing.assert_allclose(labels[1], relabelled[1])


@few
@given(seeds, heavy, st.sampled_from([np.inf, 2.0]), numbers)
def test_rows_go_to_their_likeliest_component(seed, degrees, width, m):
    problem, law = table(seed, degrees=degrees, width=width, m=m)
    labels, odds, chance = nearest(MemoryEngine(problem), law)
    _, share, _, _ = slow(problem, law)
    np.testing.assert_array_equal(labels, share.argmax(axis=0))
    background = 1 - share.sum(axis=0)
    best = share.max(axis=0)
    np.testing.assert_allclose(odds, np.log(best / background), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(chance, np.maximum(best, background), rtol=1e-9)
