"""``regimix predict``: a model meets rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regimix.cli.console import Voice
from regimix.cli.options import Data, Key, Missing, MissingRows, Model, Query, Quiet, Rows
from regimix.cli.outputs import TABLE, check_outputs

if TYPE_CHECKING:
    from regimix.mixture.result import Mixture
    from regimix.tables import DataSet

__all__ = ["open_both", "predict"]


def predict(
    model: Model,
    data: Data,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where the predictions go: .csv, .tsv, .parquet, ...",
        ),
    ],
    key: Key = None,
    missing: MissingRows = Missing.DROP,
    rows: Rows = None,
    query: Query = None,
    quiet: Quiet = False,
) -> None:
    """Predict rows by each regime and, where the response is known, say where they belong."""
    check_outputs([("--out", out, TABLE)], sources=[str(model), data])
    mixture, table = open_both(
        model, data, target="optional", key=key, missing=missing.value, rows=rows, query=query
    )
    from regimix.tables import write_labels

    write_labels(out, table, mixture)
    voice = Voice(quiet=quiet)
    for sentence in table.notes:
        voice.note(sentence)
    voice.answer(f"{out}: {table.n_rows} rows{_outliers(mixture, table)}.", whole=True)


def open_both(model: Path, data: str, **how: Any) -> tuple[Mixture, DataSet]:
    """Open a model file, and read a table as the model's own was read."""
    from regimix import store, tables

    opened = store.open_model(model)
    mixture = opened.mixture
    if opened.recipe is None:
        # Saved from Python: its features are columns, as they are.
        columns = tuple(tables.Column(name) for name in mixture.feature_names)
        recipe = tables.Recipe(mixture.target_name, columns)
    else:
        recipe = tables.Recipe.from_json(opened.recipe)
    return mixture, tables.read_like(data, recipe, **how)


def _outliers(mixture: Mixture, table: DataSet) -> str:
    if table.y is None:
        return f"; without the column {table.target_name} regimes are predicted, not assigned"
    count = int((mixture.assign(table.X, table.y) < 0).sum())
    return f", {count} of them outlier{'s' * (count != 1)}"
