"""How tests wait: for a condition, and in vain only for as long as nothing but a failure takes."""

import time
from collections.abc import Callable

__all__ = ["ENOUGH", "comes_true"]

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
