"""An epsilon-net of the ball in a subspace: counted first, then made point by point when asked for.

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
from regimix.engines.parts import PassStopped
from regimix.engines.row_sampling import mix
from regimix.errors import ParameterError, StopReason
from regimix.model.em import late
from regimix.model.numbers import MODEL
from regimix.model.rows import Whitening, weighted_quantile, whiten
from regimix.search.settings import GRANULARITY
from regimix.search.single import Starts
from regimix.search.subspace import Subspace, SubspaceKind, find_subspace

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# One start of ILTS takes milliseconds at best: ten million of them, most of a day.
LARGEST_NET = 10_000_000
# Counts below this are exact in double precision; beyond that power of ten they are not told apart.
EXACT = 1 / float(np.finfo(np.float64).eps)
LARGEST_POWER = int(np.finfo(np.float64).maxexp * math.log10(2)) - 1
# Rounds of the Feistel network: four make a pseudorandom permutation of its halves.
FEISTEL_ROUNDS = 4
# Rows to find the subspace from: more than the search for it needs.
SUBSPACE_ROWS = 300
# The radius is the largest deviation of y that a quantile of |y| speaks for. The largest quantile
# leaves room for corrupted rows; the smallest is the median.
RADIUS_LEVELS = ((0.5, 0.6745), (0.65, 0.9346), (0.8, 1.2816))


@dataclass(frozen=True)
class Net:
    """A net whose points are made when they are asked for."""

    dimensions: int
    radius: float
    granularity: float  # every point of the ball is so near to a point of the net
    size: int  # number of points
    spacing: float  # side of the cubes whose centres they are
    budget: int  # cost up to which a cube touches the ball
    tables: tuple[Floats, ...]  # how many cubes of 2, 3, ... coordinates stay within each budget

    def points(self, indices: NDArray[np.integer]) -> Floats:
        """Make the points of given indices from 0 to ``size - 1``, (indices, dimensions)."""
        left = np.array(indices, dtype=np.int64)
        if left.size and not (left.min() >= 0 and left.max() < self.size):
            raise IndexError(f"the net has points 0 to {self.size - 1}.")
        budgets = np.full(left.shape, self.budget, dtype=np.int64)
        whole = np.zeros((left.size, self.dimensions), dtype=np.int64)
        for axis in range(self.dimensions - 1):
            whole[:, axis] = self._digit(self.dimensions - axis - 1, left, budgets)
        whole[:, -1] = _zigzag(left)
        centres = whole.astype(np.float64) * self.spacing
        length = np.linalg.norm(centres, axis=1)
        shrink = self.radius / np.maximum(length, max(self.radius, 1e-300))
        return np.asarray(centres * shrink[:, None])

    def draw(self, seed: int, first: int, count: int) -> Floats:
        """Make points ``first``, ``first + 1``, ... of a random order of the whole net."""
        places = np.arange(first, min(first + count, self.size))
        return self.points(shuffled(places, self.size, seed))

    def _digit(self, after: int, left: Integers, budgets: Integers) -> Integers:
        """Find one coordinate of each point; subtract from indices and budgets what it takes."""
        digit = np.zeros(left.shape, dtype=np.int64)
        open_ = np.arange(left.size)
        step = 0
        while open_.size:
            k = int(_zigzag(np.array([step]))[0])
            inside = budgets[open_] - _cost(k)
            here = _count(after, inside, self.tables).astype(np.int64)
            found = left[open_] < here
            done = open_[found]
            digit[done], budgets[done] = k, inside[found]
            left[open_[~found]] -= here[~found]
            open_ = open_[~found]
            step += 1
        return digit


def lay_net(dimensions: int, radius: float, granularity: float) -> Net:
    """Lay a net over the ball of given radius around zero.

    A net of too many points is refused before anything is built, with its size and the granularity
    that would do.
    """
    if dimensions < 1 or not 0 < radius < math.inf or not 0 < granularity < math.inf:
        raise ParameterError(
            "a net needs at least one dimension, and a positive finite radius and granularity; got "
            f"dimensions={dimensions!r}, radius={radius!r}, granularity={granularity!r}."
        )
    net = _count_net(dimensions, radius, granularity)
    if isinstance(net, Net):
        return net
    size = f"{net:,.0f}" if net < EXACT else f"10^{math.log10(net):.0f}"
    enough = _coarse_enough(dimensions, radius)
    raise ParameterError(
        f"the net over the ball of radius {radius:.3g} in {dimensions} dimensions with granularity "
        f"{granularity:.3g} has at least {size} points, more than can be walked ({LARGEST_NET:,}). "
        f"A granularity of {enough:.3g} is coarse enough; or search in a subspace of fewer "
        "dimensions."
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


def _cost(k: int) -> int:
    """Return what one coordinate adds to the squared distance of a cube, in half spacings."""
    return max(2 * abs(k) - 1, 0) ** 2


def _count(coordinates: int, budgets: Integers, tables: tuple[Floats, ...]) -> Floats:
    """Count cubes of so many coordinates within each of several budgets (none if negative).

    Counts are doubles: exact for every net that can be walked, and no count overflows.
    """
    if coordinates == 0:
        return np.where(budgets < 0, 0.0, 1.0)
    if coordinates == 1:
        # The largest |k| with 2|k| - 1 <= sqrt(budget).
        largest = (np.floor(np.sqrt(np.maximum(budgets, 0))) + 1) // 2
        return np.where(budgets < 0, 0.0, 2 * largest + 1)
    if coordinates - 2 < len(tables):
        return np.where(budgets < 0, 0.0, tables[coordinates - 2][np.maximum(budgets, 0)])
    total = np.zeros(budgets.shape)
    k, top = 0, int(budgets.max())
    while _cost(k) <= top:
        total += (1 if k == 0 else 2) * _count(coordinates - 1, budgets - _cost(k), tables)
        k += 1
    return total


def _count_net(dimensions: int, radius: float, granularity: float) -> Net | float:
    """Count a net; if it has more points than allowed, return their number (at least)."""
    # Balls of the granularity must cover the volume. This bound keeps tables short; a finer net is
    # not worth counting.
    least = dimensions * math.log10(max(radius / granularity, 1.0))
    if least > math.log10(LARGEST_NET) + 1:
        return float(10 ** min(least, LARGEST_POWER))
    budget = 0  # the origin alone covers everything
    if granularity < radius:
        # Costs are whole: a cube touches the ball up to the floor.
        # A bound that is whole in exact arithmetic must not lose a layer to rounding; one more cube
        # that just touches does no harm.
        bound = dimensions * (radius / granularity) ** 2
        budget = math.floor(bound * (1 + MODEL.gram_rounding))
    tables: tuple[Floats, ...] = ()
    with np.errstate(over="ignore", invalid="ignore"):
        for coordinates in range(2, dimensions):
            tables = (*tables, _count(coordinates, np.arange(budget + 1), tables))
        size = float(_count(dimensions, np.array([budget]), tables)[0])
    if not size <= LARGEST_NET:
        return min(size, 10.0**LARGEST_POWER) if size < math.inf else 10.0**LARGEST_POWER
    spacing = 2 * granularity / math.sqrt(dimensions)
    return Net(dimensions, radius, granularity, int(size), spacing, budget, tables)


def _coarse_enough(dimensions: int, radius: float) -> float:
    """Find the finest granularity, to three digits, whose net can be walked."""
    low, high = 0.0, 1.0  # as shares of the radius; one point covers all at 1
    while high - low > 0.005 * high:
        middle = (low + high) / 2
        # What is written in the message must do as it is written there.
        written = float(f"{middle * radius:.3g}")
        if isinstance(_count_net(dimensions, radius, written), Net):
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
    basis: Floats | None = None  # of the space in which starts are asked for; None: all columns

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
        thetas = self.whitening.back(slopes)
        thetas = thetas if self.basis is None else thetas @ self.basis
        return Starts(thetas, ("net",) * len(slopes))


def net_source(
    engine: Engine,
    size: int | None,
    *,
    subspace: SubspaceKind = "bounded",
    granularity: float = GRANULARITY,
    seed: int = 0,
) -> NetSource:
    """Find the subspace and lay a net in it: lines 4 and 5 of Algorithm 2.

    ``size`` is the number of directions of the subspace, that of the components if it is known;
    None: those that the response certainly depends on. ``granularity`` is the paper's epsilon, as a
    share of the radius. Without time for it there is no net: ``PassStopped`` is raised.
    """
    problem = engine.problem
    sample = engine.sample(SUBSPACE_ROWS * problem.n_columns, seed)
    whitening = whiten(sample, intercept=problem.fit_intercept)
    features = whitening.apply(sample.Z)

    def directions(size: int, kind: SubspaceKind) -> Subspace:
        if late():
            raise PassStopped(StopReason.TIME_LIMIT)
        rng = np.random.default_rng(seed)
        return find_subspace(features, sample.y, sample.weights, size, kind, rng)

    size = size or max(1, directions(1, "bounded").certain)
    found = directions(min(size, problem.n_features), subspace)
    middle = weighted_quantile(sample.y, sample.weights, 0.5) if problem.fit_intercept else 0.0
    # Whitened, the norm of a component is the deviation of its y.
    sizes = np.abs(sample.y - middle)
    radius = max(weighted_quantile(sizes, sample.weights, level) / z for level, z in RADIUS_LEVELS)
    radius = radius or float(sizes.max()) or 1.0
    if late():
        raise PassStopped(StopReason.TIME_LIMIT)
    net = lay_net(max(found.basis.shape[1], 1), radius, granularity * radius)
    return NetSource(net, found, whitening, middle)
