"""Mixed linear regressions with corruptions (the paper's MLR-C), and everything true about them.

``make_mlrc`` draws the linear models (or places them so that Definition 1 has the separation asked
for), the features, the noise and the corrupted rows, and returns them with their ground truth.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert
from scipy.optimize import brentq, minimize
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax

from regimix.errors import Message, ParameterError, Setting, read_choice, read_count, read_number

__all__ = ["MLRCData", "Truth", "make_mlrc"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FEATURE_KINDS = ("gaussian", "student", "student-elliptical", "lognormal", "half-binary")
CORRUPTION_KINDS = ("gross", "same-scale", "adversarial")
CORRUPTED_ROWS = ("random", "leverage")

# One stream of random numbers for each part of the data: changing, say, the noise leaves the
# features, the models and the choice of corrupted rows as they were.
_STREAMS = ("models", "rows", "features", "covariances", "noise", "choice", "errors")
# A gross error's standard deviation in units of that of the clean responses: large enough that
# most corrupted rows leave the range of the others.
_GROSS_FACTOR = 10.0
# How far a separation may lie beyond the narrowest or widest arrangement: rounding, no more.
_ROUNDING = 1e-12
# The largest minimum distance is approached by soft minima of growing sharpness (distances are
# in units of the largest norm); starts matter only where no regular simplex fits.
_SHARPNESS = (10.0, 1e2, 1e3, 1e4, 1e5)
_SPREAD_STARTS = 10


@dataclass(frozen=True, eq=False)
class Truth:
    """The whole truth about one data set, in the paper's quantities (section "Problem Setup")."""

    coef: Floats  #: (m, d), the linear models θ*_(j)
    intercept: Floats  #: (m,), their intercepts; zeros in the paper's model
    component: Ints  #: (n,), the component each row was drawn from (S_(j)), corrupted or not
    labels: Ints  #: (n,), the same with -1 on corrupted rows
    corrupted: Bools  #: (n,), which rows are corrupted (R*)
    corruption: Floats  #: (n,), what was added to each response (r_i); exactly zero on clean rows
    clean_fraction: Floats  #: (m,), clean rows of each component as a share of all n rows (τ*_(j))
    clean_fraction_min: float  #: the smallest of them (τ*_min)
    corruption_ratio: float  #: corrupted rows over the clean rows of the smallest component (γ*)
    separation: float  #: Q of Definition 1; infinite for one component
    local_separation: Floats  #: (m,), Q_j of Definition 1
    noise: Floats  #: (m,), standard deviation of the additive noise in each component
    covariances: Floats | None = None  #: (m, d, d), of the features, if each component has its own
    wrong_coef: Floats | None = None  #: (d,), the model on which adversarial corruptions agree
    wrong_intercept: float | None = None  #: its intercept


@dataclass(frozen=True, eq=False)
class MLRCData:
    """One data set; unpacks as ``X, y, truth``."""

    X: Floats  #: (n, d), features
    y: Floats  #: (n,), responses, the corrupted ones among them
    truth: Truth  #: everything that is true about them

    def __iter__(self) -> Iterator[Any]:
        yield self.X
        yield self.y
        yield self.truth


def make_mlrc(
    n_samples: int = 1000,
    n_features: int = 5,
    n_components: int = 2,
    *,
    weights: ArrayLike | None = None,
    corruption: float = 0.0,
    corruption_ratio: float | None = None,
    corruption_kind: Literal["gross", "same-scale", "adversarial"] = "gross",
    corrupted_rows: Literal["random", "leverage"] = "random",
    corruption_scale: float | None = None,
    noise: ArrayLike = 0.0,
    separation: float | None = None,
    norms: ArrayLike | None = None,
    intercepts: ArrayLike | None = None,
    covariance_bound: float = 1.0,
    features: Literal[
        "gaussian", "student", "student-elliptical", "lognormal", "half-binary"
    ] = "gaussian",
    degrees_of_freedom: float = 5.0,
    coef: ArrayLike | None = None,
    random_state: int | np.random.Generator | None = None,
) -> MLRCData:
    """Make mixed linear regression data with corruptions (the paper's MLR-C) and their truth.

    Row i of component j has y_i = ⟨x_i, θ_j⟩ + b_j + noise + r_i, where r_i is zero except on
    corrupted rows. The same ``random_state`` gives the same data, and each part has a stream of
    random numbers of its own: changing the noise or the corruption leaves the features and the
    models as they were.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        Rows n, features d and linear models m.
    weights : array-like of shape (m,), optional
        Relative sizes of the components, corrupted rows included; equal by default. Row counts
        are exact (rounded by largest remainder), not drawn.
    corruption, corruption_ratio : float, optional
        Corrupted rows as a share of all rows, in [0, 1); or γ*, corrupted rows over the clean rows
        of the smallest component. The truth's γ* is the nearest one that whole rows allow.
    corruption_kind : {"gross", "same-scale", "adversarial"}
        ``"gross"`` adds ``corruption_scale``·N(0, 1) to y. ``"same-scale"`` redraws y from the
        normal distribution with the mean and standard deviation of the clean responses.
        ``"adversarial"`` gives all corrupted rows one wrong model (with its row's noise), at
        least max ‖θ_j‖ from every true one; its intercept is the mean of the true ones.
    corrupted_rows : {"random", "leverage"}
        ``"random"`` draws rows evenly: each component loses the same share up to rounding.
        ``"leverage"`` takes the rows of largest ‖x‖.
    corruption_scale : float, optional
        Standard deviation of gross errors; by default 10 times that of the clean responses.
    noise : float or array-like of shape (m,)
        Standard deviation of the normal noise on every row, for all components or each.
    separation : float, optional
        Q of Definition 1, smallest distance over largest norm of the components (intercepts do
        not count), met up to rounding; norms are 1 unless ``norms`` is given. Possible is any Q
        from the smallest difference of two norms (over the largest) up to the widest arrangement:
        2 for two equal norms, √(2m/(m-1)) for m ≤ d + 1 equal norms. With one feature the largest
        slope is 1, the others are free, Q is at most 2/(m-1) and ``norms`` is refused.
    norms, intercepts : float or array-like of shape (m,), optional
        Norms ‖θ_j‖ in random directions, and intercepts b_j (none by default), for all or each.
    covariance_bound : float
        σ ≥ 1. Above 1, each component's features have a random covariance of their own with
        I ⪯ Σ_j ⪯ σI and, for d ≥ 2, both 1 and σ among its eigenvalues.
    features : {"gaussian", "student", "student-elliptical", "lognormal", "half-binary"}
        All kinds but the last have mean 0 and covariance I (before ``covariance_bound``).
        ``"student"``: independent t columns. ``"student-elliptical"``: multivariate t, whole
        rows are long or short. ``"lognormal"``: standardised exp(N(0, 1)). ``"half-binary"``:
        the first ⌊d/2⌋ columns are 0 or 1 with equal chance, the others N(0, 1); it cannot be
        combined with ``covariance_bound``.
    degrees_of_freedom : float
        Of the two Student kinds; above 2.
    coef : array-like of shape (m, d), optional
        The components themselves, instead of ``norms`` and ``separation``. Without any of the
        three they are drawn from N(0, I).
    random_state : int, numpy.random.Generator or None
        The source of all randomness. A generator is advanced by the call.

    Returns
    -------
    MLRCData
        Unpacks as ``X, y, truth``.

    Examples
    --------
    >>> from regimix.synth import make_mlrc
    >>> X, y, truth = make_mlrc(320, 4, 3, corruption_ratio=0.2, random_state=0)
    >>> X.shape, truth.coef.shape, int(truth.corrupted.sum()), truth.corruption_ratio
    ((320, 4), (3, 4), 20, 0.2)
    """
    n = read_count("n_samples", n_samples)
    d = read_count("n_features", n_features)
    m = read_count("n_components", n_components)
    kind = read_choice("corruption_kind", corruption_kind, CORRUPTION_KINDS)
    how = read_choice("corrupted_rows", corrupted_rows, CORRUPTED_ROWS)
    share, ratio = _corruption_amount(corruption, corruption_ratio)
    if corruption_scale is not None and kind != "gross":
        raise ParameterError(
            f"corruption_scale={corruption_scale} is of no use to corruption_kind={kind!r}, whose "
            "size follows from the data. Leave it out, or choose corruption_kind='gross'."
        )
    if corruption_scale is not None:
        read_number("corruption_scale", corruption_scale, lambda v: 0 < v < np.inf, "positive")
    sigma = _per_component("noise", noise, m, low=0.0)
    intercept = _per_component("intercepts", 0.0 if intercepts is None else intercepts, m)
    rng = _generators(random_state)

    theta = _models(rng["models"], m, d, coef, norms, separation)
    component = rng["rows"].permutation(np.repeat(np.arange(m), _row_counts(n, m, weights)))
    X, covariances = _features(rng, component, d, features, degrees_of_freedom, covariance_bound)
    clean = np.take_along_axis(X @ theta.T, component[:, None], axis=1)[:, 0]
    clean += intercept[component] + sigma[component] * rng["noise"].standard_normal(n)

    order = _corruption_order(rng["choice"], X, component, how)
    corrupted = _first_rows(order, component, share, ratio)
    wrong_coef, wrong_intercept, added = None, None, np.zeros(n)
    if kind == "adversarial":
        wrong_coef, wrong_intercept = _wrong_model(rng["errors"], theta), float(intercept.mean())
        origin = component[corrupted]
        added[corrupted] = np.einsum("nd,nd->n", X[corrupted], wrong_coef - theta[origin])
        added[corrupted] += wrong_intercept - intercept[origin]
    elif corrupted.any():
        added[corrupted] = _errors(rng["errors"], kind, corruption_scale, clean)[corrupted]
    clean_counts = np.bincount(component[~corrupted], minlength=m)
    truth = Truth(
        coef=theta,
        intercept=intercept,
        component=component,
        labels=np.where(corrupted, -1, component),
        corrupted=corrupted,
        corruption=added,
        clean_fraction=clean_counts / n,
        clean_fraction_min=float(clean_counts.min() / n),
        corruption_ratio=_ratio(int(corrupted.sum()), component[~corrupted], m),
        separation=separation_of(theta),
        local_separation=local_separation_of(theta),
        noise=sigma,
        covariances=covariances,
        wrong_coef=wrong_coef,
        wrong_intercept=wrong_intercept,
    )
    return MLRCData(X=X, y=clean + added, truth=truth)


# --- the linear models -------------------------------------------------------------------------


def nearest_distances(coef: Floats) -> Floats:
    """Return the distance of each component to the nearest other, infinite if there is none."""
    distances = cdist(coef, coef)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances.min(axis=1))


def separation_of(coef: Floats) -> float:
    """Return Q of Definition 1: the smallest distance over the largest norm.

    Infinite for one component (the minimum over no pair), zero where two components coincide.
    """
    if len(coef) < 2:
        return np.inf
    closest = float(nearest_distances(coef).min())
    return closest / float(np.linalg.norm(coef, axis=1).max()) if closest > 0 else 0.0


def local_separation_of(coef: Floats) -> Floats:
    """Return Q_j of Definition 1: distance to the nearest other component over its own norm.

    Infinite for one component and for a component of norm zero that no other coincides with.
    """
    nearest, norms = nearest_distances(coef), np.linalg.norm(coef, axis=1)
    ratio = np.where(nearest > 0, np.inf, 0.0)
    np.divide(nearest, norms, out=ratio, where=norms > 0)
    return ratio


def _models(
    rng: np.random.Generator, m: int, d: int, coef: Any, norms: Any, separation: Any
) -> Floats:
    """Take the components given, or draw N(0, I) rows or random directions of given norms and Q."""
    if coef is not None:
        if norms is not None or separation is not None:
            raise ParameterError(
                f"coef was given together with norms={norms} and separation={separation}, but "
                "it already decides both. Give coef alone, or the other two without it."
            )
        values = _floats("coef", coef, f"a matrix of shape {(m, d)}")
        if values.shape != (m, d):
            raise ParameterError(
                f"coef has shape {values.shape}, but n_components={m} and n_features={d} ask for "
                f"{(m, d)}. Change the matrix or these two numbers."
            )
        if not np.isfinite(values).all():
            raise ParameterError("coef must be finite, got NaN or infinity. Replace those entries.")
        return values
    if norms is not None:
        norms = _per_component("norms", norms, m, low=0.0)
    drawn = rng.standard_normal((m, d))
    if separation is None:
        return drawn if norms is None else _bend(drawn, drawn, 0.0, norms)
    allowed = "above 0 and at most 2, the most that the triangle inequality allows"
    wanted = read_number("separation", separation, lambda q: 0 < q <= 2, allowed)
    if m == 1:
        raise ParameterError(
            f"separation={wanted:g} was asked for one component, which has nothing to be "
            "separated from. Leave separation out, or ask for two components or more."
        )
    if d == 1:
        return _on_a_line(rng, m, norms, wanted)
    return _separated(rng, drawn, np.ones(m) if norms is None else norms, wanted)


def _separated(
    rng: np.random.Generator, directions: Floats, norms: Floats, wanted: float
) -> Floats:
    """Bend random directions together, or apart, until Q is the one wanted.

    Q depends continuously on the directions, so every value between that of the random
    directions and that of where they are bent to is met in between.
    """
    largest, d = float(norms.max()), directions.shape[1]
    if largest == 0:
        _refuse(
            Setting("separation", wanted),
            " was asked for components that all have norm 0. Give at least one of them a positive "
            "norm, or leave separation out.",
        )
    unit = norms / largest
    narrowest = np.diff(np.sort(unit)).min()
    if wanted < narrowest - _ROUNDING:
        _refuse(
            Setting("separation", wanted),
            f" is out of reach for norms {norms.tolist()}: even on one ray they lie "
            f"{narrowest:.6g} of the largest norm apart. Ask for at least that, or give two "
            "components norms that are closer.",
        )
    start = _bend(directions, directions, 0.0, unit)
    if wanted <= separation_of(start):
        goal = np.broadcast_to(_random_frame(rng, 1, d), directions.shape)
        return _bend_until(start, goal, unit, wanted) * largest
    goal = _widest(rng, unit, d)
    reached = separation_of(goal)
    if wanted > reached + _ROUNDING:
        raise ParameterError(
            f"separation={wanted:g} is out of reach for {len(norms)} components of norms "
            f"{norms.tolist()} in {d} dimensions: the widest arrangement found has Q = "
            f"{reached:.6g}. Ask for less, or for fewer components, more features or other norms."
        )
    return _bend_until(start, goal, unit, wanted) * largest


def _bend_until(start: Floats, goal: Floats, norms: Floats, wanted: float) -> Floats:
    """Return the point between start and goal whose separation is ``wanted``."""

    def excess(step: float) -> float:
        return separation_of(_bend(start, goal, step, norms)) - wanted

    if excess(0.0) * excess(1.0) >= 0:  # one of the two ends is met up to rounding
        step = 0.0 if abs(excess(0.0)) < abs(excess(1.0)) else 1.0
    else:
        step = brentq(excess, 0.0, 1.0, xtol=np.finfo(float).tiny)
    return _bend(start, goal, step, norms)


def _bend(start: Floats, goal: Floats, step: float, norms: Floats) -> Floats:
    """Turn each direction the given part of the way and give it its norm."""
    mixed = (1 - step) * start + step * goal
    lengths = np.linalg.norm(mixed, axis=1, keepdims=True)
    return norms[:, None] * (mixed / np.where(lengths > 0, lengths, 1.0))


def _widest(rng: np.random.Generator, norms: Floats, n_features: int) -> Floats:
    """Place components of given norms (the largest is 1) as far apart as we know how.

    Up to d + 1 equal norms the regular simplex is best. Otherwise the smallest distance is
    maximised numerically, in the m - 1 dimensions that suffice.
    """
    m = len(norms)
    shape = (m, min(n_features, m - 1))
    simplex_fits = m <= n_features + 1
    starts = [helmert(m).T] if simplex_fits else [*rng.standard_normal((_SPREAD_STARTS, *shape))]
    placed = [_bend(start, start, 0.0, norms) for start in starts]
    if not (simplex_fits and (m == 2 or np.ptp(norms) == 0)):
        placed += [_push_apart(start, norms) for start in starts]
    return max(placed, key=separation_of) @ _random_frame(rng, shape[1], n_features)


def _push_apart(start: Floats, norms: Floats) -> Floats:
    """Turn directions so that a soft minimum of the squared distances is as large as possible."""
    free: Floats = start.ravel()
    for sharpness in _SHARPNESS:
        free = minimize(_crowding, free, args=(norms, sharpness), jac=True, method="L-BFGS-B").x
    free = free.reshape(start.shape)
    return _bend(free, free, 0.0, norms)


def _crowding(free: Floats, norms: Floats, sharpness: float) -> tuple[float, Floats]:
    """Return minus the soft minimum of the squared distances, and its gradient."""
    free = free.reshape(len(norms), -1)
    lengths = np.linalg.norm(free, axis=1, keepdims=True)
    unit = free / lengths
    points = norms[:, None] * unit
    first, second = np.triu_indices(len(norms), k=1)
    gaps = points[first] - points[second]
    squares = np.einsum("pd,pd->p", gaps, gaps)
    pull = np.zeros_like(points)
    pair_pull = 2.0 * softmax(-sharpness * squares)[:, None] * gaps
    np.subtract.at(pull, first, pair_pull)
    np.add.at(pull, second, pair_pull)
    # Only the part across the direction moves a point whose norm is fixed.
    across = pull - np.einsum("md,md->m", pull, unit)[:, None] * unit
    gradient = norms[:, None] * across / lengths
    return float(logsumexp(-sharpness * squares)) / sharpness, gradient.ravel()


def _on_a_line(rng: np.random.Generator, m: int, norms: Floats | None, wanted: float) -> Floats:
    """Place slopes in [-1, 1], one of them at an end, the closest two exactly ``wanted`` apart.

    Equal norms would leave only ±1 in one dimension, so here the norms are free.
    """
    if norms is not None:
        raise ParameterError(
            f"separation={wanted:g} and norms={norms.tolist()} were both given with "
            "n_features=1, where norms alone fix the components up to sign. Give one of the "
            "two, or the components themselves as coef."
        )
    slack = 2.0 - wanted * (m - 1)
    if slack < -_ROUNDING:
        _refuse(
            Setting("separation", wanted),
            f" is out of reach for {m} components with ",
            Setting("n_features", 1),
            f": {m} slopes in an interval allow at most Q = {2 / (m - 1):.6g}. Ask for less, or "
            "for more features.",
        )
    extra = np.zeros(m - 1)
    # The last share of the slack stays unused beyond the outermost slope.
    extra[1:] = max(slack, 0.0) * rng.dirichlet(np.ones(m - 1))[:-1]
    slopes = -1.0 + np.concatenate([[0.0], np.cumsum(wanted + rng.permutation(extra))])
    side = float(rng.choice([-1.0, 1.0]))
    return rng.permutation(slopes)[:, None] * side


def _random_frame(rng: np.random.Generator, n_directions: int, n_features: int) -> Floats:
    """Return orthonormal rows (n_directions, n_features), uniform over all such frames."""
    q, r = np.linalg.qr(rng.standard_normal((n_features, n_directions)))
    # Householder QR fixes signs by its own convention; tying them to r makes q uniform (Haar).
    return np.asarray((q * np.where(np.diagonal(r) < 0, -1.0, 1.0)).T)


# --- rows and features -------------------------------------------------------------------------


def _row_counts(n: int, m: int, weights: ArrayLike | None) -> Ints:
    """Round the sizes of the components to whole rows by largest remainder."""
    sizes = _per_component("weights", 1.0 if weights is None else weights, m, low=0.0)
    quotas = n * sizes / sizes.sum() if sizes.sum() > 0 else sizes
    counts = np.floor(quotas).astype(np.int64)
    counts[np.argsort(counts - quotas, kind="stable")[: n - int(counts.sum())]] += 1
    if counts.min() < 1 or not sizes.all():
        _refuse(
            Setting("n_samples", n),
            " shared out by ",
            Setting("weights"),
            f" {sizes.tolist()} gives the components {counts.tolist()} rows; each needs at least "
            "one. Raise ",
            Setting("n_samples"),
            ", or the share of the smallest.",
        )
    return counts


def _features(
    rng: dict[str, np.random.Generator],
    component: Ints,
    n_features: int,
    kind: str,
    degrees_of_freedom: float,
    bound: float,
) -> tuple[Floats, Floats | None]:
    """Draw X, and the covariance of each component where each has its own."""
    read_choice("features", kind, FEATURE_KINDS)
    bound = read_number("covariance_bound", bound, lambda v: 1 <= v < np.inf, "1 or more, finite")
    degrees = degrees_of_freedom
    read_number("degrees_of_freedom", degrees, lambda v: 0 <= v < np.inf, "above 2, finite")
    if bound > 1 and kind == "half-binary":
        raise ParameterError(
            f"covariance_bound={bound:g} would rotate the columns that features='half-binary' "
            "keeps at 0 and 1. Leave covariance_bound at 1, or choose other features."
        )
    X = _isotropic(rng["features"], (len(component), n_features), kind, degrees_of_freedom)
    if bound == 1:
        return X, None
    factors = _factors(rng["covariances"], int(component.max()) + 1, n_features, bound)
    for j, factor in enumerate(factors):
        rows = component == j
        X[rows] = X[rows] @ factor
    return X, factors.transpose(0, 2, 1) @ factors


def _isotropic(
    rng: np.random.Generator, shape: tuple[int, int], kind: str, degrees_of_freedom: float
) -> Floats:
    """Draw n rows of d features; all kinds but ``half-binary`` have mean 0 and covariance I."""
    if kind == "gaussian":
        return rng.standard_normal(shape)
    if kind == "lognormal":
        # The mean of exp(N(0, 1)) is e^½ and its variance (e - 1)e.
        drawn = np.exp(rng.standard_normal(shape)) - np.exp(0.5)
        return np.asarray(drawn / np.sqrt(np.expm1(1.0) * np.e))
    if kind == "half-binary":
        X = rng.standard_normal(shape)
        # The first half, rounded down: at least one column stays continuous, so that two
        # different models never agree on a row.
        half = X[:, : shape[1] // 2]
        half[:] = rng.integers(2, size=half.shape)
        return X
    if degrees_of_freedom <= 2:
        raise ParameterError(
            f"degrees_of_freedom={degrees_of_freedom:g} has no finite variance to scale to one. "
            f"Features of kind {kind!r} need more than 2."
        )
    if kind == "student":
        X = rng.standard_t(degrees_of_freedom, size=shape)
    else:
        X = rng.standard_normal(shape)
        X /= np.sqrt(rng.chisquare(degrees_of_freedom, size=(shape[0], 1)) / degrees_of_freedom)
    X *= np.sqrt((degrees_of_freedom - 2) / degrees_of_freedom)
    return X


def _factors(rng: np.random.Generator, m: int, n_features: int, bound: float) -> Floats:
    """Draw A_j with I ⪯ A_jᵀ A_j ⪯ bound·I, (m, d, d) (Corollary 8, ``cor:1``).

    Isotropic rows times A_j have the covariance A_jᵀ A_j. Both ends are its eigenvalues where
    d ≥ 2 (the condition number is ``bound``), the others are uniform on the logarithmic scale, and
    the eigenvectors are a random rotation.
    """
    factors = np.empty((m, n_features, n_features))
    for factor in factors:
        exponents = rng.uniform(size=n_features)
        if n_features > 1:
            exponents[:2] = 0.0, 1.0
        factor[:] = np.sqrt(bound**exponents)[:, None] * _random_frame(rng, n_features, n_features)
    return factors


# --- corruption --------------------------------------------------------------------------------


def _corruption_amount(share: object, ratio: object) -> tuple[float, float | None]:
    """Check the two parameters that say how many rows are corrupted; at most one may be used."""
    allowed = "a share of all rows from 0 to below 1"
    share = read_number("corruption", share, lambda part: 0 <= part < 1, allowed)
    if ratio is None:
        return share, None
    if share > 0:
        raise ParameterError(
            f"corruption={share:g} and corruption_ratio={ratio} both say how many rows are "
            "corrupted. Give one: a share of all rows, or the paper's γ*."
        )
    return share, read_number(
        "corruption_ratio", ratio, lambda part: 0 <= part < np.inf, "0 or more, finite"
    )


def _corruption_order(
    rng: np.random.Generator, X: Floats, component: Ints, corrupted_rows: str
) -> Ints:
    """Return all rows in the order in which they are corrupted.

    ``leverage`` takes the longest rows of X first. ``random`` draws rows at random but evenly:
    every component loses the same share up to rounding, so that τ*_(j) does not vary by chance.
    """
    if corrupted_rows == "leverage":
        return np.argsort(-np.einsum("nd,nd->n", X, X), kind="stable")
    shuffled = rng.permutation(len(component))
    by_component = shuffled[np.argsort(component[shuffled], kind="stable")]
    counts = np.bincount(component)
    position = np.arange(len(component)) - np.repeat(np.cumsum(counts) - counts, counts)
    # Webster's rule as a queue: the k-th row of a component of size s comes at (k + ½)/s.
    turn = (position + 0.5) / np.repeat(counts, counts)
    return by_component[np.lexsort((rng.random(len(turn)), turn))]


def _first_rows(order: Ints, component: Ints, share: float, ratio: float | None) -> Bools:
    """Mark the first rows of ``order`` as corrupted, as many as a share or γ* asks for."""
    n, in_order, m = len(order), component[order], int(component.max()) + 1

    def ratio_after(n_corrupted: int) -> float:
        return _ratio(n_corrupted, in_order[n_corrupted:], m)

    # Corrupting a row raises γ* by its own count and by what it takes from the smallest
    # component, so γ* grows along the order and bisection solves its definition.
    most = bisect_left(range(n + 1), np.inf, key=ratio_after) - 1
    if ratio is None:
        n_corrupted = round(share * n)
        in_reach, asked = n_corrupted <= most, Setting("corruption", share)
    else:
        above = bisect_right(range(most + 1), ratio, key=ratio_after)
        nearest = (above - 1, min(above, most))
        n_corrupted = min(nearest, key=lambda rows: abs(ratio_after(rows) - ratio))
        in_reach, asked = ratio <= ratio_after(most), Setting("corruption_ratio", ratio)
    if not in_reach:
        _refuse(
            asked,
            f" would leave a component without a clean row: of these {n} rows at most {most} can "
            f"be corrupted, a share of {most / n:.6g} or a γ* of {ratio_after(most):.6g}. Ask for "
            "less, raise ",
            Setting("n_samples"),
            " or balance the ",
            Setting("weights"),
            ".",
        )
    corrupted = np.zeros(n, dtype=np.bool_)
    corrupted[order[:n_corrupted]] = True
    return corrupted


def _ratio(n_corrupted: int, clean: Ints, n_components: int) -> float:
    """Return γ* = |R*| / (n τ*_min); infinite where a component has no clean row left."""
    smallest = np.bincount(clean, minlength=n_components).min()
    return n_corrupted / int(smallest) if smallest else np.inf


def _errors(rng: np.random.Generator, kind: str, scale: float | None, clean: Floats) -> Floats:
    """Draw gross or same-scale errors for all rows.

    They are used on the corrupted ones: a row keeps its error when more are corrupted.
    """
    draws = rng.standard_normal(len(clean))
    if scale is not None:
        return draws * scale
    spread = float(clean.std())
    if spread == 0:
        raise ParameterError(
            "the clean responses are all the same, so their spread gives no scale for corrupted "
            "ones. Give noise or components that are not zero, or corruption_kind='gross' with "
            "a corruption_scale."
        )
    if kind == "same-scale":
        return np.asarray(clean.mean() + spread * draws - clean)
    return draws * (_GROSS_FACTOR * spread)


def _wrong_model(rng: np.random.Generator, coef: Floats) -> Floats:
    """Return a model at least R = max ‖θ*_(j)‖ (1 if all are zero) from every true one.

    The direction is random; the norm is the smallest from R up that keeps the distance. Along
    the ray s·v, ‖s v − θ‖² ≥ R² holds beyond the larger root a + √(a² + R² − ‖θ‖²), a = ⟨v, θ⟩,
    which is at most 2R; in many dimensions a is small and the wrong model has norm about R.
    """
    norms = np.linalg.norm(coef, axis=1)
    radius = float(norms.max()) or 1.0
    direction = _random_frame(rng, 1, coef.shape[1])[0]
    along = coef @ direction
    roots = along + np.sqrt(along**2 + radius**2 - norms**2)
    return np.asarray(direction * max(radius, float(roots.max())))


# --- checks of parameters ----------------------------------------------------------------------


def _refuse(*parts: str | Setting) -> NoReturn:
    raise ParameterError(Message(*parts))


def _per_component(name: str, value: Any, m: int, *, low: float = -np.inf) -> Floats:
    """Return one number per component from a scalar (the same for all) or one number each."""
    values = _floats(name, value, f"a number, or {m} numbers, one per component")
    if values.ndim == 0:
        values = np.full(m, values)
    if values.shape != (m,):
        _refuse(
            Setting(name),
            f" has shape {values.shape}, but there are {m} components. Give one number for all of "
            f"them, or {m} numbers.",
        )
    if not np.isfinite(values).all() or (values < low).any():
        bound = "" if np.isneginf(low) else f" and at least {low:g}"
        wanted = f" must be finite{bound}, got {values.tolist()}. Replace the others."
        _refuse(Setting(name), wanted)
    return values


def _floats(name: str, value: Any, allowed: str) -> Floats:
    """Return a copy as an array of numbers: the truth must not change later."""
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{name} must be {allowed}; got {value!r}, which is not made of numbers."
        ) from None


def _generators(random_state: Any) -> dict[str, np.random.Generator]:
    """Return an independent generator for each stream, all derived from ``random_state``."""
    whole = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    known = random_state is None or isinstance(random_state, np.random.Generator)
    if not (known or (whole and random_state >= 0)):
        _refuse(
            Setting("random_state"),
            " must be None, a non-negative integer or a numpy.random.Generator, got "
            f"{random_state!r}. Pass a seed such as 0, or numpy.random.default_rng(0).",
        )
    source = np.random.default_rng(int(random_state) if whole else random_state)
    seeds = source.integers(np.iinfo(np.int64).max, size=len(_STREAMS))
    return {name: np.random.default_rng(s) for name, s in zip(_STREAMS, seeds, strict=True)}
