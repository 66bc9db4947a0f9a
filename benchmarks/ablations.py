"""What gets worse without it: ``python -m benchmarks.ablations [--seeds N] [NAME ...]``.

Numbers and parts that were chosen are taken away, one at a time, and a few hard simulated cells and
real tables are fitted again. A part whose absence shows nothing should go. Prints a table; nothing
is written.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.recovery.cells import SUITES
from benchmarks.recovery.run import Task, work
from regimix import MixedLinearRegression
from regimix.datasets import load_tone
from regimix.synth import make_mlrc


@dataclass(frozen=True)
class Ablation:
    """What is taken away: names in modules, and what they become."""

    name: str
    changes: tuple[tuple[str, Any], ...]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Take it away for a while."""
        patches = [patch(target, value) for target, value in self.changes]
        for one in patches:
            one.start()
        try:
            yield
        finally:
            for one in patches:
                one.stop()


NOTHING = Ablation("(as it is)", ())
ABLATIONS = (
    Ablation("one search only", (("regimix.search.stages.MOST_SEARCHES", 1),)),
    Ablation("two agreeing searches are enough", (("regimix.search.stages.ENOUGH_TIMES", 2),)),
    Ablation("no background of free scale", (("regimix.model.em.MANY_OUTLIERS", np.inf),)),
    Ablation("a regime need not gain 3 nats", (("regimix.model.em.REGIME_GAIN", 0.0),)),
    Ablation(
        "noise may be smaller than rounding", (("regimix.model.rows.resolution", lambda _: 0.0),)
    ),
    Ablation("noise is always normal", (("regimix.search.selection.DEGREES", ()),)),
    Ablation("no steeper regimes", (("regimix.model.evidence.STEEPER", np.zeros(1)),)),
    Ablation("uncertain coefficients ignored", (("regimix.model.em.MANY_ROWS", 0.0),)),
    Ablation("no deep search", (("regimix.search.propose.DEEP_COUNTS", ()),)),
    Ablation("merges: the cheapest alone", (("regimix.search.selection.MERGES_TRIED", 1),)),
)
CELLS = (".7/.2/.1, n = 1500, 5% outliers", "1/3 each, n = 1500, 10% outliers")


def _cell(name: str, seeds: int) -> str:
    """Return how often every component of a simulated cell is found."""
    cell = next(c for suite in SUITES.values() for c in suite.cells if c.name == name)
    found = [work(Task(cell, seed, ("regimix",), None))[0]["success"] for seed in range(seeds)]
    return f"{np.mean(found):.2f}"


def _counts(make: Callable[[int], tuple[Any, Any]], seeds: int) -> str:
    """Return the numbers of regimes that are found, by seed."""
    counts = []
    for seed in range(seeds):
        X, y = make(seed)
        counts.append(MixedLinearRegression(random_state=seed).fit(X, y).n_components_)
    return " ".join(map(str, counts))


def _tone(seed: int) -> tuple[Any, Any]:
    del seed
    tone = load_tone()
    return tone.X, tone.y


def _heavy(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 1))
    return X, X[:, 0] + rng.standard_t(3, 300)


def _many_outliers(seed: int) -> tuple[Any, Any]:
    table = make_mlrc(20_000, 4, 3, noise=0.1, corruption=0.1, random_state=seed)
    return table.X, table.y


def _rounded(seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.integers(4, 25, 60).astype(float)
    return x[:, None], np.round(3.0 * x + 6.0 * rng.standard_normal(60))


TABLES: tuple[tuple[str, Callable[[int], tuple[Any, Any]]], ...] = (
    ("tone (2)", _tone),
    ("t(3) noise (1)", _heavy),
    ("many outliers (3)", _many_outliers),
    ("rounded (1)", _rounded),
)


def main() -> None:
    """Run the ablations that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="part of the name of an ablation")
    parser.add_argument("--seeds", type=int, default=6)
    given = parser.parse_args()
    titles = ["without", *CELLS, *(name for name, _ in TABLES)]
    print("| " + " | ".join(titles) + " |\n|" + " --- |" * len(titles), flush=True)
    for ablation in (NOTHING, *ABLATIONS):
        if given.names and not any(name in ablation.name for name in given.names):
            continue
        with threadpool_limits(1), warnings.catch_warnings(), ablation.applied():
            warnings.simplefilter("ignore")
            figures = [_cell(name, given.seeds) for name in CELLS]
            figures += [_counts(make, given.seeds) for _, make in TABLES]
        print(f"| {ablation.name} | " + " | ".join(figures) + " |", flush=True)


if __name__ == "__main__":
    main()
