"""The last word on all rows: polish, trim, label.

EM gives every row its share in every component, so that hardly a clean row is lost to the fit.
Where a component has no noise at all, soft shares would only blur it: there ILTS (Algorithm 1) with
the component's own size has the exact fixed point. With a given keep fraction, rows are assigned
and the worst of them trimmed instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from regimix.engines.base import RowSums
from regimix.engines.memory import MemoryEngine
from regimix.engines.mixed import Law, best_components, mixture_sums
from regimix.engines.select import smallest
from regimix.problem import Problem
from regimix.trimmed.gram import NormalEquations
from regimix.trimmed.ilts import Solver, concentrate
from regimix.trimmed.reweight import truncation_factor
from regimix.trimmed.rows import kept_mass

__all__ = ["assign_and_trim", "label_rows", "make_exact", "polish"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# EM on all rows starts from a fit to a sample: a few rounds settle it.
POLISH_ROUNDS = 10
# A round that gains less than this per square root of the rows is the last.
POLISH_GAIN = 1e-3
# A component narrower than this share of the response has no noise to speak of.
NOISELESS = 1e-4
# Assignments settle in a few rounds; ties at the edge may go on for ever.
ASSIGN_ROUNDS = 50
# No noise level below this, in units of the standardised response.
SMALLEST_SCALE = 1e-9

SolverMaker = Callable[[Problem, int, float], Solver]


def polish(engine: MemoryEngine, law: Law, rounds: int = POLISH_ROUNDS) -> Law:
    """Run EM on all rows until a round gains next to nothing."""
    mass, last, gained = engine.problem.mass, -np.inf, np.inf
    for _ in range(rounds):
        found = mixture_sums(engine, law)
        before, gained = gained, found.log_gain - last
        if _left_to_gain(before, gained) < POLISH_GAIN * np.sqrt(mass):
            break
        last = found.log_gain
        fits = [
            _refit(law.thetas[j], law.scale[j], found.sums[j], found.size[j], found.square[j])
            for j in range(len(law.scale))
        ]
        law = replace(
            law,
            thetas=np.stack([theta for theta, _ in fits]),
            scale=np.array([scale for _, scale in fits]),
            share=np.minimum(found.size / mass, 1 - 1e-9),
        )
    return law


def _left_to_gain(before: float, gained: float) -> float:
    """Foresee what further rounds gain: EM closes in by the same factor every round."""
    if not np.isfinite(before) or gained >= before:
        return gained
    return gained**2 / (before - gained)


def _refit(
    theta: Floats, scale: float, sums: RowSums, size: float, square: float
) -> tuple[Floats, float]:
    """Solve one component's normal equations; a component of too few rows stays as it is."""
    if size <= theta.size + 1:
        return theta, scale
    normal = NormalEquations(theta.size)
    normal.refresh(sums)
    solution, _ = normal.solve(theta)
    step = solution - theta
    left = square - float(step @ (2 * sums.moment - sums.gram @ step))
    return solution, max(np.sqrt(max(left, 0.0) / (size - theta.size)), SMALLEST_SCALE)


def label_rows(engine: MemoryEngine, law: Law) -> Labels:
    """Give each row its likeliest component, -1 where the background is likelier."""
    labels, odds = best_components(engine, law)
    labels[odds < 0] = -1
    return labels


def make_exact(
    engine: MemoryEngine,
    law: Law,
    labels: Labels,
    make_solver: SolverMaker,
    max_iter: int,
    tol: float,
) -> tuple[Law, Labels]:
    """Finish components without noise by ILTS that keeps as many rows as each has."""
    thetas, scales, labels = law.thetas.copy(), law.scale.copy(), labels.copy()
    for j in np.flatnonzero(law.scale < NOISELESS):
        mass = _mass(engine.problem, labels == j)
        if mass <= thetas.shape[1]:
            continue
        solver = make_solver(engine.problem, 1, mass)
        runs, follower = concentrate(
            engine,
            thetas[j][None, :],
            mass,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            polish=True,
        )
        thetas[j] = runs[0].theta
        left = runs[0].objective[-1] / max(mass - thetas.shape[1], 1.0)
        scales[j] = max(np.sqrt(left), SMALLEST_SCALE)
        kept = follower.kept(0)[0]
        labels[(labels == j) & ~kept] = -1
        labels[kept & (labels == -1)] = j
    return replace(law, thetas=thetas, scale=scales), labels


def assign_and_trim(engine: MemoryEngine, law: Law, keep: float) -> tuple[Law, Labels]:
    """Assign rows to components, trim the worst, refit; until assignments stay.

    Exactly the given share of the rows belongs to components; the rest are outliers. The
    background's density is then the one at which trimming began, and scales are corrected for the
    trimmed tails, consistently at the normal law.
    """
    problem = engine.problem
    mass = kept_mass(keep, problem)
    labels, part = np.full(problem.n_rows, -2, dtype=np.int64), 0.0
    for _ in range(ASSIGN_ROUNDS):
        nearest, odds = best_components(engine, law)
        choice = smallest(-odds, mass, problem.weights)
        nearest[~choice.kept] = -1
        if np.array_equal(nearest, labels) and np.isclose(part, choice.boundary_weight):
            break
        labels, part = nearest, choice.boundary_weight
        weights = problem.weights
        if weights is not None and choice.boundary >= 0:
            weights = weights.copy()
            weights[choice.boundary] = choice.boundary_weight
        law = _refit_labelled(engine, law, labels, weights)
    if keep >= 1:
        return replace(law, log_background=-np.inf), labels
    factor = truncation_factor(float(ndtri((1 + keep) / 2)))
    law = replace(law, scale=law.scale * factor)
    _, odds = best_components(engine, law)
    edge = smallest(-odds, mass, problem.weights).threshold
    # If more is to be kept than fits, the edge is at a gross error, whose density is next to
    # nothing: a background as thin as that would let anything pass.
    return replace(law, log_background=law.log_background + max(-edge, 0.0)), labels


def _refit_labelled(
    engine: MemoryEngine, law: Law, labels: Labels, row_weights: Floats | None
) -> Law:
    """Fit each component to the rows that carry its label."""
    thetas, scales, shares = law.thetas.copy(), law.scale.copy(), law.share.copy()
    problem = engine.problem
    for j in range(len(scales)):
        rows = np.flatnonzero(labels == j)
        weights = None if row_weights is None else row_weights[rows]
        size = float(rows.size if weights is None else weights.sum())
        near = engine.residuals_of(rows, thetas[j])
        square = float(near @ (near if weights is None else near * weights))
        sums = engine.sums(rows, near, weights)
        thetas[j], scales[j] = _refit(thetas[j], scales[j], sums, size, square)
        shares[j] = max(size / problem.mass, 1e-12)
    return replace(law, thetas=thetas, scale=scales, share=np.minimum(shares, 1 - 1e-12))


def _mass(problem: Problem, rows: NDArray[np.bool_]) -> float:
    if problem.weights is None:
        return float(np.count_nonzero(rows))
    return float(problem.weights[rows].sum())
