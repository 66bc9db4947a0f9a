"""Where a fit meets its checkpoint: when it is opened, what is noted, when it is done with."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regimix.data.problem import Frame
from regimix.engines.base import Engine, Sample
from regimix.errors import StopReason
from regimix.model.blocks import Law
from regimix.model.polish import Begun, Polished, polish
from regimix.search.checkpoint import Checkpoint, fingerprint
from regimix.search.settings import Settings

__all__ = ["ENDS", "finish_checkpoint", "open_checkpoint", "resumed_polish"]

Floats = NDArray[np.float64]

# Ends after which there is nothing to go on with. (A budget of starts ends Algorithm 2, too.)
ENDS = (StopReason.NOTHING_IMPROVES, StopReason.ALL_FOUND, StopReason.NONE_ACCEPTED)
NET_ENDS = (*ENDS, StopReason.MAX_STARTS)
# Rows that tell one table from another, where a fit draws none.
TELLING_ROWS = 1000


def open_checkpoint(
    engine: Engine, settings: Settings, sample: Sample | None = None, init: Floats | None = None
) -> Checkpoint | None:
    """Open the file that was asked for, if it belongs to these rows and settings."""
    if settings.checkpoint is None:
        return None
    sample = engine.sample(TELLING_ROWS, settings.seed) if sample is None else sample
    frame = engine.problem
    units = [getattr(frame, field.name) for field in fields(Frame)]
    parts: list[Any] = [value if isinstance(value, np.ndarray) else repr(value) for value in units]
    parts += [sample.Z, sample.y, sample.weights, "" if init is None else init]
    return Checkpoint.open(settings.checkpoint, fingerprint(settings, *parts))


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


def finish_checkpoint(saved: Checkpoint | None, stopped: str, *, net: bool = False) -> None:
    """Remove the file of a fit that came to its end; a fit that was stopped may go on from it."""
    if saved is not None and stopped in (NET_ENDS if net else ENDS):
        saved.done()
