"""One component among many rows, by message passing in all dimensions.

Approximate message passing tracks, for a batch of starts at once, the coefficients, their error and
which rows belong to the component. It begins without any information, or in a subspace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Sample
from regimix.model.em import LOG_ROOT_2PI, Parameters, empty, evaluate, late, refit
from regimix.model.numbers import MODEL
from regimix.model.rows import MAD_TO_DEVIATION, Rows, weighted_fit, weighted_quantile
from regimix.search.joint import smallest_component
from regimix.search.numbers import SEARCH

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Passing:
    """Outcome of a batch of passes.

    Attributes
    ----------
    coef : ndarray of shape (B, width)
    error : ndarray of shape (B,)
        Estimated mean squared prediction error as a share of the variance of the response.
    member : ndarray of shape (B, n)
        Probability that a row belongs to the component.
    log_odds : ndarray of shape (B, n)
        Evidence of each row for the component.
    """

    coef: Floats
    error: Floats
    member: Floats
    log_odds: Floats


@dataclass(frozen=True)
class Pool:
    """Rows prepared for passing: rotated so that their Gram matrix is diagonal."""

    rotated: Floats
    values: Floats
    vectors: Floats
    y: Floats
    weights: Floats
    log_density: Floats
    variance: float
    constant: float

    def plain(self, coef: Floats) -> Floats:
        """Turn rotated coefficients into coefficients of the design."""
        out = coef @ self.vectors.T
        if self.constant:
            out[:, 0] *= self.constant
        return np.asarray(out)

    def mean(self, values: Floats) -> Floats:
        """Average over rows by weight, (B, n) to (B,)."""
        return np.asarray(values @ self.weights / self.weights.sum())


def prepare(rows: Rows, signal: float | None = None) -> Pool:
    """Rotate the pool's rows and describe the response of those that are not the component's.

    Without more knowledge they look like the pool itself: a normal law with a flat tail. Given the
    variance of a component's own predictions (``signal``: that of the components found before), the
    others are what a component of that size does not account for. Gross errors are wider, and rows
    far out are then known not to be the component's before the first round.
    """
    center = weighted_quantile(rows.y, rows.weights, 0.5) if rows.intercept else 0.0
    gap = np.abs(rows.y - center)
    if signal is None:
        variance = others = _bulk_variance(gap, rows.weights)
    else:
        variance, others = signal, _variance_of_others(gap, rows.weights, signal)
    log_density = np.logaddexp(
        _log_normal(gap, others) + np.log(1 - SEARCH.tail),
        rows.log_background + np.log(SEARCH.tail),
    )
    weights, design, constant = rows.weights, rows.design, 0.0
    if rows.intercept and rows.width > 1:
        # The constant column gets the same prior variance as all the slopes together.
        constant = float(np.sqrt(rows.width - 1))
        design = design.copy()
        design[:, 0] = constant
    values, vectors = np.linalg.eigh((design * weights[:, None]).T @ design)
    return Pool(
        design @ vectors,
        np.maximum(values, 0.0),
        vectors,
        rows.y,
        weights,
        log_density,
        variance,
        constant,
    )


def _bulk_variance(gap: Floats, weights: Floats) -> float:
    """Variance of the response; gross outliers must not widen it: the flat tail is theirs."""
    bulk = weighted_quantile(gap, weights, 0.5) * MAD_TO_DEVIATION
    cut = np.minimum(gap**2, (SEARCH.clip * bulk) ** 2) if bulk > 0 else gap**2
    return max(float(np.average(cut, weights=weights)), MODEL.rounding)


def _variance_of_others(gap: Floats, weights: Floats, signal: float) -> float:
    """Variance of the rows that a normal law of the component's size leaves over, by EM."""
    others, share = SEARCH.clip * signal, 0.5
    for _ in range(MODEL.rounds):
        odds = _log_normal(gap, others) - _log_normal(gap, signal)
        left = weights / (1.0 + np.exp(np.clip(np.log(share / (1 - share)) - odds, -50, 50)))
        share = min(max(1.0 - float(left.sum() / weights.sum()), 0.05), 0.95)
        others = max(float(left @ gap**2) / max(float(left.sum()), MODEL.rounding), signal)
    return others


def _log_normal(gap: Floats, variance: float) -> Floats:
    return np.asarray(-0.5 * gap**2 / variance - 0.5 * np.log(2 * np.pi * variance))


@dataclass(frozen=True)
class _State:
    """A batch of passes between rounds; each field has one entry or row per pass."""

    mean: Floats
    variance: Floats
    log_share: Floats
    coef: Floats
    level: Floats
    noise: Floats

    def keep(self, which: NDArray[np.bool_]) -> _State:
        """Keep some passes."""
        return _State(
            self.mean[which],
            self.variance[which],
            self.log_share[which],
            self.coef[which],
            self.level[which],
            self.noise[which],
        )


def passing(
    pool: Pool,
    start: Floats,
    start_error: Floats,
    share: Floats,
    spike: Floats,
    *,
    first_wins: bool = False,
) -> Passing:
    """Run a batch of passes.

    Parameters
    ----------
    start : ndarray of shape (B, n)
        Predictions to start from.
    start_error : ndarray of shape (B,)
        Their squared error as a share of the variance of the response.
    share : ndarray of shape (B,)
        Share of rows that each pass takes for its component's at the outset.
    spike : ndarray of shape (B,)
        Noise that each pass assumes; right within a factor of five will do.
    first_wins : bool
        Whether all stop as soon as one has found its component.
    """
    n, width = pool.rotated.shape
    batch = len(start)
    squares = np.square(pool.rotated)
    found = Passing(
        np.zeros((batch, width)), start_error.copy(), np.zeros((batch, n)), np.zeros((batch, n))
    )
    state = _State(
        start.copy(),
        np.outer(start_error * pool.variance, np.ones(n)),
        np.log(share / (1 - share)),
        np.zeros((batch, width)),
        start_error.copy(),
        np.square(spike),
    )
    active = np.arange(batch)
    least, earlier, look = start_error.copy(), start_error.copy(), 2 * SEARCH.short_rounds
    for t in range(SEARCH.turns):
        before = state
        state, member, odds = _round(pool, squares, before, first=t == 0)
        done = _settled(pool, before, state) & (t > SEARCH.short_rounds)
        least[active] = np.minimum(least[active], state.level)
        if t + 1 == look:
            # A pass whose error has not fallen in the second half of its rounds goes in circles.
            done |= least[active] >= earlier[active]
            earlier, look = least.copy(), 2 * look
        converged = state.level < SEARCH.converged
        done |= (
            converged | (t == SEARCH.turns - 1) | (first_wins and bool(converged.any())) | late()
        )
        if done.any():
            which = active[done]
            found.coef[which], found.error[which] = state.coef[done], state.level[done]
            found.member[which], found.log_odds[which] = member[done], odds[done]
            state, active = state.keep(~done), active[~done]
            if not active.size:
                break
    return Passing(pool.plain(found.coef), found.error, found.member, found.log_odds)


def _settled(pool: Pool, before: _State, after: _State) -> NDArray[np.bool_]:
    prior = _prior(pool)
    moved = np.abs(after.coef - before.coef).max(axis=1) / np.sqrt(prior)
    return np.asarray(np.maximum(moved, np.abs(after.level - before.level)) < SEARCH.converged)


def _prior(pool: Pool) -> float:
    """Prior variance of a coefficient: all slopes together predict the response's variance."""
    return pool.variance / float(max(pool.rotated.shape[1] - bool(pool.constant), 1))


def _round(
    pool: Pool, squares: Floats, state: _State, *, first: bool
) -> tuple[_State, Floats, Floats]:
    """Make one round of all passes; return memberships and evidence beside the new state."""
    member, odds, force, curvature = _tilt(pool, state)
    precision, site = _site(pool, state, force, curvature)
    shrunk = precision[:, None] * pool.values + 1.0 / _prior(pool)
    coef = precision[:, None] * ((site * pool.weights) @ pool.rotated) / shrunk
    spread = (1.0 / shrunk) @ squares.T
    cavity = np.maximum(1.0 - precision[:, None] * spread, 1e-3)
    variance = np.minimum(spread / cavity, 4.0 * pool.variance)
    mean = (coef @ pool.rotated.T - precision[:, None] * spread * site) / cavity
    # Where one row holds nearly all the weight, a pass may go astray without end.
    mean = np.clip(mean, -MODEL.farthest, MODEL.farthest)
    if not first:
        new = SEARCH.damping
        mean = (1 - new) * state.mean + new * mean
        variance = (1 - new) * state.variance + new * variance
    # Shares of rows are kept away from none and all.
    belong = np.clip(pool.mean(member), SEARCH.tail, 1 - SEARCH.tail)
    log_share = 0.8 * state.log_share + 0.2 * np.log(belong / (1 - belong))
    level = pool.mean(variance) / pool.variance
    return _State(mean, variance, log_share, coef, level, state.noise), member, odds


def _tilt(pool: Pool, state: _State) -> tuple[Floats, Floats, Floats, Floats]:
    """Return membership, evidence, and two derivatives of each row's log-likelihood."""
    residual = pool.y - state.mean
    total = state.variance + state.noise[:, None]
    ratio = residual / total
    pull = residual * ratio
    odds = -0.5 * (pull + np.log(total)) - (pool.log_density + LOG_ROOT_2PI)
    member = 1.0 / (1.0 + np.exp(-np.clip(odds + state.log_share[:, None], -40, 40)))
    curvature = pool.mean(member / total * (1.0 - (1.0 - member) * pull))
    return member, odds, member * ratio, curvature


def _site(pool: Pool, state: _State, force: Floats, curvature: Floats) -> tuple[Floats, Floats]:
    """Return the common precision and the pseudo-responses that sum all rows up."""
    typical = pool.mean(state.variance)
    curvature = np.clip(curvature, 1e-6 / typical, 0.999 / typical)
    precision = curvature / (1.0 - curvature * typical)
    return precision, state.mean + force / curvature[:, None]


# --- one component among many rows ----------------------------------------------------------------


def hunt_one(rows: Rows, signal: float | None = None) -> Parameters | None:
    """Find one component among the rows; None if there seems to be none.

    Parameters
    ----------
    signal : float, optional
        Variance of a component's predictions, if others have shown what to expect.
    """
    if late():
        return None
    sharp = _of_most(rows) if rows.width > SEARCH.raw_width else None
    if sharp is not None:
        return sharp
    best = _best(rows, _from_nothing(rows, len(SEARCH.zero_noise)))
    if rows.n > MODEL.many_rows * rows.width:
        return best
    finds = [best]
    if signal is not None:
        finds.append(_best(rows, _from_nothing(rows, 1, signal)))
    fits = [refit(rows, find, MODEL.rounds) for find in finds if find is not None]
    fits.append(evaluate(rows, empty(rows.width)))
    winner = max(fits, key=lambda fit: fit.score).model
    return winner if winner.m else None


def reweighted(sample: Sample, theta: Floats, settled: float = 0.0) -> Floats:
    """Reweight least squares again and again, with Cauchy's weights: rows that fit well count.

    ``settled``: how little the logarithm of the median square has to change at the end.
    """
    before = np.inf
    for _ in range(MODEL.rounds):
        squares = (sample.y - sample.Z @ theta) ** 2
        typical = float(np.median(squares))
        if typical <= 0 or late() or abs(np.log(before / typical)) < settled:
            break
        before = typical
        with np.errstate(over="ignore"):  # infinitely far is far enough
            weights = sample.weights / (1 + squares / typical)
        theta = weighted_fit(sample.Z, sample.y, weights)
    return theta


def _of_most(rows: Rows) -> Parameters | None:
    """Return the component that most of the rows follow, if there is a sharp one.

    Reweighted least squares finds it many times sooner than passing does, or goes astray.
    """
    sample = Sample(rows.design, rows.y, rows.weights)
    start = weighted_fit(rows.design, rows.y, rows.weights)
    coef = reweighted(sample, start, MODEL.settled)
    residual = np.abs(rows.y - rows.design @ coef)
    scale = weighted_quantile(residual, rows.weights, 0.5) * MAD_TO_DEVIATION
    if scale >= SEARCH.blur * rows.spread():
        return None
    scale = max(scale, rows.smallest_scale)
    half = np.array([0.5])
    fitted = evaluate(rows, Parameters.point(coef[None], np.array([scale]), half, ("passing",)))
    return fitted.model if fitted.score > evaluate(rows, empty(rows.width)).score else None


def _from_nothing(rows: Rows, count: int, signal: float | None = None) -> Passing:
    """Pass so many times from predictions of zero."""
    share, noise = np.full(count, 0.5), np.array(SEARCH.zero_noise)[:count]
    # Among many rows no pass interpolates: what has converged is a component.
    many = rows.n > MODEL.many_rows * rows.width
    start, pool = np.zeros((count, rows.n)), prepare(rows, signal)
    return passing(pool, start, np.ones(count), share, noise, first_wins=many)


def _best(rows: Rows, result: Passing) -> Parameters | None:
    """Return the pass that found a component and explains most, as a model of one component."""
    best, best_score = None, -np.inf
    least = smallest_component(rows.width)
    for b in range(len(result.error)):
        member = result.member[b] * rows.weights
        size = float(member.sum())
        if size < least:
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
