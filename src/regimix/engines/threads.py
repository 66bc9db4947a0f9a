"""BLAS threads: many for large tables, one for small ones.

Handing a product of a few thousand rows to several threads costs more than it saves, and far more
on a machine that is busy with something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from regimix.problem import Problem

__all__ = ["fitting_threads"]

# Numbers in a table from which a pass over it is worth more than one thread.
LARGE_TABLE = 4_000_000


@cache
def _controller() -> ThreadpoolController:
    """Find the BLAS libraries that are loaded; they stay the same."""
    return ThreadpoolController()


@contextmanager
def fitting_threads(problem: Problem) -> Iterator[None]:
    """Keep BLAS to one thread while a small table is worked on."""
    if problem.n_rows * problem.n_columns >= LARGE_TABLE:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
