"""Laws of the noise of a regime and of outliers, and the resolution of the response."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from regimix.model.numbers import MODEL

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


# The density of Student's law with 2 degrees of freedom is 1 / sqrt(8) at its middle.
ROOT_8 = np.sqrt(8.0)


class Background(IntEnum):
    """Laws that the responses of outliers may have.

    The plain one is as wide as the response between its 10 % and 90 % quantiles: wider than the
    response itself, so that it does not compete with regimes for the bulk. But outliers may be
    many, or far away, and then their law shows; it is as wide as they say. With the plain one alone
    they would pass for a regime without slopes.
    """

    PLAIN = 0
    NORMAL = 1
    STUDENT = 2


def fall_of_background(distance: Floats, degrees: float = MODEL.background_degrees) -> Floats:
    """Return the log density of the background at a distance from its middle, over that there.

    Student's law with 2 degrees of freedom; or normal, if they are infinite.
    """
    distance = np.clip(distance, -1e150, 1e150)  # whose squares are numbers
    if np.isinf(degrees):
        return np.asarray(-0.5 * distance**2)
    return np.asarray(-1.5 * np.log1p(0.5 * distance**2))


def resolution(y: Floats) -> float:
    """Return the step of the grid that responses lie on; zero if they lie on none.

    Rounded responses are multiples of a step: the greatest common divisor of their gaps, found by
    Euclid's algorithm. A few values off the grid (typed with more digits) must not hide it, so
    values that occur once are left out where others repeat.
    """
    low, high = np.quantile(y, [MODEL.bulk_level, 1 - MODEL.bulk_level], method="inverted_cdf")
    bulk = y[(y >= low) & (y <= high)]  # a few values far away would hide all other gaps
    values, counts = np.unique(y if low == high else bulk, return_counts=True)
    step = _common_step(values)
    repeated = values[counts > 1]
    if step == 0.0 and repeated.size > 1 and counts[counts > 1].sum() > 0.5 * y.size:
        step = _common_step(repeated) or float(np.diff(repeated).min())
    return step


def _common_step(values: Floats) -> float:
    if values.size < 2:
        return 0.0
    # Values may have been written with seven digits: remainders below this are none.
    rounding = MODEL.written_digits * float(values[-1] - values[0])
    gaps = np.unique(np.diff(values))
    gaps = gaps[gaps > rounding]
    if not gaps.size:
        return 0.0
    step = float(gaps[0])
    for gap in gaps[1:]:
        a, b = float(gap), step
        while b > rounding:
            a, b = b, abs(a - b * round(a / b))
        step = a
    # Without a grid the algorithm ends next to its limit.
    return step if step > MODEL.finest_grid * float(values[-1] - values[0]) else 0.0
