"""A search in stages: as good as one of all rows, for a fraction of its work."""

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.engines.base import Sample
from regimix.errors import EvidenceWarning
from regimix.mixture import stages
from regimix.mixture.control import Control
from regimix.mixture.moves import search_model
from regimix.mixture.settings import Settings
from regimix.mixture.stages import first_stage, search_in_stages, select_in_stages
from regimix.search import model as em
from regimix.search.model import evaluate, refit
from regimix.search.propose import Proposer
from regimix.search.rows import whitened_rows

SEEDS = range(3)


def drawn(seed, n=20_000, d=20, shares=(0.3, 0.3, 0.3), noise=0.1):
    """Whitened rows in random order; what the shares leave over is grossly wrong."""
    rng = np.random.default_rng(seed)
    X, coef = rng.standard_normal((n, d)), rng.standard_normal((len(shares) + 1, d))
    labels = rng.choice(len(shares) + 1, n, p=[*shares, 1 - sum(shares)])
    y = np.einsum("ij,ij->i", X, coef[labels]) + noise * rng.standard_normal(n)
    wrong = labels == len(shares)
    y[wrong] += 20 * rng.standard_normal(wrong.sum())
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
    assert staged < (15 if n_components else 30) * rows.n
    work["rows"] = 0
    at_once = run(search_model, rows, n_components)
    assert staged < 0.6 * work["rows"]
    # Converged as far as evidence counts.
    assert state.current.score > at_once.current.score - 5


def test_the_path_of_an_easy_table_costs_one_round_for_each_number(work):
    rows = drawn(1)
    state = run(search_in_stages, rows)
    work["rows"] = 0
    selection = select_in_stages(state.path, rows, state.current, complete=True)
    assert selection.n_components.tolist()[:4] == [1, 2, 3, 4]
    assert selection.chosen == 3 == np.argmax(selection.evidence) + 1
    assert selection.evidence[2] == state.current.score
    assert work["rows"] < 10 * rows.n


@pytest.mark.parametrize("seed", SEEDS)
def test_what_few_rows_cannot_show_is_found_among_all(seed):
    # 100 rows for 21 coefficients in the first stage, 600 among all.
    rows = drawn(seed, n=30_000, shares=(0.5, 0.4, 0.02))
    assert first_stage(rows).n == 5_000
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
    monkeypatch.setattr(stages, "FIRST_ROWS", 1_000)
    # Ten rows for each coefficient in the first stage, thirty in the next.
    rows = drawn(seed, shares=(0.095,) * 10)
    state = run(search_in_stages, rows, 10)
    assert [a.source for a in state.attempts] == ["joint", "single", "joint"]
    assert state.current.model.m == 10
    assert state.current.model.scale.max() < 0.2 * rows.spread()
    assert work["rows"] < 20 * rows.n


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_has_no_components(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((12_000, 4)), rng.standard_normal(12_000)
    with pytest.warns(EvidenceWarning, match="no evidence"):
        fit = MixedLinearRegression(random_state=seed).fit(X, y)
    assert fit.n_components_ == 1
    assert fit.evidence_ <= 0


def test_few_rows_are_searched_at_once():
    rows = drawn(0, n=6_000, d=3)
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
    short = refit(rows, rough, 30, enough=1.0)
    assert work["rows"] <= 4 * rows.n
    assert short.score > refit(rows, rough, 30).score - 3
    again = evaluate(rows, short.model)
    assert short.score == again.score
    np.testing.assert_array_equal(short.posterior, again.posterior)
