"""A mixture with a gate: labels, counts and R² by the shares that the gate gives each row.

The gate is learnt once the regimes are found. Which regime a row belongs to is then decided anew,
by its shares, and so is all that follows from it; coefficients, errors and evidence stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from regimix.data.power import raised
from regimix.data.validation import chunks
from regimix.engines.base import Engine, Nothing
from regimix.engines.partition import PartitionEngine
from regimix.engines.parts import PassStopped
from regimix.model.labelling import SURE
from regimix.result.gate import ColumnGate
from regimix.result.rowlaw import MOMENT_ROWS, are_fitted
from regimix.search.numbers import SEARCH

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine
    from regimix.engines.parquet import ParquetReader
    from regimix.engines.parts import RawRows
    from regimix.engines.row_sampling import Drawn
    from regimix.result.mixture import Mixture

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
# Rows by label, outliers, and those in doubt; shares of the wanted rows; labels of all.
Judged = tuple[Floats, list[Floats], list[Labels]]

# Rows that are read at a time together with the columns of a gate.
BATCH_ROWS = 1 << 16


def with_gate(
    mixture: Mixture,
    gate: Any,
    engine: Engine,
    shares: Floats | None = None,
    readers: Sequence[ParquetReader] = (),
) -> Mixture:
    """Return a mixture with a gate, and with what follows from it for the rows of the fit.

    Parameters
    ----------
    shares : ndarray of shape (n, m), optional
        What the gate says of rows in memory.
    readers : sequence of ParquetReader
        Of other rows: what reads the columns of the gate, if those are not the features.
    """
    engine.hurry()  # there is an answer: what is left is to apply the gate
    here = isinstance(mixture.labels, np.ndarray)
    judge = _Judge.of(mixture, gate, engine)
    before = mixture.labels if judge.looks_back else None
    own = None if here else _of_parts(mixture.labels, readers, looks_back=judge.looks_back)
    labels: Any = None
    try:
        drawn = _for_r_squared(engine, mixture.seed)
        wanted = [drawn.numbers] if mixture.excerpt is None else [drawn.numbers, _kept(mixture)]
        judge = replace(judge, wanted=np.unique(np.concatenate(wanted)))
        if own is not None and isinstance(engine, PartitionEngine):
            counts, held, _ = engine.parts.fold(_OnPart(judge), own)
        elif readers:
            counts, held, found = judge.read(readers, before)
            labels = np.concatenate(found)
        else:
            counts, held, found = engine.fold(_judge_block, judge, shares, before)
            labels = np.concatenate(found)
        known = np.concatenate(held)
    except PassStopped:
        # What is not known is not said; labels are applied to the end.
        counts = known = None
    if own is not None and isinstance(engine, PartitionEngine):
        lengths = mixture.labels.chunks[0]  # type: ignore[attr-defined] # a dask array
        task = _OnPart(replace(judge, wanted=judge.wanted[:0]), labels_alone=True)
        labels = engine.parts.map_rows(task, lengths, np.int64, own)
    elif labels is None:
        labels = engine.map_rows(_block_labels, judge, shares, before)
    gated = replace(mixture, gate=gate, labels=labels, label_counts=None, doubtful_rows=None)
    r_squared = np.nan
    if counts is not None and known is not None:
        whole = [round(number) for number in counts.tolist()]
        doubtful = None if mixture.settings.outliers else whole[-1]
        gated = replace(gated, label_counts=tuple(whole[:-1]), doubtful_rows=doubtful)
        given = known[np.searchsorted(judge.wanted, drawn.numbers)]
        r_squared = _r_squared(mixture, drawn, given)
    if mixture.rows is not None:
        gated = replace(gated, rows=replace(mixture.rows, r_squared_expected=r_squared))
    if mixture.excerpt is not None and known is not None:
        some = known[np.searchsorted(judge.wanted, _kept(mixture))]
        own_labels = np.asarray(labels[_kept(mixture)])
        gated = replace(gated, excerpt=replace(mixture.excerpt, labels=own_labels, shares=some))
    return gated


def labels_of(mixture: Mixture, X: Any, y: Any) -> Labels:
    """Label rows as the fit did where they are its own, by a gate of the features if there is one.

    A gate of other columns cannot be asked here: new rows have the shares of the fit.
    """
    gate = mixture.gate
    if gate is None:
        return mixture.assign(X, y)
    values, target, shares = np.asarray(X), np.asarray(y), feature_shares(mixture, X)
    known = mixture.labels.size == target.size
    if known and are_fitted(mixture, values, target, shares):
        return mixture.labels
    return mixture.assign(X, y, shares)


def feature_shares(mixture: Mixture, X: Any) -> Floats | None:
    """Return the shares that a gate of the features gives each row; None if there is none."""
    gate = mixture.gate
    asked = isinstance(gate, ColumnGate) and gate.from_features
    return np.asarray(gate.shares(X)) if asked and gate is not None else None


@dataclass(frozen=True, eq=False)
class _Judge:
    """Labels rows by the shares of each, and counts; can be sent to a worker."""

    mixture: Mixture
    gate: Any
    exact: tuple[int, ...]  # regimes without noise: the fit has found their rows
    keeps_outliers: bool  # whether the outliers are those of the fit, whatever the shares
    by_weight: bool  # whether weights count repetitions
    wanted: Labels  # numbers of rows whose shares are wanted, ascending

    @classmethod
    def of(cls, mixture: Mixture, gate: Any, engine: Engine) -> _Judge:
        """Take from a mixture what workers need."""
        none = np.empty(0, dtype=np.int64)
        bare = replace(mixture, labels=none, excerpt=None, attempts=(), selection=None)
        exact = mixture.scale < SEARCH.noiseless * engine.problem.target_scale
        settings = mixture.settings
        return cls(
            bare,
            gate,
            tuple(np.flatnonzero(exact).tolist()),
            settings.search == "net" or bool(settings.outliers),
            engine.problem.counts,
            none,
        )

    @property
    def looks_back(self) -> bool:
        """Whether labels depend on those that the fit gave."""
        return bool(self.exact) or self.keeps_outliers

    def label(self, X: Any, y: Any, shares: Floats, before: Any) -> tuple[Labels, NDArray[Any]]:
        """Label rows, and say which are in doubt."""
        joint = self.mixture.log_densities(X, y, shares)
        doubtful = softmax(joint, axis=1).max(axis=1) < SURE
        if before is None:
            return self.mixture.assign(X, y, shares), doubtful
        for j in self.exact:
            joint[:, j] = np.where(before == j, np.inf, -np.inf)
        labels = np.argmax(joint[:, :-1], axis=1)
        outlier = joint[:, -1] > joint[np.arange(labels.size), labels]
        return np.where(before < 0 if self.keeps_outliers else outlier, -1, labels), doubtful

    def judge(
        self, X: Any, y: Any, weights: Any, first: int, shares: Any = None, before: Any = None
    ) -> Judged:
        """Label and count rows, of which the first has this number in the table."""
        m = self.mixture.n_components
        total, held, found = np.zeros(m + 2), list[Floats](), list[Labels]()
        for rows in chunks(*X.shape):
            given = self.gate.shares(X[rows]) if shares is None else shares[rows]
            known = None if before is None else before[rows]
            labels, doubtful = self.label(X[rows], y[rows], given, known)
            counted = np.ones(labels.size) if weights is None else weights[rows]
            counted = counted if self.by_weight else counted > 0
            counted = counted.astype(np.float64)
            total[:-1] += np.bincount(labels % (m + 1), counted, minlength=m + 1)
            total[-1] += counted[doubtful].sum()
            begun = first + rows.start
            low, high = np.searchsorted(self.wanted, [begun, begun + labels.size])
            held.append(given[self.wanted[low:high] - begun])
            found.append(labels)
        return total, held, found

    def read(self, readers: Sequence[ParquetReader], before: Any, first: int = 0) -> Judged:
        """Do the same for the rows that readers read, together with the columns of the gate."""
        total: Floats = np.zeros(self.mixture.n_components + 2)
        held, found, done = list[Floats](), list[Labels](), 0
        for X, y, weights, shares in self._pieces(readers):
            known = None if before is None else before[done : done + len(y)]
            more = self.judge(X, y, weights, first + done, shares, known)
            total, held, found = total + more[0], held + more[1], found + more[2]
            done += len(y)
        return total, held, found

    def _pieces(self, readers: Sequence[ParquetReader]) -> Iterator[tuple[Any, Any, Any, Floats]]:
        from regimix.engines.parquet import columns_of

        for reader in readers:
            for span in reader.spans:
                for rows, kept, batch in reader.labelled(span, BATCH_ROWS):
                    if rows.n_rows:
                        beside = columns_of(batch, reader.gating, kept)
                        y = raised(rows.y, reader.power)
                        yield rows.X, y, rows.weights, self.gate.shares(beside)


def _judge_block(block: MemoryEngine, judge: _Judge, shares: Any, before: Any) -> Judged:
    """Label and count the rows of a block."""
    problem, first = block.problem, int(block.numbers[0]) if block.problem.n_rows else 0
    beside = (None if of_all is None else block.own(of_all) for of_all in (shares, before))
    return judge.judge(problem.X, problem.y, problem.weights, first, *beside)


def _block_labels(block: MemoryEngine, judge: _Judge, shares: Any, before: Any) -> Labels:
    found = _judge_block(block, judge, shares, before)[2]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _OnPart:
    """Labels the rows of a part on a cluster, and counts them or returns the labels."""

    judge: _Judge
    labels_alone: bool = False

    def __call__(self, rows: RawRows, own: tuple[Any, int, Any]) -> Any:
        """Judge the rows, which a reader may have to read again for the columns of the gate."""
        reader, first, before = own
        if not rows.n_rows:
            return np.empty(0, dtype=np.int64) if self.labels_alone else Nothing()
        if reader is None:
            judged = self.judge.judge(rows.X, rows.y, rows.weights, first, None, before)
        else:
            judged = self.judge.read([reader], before, first)
        return np.concatenate(judged[2]) if self.labels_alone else (*judged[:2], [])


def _of_parts(
    labels: Any, readers: Sequence[ParquetReader], *, looks_back: bool
) -> list[tuple[Any, int, Any]]:
    """Return what belongs to each part: its reader, its first row, and its labels."""
    lengths = labels.chunks[0]
    firsts = np.cumsum((0, *lengths[:-1])).tolist()
    blocks = list(labels.to_delayed(optimize_graph=False).ravel()) if looks_back else None
    nothing = [None] * len(lengths)
    return list(zip(readers or nothing, firsts, blocks or nothing, strict=True))


def _kept(mixture: Mixture) -> Labels:
    assert mixture.excerpt is not None
    return mixture.excerpt.numbers


def _for_r_squared(engine: Engine, seed: int) -> Drawn:
    """Draw the rows that ``RowLaw`` is of, with their copies, which the gate may tell apart."""
    drawn = engine.draw(MOMENT_ROWS, seed)
    return drawn.take(np.flatnonzero(np.cumsum(drawn.first_copies()) <= MOMENT_ROWS))


def _r_squared(mixture: Mixture, drawn: Drawn, shares: Floats) -> float:
    """Return R² of the expected response, as ``RowLaw`` does for one share for all."""
    weights = drawn.totals / drawn.totals.sum()
    middle = float(weights @ drawn.y) if mixture.fit_intercept else 0.0
    total = float(weights @ (drawn.y - middle) ** 2)
    left = float(weights @ (drawn.y - mixture.predict(drawn.X, shares)) ** 2)
    return 1 - left / total if total > 0 else np.nan
