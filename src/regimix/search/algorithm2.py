"""Algorithm 2 as the paper states it: try starts, accept a component, remove its rows, repeat.

``search="net"`` uses it with the starts of a net (``net.py``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from regimix.data.problem import Frame
from regimix.engines.base import Engine, Selected
from regimix.engines.parts import PassStopped
from regimix.engines.selection import Near, masked, masked_mass, present
from regimix.errors import ParameterError, StopReason
from regimix.model.blocks import Labelling, Law
from regimix.model.labelling import Taken, label_squares
from regimix.model.rows import whitened_rows
from regimix.search.checkpoint import Checkpoint
from regimix.search.net import SUBSPACE_ROWS, net_source
from regimix.search.selection import Attempt
from regimix.search.settings import Progress, Settings, answer_interrupts
from regimix.search.single import Starts, find_single
from regimix.search.subspace import Subspace, find_subspace
from regimix.trimmed.ilts import MAX_ITER, ExactSolver, Run, Solver, concentrate, kept_mass
from regimix.trimmed.reweight import consistent_scale

__all__ = [
    "Accepted",
    "MAX_STARTS",
    "NetFound",
    "PeelState",
    "Peeled",
    "Rejected",
    "SolverMaker",
    "StartSource",
    "net_rows",
    "peel",
    "search_net",
]

Floats = NDArray[np.float64]


class StartSource(Protocol):
    """Starts in a random order, made when they are asked for."""

    @property
    def size(self) -> int:
        """How many starts there are."""
        ...

    def draw(self, seed: int, first: int, count: int) -> Starts:
        """Make starts ``first``, ``first + 1``, ... of the order that belongs to a seed."""
        ...


@dataclass(frozen=True)
class Accepted:
    """A component that a start led to.

    Attributes
    ----------
    theta : ndarray of shape (p,)
        Standardised coefficients.
    near : Near
        Tells the rows within the tolerance of any block.
    rows : array of shape (n,), bool
        Those rows, which were removed.
    share : float
        Their weight as a share of the original total; ``tau`` is what was asked for.
    start : int
        Place of the start in its random order; ``start + 1`` starts were tried.
    source : str
        Where the start came from.
    """

    theta: Floats
    near: Near
    rows: Any
    share: float
    tau: float
    start: int
    source: str


@dataclass(frozen=True)
class Rejected:
    """A search for one component at one share that accepted no start, and removed nothing.

    Attributes
    ----------
    component, n_tried : int
        Which component was searched for, from 0, and how many starts were tried.
    tau, needed : float
        The share asked for, and the rows that had to lie within the tolerance.
    nearest : float
        The smallest tolerance that would have accepted one of them.
    reason : str
    """

    component: int
    tau: float
    needed: float
    n_tried: int
    nearest: float
    reason: str


@dataclass(frozen=True)
class Peeled:
    """What Algorithm 2 found, and why it stopped.

    Attributes
    ----------
    accepted : tuple of Accepted
    rejected : tuple of Rejected
    stopped : StopReason
        None accepted: for some component, though every start was tried.
    n_starts : int
        Starts tried in all.
    remaining : array of shape (n,), bool
        The rows that no component explains.
    """

    accepted: tuple[Accepted, ...]
    rejected: tuple[Rejected, ...]
    stopped: StopReason
    n_starts: int
    remaining: Any


@dataclass(frozen=True)
class PeelState:
    """What a callback is told after each batch of starts that led to no component."""

    component: int
    tau: float
    n_tried: int
    nearest: float
    accepted: tuple[Accepted, ...]


# --- the algorithm --------------------------------------------------------------------------------

SolverMaker = Callable[[Frame, int, float], Solver]

# Ratio c of the geometric search {1, c, c^2, ...}: the share is met within a fifth, and each
# halving of the share costs three searches.
SHARE_RATIO = 0.8
# Fewer rows per coefficient lie near some plane by chance: the geometric search ends there.
ROWS_PER_COEFFICIENT = 2.0
# Starts that run together. One pass over the rows serves all of them; those after the first that
# is accepted run in vain.
BATCH = 8
MAX_STARTS = 200
# A sum of weights carries rounding: a mass is met when it is met up to this share.
ROUNDING = 1e-9


def peel(
    engine: Engine,
    source: StartSource,
    *,
    tolerance: float,
    n_components: int | None = None,
    taus: float | Sequence[float] | None = None,
    ratio: float = SHARE_RATIO,
    max_starts: int = MAX_STARTS,
    time_limit: float | None = None,
    callback: Callable[[PeelState], Any] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    max_iter: int = MAX_ITER,
    tol: float = 0.0,
    make_solver: SolverMaker | None = None,
    checkpoint: Checkpoint | None = None,
) -> Peeled:
    """Find components one after the other, each among the rows that those before it left.

    The answer does not depend on ``n_jobs``: starts run in batches of fixed size and are judged in
    their order.

    Parameters
    ----------
    engine : Engine
    source : StartSource
    tolerance : float
        The paper's delta, in units of the standardised response: a smaller residual is explained.
    n_components : int, optional
        Default: as many as there are ``taus``, or until none is accepted.
    taus : float or sequence of float, optional
        Share of all rows that each component must explain, and that ILTS keeps; below the true
        share. Default: the geometric search 1, c, c^2, ... of the paper's footnote.
    ratio : float
        The c of the geometric search.
    max_starts : int
        Most starts for one component at one share.
    time_limit : float, optional
        Seconds; the batch under way is finished first.
    callback : callable, optional
        Told of every batch; a true answer stops with the best so far.
    n_jobs : int, optional
        Batches that run side by side, as joblib counts them.
    max_iter, tol, make_solver : of ILTS
    checkpoint : Checkpoint, optional
        Where each component and each share in vain is written down. A search that finds some of its
        own there goes on from them, to the same end.
    """
    _check(tolerance, max_starts, ratio)
    shares = _read_taus(taus, n_components)
    options = _Options(tolerance, max_starts, seed, max_iter, tol, make_solver, callback)
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    jobs = int(effective_n_jobs(n_jobs))
    stopped: StopReason
    # One BLAS thread in every case: batches are small, and sums must not depend on ``n_jobs``.
    with threadpool_limits(1, "blas"), Parallel(n_jobs=jobs, prefer="threads") as pool:
        search = _Search(engine, engine.problem, source, options, deadline, pool, jobs, checkpoint)
        try:
            with answer_interrupts():
                search.resume()
                if shares is None:
                    stopped = search.geometric(n_components, ratio)
                else:
                    stopped = search.given(shares)
        except _Stop as stop:
            stopped = stop.reason
        except PassStopped as stop:
            stopped = stop.reason
        except KeyboardInterrupt:
            stopped = StopReason.INTERRUPTED
    found, rejected = tuple(search.accepted), tuple(search.rejected)
    return Peeled(found, rejected, stopped, search.n_starts, search.remaining)


def _read_taus(
    taus: float | Sequence[float] | None, n_components: int | None
) -> tuple[float, ...] | None:
    if n_components is not None and n_components < 1:
        raise ParameterError(f"n_components must be at least 1; got {n_components!r}.")
    if taus is None:
        return None
    shares = np.atleast_1d(np.asarray(taus, dtype=np.float64))
    if shares.size == 1 and n_components is not None:
        shares = np.repeat(shares, n_components)
    if n_components not in (None, shares.size):
        wish = f"taus must be one share or one for each of the {n_components} components"
        raise ParameterError(f"{wish}; got {shares.size}.")
    if not ((shares > 0) & (shares <= 1)).all():
        raise ParameterError(f"taus must be shares above 0 and at most 1; got {shares.tolist()}.")
    return tuple(shares.tolist())


def _check(tolerance: float, max_starts: int, ratio: float) -> None:
    for fits, wish in (
        (0 < tolerance < math.inf, f"tolerance must be a positive number; got {tolerance!r}."),
        (max_starts >= 1, f"max_starts must be at least 1; got {max_starts!r}."),
        (0 < ratio < 1, f"ratio must be above 0 and below 1; got {ratio!r}."),
    ):
        if not fits:
            raise ParameterError(wish)


@dataclass(frozen=True)
class _Options:
    tolerance: float
    max_starts: int
    seed: int
    max_iter: int
    tol: float
    make_solver: SolverMaker | None
    callback: Callable[[PeelState], Any] | None


class _Stop(Exception):  # noqa: N818 - not an error: the end of a search
    def __init__(self, reason: StopReason) -> None:
        self.reason = reason


@dataclass(frozen=True)
class _Outcome:
    """Where ILTS from one start ended, and the largest residual of the rows it keeps."""

    theta: Floats
    threshold: float
    source: str


@dataclass
class _Search:
    """The state of a search: what was found, and the rows that are left."""

    engine: Engine
    problem: Frame  # the original one: n stays what it was
    source: StartSource
    options: _Options
    deadline: float
    pool: Any
    jobs: int
    saved: Checkpoint | None = None
    accepted: list[Accepted] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    n_starts: int = 0

    @property
    def remaining(self) -> Any:
        """The rows that no component has taken."""
        return self.engine.map_rows(present)

    def given(self, taus: Sequence[float]) -> StopReason:
        """Search for one component at each of the given shares."""
        tried = len(self.accepted) + len(self.rejected)
        for component, tau in enumerate(taus[tried:], tried):
            self.attempt(component, tau)
            self.save()
        return StopReason.ALL_FOUND if len(self.accepted) == len(taus) else self._unsuccessful()

    def geometric(self, n_components: int | None, ratio: float) -> StopReason:
        """Search at ever smaller shares; the footnote to Algorithm 2."""
        smallest = ROWS_PER_COEFFICIENT * self.problem.n_columns / self.problem.mass
        while len(self.accepted) != n_components:
            tau = ratio ** len(self.rejected)
            if self.rejected and tau < smallest:
                return self._unsuccessful()
            self.attempt(len(self.accepted), tau)
            self.save()
        return StopReason.ALL_FOUND

    def save(self) -> None:
        """Write down how far the search is, if there is a file for that."""
        if self.saved is None:
            return
        # The rows of a component, and so its share, follow from its coefficients; the next share to
        # try from how many were tried in vain.
        names = ("theta", "tau", "start", "source")
        values = {
            "accepted": [{name: getattr(found, name) for name in names} for found in self.accepted],
            "rejected": [asdict(tried) for tried in self.rejected],
            "n_starts": self.n_starts,
        }
        self.saved.put("peel", values)

    def resume(self) -> None:
        """Go on from what is written down; rows are removed as they were."""
        values = None if self.saved is None else self.saved.get("peel")
        if values is None:
            return
        for component in values["accepted"]:
            self._take(*self._explained(component["theta"]), **component)
        self.rejected = [Rejected(**rejected) for rejected in values["rejected"]]
        self.n_starts = values["n_starts"]

    def _unsuccessful(self) -> StopReason:
        limited = any(try_.reason.startswith("max_starts") for try_ in self.rejected)
        return StopReason.MAX_STARTS if limited else StopReason.NONE_ACCEPTED

    def attempt(self, component: int, tau: float) -> bool:
        """Try starts until one is accepted: lines 7 to 13 of Algorithm 2."""
        needed, left = kept_mass(tau, self.problem), self.engine.problem.mass
        if needed > left * (1 + ROUNDING):
            reason = f"only {left:g} rows are left"
            self.rejected.append(Rejected(component, tau, needed, 0, math.inf, reason))
            return False
        n_tried, nearest, stop = 0, math.inf, None
        for batch in self._batches((component, len(self.rejected)), needed):
            for outcome in batch:
                nearest = min(nearest, outcome.threshold)
                n_tried += 1
                self.n_starts += 1
                if self._accept(outcome, tau, needed, n_tried - 1):
                    return True
            state = PeelState(component, tau, n_tried, nearest, tuple(self.accepted))
            stop = self._asked_to_stop(state)
            if stop is not None:
                break
        reason = "every start was tried"
        if n_tried < self.source.size:
            reason = f"{stop or 'max_starts'}: {n_tried} of {self.source.size} starts were tried"
        self.rejected.append(Rejected(component, tau, needed, n_tried, nearest, reason))
        if stop is not None:
            raise _Stop(stop)
        return False

    def _asked_to_stop(self, state: PeelState) -> StopReason | None:
        if self.options.callback is not None and self.options.callback(state):
            return StopReason.CALLBACK
        return StopReason.TIME_LIMIT if time.monotonic() > self.deadline else None

    def _batches(self, which: tuple[int, int], mass: float) -> Iterator[list[_Outcome]]:
        """Run starts in a random order of their own, and hand over batches in that order."""
        seed = int(np.random.SeedSequence([self.options.seed, *which]).generate_state(1)[0])
        count = min(self.options.max_starts, self.source.size)
        for first in range(0, count, BATCH * self.jobs):
            drawn = [
                self.source.draw(seed, begin, min(BATCH, count - begin))
                for begin in range(first, min(first + BATCH * self.jobs, count), BATCH)
            ]
            yield from self.pool(
                delayed(_run_batch)(self.engine, starts, mass, self.options) for starts in drawn
            )

    def _accept(self, outcome: _Outcome, tau: float, needed: float, start: int) -> bool:
        """Accept if enough rows lie within the tolerance, and remove them: lines 9 to 14."""
        # The kept rows are those of smallest residual: if the largest of these is too large, fewer
        # than needed lie within the tolerance, and no row need be looked at.
        if not outcome.threshold < self.options.tolerance:
            return False
        near, mass = self._explained(outcome.theta)
        if mass < needed * (1 - ROUNDING):
            return False
        self._take(near, mass, theta=outcome.theta, tau=tau, start=start, source=outcome.source)
        return True

    def _explained(self, theta: Floats) -> tuple[Near, float]:
        """Return what tells the remaining rows within the tolerance, and their weight."""
        near = Near(theta, self.options.tolerance)
        return near, self.engine.fold(masked_mass, near)

    def _take(self, near: Near, mass: float, **found: Any) -> None:
        """Take a component, and its rows away."""
        rows = self.engine.map_rows(masked, near)
        share = mass / self.problem.mass
        self.accepted.append(Accepted(near=near, rows=rows, share=share, **found))
        self.engine = self.engine.without(near)


def _run_batch(engine: Engine, starts: Starts, mass: float, options: _Options) -> list[_Outcome]:
    """Run ILTS from a few starts together."""
    thresholds = np.full(len(starts.thetas), math.inf)

    def watch(start: int, run: Run, selected: Selected) -> None:  # noqa: ARG001 - a watcher's face
        thresholds[start] = selected.threshold

    make = options.make_solver
    runs, _ = concentrate(
        engine,
        starts.thetas,
        mass,
        solver=None if make is None else make(engine.problem, len(starts.thetas), mass),
        max_iter=options.max_iter,
        tol=options.tol,
        watch=watch,
    )
    ends = zip(runs, thresholds.tolist(), starts.source, strict=True)
    return [_Outcome(run.theta, threshold, source) for run, threshold, source in ends]


# --- search="net" ---------------------------------------------------------------------------------

# Rows from which the number of directions is read off, per coefficient.
COUNT_ROWS = 300
# Without a tolerance, a residual within this many deviations of the sharpest single component is
# explained.
TOLERANCE_SCALES = 3.0
# No tolerance below this, in units of the standardised response.
SMALLEST_TOLERANCE = 1e-9


@dataclass(frozen=True)
class NetFound:
    """What Algorithm 2 found, in standardised units."""

    law: Law
    labelling: Labelling
    attempts: tuple[Attempt, ...]
    stopped: StopReason
    spectrum: Subspace


def search_net(
    engine: Engine,
    settings: Settings,
    make_solver: SolverMaker,
    checkpoint: Checkpoint | None = None,
) -> NetFound:
    """Lay a net, try its points, accept, remove, repeat."""
    problem = engine.problem
    size = settings.n_components or _certain_directions(engine, settings.seed)
    source = net_source(
        engine,
        min(size, problem.n_features),
        subspace=settings.subspace or "bounded",
        granularity=settings.granularity,
        seed=settings.seed,
    )
    tolerance = settings.tolerance
    delta = _tolerance(engine, settings) if tolerance is None else tolerance / problem.target_scale
    peeled = peel(
        engine,
        source,
        tolerance=delta,
        n_components=settings.n_components,
        taus=settings.taus,
        max_starts=settings.max_starts or MAX_STARTS,
        time_limit=settings.time_limit,
        callback=_report(settings, time.monotonic()),
        seed=settings.seed,
        n_jobs=settings.n_jobs,
        max_iter=settings.max_iter,
        tol=settings.tol,
        make_solver=make_solver,
        checkpoint=checkpoint,
    )
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


def net_rows(frame: Frame) -> int:
    """Return how many rows are drawn at most."""
    return max(SUBSPACE_ROWS, COUNT_ROWS) * frame.n_columns


def _certain_directions(engine: Engine, seed: int) -> int:
    """Count the directions that the response certainly depends on: a net needs to know."""
    sample = engine.sample(COUNT_ROWS * engine.problem.n_columns, seed)
    rows, _ = whitened_rows(sample, intercept=engine.problem.fit_intercept)
    rng = np.random.default_rng(seed)
    space = find_subspace(rows.features, rows.y, rows.weights, 1, "bounded", rng)
    return max(1, space.certain)


def _tolerance(engine: Engine, settings: Settings) -> float:
    """Read the noise off the best single component."""

    def exact(problem: Frame, n_starts: int, mass: float) -> Solver:
        return ExactSolver(n_starts, problem.n_columns, mass)

    single = find_single(
        engine,
        None,
        given=None,
        n_starts=32,
        seed=settings.seed,
        max_iter=settings.max_iter,
        tol=1e-6,
        make_solver=exact,
    )
    scale = single.scale
    if scale is None:
        run, total = single.run, engine.problem.mass
        scale = consistent_scale(run.objective[-1], single.mass, total, run.rank)
    return max(TOLERANCE_SCALES * scale, SMALLEST_TOLERANCE)


def _report(settings: Settings, begun: float) -> Callable[[PeelState], Any] | None:
    """Translate what peeling tells into what the user's callback expects."""
    if settings.callback is None:
        return None
    tell = settings.callback

    def report(state: PeelState) -> Any:
        elapsed = time.monotonic() - begun
        # Algorithm 2 counts rows; it has no score to tell.
        return tell(Progress("net", len(state.accepted), 0.0, elapsed, state.n_tried))

    return report


def _law(engine: Engine, labelling: Labelling, accepted: tuple[Accepted, ...], seed: int) -> Law:
    """Describe the accepted components: scale and share of the rows that each explains."""
    problem = engine.problem
    thetas = np.array([found.theta for found in accepted]).reshape(-1, problem.n_columns)
    shares = np.array([found.share for found in accepted])
    scales = np.ones(len(accepted))
    if accepted:
        mass, square = engine.fold(label_squares, labelling, thetas)
        spare = np.maximum(mass - problem.n_columns, 1.0)
        scales = np.maximum(np.sqrt(square / spare), SMALLEST_TOLERANCE)
    sample = engine.sample(COUNT_ROWS * problem.n_columns, seed)
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
