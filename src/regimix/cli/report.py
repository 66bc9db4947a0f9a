"""``regimix report``: a model and its rows as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regimix.cli.console import Voice
from regimix.cli.digits import many
from regimix.cli.options import Data, Encoding, Key, Missing, MissingRows, Model, Query, Quiet, Rows
from regimix.cli.outputs import REPORT, check_outputs
from regimix.cli.predict import open_both

__all__ = ["report"]


def report(
    model: Model,
    data: Data,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE.html", help="Where the report goes."),
    ],
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What the report is called.", show_default=False),
    ] = None,
    key: Key = None,
    missing: MissingRows = Missing.DROP,
    rows: Rows = None,
    query: Query = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
) -> None:
    """Show a model and rows as one HTML page that needs no network."""
    check_outputs([("--out", out, REPORT)], sources=[str(model), data])
    mixture, table = open_both(
        model,
        data,
        target="required",
        key=key,
        missing=missing.value,
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
    voice.answer(f"{out}: a report on {many(table.n_rows, 'row')}.", whole=True)
