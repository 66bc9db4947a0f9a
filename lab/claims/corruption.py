"""How much corruption ILTS bears, kind by kind, up to the breakdown (Theorem 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, label, panels
from lab.simulation import arrivals, mixture, start_at, with_decoys
from lab.table import Row, Table, crossing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CORRUPTION"]

COMPONENTS, FEATURES, CLEAN_ROWS, START, SHARE_KEPT = 2, 8, 400, 0.2, 0.8
# The paper asks for "some small constant γ*"; up to here every kind must be borne.
SMALL = 0.5
SUCCESS = 0.97


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Run ILTS on data of which every component has the same number of clean rows."""
    gamma, kind = float(cell["gamma"]), str(cell["corruption"])
    n = round(CLEAN_ROWS * (COMPONENTS + gamma))
    data = mixture(
        rng,
        n,
        FEATURES,
        COMPONENTS,
        corruption_ratio=gamma,
        corruption_kind="gross" if kind == "decoys" else kind,
        corrupted_rows=str(cell["rows"]),
    )
    truth = data.truth
    start = start_at(rng, truth.coef, 0, START)
    y = with_decoys(rng, data, 0, start) if kind == "decoys" else data.y
    # Broken: the rows that the component had before some of them were corrupted, and a few more.
    had = float(np.mean(truth.component == 0))
    keep = 1.2 * had if broken else SHARE_KEPT * float(truth.clean_fraction[0])
    success = arrivals(data.X, y, truth.coef[0], start[None, :], keep)
    return [{"gamma_true": truth.corruption_ratio, "success": success}]


def breakdown(table: Table) -> float:
    """Return the corruption ratio at which half of the runs fail; infinite if none does."""
    gammas, shares = zip(*table.mean("success", "gamma"), strict=True)
    if min(shares) >= 0.5:
        return float("inf")
    return crossing([max(gamma, 1e-3) for gamma in gammas], shares)


def check(table: Table) -> Verdict:
    """Hold every kind of corruption up to a small ratio against full success."""
    small = {
        f"{kind}_{rows}": float(np.mean([row["success"] for row in part if row["gamma"] <= SMALL]))
        for (kind, rows), part in table.groups("corruption", "rows")
    }
    points = {
        f"breakdown_{kind}_{rows}": breakdown(part)
        for (kind, rows), part in table.groups("corruption", "rows")
    }
    worst = min(small.values())
    lowest = min(points, key=lambda name: points[name])
    words = (
        f"with γ* up to {SMALL:g}, {worst:.3f} of the runs succeed under the worst kind; the "
        f"first kind to break down is {lowest.removeprefix('breakdown_')} at γ* = "
        f"{points[lowest]:.3g}"
    )
    return Verdict.of(worst >= SUCCESS, worst, SUCCESS, words, **points)


def draw(table: Table, figure: Figure) -> None:
    """Draw success against the corruption ratio, by kind and by which rows are corrupted."""
    settings = table.groups("rows")
    axes = panels(figure, len(settings), sharey=True)
    for ax, ((rows,), part) in zip(axes, settings, strict=True):
        for i, ((kind,), curve) in enumerate(part.groups("corruption")):
            gammas, shares = zip(*sorted(curve.mean("success", "gamma")), strict=True)
            ax.plot(range(len(gammas)), shares, ".-", color=COLOURS[i], label=kind)
        title = (
            "Corrupted rows drawn at random" if rows == "random" else "The longest rows corrupted"
        )
        label(ax, title, "γ* (corrupted rows / clean rows of a component)", "")
        ax.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
    axes[0].set_ylabel("share of runs that succeed")
    axes[0].legend(loc="lower left")


_KINDS = ("gross", "same-scale", "adversarial", "decoys")

CORRUPTION = Experiment(
    name="corruption",
    title="A constant share of corrupted rows does no harm, whatever they are",
    claim="Theorem 7, thm:local: some small constant γ*",
    statement=(
        f"From a start at {START:g} of the distance to the next component, ILTS recovers its "
        f"component for γ* up to {SMALL:g}, for every kind of corruption and for corrupted rows "
        "at random or of largest leverage."
    ),
    tolerance=f"success at least {SUCCESS:g} under the worst kind",
    sabotage="keep 1.2 times the rows that the component had before corruption: τ above τ*_(j)",
    quick=(
        {
            "rows": ("random", "leverage"),
            "corruption": _KINDS,
            "gamma": (0.0, 0.25, 0.5, 2.0, 8.0, 32.0),
        },
    ),
    full=(
        {
            "rows": ("random", "leverage"),
            "corruption": _KINDS,
            "gamma": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0),
        },
    ),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 8, "full": 16},
)
