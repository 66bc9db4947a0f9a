"""Asking for little loads little, and the doors are where they should be."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import regimix

HEAVY = {"dask", "distributed", "fsspec", "jinja2", "matplotlib", "numpy", "pandas", "polars"}
HEAVY |= {"pyarrow", "scipy", "sklearn"}


def loaded_by(*arguments: str) -> set[str]:
    """Return the modules that a command has loaded when it ends."""
    code = (
        "import sys\nfrom regimix.cli import main\n"
        "code = main(sys.argv[1:])\nprint(*sys.modules, file=sys.stderr)\nsys.exit(code)"
    )
    command = [sys.executable, "-c", code, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in run.stderr.split()}


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["fit", "--help"], ["predict", "--help"]],
)
def test_help_loads_nothing_heavy(arguments):
    loaded = loaded_by(*arguments)
    assert "typer" in loaded
    assert not loaded & HEAVY


def test_completion_loads_nothing_heavy():
    code = (
        "import atexit, sys; from regimix.cli import main; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    asked = {"_REGIMIX_COMPLETE": "complete_bash", "COMP_WORDS": "regimix f", "COMP_CWORD": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **asked},
    )
    assert run.stdout.split() == ["fit"]
    assert not set(run.stderr.split()) & HEAVY


def test_the_version_is_that_of_the_package(regimix):
    ran = regimix("--version")
    assert (ran.code, ran.out) == (0, f"regimix {version()}\n")


def version() -> str:
    return regimix.__version__


def test_both_doors_lead_to_the_same_place():
    run = subprocess.run(
        [sys.executable, "-m", "regimix", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"regimix {version()}\n"
    project = Path(__file__).parents[2] / "pyproject.toml"
    scripts = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["scripts"]
    assert scripts == {"regimix": "regimix.cli:main"}
