"""Tables that are written: whole, readable, and harmless in a spreadsheet."""

import csv
import dataclasses
import gzip
import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regimix import MixedLinearRegression, tables
from regimix.datasets import load_tone
from regimix.errors import DataError, ParameterError
from regimix.tables.write import _encoded

pytestmark = pytest.mark.usefixtures("searched_once")

COLUMNS = {
    "key": np.array(["a", "b,c", 'd"e'], dtype=object),
    "n": np.array([-1, 0, 2]),
    "p": np.array([0.1, -2.5, 1e-300]),
}


def read_back(path):
    name = path.name.removesuffix(".gz")
    data = path.read_bytes()
    data = io.BytesIO(gzip.decompress(data) if path.name.endswith(".gz") else data)
    if name.endswith(".parquet"):
        return pl.read_parquet(data)
    if name.endswith((".arrow", ".feather", ".ipc")):
        return pl.read_ipc(data)
    if name.endswith(".jsonl"):
        return pl.read_ndjson(data)
    return pl.read_csv(data, separator="\t" if name.endswith(".tsv") else ",")


@pytest.mark.parametrize(
    "name",
    ["a.csv", "a.tsv", "a.parquet", "a.arrow", "a.feather", "a.jsonl", "a.csv.gz", "a.jsonl.gz"],
)
def test_every_format_holds_the_same(tmp_path, name):
    path = tmp_path / name
    tables.write_table(path, COLUMNS)
    tables.write_table(path, COLUMNS)
    frame = read_back(path)
    assert frame.to_dict(as_series=False) == {name: list(v) for name, v in COLUMNS.items()}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a", "a.xlsx", "a.parquet.gz"])
def test_other_names_are_refused(tmp_path, name):
    with pytest.raises(ParameterError, match=r"must end in \.csv, \.tsv.* got"):
        tables.write_table(tmp_path / name, COLUMNS)


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        tables.write_table(path, COLUMNS)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


# --- formulas -------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://a","b")']


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("cell", FORMULAS)
def test_text_that_a_spreadsheet_would_run_is_made_harmless(tmp_path, name, cell):
    path = tmp_path / name
    tables.write_table(path, {"k": [cell, "plain", "a=b"], cell: [-1.5, 2.0, 3.0]})
    with path.open(newline="") as file:
        rows = list(csv.reader(file, delimiter="\t" if name.endswith("tsv") else ","))
    assert rows == [
        ["k", "'" + cell],
        ["'" + cell, "-1.5"],
        ["plain", "2.0"],
        ["a=b", "3.0"],
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_no_cell_of_text_begins_like_a_formula(cells):
    data = _encoded(pl.DataFrame({"k": cells}), "csv").decode()
    for row in csv.reader(io.StringIO(data, newline="")):
        assert not row or not row[0].startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_other_formats_keep_text_as_it_is(tmp_path, name):
    path = tmp_path / name
    tables.write_table(path, {"=k": ["=1+1"]})
    assert read_back(path).to_dict(as_series=False) == {"=k": ["=1+1"]}


# --- labelled rows --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tone():
    data = load_tone()
    frame = pl.DataFrame({"stretch": data.X[:, 0], "tuned": data.y})
    read = tables.from_frame(frame, target="tuned")
    fit = MixedLinearRegression(random_state=0).fit(read.frame(), read.target())
    return read, fit.mixture_


def test_names_reach_the_model(tone):
    _, mixture = tone
    assert mixture.feature_names == ("stretch",)
    assert mixture.target_name == "tuned"


def test_labels_of_a_fit(tmp_path, tone):
    data, mixture = tone
    path = tmp_path / "labels.parquet"
    tables.write_labels(path, data, mixture, labels=mixture.labels)
    frame = pl.read_parquet(path)
    assert frame.columns == [
        "row", "tuned", "regime", "prediction", "probability_0", "probability_1",
        "probability_outlier", "outlier_score",
    ]  # fmt: skip
    assert frame["row"].to_list() == list(range(1, 151))
    assert np.array_equal(frame["regime"], mixture.labels)
    assert np.array_equal(frame["prediction"], mixture.predict(data.X))
    total = frame.select(pl.sum_horizontal(pl.col("^probability_.*$"))).to_series()
    assert np.allclose(total, 1)
    assert np.array_equal(frame["outlier_score"], mixture.outlier_score(data.X, data.y))


def test_labels_of_new_rows_are_assigned(tone):
    data, mixture = tone
    columns = tables.label_columns(data, mixture)
    assert np.array_equal(columns["regime"], mixture.assign(data.X, data.y))


def test_predictions_without_a_target(tone):
    data, mixture = tone
    columns = tables.label_columns(dataclasses.replace(data, y=None), mixture)
    assert list(columns) == ["row", "prediction", "prediction_0", "prediction_1"]
    assert np.array_equal(columns["prediction_1"], mixture.predict_components(data.X)[:, 1])


@pytest.mark.parametrize("name", ["l.csv", "l.parquet"])
@pytest.mark.parametrize("known", [[0, 2, 5], []])
def test_rows_without_a_target_are_blank_and_the_others_labelled(tmp_path, tone, name, known):
    data, mixture = tone
    y = np.full(data.n_rows, np.nan)
    y[known] = data.y[known]
    tables.write_labels(tmp_path / name, dataclasses.replace(data, y=y), mixture)
    frame = read_back(tmp_path / name)
    whole = tables.label_columns(data, mixture)
    for column in ("tuned", "regime", "probability_0", "probability_outlier", "outlier_score"):
        assert frame[column].null_count() == data.n_rows - len(known)
        assert frame[column].gather(known).to_list() == list(whole[column][known])
    assert np.array_equal(frame["prediction"], whole["prediction"])
    assert np.array_equal(frame["prediction_1"], mixture.predict_components(data.X)[:, 1])


def test_columns_of_the_same_name_do_not_overwrite_each_other(tone):
    data, mixture = tone
    recipe = dataclasses.replace(data.recipe, key="regime", target="prediction")
    named = dataclasses.replace(data, recipe=recipe)
    columns = tables.label_columns(named, mixture)
    assert list(columns)[:4] == ["regime", "prediction", "regime_", "prediction_"]
    assert np.array_equal(columns["regime"], data.keys)


class Gate:
    from_features = True

    def shares(self, X):
        return np.tile([1.0, 0.0], (len(X), 1))


def test_a_gate_is_asked(tone):
    data, mixture = tone
    gated = dataclasses.replace(mixture, gate=Gate())
    columns = tables.label_columns(data, gated)
    assert np.array_equal(columns["prediction"], mixture.predict_components(data.X)[:, 0])
    assert (columns["probability_1"] == 0).all()
    told = tables.label_columns(data, gated, shares=np.tile([0.0, 1.0], (data.n_rows, 1)))
    assert (told["probability_0"] == 0).all()


def test_a_gate_of_other_columns_is_not_left_out_in_silence(tone):
    data, mixture = tone
    gate = Gate()
    gate.from_features, gate.names = False, ("hour",)
    gated = dataclasses.replace(mixture, gate=gate)
    with pytest.raises(DataError, match=r"\(hour\).*shares=mixture\.gate\.shares\(Z\)"):
        tables.label_columns(data, gated)
    told = tables.label_columns(data, gated, shares=gate.shares(data.X))
    assert (told["probability_1"] == 0).all()
