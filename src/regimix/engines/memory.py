"""Rows in memory or in a memory map, read in bounded chunks.

Extra memory: at most five vectors of length n (residuals, their sizes, a scratch of
``numpy.partition``, row lengths in single precision, keys of rows) and one chunk. A batch of starts
is cut so that its blocks of residuals stay within ``BLOCK_BYTES``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import RowSums, Sample, Within
from regimix.engines.draw import draw_distinct, row_keys
from regimix.engines.follow import MemoryFollower
from regimix.intake import chunk_size, chunks
from regimix.problem import Problem

__all__ = ["MemoryEngine"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class MemoryEngine:
    """Serve the reductions of ``engines.base`` from one array."""

    def __init__(self, problem: Problem, chunk_rows: int | None = None) -> None:
        self.problem = problem
        self.chunk_rows = chunk_rows
        self._inverse_scale = 1.0 / problem.scale
        self._keys: tuple[int, NDArray[np.uint64]] | None = None

    def follow(self, n_starts: int, mass: float, *, narrow: bool = False) -> MemoryFollower:
        """Begin to follow starts that keep rows of total weight ``mass`` each."""
        return MemoryFollower(self, n_starts, mass, narrow=narrow)

    def chunks(self) -> Iterator[slice]:
        """Cut the table into consecutive slices of bounded size."""
        return chunks(self.problem.n_rows, self.problem.n_columns, self.chunk_rows)

    def residuals(self, theta: Floats) -> Floats:
        """Residuals of all rows, standardised."""
        block = self.residual_block(theta[None, :])
        return np.asarray(block[0])

    def residual_block(self, thetas: Floats, out: Floats | None = None) -> Floats:
        """Residuals of all rows for a batch of coefficients, (starts, n)."""
        problem = self.problem
        slopes, constants = problem.raw(thetas)
        # (y - center) / scale - constant, with the constants of both sides together.
        shift = problem.target_center / problem.target_scale + constants[:, None]
        block = np.empty((thetas.shape[0], problem.n_rows)) if out is None else out
        for rows in self.chunks():
            part = block[:, rows]
            values = as_float64(problem.X[rows])
            if thetas.shape[0] == 1:
                np.matmul(values, slopes[0], out=part[0])
            else:
                np.matmul(slopes, values.T, out=part)
            np.subtract(problem.y[rows] / problem.target_scale - shift, part, out=part)
        return block

    def standardised(self, rows: Indices | slice) -> Floats:
        """Copy some rows in standardised units, with the constant column first if there is one."""
        problem = self.problem
        picked = problem.X[rows]
        first = int(problem.fit_intercept)
        Z = np.empty((picked.shape[0], problem.n_columns))
        if first:
            Z[:, 0] = 1.0
            np.subtract(picked, problem.center, out=Z[:, 1:])
            Z[:, 1:] *= self._inverse_scale
        else:
            np.multiply(picked, self._inverse_scale, out=Z)
        return Z

    def target(self, rows: Indices | slice) -> Floats:
        """Standardised response of some rows."""
        problem = self.problem
        return (problem.y[rows] - problem.target_center) / problem.target_scale

    @cached_property
    def lengths(self) -> NDArray[np.float32]:
        """Euclidean length of each standardised row, rounded up to single precision."""
        lengths = np.empty(self.problem.n_rows, dtype=np.float32)
        for rows in self.chunks():
            Z = self.standardised(rows)
            lengths[rows] = np.sqrt(np.einsum("ij,ij->i", Z, Z)) * (1 + 1e-6)
        return lengths

    def sums(
        self,
        rows: Indices,
        residuals: Floats | None,
        weights: Floats | None = None,
        theta: Floats | None = None,
    ) -> RowSums:
        """Sum ``w z z'`` and ``w z r`` over the given rows; weights may be negative.

        Residuals are given, or those at ``theta``.
        """
        p = self.problem.n_features + 1
        gram, moment = np.zeros((p, p)), np.zeros(p)
        # Adding a p x p matrix must stay cheap against computing it: no fewer than p rows at once.
        at_once = self.chunk_rows or max(p, chunk_size(p))
        for part in chunks(rows.size, p, at_once):
            values = self.read(rows[part])
            if theta is not None:
                near = self.residuals_of(rows[part], theta, values)
            else:
                assert residuals is not None
                near = residuals[part]
            self._add_rows(gram, moment, values, near, None if weights is None else weights[part])
        gram[1:, 0] = gram[0, 1:]
        gram[1:] *= self._inverse_scale[:, None]
        gram[:, 1:] *= self._inverse_scale
        moment[1:] *= self._inverse_scale
        if not self.problem.fit_intercept:
            gram, moment = gram[1:, 1:], moment[1:]
        return RowSums(gram, moment)

    def read(self, rows: Indices | slice) -> Floats:
        """Copy some rows, centred but not scaled, without a constant column.

        Centring before summing costs one cheap operation and loses nothing; scales can wait until
        the sums are there.
        """
        X = self.problem.X
        picked = X[rows] if isinstance(rows, slice) else X.take(rows, axis=0)
        if not self.problem.fit_intercept:
            return as_float64(picked)
        out = picked if isinstance(rows, np.ndarray) and picked.dtype == np.float64 else None
        return np.asarray(np.subtract(picked, self.problem.center, out=out))

    def slopes(self, thetas: Floats) -> tuple[Floats, Floats]:
        """Slopes and constants that predict from rows as ``read`` gives them."""
        first = int(self.problem.fit_intercept)
        constants = thetas[..., 0] if first else np.zeros(thetas.shape[:-1])
        return thetas[..., first:] * self._inverse_scale, constants

    def residuals_of(self, rows: Indices, theta: Floats, read: Floats | None = None) -> Floats:
        """Residuals of some rows, which may have been read already."""
        slopes, constant = self.slopes(theta)
        residuals = self.target(rows)
        for part in chunks(rows.size, self.problem.n_columns, self.chunk_rows):
            values = self.read(rows[part]) if read is None else read[part]
            residuals[part] -= values @ slopes + constant
        return residuals

    def _add_rows(
        self,
        gram: Floats,
        moment: Floats,
        values: Floats,
        residuals: Floats,
        weights: Floats | None,
    ) -> None:
        """Add rows to sums that have a constant first column, whether it is used or not."""
        weighted = values if weights is None else values * weights[:, None]
        gram[1:, 1:] += weighted.T @ values
        moment[1:] += residuals @ weighted
        if self.problem.fit_intercept:
            gram[0, 1:] += weighted.sum(axis=0)
            gram[0, 0] += values.shape[0] if weights is None else weights.sum()
            moment[0] += residuals.sum() if weights is None else residuals @ weights

    def within(self, theta: Floats, bound: float) -> Within:
        """Find the rows whose absolute residual is at most ``bound``, and sum over them."""
        residuals = self.residuals(theta)
        inside = np.abs(residuals) <= bound
        weights = self.problem.weights
        if weights is not None:
            inside &= weights > 0
        rows = np.flatnonzero(inside)
        near = residuals[rows]
        row_weights = None if weights is None else weights[rows]
        mass = float(rows.size if row_weights is None else row_weights.sum())
        square = float(near @ (near if row_weights is None else near * row_weights))
        return Within(inside, mass, square, self.sums(rows, near, row_weights))

    def row_keys(self, seed: int) -> NDArray[np.uint64]:
        """Keys of all rows by what they say; those of the last seed are remembered."""
        if self._keys is None or self._keys[0] != seed:
            self._keys = seed, row_keys(self.problem, self.chunks(), seed)
        return self._keys[1]

    def sample(self, rows: int, seed: int) -> Sample:
        """Draw distinct rows, whatever their order and repetition in the table."""
        picked, weights = draw_distinct(self.row_keys(seed), self.problem.weights, rows)
        return Sample(self.standardised(picked), self.target(picked), weights)


def as_float64(values: NDArray[Any]) -> Floats:
    """Read a chunk in double precision; copies only what is not."""
    return np.asarray(values, dtype=np.float64)
