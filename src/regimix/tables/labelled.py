"""Labels and predictions of tables that are read in parts, written file by file.

Each file that is read has one beside it with as many rows in the same order (a file that is larger
than a part has several, with numbers). A file appears whole or not at all, and the same work makes
the same bytes: whatever ended it, it can be done again.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.atomic import open_atomically, remove_leftovers
from regimix.engines.parquet import LabelledBatch, ParquetReader, Span
from regimix.engines.parquetfile import need_pyarrow
from regimix.engines.parts import PassStopped
from regimix.errors import DataError
from regimix.tables.data import DataSet
from regimix.tables.destination import outputs_of, prepare_destination
from regimix.tables.places import is_address, reach
from regimix.tables.scan import ParquetTable
from regimix.tables.write import label_columns

if TYPE_CHECKING:
    from regimix.engines.parts import Watch
    from regimix.result.mixture import Mixture

__all__ = ["WrittenFile", "write_label_parts"]

# Rows of a row group that is written, and numbers of features that are looked at at a time; fixed,
# so that the same rows make the same bytes.
GROUP_ROWS = 100_000
BATCH_NUMBERS = 250_000


@dataclass(frozen=True)
class WrittenFile:
    """A file that was written.

    Attributes
    ----------
    path : str
    n_rows : int
        Rows of the file, as many as were read.
    n_dropped : int
        Rows in which a needed value is missing: all is blank but their key.
    n_outliers : int
        Rows that follow no regime.
    n_unknown : int
        Rows that were predicted but not assigned, because their target is missing.
    """

    path: str
    n_rows: int
    n_dropped: int = 0
    n_outliers: int = 0
    n_unknown: int = 0


def write_label_parts(
    folder: str | Path,
    table: ParquetTable,
    mixture: Mixture,
    *,
    labels: Any = None,
    watch: Watch | None = None,
) -> list[WrittenFile]:
    """Write what a mixture makes of each row of a table in parts to a folder of Parquet files.

    The columns are those of ``label_columns``; for new rows (``scan_like``) that may lack a target,
    ``prediction_0``, ... are always among them. Rows that cannot be used are blank. A table on a
    cluster is written by the workers, who must see the folder under the same name.

    Parameters
    ----------
    folder : str or Path
        A folder, which is created, or an address that fsspec knows. Labels that were written there
        before are replaced; a folder that holds the table itself or other files is refused.
    labels : array or dask array of shape (n,), optional
        The regimes of the rows that can be used, if they are known (``labels_`` for the rows of the
        fit); default: ``mixture.assign``.
    watch : callable, optional
        Told how many parts of how many are written; a true answer stops the work with a
        KeyboardInterrupt.

    Returns
    -------
    list of WrittenFile
    """
    need_pyarrow()
    place = prepare_destination(folder, table)
    # What is sent to each worker: no rows, and nothing of how the mixture was found.
    bare = replace(mixture, labels=np.empty(0, np.int64), excerpt=None, attempts=(), selection=None)
    write = _PartWriter(place, replace(table, readers=(), part_names=()), bare, GROUP_ROWS)
    on_workers = table.on_cluster and not isinstance(labels, np.ndarray)
    apply = _on_workers if on_workers else _here
    written = apply(write, table, labels, watch)
    if not is_address(place):
        # Of this work and of any before it.
        remove_leftovers(Path(place) / output for output in outputs_of(table))
    return written


def _here(
    write: _PartWriter, table: ParquetTable, labels: Any, watch: Watch | None
) -> list[WrittenFile]:
    written: list[WrittenFile] = []
    first = 0
    for done, reader in enumerate(table.part_readers):
        files = write.files(reader, None if labels is None else labels[first:])
        first += sum(file.n_rows - file.n_dropped for file in files)
        written += files
        if watch is not None and watch(done + 1, len(table.readers)):
            raise KeyboardInterrupt
    if labels is not None and first != len(labels):
        raise _other_table()
    return written


def _on_workers(
    write: _PartWriter, table: ParquetTable, labels: Any, watch: Watch | None
) -> list[WrittenFile]:
    if getattr(labels, "npartitions", len(table.readers)) != len(table.readers):
        raise _other_table()
    engine = import_module("regimix.engines.dask")
    try:
        parts = engine.dask_map(write, table.part_readers, labels, table.part_names, watch)
    except PassStopped:
        raise KeyboardInterrupt from None
    return [file for files in parts for file in files]


def _other_table() -> DataError:
    return DataError(
        "there are not as many labels as rows that can be used: the table is not the one that was "
        "fitted, or its labels were cut anew. Pass the table and the labels of one fit, or no "
        "labels."
    )


# --- one part -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _PartWriter:
    """Writes the files of a part; can be sent to a worker."""

    folder: str
    table: ParquetTable
    mixture: Mixture
    group_rows: int

    def __call__(self, reader: ParquetReader, labels: Any = None) -> list[WrittenFile]:
        """Write a part of which all labels are given, if any."""
        files = self.files(reader, labels)
        used = sum(file.n_rows - file.n_dropped for file in files)
        if labels is not None and used != len(labels):
            raise _other_table()
        return files

    def files(self, reader: ParquetReader, labels: Any = None) -> list[WrittenFile]:
        """Write one file for each span; labels of more rows may follow."""
        import pyarrow.parquet as pq

        schema = self._schema(reader)
        # Numbers that hardly repeat take longer, and more room, with a dictionary of them.
        few = [name for name in schema.names if name.startswith("regime")] or False
        files: list[WrittenFile] = []
        for span in reader.spans:
            path = f"{self.folder}/{span.output}"
            used = sum(file.n_rows - file.n_dropped for file in files)
            with (
                _whole_file(path) as stream,
                pq.ParquetWriter(stream, schema, use_dictionary=few) as writer,
            ):
                known = None if labels is None else labels[used:]
                counts = self._write(writer, reader, span, known)
            files.append(WrittenFile(path, *counts))
        return files

    def _write(self, writer: Any, reader: ParquetReader, span: Span, labels: Any) -> list[int]:
        """Write the rows of a span in row groups; count them as ``WrittenFile`` does."""
        import pyarrow as pa

        batch_rows = min(self.group_rows, BATCH_NUMBERS // len(reader.features) + 1)
        counts = np.zeros(4, dtype=np.int64)
        waiting: list[Any] = []
        for batch in reader.labelled(span, batch_rows):
            used = int(counts[0] - counts[1])
            known = None if labels is None else _some(labels, used, used + batch.rows.n_rows)
            first = span.first_row + int(counts[0])
            columns, seen = self._labelled(reader, batch, known, first, writer.schema)
            counts += seen
            waiting.append(pa.Table.from_arrays(columns, schema=writer.schema))
            if sum(map(len, waiting)) >= self.group_rows:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
        totals: list[int] = counts.tolist()
        return totals

    def _labelled(
        self, reader: ParquetReader, batch: LabelledBatch, labels: Any, first: int, schema: Any
    ) -> tuple[list[Any], tuple[int, int, int, int]]:
        """Put the columns of a batch together, and count its rows as ``WrittenFile`` does."""
        import pyarrow as pa

        rows, kept = batch.rows, batch.kept
        numbers = np.arange(first + 1, first + kept.size + 1)
        keys = pa.array(numbers) if batch.keys is None else batch.keys
        dropped = kept.size - rows.n_rows
        if not rows.n_rows:
            blank = [pa.nulls(kept.size, field.type) for field in list(schema)[1:]]
            return [keys, *blank], (kept.size, dropped, 0, 0)
        columns = self._columns(reader, rows.X, rows.y, labels, numbers[kept])
        arrays = [_spread(values, kept) for values in columns[1:]]
        if rows.y is None:
            return [keys, *arrays], (kept.size, dropped, 0, 0)
        # The third column, after key and target, is the regime.
        outliers = int(np.ma.filled(columns[2] < 0, False).sum())
        unknown = int(np.count_nonzero(~np.isfinite(rows.y)))
        return [keys, *arrays], (kept.size, dropped, outliers, unknown)

    def _schema(self, reader: ParquetReader) -> Any:
        """Name the columns and their types, which no row changes."""
        import pyarrow as pa

        target = None if reader.target is None else np.zeros(1)
        named = self._named(reader, np.zeros((1, len(reader.features))), target, None, np.zeros(1))
        kinds = [pa.from_numpy_dtype(np.asarray(values).dtype) for values in named.values()]
        key = reader.key_kind()
        return pa.schema(list(zip(named, [key, *kinds[1:]], strict=True)))

    def _columns(self, *rows: Any) -> list[Any]:
        return list(self._named(*rows).values())

    def _named(
        self, reader: ParquetReader, X: Any, y: Any, labels: Any, keys: NDArray[Any]
    ) -> dict[str, Any]:
        """Say what the mixture makes of rows, in the columns of a table in memory."""
        table = self.table
        data = DataSet(
            X=np.asarray(X, dtype=np.float64),
            y=y,
            weights=None,
            feature_names=table.names,
            target_name=table.target_name,
            keys=keys,
            key_name=table.recipe.key or "row",
            n_read=len(X),
            n_dropped=0,
            notes=(),
            recipe=table.recipe,
            source=table.source,
        )
        every = reader.blank_target
        return label_columns(data, self.mixture, labels=labels, each_regime=every or None)


def _some(labels: Any, first: int, stop: int) -> NDArray[np.int64]:
    """Take the labels of some rows."""
    if stop > len(labels):
        raise _other_table()
    return np.asarray(labels[first:stop])


def _spread(values: Any, kept: NDArray[np.bool_]) -> Any:
    """Put values into the rows they belong to; the others are blank."""
    import pyarrow as pa

    blank = ~kept
    whole = np.zeros(kept.size, dtype=values.dtype)
    whole[kept] = np.ma.getdata(values)
    blank[kept] = np.ma.getmaskarray(values)
    return pa.array(whole, mask=blank)


@contextmanager
def _whole_file(path: str) -> Iterator[Any]:
    """Open a file for writing that appears whole or not at all."""
    try:
        if not is_address(path):
            with open_atomically(path) as file:
                yield file
            return
        # An object is put in its place at once.
        stream = io.BytesIO()
        yield stream
        system, place = reach(path)
        system.pipe_file(place, stream.getvalue())
    except OSError as error:
        reason = (error.strerror or str(error)).rstrip(".")
        raise DataError(
            f"{path!r} cannot be written: {reason}. Make room for it, or choose another folder."
        ) from error
