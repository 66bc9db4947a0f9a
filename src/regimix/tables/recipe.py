"""Which columns of a table are used for what, how they become numbers, and those numbers."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regimix.errors import (
    DataError,
    DataKindError,
    Message,
    ParameterError,
    Setting,
    UnknownColumnError,
)
from regimix.words import choice, powered

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Column",
    "DataSet",
    "Recipe",
    "Roles",
    "check_choice",
    "check_column",
    "check_number",
    "choose_recipe",
]

Floats = NDArray[np.float64]
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
        except (KeyError, TypeError, ParameterError) as error:
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


@dataclass(frozen=True)
class Roles:
    """Which columns a user wants for what; None: whatever is left and can be used."""

    target: str
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    weights: str | None = None
    key: str | None = None
    power: float = 1.0

    def __post_init__(self) -> None:
        read_power(self.power)
        for name, value in (("features", self.features), ("drop", self.drop)):
            if isinstance(value, str):
                raise ParameterError(f"{name} must be a list of column names; got {value!r}.")

    def check(self, names: Collection[str], source: str) -> None:
        """Refuse names that are not there, and columns with two roles."""
        named = [(self.target, "the target")]
        named += [(name, "a feature") for name in self.features or ()]
        named += [(name, "to drop") for name in self.drop]
        named += [(self.weights, "the weights")] if self.weights is not None else []
        named += [(self.key, "the key")] if self.key is not None else []
        for name, role in named:
            check_column(names, name, source, role)
        features, drop = Setting("features"), Setting("drop")
        for name in self.features or ():
            if name in (self.target, self.weights):
                words = f"column {name!r} cannot be a feature: it is the target or the weights."
                raise DataError(Message(f"{words} Leave it out of ", features, "."))
            if name in self.drop:
                words = f"column {name!r} is in "
                raise DataError(Message(words, features, " and in ", drop, "; leave it in one."))
        if self.target in (self.weights, self.key, *self.drop):
            raise DataError(
                f"column {self.target!r} is the target; it cannot be the weights, the key or "
                "dropped."
            )

    def candidates(self, names: Sequence[str]) -> list[str]:
        """Return the columns that may become features, in order."""
        if self.features is not None:
            return list(dict.fromkeys(self.features))
        taken = {self.target, self.weights, self.key, *self.drop}
        return [name for name in names if name not in taken]


def check_column(names: Collection[str], wanted: str, source: str, role: str) -> None:
    """Refuse the name of a column that is not there; say which ones are close."""
    if wanted in names:
        return
    lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(wanted.lower(), lower, n=3, cutoff=0.5)
    close = [lower[name] for name in found]
    shown = ", ".join(map(repr, list(names)[:8])) + (", ..." if len(names) > 8 else "")
    advice = (
        f"Did you mean {choice([*map(repr, close)])}?" if close else f"Its columns are {shown}."
    )
    message = f"{source} has no column {wanted!r} ({role}). {advice}"
    raise UnknownColumnError(message, role, close)


def check_choice(name: str, value: object, *choices: str) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise ParameterError(f"{name} must be {choice([*map(repr, choices)])}; got {value!r}.")


def read_power(power: Any) -> float:
    """Return a power of the target, if it is a number."""
    number = isinstance(power, Real) and not isinstance(power, bool)
    if not number or not math.isfinite(power):
        words = f" must be a number (0: the logarithm); got {power!r}."
        raise ParameterError(Message(Setting("power"), words))
    return float(power)


def check_number(name: str, role: str, wrong: str) -> None:
    """Refuse a column that does not hold numbers; ``wrong`` says what it does, if so."""
    if wrong:
        raise DataKindError(
            f"column {name!r} cannot be {role}: it {wrong}, and regimix explains numbers. Name a "
            "column of numbers."
        )


def choose_recipe(
    roles: Roles,
    names: Sequence[str],
    wrong: Callable[[str], str],
    classify: Callable[[str], tuple[Column | None, str]],
    source: str,
    usable: str,
) -> tuple[Recipe, list[str]]:
    """Decide what each column of a table becomes; return it with notes on what is not plain.

    ``wrong`` says what a column does instead of holding numbers; ``classify`` returns what a column
    becomes, or None and why it cannot be a feature; ``usable`` lists what can be used.
    """
    roles.check(dict.fromkeys(names), source)
    check_number(roles.target, "the target", wrong(roles.target))
    if roles.weights is not None:
        check_number(roles.weights, "the weights", wrong(roles.weights))
    columns: list[Column] = []
    reasons: dict[str, str] = {}
    for name in roles.candidates(names):
        column, reason = classify(name)
        if column is not None:
            columns.append(column)
        elif roles.features is not None:
            raise DataKindError(f"column {name!r} cannot be a feature: it {reason}.")
        else:
            reasons[name] = reason
    if not columns:
        raise DataError(
            f"{source} has no column besides {roles.target!r} that can be a feature"
            f"{''.join(f'; {name!r} {reason}' for name, reason in list(reasons.items())[:4])}. "
            f"{usable} can be used."
        )
    notes = [column.note for column in columns if column.note]
    notes += [f"Column {name!r} is left out: it {reason}." for name, reason in reasons.items()]
    power = float(roles.power)
    return Recipe(roles.target, tuple(columns), roles.weights, roles.key, power), notes


@dataclass(frozen=True, eq=False)
class DataSet:
    """Numbers of a table, and how they came about.

    Attributes
    ----------
    X : ndarray of shape (n, d), float64, C-contiguous
    y : ndarray of shape (n,) or None
        The response: the target, or the power of it that the recipe says. None: the table has no
        target, and none was needed. Where none was needed but the column is there, rows without a
        value are not finite.
    weights : ndarray of shape (n,) or None
    keys : ndarray of shape (n,), int64 or object (str)
        What finds a row again: the values of the key column, or else the number of the row in what
        was read, from 1, the header not counted.
    n_read, n_dropped : int
        Rows that were read, and those left out because a value that is needed is missing. (The
        rows that a sample leaves out are in neither of ``n_dropped`` and ``X``.)
    notes : tuple of str
        Sentences worth reading: what was encoded, left out, dropped, and why.
    recipe : Recipe
        How columns became numbers; ``read_like`` does the same to new data.
    source : str
        Where the rows came from; holds no password.
    y_read : ndarray of shape (n,) or None
        The target as it was read, where y is a power of it.
    original : polars.DataFrame or None
        All columns of the rows, as they were read.
    """

    X: Floats
    y: Floats | None
    weights: Floats | None
    keys: NDArray[Any]
    n_read: int
    n_dropped: int
    notes: tuple[str, ...]
    recipe: Recipe
    source: str
    y_read: Floats | None = None
    original: pl.DataFrame | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of X; a text column gives several, "column=level"."""
        return self.recipe.feature_names

    @property
    def target_name(self) -> str:
        """Name of the response: that of the target, or "log price"."""
        return self.recipe.response

    @property
    def key_name(self) -> str:
        """Name of the key column; "row" for row numbers."""
        return self.recipe.key or "row"

    @property
    def n_rows(self) -> int:
        """Rows of X."""
        return int(self.X.shape[0])

    def frame(self) -> pl.DataFrame:
        """Return X as a polars frame with the names of its columns, as estimators like it."""
        import polars as pl

        return pl.DataFrame(self.X, schema=list(self.feature_names), orient="row")

    def target(self) -> pl.Series | None:
        """Return y as a polars series with the name of the response."""
        import polars as pl

        return None if self.y is None else pl.Series(self.target_name, self.y)
