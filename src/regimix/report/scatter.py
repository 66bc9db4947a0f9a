"""The scatter plot: its data, drawn once here and again by the page for another feature."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.report.charts import Html, Scale, axes, chart, frame, line, marks, shape, tag
from regimix.report.rows import Rows, Terms, sample
from regimix.result.answer import bulk, few_values, lines_over, typical_row
from regimix.words import clean, count, fixed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Span = tuple[float, float]

MOST_POINTS, MOST_OUTLIERS, FEWEST_OUTLIERS = 3000, 2000, 200
# All numbers of the plot together: they are most of the page, which must stay below a megabyte.
MOST_NUMBERS = 26_000
# Features of which outliers that are listed, but not drawn, have the values too.
MOST_BESIDE = 4
# Longest keys to try, and what all of them may weigh: of rows that are drawn, and of outliers.
LONGEST_KEYS, MOST_KEY_BYTES = (64, 24, 12, 6), (60_000, 140_000)
# The width that the page gives it on a large screen: the script then moves nothing.
WIDTH, HEIGHT = 944.0, 440.0
# Rows that scatter by this many radii of a mark hide the line among them.
BROAD = 2.5


def compact(values: Floats, span: float) -> list[float | int | None]:
    """Round to what a plot of this span shows, so that a page of numbers stays small."""
    digits = 4 - int(np.floor(np.log10(span))) if span > 0 else 6
    rounded = np.round(np.asarray(values, dtype=np.float64), min(max(digits, -300), 300))
    return [
        None if not np.isfinite(value) else int(value) if value == int(value) else value
        for value in rounded.tolist()
    ]


@dataclass(frozen=True, eq=False)
class View:
    """The rows and the lines over one feature, and the frames that hold them."""

    name: str
    x: Floats
    adjusted: Floats  # responses as if the other features were at their medians, by each own regime
    lines: Floats  # (m, 2), intercept and slope, the other features at their medians
    reach: Floats  # (m, 2), from where to where the line of each regime is drawn
    frame: Span
    adjusted_frame: Span
    y_frame: Span

    @property
    def values(self) -> list[float]:
        """The values of the feature in the frame, if they are few and whole."""
        values = few_values(self.x)
        seen = values[(values >= self.frame[0]) & (values <= self.frame[1])].tolist()
        return seen if all(value == round(value) for value in seen) else []


@dataclass(frozen=True, eq=False)
class Cloud:
    """The rows of the scatter plot: those of the regimes, then the outliers."""

    rows: Rows
    terms: Terms
    points: Ints  # positions of the rows shown
    inside: int  # how many of them belong to a regime
    radius: float  # of the marks

    @classmethod
    def of(cls, rows: Rows, terms: Terms, most: int | None = None) -> Cloud:
        """Draw a sample of at most so many rows, by default what a page can hold."""
        most = most or MOST_NUMBERS // (terms.order.size + 3)
        inliers, outliers = np.flatnonzero(rows.labels >= 0), np.flatnonzero(rows.labels < 0)
        # Outliers in proportion, but never so few that they are missed.
        part = max(min(FEWEST_OUTLIERS, most // 5), round(most * outliers.size / rows.n))
        outliers = sample(outliers, min(MOST_OUTLIERS, max(part, most - inliers.size)))
        inliers = sample(inliers, min(MOST_POINTS, most - outliers.size))
        inliers = inliers[np.argsort(rows.labels[inliers], kind="stable")]
        k = inliers.size + outliers.size
        radius = 3.8 if k < 400 else 3.0 if k < 1500 else 2.2
        return cls(rows, terms, np.concatenate([inliers, outliers]), int(inliers.size), radius)

    @property
    def sampled(self) -> str:
        """Say what is left out; nothing if nothing is."""
        rows, shown = self.rows, int(self.points.size)
        if shown == rows.of:
            return ""
        said = f"A random sample of {fixed(shown, 0)} of {count(rows.of, 'row')}"
        if rows.of > rows.n and rows.counts is None:
            said += f" of the fit, which kept an excerpt of {fixed(rows.n, 0)}"
        total = int(np.count_nonzero(rows.labels < 0))
        if shown < rows.n and total:
            some = f"{fixed(shown - self.inside, 0)} of {count(total, 'outlier')}"
            said += f"; {some} {'is' if shown - self.inside == 1 else 'are'} among them"
        return f"{said}."

    @cached_property
    def on_page(self) -> Ints:
        """Positions of all rows that the page holds: those drawn, then outliers only listed."""
        listed = self.rows.outliers[:MOST_OUTLIERS]
        return np.append(self.points, listed[~np.isin(listed, self.points)])

    @property
    def listed(self) -> str:
        """Say which rows the page holds, for the table of rows."""
        rows, held = self.rows, int(self.on_page.size)
        if held == rows.of:
            return f"All {count(held, 'row')} are on this page." if held > 1 else ""
        outliers, total = held - self.inside, int(np.count_nonzero(rows.labels < 0))
        which = f"all {count(total, 'outlier')}"
        if outliers < total:
            most = min(MOST_OUTLIERS, total)
            which = f"{fixed(outliers, 0)} of {count(total, 'outlier')}, the farthest {most:,}"
            which += " among them"
        others = f"{fixed(self.inside, 0)} of {fixed(rows.n - total, 0)} others, drawn at random"
        if self.inside == rows.n - total:
            others = f"all {fixed(self.inside, 0)} others"
        said = f"{fixed(held, 0)} of {count(rows.of, 'row')} are on this page"
        if not total and rows.of == rows.n:
            return f"{said}, drawn at random; none of the {fixed(rows.n, 0)} is an outlier."
        if rows.of > rows.n:
            # What is called all must not be taken for all of the table.
            excerpt = f"an excerpt of {fixed(rows.n, 0)} that was drawn at random"
            return f"{said}, from {excerpt}; of the excerpt {which}, and {others}."
        return f"{said}: {which}, and {others}."

    @property
    def hides_some(self) -> bool:
        """Whether a row lies beyond the frame of some view."""
        y = self.rows.y[self.points]
        framed = [(y, view.y_frame) for view in self.views]
        framed += [(view.x, view.frame) for view in self.views]
        framed += [(view.adjusted, view.adjusted_frame) for view in self.views]
        return any(((v < low) | (v > high)).any() for v, (low, high) in framed)

    @cached_property
    def held(self) -> Floats:
        """Values at which features are held that are not shown, (d,)."""
        return typical_row(self.rows.X)

    @cached_property
    def views(self) -> list[View]:
        """A view over each feature, that of the largest effect first."""
        return [self._view(int(feature)) for feature in self.terms.order]

    def _view(self, feature: int) -> View:
        mixture, nearest = self.terms.mixture, self.rows.far.nearest
        x = np.asarray(self.rows.X[self.points, feature], dtype=np.float64)
        lines = lines_over(mixture.coef, mixture.intercept, self.held, feature)
        base, slope = lines.T
        labels = self.rows.labels[self.points]
        own = [x[labels == j] for j in range(mixture.n_components)]
        # Few rows make no line. Lines that reach beyond rows of their own must be in the frame.
        alone = np.array([not values.size or np.ptp(values) == 0 for values in own])
        reach = np.array([_range(v) for v in own])
        reach[alone] = self._common_reach(x, feature)
        heights = base[:, None] + slope[:, None] * reach
        mine = nearest[self.points]
        adjusted = base[mine] + slope[mine] * x + self.rows.far.residual[self.points]

        def framed(values: Floats, ends: Floats) -> Span:
            kept = values[: self.inside]
            kept = np.clip(kept, *bulk(kept)) if kept.size else kept
            return frame(np.append(kept, ends[alone]), values[self.inside :])

        return View(
            name=self.terms.name(feature),
            x=x,
            adjusted=adjusted,
            lines=lines,
            reach=reach,
            frame=framed(x, reach),
            adjusted_frame=framed(adjusted, heights),
            y_frame=framed(self.rows.y[self.points], heights),
        )

    def _common_reach(self, x: Floats, feature: int) -> Span:
        """Find where all rows of the regimes are, or a deviation around the middle."""
        low, high = _range(x[: self.inside or None])
        if low == high:
            middle, step = float(self.held[feature]), float(self.terms.deviation[feature])
            low, high = min(low, middle - step), max(high, middle + step)
        return (low, high) if low < high else frame(np.array([low]), np.array([]))

    def data(self) -> dict[str, Any]:
        """Gather what the page needs to draw any view."""
        rows, points, inside = self.rows, self.on_page, self.inside
        keys = [rows.keys[i] for i in points]
        # One frame for the plain response, whatever feature it is drawn against.
        low, high = min(v.y_frame[0] for v in self.views), max(v.y_frame[1] for v in self.views)
        span = high - low
        # As they are shown, for a number must not be rounded twice; nor to one, if it is not one.
        outlying = np.round(rows.outlying[points], 3)
        outlying[(outlying == 1) & (rows.outlying[points] < 1)] = 0.9999
        indices = range(self.terms.mixture.n_components)
        # Outliers that are listed, but not drawn, have the values of the first features too.
        beside = rows.X[np.ix_(points, self.terms.order[:MOST_BESIDE])].astype(np.float64).T
        rest = [view.x for view in self.views[MOST_BESIDE:]]
        return {
            "target": self.terms.target,
            "numbered": rows.numbered,
            "inside": inside,
            "drawn": int(self.points.size),
            "radius": self.radius,
            "shapes": [shape(j, self.radius) for j in (-1, *indices)],
            "scales": [float(scale) for scale in self.terms.mixture.scale],
            "nearest": rows.far.nearest[points].tolist(),
            "keys": [
                *_keys(keys[:inside], MOST_KEY_BYTES[0], numbered=rows.numbered),
                *_keys(keys[inside:], MOST_KEY_BYTES[1], numbered=rows.numbered),
            ],
            "y": compact(rows.y[points], span / 10),
            "residual": compact(rows.far.residual[points], span / 10),
            "outlying": compact(outlying, 1.0),
            "frame": (low, high),
            "features": [
                {
                    "name": view.name,
                    "x": compact(x, view.frame[1] - view.frame[0]),
                    "frame": view.frame,
                    "values": view.values,
                    "adjusted": view.adjusted_frame,
                    "lines": view.lines.tolist(),
                    "reach": view.reach.tolist(),
                }
                for x, view in zip([*beside, *rest], self.views, strict=True)
            ],
        }

    def draw(self, width: float = WIDTH, height: float = HEIGHT) -> Html:
        """Draw the first view: against the feature that matters most."""
        view = self.views[0]
        x, y, names = view.x, view.adjusted, (view.name, self.terms.target)
        size = width, height
        across, up, grid = axes(view.frame, view.adjusted_frame, names, size, view.values)
        labels, points, lines = self.rows.labels[self.points], list[Html](), list[Html]()
        beyond = (x < across.low) | (x > across.high) | (y < up.low) | (y > up.high)
        for j in (-1, *range(self.terms.mixture.n_components)):
            own = (labels == j) & ~beyond
            if own.any():
                points.append(marks(across.many(x[own]), up.many(y[own]), j, self.radius))
        if beyond.any():
            points.append(_arrows(x[beyond], y[beyond], across, up))
        pixels = (up.start - up.end) / (up.high - up.low)
        for j, noise in enumerate(self.terms.mixture.scale.tolist()):
            base, slope = view.lines[j]
            reach = _within(view.reach[j], base, slope, across, up)
            if reach[0] > reach[1]:
                continue
            (x1, x2), (y1, y2) = across.many(reach), up.many(base + slope * reach)
            # Lines that run through a cloud need a halo to be seen.
            if noise * pixels > BROAD * self.radius:
                lines.append(line(x1, y1, x2, y2, "halo"))
            lines.append(line(x1, y1, x2, y2, f"line r{j % 8}", tag("title", f"Regime {j}")))
        title = f"{names[1]} against {names[0]}, with each regime's line"
        groups = tag("g", *points, class_="points"), tag("g", *lines, class_="lines")
        return chart(title, (width, height), grid, *groups)


def _range(values: Floats) -> Span:
    return (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)


def _within(reach: Floats, base: float, slope: float, across: Scale, up: Scale) -> Floats:
    """Cut a line off where it leaves the frame; its ends change places if it never enters."""
    low, high = max(reach[0], across.low), min(reach[1], across.high)
    if slope:
        ends = sorted(((up.low - base) / slope, (up.high - base) / slope))
        low, high = max(low, ends[0]), min(high, ends[1])
    elif not up.low <= base <= up.high:
        low, high = 1.0, 0.0
    return np.array([low, high])


def _keys(keys: list[Any], most: int, *, numbered: bool) -> list[int] | list[str]:
    """Shorten keys until all of them are small beside the page."""
    if numbered:
        return [int(key) for key in keys]
    short: list[str] = []
    for longest in LONGEST_KEYS:
        short = [clean(key, longest) for key in keys]
        if len(json.dumps(short)) <= most:
            break
    return short


def _arrows(x: Floats, y: Floats, across: Scale, up: Scale) -> Html:
    """Point from the edge to what lies beyond it."""
    path = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        arrow = "m5 0l-7-4v8z" if a > across.high else "m-5 0l7-4v8z"
        if not up.low <= b <= up.high:
            arrow = "m0-5l4 7h-8z" if b > up.high else "m0 5l4-7h-8z"
        path.append(f"M{across(a):.1f} {up(b):.1f}{arrow}")
    return tag("path", d="".join(path), class_="mark out")
