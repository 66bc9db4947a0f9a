"""Gates: shares of the regimes that differ from row to row, learnt from columns, as plain arrays.

A gate holds numbers alone, so that a model file can hold it: coefficients of a logistic regression,
or the nodes of trees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from regimix.data.cells import FrameCells
from regimix.data.encoding import Encoder
from regimix.data.recipe import Column
from regimix.data.validation import Table, check_names, chunks, is_frame, read_names
from regimix.errors import DataError
from regimix.words import listing, percent

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# A value this many deviations from the middle of its column says all that a larger one could.
FARTHEST = 10.0
# Trees compare single precision, which is to hold every value.
FARTHEST_IN_TREES = 1e30
# Rows that go through a tree side by side: a few arrays of them fit the cache.
TREE_CHUNK = 8192
# Columns that a sentence names.
MOST_NAMED = 6
# Nodes between the root of a tree and a leaf; trees that are learnt here have fewer.
DEEPEST = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnGate(ABC):
    """Shares of the regimes as a function of columns of the table.

    Attributes
    ----------
    center, scale : ndarray of shape (q,)
        Location and spread of the columns.
    names : tuple of str
        Names of the columns as numbers; x0, x1, ... where they had none.
    from_features : bool
        Whether the columns are those of X; otherwise they were passed as ``gating_features``.
    columns : tuple of Column
        How columns of a data frame became these numbers; empty: they were numbers.
    average : ndarray of shape (m,) or None
        Averages of the shares over the rows that the gate was learnt from, and the shares of rows
        in which a column is missing.
    hit_rate : float
        How often the likeliest regime was that of the row, among the rows that the gate was learnt
        from and that follow one. Rows count for each regime by their probabilities before the
        gating, which would confirm itself.
    """

    center: Floats
    scale: Floats
    names: tuple[str, ...]
    from_features: bool = True
    columns: tuple[Column, ...] = ()
    average: Floats | None = None
    hit_rate: float = np.nan

    @property
    @abstractmethod
    def n_components(self) -> int:
        """Number of components."""

    @property
    def kind(self) -> str:
        """What learnt it: "logistic" or "trees"."""
        return "logistic" if isinstance(self, Gate) else "trees"

    @property
    def describe(self) -> str:
        """Which columns predict the regime, and how well, in a sentence."""
        return self.told()

    def told(self, largest: float = np.nan) -> str:
        """Say the same beside how often the largest regime alone would be right, if that is known.

        Parameters
        ----------
        largest : float, optional
            The share of the largest regime before the gating, among the rows that are no outliers.
        """
        if self.n_components == 1:
            return one_has_all()
        named = [column.name for column in self.columns] or list(self.names)
        few = ", ".join(map(repr, named[:MOST_NAMED]))
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        by = "the features" if self.from_features else few + more
        if self.average is None or not np.isfinite(self.hit_rate):
            return f"The regime of a row is predicted from {by} (gating: {self.kind})."
        beside = ""
        if np.isfinite(largest):
            beside = f"; the largest regime alone would be right in {percent(largest)}"
        return (
            f"The regime of a row is predicted from {by} (gating: {self.kind}): correctly for "
            f"{percent(self.hit_rate)} of the rows that are no outliers, which count by their "
            f"probabilities before the gating{beside}. The shares of the regimes are "
            f"{self.averages}."
        )

    @property
    def averages(self) -> str:
        """The shares of the regimes on average, in words; nothing if they are not known."""
        return average_shares(self.average)

    @abstractmethod
    def _shares(self, values: NDArray[Any]) -> Floats:
        """Return the shares for columns without missing numbers."""

    def shares(self, Z: Any) -> Floats:
        """Return the shares of the components among the rows like each row, (n, m); sums are one.

        Parameters
        ----------
        Z : array or data frame of shape (n, q)
            The columns that the gate was learnt from. Rows of a data frame in which one is missing,
            or a text that was not there before, have the average shares.
        """
        values = self._read(Z)
        shares = np.empty((values.shape[0], self.n_components))
        for rows in chunks(*values.shape):
            part = values[rows].astype(np.float64)
            known = np.isfinite(part).all(axis=1)
            shares[rows] = np.nan if self.average is None else self.average
            if known.any():
                shares[rows][known] = self._shares(part[known])
        return shares

    def _read(self, Z: Any) -> NDArray[Any]:
        """Check columns of rows that may be new."""
        what, known = "X" if self.from_features else "gating_features", self.names
        raw = tuple(column.name for column in self.columns)
        if raw and is_frame(Z) and (raw == known or read_names(Z) != known):
            check_names(read_names(Z), raw, what)
            return encode_columns(Z, self.columns)
        table = read_columns(Z, what)
        check_names(table.names, known, what)
        return table.values


@dataclass(frozen=True, eq=False)
class Gate(ColumnGate):
    """Multinomial logistic regression of the regime on columns of the table.

    A row of columns z belongs to component j, given that it is no outlier, with a probability
    proportional to ``exp(coef[j] @ (z - center) / scale + intercept[j])``; scaled values beyond
    ``FARTHEST`` count as if they lay there.

    Attributes
    ----------
    coef, intercept : ndarray of shape (m, q), (m,)
        Of scaled columns. A component that none of the rows belonged to has the intercept minus
        infinity: its share is zero.
    """

    coef: Floats
    intercept: Floats

    @property
    def n_components(self) -> int:
        """Number of components."""
        return int(self.intercept.size)

    @property
    def n_parameters(self) -> int:
        """Numbers that were learnt beyond those of constant shares: a slope a column and odds."""
        return (self.n_components - 1) * len(self.names)

    def _shares(self, values: NDArray[Any]) -> Floats:
        scaled = scale_columns(values, self.center, self.scale)
        return np.asarray(softmax(scaled @ self.coef.T + self.intercept, axis=1))


@dataclass(frozen=True, eq=False)
class TreeGate(ColumnGate):
    """A forest of decision trees from columns of the table to the regime.

    From the root of a tree a row goes to the left where its scaled column ``feature`` is at most
    ``threshold``, and to the right otherwise, until it comes to a leaf. Its shares are the averages
    of the shares of its leaves.

    Attributes
    ----------
    feature, left, right : ndarray of shape (nodes,), int
        Of all trees, one after the other; -1 in leaves. A node comes after the one above it.
    threshold : ndarray of shape (nodes,)
    value : ndarray of shape (nodes, m)
        Shares in each node; those of leaves are used.
    roots : ndarray of shape (trees,), int
        The first node of each tree.
    """

    feature: Whole
    threshold: Floats
    left: Whole
    right: Whole
    value: Floats
    roots: Whole

    @property
    def n_components(self) -> int:
        """Number of components."""
        return int(self.value.shape[1])

    def is_sound(self) -> bool:
        """Whether every way through the trees ends in a leaf, and in few steps."""
        nodes, places = self.feature.size, np.arange(self.feature.size)
        inner = self.feature >= 0
        for below in (self.left, self.right):
            # Each node comes after the one above it: no way leads back.
            if (inner != (below >= 0)).any() or (below[inner] <= places[inner]).any():
                return False
            if below.max(initial=-1) >= nodes:
                return False
        if self.feature.max(initial=-1) >= len(self.names) or not self.roots.size:
            return False
        if self.roots.min() < 0 or self.roots.max() >= nodes:
            return False
        return int(self._heights().max()) <= DEEPEST

    def _heights(self) -> Whole:
        """Return the most steps from each node to a leaf; nodes come after those above them."""
        heights = np.zeros(self.feature.size, dtype=np.int64)
        for node in np.flatnonzero(self.feature >= 0)[::-1]:
            heights[node] = 1 + max(heights[self.left[node]], heights[self.right[node]])
        return heights

    def _shares(self, values: NDArray[Any]) -> Floats:
        scaled = scale_columns(values, self.center, self.scale, FARTHEST_IN_TREES)
        # As scikit-learn compares them, so that the answers are the same.
        columns, width = scaled.astype(np.float32), len(self.names)
        places = np.arange(self.feature.size)
        leaf = self.feature < 0
        # A row that is in a leaf stays there: all rows make the same number of steps.
        feature, threshold = np.where(leaf, 0, self.feature), np.where(leaf, np.inf, self.threshold)
        below = np.stack([np.where(leaf, places, side) for side in (self.right, self.left)], 1)
        below, heights = below.ravel(), self._heights()
        shares = np.zeros((len(columns), self.n_components))
        for rows in chunks(len(columns), 1, TREE_CHUNK):
            flat, first = columns[rows].ravel(), np.arange(columns[rows].shape[0]) * width
            for root in self.roots:
                node = np.full(first.size, root)
                for _ in range(heights[root]):
                    goes_left = flat.take(first + feature.take(node)) <= threshold.take(node)
                    node = below.take(2 * node + goes_left)
                shares[rows] += self.value.take(node, axis=0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def one_has_all(noun: str = "regime") -> str:
    """Say that there is one regime, or one line that is none: a gating cannot change anything."""
    return f"There is one {noun}: the gating has nothing to tell apart."


def average_shares(average: Floats | None) -> str:
    """Write shares of the regimes that are averages over rows; of many, the largest."""
    if average is None:
        return ""
    if average.size > MOST_NAMED:
        largest = int(average.argmax())
        return f"on average {percent(float(average[largest]))} for regime {largest}, the largest"
    return f"on average {listing([percent(float(share)) for share in average])}"


def scale_columns(
    values: NDArray[Any], center: Floats, scale: Floats, farthest: float = FARTHEST
) -> Floats:
    """Bring columns to a common unit, and values that are far out to the edge."""
    scaled = (values.astype(np.float64) - center) / scale
    return np.clip(scaled, -farthest, farthest, out=scaled)


def encode_columns(Z: Any, columns: tuple[Column, ...]) -> Floats:
    """Turn columns of a data frame into numbers, NaN where one is missing or was not there."""
    return Encoder(FrameCells(Z), len(Z), "gating_features", [], "missing").features(columns)


def read_columns(Z: Any, what: str) -> Table:
    """Read columns to learn a gate from, or to apply it to; messages say which argument it was."""
    try:
        table = Table.read(Z, fewest_rows=1)
        table.extent()
    except DataError as error:
        raise error if what == "X" else type(error)(f"{what}: {error}") from error
    return table


def gate_shares(mixture: Mixture, X: Any, gating: Any = None) -> Floats | None:
    """Return the shares that a gate gives each row; None without a gate.

    ``gating`` are the columns that the gate was learnt from, if those are not the features. Without
    them there is an error: to leave the gate out would give the answers of another model.
    """
    gate = mixture.gate
    if gate is None:
        return None
    if not gate.from_features and gating is None:
        raise DataError(
            "the model's gate was learnt from columns that are not among its features "
            f"({', '.join(gate.names)}), so its answers for rows need them: read the table with "
            "gating=[...], or pass shares=mixture.gate.shares(Z), where Z holds these columns."
        )
    return np.asarray(gate.shares(X if gate.from_features else gating))
