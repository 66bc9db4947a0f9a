"""What the parts of a model are worth: each component, and the features as a whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regimix.mixture.prune import MARGIN
from regimix.search.model import Fitted, Model, evaluate, maximise, refit, settle
from regimix.search.rows import Rows

__all__ = ["component_worths", "needs_no_features"]

Floats = NDArray[np.float64]

# EM for one number per component is quick, and quickly done.
CONSTANT_ROUNDS = 30


def component_worths(rows: Rows, fitted: Fitted, few: Rows | None = None) -> Floats:
    """Return what the score loses without each component, the others as they are.

    With ``few`` of the rows, drawn at random, shares settle there.
    """
    everyone = np.arange(fitted.model.m)
    others = [fitted.model.pick(everyone != j) for j in everyone]
    if few is None or few is rows:
        without = [settle(rows, rest) for rest in others]
    else:
        without = [evaluate(rows, settle(few, rest).model) for rest in others]
    return np.array([fitted.score - rest.score for rest in without])


def needs_no_features(
    rows: Rows, fitted: Fitted, margin: float = MARGIN, few: Rows | None = None
) -> bool:
    """Say whether constants explain the response as well as the components do, up to a margin.

    A response that is skewed, has several bumps or few values is explained by as many constants
    better than by a bell. That is no evidence of a linear relation.

    With ``few`` of the rows, drawn at random, all are asked only if those do not show the relation.
    """
    if not rows.intercept:
        return False  # the model knows no constants
    if few is not None and few is not rows:
        shown = not needs_no_features(few, evaluate(few, fitted.model), margin)
        if shown:
            return False
    alone = replace(rows, design=np.ones((rows.n, 1)))
    model = fitted.model
    flat = Model(np.zeros((model.m, 1)), model.scale, model.share, model.origin, model.bell)
    start = maximise(alone, flat, fitted.posterior).model
    return fitted.score < refit(alone, start, CONSTANT_ROUNDS).score + margin
