"""The rows that a search for all components works on: whitened, in memory, few enough."""

from __future__ import annotations

from dataclasses import dataclass

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
    log_background : float
        Logarithm of the flat density of rows that belong nowhere.
    """

    design: Floats
    y: Floats
    weights: Floats
    intercept: bool
    log_background: float

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

    def take(self, index: Indices) -> Rows:
        """Return some of the rows, with the same background."""
        return Rows(
            self.design[index],
            self.y[index],
            self.weights[index],
            self.intercept,
            self.log_background,
        )

    def around(self, coef: Floats) -> Rows:
        """Return the rows with what ``coef`` predicts taken off the response."""
        shifted = self.y - self.design @ coef
        return Rows(self.design, shifted, self.weights, self.intercept, self.log_background)


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
    rows = Rows(design, scaled, weights, intercept, _flat(scaled, weights))
    return rows, Units(whitening, center, scale)


def _flat(y: Floats, weights: Floats) -> float:
    """Log density of a uniform law over the bulk of the response."""
    low, high = (weighted_quantile(y, weights, level) for level in (TAIL, 1 - TAIL))
    extent = high - low or float(np.ptp(y)) or 1.0
    # The response has unit spread here, unless most of it is constant.
    return -float(np.log(ROOM * min(extent, LARGEST_EXTENT)))
