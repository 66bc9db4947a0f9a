"""Displays of what tells regimes apart: columns beside the fit, and differences of coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from regimix.errors import ParameterError, read_count
from regimix.plots.display import (
    Display,
    begin,
    begin_intervals,
    draw_intervals,
    mark,
    mixture_of,
    outline,
)
from regimix.plots.palette import NEUTRAL, colour
from regimix.result.compare import Comparison
from regimix.result.mixture import Mixture
from regimix.result.profile import Profile, ProfileColumn
from regimix.result.summary import INTERCEPT
from regimix.words import clean, fixed, probability, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Panels of a profile, and how many stand side by side.
MOST_PANELS, ACROSS = 6, 3
# Lines of a comparison.
MOST_TERMS = 15
# Characters of a level beside its axis.
LONGEST_LEVEL = 18


@dataclass(kw_only=True, eq=False, repr=False)
class ProfileDisplay(Display):
    """Who is in each regime: a panel for each column, the most telling first.

    Of categories, the share of each level in each regime, and in all rows as a bar. Of numbers and
    dates, the median and the quartiles of each regime, and of all rows as a bar. Of
    `from_estimator` and `from_mixture`, X is the frame with the columns; `from_profile` draws what
    ``profile`` returned.

    Attributes
    ----------
    axes_ : list of Axes, one for each column
    """

    profile: Profile
    making: ClassVar[tuple[str, ...]] = ("columns",)

    @classmethod
    def from_profile(cls, profile: Profile, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw a profile; options are those of `plot`."""
        return cls(profile=profile).plot(ax, **options)

    @classmethod
    def _shown(cls, model: Any, X: Any, y: Any) -> Any:  # noqa: ARG003 - the convention
        return model, X

    @classmethod
    def _of(cls, shown: tuple[Any, Any], columns: Any = None) -> Self:
        return cls(profile=shown[0].profile(shown[1], columns))

    def plot(
        self,
        ax: Axes | None = None,
        *,
        column: str | None = None,
        max_columns: int = MOST_PANELS,
        legend: bool = True,
    ) -> Self:
        """Draw the columns.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Draws one column there. Default: a new figure with a panel for each.
        column : str, optional
            Draws this one alone. Default, on given axes: the most telling.
        max_columns : int, default=6
        legend : bool, default=True
        """
        found = self.profile.columns if column is None else (self.profile[column],)
        if not found:
            why = "".join(self.profile.notes[-1:])
            raise ParameterError(f"the profile has no column to draw. {why}".strip())
        if ax is not None or len(found) == 1:
            panels = [begin(ax, (6.4, 3.2))]
        else:
            panels = _panels(min(read_count("max_columns", max_columns), len(found)))
        self.axes_ = panels
        for panel, one in zip(panels, found, strict=False):
            self._draw(panel, one)
        left = len(found) - len(panels)
        remark = f"{left} less telling not shown" if left and ax is None else ""
        if remark:
            panels[-1].figure.supxlabel(remark, fontsize="small", color=NEUTRAL)
        names = panels[0].get_xlabel(), panels[0].get_ylabel()
        if len(panels) == 1:
            return self._finish(panels[0], names, legend)
        if legend:
            style: dict[str, Any] = {"frameon": False, "loc": "outside upper center"}
            marks = panels[0].get_legend_handles_labels()
            columns = min(len(marks[0]), 6)
            panels[0].figure.legend(*marks, ncols=columns, fontsize="small", **style)
        return self._finish(panels[0], names, legend=False)

    def _draw(self, ax: Axes, column: ProfileColumn) -> None:
        """Draw one column: levels from above, or one line a regime."""
        p = "" if np.isnan(column.p_holm) else f", p {_equal(column.p_holm)}"
        title = f"{clean(column.name, 28)}: tells {fixed(column.effect, 2)}{p}"
        ax.set_title(title, fontsize="medium", parse_math=False)
        if column.is_category:
            self._draw_levels(ax, column)
        else:
            self._draw_quartiles(ax, column)
        ax.tick_params(axis="y", length=0)

    def _draw_levels(self, ax: Axes, column: ProfileColumn) -> None:
        at = np.arange(len(column.levels))
        style: dict[str, Any] = {"color": NEUTRAL, "alpha": 0.25, "height": 0.6, "zorder": 1}
        ax.barh(at, column.overall, label="all rows", **style)
        for g, (group, name) in enumerate(
            zip(self.profile.groups, self.profile.names, strict=True)
        ):
            ax.scatter(column.values[:, g], at, label=name, **mark(group, 42))
        names = [short(clean(level), LONGEST_LEVEL) for level in column.levels]
        ax.set_yticks(at, names, parse_math=False)
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_xlim(-0.02, 1.02)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        ax.set_xlabel("share of the rows")

    def _draw_quartiles(self, ax: Axes, column: ProfileColumn) -> None:
        low, middle, high = column.overall
        ax.axvspan(low, high, color=NEUTRAL, alpha=0.15, linewidth=0, zorder=0, label="all rows")
        ax.axvline(middle, color=NEUTRAL, linewidth=1, zorder=1)
        for g, (group, name) in enumerate(
            zip(self.profile.groups, self.profile.names, strict=True)
        ):
            low, middle, high = column.values[:, g]
            line = ax.hlines(g, low, high, color=colour(group), linewidth=2.5, zorder=2)
            outline(line, group, 2.5)
            ax.scatter([middle], [g], label=name, **mark(group, 42))
        ax.set_yticks(np.arange(len(self.profile.groups)), self.profile.names)
        ax.set_ylim(len(self.profile.groups) - 0.4, -0.6)
        if column.kind == "date":
            ax.xaxis_date()
            ax.tick_params(axis="x", rotation=30)
        ax.set_xlabel("median and quartiles")


def _equal(p: float) -> str:
    text = probability(p)
    return text if text[0] in "<>" else f"= {text}"


def _panels(count: int) -> list[Axes]:
    """Return so many axes of a new figure, side by side in rows."""
    first = begin(None, (3.6 * min(count, ACROSS) + 0.6, 2.9 * -(-count // ACROSS) + 0.4))
    figure = first.figure
    first.remove()
    across = min(count, ACROSS)
    return [begin(figure.add_subplot(-(-count // across), across, i + 1)) for i in range(count)]


@dataclass(kw_only=True, eq=False, repr=False)
class ComparisonDisplay(Display):
    """Differences of coefficients between regimes, with intervals that all hold together.

    A line for each feature, the surest differences first, and in it a mark for each pair of
    regimes: right of zero, the coefficient of the second regime is the larger one.

    Attributes
    ----------
    order_ : list of int
        The terms shown, from above.
    points_, intervals_ : list of artists, one for each pair
    """

    comparison: Comparison
    making: ClassVar[tuple[str, ...]] = ("level",)

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw what ``compare`` returned; options are those of `plot`."""
        return cls(comparison=comparison).plot(ax, **options)

    @classmethod
    def _shown(cls, model: Any, X: Any, y: Any) -> Any:
        return mixture_of(model), X, y

    @classmethod
    def _of(cls, shown: tuple[Mixture, Any, Any], level: float = 0.95) -> Self:
        mixture, X, y = shown
        return cls(comparison=mixture.compare(X, y, level=level))

    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_features: int = MOST_TERMS,
        standardise: bool | None = None,
        intercept: bool = False,
        legend: bool = True,
    ) -> Self:
        """Draw the differences.

        Parameters
        ----------
        max_features : int, default=15
        standardise : bool, optional
            Whether coefficients are what one standard deviation of a feature does, so that features
            of different units can be compared, if its deviation is known. Default: if there are
            several features.
        intercept : bool, default=False
            Whether to show the intercepts too.
        ax, legend
            As in `from_estimator`.
        """
        found = self.comparison
        terms = [k for k, name in enumerate(found.terms) if intercept or name != INTERCEPT]
        known = found.deviation is not None
        standardise = known and (len(found.terms) > 2 if standardise is None else standardise)
        sizes = np.nan_to_num(np.abs(found.t), nan=-1.0).max(axis=0)
        most = read_count("max_features", max_features)
        self.order_ = sorted(terms, key=lambda k: -sizes[k])[:most]
        unit = np.ones(len(found.terms))
        if standardise and found.deviation is not None:
            unit[: found.deviation.size] = found.deviation
        pairs = len(found.pairs)
        names = [clean(found.terms[k]) for k in self.order_]
        ax = begin_intervals(ax, names, max(0.34, 0.14 * pairs))
        self.points_, self.intervals_ = [], []
        for i, (first, second) in enumerate(found.pairs):
            parts = (found.difference, found.lower, found.upper)
            values = [(part[i] * unit)[self.order_] for part in parts]
            style = mark(second, 42) | {"edgecolors": colour(first), "linewidths": 1.4}
            style["label"] = f"regime {second} less regime {first}"
            points, lines = draw_intervals(ax, second, (i, pairs), values, 1.8, **style)
            self.points_.append(points)
            self.intervals_.append(lines)
        what = " per standard deviation" if standardise else ""
        left = len(terms) - len(names)
        remark = f"{len(names)} of {len(terms)} terms shown" if left else ""
        label = f"difference of coefficients{what}, {found.level:.0%} intervals, all together"
        return self._finish(ax, (label, ""), legend, remark)
