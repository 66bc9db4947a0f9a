"""A little SVG: tags that escape what they hold, scales, ticks and marks."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from regimix.report.words import END, MINUS, NAME

__all__ = [
    "SHAPES",
    "Html",
    "Scale",
    "mark",
    "marks",
    "prose",
    "shape",
    "swatch",
    "tag",
    "tick_labels",
    "ticks",
]

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
FINEST = 1e-9
# Attributes of SVG that are not in lower case.
CASED = {"viewbox": "viewBox"}


class Html(str):
    """Text that is markup already; everything else is escaped."""

    __slots__ = ()

    def __html__(self) -> Html:
        return self


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Write an element; children and attributes are escaped, unless they are markup.

    An underscore in the name of an attribute stands for a hyphen, one at its end for nothing;
    attributes that are None are left out.
    """
    inside = "".join(escaped(child) for child in children)
    return Html(f"<{name}{''.join(map(_attribute, attributes.items()))}>{inside}</{name}>")


def escaped(value: object) -> str:
    """Escape text, but not markup."""
    return value if isinstance(value, Html) else html.escape(str(value))


def prose(text: object) -> Html:
    """Write a sentence, the names in it set apart."""
    marked = escaped(text).replace(NAME, '<bdi class="name">')
    return Html(marked.replace(END, "</bdi>"))


def _attribute(item: tuple[str, object]) -> str:
    name, value = item
    if value is None:
        return ""
    name = CASED.get(name, name.rstrip("_").replace("_", "-"))
    text = _short(value) if isinstance(value, float) else html.escape(str(value))
    return f' {name}="{text}"'


def _short(value: float) -> str:
    """Write a coordinate: tenths of a pixel are finer than any screen needs."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


@dataclass(frozen=True)
class Scale:
    """From values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Map one value."""
        return float(self.many([value])[0])

    def many(self, values: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """Map many values; what lies outside is held at the edge."""
        span = (self.high - self.low) or 1.0
        share = np.clip((np.asarray(values, dtype=np.float64) - self.low) / span, 0, 1)
        return np.asarray(self.start + share * (self.end - self.start))


def ticks(low: float, high: float, most: int) -> list[float]:
    """Choose round values within a range."""
    span = high - low
    # Of values that differ only in their tenth digit, one says it all.
    if not (math.isfinite(span) and span > FINEST * max(abs(low), abs(high))):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next(size * power for size in (1, 2, 5, 10) if size * power * most >= span * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def tick_labels(values: list[float]) -> list[str]:
    """Write ticks with the same number of decimals."""
    step = values[1] - values[0] if len(values) > 1 else abs(values[0]) or 1.0
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals > 5 or max(map(abs, values)) >= 1e7:
        size = max(map(abs, values)) or 1.0
        apart = math.floor(math.log10(size)) - math.floor(math.log10(step))
        return [_exponent(value, min(max(2, apart), 12)) for value in values]
    texts = [f"{abs(value):,.{decimals}f}" for value in values]
    return [MINUS + t if v < -step / 2 else t for v, t in zip(values, texts, strict=True)]


def _exponent(value: float, decimals: int) -> str:
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{decimals}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}".replace("-", MINUS)


def shape(index: int, radius: float) -> str:
    """Write the path of a regime's mark, relative to where it stands; -1: an outlier."""
    parts = CROSS if index < 0 else SHAPES[(index + index // len(SHAPES)) % len(SHAPES)]
    if not parts:
        return "h0"
    words = (part if part.isalpha() else _short(float(part) * radius) for part in parts.split())
    # A letter or a minus sign parts two numbers as well as a space does.
    return re.sub(r" ?([a-z-]) ?", r"\1", " ".join(words))


def marks(x: Iterable[float], y: Iterable[float], index: int, radius: float) -> Html:
    """Draw the marks of one regime as a single path."""
    form = shape(index, radius)
    places = (f"M{_short(a)} {_short(b)}{form}" for a, b in zip(x, y, strict=True))
    # A dot is as wide as its line.
    width = 2 * radius if form == "h0" else None
    return tag("path", d="".join(places), class_=mark(index, form), stroke_width=width)


def mark(index: int, form: str = "") -> str:
    """Name the classes that give a regime's mark its colour."""
    if index < 0:
        return "mark out"
    return f"mark r{index % len(SHAPES)}{' dot' * (form == 'h0')}"


def swatch(index: int) -> Html:
    """Draw one mark, to stand beside a name."""
    box = {"viewbox": "-8 -8 16 16", "aria_hidden": "true", "focusable": "false"}
    return tag("svg", marks([0.0], [0.0], index, 5.0), class_="swatch", **box)
