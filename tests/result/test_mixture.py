"""Mixture: its densities, labels, draws and words, against formulas written out row by row."""

import dataclasses
import math
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import kstest
from scipy.stats import t as student

from regimix import global_ilts
from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import DataError, ParameterError
from regimix.result.mixture import Mixture
from regimix.result.rowlaw import MOST_COVARIANCE_FEATURES, RowLaw
from regimix.search.selection import Attempt
from regimix.search.settings import Progress, Settings, read_seed
from regimix.words import number
from tests.oracles import repeat_rows

seeds = st.integers(0, 2**32 - 1)

# What Algorithm 2 alone is told, and values that it takes.
PAPER = {
    "subspace": None,
    "solver": "cg",
    "max_iter": 9,
    "tol": 0.1,
    "granularity": 0.2,
    "tolerance": 0.3,
    "shares": 0.4,
}


def mixture_of(coef, **changes):
    """A mixture with given coefficients and plain values for all the rest."""
    coef = np.atleast_2d(np.asarray(coef, float))
    m, d = coef.shape
    shares = 0.9 * np.arange(m, 0, -1) / np.arange(m, 0, -1).sum()
    values = {
        "coef": coef,
        "intercept": np.arange(m, dtype=float),
        "weights": shares,
        "scale": np.full(m, 0.5),
        "labels": np.zeros(10, dtype=np.int64),
        "outlier_share": 1 - shares.sum(),
        "background": 0.05,
        "cutoff": math.inf,
        "evidence": 12.5,
        "stopped": "nothing improves",
        "n_rows": 10,
        "mass": float(changes.get("n_rows", 10)),
        "fit_intercept": True,
        "feature_names": tuple(f"x{i}" for i in range(d)),
        "settings": Settings(),
        "seed": 3,
    }
    return Mixture(**(values | changes))


def random_mixture(rng, m=None, d=None):
    m, d = m or int(rng.integers(1, 5)), d or int(rng.integers(1, 4))
    shares = np.sort(rng.dirichlet(np.ones(m + 1))[:m])[::-1]
    return mixture_of(
        rng.standard_normal((m, d)),
        intercept=rng.standard_normal(m),
        weights=shares,
        outlier_share=1 - shares.sum(),
        scale=rng.uniform(0.1, 1.0, m),
        background=float(rng.uniform(0.01, 0.1)),
        cutoff=float(rng.uniform(2.0, 4.0)),
    )


def any_laws(rng, mixture):
    """Give a mixture a law of the noise, and a background that is flat or not."""
    width, degrees = float(rng.choice([2.0, 20.0, np.inf])), float(rng.choice([2.0, np.inf]))
    known = {} if np.isinf(width) else {"background": float(student.pdf(0.0, degrees, scale=width))}
    return dataclasses.replace(
        mixture,
        noise_degrees=float(rng.choice([1.5, 4.0, np.inf])),
        background_middle=float(rng.standard_normal()),
        background_width=width,
        background_degrees=degrees,
        **known,
    )


def slow_background(mixture, y):
    if np.isinf(mixture.background_width):
        return mixture.background
    degrees = mixture.background_degrees
    return student.pdf(y, degrees, mixture.background_middle, mixture.background_width)


def rows_for(rng, mixture, n=30):
    return rng.standard_normal((n, mixture.coef.shape[1])), 3 * rng.standard_normal(n)


def law_of(X, y, weights=None, *, fit_intercept=True, seed=0):
    problem = Problem.from_arrays(X, y, weights, fit_intercept=fit_intercept)
    return RowLaw.of(MemoryEngine(problem), seed)


# --- densities and labels -------------------------------------------------------------------------


@settings(max_examples=25)
@given(seeds)
def test_every_density_is_the_formula_row_by_row(seed):
    rng = np.random.default_rng(seed)
    mixture = any_laws(rng, random_mixture(rng))
    X, y = rows_for(rng, mixture)
    means, joint = mixture.predict_components(X), mixture.log_densities(X, y)
    posterior, scores = mixture.responsibilities(X, y), mixture.score_samples(X, y)
    labels, average = mixture.assign(X, y), mixture.predict(X)
    m = mixture.n_components
    for i in range(len(y)):
        mean = [mixture.intercept[j] + X[i] @ mixture.coef[j] for j in range(m)]
        parts = [
            mixture.weights[j] * student.pdf(y[i], mixture.noise_degrees, mean[j], mixture.scale[j])
            for j in range(m)
        ] + [mixture.outlier_share * slow_background(mixture, y[i])]
        best = int(np.argmax(parts[:-1]))
        far = abs(y[i] - mean[best]) > mixture.cutoff * mixture.scale[best]
        np.testing.assert_allclose(means[i], mean, atol=1e-12)
        np.testing.assert_allclose(np.exp(joint[i]), parts, rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(posterior[i], parts / np.sum(parts), rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(scores[i], np.log(np.sum(parts)), rtol=1e-9)
        np.testing.assert_allclose(
            average[i], np.dot(mixture.weights, mean) / mixture.weights.sum(), atol=1e-12
        )
        assert labels[i] == (-1 if parts[-1] > parts[best] or far else best)


@pytest.mark.parametrize("degrees", [1.5, 5.0, np.inf])
def test_a_density_with_a_background_that_falls_integrates_to_one(degrees):
    mixture = mixture_of(
        [[1.0], [-2.0]],
        noise_degrees=degrees,
        background=float(student.pdf(0.0, 2, scale=3.0)),
        background_middle=2.0,
        background_width=3.0,
    )
    density = lambda y: math.exp(mixture.score_samples([[0.7]], [y])[0])  # noqa: E731
    near, _ = quad(density, -20, 20, limit=400)
    low, _ = quad(density, -np.inf, -20, limit=400)
    high, _ = quad(density, 20, np.inf, limit=400)
    assert low + near + high == pytest.approx(1.0, abs=1e-5)


def test_components_without_outliers_have_a_density_that_integrates_to_one():
    mixture = mixture_of([[1.0], [-2.0]], weights=np.array([0.6, 0.4]), outlier_share=0.0)
    total, _ = quad(lambda y: math.exp(mixture.score_samples([[0.7]], [y])[0]), -15, 15, limit=200)
    assert total == pytest.approx(1.0, abs=1e-6)
    posterior = mixture.responsibilities([[0.7]], [1e6])
    assert posterior[0, -1] == 0.0
    assert posterior.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("outlier_share", [0.0, 0.1])
@pytest.mark.parametrize("scale", [0.0, 1e-300, 1.0])
def test_exact_fits_and_impossible_rows_have_finite_densities(scale, outlier_share):
    mixture = mixture_of([[1.0]], scale=np.array([scale]), outlier_share=outlier_share)
    X, y = np.array([[1.0], [1.0], [1.0]]), np.array([1.0, 2.0, -1e130])
    assert np.isfinite(mixture.score_samples(X, y)).all()
    assert np.isfinite(mixture.responsibilities(X, y)).all()
    assert mixture.responsibilities(X, y).sum(axis=1) == pytest.approx(np.ones(3))
    assert mixture.assign(X, y)[0] == 0
    if outlier_share:
        assert mixture.assign(X, y)[2] == -1


def test_beyond_the_cutoff_rows_are_outliers_even_without_a_background():
    mixture = mixture_of([[1.0]], outlier_share=0.0, weights=np.ones(1), scale=np.ones(1))
    X, y = np.zeros((4, 1)), np.array([0.0, 2.9, -3.1, 500.0])
    assert mixture.assign(X, y).tolist() == [0, 0, 0, 0]
    strict = dataclasses.replace(mixture, cutoff=3.0)
    assert strict.assign(X, y).tolist() == [0, 0, -1, -1]


@settings(max_examples=10)
@given(seeds)
def test_likelihood_and_bic_count_weights_as_repetitions(seed):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng)
    X, y = rows_for(rng, mixture)
    weights = rng.integers(0, 4, len(y))
    weights[:2] = 1
    long = repeat_rows(X, y, weights)
    assert mixture.loglik(X, y, weights) == pytest.approx(mixture.loglik(*long))
    assert mixture.bic(X, y, weights) == pytest.approx(mixture.bic(*long))
    assert mixture.loglik(X, y) == pytest.approx(mixture.score_samples(X, y).sum())


@pytest.mark.parametrize(
    ("intercept", "outliers", "free"), [(True, 0.1, 12), (False, 0.1, 10), (True, 0.0, 11)]
)
def test_bic_counts_what_is_free(intercept, outliers, free):
    """Two components, three columns: coefficients, scales, shares; shares sum to one."""
    shares = np.array([0.6, 0.4]) * (1 - outliers)
    mixture = mixture_of(
        np.eye(2, 3), fit_intercept=intercept, weights=shares, outlier_share=outliers
    )
    X, y = np.zeros((50, 3)), np.ones(50)
    expected = free * np.log(50) - 2 * mixture.loglik(X, y)
    assert mixture.bic(X, y) == pytest.approx(expected)


# --- reading rows ---------------------------------------------------------------------------------


def test_rows_of_every_kind_are_read_alike():
    mixture = mixture_of([[1.0, 2.0], [0.5, -1.0]], feature_names=("a", "b"))
    X = np.array([[1, 0], [0, 1], [1, 1]])
    expected = mixture.predict_components(X.astype(float))
    frame = pd.DataFrame(X, columns=["a", "b"])
    kinds = [X, X.tolist(), X.astype(bool), X.astype(np.float32), frame, pl.from_pandas(frame)]
    for kind in kinds:
        np.testing.assert_allclose(mixture.predict_components(kind), expected)
    y = pd.Series([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(mixture.assign(frame, y), mixture.assign(X, y.to_numpy()))


def test_other_rows_are_refused_with_a_remedy():
    mixture = mixture_of([[1.0, 2.0]], feature_names=("a", "b"))
    with pytest.raises(DataError, match=r"3 column\(s\), but 2 in the fit; pass the same"):
        mixture.predict(np.zeros((4, 3)))
    with pytest.raises(DataError, match="column 0 is 'b', but 'a' in the fit; pass the same"):
        mixture.predict(pd.DataFrame({"b": [1.0], "a": [2.0]}))
    with pytest.raises(DataError, match="NaN"):
        mixture.predict([[np.nan, 1.0]])
    with pytest.raises(DataError, match="rows"):
        mixture.assign(np.zeros((4, 2)), np.zeros(3))
    unnamed = mixture_of([[1.0, 2.0]])
    assert unnamed.predict(pd.DataFrame({"b": [1.0], "a": [2.0]})).shape == (1,)


def test_many_rows_are_read_in_chunks():
    rng = np.random.default_rng(0)
    mixture = random_mixture(rng, m=2, d=3)
    X = rng.standard_normal((200_000, 3)).astype(np.float32)
    expected = X.astype(float) @ mixture.coef.T + mixture.intercept
    np.testing.assert_allclose(mixture.predict_components(X), expected, atol=1e-12)


# --- draws ----------------------------------------------------------------------------------------


def test_draws_follow_the_model(base_seed):
    """Shares within five deviations; residuals and outliers of their laws."""
    rng = np.random.default_rng(base_seed)
    mixture = any_laws(rng, random_mixture(rng, m=3, d=2))
    n = 20_000
    X = rng.standard_normal((n, 2))
    mixture = dataclasses.replace(mixture, rows=law_of(X, X[:, 0] + 5))
    same, y, labels = mixture.sample(random_state=rng, X=X)
    np.testing.assert_array_equal(same, X)
    shares = np.append(mixture.weights, mixture.outlier_share)
    for j, share in zip([0, 1, 2, -1], shares, strict=True):
        count = int((labels == j).sum())
        assert abs(count - n * share) <= 5 * math.sqrt(n * share * (1 - share)) + 1
    means = mixture.predict_components(X)
    for j in range(3):
        rows = labels == j
        if rows.any():
            residuals = (y[rows] - means[rows, j]) / mixture.scale[j]
            assert kstest(residuals, student(mixture.noise_degrees).cdf).pvalue > 1e-7
    outliers = y[labels == -1]
    if outliers.size and np.isinf(mixture.background_width):
        flat = (outliers - mixture.rows.middle) * mixture.background + 0.5
        assert kstest(flat, "uniform").pvalue > 1e-7
    elif outliers.size:
        away = (outliers - mixture.background_middle) / mixture.background_width
        assert kstest(away, student(mixture.background_degrees).cdf).pvalue > 1e-7


def test_features_are_drawn_with_mean_and_covariance_of_the_rows():
    rng = np.random.default_rng(1)
    turn = np.array([[1e3, 0.0, 0.0], [5e-4, 1e-3, 0.0], [0.0, 0.0, 0.0]])
    X = rng.standard_normal((3000, 3)) @ turn.T + np.array([10.0, 0.0, 7.0])
    mixture = mixture_of(np.ones((1, 3)), rows=law_of(X, X[:, 0]))
    drawn, y, labels = mixture.sample(50_000, random_state=2)
    assert drawn.shape == (50_000, 3)
    assert y.shape == labels.shape == (50_000,)
    error = 6 * X.std(axis=0) / math.sqrt(50_000) + 1e-9
    assert (np.abs(drawn.mean(axis=0) - X.mean(axis=0)) <= error).all()
    np.testing.assert_allclose(drawn.std(axis=0), X.std(axis=0), rtol=0.03, atol=1e-9)
    assert np.corrcoef(drawn[:, :2].T)[0, 1] == pytest.approx(
        np.corrcoef(X[:, :2].T)[0, 1], abs=0.03
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_what_is_remembered_of_rows_is_in_user_units_and_knows_weights(fit_intercept):
    rng = np.random.default_rng(3)
    X, y = rng.lognormal(size=(200, 2)) * [1e4, 1e-2], rng.standard_normal(200) + 100
    weights = rng.integers(0, 4, 200)
    long_X, long_y = repeat_rows(X, y, weights)
    law = law_of(X, y, weights, fit_intercept=fit_intercept)
    again = law_of(long_X[::-1], long_y[::-1], fit_intercept=fit_intercept)
    for name in ("mean", "deviation", "correlation", "middle"):
        np.testing.assert_allclose(getattr(law, name), getattr(again, name), rtol=1e-9)
    np.testing.assert_allclose(law.mean, long_X.mean(axis=0))
    np.testing.assert_allclose(law.deviation, long_X.std(axis=0))
    np.testing.assert_allclose(law.correlation, np.corrcoef(long_X.T), atol=1e-9)
    assert abs(np.mean(long_y <= law.middle) - 0.5) <= 4 / long_y.size


def test_draws_repeat_with_their_seed_and_generators_move_on():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((50, 2))
    mixture = mixture_of([[1.0, 2.0]], rows=law_of(X, X[:, 0]))
    for one, other in zip(mixture.sample(5, 7), mixture.sample(5, 7), strict=True):
        np.testing.assert_array_equal(one, other)
    state = np.random.RandomState(1)
    assert not np.array_equal(mixture.sample(5, state)[1], mixture.sample(5, state)[1])
    assert mixture.sample()[0].shape == (1, 2)


def test_draws_without_features_to_draw_from_are_refused():
    bare = mixture_of([[1.0]])
    with pytest.raises(ParameterError, match="pass X"):
        bare.sample(3)
    assert bare.sample(X=np.zeros((4, 1)), random_state=0)[1].shape == (4,)
    d = MOST_COVARIANCE_FEATURES + 1
    X = np.random.default_rng(0).standard_normal((40, d))
    wide = mixture_of(np.ones((1, d)), rows=law_of(X, X[:, 0]))
    assert wide.rows.correlation is None
    with pytest.raises(ParameterError, match=f"covariance of {d} features"):
        wide.sample(3)
    with pytest.raises(ParameterError, match="n must be the number of rows of X, 4"):
        bare.sample(3, X=np.zeros((4, 1)))
    for n in (0, -1, 2.5, "many", True):
        with pytest.raises(ParameterError, match="whole number from 1"):
            dataclasses.replace(bare, rows=law_of(X[:, :1], X[:, 0])).sample(n)


# --- words ----------------------------------------------------------------------------------------


def test_it_prints_as_a_table():
    mixture = mixture_of(
        [[0.0391], [0.9992]],
        intercept=np.array([1.9248, -0.0032]),
        weights=np.array([0.553, 0.349]),
        outlier_share=0.098,
        scale=np.array([0.02113, 0.0039]),
        feature_names=("stretchratio",),
        target_name="tuned",
        n_rows=150,
        label_counts=(84, 53, 13),
        doubtful_rows=12,
        attempts=(
            Attempt("add", "joint", 80.2, True, "best of 7"),
            Attempt("add", "robust", 2.0, False, "gain below the margin"),
        ),
        timings={"search": 0.4, "polish": 0.1},
    )
    assert str(mixture) == repr(mixture)
    assert str(mixture).splitlines() == [
        "2 linear regimes in 150 rows, 8.0% of them in doubt",
        "",
        "     share    noise  equation",
        " 0   55.3%  0.02113  tuned = 1.925 + 0.0391 stretchratio",
        " 1   34.9%   0.0039  tuned = -0.0032 + 0.9992 stretchratio",
        "-1    9.8%           outliers (13 rows labelled so, 8.7%)",
        "",
        "Search finished: no other change improved the model (2 changes tried, 1 taken).",
        "Evidence 12.5 nats, 0.5 seconds, seed 3.",
    ]
    assert str(mixture.attempts[1]) == "add (robust): +2.0, left: gain below the margin"


@settings(max_examples=30)
@given(seeds, st.sampled_from([1, 40, 80, 100]), st.integers(1, 60), st.integers(1, 20))
def test_tables_stay_within_their_width(seed, width, d, m):
    rng = np.random.default_rng(seed)
    names = tuple("n" * int(rng.integers(1, 9)) + str(i) for i in range(d))
    size = 10.0 ** rng.integers(-12, 12, (m, 1))
    mixture = mixture_of(size * rng.standard_normal((m, d)), feature_names=names)
    lines = mixture.describe(width).splitlines()
    assert len(lines) >= m + 5
    # The share, the noise, one term and the count of the others always have their place.
    assert max(map(len, lines)) <= max(width, 60)


def test_the_terms_shown_are_those_that_contribute_most():
    X = np.random.default_rng(0).standard_normal((300, 3)) * [1e-3, 1.0, 1e3]
    names = ("small unit", "middle", "large_unit_with_a_very_long_name")
    mixture = mixture_of([[500.0, 2.0, 0.1]], feature_names=names, intercept=np.array([-7.0]))
    law = law_of(X, X[:, 0])
    ranked = dataclasses.replace(mixture, rows=law)
    assert ranked.equation(0) == (
        "y = -7 + 0.1 large_unit_…y_long_name + 2 middle + 500 small unit"
    )
    assert ranked.equation(0, 50) == "y = -7 + 0.1 large_unit_…y_long_name + 2 more"
    assert mixture.equation(0, 35) == "y = -7 + 500 small unit + 2 more"


@pytest.mark.parametrize(
    ("coef", "changes", "text"),
    [
        ([[0.0]], {}, "y = 0"),
        ([[0.0]], {"fit_intercept": False}, "y = 0"),
        ([[-2.0]], {"fit_intercept": False}, "y = -2 x0"),
        ([[-2.0]], {"intercept": np.array([3.0])}, "y = 3 - 2 x0"),
        ([[123456.7]], {"fit_intercept": False}, "y = 123,457 x0"),
        ([[1.25e-9]], {"fit_intercept": False}, "y = 1.25e-9 x0"),
    ],
)
def test_equations_read_like_equations(coef, changes, text):
    assert mixture_of(coef, **changes).equation(0) == text


def test_an_equation_can_be_computed_with():
    """Its rounding is small beside the noise, of years, too: four digits would miss by more."""
    rng = np.random.default_rng(0)
    year = rng.uniform(1960, 1980, size=(80, 1))
    y = 1.593 * (year[:, 0] - 1971) + 0.3 * rng.normal(size=80)
    mixture = global_ilts(year, y, n_components=1, fit_intercept=True, random_state=0)
    numbers = re.compile(r"y = (-[\d.]+) \+ ([\d.]+) x0")
    intercept, slope = map(float, numbers.fullmatch(mixture.equation(0)).groups())
    by_hand = intercept + slope * year[:, 0]
    np.testing.assert_allclose(by_hand, mixture.predict(year), atol=0.2 * mixture.scale[0])
    rough = dataclasses.replace(mixture, scale=mixture.scale * 1000)
    written = numbers.fullmatch(rough.equation(0)).groups()
    assert written == tuple(number(value) for value in (mixture.intercept[0], mixture.coef[0, 0]))


def test_a_short_equation_is_whole_in_its_own_width():
    """Terms of one digit: the width that the equation needs is enough."""
    mixture = mixture_of([[2.0]], intercept=np.array([0.0]), feature_names=("x",))
    whole = mixture.equation(0)
    assert mixture.equation(0, len(whole)) == whole
    assert mixture.equation(0, len(whole) - 1) != whole


def test_one_regime_without_outliers_is_said_in_the_singular():
    text = str(mixture_of([[1.0]], outlier_share=0.0))
    assert text.startswith("1 linear regime in 10 rows\n")
    assert "outliers" not in text


def test_without_a_score_none_is_said():
    net = Settings(search="net")
    text = str(mixture_of([[1.0]], evidence=0.0, settings=net))
    assert "vidence" not in text
    assert text.endswith("Seed 3.")


@pytest.mark.parametrize(
    ("search", "n_components", "evidence", "nothing"),
    [
        ("auto", None, 3.0, False),
        ("auto", None, 2.9, True),
        ("auto", 1, 0.0, False),
        ("auto", 1, -0.1, True),
        ("partition", 1, -0.1, True),
        ("net", None, 0.0, False),
        ("net", None, -np.inf, True),
    ],
)
def test_it_says_whether_anything_was_found(search, n_components, evidence, nothing):
    asked = Settings(search=search, n_components=n_components)
    mixture = mixture_of([[1.0]], evidence=evidence, settings=asked)
    assert mixture.found_nothing is nothing


# --- the object -----------------------------------------------------------------------------------


def test_results_travel_without_the_callback():
    of_the_run = {"callback": lambda progress: False, "checkpoint": "path"}
    mixture = mixture_of([[1.0]], settings=Settings(seed=9, **of_the_run))
    assert mixture.settings == Settings(seed=9)
    again = pickle.loads(pickle.dumps(mixture))
    assert str(again) == str(mixture)
    np.testing.assert_array_equal(again.coef, mixture.coef)


def test_a_result_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        mixture_of([[1.0]]).evidence = 0.0


# --- settings -------------------------------------------------------------------------------------


def test_settings_read_what_users_write():
    assert Settings.read(random_state=0) == Settings()
    read = Settings.read(
        n_components=np.int64(3),
        outliers=np.float32(0.25),
        subspace=None,
        search="net",
        time_limit=2,
        tolerance=1,
        shares=0.2,
        random_state=5,
        n_jobs=-1,
        callback=print,
    )
    assert read.n_components == 3
    assert (read.outliers, read.keep) == (0.25, 0.75)
    assert read.taus == (0.2, 0.2, 0.2)
    assert (read.time_limit, read.tolerance, read.seed, read.n_jobs) == (2.0, 1.0, 5, -1)
    assert Settings.read(search="net", shares=[0.5, 0.3], random_state=0).taus == (0.5, 0.3)
    for none in (False, 0, 0.0):
        assert Settings.read(outliers=none).outliers == 0.0
    assert Settings.read(noise="student", keep_rows=True).noise == "student"


def test_fits_by_label_are_those_that_trim_or_sort():
    assert not Settings.read().by_label
    assert not Settings.read(outliers=False).by_label
    assert Settings.read(outliers=0.1).by_label
    assert Settings.read(search="net").by_label
    assert Settings.read(search="partition", n_components=2).by_label


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("n_components", [0, -1, 2.0, "many", None, True, [2]]),
        ("outliers", [1.0, 1.01, -0.5, "half", None, True, np.nan]),
        ("noise", ["cauchy", None, 3, np.zeros(2)]),
        ("search", ["em", None, 3, np.zeros(2)]),
        ("subspace", ["pca", 0]),
        ("solver", ["newton", None]),
        ("max_iter", [-1, 1.5, "all"]),
        ("tol", [-0.1, 1.0, "small"]),
        ("random_state", [-1, "seed", 1.5]),
        ("n_jobs", [0, 1.5, "all"]),
        ("max_starts", [0, 2.5, "all"]),
        ("time_limit", [0, -1.0, np.inf, np.nan, "1 s"]),
        ("callback", [3, "print"]),
        ("granularity", [0, -0.1, None]),
        ("tolerance", [0, -1, np.inf, "small"]),
        ("shares", [0.0, 1.5, [], [[0.5]], "half", [0.5, np.nan]]),
    ],
)
def test_settings_outside_what_is_allowed_are_refused(option, values):
    # What is for the net alone is looked at there; elsewhere it is refused whatever it is.
    net = {"search": "net"} if option in PAPER else {}
    for value in values:
        with pytest.raises(ParameterError, match=f"^{option} must"):
            Settings.read(**(net | {option: value}))


def test_shares_must_match_the_components_asked_for():
    with pytest.raises(ParameterError, match="one for each of the 3 components"):
        Settings.read(n_components=3, search="net", shares=[0.5, 0.3])


@pytest.mark.parametrize("search", ["auto", "joint", "partition"])
@pytest.mark.parametrize("option", PAPER)
def test_what_is_for_the_net_alone_is_refused_elsewhere(option, search):
    said = f'{option} belongs to Algorithm 2 .*search="net"; search={search!r} has no use for it'
    with pytest.raises(ParameterError, match=said):
        Settings.read(n_components=2, search=search, **{option: PAPER[option]})
    assert Settings.read(n_components=2, search="net", **{option: PAPER[option]})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"search": "partition"}, "say how many: n_components=2"),
        ({"search": "partition", "n_components": 2, "outliers": 0.1}, "leave outliers out"),
        ({"search": "partition", "n_components": 2, "noise": "normal"}, "Leave noise out"),
        ({"search": "net", "noise": "student"}, "Leave noise out"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(options, said):
    with pytest.raises(ParameterError, match=said):
        Settings.read(**options)


def test_progress_says_where_a_search_is():
    progress = Progress("search", 2, 10.0, 0.5, 7)
    assert dataclasses.astuple(progress) == ("search", 2, 10.0, 0.5, 7, 0, None)


def test_seeds_of_every_kind():
    assert read_seed(2**80) == 2**80
    assert read_seed(np.int32(4)) == 4
    assert read_seed(np.random.default_rng(1)) == read_seed(np.random.default_rng(1))
    assert read_seed(np.random.RandomState(1)) == read_seed(np.random.RandomState(1))
    assert read_seed(None) != read_seed(None)
