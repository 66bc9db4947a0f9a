"""Dask arrays and data frames on a real cluster: the same answers as in memory."""

import gc
import pickle
import re

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.sizeof import sizeof
from distributed import wait

from regimix import MixedLinearRegression, TrimmedRegressor, load, save
from regimix.data.problem import Problem
from regimix.engines.dask import DaskParts, dask_rows
from regimix.engines.memory import MemoryEngine
from regimix.engines.partition import open_parts
from regimix.engines.parts import RawRows
from regimix.engines.selection import residual_sizes
from regimix.errors import DataError, DataKindError
from regimix.model.blocks import Law, mixture_sums
from tests.engines.clusters import made_table, small_cluster
from tests.patience import comes_true

pytestmark = pytest.mark.usefixtures("module_searched_once")

N_ROWS = 1_500
NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def client():
    with small_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def table():
    return made_table(0, N_ROWS)


@pytest.fixture(scope="module")
def frame(table):
    X, y = table
    return pd.DataFrame(X, columns=NAMES).assign(target=y, weight=1.0 + np.arange(N_ROWS) % 3)


@pytest.fixture(scope="module")
def in_memory(table, module_searched_once):
    return MixedLinearRegression(keep_rows=True, random_state=0).fit(*table)


@pytest.fixture(scope="module")
def weighted_in_memory(table, frame, module_searched_once):
    weights = frame["weight"].to_numpy()
    return MixedLinearRegression(keep_rows=True, random_state=0).fit(*table, weights)


def same_fit(one, other):
    """Row by row, and coefficient by coefficient."""
    assert one.n_components_ == other.n_components_
    for name in ("coef_", "intercept_", "weights_", "scale_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(np.asarray(one.labels_), np.asarray(other.labels_))
    excerpts = one.mixture_.excerpt, other.mixture_.excerpt
    np.testing.assert_array_equal(*(excerpt.numbers for excerpt in excerpts))
    np.testing.assert_array_equal(*(excerpt.labels for excerpt in excerpts))


def fitted(X, y, weights=None, **parameters):
    fit = MixedLinearRegression(keep_rows=True, random_state=0, **parameters).fit(X, y, weights)
    assert isinstance(fit.labels_, da.Array)
    assert fit.labels_.shape == (N_ROWS,)
    assert fit.labels_.dtype == np.int64
    return fit


# --- arrays ---------------------------------------------------------------------------------------


def row_chunks(X, y):
    return da.from_array(X, chunks=(400, 3)), da.from_array(y, chunks=400)


def column_chunks(X, y):
    return da.from_array(X, chunks=(700, 2)), da.from_array(y, chunks=N_ROWS)


def unlike_chunks(X, y):
    chunks = ((1, 0, 800, 699), (3,))
    return da.from_array(X, chunks=chunks), da.from_array(y[:, None], chunks=(333, 1))


def unknown_chunks(X, y):
    X, y = row_chunks(X, y)
    everything = X[:, 0] > -1e9
    X, y = X[everything], y[everything]
    assert np.isnan(X.shape[0])
    return X, y


def one_chunk(X, y):
    return da.from_array(X, chunks=-1), da.from_array(y, chunks=-1)


@pytest.mark.parametrize(
    "cut", [row_chunks, column_chunks, unlike_chunks, unknown_chunks, one_chunk]
)
def test_arrays_make_the_fit_of_memory(client, table, in_memory, cut):
    X, y = cut(*table)
    fit = fitted(X, y)
    same_fit(fit, in_memory)
    if cut is not unknown_chunks:
        with_rows = tuple(length for length in X.chunks[0] if length)
        assert fit.labels_.chunks == (with_rows,)
    assert fit.n_features_in_ == 3
    assert not hasattr(fit, "feature_names_in_")


def test_weights_come_along(client, table, frame, weighted_in_memory):
    weights = da.from_array(frame["weight"].to_numpy(), chunks=311)
    same_fit(fitted(*row_chunks(*table), weights), weighted_in_memory)


@pytest.mark.parametrize(
    "parameters", [{"outliers": 0.2}, {"outliers": False}, {"noise": "student"}], ids=str
)
def test_other_settings_make_the_fit_of_memory(client, table, parameters):
    beside = MixedLinearRegression(keep_rows=True, random_state=0, **parameters).fit(*table)
    same_fit(fitted(*row_chunks(*table), **parameters), beside)


@pytest.mark.parametrize("parameters", [{}, {"keep": 0.4, "reweight": False}], ids=str)
def test_one_component_is_that_of_memory(client, table, parameters):
    X, y = row_chunks(*table)
    fit = TrimmedRegressor(random_state=0, **parameters).fit(X, y)
    beside = TrimmedRegressor(random_state=0, **parameters).fit(*table)
    np.testing.assert_allclose(fit.coef_, beside.coef_, rtol=1e-9)
    assert fit.scale_ == pytest.approx(beside.scale_)
    assert isinstance(fit.inlier_mask_, da.Array)
    assert fit.inlier_mask_.chunks == (X.chunks[0],)
    assert fit.inlier_mask_.dtype == bool
    np.testing.assert_array_equal(np.asarray(fit.inlier_mask_), beside.inlier_mask_)


# --- data frames ----------------------------------------------------------------------------------


def test_a_data_frame_makes_the_fit_of_memory(client, frame, in_memory):
    parts = dd.from_pandas(frame, npartitions=5)
    fit = fitted(parts[NAMES], parts["target"])
    same_fit(fit, in_memory)
    assert fit.feature_names_in_.tolist() == NAMES
    assert fit.mixture_.target_name == "target"
    assert fit.labels_.numblocks == (5,)


def test_many_small_row_groups_of_parquet(client, frame, weighted_in_memory, tmp_path):
    """Dask reads several small partitions as one, and not the same ones for X and y."""
    for part in range(6):
        rows = frame.iloc[part * 250 : (part + 1) * 250]
        rows.to_parquet(tmp_path / f"part{part}.parquet", row_group_size=60)
    parts = dd.read_parquet(tmp_path, split_row_groups=True)
    assert parts.npartitions > 6
    same_fit(fitted(parts[NAMES], parts["target"], parts["weight"]), weighted_in_memory)


def test_columns_of_every_kind_of_number(client):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "count": rng.integers(0, 50, N_ROWS),
            "nullable": pd.array(rng.integers(0, 50, N_ROWS), dtype="Int64"),
            "flag": rng.random(N_ROWS) < 0.5,
            "small": rng.standard_normal(N_ROWS).astype(np.float32),
        }
    )
    numbers = frame.astype(float)
    half = rng.random(N_ROWS) < 0.5
    y = np.where(half, numbers @ [1.0, 2.0, 3.0, 4.0], numbers @ [-2.0, 1.0, 0.0, 9.0])
    frame["target"] = pd.array(np.round(y + rng.standard_normal(N_ROWS), 3), dtype="Float64")
    parts = dd.from_pandas(frame, npartitions=4)
    names = ["count", "nullable", "flag", "small"]
    beside = MixedLinearRegression(keep_rows=True, random_state=0).fit(
        frame[names], frame["target"]
    )
    same_fit(fitted(parts[names], parts["target"]), beside)


def test_a_missing_value_is_refused_with_its_part(client, frame):
    frame = frame.astype({"b": "Float64"})
    frame.loc[1_000, "b"] = pd.NA
    parts = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(DataError, match=r"part(ition)? 2|part(ition)? 1"):
        fitted(parts[NAMES], parts["target"])


def test_columns_whose_names_are_numbers(client, table, in_memory):
    X, y = table
    parts = dd.from_pandas(pd.DataFrame(np.column_stack([X, y])), npartitions=3)
    same_fit(fitted(parts[[0, 1, 2]], parts[3]), in_memory)


def test_an_index_that_repeats_does_not_matter(client, frame, in_memory):
    """Rows belong together by where they stand in one data frame, whatever their index says."""
    frame = frame.set_index(np.zeros(N_ROWS, dtype=int))
    parts = dd.from_pandas(frame, npartitions=1, sort=False)
    same_fit(fitted(parts[NAMES], parts["target"]), in_memory)


# --- what is refused ------------------------------------------------------------------------------


def test_partitions_that_do_not_match_are_refused(client, frame):
    five, three = (dd.from_pandas(frame, npartitions=count) for count in (5, 3))
    with pytest.raises(DataError, match="X has 5 partitions, y has 3"):
        fitted(five[NAMES], three["target"])


def test_arrays_of_unlike_lengths_are_refused(client, table):
    X, y = row_chunks(*table)
    with pytest.raises(DataError, match=r"1500.*1400"):
        fitted(X, y[:1400])
    with pytest.raises(DataError, match="sample_weight"):
        fitted(X, y, y[:1400])


def test_unknown_lengths_that_do_not_match_are_refused(client, table):
    X, y = unknown_chunks(*table)
    with pytest.raises(DataError, match=r"part(ition)? \d.*y"):
        fitted(X, y[y > 0])
    with pytest.raises(DataError, match=r"part(ition)? \d.*sample_weight"):
        fitted(X, y, (y**2)[y > 0])


@pytest.mark.parametrize("what", ["y", "sample_weight"])
def test_a_response_in_memory_is_refused(client, table, what):
    X, y = row_chunks(*table)
    given = (X, np.asarray(y)) if what == "y" else (X, y, np.ones(N_ROWS))
    with pytest.raises(DataKindError, match=rf"{what} is of type ndarray.*from_array"):
        fitted(*given)


def test_a_frame_without_response_is_refused(client, frame):
    parts = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(DataError, match="requires y"):
        fitted(parts[NAMES], None)


def test_two_responses_are_refused(client, table):
    X, y = row_chunks(*table)
    with pytest.raises(DataError, match="one number a row"):
        fitted(X, da.stack([y, y], axis=1))


def test_a_matrix_is_needed(client, table):
    _, y = row_chunks(*table)
    with pytest.raises(DataError):
        fitted(y, y)


def test_words_are_refused(client, frame):
    parts = dd.from_pandas(frame.assign(b="red"), npartitions=2)
    with pytest.raises(DataKindError, match="b"):
        fitted(parts[NAMES], parts["target"])


def test_a_gate_is_learnt_from_a_sample_of_the_rows(client, table):
    X, y = table
    fit = fitted(*row_chunks(X, y), gating="logistic")
    alone = MixedLinearRegression(random_state=0, gating="logistic").fit(X, y)
    np.testing.assert_allclose(fit.mixture_.gate.shares(X), alone.mixture_.gate.shares(X), atol=0.1)
    np.testing.assert_allclose(fit.predict(X), alone.predict(X), atol=0.5)


@pytest.mark.parametrize("options", [{}, {"outliers": 0.1}], ids=str)
def test_rows_are_labelled_by_the_gate_where_they_are(client, table, options):
    X, y = table
    fit = fitted(*row_chunks(X, y), gating="logistic", **options)
    mixture, labels = fit.mixture_, np.asarray(fit.labels_)
    shares = mixture.gate.shares(X)
    likeliest = mixture.log_densities(X, y, shares)[:, :-1].argmax(axis=1)
    inside = labels >= 0
    np.testing.assert_array_equal(labels[inside], likeliest[inside])
    if not options:
        np.testing.assert_array_equal(labels, fit.assign(X, y))
    m = fit.n_components_
    assert mixture.label_counts == tuple(np.bincount(labels % (m + 1), minlength=m + 1))
    doubtful = mixture.responsibilities(X, y, shares).max(axis=1) < 0.8
    # Of a given share of outliers no row is in doubt: the farthest are left out.
    assert mixture.doubtful_rows == (None if options else np.count_nonzero(doubtful))
    assert mixture.rows.r_squared_expected == pytest.approx(fit.score(X, y), rel=1e-9)
    excerpt = mixture.excerpt
    np.testing.assert_array_equal(excerpt.labels, labels[excerpt.numbers])
    np.testing.assert_allclose(excerpt.shares, shares[excerpt.numbers])


# --- what is left after a fit ---------------------------------------------------------------------


def test_a_fit_may_be_repeated_pickled_saved_and_used(client, table, in_memory, tmp_path):
    X, y = row_chunks(*table)
    fit = fitted(X, y)
    first = np.asarray(fit.labels_)
    fit.fit(X, y)
    np.testing.assert_array_equal(np.asarray(fit.labels_), first)
    np.testing.assert_allclose(fit.predict(table[0]), in_memory.predict(table[0]))
    printed = [re.sub(r"[\d.e+-]+ seconds", "", str(found.mixture_)) for found in (fit, in_memory)]
    assert printed[0] == printed[1]
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.coef_, fit.coef_)
    save(fit.mixture_, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").coef, fit.coef_)


def settles_at(client, expected):
    """Wait until the workers hold so many bytes for somebody; what is released goes in its time."""

    def held(dask_scheduler):
        tasks = dask_scheduler.tasks.values()
        return sum(task.nbytes for task in tasks if task.state == "memory")

    gc.collect()
    return comes_true(lambda: client.run_on_scheduler(held) == expected)


def test_workers_keep_labels_and_nothing_else(client, table):
    """What a fit leaves on the workers is there as long as its labels are."""
    assert settles_at(client, 0)
    fit = fitted(*row_chunks(*table))
    wait(fit.labels_)
    assert settles_at(client, 8 * N_ROWS)
    del fit
    assert settles_at(client, 0)


def test_a_fit_that_fails_leaves_nothing_behind(client, table):
    X, y = table[0].copy(), table[1]
    X[700, 1] = np.nan
    assert settles_at(client, 0)
    with pytest.raises(DataError):
        fitted(*row_chunks(X, y))
    assert settles_at(client, 0)


def test_dask_knows_how_large_a_part_is(table):
    """Otherwise it would take moving a part to another worker for nothing."""
    rows = RawRows(*table, np.ones(N_ROWS))
    assert N_ROWS * 5 * 8 <= sizeof(rows) <= N_ROWS * 5 * 8 + 1_000


def test_the_engine_asks_workers_what_it_would_ask_memory(client, table):
    memory = MemoryEngine(Problem.from_arrays(*table))
    rng = np.random.default_rng(1)
    law = Law(rng.standard_normal((2, 4)), np.ones(2), np.array([0.5, 0.4]), -3.0)
    with dask_rows(*row_chunks(*table)) as (names, parts):
        assert names == ("x0", "x1", "x2")
        assert isinstance(parts, DaskParts)
        engine = open_parts(parts, names)
        assert parts.held
        before = parts.n_passes
        one, other = mixture_sums(memory, law), mixture_sums(engine, law)
        np.testing.assert_allclose(one.sums[0].gram, other.sums[0].gram, rtol=1e-9)
        assert parts.n_passes == before + 1
        cut = engine.choose(residual_sizes, (law.thetas[0],), 700.0)
        held = memory.choose(residual_sizes, (law.thetas[0],), 700.0)
        mask = engine.map_rows(lambda block: cut.mask(block))
        np.testing.assert_array_equal(np.asarray(mask), held.kept)
