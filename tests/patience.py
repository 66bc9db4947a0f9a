"""How tests wait: for a condition, and in vain only for as long as nothing but a failure takes."""

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["ENOUGH", "Clock", "comes_true"]

# Seconds after which what a test waits for will not come, on the busiest machine.
ENOUGH = 600.0


def comes_true(condition: Callable[[], object]) -> bool:
    """Wait until a condition holds, and say whether it does."""
    give_up = time.monotonic() + ENOUGH
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


class Clock:
    """The time of the package, of which as much passes on a slow machine as on a fast one.

    It stands until a test lets it run; then each look at it takes ``LOOK`` seconds.
    """

    LOOK = 0.05

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now, self.runs = 0.0, False
        for name, module in list(sys.modules.items()):
            if name.startswith("regimix.") and getattr(module, "time", None) is time:
                patch.setattr(module, "time", self)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        self.now += self.runs * self.LOOK
        return self.now
