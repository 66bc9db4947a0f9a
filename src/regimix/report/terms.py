"""The terms of the equations: which matter most, and how well each is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from regimix.report.words import clean
from regimix.result.mixture import Mixture

__all__ = ["MOST_FEATURES", "Terms"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A page has room for so many features; the others contribute less.
MOST_FEATURES = 40


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a mixture, in the order of what they contribute.

    Attributes
    ----------
    mixture : Mixture
    deviation, mean : ndarray of shape (d,)
        Of the features.
    level : float
        Of the intervals.
    ranked : bool
        Whether the deviations are known; effects are per unit otherwise.
    """

    mixture: Mixture
    deviation: Floats
    mean: Floats
    level: float
    ranked: bool

    @classmethod
    def of(cls, mixture: Mixture, X: NDArray[np.float64] | None, level: float) -> Terms:
        """Rank the terms by the deviations of the rows of the fit, or else of these rows."""
        d = mixture.coef.shape[1]
        if mixture.rows is not None:
            deviation, mean = mixture.rows.deviation, mixture.rows.mean
        elif X is not None:
            deviation, mean = X.std(axis=0), X.mean(axis=0)
        else:
            deviation, mean = np.ones(d), np.zeros(d)
        ranked = mixture.rows is not None or X is not None
        return cls(mixture, np.asarray(deviation), np.asarray(mean), level, ranked)

    @cached_property
    def effects(self) -> Floats:
        """Change of the response for one deviation of a feature, (m, d)."""
        return np.asarray(self.mixture.coef * self.deviation)

    @cached_property
    def order(self) -> Ints:
        """Features by their largest effect in any regime, at most as many as the page holds."""
        largest = np.abs(self.effects).max(axis=0)
        return np.argsort(-largest, kind="stable")[:MOST_FEATURES].astype(np.int64)

    def order_in(self, regime: int) -> list[int]:
        """Features that a regime uses, by their effect in it."""
        size = np.abs(self.effects[regime])
        return [int(i) for i in np.argsort(-size, kind="stable") if self.mixture.coef[regime, i]]

    @cached_property
    def bounds(self) -> Floats | None:
        """Intervals of the coefficients, the intercept last, (m, d + 1, 2); None if not known."""
        return None if self.mixture.inference is None else self.mixture.conf_int(self.level)

    @cached_property
    def tests(self) -> tuple[Floats, Floats]:
        """Values of t and p of the coefficients, the intercept last, (m, d + 1) each."""
        return self.mixture.t_values(), self.mixture.p_values()

    def name(self, feature: int) -> str:
        """Name a feature on the page."""
        return clean(self.mixture.feature_names[feature])

    @property
    def target(self) -> str:
        """Name of the response on the page."""
        return clean(self.mixture.target_name)

    @property
    def percent(self) -> str:
        """The level of the intervals, in words."""
        return f"{100 * self.level:g}%"
