"""Numbers as people write them."""

from __future__ import annotations

import math

__all__ = ["many", "measured", "number", "percent"]

# From here on, or with more decimals, an exponent is easier to read.
LARGE, MOST_DECIMALS = 1e7, 7


def number(value: float, digits: int = 4) -> str:
    """Write a number with a few digits, and without an exponent where it can be read."""
    if not math.isfinite(value):
        return ""
    return f"{value:.0f}" if 10**digits <= abs(value) < LARGE else f"{value:.{digits}g}"


def measured(value: float, error: float) -> tuple[str, str]:
    """Write a value as exactly as its error allows, and the error with two digits.

    >>> measured(0.0034218, 0.00402)
    ('0.0034', '0.0040')
    >>> measured(172513.2, 1048.0)
    ('172513', '1048')
    >>> measured(2.5, float("nan"))
    ('2.5', '')
    """
    if not (math.isfinite(error) and error > 0):
        return number(value), "0" if error == 0 else ""
    decimals = max(0, 1 - math.floor(math.log10(error)))
    if decimals > MOST_DECIMALS or max(abs(value), error) >= LARGE:
        return number(value), number(error, 2)
    return f"{value:z.{decimals}f}", f"{error:.{decimals}f}"


def percent(share: float) -> str:
    """Write a share."""
    return f"{100 * share:.1f} %"


def many(count: int, what: str) -> str:
    """Write how many there are: "1 row", "2 rows"."""
    return f"{count} {what}{'s' * (count != 1)}"
