"""Small real data sets in which one line is not the whole truth, with their sources."""

import csv
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset", "load_calls", "load_tone"]


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
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    feature_names: tuple[str, ...]
    target_name: str
    description: str
    row_names: tuple[str, ...]


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
    header, table = _read("calls.csv")
    return Dataset(
        X=table[:, :1],
        y=table[:, 1],
        feature_names=(header[0],),
        target_name=header[1],
        description=(
            "International calls from Belgium (tens of millions) by year (1900 = 0), 1950-1973. "
            "1964-1969, and the neighbouring years in part, were recorded in other units. "
            "Rousseeuw and Leroy (1987); data set telef of the R package robustbase."
        ),
        row_names=tuple(str(1900 + int(year)) for year in table[:, 0]),
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
    header, table = _read("tone.csv")
    return Dataset(
        X=table[:, :1],
        y=table[:, 1],
        feature_names=(header[0],),
        target_name=header[1],
        description=(
            "Tuned octave by the stretch of the overtones: 150 trials of a trained musician. "
            "Two regimes are known, tuned = stretchratio and tuned = 2. "
            "Cohen (1980); data set tonedata of the R package mixtools."
        ),
        row_names=tuple(str(number) for number in range(1, len(table) + 1)),
    )


def _read(name: str) -> tuple[list[str], NDArray[np.float64]]:
    """Read a bundled file: its header, and its numbers as an (n, columns) array."""
    text = files("regimix.datasets").joinpath(name).read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    return header, np.array(rows, dtype=np.float64)
