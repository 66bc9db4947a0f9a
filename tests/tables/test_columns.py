"""What each column becomes, which rows are used, and what is said about it."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix import tables
from regimix.errors import DataError, DataKindError, ParameterError
from regimix.tables import Column, Recipe

N = 30
RNG = np.random.default_rng(0)
PLAIN = {"x": RNG.normal(size=N), "y": RNG.normal(size=N)}


def read(columns, *, target="y", **options):
    return tables.from_frame(pl.DataFrame(columns, strict=False), target=target, **options)


def notes(data):
    return "\n".join(data.notes)


# --- kinds of columns -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        pl.Series(range(N), dtype=pl.Int8),
        pl.Series(range(N), dtype=pl.UInt64),
        pl.Series(range(N), dtype=pl.Float32),
        pl.Series([Decimal(i) for i in range(N)], dtype=pl.Decimal(10, 2)),
        pl.Series([f" {i} " for i in range(N)]),
    ],
)
def test_numbers_of_every_kind(values):
    data = read({**PLAIN, "z": values})
    assert data.feature_names == ("x", "z")
    assert data.X[:, 1].tolist() == list(range(N))
    assert data.notes == ()


def test_true_and_false_are_one_and_zero():
    data = read({**PLAIN, "on": [True, False, False] * 10})
    assert data.X[:3, 1].tolist() == [1, 0, 0]
    assert "'on' is 1 where true, 0 where false" in notes(data)
    assert read({"x": PLAIN["x"], "y": [True, False, False] * 10}).y[:3].tolist() == [1, 0, 0]


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["a", "b", "c"])])
def test_text_of_few_values_becomes_columns_and_says_so(kind):
    data = read({"z": pl.Series(["b", "a", "b", "c", "b"] * 6, dtype=kind), **PLAIN})
    assert data.feature_names == ("z=a", "z=c", "x")
    assert data.X[:5, :2].tolist() == [[0, 0], [1, 0], [0, 0], [0, 1], [0, 0]]
    assert (
        "'z' is text of 3 values: it becomes 2 columns of 0 and 1 (z=a, z=c); 'b' is 0 in all."
        in notes(data)
    )


def test_notes_hold_nothing_that_a_terminal_would_obey():
    name = "\x1b[2Jz"
    data = read({name: ["b", "a\r", "c\x07"] * 10, "\x1b[1m": [1] * N, **PLAIN})
    assert f"{name}=b" in data.feature_names
    assert len(data.notes) == 2
    assert all(note.isprintable() for note in data.notes)


def test_twelve_values_are_few_and_thirteen_are_not():
    few = read({**PLAIN, "z": [f"v{i % 12}" for i in range(N)]})
    assert len(few.feature_names) == 12
    many = read({**PLAIN, "z": [f"v{i % 13}" for i in range(N)]})
    assert many.feature_names == ("x",)
    assert "'z' is left out: it is text of 13 different values" in notes(many)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([date(2024, 1, 1)] * N, "holds Date values; to use it as days since 1970, name it"),
        ([datetime(2024, 1, 1)] * N, "holds Datetime values"),
        ([[1.0]] * N, "holds List values"),
        ([None] * N, "has no values"),
        (["  "] * N, "has no values"),
        ([3.0] * N, "is the same in all rows"),
        (["one"] * N, "is the same in all rows"),
        ([True] * N, "is the same in all rows"),
    ],
)
def test_what_is_left_out_is_said(values, reason):
    data = read({**PLAIN, "z": values})
    assert data.feature_names == ("x",)
    assert f"Column 'z' is left out: it {reason}" in notes(data)


def test_text_that_differs_in_every_row_is_left_out():
    columns = {"x": [1.0, 2, 4, 7], "id": ["a", "b", "c", None], "y": [1.0, 2, 3, 5]}
    data = read(columns)
    assert data.feature_names == ("x",)
    assert "'id' is left out: it is text that differs in every row" in notes(data)
    assert read(columns, features=["id"]).feature_names == ("id=b", "id=c")


def test_one_row_is_said_to_be_one():
    with pytest.raises(DataError, match=r"has only one row; .* bring more rows\."):
        read({"x": [1.0], "y": [2.0]})


def test_a_column_without_a_name_is_left_out():
    data = read({"": np.arange(N), **PLAIN})
    assert data.feature_names == ("x",)
    assert "has no name" in notes(data)


@pytest.mark.parametrize(
    ("values", "days"),
    [
        ([date(1970, 1, 2), date(1969, 12, 31)], [1, -1]),
        ([datetime(1970, 1, 1, 12), datetime(1970, 1, 3)], [0.5, 2]),
        ([timedelta(hours=6), timedelta(days=2)], [0.25, 2]),
        ([time(18), time(0)], [0.75, 0]),
    ],
)
def test_dates_that_are_asked_for_are_days(values, days):
    data = read({"when": values * 15, **PLAIN}, features=["when"])
    assert data.X[:2, 0].tolist() == days
    assert "days since 1970-01-01" in notes(data)


def test_dates_in_a_csv_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("when,y\n1970-01-02,1\n1970-01-11,2\n")
    data = tables.read(path, target="y", features=["when"])
    assert data.X.ravel().tolist() == [1, 10]


def test_numbers_with_a_few_mistakes_are_numbers_and_the_mistakes_are_said():
    cells = [str(i) for i in range(N)]
    cells[4], cells[9] = "n.d.", "1;5"
    data = read({**PLAIN, "z": cells})
    assert data.keys.tolist() == [i + 1 for i in range(N) if i not in (4, 9)]
    assert data.n_dropped == 2
    assert "'z' holds what is not a number in 2 of 30 rows (first: 'n.d.' in row 5)" in notes(data)
    target = read({"x": PLAIN["x"], "y": cells})
    assert target.n_rows == N - 2


# --- which columns --------------------------------------------------------------------------------


def test_features_and_drop_choose_columns_in_the_order_asked():
    columns = {**PLAIN, "a": PLAIN["x"] + 1, "b": PLAIN["x"] * 2}
    assert read(columns).feature_names == ("x", "a", "b")
    assert read(columns, drop=["a"]).feature_names == ("x", "b")
    assert read(columns, features=["b", "x"]).feature_names == ("b", "x")


def test_weights_and_key_are_no_features():
    data = read({**PLAIN, "w": np.arange(N), "id": np.arange(N) + 100}, weights="w", key="id")
    assert data.feature_names == ("x",)
    assert data.weights.tolist() == list(range(N))
    assert data.keys.tolist() == list(range(100, 100 + N))
    assert (data.keys.dtype, data.key_name) == (np.int64, "id")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "Y"}, r"no column 'Y' \(the target\). Did you mean 'y'\?"),
        (
            {"target": "price"},
            r"no column 'price' \(the target\). Its columns are 'x', 'y', 'name'",
        ),
        ({"features": ["xx"]}, r"no column 'xx' \(a feature\). Did you mean 'x'"),
        ({"drop": ["nome"]}, r"no column 'nome' \(to drop\). Did you mean 'name'"),
        ({"weights": "w"}, r"no column 'w' \(the weights\)"),
        ({"key": "k"}, r"no column 'k' \(the key\)"),
        ({"features": ["y"]}, "'y' cannot be a feature: it is the target"),
        ({"features": ["x"], "drop": ["x"]}, "'x' is in features and in drop"),
        ({"weights": "y"}, "'y' is the target; it cannot be the weights"),
        ({"features": ["name"]}, "'name' cannot be a feature: it is text of 30 different values"),
        ({"target": "name"}, "'name' cannot be the target: it is text of 30 different values"),
        (
            {"target": "kind"},
            r"'kind' cannot be the target: it holds text \(such as 'a'\)",
        ),
        ({"weights": "kind"}, "'kind' cannot be the weights"),
        ({"features": []}, "no column besides 'y' that can be a feature"),
        ({"drop": ["x", "kind"]}, "no column besides 'y' that can be a feature; 'name' is text"),
    ],
)
def test_what_cannot_be_asked_for(options, reason):
    columns = {**PLAIN, "name": [f"n{i}" for i in range(N)], "kind": ["a", "b"] * 15}
    with pytest.raises(DataError, match=reason):
        read(columns, **options)


def test_a_text_where_a_list_is_expected():
    with pytest.raises(ParameterError, match="features must be a list of column names; got 'x'"):
        read(PLAIN, features="x")


def test_no_rows_and_no_columns():
    with pytest.raises(DataError, match="2 columns and no rows"):
        read({"x": [], "y": []})
    with pytest.raises(DataError, match="0 columns and no rows"):
        read({})


# --- which rows -----------------------------------------------------------------------------------


def with_holes():
    columns = {name: values.copy() for name, values in PLAIN.items()}
    columns["x"][[3, 5]] = [np.nan, np.inf]
    columns["y"][7] = np.nan
    return {**columns, "z": ["a", None] + ["b"] * (N - 2)}


def test_rows_with_missing_values_are_dropped_and_counted():
    data = read(with_holes())
    assert (data.n_read, data.n_dropped, data.n_rows) == (N, 4, N - 4)
    assert data.keys.tolist() == [i + 1 for i in range(N) if i not in (1, 3, 5, 7)]
    assert np.isfinite(data.X).all()
    assert "Rows with a missing or infinite value are dropped: 4 of 30 rows" in notes(data)
    assert "(2 in 'x', 1 in 'z', 1 in 'y')" in notes(data)


def test_or_refused():
    with pytest.raises(DataError, match=r"4 of the 30 rows .*\(2 in 'x'.* the first is row 2\."):
        read(with_holes(), missing="error")


def test_a_column_that_costs_most_rows_is_named():
    data = read({**PLAIN, "z": [1.0, 2.0, 3.0] + [None] * (N - 3)})
    assert "leave out 'z' to keep more" in notes(data)


def test_nothing_is_left():
    odd = np.arange(N) % 2 == 1
    columns = {
        **PLAIN,
        "a": np.where(odd, PLAIN["x"], np.nan),
        "b": np.where(odd, np.nan, 1 / PLAIN["x"]),
    }
    with pytest.raises(DataError, match=r"each of the 30 rows .* \(15 in 'a', 15 in 'b'\)"):
        read(columns)


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 2**32))
def test_a_sample_is_of_the_size_asked_in_order_and_repeatable(rows, seed):
    data = read(with_holes(), rows=rows, seed=seed)
    keys = data.keys.tolist()
    assert len(keys) == min(rows, N - 4)
    assert keys == sorted(set(keys))
    assert not {2, 4, 6, 8} & set(keys)
    assert np.array_equal(data.y, with_holes()["y"][data.keys - 1])
    assert read(with_holes(), rows=rows, seed=seed).keys.tolist() == keys
    assert data.n_dropped == 4


def test_every_row_is_as_likely_as_any_other():
    counts = np.zeros(N)
    for seed in range(600):
        counts[read(PLAIN, rows=10, seed=seed).keys - 1] += 1
    # 200 expected, deviation 11.5: a fair draw strays six deviations in one of 10^7 runs.
    assert np.abs(counts - 200).max() < 70


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"missing": "fill"}, "missing must be one of 'drop', 'error'; got 'fill'"),
        ({"rows": 0}, "rows must be None or a whole number from 1; got 0"),
        ({"rows": 2.5}, r"rows must be None or a whole number from 1; got 2\.5"),
        ({"rows": 2, "seed": -1}, "seed must be a whole number from 0; got -1"),
    ],
)
def test_terms_that_make_no_sense(options, reason):
    with pytest.raises(ParameterError, match=reason):
        read(PLAIN, **options)


def test_keys_of_other_kinds_are_text():
    ids = [f"id{i}" for i in range(N - 2)] + [None, "id0"]
    data = read({**PLAIN, "id": ids}, key="id")
    assert data.keys[0] == "id0"
    assert data.keys[N - 2] == f"row {N - 1}"
    assert "'id' is not unique" in notes(data)
    dates = read({**PLAIN, "id": [date(2024, 1, 1 + i) for i in range(N)]}, key="id")
    assert dates.keys[1] == "2024-01-02"


def test_pandas_frames():
    data = tables.from_frame(pd.DataFrame({**PLAIN, "z": ["a", "b"] * 15}), target="y")
    assert data.feature_names == ("x", "z=b")


# --- the same again -------------------------------------------------------------------------------

RECIPE = Recipe(
    "y",
    (
        Column("x"),
        Column("on", "flag"),
        Column("when", "date"),
        Column("z", "levels", ("b", "a", "c")),
    ),
    key="id",
)
NEW = {
    "z": ["a", "b", "c"],
    "id": ["p", "q", "r"],
    "when": [date(1970, 1, 2)] * 3,
    "x": ["1", "2", "3"],
    "on": ["true", "False", "1"],
    "y": [1, 2, 3],
    "more": [9, 9, 9],
}
EXPECTED = [[1, 1, 1, 1, 0], [2, 0, 1, 0, 0], [3, 1, 1, 0, 1]]


@pytest.fixture
def again(tmp_path):
    """Read a table by the recipe."""

    def run(columns=NEW, recipe=RECIPE, **options):
        path = tmp_path / "new.parquet"
        pl.DataFrame(columns, strict=False).write_parquet(path)
        return tables.read_like(path, recipe, **options)

    return run


def without(*names):
    return {name: values for name, values in NEW.items() if name not in names}


def test_a_recipe_reads_new_tables_the_same_way(again):
    data = again()
    assert data.feature_names == ("x", "on", "when", "z=a", "z=c")
    assert data.X.tolist() == EXPECTED
    assert data.y.tolist() == [1, 2, 3]
    assert data.keys.tolist() == ["p", "q", "r"]


def test_a_recipe_survives_json():
    assert Recipe.from_json(RECIPE.to_json()) == RECIPE
    data = read({**PLAIN, "z": ["b", "a", "b"] * 10}, key="x")
    assert Recipe.from_json(data.recipe.to_json()) == data.recipe


def test_reading_twice_gives_the_same_numbers(tmp_path):
    columns = {**PLAIN, "z": ["b", "a", "b"] * 10, "on": [True, False] * 15}
    path = tmp_path / "a.csv"
    pl.DataFrame(columns).write_csv(path)
    first = tables.read(path, target="y")
    second = tables.read_like(path, Recipe.from_json(first.recipe.to_json()))
    assert np.array_equal(first.X, second.X)
    assert np.array_equal(first.y, second.y)


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [],
        {},
        {"target": "y"},
        RECIPE.to_json() | {"columns": []},
        RECIPE.to_json() | {"columns": [{"name": "x"}]},
        RECIPE.to_json() | {"columns": [{"name": "x", "kind": "eval", "levels": []}]},
        RECIPE.to_json() | {"columns": [{"name": "x", "kind": "levels", "levels": ["a"]}]},
        RECIPE.to_json() | {"columns": [{"name": "x", "kind": "number", "levels": ["a", "b"]}]},
        RECIPE.to_json() | {"columns": [{"name": 1, "kind": "number", "levels": []}]},
        RECIPE.to_json() | {"target": 1},
        RECIPE.to_json() | {"key": ["id"]},
    ],
)
def test_what_is_no_recipe(plain):
    with pytest.raises(DataError, match="this is not a recipe"):
        Recipe.from_json(plain)


def test_unknown_levels_are_zeros_with_a_note_or_refused(again):
    columns = {**NEW, "z": ["a", "violet", "c"]}
    data = again(columns)
    assert data.X[1, 3:].tolist() == [0, 0]
    assert "Column 'z' holds a value that was not there before in 1 of 3 rows" in notes(data)
    assert "(first: 'violet' in row 2): it is treated like 'b'." in notes(data)
    with pytest.raises(DataError, match=r"'violet' in row 2.*known are 'b', 'a', 'c'"):
        again(columns, unknown="error")


def test_a_prediction_needs_no_target(again):
    with pytest.raises(DataError, match=r"no column 'y' \(the target\)"):
        again(without("y"))
    data = again(without("y"), target="optional")
    assert data.y is None
    assert data.target() is None
    assert data.X.tolist() == EXPECTED
    assert again(target="optional").y.tolist() == [1, 2, 3]


def test_a_target_that_is_missing_here_and_there(again):
    data = again({**NEW, "y": [1, None, 3]}, target="optional")
    assert np.array_equal(data.y, [1, np.nan, 3], equal_nan=True)
    assert data.n_rows == 3
    assert "'y' is missing in 1 of 3 rows: predictions there do without it" in notes(data)
    assert again({**NEW, "y": [1, None, 3]}).n_rows == 2


def test_keys_and_weights_that_are_not_there(again):
    assert again(without("id")).keys.tolist() == [1, 2, 3]
    assert again(key="more").keys.tolist() == [9, 9, 9]
    with pytest.raises(DataError, match=r"no column 'kay' \(the key\)"):
        again(key="kay")
    weighted = Recipe("y", (Column("x"),), weights="w")
    assert "no column 'w' of weights" in notes(again(recipe=weighted))
    assert again({**NEW, "w": [1, 2, 3]}, recipe=weighted).weights.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("columns", "kind", "reason"),
    [
        (without("x"), DataError, r"no column 'x' \(a feature\)"),
        ({**NEW, "x": [[1], [2], [3]]}, DataKindError, "'x' holds List"),
        ({**NEW, "when": ["a", "b", "c"]}, DataKindError, "'when' holds text where dates"),
        ({name: values[:0] for name, values in NEW.items()}, DataError, "has no rows"),
    ],
)
def test_new_tables_that_do_not_fit(again, columns, kind, reason):
    with pytest.raises(kind, match=reason):
        again(columns)


def test_the_frame_carries_the_names():
    data = read({**PLAIN, "z": ["b", "a", "b"] * 10})
    frame, target = data.frame(), data.target()
    assert frame.columns == ["x", "z=a"]
    assert np.array_equal(frame.to_numpy(), data.X)
    assert target.name == "y"


# --- numbers as people write them -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "values", "example"),
    [
        (["$31,085.10", "-$2.5", "$ 7", "$1,000,000"], [31085.1, -2.5, 7, 1e6], "'$31,085.10'"),
        (["70.5 %", "1%", "-3 %", "0.25 %"], [70.5, 1, -3, 0.25], "'70.5 %'"),
        (["1.234,5", "12,5", "3", "1.000"], [1234.5, 12.5, 3, 1000], "'1.234,5'"),
        (["1 234,5 €", "0,125 €", "3 €", "-1 €"], [1234.5, 0.125, 3, -1], "'1 234,5 €'"),
        (["1'234.50", "5", "6", "7"], [1234.5, 5, 6, 7], '"1\'234.50"'),
        (["1,234", "2,000", "12", "7"], [1234, 2000, 12, 7], "'2,000'"),
        (["1,5", "2", "3", "4"], [1.5, 2, 3, 4], "'1,5'"),
    ],
)
def test_numbers_as_people_write_them_are_numbers_with_a_note(cells, values, example):
    data = read({"y": np.arange(40.0), "z": cells * 10})
    assert data.X[:4, 0].tolist() == values
    assert f"Column 'z' is text that spells numbers: {example} is read as" in notes(data)
    # A single new row is read with the decimal mark that all the rows showed.
    again = tables.read_like(pl.DataFrame({"z": ["2,500"]}), data.recipe, target="optional")
    comma = data.recipe.columns[0].mark == ","
    assert again.X.tolist() == [[2.5 if comma else 2500.0]]


@pytest.mark.parametrize(
    "cells", [["1,23", "1,2,3"], ["$", "€5$x"], ["--5", "1.2.3,4,5"], ["12-05", "1 2"]]
)
def test_what_is_no_number_stays_text(cells):
    assert read({**PLAIN, "z": [cells[1], "x"] * 15}).recipe.columns[1].kind == "levels"


def test_categories_stay_categories_though_they_look_like_numbers():
    data = read({**PLAIN, "z": pl.Series(["1", "2", "3"] * 10, dtype=pl.Categorical)})
    assert data.feature_names == ("x", "z=2", "z=3")


def test_numbers_that_may_be_a_code_are_noted_and_used():
    codes = np.arange(N) * 37 + 10_000
    for name, values in {
        "place": codes,
        "customer_id": np.arange(N) + 1,
        "district": [f"{i:04d}" for i in range(N)],
    }.items():
        data = read({**PLAIN, name: values})
        assert data.feature_names == ("x", name)
        assert f"Column {name!r} may be a code" in notes(data)
    for values in (np.arange(N) + 1985, np.arange(N) * 37.5 + 10_000, np.arange(N) * 5000 + 1):
        assert read({**PLAIN, "z": values}).notes == ()
    assert "code" not in notes(read({"x": PLAIN["x"], "y": codes}))
