"""One look for all figures, written as SVG that changes only when the picture does."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.experiment import Experiment
from lab.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "GREY",
    "REFERENCE",
    "label",
    "level",
    "panels",
    "ranks",
    "to_figure",
    "to_svg",
]

# Okabe and Ito's palette: colour-blind readers can distinguish it, also in grey.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#000000")
GREY = "#999999"
WIDTH, HEIGHT = 8.0, 3.6
# Axes that span less than this factor have their ticks written out.
FEW_DECADES = 60.0

# How lines that were not measured are drawn.
REFERENCE: dict[str, Any] = {"color": "#666666", "linewidth": 0.8, "linestyle": "--"}

# Typed with Any because matplotlib's own types list every name of a setting.
_STYLE: dict[Any, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.markersize": 4,
    "svg.fonttype": "none",
    "svg.hashsalt": "regimix",
}


def to_figure(experiment: Experiment, table: Table) -> Figure:
    """Draw an experiment's figure."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        experiment.draw(table, figure)
    return figure


def to_svg(experiment: Experiment, table: Table) -> bytes:
    """Draw an experiment's figure as SVG."""
    import matplotlib as mpl

    file = io.BytesIO()
    figure = to_figure(experiment, table)
    with mpl.rc_context(_STYLE):
        figure.savefig(file, format="svg", dpi=84, metadata={"Date": None, "Creator": None})
    return file.getvalue()


def panels(figure: Figure, count: int, **options: Any) -> list[Axes]:
    """Make axes side by side."""
    return list(figure.subplots(1, count, squeeze=False, **options)[0])


def label(axes: Axes, title: str, x: str, y: str, *, log: str = "") -> None:
    """Name a panel and its axes; ``log`` names the logarithmic ones."""
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    (left, low), (right, high) = axes.dataLim.get_points().tolist()
    # A panel in which nothing could be drawn has no logarithms either.
    if not np.isfinite([left, low, right, high]).all():
        return
    if "x" in log:
        axes.set_xscale("log")
        _plain_ticks(axes.xaxis, left, right)
    if "y" in log:
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis, low, high)


def _plain_ticks(axis: Axis, low: float, high: float) -> None:
    """Write out 1, 2, 5, 10, ... where powers of ten alone would leave an axis almost bare."""
    if low > 0 and high < FEW_DECADES * low:
        from matplotlib.ticker import LogLocator, NullLocator

        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axis.set_minor_locator(NullLocator())


def level(axes: Axes, value: float, text: str) -> None:
    """Draw a thin horizontal line with a word on it."""
    axes.axhline(value, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    axes.annotate(
        text,
        (0.01, value),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2),
        textcoords="offset points",
        color="#666666",
        fontsize=8,
    )


def ranks(axes: Axes, values: Iterable[float]) -> None:
    """Put ticks at the values that were measured, and nowhere else."""
    chosen = sorted(set(values))
    axes.set_xticks(chosen, [f"{value:g}" for value in chosen])
    axes.minorticks_off()
