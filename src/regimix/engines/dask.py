"""Tables on a Dask cluster: workers read their own parts, the driver sees only sums.

Every pass is one task a part and a tree of additions. Parts stay with the workers between passes
where the cluster has room for them. Tasks make their own data from the user's graph, so a worker
that is lost takes nothing with it that another could not make again.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from functools import reduce
from operator import attrgetter
from pathlib import PurePath
from typing import Any, TypeVar

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, Future, LocalCluster, default_client, futures_of, wait
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker
from fsspec.core import url_to_fs

from regimix.data.validation import Table, read_vector
from regimix.engines.base import combine
from regimix.engines.parquet import FileMark, mark_of
from regimix.engines.parts import PartTable, PassStopped, RawRows, Task, Watch, name_of
from regimix.errors import (
    ClusterError,
    DataError,
    DataKindError,
    Message,
    RegimixError,
    Setting,
    StopReason,
)
from regimix.paths import is_table_file

T = TypeVar("T")
Names = tuple[str, ...]

# Parts are kept by the workers if they take up to this share of their memory.
HELD_SHARE = 0.4
# Results that one task adds up.
TREE = 8
# Seconds between two looks at the work, and at the workers; how long there may be none of them, and
# how long if they are starting, which takes minutes on a busy machine. A scheduler may be as slow.
POLL = 0.1
LOOK = 1.0
PATIENCE = 30.0
STARTING = SILENT = 600.0
GONE = Message(
    "the cluster dropped the work: its scheduler was stopped, or restarted, or cannot be reached. "
    "Start it and fit again; with a ",
    Setting("checkpoint"),
    " file the fit goes on from where it was.",
)
GUARD = (
    'In a script, call fit below a line `if __name__ == "__main__":`, for workers read the script '
    "again when they start."
)
# Seconds until a scheduler must have answered.
CONNECT = 30.0
SMALLER = "use more and smaller partitions, or workers with more memory."
WORKER_FAILURES: dict[type[Exception], str] = {
    KilledWorker: "workers died again and again at the same task ({}); most often their memory is "
    f"too small for the partitions: {SMALLER}",
    ImportError: "a worker cannot load what it needs ({}): install regimix[dask], of this version, "
    "where the workers run.",
    MemoryError: f"a worker ran out of memory ({{}}): {SMALLER}",
}


class DaskParts:
    """Parts of a table that workers hold or read when they are asked."""

    def __init__(
        self,
        client: Client,
        parts: Sequence[Delayed],  # each makes a ``RawRows``
        part_names: Sequence[str] | None = None,  # in messages
        *,
        lasting: bool = True,  # whether the cluster outlives the fit: results then stay on it
        sources: Sequence[tuple[str, dict[str, Any]]] = (),  # files that are not to change
    ) -> None:
        self.client = client
        self.lasting = lasting
        self.n_passes = 0
        self.part_names = None if part_names is None else tuple(part_names)
        self.watch: Watch | None = None
        self.deadline: float | None = None
        self.silent = False  # whether the last pass ended while the scheduler did not answer
        self._parts = list(parts)
        self._held: list[Delayed] | None = None
        self._sources = sources
        self._marks = self._look_at_files()

    @property
    def held(self) -> bool:
        """Whether the workers keep the parts between passes."""
        return self._held is not None and self._held is not self._parts

    def fold(self, task: Task, own: Sequence[Any] | None = None) -> Any:
        """Add up what a task returns for each part, in the order of the parts."""
        with self._cluster():
            if self._held is None:
                fits = self._fits()
                persist = self.client.persist
                self._held = persist(self._parts, optimize_graph=False) if fits else self._parts
            tasks = self._tasks(task, self._held, own)
            leaves: list[Future[Any]] = self.client.compute(tasks, optimize_graph=False)
            level = leaves
            while len(level) > 1:
                groups = [level[first : first + TREE] for first in range(0, len(level), TREE)]
                level = [self.client.submit(reduce, combine, group, pure=False) for group in groups]
            self._wait(level, leaves)
            self._check_files()
            self.n_passes += 1
            return self._answer(self.client.gather(level[0], asynchronous=True))

    def map_rows(
        self, task: Task, lengths: Sequence[int], dtype: Any, own: Sequence[Any] | None = None
    ) -> Any:
        """Concatenate what a task returns for each row, on the workers."""

        def lazy() -> Any:
            each = zip(self._tasks(task, self._parts, own), lengths, strict=True)
            return da.concatenate([da.from_delayed(a, (size,), dtype) for a, size in each])

        if not self.lasting:
            return lazy()
        with self._cluster():
            rows = self.client.persist(lazy(), optimize_graph=False)
            futures = futures_of(rows)
            try:
                self._wait(futures, futures)
            except PassStopped:
                # Computed when somebody needs them: new tasks, for these are still being cancelled.
                return lazy()
            self._check_files()
            self.n_passes += 1
            return rows

    @staticmethod
    def _tasks(task: Task, parts: Sequence[Delayed], own: Sequence[Any] | None) -> list[Delayed]:
        run = delayed(_run, pure=False)
        own = range(len(parts)) if own is None else own
        return [run(task, *both) for both in zip(parts, own, strict=True)]

    def gather(self) -> list[Any]:
        """Fetch the parts themselves: for work whose results are small."""
        with self._cluster():
            futures: list[Future[Any]] = self.client.compute(self._parts, optimize_graph=False)
            self._wait(futures, futures)
            found: list[Any] = self._answer(self.client.gather(futures, asynchronous=True))
            return found

    def _look_at_files(self) -> dict[str, FileMark]:
        """Return sizes and versions of the files; of none where they cannot be seen from here."""
        found: dict[str, FileMark] = {}
        for source, options in self._sources:
            with suppress(Exception):
                system, place = url_to_fs(source, **options)
                system.invalidate_cache()
                look = system.find if system.isdir(place) else system.glob
                for name, info in look(place, detail=True).items():
                    if is_table_file(PurePath(name)):
                        found[name] = mark_of(info, str(info.get("size")))
        return found

    def _check_files(self) -> None:
        now = self._look_at_files() if self._marks else {}
        for name, mark in self._marks.items():
            if now and not mark.is_same(now.get(name, FileMark("gone"))):
                how = "it was written anew" if name in now else "it is gone"
                raise DataError(
                    f"{PurePath(name).name!r} has changed since the fit began: {how}. Read the "
                    "data frame again, and fit it while nobody writes its files."
                )

    # --- the cluster ------------------------------------------------------------------------------

    def _fits(self) -> bool:
        """Estimate from a few parts whether the workers have memory for all of them."""
        count = len(self._parts)
        some = sorted({0, count // 2, count - 1})
        # Not pure: a fit of the same table that ends early must not cancel this one's tasks.
        size = delayed(attrgetter("nbytes"), pure=False)
        asked = [size(self._parts[part]) for part in some]
        sizes = self.client.compute(asked, optimize_graph=False)
        self._wait(sizes, sizes, some)
        workers = self._answer(self._who_is_there())["workers"]
        limits = [worker.get("memory_limit") or np.inf for worker in workers.values()]
        largest = max(self._answer(self.client.gather(sizes, asynchronous=True)))
        return bool(largest * count <= HELD_SHARE * sum(limits))

    def _ask(self, question: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Ask the scheduler something; nobody need wait for an answer."""
        loop: Any = self.client.loop
        return asyncio.run_coroutine_threadsafe(question, loop.asyncio_loop)

    def _who_is_there(self) -> Coroutine[Any, Any, Any]:
        scheduler: Any = self.client.scheduler
        return scheduler.identity()  # type: ignore[no-any-return]

    def _answer(self, question: Coroutine[Any, Any, T]) -> T:
        """Ask the scheduler, and wait: not beyond the deadline, nor when told to stop."""
        asked, begun = self._ask(question), time.monotonic()
        try:
            while not asked.done():
                concurrent.futures.wait([asked], POLL)
                self._look_at_clock(len(self._parts), len(self._parts), begun)
        finally:
            asked.cancel()
        return asked.result()

    def _look_at_clock(self, done: int, total: int, asked_since: float | None) -> None:
        """End a pass if somebody wants that, or the time is over, or the scheduler is silent."""
        silence = 0.0 if asked_since is None else time.monotonic() - asked_since
        self.silent = silence > LOOK
        if self.watch is not None and self.watch(done, total):
            raise PassStopped(StopReason.CALLBACK)
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise PassStopped(StopReason.TIME_LIMIT)
        if silence > SILENT:
            raise ClusterError(
                f"the scheduler of the cluster has not answered for {SILENT:g} seconds. Look "
                "whether its process is suspended, or its machine out of memory, and fit again."
            )

    def _wait(
        self,
        wanted: Sequence[Future[Any]],
        leaves: Sequence[Future[Any]],
        parts: Sequence[int] | None = None,  # those of the leaves, if not all
    ) -> None:
        """Wait for futures; whatever ends the wait early ends the work too."""
        try:
            self._look_on(wanted, leaves)
        except BaseException:
            if self.client.status == "running":  # nobody waits: the scheduler may be silent
                self._ask(self.client.cancel([*wanted, *leaves], asynchronous=True, force=True))
            raise
        self._raise_failure(wanted, leaves, parts or range(len(leaves)))

    @contextmanager
    def _cluster(self) -> Iterator[None]:
        """Turn the client's many errors for a lost cluster into one message."""
        try:
            yield
        except (RegimixError, PassStopped):
            raise
        except Exception as error:
            if self.client.status == "running" and not isinstance(error, OSError):
                raise
            raise ClusterError(f"{GONE} ({type(error).__name__}: {error})") from error

    def _look_on(self, wanted: Sequence[Future[Any]], leaves: Sequence[Future[Any]]) -> None:
        """Look at the clock, at the workers and at what is done, until all is done."""
        alone_since: float | None = None
        looked = time.monotonic()  # or asked, if there is no answer yet
        asked: concurrent.futures.Future[Any] | None = None
        while not all(future.done() for future in wanted):
            try:
                wait(wanted, timeout=POLL)
            except TimeoutError:
                pass
            except FutureCancelledError:
                return
            done = sum(leaf.done() for leaf in leaves)
            self._look_at_clock(done, len(leaves), None if asked is None else looked)
            now = time.monotonic()
            if asked is not None and asked.done():
                if asked.exception() is None:
                    alone_since = None if asked.result()["workers"] else alone_since or now
                asked, looked = None, now
            elif asked is None and now - looked > LOOK:
                asked, looked = self._ask(self._who_is_there()), now
            # Whoever started the cluster from here knows which workers it is to have.
            expected = getattr(getattr(self.client, "cluster", None), "plan", ())
            patience = STARTING if expected else PATIENCE
            if alone_since is not None and now - alone_since > patience:
                raise ClusterError(
                    Message(
                        f"all workers of the cluster are lost, and none came back within "
                        f"{patience:g} seconds. Start workers and fit again; with a ",
                        Setting("checkpoint"),
                        " file the fit goes on from where it was.",
                    )
                )

    def _raise_failure(
        self,
        wanted: Sequence[Future[Any]],
        leaves: Sequence[Future[Any]],
        parts: Sequence[int],
    ) -> None:
        """Say what went wrong, and with which part."""
        failed = [future for future in wanted if future.status in ("error", "cancelled", "lost")]
        if not failed:
            return
        if failed[0].status != "error":
            raise ClusterError(GONE)
        error = failed[0].exception()
        if isinstance(error, RegimixError):
            # The client keeps the error, and with its traceback all objects that it refers to.
            raise copy(error)
        for kind, reason in WORKER_FAILURES.items():
            if isinstance(error, kind):
                raise ClusterError(reason.format(getattr(error, "task", error))) from error
        self._check_files()
        statuses = [leaf.status for leaf in leaves]
        index = parts[statuses.index("error")] if "error" in statuses else 0
        raise DataError(
            f"{name_of(index, self.part_names)} cannot be read: {type(error).__name__}: "
            f"{str(error).rstrip('.')}. Repair it or leave it out."
        ) from error


def _run(function: Callable[[Any, Any], T], rows: Any, own: Any) -> T:
    return function(rows, own)


# --- connecting -----------------------------------------------------------------------------------


def current_client() -> Client | None:
    """Return the client that is in use, if there is one."""
    try:
        client: Client = default_client()
    except ValueError:
        return None
    return client


@contextmanager
def connected(address: str | None = None, n_workers: int | None = None) -> Iterator[Client]:
    """Connect to a scheduler, or start a cluster on this machine for a while."""
    if address is not None:
        with _reached(address) as client:
            yield client
        return
    with _started(n_workers) as cluster, Client(cluster) as client:
        yield client


def _started(n_workers: int | None) -> LocalCluster:
    """Start workers on this machine."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ClusterError(GUARD)  # this is a worker that reads the script of its user again
    try:
        return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")
    except RuntimeError as error:
        why = f"a cluster on this machine cannot be started ({error}). {GUARD}"
        raise ClusterError(why) from error


def _reached(address: str) -> Client:
    """Connect to a scheduler; whatever answers there may be anything, and may never end."""
    found: list[Any] = []

    def reach() -> None:
        give_up = time.monotonic() + CONNECT
        while not found:
            try:
                found.append(Client(address, timeout=CONNECT))
            except BaseException as error:
                # A busy scheduler that has more to say than a greeting is not understood by Client.
                if not isinstance(error, AssertionError) or time.monotonic() > give_up:
                    found.append(error)

    trial = threading.Thread(target=reach, daemon=True)
    trial.start()
    trial.join(CONNECT + 1)
    if not found:
        raise TimeoutError(f"what is there does not answer as a scheduler within {CONNECT:g} s")
    if isinstance(found[0], MemoryError | AssertionError):
        raise OSError("what answers there is no scheduler") from found[0]
    if isinstance(found[0], BaseException):
        raise found[0]
    client: Client = found[0]
    return client


# --- tables ---------------------------------------------------------------------------------------


@contextmanager
def dask_rows(X: Any, y: Any, sample_weight: Any = None) -> Iterator[tuple[Names, DaskParts]]:
    """Find the parts of Dask arrays and data frames, or of a table in parts (which has its own y).

    The cluster is the current one, or one started for this table.
    """
    part_names: Sequence[str] | None = None
    sources: list[tuple[str, dict[str, Any]]] = []
    if isinstance(X, PartTable):
        read = delayed(_read_whole, pure=True)
        names, parts = X.names, [read(reader) for reader in X.readers]
        part_names = X.part_names
    else:
        names, parts = _dask_parts(X, y, sample_weight)
        sources = _sources(X)
    own = current_client()
    with connected() if own is None else nullcontext(own) as client:
        how: dict[str, Any] = {"lasting": own is not None, "sources": sources}
        yield names, DaskParts(client, parts, part_names, **how)


def _sources(frame: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the places from which a data frame of Dask reads Parquet files, with options."""
    found = []
    for step in frame.expr.walk() if hasattr(frame, "expr") else ():
        known = getattr(step, "_parameters", ())
        if "path" in known:
            path = step.operand("path")
            options = step.operand("storage_options") if "storage_options" in known else None
            some = path if isinstance(path, list | tuple) else [path]
            found += [(str(one), options or {}) for one in some]
    return found


def dask_map(
    function: Callable[[Any, Any], T], items: Sequence[Any], rows: Any, names: Names, watch: Any
) -> list[T]:
    """Apply a function to items and, if there are any, to the blocks of rows that go with them."""
    own = current_client()
    blocks = [None] * len(items) if rows is None else _cut_up(rows, "rows")
    # As a node of the graph the function travels once, however many items there are.
    run, node = delayed(_run, pure=False), delayed(function, pure=False)
    jobs = [run(node, item, block) for item, block in zip(items, blocks, strict=True)]
    with connected() if own is None else nullcontext(own) as client:
        work = DaskParts(client, jobs, names)
        work.watch = watch
        return work.gather()


def _dask_parts(X: Any, y: Any, sample_weight: Any) -> tuple[Names, list[Delayed]]:
    """Return the names of the columns, and what makes the numbers of each part."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None: pass one number a row.")
    vectors = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
    if not hasattr(X, "columns"):
        if X.ndim != 2:
            raise DataError(
                f"X must be a table of rows and columns; expected 2D array, got {X.ndim}D array of "
                f"shape {X.shape} instead. Use X.reshape(-1, 1) if it is one column."
            )
        names = tuple(f"x{i}" for i in range(int(X.shape[1])))
    else:
        names = tuple(str(name) for name in X.columns)
        if all(hasattr(vector, "divisions") for vector in vectors.values()):
            return names, _frame_parts(X, names, vectors)
    table = _cut_up(X, "X")
    columns = []
    for what, vector in vectors.items():
        columns.append(_cut_up(_same_chunks(vector, X, what), what))
        if len(columns[-1]) != len(table):
            raise _unmatched(len(table), what, len(columns[-1]))
    read = delayed(_load, pure=True)
    return names, [read(*parts) for parts in zip(table, *columns, strict=True)]


def _frame_parts(X: Any, names: Names, vectors: dict[str, Any]) -> list[Delayed]:
    """Cut a data frame together with its response: one reading serves both.

    (Cut apart, Dask may merge partitions of the one and not of the other.)
    """
    mark = max(map(len, names), default=0) * "_"  # longer than any name: it is no name
    columns = {}
    for what, vector in vectors.items():
        if vector.npartitions != X.npartitions:
            raise _unmatched(X.npartitions, what, vector.npartitions)
        if vector.ndim == 2 and len(vector.columns) != 1:
            raise DataError(
                f"{what} must be one number a row; got a data frame of {len(vector.columns)} "
                "columns. Pass one of them."
            )
        columns[mark + what] = vector[vector.columns[0]] if vector.ndim == 2 else vector
    read = delayed(_load_frame, pure=True)
    return [read(part, list(columns)) for part in X.assign(**columns).to_delayed()]


def _unmatched(n_parts: int, what: str, n_others: int) -> DataError:
    return DataError(
        f"X has {n_parts} partitions, {what} has {n_others}: rows cannot be matched. Take both "
        "from one data frame, or give arrays the same chunks along the rows."
    )


def _cut_up(data: Any, what: str) -> list[Delayed]:
    """Cut a collection into what makes each of its parts."""
    if not hasattr(data, "to_delayed"):
        raise DataKindError(
            f"{what} is of type {type(data).__name__}, but the table is on a cluster: pass a dask "
            f"array or a column of a dask data frame, for example dask.array.from_array({what}, "
            "chunks=X.chunks[0])."
        )
    if isinstance(data, da.Array):
        if data.ndim > 1 and data.numblocks[1] > 1:
            data = data.rechunk({1: -1})
        return list(data.to_delayed(optimize_graph=False).ravel())
    return list(data.to_delayed(optimize_graph=False))


def _same_chunks(vector: Any, X: Any, what: str) -> Any:
    """Cut an array along the rows as X is cut, where sizes are known."""
    if not isinstance(vector, da.Array) or not isinstance(X, da.Array):
        return vector
    if vector.ndim != 1 and vector.shape[1:] != (1,):
        raise DataError(
            f"{what} must be one number a row; got a dask array of shape {vector.shape}. Pass one "
            "column."
        )
    vector = vector.reshape(-1) if vector.ndim == 2 else vector
    known = not (np.isnan(vector.shape[0]) or np.isnan(X.shape[0]))
    if known and vector.shape[0] != X.shape[0]:
        raise DataError(
            f"X and {what} have inconsistent numbers of rows: X has {X.shape[0]}, {what} has "
            f"{vector.shape[0]}. Pass one number in {what} for each row of X."
        )
    return vector.rechunk((X.chunks[0],)) if known else vector


# --- what workers do ------------------------------------------------------------------------------


def _read_whole(reader: Callable[[], Iterable[RawRows]]) -> RawRows:
    """Read one part of a table, whole."""
    pieces = list(reader())
    if len(pieces) == 1:
        return pieces[0]
    columns = zip(*((piece.X, piece.y, piece.weights) for piece in pieces), strict=True)
    joined: list[Any] = [None if some[0] is None else np.concatenate(some) for some in columns]
    return RawRows(*joined)


def _load_frame(frame: Any, vectors: list[str]) -> RawRows:
    """Separate a part of a data frame into features, response and weights again."""
    return _load(frame.drop(columns=vectors), *(frame[name] for name in vectors))


def _load(x: Any, y: Any, weights: Any = None) -> RawRows:
    """Read one part into plain arrays, rows one after the other in memory."""
    table = Table.read(x, fewest_rows=0)
    vectors: list[Any] = [read_vector(y, "y")]
    if weights is not None:
        vectors.append(read_vector(weights, "sample_weight"))
    flat = (v.ravel() if v.ndim == 2 and v.shape[1] == 1 else v for v in vectors)
    return RawRows(np.ascontiguousarray(table.values), *flat)
