"""Packages of R: robustbase, flexmix and mixtools, each waiting in a process of its own."""

import shutil
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.data import Sample as OneModel
from benchmarks.peers.worker import PeerMissingError, Worker, write_sample
from benchmarks.recovery.cells import Cell
from benchmarks.recovery.judge import Found, judge
from benchmarks.recovery.sample import Sample

SCRIPT = Path(__file__).with_name("r_worker.R")
MOST_RESTARTS = 100
# A peer that has used this many seconds and this many times our own gives up before that.
PATIENCE_SECONDS, PATIENCE_TIMES = 60.0, 100.0


class MixtureWorker(Worker):
    """A worker that answers ``seconds k``, then k times an intercept and coefficients."""

    def find(self, path: Path, cell: Cell, seed: int) -> Found:
        """Have it look for m components in the sample stored at ``path``, from one start."""
        assert self._process.stdin is not None
        intercept = int(cell.fit_intercept)
        self._process.stdin.write(f"{path} {cell.n} {cell.d} {cell.m} {intercept} {seed}\n")
        self._process.stdin.flush()
        answer = self._answer()
        if not answer:
            raise RuntimeError(f"{self.version} stopped instead of fitting; it says why above.")
        seconds, count, *numbers = map(float, answer.split())
        theta = np.array(numbers).reshape(int(count), cell.d + 1)
        return Found(theta[:, 1:], theta[:, 0], seconds)


_workers: dict[str, MixtureWorker] = {}


def worker(package: str) -> MixtureWorker:
    """Start R once in each process of the benchmark; it ends with that process, or when told."""
    if package not in _workers:
        _workers[package] = _start(package)
    return _workers[package]


def stop_workers() -> None:
    """End every R that waits."""
    while _workers:
        _, waiting = _workers.popitem()
        with waiting:
            pass


def _start(package: str) -> MixtureWorker:
    missing = f"missing here: `apt-get install r-base-core r-cran-{package}`"
    rscript = shutil.which("Rscript")
    if rscript is None:
        raise PeerMissingError(missing)
    return MixtureWorker([rscript, str(SCRIPT), package], missing)


def _one_start(package: str, cell: Cell, sample: Sample, seed: int, _budget: float) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        return worker(package).find(_stored(sample, folder), cell, seed)


def _patient(package: str, cell: Cell, sample: Sample, seed: int, budget: float) -> Found:
    patience = max(PATIENCE_SECONDS, PATIENCE_TIMES * budget)
    return restarted(package, cell, sample, seed, patience)


def restarted(package: str, cell: Cell, sample: Sample, seed: int, patience: float) -> Found:
    """Start again until the truth is found: better than any user, who does not know it."""
    seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = _stored(sample, folder)
        for restart in range(1, MOST_RESTARTS + 1):
            found = worker(package).find(path, cell, seed * MOST_RESTARTS + restart)
            seconds += found.seconds or 0.0
            if judge(cell, sample, found).success or seconds > patience:
                break
    return Found(found.coef, found.intercept, seconds, note=f"{restart} starts")


def _stored(sample: Sample, folder: str) -> Path:
    path = Path(folder) / "sample"
    write_sample(OneModel(sample.X, sample.y, sample.coef), path)
    return path


ltsreg = partial(_one_start, "robustbase")
flexmix = partial(_patient, "flexmix")
mixtools = partial(_patient, "mixtools")
