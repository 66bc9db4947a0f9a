"""Writing tables: columns, and labelled rows of tables in memory and in parts.

Of a table in parts, each file that is read has one beside it with as many rows in the same order (a
file that is larger than a part has several, with numbers). A file appears whole or not at all, and
the same work makes the same bytes: whatever ended it, it can be done again.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.atomic import open_atomically, remove_leftovers, write_bytes
from regimix.data.power import raised, returned
from regimix.data.recipe import Recipe, check_columns
from regimix.engines.parquet import ParquetReader, Span, columns_of, open_parquet
from regimix.engines.parts import PassStopped, Watch
from regimix.errors import DataError, ParameterError, StoppedError, StopReason, need, reason_of
from regimix.paths import (
    as_os_errors,
    cannot_reach,
    canonical,
    format_of_name,
    is_address,
    is_table_file,
    is_within,
    reach,
)
from regimix.result.gate import gate_shares
from regimix.tables.parquet import READERS, ParquetTable
from regimix.tables.read import DataSet
from regimix.threads import fitting_threads

if TYPE_CHECKING:
    import polars as pl

    from regimix.result.mixture import Mixture

# A spreadsheet runs a cell that begins with one of these as a formula.
FORMULA = r"^[=+\-@\t\r\n]"
# Columns that do not need the target of a row, and the probability of the interval.
FORECAST = ("likely_regime", "likely_probability", "lower", "upper")
FORECAST_LEVEL = 0.95
# The columns of labels, of rows without a target and with one.
FORESEEN = f"( {' '.join(FORECAST)})?"
LABELS = re.compile(
    rf"prediction{FORESEEN}( prediction_\d+)+|regime prediction{FORESEEN}( probability_\d+)+ "
    r"probability_outlier outlier_score( prediction_\d+)*"
)
# Rows of a row group that is written, and numbers that are read at a time; fixed, so that the same
# rows give the same bytes.
GROUP_ROWS = 100_000
BATCH_NUMBERS = 250_000


def write_table(path: str | Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a CSV, TSV, Parquet, Arrow or JSON lines file; the name says which.

    The file appears whole or not at all. Text formats are compressed if the name ends in ".gz". In
    CSV and TSV, text that a spreadsheet would run as a formula (it begins with = + - @, a tab or a
    line break) gets an apostrophe in front; numbers never do.

    Parameters
    ----------
    path : str or Path
    columns : mapping of str to array
    """
    need("polars", "cli", "tables need")
    import polars as pl

    path = Path(path)
    file_format = format_of_name(path)
    compressed = path.suffix.lower() == ".gz"
    if file_format is None or (compressed and file_format in ("parquet", "arrow")):
        raise ParameterError(
            f"the name of a table must end in .csv, .tsv, .jsonl (or these and .gz), .parquet or "
            f".arrow; got {path.name!r}."
        )
    frame = pl.DataFrame({name: _plain(values) for name, values in columns.items()})
    data = _encoded(frame, file_format)
    write_bytes(path, gzip.compress(data, mtime=0) if compressed else data)


def _plain(values: Any) -> Any:
    import polars as pl

    if isinstance(values, pl.Series):
        return values
    if isinstance(values, np.ma.MaskedArray):
        return pl.Series(values.filled(0)).set(pl.Series(np.ma.getmaskarray(values)), None)
    array = np.asarray(values)
    return array.tolist() if array.dtype == object else np.ascontiguousarray(array)


def _encoded(frame: pl.DataFrame, file_format: str) -> bytes:
    buffer = io.BytesIO()
    if file_format == "parquet":
        frame.write_parquet(buffer)
    elif file_format == "arrow":
        frame.write_ipc(buffer)
    elif file_format == "jsonl":
        frame.write_ndjson(buffer)
    else:
        _harmless(frame).write_csv(buffer, separator="\t" if file_format == "tsv" else ",")
    return buffer.getvalue()


def _harmless(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before text, also in the header, that would run as a formula."""
    import polars as pl

    frame = frame.with_columns(pl.col(pl.String).str.replace(FORMULA, "'${0}"))
    names = pl.Series(frame.columns, dtype=pl.String).str.replace(FORMULA, "'${0}")
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


# --- labelled rows of a table in memory -----------------------------------------------------------


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


def write_labels(
    path: str | Path,
    data: DataSet,
    mixture: Mixture,
    *,
    columns: Sequence[str] | str = (),
    **options: Any,
) -> WrittenFile:
    """Write each row's key, regime and prediction to a table.

    Rows that were dropped have their place too: all is blank but the key and ``left_out``, the
    reason.

    Parameters
    ----------
    path, data, mixture
    columns : sequence of str, or "all"
        Columns of the table as it was read that are to stand before the labels.
    **options
        Those of ``label_columns``.
    """
    with fitting_threads(data.X.shape[1]):
        labels = label_columns(data, mixture, **options)
    outliers, unknown = count_outliers(list(labels.values()), data.y)
    original, dropped = data.original, data.left_out
    if dropped is not None:
        key, kept, original = data.key_name, dropped.kept, dropped.original
        labels = {name: _spread(values, kept) for name, values in labels.items()}
        labels = _joined(labels | {key: dropped.keys}, {"left_out": dropped.reasons})
    if len(columns):
        first = {data.key_name: labels.pop(data.key_name)}
        labels = _joined(_joined(first, _carried(original, columns, data)), labels)
    write_table(path, labels)
    n_rows = data.n_rows if dropped is None else dropped.kept.size
    return WrittenFile(str(path), n_rows, n_rows - data.n_rows, outliers, unknown)


def _carried(original: Any, columns: Sequence[str] | str, data: DataSet) -> dict[str, Any]:
    """Return columns of the table, but the key and the target, which labels have anyway."""
    if original is None:
        raise ParameterError("columns are those of a table that was read, and this one was not.")
    wanted = original.columns if isinstance(columns, str) else columns
    check_columns(original.columns, wanted, data.source, "to be written")
    twice = (data.recipe.key, None if data.y is None else data.recipe.target)
    return {name: original[name] for name in wanted if name not in twice}


def count_outliers(columns: Sequence[Any], y: Any) -> tuple[int, int]:
    """Count the rows that follow no regime, and those without a target, in columns of labels."""
    if y is None:
        return 0, 0
    regimes = columns[2]  # after key and target
    return int(np.ma.filled(regimes < 0, False).sum()), int(np.count_nonzero(~np.isfinite(y)))


def label_columns(
    data: DataSet,
    mixture: Mixture,
    *,
    labels: Any = None,
    shares: Any = None,
    each_regime: bool | None = None,
    forecast: bool = False,
) -> dict[str, Any]:
    """Return labels, probabilities and predictions of each row, as columns.

    The key comes first. With a target: the target as it was read, ``regime`` (-1: outlier),
    ``prediction``,
    ``probability_0``, ... of each component, ``probability_outlier`` and ``outlier_score``.
    Without: ``prediction`` and ``prediction_0``, ... of each component. Where only some rows have
    a target: all of these, masked (blank in a file) where they cannot be known. Where a power of
    the target was fitted, predictions are those values of the target that have the predicted power,
    and masked where none has.

    Parameters
    ----------
    labels : array of shape (n,), optional
        The regimes, if they are known (``mixture.labels`` for the rows of the fit); default:
        ``mixture.assign``.
    shares : array of shape (n, m), optional
        Shares of the regimes for each row, where a gate knows them; default: what a gate that was
        learnt from the features says. A gate that was learnt from other columns
        (``gating_features``) needs them: ``mixture.gate.shares(Z)``.
    each_regime : bool, optional
        Whether there are predictions of each component beside a target; default: where only some
        rows have one.
    forecast : bool
        Whether there is also what is known of a row before its target is: ``likely_regime``, the
        regime of largest share among rows like it, ``likely_probability``, that share, and
        ``lower`` and ``upper``, between which its target lies with 95 % probability if it is no
        outlier.
    """
    X, y, each = data.X, data.y, range(mixture.n_components)
    shares = gate_shares(mixture, X, data.gating) if shares is None else np.asarray(shares)
    columns: dict[str, Any] = {data.key_name: data.keys}
    power = data.recipe.power
    prediction = {"prediction": returned(mixture.predict(X, shares), power)}
    prediction |= _forecast(mixture, X, shares, power) if forecast else {}
    means = mixture.predict_components(X)
    predictions = {f"prediction_{j}": returned(means[:, j], power) for j in each}
    if y is None:
        return _joined(columns, prediction | predictions)
    known = np.isfinite(y)
    parts = (None if values is None else np.asarray(values)[known] for values in (shares, labels))
    judged = _judged(mixture, X[known], y[known], *parts)
    spread = {name: _spread(values, known) for name, values in judged.items()}
    read = y if data.y_read is None else data.y_read
    columns = _joined(columns, {data.recipe.target: _spread(read[known], known)})
    regime = {"regime": spread.pop("regime")}
    if each_regime is None:
        each_regime = not known.all()
    return _joined(columns, regime | prediction | spread | (predictions if each_regime else {}))


def _forecast(mixture: Mixture, X: Any, shares: Any, power: float) -> dict[str, Any]:
    """Say which regime is likely before the target is known, and where that will lie."""
    weights = mixture.weights / mixture.weights.sum()
    likely = np.broadcast_to(weights, (len(X), weights.size)) if shares is None else shares
    ends = mixture.predict_interval(X, FORECAST_LEVEL, shares)
    lower, upper = (returned(end, power) for end in (ends.T if power >= 0 else ends.T[::-1]))
    values = likely.argmax(axis=1), likely.max(axis=1), lower, upper
    return dict(zip(FORECAST, values, strict=True))


def are_label_columns(names: Sequence[str]) -> bool:
    """Whether columns have the names, in the order, that ``label_columns`` gives them."""
    plain = [name.rstrip("_") for name in names]  # as they were before they had to be free
    # Before them are the key, and the target where rows have one.
    return any(LABELS.fullmatch(" ".join(plain[first:])) for first in (1, 2))


def _judged(mixture: Mixture, X: Any, y: Any, shares: Any, labels: Any) -> dict[str, Any]:
    """Return labels, probabilities and outlier scores of rows with a target."""
    if not len(y):
        # Empty columns, but of the right types.
        probabilities = np.empty((0, mixture.n_components + 1))
        labels, scores = np.empty(0, dtype=np.int64), np.empty(0)
    else:
        found, probabilities, scores = mixture.judge(X, y, shares)
        labels = found if labels is None else labels
    return {
        "regime": labels,
        **{f"probability_{j}": probabilities[:, j] for j in range(mixture.n_components)},
        "probability_outlier": probabilities[:, -1],
        "outlier_score": scores,
    }


def _spread(values: Any, known: NDArray[np.bool_]) -> Any:
    """Put values into the rows that they are known for; the others are masked."""
    if known.all():
        return values
    whole = np.zeros(known.shape, dtype=np.asarray(values).dtype)
    whole[known] = np.ma.getdata(values)
    absent = ~known
    absent[known] = np.ma.getmaskarray(values)
    return np.ma.MaskedArray(whole, mask=absent)


def _joined(columns: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Add columns under names that are still free: a user's column may be called "regime"."""
    joined = dict(columns)
    for name, values in more.items():
        free = name
        while free in joined:
            free += "_"
        joined[free] = values
    return joined


# --- labelled rows of a table in parts ------------------------------------------------------------


def write_label_parts(
    folder: str | Path,
    table: ParquetTable,
    mixture: Mixture,
    *,
    labels: Any = None,
    watch: Watch | None = None,
) -> list[WrittenFile]:
    """Write labels and predictions of a table in parts to a folder of Parquet files.

    The columns are those of ``label_columns``; for new rows (``scan_like``) that may lack a target,
    ``prediction_0``, ... and the ``forecast`` are always among them. Rows that cannot be used are
    blank. A table on a cluster is written by the workers, who must see the folder under the same
    name.

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
        ``StoppedError``. The files that are there are whole.

    Returns
    -------
    list of WrittenFile
    """
    place = check_destination(folder, table)
    outputs = [Path(place) / span.output for span in table.spans]
    if not is_address(place):
        for target in {output.parent for output in outputs}:
            target.mkdir(parents=True, exist_ok=True)
    # What is sent to each worker: no rows, and nothing of how the mixture was found.
    bare = replace(mixture, labels=np.empty(0, np.int64), excerpt=None, attempts=(), selection=None)
    write = _PartWriter(place, table.recipe, bare, GROUP_ROWS)
    on_workers = table.on_cluster and not isinstance(labels, np.ndarray)
    try:
        written = (_on_workers if on_workers else _here)(write, table, labels, watch)
    except PassStopped:
        raise StoppedError(
            "watch asked for the end before all parts were written; the files that are there are "
            "whole. The same call writes them again."
        ) from None
    if not is_address(place):
        # Temporary files of writers that were killed, now or before.
        for output in outputs:
            remove_leftovers(output, at_once=True)
    return written


def _here(
    write: _PartWriter, table: ParquetTable, labels: Any, watch: Watch | None
) -> list[WrittenFile]:
    """Write all parts one after the other."""
    written: list[WrittenFile] = []
    first = 0
    for done, reader in enumerate(table.readers):
        files = write(reader, None if labels is None else labels[first:], more=True)
        first += sum(file.n_rows - file.n_dropped for file in files)
        written += files
        if watch is not None and watch(done + 1, len(table.readers)):
            raise PassStopped(StopReason.CALLBACK)
    if labels is not None and first != len(labels):
        raise _other_table()
    return written


def _on_workers(
    write: _PartWriter, table: ParquetTable, labels: Any, watch: Watch | None
) -> list[WrittenFile]:
    if getattr(labels, "npartitions", len(table.readers)) != len(table.readers):
        raise _other_table()
    engine = import_module("regimix.engines.dask")
    parts = engine.dask_map(write, table.readers, labels, table.part_names, watch)
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
    recipe: Recipe
    mixture: Mixture
    group_rows: int

    def __call__(
        self, reader: ParquetReader, labels: Any = None, *, more: bool = False
    ) -> list[WrittenFile]:
        """Write one file for each span; ``more`` says that labels of other parts may follow."""
        import pyarrow.parquet as pq

        schema = self._schema(reader)
        # A dictionary pays only for values that repeat.
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
        for rows, kept, batch in reader.labelled(span, batch_rows):
            keys = None if reader.key is None else batch.column(reader.key)
            known = None if labels is None else np.asarray(labels[used : used + rows.n_rows])
            if known is not None and len(known) < rows.n_rows:
                raise _other_table()
            numbers = np.arange(kept.size) + (span.first_row + total + 1)
            columns = [pa.nulls(kept.size, field.type) for field in writer.schema]
            if rows.n_rows:
                gating = columns_of(batch, reader.gating, kept)
                found = self._named(reader, rows.X, rows.y, known, numbers[kept], gating)
                counts += count_outliers(list(found.values()), rows.y)
                # A row that cannot be used is blank.
                spread = [_spread(values, kept) for values in found.values()]
                columns = [pa.array(np.ma.getdata(v), mask=np.ma.getmaskarray(v)) for v in spread]
            columns[0] = pa.array(numbers) if keys is None else keys
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

        target = None if reader.target is None else np.ones(1)  # every power of 1 is known
        shares = None if not reader.gating else self.mixture.weights[None]
        X = np.zeros((1, len(reader.features)))
        named = self._named(reader, X, target, None, np.zeros(1), shares=shares)
        kinds = [pa.from_numpy_dtype(np.asarray(values).dtype) for values in named.values()]
        key = reader.key_kind()
        return pa.schema(list(zip(named, [key, *kinds[1:]], strict=True)))

    def _named(
        self,
        reader: ParquetReader,
        X: Any,
        y: Any,
        labels: Any,
        keys: NDArray[Any],
        gating: Any = None,
        shares: Any = None,
    ) -> dict[str, Any]:
        """Return the columns that rows of a table in memory would get."""
        X = np.asarray(X, dtype=np.float64)
        response = None if y is None else raised(y, self.recipe.power)
        known: dict[str, Any] = {"source": "", "y_read": y, "gating": gating}
        data = DataSet(X, response, None, keys, len(X), 0, (), self.recipe, **known)
        new = reader.blank_target
        how = {"labels": labels, "shares": shares, "each_regime": new or None, "forecast": new}
        return label_columns(data, self.mixture, **how)


@contextmanager
def _whole_file(path: str) -> Iterator[Any]:
    """Open a file for writing that appears whole or not at all."""
    try:
        if not is_address(path):
            with open_atomically(path) as file:
                yield file
            return
        # An object store replaces an object as a whole.
        stream = io.BytesIO()
        yield stream
        system, place = reach(path)
        with as_os_errors():
            system.pipe_file(place, stream.getvalue())
    except OSError as error:
        raise DataError(
            f"{path!r} cannot be written: {error.strerror or reason_of(error)}. Make room for it, "
            "or choose another folder."
        ) from error


# --- where they may be written --------------------------------------------------------------------


def check_destination(folder: str | Path, table: ParquetTable) -> str:
    """Refuse a folder that holds the table itself, or files that would be mixed up with labels.

    Return where the folder is: a path without links, or the address as it was given.
    """
    where = place = canonical(str(folder))
    if is_address(place):
        where = str(folder) if str(folder).endswith("://") else str(folder).rstrip("/")
    outputs = {span.output for span in table.spans}
    sources = {canonical(path) for path in {span.path for span in table.spans}}
    harmed = any(canonical(f"{place}/{output}") in sources for output in outputs)
    if harmed or any(is_within(place, read) for read in _folders(table.source, sources)):
        raise DataError(
            f"the folder {str(folder)!r} is where the table itself is; choose another one."
        )
    there = _names_in(where)
    for name in there:
        if name not in outputs and is_table_file(PurePosixPath(name)):
            raise DataError(
                f"the folder {str(folder)!r} holds {name!r}, which is none of the files to be "
                "written, and would be read as one of them; choose an empty folder."
            )
    replaced = [name for name in there if name in outputs]
    with ThreadPoolExecutor(READERS) as readers:
        ours = list(readers.map(_holds_labels, [f"{where}/{name}" for name in replaced]))
    if not all(ours):
        raise DataError(
            f"the folder {str(folder)!r} holds {replaced[ours.index(False)]!r}, which would be "
            "replaced and is no file of labels that was written before; choose another folder."
        )
    return where


def _folders(source: str, files: Iterable[str]) -> Iterable[str]:
    """Return where files of labels would be read as part of a table, next time or by its folder."""
    whole = canonical(source)
    yield whole
    if re.search(r"[*?\[]", source) and whole not in files:
        yield from {posixpath.dirname(file) for file in files}
        if "**" in source:
            yield canonical(source.partition("**")[0] or ".")


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
        with as_os_errors():
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
