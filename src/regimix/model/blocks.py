"""The model as functions of a block of rows: one pass over all blocks serves a round of EM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Engine, RowSums, combine
from regimix.engines.selection import Keeper
from regimix.model.em import NEVER, joined, normalise
from regimix.model.laws import NoiseLaw, fall_of_background
from regimix.model.numbers import MODEL

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Labels = NDArray[np.int64]
# Gives the component of each row of a block, -1 for none.
Labelling = Callable[["MemoryEngine"], Labels]

# Up to so many vectors, rows are multiplied faster with one after the other than with all at once.
FEW_PRODUCTS = 6


@dataclass(frozen=True)
class Law:
    """A mixture of regressions with a background, in standardised units.

    Attributes
    ----------
    thetas : ndarray of shape (m, p)
    scale, share : ndarray of shape (m,)
        What is left of the shares to one is the background's.
    log_background : float
        Logarithm of the largest density of the response of rows that belong nowhere.
    middle, width : float
        Where that is, and over what distance it falls; flat if infinite.
    degrees : float
        Of the law of the noise, which is Student's; normal if infinite.
    smallest_scale : float
        Noise is never taken to be smaller: the resolution of the response.
    outlier_degrees : float
        Of Student's law of the background; normal if infinite.
    """

    thetas: Floats
    scale: Floats
    share: Floats
    log_background: float
    middle: float = 0.0
    width: float = np.inf
    degrees: float = np.inf
    smallest_scale: float = MODEL.smallest_noise
    outlier_degrees: float = MODEL.background_degrees

    def log_outlier(self, y: Floats) -> Floats | float:
        """Return the log density of standardised responses of rows that belong nowhere."""
        if np.isinf(self.width):
            return max(self.log_background, NEVER)
        distance = (y - self.middle) / self.width
        return self.log_background + fall_of_background(distance, self.outlier_degrees)

    @property
    def background_share(self) -> float:
        """Share of rows that belong to no component; never zero."""
        return max(1.0 - float(self.share.sum()), MODEL.rounding)

    def pick(self, index: Indices) -> Law:
        """Keep some components."""
        return replace(
            self, thetas=self.thetas[index], scale=self.scale[index], share=self.share[index]
        )


def without_outliers(law: Law) -> Law:
    """Return the law of a mixture to which every row belongs."""
    share = law.share / law.share.sum()
    return replace(law, share=share, log_background=-np.inf, width=np.inf)


@dataclass(frozen=True)
class MixtureSums:
    """Sums over all rows, by their shares in each component.

    Attributes
    ----------
    sums : tuple of RowSums
        One per component, with residuals at its coefficients.
    size, square : ndarray of shape (m,)
        Rows (by weight) of each component, and their squared residuals.
    log_gain : float
        Log-likelihood of the standardised responses.
    doubt : ndarray of shape (m, p, p) or None
        The part of each Gram matrix that says nothing about the coefficients, because it is not
        certain that its rows belong to the component (Louis 1982); None if not asked for.
    shared_doubt : ndarray of shape (m, 2) or None
        How much doubt there is, and how much of it ties components to each other: rows that may
        belong to either and lie on the same side of both. (On different sides of the two as often
        as not, they say nothing of the one that depends on the other.)
    """

    sums: tuple[RowSums, ...]
    size: Floats
    square: Floats
    log_gain: float
    doubt: Floats | None = None
    shared_doubt: Floats | None = None

    def pick(self, index: Indices) -> MixtureSums:
        """Keep some components, in a given order."""
        return replace(
            self,
            sums=tuple(self.sums[i] for i in index),
            size=self.size[index],
            square=self.square[index],
            doubt=None if self.doubt is None else self.doubt[index],
            shared_doubt=None if self.shared_doubt is None else self.shared_doubt[index],
        )

    def __add__(self, other: MixtureSums) -> MixtureSums:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return MixtureSums(*(combine(a, b) for a, b in pairs))


def mixture_sums(
    engine: Engine, law: Law, *, with_doubt: bool = False, power: float = 1.0
) -> MixtureSums:
    """Sum over the rows of each component, every row by its posterior share.

    ``power`` raises the weights of the rows: the variance of a weighted sum has their squares.
    """
    return engine.fold(_block_sums, law, power, with_doubt)


def labelled_sums(
    engine: Engine,
    law: Law,
    labelling: Labelling,
    keeper: Keeper | None = None,
    power: float = 1.0,
) -> MixtureSums:
    """Sum over the rows of each component, every row by its label.

    With a keeper, the one row that is kept in part counts in part.
    """
    return engine.fold(_block_sums, law, power, False, labelling, keeper)


def nearest(block: MemoryEngine, law: Law) -> tuple[Labels, Floats, Floats]:
    """Find each row's likeliest component, and its log odds over a row of the background.

    The third is the probability of the likeliest component, or of the background if that is more.
    """
    n = block.problem.n_rows
    labels, odds, chance = np.zeros(n, dtype=np.int64), np.empty(n), np.empty(n)
    reader = _Reader(block, law)
    for rows in block.chunks():
        residuals = reader.residuals(rows, block.readable(rows))
        joint = _log_joint(residuals, law, reader.responses(rows))[0]
        label, best = labels[rows], joint[0]
        for j, other in enumerate(joint[1:-1], 1):  # NumPy's argmax across rows is slow
            np.maximum(label, j * (other > best), out=label)
            best = np.maximum(best, other)
        np.subtract(best, joint[-1], out=odds[rows])
        log_total = normalise(joint)[1]
        np.exp(np.maximum(best, joint[-1]) - log_total, out=chance[rows])
    return labels, odds, chance


class _Reader:
    """Residuals of chunks at every component, from rows as they can be read fastest."""

    def __init__(self, block: MemoryEngine, law: Law) -> None:
        frame = block.problem
        self.slopes, constants = block.slopes(law.thetas)
        shift = constants - self.slopes @ block.offset
        self.shift = (shift + frame.target_center / frame.target_scale)[:, None]
        self.y, self.unit = frame.y, 1.0 / frame.target_scale
        self.center = frame.target_center

    def responses(self, rows: slice) -> Floats:
        """Return the standardised responses of a chunk."""
        return np.asarray((self.y[rows] - self.center) * self.unit)

    def residuals(self, rows: slice, values: Floats) -> Floats:
        """Return the residuals of a chunk, (m, c)."""
        predicted = np.empty((len(self.slopes), len(values)))
        if len(predicted) > FEW_PRODUCTS:
            np.matmul(self.slopes, values.T, out=predicted)
        else:
            for slopes, out in zip(self.slopes, predicted, strict=True):
                np.matmul(values, slopes, out=out)
        predicted += self.shift
        return np.subtract(self.y[rows] * self.unit, predicted, out=predicted)


def _log_joint(residuals: Floats, law: Law, y: Floats) -> tuple[Floats, Floats | None]:
    """Log of share times density, (m + 1, c), the background's last; and weights in heavy tails."""
    scaled = residuals * (1.0 / law.scale[:, None])
    with np.errstate(over="ignore"):  # infinitely far is far enough
        np.square(scaled, out=scaled)
    log_kernel, tail, _ = NoiseLaw(law.degrees).kernel(scaled)
    outlying = np.log(law.background_share) + law.log_outlier(y)
    # A regime that is asked for may have no rows.
    log_share = np.log(np.maximum(law.share, MODEL.rounding))
    return joined(log_kernel, log_share - np.log(law.scale), outlying), tail


class _Sums:
    """Sums of one block on their way.

    ``gram`` is that of rows with a constant first column, whether it is used or not, and their
    residuals last: it holds every other sum.
    """

    def __init__(self, block: MemoryEngine, law: Law, *, with_doubt: bool) -> None:
        m, p = len(law.scale), block.problem.n_features + 1
        self.block = block
        self.gram = np.zeros((m, p + 1, p + 1))
        self.doubt = np.zeros((m, p, p)) if with_doubt else None
        self.shared = np.zeros((m, 2)) if with_doubt else None
        self.size, self.gain = np.zeros(m), 0.0

    def add(self, j: int, values: Floats, near: Floats, weights: Floats) -> Floats:
        """Add rows of a component; return them, multiplied by the roots of their weights."""
        roots = np.sqrt(weights)
        rooted = np.empty((len(values), self.gram.shape[-1]))
        np.multiply(values, roots[:, None], out=rooted[:, 1:-1])
        rooted[:, 0] = roots
        np.multiply(near, roots, out=rooted[:, -1])
        # A matrix times its own transpose costs half of any other product.
        self.gram[j] += rooted.T @ rooted
        return rooted

    def add_doubt(self, j: int, rooted: Floats, unsure: Floats, other: Floats) -> None:
        """Add what rows of a component do not say, because they may belong elsewhere.

        ``unsure`` is the doubt about each row, ``other`` the part that ties it to other components.
        """
        assert self.doubt is not None
        assert self.shared is not None
        # A row with less doubt (1 % of what it says) counts as certain: no standard error is then
        # too small by more than half of that.
        rows = np.flatnonzero(unsure > MODEL.clear**2)
        unsure, half = unsure.take(rows), rooted.take(rows, axis=0)
        weight = np.square(half[:, 0])
        self.shared[j] += weight @ unsure, weight @ other.take(rows)
        half *= np.sqrt(unsure)[:, None]
        self.doubt[j] += (half.T @ half)[:-1, :-1]

    def done(self) -> MixtureSums:
        """Scale the sums, and leave the constant column out where there is no intercept."""
        frame, offset = self.block.problem, self.block.offset
        inverse = np.concatenate([[1.0], 1.0 / frame.scale])
        keep = slice(1 - int(frame.fit_intercept), None)
        gram, moment = self.gram[:, :-1, :-1], self.gram[:, :-1, -1]
        moment[:, 1:] -= moment[:, :1] * offset
        moment = (moment * inverse)[:, keep]
        for matrix in (gram, self.doubt):
            if matrix is not None:
                _centre(matrix, offset)
                matrix *= inverse[:, None] * inverse
        doubt = None if self.doubt is None else self.doubt[:, keep, keep]
        sums = tuple(RowSums(gram[j, keep, keep], moment[j]) for j in range(len(gram)))
        return MixtureSums(sums, self.size, self.gram[:, -1, -1], self.gain, doubt, self.shared)


def _centre(gram: Floats, offset: Floats) -> None:
    """Turn sums of rows with a constant into those of rows from which an offset was taken."""
    for matrix in gram:
        sums, mass = matrix[0, 1:], matrix[0, 0]
        cross = np.outer(sums, offset)
        matrix[1:, 1:] += mass * np.outer(offset, offset) - cross - cross.T
        sums -= mass * offset
        matrix[1:, 0] = sums


def _block_sums(
    block: MemoryEngine,
    law: Law,
    power: float,
    with_doubt: bool,
    labelling: Labelling | None = None,
    keeper: Keeper | None = None,
) -> MixtureSums:
    sums = _Sums(block, law, with_doubt=with_doubt)
    labels = None if labelling is None else labelling(block)
    row_weights = block.problem.weights if keeper is None else keeper.weights(block)
    reader = _Reader(block, law)
    for rows in block.chunks():
        values = block.readable(rows)
        residuals = reader.residuals(rows, values)
        weights = None if row_weights is None else row_weights[rows] ** power
        tail = None
        if labels is None:
            joint, tail = _log_joint(residuals, law, reader.responses(rows))
            posterior, log_total = normalise(joint)
            sums.gain += float(log_total.sum() if weights is None else log_total @ weights)
            if with_doubt:
                pull = np.einsum("jc,jc,j->c", posterior[:-1], residuals, 1 / law.scale)
        else:
            posterior = (labels[rows] == np.arange(len(law.scale))[:, None]).astype(np.float64)
        for j in range(len(law.scale)):
            members = np.flatnonzero(posterior[j] > MODEL.member)
            share, near = posterior[j].take(members), residuals[j].take(members)
            weight = share if weights is None else share * weights.take(members)
            sums.size[j] += weight.sum()
            if tail is not None:
                weight = weight * tail[j].take(members)
            rooted = sums.add(j, values.take(members, axis=0), near, weight)
            if with_doubt:
                far = near / law.scale[j]
                other = (pull.take(members) - share * far) * far
                sums.add_doubt(j, rooted, (1 - share) * far**2, other)
    return sums.done()
