"""CoefficientsDisplay: what the regimes say of each feature, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import Table
from regimix.errors import ParameterError
from regimix.plots.palette import EDGE, NEUTRAL, PALE, colour, marker
from regimix.plots.rows import contrast, mixture_of
from regimix.plots.style import add_legend, begin, label_axes, outline, short
from regimix.search.settings import read_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regimix.result.mixture import Mixture

__all__ = ["CoefficientsDisplay"]

Floats = NDArray[np.float64]

MOST_FEATURES = 15
# Inches of a new figure: at least for a feature, for each regime in it, and around them all.
FEATURE_HEIGHT, REGIME_HEIGHT, FRAME_HEIGHT = 0.34, 0.12, 1.1
# The intervals of a feature take this share of the distance to the next one.
SPREAD = 0.7
INTERCEPT = "intercept"


class CoefficientsDisplay:
    """Coefficients of every regime with their intervals, the most separating features first.

    A feature separates by how far its coefficients lie apart, times the standard deviation of the
    feature: by how much it moves the response of one regime more than that of another. Of a single
    regime, the largest effects come first.

    Parameters
    ----------
    coef, lower, upper : ndarray of shape (m, d)
        Coefficients and the ends of their intervals.
    feature_names : sequence of str
    deviation : ndarray of shape (d,), optional
        Standard deviations of the features; default: all equal.
    intercept : ndarray of shape (m, 3), optional
        Intercepts and the ends of their intervals.
    level : float, default=0.95
        Confidence of the intervals.
    target_name : str

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    order_ : ndarray of int
        The features shown, from above.
    points_, intervals_ : list of artists, one for each regime
    """

    def __init__(
        self,
        *,
        coef: Floats,
        lower: Floats,
        upper: Floats,
        feature_names: Any,
        deviation: Floats | None = None,
        intercept: Floats | None = None,
        level: float = 0.95,
        target_name: str = "y",
    ) -> None:
        self.coef = coef
        self.lower = lower
        self.upper = upper
        self.feature_names = feature_names
        self.deviation = deviation
        self.intercept = intercept
        self.level = level
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Plot the coefficients of a fitted estimator.

        Parameters
        ----------
        estimator : MixedLinearRegression or a pipeline that ends with one
        X : array or data frame of shape (n, d), optional
            Rows to take the standard deviations of features from, as the last step of a pipeline
            sees them. Default: what the mixture remembers of its own rows.
        y : ignored
            Here for the convention.
        ax : matplotlib Axes, optional
        **options
            ``level``, and see `plot`.
        """
        return cls.from_mixture(mixture_of(estimator), X, y, ax=ax, **options)

    @classmethod
    def from_mixture(
        cls,
        mixture: Mixture,
        X: Any = None,
        y: Any = None,  # noqa: ARG003 the convention of displays
        *,
        level: float = 0.95,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Plot the coefficients of a mixture; parameters as in `from_estimator`."""
        bounds = mixture.conf_int(level)
        d = mixture.coef.shape[1]
        deviation = None if mixture.rows is None else mixture.rows.deviation
        if X is not None:
            deviation = Table.read(X).values.std(axis=0, dtype=np.float64)
        intercept = None
        if mixture.fit_intercept:
            intercept = np.column_stack([mixture.intercept, bounds[:, d]])
        display = cls(
            coef=mixture.coef,
            lower=bounds[:, :d, 0],
            upper=bounds[:, :d, 1],
            feature_names=mixture.feature_names,
            deviation=deviation,
            intercept=intercept,
            level=level,
            target_name=mixture.target_name,
        )
        return display.plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_features: int = MOST_FEATURES,
        standardise: bool = False,
        intercept: bool = False,
        legend: bool = True,
    ) -> Self:
        """Draw the coefficients and their intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        max_features : int, default=15
            Most features to show.
        standardise : bool, default=False
            Whether to show what one standard deviation of a feature does, so that features of
            different units can be compared, or the coefficients as they are.
        intercept : bool, default=False
            Whether to show the intercepts too, last.
        legend : bool, default=True

        Returns
        -------
        self
        """
        m, d = self.coef.shape
        self.order_ = self._ranked(max_features)
        unit = self._unit(standardise)[self.order_]
        shown = [part[:, self.order_] * unit for part in (self.coef, self.lower, self.upper)]
        names = [short(str(self.feature_names[i])) for i in self.order_]
        if intercept:
            levels = self._intercepts()
            shown = [np.column_stack([part, levels[:, i]]) for i, part in enumerate(shown)]
            names.append(INTERCEPT)
        each = max(FEATURE_HEIGHT, REGIME_HEIGHT * m)
        ax = begin(ax, (7.0, max(2.0, FRAME_HEIGHT + each * len(names))))
        for i in range(0, len(names), 2):
            ax.axhspan(i - 0.5, i + 0.5, color=NEUTRAL, alpha=0.07, linewidth=0, zorder=0)
        ax.axvline(0, color=NEUTRAL, linewidth=0.8, zorder=1)
        self.points_: list[Any] = []
        self.intervals_: list[Any] = []
        for j in range(m):
            self._draw_regime(ax, j, [part[j] for part in shown])
        ax.set_yticks(np.arange(len(names)), names, parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(names) - 0.5, -0.5)
        target = short(self.target_name)
        what = f"change of {target} per standard deviation" if standardise else "coefficient"
        label_axes(ax, f"{what}, {self.level:.0%} intervals", "")
        if self.order_.size < d:
            text = f"{self.order_.size} of {d} features shown"
            ax.set_title(text, loc="right", fontsize="small", color=NEUTRAL)
        add_legend(ax, legend)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_regime(self, ax: Axes, j: int, values: list[Floats]) -> None:
        """Draw one regime's coefficients, a little above or below those of the others."""
        m, (coef, lower, upper) = len(self.coef), values
        at = np.arange(coef.size) + SPREAD * ((j + 0.5) / m - 0.5)
        interval = ax.hlines(at, lower, upper, color=colour(j), linewidth=1.6, zorder=2)
        outline(interval, j, 1.6)
        self.intervals_.append(interval)
        edge = EDGE if colour(j) in PALE else "white"
        point = ax.scatter(
            coef,
            at,
            s=30 if m <= 4 else 18,
            color=colour(j),
            marker=marker(j),
            edgecolors=edge,
            linewidths=0.5,
            label=f"regime {j}",
            zorder=3,
        )
        self.points_.append(point)

    def _ranked(self, most: int) -> NDArray[np.intp]:
        """List the features to show, the most separating first."""
        size = contrast(self.coef)
        if self.deviation is not None:
            size = size * self.deviation
        return np.argsort(-size, kind="stable")[: read_count("max_features", most)]

    def _unit(self, standardise: bool) -> Floats:
        if not standardise:
            return np.ones(self.coef.shape[1])
        if self.deviation is None:
            raise ParameterError(
                "standardise=True needs the standard deviations of the features, which are not "
                "known here; pass X, or standardise=False."
            )
        return self.deviation

    def _intercepts(self) -> Floats:
        if self.intercept is None:
            raise ParameterError(
                "intercept=True, but the regimes have no intercepts (fit_intercept=False); pass "
                "intercept=False."
            )
        return self.intercept
