"""Tidy tables, and the exponents and crossings that are read off them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Row", "Table", "crossing", "least", "power_law", "slope"]

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


def power_law(response: ArrayLike, *factors: ArrayLike) -> tuple[float, ...]:
    """Fit ``response = c * factor_1^a * factor_2^b ...`` on logarithms; return a, b, ...

    >>> import numpy as np
    >>> n, d = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0])
    >>> tuple(round(exponent, 6) for exponent in power_law(7 * n * d**2, n, d))
    (1.0, 2.0)
    """
    columns = [np.log(np.asarray(factor, dtype=np.float64)) for factor in factors]
    design = np.column_stack([np.ones_like(columns[0]), *columns])
    answer = np.linalg.lstsq(design, np.log(np.asarray(response, dtype=np.float64)), rcond=None)[0]
    return tuple(float(exponent) for exponent in answer[1:])


def slope(response: ArrayLike, factor: ArrayLike) -> float:
    """Fit one exponent; not a number where there are fewer than two different factors."""
    x, y = np.asarray(factor, dtype=np.float64), np.asarray(response, dtype=np.float64)
    if np.unique(x).size < 2:
        return float("nan")
    return power_law(y, x)[0]


def crossing(levels: Sequence[float], shares: Sequence[float], share: float = 0.5) -> float:
    """Find where a share of successes crosses a value, between neighbours on a log scale.

    Where chance makes it cross several times, the crossing next to success counts: the first of
    shares that fall along the levels, the last of shares that rise. Not a number where there is
    none.

    >>> round(crossing([1, 2, 4, 8], [0, 0, 1, 1]) ** 2, 6)
    8.0
    """
    order = np.argsort(levels)
    x, above = np.asarray(levels, dtype=np.float64)[order], np.asarray(shares)[order] - share
    turns = np.flatnonzero((above[:-1] < 0) != (above[1:] < 0))
    if not turns.size:
        return float("nan")
    i = int(turns[0] if above[0] >= 0 else turns[-1])
    part = above[i] / (above[i] - above[i + 1])
    return float(np.exp((1 - part) * np.log(x[i]) + part * np.log(x[i + 1])))


def least(values: Iterable[float]) -> float:
    """Return the smallest of the numbers that are numbers; not a number if none is."""
    return min((value for value in values if np.isfinite(value)), default=float("nan"))
