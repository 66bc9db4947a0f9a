"""Compare what a contestant found with the truth."""

from dataclasses import dataclass

import numpy as np

from benchmarks.data import Floats
from benchmarks.recovery.cells import Cell
from benchmarks.recovery.sample import Sample
from regimix import metrics


@dataclass(frozen=True)
class Found:
    """What a contestant found: (k, d) and (k,). ``seconds`` where it measured them itself."""

    coef: Floats
    intercept: Floats
    seconds: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """How near it is; ``worst`` is the largest error of a component, infinite if one is missing."""

    success: bool
    right_count: bool
    count: int
    found: int
    worst: float


def judge(cell: Cell, sample: Sample, answer: Found) -> Verdict:
    """Ask for every component within the cell's distance, and for the right number of them."""
    count = len(answer.coef)
    errors = _errors(cell, sample, answer)
    found = int((errors < cell.success).sum())
    right_count = count == cell.m
    if cell.signal_to_noise is not None:
        success = right_count  # with little or no signal, the coefficients are anybody's guess
    elif cell.kind == "adversarial":
        success = found == cell.m  # rows that agree on a wrong model are a component too
    else:
        success = right_count and found == cell.m
    return Verdict(success, right_count, count, found, float(errors.max()))


def told(cell: Cell, sample: Sample) -> Found:
    """Fit least squares to each component, told the true labels."""
    design = with_ones(sample.X, cell.fit_intercept)
    theta = np.array(
        [
            np.linalg.lstsq(design[sample.labels == j], sample.y[sample.labels == j])[0]
            for j in range(cell.m)
        ]
    )
    return from_design(theta, cell)


def with_ones(X: Floats, ones: bool) -> Floats:
    """Append the column of ones that an intercept needs."""
    return np.column_stack([X, np.ones(len(X))]) if ones else X


def from_design(theta: Floats, cell: Cell) -> Found:
    """Split coefficients of ``with_ones`` into those of the features and the intercepts."""
    if cell.fit_intercept:
        return Found(theta[:, :-1], theta[:, -1])
    return Found(theta, np.zeros(len(theta)))


def _errors(cell: Cell, sample: Sample, answer: Found) -> Floats:
    """Return the distance of each true component from its estimate, infinite without one."""
    finite = np.isfinite(answer.coef).all(axis=1) & np.isfinite(answer.intercept)
    estimate, truth = answer.coef[finite], sample.coef
    if cell.fit_intercept:
        estimate = metrics.with_intercept(estimate, answer.intercept[finite])
        truth = metrics.with_intercept(truth, sample.intercept)
    return metrics.match_components(estimate, truth).distance
