"""Options that several commands share, and the small languages their values are written in."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from regimix.cli.failures import CommandError

__all__ = [
    "Data",
    "Encoding",
    "Json",
    "Key",
    "Missing",
    "Model",
    "PlainCommand",
    "PlainGroup",
    "Quiet",
    "Query",
    "Rows",
    "Seed",
    "count_or_auto",
    "each",
    "names",
    "share_or_auto",
]

DATA, SEARCH, OUTPUT = "The table", "The search", "What comes out"


class _Plain:
    """Shows no type beside an option that takes no value: typer would write "<bool>"."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, those that typer adds itself included."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class PlainCommand(_Plain, TyperCommand):
    """A command whose help shows flags as flags."""


class PlainGroup(_Plain, TyperGroup):
    """Commands under one name, likewise."""


class Missing(StrEnum):
    """What happens to rows in which a value is missing."""

    DROP = "drop"
    ERROR = "error"


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet (file, folder, glob or s3://...), Arrow, Feather or JSON lines, "
        "gzipped or not; - for standard input; or sqlite:///FILE, postgresql://HOST/NAME.",
        show_default=False,
    ),
]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="A model that fit --model has written.", show_default=False
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Names each row in what is printed and written; else its number does.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Query = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="What to select from a database.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="How a text file was saved: utf-8, latin-1, cp1252, ...",
        show_default="utf-8",
        rich_help_panel=DATA,
    ),
]
Rows = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Take a random sample of N rows.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
MissingRows = Annotated[
    Missing,
    typer.Option(
        "--missing",
        metavar="drop|error",
        help="Drop rows in which a value is missing, and count them; or refuse the table.",
        rich_help_panel=DATA,
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="The same seed gives the same answer.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", metavar="", help="Print warnings and errors only.", rich_help_panel=OUTPUT
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        metavar="",
        help="Print a summary for programs; what people read goes to standard error.",
        rich_help_panel=OUTPUT,
    ),
]


def names(text: str | None) -> list[str] | None:
    """Read names of columns that are separated by commas; a comma in a name is doubled."""
    if text is None:
        return None
    # A doubled comma cannot be confused with anything while it is a sign that no name holds.
    parts = text.replace(",,", "\0").split(",")
    return [part.replace("\0", ",").strip() for part in parts if part.strip()]


def each(option: str, text: str | None, components: int) -> list[float] | None:
    """Read numbers that are separated by commas: one for each component, or one for all."""
    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise CommandError(
            f"{option} must be numbers separated by commas, such as 0.5,0.3,0.2; got {text!r}."
        ) from None
    if len(values) == 1:
        return values * components
    if len(values) != components:
        raise CommandError(
            f"{option} must be one number for each of the {components} components, or one for all; "
            f"got {len(values)}."
        )
    return values


def count_or_auto(option: str, text: str) -> int | str:
    """Read "auto" or a whole number from 1."""
    if text == "auto" or (text.isdecimal() and int(text) >= 1):
        return text if text == "auto" else int(text)
    raise CommandError(f"{option} must be auto or a whole number from 1; got {text!r}.")


def share_or_auto(option: str, text: str) -> float | str:
    """Read "auto" or a share from 0 to below 1."""
    if text == "auto":
        return text
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise CommandError(
            f"{option} must be auto or a share of the rows from 0 to below 1, such as 0.1; got "
            f"{text!r}."
        )
    return share
