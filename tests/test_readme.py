"""What the README shows can be pasted and runs, and says what the README says it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(README.read_text(encoding="utf-8"))


def without_seconds(text: str) -> str:
    """Leave out how long it took, which no two runs agree on."""
    return re.sub(r"[\d.e-]+ seconds", "… seconds", text)


def test_there_is_something_to_paste():
    assert BLOCKS


@pytest.mark.parametrize(("code", "printed"), BLOCKS)
def test_pasted_code_runs_and_prints_what_is_shown(code, printed):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    if printed:
        assert without_seconds(run.stdout) == without_seconds(printed)


def test_every_file_it_points_to_is_there():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert (README.parent / link).exists(), link
