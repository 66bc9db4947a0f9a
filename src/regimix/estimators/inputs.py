"""From what users pass to an engine: arrays in memory, tables in parts, or a cluster."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from regimix.data.problem import Problem
from regimix.data.validation import Table
from regimix.engines.base import Engine
from regimix.engines.memory import MemoryEngine
from regimix.engines.partition import open_parts
from regimix.engines.parts import Parts, PartTable, PassStopped, Watch
from regimix.errors import (
    DataError,
    DataKindError,
    Message,
    MissingExtraError,
    OutOfTimeError,
    Setting,
    StoppedError,
    StopReason,
)

__all__ = ["Rows", "is_remote", "new_rows", "opened", "warn_user"]


@dataclass(frozen=True)
class Rows:
    """Rows to fit."""

    engine: Engine
    target_name: str | None
    deadline: float | None = None  # by ``time.monotonic()``; only for rows that are not in memory


def is_remote(X: Any) -> bool:
    """Whether rows are not in memory."""
    return isinstance(X, PartTable) or _is_dask(X)


def _is_dask(data: Any) -> bool:
    """Whether this is a collection of Dask, found out without loading Dask."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr")


def new_rows(estimator: Any, X: Any) -> Table:
    """Check the features of rows that a fitted estimator is asked about."""
    check_is_fitted(estimator)
    if isinstance(X, PartTable):
        raise DataKindError(
            "a fitted estimator answers for rows in memory, and this table is read in parts: "
            "regimix.tables.write_label_parts(folder, table, fit.mixture_) writes predictions and "
            "labels part by part."
        )
    if _is_dask(X):
        mapped = "map_partitions" if hasattr(X, "divisions") else "map_blocks"
        axis = "" if hasattr(X, "divisions") else ", drop_axis=1, dtype=float"
        raise DataKindError(
            "a fitted estimator answers for rows in memory, and these are on a cluster: for "
            f"example X.{mapped}(fit.predict{axis}) predicts each part where it is; what takes y "
            "too is mapped over both."
        )
    table = Table.read(X, fewest_rows=1)
    validate_data(estimator, X, reset=False, skip_check_array=True)
    return table


@contextmanager
def opened(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> Iterator[Rows]:
    """Check the rows, make an engine of them, and store their columns in the estimator.

    A pass over rows that are not in memory is given up after ``time_limit`` seconds, or when
    ``watch``, called with its progress, returns a true value.
    """
    name = None if _is_dask(y) and not hasattr(y, "divisions") else getattr(y, "name", None)
    label = None if name is None else str(name)
    intercept = estimator.fit_intercept
    if not is_remote(X):
        problem = Problem.from_arrays(X, y, sample_weight, fit_intercept=intercept)
        validate_data(estimator, X, y, skip_check_array=True)
        yield Rows(MemoryEngine(problem), label)
        return
    if isinstance(X, PartTable):
        label = X.target_name
        if y is not None or sample_weight is not None:
            raise DataError(
                f"a table that is read in parts brings its own response ({label!r}) and weights; "
                "call fit with the table alone."
            )
    deadline = None if time_limit is None else time.monotonic() + time_limit
    try:
        with _parts(X, y, sample_weight) as (names, parts):
            parts.watch, parts.deadline = watch, deadline
            engine = open_parts(parts, names, fit_intercept=intercept)
            estimator.n_features_in_ = len(names)
            estimator.__dict__.pop("feature_names_in_", None)
            if isinstance(X, PartTable) or hasattr(X, "columns"):
                estimator.feature_names_in_ = np.array(names, dtype=object)
            yield Rows(engine, label, deadline)
    except PassStopped as stopped:
        if stopped.reason is not StopReason.TIME_LIMIT:
            raise StoppedError(
                "the callback asked for the end before there was an answer: the rows were still "
                "being read. Let it return a false value until the search has begun."
            ) from stopped
        raise OutOfTimeError(
            Message(
                "the ",
                Setting("time_limit"),
                f" of {time_limit:g} seconds was reached before there was an answer: the rows were "
                "still being read. Raise ",
                Setting("time_limit"),
                "; on a cluster, look for a worker that does not answer.",
            )
        ) from stopped


@contextmanager
def _parts(X: Any, y: Any, sample_weight: Any) -> Iterator[tuple[tuple[str, ...], Parts]]:
    if isinstance(X, PartTable) and not X.on_cluster:
        yield X.names, X.local_parts()
        return
    try:
        engine = import_module("regimix.engines.dask")
    except ModuleNotFoundError as error:
        package = error.name or "dask"
        raise MissingExtraError.of(package, "dask", "tables on a cluster need") from error
    with engine.dask_rows(X, y, sample_weight) as found:
        yield found


def warn_user(kind: type[Warning], *parts: str | Setting) -> None:
    """Warn whoever called ``fit``, if this is called from a helper of ``fit``."""
    warnings.warn(Message(*parts), kind, stacklevel=4)
