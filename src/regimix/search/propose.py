"""Where proposals come from: each source looks at a pool of rows and hands over whole models."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regimix.model.em import Parameters, empty, join, refit
from regimix.model.rows import Rows
from regimix.search.joint import joint_starts, smallest_component
from regimix.search.message_passing import hunt_one
from regimix.search.numbers import SEARCH
from regimix.search.subspace import Subspace, SubspaceKind, find_subspace, shapeless

Floats = NDArray[np.float64]


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
    """

    rng: np.random.Generator
    kind: SubspaceKind | None = "bounded"
    joint_only: bool = False
    n_jobs: int | None = None
    n_proposals: int = 0
    spectrum: Subspace | None = None
    brisk: bool = False
    _looked: tuple[Rows, bool] | None = None

    def sources(self, rows: Rows) -> tuple[str, ...]:
        """Order the sources: the stronger at this many rows per coefficient goes first."""
        if rows.width == 0:
            return ()  # no intercept, and no feature that varies: nothing to search for
        if self.joint_only:
            return ("joint",)
        joint_first = rows.width <= SEARCH.raw_width or self._many(rows)
        return ("joint", "passing") if joint_first else ("passing", "joint")

    @staticmethod
    def _many(rows: Rows) -> bool:
        """Say whether there are so many rows that a joint search is stronger than passing."""
        return rows.n > SEARCH.rows_per_coefficient * rows.width

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
        if count is None and self._hopeless(part):
            return []
        if source == "passing":
            self.n_proposals += 1
            return self._chain(part, limit, known)
        return self.joint(part, count)

    def joint(
        self, rows: Rows, count: int | None, *, starts: int | None = None, lift: int = 2
    ) -> list[Parameters]:
        """Propose mixtures by joint search."""
        if rows.n < smallest_component(rows.width) * min(2, count or 2):
            return []
        d = rows.features.shape[1]
        projected = self._projected(rows)
        space = None
        if d and (projected or count is None):
            space = self._subspace(rows, d, permutations=0 if count else None)
        if count is None:
            certain = 0 if space is None else space.certain
            # The certain directions are half to all of the components; too many components are
            # pruned, too few are not found.
            count = max(3, certain + max(2, certain // 2))
        size = min(count, int(max(1, rows.n // (1.5 * smallest_component(rows.width)))))
        head = None
        if projected and space is not None:
            head = space.head(min(d, max(size, space.certain)))
        return self._joint(rows, head, size, starts or SEARCH.starts, lift)

    def _hopeless(self, rows: Rows) -> bool:
        """Say whether no source is to be asked; a pool is looked at once for all of them."""
        if not (self.brisk and self._projected(rows) and self._many(rows)):
            return False
        if self._looked is None or self._looked[0] is not rows:
            self._looked = rows, self._shapeless(rows)
        return self._looked[1]

    def _projected(self, rows: Rows) -> bool:
        """Say whether rows are wide enough to be searched in a subspace."""
        return rows.features.shape[1] > SEARCH.raw_width and self.kind is not None

    def split(self, part: Rows, coef: Floats, own: Rows | None = None) -> list[Parameters]:
        """Propose two components in place of one, if its residuals depend on the features at all.

        ``own`` are the component's own rows; the part has those of the background too, which may
        depend on the features where the other components have taken theirs.
        """
        shifted = part.around(coef)
        if self._projected(part):
            if self.brisk and own is not None and self._shapeless(own.around(coef)):
                return []
            space = self._subspace(shifted, 2)
            if space.certain == 0:
                return []
            found = self._joint(shifted, space, 2, SEARCH.few_starts)
        else:
            found = self.joint(shifted, 2, starts=SEARCH.few_starts)
        return [replace(m, coef=m.coef + coef, origin=("split",) * m.m) for m in found]

    def _joint(
        self, rows: Rows, space: Subspace | None, size: int, starts: int, lift: int = 2
    ) -> list[Parameters]:
        self.n_proposals += starts
        return joint_starts(
            rows, space, size, self.rng, starts=starts, lift=lift, n_jobs=self.n_jobs
        )

    def _chain(self, rows: Rows, limit: int | None, known: Parameters | None) -> list[Parameters]:
        """Propose a chain of components, each found among the rows that the others leave."""
        model = empty(rows.width)
        active = np.arange(rows.n)
        while model.m != limit and len(active) >= smallest_component(rows.width):
            part = rows.take(active)
            signal = _signal(rows, model if known is None else join(known, model))
            found = hunt_one(part, signal)
            if found is None:
                break
            polished = refit(part, found, SEARCH.short_rounds)
            if polished.model.m == 0:
                break
            model = join(model, polished.model.with_shares(part.mass / rows.mass))
            left = active[polished.posterior[-1] > 0.5]
            if active.size - left.size < smallest_component(rows.width):
                break  # it has taken hardly a row: it would be found again
            active = left
        return [model] if model.m else []

    def _subspace(self, rows: Rows, size: int, permutations: int | None = None) -> Subspace:
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
        return shapeless(rows.features, rows.y, rows.weights, 2, self.kind or "bounded", self.rng)


def _signal(rows: Rows, model: Parameters) -> float | None:
    """Return the variance of a typical component's predictions; features are white."""
    if model.m == 0:
        return None
    slopes = model.coef[:, int(rows.intercept) :]
    size = float(np.median(np.einsum("md,md->m", slopes, slopes)))
    return size if size > 0 else None
