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
from regimix.model.rows import Rows
from regimix.search.checkpoint import Checkpoint
from regimix.search.loop import Search, blurred, promising, search_model
from regimix.search.propose import Proposer
from regimix.search.selection import SAME_SCORE, Path, Repeats
from regimix.search.settings import Control

__all__ = ["complete_in_stages", "first_stage", "search_again"]

# Rows of the first stage, at least and for each coefficient.
FIRST_ROWS = 1500
FIRST_ROWS_PER_COEFFICIENT = 50
# Where a stage shows nothing clear, the next has so many times its rows ...
GROWTH = 3
# ... unless all rows are less than so many times as many: then they are next.
WORTH_A_STAGE = 2
# EM on all rows before they are searched: a fit to fewer rows is near already.
REFINE_ROUNDS = 30
# What further rounds would gain is not worth them; a component must be worth three times that.
ENOUGH = 1.0
# Searches go on until the best score has been reached so many times. There are no more than so many
# searches, of so many numbers in all: one of a large table.
ENOUGH_TIMES = 3
MOST_SEARCHES = 12
SEARCHED_NUMBERS = 50_000
# EM on all rows for a model of few rows that is only to be compared.
COMPARE_ROUNDS = 1


def first_stage(rows: Rows) -> Rows:
    """Return the rows that are searched first: all of them if they are not many more."""
    return next(_stages(rows), rows)


def _stages(rows: Rows) -> Iterator[Rows]:
    """Make the stages before that of all rows."""
    count = max(FIRST_ROWS, FIRST_ROWS_PER_COEFFICIENT * rows.width)
    while rows.n >= WORTH_A_STAGE * count:
        yield rows.head(count)
        count *= GROWTH


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
            known = refit(rows, found, REFINE_ROUNDS, settled=ENOUGH)
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
) -> tuple[Search, Repeats]:
    """Search until the best score has been reached several times, or the budget ends.

    Each search is independent of the others: only the rows are the same. The best is returned, and
    what all of them have seen.
    """
    budget = min(MOST_SEARCHES, max(1, SEARCHED_NUMBERS // max(rows.n * rows.width, 1)))
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
        if state.stopped != Search.stopped or Repeats(tuple(scores)).agreed >= ENOUGH_TIMES:
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
            path.see(refit(rows, fitted.model, COMPARE_ROUNDS))
    best = max(path.best.values(), key=lambda fitted: fitted.score, default=chosen)
    return best if best.score > chosen.score + SAME_SCORE else chosen
