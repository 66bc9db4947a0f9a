"""What the recorded errors say about coefficients: intervals, tests, distances.

Arrays have one row a component and one column a coefficient, the intercept last.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from regimix.errors import ParameterError

if TYPE_CHECKING:
    from regimix.result.inference import Inference
    from regimix.result.mixture import Mixture

__all__ = [
    "conf_int",
    "errors",
    "estimates",
    "p_values",
    "read_level",
    "recorded",
    "separation",
    "t_values",
]

Floats = NDArray[np.float64]

# Directions with less than this part of the joint variance are taken to have none.
FLAT = 1e-12


def read_level(level: Any, name: str = "level") -> float:
    """Read a probability above 0 and below 1."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        raise ParameterError(
            f"{name} must be a number above 0 and below 1, such as 0.95; got {level!r}."
        )
    return float(level)


def recorded(mixture: Mixture) -> Inference:
    """Return what was recorded at the fit, or say that nothing was."""
    if mixture.inference is None:
        raise ParameterError(
            f"no standard errors were recorded with this mixture of {mixture.n_components} "
            f"component(s) and {mixture.coef.shape[1]} column(s): it was not made by a fit, or the "
            "table is too wide. Use mixture.bootstrap(X, y)."
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
