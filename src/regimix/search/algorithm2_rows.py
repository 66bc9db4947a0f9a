"""``search="net"``: Algorithm 2 (``alg:global``) as the paper states it, from rows to a Law."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame
from regimix.engines.base import Engine
from regimix.errors import StopReason
from regimix.model.blocks import Labelling, Law
from regimix.model.labelling import Taken, label_squares
from regimix.model.rows import whitened_rows
from regimix.search.algorithm2 import MAX_STARTS, SolverMaker, peel
from regimix.search.algorithm2_outcome import Accepted, Peeled, PeelState
from regimix.search.checkpoint import Checkpoint
from regimix.search.net import SUBSPACE_ROWS, net_source
from regimix.search.selection import Attempt
from regimix.search.settings import Progress, Settings
from regimix.search.single import find_single
from regimix.search.subspace import Subspace, find_subspace
from regimix.trimmed.ilts import ExactSolver, Solver
from regimix.trimmed.reweight import consistent_scale

__all__ = ["NetFound", "net_rows", "search_net"]

Floats = NDArray[np.float64]

# Rows from which the number of directions is read off, per coefficient.
COUNT_ROWS = 300
# Without a tolerance, a residual within this many deviations of the sharpest single component is
# explained.
TOLERANCE_SCALES = 3.0
# No tolerance below this, in units of the standardised response.
SMALLEST_TOLERANCE = 1e-9


@dataclass(frozen=True)
class NetFound:
    """What Algorithm 2 found, in standardised units."""

    law: Law
    labelling: Labelling
    attempts: tuple[Attempt, ...]
    stopped: StopReason
    spectrum: Subspace


def search_net(
    engine: Engine,
    settings: Settings,
    make_solver: SolverMaker,
    checkpoint: Checkpoint | None = None,
) -> NetFound:
    """Lay a net, try its points, accept, remove, repeat."""
    problem = engine.problem
    size = settings.n_components or _certain_directions(engine, settings.seed)
    source = net_source(
        engine,
        min(size, problem.n_features),
        subspace=settings.subspace or "bounded",
        granularity=settings.granularity,
        seed=settings.seed,
    )
    tolerance = settings.tolerance
    delta = _tolerance(engine, settings) if tolerance is None else tolerance / problem.target_scale
    peeled = peel(
        engine,
        source,
        tolerance=delta,
        n_components=settings.n_components,
        taus=settings.taus,
        max_starts=settings.max_starts or MAX_STARTS,
        time_limit=settings.time_limit,
        callback=_report(settings, time.monotonic()),
        seed=settings.seed,
        n_jobs=settings.n_jobs,
        max_iter=settings.max_iter,
        tol=settings.tol,
        make_solver=make_solver,
        checkpoint=checkpoint,
    )
    labelling = Taken(tuple(accepted.near for accepted in peeled.accepted))
    if peeled.stopped in (StopReason.TIME_LIMIT, StopReason.CALLBACK):
        engine.hurry()
    return NetFound(
        _law(engine, labelling, peeled.accepted, settings.seed),
        labelling,
        _attempts(peeled),
        peeled.stopped,
        source.subspace,
    )


def net_rows(frame: Frame) -> int:
    """Return how many rows are drawn at most."""
    return max(SUBSPACE_ROWS, COUNT_ROWS) * frame.n_columns


def _certain_directions(engine: Engine, seed: int) -> int:
    """Count the directions that the response certainly depends on: a net needs to know."""
    sample = engine.sample(COUNT_ROWS * engine.problem.n_columns, seed)
    rows, _ = whitened_rows(sample, intercept=engine.problem.fit_intercept)
    rng = np.random.default_rng(seed)
    space = find_subspace(rows.features, rows.y, rows.weights, 1, "bounded", rng)
    return max(1, space.certain)


def _tolerance(engine: Engine, settings: Settings) -> float:
    """Read the noise off the best single component."""

    def exact(problem: Frame, n_starts: int, mass: float) -> Solver:
        return ExactSolver(n_starts, problem.n_columns, mass)

    single = find_single(
        engine,
        None,
        given=None,
        n_starts=32,
        seed=settings.seed,
        max_iter=settings.max_iter,
        tol=1e-6,
        make_solver=exact,
    )
    scale = single.scale
    if scale is None:
        run, total = single.run, engine.problem.mass
        scale = consistent_scale(run.objective[-1], single.mass, total, run.rank)
    return max(TOLERANCE_SCALES * scale, SMALLEST_TOLERANCE)


def _report(settings: Settings, begun: float) -> Callable[[PeelState], Any] | None:
    """Translate what peeling tells into what the user's callback expects."""
    if settings.callback is None:
        return None
    tell = settings.callback

    def report(state: PeelState) -> Any:
        elapsed = time.monotonic() - begun
        # Algorithm 2 counts rows; it has no score to tell.
        return tell(Progress("net", len(state.accepted), 0.0, elapsed, state.n_tried))

    return report


def _law(engine: Engine, labelling: Labelling, accepted: tuple[Accepted, ...], seed: int) -> Law:
    """Describe the accepted components: scale and share of the rows that each explains."""
    problem = engine.problem
    thetas = np.array([found.theta for found in accepted]).reshape(-1, problem.n_columns)
    shares = np.array([found.share for found in accepted])
    scales = np.ones(len(accepted))
    if accepted:
        mass, square = engine.fold(label_squares, labelling, thetas)
        spare = np.maximum(mass - problem.n_columns, 1.0)
        scales = np.maximum(np.sqrt(square / spare), SMALLEST_TOLERANCE)
    sample = engine.sample(COUNT_ROWS * problem.n_columns, seed)
    extent = float(np.ptp(sample.y)) or 1.0
    return Law(thetas, scales, shares, -float(np.log(extent)))


def _attempts(peeled: Peeled) -> tuple[Attempt, ...]:
    """Record what was accepted and what was tried in vain."""
    taken = [
        Attempt("peel", found.source, found.share, True, f"start {found.start + 1} accepted")
        for found in peeled.accepted
    ]
    refused = [
        Attempt("peel", "net", 0.0, False, f"share {tried.tau:.3g}: {tried.reason}")
        for tried in peeled.rejected
    ]
    return (*taken, *refused)
