"""Displays of a model: coefficients, the number of regimes, stability, and how it was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import Table
from regimix.errors import ParameterError, read_count
from regimix.plots.display import (
    SPREAD,
    Display,
    Frame,
    begin,
    begin_intervals,
    contrast,
    draw_intervals,
    draw_outliers,
    find_doubtful,
    find_mixture,
    last_step,
    mark,
    mixture_of,
    regime_name,
)
from regimix.plots.palette import NEUTRAL, OUTLIERS, colour, marker
from regimix.result.mixture import Mixture
from regimix.result.stability import BACK, numbers_found
from regimix.trimmed.ilts import TrimmedFit
from regimix.words import clean, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

MOST_FEATURES = 15
# Inches of a new figure: at least for a feature, and for each regime in it.
FEATURE_HEIGHT, REGIME_HEIGHT = 0.34, 0.12
INTERCEPT = "intercept"
# Differences below this are shown as they are, larger ones by their logarithm: ten units of
# log-likelihood are strong evidence, and a count that is quite wrong costs thousands.
LINEAR = 10.0
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
# Space above the last move for its name, as a share of the axis.
TOP = 0.06
SUM_OF_SQUARES = "trimmed sum of squares"


@dataclass(kw_only=True, eq=False, repr=False)
class CoefficientsDisplay(Display):
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
    making: ClassVar[tuple[str, ...]] = ("level",)

    @classmethod
    def _shown(cls, model: Any, X: Any, y: Any) -> Any:  # noqa: ARG003 - the convention
        mixture = mixture_of(model)
        deviation = None if mixture.rows is None else mixture.rows.deviation
        if X is not None:
            deviation = Table.read(X).values.std(axis=0, dtype=np.float64)
        return mixture, deviation

    @classmethod
    def _of(cls, shown: tuple[Mixture, Floats | None], level: float = 0.95) -> Self:
        mixture, deviation = shown
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
        max_features: int = MOST_FEATURES,
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
        size = contrast(self.coef) * (1.0 if self.deviation is None else self.deviation)
        most = read_count("max_features", max_features)
        self.order_ = np.argsort(-size, kind="stable")[:most]
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
        ax = begin_intervals(ax, names, max(FEATURE_HEIGHT, REGIME_HEIGHT * m))
        self.points_: list[Any] = []
        self.intervals_: list[Any] = []
        for j in range(m):
            style = mark(j, 30 if m <= 4 else 18) | {"label": regime_name(j, self.doubtful)}
            values = [part[j] for part in shown]
            points, lines = draw_intervals(ax, j, (j, m), values, 1.6, **style)
            self.points_.append(points)
            self.intervals_.append(lines)
        target = clean(self.target_name)
        what = f"change of {target} per standard deviation" if standardise else "coefficient"
        remark = f"{self.order_.size} of {d} features shown" if self.order_.size < d else ""
        return self._finish(ax, (f"{what}, {self.level:.0%} intervals", ""), legend, remark)


@dataclass(kw_only=True, eq=False, repr=False)
class SelectionDisplay(Display):
    """Evidence, BIC and ICL for each number of regimes, that of the model marked.

    The three have different zeros and directions. Each is shown as what is lost against its own
    best count, in units of log-likelihood (for BIC and ICL: half their difference), so zero is best
    and lower is worse. Differences beyond ten are on a logarithmic scale.

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

    @classmethod
    def _of(cls, shown: Mixture) -> Self:
        path = shown.selection
        if path is None:
            raise ParameterError(
                "this fit kept no selection path: its number of regimes was given, the search does "
                'not weigh several, or it was read from a file. Fit with n_components="auto" and '
                'search="auto".'
            )
        return cls(
            n_components=np.asarray(path.n_components),
            evidence=np.asarray(path.evidence, dtype=np.float64),
            bic=np.asarray(path.bic, dtype=np.float64),
            icl=np.asarray(path.icl, dtype=np.float64),
            chosen=int(path.chosen),
            asked=shown.settings.n_components,
            nothing=shown.found_nothing,
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
            (line,) = ax.plot(self.n_components, gain, label=name, **style)
            self.lines_[name] = line
        ax.set_yscale("symlog", linthresh=LINEAR)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        if self.n_components.size <= MOST_TICKS:
            ax.set_xticks(self.n_components)
        ax.margins(x=0.08)
        names = "number of regimes", "below the best (log-likelihood)"
        return self._finish(ax, names, legend)

    def _origin(self) -> str:
        """Say where the number of regimes comes from."""
        if self.nothing:
            return f"shown: {self.chosen} (the rows support none)"
        if self.asked is None:
            return f"chosen: {self.chosen}"
        if self.asked == self.chosen:
            return f"asked for: {self.chosen}"
        return f"found: {self.chosen} (asked for: {self.asked})"

    def _gains(self) -> dict[str, Floats]:
        """Bring the criteria to one scale: units of log-likelihood, zero is the best."""
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
    def _of(cls, shown: Mixture) -> Self:
        found = shown.resampled
        if found is None:
            raise ParameterError(
                "nothing is known about the stability of this fit. Call stability(X, y) of the "
                "estimator, or put what Mixture.stability returned into it (with_stability)."
            )
        return cls(jaccard=found.jaccard, counts=found.counts, doubtful=find_doubtful(shown))

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
    model so far has gained over the first, in nats; searches that follow begin again at zero. A
    dot is a move that was taken, a cross one that was rejected, where it would have led to, and an
    arrow at the edge one that would have lost far more.

    Attributes
    ----------
    lines_ : list of artists, one for each trace
    accepted_, rejected_ : list of artists
    """

    traces: Sequence[Floats]  #: one for each fit: values at the start and after each step
    tried: Floats | None = None  #: of a search: the score that each move led or would have led to
    accepted: NDArray[np.bool_] | None = None  #: whether it was taken
    moves: Sequence[str] = ()  #: what it was
    step: str = "round"
    quantity: str = SUM_OF_SQUARES

    @classmethod
    def _shown(cls, model: Any, X: Any, y: Any) -> Any:  # noqa: ARG003 - recorded at the fit
        return find_mixture(model) or last_step(model)

    @classmethod
    def _of(cls, shown: Any) -> Self:
        return cls._of_search(shown) if isinstance(shown, Mixture) else cls._of_trimmed(shown)

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
        # Every search begins with one model of most rows; scores are differences to its score.
        score, before = np.zeros(gain.size + 1), np.zeros(gain.size)
        for i, move in enumerate(attempt.move for attempt in mixture.attempts):
            again = i > 0 and move == "first" != mixture.attempts[i - 1].move
            before[i] = 0.0 if again else score[i]
            score[i + 1] = before[i] + (gain[i] if accepted[i] else 0.0)
        net = mixture.settings.search == "net"
        return cls(
            traces=[score],
            tried=before + gain,
            accepted=accepted,
            moves=[f"{attempt.move}: {attempt.source}" for attempt in mixture.attempts],
            step="component tried" if net else "move tried",
            quantity="share of the rows explained" if net else "nats gained over the first model",
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
        if self.tried is None:
            self._draw_rounds(ax)
        else:
            self._draw_moves(ax)
        ax.locator_params(axis="x", integer=True)
        legend = legend and ax.get_legend_handles_labels()[1] != ["fit"]
        return self._finish(ax, (self.step, self.quantity), legend)

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
        score, taken = self.traces[0], self.accepted
        steps = np.arange(score.size)
        style: dict[str, Any] = {"color": colour(0), "linewidth": 1.4, "zorder": 1}
        self.lines_ = ax.step(steps, score, where="post", label="gain so far", **style)
        moves = steps[1:].astype(np.float64)
        frame = Frame((steps.astype(float), score), (moves[~taken], self.tried[~taken]), DOWN)
        dots = ax.scatter(
            moves[taken], self.tried[taken], color=colour(0), s=36, label="taken", zorder=2
        )
        self.accepted_ = [dots]
        if not taken.all():
            places = moves[~taken], self.tried[~taken]
            self.rejected_ = draw_outliers(ax, *places, frame, 60, "left")
        frame.apply(ax)
        ax.set_ylim(top=ax.get_ylim()[1] + TOP * float(np.ptp(ax.get_ylim())))
        named = np.flatnonzero(taken)
        style = {"xytext": (-3, 8), "textcoords": "offset points", "fontsize": "small"}
        for i in named.tolist() if named.size <= MOST_NAMES else []:
            name = ax.annotate(self.moves[i], (moves[i], self.tried[i]), color=NEUTRAL, **style)
            name.set_bbox({"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5})
