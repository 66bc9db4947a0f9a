"""Does a round of ILTS come closer? Tried on a sample, and beside the worst case of Theorem 4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.theory.affine import affine_error_at
from regimix.theory.findings import Finding, Verdict, small_is_good
from regimix.theory.regularity import Regularity
from regimix.theory.whitened import WhitenedFit

__all__ = ["Rounds", "contracts", "guaranteed", "observe_rounds"]

Floats = NDArray[np.float64]

# A round is tried from this share of the way to the nearest regime; Theorem 4 allows a half.
DISPLACEMENT = 0.25
# What it leaves of the error should be well below one.
SHRINKS, GROWS = 0.9, 1.0
# It keeps this share of the regime's rows: the theory needs fewer than all.
KEPT_SHARE = 0.9
# Starts tried for each regime, and rows that a round looks at.
DRAWS, ROUND_ROWS = 3, 4_000
# Rows that a worst case looks at, and directions for its certificate.
WORST_ROWS, WORST_DIRECTIONS = 1_000, 1_000


@dataclass(frozen=True)
class Rounds:
    """One real round towards each regime from a displaced start.

    Attributes
    ----------
    ratio : ndarray of shape (m,)
        Distance after over distance before, the worst of a few starts; nan where rows are too few.
    foreign : int
        V of Definition 3 at the worst start of the smallest regime.
    """

    ratio: Floats
    foreign: int


def observe_rounds(fit: WhitenedFit) -> Rounds:
    """Make one round of ILTS towards each regime from displaced starts, on a bounded sample."""
    rng = np.random.default_rng(0)
    X, y, labels = fit.X[:ROUND_ROWS], fit.y[:ROUND_ROWS], fit.labels[:ROUND_ROWS]
    room = fit.room
    ratios = np.full(len(fit.coef), np.nan)
    foreign = np.zeros(len(fit.coef), dtype=np.int64)
    for j, goal in enumerate(fit.coef):
        kept = int(KEPT_SHARE * np.count_nonzero(labels == j))
        if kept < X.shape[1]:
            continue
        steps = rng.standard_normal((DRAWS, X.shape[1]))
        steps *= DISPLACEMENT * room[j] / np.linalg.norm(steps, axis=1, keepdims=True)
        ratios[j] = 0.0
        for start in goal + steps:
            chosen = np.argsort(np.abs(y - X @ start), kind="stable")[:kept]
            after = _least_squares(X[chosen], y[chosen])
            ratio = float(np.linalg.norm(after - goal) / (DISPLACEMENT * room[j]))
            ratios[j] = max(ratios[j], ratio)
            foreign[j] = max(foreign[j], _foreign_rows(fit, j, start, kept))
    return Rounds(ratios, int(foreign[int(np.argmin(fit.shares))]))


def _least_squares(X: Floats, y: Floats) -> Floats:
    """Fit rows that are white already: normal equations lose nothing."""
    return np.asarray(np.linalg.pinv(X.T @ X, hermitian=True) @ (X.T @ y))


def _foreign_rows(fit: WhitenedFit, j: int, start: Floats, kept: int) -> int:
    """Count V of Definition 3 at the directions of a start, on the rows of the rounds."""
    X, labels = fit.X[:ROUND_ROWS], fit.labels[:ROUND_ROWS]
    others = [i for i in range(len(fit.coef)) if i != j and (labels == i).any()]
    if not others:
        return 0
    own = X[labels == j]
    return affine_error_at(
        own,
        [X[labels == i] for i in others],
        fit.coef[j] - start,
        fit.coef[others] - start,
        slack=len(own) - kept,
    )


def contracts(rounds: Rounds) -> Finding:
    """Judge whether one real round comes closer to every regime."""
    known = rounds.ratio[np.isfinite(rounds.ratio)]
    name = "contraction, seen"
    if known.size < rounds.ratio.size:
        words = "A regime has too few rows to try a round on."
        return Finding(name, "unclear", np.nan, SHRINKS, words)
    worst = float(known.max())
    away = "the way to the next regime" if known.size > 1 else "its own length away"
    words = (
        f"From {DISPLACEMENT:g} of {away}, one round left at most {worst:.2g} of the error (noise "
        "included). This is what happens, not what is guaranteed."
    )
    return Finding(name, small_is_good(worst, SHRINKS, GROWS), worst, SHRINKS, words)


def guaranteed(fit: WhitenedFit, rounds: Rounds) -> Finding:
    """Judge whether the factor of Theorem 4 is below one for the smallest regime."""
    name = "contraction, proven"
    X, labels = fit.X[:WORST_ROWS], fit.labels[:WORST_ROWS]
    j = int(np.argmin(fit.shares))
    kept = int(KEPT_SHARE * np.count_nonzero(labels == j))
    looked_at = min(len(fit.X), ROUND_ROWS)
    wrong = round(rounds.foreign * len(X) / looked_at) + int(np.count_nonzero(labels < 0))
    regularity = Regularity(X, most_directions=WORST_DIRECTIONS)
    plus, minus = regularity.attained_plus(min(wrong, len(X))), regularity.attained_minus(kept)
    factor = 2 * plus / minus if minus > 0 else np.inf
    verdict: Verdict = "violated" if factor >= 1 else "unclear"
    if factor < 1:
        certain = regularity.minus(kept).lower
        upper = 2 * regularity.plus(wrong).upper / certain if certain > 0 else np.inf
        verdict = "holds" if upper < 1 else "unclear"
    found = f"The factor of Theorem 4 for regime {j} is at least {factor:.2g} at such a start."
    if np.isinf(factor):
        found = (
            f"Theorem 4 gives no factor for regime {j}: as few rows as a round keeps may leave "
            "coefficients open."
        )
    words = (
        f"{found} It is a worst case over all subsets of rows and is seldom below 1 on real "
        "tables: a sufficient condition, not a necessary one. Look at what is seen."
    )
    return Finding(name, verdict, factor, 1.0, words)
