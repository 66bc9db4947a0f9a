"""What the pages show of the command line is what it prints."""

import doctest
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
CONSOLE = re.compile(r"\.\. code-block:: console\n\n((?:   .*\n|\n)+)")
PYTHON = re.compile(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)")
TEXT = re.compile(r"\.\. code-block:: text\n\n((?:   .*\n|\n)+)")
README_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(text):
    """Split a console session into commands and what they print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield shlex.split(command)[1:], printed.strip()


def told(text):
    """Leave out how long it took, which no two runs agree on."""
    return re.sub(r"[\d.,e-]+ seconds?, seed", "… seconds, seed", text)


def check(regimix, session):
    for arguments, printed in commands(session):
        ran = regimix(*arguments)
        assert ran.code == 0, ran.err
        shown = told(ran.out.strip() + "\n" + ran.err.strip()).strip()
        same = doctest.OutputChecker().check_output(told(printed), shown, SAME)
        assert same, f"{' '.join(arguments)} prints\n{shown}"


def test_the_page_of_the_command_line_is_true(regimix, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = (ROOT / "docs" / "cli.rst").read_text(encoding="utf-8")
    sessions = CONSOLE.findall(page)
    assert len(sessions) >= 9
    (code,) = PYTHON.findall(page)  # it writes a table that a session reads
    exec(dedent(code), {"__name__": "__main__"})
    for session in sessions:
        check(regimix, dedent(session))
    shown = {arguments[0] for session in sessions for arguments, _ in commands(dedent(session))}
    assert shown == {"demo", "fit", "predict", "report", "synth"}


def test_the_page_on_scale_is_true(regimix, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = (ROOT / "docs" / "scale.rst").read_text(encoding="utf-8")
    sessions = CONSOLE.findall(page)
    assert len(sessions) == 4
    for session in sessions:
        check(regimix, dedent(session))
    labels = {path.name: path.read_bytes() for path in Path("labels").iterdir()}
    Path("new").mkdir()
    Path("new/rows.parquet").write_bytes(Path("rows.parquet").read_bytes())
    names: dict[str, object] = {"__name__": "__main__"}
    for code in PYTHON.findall(page):
        exec(dedent(code), names)
    assert {path.name for path in Path("labels").iterdir()} == set(labels) == {"rows.parquet"}
    assert names["fit"].n_components_ == 3


def test_the_page_on_profiles_is_true(regimix, monkeypatch):
    """Its first block writes the tables; the others go on in Python, and print what it shows."""
    monkeypatch.setenv("COLUMNS", "80")
    page = (ROOT / "docs" / "profile.rst").read_text(encoding="utf-8")
    first, *others = [dedent(code) for code in PYTHON.findall(page)]
    names: dict[str, object] = {"__name__": "__main__"}
    exec(first, names)
    sessions = CONSOLE.findall(page)
    assert len(sessions) == 5
    for session in sessions:
        check(regimix, dedent(session))
    shown = [dedent(text).rstrip() for text in TEXT.findall(page)]
    for code, text in zip(others, shown, strict=True):
        with redirect_stdout(StringIO()) as out:
            exec(code, names)
        assert out.getvalue().rstrip() == text.strip("\n")


def test_the_readme_is_true(regimix, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    sessions = README_CONSOLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert sessions
    for session in sessions:
        check(regimix, session)


def test_every_option_of_fit_is_told(regimix, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    page = (ROOT / "docs" / "cli.rst").read_text(encoding="utf-8")
    told, offered = (
        set(re.findall(r"--[a-z-]+", text)) for text in (page, regimix("fit", "--help").out)
    )
    assert "--target" in offered
    assert offered - told == set()
