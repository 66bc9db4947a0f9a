"""Laws of the noise of a regime: normal, or Student's with heavier tails.

A law says how the density of a response falls with the squared residual (in units of the noise),
and how much a row still counts in the fit (Student's law is a normal one whose precision varies
from row to row).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

__all__ = ["NORMAL", "NoiseLaw"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NoiseLaw:
    """Student's law with so many degrees of freedom; infinitely many are the normal law."""

    degrees: float = np.inf

    def kernel(self, squares: Floats) -> tuple[Floats, Floats | None, Floats | None]:
        """Return log density (up to 1 / sqrt(2 pi) noise), row weights, and the rest of the bound.

        With precisions of rows integrated out, the log density is F(D) at D = mean squared
        residual. F(D) = slack - weight D / 2 at the best variational law of the row's precision.
        """
        if np.isinf(self.degrees):
            return -0.5 * squares, None, None
        nu = self.degrees
        constant = gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu) - 0.5 * np.log(0.5 * nu)
        log_density = constant - 0.5 * (nu + 1) * np.log1p(squares / nu)
        weight = (nu + 1) / (nu + squares)
        return log_density, weight, log_density + 0.5 * weight * squares

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw noise of unit scale."""
        if np.isinf(self.degrees):
            return rng.standard_normal(count)
        return rng.standard_t(self.degrees, count)


NORMAL = NoiseLaw()
