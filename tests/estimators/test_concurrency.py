"""Fits side by side: in threads, in processes that were forked or spawned, in joblib's workers."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info

from regimix import MixedLinearRegression, threads
from regimix.synth import make_mlrc
from tests.patience import ENOUGH

SEEDS = range(8)


def answer(seed):
    """Fit a table of its own; all numbers of the answer."""
    data = make_mlrc(100, 2, 2, corruption=0.1, noise=0.1, random_state=seed)
    fit = MixedLinearRegression(random_state=seed).fit(data.X, data.y)
    return np.concatenate([fit.coef_.ravel(), fit.intercept_, fit.labels_])


def allowed(_):
    """Say how many threads a fit in this process may have, and how many BLAS has before and in."""
    before = blas_threads()
    with threads.fitting_threads(5):
        return before, threads._ALLOWED.get(), blas_threads()


def blas_threads():
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


@pytest.fixture(scope="module")
def alone():
    return [answer(seed) for seed in SEEDS]


def test_eight_threads_at_once(alone):
    before = blas_threads()
    together = threading.Barrier(8, timeout=ENOUGH)

    def run(seed):
        together.wait()
        return answer(seed)

    with ThreadPoolExecutor(8) as pool:
        np.testing.assert_equal(list(pool.map(run, SEEDS)), alone)
    assert blas_threads() == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(alone, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{method} is not to be had on {os.name}")
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        np.testing.assert_equal(list(pool.map(answer, SEEDS[:4])), alone[:4])


@pytest.mark.slow
def test_workers_of_joblib(alone):
    np.testing.assert_equal(Parallel(2)(delayed(answer)(seed) for seed in SEEDS[:4]), alone[:4])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_in_the_middle_of_a_fit_does_not_know_of_it():
    """The child has none of its parent's threads: it must not wait for them, nor for limits."""
    before = blas_threads()
    with threads.fitting_threads(5), threads._blas.lock:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            found = pool.submit(allowed, None).result(timeout=ENOUGH)
    assert found == (before, before, 1)


def test_fits_share_the_threads(monkeypatch):
    monkeypatch.setattr(threads, "_blas", type(threads._blas)(**vars(threads._blas)))
    seen = []
    with threads.fitting_threads(5):
        whole = threads._ALLOWED.get()
        monkeypatch.setattr(threads._blas, "threads", 8)
        for _ in range(3):
            with threads.fitting_threads(5):
                seen.append(threads._ALLOWED.get())
    assert whole >= 1
    assert seen == [4, 4, 4]
