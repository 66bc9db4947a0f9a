"""A fit as it goes: its progress on the terminal, and what Ctrl-C does to it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

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

from regimix.cli.failures import Aborted

if TYPE_CHECKING:
    from regimix.cli.console import Voice
    from regimix.search.settings import Progress as Step

__all__ = ["READING", "Bar", "Interrupts", "progress_bar"]

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


class Interrupts:
    """Ctrl-C: the first ends the search with the best so far, the second ends everything.

    Use as a context; ``look`` is for the callback of an estimator. Before the search there is
    nothing to keep, and the first Ctrl-C ends everything. During the search it is raised there:
    the search answers with what it has. After the search it waits until the answer is written.

    Attributes
    ----------
    count : int
        How often Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.count = 0
        self._begun = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        # Only the main thread of a process may listen to signals.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if isinstance(error, KeyboardInterrupt):
            early = "interrupted before there was an answer; nothing was written."
            late = "interrupted twice; what was not finished was not written."
            raise Aborted(early if self.count < 2 else late) from error

    def _heard(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal's
        self.count += 1
        if not self._begun and self.count == 1 and isinstance(sys.exception(), KeyboardInterrupt):
            # polars raises one of its own for the same Ctrl-C, and then Python hears of it too: a
            # second one would keep the bar from being taken away.
            return
        if self.count > 1 or not self._begun or _searching(frame):
            raise KeyboardInterrupt

    def look(self, *, searching: bool = True) -> bool:
        """Take note that the search is at work; say whether it should end."""
        self._begun = self._begun or searching
        return self.count > 0


def _searching(frame: FrameType | None) -> bool:
    """Say whether an interrupt here is answered: by the two functions that drive a search."""
    from regimix.search.algorithm2 import peel
    from regimix.search.loop import search_model

    drivers = (search_model.__code__, peel.__code__)
    while frame is not None:
        if frame.f_code in drivers:
            return True
        frame = frame.f_back
    return False


class Bar:
    """What is told of a fit while it goes.

    ``say`` is told the same in lines, from time to time, where there is no terminal.
    """

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
            self._show(done, total, f"pass {self._pass}: ")
            return
        count = step.n_components
        self._found = f"{count} regime{'s' * (count != 1)} so far"
        self.stage(STAGES.get(step.stage, step.stage))

    def parts(self, done: int, total: int | None) -> None:
        """Say how much is written."""
        self._show(done, total, "")

    def _show(self, done: int, total: int | None, which: str) -> None:
        self._done = done
        of = "" if total is None else f" of {total}"
        words = f"{which}{done}{of} part{'s' * ((total or done) != 1)}"
        self._progress.update(self._task, found=words, parts=None if not total else done / total)
        now = time.monotonic()
        if self._say is not None and now - self._said > LINES_EVERY:
            self._said = now
            found = f"; {self._found}" if self._found else ""
            self._say(f"{self._words}, {words}{found}; {now - self._begun:.0f} s")


@contextmanager
def progress_bar(voice: Voice, time_limit: float | None, *, lines: bool = False) -> Iterator[Bar]:
    """Show a bar on a terminal: what is done, what is found so far, and for how long.

    With ``lines``, a line now and then says so where there is no terminal.
    """
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
    with Progress(*columns, console=voice.err, transient=True, disable=silent) as progress:
        task = progress.add_task("reading", total=time_limit, found="", parts=None)
        yield Bar(progress, task, say)


class _TimeColumn(BarColumn):
    """A bar that fills with the parts of a pass, or else with time up to a limit.

    Without either nobody knows how far it is.
    """

    def render(self, task: Task) -> ProgressBar:
        """Draw it."""
        share = task.fields["parts"]
        if share is None:
            task.completed = task.elapsed or 0.0
            return super().render(task)
        bar = super().render(task)
        bar.total, bar.completed, bar.pulse = 1.0, share, False
        return bar
