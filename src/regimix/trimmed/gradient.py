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
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Follower, Selected
from regimix.engines.memory import MemoryEngine
from regimix.errors import ParameterError
from regimix.problem import Problem
from regimix.trimmed.fit import Callback, TrimmedFit, read_starts, to_fit, watcher
from regimix.trimmed.ilts import MAX_ITER, concentrate
from regimix.trimmed.rows import kept_mass

__all__ = ["GradientSolver", "gd_ilts", "ideal_steps"]

Floats = NDArray[np.float64]
Inner = Literal["gradient", "cg"]

# Without iterates to go by, the error is taken to be half of the coefficients.
FIRST_ERROR = 0.5
# Steps that shrink slower than this are not extrapolated further.
SLOWEST_SHRINKING = 0.9
# A round never makes more inner steps than this; the next selection is cheap against them.
MOST_STEPS = 200
# Kept rows unchanged and a step below this share of the coefficients: settled.
SETTLED = 1e-10
# Power iteration ends when the largest eigenvalue moves by less than this share. A fixed step is
# stable up to twice the inverse eigenvalue, so a rough value is enough.
POWER_ACCURACY = 0.02
POWER_STEPS = 20


def ideal_steps(error: float, selection_cost: float, rate: float) -> int:
    """Count the inner steps of a round by Proposition 15 (``lem:efficiency``).

    Parameters
    ----------
    error : float
        The paper's lambda_t: current distance from the component, relative to its length.
    selection_cost : float
        The paper's w: cost of a selection in units of an inner step.
    rate : float
        Logarithm by which one inner step shrinks the gradient.
    """
    error = min(max(error, 1e-300), FIRST_ERROR)
    gain = selection_cost / (error * math.log(1 / error))
    return int(min(MOST_STEPS, max(1, round(math.log(max(gain, 1.0)) / rate))))


@dataclass
class _Pace:
    """What the iterates of one start tell: step lengths, shrinking rate, step size."""

    last_step: float = math.inf
    error: float = FIRST_ERROR
    rate: float = math.log(2.0)
    top: float | None = None
    unmoved: bool = False

    def note_step(self, step: float, length: float) -> None:
        shrinking = min(step / self.last_step, SLOWEST_SHRINKING) if self.last_step > 0 else 0.0
        if math.isfinite(self.last_step):
            self.error = step * shrinking / (1 - shrinking) / max(length, 1e-300)
        self.last_step = step


class GradientSolver:
    """A few gradient or conjugate gradient steps on the kept rows."""

    narrow = False

    def __init__(
        self,
        problem: Problem,
        mass: float,
        n_starts: int,
        *,
        inner: Inner = "gradient",
        steps: int | Literal["ideal"] = "ideal",
        step_size: float | Literal["auto"] = "auto",
        selection_cost: float | None = None,
    ) -> None:
        self._mass = mass
        self._inner = inner
        self._steps = steps
        self._step_size = step_size
        self._floor = math.log(max(problem.mass, 2.0)) / problem.mass
        self._cost = selection_cost or _counted_cost(problem, mass)
        self._pace = [_Pace() for _ in range(n_starts)]

    def take(
        self, start: int, _theta: Floats, selected: Selected, _follower: Follower
    ) -> tuple[float, bool]:
        """Note a selection; settled when the kept rows stay and the last round hardly moved."""
        assert selected.objective is not None
        pace = self._pace[start]
        pace.unmoved = selected.n_moved == 0
        return selected.objective, pace.unmoved and pace.last_step <= SETTLED

    def refit(self, start: int, theta: Floats, follower: Follower) -> tuple[Floats, int, int]:
        """Make the round's inner steps."""
        pace = self._pace[start]
        steps = self._count(pace)
        gradient = follower.gradients([start], theta[None, :])[0]
        begin = float(np.linalg.norm(gradient))
        walk = self._conjugate if self._inner == "cg" else self._descend
        step, gradient, made = walk(start, gradient, steps, follower)
        length = float(np.linalg.norm(theta + step))
        pace.note_step(float(np.linalg.norm(step)) / max(length, 1e-300), 1.0)
        end = float(np.linalg.norm(gradient))
        if made and 0 < end < begin:
            pace.rate = max(math.log(begin / end) / made, 1e-3)
        return theta + step, theta.size, made

    def _count(self, pace: _Pace) -> int:
        if self._steps != "ideal":
            return self._steps
        # Once the rows stay, nothing is gained by selecting again soon: the floor of the
        # proposition, log n / n, is where selections stop to depend on the error.
        error = pace.error if pace.unmoved else max(pace.error, self._floor)
        return ideal_steps(error, self._cost, pace.rate)

    def _descend(
        self, start: int, gradient: Floats, steps: int, follower: Follower
    ) -> tuple[Floats, Floats, int]:
        """Gradient steps of fixed size; the product that a step costs gives the next gradient."""
        total = np.zeros_like(gradient)
        for made in range(steps):
            size = self._size(start, gradient, follower)
            step = size * gradient
            following = gradient - follower.product(start, step)
            if not np.linalg.norm(following) <= np.linalg.norm(gradient) * (1 + 1e-9):
                if self._step_size != "auto" or np.linalg.norm(gradient) < 1e-14 * self._mass:
                    return total, gradient, made
                self._pace[start].top = None  # the step was too long for these rows: measure again
                continue
            total += step
            gradient = following
        return total, gradient, steps

    def _size(self, start: int, gradient: Floats, follower: Follower) -> float:
        if self._step_size != "auto":
            return float(self._step_size) / self._mass
        pace = self._pace[start]
        if pace.top is None:
            pace.top = largest_eigenvalue(start, gradient, follower)
        return 1.0 / pace.top if pace.top > 0 else 0.0

    def _conjugate(
        self, start: int, gradient: Floats, steps: int, follower: Follower
    ) -> tuple[Floats, Floats, int]:
        """Conjugate gradient steps: the best point of the space that as many products span."""
        total = np.zeros_like(gradient)
        direction = gradient.copy()
        square = float(gradient @ gradient)
        for made in range(steps):
            image = follower.product(start, direction)
            curvature = float(direction @ image)
            if not curvature > np.finfo(np.float64).eps * float(direction @ direction):
                return total, gradient, made
            size = square / curvature
            total += size * direction
            gradient = gradient - size * image
            previous, square = square, float(gradient @ gradient)
            direction = gradient + (square / previous) * direction
        return total, gradient, steps


def largest_eigenvalue(start: int, guess: Floats, follower: Follower) -> float:
    """Largest eigenvalue of the kept rows' Gram matrix, by power iteration."""
    norm = float(np.linalg.norm(guess))
    vector = guess / norm if norm > 0 else np.full(guess.size, guess.size**-0.5)
    value = 0.0
    for _ in range(POWER_STEPS):
        image = follower.product(start, vector)
        previous, value = value, float(np.linalg.norm(image))
        if value == 0 or abs(value - previous) <= POWER_ACCURACY * value:
            break
        vector = image / value
    return value * (1 + POWER_ACCURACY)


def _counted_cost(problem: Problem, mass: float) -> float:
    """Cost of a selection in units of an inner step, by counted work.

    A selection multiplies all rows once and partitions n values (about 16 operations each); an
    inner step multiplies the kept rows twice. Counted, not timed: the same data give the same
    answer on any machine.
    """
    share = mass / problem.mass
    return (problem.n_columns + 16) / (2 * share * problem.n_columns)


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
        Gradient steps only, the paper's eta, in standardised units: one over the largest
        eigenvalue of the kept rows' mean Gram matrix, by power iteration, or a given value.
    selection_cost : float, optional
        The paper's w, the cost of a selection in units of an inner step. Default: counted from
        the shape of the data.

    Returns
    -------
    TrimmedFit, or tuple of TrimmedFit if ``start`` is a matrix
        ``n_steps`` has the inner steps of each round.
    """
    _check(inner, steps, step_size)
    problem = Problem.from_arrays(X, y, sample_weight, fit_intercept=fit_intercept)
    mass = kept_mass(keep, problem)
    engine = MemoryEngine(problem, chunk_rows)
    if start is None:
        thetas = np.zeros((1, problem.n_columns))
    else:
        thetas = read_starts(problem, start, start_intercept)
    solver = GradientSolver(
        problem,
        mass,
        len(thetas),
        inner=inner,
        steps=steps,
        step_size=step_size,
        selection_cost=selection_cost,
    )
    watch = None if callback is None else watcher(problem, callback, mass)
    runs, follower = concentrate(
        engine, thetas, mass, solver=solver, max_iter=max_iter, tol=tol, watch=watch
    )
    fits = tuple(to_fit(problem, run, follower.kept(i)) for i, run in enumerate(runs))
    return fits if np.ndim(start) == 2 else fits[0]


def _check(inner: str, steps: Any, step_size: Any) -> None:
    if inner not in ("gradient", "cg"):
        raise ParameterError(f'inner must be "gradient" or "cg"; got {inner!r}.')
    if steps != "ideal" and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise ParameterError(f'steps must be "ideal" or a whole number from 1; got {steps!r}.')
    if step_size != "auto" and not (isinstance(step_size, (int, float)) and step_size > 0):
        raise ParameterError(f'step_size must be "auto" or a positive number; got {step_size!r}.')
