"""How often one relation that looks like several regimes is named, and true regimes are not.

``python -m benchmarks.rivals`` writes ``results/rivals.md``; ``--runs`` and ``--rows`` say how many
tables of which sizes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from regimix import MixedLinearRegression

Floats = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], tuple[Floats, Floats]]

RESULTS = Path(__file__).parent / "results" / "rivals.md"


def _fan(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    x = rng.uniform(0, 3, n)
    return x, 1 + 2 * x + 0.4 * x * rng.standard_normal(n)


def _exponential(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    x = rng.standard_normal(n)
    return x, np.exp(1 + x + 0.4 * rng.standard_normal(n))


def _square(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    x = rng.standard_normal(n)
    return x, x**2 + 0.3 * rng.standard_normal(n)


def _skewed(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    x = rng.standard_normal(n)
    return x, 1 + x + 0.5 * rng.exponential(size=n)


def _counts(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    x = rng.standard_normal(n)
    return x, rng.poisson(np.exp(1 + 0.7 * x)).astype(float)


def _heavy(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    x = rng.standard_normal(n)
    return x, 1 + x + 0.3 * rng.standard_t(3, n)


ONE: dict[str, Draw] = {
    "spread proportional to x": _fan,
    "exp(1 + x + 0.4 e)": _exponential,
    "x²": _square,
    "exponential noise": _skewed,
    "Poisson counts": _counts,
    "t(3) noise": _heavy,
}


def _lines(m: int, noise: str, ratio: float) -> Draw:
    """Lines of random coefficients, of equal shares; the ratio is that of signal to noise."""

    def draw(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        x = rng.standard_normal(n)
        coef = rng.standard_normal((m, 2))
        signal = (coef[:, :1] + coef[:, 1:] * x)[rng.integers(0, m, n), np.arange(n)]
        e = rng.standard_normal(n) if noise == "normal" else rng.standard_t(5, n) / np.sqrt(5 / 3)
        return x, signal + e * signal.std() / np.sqrt(ratio)

    return draw


SEVERAL: dict[str, Draw] = {
    f"{m} regimes, {noise} noise, signal to noise {ratio}": _lines(m, noise, ratio)
    for m in (2, 3)
    for noise in ("normal", "t(5)")
    for ratio in (5, 10, 25)
}


def _fit(draw: Draw, n: int, seed: int) -> tuple[int, bool, float]:
    """Return the number of regimes, whether a rival is named, and seconds of processor time."""
    x, y = draw(n, np.random.default_rng([seed, n]))
    begun = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        mixture = MixedLinearRegression(random_state=seed).fit(x[:, None], y).mixture_
    named = mixture.rival is not None and mixture.n_components > 1
    return mixture.n_components, named, time.process_time() - begun


def _measure(cases: dict[str, Draw], n: int, runs: int, jobs: int) -> list[list[str]]:
    rows = []
    for name, draw in cases.items():
        found = Parallel(jobs)(delayed(_fit)(draw, n, seed) for seed in range(runs))
        count, named, seconds = (np.array(part) for part in zip(*found, strict=True))
        several = count > 1
        right = named | ~several
        among = f"{named[several].mean():.0%}" if several.any() else ""
        cells = [name, f"{n:,}", f"{runs}", f"{several.mean():.0%}", among]
        rows.append([*cells, f"{right.mean():.0%}", f"{np.median(seconds):.2f}"])
        print("  ".join(rows[-1]), flush=True)
    return rows


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--add", action="store_true", help="append to the page")
    parser.add_argument("--only", choices=["one", "several"])
    given = parser.parse_args()
    head = ["table", "rows", "runs", "several found", "of these, named", "one or named", "seconds"]
    parts = []
    for title, cases in (("one", ONE), ("several", SEVERAL)):
        if given.only in (None, title):
            for n in given.rows:
                parts += _measure(cases, n, given.runs, given.jobs)
    lines = ["| " + " | ".join(row) + " |" for row in parts]
    if given.add:
        RESULTS.write_text(RESULTS.read_text() + "\n".join(lines) + "\n")
        return
    top = [
        "# One relation or several regimes",
        "",
        "Written by `python -m benchmarks.rivals`. *One or named*: the answer has one regime, or",
        "says that one relation explains the rows as well; it should be high for the first six",
        "tables. *Of these, named* should be low for true regimes.",
        "",
        "| " + " | ".join(head) + " |",
        "| " + " | ".join("---" for _ in head) + " |",
    ]
    RESULTS.write_text("\n".join([*top, *lines]) + "\n")


if __name__ == "__main__":
    main()
