"""Many starts run together, against the same starts run one by one."""

import numpy as np

from benchmarks.data import one_model
from benchmarks.speed.race import duration, medians, race, stopwatch
from benchmarks.speed.table import Comparison, Row, Target
from regimix import ilts

ROWS, QUICK_ROWS = 20_000, 2_000
COLUMNS = 50
STARTS = 32
KEEP = 0.5
NOISE = 0.5
TARGET = Target(0.5, at_least=False)


def run(repeats: int, quick: bool) -> Comparison:
    sample = one_model(QUICK_ROWS if quick else ROWS, COLUMNS, seed=0, noise=NOISE)
    # As long as the model itself, in all directions: a search has no better guess.
    starts = np.random.default_rng(1).standard_normal((STARTS, COLUMNS)) / np.sqrt(COLUMNS)
    objectives: dict[str, list[float]] = {}

    def together() -> None:
        fits = ilts(sample.X, sample.y, starts, keep=KEEP)
        objectives["together"] = [float(fit.objective[-1]) for fit in fits]

    def one_by_one() -> None:
        fits = [ilts(sample.X, sample.y, start, keep=KEEP) for start in starts]
        objectives["one by one"] = [float(fit.objective[-1]) for fit in fits]

    seconds = race(
        {
            "together": lambda _: stopwatch(together),
            "one by one": lambda _: stopwatch(one_by_one),
        },
        repeats,
    )
    np.testing.assert_allclose(objectives["together"], objectives["one by one"], rtol=1e-6)
    median = medians(seconds)
    row = Row(
        f"{STARTS} starts together, {len(sample.y):,} × {COLUMNS}: cost",
        duration(median["together"]),
        f"{STARTS} single runs",
        duration(median["one by one"]),
        median["together"] / median["one by one"],
        TARGET,
    )
    settings = {"rows": len(sample.y), "columns": COLUMNS, "keep": KEEP, "noise": NOISE}
    return Comparison([row], raw={"seconds": seconds, "objectives": objectives}, settings=settings)
