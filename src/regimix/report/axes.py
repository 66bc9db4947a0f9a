"""Axes: their range, their ticks, their names."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regimix.report.svg import Html, Scale, tag, tick_labels, ticks

__all__ = ["axes", "frame"]

Floats = NDArray[np.float64]

# Outliers further from the frame of the other rows than this share of it are drawn at its edge.
REACH = 1 / 3
PADDING = 0.04
TOP, RIGHT, BOTTOM, NARROWEST = 30.0, 14.0, 46.0, 44.0
# Pixels: of a digit, between ticks.
DIGIT, ACROSS, UP = 7.2, 80, 60


def frame(inner: Floats, outer: Floats) -> tuple[float, float]:
    """Find the range of an axis: all of the inner values, and the outer ones that are not far."""
    inner = inner if inner.size else outer
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
    x: tuple[float, float],
    y: tuple[float, float],
    names: tuple[str, str],
    size: tuple[float, float],
) -> tuple[Scale, Scale, Html]:
    """Draw a quiet grid, with the names where they are read: the vertical one on top."""
    width, bottom = size[0], size[1] - BOTTOM
    rows = ticks(*y, max(3, int(size[1] // UP)))
    left = max(NARROWEST, 18 + DIGIT * max(map(len, tick_labels(rows))))
    right = width - RIGHT
    columns = ticks(*x, max(3, int((width - left) // ACROSS)))
    across, up = Scale(*x, left, right), Scale(*y, bottom, TOP)
    drawn = [tag("text", names[1], class_="name", x=2.0, y=14.0)]
    for value, label in zip(rows, tick_labels(rows), strict=True):
        place = up(value)
        drawn.append(tag("line", x1=left, x2=right, y1=place, y2=place))
        drawn.append(tag("text", label, x=left - 8, y=place + 4, text_anchor="end"))
    for value, label in zip(columns, tick_labels(columns), strict=True):
        place = across(value)
        drawn.append(tag("line", x1=place, x2=place, y1=bottom, y2=bottom + 5))
        drawn.append(tag("text", label, x=place, y=bottom + 19, text_anchor="middle"))
    drawn.append(tag("text", names[0], class_="name", x=right, y=bottom + 39, text_anchor="end"))
    return across, up, tag("g", *drawn, class_="grid")
