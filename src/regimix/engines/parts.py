"""Parts of a table that does not fit into memory, read one by one.

A task is applied to each part, and its results are added. ``LocalParts`` reads the parts on this
machine, the next one while a task works on the last; ``engines.dask`` lets workers do it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import combine
from regimix.errors import DataError, RegimixError, StopReason

if TYPE_CHECKING:
    from regimix.engines.dask import DaskParts

__all__ = ["LocalParts", "PartTable", "Parts", "PassStopped", "RawRows", "Task", "Watch", "name_of"]

# Called with the parts that a pass has done, and all (None while unknown); a true answer stops it.
Watch = Callable[[int, int | None], Any]
# A function of the rows of a part and of what belongs to that part; by default, its number.
Task = Callable[["RawRows", Any], Any]
Parts: TypeAlias = "LocalParts | DaskParts"


class PassStopped(Exception):  # noqa: N818 - not an error: there may be an answer already
    """A pass over the table ended early: at its time limit, or by the callback."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, eq=False)
class RawRows:
    """Numbers of one part as its reader gives them."""

    X: NDArray[Any]  # (k, d)
    y: NDArray[Any] | None  # (k,)
    weights: NDArray[Any] | None = None  # (k,)
    name: str | None = None  # in messages

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return sum(a.nbytes for a in (self.X, self.y, self.weights) if a is not None)

    def __sizeof__(self) -> int:
        # Dask asks this way what moving a part to another worker costs.
        return object.__sizeof__(self) + self.nbytes

    @property
    def n_rows(self) -> int:
        """Rows of the part."""
        return int(self.X.shape[0])


@dataclass(frozen=True)
class PartTable:
    """A table that is read in parts: what ``fit`` takes in the place of X and y.

    Attributes
    ----------
    names : tuple of str
        The features.
    target_name : str
        The response.
    readers : tuple of callable
        Each reads a part of the table, in one or several pieces; they can be sent to workers.
    part_names : tuple of str
        What the parts are called in messages, one for each reader.
    on_cluster : bool
        Whether workers of a Dask cluster are to read it, not this machine.
    """

    names: tuple[str, ...]
    target_name: str
    readers: tuple[Callable[[], Iterable[RawRows]], ...]
    part_names: tuple[str, ...]
    on_cluster: bool = False

    def local_parts(self) -> LocalParts:
        """Read the parts here, one after the other."""
        return LocalParts(self._pieces)

    def _pieces(self) -> Iterator[RawRows]:
        for name, reader in zip(self.part_names, self.readers, strict=True):
            try:
                for piece in reader():
                    yield replace(piece, name=piece.name or name)
            except (OSError, ValueError) as error:
                if isinstance(error, RegimixError):
                    raise
                raise DataError(
                    f"{name} cannot be read: {type(error).__name__}: {str(error).rstrip('.')}. "
                    "Repair it or leave it out."
                ) from error


class LocalParts:
    """Parts of a table that are read here, one after the other; always the same rows.

    Parameters
    ----------
    read : callable
        Yields the parts, anew at every call.
    """

    def __init__(self, read: Callable[[], Iterable[RawRows]]) -> None:
        self._read = read
        self.part_names: tuple[str, ...] | None = None
        self._n_parts: int | None = None
        self.n_passes = 0
        self.watch: Watch | None = None
        # Seconds of time.monotonic() after which a pass is given up.
        self.deadline: float | None = None

    def fold(self, task: Task, own: Sequence[Any] | None = None) -> Any:
        """Add up what a task returns for each part, in the order of the parts."""
        total: Any = None
        for index, rows in self._each():
            result = task(rows, index if own is None else own[index])
            total = result if index == 0 else combine(total, result)
        return total

    def map_rows(
        self, task: Task, lengths: Sequence[int], dtype: Any, own: Sequence[Any] | None = None
    ) -> NDArray[Any]:
        """Concatenate what a task returns for each row; the parts have so many rows."""
        out = np.empty(sum(lengths), dtype=dtype)
        first = 0
        # The answer is there: what is left is to apply it.
        for index, rows in self._each(to_the_end=True):
            out[first : first + lengths[index]] = task(rows, index if own is None else own[index])
            first += lengths[index]
        return out

    def _each(self, *, to_the_end: bool = False) -> Iterator[tuple[int, RawRows]]:
        """Give each part its number; watch the time, and report how far a pass is."""
        index = -1
        for index, rows in enumerate(_ahead(self._read())):
            late = self.deadline is not None and time.monotonic() > self.deadline
            if late and not to_the_end:
                raise PassStopped(StopReason.TIME_LIMIT)
            yield index, rows
            stop = self.watch is not None and self.watch(index + 1, self._n_parts)
            if stop and not to_the_end:
                raise PassStopped(StopReason.CALLBACK)
        self._n_parts = index + 1
        self.n_passes += 1


def name_of(part: int, names: Sequence[str] | None) -> str:
    """Name a part in a message."""
    return f"part {part} of the table (counting from 0)" if names is None else names[part]


def _ahead(parts: Iterable[RawRows]) -> Iterator[RawRows]:
    """Read the next part while this one is worked on."""
    nothing = object()
    remaining = iter(parts)
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(next, remaining, nothing)
        while True:
            rows: Any = waiting.result()
            if rows is nothing:
                return
            waiting = reader.submit(next, remaining, nothing)
            yield rows
