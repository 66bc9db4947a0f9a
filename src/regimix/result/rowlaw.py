"""What a mixture remembers of the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame
from regimix.engines.base import Engine
from regimix.model.blocks import Labelling, Law, nearest
from regimix.model.labelling import SURE
from regimix.model.laws import resolution
from regimix.model.rows import weighted_fit, weighted_quantile

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine
    from regimix.result.mixture import Mixture

Floats = NDArray[np.float64]

# A covariance matrix is kept up to this many features (512 KiB): no result should be much larger
# than its labels.
MOST_COVARIANCE_FEATURES = 256
MOMENT_ROWS = 8192  # mean and covariance settle long before


@dataclass(frozen=True, eq=False)
class RowLaw:
    """What is remembered of the rows themselves, to draw new ones and to rank terms.

    Attributes
    ----------
    mean, deviation, correlation : ndarray of shape (d,), (d,), (d, d) or None
        Of the features; correlations of up to ``MOST_COVARIANCE_FEATURES`` of them.
    middle : float
        Median of the response.
    r_squared_expected, r_squared_least_squares : float
        R² of the expected response (``predict``, with the gating if there is one) and of least
        squares, both on the same rows, outliers included: all rows, or a random draw of 8,192
        different ones. NaN if the
        response does not vary; for least squares also if there are no more rows than coefficients,
        or more than ``MOST_COVARIANCE_FEATURES`` features.
    values, step : int, float
        Different responses among those rows, and the step of the grid they lie on; 0 without one.
    """

    mean: Floats
    deviation: Floats
    correlation: Floats | None
    middle: float
    r_squared_expected: float = np.nan
    r_squared_least_squares: float = np.nan
    values: int = 0
    step: float = 0.0

    @classmethod
    def of(cls, engine: Engine, seed: int = 0, expected: Floats | None = None) -> RowLaw:
        """Describe the rows of an engine, or a draw of so many that the rest add nothing.

        ``expected`` are the standardised coefficients of the expected response.
        """
        problem = engine.problem
        drawn = engine.sample(MOMENT_ROWS, seed)
        Z = drawn.Z[:, int(problem.fit_intercept) :]
        weights = drawn.weights / drawn.weights.sum()
        fits = [] if expected is None else [expected]
        wide = problem.n_features > MOST_COVARIANCE_FEATURES
        if fits and not wide and np.count_nonzero(weights) > problem.n_columns:
            fits.append(weighted_fit(drawn.Z, drawn.y, weights))
        middle = weights @ drawn.y if problem.fit_intercept else 0.0
        total = weights @ (drawn.y - middle) ** 2
        # A constant response leaves nothing to explain.
        left = [float(weights @ (drawn.y - drawn.Z @ fit) ** 2) for fit in fits if total > 0]
        shares = [*(1 - part / total for part in left), np.nan, np.nan]
        mean = weights @ Z
        Z = Z - mean
        deviation = np.sqrt(weights @ Z**2)
        correlation = None
        if problem.n_features <= MOST_COVARIANCE_FEATURES:
            # A constant column correlates with nothing.
            Z /= np.where(deviation > 0, deviation, 1.0)
            Z *= np.sqrt(weights)[:, None]
            correlation = Z.T @ Z
        middle = weighted_quantile(drawn.y, weights, 0.5)
        return cls(
            mean=problem.center + problem.scale * mean,
            deviation=problem.scale * deviation,
            correlation=correlation,
            middle=float(middle * problem.target_scale + problem.target_center),
            r_squared_expected=float(shares[0]),
            r_squared_least_squares=float(shares[1]),
            values=int(np.unique(drawn.y).size),
            step=resolution(drawn.y) * problem.target_scale,
        )

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw features from the normal law of this mean and covariance."""
        values, vectors = np.linalg.eigh(np.asarray(self.correlation))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normal: Floats = rng.standard_normal((n, values.size)) @ root.T
        return self.mean + self.deviation * normal


Labels = NDArray[np.int64]

# Numbers in an excerpt (2 MB): a picture cannot show more, and a pickle stays small.
MOST_NUMBERS = 250_000
# A row has, beside its features, a response, a label, a number and a weight.
EXTRA_COLUMNS = 4


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Rows of the fit: all of them if they are few, otherwise a uniform draw, in row order.

    Attributes
    ----------
    X, y : ndarray of shape (k, d), (k,)
    labels : ndarray of shape (k,), int
    numbers : ndarray of shape (k,), int
        Where the rows stand in the table, counting from 0.
    complete : bool
        Whether these are all rows (but those of weight zero).
    weights : ndarray of shape (k,) or None
        Their weights, if rows had weights.
    shares : ndarray of shape (k, m) or None
        The shares of the regimes in each row, if a gate was learnt.
    """

    X: Floats
    y: Floats
    labels: Labels
    numbers: Labels
    complete: bool
    weights: Floats | None = None
    shares: Floats | None = None

    @classmethod
    def of(cls, engine: Engine, labelling: Labelling, seed: int) -> Excerpt:
        """Draw by what the rows say: their order and the chunks do not matter."""
        count = excerpt_rows(engine.problem)
        drawn = engine.draw(count, seed)
        drawn = drawn.take(np.argsort(drawn.numbers[:count], kind="stable"))
        return cls(
            X=drawn.X,
            y=drawn.y,
            labels=labelling(engine.block_of(drawn)),
            numbers=drawn.numbers,
            complete=engine.problem.n_present <= count,
            weights=drawn.weights if engine.problem.weighted else None,
        )


def excerpt_rows(frame: Frame) -> int:
    """Return how many rows an excerpt has at most."""
    return max(1, MOST_NUMBERS // (frame.n_features + EXTRA_COLUMNS))


def row_counts(
    block: MemoryEngine, labelling: Labelling, law: Law, out: Labels | None = None
) -> Labels:
    """Count the rows of each label, then the outliers, and last the rows that are in doubt.

    Repetitions count, absent rows do not. ``out`` takes the labels of all rows: one pass does both.
    """
    labels, m, weights = labelling(block), len(law.scale), block.problem.weights
    if out is not None:
        block.own(out)[:] = labels
    if weights is not None and not block.problem.counts:
        weights = (weights > 0).astype(np.float64)  # importances: a row is a row
    doubtful = block.once(nearest, law)[2] < SURE
    in_doubt = np.count_nonzero(doubtful) if weights is None else weights[doubtful].sum()
    counts = np.roll(np.bincount(labels + 1, weights, minlength=m + 1), -1)
    return np.append(counts, round(in_doubt)).astype(np.int64)


# Rows of the fit have the mean that it remembers, up to rounding (of single precision, perhaps).
SAME_MEAN = 1e-5
# What the labels of the fit may lose over the likeliest ones of its rows, in nats for each row:
# next to nothing, or a little where rows were trimmed or sorted. In another order they lose more.
SUITS, SUITS_TRIMMED, MOST_LOST = 0.05, 0.3, 20.0


def are_fitted(mixture: Mixture, X: NDArray[Any], y: Floats, shares: Any = None) -> bool:
    """Whether these are the rows of the fit, as far as the mixture can tell.

    By those that it kept; or else by the spread of the features and by the labels, which must suit
    the rows one by one.
    """
    if y.size != mixture.n_rows:
        return False
    excerpt = mixture.excerpt
    if excerpt is not None:
        same = np.array_equal(y[excerpt.numbers], excerpt.y)
        return same and np.array_equal(X[excerpt.numbers], excerpt.X)
    law = mixture.rows
    if law is not None and mixture.counts_once and y.size <= MOMENT_ROWS:
        # They were described by all rows.
        off = np.abs(np.mean(X, axis=0, dtype=np.float64) - law.mean)
        if (off > SAME_MEAN * (law.deviation + np.abs(law.mean))).any():
            return False
    return mixture.labels.size != y.size or _suits(mixture, X, y, shares)


def _suits(mixture: Mixture, X: NDArray[Any], y: Floats, shares: Any) -> bool:
    """Whether the labels of the fit are about the likeliest ones of these rows."""
    joint = mixture.log_densities(X, y, shares)
    # Without its columns, a gate cannot be asked what it did to the labels.
    unasked = mixture.gate is not None and shares is None
    with np.errstate(invalid="ignore"):
        lost = np.max(joint, axis=1) - joint[np.arange(y.size), mixture.labels]
    limit = SUITS_TRIMMED if mixture.fitted_by_label or unasked else SUITS
    return float(np.mean(np.minimum(lost, MOST_LOST))) <= limit
