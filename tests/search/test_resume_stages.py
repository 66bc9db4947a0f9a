"""A search in stages goes on after a crash in any of them."""

from functools import cache

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from regimix import MixedLinearRegression
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import CheckpointError, ConvergenceWarning
from regimix.model.rows import whitened_rows
from regimix.result import fit as fit_module
from regimix.search.checkpoint import Checkpoint
from regimix.search.loop import search_in_stages
from regimix.search.propose import Proposer
from regimix.search.settings import Control, Settings
from regimix.synth import make_mlrc
from tests.search.crashes import CrashError, Watched, bits


@pytest.fixture(scope="module")
def rows():
    # A small component, which few rows may not show.
    X, y, _ = make_mlrc(
        10_000,
        2,
        3,
        noise=0.1,
        corruption=0.05,
        weights=[0.6, 0.35, 0.05],
        random_state=0,
    )
    found, _ = whitened_rows(
        MemoryEngine(Problem.from_arrays(X, y)).sample(20_000, 0), intercept=True
    )
    return found


def run(rows, checkpoint=None):
    proposer = Proposer(np.random.default_rng(5))
    with threadpool_limits(1, "blas"):
        state = search_in_stages(rows, proposer, Control(Settings()), checkpoint=checkpoint)
    return bits(
        {
            "model": vars(state.current.model),
            "attempts": [str(attempt) for attempt in state.attempts],
            "generator": state.proposer.rng.bit_generator.state,
        }
    )


def test_a_crash_in_any_stage_changes_nothing(rows, tmp_path):
    whole = run(rows)
    counted = Watched.at(tmp_path / "counted")
    assert run(rows, counted) == whole
    previews = [section for section in counted.sections if section.startswith("preview")]
    assert previews, "there was no first stage"
    for crash in range(1, counted.puts + 1):
        path = tmp_path / f"crash-{crash}"
        with pytest.raises(CrashError):
            run(rows, Watched.at(path, crash))
        assert run(rows, Watched.at(path)) == whole


# --- through the estimator ------------------------------------------------------------------------


def table(n=22_000):
    X, y, _ = make_mlrc(n, 2, 2, noise=0.6, corruption=0.1, random_state=1)
    return X, y


def fitted(X, y, **options):
    return MixedLinearRegression(random_state=0, **options).fit(X, y)


@cache
def undisturbed():
    return fitted(*table())


def same(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert [str(a) for a in one.mixture_.attempts] == [str(a) for a in other.mixture_.attempts]


@pytest.mark.parametrize("crash", ["search", "polish", "labels"])
def test_a_fit_goes_on_from_where_it_was(crash, tmp_path, monkeypatch):
    whole, (X, y) = undisturbed(), table()
    path = tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patch:
        if crash == "labels":
            patch.setattr(fit_module, "to_mixture", _crash)
        else:
            put = Checkpoint.put
            patch.setattr(Checkpoint, "put", _crashing_put(put, crash))
        with pytest.raises(CrashError):
            fitted(X, y, checkpoint=path)
    assert path.exists()
    looked = []
    search = fit_module.polish

    def counting(engine, begun, note):
        looked.append(begun.step)
        return search(engine, begun, note)

    monkeypatch.setattr(fit_module, "polish", counting)
    same(fitted(X, y, checkpoint=path), whole)
    assert not path.exists(), "a finished fit leaves no file"
    assert (looked[0] > 0) == (crash == "labels")


def _crash(*args, **options):
    raise CrashError


def _crashing_put(put, section):
    def crashing(self, name, values):
        put(self, name, values)
        if name.startswith(section):
            raise CrashError

    return crashing


def test_another_table_or_other_settings_are_refused(tmp_path, monkeypatch):
    X, y = table(3000)
    path = tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patch:
        patch.setattr(fit_module, "to_mixture", _crash)
        with pytest.raises(CrashError):
            fitted(X, y, checkpoint=path)
    for rows, options in (((X, y + 1e-9), {}), ((X[::-1], y), {}), ((X, y), {"n_components": 2})):
        with pytest.raises(CheckpointError, match=r"fit\.checkpoint"):
            fitted(*rows, checkpoint=path, **options)
    # The order of the rows is not the table: the same fit goes on.
    order = np.random.default_rng(0).permutation(len(y))
    again = fitted(X[order], y[order], checkpoint=path)
    np.testing.assert_allclose(again.coef_, fitted(X, y).coef_, rtol=1e-9)


def test_a_search_that_was_cut_short_goes_on_and_is_polished_anew(tmp_path):
    X, y, _ = make_mlrc(21_000, 2, 6, noise=0.1, random_state=3)
    path = tmp_path / "fit.checkpoint"
    with pytest.warns(ConvergenceWarning, match="max_starts"):
        short = fitted(X, y, checkpoint=path, max_starts=1)
    assert path.exists()
    whole = fitted(X, y)
    assert short.n_components_ < whole.n_components_
    same(fitted(X, y, checkpoint=path), whole)
