"""After a crash, wherever it comes, a search goes on from its checkpoint to the same end."""

import json
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import CheckpointError
from regimix.model.em import Parameters, evaluate
from regimix.model.rows import whitened_rows
from regimix.search.algorithm2 import Peeling
from regimix.search.checkpoint import Checkpoint
from regimix.search.loop import Search, search_model
from regimix.search.net import net_source
from regimix.search.propose import Proposer
from regimix.search.selection import Weighed, select
from regimix.search.settings import Control, Settings
from regimix.synth import make_mlrc
from tests.search.crashes import CrashError, Watched, bits, needs_sigkill

ROOT = Path(__file__).parents[2]

# --- the default search ---------------------------------------------------------------------------


@cache
def scene(*size, count=None, starts=False, **options):
    """Rows for a search, and what it is told."""
    X, y, truth = make_mlrc(*size, random_state=0, **options)
    engine = MemoryEngine(Problem.from_arrays(X, y))
    rows, _ = whitened_rows(engine.sample(20_000, 0), intercept=True)
    given = None
    if starts:
        coef = np.asfortranarray(np.column_stack([truth.intercept, truth.coef])[:2])
        halves = np.array([0.5, 0.5])
        given = Parameters.point(coef, halves, 0.8 * halves, ("given", "given"))
    return rows, {"n_components": count, "given": given}


SCENES = {
    "many": (lambda: scene(600, 3, 6, noise=0.02, features="half-binary")),
    "wide": (lambda: scene(250, 20, 2, noise=0.1, corruption=0.3)),
    "more": (lambda: scene(150, 2, 2, count=4, noise=0.2)),
    "fewer": (lambda: scene(240, 2, 5, count=3, noise=0.2)),
    "given": (lambda: scene(200, 2, 3, starts=True, noise=0.2, corruption=0.1)),
}
named = pytest.mark.parametrize("name", SCENES)


@cache
def whole(name):
    """Return what a search ends with that nothing disturbs."""
    return outcome(run(name))


def run(name, checkpoint=None, **told):
    rows, options = SCENES[name]()
    proposer = Proposer(np.random.default_rng(5))
    control = Control(Settings(**told))
    with threadpool_limits(1, "blas"):  # as fits of small tables have it
        return search_model(rows, proposer, control, checkpoint=checkpoint, **options)


def outcome(state: Search):
    """Return all that a search ends with, to the last bit."""
    spectrum = state.proposer.spectrum
    if state.current.model.m:
        state.path.complete(state.rows, state.current)
    weighed = {m: Weighed(seen) for m, seen in state.path.best.items()}
    selection = select(state.rows, weighed, state.current.model.m)
    return bits(
        {
            "current": vars(state.current.model),
            "score": state.current.score,
            "posterior": state.current.posterior,
            "evidence": state.current.log_evidence,
            "attempts": [str(attempt) for attempt in state.attempts],
            "gains": [attempt.gain for attempt in state.attempts],
            "tried": sorted(map(repr, state.tried)),
            "generator": state.proposer.rng.bit_generator.state,
            "count": state.proposer.n_proposals,
            "spectrum": None if spectrum is None else vars(spectrum),
            "selection": {**selection.as_dict(), "chosen": selection.chosen},
            "stopped": state.stopped,
        }
    )


@named
def test_posteriors_follow_from_the_model_to_the_last_bit(name, monkeypatch):
    """What is written down is the model alone: it must say everything."""
    looked = []

    def save(state):
        for fitted in (state.current, *state.path.best.values()):
            again = evaluate(state.rows, fitted.base)
            looked.append(fitted.model.m)
            assert again.score == fitted.score
            assert np.array_equal(again.posterior, fitted.posterior)
            assert np.array_equal(again.log_evidence, fitted.log_evidence)
            assert np.array_equal(again.model.coef, fitted.model.coef)

    monkeypatch.setattr(Search, "save", save)
    run(name)
    assert max(looked) > 1


@named
def test_a_checkpoint_does_not_change_the_answer(name, tmp_path):
    watched = Watched.at(tmp_path / "c")
    state = run(name, watched)
    assert outcome(state) == whole(name)
    accepted = sum(attempt.accepted for attempt in state.attempts)
    assert accepted
    assert watched.puts >= accepted + 3  # every accepted move, and every phase


@pytest.mark.parametrize("name", ["wide", "more"])
def test_a_crash_in_any_callback_changes_nothing(name, tmp_path):
    calls = []
    run(name, callback=calls.append)
    for last in range(1, len(calls) + 1):
        seen = []

        def crash(progress, seen=seen, last=last):
            seen.append(progress)
            if len(seen) == last:
                raise CrashError

        path = tmp_path / f"c{last}"
        with pytest.raises(CrashError):
            run(name, Checkpoint.open(path, "f"), callback=crash)
        assert outcome(run(name, Checkpoint.open(path, "f"))) == whole(name)


@named
def test_crash_upon_crash_still_arrives(name, tmp_path):
    """Every run gets one accepted move or phase further and dies: what a crash loses stays lost."""
    path, crashes = tmp_path / "c", 0
    while True:
        try:
            state = run(name, Watched.at(path, 1))
        except CrashError:
            crashes += 1
        else:
            break
    assert crashes > 3
    assert outcome(state) == whole(name)


def test_what_was_accepted_is_not_searched_again(tmp_path):
    path, before, after = tmp_path / "c", [], []
    with pytest.raises(CrashError):  # the model is filled, the next phase begun, a move accepted
        run("many", Watched.at(path, 3), callback=before.append)
    run("many", Checkpoint.open(path, "f"), callback=after.append)
    calls = []
    run("many", callback=calls.append)
    # Only of the move after which it crashed nobody was told.
    assert len(before) + 1 + len(after) == len(calls)
    assert after[0].n_starts > before[-1].n_starts


def test_a_finished_search_is_not_made_again(tmp_path, monkeypatch):
    path = tmp_path / "c"
    expected = outcome(run("many", Checkpoint.open(path, "f")))
    for source in ("propose", "joint", "split"):
        monkeypatch.delattr(Proposer, source)
    assert outcome(run("many", Checkpoint.open(path, "f"))) == expected


@pytest.mark.parametrize("end", ["max_starts", "callback", "interrupted", "time_limit"])
def test_a_search_that_was_stopped_goes_on_when_it_is_asked_again(tmp_path, end):
    def stop(progress):
        if progress.n_starts >= 150 and end == "interrupted":
            raise KeyboardInterrupt
        return progress.n_starts >= 150

    path = tmp_path / "c"
    told = {"max_starts": {"max_starts": 150}, "time_limit": {"time_limit": 1e-9}}
    state = run("many", Checkpoint.open(path, "f"), **told.get(end, {"callback": stop}))
    assert state.stopped == end
    assert state.phase in ("first", "moves")
    saved = Checkpoint.open(path, "f").get("search 0")
    assert np.array_equal(saved["current"]["coef"], state.current.base.coef)
    assert outcome(run("many", Checkpoint.open(path, "f"))) == whole("many")


def test_a_checkpoint_that_can_no_longer_be_written_ends_the_search(tmp_path):
    (tmp_path / "folder").mkdir()
    begun = Checkpoint.open(tmp_path / "folder" / "c", "f")
    begun.path.unlink()
    begun.path.parent.rmdir()
    with pytest.raises(CheckpointError, match="cannot be written"):
        run("wide", begun)


KILLED = """
import os, signal, sys
from tests.search.test_resume import Checkpoint, run
path, last = sys.argv[1], int(sys.argv[2])
begun = Checkpoint.open(path, "f")
def look(progress):
    saved = begun.get("search 0")
    if saved is not None and sum(a["accepted"] for a in saved["attempts"]) == last:
        os.kill(os.getpid(), signal.SIGKILL)
run("many", begun, callback=look)
"""


@needs_sigkill
@pytest.mark.parametrize("last", [1, 2])
def test_a_killed_process_is_taken_up_by_another(tmp_path, last):
    path = tmp_path / "c"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(last)], cwd=ROOT, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    content = json.loads(path.read_bytes().partition(b"\n")[2])
    saved = json.loads(content["sections"]["search 0"])
    assert saved["phase"] == ("first" if last == 1 else "moves")
    state = run("many", Checkpoint.open(path, "f"))
    assert outcome(state) == whole("many")


# --- Algorithm 2 ----------------------------------------------------------------------------------

PEELS = {
    "given": {"taus": [0.42, 0.5, 0.42], "max_starts": 12},
    "geometric": {"n_components": 2, "max_starts": 12},
    "until none": {"max_starts": 4, "ratio": 0.65},
}
peels = pytest.mark.parametrize("kind", PEELS)


def peeled(kind, checkpoint=None, weighted=False, **told):
    X, y, _ = make_mlrc(300, 4, 2, random_state=1, norms=1.0, corruption_ratio=0.1)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    engine = MemoryEngine(Problem.from_arrays(X, y, weights, fit_intercept=False))
    source = net_source(engine, 2, seed=1)
    options = {"checkpoint": checkpoint, **PEELS[kind], **told}
    return Peeling(engine, source, tolerance=1e-4, **options).run()


def told_of(found):
    names = ("theta", "share", "tau", "start", "source")
    return bits(
        {
            "accepted": [[getattr(one, name) for name in names] for one in found.accepted],
            "rejected": [vars(tried) for tried in found.rejected],
            "stopped": found.stopped,
            "n_starts": found.n_starts,
        }
    )


@peels
@pytest.mark.parametrize("weighted", [False, True])
def test_peeling_goes_on_after_a_crash_at_any_step(kind, weighted, tmp_path):
    found = peeled(kind, weighted=weighted)
    assert len(found.accepted) > 1
    assert found.rejected
    steps = len(found.accepted) + len(found.rejected)
    for crash in range(1, steps + 1):
        path = tmp_path / f"c{crash}"
        with pytest.raises(CrashError):
            peeled(kind, Watched.at(path, crash), weighted)
        again = Watched.at(path)
        assert told_of(peeled(kind, again, weighted)) == told_of(found)
        assert again.puts == steps - crash


@peels
def test_peeling_that_was_stopped_within_a_share_tries_it_again(kind, tmp_path):
    whole, calls = peeled(kind), []
    peeled(kind, callback=lambda *state: calls.append(state))
    assert calls
    for last in range(1, len(calls) + 1):
        seen = []

        def stop(_, n_tried, seen=seen, last=last):
            seen.append(n_tried)
            return len(seen) == last

        path = tmp_path / f"c{last}"
        assert peeled(kind, Checkpoint.open(path, "f"), callback=stop).stopped == "callback"
        assert told_of(peeled(kind, Checkpoint.open(path, "f"))) == told_of(whole)
