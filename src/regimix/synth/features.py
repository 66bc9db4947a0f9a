"""The rows of X: isotropic draws of several kinds, and one covariance per component."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regimix.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FEATURE_KINDS", "draw_covariances", "draw_features", "random_frame"]

FEATURE_KINDS = ("gaussian", "student", "student-elliptical", "lognormal", "half-binary")

# exp(N(0, 1)) has this mean and variance; subtracting and dividing makes it standard.
_LOGNORMAL_MEAN = np.exp(0.5)
_LOGNORMAL_VARIANCE = np.expm1(1.0) * np.e


def draw_features(
    rng: np.random.Generator, shape: tuple[int, int], kind: str, degrees_of_freedom: float
) -> NDArray[np.float64]:
    """Draw n rows of d features; all kinds but ``half-binary`` have mean 0 and covariance I."""
    n_samples, n_features = shape
    if kind == "gaussian":
        return rng.standard_normal(shape)
    if kind == "lognormal":
        X = np.exp(rng.standard_normal(shape))
        X -= _LOGNORMAL_MEAN
        X /= np.sqrt(_LOGNORMAL_VARIANCE)
        return X
    if kind == "half-binary":
        X = rng.standard_normal(shape)
        # The first half, rounded down: at least one column stays continuous, so that two
        # different models never agree on a row.
        n_binary = n_features // 2
        X[:, :n_binary] = rng.integers(2, size=(n_samples, n_binary))
        return X
    if degrees_of_freedom <= 2:
        message = (
            f"degrees_of_freedom={degrees_of_freedom:g} has no finite variance to scale to one. "
            f"Features of kind {kind!r} need more than 2."
        )
        raise ParameterError(message)
    unit_variance = np.sqrt((degrees_of_freedom - 2) / degrees_of_freedom)
    if kind == "student":
        X = rng.standard_t(degrees_of_freedom, size=shape)
    else:
        X = rng.standard_normal(shape)
        X /= np.sqrt(rng.chisquare(degrees_of_freedom, size=(n_samples, 1)) / degrees_of_freedom)
    X *= unit_variance
    return X


def draw_covariances(
    rng: np.random.Generator, n_components: int, n_features: int, bound: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw a covariance per component with I ⪯ Σ_j ⪯ bound·I (Corollary 8, cor:1).

    Both ends are eigenvalues where d ≥ 2 (the condition number is ``bound``), the others are
    uniform on the logarithmic scale, and the eigenvectors are a random rotation.

    Returns
    -------
    factors : ndarray of shape (m, d, d)
        A_j with A_jᵀ A_j = Σ_j: isotropic rows times A_j have covariance Σ_j.
    covariances : ndarray of shape (m, d, d)
        Σ_j.
    """
    factors = np.empty((n_components, n_features, n_features))
    for factor in factors:
        exponents = rng.uniform(size=n_features)
        if n_features > 1:
            exponents[:2] = 0.0, 1.0
        factor[:] = np.sqrt(bound**exponents)[:, None] * random_frame(rng, n_features, n_features)
    return factors, factors.transpose(0, 2, 1) @ factors


def random_frame(
    rng: np.random.Generator, n_directions: int, n_features: int
) -> NDArray[np.float64]:
    """Return orthonormal rows (n_directions, n_features), uniform over all such frames."""
    q, r = np.linalg.qr(rng.standard_normal((n_features, n_directions)))
    # Householder QR fixes signs by its own convention; tying them to r makes q uniform (Haar).
    frame: NDArray[np.float64] = (q * np.where(np.diagonal(r) < 0, -1.0, 1.0)).T
    return frame
