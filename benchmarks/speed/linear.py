"""How time grows with the number of rows, in memory, and what a fit needs beside its data."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.data import SHARES, Mixed, mixed_models
from benchmarks.speed.answer import Answer, check, told_fits
from benchmarks.speed.million import worse
from benchmarks.speed.race import Contestant, duration, medians, race, say, stopwatch
from benchmarks.speed.table import Comparison, Row, Target, grid
from regimix import MixedLinearRegression

COLUMNS, QUICK_COLUMNS = 20, 3
SIZES = tuple(round(10**power) for power in (5, 5.5, 6, 6.5, 7))
QUICK_SIZES = (20_000, 40_000, 80_000)
EXPONENT = Target(1.05, at_least=False)
MEMORY = Target(0.25, at_least=False)


def run(repeats: int, quick: bool) -> Comparison:
    sizes, columns = (QUICK_SIZES, QUICK_COLUMNS) if quick else (SIZES, COLUMNS)
    memory = footprint(sizes[-1], columns)
    say(f"memory: {memory['extra'] / memory['data']:.0%} of X")
    # One table for all: a smaller one is its beginning.
    largest = mixed_models(sizes[-1], columns, seed=0)
    processor: dict[str, list[float]] = {str(rows): [] for rows in sizes}
    answers: dict[str, Answer] = {}
    seconds = race(
        {str(rows): contestant(largest, rows, processor, answers) for rows in sizes}, repeats
    )
    wall = [medians(seconds)[str(rows)] for rows in sizes]
    busy = [medians(processor)[str(rows)] for rows in sizes]
    raw = {
        "sizes": sizes,
        "seconds": seconds,
        "processor_seconds": processor,
        "medians": wall,
        "fit": power_law(sizes, wall),
        "memory": memory,
        "columns": columns,
    }
    rows = table(sizes, columns, wall, memory, answers)
    return Comparison(rows, remarks(sizes, wall, busy, memory), raw, {"shares": SHARES})


def contestant(
    largest: Mixed, rows: int, processor: dict[str, list[float]], answers: dict[str, Answer]
) -> Contestant:
    """Time fits of the first rows of the table, by the wall and by the processor."""
    name = str(rows)
    sample = Mixed(largest.X[:rows], largest.y[:rows], largest.labels[:rows], largest.theta)
    told = told_fits(sample)

    def fit(number: int) -> float:
        # The same seed for all sizes: the search then differs by its rows alone.
        model = MixedLinearRegression(random_state=number)
        began = time.process_time()
        seconds = stopwatch(lambda: model.fit(sample.X, sample.y))
        if number > 0:
            processor[name].append(time.process_time() - began)
        answers[name] = worse(answers.get(name), check(model, sample, told))
        return seconds

    return fit


def footprint(rows: int, columns: int) -> dict[str, float]:
    """Measure memory in a process of its own, which holds nothing but the data."""
    command = [sys.executable, "-m", "benchmarks.speed.footprint", str(rows), str(columns)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def power_law(sizes: Sequence[int], seconds: Sequence[float]) -> dict[str, float]:
    """Fit ``seconds = factor · size^exponent`` by least squares on logarithms."""
    exponent, log_factor = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return {"exponent": float(exponent), "factor": math.exp(log_factor)}


def table(
    sizes: Sequence[int],
    columns: int,
    wall: Sequence[float],
    memory: dict[str, float],
    answers: dict[str, Answer],
) -> list[Row]:
    faults = [f"{answer.fault} (n = {n})" for n, answer in answers.items() if answer.fault]
    return [
        Row(
            f"mixture, {sizes[0]:,} to {sizes[-1]:,} × {columns}: exponent of time in n",
            f"{duration(wall[0])} to {duration(wall[-1])}",
            "time proportional to n",
            "1",
            power_law(sizes, wall)["exponent"],
            EXPONENT,
            digits=3,
            fault="; ".join(faults),
        ),
        Row(
            f"mixture, {sizes[-1]:,} × {columns}: most memory beside the data",
            megabytes(memory["extra"]),
            "X",
            megabytes(memory["data"]),
            memory["extra"] / memory["data"],
            MEMORY,
            digits=3,
            fault="" if memory["found"] == len(SHARES) else "wrong answer",
        ),
    ]


def remarks(
    sizes: Sequence[int], wall: Sequence[float], busy: Sequence[float], memory: dict[str, float]
) -> list[str]:
    lines = [
        [f"{n:,}", duration(w), duration(b), duration(1e6 * w / n)]
        for n, w, b in zip(sizes, wall, busy, strict=True)
    ]
    how = (
        "the high-water mark of resident memory, put back to the memory in use before the fit"
        if memory["reset"]
        else "the high-water mark of resident memory, which this system cannot put back"
    )
    clock = (
        "Time is that of the wall, with the threads that regimix chooses; by processor time the "
        f"exponent is {power_law(sizes, busy)['exponent']:.3g}. From {sizes[-3]:,} rows on, where "
        "the search, whose sample is bounded, weighs little, it is "
        f"{power_law(sizes[-3:], wall[-3:])['exponent']:.3g}."
    )
    return [
        clock,
        grid(["rows", "wall", "processor", "wall for a million rows"], lines, names=()),
        f"Memory: in a process of its own, data drawn in blocks; {how}.",
    ]


def megabytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB"
