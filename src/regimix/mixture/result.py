"""Mixture: what every search for all components returns, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from regimix.errors import DataError, ParameterError
from regimix.intake import Table, chunks, read_target, read_weights
from regimix.mixture.rowlaw import MOST_COVARIANCE_FEATURES, RowLaw
from regimix.mixture.settings import Settings, read_count, read_seed
from regimix.trimmed.evidence import SMALLEST_SCALE

if TYPE_CHECKING:
    from regimix.mixture.selection import Selection
    from regimix.search.subspace import Subspace

__all__ = ["Attempt", "Mixture"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# Residuals beyond this many deviations are all equally impossible, and their squares stay finite.
FARTHEST = 1e100
# Columns of a terminal; longer names are cut in the middle; the shortest term is " + 1 x".
WIDTH, LONGEST_NAME, SHORTEST_TERM = 80, 24, 6


@dataclass(frozen=True)
class Attempt:
    """Something that was tried on the way to the model.

    Attributes
    ----------
    move, source : str
        What was to be done to the model ("add", "replace", ...), with components from where.
    gain, accepted, reason : float, bool, str
        By how much the score of the whole model would rise, whether it was done, and why (not).
    """

    move: str
    source: str
    gain: float
    accepted: bool
    reason: str

    def __str__(self) -> str:
        verdict = "taken" if self.accepted else "left"
        return f"{self.move} ({self.source}): {self.gain:+.1f}, {verdict}: {self.reason}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Mixture:
    """Linear regimes with their shares and noise, and a flat background of outliers.

    Given a row's features, its response follows component j with probability ``weights[j]``,
    normally distributed around ``X @ coef[j] + intercept[j]`` with deviation ``scale[j]``, and is
    an outlier with probability ``outlier_share``: uniform, of density ``background``, on an
    interval around the middle of the response. (Densities beyond it are taken to be the same: a
    response far outside is no less of an outlier.) Everything is in the user's units. Components
    are sorted by share, largest first.

    Attributes
    ----------
    coef, intercept : ndarray of shape (m, d), (m,)
    weights : ndarray of shape (m,)
        Shares of all rows; with ``outlier_share`` they sum to one.
    scale : ndarray of shape (m,)
        Standard deviation of the noise of each component.
    labels : ndarray of shape (n,), int
        The component of each row, -1 for outliers.
    outlier_share, background : float
        Share of the outliers, and density of their responses.
    cutoff : float
        A row further from its component than this many deviations is an outlier; may be infinite.
    evidence : float
        Score of the whole model: log-likelihood gain over no model at all, after all discounts.
        Not positive: nothing was found. ``search="net"`` knows no score: minus infinity, then.
    component_evidence : ndarray of shape (m,) or None
        How much of it is lost without each component.
    origin : tuple of str
        Which source of starts found each component.
    attempts : tuple of Attempt
        What was tried, in order, whether accepted or not.
    stopped : str
        "nothing improves", "all found", "none accepted", "max_starts", "time_limit", "callback" or
        "interrupted".
    n_rows, mass : int, float
        Rows of the fit, and their total weight.
    fit_intercept, feature_names, target_name : bool, tuple of str, str
    settings : Settings
        As given, without the callback, which belongs to the run.
    seed, timings : int, dict of str to float (seconds spent in each stage)
    spectrum : Subspace or None
        The first subspace that was searched; ``describe()`` says whether its spectrum has a gap.
    rows : RowLaw or None
        What is remembered of the rows themselves.
    ranks : tuple of int or None
        How many coefficients of each component its rows determine.
    n_iter : int
        Rounds of the last refit.
    """

    coef: Floats
    intercept: Floats
    weights: Floats
    scale: Floats
    labels: Labels
    outlier_share: float
    background: float
    cutoff: float
    evidence: float
    stopped: str
    n_rows: int
    mass: float
    fit_intercept: bool
    feature_names: tuple[str, ...]
    settings: Settings
    seed: int
    target_name: str = "y"
    component_evidence: Floats | None = None
    origin: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    spectrum: Subspace | None = None
    selection: Selection | None = None
    rows: RowLaw | None = None
    ranks: tuple[int, ...] | None = None
    n_iter: int = 1

    def __post_init__(self) -> None:
        # A callback would tie the result to objects of the caller, and could not be pickled.
        if self.settings.callback is not None:
            object.__setattr__(self, "settings", replace(self.settings, callback=None))

    @property
    def found_nothing(self) -> bool:
        """Whether the rows support no component; the answer is then a robust fit to all of them."""
        return not self.evidence > (-np.inf if self.settings.search == "net" else 0)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return int(self.coef.shape[0])

    def predict_components(self, X: Any) -> Floats:
        """Predict the response by each component, (n, m)."""
        values = self._read(X)
        means = np.empty((values.shape[0], self.n_components))
        for part in chunks(*values.shape):
            means[part] = values[part].astype(np.float64) @ self.coef.T + self.intercept
        return means

    def predict(self, X: Any) -> Floats:
        """Predict the mean response: the components averaged by their shares, (n,)."""
        return np.asarray(self.predict_components(X) @ (self.weights / self.weights.sum()))

    def log_densities(self, X: Any, y: Any) -> Floats:
        """Log of share times density for each component and, last, for outliers, (n, m + 1)."""
        return self._log_densities(self._standardised_residuals(X, y))

    def responsibilities(self, X: Any, y: Any) -> Floats:
        """Probability that a row belongs to each component or, last, is an outlier, (n, m + 1)."""
        joint = self.log_densities(X, y)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    def assign(self, X: Any, y: Any) -> Labels:
        """Label rows by their likeliest component, -1 for outliers.

        A row is an outlier if the background is likelier than every component, or if it is further
        than ``cutoff`` deviations from the likeliest.
        """
        distances = self._standardised_residuals(X, y)
        joint = self._log_densities(distances)
        labels = np.argmax(joint[:, :-1], axis=1)
        rows = np.arange(labels.size)
        outlier = joint[:, -1] > joint[rows, labels]
        outlier |= np.abs(distances[rows, labels]) > self.cutoff
        return np.where(outlier, -1, labels)

    def score_samples(self, X: Any, y: Any) -> Floats:
        """Log density of each response given its features, (n,)."""
        return np.asarray(logsumexp(self.log_densities(X, y), axis=1))

    def loglik(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Log-likelihood of rows; weights are read as in a fit."""
        return self._weigh(X, y, sample_weight)[0]

    def bic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion on rows; lower is better."""
        loglik, mass = self._weigh(X, y, sample_weight)
        # Coefficients, scale and share of each component; the outliers' share, if any, is the rest.
        each = self.coef.shape[1] + self.fit_intercept + 2
        n_free = self.n_components * each - (self.outlier_share == 0)
        return float(n_free * np.log(mass) - 2 * loglik)

    def _weigh(self, X: Any, y: Any, sample_weight: Any) -> tuple[float, float]:
        scores = self.score_samples(X, y)
        weights, _ = read_weights(sample_weight, scores.size)
        if weights is None:
            return float(scores.sum()), float(scores.size)
        return float(scores @ weights), float(weights.sum())

    def sample(
        self, n: int | None = None, random_state: Any = None, X: Any = None
    ) -> tuple[NDArray[Any], Floats, Labels]:
        """Draw rows from the model: features, responses, and labels (-1 for outliers).

        Parameters
        ----------
        n : int, optional
            Rows to draw; default: one for each row of X, or one.
        random_state : int, RandomState, Generator or None
        X : array or data frame of shape (n, d), optional
            Features to draw responses for. Without, features are drawn from the normal law with
            mean and covariance of the rows of the fit, whatever their true law was: pass X where
            columns are 0/1, skewed, or more than a few hundred.
        """
        rng = np.random.default_rng(read_seed(random_state))
        features = self._draw_features(n, rng) if X is None else self._read(X)
        count = features.shape[0]
        if n is not None and n != count:
            raise ParameterError(f"n must be the number of rows of X, {count}, or None; got {n!r}.")
        shares = np.append(self.weights, self.outlier_share)
        drawn = np.asarray(rng.choice(shares.size, size=count, p=shares / shares.sum()))
        labels: Labels = np.where(drawn < self.n_components, drawn, -1)
        means = self.predict_components(features)
        y: Floats = means[np.arange(count), labels]
        y += self.scale[labels] * rng.standard_normal(count)
        outliers = np.flatnonzero(labels < 0)
        middle = self.rows.middle if self.rows is not None else float(np.median(means))
        if outliers.size:
            y[outliers] = middle + rng.uniform(-0.5, 0.5, outliers.size) / self.background
        return features, y, labels

    def _draw_features(self, n: Any, rng: np.random.Generator) -> Floats:
        count = 1 if n is None else read_count("n", n)
        if self.rows is None or self.rows.correlation is None:
            raise ParameterError(
                f"the covariance of {self.coef.shape[1]} features is not part of the mixture (it "
                f"is kept for up to {MOST_COVARIANCE_FEATURES}): pass X, the features to draw "
                "responses for."
            )
        return self.rows.draw(count, rng)

    def _read(self, X: Any) -> NDArray[Any]:
        """Check features of rows that may be new."""
        table = Table.read(X, fewest_rows=1)
        names, known = table.names, self.feature_names
        remedy = "pass the same columns in the same order."
        if len(names) != len(known):
            raise DataError(f"X has {len(names)} column(s), but {len(known)} in the fit; {remedy}")
        # Columns without names are called x0, x1, ...: those say nothing.
        unnamed = tuple(f"x{i}" for i in range(len(known)))
        if names != known and unnamed not in (names, known):
            i = next(i for i, name in enumerate(known) if names[i] != name)
            raise DataError(f"column {i} is {names[i]!r}, but {known[i]!r} in the fit; {remedy}")
        table.extent()
        return table.values

    def _standardised_residuals(self, X: Any, y: Any) -> Floats:
        means = self.predict_components(X)
        target = read_target(y, means.shape[0])
        with np.errstate(over="ignore"):
            distances = (target[:, None] - means) / self._density_scale()
        return np.clip(distances, -FARTHEST, FARTHEST, out=distances)

    def _density_scale(self) -> Floats:
        """Scales for densities: those of exact fits are zero, and their densities infinite."""
        floor = SMALLEST_SCALE / self.background if self.background > 0 else 0.0
        return np.maximum(self.scale, max(floor, float(np.finfo(np.float64).tiny)))

    def _log_densities(self, distances: Floats) -> Floats:
        joint = np.empty((distances.shape[0], self.n_components + 1))
        with np.errstate(divide="ignore"):
            constant = np.log(self.weights) - np.log(self._density_scale() * np.sqrt(2 * np.pi))
            joint[:, -1] = np.log(self.outlier_share) + np.log(self.background)
        joint[:, :-1] = constant - 0.5 * distances**2
        return joint

    def equation(self, component: int, width: int | None = None) -> str:
        """Write a component as an equation, terms in order of what they contribute.

        A term contributes its coefficient times the deviation of its feature. To stay within so
        many characters, the smallest terms are left out and counted.
        """
        coef = self.coef[component]
        sizes = np.abs(coef if self.rows is None else coef * self.rows.deviation)
        order = [int(i) for i in np.argsort(-sizes, kind="stable") if coef[i] != 0]
        terms = [_term(float(coef[i]), _short(self.feature_names[i])) for i in order]
        if self.fit_intercept or not terms:
            terms.insert(0, _term(float(self.intercept[component]), ""))
        room = np.inf if width is None else width
        name, shown = _short(self.target_name), max(1, int(min(len(terms), room // SHORTEST_TERM)))
        while shown > 1 and len(_joined(name, terms, shown)) > room:
            shown -= 1
        return _joined(name, terms, shown)

    def describe(self, width: int = WIDTH) -> str:
        """Say what was found, one line a regime, and why the search stopped."""
        m = self.n_components
        noise = [_number(float(scale)) for scale in self.scale]
        room = max(5, *map(len, noise))
        lines = [
            f"{m} linear regime{'s' * (m != 1)} in {self.n_rows} rows\n",
            f"{'':>2}  {'share':>6}  {'noise':>{room}}  equation",
        ]
        for j in range(m):
            start = f"{j:>2}  {self.weights[j]:>6.1%}  {noise[j]:>{room}}  "
            lines.append(start + self.equation(j, width - len(start)))
        if self.outlier_share > 0:
            lines.append(f"-1  {self.outlier_share:>6.1%}  {'':>{room}}  outliers")
        taken = sum(attempt.accepted for attempt in self.attempts)
        tried = f" ({len(self.attempts)} moves tried, {taken} taken)" if self.attempts else ""
        lines += ["", f"Stopped: {self.stopped}{tried}."]
        seconds = f"{sum(self.timings.values()):.2g} seconds, " if self.timings else ""
        score = "" if self.settings.search == "net" else f"evidence {self.evidence:.1f}, "
        lines.append(f"{score}{seconds}seed {self.seed}.".capitalize())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.describe()


def _number(value: float) -> str:
    """Write a number with four digits, and without an exponent where it can be read."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def _term(value: float, name: str) -> str:
    sign = "-" if value < 0 else "+"
    return f"{sign} {_number(abs(value))} {name}".rstrip()


def _short(name: str) -> str:
    half = (LONGEST_NAME - 1) // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def _joined(target: str, terms: list[str], shown: int) -> str:
    head, *rest = terms[:shown]
    head = head.removeprefix("+ ") if head[0] == "+" else "-" + head[2:]
    left = len(terms) - shown
    more = [f"+ {left} more"] if left else []
    return f"{target} = " + " ".join([head, *rest, *more])
