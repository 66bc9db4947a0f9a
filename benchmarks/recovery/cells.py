"""The cells of the benchmark: how data are made, and what counts as success, suite by suite."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

ROWS_PER_COEFFICIENT = {2: 100, 3: 60, 5: 60, 10: 30, 40: 10}
"""f = n / (d m) by d in the grids; small d needs more rows to tell regimes apart."""
FILL = 20
"""f for every other d."""
RUNS = 20
"""Seeds a cell, where a suite says nothing else."""


@dataclass(frozen=True)
class Cell:
    """One cell; ``group`` and ``column`` place it in a table with several columns of cells."""

    name: str
    d: int
    m: int
    n: int
    weights: tuple[float, ...] = ()  # relative sizes of the components; () = equal
    noise: float = 0.05
    outliers: float = 0.05  # share of all rows
    kind: str = "gross"  # of outliers: gross | redraw | adversarial
    features: str = "gaussian"  # gaussian | half | lognormal | student | elliptical
    intercept_scale: float = 0.0
    condition: float = 1.0  # of each component's own covariance; 1 = identity
    signal_to_noise: float | None = None  # with it, noise is 1 and the coefficients are scaled
    success: float = 0.2  # the distance allowed to every component
    fit_intercept: bool = True
    group: str = ""
    column: str = ""

    @property
    def shares(self) -> tuple[float, ...]:
        return self.weights or (1.0,) * self.m


@dataclass(frozen=True)
class Suite:
    """Cells, who runs in them, and how many seeds each has."""

    title: str
    cells: Sequence[Cell]
    contestants: Sequence[str] = ("regimix", "oracle")
    runs: int = RUNS


def _table18() -> list[Cell]:
    mixtures = {
        ".7/.2/.1": (0.7, 0.2, 0.1),
        "1/3 each": (1.0, 1.0, 1.0),
        ".4/.3/.2/.1": (0.4, 0.3, 0.2, 0.1),
    }
    return [
        Cell(
            f"{name}, n = {n}, {share:.0%} outliers",
            d=100,
            m=len(weights),
            n=n,
            weights=weights,
            noise=0.01,
            outliers=share,
            kind="redraw",
            success=0.05,
            fit_intercept=False,
        )
        for name, weights in mixtures.items()
        for n in (1500, 2500)
        for share in (0.0, 0.05, 0.1)
    ]


def _grid(features: Sequence[str], intercept_scale: float = 0.0) -> list[Cell]:
    tag = ", intercepts" if intercept_scale else ""
    return [
        Cell(
            f"{kind}, d = {d}, m = {m}{tag}",
            d=d,
            m=m,
            n=ROWS_PER_COEFFICIENT[d] * d * m,
            features=kind,
            intercept_scale=intercept_scale,
            group=f"{kind}, d = {d}{tag}",
            column=f"m = {m}",
        )
        for kind in features
        for d in ROWS_PER_COEFFICIENT
        for m in range(1, 6)
    ]


def _many(m: int, fill: int, d: int = 50) -> Cell:
    ratio = 0.3  # γ*: corrupted rows over the clean rows of the smallest component
    return Cell(f"m = {m}, d = {d}, f = {fill}", d, m, fill * d * m, outliers=ratio / (m + ratio))


def _one_regime() -> list[Cell]:
    d = 5
    return [
        Cell(
            f"one regime, signal-to-noise {ratio:g}",
            d,
            1,
            ROWS_PER_COEFFICIENT[d] * d,
            outliers=0.0,
            signal_to_noise=ratio,
        )
        for ratio in (10.0, 1.0, 0.3, 0.0)
    ]


def _peers() -> list[Cell]:
    return [
        Cell("two regimes, 600 × 4", 4, 2, 600),
        Cell("three regimes (1/2, 1/3, 1/6), 4000 × 20", 20, 3, 4000, (3.0, 2.0, 1.0)),
    ]


# The plots change one thing at a time in this cell.
SWEPT = Cell("sweep", d=20, m=3, n=FILL * 20 * 3)


def sweeps() -> dict[str, dict[float, Cell]]:
    """Return, for each quantity on a horizontal axis, its values and their cells."""
    d, m, n = SWEPT.d, SWEPT.m, SWEPT.n
    axes = {
        "rows": {k: replace(SWEPT, n=k) for k in (180, 240, 300, 420, 600, 1200)},
        "share of outliers": {s: replace(SWEPT, outliers=s) for s in (0, 0.1, 0.2, 0.3, 0.4, 0.5)},
        "components": {k: replace(SWEPT, m=k, n=FILL * d * k) for k in (1, 2, 3, 5, 8)},
        "share of the smallest component": {
            s: replace(SWEPT, weights=((1 - s) * 2 / 3, (1 - s) / 3, s))
            for s in (0.03, 0.05, 0.1, 0.2, 0.3)
        },
        "noise": {s: replace(SWEPT, noise=s) for s in (0.01, 0.05, 0.1, 0.2, 0.4, 0.8)},
        "features": {k: replace(SWEPT, d=k, n=FILL * k * m) for k in (2, 5, 10, 20, 50, 100)},
    }
    assert n == axes["rows"][n].n
    return {
        axis: {x: replace(cell, name=f"sweep of {axis}: {x:g}") for x, cell in cells.items()}
        for axis, cells in axes.items()
    }


OURS = ("regimix", "regimix, m given")
BASELINES = ("net", "Mix-IRLS", "EM", "alternating", "sequential LTS")
IN_R = ("ltsReg, sequential", "flexmix", "mixtools")
EVERYBODY = (*OURS, *BASELINES, "oracle")
TITLE_GRID = "d = 2 to 40, three kinds of features, one to five regimes"

SUITES = {
    "table18": Suite("The 18 cells: d = 100, few rows, unequal sizes", _table18(), EVERYBODY),
    "many": Suite("Many regimes, γ* = .3", [_many(8, 20), _many(12, 30), _many(16, 30)]),
    "grid": Suite(TITLE_GRID, _grid(("gaussian", "half", "lognormal"))),
    "grid-intercepts": Suite(
        f"{TITLE_GRID}, an intercept for each", _grid(("gaussian", "half", "lognormal"), 2.0)
    ),
    "student": Suite(
        "Heavy tails: Student t(5), independent columns and elliptical",
        _grid(("student", "elliptical")) + _grid(("student", "elliptical"), 2.0),
    ),
    "one-regime": Suite("One regime only: is it left alone?", _one_regime(), ("regimix",), 200),
    # A seventh of all rows is half as many as an equal third of the others.
    "adversarial": Suite(
        "Outliers that agree on a wrong model",
        [Cell("adversarial, d = 20, m = 3", 20, 3, FILL * 60, outliers=1 / 7, kind="adversarial")],
        ("regimix", "Mix-IRLS", "oracle"),
    ),
    "large-d": Suite("Many features, few rows", [Cell("d = 500, m = 3, f = 5", 500, 3, 7500)]),
    "covariance": Suite(
        "A covariance for each component",
        [Cell("condition 10, d = 20, m = 3", 20, 3, FILL * 60, condition=10.0)],
        ("regimix", "Mix-IRLS", "oracle"),
    ),
    "efficiency": Suite(
        "Error of the worst component over that of least squares told the labels",
        [Cell(f"noise .1, d = 30, m = {m}", 30, m, FILL * 30 * m, noise=0.1) for m in (3, 5)],
        ("regimix", "Mix-IRLS", "oracle"),
    ),
    # Cells are known by their names: what another suite has run is not run again.
    "time": Suite("Time", [_many(8, 20), *_table18()], ("regimix", "regimix, m given", "Mix-IRLS")),
    "peers": Suite("Beside packages in R", _peers(), (*OURS, *BASELINES, *IN_R, "oracle")),
    "sweeps": Suite(
        "One thing changed at a time",
        [cell for cells in sweeps().values() for cell in cells.values()],
        ("regimix", *BASELINES, "oracle"),
    ),
}
