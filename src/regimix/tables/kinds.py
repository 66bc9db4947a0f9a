"""Which columns of Parquet files can be used, told by their footers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from regimix.errors import DataError, DataKindError
from regimix.tables.footers import Footer, joined_extent
from regimix.tables.recipe import Column, Recipe
from regimix.tables.roles import Roles

__all__ = ["check_number", "choose_columns", "number_type"]

# A folder whose name holds the value of a column.
VALUE_FOLDER = re.compile(r"(?:^|[/\\])([^/\\=]+)=[^/\\]*(?=[/\\])")


def choose_columns(footers: list[Footer], roles: Roles, source: str) -> tuple[Recipe, list[str]]:
    """Decide what each column is for, in the words that are used for tables in memory."""
    kinds = footers[0].kinds
    if not sum(sum(footer.group_rows) for footer in footers):
        raise DataError(f"{source} has {len(kinds)} columns and no rows; there is nothing to fit.")
    roles.check(kinds, source)
    for name in (roles.target, roles.weights):
        if name is not None:
            check_number(footers, name, roles.role(name))
    columns: list[Column] = []
    reasons: dict[str, str] = {}
    asked = roles.features is not None
    for name in roles.candidates(list(kinds)):
        reason = _reason(footers, name, asked=asked)
        if not reason:
            columns.append(Column(name, "flag" if _is_flag(kinds[name]) else "number"))
        elif asked:
            raise DataKindError(f"column {name!r} cannot be a feature: it {reason}.")
        else:
            reasons[name] = reason
    if not columns:
        raise DataError(
            f"{source} has no column besides {roles.target!r} that can be a feature"
            f"{''.join(f'; {name!r} {reason}' for name, reason in list(reasons.items())[:4])}. "
            "Numbers and true/false can be used."
        )
    notes = [
        f"Column {column.name!r} is 1 where true, 0 where false."
        for column in columns
        if column.kind == "flag"
    ]
    for footer in footers:
        reasons |= dict.fromkeys(VALUE_FOLDER.findall(footer.name), "stands in names of folders")
    notes += [f"Column {name!r} is left out: it {reason}." for name, reason in reasons.items()]
    return Recipe(roles.target, tuple(columns), roles.weights, roles.key), notes


def _reason(footers: list[Footer], name: str, *, asked: bool) -> str:
    """Say why a column cannot be a feature; nothing if it can."""
    if not (asked or name):
        return "has no name (row numbers that a program wrote, perhaps)"
    held = _held(footers[0].kinds[name])
    if held:
        return f"holds {held}, and tables that are read in parts use numbers alone"
    _check_same(footers, name)
    extents = [footer.extents.get(name) for footer in footers if sum(footer.group_rows)]
    if None in extents:
        return ""
    lowest, highest = reduce(joined_extent, (ends for ends in extents if ends is not None))
    if lowest is None:
        return "has no values"
    return "is the same in all rows" if lowest == highest and not asked else ""


def check_number(footers: list[Footer], name: str, role: str) -> None:
    """Refuse a column that does not hold numbers in all files."""
    held = _held(footers[0].kinds[name])
    if held:
        raise DataKindError(
            f"column {name!r} cannot be {role}: it holds {held}, and regimix explains numbers. "
            "Name a column of numbers."
        )
    _check_same(footers, name)


def _check_same(footers: list[Footer], name: str) -> None:
    """Refuse a column that is a number in some files and something else in others."""
    for footer in footers:
        held = _held(footer.kinds[name])
        if held:
            raise DataKindError(
                f"column {name!r} holds {held} in {footer.name!r}, but numbers in "
                f"{footers[0].name!r}; all files of a table must have the same columns."
            )


def _held(kind: Any) -> str:
    """Say what a column holds; nothing if it holds numbers."""
    import pyarrow as pa

    tests: tuple[Callable[[Any], bool], ...] = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_boolean,
    )
    if any(test(kind) for test in tests):
        return ""
    if any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string)):
        return "text"
    if pa.types.is_dictionary(kind):
        return "categories"
    return f"{str(kind).partition('[')[0].partition('<')[0]} values"


def _is_flag(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_boolean(kind))


def number_type(footers: list[Footer], names: Sequence[str]) -> str:
    """Choose the smallest type that holds the features of all files as they are."""
    import pyarrow as pa

    small = {pa.bool_(), pa.float16(), pa.float32()}
    small |= {pa.int8(), pa.int16(), pa.uint8(), pa.uint16()}
    plain = all(footer.kinds[name] in small for footer in footers for name in names)
    return "float32" if plain else "float64"
