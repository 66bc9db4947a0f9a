"""The selection path: every number of components that was looked at, and its criteria."""

from dataclasses import replace

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.datasets import load_tone
from regimix.engines.base import Sample
from regimix.model import em
from regimix.model.em import REGIME_GAIN, Parameters, from_labels, refit
from regimix.model.rows import weighted_fit, whitened_rows
from regimix.search.loop import search_again
from regimix.search.propose import Proposer
from regimix.search.selection import Weighed, _without_background, weigh
from regimix.search.settings import Control, Settings
from regimix.synth import make_mlrc


def three_regimes(seed, n=700):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    coef = np.array([[4.0, 0, 0, 0], [0, 4.0, 0, 0], [0, 0, 4.0, 0]])
    labels = rng.integers(0, 3, n)
    y = (X * coef[labels]).sum(axis=1) + 0.2 * rng.standard_normal(n)
    wrong = rng.random(n) < 0.05
    y[wrong] += 25 * rng.standard_normal(wrong.sum())
    return X, y


@pytest.mark.parametrize("seed", range(3))
def test_the_path_runs_from_one_past_the_choice_and_peaks_there(seed):
    path = MixedLinearRegression(random_state=seed).fit(*three_regimes(seed)).mixture_.selection
    assert path.chosen == 3
    assert path.n_components.tolist()[:4] == [1, 2, 3, 4]
    assert (np.diff(path.n_components) > 0).all()
    chosen = path.n_components.tolist().index(3)
    assert np.argmax(path.evidence) == chosen
    assert np.argmin(path.bic) == chosen
    assert np.argmin(path.icl) == chosen
    assert (path.icl >= path.bic).all()


def test_bic_is_that_of_the_likelihood_by_hand():
    """One regime, no outliers: the background hardly matters, and least squares says it all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2))
    y = X @ [2.0, -1.0] + 1 + 0.3 * rng.standard_normal(500)
    mixture = MixedLinearRegression(random_state=0).fit(X, y).mixture_
    path = mixture.selection
    assert path.chosen == 1
    # The path is in the search's own units of the response: its differences mean something.
    bic = {int(k): float(v) for k, v in zip(path.n_components, path.bic, strict=True)}
    assert bic[2] - bic[1] == pytest.approx(5 * np.log(500), abs=25)
    assert bic[2] > bic[1]


def test_a_given_number_is_not_chosen_from_a_path():
    data = make_mlrc(600, 3, 2, random_state=0)
    mixture = MixedLinearRegression(n_components=2, random_state=0).fit(data.X, data.y).mixture_
    assert mixture.selection is not None
    assert mixture.selection.chosen == mixture.n_components
    assert mixture.n_components in mixture.selection.n_components


def test_as_dict_is_ready_for_a_data_frame():
    tone = load_tone()
    path = MixedLinearRegression(random_state=0).fit(tone.X, tone.y).mixture_.selection
    columns = path.as_dict()
    assert set(columns) == {"n_components", "evidence", "bic", "icl"}
    assert len({len(column) for column in columns.values()}) == 1


def test_algorithm_2_knows_no_path():
    data = make_mlrc(400, 2, 1, random_state=0)
    fit = MixedLinearRegression(search="net", random_state=0).fit(data.X, data.y)
    assert fit.mixture_.selection is None


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "d"), [(24, 1), (40, 3)])
def test_a_free_choice_is_no_less_likely_than_two_that_are_asked_for(n, d, seed):
    """What is an outlier beside one line may be a line of its own, and then there is no outlier."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.standard_normal((n, d))
    lines = np.column_stack([np.ones(n), X]) @ rng.standard_normal((2, d + 1)).T
    lines *= 10 / np.sqrt(np.mean((lines[:, 0] - lines[:, 1]) ** 2))
    second = (rng.random(n) < 0.3).astype(int)
    y = lines[np.arange(n), second] + rng.standard_normal(n)
    free, two = (MixedLinearRegression(k, random_state=seed).fit(X, y) for k in ("auto", 2))
    assert free.evidence_ > two.evidence_ - REGIME_GAIN


def curve(seed, n=52):
    """A decay that is nearly straight in pieces: Weight by Days of MASS's wtloss looks like it."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 250, n))
    return x[:, None], 81 + 103 * 2 ** (-x / 142) + 0.9 * rng.standard_normal(n)


def whitened(X, y):
    design = np.column_stack([np.ones(len(X)), X])
    return whitened_rows(Sample(design, y, np.ones(len(X))), intercept=True)[0]


def best_of_all_cuts(rows, x):
    """Two lines, one below and one above every cut of x: the slow twin."""
    best = -np.inf
    for cut in np.unique(x)[4:-4]:
        labels = np.vstack([x < cut, x >= cut, np.zeros(x.size)]).astype(float)
        coef = np.array([weighted_fit(rows.design, rows.y, part) for part in labels[:2]])
        start = Parameters.point(coef, np.full(2, 0.1), np.full(2, 0.49), ("cut", "cut"))
        fitted = from_labels(rows, np.maximum(labels, 1e-9), start)
        best = max(best, refit(rows, fitted.model, 100).score)
    return best


@pytest.mark.parametrize("seed", [0, 3, 10])
def test_two_lines_of_a_curve_are_as_good_as_the_best_of_all_cuts(seed):
    """One more line that is merged again leads there, where no single move does."""
    X, y = curve(seed)
    rows = whitened(X, y)
    control = Control(Settings(n_components=2))
    found, _ = search_again(
        rows,
        lambda number: Proposer(np.random.default_rng([seed, number])),
        control,
        n_components=2,
    )
    assert found.current.score > best_of_all_cuts(rows, X[:, 0]) - 1


@pytest.mark.filterwarnings("ignore::regimix.errors.RivalWarning")
@pytest.mark.parametrize("seed", [0, 1, 3, 10])
def test_models_of_one_size_have_one_evidence_whichever_number_was_asked_for(seed):
    X, y = curve(seed)
    paths = [
        MixedLinearRegression(n_components=k, random_state=0).fit(X, y).mixture_.selection
        for k in ("auto", 1, 2)
    ]
    for m in (1, 2):
        seen = [float(path.evidence[path.n_components == m][0]) for path in paths]
        assert np.ptp(seen) < 0.5, m
    assert paths[0].chosen == paths[0].n_components[np.argmax(paths[0].evidence)]


def line(seed, wrong, n=60):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 1))
    y = X[:, 0] + 0.2 * rng.standard_normal(n)
    y[:wrong] += 30
    return whitened(X, y)


@pytest.mark.parametrize("wrong", [0, 8])
def test_outliers_are_weighed_against_none(wrong):
    rows = line(0, wrong)
    start = Parameters.point(np.array([[0.0, 1.0]]), np.ones(1), np.array([0.9]), ("line",))
    seen = refit(rows, start, 100)
    weighed = weigh(rows, rows, seen, "normal", free=True)
    clean = refit(replace(rows, outliers=False), seen.model, 30)
    odds = np.exp(seen.score - clean.score)
    assert weighed.chance == pytest.approx(odds / (1 + odds), abs=1e-6)
    assert (weighed.fitted is weighed.dirty) == (wrong > 0)
    assert weighed.score == max(seen.score, weighed.clean.score)
    # As likely a priori, unless one is favoured.
    nearer = replace(weighed, favour=seen.score - clean.score)
    assert nearer.chance == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("wrong", [0, 1, 30, 300])
def test_many_rows_show_outliers_without_rounds_of_their_own(monkeypatch, wrong):
    """Where outliers are sure, what clean rows would have to be is looked at once."""
    rows = line(0, wrong, n=3000)
    start = Parameters.point(np.array([[0.0, 1.0]]), np.ones(1), np.array([0.9]), ("line",))
    seen = refit(rows, start, 100)
    clean = refit(replace(rows, outliers=False), seen.model, 30)
    rounds = []
    one = em.evaluate
    monkeypatch.setattr(em, "evaluate", lambda *of: rounds.append(1) or one(*of))
    weighed = weigh(rows, rows, seen, "normal", free=True)
    assert (weighed.clean is None) == (clean.score < seen.score - np.log(rows.n)) == (wrong > 0)
    assert bool(rounds) == (wrong == 0)
    if weighed.clean is not None:
        assert weighed.clean.score == pytest.approx(clean.score, abs=0.05)


@pytest.mark.parametrize("spread", [False, True])
def test_without_a_background_rows_go_to_the_regime_that_loses_least(spread):
    """A regime takes its own tails; what is far from all goes to one of them, not to each."""
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((3000, 1)), rng.integers(0, 2, 3000)
    y = np.where(labels, 5.0, -5.0) * X[:, 0] + 0.1 * rng.standard_normal(3000)
    some = rng.random(3000) < 0.03
    y[some] += (0.5 if spread else 300) * rng.choice([-1, 1], some.sum())
    rows = whitened(X, y)
    model = Parameters.point(
        np.array([[0.0, 5.0], [0.0, -5.0]]) / 5, np.full(2, 0.05), np.full(2, 0.45), ("t",) * 2
    )
    seen = refit(rows, model, 100)
    assert seen.posterior[-1][some].mean() > 0.5
    clean = _without_background(replace(rows, outliers=False), seen)
    wider = clean.model.scale / seen.model.scale
    assert (wider > 1.2).sum() == (2 if spread else 1)
    assert clean.posterior[-1].max() == 0.0
    np.testing.assert_allclose(clean.posterior.sum(axis=0), 1.0)


def test_the_better_of_each_kind_is_kept():
    rows = line(1, 4)
    start = Parameters.point(np.array([[0.0, 1.0]]), np.ones(1), np.array([0.9]), ("line",))
    low, high = refit(rows, start, 1), refit(rows, start, 50)
    pure = replace(rows, outliers=False)
    poor, good = refit(pure, start, 1), refit(pure, start, 50)
    best = Weighed(low, good).better(Weighed(high, poor))
    assert best.dirty is high
    assert best.clean is good
    assert best.better(None) is best


def test_two_that_lose_one_are_one_of_each_kind():
    X, y = curve(1)
    rows = whitened(X, y)
    coef = np.array([[0.0, -1.0], [0.1, -0.9]])
    two = Parameters.point(coef, np.full(2, 0.2), np.full(2, 0.45), ("a", "b"))
    weighed = Weighed(refit(rows, two, 30), refit(replace(rows, outliers=False), two, 30))
    smaller = weighed.smaller(rows)
    assert [smaller.dirty.model.m, smaller.clean.model.m] == [1, 1]
    assert smaller.clean.posterior[-1].sum() == pytest.approx(0, abs=1e-9)
