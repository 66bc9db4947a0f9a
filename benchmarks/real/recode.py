"""The same rows told in other ways: a good answer does not depend on them.

Each change keeps the span of the features and the constant, so the best models are the same.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.data import Floats
from benchmarks.real.tables import Table

Rng = np.random.Generator


def other_reference(table: Table, rng: Rng) -> Floats:
    """Code each category against another of its levels; without categories, nothing changes."""
    X = table.X.copy()
    for group in table.groups:
        replaced = group[int(rng.integers(len(group)))]
        X[:, replaced] = 1 - table.X[:, list(group)].sum(axis=1)
    return X


def other_units(table: Table, rng: Rng) -> Floats:
    """Stretch and shift every column, by factors from a thousandth to a thousand."""
    d = table.X.shape[1]
    factors = 10 ** rng.uniform(-3, 3, d)
    return np.asarray((table.X + table.X.std(axis=0) * rng.normal(0, 3, d)) * factors)


def rotated(table: Table, rng: Rng) -> Floats:
    """Rotate the standardised columns at random."""
    d = table.X.shape[1]
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    spread = table.X.std(axis=0)
    standard = (table.X - table.X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return np.asarray(standard @ (Q * np.sign(np.diag(R))))


def other_order(table: Table, rng: Rng) -> Floats:
    """Put the columns in another order, the last ones first; a single column stays."""
    d = table.X.shape[1]
    return np.roll(table.X, int(rng.integers(1, d)) if d > 1 else 0, axis=1)


RECODINGS: dict[str, Callable[[Table, Rng], Floats]] = {
    "reference": other_reference,
    "units": other_units,
    "rotation": rotated,
    "order": other_order,
}
