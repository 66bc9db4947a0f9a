"""An epsilon-net of the ball (or sphere) in a subspace: counted first, walked lazily.

Algorithm 2 (``alg:global``), line 5. The net is a cubic lattice of spacing 2 epsilon / sqrt(r): a
cube of that side has half diagonal epsilon, so its centre serves all of its points. The cubes that
touch the ball are counted, and the i-th of them found, without listing them: with k the whole
coordinates of its centre, a cube touches the ball if sum(max(2|k_i| - 1, 0)^2) is at most
r (radius / epsilon)^2, a knapsack whose counts fill tables of length r (radius / epsilon)^2.
Centres outside are moved to the nearest point of the ball, which is convex: that brings them no
further from any point of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Engine
from regimix.engines.row_sampling import mix
from regimix.errors import ParameterError
from regimix.model.rows import Whitening, weighted_quantile, whiten
from regimix.search.single import Starts
from regimix.search.subspace import Subspace, SubspaceKind, find_subspace

__all__ = ["LARGEST_NET", "Net", "NetSource", "lay_net", "net_source", "shuffled"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# One start of ILTS takes milliseconds at best: ten million of them, most of a day.
LARGEST_NET = 10_000_000
# Layers of cubes from the centre outwards; counting visits each. Only a circle (a sphere in two
# dimensions) has as many before it has too many points.
MOST_LAYERS = 2000
# A bound that is whole in exact arithmetic must not lose a layer to rounding; one more cube that
# just touches does no harm.
ROUNDING = 1e-9
# Counts below this are exact in double precision.
EXACT = 1e15
# Counts beyond this power of ten are not told apart.
LARGEST_POWER = 300
# Rounds of the Feistel network: four make a pseudorandom permutation of its halves.
FEISTEL_ROUNDS = 4
# The net's granularity as a share of its radius, unless given.
GRANULARITY = 0.5
# Rows to find the subspace from: more than the search for it needs.
SUBSPACE_ROWS = 300
# The radius is the largest deviation of y that a quantile of |y| speaks for. The largest quantile
# leaves room for corrupted rows; the smallest is the median.
RADIUS_LEVELS = ((0.5, 0.6745), (0.65, 0.9346), (0.8, 1.2816))


@dataclass(frozen=True)
class _Cubes:
    """Lattice cubes of which a cost, a sum over coordinates, stays within a budget.

    The cost of coordinate k is max(2|k| + offset, 0)^2: with offset -1 the squared distance of the
    nearest point of the cube, with offset +1 that of its farthest corner, in half spacings.
    Counts are doubles: exact for every net that can be walked, and no count overflows.
    """

    offset: int
    tables: tuple[Floats, ...]

    @classmethod
    def within(cls, budget: int, offset: int, dimensions: int) -> _Cubes:
        """Tabulate how many cubes of 2, 3, ... coordinates stay within each budget."""
        cubes = cls(offset, ())
        for coordinates in range(2, dimensions + 1):
            table = cubes.count(coordinates, np.arange(budget + 1))
            cubes = cls(offset, (*cubes.tables, table))
        return cubes

    def cost(self, k: int) -> int:
        return max(2 * abs(k) + self.offset, 0) ** 2

    def count(self, coordinates: int, budgets: Integers) -> Floats:
        """Count cubes of so many coordinates within each of several budgets (none if negative)."""
        if coordinates == 0:
            return np.where(budgets < 0, 0.0, 1.0)
        if coordinates == 1:
            # The largest |k| with 2|k| + offset <= sqrt(budget).
            largest = (np.floor(np.sqrt(np.maximum(budgets, 0))) - self.offset) // 2
            return np.where(budgets < 0, 0.0, np.maximum(2 * largest + 1, 0.0))
        if coordinates - 2 < len(self.tables):
            table = self.tables[coordinates - 2]
            return np.where(budgets < 0, 0.0, table[np.maximum(budgets, 0)])
        total = np.zeros(budgets.shape)
        top = int(budgets.max())
        k = 0
        while self.cost(k) <= top:
            total += (1 if k == 0 else 2) * self.count(coordinates - 1, budgets - self.cost(k))
            k += 1
        return total


@dataclass(frozen=True)
class Net:
    """A net whose points are made when they are asked for.

    Attributes
    ----------
    dimensions : int
    radius, granularity : float
        Every point of the ball (or sphere) is within the granularity of a point of the net.
    surface : bool
        Whether only the sphere is covered.
    size : int
        Number of points.
    spacing : float
        Side of the cubes whose centres they are.
    budget, inner_budget : int
        Costs up to which a cube touches the ball, and up to which it lies inside.
    """

    dimensions: int
    radius: float
    granularity: float
    surface: bool
    size: int
    spacing: float
    budget: int
    inner_budget: int
    _touching: _Cubes
    _inside: _Cubes | None

    def points(self, indices: NDArray[np.integer]) -> Floats:
        """Make the points of given indices from 0 to ``size - 1``, (indices, dimensions)."""
        left = np.array(indices, dtype=np.int64)
        if left.size and not (left.min() >= 0 and left.max() < self.size):
            raise IndexError(f"the net has points 0 to {self.size - 1}.")
        outer = np.full(left.shape, self.budget, dtype=np.int64)
        inner = np.full(left.shape, self.inner_budget, dtype=np.int64)
        whole = np.zeros((left.size, self.dimensions), dtype=np.int64)
        for axis in range(self.dimensions - 1):
            whole[:, axis] = self._digit(self.dimensions - axis - 1, left, outer, inner)
        if self._inside is not None:
            left += self._inside.count(1, inner).astype(np.int64)
        whole[:, -1] = _zigzag(left)
        return self._place(whole.astype(np.float64) * self.spacing)

    def draw(self, seed: int, first: int, count: int) -> Floats:
        """Make points ``first``, ``first + 1``, ... of a random order of the whole net."""
        places = np.arange(first, min(first + count, self.size))
        return self.points(shuffled(places, self.size, seed))

    def _count(self, coordinates: int, outer: Integers, inner: Integers) -> Integers:
        count = self._touching.count(coordinates, outer)
        if self._inside is not None:
            count = count - self._inside.count(coordinates, inner)
        return count.astype(np.int64)

    def _digit(self, after: int, left: Integers, outer: Integers, inner: Integers) -> Integers:
        """Find one coordinate of each point; subtract from indices and budgets what it takes."""
        digit = np.zeros(left.shape, dtype=np.int64)
        open_ = np.arange(left.size)
        step = 0
        while open_.size:
            k = int(_zigzag(np.array([step]))[0])
            near = outer[open_] - self._touching.cost(k)
            far = inner[open_] - (0 if self._inside is None else self._inside.cost(k))
            here = self._count(after, near, far)
            found = left[open_] < here
            done = open_[found]
            digit[done], outer[done], inner[done] = k, near[found], far[found]
            left[open_[~found]] -= here[~found]
            open_ = open_[~found]
            step += 1
        return digit

    def _place(self, centres: Floats) -> Floats:
        """Move centres of cubes to the nearest point of the ball (or sphere)."""
        length = np.linalg.norm(centres, axis=1)
        move = (length > 0) if self.surface else (length > self.radius)
        scale = np.where(move, self.radius / np.where(move, length, 1.0), 1.0)
        return np.asarray(centres * scale[:, None])


def lay_net(
    dimensions: int,
    radius: float,
    granularity: float,
    *,
    surface: bool = False,
    limit: int = LARGEST_NET,
) -> Net:
    """Lay a net over the ball of given radius around zero, or over its surface.

    Parameters
    ----------
    dimensions : int
    radius, granularity : float
    surface : bool
        Cover the sphere alone: for components that are known to have equal norms.
    limit : int
        Most points; a net that has more is refused before anything is built.

    Raises
    ------
    ParameterError
        With the size of the net, and the granularity that would do.
    """
    if dimensions < 1 or not 0 < radius < math.inf or not 0 < granularity < math.inf:
        raise ParameterError(
            "a net needs at least one dimension, and a positive finite radius and granularity; got "
            f"dimensions={dimensions!r}, radius={radius!r}, granularity={granularity!r}."
        )
    net = _count_net(dimensions, radius, granularity, surface, limit)
    if isinstance(net, Net):
        return net
    size = f"{net:,.0f}" if net < EXACT else f"10^{math.log10(net):.0f}"
    enough = _coarse_enough(dimensions, radius, surface, limit)
    raise ParameterError(
        f"the net over the {'sphere' if surface else 'ball'} of radius {radius:.3g} in "
        f"{dimensions} dimensions with granularity {granularity:.3g} has at least {size} points, "
        f"more than can be walked ({limit:,} points in {MOST_LAYERS:,} layers). A granularity of "
        f"{enough:.3g} is coarse enough; or search in a subspace of fewer dimensions."
    )


def shuffled(places: Integers, size: int, seed: int) -> Integers:
    """Look up places of a random order of ``range(size)`` without making it.

    A Feistel network keyed by the seed permutes the smallest square power of two that holds the
    range; what falls outside is permuted again until it falls inside (cycle walking).
    """
    half = max(1, math.ceil(max(size - 1, 1).bit_length() / 2))
    mask = np.uint64(2**half - 1)
    shift = np.uint64(half)
    keys = mix(np.arange(FEISTEL_ROUNDS, dtype=np.uint64) + mix(np.array([seed], dtype=np.uint64)))
    words = np.asarray(places).astype(np.uint64)
    outside = np.ones(words.shape, dtype=np.bool_)
    while outside.any():
        left, right = words[outside] >> shift, words[outside] & mask
        for key in keys:
            left, right = right, left ^ (mix(right ^ key) & mask)
        words[outside] = (left << shift) | right
        outside = words >= np.uint64(size)
    return words.astype(np.int64)


def _zigzag(order: Integers) -> Integers:
    """Turn 0, 1, 2, 3, 4, ... into 0, 1, -1, 2, -2, ...; small cubes come first."""
    return np.where(order % 2 == 1, (order + 1) // 2, -(order // 2))


def _count_net(
    dimensions: int, radius: float, granularity: float, surface: bool, limit: int
) -> Net | float:
    """Count a net; if it has more points than the limit, return their number (at least)."""
    half = granularity
    if surface and granularity < radius:
        # A centre within this of a point of the sphere makes an angle with it whose chord is the
        # granularity: centres can be moved onto the sphere.
        half = granularity * math.sqrt(1 - (granularity / (2 * radius)) ** 2)
    # Balls of the granularity must cover the volume (a sphere: its area, one dimension less). This
    # bound keeps tables short; a finer net is not worth counting.
    least = (dimensions - surface) * math.log10(max(radius / half, 1.0))
    layers = radius * math.sqrt(dimensions) / (2 * half)
    if least > math.log10(limit) + 1 or (layers > MOST_LAYERS and dimensions > 1):
        return float(10 ** min(least, LARGEST_POWER))
    budget = inner_budget = 0  # the origin alone covers everything
    if granularity < radius:
        square = dimensions * (radius / half) ** 2
        # Costs are whole: a cube touches up to the floor, and lies inside strictly below.
        budget = math.floor(square * (1 + ROUNDING))
        inner_budget = math.ceil(square * (1 - ROUNDING)) - 1
    surface = surface and budget > 0
    with np.errstate(over="ignore", invalid="ignore"):
        touching = _Cubes.within(budget, -1, dimensions - 1)
        inside = _Cubes.within(budget, 1, dimensions - 1) if surface else None
        size = float(touching.count(dimensions, np.array([budget]))[0])
        if inside is not None:
            size -= float(inside.count(dimensions, np.array([inner_budget]))[0])
    if not size <= limit:
        return min(size, 10.0**LARGEST_POWER) if size < math.inf else 10.0**LARGEST_POWER
    return Net(
        dimensions=dimensions,
        radius=radius,
        granularity=granularity,
        surface=surface,
        size=int(size),
        spacing=2 * half / math.sqrt(dimensions),
        budget=budget,
        inner_budget=inner_budget,
        _touching=touching,
        _inside=inside,
    )


def _coarse_enough(dimensions: int, radius: float, surface: bool, limit: int) -> float:
    """Find the finest granularity, to three digits, whose net can be walked."""
    low, high = 0.0, 1.0  # as shares of the radius; one point covers all at 1
    while high - low > 0.005 * high:
        middle = (low + high) / 2
        # What is written in the message must do as it is written there.
        written = float(f"{middle * radius:.3g}")
        if isinstance(_count_net(dimensions, radius, written, surface, limit), Net):
            high = middle
        else:
            low = middle
    return high * radius


@dataclass(frozen=True)
class NetSource:
    """Points of a net in a subspace of whitened features, lifted to standardised coefficients."""

    net: Net
    subspace: Subspace
    whitening: Whitening
    intercept: float

    @property
    def size(self) -> int:
        """How many points the net has."""
        return self.net.size

    def draw(self, seed: int, first: int, count: int) -> Starts:
        """Make points of the random order that belongs to a seed."""
        size = self.subspace.basis.shape[1]  # none if no column varies
        slopes = self.net.draw(seed, first, count)[:, :size] @ self.subspace.basis.T
        if self.whitening.intercept:
            slopes = np.column_stack([np.full(len(slopes), self.intercept), slopes])
        return Starts(self.whitening.back(slopes), ("net",) * len(slopes))


def net_source(
    engine: Engine,
    size: int,
    *,
    subspace: SubspaceKind = "bounded",
    granularity: float = GRANULARITY,
    radius: float | None = None,
    surface: bool = False,
    limit: int = LARGEST_NET,
    seed: int = 0,
) -> NetSource:
    """Find the subspace and lay a net in it: lines 4 and 5 of Algorithm 2.

    Parameters
    ----------
    size : int
        Directions of the subspace; the number of components, if it is known.
    granularity : float
        The paper's epsilon, as a share of the radius.
    radius : float, optional
        Largest norm of a component, in units of whitened features and standardised response.
        Default: estimated from the spread of y.
    surface : bool
        Cover the sphere alone.
    """
    problem = engine.problem
    sample = engine.sample(SUBSPACE_ROWS * problem.n_columns, seed)
    whitening = whiten(sample, intercept=problem.fit_intercept)
    found = find_subspace(
        whitening.apply(sample.Z),
        sample.y,
        sample.weights,
        size,
        subspace,
        np.random.default_rng(seed),
    )
    middle = weighted_quantile(sample.y, sample.weights, 0.5) if problem.fit_intercept else 0.0
    if radius is None:
        radius = _spread(sample.y - middle, sample.weights)
    net = lay_net(
        max(found.basis.shape[1], 1),
        radius,
        granularity * radius,
        surface=surface,
        limit=limit,
    )
    return NetSource(net, found, whitening, middle)


def _spread(y: Floats, weights: Floats) -> float:
    """Estimate the largest norm of a component: whitened, it is the deviation of its y."""
    sizes = np.abs(y)
    spread = max(weighted_quantile(sizes, weights, level) / z for level, z in RADIUS_LEVELS)
    return spread or float(sizes.max()) or 1.0
