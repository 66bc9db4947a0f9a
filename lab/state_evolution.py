"""State evolution of message passing: of an ideal pass, and of those of the search.

``theory.state_evolution`` has the recursion of an ideal pass, which knows the share, the noise and
the law of the other rows. The passes of ``search/message_passing.py`` assume them, learn the share
on the way and are damped, so that more numbers than one must be followed: the part of the message
that each component has, the variance of the rest and its correlation with earlier rounds, and what
the pass itself believes. All of them follow from one scalar channel, drawn here many times.

For whitened features (XᵀX = nI, δ = n/d rows for each coefficient) a round is, in the notation of
that module: pseudo-responses r = μ + g/A with ∂r/∂μ = 0 on average. By Stein's lemma r is then
uncorrelated with all noise in μ, so r = Σ b_l z_l + ρ, where z_l = x·β_l and ρ is noise. The ridge
regression on r and the leave-one-out correction turn it into c(1 − 1/δ) Σ b_l z_l plus normal noise
of covariance c_s c_t (1/δ)(1 − 1/δ) E[ρ_s ρ_t] between rounds s and t, c = κ/(1 − κ/δ), κ the
shrinkage of the ridge.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regimix.errors import ParameterError, read_count
from regimix.search.message_passing import Pool, _round, _site, _State, _tilt
from regimix.search.numbers import SEARCH
from regimix.theory.definitions import fraction, positive
from regimix.theory.state_evolution import information

__all__ = ["measured_errors", "passing_errors", "predicted_errors"]

Floats = NDArray[np.float64]

# Most rounds of the ideal recursion, and the change at which it has ended.
ROUNDS, SETTLED = 2000, 1e-7


def passing_errors(
    rows_per_coefficient: float,
    share: float,
    *,
    noise: float = 0.0,
    others: float = 1.0,
    rounds: int | None = None,
) -> Floats:
    """Predict the error of Bayes-optimal message passing, round by round.

    Mean squared errors of the predictions x·β, as shares of their variance: one at first, then one
    number for each round; by default until they settle.

    Parameters
    ----------
    rows_per_coefficient : float
        δ = n/d, counting all rows, those of the component and the others.
    share : float
        p, the component's share of the rows.
    noise : float, default=0.0
        Standard deviation of the component's noise, over that of its predictions x·β.
    others : float, default=1.0
        Standard deviation of the other rows' responses (a normal law), in the same unit.
    rounds : int, optional
    """
    delta = positive("rows_per_coefficient", rows_per_coefficient)
    p, width = fraction("share", share), positive("others", others)
    if not 0 <= noise < math.inf:
        raise ParameterError(f"noise must be 0 or more, and finite; got {noise!r}.")
    most = ROUNDS if rounds is None else read_count("rounds", rounds, 0)
    errors = [1.0]
    for _ in range(most):
        errors.append(1 / (1 + delta * information(errors[-1], p, float(noise), width)))
        if rounds is None and errors[-2] - errors[-1] < SETTLED * errors[-2]:
            break
    return np.array(errors)


def _first(pool: Pool) -> _State:
    """Return the state of the first of the passes that begin without information."""
    n, width = pool.rotated.shape
    share, noise = 0.5, SEARCH.zero_noise[0]
    return _State(
        mean=np.zeros((1, n)),
        variance=np.full((1, n), pool.variance),
        log_share=np.log([share / (1 - share)]),
        coef=np.zeros((1, width)),
        level=np.ones(1),
        noise=np.array([noise**2]),
    )


def measured_errors(pool: Pool, predictions: Floats, rounds: int) -> Floats:
    """Run a pass from nothing; return its errors, over the variance that it assumes, by round.

    ``predictions`` are the true x·β of the rows, (n,).
    """
    state, squares, errors = _first(pool), np.square(pool.rotated), []
    for t in range(rounds):
        state, _, _ = _round(pool, squares, state, first=t == 0)
        errors.append(float(np.mean((state.mean[0] - predictions) ** 2)) / pool.variance)
    return np.array(errors)


def predicted_errors(
    pool: Pool,
    predictions: Floats,
    y: Floats,
    rows_per_coefficient: float,
    rounds: int,
    rng: np.random.Generator,
    *,
    damping: float = SEARCH.damping,
) -> Floats:
    """Predict the errors of ``measured_errors`` from draws of the scalar channel.

    Parameters
    ----------
    pool : Pool
        Only the variance that a pass assumes and its law of the other rows are taken from it.
    predictions : ndarray of shape (N, m)
        Draws of x·β for every component, the one that is looked for first.
    y : ndarray of shape (N,)
        A response drawn with each.
    """
    draws, delta = len(y), rows_per_coefficient
    order = np.argsort(pool.y)
    channel = replace(
        pool,
        rotated=np.zeros((draws, 1)),
        y=y,
        weights=np.ones(draws),
        log_density=np.interp(y, pool.y[order], pool.log_density[order]),
    )
    state, size = _first(channel), np.mean(predictions**2, axis=0)
    mean, variance = state.mean[0], pool.variance
    left: list[Floats] = []  # c ρ of every round so far
    noises: list[Floats] = []
    errors = []
    for t in range(rounds):
        member, _, force, curvature = _tilt(channel, state)
        precision, site = _site(channel, state, force, curvature)
        part = site[0] @ predictions / draws / size
        kept = precision[0] * delta / (precision[0] * delta + 1 / pool.variance)
        factor = kept / (1 - kept / delta)
        left.append(factor * (site[0] - predictions @ part))
        noises.append(_next_noise(left, noises, (1 - 1 / delta) / delta, rng))
        new = 1.0 if t == 0 else damping
        fresh = predictions @ part * (factor * (1 - 1 / delta)) + noises[-1]
        believed = min(1 / (precision[0] * (delta - 1) + 1 / pool.variance), 4 * pool.variance)
        mean, variance = (1 - new) * mean + new * fresh, (1 - new) * variance + new * believed
        belong = np.clip(member.mean(), SEARCH.tail, 1 - SEARCH.tail)
        log_share = 0.8 * state.log_share + 0.2 * np.log(belong / (1 - belong))
        state = replace(
            state, mean=mean[None], variance=np.full((1, draws), variance), log_share=log_share
        )
        errors.append(float(np.mean((mean - predictions[:, 0]) ** 2)) / pool.variance)
    return np.array(errors)


def _next_noise(
    left: list[Floats], noises: list[Floats], scale: float, rng: np.random.Generator
) -> Floats:
    """Draw the noise of a round, correlated with that of the rounds before as it should be."""
    draws = len(left[-1])
    covariance = scale / draws * np.array([before @ left[-1] for before in left])
    fresh = rng.standard_normal(draws)
    if not noises:
        return np.asarray(np.sqrt(covariance[0]) * fresh)
    past = scale / draws * np.array([[a @ b for a in left[:-1]] for b in left[:-1]])
    ridge = 1e-12 * np.trace(past) * np.eye(len(past))
    weights = np.linalg.solve(past + ridge, covariance[:-1])
    rest = max(float(covariance[-1] - weights @ covariance[:-1]), 0.0)
    return np.asarray(weights @ np.array(noises) + np.sqrt(rest) * fresh)
