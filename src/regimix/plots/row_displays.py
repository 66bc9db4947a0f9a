"""Displays of rows: over one feature or several with the lines, residuals, and quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from regimix.errors import ParameterError, read_choice, read_count
from regimix.plots.display import (
    MOST_POINTS,
    STRETCH,
    Display,
    RowDisplay,
    RowView,
    Span,
    begin,
    begin_panels,
    contrast,
    draw,
    draw_line,
    find_mixture,
    positive_scale,
    remark,
    settle,
    spread,
    view_rows,
)
from regimix.plots.palette import NEUTRAL, colour
from regimix.result.answer import (
    HELD,
    Answer,
    bulk,
    few_values,
    law_name,
    lines_over,
    quantiles,
    typical_row,
)
from regimix.trimmed.reweight import CUTOFF
from regimix.words import clean, count, listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# How far points are spread where values are few, as a share of the smallest distance of two values.
JITTER = 0.18
# Bands are this many noise levels wide on each side: 19 of 20 rows.
BAND = 2.0
KINDS = ("regime", "fitted")
# Half the width of a column of points, where neighbours are one apart.
COLUMN = 0.36
# Slices of a column in which points are counted to know how wide it must be there.
SLICES = 40
# Features of an overview: one large, the others small, so many side by side.
MOST_PANELS, ACROSS = 7, 3
# Characters of a title that fit into an inch, and into which a narrow one is not broken.
PER_INCH, NARROWEST_TITLE = 9, 24
# Guides lie this many noise levels from zero: 19 of 20 rows are between them.
GUIDE = 2.0


@dataclass(kw_only=True, eq=False, repr=False)
class RegimesDisplay(RowDisplay):
    """Rows over one feature, coloured by regime, with the line of each regime.

    With several features a plain plot of y shows no lines, because the other features move y too.
    So what they move it by, according to the row's own regime (an outlier's nearest one), is taken
    away first: ``y`` is then as if the other features were at their medians, and a row is as far
    from its line as its residual says. The label of the axis says so.

    Outliers are grey crosses; those far outside are arrows at the edge. Features of few values, as
    0/1 columns, are spread out a little so that rows do not hide each other.

    Other Parameters
    ----------------
    feature : int or str, optional
        Of `from_estimator` and `from_mixture`: the column to show, by number or name. Default: the
        one whose effect differs most between regimes.
    adjust : bool, default=True
        Likewise: whether the effect of the other features is taken away from y. If not, y is as it
        is, and the lines, drawn for rows with the other features at their medians, may pass their
        rows by.

    Attributes
    ----------
    points_, lines_, bands_ : list of artists, one for each regime

    Examples
    --------
    >>> from regimix import MixedLinearRegression
    >>> from regimix.datasets import load_tone
    >>> from regimix.plots import RegimesDisplay
    >>> tone = load_tone()
    >>> fit = MixedLinearRegression(random_state=0).fit(tone.X, tone.y)
    >>> display = RegimesDisplay.from_estimator(fit, tone.X, tone.y)  # doctest: +SKIP
    """

    x: Floats
    y: Floats  #: adjusted, if there are other features
    lines: Floats  #: (m, 2, 2), the two ends of the line of each regime, as (x, y)
    scale: Floats  #: (m,), the noise of each regime
    feature_name: str = "x"
    others: str = ""  #: what was done about the other features, for the label of the axis

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any, feature: Any = None, adjust: bool = True) -> Self:
        return cls._of_rows(view_rows(model, X, y), feature, adjust)

    @classmethod
    def _of_rows(cls, rows: RowView, feature: Any, adjust: bool = True) -> Self:
        column = _column(rows, feature)
        level, slope = lines_over(rows.coef, rows.intercept, typical_row(rows.X), column).T
        x = rows.X[:, column].astype(np.float64)
        y, others = rows.y, ""
        if rows.X.shape[1] > 1:
            others = HELD if adjust else f"lines: {HELD}"
            y = level[rows.nearest] + slope[rows.nearest] * x + rows.residuals if adjust else y
        ends = np.array([_ends(x, rows.labels, j) for j in range(level.size)])
        heights = level[:, None] + slope[:, None] * ends
        return cls(
            x=x,
            y=y,
            lines=np.stack([ends, heights], axis=-1),
            scale=rows.scale,
            feature_name=rows.feature_names[column],
            others=others,
            **rows.shared,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        bands: bool = True,
        legend: bool = True,
        stretch: float = STRETCH,
        max_points: int = MOST_POINTS,
    ) -> Self:
        """Draw the rows and the lines, with bands of two noise levels on each side of a line."""
        return self._plot(ax, None, bands, legend, stretch, max_points)

    def _plot(
        self,
        ax: Axes | None,
        within: tuple[Span, Span] | None,
        bands: bool = True,
        legend: bool = True,
        stretch: float = STRETCH,
        max_points: int = MOST_POINTS,
    ) -> Self:
        """Draw the same, nothing beyond what the axes must stay within."""
        ax = begin(ax)
        rows = draw(self.x.size, max_points)
        x = self._spread(ax)[rows]
        self._draw_lines(ax, bands)
        width = BAND * self.scale[:, None] if bands else 0.0
        ends_x, ends_y = self.lines[..., 0], self.lines[..., 1]
        beside = ends_x.ravel(), np.concatenate([ends_y - width, ends_y + width]).ravel()
        shown = x, self.y[rows], self.labels[rows], len(self.lines)
        self._draw_rows(ax, *shown, beside, stretch, within)
        if bands:
            ax.fill_between([], [], [], color=NEUTRAL, alpha=0.2, lw=0, label="±2 noise")
        others = f"\n({self.others})" if self.others else ""
        names = clean(self.feature_name), clean(self.target_name) + others
        # Panels beside others are settled together.
        return self._finish(ax, names, legend, self._rows_shown(x.size), alone=within is None)

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
        values = few_values(self.x)
        if values.size:
            ax.set_xticks(values)
        if not values.size or self.x.size <= 4 * values.size:
            return self.x
        step = JITTER * float(np.diff(values).min())
        return self.x + np.random.default_rng(0).uniform(-step, step, self.x.size)


def _column(rows: RowView, feature: Any) -> int:
    """Find the column that is meant; by default the one that tells the regimes apart best."""
    d = int(rows.coef.shape[1])
    if feature is None:
        return int(np.argmax(contrast(rows.coef) * rows.X.std(axis=0)))
    if isinstance(feature, str) and feature in rows.feature_names:
        return rows.feature_names.index(feature)
    is_number = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if is_number and -d <= int(feature) < d:
        return int(feature) % d
    raise ParameterError(
        f"feature must be the number (0 to {d - 1}) or the name of a column; got {feature!r}. The "
        f"columns are {listing(rows.feature_names)}."
    )


def _ends(x: Floats, labels: NDArray[np.int64], regime: int) -> Floats:
    """Where the rows of a regime begin and end; a regime without rows reaches everywhere."""
    mine = x[labels == regime]
    mine = mine if mine.size > 1 and np.ptp(mine) > 0 else x
    low, high = float(mine.min()), float(mine.max())
    # All rows in one place still show how steep the lines are there.
    step = 0.0 if high > low else 0.05 * abs(low) or 1.0
    return np.array([low - step, high + step])


@dataclass(kw_only=True, eq=False, repr=False)
class OverviewDisplay(Display):
    """Rows and regimes over the feature that tells regimes apart best and, smaller, over others.

    Axes show the bulk of the rows: few rows that are far away are not shown, and
    counted.

    Attributes
    ----------
    axes_ : list of Axes, one for each feature
    panels : list of RegimesDisplay, the most telling feature first
    """

    panels: list[RegimesDisplay]
    title: str = ""
    n_features: int = 1

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any, max_features: int = MOST_PANELS) -> Self:
        mixture, rows = find_mixture(model), view_rows(model, X, y)
        title = "One linear relation" if mixture is None else Answer(mixture).title
        most = read_count("max_features", max_features)
        size = contrast(rows.coef) * rows.X.std(axis=0)
        order = np.argsort(-size, kind="stable")[:most]
        panels = [RegimesDisplay._of_rows(rows, int(i)) for i in order]  # noqa: SLF001
        return cls(panels=panels, title=title, n_features=rows.X.shape[1])

    def plot(self, ax: Axes | None = None, *, legend: bool = True, **options: Any) -> Self:
        """Draw the features; on given axes, the most telling one.

        Options are those of ``RegimesDisplay.plot``: bands, stretch, max_points.
        """
        shown = self.panels if ax is None else self.panels[:1]
        self.axes_ = [ax] if ax is not None else _places(len(shown))
        for i, (panel, place) in enumerate(zip(shown, self.axes_, strict=True)):
            panel._plot(place, _bulk(panel), legend=legend and i == 0, **options)  # noqa: SLF001
            # How many rows are drawn need not be said again.
            said = [place.get_title("right")] if i == 0 else []
            if outside := _outside(panel):
                said.append(f"{count(outside, 'row')} beyond the edge")
            remark(place, ", ".join(filter(None, said)))
            if i:
                place.set_ylabel("")
                place.tick_params(labelsize="small")
        first = self.axes_[0]
        left = self.n_features - len(shown)
        if ax is None:
            inches = first.figure.bbox.width / first.figure.dpi
            words = fill(self.title, int(PER_INCH * inches))
            first.figure.suptitle(words, parse_math=False, fontsize="large")
            if left:
                first.figure.supxlabel(
                    f"{count(left, 'feature')} not shown", fontsize="small", color=NEUTRAL
                )
        else:
            inches = first.get_window_extent().width / first.figure.dpi
            words = fill(self.title, max(int(PER_INCH * inches), NARROWEST_TITLE))
            first.set_title(words, loc="left", parse_math=False)
        settle(self.axes_)
        self.ax_, self.figure_ = first, first.figure
        return self


def _places(n_panels: int) -> list[Axes]:
    """Return axes of a new figure: a large one above, small ones below."""
    below = -(-(n_panels - 1) // ACROSS)
    small = [np.s_[2 + i // ACROSS, i % ACROSS] for i in range(n_panels - 1)]
    return begin_panels((8.0, 4.4 + 2.3 * below), (2 + below, ACROSS), [np.s_[:2, :], *small])


def _bulk(panel: RegimesDisplay) -> tuple[Span, Span]:
    """Find where the bulk of the rows of the regimes is."""
    inside = panel.labels >= 0
    return bulk(spread(panel.x, inside)), bulk(spread(panel.y, inside))


def _outside(panel: RegimesDisplay) -> int:
    """Count the rows that lie beyond the axes."""
    out = np.zeros(panel.x.size, dtype=bool)
    for values, limits in ((panel.x, panel.ax_.get_xlim()), (panel.y, panel.ax_.get_ylim())):
        out |= (values < limits[0]) | (values > limits[1])
    return int(np.count_nonzero(out))


@dataclass(kw_only=True, eq=False, repr=False)
class ResidualsDisplay(RowDisplay):
    """Residuals of every regime, with guides at two noise levels on each side.

    A column for each regime, wider where there are more rows, or residuals over fitted values. By
    default residuals are in units of the noise of their regime. Outliers are grey crosses in the
    column of their nearest regime; those far outside are arrows at the edge.

    Attributes
    ----------
    points_ : list of artists, one for each regime
    guides_ : list of artists, two for each regime
    """

    residuals: Floats  #: in the units of y
    fitted: Floats  #: what the nearest regime predicts
    nearest: Labels  #: the nearest regime of each row, outliers included
    scale: Floats  #: (m,), the noise of each regime

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any) -> Self:
        rows = view_rows(model, X, y)
        return cls(
            residuals=rows.residuals,
            fitted=rows.means,
            nearest=rows.nearest,
            scale=rows.scale,
            **rows.shared,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: str = "regime",
        standardise: bool = True,
        legend: bool = True,
        stretch: float = STRETCH,
        max_points: int = MOST_POINTS,
    ) -> Self:
        """Draw the residuals.

        Parameters
        ----------
        kind : {"regime", "fitted"}, default="regime"
            A column for each regime, or residuals over fitted values.
        standardise : bool, default=True
            Whether residuals are in units of the noise of their regime, or in those of y.
        ax, legend, stretch, max_points
            As in `from_estimator`.
        """
        read_choice("kind", kind, KINDS)
        ax = begin(ax)
        rows = draw(self.residuals.size, max_points)
        labels, nearest = self.labels[rows], self.nearest[rows]
        unit = positive_scale(self.scale, self.fitted) if standardise else np.ones(self.scale.size)
        y = self.residuals[rows] / unit[nearest]
        x = _columns(y, labels, nearest) if kind == "regime" else self.fitted[rows]
        guides = GUIDE * self.scale / unit
        self._draw_guides(ax, kind, guides)
        beside = x[:0], np.append(guides, -guides)
        self._draw_rows(ax, x, y, labels, self.scale.size, beside, stretch)
        ax.plot([], [], color=NEUTRAL, linewidth=1.2, linestyle="--", label="±2 noise")
        if kind == "regime":
            ax.set_xticks(np.arange(self.scale.size))
            ax.set_xlim(-0.6, self.scale.size - 0.4)
        name = clean(self.target_name)
        what = "residual / noise of the regime" if standardise else f"residual of {name}"
        names = "regime" if kind == "regime" else f"fitted {name}", what
        return self._finish(ax, names, legend, self._rows_shown(x.size))

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
                at, style = [level] * len(ends), {"linewidth": 1.2, "linestyle": "--"}
                self.guides_.append(draw_line(ax, j, ends, at, **style))


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


@dataclass(kw_only=True, eq=False, repr=False)
class QQDisplay(RowDisplay):
    """Residuals of each regime over the quantiles that they should have by the law of the noise.

    That law is the normal one or, where the model has it, Student's. Residuals are in units of the
    noise of their regime, so those of that law lie on the diagonal. Rows count by the probability
    that they belong to the regime, so that neither rows in doubt nor outliers bend the curve.
    Outliers, shown with their nearest regime, are grey crosses: those that the noise explains stay
    on the diagonal, others leave it steeply. A TrimmedRegressor keeps what lies within its cutoff,
    which is compared with the law cut off there; outliers share what that has beyond.

    Attributes
    ----------
    points_ : list of artists, one for each regime
    diagonal_ : artist
    """

    quantiles: Floats  #: of the law of the noise
    residuals: Floats  #: in units of the noise
    nearest: Labels  #: the nearest regime of each row, outliers included
    n_components: int
    degrees: float = np.inf  #: of freedom of Student's law; infinite for the normal one

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any) -> Self:
        rows = view_rows(model, X, y)
        residuals = rows.standardised
        levels = np.empty_like(residuals)
        if rows.belongs is None:
            levels = trimmed_quantiles(residuals, rows.labels < 0)
        else:
            means = rows.X.astype(np.float64) @ rows.coef.T + rows.intercept
            away = (rows.y[:, None] - means) / positive_scale(rows.scale, rows.y)
            weights = rows.belongs if rows.weights is None else rows.belongs * rows.weights[:, None]
            for j in np.unique(rows.nearest):
                mine = rows.nearest == j
                levels[mine] = quantiles(away[:, j], weights[:, j], rows.degrees)[mine]
        return cls(
            quantiles=levels,
            residuals=residuals,
            nearest=rows.nearest,
            n_components=rows.scale.size,
            degrees=rows.degrees,
            **rows.shared,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        legend: bool = True,
        stretch: float = STRETCH,
        max_points: int = MOST_POINTS,
    ) -> Self:
        """Draw residuals over quantiles: all rows in the tails, fewer where they are dense."""
        ax = begin(ax, (6.4, 4.8))
        rows = self._thinned(max_points)
        labels, x, y = self.labels[rows], self.quantiles[rows], self.residuals[rows]
        # The diagonal is in view, however little the residuals vary.
        beside = x[:0], x[labels >= 0]
        self._draw_rows(ax, x, y, labels, self.n_components, beside, stretch)
        law = "Student's law" if np.isfinite(self.degrees) else "normal"
        self.diagonal_ = ax.axline((0, 0), slope=1, color=NEUTRAL, linewidth=1, zorder=1, label=law)
        names = f"quantile of {law_name(self.degrees)}", "residual / noise of the regime"
        return self._finish(ax, names, legend, self._rows_shown(x.size))

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


def trimmed_quantiles(residuals: Floats, trimmed: NDArray[np.bool_]) -> Floats:
    """Return the normal quantiles of residuals of which those beyond the cutoff were trimmed, (n,).

    Kept rows divide evenly what the law has within the cutoff, the trimmed ones of each side what
    it has beyond.
    """
    beyond = float(ndtr(-CUTOFF))
    levels = np.empty(residuals.size)
    low, high = trimmed & (residuals < 0), trimmed & (residuals >= 0)
    for part, start, mass in (
        (low, 0.0, beyond),
        (~trimmed, beyond, 1 - 2 * beyond),
        (high, 1 - beyond, beyond),
    ):
        places = np.flatnonzero(part)
        places = places[np.argsort(residuals[places], kind="stable")]
        levels[places] = start + mass * (np.arange(places.size) + 0.5) / max(places.size, 1)
    return np.asarray(ndtri(levels))
