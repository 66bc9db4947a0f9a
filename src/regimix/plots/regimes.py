"""RegimesDisplay: the rows over one feature, coloured by regime, with the lines they follow."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from regimix.errors import ParameterError
from regimix.plots.palette import NEUTRAL, colour
from regimix.plots.rows import RowView, contrast, draw, rows_of_estimator, rows_of_mixture
from regimix.plots.style import (
    MOST_POINTS,
    ROOM,
    Frame,
    add_legend,
    begin,
    draw_line,
    draw_outliers,
    draw_points,
    label_axes,
    share_label,
    short,
    tell_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regimix.result.mixture import Mixture

__all__ = ["RegimesDisplay"]

Floats = NDArray[np.float64]

# A feature of no more values than this is shown like a category: its points are spread out.
FEW_VALUES = 5
# How far they are spread, as a share of the smallest distance between two values.
JITTER = 0.18
# Bands are this many noise levels wide on each side: 19 of 20 rows.
BAND = 2.0


class RegimesDisplay:
    """Rows over one feature, coloured by regime, with the line of each regime.

    With several features a plain plot of y shows no lines, because the other features move y too.
    So what they move it by, according to the row's own regime (an outlier's nearest one), is taken
    away first: ``y`` is then as if the other features were at their median, and a row is as far
    from its line as its residual says. The label of the axis tells.

    Outliers are grey crosses; those far outside are arrows at the edge. Features of few values, as
    0/1 columns, are spread out a little so that rows do not hide each other.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        The feature, and the response (adjusted, if there are other features).
    labels : ndarray of shape (n,), int
        The regime of each row, -1 for outliers.
    lines : ndarray of shape (m, 2, 2)
        The two ends of the line of each regime, as (x, y).
    scale : ndarray of shape (m,)
        The noise of each regime.
    feature_name, target_name : str
    others : str, default=""
        What was done about the other features, for the label of the axis.
    n_rows : int, optional
        Rows of the table that these were drawn from.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    points_, lines_, bands_ : list of artists, one for each regime
    outliers_ : list of artists
        Crosses, then arrows.

    Examples
    --------
    >>> from regimix import MixedLinearRegression
    >>> from regimix.datasets import load_tone
    >>> from regimix.plots import RegimesDisplay
    >>> tone = load_tone()
    >>> fit = MixedLinearRegression(random_state=0).fit(tone.X, tone.y)
    >>> display = RegimesDisplay.from_estimator(fit, tone.X, tone.y)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        x: Floats,
        y: Floats,
        labels: NDArray[np.int64],
        lines: Floats,
        scale: Floats,
        feature_name: str = "x",
        target_name: str = "y",
        others: str = "",
        n_rows: int | None = None,
    ) -> None:
        self.x = x
        self.y = y
        self.labels = labels
        self.lines = lines
        self.scale = scale
        self.feature_name = feature_name
        self.target_name = target_name
        self.others = others
        self.n_rows = n_rows

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        feature: int | str | None = None,
        adjust: bool = True,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Plot what a fitted estimator sees.

        Parameters
        ----------
        estimator : MixedLinearRegression, TrimmedRegressor or a pipeline that ends with one
        X, y : array or data frame of shape (n, d), array of shape (n,)
            Rows to show. Default: the excerpt that the fitted mixture keeps of its own rows.
        feature : int or str, optional
            The column to show, by number or name. Default: the one whose effect differs most
            between regimes.
        adjust : bool, default=True
            Whether the effect of the other features is taken away from y. If not, y is as it is,
            and the lines, drawn for rows with the other features at their median, may pass their
            rows by.
        ax : matplotlib Axes, optional
        **options
            See `plot`.
        """
        rows = rows_of_estimator(estimator, X, y)
        return cls._of(rows, feature, adjust).plot(ax, **options)

    @classmethod
    def from_mixture(
        cls,
        mixture: Mixture,
        X: Any = None,
        y: Any = None,
        *,
        feature: int | str | None = None,
        adjust: bool = True,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Plot what a mixture sees; parameters as in `from_estimator`."""
        rows = rows_of_mixture(mixture, X, y)
        return cls._of(rows, feature, adjust).plot(ax, **options)

    @classmethod
    def _of(cls, rows: RowView, feature: int | str | None, adjust: bool) -> Self:
        column = _column(rows, feature)
        centre = np.median(rows.X, axis=0)
        rest = np.delete(np.arange(centre.size), column)
        x = rows.X[:, column].astype(np.float64)
        level = rows.intercept + rows.coef[:, rest] @ centre[rest]
        y, others = rows.y, ""
        if rest.size:
            others = "lines: other features at their median"
        if rest.size and adjust:
            line = level[rows.nearest] + rows.coef[rows.nearest, column] * x
            y, others = line + rows.residuals, "other features moved to their median"
        ends = np.array([_ends(x, rows.labels, j) for j in range(level.size)])
        heights = level[:, None] + rows.coef[:, column, None] * ends
        return cls(
            x=x,
            y=y,
            labels=rows.labels,
            lines=np.stack([ends, heights], axis=-1),
            scale=rows.scale,
            feature_name=rows.feature_names[column],
            target_name=rows.target_name,
            others=others,
            n_rows=rows.n_rows,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        bands: bool = True,
        legend: bool = True,
        room: float = ROOM,
        max_points: int = MOST_POINTS,
    ) -> Self:
        """Draw the rows and the lines.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        bands : bool, default=True
            Whether to shade two noise levels on each side of every line.
        legend : bool, default=True
        room : float, default=0.75
            Outliers may stretch the plot by so many times the range of the other rows, on each
            side; those further out are arrows at the edge.
        max_points : int, default=5000
            Of more rows, so many are drawn at random, the same ones every time.

        Returns
        -------
        self
        """
        ax = begin(ax)
        rows = draw(self.x.size, max_points)
        labels, y = self.labels[rows], self.y[rows]
        x = self._spread(ax)[rows]
        self._draw_lines(ax, bands)
        inside, out = labels >= 0, labels < 0
        width = BAND * self.scale[:, None] if bands else 0.0
        ends_x, ends_y = self.lines[..., 0], self.lines[..., 1]
        kept = _all(x[inside], ends_x), _all(y[inside], ends_y - width, ends_y + width)
        frame = Frame(kept, (x[out], y[out]), room)
        self.points_ = [
            draw_points(ax, j, x[labels == j], y[labels == j], x.size, share_label(self.labels, j))
            for j in range(len(self.lines))
        ]
        self.outliers_ = []
        if out.any():
            name = share_label(self.labels, -1)
            self.outliers_ = draw_outliers(ax, x[out], y[out], frame, x.size, name)
        if bands:
            ax.fill_between([], [], [], color=NEUTRAL, alpha=0.2, lw=0, label="±2 noise")
        frame.apply(ax)
        others = f"\n({self.others})" if self.others else ""
        label_axes(ax, short(self.feature_name), short(self.target_name) + others)
        tell_rows(ax, x.size, self.n_rows or self.x.size)
        add_legend(ax, legend)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_lines(self, ax: Axes, bands: bool) -> None:
        self.lines_ = [
            draw_line(ax, j, line[:, 0], line[:, 1]) for j, line in enumerate(self.lines)
        ]
        self.bands_ = []
        for j, line in enumerate(self.lines if bands else []):
            width = BAND * self.scale[j]
            edges = line[:, 1] - width, line[:, 1] + width
            band = ax.fill_between(line[:, 0], *edges, color=colour(j), alpha=0.15, lw=0, zorder=1)
            self.bands_.append(band)

    def _spread(self, ax: Axes) -> Floats:
        """Move the values of a feature that has few of them apart; mark the values themselves."""
        values = np.unique(self.x)
        if not 2 <= values.size <= FEW_VALUES or self.x.size <= 4 * values.size:
            return self.x
        ax.set_xticks(values)
        step = JITTER * float(np.diff(values).min())
        return self.x + np.random.default_rng(0).uniform(-step, step, self.x.size)


def _column(rows: RowView, feature: int | str | None) -> int:
    """Find the column that is meant; by default the one that tells the regimes apart best."""
    d = int(rows.coef.shape[1])
    if feature is None:
        return int(np.argmax(contrast(rows.coef) * rows.X.std(axis=0)))
    if isinstance(feature, str) and feature in rows.feature_names:
        return rows.feature_names.index(feature)
    if _is_number(feature) and -d <= int(feature) < d:
        return int(feature) % d
    some = ", ".join(rows.feature_names[:8]) + (", ..." if d > 8 else "")
    raise ParameterError(
        f"feature must be the number (0 to {d - 1}) or the name of a column; got {feature!r}. The "
        f"columns are {some}."
    )


def _all(*arrays: Floats) -> Floats:
    return np.concatenate([array.ravel() for array in arrays])


def _is_number(feature: Any) -> bool:
    return isinstance(feature, Integral) and not isinstance(feature, bool)


def _ends(x: Floats, labels: NDArray[np.int64], regime: int) -> Floats:
    """Where the rows of a regime begin and end; a regime without rows reaches everywhere."""
    mine = x[labels == regime]
    mine = mine if mine.size > 1 and np.ptp(mine) > 0 else x
    low, high = float(mine.min()), float(mine.max())
    # All rows in one place still show how steep the lines are there.
    step = 0.0 if high > low else 0.05 * abs(low) or 1.0
    return np.array([low - step, high + step])
