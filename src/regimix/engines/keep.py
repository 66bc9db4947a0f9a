"""Which rows are kept, as something that can be asked of any block of rows.

In memory the kept rows are remembered (``Held``). Where rows live elsewhere, a few numbers say
which they are (``Cut``): rows of smaller value, and of the tied ones those that stand first. Any
block can be asked again, on any machine, and gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regimix.engines.select import Choice

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

__all__ = ["BlockValues", "Cut", "Held", "Keeper", "Mask"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
BlockValues = Callable[..., Floats]


class Mask(Protocol):
    """Tells some of the rows of a block."""

    def mask(self, block: MemoryEngine) -> Bools:
        """Say which rows of a block are meant."""
        ...


class Keeper(Mask, Protocol):
    """Tells the kept rows of a block, and what they count."""

    @property
    def threshold(self) -> float:
        """The largest kept value."""
        ...

    @property
    def part(self) -> tuple[int, float]:
        """The row that is kept in part, -1 if there is none, and how much of it."""
        ...

    def weights(self, block: MemoryEngine) -> Floats | None:
        """Weights of a block's rows in the fit, zero if not kept; None if there are no weights."""
        ...


@dataclass(frozen=True, eq=False)
class Held:
    """Kept rows of a table in memory."""

    choice: Choice

    @property
    def threshold(self) -> float:
        """The largest kept value."""
        return self.choice.threshold

    @property
    def part(self) -> tuple[int, float]:
        """The row that is kept in part, -1 if there is none, and how much of it."""
        return self.choice.boundary, self.choice.boundary_weight

    def mask(self, block: MemoryEngine) -> Bools:
        """Say which rows of a block are kept."""
        return block.own(self.choice.kept)

    def weights(self, block: MemoryEngine) -> Floats | None:
        """Weights of a block's rows in the fit."""
        return _weights(block, self.mask(block), self.choice.boundary, self.choice.boundary_weight)


@dataclass(frozen=True, eq=False)
class Cut:
    """The rows of smallest value, told by a threshold and a row number.

    Attributes
    ----------
    values : callable
        The value of each row of a block: ``values(block, *args)``.
    threshold, floor : float
        Values within ``floor`` of the threshold count as tied.
    last : int
        The last of the tied rows that is kept.
    boundary : int
        The row of which only ``boundary_weight`` is kept, -1 if there is none.
    """

    values: BlockValues
    args: tuple[Any, ...]
    threshold: float
    floor: float
    last: int
    boundary: int = -1
    boundary_weight: float = 0.0

    @property
    def part(self) -> tuple[int, float]:
        """The row that is kept in part, -1 if there is none, and how much of it."""
        return self.boundary, self.boundary_weight

    def mask(self, block: MemoryEngine) -> Bools:
        """Say which rows of a block are kept."""
        return self.of(self.values(block, *self.args), block)

    def of(self, values: Floats, block: MemoryEngine) -> Bools:
        """Say which rows are kept, their values being known already."""
        kept = values < self.threshold - self.floor
        near = np.flatnonzero(~kept & (values <= self.threshold + self.floor))
        kept[near] = block.numbers[near] <= self.last
        weights = block.problem.weights
        if weights is not None:
            kept &= weights > 0
        return np.asarray(kept)

    def weights(self, block: MemoryEngine) -> Floats | None:
        """Weights of a block's rows in the fit."""
        return self.weights_of(self.mask(block), block)

    def weights_of(self, mask: Bools, block: MemoryEngine) -> Floats | None:
        """Weights of a block's rows in the fit, the kept ones being known already."""
        return _weights(block, mask, self.boundary, self.boundary_weight)


def _weights(block: MemoryEngine, mask: Bools, boundary: int, part: float) -> Floats | None:
    if block.problem.weights is None:
        return None
    weights = np.where(mask, block.problem.weights, 0.0)
    if boundary >= 0:
        weights[block.numbers == boundary] = part
    return weights
