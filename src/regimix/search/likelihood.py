"""The mixture of largest likelihood with a given number of regimes and no background.

The likelihood has many optima. EM runs from many starts at once, as batched matrix products; the
weak ones are dropped on the way. Where a component would hold no more rows than it has coefficients
the likelihood has no bound: such ends do not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regimix.model.em import LOG_ROOT_2PI, Parameters, normalise
from regimix.model.rows import Rows
from regimix.search.partition import affordable, label_starts, weighted_fits

__all__ = ["most_likely"]

Floats = NDArray[np.float64]

# Rounds before each cut of the field, and how many starts survive it.
ROUNDS = (10, 30, 60, 400)
SURVIVORS = (40, 12, 4)
# EM ends when a round gains less than this (nats).
SETTLED = 1e-6


def most_likely(rows: Rows, found: Parameters, count: int, seed: int) -> Parameters:
    """Return the components of largest likelihood; the search's own are one of the starts."""
    rng = np.random.default_rng(seed)
    labels = label_starts(rows, count, max(affordable(rows, count), 0), rng)
    coef = weighted_fits(rows, labels, count)
    if found.m == count:
        coef = np.concatenate([found.coef[None], coef])
    if not len(coef):
        return found
    field = _Field(rows, coef)
    if found.m == count:
        field.scale[0], field.share[0] = found.scale, found.share / found.share.sum()
    for stage, rounds in enumerate(ROUNDS):
        field.run(rounds)
        if stage < len(SURVIVORS):
            field.keep(SURVIVORS[stage])
    best = field.best()
    if best is None:
        return found
    coef, scale, share = best
    return Parameters.point(coef, scale, share, ("likelihood",) * count)


class _Field:
    """All starts on their way: coefficients (B, m, width), noise and shares (B, m)."""

    def __init__(self, rows: Rows, coef: Floats) -> None:
        self.rows, self.coef = rows, coef
        starts, count = coef.shape[:2]
        residual = rows.y - coef @ rows.design.T
        near = np.sqrt(np.average(np.min(residual**2, axis=1), axis=1, weights=rows.weights))
        self.scale = np.maximum(np.repeat(near[:, None], count, axis=1), rows.smallest_scale)
        self.share = np.full((starts, count), 1.0 / count)
        self.size = self.share * rows.mass
        self.log_likelihood = np.full(starts, -np.inf)
        self.upper = np.triu_indices(rows.width)
        design = rows.design
        pairs = design[:, self.upper[0]] * design[:, self.upper[1]]
        self.products = np.hstack([pairs, design * rows.y[:, None]])

    def run(self, rounds: int) -> None:
        """Run EM for all starts, until none gains."""
        for _ in range(rounds):
            before = self.log_likelihood
            self._step()
            if (self.log_likelihood - before < SETTLED).all():
                break

    def keep(self, count: int) -> None:
        """Keep the likeliest starts that are no interpolation."""
        order = np.argsort(-self._bounded(), kind="stable")[:count]
        for name in ("coef", "scale", "share", "size", "log_likelihood"):
            setattr(self, name, getattr(self, name)[order])

    def best(self) -> tuple[Floats, Floats, Floats] | None:
        """Return the likeliest mixture; None if all interpolate."""
        bounded = self._bounded()
        b = int(np.argmax(bounded))
        if not np.isfinite(bounded[b]):
            return None
        return self.coef[b], self.scale[b], self.share[b]

    def _bounded(self) -> Floats:
        enough = self.size.min(axis=1) > self.rows.width + 1
        return np.where(enough, self.log_likelihood, -np.inf)

    def _step(self) -> None:
        rows, width = self.rows, self.rows.width
        starts, count, _ = self.coef.shape
        residual = rows.y - self.coef @ rows.design.T
        joint = -0.5 * (residual / self.scale[..., None]) ** 2
        joint += (np.log(self.share) - np.log(self.scale) - LOG_ROOT_2PI)[..., None]
        member, log_total = normalise(np.moveaxis(joint, 1, 0))
        self.log_likelihood = log_total @ rows.weights
        member = np.moveaxis(member, 0, 1) * rows.weights
        sums = member.reshape(starts * count, -1) @ self.products
        pairs = len(self.upper[0])
        gram = np.empty((starts * count, width, width))
        gram[:, self.upper[0], self.upper[1]] = sums[:, :pairs]
        gram[:, self.upper[1], self.upper[0]] = sums[:, :pairs]
        self.size = member.sum(axis=2)
        diagonal = np.arange(width)
        gram[:, diagonal, diagonal] += 1e-9 * (self.size.reshape(-1, 1) + 1e-9)
        solved = np.linalg.solve(gram, sums[:, pairs:, None])[..., 0]
        self.coef = np.asarray(solved.reshape(starts, count, width))
        residual = rows.y - self.coef @ rows.design.T
        square = np.einsum("bjn,bjn->bj", member, residual**2)
        scale = np.sqrt(square / np.maximum(self.size, 1e-9))
        self.scale = np.maximum(scale, rows.smallest_scale)
        self.share = np.maximum(self.size / rows.mass, 1e-12)
