"""How many rows ILTS needs, for all components and for one alone (Theorem 7, Table 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, panels, ranks
from lab.simulation import arrivals, mixture, starts_at
from lab.table import Row, Table, crossing, slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ONE_COMPONENT", "SAMPLES"]

STARTS, SHARE_KEPT = 4, 0.9
# Starts lie within this part of the region that Theorem 7 speaks of, which shrinks with τ; the
# other rule keeps them at a distance that does not depend on m.
REACH, FIXED_RATIO = 0.4, 0.1
# How far an exponent may be from the paper's. Thresholds are read off a few dozen runs each.
TOLERANCE = 0.3
# Other components hold this share of the d rows that they would need.
TOO_FEW = 0.8


def measure_all(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Count arrivals with ``rows`` rows per coefficient of the whole mixture."""
    d, m = int(cell["d"]), int(cell["m"])
    n = round(float(cell["rows"]) * d * m)
    data = mixture(rng, n, d, m)
    keep = (1.4 if broken else SHARE_KEPT) * float(data.truth.clean_fraction[0])
    ratio = REACH / m if cell["start"] == "scaled" else FIXED_RATIO
    starts = starts_at(rng, data.truth.coef, 0, ratio, STARTS)
    return [{"n": n, "success": arrivals(data.X, data.y, data.truth.coef[0], starts, keep)}]


def measure_one(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Count arrivals at one component among others that are too small to be found."""
    d, share = int(cell["d"]), float(cell["share"])
    n = round(float(cell["rows"]) * d / share)
    others = int(np.ceil((1 - share) * n / (TOO_FEW * d)))
    data = mixture(rng, n, d, others + 1, weights=[share] + [(1 - share) / others] * others)
    coef, clean = data.truth.coef, data.truth.clean_fraction
    keep = (1.4 if broken else SHARE_KEPT) * float(clean[0])
    starts = starts_at(rng, coef, 0, REACH * share, STARTS)
    return [
        {
            "n": n,
            "others": others,
            "success": arrivals(data.X, data.y, coef[0], starts, keep),
            # Even from the truth itself: fewer than d rows do not determine d coefficients.
            "other_success": arrivals(data.X, data.y, coef[1], coef[1:2], float(clean[1])),
        }
    ]


def rows_needed(table: Table) -> float:
    """Return the number of rows at which half of the runs arrive."""
    rows, shares = zip(*table.mean("success", "n"), strict=True)
    return crossing(rows, shares)


def exponent(table: Table, by: str) -> tuple[float, dict[Any, float]]:
    """Fit the power of one parameter in the number of rows needed; also return the numbers."""
    needed = {value: rows_needed(part) for (value,), part in table.groups(by)}
    found = {value: n for value, n in needed.items() if np.isfinite(n)}
    return slope(list(found.values()), list(found)), needed


def check_all(table: Table) -> Verdict:
    """Hold the exponents in d and in m against one."""
    scaled = table.where(start="scaled")
    in_d, by_d = exponent(scaled.where(axis="d"), "d")
    in_m, by_m = exponent(scaled.where(axis="m"), "m")
    numbers = {f"needed_d{d}": n for d, n in by_d.items()}
    numbers |= {f"needed_m{m}": n for m, n in by_m.items()}
    fixed = table.where(start="fixed")
    if len(fixed):
        numbers["exponent_m_fixed_start"], by_fixed = exponent(fixed, "m")
        numbers |= {f"needed_fixed_m{m}": n for m, n in by_fixed.items()}
    worst = max(abs(in_d - 1), abs(in_m - 1))
    words = (
        f"n needed grows like d^{in_d:.2f} and, for starts within {REACH:g}/m, like m^{in_m:.2f}"
    )
    return Verdict.of(
        worst <= TOLERANCE, worst, TOLERANCE, words, exponent_d=in_d, exponent_m=in_m, **numbers
    )


def check_one(table: Table) -> Verdict:
    """Hold the exponents in d and 1/τ_(j) against one, and the others against zero."""
    in_d, by_d = exponent(table.where(axis="d"), "d")
    in_share, by_share = exponent(table.where(axis="share"), "share")
    others = float(table.numbers("other_success").max())
    worst = max(abs(in_d - 1), abs(in_share + 1))
    words = (
        f"n needed grows like d^{in_d:.2f} τ^{in_share:.2f}; of the other components "
        f"{others:.0%} can be recovered"
    )
    return Verdict.of(
        worst <= TOLERANCE and others == 0,
        worst,
        TOLERANCE,
        words,
        exponent_d=in_d,
        exponent_share=in_share,
        other_success=others,
        **{f"needed_d{d}": n for d, n in by_d.items()},
        **{f"needed_share{share:g}": n for share, n in by_share.items()},
    )


def _success_panel(ax: Axes, table: Table, by: str, symbol: str) -> None:
    """Draw the share of successes against rows, a line for each number of features and value."""
    for i, ((value, d), part) in enumerate(table.groups(by, "d")):
        rows, shares = zip(*sorted(part.mean("success", "rows")), strict=True)
        colour, text = COLOURS[i % len(COLOURS)], f"{symbol} = {value:g}, d = {d}"
        ax.plot(rows, shares, ".-", color=colour, linewidth=0.8, label=text)
    ax.legend(fontsize=6)


def _threshold_panel(ax: Axes, tables: list[tuple[str, Table]], by: str, power: float) -> None:
    """Draw rows needed against one parameter, beside the paper's power."""
    for i, (name, table) in enumerate(tables):
        fitted, needed = exponent(table, by)
        found = {value: n for value, n in needed.items() if np.isfinite(n)}
        text = f"{name}{fitted:.2f}"
        ax.plot(list(found), list(found.values()), "o-", color=COLOURS[i], label=text)
        if i == 0 and found:
            # The paper's power, through the middle of the first curve.
            values, rows = np.array(list(found), dtype=np.float64), np.array(list(found.values()))
            constant = np.exp(np.mean(np.log(rows) - power * np.log(values)))
            text = f"slope {power:g}"
            ax.plot(values, constant * values**power, **REFERENCE, label=text)
    ax.legend()


def draw_all(table: Table, figure: Figure) -> None:
    """Draw success against rows per coefficient, and rows needed against d and m."""
    left, middle, right = panels(figure, 3)
    scaled = table.where(start="scaled")
    _success_panel(left, scaled, "m", "m")
    label(left, "Starts within 0.4/m", "n / (d m)", "share that arrive")
    _threshold_panel(middle, [("exponent ", scaled.where(axis="d"))], "d", 1.0)
    label(middle, "Rows needed against d", "d", "n for half of the starts", log="xy")
    ranks(middle, scaled.where(axis="d")["d"])
    tables = [("start within 0.4/m: ", scaled.where(axis="m"))]
    if len(table.where(start="fixed")):
        tables.append(("start within 0.1: ", table.where(start="fixed")))
    _threshold_panel(right, tables, "m", 1.0)
    label(right, "Rows needed against m", "m", "", log="xy")
    ranks(right, scaled.where(axis="m")["m"])


def draw_one(table: Table, figure: Figure) -> None:
    """Draw success against rows, and rows needed against d and τ."""
    left, middle, right = panels(figure, 3)
    _success_panel(left, table, "share", "τ")
    label(left, "One component among small ones", "n τ / d", "share that arrive")
    _threshold_panel(middle, [("exponent ", table.where(axis="d"))], "d", 1.0)
    label(middle, "Rows needed against d", "d", "n for half of the starts", log="xy")
    ranks(middle, table.where(axis="d")["d"])
    _threshold_panel(right, [("exponent ", table.where(axis="share"))], "share", -1.0)
    label(right, "Rows needed against τ", "share of the component", "", log="xy")
    ranks(right, table.where(axis="share")["share"])


_ROWS = (1.5, 2.0, 2.5, 3.0, 4.0, 6.0)

SAMPLES = Experiment(
    name="sample-complexity",
    title="The rows needed grow linearly with d and with m",
    claim="Theorem 7, thm:local; Table 1, tab:algs: md",
    statement=(
        "In balanced mixtures the number of rows at which half of the starts inside the region "
        "of Theorem 7 arrive is proportional to d and to m."
    ),
    tolerance=f"fitted exponents within {TOLERANCE:g} of 1",
    sabotage="keep 1.4 times the rows of the component: τ above τ*_(j)",
    quick=(
        {"axis": ("d",), "d": (8, 16, 32), "m": (3,), "start": ("scaled",), "rows": _ROWS},
        {"axis": ("m",), "d": (12,), "m": (2, 4, 8), "start": ("scaled",), "rows": _ROWS},
    ),
    full=(
        {"axis": ("d",), "d": (8, 16, 32, 64), "m": (3,), "start": ("scaled",), "rows": _ROWS},
        {"axis": ("m",), "d": (12,), "m": (2, 4, 8, 16), "start": ("scaled",), "rows": _ROWS},
        {
            "axis": ("m",),
            "d": (12,),
            "m": (2, 4, 8, 16),
            "start": ("fixed",),
            "rows": (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0),
        },
    ),
    measure=measure_all,
    check=check_all,
    draw=draw_all,
    repeats={"quick": 16, "full": 16},
)

ONE_COMPONENT = Experiment(
    name="one-component",
    title="One component needs d/τ rows, whatever the others are",
    claim="Discussion after Theorem 7: ILTS learns each component separately",
    statement=(
        "A component of share τ among others that have too few rows to be recovered at all is "
        "found with a number of rows proportional to d/τ; the others never are."
    ),
    tolerance=f"fitted exponents within {TOLERANCE:g} of 1 and -1; no other component recovered",
    sabotage="keep 1.4 times the rows of the component: τ above τ*_(j)",
    quick=(
        {"axis": ("d",), "d": (8, 16, 32), "share": (0.3,), "rows": _ROWS},
        {"axis": ("share",), "d": (12,), "share": (0.1, 0.2, 0.4), "rows": _ROWS},
    ),
    full=(
        {"axis": ("d",), "d": (8, 16, 32, 64), "share": (0.3,), "rows": _ROWS},
        {"axis": ("share",), "d": (12,), "share": (0.05, 0.1, 0.2, 0.4), "rows": _ROWS},
    ),
    measure=measure_one,
    check=check_one,
    draw=draw_one,
    repeats={"quick": 16, "full": 16},
)
