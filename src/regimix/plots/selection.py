"""SelectionDisplay: why this number of regimes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from regimix.errors import ParameterError
from regimix.plots.palette import NEUTRAL, colour, marker
from regimix.plots.rows import mixture_of
from regimix.plots.style import add_legend, begin, label_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regimix.result.mixture import Mixture

__all__ = ["SelectionDisplay"]

Floats = NDArray[np.float64]

# Differences below this are shown as they are, larger ones by their logarithm: ten units of
# log-likelihood are strong evidence, and a count that is quite wrong costs thousands.
LINEAR = 10.0
# More counts than this cannot all have a tick of their own.
MOST_TICKS = 20


class SelectionDisplay:
    """Evidence, BIC and ICL for each number of regimes, that of the model marked.

    The three have different zeros and directions. Each is shown as what is lost against its own
    best count, in units of log-likelihood (for BIC and ICL: half their difference), so zero is best
    and lower is worse. Differences beyond ten are on a logarithmic scale.

    The search decides by evidence, of which every regime costs 3 nats: the highest is chosen.

    Parameters
    ----------
    n_components : ndarray of shape (k,), int
        The numbers of regimes that were tried.
    evidence, bic, icl : ndarray of shape (k,)
        Of evidence more is better, of the others less; NaN where not known.
    chosen : int
        The number of regimes of the model.
    asked : int, optional
        The number that was asked for, if one was: it was not chosen then.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
    lines_ : dict of str to artist
        One for each criterion.
    chosen_ : artist
    """

    def __init__(
        self,
        *,
        n_components: NDArray[np.int64],
        evidence: Floats,
        bic: Floats,
        icl: Floats,
        chosen: int,
        asked: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.evidence = evidence
        self.bic = bic
        self.icl = icl
        self.chosen = chosen
        self.asked = asked

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Plot how a fitted estimator chose.

        Parameters
        ----------
        estimator : MixedLinearRegression or a pipeline that ends with one
        X, y : ignored
            The choice was made at the fit; they are here for the convention.
        ax : matplotlib Axes, optional
        **options
            See `plot`.
        """
        return cls.from_mixture(mixture_of(estimator), X, y, ax=ax, **options)

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
        """Plot how the number of regimes of a mixture was chosen; see `from_estimator`."""
        path = mixture.selection
        if path is None:
            raise ParameterError(
                "this fit kept no selection path: its number of regimes was given, the search does "
                'not weigh several, or it was read from a file. Fit with n_components="auto" and '
                'search="auto".'
            )
        display = cls(
            n_components=np.asarray(path.n_components),
            evidence=np.asarray(path.evidence, dtype=np.float64),
            bic=np.asarray(path.bic, dtype=np.float64),
            icl=np.asarray(path.icl, dtype=np.float64),
            chosen=int(path.chosen),
            asked=mixture.settings.n_components,
        )
        return display.plot(ax, **options)

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Self:
        """Draw the three criteria.

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
        label_axes(ax, "number of regimes", "below the best (log-likelihood)")
        add_legend(ax, legend)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _origin(self) -> str:
        """Say where the number of regimes comes from."""
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
