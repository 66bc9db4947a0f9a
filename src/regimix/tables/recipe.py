"""Which columns of a table are used for what, and the numbers that they become."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.recipe import Column, Recipe, check_column, read_power
from regimix.errors import (
    DataError,
    DataKindError,
    Message,
    ParameterError,
    Setting,
)
from regimix.words import choice

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Roles:
    """Which columns a user wants for what; None: whatever is left and can be used."""

    target: str
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    weights: str | None = None
    key: str | None = None
    power: float = 1.0
    gating: Sequence[str] = ()

    def __post_init__(self) -> None:
        read_power(self.power)
        lists = (("features", self.features), ("drop", self.drop), ("gating", self.gating))
        for name, value in lists:
            if isinstance(value, str):
                raise ParameterError(f"{name} must be a list of column names; got {value!r}.")

    def check(self, names: Collection[str], source: str) -> None:
        """Refuse names that are not there, and columns with two roles."""
        named = [(self.target, "the target")]
        named += [(name, "a feature") for name in self.features or ()]
        named += [(name, "to drop") for name in self.drop]
        named += [(name, "a column for the gating") for name in self.gating]
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
        if self.target in self.gating:
            raise DataError(
                f"column {self.target!r} is the target, which new rows lack: it cannot tell their "
                "regime. Name other columns for the gating."
            )
        if self.target in (self.weights, self.key, *self.drop):
            raise DataError(
                f"column {self.target!r} is the target; it cannot be the weights, the key or "
                "dropped."
            )

    def candidates(self, names: Sequence[str]) -> list[str]:
        """Return the columns that may become features, in order."""
        if self.features is not None:
            return list(dict.fromkeys(self.features))
        # What tells the regime of a row is a feature as well only if it is named as one.
        taken = {self.target, self.weights, self.key, *self.drop, *self.gating}
        return [name for name in names if name not in taken]


def check_choice(name: str, value: object, *choices: str) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise ParameterError(f"{name} must be {choice([*map(repr, choices)])}; got {value!r}.")


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
class Dropped:
    """Rows that were left out because a value is missing, among all that were read."""

    kept: NDArray[np.bool_]  # of all rows, which were used
    keys: NDArray[Any]  # of all rows
    reasons: NDArray[Any]  # of all rows: why one was left out, or ""
    original: pl.DataFrame


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
    gating : polars.DataFrame or None
        The columns from which the regime of a row is learnt, as they were read.
    original : polars.DataFrame or None
        All columns of the rows, as they were read.
    left_out : Dropped or None
        The rows that were dropped; None if none was, or if a sample was drawn.
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
    gating: pl.DataFrame | None = None
    original: pl.DataFrame | None = None
    left_out: Dropped | None = None

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
        """Return X as a polars frame with the names of its columns, for an estimator."""
        import polars as pl

        return pl.DataFrame(self.X, schema=list(self.feature_names), orient="row")

    def target(self) -> pl.Series | None:
        """Return y as a polars series with the name of the response."""
        import polars as pl

        return None if self.y is None else pl.Series(self.target_name, self.y)
