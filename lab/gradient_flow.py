"""Gradient flow on the kept rows: Propositions 14 (``thm:ode``) and 15 (``lem:efficiency``).

With infinitely small steps, the gradient variant of a round follows θ' = −∇f(θ) with
f(θ) = ½ mean (y − Xθ)² over the kept rows, for a time u. (u steps of size η take the time uη; the
paper's M_t = u counts in units of the step size.) The flow is compared with the *proximal point*
that minimises f(θ) + ‖θ − θ_0‖²/(2ν), for which the proof of Theorem 4 can be repeated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from regimix.data.validation import read_matrix
from regimix.errors import DataError, ParameterError
from regimix.theory.definitions import positive, vector

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "FlowRates",
    "approximate_efficiency",
    "best_time",
    "corrected_time",
    "flow_bound",
    "flow_gap_bound",
    "flow_rates",
    "gradient_flow",
    "ideal_time",
    "nu",
    "omega",
    "proximal_point",
]

Floats = NDArray[np.float64]

# Exponents beyond this are infinite for every purpose here.
LARGEST_EXPONENT = 700.0
# The best time is looked for on this many points first: the efficiency has one peak, but flat ends.
GRID = 400
# The fixed point of the corrected time converges by a factor of log(1/C_2) a round.
FIXED_POINT_ROUNDS, ROUNDING = 100, 1e-12


@dataclass(frozen=True)
class FlowRates:
    """Extreme eigenvalues m and M of the kept rows' mean Gram matrix.

    Attributes
    ----------
    low, high : float
        m and M of the proof of Proposition 14; positive.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < math.inf:
            raise ParameterError(
                "rates must be positive, the low one at most the high one; got "
                f"low={self.low!r}, high={self.high!r}."
            )

    @property
    def c_ode(self) -> float:
        """c_ode = 2m/(M + m), at most one."""
        return 2 * self.low / (self.high + self.low)


def flow_rates(X: ArrayLike) -> FlowRates:
    """Compute m and M (proof of Proposition 14, ``thm:ode``) of kept rows X_S, of shape (k, d)."""
    rows = read_matrix("X", X)
    values = np.linalg.eigvalsh(rows.T @ rows / len(rows))
    if not values[0] > 1e-12 * values[-1]:
        raise DataError(
            f"the {len(rows)} rows do not determine all {rows.shape[1]} coefficients: m of "
            "Proposition 14 would be zero. Pass more rows, or fewer columns."
        )
    return FlowRates(float(values[0]), float(values[-1]))


def gradient_flow(X: ArrayLike, y: ArrayLike, start: ArrayLike, times: ArrayLike) -> Floats:
    """Follow θ' = −∇f(θ) from ``start``, exactly, with f(θ) = ½ mean (y − Xθ)².

    θ(u) = θ_LS + e^{−Hu}(θ_0 − θ_LS), H the mean Gram matrix.

    Parameters
    ----------
    X, y : array-like of shape (k, d), (k,)
        The kept rows.
    start : array-like of shape (d,)
        θ_0.
    times : array-like of shape (times,)
        u, 0 or more.

    Returns
    -------
    ndarray of shape (times, d)
    """
    rows, target, first = _rows(X, y, start)
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    gradient = vectors.T @ (rows.T @ (rows @ first - target)) / len(rows)
    u = np.atleast_1d(np.asarray(times, dtype=np.float64))
    # (e^{−hu} − 1)/h, which is −u where the eigenvalue h is zero.
    flat = values <= 1e-12 * values[-1]
    curve = np.where(flat, -u[:, None], np.expm1(-np.outer(u, values)) / np.where(flat, 1, values))
    return np.asarray(first + (curve * gradient) @ vectors.T)


def proximal_point(X: ArrayLike, y: ArrayLike, start: ArrayLike, penalty: float) -> Floats:
    """Minimise f(θ) + ‖θ − θ_0‖²/(2ν) (proof of Proposition 14), ν = ``penalty``; shape (d,).

    A large ν penalises little. The other parameters are those of ``gradient_flow``.
    """
    rows, target, first = _rows(X, y, start)
    gram = rows.T @ rows / len(rows)
    gradient = rows.T @ (rows @ first - target) / len(rows)
    return np.asarray(
        first - np.linalg.solve(gram + np.eye(len(first)) / positive("penalty", penalty), gradient)
    )


def nu(time: float, rates: FlowRates) -> float:
    """Compute ν(u) = (e^{c_ode M u} − 1)/(c_ode m) (Proposition 14, ``thm:ode``)."""
    exponent = rates.c_ode * rates.high * _time(time)
    if exponent > LARGEST_EXPONENT:
        return math.inf
    return math.expm1(exponent) / (rates.c_ode * rates.low)


def flow_gap_bound(time: float, rates: FlowRates) -> float:
    """Bound the distance of flow and proximal point, in units of ‖∇f(θ_0)‖/m.

    e^{−mu} + c_ode/(1 − c_ode − e^{c_ode M u}) (proof of Proposition 14). The second term is
    negative: the two go the same way.
    """
    u, c = _time(time), rates.c_ode
    exponent = c * rates.high * u
    second = c / (-c - math.expm1(exponent)) if exponent < LARGEST_EXPONENT else 0.0
    return max(0.0, math.exp(-rates.low * u) + second)


def omega(time: float, rates: FlowRates, condition: float | None = None) -> float:
    """Compute ω(u) of Proposition 14 (``thm:ode``): ψ+(τn)/ψ−(τn) times ``flow_gap_bound``.

    Parameters
    ----------
    time : float
        u.
    rates : FlowRates
    condition : float, optional
        ψ+(τn)/ψ−(τn), written c_{cτ,1}/c_{cτ,2} in the paper; default: M/m of the rows kept.
    """
    ratio = rates.high / rates.low if condition is None else positive("condition", condition)
    return ratio * flow_gap_bound(time, rates)


def flow_bound(
    time: float, foreign: float, own: float, rates: FlowRates, condition: float | None = None
) -> float:
    """Compute the factor of Proposition 14 (``eqt:ode``): (c_0λ + 1/ν)/(c_1 + 1/ν) + ω.

    Parameters
    ----------
    time : float
        u.
    foreign : float
        c_0 λ_t, or what it stands for: twice ψ+ of the foreign rows over the number of kept rows.
    own : float
        c_1, or ψ−(τn) over the number of kept rows.
    rates : FlowRates
    condition : float, optional
        As for ``omega``.
    """
    growth = nu(time, rates)
    if growth == 0:
        return 1.0
    return (foreign + 1 / growth) / (own + 1 / growth) + omega(time, rates, condition)


def approximate_efficiency(
    time: float, foreign: float, own: float, selection_cost: float, rates: FlowRates
) -> float:
    """Compute the approximate efficiency (equation ``eqt:efficiency-approximate``).

    log((c_0λ + 1/ν)/(c_1 + 1/ν)) / (u + w): the logarithm of a contraction per unit of work. It is
    negative where the round contracts, so "the maximum" that the paper speaks of is that of its
    size.

    Parameters
    ----------
    time, foreign, own, rates
        As for ``flow_bound``.
    selection_cost : float
        w, the cost of a selection in units of time.
    """
    growth = nu(time, rates)
    work = time + positive("selection_cost", selection_cost)
    if growth == 0:
        return 0.0
    return math.log((foreign + 1 / growth) / (own + 1 / growth)) / work


def best_time(foreign: float, own: float, selection_cost: float, rates: FlowRates) -> float:
    """Find the time u that maximises the size of the approximate efficiency.

    Numerically, where Proposition 15 approximates; arguments as for ``approximate_efficiency``.
    """
    if not 0 < foreign < own:
        raise ParameterError(
            f"foreign must be positive and below own for a round to contract; got {foreign!r} "
            f"and {own!r}."
        )

    def signed(logarithm: float) -> float:
        return approximate_efficiency(math.exp(logarithm), foreign, own, selection_cost, rates)

    # Past the time at which 1/ν is nothing beside c_0λ, only work is added.
    end = math.log((40 + math.log(own / foreign)) / (rates.c_ode * rates.high) + selection_cost)
    grid = np.linspace(end - 30, end + 1, GRID)
    place = int(np.argmin([signed(x) for x in grid]))
    step = grid[1] - grid[0]
    found = minimize_scalar(
        signed, bounds=(grid[place] - step, grid[place] + step), method="bounded",
        options={"xatol": 1e-10},
    )  # fmt: skip
    return math.exp(float(found.x))


def ideal_time(error: float, selection_cost: float) -> float:
    """Compute the ideal time of Proposition 15 (``lem:efficiency``): log(w / (λ log 1/λ)).

    Up to the proposition's factor, and never negative. ``trimmed.gradient`` turns it into whole
    steps with a rate estimated from the iterates.

    Parameters
    ----------
    error : float
        λ_t, the current relative error; C_2 of the proof where C_1 is one. (Elsewhere C_2/C_1 in
        its place is too short a time by log(1/C_1): ``corrected_time``.) Below one.
    selection_cost : float
        w.
    """
    lam = positive("error", error)
    if lam >= 1:
        raise ParameterError(
            f"error must be below 1, where a round still contracts; got {error!r}."
        )
    gain = positive("selection_cost", selection_cost) / (lam * math.log(1 / lam))
    return max(0.0, math.log(gain))


def corrected_time(foreign: float, own: float, selection_cost: float) -> float:
    """Solve ν = (w − log C_1)/(C_2(log ν + w − 1)), the ideal time where C_2ν is below one.

    The proof of Proposition 15 takes both C_1ν and C_2ν for large, and its solution has
    C_2ν = w/log(C_1/C_2), below one wherever the error is small beside e^-w. With C_1ν large and
    C_2ν small instead, the same condition of first order gives this ν; u is log(1 + ν), with
    m = M = 1. It is an approximation for log(1/C_2) well above w; for large w the printed one
    is better, and ``best_time`` is right for both.

    Parameters
    ----------
    foreign, own, selection_cost
        C_2, C_1 and w, as for ``approximate_efficiency``.
    """
    c2, w = positive("foreign", foreign), positive("selection_cost", selection_cost)
    gain = w - math.log(positive("own", own))
    growth = math.e / c2
    for _ in range(FIXED_POINT_ROUNDS):
        growth = max(gain / (c2 * max(math.log(growth) + w - 1, ROUNDING)), ROUNDING)
    return math.log1p(growth)


def _rows(X: ArrayLike, y: ArrayLike, start: ArrayLike) -> tuple[Floats, Floats, Floats]:
    rows = read_matrix("X", X)
    return rows, vector("y", y, len(rows)), vector("start", start, rows.shape[1])


def _time(time: float) -> float:
    if not 0 <= time < math.inf:
        raise ParameterError(f"time must be 0 or more, and finite; got {time!r}.")
    return float(time)
