"""What a report shows: its rows, in numbers and sentences; and the terms of the equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import Table, read_target
from regimix.errors import DataError
from regimix.result.answer import Distances, distances
from regimix.result.mixture import Mixture
from regimix.result.rowlaw import MOMENT_ROWS, SURE
from regimix.result.summary import coefficient_table
from regimix.words import clean, count, fixed, listing, number, percent

__all__ = ["MOST_FEATURES", "Rows", "Terms", "outlier_words", "read_rows", "sample"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A page has room for so many features; the others contribute less.
MOST_FEATURES = 40
# Outliers that a sentence names.
MOST_NAMED = 8
# Rows of the fit have the mean that it remembers, up to rounding (of single precision, perhaps).
SAME_MEAN = 1e-5
# What the labels of the fit may lose over the likeliest ones of its rows, in nats for each row:
# next to nothing, or a little where rows were trimmed or sorted. In another order they lose more.
SUITS, SUITS_TRIMMED, MOST_LOST = 0.05, 0.3, 20.0
# Of a table of any size, the same rows are drawn again.
SAMPLE_SEED = 20211


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows beside a mixture."""

    X: NDArray[Any]
    y: Floats
    labels: Ints  # the regime of each row, -1 for outliers
    keys: Sequence[Any]  # what the reader calls the rows
    numbered: bool  # whether the keys are row numbers that count from 0
    far: Distances  # from their regimes
    outlying: Floats  # probability of being an outlier
    sure: Floats  # probability of the likeliest regime, or of being an outlier
    of: int  # rows of the whole table: more than these if they are an excerpt
    fitted: bool  # whether these are the rows of the fit, or an excerpt of them

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    @property
    def outliers(self) -> Ints:
        """Positions of the outliers, the farthest first."""
        return self.far.farthest(np.flatnonzero(self.labels < 0))

    def notice(self, n_rows: int) -> str:
        """Say that these are not the rows of the fit, which had so many."""
        those = "those" if self.n == n_rows else f"the {fixed(n_rows, 0)}"
        return (
            f"This page shows {count(self.n, 'row')}, not {those} that the model was fitted to: "
            "regimes, shares and errors are those of the fit; outliers, pictures and checks of "
            "what was assumed are those of the rows shown."
        )

    def doubtful(self) -> str:
        """Say how many of the rows shown could belong elsewhere, if those of the fit are others."""
        if self.fitted:
            return ""  # the answer says it of all rows of the fit
        doubtful = int(np.count_nonzero(self.sure < SURE))
        if not doubtful:
            return "Of the rows shown, none is in doubt."
        return (
            f"Of the {count(self.n, 'row')} shown, {fixed(doubtful, 0)} "
            f"({percent(doubtful / self.n)}) {'is' if doubtful == 1 else 'are'} in doubt."
        )


def outlier_words(rows: Rows | None, n_rows: int, share: float) -> str:
    """Say which rows fit no regime; without rows, how large a share of those of the fit.

    ``n_rows`` are the rows of the fit, repetitions counted.
    """
    known = f"{count(round(share * n_rows), 'row')} ({percent(share)}) fit no regime"
    none = "None: every row lies within reach of a regime."
    if rows is None:
        return f"{known}." if share else none
    outliers, shown = rows.outliers, count(rows.n, "row")
    if not outliers.size and rows.of > rows.n and share:
        return f"{known}; none of them is in the excerpt of {fixed(rows.n, 0)} that is shown here."
    if not outliers.size:
        each = f"None of the {shown} shown: each lies within reach of a regime."
        return none if rows.fitted else each
    part = percent(outliers.size / rows.n)
    said = f"{count(int(outliers.size), 'row')} ({part})"
    if rows.of != n_rows:
        # Rows count by their weights, but are listed once.
        said = f"{fixed(outliers.size, 0)} of the {shown} of the table ({part})"
    if not rows.fitted and rows.n == 1:
        said = "The one row shown"
    elif not rows.fitted:
        said = f"Of the {shown} shown, {fixed(outliers.size, 0)} ({part})"
    elif rows.of > rows.n:
        said += f" of the {fixed(rows.n, 0)} kept as an excerpt"
    keys = listing([clean(rows.keys[i], 24) for i in outliers], MOST_NAMED)
    if outliers.size == 1:
        return f"{said} fits no regime: {keys}."
    worst = float(np.abs(rows.far.distance[outliers[0]]))
    by = f", farthest first (the first by {number(worst, 2)} times the noise)"
    return f"{said} fit no regime: {keys}{by if np.isfinite(worst) else ''}."


def read_rows(mixture: Mixture, X: Any, y: Any, keys: Any, shares: Any = None) -> Rows | None:
    """Put rows beside the mixture; without X and y, those that it remembers, if any."""
    excerpt = mixture.excerpt
    if X is None and y is None:
        if excerpt is None:
            return None
        values, target, labels, fitted = excerpt.X, excerpt.y, excerpt.labels, True
        of = target.size if excerpt.complete else mixture.n_rows
        names: Any = excerpt.numbers
        if keys is not None:
            given = _keys(keys, mixture.n_rows, "rows of the fit")
            names = [given[i] for i in excerpt.numbers]
    elif X is None or y is None:
        raise DataError(
            f"a report on rows needs X and y; got only {'X' if y is None else 'y'}. Pass both, or "
            "neither: then the rows that the mixture remembers are shown."
        )
    else:
        keys = _index(X) if keys is None else keys
        X, y, kept = mixture.usable_rows(X, y)
        if kept is not None:
            keys = np.arange(kept.size) if keys is None else keys
            keys = [key for key, there in zip(keys, kept, strict=True) if there]
            shares = None if shares is None else np.asarray(shares)[kept]
        values = Table.read(X, fewest_rows=1).values
        target = read_target(y, values.shape[0])
        of = target.size
        names = np.arange(of) if keys is None else _keys(keys, of, "rows of X")
        fitted = _are_fitted(mixture, values, target, shares)
        # Trimming decides by rank among the rows of the fit, so its labels are not quite those
        # that rows would get as new ones.
        known = fitted and mixture.labels.size == of
        labels = mixture.labels if known else mixture.assign(X, y, shares)
    belongs = mixture.responsibilities(values, target, shares)
    return Rows(
        X=values,
        y=target,
        labels=np.asarray(labels, dtype=np.int64),
        keys=names,
        numbered=isinstance(names, np.ndarray),
        far=distances(mixture, values, target, labels),
        outlying=belongs[:, -1],
        sure=belongs.max(axis=1),
        of=of,
        fitted=fitted,
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


def sample(positions: Ints, most: int) -> Ints:
    """Draw at most so many, uniformly and always the same, in their order."""
    if positions.size <= most:
        return positions
    rng = np.random.default_rng(SAMPLE_SEED)
    chosen = np.sort(rng.choice(positions.size, size=most, replace=False))
    return positions[chosen]


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a mixture, in the order of what they contribute."""

    mixture: Mixture
    deviation: Floats  # of the features, (d,)
    mean: Floats
    level: float  # of the intervals
    ranked: bool  # whether the deviations are known; effects are per unit otherwise

    @classmethod
    def of(cls, mixture: Mixture, X: NDArray[np.float64] | None, level: float) -> Terms:
        """Rank the terms by the deviations of the rows of the fit, or else of these rows."""
        d = mixture.coef.shape[1]
        if mixture.rows is not None:
            deviation, mean = mixture.rows.deviation, mixture.rows.mean
        elif X is not None:
            deviation, mean = X.std(axis=0), X.mean(axis=0)
        else:
            deviation, mean = np.ones(d), np.zeros(d)
        ranked = mixture.rows is not None or X is not None
        return cls(mixture, np.asarray(deviation), np.asarray(mean), level, ranked)

    @cached_property
    def effects(self) -> Floats:
        """Change of the response for one deviation of a feature, (m, d)."""
        return np.asarray(self.mixture.coef * self.deviation)

    @cached_property
    def order(self) -> Ints:
        """Features by their largest effect in any regime, at most as many as the page holds."""
        largest = np.abs(self.effects).max(axis=0)
        return np.argsort(-largest, kind="stable")[:MOST_FEATURES].astype(np.int64)

    @cached_property
    def table(self) -> Floats | None:
        """Every term with its error, t, p and interval, the intercept last; None if not known."""
        known = self.mixture.inference is not None
        return coefficient_table(self.mixture, self.level) if known else None

    @cached_property
    def effect_bounds(self) -> tuple[Floats, Floats]:
        """Ends of the intervals of the effects, (m, d) each; the effects where none is known."""
        if self.table is None:
            return self.effects, self.effects
        ends = self.table[:, : self.effects.shape[1], 4:] * self.deviation[:, None]
        known = np.isfinite(ends).all(axis=2, keepdims=True)
        ends = np.where(known, ends, self.effects[..., None])
        return ends[..., 0], ends[..., 1]

    def name(self, feature: int) -> str:
        """Name a feature on the page."""
        return clean(self.mixture.feature_names[feature])

    @property
    def target(self) -> str:
        """Name of the response on the page."""
        return clean(self.mixture.target_name)

    @property
    def percent(self) -> str:
        """The level of the intervals, in words."""
        return f"{100 * self.level:g}%"
