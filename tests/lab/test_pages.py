"""Every claim has its page, with its figure, in the list of pages."""

import re
from pathlib import Path

import pytest

import lab

DOCS = Path(__file__).parents[2] / "docs"
# Browsers load figures with the page: they stay small.
LARGEST_FIGURE = 150_000


@pytest.mark.parametrize("name", lab.EXPERIMENTS)
def test_a_claim_has_a_page_with_its_figure(name):
    page = (DOCS / "claims" / f"{name}.rst").read_text(encoding="utf-8")
    for part in ("**The paper.**", "**Here.**", "**What was seen.**"):
        assert part in page
    assert f"``{name}``" in page
    assert f"python -m lab run {name}" in page
    assert f"_static/lab/{name}.svg" in page
    figure = DOCS / "_static" / "lab" / f"{name}.svg"
    assert 0 < figure.stat().st_size < LARGEST_FIGURE
    # Labels of the paper, as the experiment cites them.
    for label in re.findall(
        r"\b(?:alg|def|thm|lem|cor|tab|fig):[\w-]+", lab.EXPERIMENTS[name].claim
    ):
        assert f"``{label}``" in page


def test_the_list_of_pages_is_complete():
    index = (DOCS / "claims" / "index.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   ([\w-]+)$", index, re.MULTILINE)
    assert listed == list(lab.EXPERIMENTS)
