"""Labels as functions of a block of rows: the component of each row, -1 for none.

A fit ends with a few numbers that say which row belongs where. Whoever holds the rows applies them:
memory at once, a cluster block by block, a drawn excerpt to itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regimix.engines.row_sampling import mix
from regimix.engines.selection import Keeper, Mask
from regimix.model.blocks import Labelling, Law, nearest

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# A row is in doubt if the likeliest regime, or being an outlier, is less likely than this.
SURE = 0.8


@dataclass(frozen=True, eq=False)
class Likeliest:
    """The likeliest component, -1 where the background is likelier.

    Of components without noise, listed with what tells their rows, exactly those rows.
    """

    law: Law
    exact: tuple[tuple[int, Keeper], ...] = ()

    def __call__(self, block: MemoryEngine) -> Labels:
        """Label the rows of a block."""
        labels, odds, _ = block.once(nearest, self.law)
        labels = np.where(odds < 0, -1, labels)
        for j, keeper in self.exact:
            kept = keeper.mask(block)
            labels[(labels == j) & ~kept] = -1
            labels[kept & (labels == -1)] = j
        return labels


@dataclass(frozen=True, eq=False)
class Nearest:
    """The likeliest component, and none is the background."""

    law: Law

    def __call__(self, block: MemoryEngine) -> Labels:
        """Label the rows of a block."""
        return np.array(block.once(nearest, self.law)[0])


@dataclass(frozen=True, eq=False)
class Trimmed:
    """The likeliest component of the rows that are kept."""

    law: Law
    keeper: Keeper

    def __call__(self, block: MemoryEngine) -> Labels:
        """Label the rows of a block."""
        return np.where(self.keeper.mask(block), block.once(nearest, self.law)[0], -1)


@dataclass(frozen=True, eq=False)
class Taken:
    """The first of several sets of rows that a row is in (Algorithm 2 takes them out in turn)."""

    taken: tuple[Mask, ...]

    def __call__(self, block: MemoryEngine) -> Labels:
        """Label the rows of a block."""
        labels = np.full(block.problem.n_rows, -1, dtype=np.int64)
        for j, rows in enumerate(self.taken):
            labels[rows.mask(block) & (labels == -1)] = j
        return labels


@dataclass(frozen=True, eq=False)
class Ordered:
    """Other labels, renamed after components were put in order; outliers stay outliers."""

    labelling: Labelling
    order: NDArray[np.intp]

    def __call__(self, block: MemoryEngine) -> Labels:
        """Label the rows of a block."""
        rank = np.full(self.order.size + 1, -1, dtype=np.int64)
        rank[self.order] = np.arange(self.order.size)
        return np.asarray(rank[self.labelling(block)])


def unlikeliness(block: MemoryEngine, law: Law) -> Floats:
    """How little each row is like any component: minus its log odds over the background."""
    return -block.once(nearest, law)[1]


def label_squares(
    block: MemoryEngine, labelling: Labelling, thetas: Floats
) -> tuple[Floats, Floats]:
    """Weight of the rows of each label, and their squared residuals at its coefficients."""
    labels, weights = labelling(block), block.problem.weights
    mass, square = np.zeros(len(thetas)), np.zeros(len(thetas))
    for j, theta in enumerate(thetas):
        rows = np.flatnonzero(labels == j)
        weight = np.ones(rows.size) if weights is None else weights[rows]
        mass[j], square[j] = weight.sum(), weight @ block.residuals_of(rows, theta) ** 2
    return mass, square


def label_name(block: MemoryEngine, labelling: Labelling) -> NDArray[np.uint64]:
    """Name the labels of a block: equal labels have equal names, which are added."""
    words = mix(block.numbers.astype(np.uint64)) + labelling(block).astype(np.uint64)
    with np.errstate(over="ignore"):
        return np.asarray(mix(words).sum(keepdims=True))
