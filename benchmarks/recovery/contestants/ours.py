"""regimix itself, and Algorithm 2 as the paper states it."""

from typing import Any

from benchmarks.recovery.cells import Cell
from benchmarks.recovery.judge import Found
from benchmarks.recovery.sample import Sample
from regimix import global_ilts

SHORTEST = 0.1  # seconds that the net is granted at least


def nothing_given(cell: Cell, sample: Sample, seed: int, _budget: float) -> Found:
    """Search with the default settings."""
    return _fit(cell, sample, seed)


def count_given(cell: Cell, sample: Sample, seed: int, _budget: float) -> Found:
    """Search for a known number of components."""
    return _fit(cell, sample, seed, n_components=cell.m)


def algorithm_2(cell: Cell, sample: Sample, seed: int, budget: float) -> Found:
    """Walk an epsilon-net; shares by the geometric search of the paper's footnote."""
    return _fit(
        cell,
        sample,
        seed,
        search="net",
        n_components=cell.m,
        time_limit=max(budget, SHORTEST),
    )


def _fit(cell: Cell, sample: Sample, seed: int, **settings: Any) -> Found:
    mixture = global_ilts(
        sample.X, sample.y, fit_intercept=cell.fit_intercept, random_state=seed, **settings
    )
    return Found(mixture.coef, mixture.intercept, note=mixture.stopped)
