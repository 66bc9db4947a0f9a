"""Threads: of BLAS for wide tables, of our own over blocks of rows for all others.

Rows are read in chunks that fit the cache, so a product is as large as the table is wide, however
many rows there are. Handing a small product to several threads costs more than it saves, and far
more on a machine that is busy with something else: they wait for each other at full speed. Blocks
of many rows are worth a thread each.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

# Columns from which the products of one chunk are worth more than one thread.
WIDE_TABLE = 256

S = TypeVar("S")
T = TypeVar("T")

# Blocks of rows that may be worked on side by side.
_ALLOWED: ContextVar[int] = ContextVar("allowed_threads", default=1)


# Limits of BLAS are those of the whole process: they are held as long as somebody needs them.
_blas = SimpleNamespace(lock=threading.RLock(), users=set(), threads=1, libraries=None, before=[])


@contextmanager
def fitting_threads(n_columns: int) -> Iterator[None]:
    """Keep BLAS to one thread while a table that is not wide is worked on.

    Our own threads may then be as many as BLAS was allowed: a limit by OMP_NUM_THREADS or by
    threadpoolctl limits them too. Fits in several threads share them.
    """
    if n_columns >= WIDE_TABLE:
        yield
        return
    user, token = object(), None
    # An interrupt may arrive anywhere, also where the limit is given back: it is done twice.
    try:
        try:
            token = _ALLOWED.set(_hold(user))
            yield
        finally:
            _release(user)
    finally:
        _release(user)
        if token is not None:
            _ALLOWED.reset(token)


def _hold(user: object) -> int:
    """Limit BLAS to one thread; return this user's share of those that it had."""
    with _blas.lock:
        if not _blas.users:
            # The libraries that are loaded stay the same: they are looked for once.
            if _blas.libraries is None:
                blas = ThreadpoolController().select(user_api="blas")
                _blas.libraries = blas.lib_controllers
            _blas.before = [library.get_num_threads() for library in _blas.libraries]
            _blas.threads = max(_blas.before, default=1)
        _blas.users.add(user)
        for library in _blas.libraries:
            library.set_num_threads(1)
        return max(1, int(_blas.threads) // len(_blas.users))


def _release(user: object) -> None:
    """Give BLAS its threads back, if nobody else needs the limit."""
    with _blas.lock:
        if _blas.users == {user}:
            _give_back()
        _blas.users.discard(user)


def _give_back() -> None:
    """Give BLAS its threads back, whichever thread took them.

    threadpoolctl (3.8) ignores all threads but the one that set a limit first, as long as that one
    lives; it may have ended its own fit long ago, and must not keep the others out.
    """
    for library, threads in zip(_blas.libraries, _blas.before, strict=True):
        let_go = getattr(library, "clear_controlling_thread", lambda **_: None)
        let_go(force=True)
        library.set_num_threads(threads)
        let_go(force=True)


def _begin_anew() -> None:
    """Forget, in a forked process, the fits of threads that only its parent has."""
    _blas.lock = threading.Lock()
    if _blas.users:
        _blas.users.clear()
        _give_back()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_begin_anew)


def in_threads(function: Callable[[S], T], items: Sequence[S]) -> Iterable[T]:
    """Apply a function to items, some at a time side by side; results come in order."""
    threads = min(_ALLOWED.get(), len(items))
    if threads <= 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        # A few at a time: results that wait to be added take memory.
        for first in range(0, len(items), 2 * threads):
            yield from pool.map(function, items[first : first + 2 * threads])
