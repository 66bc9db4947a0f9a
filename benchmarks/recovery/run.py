"""Run what is not yet on file, in parallel processes; every finished run is one JSON line.

A line knows the code of the library it was measured with: after a change of the library, the runs
of contestants that use it are made again, those of the others stand.
"""

import ast
import hashlib
import json
import math
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import regimix
from benchmarks.peers.worker import PeerMissingError
from benchmarks.recovery.cells import Cell
from benchmarks.recovery.contestants import CONTESTANTS, NEEDS_OUR_TIME, USES_REGIMIX
from benchmarks.recovery.judge import Found, judge, told, with_ones
from benchmarks.recovery.sample import Sample, draw

OURS = "regimix"
LEAST_SQUARES_REPEATS = 7
FAILED = "failed:"
# The part of the library that a fit runs through.
ROOMS = (*(f"{room}/*.py" for room in ("data", "engines", "trimmed", "model", "search", "result")),)
Line = dict[str, Any]
Key = tuple[str, str, int]


@dataclass(frozen=True)
class Task:
    """The contestants that have yet to run on one data set, and the time regimix took if known."""

    cell: Cell
    seed: int
    contestants: Sequence[str]
    our_seconds: float | None


def fingerprint() -> str:
    """Name the code of the library, so that figures of other code are not mixed in."""
    house, digest = Path(regimix.__file__).parent, hashlib.sha256()
    for pattern in ROOMS:
        for path in sorted(house.glob(pattern)):
            digest.update(_without_words(path.read_text(encoding="utf-8")))
    return digest.hexdigest()[:12]


def _without_words(text: str) -> bytes:
    """Leave out comments and docstrings: they change no figure."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
    return ast.dump(tree).encode()


class Archive:
    """The file of finished runs."""

    def __init__(self, path: Path, code: str, *, any_code: bool = False) -> None:
        self._path, self._code, self._any = path, code, any_code
        self.lines: dict[Key, Line] = {}
        if path.exists():
            for text in path.read_text(encoding="utf-8").splitlines():
                self._take(json.loads(text))

    def _take(self, line: Line) -> None:
        stale = line["code"] not in ("", self._code)
        if self._any or not stale:
            self.lines[line["cell"], line["contestant"], line["seed"]] = line

    def codes(self) -> list[str]:
        """Name the versions of the library that the runs are of."""
        return sorted({line["code"] for line in self.lines.values()} - {""})

    def add(self, line: Line) -> None:
        """Append a finished run."""
        line["code"] = self._code if line["contestant"] in USES_REGIMIX else ""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._take(line)

    def task(self, cell: Cell, seed: int, contestants: Iterable[str]) -> Task | None:
        """Say what is left to do on one data set."""
        left = [name for name in contestants if (cell.name, name, seed) not in self.lines]
        ours = self.lines.get((cell.name, OURS, seed))
        if ours is None and OURS not in left and set(left) & set(NEEDS_OUR_TIME):
            left = [OURS, *left]
        # Those whose time is measured by ours come after it.
        left.sort(key=lambda name: name != OURS)
        return Task(cell, seed, left, ours and ours["seconds"]) if left else None


def run(tasks: Sequence[Task], archive: Archive, jobs: int) -> None:
    """Run the tasks and file their lines as they finish, with progress on the terminal."""
    began, spawn = time.monotonic(), get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_prepare) as pool:
        futures = {pool.submit(work, task): task for task in tasks}
        try:
            for number, future in enumerate(as_completed(futures), 1):
                lines = future.result()
                for line in lines:
                    archive.add(line)
                _say(number, len(tasks), began, futures[future], lines)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise


def _prepare() -> None:
    """Use one thread, and load what is loaded when it is first needed: nobody is charged for it."""
    threadpool_limits(1)
    warm_up = Cell("warm-up", d=2, m=1, n=200)
    for name in USES_REGIMIX:
        _run_one(Task(warm_up, 0, (), None), name, draw(warm_up, 0), 0.0)


def work(task: Task) -> list[Line]:
    """Run the contestants of a task one after the other."""
    sample = draw(task.cell, task.seed)
    least_squares = least_squares_seconds(task.cell, sample)
    reference = judge(task.cell, sample, told(task.cell, sample)).worst
    ours, lines = task.our_seconds, []
    for name in task.contestants:
        line = _run_one(task, name, sample, ours or 0.0)
        if line is None:
            continue
        if name == OURS:
            ours = line["seconds"]
        line["fits"] = line["seconds"] / least_squares
        line["ratio"] = line["worst"] and line["worst"] / reference if reference else None
        lines.append(line)
    return lines


def _run_one(task: Task, name: str, sample: Sample, our_seconds: float) -> Line | None:
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = CONTESTANTS[name](task.cell, sample, task.seed, our_seconds)
    except PeerMissingError:
        return None
    except Exception as error:  # a run that breaks is a run that found nothing, and says why
        nothing = np.empty((0, task.cell.d))
        answer = Found(nothing, np.empty(0), note=f"{FAILED} {error!r}")
    seconds = time.process_time() - began
    if answer.seconds is not None:
        seconds = answer.seconds
    verdict = asdict(judge(task.cell, sample, answer))
    verdict["worst"] = verdict["worst"] if math.isfinite(verdict["worst"]) else None
    head = {"cell": task.cell.name, "contestant": name, "seed": task.seed}
    return {**head, **verdict, "seconds": seconds, "note": answer.note}


def least_squares_seconds(cell: Cell, sample: Sample) -> float:
    """Time one least squares fit by normal equations on the same data."""
    X, times = with_ones(sample.X, cell.fit_intercept), []
    for _ in range(LEAST_SQUARES_REPEATS):
        began = time.process_time()
        np.linalg.solve(X.T @ X, X.T @ sample.y)
        times.append(time.process_time() - began)
    return float(np.median(times))


def _say(number: int, total: int, began: float, task: Task, lines: Sequence[Line]) -> None:
    left = (time.monotonic() - began) / number * (total - number)
    marks = "; ".join(map(_mark, lines))
    print(
        f"  {number}/{total}, {left:.0f} s left: {task.cell.name} #{task.seed}: {marks}", flush=True
    )


def _mark(line: Line) -> str:
    """Show a run: the contestant, ok or (true components found / components given), seconds."""
    result = "ok" if line["success"] else f"{line['found']}/{line['count']}"
    trouble = f" ({line['note']})" if line["note"].startswith(FAILED) else ""
    return f"{line['contestant']} {result} {line['seconds']:.2g} s{trouble}"
