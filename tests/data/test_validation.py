"""Reading tables, responses and weights: what is accepted, without a copy where that is possible.

What is refused is in ``test_bad_data``, through every entrance at once.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import DataConversionWarning

from regimix.data.validation import CHUNK_BYTES, Table, chunks, read_target, read_weights
from regimix.errors import DataError, DataKindError

few = settings(max_examples=50, deadline=None)

NUMBERS = np.array([[1.0, -2.0, 3.5], [4.0, 0.0, -6.0], [7.0, 8.0, 0.25], [-1.0, 1.0, 2.0]])
WHOLE = NUMBERS.round().astype(np.int64)


def memory_map(path, values):
    """Write an array to a file and map it, read-only."""
    np.save(path / "table.npy", values)
    return np.load(path / "table.npy", mmap_mode="r")


# --- arrays stay where they are ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("byteorder", ["<", ">"])
def test_an_array_of_numbers_is_read_in_place(kind, order, byteorder):
    X = np.abs(NUMBERS).astype(np.dtype(kind).newbyteorder(byteorder), order=order)
    table = Table.read(X)
    assert np.shares_memory(table.values, X)
    np.testing.assert_array_equal(table.values.astype(float), X.astype(float))
    assert table.names == ("x0", "x1", "x2")
    lowest, highest = table.extent()
    np.testing.assert_array_equal(lowest, X.astype(float).min(axis=0))
    np.testing.assert_array_equal(highest, X.astype(float).max(axis=0))
    assert lowest.dtype == highest.dtype == np.float64


@pytest.mark.parametrize(
    "view",
    [
        lambda X: X[::2],
        lambda X: X[::-1, ::-1],
        lambda X: X[:, 1:],
        lambda X: np.broadcast_to(X[:1], (4, 3)),
        lambda X: np.ma.array(X),
    ],
    ids=["every second row", "backwards", "some columns", "broadcast", "nothing masked"],
)
def test_a_view_is_read_in_place(view):
    X = NUMBERS.copy()
    values = Table.read(view(X)).values
    assert type(values) is np.ndarray
    assert np.shares_memory(values, X)
    np.testing.assert_array_equal(values, np.asarray(view(X)))


def test_a_memory_map_is_read_in_place(tmp_path):
    X = memory_map(tmp_path, NUMBERS)
    assert np.shares_memory(Table.read(X).values, X)


def test_extended_precision_is_read_as_double():
    X = NUMBERS.astype(np.longdouble) / 3
    values = Table.read(X).values
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, X.astype(np.float64))


@pytest.mark.parametrize(
    "rows",
    [
        NUMBERS.tolist(),
        [tuple(row) for row in NUMBERS.tolist()],
        list(NUMBERS),
        NUMBERS.astype(object),
        [[Decimal(v) for v in row] for row in NUMBERS.tolist()],
        [[Fraction(v) for v in row] for row in NUMBERS.tolist()],
    ],
    ids=["lists", "tuples", "arrays", "objects", "decimals", "fractions"],
)
def test_rows_of_python_numbers_are_read(rows):
    values = Table.read(rows).values
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, NUMBERS)


# --- frames --------------------------------------------------------------------------------------


def test_a_pandas_frame_of_floats_is_read_in_place():
    frame = pd.DataFrame(NUMBERS, columns=["a", "b", "c"], index=[9, 9, 1, 0])
    table = Table.read(frame)
    assert table.names == ("a", "b", "c")
    assert np.shares_memory(table.values, frame.to_numpy())
    np.testing.assert_array_equal(table.values, NUMBERS)


def test_a_polars_frame_is_copied_no_more_than_polars_does():
    frame = pl.DataFrame(np.asfortranarray(NUMBERS), schema=["a", "b", "c"])
    table = Table.read(frame)
    assert table.names == ("a", "b", "c")
    assert np.shares_memory(table.values, frame.to_numpy())
    np.testing.assert_array_equal(table.values, NUMBERS)


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (pd.DataFrame(NUMBERS).astype("Float64"), np.float64),
        (pd.DataFrame(NUMBERS).astype("Float32"), np.float32),
        (pd.DataFrame(WHOLE).astype("Int64"), np.int64),
        (pd.DataFrame(WHOLE).astype("Int8"), np.int8),
        (pd.DataFrame(WHOLE > 0).astype("boolean"), np.bool_),
        (pd.DataFrame(WHOLE > 0), np.bool_),
        (pd.DataFrame(NUMBERS).astype(object), np.float64),
        (pl.DataFrame(NUMBERS).cast(pl.Float32), np.float32),
        (pl.DataFrame(WHOLE), np.int64),
        (pl.DataFrame(WHOLE > 0), np.bool_),
        (pl.DataFrame(NUMBERS).cast(pl.Decimal(10, 4)), np.float64),
    ],
    ids=[
        "pandas Float64",
        "pandas Float32",
        "pandas Int64",
        "pandas Int8",
        "pandas boolean",
        "pandas bool",
        "pandas object",
        "polars Float32",
        "polars Int64",
        "polars Boolean",
        "polars Decimal",
    ],
)
def test_a_frame_of_one_kind_keeps_its_kind(frame, kind):
    values = Table.read(frame).values
    assert values.dtype == kind
    expected = NUMBERS if kind in (np.float64, np.float32) else WHOLE
    np.testing.assert_array_equal(values, expected > 0 if kind is np.bool_ else expected)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_columns_of_different_kinds_meet_without_loss(library):
    parts = {
        "f": NUMBERS[:, 0].astype(np.float32),
        "i": WHOLE[:, 1],
        "b": NUMBERS[:, 2] > 0,
        "u": np.array([0, 1, 2**63, 2**64 - 2048], dtype=np.uint64),
    }
    table = Table.read(library(parts))
    assert table.names == ("f", "i", "b", "u")
    for i, column in enumerate(parts.values()):
        np.testing.assert_array_equal(table.values[:, i], column.astype(float))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_small_kinds_stay_small(library):
    frame = library({"a": WHOLE[:, 0].astype(np.int8), "b": NUMBERS[:, 0] > 0})
    assert Table.read(frame).values.dtype == np.int8


def test_column_names_need_not_be_text():
    assert Table.read(pd.DataFrame(NUMBERS)).names == ("0", "1", "2")


# --- bounded chunks ------------------------------------------------------------------------------


@few
@given(st.integers(0, 5000), st.integers(1, 3000), st.one_of(st.none(), st.integers(1, 700)))
def test_chunks_are_consecutive_and_bounded(n_rows, n_columns, chunk_rows):
    pieces = list(chunks(n_rows, n_columns, chunk_rows))
    assert [row for piece in pieces for row in range(piece.start, piece.stop)] == [*range(n_rows)]
    for piece in pieces:
        size = piece.stop - piece.start
        assert size <= (chunk_rows or max(256, CHUNK_BYTES // (8 * n_columns)))


@pytest.mark.parametrize(("kind", "largest"), [("f2", 65504.0), ("f4", 3e38), ("f8", 1e140)])
def test_sums_that_overflow_are_no_missing_values(kind, largest):
    X = np.random.default_rng(0).choice([-largest, largest], (10_000, 3)).astype(kind)
    lowest, highest = Table.read(X).extent()
    np.testing.assert_array_equal(lowest, np.full(3, -X.max(), dtype=np.float64))
    np.testing.assert_array_equal(highest, np.full(3, X.max(), dtype=np.float64))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_a_bad_value_beyond_the_first_chunk_is_found(bad):
    X = np.zeros((10_000, 64))
    assert len(list(chunks(*X.shape))) > 2
    X[9_876, 63] = bad
    with pytest.raises(DataError, match=r"column 'x63' of X is .* in row 9876 "):
        Table.read(X).extent()


@few
@given(st.integers(0, 2**32 - 1), st.integers(1, 600), st.integers(1, 4))
def test_the_extent_is_that_of_all_rows(seed, n, d):
    X = np.random.default_rng(seed).normal(size=(n, d))
    lowest, highest = Table.read(X, fewest_rows=1).extent()
    np.testing.assert_array_equal(lowest, X.min(axis=0))
    np.testing.assert_array_equal(highest, X.max(axis=0))


def test_large_whole_numbers_keep_their_order():
    X = np.array([[2**63 - 1, 0], [-(2**63), 2**53 + 1]], dtype=np.int64)
    lowest, highest = Table.read(X).extent()
    np.testing.assert_array_equal(lowest, [-(2.0**63), 0.0])
    np.testing.assert_array_equal(highest, [2.0**63, 2.0**53])


# --- the response --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        NUMBERS[:, 0],
        NUMBERS[:, 0].astype(">f8"),
        NUMBERS[:, 0].astype(np.float32),
        NUMBERS[:, 0].astype(np.longdouble),
        WHOLE[:, 0],
        NUMBERS[:, 0].tolist(),
        tuple(NUMBERS[:, 0].tolist()),
        NUMBERS[:, 0].astype(object),
        pd.Series(NUMBERS[:, 0], index=[3, 2, 1, 0]),
        pd.Series(WHOLE[:, 0], dtype="Int64"),
        pl.Series(NUMBERS[:, 0]),
        pl.Series(WHOLE[:, 0]),
        np.ma.array(NUMBERS[:, 0]),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__} {getattr(y, 'dtype', '')}",
)
def test_a_response_is_read_by_position(y):
    target = read_target(y, 4)
    assert target.dtype == np.float64
    np.testing.assert_array_equal(target, NUMBERS[:, 0])


def test_a_response_of_doubles_is_read_in_place():
    y = NUMBERS[:, 1].copy()
    y.setflags(write=False)
    assert np.shares_memory(read_target(y, 4), y)
    series = pd.Series(y)
    assert np.shares_memory(read_target(series, 4), series.to_numpy())


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_a_response_of_one_column_is_flattened_with_a_warning(wrap):
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        target = read_target(wrap(NUMBERS[:, :1]), 4)
    np.testing.assert_array_equal(target, NUMBERS[:, 0])


# --- weights -------------------------------------------------------------------------------------


def test_no_weights_and_weights_of_one_are_the_same():
    assert read_weights(None, 3) == (None, True)
    for ones in (1, 1.0, True, [1, 1, 1], np.ones(3, dtype=np.uint8), pl.Series([1.0, 1.0, 1.0])):
        assert read_weights(ones, 3) == (None, True)


@pytest.mark.parametrize(
    "given_weights",
    [
        [2, 0, 3],
        [2.0, 0.0, 3.0],
        np.array([2, 0, 3], dtype=np.int8),
        pd.Series([2, 0, 3], index=[5, 6, 7], dtype="Int64"),
        pl.Series([2, 0, 3]),
    ],
)
def test_whole_weights_stay(given_weights):
    weights, counts = read_weights(given_weights, 3)
    assert counts
    np.testing.assert_array_equal(weights, [2.0, 0.0, 3.0])


def test_a_scalar_weight_is_that_of_every_row():
    weights, counts = read_weights(2, 4)
    assert counts
    np.testing.assert_array_equal(weights, [2.0] * 4)


@few
@given(
    hnp.arrays(
        np.float64,
        st.integers(2, 30),
        elements=st.one_of(st.just(0.0), st.floats(1e-6, 1e6)),
    ),
    st.floats(1e-200, 1e200),
)
def test_other_weights_have_mean_one_over_the_rows_present(given_weights, unit):
    given_weights[:2] = 0.1, 1.7
    weights, counts = read_weights(given_weights, given_weights.size)
    assert not counts
    np.testing.assert_allclose(weights[weights > 0].mean(), 1.0, rtol=1e-13)
    np.testing.assert_allclose(weights * 0.1, given_weights * weights[0], rtol=1e-12)
    rescaled, counts = read_weights(given_weights * unit, given_weights.size)
    if not counts:
        np.testing.assert_allclose(rescaled, weights, rtol=1e-12)


def test_whole_weights_too_large_to_count_are_relative():
    weights, counts = read_weights(np.array([1e18, 2e18, 0.0]), 3)
    assert not counts
    np.testing.assert_allclose(weights, [2 / 3, 4 / 3, 0.0])
    # Each can be counted, their sum cannot.
    weights, counts = read_weights(np.full(4, 2.0**52), 4)
    assert not counts
    np.testing.assert_array_equal(weights, np.ones(4))


def test_huge_and_tiny_weights_neither_overflow_nor_vanish():
    for unit in (1e308, 1e-308):
        weights, _ = read_weights(np.array([1.5, 0.5, 1.0]) * unit, 3)
        np.testing.assert_allclose(weights, [1.5, 0.5, 1.0], rtol=1e-12)


def test_a_weight_that_is_nothing_beside_the_others_is_absent():
    for least in (1e-320, 1e140):
        weights, _ = read_weights(np.array([least, 1.5e300, 0.5e300]), 3)
        np.testing.assert_allclose(weights, [0.0, 1.5, 0.5])
        with pytest.raises(DataError, match="nothing beside the largest, in all rows but 1"):
            read_weights(np.array([least, 1.5e300]), 2)
    weights, _ = read_weights(np.array([1e160, 1.5e300, 0.5e300]), 3)
    assert weights.all()


def test_weights_are_not_the_users_memory():
    given_weights = np.array([2.0, 0.0, 3.0])
    weights, _ = read_weights(given_weights, 3)
    assert not np.shares_memory(weights, given_weights)


# --- objects -------------------------------------------------------------------------------------


class Unknown:
    """Neither a table nor a number."""


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("12.5", "'12.5' .*not a number"),
        (b"1", "b'1' .*not a number"),
        (Unknown(), "not a number .*Unknown"),
        ({"foo": "bar"}, "argument must be .* string.* number"),
        ([1.0, 2.0], r"\[1.0, 2.0\] .*not a number"),
        (1j, "1j .*not a number"),
        (10**400, "not a number .*too large"),
        (np.datetime64("2020-01-01"), "2020-01-01.*not a number"),
        (np.timedelta64(3, "D"), "3.*not a number"),
        (pd.Timestamp("2020-01-01"), "Timestamp.*not a number"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_a_cell_that_is_no_number_is_named(cell, words):
    X = NUMBERS.astype(object)
    X[2, 1] = cell
    with pytest.raises(DataKindError, match=f"(?s)column 'x1' of X holds .*{words}") as caught:
        Table.read(X)
    assert "in row 2 " in str(caught.value)
    assert len(str(caught.value)) < 400
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=repr)
def test_a_missing_cell_is_named(missing):
    X = NUMBERS.astype(object)
    X[2, 1] = missing
    with pytest.raises(DataError, match=r"(?s)Input contains NaN.*column 'x1' of X .* in row 2 "):
        Table.read(X).extent()
    frame = pd.DataFrame(NUMBERS, columns=["a", "b", "c"]).astype(object)
    frame.iloc[2, 1] = missing
    with pytest.raises(DataError, match=r"(?s)Input contains NaN.*column 'b' of X .* in row 2 "):
        Table.read(frame).extent()


def test_names_are_all_text_or_none():
    frame = pd.DataFrame(np.zeros((3, 2)), columns=[1, "a"])
    with pytest.raises(DataKindError, match=r"'a' and 1; make all of them text"):
        Table.read(frame)
    assert Table.read(frame.set_axis([3, 4], axis=1)).names == ("3", "4")
