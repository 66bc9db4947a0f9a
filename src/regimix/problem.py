"""The data door: a user's table becomes a checked, frozen, standardised ``Problem``.

Standardising never copies the table. A ``Problem`` holds the user's own memory and four small
arrays that say how a row is read: ``z = (x - center) / scale`` with a leading constant column when
there is an intercept, and ``(y - target_center) / target_scale``. Solvers work with coefficients
``theta`` in those units; ``to_user`` and ``from_user`` translate.

Scales are powers of two, and centers are multiples of a small part of them: dividing is exact,
subtracting is exact for numbers of few digits, and a slope translates without any rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import DataError, ParameterError
from regimix.intake import CHUNK_BYTES, Table, read_target, read_weights

__all__ = ["Problem"]

Floats = NDArray[np.float64]

# Standardising serves conditioning only (the fit is equivariant), so a few thousand evenly spaced
# rows say enough about location and spread, and cost nothing against one pass over the table.
STANDARDISE_ROWS = 4096
# Interquartile range of the standard normal: the factor that turns an IQR into a deviation.
NORMAL_IQR = 1.3489795003921634
# Centers are multiples of this part of the scale: subtracting them is exact for numbers of few
# digits, and what is left of the mean does not tie columns to the constant one.
CENTER_STEPS = 1024
# Squares of values with this spread do not vanish (``intake.LARGEST_VALUE`` is the other end).
SMALLEST_SPREAD = 1e-140
# A value further away than this many spreads is a placeholder, not an outlier: products of a few
# such numbers overflow, and lengths of rows no longer fit into single precision.
FARTHEST = 1e30
# A column whose values are this many times larger than their spread: residuals are differences of
# numbers of that size, and would keep about six digits.
LARGEST_OFFSET = 1e10
# Below this many roundings of the values themselves a spread is no spread.
ROUNDINGS = 8
# Coefficients that a user starts from, standardised: beyond this, squared residuals may overflow.
LARGEST_THETA = 1e60


@dataclass(frozen=True)
class Problem:
    """A regression table that has been checked, and knows the way back to user units.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The user's numbers, in the user's memory; never modified.
    y : ndarray of shape (n,)
        The response in user units.
    weights : ndarray of shape (n,) or None
        Row weights; zero means absent. Whole numbers count repetitions; any others are relative
        importances and were scaled to a mean of one over the rows present.
    counts : bool
        Whether weights are whole numbers (or absent), so that the kept mass is whole too.
    mass : float
        Total weight, the ``n`` of every formula.
    fit_intercept : bool
    center, scale : ndarray of shape (d,)
        Units of the columns; the center is zero without an intercept.
    target_center, target_scale : float
        Units of the response.
    feature_names : tuple of str
        Names of the columns, for messages.
    """

    X: NDArray[Any]
    y: Floats
    weights: Floats | None
    counts: bool
    mass: float
    fit_intercept: bool
    center: Floats
    scale: Floats
    target_center: float
    target_scale: float
    feature_names: tuple[str, ...]

    @classmethod
    def from_arrays(
        cls, X: Any, y: Any, sample_weight: Any = None, *, fit_intercept: bool = True
    ) -> Problem:
        """Check a table, its response and its weights, and find their units."""
        table = Table.read(X)
        target = read_target(y, table.n_rows)
        weights, counts = read_weights(sample_weight, table.n_rows)
        units = _Units.of(table, weights, centred=bool(fit_intercept))
        units.check(table.values, [table.label(i) for i in range(units.scale.size)])
        response = Table(target[:, None], ("y",))
        target_units = _Units.of(response, weights, centred=bool(fit_intercept)).without_jitter()
        target_units.check(response.values, ["y"])
        return cls(
            X=table.values,
            y=target,
            weights=weights,
            counts=counts,
            mass=float(table.n_rows if weights is None else weights.sum()),
            fit_intercept=bool(fit_intercept),
            center=units.center,
            scale=units.scale,
            target_center=float(target_units.center[0]),
            target_scale=float(target_units.scale[0]),
            feature_names=table.names,
        )

    @classmethod
    def from_standardised(
        cls, Z: Floats, y: Floats, weights: Floats | None = None, *, counts: bool = True
    ) -> Problem:
        """Wrap rows that are checked and standardised already; units are trivial."""
        ones = weights is None or bool((weights == 1.0).all())
        return cls(
            X=Z,
            y=y,
            weights=None if ones else weights,
            counts=counts or ones,
            mass=float(y.size if ones or weights is None else weights.sum()),
            fit_intercept=False,
            center=np.zeros(Z.shape[1]),
            scale=np.ones(Z.shape[1]),
            target_center=0.0,
            target_scale=1.0,
            feature_names=tuple(f"z{i}" for i in range(Z.shape[1])),
        )

    @property
    def n_rows(self) -> int:
        """Rows of the table, absent ones included."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Columns of the user's table."""
        return int(self.X.shape[1])

    @property
    def n_columns(self) -> int:
        """Coefficients of one component: the features, and the constant if there is one."""
        return self.n_features + self.fit_intercept

    def raw(self, theta: Floats) -> tuple[Floats, Floats]:
        """Turn standardised coefficients into slopes on raw columns and a constant.

        The response stays standardised: ``(y - target_center) / target_scale`` is predicted by
        ``X @ slopes.T + constant``. Serves passes over X that must not standardise it.

        Parameters
        ----------
        theta : ndarray of shape (..., n_columns)

        Returns
        -------
        slopes : ndarray of shape (..., d)
        constant : ndarray of shape (...)
        """
        first = int(self.fit_intercept)
        slopes = theta[..., first:] / self.scale
        constant = -(slopes @ self.center) if first else np.zeros(theta.shape[:-1])
        if first:
            constant = constant + theta[..., 0]
        return slopes, constant

    def to_user(self, theta: Floats) -> tuple[Floats, Floats]:
        """Translate standardised coefficients into the user's units.

        Returns
        -------
        coef : ndarray of shape (..., d)
        intercept : ndarray of shape (...)
            Zero without an intercept.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            slopes, constant = self.raw(theta)
            coef = slopes * self.target_scale
            intercept = np.asarray(constant * self.target_scale + self.target_center)
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise DataError(
                "a coefficient is too large to be written as a number in the units of this table "
                f"(response of size {self.target_scale:.3g}, columns of size "
                f"{self.scale.min():.3g} to {self.scale.max():.3g}); rescale the columns or the "
                "response."
            )
        return coef, intercept

    def from_user(self, coef: Floats, intercept: Floats | float = 0.0) -> Floats:
        """Translate coefficients in the user's units into standardised ones.

        Parameters
        ----------
        coef : ndarray of shape (..., d)
        intercept : ndarray of shape (...)

        Returns
        -------
        theta : ndarray of shape (..., n_columns)
        """
        coef = np.asarray(coef, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            relative = coef / self.target_scale
            theta = relative * self.scale
            if self.fit_intercept:
                first = (np.asarray(intercept) - self.target_center) / self.target_scale
                first = np.asarray(first + relative @ self.center)
                theta = np.concatenate([first[..., None], theta], axis=-1)
            usable = (np.abs(theta) <= LARGEST_THETA).all()
        if not usable:
            raise ParameterError(
                f"coefficients up to {np.abs(coef).max():.3g} (intercept up to "
                f"{np.abs(intercept).max():.3g}) predict values so far from this table (response "
                f"of size {self.target_scale:.3g}) that their squares overflow; pass coefficients "
                "in the units of the table."
            )
        return theta

    def residual_floor(self, theta: Floats) -> Floats:
        """Bound the rounding error of a typical residual, for each of a batch of coefficients.

        Residuals below it are rounding noise: they count as equal, so that the kept set of an
        exact fit is decided by row order and not by the last bit.
        """
        first = int(self.fit_intercept)
        digits = 1.0 + np.abs(self.center) / self.scale
        size = (
            1.0 + np.abs(theta[..., first:]) @ digits + abs(self.target_center / self.target_scale)
        )
        if first:
            size = size + np.abs(theta[..., 0])
        precision = 4 * np.finfo(np.float64).eps * math.sqrt(max(1, self.n_columns))
        return np.asarray(precision * size)


@dataclass(frozen=True)
class _Units:
    """Location and spread of each column, with its extent over all rows.

    Attributes
    ----------
    center, scale, lowest, highest : ndarray of shape (d,)
    """

    center: Floats
    scale: Floats
    lowest: Floats
    highest: Floats

    @classmethod
    def of(cls, table: Table, weights: Floats | None, *, centred: bool) -> _Units:
        """Find the units of a table from a sample of its rows, a few columns at a time."""
        lowest, highest = table.extent()
        rows = _standard_rows(table.n_rows, weights)
        row_weights = None if weights is None else weights[rows]
        center, scale = np.zeros_like(lowest), np.ones_like(lowest)
        block = max(1, CHUNK_BYTES // (8 * rows.size))
        for first in range(0, lowest.size, block):
            part = slice(first, first + block)
            sample = table.values[rows, part].astype(np.float64)
            center[part], scale[part] = _spread(
                sample, row_weights, lowest[part], highest[part], centred=centred
            )
        return cls(center, scale, lowest, highest)

    def without_jitter(self) -> _Units:
        """Take values that differ by rounding alone for equal ones, of their own size."""
        jitter = self.scale <= _rounding(self.center)
        scale = np.where(jitter, _power_of_two(np.abs(self.center)), self.scale)
        return _Units(self.center, scale, self.lowest, self.highest)

    def check(self, values: NDArray[Any], labels: list[str]) -> None:
        """Refuse columns that double precision cannot handle, and say what would help."""
        widest = np.maximum(self.highest - self.center, self.center - self.lowest)
        small = self.scale < SMALLEST_SPREAD
        blurred = np.abs(self.center) > LARGEST_OFFSET * self.scale
        stretched = widest > FARTHEST * self.scale
        for i in np.flatnonzero(small | blurred | stretched)[:1]:
            spread = f"{labels[i]} varies by about {self.scale[i]:.3g}"
            if small[i]:
                raise DataError(
                    f"{spread}, too little: squares of that vanish in double precision (at least "
                    f"{SMALLEST_SPREAD:g} is needed). Multiply it by a power of ten first."
                )
            if blurred[i]:
                raise DataError(
                    f"{spread} around {self.center[i]:.6g}: too few digits are left for that in "
                    f"double precision. Subtract {self.center[i]:.6g} first, or leave it out if it "
                    "is meant to be constant."
                )
            row = int(np.argmax(np.abs(values[:, i] - self.center[i])))
            raise DataError(
                f"{spread} but is {values[row, i]:.6g} in row {row} (counting from 0), more than "
                f"{FARTHEST:g} times as far from the rest. Drop the row if that is a placeholder; "
                "if it is not, set the tiny values to zero or take logarithms."
            )


def _standard_rows(n_rows: int, weights: Floats | None) -> NDArray[np.intp]:
    """Pick evenly spaced rows among those present."""
    present = None if weights is None else np.flatnonzero(weights)
    count = n_rows if present is None else present.size
    if count <= STANDARDISE_ROWS:
        return np.arange(n_rows) if present is None else present
    places = np.linspace(0, count - 1, STANDARDISE_ROWS).astype(np.intp)
    return places if present is None else present[places]


def _spread(
    sample: Floats, weights: Floats | None, lowest: Floats, highest: Floats, *, centred: bool
) -> tuple[Floats, Floats]:
    """Find a robust location and spread per column; fall back until the spread is not zero.

    A rare 0/1 column has no interquartile range, perhaps no deviation in the sample; the extent
    over all rows tells whether it varies at all. A constant column has the scale of its value.
    """
    if centred:
        lower, center, upper = _quartiles(sample, weights)
        scale = (upper - lower) / NORMAL_IQR
    else:
        center = np.zeros(sample.shape[1])
        scale = _quartiles(np.abs(sample), weights)[1]
    deviation = np.sqrt(np.average((sample - center) ** 2, axis=0, weights=weights))
    widest = np.maximum(highest - center, center - lowest)
    for fallback in (deviation, widest):
        scale = np.where(scale > _rounding(center), scale, fallback)
    scale = _power_of_two(scale)
    constant = highest == lowest
    size = np.abs(lowest)
    smallest_size = SMALLEST_SPREAD if centred else 0.0
    size = np.where(size > smallest_size, _power_of_two(size), 1.0)
    if centred:
        center = np.where(constant, lowest, _multiple(center, scale / CENTER_STEPS))
    return center, np.where(constant, size, scale)


def _quartiles(sample: Floats, weights: Floats | None) -> Floats:
    """Quartiles of each column, each one of its values: a whole weight equals as many copies."""
    levels = np.array([0.25, 0.5, 0.75])
    if weights is None:
        places = np.ceil(levels * len(sample)).astype(np.intp) - 1
        return np.asarray(np.sort(sample, axis=0)[places])
    order = np.argsort(sample, axis=0)
    filled = np.cumsum(weights[order], axis=0)
    below = np.array([np.count_nonzero(filled < level * filled[-1], axis=0) for level in levels])
    return np.take_along_axis(sample, np.take_along_axis(order, below, axis=0), axis=0)


def _rounding(values: Floats) -> Floats:
    """How much rounding may move values of this size."""
    return np.asarray(ROUNDINGS * np.finfo(np.float64).eps * np.abs(values))


def _power_of_two(values: Floats) -> Floats:
    """Round positive numbers to the power of two next in ratio; zero stays near zero."""
    fraction, exponent = np.frexp(values)
    return np.asarray(np.ldexp(1.0, exponent - (fraction < math.sqrt(0.5))))


def _multiple(values: Floats, unit: Floats) -> Floats:
    """Round to a multiple of a unit, where the unit is not lost beside the value."""
    countable = np.abs(values) < unit * 2.0**52
    steps = np.rint(np.where(countable, values, 0.0) / unit)
    return np.where(countable, steps * unit, values) + 0.0  # never -0.0
