"""A table in parts and what a fit made of it, told like a table in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture
    from regimix.tables import DataSet, ParquetTable, Recipe

__all__ = ["Scanned", "Seen", "dropped_note", "seen_rows"]


@dataclass(frozen=True, eq=False)
class Scanned:
    """A table in parts after its fit.

    Attributes
    ----------
    table : ParquetTable
    labels : array or dask array
        Of the rows that were used.
    n_rows : int
        How many those are.
    """

    table: ParquetTable
    labels: Any
    n_rows: int

    @property
    def source(self) -> str:
        """Where the rows are."""
        return self.table.source

    @property
    def target_name(self) -> str:
        """The column that is explained."""
        return self.table.target_name

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns that explain it."""
        return self.table.names

    @property
    def recipe(self) -> Recipe:
        """How columns became numbers."""
        return self.table.recipe

    @property
    def n_read(self) -> int:
        """Rows of all files."""
        return self.table.n_read

    @property
    def n_dropped(self) -> int:
        """Rows that could not be used."""
        return self.n_read - self.n_rows

    @property
    def key_name(self) -> str:
        """What names rows: where some were dropped, the others are counted anew."""
        return "row used" if self.n_dropped else "row"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences worth reading."""
        return (*self.table.notes, *dropped_note(self.n_dropped, self.n_read))


def dropped_note(n_dropped: int, n_read: int) -> list[str]:
    """Say how many rows were dropped, if any."""
    if not n_dropped:
        return []
    return [f"{n_dropped} of {n_read} rows have a missing or infinite value and are dropped."]


@dataclass(frozen=True, eq=False)
class Seen:
    """Rows that can be looked at one by one; ``among`` says so if they are not all."""

    X: Any
    y: Any
    labels: Any
    keys: Any
    among: str = ""


def seen_rows(mixture: Mixture, data: DataSet | Scanned) -> Seen | None:
    """Return all rows of a table in memory, and of others those that the mixture remembers."""
    if not isinstance(data, Scanned):
        return None if data.y is None else Seen(data.X, data.y, mixture.labels, data.keys)
    excerpt = mixture.excerpt
    if excerpt is None:
        return None
    among = "" if excerpt.complete else " of a sample"
    return Seen(excerpt.X, excerpt.y, excerpt.labels, excerpt.numbers + 1, among)
