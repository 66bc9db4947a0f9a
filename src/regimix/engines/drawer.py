"""What all engines draw alike: rows by their keys, the largest draw remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from regimix.engines.base import Sample, T
from regimix.engines.draw import Drawn, draw_rows

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

__all__ = ["RowDrawer"]


class RowDrawer:
    """The part of an engine that draws rows."""

    _last_draw: tuple[int, int, Drawn] | None = None

    def fold(self, function: Callable[..., T], *args: Any) -> T:
        """Add up ``function(block, *args)`` over blocks of rows."""
        raise NotImplementedError

    def block_of(self, drawn: Drawn) -> MemoryEngine:
        """Make a block of drawn rows, in the units of the table."""
        raise NotImplementedError

    @property
    def drawn(self) -> Drawn | None:
        """The rows that were drawn last."""
        return None if self._last_draw is None else self._last_draw[2]

    def draw(self, rows: int, seed: int) -> Drawn:
        """Draw at least so many distinct rows, if there are; the largest draw is remembered."""
        last = self._last_draw
        if last is None or last[0] != seed or last[1] < rows:
            last = seed, rows, draw_rows(self, rows, seed)
            self._last_draw = last
        return last[2]

    def sample(self, rows: int, seed: int) -> Sample:
        """Draw distinct rows, whatever their order and repetition in the table."""
        drawn = self.draw(rows, seed).distinct(rows)
        block = self.block_of(drawn)
        return Sample(block.standardised(slice(None)), block.target(slice(None)), drawn.weights)
