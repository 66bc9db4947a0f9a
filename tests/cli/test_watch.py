"""Ctrl-C, at every point of a fit; and the bar."""

import io
import signal

import pytest
from rich.console import Console

from regimix import MixedLinearRegression, load
from regimix.cli import fitting
from regimix.cli.console import Aborted, Voice, progress_bar
from regimix.cli.fitting import Interrupts
from regimix.errors import RegimixWarning
from regimix.search import loop
from regimix.search.settings import Progress

pytestmark = pytest.mark.usefixtures("searched_once")

FIT = ("-y", "y", "--drop", "id")


def press():
    signal.raise_signal(signal.SIGINT)


def test_before_the_search_there_is_nothing_to_keep():
    with pytest.raises(Aborted, match="nothing was written"), Interrupts():
        press()


def test_an_interrupt_that_polars_raises_is_not_raised_again():
    cleared = []

    def read():
        try:
            raise KeyboardInterrupt
        finally:
            press()
            cleared.append("the bar")

    with pytest.raises(Aborted, match="nothing was written"), Interrupts():
        read()
    assert cleared


def test_after_the_search_the_first_waits_and_the_second_does_not():
    interrupts = Interrupts()
    assert not interrupts.look()
    with interrupts:
        press()
    assert interrupts.count == 1
    with pytest.raises(Aborted, match="twice"), interrupts:
        press()


@pytest.mark.parametrize("search", ["auto", "net"])
def test_the_search_answers_with_what_it_has(data, search):
    steps = []

    def callback(step):
        steps.append(step)
        stop = interrupts.look()
        if len(steps) == 2:
            press()
        return stop

    model = MixedLinearRegression(search=search, callback=callback, random_state=0)
    with Interrupts() as interrupts, pytest.warns(RegimixWarning):
        model.fit(data.X, data.y)
    assert model.mixture_.stopped == "interrupted"
    assert len(steps) == 2


def test_an_interrupt_before_a_search_can_answer_is_left_to_its_callback(data, monkeypatch):
    begin = loop.bulk_model

    def pressed(rows):
        press()
        return begin(rows)

    monkeypatch.setattr(loop, "bulk_model", pressed)
    interrupts = Interrupts()
    assert not interrupts.look()
    model = MixedLinearRegression(callback=lambda _: interrupts.look(), random_state=0)
    with interrupts, pytest.warns(RegimixWarning):
        model.fit(data.X, data.y)
    assert interrupts.count == 1
    assert model.mixture_.stopped == "callback"


def test_the_handler_of_others_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_an_interrupt_while_files_are_written_waits_for_them(regimix, table, monkeypatch):
    write = fitting._write_model

    def slowly(*given):
        press()
        write(*given)

    monkeypatch.setattr(fitting, "_write_model", slowly)
    ran = regimix("fit", table, *FIT, "--model", "m.regimix")
    assert ran.code == 130
    assert "2 linear regimes" in ran.out
    assert "interrupted" not in ran.err  # the answer is the whole answer
    assert load(table.parent / "m.regimix").n_components == 2


def test_the_bar_says_what_is_done_and_found():
    voice = Voice()
    voice.err = Console(file=io.StringIO(), force_terminal=True, width=100)
    with progress_bar(voice, time_limit=10.0) as bar:
        bar.step(Progress("replace", 3, 1.0, 0.5, 10))
    shown = voice.err.file.getvalue()
    assert "questioning the regimes" in shown
    assert "3 regimes so far" in shown
    assert "0:00:00" in shown
