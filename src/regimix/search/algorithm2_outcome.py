"""What Algorithm 2 is given and what it hands over: starts, components, refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regimix.engines.selection import Near
from regimix.errors import StopReason
from regimix.search.starts import Starts

__all__ = ["Accepted", "PeelState", "Peeled", "Rejected", "StartSource"]

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
