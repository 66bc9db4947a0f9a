"""The cost of an ILTS round after the third, against the least any round must do.

From the third round on few rows enter or leave the kept set, so a round should cost little more
than computing all residuals and selecting the smallest.
"""

import statistics
import warnings

import numpy as np

from benchmarks.data import one_model
from benchmarks.speed.race import duration, medians, race, stopwatch
from benchmarks.speed.table import Comparison, Row, Target
from regimix import ilts

ROWS, QUICK_ROWS = 1_000_000, 20_000
COLUMNS = 50
KEEP = 0.5
NOISE = 0.5  # without noise ILTS would be done after a few rounds
EARLY, LATE = 3, 23  # twenty rounds between them: their cost stands out of the noise
TARGET = Target(2.5, at_least=False)


def run(repeats: int, quick: bool) -> Comparison:
    sample = one_model(QUICK_ROWS if quick else ROWS, COLUMNS, seed=0, noise=NOISE)
    kept = int(KEEP * len(sample.y))
    rounds: dict[int, int] = {}

    def fit(max_iter: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it stops early because we ask it to
            rounds[max_iter] = ilts(sample.X, sample.y, keep=KEEP, max_iter=max_iter).n_iter

    def passes() -> None:
        for _ in range(LATE - EARLY):
            np.partition(np.abs(sample.y - sample.X @ sample.coef), kept - 1)

    early, late, floor = f"{EARLY} rounds", f"up to {LATE} rounds", "one pass"
    seconds = race(
        {
            early: lambda _: stopwatch(lambda: fit(EARLY)),
            late: lambda _: stopwatch(lambda: fit(LATE)),
            # As many in a row as there are late rounds: both sides then run equally warm.
            floor: lambda _: stopwatch(passes) / (LATE - EARLY),
        },
        repeats,
    )
    extra = rounds[LATE] - rounds[EARLY]
    # Paired by race round, so that a slow spell of the machine cancels.
    cost = statistics.median(
        (b - a) / extra for a, b in zip(seconds[early], seconds[late], strict=True)
    )
    least = medians(seconds)[floor]
    row = Row(
        f"a round after the third, {len(sample.y):,} × {COLUMNS}: cost",
        duration(cost),
        "`abs(y − X @ theta)` and `numpy.partition`",
        duration(least),
        cost / least,
        TARGET,
    )
    raw = {"seconds": seconds, "rounds_after_the_third": extra}
    settings = {"rows": len(sample.y), "columns": COLUMNS, "keep": KEEP, "noise": NOISE}
    return Comparison([row], raw=raw, settings=settings)
