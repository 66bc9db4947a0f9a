"""Through a real terminal, and through a pipe that is not what it should be."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from regimix import load
from regimix.cli.fitting import INTERRUPTED
from regimix.synth import make_mlrc
from regimix.tables import write_table
from tests.cli.terminal import Terminal

FIT = ("--target", "y", "--drop", "id")
CTRL_C = "\x03"
FOUND = re.compile(r"[1-9]\d* regimes? so far")


def test_a_terminal_has_colours_a_width_and_a_bar_that_goes_away(table):
    with Terminal("fit", str(table), *FIT, width=70) as terminal:
        assert terminal.end() == 0
    assert "2 linear regimes in 600 rows" in terminal.plain
    assert re.search(r"\x1b\[94m *0\x1b", terminal.seen)  # the first regime in its colour
    assert "reading" in terminal.plain
    answer = terminal.plain[terminal.plain.index("regime ") :]
    assert 60 < max(map(len, answer.splitlines())) <= 70
    # The bar hid the cursor, erased itself, and brought the cursor back.
    assert terminal.seen.count("\x1b[?25l") == terminal.seen.count("\x1b[?25h") == 1
    assert "\x1b[2K" in terminal.seen


def test_a_refusal_on_a_terminal_is_one_sentence(table):
    with Terminal("fit", str(table), "--target", "z") as terminal:
        assert terminal.end() == 2
    said = terminal.plain.split("regimix: ")[1].strip()
    assert said.startswith(str(table))
    assert "Traceback" not in terminal.plain


@pytest.fixture(scope="module")
def long_fit(tmp_path_factory):
    """A table that is searched ten times as long as it takes to find the first regimes."""
    path = tmp_path_factory.mktemp("long") / "long.parquet"
    X, y, _ = make_mlrc(10_000, 12, 10, corruption=0.05, noise=1.5, random_state=0)
    write_table(path, {**{f"x{i}": column for i, column in enumerate(X.T)}, "y": y})
    return path


def test_ctrl_c_ends_a_long_search_with_the_best_so_far_and_whole_files(long_fit, tmp_path):
    files = {"--model": tmp_path / "m.regimix", "--labels": tmp_path / "l.parquet"}
    options = [str(word) for pair in files.items() for word in pair]
    with Terminal("fit", str(long_fit), "--target", "y", *options) as terminal:
        terminal.wait_for(FOUND.search)
        terminal.press(CTRL_C)
        code = terminal.end()
    assert code == 130
    assert "the search was interrupted; this is the best it had found" in terminal.plain
    assert "Traceback" not in terminal.plain
    assert "\x1b[?25h" in terminal.seen
    mixture = load(files["--model"])
    assert mixture.stopped in INTERRUPTED
    assert f"{mixture.n_components} linear regime" in terminal.plain
    labels = pl.read_parquet(files["--labels"])
    assert labels["regime"].to_list() == mixture.labels.tolist()


@pytest.fixture(scope="module")
def many_rows(tmp_path_factory):
    """Six regimes in more rows than a search looks at: it is far from its end with some found."""
    path = tmp_path_factory.mktemp("many") / "many.parquet"
    X, y, _ = make_mlrc(200_000, 5, 6, corruption=0.05, noise=0.5, random_state=0)
    write_table(path, {**{f"x{i}": column for i, column in enumerate(X.T)}, "y": y})
    return path


def test_a_signal_ends_a_fit_of_many_rows_with_whole_files(many_rows, tmp_path):
    """How much is done after it is counted in ``tests/search/test_deadline.py``."""
    files = {"--model": tmp_path / "m.regimix", "--labels": tmp_path / "l.parquet"}
    options = [str(word) for pair in files.items() for word in pair]
    with Terminal("fit", str(many_rows), "--target", "y", *options) as terminal:
        terminal.wait_for(FOUND.search)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
    assert "the search was interrupted; this is the best it had found" in terminal.plain
    assert "Traceback" not in terminal.plain
    mixture = load(files["--model"])
    assert mixture.stopped in INTERRUPTED
    assert f"{mixture.n_components} linear regime" in terminal.plain
    labels = pl.read_parquet(files["--labels"])
    assert np.array_equal(labels["regime"], mixture.labels)
    assert set(tmp_path.iterdir()) == set(files.values())


def test_ctrl_c_before_there_is_an_answer_writes_nothing(tmp_path):
    """While rows are read that nobody types: as long as the test takes to press the keys."""
    model = tmp_path / "m.regimix"
    model.write_bytes(b"as it was")
    with Terminal("fit", "-", "--target", "y", "--model", str(model)) as terminal:
        terminal.wait_for(lambda shown: "reading" in shown)
        terminal.press(CTRL_C)
        code = terminal.end()
    assert code == 130
    assert "regimix: interrupted before" in terminal.plain
    assert model.read_bytes() == b"as it was"
    assert list(tmp_path.iterdir()) == [model]


def test_a_second_ctrl_c_does_not_wait(long_fit, tmp_path):
    with Terminal("fit", str(long_fit), "-y", "y", "--report", f"{tmp_path}/r.html") as terminal:
        terminal.wait_for(FOUND.search)
        terminal.press(CTRL_C)
        terminal.press(CTRL_C)
        assert terminal.end() == 130
    assert "Traceback" not in terminal.plain
    # Either it was written as a whole before the second one, or not at all.
    assert {path.name for path in tmp_path.iterdir()} <= {"r.html"}


@pytest.mark.parametrize("arguments", [["fit", "t.csv", "-y", "y"], ["fit", "--help"]])
def test_a_pipe_that_knows_only_ascii(tmp_path, data, arguments):
    write_table(tmp_path / "t.csv", {"größe…": data.X[:, 0], "x": data.X[:, 1], "y": data.y})
    kept = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    run = subprocess.run(
        [sys.executable, "-m", "regimix", *arguments],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={**kept, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert run.returncode in (0, 3), run.stderr
    said = (run.stdout + run.stderr).decode("ascii")
    assert "Traceback" not in said
    assert "\x1b" not in said
    assert "reading" not in said
    if "--help" not in arguments:
        for shown in ("R2", "+-", "x noise", "gr??e..."):
            assert shown in said


def test_a_reader_that_has_seen_enough_is_no_error(table, tmp_path):
    command = [sys.executable, "-m", "regimix", "fit", str(table), *FIT]
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(
        [*command, "--model", f"{tmp_path}/m.regimix"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert run.returncode == 0
    assert b"Broken" not in run.stderr
    assert b"Traceback" not in run.stderr
    assert (tmp_path / "m.regimix").exists()
