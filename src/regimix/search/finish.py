"""The last word on all rows: make exact, or trim.

EM (``polish``) gives every row its share in every component, so that hardly a clean row is lost to
the fit. Where a component has no noise at all, soft shares would only blur it: there ILTS
(Algorithm 1) with the component's own size has the exact fixed point. With a given keep fraction,
rows are assigned and the worst of them trimmed instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from regimix.data.problem import Frame
from regimix.engines.base import Engine
from regimix.engines.selection import Keeper
from regimix.model.blocks import Labelling, Law, labelled_sums
from regimix.model.em import late
from regimix.model.labelling import (
    Likeliest,
    Trimmed,
    label_name,
    label_squares,
    unlikeliness,
)
from regimix.model.polish import maximised, shares_of
from regimix.search.numbers import SEARCH
from regimix.trimmed.ilts import Solver, concentrate, kept_mass
from regimix.trimmed.reweight import truncation_factor

if TYPE_CHECKING:
    from regimix.engines.memory import MemoryEngine

Floats = NDArray[np.float64]

SolverMaker = Callable[[Frame, int, float], Solver]


def make_exact(
    engine: Engine, law: Law, make_solver: SolverMaker, max_iter: int, tol: float
) -> tuple[Law, Labelling]:
    """Finish components without noise by ILTS that keeps as many rows as each has."""
    thetas, scales = law.thetas.copy(), law.scale.copy()
    labelling = Likeliest(law)
    for j in np.flatnonzero(law.scale < SEARCH.noiseless):
        mass = float(engine.fold(label_squares, labelling, thetas)[0][j])
        if mass <= thetas.shape[1]:
            continue
        solver = make_solver(engine.problem, 1, mass)
        runs, follower = concentrate(
            engine,
            thetas[j][None, :],
            mass,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            polish=True,
        )
        thetas[j] = runs[0].theta
        left = runs[0].objective[-1] / max(mass - thetas.shape[1], 1.0)
        scales[j] = max(np.sqrt(left), law.smallest_scale)
        labelling = Likeliest(law, (*labelling.exact, (int(j), follower.keeper(0))))
    if not labelling.exact:
        return law, labelling
    return replace(law, thetas=thetas, scale=scales), labelling


def assign_and_trim(engine: Engine, law: Law, keep: float) -> tuple[Law, Labelling]:
    """Assign rows to components, trim the worst, refit; until assignments stay.

    Exactly the given share of the rows belongs to components; the rest are outliers. The
    background's density is then the one at which trimming began, and scales are corrected for the
    trimmed tails, consistently at the normal law.
    """
    mass = kept_mass(keep, engine.problem)
    name: tuple[Any, ...] | None = None
    for _ in range(SEARCH.turns):
        keeper = engine.choose(unlikeliness, (law,), mass)
        labelling = Trimmed(law, keeper)
        before, name = name, (engine.fold(label_name, labelling), *keeper.part)
        if before is not None and _same_name(name, before):
            break
        if late():
            break
        if engine.problem.mass <= engine.problem.n_columns + 1:
            # No component has rows enough to be fitted anew, and sums of many columns are large.
            size = engine.fold(_label_sizes, labelling, keeper, len(law.scale))
            law = replace(law, share=shares_of(law, size, engine.problem.mass))
            continue
        found = labelled_sums(engine, law, labelling, keeper)
        law = maximised(law, found, engine.problem.mass)
    if keep >= 1:
        return replace(law, log_background=-np.inf, width=np.inf), labelling
    factor = truncation_factor(float(ndtri((1 + keep) / 2)))
    law = replace(law, scale=law.scale * factor)
    edge = engine.choose(unlikeliness, (law,), mass).threshold
    # If more is to be kept than fits, the edge is at a gross error, whose density is next to
    # nothing: a background as thin as that would let anything pass.
    return replace(law, log_background=law.log_background + max(-edge, 0.0)), labelling


def _label_sizes(block: MemoryEngine, labelling: Labelling, keeper: Keeper, m: int) -> Floats:
    """Sum the weights of the rows of each component, of which one may count in part."""
    labels, weights = labelling(block), keeper.factor(block)
    return np.array([weights[labels == j].sum() for j in range(m)])


def _same_name(name: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    """Say whether two assignments are the same, up to the rounding of the row kept in part."""
    same_rows = name[0][0] == before[0][0] and name[1] == before[1]
    return bool(same_rows and np.isclose(name[2], before[2]))
