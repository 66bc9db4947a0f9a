"""The subspace of the components: a few directions of the whitened features that matter to y.

Definition 9 (``def:subspace``) asks for a space close to the span of all components. Three ways to
find it, each an eigenproblem of d x d matrices:

``"svd"``
    The paper's for clean data: the top left singular space of L = [y_1 x_1 ... y_n x_n].
``"filter"``
    The paper's for corrupted data, robust PCA of L: the iterative spectral filter of Diakonikolas
    et al. (2017), "Being Robust (in High Dimensions) Can Be Practical"; see ``_filtered``.
``"bounded"``
    Bounded functions of y instead of y^2. A corrupted row then weighs no more than any other, and
    functions that are not even see components that differ in their intercepts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, erfc

from regimix.errors import ParameterError
from regimix.model.em import late
from regimix.model.rows import weighted_quantile
from regimix.search.numbers import SEARCH
from regimix.words import count, number

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Order = NDArray[np.intp] | None
SubspaceKind = Literal["bounded", "svd", "filter"]

# Median of the square of a standard normal.
CHI_SQUARE_MEDIAN = chdtri(1, 0.5)


@dataclass(frozen=True)
class Subspace:
    """Directions of the whitened features in which the components are to be found.

    Attributes
    ----------
    basis : ndarray of shape (d, r)
        Orthonormal columns.
    spectrum : ndarray of shape (d,)
        Eigenvalues, largest first; the first r belong to the basis.
    noise_level : float or None
        Largest eigenvalue among responses that were permuted, and so say nothing.
    certain : int
        Eigenvalues above the noise level: directions that are certainly there, a lower bound.
    kind : {"bounded", "svd", "filter"}
    """

    basis: Floats
    spectrum: Floats
    noise_level: float | None
    certain: int
    kind: SubspaceKind

    @property
    def gap(self) -> float:
        """Ratio of the last eigenvalue kept to the first left out; infinite if none is."""
        kept = self.basis.shape[1]
        if kept >= self.spectrum.size or self.spectrum[kept] <= 0:
            return float("inf")
        return float(self.spectrum[kept - 1] / self.spectrum[kept])

    @property
    def has_gap(self) -> bool:
        """Whether the spectrum falls clearly where it was cut, and from above the noise."""
        last = self.spectrum[: self.basis.shape[1]].min(initial=np.inf)
        return self.gap >= SEARCH.clear_gap and (
            self.noise_level is None or last > self.noise_level
        )

    def head(self, size: int) -> Subspace:
        """Keep the first directions only."""
        return replace(self, basis=np.ascontiguousarray(self.basis[:, :size]))

    def describe(self) -> str:
        """Say in words and bars whether the spectrum has a gap where it was cut."""
        d, kept = self.basis.shape
        lines = [f"the search kept {kept} of {d} directions ({self.kind})"]
        if kept >= d:
            lines.append("these are all: there is nothing to project away")
        else:
            verdict = "a gap" if self.has_gap else "no clear gap, the cut is arbitrary"
            lines.append(
                f"eigenvalue {kept} is {number(self.gap, 3)} times eigenvalue {kept + 1}: {verdict}"
            )
        if self.noise_level is not None:
            verb = "exceeds" if self.certain == 1 else "exceed"
            lines.append(
                f"{count(self.certain, 'eigenvalue')} {verb} {self.noise_level:.3g}, the largest "
                "under permuted responses: at least so many directions are real"
            )
        top = max(float(self.spectrum[0]), 1e-300) if d else 1.0
        for i, value in enumerate(self.spectrum[: kept + 4]):
            bar = "#" * round(40 * max(float(value), 0.0) / top)
            marks = [" kept"] if i < kept else []
            if self.noise_level is not None and value > self.noise_level:
                marks.append(" above noise")
            lines.append(f"{i + 1:4d} {value:10.3g} {bar}{','.join(marks)}")
        return "\n".join(lines)


def find_subspace(
    W: Floats,
    y: Floats,
    weights: Floats | None,
    size: int,
    kind: SubspaceKind = "bounded",
    rng: np.random.Generator | None = None,
    *,
    permutations: int | None = None,
    single: bool = False,
) -> Subspace:
    """Find the directions of whitened features that the response depends on.

    Parameters
    ----------
    W : ndarray of shape (n, d)
        Whitened features, without a constant column.
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,) or None
    size : int
        Directions wanted; all if there are no more than that.
    kind : {"bounded", "svd", "filter"}
    rng : numpy.random.Generator, optional
        For the permutations; needed unless there are none.
    permutations : int, optional
        Permuted responses to compare the spectrum with.
    single : bool
        Whether single precision will do, of the ``"bounded"`` kind: a third of the time.
    """
    if kind not in get_args(SubspaceKind):
        raise ParameterError(
            f"subspace must be one of {', '.join(map(repr, get_args(SubspaceKind)))}; got {kind!r}."
        )
    if size < 1:
        raise ParameterError(f"a subspace needs at least one direction; got size={size!r}.")
    permutations = SEARCH.permutations if permutations is None else permutations
    if permutations and rng is None:
        raise ParameterError("pass rng, the source of the permutations, or permutations=0.")
    shares = np.ones(len(y)) if weights is None else weights
    shares = shares / shares.sum()
    matrix = _moments_of(W, y, shares, size, kind, single)
    values, vectors = np.linalg.eigh(matrix(None))
    values = values[::-1].copy()
    noise = None
    if permutations and rng is not None and not late():
        orders = (rng.permutation(len(y)) for i in range(permutations) if not (i and late()))
        spectra = [np.linalg.eigvalsh(matrix(order)) for order in orders]
        noise = max((float(s[-1]) for s in spectra if s.size), default=0.0)
    return Subspace(
        basis=np.ascontiguousarray(vectors[:, ::-1][:, :size]),
        spectrum=values,
        noise_level=noise,
        certain=0 if noise is None else int(np.count_nonzero(values > noise)),
        kind=kind,
    )


def shapeless(
    W: Floats,
    y: Floats,
    weights: Floats,
    size: int,
    kind: SubspaceKind,
    rng: np.random.Generator,
) -> bool:
    """Say whether ``find_subspace`` would find no direction certain; ask no more than it takes."""
    matrix = _moments_of(W, y, weights / weights.sum(), size, kind, single=True)
    top = float(np.linalg.eigvalsh(matrix(None))[-1])
    for _ in range(SEARCH.more_permutations):
        if top <= float(np.linalg.eigvalsh(matrix(rng.permutation(len(y))))[-1]):
            return True
    return False


def _moments_of(
    W: Floats, y: Floats, shares: Floats, size: int, kind: SubspaceKind, single: bool
) -> Callable[[Order], Floats]:
    """Return the matrix whose top eigenvectors are wanted, for any order of the responses."""
    if kind == "bounded":
        features, functions = _equal_length(W, shares), _bounded_functions(y, shares)
        # Directions that surely hold nothing show the offset that equal lengths leave.
        spare = 0 if features is W else max(W.shape[1] - size, W.shape[1] // 2)
        if single:
            singles = features.astype(np.float32)
            return lambda order: _contrast_in_blocks(
                singles, functions if order is None else functions[order], shares, spare
            )
        return lambda order: _contrast(
            features, functions if order is None else functions[order], shares, spare
        )

    def moments(order: Order) -> Floats:
        response = y if order is None else y[order]
        left = _filtered(W * response[:, None], shares, size) if kind == "filter" else shares
        return _second_moment(W, left / left.sum() * response**2)

    return moments


def _second_moment(rows: Floats, shares: Floats) -> Floats:
    return np.asarray((rows * shares[:, None]).T @ rows)


def _filtered(rows: Floats, shares: Floats, size: int) -> Floats:
    """Remove rows of L until its top directions have no longer tails than clean data have.

    The filter of Diakonikolas et al. (2017): take the top eigenvectors of the second moment of the
    rows that are left; along each, corrupted rows that raise the variance must show as a tail that
    is too long; cut the tail off; repeat until no tail is too long. Along a direction v, a clean
    row of one component has at most |v'x y| ~ g^2, g normal. So the tail is too long at T when
    more rows lie beyond T than ``tail_factor`` times what a squared normal with the same median,
    stretched by ``tail_stretch`` (components mix long and short), puts there, plus ``tail_rows``
    rows. All rows beyond the smallest such T are removed.
    """
    shares = shares.copy()
    one_row = float(shares[shares > 0].min())
    while True:  # each round but the last removes a row
        vectors = np.linalg.eigh(_second_moment(rows, shares))[1]
        far = np.zeros(len(rows), dtype=np.bool_)
        for lengths in np.abs(rows @ vectors[:, ::-1][:, :size]).T:
            far |= lengths >= _tail_begin(lengths, shares, SEARCH.tail_rows * one_row)
        far &= shares > 0
        if not far.any() or late():
            return shares
        shares[far] = 0.0


def _tail_begin(lengths: Floats, shares: Floats, chance: float) -> float:
    """Find the smallest length beyond which too many rows lie; infinite if there is none."""
    typical = weighted_quantile(lengths, shares, 0.5)
    if typical <= 0:
        return float("inf")
    order = np.argsort(-lengths, kind="stable")
    beyond = np.cumsum(shares[order])
    square = CHI_SQUARE_MEDIAN * lengths[order] / (SEARCH.tail_stretch * typical)
    expected = erfc(np.sqrt(square / 2)) * shares.sum()  # P(g^2 >= t) = erfc(sqrt(t / 2))
    too_many = np.flatnonzero(
        (beyond > SEARCH.tail_factor * expected + chance) & (lengths[order] > typical)
    )
    return float(lengths[order[too_many[-1]]]) if too_many.size else float("inf")


def _equal_length(W: Floats, shares: Floats) -> Floats:
    """Bring rows to one length where lengths vary more than Gaussian rows' do.

    Of an elliptical row only the direction tells about the components; its length is the same for
    all columns, and a few long rows would drown the rest.
    """
    d = W.shape[1]
    lengths = np.sqrt(np.einsum("ij,ij->i", W, W))
    typical = weighted_quantile(lengths, shares, 0.5)
    long = weighted_quantile(lengths, shares, 0.95)
    gaussian = float(np.sqrt(chdtri(d, 0.05) / chdtri(d, 0.5))) if d else 1.0
    if long <= SEARCH.length_spread * gaussian * typical or typical <= 0:
        return W
    # A row much shorter than the others says nothing; it is not blown up.
    scale = np.sqrt(d) / np.maximum(lengths, typical / SEARCH.clip)
    return np.asarray(W * scale[:, None])


def _bounded_functions(y: Floats, shares: Floats) -> Floats:
    """Bounded functions of the response, of mean zero and variance one, as columns.

    A clipped square sees slopes; the clipped response itself, its
    sine and cosine see what differs between components with different intercepts, where the square
    alone is blind.
    """
    centred = y - weighted_quantile(y, shares, 0.5)
    edge = np.sqrt(SEARCH.clip * weighted_quantile(centred**2, shares, 0.5))
    edge = edge or float(np.abs(centred).max()) or 1.0
    linear = np.clip(centred / edge, -1.0, 1.0)
    functions = np.stack(
        [linear**2, linear, np.sin(np.pi * linear), np.cos(np.pi * linear)], axis=1
    )
    functions -= shares @ functions
    deviation = np.sqrt(shares @ functions**2)
    return np.asarray(functions / np.where(deviation > 0, deviation, 1.0))


def _contrast(features: Floats, functions: Floats, shares: Floats, spare: int) -> Floats:
    """Sum T_k^2 + v_k v_k' with T_k the mean of f_k(y) x x' and v_k the mean of f_k(y) x.

    Where y does not depend on x along a direction, every T_k and v_k is zero there, whatever the
    intercepts; squares keep contributions of different sign from cancelling. Rows of equal length
    are the exception: what a component adds along its direction is missing evenly along all
    others. With ``spare`` directions to be left out, what that many have in common is taken away.
    """
    functions = functions - shares @ functions  # permuting moves weighted means
    total = np.zeros((features.shape[1], features.shape[1]))
    for k, function in enumerate(functions.T):
        if k and late():
            break  # each function sees something
        weighted = features * (function * shares)[:, None]
        total += _squared(weighted.T @ features, weighted.sum(axis=0), spare)
    return total


def _contrast_in_blocks(features: Singles, functions: Floats, shares: Floats, spare: int) -> Floats:
    """Do as ``_contrast``, in the precision of the features and without large temporaries."""
    weights = ((functions - shares @ functions) * shares[:, None]).astype(features.dtype)
    (n, d), count = features.shape, weights.shape[1]
    products = np.zeros((d, count * d), features.dtype)
    block_rows = 512  # their products stay in the cache
    buffer = np.empty((block_rows, count, d), features.dtype)
    for begin in range(0, n, block_rows):
        block = features[begin : begin + block_rows]
        weighted = buffer[: len(block)]
        np.multiply(block[:, None], weights[begin : begin + block_rows, :, None], out=weighted)
        products += block.T @ weighted.reshape(len(block), -1)
    seconds = products.reshape(d, count, d).astype(np.float64)
    firsts = (weights.T @ features).astype(np.float64)
    total = np.zeros((d, d))
    for k in range(count):
        total += _squared(seconds[:, k], firsts[k], spare)
    return total


def _squared(second: Floats, first: Floats, spare: int) -> Floats:
    """Return T^2 + v v' of one function, what ``spare`` directions have in common taken away."""
    if spare > 1:
        # The mean of so many neighbouring eigenvalues that lie closest together.
        values = np.linalg.eigvalsh(second)
        low = int(np.argmin(values[spare - 1 :] - values[: values.size - spare + 1]))
        second[np.diag_indices_from(second)] -= values[low : low + spare].mean()
    return np.asarray(second @ second + np.outer(first, first))
