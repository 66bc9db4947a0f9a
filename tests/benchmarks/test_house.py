"""What `make size` counts, on a house small enough to count by hand."""

import sys
from importlib import import_module

import pytest

from benchmarks import house

FILES = {
    "__init__.py": '"""A hut."""\n',
    "__main__.py": "import hut.walls\n",
    "errors.py": "LIMIT = 3\n\n\nclass Broken(Exception):\n    pass\n",
    "walls.py": "from hut.search import deep\nfrom . import errors\n",
    "search/__init__.py": "from hut.search.deep import look\n",
    "search/deep.py": """\
import hut.errors
import numpy as np
from importlib import import_module

STEPS = 1 << 4
LOWEST, HIGHEST = 1, 2
SHARES: tuple[float, ...] = (0.5, -0.25)
GRID = np.array([[1.0, 2.0], [3.0, 4.0]])
EMPTY = ()
NAME = "deep"
OPEN = True
TWICE = 2 * STEPS
lower = 7


def look(n):
    INNER = 5
    from hut.search.lazy import walk

    return [once(i) for i in range(n)] + walk(n)


def once(i):
    return import_module("hut.search.named").double(i)


def never():
    return None
""",
    "search/lazy.py": "def walk(n):\n    return list(map(lambda i: -i, range(n)))\n",
    "search/named.py": "class Kept:\n    x = 1\n\n\ndef double(i):\n    return 2 * i\n",
    "search/alone.py": "",
    "model/numbers.py": """\
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class SearchNumbers:
    starts: int = 3
    share: float = 0.5
    kind: ClassVar[str] = "search"


@dataclass
class LooseNumbers:
    starts: int = 3


@dataclass(frozen=True)
class Settings:
    starts: int = 3
""",
    "notes.txt": "not\ncounted\n",
}


@pytest.fixture
def hut(tmp_path, monkeypatch):
    """A package on disk that can be imported, and is forgotten afterwards."""
    for name, text in FILES.items():
        path = tmp_path / "hut" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "hut"
    for name in [name for name in sys.modules if name.partition(".")[0] == "hut"]:
        del sys.modules[name]


def test_files_and_lines_are_counted_folder_by_folder(hut):
    assert house.folders(hut) == [
        house.Folder("at the top", 4, 1 + 1 + 5 + 2),
        house.Folder("model/", 1, 19),
        house.Folder("search/", 5, 1 + 28 + 2 + 6 + 0),
    ]


def test_importers_are_found_wherever_the_import_stands(hut):
    assert house.importers(hut) == {
        "hut.errors": {"hut.walls", "hut.search.deep"},  # relative; by its full name
        "hut.walls": {"hut.__main__"},
        "hut.search.deep": {"hut.walls", "hut.search"},  # as a name of its package
        "hut.search.lazy": {"hut.search.deep"},  # inside a function
        "hut.search.named": {"hut.search.deep"},  # by import_module
        "hut.search.alone": set(),
        "hut.model.numbers": set(),
    }


def test_chosen_numbers_are_numbers_that_are_written_out(hut):
    assert house.chosen_numbers(hut) == [
        "hut.model.numbers.SearchNumbers.starts",
        "hut.model.numbers.SearchNumbers.share",
        "hut.search.deep.STEPS",
        "hut.search.deep.LOWEST",
        "hut.search.deep.HIGHEST",
        "hut.search.deep.SHARES",
        "hut.search.deep.GRID",
    ]
    assert len(house.chosen_numbers(hut, ("model",))) == 2


def test_the_way_of_a_call_counts_each_function_once(hut):
    """Bodies of modules and classes are no functions, nor are comprehensions; a lambda is one."""
    look = import_module("hut.search.deep").look
    # look, once, double, walk and its lambda; lazy.py and named.py are imported on the way.
    assert house.way(hut, lambda: look(5)) == house.Way(files=3, functions=5)
    assert house.way(hut, lambda: None) == house.Way(files=0, functions=0)
    assert sys.getprofile() is None


def test_a_call_that_fails_leaves_no_watcher_behind(hut):
    with pytest.raises(ZeroDivisionError):
        house.way(hut, lambda: 1 / 0)
    assert sys.getprofile() is None


def test_the_tables_say_the_same_in_every_format(hut):
    first, second = house.tables(hut, house.Way(3, 5))
    assert first[-1] == ("all", "10", "65")
    assert dict(second[1:]) == {
        "modules": "7",
        "modules with a single importer": "3",
        "chosen numbers in search, model": "7",
        "files a fit of 150 × 1 passes through": "3",
        "functions a fit of 150 × 1 passes through": "5",
    }
    for show in (house.plain, house.markdown, house.rst):
        shown = [line.replace("|", " ").split() for line in show(first).splitlines()]
        assert ["all", "10", "65"] in shown
        assert len({len(line) for line in show(second).splitlines()[-2:]}) == 1


def test_a_fit_passes_through_the_house(capsys):
    house.main(["--markdown"])
    shown = capsys.readouterr().out
    assert "| measure" in shown
    functions = [line for line in shown.splitlines() if "functions a fit" in line]
    assert int(functions[0].strip("| ").rpartition("|")[2]) > 50
