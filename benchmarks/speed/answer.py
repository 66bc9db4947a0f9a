"""Is the answer right? Every model found, and as near to the truth as told least squares."""

from dataclasses import dataclass

import numpy as np

from benchmarks.data import Floats, Mixed
from regimix import MixedLinearRegression, metrics

NEAR = 0.2  # the distance at which the recovery benchmark counts a component as found
SLACK = 1.25  # times the error of least squares told the labels, as asked there


@dataclass(frozen=True)
class Answer:
    """How many components were given and found, and the worst error beside that of told fits."""

    given: int
    found: int
    wanted: int
    error: float
    told_error: float

    @property
    def ratio(self) -> float:
        return self.error / self.told_error

    @property
    def fault(self) -> str:
        """Say what is wrong with it; empty where nothing is."""
        if self.found < self.wanted:
            return f"wrong answer: found {self.found} of {self.wanted} components"
        if self.given > self.wanted:
            return f"wrong answer: {self.given} components instead of {self.wanted}"
        return ""


def check(model: MixedLinearRegression, sample: Mixed, told: Floats) -> Answer:
    """Compare a fitted model with the truth, and with ``told_fits``."""
    estimate = metrics.with_intercept(model.coef_, model.intercept_)
    errors = metrics.match_components(estimate, sample.theta).distance
    told_errors = np.linalg.norm(told - sample.theta, axis=1)
    return Answer(
        len(estimate),
        int((errors < NEAR).sum()),
        len(sample.theta),
        float(errors.max()),
        float(told_errors.max()),
    )


def told_fits(sample: Mixed) -> Floats:
    """Fit least squares to the rows of each model, told which they are."""
    columns = sample.X.shape[1] + 1
    theta = np.empty((len(sample.theta), columns))
    for j in range(len(theta)):
        mine = sample.labels == j
        design = np.column_stack([sample.X[mine], np.ones(np.count_nonzero(mine))])
        theta[j] = least_squares(design, sample.y[mine])
    return theta


def least_squares(X: Floats, y: Floats) -> Floats:
    """Solve the normal equations: the unit in which fits are measured."""
    return np.linalg.solve(X.T @ X, X.T @ y)
