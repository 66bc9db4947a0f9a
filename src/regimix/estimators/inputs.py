"""From what users pass to an engine: arrays in memory, tables in parts, or a cluster."""

from __future__ import annotations

import contextlib
import inspect
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, validate_data

from regimix.data.encoding import Encoded, encode_rows, encode_table, is_plain
from regimix.data.problem import Problem
from regimix.data.recipe import Column, Recipe
from regimix.data.validation import Table, is_frame, read_names, read_target, read_weights
from regimix.engines.base import Engine
from regimix.engines.memory import MemoryEngine
from regimix.engines.partition import open_parts
from regimix.engines.parts import Parts, PartTable, PassStopped
from regimix.errors import (
    DataError,
    DataKindError,
    LeftOutWarning,
    Message,
    MissingExtraError,
    OutOfTimeError,
    RankWarning,
    Setting,
    StoppedError,
    StopReason,
    read_choice,
)
from regimix.search.algorithm2 import MAX_STARTS
from regimix.search.settings import Settings, watcher

LIBRARY = str(Path(__file__).parent.parent)


def is_remote(X: Any) -> bool:
    """Whether rows are not in memory; found out without loading Dask."""
    return isinstance(X, PartTable) or type(X).__module__.startswith(("dask.", "dask_expr."))


@dataclass(frozen=True, eq=False, kw_only=True)
class Kept:
    """Which of the rows that were passed can be used."""

    kept: NDArray[np.bool_] | None = None  # None: all of them
    frame: Any = None  # what was passed, if answers are to be data frames

    def of(self, values: Any) -> Any:
        """Take the same rows of something else that was passed: weights, columns."""
        if self.kept is None or np.ndim(values) == 0:
            return values
        if len(values) != self.kept.size:
            raise DataError(
                f"X has {self.kept.size} rows, and what was passed beside it has {len(values)}; "
                "pass one value for each row of X."
            )
        return _safe_indexing(values, np.flatnonzero(self.kept))

    def put_back(self, answers: Any, fill: Any = np.nan) -> Any:
        """Put answers where their rows were; rows that were left out get ``fill``."""
        if self.kept is None:
            return answers
        whole = np.full((self.kept.size, *answers.shape[1:]), fill, dtype=answers.dtype)
        whole[self.kept] = answers
        return whole

    def framed(self, answers: Any, names: str | list[str], fill: Any = np.nan) -> Any:
        """Put answers back, as a series or a data frame with the index of what was passed."""
        answers = self.put_back(answers, fill)
        library = type(self.frame).__module__.partition(".")[0]
        if library not in ("pandas", "polars"):
            return answers
        make, one = import_module(library), isinstance(names, str)
        if library == "polars":
            if one:
                return make.Series(names, answers)
            # Not told, polars takes rows for columns where there are as many of both.
            return make.DataFrame(answers, names, orient="row")
        index = self.frame.index
        if one:
            return make.Series(answers, index, name=names)
        return make.DataFrame(answers, index, names)


@dataclass(frozen=True, eq=False)
class NewRows(Kept):
    """Rows that a fitted estimator is asked about: those that can be used, as numbers."""

    table: Table
    y: Any = None

    @property
    def X(self) -> NDArray[Any]:  # noqa: N802 - scikit-learn's name
        """The numbers of the rows."""
        return self.table.values


@dataclass(frozen=True, eq=False)
class Rows(Kept):
    """Rows to fit."""

    engine: Engine
    target_name: str | None
    settings: Settings  # with the time that was left when the rows had been read
    encoded: Encoded | None = None  # how a data frame became numbers, if it was encoded


def new_rows(estimator: Any, X: Any, y: Any = None) -> NewRows:
    """Check rows that a fitted estimator is asked about; data frames as in the fit."""
    check_is_fitted(estimator)
    _refuse_remote(X)
    _check_arguments(X, y)
    known = getattr(estimator, "encoding_", None)
    framed = is_frame(X) and _reads_frames(estimator)
    if framed and (known is not None or not is_plain(X, y)):
        names = read_names(X)
        _check_names_of_fit(estimator, X)
        encoded = encode_rows(X, known or Recipe("y", tuple(map(Column, names))), y)
        warn_user(LeftOutWarning, *encoded.warnings)
        kept = None if encoded.kept.all() else encoded.kept
        return NewRows(encoded.table, encoded.y, kept=kept, frame=X)
    table = Table.read(X, fewest_rows=1)
    _check_names_of_fit(estimator, X)
    made = [column.name for column in known.columns if column.kind == "levels"] if known else []
    if made:
        raise DataError(
            f"X has no names, and the fit made columns of 0 and 1 of {', '.join(made)}: pass a "
            "data frame with the columns of the fit."
        )
    return NewRows(table, y, frame=X if framed else None)


def r_squared(rows: NewRows, predicted: NDArray[Any], sample_weight: Any) -> float:
    """Coefficient of determination; responses and weights are read as in a fit."""
    from sklearn.metrics import r2_score

    y = read_target(rows.y, len(predicted))
    weights, _ = read_weights(rows.of(sample_weight), len(predicted))
    return float(r2_score(y, predicted, sample_weight=weights))


def _reads_frames(estimator: Any) -> bool:
    """Whether text, categories, dates and missing values of data frames are dealt with."""
    return read_choice("encode", estimator.encode, ("auto", None)) is not None


def warn_user(kind: type[Warning], *sentences: str) -> None:
    """Warn whoever called the library, from whichever of its functions."""
    level, caller = 1, inspect.currentframe()
    while caller and caller.f_code.co_filename.startswith((LIBRARY, contextlib.__file__)):
        level, caller = level + 1, caller.f_back
    for sentence in sentences:
        warnings.warn(sentence, kind, stacklevel=level)


def _check_arguments(X: Any, y: Any) -> None:
    """Say which argument is meant for what, where it is likely that they were mixed up."""
    if isinstance(X, str | Path):
        raise DataKindError(
            f"X is the text {str(X)!r}, and fit takes the rows themselves. Read a file first: data "
            "= regimix.tables.read(path, target=...), then fit(data.frame(), data.target())."
        )
    if isinstance(y, str):
        advice = ""
        if is_frame(X) and y in list(X.columns):
            advice = f" Pass the column, and X without it: fit(X.drop(columns={y!r}), X[{y!r}])."
        raise DataKindError(f"y is the text {y!r}, and fit takes the responses.{advice}")
    # Attributes alone: what is only like an array need not bear NumPy's functions.
    if is_frame(X) or len(getattr(X, "shape", (0, 0))) != 1:
        return
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1:
        raise DataError(
            "X has one dimension and y has two: they are in the wrong order. Expected 2D array, "
            f"got 1D array of shape {X.shape} instead. Call fit(X, y), the table first."
        )
    if hasattr(X, "to_frame"):
        raise DataError(
            f"X is a single column (a Series); expected 2D array, got 1D array of shape "
            f"{X.shape} instead. Pass a data frame of one column, X.to_frame(); for one row, a "
            "frame of one row, such as frame.iloc[[0]]."
        )


def _check_names_of_fit(estimator: Any, X: Any) -> None:
    """Check the number and the names of columns, as scikit-learn does, and say what to do."""
    try:
        validate_data(estimator, X, reset=False, skip_check_array=True)
    except ValueError as error:
        known = list(getattr(estimator, "feature_names_in_", ()))
        there = known and is_frame(X) and not set(known) - set(X.columns)
        advice = "All columns of the fit are there: pass X[list(model.feature_names_in_)]."
        raise DataError(f"{error}\n{advice}" if there else str(error)) from None


def _refuse_remote(X: Any) -> None:
    if isinstance(X, PartTable):
        raise DataKindError(
            "a fitted estimator answers for rows in memory, and this table is read in parts: "
            "regimix.tables.write_label_parts(folder, table, fit.mixture_) writes predictions and "
            "labels part by part."
        )
    if is_remote(X):
        mapped = "map_partitions" if hasattr(X, "divisions") else "map_blocks"
        axis = "" if hasattr(X, "divisions") else ", drop_axis=1, dtype=float"
        raise DataKindError(
            "a fitted estimator answers for rows in memory, and these are on a cluster: for "
            f"example X.{mapped}(fit.predict{axis}) predicts each part where it is; what takes y "
            "too is mapped over both."
        )


def _left(settings: Settings, deadline: float | None) -> Settings:
    """Return the settings with the time that is left: checking and reading took some."""
    if deadline is None:
        return settings
    return replace(settings, time_limit=max(deadline - time.monotonic(), 1e-3))


def _in_memory(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Engine, Encoded | None, NDArray[np.bool_] | None]:
    """Return rows in memory, how they became numbers, and which of them can be used."""
    _check_arguments(X, y)
    encoded = encode_table(X, y) if _reads_frames(estimator) else None
    kept = None if encoded is None or encoded.kept.all() else encoded.kept
    table, target = (X, y) if encoded is None else (encoded.table, encoded.y)
    weights = Kept(kept=kept).of(sample_weight)
    problem = Problem.from_arrays(table, target, weights, fit_intercept=estimator.fit_intercept)
    validate_data(estimator, X, y, skip_check_array=True)
    estimator.encoding_ = estimator.left_out_ = None
    if encoded is not None:
        estimator.encoding_ = encoded.recipe
        estimator.left_out_ = None if kept is None else encoded.reasons
        warn_user(LeftOutWarning, *encoded.warnings)
    return MemoryEngine(problem), encoded, kept


@contextmanager
def opened(
    estimator: Any, X: Any, y: Any, sample_weight: Any, settings: Settings
) -> Iterator[Rows]:
    """Check the rows, make an engine of them, and store their columns in the estimator.

    A pass over rows that are not in memory is given up when the time of the settings is over, or
    when their callback, told of its progress, returns a true value.
    """
    limit = settings.time_limit
    deadline = None if limit is None else time.monotonic() + limit
    # The name of a dask array is not the user's.
    named = not is_remote(y) or hasattr(y, "divisions")
    label = None if (name := getattr(y, "name", None)) is None or not named else str(name)
    if not is_remote(X):
        engine, encoded, kept = _in_memory(estimator, X, y, sample_weight)
        yield Rows(engine, label, _left(settings, deadline), encoded, kept=kept)
        return
    estimator.encoding_ = estimator.left_out_ = None
    if isinstance(X, PartTable):
        label = X.target_name
        if y is not None or sample_weight is not None:
            raise DataError(
                f"a table that is read in parts brings its own response ({label!r}) and weights; "
                "call fit with the table alone."
            )
    try:
        with _parts(X, y, sample_weight) as (names, parts):
            parts.watch, parts.deadline = watcher(settings), deadline
            engine = open_parts(parts, names, fit_intercept=estimator.fit_intercept)
            estimator.n_features_in_ = len(names)
            estimator.__dict__.pop("feature_names_in_", None)
            if isinstance(X, PartTable) or hasattr(X, "columns"):
                estimator.feature_names_in_ = np.array(names, dtype=object)
            yield Rows(engine, label, _left(settings, deadline))
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
                f" of {limit:g} seconds was reached before there was an answer: the rows were "
                "still being read. Raise ",
                Setting("time_limit"),
                "; on a cluster, look for a scheduler or a worker that does not answer.",
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


def why_early(stopped: str, settings: Settings, found: str = "") -> Message:
    """Say what ended a search early, what was found until then, and what to do about it."""
    why: tuple[str | Setting, ...] = ("it was interrupted; fit again to let it finish",)
    if stopped == StopReason.MAX_STARTS:
        # Algorithm 2 has a budget by default.
        budget = Setting("max_starts", settings.max_starts or MAX_STARTS)
        why = "the budget of ", budget, " starts was spent; raise ", Setting("max_starts")
    elif stopped == StopReason.TIME_LIMIT:
        limit = Setting("time_limit")
        why = "the ", limit, f" of {settings.time_limit:g} seconds was reached; raise ", limit
    elif stopped == StopReason.CALLBACK:
        why = ("the callback asked for it; let it return a false value to go on",)
    return Message("the search stopped early: ", *why, f". {found}The best so far is returned.")


def warn_of_rank(determined: str, how: str) -> None:
    """Warn that rows do not determine all coefficients; ``how`` they may become more."""
    warn_user(
        RankWarning,
        f"{determined} coefficients (columns that repeat or depend on each other, or too few "
        f"rows); the shortest solution is returned. Drop columns, or {how} more rows.",
    )
