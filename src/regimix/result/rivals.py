"""One relation in place of several regimes: which single explanation suits the same rows best.

A curve, a spread that grows, or skewed noise looks like several straight lines. A rival is one
relation with one or several such ingredients. Each ingredient costs as much a priori as a regime,
and the same score judges all, in nats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Sample
from regimix.model.em import REGIME_GAIN
from regimix.model.laws import LEAST_NOISE, resolution
from regimix.model.numbers import MODEL
from regimix.model.relation import (
    COUNTS,
    Fit,
    Relation,
    fit_relation,
    line_of,
)
from regimix.model.rows import Rows, weighted_fit, whitened_rows
from regimix.words import listing, powered, several

Floats = NDArray[np.float64]

# Powers of the response (Box and Cox); zero is the logarithm.
POWERS = (0.5, 0.0, -0.5, -1.0)
# Quantiles at which splines have their knots: Harrell's for five of them. Three follow no curve
# that turns twice.
KNOTS = (0.05, 0.275, 0.5, 0.725, 0.95)
# Rows for each column of a relation: its evidence is then exact to about a nat, which is less than
# what an ingredient costs. (Of half as many it would be two to five nats too large.)
ROWS_PER_COLUMN = 4
# Rows that show whether relations are hopeless; and as many columns as they allow, at most: splines
# are tried for up to 31 features, squares for up to 62.
FEW_ROWS = 500
MOST_COLUMNS = FEW_ROWS // ROWS_PER_COLUMN
# Nats that no relation makes up for by what its fit does not see, or by a step that does not gain.
HOPELESS = 50.0
ORDERED = {"power", "noise"}
# Rows of a regime that are checked, at most: they show what matters, and a report does not wait.
MOST_CHECKED = 2000
# A logarithm of fitted values must not see those next to zero: below this quantile all are alike.
# Else a row that is expected at zero, and is there, has next to no spread and any score.
NEXT_TO_ZERO = 0.02
# What the spread depends on is cut at so many standard deviations: its exponential would otherwise
# be decided by a few far rows. (Leads move by some nats in both directions; no answer changed.)
FARTHEST = 4.0


@dataclass(frozen=True)
class Rival:
    """One relation that explains the rows, and how well.

    Attributes
    ----------
    power : float
        Of the response; zero is the logarithm, one the response itself.
    terms : str
        "linear", "quadratic" or "spline"; the last two with products of features, if there are rows
        enough.
    spread : str
        What the noise depends on: "nothing", "fitted", "log fitted" or "features".
    noise : str
        "normal", "student12", "student6", "student3" (Student's law with so many degrees of
        freedom), "laplace", or "counts" (negative binomial, for whole numbers, with the logarithm
        of the mean in place of the response).
    skewed : bool
        Whether noise above the relation may be larger or smaller than below.
    lead : float
        Evidence beyond that of the regimes, on the same rows, in nats. On some of the rows
        (``Mixture.rivals_rows``) fewer regimes than are shown may be likelier; then beyond those.
    """

    power: float = 1.0
    terms: str = "linear"
    spread: str = "nothing"
    noise: str = "normal"
    skewed: bool = False
    lead: float = field(default=np.nan, compare=False)

    @property
    def ingredients(self) -> tuple[str, ...]:
        """What it has beyond a straight line with normal noise."""
        return tuple(name for name in INGREDIENTS if getattr(self, name) != getattr(PLAIN, name))

    @property
    def advice(self) -> str:
        """What to do about it, in a sentence."""
        if self.noise == COUNTS:
            return "If the response counts something, use a model of counts (negative binomial)."
        if self.power != 1.0:
            return self.refit()
        if self.terms != "linear":
            return (
                "Add columns for squares and products of the features, or let the shares of the "
                "regimes depend on the features (gating)."
            )
        if self.spread != "nothing":
            return (
                "A relation of uneven spread may be all there is: plot the residuals of one line "
                "before you rely on the regimes."
            )
        return (
            "A relation with such noise may be all there is: plot the residuals of one line before "
            "you rely on the regimes."
        )

    @property
    def _spread(self) -> str:
        return SPREADS.get(self.spread, "uneven spread")

    def refit(self, remark: str = "") -> str:
        """Say to fit a power of the response, and what that leaves of this relation."""
        what = "the logarithm" if self.power == 0.0 else f"the power {self.power:g}"
        # A power alone would leave the curve.
        curve = "" if self.terms == "linear" else ", with squares and products of the features"
        # Heavy tails are a law of regimes, too.
        parts = "skewed noise" * self.skewed, self._spread
        left = listing([part for part in parts if part])
        still = f" {left[0].upper()}{left[1:]} may look like regimes there, too." if left else ""
        return f"Fit {what} of the response instead{curve}{remark}.{still}"

    def describe(
        self, target: str = "y", features: Sequence[str] = ("x",), line: str = "normal"
    ) -> str:
        """Say which relation it is, in a phrase that begins with "one".

        ``line`` is the noise law of the straight line that it is compared with.
        """
        response = powered(target, self.power)
        if self.noise == COUNTS:
            response = f"the logarithm of the expected {target}"
        by = listing(features) if len(features) <= MOST_NAMED else several(len(features), "feature")
        by = f"both {by}" if len(features) == MOST_NAMED else by
        kind = "relation" if self.terms == "linear" else "curved relation"
        # A model file of a later version may hold what is not known here.
        noise = NOISES.get(self.noise, "other noise")
        other = noise == HEAVY and line not in ("normal", self.noise)
        if self.skewed:
            noise = f"{noise.removesuffix(' noise')}, skewed noise" if noise else "skewed noise"
        if other:
            noise += " of another law"  # the line has heavy tails, too
        # A spread "that depends on" comes last: what followed could be what it depends on, too.
        parts = noise, self._spread
        more = listing([part for part in parts if part])
        return f"one {kind} between {response} and {by}" + (f", with {more}" if more else "")


BY_EXPECTED = "a spread that depends on the expected response"
SPREADS = {
    "nothing": "",
    "fitted": BY_EXPECTED,
    "log fitted": BY_EXPECTED,
    "features": "a spread that depends on the features",
}
HEAVY = "heavy-tailed noise"
NOISES = {
    "normal": "",
    "student12": HEAVY,
    "student6": HEAVY,
    "student3": HEAVY,
    "laplace": HEAVY,
    COUNTS: "the noise of counts",
}
# Degrees of freedom of the laws of that name.
STUDENT = (3, 6, 12)
# Features that are named; of more, their number.
MOST_NAMED = 2
INGREDIENTS = ("power", "terms", "spread", "noise", "skewed")
PLAIN = Rival()


def distinct(rivals: Sequence[Rival]) -> tuple[Rival, ...]:
    """Return the first of those that are described in the same words: what readers tell apart."""
    first = dict[str, Rival]()
    for rival in rivals:
        first.setdefault(rival.describe(), rival)
    return tuple(first.values())


def advised(rivals: Sequence[Rival]) -> Rival:
    """Return the rival to act on: the likeliest, but a power of the response before counts.

    Whole numbers need not count anything (prices), and a power is the smaller change: it comes
    first unless it is clearly less likely.
    """
    best = rivals[0]
    powers = (rival for rival in rivals if rival.power != PLAIN.power)
    near = next(powers, None) if best.noise == COUNTS else None
    return best if near is None or best.lead - near.lead >= REGIME_GAIN else near


def advice(rivals: Sequence[Rival]) -> str:
    """Say what to do about the likeliest of these."""
    best, first = rivals[0], advised(rivals)
    if first is best:
        return best.advice
    return f"{first.refit(', which is nearly as likely')} {best.advice}"


def tried(rivals: Sequence[Rival]) -> str:
    """Say which ingredients were tried, in a sentence."""
    used = {name for rival in rivals for name in rival.ingredients}
    said = listing([words for words, names in TRIED.items() if used & names])
    together = any(len(rival.ingredients) > 1 for rival in rivals)
    how = "one by one and together where that gained" if together else "one by one"
    return f"{said[:1].upper()}{said[1:]} were tried, {how}."


# Ingredients as a sentence names them, all in the plural.
TRIED = {
    "curves": {"terms"},
    "spreads that are not even": {"spread"},
    "other noise laws": {"noise", "skewed"},
    "powers of the response": {"power"},
}


@dataclass(frozen=True)
class Contest:
    """Rows that regimes and rivals explain.

    Attributes
    ----------
    sample : Sample
        Standardised features, the response in the user's units, and weights.
    rows : Rows
        The same rows as the regimes see them.
    unit : float
        One unit of the response of ``rows``, in the user's units.
    regimes : float
        Score of the regimes on these rows.
    line : float
        Score of the best single regime that is known, a straight line with normal noise.
    noise : str
        The noise law of the straight line: that of the regime, if it is the only one.
    """

    sample: Sample
    rows: Rows
    unit: float
    regimes: float
    line: float = -np.inf
    noise: str = PLAIN.noise
    _known: dict[tuple[Any, ...], tuple[Rows, float, float, tuple[Floats, float]]] = field(
        default_factory=dict, repr=False
    )
    _fits: dict[Rival, Fit] = field(default_factory=dict, repr=False)

    @cached_property
    def step(self) -> float:
        """Resolution of the response."""
        return resolution(self.sample.y)

    @property
    def features(self) -> Floats:
        """Standardised features, without the constant."""
        return self.sample.Z[:, int(self.rows.intercept) :]

    @property
    def straight(self) -> Rival:
        """The straight line, before it has an ingredient."""
        return Rival(noise=self.noise)

    def choices(self) -> Iterator[tuple[str, Any]]:
        """Yield the ingredients that these rows allow; first those that need no other columns."""
        y = self.sample.y
        least, d = float(y.min()), self.features.shape[1]
        yield "spread", "fitted"
        yield "spread", "log fitted"
        if self._allows(2 * d):
            yield "spread", "features"
        for noise in ("student6", "student3", "laplace"):
            if noise != self.noise:
                yield "noise", noise
        yield "skewed", True
        for power in POWERS:
            # The derivative of a root is infinite at zero, but not over the width of a step.
            if least > 0 or (least == 0 and self.step > 0 and power > 0):
                yield "power", power
        if least >= 0 and bool((y == np.round(y)).all()):
            yield "noise", COUNTS
        for terms, columns in (("quadratic", 2 * d), ("spline", (len(KNOTS) - 1) * d)):
            if self._allows(columns):
                yield "terms", terms

    def _allows(self, columns: int) -> bool:
        """Say whether there are rows enough for so many columns, and columns are few."""
        columns += self.rows.intercept
        return columns <= min(self.rows.n / ROWS_PER_COLUMN, MOST_COLUMNS)

    def columns(self, terms: str) -> Floats:
        """Return the columns of a relation, without the constant."""
        features = self.features
        if terms == "linear":
            return features
        columns = [features**2]
        if terms == "spline":
            ordered, place = np.sort(features, axis=0), np.array(KNOTS) * (len(features) - 1)
            below, part = ordered[place.astype(int)], (place % 1)[:, None]
            knots = (below + part * (ordered[np.ceil(place).astype(int)] - below)).T
            columns = [_spline(x, np.unique(at)) for x, at in zip(features.T, knots, strict=True)]
        pairs = np.triu_indices(features.shape[1], 1)
        # Products of features come with either, where rows allow.
        if self._allows(pairs[0].size + len(KNOTS) * features.shape[1]):
            columns.append(features[:, pairs[0]] * features[:, pairs[1]])
        return np.hstack([features, *columns])

    def response(self, rival: Rival) -> tuple[Floats, Floats]:
        """Return what the relation explains, and the logarithm of its derivative by y."""
        y = self.sample.y
        if rival.noise == COUNTS:
            return np.log(y + 0.5), np.zeros(y.size)
        if rival.power == 1.0:
            return y, np.zeros(y.size)
        return _raised(y, self.step, rival.power)

    def _whitened(self, rival: Rival) -> tuple[Rows, float, float, tuple[Floats, float]]:
        """Return the rows of a relation, zero and unit of their response, and a first line."""
        key = rival.power, rival.terms, rival.noise == COUNTS
        if key not in self._known:
            rows, near = self.rows, int(np.argmin(np.abs(self.rows.y)))
            center, scale = float(self.sample.y[near]) - self.unit * float(rows.y[near]), self.unit
            if key != (PLAIN.power, PLAIN.terms, False):
                sample = Sample(self._design(rival), self.response(rival)[0], self.sample.weights)
                rows, units = whitened_rows(
                    sample, intercept=rows.intercept, outliers=rows.outliers
                )
                known = self.rows
                rows = replace(rows, log_background=known.log_background, weights=known.weights)
                center, scale = units.y_center, units.y_scale
            self._known.clear()  # the next ones are variants of this one; others may be large
            self._known[key] = rows, center, scale, line_of(rows)
        return self._known[key]

    def _design(self, rival: Rival) -> Floats:
        columns = self.columns(rival.terms)
        return np.column_stack([np.ones(len(columns)), columns]) if self.rows.intercept else columns

    def bound(self, rival: Rival) -> float:
        """Bound the lead of a rival; infinite where that takes more than least squares.

        The evidence of a relation of normal, even noise is no larger than its likelihood.
        """
        weights, mass = self.rows.weights, self.rows.mass
        even = rival == Rival(rival.power, rival.terms)
        if self.rows.outliers or not even:
            return np.inf
        design, (response, log_slope) = self._design(rival), self.response(rival)
        center = response[0]  # a response far from zero would leave no digits to its residuals
        response = response - self.rows.intercept * center
        left = weights @ (response - design @ weighted_fit(design, response, weights)) ** 2
        score = -0.5 * mass * (1.0 + np.log(2 * np.pi * max(left, 1e-300) / mass))
        score += weights @ log_slope + mass * np.log(self.unit)
        return float(score) - REGIME_GAIN * (1 + len(rival.ingredients)) - self.regimes

    def relation(self, rival: Rival, expected: Floats) -> Relation:
        """Build the relation of a rival; ``expected`` is where a fit with even spread has it."""
        rows, center, scale, line = self._whitened(rival)
        log_slope = self.response(rival)[1]
        rounding = LEAST_NOISE * self.step * np.exp(log_slope) / scale
        log_slope = log_slope + np.log(self.unit)
        if rival.noise == COUNTS:
            known = (self.sample.y, center, scale)
            return Relation(rows, line, log_slope, rounding, COUNTS, counts=known)
        log_slope -= np.log(scale)
        spread = self._spread(rival.spread, expected * scale + center)
        return Relation(rows, line, log_slope, rounding, rival.noise, rival.skewed, spread)

    def _spread(self, kind: str, fitted: Floats) -> Floats | None:
        """Return what the logarithm of the noise depends on, standardised."""
        if kind == "nothing":
            return None
        columns = fitted[:, None]
        if kind == "features":
            columns = np.hstack([self.features, self.features**2])
        elif kind == "log fitted":
            size = np.abs(columns)
            columns = np.log(np.maximum(size, max(np.quantile(size, NEXT_TO_ZERO), 1e-300)))
        middle, deviation = columns.mean(axis=0), columns.std(axis=0)
        columns = (columns - middle) / np.where(deviation > 0, deviation, 1.0)
        return np.asarray(np.clip(columns, -FARTHEST, FARTHEST))

    def fit(self, rival: Rival) -> Rival:
        """Return the rival with its evidence; the noise of the straight line costs nothing."""
        price = len(rival.ingredients) - (rival.noise == self.noise != PLAIN.noise)
        return replace(rival, lead=self._fitted(rival).score - REGIME_GAIN * price - self.regimes)

    def _fitted(self, rival: Rival) -> Fit:
        if rival not in self._fits:
            expected = np.zeros(self.rows.n)
            if rival.spread in ("fitted", "log fitted"):
                expected = self._fitted(replace(rival, spread="nothing")).expected
            even = replace(rival, spread="nothing", skewed=False)
            relation, goal = self.relation(rival, expected), self.regimes
            if rival.noise == self.noise and even in self._fits:
                relation = replace(relation, near=self._fits[even])
            self._fits[rival] = fit_relation(relation, goal, goal - HOPELESS)
        return self._fits[rival]


def find_rivals(contest: Contest, most: int = len(INGREDIENTS)) -> tuple[Rival, ...]:
    """Fit relations to the rows, adding the ingredient that gains most as long as one does.

    Returns
    -------
    rivals : tuple of Rival
        All that were fitted, the likeliest first. The plain straight line is none: whether one
        regime is enough, the search has decided. Of those with the same words, the likeliest. None
        if the response is constant: any relation explains it.
    """
    if np.ptp(contest.sample.y) == 0:
        return ()
    plain = contest.fit(contest.straight)
    if most == 1 and contest.noise != PLAIN.noise:
        # The one regime is this relation.
        contest = replace(contest, regimes=plain.lead + contest.regimes, line=-np.inf)
        plain = replace(plain, lead=0.0)
    best = replace(plain, lead=max(plain.lead, contest.line - contest.regimes))
    seen, choices = {plain: best}, list(contest.choices())
    left = most
    while left:
        worse = set[str]()
        for name, value in choices:
            trial = replace(best, **{name: value})
            # Counts have a response and a noise law of their own.
            counts = trial.noise == COUNTS
            if trial not in seen and not (counts and set(trial.ingredients) - {"noise", "terms"}):
                if name in worse and not counts:
                    continue
                # No more than least squares may gain: if it may as often as there are steps left,
                # and there is still no hope, it need not be known.
                most_likely = contest.bound(trial)
                gain = max(most_likely - best.lead, 0.0)
                if most_likely + (left - 1) * gain < 0 and most_likely < -HOPELESS:
                    seen[trial] = replace(trial, lead=most_likely)
                    continue
                seen[trial] = contest.fit(trial)
                # Powers and tails come in their order: where the first step is a wrong one, and
                # nothing is near, the next is not looked at.
                if name in ORDERED and seen[trial].lead < best.lead < -HOPELESS:
                    worse.add(name)
        top = max(seen.values(), key=lambda rival: rival.lead)
        gained, best, left = top.lead - best.lead, top, left - 1
        # Further ingredients gain no more than the best one did, as a rule.
        if gained <= 0 or best.lead + left * gained < 0:
            break
    del seen[plain]
    return distinct(sorted(seen.values(), key=lambda rival: -rival.lead))


@dataclass(frozen=True)
class RegimeCheck:
    """Whether the rows of a regime are as the model says: straight, even in spread, of its noise.

    Attributes
    ----------
    curve, spread, noise : float
        What a curve, an uneven spread, or a skewed or otherwise heavy-tailed law would gain, in
        nats, with what it costs a priori; NaN if there are too few rows to tell.
    """

    curve: float = np.nan
    spread: float = np.nan
    noise: float = np.nan


def check_regimes(
    X: Floats,
    y: Floats,
    labels: NDArray[np.int64],
    weights: Floats,
    count: int,
    *,
    fit_intercept: bool,
    degrees: float = np.inf,
) -> list[RegimeCheck]:
    """Compare each regime with less simple relations of its own rows.

    ``degrees`` are those of Student's law, if the noise of the regimes has it.
    """
    checks = []
    for j in range(count):
        rows = np.flatnonzero((labels == j) & (weights > 0))[:MOST_CHECKED]
        # As in the search: copies of a row say nothing new, and count as its weight.
        distinct, which = np.unique(
            np.column_stack([X[rows], y[rows]]), axis=0, return_inverse=True
        )
        features, responses = distinct[:, :-1], distinct[:, -1]
        columns = X.shape[1] + fit_intercept
        if len(distinct) < MODEL.many_rows * columns or np.ptp(responses) == 0:
            checks.append(RegimeCheck())
            continue
        deviation = features.std(axis=0)
        Z = (features - fit_intercept * features.mean(axis=0)) / np.where(deviation, deviation, 1.0)
        if fit_intercept:
            Z = np.column_stack([np.ones(len(Z)), Z])
        counts = np.bincount(which.ravel(), weights[rows]).astype(np.float64)
        sample = Sample(Z, responses, counts)
        # The rows have been sorted to the regime: none of them is an outlier.
        white, units = whitened_rows(sample, intercept=fit_intercept, outliers=False)
        contest = Contest(sample, white, units.y_scale, 0.0, noise=noise_named(degrees))
        line = contest.fit(contest.straight)
        others = (
            contest.fit(replace(line, **{name: value}))
            for name, value in contest.choices()
            if name != "power" and value != COUNTS
        )
        checks.append(check_of(others, contest.noise, line.lead))
    return checks


def check_of(rivals: Iterable[Rival], noise: str, line: float = 0.0) -> RegimeCheck:
    """Say what ingredients gain over a straight line with this noise law and this lead."""
    gains = dict[str, float]()
    for rival in rivals:
        changed = [name for name in rival.ingredients if name != "noise" or rival.noise != noise]
        if len(changed) == 1 and rival.noise != COUNTS:
            what = "noise" if changed[0] == "skewed" else changed[0]
            gains[what] = max(gains.get(what, -np.inf), rival.lead - line)
    return RegimeCheck(*(gains.get(what, np.nan) for what in ("terms", "spread", "noise")))


def noise_named(degrees: float) -> str:
    """Name Student's law with about these degrees of freedom, or the normal one."""
    if not np.isfinite(degrees):
        return PLAIN.noise
    nearest = min(STUDENT, key=lambda known: abs(np.log(degrees / known)))
    return f"student{nearest}"


def constants_gain(y: Floats, weights: Floats, power: float) -> float:
    """Return how much likelier normal constants are for a power of the response, in nats.

    What a relation of that power is over constants of the response it need not be over those.
    """
    with np.errstate(all="ignore"):
        raised, log_slope = _raised(y, resolution(y), power)
        spread, after = (
            np.average((z - np.average(z, weights=weights)) ** 2, weights=weights)
            for z in (y, raised)
        )
        return float(weights @ log_slope + 0.5 * weights.sum() * np.log(spread / after))


def _raised(y: Floats, step: float, power: float) -> tuple[Floats, Floats]:
    """Return a power of the response, and the logarithm of its derivative over a step."""
    # Zero has no logarithm; a response is hardly ever nearer to it than one step.
    low, high = np.maximum(y - 0.5 * step, 0.5 * y), y + 0.5 * step
    rise = _power(high, power) - _power(low, power)
    wide = rise > 0  # elsewhere a step is lost in rounding
    slope = np.full(y.size, np.log(abs(power) or 1.0))
    slope[~wide] += (power - 1.0) * np.log(y[~wide])
    slope[wide] = np.log(rise[wide] / (high - low)[wide])
    return _power(y, power), slope


def _power(y: Floats, power: float) -> Floats:
    """Return a rising function of the response."""
    if power == 0.0:
        return np.log(y)
    with np.errstate(divide="ignore"):
        return np.asarray(np.sign(power) * y**power)


def _spline(x: Floats, knots: Floats) -> Floats:
    """Return the curved columns of a natural cubic spline."""
    if knots.size < 3:
        return np.empty((x.size, 0))
    cubes = np.maximum(x[:, None] - knots, 0.0) ** 3
    slopes = (cubes[:, :-1] - cubes[:, -1:]) / (knots[-1] - knots[:-1])
    return np.asarray(slopes[:, :-1] - slopes[:, -1:])
