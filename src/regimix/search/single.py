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
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq

from regimix.data.problem import Frame, Problem
from regimix.engines.base import Engine, Follower, Sample, Selected
from regimix.engines.memory import MemoryEngine
from regimix.engines.parts import PassStopped
from regimix.errors import StopReason
from regimix.model.em import REGIME_GAIN, Fitted, Parameters, late, point_of, refit
from regimix.model.numbers import MODEL
from regimix.model.rows import MAD_TO_DEVIATION, Rows, Units, weighted_fit, whitened_rows
from regimix.search.checkpoint import Checkpoint
from regimix.search.joint import smallest_component
from regimix.search.message_passing import hunt_one, reweighted
from regimix.search.numbers import SEARCH
from regimix.search.selection import (
    relation_given_values,
    score_of_constants,
    score_without_slopes,
)
from regimix.search.settings import Control, Stopped, answer_interrupts
from regimix.trimmed.ilts import EPSILON, Run, Solver, Watcher, concentrate
from regimix.trimmed.reweight import CUTOFF

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


def single_starts(sample: Sample) -> Starts:
    """Make starts for one component from a sample of rows, without chance."""
    all_rows = weighted_fit(sample.Z, sample.y, sample.weights)
    starts = Starts(all_rows[None, :], ("least squares",))
    return starts.and_also(reweighted(sample, all_rows)[None], "reweighted")


def elemental(sample: Sample, count: int, rng: np.random.Generator) -> Floats:
    """Fit random subsets of as many rows as coefficients.

    Rows are drawn until they determine every coefficient that the sample determines: 0/1 columns
    make many small subsets degenerate, so a degenerate subset is filled up with further rows.
    """
    n_rows, p = sample.Z.shape
    picked = [rng.permutation(n_rows)[: min(2 * p, n_rows)] for _ in range(count)]
    thetas = np.empty((count, p))
    for i, rows in enumerate(picked):
        if i and late():
            return thetas[:i]
        few = rows[:p]
        for some in (few, rows):
            # A pivoted QR factorisation tells the rank, and solves at once.
            theta, _, rank, _ = lstsq(
                sample.Z[some], sample.y[some], cond=EPSILON * p, lapack_driver="gelsy"
            )
            if rank == p:
                break
        thetas[i] = theta
    return thetas


# --- the search -----------------------------------------------------------------------------------

SolverMaker = Callable[[Frame, int, float], Solver]


@dataclass(frozen=True)
class Single:
    """One component on all rows, in standardised units."""

    run: Run
    follower: Follower | None  # None if the fit to all rows was stopped
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


@dataclass
class _Begun:
    """The best component so far, and how far its search has come; a checkpoint holds it."""

    theta: Floats
    source: str
    share: float
    scale: float | None = None
    evidence: float | None = None
    samples: int = 0  # that are done: those of the starts, and larger ones
    n_iter: int = 0  # rounds on all rows, with their objective
    objective: list[float] = field(default_factory=list)
    rank: int = 0


@dataclass
class _Pace:
    """Asks between steps and rounds whether the search is to go on; writes down what is found."""

    begun: _Begun
    control: Control | None
    saved: Checkpoint | None
    n_elemental: int
    n_starts: int = 0  # that were tried
    _last: tuple[str, int] = ("", -1)

    def check(self, stage: str) -> None:
        """Report progress; raise ``Stopped`` when the search is to end."""
        if self.control is not None:
            self.control.check(stage, 1, self.begun.evidence or 0.0, self.n_starts)
        if late():
            raise Stopped(StopReason.TIME_LIMIT)

    def rounds(self, stage: str) -> Watcher:
        """Return what checks once a round, however many starts there are."""

        def watch(_: int, run: Run, __: Selected) -> None:
            if run.stopped is None and self._last != (stage, run.n_iter):
                self._last = stage, run.n_iter
                self.check(stage)

        return watch

    def note(self) -> None:
        """Write the state down, if there is a file for that."""
        if self.saved is not None:
            self.saved.put("single", vars(self.begun))


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
    share: float | None = None,
    control: Control | None = None,
    saved: Checkpoint | None = None,
) -> Single:
    """Search for the best component; ``mass`` None means that the data decide how much to keep.

    Parameters
    ----------
    given : ndarray of shape (starts, p), optional
        The user's starts, standardised; they are tried beside the others.
    n_starts : int
        Elemental subsets to try.
    share : float, optional
        What a majority is; default: ``majority``.
    control : Control, optional
        Asked between rounds whether to go on. Where it says no, and after an interrupt, the best so
        far is returned; ``run.stopped`` has the reason. (A deadline ends the search in any case.)
    saved : Checkpoint, optional
        Where progress is written down; the search goes on from what it finds there.
    """
    problem = engine.problem
    rng = np.random.default_rng(seed)
    nested, whole, largest = _draw(engine, seed)
    stages = [_first_rows(largest, rows, problem.counts) for rows in nested]
    sample = Sample(largest.Z[: nested[0]], largest.y[: nested[0]], largest.weights[: nested[0]])
    starts = single_starts(sample)
    if given is not None:
        starts = starts.and_also(given, "given")
    share = share or majority(problem) if mass is None else mass / problem.mass
    begun = _Begun(starts.thetas[1], starts.source[1], share, rank=problem.n_columns)
    known = None if saved is None else saved.get("single")
    if known is not None:
        begun = _Begun(**known)
    pace = _Pace(begun, control, saved, n_starts)
    interrupts = nullcontext() if control is None else answer_interrupts()
    try:
        with interrupts:
            if begun.samples == 0:
                rows = problem, stages[0], sample
                _begin(pace, *rows, starts, rng, find=mass is None, whole=whole)
                begun.samples = 1
                pace.note()
            for stage in stages[begun.samples :]:
                kept, watch = _sample_mass(stage, begun.share), pace.rounds("samples")
                runs, _ = concentrate(
                    stage, begun.theta[None], kept, tol=SEARCH.converged, watch=watch
                )
                begun.theta = runs[0].theta
                begun.samples += 1
                pace.note()
            mass = _sample_mass(engine, begun.share) if mass is None else mass
            run, follower = _on_all_rows(engine, pace, mass, make_solver, max_iter, tol)
    except (Stopped, PassStopped, KeyboardInterrupt) as stop:
        if control is not None:
            engine.hurry()
        elif not isinstance(stop, Stopped):
            raise  # whoever asked for one component as a part of its own work answers
        reason = getattr(stop, "reason", StopReason.INTERRUPTED)
        run, follower = _as_it_is(engine, begun, mass, reason), None
    mass = _sample_mass(engine, begun.share) if mass is None else mass
    return Single(run, follower, mass, begun.source, begun.share, begun.scale, begun.evidence)


def _draw(engine: Engine, seed: int) -> tuple[list[int], bool, Sample]:
    """Draw nested samples: their sizes, whether there is one of all rows, and the largest."""
    problem = engine.problem
    first_rows = max(SEARCH.first_rows, SEARCH.rows_per_coefficient * problem.n_columns)
    # Sizes go by the weight of the table: repeated rows change nothing.
    n_rows, nested = int(np.ceil(problem.mass)), [first_rows]
    while nested[-1] * SEARCH.growth <= min(n_rows // 4, SEARCH.largest_sample):
        nested.append(nested[-1] * SEARCH.growth)
    if n_rows <= SEARCH.growth * first_rows:
        nested = [n_rows]
    asked, largest = nested[-1], engine.sample(nested[-1], seed)
    # Repeated rows are drawn once: there may be fewer than asked for.
    nested = sorted({min(rows, largest.y.size) for rows in nested})
    whole = len(nested) == 1 and (largest.y.size < asked or asked >= problem.mass)
    return nested, whole, largest


def _begin(
    pace: _Pace,
    frame: Frame,
    stage: MemoryEngine,
    sample: Sample,
    starts: Starts,
    rng: np.random.Generator,
    *,
    find: bool,
    whole: bool,
) -> None:
    """Find the best component of the smallest sample, and whose it is if that is to be found."""
    begun = pace.begun
    pace.check("starts")
    starts = starts.and_also(elemental(sample, pace.n_elemental, rng), "elemental")
    pace.n_starts = len(starts.source)
    minority = None
    if find:
        begun.evidence, minority = _asked(
            sample,
            starts,
            pace,
            intercept=frame.fit_intercept,
            counted=frame.weighting != "importances",
        )
    if minority is not None:
        begun.theta, begun.source = minority.theta, "model"
        begun.share, begun.scale = minority.share, minority.scale
        return
    begun.theta, begun.source = _promising(stage, starts, begun.share, pace, final=whole)
    if whole:
        begun.theta = _hop(stage, sample, begun.theta, begun.share, rng, pace)


def _on_all_rows(
    engine: Engine, pace: _Pace, mass: float, make_solver: SolverMaker, max_iter: int, tol: float
) -> tuple[Run, Follower | None]:
    """Complete the component on all rows."""
    begun = pace.begun
    first, path = begun.n_iter, tuple(begun.objective[:-1])
    check = pace.rounds("all rows")

    def watch(start: int, run: Run, selected: Selected) -> None:
        begun.theta, begun.n_iter = run.theta, first + run.n_iter
        begun.objective, begun.rank = [*path, *run.objective], run.rank or begun.rank
        if not isinstance(engine, MemoryEngine):
            # In memory, sums follow the rows that move, and begin with the first round again.
            pace.note()
        check(start, run, selected)

    solver, left = make_solver(engine.problem, 1, mass), max(max_iter - first, 0)
    runs, follower = concentrate(
        engine,
        begun.theta[None],
        mass,
        solver=solver,
        max_iter=left,
        tol=tol,
        watch=watch,
        polish=True,
    )
    run = runs[0]
    run.objective, run.n_iter, run.rank = begun.objective, begun.n_iter, begun.rank
    return run, follower


def _as_it_is(engine: Engine, begun: _Begun, mass: float | None, reason: StopReason) -> Run:
    """Answer with the best so far; only its objective may be missing."""
    if not begun.objective:
        mass = _sample_mass(engine, begun.share) if mass is None else mass
        selected = engine.follow(1, mass).select(begun.theta[None], [0])[0]
        begun.objective = [selected.objective or 0.0]
    return Run(begun.theta, begun.objective, reason, begun.n_iter, begun.rank)


def majority(problem: Frame) -> float:
    """Return the share of rows whose trimmed fit has the highest breakdown point."""
    return min(1.0, (problem.mass + problem.n_columns + 1) / (2 * problem.mass))


def _asked(
    sample: Sample, starts: Starts, pace: _Pace, *, intercept: bool, counted: bool
) -> tuple[float, _Line | None]:
    """Ask the model with one component: what a line explains beyond a constant, and whose line.

    Returns the evidence, and the line if it is that of a minority and explains the rows better than
    any line of a majority does.
    """
    rows, units = whitened_rows(sample, intercept=intercept)
    fits = _lines(rows, units, starts, pace)
    best = fits[0]
    constants = score_of_constants(rows, "normal")
    constants = max(constants, score_without_slopes(rows, best, constants))
    evidence = best.score - constants
    most = [fit for fit in fits if fit.model.share[0] >= 0.5]
    if evidence < REGIME_GAIN:
        counts = sample.weights if counted else rows.weights
        # Those that the line of most rows holds must show it, too: it is about these.
        held = counts * next(iter(most), best).posterior[0]
        each = (relation_given_values(rows, some)[1] for some in (counts, held))
        return min(each) or evidence, None
    rest = max((fit.score for fit in most), default=-np.inf)
    enough = best.score >= rest + REGIME_GAIN
    point = point_of(rows, best)
    # A line that most rows are near is no minority's, whatever else could explain them.
    near = np.abs(rows.y - rows.design @ point.coef[0]) <= CUTOFF * point.scale[0]
    if float(rows.weights @ near) >= 0.5 * rows.mass or not enough:
        return evidence, None
    theta, scale = units.back(point.coef)[0], float(point.scale[0]) * units.y_scale
    return evidence, _Line(theta, scale, float(point.share[0]))


def _lines(rows: Rows, units: Units, starts: Starts, pace: _Pace) -> list[Fitted]:
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
    fits = []
    for model in models:
        pace.check("starts")
        fits.append(refit(rows, model, SEARCH.first_rounds))
    fits.sort(key=lambda fit: -fit.score)
    fits = [refit(rows, fit.model, MODEL.rounds) for fit in fits[: SEARCH.promising]]
    # The line of all rows is judged too: it may be that of a majority.
    fits.append(refit(rows, models[len(starts.source)], MODEL.rounds))
    return sorted(fits, key=lambda fit: -fit.score)


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


def _promising(
    engine: Engine, starts: Starts, share: float, pace: _Pace, *, final: bool
) -> tuple[Floats, str]:
    """Concentrate all starts a little, the promising ones to the end; return the best.

    On a sample that is not the whole table (``final``), the end need not be the last row's.
    """
    mass, watch = _sample_mass(engine, share), pace.rounds("starts")
    runs, _ = concentrate(engine, starts.thetas, mass, max_iter=SEARCH.first_rounds, watch=watch)
    order = _ranked(engine, runs, mass)[: SEARCH.promising]
    thetas = np.stack([runs[i].theta for i in order])
    tol = 0.0 if final else SEARCH.converged
    runs, _ = concentrate(engine, thetas, mass, tol=tol, watch=watch)
    best = int(_ranked(engine, runs, mass)[0])
    return runs[best].theta, starts.source[order[best]]


def _hop(
    engine: Engine,
    sample: Sample,
    theta: Floats,
    share: float,
    rng: np.random.Generator,
    pace: _Pace,
) -> Floats:
    """Look for a better fixed point among fits to few of the rows that a good one keeps.

    A small table has many fixed points close to each other. Subsets of kept rows are mostly clean,
    so starts from them land near the optimum, and on all sides of it.
    """
    mass, watch = _sample_mass(engine, share), pace.rounds("starts")
    runs, follower = concentrate(engine, theta[None, :], mass, watch=watch)
    best, kept = runs[0], follower.kept(0)[0]
    while True:
        good = Sample(sample.Z[kept], sample.y[kept], sample.weights[kept])
        runs, follower = concentrate(engine, elemental(good, SEARCH.starts, rng), mass, watch=watch)
        winner = int(_ranked(engine, runs, mass)[0])
        if not runs[winner].objective[-1] < best.objective[-1] * (1 - MODEL.gram_rounding):
            return best.theta
        best, kept = runs[winner], follower.kept(winner)[0]


def _ranked(engine: Engine, runs: list[Run], mass: float) -> NDArray[np.intp]:
    """Order runs by objective; what is below rounding is zero, and ties keep their order."""
    floors = engine.problem.residual_floor(np.stack([run.theta for run in runs]))
    objectives = np.array([run.objective[-1] for run in runs])
    return np.argsort(np.where(objectives <= mass * floors**2, 0.0, objectives), kind="stable")
