"""The tools behind `make bench`: data, memory, samples, imports, passes, pictures."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.data import GROSS, MIXED_NOISE, MIXED_OUTLIERS, mixed_blocks, mixed_models
from benchmarks.speed import cluster, footprint, plots, profiled, sampler, start
from benchmarks.speed.sampler import Frame, Moment


def test_a_table_is_the_same_whole_and_in_blocks():
    whole = mixed_models(250_000, 2, seed=3)
    blocks = list(mixed_blocks(250_000, 2, seed=3))
    assert len(blocks) == 3
    np.testing.assert_array_equal(whole.X, np.concatenate([block.X for block in blocks]))
    np.testing.assert_array_equal(whole.labels, np.concatenate([b.labels for b in blocks]))


def test_rows_follow_the_model_that_their_label_names():
    sample = mixed_models(50_000, 3, seed=0)
    design = np.column_stack([sample.X, np.ones(len(sample.y))])
    residuals = sample.y - np.einsum("ij,ij->i", design, sample.theta[sample.labels])
    clean = sample.labels >= 0
    assert np.mean(~clean) == pytest.approx(MIXED_OUTLIERS, rel=0.1)
    assert residuals[clean].std() == pytest.approx(MIXED_NOISE, rel=0.05)
    assert np.abs(residuals[~clean]).mean() > GROSS / 2


@pytest.mark.skipif(sys.platform != "linux", reason="Linux keeps the mark")
def test_memory_that_was_given_back_is_seen():
    if not footprint.put_back_mark():
        pytest.skip("this system does not let the mark be put back")
    before = footprint.in_use()
    size = 64 * 2**20
    block = np.ones(size // 8)
    del block
    assert footprint.high_water_mark() - before > 0.9 * size
    footprint.put_back_mark()
    assert footprint.high_water_mark() - before < 0.5 * size


def test_stacks_are_read_as_faulthandler_writes_them():
    text = (
        'Stack (most recent call first):\n  File "/a/b.py", line 7 in inner\n'
        '  File "/a/c d.py", line 9 in <module>\nStack (most recent call first):\n'
    )
    assert sampler.read_stacks(text) == [
        (Frame("/a/b.py", 7, "inner"), Frame("/a/c d.py", 9, "<module>")),
        (),
    ]


@pytest.mark.parametrize(
    ("library", "function", "kind"),
    [
        ("/x/numpy.libs/libscipy_openblas64_-32.so", "f", profiled.BLAS),
        ("/x/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "f", "other compiled"),
        ("/x/numpy/_core/_multiarray_umath.so", "argpartition", profiled.SELECTION),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "f", profiled.COMPILED),
        ("/usr/lib/libpython3.11.so.1.0", "f", profiled.PYTHON),
        ("/usr/bin/python3.12", "f", profiled.PYTHON),
        ("/usr/lib/python3.11/lib-dynload/math.so", "f", profiled.PYTHON),
    ],
)
def test_libraries_are_told_apart(library, function, kind):
    assert profiled.kind(Moment(library, (Frame("nowhere.py", 1, function),))) == kind


def test_a_line_belongs_to_the_stage_around_it(tmp_path, monkeypatch):
    monkeypatch.setattr(profiled, "LIBRARY", tmp_path)
    fit, inner = tmp_path / "fit.py", tmp_path / "search.py"
    fit.write_text('with clock.stage("search"):\n    a()\n    b()\nc()\n', encoding="utf-8")
    inner.write_text("x = 1\n", encoding="utf-8")

    def moment(line: int) -> Moment:
        frames = (Frame("numpy.py", 1, "f"), Frame(str(inner), 1, "a"), Frame(str(fit), line, "g"))
        return Moment("libpython", frames)

    assert [profiled.stage_of(moment(line)) for line in (2, 3, 4)] == ["search", "search", "rest"]
    assert profiled.module_of(moment(2)) == "search.py"
    counts = profiled.count([moment(2), moment(3), moment(4)], profiled.stage_of)
    assert profiled.plain(counts)["search"][profiled.PYTHON] == 2


def test_imports_are_summed_by_package_beyond_the_others():
    ours = {"numpy": 1.0, "regimix.search.model": 0.25, "regimix.search.joint": 0.5, "queue": 1.0}
    assert start.beyond(ours, {"numpy": 2.0}) == {"queue": 1.0, "regimix.search": 0.75}


def test_passes_of_an_engine_are_timed_and_then_left_alone(monkeypatch):
    class Engine:
        def fold(self, value):
            return value + 1

    module = SimpleNamespace(__name__=Engine.__module__, Engine=Engine, Path=Path)
    monkeypatch.setattr(cluster.importlib, "import_module", lambda _: module)
    plain = Engine.fold
    with cluster.timed_passes() as seconds:
        assert [Engine().fold(1), Engine().fold(2)] == [2, 3]
    assert len(seconds) == 2
    assert Engine.fold is plain


def test_a_cluster_that_answers_wrongly_is_told():
    row = cluster.row("fit", {cluster.DASK: [2.0], cluster.MEMORY: [1.0]}, {"Dask": "wrong answer"})
    assert (row.ratio, row.met()) == (2.0, "wrong answer")


MEASURED = {
    "linear": {
        "sizes": [10, 100],
        "seconds": {"10": [1.0, 2.0], "100": [10.0]},
        "medians": [1.5, 10.0],
        "fit": {"exponent": 0.8, "factor": 0.2},
        "columns": 3,
    },
    "million": {
        "stages_in_fits": {"m given": {"search": 3.0, "rest": 1.0}},
        "targets": {"m given": 8},
        "size": "10 × 2",
    },
    "peers": {
        "bars": [
            {"peer": "a", "case": "easy", "ratio": 0.5, "target": 1, "found": True},
            {"peer": "b", "case": "hard", "ratio": 90.0, "target": 20, "found": False},
        ]
    },
}


def test_pictures_are_drawn_of_what_was_measured(tmp_path):
    assert list(plots.draw(MEASURED, tmp_path)) == list(plots.PICTURES)
    first = {path.name: path.read_bytes() for path in Path(tmp_path).iterdir()}
    assert set(first) == set(plots.PICTURES)
    plots.draw(MEASURED, tmp_path)
    assert first == {path.name: path.read_bytes() for path in Path(tmp_path).iterdir()}
    alone = plots.draw({"linear": MEASURED["linear"]}, tmp_path)
    assert list(alone) == ["speed-linear.svg"]
    assert plots.draw({"peers": {"bars": []}}, tmp_path) == {}
