"""Where files are: on this machine, or at addresses that fsspec knows ("s3://...")."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

from regimix.errors import DataError, MissingExtraError

__all__ = ["cannot_reach", "canonical", "is_address", "is_within", "reach"]

LOCAL = ("file", "local")
# What has to be installed to reach addresses of a kind.
PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "http": "aiohttp requests",
    "https": "aiohttp requests",
    "sftp": "paramiko",
    "ssh": "paramiko",
}


def is_address(place: str) -> bool:
    """Whether a place is told by an address, not by a path."""
    return "://" in place


def reach(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and what the place is called there."""
    try:
        from fsspec.core import url_to_fs

        system, place = url_to_fs(address)
    except ImportError as error:
        scheme = address.partition("://")[0].rpartition("::")[2].lower()
        package = "'regimix[dask]'" if error.name == "fsspec" else PACKAGES.get(scheme)
        advice = f"pip install {package}" if package else str(error).rstrip(".")
        raise MissingExtraError(
            f"{address!r} cannot be reached: a package that knows such addresses is not installed: "
            f"{advice}"
        ) from error
    except (OSError, ValueError) as error:
        raise cannot_reach(address, error) from error
    return system, place


def cannot_reach(address: str, error: BaseException) -> DataError:
    """Say that an address leads nowhere."""
    reason = (str(error).strip().partition("\n")[0] or type(error).__name__).rstrip(".")
    return DataError(f"{address!r} cannot be looked at: {reason}. Check the address.")


def canonical(place: str) -> str:
    """Return the one name of a file or folder, however it is written.

    What is on this machine has a path without links; anything else an address.
    """
    if is_address(place):
        system, inside = reach(place)
        scheme, _, inside = str(system.unstrip_protocol(inside)).partition("://")
        if scheme not in LOCAL:
            # Only for comparisons: where ".." is part of a name, too much is the same, never less.
            return f"{scheme}://{posixpath.normpath('/' + inside.strip('/'))}"
        place = inside
    return Path(place).resolve().as_posix()


def is_within(inner: str, outer: str) -> bool:
    """Whether a canonical place is another one, or is below it."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
