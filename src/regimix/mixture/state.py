"""Where the default search stands, and how that is written down and taken up again.

Models are written down, their posteriors are not: those are what ``evaluate`` makes of a model and
the rows, and so the same again, to the last bit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from regimix.mixture.checkpoint import Checkpoint
from regimix.mixture.control import Control
from regimix.mixture.result import Attempt
from regimix.mixture.selection import Path
from regimix.search.model import Fitted, Model, evaluate
from regimix.search.propose import Proposer
from regimix.search.rows import Rows
from regimix.search.subspace import Subspace

__all__ = ["Search"]


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
    """

    rows: Rows
    proposer: Proposer
    control: Control
    current: Fitted
    target: int | None = None
    saved: Checkpoint | None = None
    phase: Literal["first", "moves", "count", "over"] = "first"
    steps: int = 0
    stopped: str = "nothing improves"
    attempts: list[Attempt] = field(default_factory=list)
    tried: set[tuple[object, ...]] = field(default_factory=set)
    path: Path = field(default_factory=Path)
    known: Fitted | None = None
    preview: bool = False

    @property
    def _section(self) -> str:
        """Name this search in the file: one among few rows is not one among all."""
        return f"preview of {self.rows.n} rows" if self.preview else "search"

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
        if self.saved is None:
            return
        proposer = self.proposer
        values = {
            "phase": self.phase,
            "steps": self.steps,
            "current": vars(self.current.model),
            "path": [vars(fitted.model) for fitted in self.path.best.values()],
            "attempts": [asdict(attempt) for attempt in self.attempts],
            "tried": sorted(self.tried, key=repr),
            "generator": proposer.rng.bit_generator.state,
            "n_proposals": proposer.n_proposals,
            "spectrum": None if proposer.spectrum is None else vars(proposer.spectrum),
        }
        self.saved.put(self._section, values)

    def resume(self) -> None:
        """Take up the state that is written down, if there is one."""
        values = None if self.saved is None else self.saved.get(self._section)
        if values is None:
            return
        proposer = self.proposer
        self.phase, self.steps = values["phase"], values["steps"]
        self.current = self._fitted(values["current"])
        if self.known is not None and self.current.model.equals(self.known.model):
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
        return evaluate(self.rows, Model(**{**saved, "origin": tuple(saved["origin"])}))
