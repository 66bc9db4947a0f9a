"""Where proposals come from: each source looks at a pool of rows and hands over whole models."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regimix.model.em import Parameters, empty, join, refit
from regimix.model.rows import Rows
from regimix.search.joint import STARTS, joint_starts
from regimix.search.message_passing import hunt_one, smallest_component
from regimix.search.subspace import PERMUTATIONS, Subspace, SubspaceKind, find_subspace, shapeless

__all__ = ["RAW_WIDTH", "Proposer"]

Floats = NDArray[np.float64]

# Up to this many features the joint search needs no projection.
RAW_WIDTH = 12
# Rows per coefficient from which the joint search goes first; message passing is the stronger one
# below.
JOINT_FIRST = 60.0
# Components that one proposal may hold.
MAX_ADDED = 24
# Certain directions from which a search for fewer components than directions is tried too.
MANY = 6
# A deep search: numbers of components, directions for each, starts.
DEEP_COUNTS = (3, 5, 7)
DEEP_DIRECTIONS = 2
DEEP_STARTS = 96
# A pair that is searched again gets so many starts.
PAIR_STARTS = 16
# Components that a split looks for (those in excess are pruned), and its starts.
SPLIT_INTO = 3
SPLIT_STARTS = 24
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
    n_jobs : int or None
        Groups of starts that run side by side.
    n_proposals : int
        Starts tried so far.
    spectrum : Subspace or None
        The first subspace that was looked at.
    brisk : bool
        Whether wide pools are searched only where their spectrum shows something: where rows are
        many and fewer have been searched before.
    nothing_in : Rows or None
        The last pool whose spectrum showed nothing.
    """

    rng: np.random.Generator
    kind: SubspaceKind | None = "bounded"
    joint_only: bool = False
    n_jobs: int | None = None
    n_proposals: int = 0
    spectrum: Subspace | None = None
    brisk: bool = False
    nothing_in: Rows | None = None

    def sources(self, rows: Rows) -> tuple[str, ...]:
        """Order the sources: the stronger at this many rows per coefficient goes first."""
        if rows.width == 0:
            return ()  # no intercept, and no feature that varies: nothing to search for
        if self.joint_only:
            return ("joint",)
        joint_first = rows.width <= RAW_WIDTH or rows.n > JOINT_FIRST * rows.width
        return ("joint", "passing") if joint_first else ("passing", "joint")

    def propose(
        self,
        part: Rows,
        source: str,
        count: int | None = None,
        limit: int | None = None,
        known: Parameters | None = None,
    ) -> list[Parameters]:
        """Ask one source for models of a pool.

        ``count`` None lets the spectrum say how many; ``known`` are components found elsewhere.
        """
        if source == "passing":
            return self._counted(self._chain(part, limit or MAX_ADDED, known))
        return self.joint(part, count)

    def joint(
        self, rows: Rows, count: int | None, *, starts: int = STARTS, lift: int = 2
    ) -> list[Parameters]:
        """Propose mixtures by joint search."""
        if rows.n < smallest_component(rows.width) * min(2, count or 2):
            return []
        d = rows.features.shape[1]
        projected = d > RAW_WIDTH and self.kind is not None
        doubted = self.brisk and projected and rows.n > JOINT_FIRST * rows.width
        if count is None and doubted and self._shapeless(rows):
            self.nothing_in = rows
            return []
        space = None
        counts = [] if count is None else [(count, lift)]
        if d and (projected or count is None):
            space = self._subspace(rows, d, permutations=0 if count else PERMUTATIONS)
        if count is None:
            certain = 0 if space is None else space.certain
            # The certain directions are half to all of the components; too many components are
            # pruned, too few are not found.
            counts.append((max(3, certain + max(2, certain // 2)), lift))
            if certain >= MANY and projected:
                # Heavy tails raise the count too: then so many would starve one another.
                counts.append((certain // 2 + 1, 1))
        most = int(max(1, rows.n // (1.5 * smallest_component(rows.width))))
        models: list[Parameters] = []
        for wanted, best in counts:
            size = min(wanted, most, MAX_ADDED)
            head = None
            if projected and space is not None:
                head = space.head(min(d, max(size, space.certain)))
            models += self._joint(rows, head, size, starts, best)
        return models

    def deep(self, part: Rows) -> list[Parameters]:
        """Search harder, for several numbers of components: when all found so far is blur."""
        models: list[Parameters] = []
        if part.features.shape[1] > RAW_WIDTH and self.kind is not None:
            space = self._subspace(part, part.features.shape[1], permutations=0)
            for count in DEEP_COUNTS:
                head = space.head(DEEP_DIRECTIONS * count)
                models += self._joint(part, head, count, DEEP_STARTS)
        return models

    def again(self, part: Rows, count: int) -> list[Parameters]:
        """Propose as many components as were released, searched anew."""
        return self.joint(part, count, starts=PAIR_STARTS if count == 2 else STARTS)

    def split(self, part: Rows, coef: Floats, own: Rows | None = None) -> list[Parameters]:
        """Propose a few components around one, if its residuals depend on the features at all.

        ``own`` are the component's own rows; the part has those of the background too, which may
        depend on the features where the other components have taken theirs.
        """
        shifted = part.around(coef)
        if part.features.shape[1] > RAW_WIDTH and self.kind is not None:
            if part.n < SPLIT_ROWS * part.width:
                return []
            if self.brisk and own is not None and self._shapeless(own.around(coef)):
                return []
            space = self._subspace(shifted, SPLIT_INTO)
            if space.certain == 0:
                return []
            found = self._joint(shifted, space, SPLIT_INTO, SPLIT_STARTS)
        else:
            found = self.joint(shifted, SPLIT_INTO, starts=SPLIT_STARTS)
        return [replace(m, coef=m.coef + coef, origin=("split",) * m.m) for m in found]

    def _joint(
        self, rows: Rows, space: Subspace | None, size: int, starts: int, lift: int = 2
    ) -> list[Parameters]:
        found = joint_starts(
            rows, space, size, self.rng, starts=starts, lift=lift, n_jobs=self.n_jobs
        )
        return self._counted(found, starts)

    def _chain(self, rows: Rows, limit: int, known: Parameters | None) -> list[Parameters]:
        """Propose a chain of components, each found among the rows that the others leave."""
        model = empty(rows.width)
        active = np.arange(rows.n)
        kind = None if rows is self.nothing_in else self.kind
        while model.m < limit and len(active) >= smallest_component(rows.width):
            part = rows.take(active)
            signal = _signal(rows, model if known is None else join(known, model))
            found = hunt_one(part, self.rng, kind, signal)
            if found is None:
                break
            polished = refit(part, found, CHAIN_ROUNDS)
            if polished.model.m == 0:
                break
            model = join(model, polished.model.with_shares(part.mass / rows.mass))
            left = active[polished.posterior[-1] > 0.5]
            if left.size == active.size:
                break  # it has taken no row: it would be found again
            active = left
        return [model] if model.m else []

    def _subspace(self, rows: Rows, size: int, permutations: int = PERMUTATIONS) -> Subspace:
        limit = SUBSPACE_ROWS * rows.width
        if rows.n > limit:
            rows = rows.take(self.rng.choice(rows.n, limit, replace=False))
        space = find_subspace(
            rows.features,
            rows.y,
            rows.weights,
            size,
            self.kind or "bounded",
            self.rng,
            permutations=permutations,
            single=self.brisk,
        )
        if self.spectrum is None and space.noise_level is not None:
            # What is certain and what is not: there a gap is to be seen.
            self.spectrum = space.head(max(1, space.certain))
        return space

    def _shapeless(self, rows: Rows) -> bool:
        """Say whether the response does not depend on the features, as far as spectra show."""
        limit = SUBSPACE_ROWS * rows.width
        return shapeless(
            rows.head(limit).features,
            rows.y[:limit],
            rows.weights[:limit],
            SPLIT_INTO,
            self.kind or "bounded",
            self.rng,
        )

    def _counted(self, models: list[Parameters], starts: int = 1) -> list[Parameters]:
        self.n_proposals += starts
        return models


def _signal(rows: Rows, model: Parameters) -> float | None:
    """Return the variance of a typical component's predictions; features are white."""
    if model.m == 0:
        return None
    slopes = model.coef[:, int(rows.intercept) :]
    size = float(np.median(np.einsum("md,md->m", slopes, slopes)))
    return size if size > 0 else None
