"""The conversation with a peer that runs, and times itself, in a process of its own.

The peer first writes a line with its version. Then, for each line ``path rows columns kept``
it receives, it reads the data, fits, and writes ``seconds intercept coef...``. Reading is not
timed. The file holds float64: the features column by column, then the responses.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from benchmarks.data import Floats, Sample


class PeerMissingError(Exception):
    """A peer cannot run here; the message says how to get it."""


@dataclass(frozen=True)
class PeerFit:
    """What a peer found, and its own measure of the seconds it took."""

    seconds: float
    intercept: float
    coef: Floats


def write_sample(sample: Sample, path: Path) -> None:
    """Write a sample where peers can read it."""
    with path.open("wb") as file:
        sample.X.ravel(order="F").tofile(file)
        sample.y.tofile(file)


class Worker:
    """A peer waiting for data; use as a context manager."""

    def __init__(self, command: Sequence[str], how_to_get: str) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer()
        if not self.version:
            raise PeerMissingError(how_to_get)

    def fit(self, path: Path, sample: Sample, kept: int) -> PeerFit:
        """Have the peer fit the sample stored at ``path``."""
        rows, columns = sample.X.shape
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path} {rows} {columns} {kept}\n")
        self._process.stdin.flush()
        answer = self._answer()
        if not answer:
            raise RuntimeError(f"{self.version} stopped instead of fitting; it says why above.")
        seconds, intercept, *coef = map(float, answer.split())
        return PeerFit(seconds, intercept, np.array(coef))

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Closing its input ends a waiting peer; one that is busy (Ctrl-C) is stopped.
        if kind is not None:
            self._process.terminate()
        self._process.communicate()
