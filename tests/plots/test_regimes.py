"""RegimesDisplay: what is drawn is what the model says."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.errors import EvidenceWarning, ParameterError
from regimix.plots import CoefficientsDisplay, QQDisplay, RegimesDisplay, ResidualsDisplay
from regimix.plots.palette import OUTLIERS, colour
from regimix.result.stability import Stability

pytestmark = pytest.mark.usefixtures("searched_once")


def offsets(artist):
    return np.asarray(artist.get_offsets())


def test_one_feature_is_drawn_as_it_is(tone):
    fit, X, y = tone
    display = RegimesDisplay.from_estimator(fit, X, y, stretch=np.inf)
    x = X["stretchratio"].to_numpy()
    for j in range(2):
        mine = fit.labels_ == j
        np.testing.assert_allclose(offsets(display.points_[j]), np.column_stack([x[mine], y[mine]]))
        line = display.lines_[j]
        ends = np.array([x[mine].min(), x[mine].max()])
        np.testing.assert_allclose(line.get_xdata(), ends)
        np.testing.assert_allclose(line.get_ydata(), fit.intercept_[j] + fit.coef_[j, 0] * ends)
        assert line.get_color() == colour(j)
    out = fit.labels_ < 0
    np.testing.assert_allclose(offsets(display.outliers_[0]), np.column_stack([x[out], y[out]]))
    assert len(display.outliers_) == 1
    assert plt.matplotlib.colors.to_hex(display.outliers_[0].get_edgecolor()[0]) == OUTLIERS


def test_axes_carry_the_names_and_the_legend_the_shares(tone):
    display = RegimesDisplay.from_estimator(*tone)
    assert display.ax_.get_xlabel() == "stretchratio"
    assert display.ax_.get_ylabel() == "tuned"
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    # Of the rows by their labels, and not their shares, which differ a little.
    shares = [np.mean(tone[0].labels_ == label) for label in (0, 1, -1)]
    assert shares[1] > 0.1 > shares[2]
    rows = [f"regime 0 ({shares[0]:.1%} of rows)", f"regime 1 ({shares[1]:.1%} of rows)"]
    assert texts == [*rows, f"outliers ({shares[2]:.1%} of rows)", "±2 noise"]
    assert display.ax_.get_title(loc="right") == ""


def test_with_several_features_a_row_is_as_far_from_its_line_as_its_residual(three):
    fit, X, y = three
    display = RegimesDisplay.from_estimator(fit, X, y, feature=2)
    rest = [0, 1, 3]
    moved = (X[:, rest] - np.median(X[:, rest], axis=0)) * fit.coef_[fit.labels_][:, rest]
    adjusted = y - moved.sum(axis=1)
    for j in range(3):
        mine = fit.labels_ == j
        np.testing.assert_allclose(
            offsets(display.points_[j]), np.column_stack([X[mine, 2], adjusted[mine]])
        )
        line = display.lines_[j]
        height = np.interp(X[mine, 2], line.get_xdata(), line.get_ydata())
        residual = y[mine] - X[mine] @ fit.coef_[j] - fit.intercept_[j]
        np.testing.assert_allclose(adjusted[mine] - height, residual, atol=1e-9)
    assert "\n(other features at their medians)" in display.ax_.get_ylabel()


def test_y_may_be_left_as_it_is(three):
    fit, X, y = three
    display = RegimesDisplay.from_estimator(fit, X, y, feature="x1", adjust=False)
    mine = fit.labels_ == 0
    np.testing.assert_allclose(offsets(display.points_[0])[:, 1], y[mine])
    assert "lines: other features at their medians" in display.ax_.get_ylabel()


def test_bands_are_two_noise_levels_wide(tone):
    fit, X, y = tone
    display = RegimesDisplay.from_estimator(fit, X, y)
    for j in range(2):
        low, high = display.bands_[j].get_paths()[0].get_extents().get_points()
        ends = display.lines[j]
        assert high[1] - low[1] == pytest.approx(np.ptp(ends[:, 1]) + 4 * fit.scale_[j])
    assert display.plot(bands=False).bands_ == []


def test_the_default_feature_tells_the_regimes_apart_best(three):
    fit, X, _ = three
    display = RegimesDisplay.from_mixture(fit.mixture_)
    best = np.argmax(np.ptp(fit.coef_, axis=0) * X.std(axis=0))
    assert display.feature_name == f"x{best}"


@pytest.mark.parametrize("feature", ["x9", 4, -5, True, 1.5])
def test_an_unknown_feature_is_refused(three, feature):
    with pytest.raises(ParameterError, match="number \\(0 to 3\\) or the name of a column"):
        RegimesDisplay.from_estimator(*three, feature=feature)


def test_far_outliers_are_arrows_at_the_edge_and_counted(three):
    fit, X, y = three
    far = y.copy()
    rows = np.flatnonzero(fit.labels_ < 0)[:5]
    far[rows] += 1e6 * np.sign(np.arange(5) - 2.5)
    display = RegimesDisplay.from_estimator(fit, X, far)
    low, high = display.ax_.get_ylim()
    assert -50 < low < high < 50
    drawn = sum(len(offsets(artist)) for artist in display.outliers_)
    assert drawn == np.count_nonzero(fit.labels_ < 0)
    for artist in display.outliers_:
        heights = offsets(artist)[:, 1]
        assert ((heights > low) & (heights < high)).all()
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    beyond = sum(len(offsets(artist)) for artist in display.outliers_[1:])
    assert f"{beyond} outliers beyond the edge" in texts


def test_a_feature_of_two_values_is_spread_out(one):
    fit, X, y = one
    display = RegimesDisplay.from_estimator(fit, X, y, feature=0)
    drawn = offsets(display.points_[0])[:, 0]
    assert np.unique(drawn).size > 100
    np.testing.assert_array_equal(np.round(drawn), X[:, 0])
    np.testing.assert_array_equal(display.ax_.get_xticks(), [0, 1])
    assert display.outliers_ == []


def test_few_rows_of_a_feature_of_two_values_have_ticks_at_these():
    X, y = np.array([[0.0], [1.0]] * 4), np.arange(8.0)
    with pytest.warns(EvidenceWarning):
        fit = MixedLinearRegression(random_state=0).fit(X, y)
    display = RegimesDisplay.from_estimator(fit, X, y)
    np.testing.assert_array_equal(display.ax_.get_xticks(), [0, 1])


def test_of_many_rows_some_are_drawn_and_the_title_says_so(three):
    display = RegimesDisplay.from_estimator(*three, max_points=100)
    artists = [*display.points_, *display.outliers_]
    assert sum(len(offsets(artist)) for artist in artists) == 100
    assert display.ax_.get_title(loc="right") == "100 of 600 rows shown"


@pytest.mark.parametrize("max_points", [0, 2.5, True])
def test_a_senseless_number_of_points_is_refused(tone, max_points):
    with pytest.raises(ParameterError, match="max_points must be a whole number from 1"):
        RegimesDisplay.from_estimator(*tone, max_points=max_points)


@pytest.mark.parametrize("stretch", [-1, "wide", np.nan])
def test_a_senseless_stretch_is_refused(tone, stretch):
    with pytest.raises(ParameterError, match="stretch must be a number from 0"):
        RegimesDisplay.from_estimator(*tone, stretch=stretch)


def test_given_axes_are_drawn_on_and_no_figure_is_made(tone):
    figure, ax = plt.subplots()
    display = RegimesDisplay.from_estimator(*tone, ax=ax, legend=False)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert ax.get_legend() is None


def test_a_dollar_in_a_name_is_no_formula_and_long_names_are_cut(tone):
    fit, X, y = tone
    display = RegimesDisplay.from_estimator(fit, X, y)
    display.feature_name, display.target_name = "$ per m$", "a" * 50 + "z" * 50
    display.plot()
    assert display.ax_.get_xlabel() == "$ per m$"
    assert not display.ax_.xaxis.label.get_parse_math()
    assert display.ax_.get_ylabel() == "a" * 19 + "…" + "z" * 19


def test_a_single_row_still_shows_the_lines(tone):
    fit, X, y = tone
    display = RegimesDisplay.from_estimator(fit, X[:1], y[:1])
    for j, line in enumerate(display.lines_):
        (x1, x2), (y1, y2) = line.get_data()
        assert x1 < X["stretchratio"][0] < x2
        assert (y2 - y1) / (x2 - x1) == pytest.approx(fit.coef_[j, 0])


def test_regimes_that_do_not_come_back_are_called_doubtful(tone):
    fit, X, y = tone
    jaccard = np.array([[0.9, 0.2], [0.9, 0.9], [0.9, 0.1]])
    found = Stability(jaccard, np.array([2, 2, 2]), np.zeros((3, 2, 1)), np.zeros((3, 2)))
    unstable = fit.mixture_.with_stability(found)
    for kind in (RegimesDisplay, ResidualsDisplay, QQDisplay, CoefficientsDisplay):
        display = kind.from_mixture(unstable, X, y)
        names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        called = [name for name in names if name.startswith("regime")]
        assert [name.startswith("regime 1, doubtful") for name in called] == [False, True], kind
