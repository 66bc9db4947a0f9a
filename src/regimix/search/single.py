"""The best single component: many starts on few rows, few starts on all rows.

Starts are concentrated on a small sample, the best of them completed there, carried through nested
samples of growing size, and finished on all rows. Each stage begins where the one before ended, so
the last, which is the only expensive one, has a short way to go.

How many rows to keep, if it is not given: a majority decides. Least trimmed squares with the
highest breakdown point finds the line of most rows. Only if the model with one component finds a
line of fewer than half of the rows, and explains the table better by it, a minority's line is the
answer. (The score alone would side with bad leverage rows where they outnumber the good ones.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame, Problem
from regimix.engines.base import Engine, Follower, Sample
from regimix.engines.memory import MemoryEngine
from regimix.model.em import REGIME_GAIN, Fitted, Parameters, point_of, refit
from regimix.model.numbers import MODEL
from regimix.model.rows import MAD_TO_DEVIATION, Rows, Units, weighted_fit, whitened_rows
from regimix.search.message_passing import hunt_one, smallest_component
from regimix.search.numbers import SEARCH
from regimix.search.selection import score_of_constants
from regimix.trimmed.ilts import Run, Solver, concentrate
from regimix.trimmed.reweight import CUTOFF

__all__ = [
    "Single",
    "Starts",
    "elemental",
    "find_single",
    "majority",
    "reweighted",
    "single_starts",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Starts:
    """Where a search begins, and where each start comes from.

    Attributes
    ----------
    thetas : ndarray of shape (starts, p)
        Standardised coefficients.
    source : tuple of str
    """

    thetas: Floats
    source: tuple[str, ...]

    def and_also(self, thetas: Floats, source: str) -> Starts:
        """Append starts of one more source."""
        return Starts(np.vstack([self.thetas, thetas]), self.source + (source,) * len(thetas))


# --- sources of starts ----------------------------------------------------------------------------


def single_starts(sample: Sample, n_elemental: int, rng: np.random.Generator) -> Starts:
    """Make starts for one component from a sample of rows."""
    all_rows = weighted_fit(sample.Z, sample.y, sample.weights)
    starts = Starts(all_rows[None, :], ("least squares",))
    starts = starts.and_also(reweighted(sample, all_rows)[None], "reweighted")
    if n_elemental:
        starts = starts.and_also(elemental(sample, n_elemental, rng), "elemental")
    return starts


def reweighted(sample: Sample, theta: Floats) -> Floats:
    """Reweight least squares again and again, with Cauchy's weights: rows that fit well count."""
    for _ in range(MODEL.rounds):
        squares = (sample.y - sample.Z @ theta) ** 2
        typical = float(np.median(squares))
        if typical <= 0:
            break
        theta = weighted_fit(sample.Z, sample.y, sample.weights / (1 + squares / typical))
    return theta


def elemental(sample: Sample, count: int, rng: np.random.Generator) -> Floats:
    """Fit random subsets of as many rows as coefficients.

    Rows are drawn until they determine every coefficient that the sample determines: 0/1 columns
    make many small subsets degenerate, so a degenerate subset is filled up with further rows.
    """
    n_rows, p = sample.Z.shape
    size = min(p, n_rows)
    picked = np.stack([rng.permutation(n_rows)[: min(2 * p, n_rows)] for _ in range(count)])
    thetas = np.empty((count, p))
    for i, rows in enumerate(picked):
        Z = sample.Z[rows[:size]]
        if np.linalg.matrix_rank(Z) < p:
            Z, rows = sample.Z[rows], rows
        thetas[i] = np.linalg.lstsq(Z, sample.y[rows[: Z.shape[0]]], rcond=None)[0]
    return thetas


# --- the search -----------------------------------------------------------------------------------

SolverMaker = Callable[[Frame, int, float], Solver]


@dataclass(frozen=True)
class Single:
    """One component on all rows, in standardised units."""

    run: Run
    follower: Follower
    mass: float
    source: str
    share: float
    scale: float | None
    evidence: float | None


@dataclass(frozen=True)
class _Line:
    """A line of the model with one component, in standardised units."""

    theta: Floats
    scale: float
    share: float


def find_single(
    engine: Engine,
    mass: float | None,
    *,
    given: Floats | None,
    n_starts: int,
    seed: int,
    max_iter: int,
    tol: float,
    make_solver: SolverMaker,
) -> Single:
    """Search for the best component; ``mass`` None means that the data decide how much to keep.

    Parameters
    ----------
    given : ndarray of shape (starts, p), optional
        The user's starts, standardised; they are tried beside the others.
    n_starts : int
        Elemental subsets to try.
    """
    problem = engine.problem
    rng = np.random.default_rng(seed)
    first_rows = max(SEARCH.first_rows, SEARCH.rows_per_coefficient * problem.n_columns)
    nested = _nested_sizes(int(np.ceil(problem.mass)), first_rows)
    asked, largest = nested[-1], engine.sample(nested[-1], seed)
    # Repeated rows are drawn once: there may be fewer than asked for.
    nested = sorted({min(rows, largest.y.size) for rows in nested})
    stages = [_first_rows(largest, rows, problem.counts) for rows in nested]
    sample = Sample(largest.Z[: nested[0]], largest.y[: nested[0]], largest.weights[: nested[0]])
    starts = single_starts(sample, n_starts, rng)
    if given is not None:
        starts = starts.and_also(given, "given")
    evidence, minority = None, None
    if mass is None:
        evidence, minority = _asked(sample, starts, intercept=problem.fit_intercept)
    if minority is not None:
        share, theta, source = minority.share, minority.theta, "model"
    else:
        share = majority(problem) if mass is None else mass / problem.mass
        whole = len(nested) == 1 and (largest.y.size < asked or asked >= problem.mass)
        theta, source = _promising(stages[0], starts, share, final=whole)
        if whole:
            theta = _hop(stages[0], sample, theta, share, rng)
    for stage in stages[1:]:
        runs, _ = concentrate(stage, theta[None], _sample_mass(stage, share), tol=SEARCH.converged)
        theta = runs[0].theta
    if mass is None:
        mass = _sample_mass(engine, share)
    solver = make_solver(problem, 1, mass)
    runs, follower = concentrate(
        engine, theta[None], mass, solver=solver, max_iter=max_iter, tol=tol, polish=True
    )
    scale = None if minority is None else minority.scale
    return Single(runs[0], follower, mass, source, share, scale, evidence)


def majority(problem: Frame) -> float:
    """Return the share of rows whose trimmed fit has the highest breakdown point."""
    return min(1.0, (problem.mass + problem.n_columns + 1) / (2 * problem.mass))


def _asked(sample: Sample, starts: Starts, *, intercept: bool) -> tuple[float, _Line | None]:
    """Ask the model with one component: what a line explains beyond a constant, and whose line.

    Returns the evidence, and the line if it is that of a minority and explains the rows better than
    any line of a majority does.
    """
    rows, units = whitened_rows(sample, intercept=intercept)
    fits = _lines(rows, units, starts)
    best = fits[0]
    evidence = best.score - score_of_constants(rows, best, more=0)
    most = [fit.score for fit in fits if fit.model.share[0] >= 0.5]
    enough = evidence >= REGIME_GAIN and best.score >= max(most, default=-np.inf) + REGIME_GAIN
    point = point_of(rows, best)
    # A line that most rows are near is no minority's, whatever else could explain them.
    near = np.abs(rows.y - rows.design @ point.coef[0]) <= CUTOFF * point.scale[0]
    if float(rows.weights @ near) >= 0.5 * rows.mass or not enough:
        return evidence, None
    theta, scale = units.back(point.coef)[0], float(point.scale[0]) * units.y_scale
    return evidence, _Line(theta, scale, float(point.share[0]))


def _lines(rows: Rows, units: Units, starts: Starts) -> list[Fitted]:
    """Fit the model with one component from many starts; best first."""
    coef = units.forth(starts.thetas)
    residuals = np.abs(rows.y - coef @ rows.design.T)
    near = int(SEARCH.nearest_share * (rows.n - 1))
    models = []
    for level in (near, rows.n // 2):
        scale = np.partition(residuals, level, axis=1)[:, level] * MAD_TO_DEVIATION
        scale = np.maximum(scale, rows.smallest_scale)
        models += [
            Parameters.point(c[None], s[None], np.array([0.5]), ("start",))
            for c, s in zip(coef, scale, strict=True)
        ]
    if rows.width > 0 and rows.n >= smallest_component(rows.width):
        found = hunt_one(rows)
        models += [] if found is None else [found]
    fits = [refit(rows, model, SEARCH.first_rounds) for model in models]
    fits.sort(key=lambda fit: -fit.score)
    fits = [refit(rows, fit.model, MODEL.rounds) for fit in fits[: SEARCH.promising]]
    # The line of all rows is judged too: it may be that of a majority.
    fits.append(refit(rows, models[len(starts.source)], MODEL.rounds))
    return sorted(fits, key=lambda fit: -fit.score)


def _nested_sizes(n_rows: int, first: int) -> list[int]:
    """Sizes of the samples, by the weight of the table: repeated rows change nothing."""
    if n_rows <= SEARCH.growth * first:
        return [n_rows]
    sizes = [first]
    while sizes[-1] * SEARCH.growth <= min(n_rows // 4, SEARCH.largest_sample):
        sizes.append(sizes[-1] * SEARCH.growth)
    return sizes


def _first_rows(sample: Sample, rows: int, counts: bool) -> MemoryEngine:
    """Rows in canonical order: a shorter piece of a draw is itself a draw."""
    return MemoryEngine(
        Problem.from_standardised(
            sample.Z[:rows], sample.y[:rows], sample.weights[:rows], counts=counts
        )
    )


def _sample_mass(engine: Engine, share: float) -> float:
    mass = share * engine.problem.mass
    return max(1.0, float(np.floor(mass + 1e-9))) if engine.problem.counts else mass


def _promising(engine: Engine, starts: Starts, share: float, *, final: bool) -> tuple[Floats, str]:
    """Concentrate all starts a little, the promising ones to the end; return the best.

    On a sample that is not the whole table (``final``), the end need not be the last row's.
    """
    mass = _sample_mass(engine, share)
    runs, _ = concentrate(engine, starts.thetas, mass, max_iter=SEARCH.first_rounds)
    order = _ranked(engine, runs, mass)[: SEARCH.promising]
    thetas = np.stack([runs[i].theta for i in order])
    runs, _ = concentrate(engine, thetas, mass, tol=0.0 if final else SEARCH.converged)
    best = int(_ranked(engine, runs, mass)[0])
    return runs[best].theta, starts.source[order[best]]


def _hop(
    engine: Engine, sample: Sample, theta: Floats, share: float, rng: np.random.Generator
) -> Floats:
    """Look for a better fixed point among fits to few of the rows that a good one keeps.

    A small table has many fixed points close to each other. Subsets of kept rows are mostly clean,
    so starts from them land near the optimum, and on all sides of it.
    """
    mass = _sample_mass(engine, share)
    runs, follower = concentrate(engine, theta[None, :], mass)
    best, kept = runs[0], follower.kept(0)[0]
    while True:
        good = Sample(sample.Z[kept], sample.y[kept], sample.weights[kept])
        runs, follower = concentrate(engine, elemental(good, SEARCH.starts, rng), mass)
        winner = int(_ranked(engine, runs, mass)[0])
        if not runs[winner].objective[-1] < best.objective[-1] * (1 - MODEL.gram_rounding):
            return best.theta
        best, kept = runs[winner], follower.kept(winner)[0]


def _ranked(engine: Engine, runs: list[Run], mass: float) -> NDArray[np.intp]:
    """Order runs by objective; what is below rounding is zero, and ties keep their order."""
    floors = engine.problem.residual_floor(np.stack([run.theta for run in runs]))
    objectives = np.array([run.objective[-1] for run in runs])
    return np.argsort(np.where(objectives <= mass * floors**2, 0.0, objectives), kind="stable")
