"""Tables cut into parts, for tests that compare them with the same table in memory."""

from itertools import pairwise

from regimix.engines.partition import open_parts
from regimix.engines.parts import LocalParts, RawRows

__all__ = ["cut_anywhere", "pieces", "table_in_parts", "weights_of"]


def cut_anywhere(rng, n_rows, n_parts):
    """Where parts begin and end: empty ones and parts of one row are as likely as any."""
    inner = rng.integers(0, n_rows + 1, n_parts - 1)
    for part in range(1, n_parts - 1):
        if rng.random() < 0.4:
            inner[part] = min(inner[part - 1] + rng.integers(0, 2), n_rows)
    return [0, *sorted(inner.tolist()), n_rows]


def pieces(ends, X, y, weights=None):
    """The parts themselves."""
    return [
        RawRows(X[first:last], y[first:last], None if weights is None else weights[first:last])
        for first, last in pairwise(ends)
    ]


def table_in_parts(ends, X, y, weights=None, *, fit_intercept=True):
    """An engine for a table that is cut; its ``parts`` count the passes."""
    parts = LocalParts(lambda: iter(pieces(ends, X, y, weights)))
    names = tuple(f"x{i}" for i in range(X.shape[1]))
    return open_parts(parts, names, fit_intercept=fit_intercept)


def weights_of(rng, n, kind):
    """Whole or real weights, some of them zero, or none at all."""
    if kind is None:
        return None
    weights = rng.integers(0, 4, n).astype(float) if kind == "whole" else rng.exponential(size=n)
    weights[rng.random(n) < 0.1] = 0.0
    weights[:9] = 1.5 if kind == "real" else 2.0
    return weights
