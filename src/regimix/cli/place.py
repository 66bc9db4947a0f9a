"""Where the work is done: in memory, part by part, or on a cluster."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from regimix.cli.console import CommandError
from regimix.cli.options import of_place, whole
from regimix.errors import ClusterError, DataError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from regimix.cli.console import Voice

__all__ = ["Engine", "EngineName", "Memory", "Place", "Scheduler", "Workers", "output_of"]

# A file of Parquet needs up to so many times its size in memory: it is packed, its columns and its
# rows are side by side for a while, and the fit needs room too.
UNPACKED = 8
DATABASES = ("sqlite", "postgresql", "postgres")
# Where Linux says how much memory a container may use.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
UNLIMITED = 2**63


class Engine(StrEnum):
    """Where rows live while they are fitted."""

    AUTO = "auto"
    MEMORY = "memory"
    PARTS = "parts"
    DASK = "dask"


EngineName = Annotated[
    str,
    of_place(
        ("auto", "memory", "parts", "dask"),
        "Read the table into memory; read it part by part (Parquet); or let the workers of a "
        "cluster read it. auto: part by part if it is too large for memory.",
        "--engine",
    ),
]
Scheduler = Annotated[
    str | None,
    of_place(
        "ADDRESS",
        "The scheduler of a Dask cluster, such as tcp://host:8786.",
        show_default="a cluster on this machine, for the time of the command",
    ),
]
Workers = Annotated[
    int | None,
    of_place(
        "N",
        "Processes of a cluster on this machine.",
        parser=whole(1),
        show_default="one a processor",
    ),
]
Memory = Annotated[
    str | None,
    of_place(
        "SIZE",
        "Most memory for rows that are read part by part, such as 2GB.",
        show_default="512MB",
    ),
]


@dataclass(frozen=True)
class Place:
    """Where the work is to be done, as it was asked for."""

    engine: Engine = Engine.AUTO
    scheduler: str | None = None
    workers: int | None = None
    memory: str | None = None

    @property
    def in_memory(self) -> bool:
        """Whether the table is read whole."""
        return self.engine in (Engine.AUTO, Engine.MEMORY)

    @property
    def on_cluster(self) -> bool:
        """Whether workers read it."""
        return self.engine is Engine.DASK

    def settled(self, data: str, output: tuple[str, str | None], **whole: Any) -> Place:
        """Decide what "auto" means for a table; refuse options that do not go together.

        Parameters
        ----------
        output : (option, path or None)
            Where what is said of each row goes.
        **whole
            Options that only tables in memory have, None if they were not given.
        """
        self._check()
        engine = self.engine
        option, path = output
        only_memory = next((name for name, value in whole.items() if value is not None), None)
        if engine is Engine.AUTO:
            engine = self._automatic(data, path, only_memory)
        if engine is Engine.MEMORY:
            if path is not None and is_folder(path):
                raise CommandError(
                    f"{option} {path} is a folder, which is for Parquet files that are read part "
                    "by part; name a file, or use --engine parts."
                )
        else:
            _check_parts(self._typed(engine), data, option, path, only_memory)
        return Place(engine, self.scheduler, self.workers, self.memory)

    def _check(self) -> None:
        if self.memory is not None:
            from regimix.tables.parquet import read_size

            read_size(self.memory)
        for name, value, engines in (
            ("--scheduler", self.scheduler, (Engine.AUTO, Engine.DASK)),
            ("--workers", self.workers, (Engine.AUTO, Engine.DASK)),
            ("--memory", self.memory, (Engine.AUTO, Engine.PARTS)),
        ):
            if value is not None and self.engine not in engines:
                raise CommandError(f"{name} is for --engine {engines[1]}, not {self.engine}.")
        if self.scheduler is not None and self.workers is not None:
            raise CommandError(
                "--workers is for a cluster on this machine, not for one that --scheduler names; "
                "leave one of them out."
            )

    def _automatic(self, data: str, path: str | None, only_memory: str | None) -> Engine:
        if self.scheduler is not None or self.workers is not None:
            return Engine.DASK
        if only_memory is not None or not is_parquet(data):
            return Engine.MEMORY
        if is_remote(data) or (path is not None and is_folder(path)):
            return Engine.PARTS
        if self.memory is None:
            allowed = machine_memory()
        else:
            from regimix.tables.parquet import read_size

            allowed = read_size(self.memory)
        return Engine.PARTS if UNPACKED * _size(data) > allowed else Engine.MEMORY

    def _typed(self, engine: Engine) -> str:
        """Return the option that asked for an engine."""
        if self.engine is Engine.AUTO and self.scheduler is not None:
            return f"--scheduler {self.scheduler}"
        if self.engine is Engine.AUTO and self.workers is not None:
            return f"--workers {self.workers}"
        return f"--engine {engine}"

    def scanning(self) -> dict[str, Any]:
        """Return how a table in parts is to be opened."""
        how: dict[str, Any] = {"on_cluster": self.on_cluster}
        return how if self.memory is None else {**how, "memory": self.memory}

    @contextmanager
    def opened(self, voice: Voice) -> Iterator[None]:
        """Connect to a cluster, or start one, if one was asked for."""
        if not self.on_cluster:
            yield
            return
        try:
            from regimix.engines.dask import connected
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                "--engine dask needs Dask, which is not installed: pip install 'regimix[dask]'"
            ) from error
        with ExitStack() as stack:
            try:
                client = stack.enter_context(connected(self.scheduler, self.workers))
            except (OSError, ValueError, TypeError, RuntimeError) as error:
                raise self._no_cluster(error) from error
            voice.note(f"Dashboard of the cluster: {client.dashboard_link}", whole=True)
            if self.scheduler is None:
                _quieten(client)
            yield

    def _no_cluster(self, error: Exception) -> ClusterError:
        if self.scheduler is None:
            # The advice of a ClusterError is for scripts; what it came from is the reason here.
            why = error.__cause__ if isinstance(error, ClusterError) else None
            return ClusterError(
                f"a cluster on this machine cannot be started: {_short(why or error)}. Free memory "
                "or use fewer --workers, or read the table here with --engine parts."
            )
        return ClusterError(
            f"no scheduler answers at {self.scheduler}: {_short(error)}. Check the address, and "
            "that the cluster is up."
        )


def _quieten(client: Any) -> None:
    """Let workers that we started ignore Ctrl-C, which this process answers, and log nothing."""
    client.register_worker_callbacks(partial(signal.signal, signal.SIGINT, signal.SIG_IGN))
    client.register_worker_callbacks(partial(logging.disable, logging.CRITICAL))
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


def _check_parts(
    typed: str, data: str, option: str, path: str | None, only_memory: str | None
) -> None:
    if not is_parquet(data):
        if "://" not in data and data != "-":
            from regimix.tables.paths import find_paths

            find_paths(Path(data))  # says so where there is no such file
        name = typed.partition(" ")[0]
        raise CommandError(f"{typed} reads Parquet, and {data} is none; leave {name} out.")
    if only_memory is not None:
        raise CommandError(
            f"--{only_memory} is for tables in memory, not for {typed}; leave one of them out."
        )
    if path is not None and not is_folder(path):
        raise CommandError(
            f"{option} {path} must be a folder: the table is read part by part ({typed}) and so "
            f"are its rows written, one file for each; name one, such as "
            f"{Path(path).name.partition('.')[0]}/"
        )


def output_of(path: str | None) -> Path | str | None:
    """Return a path as one; an address stays as it is."""
    return Path(path) if path is not None and "://" not in path else path


def is_folder(path: str) -> bool:
    """Whether a path is meant as a folder: what has no ending is none of our files."""
    return is_remote(path) or path.endswith("/") or Path(path).is_dir() or not Path(path).suffix


def is_parquet(data: str) -> bool:
    """Whether a source can be read part by part."""
    if "://" in data:
        return is_remote(data)
    return Path(data).is_dir() or data.lower().endswith((".parquet", ".pq"))


def is_remote(data: str) -> bool:
    """Whether a source is the address of files elsewhere."""
    scheme, separator, _ = data.partition("://")
    return bool(separator) and scheme.lower() not in DATABASES


def machine_memory() -> int:
    """Return the bytes of memory that this machine, or its container, has."""
    limits = [UNLIMITED]
    with suppress(OSError, ValueError, AttributeError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(OSError, ValueError):
        limits.append(int(CONTAINER_LIMIT.read_text(encoding="ascii")))
    return min(limits)


def _size(data: str) -> int:
    """Return the bytes of all files of a table; errors are reported when it is read."""
    from regimix.tables.paths import find_paths

    try:
        return sum(path.stat().st_size for path in find_paths(Path(data), "parquet"))
    except (OSError, DataError, ParameterError):
        return 0


def _short(error: BaseException) -> str:
    return (str(error).strip().partition("\n")[0] or type(error).__name__).rstrip(".")
