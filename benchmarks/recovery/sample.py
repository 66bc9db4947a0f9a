"""Draw the data of a cell, with its truth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Floats
from benchmarks.recovery.cells import Cell

GROSS = 20.0  # standard deviation of what is added to a grossly wrong response
DEGREES_OF_FREEDOM = 5


@dataclass(frozen=True)
class Sample:
    """Features (n, d), responses (n,), the components, and the component of each row, −1 = none."""

    X: Floats
    y: Floats
    coef: Floats
    intercept: Floats
    labels: NDArray[np.int64]


def draw(cell: Cell, seed: int) -> Sample:
    """Draw the data of a cell and a seed; cells of one shape share their random numbers."""
    rng = np.random.default_rng([seed, cell.d, cell.m, cell.n])
    coef = rng.standard_normal((cell.m, cell.d))
    intercept = cell.intercept_scale * rng.standard_normal(cell.m)
    labels = np.repeat(np.arange(cell.m), _sizes(cell))
    X = _features(cell, labels, rng)
    signal = np.einsum("ij,ij->i", X, coef[labels]) + intercept[labels]
    noise = cell.noise
    if cell.signal_to_noise is not None:
        noise, factor = 1.0, np.sqrt(cell.signal_to_noise) / signal.std()
        coef, intercept, signal = coef * factor, intercept * factor, signal * factor
    y = signal + noise * rng.standard_normal(cell.n)
    wrong = rng.permutation(cell.n)[: round(cell.outliers * cell.n)]
    y[wrong] = _wrong_responses(cell.kind, X[wrong], y, y[wrong], noise, rng)
    labels[wrong] = -1
    order = rng.permutation(cell.n)
    return Sample(X[order], y[order], coef, intercept, labels[order])


def _sizes(cell: Cell) -> NDArray[np.int64]:
    shares = np.asarray(cell.shares)
    sizes = np.floor(shares / shares.sum() * cell.n).astype(np.int64)
    sizes[0] += cell.n - sizes.sum()
    return sizes


def _features(cell: Cell, labels: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    X = _independent_rows(cell, rng)
    if cell.condition > 1:
        spread = np.sqrt(np.geomspace(1, cell.condition, cell.d))
        for j in range(cell.m):
            basis = np.linalg.qr(rng.standard_normal((cell.d, cell.d)))[0]
            X[labels == j] = (X[labels == j] @ basis) * spread @ basis.T
    return X


def _independent_rows(cell: Cell, rng: np.random.Generator) -> Floats:
    shape = (cell.n, cell.d)
    if cell.features == "student":
        return rng.standard_t(DEGREES_OF_FREEDOM, shape)
    X = rng.standard_normal(shape)
    if cell.features == "lognormal":
        return np.exp(X)
    if cell.features == "half":
        half = (cell.d + 1) // 2
        X[:, :half] = rng.integers(0, 2, (cell.n, half))
    elif cell.features == "elliptical":
        X /= np.sqrt(rng.chisquare(DEGREES_OF_FREEDOM, (cell.n, 1)) / DEGREES_OF_FREEDOM)
    else:
        assert cell.features == "gaussian", cell.features
    return X


def _wrong_responses(
    kind: str, X: Floats, y: Floats, right: Floats, noise: float, rng: np.random.Generator
) -> Floats:
    """Return the responses of the outliers, whose features are X and right responses ``right``."""
    if kind == "redraw":
        return y.std() * rng.standard_normal(len(X))
    if kind == "adversarial":
        wrong_coef = rng.standard_normal(X.shape[1])
        return X @ wrong_coef + noise * rng.standard_normal(len(X))
    return right + GROSS * rng.standard_normal(len(X))
