"""MixedLinearRegression: every linear relation hidden in a table, and the rows that follow none."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from regimix.errors import (
    ConvergenceWarning,
    EvidenceWarning,
    InPython,
    Message,
    ParameterError,
    RankWarning,
    Setting,
    StopReason,
    UnrepeatedWarning,
)
from regimix.estimators.gating import check_gating, learn_gate
from regimix.estimators.rows import is_remote, opened, remember_features
from regimix.estimators.use import MixtureMethods
from regimix.frame import Frame
from regimix.model.em import REGIME_GAIN
from regimix.problem import Problem
from regimix.result.mixture import Mixture
from regimix.search.algorithm2 import MAX_STARTS
from regimix.search.checkpoint import seed_in
from regimix.search.control import watcher
from regimix.search.given import given_starts
from regimix.search.partition import plain_count
from regimix.search.settings import Settings

__all__ = ["MixedLinearRegression"]

# Reasons to end a search before it is done.
EARLY = (
    StopReason.MAX_STARTS,
    StopReason.TIME_LIMIT,
    StopReason.CALLBACK,
    StopReason.INTERRUPTED,
)


class MixedLinearRegression(MixtureMethods, RegressorMixin, BaseEstimator):
    """Find every linear relation that some of the rows follow, and the rows that follow none.

    The number of relations (components), their sizes, their noise and the outliers are found from
    the data: by default one score judges the whole model, and components are added, replaced and
    deleted until nothing improves it.

    Parameters
    ----------
    n_components : "auto" or int, default="auto"
        Number of components; "auto" finds it.
    outliers : "auto", False or float, default="auto"
        Share of the rows that belong to no component. "auto" finds it. False allows none: the fit
        is then the mixture of largest likelihood. A number from 0 to below 1 calls so many rows
        outliers, those that fit worst.
    noise : {"auto", "normal", "student"}, default="auto"
        Law of the noise of the components: normal, or Student's, whose heavier tails belong to a
        component instead of making another one. "auto" takes the likelier.
    search : {"auto", "joint", "partition", "net"}, default="auto"
        How components are found: by every source of proposals; by the joint search alone; by
        sorting all rows into ``n_components`` regimes with the least sum of squares; or by
        Algorithm 2 as its paper states it, an epsilon-net, one component after the other
        (``regimix.global_ilts`` takes its parameters).
    fit_intercept : bool, default=True
        Whether each component has an intercept.
    gating : None, "logistic" or classifier, default=None
        What learns, once the components are found, which of them rows belong to, so that
        ``predict`` averages them by the shares of each row instead of one share for all. None:
        nothing. "logistic": multinomial logistic regression. Or any scikit-learn classifier with
        ``predict_proba``; it is cloned. Methods that take ``gating_features`` need them if it was
        learnt from such columns instead of X.
    init : array of shape (d,), (d + 1,), (starts, d) or (starts, d + 1), optional
        Components to begin with, in user units: coefficients, then the intercept if there is one
        more.
    max_starts : int, optional
        Most starts to try (``search="net"``: for each component and share); the best so far is
        returned, with a warning.
    time_limit : float, optional
        Most seconds to search, likewise.
    checkpoint : path, optional
        A file that long fits write down their progress in, whole or not at all. A fit of the same
        rows with the same settings goes on from it, to the same answer; a finished fit removes it.
    keep_rows : bool, default=False
        Whether the fitted model holds rows of the table (all, if they are few; a draw otherwise),
        so that plots, reports and the bootstrap need not be handed them.
    callback : callable, optional
        Told of the progress (``regimix.search.settings.Progress``) between steps; a true answer
        stops the search, likewise. While rows that are not in memory are still being read, there is
        nothing to return, and the fit ends with a ``StoppedError``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the search.
    n_jobs : int, optional
        Starts that run side by side, as joblib counts them; the answer does not depend on it.

    Attributes
    ----------
    coef_ : ndarray of shape (m, d)
        Coefficients of the components, sorted by share, largest first.
    intercept_ : ndarray of shape (m,)
    weights_ : ndarray of shape (m,)
        Shares of all rows; with ``outlier_share_`` they sum to one.
    scale_ : ndarray of shape (m,)
        Standard deviation of the noise of each component.
    labels_ : array of shape (n,)
        The component of each row, -1 for outliers. A dask array if the rows are on a cluster.
    n_components_ : int
    outlier_share_ : float
    evidence_ : float
        By how much the score of the components exceeds that of constants, in nats: whether there is
        a relation at all. It takes 3, odds of 20 to 1. (``search="net"`` counts rows and knows no
        evidence.)
    noise_degrees_ : float
        Degrees of freedom of Student's law of the noise; infinite for the normal law.
    n_searches_, n_agreed_ : int
        Independent searches that were made, and how many of them reached the best score.
    mixture_ : Mixture
        Everything else about the answer; prints as a table.
    gate_ : object or None
        What the gating learnt: its ``shares(Z)`` are those of each row, (n, m).
    selection_ : dict of str to ndarray, or None
        Columns ``n_components``, ``evidence``, ``bic`` and ``icl``: the best model of every number
        of components that was looked at. None with ``search="net"``.
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

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, gating_features: Any = None
    ) -> Self:
        """Find the relations.

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
            Columns from which the gating learns the component of a row; default: X. They need not
            be numbers if the classifier of your choice takes them.

        Returns
        -------
        self
        """
        # The search is the largest part of the library: it is loaded when it is needed.
        from regimix.result.fit import fit_mixture

        given = self.get_params(deep=False)
        for name in ("fit_intercept", "gating", "init"):
            del given[name]
        if self.checkpoint is not None and self.random_state is None:
            # A fit that goes on has the seed that it began with.
            given["random_state"] = seed_in(self.checkpoint)
        settings = Settings.read(**given)
        check_gating(self.gating, gating_features)
        if self.gating is not None and is_remote(X):
            raise ParameterError(
                "gating is learnt from rows in memory, and these are not: fit without gating, then "
                "learn a classifier from a part of the rows and their labels."
            )
        with opened(
            X,
            y,
            sample_weight,
            fit_intercept=self.fit_intercept,
            time_limit=settings.time_limit,
            watch=watcher(settings),
        ) as rows:
            engine, frame = rows.engine, rows.engine.problem
            remember_features(self, X, y, frame)
            init = None if self.init is None else given_starts(engine, self.init, settings.seed)
            # Reading rows that are not in memory has taken a part of the time there is.
            mixture = fit_mixture(engine, rows.within_limit(settings), init)
        mixture = replace(mixture, settings=replace(settings, callback=None, checkpoint=None))
        if rows.target_name is not None:
            mixture = replace(mixture, target_name=rows.target_name)
        if self.gating is not None:
            assert isinstance(frame, Problem)
            gate = learn_gate(self.gating, mixture, frame, X, gating_features)
            mixture = replace(mixture, gate=gate)
        self._store(mixture)
        labels: Any = mixture.labels
        if not isinstance(labels, np.ndarray):
            # They stay where the rows are; a model must be small enough to be passed around.
            self.mixture_ = replace(mixture, labels=np.empty(0, dtype=np.int64))
        self._warn(frame)
        return self

    def _store(self, mixture: Mixture) -> None:
        self.mixture_ = mixture
        self.coef_, self.intercept_ = mixture.coef, mixture.intercept
        self.weights_, self.scale_ = mixture.weights, mixture.scale
        self.labels_ = mixture.labels
        self.n_components_ = mixture.n_components
        self.outlier_share_ = mixture.outlier_share
        self.evidence_ = mixture.evidence
        self.noise_degrees_ = mixture.noise_degrees
        self.n_searches_, self.n_agreed_ = mixture.n_searches, mixture.n_agreed
        self.gate_ = mixture.gate
        self.selection_ = None if mixture.selection is None else mixture.selection.as_dict()
        self.n_iter_ = mixture.n_iter

    def _warn(self, problem: Frame) -> None:
        mixture = self.mixture_
        asked = mixture.settings.n_components
        if mixture.stopped in EARLY:
            why = self._why_early()
            _say(Message("the search stopped early: ", *why, ". The best so far is returned."))
        if mixture.found_nothing and plain_count(mixture.settings) is not None:
            _say(
                Message(
                    f"with every row in one of the {asked} regimes asked for, they explain y no "
                    "better than its own spread does; those with the least sum of squares are "
                    "returned. There may be outliers (try ",
                    Setting("search", "auto"),
                    "), or fewer regimes (",
                    Setting("n_components", "auto"),
                    ").",
                ),
                EvidenceWarning,
            )
        elif mixture.found_nothing:
            _say(_nothing(mixture), EvidenceWarning)
        elif asked is not None and mixture.n_components < asked:
            found = mixture.n_components
            remedy: tuple[str | Setting, ...] = (InPython(", give starts (init)"),)
            if self.search == "net":
                remedy = (", try ", Setting("search", "auto"))
            _say(
                Message(
                    f"{found} component{'s' * (found != 1)} found, {asked} asked for: the rows do "
                    "not support more. Bring more rows",
                    *remedy,
                    ", or ask for fewer.",
                ),
                EvidenceWarning,
            )
        if not mixture.settled:
            _say(
                Message(
                    "EM on all rows ran out of rounds before it settled: regimes overlap so much "
                    "that coefficients may still move by a part of their standard errors. Ask for "
                    "fewer regimes",
                    InPython(", or fit again with init=coef_"),
                    ".",
                )
            )
        doubtful = np.isfinite(mixture.search_evidence).sum() > 1 and mixture.n_agreed < 2
        if doubtful and not mixture.found_nothing and mixture.stopped not in EARLY:
            _say(
                Message(
                    f"{mixture.n_searches} independent searches ended with different answers; the "
                    f"best is returned, {_lead(mixture):.1f} nats above the next. Look at other ",
                    Setting("random_state"),
                    " values before you rely on it, or ask for fewer regimes.",
                ),
                UnrepeatedWarning,
            )
        if mixture.ranks is not None and min(mixture.ranks) < problem.n_columns:
            _say(
                f"the rows of a component determine {min(mixture.ranks)} of its "
                f"{problem.n_columns} coefficients (columns that repeat or depend on each other, "
                "or too few rows); the shortest solution is returned. Drop columns, or bring more "
                "rows.",
                RankWarning,
            )

    def _why_early(self) -> tuple[str | Setting, ...]:
        """Say what ended the search early, and what to do about it."""
        stopped = self.mixture_.stopped
        if stopped == StopReason.MAX_STARTS:
            # Algorithm 2 has a budget by default.
            budget = Setting("max_starts", self.max_starts or MAX_STARTS)
            return "the budget of ", budget, " starts was spent; raise ", Setting("max_starts")
        if stopped == StopReason.TIME_LIMIT:
            limit = Setting("time_limit")
            return "the ", limit, f" of {self.time_limit:g} seconds was reached; raise ", limit
        if stopped == StopReason.CALLBACK:
            return ("the callback asked for it; let it return a false value to go on",)
        return ("it was interrupted; fit again to let it finish",)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _lead(mixture: Mixture) -> float:
    """Return by how much the best search is ahead of the next."""
    best, second = sorted(mixture.search_evidence, reverse=True)[:2]
    return best - second


def _nothing(mixture: Mixture) -> str:
    """Say that there is no relation, and how near the nearest was."""
    asked, selection = mixture.settings.n_components, mixture.selection
    if mixture.settings.search == "net" or selection is None:
        return Message(
            "no component was accepted; a robust fit to the rows is returned. Try ",
            Setting("search", "auto"),
            ", or bring more rows.",
        )
    evidence = mixture.evidence
    if asked is not None:
        return (
            f"constants explain y better than linear relations do: {_regimes(asked)} asked for, "
            f"which score {-evidence:.1f} nats less. The best found is returned. Check the "
            "columns, or bring more rows."
        )
    best = int(selection.n_components[np.argmax(selection.evidence)])
    said = "as well as linear relations do"
    if evidence < -0.05:
        said = f"better than linear relations do, by {-evidence:.1f} nats"
    if evidence >= 0:
        return Message(
            f"constants explain y nearly as well as linear relations do: {_regimes(best)} would "
            f"gain {evidence:.1f} nats, and {REGIME_GAIN:g} are needed (",
            Setting("n_components", best),
            " shows the nearest miss). A robust line through the rows is returned.",
        )
    return f"constants explain y {said}. A robust line through the rows is returned."


def _regimes(count: int) -> str:
    return "one regime" if count == 1 else f"{count} regimes"


def _say(message: str, kind: type[Warning] = ConvergenceWarning) -> None:
    warnings.warn(message, kind, stacklevel=4)
