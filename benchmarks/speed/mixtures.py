"""Mixtures beside packages of R and Mix-IRLS, all told the number of components.

Everybody has one thread, and processor time counts. Every round draws new data. Packages of R
start again until they find the truth, which only a benchmark can know, or lose patience; the table
says how often they found it. regimix and Mix-IRLS have one try.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.peers.worker import PeerMissingError
from benchmarks.recovery.cells import Cell
from benchmarks.recovery.contestants import in_r
from benchmarks.recovery.contestants.mix_irls import mix_irls
from benchmarks.recovery.contestants.ours import count_given
from benchmarks.recovery.judge import Found, Verdict, judge
from benchmarks.recovery.sample import Sample, draw
from benchmarks.speed.race import Contestant, duration, medians, race, say
from benchmarks.speed.table import Comparison, Row, Target

OURS, MIX_IRLS = "regimix", "Mix-IRLS"
PACKAGES = ("flexmix", "mixtools")
TARGETS = {
    "flexmix": Target(20, at_least=True),
    "mixtools": Target(20, at_least=True),
    MIX_IRLS: Target(1, at_least=True),
}
PATIENCE = 15.0  # seconds after which a package of R starts no more
UNEQUAL = (3.0, 2.0, 1.0)
EASY = Cell("no outliers", 20, 3, 4_000, UNEQUAL, noise=0.1, outliers=0.0)
HARD = Cell(
    "5 % outliers",
    100,
    3,
    2_500,
    (0.7, 0.2, 0.1),
    noise=0.01,
    kind="redraw",
    success=0.05,
    fit_intercept=False,
)
# Who can be waited for, by cell. mixtools takes minutes a start in the second.
FIELDS = {
    EASY: (*PACKAGES, MIX_IRLS),
    replace(EASY, n=200_000): ("flexmix", MIX_IRLS),
    replace(EASY, noise=0.05, outliers=0.05, name="5 % outliers"): (*PACKAGES, MIX_IRLS),
    HARD: (MIX_IRLS,),
}
QUICK_FIELDS = {replace(EASY, d=3, m=2, weights=(), n=600): (*PACKAGES, MIX_IRLS)}
WARM_UP = Cell("warm-up", d=2, m=2, n=200, outliers=0.0)

Solver = Callable[[Cell, Sample, int, float], Found]


@dataclass
class Tries:
    """What a contestant found, round by round."""

    verdicts: list[Verdict] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    @property
    def found(self) -> int:
        return sum(verdict.success for verdict in self.verdicts)

    def tell(self) -> str:
        """Say how often the truth was found, and from how many starts."""
        told = f"found {self.found} of {len(self.verdicts)}"
        return f"{told}, starts: {np.median(self.starts):.0f}" if self.starts else told


def run(repeats: int, quick: bool) -> Comparison:
    missing = missing_packages()
    rows, cells, bars = [], {}, []
    try:
        for cell, names in (QUICK_FIELDS if quick else FIELDS).items():
            title = f"m = {cell.m}, {cell.n:,} × {cell.d}, {cell.name}"
            say(title)
            seconds, tries = compete(cell, [name for name in names if name not in missing], repeats)
            cells[title] = {"seconds": seconds, "found": {k: t.found for k, t in tries.items()}}
            rows += table(title, names, medians(seconds), tries, missing)
            bars += pictured(title, medians(seconds), tries)
        versions = [in_r.worker(name).version for name in PACKAGES if name not in missing]
    finally:
        in_r.stop_workers()
    told = "Everybody is told m; Mix-IRLS (our own implementation) the share of outliers too."
    peers = f" Peers: {'; '.join(versions)}." if versions else ""
    raw = {"cells": cells, "bars": bars}
    return Comparison(rows, [told + peers], raw, {"patience": PATIENCE})


def missing_packages() -> dict[str, str]:
    """Try to start the packages; say how to get those that are missing."""
    missing = {}
    for name in PACKAGES:
        try:
            in_r.worker(name)
        except PeerMissingError as error:
            missing[name] = str(error)
            say(f"{name}: {error}")
    return missing


def compete(
    cell: Cell, names: list[str], repeats: int
) -> tuple[dict[str, list[float]], dict[str, Tries]]:
    tries = {name: Tries() for name in (OURS, *names)}
    with threadpool_limits(1):
        contestants = {name: contestant(name, cell, tries[name]) for name in tries}
        return race(contestants, repeats), tries


def contestant(name: str, cell: Cell, tries: Tries) -> Contestant:
    solver: Solver = {OURS: count_given, MIX_IRLS: mix_irls}.get(name) or partial(_in_r, name)

    def fit(number: int) -> float:
        here = cell if number else WARM_UP
        sample = draw(here, number)
        began = time.process_time()
        found = solver(here, sample, number, 0.0)
        seconds = time.process_time() - began if found.seconds is None else found.seconds
        if number > 0:
            tries.verdicts.append(judge(here, sample, found))
            if name in PACKAGES:
                tries.starts.append(int(found.note.split()[0]))
        return seconds

    return fit


def _in_r(package: str, cell: Cell, sample: Sample, seed: int, _budget: float) -> Found:
    return in_r.restarted(package, cell, sample, seed, PATIENCE)


def table(
    title: str,
    names: tuple[str, ...],
    median: Mapping[str, float],
    tries: Mapping[str, Tries],
    missing: Mapping[str, str],
) -> list[Row]:
    what, ours = f"mixture, {title}: times faster", tries[OURS]
    lost = ours.found < len(ours.verdicts)
    fault = f"wrong answer: {ours.tell()}" if lost else ""
    rows = []
    for name in names:
        if name in missing:
            theirs, ratio = missing[name], None
        else:
            theirs = f"{duration(median[name])}, {tries[name].tell()}"
            ratio = median[name] / median[OURS]
        # The target is for the same quality: a peer that never finds the truth sets none.
        equal = name in missing or tries[name].found > 0
        target = TARGETS[name] if equal else None
        rows.append(Row(what, duration(median[OURS]), name, theirs, ratio, target, fault=fault))
    return rows


def pictured(
    title: str, median: Mapping[str, float], tries: Mapping[str, Tries]
) -> list[dict[str, Any]]:
    """Collect what the picture of all peers shows."""
    return [
        {
            "peer": name,
            "case": title,
            "ratio": median[name] / median[OURS],
            "target": TARGETS[name].bound,
            "found": found.found > 0,
        }
        for name, found in tries.items()
        if name != OURS
    ]
