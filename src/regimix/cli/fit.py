"""``regimix fit``: from a table to its regimes; and ``regimix demo``, the same on bundled data."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from regimix.cli import options
from regimix.cli.console import READING, Aborted, Bar, Code, CommandError, Voice, progress_bar
from regimix.cli.options import (
    count_or_auto,
    in_options,
    names,
    of_output,
    of_search,
    of_table,
    real,
    share_or_auto,
    whole,
)
from regimix.cli.place import CHECKPOINT, FOLDER, MODEL, REPORT, TABLE, Place, check_outputs, tidied
from regimix.errors import (
    ConvergenceWarning,
    RankWarning,
    RegimixWarning,
    RivalWarning,
    StopReason,
    UnknownColumnError,
)

if TYPE_CHECKING:
    from regimix.cli.show import FittedRows
    from regimix.estimators.mixture import MixedLinearRegression
    from regimix.result.mixture import Mixture
    from regimix.result.profile import Profile
    from regimix.tables import DataSet, ParquetTable

# Reasons to stop that leave the search unfinished.
LIMITS = (StopReason.MAX_STARTS, StopReason.TIME_LIMIT)
# Rows of a table in parts that a profile compares: a difference that matters shows among them.
PROFILE_ROWS = 100_000
# What --profile says for every column that is not used.
ALL = ["all"]
INTERRUPTED = (StopReason.CALLBACK, StopReason.INTERRUPTED)


def fit(
    context: typer.Context,
    data: options.Data,
    target: Annotated[str, of_table("COLUMN", "The column to explain.", "--target", "-y")],
    features: Annotated[
        str | None,
        of_table(
            "A,B,...",
            "The columns that explain it; a comma in a name is doubled.",
            "--features",
            "-x",
            show_default="all that can be used",
        ),
    ] = None,
    drop: Annotated[str | None, of_table("A,B,...", "Columns to leave out.")] = None,
    weights: Annotated[
        str | None, of_table("COLUMN", "How often, or how much, each row counts.")
    ] = None,
    key: options.Key = None,
    log: Annotated[bool, of_table("", "Explain the logarithm of the target.", "--log")] = False,
    power: Annotated[
        float | None,
        of_table("P", "Explain a power of the target, such as 0.5; 0: its logarithm.", parser=real),
    ] = None,
    missing: options.Missing = "drop",
    rows: options.Rows = None,
    query: options.Query = None,
    encoding: options.Encoding = None,
    engine: options.Engine = "auto",
    scheduler: options.Scheduler = None,
    workers: options.Workers = None,
    memory: options.Memory = None,
    components: Annotated[
        str, of_search("N|auto", "How many regimes.", "--components", "-m", parser=count_or_auto)
    ] = "auto",
    outliers: Annotated[
        str,
        of_search(
            "SHARE|auto",
            "Share of the rows that belong to no regime; 0 allows no outliers.",
            parser=share_or_auto,
        ),
    ] = "auto",
    noise: Annotated[
        str,
        of_search(("auto", "normal", "student"), "Law of the noise; Student's has heavier tails."),
    ] = "auto",
    search: Annotated[
        str,
        of_search(
            ("auto", "joint", "partition", "net"),
            "Every source of proposals, the joint one alone, a partition of all rows by least "
            "squares, or the paper's Algorithm 2.",
        ),
    ] = "auto",
    no_intercept: Annotated[
        bool, of_search("", "Let every regime pass through the origin.", "--no-intercept")
    ] = False,
    gating: Annotated[
        str | None,
        of_search(
            ("logistic", "trees"),
            "Learn which regime a row follows from its columns; predict then uses it.",
            "--gating",
        ),
    ] = None,
    gating_columns: Annotated[
        str | None,
        of_search(
            "A,B,...",
            "The columns that --gating learns from, text included; they are features only if "
            "--features names them too.",
            show_default="the features",
        ),
    ] = None,
    time_limit: Annotated[
        float | None, of_search("SECONDS", "Stop the search with the best so far.", parser=real)
    ] = None,
    jobs: Annotated[
        int,
        of_search(
            "N",
            "Processors to use, -1: all; the answer is the same.",
            "--jobs",
            "-j",
            parser=whole(),
        ),
    ] = 1,
    stability: Annotated[
        int | None,
        of_search(
            "N",
            "Search N resamples of the rows too; a regime that comes back in less than 60 % of "
            "them is called doubtful.",
            parser=whole(1),
        ),
    ] = None,
    profile: Annotated[
        str | None,
        of_search(
            "A,B,...",
            "Say who is in each regime by these columns, which are then no features unless "
            "--features names them; all: by every column that is not used.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        of_search(
            "FILE", "Write down where a long search is; a fit that was cut off goes on from there."
        ),
    ] = None,
    seed: Annotated[
        int, of_search("N", "The same seed gives the same answer.", parser=whole(0))
    ] = 0,
    model: Annotated[
        Path | None, of_output("FILE.regimix", "Write the model, for predict and report.")
    ] = None,
    labels: Annotated[
        str | None,
        of_output(
            "FILE",
            "Write the regime of each row: .csv, .tsv, .parquet, ...; or a folder of Parquet "
            "files, part by part.",
        ),
    ] = None,
    report: Annotated[
        Path | None, of_output("FILE.html", "Write a report, one page that needs no network.")
    ] = None,
    with_columns: options.WithColumns = None,
    terms: Annotated[int, of_output("N", "Most coefficients to print.", parser=whole(0))] = 10,
    show_outliers: Annotated[int, of_output("N", "Most outliers to print.", parser=whole(0))] = 5,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the regimes of a table: how many, the equation of each, and the outliers."""
    if jobs == 0:
        raise CommandError("--jobs must be a whole number from 1, or -1 for all; got 0.")
    if time_limit is not None and not time_limit > 0:
        raise CommandError(f"--time-limit must be above 0 seconds; got {time_limit:g}.")
    if log and power is not None:
        raise CommandError("--log is --power 0; leave one of --log and --power out.")
    if gating_columns is not None and gating is None:
        raise CommandError(
            "--gating-columns says what a gating learns from, and there is none: add --gating "
            "logistic or --gating trees."
        )
    place = Place(engine, scheduler, workers, memory).settled(
        data, ("--labels", labels), rows=rows, query=query, encoding=encoding
    )
    if stability is not None and not place.in_memory:
        raise CommandError(
            "--stability searches resamples of rows in memory, and this table is read part by part "
            f"(--engine {place.engine}); leave it out, or use --engine memory, with --rows N for a "
            "sample."
        )
    profiled = names(profile)
    labels = None if labels is None else tidied(labels)
    settings = {
        "n_components": components,
        "outliers": outliers,
        "noise": noise,
        "search": search,
        "fit_intercept": not no_intercept,
        "gating": gating,
        "time_limit": time_limit,
        "n_jobs": jobs,
        "random_state": seed,
        "checkpoint": checkpoint,
        # What is shown of rows that are not in memory is what the model holds of them.
        "keep_rows": not place.in_memory,
    }
    check_outputs(
        [
            ("--model", model, MODEL),
            ("--labels", labels, TABLE if place.in_memory else FOLDER),
            ("--report", report, REPORT),
            ("--checkpoint", checkpoint, CHECKPOINT),
        ],
        sources=[data],
    )
    read = partial(
        _read,
        data,
        place,
        {"rows": rows, "seed": seed, "query": query, "encoding": encoding or "utf-8"},
        target=target,
        features=names(features),
        drop=names(drop) or (),
        profiled=profiled,
        weights=weights,
        key=key,
        power=0.0 if log else 1.0 if power is None else power,
        gating=names(gating_columns) or (),
        missing=missing,
    )
    command = ("regimix", *context.obj) if context.obj else ()
    wanted = Wanted(model, labels, report, stability, command, terms, show_outliers, as_json)
    wanted = replace(wanted, profiled=profiled, columns=options.carried(with_columns, place))
    voice = Voice(quiet=quiet, machine=as_json)
    raise typer.Exit(_fit_and_print(read, settings, wanted, voice, place))


def _read(
    source: str,
    place: Place,
    whole: dict[str, Any],
    *,
    profiled: list[str] | None = None,
    **how: Any,
) -> DataSet | ParquetTable:
    # polars is loaded when a table is read, not when help is asked for.
    from regimix import tables
    from regimix.data.recipe import check_column

    # What a profile is to compare must not have made the regimes.
    kept = {how["target"], how["weights"], how["key"]}
    aside = [] if how["features"] or profiled == ALL else profiled or []
    how["drop"] = [*how["drop"], *(name for name in aside if name not in kept)]
    try:
        data: DataSet | ParquetTable
        if place.in_memory:
            data = tables.read(source, **how, **whole)
        else:
            data = tables.scan_parquet(source, **how, **place.scanning())
    except UnknownColumnError as error:
        # The lack of a doubled comma may have made a name unknown.
        meant = [name for name in error.close if "," in name]
        profiled_here = any(repr(name) in str(error) for name in profiled or ())
        if error.role == "to drop" and profiled_here:
            raise CommandError(str(error).replace("(to drop)", "(--profile)")) from error
        if not meant or error.role not in ("a feature", "to drop"):
            raise
        doubled = meant[0].replace(",", ",,")
        advice = f"Double the comma that is part of a name: {doubled}"
        raise CommandError(f"{in_options(error)} {advice}") from error
    if isinstance(data, tables.DataSet):
        _check_weights(data)
    if profiled is not None and profiled != ALL:
        for name in profiled:
            check_column(_columns(data) or [name], name, data.source, "--profile")
    return data


def _columns(table: DataSet | ParquetTable) -> list[str]:
    """Name all columns of a table, used or not; none if they are not known any more."""
    from regimix.tables import ParquetTable

    if isinstance(table, ParquetTable):
        return table.columns
    return [] if table.original is None else list(table.original.columns)


def _check_weights(data: DataSet) -> None:
    """Refuse negative weights in the words of the table: its column, its rows."""
    if data.weights is None or not (data.weights < 0).any():
        return
    row = int((data.weights < 0).argmax())
    raise CommandError(
        f"the column {data.recipe.weights!r} of --weights is negative in {data.key_name} "
        f"{data.keys[row]} ({data.weights[row]:g}); weights are zero (row absent) or positive."
    )


def demo(
    report: Annotated[
        Path, options.of_command("FILE.html", "Where the report goes.", "--report", "-o")
    ] = Path("regimix-demo.html"),
) -> None:
    """Find the regimes of bundled data, and write a report on them."""
    check_outputs([("--report", report, REPORT)])
    voice = Voice()
    voice.answer(
        "A musician hears tones with stretched overtones and tunes the octave above, in 150 "
        "trials. Does the ear stay with the octave, or follow the overtones? Nothing but the two "
        "numbers of each trial is given to the fit."
    )
    voice.answer()
    voice.answer(f"$ regimix fit tone.csv --target tuned --report {report}", style="dim")
    voice.answer()
    command = ("regimix", "demo", "--report", str(report))
    wanted = Wanted(report=report, command=command, name_files=False)
    code = _fit_and_print(_tone, {"random_state": 0}, wanted, voice, Place("memory"))
    voice.answer()
    voice.answer("One regime is the octave: tuned = 2. The other one follows the overtones:")
    voice.answer("tuned = stretchratio. The report shows both; open it in a browser:")
    voice.answer(str(report.resolve()), whole=True)
    raise typer.Exit(code)


def _tone() -> DataSet:
    from importlib.resources import as_file, files

    from regimix import tables

    with as_file(files("regimix.datasets").joinpath("tone.csv")) as path:
        return replace(tables.read(path, target="tuned"), source="tone.csv")


# --- a fit with everything around it --------------------------------------------------------------


@dataclass(frozen=True)
class Wanted:
    """What is to be written, tried (None: not asked for) and printed, and the command for it."""

    model: Path | None = None
    labels: str | None = None
    report: Path | None = None
    resamples: int | None = None  # to be searched, for stability
    command: tuple[str, ...] = ()
    most_terms: int = 10
    most_outliers: int = 5
    as_json: bool = False
    name_files: bool = True
    profiled: list[str] | None = None  # columns to be compared between the regimes
    columns: list[str] | str = field(default_factory=list)  # of the table, beside the labels


@dataclass
class Outcome:
    """What a fit came to, of which table, and what was written."""

    mixture: Mixture
    labels: Any
    table: DataSet | ParquetTable
    rows: FittedRows
    warnings: list[str] = field(default_factory=list)
    code: Code = Code.DONE
    files: dict[str, str] = field(default_factory=dict)  # by what they are
    failure: Exception | None = None  # why one was not written
    profile: Profile | None = None


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
        from regimix.search.settings import answers_interrupts

        self.count += 1
        if not self._begun and self.count == 1 and isinstance(sys.exception(), KeyboardInterrupt):
            # polars raises one of its own for the same Ctrl-C, and then Python hears of it too: a
            # second one would keep the bar from being taken away.
            return
        if self.count > 1 or not self._begun or self.dispensable or answers_interrupts():
            raise KeyboardInterrupt

    def look(self, *, searching: bool = True) -> bool:
        """Take note that the search is at work; say whether it should end."""
        self._begun = self._begun or searching
        return self.count > 0


def _fit_and_print(
    read: Callable[[], DataSet | ParquetTable],
    settings: dict[str, Any],
    wanted: Wanted,
    voice: Voice,
    place: Place,
) -> Code:
    """Read a table, fit it, write the files that were asked for, and print what was found."""
    with Interrupts() as interrupts:
        with progress_bar(voice, settings.get("time_limit"), lines=not place.in_memory) as bar:
            bar.stage("starting workers" if place.on_cluster else "reading")
            with place.opened(voice):
                table = read()
                _check_labels(wanted, table)
                bar.stage("first look")
                outcome = _fit(table, settings, wanted.resamples, interrupts, bar)
                if outcome.mixture.stopped in INTERRUPTED and outcome.mixture.found_nothing:
                    raise Aborted("interrupted before a regime was found; nothing was written.")
                outcome.profile = _profile(wanted.profiled, outcome)
                bar.stage("writing")
                _write(wanted, outcome, bar)
        outcome.code = Code.INTERRUPTED if interrupts.count else outcome.code
    _print(outcome, wanted, voice)
    if outcome.failure is not None:
        raise outcome.failure
    return outcome.code


def _profile(columns: list[str] | None, outcome: Outcome) -> Profile | None:
    """Say who is in each regime, if that was asked for; of a table in parts by a draw of rows."""
    from regimix.tables import DataSet
    from regimix.tables.write import gate_shares

    table, mixture = outcome.table, outcome.mixture
    there = [] if columns is None else _columns(table)
    if columns is None or not there:
        return None
    if columns == ALL and "all" not in there:
        recipe = table.recipe
        used = {recipe.target, recipe.weights, recipe.key, *(c.name for c in recipe.columns)}
        columns = [name for name in there if name not in used]
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


def _check_labels(wanted: Wanted, table: DataSet | ParquetTable) -> None:
    """Refuse a folder of labels before the fit, not after it."""
    from regimix.data.recipe import check_column
    from regimix.tables import ParquetTable
    from regimix.tables.write import check_destination

    if wanted.labels is not None and isinstance(table, ParquetTable):
        check_destination(wanted.labels, table)
    if not isinstance(table, ParquetTable) and table.original is not None:
        for name in wanted.columns if isinstance(wanted.columns, list) else ():
            check_column(table.original.columns, name, table.source, "to be written")


def _fit(
    table: DataSet | ParquetTable,
    settings: dict[str, Any],
    resamples: int | None,
    interrupts: Interrupts,
    bar: Bar,
) -> Outcome:
    from regimix.cli.show import FittedRows
    from regimix.estimators.mixture import MixedLinearRegression
    from regimix.tables import DataSet

    def callback(step: Any) -> bool:
        bar.step(step)
        return interrupts.look(searching=step.stage != READING)

    # The table is made of numbers already.
    model = MixedLinearRegression(**settings, callback=callback, encode=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if isinstance(table, DataSet):
            model.fit(table.frame(), table.target(), table.weights, table.gating)
        else:
            model.fit(table)
    unfinished = ""
    if resamples is not None and isinstance(table, DataSet):
        unfinished = _search_resamples(model, table, resamples, interrupts, bar)
    # A model that is loaded in Python reads data frames as this table was read.
    mixture = replace(model.mixture_, encoding=table.recipe, notes=table.notes)
    rows = FittedRows.of(mixture, table)
    if mixture.gate is not None:
        rows = replace(rows, notes=(*rows.notes, mixture.gate.describe))
    outcome = _with_warnings(Outcome(mixture, model.labels_, table, rows), caught)
    outcome.warnings += [unfinished] if unfinished else []
    return outcome


def _search_resamples(
    model: MixedLinearRegression, table: DataSet, resamples: int, interrupts: Interrupts, bar: Bar
) -> str:
    """See which regimes come back from resampled rows; say so if that was not finished."""
    if interrupts.look():
        return "stability was not tried, since the search was interrupted."
    fitted = model.mixture_

    def progress(done: int, total: int) -> None:
        bar.parts(done, total, "resample")
        # The search of a resample has answered the interrupt with the best so far.
        if interrupts.count:
            raise KeyboardInterrupt

    bar.stage("searching resamples")
    rows = table.frame(), table.target()
    interrupts.dispensable = True
    try:
        seed, jobs = model.random_state, model.n_jobs
        model.stability(*rows, resamples, seed, table.weights, jobs, progress)
    except (Exception, KeyboardInterrupt):
        # Ctrl-C reaches worker processes too, whose end may be an error of another kind.
        if interrupts.count != 1:
            raise
        model.mixture_ = fitted
        return "stability was not finished, since it was interrupted; the fit is whole."
    finally:
        interrupts.dispensable = False
    return ""


def _with_warnings(outcome: Outcome, caught: list[warnings.WarningMessage]) -> Outcome:
    """Say how a fit ended, and what of it must be read."""
    from regimix.cli.show import refit

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
    # A lack of rank, the usual reason for missing errors, has a warning of its own.
    if mixture.inference is not None and not any(w.category is RankWarning for w in caught):
        notes = enumerate(mixture.inference.notes)
        outcome.warnings += [f"regime {j}: {note}." for j, note in notes if note]
    return outcome


def _write(wanted: Wanted, outcome: Outcome, bar: Bar) -> None:
    """Write what was asked for, each file whole or not at all.

    A file that cannot be written keeps neither the others nor the answer from the user.
    """
    jobs: tuple[tuple[str, Any, Callable[[Any, Outcome], None]], ...] = (
        ("model", wanted.model, _write_model),
        ("labels", wanted.labels, partial(_write_labels, bar=bar, columns=wanted.columns)),
        ("report", wanted.report, partial(_write_report, command=wanted.command)),
    )
    for what, path, write in jobs:
        if path is None:
            continue
        try:
            write(path, outcome)
        except Exception as error:
            outcome.failure = outcome.failure or error
        else:
            outcome.files[what] = str(path)


def _write_model(path: Path, outcome: Outcome) -> None:
    from regimix.store import save
    from regimix.tables import DataSet

    # A label for each of very many rows is not part of a model.
    labels = isinstance(outcome.table, DataSet)
    save(outcome.mixture, path, recipe=outcome.table.recipe.to_json(), labels=labels)


def _write_labels(path: str, outcome: Outcome, *, bar: Bar, columns: list[str] | str) -> None:
    from regimix.tables import DataSet, write_label_parts, write_labels

    table, mixture, labels = outcome.table, outcome.mixture, outcome.labels
    if isinstance(table, DataSet):
        write_labels(path, table, mixture, labels=labels, columns=columns)
    else:
        bar.stage("writing labels")
        write_label_parts(path, table, mixture, labels=labels, watch=bar.parts)
    if table.recipe.note:
        outcome.rows = replace(outcome.rows, notes=(*outcome.rows.notes, table.recipe.note))


def _write_report(path: Path, outcome: Outcome, *, command: tuple[str, ...]) -> None:
    from regimix import report
    from regimix.tables import DataSet
    from regimix.tables.write import gate_shares

    table, mixture = outcome.table, outcome.mixture
    again = shlex.join(_without_password(command, table.source)) or None
    if isinstance(table, DataSet):
        shares = gate_shares(mixture, table.X, table.gating)
        known = {"keys": table.keys, "command": again, "shares": shares, "profile": outcome.profile}
        report.write(path, mixture, table.X, table.y, **known)
    else:
        numbers = range(1, mixture.n_rows + 1)
        report.write(path, mixture, keys=numbers, command=again, profile=outcome.profile)


def _without_password(command: tuple[str, ...], source: str) -> list[str]:
    """Write the address of a server as the table does, without a password."""
    from regimix.errors import without_secrets
    from regimix.paths import is_address

    server = source.removeprefix("the database ")
    words = [server if is_address(word) and is_address(server) else word for word in command]
    return [without_secrets(word) for word in words]


def _print(outcome: Outcome, wanted: Wanted, voice: Voice) -> None:
    """Print what was found, for programs if they are to read it, and for people."""
    from regimix.cli.show import print_mixture, print_profile, summary

    mixture, table, rows = outcome.mixture, outcome.table, outcome.rows
    if wanted.as_json:
        said: dict[str, Any] = {"warnings": outcome.warnings, "files": outcome.files}
        said["profile"] = outcome.profile
        plain = summary(mixture, table, rows, **said, exit_code=int(outcome.code))
        sys.stdout.write(json.dumps(plain, indent=1, allow_nan=False) + "\n")
        sys.stdout.flush()
    for note in rows.notes:
        voice.note(note)
    for warning in outcome.warnings:
        voice.warn(warning)
    if (rows.notes or outcome.warnings) and voice.err.is_terminal:
        voice.note()
    if not voice.quiet:
        print_mixture(mixture, table, rows, wanted.most_terms, wanted.most_outliers, voice)
        if outcome.profile is not None:
            print_profile(outcome.profile, voice)
    if wanted.name_files:
        for what, path in outcome.files.items():
            voice.note(f"Wrote the {what}: {path}", whole=True)
