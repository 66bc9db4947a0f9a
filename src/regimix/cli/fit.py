"""``regimix fit``: from a table to its regimes."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regimix.cli.console import Voice
from regimix.cli.failures import CommandError
from regimix.cli.options import (
    DATA,
    OUTPUT,
    SEARCH,
    Data,
    Encoding,
    Json,
    Key,
    Missing,
    MissingRows,
    Query,
    Quiet,
    Rows,
    count_or_auto,
    names,
    share_or_auto,
)
from regimix.cli.outputs import CHECKPOINT, FOLDER, MODEL, REPORT, TABLE, check_outputs
from regimix.cli.place import (
    Engine,
    EngineName,
    Memory,
    Place,
    Scheduler,
    Workers,
    output_of,
)
from regimix.cli.work import Files, Look, fit_and_tell
from regimix.errors import DataError, RegimixError

if TYPE_CHECKING:
    from regimix.tables import DataSet, ParquetTable

__all__ = ["fit"]


class Search(StrEnum):
    """How regimes are found."""

    AUTO = "auto"
    JOINT = "joint"
    PARTITION = "partition"
    NET = "net"


class Noise(StrEnum):
    """Law of the noise of a regime."""

    AUTO = "auto"
    NORMAL = "normal"
    STUDENT = "student"


def fit(
    context: typer.Context,
    data: Data,
    target: Annotated[
        str,
        typer.Option(
            "--target", "-y", metavar="COLUMN", help="The column to explain.", rich_help_panel=DATA
        ),
    ],
    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            "-x",
            metavar="A,B,...",
            help="The columns that explain it; a comma in a name is doubled.",
            show_default="all that can be used",
            rich_help_panel=DATA,
        ),
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Columns to leave out.",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="How often, or how much, each row counts.",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ] = None,
    key: Key = None,
    missing: MissingRows = Missing.DROP,
    rows: Rows = None,
    query: Query = None,
    encoding: Encoding = None,
    engine: EngineName = Engine.AUTO,
    scheduler: Scheduler = None,
    workers: Workers = None,
    memory: Memory = None,
    components: Annotated[
        str,
        typer.Option(
            "--components", "-m", metavar="N|auto", help="How many regimes.", rich_help_panel=SEARCH
        ),
    ] = "auto",
    outliers: Annotated[
        str,
        typer.Option(
            metavar="SHARE|auto",
            help="Share of the rows that belong to no regime; 0 allows no outliers.",
            rich_help_panel=SEARCH,
        ),
    ] = "auto",
    noise: Annotated[
        Noise,
        typer.Option(
            metavar="auto|normal|student",
            help="Law of the noise; Student's has heavier tails.",
            rich_help_panel=SEARCH,
        ),
    ] = Noise.AUTO,
    search: Annotated[
        Search,
        typer.Option(
            metavar="auto|joint|partition|net",
            help="Every source of proposals, the joint one alone, a partition of all rows by least "
            "squares, or the paper's Algorithm 2.",
            rich_help_panel=SEARCH,
        ),
    ] = Search.AUTO,
    no_intercept: Annotated[
        bool,
        typer.Option(
            "--no-intercept",
            metavar="",
            help="Let every regime pass through the origin.",
            rich_help_panel=SEARCH,
        ),
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Stop the search with the best so far.",
            show_default=False,
            rich_help_panel=SEARCH,
        ),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            help="Processors to use, -1: all; the answer is the same.",
            rich_help_panel=SEARCH,
        ),
    ] = 1,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write down where a long search is; a fit that was cut off goes on from there.",
            show_default=False,
            rich_help_panel=SEARCH,
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            help="The same seed gives the same answer.",
            rich_help_panel=SEARCH,
        ),
    ] = 0,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.regimix",
            help="Write the model, for predict and report.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the regime of each row: .csv, .tsv, .parquet, ...; or a folder of Parquet "
            "files, part by part.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write a report, one page that needs no network.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    terms: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Most coefficients to print.", rich_help_panel=OUTPUT
        ),
    ] = 10,
    show_outliers: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Most outliers to print.", rich_help_panel=OUTPUT),
    ] = 5,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the regimes of a table: how many, what each one's equation is, which rows are wrong."""
    if jobs == 0:
        raise CommandError("--jobs must be a whole number from 1, or -1 for all; got 0.")
    if time_limit is not None and not time_limit > 0:
        raise CommandError(f"--time-limit must be above 0 seconds; got {time_limit:g}.")
    settings = {
        "n_components": count_or_auto("--components", components),
        "outliers": share_or_auto("--outliers", outliers),
        "noise": noise.value,
        "search": search.value,
        "fit_intercept": not no_intercept,
        "time_limit": time_limit,
        "n_jobs": jobs,
        "random_state": seed,
        "checkpoint": checkpoint,
    }
    place = Place(engine, scheduler, workers, memory).settled(
        data, ("--labels", labels), rows=rows, query=query, encoding=encoding
    )
    # What is shown of rows that are not in memory is what the model holds of them.
    settings["keep_rows"] = not place.in_memory
    written = output_of(labels)
    files = Files(model, written, report, ("regimix", *context.obj) if context.obj else ())
    check_outputs(
        [
            ("--model", model, MODEL),
            ("--labels", written, TABLE if place.in_memory else FOLDER),
            ("--report", report, REPORT),
            ("--checkpoint", checkpoint, CHECKPOINT),
        ],
        sources=[data],
    )
    read = partial(
        _read,
        data,
        place,
        {"rows": rows, "seed": seed, "query": query, "encoding": encoding or "utf-8"},
        target=target,
        features=names(features),
        drop=names(drop) or (),
        weights=weights,
        key=key,
        missing=missing.value,
    )
    look = Look(terms=terms, outliers=show_outliers, as_json=as_json)
    voice = Voice(quiet=quiet, machine=as_json)
    raise typer.Exit(fit_and_tell(read, settings, files, look, voice, place))


def _read(source: str, place: Place, whole: dict[str, Any], **how: Any) -> DataSet | ParquetTable:
    # polars is loaded when a table is read, not when help is asked for.
    from regimix import tables

    try:
        if not place.in_memory:
            return tables.scan_parquet(source, **how, **place.scanning())
        data = tables.read(source, **how, **whole)
    except DataError as error:
        raise _with_commas(error) from error
    _check_weights(data)
    return data


def _with_commas(error: DataError) -> RegimixError:
    """Say how to write a name with a comma, if the lack of that made one unknown."""
    found, _, close = str(error).partition("Did you mean ")
    meant = re.search(r"'([^']*,[^']*)'", close)
    if meant is None or not found.rstrip().endswith(("(a feature).", "(to drop).")):
        return error
    doubled = meant[1].replace(",", ",,")
    return CommandError(f"{error} Double the comma that is part of a name: {doubled}")


def _check_weights(data: DataSet) -> None:
    """Refuse negative weights in the words of the table: its column, its rows."""
    if data.weights is None or not (data.weights < 0).any():
        return
    row = int((data.weights < 0).argmax())
    raise CommandError(
        f"the column {data.recipe.weights!r} of --weights is negative in {data.key_name} "
        f"{data.keys[row]} ({data.weights[row]:g}); weights are zero (row absent) or positive."
    )
