"""Every claim holds at quick size, and its check fails when the experiment is sabotaged."""

import json
from xml.etree import ElementTree as ET

import pytest

import lab

NAMES = list(lab.EXPERIMENTS)


@pytest.mark.parametrize("name", NAMES)
def test_the_claim_holds(name, tmp_path):
    (outcome,) = lab.run(name, "quick", out=tmp_path)
    assert outcome.verdict.verdict == "holds", outcome.verdict.words
    verdict = json.loads(outcome.paths["json"].read_text(encoding="utf-8"))
    assert verdict["verdict"] == "holds"
    assert verdict["words"] == outcome.verdict.words
    assert len(outcome.paths["csv"].read_text(encoding="utf-8").splitlines()) == 1 + len(
        outcome.table
    )
    assert ET.fromstring(outcome.paths["svg"].read_bytes()).tag.endswith("svg")


@pytest.mark.parametrize("name", NAMES)
def test_the_check_fails_when_the_experiment_is_sabotaged(name, tmp_path, monkeypatch):
    repeats = lab.EXPERIMENTS[name].repeats
    monkeypatch.setitem(repeats, "quick", (repeats["quick"] + 1) // 2)  # half show it
    (outcome,) = lab.run(name, "quick", out=tmp_path, broken=True)
    assert outcome.verdict.verdict == "refuted", outcome.verdict.words
    # The figure is drawn all the same: whoever doubts a verdict wants to see.
    assert outcome.paths["svg"].stat().st_size > 0


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_says_what_it_is(name):
    experiment = lab.EXPERIMENTS[name]
    assert experiment.name == name
    for text in (experiment.title, experiment.claim, experiment.statement, experiment.sabotage):
        assert text
    assert experiment.repeats["quick"] > 1
    assert len(experiment.cells("full")) > len(experiment.cells("quick")) > 0
