"""V(Δ) of Definition 3 (``def:affine``) over all directions, with certified bounds.

The definition takes the largest V over directions v₁, v₂ with ‖v₁‖/‖v₂‖ = Δ such that the
(V + slack)-th largest |X_(j)v₁| is at least the V-th smallest |X_(−j)v₂|
(``theory.affine_error_at`` computes V for given directions). The two directions are free of each
other, so with

- α(r), the largest r-th largest |x·v| over own rows x and unit vectors v,
- β(r), the smallest r-th smallest |x·v| over other rows,

V(Δ) is the largest V with Δ·α(V + slack) ≥ β(V). Both are searched once, for all r, and serve every
Δ. What a direction attains bounds V(Δ) from below. From above:

- cells of the unit sphere (``theory.directions``; up to six features): within a chord ε of a
  direction v, |x·v| changes by at most ε‖x‖, row by row;
- fourth moments (``theory.directions``): r values of at least α have squares that add up to at
  most kc + √(kF(c)) with k = r, so α² ≤ c + √(F(c)/r); and β² ≥ c − √(F(c)/r) likewise;
- the r-th largest length of an own row bounds α(r).

With several groups of other rows, the best directions of each are found apart, and their values
merged: β(V) is the V-th smallest of all.

**The floor.** Some direction is orthogonal to any d − 1 other rows, so V(Δ) ≥ d − 1 for every Δ > 0
(with enough rows; (m − 1)(d − 1) with one direction for each group). Lemma 6 states c·log n there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regimix.errors import read_count
from regimix.theory.definitions import largest_count, positive, row_groups
from regimix.theory.directions import (
    MOST_CELL_FEATURES,
    MOST_MOMENT_FEATURES,
    Cells,
    FourthMoments,
    cover,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["AffineCurve", "AffineError", "affine_curve", "envelope"]

Floats = NDArray[np.float64]

# Ranks at which directions are improved one by one; others share what is found there.
RANKS = 12
# Random starts for each rank, and rounds of improvement.
STARTS, ROUNDS = 4, 15
# Annealing: starts in few and in many dimensions, widths on the way, the widest in units of a
# typical value. Eighty widths find a seventh more rows than forty (n = 8,000, d = 20).
COOLED_STARTS, FEW_COOLED_STARTS, WIDTHS, WIDEST = 200, 12, 80, 0.5
# In few dimensions so many rows, over all starts, are looked at for each width.
COOLED_ROWS = 200_000
# Values below this share of the longest row are zero up to rounding.
ZERO = 1e-12
# A difference beyond this share is no rounding, but a wrong certificate.
WRONG = 1e-7
# Numbers that are sorted at a time.
BATCH_NUMBERS = 2_000_000


@dataclass(frozen=True)
class AffineError:
    """V(Δ) for one Δ: what a search found, and what is certainly not exceeded.

    Attributes
    ----------
    delta : float
    lower : int
        Attained by the directions below, so V(Δ) is at least that.
    upper : int
        V(Δ) is at most that.
    own_direction : ndarray of shape (d,)
        v₁, of length Δ.
    other_directions : ndarray of shape (groups, d)
        v₂, of length one, for each group of other rows.
    """

    delta: float
    lower: int
    upper: int
    own_direction: Floats
    other_directions: Floats


@dataclass(frozen=True, eq=False)
class AffineCurve:
    """V as a function of Δ (Definition 3): call it with a number to get an ``AffineError``.

    Attributes
    ----------
    n_own, n_others, slack : int
        Own and other rows, and how many own rows are left out in any case.
    """

    n_own: int
    n_others: int
    slack: int
    _own: Envelope
    _others: tuple[Envelope, ...]

    def __call__(self, delta: float) -> AffineError:
        """Bound V(Δ) from both sides, for Δ above 0; the paper needs it up to 1."""
        delta = positive("delta", delta)
        found = np.concatenate([other.found for other in self._others])
        certain = np.concatenate([other.certain for other in self._others])
        lower = largest_count(delta * self._own.found, np.sort(found), self.slack)
        upper = largest_count(delta * self._own.certain, np.sort(certain), self.slack)
        edge = np.sort(found)[max(lower, 1) - 1] if found.size else 0.0
        directions = []
        for other in self._others:
            inside = int(np.count_nonzero(other.found <= edge))
            directions.append(other.direction[max(inside, 1) - 1])
        place = min(max(lower + self.slack, 1), self.n_own) - 1
        return AffineError(
            delta, lower, upper, delta * self._own.direction[place], np.array(directions)
        )


def affine_curve(
    own: ArrayLike,
    others: ArrayLike | Sequence[ArrayLike],
    *,
    slack: int = 0,
    most_directions: int = 4000,
    random_state: int = 0,
) -> AffineCurve:
    """Search directions once for V(Δ) (Definition 3, ``def:affine``) at every Δ.

    For the largest over components j, as the definition has it, take the largest of their curves;
    Theorem 4 needs that of its own component only.

    Parameters
    ----------
    own, others, slack
        As for ``theory.affine_error_at``.
    most_directions : int
        Directions that are tried for all ranks; up to six features they cover the sphere and
        certify the upper bound.
    random_state : int
        Seed of the directions.

    Returns
    -------
    AffineCurve
    """
    rows, groups = row_groups(own, others)
    rng = np.random.default_rng(random_state)
    most = read_count("most_directions", most_directions, 1)
    return AffineCurve(
        n_own=len(rows),
        n_others=sum(map(len, groups)),
        slack=read_count("slack", slack, 0),
        _own=envelope(rows, most, rng, largest=True),
        _others=tuple(envelope(group, most, rng, largest=False) for group in groups),
    )


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
    if d <= MOST_CELL_FEATURES:
        cells = cover(d, most)
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


def _beyond_cells(rows: Floats, lengths: Floats, cells: Cells, *, largest: bool) -> Floats:
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
    fourth = FourthMoments(rows) if d <= MOST_MOMENT_FEATURES else None
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
    return np.array(found) if largest else np.concatenate([found, _cooled(rows, rng)])


def _cooled(rows: Floats, rng: np.random.Generator) -> Floats:
    """Search for directions along which many rows are nearly zero, by annealing.

    Rows have weights exp(−(x·v)²/2s²), and v becomes the eigenvector of their smallest eigenvalue,
    while the width s falls. Taking turns between the nearest rows and their eigenvector, as above,
    stops at the first set of rows that holds itself: it finds 46 rows within d/n where this finds
    79 (8,000 normal rows, d = 20).
    """
    n, d = rows.shape
    unit = float(np.sqrt(np.mean(rows**2)))
    if unit == 0:
        return np.eye(d)[:1]
    starts = FEW_COOLED_STARTS
    if d <= MOST_CELL_FEATURES:
        starts = min(COOLED_STARTS, max(starts, COOLED_ROWS // n))
    now = rng.standard_normal((starts, d))
    now /= np.linalg.norm(now, axis=1, keepdims=True)
    found = []
    for width in unit * np.geomspace(WIDEST, min(d / (3 * n), WIDEST), WIDTHS):
        near = np.exp(-0.5 * np.square(now @ rows.T / width))
        grams = np.stack([(rows * weight[:, None]).T @ rows for weight in near])
        now = np.linalg.eigh(grams)[1][:, :, 0]
        found.append(now)
    return np.concatenate(found)


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
