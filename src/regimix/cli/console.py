"""What a person reads: answers go to standard output, everything else to standard error."""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from typing import IO, Any

from rich.console import Console
from rich.text import Text
from rich.theme import Theme

__all__ = ["Code", "Voice"]

# What a terminal that does not know a sign is shown in its place.
PLAIN = str.maketrans(
    {"×": "x", "²": "2", "±": "+-", "−": "-", "–": "-", "…": "...", "→": "->", "·": "-", "●": "*"}
)
# What rich would show in louder colours.
CALM = {"bar.finished": "cyan", "progress.elapsed": "dim"}
# A pipe has no width; this is what is assumed then, unless COLUMNS says otherwise.
PIPE_WIDTH = 100


class Code(IntEnum):
    """How a command ended."""

    DONE = 0
    FAULT = 1
    REFUSED = 2
    INCOMPLETE = 3
    INTERRUPTED = 130


class Voice:
    """Speaks to a person, or to a program that reads standard output.

    Parameters
    ----------
    quiet : bool
        Only warnings and errors are said.
    machine : bool
        Standard output is for a program; what a person reads goes to standard error.

    Attributes
    ----------
    out, err : rich.console.Console
        Where answers go, and where everything else goes.
    """

    def __init__(self, *, quiet: bool = False, machine: bool = False) -> None:
        self.quiet = quiet
        self.err = _console(sys.stderr)
        self.out = self.err if machine else _console(sys.stdout)

    def clean(self, text: Any) -> str:
        """Make text fit to be shown, whoever wrote it: names of columns may hold anything.

        Control characters, which could command the terminal, are spelled out; signs that the
        terminal does not know are replaced.
        """
        shown = "".join(c if c.isprintable() else _spelled(c) for c in str(text))
        encoding = self.out.encoding
        if encoding.lower().startswith("utf"):
            return shown
        return shown.translate(PLAIN).encode(encoding, "replace").decode(encoding)

    def answer(self, what: Any = "", style: str = "", *, whole: bool = False) -> None:
        """Print part of the answer: text, or something that rich can draw.

        ``whole`` lines are not broken, so that a path in them can be copied.
        """
        if self.quiet:
            return
        if self.out.is_terminal:
            self.out.print(self._drawn(what, style), soft_wrap=whole)
            return
        # rich fills lines with blanks, which a file has no use for.
        with self.out.capture() as drawn:
            self.out.print(self._drawn(what, style), soft_wrap=whole)
        lines = drawn.get().splitlines()
        self.out.file.write("".join(f"{line.rstrip()}\n" for line in lines))

    def note(self, text: str = "", *, whole: bool = False) -> None:
        """Say something that may be of interest."""
        if not self.quiet:
            self.err.print(self._drawn(text, "dim"), soft_wrap=whole or not self.err.is_terminal)

    def warn(self, text: str) -> None:
        """Say something that must be read."""
        words = Text("Warning: ", style="yellow")
        words.append(self.clean(text), style="default")
        self.err.print(words, soft_wrap=not self.err.is_terminal)

    def refuse(self, text: str) -> None:
        """Say in one sentence what is wrong."""
        words = Text("regimix: ", style="bold red")
        # Not wrapped: a program that reads the sentence should find it on one line.
        self.err.print(words.append(self.clean(" ".join(text.split())), "default"), soft_wrap=True)

    def _drawn(self, what: Any, style: str) -> Any:
        return Text(self.clean(what), style=style) if isinstance(what, str) else what


def _console(file: IO[str]) -> Console:
    # Whatever is shown is the user's own text: no markup, no highlighting, no emoji codes.
    width = None if file.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(
        file=file, markup=False, highlight=False, emoji=False, width=width, theme=Theme(CALM)
    )


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
