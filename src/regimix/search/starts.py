"""What every source of starts hands over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Starts"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Starts:
    """Where a search begins, and where each start comes from.

    Attributes
    ----------
    thetas : ndarray of shape (starts, p)
        Standardised coefficients.
    source : tuple of str
    """

    thetas: Floats
    source: tuple[str, ...]

    def and_also(self, thetas: Floats, source: str) -> Starts:
        """Append starts of one more source."""
        return Starts(np.vstack([self.thetas, thetas]), self.source + (source,) * len(thetas))
