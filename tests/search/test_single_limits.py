"""A trimmed fit that is stopped answers with its best so far, says why, and can go on."""

import re

import numpy as np
import pytest

from regimix import TrimmedRegressor
from regimix.engines.parts import PartTable, RawRows
from regimix.errors import (
    CheckpointError,
    ConvergenceWarning,
    OutOfTimeError,
    ParameterError,
    StoppedError,
    StopReason,
)
from regimix.model.em import DEADLINE
from tests.oracles import one_regime

STAGES = {"starts", "samples", "all rows"}


@pytest.fixture(scope="module")
def rows():
    X, y, _ = one_regime(3, n=60_000, d=3, noise=0.5)
    return X, y


def in_parts(X, y, size=20_000):
    def reader(first):
        part = slice(first, first + size)
        return lambda: [RawRows(X[part], y[part])]

    firsts = range(0, len(y), size)
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    return PartTable(names, "y", tuple(map(reader, firsts)), tuple(f"part {i}" for i in firsts))


def stop_at(stage, how, count=1):
    """Return a callback that stops when it has seen a stage so often, and what it saw."""
    seen = []

    def callback(progress):
        seen.append(progress.stage)
        if seen.count(stage) < count:
            return False
        if how == "interrupted":
            raise KeyboardInterrupt
        return how == "callback"

    return callback, seen


@pytest.mark.parametrize("kept", ["memory", "parts"])
@pytest.mark.parametrize("stage", sorted(STAGES))
@pytest.mark.parametrize("how", ["callback", "interrupted"])
def test_a_stop_is_answered_with_the_best_so_far(rows, stage, how, kept):
    X, y = rows
    given = (in_parts(X, y),) if kept == "parts" else rows
    callback, seen = stop_at(stage, how)
    with pytest.warns(ConvergenceWarning, match="stopped early") as told:
        fit = TrimmedRegressor(random_state=0, callback=callback).fit(*given)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert fit.stopped_ == StopReason(how)
    assert seen[-1] == stage
    assert fit.inlier_mask_.shape == y.shape
    # One outlier in ten does not fool even the first start.
    whole = TrimmedRegressor(random_state=0).fit(*rows)
    np.testing.assert_allclose(fit.coef_, whole.coef_, atol=0.05)
    assert fit.objective_ == fit.objective_path_[-1] > 0
    assert whole.stopped_ == "fixed point"


def test_without_time_there_is_an_answer(rows):
    with pytest.warns(ConvergenceWarning, match="the time_limit of 1e-09 seconds was reached"):
        fit = TrimmedRegressor(random_state=0, time_limit=1e-9).fit(*rows)
    assert fit.stopped_ == StopReason.TIME_LIMIT
    assert np.isfinite(fit.coef_).all()
    assert np.isnan(fit.evidence_)
    assert DEADLINE.get() == np.inf


def test_a_deadline_ends_whatever_is_being_done(rows, monkeypatch):
    """The clock is asked between the rounds of every stage."""
    asked = []
    callback, seen = stop_at("nothing", "callback")

    def clock():
        asked.append(len(seen))
        return 100.0 if "all rows" in seen else 0.0

    monkeypatch.setattr("regimix.search.settings.time.monotonic", clock)
    with pytest.warns(ConvergenceWarning, match="time_limit of 50 seconds"):
        TrimmedRegressor(random_state=0, time_limit=50, callback=callback).fit(*rows)
    assert set(seen) == STAGES
    assert seen.count("all rows") == 1


def test_a_stop_while_rows_are_read_has_an_error_of_its_own(rows):
    table = in_parts(*rows)
    with pytest.raises(StoppedError, match="rows were still being read"):
        TrimmedRegressor(random_state=0, callback=lambda progress: True).fit(table)
    with pytest.raises(OutOfTimeError, match="time_limit of 1e-09 seconds"):
        TrimmedRegressor(random_state=0, time_limit=1e-9).fit(table)


def test_a_callback_sees_every_stage(rows):
    callback, seen = stop_at("nothing", "callback")
    TrimmedRegressor(random_state=0, callback=callback).fit(*rows)
    assert list(dict.fromkeys(seen)) == ["starts", "samples", "all rows"]


@pytest.mark.filterwarnings("ignore::regimix.errors.ConvergenceWarning")
def test_an_answer_is_not_lost_in_the_last_passes(rows):
    table = in_parts(*rows)
    callback, seen = stop_at("nothing", "callback")
    TrimmedRegressor(random_state=0, callback=callback).fit(table)
    for left in range(2 * len(table.readers)):
        callback, _ = stop_at("reading", "callback", count=seen.count("reading") - left)
        fit = TrimmedRegressor(random_state=0, callback=callback).fit(table)
        assert fit.inlier_mask_.shape == rows[1].shape


def test_a_fit_that_is_done_is_not_stopped(rows):
    whole = TrimmedRegressor(random_state=0).fit(*rows)
    callback, seen = stop_at("all rows", "callback", count=whole.n_iter_ + 1)
    fit = TrimmedRegressor(random_state=0, callback=callback).fit(*rows)
    assert seen.count("all rows") == whole.n_iter_
    assert fit.stopped_ == "fixed point"


@pytest.mark.parametrize(
    ("name", "value"), [("time_limit", 0), ("callback", "yes"), ("checkpoint", 3)]
)
def test_limits_that_make_no_sense_are_refused(rows, name, value):
    with pytest.raises(ParameterError, match=name):
        TrimmedRegressor(**{name: value}).fit(*rows)


# --- checkpoints ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["memory", "parts"])
def test_a_fit_goes_on_to_the_same_answer(rows, tmp_path, kept):
    given = (in_parts(*rows),) if kept == "parts" else rows
    whole = TrimmedRegressor(keep=0.6, random_state=0).fit(*given)
    path = tmp_path / "fit.checkpoint"
    for stage in ("samples", "all rows", "all rows"):
        callback, _ = stop_at(stage, "callback")
        with pytest.warns(ConvergenceWarning, match="callback asked"):
            TrimmedRegressor(keep=0.6, random_state=0, callback=callback, checkpoint=path).fit(
                *given
            )
        assert path.exists()
    callback, seen = stop_at("nothing", "callback")
    # The seed is that of the fit which began.
    fit = TrimmedRegressor(keep=0.6, callback=callback, checkpoint=path).fit(*given)
    assert "starts" not in seen
    assert not path.exists()
    for name in ("coef_", "intercept_", "scale_", "inlier_mask_", "objective_path_", "n_iter_"):
        np.testing.assert_array_equal(getattr(fit, name), getattr(whole, name))


def test_a_checkpoint_of_another_fit_is_refused(rows, tmp_path):
    path = tmp_path / "fit.checkpoint"
    callback, _ = stop_at("samples", "callback")
    with pytest.warns(ConvergenceWarning):
        TrimmedRegressor(random_state=0, callback=callback, checkpoint=path).fit(*rows)
    with pytest.raises(CheckpointError, match=re.escape("keep is 'auto' there and 0.6 here")):
        TrimmedRegressor(keep=0.6, random_state=0, checkpoint=path).fit(*rows)
