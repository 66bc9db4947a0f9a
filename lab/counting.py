"""An engine that counts its work: multiplications and additions, not seconds.

What a solver asks of the rows is passed on to the engine in memory and priced by what it must
compute, whatever shortcuts the engine takes: so counts are the same on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Problem
from regimix.engines.base import Follower, RowSums, Selected
from regimix.engines.memory import MemoryEngine
from regimix.engines.selection import Keeper
from regimix.trimmed.gradient import GradientSolver
from regimix.trimmed.ilts import ExactSolver, Run, Solver, concentrate, kept_mass

__all__ = ["CountedRun", "CountingEngine", "counted_run", "gradient_solver"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Operations per row to find the smallest residuals; the estimate that GD-ILTS counts with too.
SELECTION = 16


class CountingEngine(MemoryEngine):
    """A MemoryEngine whose followers count their work.

    Parameters
    ----------
    engine : MemoryEngine
    updates : bool
        Whether normal equations may be updated by the rows that moved; without, as in the paper,
        they are summed afresh every round.
    """

    def __init__(self, engine: MemoryEngine, *, updates: bool = False) -> None:
        super().__init__(engine.problem, engine.chunk_rows)
        self.updates = updates
        self.work = 0.0

    def follow(self, n_starts: int, mass: float, *, narrow: bool = False) -> Follower:
        """Begin to follow starts; every selection looks at all rows."""
        del narrow  # late selections among few rows are a shortcut of ours, not of the paper
        return _CountingFollower(self, super().follow(n_starts, mass, narrow=False), mass)


class _CountingFollower(Follower):
    """Passes everything on, and adds what it costs."""

    def __init__(self, engine: CountingEngine, follower: Follower, mass: float) -> None:
        self._engine = engine
        self._follower = follower
        self._mass = mass
        self._moved = 0
        self._d = engine.problem.n_columns

    def select(self, thetas: Floats, starts: Sequence[int]) -> list[Selected]:
        """Multiply all rows once, and find the smallest."""
        self._engine.work += len(starts) * self._engine.problem.n_rows * (self._d + SELECTION)
        selections = self._follower.select(thetas, starts)
        self._moved = selections[0].n_moved
        return selections

    def moved_sums(self, start: int) -> RowSums | None:
        """Sum over the rows that moved, if updates are allowed."""
        sums = self._follower.moved_sums(start) if self._engine.updates else None
        if sums is not None:
            self._engine.work += self._moved * self._d * (self._d + 1)
        return sums

    def kept_sums(self, start: int, theta: Floats) -> RowSums:
        """Sum the normal equations of the kept rows, and solve them."""
        self._engine.work += self._mass * self._d * (self._d + 1) + self._d**3 / 3
        return self._follower.kept_sums(start, theta)

    def gradients(self, starts: Sequence[int], thetas: Floats) -> Floats:
        """Sum ``w z r`` over each start's kept rows."""
        self._engine.work += len(starts) * self._mass * self._d
        return self._follower.gradients(starts, thetas)

    def diagonal(self, start: int) -> Floats:
        """Sum ``w z^2`` over the kept rows."""
        self._engine.work += self._mass * self._d
        return self._follower.diagonal(start)

    def product(self, start: int, direction: Floats) -> Floats:
        """Multiply the kept rows with a vector, and back."""
        self._engine.work += 2 * self._mass * self._d
        return self._follower.product(start, direction)

    def keeper(self, start: int) -> Keeper:
        """Return an object that finds the kept rows of any block."""
        return self._follower.keeper(start)

    def kept(self, start: int) -> tuple[Bools, Floats | None]:
        """Return the kept rows."""
        return self._follower.kept(start)


@dataclass(frozen=True)
class CountedRun:
    """A run with its work.

    Attributes
    ----------
    run : Run
        In standardised units.
    work, error : ndarray of shape (rounds + 1,)
        Work done, and distance from the target, at the start and after each round.
    """

    run: Run
    work: Floats
    error: Floats

    def work_until(self, error: float) -> float:
        """Return the work after which the error stays below a value; infinite if it never does."""
        below = self.error <= error
        if not below[-1]:
            return float("inf")
        last_above = np.flatnonzero(~below)
        return float(self.work[last_above[-1] + 1] if last_above.size else self.work[0])


def counted_run(
    X: Floats,
    y: Floats,
    start: Floats,
    keep: float,
    target: Floats,
    *,
    make_solver: Callable[[Problem, float], Solver] | None = None,
    updates: bool = False,
    max_iter: int = 300,
) -> CountedRun:
    """Run ILTS, or GD-ILTS with a solver of its own, and count its work round by round."""
    problem = Problem.from_arrays(X, y, fit_intercept=False)
    mass = kept_mass(keep, problem)
    engine = CountingEngine(MemoryEngine(problem), updates=updates)
    solver = (make_solver or _exact)(problem, mass)
    work: list[float] = []
    errors: list[float] = []

    def watch(_start: int, run: Run, _selected: Selected) -> None:
        work.append(engine.work)
        coef, _ = problem.to_user(run.theta)
        errors.append(float(np.linalg.norm(coef - target)))

    thetas = problem.from_user(start[None, :], np.zeros(1))
    runs, _ = concentrate(engine, thetas, mass, solver=solver, max_iter=max_iter, watch=watch)
    return CountedRun(runs[0], np.array(work), np.array(errors))


def _exact(problem: Problem, mass: float) -> Solver:
    return ExactSolver(problem, 1, mass)


def gradient_solver(steps: int | str) -> Callable[[Problem, float], Solver]:
    """Return a maker of plain gradient solvers with so many steps a round, or "ideal"."""

    def make(problem: Problem, mass: float) -> Solver:
        return GradientSolver(problem, 1, mass, steps="ideal" if steps == "ideal" else int(steps))

    return make
