"""A mixture of regressions with a flat background, on rows in memory: fitting and scoring it whole.

Components have their own scales and shares; the background holds what none of them explains. One
score judges whole models, so that nothing is accepted on its own evidence alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from regimix.search.rows import Rows

__all__ = [
    "Fitted",
    "Model",
    "component_worth",
    "empty_model",
    "evaluate",
    "join",
    "maximise",
    "refit",
    "score_of",
    "settle",
    "smallest_component",
    "solve_normal",
]

Floats = NDArray[np.float64]

LOG_ROOT_2PI = 0.9189385332046727
# Smallest scale of a component, the spread of the response being one: noiseless data would
# otherwise score infinity.
SCALE_FLOOR = 1e-7
# Rows with a smaller share in a component do not enter its normal equations.
MEMBER = 1e-2
# Below this many rows per coefficient, leave-one-out residuals replace plain ones.
LEVERAGE_RATIO = 8.0
# No share, the background's included, is ever taken to be zero.
SHARE_FLOOR = 1e-4
# No leverage is taken to be one: the row would never be judged.
LARGEST_LEVERAGE = 0.999
# Neither bulk nor tails are ever ruled out as the place of the background's rows.
SMALLEST_PART = 0.01
# A component whose posteriors moved by less than this many tolerances in all is not refitted.
STILL = 100.0
# Rounds after which shares no longer change the score by much.
SETTLE_ROUNDS = 5
# Odds that are next to none. Smaller ones would become numbers below the normal range, which take
# ten times as long; with so many rows that shows.
NEVER = -700.0
MANY_ROWS = 10_000
# EM stops when a round gains less than this per square root of the rows.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Model:
    """Components, their scales and shares; what is left of one is the background's share.

    Attributes
    ----------
    coef : ndarray of shape (m, width)
    scale, share : ndarray of shape (m,)
    origin : tuple of str
        The source that proposed each component.
    bell : float
        Share of the background's rows that lie in the bulk of the response; others are tails.
    """

    coef: Floats
    scale: Floats
    share: Floats
    origin: tuple[str, ...]
    bell: float = 0.5

    @property
    def m(self) -> int:
        """Number of components."""
        return len(self.scale)

    @property
    def background(self) -> float:
        """Share of rows that belong to no component."""
        return max(1.0 - float(self.share.sum()), SHARE_FLOOR)

    def equals(self, other: Model) -> bool:
        """Say whether another model has the same numbers."""
        return self.bell == other.bell and all(
            np.array_equal(mine, theirs)
            for mine, theirs in (
                (self.coef, other.coef),
                (self.scale, other.scale),
                (self.share, other.share),
            )
        )

    def pick(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Model:
        """Keep the components that a mask or an index names."""
        index = np.arange(self.m)[which]
        origin = tuple(self.origin[i] for i in index)
        return Model(self.coef[index], self.scale[index], self.share[index], origin, self.bell)

    def with_shares(self, factor: float) -> Model:
        """Return the model with its shares multiplied, as for more or fewer rows around it."""
        share = self.share * factor
        return replace(self, share=share * min(1.0, 0.98 / max(float(share.sum()), 1e-300)))


@dataclass(frozen=True)
class Fitted:
    """A model with its posteriors on some rows and its score there.

    Attributes
    ----------
    posterior : ndarray of shape (m + 1, n)
        The last row is the background's.
    log_gain : ndarray of shape (n,)
        Log of the density of each row over that of the background alone.
    """

    model: Model
    posterior: Floats
    score: float
    log_gain: Floats


def empty_model(width: int) -> Model:
    """Return the model in which the background holds every row."""
    return Model(np.empty((0, width)), np.empty(0), np.empty(0), ())


def join(first: Model, second: Model) -> Model:
    """Put the components of two models side by side."""
    total = float(first.share.sum() + second.share.sum())
    shrink = min(1.0, 0.99 / total) if total > 0 else 1.0
    return Model(
        np.vstack([first.coef, second.coef]),
        np.concatenate([first.scale, second.scale]),
        np.concatenate([first.share, second.share]) * shrink,
        first.origin + second.origin,
        first.bell if first.m else second.bell,
    )


def smallest_component(width: int) -> float:
    """Return the fewest rows that a component may hold; fewer are interpolated."""
    return 1.2 * width + 3.0


@dataclass(frozen=True)
class _LeftOut:
    """Leave-one-out corrections: residuals are stretched, their variances inflated; (m, n) each."""

    stretch: Floats
    inflate: Floats


def expectation(
    rows: Rows, model: Model, left_out: _LeftOut | None = None
) -> tuple[Floats, Floats]:
    """Return posteriors (m + 1, n) and the log gain (n,) over the background alone."""
    m = model.m
    if m == 0:
        return np.ones((1, rows.n)), np.zeros(rows.n)
    log_odds = np.empty((m + 1, rows.n))
    residual = np.matmul(model.coef, rows.design.T, out=log_odds[:m])
    np.subtract(rows.y, residual, out=residual)
    if left_out is not None:
        residual *= left_out.stretch
    np.square(residual, out=residual)
    variance = (model.scale**2)[:, None]
    residual *= -0.5 / (variance if left_out is None else left_out.inflate * variance)
    residual += (np.log(model.share) - np.log(model.scale) - LOG_ROOT_2PI)[:, None]
    residual -= rows.log_background
    if left_out is not None:
        residual -= 0.5 * np.log(left_out.inflate)
    log_odds[m] = np.log(model.background) + _log_background(rows, model.bell)
    top = log_odds.max(axis=0)
    log_odds -= top
    if rows.n > MANY_ROWS:
        np.maximum(log_odds, NEVER, out=log_odds)
    posterior = np.exp(log_odds, out=log_odds)
    total = posterior.sum(axis=0)
    posterior /= total
    return posterior, np.log(total) + top


def _log_background(rows: Rows, bell: float) -> Floats:
    """Log density of the background in the model's proportions, over that without components."""
    log_density = np.logaddexp(np.log(bell) + rows.log_bell, np.log(1 - bell) + rows.log_tail)
    return np.asarray(log_density - rows.log_background)


def _fit_bell(rows: Rows, bell: float, background: Floats) -> float:
    """Learn which part of the background's rows lies in the bulk."""
    held = background * rows.weights
    if float(held.sum()) < 1.0:
        return bell
    odds = np.exp(np.clip(rows.log_bell - rows.log_tail, -50, 50)) * bell / (1 - bell)
    inside = float(held @ (odds / (1 + odds))) / float(held.sum())
    return min(max(inside, SMALLEST_PART), 1 - SMALLEST_PART)


def score_of(rows: Rows, model: Model, posterior: Floats, log_gain: Floats) -> float:
    """Score the whole model: gain over the background, less what each component gets for free.

    A component fits ``width`` of its rows for free: their density gain is taken away, but not the
    cost of telling whose row it is, so that a component is worth the same on its own rows as in
    the whole model. Then half of width times the log of rows per coefficient, and 1.5 log rows:
    the volume of its posterior against that of a prior sized by the response.
    """
    size = posterior[:-1] @ rows.weights
    reference = posterior[:-1] @ (rows.weights * rows.log_background) / np.maximum(size, 1e-9)
    free, volume, _ = _charges(rows, size, model.scale, reference)
    return float(log_gain @ rows.weights - free.sum() - volume.sum())


def _charges(
    rows: Rows, size: Floats, scale: Floats, reference: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return, per component, the free gain, the volume, and the mean log density gain of a row."""
    width = rows.width
    size = np.maximum(size, width + 1.0)
    density = -np.log(scale) - LOG_ROOT_2PI - reference - 0.5 * (1.0 - width / size)
    volume = 0.5 * width * np.log(size / max(width, 1)) + 1.5 * np.log(size)
    return width * np.maximum(density, 0.0), volume, density


def component_worth(rows: Rows, size: Floats, scale: Floats, reference: Floats) -> Floats:
    """Return what components add to the score if they share no rows.

    ``reference`` is the mean log background density of their rows.
    """
    free, volume, density = _charges(rows, size, scale, reference)
    return np.asarray(size * (np.log(size / rows.mass) + density) - free - volume)


def evaluate(rows: Rows, model: Model) -> Fitted:
    """Score a model as it stands."""
    posterior, log_gain = expectation(rows, model)
    return Fitted(model, posterior, score_of(rows, model, posterior, log_gain), log_gain)


def settle(rows: Rows, model: Model) -> Fitted:
    """Let shares settle, the components as they are; then score."""
    for _ in range(SETTLE_ROUNDS):
        posterior, _ = expectation(rows, model)
        share = np.maximum(posterior[:-1] @ rows.weights, 1.0) / rows.mass
        share *= min(1.0, (1.0 - SHARE_FLOOR) / max(float(share.sum()), 1e-300))
        model = replace(model, share=share, bell=_fit_bell(rows, model.bell, posterior[-1]))
    return evaluate(rows, model)


@dataclass(frozen=True)
class Step:
    """What a maximisation hands to the next expectation."""

    model: Model
    left_out: _LeftOut | None = None


def maximise(
    rows: Rows,
    model: Model,
    posterior: Floats,
    last: Step | None = None,
    still: NDArray[np.bool_] | None = None,
) -> Step:
    """Refit every component by weighted least squares on its members; drop those too small.

    Components marked ``still`` keep the fit of the ``last`` step: their rows have not changed.
    """
    width = rows.width
    size = posterior[: model.m] @ rows.weights
    large = size >= smallest_component(width)
    if still is None or last is None or not large.all():
        still, last = np.zeros(model.m, dtype=np.bool_), None
    alive = np.flatnonzero(large)
    coef, scale = model.coef[alive].copy(), model.scale[alive].copy()
    left_out = None if last is None else last.left_out
    if left_out is None and np.any(size[alive] < LEVERAGE_RATIO * width):
        left_out = _LeftOut(np.ones((len(alive), rows.n)), np.ones((len(alive), rows.n)))
    for k, j in enumerate(alive):
        if still[j]:
            continue
        members = np.flatnonzero(posterior[j] > MEMBER)
        share = posterior[j, members]
        root = np.sqrt(share * rows.weights[members])
        block = rows.design[members]
        block *= root[:, None]
        target = rows.y[members] * root
        factor, coef[k] = solve_normal(block, target)
        rest = target - block @ coef[k]
        scale[k] = np.sqrt(max(float(rest @ rest), 0.0) / (size[j] - width))
        if left_out is not None:
            left_out.stretch[k], left_out.inflate[k] = 1.0, 1.0
            if size[j] < LEVERAGE_RATIO * width:
                half = lapack.dtrtrs(factor, block.T, lower=1)[0]
                leverage = np.minimum(np.einsum("ij,ij->j", half, half), LARGEST_LEVERAGE)
                left_out.inflate[k] = 1.0 + width / (size[j] - width)
                left_out.inflate[k, members] = 1.0 + leverage / (share * (1.0 - leverage))
                left_out.stretch[k, members] = 1.0 / (1.0 - leverage)
    np.maximum(scale, SCALE_FLOOR, out=scale)
    shares = np.maximum(size[alive], 1.0) / rows.mass
    shares *= min(1.0, (1.0 - SHARE_FLOOR) / max(float(shares.sum()), 1e-300))
    bell = _fit_bell(rows, model.bell, posterior[-1])
    fitted = replace(model.pick(alive), coef=coef, scale=scale, share=shares, bell=bell)
    return Step(fitted, left_out)


def solve_normal(block: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Solve least squares by Cholesky factors, with a tiny ridge against loss of rank."""
    gram = block.T @ block
    size = len(gram)
    if size == 0:
        return gram, np.empty(0)  # nothing to solve for, and LAPACK refuses to
    mean = float(np.trace(gram)) / size
    gram.flat[:: size + 1] += 1e-10 * mean + 1e-300
    factor, info = lapack.dpotrf(gram, lower=1, clean=1)
    if info:
        gram.flat[:: size + 1] += 1e-6 * mean + 1e-12
        factor, info = lapack.dpotrf(gram, lower=1, clean=1)
    solution, _ = lapack.dpotrs(factor, block.T @ target, lower=1)
    return factor, np.asarray(solution)


def refit(
    rows: Rows,
    model: Model,
    rounds: int,
    *,
    tolerance: float = TOLERANCE,
    enough: float = 0.0,
) -> Fitted:
    """Run up to ``rounds`` of EM, fewer if the gain of a round becomes small; then score.

    It also ends when all further rounds are foreseen to gain less than ``enough``.
    """
    step = Step(model)
    before: Floats | None = None
    last, gained = -np.inf, np.inf
    for _ in range(rounds):
        if step.model.m == 0:
            break
        posterior, log_gain = expectation(rows, step.model, step.left_out)
        total = float(log_gain @ rows.weights)
        earlier, gained = gained, total - last
        small = abs(gained) < tolerance * max(1.0, np.sqrt(rows.mass))
        if small or _left_to_gain(earlier, gained) < enough:
            if step.left_out is None:
                score = score_of(rows, step.model, posterior, log_gain)
                return Fitted(step.model, posterior, score, log_gain)
            break
        last = total
        still = None
        if before is not None and before.shape == posterior.shape:
            still = np.abs(posterior[:-1] - before[:-1]).sum(axis=1) < STILL * tolerance
        step, before = maximise(rows, step.model, posterior, step, still), posterior
    return evaluate(rows, step.model)


def _left_to_gain(before: float, gained: float) -> float:
    """Foresee what further rounds gain: EM closes in by the same factor every round."""
    if not np.isfinite(before) or gained >= before:
        return abs(gained)
    return gained**2 / (before - gained)
