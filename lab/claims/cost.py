"""What a run costs: nd² for ILTS, nd for GD-ILTS (Table 1, ``tab:algs``, the rows "Ours")."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.counting import counted_run, gradient_solver
from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, panels, ranks
from lab.simulation import mixture, start_at
from lab.table import Row, Table, power_law
from regimix.trimmed.gradient import gd_ilts
from regimix.trimmed.ilts import ilts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COST"]

COMPONENTS, SHARE_KEPT, START = 2, 0.9, 0.1
# Work is counted until the error is this, relative to a component of length one.
ACCURACY = 1e-6
# Exponents of n and d that the paper's table gives, and how far the fitted ones may be off:
# selections cost n whatever d is, and larger n are a little better conditioned.
PAPER = {"ilts": (1.0, 2.0), "gd-ilts": (1.0, 1.0)}
TOLERANCE = 0.25


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Count the work of both algorithms on one data set, and time the library's own."""
    n, d = int(cell["n"]), int(cell["d"])
    data = mixture(rng, n, d, COMPONENTS)
    target, keep = data.truth.coef[0], SHARE_KEPT / COMPONENTS
    start = start_at(rng, data.truth.coef, 0, START)
    rows: list[Row] = []
    for name, run in (("ilts", ilts), ("gd-ilts", gd_ilts)):
        make = gradient_solver("ideal") if name == "gd-ilts" and not broken else None
        counted, seconds = _timed(
            counted_run, data.X, data.y, start, keep, target, make_solver=make
        )
        _, library = _timed(run, data.X, data.y, start, keep=keep)
        rows.append(
            {
                "method": name,
                "work": counted.work_until(ACCURACY),
                "rounds": counted.run.n_iter,
                "seconds": seconds,
                "library_seconds": library,
            }
        )
    return rows


def _timed(call: Callable[..., Any], *values: Any, **options: Any) -> tuple[Any, float]:
    begun = time.process_time()
    answer = call(*values, **options)
    return answer, time.process_time() - begun


def exponents(table: Table, column: str) -> tuple[float, float]:
    """Fit the powers of n and d."""
    in_n, in_d = power_law(table.numbers(column), table["n"], table["d"])
    return in_n, in_d


def check(table: Table) -> Verdict:
    """Hold the exponents of counted work against the paper's table."""
    numbers: dict[str, float] = {}
    words = []
    worst = 0.0
    for (method,), rows in table.groups("method"):
        in_n, in_d = exponents(rows, "work")
        paper = PAPER[method]
        worst = max(worst, abs(in_n - paper[0]), abs(in_d - paper[1]))
        words.append(f"{method}: work grows like n^{in_n:.2f} d^{in_d:.2f}")
        name = method.replace("-", "_")
        numbers |= {f"{name}_n": in_n, f"{name}_d": in_d}
        in_n, in_d = exponents(rows, "library_seconds")
        numbers |= {f"{name}_library_time_n": in_n, f"{name}_library_time_d": in_d}
    return Verdict.of(worst <= TOLERANCE, worst, TOLERANCE, "; ".join(words), **numbers)


def draw(table: Table, figure: Figure) -> None:
    """Draw counted work, and time, against d at the largest n."""
    left, right = panels(figure, 2)
    at_most = table.where(n=int(max(table["n"])))
    for i, ((method,), rows) in enumerate(at_most.groups("method")):
        in_n, in_d = exponents(table.where(method=method), "work")
        d, work = zip(*sorted(rows.mean("work", "d")), strict=True)
        name = f"{method}: n^{in_n:.2f} d^{in_d:.2f}"
        left.plot(d, work, "o-", color=COLOURS[i], label=name)
        power = PAPER[method][1]
        line = work[-1] * (np.array(d, dtype=np.float64) / d[-1]) ** power
        left.plot(d, line, **REFERENCE)
        for column, style, which in (
            ("seconds", "o-", "as in the paper"),
            ("library_seconds", "o:", "with our shortcuts"),
        ):
            d, spent = zip(*sorted(rows.mean(column, "d")), strict=True)
            right.plot(d, spent, style, color=COLOURS[i], label=f"{method}, {which}")
    largest = f"n = {max(table['n']):,}"
    label(left, f"Counted work, {largest} (dashed: nd², nd)", "d", "operations", log="xy")
    label(right, f"Time, {largest}", "d", "seconds of one core", log="xy")
    for ax in (left, right):
        ax.legend()
        ranks(ax, table["d"])


COST = Experiment(
    name="cost",
    title="ILTS costs nd² and GD-ILTS nd",
    claim="Table 1, tab:algs, the rows Ours",
    statement=(
        "The counted work until an accuracy of 1e-6, with normal equations summed afresh every "
        "round, grows like n d² for ILTS and like n d for GD-ILTS."
    ),
    tolerance=f"fitted exponents within {TOLERANCE:g}",
    sabotage="solve exactly where gradient steps are asked for",
    quick=({"n": (5000, 10_000, 20_000), "d": (12, 24, 48, 96)},),
    full=({"n": (10_000, 20_000, 40_000), "d": (16, 32, 64, 128)},),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 2, "full": 3},
)
