"""The default search: what it finds, what it leaves, and that its score only rises."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regimix import MixedLinearRegression
from regimix.engines.base import Sample
from regimix.model.em import Parameters, empty, evaluate, from_labels, refit
from regimix.model.rows import whitened_rows
from regimix.search.loop import promising, search_model
from regimix.search.numbers import SEARCH
from regimix.search.propose import Proposer
from regimix.search.settings import Control, Settings
from regimix.synth import make_mlrc

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=6)


def table(seed, m=2, d=2, n=250, noise=0.1, outliers=0.05):
    """Regimes whose slopes are far from each other, and outliers of a law of their own."""
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((n, d)), rng.integers(0, m, n)
    angle = 2 * np.pi * (np.arange(m) + rng.random()) / m
    slopes = np.zeros((m, d))
    slopes[:, 0], slopes[:, 1] = 3 * np.cos(angle), 3 * np.sin(angle)
    y = np.einsum("ij,ij->i", X, slopes[labels]) + noise * rng.standard_normal(n)
    wrong = rng.random(n) < outliers
    y[wrong] = 10 * rng.standard_t(2, np.count_nonzero(wrong))
    labels[wrong] = -1
    design = np.column_stack([np.ones(n), X])
    return whitened_rows(Sample(design, y, np.ones(n)), intercept=True)[0], labels


def run(rows, count=None, seed=0, **options):
    told = {name: options.pop(name) for name in ("callback", "max_starts") if name in options}
    proposer = Proposer(np.random.default_rng(seed))
    control = Control(Settings(n_components=count, **told))
    return search_model(rows, proposer, control, n_components=count, **options)


def score_of_truth(rows, labels):
    m = labels.max() + 1
    posterior = np.array([labels == j for j in [*range(m), -1]], dtype=float)
    start = Parameters.point(np.zeros((m, rows.width)), np.ones(m), np.full(m, 0.9 / m), ("t",) * m)
    return refit(rows, from_labels(rows, posterior, start).model, 100).score


@few
@given(seeds, st.integers(1, 3))
def test_it_ends_as_high_as_the_truth(seed, m):
    rows, labels = table(seed, m)
    state = run(rows, seed=seed)
    assert state.stopped == "nothing improves"
    assert state.phase == "over"
    assert state.current.score > score_of_truth(rows, labels) - 1


@few
@given(seeds)
def test_every_accepted_move_raises_the_score(seed):
    rows, _ = table(seed, 3)
    seen = []
    state = run(rows, seed=seed, callback=lambda step: seen.append(step.score))
    assert np.diff(seen).min(initial=0) >= -1e-9
    for attempt in state.attempts:
        assert attempt.accepted == (attempt.reason == "better")
        if attempt.accepted:
            assert attempt.gain > SEARCH.same_score
    assert any(attempt.accepted for attempt in state.attempts)


@few
@given(seeds, st.integers(1, 4))
@example(1, 3)  # where rounds of EM empty each third component that is put beside the two
@example(8, 4)
def test_a_given_number_is_kept(seed, count):
    rows, _ = table(seed, 2)
    state = run(rows, count, seed=seed)
    # More than there are may be lost: the fit finds them below.
    assert min(count, 2) <= state.current.model.m <= count
    assert (state.current.model.share > 0).all()


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize(("seed", "count"), [(1, 3), (8, 4)])
def test_a_given_number_that_a_search_loses_is_found_by_the_fit(seed, count):
    rows, _ = table(seed, 2)
    fit = MixedLinearRegression(count, random_state=seed).fit(rows.features, rows.y)
    assert fit.n_components_ == count
    assert (fit.weights_ > 0).all()


@few
@given(seeds)
def test_what_is_given_is_tried_first_and_judged_like_all_else(seed):
    rows, labels = table(seed, 2)
    given_is_tried(rows, labels, seed)


@few
@given(seeds)
def test_what_is_given_is_tried_though_one_line_looks_good_already(seed):
    rows, labels = table(seed, 1, outliers=0.02)
    given_is_tried(rows, labels, seed)


def given_is_tried(rows, labels, seed):
    rng = np.random.default_rng(seed)
    wrong = Parameters.point(
        rng.standard_normal((2, rows.width)), np.ones(2), np.full(2, 0.4), ("given",) * 2
    )
    state = run(rows, seed=seed, given=wrong)
    assert state.attempts[0].source == "given"
    assert state.current.score > score_of_truth(rows, labels) - 1


@few
@given(seeds)
def test_one_move_is_not_made_twice(seed):
    rows, _ = table(seed, 2)
    state = run(rows, seed=seed)
    again = search_model(
        rows, Proposer(np.random.default_rng(1)), Control(Settings()), known=state.current
    )
    assert again.current.score >= state.current.score
    assert promising(again)


@pytest.mark.parametrize("kind", ["no feature", "no row to spare", "constant"])
def test_there_may_be_nothing_to_search(kind):
    rng = np.random.default_rng(0)
    n = 3 if kind == "no row to spare" else 30
    X = np.zeros((n, 1)) if kind == "no feature" else rng.standard_normal((n, 1))
    y = np.full(n, 2.0) if kind == "constant" else rng.standard_normal(n)
    design = np.column_stack([np.ones(n), X])
    rows = whitened_rows(Sample(design, y, np.ones(n)), intercept=True)[0]
    state = run(rows)
    assert np.isfinite(state.current.score)
    assert state.current.score >= evaluate(rows, empty(rows.width)).score - 10


@pytest.mark.parametrize("stop", ["max_starts", "callback"])
def test_who_stops_it_gets_the_best_so_far(stop):
    rows, _ = table(0, 3)
    told = {"max_starts": {"max_starts": 1}, "callback": {"callback": lambda _: True}}[stop]
    state = run(rows, **told)
    assert state.stopped == stop
    assert len(state.attempts) == 1
    assert state.current.posterior.shape[1] == rows.n


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_component_is_worth_what_the_model_loses_without_it(m):
    X, y, _ = make_mlrc(300, 3, m, noise=0.3, random_state=1)
    mixture = MixedLinearRegression(random_state=0).fit(X, y).mixture_
    assert mixture.n_components == m
    assert (mixture.component_evidence > 3).all()


def test_a_share_of_outliers_that_is_too_small_still_tells_them():
    """Gross errors that had to be kept must not make the background vanish."""
    X, y, _ = make_mlrc(600, 3, 3, noise=0.1, corruption=0.06, random_state=5)
    fit = MixedLinearRegression(n_components=3, outliers=0.05, random_state=0).fit(X, y)
    assert np.mean(fit.assign(X, y) != fit.labels_) < 0.05
    assert 0.03 < fit.flag(X, y).mean() < 0.1


@pytest.mark.parametrize("outliers", [0.1, 0.3])
def test_new_labels_are_those_of_the_fit(outliers):
    X, y, _ = make_mlrc(600, 3, 3, noise=0.1, corruption=0.06, random_state=5)
    fit = MixedLinearRegression(n_components=3, outliers=outliers, random_state=0).fit(X, y)
    assert np.mean(fit.assign(X, y) != fit.labels_) < 0.02
    assert np.mean(fit.assign(X, y) == -1) == pytest.approx(outliers, abs=0.01)
