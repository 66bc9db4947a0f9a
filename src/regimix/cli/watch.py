"""A fit as it goes: its progress on the terminal, and what Ctrl-C does to it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
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
    from regimix.mixture.settings import Progress as Step

__all__ = ["Bar", "Interrupts", "progress_bar"]

# What the search calls its steps, and what a person reads.
STAGES = {
    "first": "first look",
    "add": "looking for another regime",
    "replace": "questioning the regimes",
    "more components": "looking for the number asked for",
}


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

    def look(self) -> bool:
        """Take note that the search is at work; say whether it should end."""
        self._begun = True
        return self.count > 0


def _searching(frame: FrameType | None) -> bool:
    """Say whether an interrupt here is answered: by the two functions that drive a search."""
    from regimix.mixture.moves import search_model
    from regimix.mixture.peel import peel

    drivers = (search_model.__code__, peel.__code__)
    while frame is not None:
        if frame.f_code in drivers:
            return True
        frame = frame.f_back
    return False


class Bar:
    """What is told of a fit while it goes."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def stage(self, words: str) -> None:
        """Say what is being done."""
        self._progress.update(self._task, description=words)

    def step(self, step: Step) -> None:
        """Say how far the search is."""
        count = step.n_components
        found = f"{count} regime{'s' * (count != 1)} so far"
        self._progress.update(self._task, found=found)
        self.stage(STAGES.get(step.stage, step.stage))


@contextmanager
def progress_bar(voice: Voice, time_limit: float | None) -> Iterator[Bar]:
    """Show a bar on a terminal: what is done, what is found so far, and for how long."""
    columns = (
        SpinnerColumn(style="cyan"),
        TextColumn("{task.description}"),
        _TimeColumn(bar_width=24, style="bright_black", complete_style="cyan", pulse_style="cyan"),
        TextColumn("{task.fields[found]}"),
        TimeElapsedColumn(),
    )
    silent = voice.quiet or not voice.err.is_terminal
    with Progress(*columns, console=voice.err, transient=True, disable=silent) as progress:
        yield Bar(progress, progress.add_task("reading", total=time_limit, found=""))


class _TimeColumn(BarColumn):
    """A bar that fills with time up to a limit; without a limit nobody knows how far it is."""

    def render(self, task: Task) -> ProgressBar:
        """Draw it."""
        task.completed = task.elapsed or 0.0
        return super().render(task)
