"""Laws of the noise of a regime and of outliers, and the resolution of the response."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri

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
# Scales of the normal law, and of Student's with 2 degrees of freedom, that are as wide as the
# response between its quantiles, in units of that width.
_LOW = MODEL.bulk_level
NORMAL_BULK = float(0.5 / ndtri(1.0 - _LOW))
STUDENT_BULK = float(np.sqrt(0.5 * _LOW * (1.0 - _LOW)) / (1.0 - 2.0 * _LOW))


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


# Least noise of a rounded response, in steps. The probability of a value is at most one, so that
# no density exceeds one for each step: this is the deviation of the normal law that has it. (The
# deviation of rounding itself, 1 / sqrt(12), would have 1.4, and constants at 0, 1, 2, ... would
# explain counts better than any law of counts does.)
LEAST_NOISE = 1.0 / np.sqrt(2.0 * np.pi)


def resolution(y: Floats) -> float:
    """Return the step of the grid that responses lie on; zero if they lie on none.

    Rounded responses are multiples of a step: the greatest common divisor of their gaps, found by
    Euclid's algorithm. A few values off the grid (typed with more digits) must not hide it: where
    others repeat, it is the grid of these, unless a finer one of all values is the shorter
    description of them.
    """
    low, high = np.quantile(y, [MODEL.bulk_level, 1 - MODEL.bulk_level], method="inverted_cdf")
    bulk = y[(y >= low) & (y <= high)]  # a few values far away would hide all other gaps
    values, counts = np.unique(y if low == high else bulk, return_counts=True)
    step = _common_step(values)
    repeated = values[counts > 1]
    if repeated.size < 2 or counts[counts > 1].sum() <= 0.5 * y.size:
        return step
    coarse = _common_step(repeated)
    if step == 0.0:
        gaps = np.diff(repeated)
        # Values that differ by arithmetic alone are the same.
        gaps = gaps[gaps > MODEL.finest_grid * float(repeated[-1] - repeated[0])]
        return coarse or (float(gaps.min()) if gaps.size else 0.0)
    return coarse if coarse > step and _lie_on(values, repeated[0], coarse, step) else step


def _lie_on(values: Floats, start: float, coarse: float, fine: float) -> bool:
    """Say whether values lie on a coarse grid but for a few, and not all on a fine one.

    Any value lies on some fine grid, as nearly as seven digits can tell, so that one value off the
    coarse grid may show one by chance. Each value on the coarse grid is told by fewer digits than
    on the fine one; each other value is then told by all its digits, and which ones they are is
    told, too.
    """
    off = np.abs((values - start) - coarse * np.round((values - start) / coarse)) > 0.5 * fine
    n, others = values.size, int(np.count_nonzero(off))
    which = gammaln(n + 1) - gammaln(others + 1) - gammaln(n - others + 1)
    digits = np.log(fine / (MODEL.written_digits * float(values[-1] - values[0])))
    return bool((n - others - 1) * np.log(coarse / fine) > others * digits + which)


def _common_step(values: Floats) -> float:
    if values.size < 2:
        return 0.0
    # Values may have been written with seven digits: remainders below this are none.
    rounding = MODEL.written_digits * float(values[-1] - values[0])
    gaps = np.unique(np.diff(values))
    gaps = gaps[gaps > rounding]
    if not gaps.size:
        return 0.0
    step, finest = float(gaps[0]), MODEL.finest_grid * float(values[-1] - values[0])
    for gap in gaps[1:]:
        if step <= finest:  # as soon as it is without a grid
            return 0.0
        a, b = float(gap), step
        while b > rounding:
            a, b = b, abs(a - b * round(a / b))
        step = a
    return step if step > finest else 0.0


def coincide_by_chance(Z: Floats, y: Floats, weights: Floats, step: float) -> bool:
    """Say whether rows that are equal are what rounding makes of independent rows.

    Rows that are equal to the last digit are copies of one another where nothing is rounded, and
    say nothing new. Rounded responses of rows with equal features are equal by chance, about half
    as often as they are one step apart. Where they are so more than twice as often, the rows are
    copies, or their responses heap at round numbers.

    Parameters
    ----------
    Z, y : ndarray of shape (n, p), (n,)
        Distinct rows.
    weights : ndarray of shape (n,)
        How often each of them is there; or about so often, where rows have weights of their own.
    step : float
        Resolution of the response, zero if it has none.
    """
    same = float(weights @ np.maximum(weights - 1.0, 0.0))
    if same == 0.0 or step == 0.0:
        return False
    group = np.unique(Z, axis=0, return_inverse=True)[1].ravel()
    # From a value of the bulk, which lies on the grid.
    place = np.round((y - np.sort(y)[y.size // 2]) / step)
    place -= place.min()
    # Responses of one group are next to one another, and those of the next group are far away.
    place += group * (place.max() + 2.0)
    order = np.argsort(place)
    adjacent = np.diff(place[order]) == 1.0
    near = 2.0 * float((weights[order][1:] * weights[order][:-1])[adjacent].sum())
    return same <= near
