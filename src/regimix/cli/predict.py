"""``regimix predict`` and ``regimix report``: a model and rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from regimix.cli.console import Aborted, CommandError, Voice, progress_bar
from regimix.cli.options import (
    Data,
    Encoding,
    Key,
    Missing,
    Model,
    Query,
    Quiet,
    Rows,
    of_command,
)
from regimix.cli.outputs import FOLDER, REPORT, TABLE, check_outputs
from regimix.cli.place import Engine, EngineName, Memory, Place, Scheduler, Workers, output_of
from regimix.cli.scanned import dropped_note
from regimix.words import count, fixed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regimix.result.mixture import Mixture
    from regimix.tables import DataSet, Recipe

__all__ = ["predict", "report"]

PREDICTED = "predicted, not assigned"


def predict(
    model: Model,
    data: Data,
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
    key: Key = None,
    missing: Missing = "drop",
    rows: Rows = None,
    query: Query = None,
    encoding: Encoding = None,
    engine: EngineName = "auto",
    scheduler: Scheduler = None,
    workers: Workers = None,
    memory: Memory = None,
    quiet: Quiet = False,
) -> None:
    """Predict rows by each regime and, where the response is known, say where they belong."""
    place = Place(Engine(engine), scheduler, workers, memory).settled(
        data, ("--out", out), rows=rows, query=query, encoding=encoding
    )
    target, voice = output_of(out), Voice(quiet=quiet)
    kinds = TABLE if place.in_memory else FOLDER
    check_outputs([("--out", target, kinds)], sources=[str(model), data])
    assert target is not None
    if not place.in_memory:
        _predict_parts(model, data, target, place, voice, key=key, missing=missing)
        return
    mixture, table = _open_both(
        model,
        data,
        target="optional",
        key=key,
        missing=missing,
        rows=rows,
        query=query,
        encoding=encoding or "utf-8",
    )
    from regimix.tables import write_labels

    labels = _labels(mixture, table)
    write_labels(target, table, mixture, labels=labels)
    for sentence in table.notes:
        voice.note(sentence)
    voice.answer(f"{out}: {count(table.n_rows, 'row')}{_assigned(table, labels)}.", whole=True)


def _predict_parts(
    model: Path, data: str, out: Path | str, place: Place, voice: Voice, **how: Any
) -> None:
    """Predict rows part by part, here or on a cluster."""
    from regimix import tables

    mixture, recipe = _open_model(model)
    try:
        with progress_bar(voice, None, lines=True) as bar:
            bar.stage("starting workers" if place.on_cluster else "reading")
            with place.opened(voice):
                opened = tables.scan_like(
                    data, recipe, target="optional", **how, **place.scanning()
                )
                bar.stage("predicting")
                files = tables.write_label_parts(out, opened, mixture, watch=bar.parts)
    except KeyboardInterrupt as error:
        raise Aborted(
            f"interrupted; files in {out} are whole, but not all are there. The same command "
            "writes them again."
        ) from error
    rows, dropped, outliers, unknown = (
        sum(getattr(file, name) for file in files)
        for name in ("n_rows", "n_dropped", "n_outliers", "n_unknown")
    )
    for note in (*opened.notes, *dropped_note(dropped, rows)):
        voice.note(note)
    said = f"; without the column {opened.target_name} regimes are {PREDICTED}"
    if any(reader.target is not None for reader in opened.part_readers):
        said = _counted(outliers, unknown, opened.target_name)
    where = f"{count(rows, 'row')} in {count(len(files), 'file')}"
    voice.answer(f"{out}: {where}{said}.", whole=True)


def report(
    model: Model,
    data: Data,
    out: Annotated[Path, of_command("FILE.html", "Where the report goes.", "--out", "-o")],
    title: Annotated[str | None, of_command("TEXT", "What the report is called.")] = None,
    key: Key = None,
    missing: Missing = "drop",
    rows: Rows = None,
    query: Query = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
) -> None:
    """Show a model and rows as one HTML page that needs no network."""
    check_outputs([("--out", out, REPORT)], sources=[str(model), data])
    mixture, table = _open_both(
        model,
        data,
        target="required",
        key=key,
        missing=missing,
        rows=rows,
        query=query,
        encoding=encoding or "utf-8",
    )
    from regimix.report import write
    from regimix.tables.write import gate_shares

    shares = gate_shares(mixture, table.X)
    write(out, mixture, table.X, table.y, keys=table.keys, shares=shares, title=title)
    voice = Voice(quiet=quiet)
    for sentence in table.notes:
        voice.note(sentence)
    voice.answer(f"{out}: a report on {count(table.n_rows, 'row')}.", whole=True)


def _open_both(model: Path, data: str, **how: Any) -> tuple[Mixture, DataSet]:
    """Open a model file, and read a table as the model's own was read."""
    from regimix import tables

    mixture, recipe = _open_model(model)
    return mixture, tables.read_like(data, recipe, **how)


def _open_model(model: Path) -> tuple[Mixture, Recipe]:
    """Open a model file; return also how columns become its features."""
    from regimix import store, tables

    opened = store.open_model(model)
    mixture = opened.mixture
    _refuse_foreign_gate(model, mixture)
    if opened.recipe is not None:
        return mixture, tables.Recipe.from_json(opened.recipe)
    # Saved from Python: its features are columns, as they are.
    columns = tuple(tables.Column(name) for name in mixture.feature_names)
    return mixture, tables.Recipe(mixture.target_name, columns)


def _refuse_foreign_gate(model: Path, mixture: Mixture) -> None:
    """Refuse a gate that asks for columns which a model file does not say how to read."""
    gate = mixture.gate
    if gate is not None and not gate.from_features:
        raise CommandError(
            f"{model} was fitted in Python with gating_features ({', '.join(gate.names)}): which "
            "regime is likely depends on these columns, which the command line cannot pass on. "
            "Use the model in Python, or fit it again with gating by its own features."
        )


def _labels(mixture: Mixture, table: DataSet) -> NDArray[np.int_] | None:
    """Return where rows belong; 0 for those without a target, which cannot be assigned."""
    if table.y is None:
        return None
    import numpy as np

    from regimix.tables.write import gate_shares

    known = np.isfinite(table.y)
    labels = np.zeros(table.n_rows, dtype=np.int64)
    if known.any():
        shares = gate_shares(mixture, table.X[known])
        labels[known] = mixture.assign(table.X[known], table.y[known], shares)
    return labels


def _assigned(table: DataSet, labels: NDArray[np.int_] | None) -> str:
    """Say how many rows are outliers, and how many could not be assigned."""
    if labels is None or table.y is None:
        return f"; without the column {table.target_name} regimes are {PREDICTED}"
    import numpy as np

    blank = int(np.count_nonzero(~np.isfinite(table.y)))
    if blank == table.n_rows:
        return f"; the column {table.target_name} is blank: regimes are {PREDICTED}"
    return _counted(int(np.count_nonzero(labels < 0)), blank, table.target_name)


def _counted(outliers: int, blank: int, target: str) -> str:
    where = "" if not blank else f"; {count(blank, 'row')} without {target}: {PREDICTED}"
    return f", {fixed(outliers, 0)} of them outlier{'s' * (outliers != 1)}{where}"
