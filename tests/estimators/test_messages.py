"""Mistakes that a new user makes, and what is said about them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from regimix import MixedLinearRegression, TrimmedEstimator, TrimmedRegressor
from regimix.errors import RegimixError

pytestmark = pytest.mark.usefixtures("searched_once")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X @ [1.0, 2.0] + 0.1 * RNG.normal(size=60)
FRAME = pd.DataFrame(X, columns=["a", "b"])
WITH = FRAME.assign(y=Y)


@pytest.fixture(scope="module")
def fit():
    return MixedLinearRegression(n_components=1, random_state=0).fit(FRAME, Y)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda m: m.predict(FRAME, Y), r"predict\(X\) takes no y.* assign\(X, y\)"),
        (lambda m: m.predict(FRAME, pd.Series(Y)), r"predict\(X\) takes no y"),
        (lambda m: m.predict(FRAME, X), "there is no gating: leave them out"),
        (lambda m: m.predict_interval(FRAME, Y), "level of the interval, a number such as 0.95"),
        (lambda m: m.predict_interval(FRAME, 95), "level must be a number .* got 95"),
        (lambda m: m.predict(WITH), r"unseen at fit time:\n- y(?s:.*)feature_names_in_"),
        (
            lambda m: m.predict(FRAME[["b", "a"]]),
            r"same order(?s:.*)X\[list\(model.feature_names_in_",
        ),
        (lambda m: m.predict(FRAME[["a"]]), "yet now missing:\n- b"),
        (lambda m: m.predict(FRAME["a"]), r"single column \(a Series\).*X.to_frame\(\)"),
        (lambda m: m.predict(FRAME.iloc[0]), r"frame of one row, such as frame.iloc\[\[0\]\]"),
        (lambda m: m.assign(Y, FRAME), "wrong order"),
        (lambda m: m.predict(FRAME, gating_features=X), "there is no gating"),
    ],
)
def test_of_a_fitted_model(fit, mistake, words):
    with pytest.raises(ValueError, match=words):
        mistake(fit)


@pytest.mark.parametrize("estimator", [MixedLinearRegression, TrimmedRegressor])
@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda m: m.fit(Y, X), r"wrong order.*Call fit\(X, y\), the table first"),
        (lambda m: m.fit(pd.Series(Y), FRAME), "wrong order"),
        (lambda m: m.fit(FRAME["a"], Y), r"single column \(a Series\).*X.to_frame\(\)"),
        (lambda m: m.fit(pl.Series("a", Y), Y), r"X.to_frame\(\)"),
        (lambda m: m.fit(X[:, 0], Y), r"X.reshape\(-1, 1\)"),
        (lambda m: m.fit("rows.csv", "y"), r"text 'rows.csv'.*regimix.tables.read\(path"),
        (lambda m: m.fit(WITH, "y"), r"fit\(X.drop\(columns='y'\), X\['y'\]\)"),
        (lambda m: m.fit(FRAME, "y"), "y is the text 'y', and fit takes the responses"),
        (lambda m: m.fit(WITH, WITH["y"]), r"X holds the response: its column 'y'.*X.drop\(col"),
        (lambda m: m.fit(pl.DataFrame(WITH), pl.Series("y", Y)), "X holds the response"),
        (lambda m: m.fit(FRAME, pd.Series(["u", "v"] * 30)), r"holds text \(such as 'u' in row 1"),
        (lambda m: m.fit(X, ["u", "v"] * 30), "y holds text, not numbers"),
        (lambda m: m.fit(FRAME), "requires y to be passed"),
        (lambda m: m.fit(FRAME.assign(k="q"), Y[:-1]), "X has 60, y has 59"),
        (lambda m: m.fit(FRAME, WITH[["y", "a"]]), "one response at a time"),
        (lambda m: m.fit(FRAME * np.nan, Y), "no column that can be a feature: 'a' is left out"),
        (lambda m: m.fit({"a": Y}, Y), "X is of type dict"),
        (lambda m: m.fit(FRAME.assign(a="t"), Y * np.nan), "each of the 60 rows|has no values"),
    ],
)
def test_of_a_fit(estimator, mistake, words):
    with pytest.raises(RegimixError, match=words):
        mistake(estimator())


def test_a_column_of_the_same_name_that_is_not_the_response_is_a_feature():
    frame = FRAME.rename(columns={"a": "y"})
    fit = MixedLinearRegression(n_components=1, random_state=0).fit(frame, pd.Series(Y, name="y"))
    np.testing.assert_allclose(fit.coef_, [[1, 2]], atol=0.1)


KERNEL = np.exp(-(np.linspace(-40, 40, 60) ** 2))  # from 1e-695 to 1


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("weights", [KERNEL, np.full(60, 1e308), np.full(60, 5e-324)])
@pytest.mark.parametrize(
    "estimator",
    [
        MixedLinearRegression(random_state=0),
        MixedLinearRegression(1, search="net", random_state=0),
        TrimmedRegressor(random_state=0),
        TrimmedEstimator(LinearRegression(), random_state=0),
    ],
)
def test_weights_of_any_size_are_answered_without_raw_warnings(estimator, weights):
    fit = clone(estimator).fit(X, Y, sample_weight=weights)
    assert np.isfinite(fit.predict(X)).all()
    assert np.isfinite(fit.score(X, Y, sample_weight=weights))
    large = clone(estimator).fit(1e100 * X, Y, sample_weight=weights)
    assert np.isfinite(large.predict(1e100 * X)).all()


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("others", [1e-300, 1e-10])
def test_one_weight_beside_which_all_others_are_nothing_is_refused(others):
    weights = np.append(1e300, np.full(59, others))
    for estimator in (MixedLinearRegression(), TrimmedRegressor()):
        with pytest.raises(RegimixError, match="sample_weight is zero, or nothing beside the larg"):
            estimator.fit(X, Y, sample_weight=weights)
