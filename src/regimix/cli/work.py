"""A fit with everything around it: interrupts, warnings, files to write, the printed answer."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from regimix.cli.console import READING, Aborted, Bar, Code, progress_bar
from regimix.cli.options import in_options
from regimix.cli.place import Engine, Place
from regimix.cli.scanned import Scanned
from regimix.errors import ConvergenceWarning, RankWarning, RegimixWarning, StopReason

if TYPE_CHECKING:
    from regimix.cli.console import Voice
    from regimix.result.mixture import Mixture
    from regimix.tables import DataSet, ParquetTable

__all__ = ["Files", "Interrupts", "Look", "fit_and_print"]

# Reasons to stop that leave the search unfinished.
LIMITS = (StopReason.MAX_STARTS, StopReason.TIME_LIMIT)
INTERRUPTED = (StopReason.CALLBACK, StopReason.INTERRUPTED)
MEMORY = Place(Engine.MEMORY)


@dataclass(frozen=True)
class Files:
    """What is to be written (None: not asked for), and the command that asked, word by word."""

    model: Path | None = None
    labels: Path | str | None = None
    report: Path | None = None
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Look:
    """How the answer is printed: how many terms and outliers, whether as JSON, with what files."""

    terms: int = 10
    outliers: int = 5
    as_json: bool = False
    name_files: bool = True


@dataclass
class Outcome:
    """What a fit came to, of which table, and what was written."""

    mixture: Mixture
    data: DataSet | Scanned
    warnings: list[str] = field(default_factory=list)
    code: Code = Code.DONE
    files: dict[str, str] = field(default_factory=dict)  # by what they are
    failure: Exception | None = None  # why one was not written


class Interrupts:
    """Ctrl-C: the first ends the search with the best so far, the second ends everything.

    Use as a context; ``look`` is for the callback of an estimator. Before the search there is
    nothing to keep, and the first Ctrl-C ends everything. During the search it is raised there:
    the search answers with what it has. After the search it waits until the answer is written.

    Attributes
    ----------
    count : int
        How often Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.count = 0
        self._begun = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        # Only the main thread of a process may listen to signals.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if isinstance(error, KeyboardInterrupt):
            early = "interrupted before there was an answer; nothing was written."
            late = "interrupted twice; what was not finished was not written."
            raise Aborted(early if self.count < 2 else late) from error

    def _heard(self, *_: Any) -> None:
        self.count += 1
        if not self._begun and self.count == 1 and isinstance(sys.exception(), KeyboardInterrupt):
            # polars raises one of its own for the same Ctrl-C, and then Python hears of it too: a
            # second one would keep the bar from being taken away.
            return
        if self.count > 1 or not self._begun or _is_answered():
            raise KeyboardInterrupt

    def look(self, *, searching: bool = True) -> bool:
        """Take note that the search is at work; say whether it should end."""
        self._begun = self._begun or searching
        return self.count > 0


def _is_answered() -> bool:
    """Whether the search would answer an interrupt now with the best so far."""
    from regimix.search.settings import answers_interrupts

    return answers_interrupts()


def fit_and_print(
    read: Callable[[], DataSet | ParquetTable],
    settings: dict[str, Any],
    files: Files,
    look: Look,
    voice: Voice,
    place: Place = MEMORY,
) -> Code:
    """Read a table, fit it, write the files that were asked for, and print what was found.

    Parameters
    ----------
    read : callable
        Returns the table.
    settings : dict
        Parameters of ``MixedLinearRegression``.
    place : Place
        Where the work is done.
    """
    with Interrupts() as interrupts:
        with progress_bar(voice, settings.get("time_limit"), lines=not place.in_memory) as bar:
            bar.stage("starting workers" if place.on_cluster else "reading")
            with place.opened(voice):
                table = read()
                _check_labels(files, table)
                bar.stage("first look")
                outcome = _fit(table, settings, interrupts, bar)
                if outcome.mixture.stopped in INTERRUPTED and outcome.mixture.found_nothing:
                    raise Aborted("interrupted before a regime was found; nothing was written.")
                bar.stage("writing")
                _write(files, outcome, bar)
        outcome.code = Code.INTERRUPTED if interrupts.count else outcome.code
    if look.as_json:
        _print_json(outcome)
    _print(outcome, look, voice)
    if look.name_files:
        for what, path in outcome.files.items():
            voice.note(f"Wrote the {what}: {path}", whole=True)
    if outcome.failure is not None:
        raise outcome.failure
    return outcome.code


def _check_labels(files: Files, table: DataSet | ParquetTable) -> None:
    """Refuse a folder of labels before the fit, not after it."""
    from regimix.tables import ParquetTable
    from regimix.tables.write_parts import check_destination

    if files.labels is not None and isinstance(table, ParquetTable):
        check_destination(files.labels, table)


def _fit(
    table: DataSet | ParquetTable, settings: dict[str, Any], interrupts: Interrupts, bar: Bar
) -> Outcome:
    from regimix.estimators.mixture import MixedLinearRegression
    from regimix.tables import DataSet

    def callback(step: Any) -> bool:
        bar.step(step)
        return interrupts.look(searching=step.stage != READING)

    model = MixedLinearRegression(**settings, callback=callback)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if isinstance(table, DataSet):
            model.fit(table.frame(), table.target(), table.weights)
        else:
            model.fit(table)
    mixture = model.mixture_
    if isinstance(table, DataSet):
        return _with_warnings(Outcome(mixture, table), caught)
    return _with_warnings(Outcome(mixture, Scanned(table, model.labels_, mixture.n_rows)), caught)


def _with_warnings(outcome: Outcome, caught: list[warnings.WarningMessage]) -> Outcome:
    """Say how a fit ended, and what of it must be read."""
    mixture = outcome.mixture
    cut_short = mixture.stopped in INTERRUPTED
    if cut_short:
        outcome.warnings.append("the search was interrupted; this is the best it had found.")
    elif mixture.found_nothing or mixture.stopped in LIMITS:
        outcome.code = Code.INCOMPLETE
    for warning in caught:
        said = cut_short and issubclass(warning.category, ConvergenceWarning)
        if issubclass(warning.category, RegimixWarning) and not said:
            outcome.warnings.append(in_options(cast("Warning", warning.message)))
    # A lack of rank, the usual reason for missing errors, has a warning of its own.
    if mixture.inference is not None and not any(w.category is RankWarning for w in caught):
        notes = enumerate(mixture.inference.notes)
        outcome.warnings += [f"regime {j}: {note}." for j, note in notes if note]
    return outcome


def _write(files: Files, outcome: Outcome, bar: Bar) -> None:
    """Write what was asked for, each file whole or not at all.

    A file that cannot be written keeps neither the others nor the answer from the user.
    """
    jobs: tuple[tuple[str, Any, Callable[..., None]], ...] = (
        ("model", files.model, _write_model),
        ("labels", files.labels, partial(_write_labels, bar=bar)),
        ("report", files.report, partial(_write_report, command=files.command)),
    )
    for what, path, write in jobs:
        if path is None:
            continue
        try:
            write(path, outcome.mixture, outcome.data)
        except Exception as error:
            outcome.failure = outcome.failure or error
        else:
            outcome.files[what] = str(path)


def _write_model(path: Path, mixture: Mixture, data: DataSet | Scanned) -> None:
    from regimix.store import save

    # A label for each of very many rows is not part of a model.
    labels = not isinstance(data, Scanned)
    save(mixture, path, recipe=data.recipe.to_json(), labels=labels)


def _write_labels(path: Path | str, mixture: Mixture, data: DataSet | Scanned, *, bar: Bar) -> None:
    from regimix.tables import write_label_parts, write_labels

    if isinstance(data, Scanned):
        bar.stage("writing labels")
        write_label_parts(path, data.table, mixture, labels=data.labels, watch=bar.parts)
    else:
        write_labels(path, data, mixture, labels=mixture.labels)


def _write_report(
    path: Path, mixture: Mixture, data: DataSet | Scanned, *, command: tuple[str, ...] = ()
) -> None:
    from regimix import report

    again = shlex.join(_without_password(command, data)) or None
    if isinstance(data, Scanned):
        report.write(path, mixture, keys=range(1, data.n_rows + 1), command=again)
    else:
        report.write(path, mixture, data.X, data.y, keys=data.keys, command=again)


def _without_password(command: tuple[str, ...], data: DataSet | Scanned) -> list[str]:
    """Write the address of a server as the table does, without a password."""
    from regimix.tables.databases import is_address

    server = data.source.removeprefix("the database ")
    return [server if is_address(word) and is_address(server) else word for word in command]


def _print_json(outcome: Outcome) -> None:
    from regimix.cli.show import summary

    more = {"warnings": outcome.warnings, "files": outcome.files, "exit_code": int(outcome.code)}
    plain = summary(outcome.mixture, outcome.data, **more)
    sys.stdout.write(json.dumps(plain, indent=1, allow_nan=False) + "\n")
    sys.stdout.flush()


def _print(outcome: Outcome, look: Look, voice: Voice) -> None:
    """Print what was found, for people."""
    data = outcome.data
    for note in data.notes:
        voice.note(note)
    for warning in outcome.warnings:
        voice.warn(warning)
    if (data.notes or outcome.warnings) and voice.err.is_terminal:
        voice.note()
    if not voice.quiet:
        from regimix.cli.show import print_mixture

        print_mixture(outcome.mixture, data, look.terms, look.outliers, voice)
