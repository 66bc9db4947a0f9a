"""Tables in databases: SQLite and PostgreSQL, by address and query.

A password never leaves this file: it is taken out of the address before anything else happens, and
out of every message that a driver has to offer. Errors are raised outside of the handlers that
caught the driver's own, so that those are not in the chain of causes either.
"""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

import polars as pl

from regimix.data.recipe import check_unique
from regimix.errors import DataError, Message, Setting, need
from regimix.paths import DATABASES
from regimix.tables.files import Loaded

# What may follow the path of an SQLite file; it is opened for reading whatever is asked.
SQLITE_OPTIONS = {"immutable", "mode", "nolock"}
OPTIONS = re.compile(r"[a-z_]+=[^&=]*(&[a-z_]+=[^&=]*)*")
HOST_AND_PORT = re.compile(r"[^:]*(:\d+)?(/.*)?")
SECRETS = {"password", "sslpassword"}
# Seconds after which a server counts as unreachable.
CONNECT_SECONDS = 15


def load_query(address: str, query: str | None, password_variable: str | None = None) -> Loaded:
    """Run a query and return its rows."""
    scheme, _, rest = address.partition("://")
    scheme = scheme.lower()
    if scheme not in DATABASES:
        raise DataError(
            f"addresses that begin with {scheme}:// are not read; allowed are sqlite:///path and "
            "postgresql://user@host/database. Download other tables to a file first."
        )
    if query is None or not query.strip():
        words = "a database needs a query that says which rows to read: pass, for example, "
        raise DataError(Message(words, Setting("query", "select * from measurements"), "."))
    if scheme == "sqlite":
        source, result = _ask_sqlite(rest, query)
    else:
        source, result = _ask_postgresql(rest, query, password_variable)
    if isinstance(result, str):
        raise DataError(f"{source} did not answer: {result}. Check address and query.")
    return Loaded(result, source)


def _fetch(cursor: Any) -> pl.DataFrame | str:
    """Return what a query returned, or why it did not."""
    if cursor.description is None:
        return "the query returns no rows; it must be a select"
    names = [column[0] for column in cursor.description]
    check_unique(names, "the query returns", "give each its own name with 'as'")
    # Databases mix types within a column, SQLite at will: what disagrees becomes text.
    rows = cursor.fetchall()
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    named = zip(names, columns, strict=True)
    return pl.DataFrame([pl.Series(name, values, strict=False) for name, values in named])


# --- SQLite ---------------------------------------------------------------------------------------


def _ask_sqlite(rest: str, query: str) -> tuple[str, pl.DataFrame | str]:
    """Ask an SQLite file: "/name" is relative, "//name" absolute, as SQLAlchemy has it."""
    location, _, options = rest.partition("?")
    path = Path(unquote(location.removeprefix("/")))
    source = f"the SQLite file {str(path)!r}"
    asked = dict(parse_qsl(options, keep_blank_values=True))
    if odd := set(asked) - SQLITE_OPTIONS:
        raise DataError(
            f"the address of {source} has the option {min(odd)!r}; allowed are "
            f"{', '.join(sorted(SQLITE_OPTIONS))}."
        )
    if not path.is_file():
        raise DataError(
            f"there is no SQLite file {str(path)!r}. An address has three slashes before a "
            "relative path and four before an absolute one: sqlite:///name.db, "
            "sqlite:////folder/name.db."
        )
    uri = f"file:{quote(str(path.resolve()))}?{urlencode(asked | {'mode': 'ro'})}"
    try:
        connection = sqlite3.connect(uri, uri=True)
        try:
            return source, _fetch(connection.execute(query))
        finally:
            connection.close()
    except (sqlite3.Error, sqlite3.Warning) as error:
        return source, str(error)


# --- PostgreSQL -----------------------------------------------------------------------------------


def _ask_postgresql(rest: str, query: str, variable: str | None) -> tuple[str, pl.DataFrame | str]:
    need("psycopg", "sql", "PostgreSQL databases need")
    import psycopg

    address, secrets = _without_secrets(rest)
    source = f"the database {address}"
    if variable is not None:
        if variable not in os.environ:
            raise DataError(
                f"the environment has no variable {variable!r}, which should hold the password of "
                f"{source}; set it first."
            )
        secrets["password"] = os.environ[variable]
    options: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, **secrets}
    try:
        with psycopg.connect(address, **options) as connection:
            connection.read_only = True
            # The query is the user's own, to be run as it stands.
            return source, _fetch(connection.execute(query.encode()))
    except (psycopg.Error, OSError, ValueError) as error:
        known = {*secrets.values(), os.environ.get("PGPASSWORD", "")}
        return source, _scrubbed(str(error), known)


def _without_secrets(rest: str) -> tuple[str, dict[str, str]]:
    """Take passwords out of an address, even out of one that should have been quoted."""
    location, _, options = rest.partition("?")
    plain = OPTIONS.fullmatch(options) and ("@" in location or HOST_AND_PORT.fullmatch(location))
    if "@" in options and not plain:
        # The ? is part of a password.
        who, at, rest = rest.rpartition("@")
        where, _, options = rest.partition("?")
    else:
        # The last @ ends who; a password may have others in it, and slashes.
        who, at, where = location.rpartition("@")
    user, colon, password = who.partition(":")
    secrets = {"password": unquote(password)} if colon else {}
    pairs = parse_qsl(options, keep_blank_values=True)
    secrets |= {name: value for name, value in pairs if name in SECRETS}
    others = urlencode([(name, value) for name, value in pairs if name not in SECRETS])
    return f"postgresql://{user}{at}{where}{'?' if others else ''}{others}", secrets


def _scrubbed(message: str, secrets: set[str]) -> str:
    """Make one line of a driver's message, without any secret in any spelling."""
    for secret in secrets - {""}:
        for spelling in (secret, quote(secret), quote(secret, safe=""), repr(secret)[1:-1]):
            message = message.replace(spelling, "***")
    return " ".join(message.split()).rstrip(".")
