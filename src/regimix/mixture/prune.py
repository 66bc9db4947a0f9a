"""Fewer components: merges and deletions that the score of the whole model does not mind."""

from __future__ import annotations

import numpy as np

from regimix.search.model import (
    MEMBER,
    SCALE_FLOOR,
    Fitted,
    component_worth,
    maximise,
    refit,
    score_of,
)
from regimix.search.rows import Rows

__all__ = ["MARGIN", "best_delete", "best_merge", "prune", "score_without", "shrink"]

# A component must be worth this much: a doubtful third regime of real data gained 6.
MARGIN = 12.0
# Pairs that are refitted as one, cheapest first by their summed normal equations.
MERGES_TRIED = 3
# A merge or deletion whose estimated loss is below this share of a mean component's score is
# refitted; a dearer one is not worth the time.
LOOK_CLOSER = 0.25
PRUNE_ROUNDS = 6


def prune(rows: Rows, fitted: Fitted, *, rounds: int = PRUNE_ROUNDS) -> Fitted:
    """Merge and delete components while the score does not fall by a clear margin."""
    while fitted.model.m > 1:
        trial = best_merge(rows, fitted, rounds)
        if trial is None or trial.score < fitted.score - MARGIN:
            trial = best_delete(rows, fitted, rounds)
        if trial is None or trial.score < fitted.score - MARGIN:
            break
        fitted = trial
    return fitted


def best_merge(rows: Rows, fitted: Fitted, rounds: int, *, force: bool = False) -> Fitted | None:
    """Refit as one component the pair whose union loses least."""
    if fitted.model.m < 2:
        return None
    limit = np.inf if force else LOOK_CLOSER * abs(fitted.score) / fitted.model.m
    best: Fitted | None = None
    for j, k, loss in _cheapest_unions(rows, fitted)[:MERGES_TRIED]:
        if loss > limit:
            break
        trial = _merged(rows, fitted, j, k, rounds)
        if best is None or trial.score > best.score:
            best = trial
        if best.score > fitted.score:
            break
    return best


def _merged(rows: Rows, fitted: Fitted, j: int, k: int, rounds: int) -> Fitted:
    """Refit two components as one."""
    union = fitted.posterior.copy()
    union[j] += union[k]
    rest = np.arange(fitted.model.m) != k
    merged = maximise(rows, fitted.model.pick(rest), union[np.append(rest, True)])
    return refit(rows, merged.model, rounds)


def shrink(rows: Rows, fitted: Fitted, rounds: int) -> Fitted:
    """Merge or delete, whichever is estimated to lose less, whatever it loses; refit once."""
    j, k, loss = _cheapest_unions(rows, fitted)[0]
    if fitted.score - loss > max(score_without(rows, fitted, i) for i in range(fitted.model.m)):
        return _merged(rows, fitted, j, k, rounds)
    smaller = best_delete(rows, fitted, rounds, force=True)
    return fitted if smaller is None else smaller


def _cheapest_unions(rows: Rows, fitted: Fitted) -> list[tuple[int, int, float]]:
    """Return pairs of components with the estimated loss when they become one, cheapest first.

    Halves of one regime need not share a row (a 0/1 feature parts them), so it is the fit of the
    union that counts, and summed normal equations give it for every pair at once.
    """
    m, width = fitted.model.m, rows.width
    gram, cross, power = np.empty((m, width, width)), np.empty((m, width)), np.empty(m)
    for j in range(m):
        members = np.flatnonzero(fitted.posterior[j] > MEMBER)
        root = np.sqrt(fitted.posterior[j, members] * rows.weights[members])
        block, target = rows.design[members] * root[:, None], rows.y[members] * root
        gram[j], cross[j], power[j] = block.T @ block, block.T @ target, target @ target
    size = np.maximum(fitted.posterior[:-1] @ rows.weights, 1e-9)
    first, second = np.triu_indices(m, 1)
    joint_gram = gram[first] + gram[second]
    joint_cross, joint_size = cross[first] + cross[second], size[first] + size[second]
    joint_gram[:, np.arange(width), np.arange(width)] += 1e-9 * joint_size[:, None]
    coef = np.linalg.solve(joint_gram, joint_cross[..., None])[..., 0]
    square = power[first] + power[second] - np.einsum("pd,pd->p", coef, joint_cross)
    scale = np.sqrt(np.maximum(square, 0.0) / np.maximum(joint_size - width, 1.0)) + SCALE_FLOOR
    reference = fitted.posterior[:-1] @ (rows.weights * rows.log_background)
    worth = component_worth(rows, size, fitted.model.scale, reference / size)
    joint_reference = (reference[first] + reference[second]) / joint_size
    union = component_worth(rows, joint_size, scale, joint_reference)
    loss = worth[first] + worth[second] - union
    order = np.argsort(loss, kind="stable")
    return [(int(first[p]), int(second[p]), float(loss[p])) for p in order]


def best_delete(rows: Rows, fitted: Fitted, rounds: int, *, force: bool = False) -> Fitted | None:
    """Refit without the component that is missed least."""
    quick = np.array([score_without(rows, fitted, j) for j in range(fitted.model.m)])
    j = int(np.argmax(quick))
    if not force and quick[j] < fitted.score - LOOK_CLOSER * abs(fitted.score) / fitted.model.m:
        return None
    return refit(rows, fitted.model.pick(np.arange(fitted.model.m) != j), rounds)


def score_without(rows: Rows, fitted: Fitted, j: int) -> float:
    """Score the model without component j, its rows shared out, nothing refitted."""
    keep = np.arange(fitted.model.m) != j
    model = fitted.model.pick(keep)
    rest = fitted.posterior[np.append(keep, True)]
    total = np.maximum(rest.sum(axis=0), 1e-300)
    posterior = rest / total
    share = posterior @ rows.weights / rows.mass
    posterior *= (share / np.append(model.share, model.background))[:, None]
    again = np.maximum(posterior.sum(axis=0), 1e-300)
    posterior /= again
    log_gain = fitted.log_gain + np.log(total) + np.log(again)
    return score_of(rows, model, posterior, log_gain)
