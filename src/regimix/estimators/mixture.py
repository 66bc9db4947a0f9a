"""MixedLinearRegression: every linear relation hidden in a table, and the rows that follow none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from regimix.data.encoding import LEFT_OUT
from regimix.errors import (
    ConvergenceWarning,
    EvidenceWarning,
    InPython,
    Message,
    ParameterError,
    RivalWarning,
    Setting,
    StopReason,
    UnrepeatedWarning,
)
from regimix.estimators.gating import (
    LearnedGate,
    apply_gate,
    check_gating,
    gate_parameters,
    gate_shares,
    learn_gate,
)
from regimix.estimators.inputs import (
    NewRows,
    new_rows,
    opened,
    r_squared,
    warn_of_rank,
    warn_user,
    why_early,
)
from regimix.model.em import REGIME_GAIN
from regimix.result.answer import EARLY, Answer, constants, likeliest
from regimix.result.mixture import Mixture
from regimix.result.rivals import advice
from regimix.result.summary import Summary
from regimix.search.checkpoint import seed_in
from regimix.search.settings import Settings, given_starts
from regimix.words import bare, clean, number

if TYPE_CHECKING:
    from regimix.result.bootstrap import Bootstrap
    from regimix.result.compare import Comparison
    from regimix.result.profile import Profile
    from regimix.result.stability import Stability

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# Parameters that the search does not know.
NOT_SEARCHED = {"fit_intercept", "gating", "init", "encode"}
# Attributes of the mixture that are attributes of the estimator, too.
COPIED = (
    *("coef", "intercept", "weights", "scale", "noise_degrees", "n_components", "outlier_share"),
    *("evidence", "n_searches", "n_agreed", "gate", "n_iter"),
)


class MixedLinearRegression(RegressorMixin, BaseEstimator):
    """Find every linear relation that some of the rows follow, and the rows that follow none.

    The number of relations (regimes), their sizes, their noise and the outliers are found from
    the data: by default one score judges the whole model, and regimes are added, replaced and
    deleted until nothing improves it.

    Parameters
    ----------
    n_components : "auto" or int, default="auto"
        Number of regimes; "auto" finds it.
    outliers : "auto", False or float, default="auto"
        Share of the rows that belong to no regime. "auto" finds it. False allows none: the fit
        is then the mixture of largest likelihood. A number from 0 to below 1 calls so many rows
        outliers, those that fit worst.
    noise : {"auto", "normal", "student"}, default="auto"
        Law of the noise of the regimes: normal, or Student's, whose heavier tails belong to a
        regime instead of making another one. "auto" takes the likelier.
    search : {"auto", "joint", "partition", "net"}, default="auto"
        How regimes are found: by every source of proposals; by the joint search alone; by
        sorting all rows into ``n_components`` regimes with the least sum of squares; or by
        Algorithm 2 as its paper states it, an epsilon-net, one regime after the other
        (``regimix.global_ilts`` takes its parameters).
    fit_intercept : bool, default=True
        Whether each regime has an intercept.
    gating : None, "logistic", "trees" or classifier, default=None
        A classifier that learns, once the regimes are found, which of them a row follows, so that
        ``predict`` averages them by the shares of each row instead of one share for all. Labels
        and probabilities follow these shares, too; coefficients, errors and evidence stay. None:
        nothing. "logistic": multinomial logistic regression. "trees": a forest of decision trees.
        Or any scikit-learn classifier with ``predict_proba``; it is cloned. Methods that take
        ``gating_features`` need them if it was learnt from such columns instead of X. Of rows that
        are not in memory, it is learnt from a sample.
    init : array of shape (d,), (d + 1,), (starts, d) or (starts, d + 1), optional
        Regimes to begin with, in user units: coefficients, then the intercept if there is one
        more.
    max_starts : int, optional
        Most starts to try (``search="net"``: for each regime and share); the best so far is
        returned, with a warning.
    time_limit : float, optional
        Most seconds to search, likewise.
    checkpoint : path, optional
        A file in which long fits save their progress, whole or not at all. A fit of the same
        rows with the same settings goes on from it, to the same answer; a finished fit removes it.
    keep_rows : bool, default=False
        Whether the fitted model holds rows of the table (all, if they are few; a draw otherwise),
        so that plots, reports and the bootstrap do not need the data again.
    callback : callable, optional
        Called with the progress (``regimix.search.settings.Progress``) between steps; a true answer
        stops the search, likewise. While rows that are not in memory are still being read, there is
        nothing to return, and the fit ends with a ``StoppedError``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the search.
    n_jobs : int, optional
        Starts that run side by side, as joblib counts them; the answer does not depend on it.
    encode : {"auto", None}, default="auto"
        "auto": columns of a data frame (pandas, polars) may be text, categories, true/false and
        dates, with missing values, and become numbers as on the command line (``docs/files.rst``).
        Rows with a missing value and columns that cannot be used are left out, with a
        ``LeftOutWarning``. None: everything but numbers is refused. Arrays hold numbers either
        way, none of them missing.

    Attributes
    ----------
    coef_ : ndarray of shape (m, d)
        Coefficients of the regimes, sorted by share, largest first.
    intercept_ : ndarray of shape (m,)
    weights_ : ndarray of shape (m,)
        Shares of all rows; with ``outlier_share_`` they sum to one. With gating, they are those
        before it, one share for all rows; ``mixture_.gate.average`` has the averages of its shares.
    scale_ : ndarray of shape (m,)
        Standard deviation of the noise of each regime.
    labels_ : array of shape (n,)
        The regime of each row, -1 for outliers, -2 for rows that were left out because a value is
        missing (``mixture_.labels`` has the others alone). With gating, by the shares of each row,
        as ``assign`` says. A dask array if the rows are on a cluster.
    encoding_ : Recipe or None
        What each column of a data frame became; None if all were numbers, and all there.
    left_out_ : ndarray of shape (n,), object, or None
        Why a row was left out, "" for the others; None if none was.
    n_components_ : int
    outlier_share_ : float
    evidence_ : float
        By how much the score of the regimes exceeds that of constants, in nats: whether there is
        a relation at all. It takes 3, odds of 20 to 1. (``search="net"`` counts rows and has no
        evidence: NaN.)
    noise_degrees_ : float
        Degrees of freedom of Student's law of the noise; infinite for the normal law.
    n_searches_, n_agreed_ : int
        Independent searches that were made, and how many of them ended with the answer: as likely,
        and with the same labels but for rows in doubt. Where the answer is likelier than what any
        of them ended with, those that agree on the best of these.
    mixture_ : Mixture
        Everything else about the answer; prints as a table.
    gate_ : object or None
        What the gating learnt: its ``shares(Z)`` are those of each row, (n, m).
    selection_ : dict of str to ndarray, or None
        Columns ``n_components``, ``evidence``, ``bic`` and ``icl``: the best model of every number
        of regimes that was looked at. None with ``search="net"``.
    n_iter_ : int
        Moves that were tried; at least one.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        If X has column names.

    Examples
    --------
    >>> from regimix import MixedLinearRegression
    >>> from regimix.datasets import load_tone
    >>> tone = load_tone()
    >>> fit = MixedLinearRegression(random_state=0).fit(tone.X, tone.y)
    >>> fit.n_components_
    2
    """

    mixture_: Mixture
    gate_: LearnedGate | None
    coef_: Floats
    intercept_: Floats

    def __init__(
        self,
        n_components: Any = "auto",
        outliers: Any = "auto",
        noise: str = "auto",
        search: str = "auto",
        fit_intercept: bool = True,
        gating: Any = None,
        init: Any = None,
        max_starts: int | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        checkpoint: Any = None,
        keep_rows: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        encode: str | None = "auto",
    ) -> None:
        self.n_components = n_components
        self.outliers = outliers
        self.noise = noise
        self.search = search
        self.fit_intercept = fit_intercept
        self.gating = gating
        self.init = init
        self.max_starts = max_starts
        self.time_limit = time_limit
        self.callback = callback
        self.checkpoint = checkpoint
        self.keep_rows = keep_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.encode = encode

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, gating_features: Any = None
    ) -> Self:
        """Find the regimes, their noise and the outliers.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            In memory or memory-mapped; or a dask array or data frame; or a table that is read in
            parts (``regimix.scan_parquet``), which brings its own response and weights.
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            Whole numbers count repetitions of a row, other numbers are relative importances; a row
            of weight zero is absent.
        gating_features : array or data frame of n rows, optional
            Columns from which the gating learns the regime of a row; default: X. Those of a data
            frame may be text, true/false and dates; a classifier of your own gets them as they
            are.

        Returns
        -------
        self
        """
        # The search is the largest part of the library: it is loaded when it is needed.
        from regimix.result.fit import fit_mixture

        settings = read_settings(self)
        if self.gating is not None or gating_features is not None:
            check_gating(self.gating, gating_features, X)
        with opened(self, X, y, sample_weight, settings) as rows:
            engine, known = rows.engine, dict[str, Any]()
            init = None if self.init is None else given_starts(engine, self.init, settings.seed)
            mixture = fit_mixture(engine, rows.settings, init)
            if self.gating is not None:
                gate = learn_gate(self.gating, mixture, rows, X, gating_features)
                mixture = apply_gate(gate, mixture, rows, X, gating_features)
        known["settings"] = replace(settings, callback=None, checkpoint=None)
        if rows.target_name is not None:
            known["target_name"] = rows.target_name
        if rows.encoded is not None:
            known["encoding"] = rows.encoded.recipe
            known["notes"] = (*rows.encoded.notes, *rows.encoded.warnings)
        labels: Any = mixture.labels
        self.labels_ = rows.put_back(labels, LEFT_OUT)
        if not isinstance(labels, np.ndarray):
            # They stay where the rows are; a model must be small enough to be passed around.
            known["labels"] = np.empty(0, dtype=np.int64)
        self.mixture_ = mixture = replace(mixture, **known)
        for name in COPIED:
            setattr(self, f"{name}_", getattr(mixture, name))
        self.selection_ = None if mixture.selection is None else mixture.selection.as_dict()
        self._warn(engine.problem.n_columns)
        return self

    def _warn(self, n_columns: int) -> None:
        mixture = self.mixture_
        asked, found = mixture.settings.n_components, mixture.n_components
        early, fewer = mixture.stopped in EARLY, asked is not None and found < asked
        # Whether the rows support more, or anything at all, is not known then. (Algorithm 2 always
        # has a budget of starts: what it finds within that is its answer.)
        unknown = early and (mixture.stopped != StopReason.MAX_STARTS or self.search != "net")
        if early:
            until = f"{found} of the {asked} regimes asked for were found. " if fewer else ""
            until = "No regime was found yet. " if mixture.found_nothing else until
            said = why_early(mixture.stopped, mixture.settings, until if unknown else "")
            warn_user(ConvergenceWarning, said)
        elif not mixture.settled:
            said = Message(
                "EM on all rows ran out of rounds before it settled: regimes overlap so much that "
                "coefficients may still move by a part of their standard errors. Ask for fewer "
                "regimes",
                InPython(", or fit again with init=coef_"),
                ".",
            )
            warn_user(ConvergenceWarning, said)
        if mixture.found_nothing and not unknown:
            warn_user(EvidenceWarning, _nothing(mixture))
        elif fewer and not unknown:
            remedy: tuple[str | Setting, ...] = (InPython(", give starts (init)"),)
            if self.search == "net":
                remedy = (", try ", Setting("search", "auto"))
            said = Message(
                f"{found} regime{'s' * (found != 1)} found, {asked} asked for: the rows do not "
                "support more. Bring more rows",
                *remedy,
                ", or ask for fewer.",
            )
            warn_user(EvidenceWarning, said)
        if unrepeated := Answer(mixture).unrepeated:
            said = Message(
                f"o{unrepeated[1:]} Look at other ",
                Setting("random_state"),
                " values before you rely on them, or ask for fewer regimes.",
            )
            warn_user(UnrepeatedWarning, said)
        if mixture.rival is not None and found > 1 and not mixture.found_nothing:
            said = Message(
                f"{bare(Answer(mixture).rival_ahead).removesuffix('.')}; they may be nothing but "
                f"its pieces. {advice(mixture.rivals)}",
                InPython(" See mixture_.rivals."),
            )
            warn_user(RivalWarning, said)
        rank = min(mixture.ranks or (n_columns,))
        if rank < n_columns:
            warn_of_rank(f"the rows of a regime determine {rank} of its {n_columns}", "bring")

    # --- predicting -------------------------------------------------------------------------------

    def predict(self, X: Any, gating_features: Any = None) -> Floats:
        """Predict the expected response: the regimes averaged by their shares, (n,).

        It is the mean over all rows with such features, whichever regime they follow, outliers left
        out. Where regimes are far apart it lies between them, and no row need lie there:
        ``predict_components`` says what each regime predicts, ``predict_interval`` where a response
        may lie. With gating, the shares are those of each row: where the likely regime is clear,
        the answer is close to what that regime predicts. NaN in rows of a data frame that are left
        out because a value is missing.
        """
        rows, shares = self._rows(X, gating_features)
        return np.asarray(rows.put_back(self.mixture_.predict(rows.X, shares)))

    def predict_components(self, X: Any) -> Any:
        """Predict the response by each regime, (n, m).

        Here and in the methods below, a data frame is answered with one (or with a series) that
        has its index.
        """
        rows = new_rows(self, X)
        return rows.framed(self.mixture_.predict_components(rows.X), self._named("prediction"))

    def predict_interval(self, X: Any, level: float = 0.95, gating_features: Any = None) -> Any:
        """Predict an interval for the response of each row, its regime unknown, (n, 2).

        For rows that are no outliers; the errors of the coefficients are included. Where regimes
        are far apart it reaches over the gap between them; ``predict_component_intervals`` has the
        pieces.
        """
        _check_level(level)
        rows, shares = self._rows(X, gating_features)
        ends = self.mixture_.predict_interval(rows.X, level, shares)
        return rows.framed(ends, ["lower", "upper"])

    def predict_component_intervals(self, X: Any, level: float = 0.95) -> Floats:
        """Predict an interval for the response of each row under each regime, (n, m, 2)."""
        _check_level(level)
        rows = new_rows(self, X)
        ends = self.mixture_.predict_component_intervals(rows.X, level)
        return np.asarray(rows.put_back(ends))

    def predict_shares(self, X: Any, gating_features: Any = None) -> Any:
        """Return the shares of the regimes among rows like each row, no outliers, (n, m).

        Without gating they are the same for all rows.
        """
        rows, shares = self._rows(X, gating_features)
        if shares is None:
            weights = self.mixture_.weights
            shares = np.tile(weights / weights.sum(), (len(rows.X), 1))
        return rows.framed(shares, self._named("share"))

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, gating_features: Any = None
    ) -> float:
        """Coefficient of determination (R²) of ``predict``: 1 is best, 0 as good as the mean of y.

        It measures the expected response only, as for any regressor, and not the regimes: the right
        regimes can score below least squares, which aims at nothing else. To compare models on
        rows that were held out, ``regimix.metrics.log_density_scorer`` measures their density.
        """
        rows, shares = self._rows(X, gating_features, y)
        return r_squared(rows, self.mixture_.predict(rows.X, shares), sample_weight)

    # --- judging rows -----------------------------------------------------------------------------

    def assign(self, X: Any, y: Any, gating_features: Any = None) -> Any:
        """Label rows by their likeliest regime, (n,): -1 for outliers, -2 for rows left out."""
        rows, shares = self._rows(X, gating_features, y)
        labels = self.mixture_.assign(rows.X, rows.y, shares)
        return rows.framed(labels, "regime", LEFT_OUT)

    def responsibilities(self, X: Any, y: Any, gating_features: Any = None) -> Any:
        """Probability that a row belongs to each regime or, last, is an outlier, (n, m + 1)."""
        rows, shares = self._rows(X, gating_features, y)
        chances = self.mixture_.responsibilities(rows.X, rows.y, shares)
        return rows.framed(chances, [*self._named("probability"), "probability_outlier"])

    def outlier_score(self, X: Any, y: Any, gating_features: Any = None) -> Any:
        """Say how unlikely each response is: 2 if one in 100 clean rows is so unlikely, (n,).

        Minus the decimal logarithm of the chance of a response at least as unlikely.
        """
        rows, shares = self._rows(X, gating_features, y)
        return rows.framed(self.mixture_.outlier_score(rows.X, rows.y, shares), "outlier_score")

    def flag(self, X: Any, y: Any, rate: float = 0.01, gating_features: Any = None) -> Any:
        """Flag rows of unlikely response, (n,): ``rate`` of the rows that follow the model."""
        rows, shares = self._rows(X, gating_features, y)
        return rows.framed(self.mixture_.flag(rows.X, rows.y, rate, shares), "flagged", fill=False)

    def score_samples(self, X: Any, y: Any = None, gating_features: Any = None) -> Floats:
        """Log density of each response given its features, (n,).

        Without y, that of the likeliest among the predictions of the regimes: how sharply the
        features determine the response.
        """
        rows, shares = self._rows(X, gating_features, y)
        if y is not None:
            scores = self.mixture_.score_samples(rows.X, rows.y, shares)
        else:
            means = self.mixture_.predict_components(rows.X).T
            each = [self.mixture_.score_samples(rows.X, mean, shares) for mean in means]
            scores = np.asarray(np.max(each, axis=0))
        return np.asarray(rows.put_back(scores))

    def bic(self, X: Any, y: Any, sample_weight: Any = None, gating_features: Any = None) -> float:
        """Bayesian information criterion on rows; lower is better.

        A logistic gating is charged for what it learnt. The parameters of other classifiers cannot
        be counted; ``mixture_.bic`` leaves the gating out.
        """
        rows, shares = self._rows(X, gating_features, y)
        known = rows.X, rows.y, rows.of(sample_weight), shares
        return self.mixture_.bic(*known, gate_parameters(self.gate_))

    def icl(self, X: Any, y: Any, sample_weight: Any = None, gating_features: Any = None) -> float:
        """BIC plus twice the entropy of the assignments: lower if the regimes are also distinct.

        As in ``bic``, a logistic gating is charged for, and others are refused.
        """
        rows, shares = self._rows(X, gating_features, y)
        known = rows.X, rows.y, rows.of(sample_weight), shares
        return self.mixture_.icl(*known, gate_parameters(self.gate_))

    # --- how sure the coefficients are ------------------------------------------------------------

    def summary(self, level: float = 0.95) -> Summary:
        """Return a table of all coefficients with errors, tests and intervals; ``print`` it."""
        return self._fitted().summary(level)

    def summary_frame(self, level: float = 0.95) -> Any:
        """Return the same as a pandas data frame (polars if pandas is missing)."""
        return self._fitted().summary_frame(level)

    def conf_int(self, level: float = 0.95) -> Floats:
        """Return confidence intervals of the coefficients, (m, d + 1, 2), the intercept last.

        They are conditional on the regimes that were found. Rows of uncertain label count by their
        probabilities and widen them; with a share of outliers given, or ``search="partition"`` or
        ``"net"``, labels are taken as certain. Without an intercept, (m, d, 2).
        """
        return self._fitted().conf_int(level)

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
        """Refit to resampled rows: standard errors that include the uncertainty of the labels.

        Parameters are those of :meth:`regimix.Mixture.bootstrap`: the rows of the fit may be left
        out if the mixture holds them all (``keep_rows=True``).
        """
        values, y, sample_weight = self._rows_of_fit(X, y, sample_weight)
        return self.mixture_.bootstrap(
            values, y, n_resamples, level, random_state, sample_weight, n_jobs
        )

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

        Parameters are those of :meth:`regimix.Mixture.stability`. The answer is also kept in
        ``mixture_.resampled``, so that displays call doubtful regimes so.
        """
        values, y, sample_weight = self._rows_of_fit(X, y, sample_weight)
        found = self.mixture_.stability(
            values, y, n_resamples, random_state, sample_weight, n_jobs, progress
        )
        self.mixture_ = self.mixture_.with_stability(found)
        return found

    def compare(
        self, X: Any = None, y: Any = None, *, level: float = 0.95, sample_weight: Any = None
    ) -> Comparison:
        """Compare the coefficients of every two regimes: differences, errors, tests.

        Parameters are those of :meth:`regimix.Mixture.compare`.
        """
        values, y, sample_weight = self._rows_of_fit(X, y, sample_weight)
        return self.mixture_.compare(values, y, level=level, sample_weight=sample_weight)

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

        Parameters are those of :meth:`regimix.Mixture.profile`: ``frame`` holds the rows of the
        fit, in their order, with further columns.
        """
        check_is_fitted(self)
        if labels is None and (self.left_out_ is not None or not self.mixture_.labels.size):
            labels = self.labels_
        if labels is not None and self.left_out_ is not None:
            # Rows that could not be used are in the frame, and in no regime.
            used = np.asarray(labels) != LEFT_OUT
            frame = frame.filter(used) if hasattr(frame, "get_column") else frame[used]
            labels = np.asarray(labels)[used]
            sample_weight = None if sample_weight is None else np.asarray(sample_weight)[used]
        return self.mixture_.profile(
            frame, columns, labels=labels, sample_weight=sample_weight, random_state=random_state
        )

    def plot(self, X: Any = None, y: Any = None, ax: Any = None, **options: Any) -> Any:
        """Draw rows and regimes over the most telling feature and, smaller, over the others.

        The rows may be left out if the model holds some (``keep_rows=True``). See
        ``regimix.plots.OverviewDisplay``.
        """
        check_is_fitted(self)
        display = import_module("regimix.plots").OverviewDisplay
        return display.from_estimator(self, X, y, ax=ax, **options)

    def plot_selection(self, ax: Any = None, **options: Any) -> Any:
        """Plot evidence, BIC and ICL by the number of regimes; see ``SelectionDisplay``."""
        check_is_fitted(self)
        display = import_module("regimix.plots").SelectionDisplay
        return display.from_estimator(self, ax=ax, **options)

    def _html_repr(self) -> str:
        """Show in a notebook what was found, beside scikit-learn's box of parameters."""
        box: str = super()._html_repr()
        mixture = self.__dict__.get("mixture_")
        card = None if mixture is None else mixture._repr_html_()
        return box if card is None else f"{card}{box}"

    # --- new rows ---------------------------------------------------------------------------------

    def sample(
        self, n_samples: int | None = None, random_state: Any = None, X: Any = None
    ) -> tuple[NDArray[Any], Floats, Labels]:
        """Draw rows from the model: features, responses, and labels (-1 for outliers).

        Regimes are drawn by their shares of all rows, whatever the gating. Parameters are those
        of :meth:`regimix.Mixture.sample`: responses are drawn for X if it is given.
        """
        check_is_fitted(self)
        values = None if X is None else new_rows(self, X).X
        return self.mixture_.sample(n_samples, random_state, values)

    def _rows(
        self, X: Any, gating_features: Any = None, y: Any = None
    ) -> tuple[NewRows, Floats | None]:
        """Check rows, and find the shares of the regimes in each of them, if there is a gate."""
        rows = new_rows(self, X, y)
        return rows, gate_shares(self.gate_, X, rows, gating_features)

    def _fitted(self) -> Mixture:
        check_is_fitted(self)
        return self.mixture_

    def _rows_of_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        check_is_fitted(self)
        if X is None:
            return X, y, sample_weight
        rows = new_rows(self, X, y)
        return rows.X, rows.y, rows.of(sample_weight)

    def _named(self, what: str) -> list[str]:
        """Name a column for each regime, as files of labelled rows do."""
        return [f"{what}_{j}" for j in range(self.mixture_.n_components)]


def read_settings(model: MixedLinearRegression) -> Settings:
    """Read the parameters of an estimator for its search, or refuse them; no rows are needed."""
    given = model.get_params(deep=False)
    given = {name: given[name] for name in given.keys() - NOT_SEARCHED}
    if model.checkpoint is not None and model.random_state is None:
        # A fit that goes on has the seed that it began with.
        given["random_state"] = seed_in(model.checkpoint)
    return Settings.read(**given)


def _check_level(level: Any) -> None:
    if np.ndim(level) > 0:
        raise ParameterError(
            "the second argument is the level of the interval, a number such as 0.95, and an array "
            f"of shape {np.shape(level)} was passed; an interval is predicted without y."
        )


def _nothing(mixture: Mixture) -> Message:
    """Say that there is no relation, and how near the nearest was."""
    asked, selection = mixture.settings.n_components, mixture.selection
    target, constant = clean(mixture.target_name), bare(Answer(mixture).constant)
    if constant:
        said = f"{constant[0].lower()}{constant[1:]}"
        return Message(f"{said}. There is nothing to explain: check the column.")
    if mixture.settings.search == "partition":
        where = "the one regime" if asked == 1 else f"one of the {asked} regimes"
        return Message(
            f"with every row in {where} asked for, {target} is explained no better than by its own "
            "spread; what has the least sum of squares is returned. There may be outliers (try ",
            Setting("search", "auto"),
            "), or fewer regimes (",
            Setting("n_components", "auto"),
            ").",
        )
    if mixture.settings.search == "net" or selection is None:
        return Message(
            "no regime was accepted; one line through the rows is returned. Try ",
            Setting("search", "auto"),
            ", or bring more rows.",
        )
    evidence = mixture.evidence_of_features
    if asked is not None:
        best = likeliest(mixture)
        fewer = "Ask for fewer regimes, c" if asked > 1 else "C"
        todo = f"{fewer}heck the columns, or bring more rows."
        if best is not None and Answer(mixture).favours:
            todo = f"The evidence favours {_regimes(best)}."
        return Message(
            f"{constants(mixture)} explain {target} better than the {_regimes(asked)} asked for, "
            f"which score{'s' * (asked == 1)} {number(-evidence)} nats less. The best found is "
            f"returned. {todo}"
        )
    line = f"The line that most rows follow{Answer(mixture).not_scored} is returned."
    line = f"{bare(Answer(mixture).given_values)} {line}".strip()
    if evidence >= 0.05:
        best = int(selection.n_components[np.argmax(selection.evidence)])
        return Message(
            f"there is too little evidence for a linear relation of {target} to the features: "
            f"{_regimes(best)} would gain {number(evidence)} nats over {constants(mixture)}, and "
            f"{REGIME_GAIN:g} are needed (",
            Setting("n_components", best),
            f" shows the nearest miss). {line}",
        )
    if evidence < -0.05:
        better = f"better than linear relations do, by {number(-evidence)} nats"
        return Message(f"{constants(mixture)} explain {target} {better}. {line}")
    return Message(f"{constants(mixture)} explain {target} as well as linear relations do. {line}")


def _regimes(count: int) -> str:
    return "one regime" if count == 1 else f"{count} regimes"
