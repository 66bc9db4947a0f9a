"""What all displays share: rows as a model sees them, how displays are made, and how they look.

matplotlib is loaded here only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import Table, read_target
from regimix.errors import DataError, ParameterError, need, read_count, read_number
from regimix.estimators.inputs import new_rows
from regimix.plots.palette import EDGE, NEUTRAL, OUTLIERS, PALE, colour, dashes, marker
from regimix.result.answer import belonging, distances, label_shares
from regimix.result.gated import feature_shares
from regimix.result.mixture import Mixture
from regimix.result.rowlaw import are_fitted
from regimix.trimmed.reweight import CUTOFF
from regimix.words import count, fixed, number, percent, tick_labels

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Span = tuple[float, float]

# More points than this only make a plot slow and its clouds solid.
MOST_POINTS = 5000
# By default outliers stretch a plot by at most this many times the range of the other rows, on each
# side: near ones are where they are, far ones do not flatten everything else.
STRETCH = 0.75
# Characters into which a text is not broken, however narrow axes are.
NARROWEST = 8
# White space between the data and the frame, as a share of the range.
MARGIN = 0.05
# Area of a mark in the legend: points may be too small there to tell them apart.
LEGEND_SIZE = 28
# A cross is this much larger than a point, an arrow at the edge again.
CROSS, ARROW = 1.6, 3.0
# The ways out of a frame: above, below, right, left.
ARROWS = {2: r"$\uparrow$", -2: r"$\downarrow$", 1: r"$\rightarrow$", -1: r"$\leftarrow$"}
# A plot shows a few thousand points; more rows than this would not change what it says. Of wide
# tables fewer are taken, so that a plot never needs much memory.
MOST_ROWS, FEWEST_ROWS, MOST_NUMBERS = 100_000, 5_000, 20_000_000
# Residuals smaller than this share of the spread of y are rounding, not noise.
ROUNDING = 1e-12


class Display:
    """A plot of a fitted model: made from an estimator or a mixture, drawn by ``plot``.

    ``ax_`` and ``figure_`` are what it was drawn on, ``outliers_`` the crosses and then the arrows.
    """

    # Each display has options of its own: to be made of a model (and rows), and to be drawn.
    _of: ClassVar[Any]
    plot: ClassVar[Any]
    ax_: Axes
    figure_: Any

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Plot what a fitted estimator found.

        Parameters
        ----------
        estimator : MixedLinearRegression or a pipeline that ends with one
            Displays of rows also take a TrimmedRegressor, ConvergenceDisplay a TrimmedEstimator.
        X, y : array or data frame of shape (n, d), array of shape (n,), optional
            Displays of rows show these. Default: the excerpt that the fitted mixture keeps of its
            own rows. CoefficientsDisplay takes the standard deviations of the features from X, as
            the last step of a pipeline sees it; the other displays have no use for rows.
        ax : matplotlib Axes, optional
            Default: a new figure.
        **options
            Those that the class lists, and those of `plot`: ``legend=False`` draws none. Outliers
            may stretch displays of rows by ``stretch`` times the range of the other rows, on each
            side (those further out are arrows at the edge). Of more rows than ``max_points``, so
            many are drawn at random, the same ones every time.
        """
        if "room" in options:  # its name before
            options["stretch"] = options.pop("room")
        made_with = options.keys() & signature(cls._of).parameters.keys()
        how = {name: options.pop(name) for name in made_with}
        display: Self = cls._of(estimator, X, y, **how).plot(ax, **options)
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
        """Plot what a mixture is; parameters as in `from_estimator`."""
        return cls.from_estimator(mixture, X, y, ax=ax, **options)

    def _finish(
        self, ax: Axes, names: tuple[str, str], legend: bool, said: str = "", alone: bool = True
    ) -> Self:
        """Name the axes, add a legend and a remark, and keep what was drawn on."""
        # A name may hold a dollar sign, which is no formula.
        ax.set_xlabel(names[0], parse_math=False)
        ax.set_ylabel(names[1], parse_math=False)
        if said:
            remark(ax, said)
        if legend:
            _add_legend(ax)
        if alone:
            settle([ax])
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class RowDisplay(Display):
    """A plot of rows as a model sees them: points of every regime, and outliers."""

    labels: Labels
    target_name: str = "y"
    n_rows: int | None = None
    doubtful: tuple[int, ...] = ()  #: regimes that do not come back from resampled rows
    shares: tuple[float, ...] | None = None  #: of the rows of each label; default: counted

    def _draw_rows(
        self,
        ax: Axes,
        x: Floats,
        y: Floats,
        labels: Labels,
        regimes: int,
        beside: tuple[Floats, Floats],
        stretch: Any,
        within: tuple[Span, Span] | None = None,
    ) -> None:
        """Draw the rows of each regime, and the outliers, which may lie beyond the frame.

        The frame holds the rows of the regimes, and the places ``beside`` them; but nothing beyond
        what it must stay ``within``.
        """
        inside, out = labels >= 0, labels < 0
        kept = np.append(spread(x, inside), beside[0]), np.append(spread(y, inside), beside[1])
        frame = Frame(kept, (x[out], y[out]), stretch, within)
        self.points_: list[Any] = [
            _draw_points(ax, j, x[labels == j], y[labels == j], x.size, self._name(j))
            for j in range(regimes)
        ]
        self.outliers_: list[Any] = []
        if out.any():
            self.outliers_ = draw_outliers(ax, x[out], y[out], frame, x.size, self._name(-1))
        frame.apply(ax)

    def _name(self, regime: int) -> str:
        """Name a regime, or the outliers, with the share of the rows that are labelled so."""
        name = "outliers" if regime < 0 else regime_name(regime, self.doubtful)
        # By labels, not its share, which is an estimate. Rows of the fit count by
        # their weights, others once each.
        share = float(np.mean(self.labels == regime)) if self.labels.size else 0.0
        share = share if self.shares is None else self.shares[regime]
        return f"{name} ({percent(share)} of rows)"

    def _rows_shown(self, shown: int) -> str:
        """Say so if not every row is shown."""
        total = self.n_rows or self.labels.size
        return f"{fixed(shown, 0)} of {fixed(total, 0)} rows shown" if shown < total else ""


def spread(values: Floats, inside: NDArray[np.bool_]) -> Floats:
    """Return the values of the rows of regimes; of all rows if these have one value alone.

    Outliers cannot flatten what has no extent.
    """
    kept = values[inside]
    return kept if kept.size and np.ptp(kept) > 0 else values


def begin(ax: Axes | None, figsize: Span = (7.0, 4.5)) -> Axes:
    """Return the axes to draw on: those given, or new ones in a figure of their own."""
    if ax is None:
        need("matplotlib", "plot", "plots need")
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=figsize, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    _write_ticks_as_text(ax)
    return ax


def _write_ticks_as_text(ax: Axes) -> None:
    """Let axes choose and write numbers as the report does, each whole: without a factor aside."""
    from matplotlib.ticker import Formatter, MaxNLocator, ScalarFormatter

    class Words(Formatter):
        def __call__(self, x: float, pos: int | None = None) -> str:  # noqa: ARG002 - of the class
            return self.fix_minus(number(x))

        def format_ticks(self, values: Any) -> list[str]:
            return [
                self.fix_minus(text) for text in tick_labels(list(values) or [0.0])[: len(values)]
            ]

    for axis in (ax.xaxis, ax.yaxis):
        if isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.set_major_formatter(Words())
        if isinstance(locator := axis.get_major_locator(), MaxNLocator):
            locator.set_params(steps=[1, 2, 5, 10])


def remark(ax: Axes, text: str) -> Text:
    """Write above the right end of the axes."""
    return ax.set_title(text, loc="right", fontsize="small", color=NEUTRAL)


def settle(panels: Sequence[Axes]) -> None:
    """Break texts that are longer than their axes, and part the ticks whose labels would meet."""
    from matplotlib.ticker import MaxNLocator

    # The layout decides how large axes are.
    panels[0].figure.canvas.figure.draw_without_rendering()
    for ax in panels:
        box = ax.get_window_extent()
        _break(ax.xaxis.label, box.width)
        _break(ax.yaxis.label, box.height)
        if said := ax.get_title(loc="right"):
            _break(remark(ax, said), box.width)
        sizes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
        locator = ax.xaxis.get_major_locator()
        if sizes and isinstance(locator, MaxNLocator):
            # Between two labels there is twice as much space as one is high.
            most = int(box.width / max(size.width + 2 * size.height for size in sizes))
            if len(ax.get_xticks()) > most:
                locator.set_params(nbins=max(most, 1))


def _break(text: Text, most: float) -> None:
    """Break a text into lines of at most so many pixels, along which it runs."""
    box, lines = text.get_window_extent(), text.get_text().split("\n")
    along = box.height if text.get_rotation() == 90 else box.width
    if along > most:
        width = int(max(map(len, lines)) * most / along)
        text.set_text("\n".join(fill(line, max(width, NARROWEST)) for line in lines))


def begin_panels(figsize: Span, shape: tuple[int, int], places: list[Any]) -> list[Axes]:
    """Return axes at these places of a grid of this shape, on a new figure."""
    first = begin(None, figsize)
    figure = first.figure
    first.remove()
    grid = figure.add_gridspec(*shape)
    return [begin(figure.add_subplot(grid[place])) for place in places]


class Frame:
    """What part of the plane is shown: all kept rows, and outliers unless they are far away."""

    def __init__(
        self,
        kept: tuple[Floats, Floats],
        others: tuple[Floats, Floats],
        stretch: Any = STRETCH,
        within: tuple[Span, Span] | None = None,
    ) -> None:
        most = read_number("stretch", stretch, lambda times: times >= 0, "a number from 0")
        self.x = _span(kept[0], others[0], most)
        self.y = _span(kept[1], others[1], most)
        if within is not None:
            self.x, self.y = _common(self.x, within[0]), _common(self.y, within[1])

    @property
    def limits(self) -> tuple[Span, Span]:
        """Limits of the axes: marks at the edge need some space."""
        return _widened(self.x), _widened(self.y)

    def apply(self, ax: Axes) -> None:
        """Set the limits of the axes."""
        across, up = self.limits
        ax.set_xlim(*across)
        ax.set_ylim(*up)


def _common(span: Span, within: Span) -> Span:
    return max(span[0], within[0]), min(span[1], within[1])


def _widened(span: Span) -> Span:
    space = MARGIN * (span[1] - span[0])
    return span[0] - space, span[1] + space


def _span(kept: Floats, others: Floats, stretch: float) -> Span:
    """Range of the kept values, stretched towards the others, but not without end."""
    inner = kept if kept.size else others
    if not inner.size:
        return 0.0, 1.0
    low, high = float(inner.min()), float(inner.max())
    unit = (high - low) or abs(high) or 1.0
    if others.size:
        low = min(low, max(float(others.min()), low - stretch * unit))
        high = max(high, min(float(others.max()), high + stretch * unit))
    return (low, high) if high > low else (low - unit, high + unit)


def _point_size(n_points: int) -> float:
    """Area of a point: large where points are few."""
    return float(np.clip(2500 / max(n_points, 1) ** 0.75, 7, 34))


def _draw_points(ax: Axes, regime: int, x: Floats, y: Floats, n_points: int, label: str) -> Any:
    """Draw the rows of a regime; size and opacity depend on how many points there are in all."""
    style = mark(regime, _point_size(n_points)) | {"alpha": 0.8, "linewidths": 0.4, "zorder": 2}
    if n_points > 1000:
        style |= {"alpha": 0.55, "linewidths": 0.25}
        style["edgecolors"] = EDGE if colour(regime) in PALE else "none"
    return ax.scatter(x, y, label=label, **style)


def mark(regime: int, size: float) -> dict[str, Any]:
    """Return how the mark of a regime, or of the outliers, looks."""
    style = {"color": colour(regime), "marker": marker(regime), "s": size, "zorder": 3}
    if regime < 0:
        return style | {"linewidths": 1.4}
    return style | {"linewidths": 0.5, "edgecolors": EDGE if colour(regime) in PALE else "white"}


def draw_outliers(
    ax: Axes,
    x: Floats,
    y: Floats,
    frame: Frame,
    n_points: int,
    label: str,
    far: tuple[str, str] = ("outlier", "beyond the edge"),
) -> list[PathCollection]:
    """Draw outliers as grey crosses; those beyond the frame as arrows at its edge.

    ``far`` is what the legend calls one of the latter, and where it says that they are.
    """
    size = _point_size(n_points)
    across, up = frame.limits
    side = np.where(x > across[1], 1, np.where(x < across[0], -1, 0))
    height = np.where(y > up[1], 1, np.where(y < up[0], -1, 0))
    way = np.where(height != 0, 2 * height, side)
    style: dict[str, Any] = {"color": OUTLIERS, "zorder": 1.5}
    crosses = {**style, "marker": "x", "s": CROSS * size, "linewidths": 1.2}
    drawn = [ax.scatter(x[way == 0], y[way == 0], label=label, **crosses)]
    arrows = {**style, "s": max(ARROW * size, 40), "linewidths": 0.3}
    beyond = f"{count(int(np.count_nonzero(way)), far[0])} {far[1]}"
    for out in [out for out in ARROWS if (way == out).any()]:
        at = np.clip(x[way == out], *frame.x), np.clip(y[way == out], *frame.y)
        drawn.append(ax.scatter(*at, marker=ARROWS[out], label=beyond, **arrows))
        beyond = "_nolegend_"  # one entry for all of them
    return drawn


def draw_line(ax: Axes, regime: int, x: Any, y: Any, **style: Any) -> Line2D:
    """Draw the line of a regime."""
    given = {"linewidth": 1.8, "linestyle": dashes(regime), "zorder": 3, **style}
    (line,) = ax.plot(x, y, color=colour(regime), **given)
    outline(line, regime, float(given["linewidth"]))
    return line


def outline(artist: Artist, regime: int, width: float) -> None:
    """Give lines of a pale colour a dark edge."""
    from matplotlib.patheffects import Normal, Stroke

    if colour(regime) in PALE:
        artist.set_path_effects([Stroke(linewidth=width + 1.4, foreground=EDGE), Normal()])


def regime_name(regime: int, doubtful: tuple[int, ...]) -> str:
    """Name a regime, and call it doubtful if it is."""
    return f"regime {regime}{', doubtful' if regime in doubtful else ''}"


def find_doubtful(mixture: Mixture) -> tuple[int, ...]:
    """List the regimes that do not come back from resampled rows, if that was tried."""
    found = mixture.resampled
    return () if found is None else tuple(np.flatnonzero(found.doubtful).tolist())


def _add_legend(ax: Axes) -> None:
    """Put the legend beside the axes if the figure leaves space for it, else where it fits."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    place: dict[str, Any] = {"loc": "best"}
    if ax.figure.get_layout_engine() is not None:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
    box = ax.legend(handles, labels, frameon=False, fontsize="small", **place)
    marks: list[Any] = box.legend_handles
    for handle in marks:
        if hasattr(handle, "set_sizes"):
            handle.set_sizes([LEGEND_SIZE])
            handle.set_alpha(1)


# --- rows as a model sees them --------------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class RowView:
    """Rows as a model sees them."""

    X: NDArray[Any]
    y: Floats
    labels: Labels  # the regime of each row, -1 for outliers
    nearest: Labels  # the regime of each row; of an outlier, the nearest in units of the noise
    means: Floats  # what that regime predicts
    coef: Floats  # of the regimes, (m, d)
    intercept: Floats
    scale: Floats
    belongs: Floats | None  # how far each row counts for each regime, (n, m); None for one line
    feature_names: tuple[str, ...]
    target_name: str
    n_rows: int  # rows of the table that these were drawn from
    degrees: float = np.inf  # of freedom of the noise; infinite for normal noise
    doubtful: tuple[int, ...] = ()  # regimes that do not come back from resampled rows
    shares: tuple[float, ...] | None = None  # of the rows of each label, if they are those of a fit
    weights: Floats | None = None  # of the rows, where they are those that a mixture remembers

    @property
    def shared(self) -> dict[str, Any]:
        """What every display of rows keeps."""
        names = ("labels", "target_name", "n_rows", "doubtful", "shares")
        return {name: getattr(self, name) for name in names}

    @property
    def residuals(self) -> Floats:
        """Distance of each response from what its nearest regime predicts, (n,)."""
        return self.y - self.means

    @property
    def standardised(self) -> Floats:
        """Residuals in units of the noise of their regime, (n,)."""
        return self.residuals / positive_scale(self.scale, self.y)[self.nearest]


def positive_scale(scale: Floats, y: Floats) -> Floats:
    """Noise levels to divide by: those of exact fits are what rounding leaves."""
    floor = ROUNDING * (float(np.ptp(y)) or 1.0)
    return np.maximum(scale, floor)


def contrast(coef: Floats) -> Floats:
    """How far regimes differ in each coefficient, (d,); of a single regime, its size."""
    return np.asarray(np.ptp(coef, axis=0) if len(coef) > 1 else np.abs(coef[0]))


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return steps[-1][1] if steps else model


def find_mixture(model: Any) -> Mixture | None:
    """Return a mixture, or that of a fitted estimator or of the last step of a pipeline, if any."""
    last = last_step(model)
    mixture = getattr(last, "mixture_", last)
    return mixture if isinstance(mixture, Mixture) else None


def mixture_of(model: Any, wanted: str = "a MixedLinearRegression") -> Mixture:
    """Return the same; refuse a model that has none."""
    mixture = find_mixture(model)
    if mixture is None:
        raise ParameterError(
            f"the estimator must be {wanted}, fitted, or a pipeline that ends with one; got "
            f"{type(model).__name__}. Call fit(X, y) first; of a search over parameters, pass "
            "best_estimator_."
        )
    return mixture


def view_rows(model: Any, X: Any = None, y: Any = None) -> RowView:
    """See rows as a mixture, a fitted MixedLinearRegression or a TrimmedRegressor does.

    Of a pipeline, the last step is meant, and X is first transformed by the others. Without X and
    y, the excerpt that a mixture keeps of its own rows is used. Labels are those of ``labels_``; of
    new rows, those of ``assign``, but that a gating of other columns than the features cannot be
    asked here: such rows have one share for all.
    """
    last = last_step(model)
    if X is not None and last is not model:
        X = model[:-1].transform(X)
    if hasattr(last, "inlier_mask_"):
        return _rows_of_line(last, X, y)
    mixture = mixture_of(model, "a MixedLinearRegression or a TrimmedRegressor")
    excerpt, labels, shares = mixture.excerpt, None, None
    gated: Floats | None = None
    if X is None and y is None and excerpt is not None:
        values, target, labels = excerpt.X, excerpt.y, excerpt.labels
        n_rows, shares = target.size if excerpt.complete else mixture.n_rows, label_shares(mixture)
        gated = excerpt.shares
    else:
        if X is not None and y is not None:
            X, y, _ = mixture.usable_rows(X, y)
        values, target, n_rows = _drawn(X, y)
        mixture.predict_components(X[:1])  # refuses other columns than those of the fit
        gated = feature_shares(mixture, values)
        if target.size == n_rows and are_fitted(mixture, values, target, gated):
            labels = mixture.labels if mixture.labels.size == n_rows else None
            shares = label_shares(mixture)
            if excerpt is not None and excerpt.complete and excerpt.y.size < n_rows:
                # Rows of weight zero are absent.
                values, target, labels = excerpt.X, excerpt.y, excerpt.labels
                n_rows, gated = target.size, excerpt.shares
    if labels is None:
        labels = mixture.assign(values, target, gated)
    remembered = excerpt is not None and np.array_equal(excerpt.y, target)
    # As in a report: an outlier is shown with the regime that is nearest, not the likeliest.
    far = distances(mixture, values, target, labels)
    return RowView(
        X=values,
        y=target,
        labels=labels,
        weights=excerpt.weights if excerpt is not None and remembered else None,
        nearest=far.nearest,
        means=far.predicted,
        coef=mixture.coef,
        intercept=mixture.intercept,
        scale=mixture.scale,
        belongs=belonging(mixture, labels, mixture.responsibilities(values, target, gated)),
        degrees=mixture.noise_degrees,
        feature_names=mixture.feature_names,
        target_name=mixture.target_name,
        n_rows=n_rows,
        doubtful=find_doubtful(mixture),
        shares=shares,
    )


def _drawn(X: Any, y: Any) -> tuple[NDArray[Any], Floats, int]:
    """Check rows and draw some if they are many; also say how many there were."""
    if X is None or y is None:
        raise DataError(
            "there are no rows to plot: the model keeps no excerpt of the rows it was fitted to "
            "(or only one of X and y was passed). Pass X and y."
        )
    table = Table.read(X, fewest_rows=1)
    target = read_target(y, table.n_rows)
    most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_NUMBERS // len(table.names)))
    rows = draw(table.n_rows, most)
    values = table.values[rows]
    Table(values, table.names).extent()
    return values, target[rows], table.n_rows


def draw(n_rows: int, most: int) -> NDArray[np.intp] | slice:
    """Draw at most so many rows, the same ones every time, in their order."""
    if n_rows <= read_count("max_points", most):
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def _rows_of_line(line: Any, X: Any, y: Any) -> RowView:
    """See rows as a TrimmedRegressor does: one regime, and rows beyond its cutoff."""
    target_name, recipe = getattr(y, "name", None), getattr(line, "encoding_", None)
    if X is not None and recipe is not None:
        rows = new_rows(line, X, y)
        X, y = rows.X, rows.y
    values, target, n_rows = _drawn(X, y)
    if recipe is None:
        line.predict(X[:1])  # refuses other columns than those of the fit
    means = values.astype(np.float64) @ line.coef_ + line.intercept_
    scale = np.array([line.scale_])
    inlier = np.abs(target - means) <= CUTOFF * positive_scale(scale, target)[0]
    names = getattr(line, "feature_names_in_", [f"x{i}" for i in range(values.shape[1])])
    return RowView(
        X=values,
        y=target,
        labels=np.where(inlier, 0, -1),
        nearest=np.zeros(target.size, dtype=np.int64),
        means=means,
        coef=np.atleast_2d(line.coef_),
        intercept=np.array([line.intercept_]),
        scale=scale,
        belongs=None,
        feature_names=tuple(map(str, names)) if recipe is None else recipe.feature_names,
        target_name="y" if target_name is None else str(target_name),
        n_rows=n_rows,
    )
