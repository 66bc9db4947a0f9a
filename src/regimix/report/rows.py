"""What a report shows: its rows, in numbers and sentences; and the terms of the equations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.power import raised
from regimix.data.validation import Table, read_target, read_weights
from regimix.engines.parquet import ParquetReader, columns_of
from regimix.engines.parts import PartTable
from regimix.errors import DataError
from regimix.model.labelling import SURE
from regimix.result.answer import Answer, Distances, belonging, distances, rows_labelled
from regimix.result.gate import gate_shares
from regimix.result.mixture import Mixture
from regimix.result.rowlaw import EXTRA_COLUMNS, MOST_NUMBERS, are_fitted
from regimix.result.summary import coefficient_table
from regimix.words import clean, count, fixed, listing, number, percent

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Features that a page shows; the others contribute less.
MOST_FEATURES = 40
# Characters of a key.
LONGEST_KEY = 64
# Outliers that a sentence names.
MOST_NAMED = 8
# Of a table of any size, the same rows are drawn again.
SAMPLE_SEED = 20211
# Labels that a page holds, a character each, and what the names of their rows may weigh.
MOST_LABELS, MOST_NAME_BYTES = 150_000, 100_000
# Numbers that are read at once of a table in parts.
BATCH_NUMBERS = 500_000


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows beside a mixture."""

    X: NDArray[Any]
    y: Floats
    labels: Ints  # the regime of each row, -1 for outliers
    keys: Sequence[Any]  # what the reader calls the rows
    numbered: bool  # whether the keys are row numbers that count from 0
    far: Distances  # from their regimes
    belongs: Floats  # how far each row counts for each regime, (n, m)
    outlying: Floats  # probability of being an outlier
    sure: Floats  # probability of the likeliest regime, or of being an outlier
    # Where a table was read in parts, of which these are a random draw: all its rows by label,
    # outliers last.
    counts: Ints | None
    of: int  # rows of the whole table: more than these if they are an excerpt
    fitted: bool  # whether these are the rows of the fit, or an excerpt of them
    weights: Floats  # of the rows of the fit, if given or kept; else all are one

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    @property
    def by_lot(self) -> Ints:
        """A label for each row drawn by its probabilities, the same every time; -1 for outliers."""
        lots = np.random.default_rng(SAMPLE_SEED).random(self.n)
        beyond = lots[:, None] >= np.cumsum(self.belongs, axis=1)
        drawn = beyond.sum(axis=1)
        return np.where(drawn == self.belongs.shape[1], -1, drawn)

    @property
    def outliers(self) -> Ints:
        """Positions of the outliers, the farthest first."""
        return self.far.farthest(np.flatnonzero(self.labels < 0))

    def notice(self, n_rows: int) -> str:
        """Say that these are not the rows of the fit, which had so many."""
        those = "those" if self.n == n_rows else f"the {fixed(n_rows, 0)}"
        shown = count(self.n, "row")
        shown += f", drawn at random from {fixed(self.of, 0)}" if self.of > self.n else ""
        return (
            f"This page shows {shown}, not {those} that the model was fitted to: "
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
        some = f"{fixed(doubtful, 0)} ({percent(doubtful / self.n)})"
        verb = "is" if doubtful == 1 else "are"
        return f"Of the {count(self.n, 'row')} shown, {some} {verb} in doubt."


def outlier_words(rows: Rows | None, n_rows: int, share: float, found: Answer) -> str:
    """Say which rows are outliers; without rows, how large a share of those of the fit.

    ``n_rows`` are the rows of the fit, repetitions counted.
    """
    known = f"{count(round(share * n_rows), 'row')} ({percent(share)}) labelled as outliers"
    none = f"None: {found.no_outlier}."
    if rows is None:
        return f"{known}." if share else none
    outliers, shown = rows.outliers, count(rows.n, "row")
    keys = listing([clean(rows.keys[i], 24) for i in outliers], MOST_NAMED)
    if rows.counts is not None:
        total = int(rows.counts[-1])
        among = f" Among the {fixed(rows.n, 0)} shown, farthest first: {keys}." if keys else ""
        part = f"{fixed(total, 0)} ({percent(total / rows.of)}) are labelled outliers."
        return f"Of the {count(rows.of, 'row')} that were read, {part}{among}"
    if not outliers.size and rows.of > rows.n and share:
        return f"{known}; none of them is in the excerpt of {fixed(rows.n, 0)} that is shown here."
    if not outliers.size:
        each = f"None of the {shown} shown: {found.no_outlier.replace('every row', 'each')}."
        return none if rows.fitted else each
    part = percent(outliers.size / rows.n)
    said = f"{count(int(outliers.size), 'row')} ({part})"
    if rows.of != n_rows:
        # Rows count by their weights, but are listed once.
        said = f"{fixed(outliers.size, 0)} of the {shown} shown ({part})"
    if not rows.fitted and rows.n == 1:
        said = "The one row shown"
    elif not rows.fitted:
        said = f"Of the {shown} shown, {fixed(outliers.size, 0)} ({part})"
    elif rows.of > rows.n:
        said += f" of the {fixed(rows.n, 0)} kept as an excerpt"
    doubt = _in_doubt(int(np.count_nonzero(rows.outlying[outliers] < SURE)), outliers.size)
    if outliers.size == 1:
        return f"{said} is labelled an outlier: {keys}.{doubt}"
    worst = float(np.abs(rows.far.distance[outliers[0]]))
    by = f", farthest first (the first by {number(worst, 2)} times the noise)"
    return f"{said} are labelled outliers: {keys}{by if np.isfinite(worst) else ''}.{doubt}"


def _in_doubt(rows: int, outliers: int) -> str:
    """Say how many of the outliers could belong to a regime, in a sentence of its own."""
    if not rows:
        return ""
    who = f"Of these, {fixed(rows, 0)} {'is' if rows == 1 else 'are'}"
    if rows == outliers:
        who = "It is" if rows == 1 else "All of them are"
    return f" {who} in doubt: P(outlier) is below {SURE:.0%}."


def label_data(rows: Rows) -> dict[str, Any] | None:
    """Write the label of every row for the page, if they are not too many.

    A letter for each row, A for outliers, B for regime 0; and the names of the rows: whole numbers
    that ascend as pairs of a gap and of how many follow one another, others as they are, or nothing
    if that would weigh too much: then they are numbered from 0.
    """
    if rows.n > MOST_LABELS:
        return None
    letters = "".join(map(chr, (rows.labels + 66).tolist()))
    # Larger whole numbers are not exact in a script.
    whole = all(isinstance(key, int | np.integer) and 0 <= key < 2**53 for key in rows.keys)
    numbers = np.asarray(rows.keys if whole else [], dtype=np.int64)
    names: list[Any] | None
    if numbers.size and (np.diff(numbers) > 0).all():
        kind, starts = "runs", np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
        lengths = np.diff(starts, append=numbers.size)
        gaps = np.diff(numbers[starts], prepend=0)
        names = np.column_stack([gaps, lengths]).ravel().tolist()
    else:
        kind, names = "keys", [clean(key, LONGEST_KEY) for key in rows.keys]
    if len(json.dumps(names, separators=(",", ":"))) > MOST_NAME_BYTES:
        if rows.of > rows.n:
            return None  # the place in an excerpt names no row
        kind, names = "none", None
    return {"letters": letters, "complete": rows.of == rows.n, kind: names}


def read_rows(
    mixture: Mixture, X: Any, y: Any, keys: Any, shares: Any = None, sample_weight: Any = None
) -> Rows | None:
    """Put rows beside the mixture; without X and y, those that it remembers, if any.

    Of rows of the fit that come without their weights, the mixture may remember these.

    Of a table in parts (``regimix.scan_parquet``), in the place of X, some rows are drawn.
    """
    excerpt, counts = mixture.excerpt, None
    names: Any
    if isinstance(X, PartTable):
        if y is not None or keys is not None:
            raise DataError(
                "a table that is read in parts brings its response and its keys; got "
                f"{'y' if keys is None else 'keys'} as well. Pass the table alone: the keys are "
                "the column that scan_parquet(..., key=...) names, else the numbers of the rows."
            )
        if X.names != mixture.feature_names:
            raise DataError(
                f"the table has the features {listing(X.names)}; the model was fitted to "
                f"{listing(mixture.feature_names)}. Scan the same columns in the same order."
            )
        if shares is None and mixture.gate is not None:
            shares = partial(gate_shares, mixture)
        held, names, counts = _draw(mixture, X, shares)
        d, of = len(X.names), int(counts.sum())
        values, target = held[:, :d], held[:, d]
        shares = held[:, d + 1 :] if callable(shares) else None
        labels = mixture.assign(values, target, shares)
        # The table is that of the fit if it has as many rows of every label, to the last row.
        before = [rows_labelled(mixture, j) for j in (*range(mixture.n_components), -1)]
        fitted = of == mixture.n_rows and before == counts.tolist()
    elif X is None and y is None:
        if excerpt is None:
            return None
        values, target, labels, fitted = excerpt.X, excerpt.y, excerpt.labels, True
        shares = excerpt.shares
        of = target.size if excerpt.complete else mixture.n_rows
        names = excerpt.numbers
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
            sample_weight, shares = _only(kept, sample_weight), _only(kept, shares)
        values = Table.read(X, fewest_rows=1).values
        target = read_target(y, values.shape[0])
        of = target.size
        names = np.arange(of) if keys is None else _keys(keys, of, "rows of X")
        shares = gate_shares(mixture, values) if shares is None else shares
        fitted = are_fitted(mixture, values, target, shares)
        # Trimming decides by rank among the rows of the fit, so its labels are not quite those
        # that rows would get as new ones.
        known = fitted and mixture.labels.size == of
        labels = mixture.labels if known else mixture.assign(values, target, shares)
    probabilities = mixture.responsibilities(values, target, shares)
    labels = np.asarray(labels, dtype=np.int64)
    weights = _weights(mixture, target.size, sample_weight, fitted=fitted)
    of -= int(np.count_nonzero(weights == 0))
    names, values, target, labels, probabilities, weights = _present(
        weights, names, values, target, labels, probabilities, weights
    )
    return Rows(
        X=values,
        y=target,
        labels=labels,
        keys=names,
        numbered=isinstance(names, np.ndarray),
        far=distances(mixture, values, target, labels),
        belongs=belonging(mixture, labels, probabilities),
        outlying=probabilities[:, -1],
        sure=probabilities.max(axis=1),
        counts=counts,
        of=of,
        fitted=fitted,
        weights=weights,
    )


def _present(weights: Floats, names: Any, *arrays: Any) -> tuple[Any, ...]:
    """Leave out what belongs to rows of no weight, which are absent."""
    if weights.all():
        return names, *arrays
    there = np.flatnonzero(weights)
    some = names[there] if isinstance(names, np.ndarray) else [names[i] for i in there]
    return some, *(each[there] for each in arrays)


def _only(kept: NDArray[np.bool_], values: Any) -> Any:
    """Leave out what belongs to rows that are left out, where it was given for all of them."""
    given = values is not None and len(values) == kept.size
    return np.asarray(values)[kept] if given else values


def _weights(mixture: Mixture, n: int, sample_weight: Any, *, fitted: bool) -> Floats:
    """Return weights of rows of the fit, as given or as far as the mixture remembers them."""
    excerpt, weights = mixture.excerpt, np.ones(n)
    if not fitted:
        return weights
    if sample_weight is not None:
        known = read_weights(sample_weight, n)[0]
        if known is not None:
            return known
    if excerpt is None or excerpt.weights is None:
        return weights
    if excerpt.y.size == n:
        return excerpt.weights
    if excerpt.complete:
        weights[:] = 0.0  # those of no weight are not kept
        weights[excerpt.numbers] = excerpt.weights
    return weights


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


def _draw(mixture: Mixture, table: PartTable, shares: Any) -> tuple[Floats, list[Any], Ints]:
    """Draw rows uniformly in one pass over a table in parts, and count the labels of all.

    The columns are features, response and, if shares is a function, the shares of the regimes;
    beside them the keys. Rows with a missing value are left out.
    """
    d, m, rng = len(table.names), mixture.n_components, np.random.default_rng(SAMPLE_SEED)
    most = max(1, MOST_NUMBERS // (d + EXTRA_COLUMNS))
    lots, held, keys = np.empty(0), np.empty((0, d + 1 + m * callable(shares))), list[Any]()
    counts = np.zeros(m + 1, dtype=np.int64)
    for X, y, beside, names in _batches(table):
        known, columns, given = np.isfinite(y), [X, y], None
        if callable(shares):
            columns.append(shares(X) if beside is None else shares(X, beside))
            given = columns[-1][known]
        if known.any():
            labels = mixture.assign(X[known], y[known], given)
            counts += np.bincount(labels % (m + 1), minlength=m + 1)
        # The rows of the smallest of all lots are a uniform draw.
        before, there = lots.size, np.flatnonzero(known)
        lots = np.append(lots, rng.random(there.size))
        best = np.sort(np.argsort(lots, kind="stable")[:most])
        old, new = best[best < before], there[best[best >= before] - before]
        lots, held = lots[best], np.vstack([held[old], np.column_stack(columns)[new]])
        keys = [*(keys[i] for i in old), *names.take(new).tolist()]
    if not counts.any():
        raise DataError("the table has no row without a missing value; there is none to show.")
    return held, keys, counts


def _batches(table: PartTable) -> Iterator[tuple[Floats, Floats, Any, Any]]:
    """Read features, response, columns for the gating, and keys of the rows that can be used."""
    for reader in table.readers:
        assert isinstance(reader, ParquetReader)
        if reader.target is None:
            raise DataError("the table has no response; a report on rows needs their response.")
        for span in reader.spans:
            first = span.first_row + 1
            for rows, kept, batch in reader.labelled(span, BATCH_NUMBERS // len(table.names)):
                numbers = np.arange(first, first + kept.size)
                keys = numbers if reader.key is None else batch.column(reader.key)
                X, y = np.asarray(rows.X, dtype=np.float64), raised(rows.y, reader.power)
                beside = columns_of(batch, reader.gating, kept)
                yield X, y, beside, keys.take(np.flatnonzero(kept))
                first += kept.size


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
    level: float  # of the intervals
    ranked: bool  # whether the deviations are known; effects are per unit otherwise

    @classmethod
    def of(cls, mixture: Mixture, X: NDArray[np.float64] | None, level: float) -> Terms:
        """Rank the terms by the deviations of the rows of the fit, or else of these rows."""
        if mixture.rows is not None:
            return cls(mixture, mixture.rows.deviation, level, ranked=True)
        deviation = np.ones(mixture.coef.shape[1]) if X is None else X.std(axis=0)
        return cls(mixture, np.asarray(deviation), level, ranked=X is not None)

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
