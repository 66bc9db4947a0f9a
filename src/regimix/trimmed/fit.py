"""What a trimmed fit returns, and the way between user units and standardised runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame
from regimix.engines.base import Selected
from regimix.errors import ParameterError

__all__ = [
    "Callback",
    "RoundState",
    "Run",
    "StopReason",
    "TrimmedFit",
    "check_limits",
    "read_starts",
    "to_fit",
    "watcher",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

StopReason = Literal["fixed point", "tol", "max_iter", "callback"]


@dataclass(frozen=True)
class RoundState:
    """What a callback is told after each round of each start.

    Attributes
    ----------
    start : int
        Which start of the batch, from 0.
    iteration : int
        Rounds made so far by this start.
    coef, intercept : ndarray of shape (d,), float
        Current coefficients in user units.
    objective : float
        Trimmed sum of squares in user units.
    n_kept : float
        Rows (or weight) kept.
    n_moved : int
        Rows that entered or left the kept set in this round.
    """

    start: int
    iteration: int
    coef: Floats
    intercept: float
    objective: float
    n_kept: float
    n_moved: int


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
    stopped : {"fixed point", "tol", "max_iter", "callback"}
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
        return self.stopped in ("fixed point", "tol")


@dataclass
class Run:
    """One start on its way, in standardised units."""

    theta: Floats
    objective: list[float] = field(default_factory=list)
    stopped: StopReason | None = None
    n_iter: int = 0
    rank: int = 0
    n_steps: list[int] = field(default_factory=list)


def check_limits(max_iter: Any, tol: Any, chunk_rows: Any = None) -> None:
    """Refuse limits that make no sense."""
    whole_numbers = [("max_iter", max_iter, 0)]
    if chunk_rows is not None:
        whole_numbers.append(("chunk_rows", chunk_rows, 1))
    for name, value, lowest in whole_numbers:
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < lowest:
            raise ParameterError(f"{name} must be a whole number from {lowest}; got {value!r}.")
    if isinstance(tol, bool) or not isinstance(tol, Real) or not 0 <= float(tol) < 1:
        raise ParameterError(f"tol must be a number from 0 to below 1; got {tol!r}.")


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


def watcher(problem: Frame, callback: Callback, mass: float) -> Callable[[int, Run, Selected], Any]:
    """Translate rounds into user units for a user's callback."""

    def watch(start: int, run: Run, selected: Selected) -> Any:
        coef, intercept = problem.to_user(run.theta)
        return callback(
            RoundState(
                start=start,
                iteration=run.n_iter,
                coef=coef,
                intercept=float(intercept),
                objective=run.objective[-1] * problem.target_scale**2,
                n_kept=mass,
                n_moved=selected.n_moved,
            )
        )

    return watch


def to_fit(problem: Frame, run: Run, kept: tuple[Bools, Floats | None]) -> TrimmedFit:
    """Translate a run into user units."""
    coef, intercept = problem.to_user(run.theta)
    assert run.stopped is not None
    return TrimmedFit(
        coef=coef,
        intercept=float(intercept),
        kept=kept[0],
        kept_weight=kept[1],
        objective=np.array(run.objective) * problem.target_scale**2,
        stopped=run.stopped,
        n_iter=run.n_iter,
        rank=run.rank,
        n_steps=tuple(run.n_steps),
    )
