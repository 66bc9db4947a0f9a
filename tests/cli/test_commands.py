"""``predict``, ``report``, ``synth`` and ``demo``."""

import html
import json
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from regimix import MixedLinearRegression, load, save
from regimix.cli.commands import _assigned
from regimix.errors import RegimixWarning
from regimix.words import number
from tests.patience import ENOUGH

pytestmark = pytest.mark.usefixtures("searched_once")


@pytest.fixture(scope="module")
def written():
    """Model files by what they are models of: a table that is always the same is fitted once."""
    return {}


@pytest.fixture
def model(regimix, table, written):
    path, rows = table.parent / "m.regimix", table.read_bytes()
    if rows not in written:
        fit = ("fit", table, "-y", "y", "--key", "id", "--model", path, "-q")
        assert regimix(*fit).code == 0
        written[rows] = path.read_bytes()
    path.write_bytes(written[rows])
    return path


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
def test_a_gate_of_other_columns_needs_them(regimix, table, gated, command):
    ran = regimix(command[0], "other.regimix", table, *command[1:])
    assert ran.code == 2
    assert "no column 'hour' (a column for the gating)" in ran.err
    assert not (table.parent / command[-1]).exists()
    pl.read_csv(table).with_columns(hour="x0").write_csv("with.csv")
    assert regimix(command[0], "other.regimix", "with.csv", *command[1:]).code == 0


def test_a_gate_of_columns_without_names_is_refused(regimix, table):
    rows = pl.read_csv(table)
    fit = MixedLinearRegression(gating="logistic", random_state=0)
    fit.fit(rows.select("x0", "x1", "x2"), rows["y"], gating_features=rows.select("x0").to_numpy())
    save(fit, "other.regimix")
    ran = regimix("predict", "other.regimix", table, "-o", "p.csv")
    assert ran.code == 2
    assert "gating_features that have no names" in ran.err
    assert "in Python" in ran.err


def with_regimes():
    """Two regimes; a text and an age, with gaps, say which one a row follows."""
    rng = np.random.default_rng(0)
    n = 600
    firm, age, x = rng.choice(["north", "south", "east"], n), rng.uniform(20, 60, n), rng.random(n)
    first = (firm == "north") | (age > 40)
    y = np.where(first, 300 + 200 * x, -100 - 200 * x) + rng.normal(size=n)
    frame = pl.DataFrame({"id": np.arange(n) + 7, "x": x, "firm": firm, "age": age, "y": y})
    gaps = pl.arange(0, n) % 50
    frame = frame.with_columns(
        pl.when(gaps != 3).then(pl.col("x")).alias("x"),
        pl.when(gaps != 7).then(pl.col("firm")).alias("firm"),
    )
    return frame.with_columns(first=first)


def test_a_gate_of_one_regime_is_spoken_of_once(regimix):
    with_regimes().drop("first").write_csv("rows.csv")
    told = ("--components", "1", "--gating", "logistic", "--gating-columns", "age")
    ran = regimix("fit", "rows.csv", "--target", "y", "--key", "id", *told)
    assert ran.code == 0, ran.err
    said = " ".join((ran.err + ran.out).split())
    assert said.count("the gating has nothing to tell apart.") == 1
    assert "predicted from 'age'" not in said
    assert "efore the gating" not in said


@pytest.mark.parametrize("gating", ["logistic", "trees"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_gate_is_learnt_saved_and_used(regimix, gating, ending, tmp_path):
    """In memory from a CSV file, and part by part from Parquet."""
    frame = with_regimes()
    rows, first = frame.drop("first"), frame["first"].to_numpy()
    here = ending == "csv"
    rows.write_csv("rows.csv") if here else rows.write_parquet("rows.parquet", row_group_size=100)
    place = () if here else ("--engine", "parts")
    out = "labels.csv" if here else "labels/"
    told = ("--gating", gating, "--gating-columns", "firm,age")
    ran = regimix(
        *("fit", f"rows.{ending}", "--target", "y", "--key", "id", *told, *place),
        *("--model", "m.regimix", "--labels", out, "--json", "--report", "r.html"),
    )
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    assert said["features"] == ["x"]
    assert said["gating"]["kind"] == gating
    assert [name.partition("=")[0] for name in said["gating"]["columns"]] == ["firm", "firm", "age"]
    assert said["gating"]["hit_rate"] > 0.95
    assert "The regime of a row is predicted from 'firm', 'age'" in ran.err
    shares = [regime["share"] for regime in said["regimes"]]
    alone = f"the largest regime alone would be right in {max(shares) / sum(shares):.1%}. The"
    assert alone in " ".join(ran.err.split())
    assert regimix("report", "m.regimix", f"rows.{ending}", "-o", "again.html").code == 0
    new = rows.drop("y", "id").head(100)
    new.write_csv("new.csv") if here else new.write_parquet("new.parquet")
    ran = regimix("predict", "m.regimix", f"new.{ending}", "-o", "p.csv" if here else "p/", *place)
    assert ran.code == 0, ran.err
    predicted = pl.read_csv("p.csv") if here else pl.read_parquet("p/new.parquet")
    assert predicted.columns[:6] == [
        *("row", "prediction", "likely_regime", "likely_probability", "lower", "upper"),
    ]
    assert predicted.height == 100
    blank = predicted["prediction"].is_null().to_numpy()
    assert blank.tolist() == [i % 50 == 3 for i in range(100)]
    gap = np.arange(100) % 50 == 7
    clear = ~blank & ~gap & (np.abs(frame["age"].head(100).to_numpy() - 40) > 3)
    upper = predicted["prediction_0"].to_numpy()[clear][0] > 0  # which one is the first regime
    likely = predicted["likely_regime"].to_numpy()[clear] == (0 if upper else 1)
    assert (likely == first[:100][clear]).mean() > 0.97
    # Without the firm a row has the shares of all rows.
    share = predicted["likely_probability"].to_numpy()[gap]
    assert share.max() - share.min() < 1e-12
    truth = frame["y"].head(100).to_numpy()[clear]
    inside = predicted.filter(clear).select(
        pl.lit(pl.Series(truth)).is_between("lower", "upper").mean()
    )
    assert inside.item() > 0.9


def test_a_gate_is_learnt_on_a_cluster_as_in_parts(regimix, tmp_path):
    with_regimes().drop("first").write_parquet("rows.parquet", row_group_size=100)
    told = ("--gating", "logistic", "--gating-columns", "firm,age", "--drop", "id")
    hits = []
    for place in (("memory",), ("parts",), ("dask", "--workers", "1")):
        out = f"{place[0]}.parquet" if place[0] == "memory" else f"{place[0]}/"
        files = ("--labels", out, "--report", "r.html", "--json")
        ran = regimix("fit", "rows.parquet", "-y", "y", *told, *files, "--engine", *place)
        assert ran.code == 0, ran.err
        said = json.loads(ran.out)
        hits.append(said["gating"])
        # One rule for all engines: regimes, counts and probabilities are those of the gate.
        written = pl.read_parquet(out if place[0] == "memory" else f"{out}/rows.parquet")
        used = written.filter(pl.col("regime").is_not_null())
        chances = used.select("probability_0", "probability_1", "probability_outlier").to_numpy()
        labels = used["regime"].to_numpy()
        np.testing.assert_array_equal(
            chances[:, :2].argmax(axis=1)[labels >= 0], labels[labels >= 0]
        )
        counts = [np.count_nonzero(labels == regime["label"]) for regime in said["regimes"]]
        assert counts == [regime["rows"] for regime in said["regimes"]]
        assert said["rows"]["in_doubt"] == np.count_nonzero(chances.max(axis=1) < 0.8)
        page = Path("r.html").read_text(encoding="utf-8")
        assert "not those that the model was fitted to" not in page
    for one, other in ((0, 1), (1, 2)):
        assert hits[one]["columns"] == hits[other]["columns"]
        assert hits[one]["hit_rate"] == pytest.approx(hits[other]["hit_rate"])


def test_labels_carry_columns_and_rows_that_were_left_out(regimix):
    frame = with_regimes().drop("first")
    frame.write_csv("rows.csv")
    command = ("fit", "rows.csv", "-y", "y", "--features", "x", "--labels", "l.csv", "-q")
    assert regimix(*command, "--key", "id", "--with-columns", "all").code == 0
    labels = pl.read_csv("l.csv")
    assert labels.columns[:5] == ["id", "x", "firm", "age", "y"]
    assert labels["id"].to_list() == frame["id"].to_list()
    assert labels["firm"].to_list() == frame["firm"].to_list()
    out = frame["x"].is_null()
    assert labels["regime"].is_null().to_list() == out.to_list()
    assert (labels["left_out"] == "'x' missing or infinite").fill_null(False).to_list() == (
        out.to_list()
    )
    assert regimix(*command, "--with-columns", "age").code == 0
    assert pl.read_csv("l.csv").columns[:4] == ["row", "age", "y", "regime"]
    ran = regimix(*command, "--with-columns", "ages")
    assert (ran.code, "Did you mean 'age'" in ran.err) == (2, True)


@pytest.mark.parametrize("command", [("predict", "p.csv"), ("report", "r.html")])
def test_the_model_comes_before_the_table(regimix, table, model, command):
    ran = regimix(command[0], table, model, "-o", command[1])
    assert ran.code == 2
    assert "the model comes first" in ran.err
    ran = regimix(command[0], table, table, "-o", command[1])
    assert "cannot be read as a model" in ran.err


def test_options_of_a_gating_must_go_together(regimix, table):
    for options, words in (
        (("--gating-columns", "x0"), "add --gating logistic"),
        (("--gating", "forest"), "'forest' is not one of 'logistic', 'trees'"),
        (("--gating", "trees", "--gating-columns", "x9"), "no column 'x9' (a column for the"),
        (("--gating", "trees", "--gating-columns", "y"), "which new rows lack"),
    ):
        ran = regimix("fit", table, "--target", "y", *options)
        assert ran.code == 2
        assert words in ran.err, ran.err


def test_a_gate_of_the_features_counts_in_outliers_too(regimix, table, gated):
    ran = regimix("predict", "own.regimix", table, "-o", "p.csv")
    labels = pl.read_csv("p.csv")["regime"].to_numpy()
    rows = pl.read_csv(table)
    assert np.array_equal(labels, gated.assign(rows.select("x0", "x1", "x2"), rows["y"]))
    assert f"{(labels < 0).sum()} of them outlier" in ran.out


@pytest.mark.parametrize(
    ("outliers", "said"), [(0, "0 of them outliers"), (1, "1 of them an outlier")]
)
def test_one_outlier_is_counted_in_the_singular(outliers, said):
    file = SimpleNamespace(n_rows=9, n_dropped=0, n_outliers=outliers, n_unknown=0)
    assert _assigned([file], "y", there=True) == f", {said}"


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


def people(n=240):
    """Two groups, one of them told by a column; some rows came more than once, some have a hole."""
    rng = np.random.default_rng(5)
    x, group, town = rng.uniform(0, 4, n), np.arange(n) % 2, rng.integers(0, 3, n)
    y = 9 + np.where(group == 1, 2.0, -1.5) * x + 1.5 * (town == 2) + 0.3 * rng.standard_normal(n)
    return pd.DataFrame(
        {
            "age": np.where(np.arange(n) % 40 == 7, np.nan, x),
            "town of birth": np.array(["Oslo", "Rome", "Paris"])[town],
            "group": group + 0.1 * rng.standard_normal(n),
            "n": 1 + np.arange(n) % 3,
            "share": 0.5 + rng.random(n),
            "income": y,
        }
    )


@pytest.mark.parametrize(
    "options",
    [
        "--features age",
        "--features age --weights n",
        "--features age --weights share",
        "--features age --log",
        "--features age --power 0.5 --weights n",
        "--features 'age,town of birth' --weights n",
        "--features age --gating logistic --gating-columns 'group,town of birth' --weights n",
        "--features age,group --gating trees",
    ],
)
def test_the_python_of_a_report_gives_the_numbers_of_the_page(regimix, options, capsys):
    """It is run as it is written, beside the table alone."""
    table = people()
    table.to_csv("people.csv", index=False)
    fit = ("fit", "people.csv", "-y", "income", "-m", "2", "--model", "m.regimix", "-q")
    assert regimix(*fit, *shlex.split(options)).code == 0
    assert regimix("report", "m.regimix", "people.csv", "-o", "r.html").code == 0
    page = html.unescape(Path("r.html").read_text(encoding="utf-8"))
    (code,) = re.findall(r"<pre tabindex=\"0\"><code>(.*?)</code></pre>", page, re.DOTALL)
    assert "# table: the rows of the fit, as a data frame" in code
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RegimixWarning)
        namespace = {"table": table}
        exec(compile(code, "page", "exec"), namespace)
    again, before = namespace["fit"].mixture_, load("m.regimix")
    assert "no regime" not in capsys.readouterr().out
    for j in range(2):
        equation = again.equation(j).partition(" = ")[2]
        assert equation in page
        assert number(again.scale[j]) in page
    for name in ("coef", "intercept", "weights", "scale", "evidence", "mass"):
        known, found = getattr(before, name), getattr(again, name)
        np.testing.assert_allclose(found, known, rtol=1e-9, err_msg=name)
    assert (again.gate is None) == (before.gate is None)
    if before.gate is not None:
        assert again.gate.hit_rate == pytest.approx(before.gate.hit_rate, rel=1e-9)


def test_pages_count_rows_by_the_column_of_weights(regimix):
    """That of the fit and that of its model: the file has each row once."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 12, 800) / 4
    rows = pd.DataFrame({"x": x, "y": np.round(2 * x + rng.standard_normal(800), 1)})
    counted = rows.value_counts().rename("n").reset_index()
    rows.to_csv("long.csv", index=False)
    counted.to_csv("short.csv", index=False)
    said = []
    for name, options in (("long", ()), ("short", ("--weights", "n"))):
        files = ("--report", f"{name}.html", "--model", f"{name}.regimix", "-q")
        once = ("-y", "y", "-m", "1", "--outliers", "0", "--features", "x")
        assert regimix("fit", f"{name}.csv", *once, *options, *files).code == 0
        again = ("report", f"{name}.regimix", f"{name}.csv", "-o", f"{name}2.html")
        assert regimix(*again).code == 0
        for path in (f"{name}.html", f"{name}2.html"):
            page = Path(path).read_text(encoding="utf-8")
            tails = re.search(r"([\d.]+%) of its rows[^.]* are further off", page)[1]
            said.append((tails, re.search(r"smallest regime has about (\d+) rows", page)[1]))
    assert said == [said[0]] * 4
    assert said[0][1] == "800"


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
    ended = subprocess.run(words, shell=True, cwd=tmp_path, check=False, timeout=ENOUGH)
    assert ended.returncode == 0
    assert model.exists()
