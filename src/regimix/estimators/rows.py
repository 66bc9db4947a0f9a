"""From what users pass to an engine: arrays here, tables in parts, or a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from regimix.engines.base import Engine
from regimix.engines.door import open_parts
from regimix.engines.memory import MemoryEngine
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
from regimix.frame import Frame
from regimix.problem import Problem
from regimix.search.settings import Settings

__all__ = ["Rows", "is_remote", "opened", "refuse_remote", "remember_features"]


@dataclass(frozen=True)
class Rows:
    """Rows to fit, and what is known of them besides.

    Attributes
    ----------
    engine : Engine
    remote : bool
        Whether they are not in memory: read in parts, or on a cluster.
    target_name : str or None
    deadline : float or None
        When the time is over, by ``time.monotonic()``.
    """

    engine: Engine
    remote: bool
    target_name: str | None
    deadline: float | None = None

    def within_limit(self, settings: Settings) -> Settings:
        """Return settings with the time that is left."""
        if self.deadline is None:
            return settings
        return replace(settings, time_limit=max(self.deadline - time.monotonic(), 1e-3))


def is_dask(data: Any) -> bool:
    """Say whether this is a collection of Dask, without loading it."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr")


def is_remote(X: Any) -> bool:
    """Say whether rows are not in memory."""
    return isinstance(X, PartTable) or is_dask(X)


def refuse_remote(X: Any) -> None:
    """Refuse rows that are not in memory where each of them is answered; say what to do."""
    if isinstance(X, PartTable):
        raise DataKindError(
            "a fitted estimator answers for rows in memory, and this table is read in parts: "
            "regimix.tables.write_label_parts(folder, table, fit.mixture_) writes predictions and "
            "labels part by part."
        )
    if is_dask(X):
        mapped = "map_partitions" if hasattr(X, "divisions") else "map_blocks"
        axis = "" if hasattr(X, "divisions") else ", drop_axis=1, dtype=float"
        raise DataKindError(
            "a fitted estimator answers for rows in memory, and these are on a cluster: for "
            f"example X.{mapped}(fit.predict{axis}) predicts each part where it is; what takes y "
            "too is mapped over both."
        )


@contextmanager
def opened(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    fit_intercept: bool = True,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> Iterator[Rows]:
    """Check the rows, and make them an engine.

    Parameters
    ----------
    time_limit : float, optional
        Seconds after which a pass over rows that are not in memory is given up.
    watch : callable, optional
        Told how far such a pass is; a true answer stops it.
    """
    name = None if is_dask(y) and not hasattr(y, "divisions") else getattr(y, "name", None)
    label = None if name is None else str(name)
    if not is_remote(X):
        problem = Problem.from_arrays(X, y, sample_weight, fit_intercept=fit_intercept)
        yield Rows(MemoryEngine(problem), remote=False, target_name=label)
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
            engine = open_parts(parts, names, fit_intercept=fit_intercept)
            yield Rows(engine, remote=True, target_name=label, deadline=deadline)
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
        raise MissingExtraError(
            "tables on a cluster need Dask, which is not installed: pip install 'regimix[dask]'."
        ) from error
    with engine.dask_rows(X, y, sample_weight) as found:
        yield found


def remember_features(estimator: Any, X: Any, y: Any, frame: Frame) -> None:
    """Let an estimator know how many columns it was fitted to, and their names."""
    if not is_remote(X):
        validate_data(estimator, X, y, skip_check_array=True)
        return
    estimator.n_features_in_ = frame.n_features
    estimator.__dict__.pop("feature_names_in_", None)
    if isinstance(X, PartTable) or hasattr(X, "columns"):
        estimator.feature_names_in_ = np.array(frame.feature_names, dtype=object)
