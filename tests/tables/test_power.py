"""Powers of the target: the same in memory and in parts, turned back in files."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regimix import MixedLinearRegression, scan_parquet, tables
from regimix.data.power import raised, returned
from regimix.engines import parquet as engine_parquet
from regimix.errors import DataError, ParameterError
from regimix.tables import Recipe, parquet
from tests.tables.parquets import write_files

pytestmark = pytest.mark.usefixtures("searched_once")

POWERS = [0.0, 0.5, -1.0, 2.0]


def prices(n=300):
    """Return two regimes of the logarithm, a gap in each column, and keys."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    line = np.where(rng.random(n) < 0.5, 2 + x, -2 - x)
    frame = pl.DataFrame({"id": [f"r{i}" for i in range(n)], "x": x, "price": np.exp(line)})
    row = pl.int_range(n)
    noisy = pl.col("price") * pl.Series(np.exp(0.1 * rng.normal(size=n)))
    return frame.with_columns(
        price=pl.when(row == 3).then(None).otherwise(noisy),
        # Not used, so that no power is needed here.
        x=pl.when(row == 5).then(None).otherwise("x"),
    ).with_columns(price=pl.when(row == 5).then(-1.0).otherwise("price"))


@given(st.floats(1e-3, 1e3), st.sampled_from([1.0, 3.0, *POWERS]))
def test_a_power_is_turned_back(value, power):
    assert returned(raised([value], power), power) == pytest.approx([value])


def test_what_has_no_power_is_not_a_number():
    assert np.isnan(raised([0.0, -1.0, np.inf, -np.inf, np.nan], 0.0)).all()
    assert np.isnan(raised([0.0, np.inf], -1.0)).all()
    assert np.isnan(raised([-1.0, 1e200], 2.0)).all()
    assert raised([0.0], 0.5) == [0.0]


@pytest.mark.parametrize(("values", "power"), [([-0.1], 0.5), ([0.0], -1.0), ([800.0], 0.0)])
def test_predictions_that_no_response_has_are_blank(values, power):
    assert np.ma.getmaskarray(returned(np.array(values), power)).all()


@pytest.mark.parametrize("power", POWERS)
def test_memory_and_parts_agree(tmp_path, monkeypatch, power):
    monkeypatch.setattr(parquet, "SMALLEST_PART", 2_000)
    frame = prices()
    rows = write_files(tmp_path / "rows", frame, group_rows=40)
    data = tables.read(rows, target="price", key="id", power=power)
    table = scan_parquet(rows, "price", key="id", power=power)
    y = np.concatenate([piece.y for reader in table.readers for piece in reader()])
    np.testing.assert_array_equal(y, data.y)
    used = frame.drop_nulls()["price"].to_numpy()
    np.testing.assert_allclose(data.y, np.log(used) if power == 0 else used**power)
    np.testing.assert_array_equal(data.y_read, used)
    assert table.recipe == data.recipe
    assert table.target_name == data.target_name == data.target().name == data.recipe.response
    assert data.recipe.power == power


def test_files_hold_the_target_as_it_was_read_and_predictions_in_its_units(tmp_path):
    frame = prices()
    rows = write_files(tmp_path / "rows", frame)
    data = tables.read(rows, target="price", key="id", power=0)
    mixture = MixedLinearRegression(random_state=0).fit(data.frame(), data.target()).mixture_
    assert mixture.n_components == 2
    assert mixture.target_name == "log price"
    new = tables.read_like(rows, data.recipe, target="optional")
    tables.write_labels(tmp_path / "memory.parquet", new, mixture)
    tables.write_label_parts(tmp_path / "parts", tables.scan_like(rows, data.recipe), mixture)
    memory = pl.read_parquet(tmp_path / "memory.parquet")
    parts = pl.read_parquet(tmp_path / "parts").drop_nulls("regime")
    both = memory.drop_nulls("regime")
    assert parts["price"].to_list() == both["price"].to_list() == data.y_read.tolist()
    assert parts["regime"].to_list() == both["regime"].to_list() == mixture.labels.tolist()
    expected = np.exp(mixture.predict(new.X))
    memory = memory.filter(pl.col("left_out") == "")
    np.testing.assert_allclose(memory["prediction"], expected)
    np.testing.assert_allclose(parts["prediction"], both["prediction"])
    each = np.exp(mixture.predict_components(new.X)[:, 1])
    np.testing.assert_allclose(memory["prediction_1"], each)


def test_a_prediction_that_no_target_has_is_blank_in_files(tmp_path):
    x = np.linspace(1, 9, 60)
    noise = 0.1 * np.random.default_rng(0).normal(size=60)
    data = tables.from_frame(pl.DataFrame({"x": x, "y": (x + noise) ** 2}), target="y", power=0.5)
    mixture = MixedLinearRegression(random_state=0).fit(data.frame(), data.target()).mixture_
    new = write_files(tmp_path / "new", pl.DataFrame({"x": [-3.0, 3.0]}), 1)
    table = tables.scan_like(new, data.recipe, target="optional")
    tables.write_label_parts(tmp_path / "parts", table, mixture)
    read = tables.read_like(new, data.recipe, target="optional")
    tables.write_labels(tmp_path / "memory.csv", read, mixture)
    for written in (pl.read_parquet(tmp_path / "parts"), pl.read_csv(tmp_path / "memory.csv")):
        for name in ("prediction", "prediction_0"):
            assert written[name][0] is None
            assert written[name][1] == pytest.approx(9, abs=0.5)


@pytest.mark.parametrize(
    ("power", "bad", "why"),
    [
        (0.0, 0.0, "no logarithm in {} (0): values must be above 0."),
        (-1.0, 0.0, "no power -1 in {} (0): values must be above 0."),
        (0.5, -2.5, "no power 0.5 in {} (-2.5): values must not be negative."),
        (2.0, 1e200, "no power 2 in {} (1e+200): it would be too large."),
    ],
)
@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("batch_rows", [16, 1024])
def test_a_value_without_a_power_is_named(tmp_path, monkeypatch, power, bad, why, key, batch_rows):
    monkeypatch.setattr(engine_parquet, "BATCH_BYTES", 1)
    monkeypatch.setattr(engine_parquet, "FEWEST_BATCH_ROWS", batch_rows)
    monkeypatch.setattr(parquet, "PIECE_BYTES", 16 * 10)  # ten rows
    frame = prices().with_columns(
        price=pl.when(pl.int_range(300) == 170).then(bad).otherwise("price")
    )
    rows = write_files(tmp_path / "rows", frame, group_rows=40)
    said = "column 'price' has " + why.format("row 171" if key is None else "id r170")
    with pytest.raises(DataError) as refused:
        tables.read(rows, target="price", features=["x"], key=key, power=power)
    assert str(refused.value).startswith(said)
    assert "leave such rows out" in str(refused.value)
    table = scan_parquet(rows, "price", ["x"], key=key, power=power)
    for read in (lambda reader: list(reader()), lambda reader: labels_of(reader)):
        with pytest.raises(DataError) as in_parts:
            _ = [read(reader) for reader in table.readers]
        assert str(in_parts.value) == str(refused.value)


def labels_of(reader):
    return [list(reader.labelled(span, 30)) for span in reader.spans]


@pytest.mark.parametrize("power", [np.nan, np.inf, "log", True, None])
def test_a_power_must_be_a_number(power):
    with pytest.raises(ParameterError, match="power must be a number"):
        tables.from_frame(prices(), target="price", power=power)
    plain = tables.from_frame(prices(), target="price", features=["x"]).recipe.to_json()
    with pytest.raises(DataError, match="not a recipe"):
        Recipe.from_json({**plain, "power": power})


def test_recipes_know_the_power_and_older_ones_have_none():
    recipe = tables.from_frame(prices(), target="price", features=["x"], power=0.5).recipe
    plain = recipe.to_json()
    assert Recipe.from_json(plain) == recipe
    assert recipe.response == "√price"
    assert "the value whose power 0.5 is expected, not the mean of 'price'" in recipe.note
    del plain["power"]
    old = Recipe.from_json(plain)
    assert (old.power, old.response, old.note) == (1.0, "price", "")
