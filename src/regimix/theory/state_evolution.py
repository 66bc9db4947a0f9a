"""State evolution: the rows that message passing needs to find one component.

One component among rows that do not follow it: of the rows, a share p has y = x·β + noise, the
others have responses that do not depend on x·β. For normal features, and as the number d of
features grows with n = δd rows, the error of approximate message passing follows a recursion in one
number, the variance v of what is not yet known of a row's x·β, in units of the variance of x·β:

- a row with the response y and the message μ (of variance 1 − v) belongs to the component with the
  probability π = p N(y; μ, v + σ²) / (p N(y; μ, v + σ²) + (1 − p) b(y)), b the law of the others;
- the information of a row is A(v) = E[π² (y − μ)²/(v + σ²)²] = p/(v + σ²) E[t² π], t a standard
  normal number and y = μ + t√(v + σ²);
- all rows together leave v' = 1/(1 + δA(v)).

It begins at v = 1, where nothing is known, and falls to its largest fixed point. Where that is near
σ²/(pδ) the component is found; where a fixed point far above lies in the way, message passing stops
there, even with the true share, noise and law of the others: beyond this threshold no message
passing finds the component. (Bayati and Montanari 2011; Krzakala et al. 2012.) A component of a
mixture is covered if the rows of the components found before are taken out, as the search does.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from regimix.errors import ParameterError

# Nodes of the quadrature over t and over μ: with twice as many, thresholds change by less than one
# in a thousand.
NODES = 60
# A component is found where at most this share of the variance is left unknown, as in the search.
FOUND = 0.1
# Variances are never taken to be smaller: without noise the error falls to zero.
TINY = 1e-100
# Most rows for each coefficient that a threshold is looked for among.
MOST_ROWS = 1e6


def passing_rows(
    outliers_per_coefficient: float, *, noise: float = 0.0, others: float = 1.0
) -> float:
    """Find the fewest own rows for each coefficient with which message passing finds a component.

    Parameters
    ----------
    outliers_per_coefficient : float
        Rows, for each coefficient, that do not follow the component.
    noise : float, default=0.0
        Standard deviation of the component's noise, over that of its predictions x·β.
    others : float, default=1.0
        Standard deviation of the other rows' responses (a normal law), in the same unit.

    Returns
    -------
    float
        At least one, for fewer rows than coefficients determine nothing; infinite if a million are
        not enough, because the noise is too large.

    Examples
    --------
    >>> from regimix.theory import passing_rows
    >>> rows = [passing_rows(outliers, noise=0.01) for outliers in (0.0, 0.75, 1.5)]
    >>> [round(each, 1) for each in rows]
    [1.0, 1.4, 1.6]
    """
    beside = float(outliers_per_coefficient)
    if not 0 <= beside < math.inf:
        raise ParameterError(
            f"outliers_per_coefficient must be 0 or more, and finite; got {beside!r}."
        )

    def found(own: float) -> bool:
        """Say whether no fixed point lies in the way from one to what counts as found."""
        n, p = own + beside, own / (own + beside)
        return all(v * (1 + n * information(v, p, float(noise), others)) > 1 for v in _WAY)

    low, high = 1.0, 2.0
    if found(low):
        return low
    while not found(high):
        low, high = high, 2 * high
        if high > MOST_ROWS:
            return math.inf
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


_T, _WEIGHTS = hermegauss(NODES)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_WAY = tuple(float(v) for v in np.geomspace(1.0, FOUND, 60))


def information(v: float, p: float, noise: float, others: float) -> float:
    """Compute A(v), by quadrature over the residual t and the message μ."""
    total = max(v + noise**2, TINY)
    y = math.sqrt(max(1 - v, 0.0)) * _T[:, None] + math.sqrt(total) * _T
    own = math.log(p) - 0.5 * (_T**2 + math.log(total))
    share = math.log1p(-p) if p < 1 else -math.inf
    rest = share - 0.5 * (y / others) ** 2 - math.log(others)
    member = 1 / (1 + np.exp(np.clip(rest - own, -700, 700)))
    return float(p / total * (_WEIGHTS @ (member * _T**2) @ _WEIGHTS))
