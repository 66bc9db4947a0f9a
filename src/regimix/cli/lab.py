"""``regimix lab``: the paper's claims, measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from regimix.cli.console import Code, Voice
from regimix.cli.options import PlainCommand, PlainGroup, Quiet, Seed

if TYPE_CHECKING:
    from regimix.lab import Outcome

__all__ = ["lab"]

lab = typer.Typer(cls=PlainGroup, help="Measure what the paper claims.", no_args_is_help=True)


@lab.command("list", cls=PlainCommand)
def list_experiments() -> None:
    """List the experiments."""
    from regimix.lab import EXPERIMENTS

    voice = Voice()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("name", "what it shows", "claim"):
        table.add_column(head, overflow="fold")
    for experiment in EXPERIMENTS.values():
        words = (experiment.name, experiment.title, experiment.claim)
        table.add_row(*(voice.clean(word) for word in words))
    voice.answer(table)


@lab.command(cls=PlainCommand)
def run(
    name: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="As lab list names them; or all.")
    ],
    full: Annotated[
        bool, typer.Option("--full/--quick", help="Minutes or seconds for each experiment.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where tables and figures go.")
    ] = Path("lab"),
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Run experiments: each leaves a table, a figure and a verdict in a folder."""
    from regimix import lab as laboratory

    voice = Voice(quiet=quiet)
    with _bar(voice) as tell:
        outcomes = laboratory.run(
            name, size="full" if full else "quick", out=out, seed=seed, progress=tell
        )
    voice.answer(_verdicts(outcomes, voice))
    voice.note(f"Tables, figures and verdicts are in {out}")
    refuted = any(outcome.verdict.verdict != "holds" for outcome in outcomes)
    raise typer.Exit(Code.INCOMPLETE if refuted else Code.DONE)


@contextmanager
def _bar(voice: Voice) -> Iterator[Callable[[str, int, int], None]]:
    """Show how many cells are measured, on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn())
    silent = voice.quiet or not voice.err.is_terminal
    with Progress(*columns, console=voice.err, transient=True, disable=silent) as bar:
        task = bar.add_task("preparing", total=None)
        yield lambda name, done, total: bar.update(
            task, description=name, completed=done, total=total
        )


def _verdicts(outcomes: Sequence[Outcome], voice: Voice) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for head in ("experiment", "verdict", "what was seen"):
        table.add_column(head, overflow="fold")
    for outcome in outcomes:
        verdict = outcome.verdict
        style = "green" if verdict.verdict == "holds" else "bold red"
        table.add_row(outcome.name, Text(verdict.verdict, style), voice.clean(verdict.words))
    return table
