"""What an experiment is: parameters, a measurement, a check that can fail, a figure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lab.table import Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Cell", "Experiment", "Grid", "Size", "Verdict"]

Size = Literal["quick", "full"]
Cell = Mapping[str, Any]
# Every combination of the values is a cell.
Grid = Mapping[str, Sequence[Any]]
Measure = Callable[[Cell, np.random.Generator, bool], list[Row]]


@dataclass(frozen=True)
class Verdict:
    """The result of a check.

    Attributes
    ----------
    verdict : {"holds", "refuted"}
    value, threshold : float
        The number that decides, and what it was held against.
    words : str
        What was seen, with its numbers.
    numbers : dict of str to float
        Everything else that was measured on the way.
    """

    verdict: Literal["holds", "refuted"]
    value: float
    threshold: float
    words: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether the statement stands."""
        return self.verdict == "holds"

    @classmethod
    def of(cls, holds: Any, value: Any, threshold: Any, words: str, **numbers: Any) -> Verdict:
        """Make a verdict from the outcome of a comparison."""
        return cls(
            "holds" if holds else "refuted",
            float(value),
            float(threshold),
            words,
            {name: float(number) for name, number in numbers.items()},
        )


@dataclass(frozen=True)
class Experiment:
    """One claim of the paper as an experiment.

    Attributes
    ----------
    name, title : str
        How it is called, and what it shows in one line.
    claim : str
        The statement of the paper, with its label.
    statement, tolerance : str
        What is checked, and how exactly.
    sabotage : str
        What ``broken=True`` does so that the check must fail.
    quick, full : sequence of Grid
        Parameters of each size: the cells are all combinations within each grid.
    measure : callable
        From a cell, a source of randomness and whether to sabotage to rows of the table.
    check : callable
        From the table to a verdict.
    draw : callable
        From the table to a figure, drawn into an empty one.
    version : int
        Raised when the measurement changes: older finished cells are then measured again.
    repeats : mapping of size to int
        How many times each cell is measured, with seeds of its own.
    """

    name: str
    title: str
    claim: str
    statement: str
    tolerance: str
    sabotage: str
    quick: Sequence[Grid]
    full: Sequence[Grid]
    measure: Measure
    check: Callable[[Table], Verdict]
    draw: Callable[[Table, Figure], None]
    version: int = 1
    repeats: Mapping[Size, int] = field(default_factory=lambda: {"quick": 3, "full": 10})

    def cells(self, size: Size) -> list[Cell]:
        """List the cells of a size, repeats included; a cell of two grids is listed once."""
        found: dict[str, Cell] = {}
        for repeat in range(self.repeats[size]):
            for grid in self.quick if size == "quick" else self.full:
                for values in product(*grid.values()):
                    cell = {**dict(zip(grid, values, strict=True)), "repeat": repeat}
                    found[json.dumps(cell, sort_keys=True)] = cell
        return list(found.values())

    def key(self, cell: Cell, seed: int, broken: bool) -> str:
        """Name a measurement: equal names are equal measurements."""
        parts = {"version": self.version, "seed": seed, "broken": broken, **cell}
        return json.dumps(parts, sort_keys=True)

    def generator(self, cell: Cell, seed: int) -> np.random.Generator:
        """Return a cell's own source of randomness, whatever else is measured."""
        text = f"{self.name} {seed} {json.dumps(cell, sort_keys=True)}"
        digest = hashlib.sha256(text.encode()).digest()
        return np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))
