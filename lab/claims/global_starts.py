"""How many starts the global algorithm needs (Theorem 11, ``thm:global``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from lab.experiment import Cell, Experiment, Verdict
from lab.figures import COLOURS, label, panels, ranks
from lab.simulation import arrival, mixture
from lab.table import Row, Table
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.model.rows import whitened_rows
from regimix.search.joint import joint_starts
from regimix.search.net import net_source
from regimix.search.subspace import find_subspace
from regimix.theory import start_count
from regimix.trimmed.ilts import TrimmedFit, ilts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["GLOBALLY"]

Floats = NDArray[np.float64]

FEATURES, ROWS_PER_COEFFICIENT, SHARE_KEPT = 8, 50, 0.9
NET_STARTS, JOINT_STARTS = 48, 16
WIDE = 1.3
# From the smallest to the largest m the starts that the net needs must at least grow so much.
GROWTH = 2.0


def measure(cell: Cell, rng: np.random.Generator, broken: bool) -> list[Row]:
    """Try starts of both searches on one data set; count those that lead somewhere."""
    m = int(cell["m"])
    n = ROWS_PER_COEFFICIENT * FEATURES * m
    data = mixture(
        rng,
        n,
        FEATURES,
        m,
        separation=float(cell["Q"]),
        corruption_ratio=float(cell["gamma"]),
    )
    coef = data.truth.coef
    keep = (1.3 if broken else SHARE_KEPT) * float(data.truth.clean_fraction_min)
    problem = Problem.from_arrays(data.X, data.y, fit_intercept=False)
    engine = MemoryEngine(problem)
    seed = int(rng.integers(2**31))

    def reached(starts: Floats) -> list[set[int]]:
        """Say which components each start leads to."""
        fits = cast(tuple[TrimmedFit, ...], ilts(data.X, data.y, starts, keep=keep))
        return [{j for j, c in enumerate(coef) if arrival(fit.coef, c)} for fit in fits]

    source = net_source(engine, m, seed=seed)
    drawn, _ = problem.to_user(source.draw(seed, 0, NET_STARTS).thetas)
    net = float(np.mean([bool(found) for found in reached(drawn)]))
    joint = [set().union(*reached(start)) == set(range(m)) for start in _joint(engine, m, rng)]
    bound = start_count(coef, keep=keep)
    shared = {"net_size": source.size, "bound": bound}
    return [
        {"search": "net", "success": net, "starts": len(drawn), **shared},
        {"search": "joint", "success": float(np.mean(joint)), "starts": len(joint), **shared},
    ]


def _joint(engine: MemoryEngine, m: int, rng: np.random.Generator) -> list[Floats]:
    """Run the joint search from single starts; return the m components that each proposes."""
    everything = engine.sample(engine.problem.n_rows, 0)
    rows, units = whitened_rows(everything, intercept=False)
    space = find_subspace(rows.features, rows.y, rows.weights, m, "bounded", permutations=0)
    models = joint_starts(rows, space, m, rng, starts=JOINT_STARTS, lift=JOINT_STARTS)
    return [engine.problem.to_user(units.back(model.coef))[0] for model in models]


def needed(table: Table) -> float:
    """Return the starts needed on average, one over the share that succeeds (at least one)."""
    tried = float(table.numbers("starts").sum())
    hits = float(table.numbers("success") @ table.numbers("starts"))
    # Without a single hit, as many as were tried is a lower bound.
    return tried / max(hits, 1.0)


def check(table: Table) -> Verdict:
    """Hold the starts that both searches need against Theorem 11 and against each other."""
    along_m = table.where(Q=WIDE, gamma=0.0)
    starts: dict[str, dict[Any, float]] = {
        search: {m: needed(part) for (m,), part in rows.groups("m")}
        for (search,), rows in along_m.groups("search")
    }
    net, joint, most = starts["net"], starts["joint"], max(starts["net"])
    growth = net[most] / net[min(net)]
    within = all(
        needed(part) <= min(part.numbers("bound")) for _, part in table.groups("search", "m", "Q")
    )
    found = all(max(part["success"]) > 0 for _, part in table.groups("search", "m", "Q", "gamma"))
    words = (
        f"the net needs {net[min(net)]:.1f} starts for a component at m = {min(net)} and "
        f"{net[most]:.1f} at m = {most}; the joint search needs {joint[most]:.1f} for all {most}"
    )
    numbers = {
        f"{search}_m{m}_Q{Q:g}_gamma{gamma:g}": needed(part)
        for (search, m, Q, gamma), part in table.groups("search", "m", "Q", "gamma")
    }
    bounds = {
        f"bound_m{m}_Q{Q:g}": float(np.median(part.numbers("bound")))
        for (m, Q), part in table.groups("m", "Q")
    }
    holds = found and within and growth >= GROWTH and joint[most] < net[most]
    return Verdict.of(holds, growth, GROWTH, words, **numbers, **bounds)


def draw(table: Table, figure: Figure) -> None:
    """Draw starts needed against m and against Q, and what the theorem counts."""
    left, middle, right = panels(figure, 3)
    wide = table.where(Q=WIDE)
    _curves(left, wide, "m")
    label(left, f"Starts needed, Q = {WIDE:g}", "m", "starts", log="y")
    ranks(left, wide["m"])
    left.legend(fontsize=7)
    size = min(row["m"] for row in table if row["Q"] != WIDE)
    _curves(middle, table.where(m=size, gamma=0.0), "Q")
    label(middle, f"Starts needed, m = {size}", "Q", "", log="y")
    ranks(middle, table.where(m=size)["Q"])
    for column, style, name in (
        ("bound", "--", "Theorem 11, constants one"),
        ("net_size", "o-", "points of the net"),
    ):
        points = sorted((m, float(np.median(g.numbers(column)))) for (m,), g in wide.groups("m"))
        right.plot(*zip(*points, strict=True), style, color="#666666", label=name)
    label(right, "What the theorem counts", "m", "", log="y")
    ranks(right, wide["m"])
    right.legend(fontsize=7)


def _curves(ax: Axes, table: Table, by: str) -> None:
    """Draw a curve for each search and corruption."""
    names = {"net": "net, a first one", "joint": "joint, all"}
    for i, ((search,), rows) in enumerate(table.groups("search")):
        for style, ((gamma,), part) in zip(("o-", "s:"), rows.groups("gamma"), strict=False):
            points = sorted((value, needed(group)) for (value,), group in part.groups(by))
            name = names[search] + (f", γ* = {gamma:g}" if gamma else "")
            ax.plot(*zip(*points, strict=True), style, color=COLOURS[i], label=name)


GLOBALLY = Experiment(
    name="global",
    title="The starts that the net needs explode with m; the joint search needs a few",
    claim="Theorem 11, thm:global",
    statement=(
        "Random points of the net lead to a component often enough: the starts needed stay below "
        "Theorem 11's count and grow quickly with m. At the largest m a joint search in the "
        "same subspace needs fewer starts to find all components than the net for one."
    ),
    tolerance=(
        f"starts needed grow at least by {GROWTH:g} from the smallest to the largest m; every "
        "setting has successes"
    ),
    sabotage="keep 1.3 times the rows of a component: τ above τ*_(j)",
    quick=(
        {"m": (2, 3, 6), "Q": (WIDE,), "gamma": (0.0,)},
        {"m": (3,), "Q": (0.6, 1.0), "gamma": (0.0,)},
    ),
    full=(
        {"m": (2, 3, 4, 5, 6), "Q": (WIDE,), "gamma": (0.0, 0.2)},
        {"m": (3,), "Q": (0.3, 0.5, 0.7, 1.0, 1.3), "gamma": (0.0,)},
    ),
    measure=measure,
    check=check,
    draw=draw,
    repeats={"quick": 3, "full": 4},
)
