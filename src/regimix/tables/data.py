"""DataSet: the numbers of a table, ready for a fit, and how they came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.tables.recipe import Recipe

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DataSet"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Numbers of a table, and how they came about.

    Attributes
    ----------
    X : ndarray of shape (n, d), float64, C-contiguous
    y : ndarray of shape (n,) or None
        None: the table has no target, and none was needed. Where none was needed but the column
        is there, rows without a value are not finite.
    weights : ndarray of shape (n,) or None
    feature_names : tuple of str
        Names of the columns of X; a text column gives several, "column=level".
    target_name : str
    keys : ndarray of shape (n,), int64 or object (str)
        What finds a row again: the values of the key column, or else the number of the row in what
        was read, from 1, the header not counted.
    key_name : str
        Name of the key column; "row" for row numbers.
    n_read, n_dropped : int
        Rows that were read, and those left out because a value that is needed is missing. (The
        rows that a sample leaves out are in neither of ``n_dropped`` and ``X``.)
    notes : tuple of str
        Sentences worth reading: what was encoded, left out, dropped, and why.
    recipe : Recipe
        How columns became numbers; ``read_like`` does the same to new data.
    source : str
        Where the rows came from; holds no password.
    """

    X: Floats
    y: Floats | None
    weights: Floats | None
    feature_names: tuple[str, ...]
    target_name: str
    keys: NDArray[Any]
    key_name: str
    n_read: int
    n_dropped: int
    notes: tuple[str, ...]
    recipe: Recipe
    source: str

    @property
    def n_rows(self) -> int:
        """Rows of X."""
        return int(self.X.shape[0])

    def frame(self) -> pl.DataFrame:
        """Return X as a polars frame with the names of its columns, as estimators like it."""
        import polars as pl

        return pl.DataFrame(self.X, schema=list(self.feature_names), orient="row")

    def target(self) -> pl.Series | None:
        """Return y as a polars series with the name of the target."""
        import polars as pl

        return None if self.y is None else pl.Series(self.target_name, self.y)
