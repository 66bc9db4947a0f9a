"""Parquet files, opened: here or elsewhere, with what tells one from a later one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regimix.errors import MissingExtraError

__all__ = ["FileMark", "need_pyarrow", "open_parquet", "what_failed"]

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
    """Make sure of pyarrow, of the extra "dask"."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "Parquet files that are read in parts need pyarrow, which is not installed: pip "
            "install 'regimix[dask]'"
        ) from error


@dataclass(frozen=True)
class FileMark:
    """What tells a file from what it may be changed to; empty where that is not known.

    Attributes
    ----------
    footer : str
        Fingerprint of the footer, which says where each column is, how long, and its extent.
    version : str
        What an object store calls this version of the file.
    time : str
        When it was last changed.
    """

    footer: str = ""
    version: str = ""
    time: str = ""

    def is_same(self, other: FileMark) -> bool:
        """Whether nothing that both know differs."""
        mine = (self.footer, self.version, self.time)
        theirs = (other.footer, other.version, other.time)
        return all(not a or not b or a == b for a, b in zip(mine, theirs, strict=True))


@contextmanager
def open_parquet(path: str, *, at_once: bool = False) -> Iterator[tuple[Any, FileMark]]:
    """Open a file, here or at an address that fsspec knows ("s3://...").

    Parameters
    ----------
    at_once : bool
        Whether all of it is wanted in memory: from elsewhere it is then fetched in few requests.
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
        system.open(place, "rb", cache_type="none") as stream,
        pq.ParquetFile(stream, **options) as file,
    ):
        yield file, _remote_mark(system.info(place), stream)


def _remote_mark(info: dict[str, Any], stream: Any) -> FileMark:
    version = next((str(info[name]) for name in VERSIONS if info.get(name)), "")
    if version.startswith("W/"):  # "weak": may differ where bytes do not
        version = ""
    # Listings and files may tell times to different digits; a version needs no time.
    time = "" if version else next((str(info[name]) for name in TIMES if info.get(name)), "")
    return FileMark(_fingerprint(stream), version, time)


def _fingerprint(stream: Any) -> str:
    """Tell a footer from others."""
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
    return (str(error).strip().partition("\n")[0] or type(error).__name__).rstrip(".")
