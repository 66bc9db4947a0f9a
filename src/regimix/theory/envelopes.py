"""The extreme r-th value |x·v| of rows x over directions v, for every rank r at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.theory import moments, sphere
from regimix.theory.moments import FourthMoments

__all__ = ["Envelope", "envelope"]

Floats = NDArray[np.float64]

# Ranks at which directions are improved one by one; others share what is found there.
RANKS = 12
# Random starts for each rank, and rounds of improvement.
STARTS, ROUNDS = 4, 15
# Values below this share of the longest row are zero up to rounding.
ZERO = 1e-12
# A difference beyond this share is no rounding, but a wrong certificate.
WRONG = 1e-7
# Numbers that are sorted at a time.
BATCH_NUMBERS = 2_000_000


@dataclass(frozen=True, eq=False)
class Envelope:
    """The extreme of the r-th value over directions, for every rank r (from the first).

    Attributes
    ----------
    found, direction : ndarray of shape (n,), (n, d)
        Attained, and by which direction.
    certain : ndarray of shape (n,)
        No direction goes beyond.
    """

    found: Floats
    direction: Floats
    certain: Floats


def envelope(rows: Floats, most: int, rng: np.random.Generator, *, largest: bool) -> Envelope:
    """Find the extreme r-th largest (or smallest) |x·v| over directions v, for every r.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    most : int
        Directions that are tried; in few dimensions they cover the sphere.
    largest : bool
        Whether the largest r-th largest value is wanted, or the smallest r-th smallest.
    """
    n, d = rows.shape
    if n == 0:
        return Envelope(np.empty(0), np.empty((0, d)), np.empty(0))
    lengths = np.linalg.norm(rows, axis=1)
    certain = _without_cells(rows, lengths, largest=largest)
    improved = _improved(rows, rng, largest=largest)
    if d <= sphere.MOST_DIMENSIONS:
        cells = sphere.cover(d, most)
        tried = np.concatenate([cells.directions(), improved])
        reach = _beyond_cells(rows, lengths, cells, largest=largest)
        certain = np.minimum(certain, reach) if largest else np.maximum(certain, reach)
    else:
        tried = np.concatenate([rng.standard_normal((most, d)), improved])
    found, direction = _attained(rows, tried, largest=largest)
    found[found <= ZERO * lengths.max()] = 0.0
    # What is attained is no further than what is certain, up to rounding.
    excess = found - certain if largest else certain - found
    assert excess.max() <= WRONG * lengths.max()
    certain = np.maximum(certain, found) if largest else np.minimum(certain, found)
    return Envelope(found, direction, certain)


def _attained(rows: Floats, tried: Floats, *, largest: bool) -> tuple[Floats, Floats]:
    """Return the most extreme value of every rank, and the direction that attains it."""
    n, d = rows.shape
    sign = -1.0 if largest else 1.0  # signed so that smaller is more extreme
    found, direction = np.full(n, np.inf), np.zeros((n, d))
    step = max(1, BATCH_NUMBERS // n)
    for first in range(0, len(tried), step):
        part = tried[first : first + step]
        part = part / np.linalg.norm(part, axis=1, keepdims=True)
        ordered = np.sort(sign * np.abs(part @ rows.T), axis=1)
        best = np.argmin(ordered, axis=0)
        values = ordered[best, np.arange(n)]
        better = values < found
        found[better], direction[better] = values[better], part[best[better]]
    return sign * found, direction


def _beyond_cells(rows: Floats, lengths: Floats, cells: sphere.Cells, *, largest: bool) -> Floats:
    """Bound every rank over all directions: within a chord, |x·v| moves by at most chord·‖x‖."""
    sign = -1.0 if largest else 1.0
    bound = np.full(len(rows), np.inf)
    step = max(1, BATCH_NUMBERS // len(rows))
    for first in range(0, len(cells), step):
        part = cells.take(slice(first, first + step))
        reach = np.abs(part.directions() @ rows.T) - sign * part.chords()[:, None] * lengths
        bound = np.minimum(bound, np.sort(sign * np.maximum(reach, 0.0), axis=1).min(axis=0))
    return sign * bound


def _without_cells(rows: Floats, lengths: Floats, *, largest: bool) -> Floats:
    """Bound the r-th value for every r by lengths and fourth moments."""
    n, d = rows.shape
    ranks = range(1, n + 1)
    fourth = FourthMoments(rows) if d <= moments.MOST_FEATURES else None
    if largest:
        bound = np.sort(lengths)[::-1]
        if fourth is not None:
            means = np.array([fourth.largest_sum(k) / k for k in ranks])
            bound = np.minimum(bound, np.sqrt(means))
        return np.asarray(np.minimum.accumulate(bound))
    if fourth is None:
        return np.zeros(n)
    means = np.array([fourth.smallest_sum(k) / k for k in ranks])
    return np.asarray(np.maximum.accumulate(np.sqrt(means)))


def _improved(rows: Floats, rng: np.random.Generator, *, largest: bool) -> Floats:
    """Improve directions for a few ranks by turns: extreme rows, then their extreme eigenvector."""
    n, d = rows.shape
    found = []
    for rank in np.unique(np.geomspace(1, n, RANKS).astype(int)):
        for _ in range(STARTS):
            start: Floats = rng.standard_normal((1, d))[0]
            if not largest and 1 < d <= n + 1:
                # Along the normal of d - 1 rows, those rows' values are zero.
                start = np.linalg.svd(rows[rng.choice(n, d - 1, replace=False)])[2][-1]
                found.append(start)
            found.append(_turned(rows, start, int(rank), largest=largest))
    return np.array(found)


def _turned(rows: Floats, direction: Floats, rank: int, *, largest: bool) -> Floats:
    """Turn a direction towards the rows that are extreme along it, again and again."""
    for _ in range(ROUNDS):
        squares = (rows @ direction) ** 2
        extreme = rows[np.argpartition(-squares if largest else squares, rank - 1)[:rank]]
        turned = np.linalg.eigh(extreme.T @ extreme)[1][:, -1 if largest else 0]
        if abs(turned @ direction) > (1 - ZERO) * np.linalg.norm(direction):
            break
        direction = turned
    return direction
