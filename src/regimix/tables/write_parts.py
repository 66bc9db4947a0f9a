"""Labels and predictions of tables that are read in parts, written file by file.

Each file that is read has one beside it with as many rows in the same order (a file that is larger
than a part has several, with numbers). A file appears whole or not at all, and the same work makes
the same bytes: whatever ended it, it can be done again.
"""

from __future__ import annotations

import io
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.atomic import open_atomically, remove_leftovers
from regimix.engines.parquet import ParquetReader, Span, need_pyarrow, open_parquet
from regimix.engines.parts import PassStopped
from regimix.errors import DataError
from regimix.paths import (
    cannot_reach,
    canonical,
    is_address,
    is_table_file,
    is_within,
    reach,
)
from regimix.tables.parquet import READERS, ParquetTable
from regimix.tables.recipe import DataSet
from regimix.tables.write import WrittenFile, are_label_columns, count_outliers, label_columns

if TYPE_CHECKING:
    from regimix.engines.parts import Watch
    from regimix.result.mixture import Mixture

__all__ = ["check_destination", "write_label_parts"]

# Rows of a row group that is written, and numbers of features that are looked at at a time; fixed,
# so that the same rows make the same bytes.
GROUP_ROWS = 100_000
BATCH_NUMBERS = 250_000


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
        Called with how many parts of how many are written; a true answer stops the work with a
        KeyboardInterrupt.

    Returns
    -------
    list of WrittenFile
    """
    need_pyarrow()
    place = check_destination(folder, table)
    outputs = [Path(place) / span.output for span in table.spans]
    if not is_address(place):
        for target in {output.parent for output in outputs}:
            target.mkdir(parents=True, exist_ok=True)
    # What is sent to each worker: no rows, and nothing of how the mixture was found.
    bare = replace(mixture, labels=np.empty(0, np.int64), excerpt=None, attempts=(), selection=None)
    write = _PartWriter(place, replace(table, readers=(), part_names=()), bare, GROUP_ROWS)
    on_workers = table.on_cluster and not isinstance(labels, np.ndarray)
    apply = _on_workers if on_workers else _here
    written = apply(write, table, labels, watch)
    if not is_address(place):
        # Of this work and of any before it.
        remove_leftovers(outputs)
    return written


def _here(
    write: _PartWriter, table: ParquetTable, labels: Any, watch: Watch | None
) -> list[WrittenFile]:
    """Write all parts one after the other."""
    written: list[WrittenFile] = []
    first = 0
    for done, reader in enumerate(table.part_readers):
        files = write(reader, None if labels is None else labels[first:], more=True)
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

    def __call__(
        self, reader: ParquetReader, labels: Any = None, *, more: bool = False
    ) -> list[WrittenFile]:
        """Write one file for each span; ``more`` says that labels of other parts may follow."""
        import pyarrow.parquet as pq

        schema = self._schema(reader)
        # Numbers that hardly repeat take more time and bytes with a dictionary of them.
        few = [name for name in schema.names if name.startswith("regime")] or False
        files: list[WrittenFile] = []
        used = 0
        for span in reader.spans:
            path = f"{self.folder}/{span.output}"
            with (
                _whole_file(path) as stream,
                pq.ParquetWriter(stream, schema, use_dictionary=few) as writer,
            ):
                known = None if labels is None else labels[used:]
                counts = self._write(writer, reader, span, known)
            files.append(WrittenFile(path, *counts))
            used += files[-1].n_rows - files[-1].n_dropped
        if labels is not None and not more and used != len(labels):
            raise _other_table()
        return files

    def _write(self, writer: Any, reader: ParquetReader, span: Span, labels: Any) -> list[int]:
        """Write the rows of a span in row groups; count them as ``WrittenFile`` does."""
        import pyarrow as pa

        batch_rows = min(self.group_rows, BATCH_NUMBERS // len(reader.features) + 1)
        total = used = 0
        counts = np.zeros(2, dtype=np.int64)
        waiting: list[Any] = []
        for rows, kept, keys in reader.labelled(span, batch_rows):
            known = None if labels is None else np.asarray(labels[used : used + rows.n_rows])
            if known is not None and len(known) < rows.n_rows:
                raise _other_table()
            numbers = np.arange(kept.size) + (span.first_row + total + 1)
            columns = [pa.nulls(0, field.type) for field in writer.schema]
            if rows.n_rows:
                named = list(self._named(reader, rows.X, rows.y, known, numbers[kept]).values())
                columns = [pa.array(np.ma.getdata(v), mask=np.ma.getmaskarray(v)) for v in named]
                counts += count_outliers(named, rows.y)
            # A row that cannot be used has no index, and is blank.
            indices = pa.array(np.cumsum(kept) - 1, mask=~kept)
            columns = [pa.array(numbers) if keys is None else keys] + [
                column.take(indices) for column in columns[1:]
            ]
            total, used = total + kept.size, used + rows.n_rows
            waiting.append(pa.Table.from_arrays(columns, schema=writer.schema))
            if sum(map(len, waiting)) >= self.group_rows:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
        return [total, total - used, *counts.tolist()]

    def _schema(self, reader: ParquetReader) -> Any:
        """Name the columns and their types, which no row changes."""
        import pyarrow as pa

        target = None if reader.target is None else np.zeros(1)
        named = self._named(reader, np.zeros((1, len(reader.features))), target, None, np.zeros(1))
        kinds = [pa.from_numpy_dtype(np.asarray(values).dtype) for values in named.values()]
        key = reader.key_kind()
        return pa.schema(list(zip(named, [key, *kinds[1:]], strict=True)))

    def _named(
        self, reader: ParquetReader, X: Any, y: Any, labels: Any, keys: NDArray[Any]
    ) -> dict[str, Any]:
        """Say what the mixture makes of rows, in the columns of a table in memory."""
        table = self.table
        data = DataSet(
            X=np.asarray(X, dtype=np.float64),
            y=y,
            weights=None,
            keys=keys,
            n_read=len(X),
            n_dropped=0,
            notes=(),
            recipe=table.recipe,
            source=table.source,
        )
        every = reader.blank_target
        return label_columns(data, self.mixture, labels=labels, each_regime=every or None)


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


# --- where they may be written --------------------------------------------------------------------


def check_destination(folder: str | Path, table: ParquetTable) -> str:
    """Refuse a folder that holds the table itself, or files that would be mixed up with labels.

    Returns
    -------
    str
        Where the folder is: a path without links, or the address as it was given.
    """
    place = canonical(str(folder))
    outputs = [span.output for span in table.spans]
    sources = {canonical(path) for path in {span.path for span in table.spans}}
    harmed = any(canonical(f"{place}/{output}") in sources for output in outputs)
    if harmed or any(is_within(place, read) for read in _folders(table.source, sources)):
        raise DataError(
            f"the folder {str(folder)!r} is where the table itself is; choose another one."
        )
    wanted = set(outputs)
    there = _names_in(str(folder) if is_address(place) else place)
    for name in there:
        if name not in wanted and is_table_file(PurePosixPath(name)):
            raise DataError(
                f"the folder {str(folder)!r} holds {name!r}, which is none of the files to be "
                "written, and would be read as one of them; choose an empty folder."
            )
    address = str(folder) if str(folder).endswith("://") else str(folder).rstrip("/")
    where = address if is_address(place) else place
    _check_replaced(str(folder), where, [name for name in there if name in wanted])
    return where


def _folders(source: str, files: Iterable[str]) -> Iterable[str]:
    """Return where files of labels would be read as part of a table, next time or by its folder."""
    whole = canonical(source)
    yield whole
    if re.search(r"[*?\[]", source) and whole not in files:
        yield from {posixpath.dirname(file) for file in files}
        if "**" in source:
            yield canonical(source.partition("**")[0] or ".")


def _check_replaced(folder: str, where: str, names: Sequence[str]) -> None:
    """Refuse to replace files that are not labels which were written before."""
    with ThreadPoolExecutor(READERS) as readers:
        ours = readers.map(_holds_labels, [f"{where}/{name}" for name in names])
        for name, safe in zip(names, ours, strict=True):
            if not safe:
                raise DataError(
                    f"the folder {folder!r} holds {name!r}, which would be replaced and is no file "
                    "of labels that was written before; choose another folder."
                )


def _holds_labels(path: str) -> bool:
    """Whether a file has the columns of labels; only its footer is read."""
    import pyarrow as pa

    try:
        with open_parquet(path) as (file, _):
            return are_label_columns(file.schema_arrow.names)
    except (OSError, pa.ArrowException):
        return False


def _names_in(place: str) -> list[str]:
    """Name the files below a folder, here or at an address."""
    system, folder = reach(place)
    try:
        system.invalidate_cache()  # others may have written there
        is_file = system.isfile(folder)
        found = sorted(system.find(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot_reach(place, error) from error
    if is_file:
        raise DataError(f"{place!r} is a file, and a folder is needed; choose another name.")
    return [posixpath.relpath(name, folder or ".") for name in found]
