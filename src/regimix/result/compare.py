"""Comparison: in which coefficients regimes differ, and how sure that is.

Regimes whose rows are certain have independent coefficients. Rows that may belong to either tie
them to each other; with rows at hand, the observed information of all coefficients, noises and
shares together says how much (Louis 1982).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from regimix.data.validation import chunks, read_target, read_weights
from regimix.errors import MissingExtraError, ParameterError
from regimix.result.answer import WIDTH
from regimix.result.inference import errors, estimates, holm, read_level, recorded
from regimix.result.summary import INTERCEPT, as_frame, print_cells, print_row
from regimix.words import clean, count, interval, measured, number, p_value, probability

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture

Floats = NDArray[np.float64]

# Comparisons that are printed, those with the largest t values.
MOST_LINES = 40
# Parameters whose joint information is computed: its matrix is inverted, and summed over all rows.
MOST_PARAMETERS = 400
NUMBERS = ("difference", "std_err", "t", "p_value", "p_holm", "lower", "upper")
# Why coefficients are taken to be independent.
NO_ROWS = (
    "Coefficients of different regimes are taken to be independent, which they are where labels "
    "are certain. compare(X, y), with the rows of the fit, does not assume it."
)
BY_LABEL = "Labels are taken for granted; coefficients of different regimes are then independent."
JOINT = "Errors are those of all regimes together, by the observed information of the rows."
GRANTED = (
    "That the regimes are different ones is taken for granted: evidence and stability() are about "
    "that."
)
NO_WEIGHTS = (
    "Coefficients of different regimes are taken to be independent: the fit weighted its rows, and "
    "these came without weights. compare(X, y, sample_weight=...) does not assume it."
)
NO_INFORMATION = (
    "Coefficients of different regimes are taken to be independent: the observed information of "
    "all of them together is singular or indefinite, or too large to compute."
)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Differences between the coefficients of regimes; ``print`` it.

    Attributes
    ----------
    pairs : tuple of (int, int)
        The regimes compared: the second less the first.
    terms : tuple of str
        The features and, last, "intercept", if there is one.
    difference, std_err, t, p_value, p_holm : ndarray of shape (pairs, terms)
        p-values are two-sided, of so large a difference if the two coefficients are equal (but the
        regimes are two); ``p_holm`` are corrected for the number of comparisons (Holm). NaN where a
        coefficient has no error.
    lower, upper : ndarray of shape (pairs, terms)
        Intervals that all hold together with probability ``level`` (Bonferroni): one without zero
        has ``p_holm`` below one minus the level.
    level : float
    coef : ndarray of shape (m, terms)
        The coefficients themselves.
    joint : bool
        Whether the errors are those of all regimes together.
    note : str
        What the errors take for granted.
    deviation : ndarray of shape (d,) or None
        Standard deviations of the features, if they are known.
    """

    pairs: tuple[tuple[int, int], ...]
    terms: tuple[str, ...]
    difference: Floats
    std_err: Floats
    t: Floats
    p_value: Floats
    p_holm: Floats
    lower: Floats
    upper: Floats
    level: float
    coef: Floats
    joint: bool
    note: str
    deviation: Floats | None = None

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each comparison."""
        return [
            {"first": first, "second": second, "term": term}
            | {name: float(getattr(self, name)[i, k]) for name in NUMBERS}
            for i, (first, second) in enumerate(self.pairs)
            for k, term in enumerate(self.terms)
        ]

    def frame(self) -> Any:
        """Return the records as a pandas data frame (polars if pandas is missing)."""
        return as_frame(self.records())

    @property
    def order(self) -> list[tuple[int, int]]:
        """Places of the comparisons to show: pair by pair, of very many those with large t."""
        sizes = np.nan_to_num(np.abs(self.t), nan=-1.0, posinf=np.inf)
        least = np.sort(sizes, axis=None)[::-1][:MOST_LINES][-1]
        shown = [(i, k) for i, k in np.ndindex(sizes.shape) if sizes[i, k] >= least]
        return sorted(shown[:MOST_LINES], key=lambda at: (at[0], -sizes[at]))

    def cells(self, i: int, k: int) -> list[str]:
        """Write the difference of a term between a pair: with its error, interval, t and p."""
        low, high, error = (float(part[i, k]) for part in (self.lower, self.upper, self.std_err))
        difference = measured(float(self.difference[i, k]), error)
        p = probability(float(self.p_holm[i, k]))
        return [*difference, interval(low, high, error), number(float(self.t[i, k]), 3), p]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say for each pair in which term it differs most surely."""
        said = []
        slopes = np.array([term != INTERCEPT for term in self.terms])
        for i, (a, b) in enumerate(self.pairs):
            known = np.nan_to_num(np.abs(self.t[i]), nan=-1.0, posinf=np.inf)
            if known.max() < 0:
                continue
            sure = self.p_holm[i] < 1 - self.level
            # Intercepts are where all features are zero, which may be far from every row.
            told = sure & slopes
            k = int(np.argmax(np.where(told, known, -1.0) if told.any() else known))
            if not sure[k]:
                said.append(f"Regimes {a} and {b}: no single coefficient differs for certain.")
                continue
            error, (_, _, bounds, _, _) = float(self.std_err[i, k]), self.cells(i, k)
            values = [measured(float(self.coef[j, k]), error)[0] for j in (a, b)]
            ends = f"difference {bounds}, {p_value(float(self.p_holm[i, k]))}"
            both = f"{clean(self.terms[k])}: {values[0]} and {values[1]} ({ends})"
            said.append(f"Regimes {a} and {b} differ most surely in {both}.")
        return tuple(said)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what was corrected for, and what is taken for granted."""
        made = int(np.count_nonzero(np.isfinite(self.p_value)))
        corrected = (
            "p-values (Holm) and intervals (Bonferroni) are corrected for "
            f"{count(made, 'comparison')}: all intervals hold together with probability "
            f"{100 * self.level:g}%."
        )
        return corrected, self.note, GRANTED

    def __repr__(self) -> str:
        head = print_row("", ("difference", "std err", "t", "p Holm", "[lower", "upper]"))
        lines, pair, rule = ["How the regimes differ".center(WIDTH).rstrip()], -1, "-" * WIDTH
        parts = (self.difference, self.std_err, self.t, self.p_holm, self.lower, self.upper)
        for i, k in self.order:
            if i != pair:
                title = "Regime {1} less regime {0}".format(*self.pairs[i])
                lines += ["=" * WIDTH, title, rule, head, rule]
                pair = i
            cells = print_cells(np.array([part[i, k] for part in parts]))
            lines.append(print_row(self.terms[k], cells))
        left = self.t.size - len(self.order)
        if left:
            lines.append(f"... {count(left, 'more comparison')} with smaller t; records() has all")
        said = [line for text in (*self.sentences, *self.notes) for line in wrap(text, WIDTH)]
        return "\n".join([*lines, "=" * WIDTH, *said])

    def _repr_html_(self) -> str | None:
        try:
            return str(import_module("regimix.report.notebook").comparison_html(self))
        except (MissingExtraError, ModuleNotFoundError):
            return None

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw it; see ``regimix.plots.ComparisonDisplay``."""
        display = import_module("regimix.plots").ComparisonDisplay
        return display.from_comparison(self, ax=ax, **options)


def compare(mixture: Mixture, X: Any, y: Any, sample_weight: Any, level: Any) -> Comparison:
    """Compare the coefficients of every two regimes; see ``Mixture.compare``."""
    level, inference = read_level(level), recorded(mixture)
    m = mixture.n_components
    if m < 2:
        raise ParameterError("there is one regime, and nothing to compare it with; see summary().")
    values = estimates(mixture)
    # In units of the errors, whose squares need not be numbers; what is open has none.
    known = errors(mixture)
    unit = np.fmax.reduce(known, axis=0)
    unit = np.where(np.isnan(unit), np.inf, np.where(unit > 0, unit, 1.0))
    known = known / unit
    pairs = tuple(combinations(range(m), 2))
    a, b = np.array(pairs).T
    variance, note, joint = known[a] ** 2 + known[b] ** 2, NO_ROWS, None
    if mixture.fitted_by_label:
        note = BY_LABEL
    elif X is not None and sample_weight is None and mixture.weighting == "importances":
        note = NO_WEIGHTS  # repetitions may be there as rows, importances may not
    elif X is not None or mixture.excerpt is not None:
        rows, note = _rows(mixture, X, y, sample_weight), NO_INFORMATION
        joint = joint_covariance(mixture, *rows, unit=unit)
    if joint is not None:
        if not (mixture.outlier_share or mixture.fitted_by_label):
            # As in the errors of each regime: the noise of largest likelihood is too small.
            rows_free = np.maximum(inference.degrees, 1.0)
            more = np.sqrt((rows_free + joint.shape[1]) / rows_free)
            joint = joint * more[:, None, None, None] * more[:, None]
        each = np.einsum("aiai->ai", joint)
        mutual = np.einsum("aibi->abi", joint)[a, b]
        # What no rows determine in one regime alone is not determined together either.
        variance = np.where(np.isfinite(variance), each[a] + each[b] - 2 * mutual, np.nan)
        note = JOINT
    # The noise of each regime is estimated: degrees of freedom by Welch and Satterthwaite.
    free = np.maximum(inference.degrees, 1e-9)[:, None]
    difference, std_err = values[b] - values[a], np.sqrt(np.maximum(variance, 0.0)) * unit
    with np.errstate(divide="ignore", invalid="ignore"):
        first = known[a] ** 2 / (known[a] ** 2 + known[b] ** 2)
        share = first**2 / free[a] + (1 - first) ** 2 / free[b]
        degrees = np.where(std_err > 0, 1 / share, np.inf)
        t = difference / std_err
    p_value = np.asarray(2 * stdtr(degrees, -np.abs(t)))
    made = max(int(np.count_nonzero(np.isfinite(p_value))), 1)
    reach = stdtrit(degrees, 1 - (1 - level) / 2 / made) * std_err
    return Comparison(
        pairs=pairs,
        terms=(*mixture.feature_names, *([INTERCEPT] * mixture.fit_intercept)),
        difference=difference,
        std_err=std_err,
        t=t,
        p_value=p_value,
        p_holm=holm(p_value.ravel()).reshape(p_value.shape),
        lower=difference - reach,
        upper=difference + reach,
        level=level,
        coef=values,
        joint=joint is not None,
        note=note,
        deviation=None if mixture.rows is None else mixture.rows.deviation,
    )


def _rows(mixture: Mixture, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Floats, Floats, bool]:
    """Return rows with weights that add up to those of the fit, and whether these are counts."""
    if X is None:
        assert mixture.excerpt is not None
        X, y, sample_weight = mixture.excerpt.X, mixture.excerpt.y, mixture.excerpt.weights
    target = read_target(y, len(X))
    weights, counts = read_weights(sample_weight, target.size)
    weights = np.ones(target.size) if weights is None else weights
    return X, target, weights * (mixture.mass / weights.sum()), counts


def joint_covariance(
    mixture: Mixture, X: NDArray[Any], y: Floats, weights: Floats, counts: bool, unit: Any = 1.0
) -> Floats | None:
    """Return the covariance of all coefficients (intercepts last), (m, terms, m, terms).

    Coefficients are in units of ``unit``, (terms,).

    The inverse of the observed information of coefficients, logarithms of the noise and log odds of
    the shares; between two sums of squared scores where weights are importances. None if the rows
    do not determine all of them, or they are too many.
    """
    m, d = mixture.coef.shape
    p = d + mixture.fit_intercept
    block, shares = p + 1, m if mixture.outlier_share > 0 else m - 1
    size = m * block + shares
    if size > MOST_PARAMETERS or not (mixture.scale > 0).all():
        return None
    mean = np.average(X, axis=0, weights=weights) if mixture.fit_intercept else np.zeros(d)
    deviation = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    deviation = np.where(deviation > 0, deviation, 1.0)
    information, squares = np.zeros((size, size)), np.zeros((size, size))
    for part in chunks(len(X), size):
        Z = (X[part].astype(np.float64) - mean) / deviation
        Z = np.column_stack([Z, np.ones(len(Z))]) if mixture.fit_intercept else Z
        more = _information(mixture, Z, X[part], y[part], weights[part], size)
        information, squares = information + more[0], squares + more[1]
    try:
        inverse = np.linalg.inv(np.linalg.cholesky(information))
    except np.linalg.LinAlgError:
        return None
    covariance = inverse.T @ inverse
    if not counts:
        covariance = covariance @ squares @ covariance
    # Back to the user's units: slopes by the deviations, intercepts by the means.
    noise = mixture.scale.max()
    back = noise * np.eye(p)
    back[:d, :d] = np.diag(noise / deviation)
    back[d:, :d] = -noise * (mean / deviation)
    back /= np.broadcast_to(unit, p)[:, None]
    inner = covariance[: m * block, : m * block].reshape(m, block, m, block)[:, :p, :, :p]
    return np.asarray(np.einsum("ij,ajbk,lk->aibl", back, inner / noise**2, back))


def _information(
    mixture: Mixture, Z: Floats, X: Any, y: Floats, weights: Floats, size: int
) -> tuple[Floats, Floats]:
    """Return minus the second derivatives of a log-likelihood, and sums of squared scores.

    With f_j the share times density of regime j, r_j its responsibility, g_j and H_j the gradient
    and the Hessian of log f_j, minus the Hessian of log sum f is
    g g' - sum r_j (H_j + g_j g_j'), where g is sum r_j g_j.
    """
    m, p = mixture.n_components, Z.shape[1]
    chances = mixture.responsibilities(X, y)
    means, nu = mixture.predict_components(X), mixture.noise_degrees
    information, n_shares = np.zeros((size, size)), size - m * (p + 1)
    weight_of = np.append(mixture.weights, mixture.outlier_share)[:n_shares]
    last = slice(m * (p + 1), None)
    score = np.zeros((len(Z), size))
    # Log odds against the outliers, or against the last regime.
    score[:, last] = chances[:, :n_shares] - weight_of
    # Of the shares themselves: the Hessian is the same for all regimes.
    information[last, last] += weights.sum() * (np.diag(weight_of) - np.outer(weight_of, weight_of))
    outside = 1 - chances[:, :m].sum(axis=1)
    for j in range(m):
        off, scale = y - means[:, j], mixture.scale[j]
        square = (off / scale) ** 2
        tail = np.ones(off.size) if np.isinf(nu) else (nu + 1) / (nu + square)
        bent = np.ones(off.size) if np.isinf(nu) else nu / (nu + square)
        pull = tail * off / scale**2
        r = chances[:, j]
        shift = np.broadcast_to((np.arange(n_shares) == j) - weight_of, (off.size, n_shares))
        mine = np.column_stack([pull[:, None] * Z, tail * square - 1, shift])
        places = np.r_[j * (p + 1) : (j + 1) * (p + 1), last.start : size]
        score[:, places[: p + 1]] += r[:, None] * mine[:, : p + 1]
        change = -(mine * (weights * r)[:, None]).T @ mine
        curved = weights * r * tail
        change[:p, :p] += (Z * (curved * (2 * bent - 1) / scale**2)[:, None]).T @ Z
        cross = Z.T @ (curved * 2 * bent * off / scale**2)
        change[:p, p] += cross
        change[p, :p] += cross
        change[p, p] += float((curved * 2 * bent * square).sum())
        information[np.ix_(places, places)] += change
    # Outliers have gradients of the shares alone.
    information[last, last] -= (weights @ outside) * np.outer(weight_of, weight_of)
    information += (score * weights[:, None]).T @ score
    return information, (score * (weights**2)[:, None]).T @ score
