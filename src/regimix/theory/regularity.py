"""Feature regularity ψ+(k) and ψ−(k) (Definition 2, ``def:feature``): exact, or certified.

Both are extremes over subsets of k rows, and equally over directions v: with the squares
s_i = (x_i·v)², ψ+(k) is the largest sum of the k largest squares over all unit vectors, ψ−(k) the
smallest sum of the k smallest. Subsets are too many; directions have only d dimensions.

One side of each is attained. *Alternating optimisation* takes the k extreme squares along a
direction, then the extreme eigenvector of those rows, and so on: ψ+ never falls, ψ− never rises.

The other side is proven. For ψ+(k) from above, the least of

- λ_max(XᵀX): rows left out would only add;
- the sum of the k largest ‖x_i‖²: the trace of X_SᵀX_S bounds its largest eigenvalue;
- the largest ‖x_i‖² + the k − 1 largest |x_i·x_l|: Gershgorin's discs of X_SX_Sᵀ (for few rows);
- fourth moments (``theory.directions``; best for many features);
- the unit sphere cut into cells (``theory.directions``; up to six features): √(sum of the k largest
  squares) is a norm of v, so over a chord ε it changes by at most ε√ψ+(k).

For ψ−(k) from below, the largest of

- zero, which it is for k < d;
- λ_min(XᵀX) − ψ+(n − k): the k smallest squares are all squares without the n − k largest (Weyl);
- fourth moments, which say something for k above about 2n/3 of Gaussian rows;
- cells again, as in the paper's equation ``eqt:psi-minus``: over a chord ε the root changes by at
  most ε√ψ+(k).

For more than six features and k well below n, only zero is left: no efficient certificate is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regimix.data.validation import read_matrix
from regimix.errors import ParameterError, read_count
from regimix.theory.directions import (
    MOST_CELL_FEATURES,
    MOST_MOMENT_FEATURES,
    Extreme,
    FourthMoments,
    maximise,
)
from regimix.words import number

Floats = NDArray[np.float64]

# Subsets that are looked at one by one: seconds.
MOST_SUBSETS = 500_000
# So few subsets are looked at even when bounds would do.
FEW_SUBSETS = 2_000
# Rows whose pairwise products are computed for Gershgorin's discs.
MOST_PAIR_ROWS = 2_000
# Starts of the alternating optimisation, and its longest run; few in many dimensions, where a round
# costs much and starts differ little.
STARTS, FEW_STARTS, ROUNDS = 12, 4, 30
MANY_FEATURES = 50
# The search over cells stops at this share of √ψ+(k).
TOLERANCE = 1e-3
# Eigenvalues and sums carry rounding; certified bounds give that much away.
ROUNDING = 1e-10
# A difference beyond this share is no rounding.
WRONG = 1e-7


@dataclass(frozen=True)
class Interval:
    """Certified bounds: at least ``lower``, at most ``upper``; equal where the value is known."""

    lower: float
    upper: float

    @property
    def exact(self) -> bool:
        """Whether the two bounds agree."""
        return self.lower == self.upper

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        low, high = number(self.lower), number(self.upper)
        return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class FeatureRegularity:
    """ψ+(k) and ψ−(k) of Definition 2: extreme eigenvalues of X_SᵀX_S over subsets S of k rows."""

    k: int
    plus: Interval
    minus: Interval


def exact_feature_regularity(X: ArrayLike, k: int) -> FeatureRegularity:
    """Compute ψ+(k) and ψ−(k) (Definition 2, ``def:feature``) by looking at every subset.

    Too many subsets are refused; ``feature_regularity`` gives bounds then.
    """
    rows = read_matrix("X", X)
    n, k = len(rows), read_count("k", k, 0, len(rows))
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


def feature_regularity(
    X: ArrayLike, k: int, *, most_directions: int = 20_000, random_state: int = 0
) -> FeatureRegularity:
    """Bound ψ+(k) and ψ−(k) (Definition 2, ``def:feature``) from both sides, with certificates.

    ``plus.lower`` and ``minus.upper`` are attained by a subset of rows; ``plus.upper`` and
    ``minus.lower`` are proven, see the head of ``theory/regularity.py``. Exact for one feature,
    for k = n and for tables with few subsets; within a few per cent up to three or four features;
    for many features ``minus.lower`` is often zero.

    Up to six features a certificate by cells evaluates ``most_directions`` directions;
    ``random_state`` is the seed of the starts of the alternating optimisation.
    """
    return Regularity(X, most_directions=most_directions, random_state=random_state)(k)


class Regularity:
    """ψ± of one table for many k; remembers what does not depend on k."""

    def __init__(
        self, X: ArrayLike, *, most_directions: int = 20_000, random_state: int = 0
    ) -> None:
        self.X = read_matrix("X", X)
        self._most = read_count("most_directions", most_directions, 1)
        self._seed = random_state
        self._known: dict[tuple[str, int], Interval] = {}

    def __call__(self, k: int) -> FeatureRegularity:
        """Bound ψ±(k)."""
        k = read_count("k", k, 0, len(self.X))
        return FeatureRegularity(k, self.plus(k), self.minus(k))

    def plus(self, k: int) -> Interval:
        """Bound ψ+(k)."""
        return self._remembered("plus", k, self._bound_plus)

    def minus(self, k: int) -> Interval:
        """Bound ψ−(k)."""
        return self._remembered("minus", k, self._bound_minus)

    def attained_plus(self, k: int) -> float:
        """Find a subset of k rows with a large eigenvalue; cheap, and no more than ψ+(k)."""
        return max(self._alternate(k, largest=True)) if k else 0.0

    def attained_minus(self, k: int) -> float:
        """Find a subset of k rows with a small eigenvalue; cheap, and no less than ψ−(k)."""
        return min(self._alternate(k, largest=False)) if k >= self.X.shape[1] else 0.0

    def _remembered(self, side: str, k: int, bound: Callable[[int], Interval]) -> Interval:
        """Search only where no row, all rows, too few rows or few subsets give no answer."""
        n, d = self.X.shape
        if (side, k) not in self._known:
            if k == 0 or (side == "minus" and k < d):
                found = Interval(0.0, 0.0)
            elif k == n:
                value = max(0.0, float(self._eigenvalues[0 if side == "minus" else -1]))
                found = Interval(value, value)
            elif comb(n, k) <= FEW_SUBSETS:
                found = getattr(exact_feature_regularity(self.X, k), side)
            else:
                found = bound(k)
            self._known[side, k] = found
        return self._known[side, k]

    def _bound_plus(self, k: int) -> Interval:
        found = self.attained_plus(k)
        upper = min(
            float(self._eigenvalues[-1]),
            float(np.sort(self._lengths)[::-1][:k].sum()),
            self._discs(k),
            self._moments.largest_sum(k) if self._moments else np.inf,
        )
        if self.X.shape[1] <= MOST_CELL_FEATURES:
            cells = self._search_cells(k, np.sqrt(upper), largest=True)
            found, upper = max(found, cells.value**2), min(upper, cells.ceiling**2)
        # More than rounding between them would be a wrong certificate.
        assert found <= upper * (1 + WRONG)
        return Interval(found, max(found, upper * (1 + ROUNDING)))

    def _bound_minus(self, k: int) -> Interval:
        n, d = self.X.shape
        found = self.attained_minus(k)
        lower = max(
            0.0,
            float(self._eigenvalues[0]) - self.plus(n - k).upper,
            self._moments.smallest_sum(k) if self._moments else 0.0,
        )
        if d <= MOST_CELL_FEATURES:
            cells = self._search_cells(k, np.sqrt(self.plus(k).upper), largest=False)
            found = min(found, cells.value**2)
            lower = max(lower, max(0.0, -cells.ceiling) ** 2)
        largest = float(self._eigenvalues[-1])
        rounding = ROUNDING * largest
        assert found >= lower - WRONG * largest
        return Interval(min(found, max(0.0, lower - rounding)), max(0.0, found))

    def _search_cells(self, k: int, slope: float, *, largest: bool) -> Extreme:
        """Maximise the root of the largest sum, or minus that of the smallest, over directions."""
        sign = 1.0 if largest else -1.0

        def evaluate(directions: Floats, chords: Floats) -> tuple[Floats, Floats]:
            squares = (directions @ self.X.T) ** 2
            extreme = sign * np.partition(-sign * squares, k - 1, axis=1)[:, :k]
            signed = sign * np.sqrt(np.abs(extreme.sum(axis=1)))
            return signed, signed + chords * slope

        return maximise(evaluate, self.X.shape[1], tolerance=TOLERANCE * slope, most=self._most)

    def _alternate(self, k: int, *, largest: bool) -> list[float]:
        """Alternate between the k extreme rows along a direction and their extreme eigenvector."""
        sign, place = (1.0, -1) if largest else (-1.0, 0)
        sums = []
        for direction in self._starts(k, largest):
            best, vector = -np.inf, direction  # signed: larger is more extreme
            for _ in range(ROUNDS):
                squares = (self.X @ vector) ** 2
                rows = self.X[np.argpartition(-sign * squares, k - 1)[:k]]
                # All of them: asked for one among equals, LAPACK may return none.
                values, vectors = np.linalg.eigh(rows.T @ rows)
                value, vector = sign * float(values[place]), vectors[:, place]
                if value - best <= ROUNDING * abs(value):
                    break
                best = value
            sums.append(max(0.0, sign * max(best, value)))
        return sums

    def _starts(self, k: int, largest: bool) -> Floats:
        """Return starts: eigenvectors, long rows or gaps between rows, and random directions."""
        n, d = self.X.shape
        rng = np.random.default_rng([self._seed, k])
        each = (STARTS if d <= MANY_FEATURES else FEW_STARTS) // 2
        vectors = np.linalg.eigh(self.X.T @ self.X)[1].T
        starts = [*(vectors[-2:] if largest else vectors[:2]), *rng.standard_normal((each, d))]
        if largest:
            starts += list(self.X[np.argsort(-self._lengths)[:each]])
        elif d > 1:
            # Along the normal of d - 1 rows those rows' squares are zero.
            for _ in range(each):
                some = self.X[rng.choice(n, d - 1, replace=False)]
                starts.append(np.linalg.svd(some)[2][-1])
        return np.array([s / np.linalg.norm(s) for s in starts if np.linalg.norm(s) > 0])

    def _discs(self, k: int) -> float:
        """Bound the eigenvalues of X_S X_Sᵀ by Gershgorin's discs."""
        if len(self.X) > MOST_PAIR_ROWS:
            return np.inf
        off = self._pair_products
        others = np.sort(off, axis=1)[:, len(off) - k + 1 :]
        return float((self._lengths + others.sum(axis=1)).max())

    @cached_property
    def _pair_products(self) -> Floats:
        products = np.abs(self.X @ self.X.T)
        np.fill_diagonal(products, 0.0)
        return products

    @cached_property
    def _lengths(self) -> Floats:
        return np.asarray(np.einsum("ij,ij->i", self.X, self.X))

    @cached_property
    def _eigenvalues(self) -> Floats:
        return np.asarray(np.linalg.eigvalsh(self.X.T @ self.X))

    @cached_property
    def _moments(self) -> FourthMoments | None:
        return FourthMoments(self.X) if self.X.shape[1] <= MOST_MOMENT_FEATURES else None
