"""The paper's picture of V(Δ) in two dimensions (``fig:illustration``), drawn from data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lab.affine_curve import affine_curve
from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, label, panels
from lab.table import Row, Table
from regimix.theory import affine_error_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["PICTURE"]

Floats = NDArray[np.float64]

# Foreign rows are this much shorter along the second axis.
FLAT = 0.35
ANGLES = tuple(range(0, 180, 6))
# The worst direction lies within so many degrees of the axis along which foreign rows are short.
AXIS, WITHIN = 90, 24


def _unit(degrees: float) -> Floats:
    return np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Draw both clouds, and count V for every pair of directions on a grid."""
    n, delta = int(cell["n"]), float(cell["delta"])
    own = rng.standard_normal((n, 2))
    others = rng.standard_normal((n, 2)) * np.array([1.0, FLAT])
    curve = affine_curve(own, others)(delta)
    found, certain = curve.lower, curve.upper
    if broken:
        found = certain = affine_error_at(own, others, delta * _unit(0), _unit(0))
    rows: list[Row] = [
        {"what": name, "x": x, "y": y}
        for name, cloud in (("own", own), ("other", others))
        for x, y in cloud.tolist()
    ]
    for first in ANGLES:
        for second in ANGLES:
            count = affine_error_at(own, others, delta * _unit(first), _unit(second))
            rows.append(
                {
                    "what": "pair",
                    "own_angle": first,
                    "other_angle": second,
                    "V": count,
                    "found": found,
                    "certain": certain,
                }
            )
    return rows


def check(table: Table) -> Verdict:
    """Hold every pair of directions against V(Δ), and look where the worst one lies."""
    excess, gain, angles = 0, [], []
    for _, rows in table.where(what="pair").groups("repeat"):
        most = max(row["V"] for row in rows)
        excess = max(excess, most - rows.rows[0]["certain"])
        along = [r["V"] for r in rows if r["other_angle"] == 0]
        gain.append(most / max(1.0, float(np.mean(along))))
        angles.append(max(rows, key=lambda row: row["V"])["other_angle"])
    away = float(np.mean([abs(angle - AXIS) for angle in angles]))
    words = (
        f"no pair of directions exceeds V(Δ); the worst lets in {np.mean(gain):.1f} times as many "
        f"rows as the long axis and lies {away:.0f} degrees from the short one"
    )
    if excess > 0:
        words = f"a pair of directions lets in {excess} rows more than V(Δ)"
    holds = excess <= 0 and away <= WITHIN
    return Verdict.of(holds, excess, 0, words, gain=np.mean(gain), degrees=away)


def draw(table: Table, figure: Figure) -> None:
    """Draw the two clouds, and the projections for a harmless and for the worst direction."""
    left, middle, right = panels(figure, 3)
    first = table.where(repeat=0)
    delta = float(first.rows[0]["delta"])
    clouds = {
        name: np.column_stack([first.where(what=name)["x"], first.where(what=name)["y"]]).astype(
            float
        )
        for name in ("own", "other")
    }
    pairs = first.where(what="pair")
    worst = max(pairs, key=lambda row: row["V"])
    easy = min((row for row in pairs if row["other_angle"] == 0), key=lambda row: row["V"])
    _projection(left, clouds, delta, easy, "Spread out")
    _projection(right, clouds, delta, worst, "Concentrated")
    for i, (name, text) in enumerate((("own", "X_(j)"), ("other", "X_(−j)"))):
        middle.plot(*clouds[name].T, ".", color=COLOURS[i], alpha=0.5, markersize=3, label=text)
    for row, colour in ((easy, "#333333"), (worst, "#000000")):
        x, y = (2.5 * _unit(row["other_angle"])).tolist()
        middle.annotate("", (x, y), (-x, -y), arrowprops={"arrowstyle": "->", "color": colour})
        middle.annotate("v₂", (x, y), color=colour)
    middle.set_aspect("equal", adjustable="datalim")
    middle.legend(loc="lower left", fontsize=7)
    label(middle, "The rows", "", "")


def _projection(ax: Axes, clouds: dict[str, Floats], delta: float, row: Row, title: str) -> None:
    """Draw both histograms, and mark the foreign rows that look like own ones."""
    own = np.sort(np.abs(clouds["own"] @ (delta * _unit(row["own_angle"]))))
    other = np.sort(np.abs(clouds["other"] @ _unit(row["other_angle"])))
    edge = other[row["V"] - 1] if row["V"] else 0.0
    bins = np.linspace(0, 2.0, 41).tolist()
    ax.hist(own, bins, color=COLOURS[0], alpha=0.35, label="|X_(j) v₁|")
    ax.hist(other, bins, color=COLOURS[1], alpha=0.35, label="|X_(−j) v₂|")
    ax.axvspan(0, edge, color=COLOURS[1], alpha=0.12, linewidth=0)
    ax.axvline(edge, color=COLOURS[1], linewidth=1.0)
    ax.legend(fontsize=7)
    label(ax, f"{title}: V = {row['V']}", "projected size", "rows")


PICTURE = Experiment(
    name="picture",
    title="V(Δ) in two dimensions",
    claim="Figure 1, fig:illustration, and Definition 3, def:affine",
    statement=(
        "V(Δ) is the largest count over all directions: no pair on a fine grid lets in more rows "
        "than its certified bound, and the worst projects foreign rows where they are short."
    ),
    tolerance=f"no excess; within {WITHIN} degrees of the short axis on average",
    sabotage="take the count along one direction for V(Δ)",
    quick=({"n": (200,), "delta": (0.3,)},),
    full=({"n": (220,), "delta": (0.3,)},),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 4, "full": 8},
)
