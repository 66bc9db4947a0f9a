"""The subspace of the components, from clean and from corrupted rows (Definition 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, panels, ranks
from lab.simulation import mixture
from lab.table import Row, Table, slope
from regimix.search.subspace import SubspaceKind, find_subspace
from regimix.theory import subspace_distance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SUBSPACE"]

COMPONENTS, FEATURES, SEPARATION = 3, 12, 1.4
# The sin-theta theorem: ε ~ n^-1/2.
ROOT, TOLERANCE = -0.5, 0.2
# With gross errors the singular space must be lost, and robust ones at most half as far away.
LOST, BETTER = 0.7, 0.5


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Find the subspace in three ways; measure how far the components are from it."""
    data = mixture(
        rng,
        cell["n"],
        FEATURES,
        COMPONENTS,
        separation=SEPARATION,
        corruption_ratio=float(cell["gamma"]),
        corruption_kind=str(cell["corruption"]),
    )
    wanted = COMPONENTS - 1 if broken else COMPONENTS
    rows: list[Row] = []
    for kind in get_args(SubspaceKind):
        basis = find_subspace(data.X, data.y, None, wanted, kind, permutations=0).basis
        rows.append({"kind": kind, "distance": subspace_distance(basis, data.truth.coef)})
    return rows


def by_rows(table: Table) -> tuple[list[int], list[float]]:
    """Return numbers of rows and the typical (geometric mean) distance at each."""
    groups = sorted((n, rows.numbers("distance")) for (n,), rows in table.groups("n"))
    return [n for n, _ in groups], [float(np.exp(np.log(e).mean())) for _, e in groups]


def check(table: Table) -> Verdict:
    """Hold exponents in n, and distances under gross errors, against the statement."""
    numbers: dict[str, float] = {}
    last: dict[tuple[str, str, float], float] = {}
    for (kind, corruption, gamma), rows in table.groups("kind", "corruption", "gamma"):
        n, distances = by_rows(rows)
        name = f"{kind}_{corruption}_{gamma:g}"
        numbers[f"exponent_{name}"] = slope(distances, n)
        numbers[f"distance_{name}"] = last[kind, corruption, gamma] = distances[-1]
    worst_gamma = max(gamma for _, corruption, gamma in last if corruption == "gross")
    clean = numbers["exponent_svd_gross_0"]
    bounded = numbers[f"exponent_bounded_gross_{worst_gamma:g}"]
    gross = {kind: last[kind, "gross", worst_gamma] for kind in get_args(SubspaceKind)}
    off = max(abs(clean - ROOT), abs(bounded - ROOT))
    holds = (
        off <= TOLERANCE
        and gross["svd"] >= LOST
        and gross["filter"] < gross["svd"]
        and gross["bounded"] <= BETTER * gross["svd"]
    )
    words = (
        f"without corruption svd falls like n^{clean:.2f}; with gross errors (γ* = "
        f"{worst_gamma:g}) svd stays at {gross['svd']:.2f}, filter is at {gross['filter']:.2f}, "
        f"bounded at {gross['bounded']:.2f} and falls like n^{bounded:.2f}"
    )
    return Verdict.of(holds, off, TOLERANCE, words, **numbers)


def draw(table: Table, figure: Figure) -> None:
    """Draw the distance against n, a panel for each corruption."""
    clean = table.where(gamma=0.0)
    worst = {
        kind: max(row["gamma"] for row in rows) for (kind,), rows in table.groups("corruption")
    }
    settings = [("No corruption", clean)] + [
        (f"{kind}, γ* = {gamma:g}", table.where(corruption=kind, gamma=gamma))
        for kind, gamma in worst.items()
    ]
    axes = panels(figure, len(settings), sharey=True)
    for ax, (title, rows) in zip(axes, settings, strict=True):
        for i, ((kind,), part) in enumerate(rows.groups("kind")):
            n, distances = by_rows(part)
            # Where nothing is filtered out, filter and svd agree: keep both in sight.
            width = 4.0 if kind == "svd" else 1.5
            ax.plot(n, distances, "o-", color=COLOURS[i], label=kind, linewidth=width, alpha=0.7)
        root = np.array(n, dtype=np.float64)
        ax.plot(root, 0.5 * (root / root[0]) ** -0.5, **REFERENCE)
        label(ax, title, "n", "", log="xy")
        ranks(ax, n)
        ax.tick_params(axis="x", labelrotation=45, labelsize=7)
    axes[0].set_ylabel("ε: sine of the largest angle")
    handles, names = axes[0].get_legend_handles_labels()
    title = "dashed: n^-1/2"
    figure.legend(handles, names, loc="outside right upper", title=title, title_fontsize=8)


SUBSPACE = Experiment(
    name="subspace",
    title="The subspace of the components can be found, corrupted rows or not",
    claim="Definition 9, def:subspace, and Feasibility of getting U after Theorem 11",
    statement=(
        "Without corruption the distance of the top singular space of [y_i x_i] from the "
        "components falls like n^-1/2. Gross errors own that space; the filter and, much more, "
        "the bounded transform find the components all the same, the latter at the same rate."
    ),
    tolerance=(
        f"exponents within {TOLERANCE:g} of -1/2; under gross errors svd at {LOST:g} or more, "
        f"filter closer than svd, bounded at most {BETTER:g} of svd"
    ),
    sabotage="take one direction fewer than there are components",
    quick=(
        {"n": (2000, 8000, 32_000), "corruption": ("gross",), "gamma": (0.0, 0.2)},
        {"n": (2000, 8000, 32_000), "corruption": ("same-scale", "adversarial"), "gamma": (0.2,)},
    ),
    full=(
        {
            "n": (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000),
            "corruption": ("gross",),
            "gamma": (0.0, 0.05, 0.2),
        },
        {
            "n": (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000),
            "corruption": ("same-scale", "adversarial"),
            "gamma": (0.2,),
        },
    ),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 6, "full": 6},
)
