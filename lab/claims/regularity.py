"""Subsets of Gaussian rows: ψ+(k) and ψ-(k) against k/n (Lemma 5, ``lem:support-1``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lab.constants import regularity_limit
from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, panels
from lab.table import Row, Table, slope
from regimix.theory import feature_regularity, regularity_shape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["REGULARITY"]

SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
# Shares from which ψ- is held against its limit: for smaller ones more rows are needed (Lemma 5
# asks for d log(1/c)/c).
LARGE = 0.35
NEAR = 0.2
DIRECTIONS = 1000


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Bound ψ±(k)/k at several shares k/n."""
    n, d = int(cell["n"]), int(cell["d"])
    X = rng.standard_normal((n, d))
    if broken:
        X = rng.standard_t(5, (n, d)) * np.sqrt(3 / 5)
    rows: list[Row] = []
    for share in SHARES:
        k = round(share * n)
        bounds = feature_regularity(X, k, most_directions=DIRECTIONS)
        lemma, _ = regularity_shape(share, c_plus=0.0)
        plus, minus = regularity_limit(share)
        rows.append(
            {
                "share": share,
                "plus_found": bounds.plus.lower / k,
                "plus_certain": bounds.plus.upper / k,
                "minus_found": bounds.minus.upper / k,
                "minus_certain": bounds.minus.lower / k,
                "plus_lemma": lemma,
                "plus_limit": plus,
                "minus_limit": minus,
            }
        )
    return rows


def check(table: Table) -> Verdict:
    """Hold ψ+ against the lemma, both against their limits, and ψ- against a power of k/n."""
    above = max(row["plus_certain"] / row["plus_lemma"] for row in table)
    most_rows = max(row["n"] / row["d"] for row in table)
    best = Table(row for row in table if row["n"] / row["d"] == most_rows)
    off = max(
        max(abs(row["plus_found"] / row["plus_limit"] - 1) for row in best),
        max(
            abs(row["minus_found"] / row["minus_limit"] - 1)
            for row in best
            if row["share"] >= LARGE
        ),
    )
    means = dict(best.mean("minus_found", "share"))
    small = {share: value for share, value in means.items() if share <= LARGE and value > 0}
    power = slope(list(small.values()), list(small))
    constants = {share: value / share for share, value in means.items()}
    words = (
        f"ψ+(k) is at most {above:.2f} of Lemma 5's bound without its C_1 term; with n/d = "
        f"{most_rows:.0f} both are within {off:.0%} of their limits; ψ-(k)/k falls like (k/n)^"
        f"{power:.2f}, not like k/n"
    )
    return Verdict.of(
        above <= 1 and off <= NEAR and power > 1.5,
        off,
        NEAR,
        words,
        plus_over_lemma=above,
        minus_power=power,
        **{f"c2_at_{share:g}": value for share, value in constants.items()},
        **{f"plus_at_{share:g}": value for share, value in best.mean("plus_found", "share")},
        **{f"minus_at_{share:g}": value for share, value in means.items()},
    )


def draw(table: Table, figure: Figure) -> None:
    """Draw ψ+(k)/k and ψ-(k)/k against k/n, with limits and the lemma's bounds."""
    axes = panels(figure, 2)
    for ax, side, other in ((axes[0], "plus", "from above"), (axes[1], "minus", "from below")):
        for i, ((n, d), rows) in enumerate(table.groups("n", "d")):
            share, found = zip(*rows.mean(f"{side}_found", "share"), strict=True)
            ax.plot(share, found, ".-", color=COLOURS[i], label=f"n = {n:,}, d = {d}")
            share, certain = zip(*rows.mean(f"{side}_certain", "share"), strict=True)
            known = [(s, c) for s, c in zip(share, certain, strict=True) if c > 0]
            if known:
                ax.plot(*zip(*known, strict=True), ":", color=COLOURS[i], linewidth=0.9)
        share, limit = zip(*table.mean(f"{side}_limit", "share"), strict=True)
        ax.plot(share, limit, color="#333333", linewidth=1.2, label="limit, n/d → ∞")
        label(
            ax,
            f"ψ{'+' if side == 'plus' else '−'}(k)/k (dotted: certified {other})",
            "k/n",
            "",
            log="xy",
        )
    share, lemma = zip(*table.mean("plus_lemma", "share"), strict=True)
    axes[0].plot(share, lemma, **REFERENCE, label="Lemma 5, C_1 = 0")
    axes[1].plot(share, 0.3 * np.array(share), **REFERENCE, label="0.3 k/n")
    for ax in axes:
        ax.legend(fontsize=7)


REGULARITY = Experiment(
    name="feature-regularity",
    title="Subsets of Gaussian rows are well conditioned",
    claim="Lemma 5, lem:support-1",
    statement=(
        "For Gaussian features ψ+(k)/k stays below Lemma 5's bound even without its C_1 term, and "
        "both ψ±(k)/k approach limits that depend on k/n alone. ψ-(k)/k falls like (k/n)², faster "
        "than the C_2 k/n that the lemma states."
    ),
    tolerance=(
        f"certified ψ+ below the bound; with most rows within {NEAR:.0%} of the limits (ψ- from "
        f"k/n = {LARGE:g} on); power of ψ-/k above 1.5"
    ),
    sabotage="draw the features from Student's t with 5 degrees of freedom and variance one",
    quick=(
        {"n": (500, 5000), "d": (3,)},
        {"n": (1000,), "d": (10,)},
    ),
    full=(
        {"n": (500, 4000, 20_000), "d": (3,)},
        {"n": (4000, 20_000), "d": (20,)},
    ),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 2, "full": 3},
)
