"""Optional packages: imported when they are needed, named when they are missing.

Files of this room that work with frames import polars at their top; the doors (``read``, ``write``)
ask for it first, and import those files when they are called.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from regimix.errors import DataError, MissingExtraError

__all__ = ["need_polars", "need_psycopg", "refusing"]


def need_polars() -> None:
    """Make sure of polars, of the extra "cli"."""
    _need("polars", "tables", "cli")


def need_psycopg() -> None:
    """Make sure of psycopg, of the extra "sql"."""
    _need("psycopg", "PostgreSQL databases", "sql")


def _need(module: str, purpose: str, extra: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} need {module}, which is not installed: pip install 'regimix[{extra}]'"
        ) from error


@contextmanager
def refusing(source: str, kind: str) -> Iterator[None]:
    """Turn what a parser has to say about damaged data into a sentence."""
    import polars as pl

    # polars panics on some damaged files; a panic is no Exception there.
    damage = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
    try:
        yield
    except damage as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise DataError(
            f"{source} cannot be read as {kind}: {reason}. Check that the file is whole and what "
            "its name says."
        ) from error
