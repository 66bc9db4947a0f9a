"""What a mixture says about a response given its row: intervals, and how unlikely one is.

Functions of plain arrays: what each regime predicts ``means`` (n, m), its deviations, and the
shares of the regimes, (m,) for all rows or (n, m) for each.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr, stdtr, stdtrit

from regimix.intake import chunks

if TYPE_CHECKING:
    from regimix.mixture.inference import Inference

__all__ = ["deviations", "equal_tails", "regime_intervals", "surprise"]

Floats = NDArray[np.float64]

# Halvings of the interval in which a quantile is known to lie: to a part in 10^12.
HALVINGS = 40
# From so many degrees of freedom on, Student's law is taken to be normal (quantiles within 0.2 %).
MANY_DEGREES = 1000.0
EPSILON = float(np.finfo(np.float64).eps)
# An error of a prediction is not known if rounding may change it by this part of the noise.
BLUR = 0.01


def regime_intervals(means: Floats, deviations: Floats, degrees: Floats, level: float) -> Floats:
    """Return the central interval of each regime, (n, m, 2)."""
    reach = stdtrit(degrees, 0.5 + level / 2) * deviations
    return np.stack([means - reach, means + reach], axis=-1)


def deviations(X: NDArray[Any], scale: Floats, inference: Inference) -> tuple[Floats, Floats]:
    """Return the deviation of a new response under each regime, (n, m), and degrees of freedom.

    It has two parts: noise, and the error of the prediction itself. Where no covariance is known,
    or its digits do not suffice (columns far from zero), that error is the average over the rows of
    the fit.
    """
    n, m = X.shape[0], len(scale)
    degrees = np.where(inference.degrees >= 1, inference.degrees, np.inf)
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
    return np.sqrt(scale**2 + np.maximum(variance, 0.0)), degrees


def equal_tails(
    means: Floats, deviations: Floats, degrees: Floats, shares: Floats, level: float
) -> Floats:
    """Return the interval that leaves out as much below as above, (n, 2).

    A quantile of the mixture lies between the smallest and the largest of its regimes' quantiles;
    halving finds it, for all rows at once.
    """
    ends = np.empty((means.shape[0], 2))
    shares, deviations = (np.broadcast_to(part, means.shape) for part in (shares, deviations))
    for rows in chunks(*means.shape):
        inside = shares[rows] > 0
        for side, tail in enumerate((0.5 - level / 2, 0.5 + level / 2)):
            quantiles = means[rows] + stdtrit(degrees, tail) * deviations[rows]
            low = np.where(inside, quantiles, np.inf).min(axis=1)
            high = np.where(inside, quantiles, -np.inf).max(axis=1)
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                scaled = (middle[:, None] - means[rows]) / deviations[rows]
                filled = np.einsum("ij,ij->i", shares[rows], _below(scaled, degrees))
                low, high = (
                    np.where(filled < tail, middle, low),
                    np.where(filled < tail, high, middle),
                )
            ends[rows, side] = 0.5 * (low + high)
    return ends


def _below(scaled: Floats, degrees: Floats) -> Floats:
    many = bool((degrees >= MANY_DEGREES).all())
    return np.asarray(ndtr(scaled) if many else stdtr(degrees, scaled))


def surprise(distances: Floats, means: Floats, scale: Floats, shares: Floats) -> Floats:
    """Return minus the decimal logarithm of the chance of a response at least as unlikely, (n,).

    ``distances`` are those of the responses from the means, in units of the scale, (n, m).

    A response is as unlikely as the largest of its densities under the regimes, each times its
    share. The responses that are likelier form an interval around what each regime predicts;
    together they may overlap. What the model gives to the rest is the chance.
    """
    n, m = means.shape
    scores = np.empty(n)
    with np.errstate(divide="ignore"):
        heights = np.broadcast_to(np.log(shares) - np.log(scale), means.shape)
        log_shares = np.broadcast_to(np.log(shares), means.shape)
    for rows in chunks(n, m * (m + 1)):
        level = (heights[rows] - 0.5 * distances[rows] ** 2).max(axis=1, keepdims=True)
        reach = np.sqrt(np.maximum(2 * (heights[rows] - level), 0.0)) * scale
        starts, stops = _gaps(means[rows] - reach, means[rows] + reach)
        # Gaps along the last axis but one, regimes along the last.
        log_chance = _log_between(
            (starts[:, :, None] - means[rows, None, :]) / scale,
            (stops[:, :, None] - means[rows, None, :]) / scale,
        )
        total = logsumexp(log_chance + log_shares[rows, None, :], axis=(1, 2))
        scores[rows] = -total / math.log(10)
    return np.maximum(scores, 0.0)


def _gaps(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return what m intervals leave free of the line, as m + 1 gaps, empty ones included."""
    order = np.argsort(lower, axis=1)
    lower = np.take_along_axis(lower, order, axis=1)
    upper = np.maximum.accumulate(np.take_along_axis(upper, order, axis=1), axis=1)
    end = np.full((lower.shape[0], 1), np.inf)
    return np.hstack([-end, upper]), np.hstack([lower, end])


def _log_between(start: Floats, stop: Floats) -> Floats:
    """Return the log of the chance of a standard normal number between two others.

    Both are brought to the lower tail, where differences keep their digits.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        swap = start + stop > 0
        low, high = np.where(swap, -stop, start), np.where(swap, -start, stop)
        log_high = log_ndtr(high)
        log_chance = log_high + np.log1p(-np.exp(np.minimum(log_ndtr(low) - log_high, 0.0)))
    return np.where(low < high, log_chance, -np.inf)
