"""ILTS along a growing keep fraction, scored by evidence: size and noise come from the data.

From a start, ILTS keeps slightly more rows than there are coefficients, then 1.2 times as many,
and so on, each time warm-started. Every fit on the way is judged by all rows
(``trimmed.evidence``); the best one is the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.engines.memory import MemoryEngine
from regimix.trimmed.evidence import Background, weigh_spikes
from regimix.trimmed.ilts import concentrate

__all__ = ["Grown", "grow", "unit_weights"]

Floats = NDArray[np.float64]

# With fewer rows than this times the coefficients, a fit says nothing about its rows.
FIRST_SIZE = 1.3
GROWTH = 1.2
# Rounds at each size: enough to follow the growth, the last size is polished anyway.
ROUNDS = 3
# From this many rows per coefficient on, evidence tells good starts from bad ones: the worse half
# of the starts is dropped at each size, down to a few.
JUDGED_FROM = 3.0
FEWEST_STARTS = 4


@dataclass(frozen=True)
class Grown:
    """The best fit met on the way from each start, best evidence first, standardised.

    Attributes
    ----------
    thetas : ndarray of shape (starts, p)
    share, scale, evidence : ndarray of shape (starts,)
    start : ndarray of int
        Which start each came from.
    """

    thetas: Floats
    share: Floats
    scale: Floats
    evidence: Floats
    start: NDArray[np.intp]


def grow(engine: MemoryEngine, thetas: Floats, background: Background) -> Grown:
    """Grow a component from each start; rows in memory."""
    n_starts, p = thetas.shape
    weights = unit_weights(engine)
    best = thetas.copy()
    share, scale = np.zeros(n_starts), np.ones(n_starts)
    evidence = np.full(n_starts, -np.inf)
    active = np.arange(n_starts)
    current = thetas.copy()
    for mass in _sizes(engine.problem.mass, p):
        runs, _ = concentrate(engine, current[active], mass, max_iter=ROUNDS)
        current[active] = np.stack([run.theta for run in runs])
        residuals = np.stack([engine.residuals(theta) for theta in current[active]])
        edge = _edge(residuals, weights, mass)
        spike = weigh_spikes(residuals, weights, background, edge, p)
        better = spike.evidence > evidence[active]
        winners = active[better]
        best[winners] = current[winners]
        share[winners], scale[winners] = spike.share[better], spike.scale[better]
        evidence[winners] = spike.evidence[better]
        if mass > JUDGED_FROM * p and active.size > FEWEST_STARTS:
            half = max(FEWEST_STARTS, active.size // 2)
            active = np.sort(active[np.argsort(-evidence[active], kind="stable")[:half]])
    order = np.argsort(-evidence, kind="stable")
    return Grown(best[order], share[order], scale[order], evidence[order], order)


def _sizes(mass: float, n_columns: int) -> list[float]:
    """Sizes from just above the number of coefficients to all rows."""
    size = min(np.ceil(max(FIRST_SIZE * n_columns, n_columns + 1)), mass)
    sizes = []
    while size < mass:
        sizes.append(float(size))
        size = np.ceil(size * GROWTH)
    return [*sizes, mass]


def _edge(residuals: Floats, weights: Floats, mass: float) -> Floats:
    """Size of the residual at which each start's kept mass is full (weights apart)."""
    count = int(min(max(1, round(mass / weights.sum() * weights.size)), weights.size))
    return np.asarray(np.partition(np.abs(residuals), count - 1, axis=1)[:, count - 1])


def unit_weights(engine: MemoryEngine) -> Floats:
    """Weights of mean one: evidence counts distinct rows, for copies of a row say nothing new.

    (Through a few copied rows a plane can be laid exactly, and copies would pass for proof.)
    """
    weights = engine.problem.weights
    if weights is None:
        return np.ones(engine.problem.n_rows)
    return np.asarray(weights * (weights.size / weights.sum()))
