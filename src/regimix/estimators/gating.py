"""Gating: a classifier that learns from a row's columns which regime it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from regimix.data.problem import NORMAL_IQR, Problem
from regimix.errors import DataError, ParameterError
from regimix.result.gate import Gate, read_columns, scale_columns
from regimix.result.mixture import Mixture

__all__ = [
    "ClassifierGate",
    "LearnedGate",
    "check_gating",
    "gate_parameters",
    "gate_shares",
    "learn_gate",
]

Floats = NDArray[np.float64]

# A row enters the classifier under every component that it belongs to with more than this chance.
MEMBER = 1e-3
# Shares determine responsibilities, which determine shares: a few rounds of EM settle them.
ROUNDS = 10
SETTLED = 1e-3  # largest change of a share in the last round
# Newton steps settle whatever the columns; beyond this many numbers to learn, gradients cost less.
NEWTON_SIZE = 400
MAX_ITER = 1000
# Rows that are written out for a classifier that takes no weights, repetitions included.
MOST_REPEATED = 10_000_000


@dataclass(frozen=True, eq=False)
class ClassifierGate:
    """A gate made of the user's own classifier."""

    classifier: Any  # fitted; None: all rows belong to one component
    present: NDArray[np.int64]  # the components that it knows: those with rows
    n_components: int
    from_features: bool = True  # whether it was learnt from X; otherwise from ``gating_features``

    def shares(self, Z: Any) -> Floats:
        """Return the shares of the components among the rows like each row, (n, m)."""
        shares = np.zeros((_num_samples(Z), self.n_components))
        known = 1.0 if self.classifier is None else self.classifier.predict_proba(Z)
        shares[:, self.present] = known
        return shares


LearnedGate = Gate | ClassifierGate


def check_gating(gating: Any, gating_features: Any = None) -> None:
    """Refuse what is neither None, "logistic" nor a classifier with probabilities."""
    if gating is None and gating_features is not None:
        raise ParameterError(
            "gating_features were passed, but gating=None learns nothing from them: set gating="
            '"logistic" or a classifier, or leave them out.'
        )
    if gating is None or (isinstance(gating, str) and gating == "logistic"):
        return
    usable = isinstance(gating, BaseEstimator) and is_classifier(gating)
    if not usable or not hasattr(gating, "predict_proba"):
        raise ParameterError(
            'gating must be None, "logistic" or a scikit-learn classifier that has predict_proba; '
            f"got {gating!r}."
        )


def learn_gate(
    gating: Any, mixture: Mixture, problem: Problem, X: Any, gating_features: Any = None
) -> LearnedGate:
    """Learn the regime of a row from X, or from the columns passed for it.

    A row counts for each component by the chance that it belongs to it, so that outliers are left
    out and a row where regimes cross, whose label is uncertain, counts for all of them. Classifiers
    that take no weights learn the labels instead; whole weights repeat their rows. ``problem`` has
    the rows of the fit, X the features as they were passed.
    """
    own = gating_features is None
    Z = X if own else gating_features
    _check_rows(Z, problem.n_rows)
    learn = _learn_logistic if isinstance(gating, str) else _learn_classifier
    return learn(gating, mixture, problem, Z, own)


def gate_shares(gate: LearnedGate | None, X: Any, gating_features: Any) -> Floats | None:
    """Return the shares of the components in each row, (n, m), or None without a gate."""
    if gate is None or gate.from_features:
        if gating_features is not None:
            learnt = "there is no gating" if gate is None else "the gating was learnt from X"
            raise ParameterError(
                f"gating_features were passed, but {learnt}: leave them out, or fit with gating "
                "and gating_features."
            )
        return None if gate is None else gate.shares(X)
    if gating_features is None:
        raise ParameterError(
            "the gating was learnt from gating_features: pass the same columns for these rows, "
            "gating_features=..."
        )
    _check_rows(gating_features, _num_samples(X))
    return gate.shares(gating_features)


def gate_parameters(gate: LearnedGate | None) -> int:
    """Count what a gate learnt beyond constant shares, for criteria that charge for it."""
    if gate is None:
        return 0
    if isinstance(gate, Gate):
        return gate.n_parameters
    kind = type(getattr(gate, "classifier", gate)).__name__
    raise ParameterError(
        "bic and icl charge for every parameter that was learnt, and those of the gating "
        f"{kind} cannot be counted: use mixture_.bic(X, y) or mixture_.icl(X, y), which leave the "
        'gating out, or gating="logistic".'
    )


def _check_rows(Z: Any, n_rows: int) -> None:
    if _num_samples(Z) != n_rows:
        raise DataError(
            f"gating_features and X have inconsistent numbers of rows: X has {n_rows}, "
            f"gating_features have {_num_samples(Z)}. Pass one row of them for each row of X."
        )


def _weights(problem: Problem) -> Floats:
    return np.ones(problem.n_rows) if problem.weights is None else problem.weights


# --- the user's classifier ------------------------------------------------------------------------


def _learn_classifier(
    gating: Any, mixture: Mixture, problem: Problem, Z: Any, own: bool
) -> ClassifierGate:
    takes_weights = has_fit_parameter(gating, "sample_weight")
    if takes_weights:
        posterior = mixture.responsibilities(problem.X, problem.y)[:, :-1]
        rows, component, chance = _members(posterior, _weights(problem))
    else:
        rows = _repeated(mixture, problem, gating)
        component = mixture.labels[rows]
    present = np.unique(component)
    classifier = None
    if present.size > 1:
        counted = {"sample_weight": chance} if takes_weights else {}
        classifier = clone(gating).fit(_safe_indexing(Z, rows), component, **counted)
    elif not present.size:  # every row is an outlier: nothing to learn, the largest regime stands
        present = np.zeros(1, dtype=np.int64)
    return ClassifierGate(classifier, present, mixture.n_components, own)


def _repeated(mixture: Mixture, problem: Problem, gating: Any) -> NDArray[np.intp]:
    """List the rows that are no outliers, as often as their weight counts them.

    A classifier that takes no weights cannot use relative importances: those rows are listed once.
    """
    rows = np.flatnonzero((mixture.labels >= 0) & (_weights(problem) > 0))
    if problem.weights is None or not problem.counts:
        return rows
    times = problem.weights[rows].astype(np.int64)
    if times.sum() > MOST_REPEATED:
        raise ParameterError(
            f"the gating {type(gating).__name__} takes no sample_weight, and the weights count "
            f"{times.sum()} rows, more than can be repeated for it ({MOST_REPEATED}): use "
            'gating="logistic" or a classifier whose fit takes sample_weight.'
        )
    return np.repeat(rows, times)


def _members(
    posterior: Floats, weights: Floats
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """List rows once for each component that they may belong to, with their chances."""
    chance = posterior * weights[:, None]
    rows, component = np.nonzero((posterior > MEMBER) & (chance > 0))
    return rows, component, chance[rows, component]


# --- multinomial logistic regression --------------------------------------------------------------


def _learn_logistic(_kind: str, mixture: Mixture, problem: Problem, Z: Any, own: bool) -> Gate:
    """Learn shares that depend on the row by EM; coefficients and noise of the regimes stay."""
    # Imported where it is used: it is a large part of scikit-learn.
    from sklearn.linear_model import LogisticRegression

    table = read_columns(Z, "X" if own else "gating_features")
    weights = _weights(problem)
    center, scale = _location_and_spread(table.values, weights)
    scaled = scale_columns(table.values, center, scale)
    few = scaled.shape[1] * mixture.n_components <= NEWTON_SIZE
    model = LogisticRegression(solver="newton-cholesky" if few else "lbfgs", max_iter=MAX_ITER)
    shares: Floats | None = None
    for _ in range(ROUNDS):
        posterior = mixture.responsibilities(problem.X, problem.y, shares)[:, :-1]
        coef, intercept = _fit_logistic(model, scaled, posterior, weights)
        before, shares = shares, softmax(scaled @ coef.T + intercept, axis=1)
        if before is not None and np.abs(shares - before).max() < SETTLED:
            break
    return Gate(coef, intercept, center, scale, table.names, own)


def _location_and_spread(values: NDArray[Any], weights: Floats) -> tuple[Floats, Floats]:
    """Return medians, and deviations by quartiles; 0/1 columns, whose quartiles agree, by squares.

    Rows count by their weights. Constant columns have spread one.
    """
    present = weights > 0
    rows, counted = values[present].astype(np.float64), weights[present]
    # Smallest values with so much of the weight at or below them: repeated rows give the same.
    low, center, high = np.quantile(
        rows, [0.25, 0.5, 0.75], axis=0, method="inverted_cdf", weights=counted
    )
    spread = (high - low) / NORMAL_IQR
    mean = np.average(rows, axis=0, weights=counted)
    deviation = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=counted))
    # Rounding of the mean must not make a column vary that is constant.
    spread = np.where(spread > 0, spread, np.where(np.ptp(rows, axis=0) > 0, deviation, 0.0))
    return center, np.where(spread > 0, spread, 1.0)


def _fit_logistic(
    model: Any, scaled: Floats, posterior: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """Fit the regime of rows that count by their chances; coefficients (m, q), intercepts (m,)."""
    m = posterior.shape[1]
    coef, intercept = np.zeros((m, scaled.shape[1])), np.full(m, -np.inf)
    rows, component, chance = _members(posterior, weights)
    present = np.unique(component)
    if present.size < 2:
        intercept[present if present.size else 0] = 0.0
        return coef, intercept
    model.fit(scaled[rows], component, sample_weight=chance)
    # Of two classes, scikit-learn only keeps the second's.
    both = present.size == 2
    coef[present[both:]], intercept[present[both:]] = model.coef_, model.intercept_
    if both:
        intercept[present[0]] = 0.0
    return coef, intercept
