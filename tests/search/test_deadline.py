"""After its deadline a fit makes one last round of whatever it is at, and says that it was cut."""

import time

import numpy as np
import pytest

from regimix import MixedLinearRegression, global_ilts
from regimix.engines.base import Sample
from regimix.errors import ConvergenceWarning, StopReason
from regimix.model import em
from regimix.model.em import DEADLINE, refit
from regimix.result.answer import answer
from regimix.search.likelihood import nearest_regimes
from regimix.search.message_passing import hunt_one
from regimix.search.single import elemental, reweighted
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
    assert nearest_regimes(rows, model, 2, 0).model.m == 2


@pytest.mark.parametrize("options", [{}, {"n_components": 12}, {"n_components": 12, "outliers": 0}])
def test_a_fit_without_time_says_so(options):
    """And nothing that only a search to the end would know: warnings are errors here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = np.where(rng.random(400) < 0.5, X @ np.arange(5.0), X[:, 0]) + 0.1 * rng.normal(size=400)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = MixedLinearRegression(random_state=0, time_limit=1e-9, **options).fit(X, y)
    assert model.mixture_.stopped == StopReason.TIME_LIMIT
    said = " ".join([answer(model.mixture_).lead, *answer(model.mixture_).notices])
    assert "the time limit was reached" in said
    assert "Constants" not in said
    assert "the rows support" not in said
    assert np.isfinite(model.coef_).all()
    assert DEADLINE.get() == np.inf


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_wide_tables_make_no_matrix_of_their_columns(monkeypatch):
    sizes = sizes_of_systems(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 600))
    mixture = global_ilts(X, X[:, 0] + 0.1 * rng.normal(size=30), random_state=0)
    assert mixture.coef.shape[1] == 600
    assert np.isfinite(mixture.coef).all()
    assert max(sizes) < 60  # rows, and a few parameters of noise
