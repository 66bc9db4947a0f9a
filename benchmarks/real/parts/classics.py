"""Tables whose answer is in the literature: every seed has to give it."""

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.real import compare, in_r, ours
from benchmarks.real.part import Effort, Line, Part, Row, at_least
from benchmarks.real.tables import Table

# MASS: the first 26 rows of whiteside are from before the insulation, the others from after.
BEFORE = 26
OUTLIERS = {
    "hbk": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
    "wood": (4, 6, 8, 19),
    "stackloss": (1, 3, 4, 21),
    "starsCYG": (7, 9, 11, 20, 30, 34),
    "telef": (14, 15, 16, 17, 18, 19, 20, 21),
}
RELATED = ("whiteside", "water", "stackloss", "Anscombe")
# One line holds for nearly all of these rows; many are tied by rounding.
MOSTLY_CLEAN = ("cars", "faithful", "quakes", "Davis")
LARGE_MAJORITY = 0.8
# A line this near to ltsReg's, in its noise, is the same line.
NEAR = 0.5

Answer = tuple[str, bool]
Check = Callable[[Table, int], Answer]


def related(table: Table, seed: int) -> Answer:
    fit = ours.mixed(table.X, table.y, seed)
    text = f"{fit.count} found" if fit.found else "no relation"
    return " ".join([text, *fit.warnings]), fit.found


def insulated(table: Table, seed: int) -> Answer:
    fit = ours.mixed(table.X, table.y, seed)
    wrong = mislabelled(fit.labels, np.arange(len(table.y)) >= BEFORE)
    return f"{fit.count} found, {wrong} rows wrong", fit.count == 2 and wrong == 0


def mislabelled(labels: compare.Labels, truth: Sequence[bool] | np.ndarray) -> int:
    """Count the rows that differ from two true parts, whichever is called 0; outliers differ."""
    truth = np.asarray(truth, dtype=np.int64)
    return int(min(np.sum(labels != truth), np.sum(labels != 1 - truth)))


def two_regimes(table: Table, seed: int) -> Answer:
    fit = ours.mixed(table.X, table.y, seed)
    return f"{fit.count} found", fit.claimed == 2


def outliers(table: Table, seed: int) -> Answer:
    flags = compare.flagged(ours.trimmed(table.X, table.y, seed).inliers)
    return " ".join(map(str, flags)) or "none", flags == OUTLIERS[table.name]


def majority(table: Table, seed: int) -> Answer:
    line, peer = ours.trimmed(table.X, table.y, seed), in_r.robust_line(table.X, table.y)
    kept = float(line.inliers.mean())
    text, met = f"{100 * kept:.0f} % kept", kept >= LARGE_MAJORITY
    if peer is not None:
        theta = np.concatenate([[line.intercept], line.coef])
        gap = compare.gap_of_lines(table.X, theta, peer.theta, peer.scale)
        text, met = f"{text}, {gap:.2f} noise from ltsReg", met and gap <= NEAR
    return text, met


CHECKS: list[tuple[str, str, str, Check]] = [
    *((name, "a relation is found", "found", related) for name in RELATED),
    ("whiteside", "the regimes are the insulation's", "2 found, 0 rows wrong", insulated),
    ("tonedata", "two regimes", "2 found", two_regimes),
    *(
        (name, "rows off the line", " ".join(map(str, rows)), outliers)
        for name, rows in OUTLIERS.items()
    ),
    *(
        (name, "nearly all on one line", f"≥ {100 * LARGE_MAJORITY:.0f} % kept", majority)
        for name in MOSTLY_CLEAN
    ),
]
TABLES = tuple(dict.fromkeys(name for name, *_ in CHECKS))


def work(table: Table, effort: Effort) -> list[Row]:
    rows = []
    for name, what, expected, check in CHECKS:
        if name != table.name:
            continue
        answers = [check(table, seed) for seed in range(effort.seeds)]
        texts = list(dict.fromkeys(text for text, _ in answers))
        met = sum(met for _, met in answers)
        head: Row = {"table": name, "check": what, "expected": expected}
        told = {"found": " / ".join(texts), "seeds": len(answers), "met": met}
        rows.append({**head, **told, "ltsReg": _peer(table)})
    return rows


def _peer(table: Table) -> str:
    """Say which rows ltsReg leaves out, or how many where there are many."""
    peer = in_r.robust_line(table.X, table.y)
    if peer is None:
        return ""
    flags = compare.flagged(peer.inliers)
    return " ".join(map(str, flags)) if len(flags) <= 12 else f"{len(flags)} rows"


def sum_up(rows: Sequence[Row]) -> list[Line]:
    whole = [row["met"] == row["seeds"] for row in rows]
    return [at_least("checks that every seed meets", compare.share(whole), 1.0)]


PART = Part(
    title="Known answers",
    about=(
        "`MixedLinearRegression` and `TrimmedRegressor` with their defaults. Rows are counted from "
        "1. *met*: seeds that give the answer. *ltsReg*: the rows that R's `ltsReg` leaves out."
    ),
    work=work,
    sum_up=sum_up,
    columns={
        "table": "table",
        "check": "what",
        "expected": "expected",
        "found": "found",
        "met": "met",
        "seeds": "of",
        "ltsReg": "ltsReg",
    },
    suits=lambda table: table.name in TABLES,
    tables=TABLES,
)
