"""What a person reads: answers go to standard output, everything else to standard error.

Also how a command can end: exit codes, and the two errors of the command line's own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import IntEnum
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress_bar import ProgressBar
from rich.text import Text
from rich.theme import Theme

from regimix.errors import RegimixError
from regimix.words import count

if TYPE_CHECKING:
    from regimix.search.settings import Progress as Step

# Replacements for characters that the terminal's encoding lacks.
WORDS = ("x", "2", "+-", "-", "-", "...", "->", "-", "*", "sqrt ")
PLAIN = str.maketrans(dict(zip("×²±−–…→·●√", WORDS, strict=True)))
# Calmer colours than rich's own.
CALM = {"bar.finished": "cyan", "progress.elapsed": "dim"}
# Width of the output where there is no terminal, unless COLUMNS gives one.
PIPE_WIDTH = 100
# What a fit calls a pass over rows that are not in memory.
READING = "reading"

# What the search calls its steps, and what a person reads.
STAGES = {
    "first": "first look",
    "add": "looking for another regime",
    "replace": "questioning the regimes",
    "more components": "looking for the number asked for",
}
# Seconds between two lines about a pass over a large table, where there is no terminal.
LINES_EVERY = 10.0


class Code(IntEnum):
    """How a command ended."""

    DONE = 0
    FAULT = 1
    REFUSED = 2
    INCOMPLETE = 3
    INTERRUPTED = 130


class CommandError(RegimixError):
    """What was asked on the command line cannot be done."""


class Aborted(Exception):  # noqa: N818 - not an error: someone pressed Ctrl-C
    """The user does not want to wait."""


class Voice:
    """Prints answers to ``out`` and everything else to ``err``; if quiet, only what must be read.

    With ``machine``, standard output is for a program: ``out`` is standard error too.
    """

    def __init__(self, *, quiet: bool = False, machine: bool = False) -> None:
        self.quiet = quiet
        self.err = _console(sys.stderr)
        self.out = self.err if machine else _console(sys.stdout)

    def clean(self, text: Any) -> str:
        """Escape control characters, which a terminal would obey, and replace those it lacks."""
        shown = "".join(
            one if one.isprintable() else one.encode("unicode_escape").decode("ascii")
            for one in str(text)
        )
        encoding = self.out.encoding
        if encoding.lower().startswith("utf"):
            return shown
        return shown.translate(PLAIN).encode(encoding, "replace").decode(encoding)

    def answer(self, what: Any = "", style: str = "", *, whole: bool = False) -> None:
        """Print part of the answer; ``whole`` lines are not broken, so that paths can be copied."""
        if self.quiet:
            return
        if self.out.is_terminal:
            self.out.print(self._drawn(what, style), soft_wrap=whole)
            return
        # rich pads lines with blanks, which a file does not need.
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


# --- progress -------------------------------------------------------------------------------------


class Bar:
    """Progress of a fit on a terminal; elsewhere ``say`` gets a line from time to time."""

    def __init__(
        self, progress: Progress, task: TaskID, say: Callable[[str], None] | None = None
    ) -> None:
        self._progress, self._task, self._say = progress, task, say
        self._words, self._found = "reading", ""
        self._pass, self._done = 1, 0
        self._begun = self._said = time.monotonic()

    def stage(self, words: str) -> None:
        """Say what is being done."""
        self._words = words
        self._progress.update(self._task, description=words, found=self._found, parts=None)

    def step(self, step: Step) -> None:
        """Say how far the search, or a pass over the table, is."""
        if step.stage == READING:
            done, total = step.parts_done, step.n_parts
            if done < self._done or done == self._done == total == 1:
                self._pass += 1
            self.stage("going over all rows")
            self.parts(done, total, which=f"pass {self._pass}: ")
            return
        self._found = f"{count(step.n_components, 'regime')} so far"
        self.stage(STAGES.get(step.stage, step.stage))

    def parts(self, done: int, total: int | None, what: str = "part", which: str = "") -> None:
        """Say how much is read or written, or how many resamples are searched."""
        self._done = done
        of = "" if total is None else f" of {total}"
        words = f"{which}{done}{of} {what}{'s' * ((total or done) != 1)}"
        self._progress.update(self._task, found=words, parts=None if not total else done / total)
        now = time.monotonic()
        if self._say is not None and now - self._said > LINES_EVERY:
            self._said = now
            found = f"; {self._found}" if self._found else ""
            self._say(f"{self._words}, {words}{found}; {now - self._begun:.0f} s")


@contextmanager
def progress_bar(voice: Voice, time_limit: float | None, *, lines: bool = False) -> Iterator[Bar]:
    """Show progress as a bar on a terminal, elsewhere, with ``lines``, in a line now and then."""
    columns = (
        SpinnerColumn(style="cyan"),
        TextColumn("{task.description}"),
        _TimeColumn(
            bar_width=16 if lines else 24,
            style="bright_black",
            complete_style="cyan",
            pulse_style="cyan",
        ),
        TextColumn("{task.fields[found]}"),
        TimeElapsedColumn(),
    )
    silent = voice.quiet or not voice.err.is_terminal
    say = voice.note if lines and not voice.err.is_terminal else None
    progress = Progress(*columns, console=voice.err, transient=True, disable=silent)
    # Before rich 14.3, a bar that is not shown ends with an empty line all the same.
    with nullcontext() if silent else progress:
        task = progress.add_task("reading", total=time_limit, found="", parts=None)
        yield Bar(progress, task, say)


class _TimeColumn(BarColumn):
    """A bar that fills with the parts of a pass, or with time up to a limit; else it pulses."""

    def render(self, task: Task) -> ProgressBar:
        """Draw it."""
        share = task.fields["parts"]
        if share is None:
            task.completed = task.elapsed or 0.0
            return super().render(task)
        bar = super().render(task)
        bar.total, bar.completed, bar.pulse = 1.0, share, False
        return bar
