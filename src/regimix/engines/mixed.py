"""Reductions for all components together: one pass over the rows serves a round of EM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import RowSums
from regimix.problem import Problem

__all__ = ["Law", "MixtureSums", "best_components", "mixture_sums"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

LOG_ROOT_2PI = 0.9189385332046727
# Rows with a smaller share in a component do not enter its sums.
MEMBER = 1e-2
# Rows whose doubt is worth less than this part of a row do not enter its sums.
CERTAIN = 1e-4


@dataclass(frozen=True)
class Law:
    """A mixture of regressions with a flat background, in standardised units.

    Attributes
    ----------
    thetas : ndarray of shape (m, p)
    scale, share : ndarray of shape (m,)
        What is left of the shares to one is the background's.
    log_background : float
        Logarithm of the density of the response of rows that belong nowhere.
    """

    thetas: Floats
    scale: Floats
    share: Floats
    log_background: float

    @property
    def background_share(self) -> float:
        """Share of rows that belong to no component; never zero."""
        return max(1.0 - float(self.share.sum()), 1e-12)

    def sorted(self) -> Law:
        """Put the components in order of share, largest first."""
        return self.pick(np.argsort(-self.share, kind="stable"))

    def pick(self, index: Indices) -> Law:
        """Keep some components."""
        return replace(
            self, thetas=self.thetas[index], scale=self.scale[index], share=self.share[index]
        )


@dataclass(frozen=True)
class MixtureSums:
    """Sums over all rows, by their shares in each component.

    Attributes
    ----------
    sums : tuple of RowSums
        One per component, with residuals at its coefficients.
    size, square : ndarray of shape (m,)
        Rows (by weight) of each component, and their squared residuals.
    log_gain : float
        Log-likelihood over that of the background alone.
    doubt : ndarray of shape (m, p, p) or None
        The part of each Gram matrix that says nothing about the coefficients, because it is not
        certain that its rows belong to the component (Louis 1982); None if not asked for.
    """

    sums: tuple[RowSums, ...]
    size: Floats
    square: Floats
    log_gain: float
    doubt: Floats | None = None


class Rows(Protocol):
    """What these reductions ask of the engine they serve."""

    problem: Problem

    def chunks(self) -> Iterator[slice]: ...
    def read(self, rows: Indices | slice) -> Floats: ...
    def slopes(self, thetas: Floats) -> tuple[Floats, Floats]: ...
    def target(self, rows: Indices | slice) -> Floats: ...
    def sums(self, rows: Indices, residuals: Floats) -> RowSums: ...


def _residuals(engine: Rows, rows: slice, law: Law) -> tuple[Floats, Floats]:
    """Read a chunk, and its residuals at every component (m, c)."""
    values = engine.read(rows)
    slopes, constants = engine.slopes(law.thetas)
    return values, engine.target(rows) - slopes @ values.T - constants[:, None]


def _log_odds(residuals: Floats, law: Law) -> Floats:
    """Log of share times density over that of the background, (m, c)."""
    height = np.log(law.share) - np.log(law.scale) - LOG_ROOT_2PI - law.log_background
    scaled = residuals / law.scale[:, None]
    return np.asarray(height[:, None] - 0.5 * np.square(scaled, out=scaled))


def mixture_sums(engine: Rows, law: Law, *, with_doubt: bool = False) -> MixtureSums:
    """Sum over the rows of each component, every row by its posterior share."""
    problem = engine.problem
    m, first = len(law.scale), int(problem.fit_intercept)
    p = problem.n_features + 1
    gram, moment = np.zeros((m, p, p)), np.zeros((m, p))
    doubt = np.zeros((m if with_doubt else 0, p, p))
    size, square, gain = np.zeros(m), np.zeros(m), 0.0
    for rows in engine.chunks():
        values, residuals = _residuals(engine, rows, law)
        posterior, log_total = _posterior(_log_odds(residuals, law), law)
        weights = None if problem.weights is None else problem.weights[rows]
        gain += float(log_total.sum() if weights is None else log_total @ weights)
        for j in range(m):
            members = np.flatnonzero(posterior[j] > MEMBER)
            share = posterior[j, members]
            if weights is not None:
                share = share * weights[members]
            near, picked = residuals[j, members], values[members]
            weighted = _add_products(gram[j], picked, share)
            moment[j, 1:] += near @ weighted
            moment[j, 0] += near @ share
            size[j] += share.sum()
            square[j] += float((near * share) @ near)
            if with_doubt:
                unsure = (1 - posterior[j, members]) * (near / law.scale[j]) ** 2
                doubtful = np.flatnonzero(unsure > CERTAIN)
                _add_products(doubt[j], picked[doubtful], (share * unsure)[doubtful])
    inverse = np.concatenate([[1.0], 1.0 / problem.scale])
    keep = slice(1 - first, None)
    for matrix in (gram, doubt):
        matrix[:, 1:, 0] = matrix[:, 0, 1:]
        matrix *= inverse[:, None] * inverse
    moment *= inverse
    sums = tuple(RowSums(gram[j, keep, keep], moment[j, keep]) for j in range(m))
    return MixtureSums(sums, size, square, gain, doubt[:, keep, keep] if with_doubt else None)


def _add_products(gram: Floats, values: Floats, weights: Floats) -> Floats:
    """Add rows to a Gram matrix with a constant first column; return them weighted."""
    weighted = np.asarray(values * weights[:, None])
    gram[1:, 1:] += weighted.T @ values
    gram[0, 1:] += weighted.sum(axis=0)
    gram[0, 0] += weights.sum()
    return weighted


def _posterior(log_odds: Floats, law: Law) -> tuple[Floats, Floats]:
    """Turn log odds (m, c) into shares (m, c), and the log density over the background's."""
    rest = np.log(law.background_share)
    top = np.maximum(log_odds.max(axis=0), rest)
    odds = np.exp(log_odds - top)
    total = odds.sum(axis=0) + np.exp(rest - top)
    odds /= total
    return odds, np.log(total) + top


def best_components(engine: Rows, law: Law) -> tuple[NDArray[np.int64], Floats]:
    """Find each row's likeliest component, and its log odds over a row of the background."""
    n = engine.problem.n_rows
    labels, odds = np.empty(n, dtype=np.int64), np.empty(n)
    for rows in engine.chunks():
        log_odds = _log_odds(_residuals(engine, rows, law)[1], law)
        best = np.argmax(log_odds, axis=0)
        labels[rows] = best
        odds[rows] = log_odds[best, np.arange(best.size)]
    return labels, odds - np.log(law.background_share)
