"""What packages of R answer: ltsReg, and flexmix by BIC or as the best of many starts.

One R waits in a process of its own for each process of the benchmark. Answers are kept in
``benchmarks/.cache`` by the question, the rows and the script, so R works once.
"""

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Floats, Sample
from benchmarks.peers.worker import PeerMissingError, Worker, write_sample
from benchmarks.real.compare import Normals
from benchmarks.real.sources import CACHE
from regimix.atomic import open_atomically

SCRIPT = Path(__file__).with_name("worker.R")
HOW_TO_GET = "missing here: `apt-get install r-base-core r-cran-robustbase r-cran-flexmix`"
MOST_REGIMES, STARTS = 5, 5


@dataclass(frozen=True)
class Robust:
    """ltsReg's reweighted line, the intercept first, its scale, and the rows that it keeps."""

    theta: Floats
    scale: float
    inliers: NDArray[np.bool_]


@dataclass(frozen=True)
class Mixed:
    """flexmix's answer, its log-likelihood, and the processor time inside R."""

    model: Normals
    loglik: float
    seconds: float


class _Waiting(Worker):
    """R, answering lines ``question path rows columns k starts seed`` with numbers."""

    def ask(self, question: str, sample: Sample, numbers: tuple[int, ...]) -> list[float]:
        assert self._process.stdin is not None
        rows, columns = sample.X.shape
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sample"
            write_sample(sample, path)
            words = [question, path, rows, columns, *numbers]
            self._process.stdin.write(" ".join(map(str, words)) + "\n")
            self._process.stdin.flush()
            answer = self._answer()
        if not answer:
            raise RuntimeError(f"{self.version} stopped instead of answering; it says why above.")
        return [float(word) for word in answer.split()]


@cache
def _worker() -> _Waiting | None:
    rscript = shutil.which("Rscript")
    if rscript is None:
        return None
    try:
        return _Waiting([rscript, str(SCRIPT)], HOW_TO_GET)
    except PeerMissingError:
        return None


def version() -> str:
    """Say which R answers, or how to get one."""
    worker = _worker()
    return HOW_TO_GET if worker is None else worker.version


def stop() -> None:
    """End the R that waits."""
    worker = _worker()
    if worker is not None:
        with worker:
            pass
    _worker.cache_clear()


def robust_line(X: Floats, y: Floats) -> Robust | None:
    """Ask ``ltsReg`` with its defaults; None without R, or where it fails."""
    answer = _remembered("lts", X, y, (0, 0, 1))
    if answer is None or len(answer) < 2:
        return None
    columns = X.shape[1] + 1
    theta, scale = np.array(answer[1 : columns + 1]), answer[columns + 1]
    return Robust(theta, scale, np.array(answer[columns + 2 :]) > 0)


def by_bic(X: Floats, y: Floats, seed: int, *, fresh: bool = False) -> Mixed | None:
    """Ask flexmix for one to five regimes, five starts each, the number by BIC."""
    numbers = (MOST_REGIMES, STARTS, seed)
    return _read(_asked("select", X, y, numbers) if fresh else _remembered("select", X, y, numbers))


def best_of(X: Floats, y: Floats, regimes: int, starts: int) -> Mixed | None:
    """Ask flexmix for so many regimes, the likeliest of so many starts."""
    return _read(_remembered("best", X, y, (regimes, starts, 1)))


def _read(answer: list[float] | None) -> Mixed | None:
    """Read seconds, log-likelihood, number of regimes; then share, noise and theta of each."""
    if answer is None or len(answer) < 3:
        return None
    seconds, loglik, count, *numbers = answer
    regimes = np.array(numbers).reshape(int(count), -1)
    return Mixed(Normals(regimes[:, 0], regimes[:, 1], regimes[:, 2:]), loglik, seconds)


def _asked(question: str, X: Floats, y: Floats, numbers: tuple[int, ...]) -> list[float] | None:
    worker = _worker()
    return None if worker is None else worker.ask(question, Sample(X, y, np.empty(0)), numbers)


def _remembered(
    question: str, X: Floats, y: Floats, numbers: tuple[int, ...]
) -> list[float] | None:
    digest = hashlib.sha256(SCRIPT.read_bytes())
    digest.update(f"{question} {numbers} {X.shape}".encode())
    digest.update(np.ascontiguousarray(X).tobytes() + np.ascontiguousarray(y).tobytes())
    path = CACHE / "answers" / f"{digest.hexdigest()[:32]}.json"
    if path.exists():
        return [float(value) for value in json.loads(path.read_text(encoding="utf-8"))]
    answer = _asked(question, X, y, numbers)
    if answer is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomically(path, "w", encoding="utf-8") as file:
            json.dump(answer, file)
    return answer
