"""One relation whose noise may be skewed, heavy-tailed or uneven: its log evidence, in nats.

A mixture of straight lines with normal noise can imitate a curve, a fan or skewed noise. Here such
a relation is a model of its own. Its evidence is Laplace's approximation, with the priors of the
mixture's components, so that scores can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize
from scipy.special import digamma, expit, gammaln, kv, log_expit

from regimix.model.em import (
    LOG_ROOT_2PI,
    REGIME_GAIN,
    Fitted,
    from_labels,
    log_densities,
    normalise,
)
from regimix.model.numbers import MODEL
from regimix.model.rows import Rows

Floats = NDArray[np.float64]

# A search along a line may try anything: squares of exponentials of these numbers are finite.
FARTHEST_LOG = 0.2 * float(np.log(np.finfo(np.float64).max))
ANYWHERE = (-np.inf, np.inf)
# Logarithms of the dispersion of counts; next to zero it is Poisson's law.
DISPERSIONS = (-4 * MODEL.dispersion, 2 * MODEL.dispersion)
# Logits of shares of outliers; more than half of the rows are no relation's outliers.
LOGITS = (float(np.log(MODEL.rounding)), 0.0)


def _normal(t: Floats) -> tuple[Floats, Floats]:
    return -0.5 * t**2 - LOG_ROOT_2PI, -t


def _student(t: Floats, degrees: float) -> tuple[Floats, Floats]:
    constant = gammaln(0.5 * (degrees + 1)) - gammaln(0.5 * degrees)
    constant -= 0.5 * np.log(np.pi * degrees)
    square = t**2 / degrees
    return constant - 0.5 * (degrees + 1) * np.log1p(square), -(degrees + 1) * t / degrees / (
        1 + square
    )


def _laplace(t: Floats) -> tuple[Floats, Floats]:
    root = np.sqrt(t**2 + MODEL.tip**2)
    return -root - np.log(2 * MODEL.tip * kv(1, MODEL.tip)), -t / root


# Log densities of unit scale, and their derivatives.
KERNELS = {
    "normal": _normal,
    "student12": lambda t: _student(t, 12.0),
    "student6": lambda t: _student(t, 6.0),
    "student3": lambda t: _student(t, 3.0),
    "laplace": _laplace,
}
# Poisson's law with a gamma law for its mean (negative binomial), whose logarithm is linear.
COUNTS = "counts"


@dataclass(frozen=True)
class Relation:
    """One relation, before it is fitted.

    Attributes
    ----------
    rows : Rows
        The response (perhaps transformed) and the terms of the relation.
    line : tuple
        Coefficients and noise to begin with, of ``line_of(rows)``.
    log_slope : ndarray of shape (n,)
        Logarithm of the derivative of that response by the one that is to be explained.
    rounding : ndarray of shape (n,)
        Least noise of a rounded response.
    kernel : str
        The noise law.
    skewed : bool
        Whether noise above the relation may be larger or smaller than below.
    spread : ndarray of shape (n, q)
        What the logarithm of the noise depends on, standardised; None if on nothing.
    counts : tuple
        With kernel "counts": the counts, and with which center and unit the response of ``rows``
        is their logarithm.
    near : Fit or None
        The same relation, neither skewed nor of uneven spread, which may be hopeless.
    """

    rows: Rows
    line: tuple[Floats, float]
    log_slope: Floats
    rounding: Floats
    kernel: str = "normal"
    skewed: bool = False
    spread: Floats | None = None
    counts: tuple[Floats, float, float] = (np.empty(0), 0.0, 1.0)
    near: Fit | None = None


@dataclass(frozen=True)
class Fit:
    """A fitted relation.

    Attributes
    ----------
    score : float
        Log evidence of all responses, in nats; with what one regime costs.
    expected : ndarray of shape (n,)
        The relation itself, in the units of its response.
    free : ndarray of shape (k,)
        Its parameters, the logit of the share of outliers last if there are any.
    outliers : bool
    uncertain : float
        By how much the score is less than the largest log posterior density.
    """

    score: float
    expected: Floats
    free: Floats
    outliers: bool
    uncertain: float


def fit_relation(relation: Relation, goal: float = -np.inf, hopeless: float = -np.inf) -> Fit:
    """Maximise the posterior of a relation, and integrate around the maximum.

    That there are no outliers is equally likely a priori to any share of them, as in the mixture.
    It is not looked at where that cannot bring the score to ``goal``. Where the steps that are left
    cannot bring it to ``hopeless``, the score is only that of the last step.
    """
    if not relation.rows.outliers:
        return _fit(relation, hopeless, outliers=False)
    fit = _fit(relation, hopeless, outliers=True)
    # The smallest share explains as much as none does, and costs no more than this.
    if fit.score - LOGITS[0] < goal:
        return fit
    return max(_fit(relation, hopeless, outliers=False), fit, key=attrgetter("score"))


def _fit(relation: Relation, hopeless: float, *, outliers: bool) -> Fit:
    near, weights = relation.near, relation.rows.weights
    # Where a relation is hopeless, one look says whether this one is as well.
    near = near if near and near.outliers == outliers and near.score < hopeless else None
    law = _Law.of(relation, None if near is None else near.free, outliers=outliers)
    # What a relation of more parameters leaves open is more.
    uncertain = 0.0 if near is None else near.uncertain

    def loss(free: Floats) -> tuple[float, Floats]:
        log_density, slopes = law.rows_at(free)
        value = weights @ log_density - 0.5 * float(((free - law.mean) ** 2 * law.tight).sum())
        slope = np.concatenate([weights * one @ block for one, block in slopes])
        return -float(value), -(slope - (free - law.mean) * law.tight)

    most = 200  # steps, and what they lead to
    values, hurried = [np.inf if near is None else -near.score - uncertain], False

    def give_up(intermediate_result: Any) -> None:
        nonlocal hurried
        values.append(intermediate_result.fun)
        # Steps gain less and less, so those that are left gain no more than the last one did.
        left = (most - len(values)) * (values[-2] - values[-1])
        if left - values[-1] - uncertain < hopeless:
            hurried = True
            raise StopIteration

    low, high = law.bounds
    found = minimize(
        loss,
        law.start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(low, high),
        callback=give_up,
        options={"maxiter": most},
    )
    if near is not None:
        if not hurried:
            return _fit(replace(relation, near=None), hopeless, outliers=outliers)
        score = -float(found.fun) - uncertain
        return Fit(score, law.expected(found.x), found.x, outliers, uncertain)
    inside = (low < found.x) & (found.x < high)
    root = np.sqrt(weights)
    parts = [(root * one)[:, None] * block for one, block in law.rows_at(found.x)[1]]
    slopes = np.hstack(parts)[:, inside]
    curvature = slopes.T @ slopes
    # The Gaussian in place of the posterior is no wider than the range of the parameter.
    curvature.flat[:: len(curvature) + 1] += np.maximum(law.tight, 2 * np.pi / (high - low) ** 2)[
        inside
    ]
    score = law.log_prior(found.x) - float(found.fun) - REGIME_GAIN
    score += 0.5 * float(inside.sum() * np.log(2 * np.pi) - _log_determinant(curvature))
    uncertain = -float(found.fun) - score
    return Fit(score, law.expected(found.x), found.x, outliers, uncertain)


def _log_determinant(curvature: Floats) -> float:
    """Return the log determinant of a positive matrix; what rounding made negative is rounding."""
    size = np.diag(curvature)
    root = np.sqrt(size)
    even = curvature / root / root[:, None]
    try:
        values = np.diag(np.linalg.cholesky(even)) ** 2  # their product is that of the eigenvalues
        sure = bool((values > MODEL.gram_rounding).all())
    except np.linalg.LinAlgError:
        sure = False
    if not sure:
        values = np.linalg.eigvalsh(even)
    return float(np.log(size).sum() + np.log(np.maximum(values, MODEL.rounding)).sum())


def gain_of_shares(rows: Rows, fitted: Fitted) -> float:
    """Return what shares that depend on the features would gain, in nats.

    Their logits are linear in the features (that of the background is a constant), and the regimes
    are refitted a few times. Evidence of shares is Laplace's approximation; that of the regimes is
    their likelihood less how far their posteriors are from the prior.
    """
    none = np.empty((rows.n, 0))
    flat = _evidence_of_shares(log_densities(rows, fitted.model), rows, none)[0]
    flat -= float(fitted.divergence.sum())
    best = -np.inf
    for _ in range(MODEL.inner_rounds):
        density = log_densities(rows, fitted.model)
        evidence, posterior = _evidence_of_shares(density, rows, rows.features)
        best = max(best, evidence - float(fitted.divergence.sum()))
        fitted = from_labels(rows, posterior, fitted.model)
    return best - flat


def _evidence_of_shares(log_density: Floats, rows: Rows, features: Floats) -> tuple[float, Floats]:
    """Return the evidence of shares with these slopes, and the responsibilities that follow."""
    count = len(log_density) - 2 + rows.outliers  # logits; that of the first regime is zero
    sloped = len(log_density) - 2  # the background's has no slopes
    size = count + sloped * features.shape[1]
    weights = rows.weights
    used = log_density if rows.outliers else log_density[:-1]

    def spread(free: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log densities of rows, and by how much each class is likelier than its share."""
        logits = np.zeros((len(used), rows.n))
        logits[1 : count + 1] = free[:count, None]
        if features.shape[1]:
            logits[1 : sloped + 1] += free[count:].reshape(sloped, -1) @ features.T
        shares = normalise(logits)[0]
        posterior, log_total = normalise(used + np.log(np.maximum(shares, 1e-300)))
        return log_total, (posterior - shares)[1:], posterior

    def slopes_of(more: Floats) -> Floats:
        """Return the derivatives of the log density of each row, (n, size)."""
        steep = more[:sloped, :, None] * features
        return np.hstack([more.T, *steep])

    def loss(free: Floats) -> tuple[float, Floats]:
        log_total, more, _ = spread(free)
        slope = slopes_of(more).T @ weights
        slope[count:] -= free[count:]
        return 0.5 * float(free[count:] @ free[count:]) - float(weights @ log_total), -slope

    found = minimize(loss, np.zeros(size), jac=True, method="L-BFGS-B")
    _, more, posterior = spread(found.x)
    table = slopes_of(more)
    curvature = (table * weights[:, None]).T @ table
    curvature[np.diag_indices_from(curvature)] += np.where(np.arange(size) < count, 1e-6, 1.0)
    # Standard normal slopes; what is flat is the same with and without them.
    if not rows.outliers:
        posterior = np.vstack([posterior, np.zeros(rows.n)])
    return -float(found.fun) - 0.5 * _log_determinant(curvature), posterior


@dataclass(frozen=True)
class _Law:
    """Densities of rows as functions of free parameters, which begin near zero and are about one.

    Parameters come in blocks: coefficients (in units of the noise, beyond those of the start), the
    logarithm of the noise and what it depends on, skew, and the logit of the share of outliers.
    Each is normal a priori around ``mean`` with precision ``tight``, or uniform if that is zero.
    """

    relation: Relation
    outliers: bool
    offset: Floats
    unit: float
    blocks: tuple[Floats, ...]
    start: Floats
    mean: Floats
    tight: Floats
    bounds: tuple[Floats, Floats]

    @classmethod
    def of(cls, relation: Relation, begun: Floats | None = None, *, outliers: bool) -> _Law:
        """Choose units and starts; ``begun`` are parameters of even noise that is not skewed."""
        rows, ones = relation.rows, np.ones((relation.rows.n, 1))
        coef, unit = relation.line
        if begun is None:
            begun = np.append(np.zeros(rows.width), [np.log(unit), -np.log(rows.n)])
        # For each block: columns, starts, prior means, prior precisions, bounds.
        known: list[tuple[Floats, Any, Any, Any, float, float]] = [
            (
                rows.design,
                begun[: rows.width],
                -coef / unit,
                (unit / rows.prior.deviation) ** 2,
                *ANYWHERE,
            )
        ]
        if relation.kernel == COUNTS:
            known.append((ones, 0.0, 0.0, MODEL.dispersion**-2, *DISPERSIONS))
        else:
            least, most = (-0.5 * end for end in reversed(rows.prior.log_precision))
            known.append(
                (ones, np.clip(begun[rows.width], least + 1e-3, most - 1e-3), 0.0, 0.0, least, most)
            )
        if relation.spread is not None:
            known.append((relation.spread, 0.0, 0.0, 1.0, *ANYWHERE))
        if relation.skewed:
            known.append((ones, 0.0, 0.0, 1.0, -MODEL.most_skewed, MODEL.most_skewed))
        if outliers:
            known.append((ones, begun[-1], 0.0, 0.0, *LOGITS))
        start, mean, tight, low, high = (
            np.concatenate([np.broadcast_to(value, block.shape[1]) for block, value in column])
            for column in ([(one[0], one[k]) for one in known] for k in range(1, 6))
        )
        blocks = [one[0] for one in known]
        if relation.spread is not None:
            blocks[1:3] = [np.hstack(blocks[1:3])]
        return cls(
            relation,
            outliers,
            rows.design @ coef,
            unit,
            tuple(blocks),
            start,
            mean,
            tight,
            (low, high),
        )

    def log_prior(self, free: Floats) -> float:
        """Log density of the prior; but for the squares of normal parameters, which are counted."""
        normal = self.tight[self.tight > 0]
        value = 0.5 * float(np.log(normal / (2 * np.pi)).sum())
        if self.relation.kernel != COUNTS:
            # Log precision is uniform, and twice as long as the logarithm of the noise.
            value += float(np.log(2.0)) - self.relation.rows.prior.log_span
        if self.outliers:
            # Shares are uniform; this is the derivative by their logit.
            value += float(log_expit(free[-1]) + log_expit(-free[-1]))
        return value

    def expected(self, free: Floats) -> Floats:
        """Return the relation at every row."""
        rows = self.relation.rows
        return self.offset + self.unit * (rows.design @ free[: rows.width])

    def rows_at(self, free: Floats) -> tuple[Floats, list[tuple[Floats, Floats]]]:
        """Return log densities of rows, and their derivatives: a factor for each row of a block."""
        rows = self.relation.rows
        parts, first = [], 0
        for block in self.blocks:
            parts.append(free[first : first + block.shape[1]])
            first += block.shape[1]
        line = self.expected(free)
        inner = self._counts if self.relation.kernel == COUNTS else self._noise
        log_density, factors = inner(line, parts)
        if self.outliers:
            share = parts[-1][0]
            own = log_expit(-share) + log_density
            log_density = np.logaddexp(own, log_expit(share) + rows.log_background)
            belongs = np.exp(own - log_density)
            factors = [belongs * factor for factor in factors]
            factors.append((1 - belongs) - expit(share))
        factors[0] = factors[0] * self.unit
        return log_density, list(zip(factors, self.blocks, strict=True))

    def _sides(self, parts: list[Floats]) -> tuple[Floats, Floats]:
        """Return noise above and below (once, if it is the same), and its rise by its logarithm."""
        relation = self.relation
        log_scale = parts[1] if relation.spread is None else self.blocks[1] @ parts[1]
        own = np.exp(np.clip(log_scale, -FARTHEST_LOG, FARTHEST_LOG))[None]
        if relation.skewed:
            skew = float(parts[2][0])
            own = own * np.exp([[skew], [-skew]])
        if not relation.rounding.any():
            return own, own
        # Neither is smaller than the rounding of the response.
        both = np.hypot(own, relation.rounding)
        return both, own**2 / both

    def _noise(self, line: Floats, parts: list[Floats]) -> tuple[Floats, list[Floats]]:
        relation = self.relation
        residual = relation.rows.y - line
        both, rise = self._sides(parts)
        whole, side, gain = both[0] + both[-1], both[0], rise[0]
        if relation.skewed:
            upper = residual > 0
            side, gain = np.where(upper, both[0], both[1]), np.where(upper, rise[0], rise[1])
        t = residual / side
        value, slope = KERNELS[relation.kernel](t)
        log_density = value - np.log(0.5 * whole) + relation.log_slope
        pull = -t * slope * (gain / side)
        factors = [-slope / side, pull - (rise[0] + rise[-1]) / whole]
        if relation.skewed:
            factors.append(np.where(upper, pull, -pull) - (rise[0] - rise[1]) / whole)
        return log_density, factors

    def _counts(self, line: Floats, parts: list[Floats]) -> tuple[Floats, list[Floats]]:
        counts, center, unit = self.relation.counts
        mean = np.exp(np.clip(center + unit * line, -FARTHEST_LOG, FARTHEST_LOG))
        size = float(np.exp(-parts[1][0]))  # of the gamma law; Poisson's law if it is infinite
        whole = size + mean
        log_density = gammaln(counts + size) - gammaln(size) - gammaln(counts + 1.0)
        log_density += size * np.log(size / whole) + counts * np.log(mean / whole)
        log_density += self.relation.log_slope
        by_size = digamma(counts + size) - digamma(size) + np.log(size / whole)
        by_size += 1.0 - (size + counts) / whole
        return log_density, [unit * (counts - mean) * size / whole, -size * by_size]


def line_of(rows: Rows) -> tuple[Floats, float]:
    """Return least squares with the weights of Student's law, and the scale of its residuals."""
    coef: Floats = np.zeros(rows.width)
    scale = rows.spread() or 1.0
    tail = np.ones(rows.n)
    for _ in range(MODEL.rounds):
        before = scale
        root = np.sqrt(rows.weights * tail)
        weighted = rows.design * root[:, None]
        gram = weighted.T @ weighted
        # The prior keeps columns apart that are alike in these rows; where it is lost in the
        # rounding of the sums, that does.
        rounding = rows.width * np.finfo(np.float64).eps * np.diag(gram)
        gram += np.diag((scale / rows.prior.deviation) ** 2 + rounding)
        coef = np.asarray(np.linalg.solve(gram, weighted.T @ (root * rows.y)), dtype=np.float64)
        residual = rows.y - rows.design @ coef
        scale = max(replace(rows, y=residual).spread(), rows.smallest_scale, 1e-12)
        tail = 4.0 / (3.0 + (residual / scale) ** 2)
        if abs(np.log(scale / before)) < MODEL.settled:
            break
    return coef, float(scale)
