"""Charts that keep their text readable at any width: horizontal places are shares of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regimix.report.svg import Html, Scale, marks, tag, tick_labels, ticks
from regimix.report.terms import Terms
from regimix.report.words import number, regime
from regimix.search.selection import Attempt

__all__ = ["MOST_FOREST", "convergence", "forest", "path"]

Floats = NDArray[np.float64]

# Features of the forest: more belong into a table.
MOST_FOREST = 12
# Pixels from one regime to the next, and for the name of a feature.
LANE, NAME = 12, 26
# Pixels that a label needs.
LABEL = 17
# Attempts that a picture can tell apart.
MOST_ATTEMPTS = 150


def _at(share: float) -> str:
    return f"{100 * share:.2f}%"


def _spot(share: float, y: float, *inside: Html) -> Html:
    """Place marks, which are drawn in pixels, at a share of the width."""
    return tag("svg", *inside, x=_at(share), y=y, overflow="visible")


def _svg(title: str, height: float, *parts: Html, name: str = "") -> Html:
    label = {"class_": f"chart fluid {name}".strip(), "role": "img", "width": "100%"}
    return tag("svg", tag("title", title), *parts, height=float(height), **label)


def forest(terms: Terms) -> Html:
    """Draw the effects of the leading features in every regime, with their intervals."""
    mixture, features = terms.mixture, terms.order[:MOST_FOREST]
    low, high = _spread(terms)
    shown = [*low[:, features].ravel().tolist(), *high[:, features].ravel().tolist(), 0.0]
    scale = _padded(min(shown), max(shown))
    step = NAME + LANE * mixture.n_components + 10
    bottom = step * features.size + 6
    drawn = _columns(scale, bottom)
    for row, feature in enumerate(features):
        top = row * step
        drawn.append(tag("text", terms.name(int(feature)), class_="name", x=0, y=top + 18.0))
        if row:
            rule = tag("line", x1="0", x2="100%", y1=top + 0.5, y2=top + 0.5)
            drawn.append(tag("g", rule, class_="grid"))
        for j in range(mixture.n_components):
            y = float(top + NAME + LANE * (j + 0.5))
            ends = float(low[j, feature]), float(high[j, feature])
            drawn.append(_whisker(scale, y, ends, float(terms.effects[j, feature]), j))
    title = f"Change of {terms.target} for one deviation of a feature, in each regime"
    return _svg(title, bottom + 26, *drawn)


def _spread(terms: Terms) -> tuple[Floats, Floats]:
    bounds = terms.bounds
    if bounds is None:
        return terms.effects, terms.effects
    d = terms.effects.shape[1]
    ends = bounds[:, :d] * terms.deviation[:, None]
    known = np.isfinite(ends).all(axis=2)
    return (
        np.where(known, ends[..., 0], terms.effects),
        np.where(known, ends[..., 1], terms.effects),
    )


def _whisker(scale: Scale, y: float, ends: tuple[float, float], effect: float, index: int) -> Html:
    words = (
        f"{regime(index).capitalize()}: {number(effect)} ({number(ends[0])} to {number(ends[1])})"
    )
    line = tag(
        "line",
        class_=f"line r{index % 8}",
        x1=_at(scale(ends[0])),
        x2=_at(scale(ends[1])),
        y1=y,
        y2=y,
    )
    dot = marks([0.0], [0.0], index, 4.0)
    return tag("g", tag("title", words), line, _spot(scale(effect), y, dot))


def _padded(low: float, high: float) -> Scale:
    pad = 0.04 * (high - low) or 1.0
    return Scale(low - pad, high + pad, 0.0, 1.0)


def _columns(scale: Scale, bottom: float) -> list[Html]:
    """Draw vertical lines at round values, the one at zero darker."""
    drawn = []
    values = ticks(scale.low, scale.high, 7)
    for value, label in zip(values, tick_labels(values), strict=True):
        place = scale(value)
        kind = "zero" if abs(value) < 1e-12 * (scale.high - scale.low) else None
        drawn.append(tag("line", class_=kind, x1=_at(place), x2=_at(place), y1=0, y2=bottom))
        anchor = "start" if place < 0.03 else "end" if place > 0.97 else "middle"
        drawn.append(tag("text", label, x=_at(place), y=bottom + 18.0, text_anchor=anchor))
    return [tag("g", *drawn, class_="grid")]


@dataclass(frozen=True)
class _Log:
    """A scale for gains: logarithmic in size on both sides of zero."""

    low: float
    high: float
    top: float
    bottom: float

    def __call__(self, value: float) -> float:
        low, high, here = (_signed_log(v) for v in (self.low, self.high, value))
        return self.bottom - (here - low) / ((high - low) or 1.0) * (self.bottom - self.top)


def _signed_log(value: float) -> float:
    return math.copysign(math.log10(1 + abs(value)), value)


def convergence(attempts: Sequence[Attempt]) -> Html:
    """Draw what each attempt would have gained, and whether it was taken."""
    shown = [a for a in attempts if math.isfinite(a.gain)][:MOST_ATTEMPTS]
    if not shown:
        return Html("")
    gains = [a.gain for a in shown]
    height, base = 200.0, 184.0
    up = _Log(min(*gains, -1.0), max(*gains, 1.0), 14.0, base)
    drawn = []
    for value in _round_gains(up):
        kind = "zero" if not value else None
        drawn.append(tag("line", class_=kind, x1="0", x2="100%", y1=up(value), y2=up(value)))
        drawn.append(tag("text", number(value), x=0, y=up(value) - 4))
    for i, attempt in enumerate(shown):
        share = 0.09 + 0.88 * (i + 0.5) / len(shown)
        place, kind = up(attempt.gain), "taken" if attempt.accepted else "left"
        stem = tag(
            "line", class_=f"stem {kind}", x1=_at(share), x2=_at(share), y1=up(0.0), y2=place
        )
        ball = tag("circle", class_=kind, cx=_at(share), cy=place, r=5 if attempt.accepted else 3)
        words = f"{i + 1}. {attempt.move} ({attempt.source}): {number(attempt.gain)}, {kind}"
        drawn.append(tag("g", tag("title", words), stem, ball))
    return _svg("What each attempt would have gained", height, tag("g", *drawn, class_="grid"))


def _round_gains(up: _Log) -> list[float]:
    """Choose powers of ten on both sides of zero that leave room for their labels."""
    chosen = [0.0]
    for sign in (1, -1):
        places = [0.0]
        for power in range(12):
            value = sign * 10.0**power
            if up.low <= value <= up.high and abs(up(value) - up(places[-1])) > LABEL:
                places.append(value)
        chosen += places[1:]
    return chosen


def path(
    counts: Sequence[int], scores: Floats, marked: tuple[int, str], title: str, better: str
) -> Html:
    """Draw a score along the number of regimes, that of the model marked with a word."""
    known = [(k, s) for k, s in zip(counts, scores.tolist(), strict=True) if math.isfinite(s)]
    if not known:
        return Html("")
    low, high = min(s for _, s in known), max(s for _, s in known)
    up = Scale(low, high if high > low else low + 1, 150.0, 34.0)
    places = {k: (0.08 + 0.84 * (i + 0.5) / len(known)) for i, (k, _) in enumerate(known)}
    drawn = [tag("text", f"{title}, {better} is better", class_="name", x=0, y=14)]
    drawn.append(tag("line", x1="0", x2="100%", y1=166, y2=166))
    for (k, s), (k2, s2) in pairwise(known):
        ends = {"x1": _at(places[k]), "x2": _at(places[k2]), "y1": up(s), "y2": up(s2)}
        drawn.append(tag("line", class_="trace", **ends))
    for k, s in known:
        here = k == marked[0]
        words = tag("title", f"{k}: {number(s)}{f' ({marked[1]})' * here}")
        kind = "taken" if here else "left"
        drawn.append(
            tag("circle", words, class_=kind, cx=_at(places[k]), cy=up(s), r=6 if here else 4)
        )
        label = tag(
            "text",
            k,
            class_="name" if here else None,
            x=_at(places[k]),
            y=184,
            text_anchor="middle",
        )
        drawn.append(label)
    return _svg(f"{title} by number of regimes", 192, tag("g", *drawn, class_="grid"))
