"""Write a file whole or not at all: a crash leaves the old file."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO, Any

# Characters of the target's name in that of its temporary file: names have a largest length.
NAMED = 100
FRESH = 60  # seconds
LEFTOVER = re.compile(r"\.(.*)\.[0-9a-f]{12}\.part", re.DOTALL)


@contextmanager
def open_atomically(
    path: str | os.PathLike[str], mode: str = "wb", **options: Any
) -> Iterator[IO[Any]]:
    """Open a file that takes its place only when everything is written.

    The bytes go to a temporary file beside the target, reach the disk, and replace the target in
    one step. If the body raises, the temporary file is removed and the target is as it was. The
    new file has the permissions of the old one, or those that any new file gets. A symbolic link is
    followed; what is no file (a device, a pipe) cannot be replaced and is written to as it is.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        with target.open(mode, **options) as file:
            yield file
        return
    _remove_orphans(target)
    # Beside the target: a file can be replaced in one step only within its file system.
    temporary = target.with_name(f".{target.name[:NAMED]}.{secrets.token_hex(6)}.part")
    try:
        new = temporary.open(mode.replace("w", "x"), **options)
    except FileNotFoundError as error:
        # The name of the temporary file would only puzzle.
        raise FileNotFoundError(error.errno, error.strerror, str(target)) from None
    try:
        with new as file:
            _lock(file)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _lock(file: IO[Any]) -> bool:
    """Mark a file as being written; False if somebody else does, or nobody can know."""
    try:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove_orphans(target: Path) -> None:
    """Remove what writers of this target left that were killed: nobody holds its lock any more."""
    for entry in target.parent.glob(f".{escape(target.name[:NAMED])}.*.part"):
        if LEFTOVER.fullmatch(entry.name):
            with suppress(OSError), entry.open("rb") as file:
                # A new file may not be locked yet.
                if time.time() - entry.stat().st_mtime > FRESH and _lock(file):
                    entry.unlink(missing_ok=True)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file whole or not at all."""
    with open_atomically(path) as file:
        file.write(data)


def remove_leftovers(targets: Iterable[Path]) -> None:
    """Remove the temporary files of writers that were killed while they wrote these targets."""
    folders: dict[Path, set[str]] = {}
    for target in targets:
        folders.setdefault(target.parent, set()).add(target.name[:NAMED])
    for folder, names in folders.items():
        for entry in folder.glob(".*.part"):
            found = LEFTOVER.fullmatch(entry.name)
            if found is not None and found[1] in names:
                entry.unlink(missing_ok=True)
