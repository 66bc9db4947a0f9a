"""Bootstrap: refits to resampled rows; what the errors are if no formula is trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import read_choice
from regimix.model.blocks import Law, mixture_sums
from regimix.model.numbers import MODEL
from regimix.model.polish import maximised
from regimix.result.inference import estimates, read_level
from regimix.search.finish import assign_and_trim
from regimix.search.likelihood import assign_nearest
from regimix.search.settings import Settings
from regimix.trimmed.ilts import solved
from regimix.words import count

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Refit = Callable[[MemoryEngine], Law]

# A refit is over when no coefficient moves by more than this part of its error, or after so many
# rounds of EM.
SETTLED = 0.01
MOST_ROUNDS = 100
# A component with a smaller share of the rows than this part of what it had is gone.
VANISHED = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """Coefficients refitted to resampled rows, in the user's units.

    Attributes
    ----------
    coef, intercept : ndarray of shape (B, m, d), (B, m)
        NaN where a component was lost in a resample, and where the rows of the fit do not determine
        a coefficient at all (``Mixture.inference``).
    estimate : ndarray of shape (m, d + 1)
        What was fitted to all rows, the intercept last; (m, d) without one.
    failures : ndarray of shape (m,), int
        In how many resamples each component vanished, became another one, or had too few rows to be
        refitted; those do not count.
    level : float
        Of ``conf_int()``.
    fit_intercept : bool
    """

    coef: Floats
    intercept: Floats
    estimate: Floats
    failures: Labels
    level: float
    fit_intercept: bool

    @property
    def n_resamples(self) -> int:
        """Number of resamples."""
        return int(self.coef.shape[0])

    @property
    def values(self) -> Floats:
        """Coefficients with their intercept last, (B, m, d + 1); (B, m, d) without one."""
        if not self.fit_intercept:
            return self.coef
        return np.concatenate([self.coef, self.intercept[..., None]], axis=-1)

    @property
    def standard_error(self) -> Floats:
        """Standard deviations over the resamples, (m, d + 1), the intercept last."""
        return self._over_resamples(_deviation)

    def conf_int(
        self, level: float | None = None, kind: Literal["percentile", "basic"] = "percentile"
    ) -> Floats:
        """Return confidence intervals, (m, d + 1, 2), the intercept last.

        ``"percentile"``: from quantile to quantile of the refits. ``"basic"``: the same, mirrored
        at the estimate.
        """
        read_choice("kind", kind, ("percentile", "basic"))
        level = read_level(self.level if level is None else level)
        low, high = (
            self._over_resamples(lambda kept, tail=tail: np.quantile(kept, tail, axis=0))
            for tail in (0.5 - level / 2, 0.5 + level / 2)
        )
        if kind == "basic":
            low, high = 2 * self.estimate - high, 2 * self.estimate - low
        return np.stack([low, high], axis=-1)

    def _over_resamples(self, statistic: Any) -> Floats:
        """Apply a statistic to the resamples in which each component is there."""
        values = self.values
        result = np.full(values.shape[1:], np.nan)
        for j in range(values.shape[1]):
            # A lost component has no number at all; a coefficient that is open is NaN throughout.
            kept = values[np.isfinite(values[:, j]).any(axis=-1), j]
            if len(kept) > 1:
                result[j] = statistic(kept)
        return result

    def __repr__(self) -> str:
        lost = int(self.failures.sum())
        said = f"; {count(lost, 'time')} one was lost" if lost else ""
        regimes = count(self.coef.shape[1], "regime")
        return f"Bootstrap of {count(self.n_resamples, 'resample')}, {regimes}{said}"


def _deviation(values: Floats) -> Floats:
    """Return the deviation of each coefficient, whose square need not be a number."""
    unit = np.maximum(np.abs(values).max(axis=0), np.finfo(np.float64).tiny)
    return np.asarray((values / unit).std(axis=0, ddof=1) * unit)


def bootstrap(
    mixture: Mixture,
    X: Any,
    y: Any,
    sample_weight: Any,
    n_resamples: int,
    level: float,
    seed: int,
    n_jobs: int | None = None,
) -> Bootstrap:
    """Refit a mixture to resamples of its rows; see ``Mixture.bootstrap``."""
    problem = Problem.from_arrays(X, y, sample_weight, fit_intercept=mixture.fit_intercept)
    law, labels = _law(mixture, problem), _labels(mixture, problem)
    refit = _refitter(problem, law, labels, mixture.settings)
    seeds = np.random.SeedSequence(seed).spawn(n_resamples)
    jobs = int(effective_n_jobs(n_jobs))
    with threadpool_limits(1, "blas"), Parallel(n_jobs=jobs, prefer="threads") as pool:
        found = pool(delayed(_resample)(problem, law, labels, refit, child) for child in seeds)
    thetas = np.stack([thetas for thetas, _ in found])
    lost = np.stack([gone for _, gone in found])
    coef, intercept = problem.to_user(thetas)
    coef[lost], intercept[lost] = np.nan, np.nan
    if mixture.inference is not None:
        # Refits leave what the rows leave open where it was: that is not certainty.
        coef[:, np.isnan(mixture.inference.standard_error)] = np.nan
        if mixture.fit_intercept:
            intercept[:, np.isnan(mixture.inference.intercept_error)] = np.nan
    return Bootstrap(
        coef=coef,
        intercept=intercept,
        estimate=estimates(mixture),
        failures=lost.sum(axis=0),
        level=level,
        fit_intercept=mixture.fit_intercept,
    )


def _law(mixture: Mixture, problem: Problem) -> Law:
    """Translate a mixture into the standardised units of a table."""
    floor = np.finfo(np.float64).tiny
    density = mixture.background * problem.target_scale
    return Law(
        thetas=problem.from_user(mixture.coef, mixture.intercept),
        scale=np.maximum(mixture.scale / problem.target_scale, MODEL.smallest_noise),
        share=np.maximum(mixture.weights, floor),
        log_background=float(np.log(density)) if density > 0 else -np.inf,
        middle=(mixture.background_middle - problem.target_center) / problem.target_scale,
        width=mixture.background_width / problem.target_scale,
        degrees=mixture.noise_degrees,
        outlier_degrees=mixture.background_degrees,
    )


def _labels(mixture: Mixture, problem: Problem) -> Labels:
    """Label the rows: as the fit did where its labels are the fit, else by what is likeliest."""
    if mixture.fitted_by_label:
        excerpt = mixture.excerpt
        for known in (mixture.labels, None if excerpt is None else excerpt.labels):
            if known is not None and known.size == problem.n_rows:
                return known
    return mixture.assign(problem.X, problem.y)


def _resample(
    problem: Problem, law: Law, labels: Labels, refit: Refit, seed: np.random.SeedSequence
) -> tuple[Floats, NDArray[np.bool_]]:
    """Draw rows and refit; return coefficients in the order of the law, and which are lost."""
    counts = _draw(problem, labels, np.random.default_rng(seed))
    drawn = replace(problem, weights=counts, mass=float(counts.sum()))
    again = refit(MemoryEngine(drawn))
    thetas, lost, size = _matched(law, again, drawn.mass)
    return thetas, lost | _too_few(drawn, labels, size)


def _too_few(drawn: Problem, labels: Labels, size: Floats) -> NDArray[np.bool_]:
    """Tell which components have no row to spare, or repeat fewer rows than coefficients.

    A refit leaves those where they were, in part or altogether, and would count as agreement.
    """
    assert drawn.weights is not None
    different = np.bincount(labels[(labels >= 0) & (drawn.weights > 0)], minlength=size.size)
    return np.asarray((size <= drawn.n_columns + 1) | (different < drawn.n_columns))


def _refitter(problem: Problem, law: Law, labels: Labels, settings: Settings) -> Refit:
    """Return what refits drawn rows as the fit itself did in the end."""
    if settings.search == "net":
        # Algorithm 2 ends with fits to fewer rows than it then removes. What is resampled is least
        # squares on the removed rows, whose errors are recorded, moved to where the fit is.
        shift = law.thetas - _fit_labelled(MemoryEngine(problem), law, labels, 0.0).thetas
        return lambda engine: _fit_labelled(engine, law, labels, shift)
    if settings.search == "partition":
        return lambda engine: assign_nearest(engine, law)[0]
    if settings.outliers and settings.keep is not None:
        keep = settings.keep
        return lambda engine: assign_and_trim(engine, law, keep)[0]
    return lambda engine: _settle(engine, law)


def _fit_labelled(engine: MemoryEngine, law: Law, labels: Labels, shift: Floats | float) -> Law:
    """Fit each component to the rows that carry its label, and move it."""
    thetas, size = [], []
    for j, theta in enumerate(law.thetas):
        rows = np.flatnonzero(labels == j)
        weights = None if engine.problem.weights is None else engine.problem.weights[rows]
        sums = engine.sums(rows, engine.residuals_of(rows, theta), weights)
        thetas.append(solved(sums, theta)[0])
        size.append(float(rows.size if weights is None else weights.sum()))
    return replace(law, thetas=np.stack(thetas) + shift, share=np.array(size) / engine.problem.mass)


def _draw(problem: Problem, labels: Labels, rng: np.random.Generator) -> Floats:
    """Draw rows with replacement among those of each label; return the new weights.

    Whole-number weights are repetitions, and repetitions are drawn. Any others are importances of
    the rows that are drawn.
    """
    weights = problem.row_weights
    drawn = np.zeros(labels.size)
    for label in np.unique(labels):
        rows = np.flatnonzero((labels == label) & (weights > 0))
        if rows.size:
            chances = weights[rows] if problem.counts else np.ones(rows.size)
            drawn[rows] = rng.multinomial(round(chances.sum()), chances / chances.sum())
    return drawn if problem.counts else drawn * weights


def _settle(engine: MemoryEngine, law: Law) -> Law:
    """Run EM until no coefficient moves by a noticeable part of its error."""
    for _ in range(MOST_ROUNDS):
        again = maximised(law, mixture_sums(engine, law), engine.problem.mass)
        error = again.scale / np.sqrt(np.maximum(again.share * engine.problem.mass, 1.0))
        # Standardised features have a spread near one: this is about the error of a coefficient.
        still = np.abs(again.thetas - law.thetas).max(axis=1) <= SETTLED * error
        law = again
        if still.all():
            break
    return law


def _matched(law: Law, again: Law, mass: float) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Put refitted components in the order of those they came from; say which are lost.

    Returns their sizes too: what they have of the rows, whose weight is ``mass``.
    A component is lost if next to no rows are left to it, or if it is nearer to another one.
    """
    gaps = np.linalg.norm(again.thetas[:, None] - law.thetas, axis=2)
    refitted, original = linear_sum_assignment(gaps)
    order = np.empty(len(refitted), dtype=np.intp)
    order[original] = refitted
    lost = gaps[order].argmin(axis=1) != np.arange(len(order))
    lost |= again.share[order] < VANISHED * law.share
    return again.thetas[order], lost, again.share[order] * mass
