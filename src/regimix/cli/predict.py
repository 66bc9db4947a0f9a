"""``regimix predict`` and ``regimix report``: a model and rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from regimix.cli import options
from regimix.cli.console import Aborted, CommandError, Voice, progress_bar
from regimix.cli.options import of_command
from regimix.cli.place import FOLDER, REPORT, TABLE, Place, check_outputs, tidied
from regimix.errors import ModelFileError
from regimix.words import count, fixed

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture
    from regimix.tables import ParquetTable, Recipe, WrittenFile


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
    from regimix.tables.write import gate_shares

    mixture, recipe = _open_model(model, data)
    page: dict[str, Any] = {"title": title}
    if recipe.power != 1.0:
        column = f"table[{recipe.target!r}]"
        power = f"np.log({column})" if recipe.power == 0.0 else f"{column} ** {recipe.power!r}"
        page["command"] = snippet(mixture, power)
    table = _read_like(data, recipe, mixture, place, key, missing)
    if place.in_memory:
        page["shares"] = gate_shares(mixture, table.X, table.gating)
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
