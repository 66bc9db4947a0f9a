"""The rows that a search for all components works on: whitened, in memory, few enough."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Sample
from regimix.search.whiten import Whitening, weighted_quantile, whiten

__all__ = ["Rows", "whitened_rows"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# The flat background reaches from the 1 % to the 99 % quantile of the response, and a little more.
TAIL = 0.01
ROOM = 1.1
# What no component explains is weighed as a mixture of two laws, in proportions that are learnt
# with the model: tails, and a bell over the bulk, as wide as the response between its 10 % and 90 %
# quantiles (in deviations of a normal law) but no narrower than this part of the whole extent.
BULK_LEVEL = 0.1
BULK_WIDTH = 2.563
NARROWEST = 1 / 20
# Tails are bells, each twice as wide as the one before, and flatness, in the proportions that the
# response suggests. Gross errors have a law of their own: with many rows they would pass for a
# broad component otherwise.
WIDER_BELLS = 10
FLATNESS = 0.1
TAIL_ROUNDS = 30
# So many rows, drawn at random, tell these proportions.
TAIL_ROWS = 10_000
# The extent counts up to this many deviations of the bulk: a few rows that are wrong by many orders
# of magnitude must not set the scale of the rest.
LARGEST_EXTENT = 1000.0
# From the median absolute deviation to the standard deviation of a normal law.
MAD_TO_DEVIATION = 1.482602218505602


@dataclass(frozen=True)
class Rows:
    """Whitened rows ready for search.

    Attributes
    ----------
    design : ndarray of shape (n, width)
        Whitened features, behind a constant column if there is an intercept.
    y : ndarray of shape (n,)
        Response in units of its own spread.
    weights : ndarray of shape (n,)
    intercept : bool
    log_bell, log_tail : ndarray of shape (n,)
        Log density of each response if its row belongs to no component: one of the bulk, or a
        gross error.
    log_background : ndarray of shape (n,)
        Both, in the proportions that fit best when there is no component at all.
    log_flat : float
        Log density of a response that may be anything.
    """

    design: Floats
    y: Floats
    weights: Floats
    intercept: bool
    log_bell: Floats
    log_tail: Floats
    log_background: Floats
    log_flat: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.design.shape[0])

    @property
    def mass(self) -> float:
        """Total weight."""
        return float(self.weights.sum())

    @property
    def width(self) -> int:
        """Coefficients of a component: features and intercept."""
        return int(self.design.shape[1])

    @property
    def features(self) -> Floats:
        """Whitened features without the constant column."""
        return self.design[:, int(self.intercept) :]

    def spread(self) -> float:
        """Return a robust standard deviation of the response."""
        middle = weighted_quantile(self.y, self.weights, 0.5)
        gap = weighted_quantile(np.abs(self.y - middle), self.weights, 0.5)
        return MAD_TO_DEVIATION * gap

    def head(self, count: int) -> Rows:
        """Return the first rows, not copied: of rows in random order they are a sample."""
        return self.take(slice(count))

    def take(self, index: Indices | slice) -> Rows:
        """Return some of the rows, with the same background."""
        return Rows(
            self.design[index],
            self.y[index],
            self.weights[index],
            self.intercept,
            self.log_bell[index],
            self.log_tail[index],
            self.log_background[index],
            self.log_flat,
        )

    def around(self, coef: Floats) -> Rows:
        """Return the rows with what ``coef`` predicts taken off the response."""
        return replace(self, y=self.y - self.design @ coef)

    def against_flat(self) -> Rows:
        """Return the rows with a flat background alone, as fitted models have it."""
        flat = np.full(self.n, self.log_flat)
        return replace(self, log_bell=flat, log_tail=flat, log_background=flat)


@dataclass(frozen=True)
class Units:
    """The way from coefficients of whitened rows back to standardised ones."""

    whitening: Whitening
    y_center: float
    y_scale: float

    def back(self, coef: Floats) -> Floats:
        """Translate coefficients (m, width) into standardised coefficients (m, p)."""
        theta = self.whitening.back(coef * self.y_scale)
        if self.whitening.intercept:
            theta[..., 0] += self.y_center
        return theta

    def forth(self, thetas: Floats, Z: Floats, design: Floats) -> Floats:
        """Translate standardised coefficients (k, p) into those of whitened rows.

        Directions in which the rows do not vary are lost; least squares over the rows' own
        predictions finds the rest.
        """
        wanted = (Z @ thetas.T - self.y_center) / self.y_scale
        return np.asarray(np.linalg.lstsq(design, wanted, rcond=None)[0].T)


def whitened_rows(sample: Sample, *, intercept: bool) -> tuple[Rows, Units]:
    """Whiten a sample and bring its response to unit spread."""
    whitening = whiten(sample, intercept=intercept)
    features = whitening.apply(sample.Z)
    # Of mean one: evidence counts distinct rows, for copies of a row say nothing new.
    y, weights = sample.y, sample.weights * (sample.weights.size / sample.weights.sum())
    center = weighted_quantile(y, weights, 0.5) if intercept else 0.0
    gap = np.abs(y - center)
    # The mean absolute deviation sees the bulk and is zero only if the response is constant.
    scale = weighted_quantile(gap, weights, 0.5) * MAD_TO_DEVIATION
    scale = scale or float(np.average(gap, weights=weights)) or 1.0
    scaled = (y - center) / scale
    ones = np.ones((len(y), 1))
    design = np.hstack([ones, features]) if intercept else np.ascontiguousarray(features)
    bell, tail, both, flat = _background(scaled, weights)
    rows = Rows(design, scaled, weights, intercept, bell, tail, both, flat)
    return rows, Units(whitening, center, scale)


def _background(y: Floats, weights: Floats) -> tuple[Floats, Floats, Floats, float]:
    """Log densities of responses that no component explains: bell, tails, both, and flatness.

    A bell over the bulk, so that a component is credited only for what the features explain:
    against a flat background a bell-shaped response alone would pay for a broad component. Tails
    for gross errors. (The density of the response itself would swallow a regime that ignores the
    features.)
    """
    levels = (TAIL, BULK_LEVEL, 0.5, 1 - BULK_LEVEL, 1 - TAIL)
    low, lower, middle, upper, high = (weighted_quantile(y, weights, level) for level in levels)
    extent = high - low or float(np.ptp(y)) or 1.0
    # The response has unit spread here, unless most of it is constant.
    width = ROOM * min(extent, LARGEST_EXTENT)
    spread = max((upper - lower) / BULK_WIDTH, NARROWEST * width)
    gap = np.abs(y - middle)
    laws = [_bell(gap, spread * 2.0**k) for k in range(WIDER_BELLS + 1)]
    stacked = np.stack([*laws, np.full(y.size, 1 / width)])
    shares = np.full(len(stacked), 1 / len(stacked))
    some, of_some = stacked[:, :TAIL_ROWS], weights[:TAIL_ROWS]
    for _ in range(TAIL_ROUNDS):
        parts = shares[:, None] * some
        shares = (parts / parts.sum(axis=0)) @ of_some / of_some.sum()
    tails = np.maximum(shares[1:], 1e-6)
    # A little flatness in any case: gross errors may be anything.
    tails = (1 - FLATNESS) * tails / tails.sum()
    tails[-1] += FLATNESS
    bell, tail = stacked[0], tails @ stacked[1:]
    both = shares[0] * bell + (1 - shares[0]) * tail
    bell = np.maximum(bell, 1e-300)
    return np.log(bell), np.log(tail), np.log(np.maximum(both, 1e-300)), -float(np.log(width))


def _bell(gap: Floats, spread: float) -> Floats:
    """Return the normal density at a distance from its middle."""
    scaled = np.minimum(gap / spread, 37.0)  # beyond, it is zero in floating point
    return np.asarray(np.exp(-0.5 * scaled**2) / (np.sqrt(2 * np.pi) * spread))
