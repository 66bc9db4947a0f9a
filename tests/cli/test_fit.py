"""``regimix fit``: what it prints, what it writes, how it ends."""

import html
import shlex

import numpy as np
import polars as pl
import pytest

from regimix import load
from regimix.cli import fitting
from regimix.tables import write_table
from regimix.words import percent

pytestmark = pytest.mark.usefixtures("searched_once")

FIT = ("--target", "y", "--drop", "id")


def test_it_prints_every_regime_with_its_equation_and_the_outliers(regimix, table, data):
    ran = regimix("fit", table, *FIT)
    assert ran.code == 0
    assert "2 linear regimes in 600 rows" in ran.out
    assert "R²" in ran.out
    assert " ± " in ran.out
    assert "outliers, the farthest first" in ran.out
    largest = np.argmax(np.abs(data.truth.coef[0]))
    assert f"{data.truth.coef[0, largest]:.1f}" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_the_summary_is_the_truth_in_json_and_alone_on_standard_output(regimix, table, data):
    ran = regimix("fit", table, *FIT, "--json")
    assert ran.code == 0
    summary = ran.summary
    assert summary["schema"] == 1
    doubtful = summary["rows"].pop("in_doubt")
    assert f" {percent(doubtful / 600)} of them in doubt" in " ".join(ran.err.split())
    assert summary["rows"] == {"read": 600, "dropped": 0, "used": 600, "mass": 600}
    assert summary["features"] == ["x0", "x1", "x2"]
    assert summary["exit_code"] == 0
    assert len(summary["regimes"]) == 2
    for regime, coef in zip(summary["regimes"], data.truth.coef, strict=True):
        for term, value in zip(regime["terms"], coef, strict=True):
            assert term["value"] == pytest.approx(value, abs=6 * term["std_err"])
    outliers = summary["outliers"]
    assert outliers["rows"] == pytest.approx(data.truth.corrupted.sum(), abs=10)
    farthest = [row["key"] - 1 for row in outliers["farthest"][:10]]
    assert data.truth.corrupted[farthest].all()
    assert "2 linear regimes" in ran.err


def test_a_key_column_names_the_outliers(regimix, table, data):
    ran = regimix("fit", table, "--target", "y", "--key", "id", "--json")
    keys = [row["key"] for row in ran.summary["outliers"]["farthest"][:10]]
    assert data.truth.corrupted[[int(key.removeprefix("id")) for key in keys]].all()


def test_it_writes_what_was_asked_for(regimix, table, data):
    files = {"--model": "m.regimix", "--labels": "l.parquet", "--report": "r.html"}
    ran = regimix("fit", table, *FIT, *(word for pair in files.items() for word in pair))
    assert ran.code == 0
    folder = table.parent
    mixture = load(folder / "m.regimix")
    assert mixture.n_components == 2
    assert mixture.target_name == "y"
    labels = pl.read_parquet(folder / "l.parquet")
    assert labels.height == 600
    assert labels["regime"].to_list() == mixture.labels.tolist()
    assert "<html" in (folder / "r.html").read_text(encoding="utf-8")
    for path in files.values():
        assert path in ran.err


def test_quiet_says_nothing(regimix, table):
    ran = regimix("fit", table, *FIT, "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_quiet_still_warns(regimix, table):
    ran = regimix("fit", table, *FIT, "--quiet", "--time-limit", "1e-9")
    assert ran.code == 3
    assert ran.out == ""
    assert ran.err.startswith("Warning: ")


def test_a_time_limit_is_told_in_the_words_of_the_command_line(regimix, table):
    ran = regimix("fit", table, *FIT, "--time-limit", "1e-9", "--model", "m.regimix")
    assert ran.code == 3
    assert "--time-limit" in ran.err
    assert "time_limit" not in ran.err
    assert (table.parent / "m.regimix").exists()


def test_nothing_to_find_is_exit_code_3(regimix, tmp_path):
    rng = np.random.default_rng(0)
    write_table(tmp_path / "none.csv", {"a": rng.normal(size=80), "y": rng.normal(size=80)})
    ran = regimix("fit", "none.csv", "--target", "y", "--json")
    assert ran.code == 3
    assert ran.summary["found"] is False
    assert ran.summary["exit_code"] == 3
    assert "No linear regime" in ran.err
    assert "constants explain y" in " ".join(ran.summary["warnings"])


def test_the_options_of_the_search_arrive(regimix, table):
    options = ("--components", "1", "--outliers", "0.1", "--search", "joint", "--seed", "7")
    ran = regimix("fit", table, *FIT, *options, "--jobs", "2", "--no-intercept", "--json")
    summary = ran.summary
    assert ran.code == 0
    assert len(summary["regimes"]) == 1
    assert summary["seed"] == 7
    assert summary["regimes"][0]["intercept"] == {"value": 0.0, "std_err": None}
    assert summary["outliers"]["rows"] == 60


@pytest.mark.parametrize("outliers", ["0", "auto"])
@pytest.mark.parametrize("noise", ["normal", "student"])
def test_outliers_and_the_law_of_the_noise_are_as_asked_for(regimix, table, outliers, noise):
    options = ("--outliers", outliers, "--noise", noise, "--model", "m.regimix", "--json")
    ran = regimix("fit", table, *FIT, "-m", "2", *options)
    assert ran.code == 0, ran.err
    assert (ran.summary["outliers"]["rows"] == 0) == (outliers == "0")
    mixture = load(table.parent / "m.regimix")
    assert mixture.settings.outliers == (0.0 if outliers == "0" else None)
    assert mixture.settings.noise == noise
    assert np.isfinite(mixture.noise_degrees) == (noise == "student")
    degrees = mixture.noise_degrees if noise == "student" else None
    assert {regime["noise_degrees"] for regime in ran.summary["regimes"]} == {degrees}
    said = " ".join(ran.err.split())
    assert ("Noise is the scale of Student's law with" in said) == (noise == "student")


def test_rows_can_be_sorted_into_regimes(regimix, table):
    ran = regimix("fit", table, *FIT, "-m", "2", "--search", "partition", "--json")
    assert ran.code == 0, ran.err
    assert ran.summary["outliers"]["rows"] == 0
    assert sum(regime["rows"] for regime in ran.summary["regimes"]) == 600


def test_the_options_of_the_table_arrive(regimix, tmp_path, table, data):
    rows = pl.read_csv(table).with_columns(
        pl.when(pl.int_range(600) < 5).then(None).otherwise(pl.col("x0")).alias("x0"),
        (1 + pl.int_range(600) % 3).alias("weight"),
    )
    rows.write_csv(tmp_path / "holes.csv")
    options = ("--features", "x0,x1", "--weights", "weight", "--key", "id", "--components", "1")
    ran = regimix("fit", "holes.csv", "--target", "y", *options, "--json")
    assert ran.summary["features"] == ["x0", "x1"]
    assert ran.summary["rows"] | {"in_doubt": 0} == {
        "read": 600,
        "dropped": 5,
        "used": 595,
        "mass": (1 + np.arange(600) % 3)[5:].sum(),
        "in_doubt": 0,
    }
    assert any("dropped: 5 of 600 rows" in note for note in ran.summary["notes"])
    refused = regimix("fit", "holes.csv", "--target", "y", *options, "--missing", "error")
    assert refused.code == 2
    assert "x0" in refused.err
    sample = regimix("fit", table, "--target", "y", "--drop", "id", "--rows", "300", "--json")
    assert sample.summary["rows"]["used"] == 300


def test_the_same_seed_gives_the_same_summary(regimix, table):
    first, second = (regimix("fit", table, *FIT, "--json").summary for _ in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_a_lack_of_rank_is_said_once(regimix, table):
    pl.read_csv(table).with_columns(pl.col("x0").alias("again")).write_csv("twice.csv")
    ran = regimix("fit", "twice.csv", *FIT, "--json")
    assert len(ran.summary["warnings"]) == 1
    terms = {term["feature"]: term["std_err"] for term in ran.summary["regimes"][0]["terms"]}
    assert terms["x0"] is terms["again"] is None
    assert terms["x1"] > 0


def test_terms_and_outliers_can_be_left_out(regimix, table):
    ran = regimix("fit", table, *FIT, "--terms", "0", "--show-outliers", "0")
    assert " ± " not in ran.out
    assert "farthest" not in ran.out
    some = regimix("fit", table, *FIT, "--terms", "1", "--show-outliers", "2")
    assert "2 smaller terms not shown" in some.out


def test_a_file_that_fails_loses_neither_the_answer_nor_the_others(regimix, table, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "m.regimix")

    monkeypatch.setattr(fitting, "_write_model", full)
    ran = regimix("fit", table, *FIT, "--model", "m.regimix", "--labels", "l.csv")
    assert ran.code == 2
    assert "2 linear regimes" in ran.out
    assert ran.err.splitlines()[-1] == "regimix: m.regimix: No space left on device."
    assert (table.parent / "l.csv").exists()


def test_rows_come_through_standard_input(regimix, table, monkeypatch):
    with table.open() as file:
        monkeypatch.setattr("sys.stdin", file)
        ran = regimix("fit", "-", *FIT)
    assert ran.code == 0
    assert "2 linear regimes in 600 rows of standard input" in ran.out


@pytest.mark.parametrize("command", ["fit", "predict", "report"])
def test_text_in_another_encoding(regimix, tmp_path, data, command):
    lines = [f"{x},{y}" for x, y in zip(data.X[:, 0], data.y, strict=True)]
    text = "\n".join(["größe,y", *lines, ""])
    (tmp_path / "latin.csv").write_text(text, encoding="latin-1")
    (tmp_path / "utf8.csv").write_text(text, encoding="utf-8")
    fit = ("-y", "y", "-m", "1", "-q", "--model", "m.regimix")
    regimix("fit", "utf8.csv", *fit)
    rest = {"fit": fit, "predict": ("-o", "p.csv"), "report": ("-o", "r.html")}[command]
    files = ["latin.csv"] if command == "fit" else ["m.regimix", "latin.csv"]
    assert regimix(command, *files, *rest).code == 2
    assert regimix(command, *files, *rest, "--encoding", "latin-1").code in (0, 3)
    assert load(tmp_path / "m.regimix").feature_names == ("größe",)


def test_the_report_says_how_to_get_it_again(regimix, tmp_path, table):
    fit = ["fit", str(table), *FIT, "-q", "--report", "my report.html"]
    assert regimix(*fit).code == 0
    page = (tmp_path / "my report.html").read_text(encoding="utf-8")
    assert shlex.join(["regimix", *fit]) in html.unescape(page)


@pytest.mark.parametrize(
    ("address", "source", "shown"),
    [
        ("postgresql://me:secret@host/db", "the database postgresql://me@host/db", "me@host/db"),
        ("sqlite:///a.db", "the SQLite file 'a.db'", "sqlite:///a.db"),
    ],
)
def test_a_password_in_an_address_is_not_in_the_command(address, source, shown):
    typed = ("regimix", "fit", address, "--query", "select 1")
    told = fitting._without_password(typed, source)
    assert "secret" not in shlex.join(told)
    assert told[2].endswith(shown)
    assert told[3:] == list(typed[3:])
