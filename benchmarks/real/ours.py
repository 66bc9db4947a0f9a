"""Fits of regimix through its public names, with what they warn of."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Floats
from regimix import MixedLinearRegression, TrimmedRegressor

NOTHING = "EvidenceWarning"
# Warnings that another search may find another answer.
UNSURE = ("UnrepeatedWarning",)


@dataclass(frozen=True)
class Fit:
    """What a mixture fit found: score in nats, labels (−1: outliers), warnings by class name."""

    model: Any
    score: float
    count: int
    labels: NDArray[np.int64]
    found: bool
    warnings: tuple[str, ...]
    seconds: float

    @property
    def claimed(self) -> int:
        """Number of regimes, none where no relation is found."""
        return self.count if self.found else 0

    @property
    def has_rival(self) -> bool:
        """Whether it warned that one relation explains the rows as well."""
        return "RivalWarning" in self.warnings

    @property
    def unsure(self) -> bool:
        """Whether it warned that another search may find another answer."""
        return any(name in UNSURE for name in self.warnings)


@dataclass(frozen=True)
class Line:
    """What a robust fit of one line found."""

    coef: Floats
    intercept: float
    inliers: NDArray[np.bool_]
    warnings: tuple[str, ...]


def mixed(X: Floats, y: Floats, seed: int, **options: Any) -> Fit:
    """Fit ``MixedLinearRegression`` with its defaults, but for the options given."""
    began = time.process_time()
    with _heard() as names:
        model = MixedLinearRegression(random_state=seed, **options).fit(X, y)
    seconds = time.process_time() - began
    mixture, told = model.mixture_, tuple(names)
    found = not mixture.found_nothing and NOTHING not in told
    score, count = float(mixture.evidence), int(mixture.n_components)
    return Fit(model, score, count, np.asarray(model.labels_), found, told, seconds)


def trimmed(X: Floats, y: Floats, seed: int) -> Line:
    """Fit ``TrimmedRegressor`` with its defaults."""
    with _heard() as names:
        model = TrimmedRegressor(random_state=seed).fit(X, y)
    inliers = np.asarray(model.inlier_mask_)
    return Line(np.asarray(model.coef_), float(model.intercept_), inliers, tuple(names))


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collect the class names of warnings, each once, in the order in which they come."""
    names: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield names
    names += dict.fromkeys(warning.category.__name__ for warning in caught)
