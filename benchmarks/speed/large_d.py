"""Solvers that never form a d × d matrix, against the exact one: who is sooner, and from which d.

All start at the same distance from the truth, and the clock stops in the round in which the
coefficients come within a relative error of 1e-6. The data have no noise, so they get there.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.data import Sample, one_model, random_direction
from benchmarks.speed.race import Contestant, Seconds, duration, medians, race, say
from benchmarks.speed.table import Comparison, Row, Target, grid
from regimix import gd_ilts, ilts

COLUMNS, QUICK_COLUMNS = 2_000, 100
ROWS_PER_COLUMN = 25
SWEEP = (25, 50, 100, 200, 400, 800, 1_600)
KEEP = 0.5
START_DISTANCE = 0.3  # inside the basin of attraction, so that only the solver differs
RELATIVE_ERROR = 1e-6
TARGET = Target(3, at_least=True)

EXACT = "exact"
SOLVERS: dict[str, Callable[..., Any]] = {
    EXACT: ilts,
    "gradient": partial(gd_ilts, inner="gradient"),
    "cg": partial(gd_ilts, inner="cg"),
}
ITERATIVE = [name for name in SOLVERS if name != EXACT]


def run(repeats: int, quick: bool) -> Comparison:
    largest = QUICK_COLUMNS if quick else COLUMNS
    swept: dict[int, Seconds] = {}
    for columns in (*(d for d in SWEEP if d < largest), largest):
        say(f"d = {columns:,}, n = {ROWS_PER_COLUMN * columns:,}")
        sample = one_model(ROWS_PER_COLUMN * columns, columns, seed=columns)
        contestants = {name: _contestant(solver, sample) for name, solver in SOLVERS.items()}
        swept[columns] = race(contestants, repeats)
    median = {columns: medians(seconds) for columns, seconds in swept.items()}
    last = median[largest]
    rows = [
        Row(
            f"`{name}` to relative error 1e-6, {ROWS_PER_COLUMN * largest:,} × {largest:,}: "
            "times sooner",
            duration(last[name]),
            "exact solver",
            duration(last[EXACT]),
            last[EXACT] / last[name],
            TARGET,
        )
        for name in ITERATIVE
    ]
    sweep = [
        [f"{columns:,}", *(duration(times[name]) for name in SOLVERS)]
        for columns, times in median.items()
    ]
    remarks = [
        f"Seconds until relative error 1e-6, by d, with n = {ROWS_PER_COLUMN} d:",
        grid(["d", *SOLVERS], sweep),
        *(crossover(name, median) for name in ITERATIVE),
    ]
    settings = {"keep": KEEP, "start_distance": START_DISTANCE, "relative_error": RELATIVE_ERROR}
    return Comparison(rows, remarks, {"seconds_by_d": swept}, settings)


def crossover(name: str, median: dict[int, dict[str, float]]) -> str:
    """Say from which d on a solver is sooner than the exact one, at every larger d tried."""
    gains = [(columns, times[EXACT] / times[name]) for columns, times in median.items()]
    sooner = len(gains)
    while sooner > 0 and gains[sooner - 1][1] > 1:
        sooner -= 1
    if sooner == len(gains):
        return f"Crossover: `{name}` is not sooner than exact up to d = {gains[-1][0]:,}."
    if sooner == 0:
        return f"Crossover: `{name}` is sooner than exact at every d tried."
    (d0, gain0), (d1, gain1) = gains[sooner - 1], gains[sooner]
    # Costs are powers of d, so the gain is close to a straight line between logarithms.
    share = -math.log(gain0) / (math.log(gain1) - math.log(gain0)) if gain0 > 0 else 1.0
    return f"Crossover: `{name}` is sooner than exact from d ≈ {d0 * (d1 / d0) ** share:.2g} on."


def _contestant(solver: Callable[..., Any], sample: Sample) -> Contestant:
    def solve(number: int) -> float:
        """Return the seconds until the error is reached, from a start that differs by round."""
        rng = np.random.default_rng(number)
        length = float(np.linalg.norm(sample.coef))
        start = sample.coef + START_DISTANCE * length * random_direction(sample.coef.size, rng)
        reached = math.inf

        def watch(state: Any) -> bool:
            nonlocal reached
            if np.linalg.norm(state.coef - sample.coef) > RELATIVE_ERROR * length:
                return False
            reached = time.perf_counter()
            return True

        began = time.perf_counter()
        solver(sample.X, sample.y, start, keep=KEEP, callback=watch)
        return reached - began

    return solve
