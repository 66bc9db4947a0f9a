"""A mixture of regressions with a background on rows in memory: responsibilities, fits, the score.

The score is a lower bound of the log evidence, in nats: the posterior is approximated by
q(labels) q(shares) and, for each component, q(coefficients, noise). Rounds never lower it. Every
decision of a search is a difference of scores.
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import digamma, gammaln

from regimix.model.evidence import Sums, posterior
from regimix.model.laws import (
    NORMAL,
    NORMAL_BULK,
    ROOT_8,
    STUDENT_BULK,
    Background,
    NoiseLaw,
)
from regimix.model.numbers import MODEL
from regimix.model.rows import Rows
from regimix.trimmed.ilts import factored

Floats = NDArray[np.float64]

LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
# The logarithm of a share that is ruled out: as good as infinite, and times zero it is zero.
NEVER = -float(np.sqrt(np.finfo(np.float64).max))
# Exponentials of less than minus this are hardly normal numbers: they take 15 times as long.
LOG_HUGE = 700.0
TINY = float(np.exp(-LOG_HUGE))
# Odds of less than this are lost beside one.
LOG_ROUNDING = float(np.log(np.finfo(np.float64).eps))
REGIME_GAIN = MODEL.regime_gain  # for those who report it


@dataclass(frozen=True)
class Parameters:
    """Components of a mixture, as points or with what is not known about them.

    Attributes
    ----------
    coef : ndarray of shape (m, width)
    precision, log_precision : ndarray of shape (m,)
        1 / noise² and its logarithm, or their means.
    log_share : ndarray of shape (m + 1,)
        Logarithms of the shares, or their means; the background's last.
    factor : ndarray of shape (m, width, width) or None
        Uncertainty of the coefficients (see ``Posterior``); None for points.
    origin : tuple of str
        The source that proposed each component.
    noise : NoiseLaw
    outlier_law, outlier_scale : Background, float
        Which of the backgrounds, and its scale if that is free.
    """

    coef: Floats
    precision: Floats
    log_precision: Floats
    log_share: Floats
    origin: tuple[str, ...]
    factor: Floats | None = None
    noise: NoiseLaw = NORMAL
    outlier_law: Background = Background.PLAIN
    outlier_scale: float = 1.0

    @classmethod
    def point(
        cls,
        coef: Floats,
        scale: Floats,
        share: Floats,
        origin: tuple[str, ...],
        noise: NoiseLaw = NORMAL,
        outlier_law: Background = Background.PLAIN,
        outlier_scale: float = 1.0,
    ) -> Parameters:
        """Make parameters of coefficients, noise deviations and shares; the rest is background."""
        rest = max(1.0 - float(share.sum()), MODEL.rounding)
        log_precision = -2.0 * np.log(scale)
        log_share = np.log(np.append(np.maximum(share, MODEL.rounding), rest))
        return cls(
            coef,
            np.exp(log_precision),
            log_precision,
            log_share,
            origin,
            None,
            noise,
            outlier_law,
            outlier_scale,
        )

    @property
    def m(self) -> int:
        """Number of components."""
        return len(self.precision)

    @property
    def scale(self) -> Floats:
        """Noise deviations."""
        return np.asarray(1.0 / np.sqrt(self.precision))

    @property
    def share(self) -> Floats:
        """Shares of the components."""
        share = np.exp(self.log_share)
        return np.asarray(share[:-1] / share.sum())

    @property
    def background(self) -> float:
        """Share of rows that belong to no component."""
        return 1.0 - float(self.share.sum())

    def pick(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Parameters:
        """Keep the components that a mask or an index names; shares are not renormalised."""
        index = np.arange(self.m)[which]
        return replace(
            self,
            coef=self.coef[index],
            precision=self.precision[index],
            log_precision=self.log_precision[index],
            log_share=self.log_share[np.append(index, self.m)],
            origin=tuple(self.origin[i] for i in index),
            factor=None if self.factor is None else self.factor[index],
        )

    def with_shares(self, factor: float) -> Parameters:
        """Return the model with its shares multiplied, as for more or fewer rows around it."""
        share = self.share * factor
        share = share * min(1.0, 0.98 / max(float(share.sum()), 1e-300))
        rest = max(1.0 - float(share.sum()), MODEL.rounding)
        return replace(self, log_share=np.log(np.append(np.maximum(share, MODEL.rounding), rest)))


def empty(width: int, noise: NoiseLaw = NORMAL) -> Parameters:
    """Return the model in which the background holds every row."""
    none = np.empty(0)
    return Parameters(np.empty((0, width)), none, none, np.zeros(1), (), None, noise)


def join(first: Parameters, second: Parameters) -> Parameters:
    """Put the components of two models side by side, as points."""
    share = np.concatenate([first.share, second.share])
    share *= min(1.0, 0.99 / max(float(share.sum()), 1e-300))
    return Parameters.point(
        np.vstack([first.coef, second.coef]),
        np.concatenate([first.scale, second.scale]),
        share,
        first.origin + second.origin,
        first.noise,
        first.outlier_law,
        first.outlier_scale,
    )


@dataclass(frozen=True)
class Fitted:
    """A model with its responsibilities on some rows and its score there.

    Attributes
    ----------
    model : Parameters
    posterior : ndarray of shape (m + 1, n)
        Responsibilities; the last row is the background's.
    sums : Sums
        Over the rows of each component, by these responsibilities.
    log_evidence : ndarray of shape (m,)
        Of the rows of each component, given that they are its own.
    score : float
        Lower bound of the log evidence of all responses, in nats.
    base : Parameters
        Whose responsibilities these are: ``evaluate`` makes the same of it, to the last bit.
    left : float
        What further rounds of EM are foreseen to gain, in nats; infinite where that is not known.
    """

    model: Parameters
    posterior: Floats
    sums: Sums
    log_evidence: Floats
    score: float
    base: Parameters
    left: float = np.inf

    @property
    def divergence(self) -> Floats:
        """How far the posterior of each component is from its prior, in nats, (m,)."""
        model, sums = self.model, self.sums.at(self.model.coef)
        squares = model.precision * sums.square
        if model.factor is not None:
            squares += np.einsum("jac,jac->j", sums.gram @ model.factor, model.factor)
        likely = 0.5 * self.sums.size * (model.log_precision - 2 * LOG_ROOT_2PI) - 0.5 * squares
        return np.asarray(likely - self.log_evidence)


@dataclass(frozen=True)
class Expected:
    """What an E-step hands to the M-step.

    Attributes
    ----------
    posterior : ndarray of shape (m + 1, n)
    bound : float
        Entropy of the responsibilities, plus what heavy tails contribute.
    residual : ndarray of shape (m, n)
    tail : ndarray of shape (m, n) or None
        How much of its responsibility a row keeps in the fit: less in heavy tails. None: all.
    """

    posterior: Floats
    bound: float
    residual: Floats
    tail: Floats | None = None


def squares_of(rows: Rows, model: Parameters) -> tuple[Floats, Floats]:
    """Return residuals, and their mean squares in units of the noise; (m, n) each.

    What the rows leave open of the coefficients costs a product of all rows for each component. It
    makes a row less likely: where the background is likelier without it, it is left out.
    """
    residual = rows.y - model.coef @ rows.design.T
    squares = residual**2
    squares *= model.precision[:, None]
    if model.factor is not None:
        log_odds = _log_densities(rows, model, model.noise.kernel(squares)[0])
        log_odds += model.log_share[:, None]
        for j, factor in enumerate(model.factor):
            some = np.flatnonzero(log_odds[j] > log_odds[-1] + LOG_ROUNDING)
            wide = rows.design.take(some, axis=0) @ factor
            squares[j, some] += np.einsum("ij,ij->i", wide, wide)
    return residual, squares


def log_outliers(rows: Rows, law: Background, scale: float) -> Floats:
    """Return the log density of every response under a background, (n,)."""
    if law == Background.PLAIN:
        return rows.log_background
    squares = rows.far / scale**2
    if law == Background.NORMAL:
        return np.asarray(-0.5 * squares - (math.log(scale) + LOG_ROOT_2PI))
    return np.asarray(-1.5 * np.log1p(0.5 * squares) - math.log(ROOT_8 * scale))


def joined(log_kernel: Floats, log_height: Floats, log_outlier: Floats | float) -> Floats:
    """Put kernels at their heights, and below them the background, (m + 1, n)."""
    out = np.empty((len(log_kernel) + 1, log_kernel.shape[1]))
    np.add(log_kernel, (log_height - LOG_ROOT_2PI)[:, None], out=out[:-1])
    out[-1] = log_outlier
    return out


def _log_densities(rows: Rows, model: Parameters, log_kernel: Floats) -> Floats:
    """Return log densities of every row under every component and the background, (m + 1, n)."""
    outlying: Floats | float = NEVER
    if rows.outliers:
        outlying = log_outliers(rows, model.outlier_law, model.outlier_scale)
    return joined(log_kernel, 0.5 * model.log_precision, outlying)


def log_densities(rows: Rows, model: Parameters) -> Floats:
    """Return log densities of every row under every component and the background, (m + 1, n)."""
    return _log_densities(rows, model, model.noise.kernel(squares_of(rows, model)[1])[0])


def normalise(log_odds: Floats) -> tuple[Floats, Floats]:
    """Return responsibilities, and the logarithm of what they were divided by."""
    top = log_odds.max(axis=0)
    odds = log_odds - top
    # What is as small as that is zero.
    np.maximum(odds, -LOG_HUGE, out=odds)
    np.exp(odds, out=odds)
    odds -= TINY
    total = odds.sum(axis=0)
    odds /= total
    return odds, top + np.log(total)


def responsibilities(rows: Rows, model: Parameters) -> tuple[Floats, Floats]:
    """Return the probability of each component for each row, and the log density of the row."""
    return normalise(log_densities(rows, model) + model.log_share[:, None])


def expect(rows: Rows, model: Parameters) -> Expected:
    """Make the E-step: the probability of each component for each row, given its response."""
    if model.m == 0:
        return Expected(np.ones((1, rows.n)), 0.0, np.empty((0, rows.n)))
    residual, squares = squares_of(rows, model)
    log_kernel, tail, slack = model.noise.kernel(squares)
    log_odds = _log_densities(rows, model, log_kernel)
    log_odds += model.log_share[:, None]
    odds, log_total = normalise(log_odds)
    log_odds *= odds  # entropy
    if slack is not None:
        log_odds[:-1] -= odds[:-1] * slack
    bound = float(rows.weights @ log_total) - float((log_odds @ rows.weights).sum())
    return Expected(odds, bound, residual, tail)


def sums_of(rows: Rows, coef: Floats, seen: Expected) -> Sums:
    """Sum over the rows of each component, by responsibility."""
    m, width = coef.shape
    size = seen.posterior[:m] @ rows.weights
    gram, moment, square = np.empty((m, width, width)), np.empty((m, width)), np.empty(m)
    for j in range(m):
        members = np.flatnonzero(seen.posterior[j] > MODEL.member)
        root = seen.posterior[j].take(members)
        root *= rows.weights.take(members)
        if seen.tail is not None:
            root *= seen.tail[j].take(members)
        np.sqrt(root, out=root)
        block = rows.design.take(members, axis=0)
        block *= root[:, None]
        near = seen.residual[j].take(members)
        near *= root
        gram[j], moment[j], square[j] = block.T @ block, near @ block, near @ near
    return Sums(size, gram, moment, square, coef)


def maximise(rows: Rows, model: Parameters, seen: Expected) -> Fitted:
    """Make the M-step: the posterior of every component and of the shares, given the rows."""
    sums = sums_of(rows, model.coef, seen)
    law, outlier_scale, bound = _choose_law(rows, seen.posterior[-1])
    bound += seen.bound
    if model.m == 0:
        new = replace(model, outlier_law=law, outlier_scale=outlier_scale)
        return Fitted(new, seen.posterior, sums, np.empty(0), bound, model)
    # Where rows are many, each knows its regime about as well as the mean row does; else a round
    # costs as many products of all rows as there are regimes.
    many = float(sums.size.min()) > MODEL.many_rows * rows.width
    found = posterior(sums, rows.prior, with_factor=not many)
    log_precision, log_share = found.log_precision, log_shares(rows, sums.size)
    if many:
        log_precision = log_precision - found.uncertainty / sums.size
    if law != Background.PLAIN:
        # The slope of the price: so the E-step knows that each row more makes it dearer.
        log_share[-1] -= 0.5 / (1.0 + float(seen.posterior[-1] @ rows.weights))
    new = Parameters(
        found.coef,
        found.precision,
        log_precision,
        log_share,
        model.origin,
        found.factor,
        model.noise,
        law,
        outlier_scale,
    )
    score = bound + float(found.log_evidence.sum()) + shares_evidence(rows, sums.size)
    score += log_prior(model.noise)
    return Fitted(new, seen.posterior, sums, found.log_evidence, score, model)


def _choose_law(rows: Rows, outlier: Floats) -> tuple[Background, float, float]:
    """Choose the background that suits its rows, with its scale; and what it adds to the score.

    It is as wide as the bulk of the responses at least, and as what rounding leaves: rows that lie
    closer together are no outliers, but a regime without slopes.
    """
    if not rows.outliers:
        return Background.PLAIN, 1.0, 0.0
    weight = outlier * rows.weights
    held = float(weight.sum())
    plain = (Background.PLAIN, 1.0, float(weight @ rows.log_background))
    some = np.flatnonzero(outlier > MODEL.member)
    if held < 1.0 or not some.size:
        return plain  # of less than one row no law is seen
    near, far = weight.take(some), rows.far.take(some)
    least, width = rows.smallest_scale, rows.width_of_y
    normal = math.sqrt(float(near @ far) / float(near.sum()))
    normal = max(normal, NORMAL_BULK * width, least)
    student = _student_scale(near, far, max(STUDENT_BULK * width, least))
    # As in ``log_outliers``, summed.
    squares = float(weight @ rows.far) / normal**2
    choices = (
        (Background.NORMAL, normal, -0.5 * squares - held * (math.log(normal) + LOG_ROOT_2PI)),
        (
            Background.STUDENT,
            student,
            float(weight @ log_outliers(rows, Background.STUDENT, student)),
        ),
    )
    law, scale, value = max(choices, key=itemgetter(2))
    return max(plain, (law, scale, value + _free_price(held)), key=itemgetter(2))


def _student_scale(weight: Floats, far: Floats, narrowest: float) -> float:
    """Return the likeliest scale of Student's law, from squared distances from its middle."""
    held = float(weight.sum())
    # The mean distance is sqrt(2) scales; Newton's steps in the logarithm do the rest.
    scale = max(float(weight @ np.sqrt(far)) / (math.sqrt(2.0) * held), narrowest)
    for _ in range(MODEL.inner_rounds):
        share = far / (far + 2.0 * scale**2)
        part = weight * share
        first = float(part.sum())
        slope = 2.0 * (first - float(part @ share)) / held
        step = (first / held - 1 / 3) / max(slope, MODEL.rounding)
        scale = max(scale * math.exp(min(max(step, -1.0), 1.0)), narrowest)
    return scale


def _free_price(held: float) -> float:
    """Return the log prior of a background of free scale: as rare as a regime, scale unknown."""
    return -MODEL.regime_gain - 0.5 * math.log1p(held)


def _counts(rows: Rows, size: Floats) -> Floats:
    """Append the rows of the background, if there may be any."""
    if not rows.outliers:
        return size
    counts = np.empty(size.size + 1)
    counts[:-1], counts[-1] = size, max(rows.mass - float(size.sum()), 0.0)
    return counts


def log_shares(rows: Rows, size: Floats) -> Floats:
    """Return the mean logarithms of the shares, uniform a priori; the background's last."""
    logs = np.full(size.size + 1, NEVER)
    counts = _counts(rows, size)
    logs[: counts.size] = digamma(1.0 + counts) - digamma(rows.mass + counts.size)
    return logs


def shares_evidence(rows: Rows, size: Floats) -> float:
    """Log probability of the labels, shares integrated out, and of the number of components.

    Components may come in any order.
    """
    counts = _counts(rows, size)
    total = gammaln(1.0 + counts).sum() - gammaln(counts.size + rows.mass) + gammaln(counts.size)
    return float(total + gammaln(size.size + 1.0) - MODEL.regime_gain * size.size)


def log_prior(noise: NoiseLaw) -> float:
    """Return the log prior of a noise law: tails are as rarely heavy as there is a regime."""
    return -MODEL.regime_gain if np.isfinite(noise.degrees) else 0.0


# By ``time.monotonic()``: whatever goes in rounds makes its last one then.
DEADLINE: ContextVar[float] = ContextVar("deadline", default=float("inf"))


def late() -> bool:
    """Whether the time of the fit is over."""
    return time.monotonic() > DEADLINE.get()


def evaluate(rows: Rows, model: Parameters) -> Fitted:
    """Make one round from a model: E-step, M-step and score."""
    return maximise(rows, model, expect(rows, model))


def refit(
    rows: Rows,
    model: Parameters | Fitted,
    rounds: int,
    *,
    settled: float = MODEL.settled,
    goal: float = -np.inf,
) -> Fitted:
    """Run rounds until all further ones are foreseen to gain less than ``settled`` nats.

    A model whose rounds on these rows have come so far is returned as it is. One that cannot reach
    the score ``goal`` is left as it is: rounds gain less and less, so those that are left gain no
    more than so many times what the last one did.
    """
    if isinstance(model, Fitted):
        if model.left < settled:
            return model
        model = model.model
    fitted, gained, further = evaluate(rows, model), np.inf, np.inf
    for left in range(rounds - 1, 0, -1):
        if fitted.model.m == 0 or further < settled or late():
            break
        before, earlier = fitted.score, gained
        fitted = evaluate(rows, fitted.model)
        gained = fitted.score - before
        # Rounds close in by the same factor every time: so what further ones gain is foreseen.
        slower = np.isfinite(earlier) and gained < earlier
        further = max(gained, gained**2 / (earlier - gained)) if slower else abs(gained)
        if slower and fitted.score + (left - 1) * gained < goal:
            break
    return replace(fitted, left=further)


def from_labels(rows: Rows, posterior: Floats, model: Parameters) -> Fitted:
    """Fit components to given responsibilities."""
    residual = rows.y - model.coef @ rows.design.T
    entropy = -np.where(posterior > 0, posterior * np.log(np.maximum(posterior, 1e-300)), 0.0)
    bound = float(rows.weights @ entropy.sum(axis=0))
    return maximise(rows, model, Expected(posterior, bound, residual))


def point_of(rows: Rows, fitted: Fitted) -> Parameters:
    """Return the plain fit to the rows of each component: least squares by responsibility.

    The prior, which decided between models, does not enter: coefficients and noise are what a
    textbook would give for these rows.
    """
    model, sums = fitted.model, fitted.sums
    coef, scale = model.coef.copy(), model.scale
    for j in range(model.m):
        here = sums.pick(j).at(model.coef[j])
        rank = len(here.gram)
        if (found := factored(here.gram)) is not None:
            root, length = found
            step = lapack.dpotrs(root, here.moment / length, lower=1)[0] / length
        else:
            # Among all solutions of too few rows, the one nearest to the posterior's.
            solved = np.linalg.lstsq(here.gram, here.moment, rcond=MODEL.rounding)
            step, rank = solved[0], int(solved[2])
        if sums.size[j] > rank:
            coef[j] += step
            rest = max(float(here.square - step @ here.moment), 0.0)
            scale[j] = np.sqrt(rest / (sums.size[j] - rank))
    scale = np.maximum(scale, rows.smallest_scale)
    share = sums.size / rows.mass
    return Parameters.point(
        coef, scale, share, model.origin, model.noise, model.outlier_law, model.outlier_scale
    )


def scores_without(rows: Rows, fitted: Fitted) -> Floats:
    """Score the model without each of its components; the others stay as they are, (m,).

    A lower bound: shares move towards where they would settle for a few rounds.
    """
    known = log_densities(rows, fitted.model), fitted.divergence
    each = np.arange(fitted.model.m)
    return np.array([_score_of_others(rows, fitted, *known, each != j) for j in each])


def worthless(rows: Rows, fitted: Fitted) -> NDArray[np.bool_]:
    """Say which components to leave out, one by one as long as the score rises.

    The others stay as they are: a score is a lower bound, as in ``scores_without``.
    """
    known = log_densities(rows, fitted.model), fitted.divergence
    each, keep, score = np.arange(fitted.model.m), np.ones(fitted.model.m, dtype=bool), fitted.score
    while keep.sum() > 1:
        scores = {j: _score_of_others(rows, fitted, *known, keep & (each != j)) for j in each[keep]}
        j = max(scores, key=scores.__getitem__)
        if scores[j] <= score:
            break
        keep[j], score = False, scores[j]
    return ~keep


def _score_of_others(
    rows: Rows, fitted: Fitted, density: Floats, divergence: Floats, keep: NDArray[np.bool_]
) -> float:
    """Score some components as they are: likelihood less divergences."""
    some = density[np.append(keep, True)]
    size = fitted.sums.size[keep]
    size = size * (rows.mass / max(float(_counts(rows, fitted.sums.size).sum()), 1e-300))
    log_total = np.zeros(rows.n)
    for _ in range(MODEL.inner_rounds):
        odds, log_total = normalise(some + log_shares(rows, size)[:, None])
        before, size = size, odds[:-1] @ rows.weights
    # The law of the shares is that of the counts before the last look.
    counts, logs = _counts(rows, before), log_shares(rows, before)[: before.size + rows.outliers]
    labels = shares_evidence(rows, before) - float(counts @ logs)
    law = 0.0
    if rows.outliers:
        held = max(rows.mass - float(size.sum()), 0.0)
        law = 0.0 if fitted.model.outlier_law == Background.PLAIN else _free_price(held)
    law += log_prior(fitted.model.noise)
    return float(rows.weights @ log_total) + labels + law - float(divergence[keep].sum())


def union_losses(rows: Rows, fitted: Fitted) -> list[tuple[int, int, float]]:
    """Return pairs of components with what the score loses when they become one, cheapest first.

    Sums add, so the evidence of a union is exact for the responsibilities as they are. Rows that
    were in doubt between the two no longer are.
    """
    size = fitted.sums.size
    first, second = np.triu_indices(fitted.model.m, 1)
    if not first.size:
        return []
    unions = fitted.sums.pick(first) + fitted.sums.pick(second)
    joint = posterior(unions, rows.prior, with_factor=False)
    whole = shares_evidence(rows, size)
    losses = []
    for j, k, log_evidence in zip(first, second, joint.log_evidence, strict=True):
        united = np.append(np.delete(size, [j, k]), size[j] + size[k])
        parts = fitted.log_evidence[j] + fitted.log_evidence[k] - float(log_evidence)
        # Entropy of telling the two apart.
        a, b = fitted.posterior[j], fitted.posterior[k]
        some = np.flatnonzero(np.minimum(a, b) > MODEL.rounding)
        a, b = a[some], b[some]
        apart = (a + b) * np.log(a + b) - a * np.log(a) - b * np.log(b)
        doubt = float(rows.weights[some] @ apart)
        losses.append((int(j), int(k), parts + doubt + whole - shares_evidence(rows, united)))
    return sorted(losses, key=itemgetter(2))
