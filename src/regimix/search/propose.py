"""Where proposals come from: each source looks at a pool of rows and hands over whole models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.search.hunt import bulk_model, hunt_one
from regimix.search.joint import joint_starts
from regimix.search.model import Model, empty_model, join, refit, smallest_component
from regimix.search.rows import Rows
from regimix.search.subspace import Subspace, SubspaceKind, find_subspace

__all__ = ["RAW_WIDTH", "Proposer"]

Floats = NDArray[np.float64]

# Up to this many features the joint search needs no projection.
RAW_WIDTH = 12
# Rows per coefficient from which the joint search goes first; message passing is the stronger one
# below.
JOINT_FIRST = 60.0
# Components that one proposal may hold.
MAX_ADDED = 24
# With fewer rows per coefficient, residuals cannot tell whether a component is two.
SPLIT_ROWS = 4.0
# Rounds of EM that sharpen a find before its rows are taken out of the chain.
CHAIN_ROUNDS = 6
# More rows than this times the features add nothing that a subspace needs.
SUBSPACE_ROWS = 300


@dataclass
class Proposer:
    """The sources of proposals, with what they share.

    Attributes
    ----------
    kind : {"bounded", "svd", "filter"} or None
        How the subspace is found; None searches all features.
    joint_only : bool
        Whether the joint source is the only one.
    n_proposals : int
        Proposals handed over so far.
    """

    rng: np.random.Generator
    kind: SubspaceKind | None = "bounded"
    joint_only: bool = False
    n_proposals: int = 0

    def sources(self, rows: Rows) -> tuple[str, ...]:
        """Order the sources: the stronger at this many rows per coefficient goes first."""
        if self.joint_only:
            return ("joint",)
        joint_first = rows.width <= RAW_WIDTH or rows.n > JOINT_FIRST * rows.width
        return ("joint", "passing") if joint_first else ("passing", "joint")

    def propose(
        self, part: Rows, source: str, count: int | None = None, limit: int | None = None
    ) -> list[Model]:
        """Ask one source for models of a pool; ``count`` None lets the spectrum say how many."""
        if source == "passing":
            return self._counted(self._chain(part, limit or MAX_ADDED))
        if source == "single":
            return self._counted([bulk_model(part)])
        return self.joint(part, count)

    def joint(
        self, rows: Rows, count: int | None, *, starts: int = 48, lift: int = 2
    ) -> list[Model]:
        """Propose mixtures by joint search."""
        d = rows.features.shape[1]
        if rows.n < smallest_component(rows.width) * min(2, count or 2):
            return []
        projected = d > RAW_WIDTH and self.kind is not None
        space = None
        size = count or 3
        if d and (projected or count is None):
            space = self._subspace(rows, min(d, (count or 0) + 2))
            if count is None:
                size = min(max(3, space.certain + max(2, space.certain // 2)), MAX_ADDED)
                if projected:
                    space = self._subspace(rows, min(d, size), permutations=0)
        size = int(min(size, max(1, rows.n // (1.5 * smallest_component(rows.width)))))
        found = joint_starts(
            rows, space if projected else None, size, self.rng, starts=starts, lift=lift
        )
        return self._counted(found, starts)

    def split(self, part: Rows, coef: Floats) -> list[Model]:
        """Propose a few components around one, if its residuals depend on the features at all."""
        shifted = part.around(coef)
        if part.features.shape[1] > RAW_WIDTH and self.kind is not None:
            if part.n < SPLIT_ROWS * part.width:
                return []
            space = self._subspace(shifted, 3)
            if space.certain == 0:
                return []
            found = self._counted(joint_starts(shifted, space, 3, self.rng, starts=24), 24)
        else:
            found = self.joint(shifted, 3, starts=24)
        return [Model(m.coef + coef, m.scale, m.share, ("split",) * m.m) for m in found]

    def _chain(self, rows: Rows, limit: int) -> list[Model]:
        """Propose a chain of components, each found among the rows that the others leave."""
        model = empty_model(rows.width)
        active = np.arange(rows.n)
        while model.m < limit and len(active) >= smallest_component(rows.width):
            part = rows.take(active)
            found = hunt_one(part, self.rng, self.kind)
            if found is None:
                break
            polished = refit(part, found, CHAIN_ROUNDS)
            if polished.model.m == 0:
                break
            model = join(model, polished.model.with_shares(part.mass / rows.mass))
            active = active[polished.posterior[-1] > 0.5]
        return [model] if model.m else []

    def _subspace(self, rows: Rows, size: int, permutations: int = 4) -> Subspace:
        limit = SUBSPACE_ROWS * rows.width
        if rows.n > limit:
            rows = rows.take(self.rng.choice(rows.n, limit, replace=False))
        return find_subspace(
            rows.features,
            rows.y,
            rows.weights,
            size,
            self.kind or "bounded",
            self.rng,
            permutations=permutations,
        )

    def _counted(self, models: list[Model], starts: int = 1) -> list[Model]:
        self.n_proposals += starts
        return models
