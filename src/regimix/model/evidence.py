"""One regression, integrated over its coefficients and its noise together.

Coefficients are normal a priori, and log precision is uniform over a range. For a fixed precision
the coefficients integrate in closed form; one quadrature over log precision does the rest.
Coefficients and noise are kept together: taken apart (q(beta) q(tau)), the bound drifts away from
a component of few rows. The unit of the response is that of its bulk, and a regime of few rows may
be steeper by orders of magnitude: each order is ten times less likely a priori.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from regimix.model.numbers import MODEL

Floats = NDArray[np.float64]

# The sum of an array without the ceremony of ``np.sum``: rounds of EM on small tables are made of
# sums of few numbers.
add = np.add.reduce

# Nodes of the quadrature over log precision: 32 are exact to more digits than a score needs.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
# Of the integrand the window of the quadrature leaves out what single precision would: a score
# needs no more digits.
DROP = -np.log(np.finfo(np.float32).eps)
# Orders of magnitude by which a regime may be steeper than the bulk of the response suggests.
STEEPER = np.arange(7.0)
LOG_10 = np.log(10.0)
LOG_2PI = np.log(2 * np.pi)
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

    @cached_property
    def products(self) -> Floats:
        """Products of all pairs of deviations, (width, width)."""
        return np.outer(self.deviation, self.deviation)

    @cached_property
    def largest_precision(self) -> float:
        """The end of the range."""
        return float(np.exp(self.log_precision[1]))


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
    log_evidence : ndarray of shape (...)
        Logarithm of the probability of the component's responses.
    uncertainty : ndarray of shape (...)
        The sum of ``|x factor|²`` over its rows.
    factor : ndarray of shape (..., width, width) or None
        The mean of precision times squared residual at a row x is
        ``precision (y - x coef)² + |x factor|²``. None if not asked for.
    """

    coef: Floats
    precision: Floats
    log_precision: Floats
    log_evidence: Floats
    uncertainty: Floats
    factor: Floats | None


def posterior(sums: Sums, prior: Prior, *, with_factor: bool = True) -> Posterior:
    """Integrate over coefficients and noise."""
    unit = prior.deviation
    if not with_factor and float(sums.size.min(initial=np.inf)) > MODEL.many_rows * unit.size:
        found = _of_many(sums, prior)
        if found is not None:
            return found
    values, vectors = np.linalg.eigh(sums.gram * prior.products)
    seen = values > MODEL.rounding * np.maximum(values[..., -1:], 1e-300)  # the last is largest
    # Least squares in the rotated, scaled coordinates, in which the prior is standard normal.
    pull = np.einsum("...ij,...i->...j", vectors, sums.moment * unit)
    here = np.einsum("...ij,...i->...j", vectors, sums.coef / unit)
    step = pull / np.where(seen, values, np.inf)
    best = np.where(seen, here + step, 0.0)
    values = np.where(seen, values, 0.0)
    rest = np.maximum(sums.square - add(pull * step, axis=-1), 0.0)
    mode = _mode(sums.size, values, best**2, rest, prior)
    order = _order(sums.size, values, best**2, rest, prior, mode[0])
    steeper: Floats = np.ones(1)
    if order.any():
        steeper = 10.0 ** order[..., None]
        values, best = values * steeper**2, best / steeper
        mode = _mode(sums.size, values, best**2, rest, prior)
    u, tau, inverse, mass, log_total = _integral(sums.size, values, best**2, rest, prior, mode)
    shrink = tau[..., None] * values[..., None, :] * inverse
    log_evidence = log_total - prior.log_span + LOG_FIRST - LOG_10 * order
    tau_mass = mass * tau
    precision = add(tau_mass, axis=-1)
    mean = (tau_mass[..., None, :] @ shrink)[..., 0, :] / precision[..., None]
    spread = (tau_mass[..., None, :] @ inverse)[..., 0, :]
    drift = np.sqrt(tau_mass)[..., None] * (shrink - mean[..., None, :]) * best[..., None, :]
    rotate = vectors * unit[:, None] * steeper[..., None]
    factor = None
    if with_factor:
        inner = np.swapaxes(drift, -1, -2) @ drift
        index = np.arange(unit.size)
        inner[..., index, index] += spread
        factor = rotate @ np.linalg.cholesky(inner)
    return Posterior(
        coef=(rotate @ (mean * best)[..., None])[..., 0],
        precision=precision,
        log_precision=add(mass * u, axis=-1),
        log_evidence=log_evidence,
        uncertainty=add(values * (spread + add(drift * drift, axis=-2)), axis=-1),
        factor=factor,
    )


def _of_many(sums: Sums, prior: Prior) -> Posterior | None:
    """Integrate where rows are many; None where they do not determine every coefficient.

    Log precision u then follows the law of the logarithm of a gamma variable, but for terms that
    the rows dwarf: the integrand is exp(a u - c e^u) with the value and two derivatives that it has
    at about its mode. That takes two solutions of normal equations in place of all eigenvectors.
    """
    unit, size, highest = prior.deviation, sums.size, prior.largest_precision
    width, inside = unit.size, np.arange(unit.size)
    gram, moment, here = sums.gram * prior.products, sums.moment * unit, sums.coef / unit

    def ridged(ridge: Floats | float) -> Floats:
        table = gram.copy()
        table[..., inside, inside] += ridge
        return table

    def left(step: Floats, ridge: Floats | float) -> Floats:
        best = here + step
        return np.asarray(sums.square - add(step * (moment + best * ridge), axis=-1))

    try:
        # Next to no noise: least squares.
        ridge: Floats | float = 1.0 / highest
        step = np.linalg.solve(ridged(ridge), (moment - here * ridge)[..., None])[..., 0]
        squares = left(step, ridge)
        if not bool((squares * highest > size).all()):
            return None  # the noise is as small as it can be
        tau = (size - width) / squares
        ridge = (1.0 / tau)[..., None]
        root = np.linalg.cholesky(ridged(ridge))
        inverse = np.linalg.inv(root)
    except np.linalg.LinAlgError:
        return None
    turned = np.swapaxes(inverse, -1, -2)
    step = (turned @ (inverse @ (moment - here * ridge)[..., None]))[..., 0]
    best, squares = here + step, left(step, ridge)
    # What the rows leave of the prior's covariance; its trace and that of its square.
    rest = (turned @ inverse) * ridge[..., None]
    free = add(rest[..., inside, inside], axis=-1)
    log_tau, length = np.log(tau), add(best * best, axis=-1)
    # Where it is less than half, each coefficient is determined; ``_order`` would choose none.
    if not bool((free < 0.5).all() and (0.5 * length < LOG_10 * (1 + width) * (1 - free) ** 2).all()):
        return None
    log_det = 2.0 * add(np.log(root[..., inside, inside]), axis=-1) + width * log_tau
    value = 0.5 * (size * (log_tau - LOG_2PI) - log_det - tau * squares - length)
    slope = 0.5 * (size - width + free - tau * squares)
    held = add(best * (rest @ best[..., None])[..., 0], axis=-1)
    curve = 0.5 * (free - add(rest * rest, axis=(-2, -1)) + tau * squares) - held
    shape = slope + curve
    mean = digamma(shape) - np.log(curve) + log_tau
    low, high = (end - mean for end in prior.log_precision)
    beyond = shape * np.minimum(np.expm1(low) - low, np.expm1(high) - high)
    if not bool(((beyond > DROP) & (low < 0) & (high > 0)).all()):
        return None  # the range of the noise cuts the law
    log_total = value + curve + gammaln(shape) - shape * np.log(curve)
    return Posterior(
        coef=best * unit,
        precision=tau * shape / curve,
        log_precision=mean,
        log_evidence=log_total - prior.log_span + LOG_FIRST,
        uncertainty=width - free,
        factor=None,
    )


def _order(
    size: Floats, values: Floats, best2: Floats, rest: Floats, prior: Prior, tau: Floats
) -> Floats:
    """Choose the order of magnitude at which the component is likeliest."""
    # An order more costs its own prior and, for each coefficient that the rows determine, a factor
    # of ten in the density of the prior; it saves at most what large coefficients cost now.
    costs = LOG_10 * (1 + add(tau[..., None] * values > 1.0, axis=-1))
    if bool((0.5 * add(best2, axis=-1) < costs).all()):
        return np.zeros(size.shape)
    worth = np.full((STEEPER.size, *size.shape), -np.inf)
    for k, order in enumerate(STEEPER):
        wide, less = values * 100.0**order, best2 * 100.0**-order
        # Of fewer rows than coefficients no noise is the likeliest: all of it counts.
        mode = _mode(size, wide, less, rest, prior)
        worth[k] = _integral(size, wide, less, rest, prior, mode)[-1] - LOG_10 * order
        if k and bool((worth[k] < worth[k - 1]).all()):
            break  # beyond its best order a component only gets less likely
    return np.asarray(STEEPER[np.argmax(worth, axis=0)])


def _integral(
    size: Floats,
    values: Floats,
    best2: Floats,
    rest: Floats,
    prior: Prior,
    mode: tuple[Floats, Floats, Floats],
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Integrate over log precision.

    Returns its nodes, the precisions, the part of each coefficient that they leave to the prior
    (..., node, width), the share of each node, and the logarithm of the total.
    """
    u, w = _window(*mode, rest, prior)
    tau = np.exp(u)
    curved = tau[..., None] * values[..., None, :]
    inverse = 1.0 / (1.0 + curved)
    log_z = 0.5 * size[..., None] * (u - LOG_2PI) - 0.5 * tau * rest[..., None]
    log_z -= 0.5 * add(np.log1p(curved) + best2[..., None, :] * curved * inverse, axis=-1)
    top = log_z.max(axis=-1, keepdims=True)
    mass = w * np.exp(log_z - top)
    total = add(mass, axis=-1, keepdims=True)
    return u, tau, inverse, mass / total, np.asarray(top[..., 0] + np.log(total[..., 0]))


def _mode(
    size: Floats, values: Floats, best2: Floats, rest: Floats, prior: Prior
) -> tuple[Floats, Floats, Floats]:
    """Find the likeliest precision; also degrees of freedom and squares that are left."""
    lowest, highest = np.exp(prior.log_precision)
    squares, width = best2 * values, values.shape[-1]
    degrees, left = np.maximum(size - add(values > 0, axis=-1), 1e-3), rest
    tau = np.minimum(np.maximum(degrees / np.maximum(left, 1e-300), lowest), highest)
    for _ in range(MODEL.inner_rounds):
        inverse = 1.0 / (1.0 + tau[..., None] * values)
        degrees = np.maximum(size - width + add(inverse, axis=-1), 1e-3)
        left = rest + add(squares * inverse * inverse, axis=-1)
        tau = np.minimum(np.maximum(degrees / np.maximum(left, 1e-300), lowest), highest)
    return tau, degrees, left


def _window(
    tau: Floats, degrees: Floats, left: Floats, rest: Floats, prior: Prior
) -> tuple[Floats, Floats]:
    """Place the nodes of the quadrature around the mode, as wide as the integrand.

    Returns log precisions and their weights. Around the mode the integrand is
    exp(-half (e^x - 1 - x)).
    """
    low, high = prior.log_precision
    half, mode = 0.5 * degrees, np.log(tau)
    # At the upper limit the integrand may still rise.
    slope = np.maximum(0.5 * (degrees - tau * left), 0.0)
    before = np.minimum(np.sqrt(2 * DROP / half) + DROP / half, DROP / np.maximum(slope, 1e-300))
    # Above the mode the prior gives way to the rows, and of the squares only those are left that no
    # coefficients take away. The integrand falls at least as one of these alone does, whose mode is
    # later and higher.
    later = np.log(np.maximum(degrees / np.maximum(tau * rest, 1e-300), 1.0))
    drop = DROP + half * (later + np.expm1(-later))
    after = later + np.minimum(np.sqrt(2 * drop / half), np.log(drop / half + 4.0) + 1.0)
    first, last = np.maximum(mode - before, low), np.minimum(mode + after, high)
    radius, centre = 0.5 * (last - first), 0.5 * (last + first)
    return centre[..., None] + radius[..., None] * NODES, radius[..., None] * WEIGHTS
