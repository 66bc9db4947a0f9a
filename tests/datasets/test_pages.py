"""The pages about data and gating: their code runs and prints what they show."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.scripts import run_code

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^\.\. code-block:: (python|text)\n\n((?:   .*\n|\n)+)", re.MULTILINE)
PAGES = ["data.rst", "data-tone.rst", "data-calls.rst", "data-penguins.rst", "gating.rst"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_what_it_shows(name, tmp_path):
    """The blocks of a page go on from each other, as in a session."""
    blocks = BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
    code = "\n".join(dedent(text) for kind, text in blocks if kind == "python")
    shown = "".join(dedent(text).strip() + "\n" for kind, text in blocks if kind == "text")
    assert run_code(code, tmp_path) == shown
