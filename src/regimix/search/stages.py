"""A search in stages: among few rows first; then among all, beginning with what was found.

Most tables show their components in fifty rows for each coefficient, and a search costs as much
as its rows are many. Rows come in random order, so the first of them are a sample themselves. What
they show is refined on all rows; what they could not show is searched for there as before: small
components among the rows of the background, and several where one was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from regimix.model.em import Fitted, Parameters, evaluate, refit
from regimix.model.numbers import MODEL
from regimix.model.rows import Rows
from regimix.search.checkpoint import Checkpoint
from regimix.search.loop import Search, blurred, promising, search_model
from regimix.search.numbers import SEARCH
from regimix.search.propose import Proposer
from regimix.search.selection import Path, Repeats
from regimix.search.settings import Control


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
        if promising(state) or blurred(state):
            known = refit(rows, found, MODEL.rounds, settled=SEARCH.same_score)
            proposer.brisk = promising(state)
            break
    state = search_model(
        rows,
        proposer,
        control,
        n_components=n_components,
        given=given if known is None else None,
        checkpoint=checkpoint,
        known=known,
        number=number,
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
    pointless: Callable[[Search], bool] | None = None,
) -> tuple[Search, Repeats]:
    """Search until the best score has been reached several times, or the budget ends.

    Each search is independent of the others: only the rows are the same. The best is returned, and
    what all of them have seen. Where as many searches as could have agreed did not,
    ``pointless`` says whether more of them would serve nobody.
    """
    budget = max(1, SEARCH.searched_numbers // max(rows.n * rows.width, 1))
    budget = min(SEARCH.most_searches, budget)
    best: Search | None = None
    scores: list[float] = []
    for number in range(budget):
        state = search_in_stages(
            rows,
            make_proposer(number),
            control,
            n_components=n_components,
            given=given,
            checkpoint=checkpoint,
            number=number,
        )
        missed = n_components is not None and state.current.model.m != n_components
        scores.append(-np.inf if missed else state.current.score)
        if best is None:
            best = state
        else:
            winner, other = (state, best) if _better(state, best) else (best, state)
            for fitted in other.path.best.values():
                winner.path.see(fitted)
            winner.attempts[:] = best.attempts + state.attempts
            winner.proposer.n_proposals = best.proposer.n_proposals + state.proposer.n_proposals
            winner.stopped = state.stopped
            best = winner
        if (
            state.stopped != Search.stopped
            or Repeats(tuple(scores)).agreed >= SEARCH.agreeing_searches
            or (pointless and len(scores) == SEARCH.agreeing_searches and pointless(best))
        ):
            break
    assert best is not None
    return best, Repeats(tuple(scores))


def _better(state: Search, best: Search) -> bool:
    """Say whether a search ended higher; with a given number of regimes, nearer to it first."""
    if state.target is not None and state.current.model.m != best.current.model.m:
        missing = [abs(s.current.model.m - state.target) for s in (state, best)]
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
    best = max(path.best.values(), key=lambda fitted: fitted.score, default=chosen)
    return best if best.score > chosen.score + SEARCH.same_score else chosen
