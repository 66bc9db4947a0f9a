"""Rounds that follow the gradient for a time u (Propositions 14 and 15, ``thm:ode``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lab.contraction import contraction
from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, panels
from lab.gradient_flow import flow_bound, flow_rates, gradient_flow, ideal_time, omega
from lab.simulation import mixture, start_at
from lab.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FLOW"]

Floats = NDArray[np.float64]
# Features, responses, components, labels and the component to go to.
Known = tuple[Floats, Floats, Floats, NDArray[np.int64], int]

SHARE_KEPT, DIRECTIONS, SELECTION_COST = 0.9, 400, 1.0
TIMES = tuple(float(u) for u in np.geomspace(0.05, 100.0, 60))
# Distances, as shares of the distance to the next component, at which rounds begin. From the last
# one no foreign row is kept, and the bound promises a contraction.
DISTANCES = (0.3, 0.1, 0.03, 0.01)
NEAR = 1e-4
# The least share of the times for which the bound must be below one from there: else nothing is
# checked.
USEFUL = 0.2
# Ratios below this are rounding.
FLOOR = 1e-10
# The best time must grow by at least this for each factor e by which the error falls.
GROWTH = 0.3


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Follow the flow of one round from several distances; compute the bound beside it."""
    if cell["features"] == "axes":
        return _one_round(*_slow_axis(int(cell["n"])), 1.0, broken)
    n, d, m = int(cell["n"]), int(cell["d"]), int(cell["m"])
    data = mixture(rng, n, d, m)
    truth = data.truth
    keep = SHARE_KEPT * float(truth.clean_fraction[0])
    rows: list[Row] = []
    for distance in (*DISTANCES, NEAR):
        theta = start_at(rng, truth.coef, 0, distance)
        known = (data.X, data.y, truth.coef, truth.labels, 0)
        rows += _one_round(known, theta, keep, distance, broken)
    return rows


def _slow_axis(n: int) -> tuple[Known, Floats, float]:
    """Make data on which the bound needs its last term: an error along the slow one of two axes."""
    X = np.zeros((n, 2))
    X[::2, 0], X[1::2, 1] = 1.0, 2.0
    known = (X, np.zeros(n), np.zeros((1, 2)), np.zeros(n, dtype=np.int64), 0)
    return known, np.array([1.0, 0.0]), (n - 2) / n


def _one_round(
    known: Known, theta: Floats, keep: float, distance: float, broken: bool
) -> list[Row]:
    """Follow the flow of one round; compute the bound beside it."""
    X, y, coef, _, _ = known
    step = contraction(*known, theta, keep=keep, most_directions=DIRECTIONS)
    kept = np.argsort(np.abs(y - X @ theta), kind="stable")[: int(keep * len(y) * (1 + 1e-9))]
    path = gradient_flow(X[kept], y[kept], theta, TIMES)
    ratios = np.linalg.norm(path - coef[0], axis=1) / step.distance
    rates = flow_rates(X[kept])
    foreign, own = 2 * step.plus.lower / len(kept), step.minus.upper / len(kept)
    certain = 2 * step.plus.upper / len(kept), step.minus.lower / len(kept)
    left_out = np.array([omega(u, rates) if broken else 0.0 for u in TIMES])
    return [
        {
            "distance": distance,
            "error": step.distance,
            "time": u,
            "ratio": ratio,
            "bound_low": flow_bound(u, foreign, own, rates) - less,
            "bound_high": flow_bound(u, *certain, rates) - less,
            "efficiency": -np.log(ratio) / (u + SELECTION_COST),
            "ideal": ideal_time(min(step.distance, 0.9), SELECTION_COST),
        }
        for u, ratio, less in zip(TIMES, ratios.tolist(), left_out.tolist(), strict=True)
        if ratio > FLOOR
    ]


def best_times(table: Table) -> tuple[Floats, Floats, Floats]:
    """Return errors, the times that gain most per work, and Proposition 15's, round by round."""
    best = [
        max(rows, key=lambda row: row["efficiency"])
        for (*_, distance), rows in table.groups("n", "d", "m", "repeat", "distance")
        if distance in DISTANCES
    ]
    columns = (np.array([row[name] for row in best]) for name in ("error", "time", "ideal"))
    errors, times, ideal = columns
    return errors, times, ideal


def check(table: Table) -> Verdict:
    """Count what breaks the bound, and see whether the best time grows as the error falls."""
    violated = sum(row["ratio"] > row["bound_high"] * (1 + 1e-9) for row in table)
    proven = float(np.mean([row["ratio"] <= row["bound_low"] * (1 + 1e-9) for row in table]))
    errors, times, ideal = best_times(table)
    growth = float(np.polyfit(-np.log(errors), times, 1)[0])
    varies = np.ptp(times) > 0
    agreement = float(np.corrcoef(ideal, times)[0, 1]) if varies else float("nan")
    far = [row for row in table if row["distance"] in DISTANCES]
    loose = float(np.median([row["bound_low"] / row["ratio"] for row in far]))
    useful = float(np.mean([row["bound_low"] < 1 for row in table.where(distance=NEAR)]))
    words = (
        f"the bound is violated at {violated} of {len(table)} times and proven at {proven:.1%}; "
        f"from {NEAR:g} it is below 1 at {useful:.0%} of them; "
        f"the best time grows by {growth:.2f} for each factor e in the error (correlation with "
        f"Proposition 15: {agreement:.2f})"
    )
    return Verdict.of(
        violated == 0 and growth >= GROWTH and useful >= USEFUL,
        violated,
        0,
        words,
        proven=proven,
        growth=growth,
        correlation=agreement,
        median_looseness=loose,
        bound_below_one=np.mean([row["bound_low"] < 1 for row in far]),
        bound_below_one_near=useful,
        factor=float(times @ ideal / (ideal @ ideal)),
    )


def draw(table: Table, figure: Figure) -> None:
    """Draw ratio and bound against time, and the best time against the error."""
    left, right = panels(figure, 2)
    _, first = table.where(features="normal").groups("n", "d", "m", "repeat")[0]
    for i, ((distance,), rows) in enumerate(first.groups("distance")):
        left.plot(rows["time"], rows["ratio"], color=COLOURS[i], label=f"from {distance:g}")
        left.plot(rows["time"], rows["bound_low"], ":", color=COLOURS[i], linewidth=1.0)
    left.legend(title="dotted: bound", title_fontsize=8)
    label(left, "One round, followed for a time u", "u", "error / error before", log="xy")
    errors, times, ideal = best_times(table)
    right.plot(errors, times, ".", color=COLOURS[0], label="best in the simulation")
    order = np.argsort(errors)
    factor = float(times @ ideal / (ideal @ ideal))
    name = f"{factor:.1f} log(w / (λ log 1/λ))"
    right.plot(errors[order], factor * ideal[order], **REFERENCE, label=name)
    label(right, "Time that gains most per work", "error λ", "u", log="x")
    right.invert_xaxis()
    right.legend()


FLOW = Experiment(
    name="gradient-flow",
    title="A round that follows the gradient for a while contracts as Proposition 14 says",
    claim="Proposition 14, thm:ode, and Proposition 15, lem:efficiency",
    statement=(
        "The error after following the gradient flow of the kept rows for a time u is at most "
        "the bound of Proposition 14, with the quantities of Theorem 4 for its constants, also "
        "where the bound is below one; the time that gains most per work grows with the logarithm "
        "of one over the error."
    ),
    tolerance=(
        f"no violation; the best time grows by at least {GROWTH:g} for each factor e; the bound is "
        f"below one at {USEFUL:.0%} of the times from {NEAR:g}"
    ),
    sabotage="leave out the last term of the bound, ω(u)",
    quick=(
        {"features": ("normal",), "n": (2000,), "d": (2, 3), "m": (2,)},
        {"features": ("axes",), "n": (400,)},
    ),
    full=(
        {"features": ("normal",), "n": (8000,), "d": (2, 3), "m": (2, 3)},
        {"features": ("axes",), "n": (400,)},
    ),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 3, "full": 6},
)
