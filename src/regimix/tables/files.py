"""Tables in files: which format, one frame."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from regimix.errors import DataError, ParameterError
from regimix.tables.extra import refusing
from regimix.tables.paths import FORMATS, find_paths, told_by_name
from regimix.tables.text import GZIP, Text, beginning, read_csv, read_json_lines

__all__ = ["Loaded", "load_file"]

# How files begin, where that is certain.
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
STANDARD_INPUT = "-"


@dataclass(frozen=True, eq=False)
class Loaded:
    """A frame as it was read.

    Attributes
    ----------
    frame : polars.DataFrame
    source : str
        What messages call it; holds no password.
    notes : tuple of str
        What was assumed in reading it.
    """

    frame: pl.DataFrame
    source: str
    notes: tuple[str, ...] = ()


def load_file(
    source: str | Path, file_format: str | None = None, encoding: str = "utf-8"
) -> Loaded:
    """Read a file, a folder of Parquet files, the files of a glob, or standard input ("-")."""
    if file_format not in (None, *FORMATS):
        raise ParameterError(
            f"file_format must be one of {', '.join(FORMATS)}; got {file_format!r}."
        )
    if str(source) == STANDARD_INPUT:
        return _read_bytes("standard input", sys.stdin.buffer.read(), file_format, encoding)
    paths = find_paths(Path(source), file_format)
    parts = [_read_path(path, file_format, encoding) for path in paths]
    if len(parts) == 1:
        return parts[0]
    with refusing(str(source), "one table"):
        frame = pl.concat([part.frame for part in parts], how="vertical_relaxed")
    return Loaded(frame, str(source), tuple(dict.fromkeys(n for part in parts for n in part.notes)))


# --- one file -------------------------------------------------------------------------------------


def _read_path(path: Path, file_format: str | None, encoding: str) -> Loaded:
    try:
        start = beginning(path)
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be opened: {error.strerror}.") from error
    if not start:
        raise DataError(f"{str(path)!r} is empty; pass a file with a header and rows.")
    chosen = file_format or told_by_name(path) or _told_by_content(start)
    if chosen is None:
        # Text, compressed or not: its first character tells more.
        return _read_bytes(str(path), path.read_bytes(), None, encoding)
    return _parse(str(path), path, chosen, encoding)


def _read_bytes(name: str, data: bytes, file_format: str | None, encoding: str) -> Loaded:
    if not data:
        raise DataError(f"{name} is empty; pass a header and rows.")
    chosen = file_format or _told_by_content(data[:8])
    if chosen is None:
        text = Text.of(name, data, encoding)
        chosen = "jsonl" if text.head.startswith("{") else "csv"
    return _parse(name, data, chosen, encoding)


def _told_by_content(start: bytes) -> str | None:
    return next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)


def _parse(name: str, body: bytes | Path, file_format: str, encoding: str) -> Loaded:
    if file_format in BINARY:
        if beginning(body).startswith(GZIP):
            raise DataError(
                f"{name} is compressed with gzip; {file_format} files are compressed inside. "
                "Unpack it first."
            )
        with refusing(name, file_format):
            return Loaded(BINARY[file_format](body), name)
    text = Text.of(name, body, encoding)
    if file_format == "jsonl":
        return Loaded(read_json_lines(text), name)
    frame, notes = read_csv(text, "\t" if file_format == "tsv" else None)
    return Loaded(frame, name, tuple(notes))


def _read_parquet(body: bytes | Path) -> pl.DataFrame:
    if isinstance(body, bytes):
        return pl.read_parquet(io.BytesIO(body))
    # Folders called "year=2024" hold a column.
    return pl.read_parquet(body, glob=False, hive_partitioning="=" in str(body.parent))


def _read_arrow(body: bytes | Path) -> pl.DataFrame:
    data = body if isinstance(body, bytes) else body.read_bytes()
    if data.startswith(b"ARROW1"):
        return pl.read_ipc(io.BytesIO(data))
    return pl.read_ipc_stream(io.BytesIO(data))


BINARY: dict[str, Callable[[bytes | Path], pl.DataFrame]] = {
    "parquet": _read_parquet,
    "arrow": _read_arrow,
}
