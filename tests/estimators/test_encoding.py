"""Data frames as they come: text, categories, dates and missing values in ``fit`` and after it."""

import warnings
from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest

from regimix import MixedLinearRegression, TrimmedRegressor, load, save, tables
from regimix.errors import DataError, DataKindError, LeftOutWarning, ParameterError
from regimix.plots import RegimesDisplay

pytestmark = pytest.mark.usefixtures("module_searched_once")

N = 400
HOLES = {3: "'x'", 5: "'kind'", 8: "'price'"}


def columns():
    """Two regimes in x and in the day; the kind adds to both; names tell nothing."""
    rng = np.random.default_rng(0)
    x, on = rng.normal(size=N), rng.random(N) < 0.5
    kind = rng.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
    day = rng.integers(0, 30, N)
    y = np.where(rng.random(N) < 0.6, 2 * x + 3 + 0.1 * day, -2 * x - 1)
    y = y + 1.5 * (kind == "b") + 0.1 * rng.normal(size=N)
    return {
        "x": x.astype(object),
        "kind": kind.astype(object),
        "on": on,
        "when": [date(2024, 1, 1) + timedelta(days=int(days)) for days in day],
        "name": [f"n{i}" for i in range(N)],
    }, y


def pandas_rows():
    made, y = columns()
    made["x"][3], made["kind"][5], y[8] = None, None, np.nan
    frame = pd.DataFrame(made, index=np.arange(N) + 1000).astype({"kind": "category", "x": float})
    return frame, pd.Series(y, index=frame.index, name="price")


def polars_rows():
    frame, y = pandas_rows()
    plain = frame.astype(object).where(frame.notna(), None).to_dict("list")
    return pl.DataFrame(plain), pl.Series("price", y.tolist(), nan_to_null=True)


ROWS = {"pandas": pandas_rows, "polars": polars_rows}


def quietly(call, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        return call(*args, **options)


@pytest.fixture(scope="module", params=ROWS)
def fitted(request, module_searched_once):
    X, y = ROWS[request.param]()
    return X, y, quietly(MixedLinearRegression(random_state=0).fit, X, y)


def test_columns_become_what_the_command_line_makes_of_them(fitted):
    X, y, fit = fitted
    named = ["x", "kind", "on", "when"]
    whole = pl.DataFrame(X) if isinstance(X, pl.DataFrame) else pl.from_pandas(X)
    data = tables.from_frame(whole.with_columns(price=pl.Series(y)), target="price", features=named)
    assert (
        fit.mixture_.feature_names == data.feature_names == ("x", "kind=b", "kind=c", "on", "when")
    )
    again = MixedLinearRegression(random_state=0).fit(data.frame(), data.target())
    np.testing.assert_allclose(again.coef_, fit.coef_, rtol=1e-10)
    assert fit.encoding_.columns == data.recipe.columns
    assert (fit.n_features_in_, list(fit.feature_names_in_)) == (5, list(X.columns))
    assert "1.5" in fit.mixture_.equation(0)
    assert "kind=b" in str(fit.summary())
    summary = " ".join(str(fit.summary()).split())
    assert "Column 'name' is left out" in summary
    assert "Rows with a missing or infinite value are left out: 3 of 400 rows" in summary
    assert "is text of 3 values" in str(fit.encoding_)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_rows_that_are_left_out_do_not_count_in_a_score():
    x = np.arange(20.0)
    frame, y = pd.DataFrame({"x": x}), 2 * x
    frame.loc[3, "x"] = np.nan
    assert TrimmedRegressor().fit(frame, y).score(frame, y) == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore::regimix.errors.LeftOutWarning")
def test_one_usable_row_is_too_few():
    frame = pd.DataFrame({"x": [1.0, np.nan], "z": [2.0, 3.0]})
    for estimator in (MixedLinearRegression(), TrimmedRegressor()):
        with pytest.raises(DataError, match="X has 1 row"):
            estimator.fit(frame, [1.0, 2.0])


def test_rows_that_are_left_out_keep_their_place(fitted):
    X, y, fit = fitted
    out = np.isin(np.arange(N), list(HOLES))
    assert ((fit.labels_ == -2) == out).all()
    assert (fit.labels_[~out] == fit.mixture_.labels).all()
    for row, name in HOLES.items():
        assert fit.left_out_[row] == f"{name} missing or infinite"
    assert (fit.left_out_[~out] == "").all()
    labels = quietly(fit.assign, X, y)
    np.testing.assert_array_equal(labels, fit.labels_)
    chances = quietly(fit.responsibilities, X, y)
    assert np.isnan(np.asarray(chances)[out]).all()
    np.testing.assert_allclose(np.asarray(chances)[~out].sum(axis=1), 1)
    # Without the response only two of them are missing.
    predicted = quietly(fit.predict, X)
    assert isinstance(predicted, np.ndarray)
    assert np.flatnonzero(np.isnan(predicted)).tolist() == [3, 5]
    assert not np.asarray(quietly(fit.flag, X, y))[out].any()


def test_frames_and_series_come_back_with_their_index(fitted):
    X, y, fit = fitted
    library, frame, series = (
        ("pandas", pd.DataFrame, pd.Series)
        if isinstance(X, pd.DataFrame)
        else ("polars", pl.DataFrame, pl.Series)
    )
    labels, scores = quietly(fit.assign, X, y), quietly(fit.outlier_score, X, y)
    assert isinstance(labels, series)
    assert (labels.name, scores.name) == ("regime", "outlier_score")
    chances = quietly(fit.responsibilities, X, y)
    assert isinstance(chances, frame)
    assert list(chances.columns) == ["probability_0", "probability_1", "probability_outlier"]
    assert list(quietly(fit.predict_interval, X).columns) == ["lower", "upper"]
    assert list(quietly(fit.predict_components, X).columns) == ["prediction_0", "prediction_1"]
    if library == "pandas":
        for answer in (labels, scores, chances, quietly(fit.predict_shares, X)):
            assert answer.index.equals(X.index)
    assert isinstance(quietly(fit.predict, X), np.ndarray)
    assert isinstance(quietly(fit.score_samples, X, y), np.ndarray)


def test_moments_with_a_time_zone_are_the_same_as_objects():
    rng = np.random.default_rng(0)
    moments = pd.date_range("2024-03-30", periods=60, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"when": moments, "x": rng.normal(size=60)})
    fit = TrimmedRegressor(random_state=0).fit(frame, np.arange(60) / 24 + frame["x"])
    assert fit.coef_ == pytest.approx([1, 1])
    np.testing.assert_array_equal(fit.predict(frame.astype(object)), fit.predict(frame))


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_of_as_many_rows_as_columns_are_not_turned(library):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (60, 2))
    y = X[:, 0] * np.where(np.arange(60) % 2, 2.0, -1.0) + 0.1 * rng.standard_normal(60)
    frame = library.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    fit = MixedLinearRegression(2, random_state=0).fit(frame, y)
    for rows in (2, 3):
        some, known = frame[:rows], y[:rows]
        for ask, answer in (
            (fit.responsibilities(some, known), fit.mixture_.responsibilities(X[:rows], known)),
            (fit.predict_components(some), fit.mixture_.predict_components(X[:rows])),
        ):
            np.testing.assert_array_equal(np.asarray(ask), answer)


def test_measures_are_those_of_the_rows_that_are_used(fitted):
    X, y, fit = fitted
    there = np.flatnonzero(~np.isin(np.arange(N), list(HOLES)))
    some = X.iloc[there] if isinstance(X, pd.DataFrame) else X[there]
    known = y.iloc[there] if isinstance(X, pd.DataFrame) else y[there]
    weights = np.arange(N) % 3 + 1.0
    for measure in (fit.score, fit.bic, fit.icl):
        whole = quietly(measure, X, y, sample_weight=weights)
        assert whole == pytest.approx(measure(some, known, sample_weight=weights[there]))
    with pytest.raises(DataError, match="X has 400 rows, and what was passed beside it has 7"):
        quietly(fit.bic, X, y, sample_weight=np.ones(7))


def test_every_loss_is_warned_of_once_where_the_user_is():
    X, y = pandas_rows()
    with pytest.warns(LeftOutWarning) as caught:
        fit = MixedLinearRegression(random_state=0).fit(X, y)
    said = [str(one.message) for one in caught if one.category is LeftOutWarning]
    assert [text.partition(":")[0][:23] for text in said] == [
        "Column 'name' is left o",
        "Rows with a missing or ",
    ]
    assert {one.filename for one in caught} == {__file__}
    with pytest.warns(LeftOutWarning, match="2 of 400 rows") as caught:
        fit.predict(X)
    assert {one.filename for one in caught} == {__file__}
    with pytest.warns(LeftOutWarning, match="not there before in 390 of 390 rows"):
        fit.predict(X.assign(kind="new").iloc[10:])


def test_trimmed_regressor_takes_the_same_frames():
    X, y = pandas_rows()
    fit = quietly(TrimmedRegressor(random_state=0).fit, X, y)
    assert fit.coef_.shape == (5,)
    assert fit.inlier_mask_.shape == (N,)
    assert not fit.inlier_mask_[list(HOLES)].any()
    assert np.flatnonzero(np.isnan(quietly(fit.predict, X))).tolist() == [3, 5]
    assert fit.left_out_[3] == "'x' missing or infinite"


@pytest.mark.parametrize("estimator", [MixedLinearRegression, TrimmedRegressor])
def test_encoding_can_be_refused(estimator):
    X, y = pandas_rows()
    with pytest.raises(DataKindError, match="column 'kind' of X"):
        estimator(encode=None).fit(X, y)
    with pytest.raises(DataError, match="NaN"):
        estimator(encode=None).fit(X[["x"]], y)
    with pytest.raises(ParameterError, match=r"encode must be .* got 'yes'"):
        estimator(encode="yes").fit(X, y)
    with pytest.raises(DataError, match="NaN"):  # an array says of no column what it is
        estimator().fit(X[["x"]].to_numpy(), y.fillna(0))


def test_numbers_alone_are_read_where_they_are():
    made, y = columns()
    frame = pd.DataFrame({"x": made["x"].astype(float), "on": made["on"]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = MixedLinearRegression(random_state=0, n_components=2).fit(frame, y)
    assert fit.encoding_ is None
    assert fit.left_out_ is None
    assert fit.mixture_.notes == ()
    again = MixedLinearRegression(random_state=0, n_components=2, encode=None).fit(frame, y)
    np.testing.assert_array_equal(again.coef_, fit.coef_)
    # New rows may lack a number all the same.
    frame.loc[0, "x"] = np.nan
    assert np.isnan(quietly(fit.predict, frame)[0])


def test_numbers_as_text_in_the_features_and_in_the_response():
    made, y = columns()
    plain = pd.DataFrame({"x": made["x"].astype(float)})
    text = pd.DataFrame({"x": [f"{value:,.6f} %" for value in 1000 * plain["x"]]})
    fit = MixedLinearRegression(random_state=0).fit(text, pd.Series([f"${v:,.8f}" for v in y]))
    expected = MixedLinearRegression(random_state=0).fit(1000 * plain, y)
    np.testing.assert_allclose(fit.coef_, expected.coef_, rtol=1e-4)
    assert sum("spells numbers" in note for note in fit.mixture_.notes) == 2


def test_a_model_file_reads_frames_as_the_fit_did(fitted, tmp_path):
    X, y, fit = fitted
    save(fit, tmp_path / "m.regimix")
    mixture = load(tmp_path / "m.regimix")
    assert mixture.encoding == fit.encoding_
    with pytest.raises(DataError, match=r"row 3 of X \(counting from 0\).*'x' missing"):
        mixture.predict(X)
    some = X.tail(50)
    np.testing.assert_allclose(mixture.predict(some), fit.predict(some))
    np.testing.assert_array_equal(mixture.assign(some, y.tail(50)), fit.assign(some, y.tail(50)))
    # Columns that are encoded already are taken as they are.
    numbers = pl.DataFrame(np.ones((2, 5)), schema=list(mixture.feature_names))
    assert mixture.predict(numbers).shape == (2,)


def test_a_gate_learns_from_encoded_features():
    X, y = pandas_rows()
    for gating in ("logistic", "trees"):
        fit = quietly(MixedLinearRegression(random_state=0, gating=gating).fit, X, y)
        assert fit.gate_.names == fit.mixture_.feature_names
        shares = quietly(fit.predict_shares, X)
        assert shares.isna().any(axis=1).sum() == 2
        np.testing.assert_allclose(shares.dropna().sum(axis=1), 1)


def test_resamples_take_the_frames_of_the_fit(fitted):
    X, y, fit = fitted
    quietly(fit.bootstrap, X, y, n_resamples=3, random_state=0)
    assert quietly(fit.stability, X, y, n_resamples=1, random_state=0).n_resamples == 1


def test_plots_and_reports_show_the_rows_that_are_used(fitted, tmp_path):
    X, y, fit = fitted
    display = RegimesDisplay.from_estimator(fit, X, y, legend=False)
    assert display.n_rows == N - len(HOLES)
    fit.mixture_.report(tmp_path / "r.html", X, y)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "kind=b" in page
    line = quietly(TrimmedRegressor(random_state=0).fit, X, y)
    shown = quietly(RegimesDisplay.from_estimator, line, X, y, legend=False)
    assert shown.n_rows == N - len(HOLES)
