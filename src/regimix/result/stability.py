"""Stability: searches of resampled and perturbed rows, and which regimes come back."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.model.laws import resolution
from regimix.result.fit import fit_mixture
from regimix.words import listing, percent, spelled

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# A regime is back if it shares more than half of its rows with one that was found again (Hennig
# calls it dissolved otherwise): no two can then be the same one.
BACK = 0.5
# Regimes that come back less often are called doubtful.
DOUBTFUL = 0.6
# Responses are moved by this part of the noise of their regime: evidence counts distinct rows, and
# the copies in a resample would be one row. It widens the noise by half a percent.
PERTURBED = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """How regimes fare in searches of resampled rows.

    Attributes
    ----------
    jaccard : ndarray of shape (B, m)
        Rows that a regime and its like in a resample have in common, as a share of those that
        either has; among the rows that were drawn.
    n_components : ndarray of shape (B,), int
        Regimes found in each resample; 0 where a line is shown that is none.
    coef, intercept : ndarray of shape (B, m, d), (B, m)
        Of the regimes that are like those of the fit; NaN where one did not come back.
    """

    jaccard: Floats
    n_components: Labels
    coef: Floats
    intercept: Floats

    @property
    def n_resamples(self) -> int:
        """Number of resamples."""
        return int(self.jaccard.shape[0])

    @property
    def recurrence(self) -> Floats:
        """How often each regime comes back, as a share of the resamples, (m,)."""
        return np.asarray((self.jaccard > BACK).mean(axis=0))

    @property
    def mean_jaccard(self) -> Floats:
        """Mean similarity of each regime and its like, (m,)."""
        return np.asarray(self.jaccard.mean(axis=0))

    @property
    def doubtful(self) -> NDArray[np.bool_]:
        """Which regimes come back in less than 60 % of the resamples, (m,)."""
        return np.asarray(self.recurrence < DOUBTFUL)

    @property
    def counts(self) -> dict[int, float]:
        """How often each number of regimes was found, as a share of the resamples."""
        found, times = np.unique(self.n_components, return_counts=True)
        return {int(k): float(t) / self.n_resamples for k, t in zip(found, times, strict=True)}

    @property
    def numbers(self) -> str:
        """How often each number of regimes was found, in words."""
        return numbers_found(self.counts)

    @property
    def coef_deviation(self) -> Floats:
        """Standard deviation of the coefficients of regimes that came back, (m, d)."""
        known = np.isfinite(self.intercept)
        out = np.full(self.coef.shape[1:], np.nan)
        for j in np.flatnonzero(known.sum(axis=0) > 1):
            out[j] = self.coef[known[:, j], j].std(axis=0, ddof=1)
        return out

    def __repr__(self) -> str:
        lines = [f"Stability over {self.n_resamples} resamples; regimes found: {self.numbers}"]
        for j, (back, similar) in enumerate(zip(self.recurrence, self.mean_jaccard, strict=True)):
            doubt = ", doubtful" if self.doubtful[j] else ""
            back = percent(float(back))
            lines.append(f"  regime {j}: back in {back}, mean Jaccard {similar:.2f}{doubt}")
        return "\n".join(lines)


def numbers_found(counts: dict[int, float]) -> str:
    """Say how often each number of regimes was found, "none" where nothing was."""
    said = [f"{spelled(k) if k else 'none'} in {percent(share)}" for k, share in counts.items()]
    return listing(said)


def stability(
    mixture: Mixture,
    X: Any,
    y: Any,
    sample_weight: Any,
    n_resamples: int,
    seed: int,
    n_jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Stability:
    """Search resamples of the rows of a fit; see ``Mixture.stability``."""
    problem = Problem.from_arrays(X, y, sample_weight, fit_intercept=mixture.fit_intercept)
    labels = mixture.assign(problem.X, problem.y)
    step = resolution(problem.y)
    seeds = np.random.SeedSequence(seed).spawn(n_resamples)
    jobs = min(int(effective_n_jobs(n_jobs)), n_resamples)
    found = []
    with threadpool_limits(1, "blas"), Parallel(n_jobs=jobs, return_as="generator") as pool:
        with _interrupts_held() if jobs > 1 else nullcontext():
            searches = pool(
                delayed(_again)(mixture, problem, labels, step, child) for child in seeds
            )
        for one in searches:
            found.append(one)
            if progress is not None:
                progress(len(found), n_resamples)
    jaccard, count, coef, intercept = (np.array(part) for part in zip(*found, strict=True))
    return Stability(jaccard, count, coef, intercept)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while worker processes start.

    They inherit that, and leave Ctrl-C to this process: it would end them with a traceback each.
    """
    set_mask = getattr(signal, "pthread_sigmask", None)  # Windows has none
    if set_mask is None:
        yield
        return
    from multiprocessing import resource_tracker

    # It comes with the first workers, and would let Ctrl-C through before they start.
    resource_tracker.ensure_running()
    before = set_mask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        set_mask(signal.SIG_SETMASK, before)


def _again(
    mixture: Mixture, problem: Problem, labels: Labels, step: float, seed: np.random.SeedSequence
) -> tuple[Floats, int, Floats, Floats]:
    """Search a resample; return similarities, the number of regimes, and matched coefficients."""
    rng = np.random.default_rng(seed)
    weights = problem.row_weights
    chances = weights / weights.sum()
    drawn = rng.choice(problem.n_rows, np.count_nonzero(weights), p=chances)
    X, labels = problem.X[drawn], labels[drawn]
    # Copies of a row count as rows of their own, each moved on its own.
    noise = np.maximum(PERTURBED * np.append(mixture.scale, 0.0)[labels], step / np.sqrt(12.0))
    y = problem.y[drawn] + noise * rng.standard_normal(drawn.size)
    again = search_again(mixture, X, y, rng, n_jobs=None)
    similar = similarities(labels, again.assign(X, y))
    m = mixture.n_components
    whole = np.zeros((m, max(m, again.n_components)))
    whole[: similar.shape[0], : similar.shape[1]] = similar
    mine, other = linear_sum_assignment(-whole)
    coef, intercept = np.full_like(mixture.coef, np.nan), np.full(m, np.nan)
    if again.found_nothing and not mixture.found_nothing:
        return np.zeros(m), 0, coef, intercept
    jaccard = whole[mine, other]
    for j, k in zip(mine, other, strict=True):
        if jaccard[j] > BACK:
            coef[j], intercept[j] = again.coef[k], again.intercept[k]
    return jaccard, 0 if again.found_nothing else again.n_components, coef, intercept


def search_again(
    mixture: Mixture, X: Any, y: Floats, rng: np.random.Generator, **changes: Any
) -> Mixture:
    """Search other rows as those of a fit were searched, with these settings changed."""
    problem = Problem.from_arrays(X, y, fit_intercept=mixture.fit_intercept)
    changes |= {"seed": int(rng.integers(2**31)), "keep_rows": False}
    return fit_mixture(MemoryEngine(problem), replace(mixture.settings, **changes))


def similarities(first: Labels, second: Labels) -> Floats:
    """Return the Jaccard index of each regime of one labelling with each of another."""
    count = (first.max(initial=-1) + 1, second.max(initial=-1) + 1)
    both = np.zeros((count[0] + 1, count[1] + 1))  # outliers last
    np.add.at(both, (first, second), 1.0)
    either = both.sum(axis=1)[:, None] + both.sum(axis=0) - both
    return np.asarray((both / np.maximum(either, 1e-300))[:-1, :-1])
