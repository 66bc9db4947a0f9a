"""Extremes over all directions, with a certificate: branch and bound on the unit sphere.

A function of a direction that does not care about its sign is known everywhere once it is known on
d faces of the cube [-1, 1]^d, one per coordinate, seen from the centre. Each face is cut into small
cubes. The directions of one cube lie within a known chord of that of its middle, so a function that
cannot change much within a chord has a ceiling on the whole cube; cubes whose ceiling is below the
best value found are done, the others are cut again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_DIMENSIONS", "Cells", "Extreme", "cover", "maximise"]

Floats = NDArray[np.float64]
# Values in the middle of cells, and ceilings on all of each cell, from directions and chords.
Evaluate = Callable[[Floats, Floats], tuple[Floats, Floats]]

# Beyond, a cube has too many halves and a sphere too many cubes for a useful certificate.
MOST_DIMENSIONS = 6
# Cells that are evaluated together.
BATCH = 2048


@dataclass(frozen=True)
class Cells:
    """Cubes on faces of the cube [-1, 1]^d.

    Attributes
    ----------
    face : ndarray of shape (c,), int
        The coordinate that is one.
    middle : ndarray of shape (c, d - 1)
        The other coordinates, in order.
    half : float
        Half the side of every cube.
    """

    face: NDArray[np.intp]
    middle: Floats
    half: float

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
        middle = (self.middle[:, None, :] + self.half * corners).reshape(
            len(self) * len(corners), free
        )
        return Cells(np.repeat(self.face, len(corners)), middle, self.half / 2)


@dataclass(frozen=True)
class Extreme:
    """A maximum over directions.

    Attributes
    ----------
    value : float
        Attained by ``direction``.
    ceiling : float
        No direction exceeds it.
    direction : ndarray of shape (d,)
    """

    value: float
    ceiling: float
    direction: Floats


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
    """Maximise a function of directions that does not care about sign.

    Parameters
    ----------
    evaluate : callable
        From directions (c, d) and chords (c,) to values there, and to ceilings for all directions
        within the chord of each.
    dimensions : int
    tolerance : float
        Stop when the ceiling exceeds the best value by this or less.
    most : int
        Evaluate about so many directions, no more.
    """
    best = Extreme(-np.inf, np.inf, np.eye(dimensions)[0])
    cells, done = cover(dimensions, min(most, 64 * dimensions)), -np.inf
    spent = 0
    while True:
        values, ceilings = _in_batches(evaluate, cells)
        spent += len(cells)
        top = int(np.argmax(values))
        if values[top] > best.value:
            best = Extreme(float(values[top]), np.inf, cells.directions()[top])
        # Cells that cannot matter are done; so are those that the budget does not reach.
        order = np.argsort(-ceilings, kind="stable")
        order = order[ceilings[order] > best.value + tolerance]
        room = max(0, most - spent) // 2 ** (dimensions - 1)
        reached, left = order[:room], order[room:]
        done = max(done, float(ceilings[left].max(initial=-np.inf)))
        if not reached.size or dimensions == 1:
            open_ = max(done, float(ceilings[reached].max(initial=-np.inf)))
            bound = max(open_, best.value + (tolerance if dimensions > 1 else 0.0))
            return Extreme(best.value, bound, best.direction)
        cells = cells.take(reached).split()


def _in_batches(evaluate: Evaluate, cells: Cells) -> tuple[Floats, Floats]:
    parts = []
    for first in range(0, len(cells), BATCH):
        part = cells.take(slice(first, first + BATCH))
        parts.append(evaluate(part.directions(), part.chords()))
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
