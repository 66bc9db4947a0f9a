"""What displays of residuals have in common: where their rows come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from regimix.plots.rows import RowView, rows_of_estimator, rows_of_mixture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regimix.result.mixture import Mixture

__all__ = ["ResidualPlot"]


class ResidualPlot:
    """A display of the residuals of rows, made from an estimator or a mixture."""

    plot: Any  # each display has options of its own

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Plot the residuals of a fitted estimator.

        Parameters
        ----------
        estimator : MixedLinearRegression, TrimmedRegressor or a pipeline that ends with one
        X, y : array or data frame of shape (n, d), array of shape (n,)
            Rows to show. Default: the excerpt that the fitted mixture keeps of its own rows.
        ax : matplotlib Axes, optional
        **options
            See `plot`.
        """
        display: Self = cls._of(rows_of_estimator(estimator, X, y)).plot(ax, **options)
        return display

    @classmethod
    def from_mixture(
        cls,
        mixture: Mixture,
        X: Any = None,
        y: Any = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Plot the residuals of a mixture; parameters as in `from_estimator`."""
        display: Self = cls._of(rows_of_mixture(mixture, X, y)).plot(ax, **options)
        return display

    @classmethod
    def _of(cls, rows: RowView) -> Self:
        raise NotImplementedError
