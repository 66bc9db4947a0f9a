"""Choosing what each column of a table becomes, and saying so."""

from __future__ import annotations

import polars as pl

from regimix.errors import DataError, DataKindError
from regimix.tables.columns import as_text, is_text
from regimix.tables.files import Loaded
from regimix.tables.recipe import Column, Recipe
from regimix.tables.roles import Roles

__all__ = ["choose"]

# A text column of at most so many values becomes 0/1 columns: each value needs rows of its own to
# say something about each regime.
MOST_LEVELS = 12
# A text column in which this share of the cells are numbers is a column of numbers with mistakes.
MOSTLY_NUMBERS = 0.9


def choose(loaded: Loaded, roles: Roles) -> tuple[Recipe, list[str]]:
    """Decide what each column becomes; return it with notes on what is not plain."""
    frame, source = loaded.frame, loaded.source
    if frame.width == 0 or frame.height == 0:
        raise DataError(f"{source} has {frame.width} columns and no rows; there is nothing to fit.")
    if frame.height == 1:
        raise DataError(f"{source} has only one row; regimes are found where there are many.")
    roles.check(dict.fromkeys(frame.columns), source)
    _check_target(frame[roles.target])
    if roles.weights is not None:
        _check_number(frame[roles.weights], "the weights")
    columns: list[Column] = []
    notes: list[str] = []
    reasons: dict[str, str] = {}
    for name in roles.candidates(frame.columns):
        asked = roles.features is not None
        column, reason = _classify(frame[name], asked=asked)
        if column is not None:
            columns.append(column)
            if column.kind != "number":
                notes.append(_encoding(column))
        elif asked:
            raise DataKindError(f"column {name!r} cannot be a feature: it {reason}.")
        else:
            reasons[name] = reason
    if not columns:
        raise DataError(
            f"{source} has no column besides {roles.target!r} that can be a feature"
            f"{''.join(f'; {name!r} {reason}' for name, reason in list(reasons.items())[:4])}. "
            "Numbers, true/false, and text of few values can be used."
        )
    notes += [f"Column {name!r} is left out: it {reason}." for name, reason in reasons.items()]
    return Recipe(roles.target, tuple(columns), roles.weights, roles.key), notes


def _check_target(series: pl.Series) -> None:
    if series.dtype != pl.Boolean:
        _check_number(series, "the target")


def _check_number(series: pl.Series, role: str) -> None:
    column, reason = _classify(series, asked=True)
    if column is None or column.kind not in ("number", "flag"):
        first = series.drop_nulls()
        shown = f" (such as {str(first[0])[:40]!r})" if first.len() else ""
        held = "text" if is_text(series) else f"{_plain(series.dtype)} values"
        reason = reason or f"holds {held}{shown}"
        raise DataKindError(
            f"column {series.name!r} cannot be {role}: it {reason}, and regimix explains numbers. "
            "Name a column of numbers."
        )


def _classify(series: pl.Series, *, asked: bool) -> tuple[Column | None, str]:
    """Say what a column becomes, or why it cannot be a feature."""
    name, kind = series.name, series.dtype
    if series.null_count() == series.len():
        return None, "has no values"
    if not (asked or name):
        return None, "has no name (row numbers that a program wrote, perhaps)"
    if is_text(series):
        return _classify_text(series, asked=asked)
    if kind.is_temporal():
        if asked:
            return Column(name, "date"), ""
        return None, f"holds {_plain(kind)} values; to use it as days since 1970, name it a feature"
    if not (kind.is_numeric() or kind == pl.Boolean):
        return None, f"holds {_plain(kind)} values"
    if not asked and series.min() == series.max():
        return None, "is the same in all rows"
    return Column(name, "flag" if kind == pl.Boolean else "number"), ""


def _classify_text(series: pl.Series, *, asked: bool) -> tuple[Column | None, str]:
    text = as_text(series).drop_nulls()
    if not text.len():
        return None, "has no values"
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.count() >= MOSTLY_NUMBERS * text.len():
        return Column(series.name), ""
    counts = text.value_counts()
    if counts.height == 1:
        return None, "is the same in all rows"
    if counts.height > MOST_LEVELS:
        return None, f"is text of {counts.height} different values (at most {MOST_LEVELS} are used)"
    if not asked and counts.height == text.len():
        return None, "is text that differs in every row, as names and remarks do"
    ordered = counts.sort("count", series.name, descending=[True, False])
    return Column(series.name, "levels", tuple(ordered[series.name].to_list())), ""


def _plain(kind: pl.DataType) -> str:
    """Name a type without its details: "Datetime", "List"."""
    return str(kind).partition("(")[0]


def _encoding(column: Column) -> str:
    if column.kind == "flag":
        return f"Column {column.name!r} is 1 where true, 0 where false."
    if column.kind == "date":
        return f"Column {column.name!r} is read as days since 1970-01-01."
    first, *others = column.levels
    # As repr shows them: a name may hold what a terminal would obey.
    made = ", ".join(repr(name)[1:-1] for name in column.feature_names)
    many = len(others) > 1
    return (
        f"Column {column.name!r} is text of {len(column.levels)} values: it becomes {len(others)} "
        f"column{'s' * many} of 0 and 1 ({made}); {first!r} is 0 in {'all' if many else 'it'}."
    )
