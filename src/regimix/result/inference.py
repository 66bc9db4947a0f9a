"""How sure the coefficients are: recorded at the fit, by one more pass over the rows.

Errors are those of weighted least squares, every row counted by its share in the component, with
the component's own noise: what theory says once it is known which row belongs where. Rows for which
that is not certain say less, and how much less is known too (Louis 1982): errors are widened by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import stdtr, stdtrit

from regimix.data.problem import Frame
from regimix.engines.base import Engine, RowSums
from regimix.errors import ParameterError, read_number
from regimix.model.blocks import Labelling, Law, MixtureSums, labelled_sums, mixture_sums
from regimix.model.numbers import MODEL
from regimix.result.rowlaw import MOST_COVARIANCE_FEATURES
from regimix.trimmed.ilts import EPSILON, RANK_ROUNDINGS, factored
from regimix.words import count

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture

Floats = NDArray[np.float64]

# A standard error above this has a square that is no number, and one below its inverse a square
# that is nothing: such covariances stay unknown.
LARGEST_ERROR = 1e150
# A coefficient depends on what the rows leave open if this part of it lies there.
OPEN = 1e-6
# Doubt about the rows of a component can take this part of what they say, and no more.
MOST_DOUBT = 0.95


@dataclass(frozen=True, eq=False)
class Inference:
    """Errors of the coefficients and explained variance, in the user's units.

    Errors are those of least squares on the rows of each component, every row counted by its
    responsibility, and widened where it is not certain which regime a row follows (the observed
    information of each component, the others held fixed). With ``keep`` or ``search="net"``, which
    fit by labels, they are conditional on the labels. In every case they take the number of regimes
    for granted. Whole-number weights count as repetitions; relative importances enter by the
    sandwich formula, and the rows that count are then fewer than the rows there are.

    Attributes
    ----------
    standard_error : ndarray of shape (m, d)
        NaN where the rows do not determine a coefficient, or are too few; ``notes`` says why.
    intercept_error : ndarray of shape (m,)
        NaN without an intercept.
    degrees : ndarray of shape (m,)
        Degrees of freedom of the noise: rows less coefficients.
    r_squared : ndarray of shape (m,)
        Share of the variance of the response, among the component's rows, that it explains. Without
        an intercept, variance is about zero. NaN if the response does not vary there, or no row is
        to spare.
    r_squared_overall : float
        The same for all rows that are not outliers, each explained by its own regime: a large part
        of it may be due to knowing the regime.
    size : ndarray of shape (m,)
        Rows of each component, by weight.
    covariance : ndarray of shape (m, p, p) or None
        Of the coefficients, then the intercept if there is one. None for tables with more than
        ``MOST_COVARIANCE_FEATURES`` columns.
    notes : tuple of str
        Why a component has no errors, or not all; empty where there is nothing to say.
    """

    standard_error: Floats
    intercept_error: Floats
    degrees: Floats
    r_squared: Floats
    r_squared_overall: float
    size: Floats
    covariance: Floats | None = None
    notes: tuple[str, ...] = ()


def infer(
    engine: Engine, law: Law, labelling: Labelling | None = None, known: MixtureSums | None = None
) -> Inference | None:
    """Find errors and explained variance of a fitted law.

    With a labelling, rows count fully for the component of their label; without, by their
    responsibilities, and doubts about them widen the errors. ``known`` are the sums of such a pass,
    if there was one. None if the table is so wide that the sums would not fit, or that its rows
    leave most coefficients open.
    """
    problem = engine.problem
    m, p = len(law.scale), problem.n_columns
    if m * p**2 > MODEL.largest_sums or p > max(problem.n_present, MOST_COVARIANCE_FEATURES):
        return None
    found = _sums(engine, law, labelling) if known is None else known
    # Relative importances: the variance of a weighted sum has the squares of the weights.
    squared = None if problem.counts else _sums(engine, law, labelling, power=2.0)
    keep_covariance = problem.n_features <= MOST_COVARIANCE_FEATURES
    # The noise is then that of largest likelihood, which is too small for errors.
    plain = labelling is None and bool(np.isneginf(law.log_background))
    covariance = np.full((m, p, p), np.nan) if keep_covariance else None
    errors, degrees, notes = np.full((m, p), np.nan), np.zeros(m), []
    for j in range(m):
        roots, doubtful = _Roots.of(found.sums[j].gram), False
        if found.doubt is not None:
            roots, doubtful = roots.widened(found.doubt[j])
        size = float(found.size[j])
        if squared is not None:
            size = size**2 / max(float(squared.size[j]), 1e-300)
        rank = roots.root.shape[1]
        degrees[j] = max(size - rank, 0.0)
        notes.append(_note(size, rank, p, doubtful=doubtful))
        if degrees[j] < 1:
            continue
        middle = None if squared is None else squared.sums[j].gram
        if squared is not None and squared.doubt is not None:
            middle = squared.sums[j].gram - squared.doubt[j]
        half = _half(problem, roots, middle)
        half *= law.scale[j] * problem.target_scale * (np.sqrt(size / degrees[j]) if plain else 1.0)
        errors[j] = _lengths(half)
        some = errors[j][errors[j] > 0]
        within = (some > 1 / LARGEST_ERROR) & (some < LARGEST_ERROR)
        if covariance is not None and within.all():
            covariance[j] = half @ half.T
    explained, overall = _explained(problem, law, found)
    explained[degrees < 1] = np.nan  # as many coefficients as rows explain anything
    first = int(problem.fit_intercept)
    return Inference(
        standard_error=errors[:, : p - first],
        intercept_error=errors[:, -1].copy() if first else np.full(m, np.nan),
        degrees=degrees,
        r_squared=explained,
        r_squared_overall=overall,
        size=found.size,
        covariance=covariance,
        notes=tuple(notes),
    )


def least_squares_errors(problem: Frame, gram: Floats, scale: float) -> Floats:
    """Return the standard errors of one fit in user units, (p,), the intercept last."""
    half = _half(problem, _Roots.of(gram), None) * scale * problem.target_scale
    return _lengths(half)


def _lengths(half: Floats) -> Floats:
    """Return the length of each row, whose square need not be a number."""
    unit = np.maximum(np.abs(half).max(axis=1, initial=0.0), np.finfo(np.float64).tiny)
    return np.asarray(unit * np.linalg.norm(half / unit[:, None], axis=1))


def _note(size: float, rank: int, p: int, *, doubtful: bool) -> str:
    if size - rank < 1:
        return f"no standard errors: {size:.3g} rows for {p} coefficient{'s' * (p != 1)}"
    if rank < p:
        return f"its rows determine {rank} of {p} coefficients"
    small = "standard errors are too small: hardly a row is certainly in this regime"
    return small if doubtful else ""


def _sums(engine: Engine, law: Law, labelling: Labelling | None, power: float = 1.0) -> MixtureSums:
    """Sum over the rows of each component, by responsibility or by label."""
    if labelling is None:
        return mixture_sums(engine, law, with_doubt=True, power=power)
    return labelled_sums(engine, law, labelling, power=power)


# --- from sums to errors --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Roots:
    """The inverse of a Gram matrix as ``root @ root.T``, and the directions that it leaves open."""

    root: Floats
    length: Floats
    open: Floats

    @classmethod
    def of(cls, gram: Floats) -> _Roots:
        """Invert a Gram matrix; columns are brought to equal length first."""
        p = len(gram)
        if (found := factored(gram)) is not None:
            factor, length = found
            inverse, _ = lapack.dtrtri(factor, lower=1)
            return cls(inverse.T / length[:, None], length, np.empty((p, 0)))
        diagonal = np.diag(gram)
        length = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        values, vectors = np.linalg.eigh(gram / length / length[:, None])
        usable = values > RANK_ROUNDINGS * p * EPSILON * max(float(values.max(initial=0.0)), 1.0)
        root = vectors[:, usable] / np.sqrt(values[usable])
        return cls(root / length[:, None], length, vectors[:, ~usable] / length[:, None])

    def widened(self, doubt: Floats) -> tuple[_Roots, bool]:
        """Take from the Gram matrix what doubtful rows do not say; tell if hardly a part is left.

        No direction loses more than ``MOST_DOUBT``: beyond, the formula says nothing.
        """
        if not doubt.any():
            return self, False
        lost, vectors = np.linalg.eigh(self.root.T @ doubt @ self.root)
        left = 1 - np.minimum(lost, MOST_DOUBT)
        root = self.root @ (vectors / np.sqrt(left))
        return replace(self, root=root), bool((lost > MOST_DOUBT).any())


def _half(problem: Frame, roots: _Roots, middle: Floats | None) -> Floats:
    """Return a matrix that times its transpose is the covariance at unit noise, in user units.

    ``middle`` is what the rows say by their squared weights, where weights are not repetitions.
    """
    half = _to_user(problem, roots.root)
    if middle is not None:
        values, vectors = np.linalg.eigh(roots.root.T @ middle @ roots.root)
        half = half @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    if roots.open.shape[1]:
        part = np.linalg.norm(_to_user(problem, roots.open), axis=1)
        whole = np.linalg.norm(_to_user(problem, np.diag(1 / roots.length)), axis=1)
        half[part > OPEN * whole] = np.nan
    return half


def _to_user(problem: Frame, standardised: Floats) -> Floats:
    """Translate changes of coefficients (p, k) into the user's units, the intercept last."""
    first = int(problem.fit_intercept)
    slopes = standardised[first:] / problem.scale[:, None]
    if not first:
        return slopes
    return np.vstack([slopes, standardised[:1] - problem.center @ slopes])


# --- explained variance ---------------------------------------------------------------------------


def _explained(problem: Frame, law: Law, found: MixtureSums) -> tuple[Floats, float]:
    """Return R² of each component, and of all rows that are not outliers together."""
    each = zip(law.thetas, found.sums, found.square, found.size, strict=True)
    intercept = problem.fit_intercept
    known = np.array([_variation(*component, intercept=intercept) for component in each])
    total, means = known.T
    middle = float(np.average(means, weights=np.maximum(found.size, 1e-300)))
    between = found.size * (means - middle) ** 2
    varies = total > 0
    explained = np.where(varies, 1 - found.square / np.where(varies, total, 1.0), np.nan)
    overall = float((total + between).sum())
    return explained, 1 - float(found.square.sum()) / overall if overall > 0 else float("nan")


def _variation(
    theta: Floats, sums: RowSums, square: float, size: float, *, intercept: bool
) -> tuple[float, float]:
    """Sum of squares of a component's responses (about their mean, if there is an intercept).

    From its normal equations: the response is what ``theta`` predicts and a residual. Returns the
    mean too.
    """
    if not intercept:
        return float(square + theta @ (2 * sums.moment + sums.gram @ theta)), 0.0
    size = max(size, 1e-300)
    column, slopes, shift = sums.gram[0, 1:] / size, theta[1:], sums.moment[0] / size
    gram = sums.gram[1:, 1:] - size * np.outer(column, column)
    moment = sums.moment[1:] - size * shift * column
    total = square - size * shift**2 + slopes @ (2 * moment + gram @ slopes)
    return float(total), float(theta[0] + column @ slopes + shift)


# Directions with less than this part of the joint variance are taken to have none.
FLAT = 1e-12


def read_level(level: Any, name: str = "level") -> float:
    """Read a probability above 0 and below 1."""
    allowed = "a number above 0 and below 1, such as 0.95"
    return read_number(name, level, lambda share: 0 < share < 1, allowed)


def recorded(mixture: Mixture) -> Inference:
    """Return what was recorded at the fit, or say that nothing was."""
    if mixture.inference is None:
        m, d = mixture.coef.shape
        raise ParameterError(
            f"no standard errors were recorded with this mixture of {count(m, 'regime')} and "
            f"{count(d, 'column')}: it was not made by a fit, or the table is too wide. Use "
            "mixture.bootstrap(X, y)."
        )
    return mixture.inference


def estimates(mixture: Mixture) -> Floats:
    """Return coefficients with their intercept, (m, d + 1); (m, d) without an intercept."""
    if not mixture.fit_intercept:
        return mixture.coef
    return np.column_stack([mixture.coef, mixture.intercept])


def errors(mixture: Mixture) -> Floats:
    """Return the standard errors in the same layout."""
    inference = recorded(mixture)
    if not mixture.fit_intercept:
        return inference.standard_error
    return np.column_stack([inference.standard_error, inference.intercept_error])


def conf_int(mixture: Mixture, level: float) -> Floats:
    """Return Student intervals, (m, d + 1, 2)."""
    level = read_level(level)
    reach = stdtrit(_degrees(mixture), 0.5 + level / 2) * errors(mixture)
    middle = estimates(mixture)
    return np.stack([middle - reach, middle + reach], axis=-1)


def t_values(mixture: Mixture) -> Floats:
    """Return estimates in units of their errors; exact fits give infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(estimates(mixture) / errors(mixture))


def p_values(mixture: Mixture) -> Floats:
    """Return two-sided probabilities of so large a t value if the coefficient were zero."""
    return np.asarray(2 * stdtr(_degrees(mixture), -np.abs(t_values(mixture))))


def _degrees(mixture: Mixture) -> Floats:
    degrees = recorded(mixture).degrees[:, None]
    return np.where(degrees > 0, degrees, np.nan)


def holm(p_values: Floats) -> Floats:
    """Correct p-values for their number (Holm 1979); those that are NaN do not count."""
    known = np.flatnonzero(np.isfinite(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    corrected = np.full(p_values.shape, np.nan)
    raised = p_values[order] * np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(raised), 1.0)
    return corrected


def separation(mixture: Mixture) -> Floats:
    """Return distances between components in units of their uncertainty, (m, m)."""
    covariance, values = recorded(mixture).covariance, estimates(mixture)
    m = len(values)
    distances = np.full((m, m), np.nan)
    np.fill_diagonal(distances, 0.0)
    if covariance is None:
        return distances
    for i in range(m):
        for j in range(i):
            distance = _distance(values[i] - values[j], covariance[i] + covariance[j])
            distances[i, j] = distances[j, i] = distance
    return distances


def _distance(gap: Floats, covariance: Floats) -> float:
    """Return the Mahalanobis length of a gap, over the coefficients that are known."""
    known = np.isfinite(np.diag(covariance))
    if not known.any():
        return float("nan")
    gap, covariance = gap[known], covariance[np.ix_(known, known)]
    deviation = np.sqrt(np.diag(covariance))
    if (gap[deviation == 0] != 0).any():
        return float("inf")
    gap, covariance = gap[deviation > 0], covariance[np.ix_(deviation > 0, deviation > 0)]
    deviation = deviation[deviation > 0]
    if not gap.size:
        return 0.0
    # In units of the errors, so that the columns' units do not count.
    values, vectors = np.linalg.eigh(covariance / deviation / deviation[:, None])
    along = vectors.T @ (gap / deviation)
    return float(np.sqrt(np.sum(along**2 / np.maximum(values, FLAT * values[-1]))))
