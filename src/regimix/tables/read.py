"""Reading a table for a fit, and another one the same way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regimix.errors import Message, ParameterError, Setting, need
from regimix.paths import is_address
from regimix.tables.recipe import DataSet, Recipe, Roles

if TYPE_CHECKING:
    import polars as pl

    from regimix.tables.files import Loaded

__all__ = ["from_frame", "read", "read_like"]


def read(
    source: str | Path | pl.DataFrame | Any,
    *,
    target: str,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weights: str | None = None,
    key: str | None = None,
    power: float = 1.0,
    missing: Literal["drop", "error"] = "drop",
    rows: int | None = None,
    seed: int = 0,
    query: str | None = None,
    password_variable: str | None = None,
    file_format: str | None = None,
    encoding: str = "utf-8",
) -> DataSet:
    """Read a table and make it numbers.

    Parameters
    ----------
    source : str, Path or frame
        A file, a folder of Parquet files, a glob, "-" for standard input, the address of a
        database ("sqlite:///path", "postgresql://user@host/name"), or a frame.
    target : str
        The column to explain.
    features : sequence of str, optional
        The columns that explain it. Default: all other columns that can be read as numbers, and
        text columns of few values, one 0/1 column for each value but the commonest.
    drop : sequence of str
        Columns to leave out.
    weights, key : str, optional
        Columns of row weights, and of what identifies a row (default: its number, from 1).
    power : float
        ``y`` is this power of the target; 0 is the logarithm. A value that has no such power is an
        error.
    missing : {"drop", "error"}
        Whether rows in which a needed value is missing are dropped and counted, or refused.
    rows : int, optional
        Keep a uniform random sample of so many rows, in their order; ``seed`` decides which.
    query : str, optional
        What to select from a database.
    password_variable : str, optional
        Environment variable that holds the password of a database; default: PGPASSWORD.
    file_format : {"csv", "tsv", "parquet", "arrow", "jsonl"}, optional
        Default: that of the name, or else of the content.
    encoding : str
        Of text files.

    Raises
    ------
    DataError
        The table cannot be read or used as it is; the message says why, and what to do.
    MissingExtraError
        polars or psycopg is not installed.
    """
    roles = Roles(target, features, drop, weights, key, power)
    loaded = _load(source, query, password_variable, file_format, encoding)
    from regimix.tables.encode import Terms, choose, to_dataset

    recipe, notes = choose(loaded, roles)
    return to_dataset(loaded, recipe, Terms(missing, rows=rows, seed=seed), notes)


def read_like(
    source: str | Path,
    recipe: Recipe,
    *,
    target: Literal["required", "optional"] = "required",
    key: str | None = None,
    unknown: Literal["note", "error"] = "note",
    missing: Literal["drop", "error"] = "drop",
    rows: int | None = None,
    seed: int = 0,
    query: str | None = None,
    password_variable: str | None = None,
    file_format: str | None = None,
    encoding: str = "utf-8",
) -> DataSet:
    """Read a table as another one was read: the same columns, the same levels.

    Parameters that are not listed are those of ``read``.

    Parameters
    ----------
    recipe : Recipe
        ``DataSet.recipe``, or ``Recipe.from_json`` of what a model file holds.
    target : {"required", "optional"}
        Whether rows need a response; "optional" gives ``y=None`` where the column is absent, and
        NaN in rows where its value is.
    key : str, optional
        Another key column than that of the recipe.
    unknown : {"note", "error"}
        Whether a level that the recipe does not know is all zeros, with a note, or refused.
    """
    loaded = _load(source, query, password_variable, file_format, encoding)
    from regimix.tables.encode import Terms, to_dataset

    terms = Terms(missing=missing, unknown=unknown, target=target, rows=rows, seed=seed)
    return to_dataset(loaded, recipe.with_key(key, loaded.frame.columns, loaded.source), terms, [])


def from_frame(frame: pl.DataFrame | Any, **options: Any) -> DataSet:
    """Make a polars (or pandas) frame numbers; options as of ``read``."""
    return read(frame, **options)


def _load(
    source: Any,
    query: str | None,
    password_variable: str | None,
    file_format: str | None,
    encoding: str,
) -> Loaded:
    """Read a source of any kind into a frame."""
    need("polars", "cli", "tables need")
    import polars as pl

    from regimix.tables.databases import load_query
    from regimix.tables.files import Loaded, load_file

    if not isinstance(source, str | Path):
        if not isinstance(source, pl.DataFrame):
            source = pl.from_pandas(source) if hasattr(source, "iloc") else pl.DataFrame(source)
        return Loaded(source, "the frame")
    if is_address(source):
        return load_query(str(source), query, password_variable)
    if query is not None:
        name, words = Setting("query"), f" is for databases, and {str(source)!r} is a file; leave "
        advice = " out, or pass an address such as sqlite:///path."
        raise ParameterError(Message(name, words, name, advice))
    return load_file(source, file_format, encoding)
