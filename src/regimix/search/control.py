"""When a search ends early: a budget of starts or time, a callback, or an interrupt."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from regimix.errors import StopReason
from regimix.search.settings import Progress, Settings

__all__ = ["Control", "Stopped", "answer_interrupts", "answers_interrupts", "watcher"]

_ANSWERS: ContextVar[bool] = ContextVar("answers", default=False)


@contextmanager
def answer_interrupts() -> Iterator[None]:
    """Mark code that answers a KeyboardInterrupt with the best so far; also a decorator."""
    token = _ANSWERS.set(True)
    try:
        yield
    finally:
        _ANSWERS.reset(token)


def answers_interrupts() -> bool:
    """Whether a KeyboardInterrupt would be answered with the best so far."""
    return _ANSWERS.get()


class Stopped(Exception):  # noqa: N818 - not an error: the search ends with the best so far
    """A search was asked to end."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class Control:
    """Looks at the clock, the budget and the user's callback between proposals."""

    settings: Settings
    begun: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self.begun

    def check(self, stage: str, n_components: int, score: float, n_starts: int) -> None:
        """Report progress; raise ``Stopped`` when the search is to end."""
        settings = self.settings
        progress = Progress(stage, n_components, score, self.elapsed, n_starts)
        if settings.callback is not None and settings.callback(progress):
            raise Stopped(StopReason.CALLBACK)
        if settings.max_starts is not None and n_starts >= settings.max_starts:
            raise Stopped(StopReason.MAX_STARTS)
        if settings.time_limit is not None and self.elapsed >= settings.time_limit:
            raise Stopped(StopReason.TIME_LIMIT)


def watcher(settings: Settings) -> Callable[[int, int | None], Any] | None:
    """Return what tells the user's callback how far a pass over the table is."""
    if settings.callback is None:
        return None
    tell, begun = settings.callback, time.monotonic()

    def watch(done: int, total: int | None) -> Any:
        elapsed = time.monotonic() - begun
        return tell(Progress("reading", 0, 0.0, elapsed, 0, done, total))

    return watch
