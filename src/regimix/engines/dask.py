"""Tables on a Dask cluster: workers read their own parts, the driver sees only sums.

Every pass is one task a part and a tree of additions. Parts stay with the workers between passes
where the cluster has room for them. Tasks make their own data from the user's graph, so a worker
that is lost takes nothing with it that another could not make again.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any, TypeVar

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client, Future, LocalCluster, default_client, futures_of, wait
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from regimix.engines.dasktables import cut_up, dask_parts
from regimix.engines.fold import combine_all
from regimix.engines.load import read_whole
from regimix.engines.parts import PartTable, PassStopped, RawRows, Task, Watch, name_of
from regimix.errors import (
    ClusterError,
    DataError,
    Message,
    RegimixError,
    Setting,
    StopReason,
)

__all__ = ["DaskParts", "connected", "current_client", "dask_map", "dask_rows"]

T = TypeVar("T")
Names = tuple[str, ...]

# Parts are kept by the workers if they take up to this share of their memory.
HELD_SHARE = 0.4
# Results that one task adds up.
TREE = 8
# Seconds between two looks at the work, and at the workers; how long there may be none of them.
POLL = 0.1
LOOK = 1.0
PATIENCE = 30.0
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


class DaskParts:
    """Parts of a table that workers hold or read when they are asked.

    Parameters
    ----------
    client : Client
    parts : sequence of Delayed
        Each makes a ``RawRows``.
    part_names : sequence of str, optional
        What the parts are called in messages.
    lasting : bool
        Whether the cluster outlives the fit: what is said of each row then stays there.
    patience : float
        Seconds to wait for a worker when none is left.
    """

    def __init__(
        self,
        client: Client,
        parts: Sequence[Delayed],
        part_names: Sequence[str] | None = None,
        *,
        lasting: bool = True,
        patience: float = PATIENCE,
    ) -> None:
        self.client = client
        self.lasting = lasting
        self.patience = patience
        self.n_passes = 0
        self.part_names = None if part_names is None else tuple(part_names)
        self.watch: Watch | None = None
        self.deadline: float | None = None
        self._parts = list(parts)
        self._held: list[Delayed] | None = None

    @property
    def held(self) -> bool:
        """Whether the workers keep the parts between passes."""
        return self._held is not None and self._held is not self._parts

    def fold(self, task: Task) -> Any:
        """Add up ``task(rows, number of the part)``, in the order of the parts."""
        with self._cluster():
            if self._held is None:
                fits = self._fits()
                persist = self.client.persist
                self._held = persist(self._parts, optimize_graph=False) if fits else self._parts
            run = delayed(_run, pure=False)
            tasks = [
                run(task.for_part(index), part, index) for index, part in enumerate(self._held)
            ]
            leaves: list[Future[Any]] = self.client.compute(tasks, optimize_graph=False)
            level = leaves
            while len(level) > 1:
                groups = [level[first : first + TREE] for first in range(0, len(level), TREE)]
                level = [self.client.submit(_add, group, pure=False) for group in groups]
            self._wait(level, leaves)
            self.n_passes += 1
            return level[0].result()

    def map_rows(
        self,
        task: Task,
        lengths: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> Any:
        """Put together what the task says of each row, on the workers."""
        run = delayed(_run, pure=False)
        blocks = [
            da.from_delayed(run(task.for_part(index), part, index), shape=(length,), dtype=dtype)
            for index, (part, length) in enumerate(zip(self._parts, lengths, strict=True))
        ]
        lazy = da.concatenate(blocks)
        if not self.lasting:
            return lazy
        with self._cluster():
            rows = self.client.persist(lazy, optimize_graph=False)
            futures = futures_of(rows)
            try:
                self._wait(futures, futures)
            except PassStopped:
                return lazy  # whoever asks for them may have more time
            self.n_passes += 1
            return rows

    def gather(self) -> list[Any]:
        """Fetch the parts themselves: for work whose results are small."""
        with self._cluster():
            futures: list[Future[Any]] = self.client.compute(self._parts, optimize_graph=False)
            self._wait(futures, futures)
            return [future.result() for future in futures]

    # --- the cluster ------------------------------------------------------------------------------

    def _fits(self) -> bool:
        """Say whether the workers have room for all parts; a few stand for the others."""
        count = len(self._parts)
        some = sorted({0, count // 2, count - 1})
        asked = [delayed(_size)(self._parts[part]) for part in some]
        sizes = self.client.compute(asked, optimize_graph=False)
        self._wait(sizes, sizes, some)
        limits = [worker.get("memory_limit") or np.inf for worker in self._workers().values()]
        largest = max(size.result() for size in sizes)
        return bool(largest * count <= HELD_SHARE * sum(limits))

    def _workers(self) -> dict[str, Any]:
        """Ask who is there; a scheduler that does not answer in time is taken to be busy."""
        try:
            found = self.client.scheduler_info(n_workers=-1, callback_timeout=CONNECT)
        except TimeoutError:
            return {"unknown": {}}
        return dict(found.get("workers", {}))

    def _wait(
        self,
        wanted: Sequence[Future[Any]],
        leaves: Sequence[Future[Any]],
        parts: Sequence[int] | None = None,
    ) -> None:
        """Wait for futures; whatever ends the wait early ends the work too.

        Leaves are those of all parts, or of those given.
        """
        try:
            self._look_on(wanted, leaves)
        except BaseException:
            with suppress(Exception):  # the cluster may be gone
                self.client.cancel([*wanted, *leaves], force=True)
            raise
        self._raise_failure(wanted, leaves, parts or range(len(leaves)))

    @contextmanager
    def _cluster(self) -> Iterator[None]:
        """Say plainly that the cluster is gone, whatever its client makes of that."""
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
        looked = time.monotonic()
        while not all(future.done() for future in wanted):
            try:
                wait(wanted, timeout=POLL)
            except TimeoutError:
                pass
            except FutureCancelledError:
                return
            if self._asked_to_stop(leaves):
                raise PassStopped(StopReason.CALLBACK)
            now = time.monotonic()
            if self.deadline is not None and now > self.deadline:
                raise PassStopped(StopReason.TIME_LIMIT)
            if now - looked > LOOK:
                looked = now
                alone_since = None if self._workers() else alone_since or now
            if alone_since is not None and now - alone_since > self.patience:
                raise ClusterError(
                    Message(
                        f"all workers of the cluster are lost, and none came back within "
                        f"{self.patience:g} seconds. Start workers and fit again; with a ",
                        Setting("checkpoint"),
                        " file the fit goes on from where it was.",
                    )
                )

    def _asked_to_stop(self, leaves: Sequence[Future[Any]]) -> bool:
        if self.watch is None:
            return False
        return bool(self.watch(sum(leaf.done() for leaf in leaves), len(leaves)))

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
            # The client keeps the error, and with its traceback would keep all that is on the way.
            raise copy(error)
        if isinstance(error, KilledWorker):
            raise ClusterError(
                f"workers died again and again at the same task ({error.task}); most often their "
                "memory is too small for the partitions: use more and smaller partitions, or "
                "workers with more memory."
            ) from error
        if isinstance(error, ImportError):
            raise ClusterError(
                f"a worker cannot load what it needs ({error}): install regimix[dask], of this "
                "version, where the workers run."
            ) from error
        if isinstance(error, MemoryError):
            raise ClusterError(
                f"a worker ran out of memory ({error}): use more and smaller partitions, or "
                "workers with more memory."
            ) from error
        failures = (
            part for part, leaf in zip(parts, leaves, strict=True) if leaf.status == "error"
        )
        index = next(failures, 0)
        raise DataError(
            f"{name_of(index, self.part_names)} cannot be read: {type(error).__name__}: "
            f"{str(error).rstrip('.')}. Repair it or leave it out."
        ) from error


def _run(task: Task, rows: RawRows, index: int) -> Any:
    return task(rows, index)


def _add(results: list[T]) -> T:
    return combine_all(results)


def _size(rows: RawRows) -> int:
    arrays = (rows.X, rows.y, rows.weights)
    return sum(array.nbytes for array in arrays if array is not None)


# --- what users bring -----------------------------------------------------------------------------


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
        try:
            found.append(Client(address, timeout=CONNECT))
        except BaseException as error:
            found.append(error)

    trial = threading.Thread(target=reach, daemon=True)
    trial.start()
    trial.join(CONNECT + 1)
    if not found:
        raise TimeoutError(f"what is there does not answer as a scheduler within {CONNECT:g} s")
    if isinstance(found[0], MemoryError):
        raise OSError("what answers there is no scheduler") from found[0]
    if isinstance(found[0], BaseException):
        raise found[0]
    client: Client = found[0]
    return client


@contextmanager
def dask_rows(X: Any, y: Any, sample_weight: Any = None) -> Iterator[tuple[Names, DaskParts]]:
    """Find the parts of what a user brings, on the current cluster or one of its own.

    Dask arrays and data frames, or a table in parts (``y`` is then not needed).
    """
    part_names: Sequence[str] | None = None
    if isinstance(X, PartTable):
        read = delayed(read_whole, pure=True)
        names, parts = X.names, [read(reader) for reader in X.readers]
        part_names = X.part_names
    else:
        names, parts = dask_parts(X, y, sample_weight)
    client = current_client()
    if client is not None:
        yield names, DaskParts(client, parts, part_names)
        return
    with connected() as client:
        yield names, DaskParts(client, parts, part_names, lasting=False)


def dask_map(
    function: Callable[[Any, Any], T], items: Sequence[Any], rows: Any, names: Names, watch: Any
) -> list[T]:
    """Apply a function to items and, if there are any, to the blocks of rows that go with them."""
    client = current_client()
    if client is None:
        with connected():
            return dask_map(function, items, rows, names, watch)
    blocks = [None] * len(items) if rows is None else cut_up(rows, "rows")
    # As a node of the graph the function travels once, however many items there are.
    run, node = delayed(_apply, pure=False), delayed(function, pure=False)
    jobs = [run(node, item, block) for item, block in zip(items, blocks, strict=True)]
    work = DaskParts(client, jobs, names)
    work.watch = watch
    return work.gather()


def _apply(function: Callable[[Any, Any], T], item: Any, block: Any) -> T:
    return function(item, block)
