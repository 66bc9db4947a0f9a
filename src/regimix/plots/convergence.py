"""ConvergenceDisplay: how a fit got where it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from regimix.errors import ParameterError
from regimix.plots.palette import NEUTRAL, OUTLIERS, colour
from regimix.plots.rows import find_mixture, last_step
from regimix.plots.style import Frame, add_legend, begin, draw_outliers, label_axes
from regimix.trimmed.ilts import TrimmedFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regimix.result.mixture import Mixture

__all__ = ["ConvergenceDisplay"]

Floats = NDArray[np.float64]

# A trace that spans more than this factor is drawn on a logarithmic scale.
WIDE = 20.0
# Moves that were left may stretch the plot by this share of the score, downwards mostly.
ROOM = 0.25
# Rounds that can each have a dot.
MOST_DOTS = 60
# So many accepted moves can carry their names without hiding each other.
MOST_NAMES = 6
# Room above the last move for its name, as a share of the axis.
TOP = 0.06
SUM_OF_SQUARES = "trimmed sum of squares"


class ConvergenceDisplay:
    """The objective of trimmed fits round by round, or the score of a search move by move.

    Of several trimmed fits the one that ended lowest stands out. Of a search, the line is the score
    of the model so far; a dot is a move that was taken, a cross the score that a move would have
    led to which was left, and an arrow at the edge one that would have lost far more.

    Parameters
    ----------
    traces : sequence of ndarray
        One series of values for each fit, at the start and after each step.
    tried : ndarray of shape (k,), optional
        Of a search: the score that each move led or would have led to; minus infinity if it
        proposed nothing.
    accepted : ndarray of shape (k,), bool, optional
        Whether it was taken.
    moves : sequence of str, optional
        What it was.
    step, quantity : str
        What the axes show.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    lines_ : list of artists, one for each trace
    accepted_, rejected_ : list of artists
    """

    def __init__(
        self,
        *,
        traces: Sequence[Floats],
        tried: Floats | None = None,
        accepted: NDArray[np.bool_] | None = None,
        moves: Sequence[str] = (),
        step: str = "round",
        quantity: str = SUM_OF_SQUARES,
    ) -> None:
        self.traces = traces
        self.tried = tried
        self.accepted = accepted
        self.moves = moves
        self.step = step
        self.quantity = quantity

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Plot how a fitted estimator got there.

        Parameters
        ----------
        estimator : MixedLinearRegression, TrimmedRegressor or TrimmedEstimator
            Or a pipeline that ends with one.
        X, y : ignored
            The trace was recorded at the fit; they are here for the convention.
        ax : matplotlib Axes, optional
        **options
            See `plot`.
        """
        mixture = find_mixture(estimator)
        if mixture is not None:
            return cls.from_mixture(mixture, X, y, ax=ax, **options)
        last = last_step(estimator)
        trace = getattr(last, "objective_path_", getattr(last, "objective_", None))
        if trace is None or np.ndim(trace) != 1:
            raise ParameterError(
                f"this {type(last).__name__} has recorded no rounds. Pass a fitted "
                "MixedLinearRegression or TrimmedEstimator, or use from_fits with what ilts or "
                "gd_ilts returned."
            )
        mean = hasattr(last, "losses_")
        quantity = "mean loss of the kept rows" if mean else SUM_OF_SQUARES
        display = cls(traces=[np.asarray(trace, dtype=np.float64)], quantity=quantity)
        return display.plot(ax, **options)

    @classmethod
    def from_mixture(
        cls,
        mixture: Mixture,
        X: Any = None,  # noqa: ARG003 the convention of displays
        y: Any = None,  # noqa: ARG003
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Plot the moves of the search that found a mixture; see `from_estimator`."""
        if not mixture.attempts:
            raise ParameterError(
                "this mixture remembers no moves: none was tried, or it was read from a file that "
                "does not keep them."
            )
        gain = np.array([attempt.gain for attempt in mixture.attempts])
        accepted = np.array([attempt.accepted for attempt in mixture.attempts])
        # Every search begins with the background alone, whose score is zero.
        score, before = np.zeros(gain.size + 1), np.zeros(gain.size)
        for i, move in enumerate(attempt.move for attempt in mixture.attempts):
            again = i > 0 and move == "first" != mixture.attempts[i - 1].move
            before[i] = 0.0 if again else score[i]
            score[i + 1] = before[i] + (gain[i] if accepted[i] else 0.0)
        net = mixture.settings.search == "net"
        display = cls(
            traces=[score],
            tried=before + gain,
            accepted=accepted,
            moves=[f"{attempt.move}: {attempt.source}" for attempt in mixture.attempts],
            step="component tried" if net else "move tried",
            quantity="share of the rows explained" if net else "score of the model in nats",
        )
        return display.plot(ax, **options)

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
        """Draw the traces.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        legend : bool, default=True

        Returns
        -------
        self
        """
        ax = begin(ax, (6.4, 4.0))
        self.accepted_: list[Any] = []
        self.rejected_: list[Any] = []
        if self.tried is None:
            self._draw_rounds(ax)
        else:
            self._draw_moves(ax)
        ax.locator_params(axis="x", integer=True)
        label_axes(ax, self.step, self.quantity)
        add_legend(ax, legend and ax.get_legend_handles_labels()[1] != ["fit"])
        self.ax_, self.figure_ = ax, ax.figure
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
        score, taken = self.traces[0], self.accepted
        steps = np.arange(score.size)
        style: dict[str, Any] = {"color": colour(0), "linewidth": 1.4, "zorder": 1}
        self.lines_ = ax.step(steps, score, where="post", label="score so far", **style)
        moves = steps[1:].astype(np.float64)
        frame = Frame((steps.astype(float), score), (moves[~taken], self.tried[~taken]), ROOM)
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
        for i in named.tolist() if named.size <= MOST_NAMES else []:
            name = ax.annotate(
                self.moves[i],
                (moves[i], self.tried[i]),
                xytext=(-3, 8),
                textcoords="offset points",
                fontsize="small",
                color=NEUTRAL,
            )
            name.set_bbox({"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5})
