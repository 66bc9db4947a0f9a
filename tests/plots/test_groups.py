"""ProfileDisplay and ComparisonDisplay: marks are the numbers of a profile and a comparison."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from regimix.errors import ParameterError
from regimix.plots import ComparisonDisplay, ProfileDisplay


@pytest.fixture(scope="module")
def frame(three):
    model, X, _ = three
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, len(X)), unit="D")
    return pd.DataFrame(
        {
            "firm $a$": np.where(rng.random(len(X)) < 0.8, model.labels_, 1).astype(str),
            "size": rng.standard_normal(len(X)) + model.labels_,
            "day": days,
            "<b>": rng.choice(["x", "y"], len(X)),
        }
    )


def test_marks_are_shares_and_medians(three, frame):
    display = ProfileDisplay.from_estimator(three[0], frame)
    found = three[0].profile(frame)
    assert len(display.axes_) == 4
    for ax, column in zip(display.axes_, found.columns, strict=True):
        marks = [
            part
            for part in ax.collections
            if len(part.get_offsets()) and part.get_label()[0] != "_"
        ]
        marks = [part for part in marks if part.get_label() in found.names]
        assert [part.get_label() for part in marks] == list(found.names)
        for g, part in enumerate(marks):
            x = np.asarray(part.get_offsets())[:, 0]
            shown = column.values[:, g] if column.is_category else column.values[1:2, g]
            assert x == pytest.approx(shown)
        assert column.name in ax.get_title()


def test_one_column_goes_on_given_axes(three, frame):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    display = three[0].profile(frame).plot(ax, column="size")
    assert display.ax_ is ax
    assert ax.get_title().startswith("size: tells 0.")
    assert {text.get_text() for text in ax.get_legend().get_texts()} >= {"all rows", "regime 0"}
    few = ProfileDisplay.from_mixture(
        three[0].mixture_, frame, max_columns=2, columns=["size", "day", "<b>"]
    )
    assert len(few.axes_) == 2
    assert few.figure_.get_supxlabel() == "1 less telling not shown"


def test_nothing_to_draw_is_said(three):
    with pytest.raises(ParameterError, match=r"no column to draw\. Left out: same"):
        three[0].profile({"same": np.ones(600)}).plot()


def test_differences_are_drawn_with_their_intervals(three):
    model, X, y = three
    found = model.compare(X, y)
    display = ComparisonDisplay.from_estimator(model, X, y)
    assert len(display.points_) == len(found.pairs) == 3
    for i, (points, lines) in enumerate(zip(display.points_, display.intervals_, strict=True)):
        unit = found.deviation[display.order_]
        assert np.asarray(points.get_offsets())[:, 0] == pytest.approx(
            found.difference[i, display.order_] * unit
        )
        ends = np.array([segment[:, 0] for segment in lines.get_segments()])
        assert ends[:, 0] == pytest.approx(found.lower[i, display.order_] * unit)
    plain = found.plot(standardise=False, intercept=True, max_features=2)
    assert len(plain.order_) == 2
    assert "2 of 5 terms shown" in plain.ax_.get_title("right")


def test_of_many_pairs_those_of_the_surest_differences_are_drawn(three):
    """36 pairs of nine regimes in every line would take a page a term, and look alike."""
    found = three[0].mixture_.compare()
    pairs = tuple(combinations(range(9), 2))
    t = np.random.default_rng(0).normal(size=(36, len(found.terms)))
    t[:, -1] *= 100  # the intercept, which is not drawn
    parts = dict.fromkeys(("difference", "lower", "upper", "t"), t)
    many = replace(found, pairs=pairs, **parts)
    display = ComparisonDisplay.from_comparison(many, standardise=False)
    surest = sorted(np.argsort(-np.abs(t[:, :-1]).max(axis=1))[:10])
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == [f"regime {pairs[i][1]} less regime {pairs[i][0]}" for i in surest]
    for i, points in zip(surest, display.points_, strict=True):
        drawn = np.asarray(points.get_offsets())[:, 0]
        np.testing.assert_allclose(drawn, t[i, display.order_])
    assert display.ax_.get_title("right") == "10 of 36 pairs shown"
