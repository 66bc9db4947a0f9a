"""How the rows of a regime lie around it: against the prediction, and against the normal law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from regimix.report.axes import axes
from regimix.report.rows import Rows, sample
from regimix.report.svg import Html, Scale, marks, tag
from regimix.report.terms import Terms
from regimix.report.words import percent, regime

__all__ = ["Panel", "panels"]

Floats = NDArray[np.float64]

MOST_POINTS, MOST_QUANTILES = 500, 120
FEWEST_ROWS = 5
SIZE = (440.0, 250.0)
# Share of a normal law beyond two deviations, and what of it, in units of its own uncertainty,
# chance does not explain.
BEYOND_TWO, STRIKING = 0.0455, 3.0


@dataclass(frozen=True)
class Panel:
    """The two pictures of one regime, and what they say."""

    name: str
    words: str
    residuals: Html
    quantiles: Html


def panels(rows: Rows, terms: Terms) -> list[Panel]:
    """Draw the residuals of every regime that has some rows."""
    drawn = []
    for j in range(terms.mixture.n_components):
        own = rows.of_regime(j)
        distance = rows.distance[own]
        finite = np.isfinite(distance)
        if np.count_nonzero(finite) >= FEWEST_ROWS and terms.mixture.scale[j] > 0:
            shown = sample(own[finite], MOST_POINTS)
            name = regime(j).capitalize()
            drawn.append(
                Panel(
                    name=name,
                    words=_say(distance[finite]),
                    residuals=_against(
                        rows.expected[shown], rows.distance[shown], j, (name, terms.target)
                    ),
                    quantiles=_quantiles(np.sort(distance[finite]), j, name),
                )
            )
    return drawn


def _say(distance: Floats) -> str:
    """Compare the tails with those of a normal law."""
    share = float(np.mean(np.abs(distance) > 2))
    excess = (share - BEYOND_TWO) / np.sqrt(BEYOND_TWO * (1 - BEYOND_TWO) / distance.size)
    verdict = "chance explains the difference"
    if abs(excess) > STRIKING:
        verdict = f"the noise has {'heavier' if excess > 0 else 'lighter'} tails"
    return (
        f"{percent(share)} of the rows are more than two deviations off; a normal law would have "
        f"{percent(BEYOND_TWO)}, and {verdict}."
    )


def _limit(values: Floats) -> float:
    return 1.06 * max(3.0, float(np.abs(values).max()))


def _against(x: Floats, y: Floats, index: int, names: tuple[str, str]) -> Html:
    low, high = float(x.min()), float(x.max())
    pad = 0.03 * (high - low) or 0.05 * abs(high) or 1.0
    limit = _limit(y)
    labels = (f"expected {names[1]}", "off by, in deviations")
    across, up, grid = axes((low - pad, high + pad), (-limit, limit), labels, SIZE)
    zero = tag("line", class_="zero", x1=across.start, x2=across.end, y1=up(0.0), y2=up(0.0))
    dots = marks(across.many(x), up.many(y), index, 2.2)
    return _picture(f"{names[0]}: residuals against the expected {names[1]}", grid, zero, dots)


def _quantiles(ordered: Floats, index: int, name: str) -> Html:
    n = ordered.size
    # Every row of the tails, and some of the crowded middle.
    place = np.arange(n)
    if n > MOST_QUANTILES:
        middle = np.linspace(0, n - 1, MOST_QUANTILES - 40)
        place = np.unique(np.r_[place[:20], middle.astype(int), place[-20:]])
    normal = ndtri((place + 0.5) / n)
    observed = ordered[place]
    limit = _limit(np.r_[normal, observed])
    labels = ("if the noise were normal", "off by, in deviations")
    across, up, grid = axes((-limit, limit), (-limit, limit), labels, SIZE)
    diagonal = _diagonal(across, up, limit)
    dots = marks(across.many(normal), up.many(observed), index, 2.2)
    return _picture(
        f"{name}: quantiles of the residuals against the normal law", grid, diagonal, dots
    )


def _diagonal(across: Scale, up: Scale, limit: float) -> Html:
    ends = {"x1": across(-limit), "x2": across(limit), "y1": up(-limit), "y2": up(limit)}
    return tag("line", class_="zero", **ends)


def _picture(title: str, *parts: Html) -> Html:
    size = f"0 0 {SIZE[0]:g} {SIZE[1]:g}"
    return tag("svg", tag("title", title), *parts, class_="chart", viewbox=size, role="img")
