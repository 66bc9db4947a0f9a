"""A mixture with a background on rows in memory: EM beside plain loops, and the one score."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix.engines.base import Sample
from regimix.search.model import (
    Model,
    empty_model,
    evaluate,
    expectation,
    join,
    maximise,
    refit,
    smallest_component,
)
from regimix.search.rows import whitened_rows

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=15, deadline=None)


def mixed_rows(seed, m=2, d=3, n=400, intercept=True, weights=None):
    """Rows of m regimes with some gross errors, whitened."""
    rng = np.random.default_rng(seed)
    X, theta = rng.standard_normal((n, d)), 3 * rng.standard_normal((m, d))
    labels = rng.integers(0, m, n)
    y = (X * theta[labels]).sum(axis=1) + 0.1 * rng.standard_normal(n)
    wrong = rng.random(n) < 0.1
    y[wrong] += 30 * rng.standard_normal(wrong.sum())
    weights = np.ones(n) if weights is None else weights
    design = np.column_stack([np.ones(n), X]) if intercept else X
    rows, _ = whitened_rows(Sample(design, y, weights), intercept=intercept)
    return rows, labels


def some_model(rows, rng, m):
    share = rng.uniform(0.2, 1.0, m)
    return Model(
        rng.standard_normal((m, rows.width)),
        rng.uniform(0.2, 1.0, m),
        0.9 * share / share.sum(),
        ("test",) * m,
        bell=0.3,
    )


def slow_densities(rows, model):
    """Density of every row under each component and, last, the background: one at a time."""
    out = np.empty((model.m + 1, rows.n))
    for i in range(rows.n):
        for j in range(model.m):
            gap = (rows.y[i] - rows.design[i] @ model.coef[j]) / model.scale[j]
            height = np.exp(-(gap**2) / 2) / (np.sqrt(2 * np.pi) * model.scale[j])
            out[j, i] = model.share[j] * height
        bell, tail = np.exp(rows.log_bell[i]), np.exp(rows.log_tail[i])
        out[-1, i] = model.background * (model.bell * bell + (1 - model.bell) * tail)
    return out


@few
@given(seeds, st.integers(1, 4), st.booleans())
def test_posteriors_and_gain_are_those_of_plain_loops(seed, m, intercept):
    rows, _ = mixed_rows(seed, intercept=intercept, n=60)
    model = some_model(rows, np.random.default_rng(seed + 1), m)
    posterior, gain = expectation(rows, model)
    densities = slow_densities(rows, model)
    np.testing.assert_allclose(posterior, densities / densities.sum(axis=0), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(gain, np.log(densities.sum(axis=0)) - rows.log_background, rtol=1e-8)


@few
@given(seeds, st.booleans())
def test_a_refit_is_weighted_least_squares_on_the_members(seed, weighted):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, 400).astype(float) if weighted else None
    rows, _ = mixed_rows(seed, weights=weights)
    model = some_model(rows, rng, 2)
    posterior, _ = expectation(rows, model)
    step = maximise(rows, model, posterior)
    assert step.model.m == 2  # both are large enough at these widths
    for j in range(2):
        members = posterior[j] > 1e-2
        root = np.sqrt(posterior[j, members] * rows.weights[members])
        design, target = rows.design[members] * root[:, None], rows.y[members] * root
        wanted, *_ = np.linalg.lstsq(design, target, rcond=None)
        np.testing.assert_allclose(step.model.coef[j], wanted, rtol=1e-6, atol=1e-8)
        left = target - design @ wanted
        size = posterior[j] @ rows.weights
        assert step.model.scale[j] == pytest.approx(np.sqrt(left @ left / (size - rows.width)))
        assert step.model.share[j] == pytest.approx(size / rows.mass)


@few
@given(seeds)
def test_the_empty_model_gains_nothing(seed):
    rows, _ = mixed_rows(seed)
    nothing = evaluate(rows, empty_model(rows.width))
    assert nothing.score == 0
    assert (nothing.posterior == 1).all()
    assert nothing.posterior.shape == (1, rows.n)


@few
@given(seeds)
def test_em_never_lowers_the_likelihood(seed):
    rows, _ = mixed_rows(seed, n=600)
    model = some_model(rows, np.random.default_rng(seed), 2)
    gains = []
    for _ in range(8):
        # Many rows per coefficient: no leave-one-out corrections, so EM is EM.
        posterior, gain = expectation(rows, model)
        gains.append(float(gain @ rows.weights))
        if (posterior[:-1].sum(axis=1) < 8 * rows.width).any():
            return
        model = maximise(rows, model, posterior).model
    # Rows with a share below .01 are left out of the sums: that is worth next to nothing.
    assert np.diff(gains).min() > -0.05


@few
@given(seeds)
def test_the_true_model_scores_above_merged_and_above_split(seed):
    rows, labels = mixed_rows(seed, m=2, n=600)
    start = []
    for j in range(2):
        mine = labels == j
        coef = np.linalg.lstsq(rows.design[mine], rows.y[mine], rcond=None)[0]
        start.append(Model(coef[None], np.array([0.2]), np.array([0.45]), ("truth",)))
    both = refit(rows, join(*start), 30)
    assert both.model.m == 2
    one = refit(rows, start[0].with_shares(2.0), 30)
    if np.linalg.norm(both.model.coef[0] - both.model.coef[1]) > 0.5:
        assert both.score > one.score + 12
    twice = join(both.model, both.model.pick(np.array([0])))
    assert evaluate(rows, twice).score < both.score


def test_a_component_of_too_few_rows_is_dropped():
    rows, _ = mixed_rows(0)
    model = some_model(rows, np.random.default_rng(0), 2)
    posterior, _ = expectation(rows, model)
    posterior[1, int(smallest_component(rows.width)) - 1 :] = 0.0
    assert maximise(rows, model, posterior).model.m == 1
