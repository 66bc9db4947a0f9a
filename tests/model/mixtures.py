"""Small mixtures on whitened rows, and a slow twin of a round of EM, written from the formulas."""

from dataclasses import dataclass, replace
from math import lgamma

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma, logsumexp
from scipy.stats import norm, t
from scipy.stats import t as student

from regimix.engines.base import Sample
from regimix.model.em import NEVER, REGIME_GAIN, Parameters
from regimix.model.laws import NORMAL, Background
from regimix.model.numbers import MODEL
from regimix.model.rows import whitened_rows


def mixed_rows(seed, m=2, d=3, n=400, *, intercept=True, outliers=True, weighted=False, noise=0.1):
    """Rows of m regimes, a tenth of them with gross errors; and the labels, -1 for those."""
    rng = np.random.default_rng(seed)
    X, theta = rng.standard_normal((n, d)), 3 * rng.standard_normal((m, d))
    labels = rng.integers(0, m, n)
    y = (X * theta[labels]).sum(axis=1) + noise * rng.standard_normal(n)
    wrong = rng.random(n) < 0.1
    y[wrong] += 30 * rng.standard_normal(wrong.sum())
    labels[wrong] = -1
    weights = rng.uniform(0.2, 3.0, n) if weighted else np.ones(n)
    design = np.column_stack([np.ones(n), X]) if intercept else X
    rows, _ = whitened_rows(Sample(design, y, weights), intercept=intercept, outliers=outliers)
    return rows, labels


def some_model(rows, rng, m, noise=NORMAL):
    """Components anywhere, as wide as much of the response."""
    share = rng.uniform(0.2, 1.0, m)
    model = Parameters.point(
        rng.standard_normal((m, rows.width)),
        rng.uniform(0.2, 1.0, m),
        0.9 * share / share.sum(),
        ("test",) * m,
        noise,
    )
    return model if rows.outliers else without_background(model)


def without_background(model):
    """The same components, and no row is an outlier."""
    return replace(model, log_share=np.append(model.log_share[:-1], NEVER))


@dataclass(frozen=True)
class SlowRound:
    """Responsibilities of a model, what a round makes of it, and the score."""

    posterior: np.ndarray
    coef: np.ndarray
    precision: np.ndarray
    log_precision: np.ndarray
    log_share: np.ndarray
    log_evidence: np.ndarray
    score: float


def slow_squares(rows, model):
    """Mean squared residuals in units of the noise, one row at a time, (m, n)."""
    out = np.empty((model.m, rows.n))
    for j in range(model.m):
        for i in range(rows.n):
            x = rows.design[i]
            out[j, i] = model.precision[j] * (rows.y[i] - x @ model.coef[j]) ** 2
            if model.factor is not None:
                out[j, i] += sum((x @ column) ** 2 for column in model.factor[j].T)
    return out


def slow_log_density(rows, model):
    """Mean log densities under each component and, last, the background, (m + 1, n)."""
    squares = slow_squares(rows, model)
    half_log = 0.5 * model.log_precision[:, None]
    if np.isinf(model.noise.degrees):
        inside = half_log - 0.5 * np.log(2 * np.pi) - 0.5 * squares
    else:
        inside = half_log + student.logpdf(np.sqrt(squares), model.noise.degrees)
    return np.vstack([inside, slow_background(rows, model)])


def slow_background(rows, model):
    """Log density of every response under the background of a model."""
    if model.outlier_law == Background.NORMAL:
        return norm.logpdf(rows.y, rows.middle, model.outlier_scale)
    if model.outlier_law == Background.STUDENT:
        return t.logpdf(rows.y, 2, rows.middle, model.outlier_scale)
    return t.logpdf(rows.y, 2, rows.middle, rows.width_of_y)


def slow_worth_of_background(rows, outlier):
    """What the background that suits its rows best adds to the score: its density and its prior."""
    return max(worth_of_backgrounds(rows, outlier))


def has_plain_background(rows, outlier):
    """Whether the background that is as wide as the response suits its rows best."""
    return np.argmax(worth_of_backgrounds(rows, outlier)) == 0


def worth_of_backgrounds(rows, outlier):
    """What each law of outliers adds to the score; the plain one first."""
    weight = outlier * rows.weights
    gap, held = rows.y - rows.middle, weight.sum()
    worth = [weight @ t.logpdf(gap, 2, 0, rows.width_of_y)]
    # As wide between its quantiles as the response is, and no narrower than its resolution.
    narrowest, student = (
        max(rows.width_of_y / (2 * law.ppf(0.9)), rows.smallest_scale) for law in (norm, t(2))
    )
    log_prior = -3 - 0.5 * np.log(1 + held)
    spread = max(np.sqrt(weight @ gap**2 / held), narrowest) if held else narrowest
    worth.append(weight @ norm.logpdf(gap, 0, spread) + log_prior)
    best = minimize_scalar(
        lambda log_scale: -weight @ t.logpdf(gap, 2, 0, np.exp(log_scale)),
        bounds=(np.log(student), np.log(1e3 * rows.width_of_y)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    worth.append(log_prior - best.fun)
    return worth


def slow_evidence(rows, weight, size, prior, order=0):
    """Integrate the coefficients of one component by the formulas, noise on a fine grid."""
    deviation = prior.deviation * 10.0**order
    B = rows.design * deviation
    g, U = np.linalg.eigh((B * weight[:, None]).T @ B)
    g = np.maximum(g, 0.0)
    c = U.T @ (B.T @ (weight * rows.y))
    total = float(weight @ rows.y**2)
    low, high = prior.log_precision
    nodes, node_weights = np.polynomial.legendre.leggauss(600)
    u = low + (high - low) * (nodes + 1) / 2
    tau = np.exp(u)[:, None]
    log_z = -0.5 * np.log1p(tau * g).sum(axis=1)
    # The quadratic terms cancel where rows are on a line: put together, they do not.
    safe = np.where(g > 1e-12 * g.max(), g, 1.0)
    fitted = np.where(g > 1e-12 * g.max(), c**2 / safe, 0.0)
    log_z -= 0.5 * tau[:, 0] * max(total - fitted.sum(), 0.0)
    log_z -= 0.5 * (tau * fitted / (1 + tau * g)).sum(axis=1)
    log_z += 0.5 * size * (u - np.log(2 * np.pi))
    log_mass = log_z + np.log(node_weights * (high - low) / 2)
    log_total = logsumexp(log_mass)
    mass = np.exp(log_mass - log_total)
    mean = (tau * c / (1 + tau * g)) @ (U * deviation[:, None]).T
    precision = float(mass @ tau[:, 0])
    coef = (mass * tau[:, 0]) @ mean / precision
    chance = np.log(0.9) - order * np.log(10.0)
    return log_total - prior.log_span + chance, coef, precision, float(mass @ u)


def slow_round(rows, model):
    """E-step, M-step and score, from the formulas; slopes of the usual order of magnitude."""
    m, mass = model.m, rows.weights.sum()
    classes = m + int(rows.outliers)
    log_odds = (slow_log_density(rows, model) + model.log_share[:, None])[:classes]
    log_total = logsumexp(log_odds, axis=0)
    posterior = np.zeros((m + 1, rows.n))
    posterior[:classes] = np.exp(log_odds - log_total)
    squares, nu = slow_squares(rows, model), model.noise.degrees
    tail = np.ones((m, rows.n)) if np.isinf(nu) else (nu + 1) / (nu + squares)
    entropy = sum(
        -rows.weights[i] * r * np.log(r) for r_of in posterior for i, r in enumerate(r_of) if r > 0
    )
    score, found = entropy, []
    for j in range(m):
        size = float(posterior[j] @ rows.weights)
        weight = np.where(posterior[j] > MODEL.member, posterior[j], 0.0) * rows.weights * tail[j]
        found.append(slow_evidence(rows, weight, size, rows.prior))
        score += found[j][0]
        if not np.isinf(nu):
            # Log density over the bound that is quadratic in the residual.
            bound = student.logpdf(np.sqrt(squares[j]), nu) + 0.5 * np.log(2 * np.pi)
            score += float(posterior[j] * rows.weights @ (bound + 0.5 * tail[j] * squares[j]))
    counts = posterior[:classes] @ rows.weights
    score += sum(lgamma(1 + count) for count in counts) - lgamma(classes + mass) + lgamma(classes)
    score += lgamma(m + 1) - REGIME_GAIN * m
    score -= REGIME_GAIN * (not np.isinf(nu))  # heavy tails are as rare as a regime
    if rows.outliers:
        score += slow_worth_of_background(rows, posterior[-1])
    log_share = digamma(1 + counts) - digamma(classes + mass)
    if rows.outliers and not has_plain_background(rows, posterior[-1]):
        log_share[-1] -= 0.5 / (1 + counts[-1])  # the slope of its price
    log_evidence, coef, precision, log_precision = (np.array(x) for x in zip(*found, strict=True))
    return SlowRound(posterior, coef, precision, log_precision, log_share, log_evidence, score)


def reweighted(rows, weights):
    """The same rows with other weights."""
    return replace(rows, weights=np.asarray(weights, float))
