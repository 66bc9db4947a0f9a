"""One component among many rows, by message passing: from no information, or from a subspace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regimix.model.em import Parameters, empty, evaluate, refit
from regimix.model.rows import MAD_TO_DEVIATION, Rows
from regimix.search.passing import Passing, passing, prepare
from regimix.search.subspace import SubspaceKind, find_subspace

__all__ = ["bulk_model", "hunt_one", "smallest_component"]

Floats = NDArray[np.float64]

# Passes from no information: the share of rows they start with (a dominant component, one of
# many), and the noise they assume in units of the response.
ZERO_SHARE = np.array([0.5, 0.15, 0.15, 0.5])
ZERO_SPIKE = np.array([0.005, 0.02, 0.1, 0.4])
# A pass has found a component when its own error estimate is below this share of the variance.
FOUND = 0.1
# Rows per coefficient below which a pass may have interpolated, and finds are doubted.
FEW = 6.0
# Passes from random directions of the subspace: how many directions, passes, and how far out.
SPECTRAL_SIZE = 6
SPECTRAL_STARTS = 6
SPECTRAL_AMPLITUDE = 0.5
SPECTRAL_SHARE = 0.3
# Rounds in which a doubted find is fitted before it is believed.
BELIEF_ROUNDS = 15
BULK_ROUNDS = 5
# Keeps normal equations of dependent rows solvable; far below any real curvature.
RIDGE = 1e-10


def hunt_one(
    rows: Rows,
    rng: np.random.Generator,
    kind: SubspaceKind | None,
    signal: float | None = None,
) -> Parameters | None:
    """Find one component among the rows; None if there seems to be none.

    Parameters
    ----------
    signal : float, optional
        Variance of a component's predictions, if others have shown what to expect.
    """
    best = _best(rows, _from_nothing(rows, ZERO_SHARE, ZERO_SPIKE))
    if rows.n > FEW * rows.width:
        if best is None and kind is not None and rows.features.shape[1]:
            best = _best(rows, _from_subspace(rows, rng, kind))
        return best
    finds = [best]
    if signal is not None:
        finds.append(_best(rows, _from_nothing(rows, ZERO_SHARE[:1], ZERO_SPIKE[:1], signal)))
    fits = [refit(rows, find, BELIEF_ROUNDS) for find in finds if find is not None]
    fits.append(evaluate(rows, empty(rows.width)))
    winner = max(fits, key=lambda fit: fit.score).model
    return winner if winner.m else None


def _from_nothing(rows: Rows, share: Floats, spike: Floats, signal: float | None = None) -> Passing:
    """Pass from predictions of zero."""
    start = np.zeros((len(share), rows.n))
    # Among many rows no pass interpolates: what has converged is a component.
    many = rows.n > FEW * rows.width
    return passing(prepare(rows, signal), start, np.ones(len(share)), share, spike, first_wins=many)


def _from_subspace(rows: Rows, rng: np.random.Generator, kind: SubspaceKind) -> Passing:
    """Pass from random directions of the subspace that the response depends on."""
    size = min(SPECTRAL_SIZE, rows.features.shape[1])
    space = find_subspace(rows.features, rows.y, rows.weights, size, kind, permutations=0)
    pool = prepare(rows)
    mix = rng.standard_normal((SPECTRAL_STARTS, space.basis.shape[1]))
    mix /= np.linalg.norm(mix, axis=1, keepdims=True)
    start = SPECTRAL_AMPLITUDE * np.sqrt(pool.variance) * (mix @ (rows.features @ space.basis).T)
    ones = np.ones(SPECTRAL_STARTS)
    error = (1 - SPECTRAL_AMPLITUDE**2) * ones
    return passing(pool, start, error, SPECTRAL_SHARE * ones, ZERO_SPIKE[1] * ones)


def _best(rows: Rows, result: Passing) -> Parameters | None:
    """Return the pass that found a component and explains most, as a model of one component."""
    best, best_score = None, -np.inf
    least = smallest_component(rows.width)
    for b in range(len(result.error)):
        member = result.member[b] * rows.weights
        size = float(member.sum())
        if not result.error[b] < FOUND or size < least:
            continue
        residual = rows.y - rows.design @ result.coef[b]
        scale = (
            np.sqrt(float(member @ residual**2) / max(size - rows.width, 1.0)) + rows.smallest_scale
        )
        share = np.array([min(size / rows.mass, 0.98)])
        model = Parameters.point(result.coef[b : b + 1], np.array([scale]), share, ("passing",))
        score = evaluate(rows, model).score
        if best is None or score > best_score:
            best, best_score = model, score
    return best


def smallest_component(width: int) -> float:
    """Return the fewest rows that a search looks for a component in; fewer are interpolated."""
    return 1.2 * width + 3.0


def bulk_model(rows: Rows) -> Parameters:
    """Return one component through the bulk of the rows: least squares, then Cauchy weights."""
    weights = rows.weights
    coef: Floats = np.zeros(rows.width)
    scale = 1.0
    for _ in range(BULK_ROUNDS + 1):
        block = rows.design * weights[:, None]
        gram = block.T @ rows.design
        gram.flat[:: rows.width + 1] += RIDGE * (
            float(np.trace(gram)) / max(rows.width, 1) + 1e-300
        )
        coef = np.asarray(np.linalg.solve(gram, block.T @ rows.y))
        residual = rows.y - rows.design @ coef
        scale = float(np.median(np.abs(residual))) * MAD_TO_DEVIATION + rows.smallest_scale
        weights = rows.weights / (1.0 + (residual / (2.0 * scale)) ** 2)
    return Parameters.point(coef[None], np.array([scale]), np.array([0.9]), ("bulk",))
