"""The paper's definitions of components: separation, affine error and subspaces.

Definition 1 (``def:separation``), Definition 3 (``def:affine``) for given directions and
Definition 9 (``def:subspace``), each exact. Definition 2 is in ``theory.regularity``, Definition 10
(ε-recovery) in ``regimix.metrics``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import orth

from regimix import synth
from regimix.data.validation import read_floats, read_matrix
from regimix.errors import DataError, ParameterError, read_count, read_number

Floats = NDArray[np.float64]

# Directions with less than this share of the largest singular value are not spanned.
RANK_TOLERANCE = 1e-10
# From the floor and ceiling of products such as 0.29 * 100 that mean a whole number.
ROUNDING = 1e-9


def separation(coef: ArrayLike) -> float:
    """Compute Q, the largest that Definition 1 (i) (``def:separation``) allows.

    The smallest distance between two components (rows of ``coef``) over the largest norm of one: at
    most 2, infinite for one component, zero where two coincide.
    """
    return synth.separation_of(read_matrix("coef", coef))


def local_separation(coef: ArrayLike) -> Floats:
    """Compute Q_j of each component (Definition 1 (ii), ``def:separation``).

    The distance to the nearest other component (row of ``coef``) over the component's own norm;
    Q ≤ Q_j. Infinite for one component, and for a component of norm zero apart from all others.
    """
    return synth.local_separation_of(read_matrix("coef", coef))


def own_slack(n_own: int, n_rows: int, keep: float) -> int:
    """Compute ⌈(τ*_(j) − τ)n⌉, the own rows that are left out even if no foreign row is kept.

    ``n_own`` are the clean rows of the component, τ*_(j)n; ``keep`` is τ, at most their share.
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

    The largest V such that the (V + slack)-th largest own value is at least the V-th smallest other
    one; 0 if there is none. Definition 3 states one v₂ for all other rows; the proof of Theorem 4
    needs one for each other component, θ_l − θ_t. Pass ``others`` as one matrix for the first
    reading, as a sequence of matrices for the second; for two components they agree.

    Parameters
    ----------
    own : array-like of shape (n_j, d)
        X_(j), the clean rows of component j.
    others : array-like of shape (n_o, d), or a sequence of such
        X_(−j), the clean rows of the other components.
    own_direction, other_directions : array-like of shape (d,); (len(others), d) for a sequence
        v₁, for example θ_j − θ_t, and v₂, with their lengths.
    slack : int
        ⌈(τ*_(j) − τ_j)n⌉, see ``own_slack``.
    """
    rows, groups = row_groups(own, others)
    d = rows.shape[1]
    v1 = vector("own_direction", own_direction, d)
    v2 = read_matrix("other_directions", np.atleast_2d(np.asarray(other_directions)), d)
    if len(v2) != len(groups):
        raise DataError(
            f"other_directions has {len(v2)} direction(s) for {len(groups)} group(s) of other "
            "rows; pass one for each."
        )
    values = np.concatenate([np.abs(group @ v) for group, v in zip(groups, v2, strict=True)])
    falling = np.sort(np.abs(rows @ v1))[::-1]
    return largest_count(falling, np.sort(values), read_count("slack", slack, 0))


def row_groups(own: ArrayLike, others: Any) -> tuple[Floats, list[Floats]]:
    """Check own rows and groups of other rows."""
    rows = read_matrix("own", own)
    single = isinstance(others, np.ndarray) or (len(others) > 0 and np.ndim(others[0]) < 2)
    groups = [others] if single else list(others)
    return rows, [read_matrix("others", group, rows.shape[1]) for group in groups]


def largest_count(own: Floats, others: Floats, slack: int) -> int:
    """Find the largest V of Definition 3, from falling own values and rising other ones."""
    most = max(0, min(len(own) - slack, len(others)))
    # Own values fall and other values rise with V, so what holds for V holds for all before.
    return int(np.count_nonzero(own[slack : slack + most] >= others[:most]))


def subspace_distance(basis: ArrayLike, coef: ArrayLike) -> float:
    """Compute the smallest ε for which a subspace is ε-close (Definition 9, ``def:subspace``).

    ‖(I − ÛÛᵀ)U_m‖, the sine of the largest angle between the span of the components (rows of
    ``coef``) and the subspace Û, spanned by the columns of ``basis``: from 0, where all components
    lie in it, to 1.
    """
    columns = read_matrix("basis", basis)
    found = orth(columns, RANK_TOLERANCE)
    wanted = orth(read_matrix("coef", coef, len(columns)).T, RANK_TOLERANCE)
    if wanted.shape[1] == 0:
        return 0.0
    outside = wanted - found @ (found.T @ wanted)
    return min(1.0, float(np.linalg.norm(outside, 2)))


# --- checks of what the functions of this folder are given ----------------------------------------


def vector(name: str, value: ArrayLike, size: int) -> Floats:
    """Check a finite vector of given size."""
    values = read_floats(name, value, f"{size} numbers")
    if values.shape != (size,) or not np.isfinite(values).all():
        raise DataError(f"{name} must be {size} finite numbers; got shape {values.shape}.")
    return values


def fraction(name: str, value: Any) -> float:
    """Check a number above 0 and at most 1."""
    return read_number(name, value, lambda share: 0 < share <= 1, "above 0 and at most 1")


def positive(name: str, value: Any, *, lowest: float = 0.0) -> float:
    """Check a finite number above zero and at least ``lowest``."""
    allowed = f"a finite number, {f'at least {lowest:g}' if lowest else 'positive'}"
    return read_number(name, value, lambda v: 0 < v < np.inf and v >= lowest, allowed)
