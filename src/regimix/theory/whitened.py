"""The rows of a fit as the paper likes them: whitened, a bounded sample, with their regimes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.model.whiten import whiten
from regimix.result.mixture import Mixture
from regimix.theory.separation import nearest_distances

__all__ = ["WhitenedFit", "whitened_fit"]

Floats = NDArray[np.float64]

# Rows and numbers that are looked at, whatever the size of the table.
MOST_ROWS = 20_000
MOST_NUMBERS = 2_000_000
# Enough rows to translate coefficients: the equations are exact.
TRANSLATION_ROWS = 2_000


@dataclass(frozen=True, eq=False)
class WhitenedFit:
    """A sample of rows in whitened coordinates, and a mixture in the same.

    Attributes
    ----------
    X : ndarray of shape (k, p)
        Whitened features, behind a constant column if there is an intercept.
    y : ndarray of shape (k,)
        Response in units of its own spread, around its middle if there is an intercept.
    weights : ndarray of shape (k,)
        How many rows of the table are equal to each.
    labels : ndarray of shape (k,)
        Regime of each row, -1 for outliers.
    coef : ndarray of shape (m, p)
    scale : ndarray of shape (m,)
    shares : ndarray of shape (m,)
        τ*_(j), the share of each regime among all rows of the table.
    outlier_share : float
        The share of rows in no regime.
    intercept : bool
        Whether the first column is constant.
    n_rows : int
        Rows of the whole table.
    complete : bool
        Whether the sample is all of it.
    """

    X: Floats
    y: Floats
    weights: Floats
    labels: NDArray[np.int64]
    coef: Floats
    scale: Floats
    shares: Floats
    outlier_share: float
    intercept: bool
    n_rows: int
    complete: bool

    @property
    def features(self) -> Floats:
        """Whitened features without the constant column."""
        return self.X[:, int(self.intercept) :]

    @property
    def slopes(self) -> Floats:
        """Coefficients without the intercept."""
        return self.coef[:, int(self.intercept) :]

    @property
    def room(self) -> Floats:
        """Distance of each regime to the nearest other; alone, its own length; never zero."""
        nearest = nearest_distances(self.coef)
        alone = np.linalg.norm(self.coef, axis=1)
        room = np.where(np.isfinite(nearest), nearest, alone)
        return np.maximum(room, np.finfo(np.float64).tiny)


def whitened_fit(mixture: Mixture, X: Any, y: Any) -> WhitenedFit:
    """Label all rows, draw some, whiten those and translate the mixture into their coordinates."""
    labels = mixture.assign(X, y)
    problem = Problem.from_arrays(X, y, fit_intercept=mixture.fit_intercept)
    engine = MemoryEngine(problem)
    limit = min(MOST_ROWS, max(1000, MOST_NUMBERS // problem.n_columns))
    picked = engine.draw(limit, mixture.seed).distinct(limit).numbers
    sample = engine.sample(limit, mixture.seed)
    intercept = problem.fit_intercept
    whitening = whiten(sample, intercept=intercept)
    features = whitening.apply(sample.Z)
    design = np.column_stack([np.ones((len(picked), int(intercept))), features])
    if not design.shape[1]:  # nothing varies and there is no intercept
        design = np.zeros((len(picked), 1))
    filled = np.bincount(labels + 1, minlength=len(mixture.coef) + 1)
    some = slice(0, max(TRANSLATION_ROWS, 2 * design.shape[1]))
    theta = problem.from_user(mixture.coef, mixture.intercept)
    wanted = sample.Z[some] @ theta.T
    return WhitenedFit(
        X=design,
        y=sample.y,
        weights=sample.weights,
        labels=labels[picked],
        coef=np.asarray(np.linalg.lstsq(design[some], wanted, rcond=None)[0].T, dtype=np.float64),
        scale=mixture.scale / problem.target_scale,
        shares=filled[1:] / labels.size,
        outlier_share=float(filled[0] / labels.size),
        intercept=intercept,
        n_rows=problem.n_rows,
        complete=len(picked) < limit or limit >= problem.n_rows,
    )
