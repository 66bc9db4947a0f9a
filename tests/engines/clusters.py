"""A small cluster of real processes, and tables that its workers make themselves."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from regimix.engines.parts import RawRows
from tests.patience import ENOUGH, comes_true

__all__ = [
    "BLOCK_COEF",
    "DieAt",
    "DieInTask",
    "MadeRows",
    "WaitWhile",
    "always_die",
    "fail",
    "far_cluster",
    "made_table",
    "serve",
    "small_cluster",
]

# Two regimes that no search can miss.
BLOCK_COEF = np.array([[1.0, 2.0, -1.0], [-2.0, 0.5, 1.5]])


@contextmanager
def small_cluster(n_workers=2, **options):
    """Worker processes on this machine, one thread each, on ports that are free."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=":0",
            **options,
        ) as cluster,
        Client(cluster, timeout=ENOUGH) as client,
    ):
        yield client


@contextmanager
def far_cluster(n_workers=2):
    """A cluster in processes of its own: what goes through sockets here is the client's."""
    code = f"from tests.engines.clusters import serve; serve({n_workers})"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            with Client(process.stdout.readline().strip(), timeout=ENOUGH) as client:
                yield client
        finally:
            process.stdin.close()  # it ends by itself then
            process.wait(ENOUGH)


def serve(n_workers):
    """Run a cluster until nobody listens any more."""
    with small_cluster(n_workers) as client:
        sys.stdout.write(client.scheduler.address + "\n")
        sys.stdout.flush()
        sys.stdin.read()


def made_table(part, n_rows):
    """A part of a table, from its number: every worker makes the same."""
    rng = np.random.default_rng([20, part])
    X = rng.standard_normal((n_rows, 3))
    y = (X * BLOCK_COEF[rng.integers(0, 2, n_rows)]).sum(axis=1) + 0.1 * rng.standard_normal(n_rows)
    wrong = rng.random(n_rows) < 0.1
    y[wrong] = 10 * rng.standard_normal(np.count_nonzero(wrong))
    return X, y


class MadeRows:
    """A reader that makes its rows; ``before`` is what happens first, on the worker."""

    def __init__(self, part, n_rows, before=None):
        self.part, self.n_rows, self.before = part, n_rows, before

    def __call__(self):
        if self.before is not None:
            self.before()
        yield RawRows(*made_table(self.part, self.n_rows))


class DieAt:
    """Kill the process that calls this for the so-manyth time, and never again.

    Calls are counted in a file: a worker that takes over goes on counting.
    """

    def __init__(self, path, call):
        self.path, self.call = Path(path), call

    def __call__(self):
        with self.path.open("ab") as file:
            file.write(b".")
            file.flush()
            count = os.fstat(file.fileno()).st_size
        if count == self.call:
            os.kill(os.getpid(), signal.SIGKILL)

    @property
    def count(self):
        """Calls so far."""
        return self.path.stat().st_size if self.path.exists() else 0


class DieInTask:
    """In the place of what workers run on each part: one part is deadly, once."""

    def __init__(self, part, die):
        self.part, self.die = part, die

    def __call__(self, task, rows, own):
        if np.array_equal(rows.X, made_table(self.part, rows.n_rows)[0]):
            self.die()
        return task(rows, own)


class WaitWhile:
    """Do nothing while a file is there, but not for ever: a test that fails must end."""

    def __init__(self, path):
        self.path = Path(path)

    def __call__(self):
        comes_true(lambda: not self.path.exists())


def always_die():
    """Kill the process, every time."""
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    """Fail as a broken disk does."""
    raise OSError("the disk is broken")
