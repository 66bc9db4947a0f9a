"""From rows to a Mixture: search on a sample, polish on all rows, translate to user units."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Engine
from regimix.engines.mixed import Labelling, Law
from regimix.engines.parts import PassStopped
from regimix.errors import ParameterError
from regimix.frame import Frame
from regimix.mixture.assemble import to_mixture
from regimix.mixture.checkpoint import Checkpoint
from regimix.mixture.control import Control
from regimix.mixture.excerpt import excerpt_rows
from regimix.mixture.kregimes import assign_nearest, nearest_regimes, plain_count
from regimix.mixture.labelling import Likeliest
from regimix.mixture.net import net_rows, search_net
from regimix.mixture.polish import Polished
from regimix.mixture.prune import MARGIN
from regimix.mixture.refine import (
    SolverMaker,
    assign_and_trim,
    make_exact,
)
from regimix.mixture.result import Attempt, Mixture
from regimix.mixture.resume import ENDS, finish_checkpoint, open_checkpoint, resumed_polish
from regimix.mixture.rowlaw import MOMENT_ROWS
from regimix.mixture.selection import Selection
from regimix.mixture.settings import Settings
from regimix.mixture.stages import first_stage, search_in_stages, select_in_stages
from regimix.mixture.worth import component_worths, needs_no_features
from regimix.search.hunt import bulk_model
from regimix.search.model import MEMBER, Fitted, Model, evaluate, refit
from regimix.search.propose import Proposer
from regimix.search.rows import Rows, Units, whitened_rows
from regimix.search.subspace import Subspace
from regimix.threads import fitting_threads
from regimix.trimmed.gradient import GradientSolver
from regimix.trimmed.ilts import ExactSolver, Solver

__all__ = ["fit_mixture"]

Floats = NDArray[np.float64]

# The search sees at most so many rows, so many per coefficient: enough for 16 components of 50
# rows per coefficient. Everything after it sees all rows.
SEARCH_ROWS = 20_000
SEARCH_ROWS_PER_COEFFICIENT = 800
# EM on the search's own rows once the moves are over.
FINAL_ROUNDS = 40
FINAL_TOLERANCE = 1e-5
# Where a polish on more rows follows, rounds that would gain no more than this are left to it.
FINAL_ENOUGH = 0.1
# Who stopped the search by hand waits for the answer: it is what was found so far, unpolished.
USER_WAITS = ("interrupted", "callback")
# Where no component is found, this share of the rows is taken to follow the bulk.
BULK_SHARE = 0.98
# Directions of a component's whitened rows with less than this share of the largest are open.
RANK_TOLERANCE = 1e-10


@dataclass
class _Clock:
    """Seconds spent in each stage."""

    timings: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        begun = time.perf_counter()
        yield
        self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - begun


@dataclass(frozen=True)
class _Found:
    """What a search hands over, in standardised units."""

    law: Law
    origin: tuple[str, ...]
    score: float
    component_scores: Floats
    attempts: tuple[Attempt, ...]
    stopped: str
    ranks: tuple[int, ...]
    spectrum: Subspace | None
    selection: Selection


def fit_mixture(engine: Engine, settings: Settings, init: Floats | None = None) -> Mixture:
    """Find every component, told nothing but the data.

    Parameters
    ----------
    init : ndarray of shape (k, p), optional
        The user's own starts, standardised.
    """
    if settings.search == "net" and init is not None:
        raise ParameterError(
            'init is not used by search="net", whose starts are the points of a net; leave one '
            "of the two out."
        )
    with fitting_threads(engine.problem.n_columns):
        if settings.search == "net":
            return _fit_net(engine, settings, _Clock())
        return _fit_searched(engine, settings, init, _Clock())


def _fit_searched(
    engine: Engine, settings: Settings, init: Floats | None, clock: _Clock
) -> Mixture:
    """Search for the whole model on a sample, and polish it on all rows."""
    problem = engine.problem
    with clock.stage("sample"):
        limit = max(SEARCH_ROWS, SEARCH_ROWS_PER_COEFFICIENT * problem.n_columns)
        # One pass draws for the search, for the law of the rows and for the excerpt.
        engine.draw(max(limit, MOMENT_ROWS, excerpt_rows(problem)), settings.seed)
        sample = engine.sample(limit, settings.seed)
        rows, units = whitened_rows(sample, intercept=problem.fit_intercept)
        given = None if init is None else _given(rows, units.forth(init, sample.Z, rows.design))
        saved = open_checkpoint(engine, settings, sample, init)
    partial = rows.n == limit and plain_count(settings) is None
    with clock.stage("search"):
        found = _search(rows, units, settings, given, saved, partial=partial)
    with clock.stage("polish"):
        polished = Polished(found.law)
        if partial and found.stopped not in USER_WAITS:
            # A search that may go on later may end elsewhere: rounds from here are not its own.
            polished = resumed_polish(engine, found.law, saved if found.stopped in ENDS else None)
        law, labelling, cut_short = _finish(engine, polished, settings)
    stopped = cut_short or found.stopped
    mixture = to_mixture(
        engine,
        law,
        labelling,
        settings,
        known=polished.sums if law is polished.law else None,
        by_component={
            "origin": found.origin,
            "component_evidence": found.component_scores,
            "ranks": found.ranks,
        },
        evidence=found.score,
        attempts=found.attempts,
        stopped=stopped,
        timings=clock.timings,
        spectrum=found.spectrum,
        selection=found.selection,
    )
    finish_checkpoint(saved, stopped)
    return mixture


def _fit_net(engine: Engine, settings: Settings, clock: _Clock) -> Mixture:
    """Run Algorithm 2 as stated; where it accepts nothing, answer with one robust component."""
    with clock.stage("search"):
        # One pass draws whatever is drawn; what follows the search may have no time for more.
        engine.draw(max(net_rows(engine.problem), excerpt_rows(engine.problem)), settings.seed)
        saved = open_checkpoint(engine, settings)
        found = search_net(engine, settings, _solver_maker(settings), saved)
    law, labelling = found.law, found.labelling
    origin = ("net",) * len(found.law.scale)
    if not origin:
        with clock.stage("polish"):
            law, labelling = _robust_law(engine, settings)
            origin = ("bulk",)
    mixture = to_mixture(
        engine,
        law,
        labelling,
        settings,
        by_component={"origin": origin},
        # Algorithm 2 accepts by counting rows; it knows no score.
        evidence=0.0 if found.law.scale.size else -np.inf,
        attempts=found.attempts,
        stopped=found.stopped,
        timings=clock.timings,
        spectrum=found.spectrum,
    )
    finish_checkpoint(saved, found.stopped, net=True)
    return mixture


def _robust_law(engine: Engine, settings: Settings) -> tuple[Law, Labelling]:
    """Fit one component through the bulk of the rows."""
    problem = engine.problem
    sample = engine.sample(SEARCH_ROWS, settings.seed)
    rows, units = whitened_rows(sample, intercept=problem.fit_intercept)
    law = _law(rows, units, _one_robust(rows).model)
    return law, Likeliest(law)


def _search(
    rows: Rows,
    units: Units,
    settings: Settings,
    given: Model | None,
    saved: Checkpoint | None = None,
    *,
    partial: bool = False,
) -> _Found:
    """Search for the whole model on the sample; polish it there.

    ``partial``: it is to be polished on more rows too.
    """
    proposer = Proposer(
        np.random.default_rng(settings.seed),
        kind=settings.subspace,
        joint_only=settings.search == "joint",
        n_jobs=settings.n_jobs,
    )
    state = search_in_stages(
        rows,
        proposer,
        Control(settings),
        n_components=settings.n_components,
        given=given,
        checkpoint=saved,
    )
    fitted, count = state.current, plain_count(settings)
    if count is not None:
        model = fitted.model if fitted.model.m else _one_robust(rows).model
        fitted = nearest_regimes(rows, model, count, settings.seed)
    # A number that was asked for need not prove itself by a margin.
    margin = MARGIN if settings.n_components is None else 0.0
    few = first_stage(rows)
    nothing = fitted.model.m == 0 or needs_no_features(rows, fitted, margin, few)
    if fitted.model.m == 0 or (nothing and settings.n_components is None):
        fitted = _one_robust(rows)
    # Evidence was weighed against a bell; the model itself has a flat background.
    flat = rows.against_flat()
    settled = count is not None or nothing or state.stopped in USER_WAITS
    rounds = 0 if settled else FINAL_ROUNDS
    enough = FINAL_ENOUGH if partial and few is not rows else 0.0
    final = refit(flat, fitted.model, rounds, tolerance=FINAL_TOLERANCE, enough=enough)
    if final.model.m != fitted.model.m:
        final = evaluate(flat, fitted.model)
    return _Found(
        _law(rows, units, final.model),
        fitted.model.origin,
        min(fitted.score, 0.0) if nothing else fitted.score,
        component_worths(rows, fitted, few),
        tuple(state.attempts),
        state.stopped,
        _ranks(rows, fitted, few),
        proposer.spectrum,
        # A given number was not chosen, and a search that was stopped must not go on here.
        select_in_stages(
            state.path,
            rows,
            fitted,
            complete=settings.n_components is None and state.stopped == "nothing improves",
        ),
    )


def _law(rows: Rows, units: Units, model: Model) -> Law:
    """Translate a model of whitened rows into standardised units."""
    return Law(
        units.back(model.coef),
        model.scale * units.y_scale,
        model.share,
        rows.log_flat - float(np.log(units.y_scale)),
    )


def _one_robust(rows: Rows) -> Fitted:
    """Answer with one component through the bulk where the empty model wins.

    EM would give the background half of the rows, for nothing sets them apart; here only rows far
    from the bulk are to be outliers.
    """
    return evaluate(rows, replace(bulk_model(rows), share=np.array([BULK_SHARE])))


def _ranks(rows: Rows, fitted: Fitted, few: Rows) -> tuple[int, ...]:
    """Return how many coefficients each component's rows determine; few may determine all."""
    if few is not rows:
        in_few = _ranks(few, evaluate(few, fitted.model), few)
        if min(in_few, default=0) == rows.width:
            return in_few
    ranks = []
    for posterior in fitted.posterior[:-1]:
        members = np.flatnonzero(posterior > MEMBER)
        block = rows.design[members] * np.sqrt(posterior[members, None])
        values = np.linalg.eigvalsh(block.T @ block)
        ranks.append(int(np.count_nonzero(values > RANK_TOLERANCE * values.max(initial=1e-300))))
    return tuple(ranks)


def _given(rows: Rows, coef: Floats) -> Model:
    """Make a model of the user's starts: each as wide as the residuals nearest to it."""
    residuals = np.abs(rows.y - coef @ rows.design.T)
    nearest = residuals.min(axis=0)
    scale = np.full(len(coef), max(float(np.median(nearest)), 1e-3 * rows.spread(), 1e-7))
    return Model(coef, scale, np.full(len(coef), 0.9 / len(coef)), ("given",) * len(coef))


def _finish(
    engine: Engine, polished: Polished, settings: Settings
) -> tuple[Law, Labelling, str | None]:
    """Say which row belongs where, and why that could not be found out to the end, if so.

    Rows are trimmed to a given share; or components without noise are made exact.
    """
    law = polished.law
    if polished.stopped is not None:
        return law, Likeliest(law), polished.stopped
    try:
        if plain_count(settings) is not None:
            return *assign_nearest(engine, law), None
        if settings.keep is not None:
            return *assign_and_trim(engine, law, settings.keep), None
        make = _solver_maker(settings)
        return *make_exact(engine, law, make, settings.max_iter, settings.tol), None
    except PassStopped as stop:
        return law, Likeliest(law), stop.reason


def _solver_maker(settings: Settings) -> SolverMaker:
    """Return what makes the inner solver that was asked for."""

    def make(problem: Frame, n_starts: int, mass: float) -> Solver:
        if settings.solver == "exact":
            return ExactSolver(n_starts, problem.n_columns, mass)
        return GradientSolver(problem, mass, n_starts, inner=settings.solver)

    return make
