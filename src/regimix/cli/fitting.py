"""A fit with everything around it: a table is read, its regimes printed, files written.

Loaded when a fit is run, not when help is asked for.
"""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from regimix import tables
from regimix.cli.console import READING, Aborted, Bar, Code, CommandError, Voice, progress_bar
from regimix.cli.options import in_options
from regimix.cli.place import Place
from regimix.cli.show import Outcome, print_mixture, print_profile, refit, summary
from regimix.data.recipe import check_columns
from regimix.errors import (
    ConvergenceWarning,
    RankWarning,
    RegimixWarning,
    RivalWarning,
    StopReason,
    UnknownColumnError,
    without_secrets,
)
from regimix.estimators.mixture import MixedLinearRegression, read_settings
from regimix.paths import is_address
from regimix.result.gate import gate_shares
from regimix.result.profile import Profile
from regimix.search.settings import answers_interrupts
from regimix.store import save
from regimix.tables import DataSet, ParquetTable
from regimix.tables.write import check_destination

# Reasons to stop that leave the search unfinished.
LIMITS = (StopReason.MAX_STARTS, StopReason.TIME_LIMIT)
INTERRUPTED = (StopReason.CALLBACK, StopReason.INTERRUPTED)
# Rows of a table in parts that a profile compares: enough to show any difference that matters.
PROFILE_ROWS = 100_000
# The value of --profile that stands for every column that is not used.
ALL = ["all"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """A fit as it was asked for: table, settings, files to write (if not None), what to print."""

    read: Callable[[], DataSet | ParquetTable]
    settings: dict[str, Any]  # of the estimator
    place: Place
    voice: Voice
    model: Path | None = None
    labels: str | None = None
    report: Path | None = None
    columns: Sequence[str] = ()  # of the table, beside the labels; or "all"
    resamples: int | None = None  # to be searched, for stability
    profiled: list[str] | None = None  # columns to be compared between the regimes
    command: tuple[str, ...] = ()  # as it was typed
    most_terms: int = 10
    most_outliers: int = 5
    as_json: bool = False
    name_files: bool = True

    def run(self) -> Code:
        """Read a table, fit it, write the files that were asked for, and print what was found."""
        # What is wrong with the options is said before a large table is read.
        read_settings(MixedLinearRegression(**self.settings))
        limit, lines = self.settings.get("time_limit"), not self.place.in_memory
        with Interrupts() as interrupts:
            with progress_bar(self.voice, limit, lines=lines) as bar:
                bar.stage("starting workers" if self.place.on_cluster else "reading")
                with self.place.opened(self.voice):
                    table = self.read()
                    self._check_labels(table)
                    bar.stage("first look")
                    outcome = self._fit(table, interrupts, bar)
                    if outcome.mixture.stopped in INTERRUPTED and outcome.mixture.found_nothing:
                        raise Aborted("interrupted before a regime was found; nothing was written.")
                    outcome.profile = _profile(self.profiled, outcome)
                    bar.stage("writing")
                    self._write(outcome, bar)
            outcome.code = Code.INTERRUPTED if interrupts.count else outcome.code
        self._print(outcome)
        if outcome.failure is not None:
            raise outcome.failure
        return outcome.code

    def _check_labels(self, table: DataSet | ParquetTable) -> None:
        """Refuse a folder of labels, or columns beside them, before the fit, not after it."""
        if isinstance(table, ParquetTable):
            if self.labels is not None:
                check_destination(self.labels, table)
        elif not isinstance(self.columns, str):
            check_columns(table.columns, self.columns, table.source, "to be written")

    def _fit(self, table: DataSet | ParquetTable, interrupts: Interrupts, bar: Bar) -> Outcome:
        def callback(step: Any) -> bool:
            bar.step(step)
            return interrupts.look(searching=step.stage != READING)

        # The table holds numbers only: it was encoded when it was read.
        model = MixedLinearRegression(**self.settings, callback=callback, encode=None)
        unfinished = ""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if isinstance(table, DataSet):
                model.fit(table.frame(), table.target(), table.weights, table.gating)
            else:
                model.fit(table)
        if self.resamples is not None and isinstance(table, DataSet):
            unfinished = _search_resamples(model, table, self.resamples, interrupts, bar)
        # So that a model loaded in Python encodes data frames as this table was encoded.
        mixture = replace(model.mixture_, encoding=table.recipe, notes=table.notes)
        outcome = Outcome.of(mixture, model.labels_, table)
        _judge(outcome, caught)
        outcome.warnings += [unfinished] if unfinished else []
        return outcome

    def _write(self, outcome: Outcome, bar: Bar) -> None:
        """Write what was asked for, each file whole or not at all.

        A file that cannot be written keeps neither the others nor the answer from the user.
        """
        wanted: tuple[tuple[str, Any, Callable[[Any, Outcome], None]], ...] = (
            ("model", self.model, _write_model),
            ("labels", self.labels, partial(self._write_labels, bar=bar)),
            ("report", self.report, self._write_report),
        )
        for what, path, write in wanted:
            if path is None:
                continue
            try:
                write(path, outcome)
            except Exception as error:
                outcome.failure = outcome.failure or error
            else:
                outcome.files[what] = str(path)

    def _write_labels(self, path: str, outcome: Outcome, *, bar: Bar) -> None:
        table, mixture, labels = outcome.table, outcome.mixture, outcome.labels
        if isinstance(table, DataSet):
            tables.write_labels(path, table, mixture, labels=labels, columns=self.columns)
        else:
            bar.stage("writing labels")
            tables.write_label_parts(path, table, mixture, labels=labels, watch=bar.parts)
        outcome.notes += [table.recipe.note] if table.recipe.note else []

    def _write_report(self, path: Path, outcome: Outcome) -> None:
        from regimix import report

        table, mixture = outcome.table, outcome.mixture
        command = shlex.join(_without_password(self.command, table.source)) or None
        known: dict[str, Any] = {"command": command, "profile": outcome.profile}
        if isinstance(table, DataSet):
            known |= {"keys": table.keys, "shares": gate_shares(mixture, table.X, table.gating)}
            report.write(path, mixture, table.X, table.y, sample_weight=table.weights, **known)
        else:
            report.write(path, mixture, keys=range(1, mixture.n_rows + 1), **known)

    def _print(self, outcome: Outcome) -> None:
        """Print what was found, for programs if they are to read it, and for people."""
        voice = self.voice
        if self.as_json:
            sys.stdout.write(json.dumps(summary(outcome), indent=1, allow_nan=False) + "\n")
            sys.stdout.flush()
        for note in outcome.notes:
            voice.note(note)
        for warning in outcome.warnings:
            voice.warn(warning)
        if (outcome.notes or outcome.warnings) and voice.err.is_terminal:
            voice.note()
        if not voice.quiet:
            print_mixture(outcome, self.most_terms, self.most_outliers, voice)
            if outcome.profile is not None:
                print_profile(outcome.profile, voice)
        if self.name_files:
            for what, path in outcome.files.items():
                voice.note(f"Wrote the {what}: {path}", whole=True)


def read_table(
    source: str, place: Place, profiled: list[str] | None, seed: int, **how: Any
) -> DataSet | ParquetTable:
    """Read a table, or open one in parts."""
    # Columns that a profile compares must not be features: they would explain themselves.
    kept = {how["target"], how["weights"], how["key"]}
    aside = [] if how["features"] or profiled == ALL else profiled or []
    how["drop"] = [*how["drop"], *(name for name in aside if name not in kept)]
    try:
        data: DataSet | ParquetTable
        if place.in_memory:
            data = tables.read(source, seed=seed, **how, **place.reading)
        else:
            data = tables.scan_parquet(source, **how, **place.reading)
    except UnknownColumnError as error:
        # A comma in a name that was not doubled splits the name.
        meant = [name for name in error.close if "," in name]
        if error.role == "to drop" and any(repr(name) in str(error) for name in aside):
            raise CommandError(str(error).replace("(to drop)", "(--profile)")) from error
        if not meant or error.role not in ("a feature", "to drop"):
            raise
        doubled = meant[0].replace(",", ",,")
        advice = f"Double the comma that is part of a name: {doubled}"
        raise CommandError(f"{in_options(error)} {advice}") from error
    if isinstance(data, DataSet):
        _check_weights(data)
    if profiled != ALL:
        check_columns(data.columns, profiled or (), data.source, "--profile")
    return data


def _check_weights(data: DataSet) -> None:
    """Refuse negative weights in the words of the table: its column, its rows."""
    if data.weights is None or not (data.weights < 0).any():
        return
    row = int((data.weights < 0).argmax())
    raise CommandError(
        f"the column {data.recipe.weights!r} of --weights is negative in {data.key_name} "
        f"{data.keys[row]} ({data.weights[row]:g}); weights are zero (row absent) or positive."
    )


class Interrupts:
    """Ctrl-C: the first ends the search with the best so far, the second ends everything.

    Use as a context; ``look`` is for the callback of an estimator. Before the search there is
    nothing to keep, and the first Ctrl-C ends everything. During the search it is raised there:
    the search answers with what it has. After the search it waits until the answer is written, but
    ends what can be left out.
    """

    def __init__(self) -> None:
        self.count = 0  # how often Ctrl-C was pressed
        self.dispensable = False  # whether what is at work can be left out
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
            # polars has raised an exception for the same Ctrl-C already; a second one would
            # interrupt the removal of the bar.
            return
        if self.count > 1 or not self._begun or self.dispensable or answers_interrupts():
            raise KeyboardInterrupt

    def look(self, *, searching: bool = True) -> bool:
        """Note that the search has begun; return whether it should end."""
        self._begun = self._begun or searching
        return self.count > 0


def _search_resamples(
    model: MixedLinearRegression, table: DataSet, resamples: int, interrupts: Interrupts, bar: Bar
) -> str:
    """Search resampled rows; return a warning if that was not finished."""
    if interrupts.look():
        return "stability was not tried, since the search was interrupted."
    fitted = model.mixture_

    def progress(done: int, total: int) -> None:
        bar.parts(done, total, "resample")
        # The search of a resample answers an interrupt with its best so far.
        if interrupts.count:
            raise KeyboardInterrupt

    bar.stage("searching resamples")
    rows = table.frame(), table.target()
    interrupts.dispensable = True
    try:
        seed, jobs = model.random_state, model.n_jobs
        model.stability(*rows, resamples, seed, table.weights, jobs, progress)
    except (Exception, KeyboardInterrupt):
        # Ctrl-C reaches worker processes too, which may fail with any error.
        if interrupts.count != 1:
            raise
        model.mixture_ = fitted
        return "stability was not finished, since it was interrupted; the fit is whole."
    finally:
        interrupts.dispensable = False
    return ""


def _judge(outcome: Outcome, caught: list[warnings.WarningMessage]) -> None:
    """Set the exit code and the warnings of a fit."""
    mixture = outcome.mixture
    cut_short = mixture.stopped in INTERRUPTED
    if cut_short:
        outcome.warnings.append("the search was interrupted; this is the best it had found.")
    elif mixture.found_nothing or mixture.stopped in LIMITS:
        outcome.code = Code.INCOMPLETE
    for warning in caught:
        said = cut_short and issubclass(warning.category, ConvergenceWarning)
        if issubclass(warning.category, RegimixWarning) and not said:
            text = in_options(cast("Warning", warning.message))
            if warning.category is RivalWarning:
                text = f"{text} {refit(mixture, outcome.table)}".rstrip()
            outcome.warnings.append(text)
    # Missing standard errors mostly come from a lack of rank, which has its own warning.
    if mixture.inference is not None and not any(w.category is RankWarning for w in caught):
        notes = enumerate(mixture.inference.notes)
        outcome.warnings += [f"regime {j}: {note}." for j, note in notes if note]


def _profile(columns: list[str] | None, outcome: Outcome) -> Profile | None:
    """Say who is in each regime, if that was asked for; of a table in parts by a draw of rows."""
    if columns is None:
        return None
    table, mixture = outcome.table, outcome.mixture
    if columns == ALL and "all" not in table.columns:
        recipe = table.recipe
        used = {recipe.target, recipe.weights, recipe.key, *(c.name for c in recipe.columns)}
        columns = [name for name in table.columns if name not in used]
    if isinstance(table, DataSet):
        return mixture.profile(table.original, columns, sample_weight=table.weights)
    wanted = list(dict.fromkeys([*columns, *table.gating]))
    rows, frame = table.some_rows(PROFILE_ROWS, mixture.seed, wanted)
    gating = frame.select(table.gating) if table.gating else None
    labels = mixture.assign(rows.X, rows.y, gate_shares(mixture, rows.X, gating))
    weights = None if table.recipe.weights is None else rows.weights
    found = mixture.profile(frame, columns, labels=labels, sample_weight=weights)
    drawn = (rows.n_rows, mixture.n_rows) if rows.n_rows < mixture.n_rows else None
    return replace(found, drawn=drawn)


def _write_model(path: Path, outcome: Outcome) -> None:
    # Labels of very many rows do not belong into a model file.
    labels = isinstance(outcome.table, DataSet)
    save(outcome.mixture, path, recipe=outcome.table.recipe.to_json(), labels=labels)


def _without_password(command: tuple[str, ...], source: str) -> list[str]:
    """Replace the address of a server by that of the table, which has no password."""
    server = source.removeprefix("the database ")
    words = [server if is_address(word) and is_address(server) else word for word in command]
    return [without_secrets(word) for word in words]
