"""TrimmedRegressor: one linear relation that holds for a part of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from regimix.engines.base import Engine
from regimix.engines.memory import MemoryEngine
from regimix.errors import (
    ConvergenceWarning,
    EvidenceWarning,
    ParameterError,
    StopReason,
    read_choice,
    read_count,
)
from regimix.estimators.inputs import (
    NewRows,
    Rows,
    new_rows,
    opened,
    r_squared,
    warn_of_rank,
    warn_user,
    why_early,
)
from regimix.model.em import REGIME_GAIN, late
from regimix.result.answer import EARLY, WIDTH
from regimix.result.inference import least_squares_errors, read_level
from regimix.result.rowlaw import MOST_COVARIANCE_FEATURES
from regimix.result.summary import COLUMNS, INTERCEPT, MOST_TERMS, as_frame, print_cells, print_row
from regimix.search.checkpoint import seed_in
from regimix.search.numbers import SEARCH
from regimix.search.settings import Control, Settings, SolverKind, deadline, given_starts
from regimix.search.single import Single, find_single, majority
from regimix.threads import fitting_threads
from regimix.trimmed.gradient import solver_maker
from regimix.trimmed.ilts import MAX_ITER, check_limits, kept_mass
from regimix.trimmed.reweight import CUTOFF, consistent_scale, judged, reweight
from regimix.words import count, fixed, number, percent

__all__ = ["TrimmedRegressor", "TrimmedSummary"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class TrimmedSummary:
    """The coefficients of a TrimmedRegressor with errors, tests and intervals.

    Errors are those of least squares on the rows that were fitted: those within 2.5 scales of the
    trimmed fit. They take for granted which these are. ``inlier_mask_`` judges all rows by the
    result, so that a few near the edge may be in one set alone.
    """

    model: TrimmedRegressor
    level: float

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each term, the intercept first."""
        model = self.model
        names = [*model._terms, INTERCEPT]  # noqa: SLF001 - of the same file
        constant = int(model.fit_intercept)
        values = np.append(model.coef_, [model.intercept_] * constant)
        known = model.standard_error_
        error = np.full(values.size, np.nan) if known is None else known
        free = model._n_inliers - values.size  # noqa: SLF001
        with np.errstate(divide="ignore", invalid="ignore"):
            t = values / error
        p = 2 * stdtr(max(free, 1), -np.abs(t))
        reach = stdtrit(max(free, 1), 0.5 + self.level / 2) * error
        cells = np.array([values, error, t, p, values - reach, values + reach]).T.tolist()
        terms = [
            {"term": name} | dict(zip(COLUMNS, row, strict=True))
            for name, row in zip(names, cells, strict=False)
        ]
        return terms[model.coef_.size :] + terms[: model.coef_.size]

    def frame(self) -> Any:
        """Return the records as a pandas data frame (polars if pandas is missing)."""
        return as_frame(self.records())

    def __repr__(self) -> str:
        model = self.model
        bounds = f"[{0.5 - self.level / 2:.4g}", f"{0.5 + self.level / 2:.4g}]"
        # Of the same file.
        whole, good, near = model._n_rows, model._n_inliers, model._n_within  # noqa: SLF001
        parts = [f"{fixed(whole, 0)} rows", f"noise {number(model.scale_)}"]
        if np.isfinite(good):
            parts.insert(1, f"{fixed(good, 0)} of them fitted ({percent(good / whole)})")
        head = print_row("", ("coef", "std err", "t", "P>|t|", *bounds))
        lines = ["One linear relation, outliers left out".center(WIDTH).rstrip(), "=" * WIDTH]
        lines += [
            ", ".join(parts),
            *wrap(_within(near, good), WIDTH),
            "-" * WIDTH,
            head,
            "-" * WIDTH,
        ]
        records = self.records()
        for record in records[:MOST_TERMS]:
            values = np.array([record[name] for name in COLUMNS])
            lines.append(print_row(record["term"], print_cells(values)))
        left = len(records) - MOST_TERMS
        lines += [f"... {count(left, 'more term')}; records() has all"] if left > 0 else []
        granted = "Errors, tests and intervals take for granted which rows were fitted."
        if model.standard_error_ is None:
            granted = "There are no errors: see standard_error_ for the reasons."
        return "\n".join([*lines, "=" * WIDTH, granted])


def _within(near: float, fitted: float) -> str:
    """Say how many rows are near the relation, and why others may have been fitted; if known."""
    if not np.isfinite(near):
        return ""
    who = f"{count(round(near), 'row')} {'lies' if round(near) == 1 else 'lie'}"
    others = f"; fitted were those within {CUTOFF:g} times that of the trimmed fit"
    return (
        f"{who} within {CUTOFF:g} times the noise (inlier_mask_)"
        f"{others if np.isfinite(fitted) else ''}."
    )


class TrimmedRegressor(RegressorMixin, BaseEstimator):
    """Fit the linear relation that most of the rows follow, whatever the other rows are.

    Least trimmed squares: the coefficients that fit best the rows they fit best. With the default
    ``keep="auto"`` the number of rows and the noise level come from the data; a number gives the
    classical estimator, as FAST-LTS does.

    Parameters
    ----------
    keep : "auto" or float, default="auto"
        Fraction of rows that the relation is fitted to, in (0, 1].
    solver : {"exact", "gradient", "cg"}, default="exact"
        How the last stage fits the kept rows: normal equations, gradient steps, or conjugate
        gradients. The latter two never form a d x d matrix, and suit thousands of columns.
    n_starts : int, default=32
        Random subsets of rows to start from, beside least squares and reweighted fits.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    init : array of shape (d,), (d + 1,), (starts, d) or (starts, d + 1), optional
        Further starts in user units: coefficients, then the intercept if there is one more.
    reweight : bool, default=True
        Whether to finish with least squares on all rows within 2.5 scales of the trimmed fit.
    max_iter : int, default=300
        Most rounds of the last stage.
    tol : float, default=0.0
        Stop when a round lowers the objective by less than this fraction; zero runs to the exact
        fixed point.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the subsets.
    time_limit : float, optional
        Most seconds to search; the best so far is returned, with a warning.
    callback : callable, optional
        Called with the progress (``regimix.search.settings.Progress``) between rounds; a true
        answer stops the search, likewise. While rows that are not in memory are still being read,
        there is nothing to return, and the fit ends with a ``StoppedError``, or an
        ``OutOfTimeError`` at the time limit.
    checkpoint : path, optional
        A file that long fits write down their progress in, as in :class:`MixedLinearRegression`.
    encode : {"auto", None}, default="auto"
        As in :class:`MixedLinearRegression`.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        Coefficients, reweighted if asked for.
    intercept_ : float
    raw_coef_, raw_intercept_ : ndarray of shape (d,), float
        The trimmed fit before reweighting.
    scale_ : float
        Standard deviation of the residuals of good rows, consistent at the normal law.
    raw_scale_ : float
        The same from the trimmed fit.
    inlier_mask_ : array of shape (n,), bool
        Rows within 2.5 scales of ``coef_``; rows that were left out are not. Nearly those that were
        fitted, which lie within 2.5 ``raw_scale_`` of the raw fit. A dask array if the rows are on
        a cluster.
    keep_ : float
        Fraction of rows kept, given or found.
    objective_ : float
        Sum of squared residuals of the kept rows at the raw coefficients.
    objective_path_ : ndarray
        The same at the start of the last stage and after each of its rounds.
    n_iter_ : int
        Rounds of the last stage.
    start_ : str
        Which kind of start led to the answer.
    stopped_ : StopReason
        Why the fit ended: "fixed point", "tol", "max_iter", or early: "time_limit", "callback",
        "interrupted".
    standard_error_ : ndarray of shape (d,) or (d + 1,), or None
        Of the coefficients and, last, of the intercept: those of least squares on the rows that
        were fitted. None without ``reweight``, with weights that are importances, with more
        than 256 columns, or with fewer rows than columns. ``summary()`` prints them.
    evidence_ : float
        With ``keep="auto"``: by how much the score of a line exceeds that of constants (one or
        several: a line may pass through two heaps of responses), in nats. That is the likeliest
        line, with outliers of its own, whether or not it is ``coef_``: it says if there is a
        relation at all, which takes 3. NaN if the search was stopped before it was known.
    encoding_, left_out_ : Recipe or None, ndarray or None
        As in :class:`MixedLinearRegression`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        If X has column names.

    Examples
    --------
    >>> from regimix import TrimmedRegressor
    >>> from regimix.datasets import load_calls
    >>> calls = load_calls()
    >>> fit = TrimmedRegressor(random_state=0).fit(calls.X, calls.y)
    >>> round(float(fit.coef_[0]), 2)
    0.11
    """

    def __init__(
        self,
        keep: Any = "auto",
        solver: str = "exact",
        n_starts: int = 32,
        fit_intercept: bool = True,
        init: Any = None,
        reweight: bool = True,
        max_iter: int = MAX_ITER,
        tol: float = 0.0,
        random_state: Any = None,
        encode: str | None = "auto",
        time_limit: float | None = None,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        self.keep = keep
        self.solver = solver
        self.n_starts = n_starts
        self.fit_intercept = fit_intercept
        self.init = init
        self.reweight = reweight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.encode = encode
        self.time_limit = time_limit
        self.callback = callback
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the relation.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
            In memory or memory-mapped; or a dask array or data frame; or a table that is read in
            parts (``regimix.scan_parquet``), which brings its own response and weights.
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            Whole numbers count repetitions of a row, other numbers are relative importances; a row
            of weight zero is absent.

        Returns
        -------
        self
        """
        settings = self._settings()
        with (
            opened(self, X, y, sample_weight, settings) as rows,
            deadline(rows.settings.time_limit),
            fitting_threads(rows.engine.problem.n_columns),
        ):
            self._find(rows)
        self._warn(rows.engine.problem.n_columns, settings)
        return self

    def _find(self, rows: Rows) -> None:
        """Search, and store what was found."""
        # Files of a search belong to a large part of the library: it is loaded when it is needed.
        from regimix.result.fit import open_checkpoint

        engine, settings = rows.engine, rows.settings
        seed = settings.seed
        init = None if self.init is None else given_starts(engine, self.init, seed)
        told = {"keep": self.keep, "n_starts": self.n_starts}
        saved = open_checkpoint(engine, settings, None, init, **told)
        basis = None
        # A search draws all rows of such a table anyway.
        few = engine.problem.mass <= SEARCH.rows_per_coefficient * engine.problem.n_columns
        if isinstance(engine, MemoryEngine) and few and (turned := engine.in_row_space(seed)):
            engine, basis = turned
            init = None if init is None else init @ basis
        single = find_single(
            engine,
            None if isinstance(self.keep, str) else kept_mass(self.keep, engine.problem),
            given=init,
            n_starts=self.n_starts,
            seed=seed,
            max_iter=self.max_iter,
            tol=self.tol,
            make_solver=solver_maker(self.solver),
            share=majority(rows.engine.problem),
            control=Control(settings),
            saved=saved,
        )
        self._store(rows, engine, single, basis)
        if saved is not None and self.stopped_ not in EARLY:
            saved.done()

    def predict(self, X: Any) -> Floats:
        """Predict the response by the relation found, (n,); NaN in rows that are left out."""
        rows = new_rows(self, X)
        return np.asarray(rows.put_back(self._predicted(rows)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination (R²) of ``predict``, outliers included.

        1 is best, 0 as good as the mean of y. Rows that are left out do not count.
        """
        rows = new_rows(self, X, y)
        return r_squared(rows, self._predicted(rows), sample_weight)

    def _predicted(self, rows: NewRows) -> Floats:
        rows.table.extent()
        return np.asarray(rows.X @ self.coef_ + self.intercept_)

    def summary(self, level: float = 0.95) -> TrimmedSummary:
        """Return a table of the coefficients with errors, tests and intervals; ``print`` it."""
        check_is_fitted(self)
        return TrimmedSummary(self, read_level(level))

    def _settings(self) -> Settings:
        """Check the parameters."""
        if isinstance(self.keep, str) and self.keep != "auto":
            raise ParameterError(f'keep must be "auto" or a fraction in (0, 1]; got {self.keep!r}.')
        read_choice("solver", self.solver, get_args(SolverKind))
        read_count("n_starts", self.n_starts, 0)
        check_limits(self.max_iter, self.tol)
        seed = self.random_state
        if self.checkpoint is not None and seed is None:
            # A fit that goes on has the seed that it began with.
            seed = seed_in(self.checkpoint)
        limits = {"time_limit": self.time_limit, "callback": self.callback}
        settings = Settings.read(random_state=seed, checkpoint=self.checkpoint, **limits)
        solver: Any = self.solver
        return replace(settings, solver=solver, max_iter=self.max_iter, tol=self.tol)

    def _store(self, rows: Rows, engine: Engine, single: Single, basis: Floats | None) -> None:
        """Judge all rows by what was found; ``basis`` turns it into the columns of the table."""
        problem, run = rows.engine.problem, single.run
        engine.hurry()  # there is an answer: what is left is to apply it
        raw_scale = single.scale
        if raw_scale is None:
            raw_scale = consistent_scale(run.objective[-1], single.mass, problem.mass, run.rank)
        # A step for so many columns takes seconds.
        hurried = late() and problem.n_features > MOST_COVARIANCE_FEATURES
        finish = reweight if self.reweight and not hurried else judged
        final = finish(engine, run.theta, raw_scale)
        thetas = np.stack([run.theta, final.theta])
        # Where most responses are zero, rounds shrink slopes until their squares are no numbers.
        thetas = np.where(np.square(thetas) > 0, thetas, 0.0)
        (raw_coef, coef), (raw_intercept, intercept) = problem.to_user(
            thetas if basis is None else thetas @ basis.T
        )
        unit = problem.target_scale
        self.raw_coef_, self.raw_intercept_ = raw_coef, float(raw_intercept)
        self.coef_, self.intercept_ = coef, float(intercept)
        self.raw_scale_, self.scale_ = raw_scale * unit, final.scale * unit
        self.inlier_mask_ = rows.put_back(final.inliers, fill=False)
        self.keep_ = single.mass / problem.mass
        self.objective_path_ = np.array(run.objective) * unit**2
        self.objective_ = float(self.objective_path_[-1])
        self.n_iter_ = run.n_iter
        self.start_, self.stopped_ = single.source, run.stopped
        self._terms, self._rank = problem.feature_names, run.rank
        self.standard_error_ = None
        gram = final.gram if basis is None and problem.counts else None
        if gram is not None and coef.size <= MOST_COVARIANCE_FEATURES:
            self.standard_error_ = least_squares_errors(problem, gram, final.scale)
        self._n_rows, self._n_inliers = problem.mass, final.mass
        self._n_within = np.nan  # rows that are not in memory would have to be read again
        if isinstance(rows.engine, MemoryEngine):
            there = rows.engine.problem.weights
            self._n_within = float(np.sum(final.inliers if there is None else there[final.inliers]))
        self.__dict__.pop("evidence_", None)
        if isinstance(self.keep, str):
            self.evidence_ = np.nan if single.evidence is None else single.evidence

    def _warn(self, n_columns: int, settings: Settings) -> None:
        if self.stopped_ in EARLY:
            warn_user(ConvergenceWarning, why_early(self.stopped_, settings))
        if self.stopped_ is StopReason.MAX_ITER:
            warn_user(
                ConvergenceWarning,
                f"ILTS made max_iter={self.max_iter} rounds without settling; the best so far is "
                "returned. Raise max_iter, or set tol above 0.",
            )
        if self._rank < n_columns:
            warn_of_rank(f"the kept rows determine {self._rank} of {n_columns}", "keep")
        evidence = getattr(self, "evidence_", np.nan)
        if evidence < REGIME_GAIN:
            better = f"better than a line does, by {number(-evidence)} nats"
            if evidence >= 0:
                better = f"as well as a line does: it gains {number(evidence)} nats, and "
                better += f"{REGIME_GAIN:g} are needed"
            zero = "" if self.fit_intercept else " at zero"
            warn_user(
                EvidenceWarning,
                f"constants{zero} explain y {better}. The line that was found is returned. Check "
                "the columns, or bring more rows.",
            )
