"""From the lines on file to one set of figures for each cell and contestant."""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.recovery.cells import SUITES, Cell, Suite
from benchmarks.recovery.run import Archive, Line


@dataclass(frozen=True)
class Figures:
    """Rates and medians over the runs of one contestant in one cell."""

    runs: int
    success: float
    right_count: float
    seconds: float
    fits: float  # seconds in units of one least squares fit
    ratio: float | None  # worst error over that of least squares told the labels
    restarts: float | None  # starts used, for those that count them


# By suite, cell and contestant; what has not run is absent.
Summary = Mapping[str, Mapping[str, Mapping[str, Figures]]]


def summarise(archive: Archive, seeds: range | None) -> Summary:
    """Collect every suite that has runs on file; ``seeds`` of None means each suite's own."""
    found = {}
    for name, suite in SUITES.items():
        wanted = range(suite.runs) if seeds is None else seeds
        cells = {cell.name: _contestants(archive, suite, cell, wanted) for cell in suite.cells}
        if any(cells.values()):
            found[name] = {cell: figures for cell, figures in cells.items() if figures}
    return found


def _contestants(archive: Archive, suite: Suite, cell: Cell, seeds: range) -> dict[str, Figures]:
    figures = {}
    for name in suite.contestants:
        keys = [(cell.name, name, seed) for seed in seeds]
        lines = [archive.lines[key] for key in keys if key in archive.lines]
        if lines:
            figures[name] = _figures(lines)
    return figures


def _figures(lines: list[Line]) -> Figures:
    starts = [_starts(line["note"]) for line in lines]
    ratios = [float("inf") if line["ratio"] is None else line["ratio"] for line in lines]
    ratio = statistics.median(ratios)
    return Figures(
        runs=len(lines),
        success=_mean(line["success"] for line in lines),
        right_count=_mean(line["right_count"] for line in lines),
        seconds=statistics.median(line["seconds"] for line in lines),
        fits=statistics.median(line["fits"] for line in lines),
        ratio=ratio if ratio < float("inf") else None,
        restarts=None if None in starts else statistics.median(starts),
    )


def _mean(values: Iterable[bool]) -> float:
    return statistics.fmean(map(float, values))


def _starts(note: str) -> int | None:
    number, _, unit = note.partition(" ")
    return int(number) if unit == "starts" else None
