"""Parts of Parquet files: row groups that are read when a task meets them.

A reader is a few names and numbers, which can be sent to a worker; it opens its files there. Only
the columns that are needed are read, in batches, so that a large row group does not have to fit
into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.parquetfile import FileMark, open_parquet, what_failed
from regimix.engines.parts import RawRows
from regimix.errors import DataError

__all__ = ["LabelledBatch", "ParquetReader", "Span"]

Bools = NDArray[np.bool_]

# Bytes of numbers that are turned from columns into rows at a time: they stay in the cache.
BATCH_BYTES = 4_000_000
FEWEST_BATCH_ROWS = 1024


@dataclass(frozen=True)
class Span:
    """Consecutive row groups of one file.

    Attributes
    ----------
    path, name : str
        Where the file is, and what messages call it.
    first, stop : int
        The row groups, ``stop`` not included.
    n_rows : int
        Their rows.
    first_row : int
        Where they begin in the whole table.
    output : str
        What a file of as many rows is called that is written beside it.
    mark : FileMark
        What tells the file from what it may be changed to.
    """

    path: str
    name: str
    first: int
    stop: int
    n_rows: int
    first_row: int = 0
    output: str = ""
    mark: FileMark = field(default_factory=FileMark)

    def __str__(self) -> str:
        last = self.stop - 1
        groups = f"row group {last}" if self.first == last else f"row groups {self.first} to {last}"
        return f"{groups} of {self.name!r}"

    def batches(
        self,
        columns: list[str],
        batch_rows: int,
        *,
        use_threads: bool = False,
        at_once: bool = False,
    ) -> Iterator[Any]:
        """Read some columns, so many rows at a time."""
        import pyarrow as pa

        if self.first == self.stop:
            return
        try:
            with open_parquet(self.path, at_once=at_once) as (file, mark):
                self._check(file.metadata, mark)
                yield from file.iter_batches(
                    batch_rows, range(self.first, self.stop), columns, use_threads=use_threads
                )
        except (OSError, pa.ArrowException, KeyError) as error:
            raise DataError(
                f"cannot read {self}: {what_failed(error)}. Fetch the file again, or leave it out."
            ) from error

    def _check(self, metadata: Any, mark: FileMark) -> None:
        groups = range(self.first, min(self.stop, metadata.num_row_groups))
        found = sum(metadata.row_group(group).num_rows for group in groups)
        if found != self.n_rows:
            raise DataError(
                f"{self.name!r} has changed since the table was opened: {found} rows are where "
                f"there were {self.n_rows}. Open the table again."
            )
        if not self.mark.is_same(mark):
            raise DataError(
                f"{self.name!r} has changed since the table was opened: it was written anew. Open "
                "the table again."
            )


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Consecutive rows of a file, those that cannot be used included.

    Attributes
    ----------
    rows : RawRows
        Those that can be used.
    kept : ndarray of bool
        Which those are, among all.
    keys : pyarrow array or None
        What is in the column that names them all.
    """

    rows: RawRows
    kept: Bools
    keys: Any = None


@dataclass(frozen=True)
class ParquetReader:
    """Reads a part of a table: spans of files, one after the other.

    Attributes
    ----------
    spans : tuple of Span
    features : tuple of str
    target, weights, key : str or None
        Other columns.
    number : str
        Type of the numbers of X.
    missing : {"drop", "error"}
        Whether rows with a missing or infinite value are left out, or refused.
    blank_target : bool
        Whether the target may be missing.
    piece_rows : int or None
        Most rows in a piece; None: the part is read as one piece.
    use_threads : bool
        Whether several threads take columns apart.
    """

    spans: tuple[Span, ...]
    features: tuple[str, ...]
    target: str | None
    weights: str | None = None
    key: str | None = None
    number: str = "float64"
    missing: str = "drop"
    blank_target: bool = False
    piece_rows: int | None = None
    use_threads: bool = False

    @property
    def n_rows(self) -> int:
        """Rows of the part, those that cannot be used included."""
        return sum(span.n_rows for span in self.spans)

    def __call__(self) -> Iterator[RawRows]:
        """Read the part in pieces; the last may have no rows."""
        size = min(self.piece_rows or self.n_rows, self.n_rows)
        piece = _Piece(self, size)
        for span in self.spans:
            for batch in span.batches(
                self._columns,
                self._batch_rows,
                use_threads=self.use_threads,
                at_once=self.piece_rows is None,
            ):
                done = 0
                while done < batch.num_rows:
                    if not piece.room:
                        yield piece.rows()
                        piece = _Piece(self, size)
                    some = batch.slice(done, piece.room)
                    piece.add(some, span)
                    done += some.num_rows
        yield piece.rows()

    def labelled(self, span: Span, batch_rows: int) -> Iterator[LabelledBatch]:
        """Read one of the spans, telling the rows that cannot be used."""
        columns = self._columns if self.key is None else [*self._columns, self.key]
        for batch in span.batches(list(dict.fromkeys(columns)), batch_rows):
            piece = _Piece(self, batch.num_rows)
            kept = piece.add(batch, span)
            keys = None if self.key is None else batch.column(self.key)
            yield LabelledBatch(piece.rows(), kept, keys)

    def key_kind(self) -> Any:
        """Return the type of the keys; without a column of keys, that of row numbers."""
        import pyarrow as pa

        if self.key is None:
            return pa.int64()
        with open_parquet(self.spans[0].path) as (file, _):
            return file.schema_arrow.field(self.key).type

    @property
    def _columns(self) -> list[str]:
        others = [name for name in (self.target, self.weights) if name is not None]
        return [*self.features, *others]

    @property
    def _batch_rows(self) -> int:
        width = np.dtype(self.number).itemsize * len(self._columns)
        return max(FEWEST_BATCH_ROWS, BATCH_BYTES // width)


class _Piece:
    """Rows in one block of memory that is filled from columns."""

    def __init__(self, reader: ParquetReader, size: int) -> None:
        self._reader = reader
        self._filled = 0
        self.X = np.empty((size, len(reader.features)), dtype=reader.number)
        self.y = None if reader.target is None else np.empty(size)
        self.weights = None if reader.weights is None else np.empty(size)

    @property
    def room(self) -> int:
        """Rows that can still be added."""
        return len(self.X) - self._filled

    def add(self, batch: Any, span: Span) -> Bools:
        """Add the rows that can be used; say which of the batch those are."""
        reader = self._reader
        kept = np.ones(batch.num_rows, dtype=np.bool_)
        pairs: list[tuple[NDArray[Any], NDArray[Any]]] = []
        places: list[tuple[str | None, NDArray[Any] | None]] = [
            *((name, self.X[:, j]) for j, name in enumerate(reader.features)),
            (reader.target, self.y),
            (reader.weights, self.weights),
        ]
        for name, place in places:
            if name is None or place is None:
                continue
            values = _numbers(batch.column(name))
            pairs.append((values, place))
            if place is self.y and reader.blank_target:
                continue
            there = np.isfinite(values)
            if not there.all():
                self._refuse(name, span)
                kept &= there
        first, whole = self._filled, bool(kept.all())
        self._filled += batch.num_rows if whole else int(np.count_nonzero(kept))
        for values, place in pairs:
            place[first : self._filled] = values if whole else values[kept]
        return kept

    def _refuse(self, name: str, span: Span) -> None:
        if self._reader.missing == "error":
            raise DataError(
                f"column {name!r} has a missing or infinite value in {span}. Fill such values in, "
                "leave the column out, or have such rows dropped."
            )

    def rows(self) -> RawRows:
        """Return what was added."""
        there = slice(0, self._filled)
        return RawRows(
            self.X[there],
            None if self.y is None else self.y[there],
            None if self.weights is None else self.weights[there],
        )


def _numbers(column: Any) -> NDArray[Any]:
    """Turn a column into numbers, NaN where one is missing."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
