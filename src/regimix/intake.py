"""Reading what users bring: arrays, data frames, lists; refusing clearly what cannot be used.

Numbers of any real type stay where they are, whatever their memory layout and byte order; chunks
of them are turned into double precision when they are read. What needs a copy: frames whose columns
differ in type, object columns, extended precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from regimix.cells import LARGEST_VALUE, check_digits, numbers, refuse_value, within_range
from regimix.errors import DataError, DataKindError, Message, Setting
from regimix.threads import fitting_threads, in_threads

__all__ = [
    "CHUNK_BYTES",
    "LARGEST_COUNT",
    "Table",
    "check_weights",
    "chunk_size",
    "chunks",
    "read_target",
    "read_vector",
    "read_weights",
]

Floats = NDArray[np.float64]

# Whole numbers up to here are exact in double precision, and so are their sums.
LARGEST_COUNT = 2.0**53
# About the second-level cache of one core: a chunk that fits is read from memory once,
# however many operations follow.
CHUNK_BYTES = 2 << 20
# Rows of a block that is worth a thread.
THREAD_ROWS = 1 << 16
# Below this, the overhead of a call outweighs its arithmetic.
SMALLEST_CHUNK = 256
# How the names of number types begin, in lower case, in pandas and polars.
NUMBER_KINDS = ("int", "uint", "float", "bool", "double", "halffloat", "decimal", "null")


def chunk_size(n_columns: int) -> int:
    """Rows of a chunk that fits the cache."""
    return max(SMALLEST_CHUNK, CHUNK_BYTES // (8 * max(1, n_columns)))


def chunks(n_rows: int, n_columns: int, chunk_rows: int | None = None) -> Iterator[slice]:
    """Cut rows into consecutive slices of bounded size."""
    rows = chunk_rows or chunk_size(n_columns)
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


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
        values, names = _read_table(X, "X")
        rows, columns = values.shape
        if columns == 0:
            raise DataError(
                f"X has 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required; pass at "
                "least one column."
            )
        if rows < fewest_rows:
            raise DataError(
                f"X has {rows} row(s) (n_samples={rows}) while a minimum of {fewest_rows} is "
                "required; pass more rows."
            )
        return cls(values, names)

    def label(self, column: int) -> str:
        """Name a column in a message."""
        return _labels(self.names[column : column + 1], "X")[0]

    def extent(self) -> tuple[Floats, Floats]:
        """Find the smallest and largest value of each column; refuse what is not finite."""
        lowest = highest = self.values[0]
        n_rows, n_columns = self.values.shape
        blocks = list(chunks(n_rows, n_columns, THREAD_ROWS))
        with fitting_threads(n_columns):
            for low, high in in_threads(self._extent_of, blocks):
                lowest, highest = np.minimum(lowest, low), np.maximum(highest, high)
        if self.values.dtype.kind in "iu":
            for i in np.flatnonzero(lowest != highest):
                check_digits(lowest[i], highest[i], self.label(int(i)))
        return lowest.astype(np.float64), highest.astype(np.float64)

    def _extent_of(self, block: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        """Find the extent of a block of rows, chunk by chunk."""
        values = self.values[block]
        lowest = highest = values[0]
        for rows in chunks(*values.shape):
            part = values[rows]
            # minimum and maximum hand on NaN: one look serves extent and finiteness.
            low, high = part.min(axis=0), part.max(axis=0)
            bad = ~(within_range(low) & within_range(high))
            if bad.any():
                column = int(np.flatnonzero(bad)[0])
                first = block.start + rows.start
                refuse_value(part[:, column], first, self.label(column), LARGEST_VALUE)
            lowest, highest = np.minimum(lowest, low), np.maximum(highest, high)
        return lowest, highest


def read_target(y: Any, n_rows: int) -> Floats:
    """Check the response: one finite number a row. Returns float64, the user's memory if it is."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None: pass one number a row.")
    values = read_vector(y, "y")
    if values.ndim == 2 and values.shape[1] == 1:
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
        check_digits(values.min(), values.max(), "y")
    target = np.asarray(values, dtype=np.float64)
    if not within_range(np.array([target.min(), target.max()])).all():
        refuse_value(target, 0, "y", LARGEST_VALUE)
    return target


def read_weights(sample_weight: Any, n_rows: int) -> tuple[Floats | None, bool]:
    """Check row weights; say whether they count repetitions.

    Whole numbers count repetitions and stay as they are. Any others are relative importances:
    they are scaled to a mean of one over the rows present, so that their unit does not matter.
    """
    if sample_weight is None:
        return None, True
    weights = read_vector(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise DataError(
            f"sample_weight must be one number a row, shape ({n_rows},); got {weights.shape}."
        )
    weights = check_weights(weights)
    # The largest is one: sums can no longer overflow, and what is nothing beside it is absent.
    relative = weights / (weights.max(initial=0.0) or 1.0)
    present = np.count_nonzero(relative)
    if present < 2:
        raise DataError(
            Message(
                Setting("sample_weight"),
                f" is zero in all rows but {present}: a row of weight zero is absent, and a "
                f"minimum of 2 rows is required (n_samples={present}). Pass positive weights.",
            )
        )
    whole = bool((weights == np.floor(weights)).all())
    if whole and weights.max() < LARGEST_COUNT and weights.sum() < LARGEST_COUNT:
        return (None if weights.min() == weights.max() == 1 else weights), True
    return relative * (present / relative.sum()), False


def check_weights(weights: NDArray[Any]) -> Floats:
    """Refuse weights that are not finite or negative."""
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all():
        refuse_value(weights, 0, "sample_weight", np.inf)
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise DataError(
            Message(
                Setting("sample_weight"),
                f" is negative in row {row} ({weights[row]}); weights are zero (row absent) or "
                "positive.",
            )
        )
    return weights


# --- any container to an array of numbers ---------------------------------------------------------


def _read_table(data: Any, what: str) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Turn what may be a table into a two-dimensional array of numbers, with column names."""
    if _is_frame(data):
        names = tuple(str(name) for name in data.columns)
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if twice:
            raise DataError(
                f"{what} has more than one column named {twice[0]!r}; rename or drop all but one "
                "of them."
            )
        return _frame_values(data, _labels(names, what)), names
    values = _plain_array(data, what)
    if values.ndim != 2:
        advice = "Pass one row for each observation and one column for each feature."
        if values.ndim == 1:
            advice = (
                f"Reshape your data with {what}.reshape(-1, 1) if it is one column, or "
                f"{what}.reshape(1, -1) if it is one row."
            )
        raise DataError(
            f"{what} must be a table of rows and columns; expected 2D array, got {values.ndim}D "
            f"array of shape {values.shape} instead. {advice}"
        )
    names = tuple(f"x{i}" for i in range(values.shape[1]))
    return numbers(values, _labels(names, what)), names


def read_vector(data: Any, what: str) -> NDArray[Any]:
    """Turn what may be a column into an array of numbers, of whatever shape."""
    if _is_frame(data):
        return _frame_values(data, [what] * len(data.columns))
    return numbers(_plain_array(data, what), [what])


def _is_frame(data: Any) -> bool:
    return hasattr(data, "to_numpy") and hasattr(data, "columns")


def _labels(names: Sequence[str], what: str) -> list[str]:
    return [f"column {name!r} of {what}" for name in names]


def _plain_array(data: Any, what: str) -> NDArray[Any]:
    """Turn an array, a series or nested lists into a plain array of whatever they hold."""
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
        _check_kinds([data.dtype], [what])
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


def _frame_values(frame: Any, labels: Sequence[str]) -> NDArray[Any]:
    """Turn a data frame into an array of numbers, without a copy if the frame holds one."""
    kinds = list(frame.dtypes)
    _check_kinds(kinds, labels)
    is_pandas = hasattr(frame, "iloc")
    # pandas would write its nullable numbers as Python objects, one by one; its columns do not.
    plain = [kind for kind in kinds if isinstance(kind, np.dtype) or not is_pandas]
    if len(plain) == len(kinds) > 0 and len(set(map(str, kinds))) == 1:
        values = np.asarray(frame.to_numpy())
        if values.dtype != object:
            return numbers(values, labels)
    columns = [
        numbers(np.asarray(frame.iloc[:, i] if is_pandas else frame.to_series(i)), [label])
        for i, label in enumerate(labels)
    ]
    kind = np.result_type(*(column.dtype for column in columns)) if columns else np.dtype(float)
    values = np.empty((len(frame), len(columns)), dtype=kind, order="F")
    for i, column in enumerate(columns):
        if column.dtype.kind in "iu" and kind.kind == "f" and column.size:
            check_digits(column.min(), column.max(), labels[i])
        values[:, i] = column
    return values


def _check_kinds(kinds: Sequence[Any], labels: Sequence[str]) -> None:
    """Refuse columns of text, categories, dates and the like, all of them in one message."""
    odd = [
        f"{label} ({kind})"
        for kind, label in zip(kinds, labels, strict=True)
        if not _is_number_kind(kind)
    ]
    if odd:
        raise DataKindError(
            f"this cannot be read as numbers: {', '.join(odd)}. Drop such columns, or encode them "
            "as numbers (text or categories: one 0/1 column for each value; dates: days since a "
            "reference). Sparse data and complex data are not supported."
        )


def _is_number_kind(kind: Any) -> bool:
    if isinstance(kind, np.dtype):
        return kind.kind in "biufO"
    name = str(kind).lower()
    return name.startswith(NUMBER_KINDS) and not name.startswith(("int128", "uint128"))
