"""Tables in files: which format, which files, one frame."""

from __future__ import annotations

import difflib
import io
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from regimix.errors import DataError, ParameterError
from regimix.tables.extra import refusing
from regimix.tables.text import GZIP, Text, beginning, read_csv, read_json_lines

__all__ = ["FORMATS", "Loaded", "load_file", "told_by_name"]

# What each ending of a name says about a file.
ENDINGS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl")
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
    paths = _paths(Path(source), file_format)
    parts = [_read_path(path, file_format, encoding) for path in paths]
    if len(parts) == 1:
        return parts[0]
    with refusing(str(source), "one table"):
        frame = pl.concat([part.frame for part in parts], how="vertical_relaxed")
    return Loaded(frame, str(source), tuple(dict.fromkeys(n for part in parts for n in part.notes)))


def told_by_name(path: Path) -> str | None:
    """Tell the format from the name, compressed or not."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    return ENDINGS.get(endings[-1]) if endings else None


# --- which files ----------------------------------------------------------------------------------


def _paths(path: Path, file_format: str | None) -> list[Path]:
    """Find the files that a path, a folder or a glob stands for, in order of their names."""
    if path.is_dir():
        return _in_folder(path, file_format or "parquet")
    if path.exists():
        return [path]
    if re.search(r"[*?\[]", str(path)):
        folder = Path(path.anchor or ".")
        pattern = str(path.relative_to(path.anchor) if path.anchor else path)
        found = _ordered(entry for entry in folder.glob(pattern) if entry.is_file())
        if found:
            return found
        raise DataError(f"no file matches {str(path)!r}; check the pattern.")
    raise DataError(f"there is no file {str(path)!r}.{_did_you_mean(path)}")


def _in_folder(folder: Path, file_format: str) -> list[Path]:
    files = _ordered(entry for entry in folder.rglob("*") if entry.is_file())
    # Spark and others leave marks and temporary files beside the data.
    files = [entry for entry in files if not entry.name.startswith(("_", "."))]
    found = [entry for entry in files if told_by_name(entry) == file_format]
    if found:
        return found
    there = ", ".join(entry.name for entry in files[:3]) or "no file at all"
    raise DataError(
        f"the folder {str(folder)!r} holds no {file_format} file, but {there}. A folder is read as "
        f"a table of Parquet files; name other files with a pattern, such as '{folder}/*.csv'."
    )


def _ordered(paths: object) -> list[Path]:
    """Sort by name, the numbers in it as numbers: part.2 comes before part.10."""

    def natural(path: Path) -> list[tuple[int, str]]:
        pieces = re.split(r"(\d+)", str(path))
        return [(int(piece) if piece.isdecimal() else -1, piece) for piece in pieces]

    return sorted(paths, key=natural)  # type: ignore[call-overload, no-any-return]


def _did_you_mean(path: Path) -> str:
    """Name files with a similar name."""
    if not path.parent.is_dir():
        return f" There is no folder {str(path.parent)!r} either."
    names = [entry.name for entry in path.parent.iterdir()]
    close = difflib.get_close_matches(path.name, names, n=3)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else " Check the path."


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
