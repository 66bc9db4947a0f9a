"""The basin: from how far away ILTS still finds a component (Theorem 7, ``thm:local``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, label, panels, ranks
from lab.simulation import arrivals, mixture, starts_at
from lab.table import Row, Table, crossing, slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BASIN"]

FEATURES, ROWS_PER_COEFFICIENT, STARTS = 8, 50, 8
# The basin ends where this share of the starts still arrives.
EDGE = 0.75
# Success demanded of starts within τ times the distance to the next component.
INSIDE = 0.97
# Bounds on the power of m by which the radius shrinks, averaged over all settings: -1.1 to -1.6 was
# seen. (The proof's radius is proportional to τ c_2/c_1. Lemma 5 has c_2 ~ τ, in truth τ², and
# c_1 ~ 1/τ: m^-3, in truth m^-4.)
STEEPEST, FLATTEST = -2.0, -0.5


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Start from several points at one distance; count arrivals."""
    m = int(cell["m"])
    data = mixture(
        rng,
        ROWS_PER_COEFFICIENT * FEATURES * m,
        FEATURES,
        m,
        corruption_ratio=float(cell["gamma"]),
        corruption_kind="adversarial",
    )
    truth = data.truth
    keep = float(cell["share_kept"]) * float(truth.clean_fraction[0])
    ratio = float(cell["ratio"]) * (m / 2 if broken else 1)
    starts = starts_at(rng, truth.coef, 0, ratio, STARTS)
    return [{"keep": keep, "success": arrivals(data.X, data.y, truth.coef[0], starts, keep)}]


def radius(table: Table) -> float:
    """Return the distance up to which three quarters of the starts arrive."""
    ratios, shares = zip(*table.mean("success", "ratio"), strict=True)
    return crossing(ratios, shares, EDGE)


def check(table: Table) -> Verdict:
    """Hold starts within τ against the basin, and its shrinking against a power of m."""
    inside = [row["success"] for row in table if row["ratio"] <= row["keep"]]
    success = float(np.mean(inside))
    radii: dict[str, float] = {}
    exponents = {}
    for (share, gamma), rows in table.groups("share_kept", "gamma"):
        by_m = {m: radius(part) for (m,), part in rows.groups("m")}
        found = {m: value for m, value in by_m.items() if np.isfinite(value)}
        radii |= {f"radius_m{m}_kept{share:g}_gamma{gamma:g}": value for m, value in by_m.items()}
        name = f"exponent_kept{share:g}_gamma{gamma:g}"
        exponents[name] = slope(list(found.values()), list(found))
    power = float(np.mean(list(exponents.values())))
    words = (
        f"{success:.3f} of the starts within τ times the distance to the next component arrive; "
        f"the radius that three quarters reach from falls like m^{power:.2f} on average"
    )
    holds = success >= INSIDE and STEEPEST <= power <= FLATTEST
    return Verdict.of(
        holds, success, INSIDE, words,
        power=power, starts_inside=len(inside) * STARTS, **radii, **exponents,
    )  # fmt: skip


def draw(table: Table, figure: Figure) -> None:
    """Draw success against distance, a panel for each way to keep and corrupt."""
    settings = table.groups("share_kept", "gamma")
    axes = panels(figure, len(settings), sharey=True)
    for ax, ((share, gamma), rows) in zip(axes, settings, strict=True):
        for i, ((m,), part) in enumerate(rows.groups("m")):
            ratios, shares = zip(*part.mean("success", "ratio"), strict=True)
            ax.plot(ratios, shares, ".-", color=COLOURS[i], label=f"m = {m}")
            ax.axvline(share / m, color=COLOURS[i], linewidth=0.8, linestyle=":")
        label(ax, f"τ = {share:g} τ*, γ* = {gamma:g}", "", "", log="x")
        ranks(ax, (0.03, 0.1, 0.3, 1.0, 4.0))
    axes[0].set_ylabel("share of starts that arrive")
    figure.supxlabel("distance of the start / distance to the next component", fontsize=9)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", title="dotted: τ", title_fontsize=8)


BASIN = Experiment(
    name="basin",
    title="A start within a constant times the distance to the next component is close enough",
    claim="Theorem 7, thm:local, and its footnote on m",
    statement=(
        "A start no further from a component than τ times the distance to the next one leads to "
        "it, for every m, τ and γ* tried; the radius shrinks with the number of components, "
        "about like 1/m."
    ),
    tolerance=(
        f"success at least {INSIDE} within τ; mean exponent of m from {STEEPEST:g} to {FLATTEST:g}"
    ),
    sabotage="start m/2 times as far away: as if the basin did not shrink with m",
    quick=(
        {
            "m": (2, 4, 8),
            "share_kept": (0.5, 0.9),
            "gamma": (0.0, 0.5),
            "ratio": (0.0625, 0.125, 0.25, 0.5, 1.0, 4.0),
        },
    ),
    full=(
        {
            "m": (2, 4, 8, 16),
            "share_kept": (0.5, 0.9),
            "gamma": (0.0, 0.5),
            "ratio": (0.03125, 0.0625, 0.125, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 4.0),
        },
    ),
    measure=measure,
    check=check,
    draw=draw,
    version=2,
    repeats={"quick": 2, "full": 4},
)
