"""Every example of the gallery runs, without a warning."""

from pathlib import Path

import pytest

from tests.scripts import run_file

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path):
    run_file(path)


def test_the_gallery_is_a_dozen_at_least():
    assert len(EXAMPLES) >= 12
