"""The pages keep up with the code: every name, file and statement, and code that runs."""

import doctest
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

import lab
import regimix
from tests.scripts import run_code

ROOT = Path(__file__).parent.parent


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


# The labels of every algorithm, definition and statement of the paper, and of its table.
LABELS = {
    "alg": ["local", "global", "efficiency"],
    "def": ["separation", "feature", "affine", "subspace"],
    "thm": ["local-1", "local", "global", "ode"],
    "lem": ["support-1", "help", "support-3", "support-2", "efficiency", "support-1-extend"],
    "cor": ["1"],
    "tab": ["algs"],
}


def test_the_map_of_the_paper_misses_no_statement():
    labels = [f"{kind}:{name}" for kind, names in LABELS.items() for name in names]
    assert [label for label in labels if f"``{label}``" not in page("paper.rst")] == []


def test_the_map_of_the_paper_names_files_that_exist():
    named = re.findall(r"``([^`]+\.py)``", page("paper.rst"))
    assert named
    assert [path for path in named if not (_home(path) / path).is_file()] == []


def _home(path: str) -> Path:
    if "test_" in path:
        return ROOT / "tests"
    return ROOT if path.startswith("lab/") else ROOT / "src" / "regimix"


ROOMS = [
    "data",
    "engines",
    "trimmed",
    "model",
    "search",
    "result",
    "estimators",
    "theory",
    "plots",
    "tables",
    "report",
    "cli",
]


@pytest.mark.parametrize("room", ROOMS)
def test_the_architecture_page_lists_every_file_of_a_room(room):
    house = page("architecture.rst")
    listed = re.search(rf"^     {room}/.*\n((?:       .*\n)*)", house, re.MULTILINE)
    assert listed is not None
    names = set(re.findall(r"^       (\w+\.py)", listed[1], re.MULTILINE))
    files = {path.name for path in (ROOT / "src" / "regimix" / room).glob("*.py")}
    assert names == files - {"__init__.py"}


def test_the_architecture_page_lists_every_file_of_the_lab():
    listed = re.search(r"^   lab/.*\n((?:     .*\n)*)", page("architecture.rst"), re.MULTILINE)
    assert listed is not None
    names = set(re.findall(r"^     (\w+\.py)", listed[1], re.MULTILINE))
    files = {path.name for path in (ROOT / "lab").glob("*.py")}
    assert names == files - {"__init__.py", "__main__.py"}


@pytest.mark.parametrize(
    "module",
    [
        "regimix",
        "regimix.datasets",
        "regimix.errors",
        "regimix.metrics",
        "regimix.plots",
        "regimix.report",
        "regimix.store",
        "regimix.synth",
        "regimix.tables",
        "regimix.theory",
    ],
)
def test_the_reference_lists_every_public_name(module):
    listed = set(re.findall(r"^   (\w+)$", page("api.rst"), re.MULTILINE))
    modules = {name for name in regimix.__all__ if isinstance(getattr(regimix, name), ModuleType)}
    modules.add("__version__")
    assert set(import_module(module).__all__) - modules - listed == set()


def test_every_name_of_the_reference_can_be_imported():
    home, missing = "", []
    for line in page("api.rst").splitlines():
        if line.startswith(".. currentmodule:: "):
            home = line.split()[-1]
        elif name := re.fullmatch(r"   ([\w.]+)", line):
            module, _, attribute = f"{home}.{name[1]}".rpartition(".")
            try:
                getattr(import_module(module), attribute)
            except (ImportError, AttributeError) as error:
                missing.append(str(error))
    assert missing == []


CODE = re.compile(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)")


@pytest.mark.parametrize(
    "code",
    [
        code
        for name in ("index.rst", "start.rst", "method.rst", "inference.rst")
        for code in CODE.findall(page(name))
    ],
)
def test_the_code_of_the_pages_runs(code, tmp_path):
    run_code(dedent(code), tmp_path)


BLOCK = re.compile(r"^( *)\.\. code-block:: (python|text)\n\n((?:\1   .*\n|\n)+)", re.MULTILINE)
# Pages whose blocks go on from each other, as in a session. Of those in PRINTED, what they show is
# what they print. Other tests run the pages on data, gating, scale, files and the command line.
SESSIONS = ["doubts.rst", "guide.rst", "help.rst", "plots.rst", "report.rst", "theory.rst"]
PRINTED = ["guide.rst"]


def without_seconds(text: str) -> str:
    """Leave out how long it took, which no two runs agree on."""
    return re.sub(r"[\d.e-]+ seconds?\b", "… seconds", text)


@pytest.mark.parametrize("name", SESSIONS)
def test_the_code_of_a_session_runs_and_prints_what_is_shown(name, tmp_path, request, monkeypatch):
    blocks = [(kind, dedent(text)) for _, kind, text in BLOCK.findall(page(name))]
    code = "\n".join(text for kind, text in blocks if kind == "python")
    shown = "".join(text.strip() + "\n" for kind, text in blocks if kind == "text")
    if name not in PRINTED:
        # It runs, or it does not.
        code = re.sub(r"n_resamples=\d+", "n_resamples=2", code)
        request.getfixturevalue("searched_once")
    monkeypatch.chdir(tmp_path)
    printed = run_code(code, tmp_path, strict=False)
    if name in PRINTED:
        # Blocks are set off from each other on the page, not in what is printed.
        assert without_seconds(printed).split() == without_seconds(shown).split()


MODULES = [
    module.name
    for package in (lab, regimix)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_docstrings_are_true(name):
    assert doctest.testmod(import_module(name), verbose=False).failed == 0
