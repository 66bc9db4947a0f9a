"""The commands ``fit``, ``predict``, ``report``, ``synth`` and ``demo``: options, and what they do.

What is heavy is loaded when a command runs, not when help is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regimix.atomic import write_bytes
from regimix.cli import options
from regimix.cli.console import Aborted, CommandError, Voice, progress_bar
from regimix.cli.options import numbers, of_command, of_output, of_search, of_table, real, whole
from regimix.cli.place import FOLDER, MODEL, REPORT, TABLE, Place, check_outputs, tidied
from regimix.errors import ModelFileError
from regimix.words import count, fixed

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture
    from regimix.synth import MLRCData
    from regimix.tables import DataSet, ParquetTable, Recipe, WrittenFile


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
        str,
        of_search(
            "N|auto", "How many regimes.", "--components", "-m", parser=options.number_or_word
        ),
    ] = "auto",
    outliers: Annotated[
        str,
        of_search(
            "SHARE|auto",
            "Share of the rows that belong to no regime; 0 allows no outliers.",
            parser=options.number_or_word,
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
    if stability is not None:
        advice = "leave it out, or use --engine memory, with --rows N for a sample"
        place.need_memory("--stability searches resamples of", advice)
    profiled = options.names(profile)
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
            ("--checkpoint", checkpoint, ("",)),
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
        features=options.names(features),
        drop=options.names(drop) or (),
        weights=weights,
        key=key,
        power=0.0 if log else 1.0 if power is None else power,
        gating=options.names(gating_columns) or (),
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


def predict(
    model: options.Model,
    data: options.Data,
    out: Annotated[
        str,
        of_command(
            "FILE",
            "Where the predictions go: .csv, .tsv, .parquet, ...; or a folder of Parquet files, "
            "part by part.",
            "--out",
            "-o",
        ),
    ],
    key: options.Key = None,
    missing: options.Missing = "drop",
    rows: options.Rows = None,
    query: options.Query = None,
    encoding: options.Encoding = None,
    engine: options.Engine = "auto",
    scheduler: options.Scheduler = None,
    workers: options.Workers = None,
    memory: options.Memory = None,
    with_columns: options.WithColumns = None,
    quiet: options.Quiet = False,
) -> None:
    """Label rows whose response is known; predict the others, with the likely regime."""
    place = Place(engine, scheduler, workers, memory).settled(
        data, ("--out", out), rows=rows, query=query, encoding=encoding
    )
    out, voice = tidied(out), Voice(quiet=quiet)
    kinds = TABLE if place.in_memory else FOLDER
    check_outputs([("--out", out, kinds)], sources=[str(model), data])
    from regimix import tables

    mixture, recipe = _open_model(model, data)
    read = partial(_read_like, data, recipe, mixture, place, key, missing, target="optional")
    columns = options.carried(with_columns, place)
    if place.in_memory:
        table = read()
        files = [tables.write_labels(out, table, mixture, columns=columns, forecast=True)]
        notes, has_target, where = table.notes, table.y is not None, ""
    else:
        parts, files = _predict_parts(read, mixture, out, place, voice)
        notes = parts.notes_and_dropped(sum(file.n_dropped for file in files))
        has_target = any(reader.target is not None for reader in parts.readers)
        where = f" in {count(len(files), 'file')}"
    for note in filter(None, (*notes, recipe.note)):
        voice.note(note)
    n_rows = sum(file.n_rows for file in files)
    said = _assigned(files, recipe.target, there=has_target)
    voice.answer(f"{out}: {count(n_rows, 'row')}{where}{said}.", whole=True)


def _predict_parts(
    read: Callable[[], ParquetTable], mixture: Mixture, out: str, place: Place, voice: Voice
) -> tuple[ParquetTable, list[WrittenFile]]:
    """Predict rows part by part, here or on a cluster."""
    from regimix.tables import write_label_parts

    try:
        with progress_bar(voice, None, lines=True) as bar:
            bar.stage("starting workers" if place.on_cluster else "reading")
            with place.opened(voice):
                table = read()
                bar.stage("predicting")
                return table, write_label_parts(out, table, mixture, watch=bar.parts)
    except KeyboardInterrupt as error:
        raise Aborted(
            f"interrupted; files in {out} are whole, but not all are there. The same command "
            "writes them again."
        ) from error


def _assigned(files: list[WrittenFile], target: str, *, there: bool) -> str:
    """Say how many rows are outliers, and how many could not be assigned."""
    outliers, unknown = sum(f.n_outliers for f in files), sum(f.n_unknown for f in files)
    predicted = "predicted, not assigned"
    if not there:
        return f"; without the column {target} regimes are {predicted}"
    if unknown and unknown == sum(file.n_rows - file.n_dropped for file in files):
        return f"; the column {target} is blank: regimes are {predicted}"
    blank = f"; {count(unknown, 'row')} without {target}: {predicted}" if unknown else ""
    return f", {fixed(outliers, 0)} of them {'an outlier' if outliers == 1 else 'outliers'}{blank}"


def report(
    model: options.Model,
    data: options.Data,
    out: Annotated[Path, of_command("FILE.html", "Where the report goes.", "--out", "-o")],
    title: Annotated[str | None, of_command("TEXT", "What the report is called.")] = None,
    key: options.Key = None,
    missing: options.Missing = "drop",
    rows: options.Rows = None,
    query: options.Query = None,
    encoding: options.Encoding = None,
    memory: options.Memory = None,
    quiet: options.Quiet = False,
) -> None:
    """Show a model and rows as one HTML page that needs no network."""
    check_outputs([("--out", out, REPORT)], sources=[str(model), data])
    place = Place(memory=memory).settled(
        data, ("--out", None), rows=rows, query=query, encoding=encoding
    )
    from regimix.report import write
    from regimix.report.page import snippet
    from regimix.result.gate import gate_shares

    mixture, recipe = _open_model(model, data)
    page: dict[str, Any] = {"title": title, "command": snippet(mixture, recipe)}
    table = _read_like(data, recipe, mixture, place, key, missing)
    if place.in_memory:
        page["shares"] = gate_shares(mixture, table.X, table.gating)
        page["sample_weight"] = table.weights
        write(out, mixture, table.X, table.y, keys=table.keys, **page)
        n_rows, drawn = table.n_rows, ""
    else:
        page["shares"] = None if mixture.gate is None else partial(gate_shares, mixture)
        write(out, mixture, table, **page)
        n_rows, drawn = table.n_read, ", read in parts"
    voice = Voice(quiet=quiet)
    for sentence in table.notes:
        voice.note(sentence)
    voice.answer(f"{out}: a report on {count(n_rows, 'row')}{drawn}.", whole=True)


def _read_like(
    data: str, recipe: Recipe, mixture: Mixture, place: Place, key: Any, missing: str, **how: Any
) -> Any:
    """Read rows as those of the fit were read: a DataSet, or a ParquetTable in parts."""
    from regimix.tables import read_like, scan_like

    gate = mixture.gate
    # The columns that predict the regime of a row, if those are not the features.
    gating = () if gate is None or gate.from_features else [column.name for column in gate.columns]
    read: Any = read_like if place.in_memory else scan_like
    return read(data, recipe, key=key, missing=missing, gating=gating, **how, **place.reading)


def _open_model(model: Path, data: str) -> tuple[Mixture, Recipe]:
    """Open a model file; return also how columns become its features."""
    from regimix import store, tables

    try:
        opened = store.open_model(model)
    except ModelFileError:
        with suppress(ModelFileError):
            store.open_model(data)
            raise CommandError(
                f"{data} is the model and {model} the table: the model comes first."
            ) from None
        raise
    mixture, gate = opened.mixture, opened.mixture.gate
    if gate is not None and not (gate.from_features or gate.columns):
        if gate.names[0] == "x0":
            raise CommandError(
                f"{model} was fitted in Python with gating_features that have no names: which "
                "regime is likely depends on these columns, which cannot be found in a table. Use "
                "the model in Python, or fit it again with a data frame of gating_features."
            )
        gate = replace(gate, columns=tuple(map(tables.Column, gate.names)))
        mixture = replace(mixture, gate=gate)
    if opened.recipe is not None:
        return mixture, tables.Recipe.from_json(opened.recipe)
    # Saved from Python: its features are columns, as they are.
    columns = tuple(tables.Column(name) for name in mixture.feature_names)
    return mixture, tables.Recipe(mixture.target_name, columns)


def synth(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Where the rows go: .csv, .tsv, .parquet, ...")
    ],
    rows: Annotated[int, of_command("N", "Rows.", "--rows", "-n", parser=whole(1))] = 1000,
    features: Annotated[
        int, of_command("D", "Columns x0, x1, ...", "--features", "-d", parser=whole(1))
    ] = 5,
    components: Annotated[
        int, of_command("M", "Regimes.", "--components", "-m", parser=whole(1))
    ] = 2,
    shares: Annotated[
        str | None,
        of_command("A,B,...", "Their relative sizes.", parser=numbers, show_default="equal"),
    ] = None,
    corruption: Annotated[
        float, of_command("SHARE", "Share of the rows that are outliers.", parser=real)
    ] = 0.0,
    corruption_kind: Annotated[
        str,
        of_command(
            ("gross", "same-scale", "adversarial"),
            "Errors added, responses redrawn, or one regime of their own for all outliers.",
        ),
    ] = "gross",
    noise: Annotated[
        str,
        of_command("SD", "Standard deviation of the noise, for all or each: A,B.", parser=numbers),
    ] = "0.1",
    separation: Annotated[
        float | None,
        of_command(
            "Q",
            "Smallest distance of two regimes over the largest length.",
            parser=real,
            show_default="drawn",
        ),
    ] = None,
    intercepts: Annotated[
        str | None,
        of_command("A,B,...", "Intercepts of the regimes.", parser=numbers, show_default="none"),
    ] = None,
    seed: options.Seed = 0,
    truth: Annotated[
        Path | None, of_command("FILE.json", "Where the truth goes.", show_default="OUT.truth.json")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Make data with known regimes and outliers, and write down the truth."""
    answers = truth if truth is not None else out.with_name(f"{out.name}.truth.json")
    check_outputs([("OUT", out, TABLE), ("--truth", answers, (".json",))])
    from regimix.synth import make_mlrc
    from regimix.tables import write_table

    how: dict[str, Any] = {
        "weights": shares,
        "corruption": corruption,
        "corruption_kind": corruption_kind,
        "noise": noise,
        "separation": separation,
        "intercepts": intercepts,
        "random_state": seed,
    }
    data = make_mlrc(rows, features, components, **how)
    columns: dict[str, Any] = {f"x{i}": column for i, column in enumerate(data.X.T)}
    write_table(out, {**columns, "y": data.y})
    write_bytes(answers, f"{json.dumps(_truth(data, seed), indent=1)}\n".encode())
    outliers = int(data.truth.corrupted.sum())
    voice = Voice(quiet=quiet)
    voice.answer(
        f"{out}: {count(rows, 'row')}, {count(features, 'feature')} x0, x1, ..., target y; "
        f"{count(outliers, 'outlier')}.",
        whole=True,
    )
    voice.answer(f"{answers}: the {components} regimes, and where each row belongs.", whole=True)


def _truth(data: MLRCData, seed: int) -> dict[str, Any]:
    """Put the truth into dictionaries and lists; labels are in the order of the rows."""
    truth = data.truth
    return {
        "seed": seed,
        "target": "y",
        "features": [f"x{i}" for i in range(data.X.shape[1])],
        "regimes": [
            {
                "label": j,
                "share": float(truth.clean_fraction[j]),
                "intercept": float(truth.intercept[j]),
                "coef": truth.coef[j].tolist(),
                "noise": float(truth.noise[j]),
            }
            for j in range(len(truth.coef))
        ],
        "corrupted": int(truth.corrupted.sum()),
        "wrong_coef": None if truth.wrong_coef is None else truth.wrong_coef.tolist(),
        "labels": truth.labels.tolist(),
    }


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
