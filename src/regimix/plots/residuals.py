"""ResidualsDisplay: how far rows lie from what their regime predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from regimix.errors import ParameterError
from regimix.plots.palette import NEUTRAL
from regimix.plots.residual import ResidualPlot
from regimix.plots.rows import RowView, draw, positive_scale
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

__all__ = ["ResidualsDisplay"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

KINDS = ("regime", "fitted")
# Half the width of a column of points, where neighbours are one apart.
COLUMN = 0.36
# Slices of a column in which points are counted to know how wide it must be there.
SLICES = 40
# Guides lie this many noise levels from zero: 19 of 20 rows are between them.
GUIDE = 2.0


class ResidualsDisplay(ResidualPlot):
    """Residuals of every regime, with guides at two noise levels on each side.

    A column for each regime, as wide as rows are many there, or residuals over fitted values. By
    default residuals are in units of the noise of their regime. Outliers are grey crosses in the
    column of their nearest regime; those far outside are arrows at the edge.

    Parameters
    ----------
    residuals, fitted : ndarray of shape (n,)
        Residuals in the units of y, and what the nearest regime predicts.
    labels, nearest : ndarray of shape (n,), int
        The regime of each row, -1 for outliers; and the nearest one, outliers included.
    scale : ndarray of shape (m,)
        The noise of each regime.
    target_name : str
    n_rows : int, optional
        Rows of the table that these were drawn from.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    points_ : list of artists, one for each regime
    guides_ : list of artists, two for each regime
    outliers_ : list of artists
        Crosses, then arrows.
    """

    def __init__(
        self,
        *,
        residuals: Floats,
        fitted: Floats,
        labels: Labels,
        nearest: Labels,
        scale: Floats,
        target_name: str = "y",
        n_rows: int | None = None,
    ) -> None:
        self.residuals = residuals
        self.fitted = fitted
        self.labels = labels
        self.nearest = nearest
        self.scale = scale
        self.target_name = target_name
        self.n_rows = n_rows

    @classmethod
    def _of(cls, rows: RowView) -> Self:
        return cls(
            residuals=rows.residuals,
            fitted=rows.means,
            labels=rows.labels,
            nearest=rows.nearest,
            scale=rows.scale,
            target_name=rows.target_name,
            n_rows=rows.n_rows,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: str = "regime",
        standardise: bool = True,
        legend: bool = True,
        room: float = ROOM,
        max_points: int = MOST_POINTS,
    ) -> Self:
        """Draw the residuals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        kind : {"regime", "fitted"}, default="regime"
            A column for each regime, or residuals over fitted values.
        standardise : bool, default=True
            Whether residuals are in units of the noise of their regime, or in those of y.
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
        if kind not in KINDS:
            raise ParameterError(f"kind must be one of {KINDS}; got {kind!r}.")
        ax = begin(ax)
        rows = draw(self.residuals.size, max_points)
        labels, nearest = self.labels[rows], self.nearest[rows]
        unit = positive_scale(self.scale, self.fitted) if standardise else np.ones(self.scale.size)
        y = self.residuals[rows] / unit[nearest]
        x = _columns(y, labels, nearest) if kind == "regime" else self.fitted[rows]
        guides = GUIDE * self.scale / unit
        self._draw_guides(ax, kind, guides)
        inside, out = labels >= 0, labels < 0
        kept = x[inside], np.concatenate([y[inside], guides, -guides])
        frame = Frame(kept, (x[out], y[out]), room)
        self.points_ = [
            draw_points(ax, j, x[labels == j], y[labels == j], x.size, share_label(self.labels, j))
            for j in range(self.scale.size)
        ]
        self.outliers_ = []
        if out.any():
            name = share_label(self.labels, -1)
            self.outliers_ = draw_outliers(ax, x[out], y[out], frame, x.size, name)
        ax.plot([], [], color=NEUTRAL, linewidth=1.2, linestyle="--", label="±2 noise")
        frame.apply(ax)
        self._name_axes(ax, kind, standardise)
        tell_rows(ax, x.size, self.n_rows or self.residuals.size)
        add_legend(ax, legend)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_guides(self, ax: Axes, kind: str, guides: Floats) -> None:
        """Draw zero, and two noise levels to both sides where the rows of each regime are."""
        ax.axhline(0, color=NEUTRAL, linewidth=0.8, zorder=1)
        self.guides_ = []
        for j, guide in enumerate(guides):
            ends = [j - 0.45, j + 0.45]
            if kind == "fitted":
                mine = self.fitted[self.labels == j]
                ends = [mine.min(), mine.max()] if mine.size else []
            for level in (-guide, guide):
                at = [level] * len(ends)
                line = draw_line(ax, j, ends, at, linewidth=1.2, linestyle="--")
                self.guides_.append(line)

    def _name_axes(self, ax: Axes, kind: str, standardise: bool) -> None:
        name = short(self.target_name)
        what = "residual / noise of the regime" if standardise else f"residual of {name}"
        label_axes(ax, "regime" if kind == "regime" else f"fitted {name}", what)
        if kind == "regime":
            ax.set_xticks(np.arange(self.scale.size))
            ax.set_xlim(-0.6, self.scale.size - 0.4)


def _columns(y: Floats, labels: Labels, nearest: Labels) -> Floats:
    """Place rows in the column of their regime, spread as wide as they are dense there."""
    rng = np.random.default_rng(0)
    x = nearest + rng.uniform(-0.3, 0.3, y.size) * COLUMN
    for j in np.unique(labels[labels >= 0]):
        mine = labels == j
        counts, edges = np.histogram(y[mine], bins=SLICES)
        slices = np.clip(np.searchsorted(edges, y[mine], side="right") - 1, 0, SLICES - 1)
        # Neighbouring slices are averaged, so that the outline is smooth.
        smooth = np.convolve(counts, [0.25, 0.5, 0.25], mode="same")
        width = COLUMN * smooth[slices] / smooth.max()
        x[mine] = j + rng.uniform(-1, 1, int(mine.sum())) * width
    return x
