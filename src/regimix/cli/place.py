"""Where the work is done (memory, parts, a cluster), and whether files can be written.

Both are decided before the work starts, so that a long fit is not lost.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

from regimix.cli.console import CommandError, Voice
from regimix.errors import ClusterError, DataError, ParameterError, need, reason_of
from regimix.paths import canonical, find_paths, is_address, is_remote, is_within
from regimix.words import choice

# A Parquet file needs up to this many times its size in memory: it is compressed, columns and rows
# are both in memory for a while, and the fit needs memory too.
UNPACKED = 8
# Where Linux says how much memory a container may use.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
UNLIMITED = 2**63

# How names of files end: those of a table as ``tables.write_table`` knows them.
MODEL = (".regimix",)
TABLE = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".parquet", ".arrow")
REPORT = (".htm", ".html")
# A folder of Parquet files.
FOLDER = ("/",)


@dataclass(frozen=True)
class Place:
    """Where the work is to be done, as it was asked for."""

    engine: str = "auto"
    scheduler: str | None = None
    workers: int | None = None
    memory: str | None = None
    whole: dict[str, Any] = field(default_factory=dict)  # options of tables in memory only

    @property
    def in_memory(self) -> bool:
        """Whether the table is read whole."""
        return self.engine in ("auto", "memory")

    @property
    def on_cluster(self) -> bool:
        """Whether workers read it."""
        return self.engine == "dask"

    @property
    def reading(self) -> dict[str, Any]:
        """How the table is to be read, or opened to be read in parts, as far as it was said."""
        if self.in_memory:
            return self.whole
        how: dict[str, Any] = {"on_cluster": self.on_cluster}
        return how if self.memory is None else {**how, "memory": self.memory}

    def settled(self, data: str, output: tuple[str, str | None], **whole: Any) -> Place:
        """Decide what "auto" means for a table; refuse options that do not go together.

        ``output`` is the option for what is said of each row, with its path; ``whole`` are options
        that only tables in memory have, None if they were not given.
        """
        self._check()
        option, path = output
        given = {name: value for name, value in whole.items() if value is not None}
        engine, typed = self.engine, f"--engine {self.engine}"
        if engine == "auto":
            engine, typed = self._automatic(data, path, only_memory=bool(given))
        place = replace(self, engine=engine, whole=given)
        if not place.in_memory:
            _check_parts(typed, data, option, path, given)
        elif path is not None and is_folder(path):
            raise CommandError(
                f"{option} {path} is a folder, which is for Parquet files that are read part by "
                "part; name a file, or use --engine parts."
            )
        return place

    def need_memory(self, what: str, advice: str) -> None:
        """Refuse an option for rows in memory where there are none."""
        if not self.in_memory:
            raise CommandError(
                f"{what} rows in memory, and this table is read part by part (--engine "
                f"{self.engine}); {advice}."
            )

    def _check(self) -> None:
        if self.memory is not None:
            _read_size(self.memory)
        for name, value, engine in (
            ("--scheduler", self.scheduler, "dask"),
            ("--workers", self.workers, "dask"),
            ("--memory", self.memory, "parts"),
        ):
            if value is not None and self.engine not in ("auto", engine):
                raise CommandError(f"{name} is for --engine {engine}, not {self.engine}.")
        if self.scheduler is not None and self.workers is not None:
            raise CommandError(
                "--workers is for a cluster on this machine, not for one that --scheduler names; "
                "leave one of them out."
            )

    def _automatic(self, data: str, path: str | None, *, only_memory: bool) -> tuple[str, str]:
        """Choose an engine; return also the option that stands for it."""
        for option in ("scheduler", "workers"):
            if (value := getattr(self, option)) is not None:
                return "dask", f"--{option} {value}"
        in_parts = is_remote(data) or (path is not None and is_folder(path))
        if only_memory or not is_parquet(data):
            in_parts = False
        elif not in_parts:
            allowed = machine_memory() if self.memory is None else _read_size(self.memory)
            in_parts = UNPACKED * _size(data) > allowed
        engine = "parts" if in_parts else "memory"
        return engine, f"--engine {engine}"

    @contextmanager
    def opened(self, voice: Voice) -> Iterator[None]:
        """Connect to a cluster, or start one, if one was asked for."""
        if not self.on_cluster:
            yield
            return
        need("distributed", "dask", "--engine dask needs")
        from regimix.engines.dask import connected

        with ExitStack() as stack:
            try:
                client: Any = stack.enter_context(connected(self.scheduler, self.workers))
            except (OSError, ValueError, TypeError, RuntimeError) as error:
                raise self._no_cluster(error) from error
            voice.note(f"Dashboard of the cluster: {client.dashboard_link}", whole=True)
            if self.scheduler is None:
                # Workers of our own ignore Ctrl-C, which this process answers, and log nothing.
                ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
                client.register_worker_callbacks(ignore)
                client.register_worker_callbacks(partial(logging.disable, logging.CRITICAL))
                logging.getLogger("distributed").setLevel(logging.CRITICAL)
            yield

    def _no_cluster(self, error: Exception) -> ClusterError:
        if self.scheduler is None:
            # The advice of a ClusterError is for scripts; here its cause is the reason.
            why = error.__cause__ if isinstance(error, ClusterError) else None
            return ClusterError(
                f"a cluster on this machine cannot be started: {reason_of(why or error)}. Free "
                "memory or use fewer --workers, or read the table here with --engine parts."
            )
        return ClusterError(
            f"no scheduler answers at {self.scheduler}: {reason_of(error)}. Check the address, and "
            "that the cluster is up."
        )


def _check_parts(
    typed: str, data: str, option: str, path: str | None, only_memory: Iterable[str]
) -> None:
    if not is_parquet(data):
        if not is_address(data) and data != "-":
            find_paths(Path(data))  # says so where there is no such file
        name = typed.partition(" ")[0]
        raise CommandError(f"{typed} reads Parquet, and {data} is none; leave {name} out.")
    for name in only_memory:
        raise CommandError(f"--{name} is for tables in memory, not for {typed}; leave one out.")
    if path is not None and not is_folder(path):
        raise CommandError(
            f"{option} {path} must be a folder: the table is read part by part ({typed}) and so "
            f"are its rows written, one file for each; name one, such as "
            f"{Path(path).name.partition('.')[0]}/"
        )


def tidied(path: str) -> str:
    """Return a path without a slash at its end; an address stays as it is."""
    return path if is_address(path) else str(Path(path))


def is_folder(path: str) -> bool:
    """Whether a path is meant as a folder: names of files have an extension."""
    return is_remote(path) or path.endswith("/") or Path(path).is_dir() or not Path(path).suffix


def is_parquet(data: str) -> bool:
    """Whether a source can be read part by part."""
    if is_address(data):
        return is_remote(data)
    return Path(data).is_dir() or data.lower().endswith((".parquet", ".pq"))


def machine_memory() -> int:
    """Return the bytes of memory that this machine, or its container, has."""
    limits = [UNLIMITED]
    with suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):
        limits.append(int(CONTAINER_LIMIT.read_text(encoding="ascii")))
    return min(limits)


def _read_size(memory: str) -> int:
    from regimix.tables.parquet import read_size

    return read_size(memory)


def _size(data: str) -> int:
    """Return the bytes of all files of a table; errors are reported when it is read."""
    try:
        return sum(path.stat().st_size for path in find_paths(Path(data), "parquet"))
    except (OSError, DataError, ParameterError):
        return 0


# --- files to write -------------------------------------------------------------------------------


def check_outputs(
    wanted: Iterable[tuple[str, Path | str | None, tuple[str, ...]]], sources: Iterable[str] = ()
) -> None:
    """Refuse files that could not be written in the end, or would harm the sources.

    Wanted are options, with their paths if they were given, and the extensions that are allowed.
    """
    places = [canonical(source) for source in sources]
    # A table may be an absolute pattern, which Path.glob does not support.
    read = [*places, *(canonical(match) for place in places for match in glob(place))]  # noqa: PTH207
    for option, path, extensions in wanted:
        if path is None:
            continue
        # Whether an address can be written to is known when it is written.
        if not is_address(str(path)):
            _check_output(option, Path(path), extensions)
        place = canonical(str(path))
        # A table may be a folder: what is written there would be read as part of it next time.
        if any(is_within(place, source) for source in read):
            raise CommandError(
                f"{option} {path} would overwrite what is read, or become part of it; put it "
                "elsewhere."
            )


def _check_output(option: str, path: Path, extensions: tuple[str, ...]) -> None:
    """Refuse a path that cannot be written, or whose extension says nothing."""
    if extensions == REPORT:
        need("jinja2", "cli", "a report needs")
    if extensions != FOLDER and not path.name.lower().endswith(extensions):
        raise CommandError(f"{option} {path} must end in {choice(extensions)}.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise CommandError(
            f"{option} {path} cannot be written: there is no folder {folder}; create it first."
        )
    if extensions == FOLDER and path.exists() and not path.is_dir():
        raise CommandError(f"{option} {path} is a file; name a folder.")
    if extensions != FOLDER and path.is_dir():
        raise CommandError(f"{option} {path} is a folder; name a file in it.")
    # A file is written under a temporary name and then renamed.
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"{option} {path} cannot be written: {folder} does not allow it.")
