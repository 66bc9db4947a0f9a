"""Joint search: a whole mixture with a background in a projected space, many starts at once.

In the few directions that the response depends on, a round of EM for all starts is a handful of
matrix products. The best few mixtures are lifted to all features and continued there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import NDArray

from regimix.model.em import LOG_ROOT_2PI, Parameters, late
from regimix.model.numbers import MODEL
from regimix.model.rows import Rows
from regimix.search.numbers import SEARCH
from regimix.search.subspace import Subspace
from regimix.threads import fitting_threads

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


def smallest_component(width: int) -> float:
    """Return the fewest rows that a search looks for a component in; fewer are interpolated."""
    return 1.2 * width + 3.0


class _Field(NamedTuple):
    """All starts of a joint search: coefficients (B, m, r), scales (B,), shares (B, m + 1)."""

    coef: Singles
    scale: Singles
    share: Singles
    gain: Singles

    def pick(self, which: NDArray[np.intp] | slice) -> _Field:
        """Keep some starts."""
        return _Field(self.coef[which], self.scale[which], self.share[which], self.gain[which])

    def best(self, count: int) -> _Field:
        """Keep the starts of largest gain."""
        return self.pick(np.argsort(-self.gain, kind="stable")[:count])

    def groups(self) -> list[_Field]:
        """Cut into groups of fixed size."""
        size = SEARCH.few_starts
        return [self.pick(slice(i, i + size)) for i in range(0, len(self.gain), size)]


def joint_starts(
    rows: Rows,
    subspace: Subspace | None,
    components: int,
    rng: np.random.Generator,
    *,
    starts: int,
    lift: int = 2,
    n_jobs: int | None = None,
) -> list[Parameters]:
    """Return the best few mixtures of ``components`` found in the subspace, in all features.

    Starts run in groups of fixed size, side by side if ``n_jobs`` says so: the answer does not
    depend on it.
    """
    d = rows.features.shape[1]
    basis = np.eye(d) if subspace is None else subspace.basis
    # More rows only cost time at this stage.
    limit = SEARCH.rows_per_coefficient * components * (basis.shape[1] + 1)
    sample = rows
    if rows.n > limit:
        sample = rows.take(rng.choice(rows.n, limit, replace=False))
    projected = sample.features @ basis
    if rows.intercept:
        projected = np.hstack([np.ones((sample.n, 1)), projected])
    table = _Projected(projected, sample)
    field = table.draw(components, starts, rng)
    jobs = int(effective_n_jobs(n_jobs))
    with fitting_threads(basis.shape[1]), Parallel(n_jobs=jobs, prefer="threads") as pool:
        for stage, rounds in enumerate(SEARCH.joint_rounds):
            groups, rounds = field.groups(), 1 if late() else rounds
            if jobs == 1 or len(groups) == 1:
                groups = [table.run(group, rounds) for group in groups]
            else:
                groups = pool(delayed(table.run)(group, rounds) for group in groups)
            field = _Field(*(np.concatenate(part) for part in zip(*groups, strict=True)))
            if stage < len(SEARCH.joint_survivors):
                left = int(np.ceil(SEARCH.joint_survivors[stage] * len(field.gain)))
                field = field.best(max(lift, left))
    field = field.best(lift)
    return [_lift(rows, basis, field, b) for b in range(len(field.gain))]


class _Projected:
    """Projected rows with their products: a round of all starts is three matrix products."""

    def __init__(self, design: Floats, rows: Rows) -> None:
        # Single precision: rows farther away would leave no digits to the others.
        design, y = (np.clip(v, -SEARCH.reach, SEARCH.reach) for v in (design, rows.y))
        weights = rows.weights
        self.design = design.astype(np.float32)
        self.y = y.astype(np.float32)
        self.weights = weights.astype(np.float32)
        self.mass = rows.mass
        self.log_background = rows.log_background.astype(np.float32)
        upper = np.triu_indices(design.shape[1])
        pairs = design[:, upper[0]] * design[:, upper[1]]
        # Where each product of two columns is among these.
        self.pairs = np.empty((design.shape[1],) * 2, dtype=np.intp)
        self.pairs[upper] = self.pairs.T[upper] = np.arange(upper[0].size)
        squares = (y * y)[:, None]
        products = [pairs, design * y[:, None], squares, np.ones_like(squares)]
        self.products = (np.hstack(products) * weights[:, None]).astype(np.float32)
        # Responses far out do not widen the first scale.
        cap = SEARCH.clip * float(np.median(np.abs(y)))
        self.spread = float(np.sqrt(np.average(np.minimum(y * y, cap * cap), weights=weights)))
        if self.spread < MODEL.smallest_noise:
            self.spread = 1.0  # all the same, up to rounding

    def draw(self, components: int, starts: int, rng: np.random.Generator) -> _Field:
        """Draw coefficients in random directions, whose predictions spread like the response."""
        r = self.design.shape[1]
        coef = rng.standard_normal((starts, components, r))
        coef *= self.spread / np.sqrt(r) * rng.uniform(0.7, 1.4, (starts, components, 1))
        return _Field(
            coef.astype(np.float32),
            np.full(starts, self.spread, dtype=np.float32),
            np.full((starts, components + 1), 1.0 / (components + 1), dtype=np.float32),
            np.zeros(starts, dtype=np.float32),
        )

    def run(self, field: _Field, rounds: int) -> _Field:
        """Run some rounds of EM for every start."""
        for _ in range(rounds):
            field = self.step(field)
        return field

    def step(self, field: _Field) -> _Field:
        """Run one round of EM for every start; the components of a start share one scale."""
        starts, components, r = field.coef.shape
        n = len(self.y)
        odds = np.empty((starts, components, n), np.float32)
        np.matmul(field.coef.reshape(-1, r), self.design.T, out=odds.reshape(-1, n))
        odds -= self.y
        with np.errstate(over="ignore"):  # the odds of a row infinitely far away are zero
            np.square(odds, out=odds)
            odds *= (-0.5 / field.scale**2)[:, None, None]
        height = np.log(field.share[:, :-1]) - np.log(field.scale)[:, None]
        odds += (height - np.float32(LOG_ROOT_2PI))[:, :, None]
        odds -= self.log_background
        floor = np.log(field.share[:, -1])[:, None]
        top = np.maximum(odds.max(axis=1), floor)
        odds -= top[:, None, :]
        np.exp(odds, out=odds)
        total = odds.sum(axis=1) + np.exp(floor - top)
        odds /= total[:, None, :]
        gain = (np.log(total) + top) @ self.weights
        moments = (odds.reshape(-1, n) @ self.products).reshape(starts, components, -1)
        return self._solve(moments.astype(np.float64), r, gain)

    def _solve(self, moments: Floats, r: int, gain: Singles) -> _Field:
        """Solve all normal equations; update scales and shares."""
        k = moments.shape[-1] - r - 2
        gram, size = moments[..., self.pairs], moments[..., -1]
        inside = np.arange(r)
        # The ridge is not lost beside the squares of far rows.
        trace = gram[..., inside, inside].sum(axis=-1)
        ridge = np.maximum(size + 1.0, trace / (r * SEARCH.reach))
        gram[..., inside, inside] += MODEL.gram_rounding * ridge[..., None]
        cross = moments[..., k : k + r]
        coef = np.linalg.solve(gram, cross[..., None])[..., 0]
        # Single precision ends somewhere.
        coef = np.minimum(np.maximum(coef, -MODEL.farthest), MODEL.farthest)
        loss = moments[..., -2] - (coef * cross).sum(axis=-1)
        held = size.sum(axis=1)
        spare = np.maximum(held - r * size.shape[1], 0.2 * held)
        scale = np.sqrt(np.maximum(loss.sum(axis=1), 0.0) / np.maximum(spare, 1.0))
        scale = np.minimum(np.maximum(scale, MODEL.smallest_noise * self.spread), MODEL.farthest)
        share = np.concatenate([size, self.mass - held[:, None]], axis=1)
        share = np.minimum(
            np.maximum(share, 1.0) / self.mass, 1.0
        )  # rows may weigh next to nothing
        return _Field(
            coef.astype(np.float32), scale.astype(np.float32), share.astype(np.float32), gain
        )


def _lift(rows: Rows, basis: Floats, field: _Field, b: int) -> Parameters:
    """Turn one projected mixture into a model of all features."""
    coef = field.coef[b].astype(np.float64)
    first = int(rows.intercept)
    full = np.zeros((len(coef), rows.width))
    full[:, :first] = coef[:, :first]
    full[:, first:] = coef[:, first:] @ basis.T
    scale = np.full(len(coef), float(field.scale[b]))
    return Parameters.point(
        full, scale, field.share[b, :-1].astype(np.float64), ("joint",) * len(coef)
    )
