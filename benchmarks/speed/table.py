"""One table for all comparisons, and below it what each has to say, as Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    """One line of the table; a ratio of None stands for a peer that is missing.

    A ``fault`` (a wrong answer) is told instead of whether the target is met.
    """

    what: str
    ours: str
    against: str
    theirs: str
    ratio: float | None = None
    target: Target | None = None
    digits: int = 4
    fault: str = ""

    def met(self) -> str:
        if self.fault:
            return self.fault
        if self.target is None or self.ratio is None:
            return ""
        return "yes" if self.target.met(self.ratio) else "no"

    def cells(self, judged: bool) -> tuple[str, ...]:
        met = self.met() if judged or self.fault else ""
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


@dataclass(frozen=True)
class Measured:
    """When and with what a comparison was measured."""

    date: str
    commit: str
    repeats: int
    quick: bool
    machine: Mapping[str, str]

    def __str__(self) -> str:
        what = "; ".join(f"{name}: {value}" for name, value in self.machine.items())
        return f"{self.date[:10]}, {self.commit}; rounds: {self.repeats}; {what}"


@dataclass(frozen=True)
class Entry:
    """A comparison on file."""

    comparison: Comparison
    measured: Measured


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


def markdown(entries: Mapping[str, Entry], pictures: Mapping[str, str]) -> str:
    """Write the table, the pictures (title by file), the remarks, and what was measured when."""
    cells = [
        row.cells(judged=not entry.measured.quick)
        for entry in entries.values()
        for row in entry.comparison.rows
    ]
    parts = [
        grid(HEADER, cells, NAMES),
        "Medians of rounds after a discarded warm-up, contestants taking turns within a round.",
    ]
    if any(entry.measured.quick for entry in entries.values()):
        parts.append("Reduced sizes (`--quick`): a trial of the benchmark, not a measurement.")
    parts += [f"![{title}]({file})" for file, title in pictures.items()]
    for name, entry in entries.items():
        if entry.comparison.remarks:
            parts += [f"### {name}", *entry.comparison.remarks]
    return "\n\n".join([*parts, *_measured(entries)]) + "\n"


def _measured(entries: Mapping[str, Entry]) -> list[str]:
    """Say when and where, once for all that were measured alike."""
    alike: dict[str, list[str]] = {}
    for name, entry in entries.items():
        alike.setdefault(str(entry.measured), []).append(name)
    lines = [f"- {', '.join(names)}: {where}" for where, names in alike.items()]
    return ["### Measured", "\n".join(lines)]
