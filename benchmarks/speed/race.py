"""Interleaved timing: every contestant runs once a round, so that noise hits all alike."""

import statistics
import time
from collections.abc import Callable, Mapping

# Runs the round of the given number and says how many seconds it took. Round 0 is a warm-up.
Contestant = Callable[[int], float]
Seconds = dict[str, list[float]]

# A contestant that has used this much sits out the remaining rounds: robpy takes minutes a fit.
PATIENCE_SECONDS = 120.0


def say(message: str) -> None:
    """Show progress."""
    print(f"  {message}", flush=True)


def race(contestants: Mapping[str, Contestant], repeats: int) -> Seconds:
    """Run ``repeats`` rounds after a discarded warm-up; return the seconds of each contestant."""
    seconds: Seconds = {name: [] for name in contestants}
    for number in range(repeats + 1):
        for name, contestant in contestants.items():
            if sum(seconds[name]) > PATIENCE_SECONDS:
                continue
            taken = contestant(number)
            if number > 0:
                seconds[name].append(taken)
            say(f"{'warm-up' if number == 0 else f'round {number}'}: {name} {duration(taken)}")
    return seconds


def stopwatch(work: Callable[[], object]) -> float:
    """Return the seconds that ``work`` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(seconds: Seconds) -> dict[str, float]:
    """Return the median of each contestant."""
    return {name: statistics.median(values) for name, values in seconds.items()}


def duration(seconds: float) -> str:
    """Write seconds with three digits, as a person would."""
    if seconds == float("inf"):
        return "not reached"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"
