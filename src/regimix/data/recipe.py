"""Which columns of a table are used for what, and what each of them becomes, as plain data."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from regimix.errors import DataError, ParameterError, UnknownColumnError, read_number
from regimix.words import choice, powered

Kind = Literal["number", "flag", "date", "levels"]
Mark = Literal["", ".", ","]


@dataclass(frozen=True)
class Column:
    """How one column becomes features.

    Attributes
    ----------
    name : str
    kind : {"number", "flag", "date", "levels"}
        "number" as it is; "flag": 0 or 1; "date": days since 1970-01-01; "levels": one column of
        0/1 for each level but the first, which is 0 in all of them.
    levels : tuple of str
        The values of a text column, the commonest first.
    mark : {"", ".", ","}
        The decimal mark of numbers that are written as text; "": whichever reads more of them.
    """

    name: str
    kind: Kind = "number"
    levels: tuple[str, ...] = ()
    mark: Mark = ""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features it becomes."""
        if self.kind != "levels":
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels[1:])

    @property
    def note(self) -> str:
        """What becomes of it, unless it is a number."""
        if self.kind == "number":
            return ""
        if self.kind == "flag":
            return f"Column {self.name!r} is 1 where true, 0 where false."
        if self.kind == "date":
            return f"Column {self.name!r} is read as days since 1970-01-01."
        first, *others = self.levels
        # As repr shows them: a terminal obeys some characters, which a name may hold.
        made = ", ".join(repr(name)[1:-1] for name in self.feature_names)
        many = len(others) > 1
        return (
            f"Column {self.name!r} is text of {len(self.levels)} values: it becomes {len(others)} "
            f"column{'s' * many} of 0 and 1 ({made}); {first!r} is 0 in {'all' if many else 'it'}."
        )


@dataclass(frozen=True)
class Recipe:
    """How the columns of a table become numbers, as plain data that a model file can hold.

    Attributes
    ----------
    target : str
    columns : tuple of Column
        In the order of the features.
    weights, key : str or None
        Columns of row weights and of row keys.
    power : float
        The response is this power of the target; zero is the logarithm, one the target itself.
    """

    target: str
    columns: tuple[Column, ...]
    weights: str | None = None
    key: str | None = None
    power: float = 1.0

    def __str__(self) -> str:
        notes = [column.note or f"Column {column.name!r} is a number." for column in self.columns]
        return "\n".join(notes)

    @property
    def response(self) -> str:
        """Name of what is explained: "price", or "log price"."""
        return powered(self.target, self.power)

    @property
    def note(self) -> str:
        """What predictions of the target are, if it is not the response."""
        if self.power == 1.0:
            return ""
        what = "logarithm" if self.power == 0.0 else f"power {self.power:g}"
        return (
            f"Predictions are in units of {self.target!r}: the value whose {what} is expected, not "
            f"the mean of {self.target!r}."
        )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of all features."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def with_key(self, key: str | None, names: Collection[str], source: str) -> Recipe:
        """Take another key column if one is given, and none that the table does not have."""
        if key is not None:
            check_column(names, key, source, "the key")
        elif self.key in names:
            key = self.key
        return replace(self, key=key)

    def to_json(self) -> dict[str, Any]:
        """Return it as dictionaries, lists and strings."""
        plain = asdict(self)
        plain["columns"] = [{**c, "levels": list(c["levels"])} for c in plain["columns"]]
        return plain

    @classmethod
    def from_json(cls, plain: Any) -> Recipe:
        """Read what ``to_json`` returned; refuse anything else."""
        try:
            columns = tuple(_read_column(column) for column in plain["columns"])
            power = read_power(plain.get("power", 1.0))  # older recipes have none
            recipe = cls(plain["target"], columns, plain["weights"], plain["key"], power)
        except (KeyError, TypeError, AttributeError, ParameterError) as error:
            raise DataError(
                f"this is not a recipe for the columns of a table ({error!r}); pass what "
                "Recipe.to_json returned."
            ) from error
        texts = [recipe.target, recipe.weights or "", recipe.key or ""]
        if not columns or not all(isinstance(text, str) for text in texts):
            raise DataError(
                "this is not a recipe for the columns of a table: it needs columns, and the names "
                "of target, weights and key as text."
            )
        return recipe


def _read_column(plain: Any) -> Column:
    name, kind, levels = plain["name"], plain["kind"], tuple(plain["levels"])
    mark = plain.get("mark", "")  # older recipes have none
    if kind not in get_args(Kind) or not all(isinstance(text, str) for text in (name, *levels)):
        raise TypeError(f"column {name!r} of kind {kind!r}")
    # Levels have no meaning elsewhere, and one level alone makes no feature.
    if (kind == "levels") != (len(levels) > 1) or len(set(levels)) < len(levels):
        raise TypeError(f"column {name!r} with {len(levels)} levels")
    if mark not in get_args(Mark):
        raise TypeError(f"column {name!r} with the decimal mark {mark!r}")
    return Column(name, kind, levels, mark)


def check_column(names: Collection[str], wanted: str, source: str, role: str) -> None:
    """Refuse the name of a column that is not there; say which ones are close."""
    if wanted in names:
        return
    lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(wanted.lower(), lower, n=3, cutoff=0.5)
    close = [lower[name] for name in found]
    shown = ", ".join(map(repr, list(names)[:8])) + (", ..." if len(names) > 8 else "")
    advice = f"Its columns are {shown}."
    if close:
        advice = f"Did you mean {choice([*map(repr, close)])}?"
    raise UnknownColumnError(f"{source} has no column {wanted!r} ({role}). {advice}", role, close)


def check_columns(names: Collection[str], wanted: Iterable[str], source: str, role: str) -> None:
    """Refuse names of columns of which one is not there."""
    for name in wanted:
        check_column(names, name, source, role)


def check_unique(
    names: Iterable[str], who: str, advice: str = "rename or drop all but one"
) -> None:
    """Refuse columns of which two have one name; ``who`` has them: "X has"."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"{who} more than one column named {twice[0]!r}; {advice}.")


def read_power(power: Any) -> float:
    """Return a power of the target, if it is a number."""
    return read_number("power", power, math.isfinite, "a number (0: the logarithm)")
