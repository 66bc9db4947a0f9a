"""A search in stages: as good as one of all rows, for a fraction of its work."""

from dataclasses import replace

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.engines.base import Sample
from regimix.errors import EvidenceWarning
from regimix.model import em
from regimix.model.em import evaluate, refit
from regimix.model.rows import whitened_rows
from regimix.search import loop
from regimix.search.loop import (
    Search,
    complete_in_stages,
    first_stage,
    search_again,
    search_in_stages,
    search_model,
)
from regimix.search.numbers import SEARCH
from regimix.search.propose import Proposer
from regimix.search.selection import Repeats, Weighed, select
from regimix.search.settings import Control, Settings

SEEDS = range(2)


def drawn(seed, n=20_000, d=20, shares=(0.3, 0.3, 0.3), noise=0.1):
    """Whitened rows in random order; what the shares leave over is grossly wrong."""
    rng = np.random.default_rng(seed)
    X, coef = rng.standard_normal((n, d)), rng.standard_normal((len(shares), d))
    labels = rng.choice(len(shares) + 1, n, p=[*shares, 1 - sum(shares)])
    wrong = labels == len(shares)
    y = 20 * rng.standard_t(2, n)
    y[~wrong] = np.einsum("ij,ij->i", X[~wrong], coef[labels[~wrong]])
    y[~wrong] += noise * rng.standard_normal(np.count_nonzero(~wrong))
    design = np.column_stack([np.ones(n), X])
    return whitened_rows(Sample(design, y, np.ones(n)), intercept=True)[0]


def run(search, rows, n_components=None, seed=0, **options):
    control = Control(Settings(n_components=n_components, **options))
    proposer = Proposer(np.random.default_rng(seed))
    return search(rows, proposer, control, n_components=n_components)


@pytest.fixture
def work(monkeypatch):
    """Count the rows that rounds of EM go through: its normal equations are what costs."""
    counted = {"rows": 0}
    plain = em.maximise

    def counting(rows, *args, **options):
        counted["rows"] += rows.n
        return plain(rows, *args, **options)

    monkeypatch.setattr(em, "maximise", counting)
    return counted


@pytest.mark.parametrize("n_components", [3, None])
def test_an_easy_table_costs_few_rounds_over_all_rows(work, n_components):
    rows = drawn(0)
    state = run(search_in_stages, rows, n_components)
    assert state.current.model.m == 3
    staged = work["rows"]
    assert staged < (20 if n_components else 70) * rows.n
    work["rows"] = 0
    at_once = run(search_model, rows, n_components)
    assert staged < 0.75 * work["rows"]
    # Converged as far as evidence counts.
    assert state.current.score > at_once.current.score - 5


def test_where_few_rows_leave_many_to_no_component_they_show_the_others_too(work):
    """EM from the bulk finds the largest regime by itself: the others are not left to all rows."""
    rows = drawn(0, n=40_000, shares=(0.6, 0.2, 0.1))
    state = run(search_in_stages, rows, 3)
    assert np.sort(state.current.model.share) == pytest.approx([0.1, 0.2, 0.6], abs=0.02)
    assert state.attempts[0].move == "add"
    assert work["rows"] < 10 * rows.n


def test_what_no_spectrum_shows_no_source_is_asked_for(monkeypatch):
    looks = []
    seen = Proposer._shapeless
    monkeypatch.setattr(Proposer, "_shapeless", lambda self, of: looks.append(1) or seen(self, of))
    monkeypatch.setattr(Proposer, "_chain", None)
    rng = np.random.default_rng(0)
    rows = drawn(0, n=5_000)
    noise = replace(rows, y=rng.standard_normal(rows.n))
    proposer = Proposer(rng, brisk=True)
    assert [proposer.propose(noise, source) for source in ("joint", "passing")] == [[], []]
    assert len(looks) == 1
    assert proposer.propose(rows, "joint")


def test_the_path_of_an_easy_table_costs_one_round_for_each_number(work):
    rows = drawn(1)
    state = run(search_in_stages, rows)
    work["rows"] = 0
    assert complete_in_stages(state.path, rows, state.current).score >= state.current.score
    weighed = {m: Weighed(seen) for m, seen in state.path.best.items()}
    selection = select(rows, weighed, state.current.model.m)
    assert selection.n_components.tolist()[:4] == [1, 2, 3, 4]
    assert selection.chosen == 3 == np.argmax(selection.evidence) + 1
    assert selection.evidence[2] == state.current.score
    assert work["rows"] < 16 * rows.n


@pytest.mark.parametrize("seed", SEEDS)
def test_what_few_rows_cannot_show_is_found_among_all(seed):
    # 30 rows for 21 coefficients in the first stage, 600 among all.
    rows = drawn(seed, n=30_000, shares=(0.5, 0.4, 0.02))
    assert first_stage(rows).n == 1_500
    state = run(search_in_stages, rows)
    share = np.sort(state.current.model.share)
    assert share == pytest.approx([0.02, 0.4, 0.5], abs=0.01)
    assert run(search_in_stages, rows, 3).current.model.m == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_two_that_look_like_one_in_few_rows_are_parted(seed):
    """Beside what they have in common their difference is as small as the noise."""
    rng = np.random.default_rng(seed)
    n, d = 30_000, 20
    X, apart = rng.standard_normal((n, d)), rng.standard_normal(d)
    sign = rng.choice([-0.6, 0.6], n) / np.linalg.norm(apart)
    y = 5 * X @ rng.standard_normal(d) + sign * (X @ apart) + 0.7 * rng.standard_normal(n)
    design = np.column_stack([np.ones(n), X])
    rows = whitened_rows(Sample(design, y, np.ones(n)), intercept=True)[0]
    at_once, staged = run(search_model, rows), run(search_in_stages, rows)
    assert staged.current.model.m == at_once.current.model.m == 2
    assert staged.current.score > at_once.current.score - 5


@pytest.mark.parametrize("seed", SEEDS)
def test_where_few_rows_show_nothing_the_next_stage_has_more(seed, work, monkeypatch):
    monkeypatch.setattr(loop, "SEARCH", replace(SEARCH, first_rows=1_000))
    # Ten rows for each coefficient in the first stage, thirty in the next.
    rows = drawn(seed, shares=(0.095,) * 10)
    state = run(search_in_stages, rows, 10)
    first = [a.source for a in state.attempts if a.move == "first"]
    assert first.count("joint") > 1, "there was no second stage"
    assert state.current.model.m == 10
    assert state.current.model.scale.max() < 0.2 * rows.spread()
    assert work["rows"] < 50 * rows.n


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_has_no_components(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((12_000, 4)), rng.standard_normal(12_000)
    with pytest.warns(EvidenceWarning, match="constants explain y better"):
        fit = MixedLinearRegression(random_state=seed).fit(X, y)
    assert fit.n_components_ == 1
    assert fit.evidence_ <= 0


def test_few_rows_are_searched_at_once():
    rows = drawn(0, n=2_000, d=3)
    assert first_stage(rows) is rows
    staged, at_once = run(search_in_stages, rows), run(search_model, rows)
    assert staged.current.score == at_once.current.score
    np.testing.assert_array_equal(staged.current.model.coef, at_once.current.model.coef)


def test_who_stops_the_first_stage_gets_its_model_on_all_rows():
    rows = drawn(0)
    state = run(search_in_stages, rows, callback=lambda step: step.n_components > 0)
    assert state.stopped == "callback"
    assert state.rows is rows
    assert state.current.posterior.shape == (state.current.model.m + 1, rows.n)
    assert len(state.attempts) == 1


def test_starts_that_are_given_are_tried_first():
    rows = drawn(0)
    known = run(search_model, rows.head(5_000), 3).current.model
    proposer = Proposer(np.random.default_rng(0))
    control = Control(Settings(n_components=3))
    state = search_in_stages(rows, proposer, control, n_components=3, given=known)
    assert state.attempts[0].source == "given"
    assert state.current.model.m == 3


def test_em_that_foresees_little_ends_as_well(work):
    rows = drawn(2)
    rough = run(search_model, rows.head(5_000), 3).current.model
    work["rows"] = 0
    short = refit(rows, rough, 30, settled=1.0)
    assert work["rows"] <= 4 * rows.n
    assert short.score > refit(rows, rough, 30).score - 3
    again = evaluate(rows, short.base)
    assert short.score == again.score
    np.testing.assert_array_equal(short.posterior, again.posterior)


# --- again and again ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_to_find_the_best_again_costs_less_than_to_find_it(work, seed):
    rows = drawn(seed, n=300, d=2, noise=0.5)
    spent = []

    def proposer(number):
        spent.append(work["rows"])
        return Proposer(np.random.default_rng([seed, number]))

    best, repeats = search_again(rows, proposer, Control(Settings()))
    assert repeats.agreed == SEARCH.agreeing_searches
    # The last one looks for one regime more.
    assert len(spent) == SEARCH.agreeing_searches + 1
    assert spent[-1] - spent[-2] < 0.7 * spent[1]
    alone = search_model(rows, proposer(0), Control(Settings()))
    assert alone.current.score == pytest.approx(best.current.score, abs=SEARCH.same_score)


@pytest.fixture
def told(monkeypatch):
    """Let searches end with given scores; return what they were asked."""
    asked = []

    def run(scores, *, stop_at=None, n=100, counts=None, target=None, **options):
        asked.clear()
        rows = drawn(0, n=n, d=1)
        answer = evaluate(rows, em.empty(rows.width))

        def search(rows, proposer, control, *, n_components, number, **_):
            asked.append((number, proposer))
            proposer.n_proposals = 10
            fitted = replace(answer, score=scores[number])
            if counts is not None:
                model = em.Parameters.point(
                    np.zeros((counts[number], rows.width)),
                    np.ones(counts[number]),
                    np.full(counts[number], 0.1),
                    ("test",) * counts[number],
                )
                fitted = replace(fitted, model=model)
            stopped = "callback" if number == stop_at else Search.stopped
            return Search(rows, proposer, control, fitted, n_components, stopped=stopped)

        monkeypatch.setattr(loop, "search_in_stages", search)
        monkeypatch.setattr(loop, "SEARCH", replace(SEARCH, agreeing_searches=2))
        best, repeats = search_again(
            rows,
            lambda number: Proposer(np.random.default_rng(number)),
            Control(Settings(n_components=target)),
            n_components=target,
            **options,
        )
        return best, repeats, asked

    return run


@pytest.mark.parametrize(
    ("scores", "searches", "agreed"),
    [
        ([5.0, 5.0], 2, 2),
        ([5.0, 4.8], 2, 2),
        ([1.0, 5.0, 5.2], 3, 2),
        ([5.0, 1.0, 2.0, 4.9], 4, 2),
        (list(range(0, 40, 2)), 12, 1),
    ],
)
def test_searches_go_on_until_the_best_score_has_come_twice(told, scores, searches, agreed):
    best, repeats, asked = told([float(score) for score in scores])
    assert len(asked) == len(repeats.scores) == searches
    assert repeats.agreed == agreed
    assert best.current.score == max(repeats.scores)
    assert best.proposer.n_proposals == 10 * searches
    # Each has a generator of its own.
    assert len({p.rng.bit_generator.state["state"]["state"] for _, p in asked}) == searches


def test_searches_that_disagree_end_where_more_of_them_are_pointless(told):
    seen = []

    def pointless(best):
        seen.append(best.current.score)
        return True

    rising = [float(score) for score in range(0, 40, 2)]
    assert len(told(rising, pointless=pointless)[2]) == 2
    assert seen == [2.0]
    # Searches that agree are not asked about, and no is no.
    assert len(told([5.0, 5.0], pointless=pointless)[2]) == 2
    assert seen == [2.0]
    assert len(told(rising, pointless=lambda best: False)[2]) == 12


def test_a_large_table_is_searched_once(told):
    assert len(told([1.0], n=50_000)[2]) == 1


def test_who_stops_a_search_gets_the_best_of_those_before(told):
    best, repeats, _ = told([7.0, 3.0, 9.0], stop_at=1)
    assert len(repeats.scores) == 2
    assert best.current.score == 7
    assert best.stopped == "callback"


def test_of_a_given_number_the_nearest_wins_before_the_score(told):
    best, _, _ = told([9.0, 1.0, 1.1] * 4, counts=[1, 3, 3] * 4, target=3)
    assert best.current.model.m == 3
    assert best.current.score == 1.1


def labelled(labels, m=2):
    """Make a model that is sure of its labels; -1 is an outlier."""
    posterior = np.zeros((m + 1, len(labels)))
    posterior[labels, np.arange(len(labels))] = 1.0
    rows = drawn(0, n=len(labels), d=1)
    point = em.Parameters.point(
        np.zeros((m, rows.width)), np.ones(m), np.full(m, 0.9 / m), ("test",) * m
    )
    fitted = evaluate(rows, em.empty(rows.width))
    return Weighed(replace(fitted, model=point, posterior=posterior))


def test_scores_that_hardly_differ_are_the_same_answer():
    one = labelled([0] * 10 + [1] * 10)
    assert Repeats((1.0, 1.4, 0.8), (one,) * 3).agreed == 2
    assert Repeats().agreed == 0
    assert Repeats((1.0,), (one,)).agreed == 1


@pytest.mark.parametrize(
    ("labels", "m", "same"),
    [
        ([1] * 50 + [0] * 50, 2, True),  # regimes have no order
        ([0] * 49 + [1] * 51, 2, False),
        ([0] * 25 + [1] * 50 + [0] * 25, 2, False),
        ([0] * 50 + [-1] * 50, 2, False),  # an outlier is in no regime
        ([0] * 50 + [1] * 50, 3, False),
    ],
)
def test_an_answer_is_the_same_only_if_its_labels_are(labels, m, same):
    ends = labelled([0] * 50 + [1] * 50), labelled(labels, m)
    repeats = Repeats((5.0, 4.9), ends)
    assert repeats.agreed == 1 + same
    assert repeats.agree_with(ends[1].fitted, 4.9) == 1 + same
    assert repeats.agree_with(ends[0].fitted, 7.0) == 0


def test_rows_in_doubt_may_have_another_label():
    one, other = labelled([0] * 50 + [1] * 50), labelled([0] * 49 + [1] * 51)
    for sure, same in ((0.81, False), (0.79, True)):
        other.dirty.posterior[:, 49] = 1 - sure, sure, 0
        assert Repeats((5.0, 5.0), (one, other)).agreed == 1 + same


def test_searches_go_on_while_the_best_ones_label_rows_otherwise(told):
    # All scores are equal, and every third model has another number of regimes.
    _, repeats, asked = told([5.0] * 12, counts=[1, 2, 3] * 4)
    assert repeats.agreed == 2
    assert len(asked) >= 4


def test_models_are_judged_before_they_are_compared(told):
    verdicts = [1.0, 2.0, 2.0, 0.0]

    def judge(seen):
        return Weighed(replace(seen, score=verdicts.pop(0)))

    _, repeats, asked = told([5.0, 5.0, 5.0, 0.0], counts=[1] * 4, judge=judge)
    assert repeats.scores == (1.0, 2.0, 2.0)
    assert len(asked) == 4  # the last one looks for one regime more, and is judged like them
    assert not verdicts


def test_what_all_searches_have_seen_is_kept():
    rows = drawn(0, n=300, d=1, shares=(0.5, 0.45))
    best, repeats = search_again(
        rows, lambda number: Proposer(np.random.default_rng(number)), Control(Settings())
    )
    assert len(repeats.scores) >= 2
    assert best.current.score == pytest.approx(max(repeats.scores))
    assert best.path.best[best.current.model.m].score >= best.current.score - 1e-9
    assert len([a for a in best.attempts if a.move == "first"]) >= len(repeats.scores)
