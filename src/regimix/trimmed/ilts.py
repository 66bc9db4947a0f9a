"""Iterative least trimmed squares: Algorithm 1 (``alg:local``), one start or a batch.

Repeat: keep the rows of smallest residual, fit least squares to them. Neither half can raise the
trimmed objective, so a kept set that comes again is an exact fixed point, and the end.

From round to round few rows enter or leave the kept set, so the Gram matrix is corrected by those
rows instead of summed again. The equations are kept for the *next step*: ``gram @ step = moment``
with ``moment`` made of current residuals. Rounding in the Gram matrix therefore only slows
convergence a little; it does not move the fixed point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from regimix.data.problem import Frame, Problem
from regimix.engines.base import Engine, Follower, RowSums, Selected
from regimix.engines.memory import MemoryEngine
from regimix.engines.selection import ROUNDING
from regimix.errors import ParameterError, StopReason, read_count, read_number
from regimix.threads import fitting_threads

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# ILTS settles in tens of rounds; hundreds mean that something is unusual about the data.
MAX_ITER = 300
EPSILON = float(np.finfo(np.float64).eps)
# A row of high leverage that enters and leaves again leaves its rounding behind. When the Gram
# matrix has shrunk by this factor since it was summed afresh, it is summed afresh again.
SHRINK_LIMIT = 1e4
# The same after this many times the kept rows have moved: rounding adds up row by row.
TURNOVER_LIMIT = 64.0
# A direction whose share of the (equilibrated) Gram matrix is below this many roundings is empty.
RANK_ROUNDINGS = 16


@dataclass(frozen=True)
class RoundState:
    """The state of one start after a round, for callbacks, in user units."""

    start: int  # which of the batch, from 0
    iteration: int  # rounds made so far by this start
    coef: Floats  # (d,)
    intercept: float
    objective: float  # trimmed sum of squares
    n_kept: float  # rows (or weight)
    n_moved: int  # rows that entered or left the kept set in this round


Callback = Callable[[RoundState], Any]


@dataclass(frozen=True)
class TrimmedFit:
    """One trimmed regression, in user units.

    Attributes
    ----------
    coef : ndarray of shape (d,)
    intercept : float
        Zero when none was fitted.
    kept : ndarray of shape (n,), bool
        The rows that the fit rests on.
    kept_weight : ndarray of shape (n,) or None
        Their weights in the fit, if there were weights; one row may count in part.
    objective : ndarray of shape (n_iter + 1,)
        Trimmed sum of squares at the start and after each round; it never rises.
    stopped : StopReason
        "fixed point", "tol", "max_iter" or "callback".
    n_iter : int
        Rounds made.
    rank : int
        Rank of the kept rows; below the number of coefficients, the shortest solution is given.
    n_steps : tuple of int
        Inner steps of each round (gradient variant; one for exact least squares).
    """

    coef: Floats
    intercept: float
    kept: Bools
    kept_weight: Floats | None
    objective: Floats
    stopped: StopReason
    n_iter: int
    rank: int
    n_steps: tuple[int, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the fit settled by itself."""
        return self.stopped in (StopReason.FIXED_POINT, StopReason.TOL)


@dataclass
class Run:
    """The rounds of one start, in standardised units."""

    theta: Floats
    objective: list[float] = field(default_factory=list)
    stopped: StopReason | None = None
    n_iter: int = 0
    rank: int = 0
    n_steps: list[int] = field(default_factory=list)


# --- one batch of starts, in standardised units --------------------------------------------------


class Solver(ABC):
    """The inner half of a round: the fit to the kept rows."""

    # Whether selections may look at undecided rows alone (the solver then knows the objective).
    narrow: ClassVar[bool] = False

    @abstractmethod
    def take(
        self, start: int, theta: Floats, selected: Selected, follower: Follower, /
    ) -> tuple[float, bool]:
        """Note a selection; return the objective and whether the start has settled."""

    @abstractmethod
    def refit(self, start: int, theta: Floats, follower: Follower) -> tuple[Floats, int, int]:
        """Fit the kept rows from ``theta``; return new coefficients, rank and inner steps."""

    def polish(self, runs: Sequence[Run], follower: Follower) -> None:  # noqa: B027 - optional
        """Bring the coefficients of runs that have settled to full accuracy."""


SolverMaker = Callable[[Frame, int, float], Solver]  # of a table, a number of starts, a mass
Watcher = Callable[[int, Run, Selected], Any]  # of a start, its run so far, its last selection


def concentrate(
    engine: Engine,
    thetas: Floats,
    mass: float,
    *,
    solver: Solver | None = None,
    max_iter: int = MAX_ITER,
    tol: float = 0.0,
    watch: Watcher | None = None,
    polish: bool = False,
) -> tuple[list[Run], Follower]:
    """Run Algorithm 1 from a batch of starts (starts, p) that keep the same mass, standardised.

    The solver is exact least squares by default. ``watch`` is called after every round of every
    start; a true answer stops them all. ``polish`` brings the results to full accuracy, at the cost
    of one more pass. The follower that is returned has the kept rows of each run.
    """
    solver = solver or ExactSolver(engine.problem, len(thetas), mass)
    follower = engine.follow(len(thetas), mass, narrow=solver.narrow)
    runs = [Run(theta) for theta in thetas]
    active = list(range(len(runs)))
    with fitting_threads(engine.problem.n_columns):
        for iteration in range(max_iter + 1):
            selections = follower.select(np.stack([runs[i].theta for i in active]), active)
            enough = False
            for i, selected in zip(active, selections, strict=True):
                _note(runs[i], *solver.take(i, runs[i].theta, selected, follower), tol)
                if watch is not None and watch(i, runs[i], selected):
                    runs[i].stopped, enough = StopReason.CALLBACK, True
            active = [i for i in active if runs[i].stopped is None]
            if enough or not active or iteration == max_iter:
                break
            for i in active:
                run = runs[i]
                run.theta, run.rank, steps = solver.refit(i, run.theta, follower)
                run.n_iter += 1
                run.n_steps.append(steps)
        for run in runs:
            run.stopped = run.stopped or (StopReason.CALLBACK if enough else StopReason.MAX_ITER)
        if polish:
            solver.polish(runs, follower)
    return runs, follower


def _note(run: Run, objective: float, settled: bool, tol: float) -> None:
    """Record a round; stop when the solver has settled, or at too small a gain."""
    if settled:
        run.stopped = StopReason.FIXED_POINT
    elif tol > 0 and run.objective and run.objective[-1] - objective < tol * run.objective[-1]:
        run.stopped = StopReason.TOL
    run.objective.append(objective)


class ExactSolver(Solver):
    """Exact least squares on the kept rows, by normal equations that follow the moves."""

    narrow = True

    def __init__(self, problem: Frame, n_starts: int, mass: float) -> None:
        self._normal = [NormalEquations(problem.n_columns) for _ in range(n_starts)]
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
        fixed = StopReason.FIXED_POINT
        settled = [i for i, run in enumerate(runs) if run.stopped is fixed and run.n_iter]
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


# --- normal equations of the kept rows -----------------------------------------------------------


class NormalEquations:
    """Gram matrix, moment and sum of squares of the kept rows at the current coefficients."""

    def __init__(self, size: int) -> None:
        self.gram: Floats = np.zeros((size, size))
        self.moment: Floats = np.zeros(size)
        self.square = 0.0
        self._peak: Floats = np.zeros(size)
        self._turnover = 0

    def add(self, sums: RowSums, square: float, n_moved: int) -> None:
        """Account for rows that entered and left, with residuals at the current coefficients."""
        self.gram += sums.gram
        self.moment += sums.moment
        self.square += square
        self._turnover += n_moved
        np.maximum(self._peak, np.diag(self.gram), out=self._peak)

    def stale(self, n_kept: float) -> bool:
        """Say whether rounding may have built up so far that fresh sums are due."""
        shrunk = bool((self._peak > SHRINK_LIMIT * np.diag(self.gram)).any())
        return shrunk or self._turnover > TURNOVER_LIMIT * n_kept

    def refresh(self, sums: RowSums) -> None:
        """Start afresh from sums over all kept rows."""
        self.gram, self.moment = sums.gram.copy(), sums.moment.copy()
        self._peak = np.diag(self.gram).copy()
        self._turnover = 0

    def solve(
        self, theta: Floats, afresh: Callable[[], RowSums] | None = None
    ) -> tuple[Floats, int]:
        """Find the least squares solution on the kept rows, given the current coefficients.

        Returns it with its rank; if columns depend on each other, the shortest in standardised
        units. ``afresh`` sums over all kept rows again. It is called when columns seem to depend on
        each other: rounding left by updates must not be taken for a direction of its own.
        """
        if afresh is not None and self._turnover:
            diagonal = np.maximum(self.gram.diagonal(), np.finfo(np.float64).tiny)
            noise = float((self._peak / diagonal).max())
            solution = _solve_symmetric(self.gram, self.moment, noise)
            if solution is not None:
                return theta + solution, theta.size
            self.refresh(afresh())
        solution = _solve_symmetric(self.gram, self.moment)
        if solution is not None:
            return theta + solution, theta.size
        return _solve_shortest(self.gram, self.moment + self.gram @ theta)

    def shift(self, step: Floats) -> None:
        """Move to new coefficients: the same rows, with residuals smaller by ``z @ step``."""
        image = self.gram @ step
        self.square += float(step @ image - 2 * (step @ self.moment))
        self.moment -= image


def solved(sums: RowSums, theta: Floats) -> tuple[Floats, int]:
    """Return the least squares solution of rows whose sums are known, and its rank."""
    normal = NormalEquations(theta.size)
    normal.refresh(sums)
    return normal.solve(theta)


def factored(gram: Floats, noise: float = 1.0) -> tuple[Floats, Floats] | None:
    """Return Cholesky factors of a Gram matrix, and the lengths of its columns.

    Columns are brought to equal length first, so that units do not count as dependence. None if the
    matrix is not of full rank; it carries ``noise`` times the usual rounding.
    """
    diagonal = gram.diagonal()
    if not diagonal.size or not diagonal.min() > 0:
        return None
    length = np.sqrt(diagonal)
    scaled = gram / length / length[:, None]
    factor, info = lapack.dpotrf(scaled, lower=1)
    if info != 0:
        return None
    condition, _ = lapack.dpocon(factor, float(np.abs(scaled).sum(axis=0).max()), uplo="L")
    return None if condition <= RANK_ROUNDINGS * len(gram) * EPSILON * noise else (factor, length)


def _solve_symmetric(gram: Floats, moment: Floats, noise: float = 1.0) -> Floats | None:
    """Solve ``gram @ x = moment``; None if the matrix is not of full rank."""
    if (found := factored(gram, noise)) is None:
        return None
    factor, length = found
    solution, _ = lapack.dpotrs(factor, moment / length, lower=1)
    return np.asarray(solution / length)


def _solve_shortest(gram: Floats, moment: Floats) -> tuple[Floats, int]:
    """Solve a rank-deficient ``gram @ x = moment`` by its shortest solution, with the rank."""
    diagonal = np.diag(gram)
    length = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(gram / np.outer(length, length))
    largest = max(float(values.max(initial=0.0)), 1.0)
    usable = values > RANK_ROUNDINGS * moment.size * EPSILON * largest
    inverse = np.where(usable, 1.0 / np.where(usable, values, 1.0), 0.0)
    solution = (vectors @ (inverse * (vectors.T @ (moment / length)))) / length
    # What the rows leave open, in the original units: drop it.
    open_directions, _ = np.linalg.qr(vectors[:, ~usable] / length[:, None])
    solution -= open_directions @ (open_directions.T @ solution)
    return solution, int(np.count_nonzero(usable))


# --- in user units -------------------------------------------------------------------------------


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
    engine = open_table(X, y, sample_weight, fit_intercept, max_iter, tol, chunk_rows)
    if start is None:
        thetas = least_squares(engine)[None, :]
    else:
        thetas = read_starts(engine.problem, start, start_intercept)
    mass = kept_mass(keep, engine.problem)
    solver = ExactSolver(engine.problem, len(thetas), mass)
    fits = fit_starts(engine, thetas, mass, solver, max_iter, tol, callback, polish=True)
    return fits if np.ndim(start) == 2 else fits[0]


def open_table(
    X: Any, y: Any, weights: Any, fit_intercept: bool, max_iter: Any, tol: Any, chunk_rows: Any
) -> MemoryEngine:
    """Check the limits and the rows of a fit, and make an engine of them."""
    check_limits(max_iter, tol, chunk_rows)
    problem = Problem.from_arrays(X, y, weights, fit_intercept=fit_intercept)
    return MemoryEngine(problem, chunk_rows)


def fit_starts(
    engine: MemoryEngine,
    thetas: Floats,
    mass: float,
    solver: Solver,
    max_iter: int,
    tol: float,
    callback: Callback | None,
    *,
    polish: bool = False,
) -> tuple[TrimmedFit, ...]:
    """Run a solver from standardised starts; fits and callbacks are in user units."""
    problem = engine.problem
    unit = problem.target_scale**2

    def watch(i: int, run: Run, selected: Selected) -> Any:
        coef, intercept = problem.to_user(run.theta)
        square = run.objective[-1] * unit
        state = RoundState(i, run.n_iter, coef, float(intercept), square, mass, selected.n_moved)
        return None if callback is None else callback(state)

    limits: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "polish": polish}
    seen = None if callback is None else watch
    runs, follower = concentrate(engine, thetas, mass, solver=solver, watch=seen, **limits)
    fits = []
    for i, run in enumerate(runs):
        coef, intercept = problem.to_user(run.theta)
        path, steps = np.array(run.objective) * unit, tuple(run.n_steps)
        assert run.stopped is not None
        known = (coef, float(intercept), *follower.kept(i), path)
        fits.append(TrimmedFit(*known, run.stopped, run.n_iter, run.rank, steps))
    return tuple(fits)


def check_limits(max_iter: Any, tol: Any, chunk_rows: Any = None) -> None:
    """Refuse limits that make no sense."""
    read_count("max_iter", max_iter, 0)
    if chunk_rows is not None:
        read_count("chunk_rows", chunk_rows)
    read_number("tol", tol, lambda share: 0 <= share < 1, "a number from 0 to below 1")


def kept_mass(keep: Any, problem: Frame) -> float:
    """Turn a keep fraction into the mass of rows to keep.

    The paper's ``floor(tau n)`` rows; with weights the floor of ``tau`` times their sum if they are
    whole numbers (a weight of 3 equals three copies), that product itself otherwise.
    """
    try:
        share = 0.0 if isinstance(keep, bool | str) else float(keep)
    except (TypeError, ValueError):
        share = 0.0
    if not 0.0 < share <= 1.0:
        raise ParameterError(
            f"keep must be a fraction above 0 and at most 1; got {keep!r}. keep=0.75 trims the "
            "worst quarter of the rows."
        )
    mass = share * problem.mass
    if problem.counts:
        # 0.29 * 100 is 28.999999999999996 in floating point, and means 29.
        mass = float(math.floor(mass * (1 + ROUNDING)))
        if mass < 1:
            raise ParameterError(
                f"keep={keep!r} of {problem.mass:g} rows keeps no row at all; the smallest useful "
                f"value here is {1 / problem.mass:.3g}."
            )
    return mass


def read_starts(problem: Frame, start: Any, start_intercept: Any) -> Floats:
    """Check user starts and translate them into standardised coefficients, (starts, p)."""
    coef = np.atleast_2d(np.asarray(start, dtype=np.float64))
    if coef.ndim != 2 or coef.shape[1] != problem.n_features or not coef.shape[0]:
        raise ParameterError(
            f"start must have shape ({problem.n_features},) or (starts, {problem.n_features}), one "
            f"coefficient per column of X; got {np.shape(start)}."
        )
    intercept = np.asarray(start_intercept, dtype=np.float64)
    if intercept.ndim > 1 or intercept.size not in (1, coef.shape[0]):
        raise ParameterError(
            f"start_intercept must be one number or one per start ({coef.shape[0]}); got an array "
            f"of shape {intercept.shape}."
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ParameterError("start and start_intercept must be finite; got NaN or infinity.")
    return problem.from_user(coef, np.broadcast_to(intercept.ravel(), (coef.shape[0],)))
