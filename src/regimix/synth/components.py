"""The linear models: drawn, or placed so that Definition 1 has the separation asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import helmert
from scipy.optimize import brentq, minimize
from scipy.spatial.distance import pdist, squareform

from regimix.errors import Message, ParameterError, Setting
from regimix.synth.features import random_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["draw_components", "local_separation", "separation"]

# How far beyond the narrowest or widest arrangement a wish still counts as it: rounding, no more.
_ROUNDING = 1e-12
# The largest minimum distance is approached by soft minima of growing sharpness (distances are
# in units of the largest norm); starts matter only where no regular simplex fits.
_SHARPNESS = (10.0, 1e2, 1e3, 1e4, 1e5)
_SPREAD_STARTS = 10


def separation(coef: NDArray[np.float64]) -> float:
    """Return Q of Definition 1: the smallest distance over the largest norm.

    Infinite for one component (the minimum over no pair), zero where two components coincide.
    """
    if len(coef) < 2:
        return np.inf
    closest = pdist(coef).min()
    return float(closest / np.linalg.norm(coef, axis=1).max()) if closest > 0 else 0.0


def local_separation(coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Q_j of Definition 1: distance to the nearest other component over its own norm.

    Infinite for one component and for a component of norm zero that no other coincides with.
    """
    if len(coef) < 2:
        return np.full(len(coef), np.inf)
    distances = squareform(pdist(coef))
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=1)
    norms = np.linalg.norm(coef, axis=1)
    ratio = np.where(nearest > 0, np.inf, 0.0)
    np.divide(nearest, norms, out=ratio, where=norms > 0)
    return ratio


def draw_components(
    rng: np.random.Generator,
    n_components: int,
    n_features: int,
    norms: NDArray[np.float64] | None,
    wanted: float | None,
) -> NDArray[np.float64]:
    """Draw the models: N(0, I) rows, or directions at random with given norms and separation."""
    coef = rng.standard_normal((n_components, n_features))
    if wanted is None:
        return coef if norms is None else _bend(coef, coef, 0.0, norms)
    if n_components == 1:
        message = (
            f"separation={wanted:g} was asked for one component, which has nothing to be "
            "separated from. Leave separation out, or ask for two components or more."
        )
        raise ParameterError(message)
    if n_features == 1:
        return _on_a_line(rng, n_components, norms, wanted)
    norms = np.ones(n_components) if norms is None else norms
    return _separated(rng, coef, norms, wanted)


def _separated(
    rng: np.random.Generator,
    directions: NDArray[np.float64],
    norms: NDArray[np.float64],
    wanted: float,
) -> NDArray[np.float64]:
    """Bend random directions together, or apart, until Q is the one wanted.

    Q depends continuously on the directions, so every value between that of the random
    directions and that of where they are bent to is met on the way.
    """
    largest = float(norms.max())
    if largest == 0:
        message: str = Message(
            Setting("separation", wanted),
            " was asked for components that all have norm 0. Give at least one of them a positive "
            "norm, or leave separation out.",
        )
        raise ParameterError(message)
    unit = norms / largest
    narrowest = np.diff(np.sort(unit)).min()
    if wanted < narrowest - _ROUNDING:
        message = Message(
            Setting("separation", wanted),
            f" is out of reach for norms {norms.tolist()}: even on one ray they lie "
            f"{narrowest:.6g} of the largest norm apart. Ask for at least that, or give two "
            "components norms that are closer.",
        )
        raise ParameterError(message)
    start = _bend(directions, directions, 0.0, unit)
    if wanted <= separation(start):
        together = np.broadcast_to(random_frame(rng, 1, directions.shape[1]), directions.shape)
        return _bend_until(start, together, unit, wanted) * largest
    apart = _widest(rng, unit, directions.shape[1])
    reached = separation(apart)
    if wanted > reached + _ROUNDING:
        message = (
            f"separation={wanted:g} is out of reach for {len(norms)} components of norms "
            f"{norms.tolist()} in {directions.shape[1]} dimensions: the widest arrangement found "
            f"has Q = {reached:.6g}. Ask for less, or for fewer components, more features or "
            "other norms."
        )
        raise ParameterError(message)
    return _bend_until(start, apart, unit, wanted) * largest


def _bend_until(
    start: NDArray[np.float64],
    goal: NDArray[np.float64],
    norms: NDArray[np.float64],
    wanted: float,
) -> NDArray[np.float64]:
    """Return the point on the way from start to goal whose separation is ``wanted``."""

    def excess(step: float) -> float:
        return separation(_bend(start, goal, step, norms)) - wanted

    if excess(0.0) * excess(1.0) >= 0:  # the goal is met up to rounding, at one end of the way
        step = 0.0 if abs(excess(0.0)) < abs(excess(1.0)) else 1.0
    else:
        step = brentq(excess, 0.0, 1.0, xtol=np.finfo(float).tiny)
    return _bend(start, goal, step, norms)


def _bend(
    start: NDArray[np.float64],
    goal: NDArray[np.float64],
    step: float,
    norms: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Turn each direction the given part of the way and give it its norm."""
    mixed = (1 - step) * start + step * goal
    lengths = np.linalg.norm(mixed, axis=1, keepdims=True)
    return norms[:, None] * (mixed / np.where(lengths > 0, lengths, 1.0))


def _widest(
    rng: np.random.Generator, norms: NDArray[np.float64], n_features: int
) -> NDArray[np.float64]:
    """Place components of given norms (the largest is 1) as far apart as we know how.

    Up to d + 1 equal norms the regular simplex is best. Otherwise the smallest distance is
    maximised numerically, in the m - 1 dimensions that suffice.
    """
    n_components = len(norms)
    n_dimensions = min(n_features, n_components - 1)
    if n_components <= n_features + 1:
        starts = [helmert(n_components).T]
    else:
        shape = (n_components, n_dimensions)
        starts = [rng.standard_normal(shape) for _ in range(_SPREAD_STARTS)]
    placed = [_bend(start, start, 0.0, norms) for start in starts]
    simplex_is_best = n_components <= n_features + 1 and (n_components == 2 or np.ptp(norms) == 0)
    if not simplex_is_best:
        placed += [_push_apart(start, norms) for start in starts]
    return max(placed, key=separation) @ random_frame(rng, n_dimensions, n_features)


def _push_apart(start: NDArray[np.float64], norms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn directions so that a soft minimum of the squared distances is as large as possible."""
    free: NDArray[np.float64] = start.ravel()
    for sharpness in _SHARPNESS:
        free = minimize(_crowding, free, args=(norms, sharpness), jac=True, method="L-BFGS-B").x
    free = free.reshape(start.shape)
    return _bend(free, free, 0.0, norms)


def _crowding(
    free: NDArray[np.float64], norms: NDArray[np.float64], sharpness: float
) -> tuple[float, NDArray[np.float64]]:
    """Return minus the soft minimum of the squared distances, and its gradient."""
    free = free.reshape(len(norms), -1)
    lengths = np.linalg.norm(free, axis=1, keepdims=True)
    unit = free / lengths
    points = norms[:, None] * unit
    first, second = np.triu_indices(len(norms), k=1)
    gaps = points[first] - points[second]
    squares = np.einsum("pd,pd->p", gaps, gaps)
    nearest = squares.min()
    weights = np.exp(-sharpness * (squares - nearest))
    total = weights.sum()
    pull = np.zeros_like(points)
    pair_pull = 2.0 * (weights / total)[:, None] * gaps
    np.subtract.at(pull, first, pair_pull)
    np.add.at(pull, second, pair_pull)
    # Only the part across the direction moves a point whose norm is fixed.
    across = pull - np.einsum("md,md->m", pull, unit)[:, None] * unit
    gradient = norms[:, None] * across / lengths
    return float(np.log(total) / sharpness - nearest), gradient.ravel()


def _on_a_line(
    rng: np.random.Generator,
    n_components: int,
    norms: NDArray[np.float64] | None,
    wanted: float,
) -> NDArray[np.float64]:
    """Place slopes in [-1, 1], one of them at an end, the closest two exactly ``wanted`` apart.

    Equal norms would leave only ±1 in one dimension, so here the norms are free.
    """
    if norms is not None:
        message = (
            f"separation={wanted:g} and norms={norms.tolist()} were both given with "
            "n_features=1, where norms alone fix the components up to sign. Give one of the "
            "two, or the components themselves as coef."
        )
        raise ParameterError(message)
    slack = 2.0 - wanted * (n_components - 1)
    if slack < -_ROUNDING:
        message = Message(
            Setting("separation", wanted),
            f" is out of reach for {n_components} components with ",
            Setting("n_features", 1),
            f": {n_components} slopes in an interval allow at most "
            f"Q = {2 / (n_components - 1):.6g}. Ask for less, or for more features.",
        )
        raise ParameterError(message)
    extra = np.zeros(n_components - 1)
    # The last share of the slack stays unused beyond the outermost slope.
    extra[1:] = max(slack, 0.0) * rng.dirichlet(np.ones(n_components - 1))[:-1]
    slopes = -1.0 + np.concatenate([[0.0], np.cumsum(wanted + rng.permutation(extra))])
    side = float(rng.choice([-1.0, 1.0]))
    return rng.permutation(slopes)[:, None] * side
