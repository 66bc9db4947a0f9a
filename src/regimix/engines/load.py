"""What a worker does to make the numbers of one part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.parts import RawRows
from regimix.intake import Table, read_vector

__all__ = ["load", "load_frame", "read_whole"]


def read_whole(reader: Callable[[], Iterable[RawRows]]) -> RawRows:
    """Read one part of a table, whole."""
    pieces = list(reader())
    if len(pieces) == 1:
        return pieces[0]
    return RawRows(
        np.concatenate([piece.X for piece in pieces]),
        _joined([piece.y for piece in pieces]),
        _joined([piece.weights for piece in pieces]),
    )


def _joined(pieces: list[Any]) -> NDArray[Any] | None:
    return None if pieces[0] is None else np.concatenate(pieces)


def load_frame(frame: Any, vectors: list[str]) -> RawRows:
    """Take a part of a data frame apart again."""
    return load(frame.drop(columns=vectors), *(frame[name] for name in vectors))


def load(x: Any, y: Any, weights: Any = None) -> RawRows:
    """Read one part into plain arrays, rows one after the other in memory."""
    table = Table.read(x, fewest_rows=0)
    return RawRows(
        np.ascontiguousarray(table.values),
        _column(read_vector(y, "y")),
        None if weights is None else _column(read_vector(weights, "sample_weight")),
    )


def _column(values: NDArray[Any]) -> NDArray[Any]:
    """Take a column of a table for what it holds."""
    return values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
