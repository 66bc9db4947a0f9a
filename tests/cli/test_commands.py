"""``predict``, ``report``, ``synth`` and ``demo``."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from regimix import MixedLinearRegression, load, save


@pytest.fixture
def model(regimix, table):
    assert regimix("fit", table, "-y", "y", "--key", "id", "--model", "m.regimix", "-q").code == 0
    return table.parent / "m.regimix"


def test_predict_labels_rows_as_the_fit_did(regimix, table, model):
    ran = regimix("predict", model, table, "--out", "p.csv")
    assert ran.code == 0
    mixture = load(model)
    outliers = int((mixture.labels < 0).sum())
    assert f"600 rows, {outliers} of them outliers" in ran.out
    written = pl.read_csv("p.csv")
    assert written["regime"].to_list() == mixture.labels.tolist()
    assert written["id"].to_list() == [f"id{i}" for i in range(600)]


def test_predict_needs_no_response(regimix, table, model):
    pl.read_csv(table).drop("y").write_parquet("new.parquet")
    ran = regimix("predict", model, "new.parquet", "--out", "p.parquet")
    assert ran.code == 0
    assert "without the column y" in ran.out
    rows = pl.read_csv(table)
    expected = load(model).predict(rows.select("x0", "x1", "x2").to_numpy())
    np.testing.assert_allclose(pl.read_parquet("p.parquet")["prediction"], expected)


@pytest.mark.parametrize("blank", [[1], [3, 7, 8]])
def test_predict_labels_the_rows_that_have_a_response(regimix, table, model, blank):
    rows = pl.read_csv(table)
    rows.with_columns(rows["y"].scatter(blank, None)).write_csv("new.csv")
    ran = regimix("predict", model, "new.csv", "--out", "p.csv")
    assert ran.code == 0
    assert "without the column" not in ran.out
    assert f"; {len(blank)} row{'s' * (len(blank) > 1)} without y: predicted, not as" in ran.out
    expected = load(model).labels.tolist()
    for row in blank:
        expected[row] = None
    assert f"{sum(label == -1 for label in expected)} of them outliers" in ran.out
    written = pl.read_csv("p.csv")
    assert written["regime"].to_list() == expected
    assert written["prediction"].null_count() == 0


def test_predict_says_that_the_response_is_blank(regimix, table, model):
    pl.read_csv(table).with_columns(y=pl.lit("")).write_csv("new.csv")
    ran = regimix("predict", model, "new.csv", "--out", "p.csv")
    assert ran.code == 0
    assert "the column y is blank" in ran.out


@pytest.fixture
def gated(regimix, table):
    """Save two models whose shares depend on a column: one of the features, and another one."""
    rows = pl.read_csv(table)
    X, hour = rows.select("x0", "x1", "x2"), rows.select(hour="x0")
    own = MixedLinearRegression(gating="logistic", random_state=0).fit(X, rows["y"])
    other = MixedLinearRegression(gating="logistic", random_state=0)
    other.fit(X, rows["y"], gating_features=hour)
    save(own, "own.regimix")
    save(other, "other.regimix")
    return own


@pytest.mark.parametrize("command", [("predict", "-o", "p.csv"), ("report", "-o", "r.html")])
def test_a_gate_of_other_columns_is_refused(regimix, table, gated, command):
    ran = regimix(command[0], "other.regimix", table, *command[1:])
    assert ran.code == 2
    assert "gating_features (hour)" in ran.err
    assert "in Python" in ran.err
    assert not (table.parent / command[-1]).exists()


def test_a_gate_of_the_features_counts_in_outliers_too(regimix, table, gated):
    ran = regimix("predict", "own.regimix", table, "-o", "p.csv")
    labels = pl.read_csv("p.csv")["regime"].to_numpy()
    rows = pl.read_csv(table)
    assert np.array_equal(labels, gated.assign(rows.select("x0", "x1", "x2"), rows["y"]))
    assert f"{(labels < 0).sum()} of them outlier" in ran.out


def test_one_row_is_not_several(regimix, table, model):
    pl.read_csv(table).head(1).write_csv("one.csv")
    assert "p.csv: 1 row, " in regimix("predict", model, "one.csv", "-o", "p.csv").out
    assert "s.csv: 1 row, 1 feature x0" in regimix("synth", "s.csv", "-n", 1, "-d", 1, "-m", 1).out


def test_predict_refuses_a_table_without_the_features(regimix, table, model):
    pl.read_csv(table).drop("x1").write_csv("less.csv")
    ran = regimix("predict", model, "less.csv", "--out", "p.csv")
    assert ran.code == 2
    assert "'x1'" in ran.err


def test_a_model_from_python_has_columns_too(regimix, table, model):
    mixture = load(model)
    save(mixture, "python.regimix")
    assert regimix("predict", "python.regimix", table, "--out", "p.csv").code == 0
    assert pl.read_csv("p.csv")["regime"].to_list() == mixture.labels.tolist()


def test_report_from_a_model_and_rows(regimix, table, model):
    ran = regimix("report", model, table, "-o", "r.html", "--title", "Two <lines>")
    assert ran.code == 0
    assert "r.html: a report on 600 rows." in ran.out
    page = (table.parent / "r.html").read_text(encoding="utf-8")
    assert "Two &lt;lines&gt;" in page
    assert "id" in page


def test_text_columns_survive_the_round_trip(regimix, table):
    rows = pl.read_csv(table).with_columns(
        pl.Series("town", ["Oslo", "Rome", "Oslo"] * 200), pl.Series("day", ["a"] * 600)
    )
    rows.write_csv("town.csv")
    fit = regimix("fit", "town.csv", "-y", "y", "--key", "id", "--model", "t.regimix", "--json")
    assert "town=Rome" in fit.summary["features"]
    assert any("town" in note for note in fit.summary["notes"])
    rows.sample(fraction=1, shuffle=True, seed=0).write_csv("shuffled.csv")
    assert regimix("predict", "t.regimix", "shuffled.csv", "-o", "p.csv").code == 0
    labels = dict(pl.read_csv("p.csv").select("id", "regime").iter_rows())
    assert [labels[f"id{i}"] for i in range(600)] == load("t.regimix").labels.tolist()


def test_synth_writes_rows_and_their_truth(regimix, tmp_path):
    size = ("-n", "300", "-d", "4", "-m", "3", "--shares", "3,2,1", "--intercepts", "0,1,2")
    ran = regimix("synth", "s.parquet", *size, "--corruption", "0.1", "--noise", "0.2")
    assert ran.code == 0
    rows = pl.read_parquet("s.parquet")
    assert rows.columns == ["x0", "x1", "x2", "x3", "y"]
    truth = json.loads((tmp_path / "s.parquet.truth.json").read_text())
    labels = np.array(truth["labels"])
    assert np.bincount(labels + 1).tolist() == [30, 135, 90, 45]
    assert truth["corrupted"] == 30
    X, y = rows.drop("y").to_numpy(), rows["y"].to_numpy()
    for regime in truth["regimes"]:
        mine = labels == regime["label"]
        residuals = y[mine] - X[mine] @ regime["coef"] - regime["intercept"]
        assert regime["noise"] == 0.2
        assert np.abs(residuals).max() < 6 * regime["noise"]


def test_synth_adversarial_rows_agree_on_one_wrong_regime(regimix, tmp_path):
    ran = regimix(
        "synth", "s.csv", "--corruption", "0.2", "--corruption-kind", "adversarial", "--noise", "0"
    )
    assert ran.code == 0
    truth = json.loads((tmp_path / "s.csv.truth.json").read_text())
    rows = pl.read_csv("s.csv")
    wrong = np.array(truth["labels"]) < 0
    predicted = rows.drop("y").to_numpy() @ truth["wrong_coef"]
    np.testing.assert_allclose(rows["y"].to_numpy()[wrong], predicted[wrong])


def test_the_same_seed_makes_the_same_rows(regimix, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert regimix("synth", f"{name}.csv", "--seed", seed, "-q").out == ""
    a, b, c = (tmp_path.joinpath(f"{name}.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_the_demo_ends_with_the_path_of_a_report(regimix, tmp_path):
    ran = regimix("demo")
    assert ran.code == 0
    assert "2 linear regimes in 150 rows of tone.csv" in ran.out
    last = ran.out.splitlines()[-1]
    assert last == str(tmp_path / "regimix-demo.html")
    assert "stretchratio" in (tmp_path / "regimix-demo.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_failure(tmp_path, closed):
    model = tmp_path / "m.regimix"
    (tmp_path / "t.csv").write_text(
        "x,y\n" + "".join(f"{i},{2 * i + i * i % 5 / 10}\n" for i in range(30))
    )
    words = f"{sys.executable} -m regimix fit t.csv --target y --model {model} {closed}"
    ended = subprocess.run(words, shell=True, cwd=tmp_path, check=False, timeout=600)
    assert ended.returncode == 0
    assert model.exists()
