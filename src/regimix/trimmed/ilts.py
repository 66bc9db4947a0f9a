"""Iterative least trimmed squares: Algorithm 1 (``alg:local``), one start or a batch.

Repeat: keep the rows of smallest residual, fit least squares to them. Neither half can raise the
trimmed objective, so a kept set that comes again is an exact fixed point, and the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Problem
from regimix.engines.base import Engine, Follower, Selected
from regimix.engines.memory import MemoryEngine
from regimix.threads import fitting_threads
from regimix.trimmed.fit import (
    Callback,
    Run,
    StopReason,
    TrimmedFit,
    check_limits,
    read_starts,
    to_fit,
    watcher,
)
from regimix.trimmed.gram import NormalEquations
from regimix.trimmed.rows import kept_mass

__all__ = ["MAX_ITER", "ExactSolver", "Solver", "concentrate", "ilts", "least_squares"]

Floats = NDArray[np.float64]

# ILTS settles in tens of rounds; hundreds mean that something is odd about the data.
MAX_ITER = 300


class Solver(Protocol):
    """The inner half of a round: the fit to the kept rows."""

    # Whether selections may look at undecided rows alone (the solver then knows the objective).
    narrow: bool

    def take(
        self, start: int, theta: Floats, selected: Selected, follower: Follower, /
    ) -> tuple[float, bool]:
        """Note a selection; return the objective and whether the start has settled."""
        ...

    def refit(self, start: int, theta: Floats, follower: Follower) -> tuple[Floats, int, int]:
        """Fit the kept rows from ``theta``; return new coefficients, rank and inner steps."""
        ...

    def polish(self, runs: Sequence[Run], follower: Follower) -> None:
        """Bring the coefficients of runs that have settled to full accuracy."""
        ...


def concentrate(
    engine: Engine,
    thetas: Floats,
    mass: float,
    *,
    solver: Solver | None = None,
    max_iter: int = MAX_ITER,
    tol: float = 0.0,
    watch: Callable[[int, Run, Selected], Any] | None = None,
    polish: bool = False,
) -> tuple[list[Run], Follower]:
    """Run Algorithm 1 from a batch of starts that keep the same mass, in standardised units.

    Parameters
    ----------
    thetas : ndarray of shape (starts, p)
    solver : Solver, optional
        Default: exact least squares.
    watch : callable, optional
        Told of every round of every start; a true answer stops them all.
    polish : bool
        Whether to bring the results to full accuracy, at the cost of one more pass.

    Returns
    -------
    runs : list of Run
    follower : Follower
        Knows the kept rows of each run.
    """
    solver = solver or ExactSolver(len(thetas), thetas.shape[1], mass)
    follower = engine.follow(len(thetas), mass, narrow=solver.narrow)
    runs = [Run(theta) for theta in thetas]
    with fitting_threads(engine.problem.n_columns):
        _make_rounds(runs, follower, solver, max_iter, tol, watch)
        if polish:
            solver.polish(runs, follower)
    return runs, follower


def _make_rounds(
    runs: list[Run],
    follower: Follower,
    solver: Solver,
    max_iter: int,
    tol: float,
    watch: Callable[[int, Run, Selected], Any] | None,
) -> None:
    """Select and refit, all starts that have not stopped together."""
    active = list(range(len(runs)))
    for iteration in range(max_iter + 1):
        selections = follower.select(np.stack([runs[i].theta for i in active]), active)
        for i, selected in zip(active, selections, strict=True):
            _note(runs[i], *solver.take(i, runs[i].theta, selected, follower), tol)
            if watch is not None and watch(i, runs[i], selected):
                runs[i].stopped = "callback"
        if any(runs[i].stopped == "callback" for i in active):
            _stop_all(runs, active, "callback")
        active = [i for i in active if runs[i].stopped is None]
        if not active or iteration == max_iter:
            break
        for i in active:
            run = runs[i]
            run.theta, run.rank, steps = solver.refit(i, run.theta, follower)
            run.n_iter += 1
            run.n_steps.append(steps)
    _stop_all(runs, active, "max_iter")


def _note(run: Run, objective: float, settled: bool, tol: float) -> None:
    """Record a round; stop when the solver has settled, or at too small a gain."""
    if settled:
        run.stopped = "fixed point"
    elif tol > 0 and run.objective and run.objective[-1] - objective < tol * run.objective[-1]:
        run.stopped = "tol"
    run.objective.append(objective)


def _stop_all(runs: Sequence[Run], active: Sequence[int], reason: StopReason) -> None:
    for i in active:
        if runs[i].stopped is None:
            runs[i].stopped = reason


class ExactSolver:
    """Exact least squares on the kept rows, by normal equations that follow the moves."""

    narrow = True

    def __init__(self, n_starts: int, size: int, mass: float) -> None:
        self._normal = [NormalEquations(size) for _ in range(n_starts)]
        self._seen: list[set[int]] = [set() for _ in range(n_starts)]
        self._mass = mass

    def take(
        self, start: int, theta: Floats, selected: Selected, follower: Follower
    ) -> tuple[float, bool]:
        """Update the equations; a kept set seen before is a fixed point (or a cycle of ties)."""
        normal = self._normal[start]
        moved = follower.moved_sums(start)
        if moved is None:
            normal.refresh(follower.kept_sums(start, theta))
        else:
            normal.add(moved, selected.square_moved, selected.n_moved)
        if selected.objective is not None:
            normal.square = selected.objective
        settled = selected.signature in self._seen[start]
        self._seen[start].add(selected.signature)
        return max(normal.square, 0.0), settled

    def refit(self, start: int, theta: Floats, follower: Follower) -> tuple[Floats, int, int]:
        """Go to the least squares solution."""
        normal = self._normal[start]
        if normal.stale(self._mass):
            normal.refresh(follower.kept_sums(start, theta))
        solution, rank = normal.solve(theta, lambda: follower.kept_sums(start, theta))
        normal.shift(solution - theta)
        return solution, rank, 1

    def polish(self, runs: Sequence[Run], follower: Follower) -> None:
        """Make one more step from exact residuals on the final rows.

        The equations carry the rounding of their updates; the gradient summed afresh does not.
        This brings the coefficients to the accuracy of a solve from scratch, for one pass.
        """
        settled = [i for i, run in enumerate(runs) if run.stopped == "fixed point" and run.n_iter]
        if not settled:
            return
        moments = follower.gradients(settled, np.stack([runs[i].theta for i in settled]))
        for i, moment in zip(settled, moments, strict=True):
            self._normal[i].moment = moment
            runs[i].theta, _ = self._normal[i].solve(runs[i].theta)


def least_squares(engine: Engine) -> Floats:
    """Fit all rows: ILTS that keeps everything is done after one round."""
    zero = np.zeros((1, engine.problem.n_columns))
    runs, _ = concentrate(engine, zero, engine.problem.mass, max_iter=1)
    return runs[0].theta


def ilts(
    X: Any,
    y: Any,
    start: Any = None,
    *,
    keep: float,
    start_intercept: Any = 0.0,
    fit_intercept: bool = False,
    sample_weight: Any = None,
    max_iter: int = MAX_ITER,
    tol: float = 0.0,
    callback: Callback | None = None,
    chunk_rows: int | None = None,
) -> TrimmedFit | tuple[TrimmedFit, ...]:
    """Fit one linear component by iterative least trimmed squares (Algorithm 1).

    Parameters
    ----------
    X : array, data frame or memory map of shape (n, d)
    y : array of shape (n,)
    start : array of shape (d,) or (starts, d), optional
        Where to start, in user units; a matrix runs several starts together, faster than one by
        one and to the same results. Default: least squares on all rows.
    keep : float
        Fraction of rows to keep, the paper's tau, in (0, 1]; ``floor(keep * n)`` rows are kept,
        ties by row order.
    start_intercept : float or array of shape (starts,)
        Intercept of each start, with ``fit_intercept``.
    fit_intercept : bool
        Whether to fit an intercept. The paper's model has none.
    sample_weight : array of shape (n,), optional
        Whole numbers count repetitions of a row, other numbers are relative importances; a row of
        weight zero is absent.
    max_iter : int
        Most rounds to make.
    tol : float
        Stop when a round lowers the objective by less than this fraction. Zero: at an exact fixed
        point only.
    callback : callable, optional
        Called with a ``RoundState`` after each round; a true answer stops.
    chunk_rows : int, optional
        Rows to read at a time.

    Returns
    -------
    TrimmedFit, or tuple of TrimmedFit if ``start`` is a matrix
    """
    check_limits(max_iter, tol, chunk_rows)
    problem = Problem.from_arrays(X, y, sample_weight, fit_intercept=fit_intercept)
    mass = kept_mass(keep, problem)
    engine = MemoryEngine(problem, chunk_rows)
    if start is None:
        thetas = least_squares(engine)[None, :]
    else:
        thetas = read_starts(problem, start, start_intercept)
    solver = ExactSolver(len(thetas), thetas.shape[1], mass)
    runs, follower = concentrate(
        engine,
        thetas,
        mass,
        solver=solver,
        max_iter=max_iter,
        tol=tol,
        watch=None if callback is None else watcher(problem, callback, mass),
        polish=True,
    )
    fits = tuple(to_fit(problem, run, follower.kept(i)) for i, run in enumerate(runs))
    return fits if np.ndim(start) == 2 else fits[0]
