"""Collections of Dask that users bring, cut into what makes the numbers of each part."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed, delayed

from regimix.engines.load import load, load_frame
from regimix.errors import DataError, DataKindError

__all__ = ["cut_up", "dask_parts"]

Names = tuple[str, ...]


def dask_parts(X: Any, y: Any, sample_weight: Any = None) -> tuple[Names, list[Delayed]]:
    """Return the names of the columns, and what makes the numbers of each part."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None: pass one number a row.")
    vectors = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
    if not hasattr(X, "columns"):
        if X.ndim != 2:
            raise DataError(
                f"X must be a table of rows and columns; expected 2D array, got {X.ndim}D array of "
                f"shape {X.shape} instead. Use X.reshape(-1, 1) if it is one column."
            )
        names = tuple(f"x{i}" for i in range(int(X.shape[1])))
    else:
        names = tuple(str(name) for name in X.columns)
        if all(hasattr(vector, "divisions") for vector in vectors.values()):
            return names, _frame_parts(X, names, vectors)
    table = cut_up(X, "X")
    columns = []
    for what, vector in vectors.items():
        columns.append(cut_up(_same_chunks(vector, X, what), what))
        if len(columns[-1]) != len(table):
            raise _unmatched(len(table), what, len(columns[-1]))
    read = delayed(load, pure=True)
    return names, [read(*parts) for parts in zip(table, *columns, strict=True)]


def _frame_parts(X: Any, names: Names, vectors: dict[str, Any]) -> list[Delayed]:
    """Cut a data frame together with its response: one reading serves both.

    (Cut apart, Dask may merge partitions of the one and not of the other.)
    """
    for what, vector in vectors.items():
        if vector.npartitions != X.npartitions:
            raise _unmatched(X.npartitions, what, vector.npartitions)
        if vector.ndim == 2 and len(vector.columns) != 1:
            raise DataError(
                f"{what} must be one number a row; got a data frame of {len(vector.columns)} "
                "columns. Pass one of them."
            )
    vectors = {
        what: vector[vector.columns[0]] if vector.ndim == 2 else vector
        for what, vector in vectors.items()
    }
    mark = max(map(len, names), default=0) * "_"  # longer than any name: it is no name
    together = X.assign(**{mark + what: vector for what, vector in vectors.items()})
    read = delayed(load_frame, pure=True)
    return [read(part, [mark + what for what in vectors]) for part in together.to_delayed()]


def _unmatched(n_parts: int, what: str, n_others: int) -> DataError:
    return DataError(
        f"X has {n_parts} partitions, {what} has {n_others}: rows cannot be matched. Take both "
        "from one data frame, or give arrays the same chunks along the rows."
    )


def cut_up(data: Any, what: str) -> list[Delayed]:
    """Cut a collection into what makes each of its parts."""
    if not hasattr(data, "to_delayed"):
        raise DataKindError(
            f"{what} is of type {type(data).__name__}, but the table is on a cluster: pass a dask "
            f"array or a column of a dask data frame, for example dask.array.from_array({what}, "
            "chunks=X.chunks[0])."
        )
    if isinstance(data, da.Array):
        if data.ndim > 1 and data.numblocks[1] > 1:
            data = data.rechunk({1: -1})
        return list(data.to_delayed(optimize_graph=False).ravel())
    return list(data.to_delayed(optimize_graph=False))


def _same_chunks(vector: Any, X: Any, what: str) -> Any:
    """Cut an array along the rows as X is cut, where sizes are known."""
    if not isinstance(vector, da.Array) or not isinstance(X, da.Array):
        return vector
    if vector.ndim != 1 and vector.shape[1:] != (1,):
        raise DataError(
            f"{what} must be one number a row; got a dask array of shape {vector.shape}. Pass one "
            "column."
        )
    vector = vector.reshape(-1) if vector.ndim == 2 else vector
    known = not (np.isnan(vector.shape[0]) or np.isnan(X.shape[0]))
    if known and vector.shape[0] != X.shape[0]:
        raise DataError(
            f"X and {what} have inconsistent numbers of rows: X has {X.shape[0]}, {what} has "
            f"{vector.shape[0]}. Pass one number in {what} for each row of X."
        )
    return vector.rechunk((X.chunks[0],)) if known else vector
