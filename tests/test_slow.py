from pathlib import Path

from tests.slow import LIST, SLOW, STARTING, is_slow, slow_tests

ROOT = Path(__file__).parent.parent
LISTED = LIST.read_text(encoding="utf-8").split()


def test_cases_of_a_test_count_together():
    half = 0.6 * SLOW
    report = f"""
============================= slowest durations ==============================
{half:.2f}s call     tests/a.py::test_one[1]
{half:.2f}s setup    tests/a.py::test_one[2]
{half:.2f}s call     tests/a.py::test_two
9.00s teardown {STARTING[0]}::test_three
"""
    assert slow_tests(report) == ["tests/a.py::test_one"]


def test_a_case_is_as_slow_as_its_test():
    assert is_slow("tests/a.py::test_one[2]", frozenset({"tests/a.py::test_one"}))
    assert not is_slow("tests/a.py::test_one_more", frozenset({"tests/a.py::test_one"}))
    assert is_slow(f"{STARTING[0]}::test_three", frozenset())


def test_what_is_listed_exists():
    def exists(name):
        path, _, test = name.partition("::")
        file = ROOT / path
        return file.is_file() and f"def {test.split('::')[-1]}(" in file.read_text(encoding="utf-8")

    assert sorted(LISTED) == LISTED
    assert [name for name in LISTED if not exists(name)] == []
    assert [path for path in STARTING if not (ROOT / path).is_file()] == []
