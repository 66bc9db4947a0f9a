"""Two regimes planted on real features: found as often as they can be?

What can be found is judged by BIC told the true partition: does it prefer two regimes to one?
"""

from collections.abc import Sequence

import numpy as np

from benchmarks.data import Floats
from benchmarks.real import compare, ours
from benchmarks.real.part import Effort, Line, Part, Row
from benchmarks.real.tables import Table

# Root mean square distance of the two regimes' predictions, in units of the noise.
GAPS = (1.5, 3.0, 6.0, 12.0)
LARGER = 0.6
# Labels that agree this well with those of the told regimes are theirs.
RIGHT = 0.8
# Found less often than BIC by this much is found less often.
SLACK = 0.02
# Nats: scores that are nearer are the same.
SAME_SCORE = 0.5


def work(table: Table, effort: Effort) -> list[Row]:
    return [
        _one(table, gap, draw, number)
        for number, gap in enumerate(GAPS)
        for draw in range(effort.planted)
    ]


def _one(table: Table, gap: float, draw: int, number: int) -> Row:
    rng = np.random.default_rng([draw, number, *table.X.shape])
    y, labels = plant(table.X, gap, rng)
    told = compare.told_partition(table.X, y, labels)
    one = compare.least_squares(table.X, y, corrected=False)
    fit = ours.mixed(table.X, y, draw)
    ideal = np.argmax(told.joint(table.X, y), axis=1)
    ari = compare.agreement(ideal, fit.labels)
    head: Row = {"table": table.name, "shape": table.shape, "gap": gap, "draw": draw}
    possible = compare.bic(told, table.X, y) < compare.bic(one, table.X, y)
    two = fit.claimed == 2
    answer = {"count": fit.claimed, "ari": ari, "two": two, "right": two and ari >= RIGHT}
    overlooked = possible and not two and _likelier(fit, table.X, y, draw, told)
    return {**head, "possible": possible, **answer, "overlooked": overlooked}


def _likelier(fit: ours.Fit, X: Floats, y: Floats, seed: int, told: compare.Normals) -> bool:
    """Whether two regimes that are searched for from the true ones score above the answer."""
    start = np.column_stack([told.theta[:, 1:], told.theta[:, 0]])
    near = ours.mixed(X, y, seed, n_components=2, init=start)
    return _of_two(near) > fit.score + SAME_SCORE


def _of_two(fit: ours.Fit) -> float:
    """Evidence of two regimes; none if they are not what is left of those asked for."""
    path = fit.model.selection_
    known = dict(zip(path["n_components"], path["evidence"], strict=True))
    return float(known.get(2, -np.inf))


def plant(X: Floats, gap: float, rng: np.random.Generator) -> tuple[Floats, compare.Labels]:
    """Draw two regimes on decorrelated features, unit noise, and which rows follow which."""
    U, singular, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    Z = compare.with_ones(U[:, singular > 1e-9 * singular[0]] * np.sqrt(len(X)))
    theta = rng.standard_normal((2, Z.shape[1]))
    means = Z @ theta.T
    means *= gap / np.sqrt(np.mean((means[:, 0] - means[:, 1]) ** 2))
    labels = (rng.random(len(X)) >= LARGER).astype(np.int64)
    return means[np.arange(len(X)), labels] + rng.standard_normal(len(X)), labels


def sum_up(rows: Sequence[Row]) -> list[Line]:
    lines = []
    for gap in (None, *GAPS):
        some = [row for row in rows if gap in (None, row["gap"])]
        possible = compare.share([row["possible"] for row in some])
        two = compare.share([row["two"] for row in some])
        right = compare.share([row["right"] for row in some])
        what = "two planted regimes found" + (f", gap {gap:g} noise" if gap else "")
        met = None if gap is not None else two >= possible - SLACK
        figure = f"{100 * two:.3g} % ({100 * right:.3g} % with labels near the ideal ones)"
        lines.append(Line(what, figure, f"BIC told all: {100 * possible:.3g} %", met))
    missed = compare.share([not row["two"] for row in rows if row["possible"]])
    lines.append(Line("missed where BIC told all prefers two", f"{100 * missed:.3g} %"))
    overlooked = sum(row["overlooked"] for row in rows)
    what = "of these, a search from the true regimes scores higher"
    lines.append(Line(what, f"{overlooked} of {sum(r['possible'] and not r['two'] for r in rows)}"))
    return lines


def shown(rows: Sequence[Row]) -> list[Row]:
    """Gather the draws of each table in a row of the page."""
    gathered: dict[str, Row] = {}
    for row in rows:
        empty: Row = {"table": row["table"], "shape": row["shape"], "possible": []}
        empty |= {f"two_{gap:g}": [] for gap in GAPS}
        line = gathered.setdefault(row["table"], empty)
        line["possible"].append(row["possible"])
        line[f"two_{row['gap']:g}"].append(row["two"])
    return list(gathered.values())


PART = Part(
    title="Two planted regimes",
    about=(
        "The features of the table; responses of two random regimes, 60 % and 40 % of the rows, "
        "with unit noise. *gap*: the distance of their predictions in units of the noise. *BIC*: "
        "told the true partition, it prefers two regimes to one. *found*: exactly two regimes."
    ),
    work=work,
    sum_up=sum_up,
    columns={
        "table": "table",
        "shape": "rows × columns",
        "possible": "BIC, all gaps",
        **{f"two_{gap:g}": f"found, gap {gap:g}" for gap in GAPS},
    },
    shown=shown,
)
