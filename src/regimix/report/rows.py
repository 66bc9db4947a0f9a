"""The rows that a report shows: what each one is, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import Table, read_target
from regimix.errors import DataError
from regimix.result.mixture import Mixture
from regimix.result.rowlaw import MOMENT_ROWS

__all__ = ["Rows", "read_rows", "sample"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A row is doubtful if its likeliest home is less likely than this.
SURE = 0.8
# Rows of the fit have the mean that it remembers, up to rounding (of single precision, perhaps).
SAME_MEAN = 1e-5
# What the labels of the fit may lose over the likeliest ones of its rows, in nats for each row:
# next to nothing, or a little where rows were trimmed or sorted. In another order they lose more.
SUITS, SUITS_TRIMMED, MOST_LOST = 0.05, 0.3, 20.0
# Of a table of any size, the same rows are drawn again.
SAMPLE_SEED = 20211


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows beside a mixture.

    Attributes
    ----------
    X, y : ndarray of shape (n, d), (n,)
    labels : ndarray of shape (n,)
        The regime of each row, -1 for outliers.
    keys : sequence of str or int
        What the reader calls the rows.
    numbered : bool
        Whether the keys are row numbers that count from 0.
    home : ndarray of shape (n,)
        The regime, or for outliers the nearest one in deviations.
    expected, residual, distance : ndarray of shape (n,)
        Response expected there, how much the row is off, and the same in deviations of the noise.
    outlying, sure : ndarray of shape (n,)
        Probability of being an outlier, and of the likeliest home.
    of : int
        Rows of the whole table; more than n if these are an excerpt.
    fitted : bool
        Whether these are the rows of the fit, or an excerpt of them.
    """

    X: NDArray[Any]
    y: Floats
    labels: Ints
    keys: Sequence[Any]
    numbered: bool
    home: Ints
    expected: Floats
    residual: Floats
    distance: Floats
    outlying: Floats
    sure: Floats
    of: int
    fitted: bool

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    @property
    def outliers(self) -> Ints:
        """Positions of the outliers, the farthest first."""
        found = np.flatnonzero(self.labels < 0)
        return found[np.argsort(-np.abs(self.distance[found]), kind="stable")]

    @property
    def doubtful(self) -> Ints:
        """Positions of rows that more than one home fits, the least sure first."""
        found = np.flatnonzero(self.sure < SURE)
        return found[np.argsort(self.sure[found], kind="stable")]

    def of_regime(self, index: int) -> Ints:
        """Positions of the rows of a regime."""
        return np.flatnonzero(self.labels == index)


def read_rows(mixture: Mixture, X: Any, y: Any, keys: Any, shares: Any = None) -> Rows | None:
    """Put rows beside the mixture; without X, those that the mixture remembers, if any."""
    if X is None and y is None:
        excerpt = mixture.excerpt
        if excerpt is None:
            return None
        names = None if keys is None else _keys(keys, mixture.n_rows, "rows of the fit")
        chosen = excerpt.numbers if names is None else [names[i] for i in excerpt.numbers]
        of = len(excerpt.y) if excerpt.complete else mixture.n_rows
        kept = excerpt.X, excerpt.y, excerpt.labels
        return _beside(mixture, *kept, chosen, of, shares=shares, fitted=True)
    if X is None or y is None:
        raise DataError(
            f"a report on rows needs X and y; got only {'X' if y is None else 'y'}. Pass both, or "
            "neither: then the rows that the mixture remembers are shown."
        )
    values = Table.read(X, fewest_rows=1).values
    target = read_target(y, values.shape[0])
    keys = _index(X) if keys is None else keys
    named = np.arange(target.size) if keys is None else _keys(keys, target.size, "rows of X")
    fitted = _are_fitted(mixture, values, target, shares)
    # Trimming decides by rank among the rows of the fit, so its labels are not quite those that
    # rows would get as new ones.
    known = fitted and mixture.labels.size == target.size
    labels = mixture.labels if known else mixture.assign(X, y, shares)
    return _beside(
        mixture, values, target, labels, named, target.size, shares=shares, fitted=fitted
    )


def _are_fitted(mixture: Mixture, X: NDArray[Any], y: Floats, shares: Any = None) -> bool:
    """Whether these are the rows of the fit, as far as the mixture can tell.

    By those that it kept; or else by the spread of the features and by the labels, which must suit
    the rows one by one.
    """
    if y.size != mixture.n_rows:
        return False
    excerpt = mixture.excerpt
    if excerpt is not None:
        same = np.array_equal(y[excerpt.numbers], excerpt.y)
        return same and np.array_equal(X[excerpt.numbers], excerpt.X)
    law = mixture.rows
    if law is not None and mixture.mass == y.size <= MOMENT_ROWS:
        # They were described by all rows.
        off = np.abs(np.mean(X, axis=0, dtype=np.float64) - law.mean)
        if (off > SAME_MEAN * (law.deviation + np.abs(law.mean))).any():
            return False
    return mixture.labels.size != y.size or _suits(mixture, X, y, shares)


def _suits(mixture: Mixture, X: NDArray[Any], y: Floats, shares: Any) -> bool:
    """Whether the labels of the fit are about the likeliest ones of these rows."""
    joint = mixture.log_densities(X, y, shares)
    with np.errstate(invalid="ignore"):
        lost = np.max(joint, axis=1) - joint[np.arange(y.size), mixture.labels]
    limit = SUITS_TRIMMED if mixture.fitted_by_label else SUITS
    return float(np.mean(np.minimum(lost, MOST_LOST))) <= limit


def _index(X: Any) -> list[Any] | None:
    """Return the names that a data frame gives its rows, unless it just counts them."""
    index = getattr(X, "index", None)
    # Lists have a method of that name.
    if index is None or callable(index) or not hasattr(index, "tolist"):
        return None
    names = index.tolist()
    if names == list(range(len(names))):
        return None
    several = getattr(index, "nlevels", 1) > 1
    return [", ".join(map(str, name)) for name in names] if several else names


def _keys(keys: Any, n: int, what: str) -> Sequence[Any]:
    names = keys.tolist() if hasattr(keys, "tolist") else keys
    # Rows that are only counted may be too many for a list.
    names = names if isinstance(names, range) else list(names)
    if len(names) != n:
        raise DataError(f"keys must name each of the {n} {what}; got {len(names)} keys.")
    return names


def _beside(
    mixture: Mixture,
    X: NDArray[Any],
    y: Floats,
    labels: Ints,
    keys: Any,
    of: int,
    *,
    shares: Any,
    fitted: bool,
) -> Rows:
    means = mixture.predict_components(X)
    # An exact fit has no noise: any row off it is infinitely far.
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.nan_to_num((y[:, None] - means) / mixture.scale, nan=0.0)
    nearest = np.argmin(np.abs(distances), axis=1)
    home = np.where(labels < 0, nearest, labels).astype(np.int64)
    place = np.arange(y.size)
    belongs = mixture.responsibilities(X, y, shares)
    return Rows(
        X=X,
        y=y,
        labels=np.asarray(labels, dtype=np.int64),
        keys=keys,
        numbered=isinstance(keys, np.ndarray),
        home=home,
        expected=means[place, home],
        residual=y - means[place, home],
        distance=distances[place, home],
        outlying=belongs[:, -1],
        sure=belongs.max(axis=1),
        of=of,
        fitted=fitted,
    )


def sample(positions: Ints, most: int) -> Ints:
    """Draw at most so many, uniformly and always the same, in their order."""
    if positions.size <= most:
        return positions
    rng = np.random.default_rng(SAMPLE_SEED)
    chosen = np.sort(rng.choice(positions.size, size=most, replace=False))
    return positions[chosen]
