"""Which files a path, a folder, a pattern or an address stands for."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, TypeVar

from regimix.errors import DataError, MissingExtraError, reason_of, without_secrets
from regimix.words import choice

# The formats of tables, and the endings of their names.
ENDINGS = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".arrows", ".feather", ".ipc"),
    "jsonl": (".jsonl", ".ndjson"),
}
FORMATS = tuple(ENDINGS)
ADDRESS = re.compile(r"[a-z][a-z0-9+.:-]*://", re.IGNORECASE)
DATABASES = ("sqlite", "postgresql", "postgres")
T = TypeVar("T")


def format_of_name(path: PurePath) -> str | None:
    """Return the format that the name of a file stands for, compressed or not."""
    ending = PurePath(path.name.lower().removesuffix(".gz")).suffix
    return next((name for name, endings in ENDINGS.items() if ending in endings), None)


def is_table_file(path: PurePath, file_format: str = "parquet") -> bool:
    """Whether a file in a folder is part of the table that the folder is."""
    # Spark and others leave marks and temporary files beside the data.
    return format_of_name(path) == file_format and not path.name.startswith(("_", "."))


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
    # The stems decide: that two files end in .csv makes their names no more alike.
    stems = {entry.name: entry.stem for entry in path.parent.iterdir()}
    alike = difflib.get_close_matches(path.stem, set(stems.values()), n=3)
    close = [name for stem in alike for name in sorted(stems) if stems[name] == stem][:3]
    return f" Did you mean {choice([*map(repr, close)])}?" if close else " Check the path."


# --- addresses ------------------------------------------------------------------------------------


def is_address(place: object) -> bool:
    """Whether a place is named by an address, not by a path."""
    return isinstance(place, str) and ADDRESS.match(place) is not None


def is_remote(place: str) -> bool:
    """Whether a place is the address of files, which fsspec reaches, not of a database."""
    return is_address(place) and place.partition("://")[0].lower() not in DATABASES


@contextmanager
def as_os_errors() -> Iterator[None]:
    """Let errors of the packages that reach storage elsewhere be errors of the system.

    Those of a web server or a bucket (aiohttp's, botocore's, ...) are not, as a rule.
    """
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("builtins", "pyarrow", "regimix"):
            raise
        raise OSError(reason_of(error)) from error


def reach(address: str) -> tuple[Any, str]:
    """Return the file system of an address or a path, and what the place is called there."""
    try:
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem

        # A path may hold characters that mean something in an address.
        system, place = url_to_fs(address) if is_address(address) else (LocalFileSystem(), address)
    except ImportError as error:
        # fsspec raises an error of its own from that of the package that it lacks.
        lacking = error.__cause__ if isinstance(error.__cause__, ImportError) else error
        package = (lacking.name or "").partition(".")[0]
        package = "'regimix[dask]'" if package == "fsspec" else package
        advice = f"pip install {package}" if package else str(error).rstrip(".")
        raise MissingExtraError(
            f"{address!r} cannot be reached: a package that knows such addresses is not installed: "
            f"{advice}"
        ) from error
    except (OSError, ValueError) as error:
        # What the library behind an address says may hold a password.
        secret = without_secrets(address) != address
        raise cannot_reach(address, error) from (None if secret else error)
    return system, place


def cannot_reach(address: str, error: BaseException) -> DataError:
    """Say that an address leads nowhere."""
    return DataError(f"{address!r} cannot be looked at: {reason_of(error)}. Check the address.")


def canonical(place: str) -> str:
    """Return the one name of a place: on this machine a path without links, else an address."""
    if is_remote(place):
        system, inside = reach(place)
        scheme, _, inside = str(system.unstrip_protocol(inside)).partition("://")
        if scheme not in ("file", "local"):
            # Only for comparisons: where ".." is part of a name, too much is the same, never less.
            return f"{scheme}://{posixpath.normpath('/' + inside.strip('/'))}"
        place = inside
    return Path(place).resolve().as_posix()


def is_within(inner: str, outer: str) -> bool:
    """Whether a canonical place is another one, or is below it."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
