"""What would have been found: regimes planted in draws from a fit, as a search sees them.

An audit can judge only the regimes that were found. Whether another one would have been, depends on
the rows that it has and on how far it is from the others; that is measured here by simulation. For
many features that are close to normal, state evolution adds a limit that no distance overcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from regimix.errors import ParameterError, read_count
from regimix.result.mixture import Mixture
from regimix.result.stability import search_again, similarities
from regimix.search.settings import read_seed
from regimix.theory.definitions import RANK_TOLERANCE
from regimix.theory.state_evolution import passing_rows
from regimix.words import number, percent

Floats = NDArray[np.float64]

# Distances that are tried, from the largest: root mean square of the difference to the largest
# regime, over the standard deviation of the response (without outliers).
DISTANCES = (3.2, 1.6, 0.8, 0.4, 0.2, 0.1, 0.05)
# A planted regime is found if one that is found shares more than half of the rows of both with it
# (Jaccard), and more than it shares with the planted and the largest regime taken together: else
# the two may have come back as one.
FOUND = 0.5
# State evolution is a law of many features that are close to normal: so many at least, with a mean
# fourth moment between these (a normal law has 3, a uniform one 1.8).
FEWEST_FEATURES, FOURTH_MOMENTS = 10, (2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Detectable:
    """The smallest distance at which a further regime would have been found, for each share.

    Attributes
    ----------
    shares, distances : ndarray of shape (k,)
        Shares of the rows, and distances from the largest regime in standard deviations of the
        response (without outliers), at which at least half of the planted regimes were found; NaN:
        at none.
    rates : ndarray of shape (k, 7)
        How often planted regimes were found, for the distances of ``tried``; NaN where a larger
        distance was too small already.
    tried : ndarray of shape (7,)
    n_trials : int
    smallest_share : float
        The share of the rows below which message passing finds no regime at any distance, by state
        evolution (``passing_rows``); NaN where that does not apply: fewer than ten features, or
        features far from normal.
    """

    shares: Floats
    distances: Floats
    rates: Floats
    tried: Floats
    n_trials: int
    smallest_share: float = np.nan

    def __str__(self) -> str:
        lines = ["A further regime would have been found from this distance to the largest on:", ""]
        lines.append("share of rows   distance (standard deviations of the response)")
        for share, distance in zip(self.shares, self.distances, strict=True):
            shown = number(float(distance)) if np.isfinite(distance) else "at none that was tried"
            lines.append(f"{percent(float(share)):>13}   {shown}")
        lines += ["", f"({self.n_trials} simulations each)"]
        if np.isfinite(self.smallest_share):
            share = percent(self.smallest_share)
            lines += ["", f"Below {share} of the rows, message passing finds no further regime at"]
            lines += ["any distance (state evolution, for normal features)."]
        return "\n".join(lines)


def detectable(
    mixture: Any,
    X: Any,
    *,
    shares: Sequence[float] = (0.1, 0.25, 0.5),
    n_trials: int = 6,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Detectable:
    """Find the smallest regime, by share and distance, that a search of such rows would find.

    Responses are drawn from the fit at the features X. Some rows are then given to a regime that
    differs from the largest one in a random direction, and all are searched as in the fit, except
    that the number of regimes is open.

    Parameters
    ----------
    mixture : Mixture or fitted MixedLinearRegression
    X : array of shape (n, d)
        The features of the fit.
    shares : sequence of float, default=(0.1, 0.25, 0.5)
        Of the planted regime.
    n_trials : int, default=6
        Simulations for each share and distance.
    random_state : int, RandomState, Generator or None
    n_jobs : int, optional
    progress : callable, optional
        Called with the number of shares that are done, and that of all.
    """
    known = mixture_of(mixture)
    values = np.asarray(shares, dtype=np.float64)
    if values.ndim != 1 or not values.size or values.min() <= 0 or values.max() >= 1:
        raise ParameterError(f"shares must be numbers between 0 and 1; got {shares!r}.")
    trials, seed = read_count("n_trials", n_trials), read_seed(random_state)
    features = np.asarray(X, dtype=np.float64)
    jobs = min(int(effective_n_jobs(n_jobs)), trials)
    rates = np.full((values.size, len(DISTANCES)), np.nan)
    with threadpool_limits(1, "blas"), Parallel(n_jobs=jobs) as pool:
        for i, share in enumerate(values):
            for k, distance in enumerate(DISTANCES):
                seeds = np.random.SeedSequence([seed, i, k]).spawn(trials)
                trial = (known, features, float(share), distance)
                rates[i, k] = np.mean(pool(delayed(_trial)(*trial, child) for child in seeds))
                if rates[i, k] < 0.5:
                    break
            if progress is not None:
                progress(i + 1, values.size)
    enough = np.where(rates >= 0.5, DISTANCES, np.inf).min(axis=1)
    distances = np.where(np.isfinite(enough), enough, np.nan)
    limit = _smallest_share(known, features, seed)
    return Detectable(values, distances, rates, np.array(DISTANCES), trials, limit)


def _smallest_share(mixture: Mixture, X: Floats, seed: int) -> float:
    """Compute the smallest share of a regime that message passing finds, if that can be said.

    The regimes that were found are taken out of the way, as in the search: a further one is among
    the outliers, and as large as the response is.
    """
    n, d = X.shape
    if d < FEWEST_FEATURES:
        return np.nan
    values, vectors = np.linalg.eigh(np.cov(X.T))
    if values[0] <= RANK_TOLERANCE * values[-1]:
        return np.nan
    white = (X - X.mean(axis=0)) @ (vectors / np.sqrt(values))
    if not FOURTH_MOMENTS[0] <= float(np.mean(white**4)) <= FOURTH_MOMENTS[1]:
        return np.nan
    _, y, labels = mixture.sample(random_state=np.random.default_rng(seed), X=X)
    width = d + int(mixture.fit_intercept)
    outliers = n * max(0.0, 1.0 - float(np.sum(mixture.weights))) / width
    noise = float(mixture.scale[0]) / spread_of(y, labels)
    return float(min(1.0, passing_rows(outliers, noise=noise) * width / n))


def mixture_of(model: Any) -> Mixture:
    """Return the mixture of a fitted estimator, or the mixture itself."""
    known = getattr(model, "mixture_", model)
    if not isinstance(known, Mixture):
        raise ParameterError(
            "this needs a Mixture or a fitted MixedLinearRegression; got "
            f"{type(model).__name__}. Call fit(X, y) first; of a pipeline, pass the last step "
            "and the rows as it sees them."
        )
    return known


def spread_of(y: Floats, labels: NDArray[np.int64]) -> float:
    """Return the standard deviation of the responses that are no outliers; one if it is zero."""
    clean = y[labels >= 0]
    return float(np.std(clean if clean.size else y)) or 1.0


def _trial(
    mixture: Mixture, X: Floats, share: float, distance: float, seed: np.random.SeedSequence
) -> bool:
    """Plant a regime in a draw from the fit; say whether a search finds it."""
    rng = np.random.default_rng(seed)
    _, y, drawn = mixture.sample(random_state=rng, X=X)
    planted = rng.random(len(X)) < share
    deviation = X.std(axis=0)
    steep = rng.standard_normal(X.shape[1]) / np.where(deviation > 0, deviation, 1.0)
    # Centred first: beside a large constant column the rest would be lost in rounding.
    away = (X - X.mean(axis=0) if mixture.fit_intercept else X) @ steep
    if mixture.fit_intercept:
        away += rng.standard_normal() * np.sqrt(X.shape[1])
    away *= distance * spread_of(y, drawn) / max(float(np.sqrt(np.mean(away**2))), 1e-300)
    line = mixture.predict_components(X)[:, 0] + away
    y[planted] = (line + mixture.scale[0] * rng.standard_normal(len(X)))[planted]
    again = search_again(mixture, X, y, rng, n_components=None)
    if again.found_nothing:
        return False
    labels = again.assign(X, y)
    # One group of rows beside the regimes; no row of it, no similarity.
    alone, merged = (
        similarities(np.where(rows, 0, -1), labels).sum(axis=0)
        for rows in (planted, planted | (drawn == 0))
    )
    return bool(((alone > FOUND) & (alone > merged)).any())
