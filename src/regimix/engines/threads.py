"""BLAS threads: many for wide tables, one for all others.

Rows are read in chunks that fit the cache, so a product is as large as the table is wide, however
many rows there are. Handing a small product to several threads costs more than it saves, and far
more on a machine that is busy with something else: they wait for each other at full speed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from regimix.problem import Problem

__all__ = ["fitting_threads"]

# Columns from which the products of one chunk are worth more than one thread.
WIDE_TABLE = 256


@cache
def _controller() -> ThreadpoolController:
    """Find the BLAS libraries that are loaded; they stay the same."""
    return ThreadpoolController()


@contextmanager
def fitting_threads(problem: Problem) -> Iterator[None]:
    """Keep BLAS to one thread while a table that is not wide is worked on."""
    if problem.n_columns >= WIDE_TABLE:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
