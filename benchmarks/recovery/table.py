"""The page: targets first, then success and cost suite by suite, as Markdown and as JSON."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.recovery.cells import SUITES, Cell
from benchmarks.recovery.contestants import TOLD
from benchmarks.recovery.summary import Figures, Summary
from benchmarks.recovery.targets import Line
from benchmarks.speed.race import duration
from benchmarks.speed.table import grid

OURS = "regimix"
Show = Callable[[Figures], str]


def success(figures: Figures) -> str:
    return f"{figures.success:.2f}"


def right_count(figures: Figures) -> str:
    return f"{figures.right_count:.2f}"


def cost(figures: Figures) -> str:
    return f"{duration(figures.seconds)} ({figures.fits:,.0f})"


def ratio(figures: Figures) -> str:
    return "lost one" if figures.ratio is None else f"{figures.ratio:.3f}"


def markdown(
    summary: Summary, lines: Sequence[Line], pictures: Sequence[str], run: Mapping[str, Any]
) -> str:
    """Write the page."""
    parts = []
    if lines:
        parts += ["## Targets", _targets(lines)]
    parts += [_told(summary)]
    parts += [f"![Success as one thing changes]({picture})" for picture in pictures]
    for suite, cells in summary.items():
        parts += _suite(suite, cells)
    machine = "; ".join(f"{name}: {value}" for name, value in run["machine"].items())
    parts.append(f"Measured with {machine}; each run on one thread, {run['jobs']} side by side.")
    if len(run["code"]) > 1:
        parts.append(f"The runs are of {len(run['code'])} versions of the library's code.")
    return "\n\n".join(parts) + "\n"


def write(
    folder: Path, text: str, summary: Summary, lines: Sequence[Line], run: Mapping[str, Any]
) -> None:
    """Write ``recovery.md`` and ``recovery.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recovery.md").write_text(text, encoding="utf-8")
    content = {
        **run,
        "targets": [{**asdict(line), "met": line.met} for line in lines],
        "suites": {
            suite: {
                cell: {name: asdict(figures) for name, figures in by_name.items()}
                for cell, by_name in cells.items()
            }
            for suite, cells in summary.items()
        },
    }
    (folder / "recovery.json").write_text(
        json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _targets(lines: Sequence[Line]) -> str:
    cells = [
        [
            line.what,
            f"{line.reached:.4g}",
            str(line.target),
            "yes" if line.met else "**no**",
            str(line.runs),
            line.remark,
        ]
        for line in lines
    ]
    return grid(["what", "reached", "target", "met", "runs", "remark"], cells, (0, 5))


def _told(summary: Summary) -> str:
    """Say who took part and what each is told."""
    names = {n for cells in summary.values() for figures in cells.values() for n in figures}
    lines = [f"| {name} | {told} |" for name, told in TOLD.items() if name in names]
    absent = [name for name in TOLD if name not in names]
    text = "\n".join(["| contestant | is told |", "| --- | --- |", *lines])
    return text + (f"\n\nNot run: {', '.join(absent)}." if absent else "")


def _suite(name: str, cells: Mapping[str, Mapping[str, Figures]]) -> list[str]:
    suite = SUITES[name]
    runs = sorted({f.runs for figures in cells.values() for f in figures.values()})
    span = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    parts = [f"## {suite.title}", f"`--suite {name}`; runs a cell: {span}."]
    contestants = [c for c in suite.contestants if any(c in figures for figures in cells.values())]
    shown = [cell for cell in suite.cells if cell.name in cells]
    if shown[0].column:
        for contestant in contestants:
            parts += _pivoted(shown, cells, contestant)
        return parts
    parts += ["Success:", _by_contestant(shown, cells, contestants, success)]
    if name == "efficiency":
        what = (
            "Worst error over that of least squares told the labels, median (the oracle start may "
            "stay nearer to the truth it began from than any estimate from the data):"
        )
        parts += [what, _by_contestant(shown, cells, contestants, ratio)]
    parts += ["Right number of components:", _by_contestant(shown, cells, contestants, right_count)]
    what = "Median seconds, in brackets in units of one least squares fit:"
    return [*parts, what, _by_contestant(shown, cells, contestants, cost)]


def _by_contestant(
    shown: Sequence[Cell],
    cells: Mapping[str, Mapping[str, Figures]],
    contestants: Sequence[str],
    show: Show,
) -> str:
    """Write a table with a row per cell and a column per contestant."""
    rows = []
    for cell in shown:
        found = cells[cell.name]
        rows.append([cell.name, *(show(found[c]) if c in found else "–" for c in contestants)])
    return grid(["cell", *contestants], rows)


def _pivoted(
    shown: Sequence[Cell], cells: Mapping[str, Mapping[str, Figures]], contestant: str
) -> list[str]:
    """Write tables with several cells a row."""
    columns = list(dict.fromkeys(cell.column for cell in shown))
    groups = list(dict.fromkeys(cell.group for cell in shown))
    place = {(cell.group, cell.column): cells[cell.name].get(contestant) for cell in shown}

    def one(what: str, show: Show) -> list[str]:
        rows = [
            [group, *("–" if (f := place.get((group, c))) is None else show(f) for c in columns)]
            for group in groups
        ]
        return [f"{contestant}: {what}", grid(["cell", *columns], rows)]

    parts = one("success", success)
    if contestant == OURS:
        parts += one("right number of components", right_count)
        parts += one("median seconds (least squares fits)", cost)
    return parts
