"""Small real data sets in which one line does not explain all rows, with their sources.

Each function reads a bundled CSV file into a `Dataset`. Simulated data are in ``regimix.synth``.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import MissingExtraError, ParameterError
from regimix.words import count, number

__all__ = ["Dataset", "load_calls", "load_penguins", "load_tone"]

# The measurements of a penguin; its bill depth is what the others explain.
MEASURES = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g")
PENGUIN_TARGET = "bill_depth_mm"
MISSING = "NA"
WIDTH = 80  # of what is printed


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        n, d = self.X.shape
        columns = zip(self.feature_names, self.X.T, strict=True)
        lines = [f"Dataset of {count(n, 'row')} and {count(d, 'feature')}"]
        lines += [f"  target   {self.target_name}: {_range(self.y)}"]
        lines += [f"  feature  {name}: {_range(x)}" for name, x in columns]
        lines += [f"  beside   {', '.join(self.others)}"] if self.others else []
        return "\n".join([*lines, *wrap(self.description, WIDTH)])

    @property
    def frame(self) -> Any:
        """All columns as a new pandas data frame, features first, then the target.

        What is fitted to a frame prints with the names of its columns:
        ``model.fit(data.features, data.target)``.
        """
        columns = dict(zip(self.feature_names, self.X.T, strict=True))
        columns |= {self.target_name: self.y, **self.others}
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError(
                "a data frame needs pandas, which is not installed: pip install pandas, or use "
                "the arrays X, y and others."
            ) from error
        return pd.DataFrame(columns, index=list(self.row_names), copy=True)

    @property
    def features(self) -> Any:
        """The features as a pandas data frame."""
        return self.frame[list(self.feature_names)]

    @property
    def target(self) -> Any:
        """The target as a pandas series."""
        return self.frame[self.target_name]


def _range(values: NDArray[np.float64]) -> str:
    return f"{number(float(values.min()))} to {number(float(values.max()))}"


def load_calls() -> Dataset:
    """Load the international calls from Belgium, 1950 to 1973.

    The target is in tens of millions of calls; the feature is the year, counted from 1900. From
    1964 to 1969 (and for parts of the neighbouring years) the length of the calls in minutes was
    recorded instead of their number, so these rows do not belong to the line of the others.

    Returns
    -------
    Dataset
        24 rows, one feature; the rows are named by their year.

    References
    ----------
    P. J. Rousseeuw and A. M. Leroy (1987). *Robust Regression and Outlier Detection*. Wiley.
    The file is the data set ``telef`` of the R package ``robustbase``.

    Examples
    --------
    >>> from regimix.datasets import load_calls
    >>> calls = load_calls()
    >>> calls.X.shape, calls.row_names[14], float(calls.y[14])
    ((24, 1), '1964', 11.9)
    """
    description = (
        "International calls from Belgium (tens of millions) by year (1900 = 0), 1950-1973. "
        "1964-1969, and the neighbouring years in part, were recorded in other units. "
        "Rousseeuw and Leroy (1987); data set telef of the R package robustbase."
    )
    return _read_pair("calls.csv", description, first_row=1950)


def load_penguins(features: Sequence[str] = ("bill_length_mm",)) -> Dataset:
    """Load the Palmer penguins: bill depth on bill length, with the species hidden.

    Within each of three species a longer bill is a deeper one; over all penguins the slope is
    negative. The species, which a fit is not shown, is in ``others`` with the remaining columns.

    Parameters
    ----------
    features : sequence of str
        Which of "bill_length_mm", "flipper_length_mm" and "body_mass_g" explain the bill depth.

    Returns
    -------
    Dataset
        342 of the 344 penguins, named by their row in the source, from 1: two were not measured.
        The sex of 9 of them is not known, and empty.

    References
    ----------
    K. B. Gorman, T. D. Williams and W. R. Fraser (2014). Ecological sexual dimorphism and
    environmental variability within a community of Antarctic penguins (genus *Pygoscelis*). *PLoS
    ONE* 9(3), e90081. The file is the data set ``penguins`` of A. M. Horst, A. P. Hill and K. B.
    Gorman's R package ``palmerpenguins``, as in the Python package of that name; CC0.

    Examples
    --------
    >>> from regimix.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> penguins.X.shape, penguins.feature_names, penguins.target_name
    ((342, 1), ('bill_length_mm',), 'bill_depth_mm')
    >>> sorted(set(penguins.others["species"].tolist()))
    ['Adelie', 'Chinstrap', 'Gentoo']
    """
    names = (features,) if isinstance(features, str) else tuple(features)
    allowed = [name for name in MEASURES if name != PENGUIN_TARGET]
    if not names or len(set(names)) < len(names) or not set(names) <= set(allowed):
        raise ParameterError(
            f"features must be one or more of {', '.join(allowed)}; got {features!r}."
        )
    columns = _read_columns("penguins.csv")
    measured = [i for i, value in enumerate(columns[PENGUIN_TARGET]) if value != MISSING]
    text = {name: np.array(values)[measured] for name, values in columns.items()}
    numbers = {name: text[name].astype(np.float64) for name in MEASURES}
    others = {name: numbers.get(name, text[name]) for name in text if name not in names}
    del others[PENGUIN_TARGET]
    others["sex"] = np.where(others["sex"] == MISSING, "", others["sex"])
    others["year"] = others["year"].astype(np.int64)
    return Dataset(
        X=np.column_stack([numbers[name] for name in names]),
        y=numbers[PENGUIN_TARGET],
        feature_names=names,
        target_name=PENGUIN_TARGET,
        description=(
            "Bill depth of 342 penguins of three species by other measurements, Palmer "
            "Archipelago, 2007-2009; 2 of 344 were not measured. "
            "Gorman, Williams and Fraser (2014); data set penguins of the package palmerpenguins "
            "(CC0)."
        ),
        row_names=tuple(str(i + 1) for i in measured),
        others=others,
    )


def load_tone() -> Dataset:
    """Load the tone perception experiment of Cohen (1980).

    A trained musician hears a fundamental tone with stretched overtones and tunes a second tone to
    the octave above it. Two regimes are known: the musician follows the overtones (tuned =
    stretchratio) or stays with the true octave (tuned = 2).

    Returns
    -------
    Dataset
        150 rows, one feature; the rows are named by their number, from 1.

    References
    ----------
    E. A. Cohen (1980). *Inharmonic tone perception*. Unpublished Ph.D. dissertation, Stanford
    University. The file is the data set ``tonedata`` of the R package ``mixtools``.

    Examples
    --------
    >>> from regimix.datasets import load_tone
    >>> tone = load_tone()
    >>> tone.X.shape, tone.feature_names, tone.target_name
    ((150, 1), ('stretchratio',), 'tuned')
    """
    description = (
        "Tuned octave by the stretch of the overtones: 150 trials of a trained musician. "
        "Two regimes are known, tuned = stretchratio and tuned = 2. "
        "Cohen (1980); data set tonedata of the R package mixtools."
    )
    return _read_pair("tone.csv", description, first_row=1)


def _read_columns(name: str) -> dict[str, tuple[str, ...]]:
    """Read a bundled file as text, column by column."""
    text = files("regimix.datasets").joinpath(name).read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def _read_pair(name: str, description: str, first_row: int) -> Dataset:
    """Read a bundled file of a feature and the target; its rows are named by numbers."""
    columns = _read_columns(name)
    (feature, x), (target, y) = columns.items()
    return Dataset(
        X=np.array(x, dtype=np.float64)[:, None],
        y=np.array(y, dtype=np.float64),
        feature_names=(feature,),
        target_name=target,
        description=description,
        row_names=tuple(str(first_row + i) for i in range(len(x))),
    )
