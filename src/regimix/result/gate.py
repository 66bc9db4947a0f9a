"""Gate: shares of the components that differ from row to row, learnt from its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from regimix.data.validation import Table, chunks
from regimix.errors import DataError

__all__ = ["Gate", "read_columns", "scale_columns"]

Floats = NDArray[np.float64]

# A value this many deviations from the middle of its column says all that a larger one could.
FARTHEST = 10.0


@dataclass(frozen=True, eq=False)
class Gate:
    """Multinomial logistic regression of the regime on columns of the table, as plain arrays.

    A row of columns z belongs to component j, given that it is no outlier, with a probability
    proportional to ``exp(coef[j] @ (z - center) / scale + intercept[j])``; scaled values beyond
    ``FARTHEST`` count as if they lay there.

    Attributes
    ----------
    coef, intercept : ndarray of shape (m, q), (m,)
        Of scaled columns. A component that none of the rows belonged to has the intercept minus
        infinity: its share is zero.
    center, scale : ndarray of shape (q,)
        Location and spread of the columns.
    names : tuple of str
        Names of the columns; x0, x1, ... where they had none.
    from_features : bool
        Whether the columns are those of X; otherwise they were passed as ``gating_features``.
    """

    coef: Floats
    intercept: Floats
    center: Floats
    scale: Floats
    names: tuple[str, ...]
    from_features: bool = True

    @property
    def n_components(self) -> int:
        """Number of components."""
        return int(self.intercept.size)

    @property
    def n_parameters(self) -> int:
        """Numbers that were learnt beyond those of constant shares: a slope a column and odds."""
        return (self.n_components - 1) * len(self.names)

    def shares(self, Z: Any) -> Floats:
        """Return the shares of the components among the rows like each row, (n, m); sums are one.

        Parameters
        ----------
        Z : array or data frame of shape (n, q)
            The columns that the gate was learnt from.
        """
        values = self._read(Z)
        shares = np.empty((values.shape[0], self.n_components))
        for rows in chunks(*values.shape):
            scaled = scale_columns(values[rows], self.center, self.scale)
            shares[rows] = softmax(scaled @ self.coef.T + self.intercept, axis=1)
        return shares

    def _read(self, Z: Any) -> NDArray[Any]:
        """Check columns of rows that may be new."""
        what = "X" if self.from_features else "gating_features"
        table = read_columns(Z, what)
        known = self.names
        if len(table.names) != len(known):
            raise DataError(
                f"{what} has {len(table.names)} column(s), but {len(known)} in the fit; pass the "
                "same columns in the same order."
            )
        # Columns without names are called x0, x1, ...: those say nothing.
        unnamed = tuple(f"x{i}" for i in range(len(known)))
        if table.names != known and unnamed not in (table.names, known):
            i = next(i for i, name in enumerate(known) if table.names[i] != name)
            raise DataError(
                f"column {i} of {what} is {table.names[i]!r}, but {known[i]!r} in the fit; pass "
                "the same columns in the same order."
            )
        return table.values


def scale_columns(values: NDArray[Any], center: Floats, scale: Floats) -> Floats:
    """Bring columns to a common unit, and values that are far out to the edge."""
    scaled = (values.astype(np.float64) - center) / scale
    return np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)


def read_columns(Z: Any, what: str) -> Table:
    """Read columns to learn a gate from, or to apply it to; messages say which argument it was."""
    try:
        table = Table.read(Z, fewest_rows=1)
        table.extent()
    except DataError as error:
        raise error if what == "X" else type(error)(f"{what}: {error}") from error
    return table
