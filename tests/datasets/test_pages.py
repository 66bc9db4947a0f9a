"""The pages about data and gating: their code runs and prints what they show."""

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^\.\. code-block:: (python|text)\n\n((?:   .*\n|\n)+)", re.MULTILINE)
PAGES = ["data.rst", "data-tone.rst", "data-calls.rst", "data-penguins.rst", "gating.rst"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_what_it_shows(name):
    """The blocks of a page go on from each other, as in a session."""
    blocks = BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
    code = "\n".join(dedent(text) for kind, text in blocks if kind == "python")
    shown = "".join(dedent(text).strip() + "\n" for kind, text in blocks if kind == "text")
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == shown
