"""One relation given the values of the response: its evidence, whatever law they have.

A response of few values, with heaps or skew has a law that no line with even noise explains, but
constants at its levels do. Whether it depends on the features is another question, and needs no
law: the probability of value v in a row x is proportional to g(v) exp(v x slopes), where g is any
function. Without slopes this is the response's own law; with them its mean moves with the
features. (With normal noise this is linear regression, with two values logistic regression.)

Given which values there are, g drops out, and what is left is how likely the slopes make it that
the values go with just these rows. So evidence is a ratio to all other orders of the same values.
Its mean over these orders is at most one: were there no relation, 3 nats would come up in less
than one of 20 tables, of whatever law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.model.em import late
from regimix.model.evidence import LOG_10, LOG_FIRST, STEEPER
from regimix.model.labelling import SURE
from regimix.model.numbers import MODEL

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Tilt:
    """The response's own law, tilted by the features.

    Attributes
    ----------
    features : ndarray of shape (n, d)
    values : ndarray of shape (k,)
        The values of the response, in units of its spread.
    place : ndarray of shape (n,)
        Which of them each row has.
    weights : ndarray of shape (n,)
    counts : ndarray of shape (k,)
        Weight of the rows that have each value.
    """

    features: Floats
    values: Floats
    place: NDArray[np.intp]
    weights: Floats
    counts: Floats

    @classmethod
    def of(cls, features: Floats, y: Floats, weights: Floats) -> _Tilt:
        """Take the rows that count; of many values, those next to one another are one."""
        some = weights > MODEL.member * weights.max(initial=0.0)
        features, y, weights = features[some], y[some], weights[some]
        values, place = np.unique(y, return_inverse=True)
        if values.size > MODEL.values_apart:
            levels = (np.arange(1, MODEL.values_apart)) / MODEL.values_apart
            cuts = np.quantile(y, levels, method="inverted_cdf")
            place = np.unique(np.searchsorted(cuts, y), return_inverse=True)[1]
        counts = np.bincount(place, weights).astype(np.float64)
        values = np.bincount(place, weights * y) / counts
        middle = np.average(values, weights=counts)
        spread = np.sqrt(np.average((values - middle) ** 2, weights=counts)) or 1.0
        return cls(features, (values - middle) / spread, place, weights, counts)

    def chances(self, heights: Floats, slopes: Floats) -> tuple[Floats, float]:
        """Return the probability of each value in each row, (n, k), and the log likelihood."""
        log_odds = heights + np.outer(self.features @ slopes, self.values)
        log_odds -= log_odds.max(axis=1, keepdims=True)
        chances = np.exp(log_odds)
        total = chances.sum(axis=1, keepdims=True)
        chances /= total
        seen = log_odds[np.arange(self.place.size), self.place] - np.log(total[:, 0])
        return chances, float(self.weights @ seen)

    def curvature(self, chances: Floats, precision: float) -> tuple[Floats, Floats, Floats]:
        """Return minus the second derivatives, by heights, by both, by slopes.

        A constant that is added to all heights changes nothing; a term that holds it is added.
        """
        weighted, counts = chances * self.weights[:, None], self.counts
        mean = chances @ self.values
        by_heights = np.diag(weighted.sum(axis=0)) - chances.T @ weighted
        by_heights += np.outer(counts, counts) / counts.sum()
        # Where features tell values apart for sure, next to nothing is left of either.
        by_heights.flat[:: len(counts) + 1] += MODEL.gram_rounding * counts
        both = (weighted * (self.values - mean[:, None])).T @ self.features
        spread = self.weights * (chances @ self.values**2 - mean**2)
        by_slopes = (self.features * spread[:, None]).T @ self.features
        by_slopes.flat[:: len(by_slopes) + 1] *= 1.0 + MODEL.gram_rounding
        by_slopes.flat[:: len(by_slopes) + 1] += precision
        return by_heights, both, by_slopes

    def evidence(self, order: float) -> tuple[float, Floats]:
        """Return the log evidence where slopes are steeper by powers of ten, and the chances.

        Conditional on the values; Laplace's approximation, with the prior of a component's slopes.
        Minus infinity if there is no time to find out.
        """
        width = self.features.shape[1]
        precision = width / MODEL.slopes_variance * 100.0**-order
        heights, slopes = np.log(self.counts), np.zeros(width)
        chances, likely = self.chances(heights, slopes)
        flat = best = likely
        for _ in range(MODEL.rounds):
            if late():
                return -np.inf, chances
            by_heights, both, by_slopes = self.curvature(chances, precision)
            left = self.values[self.place] - chances @ self.values
            slope = self.features.T @ (self.weights * left) - precision * slopes
            missing = self.counts - chances.T @ self.weights
            inner = np.linalg.solve(by_heights, np.column_stack([both, missing]))
            turn = np.linalg.solve(
                by_slopes - both.T @ inner[:, :-1], slope - both.T @ inner[:, -1]
            )
            raise_by, before = inner[:, -1] - inner[:, :-1] @ turn, best
            for part in 0.5 ** np.arange(MODEL.rounds):  # Newton's step, halved until it is a gain
                there = heights + part * raise_by, slopes + part * turn
                chances, likely = self.chances(*there)
                best = likely - 0.5 * precision * float(there[1] @ there[1])
                if best >= before:
                    heights, slopes = there
                    break
            if best - before < MODEL.settled:
                break
        by_heights, both, by_slopes = self.curvature(chances, precision)
        open_heights = _log_det(by_heights) - float(np.log(self.counts).sum())
        open_slopes = _log_det(by_slopes - both.T @ np.linalg.solve(by_heights, both))
        # The likelihood given the values is the largest one over heights times the root of what
        # these are known by.
        evidence = best - flat + 0.5 * (open_heights - open_slopes + width * np.log(precision))
        return float(evidence + LOG_FIRST - LOG_10 * order), chances


def _log_det(matrix: Floats) -> float:
    return float(np.linalg.slogdet(matrix)[1])


def evidence_given_values(
    features: Floats, y: Floats, weights: Floats, distinct: Floats
) -> tuple[float, Floats]:
    """Return the log evidence of one relation over none, given the values of the response.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Whitened; rows differ in their features or their response.
    y, weights, distinct : ndarray of shape (n,)
        ``distinct`` are the weights of rows that are equal because they are copies of one another:
        where they are so far more often than values repeat among rows of these features.

    Returns
    -------
    float
        Minus infinity if there is no time to find out.
    ndarray of shape (n,)
        The weights that were counted.
    """
    if not features.shape[1] or np.unique(y[weights > 0]).size < 2:
        return 0.0, weights
    tilt = _Tilt.of(features, y, weights)
    best, chances = tilt.evidence(STEEPER[0])
    for order in STEEPER[1:]:
        steeper, there = tilt.evidence(order)
        if steeper <= best:
            break
        best, chances = steeper, there
    if weights is not distinct and _are_copies(tilt, chances):
        return evidence_given_values(features, y, distinct, distinct)
    return best, weights


def _are_copies(tilt: _Tilt, chances: Floats) -> bool:
    """Say whether rows are equal more often than half way from chance to as often as they could be.

    That is, whether their agreement, corrected for chance, exceeds a half (Cohen's kappa). They
    could not be so more often than their features are, or their responses. Where features tell
    responses for sure, there is no way to go.
    """
    same = float(tilt.weights @ np.maximum(tilt.weights - 1.0, 0.0))
    if same == 0.0:
        return False
    _, first, group = np.unique(tilt.features, axis=0, return_index=True, return_inverse=True)
    size = np.bincount(group.ravel(), tilt.weights)
    meetings = size * np.maximum(size - 1.0, 0.0)
    expected = float(meetings @ (chances[first] ** 2).sum(axis=1))
    most = min(float(meetings.sum()), float(tilt.counts @ np.maximum(tilt.counts - 1.0, 0.0)))
    return 2.0 * same > expected + most and expected < SURE * most
