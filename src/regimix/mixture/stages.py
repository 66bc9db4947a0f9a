"""A search in stages: among few rows first; then among all, beginning with what was found.

Most tables show their components in a hundred rows for each coefficient, and a search costs as much
as its rows are many. Rows come in random order, so the first of them are a sample themselves. What
they show is refined on all rows; what they could not show is searched for there as before: small
components among the rows of the background, and several where one was seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from regimix.mixture.checkpoint import Checkpoint
from regimix.mixture.control import Control
from regimix.mixture.moves import blurred, promising, search_model
from regimix.mixture.selection import Path, Selection
from regimix.mixture.state import Search
from regimix.search.model import Fitted, Model, evaluate, refit
from regimix.search.propose import Proposer
from regimix.search.rows import Rows

__all__ = ["first_stage", "search_in_stages", "select_in_stages"]

# Rows of the first stage, at least and for each coefficient.
FIRST_ROWS = 5_000
FIRST_ROWS_PER_COEFFICIENT = 100
# Where a stage shows nothing clear, the next has so many times its rows ...
GROWTH = 3
# ... unless all rows are less than so many times as many: then they are next.
WORTH_A_STAGE = 2
# EM on all rows before they are searched: a fit to fewer rows is near already.
REFINE_ROUNDS = 30
# What further rounds would gain is not worth them; a component must be worth twelve times that.
ENOUGH = 1.0
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
    given: Model | None = None,
    checkpoint: Checkpoint | None = None,
) -> Search:
    """Find the components of rows in random order; see ``moves.search_model``."""
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
            known = refit(rows, found, REFINE_ROUNDS, enough=ENOUGH)
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
    )
    state.attempts[:0] = attempts
    return state


def select_in_stages(path: Path, rows: Rows, chosen: Fitted, *, complete: bool) -> Selection:
    """Weigh the models of a path; what it lacks is fitted to few rows first."""
    few = first_stage(rows)
    if complete and few is not rows:
        short = Path()
        short.select(few, evaluate(few, chosen.model), complete=True)
        for count, fitted in short.best.items():
            if count != chosen.model.m:
                path.see(refit(rows, fitted.model, COMPARE_ROUNDS))
        complete = False
    return path.select(rows, chosen, complete=complete)
