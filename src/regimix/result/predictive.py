"""What a mixture says about a response given its row: intervals, and how unlikely one is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln, hyp2f1, log_ndtr, logsumexp, ndtr, stdtr, stdtrit

from regimix.data.validation import chunks
from regimix.threads import in_threads

if TYPE_CHECKING:
    from regimix.result.inference import Inference

Floats = NDArray[np.float64]

# Halvings of the interval in which a quantile is known to lie: to a part in 10^12.
HALVINGS = 40
# From so many degrees of freedom on, Student's law is taken to be normal (quantiles within 0.2 %).
MANY_DEGREES = 1000.0
EPSILON = float(np.finfo(np.float64).eps)
# An error of a prediction is not known if rounding may change it by this part of the noise.
BLUR = 0.01
# Below this, the logarithm of a chance is not that of a number: there are hardly any smaller ones.
LOWEST_LOG = -600.0
# A logarithm of a density that none is below.
NOTHING = -1e300


def deviations(X: NDArray[Any], scale: Floats, inference: Inference) -> tuple[Floats, Floats]:
    """Return the deviation of a new response under each regime, (n, m), and degrees of freedom.

    It has two parts: noise, and the error of the prediction itself. Where no covariance is known,
    or its digits do not suffice (columns far from zero), that error is the average over the rows of
    the fit. Without degrees of freedom the noise is not known: the deviation is infinite, then.
    """
    n, m = X.shape[0], len(scale)
    known = inference.degrees >= 1
    degrees = np.where(known, inference.degrees, np.inf)
    p = int(np.isfinite(inference.intercept_error).any()) + X.shape[1]
    average = scale**2 * p / np.maximum(inference.size, p)
    variance = np.broadcast_to(average, (n, m)).copy()
    covariance = inference.covariance
    for j in range(m):
        if covariance is None or not np.isfinite(covariance[j]).all():
            continue
        p = len(covariance[j])
        for rows in chunks(n, p):
            design = np.ones((X[rows].shape[0], p))
            design[:, : X.shape[1]] = X[rows]
            error = np.einsum("ij,ij->i", design @ covariance[j], design)
            rounding = EPSILON * (np.abs(design) @ np.sqrt(np.diag(covariance[j]))) ** 2
            clear = rounding <= BLUR * scale[j] ** 2
            variance[rows, j] = np.where(clear, error, average[j])
    return np.sqrt(np.where(known, scale**2 + np.maximum(variance, 0.0), np.inf)), degrees


@dataclass(frozen=True, eq=False)
class Forecast:
    """What each regime predicts for rows; shares of the regimes are (n, m), too."""

    means: Floats  # (n, m)
    deviations: Floats  # (n, m), of a new response; infinite where the noise is not known
    degrees: Floats  # (m,), of Student's law

    def intervals(self, level: float) -> Floats:
        """Return the central interval of each regime, (n, m, 2)."""
        reach = stdtrit(self.degrees, 0.5 + level / 2) * self.deviations
        return np.stack([self.means - reach, self.means + reach], axis=-1)

    def equal_tails(self, shares: Floats, level: float) -> Floats:
        """Return the interval that leaves out as much below as above, (n, 2).

        A quantile of the mixture lies between the smallest and the largest of its regimes'; halving
        finds it, for all rows at once. A regime of infinite deviation has half of its responses
        below every number: where those alone fill a tail, the interval has no end.
        """
        ends = np.empty((self.means.shape[0], 2))
        for rows in chunks(*self.means.shape):
            known = np.where(np.isfinite(self.deviations[rows]), shares[rows], 0.0)
            unknown = 1 - known.sum(axis=1)
            for side, tail in enumerate((0.5 - level / 2, 0.5 + level / 2)):
                with np.errstate(divide="ignore", invalid="ignore"):
                    left = (tail - 0.5 * unknown) / (1 - unknown)
                open_end = ~((left > 0) & (left < 1))
                tails = np.where(open_end, 0.5, left)
                end = self._quantiles(rows, known, tails)
                ends[rows, side] = np.where(open_end, (-np.inf, np.inf)[side], end)
        return ends

    def _quantiles(self, rows: slice, shares: Floats, tails: Floats) -> Floats:
        """Return the quantile of each row's mixture of the regimes with a share there, (n,)."""
        inside, aim = shares > 0, tails * shares.sum(axis=1)
        # A regime without noise, whose coefficients are certain, is a step: nearly so will do.
        deviations = np.where(inside, self.deviations[rows], 1.0)
        deviations = np.maximum(deviations, np.finfo(np.float64).tiny)
        means = self.means[rows]
        quantiles = means + stdtrit(self.degrees, tails[:, None]) * deviations
        many = bool((self.degrees >= MANY_DEGREES).all())
        low = np.where(inside, quantiles, np.inf).min(axis=1)
        high = np.where(inside, quantiles, -np.inf).max(axis=1)
        # Where no regime has a share there is nothing to find: any number will do.
        low, high = (np.where(inside.any(axis=1), end, 0.0) for end in (low, high))
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            with np.errstate(over="ignore"):
                scaled = (middle[:, None] - means) / deviations
            chances = ndtr(scaled) if many else stdtr(self.degrees, scaled)
            below = np.einsum("ij,ij->i", shares, chances) < aim
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    def surprise(self, distances: Floats, shares: Floats) -> Floats:
        """Return minus the decimal logarithm of the chance of as unlikely a response, (n,).

        ``distances`` are those of the responses from the means, in units of the deviations, (n, m).

        A response is as unlikely as the largest of its densities under the regimes, each times its
        share. The responses that are likelier form an interval around what each regime predicts;
        together they may overlap. What the model gives to the rest is the chance. Under a regime of
        infinite deviation no response is unlikely.
        """
        (n, m), law = self.means.shape, StudentLaw(self.degrees)

        def scores(rows: slice) -> Floats:
            known = np.isfinite(self.deviations[rows])
            deviation, middle = np.where(known, self.deviations[rows], 1.0), self.means[rows]
            with np.errstate(divide="ignore"):
                log_shares = np.log(np.where(known, shares[rows], 0.0))
                log_unknown = np.log(np.where(known, 0.0, shares[rows]).sum(axis=1))
            heights = log_shares + law.log_peak - np.log(deviation)
            level = (heights - law.drop(distances[rows])).max(axis=1, keepdims=True)
            excess = np.maximum(heights - np.maximum(level, NOTHING), 0.0)
            reach = law.reach(excess) * deviation
            starts, stops = _gaps(middle - reach, middle + reach)
            # Gaps along the last axis but one, regimes along the last.
            with np.errstate(over="ignore"):
                start = (starts[:, :, None] - middle[:, None, :]) / deviation[:, None, :]
                stop = (stops[:, :, None] - middle[:, None, :]) / deviation[:, None, :]
            log_total = _log_total(start, stop, log_shares, law)
            return np.asarray(-np.logaddexp(log_total, log_unknown))

        # Rows by themselves, in threads where a caller has allowed some.
        found = list(in_threads(scores, list(chunks(n, m * (m + 1)))))
        return np.maximum(np.concatenate(found) / math.log(10), 0.0)


class StudentLaw:
    """Student's law for each regime; with many degrees of freedom, the normal law."""

    def __init__(self, degrees: Floats) -> None:
        self.normal = degrees >= MANY_DEGREES
        # Any number where it is not used, so that formulas hold.
        self.degrees = v = np.where(self.normal, 1.0, degrees)
        student = gammaln((v + 1) / 2) - gammaln(v / 2) - 0.5 * np.log(v * math.pi)
        self.log_peak: Floats = np.where(self.normal, -0.5 * math.log(2 * math.pi), student)

    def drop(self, distances: Floats) -> Floats:
        """Return by how much the log density is lower at a distance than at the peak."""
        square, v = np.square(distances), self.degrees
        return np.where(self.normal, 0.5 * square, 0.5 * (v + 1) * np.log1p(square / v))

    def reach(self, drop: Floats) -> Floats:
        """Return the distance at which the log density is lower by so much."""
        v = self.degrees
        student = v * np.expm1(np.where(self.normal, 0.0, 2 * drop / (v + 1)))
        return np.sqrt(np.where(self.normal, 2 * drop, student))

    def below(self, distances: Floats) -> Floats:
        """Return the chance of a smaller number; last axis: regimes."""
        if self.normal.all():
            return np.asarray(ndtr(distances))
        student = stdtr(self.degrees, distances)
        return np.asarray(np.where(self.normal, ndtr(distances), student))

    def log_below(self, distances: Floats) -> Floats:
        """Return the log of the chance of a smaller number; last axis: regimes."""
        if self.normal.all():
            return np.asarray(log_ndtr(distances))
        v = np.broadcast_to(self.degrees, distances.shape)
        with np.errstate(divide="ignore"):
            student = np.log(stdtr(v, distances))
        far = student < LOWEST_LOG
        student[far] = _log_far_below(v[far], distances[far])
        return np.asarray(np.where(self.normal, log_ndtr(distances), student))


def _log_far_below(v: Floats, distances: Floats) -> Floats:
    """Return the log of Student's lower tail, by the series of the incomplete beta function."""
    with np.errstate(divide="ignore", over="ignore"):
        x = v / (v + np.square(distances))
        series = np.log(hyp2f1(0.5 * v + 0.5, 1.0, 0.5 * v + 1, x))
        power = 0.5 * v * np.log(x) + 0.5 * np.log1p(-x)
    return np.asarray(power + series - np.log(v) - betaln(0.5 * v, 0.5))


def _gaps(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return what m intervals leave free of the line, as m + 1 gaps, empty ones included."""
    order = np.argsort(lower, axis=1)
    lower = np.take_along_axis(lower, order, axis=1)
    upper = np.maximum.accumulate(np.take_along_axis(upper, order, axis=1), axis=1)
    end = np.full((lower.shape[0], 1), np.inf)
    return np.hstack([-end, upper]), np.hstack([lower, end])


def _log_total(start: Floats, stop: Floats, log_shares: Floats, law: StudentLaw) -> Floats:
    """Return the log of the chance of a number in one of the gaps, under all regimes, (n,)."""
    with np.errstate(invalid="ignore"):
        # The same chances in the lower tail: there digits stay.
        swap = start + stop > 0
    low, high = np.where(swap, -stop, start), np.where(swap, -start, stop)
    chances = np.maximum(law.below(high) - law.below(low), 0.0).sum(axis=1)
    total = np.einsum("ij,ij->i", chances, np.exp(log_shares))
    # Logarithms are several times the work; half of the digits will do without them.
    rare = total < math.sqrt(EPSILON)
    log_total: Floats = np.log(np.where(rare, 1.0, total))
    if rare.any():
        log_chance = _log_between(low[rare], high[rare], law)
        log_total[rare] = logsumexp(log_chance + log_shares[rare, None, :], axis=(1, 2))
    return log_total


def _log_between(low: Floats, high: Floats, law: StudentLaw) -> Floats:
    """Return the log of the chance of a number between two, both in the lower tail."""
    with np.errstate(invalid="ignore", divide="ignore"):
        log_high = law.log_below(high)
        log_chance = log_high + np.log1p(-np.exp(np.minimum(law.log_below(low) - log_high, 0.0)))
    return np.where(low < high, log_chance, -np.inf)
