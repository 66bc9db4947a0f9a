"""Numbers, names and lists in words: one way of writing each, for every text, table and plot."""

from __future__ import annotations

import math
from collections.abc import Sequence

# What is written for a number that is not known.
UNKNOWN = "–"
# Marks around a name in a sentence: the characters of Unicode that isolate a text.
NAME, END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
DIGITS = 4
# Longer names lose their middle.
LONGEST_NAME = 40
# Smaller numbers, larger ones, and errors that need more decimals are written with an exponent.
SMALL, LARGE, MOST_DECIMALS = 1e-4, 1e7, 7
# Digits are grouped in numbers from here on: years and small counts are easier to read without.
GROUPED = 10_000
SPELLED = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


def number(value: float, digits: int = DIGITS) -> str:
    """Write a number with a few digits, and without an exponent where it can be read.

    >>> [number(value) for value in (0.0, -0.0012345, 1987.4, 123456.7, 2.5e-7, 1.5e12)]
    ['0', '-0.001234', '1987', '123,457', '2.5e-7', '1.5e12']
    """
    if math.isnan(value):
        return UNKNOWN
    if not value or math.isinf(value):
        return f"{value:g}".replace("-0", "0")
    size = abs(value)
    if not SMALL <= size < LARGE:
        return scientific(value, digits)
    return _trimmed(fixed(value, max(0, digits - 1 - math.floor(math.log10(size)))))


def scientific(value: float, digits: int = DIGITS) -> str:
    """Write a number with an exponent."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{_trimmed(mantissa)}e{int(exponent)}"


def fixed(value: float, decimals: int) -> str:
    """Write a number with a fixed number of decimals."""
    comma = "," if abs(round(value, decimals)) >= GROUPED else ""
    return f"{value:z{comma}.{decimals}f}"


def tick_labels(values: list[float]) -> list[str]:
    """Write ticks with the same number of decimals."""
    step = values[1] - values[0] if len(values) > 1 else abs(values[0]) or 1.0
    first = max(0, -math.floor(math.log10(step) + 1e-9))
    # As many as all values need, within reason: 2.5 is neither 2 nor 3.
    decimals = next(
        (n for n in (first, first + 1) if all(abs(v - round(v, n)) < 1e-6 * step for v in values)),
        first + 2,
    )
    size = max(map(abs, values)) or 1.0
    if decimals > 5 or size >= 1e7:
        apart = math.floor(math.log10(size)) - math.floor(math.log10(step))
        digits = 1 + min(max(2, apart), 12)
        return [scientific(value, digits) if value else "0" for value in values]
    return [fixed(value, decimals) for value in values]


def _trimmed(text: str) -> str:
    """Drop the zeros that end a fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def aligned(values: Sequence[float], digits: int = DIGITS) -> list[str]:
    """Write a column of numbers with the same number of decimals, if they are of like size."""
    sizes = sorted(abs(value) for value in values if math.isfinite(value) and value)
    if not sizes or sizes[-1] >= LARGE or sizes[len(sizes) // 2] < SMALL:
        return [number(value, digits) for value in values]
    typical = sizes[len(sizes) // 2]
    places = max(0, digits - 1 - math.floor(math.log10(typical)))
    # Zeros that end every number, and are not rounded, say nothing: whole numbers stay whole.
    while places and all(math.isclose(round(v, places - 1), v, rel_tol=1e-12) for v in sizes):
        places -= 1
    return [fixed(v, places) if math.isfinite(v) else number(v) for v in values]


def decimals(error: float) -> int | None:
    """Return the decimals that show two digits of a standard error; None if it is not known."""
    if not (math.isfinite(error) and error > 0):
        return None
    return max(0, 1 - math.floor(math.log10(error)))


def measured(value: float, error: float, *more: float) -> tuple[str, ...]:
    """Write a value as exactly as its error allows, the error with two digits, and the like.

    >>> measured(0.0034218, 0.00402)
    ('0.0034', '0.0040')
    >>> measured(172513.2, 1048.0, 170400.1)
    ('172,513', '1048', '170,400')
    >>> measured(2.5, float("nan"))
    ('2.5', '–')
    """
    places, all_values = decimals(error), (value, error, *more)
    if places is None:
        return tuple(number(each) for each in all_values)
    sizes = [abs(each) for each in all_values if math.isfinite(each)]
    if places > MOST_DECIMALS or max(sizes) >= LARGE:
        return number(value), number(error, 2), *(number(each) for each in more)
    return tuple(fixed(v, places) if math.isfinite(v) else number(v) for v in all_values)


def interval(low: float, high: float, error: float) -> str:
    """Write an interval with the decimals that suit the standard error."""
    _, _, *ends = measured(0.0, error, low, high)
    return f"{ends[0]} to {ends[1]}"


def percent(share: float) -> str:
    """Write a share; it is never rounded to nothing or to all.

    >>> [percent(share) for share in (0, 0.0001, 0.125, 0.9999, 1)]
    ['0%', '<0.1%', '12.5%', '>99.9%', '100%']
    """
    if share <= 0 or share >= 1:
        return "0%" if share <= 0 else "100%"
    return "<0.1%" if share < 0.0005 else ">99.9%" if share >= 0.9995 else f"{share:.1%}"


def probability(value: float) -> str:
    """Write a p-value, a probability or R² with three decimals, never rounded to 0 or 1."""
    if math.isnan(value):
        return UNKNOWN
    if 0 <= value < 0.0005:
        return "<0.001"
    return ">0.999" if 0.9995 <= value < 1 else f"{value:z.3f}"


def p_value(value: float) -> str:
    """Write a p-value in a sentence: p = 0.012, p <0.001."""
    text = probability(value)
    return f"p {text}" if text[0] in "<>" else f"p = {text}"


def powered(name: str, power: float) -> str:
    """Name a power of something; zero is the logarithm.

    >>> [powered("price", power) for power in (1, 0, 0.5, -1)]
    ['price', 'log price', '√price', 'price^-1']
    """
    return {1.0: name, 0.0: f"log {name}", 0.5: f"√{name}"}.get(power, f"{name}^{power:g}")


def spelled(value: int) -> str:
    """Write a small whole number as a word."""
    return SPELLED[value] if 0 <= value < len(SPELLED) else fixed(value, 0)


def count(value: int, noun: str) -> str:
    """Count things in digits: 1 row, 12 rows."""
    return f"{fixed(value, 0)} {noun}{'s' * (value != 1)}"


def several(value: int, noun: str) -> str:
    """Count things in words: one row, twelve rows."""
    return f"{spelled(value)} {noun}{'s' * (value != 1)}"


def listing(items: Sequence[str], most: int = 8) -> str:
    """Join items as in a sentence, and count those beyond the most; one more is named, too."""
    if len(items) == most + 1:
        most += 1
    shown = list(items[:most])
    if len(items) > most:
        shown.append(f"{fixed(len(items) - most, 0)} more")
    return " and ".join([", ".join(shown[:-1]), *shown[-1:]]) if len(shown) > 1 else "".join(shown)


def choice(items: Sequence[str]) -> str:
    """Join what may be chosen: a, b or c."""
    *most, last = items
    return f"{', '.join(most)} or {last}" if most else last


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a long name in the middle, and replace characters that a terminal would obey."""
    if not name.isprintable():
        name = "".join(one if one.isprintable() else "\ufffd" for one in name)
    half = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half:]}"


def clean(name: object, longest: int = LONGEST_NAME) -> str:
    """Make a name fit for a page or a plot: one line, bounded, nothing invisible.

    Control characters and marks that change the direction of the text could make a page read as
    something else; half a surrogate pair could not even be written.
    """
    text = str(name)
    if len(text) > 4 * longest:
        text = text[: 2 * longest] + text[-2 * longest :]
    return short(" ".join(text.split()), longest) or "(no name)"


def named(name: str) -> str:
    """Set a name apart in a sentence; a page makes it italic, `bare` plain.

    The marks isolate the name, so that one written from right to left leaves the order of the
    sentence alone. `clean` removes such marks: names cannot forge them.
    """
    return f"{NAME}{name}{END}"


def bare(text: str) -> str:
    """Return a sentence as plain text."""
    return text.replace(NAME, "").replace(END, "")
