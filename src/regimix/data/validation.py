"""Checks and conversion of users' input: arrays, data frames, lists, responses and weights.

Numbers of any real type stay where they are, whatever their memory layout and byte order; chunks
of them are converted to double precision when they are read. A copy is made only of frames whose
columns differ in type, of object columns and of extended precision.
"""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from regimix.data.recipe import check_unique
from regimix.errors import DataError, DataKindError, Message, Setting
from regimix.threads import fitting_threads, in_threads

Floats = NDArray[np.float64]

# Sums of squares of values up to this size are finite, with room for any number of rows.
LARGEST_VALUE = 1e140
# Whole numbers up to here are exact in double precision, and so are their sums.
LARGEST_COUNT = 2.0**53
# A weight so many times smaller than the largest is nothing beside it: even its square vanishes.
WIDEST_WEIGHTS = 1e150
# About the second-level cache of one core: a chunk that fits is read from memory once,
# however many operations follow.
CHUNK_BYTES = 2 << 20
# Below this, the overhead of a call outweighs its arithmetic.
SMALLEST_CHUNK = 256
# Numbers of a vector that is long enough to be compared at full speed.
LONG_VECTOR = 1024
# How the names of number types begin, in lower case, in pandas and polars.
NUMBER_KINDS = ("int", "uint", "float", "bool", "double", "halffloat", "decimal", "null")
# Objects that stand for a missing number, by the name of their type: pandas is not imported here.
MISSING = ("NoneType", "NAType", "NaTType")
# Objects that NumPy would convert to a number although they are none: text and dates.
NOT_NUMBERS = (str, bytes, np.datetime64, np.timedelta64)


def chunk_size(n_columns: int) -> int:
    """Rows of a chunk that fits the cache."""
    return max(SMALLEST_CHUNK, CHUNK_BYTES // (8 * max(1, n_columns)))


def chunks(n_rows: int, n_columns: int, chunk_rows: int | None = None) -> Iterator[slice]:
    """Cut rows into consecutive slices of bounded size."""
    rows = chunk_rows or chunk_size(n_columns)
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


# --- tables, responses, weights -------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A two-dimensional table of real numbers and the names of its columns."""

    values: NDArray[Any]
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return int(self.values.shape[0])

    @classmethod
    def read(cls, X: Any, *, fewest_rows: int = 2) -> Table:
        """Accept NumPy arrays, pandas and polars frames, and nested lists."""
        if isinstance(X, Table):
            names, values = X.names, X.values
        elif is_frame(X):
            names = read_names(X)
            values = _frame_values(X, names)
        else:
            values = _plain_array(X, "X")
            if values.ndim != 2:
                raise DataError(
                    "X must be a table of rows and columns; expected 2D array, got "
                    f"{values.ndim}D array of shape {values.shape} instead. Pass one row for each "
                    "observation and one column for each feature. Reshape your data with "
                    "X.reshape(-1, 1) if it is one column, or X.reshape(1, -1) if it is one row."
                )
            names = tuple(f"x{i}" for i in range(values.shape[1]))
            values = _numbers(values, names)
        check_shape(values.shape, fewest_rows)
        return cls(values, names)

    def extent(self) -> tuple[Floats, Floats]:
        """Find the smallest and largest value of each column; refuse what is not finite."""
        lowest = highest = self.values[0]
        n_rows, n_columns = self.values.shape

        def extent_of(rows: slice) -> tuple[NDArray[Any], NDArray[Any]]:
            part = self.values[rows]
            # A sum is NaN if a value is. Extents that need not look for NaN take half the time.
            with np.errstate(over="ignore", invalid="ignore"):
                total = _reduced(np.add, part) if part.dtype.kind == "f" else np.zeros(n_columns)
            low, high = (_reduced(end, part) for end in (np.fmin, np.fmax))
            usable = (np.abs(np.array([low, high], dtype=np.float64)) <= LARGEST_VALUE).all(axis=0)
            if np.isnan(total).any():
                usable &= ~np.isnan(part).any(axis=0)
            if not usable.all():
                column = int(np.flatnonzero(~usable)[0])
                label = column_label(self.names, column)
                _refuse_value(part[:, column], rows.start, label, LARGEST_VALUE)
            return low, high

        with fitting_threads(n_columns):
            for low, high in in_threads(extent_of, list(chunks(n_rows, n_columns))):
                lowest, highest = np.minimum(lowest, low), np.maximum(highest, high)
        if self.values.dtype.kind in "iu":
            for i in range(n_columns):
                _check_digits(lowest[i], highest[i], column_label(self.names, i))
        return lowest.astype(np.float64), highest.astype(np.float64)


def check_shape(shape: tuple[int, ...], fewest_rows: int) -> None:
    """Refuse a table without columns, or of too few rows."""
    rows, *columns = shape
    if columns == [0]:
        raise DataError(
            f"X has 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required; pass at "
            "least one column."
        )
    if rows < fewest_rows:
        raise DataError(
            f"X has {rows} row(s) (n_samples={rows}) while a minimum of {fewest_rows} is "
            "required; pass more rows."
        )


def _reduced(function: np.ufunc, part: NDArray[Any]) -> NDArray[Any]:
    """Reduce each column; several rows side by side first, as long vectors are faster."""
    rows, columns = part.shape
    beside = min(max(1, LONG_VECTOR // columns), rows)
    if beside > 1 and part.flags.c_contiguous:
        whole = rows - rows % beside
        several = function.reduce(part[:whole].reshape(-1, beside * columns))
        part = np.concatenate([several.reshape(beside, columns), part[whole:]])
    return np.asarray(function.reduce(part))


def read_target(y: Any, n_rows: int) -> Floats:
    """Check the response: one finite number a row. Returns float64, the user's memory if it is."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None: pass one number a row.")
    values = read_vector(y, "y")
    if values.ndim == 2 and values.shape[1] == 1:
        # Imported where it is used: opening a table of Parquet files needs no scikit-learn.
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; y.ravel() is used.",
            DataConversionWarning,
            stacklevel=4,
        )
        values = values.ravel()
    if values.ndim != 1:
        raise DataError(
            f"y must be one number a row; got an array of shape {values.shape}. regimix fits one "
            "response at a time: pass one column of it."
        )
    if values.shape[0] != n_rows:
        raise DataError(
            f"X and y have inconsistent numbers of rows: X has {n_rows}, y has {values.shape[0]}. "
            "Pass one number in y for each row of X."
        )
    if values.dtype.kind in "iu":
        _check_digits(values.min(), values.max(), "y")
    target = np.asarray(values, dtype=np.float64)
    if not max(-target.min(), target.max()) <= LARGEST_VALUE:
        _refuse_value(target, 0, "y", LARGEST_VALUE)
    return target


def read_weights(sample_weight: Any, n_rows: int) -> tuple[Floats | None, bool]:
    """Check row weights; the second value is whether they count repetitions.

    Whole numbers count repetitions and stay as they are. Any others are relative importances:
    they are scaled to a mean of one over the rows present, so that their unit does not matter.
    """
    if sample_weight is None:
        return None, True
    weights = read_vector(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    weights = check_weights(weights, n_rows)
    # The largest is one: sums can no longer overflow. What is nothing beside it is zero.
    relative = weights / (weights.max(initial=0.0) or 1.0)
    relative[relative < 1 / WIDEST_WEIGHTS] = 0.0
    present = int(np.count_nonzero(relative))
    check_present(present)
    whole = bool((weights == np.floor(weights)).all())
    if whole and weights.max() < LARGEST_COUNT and weights.sum() < LARGEST_COUNT:
        return (None if weights.min() == weights.max() == 1 else weights), True
    return relative * (present / relative.sum()), False


def check_weights(weights: NDArray[Any], n_rows: int) -> Floats:
    """Refuse weights that are not one number a row, not finite, or negative."""
    if weights.shape != (n_rows,):
        raise DataError(
            f"sample_weight must be one number a row, shape ({n_rows},); got {weights.shape}."
        )
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all():
        _refuse_value(weights, 0, "sample_weight", np.inf)
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise _bad_weights(
            f"is negative in row {row} ({weights[row]}); weights are zero (row absent) or positive."
        )
    return weights


def _bad_weights(words: str) -> DataError:
    return DataError(Message(Setting("sample_weight"), f" {words}"))


def check_span(least: float, most: float) -> None:
    """Refuse positive weights of which some are nothing beside the largest.

    In memory they are taken to be zero; in parts, rows present are counted before it is known.
    """
    if least < most / WIDEST_WEIGHTS:
        raise _bad_weights(
            f"goes from {least:.3g} to {most:.3g}: what is {WIDEST_WEIGHTS:g} times smaller counts "
            "for nothing beside the largest. Set such weights to zero, which leaves their rows out."
        )


def check_present(n_present: int) -> None:
    """Refuse a table with fewer than two rows of positive weight."""
    if n_present < 2:
        raise _bad_weights(
            f"is zero, or nothing beside the largest, in all rows but {n_present}: a row of weight "
            f"zero is absent, and a minimum of 2 rows is required (n_samples={n_present}). Pass "
            "positive weights."
        )


def read_matrix(name: str, value: Any, columns: int | None = None) -> Floats:
    """Check a finite matrix, with so many columns if that is known."""
    rows = read_floats(name, value, "a matrix of numbers")
    if rows.ndim != 2 or rows.shape[1] < 1:
        raise DataError(f"{name} must be a matrix of at least one column; got shape {rows.shape}.")
    if columns is not None and rows.shape[1] != columns:
        raise DataError(
            f"{name} has {rows.shape[1]} column(s) where {columns} are needed; pass the same "
            "features everywhere."
        )
    if not np.isfinite(rows).all():
        raise DataError(f"{name} has NaN or infinite entries; leave those rows out.")
    return rows


def read_floats(name: str, value: Any, wanted: str) -> Floats:
    """Read an array of numbers of any shape; ``wanted`` says in words which."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be {wanted}; got {value!r}.") from None


# --- any container to an array of numbers ---------------------------------------------------------


def read_vector(data: Any, what: str) -> NDArray[Any]:
    """Convert a column in any container to an array of numbers, of whatever shape."""
    if is_frame(data):
        return _frame_values(data, what)
    return _numbers(_plain_array(data, what), what)


def read_names(frame: Any) -> tuple[str, ...]:
    """Return the names of the columns of a frame, each different, all text or none."""
    kinds = {isinstance(name, str): name for name in frame.columns}
    if len(kinds) == 2:
        raise DataKindError(
            f"X has column names of different types, such as {kinds[True]!r} and {kinds[False]!r}; "
            "make all of them text: X.columns = X.columns.astype(str)."
        )
    names = tuple(map(str, frame.columns))
    check_unique(names, "X has")
    return names


def check_names(names: tuple[str, ...], known: tuple[str, ...], what: str) -> None:
    """Refuse other columns than those of the fit."""
    remedy = "pass the same columns in the same order."
    if len(names) != len(known):
        raise DataError(f"{what} has {len(names)} column(s), but {len(known)} in the fit; {remedy}")
    # Columns without names are called x0, x1, ...: those say nothing.
    unnamed = tuple(f"x{i}" for i in range(len(known)))
    if names != known and unnamed not in (names, known):
        i = next(i for i, name in enumerate(known) if names[i] != name)
        where = f"column {i}" if what == "X" else f"column {i} of {what}"
        raise DataError(f"{where} is {names[i]!r}, but {known[i]!r} in the fit; {remedy}")


def column_label(names: Sequence[str], i: int = 0) -> str:
    """Name a column of X in messages; a text stands for what has no names of columns."""
    return names if isinstance(names, str) else f"column {names[i]!r} of X"


def is_frame(data: Any) -> bool:
    """Whether this is a data frame of pandas, polars or one that is used like them."""
    return hasattr(data, "to_numpy") and hasattr(data, "columns")


def _plain_array(data: Any, what: str) -> NDArray[Any]:
    """Convert an array, a series or nested lists to a plain array of whatever they hold."""
    if hasattr(data, "tocsr"):
        raise DataKindError(
            f"{what} is a sparse matrix of shape {data.shape}; regimix reads dense rows only (as a "
            f"dense array it takes {np.prod(data.shape) * 8 / 2**30:.3g} GiB). Pass "
            f"{what}.toarray() if that fits into memory, or select columns first. Sparse data is "
            "not supported."
        )
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        place = np.argwhere(np.ma.getmaskarray(data))[0].tolist()
        raise DataError(
            f"{what} is a masked array with masked entries, the first at {place}; drop those rows "
            "or fill the missing values in before the fit."
        )
    if hasattr(data, "to_numpy") and hasattr(data, "dtype"):
        _check_kinds([data.dtype], what)
    try:
        values = np.asarray(data)
    except ValueError as error:
        raise DataError(f"{what} has rows that differ in length ({error}).") from error
    if values.dtype == object and values.ndim == 0:
        raise DataKindError(
            f"{what} is of type {type(data).__name__}, which holds no rows of numbers; pass an "
            "array, a data frame or a list of rows."
        )
    return values


def _frame_values(frame: Any, names: Sequence[str]) -> NDArray[Any]:
    """Convert a data frame to an array of numbers, without a copy if the frame holds one."""
    kinds = list(frame.dtypes)
    _check_kinds(kinds, names)
    is_pandas = hasattr(frame, "iloc")
    # pandas would write its nullable numbers as Python objects, one by one; its columns do not.
    plain = all(isinstance(kind, np.dtype) for kind in kinds) or not is_pandas
    if plain and len(set(map(str, kinds))) == 1:
        values = np.asarray(frame.to_numpy())
        if values.dtype != object:
            return _numbers(values, names)
    each = (frame.iloc[:, i] if is_pandas else frame.to_series(i) for i in range(len(kinds)))
    columns = [_numbers(np.asarray(one), column_label(names, i)) for i, one in enumerate(each)]
    kind = np.result_type(*(column.dtype for column in columns)) if columns else np.dtype(float)
    values = np.empty((len(frame), len(columns)), dtype=kind, order="F")
    for i, column in enumerate(columns):
        if column.dtype.kind in "iu" and kind.kind == "f" and column.size:
            _check_digits(column.min(), column.max(), column_label(names, i))
        values[:, i] = column
    return values


def _check_kinds(kinds: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse columns of text, categories, dates and the like, all of them in one message."""
    unusable = [
        f"{column_label(names, i)} ({kind})" for i, kind in enumerate(kinds) if not _is_number(kind)
    ]
    if unusable:
        raise DataKindError(
            f"this cannot be read as numbers: {', '.join(unusable)}. Drop such columns, or encode "
            "them as numbers (text or categories: one 0/1 column for each value; dates: days since "
            "a reference). Sparse data and complex data are not supported."
        )


def _is_number(kind: Any) -> bool:
    if isinstance(kind, np.dtype):
        return kind.kind in "biufO"
    name = str(kind).lower()
    return name.startswith(NUMBER_KINDS) and not name.startswith(("int128", "uint128"))


def holds_numbers(frame: Any) -> bool:
    """Whether all columns of a frame have a type of numbers, or of true and false."""
    return all(_is_number(kind) and kind != np.dtype(object) for kind in frame.dtypes)


# --- single values --------------------------------------------------------------------------------


def _numbers(values: NDArray[Any], names: Sequence[str]) -> NDArray[Any]:
    """Return real numbers of at most 64 bits; arrays of such numbers are returned as they are."""
    kind = values.dtype.kind
    if kind in "biuf" and values.dtype.itemsize <= np.dtype(np.float64).itemsize:
        return values
    if kind == "f":
        return _from_extended(values, names)
    if kind == "O":
        return _from_objects(values, names)
    what = column_label(names) if isinstance(names, str) or len(names) == 1 else "X"
    if kind == "c":
        raise DataKindError(f"{what} holds complex numbers. Complex data not supported.")
    name, advice = str(values.dtype), "for example a date to days since a reference"
    if kind in "SUT":
        name, advice = "text", "with .astype(float) if it spells numbers"
    raise DataKindError(f"{what} holds {name}, not numbers; convert it, {advice}.")


def _from_extended(values: NDArray[Any], names: Sequence[str]) -> Floats:
    """Round extended precision to double; too large becomes infinite, too small is refused."""
    with np.errstate(over="ignore", under="ignore"):
        doubles = values.astype(np.float64)
    lost = np.argwhere((values != 0) & (doubles == 0))
    if lost.size:
        place = tuple(lost[0])
        raise DataError(
            f"{column_label(names, place[-1])} is {values[place]!s} in row {place[0]} (counting "
            "from 0), too small for double precision; multiply it by a power of ten first."
        )
    return doubles


def _from_objects(values: NDArray[Any], names: Sequence[str]) -> Floats:
    """Read an array of Python objects cell by cell; say which cell is not a number."""
    try:
        doubles = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        doubles = None
    for place in np.ndindex(values.shape):
        if doubles is None or isinstance(values[place], NOT_NUMBERS):
            _check_cell(values[place], place, column_label(names, place[-1]))
    assert doubles is not None
    return doubles


def _check_cell(cell: Any, place: tuple[int, ...], what: str) -> None:
    """Refuse an object that is not a number."""
    where = f"in row {place[0]} (counting from 0)" if place else ""
    if is_missing(cell):
        raise DataError(
            f"Input contains NaN.\n{what} is {cell} {where}. Drop such rows, or fill the missing "
            "values in before the fit."
        )
    try:
        if isinstance(cell, NOT_NUMBERS):
            raise TypeError(f"it is a {type(cell).__name__}")
        alone = np.empty(1, dtype=object)
        alone[0] = cell
        alone.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataKindError(
            f"{what} holds {reprlib.repr(cell)} {where}, which is not a number ({error}). "
            "Convert it to a number, or drop that row or column."
        ) from error


def is_missing(cell: Any) -> bool:
    """Whether an object stands for a missing value."""
    return type(cell).__name__ in MISSING or (isinstance(cell, float) and cell != cell)


def _refuse_value(column: NDArray[Any], first_row: int, what: str, largest: float) -> NoReturn:
    """Name the first value of a column that is missing, infinite or too large."""
    sizes = np.abs(column.astype(np.float64))
    bad = int(np.flatnonzero(~(sizes <= largest) | np.isinf(sizes))[0])
    where = f"{what} is {column[bad]} in row {first_row + bad} (counting from 0)"
    if np.isfinite(sizes[bad]):
        raise DataError(
            f"{where}, too large: sums of squares would overflow. Values up to {largest:g} are "
            "allowed; divide by a power of ten first, or drop the row if the value is a "
            "placeholder."
        )
    kind = "NaN" if np.isnan(sizes[bad]) else "infinity or a value too large for dtype('float64')"
    raise DataError(
        f"Input contains {kind}.\n{where}. Drop such rows, or fill in numbers before the fit."
    )


def _check_digits(lowest: Any, highest: Any, what: str) -> None:
    """Refuse whole numbers that differ, but not in double precision."""
    if lowest != highest and float(lowest) == float(highest):
        raise DataError(
            f"{what} holds whole numbers from {lowest} to {highest}, which double precision cannot "
            f"tell apart; subtract {lowest} first."
        )
