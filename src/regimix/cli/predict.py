"""``regimix predict``: a model meets rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regimix.cli.console import Voice
from regimix.cli.digits import many
from regimix.cli.failures import CommandError
from regimix.cli.options import Data, Encoding, Key, Missing, MissingRows, Model, Query, Quiet, Rows
from regimix.cli.outputs import TABLE, check_outputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    encoding: Encoding = "utf-8",
    quiet: Quiet = False,
) -> None:
    """Predict rows by each regime and, where the response is known, say where they belong."""
    check_outputs([("--out", out, TABLE)], sources=[str(model), data])
    mixture, table = open_both(
        model,
        data,
        target="optional",
        key=key,
        missing=missing.value,
        rows=rows,
        query=query,
        encoding=encoding,
    )
    from regimix.tables import write_labels

    labels = _labels(mixture, table)
    write_labels(out, table, mixture, labels=labels)
    voice = Voice(quiet=quiet)
    for sentence in table.notes:
        voice.note(sentence)
    voice.answer(f"{out}: {many(table.n_rows, 'row')}{_told(table, labels)}.", whole=True)


def open_both(model: Path, data: str, **how: Any) -> tuple[Mixture, DataSet]:
    """Open a model file, and read a table as the model's own was read."""
    from regimix import store, tables

    opened = store.open_model(model)
    mixture = opened.mixture
    _refuse_foreign_gate(model, mixture)
    if opened.recipe is None:
        # Saved from Python: its features are columns, as they are.
        columns = tuple(tables.Column(name) for name in mixture.feature_names)
        recipe = tables.Recipe(mixture.target_name, columns)
    else:
        recipe = tables.Recipe.from_json(opened.recipe)
    return mixture, tables.read_like(data, recipe, **how)


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
    """Return where rows belong; those without a target, which nobody knows, count as 0."""
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


def _told(table: DataSet, labels: NDArray[np.int_] | None) -> str:
    """Say how many rows are outliers, and how many nobody could assign."""
    predicted = "predicted, not assigned"
    if labels is None or table.y is None:
        return f"; without the column {table.target_name} regimes are {predicted}"
    import numpy as np

    blank = int(np.count_nonzero(~np.isfinite(table.y)))
    if blank == table.n_rows:
        return f"; the column {table.target_name} is blank: regimes are {predicted}"
    count = int(np.count_nonzero(labels < 0))
    where = "" if not blank else f"; {many(blank, 'row')} without {table.target_name}: {predicted}"
    return f", {count} of them outlier{'s' * (count != 1)}{where}"
