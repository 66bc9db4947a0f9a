"""Properties say the same to everybody; `make fuzz` tries more."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, is_hypothesis_test, seed, settings
from hypothesis import strategies as st

from tests.patience import ENOUGH

ROOT = Path(__file__).parents[1]


def drawn():
    """What Hypothesis tries for a property, one example after the other."""
    seen = []

    @seed(0)
    @settings(max_examples=300, database=None)
    @given(st.integers(), st.floats(), st.text(max_size=3))
    def looks(whole, real, text):
        seen.append(repr((whole, real, text)))

    looks()
    return seen


def test_examples_do_not_depend_on_what_is_loaded(tmp_path, monkeypatch):
    """Left alone, Hypothesis also tries the constants of our modules that happen to be loaded."""
    before = drawn()
    path = tmp_path / "numbered.py"
    path.write_text("NUMBERS = [" + ", ".join(f"{i}, {i}.5" for i in range(1000, 1400)) + "]")
    spec = importlib.util.spec_from_file_location("numbered", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "numbered", module)
    assert drawn() == before


def test_no_property_goes_its_own_way(request):
    """A test may ask for fewer examples, but not for other ones than its profile gives."""
    properties = [
        item for item in request.session.items if is_hypothesis_test(getattr(item, "obj", None))
    ]
    for item in properties:
        used = item.obj._hypothesis_internal_use_settings
        assert used.derandomize == settings.default.derandomize, item.nodeid
        assert used.database is None, item.nodeid
        assert used.deadline is None, item.nodeid


PROBE = """
import pytest
from hypothesis import given, settings, strategies as st

tried = []

@settings(max_examples=7)
@given(st.integers())
@pytest.mark.parametrize("case", [1, 2])
def test_few(case, number):
    tried.append(number)

@given(st.integers())
def test_usual(number):
    tried.append(number)

def test_told():
    print("tried", len(tried), hash(tuple(tried)))
"""


def tried(tmp_path, *options):
    """Run properties under the conftest of this house; say how many examples, and which."""
    tests = tmp_path / "tests"
    tests.mkdir(exist_ok=True)
    for name in ("conftest.py", "slow.py", "slow.txt"):
        (tests / name).write_text((ROOT / "tests" / name).read_text("utf-8"), "utf-8")
    (tests / "test_probe.py").write_text(PROBE, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *options]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=ENOUGH)
    assert run.returncode == 0, run.stdout + run.stderr
    told = run.stdout.partition("tried")[2].split()
    return int(told[0]), told[1]


@pytest.mark.parametrize(
    ("options", "same", "times"),
    [
        ([], True, 1),
        (["--hypothesis-profile=fuzz"], False, 10),
        (["--hypothesis-profile=fuzz", "--hypothesis-seed=5"], True, 10),
    ],
    ids=["fixed", "fuzz", "fuzz with a seed"],
)
def test_profiles(tmp_path, options, same, times):
    first, second = tried(tmp_path, *options), tried(tmp_path, *options)
    assert first[0] == second[0] == times * (7 + 7 + 100)
    assert (first == second) == same
