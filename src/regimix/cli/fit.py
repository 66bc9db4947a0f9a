"""``regimix fit``: from a table to its regimes; and ``regimix demo``, the same on bundled data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regimix.cli.console import CommandError, Voice
from regimix.cli.options import (
    Data,
    Encoding,
    Json,
    Key,
    Missing,
    Query,
    Quiet,
    Rows,
    count_or_auto,
    in_options,
    names,
    of_command,
    of_output,
    of_search,
    of_table,
    real,
    share_or_auto,
    whole,
)
from regimix.cli.outputs import CHECKPOINT, FOLDER, MODEL, REPORT, TABLE, check_outputs
from regimix.cli.place import Engine, EngineName, Memory, Place, Scheduler, Workers, output_of
from regimix.cli.work import Files, Look, fit_and_print
from regimix.errors import UnknownColumnError

if TYPE_CHECKING:
    from regimix.tables import DataSet, ParquetTable

__all__ = ["demo", "fit"]


def fit(
    context: typer.Context,
    data: Data,
    target: Annotated[str, of_table("COLUMN", "The column to explain.", "--target", "-y")],
    features: Annotated[
        str | None,
        of_table(
            "A,B,...",
            "The columns that explain it; a comma in a name is doubled.",
            "--features",
            "-x",
            show_default="all that can be used",
        ),
    ] = None,
    drop: Annotated[str | None, of_table("A,B,...", "Columns to leave out.")] = None,
    weights: Annotated[
        str | None, of_table("COLUMN", "How often, or how much, each row counts.")
    ] = None,
    key: Key = None,
    missing: Missing = "drop",
    rows: Rows = None,
    query: Query = None,
    encoding: Encoding = None,
    engine: EngineName = "auto",
    scheduler: Scheduler = None,
    workers: Workers = None,
    memory: Memory = None,
    components: Annotated[
        str, of_search("N|auto", "How many regimes.", "--components", "-m", parser=count_or_auto)
    ] = "auto",
    outliers: Annotated[
        str,
        of_search(
            "SHARE|auto",
            "Share of the rows that belong to no regime; 0 allows no outliers.",
            parser=share_or_auto,
        ),
    ] = "auto",
    noise: Annotated[
        str,
        of_search(("auto", "normal", "student"), "Law of the noise; Student's has heavier tails."),
    ] = "auto",
    search: Annotated[
        str,
        of_search(
            ("auto", "joint", "partition", "net"),
            "Every source of proposals, the joint one alone, a partition of all rows by least "
            "squares, or the paper's Algorithm 2.",
        ),
    ] = "auto",
    no_intercept: Annotated[
        bool, of_search("", "Let every regime pass through the origin.", "--no-intercept")
    ] = False,
    time_limit: Annotated[
        float | None, of_search("SECONDS", "Stop the search with the best so far.", parser=real)
    ] = None,
    jobs: Annotated[
        int,
        of_search(
            "N",
            "Processors to use, -1: all; the answer is the same.",
            "--jobs",
            "-j",
            parser=whole(),
        ),
    ] = 1,
    checkpoint: Annotated[
        Path | None,
        of_search(
            "FILE",
            "Write down where a long search is; a fit that was cut off goes on from there.",
        ),
    ] = None,
    seed: Annotated[
        int, of_search("N", "The same seed gives the same answer.", parser=whole(0))
    ] = 0,
    model: Annotated[
        Path | None, of_output("FILE.regimix", "Write the model, for predict and report.")
    ] = None,
    labels: Annotated[
        str | None,
        of_output(
            "FILE",
            "Write the regime of each row: .csv, .tsv, .parquet, ...; or a folder of Parquet "
            "files, part by part.",
        ),
    ] = None,
    report: Annotated[
        Path | None, of_output("FILE.html", "Write a report, one page that needs no network.")
    ] = None,
    terms: Annotated[int, of_output("N", "Most coefficients to print.", parser=whole(0))] = 10,
    show_outliers: Annotated[int, of_output("N", "Most outliers to print.", parser=whole(0))] = 5,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the regimes of a table: how many, what each one's equation is, which rows are wrong."""
    if jobs == 0:
        raise CommandError("--jobs must be a whole number from 1, or -1 for all; got 0.")
    if time_limit is not None and not time_limit > 0:
        raise CommandError(f"--time-limit must be above 0 seconds; got {time_limit:g}.")
    place = Place(Engine(engine), scheduler, workers, memory).settled(
        data, ("--labels", labels), rows=rows, query=query, encoding=encoding
    )
    settings = {
        "n_components": components,
        "outliers": outliers,
        "noise": noise,
        "search": search,
        "fit_intercept": not no_intercept,
        "time_limit": time_limit,
        "n_jobs": jobs,
        "random_state": seed,
        "checkpoint": checkpoint,
        # What is shown of rows that are not in memory is what the model holds of them.
        "keep_rows": not place.in_memory,
    }
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
        missing=missing,
    )
    look = Look(terms=terms, outliers=show_outliers, as_json=as_json)
    voice = Voice(quiet=quiet, machine=as_json)
    raise typer.Exit(fit_and_print(read, settings, files, look, voice, place))


def _read(source: str, place: Place, whole: dict[str, Any], **how: Any) -> DataSet | ParquetTable:
    # polars is loaded when a table is read, not when help is asked for.
    from regimix import tables

    try:
        if not place.in_memory:
            return tables.scan_parquet(source, **how, **place.scanning())
        data = tables.read(source, **how, **whole)
    except UnknownColumnError as error:
        # The lack of a doubled comma may have made a name unknown.
        meant = [name for name in error.close if "," in name]
        if not meant or error.role not in ("a feature", "to drop"):
            raise
        doubled = meant[0].replace(",", ",,")
        advice = f"Double the comma that is part of a name: {doubled}"
        raise CommandError(f"{in_options(error)} {advice}") from error
    _check_weights(data)
    return data


def _check_weights(data: DataSet) -> None:
    """Refuse negative weights in the words of the table: its column, its rows."""
    if data.weights is None or not (data.weights < 0).any():
        return
    row = int((data.weights < 0).argmax())
    raise CommandError(
        f"the column {data.recipe.weights!r} of --weights is negative in {data.key_name} "
        f"{data.keys[row]} ({data.weights[row]:g}); weights are zero (row absent) or positive."
    )


def demo(
    report: Annotated[
        Path, of_command("FILE.html", "Where the report goes.", "--report", "-o")
    ] = Path("regimix-demo.html"),
) -> None:
    """Find the regimes of bundled data, and write a report on them."""
    check_outputs([("--report", report, REPORT)])
    voice = Voice()
    voice.answer(
        "A musician hears tones with stretched overtones and tunes the octave above, in 150 "
        "trials. Does the ear stay with the octave, or follow the overtones? Nothing but the two "
        "numbers of each trial is given to the fit."
    )
    voice.answer()
    voice.answer(f"$ regimix fit tone.csv --target tuned --report {report}", style="dim")
    voice.answer()
    command = ("regimix", "demo", "--report", str(report))
    files, look = Files(report=report, command=command), Look(name_files=False)
    code = fit_and_print(_tone, {"random_state": 0}, files, look, voice)
    voice.answer()
    voice.answer("One regime is the octave: tuned = 2. The other one follows the overtones:")
    voice.answer("tuned = stretchratio. The report shows both; open it in a browser:")
    voice.answer(str(report.resolve()), whole=True)
    raise typer.Exit(code)


def _tone() -> DataSet:
    from importlib.resources import as_file, files

    from regimix import tables

    with as_file(files("regimix.datasets").joinpath("tone.csv")) as path:
        return replace(tables.read(path, target="tuned"), source="tone.csv")
