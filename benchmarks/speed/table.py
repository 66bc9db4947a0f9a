"""One table for all comparisons: for the terminal, as Markdown, and as JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HEADER = ("what", "regimix", "compared with", "its figure", "ratio", "target", "met")
NAMES = (0, 2)  # columns of words, aligned to the left; the others hold figures


@dataclass(frozen=True)
class Target:
    """A bound on a ratio; ``slack`` forgives rounding only."""

    bound: float
    at_least: bool
    slack: float = 0.0

    def met(self, ratio: float) -> bool:
        if self.at_least:
            return ratio >= self.bound - self.slack
        return ratio <= self.bound + self.slack

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


@dataclass(frozen=True)
class Row:
    """One line of the table; a ratio of None stands for a peer that is missing."""

    what: str
    ours: str
    against: str
    theirs: str
    ratio: float | None = None
    target: Target | None = None
    digits: int = 4

    def cells(self, judged: bool) -> tuple[str, ...]:
        met = ""
        if judged and self.target is not None and self.ratio is not None:
            met = "yes" if self.target.met(self.ratio) else "no"
        ratio = "–" if self.ratio is None else f"{self.ratio:.{self.digits}g}"
        target = "" if self.target is None else str(self.target)
        return (self.what, self.ours, self.against, self.theirs, ratio, target, met)


@dataclass(frozen=True)
class Comparison:
    """What one comparison found: lines of the table, remarks below it, raw numbers, settings."""

    rows: Sequence[Row]
    remarks: Sequence[str] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


def grid(header: Sequence[str], lines: Sequence[Sequence[str]], names: Sequence[int] = (0,)) -> str:
    """Align cells so that the Markdown is readable as it stands; ``names`` go to the left."""
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]

    def align(cells: Sequence[str]) -> list[str]:
        return [
            cell.ljust(width) if column in names else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]

    rule = [
        "-" * width if column in names else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return "\n".join(
        f"| {' | '.join(cells)} |" for cells in [align(header), rule, *map(align, lines)]
    )


def markdown(results: Mapping[str, Comparison], run: Mapping[str, Any]) -> str:
    """Write the table, the remarks, and where it was measured."""
    rows = [row for result in results.values() for row in result.rows]
    cells = [row.cells(judged=not run["quick"]) for row in rows]
    parts = [
        grid(HEADER, cells, NAMES),
        f"Medians; rounds after a discarded warm-up: {run['repeats']}, contestants taking turns.",
    ]
    if run["quick"]:
        parts.append("Reduced sizes (`--quick`): a trial of the benchmark, not a measurement.")
    parts += [remark for result in results.values() for remark in result.remarks]
    machine = "; ".join(f"{name}: {value}" for name, value in run["machine"].items())
    return "\n\n".join([*parts, f"Measured with {machine}."]) + "\n"


def write(
    folder: Path, text: str, results: Mapping[str, Comparison], run: Mapping[str, Any]
) -> None:
    """Write ``speed.md`` and ``speed.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "speed.md").write_text(text, encoding="utf-8")
    content = {**run, "comparisons": {name: asdict(result) for name, result in results.items()}}
    (folder / "speed.json").write_text(
        json.dumps(_finite(content), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _finite(value: Any) -> Any:
    """Replace infinities, which JSON does not know, by None."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
