"""Colours and marks, and what is loaded to have them."""

import subprocess
import sys

import pytest

from regimix import plots
from regimix.errors import MissingExtraError
from regimix.plots import RegimesDisplay, SelectionDisplay
from regimix.plots.palette import MARKERS, OUTLIERS, REGIMES, colour, dashes, marker


def test_regimes_are_told_apart_by_colour_and_mark():
    looks = {(colour(j), marker(j)) for j in range(len(REGIMES) * len(MARKERS))}
    assert len(looks) == len(REGIMES) * len(MARKERS)
    assert OUTLIERS not in REGIMES
    assert (colour(-1), marker(-1)) == (OUTLIERS, "x")


def test_a_colour_that_comes_again_has_other_dashes():
    assert dashes(0) != dashes(len(REGIMES))


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import regimix.plots.palette", {"numpy", "sklearn", "matplotlib"}),
        ("from regimix.plots import *", {"matplotlib"}),
    ],
)
def test_what_is_not_needed_is_not_loaded(code, absent):
    code = f"import sys; {code}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not absent & set(run.stdout.split())


def test_the_public_names_are_there():
    assert plots.__all__ == sorted(plots.__all__) == dir(plots)
    for name in plots.__all__:
        assert getattr(plots, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'PieDisplay'"):
        _ = plots.PieDisplay


def test_without_matplotlib_the_message_says_what_to_install(tone, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for display in (RegimesDisplay, SelectionDisplay):
        with pytest.raises(MissingExtraError, match=r"pip install 'regimix\[plot\]'"):
            display.from_estimator(*tone)
