"""``regimix fit``: from a table to its regimes; and ``regimix demo``, the same on bundled data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regimix.cli import options
from regimix.cli.console import CommandError, Voice
from regimix.cli.options import (
    count_or_auto,
    names,
    of_output,
    of_search,
    of_table,
    real,
    share_or_auto,
    whole,
)
from regimix.cli.place import CHECKPOINT, FOLDER, MODEL, REPORT, TABLE, Place, check_outputs, tidied

if TYPE_CHECKING:
    from regimix.tables import DataSet


def fit(
    context: typer.Context,
    data: options.Data,
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
    key: options.Key = None,
    log: Annotated[bool, of_table("", "Explain the logarithm of the target.", "--log")] = False,
    power: Annotated[
        float | None,
        of_table("P", "Explain a power of the target, such as 0.5; 0: its logarithm.", parser=real),
    ] = None,
    missing: options.Missing = "drop",
    rows: options.Rows = None,
    query: options.Query = None,
    encoding: options.Encoding = None,
    engine: options.Engine = "auto",
    scheduler: options.Scheduler = None,
    workers: options.Workers = None,
    memory: options.Memory = None,
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
    gating: Annotated[
        str | None,
        of_search(
            ("logistic", "trees"),
            "Learn which regime a row follows from its columns; predict then uses it.",
            "--gating",
        ),
    ] = None,
    gating_columns: Annotated[
        str | None,
        of_search(
            "A,B,...",
            "The columns that --gating learns from, text included; they are features only if "
            "--features names them too.",
            show_default="the features",
        ),
    ] = None,
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
    stability: Annotated[
        int | None,
        of_search(
            "N",
            "Search N resamples of the rows too; a regime that comes back in less than 60 % of "
            "them is called doubtful.",
            parser=whole(1),
        ),
    ] = None,
    profile: Annotated[
        str | None,
        of_search(
            "A,B,...",
            "Say who is in each regime by these columns, which are then no features unless "
            "--features names them; all: by every column that is not used.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        of_search(
            "FILE", "Write down where a long search is; a fit that was cut off goes on from there."
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
    with_columns: options.WithColumns = None,
    terms: Annotated[int, of_output("N", "Most coefficients to print.", parser=whole(0))] = 10,
    show_outliers: Annotated[int, of_output("N", "Most outliers to print.", parser=whole(0))] = 5,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the regimes of a table: how many, the equation of each, and the outliers."""
    if jobs == 0:
        raise CommandError("--jobs must be a whole number from 1, or -1 for all; got 0.")
    if time_limit is not None and not time_limit > 0:
        raise CommandError(f"--time-limit must be above 0 seconds; got {time_limit:g}.")
    if log and power is not None:
        raise CommandError("--log is --power 0; leave one of --log and --power out.")
    if gating_columns is not None and gating is None:
        raise CommandError(
            "--gating-columns says what a gating learns from, and there is none: add --gating "
            "logistic or --gating trees."
        )
    place = Place(engine, scheduler, workers, memory).settled(
        data, ("--labels", labels), rows=rows, query=query, encoding=encoding
    )
    if stability is not None and not place.in_memory:
        raise CommandError(
            "--stability searches resamples of rows in memory, and this table is read part by part "
            f"(--engine {place.engine}); leave it out, or use --engine memory, with --rows N for a "
            "sample."
        )
    profiled = names(profile)
    labels = None if labels is None else tidied(labels)
    settings = {
        "n_components": components,
        "outliers": outliers,
        "noise": noise,
        "search": search,
        "fit_intercept": not no_intercept,
        "gating": gating,
        "time_limit": time_limit,
        "n_jobs": jobs,
        "random_state": seed,
        "checkpoint": checkpoint,
        # What is shown of rows that are not in memory is what the model holds of them.
        "keep_rows": not place.in_memory,
    }
    check_outputs(
        [
            ("--model", model, MODEL),
            ("--labels", labels, TABLE if place.in_memory else FOLDER),
            ("--report", report, REPORT),
            ("--checkpoint", checkpoint, CHECKPOINT),
        ],
        sources=[data],
    )
    from regimix.cli.fitting import Job, read_table

    read = partial(
        read_table,
        data,
        place,
        profiled,
        seed,
        target=target,
        features=names(features),
        drop=names(drop) or (),
        weights=weights,
        key=key,
        power=0.0 if log else 1.0 if power is None else power,
        gating=names(gating_columns) or (),
        missing=missing,
    )
    job = Job(
        read=read,
        settings=settings,
        place=place,
        voice=Voice(quiet=quiet, machine=as_json),
        model=model,
        labels=labels,
        report=report,
        columns=options.carried(with_columns, place),
        resamples=stability,
        profiled=profiled,
        command=("regimix", *context.obj) if context.obj else (),
        most_terms=terms,
        most_outliers=show_outliers,
        as_json=as_json,
    )
    raise typer.Exit(job.run())


def demo(
    report: Annotated[
        Path, options.of_command("FILE.html", "Where the report goes.", "--report", "-o")
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
    from regimix.cli.fitting import Job

    job = Job(
        read=_tone,
        settings={"random_state": 0},
        place=Place("memory"),
        voice=voice,
        report=report,
        command=("regimix", "demo", "--report", str(report)),
        name_files=False,
    )
    code = job.run()
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
