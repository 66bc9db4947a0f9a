"""Runs: resumable, whole files, the same numbers for the same seed."""

import json

import pytest

import lab
from lab import runner
from lab.experiment import Experiment, Verdict
from regimix.errors import MissingExtraError, ParameterError


class Toy:
    """An experiment that counts how often it measures."""

    def __init__(self, version=1):
        self.measured = []
        self.experiment = Experiment(
            name="toy",
            title="A toy",
            claim="none",
            statement="numbers are small",
            tolerance="none",
            sabotage="large numbers",
            quick=({"a": (1, 2), "b": ("x",)},),
            full=({"a": (1, 2, 3), "b": ("x", "y")},),
            measure=self.measure,
            check=lambda table: Verdict.of(
                max(table["value"]) < 10, max(table["value"]), 10, "seen"
            ),
            draw=lambda table, figure: figure.subplots().plot(table["a"], table["value"]),
            version=version,
            repeats={"quick": 2, "full": 2},
        )

    def measure(self, cell, rng, broken):
        self.measured.append(cell)
        value = cell["a"] + rng.random() + (100 if broken else 0)
        return [{"value": value, "empty": float("nan")}, {"value": value / 2}]


@pytest.fixture
def toy(monkeypatch):
    made = Toy()
    monkeypatch.setattr(runner, "EXPERIMENTS", {"toy": made.experiment})
    return made


def test_a_run_writes_a_tidy_table_a_figure_and_a_verdict(toy, tmp_path):
    seen = []
    (outcome,) = lab.run("toy", out=tmp_path, progress=lambda *state: seen.append(state))
    assert seen == [("toy", done, 4) for done in (1, 2, 3, 4)]
    assert {path.name for path in tmp_path.iterdir()} == {
        "toy.csv",
        "toy.json",
        "toy.jsonl",
        "toy.svg",
    }
    assert outcome.table.columns == ("a", "b", "repeat", "value", "empty")
    header, *rows = (tmp_path / "toy.csv").read_text(encoding="utf-8").splitlines()
    assert header == "a,b,repeat,value,empty"
    assert len(rows) == 8
    verdict = json.loads((tmp_path / "toy.json").read_text(encoding="utf-8"))
    assert (verdict["verdict"], verdict["size"], verdict["seed"]) == ("holds", "quick", 0)


def test_finished_cells_are_not_measured_again(toy, tmp_path):
    first = lab.run("toy", out=tmp_path)[0].table.to_csv()
    again = lab.run("toy", out=tmp_path)[0].table.to_csv()
    assert again == first
    assert len(toy.measured) == 4
    lab.run("toy", "full", out=tmp_path)
    assert len(toy.measured) == 12, "the full size goes on from the cells of the quick one"


def test_an_interrupted_run_goes_on_where_it_was(toy, tmp_path):
    def interrupt(name, done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lab.run("toy", out=tmp_path, progress=interrupt)
    assert {path.name for path in tmp_path.iterdir()} == {"toy.jsonl"}
    resumed = lab.run("toy", out=tmp_path)[0].table.to_csv()
    assert len(toy.measured) == 4
    assert resumed == lab.run("toy")[0].table.to_csv()


def test_a_line_cut_short_by_a_crash_is_measured_again(toy, tmp_path):
    whole = lab.run("toy", out=tmp_path)[0].table.to_csv()
    journal = tmp_path / "toy.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    assert lab.run("toy", out=tmp_path)[0].table.to_csv() == whole
    assert len(toy.measured) == 5
    lines = journal.read_text(encoding="utf-8").splitlines()
    assert len([json.loads(line) for line in lines]) == 4


def test_a_new_version_measures_afresh(toy, tmp_path, monkeypatch):
    lab.run("toy", out=tmp_path)
    newer = Toy(version=2)
    monkeypatch.setattr(runner, "EXPERIMENTS", {"toy": newer.experiment})
    lab.run("toy", out=tmp_path)
    assert len(newer.measured) == 4


def test_a_sabotaged_run_keeps_to_its_own_files(toy, tmp_path):
    sound = lab.run("toy", out=tmp_path)[0]
    broken = lab.run("toy", out=tmp_path, broken=True)[0]
    assert (sound.verdict.verdict, broken.verdict.verdict) == ("holds", "refuted")
    assert lab.run("toy", out=tmp_path)[0].table.to_csv() == sound.table.to_csv()
    assert json.loads((tmp_path / "toy-broken.json").read_text())["broken"] == "large numbers"


def test_the_seed_decides_and_nothing_else(toy):
    first, again, other = (lab.run("toy", seed=seed)[0].table.to_csv() for seed in (0, 0, 1))
    assert first == again != other
    # A cell has its own numbers: those of the quick size are among those of the full one.
    quick = [row["value"] for row in lab.run("toy")[0].table]
    full = [row["value"] for row in lab.run("toy", "full")[0].table]
    assert set(quick) < set(full)


def test_without_a_place_nothing_is_written(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (outcome,) = lab.run("toy")
    assert outcome.paths == {}
    assert list(tmp_path.iterdir()) == []


def test_figures_without_matplotlib_say_what_to_do(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"regimix\[plot\]"):
        lab.run("toy", out=tmp_path)
    (outcome,) = lab.run("toy", out=tmp_path, figures=False)
    assert "svg" not in outcome.paths


def test_names_and_sizes_are_checked():
    with pytest.raises(ParameterError, match="convergence"):
        lab.run("no such thing")
    with pytest.raises(ParameterError, match="quick"):
        lab.run("convergence", "huge")


def test_all_runs_every_experiment_in_order(monkeypatch):
    toys = {"one": Toy().experiment, "two": Toy().experiment}
    monkeypatch.setattr(runner, "EXPERIMENTS", toys)
    assert len(lab.run("all")) == 2
    assert len(lab.run(["two"])) == 1
