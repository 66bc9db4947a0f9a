"""After its deadline a fit makes one last round of whatever it is at, and says that it was cut."""

import time
from dataclasses import replace

import numpy as np
import pytest

from regimix import MixedLinearRegression, TrimmedRegressor, global_ilts
from regimix.data.problem import Problem
from regimix.engines.base import Sample
from regimix.engines.memory import MemoryEngine
from regimix.engines.parts import PassStopped
from regimix.errors import ConvergenceWarning, StopReason
from regimix.model import em, given_values
from regimix.model.blocks import Law
from regimix.model.em import DEADLINE, refit
from regimix.result.answer import Answer
from regimix.search import finish, likelihood, loop, selection, subspace
from regimix.search.likelihood import nearest_regimes
from regimix.search.message_passing import hunt_one
from regimix.search.net import net_source
from regimix.search.numbers import SEARCH
from regimix.search.single import elemental, reweighted
from regimix.synth import make_mlrc
from tests.model.mixtures import mixed_rows, some_model
from tests.oracles import sizes_of_systems


@pytest.fixture
def over():
    """A deadline that has passed."""
    token = DEADLINE.set(time.monotonic() - 1)
    yield
    DEADLINE.reset(token)


def count_rounds(monkeypatch):
    rounds = []
    evaluate = em.evaluate
    monkeypatch.setattr(em, "evaluate", lambda *given: rounds.append(1) or evaluate(*given))
    return rounds


def test_em_makes_one_round(monkeypatch, over):
    rows, _ = mixed_rows(0)
    rounds = count_rounds(monkeypatch)
    refit(rows, some_model(rows, np.random.default_rng(0), 2), 30)
    assert len(rounds) == 1


def test_no_relation_is_claimed_that_there_was_no_time_to_ask_all_for(monkeypatch, over):
    rows, _ = mixed_rows(0)
    rows = replace(rows, y=rows.features[:, 0])
    asked = selection.relation_given_values(rows, rows.weights)
    assert asked[:2] == (0.0, 0.0)
    times = iter([False] * 20)
    monkeypatch.setattr(given_values, "late", lambda: next(times, True))
    DEADLINE.set(np.inf)
    asked = selection.relation_given_values(rows, rows.weights)
    assert asked[:2] == (0.0, 0.0)
    assert next(times, None) is None


def test_no_start_is_made_beyond_what_an_answer_needs(over):
    rows, _ = mixed_rows(0)
    assert hunt_one(rows) is None
    sample = Sample(rows.design, rows.y, rows.weights)
    theta = np.zeros(rows.width)
    np.testing.assert_array_equal(reweighted(sample, theta), theta)
    assert len(elemental(sample, 32, np.random.default_rng(0))) == 1


def test_a_partition_is_still_an_answer(over):
    rows, _ = mixed_rows(0)
    model = some_model(rows, np.random.default_rng(0), 2)
    assert nearest_regimes(rows, model, 2, 0).m == 2
    assert nearest_regimes(rows, model, 3, 0).m == 3


@pytest.mark.parametrize("options", [{}, {"n_components": 12}, {"n_components": 12, "outliers": 0}])
def test_a_fit_without_time_says_so(options):
    """And nothing that only a search to the end would know: warnings are errors here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = np.where(rng.random(400) < 0.5, X @ np.arange(5.0), X[:, 0]) + 0.1 * rng.normal(size=400)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = MixedLinearRegression(random_state=0, time_limit=1e-9, **options).fit(X, y)
    assert model.mixture_.stopped == StopReason.TIME_LIMIT
    said = " ".join([Answer(model.mixture_).lead, *Answer(model.mixture_).notices])
    assert "the time limit was reached" in said
    assert "Constants" not in said
    assert "the rows support" not in said
    assert np.isfinite(model.coef_).all()
    assert DEADLINE.get() == np.inf


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize(
    ("options", "labelled"),
    [
        ({}, 700),
        ({"n_components": 5}, 700),
        ({"outliers": 0.1}, 630),
        ({"outliers": 0}, 700),
        ({"n_components": 3, "search": "partition"}, 700),
        ({"search": "net"}, 700),
    ],
)
def test_without_time_many_columns_are_fitted_once(options, labelled, monkeypatch):
    """Whitening so many would take seconds."""
    sizes = sizes_of_systems(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 300))
    y = X[:, 0] + 0.1 * rng.normal(size=700)
    fit = MixedLinearRegression(random_state=0, time_limit=1e-9, **options).fit(X, y)
    mixture = fit.mixture_
    assert sum(size > 250 for size in sizes) == 1
    assert mixture.stopped == StopReason.TIME_LIMIT
    assert (fit.labels_ >= 0).sum() == labelled
    assert fit.scale_[0] == pytest.approx(0.1, rel=0.2)
    assert fit.coef_[0, 0] == pytest.approx(1.0, abs=0.05)
    assert mixture.inference is None
    assert mixture.component_evidence is None
    assert "the time limit was reached" in str(mixture)
    assert (fit.outlier_share_ == 0) == (options.get("outliers") == 0 or fit.search == "partition")


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_a_time_limit_that_is_long_enough_changes_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 300))
    y = X[:, 0] + 0.1 * rng.normal(size=700)
    short, free = (
        MixedLinearRegression(n_components=1, random_state=0, time_limit=limit).fit(X, y)
        for limit in (1e6, None)
    )
    np.testing.assert_array_equal(short.coef_, free.coef_)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_without_time_one_line_is_judged_as_it_is(monkeypatch):
    sizes = sizes_of_systems(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 300))
    y = X[:, 0] + 0.1 * rng.normal(size=700)
    fit = TrimmedRegressor(random_state=0, time_limit=1e-9).fit(X, y)
    assert sum(size > 250 for size in sizes) <= 2
    assert np.isfinite(fit.coef_).all()
    assert fit.standard_error_ is None


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_components": 2, "outliers": 0.1},
        {"n_components": 2, "outliers": 0},
        {"search": "net", "n_components": 2},
        {"search": "net", "solver": "gradient"},
    ],
)
def test_wide_tables_make_no_matrix_of_their_columns(options, monkeypatch):
    sizes = sizes_of_systems(monkeypatch)
    monkeypatch.setattr(finish, "labelled_sums", None)  # they would hold one, too
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 600))
    mixture = global_ilts(X, X[:, 0] + 0.1 * rng.normal(size=30), random_state=0, **options)
    assert mixture.coef.shape[1] == 600
    assert np.isfinite(mixture.coef).all()
    assert max(sizes) < 60  # rows, and a few parameters of noise


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_a_partition_of_a_wide_table_is_that_of_all_its_columns(monkeypatch):
    """In the space of the rows: nothing larger is solved, and each regime fits its rows exactly."""
    sizes = sizes_of_systems(monkeypatch)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 600)), rng.normal(size=30)
    fit = MixedLinearRegression(n_components=2, search="partition", random_state=0).fit(X, y)
    assert max(sizes) < 60
    distances = np.abs(y[:, None] - fit.predict_components(X))
    np.testing.assert_allclose(distances.min(axis=1), 0.0, atol=1e-9)
    assert np.bincount(fit.labels_, minlength=2).min() > 0


def test_rows_are_assigned_once_without_time(over, monkeypatch):
    """Sums over them, one matrix for each regime, would serve a fit for which there is no time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    engine = MemoryEngine(Problem.from_arrays(X, X[:, 0] + 0.1 * rng.normal(size=200)))
    law = Law(rng.normal(size=(2, 4)), np.ones(2), np.array([0.5, 0.4]), -2.0)
    for module in (finish, likelihood):
        monkeypatch.setattr(module, "labelled_sums", None)
    trimmed, labelling = finish.assign_and_trim(engine, law, 0.9)
    np.testing.assert_array_equal(trimmed.thetas, law.thetas)
    assert np.count_nonzero(engine.map_rows(labelling) >= 0) == 180
    partition, labelling = likelihood.assign_nearest(engine, law)
    np.testing.assert_array_equal(partition.thetas, law.thetas)
    counts = np.bincount(engine.map_rows(labelling), minlength=2)
    np.testing.assert_allclose(partition.share, counts / 200)


def test_the_likeliest_regimes_without_time_are_those_of_the_search(over):
    rows, _ = mixed_rows(0, outliers=False)
    model = some_model(rows, np.random.default_rng(0), 2)
    assert likelihood.most_likely(rows, model, 2, 0) is model


def test_one_start_is_fitted_without_time(over, monkeypatch):
    rows, _ = mixed_rows(0)
    labels = np.random.default_rng(0).integers(2, size=(5, rows.n))
    for numbers in (rows.design.size * 2, 1):
        monkeypatch.setattr(likelihood, "SEARCH", replace(SEARCH, batch_numbers=numbers))
        assert len(likelihood.weighted_fits(rows, labels, 2)) == 1


def test_directions_are_looked_for_once_without_time(over, monkeypatch):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(300, 20))
    y = W[:, 0] * rng.normal(size=300)
    products, product = [], subspace._squared
    monkeypatch.setattr(subspace, "_squared", lambda *given: products.append(1) or product(*given))
    assert subspace.find_subspace(W, y, None, 2, "bounded", rng).basis.shape == (20, 2)
    assert len(products) == 1  # of four functions of the response
    sizes = sizes_of_systems(monkeypatch)
    y[:30] *= 1e3
    subspace.find_subspace(W, y, None, 2, "filter", rng)
    assert len(sizes) == 2  # a round of the filter, and the answer
    with pytest.raises(PassStopped):
        net_source(MemoryEngine(Problem.from_arrays(W, y)), 2)


def test_nothing_is_merged_after_the_deadline(monkeypatch, over):
    rows, _ = mixed_rows(0)
    fitted = refit(rows, some_model(rows, np.random.default_rng(0), 4), 30)
    rounds = count_rounds(monkeypatch)
    assert selection.prune(rows, fitted) is fitted
    assert not rounds


def test_a_partition_that_runs_out_of_time_while_it_merges_ends_soon(monkeypatch):
    """Merging twelve regimes and more, two by two, took as long as the search before it."""
    X, y, _ = make_mlrc(3000, 20, 12, noise=0.5, random_state=0)
    late: list[bool] = []
    prune, maximise, rounds, clock = loop.prune, em.maximise, [], [time.monotonic()]

    def late_prune(rows, fitted):
        if not late:
            rounds.clear()
            clock[0] += 1e6
            late.append(True)
        return prune(rows, fitted)

    def counted(rows, *given):
        rounds.append(rows.n)
        return maximise(rows, *given)

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(loop, "prune", late_prune)
    monkeypatch.setattr(em, "maximise", counted)
    model = MixedLinearRegression(12, search="partition", time_limit=1.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    assert model.mixture_.stopped == StopReason.TIME_LIMIT
    assert model.mixture_.n_components == 12
    # The score of the answer, whether it is settled, and what constants would score.
    assert len(rounds) < 20


def test_after_a_stop_all_rows_are_read_twice_only(monkeypatch):
    """Once for standard errors, once for labels: so Ctrl-C at a million rows ends at once."""
    X, y, _ = make_mlrc(100_000, 5, 6, corruption=0.05, noise=0.5, random_state=0)
    stopped, passes, fold = [], [], MemoryEngine.fold

    def counted(engine, measure, *given):
        if stopped and engine.problem.n_rows == len(y):
            passes.append(measure.__name__)
        return fold(engine, measure, *given)

    def stop(step):
        if step.stage != "reading" and step.n_components > 0:
            stopped.append(step)
        return bool(stopped)

    monkeypatch.setattr(MemoryEngine, "fold", counted)
    with pytest.warns(ConvergenceWarning, match="callback"):
        model = MixedLinearRegression(callback=stop, random_state=0).fit(X, y)
    assert model.mixture_.stopped == StopReason.CALLBACK
    assert len(stopped) == 1
    assert passes == ["_block_sums", "row_counts"]
