"""What can be asked of a fitted MixedLinearRegression: its mixture answers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from regimix.data.validation import Table
from regimix.estimators.gating import LearnedGate, gate_parameters, gate_shares
from regimix.estimators.rows import refuse_remote
from regimix.result.mixture import Mixture
from regimix.result.summary import Summary

if TYPE_CHECKING:
    from regimix.result.bootstrap import Bootstrap

__all__ = ["MixtureMethods"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class MixtureMethods:
    """Methods that read rows as the fit did, find their shares, and ask the mixture.

    Where ``gating_features`` is taken: the columns of these rows that the gating was learnt from,
    if it was not learnt from X.
    """

    mixture_: Mixture
    gate_: LearnedGate | None

    # --- predicting -------------------------------------------------------------------------------

    def predict(self, X: Any, gating_features: Any = None) -> Floats:
        """Predict the mean response: the components averaged by their shares, (n,).

        With gating, the shares are those of each row.
        """
        values, shares = self._rows(X, gating_features)
        return self.mixture_.predict(values, shares)

    def predict_components(self, X: Any) -> Floats:
        """Predict the response by each component, (n, m)."""
        return self.mixture_.predict_components(self._features(X))

    def predict_interval(self, X: Any, level: float = 0.95, gating_features: Any = None) -> Floats:
        """Predict an interval for the response of each row, its regime unknown, (n, 2).

        For rows that are no outliers; the errors of the coefficients are included. Where regimes
        are far apart it reaches over the gap between them; ``predict_component_intervals`` has the
        pieces.
        """
        values, shares = self._rows(X, gating_features)
        return self.mixture_.predict_interval(values, level, shares)

    def predict_component_intervals(self, X: Any, level: float = 0.95) -> Floats:
        """Predict an interval for the response of each row under each component, (n, m, 2)."""
        return self.mixture_.predict_component_intervals(self._features(X), level)

    def predict_shares(self, X: Any, gating_features: Any = None) -> Floats:
        """Return the shares of the components among rows like each row, no outliers, (n, m).

        Without gating they are the same for all rows.
        """
        values, shares = self._rows(X, gating_features)
        if shares is None:
            weights = self.mixture_.weights
            shares = np.tile(weights / weights.sum(), (values.shape[0], 1))
        return shares

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, gating_features: Any = None
    ) -> float:
        """Coefficient of determination of ``predict``: 1 is best, 0 as good as the mean of y."""
        from sklearn.metrics import r2_score

        predicted = self.predict(X, gating_features)
        return float(r2_score(y, predicted, sample_weight=sample_weight))

    # --- judging rows -----------------------------------------------------------------------------

    def assign(self, X: Any, y: Any, gating_features: Any = None) -> Labels:
        """Label rows by their likeliest component, -1 for outliers, (n,)."""
        values, shares = self._rows(X, gating_features)
        return self.mixture_.assign(values, y, shares)

    def responsibilities(self, X: Any, y: Any, gating_features: Any = None) -> Floats:
        """Probability that a row belongs to each component or, last, is an outlier, (n, m + 1)."""
        values, shares = self._rows(X, gating_features)
        return self.mixture_.responsibilities(values, y, shares)

    def outlier_score(self, X: Any, y: Any, gating_features: Any = None) -> Floats:
        """Say how unlikely each response is: 2 if one in 100 clean rows is so unlikely, (n,).

        Minus the decimal logarithm of the chance of a response at least as unlikely.
        """
        values, shares = self._rows(X, gating_features)
        return self.mixture_.outlier_score(values, y, shares)

    def flag(
        self, X: Any, y: Any, rate: float = 0.01, gating_features: Any = None
    ) -> NDArray[np.bool_]:
        """Flag unlikely rows, of clean rows about the given share, (n,)."""
        values, shares = self._rows(X, gating_features)
        return self.mixture_.flag(values, y, rate, shares)

    def score_samples(self, X: Any, y: Any = None, gating_features: Any = None) -> Floats:
        """Log density of each response given its features, (n,).

        Without y, that of the likeliest among the predictions of the components: how sharply the
        features determine the response.
        """
        values, shares = self._rows(X, gating_features)
        if y is not None:
            return self.mixture_.score_samples(values, y, shares)
        means = self.mixture_.predict_components(values)
        scores = [self.mixture_.score_samples(values, mean, shares) for mean in means.T]
        return np.asarray(np.max(scores, axis=0))

    def bic(self, X: Any, y: Any, sample_weight: Any = None, gating_features: Any = None) -> float:
        """Bayesian information criterion on rows; lower is better.

        A logistic gating is charged for what it learnt. The parameters of other classifiers cannot
        be counted; ``mixture_.bic`` leaves the gating out.
        """
        values, shares = self._rows(X, gating_features)
        return self.mixture_.bic(values, y, sample_weight, shares, gate_parameters(self.gate_))

    def icl(self, X: Any, y: Any, sample_weight: Any = None, gating_features: Any = None) -> float:
        """BIC plus twice the entropy of the assignments: lower if the regimes are also distinct.

        As in ``bic``, a logistic gating is charged for, and others are refused.
        """
        values, shares = self._rows(X, gating_features)
        return self.mixture_.icl(values, y, sample_weight, shares, gate_parameters(self.gate_))

    # --- how sure the coefficients are ------------------------------------------------------------

    def summary(self, level: float = 0.95) -> Summary:
        """Return a table of all coefficients with errors, tests and intervals; ``print`` it."""
        check_is_fitted(self)
        return self.mixture_.summary(level)

    def summary_frame(self, level: float = 0.95) -> Any:
        """Return the same as a pandas data frame (polars if pandas is missing)."""
        check_is_fitted(self)
        return self.mixture_.summary_frame(level)

    def conf_int(self, level: float = 0.95) -> Floats:
        """Return confidence intervals of the coefficients, (m, d + 1, 2), the intercept last.

        They are conditional on the regimes that were found. Rows of uncertain label count by their
        probabilities and widen them; with a share of outliers given, or ``search="partition"`` or
        ``"net"``, labels are taken as certain. Without an intercept, (m, d, 2).
        """
        check_is_fitted(self)
        return self.mixture_.conf_int(level)

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
        """Refit to resampled rows: errors that know that labels are not certain.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit; may be left out if the mixture holds them all (``keep_rows=True``,
            ``mixture_.excerpt.complete``).
        n_resamples : int, default=200
        level : float, default=0.95
            Of its ``conf_int()``.
        random_state : int, RandomState, Generator or None
        n_jobs : int, optional
            Resamples that run side by side; the answer does not depend on it.
        """
        check_is_fitted(self)
        values = None if X is None else self._features(X)
        return self.mixture_.bootstrap(
            values, y, n_resamples, level, random_state, sample_weight, n_jobs
        )

    def plot_selection(self, ax: Any = None, **options: Any) -> Any:
        """Plot evidence, BIC and ICL by the number of components; see ``SelectionDisplay``."""
        check_is_fitted(self)
        display = import_module("regimix.plots").SelectionDisplay
        return display.from_estimator(self, ax=ax, **options)

    # --- new rows ---------------------------------------------------------------------------------

    def sample(
        self, n_samples: int | None = None, random_state: Any = None, X: Any = None
    ) -> tuple[NDArray[Any], Floats, Labels]:
        """Draw rows from the model: features, responses, and labels (-1 for outliers).

        Components are drawn by their shares of all rows, whatever the gating.

        Parameters
        ----------
        n_samples : int, optional
            Rows to draw; default: one for each row of X, or one.
        random_state : int, RandomState, Generator or None
        X : array or data frame of shape (n_samples, d), optional
            Features to draw responses for. Without, features are drawn from the normal law with
            the mean and covariance of the rows of the fit.
        """
        check_is_fitted(self)
        values = None if X is None else self._features(X)
        return self.mixture_.sample(n_samples, random_state, values)

    def _features(self, X: Any) -> NDArray[Any]:
        """Check features of rows that may be new."""
        check_is_fitted(self)
        refuse_remote(X)
        table = Table.read(X, fewest_rows=1)
        validate_data(self, X, reset=False, skip_check_array=True)
        return table.values

    def _rows(self, X: Any, gating_features: Any) -> tuple[NDArray[Any], Floats | None]:
        """Check features, and find the shares of the components in each row, if there is a gate."""
        values = self._features(X)
        return values, gate_shares(self.gate_, X, gating_features)
