"""The rows that a search works on: whitened, in memory, few enough; with prior and background."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from regimix.data.validation import chunk_size, chunks
from regimix.engines.base import Sample
from regimix.model.evidence import Prior
from regimix.model.laws import (
    LEAST_NOISE,
    ROOT_8,
    coincide_by_chance,
    fall_of_background,
    resolution,
)
from regimix.model.numbers import MODEL

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Whitening:
    """The linear map from standardised rows to whitened features, and the way back.

    Attributes
    ----------
    center : ndarray of shape (d,)
        Location of the columns; zero without an intercept, which alone could absorb it.
    transform : ndarray of shape (d, rank)
        Whitened features are ``(columns - center) @ transform``.
    intercept : bool
        Whether rows have a leading constant column, which whitening leaves alone.
    """

    center: Floats
    transform: Floats
    intercept: bool

    @property
    def rank(self) -> int:
        """Number of whitened features: directions in which the rows vary."""
        return int(self.transform.shape[1])

    def apply(self, Z: Floats) -> Floats:
        """Whiten standardised rows (rows, p); the constant column is left out of the answer."""
        return np.asarray((Z[:, int(self.intercept) :] - self.center) @ self.transform)

    def back(self, coef: Floats) -> Floats:
        """Translate coefficients of whitened features into coefficients of standardised rows.

        Exact: both predict the same for every row, seen or not.

        Parameters
        ----------
        coef : ndarray of shape (..., rank), or (..., 1 + rank) with an intercept
            With the intercept first.

        Returns
        -------
        theta : ndarray of shape (..., p)
        """
        slopes = coef[..., int(self.intercept) :] @ self.transform.T
        if not self.intercept:
            return np.asarray(slopes)
        constant = coef[..., 0] - slopes @ self.center
        return np.concatenate([np.asarray(constant)[..., None], slopes], axis=-1)


def whiten(sample: Sample, *, intercept: bool, robust: bool = True) -> Whitening:
    """Find the map that whitens the columns of a sample.

    Columns are scaled to variance one, then whitened by the inverse root of their covariance; each
    round starts over with rows of large length down-weighted, so that few far rows cannot set the
    units. Constant columns and repeated combinations of columns are dropped.

    Parameters
    ----------
    sample : Sample
        Standardised rows.
    intercept : bool
        Whether their first column is the constant.
    robust : bool
        Whether far rows are down-weighted. If not, lengths are root mean squares over the rows.
    """
    return _whitened(sample, intercept=intercept, robust=robust)[0]


def _whitened(sample: Sample, *, intercept: bool, robust: bool = True) -> tuple[Whitening, Floats]:
    """Find the map as ``whiten`` does; return the whitened rows too."""
    columns = sample.Z[:, int(intercept) :]
    weights = sample.weights / sample.weights.sum()
    shrinkage = _shrinkage(columns, weights) if robust else np.ones(len(columns))
    shrunk = weights * shrinkage
    center = _center(columns, shrunk, intercept)
    centred = columns - center
    # Rounding is relative to the values that count, and far rows count as if they were near.
    sizes, roots = np.zeros(columns.shape[1]), np.sqrt(shrinkage)[:, None]
    for rows in chunks(*columns.shape):
        np.maximum(sizes, np.abs(columns[rows] * roots[rows]).max(axis=0), out=sizes)
    transform = _inverse_root(centred, sizes, shrunk)
    white = centred @ transform
    # More rounds would let a rare 0/1 column shrink for ever.
    for _ in range(MODEL.inner_rounds - 1 if robust else 0):
        now = weights * _shrinkage(white, weights)
        if np.array_equal(now, shrunk):
            break  # no row was far and none is: another round would change nothing
        shrunk = now
        center = _center(columns, shrunk, intercept)
        centred = columns - center
        values, vectors = np.linalg.eigh(_covariance(centred @ transform, shrunk))
        transform = transform @ (vectors / np.sqrt(np.maximum(values, MODEL.gram_rounding)))
        white = centred @ transform
    return Whitening(center, np.ascontiguousarray(transform), intercept), white


def weighted_quantile(values: Floats, weights: Floats, level: float) -> float:
    """Find the value below and at which the given share of the weight lies."""
    if weights.min(initial=np.inf) == weights.max(initial=-np.inf):
        # Then the sums are the same in any order, and a partition finds what a sort would.
        order, filled = None, np.cumsum(weights)
    else:
        order = np.argsort(values, kind="stable")
        filled = np.cumsum(weights[order])
    # The sums carry rounding; half of four equal weights ends at the second of them.
    place = int(np.searchsorted(filled, level * filled[-1] * (1 - MODEL.rounding)))
    place = min(place, filled.size - 1)
    return float(np.partition(values, place)[place] if order is None else values[order[place]])


def weighted_fit(design: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted least squares, steadied by a tiny ridge."""
    n, width = design.shape
    root = np.sqrt(weights)
    block = design * root[:, None]  # times its own transpose: half the work of other products
    if n < width:  # the same solution, by a system of the rows
        gram = block @ block.T
        size = float(np.trace(gram)) / width
        # Without any size the solution is zero, whatever the ridge is, as long as it is a number.
        gram.flat[:: n + 1] += MODEL.gram_rounding * (size if size > 1e-280 else 1.0)
        return np.asarray(block.T @ np.linalg.solve(gram, root * y))
    gram = block.T @ block
    width = max(width, 1)
    gram.flat[:: width + 1] += MODEL.gram_rounding * (float(np.trace(gram)) / width + 1e-300)
    return np.asarray(np.linalg.solve(gram, block.T @ (root * y)))


def _shrinkage(rows: Floats, weights: Floats) -> Floats:
    """Factor on the squared length of each row that brings far rows to the edge of the bulk."""
    squares = np.einsum("ij,ij->i", rows, rows)
    edge = MODEL.far**2 * weighted_quantile(squares, weights, 0.5)
    if edge <= 0:  # most rows are zero (rare 0/1 columns alone): the others say what is far
        some = squares > 0
        if not some.any():
            return np.ones(len(rows))
        edge = MODEL.far**2 * weighted_quantile(squares[some], weights[some], 0.5)
    return np.asarray(edge / np.maximum(squares, edge))


def _center(columns: Floats, weights: Floats, intercept: bool) -> Floats:
    return weights @ columns / weights.sum() if intercept else np.zeros(columns.shape[1])


def _covariance(centred: Floats, weights: Floats) -> Floats:
    """Second moments; the weights of shrunk rows fall short of one, as their squares do."""
    roots, total = np.sqrt(weights)[:, None], np.zeros((centred.shape[1],) * 2)
    # Adding a matrix must stay cheap beside computing it.
    at_once = max(len(total), chunk_size(len(total)))
    for rows in chunks(len(centred), len(total), at_once):
        block = centred[rows] * roots[rows]
        total += block.T @ block
    return total


def _inverse_root(centred: Floats, sizes: Floats, weights: Floats) -> Floats:
    """Return C of full column rank such that ``centred @ C`` is white; no variance, no column."""
    wide = len(centred) < centred.shape[1]
    if wide:
        variance = weights @ centred**2
    else:
        covariance = _covariance(centred, weights)
        variance = np.diag(covariance)
    varies = variance > (MODEL.rounding * sizes) ** 2
    unit = np.where(varies, 1.0 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
    if wide:  # the same directions, from the products of the rows
        block = centred * unit * np.sqrt(weights)[:, None]
        values, vectors = np.linalg.eigh(block @ block.T)
        vectors = block.T @ (vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny)))
    else:
        values, vectors = np.linalg.eigh(covariance * unit * unit[:, None])
    seen = values > MODEL.gram_rounding * max(float(values.max(initial=0.0)), 1.0)
    return np.asarray(unit[:, None] * vectors[:, seen] / np.sqrt(values[seen]))


Indices = NDArray[np.intp]

# From the median absolute deviation to the standard deviation of a normal law.
MAD_TO_DEVIATION = float(1.0 / ndtri(0.75))


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
        As how many rows each counts in the evidence.
    intercept : bool
    log_background : ndarray of shape (n,)
        Log density of each response if its row belongs to no component and outliers are as wide as
        the response.
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
            log_background=self.log_background[index],
        )

    def around(self, coef: Floats) -> Rows:
        """Return the rows with what ``coef`` predicts taken off the response."""
        return replace(self, y=self.y - self.design @ coef)

    def constants(self) -> Rows:
        """Return the rows without their features: what a constant for each component explains.

        Without an intercept the constant is zero.
        """
        column = np.full((self.n, 1), float(self.intercept))
        prior = replace(self.prior, deviation=np.full(1, np.sqrt(MODEL.intercept_variance)))
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
        Least noise of a rounded response, in standardised units; zero if it is not rounded.
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
    whitening, features = _whitened(sample, intercept=intercept)
    # To whom a row belongs hardly depends on how far it is, and squares of one much farther away
    # would leave no digits to the others.
    np.clip(features, -MODEL.farthest, MODEL.farthest, out=features)
    y, weights = sample.y, sample.weights
    resolved = resolution(y)
    rounding = LEAST_NOISE * resolved
    if not coincide_by_chance(sample.Z, y, weights, resolved):
        # Evidence counts distinct rows, for copies of a row say nothing new: the mean row as one,
        # and no row as more. (Else a few heavy rows would pass for many on one plane.)
        weights = np.minimum(weights * (weights.size / weights.sum()), 1.0)
    low, middle, high = (
        weighted_quantile(y, weights, level)
        for level in (MODEL.bulk_level, 0.5, 1 - MODEL.bulk_level)
    )
    center = middle if intercept else 0.0
    gap = np.abs(y - middle)
    # The mean absolute deviation sees the bulk and is zero only if the response is constant.
    scale = weighted_quantile(gap, weights, 0.5) * MAD_TO_DEVIATION
    # Nor may it be so small, where one weight exceeds all others, that these rows are no numbers.
    least = float(gap.max()) / MODEL.farthest
    scale = scale or max(float(np.average(gap, weights=weights)), least) or 1.0
    scaled = np.clip((y - center) / scale, -MODEL.farthest, MODEL.farthest)
    ones = np.ones((len(y), 1))
    design = np.hstack([ones, features]) if intercept else np.ascontiguousarray(features)
    width = max((high - low) / scale, 1.0)
    place = (middle - center) / scale
    outlying = fall_of_background((scaled - place) / width) - np.log(ROOT_8 * width)
    step = rounding / scale
    deviation = np.full(design.shape[1], np.sqrt(MODEL.slopes_variance / max(whitening.rank, 1)))
    deviation[: int(intercept)] = np.sqrt(MODEL.intercept_variance)
    prior = Prior(
        deviation,
        (-2 * np.log(width), -2 * np.log(min(max(step, MODEL.smallest_noise), 0.5 * width))),
        float(np.log(2 * np.log(width / MODEL.smallest_noise))),
    )
    rows = Rows(design, scaled, weights, intercept, outlying, place, width, prior, outliers)
    return rows, Units(whitening, center, scale, middle, width * scale, rounding)
