"""The charts of a page as SVG, which needs no plotting library and follows the page's colours.

Tags that escape what they hold, scales, axes and marks; then the pictures that no script redraws.
Those without a frame keep their text readable at any width: horizontal places are shares of it.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from regimix.report.rows import Rows, Terms, sample
from regimix.result.answer import law_name, quantiles
from regimix.search.selection import Attempt
from regimix.words import END, NAME, measured, number, percent, tick_labels

Floats = NDArray[np.float64]
Span = tuple[float, float]

# Shapes tell regimes apart where colours cannot, in print and for the colour-blind: a path around
# the origin for a mark of radius one. An empty one is a dot: a line of no length with round ends.
SHAPES = (
    "",
    "m -.9 -.9 h 1.8 v 1.8 h -1.8 z",
    "m 0 -1.25 l 1.15 2.1 h -2.3 z",
    "m 0 -1.35 l 1.2 1.35 l -1.2 1.35 l -1.2 -1.35 z",
    "m 0 1.25 l 1.15 -2.1 h -2.3 z",
    "m -.4 -1.2 h .8 v .8 h .8 v .8 h -.8 v .8 h -.8 v -.8 h -.8 v -.8 h .8 z",
    "m 0 -1.2 l 1.15 .85 l -.45 1.3 h -1.4 l -.45 -1.3 z",
    "m -.6 -1.1 h 1.2 l .6 1.1 l -.6 1.1 h -1.2 l -.6 -1.1 z",
)
CROSS = "m -1 -1 l 2 2 m 0 -2 l -2 2"
# Attributes of SVG that are not in lower case.
CASED = {"viewbox": "viewBox"}
# Values that differ by less than this share of their size need one tick only.
FINEST = 1e-9
# Outliers further from the frame of the other rows than this share of it are drawn at its edge.
REACH = 1 / 3
PADDING = 0.04
TOP, RIGHT, BOTTOM, NARROWEST = 30.0, 14.0, 46.0, 44.0
# Pixels: of a digit, between ticks.
DIGIT, ACROSS, UP = 7.2, 80, 60
# Features of the forest: more belong into a table.
MOST_FOREST = 12
# Fewer numbers of regimes than this can all be written below their points.
MOST_NUMBERS = 12
# Pixels from one regime of the forest to the next, for the name of a feature, for a label.
LANE, NAME_HEIGHT, LABEL = 12, 26, 17
# Of more regimes than this, narrower lanes.
MANY_LANES, NARROW_LANE = 5, 9
# Attempts that a picture can tell apart.
MOST_ATTEMPTS = 150
# Rows and quantiles in the pictures of one regime, and of all together: they weigh on the page.
MOST_POINTS, MOST_QUANTILES, ALL_POINTS, ALL_QUANTILES = 500, 120, 1500, 900
FEWEST_ROWS = 5
PANEL = (440.0, 250.0)
# By how much a share may be off, in units of its own uncertainty, before chance is no explanation.
STRIKING = 3.0


# --- tags -----------------------------------------------------------------------------------------


class Html(str):
    """Text that is markup already; everything else is escaped."""

    def __html__(self) -> Html:
        return self


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Write an element; children and attributes are escaped, unless they are markup.

    An underscore in the name of an attribute stands for a hyphen, one at its end for nothing;
    attributes that are None are left out.
    """
    inside, given = "".join(map(_escaped, children)), ""
    for key, value in attributes.items():
        if value is not None:
            text = _short(value) if isinstance(value, float) else html.escape(str(value))
            given += f' {CASED.get(key, key.rstrip("_").replace("_", "-"))}="{text}"'
    return Html(f"<{name}{given}>{inside}</{name}>")


def _escaped(value: object) -> str:
    return value if isinstance(value, Html) else html.escape(str(value))


def prose(text: object) -> Html:
    """Write a sentence, the names in it set apart."""
    return Html(_escaped(text).replace(NAME, '<bdi class="name">').replace(END, "</bdi>"))


def _short(value: float) -> str:
    """Write a coordinate: tenths of a pixel are finer than any screen needs."""
    return f"{value:z.1f}".removesuffix(".0")


# --- marks ----------------------------------------------------------------------------------------


def shape(index: int, radius: float) -> str:
    """Write the path of a regime's mark, relative to where it stands; -1: an outlier."""
    parts = CROSS if index < 0 else SHAPES[(index + index // len(SHAPES)) % len(SHAPES)]
    if not parts:
        return "h0"
    words = (part if part.isalpha() else _short(float(part) * radius) for part in parts.split())
    # A letter or a minus sign parts two numbers as well as a space does.
    return re.sub(r" ?([a-z-]) ?", r"\1", " ".join(words))


def marks(x: Iterable[float], y: Iterable[float], index: int, radius: float) -> Html:
    """Draw the marks of one regime, -1 for outliers, as a single path."""
    form = shape(index, radius)
    places = (f"M{_short(a)} {_short(b)}{form}" for a, b in zip(x, y, strict=True))
    dot = form == "h0"
    kind = f"mark r{index % len(SHAPES)}{' dot' * dot}" if index >= 0 else "mark out"
    # A dot is as wide as its line.
    return tag("path", d="".join(places), class_=kind, stroke_width=2 * radius if dot else None)


def swatch(index: int) -> Html:
    """Draw one mark, to stand beside a name."""
    box = {"viewbox": "-8 -8 16 16", "aria_hidden": "true", "focusable": "false"}
    return tag("svg", marks([0.0], [0.0], index, 5.0), class_="swatch", **box)


def line(x1: object, y1: object, x2: object, y2: object, kind: str | None, *inside: Html) -> Html:
    """Draw a line between two places: pixels, or shares of the width."""
    return tag("line", *inside, class_=kind, x1=x1, y1=y1, x2=x2, y2=y2)


# --- axes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Map one value."""
        return float(self.many(value))

    def many(self, values: Any) -> Floats:
        """Map many values; what lies outside is held at the edge."""
        return np.asarray(np.interp(values, (self.low, self.high), (self.start, self.end)))


def ticks(low: float, high: float, most: int, values: Sequence[float] = ()) -> list[float]:
    """Choose round values within a range; or those that alone occur, if their labels fit."""
    span = high - low
    if len(values) > 1 and min(np.diff(values)) * most >= span:
        return list(values)
    if not (math.isfinite(span) and span > FINEST * max(abs(low), abs(high))):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    sizes = [size * power for size in (0.5, 1, 2, 5, 10)]
    fits = next(i for i in range(1, 5) if sizes[i] * most >= span * (1 - 1e-9))
    # One tick alone, as zero of a range around it, would not show the scale.
    for step in (sizes[fits], sizes[fits - 1]):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last > first:
            break
    return [k * step for k in range(first, last + 1)]


def frame(inner: Floats, outer: Floats) -> tuple[float, float]:
    """Find the range of an axis: all of the inner values, and the outer ones that are not far."""
    # What has no extent cannot be flattened.
    inner = inner if inner.size and np.ptp(inner) > 0 else np.append(inner, outer)
    if not inner.size:
        return 0.0, 1.0
    low, high = float(inner.min()), float(inner.max())
    reach = REACH * (high - low)
    near = outer[(outer >= low - reach) & (outer <= high + reach)]
    if near.size:
        low, high = min(low, float(near.min())), max(high, float(near.max()))
    pad = PADDING * (high - low) or 0.05 * abs(high) or 1.0
    return low - pad, high + pad


def axes(
    x: Span, y: Span, names: tuple[str, str], size: Span, values: Sequence[float] = ()
) -> tuple[Scale, Scale, Html]:
    """Draw a quiet grid, with the names where they are read: the vertical one on top.

    ``values`` are those of the horizontal axis that alone occur, if they are few.
    """
    width, bottom = size[0], size[1] - BOTTOM
    rows = ticks(*y, max(3, int(size[1] // UP)))
    left = max(NARROWEST, 18 + DIGIT * max(map(len, tick_labels(rows))))
    right = width - RIGHT
    columns = ticks(*x, max(4, int((width - left) // ACROSS)), values)
    across, up = Scale(*x, left, right), Scale(*y, bottom, TOP)
    drawn = [tag("text", names[1], class_="name", x=2.0, y=14.0)]
    for value, label in zip(rows, tick_labels(rows), strict=True):
        place = up(value)
        drawn.append(line(left, place, right, place, None))
        drawn.append(tag("text", label, x=left - 8, y=place + 4, text_anchor="end"))
    for value, label in zip(columns, tick_labels(columns), strict=True):
        place = across(value)
        drawn.append(line(place, bottom, place, bottom + 5, None))
        drawn.append(tag("text", label, x=place, y=bottom + 19, text_anchor="middle"))
    drawn.append(tag("text", names[0], class_="name", x=right, y=bottom + 39, text_anchor="end"))
    return across, up, tag("g", *drawn, class_="grid")


def chart(title: str, size: tuple[float, float], *parts: Html, **attributes: str) -> Html:
    """Put the parts of a picture of fixed shape together."""
    box = {"viewbox": f"0 0 {size[0]:g} {size[1]:g}", "role": "img"} | attributes
    return tag("svg", tag("title", title), *parts, class_="chart", **box)


# --- pictures of any width ------------------------------------------------------------------------


def _at(share: float) -> str:
    return f"{100 * share:.2f}%"


def _fluid(title: str, height: float, *parts: Html) -> Html:
    label = {"class_": "chart fluid", "role": "img", "width": "100%"}
    return tag("svg", tag("title", title), *parts, height=float(height), **label)


def forest(terms: Terms) -> Html:
    """Draw the effects of the leading features in every regime, with their intervals."""
    m, features = terms.mixture.n_components, terms.order[:MOST_FOREST]
    low, high = terms.effect_bounds
    ends = np.concatenate([low[:, features].ravel(), high[:, features].ravel(), [0.0]])
    pad = 0.04 * float(np.ptp(ends)) or 1.0
    scale = Scale(float(ends.min()) - pad, float(ends.max()) + pad, 0.0, 1.0)
    lane = LANE if m <= MANY_LANES else NARROW_LANE
    step = NAME_HEIGHT + lane * m + 10
    bottom = step * features.size + 6
    drawn = [_columns(scale, bottom)]
    for row, feature in enumerate(features.tolist()):
        top = row * step
        drawn.append(tag("text", terms.name(feature), class_="name", x=0, y=top + 18.0))
        if row:
            rule = line("0", top + 0.5, "100%", top + 0.5, None)
            drawn.append(tag("g", rule, class_="grid"))
        for j in range(m):
            y = top + NAME_HEIGHT + lane * (j + 0.5)
            values = [float(part[j, feature]) for part in (terms.effects, low, high)]
            place, left, right = (_at(scale(value)) for value in values)
            shown = measured(values[0], (values[2] - values[1]) / 4, *values[1:])
            words = tag("title", f"Regime {j}: {shown[0]} ({shown[2]} to {shown[3]})")
            whisker = line(left, y, right, y, f"line r{j % 8}")
            # Marks are drawn in pixels, at a share of the width.
            spot = tag("svg", marks([0.0], [0.0], j, 4.0), x=place, y=y, overflow="visible")
            drawn.append(tag("g", words, whisker, spot, data_regime=j, data_pick=""))
    change = "one standard deviation" if terms.ranked else "one unit"
    title = f"Change of {terms.target} for {change} of a feature, in each regime"
    return _fluid(title, bottom + 26, *drawn)


def _columns(scale: Scale, bottom: float) -> Html:
    """Draw vertical lines at round values, the one at zero darker."""
    drawn = []
    values = ticks(scale.low, scale.high, 7)
    for value, label in zip(values, tick_labels(values), strict=True):
        place = scale(value)
        kind = "zero" if abs(value) < 1e-12 * (scale.high - scale.low) else None
        drawn.append(line(_at(place), 0, _at(place), bottom, kind))
        anchor = "start" if place < 0.03 else "end" if place > 0.97 else "middle"
        drawn.append(tag("text", label, x=_at(place), y=bottom + 18.0, text_anchor=anchor))
    return tag("g", *drawn, class_="grid")


def convergence(attempts: Sequence[Attempt]) -> Html:
    """Draw what each attempt would have gained, and whether it was taken."""
    # Numbers are those of all attempts, as the table lists them.
    shown = [(i, a) for i, a in enumerate(attempts, 1) if math.isfinite(a.gain)][:MOST_ATTEMPTS]
    if not shown:
        return Html("")
    gains = [a.gain for _, a in shown]
    low, high = min(*gains, -1.0), max(*gains, 1.0)
    up = Scale(_signed_log(low), _signed_log(high), 184.0, 14.0)
    zero, drawn = up(0.0), []
    for value in _round_gains(low, high, up):
        place = up(_signed_log(value))
        drawn.append(line("0", place, "100%", place, None if value else "zero"))
        drawn.append(tag("text", number(value), x=0, y=place - 4))
    for place_of, (i, attempt) in enumerate(shown):
        x = _at(0.09 + 0.88 * (place_of + 0.5) / len(shown))
        place, kind = up(_signed_log(attempt.gain)), "taken" if attempt.accepted else "left"
        stem = line(x, zero, x, place, f"stem {kind}")
        ball = tag("circle", class_=kind, cx=x, cy=place, r=5 if attempt.accepted else 3)
        words = f"{i}. {attempt.move} ({attempt.source}): {number(attempt.gain)}, {kind}"
        drawn.append(tag("g", tag("title", words), stem, ball))
    return _fluid("What each attempt would have gained", 200, tag("g", *drawn, class_="grid"))


def _signed_log(value: float) -> float:
    """Return the logarithm of the size, with the sign: gains and losses span powers of ten."""
    return math.copysign(math.log10(1 + abs(value)), value)


def _round_gains(low: float, high: float, up: Scale) -> list[float]:
    """Choose powers of ten on both sides of zero that leave space for their labels."""
    chosen = [0.0]
    for sign in (1, -1):
        last = up(0.0)
        for power in range(12):
            value = sign * 10.0**power
            place = up(_signed_log(value))
            if low <= value <= high and abs(place - last) > LABEL:
                chosen.append(value)
                last = place
    return chosen


def path(counts: Sequence[int], scores: Floats) -> list[dict[str, Any]]:
    """Place a score along the number of regimes, where it is known."""
    known = [(k, s) for k, s in zip(counts, scores.tolist(), strict=True) if math.isfinite(s)]
    low, high = (f((s for _, s in known), default=0.0) for f in (min, max))
    up = Scale(low, high if high > low else low + 1, 150.0, 34.0)
    return [
        {"count": k, "score": s, "x": _at(0.08 + 0.84 * (i + 0.5) / len(known)), "y": up(s)}
        for i, (k, s) in enumerate(known)
    ]


# --- residuals ------------------------------------------------------------------------------------


def panels(rows: Rows, terms: Terms) -> list[dict[str, Any]]:
    """Draw the residuals of every regime that has some rows, and say how heavy their tails are."""
    mixture, far, drawn = terms.mixture, rows.far, []
    law, means = law_name(mixture.noise_degrees), mixture.predict_components(rows.X)
    for j in range(mixture.n_components):
        there = np.isfinite(far.distance) & (rows.weights > 0)
        own = np.flatnonzero((rows.labels == j) & there)
        if own.size < FEWEST_ROWS or mixture.scale[j] <= 0:
            continue
        shown = sample(own, min(MOST_POINTS, ALL_POINTS // mixture.n_components))
        x, y = far.predicted[shown], far.distance[shown]
        pad = 0.03 * float(np.ptp(x)) or 0.05 * abs(float(x.max())) or 1.0
        ends = float(x.min()) - pad, float(x.max()) + pad
        title = f"Regime {j}: residuals against the predicted {terms.target}"
        against = _panel(title, f"predicted {terms.target}", x, y, j, ends)
        # Every row of the tails, and some of the crowded middle.
        place = np.arange(own.size)
        most = max(60, min(MOST_QUANTILES, ALL_QUANTILES // mixture.n_components))
        if own.size > most:
            middle = np.linspace(0, own.size - 1, most - 40)
            place = np.unique(np.r_[place[:20], middle.astype(int), place[-20:]])
        order = own[np.argsort(far.distance[own], kind="stable")][place]
        away = (rows.y - means[:, j]) / mixture.scale[j]
        weights = rows.weights * rows.belongs[:, j]
        fitted = quantiles(away, weights, mixture.noise_degrees)[order]
        title = f"Regime {j}: quantiles of the residuals against {law}"
        compared = _panel(title, f"quantile of {law}", fitted, far.distance[order], j)
        words = _tails(away, terms, weights)
        drawn.append({"index": j, "words": words, "charts": [against, compared]})
    return drawn


def _panel(
    title: str, name: str, x: Floats, y: Floats, index: int, ends: Span | None = None
) -> Html:
    """Draw residuals between ends, around zero; without ends, around the diagonal."""
    limit = 1.06 * max(3.0, float(np.abs(y if ends else np.append(x, y)).max()))
    first = 0.0 if ends else -limit
    ends = ends or (-limit, limit)
    across, up, grid = axes(ends, (-limit, limit), (name, "residual / noise"), PANEL)
    rule = line(across(ends[0]), up(first), across(ends[1]), up(-first), "zero")
    dots = marks(across.many(x), up.many(y), index, 2.2)
    # With the scales, the script can mark rows in the picture.
    scales = " ".join(f"{v:.12g}" for s in (across, up) for v in (s.low, s.high, s.start, s.end))
    key = "data_quantiles" if first else "data_against"
    return chart(title, PANEL, grid, rule, dots, **{key: scales})


def _tails(distance: Floats, terms: Terms, weights: Floats | None = None) -> str:
    """Compare the tails with those of the law that was fitted, by the weights of the rows."""
    mixture = terms.mixture
    weights = np.ones(distance.size) if weights is None else weights
    total = float(weights.sum())
    share, degrees = float(weights @ (np.abs(distance) > 2)) / total, mixture.noise_degrees
    beyond = 2 * float(stdtr(degrees, -2.0))
    # Repetitions are rows; of relative weights, the number of equal ones that average as well.
    relative = mixture.weighting == "importances"
    size = total**2 / float(weights @ weights) if relative else total
    excess = (share - beyond) / np.sqrt(beyond * (1 - beyond) / size)
    verdict = "chance may explain the difference"
    if abs(excess) > STRIKING:
        verdict = f"the noise has {'heavier' if excess > 0 else 'lighter'} tails"
    by = ["weights"] * relative + ["probabilities"] * (not mixture.fitted_by_label)
    counted = f", by their {' and '.join(by)}," if by else ""
    return (
        f"{percent(share)} of its rows{counted} are further off than twice the noise; of "
        f"{law_name(degrees)} {percent(beyond)} would be, and {verdict}."
    )
