"""ConvergenceDisplay: rounds of trimmed fits, moves of a search."""

from copy import copy
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from regimix import TrimmedEstimator, ilts
from regimix.errors import ParameterError
from regimix.plots import ConvergenceDisplay
from regimix.search.selection import Attempt

pytestmark = pytest.mark.usefixtures("searched_once")


def offsets(artist):
    return np.asarray(artist.get_offsets())


def test_the_rounds_of_a_fit(three):
    _, X, y = three
    fit = ilts(X, y, keep=0.4)
    display = ConvergenceDisplay.from_fits(fit)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), fit.objective)
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), np.arange(fit.n_iter + 1))
    assert display.ax_.get_legend() is None
    assert display.ax_.get_ylabel() == "trimmed sum of squares"


def test_of_several_starts_the_best_stands_out(three):
    _, X, y = three
    fits = ilts(X, y, keep=0.4, start=np.random.default_rng(0).normal(size=(6, 4)))
    display = ConvergenceDisplay.from_fits(fits)
    widths = [line.get_linewidth() for line in display.lines_]
    assert np.argmax(widths) == np.argmin([fit.objective[-1] for fit in fits])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert sorted(texts) == ["best start", "other starts"]


def test_a_wide_range_is_logarithmic_but_zero_is_not():
    wide = ConvergenceDisplay(traces=[np.array([1e4, 10.0, 1.0])]).plot()
    assert wide.ax_.get_yscale() == "log"
    exact = ConvergenceDisplay(traces=[np.array([1e4, 10.0, 0.0])]).plot()
    assert exact.ax_.get_yscale() == "linear"


def test_the_names_of_moves_do_not_cover_each_other():
    score = np.array([0.0, 50.0, 50.5, 51.0, 51.2])
    display = ConvergenceDisplay(
        traces=[np.append(score, np.full(30, 51.2))],
        tried=np.append(score[1:], np.full(30, 40.0)),
        accepted=np.arange(34) < 4,
        moves=["first: joint", "split: residuals", "add: subset", "merge: nearest", *["-"] * 30],
    ).plot()
    display.figure_.draw_without_rendering()
    boxes = [name.get_window_extent() for name in display.names_]
    assert len(boxes) == 4
    assert not any(one.overlaps(two) for one, two in combinations(boxes, 2))


def test_the_moves_of_a_search(three):
    mixture = three[0].mixture_
    display = ConvergenceDisplay.from_estimator(three[0])
    gains = [attempt.gain if attempt.accepted else 0.0 for attempt in mixture.attempts]
    # Every search begins anew.
    numbers = [-1, *(attempt.search for attempt in mixture.attempts)]
    begins = [i for i, (one, two) in enumerate(pairwise(numbers)) if two != one]
    assert len(begins) == mixture.n_searches
    assert all(mixture.attempts[i].move == "first" for i in begins)
    searches = [gains[i:j] for i, j in pairwise([*begins, len(gains)])]
    score = np.concatenate([[0.0], *map(np.cumsum, searches)])
    for line, begin, gained in zip(display.lines_, begins, searches, strict=True):
        np.testing.assert_allclose(line.get_ydata(), np.append(0.0, np.cumsum(gained)))
        np.testing.assert_allclose(line.get_xdata()[1:], begin + 1 + np.arange(len(gained)))
    taken = np.flatnonzero([attempt.accepted for attempt in mixture.attempts])
    np.testing.assert_allclose(
        offsets(display.accepted_[0]), np.column_stack([taken + 1, score[taken + 1]])
    )
    left = sum(len(offsets(artist)) for artist in display.rejected_)
    assert left == len(mixture.attempts) - taken.size


def test_moves_that_proposed_nothing_are_arrows(three):
    attempts = (
        Attempt("first", "joint", 100.0, True, "better"),
        Attempt("add", "joint", -np.inf, False, "nothing proposed"),
        Attempt("add", "passing", -3.0, False, "no better on its own rows"),
    )
    mixture = replace(three[0].mixture_, attempts=attempts)
    display = ConvergenceDisplay.from_mixture(mixture)
    crosses, arrows = display.rejected_
    np.testing.assert_allclose(offsets(crosses), [[3, 97]])
    assert np.isfinite(offsets(arrows)).all()
    assert [text.get_text() for text in display.ax_.texts] == ["first: joint"]
    with pytest.raises(ParameterError, match="remembers no moves"):
        ConvergenceDisplay.from_mixture(replace(mixture, attempts=()))


def test_moves_that_are_not_drawn_are_called_moves_and_searches_begin_at_a_line(three):
    attempts = (
        Attempt("first", "joint", 100.0, True, "better"),
        Attempt("add", "joint", -np.inf, False, "nothing proposed"),
        Attempt("first", "joint", 100.0, True, "better", search=1),
        Attempt("add", "joint", -1e9, False, "no better", search=1),
        Attempt("first", "joint", 100.0, True, "better", search=2),
    )
    mixture = replace(three[0].mixture_, attempts=attempts)
    display = ConvergenceDisplay.from_mixture(mixture)
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "2 moves left, far below" in legend
    assert not any("outlier" in text for text in legend)
    assert [line.get_xdata()[0] for line in display.begins_] == [2.5, 4.5]
    assert legend.count("another search begins") == 1
    alone = ConvergenceDisplay.from_mixture(replace(mixture, attempts=attempts[:2]))
    assert alone.begins_ == []
    legend = [text.get_text() for text in alone.ax_.get_legend().get_texts()]
    assert "1 move left, far below" in legend


def test_the_rounds_of_a_trimmed_estimator(calls):
    _, X, y = calls
    fit = TrimmedEstimator(LinearRegression(), keep=0.7).fit(X, y)
    display = ConvergenceDisplay.from_estimator(fit)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), fit.objective_)
    assert display.ax_.get_ylabel() == "mean loss of the kept rows"


def test_the_rounds_of_a_trimmed_regressor(calls):
    fit = copy(calls[0])
    fit.objective_path_ = np.array([9.0, 4.0, 3.0])
    display = ConvergenceDisplay.from_estimator(fit)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), fit.objective_path_)
    assert display.ax_.get_ylabel() == "trimmed sum of squares"


def test_what_has_no_rounds_is_refused(calls):
    with pytest.raises(ParameterError, match="has recorded no rounds"):
        ConvergenceDisplay.from_estimator(LinearRegression().fit(*calls[1:]))
    with pytest.raises(ParameterError, match="one TrimmedFit or several"):
        ConvergenceDisplay.from_fits([])


def test_the_name_of_the_last_move_does_not_cover_the_legend(three):
    attempts = [
        Attempt("first", "joint", gain, accepted=True, reason="") for gain in (3.0, 0.5, 0.5)
    ]
    display = ConvergenceDisplay.from_mixture(replace(three[0].mixture_, attempts=tuple(attempts)))
    display.figure_.draw_without_rendering()
    legend = display.ax_.get_legend().get_window_extent()
    assert not any(name.get_window_extent().overlaps(legend) for name in display.names_)


def test_algorithm_2_tries_regimes(three):
    mixture = three[0].mixture_
    net = replace(mixture, settings=replace(mixture.settings, search="net"))
    assert ConvergenceDisplay.from_mixture(net).ax_.get_xlabel() == "regime tried"


def test_what_rounding_gains_does_not_fill_the_picture(three):
    attempts = tuple(Attempt("add", "joint", gain, False, "no better") for gain in (0.004, 0.005))
    display = ConvergenceDisplay.from_mixture(replace(three[0].mixture_, attempts=attempts))
    low, high = display.ax_.get_ylim()
    assert low <= -3 < 3 <= high
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["gain so far", "left"]
