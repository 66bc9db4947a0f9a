"""Tidy tables: a row per observation, a column per variable."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Row", "Table"]

Row = Mapping[str, Any]


class Table:
    """Rows with named columns.

    Parameters
    ----------
    rows : iterable of mappings from column names to numbers, strings or truth values
        A row may leave out columns that others have; they are None there.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: tuple[Row, ...] = tuple(rows)
        self.columns: tuple[str, ...] = tuple(
            dict.fromkeys(name for row in self.rows for name in row)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> NDArray[Any]:
        if column not in self.columns:
            raise KeyError(column)
        return np.array([row.get(column) for row in self.rows])

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return a column as numbers, truth values as 0 and 1."""
        return self[column].astype(np.float64)

    def where(self, **equal: Any) -> Table:
        """Keep the rows in which columns have the given values."""
        return Table(r for r in self.rows if all(r.get(k) == v for k, v in equal.items()))

    def groups(self, *by: str) -> list[tuple[tuple[Any, ...], Table]]:
        """Split by the values of some columns, in order of first appearance."""
        found: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows:
            found.setdefault(tuple(row.get(name) for name in by), []).append(row)
        return [(key, Table(rows)) for key, rows in found.items()]

    def mean(self, column: str, by: str | Sequence[str]) -> list[tuple[Any, float]]:
        """Average a column within the groups of others; keys of one column are not tuples."""
        names = (by,) if isinstance(by, str) else tuple(by)
        means = [(key, float(rows.numbers(column).mean())) for key, rows in self.groups(*names)]
        return [(key[0] if isinstance(by, str) else key, mean) for key, mean in means]

    def to_csv(self) -> str:
        """Write as comma separated values with a header."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()
