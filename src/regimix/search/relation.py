"""Is there a relation at all? Regimes with slopes against as many regimes that are constants.

A response that is skewed, has several bumps or few values is explained by constants better than by
one law. That is no evidence of a linear relation: what counts is the difference of the scores.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from regimix.model.em import Fitted, Parameters, evaluate, from_labels, refit
from regimix.model.rows import Rows

__all__ = ["score_of_constants"]

# Rounds for one number per component: quickly made.
ROUNDS = 30
# Rounds end where further ones would gain less than this many nats (3 are asked for), or than this
# share of what regimes with slopes are ahead.
ENOUGH = 0.3
CLOSE = 0.002
SOME_ROWS = 1000
LAST_ROUNDS = 3


def score_of_constants(rows: Rows, fitted: Fitted, more: int = 1) -> float:
    """Return the best score found for constants: one, and up to so many more than regimes."""
    alone, model = rows.constants(), fitted.model
    flat = Parameters.point(
        np.zeros((model.m, 1)), model.scale, model.share, model.origin, model.noise
    )
    starts = [from_labels(alone, fitted.posterior, flat).model]
    starts += [_levels(alone, k) for k in range(1, model.m + 1 + more)]
    # Few numbers are found from few rows; all rows then judge the best of them.
    some = alone.head(SOME_ROWS)
    rival = fitted.score * some.mass / rows.mass
    fits = [_nearly_settled(some, start, rival) for start in starts]
    best = max(fits, key=lambda fit: fit.score).model
    rounds = ROUNDS if some.n == alone.n else LAST_ROUNDS
    score = refit(alone, best, rounds).score
    if not rows.outliers:
        return score
    # There may be no outliers either way.
    clean = replace(alone, outliers=False)
    return max(score, *(refit(clean, fit, rounds).score for fit in (best, _levels(alone, 1))))


def _nearly_settled(rows: Rows, start: Parameters, rival: float) -> Fitted:
    """Run EM as long as it may matter for the difference to the score of regimes with slopes."""
    first = evaluate(rows, start)
    enough = max(ENOUGH, CLOSE * (rival - first.score))
    return refit(rows, first.model, ROUNDS, settled=enough)


def _levels(rows: Rows, count: int) -> Parameters:
    """Place constants at quantiles of the response, each as wide as its part of it."""
    middle = np.quantile(rows.y, (np.arange(count) + 0.5) / count)
    gap = np.abs(rows.y - middle[:, None]).min(axis=0)
    scale = max(float(np.sqrt(np.mean(np.minimum(gap, 3.0) ** 2))), rows.smallest_scale)
    share = np.full(count, 0.95 / count)
    return Parameters.point(middle[:, None], np.full(count, scale), share, ("level",) * count)
