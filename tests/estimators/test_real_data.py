"""Tables as analysts have them: units, 0/1 and skewed columns, ties, and the bundled data."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from regimix.datasets import load_calls, load_penguins, load_tone
from regimix.errors import EvidenceWarning, RankWarning
from regimix.estimators.mixture import MixedLinearRegression
from regimix.estimators.trimmed import TrimmedRegressor
from regimix.metrics import label_accuracy

seeds = st.integers(0, 2**32 - 1)
# What numbers become is no question of the search.
once = pytest.mark.usefixtures("searched_once")
N, WRONG = 400, 12
SLOPES = np.array([[1.0, 0.5, 2.0, -0.6], [-1.0, -0.4, -1.0, 0.8]])


def table(seed):
    """Two rules over a normal, a skewed, a rare 0/1 and a counting column; a few rows are wrong."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(N),
            "wealth": np.exp(1.2 * rng.standard_normal(N)),
            "member": (rng.random(N) < 0.2).astype(float),
            "rooms": rng.integers(1, 6, N).astype(float),
        }
    )
    rule = (rng.random(N) < 0.4).astype(int)
    y = np.einsum("ij,ij->i", frame.to_numpy(), SLOPES[rule]) + np.array([1.0, 4.0])[rule]
    y += 0.1 * rng.standard_normal(N)
    wrong = rng.choice(N, WRONG, replace=False)
    y[wrong] += 20 * rng.standard_normal(WRONG)
    rule[wrong] = -1
    return frame, y, rule


def fitted(X, y, **options):
    return MixedLinearRegression(random_state=0).fit(X, y, **options)


def same_labels(one, other):
    return np.mean(one == other) >= 0.99


# --- columns --------------------------------------------------------------------------------------


@settings(max_examples=3)
@given(seeds)
def test_skewed_counting_and_rare_columns_are_no_obstacle(seed):
    X, y, rule = table(seed)
    fit = fitted(X, y)
    assert fit.n_components_ == 2
    assert label_accuracy(rule, fit.labels_) >= 0.97
    np.testing.assert_allclose(fit.coef_, SLOPES, atol=0.15)


@once
@settings(max_examples=3)
@given(seeds)
def test_units_do_not_matter(seed):
    X, y, _ = table(seed)
    units, origin = np.array([1e-6, 1e6, 1.0, 1e3]), np.array([0.0, 5e6, 0.0, -3e3])
    plain = fitted(X, y)
    odd = fitted(X.to_numpy() * units + origin, y)
    assert same_labels(plain.labels_, odd.labels_)
    np.testing.assert_allclose(odd.coef_ * units, plain.coef_, atol=1e-2)
    standard = fitted(StandardScaler().fit_transform(X), y)
    assert same_labels(plain.labels_, standard.labels_)


@once
@settings(max_examples=3)
@given(seeds, st.floats(-6, 6), st.floats(-100, 100))
def test_a_response_in_other_units_has_the_same_regimes(seed, power, shift):
    X, y, _ = table(seed)
    unit = 10.0**power
    plain, other = fitted(X, y), fitted(X, unit * (y + shift))
    assert same_labels(plain.labels_, other.labels_)
    np.testing.assert_allclose(other.coef_ / unit, plain.coef_, atol=1e-2)
    np.testing.assert_allclose(other.intercept_ / unit - shift, plain.intercept_, atol=2e-2)
    np.testing.assert_allclose(other.scale_ / unit, plain.scale_, rtol=0.05)


@once
@settings(max_examples=3)
@given(seeds)
def test_the_order_of_rows_and_columns_does_not_matter(seed):
    X, y, _ = table(seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(N), rng.permutation(4)
    plain, mixed = fitted(X, y), fitted(X.iloc[rows, columns], y[rows])
    assert same_labels(plain.labels_[rows], mixed.labels_)
    np.testing.assert_allclose(mixed.coef_, plain.coef_[:, columns], atol=1e-2)


@once
@settings(max_examples=3)
@given(seeds)
def test_one_column_for_each_value_leaves_one_too_many(seed):
    """The columns of a one-hot code sum to the constant: predictions are those without one."""
    X, y, rule = table(seed)
    city = np.random.default_rng(seed).choice(["a", "b", "c"], N)
    y = y + pd.Series(city).map({"a": 0.0, "b": 3.0, "c": -2.0}).to_numpy()
    full = pd.concat([X, pd.get_dummies(city)], axis=1)
    with pytest.warns(RankWarning, match="7 of its 8 coefficients"):
        fit = fitted(full, y)
    assert fit.n_components_ == 2
    assert label_accuracy(rule, fit.labels_) >= 0.97
    dropped = full.drop(columns="a")
    fewer = fitted(dropped, y)
    np.testing.assert_allclose(
        fit.predict_components(full), fewer.predict_components(dropped), atol=1e-2
    )


@once
def test_a_constant_column_counts_for_nothing():
    X, y, _ = table(0)
    plain = fitted(X, y)
    with pytest.warns(RankWarning):
        fit = fitted(X.assign(constant=5.0), y)
    np.testing.assert_allclose(fit.coef_[:, -1], 0.0, atol=1e-9)
    assert same_labels(plain.labels_, fit.labels_)


def test_columns_may_all_be_zero_or_one():
    rng = np.random.default_rng(1)
    X = rng.random((N, 5)) < rng.uniform(0.1, 0.6, 5)
    rule = rng.integers(2, size=N)
    slopes = np.array([[1.0, 2.0, -1.0, 0.0, 3.0], [-2.0, 0.0, 1.0, 2.0, -1.0]])
    y = np.einsum("ij,ij->i", X, slopes[rule]) + np.array([0.0, 5.0])[rule]
    y += 0.05 * rng.standard_normal(N)
    fit = fitted(X, y)
    assert fit.n_components_ == 2
    assert label_accuracy(rule, fit.labels_) >= 0.97


# --- numbers --------------------------------------------------------------------------------------


@once
@settings(max_examples=3)
@given(seeds)
def test_single_precision_in_sensible_answers_out(seed):
    X, y, _ = table(seed)
    double, single = fitted(X, y), fitted(X.astype(np.float32), y.astype(np.float32))
    assert single.coef_.dtype == single.predict(X.astype(np.float32)).dtype == np.float64
    assert same_labels(double.labels_, single.labels_)
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-2)


@once
def test_whole_numbers_are_numbers():
    X, y, _ = table(2)
    X, y = (10 * X).round().astype(int), (10 * y).round().astype(int)
    whole, real = fitted(X, y), fitted(X.astype(float), y.astype(float))
    np.testing.assert_array_equal(whole.labels_, real.labels_)
    np.testing.assert_allclose(whole.coef_, real.coef_)


@once
@settings(max_examples=3)
@given(seeds, st.integers(2, 4))
def test_ties_and_repeated_rows_are_harmless(seed, times):
    """Rounded to a few values, every row several times: as good as weights."""
    X, y, _ = table(seed)
    X, y = X.round(), y.round(1)
    repeated = fitted(pd.concat([X] * times, ignore_index=True), np.tile(y, times))
    weighted = fitted(X, y, sample_weight=np.full(N, times))
    np.testing.assert_array_equal(repeated.labels_[:N], weighted.labels_)
    np.testing.assert_allclose(repeated.coef_, weighted.coef_, atol=1e-9)
    assert repeated.n_components_ >= 2


# --- bundled data ---------------------------------------------------------------------------------


@cache
def twenty_fits(load):
    """The default fit to a bundled table, from 20 seeds."""
    data = load()
    with warnings.catch_warnings():
        # The penguins give no evidence of regimes: the page about them says why.
        warnings.simplefilter("ignore", EvidenceWarning)
        models = [MixedLinearRegression(random_state=seed) for seed in range(20)]
        return [model.fit(data.X, data.y) for model in models]


@pytest.mark.parametrize("load", [load_calls, load_penguins, load_tone])
def test_twenty_seeds_tell_the_same_story(load):
    first, *others = twenty_fits(load)
    assert all(same_labels(first.labels_, fit.labels_) for fit in others)


def test_tone_shows_the_octave_and_the_overtones():
    """The musician follows the overtones, or stays with the octave."""
    for fit in twenty_fits(load_tone):
        assert fit.n_components_ == 2
        octave, overtones = range(2)
        assert fit.intercept_[octave] == pytest.approx(1.92, abs=0.03)
        assert fit.coef_[octave, 0] == pytest.approx(0.04, abs=0.015)
        assert fit.intercept_[overtones] == pytest.approx(0.0, abs=0.02)
        assert fit.coef_[overtones, 0] == pytest.approx(1.0, abs=0.01)
        np.testing.assert_allclose(fit.weights_, [0.55, 0.35], atol=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_calls_recorded_in_minutes_are_flagged(seed):
    calls = load_calls()
    fit = TrimmedRegressor(random_state=seed).fit(calls.X, calls.y)
    assert not fit.inlier_mask_[14:20].any()  # 1964 to 1969
    assert fit.inlier_mask_[:13].all()
    assert fit.coef_[0] == pytest.approx(0.11, abs=0.01)


@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")
def test_penguins_split_into_deep_and_shallow_bills():
    """Two regimes and no outliers, as asked: one species apart, the other two together."""
    penguins = load_penguins(("bill_length_mm", "flipper_length_mm", "body_mass_g"))
    fit = MixedLinearRegression(n_components=2, search="partition", random_state=0)
    fit.fit(penguins.X, penguins.y)
    gentoo = (penguins.others["species"] == "Gentoo").astype(int)
    assert label_accuracy(gentoo, fit.labels_) >= 0.97


@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")
@pytest.mark.parametrize("seed", range(4))
def test_rows_that_repeat_do_not_make_outliers(seed):
    """That there are no outliers at all is considered for rounded tables too, whose rows repeat."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 10, 120).astype(float)
    noise = 2 * rng.standard_normal(120)
    for slope in (0.0, 2.0):
        fit = MixedLinearRegression(random_state=seed).fit(x[:, None], np.round(slope * x + noise))
        assert fit.n_components_ == 1
        assert fit.mixture_.outlier_share < 5e-4


@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")
@pytest.mark.parametrize("seed", [0, 2])
def test_where_nothing_is_found_outliers_need_as_much_evidence_as_a_regime(seed):
    """A value of some 5 deviations is worth 1 to 3 nats: with a relation enough, without one not.

    A gross error is an outlier in any case.
    """
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((40, 1)), rng.standard_normal(40)
    for far, flagged in ((5.2, False), (40.0, True)):
        y[0] = far
        fit = MixedLinearRegression(random_state=0).fit(X, y)
        assert fit.mixture_.found_nothing
        assert (fit.labels_[0] == -1) == flagged
        assert (fit.labels_[1:] == 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_rounded_rows_that_coincide_are_rows(seed):
    """Of 2,000 rounded rows, 40 are distinct; all of them say that the line is there."""
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 6, 2000).astype(float)
    y = np.round(0.3 * x + rng.standard_normal(2000))
    fit = MixedLinearRegression(random_state=seed).fit(x[:, None], y)
    assert fit.n_components_ == 1
    # What least squares gains in log-likelihood over the mean, less what the line costs.
    gain = -0.5 * y.size * np.log(1 - np.corrcoef(x, y)[0, 1] ** 2)
    assert gain - 15 < fit.evidence_ < gain
    # Weights that hardly differ from one hardly matter.
    nearly = 1 + 1e-6 * rng.standard_normal(2000)
    again = MixedLinearRegression(random_state=seed).fit(x[:, None], y, nearly)
    assert again.evidence_ == pytest.approx(fit.evidence_, abs=0.1)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_copies_of_rows_say_nothing_new():
    """Neither where nothing is rounded, nor where a grid is too fine for so many to be equal."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1))
    for y in (X[:, 0] + rng.standard_normal(60), np.round(X[:, 0] + rng.standard_normal(60), 3)):
        once = MixedLinearRegression(random_state=0).fit(X, y)
        often = MixedLinearRegression(random_state=0).fit(np.tile(X, (8, 1)), np.tile(y, 8))
        assert often.evidence_ == pytest.approx(once.evidence_, abs=0.1)
