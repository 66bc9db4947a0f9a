"""Parts of a table that does not fit into memory, read and checked one by one.

A task is applied to each part, and its results are added. ``LocalParts`` reads the parts on this
machine, the next one while a task works on the last; ``engines.dask`` lets workers do it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame, Problem, largest_sizes, standard_places
from regimix.data.validation import (
    LARGEST_COUNT,
    Table,
    check_present,
    check_span,
    check_weights,
    read_target,
)
from regimix.engines.base import combine
from regimix.engines.memory import MemoryEngine
from regimix.engines.selection import Mask
from regimix.errors import DataError, RegimixError, StopReason

if TYPE_CHECKING:
    from regimix.engines.dask import DaskParts

Floats = NDArray[np.float64]

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
    """A table that is read in parts: what ``fit`` takes in the place of X and y."""

    names: tuple[str, ...]  # of the features
    target_name: str
    # Each reads a part of the table, in one or several pieces; they can be sent to workers.
    readers: tuple[Callable[[], Iterable[RawRows]], ...]
    part_names: tuple[str, ...]  # in messages, one for each reader
    on_cluster: bool = False  # whether workers of a Dask cluster are to read it, not this machine
    gating: tuple[str, ...] = ()  # columns that may tell the regime of a row

    def some_rows(self, rows: int, seed: int, columns: Sequence[str]) -> tuple[RawRows, Any]:
        """Draw about so many rows, and a data frame of columns of them, of any kind."""
        raise NotImplementedError

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
                why = f"{type(error).__name__}: {str(error).rstrip('.')}"
                raise DataError(
                    f"{name} cannot be read: {why}. Repair it or leave it out."
                ) from error


class LocalParts:
    """Parts of a table that are read here, one after the other; always the same rows."""

    silent = False  # as the scheduler of a cluster may be

    def __init__(self, read: Callable[[], Iterable[RawRows]]) -> None:
        self._read = read  # yields the parts, anew at every call
        self.part_names: tuple[str, ...] | None = None
        self._n_parts: int | None = None
        self.n_passes = 0
        self.watch: Watch | None = None
        self.deadline: float | None = None  # by time.monotonic(): a pass is given up then

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


# --- checks and units -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PartUnits:
    """Size and units of a table in parts, found in two passes that check its rows.

    The same checks, the same few thousand evenly spaced rows and so the same units as for a table
    in memory: the fit does not depend on how a table is cut. Weights are divided by ``weight_most``
    and multiplied by ``weight_unit``, so that relative importances have a mean of one; in two
    steps, so that no intermediate number overflows.
    """

    frame: Frame
    weight_most: float
    weight_unit: float
    gone: tuple[Mask, ...] = ()  # rows that were left out since, in turn

    def block(self, rows: RawRows, first: int) -> MemoryEngine:
        """Make a block of a part; ``first`` is the place of its first row in the whole table."""
        assert rows.y is not None
        weights = None
        if self.frame.weighted:
            weights = np.ones(rows.n_rows)
            if rows.weights is not None:
                weights = np.asarray(rows.weights, dtype=np.float64) / self.weight_most
                weights = weights * self.weight_unit
        numbers = range(first, first + rows.n_rows)
        y = np.asarray(rows.y, dtype=np.float64)
        block = MemoryEngine(Problem.framed(self.frame, rows.X, y, weights), numbers=numbers)
        for mask in self.gone:
            assert weights is not None
            weights[mask.mask(block)] = 0.0
        return block

    @classmethod
    def find(
        cls, parts: Parts, names: tuple[str, ...], *, fit_intercept: bool
    ) -> tuple[PartUnits, list[int]]:
        """Check the rows of all parts; return their units, and where in the table each begins."""
        surveys: list[_Survey] = parts.fold(partial(_survey, names, parts.part_names)) or []
        n_rows = sum(survey.n_rows for survey in surveys)
        if n_rows < 2:
            raise DataError(
                f"X has {n_rows} row(s) in {len(surveys)} part(s) (n_samples={n_rows}) while a "
                "minimum of 2 is required; pass more rows."
            )
        counts, most, unit, mass = _weighing(surveys)
        weighted = not all(survey.plain_weights for survey in surveys)
        rows = _standard_rows(parts, [survey.n_present for survey in surveys])
        frame = Frame.of_sample(
            rows[:, :-2],
            rows[:, -2],
            rows[:, -1] / most * unit if weighted else None,
            (
                np.min([survey.lowest for survey in surveys if survey.n_rows], axis=0),
                np.max([survey.highest for survey in surveys if survey.n_rows], axis=0),
            ),
            sizes=np.max([survey.sizes for survey in surveys if survey.n_rows], axis=0),
            names=names,
            n_rows=n_rows,
            n_present=sum(survey.n_present for survey in surveys),
            weighted=weighted,
            counts=counts,
            mass=mass,
            fit_intercept=bool(fit_intercept),
        )
        firsts = np.cumsum([0, *(survey.n_rows for survey in surveys)])[:-1]
        return cls(frame, most, unit), firsts.tolist()


@dataclass(frozen=True, eq=False)
class _Survey:
    """Extents and weights of one part; extents have the response last, and none without rows."""

    n_rows: int
    lowest: Floats
    highest: Floats
    sizes: Floats  # ``largest_sizes``
    n_present: int
    weight_least: float  # of those that are not zero
    weight_most: float
    weight_sum: float
    whole_weights: bool
    plain_weights: bool


def _survey(
    names: tuple[str, ...], part_names: tuple[str, ...] | None, rows: RawRows, part: int
) -> list[_Survey]:
    """Check a part, and survey it: the first pass."""
    try:
        return [_survey_rows(names, rows)]
    except DataError as error:
        where = rows.name or name_of(part, part_names)
        raise type(error)(f"in {where}: {error}") from error


def _survey_rows(names: tuple[str, ...], rows: RawRows) -> _Survey:
    if rows.X.ndim != 2 or rows.X.shape[1] != len(names):
        raise DataError(
            f"the part has the shape {rows.X.shape}, but the table has {len(names)} "
            "feature(s); all parts must have the same columns."
        )
    if not rows.n_rows:
        return _Survey(0, np.empty(0), np.empty(0), np.empty(0), 0, np.inf, 0.0, 0.0, True, True)
    lowest, highest = Table(rows.X, names).extent()
    y = read_target(rows.y, rows.n_rows)
    weights = np.ones(rows.n_rows)
    if rows.weights is not None:
        weights = check_weights(np.asarray(rows.weights), rows.n_rows)
    lowest, highest = np.append(lowest, y.min()), np.append(highest, y.max())
    return _Survey(
        rows.n_rows,
        lowest,
        highest,
        largest_sizes(rows.X, y, weights, (lowest, highest)),
        int(np.count_nonzero(weights)),
        float(weights.min(initial=np.inf, where=weights > 0)),
        float(weights.max()),
        # Of the largest: the sum of very large weights is no number.
        float((weights / (weights.max() or 1.0)).sum()),
        bool((weights == np.floor(weights)).all()),
        bool((weights == 1).all()),
    )


def _weighing(surveys: list[_Survey]) -> tuple[bool, float, float, float]:
    """Find how the weights of all parts are read, as ``read_weights`` does in memory.

    Returns whether they count repetitions, what they are divided by and then multiplied by, and
    the total weight.
    """
    n_present = sum(survey.n_present for survey in surveys)
    check_present(n_present)
    most = max(survey.weight_most for survey in surveys)
    check_span(min(survey.weight_least for survey in surveys), most)
    relative = sum(survey.weight_sum * (survey.weight_most / most) for survey in surveys)
    whole = all(survey.whole_weights for survey in surveys)
    if whole and most < LARGEST_COUNT and relative * most < LARGEST_COUNT:
        return True, 1.0, 1.0, float(sum(round(s.weight_sum * s.weight_most) for s in surveys))
    return False, most, n_present / relative, float(n_present)


def _pick(rows: RawRows, places: NDArray[np.intp]) -> list[Floats]:
    """Return some of the rows present, with response and weight: the second pass."""
    weights = np.ones(rows.n_rows) if rows.weights is None else np.asarray(rows.weights)
    picked = np.flatnonzero(weights)[places]
    y: Any = rows.y
    columns = (rows.X[picked], np.asarray(y)[picked], weights[picked])
    return [np.column_stack(columns).astype(np.float64)]


def _standard_rows(parts: Parts, present: list[int]) -> Floats:
    """Gather evenly spaced rows among those present."""
    ends = np.cumsum(present)
    wanted = standard_places(int(ends[-1]))
    split = np.split(wanted, np.searchsorted(wanted, ends[:-1]))
    places = [rows - first for rows, first in zip(split, ends - present, strict=True)]
    return np.concatenate(parts.fold(_pick, places))
