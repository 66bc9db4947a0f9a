"""Whatever is wrong is said in one sentence, with the exit code that belongs to it."""

import os
import subprocess
import sys

import pytest

from regimix.cli import main
from regimix.cli.app import explain
from regimix.cli.console import Aborted, Code
from regimix.errors import DataError

pytestmark = pytest.mark.usefixtures("searched_once")


def refused(ran, *words, code=2):
    """Check that a command was refused in one sentence, and wrote nothing to standard output."""
    assert ran.code == code
    assert ran.out == ""
    assert ran.err.startswith("regimix: ")
    assert len(ran.err.splitlines()) == 1
    for word in words:
        assert word in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fot"], ["fot", "fit", "regimix --help"]),
        (["fit"], ["DATA", "regimix fit --help"]),
        (["fit", "rows.csv"], ["--target"]),
        (["fit", "rows.csv", "-y", "y", "--nonsense"], ["--nonsense"]),
        (["fit", "rows.csv", "-y", "z"], ["'z'", "'y'"]),
        (["fit", "nix.csv", "-y", "y"], ["nix.csv"]),
        (["fit", "rows.csv", "-y", "y", "-m", "0"], ["--components", "got 0"]),
        (["fit", "rows.csv", "-y", "y", "-m", "two"], ["--components", "'two'"]),
        (["fit", "rows.csv", "-y", "y", "--outliers", "1"], ["--outliers", "got 1"]),
        (["fit", "rows.csv", "-y", "y", "--outliers", "most"], ["--outliers", "'most'"]),
        (["fit", "rows.csv", "-y", "y", "--noise", "loud"], ["--noise", "'loud' is not one of"]),
        (
            ["fit", "rows.csv", "-y", "y", "--search", "partition"],
            ["--search partition", "--components 2"],
        ),
        (
            ["fit", "rows.csv", "-y", "y", "-m", "2", "--search", "partition", "--outliers", "0.1"],
            ["leave --outliers out", "--search auto"],
        ),
        (
            ["fit", "rows.csv", "-y", "y", "--search", "net", "--noise", "student"],
            ["--search net", "--noise student", "Leave --noise out"],
        ),
        (["fit", "rows.csv", "-y", "y", "--search", "deep"], ["--search"]),
        (["fit", "rows.csv", "-y", "y", "--search", "deep"], ["': 'deep' is not one of"]),
        (["fit", "rows.csv", "-y", "y", "--jobs", "0"], ["--jobs"]),
        (["fit", "rows.csv", "-y", "y", "--jobs", "many"], ["--jobs", "must be a whole number"]),
        (["fit", "rows.csv", "-y", "y", "--seed", "-1"], ["--seed", "must be at least 0"]),
        (["fit", "rows.csv", "-y", "y", "--time-limit", "x"], ["must be a number"]),
        (["fit", "rows.csv", "-y", "id"], ["'id' cannot be the target: it is text"]),
        (["fit", "rows.csv", "-y", "y", "--query", "q"], ["--query is for", "leave --query out"]),
        (["fit", "sqlite:///a.db", "-y", "y"], ['--query "select * from']),
        (["fit", "rows.csv", "-y", "y", "--encoding", "x"], ["--encoding must be"]),
        (["fit", "latin.csv", "-y", "y"], ["with --encoding: 'latin-1'"]),
        (["fit", "comma.csv", "-y", "y", "-x", "price, k"], ["name: price,, k"]),
        (["fit", "comma.csv", "-y", "y", "--weights", "w"], ["'w' of --weights", "row 2 (-1)"]),
        (["fit", "rows.csv", "-y", "y", "--time-limit", "0"], ["--time-limit"]),
        (["fit", "rows.csv", "-y", "y", "--rows", "0"], ["--rows"]),
        (["fit", "rows.csv", "-y", "y", "--model", "m.pkl"], ["--model", ".regimix"]),
        (["fit", "rows.csv", "-y", "y", "--labels", "l.xlsx"], ["--labels", ".parquet"]),
        (["fit", "rows.csv", "-y", "y", "--report", "r.pdf"], ["--report", ".html"]),
        (["fit", "rows.csv", "-y", "y", "--model", "no/m.regimix"], ["no/m.regimix", "folder"]),
        (["fit", "rows.csv", "-y", "y", "--labels", "rows.csv"], ["overwrite"]),
        (["fit", "r*.csv", "-y", "y", "--labels", "rows.csv"], ["overwrite"]),
        (["fit", ".", "-y", "y", "--labels", "l.parquet"], ["part of"]),
        (["fit", "rows.csv", "-y", "y", "--labels", "folder.csv"], ["folder.csv", "is a folder"]),
        (["predict", "no.regimix", "rows.csv", "-o", "p.csv"], ["no.regimix"]),
        (["predict", "rows.csv", "rows.csv", "-o", "p.csv"], ["rows.csv", "model"]),
        (["report", "rows.csv", "rows.csv", "-o", "p.csv"], [".html"]),
        (["synth", "s.csv", "--shares", "1,x"], ["--shares", "'1,x'"]),
        (["synth", "s.csv", "-m", "3", "--noise", "1,2"], ["--noise", "3"]),
        (["synth", "s.csv", "--corruption", "1.5"], ["--corruption must"]),
        (["synth", "s.csv", "--shares", "-1,2"], ["--shares must"]),
        (["synth", "s.csv", "--noise", "-1"], ["--noise must"]),
        (["synth", "s.csv", "--separation", "3"], ["--separation must"]),
        (["synth", "s.csv", "--truth", "s.csv"], ["--truth", ".json"]),
    ],
)
def test_bad_usage_and_bad_data(regimix, table, arguments, words):
    (table.parent / "folder.csv").mkdir()
    (table.parent / "latin.csv").write_bytes("größe,y\n1,2\n3,4\n".encode("latin-1"))
    (table.parent / "comma.csv").write_text('"price, k",w,y\n1,1,2\n2,-1,3\n3,1,5\n')
    refused(regimix(*arguments), *words)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--model", "no/m.regimix"], "folder"),
        (["--time-limit", "0"], "--time-limit"),
        (["--time-limit", "nan"], "--time-limit"),
        (["--search", "partition"], "--components 2"),
        (["-m", "2", "--search", "partition", "--outliers", "0.1"], "leave --outliers out"),
        (["--search", "net", "--noise", "student"], "Leave --noise out"),
        (["--jobs", "0"], "--jobs"),
        (["--log", "--power", "2"], "--power"),
        (["--power", "nan"], "--power"),
        (["--encoding", "x"], "--encoding must be"),
        (["--query", "q"], "--query is for"),
        (["--memory", "much"], "--memory"),
        (["--features", "a", "--drop", "a"], "in --features and in --drop"),
        (["--features", "y"], "cannot be a feature"),
        (["--weights", "y"], "'y' is the target"),
        (["--gating-columns", "a"], "--gating-columns"),
        (["--gating", "trees", "--gating-columns", "y"], "'y' is the target"),
    ],
)
def test_options_are_looked_at_before_anything_is_read(regimix, arguments, word):
    refused(regimix("fit", "nix.csv", "-y", "y", *arguments), word)


@pytest.mark.parametrize("command", ["predict", "report"])
def test_the_table_is_not_read_for_an_encoding_that_is_none(regimix, table, command):
    assert regimix("fit", table, "-y", "y", "-m", "2", "--model", "m.regimix", "-q").code == 0
    out = "p.csv" if command == "predict" else "p.html"
    ran = regimix(command, "m.regimix", "nix.csv", "-o", out, "--encoding", "x")
    refused(ran, "--encoding must be")


def test_a_folder_that_may_not_be_written_is_refused(regimix, table, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    refused(regimix("fit", table, "-y", "y", "--model", "m.regimix"), "does not allow")


def test_no_command_shows_help_and_is_refused(regimix):
    ran = regimix()
    assert ran.code == 2
    assert "Usage: regimix" in ran.out
    assert ran.err == ""


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (DataError("no."), "no.", 2),
        (ModuleNotFoundError("No module", name="polars"), "pip install 'regimix[cli]'", 2),
        (ModuleNotFoundError("No module", name="psycopg.pq"), "pip install 'regimix[sql]'", 2),
        (FileNotFoundError(2, "No such file", "a.csv"), "a.csv: No such file.", 2),
        (MemoryError(), "--rows", 2),
        (KeyboardInterrupt(), "interrupted", 130),
        (Aborted("interrupted twice."), "interrupted twice.", 130),
        (ZeroDivisionError("x"), "regimix --debug fit", 1),
        (ModuleNotFoundError("No module", name="itself"), "report it", 1),
    ],
)
def test_every_failure_has_a_sentence_and_a_code(error, words, code):
    sentence, ended = explain(error, "regimix fit")
    assert words in sentence
    assert "\n" not in sentence
    assert ended == code


def test_a_warning_advises_nothing_that_only_python_can_do(regimix):
    regimix("synth", "s.csv", "-n", "60", "-d", "2", "-q")
    ran = regimix("fit", "s.csv", "-y", "y", "-m", "12", "-q")
    assert ran.code == 0
    assert "12 asked for" in ran.err
    assert "init" not in ran.err


def test_a_fault_of_our_own_is_one_sentence_too_unless_asked(regimix, table, monkeypatch, capsys):
    def broken(*_, **__):
        raise ZeroDivisionError("x")

    monkeypatch.setattr("regimix.tables.read", broken)
    refused(regimix("fit", table, "-y", "y"), "ZeroDivisionError", "--debug", code=1)
    assert main(["--debug", "fit", str(table), "-y", "y"]) == Code.FAULT
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_the_extra_one_sentence_says_how_to_get_it(module):
    code = (
        f"import sys; sys.modules[{module!r}] = None; import regimix.cli as c; sys.exit(c.main())"
    )
    command = [sys.executable, "-c", code, "--help"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert "pip install 'regimix[cli]'" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_without_jinja2_a_report_is_refused_before_the_fit(regimix, table, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused(regimix("fit", table, "-y", "y", "--report", "r.html"), "jinja2", "regimix[cli]")
