"""What a part of the benchmark is: work on one table, and lines that sum up all of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.real.tables import Table

Row = dict[str, Any]
# What a row says instead of figures if a fit broke.
BROKEN = "broken"


@dataclass(frozen=True)
class Effort:
    """How much is tried on each table."""

    seeds: int = 10
    searches: int = 50
    permutations: int = 5
    planted: int = 2
    starts: int = 100


@dataclass(frozen=True)
class Line:
    """A figure beside its target; ``met`` is None where there is none to meet."""

    what: str
    figure: str
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True)
class Part:
    """One question: ``work`` answers it for a table, ``sum_up`` for all, ``columns`` are shown.

    ``tables`` are those of a question that is asked of some only; ``shown`` makes the rows of the
    page where there would be too many.
    """

    title: str
    about: str
    work: Callable[[Table, Effort], list[Row]]
    sum_up: Callable[[Sequence[Row]], list[Line]]
    columns: Mapping[str, str]
    suits: Callable[[Table], bool] = lambda _: True
    tables: tuple[str, ...] = ()
    shown: Callable[[Sequence[Row]], Sequence[Row]] = list


def lines_of(part: Part, rows: Sequence[Row]) -> list[Line]:
    """Sum up the tables on which the part ran through; and say if there are others."""
    whole = [row for row in rows if BROKEN not in row]
    broken = [row["table"] for row in rows if BROKEN in row]
    lines = part.sum_up(whole) if whole else []
    if broken:
        lines.append(Line("tables on which a fit broke", ", ".join(broken), "none", False))
    return lines


def at_most(what: str, value: float, target: float) -> Line:
    """Judge a share that must not be larger."""
    return Line(what, percent(value), f"≤ {percent(target)}", _known(value, value <= target))


def at_least(what: str, value: float, target: float) -> Line:
    """Judge a share that must not be smaller."""
    return Line(what, percent(value), f"≥ {percent(target)}", _known(value, value >= target))


def _known(value: float, met: bool) -> bool | None:
    return None if math.isnan(value) else met


def percent(value: float) -> str:
    return "not known" if math.isnan(value) else f"{100 * value:.3g} %"


def described(rows: Sequence[Row], key: str) -> list[float]:
    """Collect a figure from the rows that have it."""
    return [row[key] for row in rows if row.get(key) is not None]
