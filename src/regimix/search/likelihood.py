"""Fits in which every row belongs to a regime: largest likelihood, or a hard partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Engine
from regimix.model.blocks import Law, labelled_sums, nearest
from regimix.model.em import LOG_ROOT_2PI, Parameters, late, normalise
from regimix.model.labelling import Nearest, label_squares
from regimix.model.numbers import MODEL
from regimix.model.rows import Rows
from regimix.search.numbers import SEARCH
from regimix.trimmed.ilts import solved

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]


def nearest_regimes(rows: Rows, model: Parameters, count: int, seed: int) -> Parameters:
    """Find the regimes with the least sum of squares over each row's nearest one.

    Parameters
    ----------
    model : Parameters
        What the search found: one of the starts, if it has as many components.
    count : int
        Number of regimes.
    """
    rng = np.random.default_rng(seed)
    most = max(SEARCH.first_rows, SEARCH.rows_per_coefficient * rows.width)
    part = rows if rows.n <= most else rows.take(rng.choice(rows.n, most, replace=False))
    n_starts = max(affordable(part, count), int(model.m != count))
    labels = label_starts(part, count, n_starts, rng)
    starts = model.coef[None] if model.m == count else np.empty((0, count, rows.width))
    if not late() or model.m != count:
        starts = np.concatenate([weighted_fits(part, labels, count), starts])
    coef, total = _best(*_descend(part, starts))
    fruitless = 0 if n_starts else SEARCH.promising
    while fruitless < SEARCH.promising and not late():
        before = float(total[0])
        shaken = weighted_fits(part, _shaken(part, coef, n_starts, rng), count)
        tried = _descend(part, shaken)
        coef, total = _best(np.concatenate([coef, tried[0]]), np.append(total, tried[1]))
        fruitless = 0 if float(total[0]) < before * (1 - MODEL.gram_rounding) else fruitless + 1
    if part is not rows:
        coef = _best(*_descend(rows, coef))[0]
    return _regimes(rows, coef[0])


def affordable(rows: Rows, count: int) -> int:
    """Return how many starts of each kind are worth their while."""
    # With hundreds of columns only the search's answer is pursued.
    wanted = SEARCH.starts * max(1, count - 1)
    return min(wanted, SEARCH.batch_numbers // (count * rows.n * rows.width))


def label_starts(rows: Rows, count: int, n: int, rng: np.random.Generator) -> Labels:
    """Label rows at random, in three ways; so many starts of each."""
    kinds = (_partitions, _few_rows, _slices)
    return np.concatenate([start(rows, count, n, rng) for start in kinds])


def _partitions(rows: Rows, count: int, n: int, rng: np.random.Generator) -> Labels:
    """Label all rows at random: regimes that start alike, and part where rows tell them to."""
    return rng.integers(count, size=(n, rows.n))


def _few_rows(rows: Rows, count: int, n: int, rng: np.random.Generator) -> Labels:
    """Label just enough rows to fix each regime, leaving out the rest: regimes far apart."""
    labels = np.full((n, rows.n), -1, dtype=np.intp)
    most = rows.n // count
    for start in labels:
        drawn = rng.permutation(rows.n)[: count * min(rows.width, most)]
        start[drawn] = np.arange(drawn.size) % count
    return labels


def _slices(rows: Rows, count: int, n: int, rng: np.random.Generator) -> Labels:
    """Label rows by where they lie in a random direction: regimes of different regions."""
    cloud = np.column_stack([rows.features, rows.y])
    along = rng.standard_normal((n, cloud.shape[1])) @ cloud.T
    rank = along.argsort(axis=1).argsort(axis=1) / rows.n
    cuts = np.sort(rng.uniform(size=(n, count - 1)), axis=1)
    return np.asarray((rank[:, None, :] >= cuts[:, :, None]).sum(axis=1), dtype=np.intp)


def _descend(rows: Rows, coef: Floats) -> tuple[Floats, Floats]:
    """Assign and refit (starts, count, width) until no row moves; return sums of squares too."""
    coef, total = coef.copy(), np.empty(len(coef))
    labels = np.full((len(coef), rows.n), -1, dtype=np.intp)
    moving = np.arange(len(coef))
    for _ in range(SEARCH.turns):
        squares = _squares(rows, coef[moving])
        now = squares.argmin(axis=1)
        total[moving] = squares.min(axis=1) @ rows.weights
        moved = (now != labels[moving]).any(axis=1)
        labels[moving], moving = now, moving[moved]
        if not moving.size or late():
            break
        fits = weighted_fits(rows, labels[moving], coef.shape[1])
        coef[moving[: len(fits)]] = fits
    return coef, total


def _squares(rows: Rows, coef: Floats) -> Floats:
    """Squared residuals of every row at every regime of every start, (starts, count, n)."""
    residuals = rows.y - coef @ rows.design.T
    return np.square(residuals, out=residuals)


def weighted_fits(rows: Rows, labels: Labels, count: int) -> Floats:
    """Fit each regime of each start to the rows that carry its label, (starts, count, width).

    After the deadline one start is enough.
    """
    design, width = rows.design, rows.width
    coef = np.empty((len(labels), count, width))
    size = MODEL.gram_rounding * float(rows.weights @ np.square(design).mean(axis=1))
    step = SEARCH.batch_numbers // (count * design.size)
    if not step:  # rows of a regime are fewer than all: that is worth a loop
        for i, some in enumerate(labels):
            if i and late():
                return coef[:i]
            for j in range(count):
                coef[i, j] = _ridge_fit(rows.take(np.flatnonzero(some == j)), size)
        return coef
    ridge = size * np.eye(width)
    for first in range(0, len(labels), step):
        if first and late():
            return coef[:first]
        some = labels[first : first + step]
        member = (some[:, None, :] == np.arange(count)[:, None]) * rows.weights
        weighted = member[:, :, None, :] * design.T
        moment = weighted @ rows.y
        coef[first : first + step] = np.linalg.solve(weighted @ design + ridge, moment[..., None])[
            ..., 0
        ]
    return coef


def _ridge_fit(rows: Rows, ridge: float) -> Floats:
    """Fit some rows with a ridge of given size; of few rows in the space that they span."""
    root = np.sqrt(rows.weights)
    block, response = rows.design * root[:, None], rows.y * root
    few = rows.n < rows.width
    gram = block @ block.T if few else block.T @ block
    gram.flat[:: len(gram) + 1] += ridge
    if few:
        return np.asarray(block.T @ np.linalg.solve(gram, response))
    return np.asarray(np.linalg.solve(gram, block.T @ response))


def _shaken(rows: Rows, coef: Floats, n: int, rng: np.random.Generator) -> Labels:
    """Label rows by some of the best regimes, then reassign some rows at random."""
    count = coef.shape[1]
    elite = coef[: SEARCH.promising]
    nearest = _squares(rows, elite).argmin(axis=1)[np.arange(n) % len(elite)]
    share = rng.uniform(0, 0.5, (n, 1))
    anywhere = rng.integers(count, size=nearest.shape)
    return np.asarray(np.where(rng.random(nearest.shape) < share, anywhere, nearest))


def _best(coef: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Keep the best answers, each once, in order."""
    order = np.argsort(total, kind="stable")
    new = np.append(True, np.diff(total[order]) > MODEL.gram_rounding * total[order[:-1]])
    chosen = order[new][: SEARCH.promising]
    return coef[chosen], total[chosen]


def _regimes(rows: Rows, coef: Floats) -> Parameters:
    """Make a model of regimes: noise and shares are those of the rows nearest to each."""
    squares = _squares(rows, coef[None])[0]
    member = (squares.argmin(axis=0) == np.arange(len(coef))[:, None]) * rows.weights
    size = member.sum(axis=1)
    spare = np.maximum(size - rows.width, 1.0)
    scale = np.sqrt(np.einsum("jn,jn->j", member, squares) / spare)
    share = np.maximum(size, 1.0) / rows.mass
    origin = ("nearest",) * len(coef)
    scale = np.maximum(scale, rows.smallest_scale)
    return Parameters.point(coef, scale, share / share.sum(), origin)


def assign_nearest(engine: Engine, law: Law) -> tuple[Law, Nearest]:
    """Assign all rows to their nearest regimes and refit, until hardly a row moves."""
    frame, m = engine.problem, len(law.scale)
    # Of equal noise and size, the likeliest regime is the nearest.
    alike = replace(law, scale=np.ones(m), share=np.full(m, 1 / m))
    for _ in range(SEARCH.turns):
        if late():
            break
        before, found = alike, labelled_sums(engine, alike, Nearest(alike))
        # A regime without rows stays as it is.
        thetas = [solved(found.sums[j], theta)[0] for j, theta in enumerate(alike.thetas)]
        alike = replace(alike, thetas=np.stack(thetas))
        if engine.fold(_moved, before, alike) <= SEARCH.converged * frame.n_rows:
            break
    size, square = engine.fold(label_squares, Nearest(alike), alike.thetas)
    spare = np.maximum(size - frame.n_columns, 1.0)
    scale = np.maximum(np.sqrt(square / spare), MODEL.smallest_noise)
    share = size / frame.mass
    final = replace(alike, scale=scale, share=share, log_background=-np.inf, width=np.inf)
    return final, Nearest(alike)


def _moved(block: MemoryEngine, before: Law, now: Law) -> int:
    """Count the rows of a block that change their regime."""
    return int(np.count_nonzero(nearest(block, before)[0] != nearest(block, now)[0]))


def most_likely(rows: Rows, found: Parameters, count: int, seed: int) -> Parameters:
    """Return the components of largest likelihood; the search's own are one of the starts."""
    if late():
        return found
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
    while len(field.coef) > SEARCH.promising:
        field.run(MODEL.rounds // 2)
        field.keep(max(len(field.coef) // 2, SEARCH.promising))
    field.run(SEARCH.turns)
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
        # Products of columns serve all starts, as long as they fit into memory.
        self.products: Floats | None = None
        if rows.n * len(self.upper[0]) <= SEARCH.batch_numbers:
            self.products = rows.design[:, self.upper[0]] * rows.design[:, self.upper[1]]

    def run(self, rounds: int) -> None:
        """Run EM for all starts, until none gains."""
        for _ in range(rounds):
            before = self.log_likelihood
            self._step()
            if late() or (self.log_likelihood - before < SEARCH.converged).all():
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
        gram = self._grams(member.reshape(starts * count, -1))
        moment = (member * rows.y) @ rows.design
        self.size = member.sum(axis=2)
        diagonal = np.arange(width)
        gram[:, diagonal, diagonal] += MODEL.gram_rounding * (self.size.reshape(-1, 1) + 1.0)
        solved = np.linalg.solve(gram, moment.reshape(starts * count, width, 1))
        self.coef = np.asarray(solved.reshape(starts, count, width))
        residual = rows.y - self.coef @ rows.design.T
        square = np.einsum("bjn,bjn->bj", member, residual**2)
        scale = np.sqrt(square / np.maximum(self.size, 1e-9))
        self.scale = np.maximum(scale, rows.smallest_scale)
        self.share = np.maximum(self.size / rows.mass, 1e-12)

    def _grams(self, member: Floats) -> Floats:
        """Sum products of columns over the rows of each component, (components, width, width)."""
        width = self.rows.width
        gram = np.empty((len(member), width, width))
        if self.products is not None:
            sums = member @ self.products
            gram[:, self.upper[0], self.upper[1]] = sums
            gram[:, self.upper[1], self.upper[0]] = sums
            return gram
        for j, weights in enumerate(member):
            some = np.flatnonzero(weights > MODEL.rounding)
            block = self.rows.design[some] * np.sqrt(weights[some])[:, None]
            gram[j] = block.T @ block
        return gram
