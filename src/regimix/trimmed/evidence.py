"""How much a regression explains: a spike of residuals against what would be there without it.

A component is judged by *all* rows, not by the rows it was fitted on: how much likelier are the
data when residuals may come from a spike ``share * N(0, scale^2)`` than when they may not? Size and
noise level of the component come out of the same question. ``p`` coefficients fit ``p`` rows for
free, so the gain is discounted by ``1 - p / mass`` and charged ``(p + 2) / 2 * log n``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.problem import Problem

__all__ = ["Background", "Spike", "evidence_without_slopes", "weigh_spikes"]

Floats = NDArray[np.float64]

# Extent of the response: from the 1 % to the 99 % quantile, and a little more.
TAIL = 0.01
ROOM = 1.1
# The extent counts up to this many deviations of the bulk.
LARGEST_EXTENT = 1000.0
# Noiseless data would score infinity: no noise level below this share of the response's extent.
SMALLEST_SCALE = 1e-9
# One-dimensional, so steps are cheap; from a good guess a few are enough.
EM_STEPS = 100
EM_SETTLED = 1e-4
# Where a spike of the response itself may sit (quantiles), and how wide it may be (of the extent).
PLACES = tuple(np.linspace(0.05, 0.95, 13))
WIDTHS = (0.3, 0.03, 0.001)
# A share of exactly zero or one would never move again.
SHARE_LIMIT = 1e-6


@dataclass(frozen=True)
class Background:
    """What rows look like when no regression explains them, in standardised units.

    Attributes
    ----------
    flat : float
        Density of a uniform response over its extent: gross errors.
    rows : ndarray of shape (rows,)
        Density of each response under the law of the response itself, normal with some gross
        errors: rows that belong to something else.
    smallest_scale : float
        No noise level is taken to be below this.
    """

    flat: float
    rows: Floats
    smallest_scale: float

    @classmethod
    def of(cls, y: Floats, weights: Floats) -> Background:
        """Describe the response of a sample."""
        low, middle, high = _quantiles(y, weights, (TAIL, 0.5, 1 - TAIL))
        extent = high - low or float(np.ptp(y)) or 1.0
        spread = _quantiles(np.abs(y - middle), weights, (0.5,))[0] * 1.4826 or extent
        # A few rows that are wrong by many orders of magnitude must not set the scale of the rest.
        extent = min(extent, LARGEST_EXTENT * spread)
        flat = 1 / (ROOM * extent)
        normal = _normal(y - middle, np.array(spread))
        share = _fit_share(normal[None, :], np.full(y.shape, flat), weights, np.array([0.9]))[0]
        return cls(flat, share * normal + (1 - share) * flat, SMALLEST_SCALE * extent)


@dataclass(frozen=True)
class Spike:
    """Size, noise level and evidence of each of a batch of regressions.

    Attributes
    ----------
    share : ndarray of shape (starts,)
        Fraction of all rows that the regression explains, beyond a flat background.
    scale : ndarray of shape (starts,)
        Standard deviation of its residuals.
    evidence : ndarray of shape (starts,)
        Discounted log-likelihood gain over a background that knows the law of the response:
        negative when the regression explains nothing.
    """

    share: Floats
    scale: Floats
    evidence: Floats


def weigh_spikes(
    residuals: Floats,
    weights: Floats,
    background: Background,
    first_scale: Floats,
    n_columns: int,
) -> Spike:
    """Find the spike in each row of a residual matrix, and how much it explains.

    Size and noise are found against a flat background. Evidence is weighed against the law of
    the response: against flatness alone, one broad regression over several regimes would beat each
    true one as soon as gross errors stretch the extent of the response.

    Parameters
    ----------
    residuals : ndarray of shape (starts, rows)
    weights : ndarray of shape (rows,)
    first_scale : ndarray of shape (starts,)
        Where to look for the noise level first: the residual at the edge of a trimmed fit. (The
        deviation of the kept residuals would be too small by far when few rows are kept.)
    """
    share, scale = _fit_spike(residuals, weights, background, first_scale, n_columns)
    spike = _normal(residuals, scale[:, None])
    total = float(weights.sum())
    claimed = _fit_share(spike, background.rows, weights, share)
    density = claimed[:, None] * spike + (1 - claimed[:, None]) * background.rows
    gain = np.log(density / background.rows) @ weights
    discount = np.clip(1 - n_columns / np.maximum(claimed * total, 1.0), 0.0, 1.0)
    evidence = np.where(gain > 0, gain * discount, gain) - 0.5 * (n_columns + 2) * np.log(total)
    return Spike(share, scale, np.where(share * total > n_columns + 1, evidence, -np.inf))


def evidence_without_slopes(problem: Problem, weights: Floats, background: Background) -> float:
    """Weigh spikes of the response itself, which no feature explains.

    Around several places (around zero without an intercept) and from several widths.
    """
    places = [0.0]
    if problem.fit_intercept or np.ptp(problem.X[:, 0]) == 0:
        places = _quantiles(problem.y, weights, PLACES)
    y = np.asarray(problem.y)
    extent = 1 / (ROOM * background.flat)
    widths = np.tile(extent * np.array(WIDTHS), len(places))
    residuals = y - np.repeat(places, len(WIDTHS))[:, None]
    spikes = weigh_spikes(residuals, weights, background, widths, len(places) > 1)
    return float(spikes.evidence.max())


def _fit_spike(
    residuals: Floats, weights: Floats, background: Background, scale: Floats, n_columns: int
) -> tuple[Floats, Floats]:
    """Fit share and scale of a spike on a flat background by expectation-maximisation."""
    total = float(weights.sum())
    share = np.full(scale.shape, 0.5)
    scale = np.maximum(scale, background.smallest_scale)
    squares = residuals**2
    for _ in range(EM_STEPS):
        odds = _normal(residuals, scale[:, None])
        odds *= (share / ((1 - share) * background.flat))[:, None]
        member = odds / (1 + odds)
        if weights.min() < 1 or weights.max() > 1:
            member *= weights
        mass = member.sum(axis=1)
        freedom = np.maximum(mass - n_columns, 0.5)
        updated = np.sqrt(np.einsum("ij,ij->i", member, squares) / freedom)
        updated = np.maximum(updated, background.smallest_scale)
        settled = bool((np.abs(updated - scale) <= EM_SETTLED * scale).all())
        share = np.clip(mass / total, SHARE_LIMIT, 1 - SHARE_LIMIT)
        scale = updated
        if settled:
            break
    return share, scale


def _fit_share(spike: Floats, background: Floats, weights: Floats, share: Floats) -> Floats:
    """Fit the share of given densities against a given background."""
    ratio = spike / background
    for _ in range(EM_STEPS):
        odds = ratio * (share / (1 - share))[:, None]
        updated = np.clip(
            (odds / (1 + odds)) @ weights / weights.sum(), SHARE_LIMIT, 1 - SHARE_LIMIT
        )
        settled = bool((np.abs(updated - share) <= EM_SETTLED).all())
        share = updated
        if settled:
            break
    return share


def _normal(values: Floats, scale: Floats) -> Floats:
    """Density of the centred normal law."""
    scaled = values / scale
    np.multiply(scaled, scaled, out=scaled)
    # Beyond 37 deviations the density is zero in floating point; spare exp the slow underflow.
    np.minimum(scaled, 1380.0, out=scaled)
    scaled *= -0.5
    density = np.exp(scaled, out=scaled)
    density /= scale * np.sqrt(2 * np.pi)
    return density


def _quantiles(values: Floats, weights: Floats, levels: tuple[float, ...]) -> list[float]:
    order = np.argsort(values, kind="stable")
    filled = np.cumsum(weights[order])
    places = np.searchsorted(filled, np.asarray(levels) * filled[-1])
    return [float(values[order[min(place, values.size - 1)]]) for place in places]
