"""Parts of Parquet files: row groups that are read where they are needed.

A reader is a few names and numbers, which can be sent to a worker; it opens its files there. Only
the columns that are needed are read, in batches, so that a large row group does not have to fit
into memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.power import no_power, raised
from regimix.engines.parts import RawRows
from regimix.errors import DataError, MissingExtraError, reason_of
from regimix.paths import as_os_errors

Bools = NDArray[np.bool_]

# Bytes of numbers that are turned from columns into rows at a time: they stay in the cache.
BATCH_BYTES = 4_000_000
FEWEST_BATCH_ROWS = 1024
# Bytes of a column that are fetched at a time; otherwise it is the column's whole row group. From
# elsewhere more at a time: each time there is a request to wait for.
BUFFER_BYTES = 250_000
REMOTE_BUFFER_BYTES = 2_000_000
# What object stores call the version of an object, and file systems the time of the last change.
VERSIONS = ("ETag", "etag", "generation")
TIMES = ("mtime", "last_modified", "LastModified", "last_write_time", "modify", "created")
# The end of a Parquet file: how long its footer is, in four bytes, and a word.
TAIL = 8


def need_pyarrow() -> None:
    """Refuse to go on without pyarrow, of the extra "dask"."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        who = "Parquet files that are read in parts need"
        raise MissingExtraError.of("pyarrow", "dask", who) from error


@dataclass(frozen=True)
class FileMark:
    """What a file is recognised by, to notice that it was changed; empty where it is not known."""

    footer: str = ""  # fingerprint of the footer: where each column is, how long, and its extent
    version: str = ""  # what an object store calls this version of the file
    time: str = ""  # when it was last changed

    def is_same(self, other: FileMark) -> bool:
        """Whether nothing that both know differs."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(not a or not b or a == b for a, b in pairs)


@contextmanager
def open_parquet(path: str, *, at_once: bool = False) -> Iterator[tuple[Any, FileMark]]:
    """Open a file, here or at an address that fsspec knows ("s3://...").

    If all of it is wanted in memory (``at_once``), it is fetched from elsewhere in few requests.
    """
    import pyarrow.parquet as pq

    if "://" not in path:
        # With pre_buffer, on by default, all that is asked for would be in memory in the end.
        options: dict[str, Any] = {"buffer_size": BUFFER_BYTES, "pre_buffer": False}
        with Path(path).open("rb") as stream, pq.ParquetFile(path, **options) as file:
            status = os.fstat(stream.fileno())
            yield file, FileMark(_fingerprint(stream), time=str(status.st_mtime_ns))
        return
    from fsspec.core import url_to_fs

    system, place = url_to_fs(path)
    system.invalidate_cache(place)
    options = {"pre_buffer": at_once, "buffer_size": 0 if at_once else REMOTE_BUFFER_BYTES}
    # Columns are read in turns, which a cache that reads ahead does not foresee.
    with (
        as_os_errors(),
        system.open(place, "rb", cache_type="none") as stream,
        pq.ParquetFile(stream, **options) as file,
    ):
        yield file, mark_of(system.info(place), _fingerprint(stream))


def mark_of(info: dict[str, Any], footer: str = "") -> FileMark:
    """Return what fsspec knows of a file."""
    version = next((str(info[name]) for name in VERSIONS if info.get(name)), "")
    if version.startswith("W/"):  # "weak": may differ where bytes do not
        version = ""
    # Listings and files may give times to different digits; a version needs no time.
    time = "" if version else next((str(info[name]) for name in TIMES if info.get(name)), "")
    return FileMark(footer, version, time)


def _fingerprint(stream: Any) -> str:
    """Return the size of a file and a checksum of its footer."""
    stream.seek(0, os.SEEK_END)
    size = stream.tell()
    stream.seek(size - TAIL)
    length = int.from_bytes(stream.read(TAIL)[:4], "little")
    stream.seek(max(0, size - TAIL - length))
    return f"{size} {hashlib.sha256(stream.read(length)).hexdigest()}"


def what_failed(error: BaseException) -> str:
    """Say in a few words why a file cannot be read."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return reason_of(error)


@dataclass(frozen=True)
class Span:
    """Consecutive row groups of one file, ``first`` to ``stop``, which is not included."""

    path: str
    name: str  # what messages call the file
    first: int
    stop: int
    n_rows: int
    first_row: int = 0  # where they begin in the whole table
    output: str = ""  # what a file of as many rows is called that is written beside it
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
        how = "it was written anew"
        if found != self.n_rows:
            how = f"{found} rows are where there were {self.n_rows}"
        elif self.mark.is_same(mark):
            return
        raise DataError(
            f"{self.name!r} has changed since the table was opened: {how}. Open the table again."
        )


@dataclass(frozen=True)
class ParquetReader:
    """Reads a part of a table: spans of files, one after the other."""

    spans: tuple[Span, ...]
    features: tuple[str, ...]
    target: str | None
    weights: str | None = None
    key: str | None = None
    power: float = 1.0  # of the target; zero is the logarithm
    number: str = "float64"  # type of the numbers of X
    missing: str = "drop"  # rows with a missing or infinite value: left out; or "error"
    blank_target: bool = False  # whether the target may be missing
    piece_rows: int | None = None  # most rows in a piece; None: the part is read as one piece
    use_threads: bool = False  # whether several threads take columns apart
    gating: tuple[str, ...] = ()  # columns that may tell the regime of a row, of any kind

    @property
    def n_rows(self) -> int:
        """Rows of the part, those that cannot be used included."""
        return sum(span.n_rows for span in self.spans)

    def __call__(self) -> Iterator[RawRows]:
        """Read the part in pieces; the last may have no rows."""
        size = min(self.piece_rows or self.n_rows, self.n_rows)
        width = np.dtype(self.number).itemsize * len(self._columns)
        batch_rows = max(FEWEST_BATCH_ROWS, BATCH_BYTES // width)
        how = {"use_threads": self.use_threads, "at_once": self.piece_rows is None}
        piece = _Piece(self, size)
        for span in self.spans:
            begun = 0
            for batch in span.batches(self._columns, batch_rows, **how):
                done = 0
                while done < batch.num_rows:
                    if not piece.free:
                        yield piece.rows()
                        piece = _Piece(self, size)
                    some = batch.slice(done, piece.free)
                    piece.add(some, span, begun + done)
                    done += some.num_rows
                begun += done
        yield piece.rows()

    def labelled(self, span: Span, batch_rows: int) -> Iterator[tuple[RawRows, Bools, Any]]:
        """Read one of the spans: rows that can be used, which of all they are, and all as read.

        What was read holds keys and columns for the gating as well. The target is as it was
        written, not its power.
        """
        keys = () if self.key is None else (self.key,)
        columns = [*self._columns, *keys, *self.gating]
        begun = 0
        for batch in span.batches(list(dict.fromkeys(columns)), batch_rows):
            piece = _Piece(self, batch.num_rows, as_read=True)
            kept = piece.add(batch, span, begun)
            begun += batch.num_rows
            yield piece.rows(), kept, batch

    def key_kind(self) -> Any:
        """Return the type of the keys; without a column of keys, that of row numbers."""
        import pyarrow as pa

        if self.key is None:
            return pa.int64()
        with open_parquet(self.spans[0].path) as (file, _):
            return file.schema_arrow.field(self.key).type

    def where(self, span: Span, row: int) -> str:
        """Name a row of a span, by its key or by its number in the table."""
        left = row
        for batch in span.batches([self.key], FEWEST_BATCH_ROWS) if self.key else ():
            if left < batch.num_rows:
                return f"{self.key} {batch.column(0)[left].as_py()}"
            left -= batch.num_rows
        return f"row {span.first_row + row + 1}"

    @property
    def _columns(self) -> list[str]:
        others = [name for name in (self.target, self.weights) if name is not None]
        return [*self.features, *others]


def columns_of(batch: Any, names: Sequence[str], kept: Bools) -> Any:
    """Return columns of the rows that are kept, as a polars frame; None without names."""
    if not names:
        return None
    import polars as pl
    import pyarrow as pa

    return pl.from_arrow(batch.select(list(names)).filter(pa.array(kept)))


class _Piece:
    """Rows in one block of memory that is filled from columns."""

    def __init__(self, reader: ParquetReader, size: int, *, as_read: bool = False) -> None:
        self._reader, self._as_read = reader, as_read
        self._filled = 0
        self.X = np.empty((size, len(reader.features)), dtype=reader.number)
        self.y = None if reader.target is None else np.empty(size)
        self.weights = None if reader.weights is None else np.empty(size)
        # Where the numbers of each column go.
        self._places = {name: self.X[:, j] for j, name in enumerate(reader.features)}
        for name, place in ((reader.target, self.y), (reader.weights, self.weights)):
            if name is not None and place is not None:
                self._places[name] = place

    @property
    def free(self) -> int:
        """Rows that can still be added."""
        return len(self.X) - self._filled

    def add(self, batch: Any, span: Span, begun: int) -> Bools:
        """Add usable rows of a batch, ``begun`` rows into its span; return which those are."""
        reader = self._reader
        kept = np.ones(batch.num_rows, dtype=np.bool_)
        columns = {name: _numbers(batch.column(name)) for name in self._places}
        for name, values in columns.items():
            if name == reader.target and reader.blank_target:
                continue
            there = np.isfinite(values)
            if there.all():
                continue
            if reader.missing == "error":
                raise DataError(
                    f"column {name!r} has a missing or infinite value in {span}. Fill such values "
                    "in, leave the column out, or have such rows dropped."
                )
            kept &= there
        if reader.target is not None and reader.power != 1.0:
            y = np.asarray(columns[reader.target], dtype=np.float64)
            values = raised(y, reader.power)
            bad = np.flatnonzero(kept & np.isfinite(y) & ~np.isfinite(values))
            if bad.size:
                where = reader.where(span, begun + int(bad[0]))
                raise no_power(reader.target, reader.power, where, float(y[bad[0]]))
            columns[reader.target] = y if self._as_read else values
        first, whole = self._filled, bool(kept.all())
        self._filled += batch.num_rows if whole else int(np.count_nonzero(kept))
        for name, values in columns.items():
            self._places[name][first : self._filled] = values if whole else values[kept]
        return kept

    def rows(self) -> RawRows:
        """Return what was added."""
        end = self._filled
        y, weights = (None if one is None else one[:end] for one in (self.y, self.weights))
        return RawRows(self.X[:end], y, weights)


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
