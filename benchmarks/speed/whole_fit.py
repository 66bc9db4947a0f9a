"""A whole fit from the data, against two implementations of FAST-LTS.

Every round draws new data, so the objective is compared on several data sets, and the worst
ratio counts. All keep the same number of rows, the one R chooses, and are judged by their raw
coefficients: the reweighted ones minimise something else.
"""

import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.data import OUTLIERS, Floats, Sample, one_model, trimmed_objective
from benchmarks.peers.ltsreg import ltsreg, rows_kept
from benchmarks.peers.robpy_fastlts import robpy
from benchmarks.peers.worker import PeerMissingError, Worker, write_sample
from benchmarks.speed.race import Contestant, Seconds, duration, medians, race, say, stopwatch
from benchmarks.speed.table import Comparison, Row, Target
from regimix import TrimmedRegressor

COLUMNS = 20
ROWS, QUICK_ROWS = 100_000, 1_000
WARM_UP_ROWS = 2_000  # enough to load and compile everything; robpy is slow
NOISE = 0.5  # of the norm of the coefficients: many rounds, and no two local minima alike
OURS = "regimix"


@dataclass(frozen=True)
class Challenge:
    """A peer, how much faster to be, and whether its objective is compared, and must be matched."""

    start: Callable[[], Worker]
    speed: Target
    objective: bool = True
    no_higher: Target | None = None


CHALLENGES = {
    # By default R adds robust distances of the features, which ours does not compute: the first
    # line is the fair one, the second what a user types. Their coefficients are the same.
    "`ltsReg(mcd = FALSE)` in R": Challenge(
        lambda: ltsreg(distances=False),
        Target(15, at_least=True),
        # The slack is the rounding of a sum over half of the rows.
        no_higher=Target(1, at_least=False, slack=1e-9),
    ),
    "`ltsReg` in R": Challenge(
        lambda: ltsreg(distances=True), Target(15, at_least=True), objective=False
    ),
    "`FastLTSRegression` of robpy": Challenge(lambda: robpy(say), Target(50, at_least=True)),
}


class Arena:
    """The data of each round, and the objective that each contestant reached on it."""

    def __init__(self, rows: int, folder: Path) -> None:
        self._rows = rows
        self._number = -1
        self.path = folder / "sample"
        self.objectives: dict[str, list[float]] = {}

    def enter(self, number: int) -> tuple[Sample, int]:
        """Return the data of a round, which is also left for the peers, and the rows to keep."""
        if number != self._number:
            rows = self._rows if number > 0 else min(self._rows, WARM_UP_ROWS)
            self._sample = one_model(rows, COLUMNS, seed=number, noise=NOISE)
            write_sample(self._sample, self.path)
            self._number = number
        return self._sample, rows_kept(*self._sample.X.shape)

    def leave(self, name: str, coef: Floats, intercept: float) -> None:
        """Record what a contestant reached."""
        if self._number > 0:
            kept = rows_kept(*self._sample.X.shape)
            objective = trimmed_objective(self._sample, coef, intercept, kept)
            self.objectives.setdefault(name, []).append(objective)

    def worst_round(self, name: str) -> tuple[float, float]:
        """Return our objective and the peer's in the round that is worst for us."""
        pairs = zip(self.objectives[OURS], self.objectives[name], strict=False)
        return max(pairs, key=lambda pair: pair[0] / pair[1])


def run(repeats: int, quick: bool) -> Comparison:
    rows = QUICK_ROWS if quick else ROWS
    missing: dict[str, str] = {}
    versions: dict[str, str] = {}
    with ExitStack() as stack:
        arena = Arena(rows, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        contestants = {OURS: _ours(arena)}
        for name, challenge in CHALLENGES.items():
            try:
                worker = stack.enter_context(challenge.start())
            except PeerMissingError as error:
                missing[name] = str(error)
                say(f"{name}: {error}")
            else:
                contestants[name] = _peer(arena, name, worker)
                versions[name] = worker.version
        seconds = race(contestants, repeats)
    remarks = [
        f"{name}: {version}; runs: {len(seconds[name])}." for name, version in versions.items()
    ]
    raw = {
        "seconds": seconds,
        "objectives": arena.objectives,
        "peers": versions,
        "bars": _pictured(rows, seconds, versions),
    }
    settings = {
        "rows": rows,
        "columns": COLUMNS,
        "rows_kept": rows_kept(rows, COLUMNS),
        "noise": NOISE,
        "outliers": OUTLIERS,
    }
    return Comparison(_rows(rows, seconds, arena, missing), remarks, raw, settings)


def _pictured(rows: int, seconds: Seconds, names: Iterable[str]) -> list[dict[str, Any]]:
    """Collect what the picture of all peers shows."""
    median = medians(seconds)
    return [
        {
            "peer": name.replace("`", ""),
            "case": f"{rows:,} × {COLUMNS}, 30 % outliers",
            "ratio": median[name] / median[OURS],
            "target": CHALLENGES[name].speed.bound,
            "found": True,
        }
        for name in names
    ]


def _ours(arena: Arena) -> Contestant:
    def fit(number: int) -> float:
        sample, kept = arena.enter(number)
        model = TrimmedRegressor(keep=kept / len(sample.y), random_state=number)
        seconds = stopwatch(lambda: model.fit(sample.X, sample.y))
        arena.leave(OURS, model.raw_coef_, model.raw_intercept_)
        return seconds

    return fit


def _peer(arena: Arena, name: str, worker: Worker) -> Contestant:
    def fit(number: int) -> float:
        sample, kept = arena.enter(number)
        found = worker.fit(arena.path, sample, kept)
        arena.leave(name, found.coef, found.intercept)
        return found.seconds

    return fit


def _rows(rows: int, seconds: Seconds, arena: Arena, missing: dict[str, str]) -> list[Row]:
    median = medians(seconds)
    ours = duration(median[OURS])
    size = f"{rows:,} × {COLUMNS}"
    what = f"whole fit, {size}, keep .5, 30 % outliers: times faster"
    table = []
    for name, challenge in CHALLENGES.items():
        if name in missing:
            table.append(Row(what, ours, name, missing[name], None, challenge.speed))
            continue
        ratio = median[name] / median[OURS]
        table.append(Row(what, ours, name, duration(median[name]), ratio, challenge.speed))
        if challenge.objective:
            mine, theirs = arena.worst_round(name)
            table.append(
                Row(
                    f"its trimmed objective, worst of {len(arena.objectives[name])}",
                    f"{mine:.6g}",
                    name,
                    f"{theirs:.6g}",
                    mine / theirs,
                    challenge.no_higher,
                    digits=7,
                )
            )
    return table
