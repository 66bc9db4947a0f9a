"""What an audit says about one assumption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

__all__ = ["Finding", "Verdict", "large_is_good", "small_is_good"]

Verdict = Literal["holds", "unclear", "violated"]


@dataclass(frozen=True)
class Finding:
    """One assumption of the paper, and whether the data meet it.

    Attributes
    ----------
    name : str
    verdict : {"holds", "unclear", "violated"}
    value : float
        The number behind it.
    threshold : float
        What it is compared with.
    words : str
        What that means, in a sentence or two.
    at_least : bool
        Whether the value should be at least the threshold; else at most.
    """

    name: str
    verdict: Verdict
    value: float
    threshold: float
    words: str
    at_least: bool = False


def small_is_good(value: float, good: float, bad: float) -> Verdict:
    """Judge a number that should be small."""
    if value <= good:
        return "holds"
    return "violated" if value >= bad or np.isnan(value) else "unclear"


def large_is_good(value: float, good: float, bad: float) -> Verdict:
    """Judge a number that should be large."""
    return small_is_good(-value, -good, -bad)
