"""One regression, integrated over its coefficients and its noise together.

Coefficients are normal a priori, and log precision is uniform over a range. For a fixed precision
the coefficients integrate in closed form; one quadrature over log precision does the rest.
Coefficients and noise are kept together: taken apart (q(beta) q(tau)), the bound drifts away from
a component of few rows. The unit of the response is that of its bulk, and a regime of few rows may
be steeper by orders of magnitude: each order is ten times less likely a priori.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
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
# The window of the quadrature need not be placed more exactly, as a share of the precision.
SAME_MODE = 1e-2
# Nats that no decision depends on.
NEGLIGIBLE = 1e-4
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
    def precisions(self) -> tuple[float, float]:
        """Range of 1 / noise²."""
        low, high = self.log_precision
        return math.exp(low), math.exp(high)


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
    """Integrate over coefficients and noise; in closed form where rows determine both."""
    found = _by_gamma(sums, prior, with_factor=with_factor) if _determined(sums, prior) else None
    return _by_quadrature(sums, prior, with_factor=with_factor) if found is None else found


def _determined(sums: Sums, prior: Prior) -> bool:
    """Foresee whether rows determine coefficients and noise, from residuals as they are."""
    spare = sums.size - prior.deviation.size
    if not (spare > MODEL.many_rows).all():
        return False
    tau = spare / np.maximum(sums.square, sums.size / prior.precisions[1])
    seen = tau[..., None] * _diagonal(sums.gram) * prior.deviation**2
    # Not all that the rows leave open, but a lower bound.
    free = add(1.0 / (1.0 + seen), axis=-1)
    return bool((free < np.minimum(NEGLIGIBLE * (0.5 * spare) ** 2, 0.5)).all())


def _diagonal(table: Any) -> Floats:
    """Return a view of the diagonals."""
    return np.asarray(np.einsum("...ii->...i", table))


def _sure(shape: Floats, log_tau: Floats, free: Floats, length: Floats, prior: Prior) -> Any:
    """Say for which components log precision follows the law of the logarithm of a gamma variable.

    The range of the noise does not cut that law, what differs from it is as good as nothing, and no
    coefficient is larger than the prior supposes: ``_order`` would choose none.
    """
    low, high = (end - log_tau for end in prior.log_precision)
    inside = shape * np.minimum(np.expm1(low) - low, np.expm1(high) - high) > DROP
    inside &= (low < 0) & (high > 0) & (free < np.minimum(NEGLIGIBLE * shape * shape, 0.5))
    width = prior.deviation.size
    return inside & (0.5 * length < LOG_10 * (1 + width) * (1 - free) ** 2)


def _by_quadrature(sums: Sums, prior: Prior, *, with_factor: bool) -> Posterior:
    """Integrate over the coefficients exactly, and over the noise by a quadrature."""
    unit = prior.deviation
    values, vectors = np.linalg.eigh(sums.gram * prior.products)
    seen = values > MODEL.rounding * np.maximum(values[..., -1:], 1e-300)  # the last is largest
    # Least squares in the rotated, scaled coordinates, in which the prior is standard normal.
    pull = ((sums.moment * unit)[..., None, :] @ vectors)[..., 0, :]
    here = ((sums.coef / unit)[..., None, :] @ vectors)[..., 0, :]
    if seen.all():
        step = pull / values
        best = here + step
    else:
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


def _by_gamma(sums: Sums, prior: Prior, *, with_factor: bool) -> Posterior | None:
    """Integrate where rows determine coefficients and noise; None where they do not.

    Log precision u then follows the law of the logarithm of a gamma variable, but for terms that
    the rows dwarf: the integrand is exp(a u - c e^u) with the value and two derivatives that it has
    at about its mode. That takes two solutions of normal equations in place of all eigenvectors.
    """
    unit, size, highest = prior.deviation, sums.size, prior.precisions[1]
    width = unit.size
    gram, moment, here = sums.gram * prior.products, sums.moment * unit, sums.coef / unit
    inside = _diagonal(gram)

    def left(step: Any, ridge: Any) -> Floats:
        """Return the squares that are left one step from here, noise being at least the least."""
        squares = sums.square - add(step * (moment + (here + step) * ridge), axis=-1)
        return np.asarray(np.maximum(squares, size / highest))

    def solved(inverse: Floats, side: Floats) -> Floats:
        """Solve the equations whose matrix has this inverse root."""
        return np.asarray(np.swapaxes(inverse, -1, -2) @ (inverse @ side[..., None]))[..., 0]

    # With next to no noise: least squares.
    inside += 1 / highest
    inverse = _inverse_roots(gram)
    if inverse is None:
        return None
    step = solved(inverse, moment - here / highest)
    tau = (size - width) / left(step, 1 / highest)
    ridge = (1.0 / tau)[..., None]
    inside += ridge - 1 / highest
    inverse = _inverse_roots(gram)
    if inverse is None:
        return None
    step = solved(inverse, moment - here * ridge)
    best, squares = here + step, tau * left(step, ridge)
    # Variances in units of the prior's: what the rows leave open of each coefficient. Features are
    # white, so that covariances hardly count.
    variances = add(inverse * inverse, axis=-2) * ridge
    free, length = add(variances, axis=-1), add(best * best, axis=-1)
    log_tau = np.log(tau)
    log_det = width * log_tau - 2.0 * add(np.log(_diagonal(inverse)), axis=-1)
    value = 0.5 * (size * (log_tau - LOG_2PI) - log_det - squares - length)
    slope = 0.5 * (size - width + free - squares)
    curve = 0.5 * (free + squares - add(variances * variances, axis=-1))
    pulled = (inverse @ best[..., None])[..., 0]
    curve = np.maximum(curve - add(pulled * pulled, axis=-1) / tau, 0.5)
    shape = np.maximum(slope + curve, 0.5)
    log_precision = digamma(shape) - np.log(curve) + log_tau
    if not _sure(shape, log_precision, free, length, prior).all():
        return None
    log_total = value + curve + gammaln(shape) - shape * np.log(curve)
    return Posterior(
        coef=best * unit,
        precision=tau * shape / curve,
        log_precision=log_precision,
        log_evidence=log_total - prior.log_span + LOG_FIRST,
        uncertainty=width - free,
        factor=np.swapaxes(inverse, -1, -2) * unit[:, None] if with_factor else None,
    )


def _inverse_roots(tables: Floats) -> Floats | None:
    """Invert the lower Cholesky factor of each table; None where one has none.

    One by one: the stacked routines of NumPy take two to four times as long.
    """
    inverse = np.empty(tables.shape)
    each = (math.prod(tables.shape[:-2]), *tables.shape[-2:])
    for table, out in zip(tables.reshape(each), inverse.reshape(each), strict=True):
        root, failed = lapack.dpotrf(table, lower=1, clean=1)
        if failed:
            return None
        out[:] = lapack.dtrtri(root, lower=1, overwrite_c=1)[0]
    return inverse


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
    lowest, highest = prior.precisions
    squares, spare = best2 * values, size - values.shape[-1]
    degrees, left = np.maximum(size - add(values > 0, axis=-1), 1e-3), rest
    tau = np.minimum(np.maximum(degrees / np.maximum(left, 1e-300), lowest), highest)
    for _ in range(MODEL.inner_rounds):
        inverse = 1.0 / (1.0 + tau[..., None] * values)
        degrees = np.maximum(spare + add(inverse, axis=-1), 1e-3)
        inverse *= inverse
        left, before = rest + add(squares * inverse, axis=-1), tau
        tau = np.minimum(np.maximum(degrees / np.maximum(left, 1e-300), lowest), highest)
        if bool((np.abs(tau - before) < SAME_MODE * tau).all()):
            break
    return tau, degrees, left


def _window(
    tau: Floats, degrees: Floats, left: Floats, rest: Floats, prior: Prior
) -> tuple[Floats, Floats]:
    """Place the nodes of the quadrature around the mode, as wide as the integrand.

    Returns log precisions and their weights. Around the mode the integrand is
    exp(-half (e^x - 1 - x)).
    """
    low, high = prior.log_precision
    half, mode, squares = 0.5 * degrees, np.log(tau), tau * left
    flat = DROP / half
    # At the upper limit the integrand may still rise.
    slope = np.maximum(0.5 * (degrees - squares), 1e-300)
    before = np.minimum(np.sqrt(2 * flat) + flat, DROP / slope)
    # Above the mode the prior gives way to the rows, and of the squares only those are left that no
    # coefficients take away. The integrand falls at least as one of these alone does, whose mode is
    # later and higher.
    later = np.log(np.maximum(degrees / np.maximum(tau * rest, 1e-300), 1.0))
    flat += later + np.expm1(-later)
    after = later + np.minimum(np.sqrt(2 * flat), np.log(flat + 4.0) + 1.0)
    first, last = np.maximum(mode - before, low), np.minimum(mode + after, high)
    radius, centre = 0.5 * (last - first)[..., None], 0.5 * (last + first)[..., None]
    return centre + radius * NODES, radius * WEIGHTS
