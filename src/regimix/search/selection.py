"""What the score decides: how many regimes, which noise, outliers or none, a relation or none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from regimix.model.em import (
    REGIME_GAIN,
    Fitted,
    Parameters,
    evaluate,
    from_labels,
    late,
    refit,
    responsibilities,
    scores_without,
    squares_of,
    union_losses,
)
from regimix.model.laws import NoiseLaw
from regimix.model.numbers import MODEL
from regimix.model.rows import Rows
from regimix.search.numbers import SEARCH

# --- fewer regimes --------------------------------------------------------------------------------


def prune(rows: Rows, fitted: Fitted) -> Fitted:
    """Merge and delete components while that raises the score."""
    while fitted.model.m > 1:
        interpolated = fitted.posterior[:-1].sum(axis=1) <= rows.width
        if interpolated.any() and not interpolated.all():
            # No more rows than coefficients, however often they are repeated, show nothing.
            fitted = refit(rows, fitted.model.pick(~interpolated), SEARCH.short_rounds)
            continue
        smaller = _smaller(rows, fitted, limit=REGIME_GAIN)
        if not smaller:
            break
        best = max(smaller, key=attrgetter("score"))
        if best.score < fitted.score:
            break
        fitted = best
    return fitted


def shrink(rows: Rows, fitted: Fitted) -> Fitted:
    """Merge or delete, whichever loses less, whatever it loses."""
    return max(_smaller(rows, fitted, limit=np.inf), key=attrgetter("score"))


def _smaller(rows: Rows, fitted: Fitted, limit: float) -> list[Fitted]:
    """Refit the cheapest unions and deletions, as far as their estimated loss is within a limit."""
    trials, rounds, goal = [], SEARCH.short_rounds, fitted.score - limit
    for j, k, loss in union_losses(rows, fitted)[: SEARCH.merges_tried]:
        if loss <= limit:
            union = fitted.posterior.copy()
            union[j] += union[k]
            rest = np.arange(fitted.model.m) != k
            merged = from_labels(rows, union[np.append(rest, True)], fitted.model.pick(rest))
            trials.append(refit(rows, merged.model, rounds, goal=goal))
    without = scores_without(rows, fitted)
    j = int(np.argmax(without))
    if fitted.score - without[j] <= limit:
        others = fitted.model.pick(np.arange(fitted.model.m) != j)
        trials.append(refit(rows, others, rounds, goal=goal))
    return trials


# --- how many regimes -----------------------------------------------------------------------------

Floats = NDArray[np.float64]

# The halves of a normal law are this many deviations from its middle.
APART = np.sqrt(2 / np.pi)


@dataclass(frozen=True)
class Attempt:
    """Something that was tried on the way to the model.

    Attributes
    ----------
    move, source : str
        What was to be done to the model ("add", "replace", ...), with components from where.
    gain, accepted, reason : float, bool, str
        By how much the score of the whole model would rise, whether it was done, and why (not).
    search : int
        In which of several independent searches.
    """

    move: str
    source: str
    gain: float
    accepted: bool
    reason: str
    search: int = 0

    def __str__(self) -> str:
        verdict = "taken" if self.accepted else "left"
        return f"{self.move} ({self.source}): {self.gain:+.1f}, {verdict}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Selection:
    """Criteria of the best model found with each number of components.

    All are those of the rows that were searched (a sample, if the table is large). ``evidence``
    is the score by which the search decides, beyond that of constants; it contains the prior of
    each component, 3 nats, and the answer is its maximum.
    ``bic`` and ``icl`` (BIC plus twice the entropy of the assignments) are there to compare, and
    lower is better. Their differences count: they are in the search's own units of the response
    and against its background, so they are not those of ``Mixture.bic``.

    Attributes
    ----------
    n_components : ndarray of shape (k,), int
    evidence, bic, icl : ndarray of shape (k,)
    chosen : int
        The number of components of the answer.
    """

    n_components: NDArray[np.int64]
    evidence: Floats
    bic: Floats
    icl: Floats
    chosen: int

    def as_dict(self) -> dict[str, NDArray[np.generic]]:
        """Return the columns by name, ready for a data frame."""
        return {
            "n_components": self.n_components,
            "evidence": self.evidence,
            "bic": self.bic,
            "icl": self.icl,
        }


@dataclass(frozen=True)
class Repeats:
    """Independent searches of the same rows.

    Attributes
    ----------
    scores : tuple of float
        Of the model that each search ended with.
    """

    scores: tuple[float, ...]

    @property
    def agreed(self) -> int:
        """How many of them reached the best score."""
        best = max(self.scores, default=0.0)
        return sum(score > best - SEARCH.same_score for score in self.scores)


@dataclass
class Path:
    """The best fitted model of each number of components that a search came across."""

    best: dict[int, Fitted] = field(default_factory=dict)

    def see(self, fitted: Fitted) -> None:
        """Remember a model if it is the best of its size."""
        known = self.best.get(fitted.model.m)
        if fitted.model.m and (known is None or fitted.score > known.score):
            self.best[fitted.model.m] = fitted

    def complete(self, rows: Rows, chosen: Fitted) -> None:
        """Fill in the smaller numbers and the next larger one."""
        # The broadest component is parted into the rows above it and those below.
        broadest = int(np.argmax(chosen.model.scale))
        larger = refit(rows, _halved(rows, chosen.model, broadest), SEARCH.short_rounds)
        if larger.model.m > chosen.model.m:
            self.see(larger)
        fitted = chosen
        while fitted.model.m > 1:
            # What is missed least is merged or deleted, one component at a time.
            smaller = shrink(rows, fitted)
            self.see(smaller)
            fitted = self.best.get(fitted.model.m - 1, smaller)

    def select(self, rows: Rows, chosen: Fitted) -> Selection:
        """Weigh the models."""
        # The answer stands for its number, even if chance saw a better one on the way.
        self.best[chosen.model.m] = chosen
        counts = sorted(self.best)
        weighed = np.array([_criteria(rows, self.best[count]) for count in counts])
        return Selection(
            np.array(counts, dtype=np.int64),
            weighed[:, 0],
            weighed[:, 1],
            weighed[:, 2],
            chosen.model.m,
        )


def _halved(rows: Rows, model: Parameters, j: int) -> Parameters:
    """Return the model with component j twice, once higher and once lower."""
    twice = np.append(np.arange(model.m), j)
    halved = model.pick(twice)
    coef, share, scale = halved.coef.copy(), halved.share.copy(), halved.scale.copy()
    share[[j, -1]] /= 2
    scale[[j, -1]] *= np.sqrt(1 - APART**2)
    step = APART * model.scale[j]
    if rows.intercept:
        coef[j, 0] += step
        coef[-1, 0] -= step
    else:
        # Without an intercept the halves lean to either side of the component.
        direction = coef[j] / max(float(np.linalg.norm(coef[j])), 1e-300)
        coef[j] += step * direction
        coef[-1] -= step * direction
    return Parameters.point(coef, scale, share, halved.origin, halved.noise)


def _criteria(rows: Rows, fitted: Fitted) -> tuple[float, float, float]:
    """Return evidence, BIC and ICL of a model on the searched rows."""
    point = Parameters.point(
        fitted.model.coef,
        fitted.model.scale,
        fitted.sums.size / rows.mass,
        fitted.model.origin,
        fitted.model.noise,
        fitted.model.outlier_law,
        fitted.model.outlier_scale,
    )
    posterior, log_total = responsibilities(rows, point)
    # Coefficients, scale and share of each component; the background's share is the rest.
    free = fitted.model.m * (rows.width + 2) - (not rows.outliers)
    bic = free * float(np.log(rows.mass)) - 2 * float(log_total @ rows.weights)
    entropy = float(entr(posterior).sum(axis=0) @ rows.weights)
    return fitted.score, bic, bic + 2 * entropy


# --- which noise, and whether there are outliers --------------------------------------------------


def choose_noise(
    rows: Rows, few: Rows, path: Path, fitted: Fitted, kind: str, count: int | None
) -> Fitted:
    """Return the model with the likelier noise law, or with Student's if that was asked for.

    With a given number of components (``count``) only models of that many compete. Of many rows,
    the first ones say which law it is.
    """
    if kind == "normal":
        return fitted
    if few is not rows:
        chosen = choose_noise(few, few, path, evaluate(few, fitted.model), kind, count)
        if chosen.model.noise == fitted.model.noise:
            return fitted
        return refit(rows, chosen.model, MODEL.rounds)
    found = [fitted]
    if count is None and fitted.model.m > 1 and 1 in path.best:
        found.append(evaluate(rows, path.best[1].model))
    best = None if kind == "student" else fitted
    for candidate in found:
        if kind == "auto" and not _heavy(rows, candidate):
            continue
        for degrees in SEARCH.degrees:
            # Tails are 20 times less likely to be heavy than normal, a priori.
            goal = -np.inf if best is None else best.score + REGIME_GAIN * (best is fitted)
            model = replace(candidate.model, noise=NoiseLaw(degrees), factor=None)
            trial = refit(rows, model, MODEL.rounds, goal=goal)
            trial = trial if count is not None else prune(rows, trial)
            if trial.score > goal:
                best = trial
    return fitted if best is None else best


def choose_background(
    rows: Rows,
    path: Path,
    fitted: Fitted,
    kind: str,
    count: int | None,
    needed: float = 0.0,
    *,
    free: bool = True,
) -> tuple[Rows, Path, Fitted]:
    """Return rows, path and model without a background, if that is the likelier model.

    Where outliers are possible, any share of them is as likely as any other a priori: next to none
    is improbable, and in a small table the farthest row is soon called one, which makes the noise
    too small. That there are none at all is the rival. Both are equally likely a priori, unless
    outliers need to gain some nats. Where the choice is not ``free``, all stays as it is.
    """
    if not (free and rows.outliers) or late():
        return rows, path, fitted
    clean = replace(rows, outliers=False)
    few = clean.head(int(MODEL.many_rows * rows.width))
    if rows.n >= max(SEARCH.first_rows, SEARCH.growth * few.n):
        # Few rows tell most outliers; all that clean rows can gain is the prior of their share.
        goal = evaluate(replace(few, outliers=True), fitted.model).score
        goal -= np.log(rows.n) + needed
        if refit(few, fitted.model, MODEL.rounds, goal=goal).score < goal:
            return rows, path, fitted
    goal = fitted.score - needed
    best = refit(clean, fitted.model, MODEL.rounds, goal=goal if count is not None else -np.inf)
    others = Path({best.model.m: best})
    for m, seen in path.best.items():
        if m != best.model.m:
            others.see(refit(clean, seen.model, SEARCH.short_rounds))
    likeliest = best if count is not None else max(others.best.values(), key=attrgetter("score"))
    # What one model calls outliers may be a regime of another; then that must gain what a regime
    # must, for neither the regime nor that there are no outliers stands without the other.
    if best.score < goal and likeliest.score < goal + REGIME_GAIN:
        return rows, path, fitted
    if likeliest.score > best.score + SEARCH.same_score:
        best = likeliest
    if np.isinf(best.model.noise.degrees):
        best = choose_noise(clean, clean, others, best, kind, count)
    return clean, others, best


def _heavy(rows: Rows, fitted: Fitted) -> bool:
    """Say whether tails are heavier than normal: whether a little of Student's law would be a gain.

    The log density of Student's law is that of the normal one plus (D² - 2 D - 1) / (4 degrees) and
    smaller terms, D the squared residual in units of the noise. Under normal noise the bracket has
    mean 0 and variance 56: of many rows, and no background that may hide tails, its sum must gain a
    nat at least.
    """
    model = fitted.model
    point = Parameters.point(model.coef, model.scale, model.share, model.origin)
    point = replace(point, outlier_law=model.outlier_law, outlier_scale=model.outlier_scale)
    squares = squares_of(rows, point)[1]
    members = responsibilities(rows, point)[0][:-1] * rows.weights
    total = float((members * (squares**2 - 2 * squares - 1)).sum())
    held = float(members.sum())
    certain = rows.n >= SEARCH.first_rows and rows.mass - held < 1.0
    return total > 0 and (not certain or total**2 > 2 * 56 * held)


# --- whether there is a relation ------------------------------------------------------------------


def score_of_constants(
    rows: Rows, fitted: Fitted, path: Path | None = None, *, more: int = 1
) -> float:
    """Return the best score found for constants: one, and up to so many more than regimes.

    Models that the search came across say where else constants may be. The evidence of all of them
    is counted from here, so that a model has about the same evidence whichever number was asked
    for.
    """
    alone = rows.constants()
    known = [fitted, *(path.best.values() if path is not None else ())]
    # Few numbers are found from few rows; all rows then judge the best of them.
    some = alone.head(SEARCH.first_rows)
    starts = [_without_slopes(alone, one) for one in known]
    starts += [_levels(alone, k) for k in range(1, max(one.model.m for one in known) + 1 + more)]
    fits: list[Fitted] = []
    for start in starts:
        fits.append(refit(some, start, MODEL.rounds, settled=SEARCH.same_score))
        if len(fits) > len(known) + 1 and fits[-1].score < fits[-2].score - REGIME_GAIN:
            break  # even more levels are even less likely
    best = max(fits, key=attrgetter("score")).model
    rounds = MODEL.rounds if some.n == alone.n else SEARCH.short_rounds
    score = refit(alone, best, rounds).score
    if not rows.outliers:
        return score
    # There may be no outliers either way.
    clean = replace(alone, outliers=False)
    return max(score, *(refit(clean, fit, rounds).score for fit in (best, _levels(alone, 1))))


def _without_slopes(alone: Rows, fitted: Fitted) -> Parameters:
    """Return a constant for each component: that of its rows."""
    model = fitted.model
    flat = Parameters.point(
        np.zeros((model.m, 1)), model.scale, model.share, model.origin, model.noise
    )
    return from_labels(alone, fitted.posterior, flat).model


def _levels(rows: Rows, count: int) -> Parameters:
    """Place constants at quantiles of the response, each as wide as its part of it."""
    middle = np.quantile(rows.y, (np.arange(count) + 0.5) / count)
    gap = np.abs(rows.y - middle[:, None]).min(axis=0)
    scale = max(float(np.sqrt(np.mean(np.minimum(gap, 3.0) ** 2))), rows.smallest_scale)
    share = np.full(count, 0.95 / count)
    return Parameters.point(middle[:, None], np.full(count, scale), share, ("level",) * count)
