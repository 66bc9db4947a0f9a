"""Files to write, looked at before the work starts, so that a long fit is not lost."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from glob import glob
from pathlib import Path

from regimix.cli.console import CommandError
from regimix.cli.place import is_remote
from regimix.errors import MissingExtraError

__all__ = ["CHECKPOINT", "FOLDER", "MODEL", "REPORT", "TABLE", "TRUTH", "check_outputs"]

MODEL = (".regimix",)
# As ``tables.write_table`` knows them.
TABLE = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".parquet", ".arrow")
REPORT = (".htm", ".html")
TRUTH = (".json",)
CHECKPOINT = ("",)
# A folder of such files.
FOLDER = (".parquet", "/")


def check_outputs(
    wanted: Iterable[tuple[str, Path | str | None, tuple[str, ...]]], sources: Iterable[str] = ()
) -> None:
    """Refuse files that could not be written in the end, or would harm what is read.

    Parameters
    ----------
    wanted : iterable of (option, path or None, extensions)
        What is to be written.
    sources : iterable of str
        What is read: never written over.
    """
    from regimix.tables.paths import is_within

    read = {_place(found) for source in sources for found in _matches(source)}
    for option, path, extensions in wanted:
        if path is None:
            continue
        # Whether an address can be written to is known when it is written.
        if isinstance(path, Path):
            _check_output(option, path, extensions)
        place = _place(str(path))
        # A table may be a folder: what is written there would be read as part of it next time.
        if any(is_within(place, source) for source in read):
            raise CommandError(
                f"{option} {path} would overwrite what is read, or become part of it; put it "
                "elsewhere."
            )


def _matches(source: str) -> list[str]:
    place = _place(source) if is_remote(source) else source
    # Path.glob knows no absolute patterns, which a table may be.
    return [source] if is_remote(place) else [place, *glob(place)]  # noqa: PTH207


def _place(path: str) -> str:
    """Return the one name of a file or folder."""
    from regimix.tables.paths import canonical

    # The address of a database is no place for files.
    return canonical(path) if is_remote(path) else Path(path).resolve().as_posix()


def _check_output(option: str, path: Path, extensions: tuple[str, ...]) -> None:
    """Refuse a path that cannot be written, or whose extension says nothing."""
    if extensions == REPORT and importlib.util.find_spec("jinja2") is None:
        raise MissingExtraError(
            "a report needs jinja2, which is not installed: pip install 'regimix[cli]'"
        )
    if extensions != FOLDER and not path.name.lower().endswith(extensions):
        raise CommandError(f"{option} {path} must end in {_listed(extensions)}.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise CommandError(
            f"{option} {path} cannot be written: there is no folder {folder}; create it first."
        )
    if extensions == FOLDER and path.exists() and not path.is_dir():
        raise CommandError(f"{option} {path} is a file; name a folder.")
    if extensions != FOLDER and path.is_dir():
        raise CommandError(f"{option} {path} is a folder; name a file in it.")
    # A file takes its place by being renamed into its folder.
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{option} {path} cannot be written: {folder} does not allow it.")


def _listed(extensions: tuple[str, ...]) -> str:
    *most, last = extensions
    return f"{', '.join(most)} or {last}" if most else last
