"""Options that several commands share, how their values are read, and what errors call them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial, update_wrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from regimix.errors import Message, Setting

# Parameters of the library that have an option of the same name, and those of another name; the
# others have none.
SAME = (
    *("checkpoint", "corruption", "corruption_kind", "drop", "encoding", "features", "gating"),
    *("intercepts", "memory", "noise", "outliers", "power", "query", "search", "separation"),
    "time_limit",
)
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in SAME} | {
    "fit_intercept": "--no-intercept",
    "gating_features": "--gating-columns",
    "n_components": "--components",
    "n_features": "--features",
    "n_jobs": "--jobs",
    "n_samples": "--rows",
    "random_state": "--seed",
    "sample_weight": "--weights",
    "weights": "--shares",
}


def in_options(error: BaseException) -> str:
    """Say what an error or a warning of the library says, with options for parameters."""
    message = error.args[0] if error.args else ""
    return message.said(_option) if isinstance(message, Message) else str(error)


def _option(setting: Setting) -> str:
    option = OPTIONS.get(setting.name)
    if option is None or setting.value is None:
        return option or str(setting)
    value = f"{setting.value:g}" if isinstance(setting.value, float) else str(setting.value)
    return f'{option} "{value}"' if " " in value else f"{option} {value}"


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
    """A group of commands whose help shows flags as flags."""


# --- values ---------------------------------------------------------------------------------------


def whole(least: int | None = None) -> Callable[[Any], int]:
    """Return what reads a whole number, perhaps from ``least``."""

    def read(text: Any) -> int:
        try:
            value = int(text)
        except ValueError:
            raise typer.BadParameter(f"it must be a whole number; got {text!r}.") from None
        if least is not None and value < least:
            raise typer.BadParameter(f"it must be at least {least}; got {value}.")
        return value

    return read


def _one_of(allowed: tuple[str, ...], text: Any) -> str:
    if str(text) not in allowed:
        raise typer.BadParameter(f"{str(text)!r} is not one of {', '.join(map(repr, allowed))}.")
    return str(text)


def real(text: Any) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"it must be a number; got {text!r}.") from None


def number_or_word(text: str) -> float | str:
    """Read a number; whether a word or the number makes sense is for the library to say."""
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return text


def names(text: str | None) -> list[str] | None:
    """Read names of columns that are separated by commas; a comma in a name is doubled."""
    if text is None:
        return None
    # A doubled comma is replaced by a character that no name holds while the text is split.
    parts = text.replace(",,", "\0").split(",")
    return [part.replace("\0", ",").strip() for part in parts if part.strip()]


def carried(text: str | None, place: Any) -> list[str] | str:
    """Read the columns that are to be written beside the labels."""
    if text is None:
        return []
    place.need_memory("--with-columns writes columns of", "use --key to find the rows again")
    return "all" if text == "all" else names(text) or []


def numbers(text: str) -> float | list[float]:
    """Read numbers that are separated by commas, one for each component, or one for all."""
    try:
        first, *others = map(float, text.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"it must be numbers separated by commas, such as 0.5,0.3,0.2; got {text!r}."
        ) from None
    return [first, *others] if others else first


# --- options --------------------------------------------------------------------------------------


def _options(panel: str | None) -> Callable[..., Any]:
    """Return what makes options that the help shows together."""

    def option(form: str | tuple[str, ...], words: str, *names: str, **more: Any) -> Any:
        """Make an option: what its value looks like, or all it may be; what it does; its names."""
        if isinstance(form, tuple):
            # Older typer reads its name.
            more["parser"] = update_wrapper(partial(_one_of, form), _one_of)
            form = "|".join(form)
        return typer.Option(*names, metavar=form, help=words, rich_help_panel=panel, **more)

    return option


of_command, of_table = _options(None), _options("The table")
of_place, of_search = _options("Where the work is done"), _options("The search")
of_output = _options("What comes out")

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, Parquet (file, folder, glob or s3://...), Arrow, Feather or JSON lines, "
        "gzipped or not; - for standard input; or sqlite:///FILE, postgresql://HOST/NAME.",
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that fit --model has written.")
]
Key = Annotated[
    str | None,
    of_table("COLUMN", "Names each row in what is printed and written; else its number does."),
]
Query = Annotated[str | None, of_table("SQL", "What to select from a database.")]
Encoding = Annotated[
    str | None,
    of_table(
        "NAME", "How a text file was saved: utf-8, latin-1, cp1252, ...", show_default="utf-8"
    ),
]
Rows = Annotated[int | None, of_table("N", "Take a random sample of N rows.", parser=whole(1))]
Engine = Annotated[
    str,
    of_place(
        ("auto", "memory", "parts", "dask"),
        "Read the table into memory; read it part by part (Parquet); or let the workers of a "
        "cluster read it. auto: part by part if it is too large for memory.",
    ),
]
Scheduler = Annotated[
    str | None,
    of_place(
        "ADDRESS",
        "The scheduler of a Dask cluster, such as tcp://host:8786.",
        show_default="a cluster on this machine, for the time of the command",
    ),
]
Workers = Annotated[
    int | None,
    of_place(
        "N",
        "Processes of a cluster on this machine.",
        parser=whole(1),
        show_default="one a processor",
    ),
]
Memory = Annotated[
    str | None,
    of_place(
        "SIZE",
        "Most memory for rows that are read part by part, such as 2GB.",
        show_default="512MB",
    ),
]
Missing = Annotated[
    str,
    of_table(
        ("drop", "error"),
        "Drop rows in which a value is missing, and count them; or refuse the table.",
    ),
]
Seed = Annotated[int, of_command("N", "The same seed gives the same answer.", parser=whole(0))]
WithColumns = Annotated[
    str | None,
    of_output(
        "A,B,...|all", "Columns of the table to write beside the labels; all: every one of them."
    ),
]
Quiet = Annotated[bool, of_output("", "Print warnings and errors only.", "--quiet", "-q")]
Json = Annotated[
    bool,
    of_output(
        "", "Print a summary for programs; what people read goes to standard error.", "--json"
    ),
]
