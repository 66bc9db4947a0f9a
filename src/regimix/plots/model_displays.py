"""Displays of a model: its coefficients, their differences, who is in each regime, the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import Table
from regimix.errors import ParameterError, read_count
from regimix.model.em import REGIME_GAIN
from regimix.plots.display import (
    Display,
    Frame,
    begin,
    begin_panels,
    contrast,
    draw_outliers,
    find_doubtful,
    find_mixture,
    last_step,
    mark,
    mixture_of,
    outline,
    regime_name,
    settle,
)
from regimix.plots.palette import NEUTRAL, OUTLIERS, colour, marker
from regimix.result.answer import Answer
from regimix.result.compare import Comparison
from regimix.result.mixture import Mixture
from regimix.result.profile import Profile, ProfileColumn
from regimix.result.stability import BACK, numbers_found
from regimix.result.summary import INTERCEPT
from regimix.trimmed.ilts import TrimmedFit
from regimix.words import clean, fixed, p_value, percent, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Lines of a plot of coefficients, or of their differences; each has at least so many inches.
MOST_TERMS, TERM_HEIGHT = 15, 0.34
# Pairs of regimes that colours and marks can tell apart: all those of five.
MOST_PAIRS = 10
# What stands side by side takes this share of the distance to the next.
SPREAD = 0.7
# Panels of a profile, and how many stand side by side.
MOST_PANELS, ACROSS = 6, 3
# Characters of a level beside its axis.
LONGEST_LEVEL = 18
# Differences below this are shown as they are, larger ones by their logarithm: ten nats are strong
# evidence, and a count that is quite wrong costs thousands. Nothing is above the best: there is
# room for marks alone.
LINEAR, HEADROOM = 10.0, 1.5
# More counts than this cannot all have a tick of their own.
MOST_TICKS = 20
# A trace that spans more than this factor is drawn on a logarithmic scale.
WIDE = 20.0
# Moves that were left may stretch the plot by this share of the score, downwards mostly.
DOWN = 0.25
# Rounds that can each have a dot.
MOST_DOTS = 60
# So many accepted moves can carry their names without hiding each other.
MOST_NAMES = 6
# Points by which a label is moved away from another.
LIFT = 4
# Space above the last move for its name, as a share of the axis.
TOP = 0.06
SUM_OF_SQUARES, NATS = "trimmed sum of squares", "nats gained over the first model"


class _IntervalDisplay(Display):
    """Intervals in a line for each term: coefficients of regimes, or differences of them."""

    def _draw(
        self, ax: Axes | None, names: list[str], values: Any, looks: Any, sizes: tuple[float, float]
    ) -> Axes:
        """Draw middles and ends, three arrays of shape (series, terms), from above.

        Looks are the regime of each series, for the colour, and the style of its marks; sizes are
        the inches that a series takes in each line of a new figure, and the width of its intervals.
        """
        middles, lows, highs = values
        height = max(TERM_HEIGHT, sizes[0] * len(middles))
        ax = begin(ax, (7.0, max(2.0, 1.1 + height * len(names))))
        for i in range(0, len(names), 2):
            ax.axhspan(i - 0.5, i + 0.5, color=NEUTRAL, alpha=0.07, linewidth=0, zorder=0)
        ax.axvline(0, color=NEUTRAL, linewidth=0.8, zorder=1)
        ax.set_yticks(np.arange(len(names)), names, parse_math=False)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(names) - 0.5, -0.5)
        self.points_: list[Any] = []
        self.intervals_: list[Any] = []
        for i, (regime, style) in enumerate(zip(*looks, strict=True)):
            at = np.arange(len(names)) + SPREAD * ((i + 0.5) / len(middles) - 0.5)
            lines = ax.hlines(at, lows[i], highs[i], color=colour(regime), lw=sizes[1], zorder=2)
            outline(lines, regime, sizes[1])
            self.intervals_.append(lines)
            self.points_.append(ax.scatter(middles[i], at, **style))
        return ax


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientsDisplay(_IntervalDisplay):
    """Coefficients of every regime with their intervals, the most separating features first.

    A feature separates by how far its coefficients lie apart, times the standard deviation of the
    feature: by how much it moves the response of one regime more than that of another. Of a single
    regime, the largest effects come first.

    ``level``, the confidence of the intervals, is an option of `from_estimator` and `from_mixture`.

    Attributes
    ----------
    order_ : ndarray of int
        The features shown, from above.
    points_, intervals_ : list of artists, one for each regime
    """

    coef: Floats  #: (m, d)
    lower: Floats
    upper: Floats
    feature_names: Any
    deviation: Floats | None = None  #: standard deviations of the features; default: all equal
    intercept: Floats | None = None  #: (m, 3), intercepts and the ends of their intervals
    level: float = 0.95
    target_name: str = "y"
    doubtful: tuple[int, ...] = ()  #: regimes that do not come back from resampled rows

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any, level: float = 0.95) -> Self:
        mixture = mixture_of(model)
        deviation = None if mixture.rows is None else mixture.rows.deviation
        if X is not None:
            X, _, _ = mixture.usable_rows(X, y)
            deviation = Table.read(X).values.std(axis=0, dtype=np.float64)
        bounds, d = mixture.conf_int(level), mixture.coef.shape[1]
        intercept = None
        if mixture.fit_intercept:
            intercept = np.column_stack([mixture.intercept, bounds[:, d]])
        return cls(
            coef=mixture.coef,
            lower=bounds[:, :d, 0],
            upper=bounds[:, :d, 1],
            feature_names=mixture.feature_names,
            deviation=deviation,
            intercept=intercept,
            level=level,
            target_name=mixture.target_name,
            doubtful=find_doubtful(mixture),
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        max_features: int = MOST_TERMS,
        standardise: bool = False,
        intercept: bool = False,
        legend: bool = True,
    ) -> Self:
        """Draw the coefficients and their intervals.

        Parameters
        ----------
        max_features : int, default=15
        standardise : bool, default=False
            Whether to show what one standard deviation of a feature does, so that features of
            different units can be compared, or the coefficients as they are.
        intercept : bool, default=False
            Whether to show the intercepts too, last.
        ax, legend
            As in `from_estimator`.
        """
        m, d = self.coef.shape
        apart = contrast(self.coef) * (1.0 if self.deviation is None else self.deviation)
        most = read_count("max_features", max_features)
        self.order_ = np.argsort(-apart, kind="stable")[:most]
        if standardise and self.deviation is None:
            raise ParameterError(
                "standardise=True needs the standard deviations of the features, which are not "
                "known here; pass X, or standardise=False."
            )
        if intercept and self.intercept is None:
            raise ParameterError(
                "intercept=True, but the regimes have no intercepts (fit_intercept=False); pass "
                "intercept=False."
            )
        unit = np.ones(d) if self.deviation is None or not standardise else self.deviation
        unit = unit[self.order_]
        shown = [part[:, self.order_] * unit for part in (self.coef, self.lower, self.upper)]
        names = [clean(str(self.feature_names[i])) for i in self.order_]
        if intercept and self.intercept is not None:
            levels = self.intercept.T
            shown = [np.column_stack(pair) for pair in zip(shown, levels, strict=True)]
            names.append(INTERCEPT)
        size = 30 if m <= 4 else 18
        styles = [mark(j, size) | {"label": regime_name(j, self.doubtful)} for j in range(m)]
        ax = self._draw(ax, names, shown, (range(m), styles), (0.12, 1.6))
        target = clean(self.target_name)
        what = f"change of {target} per standard deviation" if standardise else "coefficient"
        remark = f"{self.order_.size} of {d} features shown" if self.order_.size < d else ""
        return self._finish(ax, (f"{what}, {self.level:.0%} intervals", ""), legend, remark)


@dataclass(kw_only=True, eq=False, repr=False)
class ComparisonDisplay(_IntervalDisplay):
    """Differences of coefficients between regimes, with intervals that all hold together.

    A line for each feature, the surest differences first, and in it a mark for each pair of
    regimes: right of zero, the coefficient of the second regime is the larger one. Of more than ten
    pairs, those with the surest differences are shown.

    Attributes
    ----------
    order_ : list of int
        The terms shown, from above.
    points_, intervals_ : list of artists, one for each pair shown
    """

    comparison: Comparison

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw what ``compare`` returned; options are those of `plot`."""
        return cls(comparison=comparison).plot(ax, **options)

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any, level: float = 0.95) -> Self:
        return cls(comparison=mixture_of(model).compare(X, y, level=level))

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
        names = [clean(found.terms[k]) for k in self.order_]
        parts = found.difference, found.lower, found.upper
        surest = np.nan_to_num(np.abs(found.t[:, terms]), nan=-1.0).max(axis=1)
        shown = np.sort(np.argsort(-surest, kind="stable")[:MOST_PAIRS])
        values = [(part * unit)[shown][:, self.order_] for part in parts]
        pairs = [found.pairs[i] for i in shown.tolist()]
        styles = [
            mark(second, 42)
            | {"edgecolors": colour(first), "linewidths": 1.4}
            | {"label": f"regime {second} less regime {first}"}
            for first, second in pairs
        ]
        regimes = [second for _, second in pairs]
        ax = self._draw(ax, names, values, (regimes, styles), (0.14, 1.8))
        what = " per standard deviation" if standardise else ""
        shares = (pairs, found.pairs, "pairs"), (names, terms, "terms")
        remark = ", ".join(
            f"{len(some)} of {len(every)} {noun} shown"
            for some, every, noun in shares
            if len(some) < len(every)
        )
        label = f"difference of coefficients{what}, {found.level:.0%} intervals, all together"
        return self._finish(ax, (label, ""), legend, remark)


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

    @classmethod
    def from_profile(cls, profile: Profile, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw a profile; options are those of `plot`."""
        return cls(profile=profile).plot(ax, **options)

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any, columns: Any = None) -> Self:  # noqa: ARG003
        return cls(profile=model.profile(X, columns))

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
            panels = _side_by_side(min(read_count("max_columns", max_columns), len(found)))
        self.axes_ = panels
        for panel, one in zip(panels, found, strict=False):
            self._draw(panel, one)
        left = len(found) - len(panels)
        if left and ax is None:
            said = f"{left} less telling not shown"
            panels[-1].figure.supxlabel(said, fontsize="small", color=NEUTRAL)
        names = panels[0].get_xlabel(), panels[0].get_ylabel()
        if len(panels) == 1:
            return self._finish(panels[0], names, legend)
        if legend:
            style: dict[str, Any] = {"frameon": False, "loc": "outside upper center"}
            marks = panels[0].get_legend_handles_labels()
            columns = min(len(marks[0]), 6)
            panels[0].figure.legend(*marks, ncols=columns, fontsize="small", **style)
        settle(panels)
        return self._finish(panels[0], names, legend=False, alone=False)

    def _draw(self, ax: Axes, column: ProfileColumn) -> None:
        """Draw one column: levels from above, or one line a regime."""
        p = "" if np.isnan(column.p_holm) else f", {p_value(column.p_holm)}"
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


def _side_by_side(count: int) -> list[Axes]:
    """Return so many axes of a new figure, side by side in rows."""
    across, rows = min(count, ACROSS), -(-count // ACROSS)
    places = [np.s_[i // across, i % across] for i in range(count)]
    return begin_panels((3.6 * across + 0.6, 2.9 * rows + 0.4), (rows, across), places)


@dataclass(kw_only=True, eq=False, repr=False)
class SelectionDisplay(Display):
    """Evidence, BIC and ICL for each number of regimes, that of the model marked.

    The three have different zeros and directions. Each is shown as what is lost against its own
    best count, in nats (for BIC and ICL: half their difference), so zero is best and lower is
    worse. Differences beyond ten are on a logarithmic scale.

    The search decides by evidence, of which every regime costs 3 nats: the highest is chosen.

    Attributes
    ----------
    lines_ : dict of str to artist
        One for each criterion.
    chosen_ : artist
    """

    n_components: NDArray[np.int64]  #: the numbers of regimes that were tried
    evidence: Floats  #: more is better; of the others, less; NaN where not known
    bic: Floats
    icl: Floats
    chosen: int  #: the number of regimes of the model
    asked: int | None = None  #: the number that was asked for, if one was: it was not chosen then
    nothing: bool = False  #: whether the rows support no regime: none was chosen then
    favours: str = ""  #: says so if the evidence favours another number than that asked for

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any) -> Self:  # noqa: ARG003 - recorded at the fit
        mixture = mixture_of(model)
        path = mixture.selection
        if path is None:
            raise ParameterError(
                "this fit kept no selection path: its search compares no numbers of regimes, or "
                'its file is of an earlier version. Fit with search="auto".'
            )
        return cls(
            n_components=np.asarray(path.n_components),
            evidence=np.asarray(path.evidence, dtype=np.float64),
            bic=np.asarray(path.bic, dtype=np.float64),
            icl=np.asarray(path.icl, dtype=np.float64),
            chosen=int(path.chosen),
            asked=mixture.settings.n_components,
            nothing=mixture.found_nothing,
            favours=Answer(mixture).favours,
        )

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Self:
        """Draw the three criteria; parameters as in `from_estimator`."""
        ax = begin(ax, (6.4, 4.0))
        self.chosen_ = ax.axvline(
            self.chosen, color=NEUTRAL, linewidth=9, alpha=0.2, label=self._origin()
        )
        ax.axhline(0, color=NEUTRAL, linewidth=0.8, zorder=1)
        self.lines_ = {}
        for j, (name, gain) in enumerate(self._gains().items()):
            style: dict[str, Any] = {"color": colour(j), "marker": marker(j), "markersize": 6 - j}
            (line,) = ax.plot(self.n_components, gain, label=self._best(name, gain), **style)
            self.lines_[name] = line
        # On a logarithmic scale, what stays within the linear part would have no ticks but zero.
        if ax.get_ylim()[0] < -LINEAR:
            ax.set_yscale("symlog", linthresh=LINEAR)
            ax.yaxis.set_major_formatter(
                lambda nats, _: fixed(nats, 0).replace("-", "\N{MINUS SIGN}")
            )
            ax.set_ylim(top=HEADROOM)
        if self.n_components.size <= MOST_TICKS:
            ax.set_xticks(self.n_components)
        ax.margins(x=0.08)
        names = "number of regimes", "nats below the best; BIC and ICL halved"
        return self._finish(ax, names, legend, self.favours)

    def _origin(self) -> str:
        """Say where the number of regimes comes from."""
        if self.nothing:
            none = "not supported" if self.favours else "the rows support none"
            return f"shown: {self.chosen} ({none})"
        if self.asked is None:
            return f"chosen: {self.chosen}"
        if self.asked == self.chosen:
            return f"asked for: {self.chosen}"
        return f"found: {self.chosen} (asked for: {self.asked})"

    def _best(self, name: str, gain: Floats) -> str:
        """Say which number a criterion favours."""
        known = np.isfinite(gain).any()
        return f"{name}: {self.n_components[np.nanargmax(gain)]} is best" if known else name

    def _gains(self) -> dict[str, Floats]:
        """Bring the criteria to one scale: nats, zero is the best."""
        more = {"evidence": self.evidence, "BIC": -self.bic / 2, "ICL": -self.icl / 2}
        gains = {}
        for name, value in more.items():
            known = np.where(np.isfinite(value), value, np.nan)
            gains[name] = known if np.isnan(known).all() else known - np.nanmax(known)
        return gains


@dataclass(kw_only=True, eq=False, repr=False)
class StabilityDisplay(Display):
    """How much of each regime comes back from resampled rows: one dot for each resample.

    Above the line a regime shares more than half of its rows with one that was found again. What
    is shown is that of ``mixture_.resampled``: call ``stability`` of the estimator first.

    Attributes
    ----------
    dots_ : list of artist
        One for each regime.
    """

    jaccard: Floats  #: similarity of each regime and its like in each resample, (B, m)
    counts: dict[int, float]  #: how often each number of regimes was found
    doubtful: tuple[int, ...] = ()  #: regimes that come back in less than 60 % of the resamples

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any) -> Self:  # noqa: ARG003 - recorded at the fit
        mixture = mixture_of(model)
        found = mixture.resampled
        if found is None:
            raise ParameterError(
                "nothing is known about the stability of this fit. Call stability(X, y) of the "
                "estimator, or put what Mixture.stability returned into it (with_stability)."
            )
        return cls(jaccard=found.jaccard, counts=found.counts, doubtful=find_doubtful(mixture))

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Self:
        """Draw the similarities; parameters as in `from_estimator`."""
        count, m = self.jaccard.shape
        ax = begin(ax, (max(4.0, 1.1 * m + 2.6), 3.6))
        ax.axhline(BACK, color=NEUTRAL, linewidth=1.2, linestyle="--", zorder=1)
        self.dots_ = []
        # Dots beside each other, so that equal ones do not hide each other.
        beside = SPREAD * ((np.arange(count) + 0.5) / count - 0.5)
        for j in range(m):
            style = mark(j, 22) | {"label": regime_name(j, self.doubtful), "linewidths": 0.4}
            back = percent(float(np.mean(self.jaccard[:, j] > BACK)))
            dots = ax.scatter(j + beside, self.jaccard[:, j], **style)
            ax.annotate(f"back in {back}", (j, 1.04), ha="center", fontsize="small", color=NEUTRAL)
            self.dots_.append(dots)
        ax.set_xticks(np.arange(m))
        ax.set_xlim(-0.6, m - 0.4)
        ax.set_ylim(-0.03, 1.14)
        remark = f"{count} resamples; regimes found: {numbers_found(self.counts)}"
        return self._finish(ax, ("regime", "shared rows (Jaccard index)"), legend, remark)


@dataclass(kw_only=True, eq=False, repr=False)
class ConvergenceDisplay(Display):
    """The objective of trimmed fits round by round, or the gain of a search move by move.

    Of several trimmed fits the one that ended lowest stands out. Of a search, the line is what the
    model so far has gained over the first, in nats; searches that follow begin again at zero, where
    a dotted line stands. A dot is a move that was taken, a cross one that was left, where it would
    have led to, and an arrow at the edge one that would have lost far more.

    Attributes
    ----------
    lines_ : list of artists, one for each trace
    accepted_, rejected_ : list of artists
    names_ : list of artists
        What the moves were that were taken, unless they are many.
    begins_ : list of artists
        Where further searches begin.
    """

    traces: Sequence[Floats]  #: one for each fit: values at the start and after each step
    tried: Floats | None = None  #: of a search: the score that each move led or would have led to
    accepted: NDArray[np.bool_] | None = None  #: whether it was taken
    moves: Sequence[str] = ()  #: what it was
    begins: Sequence[int] = ()  #: how many moves were tried before each further search
    step: str = "round"
    quantity: str = SUM_OF_SQUARES

    @classmethod
    def _of(cls, model: Any, X: Any, y: Any) -> Self:  # noqa: ARG003 - recorded at the fit
        mixture = find_mixture(model)
        return cls._of_trimmed(last_step(model)) if mixture is None else cls._of_search(mixture)

    @classmethod
    def _of_trimmed(cls, estimator: Any) -> Self:
        trace = getattr(estimator, "objective_path_", getattr(estimator, "objective_", None))
        if trace is None or np.ndim(trace) != 1:
            raise ParameterError(
                f"this {type(estimator).__name__} has recorded no rounds. Pass a fitted "
                "MixedLinearRegression or TrimmedEstimator, or use from_fits with what ilts or "
                "gd_ilts returned."
            )
        mean = hasattr(estimator, "losses_")
        quantity = "mean loss of the kept rows" if mean else SUM_OF_SQUARES
        return cls(traces=[np.asarray(trace, dtype=np.float64)], quantity=quantity)

    @classmethod
    def _of_search(cls, mixture: Mixture) -> Self:
        if not mixture.attempts:
            raise ParameterError(
                "this mixture remembers no moves: none was tried, or it was read from a file that "
                "does not keep them."
            )
        gain = np.array([attempt.gain for attempt in mixture.attempts])
        accepted = np.array([attempt.accepted for attempt in mixture.attempts])
        searches = [attempt.search for attempt in mixture.attempts]
        begins = [i for i in range(1, gain.size) if searches[i] != searches[i - 1]]
        # Every search begins with one model of most rows; scores are differences to its score.
        gained = np.split(np.where(accepted, gain, 0.0), begins)
        traces = [np.append(0.0, np.cumsum(part)) for part in gained]
        net = mixture.settings.search == "net"
        return cls(
            traces=traces,
            begins=begins,
            tried=np.concatenate([trace[:-1] for trace in traces]) + gain,
            accepted=accepted,
            moves=[f"{attempt.move}: {attempt.source}" for attempt in mixture.attempts],
            step="regime tried" if net else "move tried",
            quantity="share of the rows explained" if net else NATS,
        )

    @classmethod
    def from_fits(
        cls, fits: TrimmedFit | Sequence[TrimmedFit], *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Plot the rounds of what `ilts` or `gd_ilts` returned, for one start or for several."""
        several = [fits] if isinstance(fits, TrimmedFit) else list(fits)
        if not several or not all(isinstance(fit, TrimmedFit) for fit in several):
            raise ParameterError(f"fits must be one TrimmedFit or several; got {fits!r}.")
        return cls(traces=[fit.objective for fit in several]).plot(ax, **options)

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Self:
        """Draw the traces; parameters as in `from_estimator`."""
        ax = begin(ax, (6.4, 4.0))
        self.accepted_: list[Any] = []
        self.rejected_: list[Any] = []
        self.names_: list[Any] = []
        self.begins_: list[Any] = []
        if self.tried is None:
            self._draw_rounds(ax)
        else:
            self._draw_moves(ax)
        ax.locator_params(axis="x", integer=True)
        legend = legend and ax.get_legend_handles_labels()[1] != ["fit"]
        self._finish(ax, (self.step, self.quantity), legend)
        _lift_apart(self.names_)
        return self

    def _draw_rounds(self, ax: Axes) -> None:
        best = int(np.argmin([trace[-1] for trace in self.traces]))
        self.lines_ = []
        for i, trace in enumerate(self.traces):
            style: dict[str, Any] = {"color": OUTLIERS, "linewidth": 0.8, "zorder": 1}
            label = "other starts" if i == (best == 0) else "_nolegend_"
            if i == best:
                style = {"color": colour(0), "linewidth": 1.8, "zorder": 2}
                label = "best start" if len(self.traces) > 1 else "fit"
                style["marker"] = "o" if trace.size <= MOST_DOTS else ""
            line = ax.plot(np.arange(trace.size), trace, ms=4, label=label, **style)
            self.lines_.extend(line)
        values = np.concatenate([*self.traces])
        # An exact fit may end at zero, which no logarithm can show.
        if values.min() > 0 and values.max() > WIDE * values.min():
            ax.set_yscale("log")

    def _draw_moves(self, ax: Axes) -> None:
        assert self.tried is not None
        assert self.accepted is not None
        taken, moves = self.accepted, np.arange(1.0, self.tried.size + 1)
        style: dict[str, Any] = {"color": colour(0), "linewidth": 1.4, "zorder": 1}
        self.lines_ = []
        for first, trace in zip([0, *self.begins], self.traces, strict=True):
            steps = first + np.arange(float(trace.size))
            steps[0] += 0.5 if first else 0.0  # where the search before ended
            told = "_nolegend_" if first else "gain so far"
            self.lines_ += ax.step(steps, trace, where="post", label=told, **style)
        kept = np.append(0.0, moves), np.append(0.0, np.concatenate(self.traces))
        if self.quantity == NATS:
            # Fewer nats decide nothing: rounding must not fill the picture.
            kept = np.append(kept[0], [0.0, 0.0]), np.append(kept[1], [-REGIME_GAIN, REGIME_GAIN])
        frame = Frame(kept, (moves[~taken], self.tried[~taken]), DOWN)
        told = "taken" if taken.any() else "_nolegend_"
        dots = ax.scatter(
            moves[taken], self.tried[taken], color=colour(0), s=36, label=told, zorder=2
        )
        self.accepted_ = [dots]
        if not taken.all():
            places = moves[~taken], self.tried[~taken]
            far = "move", "left, far below"
            self.rejected_ = draw_outliers(ax, *places, frame, 60, "left", far)
        dotted: dict[str, Any] = {
            "color": NEUTRAL,
            "linewidth": 0.8,
            "linestyle": ":",
            "zorder": 0.5,
        }
        for i, after in enumerate(self.begins):
            told = "another search begins" if i == 0 else "_nolegend_"
            self.begins_.append(ax.axvline(after + 0.5, label=told, **dotted))
        frame.apply(ax)
        ax.set_ylim(top=ax.get_ylim()[1] + TOP * float(np.ptp(ax.get_ylim())))
        named = np.flatnonzero(taken)
        style = {"textcoords": "offset points", "fontsize": "small", "color": NEUTRAL}
        for i in named.tolist() if named.size <= MOST_NAMES else []:
            # To the right of the last moves is the legend.
            late = moves[i] > moves.size / 2
            side: dict[str, Any] = {"xytext": (-3, 8), "ha": "left"}
            side = {"xytext": (3, 8), "ha": "right"} if late else side
            name = ax.annotate(self.moves[i], (moves[i], self.tried[i]), **style, **side)
            name.set_bbox({"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5})
            self.names_.append(name)


def _lift_apart(names: Sequence[Any]) -> None:
    """Move labels upwards until none covers another."""
    if len(names) < 2:
        return
    names[0].figure.draw_without_rendering()  # the layout decides where they are
    placed = list[Any]()
    for name in names:
        while any(name.get_window_extent().overlaps(other) for other in placed):
            across, up = name.get_position()
            name.set_position((across, up + LIFT))
        placed.append(name.get_window_extent())
