"""Every comparison of `make bench` runs and tells the truth; how fast it is, no test asks."""

import argparse
import math
import shutil
from importlib import import_module

import pytest

from benchmarks.peers.ltsreg import HOW_TO_GET
from benchmarks.recovery.contestants import in_r
from benchmarks.speed import __main__ as command
from benchmarks.speed import batch, cluster, linear, million, mixtures, parquet, profiled, whole_fit
from benchmarks.speed.answer import Answer
from benchmarks.speed.archive import Archive, now
from benchmarks.speed.table import Comparison, Row, Target

TINY = {
    # Smaller ones would take longer: they are searched again and again.
    "million": {"QUICK_ROWS": 20_000, "QUICK_COLUMNS": 2},
    "linear": {"QUICK_SIZES": (20_000, 25_000, 30_000), "QUICK_COLUMNS": 2},
    "dask": {"QUICK_ROWS": 20_000, "QUICK_COLUMNS": 2, "QUICK_PARTITIONS": 2},
    "whole-fit": {"QUICK_ROWS": 500},
    "late-rounds": {"QUICK_ROWS": 2_000, "COLUMNS": 5},
    "batch": {"QUICK_ROWS": 500, "COLUMNS": 5, "STARTS": 4},
    "large-d": {"QUICK_COLUMNS": 30, "SWEEP": (10,)},
    "profile": {"QUICK_COLUMNS": 2},
    "peers": {},
    "start": {
        "IMPORTS": {"regimix": "import regimix", "scikit-learn": "import re", "numpy": "import re"}
    },
}


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    """Shrink every comparison, write no Parquet into the cache, and install no peer."""
    for name, sizes in TINY.items():
        module = import_module(f"benchmarks.speed.{command.COMPARISONS[name]}")
        for constant, value in sizes.items():
            monkeypatch.setattr(module, constant, value)
    monkeypatch.setattr(parquet, "CACHE", tmp_path / "parquet")
    in_r_only = {k: v for k, v in whole_fit.CHALLENGES.items() if "robpy" not in k}
    monkeypatch.setattr(whole_fit, "CHALLENGES", in_r_only)


def test_every_comparison_is_tried_here():
    assert set(TINY) == set(command.COMPARISONS)


@pytest.mark.parametrize("name", TINY)
def test_a_comparison_gives_rows_of_the_table(name, tmp_path):
    module = import_module(f"benchmarks.speed.{command.COMPARISONS[name]}")
    result = module.run(1, True)
    assert result.rows
    for row in result.rows:
        missing = "missing here" in row.ours + row.theirs
        assert missing if row.ratio is None else math.isfinite(row.ratio)
    archive = Archive(tmp_path, list(command.COMPARISONS))
    archive.add(name, result, now(1, True))
    archive.write()
    page = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert all(row.what in page for row in result.rows)
    assert Archive(tmp_path, list(command.COMPARISONS)).text() == archive.text()


def test_a_missing_package_of_r_is_told(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    in_r.stop_workers()
    rows = mixtures.run(repeats=1, quick=True).rows
    told = {row.against: row for row in rows}
    for name in mixtures.PACKAGES:
        assert told[name].cells(judged=True)[3:] == (
            f"missing here: `apt-get install r-base-core r-cran-{name}`",
            "–",
            "≥ 20",
            "",
        )
    assert told["Mix-IRLS"].ratio is not None
    lts = whole_fit.run(repeats=1, quick=True).rows
    assert [row.theirs for row in lts] == [HOW_TO_GET] * len(whole_fit.CHALLENGES)


def test_a_library_without_its_dask_engine_is_told(monkeypatch):
    monkeypatch.setattr(cluster, "ENGINE", "regimix.engines.nowhere")
    (row,) = cluster.run(repeats=1, quick=True).rows
    assert row.ratio is None
    assert row.ours.startswith("missing here")


def test_a_profile_that_the_system_refuses_is_told(monkeypatch):
    monkeypatch.setattr("benchmarks.speed.sampler.COUNTER", {})
    rows = profiled.run(1, quick=True).rows
    assert all("missing here: needs Linux" in row.theirs for row in rows)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.3])
def test_the_exponent_of_a_power_law_is_found(exponent):
    sizes = [100, 1_000, 50_000]
    found = linear.power_law(sizes, [3e-4 * n**exponent for n in sizes])
    assert found == pytest.approx({"exponent": exponent, "factor": 3e-4})


def test_the_exponent_is_the_least_squares_slope_of_logarithms():
    # Logarithms (0, 0), (1, 3), (2, 3): slope 1.5, intercept .5.
    seconds = [math.exp(power) for power in (0, 3, 3)]
    found = linear.power_law([math.exp(power) for power in (0, 1, 2)], seconds)
    assert found == pytest.approx({"exponent": 1.5, "factor": math.exp(0.5)})


def test_targets_bound_from_the_right_side():
    most, least = Target(8, at_least=False), Target(15, at_least=True)
    assert [most.met(ratio) for ratio in (7.9, 8, 8.1)] == [True, True, False]
    assert [least.met(ratio) for ratio in (14.9, 15, 15.1)] == [False, True, True]
    assert Row("fit", "1 s", "peer", "9 s", 9.0, most).cells(judged=True)[-1] == "no"
    assert Row("fit", "1 s", "peer", "9 s", 9.0, most).cells(judged=False)[-1] == ""


@pytest.mark.parametrize(
    ("given", "found", "words"),
    [(3, 3, ""), (3, 2, "found 2 of 3 components"), (4, 3, "4 components instead of 3")],
)
def test_a_wrong_answer_is_told_whatever_its_speed(given, found, words):
    fault = Answer(given, found, wanted=3, error=0.1, told_error=0.1).fault
    assert words in fault
    assert bool(fault) == bool(words)
    row = Row("fit", "1 s", "least squares", "1 s", 1.0, Target(8, at_least=False), fault=fault)
    assert row.cells(judged=False)[-1] == fault
    assert row.cells(judged=True)[-1] == (fault or "yes")


def test_the_worst_answer_of_all_rounds_counts():
    right = Answer(3, 3, 3, error=0.02, told_error=0.01)
    nearer = Answer(3, 3, 3, error=0.01, told_error=0.01)
    wrong = Answer(2, 2, 3, error=0.001, told_error=0.01)
    assert million.worse(None, nearer) is nearer
    assert million.worse(right, nearer) is right
    assert million.worse(right, wrong) is wrong
    assert million.worse(wrong, right) is wrong


def test_stages_and_the_rest_make_up_the_whole():
    stages = million.by_stage({"search": 2.0, "polish": 1.0}, 4.0)
    assert stages == {"search": 2.0, "polish": 1.0, million.REST: 1.0}
    slower = million.by_stage({"search": 4.0, "polish": 1.0}, 5.0)
    halves = million.median_stages([stages, slower, slower], unit=0.5)
    assert halves == {"search": 8.0, "polish": 2.0, million.REST: 0.0}


def ratio(value: float) -> Comparison:
    return Comparison([Row(f"measured {value:g}", "1 s", "peer", "1 s", value)])


def test_a_later_run_replaces_its_own_rows_alone(tmp_path):
    order = ["first", "second"]
    archive = Archive(tmp_path, order)
    archive.add("second", ratio(2.0), now(5, False))
    archive.add("first", ratio(1.0), now(5, False))
    archive.write()
    later = Archive(tmp_path, order)
    later.add("first", ratio(3.0), now(7, False))
    later.write()
    page = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert page.index("measured 3") < page.index("measured 2")
    assert "measured 1" not in page
    kept = Archive(tmp_path, order).entries
    assert [entry.measured.repeats for entry in kept.values()] == [7, 5]


def test_a_comparison_that_fails_loses_only_itself(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(million, "run", fail)
    monkeypatch.setattr(batch, "run", lambda *_: ratio(4.0))
    archive = Archive(tmp_path, list(command.COMPARISONS))
    wanted = argparse.Namespace(only=["million", "batch"], repeats=1, quick=True, table_only=False)
    assert command.measure(archive, wanted) == ["million"]
    assert "no such luck" in capsys.readouterr().err
    assert "measured 4" in (tmp_path / "speed.md").read_text(encoding="utf-8")
