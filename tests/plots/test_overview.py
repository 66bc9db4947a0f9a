"""OverviewDisplay: a fit in one line, over its features, whatever lies far away."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.errors import DataError
from regimix.plots import OverviewDisplay, RegimesDisplay, ResidualsDisplay
from regimix.plots.display import remark
from regimix.report.rows import Terms, read_rows
from regimix.report.scatter import Cloud
from regimix.result.answer import Answer
from regimix.result.rivals import Rival
from tests.result.test_mixture import mixture_of

pytestmark = pytest.mark.usefixtures("searched_once")


def test_one_feature_is_one_panel_with_the_answer_above(tone):
    model, X, y = tone
    display = model.plot(X, y)
    assert len(display.axes_) == 1
    assert display.figure_.get_suptitle() == "2 linear regimes in 150 rows"
    assert display.ax_.get_xlabel() == "stretchratio"
    assert model.mixture_.plot().panels[0].labels.tolist() == model.labels_.tolist()


def test_the_most_telling_feature_comes_first_and_is_large(three):
    model, X, y = three
    display = model.plot(X, y)
    spread = np.ptp(model.coef_, axis=0) * np.std(X, axis=0)
    order = np.argsort(-spread)
    assert [ax.get_xlabel() for ax in display.axes_] == [f"x{i}" for i in order]
    sizes = [ax.get_position().width for ax in display.axes_]
    assert sizes[0] > 2 * sizes[1]
    few = model.plot(X, y, max_features=2)
    assert few.figure_.get_supxlabel() == "2 features not shown"


def test_a_long_title_is_whole(three):
    import matplotlib.pyplot as plt

    model, X, y = three
    rival = Rival(power=0.0, terms="spline", spread="features", noise="student6", lead=1e6)
    mixture = replace(model.mixture_, rivals=(rival,))
    display = mixture.plot(X, y)
    figure = display.figure_
    figure.draw_without_rendering()
    title = figure.texts[0].get_window_extent()
    assert title.x0 >= 0
    assert title.x1 <= figure.bbox.x1
    assert title.y1 <= figure.bbox.y1
    words = figure.get_suptitle()
    assert " ".join(words.split()) == Answer(mixture).title
    assert "\n" in words
    _, ax = plt.subplots()
    mixture.plot(X, y, ax=ax)
    assert "\n" in ax.get_title("left")


def test_on_given_axes_the_most_telling_feature_is_drawn(three):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    display = three[0].plot(*three[1:], ax=ax)
    assert display.ax_ is ax
    assert ax.get_title("left").startswith("3 linear regimes in 600 rows")


def test_a_row_far_away_does_not_flatten_the_picture(three):
    """In a regime, where it stretches every axis, or outside."""
    model, X, y = three
    X, y = X.copy(), y.copy()
    X[0] = [1e6, 0, 0, 0]
    y[0] = X[0] @ model.coef_[0] + model.intercept_[0]
    y[1] = 1e9
    display = OverviewDisplay.from_estimator(model, X, y)
    for ax, panel in zip(display.axes_, display.panels, strict=True):
        bulk = np.quantile(panel.x, [0.05, 0.95]), np.quantile(panel.y, [0.05, 0.95])
        for limits, (low, high) in zip((ax.get_xlim(), ax.get_ylim()), bulk, strict=True):
            assert limits[1] - limits[0] < 8 * (high - low)
        assert "beyond the edge" in " ".join(ax.get_title("right").split())
    inside = [
        (panel.x >= ax.get_xlim()[0]) & (panel.x <= ax.get_xlim()[1])
        & (panel.y >= ax.get_ylim()[0]) & (panel.y <= ax.get_ylim()[1])
        for ax, panel in zip(display.axes_, display.panels, strict=True)
    ]  # fmt: skip
    counted = [int(ax.get_title("right").split()[-5]) for ax in display.axes_]
    assert counted == [int((~mask).sum()) for mask in inside]


def test_texts_stay_within_their_axes_and_rows_shown_are_said_once(three):
    """Panels stand beside each other: what is longer would cover the words of the next one."""
    model, X, y = three
    y = y.copy()
    y[:9] += 1e5
    names = tuple(f"a name of a column that is as long as number {i}" for i in range(4))
    mixture = replace(model.mixture_, feature_names=names, excerpt=None)
    display = OverviewDisplay.from_mixture(mixture, X, y, max_points=500)
    display.figure_.draw_without_rendering()
    for ax in display.axes_:
        texts = ax.xaxis.label, remark(ax, ax.get_title("right"))
        assert all(text.get_text() for text in texts)
        for text in texts:
            assert text.get_window_extent().width <= 1.05 * ax.get_window_extent().width
    said = [" ".join(ax.get_title("right").split()) for ax in display.axes_]
    assert said[0].startswith("500 of 600 rows shown, ")
    assert not any("shown" in words for words in said[1:])


def test_ticks_are_written_as_in_a_report_and_do_not_meet(three):
    model, X, y = three
    mixture = replace(
        model.mixture_, coef=1e5 * model.coef_, intercept=1e5 * model.intercept_,
        scale=1e5 * model.scale_, excerpt=None,
    )  # fmt: skip
    display = ResidualsDisplay.from_mixture(mixture, X, 1e5 * y, kind="fitted")
    display.figure_.draw_without_rendering()
    labels = [label for label in display.ax_.get_xticklabels() if label.get_text()]
    assert any("," in label.get_text() for label in labels)
    assert display.ax_.xaxis.get_offset_text().get_text() == ""
    step = np.diff(display.ax_.get_xticks())[0]
    assert f"{step:.3e}"[:5] in ("1.000", "2.000", "5.000")
    boxes = [label.get_window_extent() for label in labels]
    assert len(boxes) > 2
    assert not any(one.overlaps(two) for one, two in pairwise(boxes))


def test_outliers_beyond_the_bulk_are_arrows_at_its_edge():
    """A curve whose steep end is set aside: the legend and the title count the same rows."""
    x = np.linspace(0, 19, 20)
    noise = np.random.default_rng(0).normal(0, 0.3, 20)
    y = np.where(x < 12, 0.2 * x + noise, 5 + 2.5 ** (x - 11))
    truth = mixture_of([[0.2]], n_rows=20, labels=np.where(x < 12, 0, -1), scale=np.array([0.3]))
    display = OverviewDisplay.from_mixture(truth, x[:, None], y)
    ax, panel = display.ax_, display.panels[0]
    out = int(np.count_nonzero((panel.y > ax.get_ylim()[1]) | (panel.x > ax.get_xlim()[1])))
    assert out > 2
    assert ax.get_title("right") == f"{out} rows beyond the edge"
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"{out} outliers beyond the edge" in legend
    arrows = np.vstack([np.asarray(one.get_offsets()) for one in panel.outliers_[1:]])
    assert len(arrows) == out
    for values, limits in zip(arrows.T, (ax.get_xlim(), ax.get_ylim()), strict=True):
        assert ((values >= limits[0]) & (values <= limits[1])).all()


def test_without_rows_it_says_what_to_pass():
    X = np.arange(40.0)[:, None]
    model = MixedLinearRegression(random_state=0).fit(X, X[:, 0] + np.sin(X[:, 0]))
    with pytest.raises(DataError, match="Pass X and y"):
        model.plot()


def test_a_trimmed_regressor_has_a_picture_too(three):
    from regimix import TrimmedRegressor

    line = TrimmedRegressor(random_state=0).fit(*three[1:])
    assert OverviewDisplay.from_estimator(line, *three[1:]).title == "One linear relation"


def test_outliers_are_in_view_where_the_regime_has_one_value():
    """Zeros with noise of 1e-9, as of what most households spend nothing on: the rest is news."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 1)), np.zeros(100)
    y[:40] = rng.uniform(1e3, 2e3, 40)
    mixture = replace(
        mixture_of([[0.0]]),
        intercept=np.zeros(1),
        scale=np.full(1, 1e-9),
        labels=np.where(y > 0, -1, 0),
        n_rows=100,
    )
    for display in (
        OverviewDisplay.from_mixture(mixture, X, y),
        RegimesDisplay.from_mixture(mixture, X, y),
    ):
        low, high = display.ax_.get_ylim()
        assert low <= 0
        assert 2 * y.max() > high >= y.max()
    view = Cloud.of(read_rows(mixture, X, y, None), Terms.of(mixture, X, 0.95)).views[0]
    assert view.adjusted_frame[0] <= 0
    assert 2 * y.max() > view.adjusted_frame[1] >= y.max()
