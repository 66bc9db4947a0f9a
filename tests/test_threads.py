"""Threads: never more than BLAS was allowed, and the same answer for any number of them."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from regimix import MixedLinearRegression, TrimmedRegressor, tables, threads
from regimix.data.problem import Problem
from regimix.datasets import load_tone
from regimix.engines import memory
from regimix.engines.memory import MemoryEngine
from regimix.model.blocks import Law, mixture_sums
from regimix.result import mixture as mixture_module
from tests.patience import ENOUGH


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def allow(monkeypatch, count):
    """Let so many threads work, whatever the machine has."""
    monkeypatch.setattr(threads, "_ALLOWED", type("Fixed", (), {"get": lambda self: count})())


def test_items_are_worked_on_in_order_and_side_by_side(monkeypatch):
    allow(monkeypatch, 3)
    used = set()
    together = threading.Barrier(3, timeout=ENOUGH)

    def work(item):
        used.add(threading.get_ident())
        if item < 3:
            together.wait()
        return item * item

    assert list(threads.in_threads(work, range(20))) == [i * i for i in range(20)]
    assert len(used) == 3


def test_blas_has_one_thread_meanwhile_and_its_own_again_after():
    before = blas_threads()
    with threads.fitting_threads(50):
        assert blas_threads() == {1}
        with threads.fitting_threads(50):
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_wide_tables_leave_threads_to_blas():
    before = blas_threads()
    with threads.fitting_threads(threads.WIDE_TABLE):
        assert blas_threads() == before
        assert threads._ALLOWED.get() == 1


def test_whoever_limits_blas_limits_us():
    with threadpool_limits(1, "blas"), threads.fitting_threads(50):
        assert threads._ALLOWED.get() == 1


def test_sums_are_the_same_to_the_last_bit_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(memory, "BLOCK_ROWS", 64)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 3))
    problem = Problem.from_arrays(X, X @ [1.0, 2.0, 3.0] + rng.standard_normal(1000))
    engine = MemoryEngine(problem)
    law = Law(rng.standard_normal((2, 4)), np.ones(2), np.full(2, 0.4), -3.0)
    found = []
    for count in (1, 2, 5):
        allow(monkeypatch, count)
        sums = mixture_sums(engine, law, with_doubt=True)
        rows = np.arange(0, 1000, 3)
        plain = engine.sums(rows, engine.residuals_of(rows, law.thetas[0]))
        block = engine.residual_block(law.thetas)
        found.append((sums.sums[0].gram, sums.doubt, plain.gram, block, engine.draw(50, 7).y))
        engine = MemoryEngine(problem)
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


OVERLAPPING = """
import threading
import numpy
from threadpoolctl import threadpool_limits
from tests.test_threads import blas_threads
from regimix import MixedLinearRegression, TrimmedRegressor, threads

before = blas_threads()
inside, over = threading.Event(), threading.Event()

def other():
    with threads.fitting_threads(50):
        inside.set()
        over.wait()

worker = threading.Thread(target=other)
with threads.fitting_threads(50):
    worker.start()
    inside.wait()
assert blas_threads() == {1}, "someone still needs it"
over.set()
worker.join()
assert blas_threads() == before
# Whoever limits BLAS next is heard.
with threadpool_limits(1, "blas"):
    assert blas_threads() == {1}
assert blas_threads() == before
"""


def test_fits_that_overlap_in_time_give_blas_its_threads_back():
    """In a process whose BLAS has two threads: the tests themselves may run with one."""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    root = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-c", OVERLAPPING], check=True, cwd=root, env=environment)


def interrupted(at):
    """Hold the limit, with a Ctrl-C before the given line of the module; say if it was reached."""
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        if frame.f_code.co_filename != threads.__file__:
            return None
        lines += event == "line"
        if event == "line" and lines == at + 1:
            raise KeyboardInterrupt
        return trace

    try:
        sys.settrace(trace)
        with threads.fitting_threads(50):
            pass
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return lines > at


def test_an_interrupt_anywhere_gives_blas_its_threads_back():
    with threadpool_limits(2, "blas"):
        before, at = blas_threads(), 0
        while interrupted(at):
            assert blas_threads() == before
            assert not threads._blas.users
            at += 1
    assert at > 15  # many lines were tried


@pytest.mark.parametrize("estimator", [MixedLinearRegression, TrimmedRegressor])
def test_every_fit_holds_blas_to_one_thread(estimator):
    """Two BLAS threads for small products wait for each other, on a busy machine for seconds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    held = []

    def look(_):
        held.append(bool(threads._blas.users))

    estimator(random_state=0, callback=look).fit(X, X[:, 0] + 0.1 * rng.standard_normal(300))
    assert held
    assert all(held)
    assert not threads._blas.users


def test_labels_are_written_with_one_thread_of_blas_and_several_of_ours(tmp_path, monkeypatch):
    data = load_tone()
    frame = {"x": data.X[:, 0], "y": data.y}
    table = tables.read(pl.DataFrame(frame), target="y")
    mixture = MixedLinearRegression(2, random_state=0).fit(table.X, table.y).mixture_
    seen = []

    def watched(work, items):
        seen.append((blas_threads(), threads._ALLOWED.get()))
        return map(work, items)

    monkeypatch.setattr(mixture_module, "in_threads", watched)
    with threadpool_limits(2, "blas"):
        tables.write_labels(tmp_path / "l.csv", table, mixture)
    assert seen == [({1}, 2)]
