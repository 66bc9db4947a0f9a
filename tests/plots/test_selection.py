"""SelectionDisplay: three criteria on one scale."""

from dataclasses import replace

import numpy as np
import pytest

from regimix import TrimmedRegressor
from regimix.errors import ParameterError
from regimix.plots import SelectionDisplay


def test_lines_are_losses_against_the_best_in_units_of_log_likelihood(three):
    fit, _, _ = three
    path = fit.mixture_.selection
    display = SelectionDisplay.from_estimator(fit)
    values = {"evidence": path.evidence, "BIC": -path.bic / 2, "ICL": -path.icl / 2}
    for name, value in values.items():
        line = display.lines_[name]
        np.testing.assert_array_equal(line.get_xdata(), path.n_components)
        np.testing.assert_allclose(line.get_ydata(), value - value.max())
    assert display.chosen == fit.n_components_
    assert set(display.chosen_.get_xdata()) == {fit.n_components_}
    np.testing.assert_array_equal(display.ax_.get_xticks(), path.n_components)


@pytest.mark.parametrize(
    ("asked", "label"), [(None, "chosen: 3"), (3, "asked for: 3"), (5, "found: 3 (asked for: 5)")]
)
def test_a_number_that_was_asked_for_was_not_chosen(three, asked, label):
    mixture = three[0].mixture_
    mixture = replace(mixture, settings=replace(mixture.settings, n_components=asked))
    assert SelectionDisplay.from_mixture(mixture).chosen_.get_label() == label


@pytest.mark.parametrize("losses", [[0.0], [0.0, 0.2], [0.0, 8.0], [0.0, 3.0, 80.0]])
def test_no_tick_is_named_twice(losses):
    score = -np.array(losses)
    count = np.arange(1, score.size + 1)
    display = SelectionDisplay(
        n_components=count, evidence=score, bic=-2 * score, icl=-2 * score, chosen=1
    ).plot()
    display.figure_.draw_without_rendering()
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    values = [float(name.replace("\N{MINUS SIGN}", "-")) for name in names]
    assert 0 in values
    assert len(set(values)) == len(values)


def test_nothing_is_above_the_best():
    score = -np.array([0.0, 3.0, 80.0])
    display = SelectionDisplay(
        n_components=np.arange(1, 4), evidence=score, bic=-2 * score, icl=-2 * score, chosen=1
    ).plot()
    assert display.ax_.get_ylabel() == "nats below the best; BIC and ICL halved"
    low, high = display.ax_.get_ylim()
    ticks = display.ax_.get_yticks()
    assert ticks[(ticks >= low) & (ticks <= high)].max() == 0
    assert high > 0


def test_what_is_not_known_is_left_out():
    display = SelectionDisplay(
        n_components=np.array([1, 2, 3]),
        evidence=np.array([1.0, 5.0, np.nan]),
        bic=np.full(3, np.nan),
        icl=np.array([np.inf, 4.0, 2.0]),
        chosen=2,
    ).plot()
    np.testing.assert_array_equal(display.lines_["evidence"].get_ydata(), [-4, 0, np.nan])
    np.testing.assert_array_equal(display.lines_["ICL"].get_ydata(), [np.nan, -1, 0])
    assert np.isnan(display.lines_["BIC"].get_ydata()).all()
    # Each criterion says which number it favours: they need not be the same.
    labels = [line.get_label() for line in display.lines_.values()]
    assert labels == ["evidence: 2 is best", "BIC", "ICL: 3 is best"]


def test_a_mixture_without_a_path_is_refused(three):
    # A number that was given, or a file, has a path.
    why = "kept no selection path: its search compares no numbers of regimes, or its file is of"
    with pytest.raises(ParameterError, match=why):
        SelectionDisplay.from_mixture(replace(three[0].mixture_, selection=None))


def test_one_line_has_nothing_to_select(calls):
    with pytest.raises(ParameterError, match=TrimmedRegressor.__name__):
        SelectionDisplay.from_estimator(*calls)
