"""Features that are not Gaussian (discussion after Corollary 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, label, panels
from lab.simulation import arrivals, mixture, responses, starts_at
from lab.table import Row, Table, crossing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SUBGAUSSIAN"]

COMPONENTS, FEATURES, STARTS, SHARE_KEPT, REACH = 3, 12, 4, 0.9, 0.4
# Sub-Gaussian rows with density around zero spread out; the rest is there to see what happens.
CLAIMED = ("uniform", "sphere", "signs", "half sparse")
# Rows needed, in units of what Gaussian features need.
MOST = 1.5


def features(rng: np.random.Generator, kind: str, n: int) -> NDArray[np.float64]:
    """Draw rows of mean zero and covariance I."""
    shape = (n, FEATURES)
    if kind == "uniform":
        return rng.uniform(-np.sqrt(3), np.sqrt(3), shape)
    if kind == "signs":
        return np.asarray(rng.choice([-1.0, 1.0], shape))
    X = rng.standard_normal(shape)
    if kind == "sphere":
        X *= np.sqrt(FEATURES) / np.linalg.norm(X, axis=1, keepdims=True)
    elif kind in ("half sparse", "very sparse"):
        present = 0.5 if kind == "half sparse" else 0.2
        X *= (rng.random(shape) < present) / np.sqrt(present)
    return X


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Count arrivals with rows of one kind of features."""
    kind, n = str(cell["features"]), round(float(cell["rows"]) * FEATURES * COMPONENTS)
    if broken and kind == "half sparse":
        kind = "very sparse"
    synth = kind if kind in ("student", "lognormal") else "gaussian"
    data = mixture(rng, n, FEATURES, COMPONENTS, features=synth, degrees_of_freedom=3.0)
    coef, X = data.truth.coef, data.X
    if kind not in ("gaussian", "student", "lognormal"):
        X = features(rng, kind, n)
    y = responses(X, coef, data.truth.component)
    starts = starts_at(rng, coef, 0, REACH / COMPONENTS, STARTS)
    keep = SHARE_KEPT * float(data.truth.clean_fraction[0])
    return [{"n": n, "success": arrivals(X, y, coef[0], starts, keep)}]


def check(table: Table) -> Verdict:
    """Hold the rows that each kind needs against those of Gaussian features."""
    needed, largest = {}, {}
    for (kind,), part in table.groups("features"):
        rows, shares = zip(*part.mean("success", "rows"), strict=True)
        needed[kind] = crossing(rows, shares)
        largest[kind] = shares[int(np.argmax(rows))]
    ratios = {kind: needed[kind] / needed["gaussian"] for kind in CLAIMED}
    worst = max(ratios, key=lambda kind: ratios[kind])
    words = (
        f"rows needed, in units of Gaussian features': {ratios[worst]:.2f} for the worst claimed "
        f"kind ({worst})"
    )
    # Not a number, where a kind never succeeds, must not pass.
    holds = all(ratio <= MOST for ratio in ratios.values())
    return Verdict.of(
        holds,
        ratios[worst],
        MOST,
        words,
        **{f"needed_{kind}".replace(" ", "_"): n for kind, n in needed.items()},
        **{f"success_most_rows_{kind}".replace(" ", "_"): s for kind, s in largest.items()},
    )


def draw(table: Table, figure: Figure) -> None:
    """Draw success against rows, for kinds with and without the paper's properties."""
    left, right = panels(figure, 2, sharey=True)
    for ax, kinds, title in (
        (left, ("gaussian", *CLAIMED), "Sub-Gaussian, spread out"),
        (right, ("gaussian", "student", "lognormal", "very sparse"), "Outside the claim"),
    ):
        for i, kind in enumerate(kinds):
            part = table.where(features=kind)
            if len(part):
                rows, shares = zip(*sorted(part.mean("success", "rows")), strict=True)
                ax.plot(rows, shares, ".-", color=COLOURS[i], label=kind)
        ax.legend()
        label(ax, title, "n / (d m)", "", log="x")
    left.set_ylabel("share of starts that arrive")


_ROWS = (1.5, 2.0, 3.0, 4.0, 6.0)

SUBGAUSSIAN = Experiment(
    name="subgaussian",
    title="Sub-Gaussian features that spread out behave like Gaussian ones",
    claim="Discussion after Corollary 8: a sub-class of sub-Gaussians",
    statement=(
        "Uniform, spherical, sign and half sparse features need about as many rows as Gaussian "
        "ones. (Heavier tails, and features that are mostly zero, are measured beside them.)"
    ),
    tolerance=f"at most {MOST:g} times the rows that Gaussian features need",
    sabotage="claim it for features of which 80 % are zero, too",
    quick=(
        {"features": ("gaussian", *CLAIMED), "rows": _ROWS},
        {"features": ("student", "very sparse"), "rows": (2.0, 6.0, 16.0)},
    ),
    full=(
        {"features": ("gaussian", *CLAIMED), "rows": (1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 16.0)},
        {
            "features": ("student", "lognormal", "very sparse"),
            "rows": (1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 16.0, 64.0),
        },
    ),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 10, "full": 24},
)
