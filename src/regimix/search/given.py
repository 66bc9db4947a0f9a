"""Starts that users give: checked, completed, standardised."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Engine
from regimix.engines.row_sampling import Drawn
from regimix.errors import ParameterError

__all__ = ["given_starts"]

Floats = NDArray[np.float64]

# The intercept of a start without one is where a quarter of the rows lie closest together: a median
# would lie between the regimes.
DENSEST = 0.25
DENSEST_ROWS = 20_000


def given_starts(engine: Engine, init: Any, seed: int) -> Floats:
    """Check the user's starts and translate them into standardised coefficients, (starts, p)."""
    problem = engine.problem
    d = problem.n_features
    widths = (d, d + 1) if problem.fit_intercept else (d,)
    try:
        starts = np.atleast_2d(np.asarray(init, dtype=np.float64))
    except (TypeError, ValueError):
        starts = np.full((1, d), np.nan)
    fits = starts.ndim == 2 and starts.shape[0] > 0 and starts.shape[1] in widths
    if not fits or not np.isfinite(starts).all():
        allowed = " or ".join(f"(starts, {width})" for width in widths)
        raise ParameterError(
            f"init must be finite and of shape {allowed}; got {np.shape(init) or init!r}."
        )
    if starts.shape[1] == d + 1:
        return problem.from_user(starts[:, :d], starts[:, d])
    drawn = engine.draw(DENSEST_ROWS, seed).distinct(DENSEST_ROWS)
    return problem.from_user(starts, np.array([_densest(drawn, coef) for coef in starts]))


def _densest(drawn: Drawn, coef: Floats) -> float:
    """Find the middle of the shortest interval that holds a quarter of the residuals."""
    residuals, weights = drawn.y - drawn.X @ coef, drawn.weights
    order = np.argsort(residuals, kind="stable")
    ends, filled = residuals[order], np.cumsum(weights[order])
    # From the first row of an interval to the one that fills it.
    goals = filled - weights[order] + DENSEST * filled[-1] * (1 - 1e-12)
    last = np.searchsorted(filled, goals[goals <= filled[-1]])
    first = int(np.argmin(ends[last] - ends[: last.size]))
    return float((ends[first] + ends[last[first]]) / 2)
