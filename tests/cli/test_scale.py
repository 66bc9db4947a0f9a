"""Tables that are read part by part, or by a cluster: the same answers from the command line."""

import io
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import fsspec
import numpy as np
import polars as pl
import pytest

from regimix import load, scan_parquet
from regimix.cli import fitting
from regimix.cli import place as place_module
from regimix.cli.app import explain
from regimix.cli.console import Bar, CommandError, Voice, progress_bar
from regimix.cli.place import Place
from regimix.engines.dask import current_client
from regimix.errors import ClusterError, Message, OutOfTimeError, Setting
from regimix.report.rows import read_rows
from regimix.result.gate import gate_shares
from regimix.search.settings import Progress
from regimix.tables import parquet
from tests.cli.terminal import Terminal
from tests.engines.clusters import small_cluster
from tests.patience import comes_true
from tests.tables.parquets import contents, mixed_frame, write_files

pytestmark = pytest.mark.usefixtures("searched_once")

FRAME = mixed_frame()
USED = FRAME.filter(
    pl.all_horizontal(pl.col("x0", "x3", "whole", "flag", "y").cast(pl.Float64).is_finite())
).height
FIT = ("--target", "y", "--drop", "id")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Cut even small tables into many parts."""
    monkeypatch.setattr(parquet, "SMALLEST_PART", 50_000)


@pytest.fixture
def rows(tmp_path):
    return write_files(tmp_path / "rows", FRAME)


@pytest.fixture(scope="module")
def scheduler():
    with small_cluster() as client:
        yield client.scheduler.address
        # Commands that were run here have let go of the cluster.
        assert current_client() is client


def numbers(summary):
    """All that a summary says of the regimes, as one array."""
    regimes = summary["regimes"]
    return np.array(
        [
            [regime["share"], regime["noise"], regime["rows"], regime["intercept"]["value"]]
            + [term["value"] for term in regime["terms"]]
            for regime in regimes
        ]
    )


REGIMES = ("fit", "groups", "--target", "y", "--seed", "0")


@pytest.fixture
def groups(tmp_path):
    """Two regimes, which a text and a number that are no features tell apart."""
    rng = np.random.default_rng(0)
    n = 600
    second, x = rng.random(n) < 0.5, rng.normal(size=n)
    columns = {
        "x": x,
        "y": np.where(second, 3 * x + 1, -2 * x) + 0.1 * rng.normal(size=n),
        "kind": np.where(second ^ (rng.random(n) < 0.1), "cat", "dog"),
        "size": rng.normal(size=n) + second,
    }
    return write_files(tmp_path / "groups", pl.DataFrame(columns))


@pytest.mark.parametrize(("engine", "columns"), [("parts", "kind,size"), ("dask", "all")])
def test_a_profile_is_that_of_the_table_in_memory(regimix, groups, scheduler, engine, columns):
    """Where all rows are compared, it is the same; the report has it, too."""
    use = ("--profile", columns, *(("--features", "x") if columns == "all" else ()), "--json")
    cluster = ("--scheduler", scheduler) if engine == "dask" else ()
    known = regimix(*REGIMES, *use, "--engine", "memory").summary["profile"]
    ran = regimix(*REGIMES, *use, "--engine", engine, *cluster, "--report", "r.html")
    assert ran.code == 0, ran.err
    found = ran.summary["profile"]
    assert found["sentences"] == known["sentences"]
    assert len(found["values"]) == len(known["values"]) > 0
    assert "Regime 0 is mostly" in " ".join(found["sentences"])
    assert "mostly" in Path("r.html").read_text(encoding="utf-8")


def test_a_profile_of_many_rows_says_that_they_are_a_draw(regimix, groups, monkeypatch):
    monkeypatch.setattr(fitting, "PROFILE_ROWS", 300)
    ran = regimix(*REGIMES, "--profile", "kind", "--engine", "parts")
    assert re.search(r"Compared are (2|3)\d\d rows, drawn at random from the 600", ran.out)
    ran = regimix(*REGIMES, "--profile", "kinds", "--engine", "parts")
    assert ran.code != 0
    assert "no column 'kinds' (--profile)" in ran.err


@pytest.mark.parametrize("gate", ["logistic", "trees"])
def test_a_report_knows_the_columns_of_a_gate_in_parts(regimix, groups, gate, monkeypatch):
    gating = ("--gating", gate, "--gating-columns", "kind", "--features", "x")
    assert regimix(*REGIMES, *gating, "--model", "m.regimix").code == 0
    monkeypatch.setattr(place_module, "UNPACKED", 1_000_000)
    how = ("groups/*.parquet", "--memory", "1GB", "--out", "r.html")
    ran = regimix("report", "m.regimix", *how)
    assert ran.code == 0, ran.err
    assert "read in parts" in ran.out
    mixture, frame = load("m.regimix"), pl.read_parquet("groups/*.parquet")
    shares = mixture.gate.shares(frame.select("kind"))
    assert len(np.unique(shares[:, 0])) == 2
    parts = scan_parquet("groups/*.parquet", "y", ["x"], gating=["kind"])
    rows = (frame.select("x").to_numpy(), frame["y"].to_numpy(), shares)
    found = read_rows(mixture, parts, None, None, partial(gate_shares, mixture))
    np.testing.assert_array_equal(found.labels, mixture.assign(*rows))
    np.testing.assert_allclose(found.sure, mixture.responsibilities(*rows).max(axis=1))


@pytest.fixture
def in_memory(regimix, rows):
    del rows
    return regimix("fit", "rows", *FIT, "--engine", "memory", "--json").summary


@pytest.mark.parametrize("engine", ["parts", "dask"])
def test_the_answer_is_that_of_the_table_in_memory(regimix, in_memory, scheduler, engine):
    cluster = ("--scheduler", scheduler) if engine == "dask" else ("--memory", "8MB")
    outputs = ("--labels", "out/", "--model", "m.regimix", "--report", "r.html")
    ran = regimix("fit", "rows/*.parquet", *FIT, "--engine", engine, *cluster, *outputs, "--json")
    assert ran.code == 0, ran.err
    summary = ran.summary
    np.testing.assert_allclose(numbers(summary), numbers(in_memory), rtol=0, atol=1e-9)
    assert (
        summary["rows"]
        == in_memory["rows"]
        == {
            "read": FRAME.height,
            "dropped": FRAME.height - USED,
            "used": USED,
            "mass": USED,
            "in_doubt": in_memory["rows"]["in_doubt"],
        }
    )
    assert summary["outliers"]["rows"] == in_memory["outliers"]["rows"]
    # The excerpt of a small table is all of it: the same outliers, counted among the rows used.
    mine, theirs = (s["outliers"]["farthest"] for s in (summary, in_memory))
    assert [row["value"] for row in mine] == [row["value"] for row in theirs]
    assert summary["outliers"]["key"] == "row used"
    page = Path("r.html").read_text(encoding="utf-8")
    assert f"of the {USED} rows" in page
    assert f"are labelled outliers: {mine[0]['key']}, {mine[1]['key']}, " in page
    assert summary["files"] == {"labels": "out", "model": "m.regimix", "report": "r.html"}
    written = pl.concat(pl.read_parquet(file) for file in sorted(Path("out").iterdir()))
    assert written["row"].to_list() == list(range(1, FRAME.height + 1))
    counts = dict(written["regime"].drop_nulls().value_counts().iter_rows())
    assert counts[-1] == in_memory["outliers"]["rows"]
    assert [counts[j] for j in range(3)] == [regime["rows"] for regime in in_memory["regimes"]]
    assert "missing or infinite value are dropped" in ran.err
    if engine == "dask":
        assert re.search(r"Dashboard of the cluster: http://\S+/status", ran.err)


def test_a_model_meets_rows_wherever_they_are(regimix, rows, scheduler):
    assert regimix("fit", rows, *FIT, "--engine", "memory", "--model", "m.regimix").code == 0
    engines = {"parts": ("--engine", "parts"), "workers": ("--scheduler", scheduler)}
    for out, engine in engines.items():
        ran = regimix("predict", "m.regimix", rows, "--out", out, *engine)
        assert ran.code == 0, ran.err
        assert re.search(rf"{FRAME.height} rows in \d+ files, \d+ of them outliers", ran.out)
    assert contents("parts") == contents("workers")
    pl.read_parquet(rows / "part.0.parquet").drop("y").write_parquet("bare.parquet")
    ran = regimix("predict", "m.regimix", "bare.parquet", "--out", "bare/")
    assert "2000 rows in 1 file; without the column y regimes are predicted" in ran.out


def test_predictions_that_were_interrupted_say_so(regimix, rows, monkeypatch):
    assert regimix("fit", rows, *FIT, "--engine", "memory", "--model", "m.regimix").code == 0

    def interrupt(self, done, total):
        if done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Bar, "parts", interrupt)
    ran = regimix("predict", "m.regimix", rows, "--out", "out/")
    assert ran.code == 130
    assert "interrupted; files in out are whole, but not all are there." in ran.err
    monkeypatch.undo()
    monkeypatch.chdir(rows.parent)
    monkeypatch.setattr(parquet, "SMALLEST_PART", 50_000)
    some = contents("out")
    assert regimix("predict", "m.regimix", rows, "--out", "out/").code == 0
    assert len(some) == 3
    assert some.items() < contents("out").items()


def test_a_table_that_is_too_large_for_memory_is_read_in_parts(regimix, rows, monkeypatch):
    place = Place().settled(str(rows), ("--labels", None))
    assert place.engine == "memory"
    monkeypatch.setattr(place_module, "machine_memory", lambda: 1_000_000)
    place = Place().settled(str(rows), ("--labels", None))
    assert place.engine == "parts"
    ran = regimix("fit", rows, *FIT, "--labels", "l.csv")
    assert ran.code == 2
    assert "--labels l.csv must be a folder: the table is read part by part" in ran.err


@pytest.mark.parametrize(
    ("data", "labels", "options", "engine"),
    [
        ("rows.csv", None, {}, "memory"),
        ("rows.csv", "l.csv", {}, "memory"),
        ("rows/*.parquet", "l.parquet", {}, "memory"),
        ("rows/*.parquet", "out/", {}, "parts"),
        ("rows/*.parquet", "out", {}, "parts"),
        ("s3://bucket/rows", None, {}, "parts"),
        ("postgresql://host/name", None, {}, "memory"),
        ("rows.parquet", None, {"workers": 2}, "dask"),
        ("rows.parquet", None, {"scheduler": "tcp://h:1"}, "dask"),
        ("rows.parquet", "out/", {"engine": "dask"}, "dask"),
    ],
)
def test_what_auto_means(data, labels, options, engine):
    assert Place(**options).settled(data, ("--labels", labels)).engine == engine


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fit nowhere -y y --engine parts", "there is no file 'nowhere'"),
        ("fit - -y y --engine parts", "--engine parts reads Parquet, and - is none"),
        ("fit rows -y y --engine parts --rows 9", "--rows is for tables in memory"),
        ("fit rows -y y --engine parts --labels l.csv", "must be a folder"),
        ("fit rows -y y --engine memory --labels out/", "is a folder, which is for Parquet files"),
        ("fit rows -y y --engine memory --scheduler tcp://h:1", "--scheduler is for --engine dask"),
        ("fit rows -y y --engine memory --memory 2GB", "--memory is for --engine parts"),
        ("fit rows -y y --engine parts --memory lots", "--memory must be a number of bytes"),
        ("fit rows -y y --workers 2 --scheduler tcp://h:1", "--workers is for a cluster on this"),
        ("fit rows -y y --workers 0", "--workers"),
        ("fit rows -y y --engine spark", "--engine"),
        ("fit rows -y y --engine parts --labels rows/out", "would overwrite what is read"),
        ("fit rows -y id --engine parts", "'id' cannot be the target: it holds text"),
        ("fit rows -y z --engine parts", "rows has no column 'z' (the target)"),
        ("fit nowhere/*.parquet -y y --engine parts", "no file matches 'nowhere/*.parquet'"),
        ("predict m.regimix rows.csv --out o/ --engine parts", "there is no file 'rows.csv'"),
    ],
)
def test_what_does_not_go_together_is_said(regimix, rows, arguments, words):
    ran = regimix(*arguments.split())
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert sorted(path.name for path in rows.parent.iterdir()) == ["rows"]


@pytest.mark.parametrize("asked", ["--engine parts", "--workers 2", "--scheduler tcp://h:1"])
def test_what_asked_for_parquet_is_named(regimix, rows, asked):
    Path("rows.csv").write_text("x,y\n1,2\n")
    ran = regimix("fit", "rows.csv", "-y", "y", *asked.split())
    assert ran.code == 2
    option = asked.split()[0]
    assert f"{asked} reads Parquet, and rows.csv is none; leave {option} out." in ran.err
    ran = regimix("fit", "rows", "-y", "y", "--rows", "9", *asked.split())
    assert f"--rows is for tables in memory, not for {asked}; leave" in ran.err


def test_a_copy_of_the_table_is_never_replaced_by_labels(regimix, rows, monkeypatch):
    monkeypatch.setattr(parquet, "SMALLEST_PART", 10**6)  # files are not cut, and keep their names
    shutil.copytree(rows, "backup")
    before = contents("backup")
    fit = ("fit", rows, *FIT, "--engine", "parts", "--model", "m.regimix")
    ran = regimix(*fit, "--labels", "backup/")
    assert ran.code == 2
    assert "which would be replaced and is no file of labels" in ran.err
    assert not Path("m.regimix").exists()  # said before the fit
    for _ in range(2):
        assert regimix(*fit, "--labels", "out/").code == 0
    ran = regimix("predict", "m.regimix", rows, "--out", "backup/", "--engine", "parts")
    assert ran.code == 2
    assert "which would be replaced and is no file of labels" in ran.err
    assert contents("backup") == before


def test_a_damaged_file_is_named(regimix, rows):
    path = rows / "part.1.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(4000) + whole[4004:])
    ran = regimix("fit", "rows", *FIT, "--engine", "parts", "--labels", "out/")
    assert ran.code == 2
    assert re.search(r"cannot read row group \d of 'rows/part\.1\.parquet'", ran.err)
    assert not Path("out").exists()


def test_a_scheduler_that_does_not_answer_is_named(regimix, rows, monkeypatch):
    monkeypatch.setattr("regimix.engines.dask.CONNECT", 0.2)
    ran = regimix("fit", rows, *FIT, "--scheduler", "tcp://127.0.0.1:9")
    assert ran.code == 2
    assert "no scheduler answers at tcp://127.0.0.1:9" in ran.err


def test_a_cluster_that_cannot_be_started_is_told(regimix, rows, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("Nanny failed to start.\nmore of it")

    monkeypatch.setattr("regimix.engines.dask.LocalCluster", fails)
    ran = regimix("fit", rows, *FIT, "--workers", "2")
    assert ran.code == 2
    assert "a cluster on this machine cannot be started: Nanny failed to start. Free" in ran.err
    assert "None" not in ran.err


@pytest.mark.parametrize("labels", ["memory://cli-rows", "memory://cli-rows/labels/", "memory://"])
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_table_at_an_address_is_never_written_over(regimix, rows, command, labels):
    memory = fsspec.filesystem("memory")
    for path in rows.iterdir():
        memory.pipe_file(f"/cli-rows/{path.name}", path.read_bytes())
    before = {path: memory.cat(path) for path in memory.find("/")}
    source = "memory://cli-rows/*.parquet" if labels == "memory://" else "memory://cli-rows"
    if command == "fit":
        ran = regimix("fit", source, *FIT, "--labels", labels, "--model", "late.regimix")
    else:
        assert regimix("fit", rows, *FIT, "--model", "m.regimix").code == 0
        ran = regimix("predict", "m.regimix", source, "--out", labels)
    assert ran.code == 2
    assert re.search("would overwrite what is read|which is none of the files", ran.err)
    assert not Path("late.regimix").exists()  # it was told before the fit
    assert {path: memory.cat(path) for path in memory.find("/")} == before


def test_nor_is_one_in_a_folder_that_is_told_by_its_address(regimix, rows):
    before = contents(rows)
    address = f"file://{rows}"
    for source, option, place in (
        (address, "--labels", rows),
        (rows, "--labels", f"{address}/labels"),
        (f"{address}/*.parquet", "--labels", address),
        (address, "--model", rows / "m.regimix"),
    ):
        ran = regimix("fit", source, *FIT, option, place, "--engine", "parts")
        assert ran.code == 2
        assert re.search("would overwrite what is read|where the table itself is", ran.err)
    assert contents(rows) == before


def test_a_folder_with_another_table_is_refused_before_the_fit(regimix, rows):
    Path("out").mkdir()
    FRAME[:5].write_parquet("out/older.parquet")
    ran = regimix("fit", rows, *FIT, "--labels", "out/", "--model", "m.regimix")
    assert ran.code == 2
    assert "holds 'older.parquet', which is none of the files to be written" in ran.err
    assert not Path("m.regimix").exists()


def test_a_package_for_addresses_that_is_missing_is_named(regimix, monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    # fsspec remembers the packages that it has used.
    used = sys.modules["fsspec.registry"]._registry
    monkeypatch.delitem(used, "s3", raising=False)
    for arguments in (("s3://b/rows",), ("rows.parquet", "--labels", "s3://b/labels")):
        ran = regimix("fit", *arguments, *FIT)
        assert ran.code == 2
        assert "pip install s3fs" in ran.err


def test_a_time_limit_before_there_is_an_answer(regimix, rows):
    ran = regimix("fit", "rows", *FIT, "--engine", "parts", "--time-limit", "1e-6")
    assert ran.code == 3
    assert "--time-limit of 1e-06 seconds was reached before there was an answer" in ran.err


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (
            ClusterError(
                Message("all are lost; with a ", Setting("checkpoint"), " file it goes on.")
            ),
            "with a --checkpoint file it",
            2,
        ),
        (
            OutOfTimeError(Message("the ", Setting("time_limit"), " was reached.")),
            "the --time-limit was",
            3,
        ),
        (ModuleNotFoundError("no", name="distributed"), r"'regimix[dask]'", 2),
    ],
)
def test_failures_of_clusters_have_a_sentence_and_a_code(error, words, code):
    sentence, found = explain(error)
    assert words in sentence
    assert found == code


def test_a_checkpoint_is_gone_when_the_fit_is_done(regimix, rows):
    ran = regimix("fit", rows, *FIT, "--engine", "parts", "--checkpoint", "on.the.way")
    assert ran.code == 0, ran.err
    assert not Path("on.the.way").exists()


def test_folders_are_told_from_files(tmp_path):
    assert place_module.is_folder("out/")
    assert place_module.is_folder("out")
    assert place_module.is_folder("s3://bucket/out")
    assert not place_module.is_folder("out.parquet")
    (tmp_path / "odd.name").mkdir()
    assert place_module.is_folder(str(tmp_path / "odd.name"))
    with pytest.raises(CommandError, match="is a folder, which is for Parquet"):
        Place("memory").settled("rows.parquet", ("--labels", "out"))


def test_the_machine_has_memory(tmp_path, monkeypatch):
    whole = place_module.machine_memory()
    assert 10**8 < whole < 10**15
    limit = tmp_path / "memory.max"
    limit.write_text("1000\n", encoding="ascii")
    monkeypatch.setattr(place_module, "CONTAINER_LIMIT", limit)
    assert place_module.machine_memory() == 1000
    limit.write_text("max\n", encoding="ascii")
    assert place_module.machine_memory() >= whole


# --- progress -------------------------------------------------------------------------------------


class Screen:
    """In the place of rich's progress: remembers what it was told."""

    def update(self, task, **told):
        self.told = {**getattr(self, "told", {}), **told}


def reading(done, total):
    return Progress("reading", 0, 0.0, 0.0, 0, done, total)


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        # As they are read here: the number of parts is known after the first pass.
        ([(1, None), (2, None), (1, 2), (2, 2), (1, 2)], "pass 3: 1 of 2 parts"),
        ([(1, None), (1, 1), (1, 1)], "pass 3: 1 of 1 part"),
        # As workers do them: asked several times in between.
        ([(0, 8), (3, 8), (3, 8), (8, 8), (8, 8), (0, 8), (5, 8)], "pass 2: 5 of 8 parts"),
    ],
)
def test_passes_are_counted(steps, last):
    screen = Screen()
    bar = Bar(screen, 0)
    for step in steps:
        bar.step(reading(*step))
    assert screen.told["found"] == last
    bar.step(Progress("add", 2, 1.0, 1.0, 5))
    assert screen.told == {
        "description": "looking for another regime",
        "found": "2 regimes so far",
        "parts": None,
    }


def test_without_a_terminal_lines_say_how_far_it_is(monkeypatch):
    monkeypatch.setattr("regimix.cli.console.LINES_EVERY", 0.0)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    voice = Voice()
    with progress_bar(voice, None, lines=True) as bar:
        bar.step(Progress("add", 2, 1.0, 1.0, 5))
        bar.step(reading(3, 8))
    (line,) = voice.err.file.getvalue().splitlines()
    assert re.fullmatch(r"going over all rows, pass 1: 3 of 8 parts; 2 regimes so far; \d+ s", line)


# --- on a terminal --------------------------------------------------------------------------------


def left_behind(session):
    """Processes of a session that are still at work."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(status.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked for in /proc")
def test_ctrl_c_leaves_no_worker_behind(rows, tmp_path):
    arguments = ("fit", str(rows), *FIT, "--workers", "2", "--labels", str(tmp_path / "out"))
    with Terminal(*arguments, width=100) as terminal:
        terminal.wait_for(lambda shown: "pass " in shown)
        terminal.press("\x03")
        code = terminal.end()
        session = terminal.process.pid
    assert code == 130
    assert "Traceback" not in terminal.plain
    assert re.search(r"Dashboard of the cluster: http://\S+/status", terminal.plain)
    # What watches over shared memory goes when it sees that the others are gone.
    assert comes_true(lambda: not left_behind(session)), left_behind(session)
    assert not list(tmp_path.rglob("*.part"))


def test_a_report_on_a_large_table_is_read_in_parts(regimix, rows, monkeypatch):
    del rows
    assert regimix("fit", "rows", *FIT, "--model", "m.regimix", "-q").code == 0
    monkeypatch.setattr(place_module, "machine_memory", lambda: 1000)
    ran = regimix("report", "m.regimix", "rows", "-o", "r.html", "--key", "id")
    assert ran.code == 0, ran.err
    assert f"r.html: a report on {FRAME.height} rows, read in parts." in ran.out
    page = Path("r.html").read_text(encoding="utf-8")
    assert f"Of the {USED} rows that were read, " in page
    assert "This page shows" not in page  # they are those of the fit
    with monkeypatch.context() as patch:
        patch.setattr(place_module, "machine_memory", lambda: 10**12)
        whole = regimix("report", "m.regimix", "rows", "-o", "r.html", "--key", "id")
    assert whole.out.endswith("rows.\n")
    assert "that were read" not in Path("r.html").read_text(encoding="utf-8")
