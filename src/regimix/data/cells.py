"""A column of a data frame as plain arrays.

Frames of pandas and polars are read through their own methods: neither library is imported here.
Texts are looked at once for each different value, however many rows have it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regimix.data.recipe import Mark

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
MARKS: tuple[Mark, Mark] = (".", ",")
CellKind = Literal["number", "flag", "date", "text", "category", "other"]

# How polars counts: days, microseconds, nanoseconds.
UNITS_A_DAY = {"Date": 1.0, "Datetime": 86_400e6, "Duration": 86_400e6, "Time": 86_400e9}
# Cells that show whether a column of text may hold numbers.
LOOKED_AT = 1000
SIGNS = "$€£¥₹"
# Numbers as people write them, by their decimal mark: -$1,234.5, 1.234,5 €, 70.5 %, 1 234,5.
SPELLED = {
    mark: re.compile(
        rf"([-+]?)[\s{SIGNS}]*([-+]?(?:[1-9]\d{{0,2}}(?:[{other}'’\s]\d{{3}})+|\d+)?"
        rf"(?:{re.escape(mark)}\d*)?(?:[eE][-+]?\d+)?)[\s%{SIGNS}]*"
    )
    for mark, other in ((".", ","), (",", "."))
}


@dataclass(frozen=True, eq=False)
class Cells:
    """A column of a frame as plain arrays."""

    name: str
    kind: CellKind
    held: str  # what messages call the values: "text", "Date values"
    # Numbers, 0 and 1, or days, NaN where they are missing; of text and categories whole numbers
    # that stand for ``texts``, -1 where they are missing; of others whether a value is there.
    values: NDArray[Any]
    series: Any  # the column itself
    texts: tuple[str, ...] = ()  # different values of text, without blanks around them

    @classmethod
    def of(cls, frame: Any, name: Any) -> Cells:
        """Read a column of a pandas or polars frame."""
        series = frame[name]
        return (_pandas_cells if hasattr(series, "iloc") else _polars_cells)(str(name), series)

    @property
    def is_text(self) -> bool:
        """Whether it holds text, or categories."""
        return self.kind in ("text", "category")

    @cached_property
    def present(self) -> Bools:
        """Which cells have a value."""
        if self.is_text:
            return self.values >= 0
        return np.asarray(self.values if self.kind == "other" else ~np.isnan(self.values))

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """How often each text is there."""
        return np.bincount(self.values[self.present], minlength=len(self.texts))

    @cached_property
    def spelled(self) -> tuple[Mark, Floats]:
        """The decimal mark that reads most cells as numbers, and the number of each text."""
        both = [(mark, spelled(self.texts, mark)) for mark in MARKS]
        return max(both, key=lambda one: self.counts[~np.isnan(one[1])].sum())

    def may_be_numbers(self) -> bool:
        """Look at a few cells: where less than half are numbers, nine in ten of all are not."""
        places = self.values[self.present]
        few = places[np.linspace(0, places.size - 1, min(places.size, LOOKED_AT)).astype(np.intp)]
        texts = [self.texts[place] for place in few]
        return any(2 * np.isfinite(spelled(texts, mark)).sum() >= few.size for mark in MARKS)

    def example(self, bad: Bools) -> str:
        """Show the first cell of those marked, and where it is."""
        row = int(np.flatnonzero(bad)[0])
        cell = self.series.iloc[row] if hasattr(self.series, "iloc") else self.series[row]
        return f"{str(cell)[:40]!r} in row {row + 1}"


def _polars_cells(name: str, series: Any) -> Cells:
    kind = series.dtype.base_type().__name__
    held = f"{kind} values"
    if kind in ("String", "Categorical", "Enum"):
        text = series.cast(str)
        places = np.nan_to_num(text.rank("dense").to_numpy(), nan=0).astype(np.intp) - 1
        found = text.drop_nulls().unique().sort().to_list()
        return _text_cells(name, "text" if kind == "String" else "category", places, found, series)
    if kind in UNITS_A_DAY:
        if kind in ("Datetime", "Duration"):
            series = series.dt.cast_time_unit("us")
        days = _polars_floats(series.to_physical()) / UNITS_A_DAY[kind]
        return Cells(name, "date", held, days, series)
    if kind == "Boolean" or series.dtype.is_numeric() or kind == "Null":
        plain: CellKind = "flag" if kind == "Boolean" else "number"
        return Cells(name, plain, held, _polars_floats(series), series)
    return Cells(name, "other", held, series.is_not_null().to_numpy(), series)


def _polars_floats(series: Any) -> Floats:
    return np.asarray(series.cast(float, strict=False).to_numpy(), dtype=np.float64)


def _pandas_cells(name: str, series: Any) -> Cells:
    dtype = series.dtype
    kind, words = getattr(dtype, "kind", "O"), str(dtype).lower()
    if words == "category" or words.startswith("dictionary"):
        return _pandas_text(name, "category", series)
    if words.startswith(("str", "large_string")):
        return _pandas_text(name, "text", series)
    if kind in "biuf" or words.startswith("decimal"):
        values = series.to_numpy(dtype="float64", na_value=np.nan)
        return Cells(name, "flag" if kind == "b" else "number", f"{dtype} values", values, series)
    if kind in "Mm" or words.startswith("date"):
        days = _as_days(series, "timedelta64[us]" if kind == "m" else "datetime64[us]")
        return Cells(name, "date", f"{dtype} values", days, series)
    present = series.notna().to_numpy(dtype=bool)
    if kind != "O" or words != "object":
        return Cells(name, "other", f"{dtype} values", present, series)
    return _object_cells(name, series, present)


def _object_cells(name: str, series: Any, present: Bools) -> Cells:
    """Find out what a column of Python objects holds: all of one kind, or text and numbers."""
    objects = series.to_numpy()[present]
    kinds = sorted(set(map(type, objects)), key=lambda kind: kind.__name__)
    held = f"{' and '.join(kind.__name__ for kind in kinds[:3])} values"

    def all_are(*those: Any) -> bool:
        return all(issubclass(kind, those) for kind in kinds)

    def spread(values: Any) -> Floats:
        whole = np.full(present.size, np.nan)
        whole[present] = values
        return whole

    if all_are(bool, np.bool_):
        return Cells(name, "flag" if kinds else "number", held, spread(objects), series)
    for kind, dtype in ((dt.date, "datetime64[us]"), (dt.timedelta, "timedelta64[us]")):
        if all_are(kind):
            moments = [_in_utc(moment) for moment in objects]
            return Cells(name, "date", held, spread(_as_days(moments, dtype)), series)
    # Decimal numbers are no Real to Python.
    numbers = (Real, np.number, *(kind for kind in kinds if kind.__name__ == "Decimal"))
    if all_are(*numbers) and not all_are(np.complexfloating):
        return Cells(name, "number", held, spread(objects.astype(np.float64)), series)
    if all_are(str, *numbers):
        return _pandas_text(name, "text", series)
    return Cells(name, "other", held, present, series)


def _pandas_text(name: str, kind: CellKind, series: Any) -> Cells:
    places, found = series.factorize()
    return _text_cells(name, kind, places, list(map(str, found)), series)


def _text_cells(name: str, kind: CellKind, places: Any, found: list[str], series: Any) -> Cells:
    """Give numbers to texts without the blanks around them; blank cells are missing."""
    texts: dict[str, int] = {}
    # Missing cells have the last place.
    numbers = np.full(len(found) + 1, -1, dtype=np.intp)
    for i, text in enumerate(found):
        bare = text.strip()
        if bare:
            numbers[i] = texts.setdefault(bare, len(texts))
    return Cells(name, kind, "text", numbers[np.asarray(places)], series, tuple(texts))


def _as_days(values: Any, dtype: str) -> Floats:
    """Days since 1970-01-01 of dates, and days of durations; NaN where they are missing."""
    moments = np.asarray(values, dtype=dtype)
    days = moments.astype(np.int64) / UNITS_A_DAY["Datetime"]
    return np.where(np.isnat(moments), np.nan, days)


def _in_utc(moment: Any) -> Any:
    """Return a moment without its time zone, of which NumPy knows none."""
    if getattr(moment, "tzinfo", None) is None:
        return moment
    return moment.astimezone(dt.UTC).replace(tzinfo=None)


def is_float(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def spelled(texts: Iterable[str], mark: Mark) -> Floats:
    """Read texts as numbers, also "-$1,234.5" and "70.5 %"; NaN where they are none."""
    return np.array([_number(text, mark) for text in texts], dtype=np.float64)


def _number(text: str, mark: Mark) -> float:
    if mark == "." and "_" not in text:
        try:
            return float(text)
        except ValueError:
            pass
    found = SPELLED[mark].fullmatch(text)
    digits = found[2] if found else ""
    if not found or not any(sign.isdigit() for sign in digits):
        return math.nan
    plain = re.sub(rf"[^\d{re.escape(mark)}eE+-]", "", digits).replace(",", ".")
    try:
        return float(f"{found[1]}{plain}")
    except ValueError:  # two signs
        return math.nan


class FrameCells(dict[str, Cells]):
    """The columns of a frame by their names as text, each read when it is first asked for."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.labels = {str(name): name for name in frame.columns}

    def __missing__(self, name: str) -> Cells:
        self[name] = Cells.of(self.frame, self.labels[name])
        return self[name]
