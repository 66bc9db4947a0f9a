"""StabilityDisplay: a dot for each regime in each resample."""

from dataclasses import replace

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.errors import ParameterError
from regimix.plots import StabilityDisplay
from regimix.plots.display import remark
from regimix.result.stability import Stability


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 1))
    y = np.where(rng.random(100) < 0.6, 3 + X[:, 0], -X[:, 0]) + 0.1 * rng.standard_normal(100)
    return MixedLinearRegression(random_state=0).fit(X, y).mixture_


def test_dots_are_the_similarities(two):
    jaccard = np.array([[0.9, 0.2], [1.0, 0.3], [0.8, 0.9]])
    found = Stability(jaccard, np.array([2, 2, 1]), np.zeros((3, 2, 1)), np.zeros((3, 2)))
    display = StabilityDisplay.from_mixture(two.with_stability(found))
    assert len(display.dots_) == 2
    for j, dots in enumerate(display.dots_):
        x, y = dots.get_offsets().T
        np.testing.assert_allclose(y, jaccard[:, j])
        assert (np.abs(x - j) < 0.5).all()
        assert np.unique(x).size == 3
    words = [text.get_text() for text in display.ax_.texts]
    assert words == ["back in 100%", "back in 33.3%"]
    assert display.ax_.get_legend_handles_labels()[1] == ["regime 0", "regime 1, doubtful"]
    said = display.ax_.get_title(loc="right")
    assert "one in 33.3% and two in 66.7%" in " ".join(said.split())
    display.figure_.draw_without_rendering()
    width = remark(display.ax_, said).get_window_extent().width
    assert width <= 1.05 * display.ax_.get_window_extent().width


def test_a_fit_of_unknown_stability_is_refused(two):
    with pytest.raises(ParameterError, match="Call stability"):
        StabilityDisplay.from_mixture(replace(two, resampled=None))
