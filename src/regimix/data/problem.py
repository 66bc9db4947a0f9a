"""The table that solvers see: its size, its units, and coefficients translated back to the user.

Standardised units: ``z = (x - center) / scale`` with a leading constant column when there is an
intercept, and ``(y - target_center) / target_scale``. Solvers work with coefficients ``theta`` in
those units. Standardising never copies the table: rows are standardised as they are read.

Scales are powers of two, and centers are multiples of a small part of them: dividing is exact,
subtracting is exact for numbers of few digits, and a slope translates without any rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import (
    CHUNK_BYTES,
    Table,
    chunks,
    column_label,
    read_target,
    read_weights,
)
from regimix.errors import DataError, ParameterError

Floats = NDArray[np.float64]

# Standardising serves conditioning only (the fit is equivariant), so a few thousand evenly spaced
# rows are enough for location and spread, and cost little against one pass over the table.
STANDARDISE_ROWS = 4096
# Interquartile range of the standard normal: the factor that turns an IQR into a deviation.
NORMAL_IQR = 1.3489795003921634
# Up to this total weight, draws hash all numbers of a row; beyond, the response alone if it is
# different in this share of the distinct rows.
WHOLE_KEYS = 1 << 16
RARELY_EQUAL = 0.999
# Centers are multiples of this part of the scale: subtracting them is exact for numbers of few
# digits, and the remaining mean does not make columns depend on the constant one.
CENTER_STEPS = 1024
# Squares of values with this spread do not vanish (``validation.LARGEST_VALUE`` bounds the other
# end).
SMALLEST_SPREAD = 1e-140
# A value further away than this many spreads is a placeholder, not an outlier: products of a few
# such numbers overflow, and lengths of rows no longer fit into single precision.
FARTHEST = 1e30
# A column whose values are this many times larger than their spread: residuals are differences of
# numbers of that size, and would keep about six digits.
LARGEST_OFFSET = 1e10
# A spread below this share of the values (a few roundings) is rounding.
ROUNDING = 8 * float(np.finfo(np.float64).eps)
# Sums over the standard rows are equal up to this share: weights that are not whole numbers are
# rounded, in parts not as in memory, and a tie must not be decided by that.
SAME_SUM = STANDARDISE_ROWS * 2.0**-52
# Coefficients that a user starts from, standardised: beyond this, squared residuals may overflow.
LARGEST_THETA = 1e60

# How rows count: once each, as often as their weights say, or by relative importance.
Weighting = Literal["none", "counts", "importances"]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Size and units of a checked table, wherever its rows are."""

    n_rows: int  # absent ones (of weight zero) included
    n_present: int  # rows of positive weight
    weighted: bool
    counts: bool  # whether weights are whole numbers (or absent): the kept mass is whole too
    mass: float  # total weight, the ``n`` of every formula
    fit_intercept: bool
    center: Floats  # (d,), zero without an intercept
    scale: Floats  # (d,)
    target_center: float
    target_scale: float
    feature_names: tuple[str, ...]  # for messages
    # Powers of two that draws divide each column and, last, y by: above the largest size among the
    # rows present. (Scales come from some of the rows, and may depend on the order of all.)
    key_units: Floats
    # Whether the table is large and nearly all of its distinct rows differ in the response.
    distinct_response: bool = False

    @property
    def weighting(self) -> Weighting:
        """What the weights of the rows are, if they have any."""
        if not self.weighted:
            return "none"
        return "counts" if self.counts else "importances"

    @classmethod
    def of_sample(
        cls,
        X: NDArray[Any],
        y: Floats,
        weights: Floats | None,
        extent: tuple[Floats, Floats],
        *,
        sizes: Floats,
        names: tuple[str, ...],
        values: tuple[NDArray[Any], Floats] | None = None,
        **known: Any,
    ) -> Frame:
        """Find the units of a table from its standard rows, some evenly spaced ones.

        ``extent`` has the smallest and largest value of each column and, last, of y, over all rows;
        ``sizes`` are the ``largest_sizes``;
        ``values`` all rows of X and of y, if they are in memory, so that messages can name a row;
        ``known`` the other attributes.
        """
        rows = (values[0], values[1][:, None]) if values is not None else (None, None)
        (lowest, y_lowest), (highest, y_highest) = (np.split(ends, [-1]) for ends in extent)
        centred = known["fit_intercept"]
        center, scale = np.zeros_like(lowest), np.ones_like(lowest)
        block = max(1, CHUNK_BYTES // (8 * len(X)))
        for first in range(0, lowest.size, block):  # a few columns at a time bound the memory
            part = slice(first, first + block)
            columns = X[:, part].astype(np.float64)
            ends = lowest[part], highest[part]
            center[part], scale[part] = _units(columns, weights, *ends, centred=centred)
        _check_units(center, scale, lowest, highest, names, rows[0])
        y_center, y_scale = _units(y[:, None], weights, y_lowest, y_highest, centred=centred)
        # A response whose values differ by rounding alone is constant, with the scale of its value.
        rounding = y_scale <= ROUNDING * np.abs(y_center)
        y_scale = np.where(rounding, _power_of_two(np.abs(y_center)), y_scale)
        _check_units(y_center, y_scale, y_lowest, y_highest, "y", rows[1])
        distinct = False
        if known["mass"] > WHOLE_KEYS:
            different = np.unique(y).size
            distinct = different >= RARELY_EQUAL * y.size
            if not distinct:  # many may be copies of a row
                copies = np.unique(np.column_stack([X.astype(np.float64), y]), axis=0)
                distinct = different >= RARELY_EQUAL * len(copies)
        return Frame(
            center=center,
            scale=scale,
            target_center=float(y_center[0]),
            target_scale=float(y_scale[0]),
            feature_names=names,
            key_units=np.ldexp(1.0, np.frexp(sizes)[1]),
            distinct_response=distinct,
            **known,
        )

    @property
    def n_features(self) -> int:
        """Columns of the user's table."""
        return int(self.scale.size)

    @property
    def n_columns(self) -> int:
        """Coefficients of one component: the features, and the constant if there is one."""
        return self.n_features + self.fit_intercept

    def raw(self, theta: Floats) -> tuple[Floats, Floats]:
        """Turn standardised coefficients into slopes on raw columns and a constant.

        The response stays standardised: ``(y - target_center) / target_scale`` is predicted by
        ``X @ slopes.T + constant``. Serves passes over X that must not standardise it. Shapes are
        (..., n_columns) to (..., d) and (...).
        """
        if not self.fit_intercept:
            return theta / self.scale, np.zeros(theta.shape[:-1])
        slopes = theta[..., 1:] / self.scale
        return slopes, theta[..., 0] - slopes @ self.center

    def to_user(self, theta: Floats) -> tuple[Floats, Floats]:
        """Turn standardised coefficients into the user's, (..., d), and intercepts or zeros."""
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
        """Translate coefficients in the user's units, (..., d), into standardised ones."""
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
        digits = 1.0 + np.abs(self.center) / self.scale
        if self.fit_intercept:
            digits = np.append(1.0, digits)
        size = 1.0 + np.abs(theta) @ digits + abs(self.target_center / self.target_scale)
        precision = 4 * np.finfo(np.float64).eps * math.sqrt(max(1, self.n_columns))
        return np.asarray(precision * size)


@dataclass(frozen=True, kw_only=True)
class Problem(Frame):
    """A checked regression table in memory, with its units; weights are those of `read_weights`."""

    X: NDArray[Any]  # (n, d), the user's numbers, in the user's memory; never modified
    y: Floats  # (n,), in user units
    weights: Floats | None  # (n,), zero means absent

    @classmethod
    def from_arrays(
        cls, X: Any, y: Any, sample_weight: Any = None, *, fit_intercept: bool = True
    ) -> Problem:
        """Check a table, its response and its weights, and find their units."""
        table = Table.read(X)
        values, n_rows = table.values, len(table.values)
        target = read_target(y, n_rows)
        weights, counts = read_weights(sample_weight, n_rows)
        lowest, highest = table.extent()
        n_present = n_rows if weights is None else int(np.count_nonzero(weights))
        rows = standard_places(n_present)
        if weights is not None:
            rows = np.flatnonzero(weights)[rows]
        extent = np.append(lowest, target.min()), np.append(highest, target.max())
        frame = Frame.of_sample(
            values[rows],
            target[rows],
            None if weights is None else weights[rows],
            extent,
            sizes=largest_sizes(values, target, weights, extent),
            names=table.names,
            values=(values, target),
            n_rows=n_rows,
            n_present=n_present,
            weighted=weights is not None,
            counts=counts,
            mass=float(n_rows if weights is None else weights.sum()),
            fit_intercept=bool(fit_intercept),
        )
        return cls.framed(frame, values, target, weights)

    @classmethod
    def from_standardised(
        cls, Z: Floats, y: Floats, weights: Floats | None = None, *, counts: bool = True
    ) -> Problem:
        """Wrap rows that are checked and standardised already; units are trivial."""
        plain = weights is None or bool((weights == 1.0).all())
        present = np.ones(y.size) if plain or weights is None else weights
        return cls(
            X=Z,
            y=y,
            weights=None if plain else weights,
            n_rows=y.size,
            n_present=int(np.count_nonzero(present)),
            weighted=not plain,
            counts=counts or plain,
            mass=float(present.sum()),
            fit_intercept=False,
            center=np.zeros(Z.shape[1]),
            scale=np.ones(Z.shape[1]),
            target_center=0.0,
            target_scale=1.0,
            feature_names=tuple(f"z{i}" for i in range(Z.shape[1])),
            key_units=np.ones(Z.shape[1] + 1),
        )

    @classmethod
    def framed(
        cls, frame: Frame, X: NDArray[Any], y: Floats, weights: Floats | None = None
    ) -> Problem:
        """Attach rows to the units and the total weight of their table."""
        return cls(**vars(frame) | {"n_rows": y.size, "X": X, "y": y, "weights": weights})

    @property
    def row_weights(self) -> Floats:
        """The weights of the rows, ones if they have none."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    def part(self, rows: slice) -> Problem:
        """Return some of the rows, in place; units and total weight stay those of the table."""
        weights = None if self.weights is None else self.weights[rows]
        return Problem.framed(self, self.X[rows], self.y[rows], weights)


# --- units ----------------------------------------------------------------------------------------


def standard_places(count: int) -> NDArray[np.intp]:
    """Return the standard rows among so many: all, or evenly spaced ones."""
    if count <= STANDARDISE_ROWS:
        return np.arange(count)
    return np.linspace(0, count - 1, STANDARDISE_ROWS).astype(np.intp)


def largest_sizes(
    X: NDArray[Any], y: Floats, weights: Floats | None, extent: tuple[Floats, Floats]
) -> Floats:
    """Return the largest absolute value of each column and, last, of y, among the rows present."""
    sizes = np.maximum(*map(np.abs, extent))
    if weights is not None and not weights.all():
        sizes = np.zeros_like(sizes)
        for rows in chunks(*X.shape):
            present = weights[rows] > 0
            for values, of in ((X[rows][present], sizes[:-1]), (y[rows][present], sizes[-1:])):
                for end in (values.max(axis=0, initial=0), values.min(axis=0, initial=0)):
                    np.maximum(of, np.abs(np.asarray(end, dtype=np.float64)), out=of)
    return sizes


def _check_units(
    center: Floats,
    scale: Floats,
    lowest: Floats,
    highest: Floats,
    names: Sequence[str],
    values: NDArray[Any] | None,
) -> None:
    """Refuse columns that double precision cannot handle, and say what would help."""
    widest = np.maximum(highest - center, center - lowest)
    small = scale < SMALLEST_SPREAD
    blurred = np.abs(center) > LARGEST_OFFSET * scale
    stretched = widest > FARTHEST * scale
    for i in np.flatnonzero(small | blurred | stretched)[:1]:
        spread = f"{column_label(names, i)} varies by about {scale[i]:.3g}"
        if small[i]:
            raise DataError(
                f"{spread}, too little: squares of that vanish in double precision (at least "
                f"{SMALLEST_SPREAD:g} is needed). Multiply it by a power of ten first."
            )
        if blurred[i]:
            raise DataError(
                f"{spread} around {center[i]:.6g}: too few digits are left for that in double "
                f"precision. Subtract {center[i]:.6g} first, or leave it out if it is meant to be "
                "constant."
            )
        far = highest[i] - center[i] > center[i] - lowest[i]
        where = f"{highest[i] if far else lowest[i]:.6g} in some row"
        if values is not None:
            row = int(np.argmax(np.abs(values[:, i] - center[i])))
            where = f"{values[row, i]:.6g} in row {row} (counting from 0)"
        raise DataError(
            f"{spread} but is {where}, more than {FARTHEST:g} times as far from the rest. Drop the "
            "row if that is a placeholder; if it is not, set the tiny values to zero or take "
            "logarithms."
        )


def _units(
    sample: Floats, weights: Floats | None, lowest: Floats, highest: Floats, *, centred: bool
) -> tuple[Floats, Floats]:
    """Find a robust location and spread per column; fall back until the spread is not zero.

    A rare 0/1 column has no interquartile range, perhaps no deviation in the sample; the extent
    over all rows shows whether it varies at all. The same holds for rows of little weight beside a
    heavy one. A constant column has the scale of its value.
    """
    if centred:
        lower, center, upper = _quartiles(sample, weights)
        scale = (upper - lower) / NORMAL_IQR
    else:
        center = np.zeros(sample.shape[1])
        scale = _quartiles(np.abs(sample), weights)[1]
    flat = np.flatnonzero(scale <= ROUNDING * np.abs(center))
    if flat.size:
        ends = lowest[flat], highest[flat]
        scale[flat] = _scattered(sample[:, flat], weights, center[flat], *ends)
    scale = _power_of_two(scale)
    constant = highest == lowest
    size = np.abs(lowest)
    smallest_size = SMALLEST_SPREAD if centred else 0.0
    size = np.where(size > smallest_size, _power_of_two(size), 1.0)
    if centred:
        # Rounded to a multiple of the unit, where that is not lost beside the value; never -0.0.
        unit = scale / CENTER_STEPS
        countable = np.abs(center) < unit * 2.0**52
        steps = np.rint(np.where(countable, center, 0.0) / unit)
        center = np.where(countable, steps * unit, center) + 0.0
        center = np.where(constant, lowest, center)
    return center, np.where(constant, size, scale)


def _scattered(
    sample: Floats, weights: Floats | None, center: Floats, lowest: Floats, highest: Floats
) -> Floats:
    """Find the spread of columns most of whose values are equal."""
    gaps = np.abs(sample - center)
    deviation = np.sqrt(np.average(gaps**2, axis=0, weights=weights))
    # One cell far away must not be all that is seen of a rare 0/1 column: half of the values that
    # differ lie within this distance. (Without any, the deviation is zero too.)
    half = np.maximum(np.count_nonzero(gaps, axis=0) - 1, 0) // 2
    gaps[gaps == 0] = np.inf
    gaps.sort(axis=0)
    deviation = np.minimum(deviation, np.take_along_axis(gaps, half[None], axis=0)[0])
    # Half: what passes here passes ``check`` too, after it is made a power of two.
    usable = np.abs(center) < LARGEST_OFFSET / 2 * deviation
    return np.where(usable, deviation, np.maximum(highest - center, center - lowest))


def _quartiles(sample: Floats, weights: Floats | None) -> Floats:
    """Quartiles of each column, each one of its values: a whole weight equals as many copies."""
    levels = np.array([0.25, 0.5, 0.75])
    if weights is None:  # a sort is several times as fast as NumPy's quantiles
        places = np.ceil(levels * len(sample)).astype(np.intp) - 1
        return np.asarray(np.sort(sample, axis=0)[places])
    wanted = levels * (1 - SAME_SUM)
    return np.quantile(sample, wanted, axis=0, method="inverted_cdf", weights=weights)


def _power_of_two(values: Floats) -> Floats:
    """Round positive numbers to the power of two next in ratio; zero stays near zero.

    The deviation of a 0/1 column with an eighth of ones is half-way, up to rounding: it goes up.
    """
    fraction, exponent = np.frexp(values)
    return np.asarray(np.ldexp(1.0, exponent - (fraction < math.sqrt(0.5) * (1 - SAME_SUM))))
