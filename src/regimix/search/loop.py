"""The default search: one score for the whole model; add, replace, delete until nothing improves.

It goes in stages: among few rows first; then among all, beginning with what was found. Most tables
show their components in fifty rows for each coefficient, and a search costs as much as its rows are
many. Rows come in random order, so the first of them are a sample themselves. What they show is
refined on all rows; what they could not show is searched for there as before: small components
among the rows of the background, and several where one was seen.

Components are not accepted one by one on their own evidence: where gross errors stretch the range
of the response, one broad component beats any single true one, though the true ones together beat
it by far. So proposals, each of several components, compete as parts of whole models. They are
judged on their own rows first, which is cheap, and only then in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from regimix.errors import StopReason
from regimix.model.em import (
    Fitted,
    Parameters,
    evaluate,
    join,
    late,
    refit,
    worthless,
)
from regimix.model.laws import NoiseLaw
from regimix.model.numbers import MODEL
from regimix.model.rows import MAD_TO_DEVIATION, Rows, weighted_fit
from regimix.search.checkpoint import Checkpoint
from regimix.search.joint import smallest_component
from regimix.search.numbers import SEARCH
from regimix.search.propose import Proposer
from regimix.search.selection import Attempt, Path, Repeats, Weighed, prune, shrink
from regimix.search.settings import Control, Stopped, answer_interrupts
from regimix.search.subspace import Subspace

Indices = NDArray[np.intp]

# Moves that a search of few rows leaves to that of many rows which follows it, and the other way
# round: small components show best among many rows, halves that were swapped among few already.
FOR_MANY_ROWS = frozenset({"add", "split"})
FOR_FEW_ROWS = frozenset({"again"})

NONE: Indices = np.empty(0, dtype=np.intp)


@dataclass
class Search:
    """State of one search: the rows, the current model, and the record of what was tried.

    Attributes
    ----------
    rows, proposer, control : Rows, Proposer, Control
    current : Fitted
    target : int or None
        The number of components asked for.
    saved : Checkpoint or None
        Where the state is written down.
    phase : {"first", "moves", "count", "over"}
        Fill the empty model; add and replace; force the number of components; nothing more.
    steps : int
        How far the phase is: sources asked, moves made.
    stopped : str
        Why the search ended.
    attempts : list of Attempt
    tried : set of tuple
        Moves with their pools, so that none is made twice.
    path : Path
    known : Fitted or None
        What a search of some of the rows has found, on these rows; this one goes on from there.
    preview : bool
        Whether a search of more rows follows.
    number : int
        Which of several independent searches this is.
    reached : float
        Best score of the searches before: one that comes as far has found it again, and ends.
    """

    rows: Rows
    proposer: Proposer
    control: Control
    current: Fitted
    target: int | None = None
    saved: Checkpoint | None = None
    phase: Literal["first", "moves", "count", "over"] = "first"
    steps: int = 0
    stopped: StopReason = StopReason.NOTHING_IMPROVES
    attempts: list[Attempt] = field(default_factory=list)
    tried: set[tuple[object, ...]] = field(default_factory=set)
    path: Path = field(default_factory=Path)
    known: Fitted | None = None
    preview: bool = False
    number: int = 0
    reached: float = -np.inf

    @property
    def section(self) -> str:
        """Name this search in the file: one among few rows is not one among all."""
        kind = f"preview of {self.rows.n} rows" if self.preview else "search"
        return f"{kind} {self.number}"

    def report(self, stage: str) -> None:
        """Give the user a look, and the budget a chance to end the search."""
        model = self.current
        self.control.check(stage, model.model.m, model.score, self.proposer.n_proposals)

    def enter(self, phase: Literal["moves", "count", "over"]) -> None:
        """Go on to another phase."""
        self.phase, self.steps = phase, 0
        self.save()

    def save(self) -> None:
        """Write the state down, if there is a file for that."""
        if self.saved is not None:
            self.saved.put(self.section, self._values())

    def _values(self) -> dict[str, Any]:
        """Return the state as plain values."""
        proposer = self.proposer
        return {
            "phase": self.phase,
            "steps": self.steps,
            "current": _plain(self.current),
            "path": [_plain(fitted) for fitted in self.path.best.values()],
            "attempts": [asdict(attempt) for attempt in self.attempts],
            "tried": sorted(self.tried, key=repr),
            "generator": proposer.rng.bit_generator.state,
            "n_proposals": proposer.n_proposals,
            "spectrum": None if proposer.spectrum is None else vars(proposer.spectrum),
        }

    def resume(self, values: dict[str, Any]) -> None:
        """Take up a state that was written down."""
        proposer = self.proposer
        self.phase, self.steps = values["phase"], values["steps"]
        self.current = self._fitted(values["current"])
        if self.known is not None and _same(self.current, self.known):
            self.current = self.known  # nothing was accepted yet
        self.path = Path()
        for saved in values["path"]:
            self.path.see(self._fitted(saved))
        self.attempts = [Attempt(**saved) for saved in values["attempts"]]
        self.tried = {(move, source, tuple(marks)) for move, source, marks in values["tried"]}
        proposer.rng.bit_generator.state = values["generator"]
        proposer.n_proposals = values["n_proposals"]
        spectrum = values["spectrum"]
        proposer.spectrum = None if spectrum is None else Subspace(**spectrum)

    def _fitted(self, saved: dict[str, Any]) -> Fitted:
        told = {"origin": tuple(saved["origin"]), "noise": NoiseLaw(saved["noise"])}
        return evaluate(self.rows, Parameters(**{**saved, **told}))


def _plain(fitted: Fitted) -> dict[str, Any]:
    """Write a model as plain values: the one whose responsibilities it has."""
    return {**vars(fitted.base), "noise": fitted.base.noise.degrees}


def _same(first: Fitted, second: Fitted) -> bool:
    """Say whether two models are the same numbers."""
    return np.array_equal(first.model.coef, second.model.coef) and first.score == second.score


def search_model(
    rows: Rows,
    proposer: Proposer,
    control: Control,
    *,
    n_components: int | None = None,
    given: Parameters | None = None,
    checkpoint: Checkpoint | None = None,
    known: Fitted | None = None,
    preview: bool = False,
    number: int = 0,
    reached: float = -np.inf,
) -> Search:
    """Find the components of the rows; their number is found too unless it is given.

    Parameters
    ----------
    given : Model, optional
        The user's own starts, tried first.
    checkpoint : Checkpoint, optional
        Where each accepted move is written down. A search that finds one of its own there goes on
        from it, to the same end.
    known, preview, number, reached : Fitted, bool, int, float
        See ``Search``.
    """
    current = known or refit(rows, bulk_model(rows), MODEL.rounds, settled=SEARCH.same_score)
    state = Search(
        rows,
        proposer,
        control,
        current,
        n_components,
        checkpoint,
        known=known,
        preview=preview,
        number=number,
        reached=reached,
    )
    state.path.see(current)
    try:
        with answer_interrupts():
            values = None if checkpoint is None else checkpoint.get(state.section)
            if values is not None:
                state.resume(values)
            if state.phase == "first":
                _first(state, given)
                state.enter("moves")
            if state.phase == "moves":
                _move(state)
                state.enter("count")
            if state.phase == "count":
                if not preview and rows.width:
                    _count(state, n_components)
                state.enter("over")
    except Stopped as stop:
        state.stopped = stop.reason
    except KeyboardInterrupt:
        state.stopped = StopReason.INTERRUPTED
    return state


def bulk_model(rows: Rows) -> Parameters:
    """Return one component through the bulk of the rows: least squares, then Cauchy weights."""
    weights = rows.weights
    for _ in range(SEARCH.short_rounds):
        coef = weighted_fit(rows.design, rows.y, weights)
        residual = rows.y - rows.design @ coef
        scale = float(np.median(np.abs(residual))) * MAD_TO_DEVIATION + rows.smallest_scale
        if late():
            break
        weights = rows.weights / (1.0 + (residual / (2.0 * scale)) ** 2)
    return Parameters.point(coef[None], np.array([scale]), np.array([0.9]), ("bulk",))


def _move(state: Search) -> None:
    """Add and replace until nothing improves."""
    if state.rows.width == 0 or (state.preview and not promising(state)):
        return  # there is nothing to search in; or more rows will show more
    while not (state.target == state.current.model.m and _clear(state)):
        # The given number of clear components is not there yet, or any number may be.
        if _again(state) or not (_try_add(state) or _try_replace(state)):
            break


def _again(state: Search) -> bool:
    """Say whether the search has come to where one before it ended: no move improved that."""
    asked = state.target in (None, state.current.model.m)
    return asked and abs(state.current.score - state.reached) <= SEARCH.same_score


def _clear(state: Search) -> bool:
    """Say whether there are components and none is a blur."""
    return state.current.model.m > 0 and not _broad(state).size


def _left_out(state: Search) -> frozenset[str]:
    """Return the moves that are not made here, because another stage makes them."""
    if not _clear(state):
        return frozenset()
    if state.preview:
        return FOR_MANY_ROWS
    return FOR_FEW_ROWS if state.current is state.known else frozenset()


def promising(state: Search) -> bool:
    """Say whether the model is one to go on from: clear, or sharp for most rows."""
    model = state.current.model
    sharp = model.scale < SEARCH.blur * state.rows.spread()
    return _clear(state) or float(model.share[sharp].sum()) > 0.5


def blurred(state: Search) -> bool:
    """Say whether several components are there, and none is sharp: much noise, not few rows."""
    scale = state.current.model.scale
    return scale.size > 1 and float(scale.min()) > SEARCH.blur * state.rows.spread()


def _broad(state: Search) -> Indices:
    """Return the components in which several may hide."""
    return np.flatnonzero(state.current.model.scale >= SEARCH.blur * state.rows.spread())


def _count(state: Search, count: int | None) -> None:
    """Force the number of components that was asked for; in a small table, try harder."""
    if count is not None:
        _match_count(state, count)
    if is_small(state.rows) and not _again(state):
        state.current = _merged_again(state, state.current)


def _merged_again(state: Search, fitted: Fitted) -> Fitted:
    """Add a component and take one away while that is better.

    Moves end where no part of the model can be improved; two parts may have to change at once.
    """
    while True:
        larger = _forced(state, fitted, 1)
        found = [shrink(state.rows, one) for one in larger]
        for one in (*larger, *found):
            state.path.see(one)
        best = max(found, key=attrgetter("score"), default=fitted)
        if best.score <= fitted.score + SEARCH.same_score:
            return fitted
        fitted = best


def _match_count(state: Search, count: int) -> None:
    """Force the number of components: cheapest deletions, or best additions and splits."""
    while state.current.model.m > count:
        state.current = shrink(state.rows, state.current)
        state.save()
    while state.current.model.m < count:
        larger = _forced(state, state.current, count - state.current.model.m)
        if not larger:
            return
        state.current = max(larger, key=attrgetter("score"))
        state.save()


def _forced(state: Search, fitted: Fitted, missing: int) -> list[Fitted]:
    """Return models with more components than a given one, whatever they score."""
    model = fitted.model
    found = []
    for j in range(-1, model.m):
        released = np.array([j] if j >= 0 else [], dtype=np.intp)
        part = state.rows.take(_pool(fitted, released))
        if part.n < smallest_component(state.rows.width) * (1 + released.size):
            continue
        kept = model.pick(np.setdiff1d(np.arange(model.m), released))
        for proposal in state.proposer.joint(
            part, 1 + released.size, starts=SEARCH.few_starts, lift=1
        ):
            scaled = proposal.with_shares(part.mass / state.rows.mass)
            trial = refit(state.rows, join(kept, scaled), MODEL.rounds)
            real = float(trial.sums.size.min()) > state.rows.width  # others are interpolated
            if real and model.m < trial.model.m <= model.m + missing:
                found.append(trial)
        state.report("more components")
    return found


def _pool(fitted: Fitted, released: Indices) -> Indices:
    """Return the rows held by the background and the released components."""
    posterior = fitted.posterior
    held = posterior[-1] + posterior[released].sum(axis=0)
    return np.flatnonzero(held > 0.5)


def _local_best(part: Rows, proposals: list[Parameters], before: float) -> Fitted | None:
    """Refit proposals on their own rows, all briefly, the best to the end; then prune it.

    Among many rows it is not followed where it cannot reach the score ``before``, and components
    that the others are better without are left out together.
    """
    best: Fitted | None = None
    for proposal in proposals:
        goal = -np.inf if best is None else best.score
        trial = refit(part, proposal, SEARCH.short_rounds, goal=goal)
        best = trial if trial.model.m and trial.score > goal else best
    if best is None:
        return None
    many, left = not is_small(part), MODEL.rounds - SEARCH.short_rounds
    best = refit(part, best.model, left, goal=before if many else -np.inf)
    if many and best.score < before and (idle := worthless(part, best)).any():
        best = refit(part, best.model.pick(~idle), SEARCH.short_rounds)
    return prune(part, best)


def _consider(
    state: Search,
    move: str,
    source: str,
    released: Indices,
    pool: Indices,
    proposals: list[Parameters],
) -> bool:
    """Judge proposals on their own rows; if one beats what it replaces, in the whole model."""
    current = state.current
    part = state.rows.take(pool)
    scaleup = state.rows.mass / max(part.mass, 1e-300)
    before = evaluate(part, current.model.pick(released).with_shares(scaleup)).score
    best = _local_best(part, proposals, before)
    if best is not None and part.n == state.rows.n:
        state.path.see(best)  # it is a model of all rows, whatever is decided of it
    if best is None or best.model.m == 0 or best.score < before:
        gain = -np.inf if best is None else best.score - before
        reason = "nothing proposed" if best is None else "no better on its own rows"
        state.attempts.append(Attempt(move, source, gain, False, reason, state.number))
        state.report(move)
        return False
    whole = _in_place(state, best, released, pool, scaleup)
    state.path.see(whole)
    gain = whole.score - current.score
    accepted = gain > SEARCH.same_score  # less is the same model, further on its way
    reason = "better" if accepted else "no better in the whole model"
    if not accepted and gain > 0:
        reason = f"the same model: no more than {SEARCH.same_score:g} nats better"
    state.attempts.append(Attempt(move, source, gain, accepted, reason, state.number))
    if accepted:
        state.current = whole
        if source == "passing":
            # A chain ends when nothing more is found in what is left: do not look there again.
            state.tried.add(("add", source, _signature(state, NONE)))
            state.tried.add(("replace", source, _signature(state, _broad(state))))
        state.save()
    state.report(move)
    return accepted


def _in_place(
    state: Search, best: Fitted, released: Indices, pool: Indices, scaleup: float
) -> Fitted:
    """Put a proposal in the place of what it replaces, and refit the whole model briefly."""
    current = state.current
    kept = np.setdiff1d(np.arange(current.model.m), released)
    if not kept.size and pool.size == state.rows.n:
        return best
    new = best.model.with_shares(1 / scaleup)
    whole = refit(state.rows, join(current.model.pick(kept), new), SEARCH.short_rounds)
    return prune(state.rows, whole)


def _first(state: Search, given: Parameters | None) -> None:
    """Ask one source for a whole model, and the others too when its answer may be a blur."""
    rows = state.rows
    if state.known is not None and state.known.model.m >= (state.target or 1):
        return  # the moves search all of its rows again if it is a blur
    order = state.proposer.sources(rows)
    # Where rows are many, the moves find what a joint search left sooner than passing over all.
    order = order[:1] if order[:1] == ("joint",) else order
    order = order if given is None else ("given", *order)
    for step, source in enumerate(order[state.steps :], state.steps + 1):
        if promising(state) and source != "given":
            break
        if late() and source != "given":
            raise Stopped(StopReason.TIME_LIMIT)
        state.steps = step
        # Judged against the best so far: all of it is released.
        everything = np.arange(state.current.model.m)
        if source == "given" and given is not None:
            proposals = [given]
        else:
            count = _generous(state.target or 0)
            proposals = state.proposer.propose(rows, source, count, limit=state.target)
        _consider(state, "first", source, everything, np.arange(rows.n), proposals)


def _generous(missing: int) -> int | None:
    """Return how many components a joint search looks for: too many are pruned, too few stay."""
    return missing + max(1, missing // 3) if missing else None


def _try_add(state: Search) -> bool:
    """Search among the rows that the background holds."""
    pool = _pool(state.current, NONE)
    if pool.size < smallest_component(state.rows.width):
        return False
    if "add" in _left_out(state) and pool.size <= MODEL.many_rows * state.rows.width:
        return False  # so few rows hold nothing but small ones
    part = state.rows.take(pool)
    missing = max((state.target or 0) - state.current.model.m, 0)
    for source in state.proposer.sources(part)[: 1 if state.preview else None]:
        if _new(state, "add", source, NONE):
            proposals = state.proposer.propose(
                part, source, _generous(missing), missing or None, state.current.model
            )
            if _consider(state, "add", source, NONE, pool, proposals):
                return True
    return False


def _try_replace(state: Search) -> bool:
    """Search for several components among the rows of one, of a pair, or of all broad ones."""
    model = state.current.model
    left_out = _left_out(state)
    for group, source in _replacements(state):
        if source in left_out or not _new(state, "replace", source, group):
            continue
        pool = _pool(state.current, group)
        part = state.rows.take(pool)
        if source == "split":
            own = state.rows.take(np.flatnonzero(state.current.posterior[group[0]] > 0.5))
            proposals = state.proposer.split(part, model.coef[group[0]], own)
        elif source == "again":
            starts = SEARCH.few_starts if group.size == 2 else None
            proposals = state.proposer.joint(part, group.size, starts=starts)
        else:
            proposals = state.proposer.propose(part, source)
        if _consider(state, "replace", source, group, pool, proposals):
            return True
    return False


def _replacements(state: Search) -> list[tuple[Indices, str]]:
    """List what may be replaced, most doubtful first."""
    model = state.current.model
    if model.m == 0:
        return []
    moves: list[tuple[Indices, str]] = []
    broad = _broad(state)
    if broad.size:
        part = state.rows.take(_pool(state.current, broad))
        moves += [(broad, source) for source in state.proposer.sources(part)]
    moves += [(np.array([j]), "split") for j in np.argsort(-model.scale, kind="stable")]
    if state.rows.features.shape[1] <= SEARCH.raw_width:
        if model.m > 2:
            moves.append((np.arange(model.m), "again"))
        moves += [(group, "again") for group in _doubtful(model)]
    return moves


def _doubtful(model: Parameters) -> list[Indices]:
    """Return pairs whose halves may have been swapped or parted: 0/1 features do that.

    Small and broad ones come first.
    """
    first, second = np.triu_indices(model.m, 1)
    doubt = np.log(model.scale / model.share)
    order = np.argsort(-(doubt[first] + doubt[second]), kind="stable")[: SEARCH.pairs_tried]
    return [np.array([first[p], second[p]]) for p in order]


def _new(state: Search, move: str, source: str, group: Indices) -> bool:
    """Say whether a move is to be tried: not twice on the same pool."""
    key = (move, source, _signature(state, group))
    if key in state.tried:
        return False
    state.tried.add(key)
    return True


def _signature(state: Search, group: Indices) -> tuple[object, ...]:
    """Describe the pool of a move: it changes with the background and the components."""
    model = state.current.model
    marks = model.coef.sum(axis=1)
    return (model.background, *sorted((marks[group] if group.size else marks).tolist()))


# --- in stages, and again -------------------------------------------------------------------------


def first_stage(rows: Rows) -> Rows:
    """Return the rows that are searched first: all of them if they are not many more."""
    return next(_stages(rows), rows)


def _stages(rows: Rows) -> Iterator[Rows]:
    """Make the stages before that of all rows."""
    count = max(SEARCH.first_rows, SEARCH.rows_per_coefficient * rows.width)
    while rows.n >= SEARCH.growth * count:
        yield rows.head(count)
        count *= SEARCH.growth


def search_in_stages(
    rows: Rows,
    proposer: Proposer,
    control: Control,
    *,
    n_components: int | None = None,
    given: Parameters | None = None,
    checkpoint: Checkpoint | None = None,
    number: int = 0,
    reached: float = -np.inf,
) -> Search:
    """Find the components of rows in random order; see ``loop.search_model``."""
    known, attempts = None, []
    for few in _stages(rows):
        state = search_model(
            few,
            proposer,
            control,
            n_components=n_components,
            given=given,
            checkpoint=checkpoint,
            preview=True,
            number=number,
        )
        attempts += state.attempts
        found = state.current.model
        if state.stopped == Search.stopped and (promising(state) or blurred(state)):
            try:
                with answer_interrupts():
                    known = refit(rows, found, MODEL.rounds, settled=SEARCH.same_score)
                proposer.brisk = promising(state)
                break
            except KeyboardInterrupt:
                state.stopped = StopReason.INTERRUPTED
        if state.stopped != Search.stopped:
            # Whoever stopped it waits for the answer.
            answer = evaluate(rows, found)
            return Search(
                rows,
                proposer,
                control,
                answer,
                n_components,
                stopped=state.stopped,
                attempts=attempts,
            )
    state = search_model(
        rows,
        proposer,
        control,
        n_components=n_components,
        given=given if known is None else None,
        checkpoint=checkpoint,
        known=known,
        number=number,
        reached=reached,
    )
    state.attempts[:0] = attempts
    return state


def search_again(
    rows: Rows,
    make_proposer: Callable[[int], Proposer],
    control: Control,
    *,
    n_components: int | None = None,
    given: Parameters | None = None,
    checkpoint: Checkpoint | None = None,
    judge: Callable[[Fitted], Weighed] | None = None,
    pointless: Callable[[Search], bool] | None = None,
) -> tuple[Search, Repeats]:
    """Search until the best answer has been found several times, or the budget ends.

    Each search finds its own way: only the rows are the same, and the score at which it has found
    the best again. The best is returned, and what all of them have seen. ``judge`` makes an answer
    of the model that a search ended with. Where as many searches as could have agreed did not,
    ``pointless`` says whether more of them would serve nobody.
    """

    def search(number: int, count: int | None, reached: float = -np.inf) -> Search:
        return search_in_stages(
            rows,
            make_proposer(number),
            control,
            n_components=count,
            given=given if count == n_components else None,
            checkpoint=checkpoint,
            number=number,
            reached=reached,
        )

    best: Search | None = None
    repeats, reached = Repeats(), -np.inf
    for number in range(search_budget(rows)):
        state = search(number, n_components, reached)
        repeats = _added(repeats, state, judge)
        best = state if best is None else _joined(best, state)
        if np.isfinite(repeats.scores[-1]):
            reached = max(reached, state.current.score)
        if (
            state.stopped != Search.stopped
            or repeats.agreed >= SEARCH.agreeing_searches
            or (pointless and number + 1 == SEARCH.agreeing_searches and pointless(best))
        ):
            break
    assert best is not None
    if not is_small(rows):
        return best, repeats
    return _one_more(best, repeats, search, judge, free=n_components is None)


def _one_more(
    best: Search,
    repeats: Repeats,
    search: Callable[[int, int], Search],
    judge: Callable[[Fitted], Weighed] | None,
    *,
    free: bool,
) -> tuple[Search, Repeats]:
    """Look for one regime more; where their number is free, as long as that is better.

    Beside a background, a small component is hardly likelier than outliers are, and a search does
    not end with it; without a background it may be. In large tables it is seen on the way.
    """
    while best.stopped == Search.stopped and (m := repeats.best.fitted.model.m):
        more = search(len(repeats.ends), m + 1)
        seen = _added(repeats, more, judge)
        if not (free and seen.gain > SEARCH.same_score):
            _see_all(best, more)
            best.stopped = more.stopped
            break
        best, repeats = _joined(best, more), seen
        for _ in range(1, SEARCH.agreeing_searches):
            if best.stopped == Search.stopped:
                again = search(len(repeats.ends), more.current.model.m)
                best, repeats = _joined(best, again), _added(repeats, again, judge)
    return best, repeats


def _added(repeats: Repeats, state: Search, judge: Callable[[Fitted], Weighed] | None) -> Repeats:
    """Add a search that has ended to those before; one that was stopped is not judged."""
    seen, target = state.current, state.target
    end = Weighed.of(state.rows, seen)
    if judge is not None and state.stopped == Search.stopped and seen.model.m:
        try:
            with answer_interrupts():
                end = judge(seen)
        except KeyboardInterrupt:
            state.stopped = StopReason.INTERRUPTED
    missed = target is not None and seen.model.m != target
    return Repeats((*repeats.scores, -np.inf if missed else end.score), (*repeats.ends, end))


def _joined(best: Search, state: Search) -> Search:
    """Return the better of two searches, with what both have seen and tried."""
    winner, other = (state, best) if _better(state, best) else (best, state)
    _see_all(winner, other)
    winner.attempts[:] = best.attempts + state.attempts
    winner.proposer.n_proposals = best.proposer.n_proposals + state.proposer.n_proposals
    winner.stopped = state.stopped
    return winner


def _see_all(winner: Search, other: Search) -> None:
    for fitted in other.path.best.values():
        winner.path.see(fitted)


def search_budget(rows: Rows) -> int:
    """Return how many searches there may be: many of a small table, one of a large one."""
    affordable = SEARCH.searched_numbers // max(rows.n * rows.width, 1)
    return min(SEARCH.most_searches, max(1, affordable))


def is_small(rows: Rows) -> bool:
    """Say whether a table is searched until searches agree, and everything is looked at."""
    return search_budget(rows) >= SEARCH.agreeing_searches


def _better(state: Search, best: Search) -> bool:
    """Say whether a search ended higher; with a given number of regimes, nearer to it first."""
    if state.target is not None and best.target == state.target:
        missing = [abs(s.current.model.m - state.target) for s in (state, best)]
        if missing[0] != missing[1]:
            return missing[0] < missing[1]
    return state.current.score > best.current.score


def complete_in_stages(path: Path, rows: Rows, chosen: Fitted) -> Fitted:
    """Fill in the numbers of components that the path lacks; return the best model of all."""
    few = first_stage(rows)
    if few is rows:
        path.complete(rows, chosen)
    else:
        short = Path()
        short.complete(few, evaluate(few, chosen.model))
        for fitted in short.best.values():
            path.see(evaluate(rows, fitted.model))
    best = max(path.best.values(), key=attrgetter("score"), default=chosen)
    return best if best.score > chosen.score + SEARCH.same_score else chosen
