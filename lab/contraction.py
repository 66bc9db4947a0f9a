"""The one-step contraction of Theorem 4 (``thm:local-1``), beside what a round really does.

**How the theorem is read.** Its factor is 2ψ+(V(Δ) + γ*τ*_min n) / ψ−(⌊τn⌋). V is taken at the
directions of the round itself: θ_j − θ_t for own rows and θ_l − θ_t for the rows of each other
component l. Definition 3 states one direction for all other rows; the proof counts rows of every
other component along its own, so for three components or more one direction each is what it needs.
That V is at most the largest over all directions, so the factor computed here is at most the one of
the theorem, and a round that obeys it obeys the theorem.

ψ+ and ψ− are known up to certified bounds (``theory.Regularity``), and so is the factor. A ratio
below its lower end is proven to obey the theorem, one above its upper end would refute it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import read_matrix
from regimix.errors import DataError, ParameterError, read_count
from regimix.synth import nearest_distances
from regimix.theory import Interval, Regularity, affine_error_at, own_slack
from regimix.theory.definitions import vector
from regimix.trimmed.ilts import RoundState, ilts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Contraction", "contraction", "contraction_trace"]

Floats = NDArray[np.float64]

# Distances below this share of the component's size are zero up to rounding.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Contraction:
    """One round of ILTS towards component j, and the bound of Theorem 4 for it.

    Attributes
    ----------
    distance, next_distance : float
        ‖θ_t − θ_j‖ and ‖θ_{t+1} − θ_j‖; zero where only rounding is left.
    delta : float
        Δ of the theorem: 2‖θ_t − θ_j‖ / (Q_j ‖θ_j‖); zero for one component.
    foreign, corrupted : int
        Rows of other components, and corrupted rows, that the round kept.
    affine : int
        V of Definition 3 at the round's own directions, one for each other component; ``foreign``
        is never more.
    n_corrupted : int
        γ* τ*_min n, all corrupted rows.
    plus : Interval
        ψ+(affine + n_corrupted).
    minus : Interval
        ψ−(⌊τn⌋).
    """

    distance: float
    next_distance: float
    delta: float
    foreign: int
    corrupted: int
    affine: int
    n_corrupted: int
    plus: Interval
    minus: Interval

    @property
    def ratio(self) -> float:
        """Observed ‖θ_{t+1} − θ_j‖ / ‖θ_t − θ_j‖; zero from the component to itself."""
        if self.next_distance == 0:
            return 0.0
        return self.next_distance / self.distance if self.distance > 0 else np.inf

    @property
    def in_basin(self) -> bool:
        """Whether the theorem speaks: θ_t is at most half way to the nearest other component."""
        return self.delta <= 1.0

    @property
    def factor(self) -> Interval:
        """The theorem's factor 2ψ+/ψ−, known up to the bounds of both; infinite if ψ− may be 0."""
        low = 2 * self.plus.lower / self.minus.upper if self.minus.upper > 0 else np.inf
        high = 2 * self.plus.upper / self.minus.lower if self.minus.lower > 0 else np.inf
        return Interval(low, high)

    @property
    def verdict(self) -> str:
        """Whether the round obeys the theorem, proven either way where possible.

        "holds", "violated", "undecided" (the ratio is within the bounds of the factor), or
        "does not apply" (outside the basin).
        """
        if not self.in_basin:
            return "does not apply"
        if self.ratio <= self.factor.lower:
            return "holds"
        return "violated" if self.ratio > self.factor.upper else "undecided"


def contraction(
    X: ArrayLike,
    y: ArrayLike,
    coef: ArrayLike,
    labels: ArrayLike,
    component: int,
    theta: ArrayLike,
    *,
    keep: float,
    most_directions: int = 20_000,
) -> Contraction:
    """Make one round from ``theta`` and compute the factor of Theorem 4 (``thm:local-1``) for it.

    Parameters
    ----------
    theta : array-like of shape (d,)
        θ_t.
    X, y, coef, labels, component, keep, most_directions
        As for ``contraction_trace``.
    """
    return contraction_trace(
        X, y, coef, labels, component, theta,
        keep=keep, max_iter=1, most_directions=most_directions,
    )[0]  # fmt: skip


def contraction_trace(
    X: ArrayLike,
    y: ArrayLike,
    coef: ArrayLike,
    labels: ArrayLike,
    component: int,
    start: ArrayLike,
    *,
    keep: float,
    max_iter: int = 50,
    most_directions: int = 20_000,
) -> tuple[Contraction, ...]:
    """Run ILTS from ``start`` and compute, for every round, the factor of Theorem 4 beside it.

    Parameters
    ----------
    X, y : array-like of shape (n, d), (n,)
        Rows of the paper's model: no intercept and no noise.
    coef : array-like of shape (m, d)
        The true components.
    labels : array-like of shape (n,)
        The true labels, -1 for corrupted rows.
    component : int
        j, the component to contract to.
    start : array-like of shape (d,)
        θ_0.
    keep : float
        τ, below the component's clean share.
    max_iter : int
        Most rounds.
    most_directions : int
        Effort for each bound on ψ±, see ``feature_regularity``.

    Returns
    -------
    tuple of Contraction
        One for each round, until the component is met or the kept rows repeat.
    """
    rows = read_matrix("X", X)
    n, d = rows.shape
    target = vector("y", y, n)
    true = read_matrix("coef", coef, d)
    member = _checked_labels(labels, n, len(true))
    j = read_count("component", component, 0, len(true) - 1)
    path = _iterates(rows, target, vector("start", start, d), keep, max_iter)
    judge = _Judge(
        rows, target, true, member, j, keep, Regularity(rows, most_directions=most_directions)
    )
    rounds = []
    for now, then in pairwise(path):
        rounds.append(judge(now, then))
        if rounds[-1].next_distance == 0:
            break
    return tuple(rounds)


class _Judge:
    """Computes the bound of Theorem 4 for rounds towards one component of one table."""

    def __init__(
        self,
        X: Floats,
        y: Floats,
        coef: Floats,
        labels: NDArray[np.int64],
        component: int,
        keep: float,
        regularity: Regularity,
    ) -> None:
        self._X, self._y, self._coef, self._labels, self._j = X, y, coef, labels, component
        self._regularity = regularity
        self._own = X[labels == component]
        self._slack = own_slack(len(self._own), len(X), keep)
        self._kept = len(self._own) - self._slack
        if self._kept < 1:
            raise ParameterError(f"keep={keep!r} of {len(X)} rows keeps no row at all.")
        self._others = [
            other for other in range(len(coef)) if other != component and (labels == other).any()
        ]
        self._nearest = float(nearest_distances(coef)[component])
        self._zero = ROUNDING * max(float(np.abs(coef).max()), np.finfo(np.float64).tiny)

    def __call__(self, now: Floats, then: Floats) -> Contraction:
        """Judge the round from one iterate to the next."""
        goal = self._coef[self._j]
        distance, next_distance = self._distance(now - goal), self._distance(then - goal)
        residuals = np.abs(self._y - self._X @ now)
        kept = self._labels[np.argsort(residuals, kind="stable")[: self._kept]]
        n_corrupted = int(np.count_nonzero(self._labels < 0))
        affine = 0
        if self._others:
            affine = affine_error_at(
                self._own,
                [self._X[self._labels == other] for other in self._others],
                goal - now,
                self._coef[self._others] - now,
                slack=self._slack,
            )
        return Contraction(
            distance=distance,
            next_distance=next_distance,
            delta=2 * distance / self._nearest,
            foreign=int(np.count_nonzero((kept >= 0) & (kept != self._j))),
            corrupted=int(np.count_nonzero(kept < 0)),
            affine=affine,
            n_corrupted=n_corrupted,
            plus=self._regularity.plus(affine + n_corrupted),
            minus=self._regularity.minus(self._kept),
        )

    def _distance(self, gap: Floats) -> float:
        length = float(np.linalg.norm(gap))
        return length if length > self._zero else 0.0


def _iterates(X: Floats, y: Floats, start: Floats, keep: float, max_iter: int) -> list[Floats]:
    """Record the iterates θ_0, θ_1, … of Algorithm 1."""
    path: list[Floats] = []

    def record(state: RoundState) -> None:
        path.append(state.coef)

    fit = ilts(
        X, y, start, keep=keep, max_iter=read_count("max_iter", max_iter, 1), callback=record
    )
    assert not isinstance(fit, tuple)
    if len(path) == 1:  # the start was a fixed point already
        path.append(fit.coef)
    return path


def _checked_labels(value: ArrayLike, n_rows: int, n_components: int) -> NDArray[np.int64]:
    """Check labels: a component from 0 for every row, -1 for a corrupted one."""
    labels = np.asarray(value)
    whole = labels.dtype.kind in "iu" and labels.shape == (n_rows,)
    if not whole or (labels.size and not -1 <= labels.min() <= labels.max() < n_components):
        raise DataError(
            f"labels must be {n_rows} whole numbers, components from 0 to {n_components - 1} and "
            f"-1 for corrupted rows; got shape {labels.shape} of {labels.dtype}."
        )
    return labels.astype(np.int64)
