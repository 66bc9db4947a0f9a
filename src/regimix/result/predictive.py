"""What a mixture says about a response given its row: intervals, and how unlikely one is.

All is of a block of rows, and arrays have the regimes first: a sum over few regimes is then a sum
of long vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, hyp2f1, log_ndtr, ndtr, stdtr, stdtrit

if TYPE_CHECKING:
    from regimix.result.inference import Inference

Floats = NDArray[np.float64]

# A quantile is known to this part of the interval that it is looked for in.
PRECISION = 1e-12
# From so many degrees of freedom on, Student's law is taken to be normal (quantiles within 0.2 %).
MANY_DEGREES = 1000.0
# Up to so many whole degrees, the finite sum for Student's law is shorter than SciPy's function.
FEW_DEGREES = 100.0
EPSILON = float(np.finfo(np.float64).eps)
# An error of a prediction is not known if rounding may change it by this part of the noise.
BLUR = 0.01
# A chance above this keeps twelve digits as a difference of numbers up to one. Logarithms of both
# tails, which keep all digits of any chance, are several times the work.
COMMON = 1e-4
# Below this, the logarithm of a chance is not that of a number: there are hardly any smaller ones.
LOWEST_LOG = -600.0
# A logarithm of a density that none is below.
NOTHING = -1e300
# Beyond so many deviations the normal law leaves less than rounding a number up to one does.
NORMAL_END = 8.5
# Residuals beyond this many deviations are all equally impossible, and their squares stay finite.
FARTHEST = 1e100


def in_units(residuals: Floats, deviations: Floats) -> Floats:
    """Return residuals in units of deviations."""
    with np.errstate(over="ignore"):
        distances = residuals / deviations
    return np.clip(distances, -FARTHEST, FARTHEST, out=distances)


def deviations(X: Floats, scale: Floats, inference: Inference) -> Floats:
    """Return the deviation of a new response under each regime, (m, n).

    It has two parts: noise, and the error of the prediction itself. Where no covariance is known,
    or its digits do not suffice (columns far from zero), that error is the average over the rows of
    the fit. Without degrees of freedom the noise is not known: the deviation is infinite, then.
    """
    n, d = X.shape
    known = inference.degrees >= 1
    p = int(np.isfinite(inference.intercept_error).any()) + d
    average = scale**2 * p / np.maximum(inference.size, p)
    variance = np.repeat(average[:, None], n, axis=1)
    covariance = inference.covariance
    if covariance is not None:
        design = np.ones((n, covariance.shape[1]))
        design[:, :d] = X
        size = np.abs(design)
        for j in np.flatnonzero(np.isfinite(covariance).all(axis=(1, 2))):
            error = np.einsum("ij,ij->i", design @ covariance[j], design)
            rounding = EPSILON * (size @ np.sqrt(np.diag(covariance[j]))) ** 2
            clear = rounding <= BLUR * scale[j] ** 2
            variance[j, clear] = np.maximum(error[clear], 0.0)
    found: Floats = np.sqrt(scale[:, None] ** 2 + variance)
    found[~known] = np.inf
    return found


@dataclass(frozen=True, eq=False)
class Forecast:
    """What each regime predicts for rows; shares of the regimes are (m, n) or (m, 1), too."""

    means: Floats  # (m, n)
    deviations: Floats  # (m, n) or (m, 1), of a new response; infinite where noise is not known
    degrees: Floats  # (m,), of Student's law

    def intervals(self, level: float) -> Floats:
        """Return the central interval of each regime, (2, m, n)."""
        reach = stdtrit(self.degrees, 0.5 + level / 2)[:, None] * self.deviations
        return np.stack([self.means - reach, self.means + reach])

    def equal_tails(self, shares: Floats, level: float) -> Floats:
        """Return the interval that leaves out as much below as above, (2, n).

        A regime of infinite deviation has half of its responses below every number: where those
        alone fill a tail, the interval has no end.
        """
        known, unknown = shares, np.zeros(1)
        if not np.isfinite(self.deviations).all():
            known = np.where(np.isfinite(self.deviations), shares, 0.0)
            unknown = 1 - known.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = (0.5 - level / 2 - 0.5 * unknown) / (1 - unknown)
        open_end = ~((left > 0) & (left < 1))
        tails = np.where(open_end, 0.5, left)
        ends = (
            sign * np.where(open_end, -np.inf, self._quantiles(sign * self.means, known, tails))
            for sign in (1.0, -1.0)
        )
        return np.stack(list(ends))

    def _quantiles(self, means: Floats, shares: Floats, tails: Floats) -> Floats:
        """Return the quantile of each row's mixture of the regimes with a share there, (n,).

        It lies between the smallest and the largest of the regimes'. No regime has more of the tail
        than all of it, and one has at least its part: that leaves a short interval. In it, Newton's
        steps are taken; where one is hardly shorter than the last, what is left is halved.
        """
        inside, aim = shares > 0, tails * shares.sum(axis=0)
        # A regime without noise, whose coefficients are certain, is a step: nearly so will do.
        deviations = np.where(inside, self.deviations, 1.0)
        deviations = np.maximum(deviations, np.finfo(np.float64).tiny)
        many = bool((self.degrees >= MANY_DEGREES).all())
        laws = [StudentLaw(np.inf if many else v) for v in self.degrees]

        def quantiles(degrees: Any, chances: Floats, outside: float) -> Floats:
            units = stdtrit(np.reshape(degrees, (-1, 1)), np.minimum(chances, 1.0))
            return np.where(inside, means + units * deviations, outside)

        with np.errstate(divide="ignore", invalid="ignore"):
            all_of_it = aim / shares
            part = all_of_it / np.count_nonzero(inside, axis=0)
        degrees = [law.degrees for law in laws]
        smallest = quantiles(self.degrees, tails, np.inf).min(axis=0)
        largest = quantiles(self.degrees, tails, -np.inf).max(axis=0)
        low = np.maximum(smallest, quantiles(degrees, part, np.inf).min(axis=0))
        high = np.minimum(largest, quantiles(degrees, all_of_it, np.inf).min(axis=0))
        # Where no regime has a share there is nothing to find: any number will do.
        smallest, low, high, largest = (
            np.where(inside.any(axis=0), end, 0.0) for end in (smallest, low, high, largest)
        )
        found = x = 0.5 * (low + high)
        rows, step = np.arange(x.size), np.abs(high - low)
        exact = PRECISION * (largest - smallest) + EPSILON * np.abs(x)
        aim = np.broadcast_to(aim, x.shape)
        responses = _Responses(means, deviations, shares, laws)
        while rows.size:
            lacking = aim - responses.below(x)
            low, high = np.where(lacking > 0, x, low), np.where(lacking > 0, high, x)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = np.clip(x + lacking / responses.density(x), low, high)
            short = np.abs(new - x) <= 0.75 * step
            new = np.where(short, new, 0.5 * (low + high))
            step, x = np.abs(new - x), new
            found[rows] = x
            left = step > exact
            if not left.all():
                rows, responses = rows[left], responses.of(left)
                x, step, low, high, exact, aim = (
                    values[left] for values in (x, step, low, high, exact, aim)
                )
        return found

    def surprise(self, residuals: Floats, shares: Floats) -> Floats:
        """Return minus the decimal logarithm of the chance of as unlikely a response, (n,).

        ``residuals`` are those of the responses from the means, (m, n).

        A response is as unlikely as the largest of its densities under the regimes, each times its
        share. The responses that are likelier form an interval around what each regime predicts;
        together they may overlap. What the model gives to the rest is the chance. Under a regime of
        infinite deviation no response is unlikely.
        """
        known = np.isfinite(self.deviations)
        deviations, some = np.where(known, self.deviations, 1.0), np.where(known, shares, 0.0)
        laws = [StudentLaw(np.inf if v >= MANY_DEGREES else v) for v in self.degrees]
        peaks = np.array([[law.log_peak] for law in laws])
        with np.errstate(divide="ignore"):
            heights = np.log(some) + peaks - np.log(deviations)
            log_unknown = np.log(np.where(known, 0.0, shares).sum(axis=0))
        distances = in_units(residuals, deviations)
        level = heights - _each(laws, StudentLaw.drop, distances)
        excess = heights - np.maximum(level.max(axis=0), NOTHING)
        reach = _each(laws, StudentLaw.reach, np.maximum(excess, 0.0)) * deviations
        log_total = _Responses(self.means, deviations, some, laws).log_outside(reach)
        return np.asarray(np.maximum(np.logaddexp(log_total, log_unknown) / -math.log(10), 0.0))


@dataclass(frozen=True, eq=False)
class _Responses:
    """The law of each row's response: the regimes' laws around their means, by their shares."""

    means: Floats  # (m, n)
    deviations: Floats  # (m, n) or (m, 1)
    shares: Floats  # (m, n) or (m, 1)
    laws: Sequence[StudentLaw]

    def of(self, rows: NDArray[Any]) -> _Responses:
        """Return those of some rows."""
        means, deviations, shares = (
            v[:, rows] if v.shape[1] == self.means.shape[1] else v
            for v in (self.means, self.deviations, self.shares)
        )
        return _Responses(means, deviations, shares, self.laws)

    def _units(self, places: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray((places - self.means) / self.deviations)

    def below(self, places: Floats) -> Floats:
        """Return the chance of a response below a place, (n,)."""
        chances = _each(self.laws, StudentLaw.below, self._units(places))
        return np.asarray((chances * self.shares).sum(axis=0))

    def above(self, places: Floats) -> Floats:
        """Return the chance of a response above a place, (n,)."""
        chances = _each(self.laws, StudentLaw.below, -self._units(places))
        return np.asarray((chances * self.shares).sum(axis=0))

    def density(self, places: Floats) -> Floats:
        """Return the density of responses at a place, (n,)."""
        densities = _each(self.laws, StudentLaw.density, self._units(places))
        return np.asarray((densities * (self.shares / self.deviations)).sum(axis=0))

    def log_outside(self, reach: Floats) -> Floats:
        """Return the log of the chance of a response out of reach of every mean, (n,)."""
        filled = reach > 0
        lower, upper = self.means - reach, self.means + reach
        starts, stops = _gaps(lower, upper, filled)
        # Where nothing is reached, all responses lie below the first place.
        last = np.maximum(np.where(filled, upper, -np.inf).max(axis=0), stops[0])
        total = self.below(stops[0]) + self.above(last)
        gap, row = np.nonzero((starts[1:] < stops[1:]) & np.isfinite(stops[1:]))
        there, start, stop = self.of(row), starts[1:][gap, row], stops[1:][gap, row]
        total += np.bincount(row, there.below(stop) - there.below(start), total.size)
        rare = total < COMMON
        log_total: Floats = np.log(np.maximum(total, COMMON))
        log_total[rare] = -np.inf
        gap, row = np.nonzero((starts < stops) & rare)
        log_chance = self.of(row).log_between(starts[gap, row], stops[gap, row])
        np.logaddexp.at(log_total, row, log_chance)
        return log_total

    def log_between(self, starts: Floats, stops: Floats) -> Floats:
        """Return the log of the chance of a response between two places, (n,)."""
        start, stop = self._units(starts), self._units(stops)
        with np.errstate(divide="ignore", invalid="ignore"):
            # The same chances in the lower tail: there digits stay.
            swap = start + stop > 0
            low, high = np.where(swap, -stop, start), np.where(swap, -start, stop)
            log_low, log_high = (_each(self.laws, StudentLaw.log_below, end) for end in (low, high))
            log_chance = log_high + np.log1p(-np.exp(np.minimum(log_low - log_high, 0.0)))
            some = (low < high) & (log_high > -np.inf)
            log_chance = np.where(some, log_chance, -np.inf) + np.log(self.shares)
        return np.asarray(np.logaddexp.reduce(log_chance, axis=0))


def _each(laws: Sequence[StudentLaw], function: Any, values: Floats) -> Floats:
    """Apply a function of a law to the values of its regime, in place."""
    for law, row in zip(laws, values, strict=True):
        row[:] = function(law, row)
    return values


def _gaps(lower: Floats, upper: Floats, filled: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return starts and stops of what m intervals leave free of the line: at most m + 1 gaps.

    As many intervals have begun as have ended: that is a gap. Empty intervals are nowhere.
    """
    end = np.full((1, lower.shape[1]), np.inf)
    stops, starts = (_ranked(np.where(filled, ends, np.inf)) for ends in (lower, upper))
    return np.concatenate([-end, starts]), np.concatenate([stops, end])


def _ranked(values: Floats) -> Floats:
    """Sort the few values of each column in place: NumPy is slow at sorting many short lists."""
    for last in range(len(values) - 1, 0, -1):
        for j in range(last):
            smaller = np.minimum(values[j], values[j + 1])
            np.maximum(values[j], values[j + 1], out=values[j + 1])
            values[j] = smaller
    return values


@dataclass(frozen=True)
class StudentLaw:
    """Student's law; with infinitely many degrees of freedom, the normal law."""

    degrees: float

    @property
    def normal(self) -> bool:
        """Whether it is the normal law."""
        return bool(np.isinf(self.degrees))

    @property
    def log_peak(self) -> float:
        """Log density at its middle."""
        v = self.degrees
        if self.normal:
            return -0.5 * math.log(2 * math.pi)
        return float(gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * np.log(v * math.pi))

    def drop(self, distances: Floats) -> Floats:
        """Return by how much the log density is lower at a distance than at the peak."""
        with np.errstate(over="ignore"):
            square, v = np.square(distances), self.degrees
            return 0.5 * square if self.normal else 0.5 * (v + 1) * np.log1p(square / v)

    def reach(self, drop: Floats) -> Floats:
        """Return the distance at which the log density is lower by so much."""
        v = self.degrees
        with np.errstate(over="ignore"):
            return np.sqrt(2 * drop if self.normal else v * np.expm1(2 * drop / (v + 1)))

    def density(self, distances: Floats) -> Floats:
        """Return the density at a distance."""
        return np.asarray(np.exp(self.log_peak - self.drop(distances)))

    def below(self, distances: Floats) -> Floats:
        """Return the chance of a smaller number, with an error of rounding a number up to one."""
        v = self.degrees
        if self.normal:
            # Most regimes are far from where another one is: that is seen at once.
            near = np.flatnonzero(np.abs(distances) < NORMAL_END)
            if 2 * near.size > distances.size:
                return np.asarray(ndtr(distances))
            chances = np.clip(distances, 0.0, 1.0)
            chances[near] = ndtr(distances[near])
            return chances
        if v > FEW_DEGREES or v % 1:
            return np.asarray(stdtr(v, distances))
        angle = np.arctan(distances / math.sqrt(v))
        if v == 1:
            return 0.5 + angle / math.pi
        sine, cosine = np.sin(angle), np.cos(angle)
        square, total = np.square(cosine), np.ones_like(angle)
        for k in range(int(v) - 2, 1, -2):
            total *= (k - 1) / k * square
            total += 1.0
        total *= sine
        return 0.5 + (0.5 * total if v % 2 == 0 else (angle + cosine * total) / math.pi)

    def log_below(self, distances: Floats) -> Floats:
        """Return the log of the chance of a smaller number, with all its digits."""
        if self.normal:
            return np.asarray(log_ndtr(distances))
        with np.errstate(divide="ignore"):
            found: Floats = np.log(stdtr(self.degrees, distances))
        far = found < LOWEST_LOG
        found[far] = _log_far_below(self.degrees, distances[far])
        return found


def _log_far_below(v: float, distances: Floats) -> Floats:
    """Return the log of Student's lower tail, by the series of the incomplete beta function."""
    with np.errstate(divide="ignore", over="ignore"):
        x = v / (v + np.square(distances))
        series = np.log(hyp2f1(0.5 * v + 0.5, 1.0, 0.5 * v + 1, x))
        power = 0.5 * v * np.log(x) + 0.5 * np.log1p(-x)
    return np.asarray(power + series - np.log(v) - betaln(0.5 * v, 0.5))
