"""Feature regularity (Definition 2, ``def:feature``) of tiny tables: every subset of rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from regimix.errors import ParameterError
from regimix.theory.checks import count, matrix
from regimix.theory.interval import Interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["FeatureRegularity", "exact_feature_regularity"]

# Subsets that are looked at one by one: seconds.
MOST_SUBSETS = 500_000


@dataclass(frozen=True)
class FeatureRegularity:
    """ψ+(k) and ψ−(k) of Definition 2 for one k.

    Attributes
    ----------
    k : int
        Rows of the subsets.
    plus : Interval
        ψ+(k), the largest eigenvalue of X_SᵀX_S over subsets S of k rows.
    minus : Interval
        ψ−(k), the smallest eigenvalue of X_SᵀX_S over subsets S of k rows.
    """

    k: int
    plus: Interval
    minus: Interval


def exact_feature_regularity(X: ArrayLike, k: int) -> FeatureRegularity:
    """Compute ψ+(k) and ψ−(k) (Definition 2, ``def:feature``) by looking at every subset.

    Parameters
    ----------
    X : array-like of shape (n, d)
    k : int
        Rows of a subset, from 0 to n.

    Returns
    -------
    FeatureRegularity
        Intervals of one point each.

    Raises
    ------
    ParameterError
        Where there are too many subsets; ``feature_regularity`` gives bounds then.
    """
    rows = matrix("X", X)
    n, k = len(rows), count("k", k, 0, len(rows))
    if comb(n, k) > MOST_SUBSETS:
        raise ParameterError(
            f"{n} rows have {comb(n, k):.3g} subsets of {k}; at most {MOST_SUBSETS:,} are looked "
            "at. Use feature_regularity for certified bounds, or fewer rows."
        )
    if k == 0:
        return FeatureRegularity(0, Interval(0.0, 0.0), Interval(0.0, 0.0))
    products = np.einsum("ia,ib->iab", rows, rows)
    subsets = np.fromiter(chain.from_iterable(combinations(range(n), k)), dtype=np.intp)
    lowest, highest = np.inf, 0.0
    for part in np.array_split(subsets.reshape(-1, k), 1 + len(subsets) // 100_000):
        grams = np.zeros((len(part), *products.shape[1:]))
        for column in part.T:
            grams += products[column]
        values = np.linalg.eigvalsh(grams)
        lowest = min(lowest, float(values[:, 0].min()))
        highest = max(highest, float(values[:, -1].max()))
    lowest = max(lowest, 0.0) if k >= rows.shape[1] else 0.0
    return FeatureRegularity(k, Interval(highest, highest), Interval(lowest, lowest))
