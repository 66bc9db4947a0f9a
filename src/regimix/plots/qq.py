"""QQDisplay: whether the residuals of each regime are normal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from regimix.plots.palette import NEUTRAL
from regimix.plots.residual import ResidualPlot
from regimix.plots.rows import RowView
from regimix.plots.style import (
    MOST_POINTS,
    ROOM,
    Frame,
    add_legend,
    begin,
    draw_outliers,
    draw_points,
    label_axes,
    share_label,
    tell_rows,
)
from regimix.search.settings import read_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["QQDisplay"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class QQDisplay(ResidualPlot):
    """Residuals of each regime over the normal quantiles that they should have.

    Residuals are in units of the noise of their regime, so normal ones lie on the diagonal. Rows
    that were trimmed, the outliers nearest to a regime, are grey crosses. A regime holds only what
    lies within its cutoff, so its rows are compared with a normal law cut off there; the trimmed
    rows share what that law has beyond. Where they are as many as normal noise has there, they go
    on along the diagonal; real outliers leave it steeply.

    Where regimes cross, some rows go to the other one; that bends a curve a little.

    Parameters
    ----------
    quantiles, residuals : ndarray of shape (n,)
        Normal quantiles, and residuals in units of the noise.
    labels, nearest : ndarray of shape (n,), int
        The regime of each row, -1 for trimmed rows; and the nearest one, trimmed rows included.
    n_components : int
    n_rows : int, optional
        Rows of the table that these were drawn from.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    points_ : list of artists, one for each regime
    diagonal_ : artist
    outliers_ : list of artists
        Crosses, then arrows for those far outside.
    """

    def __init__(
        self,
        *,
        quantiles: Floats,
        residuals: Floats,
        labels: Labels,
        nearest: Labels,
        n_components: int,
        n_rows: int | None = None,
    ) -> None:
        self.quantiles = quantiles
        self.residuals = residuals
        self.labels = labels
        self.nearest = nearest
        self.n_components = n_components
        self.n_rows = n_rows

    @classmethod
    def _of(cls, rows: RowView) -> Self:
        residuals = rows.standardised
        quantiles = np.empty_like(residuals)
        for j in np.unique(rows.nearest):
            mine = rows.nearest == j
            trimmed = rows.labels[mine] < 0
            quantiles[mine] = expected(residuals[mine], trimmed, float(rows.cut[j]))
        return cls(
            quantiles=quantiles,
            residuals=residuals,
            labels=rows.labels,
            nearest=rows.nearest,
            n_components=rows.scale.size,
            n_rows=rows.n_rows,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        legend: bool = True,
        room: float = ROOM,
        max_points: int = MOST_POINTS,
    ) -> Self:
        """Draw residuals over quantiles.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        legend : bool, default=True
        room : float, default=0.75
            Outliers may stretch the plot by so many times the range of the other rows, on each
            side; those further out are arrows at the edge.
        max_points : int, default=5000
            Of more rows, about so many are drawn: all in the tails, fewer where they are dense.

        Returns
        -------
        self
        """
        ax = begin(ax, (6.4, 4.8))
        rows = self._thinned(max_points)
        labels, x, y = self.labels[rows], self.quantiles[rows], self.residuals[rows]
        inside, out = labels >= 0, labels < 0
        # The diagonal is in view, however little the residuals vary.
        kept = x[inside], np.append(x[inside], y[inside])
        frame = Frame(kept, (x[out], y[out]), room)
        self.points_ = [
            draw_points(ax, j, x[labels == j], y[labels == j], x.size, share_label(self.labels, j))
            for j in range(self.n_components)
        ]
        self.outliers_ = []
        if out.any():
            name = share_label(self.labels, -1).replace("outliers", "trimmed")
            self.outliers_ = draw_outliers(ax, x[out], y[out], frame, x.size, name)
        self.diagonal_ = ax.axline(
            (0, 0), slope=1, color=NEUTRAL, linewidth=1, zorder=1, label="normal"
        )
        frame.apply(ax)
        label_axes(ax, "normal quantile", "residual / noise of the regime")
        tell_rows(ax, x.size, self.n_rows or self.residuals.size)
        add_legend(ax, legend)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _thinned(self, most: int) -> NDArray[np.intp]:
        """Choose rows evenly along the axis: the tails, which matter, are then complete."""
        if self.quantiles.size <= read_count("max_points", most):
            return np.arange(self.quantiles.size)
        chosen = []
        for j in range(self.n_components):
            mine = np.flatnonzero(self.nearest == j)
            mine = mine[np.argsort(self.quantiles[mine], kind="stable")]
            if mine.size:
                x = self.quantiles[mine]
                grid = np.linspace(x[0], x[-1], max(2, most // self.n_components))
                chosen.append(mine[np.unique(np.searchsorted(x, grid))])
        return np.concatenate(chosen)


def expected(residuals: Floats, trimmed: NDArray[np.bool_], cut: float) -> Floats:
    """Return the normal quantiles of residuals of which those beyond ``cut`` were trimmed, (n,).

    Kept rows divide evenly what the law has within the cutoff, the trimmed ones of each side what
    it has beyond.
    """
    beyond = float(ndtr(-cut))
    if trimmed.any():
        # A cutoff so far out that no sample reaches it leaves the trimmed rows no room at all.
        beyond = max(beyond, 0.25 / residuals.size)
    levels = np.empty(residuals.size)
    kept = ~trimmed
    low, high = trimmed & (residuals < 0), trimmed & (residuals >= 0)
    for part, start, mass in (
        (low, 0.0, beyond),
        (kept, beyond, 1 - 2 * beyond),
        (high, 1 - beyond, beyond),
    ):
        ranks = np.argsort(np.argsort(residuals[part], kind="stable"), kind="stable")
        levels[part] = start + mass * (ranks + 0.5) / max(ranks.size, 1)
    return np.asarray(ndtri(levels))
