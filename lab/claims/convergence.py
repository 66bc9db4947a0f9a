"""How fast ILTS converges (Theorem 7, ``thm:local``): linear, or faster without corruption."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, level, panels
from lab.simulation import RECOVERED, errors_by_round, mixture, start_at, with_decoys
from lab.table import Row, Table, slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CONVERGENCE"]

COMPONENTS, FEATURES, START = 3, 10, 0.25
# Rounds from this error on are counted: before, the start decides more than the law.
LOCAL = 0.05
# Errors below this are rounding.
FLOOR = 1e-12
# Orders of convergence: 2 is expected without corruption and 1 with decoys on the way.
SUPERLINEAR, LINEAR = 1.5, 0.25


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Record the error of every round of one run."""
    gamma, kind = float(cell["gamma"]), str(cell["corruption"])
    data = mixture(
        rng,
        cell["n"],
        FEATURES,
        COMPONENTS,
        corruption_ratio=gamma,
        corruption_kind="gross" if kind == "decoys" else kind,
    )
    target = data.truth.coef[0]
    start = start_at(rng, data.truth.coef, 0, START)
    y = with_decoys(rng, data, 0, start) if kind == "decoys" else data.y
    keep = (1.3 if broken else 0.9) * float(data.truth.clean_fraction[0])
    errors, fit = errors_by_round(data.X, y, start, keep, target)
    ends = [*errors[1:], None]
    return [
        {
            "round": t,
            "error": error,
            "next_error": following,
            "rounds": fit.n_iter,
            "stopped": fit.stopped,
        }
        for t, (error, following) in enumerate(zip(errors, ends, strict=True))
    ]


def order(table: Table) -> float:
    """Fit the order q of e' = c e^q to the local rounds before the last."""
    pairs = [
        (row["error"], row["next_error"])
        for row in table
        if row["next_error"] is not None and row["next_error"] > FLOOR and row["error"] < LOCAL
    ]
    return slope([after for _, after in pairs], [before for before, _ in pairs])


def worst_ratio(table: Table) -> float:
    """Return the largest ratio of successive errors above rounding."""
    return max(
        (
            row["next_error"] / row["error"]
            for row in table
            if row["next_error"] is not None and row["error"] > FLOOR
        ),
        default=float("nan"),
    )


def check(table: Table) -> Verdict:
    """Hold orders and ratios of errors against the statement."""
    ends = [row for row in table if row["next_error"] is None]
    arrived = [row["stopped"] == "fixed point" and row["error"] < RECOVERED for row in ends]
    clean, decoys = table.where(gamma=0.0), table.where(corruption="decoys")
    corrupted = Table(row for row in table if row["gamma"] > 0)
    orders = {kind: order(rows) for (kind,), rows in corrupted.groups("corruption")}
    clean_order, decoy_order = order(clean), orders["decoys"]
    ratios = {gamma: worst_ratio(rows) for (gamma,), rows in decoys.groups("gamma")}
    holds = (
        all(arrived)
        and clean_order > SUPERLINEAR
        and abs(decoy_order - 1) < LINEAR
        and max(ratios.values()) < 1
    )
    rounds = max(row["rounds"] for row in ends)
    words = (
        f"{sum(arrived)} of {len(arrived)} runs ended at the component, after at most {rounds} "
        f"rounds; order {clean_order:.2f} without corruption, {decoy_order:.2f} with decoys"
    )
    return Verdict.of(
        holds,
        clean_order,
        SUPERLINEAR,
        words,
        arrived=sum(arrived),
        runs=len(arrived),
        rounds=rounds,
        **{f"order_{kind}": value for kind, value in orders.items()},
        order_clean=clean_order,
        **{f"worst_ratio_decoys_{gamma:g}": value for gamma, value in ratios.items()},
        **{
            f"typical_ratio_decoys_{gamma:g}": typical_ratio(rows)
            for (gamma,), rows in decoys.groups("gamma")
        },
    )


def typical_ratio(table: Table) -> float:
    """Return the median ratio of successive errors in the local rounds."""
    ratios = [
        row["next_error"] / row["error"]
        for row in table
        if row["next_error"] is not None and 1e-8 < row["error"] < LOCAL
    ]
    return float(np.median(ratios)) if ratios else float("nan")


def draw(table: Table, figure: Figure) -> None:
    """Draw error against round, and error against the error before."""
    left, right = panels(figure, 2)
    for i, ((kind, gamma), runs) in enumerate(table.groups("corruption", "gamma")):
        colour = COLOURS[i % len(COLOURS)]
        name = "no corruption" if gamma == 0 else f"{kind}, γ* = {gamma:g}"
        for _, run in runs.where(repeat=0).groups("n"):
            left.plot(
                run["round"],
                np.maximum(run.numbers("error"), 1e-17),
                ".-",
                color=colour,
                label=name,
            )
        pairs = [r for r in runs if r["next_error"] is not None and r["next_error"] > FLOOR]
        right.plot(
            [r["error"] for r in pairs],
            [r["next_error"] for r in pairs],
            ".",
            color=colour,
            alpha=0.6,
        )
    names = dict(zip(*left.get_legend_handles_labels()[::-1], strict=True))
    left.legend(names.values(), names.keys())
    label(left, "Error by round, one run each", "round", "‖θ_t − θ*‖", log="y")
    level(left, 1e-16, "rounding")
    left.locator_params(axis="x", integer=True)
    errors = np.array([1e-6, 0.3])
    right.plot(errors, 3 * errors**2, **REFERENCE)
    right.annotate("slope 2", (1e-5, 3e-10), color="#666666", fontsize=8)
    right.plot(errors, 0.5 * errors, color="#666666", linewidth=0.8, linestyle=":")
    right.annotate("slope 1", (1e-5, 5e-5), color="#666666", fontsize=8)
    label(right, "Error of the next round, all runs", "‖θ_t − θ*‖", "‖θ_t+1 − θ*‖", log="xy")


CONVERGENCE = Experiment(
    name="convergence",
    title="ILTS converges at least linearly, and super-linearly without corruption",
    claim="Theorem 7, thm:local, and the discussion after it",
    statement=(
        "Every noiseless run from inside the basin ends at the component after finitely many "
        "rounds. Without corruption the order of convergence is 2; with corrupted rows that lie "
        "on the way at every scale it is 1, with ratios below 1."
    ),
    tolerance=(
        f"order above {SUPERLINEAR} without corruption and within {LINEAR} of 1 with decoys, "
        f"fitted to errors below {LOCAL}; recovered means an error below {RECOVERED:g}"
    ),
    sabotage="keep 1.3 times the clean rows of the component: τ above τ*_(j)",
    quick=(
        {"n": (20_000,), "corruption": ("gross",), "gamma": (0.0, 0.3)},
        {"n": (20_000,), "corruption": ("adversarial",), "gamma": (0.3,)},
        {"n": (20_000,), "corruption": ("decoys",), "gamma": (0.3, 0.6)},
    ),
    full=(
        {"n": (50_000,), "corruption": ("gross",), "gamma": (0.0, 0.3)},
        {"n": (50_000,), "corruption": ("adversarial",), "gamma": (0.3,)},
        {"n": (50_000,), "corruption": ("decoys",), "gamma": (0.1, 0.3, 0.6)},
    ),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 5, "full": 12},
)
