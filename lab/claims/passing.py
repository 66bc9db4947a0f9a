"""Message passing and its state evolution: errors by round, and where it fails."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, REFERENCE, label, panels
from lab.state_evolution import measured_errors, predicted_errors
from lab.table import Row, Table, crossing
from regimix.engines.base import Sample
from regimix.model.rows import Rows, Units, whitened_rows
from regimix.search.message_passing import hunt_one, prepare
from regimix.theory import passing_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ROUNDS", "THRESHOLD"]

Floats = NDArray[np.float64]

NOISE, DRAWS, SHOWN_ROUNDS = 0.01, 20_000, 16
# Shares of the components of each setting, the one looked for first, and rows per coefficient; what
# is missing to one are outliers.
SETTINGS = {
    "60 % and outliers": ((0.6,), 5.0),
    "40 % and outliers, too few rows": ((0.4,), 3.0),
    "50/30 and outliers": ((0.5, 0.3), 15.0),
    "50/20/20 and outliers": ((0.5, 0.2, 0.2), 15.0),
}
# Errors are compared as long as they are above this, and may differ by this on a logarithmic scale.
SMALL, APART = 0.01, 0.14
# Below this the finite number of draws shows in the prediction.
LEAST_SHOWN = 3e-4


def measure_rounds(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Run a pass on one data set; predict its errors."""
    shares, delta = SETTINGS[str(cell["setting"])]
    d = int(cell["d"])
    n = round(delta * d)
    X = rng.standard_normal((n, d))
    coef = np.linalg.qr(rng.standard_normal((d, len(shares))))[0].T
    rows, units = _rows(X, _responses(rng, X @ coef.T, shares))
    pool = prepare(rows)
    drawn = rng.standard_normal((DRAWS, len(shares)))
    y = _responses(rng, drawn, shares) / units.y_scale
    options = {"damping": 1.0} if broken else {}
    predicted = predicted_errors(
        pool, drawn / units.y_scale, y, delta, SHOWN_ROUNDS, rng, **options
    )
    measured = measured_errors(pool, X @ coef[0] / units.y_scale, SHOWN_ROUNDS)
    return [
        {"round": t + 1, "measured": was, "predicted": said}
        for t, (was, said) in enumerate(zip(measured, predicted, strict=True))
    ]


def _responses(rng: np.random.Generator, predictions: Floats, shares: tuple[float, ...]) -> Floats:
    """Give every row to a component or to none, whose responses are as wide as the others'."""
    n, m = predictions.shape
    label = rng.choice(m + 1, n, p=[*shares, 1 - sum(shares)])
    y = np.column_stack([predictions, rng.standard_normal(n)])[np.arange(n), label]
    return np.asarray(y + NOISE * rng.standard_normal(n))


def _rows(X: Floats, y: Floats) -> tuple[Rows, Units]:
    return whitened_rows(Sample(X, y, np.ones(len(y))), intercept=False)


def check_rounds(table: Table) -> Verdict:
    """Hold the mean measured errors against the predicted ones, on a logarithmic scale."""
    gaps = {}
    for (setting, d), rows in table.groups("setting", "d"):
        measured, predicted = dict(rows.mean("measured", "round")), rows.mean("predicted", "round")
        far = [abs(np.log(measured[t] / said)) for t, said in predicted if said > SMALL]
        gaps[f"{setting}, d = {d}"] = float(np.mean(far))
    largest = max(table["d"])
    apart = float(np.mean([gap for name, gap in gaps.items() if name.endswith(f" {largest}")]))
    words = (
        f"with d = {largest} the errors by round differ by {np.expm1(apart):.0%} from those "
        "predicted, on average over rounds and settings"
    )
    return Verdict.of(apart <= APART, apart, APART, words, **gaps)


def draw_rounds(table: Table, figure: Figure) -> None:
    """Draw measured and predicted errors against the round."""
    axes = panels(figure, len(SETTINGS), sharey=True)
    largest = table.where(d=max(table["d"]))
    for ax, ((setting,), rows) in zip(axes, largest.groups("setting"), strict=True):
        for (t,), runs in rows.groups("round"):
            measured = runs.numbers("measured")
            ax.vlines(t, min(measured), max(measured), color=COLOURS[0], alpha=0.4)
            ax.plot(t, np.mean(measured), ".", color=COLOURS[0], label="measured")
        rounds, said = zip(*rows.mean("predicted", "round"), strict=True)
        ax.plot(rounds, said, color=COLOURS[1], label="predicted")
        label(ax, str(setting).replace(", ", "\n"), "round", "", log="y")
        ax.title.set_fontsize(8)
        ax.set_ylim(LEAST_SHOWN, 1.2)
    axes[0].set_ylabel("error / variance")
    names = dict(zip(*axes[0].get_legend_handles_labels()[::-1], strict=True))
    axes[0].legend(names.values(), names.keys())


ROUNDS = Experiment(
    name="state-evolution",
    title="State evolution predicts the error of message passing round by round",
    claim="Beyond the paper: Bayati and Montanari 2011, Tan and Venkataramanan 2023",
    statement=(
        "On whitened normal features the error of a pass of search/message_passing.py that begins "
        "with nothing follows the recursion of lab/state_evolution.py: for one component among "
        "outliers, where it gets stuck, and for the largest component of a mixture."
    ),
    tolerance=(
        f"mean absolute difference of log errors at most {APART:g} while they are above "
        f"{SMALL:g}, for the largest d"
    ),
    sabotage="predict a pass without damping",
    quick=({"setting": tuple(SETTINGS), "d": (200,)},),
    full=({"setting": tuple(SETTINGS), "d": (100, 400)},),
    measure=measure_rounds,
    check=check_rounds,
    draw=draw_rounds,
    repeats={"quick": 12, "full": 20},
)

# --- the threshold --------------------------------------------------------------------------------

# Rows among which a pool was whitened, for each coefficient, as in a search for the last component.
WHOLE, ACCURACY = 15, 0.05
# Own rows at which half of the searches succeed, over those predicted, may lie between these.
LOWEST, HIGHEST = 0.9, 1.15
# The 18 cells of benchmarks/recovery, d = 100: share of the smallest component, rows, share of
# outliers. All runs find every component but for those below (benchmarks/results/recovery.md).
SMALLEST, TABLES, OUTLIERS, CELL_FEATURES = (0.1, 1 / 3, 0.1), (1500, 2500), (0.0, 0.05, 0.1), 100
MISSED = {(0, 1500, 0.05): 0.6, (2, 1500, 0.05): 0.55, (0, 1500, 0.1): 0.0, (2, 1500, 0.1): 0.0}


def measure_threshold(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Search for a component among outliers, at a multiple of the rows that are predicted."""
    d, outliers = int(cell["d"]), float(cell["outliers"])
    predicted = passing_rows(outliers / 3 if broken else outliers, noise=NOISE)
    own = round(float(cell["times"]) * passing_rows(outliers, noise=NOISE) * d)
    X, coef = rng.standard_normal((WHOLE * d, d)), rng.standard_normal(d) / np.sqrt(d)
    y = rng.standard_normal(len(X))
    y[:own] = X[:own] @ coef + NOISE * rng.standard_normal(own)
    rows, units = _rows(X, y)
    found = hunt_one(rows.take(slice(own + round(outliers * d))), signal=units.y_scale**-2)
    hit = found is not None and np.linalg.norm(units.back(found.coef)[0] - coef) < ACCURACY
    return [{"own": own / d, "predicted": predicted, "success": bool(hit)}]


def check_threshold(table: Table) -> Verdict:
    """Compare the rows with which half of the searches succeed with the predicted threshold."""
    ratios = {}
    for (d, outliers, predicted), rows in table.groups("d", "outliers", "predicted"):
        own, shares = zip(*rows.mean("success", "own"), strict=True)
        ratios[f"outliers_{outliers:g}_d{d}"] = crossing(own, shares) / predicted
    values = np.array(list(ratios.values()))
    words = (
        f"half of the searches succeed with {np.nanmin(values):.2f} to {np.nanmax(values):.2f} "
        "times the own rows of the predicted threshold"
    )
    holds = bool(np.isfinite(values).all() and values.min() >= LOWEST and values.max() <= HIGHEST)
    return Verdict.of(holds, np.nanmax(values), HIGHEST, words, **ratios)


def draw_threshold(table: Table, figure: Figure) -> None:
    """Draw measured success in the plane of own rows and outliers, over the predicted line."""
    left, right = panels(figure, 2)
    beside = np.linspace(0.05, 3.2, 24)
    for ax in (left, right):
        line = [passing_rows(float(each), noise=NOISE) for each in beside]
        ax.plot(beside, line, **REFERENCE, label="predicted threshold")
    largest = table.where(d=max(table["d"]))
    points = [(o, k, s) for (o, k), s in largest.mean("success", ("outliers", "own"))]
    beyond, own, success = np.array(points).T
    shown = left.scatter(beyond, own, c=success, cmap="cividis", s=30)
    figure.colorbar(shown, ax=left, label="share of searches that succeed")
    x, y = "outliers / coefficient", "own rows / coefficient"
    label(left, f"One component, d = {max(table['d'])}", x, y)
    for i, j, o in product(range(len(SMALLEST)), TABLES, OUTLIERS):
        rows = j / CELL_FEATURES
        style = {1.0: ("o", COLOURS[0]), 0.0: ("X", COLOURS[1])}
        mark, colour = style.get(MISSED.get((i, j, o), 1.0), ("D", COLOURS[4]))
        right.plot(o * rows, SMALLEST[i] * (1 - o) * rows, mark, color=colour, markersize=6)
    for mark, colour, name in (
        ("o", COLOURS[0], "all runs succeed"),
        ("D", COLOURS[4], "55 to 60 %"),
        ("X", COLOURS[1], "none"),
    ):
        right.plot([], [], mark, color=colour, label=name)
    label(right, "Smallest component of the 18 cells", x, "", log="y")
    right.set_ylim(top=25)
    right.legend(loc="upper right")


THRESHOLD = Experiment(
    name="passing-threshold",
    title="Message passing fails where state evolution says so",
    claim="Beyond the paper: Krzakala et al. 2012",
    statement=(
        "The search for one component among outliers begins to succeed at the rows for which the "
        "state evolution of Bayes-optimal message passing has no fixed point in the way."
    ),
    tolerance=f"half succeed between {LOWEST:g} and {HIGHEST:g} times the predicted own rows",
    sabotage="predict the threshold for a third of the outliers",
    quick=({"d": (60,), "outliers": (2.0,), "times": (0.85, 0.95, 1.05, 1.2)},),
    full=(
        {
            "d": (100,),
            "outliers": (0.25, 0.75, 1.5, 3.0),
            "times": (0.7, 0.8, 0.9, 1.0, 1.05, 1.1, 1.2, 1.35),
        },
    ),
    measure=measure_threshold,
    check=check_threshold,
    draw=draw_threshold,
    repeats={"quick": 10, "full": 16},
)
