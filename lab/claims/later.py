"""Claims of later work on the same problem: alternating minimisation, imbalance, low signal."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, panels, ranks
from lab.simulation import errors_by_round, mixture, responses, start_at
from lab.table import Row, Table, slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ALTERNATING", "IMBALANCE", "LOW_SIGNAL"]

Floats = NDArray[np.float64]

# --- alternating minimisation (Ghosh and Ramchandran 2020) ----------------------------------------

FEATURES, START, LOCAL, FLOOR = 10, 0.2, 0.1, 1e-12
# A linear rate has order 1; the paper proves an order above one.
SUPER_LINEAR = 1.3


def measure_alternating(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Run alternating minimisation and ILTS from one start; record errors by round."""
    data = mixture(rng, int(cell["n"]), FEATURES, 2, separation=float(cell["Q"]))
    coef = data.truth.coef
    starts = np.stack([start_at(rng, coef, j, START) for j in range(2)])
    keep = 0.9 * float(data.truth.clean_fraction[0])
    trimmed, _ = errors_by_round(data.X, data.y, starts[0], keep, coef[0])
    joint = _alternate(data.X, data.y, starts, coef, gradient=broken)
    return [
        {"method": name, "round": t, "error": before, "next_error": after}
        for name, errors in (("ILTS", trimmed), ("alternating", joint))
        for t, (before, after) in enumerate(pairwise(errors))
    ]


def _alternate(
    X: Floats, y: Floats, theta: Floats, truth: Floats, *, gradient: bool
) -> list[float]:
    """Give every row to the nearer component, fit both; with one gradient step instead if asked."""
    errors = [float(np.linalg.norm(theta - truth, axis=1).max())]
    for _ in range(12):
        owner = np.argmin(np.abs(y[:, None] - X @ theta.T), axis=1)
        theta = theta.copy()
        for j in range(2):
            rows, target = X[owner == j], y[owner == j]
            if gradient:
                theta[j] -= rows.T @ (rows @ theta[j] - target) / (1.5 * len(rows))
            else:
                theta[j] = np.linalg.lstsq(rows, target, rcond=None)[0]
        errors.append(float(np.linalg.norm(theta - truth, axis=1).max()))
    return errors


def _local(table: Table) -> tuple[list[float], list[float]]:
    pairs = [(r["error"], r["next_error"]) for r in table if r["error"] < LOCAL]
    pairs = [(e, after) for e, after in pairs if after > FLOOR]
    return [e for e, _ in pairs], [after for _, after in pairs]


def check_alternating(table: Table) -> Verdict:
    """Fit the order q of e' = c e^q for both methods."""
    orders = {}
    for (name,), rows in table.groups("method"):
        before, after = _local(rows)
        orders[name] = slope(after, before)
    found = orders["alternating"]
    words = (
        f"alternating minimisation converges with order {found:.2f}, ILTS with order "
        f"{orders['ILTS']:.2f}"
    )
    return Verdict.of(found >= SUPER_LINEAR, found, SUPER_LINEAR, words, order_ilts=orders["ILTS"])


def draw_alternating(table: Table, figure: Figure) -> None:
    """Draw the error of the next round against the error."""
    (ax,) = panels(figure, 1)
    for i, ((name,), rows) in enumerate(table.groups("method")):
        before, after = _local(rows)
        ax.plot(before, after, ".", color=COLOURS[i], label=name)
    ends = np.array([1e-5, LOCAL])
    ax.plot(ends, 2 * ends**1.5, **REFERENCE)
    ax.annotate("slope 3/2", (1e-4, 3e-6), color="#666666", fontsize=8)
    label(ax, "Error of the next round", "error", "next error", log="xy")
    ax.legend()


ALTERNATING = Experiment(
    name="alternating",
    title="Alternating minimisation converges super-linearly, as ILTS does",
    claim="Ghosh and Ramchandran 2020, for two components",
    statement=(
        "From a start near both components, alternating minimisation on noiseless rows has an "
        "order of convergence above one, and so has ILTS."
    ),
    tolerance=f"order at least {SUPER_LINEAR:g}, fitted to errors below {LOCAL:g}",
    sabotage="one gradient step in the place of least squares",
    quick=({"n": (20_000,), "Q": (1.0,)},),
    full=({"n": (100_000,), "Q": (0.5, 1.0)},),
    measure=measure_alternating,
    check=check_alternating,
    draw=draw_alternating,
    repeats={"quick": 4, "full": 8},
)

# --- imbalance (Zilber and Nadler 2023) -----------------------------------------------------------

# Components, rows for each of the md coefficients, noise, and what counts as found.
COMPONENTS, PER_COEFFICIENT, NOISE, FOUND = 3, 5.0, 0.01, 0.1
# Success must rise by at least this from balanced to unbalanced mixtures.
RISE = 0.4


def measure_imbalance(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Run Mix-IRLS on a mixture of given imbalance; say whether it finds every component."""
    d, m = int(cell["d"]), COMPONENTS
    # Neighbouring shares have the given ratio.
    shares = float(cell["ratio"]) ** -np.arange(m, dtype=np.float64)
    n = round(PER_COEFFICIENT * m * d)
    X, coef = rng.standard_normal((n, d)), rng.standard_normal((m, d))
    y = responses(X, coef, rng.choice(m, n, p=shares / shares.sum()))
    y += NOISE * rng.standard_normal(n)
    # The benchmarks are not typed; imported by name, they are not checked with the lab.
    peer = vars(import_module("benchmarks.recovery.contestants.mix_irls"))
    first = rng.standard_normal((m, d)) if broken else peer["_one_by_one"](X, y, m, rng)
    found = peer["_together"](X, y, first, 0.0)
    far = np.linalg.norm(found[:, None] - coef, axis=2).min(axis=0)
    return [{"success": bool(far.max() < FOUND)}]


def check_imbalance(table: Table) -> Verdict:
    """Hold success on unbalanced mixtures against that on balanced ones."""
    shares = dict(table.mean("success", "ratio"))
    rise = max(shares.values()) - shares[min(shares)]
    words = (
        f"Mix-IRLS finds every component in {shares[min(shares)]:.0%} of the balanced mixtures, "
        f"and in {max(shares.values()):.0%} at the best ratio of shares"
    )
    numbers = {f"success_ratio_{ratio:g}": share for ratio, share in shares.items()}
    return Verdict.of(rise >= RISE, rise, RISE, words, **numbers)


def draw_imbalance(table: Table, figure: Figure) -> None:
    """Draw success against the ratio of neighbouring shares."""
    (ax,) = panels(figure, 1)
    for i, ((d,), rows) in enumerate(table.groups("d")):
        ratios, shares = zip(*rows.mean("success", "ratio"), strict=True)
        ax.plot(ratios, shares, "o-", color=COLOURS[i], label=f"d = {d}")
    label(
        ax, f"{COMPONENTS} components, {PER_COEFFICIENT:g} rows per coefficient",
        "share of a component / share of the next", "every component found", log="x",
    )  # fmt: skip
    ranks(ax, table["ratio"])
    ax.legend()


IMBALANCE = Experiment(
    name="imbalance",
    title="Finding components one by one needs one that stands out",
    claim="Zilber and Nadler 2023, Mix-IRLS",
    statement=(
        "Mix-IRLS, which finds components one after the other, succeeds on unbalanced mixtures "
        "with rows that are too few for balanced ones; very unbalanced ones leave the last too "
        "few rows."
    ),
    tolerance=f"success rises at least by {RISE:g} from balanced mixtures to the best ratio",
    sabotage="leave out the phase that finds components one by one",
    quick=({"d": (40,), "ratio": (1.0, 1.5, 2.0)},),
    full=({"d": (40, 100), "ratio": (1.0, 1.25, 1.5, 2.0, 2.5, 3.0)},),
    measure=measure_imbalance,
    check=check_imbalance,
    draw=draw_imbalance,
    repeats={"quick": 12, "full": 24},
)

# --- low signal (Kwon, Ho and Caramanis 2021) -----------------------------------------------------

# Exponents of d/n, and how far off a fitted one may be.
WEAK, STRONG, OFF = 0.25, 0.5, 0.08
MOST_ROUNDS = 3000


def measure_low_signal(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Fit y = ±x·θ + noise by EM, which knows the noise; return the error up to the sign."""
    n, d, signal = int(cell["n"]), int(cell["d"]), float(cell["signal"])
    if broken and signal == 0:
        signal = 1.0
    truth = np.zeros(d)
    truth[0] = signal
    X = rng.standard_normal((n, d))
    y = rng.choice([-1.0, 1.0], n) * (X @ truth) + rng.standard_normal(n)
    inverse = np.linalg.inv(X.T @ X)
    theta = truth + 0.5 * rng.standard_normal(d) / np.sqrt(d)
    for _ in range(MOST_ROUNDS):
        before, theta = theta, inverse @ (X.T @ (np.tanh(y * (X @ theta)) * y))
        if np.linalg.norm(theta - before) < 1e-5 * (np.linalg.norm(theta) + 1e-3):
            break
    return [{"error": float(min(np.linalg.norm(theta - truth), np.linalg.norm(theta + truth)))}]


def rates(table: Table) -> dict[float, float]:
    """Fit the exponent of d/n for each signal."""
    fitted = {}
    for (signal,), rows in table.groups("signal"):
        means = rows.mean("error", ("n", "d"))
        fitted[signal] = slope([error for _, error in means], [d / n for (n, d), _ in means])
    return fitted


def check_low_signal(table: Table) -> Verdict:
    """Hold the fitted exponents against 1/4 without signal and 1/2 with a strong one."""
    fitted = rates(table)
    weak, strong = fitted[min(fitted)], fitted[max(fitted)]
    off = max(abs(weak - WEAK), abs(strong - STRONG))
    words = (
        f"the error falls like (d/n)^{weak:.2f} without a signal and like (d/n)^{strong:.2f} with "
        f"one of {max(fitted):g} times the noise"
    )
    return Verdict.of(off <= OFF, off, OFF, words, **{f"power_{k:g}": v for k, v in fitted.items()})


def draw_low_signal(table: Table, figure: Figure) -> None:
    """Draw the error against n/d."""
    (ax,) = panels(figure, 1)
    for i, ((signal,), rows) in enumerate(table.groups("signal")):
        points = sorted((n / d, error) for (n, d), error in rows.mean("error", ("n", "d")))
        ax.plot(*zip(*points, strict=True), "o-", color=COLOURS[i], label=f"signal {signal:g}")
    across = np.array(sorted({row["n"] / row["d"] for row in table}))
    for power, name in ((WEAK, "slope −1/4"), (STRONG, "slope −1/2")):
        ax.plot(across, 1.3 * across**-power, **REFERENCE)
        ax.annotate(name, (across[-1], 1.3 * across[-1] ** -power), color="#666666", fontsize=8)
    label(ax, "Two balanced components ±θ, noise one", "n/d", "error of EM", log="xy")
    ax.legend()


LOW_SIGNAL = Experiment(
    name="low-signal",
    title="Without a signal the error falls like (d/n)^(1/4) only",
    claim="Kwon, Ho and Caramanis 2021, two balanced components",
    statement=(
        "EM for y = ±x·θ + noise has an error that falls like (d/n)^(1/4) where θ is small beside "
        "the noise, and like (d/n)^(1/2) where it is large."
    ),
    tolerance=f"fitted exponents within {OFF:g} of 1/4 and 1/2",
    sabotage="a signal as large as the noise in the place of none",
    quick=({"n": (1000, 4000, 16_000), "d": (20,), "signal": (0.0, 3.0)},),
    full=({"n": (1000, 4000, 16_000, 64_000), "d": (20,), "signal": (0.0, 0.3, 1.0, 3.0)},),
    measure=measure_low_signal,
    check=check_low_signal,
    draw=draw_low_signal,
    repeats={"quick": 8, "full": 12},
)
