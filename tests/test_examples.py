"""Every example of the gallery runs, without a warning."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path):
    run = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        capture_output=True,
        text=True,
        check=False,
        # The backend without a screen warns when a figure is shown; this one does not.
        env={**os.environ, "MPLBACKEND": "svg"},
    )
    assert run.returncode == 0, run.stderr


def test_the_gallery_is_a_dozen_at_least():
    assert len(EXAMPLES) >= 12
