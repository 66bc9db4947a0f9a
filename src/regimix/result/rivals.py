"""One relation in place of several regimes: which single explanation suits the same rows best.

A curve, a spread that grows, or skewed noise looks like several straight lines. A rival is one
relation with one or several such ingredients. Each ingredient costs as much a priori as a regime,
and the same score judges all, in nats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Sample
from regimix.model.em import REGIME_GAIN
from regimix.model.laws import resolution
from regimix.model.numbers import MODEL
from regimix.model.relation import COUNTS, Fit, Relation, fit_relation, line_of
from regimix.model.rows import Rows, Units, whitened_rows
from regimix.words import listing, powered, several

Floats = NDArray[np.float64]

# Powers of the response (Box and Cox); zero is the logarithm.
POWERS = (-1.0, -0.5, 0.0, 0.5)
# Quantiles at which splines have their knots: Harrell's for five of them. Three follow no curve
# that turns twice.
KNOTS = (0.05, 0.275, 0.5, 0.725, 0.95)
# Numbers that the columns of a relation may have: 2 MiB, and a few times that while it is fitted.
# Of 50 rows a coefficient, splines are then tried for up to 35 features, squares for up to 50.
MOST_NUMBERS = 1 << 18
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
        "normal", "student6", "student3", "laplace", or "counts" (negative binomial, for whole
        numbers, with the logarithm of the mean in place of the response).
    skewed : bool
        Whether noise above the relation may be larger or smaller than below.
    lead : float
        Evidence beyond that of the regimes, on the same rows, in nats.
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
            return "A model of counts (Poisson, negative binomial) suits this response."
        if self.power != 1.0:
            what = "its logarithm" if self.power == 0.0 else f"its power {self.power:g}"
            return f"Fit {what} in place of the response."
        if self.terms != "linear":
            return (
                "Add columns for squares and products of the features, or let the shares of the "
                "regimes depend on the features (gating)."
            )
        if self.spread != "nothing":
            return "Regimes that differ in noise alone are one relation of uneven spread."
        return "Regimes that differ in intercept or noise alone are one relation with such noise."

    def describe(self, target: str = "y", features: Sequence[str] = ("x",)) -> str:
        """Say which relation it is, in a phrase that begins with "one"."""
        response = powered(target, self.power)
        if self.noise == COUNTS:
            response = f"the logarithm of the expected {target}"
        by = listing(features) if len(features) <= MOST_NAMED else several(len(features), "feature")
        kind = "relation" if self.terms == "linear" else "curved relation"
        # A model file of a later version may hold what is not known here.
        parts = [SPREADS.get(self.spread, "uneven spread"), NOISES.get(self.noise, "other noise")]
        parts += ["skewed noise"] * self.skewed
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
    "student6": HEAVY,
    "student3": HEAVY,
    "laplace": HEAVY,
    COUNTS: "the noise of counts",
}
# Features that are named; of more, their number.
MOST_NAMED = 2
INGREDIENTS = ("power", "terms", "spread", "noise", "skewed")
PLAIN = Rival()


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
    """

    sample: Sample
    rows: Rows
    unit: float
    regimes: float
    _known: dict[tuple[Any, ...], tuple[Rows, Units, tuple[Floats, float]]] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def step(self) -> float:
        """Resolution of the response."""
        return resolution(self.sample.y)

    @property
    def features(self) -> Floats:
        """Standardised features, without the constant."""
        return self.sample.Z[:, int(self.rows.intercept) :]

    def choices(self) -> Iterator[tuple[str, Any]]:
        """Yield the ingredients that these rows allow."""
        y = self.sample.y
        least = float(y.min())
        for power in POWERS:
            # The derivative of a root is infinite at zero, but not over the width of a step.
            if least > 0 or (least == 0 and self.step > 0 and power > 0):
                yield "power", power
        d = self.features.shape[1]
        for terms, columns in (("quadratic", 2 * d), ("spline", (len(KNOTS) - 1) * d)):
            if self._allows(columns):
                yield "terms", terms
        yield "spread", "fitted"
        yield "spread", "log fitted"
        if self._allows(2 * d):
            yield "spread", "features"
        for noise in ("student6", "student3", "laplace"):
            yield "noise", noise
        if least >= 0 and bool((y == np.round(y)).all()):
            yield "noise", COUNTS
        yield "skewed", True

    def _allows(self, columns: int) -> bool:
        """Say whether there are rows enough for so many columns, and the table stays small."""
        n = self.rows.n
        return n >= MODEL.many_rows * columns and n * columns <= MOST_NUMBERS

    def columns(self, terms: str) -> Floats:
        """Return the columns of a relation, without the constant."""
        features = self.features
        if terms == "linear":
            return features
        columns = (
            [features**2] if terms == "quadratic" else [_spline(column) for column in features.T]
        )
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
        if self.step > 0:
            # Zero has no logarithm; a response is hardly ever nearer to it than one step.
            low, high = np.maximum(y - 0.5 * self.step, 0.5 * y), y + 0.5 * self.step
            rise = _power(high, rival.power) - _power(low, rival.power)
            return _power(y, rival.power), np.log(rise / (high - low))
        slope = np.log(abs(rival.power) or 1.0) + (rival.power - 1.0) * np.log(y)
        return _power(y, rival.power), slope

    def _whitened(self, rival: Rival) -> tuple[Rows, Units, tuple[Floats, float]]:
        """Return the rows of a relation, their units, and a line to begin with."""
        key = rival.power, rival.terms, rival.noise == COUNTS
        if key not in self._known:
            columns = self.columns(rival.terms)
            if self.rows.intercept:
                columns = np.column_stack([np.ones(len(columns)), columns])
            rows, units = whitened_rows(
                Sample(columns, self.response(rival)[0], self.sample.weights),
                intercept=self.rows.intercept,
                outliers=self.rows.outliers,
            )
            rows = replace(rows, log_background=self.rows.log_background)
            self._known.clear()  # the next ones are variants of this one; others may be large
            self._known[key] = rows, units, line_of(rows)
        return self._known[key]

    def relation(self, rival: Rival, expected: Floats) -> Relation:
        """Build the relation of a rival; ``expected`` is where a fit with even spread has it."""
        rows, units, line = self._whitened(rival)
        log_slope = self.response(rival)[1]
        rounding = self.step / np.sqrt(12.0) * np.exp(log_slope) / units.y_scale
        log_slope = log_slope + np.log(self.unit)
        if rival.noise == COUNTS:
            known = (self.sample.y, units.y_center, units.y_scale)
            return Relation(rows, line, log_slope, rounding, COUNTS, counts=known)
        log_slope -= np.log(units.y_scale)
        spread = self._spread(rival.spread, expected * units.y_scale + units.y_center)
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
        """Return the rival with its evidence."""
        score = self._fitted(rival).score - REGIME_GAIN * len(rival.ingredients)
        return replace(rival, lead=score - self.regimes)

    def _fitted(self, rival: Rival) -> Fit:
        expected = np.zeros(self.rows.n)
        if rival.spread in ("fitted", "log fitted"):
            expected = self._fitted(replace(rival, spread="nothing")).expected
        return fit_relation(self.relation(rival, expected))


def find_rivals(contest: Contest, most: int = len(INGREDIENTS)) -> tuple[Rival, ...]:
    """Fit relations to the rows, adding the ingredient that gains most as long as one does.

    Returns
    -------
    rivals : tuple of Rival
        All that were fitted, the likeliest first. The plain straight line is none: whether one
        regime is enough, the search has decided.
    """
    seen = {PLAIN: contest.fit(PLAIN)}
    best, choices = seen[PLAIN], list(contest.choices())
    left = most
    while left:
        for name, value in choices:
            trial = replace(best, **{name: value})
            # Counts have a response and a noise law of their own.
            counts = trial.noise == COUNTS
            if trial not in seen and not (counts and set(trial.ingredients) - {"noise", "terms"}):
                seen[trial] = contest.fit(trial)
        top = max(seen.values(), key=lambda rival: rival.lead)
        gained, best, left = top.lead - best.lead, top, left - 1
        # Further ingredients gain no more than the best one did, as a rule.
        if gained <= 0 or best.lead + left * gained < 0:
            break
    del seen[PLAIN]
    return tuple(sorted(seen.values(), key=lambda rival: -rival.lead))


@dataclass(frozen=True)
class RegimeCheck:
    """Whether the rows of a regime are as the model says: straight, even in spread, normal.

    Attributes
    ----------
    curve, spread, noise : float
        What a curve, an uneven spread, or a skewed or heavy-tailed law would gain, in nats, with
        what it costs a priori; NaN if there are too few rows to tell.
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
) -> list[RegimeCheck]:
    """Compare each regime with less simple relations of its own rows."""
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
        contest = Contest(sample, white, units.y_scale, 0.0)
        line = contest.fit(PLAIN).lead
        gains = {"terms": -np.inf, "spread": -np.inf, "noise": -np.inf}
        for name, value in contest.choices():
            what = "noise" if name == "skewed" else name
            if what in gains and value != COUNTS:
                gain = contest.fit(replace(PLAIN, **{name: value})).lead - line
                gains[what] = max(gains[what], gain)
        checks.append(RegimeCheck(gains["terms"], gains["spread"], gains["noise"]))
    return checks


def _power(y: Floats, power: float) -> Floats:
    """Return a rising function of the response."""
    if power == 0.0:
        return np.log(y)
    with np.errstate(divide="ignore"):
        return np.asarray(np.sign(power) * y**power)


def _spline(x: Floats) -> Floats:
    """Return the curved columns of a natural cubic spline."""
    knots = np.unique(np.quantile(x, KNOTS))
    if knots.size < 3:
        return np.empty((x.size, 0))
    cubes = np.maximum(x[:, None] - knots, 0.0) ** 3
    slopes = (cubes[:, :-1] - cubes[:, -1:]) / (knots[-1] - knots[:-1])
    return np.asarray(slopes[:, :-1] - slopes[:, -1:])
