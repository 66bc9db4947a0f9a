"""Whitening: columns of any units and correlation become uncorrelated columns of variance one.

The paper finds the subspace of the components for features with identity covariance (Section
"Global ILTS", feasibility of getting U). Real features are brought there by a linear map, found
robustly: a row far from the others counts as if it lay at the edge of the bulk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Sample

__all__ = ["Whitening", "weighted_quantile", "whiten"]

Floats = NDArray[np.float64]

# A row longer than this many times the median length is shrunk to that length. Gaussian rows of
# three or more columns practically never are.
FAR = 2.0
# The first round measures length in columns that are scaled one by one, the others in whitened
# columns. More rounds would let a rare 0/1 column shrink for ever: it is long wherever it is not
# zero, however it is scaled.
ROUNDS = 3
# A whitened direction may lose this much of its variance to shrinking in a later round, no more.
SMALLEST_SHARE = 0.01
# Directions with less than this share of the largest variance (columns scaled to variance one) are
# dependence up to rounding: Gram matrices carry about 1e-16 per row and column.
RANK_TOLERANCE = 1e-10
# A column that deviates by less than this share of its largest value is constant up to rounding.
CONSTANT = 1e-12


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


def whiten(sample: Sample, *, intercept: bool) -> Whitening:
    """Find the map that whitens the columns of a sample, robustly.

    Columns are scaled to variance one, then whitened by the inverse root of their covariance; each
    round starts over with rows of large length down-weighted, so that few far rows cannot set the
    units. Constant columns and repeated combinations of columns are dropped.

    Parameters
    ----------
    sample : Sample
        Standardised rows.
    intercept : bool
        Whether their first column is the constant.
    """
    columns = sample.Z[:, int(intercept) :]
    weights = sample.weights / sample.weights.sum()
    shrinkage = _shrinkage(columns, weights)
    shrunk = weights * shrinkage
    center = _center(columns, shrunk, intercept)
    # Rounding is relative to the values that count, and far rows count as if they were near.
    sizes = (np.abs(columns) * np.sqrt(shrinkage)[:, None]).max(axis=0)
    transform = _inverse_root(columns - center, sizes, shrunk)
    for _ in range(ROUNDS - 1):
        now = weights * _shrinkage((columns - center) @ transform, weights)
        if np.array_equal(now, shrunk):
            break  # no row was far and none is: another round would change nothing
        shrunk = now
        center = _center(columns, shrunk, intercept)
        white = (columns - center) @ transform
        values, vectors = np.linalg.eigh(_covariance(white, shrunk))
        transform = transform @ (vectors / np.sqrt(np.maximum(values, SMALLEST_SHARE)))
    return Whitening(center, np.ascontiguousarray(transform), intercept)


def weighted_quantile(values: Floats, weights: Floats, level: float) -> float:
    """Find the value below and at which the given share of the weight lies."""
    if weights.min(initial=np.inf) == weights.max(initial=-np.inf):
        # Then the sums are the same in any order, and a partition finds what a sort would.
        place = _place(np.cumsum(weights), level)
        return float(np.partition(values, place)[place])
    order = np.argsort(values, kind="stable")
    return float(values[order[_place(np.cumsum(weights[order]), level)]])


def _place(filled: Floats, level: float) -> int:
    """Return where the sums of weights reach a share of the last.

    They carry rounding; half of four equal weights ends at the second of them.
    """
    place = int(np.searchsorted(filled, level * filled[-1] * (1 - 1e-12)))
    return min(place, filled.size - 1)


def _shrinkage(rows: Floats, weights: Floats) -> Floats:
    """Factor on the squared length of each row that brings far rows to the edge of the bulk."""
    squares = np.einsum("ij,ij->i", rows, rows)
    edge = FAR**2 * weighted_quantile(squares, weights, 0.5)
    if edge <= 0:  # most rows are zero (rare 0/1 columns alone): none is far
        return np.ones(len(rows))
    return np.asarray(edge / np.maximum(squares, edge))


def _center(columns: Floats, weights: Floats, intercept: bool) -> Floats:
    return weights @ columns / weights.sum() if intercept else np.zeros(columns.shape[1])


def _covariance(centred: Floats, weights: Floats) -> Floats:
    """Second moments; the weights of shrunk rows fall short of one, as their squares do."""
    return np.asarray((centred * weights[:, None]).T @ centred)


def _inverse_root(centred: Floats, sizes: Floats, weights: Floats) -> Floats:
    """Return C of full column rank such that ``centred @ C`` is white; no variance, no column."""
    covariance = _covariance(centred, weights)
    variance = np.diag(covariance)
    varies = variance > (CONSTANT * sizes) ** 2
    unit = np.where(varies, 1.0 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(covariance * unit * unit[:, None])
    seen = values > RANK_TOLERANCE * max(float(values.max(initial=0.0)), 1.0)
    return np.asarray(unit[:, None] * vectors[:, seen] / np.sqrt(values[seen]))
