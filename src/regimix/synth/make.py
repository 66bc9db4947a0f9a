"""The generator itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from regimix.errors import Message, ParameterError, Setting
from regimix.synth import checks, components
from regimix.synth.corruption import (
    CORRUPTED_ROWS,
    CORRUPTION_KINDS,
    choose_rows,
    corruption_order,
    draw_errors,
    ratio_of,
)
from regimix.synth.features import FEATURE_KINDS, draw_covariances, draw_features
from regimix.synth.truth import MLRCData, Truth

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["make_mlrc"]

# One stream of random numbers for each part of the data; see ``checks.generators``.
_STREAMS = ("models", "rows", "features", "covariances", "noise", "choice", "errors")


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
    corruption : float
        Corrupted rows as a share of all rows, in [0, 1).
    corruption_ratio : float, optional
        Instead of ``corruption``: γ*, corrupted rows over the clean rows of the smallest
        component. The truth's γ* is the nearest one that whole rows allow.
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
        not count), met up to rounding. Q does not depend on the common scale, so it leaves the
        norms free: they are 1 unless ``norms`` is given. Possible is any Q from the smallest
        difference of two norms (over the largest) up to the widest arrangement: 2 for two
        equal norms, √(2m/(m-1)) for m ≤ d + 1 equal norms. With one feature equal norms would
        leave only ±1, so the largest slope is 1, the others are free, Q is at most 2/(m-1) and
        ``norms`` is refused.
    norms : float or array-like of shape (m,), optional
        Norms ‖θ_j‖, for all components or each, in random directions.
    intercepts : float or array-like of shape (m,), optional
        Intercepts b_j, one for all or each; none by default.
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
        With ``X`` (n, d), ``y`` (n,) and ``truth``; unpacks as ``X, y, truth``.

    Raises
    ------
    ParameterError
        Where a value is out of range or a combination cannot be met.

    Examples
    --------
    >>> from regimix.synth import make_mlrc
    >>> X, y, truth = make_mlrc(320, 4, 3, corruption_ratio=0.2, random_state=0)
    >>> X.shape, truth.coef.shape, int(truth.corrupted.sum()), truth.corruption_ratio
    ((320, 4), (3, 4), 20, 0.2)
    """
    n = checks.count("n_samples", n_samples)
    d = checks.count("n_features", n_features)
    m = checks.count("n_components", n_components)
    kind = checks.choice("corruption_kind", corruption_kind, CORRUPTION_KINDS)
    how = checks.choice("corrupted_rows", corrupted_rows, CORRUPTED_ROWS)
    share, ratio = _corruption_wish(corruption, corruption_ratio)
    error_scale = _error_scale(corruption_scale, kind)
    sigma = checks.per_component("noise", noise, m, low=0.0)
    intercept = checks.per_component("intercepts", 0.0 if intercepts is None else intercepts, m)
    rng = dict(zip(_STREAMS, checks.generators(random_state, len(_STREAMS)), strict=True))

    theta = _models(rng["models"], (m, d), coef, norms, separation)
    component = rng["rows"].permutation(np.repeat(np.arange(m), _row_counts(n, m, weights)))
    X, covariances = _features(rng, component, d, features, degrees_of_freedom, covariance_bound)
    clean = np.take_along_axis(X @ theta.T, component[:, None], axis=1)[:, 0]
    clean += intercept[component] + sigma[component] * rng["noise"].standard_normal(n)

    order = corruption_order(rng["choice"], X, component, how)
    corrupted = choose_rows(order, component, share, ratio)
    errors = draw_errors(
        rng["errors"], kind, error_scale, X, clean, theta, intercept, component, corrupted
    )
    clean_counts = np.bincount(component[~corrupted], minlength=m)
    truth = Truth(
        coef=theta,
        intercept=intercept,
        component=component,
        labels=np.where(corrupted, -1, component),
        corrupted=corrupted,
        corruption=errors.added,
        clean_fraction=clean_counts / n,
        clean_fraction_min=float(clean_counts.min() / n),
        corruption_ratio=ratio_of(int(corrupted.sum()), component[~corrupted], m),
        separation=components.separation(theta),
        local_separation=components.local_separation(theta),
        noise=sigma,
        covariances=covariances,
        wrong_coef=errors.wrong_coef,
        wrong_intercept=errors.wrong_intercept,
    )
    return MLRCData(X=X, y=clean + errors.added, truth=truth)


def _corruption_wish(share: object, ratio: object) -> tuple[float, float | None]:
    """Check the two ways to say how many rows are corrupted; at most one may be used."""
    share = checks.number(
        "corruption", share, low=0.0, below=1.0, allowed="a share of all rows from 0 to below 1"
    )
    if ratio is None:
        return share, None
    if share > 0:
        message = (
            f"corruption={share:g} and corruption_ratio={ratio} both say how many rows are "
            "corrupted. Give one: a share of all rows, or the paper's γ*."
        )
        raise ParameterError(message)
    return share, checks.number("corruption_ratio", ratio, low=0.0, allowed="0 or more, finite")


def _error_scale(scale: object, kind: str) -> float | None:
    """Check the scale of gross errors."""
    if scale is None:
        return None
    if kind != "gross":
        message = (
            f"corruption_scale={scale} is of no use to corruption_kind={kind!r}, whose size "
            "follows from the data. Leave it out, or choose corruption_kind='gross'."
        )
        raise ParameterError(message)
    smallest = np.finfo(np.float64).tiny
    return checks.number("corruption_scale", scale, low=smallest, allowed="positive and finite")


def _row_counts(n: int, m: int, weights: ArrayLike | None) -> NDArray[np.int64]:
    """Round the sizes of the components to whole rows by largest remainder."""
    sizes = checks.per_component("weights", 1.0 if weights is None else weights, m, low=0.0)
    quotas = n * sizes / sizes.sum() if sizes.sum() > 0 else sizes
    counts = np.floor(quotas).astype(np.int64)
    left_over = n - int(counts.sum())
    counts[np.argsort(counts - quotas, kind="stable")[:left_over]] += 1
    if counts.min() < 1 or not sizes.all():
        message = Message(
            Setting("n_samples", n),
            " shared out by ",
            Setting("weights"),
            f" {sizes.tolist()} gives the components {counts.tolist()} rows; each needs at least "
            "one. Raise ",
            Setting("n_samples"),
            ", or the share of the smallest.",
        )
        raise ParameterError(message)
    return counts


def _models(
    rng: np.random.Generator,
    shape: tuple[int, int],
    coef: Any,
    norms: Any,
    separation: Any,
) -> NDArray[np.float64]:
    """Take the components that were given, or draw them."""
    if coef is not None:
        if norms is not None or separation is not None:
            message = (
                f"coef was given together with norms={norms} and separation={separation}, but "
                "it already decides both. Give coef alone, or the other two without it."
            )
            raise ParameterError(message)
        return checks.matrix("coef", coef, shape)
    if norms is not None:
        norms = checks.per_component("norms", norms, shape[0], low=0.0)
    if separation is not None:
        separation = checks.number(
            "separation",
            separation,
            low=np.finfo(np.float64).tiny,
            below=np.nextafter(2.0, 3.0),
            allowed="above 0 and at most 2, the most that the triangle inequality allows",
        )
    return components.draw_components(rng, *shape, norms, separation)


def _features(
    rng: dict[str, np.random.Generator],
    component: NDArray[np.int64],
    n_features: int,
    kind: str,
    degrees_of_freedom: float,
    bound: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Draw X, and the covariance of each component where each has its own."""
    checks.choice("features", kind, FEATURE_KINDS)
    bound = checks.number("covariance_bound", bound, low=1.0, allowed="1 or more, finite")
    checks.number("degrees_of_freedom", degrees_of_freedom, low=0.0, allowed="above 2, finite")
    if bound > 1 and kind == "half-binary":
        message = (
            f"covariance_bound={bound:g} would rotate the columns that features='half-binary' "
            "keeps at 0 and 1. Leave covariance_bound at 1, or choose other features."
        )
        raise ParameterError(message)
    X = draw_features(rng["features"], (len(component), n_features), kind, degrees_of_freedom)
    if bound == 1:
        return X, None
    n_components = int(component.max()) + 1
    factors, covariances = draw_covariances(rng["covariances"], n_components, n_features, bound)
    for j, factor in enumerate(factors):
        rows = component == j
        X[rows] = X[rows] @ factor
    return X, covariances
