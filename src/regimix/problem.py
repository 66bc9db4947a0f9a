"""The data door: a user's table becomes a checked, frozen, standardised ``Problem``.

Standardising never copies the table. A ``Problem`` holds the user's own memory and a frame: four
small arrays that say how a row is read.

Scales are powers of two, and centers are multiples of a small part of them: dividing is exact,
subtracting is exact for numbers of few digits, and a slope translates without any rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import DataError
from regimix.frame import Frame
from regimix.intake import CHUNK_BYTES, Table, read_target, read_weights

__all__ = ["WHOLE_KEYS", "Problem", "Units", "standard_places", "tells_apart"]

Floats = NDArray[np.float64]

# Standardising serves conditioning only (the fit is equivariant), so a few thousand evenly spaced
# rows say enough about location and spread, and cost nothing against one pass over the table.
STANDARDISE_ROWS = 4096
# Interquartile range of the standard normal: the factor that turns an IQR into a deviation.
NORMAL_IQR = 1.3489795003921634
# Up to this total weight, draws look at all numbers of a row; beyond, at the response alone if that
# tells this share of the rows apart.
WHOLE_KEYS = 1 << 16
RARELY_EQUAL = 0.999
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
# Sums over the standard rows are equal up to this share: weights that are no whole numbers are
# rounded, in parts not as in memory, and a tie must not be decided by that.
SAME_SUM = STANDARDISE_ROWS * 2.0**-52


@dataclass(frozen=True, kw_only=True)
class Problem(Frame):
    """A regression table that has been checked, in memory, with its frame.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The user's numbers, in the user's memory; never modified.
    y : ndarray of shape (n,)
        The response in user units.
    weights : ndarray of shape (n,) or None
        Row weights; zero means absent. Whole numbers count repetitions; any others are relative
        importances and were scaled to a mean of one over the rows present.
    """

    X: NDArray[Any]
    y: Floats
    weights: Floats | None

    @classmethod
    def from_arrays(
        cls, X: Any, y: Any, sample_weight: Any = None, *, fit_intercept: bool = True
    ) -> Problem:
        """Check a table, its response and its weights, and find their units."""
        table = Table.read(X)
        target = read_target(y, table.n_rows)
        weights, counts = read_weights(sample_weight, table.n_rows)
        units = Units.of(table, weights, centred=bool(fit_intercept))
        units.check(table.values, [table.label(i) for i in range(units.scale.size)])
        response = Table(target[:, None], ("y",))
        target_units = Units.of(response, weights, centred=bool(fit_intercept)).without_jitter()
        target_units.check(response.values, ["y"])
        mass = float(table.n_rows if weights is None else weights.sum())
        rows = standard_rows(table.n_rows, weights)
        return cls(
            n_rows=table.n_rows,
            n_present=table.n_rows if weights is None else int(np.count_nonzero(weights)),
            weighted=weights is not None,
            X=table.values,
            y=target,
            weights=weights,
            counts=counts,
            mass=mass,
            fit_intercept=bool(fit_intercept),
            center=units.center,
            scale=units.scale,
            target_center=float(target_units.center[0]),
            target_scale=float(target_units.scale[0]),
            feature_names=table.names,
            distinct_response=mass > WHOLE_KEYS and tells_apart(table.values[rows], target[rows]),
        )

    @classmethod
    def from_standardised(
        cls, Z: Floats, y: Floats, weights: Floats | None = None, *, counts: bool = True
    ) -> Problem:
        """Wrap rows that are checked and standardised already; units are trivial."""
        ones = weights is None or bool((weights == 1.0).all())
        return cls(
            n_rows=y.size,
            n_present=y.size if ones or weights is None else int(np.count_nonzero(weights)),
            weighted=not ones,
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

    @classmethod
    def framed(
        cls, frame: Frame, X: NDArray[Any], y: Floats, weights: Floats | None = None
    ) -> Problem:
        """Put rows into a frame that is known already."""
        known = {name: getattr(frame, name) for name in Frame.__dataclass_fields__}
        return cls(**known | {"n_rows": y.size}, X=X, y=y, weights=weights)

    def part(self, rows: slice) -> Problem:
        """Return some of the rows, in place; units and total weight stay those of the table."""
        return replace(
            self,
            n_rows=len(range(*rows.indices(self.n_rows))),
            X=self.X[rows],
            y=self.y[rows],
            weights=None if self.weights is None else self.weights[rows],
        )


@dataclass(frozen=True)
class Units:
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
    def of(cls, table: Table, weights: Floats | None, *, centred: bool) -> Units:
        """Find the units of a table from a sample of its rows, a few columns at a time."""
        rows = standard_rows(table.n_rows, weights)
        row_weights = None if weights is None else weights[rows]
        return cls.of_sample(table.values[rows], row_weights, *table.extent(), centred=centred)

    @classmethod
    def of_sample(
        cls,
        rows: NDArray[Any],
        weights: Floats | None,
        lowest: Floats,
        highest: Floats,
        *,
        centred: bool,
    ) -> Units:
        """Find the units from some rows and the extents over all rows."""
        center, scale = np.zeros_like(lowest), np.ones_like(lowest)
        block = max(1, CHUNK_BYTES // (8 * len(rows)))
        for first in range(0, lowest.size, block):
            part = slice(first, first + block)
            center[part], scale[part] = _spread(
                rows[:, part].astype(np.float64),
                weights,
                lowest[part],
                highest[part],
                centred=centred,
            )
        return cls(center, scale, lowest, highest)

    def without_jitter(self) -> Units:
        """Take values that differ by rounding alone for equal ones, of their own size."""
        jitter = self.scale <= _rounding(self.center)
        scale = np.where(jitter, _power_of_two(np.abs(self.center)), self.scale)
        return Units(self.center, scale, self.lowest, self.highest)

    def check(self, values: NDArray[Any] | None, labels: list[str]) -> None:
        """Refuse columns that double precision cannot handle, and say what would help.

        Rows are named if their values are at hand.
        """
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
            far = self.highest[i] - self.center[i] > self.center[i] - self.lowest[i]
            where = f"{self.highest[i] if far else self.lowest[i]:.6g} in some row"
            if values is not None:
                row = int(np.argmax(np.abs(values[:, i] - self.center[i])))
                where = f"{values[row, i]:.6g} in row {row} (counting from 0)"
            raise DataError(
                f"{spread} but is {where}, more than "
                f"{FARTHEST:g} times as far from the rest. Drop the row if that is a placeholder; "
                "if it is not, set the tiny values to zero or take logarithms."
            )


def standard_rows(n_rows: int, weights: Floats | None) -> NDArray[np.intp]:
    """Pick evenly spaced rows among those present."""
    if weights is None:
        return standard_places(n_rows)
    present = np.flatnonzero(weights)
    return np.asarray(present[standard_places(present.size)])


def standard_places(count: int) -> NDArray[np.intp]:
    """Pick evenly spaced places among so many rows."""
    if count <= STANDARDISE_ROWS:
        return np.arange(count)
    return np.linspace(0, count - 1, STANDARDISE_ROWS).astype(np.intp)


def tells_apart(X: NDArray[Any], y: Floats) -> bool:
    """Say whether rows that differ nearly always differ in the response."""
    rows = np.unique(np.column_stack([X.astype(np.float64), y]), axis=0)
    return bool(np.unique(rows[:, -1]).size >= RARELY_EQUAL * len(rows))


def _spread(
    sample: Floats, weights: Floats | None, lowest: Floats, highest: Floats, *, centred: bool
) -> tuple[Floats, Floats]:
    """Find a robust location and spread per column; fall back until the spread is not zero.

    A rare 0/1 column has no interquartile range, perhaps no deviation in the sample; the extent
    over all rows tells whether it varies at all. Nor do light rows deviate beside a heavy one:
    that they weigh little does not make their digits few. A constant column has the scale of its
    value.
    """
    if centred:
        lower, center, upper = _quartiles(sample, weights)
        scale = (upper - lower) / NORMAL_IQR
    else:
        center = np.zeros(sample.shape[1])
        scale = _quartiles(np.abs(sample), weights)[1]
    deviation = np.sqrt(np.average((sample - center) ** 2, axis=0, weights=weights))
    widest = np.maximum(highest - center, center - lowest)
    # Half: what passes here passes ``check`` too, after it is made a power of two.
    usable = np.abs(center) < LARGEST_OFFSET / 2 * deviation
    fallback = np.where(usable, deviation, widest)
    scale = _power_of_two(np.where(scale > _rounding(center), scale, fallback))
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
    wanted = levels * (1 - SAME_SUM)
    below = np.array([np.count_nonzero(filled < level * filled[-1], axis=0) for level in wanted])
    return np.take_along_axis(sample, np.take_along_axis(order, below, axis=0), axis=0)


def _rounding(values: Floats) -> Floats:
    """How much rounding may move values of this size."""
    return np.asarray(ROUNDINGS * np.finfo(np.float64).eps * np.abs(values))


def _power_of_two(values: Floats) -> Floats:
    """Round positive numbers to the power of two next in ratio; zero stays near zero.

    The deviation of a 0/1 column with an eighth of ones is half-way, up to rounding: it goes up.
    """
    fraction, exponent = np.frexp(values)
    return np.asarray(np.ldexp(1.0, exponent - (fraction < math.sqrt(0.5) * (1 - SAME_SUM))))


def _multiple(values: Floats, unit: Floats) -> Floats:
    """Round to a multiple of a unit, where the unit is not lost beside the value."""
    countable = np.abs(values) < unit * 2.0**52
    steps = np.rint(np.where(countable, values, 0.0) / unit)
    return np.where(countable, steps * unit, values) + 0.0  # never -0.0
