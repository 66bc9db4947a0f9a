"""One round of ILTS against the bound of Theorem 4 (``thm:local-1``), on many data sets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lab.contraction import Contraction, contraction, contraction_trace
from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, panels
from lab.simulation import mixture, start_at, with_decoys
from lab.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CONTRACTION"]

Floats = NDArray[np.float64]

ROWS_PER_COEFFICIENT, START = 50, 0.3
# Effort for each bound on ψ±; in few dimensions that certifies both sides.
DIRECTIONS = 1000
# Rounds below this distance are left out: their ratio is rounding.
FLOOR = 1e-8
# The share of rounds for which the bound must be proven to hold, not just not refuted.
PROVEN = 0.99


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Compute the bound beside every round of one run."""
    d, m, gamma = int(cell["d"]), int(cell["m"]), float(cell["gamma"])
    data = mixture(rng, ROWS_PER_COEFFICIENT * d * m, d, m, corruption_ratio=gamma)
    truth = data.truth
    keep = float(cell["share_kept"]) * float(truth.clean_fraction[0])
    start = start_at(rng, truth.coef, 0, START)
    y = with_decoys(rng, data, 0, start) if gamma else data.y
    known = (data.X, y, truth.coef, truth.labels, 0)
    if broken:
        near = start_at(rng, truth.coef, 0, 0.003)
        steps: tuple[Contraction, ...] = (_largest_kept(known, near, keep),)
    else:
        steps = contraction_trace(*known, start, keep=keep, most_directions=DIRECTIONS)
    return [
        {
            "round": t,
            "distance": step.distance,
            "delta": step.delta,
            "ratio": step.ratio,
            "factor_low": step.factor.lower,
            "factor_high": step.factor.upper,
            "foreign": step.foreign,
            "affine": step.affine,
            "corrupted": step.corrupted,
            "n_corrupted": step.n_corrupted,
            "verdict": step.verdict,
        }
        for t, step in enumerate(steps)
        if step.distance > FLOOR
    ]


def _largest_kept(
    known: tuple[Floats, Floats, Floats, NDArray[np.int64], int], theta: Floats, keep: float
) -> Contraction:
    """Make a round that keeps the rows of largest residual, and hold it against the bound."""
    X, y, coef, _, j = known
    step = contraction(*known, theta, keep=keep, most_directions=DIRECTIONS)
    kept = np.argsort(-np.abs(y - X @ theta))[: int(keep * len(y))]
    following = np.linalg.lstsq(X[kept], y[kept], rcond=None)[0]
    return replace(step, next_distance=float(np.linalg.norm(following - coef[j])))


def check(table: Table) -> Verdict:
    """Count the rounds that break the bound, and those for which it is proven."""
    inside = [row for row in table if row["verdict"] != "does not apply"]
    violated = sum(row["verdict"] == "violated" for row in inside)
    proven = sum(row["verdict"] == "holds" for row in inside) / len(inside)
    counted = all(row["foreign"] <= row["affine"] for row in inside)
    # What the bound gives away: where something is left to bound.
    loose = [row["factor_low"] / row["ratio"] for row in inside if row["ratio"] > 0]
    useful = float(np.mean([row["factor_low"] < 1 for row in inside]))
    words = (
        f"the bound is violated in {violated} of {len(inside)} rounds and proven in "
        f"{proven:.1%} of them; it is {np.median(loose) if loose else float('nan'):.0f} times "
        f"the observed ratio (median), and below 1 in {useful:.0%} of the rounds"
    )
    return Verdict.of(
        violated == 0 and proven >= PROVEN and counted,
        violated,
        0,
        words,
        rounds=len(inside),
        proven=proven,
        median_looseness=np.median(loose) if loose else np.nan,
        least_looseness=min(loose, default=np.nan),
        bound_below_one=useful,
        contracted=np.mean([row["ratio"] < 1 for row in inside]),
    )


def draw(table: Table, figure: Figure) -> None:
    """Draw the bound against the observed ratio, and both against Δ."""
    left, right = panels(figure, 2)
    inside = Table(r for r in table if r["verdict"] != "does not apply" and r["ratio"] > 0)
    for i, ((gamma,), rows) in enumerate(inside.groups("gamma")):
        name = "no corruption" if gamma == 0 else f"decoys, γ* = {gamma:g}"
        # Thousands of points: as an image inside the figure they weigh less.
        style: dict[str, Any] = {
            "color": COLOURS[i],
            "alpha": 0.5,
            "markersize": 3,
            "rasterized": True,
        }
        left.plot(rows["ratio"], rows["factor_low"], ".", label=name, **style)
        right.plot(rows["delta"], rows["ratio"], ".", **style)
        right.plot(rows["delta"], rows["factor_low"], "x", **style)
    ends = np.array([1e-4, 1.0])
    left.plot(ends, ends, **REFERENCE)
    left.annotate("bound = ratio", (2e-4, 1e-3), color="#666666", fontsize=8)
    left.legend(loc="lower right")
    label(left, "Every round inside the basin", "observed ratio", "bound of Theorem 4", log="xy")
    right.axhline(1.0, color="#999999", linewidth=0.8, linestyle="--")
    label(right, "Ratio (dots) and bound (crosses)", "Δ", "", log="xy")


CONTRACTION = Experiment(
    name="contraction",
    title="No round breaks the bound of Theorem 4",
    claim="Theorem 4, thm:local-1",
    statement=(
        "On every data set, the ratio of successive errors is at most 2ψ+(V + γ*τ*_min n)/ψ-(τn), "
        "with V at the directions of the round itself (one for each other component) and certified "
        "bounds on ψ±."
    ),
    tolerance=f"no violation; proven, not just not refuted, in at least {PROVEN:.0%} of the rounds",
    sabotage="keep the rows of largest residual",
    quick=(
        {
            "d": (2, 3, 8),
            "m": (2, 3),
            "gamma": (0.0, 0.3),
            "share_kept": (0.9,),
        },
    ),
    full=(
        {
            "d": (2, 3, 4, 8),
            "m": (2, 3, 5),
            "gamma": (0.0, 0.1, 0.5),
            "share_kept": (0.5, 0.9),
        },
    ),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 4, "full": 3},
)
