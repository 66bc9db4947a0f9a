"""Fewer components: what is not worth a regime goes, what is stays."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regimix.model.em import from_labels, join, refit
from regimix.search.selection import prune, shrink
from tests.model.mixtures import mixed_rows, some_model

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=12)


def true_fit(seed, m=2, n=400, **options):
    """The model that the true labels lead to, where its regimes are apart; None elsewhere."""
    rows, labels = mixed_rows(seed, m=m, n=n, **options)
    posterior = np.array([labels == j for j in [*range(m), -1]], dtype=float)
    start = from_labels(rows, posterior, some_model(rows, np.random.default_rng(seed), m))
    fitted = refit(rows, start.model, 30)
    gaps = [
        np.linalg.norm(fitted.model.coef[j] - fitted.model.coef[k])
        for j in range(m)
        for k in range(j)
    ]
    return rows, fitted, min(gaps, default=np.inf) > 0.5


@few
@given(seeds, st.integers(1, 3))
def test_true_regimes_stay(seed, m):
    rows, fitted, apart = true_fit(seed, m)
    if not apart:
        return
    pruned = prune(rows, fitted)
    assert pruned.model.m == m
    assert pruned.score >= fitted.score - 1e-9


@few
@given(seeds, st.integers(1, 2), st.sampled_from(["copy", "halves", "anywhere"]))
def test_what_is_too_many_goes(seed, m, kind):
    rows, fitted, apart = true_fit(seed, m)
    if not apart:
        return
    rng = np.random.default_rng(seed)
    extra = fitted.model.pick(np.array([0]))
    if kind == "anywhere":
        extra = some_model(rows, rng, 1)
    wide = join(fitted.model, extra)
    if kind == "halves":
        step = np.zeros_like(wide.coef)
        step[0, 0], step[-1, 0] = fitted.model.scale[0], -fitted.model.scale[0]
        wide.coef[:] += 0.5 * step
    before = refit(rows, wide, 10)
    pruned = prune(rows, before)
    assert pruned.score >= before.score
    assert pruned.model.m <= m + (kind == "anywhere")
    assert pruned.score > fitted.score - 1


@few
@given(seeds, st.integers(2, 4))
def test_shrinking_takes_one_away_whatever_it_costs(seed, m):
    rows, fitted, apart = true_fit(seed, m, n=600)
    smaller = shrink(rows, fitted)
    assert smaller.model.m == m - 1
    if apart:
        assert smaller.score < fitted.score


@few
@given(seeds)
# The deletion that is foreseen to be the cheapest is the dearest.
@example(879)
@example(225)
def test_shrinking_is_the_best_deletion_or_union(seed):
    rows, fitted, apart = true_fit(seed, 3, n=300)
    if not apart:
        return
    trials = [refit(rows, fitted.model.pick(np.arange(3) != j), 5).score for j in range(3)]
    for j, k in ((0, 1), (0, 2), (1, 2)):
        rest, united = np.arange(3) != k, fitted.posterior.copy()
        united[j] += united[k]
        merged = from_labels(rows, united[np.append(rest, True)], fitted.model.pick(rest))
        trials.append(refit(rows, merged.model, 5).score)
    assert max(trials) - min(trials) > 10
    assert shrink(rows, fitted).score == pytest.approx(max(trials), abs=0.1)


@few
@given(seeds)
def test_shrinking_loses_the_one_that_is_missed_least(seed):
    """A copy beside two regimes is gone first."""
    rows, fitted, apart = true_fit(seed, 2)
    if not apart:
        return
    three = refit(rows, join(fitted.model, fitted.model.pick(np.array([0]))), 5)
    back = shrink(rows, three)
    assert back.score == pytest.approx(fitted.score, abs=2)


def test_a_single_regime_is_not_pruned():
    rows, fitted, _ = true_fit(0, 1)
    assert prune(rows, fitted) is fitted
