"""Run experiments: measure the cells that are not measured yet, check, draw, write."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lab.claims import EXPERIMENTS
from lab.experiment import Experiment, Size, Verdict
from lab.table import Row, Table
from regimix.atomic import write_bytes
from regimix.errors import MissingExtraError, ParameterError

__all__ = ["Outcome", "Progress", "run"]

Progress = Callable[[str, int, int], Any]


@dataclass(frozen=True)
class Outcome:
    """What one experiment came to.

    Attributes
    ----------
    name : str
    verdict : Verdict
    table : Table
    paths : dict of str to Path
        The files written: "csv", "json", "cells" and, with figures, "svg".
    seconds : float
        Spent measuring the cells that were not there yet.
    """

    name: str
    verdict: Verdict
    table: Table
    paths: Mapping[str, Path] = field(default_factory=dict)
    seconds: float = 0.0


def run(
    name: str | Iterable[str],
    size: Size = "quick",
    *,
    out: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    broken: bool = False,
    figures: bool = True,
) -> tuple[Outcome, ...]:
    """Run one experiment, several, or ``"all"``.

    Parameters
    ----------
    name : str or iterable of str
        Names in ``EXPERIMENTS``, or ``"all"``.
    size : {"quick", "full"}
        Seconds or minutes for each.
    out : path, optional
        Directory for tables, figures and verdicts; made if it is not there. Cells that it holds
        from an earlier run, interrupted or not, are not measured again.
    seed : int
        Equal seeds give equal tables (but for measured times).
    progress : callable, optional
        Called as ``progress(name, done, total)`` after each cell.
    broken : bool
        Break each experiment on purpose, as its ``sabotage`` describes: every verdict should be
        "refuted".
    figures : bool
        Whether to draw, if there is an ``out``; needs matplotlib.

    Returns
    -------
    tuple of Outcome
        In the order asked for.
    """
    chosen = _chosen(name)
    if size not in ("quick", "full"):
        raise ParameterError(f'size must be "quick" or "full"; got {size!r}.')
    if out is not None:
        out = Path(out)
        out.mkdir(parents=True, exist_ok=True)
        if figures and importlib.util.find_spec("matplotlib") is None:
            message = (
                "figures need matplotlib, which is not installed. Install regimix[plot], or pass "
                "figures=False."
            )
            raise MissingExtraError(message)
    job = _Job(size, out, seed, progress, broken, figures)
    # One thread: cells are small, and sums must not depend on the machine's cores.
    with threadpool_limits(1, "blas"):
        return tuple(job.run(experiment) for experiment in chosen)


def _chosen(name: str | Iterable[str]) -> list[Experiment]:
    names = [name] if isinstance(name, str) else list(name)
    if names == ["all"]:
        names = list(EXPERIMENTS)
    unknown = [each for each in names if each not in EXPERIMENTS]
    if unknown or not names:
        message = (
            f"there is no experiment {', '.join(map(repr, unknown)) or 'without a name'}. There "
            f'are "all", {", ".join(EXPERIMENTS)}.'
        )
        raise ParameterError(message)
    return [EXPERIMENTS[each] for each in names]


@dataclass(frozen=True)
class _Job:
    """What all experiments of a call have in common."""

    size: Size
    out: Path | None
    seed: int
    progress: Progress | None
    broken: bool
    figures: bool

    def path(self, experiment: Experiment, suffix: str) -> Path | None:
        """Return where a file goes; sabotaged runs have files of their own."""
        if self.out is None:
            return None
        return self.out / f"{experiment.name}{'-broken' if self.broken else ''}.{suffix}"

    def run(self, experiment: Experiment) -> Outcome:
        """Measure what is missing, check, write."""
        rows, seconds = self._measure(experiment)
        table = Table(rows)
        verdict = experiment.check(table)
        paths = self._write(experiment, table, verdict) if self.out is not None else {}
        return Outcome(experiment.name, verdict, table, paths, seconds)

    def _measure(self, experiment: Experiment) -> tuple[list[Row], float]:
        journal = _Journal(self.path(experiment, "jsonl"))
        cells, rows, seconds = experiment.cells(self.size), [], 0.0
        for done, cell in enumerate(cells, start=1):
            key = experiment.key(cell, self.seed, self.broken)
            if key not in journal:
                begun = time.perf_counter()
                generator = experiment.generator(cell, self.seed)
                measured = experiment.measure(cell, generator, self.broken)
                journal.add(key, [_plain({**cell, **row}) for row in measured])
                seconds += time.perf_counter() - begun
            rows += journal[key]
            if self.progress is not None:
                self.progress(experiment.name, done, len(cells))
        return rows, seconds

    def _write(self, experiment: Experiment, table: Table, verdict: Verdict) -> dict[str, Path]:
        names = {"csv": "csv", "json": "json", "cells": "jsonl"}
        if self.figures:
            names["svg"] = "svg"
        paths = {what: self.path(experiment, suffix) for what, suffix in names.items()}
        whole = {what: path for what, path in paths.items() if path is not None}
        write_bytes(whole["csv"], table.to_csv().encode())
        if self.figures:
            # Only who draws pays for matplotlib.
            from lab.figures import to_svg

            write_bytes(whole["svg"], to_svg(experiment, table))
        report = json.dumps(self._report(experiment, verdict), indent=2, ensure_ascii=False)
        write_bytes(whole["json"], f"{report}\n".encode())
        return whole

    def _report(self, experiment: Experiment, verdict: Verdict) -> dict[str, Any]:
        """Say everything about a verdict that a reader needs to judge it."""
        return {
            "name": experiment.name,
            "title": experiment.title,
            "claim": experiment.claim,
            "statement": experiment.statement,
            "tolerance": experiment.tolerance,
            "verdict": verdict.verdict,
            "value": _finite(verdict.value),
            "threshold": _finite(verdict.threshold),
            "words": verdict.words,
            "numbers": {name: _finite(number) for name, number in verdict.numbers.items()},
            "size": self.size,
            "seed": self.seed,
            "broken": experiment.sabotage if self.broken else None,
            "version": experiment.version,
        }


class _Journal:
    """Finished cells of one experiment, a line of JSON for each.

    A line is added when its cell is done. A line that a crash cut short is not read, and the
    next one is written in its place.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._done: dict[str, list[Row]] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        whole = []
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            try:
                entry = json.loads(line) if line.endswith("\n") else None
            except json.JSONDecodeError:
                entry = None
            if isinstance(entry, dict) and {"key", "rows"} <= entry.keys():
                whole.append(line)
                self._done[entry["key"]] = entry["rows"]
        text = "".join(whole)
        if text != path.read_text(encoding="utf-8"):
            write_bytes(path, text.encode())

    def __contains__(self, key: str) -> bool:
        return key in self._done

    def __getitem__(self, key: str) -> list[Row]:
        return self._done[key]

    def add(self, key: str, rows: Iterable[Row]) -> None:
        """Note a finished cell, on disk at once."""
        line = json.dumps({"key": key, "rows": list(rows)}) + "\n"
        # What was just measured and what is read again later must be the same rows.
        self._done[key] = json.loads(line)["rows"]
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())


def _plain(row: Row) -> Row:
    """Turn NumPy scalars into Python's, which JSON can write; NaN becomes null."""
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in row.items()
    }
    return {
        name: _finite(value) if isinstance(value, float) else value for name, value in plain.items()
    }


def _finite(value: float) -> float | None:
    """Keep files plain JSON: what is not finite is null."""
    return value if np.isfinite(value) else None
