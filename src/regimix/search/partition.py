"""The plain fit of K regimes, no row left out: each row belongs to the regime that is nearest.

With ``search="partition"`` nothing is left to be found but the regimes: those
from which the rows are least far, by the sum of squares. Assigning rows and refitting in turns only
goes downhill, into one of many valleys. So it is done from the answer of the search, from random
starts, and from the best of those with some of the rows reassigned at random.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Engine, RowSums
from regimix.model.blocks import Labelling, Law, labelled_sums, nearest
from regimix.model.em import Fitted, Parameters, evaluate
from regimix.model.labelling import Nearest
from regimix.model.polish import SMALLEST_SCALE
from regimix.model.rows import Rows
from regimix.search.settings import Settings
from regimix.trimmed.ilts import NormalEquations

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

__all__ = [
    "affordable",
    "assign_nearest",
    "label_starts",
    "nearest_regimes",
    "plain_count",
    "weighted_fits",
]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

# Random starts of each kind, for each regime after the first, up to a limit; then rounds of as many
# near the best so far, until so many bring nothing.
STARTS, MOST_STARTS = 30, 150
FRUITLESS_ROUNDS = 5
MOST_ROUNDS = 20
# Of the best so far, this many are shaken, and up to this share of the rows reassigned.
ELITE = 5
LARGEST_SHAKE = 0.4
# Starts see at most so many rows (and so many for each coefficient); their best sees all.
START_ROWS = 2000
START_ROWS_PER_COEFFICIENT = 5
# Products in a turn of all starts: with hundreds of columns only the search's answer is pursued.
LARGEST_TURN = 100_000_000
# Squared residuals of a kind of starts that are held at a time.
MOST_SQUARES = 4_000_000
# Sums of squares that agree so far are those of the same regimes.
SAME = 1e-9
# Turns of assigning and refitting; few starts need as many as fifty.
TURNS = 200
# On all rows, this share of them may still move: one of 100,000.
SETTLED = 1e-5
# Numbers of the weighted copies of the rows that are held at a time.
BATCH_NUMBERS = 1_000_000
# Of the mean diagonal: keeps the equations of a regime without rows solvable.
RIDGE = 1e-10


def plain_count(settings: Settings) -> int | None:
    """Return how many regimes are to hold every row; None where that was not asked for."""
    return settings.n_components if settings.search == "partition" else None


def nearest_regimes(rows: Rows, model: Parameters, count: int, seed: int) -> Fitted:
    """Find the regimes with the least sum of squares over each row's nearest one.

    Parameters
    ----------
    model : Parameters
        What the search found: one of the starts, if it has as many components.
    count : int
        Number of regimes.
    """
    rng = np.random.default_rng(seed)
    most = max(START_ROWS, START_ROWS_PER_COEFFICIENT * count * rows.width)
    part = rows if rows.n <= most else rows.take(rng.choice(rows.n, most, replace=False))
    n_starts = max(affordable(part, count), int(model.m != count))
    starts = weighted_fits(part, label_starts(part, count, n_starts, rng), count)
    if model.m == count:
        starts = np.concatenate([starts, model.coef[None]])
    coef, total = _best(*_descend(part, starts))
    fruitless = 0
    for _ in range(MOST_ROUNDS if n_starts else 0):
        before = float(total[0])
        shaken = weighted_fits(part, _shaken(part, coef, n_starts, rng), count)
        tried = _descend(part, shaken)
        coef, total = _best(np.concatenate([coef, tried[0]]), np.append(total, tried[1]))
        fruitless = 0 if float(total[0]) < before * (1 - SAME) else fruitless + 1
        if fruitless == FRUITLESS_ROUNDS:
            break
    if part is not rows:
        coef = _best(*_descend(rows, coef))[0]
    return _fitted(rows, coef[0])


def affordable(rows: Rows, count: int) -> int:
    """Return how many starts of each kind are worth their while."""
    wanted = min(STARTS * max(1, count - 1), MOST_STARTS)
    squares = count * rows.n
    return min(wanted, LARGEST_TURN // (squares * rows.width**2), MOST_SQUARES // squares)


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
    for _ in range(TURNS):
        squares = _squares(rows, coef[moving])
        now = squares.argmin(axis=1)
        total[moving] = squares.min(axis=1) @ rows.weights
        moved = (now != labels[moving]).any(axis=1)
        labels[moving], moving = now, moving[moved]
        if not moving.size:
            break
        coef[moving] = weighted_fits(rows, labels[moving], coef.shape[1])
    return coef, total


def _squares(rows: Rows, coef: Floats) -> Floats:
    """Squared residuals of every row at every regime of every start, (starts, count, n)."""
    residuals = rows.y - coef @ rows.design.T
    return np.square(residuals, out=residuals)


def weighted_fits(rows: Rows, labels: Labels, count: int) -> Floats:
    """Fit each regime of each start to the rows that carry its label, (starts, count, width)."""
    design, width = rows.design, rows.width
    coef = np.empty((len(labels), count, width))
    ridge = RIDGE * np.eye(width) * float(rows.weights @ np.square(design).mean(axis=1))
    step = max(1, BATCH_NUMBERS // (count * design.size))
    for first in range(0, len(labels), step):
        some = labels[first : first + step]
        member = (some[:, None, :] == np.arange(count)[:, None]) * rows.weights
        weighted = member[:, :, None, :] * design.T
        moment = weighted @ rows.y
        coef[first : first + step] = np.linalg.solve(weighted @ design + ridge, moment[..., None])[
            ..., 0
        ]
    return coef


def _shaken(rows: Rows, coef: Floats, n: int, rng: np.random.Generator) -> Labels:
    """Label rows by some of the best regimes, then reassign some rows at random."""
    count = coef.shape[1]
    elite = coef[:ELITE]
    nearest = _squares(rows, elite).argmin(axis=1)[np.arange(n) % len(elite)]
    share = rng.uniform(0, LARGEST_SHAKE, (n, 1))
    anywhere = rng.integers(count, size=nearest.shape)
    return np.asarray(np.where(rng.random(nearest.shape) < share, anywhere, nearest))


def _best(coef: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Keep the best answers, each once, in order."""
    order = np.argsort(total, kind="stable")
    new = np.append(True, np.diff(total[order]) > SAME * total[order[:-1]])
    chosen = order[new][:ELITE]
    return coef[chosen], total[chosen]


def _fitted(rows: Rows, coef: Floats) -> Fitted:
    """Make a model of regimes: noise and shares are those of the rows nearest to each."""
    squares = _squares(rows, coef[None])[0]
    member = (squares.argmin(axis=0) == np.arange(len(coef))[:, None]) * rows.weights
    size = member.sum(axis=1)
    spare = np.maximum(size - rows.width, 1.0)
    scale = np.sqrt(np.einsum("jn,jn->j", member, squares) / spare)
    share = np.maximum(size, 1.0) / rows.mass
    origin = ("nearest",) * len(coef)
    scale = np.maximum(scale, rows.smallest_scale)
    return evaluate(rows, Parameters.point(coef, scale, share / share.sum(), origin))


def assign_nearest(engine: Engine, law: Law) -> tuple[Law, Labelling]:
    """Assign all rows to their nearest regimes and refit, until hardly a row moves."""
    frame, m = engine.problem, len(law.scale)
    # Of equal noise and size, the likeliest regime is the nearest.
    alike = replace(law, scale=np.ones(m), share=np.full(m, 1 / m))
    found = labelled_sums(engine, alike, Nearest(alike))
    for _ in range(TURNS):
        before = alike
        thetas = [_refit(theta, found.sums[j]) for j, theta in enumerate(alike.thetas)]
        alike = replace(alike, thetas=np.stack(thetas))
        found = labelled_sums(engine, alike, Nearest(alike))
        if engine.fold(_moved, before, alike) <= SETTLED * frame.n_rows:
            break
    spare = np.maximum(found.size - frame.n_columns, 1.0)
    scale = np.maximum(np.sqrt(found.square / spare), SMALLEST_SCALE)
    share = found.size / frame.mass
    final = replace(alike, scale=scale, share=share, log_background=-np.inf, width=np.inf)
    return final, Nearest(alike)


def _refit(theta: Floats, sums: RowSums) -> Floats:
    """Fit a regime to its rows; one without rows stays as it is."""
    normal = NormalEquations(theta.size)
    normal.refresh(sums)
    return normal.solve(theta)[0]


def _moved(block: MemoryEngine, before: Law, now: Law) -> int:
    """Count the rows of a block that change their regime."""
    return int(np.count_nonzero(nearest(block, before)[0] != nearest(block, now)[0]))
