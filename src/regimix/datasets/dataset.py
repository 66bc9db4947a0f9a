"""Dataset: a table with a target column, read from a bundled file."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import MissingExtraError

__all__ = ["Dataset", "read_columns", "read_numbers"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table with a target column.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        The features.
    y : ndarray of shape (n,)
        The target.
    feature_names : tuple of str
        A name for each column of `X`.
    target_name : str
        The name of `y`.
    description : str
        What was measured, what is known about it, and where it comes from.
    row_names : tuple of str
        A name for each row.
    others : dict of str to ndarray of shape (n,)
        Columns that are neither features nor the target.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    target_name: str
    description: str
    row_names: tuple[str, ...]
    others: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def frame(self) -> Any:
        """All columns as a new pandas data frame, features first, then the target.

        What is fitted to a frame prints with the names of its columns:
        ``model.fit(data.features, data.target)``.
        """
        columns = dict(zip(self.feature_names, self.X.T.copy(), strict=True))
        columns |= {self.target_name: self.y.copy()}
        columns |= {name: values.copy() for name, values in self.others.items()}
        return _pandas().DataFrame(columns, index=list(self.row_names))

    @property
    def features(self) -> Any:
        """The features as a pandas data frame."""
        return self.frame[list(self.feature_names)]

    @property
    def target(self) -> Any:
        """The target as a pandas series."""
        return self.frame[self.target_name]


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtraError(
            "a data frame needs pandas, which is not installed: pip install pandas, or use the "
            "arrays X, y and others."
        ) from error
    return pd


def read_columns(name: str) -> dict[str, tuple[str, ...]]:
    """Read a bundled file as text, column by column."""
    text = files("regimix.datasets").joinpath(name).read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def read_numbers(name: str) -> tuple[list[str], NDArray[np.float64]]:
    """Read a bundled file of numbers: its header, and an (n, columns) array."""
    columns = read_columns(name)
    return list(columns), np.array(list(columns.values()), dtype=np.float64).T.copy()
