"""Ask a part's question of every table, one after the other or side by side."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from threadpoolctl import threadpool_limits

from benchmarks.real.part import BROKEN, Effort, Row
from benchmarks.real.parts import PARTS
from benchmarks.real.tables import Table


def run(name: str, tables: Sequence[Table], effort: Effort, jobs: int) -> list[Row]:
    """Return the rows of a part in the order of the tables, with progress on the terminal."""
    began, found = time.monotonic(), dict[str, list[Row]]()
    for number, (table, rows) in enumerate(_answers(name, tables, effort, jobs), 1):
        found[table.name] = rows
        passed = time.monotonic() - began
        left = passed / number * (len(tables) - number)
        trouble = "".join(f" BROKE: {row[BROKEN]}" for row in rows if BROKEN in row)
        print(f"  {number}/{len(tables)}, {left:.0f} s left: {table.name}{trouble}", flush=True)
    return [row for table in tables for row in found[table.name]]


def _answers(
    name: str, tables: Sequence[Table], effort: Effort, jobs: int
) -> Iterator[tuple[Table, list[Row]]]:
    if jobs == 1:
        with threadpool_limits(1):
            for table in tables:
                yield table, answer(name, table, effort)
        return
    spawn = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_prepare) as pool:
        futures = {pool.submit(answer, name, table, effort): table for table in tables}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _prepare() -> None:
    threadpool_limits(1)


def answer(name: str, table: Table, effort: Effort) -> list[Row]:
    """Work on one table; a fit that breaks is told in the place of the figures."""
    try:
        return PARTS[name].work(table, effort)
    except Exception as error:
        return [{"table": table.name, BROKEN: repr(error)}]
