"""Affine error V(Δ) (Definition 3, ``def:affine``): how many foreign rows can slip in.

The definition takes the largest V over directions v₁, v₂ with ‖v₁‖/‖v₂‖ = Δ such that the
(V + slack)-th largest |X_(j)v₁| is at least the V-th smallest |X_(−j)v₂|. The two directions are
free of each other, so with

- α(r), the largest r-th largest |x·v| over own rows x and unit vectors v,
- β(r), the smallest r-th smallest |x·v| over other rows,

V(Δ) is the largest V with Δ·α(V + slack) ≥ β(V). Both are searched once, for all r, and serve every
Δ. What a direction attains bounds V(Δ) from below. From above:

- cells of the unit sphere (``theory.sphere``; up to six features): within a chord ε of a
  direction v, |x·v| changes by at most ε‖x‖, row by row;
- fourth moments (``theory.moments``): r values of at least α have squares that add up to at most
  kc + √(kF(c)) with k = r, so α² ≤ c + √(F(c)/r); and β² ≥ c − √(F(c)/r) likewise;
- the r-th largest length of an own row bounds α(r).

**One direction or several.** Definition 3 states one v₂ for all other rows. The proof of Theorem 4
needs one for each other component, θ_l − θ_t. Pass ``others`` as one matrix for the first reading,
as a sequence of matrices for the second; for two components they agree. With several groups, the
best directions of each are found apart, and their values merged: β(V) is the V-th smallest of all.

**The floor.** Some direction is orthogonal to any d − 1 other rows, so V(Δ) ≥ d − 1 for every Δ > 0
(with enough rows; (m − 1)(d − 1) in the second reading). Lemma 6 states c·log n there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import DataError, ParameterError
from regimix.theory.checks import ROUNDING, count, fraction, matrix, positive, vector
from regimix.theory.envelopes import Envelope, envelope

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["AffineCurve", "AffineError", "affine_curve", "affine_error_at", "own_slack"]

Floats = NDArray[np.float64]


def own_slack(n_own: int, n_rows: int, keep: float) -> int:
    """Compute ⌈(τ*_(j) − τ)n⌉, the own rows that are left out even if no foreign row is kept.

    Parameters
    ----------
    n_own : int
        Clean rows of the component, τ*_(j)n.
    n_rows : int
        All rows.
    keep : float
        τ, at most the clean share of the component.
    """
    kept = math.floor(fraction("keep", keep) * n_rows * (1 + ROUNDING))
    if kept > n_own:
        raise ParameterError(
            f"keep={keep!r} of {n_rows} rows keeps {kept}, but the component has only {n_own} "
            f"clean ones; the theory needs keep at most {n_own / n_rows:.4g}."
        )
    return n_own - kept


def affine_error_at(
    own: ArrayLike,
    others: ArrayLike | Sequence[ArrayLike],
    own_direction: ArrayLike,
    other_directions: ArrayLike,
    *,
    slack: int = 0,
) -> int:
    """Compute V of Definition 3 (``def:affine``) for given directions v₁ and v₂, exactly.

    Parameters
    ----------
    own : array-like of shape (n_j, d)
        X_(j), the clean rows of component j.
    others : array-like of shape (n_o, d), or a sequence of such
        X_(−j): the clean rows of all other components in one matrix, or one matrix for each.
    own_direction : array-like of shape (d,)
        v₁ with its length, for example θ_j − θ_t.
    other_directions : array-like of shape (d,), or (len(others), d) for a sequence
        v₂ with its length, one for all other rows as Definition 3 says, or one for each other
        component as the proof of Theorem 4 needs it (θ_l − θ_t).
    slack : int
        ⌈(τ*_(j) − τ_j)n⌉, see ``own_slack``.

    Returns
    -------
    int
        The largest V such that the (V + slack)-th largest own value is at least the V-th smallest
        other one; 0 if there is none.
    """
    rows, groups = _read(own, others)
    d = rows.shape[1]
    v1 = vector("own_direction", own_direction, d)
    v2 = matrix("other_directions", np.atleast_2d(np.asarray(other_directions)), d)
    if len(v2) != len(groups):
        raise DataError(
            f"other_directions has {len(v2)} direction(s) for {len(groups)} group(s) of other "
            "rows; pass one for each."
        )
    values = [np.abs(group @ v) for group, v in zip(groups, v2, strict=True)]
    return _largest_v(
        np.sort(np.abs(rows @ v1))[::-1], np.sort(np.concatenate(values)), count("slack", slack, 0)
    )


@dataclass(frozen=True)
class AffineError:
    """V(Δ) for one Δ: what a search found, and what is certainly not exceeded.

    Attributes
    ----------
    delta : float
    lower : int
        Attained by the directions below, so V(Δ) is at least that.
    upper : int
        V(Δ) is at most that.
    own_direction : ndarray of shape (d,)
        v₁, of length Δ.
    other_directions : ndarray of shape (groups, d)
        v₂, of length one, for each group of other rows.
    """

    delta: float
    lower: int
    upper: int
    own_direction: Floats
    other_directions: Floats


@dataclass(frozen=True, eq=False)
class AffineCurve:
    """V as a function of Δ (Definition 3): call it with a number to get an ``AffineError``.

    Attributes
    ----------
    n_own, n_others, slack : int
        Own and other rows, and how many own rows are left out in any case.
    """

    n_own: int
    n_others: int
    slack: int
    _own: Envelope
    _others: tuple[Envelope, ...]

    def __call__(self, delta: float) -> AffineError:
        """Bound V(Δ) from both sides, for Δ above 0; the paper needs it up to 1."""
        delta = positive("delta", delta)
        found = np.concatenate([other.found for other in self._others])
        certain = np.concatenate([other.certain for other in self._others])
        lower = _largest_v(delta * self._own.found, np.sort(found), self.slack)
        upper = _largest_v(delta * self._own.certain, np.sort(certain), self.slack)
        edge = np.sort(found)[max(lower, 1) - 1] if found.size else 0.0
        directions = []
        for other in self._others:
            inside = int(np.count_nonzero(other.found <= edge))
            directions.append(other.direction[max(inside, 1) - 1])
        place = min(max(lower + self.slack, 1), self.n_own) - 1
        return AffineError(
            delta, lower, upper, delta * self._own.direction[place], np.array(directions)
        )


def affine_curve(
    own: ArrayLike,
    others: ArrayLike | Sequence[ArrayLike],
    *,
    slack: int = 0,
    most_directions: int = 4000,
    random_state: int = 0,
) -> AffineCurve:
    """Search directions once for V(Δ) (Definition 3, ``def:affine``) at every Δ.

    For the largest over components j, as the definition has it, take the largest of their curves;
    Theorem 4 needs that of its own component only.

    Parameters
    ----------
    own, others, slack
        As for ``affine_error_at``.
    most_directions : int
        Directions that are tried for all ranks; up to six features they cover the sphere and
        certify the upper bound.
    random_state : int
        Seed of the directions.

    Returns
    -------
    AffineCurve
    """
    rows, groups = _read(own, others)
    rng = np.random.default_rng(random_state)
    most = count("most_directions", most_directions, 1)
    return AffineCurve(
        n_own=len(rows),
        n_others=sum(map(len, groups)),
        slack=count("slack", slack, 0),
        _own=envelope(rows, most, rng, largest=True),
        _others=tuple(envelope(group, most, rng, largest=False) for group in groups),
    )


def _read(own: ArrayLike, others: Any) -> tuple[Floats, list[Floats]]:
    """Check own rows and groups of other rows."""
    rows = matrix("own", own)
    single = isinstance(others, np.ndarray) or (len(others) > 0 and np.ndim(others[0]) < 2)
    groups = [others] if single else list(others)
    return rows, [matrix("others", group, rows.shape[1]) for group in groups]


def _largest_v(own: Floats, others: Floats, slack: int) -> int:
    """Find the largest V of the definition; own values fall, other values rise."""
    most = max(0, min(len(own) - slack, len(others)))
    # Own values fall and other values rise with V, so what holds for V holds for all before.
    return int(np.count_nonzero(own[slack : slack + most] >= others[:most]))
