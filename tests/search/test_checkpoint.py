"""Checkpoints: exact to the last bit, whole or not at all, and for one fit only."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from regimix.errors import CheckpointError, ParameterError
from regimix.search import checkpoint as module
from regimix.search.checkpoint import Checkpoint, fingerprint, seed_in
from regimix.search.settings import Settings
from tests.search.crashes import CrashError, bits, needs_sigkill

# --- values ---------------------------------------------------------------------------------------

numbers = st.integers() | st.floats() | st.booleans() | st.none() | st.text()
dtypes = hnp.boolean_dtypes() | hnp.integer_dtypes() | hnp.floating_dtypes()
arrays = hnp.arrays(
    dtypes | hnp.complex_number_dtypes(),
    hnp.array_shapes(min_dims=0, min_side=0, max_side=4),
)
anything = st.recursive(
    numbers | arrays | arrays.map(np.asfortranarray),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), anything, max_size=4), st.text())
@settings(max_examples=60)
def test_what_is_put_comes_back_to_the_last_bit(values, section):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        Checkpoint.open(path, "f").put(section, values)
        again = Checkpoint.open(path, "f").get(section)
    assert bits(again) == bits(values)


def test_arrays_come_back_as_ones_own(tmp_path):
    begun = Checkpoint.open(tmp_path / "c", "f")
    ours = np.arange(3.0)
    begun.put("a", {"x": ours})
    ours[0] = 9
    first = begun.get("a")["x"]
    first[1] = 9
    assert begun.get("a")["x"].tolist() == [0.0, 1.0, 2.0]


def test_numbers_of_numpy_and_tuples_become_plain(tmp_path):
    begun = Checkpoint.open(tmp_path / "c", "f")
    begun.put("a", {"x": (np.float64(0.1), np.int64(3), np.bool_(True), np.float32(0.1))})
    assert bits(begun.get("a")["x"]) == bits([0.1, 3, True, float(np.float32(0.1))])


@pytest.mark.parametrize("value", [{1: 2}, {"a": object()}, {"a": {1}}, {"a": np.array(["x"])}])
def test_what_is_not_plain_is_refused_and_nothing_is_written(tmp_path, value):
    begun = Checkpoint.open(tmp_path / "c", "f")
    before = begun.path.read_bytes()
    with pytest.raises(TypeError):
        begun.put("a", value)
    assert begun.path.read_bytes() == before
    assert begun.get("a") is None


def test_sections_stand_beside_each_other(tmp_path):
    path = tmp_path / "c"
    begun = Checkpoint.open(path, "f")
    assert begun.get("a") is None
    begun.put("a", {"x": 1})
    begun.put("b", {"y": 2})
    begun.put("a", {"x": 3})
    again = Checkpoint.open(path, "f")
    assert (again.get("a"), again.get("b")) == ({"x": 3}, {"y": 2})
    again.done()
    assert list(tmp_path.iterdir()) == []
    again.done()  # twice is no harm


# --- the file -------------------------------------------------------------------------------------


def one(path):
    """Write a checkpoint, and return its bytes."""
    begun = Checkpoint.open(path, "f")
    begun.put("a", {"x": np.arange(7.0), "words": ["some", None, 1e-300]})
    return path.read_bytes()


@pytest.fixture(scope="module")
def spare(tmp_path_factory):
    """A checkpoint that may be damaged, and its bytes."""
    path = tmp_path_factory.mktemp("spare") / "c"
    return path, one(path)


@given(where=st.integers(min_value=0), change=st.integers(1, 255))
@settings(max_examples=200)
def test_any_changed_byte_is_found(spare, where, change):
    path, data = spare[0], bytearray(spare[1])
    data[where % len(data)] ^= change
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"damaged.*Delete the file"):
        Checkpoint.open(path, "f")
    assert path.read_bytes() == data  # it may be someone's file: it is left alone


def test_a_file_that_was_cut_or_grew_is_found(tmp_path):
    path = tmp_path / "c"
    data = one(path)
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(CheckpointError, match="damaged"):
            Checkpoint.open(path, "f")
    path.write_bytes(data + b" ")
    with pytest.raises(CheckpointError, match="damaged"):
        Checkpoint.open(path, "f")


def test_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "c"
    one(path)
    monkeypatch.setattr(module, "version", lambda name: "99.0")
    with pytest.raises(CheckpointError, match=r"this is regimix 99\.0, which may search"):
        Checkpoint.open(path, "f")


@pytest.mark.parametrize("place", ["missing/c", "."])
def test_what_cannot_be_written_is_known_at_once(tmp_path, place):
    with pytest.raises(CheckpointError, match=r"cannot be (read|written)"):
        Checkpoint.open(tmp_path / place, "f")


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), CheckpointError),
        (CrashError(), CrashError),
    ],
)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_during_writing_leaves_what_was_written_before(
    tmp_path, monkeypatch, failure, raised, step
):
    def fail(*args):
        raise failure

    path = tmp_path / "c"
    before = one(path)
    begun = Checkpoint.open(path, "f")
    with monkeypatch.context() as patch:
        patch.setattr(os if step == "fsync" else Path, step, fail)
        with pytest.raises(raised):
            begun.put("a", {"x": 2})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert begun.get("a")["words"] == ["some", None, 1e-300]


def test_full_disks_say_so(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="cannot be written: No space left on device"):
        Checkpoint.open(tmp_path / "c", "f")


def test_a_file_that_stays_does_not_cost_the_answer(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(errno.EACCES, "denied")

    begun = Checkpoint.open(tmp_path / "c", "f")
    monkeypatch.setattr(Path, "unlink", fail)
    begun.done()


def test_the_working_directory_may_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    begun = Checkpoint.open("c", "f")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    begun.put("a", {"x": 1})
    assert Checkpoint.open(tmp_path / "c", "f").get("a") == {"x": 1}
    assert list(Path().iterdir()) == []


WRITER = """
import sys, numpy as np
from regimix.search.checkpoint import Checkpoint
begun = Checkpoint.open(sys.argv[1], "f")
for i in range(10**9):
    begun.put("a", {"i": i, "x": np.full(20_000, float(i))})
    print(i, flush=True)
"""


@needs_sigkill
@pytest.mark.parametrize("delay", [0.0, 0.003, 0.01])
def test_a_process_killed_while_it_writes_leaves_a_whole_file(tmp_path, delay):
    path = tmp_path / "c"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        for _ in range(3):
            told = int(writer.stdout.readline())
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
    told = int(rest[-1]) if rest else told
    values = Checkpoint.open(path, "f").get("a")
    assert values["i"] in (told, told + 1)  # written, but not yet told
    assert (values["x"] == values["i"]).all()


# --- whose file it is -----------------------------------------------------------------------------


def test_settings_that_change_the_answer_change_the_fingerprint():
    base = Settings()
    other = {
        "n_components": 2,
        "outliers": 0.1,
        "noise": "normal",
        "search": "joint",
        "subspace": None,
        "solver": "cg",
        "max_iter": 7,
        "tol": 0.1,
        "seed": 1,
        "granularity": 0.3,
        "tolerance": 0.2,
        "taus": (0.5,),
    }
    of_the_run = {"n_jobs": 2, "max_starts": 5, "time_limit": 1.0, "checkpoint": "c"}
    of_the_run |= {"callback": print, "keep_rows": True}
    assert set(other) | set(of_the_run) == {field.name for field in fields(Settings)}
    for name, value in other.items():
        assert fingerprint(replace(base, **{name: value})) != fingerprint(base), name
    for name, value in of_the_run.items():
        assert fingerprint(replace(base, **{name: value})) == fingerprint(base), name
    # Algorithm 2 turns to another share after so many starts.
    net = replace(base, search="net")
    assert fingerprint(replace(net, max_starts=5)) != fingerprint(net)


def test_parts_that_differ_at_all_change_the_fingerprint():
    x = np.arange(6.0)
    parts = [(), (x,), (x.reshape(2, 3),), (x.astype(int),), (np.nextafter(x, 9),), (x, x), (6,)]
    parts += [("ab", "c"), ("a", "bc"), (0.5,), ("0.5",), (x[::-1],), (np.arange(12.0)[::2],)]
    found = {fingerprint(Settings(), *some) for some in parts}
    assert len(found) == len(parts)
    assert fingerprint(Settings(), x) == fingerprint(Settings(), np.arange(12.0)[::2] / 2)


def test_the_file_of_another_fit_is_refused_and_the_difference_named(tmp_path):
    path, base = tmp_path / "c", Settings(n_components=3)
    Checkpoint.open(path, fingerprint(base, "rows"))
    before = path.read_bytes()
    for other, data, words in (
        (Settings(seed=4), "rows", r"n_components is 3 there and None here; seed is 0 there and 4"),
        (base, "others", "belongs to another fit: its data are others"),
        (Settings(), "others", "None here; its data are others"),
    ):
        with pytest.raises(CheckpointError, match=words) as caught:
            Checkpoint.open(path, fingerprint(other, data))
        assert "Delete the file to begin anew, or give another path" in str(caught.value)
        assert path.read_bytes() == before
    for strange in ("f", "[1]", "{}"):
        with pytest.raises(CheckpointError, match="another fit"):
            Checkpoint.open(path, strange)


def test_paths_that_cannot_be_are_refused(tmp_path):
    for wrong, words in (
        (3, "path of a file; got 3"),
        (b"c", "path of a file"),
        (tmp_path, "is a folder"),
        ("", "is a folder"),
        (tmp_path / "missing" / "c", "folder that does not exist"),
    ):
        with pytest.raises(ParameterError, match=words):
            Settings.read(checkpoint=wrong)
    (tmp_path / "there").touch()
    for right in ("c", "there"):
        read = Settings.read(checkpoint=tmp_path / right, random_state=3)
        assert (read.checkpoint, read.seed) == (str(tmp_path / right), 3)


def test_a_second_fit_without_a_seed_is_the_first_one_again(tmp_path):
    """A checkpoint does not choose the seed; who goes on from one has the seed it began with."""
    path = tmp_path / "c"
    first, second = (Settings.read(checkpoint=str(path)) for _ in range(2))
    assert first.seed != second.seed
    assert seed_in(path) is None
    Checkpoint.open(path, fingerprint(first))
    assert seed_in(path) == first.seed
    path.write_bytes(b"no checkpoint")
    assert seed_in(path) is None
