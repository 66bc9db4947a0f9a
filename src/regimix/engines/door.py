"""The data door for tables in parts: two passes check the rows and find their units.

The same checks, the same few thousand evenly spaced rows and so the same units as for a table in
memory: the fit does not depend on how a table is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.partition import BlockMaker, PartitionEngine
from regimix.engines.parts import Parts, RawRows, Task, name_of
from regimix.errors import DataError, Message, Setting
from regimix.frame import Frame
from regimix.intake import LARGEST_COUNT, Table, check_weights, read_target
from regimix.problem import WHOLE_KEYS, Units, standard_places, tells_apart

__all__ = ["open_parts"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Survey:
    """What one part looks like; extents have the response last, and are empty without rows."""

    n_rows: int
    lowest: Floats
    highest: Floats
    n_present: int
    weight_most: float
    weight_sum: float
    whole_weights: bool
    plain_weights: bool


def open_parts(
    parts: Parts, names: tuple[str, ...], *, fit_intercept: bool = True
) -> PartitionEngine:
    """Check the rows of all parts, find their units, and make an engine of them."""
    surveys: list[_Survey] = parts.fold(_Look(names, parts.part_names)) or []
    n_rows = sum(survey.n_rows for survey in surveys)
    if n_rows < 2:
        raise DataError(
            f"X has {n_rows} row(s) in {len(surveys)} part(s) (n_samples={n_rows}) while a minimum "
            "of 2 is required; pass more rows."
        )
    weighing = _Weighing.of(surveys)
    standard = _standard_rows(parts, surveys)
    features, target = _units(surveys, standard, weighing, centred=bool(fit_intercept))
    features.check(None, [f"column {name!r} of X" for name in names])
    target.check(None, ["y"])
    large = weighing.mass > WHOLE_KEYS
    frame = Frame(
        n_rows=n_rows,
        n_present=weighing.n_present,
        weighted=weighing.weighted,
        counts=weighing.counts,
        mass=weighing.mass,
        fit_intercept=bool(fit_intercept),
        center=features.center,
        scale=features.scale,
        target_center=float(target.center[0]),
        target_scale=float(target.scale[0]),
        feature_names=names,
        distinct_response=large and tells_apart(standard[:, :-2], standard[:, -2]),
    )
    firsts = np.cumsum([0, *(survey.n_rows for survey in surveys)])[:-1]
    maker = BlockMaker(frame, tuple(firsts.tolist()), weighing.most, weighing.unit)
    return PartitionEngine(parts, maker)


# --- the first pass: extents ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Look(Task):
    """The task of the first pass: check a part, and say what it looks like."""

    names: tuple[str, ...]
    part_names: tuple[str, ...] | None

    def __call__(self, rows: RawRows, part: int) -> list[_Survey]:
        try:
            return [self._survey(rows)]
        except DataError as error:
            where = rows.name or name_of(part, self.part_names)
            raise type(error)(f"in {where}: {error}") from error

    def _survey(self, rows: RawRows) -> _Survey:
        if rows.X.ndim != 2 or rows.X.shape[1] != len(self.names):
            raise DataError(
                f"the part has the shape {rows.X.shape}, but the table has {len(self.names)} "
                "feature(s); all parts must have the same columns."
            )
        if not rows.n_rows:
            return _Survey(0, np.empty(0), np.empty(0), 0, 0.0, 0.0, True, True)
        lowest, highest = Table(rows.X, self.names).extent()
        y = read_target(rows.y, rows.n_rows)
        weights = np.ones(rows.n_rows)
        if rows.weights is not None:
            weights = check_weights(np.asarray(rows.weights))
        if weights.shape != (rows.n_rows,):
            raise DataError(
                f"sample_weight must be one number a row, shape ({rows.n_rows},); got "
                f"{weights.shape}."
            )
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


@dataclass(frozen=True)
class _Weighing:
    """How the weights of all parts are read; as ``intake.read_weights`` does in memory.

    They are divided by ``most`` and multiplied by ``unit``.
    """

    weighted: bool
    counts: bool
    most: float
    unit: float
    mass: float
    n_present: int

    @classmethod
    def of(cls, surveys: list[_Survey]) -> _Weighing:
        n_present = sum(survey.n_present for survey in surveys)
        if n_present < 2:
            raise DataError(
                Message(
                    Setting("sample_weight"),
                    f" is zero in all rows but {n_present}: a row of weight zero is absent, and a "
                    f"minimum of 2 rows is required (n_samples={n_present}). Pass positive "
                    "weights.",
                )
            )
        weighted = not all(survey.plain_weights for survey in surveys)
        most = max(survey.weight_most for survey in surveys)
        relative = sum(survey.weight_sum * (survey.weight_most / most) for survey in surveys)
        whole = all(survey.whole_weights for survey in surveys)
        if whole and most < LARGEST_COUNT and relative * most < LARGEST_COUNT:
            total = float(sum(round(s.weight_sum * s.weight_most) for s in surveys))
            return cls(weighted, True, 1.0, 1.0, total, n_present)
        return cls(weighted, False, most, n_present / relative, float(n_present), n_present)


# --- the second pass: a few thousand rows ---------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Pick(Task):
    """The task of the second pass: hand over some rows, with response and weight."""

    places: Sequence[NDArray[np.intp]] | dict[int, NDArray[np.intp]]

    def for_part(self, part: int) -> _Pick:
        """Return the task for one part."""
        return _Pick({part: self.places[part]})

    def __call__(self, rows: RawRows, part: int) -> list[Floats]:
        weights = np.ones(rows.n_rows) if rows.weights is None else np.asarray(rows.weights)
        picked = np.flatnonzero(weights)[self.places[part]]
        y: Any = rows.y
        columns = (rows.X[picked], np.asarray(y)[picked], weights[picked])
        return [np.column_stack(columns).astype(np.float64)]


def _standard_rows(parts: Parts, surveys: list[_Survey]) -> Floats:
    """Gather evenly spaced rows among those present."""
    ends = np.cumsum([survey.n_present for survey in surveys])
    wanted = standard_places(int(ends[-1]))
    cuts = np.searchsorted(wanted, ends)
    places = tuple(
        wanted[low:high] - first
        for low, high, first in zip([0, *cuts[:-1]], cuts, [0, *ends[:-1].tolist()], strict=True)
    )
    return np.concatenate(parts.fold(_Pick(places)))


def _units(
    surveys: list[_Survey], standard: Floats, weighing: _Weighing, *, centred: bool
) -> tuple[Units, Units]:
    """Find the units of the features and of the response."""
    lowest = np.min([survey.lowest for survey in surveys if survey.n_rows], axis=0)
    highest = np.max([survey.highest for survey in surveys if survey.n_rows], axis=0)
    weights = None
    if weighing.weighted:
        weights = standard[:, -1] / weighing.most * weighing.unit
    features, target = (
        Units.of_sample(
            standard[:, columns], weights, lowest[extent], highest[extent], centred=centred
        )
        for columns, extent in (
            (slice(None, -2), slice(None, -1)),
            (slice(-2, -1), slice(-1, None)),
        )
    )
    return features, target.without_jitter()
