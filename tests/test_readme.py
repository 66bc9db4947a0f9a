"""What the README shows can be pasted and runs, and says what the README says it says."""

import re
from pathlib import Path

import pytest

from tests.scripts import run_code

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(README.read_text(encoding="utf-8"))


def without_seconds(text: str) -> str:
    """Leave out how long it took, which no two runs agree on."""
    return re.sub(r"[\d.e-]+ seconds?\b", "… seconds", text)


def test_there_is_something_to_paste():
    assert BLOCKS


@pytest.mark.parametrize(("code", "printed"), BLOCKS)
def test_pasted_code_runs_and_prints_what_is_shown(code, printed, tmp_path):
    shown = run_code(code, tmp_path)
    if printed:
        assert without_seconds(shown) == without_seconds(printed)


def test_every_file_it_points_to_is_there():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert links
    for link in links:
        assert (README.parent / link).exists(), link


def _tables(text: str) -> list[list[list[str]]]:
    """Return the cells of every Markdown table, its head first."""
    found = re.findall(r"^\|.*\n\|[ -|]+\n(?:\|.*\n)+", text, re.MULTILINE)
    rows = [[line.strip("|").split("|") for line in table.splitlines()] for table in found]
    return [[[cell.strip() for cell in row] for row in [*table[:1], *table[2:]]] for table in rows]


def test_the_comparison_is_what_was_measured():
    measured = _tables((README.parent / "benchmarks/results/compare.md").read_text("utf-8"))
    tone, calls, mixture = ({row[0]: row for row in table} for table in measured[:3])
    (shown,) = (
        table for table in _tables(README.read_text("utf-8")) if "must be given" in table[0]
    )
    assert len(shown) > 10
    for name, told, *cells, seconds in shown[1:]:
        assert told == tone[name][1]
        assert seconds == mixture[name][-1]
        for cell, table, known in zip(cells, (tone, calls, mixture), (2, 1, 2), strict=True):
            lines, right = table[name][2:4]
            extra = "" if lines in ("1", str(known)) else f" ({lines} lines)"
            assert cell == f"{right} of {known}{extra}"
