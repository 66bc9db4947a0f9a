"""``python -m lab``: lists, runs what is named, and its exit code says what came of it."""

from types import SimpleNamespace

import pytest

import lab
from lab.__main__ import main


def test_it_lists_every_experiment(capsys):
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out and lab.EXPERIMENTS[name].claim in out for name in lab.EXPERIMENTS)


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 1)])
def test_it_runs_what_is_named(capsys, monkeypatch, holds, code):
    asked = {}

    def run(names, size, **options):
        asked.update(options, names=names, size=size)
        verdict = SimpleNamespace(holds=holds, verdict="holds" if holds else "refuted", words="so")
        return (SimpleNamespace(name="convergence", verdict=verdict),)

    monkeypatch.setattr(lab, "run", run)
    assert main(["run", "convergence", "--out", "here", "--seed", "3"]) == code
    assert ("holds" if holds else "refuted") in capsys.readouterr().out
    assert asked["names"] == ["convergence"]
    assert (asked["size"], str(asked["out"]), asked["seed"]) == ("full", "here", 3)


def test_it_measures_an_experiment_and_shows_its_progress(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["run", "convergence", "--quick", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("convergence")
    assert "cells" in shown.err
    assert str(tmp_path) in shown.err
    assert (tmp_path / "convergence.csv").exists()


def test_an_unknown_name_is_refused_with_the_known_ones(capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["run", "nix", "--out", str(tmp_path)])
    assert ended.value.code == 2
    assert "'nix'" in capsys.readouterr().err
