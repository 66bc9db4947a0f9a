"""A terminal of one's own: runs a command in it, reads what it shows, presses keys."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable

from tests.patience import ENOUGH

# Takes the terminal as its own, so that Ctrl-C reaches it, then becomes the command.
TAKE = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, '-m', 'regimix', *sys.argv[1:]])"
)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")


class Terminal:
    """A command in a terminal of its own.

    ``seen`` is everything it has shown so far, ``plain`` the same without colours.
    """

    def __init__(self, *arguments: str, width: int = 80, **environment: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        kept = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**kept, "TERM": "xterm-256color", **environment},
        )
        os.close(slave)
        self.seen = ""

    @property
    def plain(self) -> str:
        return ESCAPES.sub("", self.seen)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def wait_for(self, shown: Callable[[str], object]) -> None:
        """Read until what is shown satisfies a condition."""
        give_up = time.monotonic() + ENOUGH
        while not shown(self.plain):
            assert self._read(), f"ended before it was shown:\n{self.plain}"
            assert time.monotonic() < give_up, f"still not shown:\n{self.plain}"

    def press(self, key: str) -> None:
        os.write(self.master, key.encode())

    def end(self) -> int:
        """Read to the end; return the exit code."""
        give_up = time.monotonic() + ENOUGH
        while self._read():
            assert time.monotonic() < give_up, f"does not end:\n{self.plain}"
        return self.process.wait(ENOUGH)

    def _read(self) -> bool:
        """Read what there is, for a moment; say whether there may be more."""
        if select.select([self.master], [], [], 0.05)[0]:
            try:
                part = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                return False
            self.seen += part.decode("utf-8", "replace")
            return bool(part)
        return self.process.poll() is None or bool(select.select([self.master], [], [], 0)[0])
