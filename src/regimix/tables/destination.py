"""Folders that files of labels are written to: refused where these would do harm."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from regimix.engines.parquetfile import open_parquet
from regimix.errors import DataError
from regimix.tables.footers import READERS
from regimix.tables.paths import is_table_file
from regimix.tables.places import cannot_reach, canonical, is_address, is_within, reach
from regimix.tables.scan import ParquetTable
from regimix.tables.write import are_label_columns

__all__ = ["check_destination", "outputs_of", "prepare_destination"]


def outputs_of(table: ParquetTable) -> list[str]:
    """Name the files that are written beside those of a table."""
    return [span.output for reader in table.part_readers for span in reader.spans]


def check_destination(folder: str | Path, table: ParquetTable) -> str:
    """Refuse a folder that holds the table itself, or files that would be mixed up with labels.

    Returns
    -------
    str
        Where the folder is: a path without links, or the address as it was given.
    """
    place = canonical(str(folder))
    outputs = outputs_of(table)
    sources = {span.path for reader in table.part_readers for span in reader.spans}
    sources = {canonical(source) for source in sources}
    harmed = any(canonical(f"{place}/{output}") in sources for output in outputs)
    if harmed or any(is_within(place, read) for read in _folders(table.source, sources)):
        raise DataError(
            f"the folder {str(folder)!r} is where the table itself is; choose another one."
        )
    wanted = set(outputs)
    there = _names_in_address(str(folder)) if is_address(place) else _names_in(Path(place))
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


def prepare_destination(folder: str | Path, table: ParquetTable) -> str:
    """Check a folder, create it, and return where it is."""
    place = check_destination(folder, table)
    if not is_address(place):
        for target in {(Path(place) / output).parent for output in outputs_of(table)}:
            target.mkdir(parents=True, exist_ok=True)
    return place


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


def _names_in(folder: Path) -> list[str]:
    """Name the files below a folder of this machine."""
    if folder.exists() and not folder.is_dir():
        raise _no_folder(str(folder))
    files = sorted(path for path in folder.rglob("*") if not path.is_dir())
    return [path.relative_to(folder).as_posix() for path in files]


def _names_in_address(address: str) -> list[str]:
    """Name the files below an address."""
    system, folder = reach(address)
    try:
        system.invalidate_cache()  # others may have written there
        if system.isfile(folder):
            raise _no_folder(address)
        found = system.find(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot_reach(address, error) from error
    root = folder or "."
    return [posixpath.relpath(name, root) for name in sorted(found)]


def _no_folder(place: str) -> DataError:
    return DataError(f"{place!r} is a file, and a folder is needed; choose another name.")
