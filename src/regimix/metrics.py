"""How good an answer is: beside the truth where it is known, and on rows that were held out.

Against the truth there are matched components, ε-recovery and label scores. ``log_density_scorer``
needs no truth: scikit-learn's cross-validation takes it as ``scoring``.

Components come in no particular order, so answers are compared with the truth after the best
one-to-one matching. Labels count from 0; -1 is an outlier and is never matched to a component. To
judge intercepts too, pass both sides through ``with_intercept``.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from regimix.data.validation import read_matrix
from regimix.errors import DataError, ParameterError, read_number

__all__ = [
    "Matching",
    "OutlierScores",
    "adjusted_rand_index",
    "components_found",
    "is_recovery",
    "label_accuracy",
    "log_density_scorer",
    "match_components",
    "outlier_scores",
    "recovery_error",
    "with_intercept",
]

_OUTLIER = -1


@dataclass(frozen=True, eq=False)
class Matching:
    """A one-to-one matching of estimated to true components."""

    estimate_of: NDArray[np.int64]  #: (m,), the estimate of each true component; -1 if none is left
    true_of: NDArray[np.int64]  #: (k,), the true component of each estimate; -1 if none is left
    distance: NDArray[np.float64]  #: (m,), of each true component from its estimate, or infinite


@dataclass(frozen=True)
class OutlierScores:
    """How well the rows labelled -1 are those that should be."""

    precision: float  #: share of the labelled outliers that are true ones; 1 if none was labelled
    recall: float  #: share of the true outliers that were labelled; 1 if there are none
    f1: float  #: harmonic mean; 1 if there was nothing to find and nothing was labelled


def with_intercept(coef: ArrayLike, intercept: ArrayLike) -> NDArray[np.float64]:
    """Append the intercept as a last column, (m, d + 1), so that a matching judges it too.

    ``coef`` has one component per row; a single intercept stands for all of them.
    """
    rows = read_matrix("coef", coef)
    try:
        column = np.broadcast_to(np.asarray(intercept, dtype=np.float64), (len(rows),))
    except (TypeError, ValueError):
        raise DataError(
            f"intercept must be a number or {len(rows)} numbers, one per row of coef; got shape "
            f"{np.shape(intercept)}. Pass the intercepts of the same components."
        ) from None
    return np.column_stack([rows, column])


def match_components(coef: ArrayLike, true_coef: ArrayLike) -> Matching:
    """Match estimated components (k, d) to true ones (m, d) with the smallest sum of distances.

    k may differ from m and may be 0: there are min(k, m) pairs.
    """
    distances = _distances(coef, true_coef)
    estimate, true = linear_sum_assignment(distances)
    estimate_of = np.full(distances.shape[1], -1, dtype=np.int64)
    true_of = np.full(distances.shape[0], -1, dtype=np.int64)
    distance = np.full(distances.shape[1], np.inf)
    estimate_of[true], true_of[estimate] = estimate, true
    distance[true] = distances[estimate, true]
    return Matching(estimate_of, true_of, distance)


def recovery_error(coef: ArrayLike, true_coef: ArrayLike, *, allow_extra: bool = False) -> float:
    """Return the smallest ε for which ``coef`` is an ε-recovery (Definition 10).

    That is the minimum over permutations of the largest distance. The matching of smallest sum
    need not attain it; it is found exactly as a bottleneck assignment: the answer is one of the
    distances, and a bisection over them asks whether all true components can be matched within.

    Infinite where the counts do not allow a recovery: the definition asks for as many estimates
    (k, d) as true components (m, d). With ``allow_extra``, more estimates are forgiven, and the
    minimum is over all ways to choose m of them.
    """
    distances = _distances(coef, true_coef)
    n_estimated, n_true = distances.shape
    if n_estimated < n_true or (n_estimated > n_true and not allow_extra):
        return np.inf
    levels = np.unique(distances).tolist()
    return float(levels[bisect_left(levels, n_true, key=lambda e: _pairs_within(distances, e))])


def is_recovery(
    coef: ArrayLike, true_coef: ArrayLike, epsilon: float, *, allow_extra: bool = False
) -> bool:
    """Return whether every true component has an estimate of its own within ``epsilon``.

    Definition 10, ε-recovery. The other parameters are those of ``recovery_error``.
    """
    error = recovery_error(coef, true_coef, allow_extra=allow_extra)
    return error <= _checked_epsilon(epsilon)


def components_found(coef: ArrayLike, true_coef: ArrayLike, epsilon: float) -> int:
    """Count the true components that can have an estimate of their own within ``epsilon``.

    The size of the largest one-to-one matching of ``coef`` (k, d) to ``true_coef`` (m, d) with
    distances of at most ``epsilon``; k may differ from m.
    """
    return _pairs_within(_distances(coef, true_coef), _checked_epsilon(epsilon))


def outlier_scores(labels: ArrayLike, true_labels: ArrayLike) -> OutlierScores:
    """Score the rows labelled -1 against those that are truly outliers."""
    given, true = (side == _OUTLIER for side in _label_pair(labels, true_labels))
    hits, n_given, n_true = int((given & true).sum()), int(given.sum()), int(true.sum())
    return OutlierScores(
        precision=hits / n_given if n_given else 1.0,
        recall=hits / n_true if n_true else 1.0,
        f1=2 * hits / (n_given + n_true) if n_given + n_true else 1.0,
    )


def label_accuracy(
    labels: ArrayLike, true_labels: ArrayLike, matching: Matching | None = None
) -> float:
    """Return the share of rows with the right label, -1 standing for -1 only.

    ``matching``, from ``match_components``, says which estimate stands for which true component;
    by default it is the one that makes most labels right.
    """
    given, true = _label_pair(labels, true_labels)
    right_outliers = int(((given == _OUTLIER) & (true == _OUTLIER)).sum())
    inside = (given != _OUTLIER) & (true != _OUTLIER)
    if matching is None:
        from sklearn.metrics.cluster import contingency_matrix

        table = contingency_matrix(given[inside], true[inside])
        right = int(table[linear_sum_assignment(table, maximize=True)].sum())
    else:
        n_estimates = len(matching.true_of)
        largest = int(given[inside].max()) if inside.any() else -1
        if largest >= n_estimates:
            raise DataError(
                f"labels go up to {largest}, but the matching has {n_estimates} estimates. Pass "
                "the matching of the components that the labels belong to."
            )
        right = int((matching.true_of[given[inside]] == true[inside]).sum())
    return (right_outliers + right) / len(given)


def adjusted_rand_index(labels: ArrayLike, true_labels: ArrayLike) -> float:
    """Return the adjusted Rand index of two labellings; outliers count as one more group.

    1 for the same partition, 0 on average for unrelated ones; the names of groups do not matter.
    """
    from sklearn.metrics import adjusted_rand_score

    given, true = _label_pair(labels, true_labels)
    return float(adjusted_rand_score(true, given))


def log_density_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, gating_features: Any = None
) -> float:
    """Return the mean log density of the responses given their features, in nats; more is better.

    A scorer for ``cross_val_score`` and ``GridSearchCV``: it measures how probable a model finds
    rows that it has not seen, whichever regime they follow, outliers included. ``score`` (R²)
    judges one number a row, the expected response, near which there may be no row at all; so it
    can prefer one broad regime to the right ones.

    Parameters
    ----------
    estimator : fitted MixedLinearRegression, or a pipeline that ends with one
        With gating, densities are those at the shares of each row.
    X, y : array or data frame of shape (n, d), array of shape (n,)
    sample_weight : array of shape (n,), optional
    gating_features : array or data frame of n rows, optional
        As for ``score_samples`` of the estimator.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from regimix import MixedLinearRegression
    >>> from regimix.metrics import log_density_scorer
    >>> from regimix.synth import make_mlrc
    >>> X, y, _ = make_mlrc(80, 1, 2, noise=0.1, separation=1.0, random_state=0)
    >>> model = MixedLinearRegression(n_components=2, random_state=0)
    >>> cross_val_score(model, X, y, cv=2, scoring=log_density_scorer).shape
    (2,)
    """
    from sklearn.pipeline import Pipeline

    from regimix.estimators.mixture import MixedLinearRegression

    model, values = estimator, X
    while isinstance(model, Pipeline):
        values = model[:-1].transform(values) if len(model) > 1 else values
        model = model[-1]
    if not isinstance(model, MixedLinearRegression):
        raise ParameterError(
            "log_density_scorer needs a density of y given X: a fitted MixedLinearRegression, or a "
            f"pipeline that ends with one; got {type(model).__name__}. Leave scoring out: the "
            "model's own score then judges it."
        )
    densities = model.score_samples(values, y, gating_features)
    return float(np.average(densities, weights=sample_weight))


def _distances(coef: ArrayLike, true_coef: ArrayLike) -> NDArray[np.float64]:
    """Return the distances of every estimate (rows) to every true component (columns)."""
    estimate = read_matrix("coef", coef)
    true = read_matrix("true_coef", true_coef)
    if estimate.shape[1] != true.shape[1]:
        raise DataError(
            f"coef has {estimate.shape[1]} columns and true_coef {true.shape[1]}. Both need the "
            "same features; use with_intercept on both sides or on neither."
        )
    if len(true) == 0:
        raise DataError("true_coef has no row. Give at least one true component.")
    return np.asarray(cdist(estimate, true))


def _checked_epsilon(epsilon: float) -> float:
    return read_number("epsilon", epsilon, lambda far: far >= 0, "a distance of 0 or more")


def _pairs_within(distances: NDArray[np.float64], epsilon: float) -> int:
    """Return the size of the largest one-to-one matching of distances within ``epsilon``."""
    within = distances <= epsilon
    return int(within[linear_sum_assignment(within, maximize=True)].sum())


def _label_pair(labels: ArrayLike, true_labels: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """Check two labellings of the same rows."""
    given, true = np.asarray(labels), np.asarray(true_labels)
    for name, side in (("labels", given), ("true_labels", true)):
        if side.ndim != 1 or side.dtype.kind not in "iu" or (side < _OUTLIER).any():
            raise DataError(
                f"{name} must be one whole number per row, -1 for outliers and components from "
                f"0; got shape {side.shape} of {side.dtype}."
            )
    if len(given) != len(true) or len(given) == 0:
        raise DataError(
            f"labels and true_labels must cover the same rows, at least one; got {len(given)} "
            f"and {len(true)}."
        )
    return given, true
