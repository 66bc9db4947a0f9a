"""One regression, integrated over its coefficients and its noise together.

Coefficients are normal a priori, and log precision is uniform over a range. For a fixed precision
the coefficients integrate in closed form; one quadrature over log precision does the rest.
Coefficients and noise are kept together: taken apart (q(beta) q(tau)), the bound drifts away from
a component of few rows. The unit of the response is that of its bulk, and a regime of few rows may
be steeper by orders of magnitude: each order is ten times less likely a priori.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.model.numbers import MODEL

Floats = NDArray[np.float64]

# Nodes of the quadrature over log precision: 32 are exact to more digits than a score needs.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
# Of the integrand the window of the quadrature leaves out what single precision would: a score
# needs no more digits.
DROP = -np.log(np.finfo(np.float32).eps)
# Orders of magnitude by which a regime may be steeper than the bulk of the response suggests.
STEEPER = np.arange(7.0)
LOG_10 = np.log(10.0)
LOG_FIRST = np.log(0.9)  # of the probability of none


@dataclass(frozen=True)
class Prior:
    """What is assumed of a component before its rows are seen.

    Attributes
    ----------
    deviation : ndarray of shape (width,)
        Prior standard deviation of each coefficient.
    log_precision : tuple of float
        Range of the logarithm of 1 / noise²; it ends at the resolution of y.
    log_span : float
        Logarithm of the length of the range without a resolution: noise has the same prior density
        in every table.
    """

    deviation: Floats
    log_precision: tuple[float, float]
    log_span: float


@dataclass(frozen=True)
class Sums:
    """Sums over the rows of components, by responsibility; they add over rows and components.

    Attributes
    ----------
    size : ndarray of shape (...)
    gram : ndarray of shape (..., width, width)
    moment : ndarray of shape (..., width)
        Rows times residuals at ``coef``.
    square : ndarray of shape (...)
        Squared residuals at ``coef``.
    coef : ndarray of shape (..., width)
    """

    size: Floats
    gram: Floats
    moment: Floats
    square: Floats
    coef: Floats

    def at(self, coef: Floats) -> Sums:
        """Return the same sums with residuals at other coefficients."""
        step = coef - self.coef
        pull = np.einsum("...ij,...j->...i", self.gram, step)
        square = self.square - np.einsum("...i,...i->...", step, 2 * self.moment - pull)
        return replace(self, moment=self.moment - pull, square=np.maximum(square, 0.0), coef=coef)

    def pick(self, index: Any) -> Sums:
        """Keep some components."""
        return Sums(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def __add__(self, other: Sums) -> Sums:
        there = other.at(self.coef)
        return Sums(
            self.size + there.size,
            self.gram + there.gram,
            self.moment + there.moment,
            self.square + there.square,
            self.coef,
        )


@dataclass(frozen=True)
class Posterior:
    """What the rows of components say about them; leading shape as that of the sums.

    Attributes
    ----------
    coef : ndarray of shape (..., width)
        Mean coefficients (weighted by precision).
    precision, log_precision : ndarray of shape (...)
        Means of 1 / noise² and of its logarithm.
    factor : ndarray of shape (..., width, width)
        The mean of precision times squared residual at a row x is
        ``precision (y - x coef)² + |x factor|²``.
    log_evidence : ndarray of shape (...)
        Logarithm of the probability of the component's responses.
    """

    coef: Floats
    precision: Floats
    log_precision: Floats
    factor: Floats
    log_evidence: Floats


def posterior(sums: Sums, prior: Prior) -> Posterior:
    """Integrate over coefficients and noise."""
    unit = prior.deviation
    values, vectors = np.linalg.eigh(sums.gram * unit[:, None] * unit)
    values = np.maximum(values, 0.0)
    seen = values > MODEL.rounding * np.maximum(
        values.max(axis=-1, keepdims=True, initial=0.0), 1e-300
    )
    safe = np.where(seen, values, 1.0)
    # Least squares in the rotated, scaled coordinates, in which the prior is standard normal.
    pull = np.einsum("...ij,...i->...j", vectors, sums.moment * unit)
    here = np.einsum("...ij,...i->...j", vectors, sums.coef / unit)
    best = np.where(seen, here + pull / safe, 0.0)
    values = np.where(seen, values, 0.0)
    rest = np.maximum(sums.square - np.where(seen, pull**2 / safe, 0.0).sum(axis=-1), 0.0)
    mode = _mode(sums.size, values, best**2, rest, prior)
    order = _order(sums.size, values, best, rest, prior, mode[0])
    steeper: Floats = np.ones(1)
    if order.any():
        steeper = 10.0 ** order[..., None]
        values, best = values * steeper**2, best / steeper
        mode = _mode(sums.size, values, best**2, rest, prior)
    u, w = _window(*mode, prior)
    tau = np.exp(u)
    # (..., node, width)
    curved = tau[..., None] * values[..., None, :]
    shrink = curved / (1.0 + curved)
    log_z = 0.5 * sums.size[..., None] * (u - np.log(2 * np.pi)) - 0.5 * tau * rest[..., None]
    log_z -= 0.5 * (np.log1p(curved) + best[..., None, :] ** 2 * shrink).sum(axis=-1)
    top = log_z.max(axis=-1, keepdims=True)
    mass = w * np.exp(log_z - top)
    total = mass.sum(axis=-1, keepdims=True)
    mass /= total
    log_evidence = top[..., 0] + np.log(total[..., 0]) - prior.log_span
    log_evidence += LOG_FIRST - LOG_10 * order
    tau_mass = mass * tau
    precision = tau_mass.sum(axis=-1)
    mean = (tau_mass[..., None] * shrink).sum(axis=-2) / precision[..., None]
    spread = (tau_mass[..., None] / (1.0 + curved)).sum(axis=-2)
    drift = np.sqrt(tau_mass)[..., None] * (shrink - mean[..., None, :]) * best[..., None, :]
    inner = np.einsum("...qi,...qj->...ij", drift, drift)
    index = np.arange(unit.size)
    inner[..., index, index] += spread
    half = np.linalg.cholesky(inner)
    rotate = vectors * unit[:, None] * np.expand_dims(steeper, -1)
    return Posterior(
        coef=np.einsum("...ij,...j->...i", rotate, mean * best),
        precision=precision,
        log_precision=(mass * u).sum(axis=-1),
        factor=rotate @ half,
        log_evidence=log_evidence,
    )


def _order(
    size: Floats, values: Floats, best: Floats, rest: Floats, prior: Prior, tau: Floats
) -> Floats:
    """Choose the order of magnitude at which the component is likeliest, at its likeliest noise."""
    # An order more costs its own prior and, for each coefficient that the rows determine, a factor
    # of ten in the density of the prior; it saves at most what large coefficients cost now.
    squares = 0.5 * (best**2).sum(axis=-1)
    costs = LOG_10 * (1 + (tau[..., None] * values > 1.0).sum(axis=-1))
    if bool((squares < costs).all()):
        return np.zeros(size.shape)
    worth = np.full((STEEPER.size, *size.shape), -np.inf)
    for k, order in enumerate(STEEPER):
        wide, best2 = values * 100.0**order, best**2 * 100.0**-order
        tau = _mode(size, wide, best2, rest, prior)[0]
        curved = tau[..., None] * wide
        worth[k] = 0.5 * size * np.log(tau) - 0.5 * tau * rest - LOG_10 * order
        worth[k] -= 0.5 * (np.log1p(curved) + best2 * curved / (1.0 + curved)).sum(axis=-1)
        if k and bool((worth[k] < worth[k - 1]).all()):
            break  # beyond its best order a component only gets less likely
    return np.asarray(STEEPER[np.argmax(worth, axis=0)])


def _mode(
    size: Floats, values: Floats, best2: Floats, rest: Floats, prior: Prior
) -> tuple[Floats, Floats, Floats]:
    """Find the likeliest precision; also degrees of freedom and squares that are left."""
    low, high = prior.log_precision
    degrees, left = np.maximum(size - (values > 0).sum(axis=-1), 1e-3), rest
    tau = np.exp(np.clip(np.log(degrees / np.maximum(left, 1e-300)), low, high))
    for _ in range(MODEL.inner_rounds):
        curved = tau[..., None] * values
        degrees = np.maximum(size - (curved / (1.0 + curved)).sum(axis=-1), 1e-3)
        left = rest + (best2 * values / (1.0 + curved) ** 2).sum(axis=-1)
        tau = np.exp(np.clip(np.log(degrees / np.maximum(left, 1e-300)), low, high))
    return tau, degrees, left


def _window(tau: Floats, degrees: Floats, left: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """Place the nodes of the quadrature around the mode, as wide as the integrand.

    Returns log precisions and their weights. Around the mode the integrand is
    exp(-half (e^x - 1 - x)).
    """
    low, high = prior.log_precision
    half, mode = 0.5 * degrees, np.log(tau)
    # At the upper limit the integrand may still rise.
    slope = np.maximum(0.5 * (degrees - tau * left), 0.0)
    before = np.minimum(np.sqrt(2 * DROP / half) + DROP / half, DROP / np.maximum(slope, 1e-300))
    after = np.minimum(np.sqrt(2 * DROP / half), np.log(DROP / half + 4.0) + 1.0)
    first, last = np.maximum(mode - before, low), np.minimum(mode + after, high)
    radius, centre = 0.5 * (last - first), 0.5 * (last + first)
    return centre[..., None] + radius[..., None] * NODES, radius[..., None] * WEIGHTS
