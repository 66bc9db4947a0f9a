"""The same Parquet dataset fitted by two Dask workers, and read into memory and fitted there.

The cluster is up before the clock starts; reading counts for both. What a pass costs beyond its
arithmetic shows on a table of a few rows with the same number of partitions.
"""

import importlib
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from benchmarks.data import SHARES
from benchmarks.speed.parquet import Dataset, dataset
from benchmarks.speed.race import Contestant, Seconds, duration, medians, race, say, stopwatch
from benchmarks.speed.table import Comparison, Row, Target
from regimix import MixedLinearRegression, metrics
from regimix.errors import RegimixError

COLUMNS, QUICK_COLUMNS = 20, 3
ROWS, QUICK_ROWS = 10_000_000, 40_000
PARTITIONS, QUICK_PARTITIONS = 16, 4
TINY_ROWS = 200  # of each partition of the table whose arithmetic costs nothing
WORKERS = 2
TARGET = Target(2.5, at_least=False)
NEAR = 0.2  # the distance at which the recovery benchmark counts a component as found
DASK, MEMORY = "Dask", "in memory, read with polars"
ENGINE = "regimix.engines.dask"
PASSES = ("fold", "map_rows")  # methods that ask all rows something
NOT_THERE = (AttributeError, ImportError, TypeError, RegimixError)

Fit = Callable[[Dataset, int], MixedLinearRegression]


def run(repeats: int, quick: bool) -> Comparison:
    rows, columns = (QUICK_ROWS, QUICK_COLUMNS) if quick else (ROWS, COLUMNS)
    partitions = QUICK_PARTITIONS if quick else PARTITIONS
    what = f"mixture from Parquet, {rows:,} × {columns}, {WORKERS} Dask workers: cost"
    tiny = dataset(TINY_ROWS * partitions, columns, partitions)
    with local_cluster():
        try:
            with timed_passes() as small:
                on_workers(tiny, 0)
        except NOT_THERE as error:
            say(f"{type(error).__name__}: {error}")
            return missing(what, f"no fit of Dask tables ({type(error).__name__})")
        if not small:
            return missing(what, "Dask tables are collected and fitted in memory")
        data = dataset(rows, columns, partitions)
        faults: dict[str, str] = {}
        seconds = race(
            {
                DASK: contestant(DASK, on_workers, data, faults),
                MEMORY: contestant(MEMORY, in_memory, data, faults),
            },
            repeats,
        )
        # The first fit above was the warm-up.
        with timed_passes() as small:
            on_workers(tiny, 1)
        with timed_passes() as large:
            on_workers(data, 1)
    raw = {"seconds": seconds, "tiny_passes": small, "passes": large, "partitions": partitions}
    return Comparison([row(what, seconds, faults)], remarks(small, large, partitions), raw)


def missing(what: str, reason: str) -> Comparison:
    return Comparison([Row(what, f"missing here: {reason}", MEMORY, "–", None, TARGET)])


@contextmanager
def local_cluster() -> Iterator[None]:
    """Run workers of one thread each, on this machine, and make them the default."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        yield


def on_workers(data: Dataset, seed: int) -> MixedLinearRegression:
    """Fit where the rows are."""
    import dask.dataframe as dd

    frame = dd.read_parquet(data.files)
    return MixedLinearRegression(random_state=seed).fit(frame[data.features], frame["y"])


def in_memory(data: Dataset, seed: int) -> MixedLinearRegression:
    """Read all rows, and fit."""
    import polars as pl

    frame = pl.read_parquet(data.files)
    return MixedLinearRegression(random_state=seed).fit(frame[data.features], frame["y"])


def contestant(name: str, fit: Fit, data: Dataset, faults: dict[str, str]) -> Contestant:
    def timed(number: int) -> float:
        model: list[MixedLinearRegression] = []
        seconds = stopwatch(lambda: model.append(fit(data, number)))
        estimate = metrics.with_intercept(model[0].coef_, model[0].intercept_)
        errors = metrics.match_components(estimate, data.theta).distance
        found = int((errors < NEAR).sum())
        if not found == len(estimate) == len(SHARES):
            faults[name] = (
                f"wrong answer ({name}): {len(estimate)} components, {found} of {len(SHARES)} right"
            )
        return seconds

    return timed


def row(what: str, seconds: Seconds, faults: dict[str, str]) -> Row:
    median = medians(seconds)
    return Row(
        what,
        duration(median[DASK]),
        MEMORY,
        duration(median[MEMORY]),
        median[DASK] / median[MEMORY],
        TARGET,
        fault="; ".join(faults.values()),
    )


@contextmanager
def timed_passes() -> Iterator[list[float]]:
    """Collect the seconds of each pass of the engine that runs on Dask."""
    seconds: list[float] = []

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **options: Any) -> Any:
            began = time.perf_counter()
            answer = method(*args, **options)
            seconds.append(time.perf_counter() - began)
            return answer

        return call

    module = importlib.import_module(ENGINE)
    plain = [
        (kind, name, vars(kind)[name])
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__
        for name in PASSES
        if name in vars(kind)
    ]
    for kind, name, method in plain:
        setattr(kind, name, timed(method))
    try:
        yield seconds
    finally:
        for kind, name, method in plain:
            setattr(kind, name, method)


def remarks(small: list[float], large: list[float], partitions: int) -> list[str]:
    overhead, full = statistics.median(small), statistics.median(large)
    told = (
        f"A pass over the data took {duration(full)} (median of {len(large)}); over a table of "
        f"{TINY_ROWS} rows a partition, also {partitions} partitions, {duration(overhead)} (median "
        f"of {len(small)}): that is the overhead of a round, and "
        f"{len(large) * overhead / sum(large):.0%} of the time of all passes."
    )
    return [told]
