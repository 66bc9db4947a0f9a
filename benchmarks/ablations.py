"""What gets worse without it: ``python -m benchmarks.ablations [--write] [NAME ...]``.

Every chosen number (``model/numbers.py``, ``search/numbers.py``, and the constants of
``result/rivals.py`` and ``result/stability.py``) is changed, one at a time, and tables of the suite
in which it acts are fitted again: halved, doubled, or switched off. A number whose change shows
nothing should go. Prints a table; with ``--write`` it is written to ``results/ablations.md``.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.real.tables import load
from benchmarks.recovery.cells import SUITES as CELLS
from benchmarks.recovery.run import Task, work
from benchmarks.rivals import ONE, SEVERAL
from regimix import MixedLinearRegression, TrimmedRegressor
from regimix.model.numbers import MODEL
from regimix.result import rivals, stability
from regimix.search.numbers import SEARCH
from regimix.synth import make_mlrc

PAGE = Path(__file__).parent / "results" / "ablations.md"
REAL = ("rock", "whiteside", "beav1", "Rabbit", "Insurance", "austres")
HARD = (
    (".7/.2/.1, n = 1500, 5% outliers", 5),
    (".7/.2/.1, n = 1500, 5% outliers", 6),
    (".4/.3/.2/.1, n = 1500, 5% outliers", 3),
    (".4/.3/.2/.1, n = 1500, 5% outliers", 4),
    ("1/3 each, n = 1500, 10% outliers", 1),
)
RELATIONS = ("trees", "engel", "mcycle", "Prestige")
# Nats: smaller differences of a score, and of how well labels agree, are none.
SAME = 0.3
SAME_LABELS = 0.02


class Outcome(NamedTuple):
    """Of one fit: score in nats, regimes (or successes), agreement with the truth, seconds."""

    score: float
    count: int
    agreement: float
    seconds: float


class Labelled(NamedTuple):
    """A simulated table and the labels of its rows."""

    name: str
    X: Any
    y: Any
    labels: Any


# --- tables ---------------------------------------------------------------------------------------


@cache
def real() -> list[Labelled]:
    """Load some of the real tables; nobody knows their labels."""
    return [Labelled(table.name, table.X, table.y, None) for table in load(REAL)[0]]


@cache
def small() -> list[Labelled]:
    """Draw small tables: several regimes, heavy tails, rounded responses."""
    shapes = ((150, 1, 2, 0.1, 0.1), (300, 5, 2, 0.1, 0.35), (600, 4, 3, 0.2, 0.1))
    tables = [_simulated(*shape) for shape in shapes]
    rng = np.random.default_rng(6)
    X = rng.standard_normal((1200, 20)) / np.sqrt(rng.chisquare(5, (1200, 1)) / 5)
    labels, slopes = rng.choice(3, 1200), rng.standard_normal((3, 20))
    y = (X * slopes[labels]).sum(axis=1) + 2.0 * labels + 0.1 * rng.standard_normal(1200)
    tables.append(Labelled("1200 × 20, heavy-tailed features", X, y, labels))
    x = rng.standard_normal(300)
    heavy = x + rng.standard_t(3, 300)
    tables.append(Labelled("t(3) noise", x[:, None], heavy, np.zeros(300)))
    x = rng.integers(4, 25, 60).astype(float)
    rounded = np.round(3.0 * x + 6.0 * rng.standard_normal(60))
    tables.append(Labelled("rounded", x[:, None], rounded, np.zeros(60)))
    return tables


@cache
def large() -> list[Labelled]:
    """Draw tables that are searched in stages."""
    return [_simulated(6000, 20, 5, 0.3, 0.1), _simulated(20_000, 4, 3, 0.1, 0.1)]


def _simulated(n: int, d: int, m: int, corruption: float, noise: float) -> Labelled:
    drawn = make_mlrc(n, d, m, corruption=corruption, noise=noise, random_state=1)
    return Labelled(f"{n} × {d}, {m} regimes", drawn.X, drawn.y, drawn.truth.labels)


# --- suites ---------------------------------------------------------------------------------------

Outcomes = dict[str, Outcome]


def _fits(tables: list[Labelled], **settings: Any) -> Outcomes:
    found = {}
    for table in tables:
        begun = time.process_time()
        model = MixedLinearRegression(random_state=0, **settings).fit(table.X, table.y)
        seconds = time.process_time() - begun
        truth = table.labels
        agreement = 1.0 if truth is None else adjusted_rand_score(truth, model.labels_)
        score = model.mixture_.evidence
        found[table.name] = Outcome(score, model.n_components_, agreement, seconds)
    return found


def _wide() -> Outcomes:
    """Run hard cells of the recovery benchmark: 1 where every component is found."""
    found = {}
    for name, seed in HARD:
        cell = next(c for suite in CELLS.values() for c in suite.cells if c.name == name)
        begun = time.process_time()
        success = bool(work(Task(cell, seed, ("regimix",), None))[0]["success"])
        found[f"{name}, {seed}"] = Outcome(0.0, success, 1.0, time.process_time() - begun)
    return found


def _lines() -> Outcomes:
    """Fit one line: half the rows times the log of the smallest six tenths of the squares."""
    found = {}
    for table in (*real(), *small(), *large()):
        begun = time.process_time()
        line = TrimmedRegressor(keep=0.6, random_state=0).fit(table.X, table.y)
        asked = TrimmedRegressor(random_state=0).fit(table.X, table.y)
        seconds = time.process_time() - begun
        n = len(table.y)
        squares = np.sort((table.y - line.predict(table.X)) ** 2)[: int(0.6 * n)]
        outliers = int(np.count_nonzero(~asked.inlier_mask_))
        found[table.name] = Outcome(-0.5 * n * np.log(squares.sum()), outliers, 1.0, seconds)
    return found


def _without_outliers(**settings: Any) -> Outcomes:
    """Fit two and three regimes to which every row belongs."""
    found = {}
    for table in real():
        for m in (2, 3):
            begun = time.process_time()
            model = MixedLinearRegression(n_components=m, random_state=0, **settings)
            mixture = model.fit(table.X, table.y).mixture_
            seconds = time.process_time() - begun
            if settings.get("search") == "partition":
                gaps = table.y[:, None] - mixture.predict_components(table.X)
                score = -0.5 * len(table.y) * np.log((gaps**2).min(axis=1).sum())
            else:
                score = mixture.loglik(table.X, table.y)
            found[f"{table.name}, {m}"] = Outcome(score, m, 1.0, seconds)
    return found


def _fan_with_zeros(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    x = np.append(rng.uniform(0, 3, n - 10), np.zeros(10))
    return x, 2 * x + 0.4 * x * rng.standard_normal(n)


def _fan_of_heavy_features(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    x = np.abs(rng.standard_t(2, n))
    return x, 1 + 2 * x + 0.4 * (0.2 + np.minimum(x, 3)) * rng.standard_normal(n)


ORIGIN = "a fan from the origin"
HOSTILE = {ORIGIN: _fan_with_zeros, "a fan, heavy tails": _fan_of_heavy_features}


def _rivals() -> Outcomes:
    """Compare with single relations: the lead of the likeliest, and 1 where it is named."""
    cases = {**ONE, **HOSTILE, **dict(list(SEVERAL.items())[::6])}
    tables = [Labelled(table.name, table.X, table.y, None) for table in load(RELATIONS)[0]]
    for name, draw in cases.items():
        x, y = draw(200, np.random.default_rng(1))
        tables.append(Labelled(name, x[:, None], y, None))
    found = {}
    for table in tables:
        begun = time.process_time()
        model = MixedLinearRegression(fit_intercept=table.name != ORIGIN, random_state=0)
        mixture = model.fit(table.X, table.y).mixture_
        lead = mixture.rivals[0].lead if mixture.rivals else 0.0
        named = int(mixture.rival is not None)
        found[table.name] = Outcome(lead, named, 1.0, time.process_time() - begun)
    return found


def _stability() -> Outcomes:
    """Search resamples: the regimes that are not doubtful, and how often all come back."""
    found = {}
    for table in [*real()[:1], *small()[:2]]:
        begun = time.process_time()
        mixture = MixedLinearRegression(random_state=0).fit(table.X, table.y).mixture_
        seen = mixture.stability(table.X, table.y, n_resamples=6, random_state=0)
        sure, back = int(np.count_nonzero(~seen.doubtful)), float(seen.recurrence.mean())
        found[table.name] = Outcome(0.0, sure, back, time.process_time() - begun)
    return found


SUITES: dict[str, Callable[[], Outcomes]] = {
    "tables": lambda: _fits(real() + small()),
    "wide": _wide,
    "large": lambda: _fits(large()),
    "line": _lines,
    "likelihood": lambda: _without_outliers(outliers=False, noise="normal"),
    "partition": lambda: _without_outliers(search="partition"),
    "rivals": _rivals,
    "stability": _stability,
}

# --- what is changed ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ablation:
    """A number, what it becomes, and the suite in which it acts."""

    field: str
    value: Any
    suite: str = "tables"

    @property
    def numbers(self) -> Any:
        """Return the dataclass or the module that the number belongs to."""
        if self.field.isupper():
            return rivals if hasattr(rivals, self.field) else stability
        return MODEL if self.field in {one.name for one in fields(MODEL)} else SEARCH

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Change it for a while."""
        before = getattr(self.numbers, self.field)
        # The dataclasses are frozen.
        put = setattr if isinstance(self.numbers, ModuleType) else object.__setattr__
        put(self.numbers, self.field, self.value)
        try:
            yield
        finally:
            put(self.numbers, self.field, before)


ABLATIONS = tuple(
    Ablation(field, value, suite)
    for suite, changes in (
        (
            "tables",
            (
                ("pairs_tried", 0),
                ("merges_tried", 1),
                ("joint_survivors", (1.0, 1.0)),
                ("blur", 1.0),
                ("far", 1e6),
                ("degrees", (4.0,)),
                ("joint_rounds", (3, 4, 6)),
                ("raw_width", 4),
                ("starts", 16),
                ("few_starts", 48),
                ("short_rounds", 2),
                ("rounds", 10),
                ("same_score", 3.0),
                ("agreeing_searches", 1),
                ("most_searches", 4),
                ("settled", 0.5),
                ("inner_rounds", 1),
                ("regime_gain", 0.0),
                ("slopes_variance", 0.5),
                ("intercept_variance", 1.0),
                ("bulk_level", 0.25),
                ("smallest_noise", 1e-3),
                ("finest_grid", 1e-6),
                ("member", 1e-2),
                ("farthest", 1e3),
                ("reach", 1e6),
            ),
        ),
        (
            "wide",
            (
                ("tail", 0.5),
                ("many_rows", 0.0),
                ("turns", 60),
                ("damping", 1.0),
                ("clip", 16.0),
                ("permutations", 1),
                ("zero_noise", (0.02, 0.02, 0.02, 0.02)),
            ),
        ),
        (
            "large",
            (
                ("clear", 0.5),
                ("polish_left", 0.1),
                ("growth", 8),
                ("first_rows", 500),
                ("rows_per_coefficient", 15),
                ("searched_numbers", 1_000_000),
            ),
        ),
        (
            "line",
            (
                ("first_rounds", 1),
                ("promising", 2),
                ("nearest_share", 0.5),
            ),
        ),
        (
            "partition",
            (("turns", 20),),
        ),
        (
            "likelihood",
            (("converged", 1e-2),),
        ),
        (
            "rivals",
            (
                ("KNOTS", (0.1, 0.5, 0.9)),
                ("NEXT_TO_ZERO", 0.0),
                ("FARTHEST", np.inf),
                ("POWERS", (0.0,)),
            ),
        ),
        (
            "stability",
            (
                ("PERTURBED", 0.0),
                ("PERTURBED", 0.5),
            ),
        ),
    )
    for field, value in changes
)


def compare(ablation: Ablation, before: Outcomes) -> str:
    """Run one ablation; return a row of the table."""
    with ablation.applied():
        after = SUITES[ablation.suite]()
    changed, lost, gained = [], 0.0, 0.0
    for name, old in before.items():
        new = after[name]
        step = new.score - old.score
        lost, gained = lost + max(-step - SAME, 0.0), gained + max(step - SAME, 0.0)
        if new.count != old.count:
            changed.append(f"{name}: {old.count} → {new.count}")
        elif abs(new.agreement - old.agreement) > SAME_LABELS:
            changed.append(f"{name}: agreement {old.agreement:.2f} → {new.agreement:.2f}")
    ratio = sum(o.seconds for o in after.values()) / sum(o.seconds for o in before.values())
    number = getattr(ablation.numbers, ablation.field)
    cells = (ablation.field, f"{number} → {ablation.value}", ablation.suite)
    figures = (f"{lost:.1f}", f"{gained:.1f}", f"{ratio:.2f}", "; ".join(changed))
    return "| " + " | ".join((*cells, *figures)) + " |"


def main() -> None:
    """Run the ablations of the numbers that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="numbers; all if none is named")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    given = parser.parse_args()
    titles = ("number", "change", "suite", "nats lost", "nats gained", "time", "answers changed")
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    print("\n".join(lines), flush=True)
    base: dict[str, Outcomes] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ablation in ABLATIONS:
            if given.names and ablation.field not in given.names:
                continue
            if ablation.suite not in base:
                SUITES[ablation.suite]()  # the first fit imports and compiles
                base[ablation.suite] = SUITES[ablation.suite]()
            lines.append(compare(ablation, base[ablation.suite]))
            print(lines[-1], flush=True)
    if given.write:
        PAGE.write_text("\n".join([HEAD, *lines, GONE]), encoding="utf-8")


HEAD = """# What the chosen numbers are for

Written by `python -m benchmarks.ablations --write`. Each row changes one number of
`model/numbers.py`, `search/numbers.py`, `result/rivals.py` or `result/stability.py` and fits the
tables of a suite again, with one seed. In the suite *rivals* nats are the lead of the likeliest
single relation, and a table counts 1 where it is named; in *stability* regimes count that are not
doubtful. *Nats lost* and *gained* are sums over the tables of differences beyond 0.3; *time* is
processor time over that without the change, and a fifth of it may be chance. In the suite *wide* a
table counts 1 where every component is found. Numbers of the prior change the score itself: of
those only the answers count. What these suites cannot show: precision of the coefficients
(`polish_*`, `clear`), time and memory of large tables (`MOST_NUMBERS`, `MOST_CHECKED`), guards of
arithmetic (`rounding`, `gram_rounding`, `smallest_scale`), and Algorithm 2 (`tail_*`, `clear_gap`).
Those are kept without an ablation, and so is a number whose row shows nothing but which a test or
the comment beside it defends.
"""
GONE = """
# Gone

Taken away alone, without a change of any answer: the most ingredients of a rival (they end by
themselves); deep searches of blurs (3 numbers); message
passing from directions of a subspace (4); a second, smaller number of components where directions
are many (1); the rows that a split needs (1); eight fixed widths of the background, and the number
of outliers from which its scale is free (a free scale at a price does the same); groups of small
components that are searched again (1); the loss up to which a smaller model is refitted (1);
Stirling's formula (1).

Measured on the ten hard tables of 100 columns only: the rule for stalls of message passing (2), and
a tail of its own before others are known (1). Of the cuts of heavy tails (2) the number near them
was changed alone, and then the cut itself went with it.

Taken away in pairs: the floor of the noise and the ridge of a joint search (one table gained 11
nats); components much wider than the sharpest, and a background of more than a fifth; what a
whitened direction may lose.

Taken away without a measurement of their own, the whole checked before and after: caps on moves,
hops, shaking and the filter, which end by themselves; when two fits on a sample are one; rounds,
starts, sizes of samples, ridges and tolerances that meant the same.

Taken away together, because their rows above showed nothing (48 real and simulated tables before
and after: no number of regimes and no score changed by half a nat): steps in which pools count as
searched before (`signature_steps`), shares that passes assume (`zero_share`), the error from which
a pass has found something (`found`), a tolerance of passes of their own (`passing_settled`), a
second strength of reweighting (`reweighting`), a second finalist among single lines (`finalists`);
and four numbers of Algorithm 2 that meant the same as others.
"""

if __name__ == "__main__":
    main()
