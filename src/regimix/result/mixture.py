"""Mixture: what every search for all components returns, in the user's units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp, softmax

from regimix.data.encoding import encode_rows
from regimix.data.problem import Weighting
from regimix.data.recipe import Recipe
from regimix.data.validation import (
    Table,
    check_names,
    chunks,
    is_frame,
    read_names,
    read_target,
    read_weights,
)
from regimix.errors import DataError, MissingExtraError, ParameterError, StopReason, read_count
from regimix.model.em import REGIME_GAIN
from regimix.model.laws import NoiseLaw, fall_of_background
from regimix.model.numbers import MODEL
from regimix.result import answer
from regimix.result import inference as inferring
from regimix.result.inference import Inference, read_level
from regimix.result.predictive import Forecast, deviations, in_units
from regimix.result.rowlaw import MOST_COVARIANCE_FEATURES, Excerpt, RowLaw
from regimix.result.summary import Summary, summary_frame
from regimix.search.numbers import SEARCH
from regimix.search.settings import Settings, read_seed
from regimix.threads import in_threads

if TYPE_CHECKING:
    from regimix.result.bootstrap import Bootstrap
    from regimix.result.compare import Comparison
    from regimix.result.profile import Profile
    from regimix.result.rivals import Rival
    from regimix.result.stability import Stability
    from regimix.search.selection import Attempt, Selection
    from regimix.search.subspace import Subspace

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# A regime is taken to be no narrower than this part of the widest: densities stay finite.
NARROWEST = 1e-9
# Numbers of a row and regime that are worked on at the same time: blocks of them fit the cache.
NUMBERS_AT_WORK = 12


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Regimes:
    """Linear regimes with their shares and noise, and a background of outliers.

    :class:`Mixture` documents the attributes: it is the same, with what a fit knows beside.
    """

    coef: Floats
    intercept: Floats
    weights: Floats
    scale: Floats
    outlier_share: float
    background: float
    cutoff: float
    fit_intercept: bool
    feature_names: tuple[str, ...]
    rows: RowLaw | None = None
    background_middle: float = 0.0
    background_width: float = np.inf
    background_degrees: float = MODEL.background_degrees
    noise_degrees: float = np.inf

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

    def predict(self, X: Any, shares: Any = None) -> Floats:
        """Predict the expected response: the components averaged by their shares, (n,).

        The mean over all rows with such features that are no outliers. Where components are far
        apart it lies between them, and no row need lie there.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        shares : array of shape (n, m), optional
            Here and elsewhere: probabilities of the regimes for each row, instead of ``weights``.
            They are brought to a sum of one; the share of outliers stays.
        """
        means = self.predict_components(X)
        return np.asarray(np.einsum("ij,ij->i", means, self._shares(shares, len(means))))

    def log_densities(self, X: Any, y: Any, shares: Any = None) -> Floats:
        """Log of share times density for each component and, last, for outliers, (n, m + 1)."""
        return self._in_blocks(X, shares, _Block.log_densities, response=(y,))[0]

    def responsibilities(self, X: Any, y: Any, shares: Any = None) -> Floats:
        """Probability that a row belongs to each component or, last, is an outlier, (n, m + 1)."""
        return self._in_blocks(X, shares, _Block.responsibilities, response=(y,))[0]

    def assign(self, X: Any, y: Any, shares: Any = None) -> Labels:
        """Label rows by their likeliest component, -1 for outliers.

        A row is an outlier if the background is likelier than every component, or if it is further
        than ``cutoff`` deviations from the likeliest.
        """
        return self._in_blocks(X, shares, _Block.labels, response=(y,))[0]

    def judge(self, X: Any, y: Any, shares: Any = None) -> tuple[Labels, Floats, Floats]:
        """Return ``assign``, ``responsibilities`` and ``outlier_score`` of rows, read once."""
        measures = _Block.labels, _Block.responsibilities, _Block.outlier_scores
        labels, probabilities, scores = self._in_blocks(X, shares, *measures, response=(y,))
        return labels, probabilities, scores

    def score_samples(self, X: Any, y: Any, shares: Any = None) -> Floats:
        """Log density of each response given its features, (n,)."""
        return np.asarray(logsumexp(self.log_densities(X, y, shares), axis=1))

    def loglik(self, X: Any, y: Any, sample_weight: Any = None, shares: Any = None) -> float:
        """Log-likelihood of rows; weights are read as in a fit."""
        return float(np.dot(*self._weigh(self.score_samples(X, y, shares), sample_weight)))

    def bic(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        shares: Any = None,
        shares_parameters: int = 0,
    ) -> float:
        """Bayesian information criterion on rows; lower is better.

        ``shares`` that were learnt are charged for if ``shares_parameters`` says how many numbers
        were learnt beyond those of ``weights``.
        """
        scores, weights = self._weigh(self.score_samples(X, y, shares), sample_weight)
        # Coefficients, scale and share of each component; the outliers' share, if any, is the rest.
        each = self.coef.shape[1] + self.fit_intercept + 2
        n_free = self.n_components * each - (self.outlier_share == 0) + shares_parameters
        return float(n_free * np.log(weights.sum()) - 2 * scores @ weights)

    def icl(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        shares: Any = None,
        shares_parameters: int = 0,
    ) -> float:
        """Integrated completed likelihood on rows; lower is better.

        The Bayesian information criterion plus twice the entropy of the responsibilities: regimes
        that cannot be told apart are charged for it.
        """
        chances = self.responsibilities(X, y, shares)
        entropy, weights = self._weigh(entr(chances).sum(axis=1), sample_weight)
        bic = self.bic(X, y, sample_weight, shares, shares_parameters)
        return bic + 2 * float(entropy @ weights)

    @staticmethod
    def _weigh(values: Floats, sample_weight: Any) -> tuple[Floats, Floats]:
        weights, _ = read_weights(sample_weight, values.size)
        return values, np.ones(values.size) if weights is None else weights

    # --- judging new rows -------------------------------------------------------------------------

    def outlier_score(self, X: Any, y: Any, shares: Any = None) -> Floats:
        """Say how unlikely each response is under every regime, (n,).

        The score is minus the decimal logarithm of the chance that a row which follows the model,
        with the same features, has a response at least as unlikely: of such rows, one in ten scores
        1 or more, one in a thousand 3 or more, whatever the features and however the regimes
        overlap. A response is as unlikely as the largest of its densities under the regimes, each
        times its share. Densities are those of new rows: they hold the errors of the coefficients
        and of the noise, where a fit recorded them, as ``predict_interval`` does.
        """
        return self._in_blocks(X, shares, _Block.outlier_scores, response=(y,))[0]

    def flag(self, X: Any, y: Any, rate: float = 0.01, shares: Any = None) -> NDArray[np.bool_]:
        """Flag outliers, (n,), at a rate at which rows that follow the model are flagged too."""
        rate = read_level(rate, "rate")
        return np.asarray(self.outlier_score(X, y, shares) >= -np.log10(rate))

    # --- drawing and reading rows -----------------------------------------------------------------

    def sample(
        self, n: int | None = None, random_state: Any = None, X: Any = None
    ) -> tuple[NDArray[Any], Floats, Labels]:
        """Draw rows from the model: features, responses, and labels (-1 for outliers).

        Regimes are drawn by their shares of all rows, ``weights``: a gating, which knows the shares
        of each row, is left out of account.

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
        y += self.scale[labels] * NoiseLaw(self.noise_degrees).draw(count, rng)
        outliers = np.flatnonzero(labels < 0)
        if np.isfinite(self.background_width):
            law = NoiseLaw(self.background_degrees).draw(outliers.size, rng)
            y[outliers] = self.background_middle + self.background_width * law
        elif outliers.size:
            middle = self.rows.middle if self.rows is not None else float(np.median(means))
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
        table = self._table(X)
        check_names(table.names, self.feature_names, "X")
        table.extent()
        return table.values

    def _table(self, X: Any) -> Table:
        return Table.read(X, fewest_rows=1)

    def _in_blocks(
        self, X: Any, shares: Any, *measures: Callable[[_Block], Any], response: tuple[Any] | None
    ) -> list[NDArray[Any]]:
        """Measure rows, blocks of which fit the cache, in threads where a caller has allowed some.

        Measures have the rows last; what they have in common is computed once for each block.
        """
        values = self._read(X)
        n, d = values.shape
        target = np.empty(0) if response is None else read_target(response[0], n)
        given = None if shares is None else self._shares(shares, n)

        def measured(rows: slice) -> list[Any]:
            shares = None if given is None else given[rows]
            X = values[rows].astype(np.float64)
            block = _Block(self, self._new_responses, X, target[rows], shares)
            return [measure(block) for measure in measures]

        blocks = list(chunks(n, d + NUMBERS_AT_WORK * self.n_components))
        parts = zip(*in_threads(measured, blocks), strict=True)
        return [np.concatenate(part, axis=-1).T for part in parts]

    def _new_responses(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the deviation of a new response under each regime, and degrees of freedom."""
        spread = np.broadcast_to(self.scale[:, None], (self.n_components, len(values)))
        return spread, np.full(self.n_components, self.noise_degrees)

    def _shares(self, shares: Any, n_rows: int) -> Floats:
        """Return the shares of the regimes among rows that are no outliers, (n, m)."""
        m = self.n_components
        if shares is None:
            return np.broadcast_to(self.weights / self.weights.sum(), (n_rows, m))
        values = np.asarray(shares, dtype=np.float64)
        total = values.sum(axis=-1, keepdims=True)
        if values.shape != (n_rows, m) or not ((values >= 0).all() and (total > 0).all()):
            raise DataError(
                f"shares must be {n_rows} rows of {m} probabilities, one for each regime, none "
                f"negative and not all zero; got an array of shape {values.shape}."
            )
        return np.asarray(values / total)


@dataclass(frozen=True, eq=False)
class _Block:
    """A block of rows beside the regimes; arrays have the regimes first."""

    model: Regimes
    new_responses: Callable[[Floats], tuple[Floats, Floats]]  # their deviations and degrees
    X: Floats  # (n, d)
    y: Floats  # (n,); empty where no response is needed
    given: Floats | None  # shares of the regimes, (n, m)

    @cached_property
    def means(self) -> Floats:
        """Predictions, (m, n)."""
        return np.asarray(self.model.coef @ self.X.T + self.model.intercept[:, None])

    @cached_property
    def residuals(self) -> Floats:
        """Residuals of the responses, (m, n)."""
        return np.asarray(self.y - self.means)

    @cached_property
    def scale(self) -> Floats:
        """Scales for densities, (m, 1): none is zero, not even that of a fit without noise."""
        scale = self.model.scale
        return np.maximum(scale, NARROWEST * (float(scale.max()) or 1.0))[:, None]

    @cached_property
    def distances(self) -> Floats:
        """Residuals in units of the scales, (m, n)."""
        return in_units(self.residuals, self.scale)

    @cached_property
    def shares(self) -> Floats:
        """Shares of the regimes among rows that are no outliers, (m, n) or (m, 1)."""
        if self.given is None:
            return np.asarray(self.model.weights / self.model.weights.sum())[:, None]
        return np.ascontiguousarray(self.given.T)

    @cached_property
    def joint(self) -> Floats:
        """Log of share times density for each regime and, last, for outliers, (m + 1, n)."""
        model, distances = self.model, self.distances
        weights = model.weights[:, None]
        if self.given is not None:
            weights = self.shares * (1 - model.outlier_share)
        joint = np.empty((len(distances) + 1, len(self.X)))
        with np.errstate(divide="ignore"):
            constant = np.log(weights) - np.log(self.scale * np.sqrt(2 * np.pi))
            joint[-1] = np.log(model.outlier_share) + np.log(model.background)
        if np.isfinite(model.background_width):
            distance = (self.y - model.background_middle) / model.background_width
            joint[-1] += fall_of_background(distance, model.background_degrees)
        joint[:-1] = constant + NoiseLaw(model.noise_degrees).kernel(distances**2)[0]
        return joint

    @cached_property
    def forecast(self) -> Forecast:
        """What each regime predicts for new responses."""
        return Forecast(self.means, *self.new_responses(self.X))

    def log_densities(self) -> Floats:
        """``Mixture.log_densities``, as all below."""
        return self.joint

    def responsibilities(self) -> Floats:
        return np.asarray(softmax(self.joint, axis=0))

    def labels(self) -> Labels:
        likeliest = np.argmax(self.joint[:-1], axis=0)
        rows = np.arange(likeliest.size)
        outlier = self.joint[-1] > self.joint[likeliest, rows]
        outlier |= np.abs(self.distances[likeliest, rows]) > self.model.cutoff
        return np.where(outlier, -1, likeliest)

    def outlier_scores(self) -> Floats:
        found = self.forecast
        widest = np.maximum(found.deviations, self.scale)
        return replace(found, deviations=widest).surprise(self.residuals, self.shares)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Mixture(Regimes):
    """Linear regimes with their shares and noise, and a background of outliers.

    Given a row's features, its response follows component j with probability ``weights[j]``,
    distributed around ``X @ coef[j] + intercept[j]`` with scale ``scale[j]``: normally, or by
    Student's law with ``noise_degrees``. It is an outlier with probability ``outlier_share``, and
    then follows a law of its own. Everything is in the user's
    units. Components are sorted by share, largest first.

    Attributes
    ----------
    coef, intercept : ndarray of shape (m, d), (m,)
    weights : ndarray of shape (m,)
        Shares of all rows, before a gating; with ``outlier_share`` they sum to one.
    scale : ndarray of shape (m,)
        Scale of the noise of each component: its standard deviation, if it is normal.
    noise_degrees : float
        Degrees of freedom of Student's law of the noise; infinite for the normal law.
    labels : ndarray of shape (n,), int
        The component of each row, -1 for outliers; with a gate, by its shares. Empty if they are
        not known here: a model from a file without them, or a fit to rows on a cluster, whose
        labels stay there.
    label_counts : tuple of int, or None
        Rows of each component and, last, outliers: by their labels, repetitions counted.
    doubtful_rows : int or None
        Rows in doubt: neither a regime nor being an outlier is 80 % likely. None also where a share
        of outliers was given: which rows are outliers is then a matter of rank.
    outlier_share, background : float
        Share of the outliers, and the largest density of their responses.
    background_middle, background_width, background_degrees : float
        Where that is, the scale of their law (flat if infinite) and its degrees of freedom: 2, or
        infinitely many if it is normal.
    cutoff : float
        A row further from its component than this many deviations is an outlier; may be infinite.
    evidence : float
        By how much the score of the regimes exceeds that of constants, in nats: whether there is a
        relation at all. It takes 3 (odds of 20 to 1), or more than 0 with a given number of
        regimes. Where nothing was found, that of the nearest miss, which need not be the line that
        is shown. ``search="net"`` has no score: NaN if something was found, minus infinity if not.
    without_slopes : float
        How much of it the same regimes would have without their slopes, as constants: only the rest
        is due to the features. Zero where constants at levels of the response are as likely.
    gain_of_line : float
        Where no regimes with even noise were found: how much likelier a line through all rows makes
        it that these values of the response go with these rows, in nats, whatever law the values
        have; zero if less than 3. If the rows in the bulk of the features show that too, one regime
        is found, and the smaller of the two figures is its ``evidence``.
    component_evidence : ndarray of shape (m,) or None
        How much of it is lost without each component, the others left as they are.
    search_evidence : tuple of float
        The evidence that each of the independent searches ended with.
    n_agreed : int
        How many of them ended with the answer: its evidence, and its labels but for rows in doubt.
        Where the answer is likelier than what any of them ended with: with the best of these.
    rivals : tuple of Rival
        Single relations (curved, of uneven spread, with skewed noise, ...) that were compared with
        the regimes, the likeliest first; ``lead`` is how much likelier, in nats.
    rivals_rows : int or None
        Rows that they were compared on; None if these are all that ``evidence`` is of. Leads on
        some rows cannot be added to the evidence of all.
    rivals_evidence : float
        Evidence of what is shown on these rows, where it is not ``evidence``; NaN where it is, or
        where no rival is ahead on some of the rows.
    gain_of_shares : float
        What shares that depend on the features would add to the evidence of several regimes, in
        nats, less the price of an ingredient. Found out only where a rival is ahead; else zero.
    resampled : Stability or None
        What :meth:`stability` found, if it was asked for and put here (``with_stability``).
    settled : bool
        Whether EM on all rows came to its end; its rounds are limited.
    origin : tuple of str
        Which source of starts found each component.
    attempts : tuple of Attempt
        What was tried, in order, whether accepted or not.
    stopped : str
        Why the search ended: one of ``regimix.errors.StopReason``.
    n_rows, mass : int, float
        Rows of the fit, and their total weight.
    weighting : {"none", "counts", "importances"} or None
        How rows counted: once each; by whole numbers, which are repetitions; or by any others,
        which are scaled to a mean of one, so that their sum does not show them. None: not recorded
        (a model file of an earlier version).
    fit_intercept, feature_names, target_name : bool, tuple of str, str
    settings : Settings
        As given, without callback and checkpoint, which belong to the run.
    seed, timings : int, dict of str to float (seconds spent in each stage)
    spectrum : Subspace or None
        The first subspace that was searched; ``describe()`` says whether its spectrum has a gap.
    selection : Selection or None
        Evidence, BIC and ICL of the best model with each number of components looked at.
    rows : RowLaw or None
        What is remembered of the rows themselves.
    ranks : tuple of int or None
        How many coefficients of each component its rows determine.
    n_iter : int
        Moves that were tried; at least one.
    inference : Inference or None
        Standard errors and explained variance; ``summary()`` prints them.
    excerpt : Excerpt or None
        Some rows of the fit, or all if they are few: for reports, and for ``bootstrap``.
    gate : object or None
        What tells a row's regime from its columns: its ``shares(Z)`` are (n, m) probabilities.
        Labels, their counts, rows in doubt and R² of the expected response follow it.
    encoding : Recipe or None
        What columns of a data frame became: methods that take X read such frames the same way.
    notes : tuple of str
        What was encoded or left out, in sentences.
    """

    labels: Labels
    evidence: float
    stopped: str
    n_rows: int
    mass: float
    settings: Settings
    seed: int
    target_name: str = "y"
    component_evidence: Floats | None = None
    origin: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    spectrum: Subspace | None = None
    selection: Selection | None = None
    ranks: tuple[int, ...] | None = None
    n_iter: int = 1
    inference: Inference | None = None
    excerpt: Excerpt | None = None
    gate: Any | None = None
    label_counts: tuple[int, ...] | None = None
    doubtful_rows: int | None = None
    search_evidence: tuple[float, ...] = ()
    n_agreed: int = 0
    rivals: tuple[Rival, ...] = ()
    rivals_rows: int | None = None
    rivals_evidence: float = np.nan
    gain_of_shares: float = 0.0
    without_slopes: float = 0.0
    gain_of_line: float = 0.0
    resampled: Stability | None = None
    settled: bool = True
    encoding: Recipe | None = None
    notes: tuple[str, ...] = ()
    weighting: Weighting | None = None

    def __post_init__(self) -> None:
        # A callback would tie the result to objects of the caller, and could not be pickled; a
        # path leads nowhere on another machine.
        settings = replace(self.settings, callback=None, checkpoint=None)
        object.__setattr__(self, "settings", settings)
        # A model file holds the text; one of a later version may hold a reason not known here.
        known = (reason for reason in StopReason if reason == self.stopped)
        object.__setattr__(self, "stopped", next(known, self.stopped))

    @property
    def counts_once(self) -> bool:
        """Whether every row of the fit counted once, as far as is known."""
        if self.weighting is None:
            return self.mass == self.n_rows
        return self.weighting == "none"

    @property
    def found_nothing(self) -> bool:
        """Whether the rows support no relation; the answer is then one line through all of them."""
        if self.settings.search == "net":
            return self.evidence == -np.inf
        needed = REGIME_GAIN if self.settings.n_components is None else 0.0
        return self.evidence_of_features < needed

    @property
    def evidence_of_features(self) -> float:
        """How much of the evidence is due to the features: what the regimes lose as constants.

        All of it, unless regimes are levels of the response, or values that many rows share.
        """
        return self.evidence - self.without_slopes

    @property
    def given_values(self) -> bool:
        """Whether the evidence is counted given the values of the response, whatever their law."""
        return self.gain_of_line > 0 and self.evidence_of_features >= REGIME_GAIN

    @property
    def rival(self) -> Rival | None:
        """The likeliest single relation, if it explains the rows as well as the regimes do.

        A curve follows where each regime is; regimes whose shares do so, too, must not be likelier.
        None with a gate of several regimes, which were compared without it, and explain more.
        """
        ungated = self.gate is None or self.n_components == 1
        best = self.rivals[0] if self.rivals and ungated else None
        if best is None or best.lead < self.gain_of_shares:
            return None
        return None if answer.likelier_still(self) else best

    @property
    def n_searches(self) -> int:
        """How many independent searches were made."""
        return len(self.search_evidence)

    @property
    def came_back(self) -> bool:
        """Whether searches agreed as often as was asked for; a large table is searched once.

        They are about regimes with even noise: a relation given the values is none that they found.
        """
        if self.given_values:
            return True
        ended = int(np.isfinite(self.search_evidence).sum())
        return self.n_agreed >= min(ended, SEARCH.agreeing_searches)

    @property
    def fitted_by_label(self) -> bool:
        """Whether components were fitted to the rows of their label, not to all rows in part."""
        return self.settings.by_label

    def predict_interval(self, X: Any, level: float = 0.95, shares: Any = None) -> Floats:
        """Predict an interval for the response of each row, its regime unknown, (n, 2).

        Below and above it lie equal parts of the mixture of all regimes: for a row that is no
        outlier. Where regimes are far apart it reaches over the gaps between them; see
        ``predict_component_intervals`` for the pieces. The errors of the coefficients are included.
        The interval has no end where regimes without a row to spare, whose noise is not known, have
        more of the rows than it leaves out.
        """
        inside = read_level(level)

        def interval(block: _Block) -> Floats:
            return block.forecast.equal_tails(block.shares, inside)

        return self._in_blocks(X, shares, interval, response=None)[0]

    def predict_component_intervals(self, X: Any, level: float = 0.95) -> Floats:
        """Predict an interval for the response of each row under each regime, (n, m, 2).

        The errors of the coefficients are included. Infinite where a regime has no row to spare.
        """
        inside = read_level(level)

        def intervals(block: _Block) -> Floats:
            return block.forecast.intervals(inside)

        return self._in_blocks(X, None, intervals, response=None)[0]

    def _table(self, X: Any) -> Table:
        """Read features; a data frame as in the fit, if its columns were encoded there."""
        if self.encoding is None or not is_frame(X) or self.feature_names == read_names(X):
            return super()._table(X)
        encoded = encode_rows(X, self.encoding)
        if not encoded.kept.all():
            row = int(np.flatnonzero(~encoded.kept)[0])
            raise DataError(
                f"row {row} of X (counting from 0) cannot be used: {encoded.reasons[row]}. Leave "
                "such rows out; the estimator's own methods do."
            )
        return encoded.table

    def usable_rows(self, X: Any, y: Any) -> tuple[Any, Any, NDArray[np.bool_] | None]:
        """Read a data frame as in the fit, without rows in which a value is missing.

        Returns
        -------
        X, y, kept
            ``kept`` says which rows those are; None: all of them. What needs no encoding is
            returned as it is.
        """
        if self.encoding is None or not is_frame(X) or self.feature_names == read_names(X):
            return X, y, None
        encoded = encode_rows(X, self.encoding, y)
        return encoded.table.values, encoded.y, None if encoded.kept.all() else encoded.kept

    def _new_responses(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the same; deviations hold the errors of the coefficients, too."""
        if self.inference is None:
            return super()._new_responses(values)
        degrees = np.where(self.inference.degrees >= 1, self.inference.degrees, np.inf)
        spread = deviations(values, self.scale, self.inference)
        return spread, np.minimum(degrees, self.noise_degrees)

    # --- how sure the coefficients are ------------------------------------------------------------

    def conf_int(self, level: float = 0.95) -> Floats:
        """Return confidence intervals of the coefficients, conditional on the regimes found.

        Returns
        -------
        ndarray of shape (m, d + 1, 2)
            The intercept last; (m, d, 2) without one. Student's law, with the degrees of freedom of
            each component. NaN where ``inference.notes`` says why.
        """
        return inferring.conf_int(self, level)

    def t_values(self) -> Floats:
        """Return the coefficients in units of their errors, (m, d + 1), the intercept last."""
        return inferring.t_values(self)

    def p_values(self) -> Floats:
        """Return the probability of so large a t value if a coefficient is zero, (m, d + 1)."""
        return inferring.p_values(self)

    def separation(self) -> Floats:
        """Return the distances between components in units of their uncertainty, (m, m).

        Mahalanobis distances of two coefficient vectors (with intercepts) in the sum of their
        covariances, over the coefficients that the rows of both determine. Of p coefficients, equal
        components are about the square root of p apart. Infinite where two exact components differ,
        NaN where no covariance was recorded.
        """
        return inferring.separation(self)

    def summary(self, level: float = 0.95) -> Summary:
        """Return a table of all coefficients with errors, tests and intervals; ``print`` it."""
        return Summary(self, level)

    def summary_frame(self, level: float = 0.95) -> Any:
        """Return the same as a pandas data frame (polars if pandas is missing).

        One row for each component and term; columns component, term, coef, std_err, t, p_value,
        lower, upper.
        """
        return summary_frame(self, level)

    def bootstrap(
        self,
        X: Any = None,
        y: Any = None,
        n_resamples: int = 200,
        level: float = 0.95,
        random_state: Any = None,
        sample_weight: Any = None,
        n_jobs: int | None = None,
    ) -> Bootstrap:
        """Refit to resampled rows: errors without formulas.

        Rows are drawn with replacement among those of each label, outliers too, and the model is
        refitted from where it is, so that regimes keep their names.

        Parameters
        ----------
        X, y : array or data frame of shape (n, d), array of shape (n,), optional
            The rows of the fit. May be left out if the mixture holds them all
            (``excerpt.complete``).
        n_resamples : int, default=200
        level : float, default=0.95
            Of ``conf_int()``.
        random_state : int, RandomState, Generator or None
        sample_weight : array of shape (n,), optional
            As in the fit.
        n_jobs : int, optional
            Resamples that run side by side; the answer does not depend on it.
        """
        # Refits need the solvers, which a result alone does not load.
        from regimix.result.bootstrap import bootstrap

        rows = self._rows_of_fit(X, y, sample_weight)
        seed, count = read_seed(random_state), read_count("n_resamples", n_resamples)
        return bootstrap(self, *rows, count, read_level(level), seed, n_jobs)

    def stability(
        self,
        X: Any = None,
        y: Any = None,
        n_resamples: int = 20,
        random_state: Any = None,
        sample_weight: Any = None,
        n_jobs: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Stability:
        """Search resampled rows again: which regimes come back, and how many are found.

        Rows are drawn with replacement, their responses moved by a tenth of the noise, and the
        search is made as in the fit, from its beginning. A regime comes back if it shares more than
        half of its rows with one that is found again.

        Parameters
        ----------
        X, y, random_state, sample_weight
            As for :meth:`bootstrap`.
        n_resamples : int, default=20
        n_jobs : int, optional
            Processes that search side by side; the answer does not depend on it.
        progress : callable, optional
            Called with the number of resamples that are done, and that of all.
        """
        from regimix.result.stability import stability

        rows = self._rows_of_fit(X, y, sample_weight)
        seed, count = read_seed(random_state), read_count("n_resamples", n_resamples)
        return stability(self, *rows, count, seed, n_jobs, progress)

    def with_stability(self, found: Stability) -> Mixture:
        """Return the mixture with what was found about its stability: displays then show it."""
        return replace(self, resampled=found)

    def compare(
        self, X: Any = None, y: Any = None, *, level: float = 0.95, sample_weight: Any = None
    ) -> Comparison:
        """Compare the coefficients of every two regimes: differences, errors, tests.

        p-values and intervals are corrected for the number of comparisons.

        Parameters
        ----------
        X, y : array or data frame of shape (n, d), array of shape (n,), optional
            The rows of the fit. With them (or if the mixture holds rows), errors are those of all
            regimes together: rows that may belong to two regimes tie their coefficients. Without,
            regimes are taken to be independent, with the errors that the fit recorded.
        level : float, default=0.95
            Probability with which all intervals hold together.
        sample_weight : array of shape (n,), optional
            As in the fit.
        """
        from regimix.result.compare import compare

        return compare(self, None if X is None else self._read(X), y, sample_weight, level)

    def profile(
        self,
        frame: Any,
        columns: Any = None,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        random_state: Any = 0,
    ) -> Profile:
        """Compare columns that the fit did not use between the regimes: who is in each.

        Parameters
        ----------
        frame : data frame or dict of str to array
            The rows of the fit, in their order, with further columns: text, categories, numbers,
            dates, true/false.
        columns : str or sequence of str, optional
            Which to compare. Default: all that were not used in the fit, by their names.
        labels : array of shape (n,), optional
            The regimes of the rows, -1 for outliers. Default: those of the fit; of other rows,
            ``assign(X, y)``.
        sample_weight : array of shape (n,), optional
            As in the fit.
        random_state : int, RandomState, Generator or None, default=0
            Of the tables that are drawn where counts are small.
        """
        from regimix.result.profile import profile

        return profile(self, frame, columns, labels, sample_weight, random_state)

    def _rows_of_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        if X is not None:
            return self._read(X), y, sample_weight
        if self.excerpt is None or not self.excerpt.complete:
            raise ParameterError(
                f"the mixture does not hold all {self.n_rows} rows of its fit: pass X and y."
            )
        return self.excerpt.X, self.excerpt.y, self.excerpt.weights

    # --- showing ----------------------------------------------------------------------------------

    def equation(self, component: int, width: int | None = None) -> str:
        """Write a component as an equation, terms in order of what they contribute.

        A term contributes its coefficient times the deviation of its feature. To stay within so
        many characters, the smallest terms are left out and counted.
        """
        return answer.equation(self, component, width)

    def describe(self, width: int = answer.WIDTH) -> str:
        """Say what was found, one line a regime, and why the search stopped."""
        return answer.describe(self, width)

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str | None:
        try:
            notebook = import_module("regimix.report.notebook")
        except (MissingExtraError, ModuleNotFoundError):
            return None  # notebooks then show the text
        return str(notebook.mixture_html(self))

    def plot(self, X: Any = None, y: Any = None, ax: Any = None, **options: Any) -> Any:
        """Draw rows and regimes over the most telling feature and, smaller, over the others.

        The rows may be left out if the model holds some (``keep_rows=True``). See
        ``regimix.plots.OverviewDisplay``.
        """
        display = import_module("regimix.plots").OverviewDisplay
        return display.from_mixture(self, X, y, ax=ax, **options)

    def report(self, path: Any, X: Any = None, y: Any = None, **options: Any) -> None:
        """Write a self-contained HTML page about the fit; see ``regimix.report.write``."""
        import_module("regimix.report").write(path, self, X, y, **options)
