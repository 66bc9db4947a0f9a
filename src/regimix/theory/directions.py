"""Bounds that hold for all directions v at once: cells of the unit sphere, and fourth moments.

**Cells.** A function of a direction that does not depend on its sign is known everywhere once it is
known on d faces of the cube [-1, 1]^d, one per coordinate, seen from the centre. Each face is cut
into small cubes. The directions of one cube lie within a known chord of that of its middle, so a
function that cannot change much within a chord has a ceiling on the whole cube. Cubes whose ceiling
is below the best value found are done, the others are cut again (branch and bound).

**Fourth moments.** For squares s_i = (x_i·v)² along a unit vector v and any number c, Cauchy's
inequality gives

- the k largest add up to at most kc + √(k F(c)),
- the k smallest add up to at least kc − √(k F(c)),

with F(c) = max over v of Σ_i (s_i − c)². That sum is the quadratic form of a matrix at the tensor
v⊗v, so a largest eigenvalue bounds it; and since v⊗v has trace one, any multiple of "trace squared
minus one" may be subtracted first, which makes the bound sharp for Gaussian rows (F(0) = 3n).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

Floats = NDArray[np.float64]
# Values in the middle of cells, and ceilings on all of each cell, from directions and chords.
Evaluate = Callable[[Floats, Floats], tuple[Floats, Floats]]

# Beyond, a cube has too many halves and a sphere too many cubes for a useful certificate.
MOST_CELL_FEATURES = 6
# Cells that are evaluated together.
BATCH = 2048
# The matrix of fourth moments has d(d + 1)/2 rows: 300 at this many features.
MOST_MOMENT_FEATURES = 24
# Largest eigenvalues that are computed to bound one F(c).
EVALUATIONS = 15
# Rows whose tensors are made at a time.
CHUNK = 4096
# Centres c that are tried, in units of the mean square; any would give a valid bound.
CENTRES = (0.0, 0.25, 0.5, 1.0, 4.0)


@dataclass(frozen=True)
class Cells:
    """Cubes on faces of the cube [-1, 1]^d."""

    face: NDArray[np.intp]  # (c,), the coordinate that is one
    middle: Floats  # (c, d - 1), the other coordinates, in order
    half: float  # half the side of every cube

    def __len__(self) -> int:
        return len(self.face)

    def take(self, index: NDArray[np.intp] | slice) -> Cells:
        """Return some of the cells."""
        return Cells(self.face[index], self.middle[index], self.half)

    def directions(self) -> Floats:
        """Return the unit vectors through the middles, (c, d)."""
        d = self.middle.shape[1] + 1
        points = np.ones((len(self), d))
        others = np.arange(d - 1) + (np.arange(d - 1) >= self.face[:, None])
        np.put_along_axis(points, others, self.middle, axis=1)
        return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))

    def chords(self) -> Floats:
        """Bound the distance of the unit vectors of each cell from that of its middle, (c,).

        Points of norm r or more lose no more than the factor r in distance when they are brought
        to the unit sphere: projecting on a ball shortens distances.
        """
        nearest = np.maximum(np.abs(self.middle) - self.half, 0.0)
        shortest = np.sqrt(1.0 + np.einsum("ij,ij->i", nearest, nearest))
        return np.asarray(self.half * np.sqrt(self.middle.shape[1]) / shortest)

    def split(self) -> Cells:
        """Cut every cell into 2^(d - 1) of half the side."""
        free = self.middle.shape[1]
        corners = np.array(list(product((-0.5, 0.5), repeat=free))).reshape(2**free, free)
        face = np.repeat(self.face, len(corners))
        middle = (self.middle[:, None, :] + self.half * corners).reshape(len(face), free)
        return Cells(face, middle, self.half / 2)


@dataclass(frozen=True)
class Extreme:
    """A maximum over directions."""

    value: float  # attained by ``direction``
    ceiling: float  # no direction exceeds it
    direction: Floats  # (d,)


def cover(dimensions: int, most: int) -> Cells:
    """Cut the sphere into at most so many cells of equal side (at least one per face)."""
    cells = Cells(np.arange(dimensions), np.zeros((dimensions, dimensions - 1)), 1.0)
    if dimensions == 1:
        return cells
    per_axis = max(1, int((most / dimensions) ** (1 / (dimensions - 1))))
    line = (2 * np.arange(per_axis) + 1) / per_axis - 1
    grid = np.stack(np.meshgrid(*[line] * (dimensions - 1), indexing="ij"), axis=-1)
    middle = np.tile(grid.reshape(-1, dimensions - 1), (dimensions, 1))
    return Cells(np.repeat(np.arange(dimensions), len(middle) // dimensions), middle, 1 / per_axis)


def maximise(evaluate: Evaluate, dimensions: int, *, tolerance: float, most: int) -> Extreme:
    """Maximise a function of directions that does not depend on their sign.

    ``evaluate`` maps directions (c, d) and chords (c,) to values there, and to ceilings for all
    directions within the chord of each. Stop when the ceiling exceeds the best value by the
    tolerance or less, or when about ``most`` directions have been evaluated.
    """
    best = Extreme(-np.inf, np.inf, np.eye(dimensions)[0])
    cells, done = cover(dimensions, min(most, 64 * dimensions)), -np.inf
    spent = 0
    while True:
        parts = [cells.take(slice(at, at + BATCH)) for at in range(0, len(cells), BATCH)]
        found = [evaluate(part.directions(), part.chords()) for part in parts]
        values, ceilings = (np.concatenate(side) for side in zip(*found, strict=True))
        spent += len(cells)
        top = int(np.argmax(values))
        if values[top] > best.value:
            best = Extreme(float(values[top]), np.inf, cells.directions()[top])
        # Cells that cannot matter are done; so are those that the budget does not reach.
        order = np.argsort(-ceilings, kind="stable")
        order = order[ceilings[order] > best.value + tolerance]
        within = max(0, most - spent) // 2 ** (dimensions - 1)
        reached, left = order[:within], order[within:]
        done = max(done, float(ceilings[left].max(initial=-np.inf)))
        if not reached.size or dimensions == 1:
            open_ = max(done, float(ceilings[reached].max(initial=-np.inf)))
            bound = max(open_, best.value + (tolerance if dimensions > 1 else 0.0))
            return Extreme(best.value, bound, best.direction)
        cells = cells.take(reached).split()


class FourthMoments:
    """Certified bounds on sums of extreme squares, from the fourth moments of rows (n, d)."""

    def __init__(self, X: Floats) -> None:
        self.n, d = X.shape
        self._entries = first, second = np.triu_indices(d)
        self._trace = (first == second).astype(np.float64)
        # Off the diagonal, x_a x_b stands for two entries of the tensor.
        self._weight = np.where(first == second, 1.0, np.sqrt(2.0))
        self._fourth = np.zeros((first.size, first.size))
        for start in range(0, self.n, CHUNK):
            rows = X[start : start + CHUNK]
            tensors = rows[:, first] * rows[:, second] * self._weight
            self._fourth += tensors.T @ tensors
        self._second = (X.T @ X)[first, second] * self._weight
        mean = float(self._second @ self._trace) / (self.n * d)
        self._mean = max(mean, np.finfo(np.float64).tiny)
        self._centres: list[float] = [c * self._mean for c in CENTRES]
        self._bounds: dict[float, float] = {}

    def spread(self, centre: float) -> float:
        """Bound F(c), the largest Σ_i ((x_i·v)² − c)² over unit vectors v."""
        if centre not in self._bounds:
            mixed = centre * np.outer(self._second, self._trace)
            matrix = self._fourth - mixed - mixed.T
            # On tensors v⊗v the trace form is one, so α comes back whole. Any α will do.
            outer = np.outer(self._trace, self._trace)

            def bound(alpha: float) -> float:
                # All of them: asked for one among equals, LAPACK may fail.
                return float(np.linalg.eigvalsh(matrix - alpha * outer)[-1]) + alpha

            scale = float(np.trace(matrix)) / len(matrix) * self._trace.sum()
            width = abs(scale) + self.n * self._mean**2
            ends, few = (-2 * width, 4 * width), {"maxiter": EVALUATIONS}
            found = minimize_scalar(bound, bounds=ends, method="bounded", options=few)
            self._bounds[centre] = max(0.0, float(found.fun) + self.n * centre**2)
        return self._bounds[centre]

    def largest_sum(self, k: int) -> float:
        """Bound the sum of the k largest squares along any unit vector from above."""
        return min(k * c + math.sqrt(k * self.spread(c)) for c in self._centres)

    def smallest_sum(self, k: int) -> float:
        """Bound the sum of the k smallest squares along any unit vector from below."""
        return max(0.0, *(k * c - math.sqrt(k * self.spread(c)) for c in self._centres))

    def heaviest_directions(self) -> Floats:
        """Find unit vectors along which fourth moments are large, as columns (d, directions).

        The tensors of largest form are not of the shape v⊗v; their eigenvectors are near.
        """
        d = int(self._trace.sum())
        found = [np.eye(d)]
        for vector in np.linalg.eigh(self._fourth)[1][:, -2 * d :].T:
            tensor = np.zeros((d, d))
            tensor[self._entries] = vector / self._weight
            found.append(np.linalg.eigh(tensor, UPLO="U")[1][:, [0, -1]])
        return np.hstack(found)
