"""Do the paper's assumptions hold on a user's data? For each a number, a threshold and a verdict.

Only the regimes that were found can be judged; ``theory.detectable`` is about those that were not.
The conditions are sufficient, not necessary: where one fails, nothing is proven, and nothing is
refuted. Thresholds are ours where the paper has unknown constants. They are where its algorithms
were observed to work or to fail, not where a theorem begins; each has its reason here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from regimix.data.problem import Problem
from regimix.engines.base import Sample
from regimix.engines.memory import MemoryEngine
from regimix.errors import DataError
from regimix.model.em import REGIME_GAIN
from regimix.model.numbers import MODEL
from regimix.model.rows import whiten
from regimix.result.answer import WIDTH, Answer, closest, compared_with, slopes_matter_less
from regimix.result.gated import labels_of
from regimix.result.mixture import Mixture
from regimix.search.numbers import SEARCH
from regimix.search.subspace import Subspace, find_subspace
from regimix.synth import nearest_distances
from regimix.theory.bounds import required_rows
from regimix.theory.definitions import affine_error_at, local_separation
from regimix.theory.detectable import Detectable, mixture_of, spread_of
from regimix.theory.detectable import detectable as simulate
from regimix.theory.directions import MOST_MOMENT_FEATURES, FourthMoments
from regimix.theory.regularity import Regularity
from regimix.words import UNKNOWN, count, fixed, number, percent, spelled

Floats = NDArray[np.float64]
Verdict = Literal["holds", "unclear", "not proven"]

# Rows and numbers that are looked at, whatever the size of the table.
MOST_ROWS = 20_000
MOST_NUMBERS = 2_000_000
# Enough rows to translate coefficients: the equations are exact.
TRANSLATION_ROWS = 2_000
# Distance of two regimes over the spread of y: two of equal length at a right angle have 1.4, and
# the starts of Theorem 11 grow like (1/distance)^m.
SEPARATED, CLOSE = 0.5, 0.1
# Noise over the distance to the nearest regime: at 0.05 a few per cent of the rows could belong to
# either, at 0.5 half of them.
QUIET, LOUD = 0.05, 0.5
# Noise below this part of the spread of y is rounding: theorems on rows without noise apply. A fit
# takes no noise to be smaller than a tenth of it.
ROUNDING = 10 * MODEL.smallest_noise
# For one regime alone, noise over the spread of its fitted values: half of the variance is noise.
ALONE = 1.0
# γ*: the paper asks for a small constant, and notes that 1 can hide the smallest regime. From a
# good start, rounds converged with more (three regimes, ten features: all of 20 runs up to 1.5).
LITTLE_CORRUPTION, MUCH_CORRUPTION = 0.5, 1.0
# Rows of the smallest regime over d·max(1, log log d). Three regimes without noise, starts at 0.1
# of the way to the next one, 5 to 50 features: 0 to 35 % of 20 runs converged at 1.5, all at 5.
ENOUGH_ROWS, TOO_FEW_ROWS = 5.0, 2.0
# Fourth moment of a whitened direction: 3 for a normal law, 9 for an exponential one.
LIGHT_TAIL, HEAVY_TAIL = 4.5, 9.0
# Rows from which heavy directions are found, and long rows that serve as such in many dimensions.
MOMENT_ROWS, LONG_ROWS = 4_000, 10
# σ of Corollary 8 beyond what chance puts there.
SAME_SPREAD, OTHER_SPREAD = 2.0, 10.0
# How far the subspace misses a regime, over the distance to the next one: Theorem 4 needs a start
# within a half, and the proof of Theorem 11 leaves half of that to the subspace.
NEAR_SUBSPACE, FAR_SUBSPACE = 0.25, 0.5
# A round is tried from this share of the way to the nearest regime; Theorem 4 allows a half.
DISPLACEMENT = 0.25
# What it leaves of the error should be well below one.
SHRINKS, GROWS = 0.9, 1.0
# It keeps this share of the regime's rows: the theory needs fewer than all.
KEPT_SHARE = 0.9
# Starts tried for each regime, and rows that a round looks at.
DRAWS, ROUND_ROWS = 3, 4_000
# Rows that a worst case looks at, and directions for its certificate.
WORST_ROWS, WORST_DIRECTIONS = 1_000, 1_000


@dataclass(frozen=True)
class Finding:
    """One assumption of the paper, and whether the data meet it."""

    name: str
    verdict: Verdict  #: "holds", "unclear" or "not proven"
    value: float  #: the number behind the verdict
    threshold: float  #: what it is compared with
    words: str  #: what was found, in a sentence or two
    at_least: bool = False  #: whether the value should be at least the threshold; else at most


@dataclass(frozen=True)
class RegimeAudit:
    """The paper's quantities of one regime, estimated in whitened coordinates.

    A distance is the root mean square of the difference of two regimes' fitted values, in units of
    the standard deviation of y, both over the rows that are no outliers. Noise is the regime's own
    (``Mixture.scale``) over that distance, both in units of y; alone, over the standard deviation
    of its fitted values among its rows.
    """

    labelled: float  #: τ*_(j), the share of all rows that are labelled with it
    rows_per_coefficient: float
    distance: float  #: to the nearest regime; nan if there is none
    separation: float  #: Q_j of Definition 1: that distance over the regime's own length
    noise: float  #: over that distance (alone: over the spread of its fitted values)
    contraction: float  #: what one round left of the error from a displaced start; nan if not tried


@dataclass(frozen=True)
class Audit:
    """What the paper assumes, beside what the regimes that were found show; prints as a table."""

    findings: tuple[Finding, ...]  #: one for each assumption
    regimes: tuple[RegimeAudit, ...]
    corruption_ratio: float  #: γ*, outliers over rows of the smallest regime
    n_rows: int  #: rows of the table, repetitions counted
    n_coefficients: int  #: of a regime, with the intercept
    sample_rows: int  #: rows that were looked at
    detectable: Detectable | None = None  #: which other regimes would have been found
    found_nothing: bool = False  #: whether what is judged are lines that are no regimes

    def __getitem__(self, name: str) -> Finding:
        """Look up a finding by its name."""
        by_name = {finding.name: finding for finding in self.findings}
        if name not in by_name:
            raise KeyError(f"no finding is called {name}; there are {', '.join(by_name)}.")
        return by_name[name]

    def __str__(self) -> str:
        size = f"{count(self.n_rows, 'row')}, {count(self.n_coefficients, 'coefficient')}"
        found = f"{count(len(self.regimes), 'regime')} found"
        judged = "the regimes that were found are"
        if self.found_nothing:
            found = f"no regime found, {count(len(self.regimes), 'line')} judged"
            judged = "the line shown is" if len(self.regimes) == 1 else "the lines shown are"
        lines = [f"The paper's assumptions: {size}, {found}"]
        if self.sample_rows < self.n_rows:
            rows = fixed(self.sample_rows, 0)
            lines.append(f"(judged on {rows} of the rows: numbers are estimates)")
        unit = "noise/distance" if len(self.regimes) > 1 else "noise/fitted"
        head = f"regime labelled  rows/coef  distance          Q  {unit:>14}  left by a round"
        lines += ["", head]
        for j, regime in enumerate(self.regimes):
            lines.append(
                f"{j:>6} {percent(regime.labelled):>8}  {_shown(regime.rows_per_coefficient):>9}  "
                f"{_shown(regime.distance):>8}  {_shown(regime.separation):>9}  "
                f"{_shown(regime.noise):>14}  {_shown(regime.contraction):>15}"
            )
        lines += ["", f"{'assumption':<21}{'verdict':<12}{'number':>9}   wanted"]
        for finding in self.findings:
            side = "at least" if finding.at_least else "at most"
            lines.append(
                f"{finding.name:<21}{finding.verdict:<12}{_shown(finding.value):>9}   "
                f"{side} {_shown(finding.threshold)}"
            )
            lines += ["  " + line for line in wrap(finding.words, WIDTH - 2)]
        verdicts = [finding.verdict for finding in self.findings]
        closing = (
            f"In all: {verdicts.count('holds')} hold, {verdicts.count('unclear')} unclear, "
            f"{verdicts.count('not proven')} not proven. The paper's conditions are sufficient, "
            "not necessary, and its constants are unknown: what is wanted here is where its "
            "algorithms were seen to work. Distances are root mean squares in standard deviations "
            "of y, both over the rows that are no outliers. "
            f"Only {judged} judged; "
        )
        others, below = "which others would have been found was simulated:", str(self.detectable)
        if self.detectable is None:
            others = "theory.detectable(model, X) simulates which others would have been found."
            below = ""
        return "\n".join([*lines, "", *wrap(closing + others, WIDTH), "", below]).rstrip()


def _shown(value: float) -> str:
    """Write a number; the score that Algorithm 2 does not have is minus infinity."""
    if np.isinf(value):
        return "unlimited" if value > 0 else UNKNOWN
    return number(value, 3)


def audit(
    mixture: Any,
    X: Any = None,
    y: Any = None,
    detectable: bool | Detectable = False,
    labels: Any = None,
    sample_weight: Any = None,
) -> Audit:
    """Check the paper's assumptions for the regimes that were found, in whitened coordinates.

    It cannot know of regimes that were missed: one regime that meets every assumption may be three
    that the rows do not show. ``theory.detectable`` simulates which would have been found.

    Separation (Definition 1), noise, corruption γ*, rows against d·max(1, log log d)/τ_min
    (Theorems 7 and 11), tails of the features (Lemmas 5 and 6), their covariances (Corollary 8),
    the subspace (Definition 9) and the contraction of a round (Theorem 4). The work is bounded,
    whatever the size of the table, but for one pass that labels all rows: beyond 20,000 rows a
    sample is judged.

    Parameters
    ----------
    mixture : Mixture or fitted MixedLinearRegression
    X, y : array or data frame of shape (n, d), array of shape (n,), optional
        The rows of the fit, or new ones. Default: those that the mixture remembers of its fit
        (``excerpt``).
    detectable : bool or Detectable, default=False
        Whether to simulate which other regimes would have been found, and to print it below; or
        what ``theory.detectable`` has answered already. It takes a hundred searches of the rows.
    labels : array of shape (n,), optional
        The regimes of the rows X, -1 for outliers, where they are known. Default: the likeliest;
        with a gate, which decides, as in ``labels_``. One that was learnt from other columns than
        the features cannot be asked for new rows: pass what ``assign`` says.
    sample_weight : array of shape (n,), optional
        Weights of X and y, as in the fit: whole numbers count repetitions of a row, a row of weight
        zero is absent; rows of other weights, which are relative, count once. Default: one for
        each row of X; without X and y, the weights that the mixture remembers.

    Examples
    --------
    >>> from regimix import MixedLinearRegression, theory
    >>> from regimix.synth import make_mlrc
    >>> X, y, _ = make_mlrc(600, 2, 2, noise=0.01, separation=1.0, random_state=0)
    >>> found = theory.audit(MixedLinearRegression(random_state=0).fit(X, y), X, y)
    >>> found["rows"].verdict
    'holds'
    """
    known = mixture_of(mixture)
    # Many small eigenproblems: several threads would make each one wait.
    with threadpool_limits(limits=1, user_api="blas"):
        judged = _judged(known, _fit_of(known, X, y, labels, sample_weight))
    if detectable is True:
        if X is None and known.excerpt is not None:
            if not known.excerpt.complete:
                raise DataError(
                    "the mixture remembers a part of its rows, and what is found depends on how "
                    "many there are. Pass X and y."
                )
            X = known.excerpt.X
        detectable = simulate(known, X, random_state=known.seed)
    return replace(judged, detectable=detectable or None)


def _fit_of(mixture: Mixture, X: Any, y: Any, labels: Any, sample_weight: Any) -> _WhitenedFit:
    """Whiten the rows given, or those that the mixture remembers."""
    if X is not None and y is not None:
        return _whitened_fit(mixture, X, y, labels, sample_weight)
    excerpt = mixture.excerpt
    if X is not None or y is not None or excerpt is None:
        missing = "X and y are" if X is None and y is None else "X is" if X is None else "y is"
        raise DataError(
            f"there are no rows to audit: {missing} missing, and only a mixture that remembers "
            "rows of its fit (excerpt) can do without both. Pass X and y."
        )
    gated = None if mixture.gate is None else excerpt.labels
    given = excerpt.weights if sample_weight is None else sample_weight
    fit = _whitened_fit(mixture, excerpt.X, excerpt.y, gated, given)
    # An excerpt is a uniform draw: it stands for all rows of the fit.
    return fit if excerpt.complete else replace(fit, n_rows=round(mixture.mass), complete=False)


@dataclass(frozen=True, eq=False)
class _WhitenedFit:
    """A sample of k rows in whitened coordinates, and a mixture of m regimes in the same."""

    X: Floats  # (k, p), whitened features, after a constant column if there is an intercept
    y: Floats  # (k,), in units of its spread without outliers, centred if with an intercept
    weights: Floats  # (k,), how many rows of the table are equal to each
    labels: NDArray[np.int64]  # (k,), -1 for outliers
    coef: Floats  # (m, p)
    scale: Floats  # (m,)
    shares: Floats  # (m,), τ*_(j), among all rows of the table, by label
    outlier_share: float  # likewise
    intercept: bool  # whether the first column is constant
    n_rows: int  # of the whole table; repetitions are rows, absent rows are not
    complete: bool  # whether the sample is all of it

    @property
    def features(self) -> Floats:
        """Whitened features without the constant column."""
        return self.X[:, int(self.intercept) :]

    @property
    def corruption_ratio(self) -> float:
        """γ*, outliers over rows of the smallest regime."""
        smallest = float(self.shares.min())
        if self.outlier_share == 0:
            return 0.0
        return self.outlier_share / smallest if smallest > 0 else np.inf

    @property
    def noiseless(self) -> bool:
        """Whether the rows of regimes lie on them up to rounding, as in the paper's model."""
        return bool((self.scale <= ROUNDING).all())

    @property
    def distance(self) -> Floats:
        """What is near and far, in spreads of y; not 0.

        The distance to the nearest other regime; for one alone the standard deviation of its
        fitted values among its rows, which is what it explains.
        """
        distance = nearest_distances(self.coef)
        if len(self.coef) == 1:
            own = self.labels == 0
            own = own if own.any() else np.ones_like(own)
            fitted, weights = self.X[own] @ self.coef[0], self.weights[own]
            distance[0] = np.sqrt(np.cov(fitted, aweights=weights, ddof=0))
        return np.maximum(distance, np.finfo(np.float64).tiny)

    @property
    def yardstick(self) -> str:
        """What ``distance`` is, in words."""
        alone = "the standard deviation of its fitted values"
        return alone if len(self.coef) == 1 else "the distance to the nearest regime"


def _whitened_fit(
    mixture: Mixture, X: Any, y: Any, labels: Any, sample_weight: Any
) -> _WhitenedFit:
    """Label all rows, draw some, whiten those and translate the mixture into their coordinates.

    The rows that are no outliers set the units: a length is a root mean square over them.
    """
    labels = labels_of(mixture, X, y) if labels is None else np.asarray(labels)
    problem = _counting(X, y, sample_weight, fit_intercept=mixture.fit_intercept)
    n_rows = round(problem.mass)
    engine = MemoryEngine(problem)
    limit = min(MOST_ROWS, max(1000, MOST_NUMBERS // problem.n_columns))
    drawn = engine.draw(limit, mixture.seed).distinct(limit)
    picked = drawn.numbers
    sample = engine.sample(limit, mixture.seed)
    intercept = problem.fit_intercept
    kept = labels[picked] >= 0
    kept = kept if kept.any() else np.ones_like(kept)
    Z = sample.Z[kept]
    inliers = Sample(Z, sample.y[kept], sample.weights[kept])
    features = whiten(inliers, intercept=intercept, robust=False).apply(sample.Z)
    design = np.column_stack([np.ones((len(picked), int(intercept))), features])
    if not design.shape[1]:  # nothing varies and there is no intercept
        design = np.zeros((len(picked), 1))
    filled = np.bincount(labels + 1, problem.weights, minlength=len(mixture.coef) + 1)
    some = slice(0, max(TRANSLATION_ROWS, 2 * design.shape[1]))
    theta = problem.from_user(mixture.coef, mixture.intercept)
    # A sample holds distinct rows; of few rows, all copies are looked at.
    whole = n_rows <= limit
    copies = np.repeat(np.arange(len(picked)), drawn.totals.astype(int) if whole else 1)
    spread = spread_of(sample.y[copies], labels[picked[copies]])
    wanted = Z[some] @ theta.T / spread
    coef = np.linalg.lstsq(design[kept][some], wanted, rcond=None)[0].T
    return _WhitenedFit(
        X=design[copies],
        y=sample.y[copies] / spread,
        weights=np.ones(len(copies)) if whole else sample.weights,
        labels=labels[picked[copies]],
        coef=np.asarray(coef, dtype=np.float64),
        scale=mixture.scale / problem.target_scale / spread,
        shares=filled[1:] / n_rows,
        outlier_share=float(filled[0] / n_rows),
        intercept=intercept,
        n_rows=n_rows,
        complete=whole,
    )


def _counting(X: Any, y: Any, sample_weight: Any, *, fit_intercept: bool) -> Problem:
    """Read rows as often as they count: by repetitions, or once where weights are relative."""
    problem = Problem.from_arrays(X, y, sample_weight, fit_intercept=fit_intercept)
    if problem.counts:
        return problem
    there = np.asarray(sample_weight, dtype=np.float64) > 0
    return Problem.from_arrays(X, y, there.astype(np.float64), fit_intercept=fit_intercept)


def _judged(mixture: Mixture, fit: _WhitenedFit) -> Audit:
    """Judge every assumption, and put the quantities of each regime beside."""
    # As Algorithm 2 would find it on these rows; None if nothing is projected away.
    subspace, m = None, len(fit.coef)
    if fit.features.shape[1] > m:
        kind = "bounded" if mixture.spectrum is None else mixture.spectrum.kind
        rng = np.random.default_rng(0)
        subspace = find_subspace(fit.features, fit.y, fit.weights, m, kind, rng)
    left, foreign = _observe_rounds(fit)
    p = fit.X.shape[1]
    columns = (
        fit.shares,
        fit.shares * fit.n_rows / p,
        np.full(m, np.nan) if m == 1 else fit.distance,
        local_separation(fit.coef),
        fit.scale / fit.distance,
        left,
    )
    return Audit(
        findings=(
            _supported(mixture),
            _separated(fit, closest(mixture)),
            _quiet(fit),
            little_corruption(
                fit.corruption_ratio,
                noiseless=fit.noiseless,
                allowed=Answer(mixture).allows_outliers,
                expected=expected_ratio(mixture),
            ),
            _enough_rows(fit),
            _light_tails(fit),
            _same_features(fit),
            clear_gap(subspace) if mixture.spectrum is None else searched_gap(mixture.spectrum),
            _close_subspace(fit, subspace),
            _contracts(fit, left),
            _guaranteed(fit, foreign),
        ),
        regimes=tuple(RegimeAudit(*row) for row in np.column_stack(columns).tolist()),
        corruption_ratio=fit.corruption_ratio,
        n_rows=fit.n_rows,
        n_coefficients=p,
        sample_rows=fit.n_rows if fit.complete else len(fit.X),
        found_nothing=mixture.found_nothing,
    )


def _at_most(name: str, value: float, good: float, bad: float, words: str) -> Finding:
    """Judge a number that should be small: up to ``good`` it holds, from ``bad`` it does not."""
    clear: Verdict = "holds" if value <= good else "unclear"
    return Finding(name, "not proven" if not value < bad else clear, value, good, words)


def _at_least(name: str, value: float, good: float, bad: float, words: str) -> Finding:
    """Judge a number that should be large."""
    judged = _at_most(name, -value, -good, -bad, words)
    return replace(judged, value=value, threshold=good, at_least=True)


def _supported(mixture: Mixture) -> Finding:
    """Judge whether there is any regime at all."""
    value, limit = float(mixture.evidence), REGIME_GAIN
    m = mixture.n_components
    who = "The regime scores" if m == 1 else "The regimes score"
    words = f"{who} {number(value, 3)} nats more than {compared_with(mixture)} do."
    if slopes_matter_less(mixture):
        words = f"{words} {number(mixture.without_slopes, 3)} of them need no slope."
        value = mixture.evidence_of_features
    shown = "one robust fit to all of them" if m == 1 else f"the best {spelled(m)} lines"
    counted = mixture.settings.search == "net"
    if counted:
        value = limit = np.nan
    if mixture.found_nothing:
        asked = mixture.settings.n_components
        nothing = "The rows support no linear regime"
        if asked is not None and not counted:  # other numbers may be supported
            instead = "the regime" if asked == 1 else f"the {spelled(asked)} regimes"
            nothing = f"Constants score {number(-value, 3)} nats more than {instead} asked for"
        words = f"{nothing}; the model is {shown}, and the rest of this table says little."
    elif counted:
        words = "Algorithm 2 accepted its regimes by counting rows; it has no score."
    elif value < limit:
        they = "it is here because its" if m == 1 else "they are here because their"
        words = f"{words} That is not much; {they} number was given."
    verdict: Verdict = "unclear" if value < limit else "holds"
    verdict = "not proven" if mixture.found_nothing else verdict
    return Finding("regimes", verdict, value, limit, words, at_least=True)


def _separated(fit: _WhitenedFit, pair: tuple[int, int, float] | None) -> Finding:
    """Judge whether the regimes are apart (Definition 1).

    ``pair`` are the two that are fewest standard errors apart: they may be others.
    """
    name = "separation"
    if len(fit.coef) == 1:
        words = (
            "Of one regime alone there is no distance to judge. There may be others that these "
            "rows do not show: theory.detectable simulates which would have been found."
        )
        return Finding(name, "unclear", np.nan, SEPARATED, words, at_least=True)
    distance = fit.distance
    j, k = sorted(np.argsort(distance, kind="stable")[:2].tolist())
    q = float(local_separation(fit.coef).min())
    others = ""
    if pair is not None and (j, k) != pair[:2]:
        others = f" (Beside their standard errors, it is regimes {pair[0]} and {pair[1]}.)"
    words = (
        f"Regimes {j} and {k} are the nearest: {number(distance[j], 2)} standard deviations of y "
        f"apart, root mean square over the rows.{others} The smallest Q of Definition 1 is "
        f"{number(q, 2)}; Theorem 11 tries on the order of (1/(share × Q))^m starts."
    )
    return _at_least(name, float(distance.min()), SEPARATED, CLOSE, words)


def _quiet(fit: _WhitenedFit) -> Finding:
    """Judge whether there is little noise beside the distance of the regimes; MLR-C has none."""
    noise = fit.scale / fit.distance
    j = int(np.argmax(noise))
    value = float(noise[j])
    if len(noise) == 1:
        words = (
            f"The noise of the regime is {number(value, 2)} of {fit.yardstick}, which is what it "
            "explains. If there is no other regime, its coefficients are found up to their "
            "standard errors."
        )
        return _at_most("noise", value, ALONE, np.inf, words)
    words = (
        f"The noise of regime {j} is {number(value, 2)} of {fit.yardstick}. The paper has no "
        "noise; with some, coefficients are found up to their standard errors, and rows near the "
        "crossing of two regimes cannot be told apart."
    )
    return _at_most("noise", value, QUIET, LOUD, words)


def expected_ratio(mixture: Mixture) -> float:
    """Return the share of outliers over that of the smallest regime; with a gate, each row has its.

    A row in doubt counts in parts.
    """
    if mixture.gate is not None or not mixture.outlier_share:
        return 0.0
    return mixture.outlier_share / max(float(mixture.weights.min()), np.finfo(np.float64).tiny)


def little_corruption(
    ratio: float, *, noiseless: bool = False, allowed: bool = True, expected: float = 0.0
) -> Finding:
    """Judge whether outliers are few beside the smallest regime (γ*), if any were allowed.

    The ratio is that of the labels, ``expected`` that of the shares: rows in doubt count in parts.
    More of either is worse.
    """
    shares = ""
    if expected and number(expected, 2) != number(ratio, 2):
        shares = f", by their labels; by the shares of the model, {number(expected, 2)}"
    words = (
        f"There are {number(ratio, 2)} outliers for each row of the smallest regime{shares}. The "
        "paper "
        "needs a small constant, which it does not give; at 1 an adversary could hide that regime."
    )
    if ratio == 0:
        fast = " Convergence is then faster than linear (Theorem 7)." if noiseless else ""
        words = f"No row {'is' if allowed else 'was allowed to be'} an outlier.{fast}"
    worse = max(ratio, expected) if ratio else ratio
    judged = _at_most("corruption", worse, LITTLE_CORRUPTION, MUCH_CORRUPTION, words)
    return replace(judged, value=ratio)


def _enough_rows(fit: _WhitenedFit) -> Finding:
    """Judge n against d·max(1, log log d)/τ_min (Theorems 7 and 11)."""
    smallest, p = float(fit.shares.min()), fit.X.shape[1]
    ratio = fit.n_rows / required_rows(p, smallest) if smallest > 0 else 0.0
    words = (
        f"The smallest regime has about {fixed(smallest * fit.n_rows, 0)} rows for "
        f"{count(p, 'coefficient')}; without noise the paper asks for a constant times "
        f"{number(required_rows(p, 1.0), 3)} and does not give the constant."
    )
    return _at_least("rows", ratio, ENOUGH_ROWS, TOO_FEW_ROWS, words)


def _light_tails(fit: _WhitenedFit) -> Finding:
    """Judge the tails of the features, which Lemmas 5 and 6 want like those of a normal law."""
    if not fit.features.shape[1]:
        return Finding("feature tails", "holds", 0.0, LIGHT_TAIL, "No feature varies.")
    value = _fourth_moment(fit.features)
    words = (
        "Along some direction the whitened features have a fourth moment of about "
        f"{number(value, 3)}, where a normal law has 3. Heavy tails give single rows a weight that "
        "the paper's Gaussian features never have; rare 0/1 columns count as heavy too."
    )
    return _at_most("feature tails", value, LIGHT_TAIL, HEAVY_TAIL, words)


def _fourth_moment(features: Floats) -> float:
    """Find a large mean of (x·v)⁴ over (mean of (x·v)²)².

    Directions are found on one half of the rows and judged on the other: along a direction that is
    chosen for a row, that row is always far out.
    """
    half, d = len(features) // 2, features.shape[1]
    first, second = features[:half], features[half:]
    directions = np.eye(d)
    if d <= MOST_MOMENT_FEATURES and half:
        directions = FourthMoments(first[:MOMENT_ROWS]).heaviest_directions()
    elif half:
        longest = np.argsort(-np.einsum("ij,ij->i", first, first))[:LONG_ROWS]
        directions = np.hstack([directions, first[longest].T])
    squares = (second @ directions) ** 2
    mean = squares.mean(axis=0)
    varies = mean > 0
    return float(((squares**2).mean(axis=0)[varies] / mean[varies] ** 2).max(initial=0.0))


def _same_features(fit: _WhitenedFit) -> Finding:
    """Judge σ of Corollary 8: covariances of all regimes lie between I and σI, up to a factor."""
    name, extremes, by_chance = "same features", [], []
    if len(fit.coef) == 1:
        words = "Of one regime alone there is nothing to compare: its rows set the units."
        return Finding(name, "holds", np.nan, SAME_SPREAD, words)
    for j in range(len(fit.coef)):
        rows = fit.features[fit.labels == j]
        n, d = rows.shape
        if n > 2 * d > 0:
            extremes += np.linalg.eigvalsh(rows.T @ rows / n)[[0, -1]].tolist()
            # What chance does to equal covariances (Marchenko and Pastur).
            by_chance += [(1 - np.sqrt(d / n)) ** 2, (1 + np.sqrt(d / n)) ** 2]
    if not extremes or max(extremes) <= 0:
        words = "No regime has rows enough, or no feature varies, to compare covariances."
        return Finding(name, "unclear", np.nan, SAME_SPREAD, words)
    # What is smaller beside the largest is rounding.
    sigma = max(extremes) / max(min(extremes), np.finfo(np.float64).eps * max(extremes))
    chance = max(by_chance) / min(by_chance)
    words = (
        f"Over regimes and directions the variance of the features differs by a factor of "
        f"{number(sigma, 2)} (by chance alone up to {number(chance, 2)}, and up to {SAME_SPREAD:g} "
        f"times that counts as alike). In Corollary 8, for "
        "rows without noise, the region of convergence shrinks by as much."
    )
    return _at_most(name, sigma, SAME_SPREAD * chance, OTHER_SPREAD * chance, words)


def searched_gap(spectrum: Subspace) -> Finding:
    """Judge the spectrum that the search looked at, which the mixture carries and a report shows.

    It is cut after the directions that are certain, or after as many as were asked for.
    """
    d, kept = spectrum.basis.shape
    return clear_gap(spectrum if kept < d else None, "that the search looked at")


def clear_gap(subspace: Subspace | None, whose: str = "of these rows") -> Finding:
    """Judge whether the spectrum falls where it is cut; None: it is not cut."""
    name = "subspace gap"
    if subspace is None:
        words = "All directions of the features are kept: nothing is projected away."
        return Finding(name, "holds", np.inf, SEARCH.clear_gap, words, at_least=True)
    kept, tested = subspace.basis.shape[1], subspace.noise_level is not None
    verb = "exceeds" if subspace.certain == 1 else "exceed"
    beyond = f", and {subspace.certain} {verb} what permuted responses give" if tested else ""
    words = (
        f"Eigenvalue {kept} is {number(subspace.gap, 3)} times eigenvalue {kept + 1}{beyond}, in "
        f"the spectrum {whose}. Without a gap, the subspace that the starts of Algorithm 2 come "
        "from is partly arbitrary; the default search has others."
    )
    clear: Verdict = "holds" if subspace.has_gap else "unclear"
    verdict: Verdict = "not proven" if tested and not subspace.certain else clear
    return Finding(name, verdict, subspace.gap, SEARCH.clear_gap, words, at_least=True)


def _close_subspace(fit: _WhitenedFit, subspace: Subspace | None) -> Finding:
    """Judge how far as many directions as there are regimes miss one of them (Definition 9).

    The directions are those of the rows that are judged: those of the search are known in its own
    coordinates only.
    """
    name, m = "subspace", len(fit.coef)
    if subspace is None:
        words = (
            "The features have no more directions than there are regimes: told their number, "
            "Algorithm 2 would keep them all, and no regime is missed."
        )
        return Finding(name, "holds", 0.0, NEAR_SUBSPACE, words)
    basis, slopes = subspace.basis, fit.coef[:, int(fit.intercept) :]
    shares = np.linalg.norm(slopes - slopes @ basis @ basis.T, axis=1) / fit.distance
    j = int(np.argmax(shares))
    who = "one direction" if m == 1 else f"{spelled(m)} directions, one for each regime,"
    words = (
        f"The {who} that Algorithm 2 would keep of these rows {'misses' if m == 1 else 'miss'} "
        f"regime {j} by {number(shares[j], 2)} of {fit.yardstick}. Theorem 4 needs a start within "
        "0.5, and the net takes half of that."
    )
    return _at_most(name, float(shares[j]), NEAR_SUBSPACE, FAR_SUBSPACE, words)


def _observe_rounds(fit: _WhitenedFit) -> tuple[Floats, int]:
    """Make one round of ILTS towards each regime from displaced starts, on a bounded sample.

    Return the distance after over the distance before for each regime, the worst of a few starts
    (nan where rows are too few); and V of Definition 3 at the worst start of the smallest regime.
    """
    rng = np.random.default_rng(0)
    X, y, labels = fit.X[:ROUND_ROWS], fit.y[:ROUND_ROWS], fit.labels[:ROUND_ROWS]
    left = np.full(len(fit.coef), np.nan)
    foreign = np.zeros(len(fit.coef), dtype=np.int64)
    for j, goal in enumerate(fit.coef):
        own = X[labels == j]
        kept = int(KEPT_SHARE * len(own))
        if kept < X.shape[1]:
            continue
        others = [i for i in range(len(fit.coef)) if i != j and (labels == i).any()]
        away = DISPLACEMENT * fit.distance[j]
        steps = rng.standard_normal((DRAWS, X.shape[1]))
        steps *= away / np.linalg.norm(steps, axis=1, keepdims=True)
        left[j] = 0.0
        for start in goal + steps:
            chosen = np.argsort(np.abs(y - X @ start), kind="stable")[:kept]
            # The rows are white already: normal equations lose nothing.
            rows = X[chosen]
            after = np.linalg.pinv(rows.T @ rows, hermitian=True) @ (rows.T @ y[chosen])
            left[j] = max(left[j], float(np.linalg.norm(after - goal)) / away)
            if others:
                towards = goal - start, fit.coef[others] - start
                groups = [X[labels == i] for i in others]
                found = affine_error_at(own, groups, *towards, slack=len(own) - kept)
                foreign[j] = max(foreign[j], found)
    return left, int(foreign[int(np.argmin(fit.shares))])


def _contracts(fit: _WhitenedFit, left: Floats) -> Finding:
    """Judge whether one real round comes closer to every regime."""
    name = "contraction, seen"
    if np.isnan(left).any():
        words = "A regime has too few rows to try a round on."
        return Finding(name, "unclear", np.nan, SHRINKS, words)
    worst = float(left.max())
    looked_at = min(len(fit.X), ROUND_ROWS)
    rows = f" of {fixed(looked_at, 0)} rows" if looked_at < fit.n_rows else ""
    words = (
        f"From a start at {DISPLACEMENT:g} of {fit.yardstick}, one round{rows} left at most "
        f"{number(worst, 3)} of the error in {DRAWS} tries (noise included). This is what happens, "
        "not what is guaranteed."
    )
    return _at_most(name, worst, SHRINKS, GROWS, words)


def _guaranteed(fit: _WhitenedFit, foreign: int) -> Finding:
    """Judge whether the factor of Theorem 4 is below one for the smallest regime."""
    X, labels = fit.X[:WORST_ROWS], fit.labels[:WORST_ROWS]
    j = int(np.argmin(fit.shares))
    kept = int(KEPT_SHARE * np.count_nonzero(labels == j))
    looked_at = min(len(fit.X), ROUND_ROWS)
    wrong = round(foreign * len(X) / looked_at) + int(np.count_nonzero(labels < 0))
    regularity = Regularity(X, most_directions=WORST_DIRECTIONS)
    plus, minus = regularity.attained_plus(min(wrong, len(X))), regularity.attained_minus(kept)
    factor = 2 * plus / minus if minus > 0 else np.inf
    # All rows, or an estimate; and the theorem is about rows without noise.
    bound = fit.complete and len(fit.X) <= WORST_ROWS
    verdict: Verdict = "not proven" if factor >= 1 or not fit.noiseless else "unclear"
    if factor < 1 and bound and fit.noiseless:
        certain = regularity.minus(kept).lower
        upper = 2 * regularity.plus(wrong).upper / certain if certain > 0 else np.inf
        verdict = "holds" if upper < 1 else "unclear"
    size = "at least" if bound else f"an estimate from {fixed(len(X), 0)} rows:"
    found = f"The factor of Theorem 4 for regime {j} is {size} {number(factor, 3)} at such a start."
    if np.isinf(factor):
        found = (
            f"Theorem 4 gives no factor for regime {j}: as few rows as a round keeps may leave "
            "coefficients open."
        )
    elif bound and not wrong:
        found = (
            f"At such a start a round takes in rows of regime {j} alone: the factor of Theorem 4 "
            "is 0."
        )
    if not fit.noiseless:
        found += " The theorem is about rows without noise, and these have some."
    if factor >= 1:
        found += (
            " It is a worst case over all subsets of rows and is seldom below 1 on real tables."
        )
    words = f"{found} The condition is sufficient, not necessary. Look at what is seen."
    return Finding("contraction, proven", verdict, factor, 1.0, words)
