"""Where a Python process spends its time, below Python too: a sampling profiler for Linux.

A signal stops the process some hundred times a second. As its tracer we read the address of the
machine code it was in, which names a library; then the signal is delivered, and ``faulthandler``
in the process writes the Python stack of the same moment. Nothing is instrumented, so nothing is
slowed that is called often, and kernels that release the interpreter are seen like all others.
"""

import ctypes
import os
import platform
import re
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SIGNAL = signal.SIGUSR1
SEIZE, GETREGSET, CONTINUE = 0x4206, 0x4204, 7
GENERAL_REGISTERS = 1
# Where the program counter is among the 64-bit registers.
COUNTER = {"x86_64": 16, "aarch64": 32}
FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$')
STACK = "Stack (most recent call first):"
UNKNOWN = "unknown"


class CannotSampleError(Exception):
    """Profiles of this kind are not to be had here; the message says why."""


@dataclass(frozen=True)
class Frame:
    """One line of a Python stack."""

    file: str
    line: int
    function: str


@dataclass(frozen=True)
class Moment:
    """A sample: the file of the machine code, and the Python stack, innermost frame first."""

    library: str
    stack: tuple[Frame, ...]


def check_system() -> None:
    """Refuse systems that are watched in other ways."""
    if sys.platform != "linux" or platform.machine() not in COUNTER:
        raise CannotSampleError("needs Linux on x86-64 or ARM64")


def sample(process: int, stacks: Path, every: float) -> list[Moment]:
    """Sample a child until it ends; it writes its stacks to a file (``faulthandler.register``).

    The child must not be waited for by anybody else.
    """
    tracer = _Tracer(process)
    libraries: list[str] = []
    while True:
        time.sleep(every)
        os.kill(process, SIGNAL)
        while (stopped := tracer.wait()) not in (None, SIGNAL):
            tracer.go_on(stopped)  # something else was meant for the child
        if stopped is None:
            break
        libraries.append(tracer.library())
        tracer.go_on(stopped)
    found = read_stacks(stacks.read_text(encoding="utf-8"))
    # The last signal may have come when Python was ending, which writes no stack.
    return [Moment(*pair) for pair in zip(libraries, found, strict=False)]


def read_stacks(text: str) -> list[tuple[Frame, ...]]:
    """Read what ``faulthandler`` wrote."""
    stacks: list[list[Frame]] = []
    for line in text.splitlines():
        if line == STACK:
            stacks.append([])
        elif (match := FRAME.match(line)) and stacks:
            stacks[-1].append(Frame(match[1], int(match[2]), match[3]))
    return [tuple(stack) for stack in stacks]


class _Buffer(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Tracer:
    """The system's own way to watch a child, by ``ptrace``."""

    def __init__(self, process: int) -> None:
        self._process = process
        self._ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        self._ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
        self._ptrace.restype = ctypes.c_long
        self._registers = (ctypes.c_uint64 * 64)()
        self._maps: list[tuple[int, int, str]] = []
        if self._ptrace(SEIZE, process, None, None) != 0:
            raise CannotSampleError("this system does not let a process watch its own child")

    def wait(self) -> int | None:
        """Return the signal that stopped the child, None when it has ended."""
        _, status = os.waitpid(self._process, 0)
        return os.WSTOPSIG(status) if os.WIFSTOPPED(status) else None

    def go_on(self, number: int) -> None:
        self._ptrace(CONTINUE, self._process, None, number)

    def library(self) -> str:
        """Name the file that the code at the program counter came from."""
        size = ctypes.sizeof(self._registers)
        buffer = _Buffer(ctypes.addressof(self._registers), size)
        self._ptrace(GETREGSET, self._process, GENERAL_REGISTERS, ctypes.addressof(buffer))
        counter = self._registers[COUNTER[platform.machine()]]
        name = self._lookup(counter)
        if name is None:  # a library that was loaded since we looked
            self._maps = _code(self._process)
            name = self._lookup(counter)
        return name or UNKNOWN

    def _lookup(self, address: int) -> str | None:
        return next((name for low, high, name in self._maps if low <= address < high), None)


def _code(process: int) -> list[tuple[int, int, str]]:
    """Return first address, end and file of everything executable in a process."""
    found = []
    for line in Path(f"/proc/{process}/maps").read_text(encoding="utf-8").splitlines():
        addresses, permissions, *_, name = line.split(maxsplit=5)
        if "x" in permissions:
            low, high = (int(address, 16) for address in addresses.split("-"))
            found.append((low, high, name))
    return found
