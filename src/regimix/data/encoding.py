"""From columns of a data frame to numbers: what each becomes, which rows can be used."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.cells import Cells, FrameCells, is_float, spelled
from regimix.data.recipe import Column, Recipe, check_columns
from regimix.data.validation import (
    Table,
    chunks,
    holds_numbers,
    is_frame,
    read_names,
    read_target,
    read_vector,
)
from regimix.errors import DataError, DataKindError
from regimix.words import count, fixed

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The label of a row that was left out because a value is missing.
LEFT_OUT = -2
# Most values of a text column that becomes 0/1 columns: each value needs rows of its own in each
# regime.
MOST_LEVELS = 12
# A text column in which this share of the cells are numbers is a column of numbers with mistakes.
MOSTLY_NUMBERS = 0.9
# Columns that a note about missing values names.
MOST_NAMED = 4
# Whole numbers that all have the same number of digits may be codes, such as postcodes, from this
# many digits and different values on; shorter ones are ages, years, weights.
CODE_DIGITS, CODE_VALUES = 5, 20
# Words in the name of a column of whole numbers that is a code.
CODE_NAME = re.compile(r"(?i)(?:^|[\W_])(?:id|zip|zipcode|postcode|plz|phone|fips)(?:$|[\W_])")
FLAGS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


# --- choosing -------------------------------------------------------------------------------------


def classify(cells: Cells, *, asked: bool) -> tuple[Column | None, str]:
    """Say what a column becomes, or why it cannot be a feature.

    A column that was asked for is used if it can be; of the others, not what is rarely meant:
    dates, columns without a name or of one value, text that differs in every row.
    """
    name, kind = cells.name, cells.kind
    if not cells.present.any():
        return None, "has no values"
    if not (asked or name):
        return None, "has no name (row numbers that a program wrote, perhaps)"
    if cells.is_text:
        return _classify_text(cells, asked=asked)
    if kind == "date":
        if asked:
            return Column(name, "date"), ""
        words = f"holds {cells.held}; to use it as days since 1970, name it a feature"
        return None, words
    if kind == "other":
        return None, f"holds {cells.held}"
    if not asked and np.nanmin(cells.values) == np.nanmax(cells.values):
        return None, "is the same in all rows"
    return Column(name, "flag" if kind == "flag" else "number"), ""


def _classify_text(cells: Cells, *, asked: bool) -> tuple[Column | None, str]:
    total = int(cells.counts.sum())
    if cells.kind == "text" and cells.may_be_numbers():
        mark, numbers = cells.spelled
        if cells.counts[~np.isnan(numbers)].sum() >= MOSTLY_NUMBERS * total:
            return Column(cells.name, mark=mark), ""
    many = len(cells.texts)
    if many == 1:
        return None, "is the same in all rows"
    if many > MOST_LEVELS:
        return None, f"is text of {many} different values (at most {MOST_LEVELS} are used)"
    if not asked and many == total:
        return None, "is text that differs in every row, as names and remarks do"
    pairs = zip(cells.texts, cells.counts.tolist(), strict=True)
    ordered = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
    return Column(cells.name, "levels", tuple(text for text, _ in ordered)), ""


def remark(cells: Cells, column: Column) -> str:
    """Say how text was read as numbers, or that numbers may be a code; mostly nothing."""
    if column.kind != "number":
        return ""
    values = cells.values
    if cells.is_text:
        _, numbers = cells.spelled
        pairs = zip(cells.texts, numbers.tolist(), strict=True)
        odd = [(text, value) for text, value in pairs if value == value and not is_float(text)]
        if odd:
            text, value = max(odd, key=lambda pair: (len(pair[0]), pair[0]))
            return (
                f"Column {cells.name!r} is text that spells numbers: {text!r} is read as "
                f"{value:.12g}."
            )
        zeros = [text for text in cells.texts if re.fullmatch(r"0\d+", text)]
        same = len({len(text) for text in cells.texts}) == 1
        if zeros and same and len(cells.texts) > MOST_LEVELS:
            return _may_be_code(cells.name, f"such as {zeros[0]!r}, with a zero in front")
        values = numbers
    found = values[~np.isnan(values)]
    if not found.size or found.min() < 1 or not (found == np.floor(found)).all():
        return ""
    digits = len(str(int(found.min())))
    constant = digits >= CODE_DIGITS and found.max() < 10.0**digits
    if not (constant or CODE_NAME.search(cells.name)):
        return ""
    if len(np.unique(found)) < CODE_VALUES:
        return ""
    what = f"whole numbers of {digits} digits each" if constant else "whole numbers of that name"
    return _may_be_code(cells.name, what)


def _may_be_code(name: str, what: str) -> str:
    return (
        f"Column {name!r} may be a code ({what}): it is used as a number. Leave it out if sums and "
        "differences of it have no meaning."
    )


# --- columns as numbers, and the rows that can be used --------------------------------------------


class Encoder:
    """Turns columns of a frame into numbers, with notes on cells that are none.

    A level that was not there before (``unknown``) is the commonest one, with a "note"; an "error";
    or "missing". Messages call the table ``source``.
    """

    def __init__(
        self, cells: Any, n_rows: int, source: str, notes: list[str], unknown: str = "note"
    ) -> None:
        self.cells, self.n_rows, self.source, self.notes = cells, n_rows, source, notes
        self.unknown = unknown
        # Numbers without which a row cannot be used, by column.
        self.needed: dict[str, Floats] = {}

    def features(self, columns: Sequence[Column]) -> Floats:
        """Return what the columns become, (n, d); what cannot be read is NaN."""
        made = {column.name: self.read(column) for column in columns}
        # A cell of text that is missing is missing in all the features that the column becomes.
        self.needed |= {name: features[0] for name, features in made.items()}
        return np.stack([values for features in made.values() for values in features], axis=1)

    def read(self, column: Column) -> list[Floats]:
        """Turn a column into the features it stands for; note cells that cannot be read."""
        cells = self.cells[column.name]
        features = _features(cells, column)
        if column.kind == "levels" and cells.is_text:
            self._check_levels(cells, column, features)
            return features
        bad = np.isnan(features[0]) & cells.present
        if cells.is_text and bad.any():
            self.notes.append(
                f"Column {column.name!r} holds what is not a number in "
                f"{np.count_nonzero(bad)} of {bad.size} rows (first: {cells.example(bad)}); "
                "such cells count as missing."
            )
        return features

    def numbers(self, name: str, *, needed: bool = True) -> Floats:
        """Read a column as numbers, without which a row cannot be used if they are needed."""
        (values,) = self.read(Column(name))
        if needed:
            self.needed[name] = values
        return values

    def _check_levels(self, cells: Cells, column: Column, features: list[Floats]) -> None:
        new = np.array([text not in column.levels for text in (*cells.texts, *column.levels[:1])])
        unknown = new[cells.values]  # a missing cell has the last place: not new
        if not unknown.any():
            return
        if self.unknown == "missing":
            for values in features:
                values[unknown] = np.nan
            return
        what = (
            f"column {column.name!r} holds a value that was not there before in "
            f"{np.count_nonzero(unknown)} of {unknown.size} rows (first: "
            f"{cells.example(unknown)})"
        )
        if self.unknown == "error":
            known = ", ".join(map(repr, column.levels))
            raise DataError(f"{what}; known are {known}. Correct them, or drop those rows.")
        self.notes.append(f"C{what[1:]}: it is treated like {column.levels[0]!r}.")

    @cached_property
    def lacking(self) -> dict[str, Bools]:
        """Where a value that is needed is missing or infinite, by column."""
        holes = {name: ~np.isfinite(values) for name, values in self.needed.items()}
        return {name: hole for name, hole in holes.items() if hole.any()}

    def usable(self, missing: str = "drop", left: str = "dropped") -> Bools:
        """Return in which rows nothing that is needed is missing; note the others."""
        usable = np.ones(self.n_rows, dtype=bool)
        for hole in self.lacking.values():
            usable &= ~hole
        if self.lacking:
            self._note_missing(usable, missing, left)
        return usable

    def _note_missing(self, usable: Bools, missing: str, left: str) -> None:
        """Say where values are missing: in a note, or as an error if no row is left."""
        total, dropped = usable.size, int(np.count_nonzero(~usable))
        lacking = {name: int(np.count_nonzero(hole)) for name, hole in self.lacking.items()}
        worst = sorted(lacking, key=lambda name: -lacking[name])
        where = ", ".join(f"{lacking[name]} in {name!r}" for name in worst[:MOST_NAMED])
        if len(worst) > MOST_NAMED:
            where += f" and {count(len(worst) - MOST_NAMED, 'other column')}"
        if missing == "error":
            first = int(np.flatnonzero(~usable)[0]) + 1
            raise DataError(
                f"a value is missing or infinite in {dropped} of the {total} rows of {self.source} "
                f"({where}); the first is row {first}. Fill in such values, leave those columns "
                "out, or have such rows dropped."
            )
        if dropped == total:
            raise DataError(
                f"each of the {total} rows of {self.source} has a missing or infinite value "
                f"({where}); leave out the columns with most of them."
            )
        advice = f"; leave out {worst[0]!r} to keep more of them" if 2 * dropped > total else ""
        rows = f"{fixed(dropped, 0)} of {count(total, 'row')}"
        self.notes.append(
            f"Rows with a missing or infinite value are {left}: {rows} ({where}){advice}."
        )

    def reasons(self, usable: Bools) -> NDArray[Any]:
        """Say of each row why it was left out, as text; "" if it was not."""
        reasons = np.full(self.n_rows, "", dtype=object)
        out = np.flatnonzero(~usable)
        if out.size:
            holes = np.stack([hole[out] for hole in self.lacking.values()], axis=1)
            patterns, which = np.unique(holes, axis=0, return_inverse=True)
            names = np.array([repr(name) for name in self.lacking])
            words = [f"{', '.join(names[pattern])} missing or infinite" for pattern in patterns]
            reasons[out] = np.array(words, dtype=object)[which.ravel()]
        return reasons


def _features(cells: Cells, column: Column) -> list[Floats]:
    """Turn a column into the features it stands for; what cannot be read is NaN."""
    if column.kind == "levels":
        if not cells.is_text:
            # Categories may have been numbers.
            cells = _text_again(cells)
        absent = np.where(cells.values < 0, np.nan, 0.0)
        place = {text: i for i, text in enumerate(cells.texts)}
        return [absent + (cells.values == place.get(level, -2)) for level in column.levels[1:]]
    if column.kind == "date":
        if cells.kind != "date":
            raise DataKindError(
                f"column {cells.name!r} holds {cells.held} where dates are expected; write dates "
                "as 2024-12-31."
            )
        return [cells.values]
    if cells.is_text:
        if column.kind == "flag":
            numbers = np.array([FLAGS.get(text.lower(), math.nan) for text in cells.texts])
        else:
            numbers = spelled(cells.texts, column.mark) if column.mark else cells.spelled[1]
        return [np.append(numbers, math.nan)[cells.values]]
    if cells.kind not in ("number", "flag"):
        raise DataKindError(
            f"column {cells.name!r} holds {cells.held}, which are not numbers; convert it, or "
            "leave it out."
        )
    return [cells.values]


def _text_again(cells: Cells) -> Cells:
    """See numbers as the text that a level would be: 1.0 as "1"."""
    found, places = np.unique(cells.values[cells.present], return_inverse=True)
    numbers = np.full(cells.values.shape, -1, dtype=np.intp)
    numbers[cells.present] = places
    texts = tuple(f"{value:.17g}" for value in found.astype(np.float64).tolist())
    return replace(cells, kind="text", values=numbers, texts=texts)


# --- frames that are passed in Python -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows of a data frame as numbers."""

    table: Table  # the rows that can be used
    y: Any  # their responses, if there are any
    kept: Bools  # which of all rows those are
    reasons: NDArray[Any]  # why the others were left out
    recipe: Recipe
    notes: tuple[str, ...] = ()  # what was encoded
    # What could not be used: columns and rows that were left out, cells that are no numbers, texts
    # that were not there before.
    warnings: tuple[str, ...] = ()


def is_plain(X: Any, y: Any = None) -> bool:
    """Whether a frame, and its responses, hold numbers alone, all of them there."""
    if not holds_numbers(X):
        return False
    if X.isna().to_numpy().any() if hasattr(X, "iloc") else sum(X.null_count().row(0)):
        return False
    values = Table.read(X, fewest_rows=0).values
    if not all(np.isfinite(values[rows]).all() for rows in chunks(*values.shape)):
        return False
    try:
        return y is None or bool(np.isfinite(read_vector(y, "y")).all())
    except DataError:
        return False  # text, or a missing number among objects


def encode_table(X: Any, y: Any) -> Encoded | None:
    """Choose what the columns of a data frame become, for a fit, and do it.

    None if there is nothing to encode: X is no data frame, or holds numbers alone, all of them
    there. Every column of X was asked for; what cannot be used all the same is left out.
    """
    if not is_frame(X):
        return None
    read_names(X)
    _refuse_response_inside(X, y)
    if is_plain(X, y):
        return None
    cells = FrameCells(X)
    columns, notes, left_out = choose_columns(cells)
    if not columns:
        raise DataError(
            "X has no column that can be a feature: "
            f"{'; '.join(sentence[7:-1] for sentence in left_out[:4])}. Numbers, true/false, dates "
            "and text of few values can be used."
        )
    return encode_rows(X, Recipe(_name_of(y), columns), y, notes=notes, warnings=left_out)


def choose_columns(
    cells: FrameCells,
) -> tuple[tuple[Column, ...], tuple[str, ...], tuple[str, ...]]:
    """Choose what each column becomes; notes on that, and on columns that are left out."""
    columns: list[Column] = []
    notes, left_out = [], []
    for name in cells.labels:
        column, reason = classify(cells[name], asked=True)
        if column is None:
            left_out.append(f"Column {name!r} is left out: it {reason}.")
        else:
            columns.append(column)
            notes += [note for note in (column.note, remark(cells[name], column)) if note]
    return tuple(columns), tuple(notes), tuple(left_out)


def encode_rows(
    X: Any,
    recipe: Recipe,
    y: Any = None,
    *,
    notes: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> Encoded:
    """Read a data frame as a recipe says, with its responses if there are any.

    ``notes`` and ``warnings`` are those of the choice of columns.
    """
    cells = FrameCells(X)
    wanted = (column.name for column in recipe.columns)
    check_columns(cells.labels, wanted, "X", "a feature of the fit")
    encoder = Encoder(cells, len(X), "X", [*warnings])
    values = encoder.features(recipe.columns)
    target, said = (None, "") if y is None else _read_response(encoder, y)
    kept = encoder.usable(left="left out")
    reasons = encoder.reasons(kept)
    if not kept.all():
        values, target = values[kept], None if target is None else target[kept]
    table = Table(values, recipe.feature_names)
    notes += (said,) if said else ()
    return Encoded(table, target, kept, reasons, recipe, notes, tuple(encoder.notes))


def _read_response(encoder: Encoder, y: Any) -> tuple[Floats, str]:
    """Read the responses, NaN where one is missing; say how, if they were text."""
    label, said = _name_of(y), ""
    if hasattr(y, "to_numpy") and not hasattr(y, "columns"):
        cells = replace(Cells.of({label: y}, label), name=label)
        column, reason = classify(cells, asked=True)
        if column is None or column.kind not in ("number", "flag"):
            held = reason or f"holds {cells.held} (such as {cells.example(cells.present)})"
            raise DataKindError(
                f"y cannot be explained: it {held}, and regimix explains numbers. Pass a column of "
                "numbers."
            )
        said = remark(cells, column) if cells.is_text else ""
        (target,) = Encoder({label: cells}, len(cells.values), "y", encoder.notes).read(column)
    else:
        values = read_vector(y, "y")
        target = values if values.ndim == 1 else read_target(y, encoder.n_rows)
        target = np.asarray(target, dtype=np.float64)
    if target.size != encoder.n_rows:
        read_target(np.zeros(target.size), encoder.n_rows)  # refuses it: which number is wrong
    encoder.needed[label if label not in encoder.needed else f"y ({label})"] = target
    return target, said


def _name_of(y: Any) -> str:
    name = getattr(y, "name", None)
    return "y" if name is None else str(name)


def _refuse_response_inside(X: Any, y: Any) -> None:
    """Refuse a frame that holds the response among its columns: it would explain itself."""
    name = getattr(y, "name", None)
    if name is None or name not in list(X.columns) or len(X) != len(y):
        return
    same = np.asarray(X[name] == y)
    if same.all():
        raise DataError(
            f"X holds the response: its column {name!r} has the values of y, and would explain "
            f"itself. Leave it out: X.drop(columns={name!r}) in pandas, X.drop({name!r}) in polars."
        )
