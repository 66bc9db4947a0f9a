"""``regimix demo``: the main job on bundled data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regimix.cli.console import Voice
from regimix.cli.outputs import REPORT, check_outputs
from regimix.cli.work import Files, Look, fit_and_tell

if TYPE_CHECKING:
    from regimix.tables import DataSet

__all__ = ["demo"]


def demo(
    report: Annotated[
        Path, typer.Option("--report", "-o", metavar="FILE.html", help="Where the report goes.")
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
    code = fit_and_tell(_tone, {"random_state": 0}, files, look, voice)
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
