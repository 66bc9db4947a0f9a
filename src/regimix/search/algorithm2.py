"""Algorithm 2 as the paper states it: try starts, accept a component, remove its rows, repeat.

``search="net"`` uses it with the starts of a net (``net.py``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from regimix.data.problem import Frame
from regimix.engines.base import Engine, Selected
from regimix.engines.memory import MemoryEngine
from regimix.engines.parts import PassStopped
from regimix.engines.selection import Near, masked_mass
from regimix.errors import StopReason
from regimix.model.blocks import Labelling, Law
from regimix.model.labelling import Taken, label_squares
from regimix.model.numbers import MODEL
from regimix.search.checkpoint import Checkpoint
from regimix.search.joint import smallest_component
from regimix.search.net import SUBSPACE_ROWS, NetSource, net_source
from regimix.search.selection import Attempt
from regimix.search.settings import Progress, Settings, answer_interrupts
from regimix.search.single import Starts, find_single, majority
from regimix.search.subspace import Subspace
from regimix.trimmed.ilts import MAX_ITER, ExactSolver, Run, SolverMaker, concentrate, kept_mass
from regimix.trimmed.reweight import consistent_scale

Floats = NDArray[np.float64]

# Ratio c of the geometric search {1, c, c^2, ...}: the share is met within a fifth, and each
# halving of the share costs three searches.
SHARE_RATIO = 0.8
# Starts that run together. One pass over the rows serves all of them; those after the first that
# is accepted run in vain.
BATCH = 8
MAX_STARTS = 200


@dataclass(frozen=True)
class Accepted:
    """A component that a start led to, in standardised units."""

    theta: Floats  # (p,)
    near: Near  # the rows within the tolerance, which were removed if they were still there
    share: float  # the weight of the rows removed, as a share of the original total
    tau: float  # the share that was asked for
    start: int  # place of the start in its random order; ``start + 1`` starts were tried
    source: str  # where the start came from


@dataclass(frozen=True)
class Rejected:
    """A search for one component at one share that accepted no start, and removed nothing."""

    component: int  # which one was searched for, from 0
    tau: float  # the share asked for
    needed: float  # the rows that had to lie within the tolerance
    n_tried: int  # starts
    nearest: float  # the smallest tolerance that would have accepted one of them
    reason: str


@dataclass
class Peeled:
    """What Algorithm 2 has found, and why it stopped: "none accepted" if every start was tried."""

    accepted: list[Accepted] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    stopped: StopReason = StopReason.ALL_FOUND
    n_starts: int = 0  # starts tried in all


# Where ILTS from one start ended, the largest residual of the rows it keeps, the start's source.
_Outcome = tuple[Floats, float, str]


@dataclass(eq=False)
class Peeling:
    """Finds components one after the other, each among the rows that those before it left.

    The answer does not depend on ``n_jobs``: starts run in batches of fixed size and are judged in
    their order.
    """

    engine: Engine  # the rows that are left
    source: NetSource
    _: KW_ONLY
    # The paper's delta, in units of the standardised response: a smaller residual is explained.
    tolerance: float
    # Default: as many as there are ``taus``, or until none is accepted.
    n_components: int | None = None
    # Share of all rows that each component must explain, and that ILTS keeps; below the true share.
    # Default: the geometric search 1, c, c^2, ... of the paper's footnote, c = ``ratio``.
    taus: Sequence[float] | None = None
    ratio: float = SHARE_RATIO
    max_starts: int = MAX_STARTS  # for one component at one share
    time_limit: float | None = None  # seconds; starts under way are left where they are
    # Called after each batch that led to no component with what was found so far, and the starts
    # tried for the next component; a true answer stops with the best so far.
    callback: Callable[[Peeled, int], Any] | None = None
    seed: int = 0
    n_jobs: int | None = None  # batches that run side by side, as joblib counts them
    max_iter: int = MAX_ITER
    tol: float = 0.0
    make_solver: SolverMaker = ExactSolver
    # Where each component and each share in vain is written down. A search that finds some of its
    # own there goes on from them, to the same end.
    checkpoint: Checkpoint | None = None
    found: Peeled = field(default_factory=Peeled, init=False)

    def run(self) -> Peeled:
        """Search, and return what was found."""
        self.problem = self.engine.problem  # the original one: n stays what it was
        self.jobs = int(effective_n_jobs(self.n_jobs))
        self.count = min(self.max_starts, self.source.size)
        self.deadline = math.inf if self.time_limit is None else time.monotonic() + self.time_limit
        # One BLAS thread in every case: batches are small, and sums must not depend on ``n_jobs``.
        with threadpool_limits(1, "blas"), Parallel(n_jobs=self.jobs, prefer="threads") as pool:
            self.pool = pool
            try:
                with answer_interrupts():
                    self.resume()
                    self.found.stopped = self.geometric() if self.taus is None else self.given()
            except PassStopped as stop:
                self.found.stopped = stop.reason
            except KeyboardInterrupt:
                self.found.stopped = StopReason.INTERRUPTED
        return self.found

    def given(self) -> StopReason:
        """Search for one component at each of the given shares."""
        taus = self.taus or ()
        tried = len(self.found.accepted) + len(self.found.rejected)
        for component, tau in enumerate(taus[tried:], tried):
            self.attempt(component, tau)
        all_found = len(self.found.accepted) == len(taus)
        return StopReason.ALL_FOUND if all_found else self._unsuccessful()

    def geometric(self) -> StopReason:
        """Search at ever smaller shares; the footnote to Algorithm 2."""
        # Fewer rows lie near some plane by chance.
        smallest = smallest_component(self.problem.n_columns) / self.problem.mass
        while len(self.found.accepted) != self.n_components:
            tau = self.ratio ** len(self.found.rejected)
            if self.found.rejected and tau < smallest:
                return self._unsuccessful()
            self.attempt(len(self.found.accepted), tau)
        return StopReason.ALL_FOUND

    def _unsuccessful(self) -> StopReason:
        limited = any(tried.reason.startswith("max_starts") for tried in self.found.rejected)
        return StopReason.MAX_STARTS if limited else StopReason.NONE_ACCEPTED

    def attempt(self, component: int, tau: float) -> None:
        """Try starts until one is accepted (lines 7 to 13 of Algorithm 2), and write that down."""
        needed, left = kept_mass(tau, self.problem), self.engine.problem.mass
        n_tried, nearest, stop = 0, math.inf, None
        reason = f"only {left:g} rows are left"
        if needed <= left * (1 + MODEL.gram_rounding):
            try:
                for batch in self._batches(component, needed):
                    for theta, threshold, source in batch:
                        nearest = min(nearest, threshold)
                        n_tried += 1
                        self.found.n_starts += 1
                        if self._accepts(theta, threshold, needed):
                            self._take(theta, tau, n_tried - 1, source)
                            self._save()
                            return
                    stop = self._asked_to_stop(n_tried)
                    if stop is not None:
                        break
            except PassStopped as over:
                stop = over.reason
            reason = "every start was tried"
            if n_tried < self.source.size:
                reason = (
                    f"{stop or 'max_starts'}: {n_tried} of {self.source.size} starts were tried"
                )
        self.found.rejected.append(Rejected(component, tau, needed, n_tried, nearest, reason))
        if stop is not None:
            raise PassStopped(stop)
        self._save()

    def _asked_to_stop(self, n_tried: int) -> StopReason | None:
        if self.callback is not None and self.callback(self.found, n_tried):
            return StopReason.CALLBACK
        return StopReason.TIME_LIMIT if time.monotonic() > self.deadline else None

    def _batches(self, component: int, mass: float) -> Iterator[list[_Outcome]]:
        """Run starts in a random order of their own, and return batches in that order."""
        which = [self.seed, component, len(self.found.rejected)]
        seed = int(np.random.SeedSequence(which).generate_state(1)[0])
        for first in range(0, self.count, BATCH * self.jobs):
            begins = range(first, min(first + BATCH * self.jobs, self.count), BATCH)
            starts = [self.source.draw(seed, i, min(BATCH, self.count - i)) for i in begins]
            yield from self.pool(delayed(self._run_batch)(mass, some) for some in starts)

    def _run_batch(self, mass: float, starts: Starts) -> list[_Outcome]:
        """Run ILTS from a few starts together."""
        thresholds = np.full(len(starts.thetas), math.inf)

        def watch(start: int, _run: Run, selected: Selected) -> None:
            thresholds[start] = selected.threshold
            if time.monotonic() > self.deadline:
                raise PassStopped(StopReason.TIME_LIMIT)

        runs, _ = concentrate(
            self.engine,
            starts.thetas,
            mass,
            solver=self.make_solver(self.engine.problem, len(starts.thetas), mass),
            max_iter=self.max_iter,
            tol=self.tol,
            watch=watch,
        )
        thetas = [run.theta for run in runs]
        return list(zip(thetas, thresholds.tolist(), starts.source, strict=True))

    def _accepts(self, theta: Floats, threshold: float, needed: float) -> bool:
        """Whether enough of the remaining rows lie within the tolerance: line 9."""
        # The kept rows are those of smallest residual: if the largest of these is too large, fewer
        # than needed lie within the tolerance, and no row need be looked at.
        if not threshold < self.tolerance:
            return False
        mass = self.engine.fold(masked_mass, Near(theta, self.tolerance))
        return bool(mass >= needed * (1 - MODEL.gram_rounding))

    def _take(self, theta: Floats, tau: float, start: int, source: str) -> None:
        """Accept a component, and remove its rows: lines 10 to 14."""
        near = Near(theta, self.tolerance)
        before, self.engine = self.engine.problem.mass, self.engine.without(near)
        share = (before - self.engine.problem.mass) / self.problem.mass
        self.found.accepted.append(Accepted(theta, near, share, tau, start, source))

    def _save(self) -> None:
        """Write down how far the search is, if there is a file for that.

        The rows of a component, and so its share, follow from its coefficients.
        """
        if self.checkpoint is None:
            return
        accepted = [
            {"theta": one.theta, "tau": one.tau, "start": one.start, "source": one.source}
            for one in self.found.accepted
        ]
        rejected = [asdict(tried) for tried in self.found.rejected]
        values = {"accepted": accepted, "rejected": rejected, "n_starts": self.found.n_starts}
        self.checkpoint.put("peel", values)

    def resume(self) -> None:
        """Go on from what is written down; rows are removed as they were."""
        values = None if self.checkpoint is None else self.checkpoint.get("peel")
        if values is None:
            return
        for component in values["accepted"]:
            self._take(**component)
        self.found.rejected = [Rejected(**rejected) for rejected in values["rejected"]]
        self.found.n_starts = values["n_starts"]


# --- search="net" ---------------------------------------------------------------------------------

# Without a tolerance, a residual within this many deviations of the sharpest single component is
# explained.
TOLERANCE_SCALES = 3.0


@dataclass(frozen=True)
class NetFound:
    """What Algorithm 2 found, in standardised units."""

    law: Law
    labelling: Labelling
    attempts: tuple[Attempt, ...]
    stopped: StopReason
    spectrum: Subspace | None


def search_net(
    engine: Engine,
    settings: Settings,
    make_solver: SolverMaker,
    checkpoint: Checkpoint | None = None,
) -> NetFound:
    """Lay a net, try its points, accept, remove, repeat."""
    problem, tell, begun = engine.problem, settings.callback, time.monotonic()
    try:
        source = net_source(
            engine,
            settings.n_components,
            subspace=settings.subspace or "bounded",
            granularity=settings.granularity,
            seed=settings.seed,
        )
    except PassStopped as stop:
        none = _law(engine, Taken(()), (), settings.seed)
        return NetFound(none, Taken(()), (), stop.reason, None)

    def report(found: Peeled, n_tried: int) -> Any:
        # Algorithm 2 counts rows; it has no score to report.
        passed = time.monotonic() - begun
        return tell and tell(Progress("net", len(found.accepted), 0.0, passed, n_tried))

    # Fewer rows than columns are fitted in the space that they span.
    place, turned = engine, None
    if (
        isinstance(engine, MemoryEngine)
        and engine.sample(net_rows(problem), settings.seed).y.size < problem.n_columns
    ):
        turned = engine.in_row_space(settings.seed)
    if turned is not None:
        place, basis = turned
        source = replace(source, basis=basis)
    tolerance, limit = settings.tolerance, settings.time_limit
    delta = tolerance / problem.target_scale if tolerance else _tolerance(place, problem, settings)
    peeled = Peeling(
        place,
        source,
        tolerance=delta,
        n_components=settings.n_components,
        taus=settings.taus,
        max_starts=settings.max_starts or MAX_STARTS,
        time_limit=None if limit is None else limit - (time.monotonic() - begun),
        callback=report,
        seed=settings.seed,
        n_jobs=settings.n_jobs,
        max_iter=settings.max_iter,
        tol=settings.tol,
        make_solver=make_solver,
        checkpoint=checkpoint,
    ).run()
    if source.basis is not None:
        peeled.accepted = [_turned_back(found, source.basis) for found in peeled.accepted]
    labelling = Taken(tuple(accepted.near for accepted in peeled.accepted))
    if peeled.stopped in (StopReason.TIME_LIMIT, StopReason.CALLBACK):
        engine.hurry()
    return NetFound(
        _law(engine, labelling, peeled.accepted, settings.seed),
        labelling,
        _attempts(peeled),
        peeled.stopped,
        source.subspace,
    )


def _turned_back(found: Accepted, basis: Floats) -> Accepted:
    """Write a component in all columns."""
    theta = basis @ found.theta
    return replace(found, theta=theta, near=replace(found.near, theta=theta))


def net_rows(frame: Frame) -> int:
    """Return how many rows are drawn at most."""
    return SUBSPACE_ROWS * frame.n_columns


def _tolerance(engine: Engine, table: Frame, settings: Settings) -> float:
    """Read the noise off the best single component."""
    single = find_single(
        engine,
        None,
        given=None,
        n_starts=32,
        seed=settings.seed,
        max_iter=settings.max_iter,
        tol=1e-6,
        make_solver=ExactSolver,
        share=majority(table),
    )
    scale = single.scale
    if scale is None:
        run, total = single.run, engine.problem.mass
        scale = consistent_scale(run.objective[-1], single.mass, total, run.rank)
    return max(TOLERANCE_SCALES * scale, MODEL.smallest_noise)


def _law(engine: Engine, labelling: Labelling, accepted: Sequence[Accepted], seed: int) -> Law:
    """Describe the accepted components: scale and share of the rows that each explains."""
    problem = engine.problem
    thetas = np.array([found.theta for found in accepted]).reshape(-1, problem.n_columns)
    shares = np.array([found.share for found in accepted])
    scales = np.ones(len(accepted))
    if accepted:
        mass, square = engine.fold(label_squares, labelling, thetas)
        spare = np.maximum(mass - problem.n_columns, 1.0)
        scales = np.maximum(np.sqrt(square / spare), MODEL.smallest_noise)
    sample = engine.sample(SUBSPACE_ROWS * problem.n_columns, seed)
    extent = float(np.ptp(sample.y)) or 1.0
    return Law(thetas, scales, shares, -float(np.log(extent)))


def _attempts(peeled: Peeled) -> tuple[Attempt, ...]:
    """Record what was accepted and what was tried in vain."""
    taken = [
        Attempt("peel", found.source, found.share, True, f"start {found.start + 1} accepted")
        for found in peeled.accepted
    ]
    refused = [
        Attempt("peel", "net", 0.0, False, f"share {tried.tau:.3g}: {tried.reason}")
        for tried in peeled.rejected
    ]
    return (*taken, *refused)
