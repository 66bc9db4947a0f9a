"""MixedLinearRegression: every linear relation hidden in a table, and the rows that follow none."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from regimix.errors import ConvergenceWarning, EvidenceWarning, ParameterError, RankWarning
from regimix.estimators.gating import check_gating, learn_gate
from regimix.estimators.rows import is_remote, opened, remember_features
from regimix.estimators.use import MixtureMethods
from regimix.frame import Frame
from regimix.mixture.control import watcher
from regimix.mixture.given import given_starts
from regimix.mixture.kregimes import plain_count
from regimix.mixture.peel import MAX_STARTS
from regimix.mixture.result import Mixture
from regimix.mixture.settings import Settings
from regimix.problem import Problem
from regimix.search.net import GRANULARITY
from regimix.trimmed.ilts import MAX_ITER

__all__ = ["MixedLinearRegression"]

# Why a search may have ended before it was done, and what to do about it.
EARLY = {
    "max_starts": "the budget of max_starts={max_starts} starts was spent; raise max_starts",
    "time_limit": "the time_limit of {time_limit:g} seconds was reached; raise time_limit",
    "callback": "the callback asked for it; let it return a false value to go on",
    "interrupted": "it was interrupted; fit again to let it finish",
}


class MixedLinearRegression(MixtureMethods, RegressorMixin, BaseEstimator):
    """Find every linear relation that some of the rows follow, and the rows that follow none.

    The number of relations (components), their sizes, their noise and the outliers are found from
    the data: by default one score judges the whole model, and components are added, replaced and
    deleted until nothing improves it.

    Parameters
    ----------
    n_components : "auto" or int, default="auto"
        Number of components; "auto" finds it.
    keep : "auto" or float, default="auto"
        Share of the rows that belong to components, in (0, 1]; the others, those that fit worst,
        are outliers. "auto" finds it; 1 allows no outliers. With ``n_components``, 1 asks for a
        plain fit of so many regimes: each row belongs to the nearest, and the sum of squares over
        all rows is the least found from the search and from random starts.
    search : {"auto", "joint", "net"}, default="auto"
        Where starts come from: every source; the joint search in the subspace alone; or Algorithm 2
        as its paper states it, an epsilon-net, one component after the other.
    subspace : {"bounded", "svd", "filter"} or None, default="bounded"
        How the few directions that matter are found where there are many features: by bounded
        functions of the response, by the singular vectors of clean data, or by a spectral filter.
        None searches in all directions.
    solver : {"exact", "gradient", "cg"}, default="exact"
        How trimmed fits are solved: normal equations, gradient steps, or conjugate gradients.
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
    shares : float or sequence of float, optional
        ``search="net"``: share of all rows that each component must explain. Default: found by a
        geometric search.
    granularity : float, default=0.5
        ``search="net"``: every component in the subspace is this close to a start, as a share of
        the largest.
    tolerance : float, optional
        ``search="net"``: rows with a smaller residual, in the units of y, are explained. Default:
        found.
    max_starts : int, optional
        Most starts to try (``search="net"``: for each component and share); the best so far is
        returned, with a warning.
    time_limit : float, optional
        Most seconds to search, likewise.
    checkpoint : path, optional
        A file that long fits write down their progress in, whole or not at all. A fit of the same
        rows with the same settings goes on from it, to the same answer; a finished fit removes it.
    callback : callable, optional
        Told of the progress (``regimix.mixture.settings.Progress``) between steps; a true answer
        stops the search, likewise. While rows that are not in memory are still being read, there is
        nothing to return, and it stops the fit by a KeyboardInterrupt.
    max_iter : int, default=300
        Most rounds of a trimmed fit.
    tol : float, default=0.0
        Stop a trimmed fit when a round lowers its objective by less than this fraction.
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
        How much likelier the data are with the model than without, as a logarithm and after all
        discounts. Not positive: nothing was found. (``search="net"`` counts rows and knows no
        evidence.)
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
        keep: Any = "auto",
        search: str = "auto",
        subspace: str | None = "bounded",
        solver: str = "exact",
        fit_intercept: bool = True,
        gating: Any = None,
        init: Any = None,
        shares: Any = None,
        granularity: float = GRANULARITY,
        tolerance: float | None = None,
        max_starts: int | None = None,
        time_limit: float | None = None,
        callback: Any = None,
        checkpoint: Any = None,
        max_iter: int = MAX_ITER,
        tol: float = 0.0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.keep = keep
        self.search = search
        self.subspace = subspace
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.gating = gating
        self.init = init
        self.shares = shares
        self.granularity = granularity
        self.tolerance = tolerance
        self.max_starts = max_starts
        self.time_limit = time_limit
        self.callback = callback
        self.checkpoint = checkpoint
        self.max_iter = max_iter
        self.tol = tol
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
        from regimix.mixture.fit import fit_mixture

        given = self.get_params(deep=False)
        for name in ("fit_intercept", "gating", "init"):
            del given[name]
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
        self.gate_ = mixture.gate
        self.selection_ = None if mixture.selection is None else mixture.selection.as_dict()
        self.n_iter_ = mixture.n_iter

    def _warn(self, problem: Frame) -> None:
        mixture = self.mixture_
        asked = mixture.settings.n_components
        if mixture.stopped in EARLY:
            starts = self.max_starts or MAX_STARTS  # Algorithm 2 has a budget by default
            limits = {"max_starts": starts, "time_limit": self.time_limit or 0.0}
            why = EARLY[mixture.stopped].format(**limits)
            _say(f"the search stopped early: {why}. The best so far is returned.")
        if mixture.found_nothing and plain_count(mixture.settings) is not None:
            _say(
                f"with every row in one of the {asked} regimes asked for, they explain y no better "
                "than its own spread does; those with the least sum of squares are returned. There "
                'may be outliers (try keep="auto"), or fewer regimes (n_components="auto").',
                EvidenceWarning,
            )
        elif mixture.found_nothing:
            answer = "a robust fit to the rows is" if asked is None else "the best found is"
            _say(
                f"the {problem.mass:g} rows give no evidence of a linear relation beyond the "
                f"spread of y itself; {answer} returned. Check the columns, or bring more rows.",
                EvidenceWarning,
            )
        elif asked is not None and mixture.n_components < asked:
            found = mixture.n_components
            remedy = "give starts (init)" if self.search != "net" else 'try search="auto"'
            _say(
                f"{found} component{'s' * (found != 1)} found, {asked} asked for: the rows do not "
                f"support more. Bring more rows, {remedy}, or ask for fewer.",
                EvidenceWarning,
            )
        if mixture.ranks is not None and min(mixture.ranks) < problem.n_columns:
            _say(
                f"the rows of a component determine {min(mixture.ranks)} of its "
                f"{problem.n_columns} coefficients (columns that repeat or depend on each other, "
                "or too few rows); the shortest solution is returned. Drop columns, or bring more "
                "rows.",
                RankWarning,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _say(message: str, kind: type[Warning] = ConvergenceWarning) -> None:
    warnings.warn(message, kind, stacklevel=4)
