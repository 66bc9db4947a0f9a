"""Numbers, names and lists as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = [
    "aligned",
    "bare",
    "clean",
    "count",
    "ended",
    "interval",
    "listing",
    "named",
    "number",
    "percent",
    "probability",
    "regime",
    "several",
    "spelled",
]

MINUS = "\N{MINUS SIGN}"
NAME, END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
DIGITS = 4
# Names on the page: long ones lose their middle.
LONGEST = 40
# Why a search ended, for a sentence that says "because"; what ended it early is in EARLY.
EARLY = {
    "max_starts": "it had used up the starts it was allowed",
    "time_limit": "its time was over",
    "callback": "it was told to stop",
    "interrupted": "it was interrupted",
}
ENDS = {
    "nothing improves": "nothing improved the model any more",
    "all found": "every regime was found",
    "none accepted": "there was nothing more to accept",
    **EARLY,
}
SMALL = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


def number(value: float, digits: int = DIGITS) -> str:
    """Write a number with four digits, without an exponent where it can be read."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    size = abs(value)
    if 10**digits <= size < 1e9:
        text = f"{size:,.0f}"
    elif size == 0 or 1e-4 <= size < 10**digits:
        text = _plain(f"{size:.{digits}g}")
    else:
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{_plain(mantissa)}e{int(exponent)}".replace("-", MINUS)
    return MINUS + text if value < 0 else text


def aligned(values: Sequence[float], digits: int = DIGITS) -> list[str]:
    """Write a column of numbers with the same number of decimals, if they are of like size."""
    sizes = sorted(abs(value) for value in values if math.isfinite(value) and value)
    if not sizes or sizes[-1] >= 1e9 or sizes[len(sizes) // 2] < 1e-4:
        return [number(value, digits) for value in values]
    typical = sizes[len(sizes) // 2]
    decimals = max(0, digits - 1 - math.floor(math.log10(typical)))
    # Zeros that end every number, and are not rounded, say nothing: whole numbers stay whole.
    while decimals and all(math.isclose(round(v, decimals - 1), v, rel_tol=1e-12) for v in sizes):
        decimals -= 1
    return [_fixed(v, decimals) if math.isfinite(v) else number(v) for v in values]


def _plain(text: str) -> str:
    """Drop the zeros that end a fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def interval(low: float, high: float) -> str:
    """Write an interval with as many decimals as its width deserves."""
    width = high - low
    if not math.isfinite(width) or width <= 0:
        return f"{number(low)} to {number(high)}"
    decimals = 1 - math.floor(math.log10(width))
    if max(abs(low), abs(high)) >= 1e9 or decimals > 9:
        return f"{number(low)} to {number(high)}"
    return f"{_fixed(low, decimals)} to {_fixed(high, decimals)}"


def _fixed(value: float, decimals: int) -> str:
    text = f"{abs(round(value, decimals)):,.{max(0, decimals)}f}"
    return MINUS + text if value < 0 and text.strip("0.,") else text


def percent(share: float) -> str:
    """Write a share of rows."""
    if 0 < share < 0.001:
        return "under 0.1%"
    text = f"{100 * share:.1f}".removesuffix(".0")
    return "over 99.9%" if text == "100" and share < 1 else f"{text}%"


def probability(value: float) -> str:
    """Write a p-value or a probability."""
    if math.isnan(value):
        return "–"
    return "< 0.001" if value < 0.001 else "> 0.999" if value > 0.999 else f"{value:.3f}"


def spelled(value: int) -> str:
    """Write a small whole number as a word."""
    return SMALL[value] if 0 <= value < len(SMALL) else f"{value:,}"


def count(value: int, noun: str) -> str:
    """Count things in digits: 1 row, 12 rows."""
    return f"{value:,} {noun}{'s' * (value != 1)}"


def several(value: int, noun: str) -> str:
    """Count things in words: one row, twelve rows."""
    return f"{spelled(value)} {noun}{'s' * (value != 1)}"


def listing(items: Sequence[str], most: int = 8, rest: str = "more") -> str:
    """Join items as in a sentence, and count those beyond the most."""
    shown = list(items[:most])
    if len(items) > most:
        shown.append(f"{len(items) - most:,} {rest}")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def clean(name: object, longest: int = LONGEST) -> str:
    """Make a name fit for the page: one line, bounded, nothing invisible.

    Control characters and marks that change the direction of the text could make a page read as
    something else; half a surrogate pair could not even be written.
    """
    text = str(name)
    if len(text) > 4 * longest:
        text = text[: 2 * longest] + text[-2 * longest :]
    text = " ".join(text.split())
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else "\ufffd" for sign in text)
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    return text or "(no name)"


def named(name: str) -> str:
    """Set a name apart in a sentence: `prose` makes it italic, `bare` plain.

    The signs are those of Unicode that isolate a text, so that a name written from right to left
    leaves the order of the sentence alone. `clean` lets none through: names cannot forge them.
    """
    return f"{NAME}{name}{END}"


def bare(text: str) -> str:
    """Return a sentence as plain text."""
    return text.replace(NAME, "").replace(END, "")


def ended(stopped: str) -> str:
    """Say why a search ended."""
    return ENDS.get(stopped, clean(stopped))


def regime(index: int) -> str:
    """Name a regime by its label."""
    return f"regime {index}"
