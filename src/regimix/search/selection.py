"""What the score decides: how many regimes, which noise, outliers or none, a relation or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import chdtr, chdtri, entr, expit

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
from regimix.model.given_values import evidence_given_values
from regimix.model.labelling import SURE
from regimix.model.laws import NoiseLaw
from regimix.model.numbers import MODEL
from regimix.model.rows import Rows, weighted_quantile
from regimix.search.numbers import SEARCH
from regimix.trimmed.reweight import CUTOFF

Floats = NDArray[np.float64]

# --- fewer regimes --------------------------------------------------------------------------------


def prune(rows: Rows, fitted: Fitted) -> Fitted:
    """Merge and delete components while that raises the score."""
    while fitted.model.m > 1:
        empty = interpolated(fitted)
        if empty.any() and not empty.all():
            fitted = refit(rows, fitted.model.pick(~empty), SEARCH.short_rounds)
            continue
        if late():
            break
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
    # As many deletions as unions: what the others make of its rows shows when they are refitted.
    without = scores_without(rows, fitted)
    for j in np.argsort(-without)[: SEARCH.merges_tried]:
        if fitted.score - without[j] <= limit:
            others = fitted.model.pick(np.arange(fitted.model.m) != j)
            trials.append(refit(rows, others, rounds, goal=goal))
    return trials


# --- how many regimes -----------------------------------------------------------------------------

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


@dataclass
class Path:
    """The best fitted model of each number of components that a search came across."""

    best: dict[int, Fitted] = field(default_factory=dict)

    def see(self, fitted: Fitted) -> None:
        """Remember a model if it is the best of its size."""
        if fitted.model.m:
            self.best[fitted.model.m] = best_of(fitted, self.best.get(fitted.model.m))

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


def best_of(first: Fitted, second: Fitted | None, margin: float = 0.0) -> Fitted:
    """Return the better of two models of the same size; the second must be better by a margin.

    Components of no more rows than coefficients show nothing, however often rows are repeated: a
    model with such a component is of a smaller size, really.
    """
    if second is None:
        return first
    real = [not interpolated(one).any() for one in (first, second)]
    return second if (real[1], second.score) > (real[0], first.score + margin) else first


def interpolated(fitted: Fitted) -> NDArray[np.bool_]:
    """Say which components have no more rows than coefficients."""
    rows: Floats = fitted.posterior[:-1].sum(axis=1)
    return np.asarray(rows <= fitted.model.coef.shape[1])


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


# --- which noise, and whether there are outliers --------------------------------------------------


def choose_noise(
    rows: Rows, few: Rows, fitted: Fitted, kind: str, known: float = -np.inf
) -> Fitted:
    """Return the model with the likelier noise law, or with Student's if that was asked for.

    Of many rows, the first ones say which law it is. None is followed where it cannot reach the
    ``known`` score.
    """
    if kind == "normal" or (kind == "auto" and np.isfinite(fitted.model.noise.degrees)):
        return fitted
    if kind == "auto" and not _heavy(few, fitted.model):
        return fitted
    if few is not rows:
        chosen = choose_noise(few, few, evaluate(few, fitted.model), kind)
        if chosen.model.noise == fitted.model.noise:
            return fitted
        return refit(rows, chosen.model, MODEL.rounds)
    best = None if kind == "student" else fitted
    for degrees in SEARCH.degrees:
        goal = known if best is None else max(best.score, known)
        model = replace(fitted.model, noise=NoiseLaw(degrees), factor=None)
        trial = refit(rows, model, MODEL.rounds, goal=goal)
        if trial.score > goal:
            best = trial
    return fitted if best is None else best


@dataclass(frozen=True)
class Weighed:
    """A model of some number of regimes, with outliers and without.

    Where outliers are possible, any share of them is as likely as any other a priori: next to none
    is improbable, and in a small table the farthest row is soon called one, which makes the noise
    too small. So that there are none is weighed too, as likely a priori as that there are.

    Attributes
    ----------
    dirty, clean : Fitted or None
        The best model with outliers, and without any; None if that is out of the question.
    favour : float
        Nats by which none is likelier a priori; below zero, that there are some.
    """

    dirty: Fitted | None
    clean: Fitted | None = None
    favour: float = 0.0

    @classmethod
    def of(cls, rows: Rows, fitted: Fitted) -> Weighed:
        """Take a model as it is."""
        return cls(fitted) if rows.outliers else cls(None, fitted)

    @property
    def fitted(self) -> Fitted:
        """The likelier of the two."""
        fitted = self.clean if self.chance < 0.5 else self.dirty
        assert fitted is not None
        return fitted

    @property
    def chance(self) -> float:
        """Probability that there are outliers."""
        if self.dirty is None or self.clean is None:
            return float(self.clean is None)
        return float(expit(self.dirty.score - self.clean.score - self.favour))

    @property
    def outliers(self) -> Parameters | None:
        """The model that knows what outliers to expect among new rows, if it is the other one."""
        return None if self.dirty is None or self.chance >= 0.5 else self.dirty.model

    @property
    def price(self) -> float:
        """What the likelier of the two must gain beyond the other."""
        return max(self.favour if self.fitted is self.dirty else -self.favour, 0.0)

    @property
    def score(self) -> float:
        """Evidence of the likelier of the two, less its price."""
        return self.fitted.score - self.price

    def in_place_of_outliers(self) -> Weighed:
        """Charge for regimes of rows that another model calls outliers.

        That must gain what a regime must once more: neither the regime nor that there are no
        outliers stands without the other.
        """
        return replace(self, favour=-REGIME_GAIN)

    def of_most(self, rows: Rows) -> Weighed:
        """Leave out the model in which most rows are outliers, if there may be none."""
        few = self.dirty is not None and 2 * float(self.dirty.sums.size.sum()) < rows.mass
        return replace(self, dirty=None) if few and self.clean is not None else self

    def without_outliers(self, rows: Rows) -> Weighed:
        """Leave out the model with outliers."""
        pure = replace(rows, outliers=False)
        return Weighed(None, self.clean or refit(pure, self.fitted.model, MODEL.rounds))

    def settle(self, rows: Rows, rounds: int, settled: float) -> Weighed:
        """Run rounds of EM until little is left to gain."""
        return self._each(
            rows,
            lambda kind, fitted: best_of(refit(kind, fitted, rounds, settled=settled), fitted),
        )

    def smaller(self, rows: Rows) -> Weighed:
        """Take away a regime: merge or delete, whichever loses less."""
        return self._each(rows, shrink)

    def better(self, other: Weighed | None) -> Weighed:
        """Return the best of two models of the same number of regimes; if alike, this one."""
        if other is None:
            return self
        dirty = self.dirty and best_of(self.dirty, other.dirty, SEARCH.same_score)
        clean = self.clean and best_of(self.clean, other.clean, SEARCH.same_score)
        return replace(self, dirty=dirty, clean=clean)

    def _each(self, rows: Rows, change: Callable[[Rows, Fitted], Fitted]) -> Weighed:
        pure = replace(rows, outliers=False)
        return replace(
            self,
            dirty=None if self.dirty is None else change(rows, self.dirty),
            clean=None if self.clean is None else change(pure, self.clean),
        )


@dataclass(frozen=True)
class Repeats:
    """Independent searches of the same rows.

    Attributes
    ----------
    scores : tuple of float
        Of the model that each search ended with; minus infinity if it is not what was asked for.
    ends : tuple of Weighed
        These models.
    """

    scores: tuple[float, ...] = ()
    ends: tuple[Weighed, ...] = ()

    @property
    def best(self) -> Weighed:
        """The best of these models."""
        return self.ends[int(np.argmax(self.scores))]

    @property
    def agreed(self) -> int:
        """How many of them came to the best answer that any did."""
        return self.agree_with(self.best.fitted, max(self.scores)) if self.scores else 0

    @property
    def gain(self) -> float:
        """By how much the last is better than those before; a regime for outliers has its price."""
        before, last = Repeats(self.scores[:-1], self.ends[:-1]), self.ends[-1]
        if before.best.chance >= 0.5:
            last = last.in_place_of_outliers()
        return min(self.scores[-1], last.score) - max(before.scores)

    def agree_with(self, answer: Fitted, score: float) -> int:
        """Count the searches that came to an answer: to its score, and to its labels."""
        return sum(
            abs(one - score) <= SEARCH.same_score and label_alike(end.fitted, answer)
            for one, end in zip(self.scores, self.ends, strict=True)
        )


def label_alike(first: Fitted, second: Fitted) -> bool:
    """Say whether two models of the same rows are one answer: as many regimes, the same labels.

    Regimes have no order: they are matched so that most rows agree. Rows that one of the models is
    in doubt about may differ.
    """
    m = first.model.m
    if m != second.model.m:
        return False
    clear = np.minimum(*(one.posterior.max(axis=0) for one in (first, second))) >= SURE
    labels = [np.argmax(one.posterior[:, clear], axis=0) for one in (first, second)]
    shared = np.bincount(labels[0] * (m + 1) + labels[1], minlength=(m + 1) ** 2)
    shared = shared.reshape(m + 1, m + 1)
    alike = shared[:m, :m][linear_sum_assignment(shared[:m, :m], maximize=True)].sum()
    return bool(alike + shared[m, m] == clear.sum())


def select(rows: Rows, weighed: dict[int, Weighed], chosen: int) -> Selection:
    """List the criteria of models by their number of regimes."""
    counts = sorted(weighed)
    criteria = np.array([_criteria(rows, weighed[count]) for count in counts])
    evidence, bic, icl = criteria.T
    return Selection(np.array(counts, dtype=np.int64), evidence, bic, icl, chosen)


def _criteria(rows: Rows, weighed: Weighed) -> tuple[float, float, float]:
    """Return evidence, BIC and ICL of a model on the searched rows."""
    fitted, outliers = weighed.fitted, weighed.outliers
    law = outliers or fitted.model
    share = 0.0 if outliers is None else outliers.background * weighed.chance
    point = Parameters.point(
        fitted.model.coef,
        fitted.model.scale,
        fitted.sums.size / rows.mass * (1.0 - share),
        fitted.model.origin,
        fitted.model.noise,
        law.outlier_law,
        law.outlier_scale,
    )
    rows = replace(rows, outliers=weighed.dirty is not None)
    posterior, log_total = responsibilities(rows, point)
    # Coefficients, scale and share of each component; the background's share is the rest.
    free = fitted.model.m * (rows.width + 2) - (not rows.outliers)
    bic = free * float(np.log(rows.mass)) - 2 * float(log_total @ rows.weights)
    entropy = float(entr(posterior).sum(axis=0) @ rows.weights)
    return weighed.score, bic, bic + 2 * entropy


def weigh(
    rows: Rows, few: Rows, seen: Fitted, kind: str, *, free: bool, favour: float = 0.0
) -> Weighed:
    """Weigh a model by its noise law, and with outliers against without.

    Parameters
    ----------
    few : Rows
        The first rows, which tell one noise law from another.
    kind : str
        "normal", "student" or "auto".
    free : bool
        Whether there may be no outliers, though the rows were searched with them.
    favour : float
        Nats by which none is likelier a priori.
    """
    fitted = seen if late() else choose_noise(rows, few, seen, kind)
    if not (rows.outliers and free) or late():
        return Weighed.of(rows, fitted)
    pure = replace(rows, outliers=False)
    if rows.n < SEARCH.growth * max(SEARCH.first_rows // 2, int(MODEL.many_rows * rows.width)):
        clean = refit(pure, seen.model, MODEL.rounds)
    else:
        # All that clean rows can gain is the prior of their share.
        goal = fitted.score - np.log(rows.n) - favour
        clean = _without_background(pure, fitted)
        if clean.score >= goal - REGIME_GAIN:
            clean = refit(pure, clean.model, MODEL.rounds, goal=goal)
        if clean.score < goal:
            return Weighed.of(rows, fitted)
        if fitted.model.noise != seen.model.noise:
            clean = refit(pure, seen.model, MODEL.rounds)
    return Weighed(fitted, choose_noise(pure, pure, clean, kind), favour)


def _without_background(pure: Rows, fitted: Fitted) -> Fitted:
    """Give the rows of the background to the regimes: each to the likeliest, or all to one.

    What the likelihood of the regimes loses by their squared residuals says which.
    """
    model, outlying = fitted.model, fitted.posterior[-1] * pure.weights
    squares = (pure.y - model.coef @ pure.design.T) ** 2
    kernel = -0.5 * model.precision[:, None] * squares
    odds = kernel + (0.5 * model.log_precision + model.log_share[:-1])[:, None]
    size = fitted.sums.size
    square = fitted.sums.at(model.coef).square + size * pure.smallest_scale**2

    def loss(taken: Floats) -> Floats:
        more, wide = taken @ outlying, np.einsum("jn,jn->j", taken * outlying, squares)
        after = (size + more) * np.log((square + wide) / (size + more))
        return np.asarray(0.5 * (after - size * np.log(square / size)))

    nearest = (odds == odds.max(axis=0)).astype(np.float64)
    alone = loss(np.ones(squares.shape))
    j = int(np.argmin(alone))
    if model.m == 1 or alone[j] < loss(nearest).sum():
        nearest = (np.arange(model.m) == j)[:, None]
    posterior = np.vstack(
        [fitted.posterior[:-1] + nearest * fitted.posterior[-1], np.zeros((1, pure.n))]
    )
    return from_labels(pure, posterior, model)


def _heavy(rows: Rows, model: Parameters) -> bool:
    """Say whether tails are heavier than normal: whether a little of Student's law would be a gain.

    The log density of Student's law is that of the normal one plus (D² - 2 D - 1) / (4 degrees) and
    smaller terms, D the squared residual in units of the noise. Under normal noise the bracket has
    mean 0 and variance 56: of many rows, and no background that may hide tails, its sum must gain a
    nat at least.
    """
    point = Parameters.point(model.coef, model.scale, model.share, model.origin)
    point = replace(point, outlier_law=model.outlier_law, outlier_scale=model.outlier_scale)
    squares = squares_of(rows, point)[1]
    members = responsibilities(rows, point)[0][:-1] * rows.weights
    total = float((members * (squares**2 - 2 * squares - 1)).sum())
    held = float(members.sum())
    certain = rows.n >= SEARCH.first_rows and rows.mass - held < 1.0
    return total > 0 and (not certain or total**2 > 2 * 56 * held)


# --- whether there is a relation ------------------------------------------------------------------


def score_of_constants(rows: Rows, noise: str) -> float:
    """Return the best score found for constants at levels of the response.

    They are as many as are likeliest, and as for regimes, the likelier noise law counts (``noise``
    as in `weigh`), and the likelier of with and without outliers. The evidence of all models is
    counted from here. It does not know them, so that a model has the same evidence whichever number
    of regimes was asked for.
    """
    alone, kind = rows.constants(), "normal" if noise == "normal" else "auto"
    best = _constants(alone, kind)
    if rows.outliers:
        pure = replace(alone, outliers=False)
        clean = _constants(pure, kind, best.score)
        alone, best = (pure, clean) if clean.score > best.score else (alone, best)
    # Few numbers are found from few rows; all rows then judge the best of them.
    few = alone.n > SEARCH.first_rows
    more = (best.model, SEARCH.short_rounds) if few else (best, MODEL.rounds)
    return refit(alone, *more).score


def score_without_slopes(rows: Rows, fitted: Fitted, goal: float = -np.inf) -> float:
    """Return the score of a model whose regimes become constants.

    Whether there is a relation is asked of each model: one that has found levels which quantiles of
    the response do not show, or single values that many rows share, owes them nothing to a feature.
    A score that cannot reach ``goal``, that of constants, is not followed to its end.
    """
    model, alone = fitted.model, rows.constants()
    flat = Parameters.point(
        np.zeros((model.m, 1)), model.scale, model.share, model.origin, model.noise
    )
    best = -np.inf
    for outliers in (True, False) if rows.outliers else (False,):
        kind = replace(alone, outliers=outliers)
        # All that clean rows can gain is the prior of their share.
        least = goal - outliers * np.log1p(rows.mass / model.m)
        start = from_labels(kind, fitted.posterior, flat).model
        best = max(best, refit(kind, start, MODEL.rounds, goal=max(least, best)).score)
        if best < least:
            break
    return best


def relation_given_values(rows: Rows, counts: Floats) -> tuple[float, float, Floats]:
    """Ask for one relation given the values of the response, whatever law they have.

    All rows must show it, and also those whose features lie in the bulk: a few rows far from the
    others are no reason to say that these follow a line. (Responses far from the others are part of
    the law, and where they do not follow a line there is no evidence of one.)

    Returns
    -------
    float, float
        What all rows show, and the rows of the bulk at most as much; zero below what a relation
        must gain.
    ndarray of shape (n,)
        As how many rows each was counted: as ``counts`` says, unless equal rows are copies.
    """
    width = rows.features.shape[1]
    gain, counted = evidence_given_values(rows.features, rows.y, counts, rows.weights)
    if gain < REGIME_GAIN:
        return 0.0, 0.0, counted
    length = np.einsum("ij,ij->i", rows.features, rows.features)
    usual = chdtri(width, 1.0 - chdtr(1, CUTOFF**2)) / chdtri(width, 0.5)
    bulk = length <= usual * weighted_quantile(length, rows.weights, 0.5)
    among = counted * bulk
    core = min(gain, evidence_given_values(rows.features, rows.y, among, among)[0])
    if np.isinf(core):
        return 0.0, 0.0, counted  # no time was left to ask them
    return gain, core if core >= REGIME_GAIN else 0.0, counted


def _constants(alone: Rows, noise: str, known: float = -np.inf) -> Fitted:
    """Return the best constants of the first rows, with outliers or without.

    None is followed farther than it may be better than the others, or than the ``known`` score.
    """
    some = alone.head(SEARCH.first_rows)
    best: Fitted | None = None
    for levels in range(1, some.n + 1):
        goal = max(known, -np.inf if best is None else best.score) - REGIME_GAIN
        fitted = refit(some, _levels(alone, levels), MODEL.rounds, goal=goal)
        if best is None or fitted.score > best.score:
            best = fitted
        elif levels > best.model.m and fitted.score < best.score - REGIME_GAIN:
            break  # even more levels are even less likely
        if late():
            break
    assert best is not None
    return best if late() else choose_noise(some, some, best, noise, known - REGIME_GAIN)


def _levels(rows: Rows, count: int) -> Parameters:
    """Place constants at quantiles of the response, each as wide as its part of it."""
    middle = np.quantile(rows.y, (np.arange(count) + 0.5) / count)
    gap = np.abs(rows.y - middle[:, None]).min(axis=0)
    scale = max(float(np.sqrt(np.mean(np.minimum(gap, 3.0) ** 2))), rows.smallest_scale)
    share = np.full(count, 0.95 / count)
    return Parameters.point(middle[:, None], np.full(count, scale), share, ("level",) * count)
