"""GD-ILTS: the gradient variant (Algorithm 3, ``alg:efficiency``), and conjugate gradients.

The least squares step becomes a few inner steps on the kept rows. Each costs one product with the
kept rows' Gram matrix, computed from the rows: ``nd`` instead of ``nd^2``, and no d x d matrix.

Proposition 15 (``lem:efficiency``) says how many steps a round should make: proportional to
``log(w / (lambda log 1/lambda))``, with ``w`` the cost of a selection in units of an inner step and
``lambda`` the current relative error. Neither constant nor error is known in use:

- the factor is one over the rate at which inner steps were last seen to shrink the gradient;
- ``lambda`` is extrapolated from the iterates: rounds that shrink their steps by a factor ``q``
  have ``q / (1 - q)`` times the last step still to go.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame
from regimix.engines.base import Follower, Selected
from regimix.errors import read_choice, read_count, read_number
from regimix.trimmed.ilts import (
    EPSILON,
    MAX_ITER,
    Callback,
    ExactSolver,
    Solver,
    SolverMaker,
    TrimmedFit,
    fit_starts,
    kept_mass,
    open_table,
    read_starts,
)

Floats = NDArray[np.float64]
Inner = Literal["gradient", "cg"]

# Without iterates to go by, the error is taken to be half of the coefficients.
FIRST_ERROR = 0.5
# Steps that shrink slower than this are not extrapolated further.
SLOWEST_SHRINKING = 0.9
# A round never makes more inner steps than this; the next selection is cheap against them.
MOST_STEPS = 200
# Kept rows unchanged and a gradient below this share of the residuals: settled.
SETTLED = 1e-10
# Power iteration ends when the largest eigenvalue moves by less than this share. A fixed step is
# stable up to twice the inverse eigenvalue, so a rough value is enough.
POWER_ACCURACY = 0.02
POWER_STEPS = 20
# Inner steps that shrink the gradient slower than this are counted as if they shrank it so much.
SLOWEST_RATE = 1e-3
# A gain left below this share of what there was is rounding: the rows' fit is solved.
SOLVED = 1e-12
# Rounds at which column lengths over the kept rows are measured.
MEASURED_ROUNDS = frozenset(4**k for k in range(8))


def ideal_steps(error: float, selection_cost: float, rate: float) -> int:
    """Count the inner steps of a round by Proposition 15 (``lem:efficiency``).

    ``error`` is the paper's lambda_t, the current distance from the component relative to its
    length; ``selection_cost`` its w, the cost of a selection in units of an inner step; ``rate``
    the logarithm by which one inner step shrinks the gradient.
    """
    error = min(max(error, 1e-300), FIRST_ERROR)
    gain = selection_cost / (error * math.log(1 / error))
    return int(min(MOST_STEPS, max(1, round(math.log(max(gain, 1.0)) / rate))))


@dataclass
class _Pace:
    """Estimates from the iterates of one start: error, shrinking rate, step size."""

    last_step: float = math.inf
    error: float = FIRST_ERROR
    rate: float = math.log(2.0)
    size: float | None = None
    diagonal: Floats | None = None
    n_moved: int = 0
    rounds: int = 0
    objective: float = math.inf
    # What further steps could still gain, in units of the objective.
    to_gain: float = math.inf

    def note_step(self, step: float) -> None:
        """Extrapolate the error from two successive relative step lengths."""
        if math.isfinite(self.last_step):
            shrinking = min(step / self.last_step, SLOWEST_SHRINKING) if self.last_step > 0 else 0.0
            self.error = step * shrinking / (1 - shrinking)
        self.last_step = step


@dataclass(eq=False)
class GradientSolver(Solver):
    """A few gradient or conjugate gradient steps on the kept rows.

    Columns are brought to equal length over the kept rows first (one pass, a vector): rows of high
    leverage that left the kept set must not make the others look flat. Lengths are measured again
    a few times, at longer and longer intervals, for the kept rows change less and less.
    """

    problem: Frame
    n_starts: int
    mass: float
    _: KW_ONLY
    inner: Inner = "gradient"
    steps: int | Literal["ideal"] = "ideal"
    step_size: float | Literal["auto"] = "auto"
    selection_cost: float | None = None

    def __post_init__(self) -> None:
        self._cost = self.selection_cost or _counted_cost(self.problem, self.mass)
        self._pace = [_Pace() for _ in range(self.n_starts)]

    def take(
        self, start: int, theta: Floats, selected: Selected, _follower: Follower
    ) -> tuple[float, bool]:
        """Note a selection; settled when the kept rows stay and nothing is left to gain."""
        assert selected.objective is not None
        pace = self._pace[start]
        pace.n_moved, pace.objective = selected.n_moved, selected.objective
        rounding = self.mass * float(self.problem.residual_floor(theta)) ** 2
        settled = pace.to_gain <= max(SETTLED**2 * selected.objective, rounding)
        return selected.objective, selected.n_moved == 0 and settled

    def refit(self, start: int, theta: Floats, follower: Follower) -> tuple[Floats, int, int]:
        """Make the round's inner steps."""
        pace = self._pace[start]
        pace.rounds += 1
        if pace.rounds in MEASURED_ROUNDS:
            diagonal = follower.diagonal(start)
            pace.diagonal = np.where(diagonal > 0, diagonal, 1.0)
            pace.size = None
        assert pace.diagonal is not None
        gradient: Floats = follower.gradients([start], theta[None, :])[0]
        begin = float(gradient @ (gradient / pace.diagonal))
        walk = self._conjugate if self.inner == "cg" else self._descend
        step, gradient, made = walk(start, gradient, self._count(pace), follower)
        pace.to_gain = float(gradient @ (gradient / pace.diagonal))
        length = math.sqrt(float(pace.diagonal @ (theta + step) ** 2))
        pace.note_step(math.sqrt(float(pace.diagonal @ step**2)) / max(length, 1e-300))
        if made and pace.to_gain < begin:
            left = max(pace.to_gain, SOLVED * begin)
            pace.rate = max(0.5 * math.log(begin / left) / made, SLOWEST_RATE)
        return theta + step, theta.size, made

    def _count(self, pace: _Pace) -> int:
        if self.steps != "ideal":
            return self.steps
        # The proposition's floor, log n / n, is where selections stop to depend on the error. Once
        # the rows stay, nothing is gained by selecting again soon.
        mass = self.problem.mass
        floor = math.log(max(mass, 2.0)) / mass if pace.n_moved else 0.0
        error = max(pace.error, floor)
        return ideal_steps(error, self._cost, pace.rate)

    def _descend(
        self, start: int, gradient: Floats, steps: int, follower: Follower
    ) -> tuple[Floats, Floats, int]:
        """Gradient steps of fixed size; the product that a step costs gives the next gradient."""
        pace = self._pace[start]
        assert pace.diagonal is not None
        if pace.size is None and self.step_size != "auto":
            pace.size = float(self.step_size)
        elif pace.size is None:
            top = _largest_eigenvalue(start, gradient, pace.diagonal, follower)
            pace.size = 1.0 / top if top > 0 else 0.0
        total = np.zeros_like(gradient)
        for made in range(steps):
            step = pace.size * gradient / pace.diagonal
            following = gradient - follower.product(start, step)
            now, then = (float(g @ (g / pace.diagonal)) for g in (gradient, following))
            if then >= now:
                if now <= EPSILON**2 * pace.objective:
                    return total, gradient, made
                pace.size /= 2  # too long for these rows: a shorter one from now on
                continue
            total += step
            gradient = following
        return total, gradient, steps

    def _conjugate(
        self, start: int, gradient: Floats, steps: int, follower: Follower
    ) -> tuple[Floats, Floats, int]:
        """Conjugate gradient steps: the best point of the space that as many products span."""
        diagonal = self._pace[start].diagonal
        assert diagonal is not None
        total = np.zeros_like(gradient)
        direction = gradient / diagonal
        square = first = float(gradient @ direction)
        for made in range(steps):
            if square <= EPSILON**2 * first:
                return total, gradient, made
            image = follower.product(start, direction)
            curvature = float(direction @ image)
            if not curvature > EPSILON * float(diagonal @ direction**2):
                return total, gradient, made
            size = square / curvature
            total += size * direction
            gradient = gradient - size * image
            previous, square = square, float(gradient @ (gradient / diagonal))
            direction = gradient / diagonal + (square / previous) * direction
        return total, gradient, steps


def _largest_eigenvalue(start: int, guess: Floats, diagonal: Floats, follower: Follower) -> float:
    """Largest eigenvalue of the kept rows' equilibrated Gram matrix, by power iteration."""
    root = np.sqrt(diagonal)
    vector = guess / root
    norm = float(np.linalg.norm(vector))
    # Something irregular beside the guess, which may lie along a smaller eigenvector.
    irregular = np.sin(np.arange(1.0, guess.size + 1) ** 2)
    vector = vector / norm if norm > 0 else np.zeros_like(guess)
    vector += 0.5 * irregular / np.linalg.norm(irregular)
    vector /= np.linalg.norm(vector)
    value = 0.0
    for _ in range(POWER_STEPS):
        image = follower.product(start, vector / root) / root
        previous, value = value, float(np.linalg.norm(image))
        if value == 0 or abs(value - previous) <= POWER_ACCURACY * value:
            break
        vector = image / value
    return value * (1 + POWER_ACCURACY)


def _counted_cost(problem: Frame, mass: float) -> float:
    """Cost of a selection in units of an inner step, by counted work.

    A selection multiplies all rows once and partitions n values (about 16 operations each); an
    inner step multiplies the kept rows twice. Counted, not timed: the same data give the same
    answer on any machine.
    """
    share = mass / problem.mass
    return (problem.n_columns + 16) / (2 * share * problem.n_columns)


def solver_maker(kind: str) -> SolverMaker:
    """Return what makes the solver of a kind: "exact", "gradient" or "cg"."""
    inner: Any = kind
    return ExactSolver if kind == "exact" else partial(GradientSolver, inner=inner)


def gd_ilts(
    X: Any,
    y: Any,
    start: Any = None,
    *,
    keep: float,
    inner: Inner = "gradient",
    steps: int | Literal["ideal"] = "ideal",
    step_size: float | Literal["auto"] = "auto",
    selection_cost: float | None = None,
    start_intercept: Any = 0.0,
    fit_intercept: bool = False,
    sample_weight: Any = None,
    max_iter: int = MAX_ITER,
    tol: float = 0.0,
    callback: Callback | None = None,
    chunk_rows: int | None = None,
) -> TrimmedFit | tuple[TrimmedFit, ...]:
    """Fit one linear component by the gradient variant of ILTS (GD-ILTS).

    For many columns: an inner step costs ``n d``, where exact least squares costs ``n d^2``.

    Parameters
    ----------
    X, y, start, keep, start_intercept, fit_intercept, sample_weight, max_iter, tol, callback, \
chunk_rows
        As for :func:`regimix.ilts`; without a start, all coefficients begin at zero.
    inner : {"gradient", "cg"}
        Gradient steps as in the paper, or conjugate gradients, which need fewer.
    steps : "ideal" or int
        Inner steps of a round, the paper's M_t: scheduled by the ideal stopping time
        (Proposition 15), or a fixed number.
    step_size : "auto" or float
        Gradient steps only, the paper's eta, in units in which the kept rows' columns have mean
        square one: one over the largest eigenvalue of their mean Gram matrix, by power iteration,
        or a given value (halved where it is too long to descend).
    selection_cost : float, optional
        The paper's w, the cost of a selection in units of an inner step. Default: counted from
        the shape of the data.

    Returns
    -------
    TrimmedFit, or tuple of TrimmedFit if ``start`` is a matrix
        ``n_steps`` has the inner steps of each round.
    """
    read_choice("inner", inner, get_args(Inner))
    if steps != "ideal":
        read_count("steps", steps, otherwise='"ideal" or ')
    if step_size != "auto":
        read_number("step_size", step_size, _is_positive, '"auto" or a positive number')
    if selection_cost is not None:
        read_number("selection_cost", selection_cost, _is_positive, "a positive number")
    engine = open_table(X, y, sample_weight, fit_intercept, max_iter, tol, chunk_rows)
    problem = engine.problem
    if start is None:
        thetas = np.zeros((1, problem.n_columns))
    else:
        thetas = read_starts(problem, start, start_intercept)
    mass, n_starts = kept_mass(keep, problem), len(thetas)
    how: dict[str, Any] = {"inner": inner, "steps": steps, "step_size": step_size}
    solver = GradientSolver(problem, n_starts, mass, selection_cost=selection_cost, **how)
    fits = fit_starts(engine, thetas, mass, solver, max_iter, tol, callback)
    return fits if np.ndim(start) == 2 else fits[0]


def _is_positive(value: float) -> bool:
    return 0 < value < math.inf
