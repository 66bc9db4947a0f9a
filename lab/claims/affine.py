"""How many foreign rows slip in: V(Δ) for Gaussian features (Lemma 6, ``lem:help``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lab.affine_curve import affine_curve
from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, panels
from lab.table import Row, Table, slope
from regimix.theory import affine_error_at, affine_shape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AFFINE"]

DELTAS = tuple(float(delta) for delta in np.geomspace(1e-4, 1.0, 17))
# One tenth of the own rows are left out in any case: c_τ = 0.9 of Definition 3.
SLACK = 0.1
PAIRS = 20
# V along random directions is fitted where it is well above one row and well below saturation.
FEWEST_ROWS, LARGEST_DELTA = 5.0, 0.1
LINEAR = 0.15
# "A constant" beside max(Δn, d log(en/d)): 1.2 to 1.6 was seen for all n and d.
CONSTANT = 2.0


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Compute V(Δ) along random directions, and bound it over all directions."""
    n, d = int(cell["n"]), int(cell["d"])
    own, others = rng.standard_normal((n // 2, d)), rng.standard_normal((n - n // 2, d))
    slack = int(SLACK * len(own))
    curve = affine_curve(own, others, slack=slack, random_state=int(rng.integers(2**31)))
    pairs = rng.standard_normal((PAIRS, 2, d))
    pairs /= np.linalg.norm(pairs, axis=2, keepdims=True)
    rows: list[Row] = []
    for delta in DELTAS:
        typical = [affine_error_at(own, others, delta * v, w, slack=slack) for v, w in pairs]
        bounds = curve(delta)
        rows.append(
            {
                "delta": delta,
                "typical": float(np.mean(typical)),
                "found": bounds.lower,
                "certain": bounds.upper,
                "lemma": affine_shape(delta, n),
                "bound": affine_shape(delta, n, n_features=None if broken else d),
            }
        )
    return rows


def check(table: Table) -> Verdict:
    """Hold V along random directions against a line, and its maximum against the bound."""
    powers = {}
    for (n, d), rows in table.groups("n", "d"):
        means = dict(rows.mean("typical", "delta"))
        fit = {x: v for x, v in means.items() if v >= FEWEST_ROWS and x <= LARGEST_DELTA}
        if len(fit) > 2:
            powers[n, d] = slope(list(fit.values()), list(fit))
    off = max((abs(power - 1) for power in powers.values()), default=np.inf)
    settings = table.groups("n", "d")
    constants = {key: max(r["found"] / r["bound"] for r in rows) for key, rows in settings}
    largest = max(constants.values())
    as_printed = {key: max(r["found"] / r["lemma"] for r in rows) for key, rows in settings}
    with_d = {
        (n, d): max(r["found"] / max(r["lemma"], d) for r in rows) for (n, d), rows in settings
    }
    floors = {(n, d): min(r["found"] for r in rows) - (d - 1) for (n, d), rows in settings}
    words = (
        f"along random directions V grows like Δ to the power {_range(powers)}; over all "
        f"directions it stays below {largest:.2f} times the bound, and never below d - 1"
    )
    return Verdict.of(
        off <= LINEAR and largest <= CONSTANT and min(floors.values()) >= 0,
        largest,
        CONSTANT,
        words,
        worst_power=1 + off,
        **{f"power_n{n}_d{d}": power for (n, d), power in powers.items()},
        **{f"constant_n{n}_d{d}": c for (n, d), c in constants.items()},
        **{f"constant_as_printed_n{n}_d{d}": c for (n, d), c in as_printed.items()},
        **{f"constant_with_d_n{n}_d{d}": c for (n, d), c in with_d.items()},
    )


def _range(values: dict[tuple[int, int], float]) -> str:
    if not values:
        return "unknown"
    return f"{min(values.values()):.2f} to {max(values.values()):.2f}"


def draw(table: Table, figure: Figure) -> None:
    """Draw V(Δ) as found and as certain, for each size of data."""
    settings = table.groups("n", "d")[:3]
    axes = panels(figure, len(settings), sharey=True)
    for ax, ((n, d), rows) in zip(axes, settings, strict=True):
        for i, (column, name) in enumerate(
            (
                ("typical", "random directions"),
                ("found", "worst direction found"),
                ("certain", "certified bound"),
            )
        ):
            delta, value = zip(*rows.mean(column, "delta"), strict=True)
            ax.plot(delta, np.maximum(value, 0.1), ".-", color=COLOURS[i], label=name)
        delta, value = zip(*rows.mean("lemma", "delta"), strict=True)
        ax.plot(delta, value, **REFERENCE, label="max(Δn, log n), as printed")
        delta, value = zip(*rows.mean("bound", "delta"), strict=True)
        ax.plot(delta, value, **{**REFERENCE, "linestyle": "-"}, label="max(Δn, d log(en/d))")
        ax.axhline(d - 1, color="#999999", linewidth=0.8, linestyle=":")
        label(ax, f"n = {n:,}, d = {d} (dotted: d − 1)", "Δ", "", log="xy")
    axes[0].set_ylabel("V(Δ), rows")
    axes[-1].legend(fontsize=7)


AFFINE = Experiment(
    name="affine-error",
    title="The foreign rows that slip in are proportional to Δ, down to a floor",
    claim="Lemma 6, lem:help",
    statement=(
        "For Gaussian features V(Δ) is proportional to Δ along fixed directions. Over all "
        "directions it is at most a constant times max(Δn, d log(en/d)); the floor of d - 1 rows, "
        "which the lemma does not have, is always reached."
    ),
    tolerance=f"power of Δ within {LINEAR:g} of 1; constant at most {CONSTANT:g}",
    sabotage="hold V against the lemma as printed, with log n in place of d log(en/d)",
    quick=(
        {"n": (1000, 4000), "d": (3,)},
        {"n": (2000,), "d": (20,)},
    ),
    full=(
        {"n": (8000,), "d": (3, 20, 80)},
        {"n": (2000, 16_000), "d": (3, 20)},
    ),
    measure=measure,
    check=check,
    draw=draw,
    version=2,
    repeats={"quick": 2, "full": 3},
)
