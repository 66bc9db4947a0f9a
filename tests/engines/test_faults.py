"""Workers that die, hang or cannot read: the same answer, or a clear word in good time."""

import os
import signal
import socketserver
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import count
from threading import Thread, Timer

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from regimix import MixedLinearRegression
from regimix.engines import dask as dask_engine
from regimix.engines import partition
from regimix.engines.parts import PartTable
from regimix.errors import (
    ClusterError,
    ConvergenceWarning,
    DataError,
    OutOfTimeError,
    StoppedError,
)
from regimix.result import fit as mixture_fit
from regimix.search import loop
from regimix.search.numbers import SEARCH
from tests.engines.clusters import (
    DieAt,
    DieInTask,
    MadeRows,
    WaitWhile,
    always_die,
    fail,
    far_cluster,
    made_table,
    small_cluster,
)
from tests.patience import ENOUGH, Clock

PARTS, PART_ROWS = 4, 600


@pytest.fixture(scope="module")
def client():
    with small_cluster() as client:
        yield client


@pytest.fixture(autouse=True)
def a_small_search(monkeypatch):
    search_little(monkeypatch)


def search_little(patch):
    """Search few rows, once, so that there is something left to polish on all of them."""
    patch.setattr(mixture_fit, "SEARCH_ROWS", 500)
    patch.setattr(mixture_fit, "SEARCH_ROWS_PER_COEFFICIENT", 100)
    patch.setattr(loop, "SEARCH", replace(SEARCH, most_searches=1))


@pytest.fixture
def not_held(monkeypatch):
    """Let workers read their parts anew in every pass."""
    monkeypatch.setattr(dask_engine, "HELD_SHARE", 0.0)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(dask_engine, "PATIENCE", 1.0)


def table_of(before=None, *, part=1, on_cluster=True):
    """Four parts; before one of them is read, something happens."""
    readers = tuple(MadeRows(i, PART_ROWS, before if i == part else None) for i in range(PARTS))
    names = tuple(f"file{i}.bin" for i in range(PARTS))
    return PartTable(("a", "b", "c"), "y", readers, names, on_cluster=on_cluster)


@pytest.fixture(scope="module")
def expected():
    """The same table in memory, with the same small search."""
    parts = [made_table(part, PART_ROWS) for part in range(PARTS)]
    with pytest.MonkeyPatch.context() as patch:
        search_little(patch)
        columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        return MixedLinearRegression(random_state=0).fit(*columns)


def same_answer(fit, expected):
    np.testing.assert_allclose(fit.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(np.asarray(fit.labels_), expected.labels_)


def worker_pids(client):
    return list(client.run(os.getpid).values())


# --- a worker is killed ---------------------------------------------------------------------------


def calls_of_a_fit(tmp_path, expected):
    """Count how often a fit reads a part that is not held."""
    hook = DieAt(tmp_path / "calls", -1)
    same_answer(MixedLinearRegression(random_state=0).fit(table_of(hook)), expected)
    return hook.count


def test_a_worker_killed_in_any_pass_that_reads(client, not_held, expected, tmp_path):
    """At the door, and while rows are labelled."""
    calls = calls_of_a_fit(tmp_path, expected)
    assert calls >= 6  # door, door, draw, at least two rounds, errors, labels
    for call in (2, calls):
        hook = DieAt(tmp_path / f"call{call}", call)
        fit = MixedLinearRegression(random_state=0).fit(table_of(hook))
        same_answer(fit, expected)
        assert hook.count > calls  # it was killed, and somebody else did it again


def test_a_worker_killed_with_the_parts_it_holds(client, expected, tmp_path, monkeypatch):
    """During a round and during labelling: what it held is read again by others."""
    tasks = DieAt(tmp_path / "tasks", -1)
    monkeypatch.setattr(dask_engine, "_run", DieInTask(2, tasks))
    same_answer(MixedLinearRegression(random_state=0).fit(table_of()), expected)
    calls = tasks.count  # read now: labels of this fit that are lost later are computed again
    for call in (calls // 2 + 1, calls):
        die = DieAt(tmp_path / f"task{call}", call)
        monkeypatch.setattr(dask_engine, "_run", DieInTask(2, die))
        same_answer(MixedLinearRegression(random_state=0).fit(table_of()), expected)
        assert die.count > calls


def test_a_worker_killed_during_the_search(client, expected):
    """The driver searches alone; the next pass finds one worker fewer."""
    killed = []

    def callback(progress):
        if progress.stage != "reading" and not killed:
            killed.append(worker_pids(client)[0])
            os.kill(killed[0], signal.SIGKILL)

    fit = MixedLinearRegression(random_state=0, callback=callback).fit(table_of())
    same_answer(fit, expected)
    assert killed


def test_a_worker_killed_in_a_round_by_the_user_s_own_graph(client, expected, tmp_path, not_held):
    hook = DieAt(tmp_path / "calls", 5)  # the size, the door twice, the draw, and a round of EM

    def block(block_info=None):
        place = block_info[None]["chunk-location"][0]
        if place == 1:
            hook()
        return np.column_stack(made_table(place, PART_ROWS))

    whole = da.map_blocks(block, chunks=((PART_ROWS,) * PARTS, (4,)), dtype=float)
    fit = MixedLinearRegression(random_state=0).fit(whole[:, :3], whole[:, 3])
    same_answer(fit, expected)
    assert hook.count > 5


def test_a_part_that_kills_every_worker_is_not_tried_for_ever():
    """On a cluster of its own: Dask may give up a worker that has died too often."""
    with small_cluster(1) as client:
        client.cluster.scheduler.allowed_failures = 0
        with pytest.raises(ClusterError, match="died again and again"):
            MixedLinearRegression(random_state=0).fit(table_of(always_die))


# --- a part cannot be read ------------------------------------------------------------------------


@pytest.mark.parametrize("on_cluster", [True, False])
@pytest.mark.parametrize("part", [0, 2])
def test_a_part_that_cannot_be_read_is_named(client, on_cluster, part):
    with pytest.raises(DataError, match=rf"file{part}\.bin.*disk is broken"):
        MixedLinearRegression().fit(table_of(fail, part=part, on_cluster=on_cluster))


def test_a_file_that_was_cut_off_is_named(client, tmp_path):
    for part in range(3):
        X, y = made_table(part, 200)
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
        frame.to_parquet(tmp_path / f"part{part}.parquet")
    parts = dd.read_parquet(tmp_path)
    X, y = parts[["a", "b", "c"]], parts["y"]
    last = tmp_path / "part2.parquet"
    last.write_bytes(last.read_bytes()[:500])
    with pytest.raises(DataError, match=r"part(ition)? 2.*cannot be read"):
        MixedLinearRegression().fit(X, y)
    last.unlink()
    with pytest.raises(DataError, match=r"part(ition)? 2.*cannot be read"):
        MixedLinearRegression().fit(X, y)


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("pattern", ["", "*.parquet"])
def test_a_file_replaced_early_in_a_fit_is_named(client, tmp_path, gone, pattern):
    for part in range(3):
        X, y = made_table(part, 200)
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
        frame.to_parquet(tmp_path / f"part{part}.parquet")
    parts, replaced = dd.read_parquet(str(tmp_path / pattern)), []

    def callback(progress):
        if not replaced and progress.parts_done == progress.n_parts:
            replaced.append(tmp_path / "part1.parquet")
            (frame + 1).to_parquet(tmp_path / "new")
            (tmp_path / "new").replace(replaced[0])
            if gone:
                replaced[0].unlink()

    with pytest.raises(DataError, match=r"'part1.parquet' has changed since the fit began"):
        MixedLinearRegression(callback=callback).fit(parts[["a", "b", "c"]], parts["y"])
    assert replaced


# --- nobody answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0, 2])
def test_a_part_that_never_comes_ends_at_the_time_limit(client, tmp_path, part):
    """Even the first, by which the size of the others is judged."""
    flag = tmp_path / "wait"
    flag.touch()
    try:
        with pytest.raises(OutOfTimeError, match="time_limit of 1 seconds"):
            MixedLinearRegression(random_state=0, time_limit=1.0).fit(
                table_of(WaitWhile(flag), part=part)
            )
    finally:
        flag.unlink()


def test_a_worker_that_stands_still_does_not_stall_the_answer(client, expected, monkeypatch):
    """The answer so far, or a word that there is none; not a fit that waits for ever."""
    stopped, clock = [], Clock(monkeypatch)

    def callback(progress):
        if progress.stage != "reading" and not stopped:
            stopped.extend(worker_pids(client))
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
        elif progress.stage == "reading" and stopped:
            clock.runs = True  # the search is over, and its answer waits for workers

    def go_on():
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)

    waker = Timer(ENOUGH, go_on)  # a test that fails must end
    waker.start()
    try:
        with pytest.warns(ConvergenceWarning, match="time_limit of 1 seconds"):
            fit = MixedLinearRegression(random_state=0, time_limit=1.0, callback=callback).fit(
                table_of()
            )
        assert waker.is_alive()  # else somebody worked again
    finally:
        waker.cancel()
        go_on()
    assert stopped
    # The fit to the rows of the search; labels are there once somebody works again.
    np.testing.assert_allclose(fit.coef_, expected.coef_, atol=0.1)
    assert np.mean(np.asarray(fit.labels_) == expected.labels_) > 0.9


def test_a_callback_may_stop_the_reading(client):
    calls = count()
    with pytest.raises(StoppedError):
        MixedLinearRegression(callback=lambda progress: next(calls) >= 0).fit(table_of())
    assert next(calls) == 1


# --- the scheduler stands still -------------------------------------------------------------------


@contextmanager
def frozen(pid):
    """Suspend a process; wake it afterwards, or when a test that fails must end."""
    os.kill(pid, signal.SIGSTOP)
    waker = Timer(ENOUGH, os.kill, (pid, signal.SIGCONT))
    waker.start()
    try:
        yield
        assert waker.is_alive()  # else nobody knows what would have happened
    finally:
        waker.cancel()
        os.kill(pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def far_client():
    with far_cluster() as client:
        yield client


def pid_of_scheduler(client):
    return client.run_on_scheduler(os.getpid)


@pytest.mark.parametrize("stage", ["reading", "later"])
def test_a_frozen_scheduler_does_not_stop_the_clock(far_client, stage, monkeypatch, expected):
    """While rows are read there is no answer yet; later it is that of the search."""
    pid, clock = pid_of_scheduler(far_client), Clock(monkeypatch)
    stopped = []
    with ExitStack() as stack:

        def callback(progress):
            reading = progress.stage == "reading"
            if not stopped and reading == (stage == "reading"):
                stopped.append(stack.enter_context(frozen(pid)))
            elif reading and stopped:
                clock.runs = True  # the search is over: its answer does not hurry

        model = MixedLinearRegression(random_state=0, time_limit=3.0, callback=callback)
        if stage == "reading":
            with pytest.raises(OutOfTimeError, match="a scheduler or a worker that does not"):
                model.fit(table_of())
            return
        with pytest.warns(ConvergenceWarning, match="time_limit of 3 seconds"):
            model.fit(table_of())
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=0.1)


def test_a_frozen_scheduler_and_algorithm_2(far_client, monkeypatch):
    """What is left to do cannot be done: nobody waits another minute for it."""
    pid, clock = pid_of_scheduler(far_client), Clock(monkeypatch)
    monkeypatch.setattr(partition, "LAST_SECONDS", 10 * ENOUGH)
    stopped = []
    with ExitStack() as stack:

        def callback(progress):
            if not stopped and progress.stage != "reading":
                stopped.append(stack.enter_context(frozen(pid)))
            elif progress.stage == "reading" and stopped:
                clock.runs = True  # a pass has begun to wait

        model = MixedLinearRegression(
            random_state=0, search="net", time_limit=3.0, callback=callback
        )
        with pytest.raises(OutOfTimeError):
            model.fit(table_of())


def test_a_frozen_scheduler_listens_to_the_callback(far_client):
    """By which the command line hears Ctrl-C."""
    calls = count()
    # It is frozen before a row is read: later there is a best so far.
    model = MixedLinearRegression(
        random_state=0, callback=lambda _: next(calls) == 3 / dask_engine.POLL
    )
    with frozen(pid_of_scheduler(far_client)), pytest.raises(StoppedError):
        model.fit(table_of())


def test_a_frozen_scheduler_can_be_interrupted(far_client):
    calls = count()

    def callback(progress):
        if next(calls) == 3 / dask_engine.POLL:
            signal.raise_signal(signal.SIGINT)

    model = MixedLinearRegression(random_state=0, callback=callback)
    with frozen(pid_of_scheduler(far_client)), pytest.raises(KeyboardInterrupt):
        model.fit(table_of())


def test_a_scheduler_that_is_silent_for_long_is_given_up(far_client, monkeypatch):
    monkeypatch.setattr(dask_engine, "SILENT", 2.0)
    pid, calls = pid_of_scheduler(far_client), count()
    with ExitStack() as stack:

        def callback(progress):
            if next(calls) == 0:
                stack.enter_context(frozen(pid))

        with pytest.raises(ClusterError, match="scheduler of the cluster has not answered for 2"):
            MixedLinearRegression(random_state=0, callback=callback).fit(table_of())


def test_a_client_of_ours_leaves_a_frozen_scheduler(far_client):
    with ExitStack() as stack, dask_engine.connected(far_client.scheduler.address) as client:
        stack.enter_context(frozen(pid_of_scheduler(client)))


# --- the whole cluster is lost --------------------------------------------------------------------


def test_all_workers_lost_and_back_again(impatient, expected, tmp_path):
    """A clear error; with a checkpoint, the next fit goes on from where this one was."""
    checkpoint, lose = tmp_path / "fit.checkpoint", []
    with small_cluster(1) as client:
        cluster, told = client.cluster, []

        def callback(progress):
            told.append(progress.stage)
            if lose and checkpoint.exists():
                lose.clear()
                cluster.scale(0)

        fit = MixedLinearRegression(random_state=0, checkpoint=checkpoint, callback=callback)
        lose.append(True)
        with pytest.raises(ClusterError, match="all workers of the cluster are lost"):
            fit.fit(table_of())
        assert checkpoint.exists()
        searched = sum(stage != "reading" for stage in told)
        cluster.scale(1)
        client.wait_for_workers(1, timeout=ENOUGH)
        told.clear()
        same_answer(fit.fit(table_of()), expected)
        assert sum(stage != "reading" for stage in told) < searched
        assert not checkpoint.exists()


def test_the_scheduler_closed_in_the_middle_of_a_pass(tmp_path):
    flag = tmp_path / "wait"
    flag.touch()
    with small_cluster(1) as client:
        cluster, calls = client.cluster, count()

        def callback(progress):
            if next(calls) == 3:
                cluster.close()
                flag.unlink()

        with pytest.raises(ClusterError, match="scheduler"):
            MixedLinearRegression(callback=callback).fit(table_of(WaitWhile(flag)))


# --- an address and who is there ------------------------------------------------------------------


@pytest.mark.parametrize("times", [1, 10**9])
def test_a_greeting_that_is_not_understood_is_asked_for_again(far_client, monkeypatch, times):
    """A scheduler that is busy with other clients sends its first messages together."""
    calls, make = count(), dask_engine.Client

    def client(*given, **options):
        assert next(calls) >= times
        return make(*given, **options)

    monkeypatch.setattr(dask_engine, "Client", client)
    if times > 1:
        monkeypatch.setattr(dask_engine, "CONNECT", 0.1)
        with pytest.raises(OSError, match="scheduler"), dask_engine.connected("tcp://nobody:1"):
            pass
        return
    with dask_engine.connected(far_client.scheduler.address) as found:
        assert pid_of_scheduler(found) == pid_of_scheduler(far_client)


@pytest.mark.parametrize("answers", [True, False])
def test_what_is_no_scheduler_is_not_waited_for(monkeypatch, answers):
    """A port may belong to anything: to a server of pages, or to one that says nothing."""
    monkeypatch.setattr(dask_engine, "CONNECT", 0.5)
    with _Server(("127.0.0.1", 0), _Pages if answers else _Silence) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.server_address[1]}"
        with pytest.raises(OSError), dask_engine.connected(address):  # noqa: PT011 - in Dask's words
            pass
        server.shutdown()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


class _Pages(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


class _Silence(socketserver.BaseRequestHandler):
    def handle(self):
        with suppress(OSError):
            while self.request.recv(1024):
                pass
