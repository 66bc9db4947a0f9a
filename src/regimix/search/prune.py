"""Fewer components: merges and deletions of what is not worth a regime."""

from __future__ import annotations

import numpy as np

from regimix.model.em import (
    REGIME_GAIN,
    Fitted,
    empty,
    evaluate,
    from_labels,
    refit,
    scores_without,
    union_losses,
)
from regimix.model.rows import Rows

__all__ = ["prune", "shrink"]

# Pairs that are refitted as one, cheapest first.
MERGES_TRIED = 3
# A merge or deletion whose estimated loss is below this share of a mean component's gain is
# refitted; a dearer one is not worth the time.
LOOK_CLOSER = 0.05
PRUNE_ROUNDS = 6


def prune(rows: Rows, fitted: Fitted, *, rounds: int = PRUNE_ROUNDS) -> Fitted:
    """Merge and delete components while that raises the score."""
    while fitted.model.m > 1:
        interpolated = fitted.posterior[:-1].sum(axis=1) <= rows.width
        if interpolated.any() and not interpolated.all():
            # No more rows than coefficients, however often they are repeated, show nothing.
            fitted = refit(rows, fitted.model.pick(~interpolated), rounds)
            continue
        smaller = _smaller(rows, fitted, rounds, limit=_look_closer(rows, fitted))
        if not smaller:
            break
        best = max(smaller, key=lambda trial: trial.score)
        if best.score < fitted.score:
            break
        fitted = best
    return fitted


def shrink(rows: Rows, fitted: Fitted, rounds: int) -> Fitted:
    """Merge or delete, whichever loses less, whatever it loses."""
    return max(_smaller(rows, fitted, rounds, limit=np.inf), key=lambda trial: trial.score)


def _look_closer(rows: Rows, fitted: Fitted) -> float:
    """Return the estimated loss up to which it is worth refitting a smaller model."""
    gain = fitted.score - evaluate(rows, empty(rows.width)).score
    return LOOK_CLOSER * max(gain, 0.0) / fitted.model.m + REGIME_GAIN


def _smaller(rows: Rows, fitted: Fitted, rounds: int, limit: float) -> list[Fitted]:
    """Refit the cheapest unions and deletions, as far as their estimated loss is within a limit."""
    trials = []
    for j, k, loss in union_losses(rows, fitted)[:MERGES_TRIED]:
        if loss <= limit:
            union = fitted.posterior.copy()
            union[j] += union[k]
            rest = np.arange(fitted.model.m) != k
            merged = from_labels(rows, union[np.append(rest, True)], fitted.model.pick(rest))
            trials.append(refit(rows, merged.model, rounds))
    without = scores_without(rows, fitted)
    j = int(np.argmax(without))
    if fitted.score - without[j] <= limit:
        trials.append(refit(rows, fitted.model.pick(np.arange(fitted.model.m) != j), rounds))
    return trials
