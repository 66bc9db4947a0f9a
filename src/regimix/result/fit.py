"""From rows to a Mixture: search on a sample, polish on all rows, translate to user units."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame, Problem
from regimix.engines.base import Engine, Sample
from regimix.engines.memory import MemoryEngine
from regimix.engines.parts import PassStopped
from regimix.errors import ParameterError, StopReason
from regimix.model.blocks import Labelling, Law, MixtureSums, without_outliers
from regimix.model.em import (
    DEADLINE,
    REGIME_GAIN,
    Fitted,
    Parameters,
    evaluate,
    late,
    point_of,
    refit,
    scores_without,
)
from regimix.model.given_values import evidence_given_values
from regimix.model.labelling import Likeliest, Nearest, Ordered
from regimix.model.laws import ROOT_8, Background, NoiseLaw
from regimix.model.numbers import MODEL
from regimix.model.polish import Begun, Polished, polish
from regimix.model.relation import gain_of_shares
from regimix.model.rows import (
    MAD_TO_DEVIATION,
    Rows,
    Units,
    weighted_fit,
    weighted_quantile,
    whitened_rows,
)
from regimix.result.answer import grade
from regimix.result.inference import infer
from regimix.result.mixture import Mixture
from regimix.result.rivals import FEW_ROWS, Contest, Rival, find_rivals, noise_named
from regimix.result.rowlaw import (
    MOMENT_ROWS,
    MOST_COVARIANCE_FEATURES,
    Excerpt,
    RowLaw,
    excerpt_rows,
    row_counts,
)
from regimix.search.algorithm2 import net_rows, search_net
from regimix.search.checkpoint import Checkpoint, fingerprint
from regimix.search.finish import assign_and_trim, make_exact
from regimix.search.likelihood import assign_nearest, most_likely, nearest_regimes
from regimix.search.loop import (
    Search,
    complete_in_stages,
    first_stage,
    is_small,
    search_again,
    search_budget,
)
from regimix.search.numbers import SEARCH
from regimix.search.propose import Proposer
from regimix.search.selection import (
    Attempt,
    Path,
    Repeats,
    Selection,
    Weighed,
    best_of,
    label_alike,
    relation_given_values,
    score_of_constants,
    score_without_slopes,
    select,
    weigh,
)
from regimix.search.settings import Control, Settings, answer_interrupts
from regimix.search.single import find_single, majority
from regimix.search.subspace import Subspace
from regimix.threads import fitting_threads
from regimix.trimmed.gradient import solver_maker
from regimix.trimmed.ilts import MAX_ITER, ExactSolver, kept_mass
from regimix.trimmed.reweight import CUTOFF, consistent_scale, reweight

Floats = NDArray[np.float64]
# Makes an answer of a model: with the likelier noise, with outliers or without.
Judge = Callable[[Fitted], Weighed]

# Ends after which there is nothing to go on with. (A budget of starts ends Algorithm 2, too.)
ENDS = (StopReason.NOTHING_IMPROVES, StopReason.ALL_FOUND, StopReason.NONE_ACCEPTED)
NET_ENDS = (*ENDS, StopReason.MAX_STARTS)
# Rows that tell one table from another, where a fit draws none.
TELLING_ROWS = 1000


def open_checkpoint(
    engine: Engine,
    settings: Settings,
    sample: Sample | None = None,
    init: Floats | None = None,
    **more: Any,
) -> Checkpoint | None:
    """Open the file that was asked for, if it belongs to these rows and settings.

    ``more`` are settings that a search for all components does not know.
    """
    if settings.checkpoint is None:
        return None
    sample = engine.sample(TELLING_ROWS, settings.seed) if sample is None else sample
    frame = engine.problem
    units = [getattr(frame, field.name) for field in fields(Frame)]
    parts: list[Any] = [value if isinstance(value, np.ndarray) else repr(value) for value in units]
    parts += [sample.Z, sample.y, sample.weights, "" if init is None else init]
    return Checkpoint.open(settings.checkpoint, fingerprint(settings, *parts, **more))


def resumed_polish(engine: Engine, law: Law, saved: Checkpoint | None) -> Polished:
    """Run EM on all rows, from the round that was noted last."""
    if saved is None:
        return polish(engine, law)

    def note(begun: Begun) -> None:
        laws = {"law": begun.law, "landing": begun.landing, "path": begun.path}
        saved.put("polish", {"step": begun.step, "gains": begun.gains, **_plain(laws)})

    known = saved.get("polish")
    return polish(engine, Begun(law) if known is None else _begun(**known), note)


def _plain(laws: dict[str, Any]) -> dict[str, Any]:
    """Write laws as plain values."""
    return {
        name: [vars(one) for one in law] if isinstance(law, tuple) else law and vars(law)
        for name, law in laws.items()
    }


def _begun(step: int, gains: Any, law: Any, landing: Any, path: Any) -> Begun:
    """Read such values."""
    before = None if landing is None else Law(**landing)
    return Begun(Law(**law), step, tuple(gains), tuple(Law(**one) for one in path), before)


def finish_checkpoint(saved: Checkpoint | None, stopped: StopReason, *, net: bool = False) -> None:
    """Remove the file of a fit that came to its end; a fit that was stopped may go on from it."""
    if saved is not None and stopped in (NET_ENDS if net else ENDS):
        saved.done()


def to_mixture(
    engine: Engine,
    law: Law,
    labelling: Labelling,
    settings: Settings,
    by_component: dict[str, Any],
    known: MixtureSums | None = None,
    **record: Any,
) -> Mixture:
    """Put components in order of share, and translate them into the user's units.

    ``by_component`` has what else is known of each component: arrays or tuples; ``known`` are sums
    over their rows, by responsibility.
    """
    problem = engine.problem
    order = np.argsort(-law.share, kind="stable")
    labelling = Ordered(labelling, order)
    judging, law = law, law.pick(order)
    for name, values in by_component.items():
        many = isinstance(values, tuple)
        record[name] = tuple(values[i] for i in order) if many else values[order]
    coef, intercept = problem.to_user(law.thetas)
    share = law.share / max(1.0, float(law.share.sum()))
    # EM counts rows by their responsibilities; trimming and Algorithm 2 by their labels.
    by_label = settings.by_label
    try:
        known = None if known is None else known.pick(order)
        labelled = labelling if by_label else None
        hurried = _hurried(problem, record["stopped"])
        inference = None if hurried else infer(engine, law, labelled, known)
    except PassStopped:
        inference = None  # there is an answer, but no time to say how sure it is
    labels, counts = _labelled(engine, labelling, judging)
    if settings.outliers:
        # So many rows were to be outliers: no probability says of a row whether it is one.
        counts["doubtful_rows"] = None
    return Mixture(
        coef=coef,
        intercept=intercept,
        weights=share,
        scale=law.scale * problem.target_scale,
        labels=labels,
        outlier_share=max(0.0, 1.0 - float(share.sum())) if law.log_background > -np.inf else 0.0,
        background=float(np.exp(law.log_background)) / problem.target_scale,
        background_middle=law.middle * problem.target_scale + problem.target_center,
        background_width=law.width * problem.target_scale,
        background_degrees=law.outlier_degrees,
        noise_degrees=law.degrees,
        cutoff=float("inf"),
        settings=settings,
        seed=settings.seed,
        feature_names=problem.feature_names,
        fit_intercept=problem.fit_intercept,
        n_rows=problem.n_rows,
        mass=problem.mass,
        weighting=problem.weighting,
        rows=RowLaw.of(engine, settings.seed, share @ law.thetas / share.sum()),
        inference=inference,
        excerpt=Excerpt.of(engine, labelling, settings.seed) if settings.keep_rows else None,
        n_iter=max(1, len(record.get("attempts", ()))),
        **counts,
        **record,
    )


def _labelled(engine: Engine, labelling: Labelling, law: Law) -> tuple[Any, dict[str, Any]]:
    """Label the rows; count those of each component, the outliers, and the rows in doubt."""
    labels = np.empty(engine.problem.n_rows, np.int64) if engine.here else None
    try:
        counts = engine.fold(row_counts, labelling, law, labels).tolist()
    except PassStopped:
        return engine.map_rows(labelling), {}
    known = {"label_counts": tuple(counts[:-1]), "doubtful_rows": counts[-1]}
    return engine.map_rows(labelling) if labels is None else labels, known


# The search sees at most so many rows, so many per coefficient: enough for 16 components of 50
# rows per coefficient. Everything after it sees all rows.
SEARCH_ROWS = 20_000
SEARCH_ROWS_PER_COEFFICIENT = 800
# Whitening many columns and the first model of a search take as long as so many least squares fits
# (measured with 1,500 and 2,000 columns), and the share of the time limit that may be exceeded.
SEARCH_FITS = 8
MOST_OVER = 0.5
# Rounds on the search's own rows once the moves are over, until so little is left to gain (nats).
FINAL_ROUNDS = 100
FINAL_SETTLED = 1e-4
# Who stopped the search by hand waits for the answer: it is what was found so far, unpolished.
USER_WAITS = (StopReason.INTERRUPTED, StopReason.CALLBACK)
# Subsets of rows to start a robust line from.
ROBUST_STARTS = 32


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
class _Compared:
    """How single relations compare with the regimes: fields of a Mixture, which explains them."""

    rivals: tuple[Rival, ...] = ()
    rivals_rows: int | None = None
    rivals_evidence: float = np.nan
    gain_of_shares: float = 0.0


@dataclass(frozen=True)
class _Found:
    """What a search hands over, in standardised units."""

    law: Law
    origin: tuple[str, ...]
    score: float
    without_slopes: float
    gain_of_line: float
    component_scores: Floats | None  # None: there was no time to find out
    attempts: tuple[Attempt, ...]
    stopped: StopReason
    ranks: tuple[int, ...] | None  # likewise
    spectrum: Subspace | None
    selection: Selection
    search_evidence: tuple[float, ...]
    n_agreed: int
    nothing: bool
    # The law and the share of outliers to expect among new rows, if there are none among these.
    outliers: tuple[Law, float] | None
    settled: bool
    compared: _Compared


def fit_mixture(engine: Engine, settings: Settings, init: Floats | None = None) -> Mixture:
    """Find every component of the rows of an engine.

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
    limit = np.inf if settings.time_limit is None else settings.time_limit
    token = DEADLINE.set(time.monotonic() + limit)
    try:
        with fitting_threads(engine.problem.n_columns):
            if settings.search == "net":
                return _fit_net(engine, settings, _Clock())
            return _fit_searched(engine, settings, init, _Clock())
    finally:
        DEADLINE.reset(token)


def _fit_searched(
    engine: Engine, settings: Settings, init: Floats | None, clock: _Clock
) -> Mixture:
    """Search for the whole model on a sample, and polish it on all rows."""
    problem = engine.problem
    with clock.stage("sample"):
        limit = max(SEARCH_ROWS, SEARCH_ROWS_PER_COEFFICIENT * problem.n_columns)
        # One pass draws for the search, for the law of the rows and for the excerpt.
        kept = excerpt_rows(problem) if settings.keep_rows else 0
        engine.draw(max(limit, MOMENT_ROWS, kept), settings.seed)
        sample = engine.sample(limit, settings.seed)
        hasty = _hasty(problem, sample, settings)
        if hasty is not None:
            return _hasty_mixture(engine, settings, hasty, clock)
        rows, units = whitened_rows(
            sample, intercept=problem.fit_intercept, outliers=settings.outliers != 0
        )
        given = None if init is None else _given(rows, units.forth(init))
        saved = open_checkpoint(engine, settings, sample, init)
    with clock.stage("search"):
        judge = _judge(rows, settings, free=_may_be_clean(engine, settings, sample))
        found = _search(rows, units, settings, given, saved, engine, sample, judge)

    def answer() -> Mixture:
        return _answer(engine, settings, rows, units, sample, judge, *found, saved, clock)

    if not isinstance(engine, MemoryEngine):
        return answer()  # a pass that hangs is not to be made again
    try:
        with answer_interrupts():
            return answer()
    except KeyboardInterrupt:
        found[0].stopped = StopReason.INTERRUPTED
        return answer()


def _answer(
    engine: Engine,
    settings: Settings,
    rows: Rows,
    units: Units,
    sample: Sample,
    judge: Judge,
    state: Search,
    repeats: Repeats,
    saved: Checkpoint | None,
    clock: _Clock,
) -> Mixture:
    """Complete what a search has found, polish it on all rows, and label them."""
    problem = engine.problem
    with clock.stage("search"):
        found = _complete(rows, units, settings, judge, state, repeats, engine, sample)
    wide = rows.n < problem.n_columns
    with clock.stage("polish"):
        polished = Polished(found.law)
        if found.outliers is not None:
            # The search has seen all rows to the end.
            polished = Polished(_with_outliers(found.law, *found.outliers), settled=found.settled)
        elif wide:
            # So few rows were all searched, in the space that they span; theirs is the answer.
            polished = Polished(found.law, settled=found.settled)
        elif not (
            settings.by_label or found.nothing or found.stopped in USER_WAITS or _hurried(problem)
        ):
            # A search that may go on later may end elsewhere: rounds from here are not its own.
            polished = resumed_polish(engine, found.law, saved if found.stopped in ENDS else None)
        law, labelling, cut_short = _finish(engine, polished, settings, wide=wide)
    stopped = cut_short or found.stopped
    by_component = {
        "origin": found.origin,
        "component_evidence": found.component_scores,
        "ranks": found.ranks,
    }
    mixture = to_mixture(
        engine,
        law,
        labelling,
        settings,
        known=polished.sums if law is polished.law else None,
        by_component={name: of for name, of in by_component.items() if of is not None},
        evidence=found.score,
        without_slopes=found.without_slopes,
        gain_of_line=found.gain_of_line,
        attempts=found.attempts,
        stopped=stopped,
        timings=clock.timings,
        spectrum=found.spectrum,
        selection=found.selection,
        settled=polished.settled,
        search_evidence=found.search_evidence,
        n_agreed=found.n_agreed,
        **vars(found.compared),
    )
    finish_checkpoint(saved, stopped)
    return mixture


def _fit_net(engine: Engine, settings: Settings, clock: _Clock) -> Mixture:
    """Run Algorithm 2 as stated; where it accepts nothing, answer with one robust component."""
    with clock.stage("search"):
        # One pass draws whatever is drawn; what follows the search may have no time for more.
        kept = excerpt_rows(engine.problem) if settings.keep_rows else 0
        engine.draw(max(net_rows(engine.problem), kept), settings.seed)
        sample = engine.sample(SEARCH_ROWS, settings.seed)
        hasty = _hasty(engine.problem, sample, settings)
        if hasty is not None:
            return _hasty_mixture(engine, settings, hasty, clock)
        saved = open_checkpoint(engine, settings)
        found = search_net(engine, settings, solver_maker(settings.solver), saved)
    law, labelling = found.law, found.labelling
    origin = ("net",) * len(found.law.scale)
    if not origin:
        with clock.stage("polish"):
            law = (
                _least_squares(sample)
                if _hurried(engine.problem)
                else _robust_law(engine, sample, settings.seed)
            )
            labelling, origin = Likeliest(law), ("robust",)
    mixture = to_mixture(
        engine,
        law,
        labelling,
        settings,
        by_component={"origin": origin},
        # Algorithm 2 accepts by counting rows; it knows no score.
        evidence=np.nan if found.law.scale.size else -np.inf,
        attempts=found.attempts,
        stopped=found.stopped,
        timings=clock.timings,
        spectrum=found.spectrum,
    )
    finish_checkpoint(saved, found.stopped, net=True)
    return mixture


def _robust_law(engine: Engine, sample: Sample, seed: int) -> Law:
    """Fit the model with one component, from a robust line."""
    rows, units = whitened_rows(sample, intercept=engine.problem.fit_intercept)
    start = _robust_start(rows, units, engine, seed)
    return _law(units, point_of(rows, _one_line(rows, Path(), start)))


def _hasty(problem: Frame, sample: Sample, settings: Settings) -> Law | None:
    """Fit one line where whitening would take far longer than there is time; else None."""
    if settings.time_limit is None or problem.n_features <= MOST_COVARIANCE_FEATURES:
        return None
    begun = time.monotonic()
    law = _least_squares(sample)
    now = time.monotonic()
    over = now + SEARCH_FITS * (now - begun) - DEADLINE.get()
    return law if over > MOST_OVER * settings.time_limit else None


def _hasty_mixture(engine: Engine, settings: Settings, law: Law, clock: _Clock) -> Mixture:
    """Answer with one line; how likely it is, is not known."""
    labelling: Labelling = Likeliest(law)
    if settings.keep is not None or settings.search == "partition":
        law = law if settings.outliers else without_outliers(law)
        wide = engine.problem.mass < engine.problem.n_columns
        law, labelling, _ = _finish(engine, Polished(law), settings, wide=wide)
    return to_mixture(
        engine,
        law,
        labelling,
        settings,
        by_component={"origin": ("least squares",)},
        evidence=-np.inf if settings.search == "net" else np.nan,
        attempts=(),
        stopped=StopReason.TIME_LIMIT,
        timings=clock.timings,
        spectrum=None,
    )


def _least_squares(sample: Sample) -> Law:
    """Fit one line to all rows: there is no time to whiten them."""
    Z, y, weights = sample.Z, sample.y, sample.weights
    theta = weighted_fit(Z, y, weights)
    distance = np.abs(y - Z @ theta)
    spare = max(y.size - theta.size, 1) / y.size
    gap = weighted_quantile(distance, weights, 0.5) / np.sqrt(spare)
    scale = max(MAD_TO_DEVIATION * gap, MODEL.smallest_noise)
    near = float(np.average(distance <= CUTOFF * scale, weights=weights))
    extent = float(np.ptp(y)) or 1.0
    share = min(near, 1.0 - 1.0 / y.size)
    return Law(theta[None], np.array([scale]), np.array([share]), -float(np.log(extent)))


def _hurried(problem: Frame, stopped: StopReason | None = None) -> bool:
    """Whether the time is over, and the table so wide that a look at all columns takes seconds.

    What is not the answer itself is left out then.
    """
    over = late() or stopped is StopReason.TIME_LIMIT
    return over and problem.n_features > MOST_COVARIANCE_FEATURES


def _search(
    rows: Rows,
    units: Units,
    settings: Settings,
    given: Parameters | None,
    saved: Checkpoint | None,
    engine: Engine,
    sample: Sample,
    judge: Judge,
) -> tuple[Search, Repeats]:
    """Search for the whole model on the sample."""
    return search_again(
        rows,
        lambda number: Proposer(
            np.random.default_rng([settings.seed, number]),
            kind=settings.subspace,
            joint_only=settings.search == "joint",
            n_jobs=settings.n_jobs,
        ),
        Control(settings),
        n_components=settings.n_components,
        given=given,
        checkpoint=saved,
        judge=judge if settings.search != "partition" and search_budget(rows) > 1 else None,
        pointless=lambda best: (
            settings.n_components is None
            and _one_relation(rows, units, engine.problem, sample, best)
        ),
    )


def _may_be_clean(engine: Engine, settings: Settings, sample: Sample) -> bool:
    """Say whether there may be no outliers: where all rows were seen, and no share was given.

    Among the other rows of a larger table there may be some. (Copies of a row are one row.)
    """
    whole = bool(np.isclose(sample.weights.sum(), engine.problem.mass))
    return whole and settings.outliers is None


def _complete(
    rows: Rows,
    units: Units,
    settings: Settings,
    judge: Judge,
    state: Search,
    repeats: Repeats,
    engine: Engine,
    sample: Sample,
) -> _Found:
    """Choose among what a search has seen, and polish it on the sample."""
    asked, law = settings.n_components, None
    count = asked if settings.search == "partition" else None
    hurried = _hurried(engine.problem)
    ended = count is None and state.stopped not in USER_WAITS
    free = ended and _may_be_clean(engine, settings, sample)
    judge = judge if ended else _judge(rows, settings, free=False, settle=False)
    weighed, repeats = _weighed(rows, state, repeats, settings, judge, ended=ended)
    number = asked if asked in weighed else state.current.model.m
    plain = settings.outliers == 0 and np.isinf(weighed[number].fitted.model.noise.degrees)
    if asked is not None and (plain or count is not None) and not hurried:
        find = most_likely if count is None else nearest_regimes
        model = find(rows, weighed[number].fitted.model, asked, settings.seed)
        law, number = _law(units, model, outliers=False), model.m
        weighed[number] = Weighed.of(rows, evaluate(rows, model))
    likeliest = max(weighed, key=lambda m: weighed[m].score)
    number = likeliest if asked is None else number
    polished_later = weighed[number].chance >= 0.5 and rows.n >= engine.problem.n_columns
    if law is None and ended and not (hurried or is_small(rows) or polished_later):
        weighed[number] = weighed[number].settle(rows, FINAL_ROUNDS, FINAL_SETTLED)
    constants, without_slopes, number = _against_constants(
        rows, weighed, number, settings.noise, free=asked is None
    )
    shown, evidence = weighed, weighed[number].score - constants
    gain_of_line, counted = 0.0, None
    if evidence - without_slopes < REGIME_GAIN and asked in (None, 1) and count is None:
        line = _line_of_most(rows, units, engine, settings, state.path, free=free)
        gain_of_line, core, counted = _given_values(rows, sample, engine.problem.weighting)
        given = counted is not None
        line = line if asked is None or given else weighed.get(1, line)
        line = _of_any_law(rows, line, settings) if given else line
        evidence = core if given else line.score - constants
        number, shown = 1, {**weighed, 1: line}
        # The search's own best may be a line that hardly a row follows, and is not shown: its
        # evidence is how near a miss it was.
        weighed = {**weighed, 1: max(line, weighed.get(1, line), key=attrgetter("score"))}
    chosen = shown[number]
    nothing = asked is None and evidence - without_slopes < REGIME_GAIN
    miss = max(one.score for one in weighed.values()) - constants if nothing else evidence
    fitted = chosen.fitted
    selection = select(rows, weighed, number)
    gained = selection.evidence - constants
    anew = (counted is not None) & (selection.n_components == 1)
    gained = np.where(anew, evidence, gained)
    searched, rows = rows, replace(rows, outliers=chosen.clean is not fitted)
    outliers = None
    if chosen.outliers is not None and chosen.dirty is not None:
        dirty = point_of(searched, chosen.dirty)
        outliers = _law(units, dirty), chosen.outliers.background * chosen.chance
    kind = "clean" if chosen.clean is fitted else "dirty"
    path = Path({m: getattr(one, kind) for m, one in shown.items() if getattr(one, kind)})
    compared = count is None and state.stopped in ENDS
    stopped = StopReason.TIME_LIMIT if compared and late() else state.stopped
    judged = _Compared()
    if compared:
        prices = {m: one.price for m, one in shown.items()}
        known = rows, units, engine.problem, sample, path, fitted, searched, prices
        judged = _rivals(*known, counted=counted)
        if nothing and judged.rivals_rows is None:
            judged = replace(judged, rivals_evidence=evidence)
    scores, ranks, settled = None, None, False
    if not hurried:
        # Without a component its rows would be outliers.
        others = scores_without(replace(rows, outliers=settings.outliers != 0), fitted)
        scores = fitted.score - others if counted is None else np.array([evidence])
        ranks = _ranks(fitted)
        left = fitted.left
        if not np.isfinite(left):
            left = evaluate(rows, fitted.model).score - fitted.score
        settled = left < MODEL.polish_left * np.sqrt(rows.mass)
    point = fitted.model if law or hurried else _as_weighted(rows, fitted, sample.weights)
    return _Found(
        law or _law(units, point, outliers=rows.outliers),
        fitted.model.origin,
        miss,
        without_slopes,
        gain_of_line,
        scores,
        tuple(state.attempts),
        stopped,
        ranks,
        state.proposer.spectrum,
        replace(selection, evidence=gained),
        () if count is not None else tuple(score - constants for score in repeats.scores),
        _agreed(repeats, None if law else chosen),
        nothing,
        outliers,
        settled,
        judged,
    )


def _against_constants(
    rows: Rows, weighed: dict[int, Weighed], number: int, noise: str, *, free: bool
) -> tuple[float, float, int]:
    """Return the score of constants, how much more a model has without its slopes, and its number.

    Evidence is counted from constants at levels of the response: they know no model, so that one
    has the same evidence whichever number was asked for. Whether there is a relation is another
    question: regimes may be levels that were not found so, or values that many rows share. A free
    choice then takes the likeliest number that shows a relation. Where none does, the best that any
    has without its slopes says what constants do.
    """
    constants = score_of_constants(rows, noise)
    flat = {number: score_without_slopes(rows, weighed[number].fitted, constants)}
    if weighed[number].score - max(constants, flat[number]) < REGIME_GAIN:
        known = {number: weighed[number]} if late() else weighed
        flat = {m: score_without_slopes(rows, one.fitted, constants) for m, one in known.items()}
        related = {
            m: one.score
            for m, one in known.items()
            if one.score - max(constants, flat[m]) >= REGIME_GAIN
        }
        if not related:
            return max(constants, *flat.values()), 0.0, number
        number = max(related, key=lambda m: related[m]) if free else number
    return constants, max(flat[number] - constants, 0.0), number


def _line_of_most(
    rows: Rows, units: Units, engine: Engine, settings: Settings, path: Path, *, free: bool
) -> Weighed:
    """Return the line that is shown where nothing was found: one that most rows follow."""
    hurried = _hurried(engine.problem)
    line = path.best.get(1) if hurried else None
    line = line or _one_line(rows, path, _robust_start(rows, units, engine, settings.seed))
    # Outliers of a line that is not established are a claim, as a regime is.
    few = first_stage(rows)
    robust = weigh(rows, few, line, settings.noise, free=free, favour=REGIME_GAIN)
    if not hurried:
        robust = robust.settle(rows, FINAL_ROUNDS, FINAL_SETTLED)
    return robust.of_most(rows)


def _of_any_law(rows: Rows, line: Weighed, settings: Settings) -> Weighed:
    """Return the line that the evidence given the values is of: that of the mean, of all rows.

    No row is an outlier of a law that may be any, and the mean may move where most rows stay: at
    zero visits, say, which heavy tails would follow. (Among new rows there may be outliers.)
    """
    if settings.outliers is None and line.chance >= 0.5:
        line = line.without_outliers(rows)
    clean = line.clean
    if settings.noise == "student" or clean is None or np.isinf(clean.model.noise.degrees):
        return line
    normal = replace(clean.model, noise=NoiseLaw(), factor=None)
    kind = replace(rows, outliers=False)
    mean = refit(kind, normal, FINAL_ROUNDS, settled=FINAL_SETTLED)
    # What outliers to expect among new rows stays.
    return replace(line, clean=mean, favour=line.favour + clean.score - mean.score)


def _given_values(rows: Rows, sample: Sample, weighting: str) -> tuple[float, float, Floats | None]:
    """Ask for one relation given the values of the response, where no law of noise shows any.

    Returns what all rows show, what those of the bulk show, and how rows were counted if that is
    enough.
    """
    if late():
        return 0.0, 0.0, None
    counts = rows.weights if weighting == "importances" else sample.weights
    gain, core, counted = relation_given_values(rows, counts)
    return gain, core, counted if core >= REGIME_GAIN else None


def _as_weighted(rows: Rows, fitted: Fitted, weights: Floats) -> Parameters:
    """Return the plain fit to rows by the user's weights, where evidence counted them otherwise."""
    ratio = rows.weights / np.where(weights > 0, weights, 1.0)
    if np.ptp(ratio) <= MODEL.rounding * ratio.max():
        return point_of(rows, fitted)
    full = replace(rows, weights=weights * (rows.n / weights.sum()))
    return point_of(full, refit(full, fitted.model, FINAL_ROUNDS, settled=FINAL_SETTLED))


def _weighed(
    rows: Rows, state: Search, repeats: Repeats, settings: Settings, judge: Judge, *, ended: bool
) -> tuple[dict[int, Weighed], Repeats]:
    """Weigh the models that searches have seen, and those of numbers that they left out.

    Of a small table also what each search has ended with: models that are alike beside outliers may
    differ without.
    """
    path, fitted = state.path, state.current
    small = search_budget(rows) > 1
    if late() and state.stopped == StopReason.NOTHING_IMPROVES:
        state.stopped = StopReason.TIME_LIMIT  # what follows is left out
    if fitted.model.m:
        # What the search ended with, unless something better was seen on the way.
        path.best[fitted.model.m] = best_of(
            fitted, path.best.get(fitted.model.m), SEARCH.same_score
        )
    if settings.search == "partition":
        return {m: Weighed.of(rows, seen) for m, seen in path.best.items()}, repeats
    if state.stopped == StopReason.NOTHING_IMPROVES and (small or settings.n_components is None):
        # A search that was stopped must not go on here.
        fitted = complete_in_stages(path, rows, fitted)
    weighed = {
        m: judge(seen) if small or m in (1, fitted.model.m) else Weighed.of(rows, seen)
        for m, seen in path.best.items()
    }
    if not (small and ended):
        return _without_substitutes(rows, weighed), repeats
    for one in repeats.ends:
        m = one.fitted.model.m
        if m:
            weighed[m] = weighed[m].better(one) if m in weighed else one
    for m in sorted(weighed, reverse=True):
        # What a larger model leaves when it loses a regime may be better than what was seen.
        larger = weighed.get(m + 1)
        if larger is not None:
            weighed[m] = weighed[m].better(larger.smaller(rows))
            weighed[m] = weighed[m].settle(rows, FINAL_ROUNDS, FINAL_SETTLED)
    weighed = _without_substitutes(rows, weighed)
    ends = [
        replace(one, favour=weighed[one.fitted.model.m].favour) if one.fitted.model.m else one
        for one in repeats.ends
    ]
    scores = [
        one.score if np.isfinite(score) else score
        for score, one in zip(repeats.scores, ends, strict=True)
    ]
    return weighed, Repeats(tuple(scores), tuple(ends))


def _agreed(repeats: Repeats, chosen: Weighed | None) -> int:
    """Count the searches that ended with the answer; if none did, with the best that any did.

    What follows the searches may find better than all of them ended with: every run then takes the
    same steps from where they agreed.
    """
    if len(repeats.ends) < 2:
        return len(repeats.ends)
    came = 0 if chosen is None else repeats.agree_with(chosen.fitted, chosen.score)
    return came or repeats.agreed


def _judge(rows: Rows, settings: Settings, *, free: bool, settle: bool = True) -> Judge:
    """Make the function that weighs a model; of a small table, once EM has come to its end."""
    few, settle = first_stage(rows), settle and search_budget(rows) > 1
    known: list[tuple[Fitted, Weighed]] = []

    def judge(seen: Fitted) -> Weighed:
        # Searches that agree end at one model: it is settled once.
        for before, one in known:
            if abs(seen.score - before.score) <= SEARCH.same_score and label_alike(seen, before):
                return one
        one = weigh(rows, few, seen, settings.noise, free=free)
        if settle:
            one = one.settle(rows, FINAL_ROUNDS, FINAL_SETTLED)
            known.append((seen, one))
        return one

    return judge


def _without_substitutes(rows: Rows, weighed: dict[int, Weighed]) -> dict[int, Weighed]:
    """Charge for regimes in place of outliers, where the best model with outliers has some."""
    best = max(weighed, key=lambda m: -np.inf if (one := weighed[m].dirty) is None else one.score)
    if not rows.outliers or weighed[best].chance < 0.5:
        return weighed
    charged = {m: one.in_place_of_outliers() for m, one in weighed.items()}
    return {**charged, best: weighed[best]}


def _one_relation(rows: Rows, units: Units, problem: Frame, sample: Sample, best: Search) -> bool:
    """Say whether one relation is far likelier than what searches that disagree have found.

    Many lines that no two searches place alike are how a curve or a fan looks. The relation is the
    answer then, and where exactly the lines lie is none.
    """
    compared = _rivals(rows, units, problem, sample, best.path, best.current, rows, {})
    ahead = (rival.lead - compared.gain_of_shares for rival in compared.rivals[:1])
    return any(grade(lead) == "overwhelming" for lead in ahead)


def _rivals(
    rows: Rows,
    units: Units,
    problem: Frame,
    sample: Sample,
    path: Path,
    fitted: Fitted,
    searched: Rows,
    prices: dict[int, float],
    *,
    counted: Floats | None = None,
) -> _Compared:
    """Compare with single relations; of many rows, the first ones say enough.

    ``searched`` are the rows as the search saw them: constants are scored on those. ``prices`` are
    what models of each number must gain in addition: they are part of the evidence. ``counted``
    are as how many rows each counts where the evidence is given the values of the response.
    """
    if late():
        return _Compared()
    many = max(SEARCH.first_rows, SEARCH.rows_per_coefficient * rows.width)
    few = max(FEW_ROWS, int(MODEL.many_rows) * rows.width)
    known = rows, units, problem, sample, path, fitted, searched, prices
    if fitted.model.m > 1 and 2 * few <= min(many, rows.n):
        # Relations that are hopeless among few rows are so among many, whatever more the regimes
        # gain when they are fitted to these rows.
        compared = _rivals_among(rows.head(few), *known, as_they_are=True)
        if compared.rivals and grade(-compared.rivals[0].lead) == "overwhelming":
            return compared
    return _rivals_among(rows.head(many), *known, counted=counted)


def _rivals_among(
    few: Rows,
    rows: Rows,
    units: Units,
    problem: Frame,
    sample: Sample,
    path: Path,
    fitted: Fitted,
    searched: Rows,
    prices: dict[int, float],
    *,
    as_they_are: bool = False,
    counted: Floats | None = None,
) -> _Compared:
    """Compare the regimes of all rows with single relations, by the first of them."""
    model, seen, here, part = fitted.model, path.best, fitted, few.n < rows.n
    if part:
        here = evaluate(few, model)
        seen = {model.m: here}
        if not as_they_are:
            seen = {m: refit(few, one.model, SEARCH.short_rounds) for m, one in path.best.items()}
    scores = {m: one.score - prices.get(m, 0.0) for m, one in seen.items()}
    best = here.score - prices.get(model.m, 0.0)
    if part:
        # Few rows may show fewer regimes than all do.
        best = max([best, *(score for m, score in scores.items() if m <= model.m)])
    if counted is not None:
        if np.unique(few.y).size ** 2 <= float(counted.sum()):
            return _Compared()  # powers and noise laws are no laws of few values
        few = replace(few, weights=counted[: few.n])
        flat = score_of_constants(replace(few, outliers=searched.outliers), "auto")
        best = flat + evidence_given_values(few.features, few.y, few.weights, few.weights)[0]
        if np.isinf(best):
            return _Compared()  # no time was left to ask these rows
    y = sample.y[: few.n] * problem.target_scale + problem.target_center
    some = Sample(sample.Z[: few.n], y, few.weights)
    unit = units.y_scale * problem.target_scale
    straight = counted is None and 1 in seen and np.isinf(seen[1].model.noise.degrees)
    line = scores[1] if straight else -np.inf
    noise = noise_named(model.noise.degrees if model.m == 1 else np.inf)
    contest = Contest(some, few, unit, best, line, noise)
    # One regime is one relation already: one look at what would make it likelier is enough.
    rivals = find_rivals(contest, 1) if model.m == 1 else find_rivals(contest)
    if not rivals or rivals[0].lead < 0:
        return _Compared(rivals, few.n if part else None)
    gain, evidence = 0.0, np.nan
    if model.m > 1:
        # A curve follows where each regime is; so could their shares, for the same price.
        gain = max(gain_of_shares(few, evaluate(few, model)) - REGIME_GAIN, 0.0)
    if part:
        beside = replace(few, outliers=searched.outliers)
        evidence = best - score_of_constants(beside, "auto")
    return _Compared(rivals, few.n if part else None, evidence, gain)


def _with_outliers(law: Law, outliers: Law, share: float) -> Law:
    """Put the background of another law into one without: among new rows there may be outliers."""
    regimes = replace(law, share=law.share * (1.0 - share))
    kept = ("log_background", "middle", "width", "outlier_degrees")
    return replace(regimes, **{name: getattr(outliers, name) for name in kept})


def _law(units: Units, model: Parameters, *, outliers: bool = True) -> Law:
    """Translate a model of whitened rows into standardised units."""
    normal, plain = (model.outlier_law == law for law in (Background.NORMAL, Background.PLAIN))
    root, degrees = (
        (ROOT_8, MODEL.background_degrees) if not normal else (np.sqrt(2 * np.pi), np.inf)
    )
    width = units.width if plain else model.outlier_scale * units.y_scale
    law = Law(
        units.back(model.coef),
        model.scale * units.y_scale,
        model.share,
        -float(np.log(root * width)),
        units.middle,
        width,
        model.noise.degrees,
        max(units.resolution, MODEL.smallest_noise),
        degrees,
    )
    return law if outliers else without_outliers(law)


def _robust_start(rows: Rows, units: Units, engine: Engine, seed: int) -> Parameters:
    """Make a model of the robust line; of a wide table in the space that its rows span."""
    if late():
        return _given(rows, weighted_fit(rows.design, rows.y, rows.weights)[None], "robust")
    if rows.n < engine.problem.n_columns:
        turned = Problem.from_standardised(rows.design, rows.y, rows.weights, counts=False)
        return _given(rows, _robust(MemoryEngine(turned), seed), "robust")
    return _given(rows, units.forth(_robust(engine, seed)), "robust")


def _robust(engine: Engine, seed: int) -> Floats:
    """Fit one line with the highest breakdown point, LTS; return its coefficients, (1, p)."""
    problem = engine.problem
    single = find_single(
        engine,
        kept_mass(majority(problem), problem),
        given=None,
        n_starts=ROBUST_STARTS,
        seed=seed,
        max_iter=MAX_ITER,
        tol=0.0,
        make_solver=ExactSolver,
    )
    raw = consistent_scale(single.run.objective[-1], single.mass, problem.mass, single.run.rank)
    return reweight(engine, single.run.theta, raw).theta[None]


def _one_line(rows: Rows, path: Path, robust: Parameters) -> Fitted:
    """Return the best model of one regime that most rows follow.

    It is that of the search, or around a robust line. EM may leave hardly a row to either, where
    nothing depends on the features; the robust line is then returned as it is.
    """
    starts = [robust, *(seen.model for m, seen in path.best.items() if m == 1)]
    fits = [refit(rows, start, FINAL_ROUNDS, settled=FINAL_SETTLED) for start in starts]
    fits = [fit for fit in fits if 2 * float(fit.sums.size[0]) >= rows.mass]
    return max(fits, key=attrgetter("score")) if fits else evaluate(rows, robust)


def _ranks(fitted: Fitted) -> tuple[int, ...]:
    """Return how many coefficients each component's rows determine."""
    if not fitted.model.coef.size:
        return (0,) * fitted.model.m
    values = np.linalg.eigvalsh(fitted.sums.gram)
    least = MODEL.gram_rounding * np.maximum(values[:, -1:], 1e-300)
    return tuple(np.count_nonzero(values > least, axis=1).tolist())


def _given(rows: Rows, coef: Floats, origin: str = "given") -> Parameters:
    """Make a model of starts: each as wide as the residuals nearest to it."""
    residuals = np.abs(rows.y - coef @ rows.design.T)
    nearest = residuals.min(axis=0)
    scale = np.full(len(coef), max(float(np.median(nearest)), 1e-3 * rows.spread(), 1e-7))
    return Parameters.point(coef, scale, np.full(len(coef), 0.9 / len(coef)), (origin,) * len(coef))


def _finish(
    engine: Engine, polished: Polished, settings: Settings, *, wide: bool
) -> tuple[Law, Labelling, StopReason | None]:
    """Say which row belongs where, and why that could not be found out to the end, if so.

    Rows are trimmed to a given share; or components without noise are made exact. ``wide``: there
    are fewer distinct rows than columns, and the space that the rows span is enough.
    """
    law = polished.law
    if polished.stopped is not None:
        return law, Likeliest(law), polished.stopped
    try:
        if settings.search == "partition":
            return *_partitioned(engine, law, settings.seed, wide=wide), None
        if settings.outliers == 0:
            return law, Nearest(law), None
        if settings.keep is not None:
            return *assign_and_trim(engine, law, settings.keep), None
        if (law.scale >= SEARCH.noiseless).all():
            return law, Likeliest(law), None
        make = solver_maker(settings.solver)
        return *make_exact(engine, law, make, settings.max_iter, settings.tol), None
    except PassStopped as stop:
        return law, Likeliest(law), stop.reason


def _partitioned(engine: Engine, law: Law, seed: int, *, wide: bool) -> tuple[Law, Labelling]:
    """Assign rows to their nearest regimes; of a wide table in the space that its rows span."""
    turned = engine.in_row_space(seed) if wide and isinstance(engine, MemoryEngine) else None
    if turned is None:
        return assign_nearest(engine, law)
    few, basis = turned
    found, nearest = assign_nearest(few, replace(law, thetas=law.thetas @ basis))
    thetas = found.thetas @ basis.T
    return replace(found, thetas=thetas), Nearest(replace(nearest.law, thetas=thetas))
