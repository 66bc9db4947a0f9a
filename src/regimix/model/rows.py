"""The rows that a search works on: whitened, in memory, few enough; with prior and background."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Sample
from regimix.model.background import log_backgrounds, resolution
from regimix.model.evidence import Prior
from regimix.model.whiten import Whitening, weighted_quantile, whiten

__all__ = ["Rows", "Units", "whitened_rows"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# The background is as wide as the response between these quantiles.
BULK_LEVEL = 0.1
# The prior, the spread of the response being one: all slopes together, and the intercept, predict
# responses of these variances.
SLOPES_VARIANCE = 2.0
INTERCEPT_VARIANCE = 4.0
# Noise is at most as wide as the response between its quantiles (what is wider explains nothing and
# is background), and at least this; the spread of the response being one.
SMALLEST_NOISE = 1e-7
# Values beyond this many spreads are nobody's, wherever they are.
FARTHEST = 1e9
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
    outlier_laws : ndarray of shape (laws, n)
        Log density of each response if its row belongs to no component, for backgrounds of several
        widths.
    log_background : ndarray of shape (n,)
        The one that suits the response as a whole.
    middle, width_of_y : float
        Median of the response, and its width between the quantiles.
    prior : Prior
    outliers : bool
        Whether there may be rows that belong to no component.
    """

    design: Floats
    y: Floats
    weights: Floats
    intercept: bool
    outlier_laws: Floats
    log_background: Floats
    middle: float
    width_of_y: float
    prior: Prior
    outliers: bool = True

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.design.shape[0])

    @cached_property
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

    @cached_property
    def far(self) -> Floats:
        """Squared distances of the responses from their middle."""
        return np.asarray((self.y - self.middle) ** 2)

    @property
    def smallest_scale(self) -> float:
        """Noise is never taken to be smaller."""
        return float(np.exp(-0.5 * self.prior.log_precision[1]))

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
        return replace(
            self,
            design=self.design[index],
            y=self.y[index],
            weights=self.weights[index],
            outlier_laws=np.ascontiguousarray(self.outlier_laws[:, index]),
            log_background=self.log_background[index],
        )

    def around(self, coef: Floats) -> Rows:
        """Return the rows with what ``coef`` predicts taken off the response."""
        return replace(self, y=self.y - self.design @ coef)

    def within_reach(self) -> Rows:
        """Return the rows with values that are off by many orders of magnitude cut.

        Sources multiply them; to whom such a row belongs does not depend on how far it is.
        """
        if max(np.abs(self.design).max(initial=0.0), np.abs(self.y).max(initial=0.0)) < FARTHEST:
            return self
        design = np.clip(self.design, -FARTHEST, FARTHEST)
        return replace(self, design=design, y=np.clip(self.y, -FARTHEST, FARTHEST))

    def constants(self) -> Rows:
        """Return the rows without their features: what a constant for each component explains.

        Without an intercept the constant is zero.
        """
        column = np.full((self.n, 1), float(self.intercept))
        prior = replace(self.prior, deviation=np.full(1, np.sqrt(INTERCEPT_VARIANCE)))
        return replace(self, design=column, prior=prior)


@dataclass(frozen=True)
class Units:
    """The way from whitened rows back to standardised ones.

    Attributes
    ----------
    whitening : Whitening
    y_center, y_scale : float
        The response of whitened rows is ``(y - y_center) / y_scale``.
    middle, width : float
        Of the background, in standardised units; its width before the model chooses one.
    resolution : float
        Deviation of the rounding of the response, in standardised units; zero if it is not rounded.
    """

    whitening: Whitening
    y_center: float
    y_scale: float
    middle: float
    width: float
    resolution: float

    def back(self, coef: Floats) -> Floats:
        """Translate coefficients (m, width) into standardised coefficients (m, p)."""
        theta = self.whitening.back(coef * self.y_scale)
        if self.whitening.intercept:
            theta[..., 0] += self.y_center
        return theta

    def forth(self, thetas: Floats) -> Floats:
        """Translate standardised coefficients (k, p) into those of whitened rows.

        Directions in which the rows do not vary are lost: they predict nothing.
        """
        first = int(self.whitening.intercept)
        slopes = thetas[:, first:]
        coef = np.linalg.lstsq(self.whitening.transform, slopes.T, rcond=None)[0].T / self.y_scale
        if not first:
            return np.asarray(coef)
        constant = (thetas[:, 0] + slopes @ self.whitening.center - self.y_center) / self.y_scale
        return np.column_stack([constant, coef])


def whitened_rows(sample: Sample, *, intercept: bool, outliers: bool = True) -> tuple[Rows, Units]:
    """Whiten a sample and bring its response to unit spread."""
    whitening = whiten(sample, intercept=intercept)
    features = whitening.apply(sample.Z)
    # Of mean one: evidence counts distinct rows, for copies of a row say nothing new.
    y, weights = sample.y, sample.weights * (sample.weights.size / sample.weights.sum())
    low, middle, high = (
        weighted_quantile(y, weights, level) for level in (BULK_LEVEL, 0.5, 1 - BULK_LEVEL)
    )
    center = middle if intercept else 0.0
    gap = np.abs(y - middle)
    # The mean absolute deviation sees the bulk and is zero only if the response is constant.
    scale = weighted_quantile(gap, weights, 0.5) * MAD_TO_DEVIATION
    scale = scale or float(np.average(gap, weights=weights)) or 1.0
    scaled = (y - center) / scale
    ones = np.ones((len(y), 1))
    design = np.hstack([ones, features]) if intercept else np.ascontiguousarray(features)
    width = max((high - low) / scale, 1.0)
    laws = log_backgrounds(scaled, (middle - center) / scale, width)
    place = (middle - center) / scale
    plain = laws[int(np.argmax(laws @ weights))]
    rounding = resolution(sample.y) / np.sqrt(12.0)
    step = rounding / scale
    prior = Prior(
        _deviations(design.shape[1], intercept=intercept),
        (-2 * np.log(width), -2 * np.log(min(max(step, SMALLEST_NOISE), 0.5 * width))),
        float(np.log(2 * np.log(width / SMALLEST_NOISE))),
    )
    rows = Rows(design, scaled, weights, intercept, laws, plain, place, width, prior, outliers)
    return rows, Units(whitening, center, scale, middle, width * scale, rounding)


def _deviations(width: int, *, intercept: bool) -> Floats:
    """Return the prior deviations of the coefficients of whitened rows."""
    slopes = max(width - int(intercept), 1)
    deviation = np.full(width, np.sqrt(SLOPES_VARIANCE / slopes))
    if intercept:
        deviation[0] = np.sqrt(INTERCEPT_VARIANCE)
    return deviation
