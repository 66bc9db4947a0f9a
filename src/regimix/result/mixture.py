"""Mixture: what every search for all components returns, in the user's units."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import MissingExtraError, ParameterError, StopReason
from regimix.model.em import REGIME_GAIN
from regimix.result import answer, predictive, wald
from regimix.result.excerpt import Excerpt
from regimix.result.inference import Inference
from regimix.result.regimes import Regimes
from regimix.result.summary import Summary, summary_frame
from regimix.search.selection import Repeats
from regimix.search.settings import Settings, read_count, read_seed

if TYPE_CHECKING:
    from regimix.result.bootstrap import Bootstrap
    from regimix.search.selection import Attempt, Selection
    from regimix.search.subspace import Subspace

__all__ = ["Mixture"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


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
        Shares of all rows; with ``outlier_share`` they sum to one.
    scale : ndarray of shape (m,)
        Scale of the noise of each component: its standard deviation, if it is normal.
    noise_degrees : float
        Degrees of freedom of Student's law of the noise; infinite for the normal law.
    labels : ndarray of shape (n,), int
        The component of each row, -1 for outliers. Empty if they are not known here: a model from
        a file without them, or a fit to rows on a cluster, whose labels stay there.
    label_counts : tuple of int, or None
        Rows of each component and, last, outliers; not in model files.
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
        regimes. ``search="net"`` knows no score: zero if something was found, minus infinity if
        not.
    component_evidence : ndarray of shape (m,) or None
        How much of it is lost without each component.
    search_evidence : tuple of float
        The evidence that each of the independent searches ended with.
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
        What tells a row's regime from its features: its ``shares(Z)`` are (n, m) probabilities.
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
    search_evidence: tuple[float, ...] = ()
    settled: bool = True

    def __post_init__(self) -> None:
        # A callback would tie the result to objects of the caller, and could not be pickled; a
        # path leads nowhere on another machine.
        settings = replace(self.settings, callback=None, checkpoint=None)
        object.__setattr__(self, "settings", settings)
        # A model file holds the text; one of a later version may hold a reason not known here.
        known = (reason for reason in StopReason if reason == self.stopped)
        object.__setattr__(self, "stopped", next(known, self.stopped))

    @property
    def found_nothing(self) -> bool:
        """Whether the rows support no relation; the answer is then a robust fit to all of them."""
        if self.settings.search == "net":
            return not self.evidence > -np.inf
        return self.evidence < (REGIME_GAIN if self.settings.n_components is None else 0.0)

    @property
    def n_searches(self) -> int:
        """How many independent searches were made."""
        return len(self.search_evidence)

    @property
    def n_agreed(self) -> int:
        """How many of them reached the best score."""
        return Repeats(self.search_evidence).agreed

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
        means, deviations, degrees = self._predictive(X)
        weights = self._shares(shares, len(means))
        return predictive.equal_tails(means, deviations, degrees, weights, wald.read_level(level))

    def predict_component_intervals(self, X: Any, level: float = 0.95) -> Floats:
        """Predict an interval for the response of each row under each regime, (n, m, 2).

        The errors of the coefficients are included. Infinite where a regime has no row to spare.
        """
        means, deviations, degrees = self._predictive(X)
        return predictive.regime_intervals(means, deviations, degrees, wald.read_level(level))

    def _predictive(self, X: Any) -> tuple[Floats, Floats, Floats]:
        """Return what each regime predicts, its deviation there, and degrees of freedom."""
        if self.inference is None:
            return super()._predictive(X)
        values = self._read(X)
        means = self.predict_components(values)
        deviations, degrees = predictive.deviations(values, self.scale, self.inference)
        return means, deviations, np.minimum(degrees, self.noise_degrees)

    # --- how sure the coefficients are ------------------------------------------------------------

    def conf_int(self, level: float = 0.95) -> Floats:
        """Return confidence intervals of the coefficients, conditional on the regimes found.

        Returns
        -------
        ndarray of shape (m, d + 1, 2)
            The intercept last; (m, d, 2) without one. Student's law, with the degrees of freedom of
            each component. NaN where ``inference.notes`` says why.
        """
        return wald.conf_int(self, level)

    def t_values(self) -> Floats:
        """Return the coefficients in units of their errors, (m, d + 1), the intercept last."""
        return wald.t_values(self)

    def p_values(self) -> Floats:
        """Return the probability of so large a t value if a coefficient is zero, (m, d + 1)."""
        return wald.p_values(self)

    def separation(self) -> Floats:
        """Return the distances between components in units of their uncertainty, (m, m).

        Mahalanobis distances of two coefficient vectors (with intercepts) in the sum of their
        covariances, over the coefficients that the rows of both determine. Of p coefficients, equal
        components are about the square root of p apart. Infinite where two exact components differ,
        NaN where no covariance was recorded.
        """
        return wald.separation(self)

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
        return bootstrap(self, *rows, count, wald.read_level(level), seed, n_jobs)

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

    def report(self, path: Any, X: Any = None, y: Any = None, **options: Any) -> None:
        """Write a self-contained HTML page about the fit; see ``regimix.report.write``."""
        import_module("regimix.report").write(path, self, X, y, **options)
