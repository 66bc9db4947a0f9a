"""Does the answer depend on the seed, or on how the same features are told?"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.real import compare, ours
from benchmarks.real.part import Effort, Line, Part, Row, at_least, described, percent
from benchmarks.real.recode import RECODINGS
from benchmarks.real.tables import Table

NATS = 1.0
SAME = 0.95
# Of the single runs, the tables, the runs where seeds disagree.
TARGET_BEST, TARGET_AGREE, TARGET_WARNED = 0.95, 0.9, 0.95


def work(table: Table, effort: Effort) -> list[Row]:
    fits = [ours.mixed(table.X, table.y, seed) for seed in range(effort.searches)]
    singles = fits[: effort.seeds]
    others = _recoded(table, max(1, effort.seeds // 3))
    # What is no relation has a score that says nothing.
    best = max(_score(fit) for fit in fits)
    told = [fit for fits in others.values() for fit in fits]
    agree = compare.all_agree([f.labels for f in singles], [f.claimed for f in singles], SAME)
    same = {kind: [_alike(singles[0], fit) for fit in fits] for kind, fits in others.items()}
    return [
        {
            "table": table.name,
            "shape": table.shape,
            "best": best,
            "recoded_best": max(_score(fit) for fit in told),
            "counts": sorted({fit.claimed for fit in singles}),
            "scores": [_score(fit) for fit in singles],
            "within": [_score(fit) >= best - NATS for fit in singles],
            "recoded_within": [_score(fit) >= best - NATS for fit in told],
            "agree": agree,
            "recoded_agree": {kind: all(alike) for kind, alike in same.items()},
            "unsure": [fit.unsure for fit in singles],
            "warnings": Counter(name for fit in singles for name in fit.warnings),
            "lowest_ari": min(compare.agreement(singles[0].labels, f.labels) for f in singles),
        }
    ]


def _recoded(table: Table, seeds: int) -> dict[str, list[ours.Fit]]:
    """Fit the table told in every other way that there is: one column has no other order."""
    fits = {}
    for kind, recode in RECODINGS.items():
        told = [recode(table, np.random.default_rng(seed)) for seed in range(seeds)]
        if not np.array_equal(told[0], table.X):
            fits[kind] = [ours.mixed(X, table.y, seed) for seed, X in enumerate(told)]
    return fits


def _score(fit: ours.Fit) -> float:
    return fit.score if fit.found else 0.0


def _alike(a: ours.Fit, b: ours.Fit) -> bool:
    return compare.all_agree([a.labels, b.labels], [a.claimed, b.claimed], SAME)


def sum_up(rows: Sequence[Row]) -> list[Line]:
    within = [value for row in rows for value in row["within"]]
    recoded = [value for row in rows for value in row["recoded_within"]]
    unsure = [value for row in rows if not row["agree"] for value in row["unsure"]]
    quiet = [value for row in rows if row["agree"] for value in row["unsure"]]
    spread = [max(scores) - min(scores) for row in rows if (scores := row["scores"])]
    agree = compare.share([row["agree"] for row in rows])
    lines = [
        at_least("runs within 1 nat of the best search", compare.share(within), TARGET_BEST),
        at_least("the same with recoded features", compare.share(recoded), TARGET_BEST),
        at_least("tables on which all seeds agree", agree, TARGET_AGREE),
    ]
    for kind in RECODINGS:
        alike = [row["recoded_agree"][kind] for row in rows if kind in row["recoded_agree"]]
        what = f"tables that agree with another {kind} (of {len(alike)})"
        lines.append(at_least(what, compare.share(alike), TARGET_AGREE))
    warned = compare.share(unsure)
    lines.append(at_least("runs that warn where seeds disagree", warned, TARGET_WARNED))
    lines.append(Line("runs that warn where seeds agree", percent(compare.share(quiet))))
    gained = sum(value > NATS for value in _gains(rows))
    lines.append(Line("tables where recoding finds over 1 nat more", f"{gained} of {len(rows)}"))
    lines.append(Line("largest spread of scores over seeds", f"{max(spread, default=0):.3g} nats"))
    return [*lines, *_warned(rows)]


def _warned(rows: Sequence[Row]) -> list[Line]:
    """Say how many of the single runs give each warning."""
    runs = sum(len(row["within"]) for row in rows)
    total = sum((Counter(row["warnings"]) for row in rows), Counter[str]())
    return [Line(f"runs with {name}", percent(n / runs)) for name, n in sorted(total.items())]


def _gains(rows: Sequence[Row]) -> list[float]:
    pairs = zip(described(rows, "recoded_best"), described(rows, "best"), strict=True)
    return [recoded - best for recoded, best in pairs]


PART = Part(
    title="Stability",
    about=(
        "The score is `mixture_.evidence`, 0 where no relation is found. Recoded: another "
        "reference level of categories, other units, a random rotation, another order of the "
        "columns. Seeds agree if they find one number of regimes and labels with an adjusted Rand "
        "index above .95."
    ),
    work=work,
    sum_up=sum_up,
    columns={
        "table": "table",
        "shape": "rows × columns",
        "counts": "regimes",
        "best": "best score",
        "recoded_best": "recoded",
        "within": "within 1 nat",
        "agree": "seeds agree",
        "lowest_ari": "lowest ARI",
        "unsure": "warned",
    },
)
