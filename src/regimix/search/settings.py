"""What a search for all components is told: checked settings, and what a callback sees."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Engine
from regimix.engines.row_sampling import Drawn
from regimix.errors import (
    Message,
    ParameterError,
    Setting,
    StopReason,
    read_choice,
    read_count,
    read_number,
)
from regimix.model.em import DEADLINE
from regimix.model.numbers import MODEL
from regimix.search.numbers import SEARCH
from regimix.search.subspace import SubspaceKind
from regimix.trimmed.ilts import MAX_ITER, check_limits

# The granularity of a net as a share of its radius, unless given.
GRANULARITY = 0.5

SearchKind = Literal["auto", "joint", "partition", "net"]
NoiseKind = Literal["auto", "normal", "student"]
SolverKind = Literal["exact", "gradient", "cg"]


@dataclass(frozen=True)
class Progress:
    """What a callback is told; a true answer stops the search with the best so far.

    Attributes
    ----------
    stage : str
        What the search is doing.
    n_components : int
        Components of the current model.
    score : float
        Its evidence.
    elapsed : float
        Seconds since the search began.
    n_starts : int
        Starts tried so far.
    parts_done, n_parts : int, int or None
        Of a pass over rows that are not in memory: how many parts of how many. The number of parts
        is not known in the first pass over a file.
    """

    stage: str
    n_components: int
    score: float
    elapsed: float
    n_starts: int
    parts_done: int = 0
    n_parts: int | None = None


@dataclass(frozen=True)
class Settings:
    """How to search; ``Settings.read`` makes one of what users pass.

    Attributes
    ----------
    n_components : int or None
        None: found.
    outliers : float or None
        Share of the rows that belong to no component: those that fit worst. None: found. 0: there
        are none.
    noise : {"auto", "normal", "student"}
    search : {"auto", "joint", "partition", "net"}
    subspace : {"bounded", "svd", "filter"} or None
    solver : {"exact", "gradient", "cg"}
    max_iter, tol : int, float
        Limits of a trimmed fit.
    seed : int
    n_jobs : int or None
        As joblib counts them.
    max_starts : int or None
        Budget: starts.
    time_limit : float or None
        Budget: seconds.
    callback : callable or None
        Told of ``Progress``; a true answer stops the search.
    checkpoint : str or None
        Path of a file in which a search writes down what it accepted, to go on after a crash.
    keep_rows : bool
        Whether the answer holds some of the rows (all, if they are few).
    granularity : float
        ``search="net"``: the paper's epsilon, as a share of the radius of the net.
    tolerance : float or None
        ``search="net"``: the paper's delta, in the user's units of the response. None: found.
    taus : tuple of float or None
        ``search="net"``: the share of all rows that each component must explain. None: found.
    """

    n_components: int | None = None
    outliers: float | None = None
    noise: NoiseKind = "auto"
    search: SearchKind = "auto"
    subspace: SubspaceKind | None = "bounded"
    solver: SolverKind = "exact"
    max_iter: int = MAX_ITER
    tol: float = 0.0
    seed: int = 0
    n_jobs: int | None = None
    max_starts: int | None = None
    time_limit: float | None = None
    callback: Callable[[Progress], Any] | None = None
    checkpoint: str | None = None
    keep_rows: bool = False
    granularity: float = GRANULARITY
    tolerance: float | None = None
    taus: tuple[float, ...] | None = None

    @property
    def keep(self) -> float | None:
        """Share of the rows that belong to components; None: found."""
        return None if self.outliers is None else 1.0 - self.outliers

    @property
    def by_label(self) -> bool:
        """Whether components are fitted to the rows of their label, not to all rows in part."""
        return bool(self.outliers) or self.search in ("partition", "net")

    @classmethod
    def read(
        cls,
        *,
        n_components: Any = "auto",
        outliers: Any = "auto",
        noise: Any = "auto",
        search: Any = "auto",
        subspace: Any = "bounded",
        solver: Any = "exact",
        max_iter: Any = MAX_ITER,
        tol: Any = 0.0,
        random_state: Any = None,
        n_jobs: Any = None,
        max_starts: Any = None,
        time_limit: Any = None,
        callback: Any = None,
        checkpoint: Any = None,
        keep_rows: Any = False,
        granularity: Any = GRANULARITY,
        tolerance: Any = None,
        shares: Any = None,
    ) -> Settings:
        """Check what a user passes, and refuse what makes no sense or would have no effect."""
        paper = {
            "subspace": subspace,
            "solver": solver,
            "max_iter": max_iter,
            "tol": tol,
            "granularity": granularity,
            "tolerance": tolerance,
            "shares": shares,
        }
        count, kept = None, None
        if not (isinstance(n_components, str) and n_components == "auto"):
            count = read_count("n_components", n_components, otherwise='"auto" or ')
        if not (isinstance(outliers, str) and outliers == "auto"):
            kept = _outliers(outliers)
        search = read_choice("search", search, get_args(SearchKind))
        _refuse_silent(search, count, kept, noise, paper)
        if callback is not None and not callable(callback):
            raise ParameterError(
                f"callback must be None or a function of one argument; got {callback!r}."
            )
        return cls(
            n_components=count,
            outliers=kept,
            noise=read_choice("noise", noise, get_args(NoiseKind)),
            search=search,
            seed=read_seed(random_state),
            n_jobs=None if n_jobs is None else _jobs(n_jobs),
            max_starts=None
            if max_starts is None
            else read_count("max_starts", max_starts, otherwise="None or "),
            time_limit=None if time_limit is None else _positive("time_limit", time_limit),
            callback=callback,
            checkpoint=None if checkpoint is None else _new_file("checkpoint", checkpoint),
            keep_rows=bool(keep_rows),
            **(_paper(count, **paper) if search == "net" else {}),
        )


def _paper(
    count: int | None,
    subspace: Any,
    solver: Any,
    max_iter: Any,
    tol: Any,
    granularity: Any,
    tolerance: Any,
    shares: Any,
) -> dict[str, Any]:
    """Check what Algorithm 2 alone is told."""
    check_limits(max_iter, tol)
    return {
        "subspace": read_choice("subspace", subspace, (*get_args(SubspaceKind), None)),
        "solver": read_choice("solver", solver, get_args(SolverKind)),
        "max_iter": int(max_iter),
        "tol": float(tol),
        "granularity": _positive("granularity", granularity),
        "tolerance": None if tolerance is None else _positive("tolerance", tolerance),
        "taus": None if shares is None else _shares(shares, count),
    }


def read_seed(random_state: Any) -> int:
    """Read a seed from whatever scikit-learn users pass; generators move on."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**63))
    if isinstance(random_state, Integral):
        if random_state < 0:
            wrong = f" must not be negative; got {random_state!r}."
            raise ParameterError(Message(Setting("random_state"), wrong))
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ParameterError(
        "random_state must be None, a whole number, a numpy Generator or a RandomState; got "
        f"{random_state!r}."
    )


def _jobs(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) == 0:
        raise ParameterError(
            "n_jobs must be None, a positive whole number, or a negative one (-1: all processors); "
            f"got {value!r}."
        )
    return int(value)


def _positive(name: str, value: Any) -> float:
    return read_number(name, value, lambda number: 0 < number < math.inf, "a positive number")


def _outliers(value: Any) -> float:
    if value is False:
        return 0.0
    allowed = '"auto" or a share from 0 to below 1 (0: none; 0.1: the worst tenth of the rows)'
    return read_number("outliers", value, lambda share: 0 <= share < 1, allowed)


def _refuse_silent(
    search: str, count: int | None, outliers: float | None, noise: Any, paper: dict[str, Any]
) -> None:
    """Refuse parameters that would have no effect, and say why."""
    for name, value in paper.items():
        usual = getattr(Settings, "taus" if name == "shares" else name)
        if search == "net" or (type(value) is type(usual) and bool(value == usual)):
            continue
        raise ParameterError(
            f'{name} belongs to Algorithm 2 as its paper states it, search="net"; '
            f"search={search!r} has no use for it. Leave {name} out."
        )
    if search == "partition":
        if count is None:
            raise ParameterError(
                Message(
                    Setting("search", search),
                    " sorts the rows into a given number of regimes; say how many: ",
                    Setting("n_components", 2),
                    ", for example.",
                )
            )
        if outliers:
            raise ParameterError(
                Message(
                    Setting("search", search),
                    " gives every row to a regime; leave ",
                    Setting("outliers"),
                    " out, or use ",
                    Setting("search", "auto"),
                    ".",
                )
            )
    if search in ("partition", "net") and noise != "auto":
        raise ParameterError(
            Message(
                Setting("search", search),
                " fits by least squares and has no noise law: ",
                Setting("noise", noise),
                " would change nothing. Leave ",
                Setting("noise"),
                " out.",
            )
        )


def _new_file(name: str, value: Any) -> str:
    """Read the path of a file that can be made: its folder exists, and nothing is in its place."""
    if not isinstance(value, str | os.PathLike) or not isinstance(os.fspath(value), str):
        raise ParameterError(f"{name} must be None or the path of a file; got {value!r}.")
    path = Path(value)
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "no file"
        wrong = f" must be the path of a file; {str(path)!r} is {what}."
        raise ParameterError(Message(Setting(name), wrong))
    if not path.parent.is_dir():
        raise ParameterError(
            Message(
                Setting(name, str(path)),
                " is in a folder that does not exist; make it first, or give another path.",
            )
        )
    return str(path)


def _shares(shares: Any, n_components: int | None) -> tuple[float, ...]:
    """Check the shares of the components; one number stands for each of a known number of them."""
    try:
        values = np.atleast_1d(np.asarray(shares, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if values.ndim != 1 or not values.size or not ((values > 0) & (values <= 1)).all():
        raise ParameterError(
            "shares must be None, or one number above 0 and at most 1 for each component; got "
            f"{shares!r}."
        )
    if values.size == 1 and n_components is not None:
        values = np.repeat(values, n_components)
    if n_components not in (None, values.size):
        raise ParameterError(
            f"shares must be one number, or one for each of the {n_components} components asked "
            f"for; got {values.size}."
        )
    return tuple(values.tolist())


# --- when a search ends early ---------------------------------------------------------------------

_ANSWERS: ContextVar[bool] = ContextVar("answers", default=False)


@contextmanager
def answer_interrupts() -> Iterator[None]:
    """Mark code where a KeyboardInterrupt is answered with the best so far."""
    token = _ANSWERS.set(True)
    try:
        yield
    finally:
        _ANSWERS.reset(token)


def answers_interrupts() -> bool:
    """Whether a KeyboardInterrupt would be answered with the best so far."""
    return _ANSWERS.get()


class Stopped(Exception):  # noqa: N818 - not an error: the search ends with the best so far
    """A search was asked to end."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason)
        self.reason = reason


@contextmanager
def deadline(time_limit: float | None) -> Iterator[None]:
    """Let whatever goes in rounds make its last one after so many seconds."""
    token = DEADLINE.set(time.monotonic() + (math.inf if time_limit is None else time_limit))
    try:
        yield
    finally:
        DEADLINE.reset(token)


@dataclass
class Control:
    """Looks at the clock, the budget and the user's callback between proposals."""

    settings: Settings
    begun: float = field(default_factory=time.monotonic)

    def check(self, stage: str, n_components: int, score: float, n_starts: int) -> None:
        """Report progress; raise ``Stopped`` when the search is to end."""
        settings = self.settings
        elapsed = time.monotonic() - self.begun
        progress = Progress(stage, n_components, score, elapsed, n_starts)
        if settings.callback is not None and settings.callback(progress):
            raise Stopped(StopReason.CALLBACK)
        if settings.max_starts is not None and n_starts >= settings.max_starts:
            raise Stopped(StopReason.MAX_STARTS)
        if settings.time_limit is not None and elapsed >= settings.time_limit:
            raise Stopped(StopReason.TIME_LIMIT)


def watcher(settings: Settings) -> Callable[[int, int | None], Any] | None:
    """Return what tells the user's callback how far a pass over the table is."""
    if settings.callback is None:
        return None
    tell, begun = settings.callback, time.monotonic()

    def watch(done: int, total: int | None) -> Any:
        elapsed = time.monotonic() - begun
        return tell(Progress("reading", 0, 0.0, elapsed, 0, done, total))

    return watch


# --- starts that users give -----------------------------------------------------------------------

Floats = NDArray[np.float64]


def given_starts(engine: Engine, init: Any, seed: int) -> Floats:
    """Check the user's starts and translate them into standardised coefficients, (starts, p)."""
    problem = engine.problem
    d = problem.n_features
    widths = (d, d + 1) if problem.fit_intercept else (d,)
    try:
        starts = np.atleast_2d(np.asarray(init, dtype=np.float64))
    except (TypeError, ValueError):
        starts = np.full((1, d), np.nan)
    fits = starts.ndim == 2 and starts.shape[0] > 0 and starts.shape[1] in widths
    if not fits or not np.isfinite(starts).all():
        allowed = " or ".join(f"(starts, {width})" for width in widths)
        raise ParameterError(
            f"init must be finite and of shape {allowed}; got {np.shape(init) or init!r}."
        )
    if starts.shape[1] == d + 1:
        return problem.from_user(starts[:, :d], starts[:, d])
    # The intercept of a start without one is where a quarter of the rows lie closest together: a
    # median would lie between the regimes.
    drawn = engine.draw(SEARCH.first_rows, seed).distinct(SEARCH.first_rows)
    return problem.from_user(starts, np.array([_densest(drawn, coef) for coef in starts]))


def _densest(drawn: Drawn, coef: Floats) -> float:
    """Find the middle of the shortest interval that holds a quarter of the residuals."""
    residuals, weights = drawn.y - drawn.X @ coef, drawn.weights
    order = np.argsort(residuals, kind="stable")
    ends, filled = residuals[order], np.cumsum(weights[order])
    # From the first row of an interval to the one that fills it.
    goals = filled - weights[order] + SEARCH.nearest_share * filled[-1] * (1 - MODEL.rounding)
    last = np.searchsorted(filled, goals[goals <= filled[-1]])
    first = int(np.argmin(ends[last] - ends[: last.size]))
    return float((ends[first] + ends[last[first]]) / 2)
