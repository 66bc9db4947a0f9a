"""Which files a table is made of, and what their names say."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import TypeVar

from regimix.errors import DataError

__all__ = ["FORMATS", "find_paths", "is_table_file", "ordered", "told_by_name"]

T = TypeVar("T")

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


def told_by_name(path: PurePath) -> str | None:
    """Tell the format from the name, compressed or not."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] == ".gz":
        endings.pop()
    return ENDINGS.get(endings[-1]) if endings else None


def is_table_file(path: PurePath, file_format: str = "parquet") -> bool:
    """Whether a file in a folder is part of the table that the folder is."""
    # Spark and others leave marks and temporary files beside the data.
    return told_by_name(path) == file_format and not path.name.startswith(("_", "."))


def find_paths(path: Path, file_format: str | None = None) -> list[Path]:
    """Find the files that a path, a folder or a glob stands for, in order of their names."""
    if path.is_dir():
        return _in_folder(path, file_format or "parquet")
    if path.exists():
        return [path]
    if re.search(r"[*?\[]", str(path)):
        folder = Path(path.anchor or ".")
        pattern = str(path.relative_to(path.anchor) if path.anchor else path)
        found = ordered(entry for entry in folder.glob(pattern) if entry.is_file())
        if found:
            return found
        raise DataError(f"no file matches {str(path)!r}; check the pattern.")
    raise DataError(f"there is no file {str(path)!r}.{_did_you_mean(path)}")


def _in_folder(folder: Path, file_format: str) -> list[Path]:
    files = ordered(entry for entry in folder.rglob("*") if entry.is_file())
    found = [entry for entry in files if is_table_file(entry, file_format)]
    if found:
        return found
    files = [entry for entry in files if not entry.name.startswith(("_", "."))]
    if not files:
        raise DataError(f"the folder {str(folder)!r} holds no {file_format} file; check the path.")
    there = ", ".join(entry.name for entry in files[:3])
    raise DataError(
        f"the folder {str(folder)!r} holds no {file_format} file, but {there}. A folder is read as "
        f"a table of Parquet files; name other files with a pattern, such as '{folder}/*.csv'."
    )


def ordered(paths: Iterable[T]) -> list[T]:
    """Sort by name, the numbers in it as numbers: part.2 comes before part.10."""

    def natural(path: object) -> list[tuple[int, str]]:
        pieces = re.split(r"(\d+)", str(path))
        return [(int(piece) if piece.isdecimal() else -1, piece) for piece in pieces]

    return sorted(paths, key=natural)


def _did_you_mean(path: Path) -> str:
    """Name files with a similar name."""
    if not path.parent.is_dir():
        return f" There is no folder {str(path.parent)!r} either."
    names = [entry.name for entry in path.parent.iterdir()]
    close = difflib.get_close_matches(path.name, names, n=3)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else " Check the path."
