"""Estimators on tables that are not in memory: read in parts, or on a cluster of their own."""

import pickle
import weakref

import dask
import dask.array as da
import distributed
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from regimix import MixedLinearRegression, TrimmedRegressor
from regimix.engines.dask import current_client
from regimix.engines.parts import PartTable, RawRows
from regimix.errors import (
    ConvergenceWarning,
    DataError,
    OutOfTimeError,
    ParameterError,
    StoppedError,
)
from tests.engines.clusters import MadeRows, made_table

pytestmark = pytest.mark.usefixtures("module_searched_once")

PARTS, PART_ROWS = 3, 500
NAMES = ("age", "height", "weight")


@pytest.fixture(scope="module")
def memory():
    parts = [made_table(part, PART_ROWS) for part in range(PARTS)]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


@pytest.fixture(scope="module")
def in_memory(memory, module_searched_once):
    return MixedLinearRegression(random_state=0).fit(*memory)


def table():
    readers = tuple(MadeRows(part, PART_ROWS) for part in range(PARTS))
    return PartTable(NAMES, "income", readers, ("one", "two", "three"))


def test_a_table_in_parts_makes_the_fit_of_memory(memory, in_memory):
    fit = MixedLinearRegression(random_state=0).fit(table())
    np.testing.assert_allclose(fit.coef_, in_memory.coef_, rtol=1e-9)
    np.testing.assert_array_equal(fit.labels_, in_memory.labels_)
    assert isinstance(fit.labels_, np.ndarray)
    assert fit.n_features_in_ == 3
    assert tuple(fit.feature_names_in_) == NAMES
    assert fit.mixture_.target_name == "income"
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.labels_, fit.labels_)


@pytest.mark.parametrize("parameters", [{}, {"keep": 0.4}, {"solver": "gradient"}], ids=str)
def test_one_component_in_parts_is_that_of_memory(memory, parameters):
    fit = TrimmedRegressor(random_state=0, **parameters).fit(table())
    beside = TrimmedRegressor(random_state=0, **parameters).fit(*memory)
    np.testing.assert_allclose(fit.coef_, beside.coef_, rtol=1e-9)
    np.testing.assert_allclose(fit.objective_path_, beside.objective_path_, rtol=1e-9)
    np.testing.assert_array_equal(fit.inlier_mask_, beside.inlier_mask_)
    assert fit.keep_ == pytest.approx(beside.keep_)
    assert tuple(fit.feature_names_in_) == NAMES


def test_starts_in_the_units_of_the_table(memory, in_memory):
    starts = np.column_stack([in_memory.coef_, in_memory.intercept_])
    fit = MixedLinearRegression(random_state=0, init=starts).fit(table())
    beside = MixedLinearRegression(random_state=0, init=starts).fit(*memory)
    np.testing.assert_allclose(fit.coef_, beside.coef_, rtol=1e-9)
    np.testing.assert_array_equal(fit.labels_, beside.labels_)


def test_a_fit_in_memory_forgets_the_names_of_a_table(memory):
    fit = MixedLinearRegression(random_state=0).fit(table())
    fit.fit(*memory)
    assert not hasattr(fit, "feature_names_in_")


def test_a_table_brings_its_own_response(memory):
    with pytest.raises(DataError, match=r"own response \('income'\)"):
        MixedLinearRegression().fit(table(), memory[1])
    with pytest.raises(DataError, match="weights"):
        TrimmedRegressor().fit(table(), None, np.ones(5))


@pytest.mark.parametrize("gating", ["logistic", "trees", LogisticRegression()])
def test_a_gate_is_learnt_from_a_sample(memory, gating):
    """All rows are in the sample here: the gate is that of the rows in memory."""
    there = MixedLinearRegression(gating=gating, random_state=0).fit(table())
    here = MixedLinearRegression(gating=gating, random_state=0).fit(*memory)
    X = memory[0][:50]
    named = pd.DataFrame(X, columns=there.feature_names_in_)
    close = 0.1 if gating == "trees" else 0.02  # trees are grown from rows in another order
    np.testing.assert_allclose(there.predict_shares(named), here.predict_shares(X), atol=close)


def test_gating_features_need_rows_in_memory(memory):
    with pytest.raises(ParameterError, match=r"scan_parquet\(..., gating=\[...\]\)"):
        MixedLinearRegression(gating="logistic").fit(table(), gating_features=memory[0])


def test_weights_come_with_the_parts(memory):
    weights = 1.0 + np.arange(PARTS * PART_ROWS) % 3
    X, y = memory
    half = len(y) // 2
    readers = (
        lambda: iter([RawRows(X[:half], y[:half], weights[:half])]),
        lambda: iter([RawRows(X[half:], y[half:], weights[half:])]),
    )
    fit = MixedLinearRegression(random_state=0).fit(
        PartTable(NAMES, "income", readers, ("one", "two"))
    )
    beside = MixedLinearRegression(random_state=0).fit(X, y, weights)
    np.testing.assert_allclose(fit.coef_, beside.coef_, rtol=1e-9)
    np.testing.assert_array_equal(fit.labels_, beside.labels_)


def test_the_callback_hears_of_the_reading_and_may_stop_the_search():
    heard = []

    def callback(progress):
        heard.append(progress)
        return progress.stage != "reading"

    with pytest.warns(ConvergenceWarning, match="callback"):
        MixedLinearRegression(random_state=0, callback=callback).fit(table())
    reading = [progress for progress in heard if progress.stage == "reading"]
    assert [progress.parts_done for progress in reading[:PARTS]] == list(range(1, PARTS + 1))
    assert reading[-1].n_parts == PARTS
    assert any(progress.stage != "reading" for progress in heard)


def test_a_callback_that_stops_the_reading_leaves_nothing_to_return():
    with pytest.raises(StoppedError, match="callback"):
        MixedLinearRegression(random_state=0, callback=lambda progress: True).fit(table())


def test_a_time_limit_that_leaves_no_time_to_read():
    with pytest.raises(OutOfTimeError, match="time_limit of 1e-09 seconds"):
        MixedLinearRegression(time_limit=1e-9).fit(table())


def test_a_cluster_is_started_where_there_is_none_and_closed(memory, in_memory, monkeypatch):
    """Labels can be computed after it is gone: they are made from the user's own data."""
    # Clients of other tests in this process are none of ours, nor is the scheduler they set.
    monkeypatch.setattr(distributed.client, "_global_clients", weakref.WeakValueDictionary())
    monkeypatch.setitem(dask.config.config, "scheduler", None)
    assert current_client() is None
    X = da.from_array(memory[0], chunks=(400, 3))
    fit = MixedLinearRegression(random_state=0).fit(X, da.from_array(memory[1], chunks=500))
    assert current_client() is None
    np.testing.assert_allclose(fit.coef_, in_memory.coef_, rtol=1e-9)
    assert isinstance(fit.labels_, da.Array)
    assert fit.labels_.chunks == (X.chunks[0],)
    np.testing.assert_array_equal(fit.labels_.compute(), in_memory.labels_)
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.labels_.compute(), in_memory.labels_)
