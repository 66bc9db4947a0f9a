"""What the tests of checkpoints share: values compared to the last bit, and crashes on demand."""

import math
import signal
from dataclasses import dataclass

import numpy as np
import pytest

from regimix.search.checkpoint import Checkpoint

needs_sigkill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX kills so")


class CrashError(Exception):
    """The process would be gone here."""


def bits(value):
    """Say all there is to say of a value, so that equal words mean equal bits."""
    if isinstance(value, np.ndarray):
        order = "F" if value.flags.fnc else "C"
        return (value.dtype.str, value.shape, order, value.tobytes())
    if isinstance(value, list | tuple):
        return [bits(item) for item in value]
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    return (type(value).__name__, repr(value))


@dataclass
class Watched(Checkpoint):
    """Counts what is put, and crashes right after so many."""

    puts: int = 0
    crash: float = math.inf

    def put(self, section, values):
        super().put(section, values)
        self.puts += 1
        if self.puts == self.crash:
            raise CrashError

    @classmethod
    def at(cls, path, crash=math.inf):
        begun = cls.open(path, "f")
        begun.crash = crash
        return begun
