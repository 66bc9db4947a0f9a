"""A quantity that is known up to two certified bounds."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Interval"]


@dataclass(frozen=True)
class Interval:
    """Certified bounds: the quantity is at least ``lower`` and at most ``upper``.

    Attributes
    ----------
    lower, upper : float
        Equal where the quantity is known exactly.
    """

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Whether the two bounds agree."""
        return self.lower == self.upper

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        low, high = f"{self.lower:.4g}", f"{self.upper:.4g}"
        return low if low == high else f"{low} to {high}"
