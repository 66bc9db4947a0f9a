"""Write a file whole or not at all: a crash leaves the old file."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO, Any

# Characters of the target's name in that of its temporary file: names have a largest length.
NAMED = 100
FRESH = 60  # seconds


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
    remove_leftovers(target)
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


def remove_leftovers(target: Path, *, at_once: bool = False) -> None:
    """Remove temporary files of writers of this target that were killed.

    Nobody holds their lock any more; ``at_once``: the caller knows that nobody is writing.
    """
    for entry in target.parent.glob(f".{escape(target.name[:NAMED])}.{'[0-9a-f]' * 12}.part"):
        with suppress(OSError), entry.open("rb") as file:
            # A new file may not be locked yet.
            if at_once or (time.time() - entry.stat().st_mtime > FRESH and _lock(file)):
                entry.unlink(missing_ok=True)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file whole or not at all."""
    with open_atomically(path) as file:
        file.write(data)
