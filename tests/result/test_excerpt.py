"""Excerpts: all rows if they are few, a uniform draw otherwise, and never much."""

import pickle

import numpy as np
import pandas as pd
import pytest

from regimix import MixedLinearRegression
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.result import rowlaw as module
from regimix.result.rowlaw import Excerpt

pytestmark = pytest.mark.usefixtures("searched_once")


def table(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + 0.1 * rng.standard_normal(n), rng.integers(-1, 2, n)


def excerpt_of(X, y, labels, weights=None, *, chunk_rows=None, seed=0):
    engine = MemoryEngine(Problem.from_arrays(X, y, weights), chunk_rows)
    return Excerpt.of(engine, lambda block: block.own(labels), seed)


def test_few_rows_are_all_there():
    X, y, labels = table()
    found = excerpt_of(X, y, labels)
    assert found.complete
    assert found.weights is None
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, y)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.numbers, np.arange(200))
    assert not np.shares_memory(found.X, X)


def test_absent_rows_are_left_out_and_weights_kept():
    X, y, labels = table()
    weights = np.arange(200) % 3
    found = excerpt_of(X, y, labels, weights)
    assert found.complete
    np.testing.assert_array_equal(found.numbers, np.flatnonzero(weights))
    np.testing.assert_array_equal(found.weights, weights[weights > 0])


@pytest.fixture
def small(monkeypatch):
    """Fifty rows of three columns fit."""
    monkeypatch.setattr(module, "MOST_NUMBERS", 50 * (3 + module.EXTRA_COLUMNS))


def test_many_rows_are_drawn_with_their_numbers(small):
    X, y, labels = table()
    found = excerpt_of(X, y, labels)
    assert not found.complete
    assert found.X.shape == (50, 3)
    assert (np.diff(found.numbers) > 0).all()
    np.testing.assert_array_equal(found.X, X[found.numbers])
    np.testing.assert_array_equal(found.y, y[found.numbers])
    np.testing.assert_array_equal(found.labels, labels[found.numbers])
    other = excerpt_of(X, y, labels, seed=1)
    assert not np.array_equal(found.numbers, other.numbers)


def test_neither_row_order_nor_chunks_change_the_draw(small):
    X, y, labels = table()
    order = np.random.default_rng(1).permutation(200)
    found = excerpt_of(X, y, labels)
    turned = excerpt_of(X[order], y[order], labels[order], chunk_rows=7)
    assert sorted(order[turned.numbers]) == found.numbers.tolist()


def test_every_row_is_as_likely_as_any_other(small):
    X, y, labels = table()
    weights = np.ones(200)
    weights[:20] = 0
    counts = np.zeros(200)
    for seed in range(300):
        counts[excerpt_of(X, y, labels, weights, seed=seed).numbers] += 1
    assert (counts[:20] == 0).all()
    expected = 300 * 50 / 180
    assert (np.abs(counts[20:] - expected) <= 6 * np.sqrt(expected)).all()


def test_excerpts_are_small_whatever_the_table():
    X, y, labels = table(30_000, 9)
    found = excerpt_of(X.astype(np.float32), y, labels)
    numbers = sum(getattr(found, name).size for name in ("X", "y", "labels", "numbers"))
    assert numbers <= module.MOST_NUMBERS
    assert found.X.dtype == np.float64
    wide = excerpt_of(*table(4, module.MOST_NUMBERS))
    assert wide.X.shape[0] == 1
    assert not wide.complete


def test_a_fit_that_is_asked_to_brings_one_that_travels_with_it():
    X, y, _ = table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert MixedLinearRegression(random_state=0).fit(frame, y).mixture_.excerpt is None
    mixture = MixedLinearRegression(keep_rows=True, random_state=0).fit(frame, y).mixture_
    again = pickle.loads(pickle.dumps(mixture)).excerpt
    np.testing.assert_array_equal(again.X, X)
    np.testing.assert_array_equal(again.labels, mixture.labels)
    np.testing.assert_array_equal(mixture.assign(again.X, again.y), again.labels)
