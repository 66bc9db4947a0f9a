"""One component among many rows: from no information, then from more and more costly starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.search.model import (
    SCALE_FLOOR,
    Model,
    evaluate,
    refit,
    smallest_component,
    solve_normal,
)
from regimix.search.passing import Passing, passing, prepare
from regimix.search.rows import MAD_TO_DEVIATION, Rows
from regimix.search.subspace import SubspaceKind, find_subspace

__all__ = ["bulk_model", "hunt_one"]

Floats = NDArray[np.float64]

# Passes from no information: the share of rows they start with (a dominant component, one of
# many), and the noise they assume in units of the response.
ZERO_SHARE = np.array([0.5, 0.15, 0.15, 0.5])
ZERO_SPIKE = np.array([0.005, 0.02, 0.1, 0.4])
# A pass has found a component when its own error estimate is below this share of the variance.
FOUND = 0.1
# Rows per coefficient below which finds are doubted and stuck passes pursued.
FEW = 6.0
# A pass stuck above this relative error is nowhere near a component (pools of outliers: .6).
HOPELESS = 0.22
# Tries to get a stuck pass going: share of rows (the least likely) given up a step, steps, and
# noise in the order in which they are given up.
DECIMATIONS = ((0.03, 10, 0.0), (0.05, 8, 0.5), (0.05, 8, 1.0), (0.1, 4, 1.5))
# A pass on fewer rows is worth polishing when its error is below this share of the stuck one's.
DEEPER = 0.3
# Passes from random directions of the subspace: how many directions, passes, and how far out.
SPECTRAL_SIZE = 6
SPECTRAL_STARTS = 6
SPECTRAL_AMPLITUDE = 0.5
SPECTRAL_SHARE = 0.3
# Passes from random coefficients: how many, and the size of their predictions.
RANDOM_STARTS = 10
RANDOM_AMPLITUDE = 0.7
# Random subsets, drawn by likelihood, are tried last.
SUBSET = 0.85
SUBSET_TRIES = 8
# A component narrower than this share of the response ends the hunt; a wider may be a blur.
SHARP = 0.05
BELIEF_ROUNDS = 15
BULK_ROUNDS = 5


def hunt_one(
    rows: Rows,
    rng: np.random.Generator,
    kind: SubspaceKind | None,
    signal: float | None = None,
) -> Model | None:
    """Find one component among the rows; None if there seems to be none.

    Parameters
    ----------
    signal : float, optional
        Variance of a component's predictions, if others have shown what to expect.
    """
    result = _from_nothing(rows, ZERO_SHARE, ZERO_SPIKE)
    best = _best(rows, result)
    if rows.n > FEW * rows.width:
        if best is None and kind is not None and rows.features.shape[1]:
            best = _best(rows, _from_subspace(rows, rng, kind))
        return best
    # Few rows per coefficient: a pass may have interpolated, or stopped at a blur of component
    # and outliers.
    hunt = _Hunt(rows, signal)
    hunt.offer(best)
    if signal is not None and not hunt.sharp:
        result = _from_nothing(rows, ZERO_SHARE[:1], ZERO_SPIKE[:1], signal)
        hunt.offer(_best(rows, result))
    for stage in (_from_random, _decimations, _subsets):
        if hunt.sharp or result.error.min() > HOPELESS:
            break
        result = stage(hunt, result, rng)
    return hunt.best


@dataclass
class _Hunt:
    """The best find so far among few rows, every candidate polished on all of them."""

    rows: Rows
    signal: float | None = None
    score: float = 0.0
    best: Model | None = None

    def offer(self, model: Model | None) -> None:
        """Polish a candidate on the whole pool and keep it if it is the best."""
        if model is None:
            return
        fitted = refit(self.rows, model, BELIEF_ROUNDS)
        if fitted.model.m and fitted.score > self.score:
            self.best, self.score = fitted.model, fitted.score

    @property
    def sharp(self) -> bool:
        """Whether the best is so narrow that nothing better can be expected."""
        if self.best is None:
            return False
        size = float(np.sqrt(np.average(self.rows.y**2, weights=self.rows.weights)))
        return float(self.best.scale.max()) < SHARP * size


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


def _from_random(hunt: _Hunt, _: Passing, rng: np.random.Generator) -> Passing:
    """Pass from random coefficients."""
    rows = hunt.rows
    pool = prepare(rows, hunt.signal)
    coef = rng.standard_normal((RANDOM_STARTS, rows.width))
    coef *= RANDOM_AMPLITUDE * np.sqrt(pool.variance / rows.width)
    ones = np.ones(RANDOM_STARTS)
    result = passing(pool, coef @ rows.design.T, ones, 0.5 * ones, ZERO_SPIKE[0] * ones)
    hunt.offer(_best(rows, result))
    return result


def _decimations(hunt: _Hunt, result: Passing, rng: np.random.Generator) -> Passing:
    """Give up the least likely rows step by step, passing again on the others after each step."""
    rows = hunt.rows
    first = result.log_odds[int(np.argmin(result.error))]
    for share, steps, noise in DECIMATIONS:
        active, odds = np.arange(rows.n), first
        for _ in range(steps):
            order = np.argsort(odds + noise * rng.standard_normal(len(odds)))
            active = np.sort(active[order[int(np.ceil(share * len(active))) :]])
            if len(active) < smallest_component(rows.width):
                break
            part = rows.take(active)
            again = _from_nothing(part, ZERO_SHARE[:1], ZERO_SPIKE[:1], hunt.signal)
            odds = again.log_odds[0]
            hunt.offer(_best(part, again, DEEPER * float(result.error.min())))
            if hunt.sharp:
                return result
    return result


def _subsets(hunt: _Hunt, result: Passing, rng: np.random.Generator) -> Passing:
    """Pass on random subsets in which likely rows are more frequent."""
    rows = hunt.rows
    odds = result.log_odds[int(np.argmin(result.error))]
    for _ in range(SUBSET_TRIES):
        likely = np.argsort(-(odds + rng.gumbel(size=rows.n)))
        part = rows.take(np.sort(likely[: int(SUBSET * rows.n)]))
        if part.n >= smallest_component(rows.width) and not hunt.sharp:
            again = _from_nothing(part, ZERO_SHARE[:1], ZERO_SPIKE[:1], hunt.signal)
            hunt.offer(_best(part, again, DEEPER * float(result.error.min())))
    return result


def _best(rows: Rows, result: Passing, limit: float = FOUND) -> Model | None:
    """Return the pass that found a component and explains most, as a model of one component."""
    best, best_gain = None, 0.0
    least = smallest_component(rows.width)
    for b in range(len(result.error)):
        member = result.member[b] * rows.weights
        size = float(member.sum())
        if not result.error[b] < min(limit, FOUND) or size < least:
            continue
        residual = rows.y - rows.design @ result.coef[b]
        scale = np.sqrt(float(member @ residual**2) / max(size - rows.width, 1.0)) + SCALE_FLOOR
        share = np.array([min(size / rows.mass, 0.98)])
        model = Model(result.coef[b : b + 1], np.array([scale]), share, ("passing",))
        # Without charges: whether a component pays is for the whole model to say.
        gain = float(evaluate(rows, model).log_gain @ rows.weights)
        if best is None or gain > best_gain:
            best, best_gain = model, gain
    return best


def bulk_model(rows: Rows) -> Model:
    """Return one component through the bulk of the rows: least squares, then Cauchy weights."""
    root = np.sqrt(rows.weights)
    coef = solve_normal(rows.design * root[:, None], rows.y * root)[1]
    for _ in range(BULK_ROUNDS):
        residual = rows.y - rows.design @ coef
        scale = float(np.median(np.abs(residual))) * MAD_TO_DEVIATION + SCALE_FLOOR
        cauchy = root / np.sqrt(1.0 + (residual / (2.0 * scale)) ** 2)
        coef = solve_normal(rows.design * cauchy[:, None], rows.y * cauchy)[1]
    scale = float(np.median(np.abs(rows.y - rows.design @ coef))) * MAD_TO_DEVIATION + SCALE_FLOOR
    return Model(coef[None], np.array([scale]), np.array([0.9]), ("bulk",))
