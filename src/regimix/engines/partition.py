"""The engine for tables in parts: out of core on one machine, or on a cluster.

The driver holds coefficients and d x d sums, and a bounded draw of rows. A block of rows is made of
a part when a task works on it: standardised by the frame, its rows numbered in the whole table.

``open_parts`` makes the engine in two passes, which check the rows and find their units: the same
checks, the same few thousand evenly spaced rows and so the same units as for a table in memory.
The fit does not depend on how a table is cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame, Problem, standard_places
from regimix.data.validation import (
    LARGEST_COUNT,
    Table,
    check_present,
    check_weights,
    read_target,
)
from regimix.engines.base import Engine, Follower, Nothing, T
from regimix.engines.memory import MemoryEngine
from regimix.engines.partition_selection import PartitionFollower, find_cuts
from regimix.engines.parts import Parts, RawRows, name_of
from regimix.engines.row_sampling import Drawn
from regimix.engines.selection import BlockValues, Cut, Mask, masked_mass
from regimix.errors import DataError
from regimix.threads import fitting_threads

__all__ = ["PartitionEngine", "open_parts"]

Floats = NDArray[np.float64]

# Rows of the draw that predicts thresholds, where a fit has not drawn any itself.
PREDICTING_ROWS = 20_000
# Seconds for the passes that turn what was found into an answer when the time is over.
LAST_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class _BlockMaker:
    """Makes a block of rows of the numbers of a part.

    Weights are divided by ``weight_most`` and multiplied by ``weight_unit``, so that relative
    importances have a mean of one; in two steps, so that no intermediate number overflows.
    """

    frame: Frame
    weight_most: float = 1.0
    weight_unit: float = 1.0
    gone: tuple[Mask, ...] = ()  # rows that were left out, in turn

    def __call__(self, rows: RawRows, first: int) -> MemoryEngine:
        """Make the block; ``first`` is the place of its first row in the whole table."""
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


def _on_block(
    make: _BlockMaker,
    method: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    rows: RawRows,
    first: int,
) -> Any:
    """Make the block of a part, and let it "fold" or "map_rows" a function."""
    if not rows.n_rows and method == "fold":
        return Nothing()
    with fitting_threads(make.frame.n_columns):
        return getattr(make(rows, first), method)(function, *args)


class PartitionEngine(Engine):
    """Answer the questions of ``engines.base`` from parts of a table.

    ``firsts`` are the places of the parts' first rows in the whole table.
    """

    def __init__(self, parts: Parts, maker: _BlockMaker, firsts: Sequence[int]) -> None:
        self.parts = parts
        self.problem: Frame = maker.frame
        self._maker = maker
        self._firsts = firsts

    def fold(self, function: Callable[..., T], *args: Any) -> T:
        """Add up ``function(block, *args)`` over blocks of rows."""
        task = partial(_on_block, self._maker, "fold", function, args)
        result: T = self.parts.fold(task, self._firsts)
        return result

    def map_rows(self, function: Callable[..., NDArray[Any]], *args: Any) -> Any:
        """Concatenate ``function(block, *args)``, one value for each row, where the rows are."""
        lengths = np.diff([*self._firsts, self.problem.n_rows]).tolist()
        frame = self.problem
        empty = Problem.framed(frame, np.empty((0, frame.n_features)), np.empty(0))
        kind = function(MemoryEngine(empty), *args).dtype
        task = partial(_on_block, self._maker, "map_rows", function, args)
        return self.parts.map_rows(task, lengths, kind, self._firsts)

    def choose(
        self, values: BlockValues, args: tuple[Any, ...], mass: float, floor: float = 0.0
    ) -> Cut:
        """Keep the rows of smallest ``values(block, *args)`` up to a total weight."""
        return find_cuts(self, values, [args], mass, [floor])[0]

    def follow(self, n_starts: int, mass: float, *, narrow: bool = False) -> Follower:
        """Begin to follow starts that keep rows of total weight ``mass`` each."""
        del narrow  # every selection is a pass over the parts, and knows its objective
        return PartitionFollower(self, n_starts, mass)

    def without(self, rows: Mask) -> PartitionEngine:
        """Leave rows out; the table, its units and its number of rows stay."""
        maker = self._maker
        mass, count = self.fold(_size_of, rows)
        frame = replace(
            self.problem,
            weighted=True,
            mass=self.problem.mass - mass,
            n_present=self.problem.n_present - count,
        )
        maker = replace(maker, frame=frame, gone=(*maker.gone, rows))
        return PartitionEngine(self.parts, maker, self._firsts)

    def hurry(self) -> None:
        """Let the last passes finish, within a minute if there was a limit."""
        self.parts.watch = None
        if self.parts.deadline is not None:
            self.parts.deadline = time.monotonic() + LAST_SECONDS

    def block_of(self, drawn: Drawn) -> MemoryEngine:
        """Make a block of drawn rows, in the units of the table."""
        problem = Problem.framed(self.problem, drawn.X, drawn.y, drawn.weights)
        return MemoryEngine(problem, numbers=drawn.numbers)

    def predicting(self) -> tuple[MemoryEngine, Floats]:
        """Return a block of drawn rows, and the weights of all their copies."""
        drawn = self._last_draw[2] if self._last_draw else self.draw(PREDICTING_ROWS, 0)
        drawn = drawn.distinct(PREDICTING_ROWS)
        return self.block_of(drawn), drawn.weights


def _size_of(block: MemoryEngine, rows: Mask) -> tuple[float, int]:
    """Return the weight and the number of some rows of a block."""
    return masked_mass(block, rows), int(np.count_nonzero(rows.mask(block)))


# --- making the engine ----------------------------------------------------------------------------


def open_parts(
    parts: Parts, names: tuple[str, ...], *, fit_intercept: bool = True
) -> PartitionEngine:
    """Check the rows of all parts, find their units, and make an engine of them."""
    surveys: list[_Survey] = parts.fold(partial(_survey, names, parts.part_names)) or []
    n_rows = sum(survey.n_rows for survey in surveys)
    if n_rows < 2:
        raise DataError(
            f"X has {n_rows} row(s) in {len(surveys)} part(s) (n_samples={n_rows}) while a minimum "
            "of 2 is required; pass more rows."
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
        names=names,
        n_rows=n_rows,
        n_present=sum(survey.n_present for survey in surveys),
        weighted=weighted,
        counts=counts,
        mass=mass,
        fit_intercept=bool(fit_intercept),
    )
    firsts = np.cumsum([0, *(survey.n_rows for survey in surveys)])[:-1]
    return PartitionEngine(parts, _BlockMaker(frame, most, unit), firsts.tolist())


@dataclass(frozen=True, eq=False)
class _Survey:
    """Extents and weights of one part; extents have the response last, and none without rows."""

    n_rows: int
    lowest: Floats
    highest: Floats
    n_present: int
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
        return _Survey(0, np.empty(0), np.empty(0), 0, 0.0, 0.0, True, True)
    lowest, highest = Table(rows.X, names).extent()
    y = read_target(rows.y, rows.n_rows)
    weights = np.ones(rows.n_rows)
    if rows.weights is not None:
        weights = check_weights(np.asarray(rows.weights), rows.n_rows)
    return _Survey(
        rows.n_rows,
        np.append(lowest, y.min()),
        np.append(highest, y.max()),
        int(np.count_nonzero(weights)),
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
