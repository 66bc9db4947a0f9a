"""How many gradient steps a round should make (Proposition 15, ``lem:efficiency``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lab.counting import counted_run, gradient_solver
from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, label, panels
from lab.simulation import mixture, start_at
from lab.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["GRADIENT"]

SHARE_KEPT, REACH, ACCURACY = 0.9, 0.4, 1e-8
FIXED = (1, 3, 10, 30, 100)
# Work of the ideal schedule in units of the best fixed count, which is unknown beforehand.
MOST = 1.3
# Steps of the later rounds against those of the first: the schedule must rise.
RISE = 1.5


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Trace error against work for every schedule, from the same start."""
    n, d, m = int(cell["n"]), int(cell["d"]), int(cell["m"])
    data = mixture(rng, n, d, m)
    target, keep = data.truth.coef[0], SHARE_KEPT / m
    start = start_at(rng, data.truth.coef, 0, REACH / m)
    rows: list[Row] = []
    for steps in ("ideal", *FIXED):
        run = counted_run(
            data.X,
            data.y,
            start,
            keep,
            target,
            make_solver=gradient_solver(10 if broken and steps == "ideal" else steps),
        )
        until = run.work_until(ACCURACY) / (n * d)
        made = [0, *run.run.n_steps]
        rows += [
            {
                "steps": str(steps),
                "round": t,
                "work": run.work[t] / (n * d),
                "error": float(np.minimum(run.error[t], 1e6)),
                "steps_made": made[t],
                "work_until": until,
            }
            for t in range(len(run.work))
            if t == 0 or run.error[t - 1] > ACCURACY
        ]
    return rows


def check(table: Table) -> Verdict:
    """Hold the ideal schedule against the best fixed count, and its rise against Proposition 15."""
    ratios: list[float] = []
    ends = table.where(round=0)
    for _, runs in ends.groups("n", "d", "m", "repeat"):
        # Work that never reached the accuracy is not a number in the table.
        work = {r["steps"]: np.inf if r["work_until"] is None else r["work_until"] for r in runs}
        best = min(work[str(steps)] for steps in FIXED)
        ratios.append(work["ideal"] / best if np.isfinite(best) else np.inf)
    typical = float(np.median(ratios))
    medians = {
        f"work_{steps}": float(np.median([_number(r["work_until"]) for r in runs]))
        for (steps,), runs in ends.groups("steps")
    }
    rise = _rise(table.where(steps="ideal"))
    words = (
        f"the ideal schedule needs {typical:.2f} times the work of the best fixed count (at "
        f"worst {max(ratios):.2f}), and makes {rise:.1f} times as many steps in later rounds"
    )
    holds = typical <= MOST and rise >= RISE
    return Verdict.of(holds, typical, MOST, words, worst_ratio=max(ratios), rise=rise, **medians)


def _number(value: float | None) -> float:
    return np.inf if value is None else value


def _rise(table: Table) -> float:
    """Compare the steps of rounds with errors below 1e-3 with those of the first two rounds."""
    first = [row["steps_made"] for row in table if row["round"] in (1, 2)]
    late = [row["steps_made"] for row in table if row["round"] > 2 and row["error"] < 1e-3]
    return float(np.mean(late) / np.mean(first)) if late and np.mean(first) > 0 else 0.0


def draw(table: Table, figure: Figure) -> None:
    """Draw error against work, and the steps that the ideal schedule makes."""
    left, right = panels(figure, 2)
    _, first = table.groups("n", "d", "m", "repeat")[0]
    for i, ((steps,), run) in enumerate(first.groups("steps")):
        name = "ideal" if steps == "ideal" else f"{steps} a round"
        width = 2.0 if steps == "ideal" else 0.9
        left.plot(run["work"], run["error"], ".-", color=COLOURS[i], label=name, linewidth=width)
    label(left, "Error against work, one data set", "work / (n d)", "‖θ − θ*‖", log="xy")
    left.legend()
    for i, ((n, d, m), part) in enumerate(table.where(steps="ideal").groups("n", "d", "m")):
        rounds = [row for row in part if row["round"] > 0]
        right.plot(
            [row["error"] for row in rounds],
            [row["steps_made"] for row in rounds],
            ".",
            color=COLOURS[i],
            alpha=0.7,
            label=f"n = {n:,}, d = {d}, m = {m}",
        )
    label(right, "Steps of the ideal schedule", "error after the round", "steps", log="x")
    right.invert_xaxis()
    right.legend()


GRADIENT = Experiment(
    name="gradient-steps",
    title="Few gradient steps far away, more of them close by",
    claim="Proposition 15, lem:efficiency",
    statement=(
        "Steps by the ideal stopping time, with λ estimated from the iterates, reach an accuracy "
        "of 1e-8 for about the work of the best fixed number of steps, which is not known "
        "beforehand; they grow as the error falls."
    ),
    tolerance=(
        f"median work at most {MOST:g} times the best fixed count; at least {RISE:g} times as "
        "many steps at errors below 1e-3 as in the first two rounds"
    ),
    sabotage="make ten steps in every round in the place of the ideal schedule",
    quick=(
        {"n": (4000,), "d": (40,), "m": (2,)},
        {"n": (3000,), "d": (20,), "m": (4,)},
        {"n": (1200,), "d": (40,), "m": (2,)},
    ),
    full=(
        {"n": (8000,), "d": (80,), "m": (2,)},
        {"n": (8000,), "d": (40,), "m": (4,)},
        {"n": (2400,), "d": (80,), "m": (2,)},
    ),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 4, "full": 6},
)
