"""The picture of a fit in one line: regimes over the most telling feature, and over the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from regimix.errors import read_count
from regimix.plots.display import (
    Display,
    RowView,
    begin,
    contrast,
    find_mixture,
    rows_of_estimator,
    rows_of_mixture,
)
from regimix.plots.palette import NEUTRAL
from regimix.plots.row_displays import RegimesDisplay
from regimix.result.answer import answer
from regimix.result.mixture import Mixture
from regimix.words import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Features that are shown: one large, the others small, so many side by side.
MOST_FEATURES, ACROSS = 7, 3
# What lies further outside the middle 98 % of the rows of the regimes than so many times their
# range would flatten the picture.
REACH = 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class OverviewDisplay(Display):
    """Rows and regimes over the feature that tells regimes apart best and, smaller, over others.

    Axes leave room for the bulk of the rows: few rows that are far away are not shown, and
    counted.

    Attributes
    ----------
    axes_ : list of Axes, one for each feature
    panels : list of RegimesDisplay, the most telling feature first
    """

    panels: list[RegimesDisplay]
    title: str = ""
    n_features: int = 1
    making: ClassVar[tuple[str, ...]] = ("max_features",)

    @classmethod
    def _seen(cls, estimator: Any, X: Any, y: Any) -> tuple[RowView, str]:
        mixture, rows = find_mixture(estimator), rows_of_estimator(estimator, X, y)
        return rows, "One linear relation" if mixture is None else answer(mixture).title

    @classmethod
    def _shown(cls, mixture: Mixture, X: Any, y: Any) -> tuple[RowView, str]:
        return rows_of_mixture(mixture, X, y), answer(mixture).title

    @classmethod
    def _of(cls, shown: tuple[RowView, str], max_features: int = MOST_FEATURES) -> Self:
        rows, title = shown
        most = read_count("max_features", max_features)
        size = contrast(rows.coef) * rows.X.std(axis=0)
        order = np.argsort(-size, kind="stable")[:most]
        panels = [RegimesDisplay._of(rows, int(i)) for i in order]  # noqa: SLF001 - a display too
        return cls(panels=panels, title=title, n_features=rows.X.shape[1])

    def plot(self, ax: Axes | None = None, *, legend: bool = True, **options: Any) -> Self:
        """Draw the features; on given axes, the most telling one.

        Options are those of ``RegimesDisplay.plot``: bands, room, max_points.
        """
        shown = self.panels if ax is None else self.panels[:1]
        self.axes_ = [ax] if ax is not None else _places(len(shown))
        for i, (panel, place) in enumerate(zip(shown, self.axes_, strict=True)):
            panel.plot(place, legend=legend and i == 0, **options)
            outside = _fit_to_bulk(panel)
            if outside:
                said = f"{count(outside, 'row')} outside"
                before = place.get_title("right")
                both = f"{before}, {said}" if before else said
                place.set_title(both, loc="right", fontsize="small", color=NEUTRAL)
            if i:
                place.set_ylabel("")
                place.tick_params(labelsize="small")
        first = self.axes_[0]
        left = self.n_features - len(shown)
        more = f" ({count(left, 'feature')} not shown)" if left and ax is None else ""
        if ax is None:
            first.figure.suptitle(f"{self.title}{more}", parse_math=False, fontsize="large")
        else:
            first.set_title(self.title, loc="left", parse_math=False)
        self.ax_, self.figure_ = first, first.figure
        return self


def _places(n_panels: int) -> list[Axes]:
    """Return axes of a new figure: a large one above, small ones below."""
    below = -(-(n_panels - 1) // ACROSS)
    first = begin(None, (8.0, 4.4 + 2.3 * below))
    if not below:
        return [first]
    figure = first.figure
    first.remove()
    grid = figure.add_gridspec(2 + below, ACROSS)
    small = [grid[2 + i // ACROSS, i % ACROSS] for i in range(n_panels - 1)]
    return [begin(figure.add_subplot(place)) for place in (grid[:2, :], *small)]


def _fit_to_bulk(panel: RegimesDisplay) -> int:
    """Set axes to the bulk of the rows, if some are far away; return how many lie outside."""
    ax, out = panel.ax_, np.zeros(panel.x.size, dtype=bool)
    kept = panel.labels >= 0
    limits = (ax.get_xlim, ax.set_xlim, panel.x), (ax.get_ylim, ax.set_ylim, panel.y)
    for get_limits, set_limits, values in limits:
        bulk = values[kept] if kept.any() else values
        low, high = np.quantile(bulk, [0.01, 0.99])
        room = REACH * ((high - low) or 1.0)
        before = get_limits()
        set_limits(max(before[0], float(low - room)), min(before[1], float(high + room)))
        left, right = get_limits()
        out |= (values < left) | (values > right)
    return int(np.count_nonzero(out))
