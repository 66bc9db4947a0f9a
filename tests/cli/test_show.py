"""What is shown, whatever the columns are called, however wide the terminal is."""

import io
import re
import sys

import numpy as np
import pytest

from regimix.cli.console import Voice
from regimix.cli.options import names
from regimix.tables import write_table
from regimix.words import percent

pytestmark = pytest.mark.usefixtures("searched_once")

HOSTILE = [
    "[red]a[/red]",
    "b\x1b[31mb",
    "[/]",
    "c\nc",
    "=1+1",
    ":smile:",
    "\u202egnp.exe",
    "d" * 70,
]
TARGET = "[bold]y[/bold]"


@pytest.fixture
def hostile(tmp_path, data):
    """A table whose columns have names that try to be more than names."""
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=len(data.y)) for name in HOSTILE}
    columns["[red]a[/red]"] = data.X[:, 0]
    path = tmp_path / "h.parquet"
    write_table(path, {**columns, TARGET: data.y})
    return path


def test_names_of_columns_are_shown_as_they_are_and_command_nothing(regimix, hostile):
    features = ("--features", "[red]a[/red],[/],c\nc,:smile:", "--key", "b\x1b[31mb")
    ran = regimix("fit", hostile, "-y", TARGET, *features, "-m", "1", "--outliers", "0.1")
    assert ran.code in (0, 3)  # one line says little of these rows
    for shown in ("[red]a[/red]", "[/]", "c\\nc", ":smile:", TARGET, "b\\x1b[31mb"):
        assert shown in ran.out
    assert "\x1b" not in ran.out + ran.err


def test_rows_that_count_by_their_weights_are_told_from_those_of_the_table(
    regimix, tmp_path, data, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "200")
    weights = 1 + np.arange(len(data.y)) % 3
    columns = {f"x{i}": column for i, column in enumerate(data.X.T)}
    write_table(tmp_path / "w.csv", {**columns, "y": data.y, "n": weights})
    ran = regimix("fit", "w.csv", "-y", "y", "-m", "2", "--weights", "n", "--json")
    rows, mass = ran.summary["rows"], int(weights.sum())
    assert (rows["used"], rows["mass"]) == (600, mass)
    labelled = [one["rows"] for one in (*ran.summary["regimes"], ran.summary["outliers"])]
    assert sum(labelled) == mass
    shown = " ".join(ran.err.split())
    assert f"in {mass:,} rows by the weights of w.csv".replace(",", "") in shown.replace(",", "")
    assert "Rows count by their weights: " in shown
    assert " in all, from 600 rows of the table." in shown
    assert f" {percent(rows['in_doubt'] / mass)} of them in doubt" in shown
    plain = regimix("fit", "w.csv", "-y", "y", "-m", "2", "--drop", "n", "--json")
    assert plain.summary["rows"]["mass"] == 600
    assert "weights" not in plain.err


def test_a_given_number_of_thin_evidence_is_told_on_the_terminal(regimix, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60)
    write_table(tmp_path / "w.csv", {"x": x, "y": 0.49 * x + rng.standard_normal(60)})
    ran = regimix("fit", "w.csv", "-y", "y", "-m", "1", "--json")
    assert 0 < ran.summary["evidence"] < 3
    assert ran.code == 0
    assert ran.err.startswith("1 linear regime, on thin evidence, in 60 rows of w.csv")
    assert "The number of regimes was given; the evidence is thin, " in ran.err


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(regimix, hostile, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    ran = regimix("fit", hostile, "-y", TARGET, "-m", "2", "--terms", "20")
    assert ran.code in (0, 3)
    assert max(map(len, ran.out.splitlines())) <= width
    assert not {"\x1b", "\u202e"} & set(ran.out + ran.err)


@pytest.mark.parametrize("width", [40, 50, 60, 80])
def test_an_equation_shows_its_largest_slope_however_narrow(regimix, tmp_path, monkeypatch, width):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 7))
    y = 49.4217 + X @ [2.7183, *[0.1234] * 6] + rng.normal(scale=0.01234, size=200)
    columns = {f"displacement{i}": column for i, column in enumerate(X.T)}
    write_table(tmp_path / "t.csv", {**columns, "y": y})
    monkeypatch.setenv("COLUMNS", str(width))
    ran = regimix("fit", "t.csv", "-y", "y", "-m", "1", "--terms", "0", "--show-outliers", "0")
    assert max(map(len, ran.out.splitlines())) <= width
    # Where it takes two lines, the name may be cut.
    assert re.search(r"49\.42\d* \+ 2\.7\d+\s+displa", ran.out), ran.out
    assert ("R²" in ran.out) == (width == 80)


def test_nothing_ends_in_blanks_in_a_pipe(regimix, table):
    shown = regimix("fit", table, "-y", "y", "--drop", "id").out
    assert not re.search(r" $", shown, re.MULTILINE)


@pytest.mark.parametrize("command", [(), ("fit",)])
def test_help_shows_no_types_of_flags(regimix, command):
    shown = regimix(*command, "--help").out
    assert "--help" in shown
    assert "<bool>" not in shown


@pytest.mark.parametrize(("asked", "told"), [(1, "1 regime was"), (2, ""), (3, "3 regimes were")])
def test_the_evidence_may_favour_another_number_than_the_one_asked_for(regimix, table, asked, told):
    ran = regimix("fit", table, "-y", "y", "--drop", "id", "-m", asked)
    assert ("the evidence favours" in ran.out) == bool(told)
    assert not told or f"{told} asked for; the evidence favours 2" in ran.out


def test_names_in_refusals_command_nothing_either(regimix, hostile):
    ran = regimix("fit", hostile, "-y", "\x1b[2Jy")
    assert ran.code == 2
    assert "\x1b" not in ran.err


def test_no_color_is_heeded(regimix, table, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    fit = ("fit", table, "-y", "y", "--drop", "id", "--show-outliers", "0")
    assert "\x1b[94m" in regimix(*fit).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[94m" not in regimix(*fit).out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437"])
def test_what_is_shown_can_be_encoded(monkeypatch, encoding):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    voice = Voice()
    voice.answer("größe × 2 ± 1, R² → … 数 \ud800")
    sys.stdout.flush()
    assert "? \\ud800" in raw.getvalue().decode(encoding)


def test_a_terminal_that_can_show_everything_is_shown_everything(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8"))
    assert Voice().clean("größe × 数\t") == "größe × 数\\t"


def test_a_doubled_comma_is_part_of_a_name():
    assert names("a, b,c,,d") == ["a", "b", "c,d"]
    assert names(None) is None


def test_a_row_of_weight_zero_is_no_outlier(regimix, tmp_path):
    """Heights of criminals, by frequency: one outlier, and a list of cells in which nobody was."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(120)
    y = 2 * x + 0.1 * rng.standard_normal(120)
    y[[3, 70]] += 8.0, 4.0
    times = 1 + np.arange(120) % 2
    times[3] = 0
    write_table(tmp_path / "w.csv", {"x": x, "y": y, "times": times})
    options = "--weights", "times", "-m", "1", "--report", "w.html"
    ran = regimix("fit", "w.csv", "-y", "y", *options, "--json")
    assert ran.summary["outliers"]["rows"] == 1
    assert [row["key"] for row in ran.summary["outliers"]["farthest"]] == [71]
    page = " ".join((tmp_path / "w.html").read_text().split())
    assert "1 of the 119 rows shown (0.8%) is labelled an outlier: 71." in page
    assert "All 119 rows are on this page." in page
