"""EM and alternating minimisation from random starts in batches, no sooner done than regimix.

Both are told m, and neither knows of outliers. The answer is the start of best objective:
likelihood for EM, summed squared residuals for alternating minimisation.
"""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.data import Floats
from benchmarks.recovery.cells import Cell
from benchmarks.recovery.judge import Found, from_design, with_ones
from benchmarks.recovery.sample import Sample

ROUNDS = 200
SETTLED = 1e-8  # relative gain of the best objective of a batch
LARGEST_BATCH = 32
# A batch that has not settled after this many times what regimix took, and this long, is judged
# as it stands: both are granted more than regimix, but not minutes.
PATIENCE_TIMES, PATIENCE_SECONDS = 4.0, 0.5
BATCH_NUMBERS = 4_000_000  # of the weighted copies of X that a batch holds at a time
RIDGE = 1e-10  # of the mean diagonal: keeps the equations of an emptied component solvable
SMALLEST_SCALE = 1e-4  # of the spread of y: a component on d rows has infinite likelihood
NORMAL_MAD = 0.6745

# From squared residuals (starts, m, n) to weights of the same shape and objectives (starts,),
# higher is better. ``smallest`` is the smallest variance; the state passes from round to round.
Step = Callable[[Floats, Floats | None, float], tuple[Floats, Floats, Floats]]


def expectation_maximisation(cell: Cell, sample: Sample, seed: int, budget: float) -> Found:
    """Fit a mixture of normal regressions by EM."""
    return _restart(cell, sample, seed, budget, _soft)


def alternating_minimisation(cell: Cell, sample: Sample, seed: int, budget: float) -> Found:
    """Give each row to the component that fits it best, and refit, in turns."""
    return _restart(cell, sample, seed, budget, _hard)


def _restart(cell: Cell, sample: Sample, seed: int, budget: float, step: Step) -> Found:
    began = time.process_time()
    rng = np.random.default_rng(seed)
    X, y = with_ones(sample.X, cell.fit_intercept), sample.y
    batch = int(np.clip(BATCH_NUMBERS // (cell.m * X.size), 1, LARGEST_BATCH))
    patience = max(PATIENCE_TIMES * budget, PATIENCE_SECONDS)
    best, best_objective, starts = None, -np.inf, 0
    while best is None or time.process_time() - began < budget:
        starting = _random_starts(X, y, (batch, cell.m), rng)
        coef, objectives = _run_batch(X, y, starting, step, began + patience)
        starts += batch
        winner = int(np.argmax(objectives))
        if best is None or objectives[winner] > best_objective:
            best, best_objective = coef[winner], objectives[winner]
    found = from_design(best, cell)
    return Found(found.coef, found.intercept, note=f"{starts} starts")


def _random_starts(
    X: Floats, y: Floats, shape: tuple[int, int], rng: np.random.Generator
) -> Floats:
    """Draw components whose predictions spread as widely as the bulk of y does."""
    spread = np.median(np.abs(y - np.median(y))) / NORMAL_MAD
    length = spread / np.sqrt(np.mean(np.einsum("ij,ij->i", X, X)))
    return length * rng.standard_normal((*shape, X.shape[1]))


def _run_batch(
    X: Floats, y: Floats, coef: Floats, step: Step, deadline: float
) -> tuple[Floats, Floats]:
    smallest = (SMALLEST_SCALE * float(y.std())) ** 2
    state, before = None, -np.inf
    for _ in range(ROUNDS):
        squares = (y - coef @ X.T) ** 2
        weights, objectives, state = step(squares, state, smallest)
        best = float(objectives.max())
        if best - before <= SETTLED * abs(best) or time.process_time() > deadline:
            break
        before = best
        coef = _weighted_fits(X, y, weights)
    return coef, objectives


def _weighted_fits(X: Floats, y: Floats, weights: Floats) -> Floats:
    """Solve a weighted least squares problem for each (start, component)."""
    weighted = weights[..., None, :] * X.T
    gram, moment = weighted @ X, weighted @ y
    diagonal = np.einsum("...jj->...j", gram)
    diagonal += RIDGE * (diagonal.mean(axis=-1, keepdims=True) + 1.0)
    return np.linalg.solve(gram, moment[..., None])[..., 0]


def _soft(squares: Floats, state: Floats | None, smallest: float) -> tuple[Floats, Floats, Floats]:
    """One E step; the state is the share and variance of each component."""
    if state is None:
        variance = np.median(squares.min(axis=1), axis=-1)[:, None] / NORMAL_MAD**2
        variance = np.maximum(variance, smallest) + np.zeros(squares.shape[:2])
        share = np.full(variance.shape, 1 / squares.shape[1])
    else:
        share, variance = state
    logs = np.log(share / np.sqrt(variance))[..., None] - 0.5 * squares / variance[..., None]
    top = logs.max(axis=1, keepdims=True)
    density = np.exp(logs - top)
    total = density.sum(axis=1, keepdims=True)
    weights = density / total
    objectives = (np.log(total) + top).sum(axis=(1, 2))
    size = weights.sum(axis=-1) + 1e-9
    variance = np.maximum((weights * squares).sum(axis=-1) / size, smallest)
    return weights, objectives, np.array([size / squares.shape[-1], variance])


def _hard(squares: Floats, _state: Floats | None, _smallest: float) -> tuple[Floats, ...]:
    nearest = squares.min(axis=1, keepdims=True)
    return (squares == nearest).astype(float), -nearest.sum(axis=(1, 2)), np.empty(0)
