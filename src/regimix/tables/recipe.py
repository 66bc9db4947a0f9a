"""Recipe: how the columns of a table become numbers, as plain data that a model file can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from regimix.errors import DataError

__all__ = ["Column", "Kind", "Recipe"]

# What a column is read as: a number, 0/1, days since 1970-01-01, or one 0/1 column for each level
# but the first.
Kind = Literal["number", "flag", "date", "levels"]


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
    """

    name: str
    kind: Kind = "number"
    levels: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features it becomes."""
        if self.kind != "levels":
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels[1:])


@dataclass(frozen=True)
class Recipe:
    """How the columns of a table become numbers; the same for every table that a model meets.

    Attributes
    ----------
    target : str
    columns : tuple of Column
        In the order of the features.
    weights, key : str or None
        Columns of row weights and of row keys.
    """

    target: str
    columns: tuple[Column, ...]
    weights: str | None = None
    key: str | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of all features."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def to_json(self) -> dict[str, Any]:
        """Return it as dictionaries, lists and strings."""
        columns = [
            {"name": column.name, "kind": column.kind, "levels": list(column.levels)}
            for column in self.columns
        ]
        return {
            "target": self.target,
            "columns": columns,
            "weights": self.weights,
            "key": self.key,
        }

    @classmethod
    def from_json(cls, plain: Any) -> Recipe:
        """Read what ``to_json`` returned; refuse anything else."""
        try:
            columns = tuple(_read_column(column) for column in plain["columns"])
            recipe = cls(plain["target"], columns, plain["weights"], plain["key"])
        except (KeyError, TypeError) as error:
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
    if kind not in get_args(Kind) or not all(isinstance(text, str) for text in (name, *levels)):
        raise TypeError(f"column {name!r} of kind {kind!r}")
    # Levels have no meaning elsewhere, and one level alone makes no feature.
    if (kind == "levels") != (len(levels) > 1) or len(set(levels)) < len(levels):
        raise TypeError(f"column {name!r} with {len(levels)} levels")
    return Column(name, kind, levels)
