"""Use after the fit: scores that are calibrated, intervals that cover, shares for each row."""

import dataclasses
import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm
from scipy.stats import t as student

from regimix import global_ilts
from regimix.errors import DataError, ParameterError
from regimix.result import mixture as mixture_module
from regimix.result import predictive
from regimix.result.predictive import MANY_DEGREES
from regimix.synth import make_mlrc
from tests.result.test_inference import far_apart, fitted, known_mixture
from tests.result.test_mixture import mixture_of, random_mixture, rows_for

pytestmark = pytest.mark.usefixtures("searched_once")

seeds = st.integers(0, 2**32 - 1)


# --- how unlikely a response is -------------------------------------------------------------------


@settings(max_examples=15)
@given(seeds)
def test_the_score_is_the_chance_of_a_response_at_least_as_unlikely(seed):
    """Beside a fine grid of responses, all of which are asked how likely they are."""
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng)
    X, y = rows_for(rng, mixture, 6)
    scores = mixture.outlier_score(X, y)
    shares = mixture.weights / mixture.weights.sum()
    for i in range(len(y)):
        means = mixture.predict_components(X[i : i + 1])[0]
        reach = 10 * mixture.scale.max()
        grid = np.linspace(means.min() - reach, means.max() + reach, 50_001)

        def densities(values, means=means):
            return shares[:, None] * norm.pdf(values, means[:, None], mixture.scale[:, None])

        least = densities(y[i : i + 1]).max()
        parts = densities(grid)
        rest = parts.max(axis=0) <= least
        chance = parts.sum(axis=0)[rest].sum() * (grid[1] - grid[0])
        assert 10 ** -scores[i] == pytest.approx(chance, abs=2e-3)


def test_one_regime_has_the_tails_of_the_normal_law():
    mixture = mixture_of([[2.0]], scale=np.array([0.5]), weights=np.ones(1), outlier_share=0.0)
    away = np.array([0.0, 1.0, -1.96, 3.0, -30.0])
    scores = mixture.outlier_score(np.zeros((5, 1)), 0.5 * away)
    expected = -(norm.logsf(np.abs(away)) + math.log(2)) / math.log(10)
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("scale", "shares", "gap"),
    [
        ([1.0], [1.0], 0.0),
        ([0.3, 0.3], [0.5, 0.5], 4.0),  # apart
        ([0.3, 3.0], [0.7, 0.3], 2.0),  # a narrow one in a broad one
        ([1.0, 1.0, 0.2], [0.6, 0.3, 0.1], 1.0),  # overlap
    ],
)
@pytest.mark.parametrize("rate", [0.05, 0.01, 0.001])
def test_clean_rows_are_flagged_at_the_chosen_rate(scale, shares, gap, rate, base_seed):
    """Five errors of a share of so many rows, whatever the regimes."""
    rng = np.random.default_rng(base_seed)
    m, n = len(scale), 100_000
    mixture = mixture_of(
        gap * np.arange(m)[:, None] * [1.0, -0.5],
        weights=0.9 * np.array(shares),
        outlier_share=0.1,
        scale=np.array(scale),
    )
    X = rng.standard_normal((n, 2))
    label = rng.choice(m, n, p=shares)
    y = mixture.predict_components(X)[np.arange(n), label] + mixture.scale[label] * (
        rng.standard_normal(n)
    )
    flagged = mixture.flag(X, y, rate).mean()
    assert abs(flagged - rate) <= 5 * math.sqrt(rate * (1 - rate) / n), base_seed


def test_fitted_models_flag_new_clean_rows_at_the_chosen_rate_and_gross_errors_always():
    """Up to five errors of the rate itself, and of what the errors of the scales do to it."""
    X, y, truth = make_mlrc(
        26_000, 3, 2, noise=[0.1, 0.3], corruption=0.05, separation=1.2, random_state=8
    )
    mixture = fitted(X[:6000], y[:6000], truth)
    X, y, corrupted = X[6000:], y[6000:], truth.corrupted[6000:]
    clean = np.count_nonzero(~corrupted)
    for rate in (0.05, 0.01):
        flagged = mixture.flag(X[~corrupted], y[~corrupted], rate).mean()
        # A scale of 3000 rows is wrong by 1 / sqrt(2 * 3000); the tail beyond z, by z² times that.
        error = math.hypot(norm.isf(rate / 2) ** 2 / math.sqrt(6000), 1 / math.sqrt(rate * clean))
        assert flagged == pytest.approx(rate, rel=5 * error)
    gross = np.abs(truth.corruption[6000:]) > 12
    assert mixture.flag(X[gross], y[gross], 0.001).all()


def test_scores_grow_without_bound_and_stay_finite():
    mixture = mixture_of([[1.0], [-1.0]], scale=np.array([0.0, 1e-3]))
    scores = mixture.outlier_score([[1.0]] * 4, [1.0, 1.5, 40.0, -1e130])
    assert np.isfinite(scores).all()
    assert (np.diff(scores) > 0).all()


def test_a_response_on_a_regime_that_is_impossible_there_is_an_outlier():
    mixture = mixture_of([[0.0], [0.0]], intercept=np.array([0.0, 10.0]))
    X, y = np.zeros((2, 1)), np.array([10.0, 10.0])
    assert (mixture.outlier_score(X, y) < 1).all()
    scores = mixture.outlier_score(X, y, shares=[[1.0, 0.0], [0.0, 1.0]])
    assert scores[0] > 50
    assert scores[1] == pytest.approx(0.0, abs=1e-12)


def with_degrees(mixture, degrees):
    """The same fit with other degrees of freedom, and coefficients without error."""
    exact = np.zeros_like(mixture.inference.covariance)
    found = dataclasses.replace(mixture.inference, degrees=np.array(degrees), covariance=exact)
    return dataclasses.replace(mixture, inference=found)


@settings(max_examples=15)
@given(seeds, st.sampled_from([(2.0, 7.5), (1.0, 40.0), (3.0, 1e6)]))
def test_with_few_degrees_of_freedom_the_score_is_that_of_students_law(seed, degrees):
    """Beside a fine grid of responses, all of which are asked how likely they are."""
    rng = np.random.default_rng(seed)
    mixture = with_degrees(known_mixture(), degrees)
    X, y = rng.uniform(-2, 2, (4, 1)), rng.uniform(-3, 3, 4)
    chances = 10 ** -mixture.outlier_score(X, y)
    shares = mixture.weights / mixture.weights.sum()
    grid = np.linspace(-60, 60, 120_001)
    for i in range(4):
        laws = [
            student(df, mean, scale)
            for df, mean, scale in zip(
                degrees, mixture.predict_components(X[i : i + 1])[0], mixture.scale, strict=True
            )
        ]
        parts = np.array([share * law.pdf(grid) for share, law in zip(shares, laws, strict=True)])
        own = max(share * law.pdf(y[i]) for share, law in zip(shares, laws, strict=True))
        likelier = parts.max(axis=0) > own
        inside = parts.sum(axis=0)[likelier].sum() * (grid[1] - grid[0])
        assert chances[i] == pytest.approx(1 - inside, abs=3e-3)


@pytest.mark.parametrize("degrees", [np.inf, 4.0])
def test_logarithms_of_tails_are_for_rows_that_are_far_out(monkeypatch, degrees):
    """They are most of the work of labelling a million rows."""
    rng = np.random.default_rng(0)
    mixture = with_degrees(known_mixture(), [degrees] * 2)
    X = rng.uniform(-2, 2, (500, 1))
    y = mixture.predict_components(X)[:, 0] + mixture.scale[0] * rng.standard_normal(500)
    y[:5] += 1e6
    found, rows = mixture.outlier_score(X, y), []
    log_between = predictive._Responses.log_between

    def counted(responses, starts, stops):
        rows.append(np.unique(responses.means, axis=1).shape[1])
        return log_between(responses, starts, stops)

    monkeypatch.setattr(predictive._Responses, "log_between", counted)
    np.testing.assert_array_equal(mixture.outlier_score(X, y), found)
    assert sum(rows) == 5
    # The two ways agree to all digits.
    monkeypatch.setattr(predictive, "COMMON", 2.0)
    np.testing.assert_allclose(mixture.outlier_score(X, y), found, rtol=1e-12, atol=1e-12)
    assert sum(rows) > 400


def obvious_score(y, means, scales, degrees, shares):
    """The chance of a row's responses that are as unlikely, gap by gap, in logarithms."""
    laws = [student(v, a, s) for v, a, s in zip(degrees, means, scales, strict=True)]
    heights = [math.log(q) + law.logpdf(a) for q, law, a in zip(shares, laws, means, strict=True)]
    level = max(math.log(q) + law.logpdf(y) for q, law in zip(shares, laws, strict=True))
    ends = []
    for mean, scale, v, height in zip(means, scales, degrees, heights, strict=True):
        if height > level and not math.isinf(v):
            reach = scale * math.sqrt(v * math.expm1(2 * (height - level) / (v + 1)))
            ends.append((mean - reach, mean + reach))
        elif height > level:
            reach = scale * math.sqrt(2 * (height - level))
            ends.append((mean - reach, mean + reach))
    start, logs = -math.inf, []
    for lower, upper in [*sorted(ends), (math.inf, math.inf)]:
        for share, law, mean in zip(shares, laws, means, strict=True):
            if start < lower and start + lower <= 2 * mean:
                chance = law.cdf(lower) - law.cdf(start)
            elif start < lower:
                chance = law.sf(start) - law.sf(lower)
            else:
                chance = 0.0
            logs.append(math.log(share * chance) if chance > 0 else -math.inf)
        start = max(start, upper)
    return -logsumexp(logs) / math.log(10)


@settings(max_examples=25)
@given(seeds, st.sampled_from([1.0, 2.0, 3.0, 4.7, 6.0, 12.0, 150.0, math.inf]))
def test_scores_are_those_of_the_obvious_formula(seed, degrees):
    """Row by row, every gap between intervals: to rounding."""
    rng = np.random.default_rng(seed)
    mixture = dataclasses.replace(random_mixture(rng), noise_degrees=degrees)
    X, y = rows_for(rng, mixture)
    y[::5] += 4.0  # outliers
    m = mixture.n_components
    shares = rng.dirichlet(np.ones(m), len(y))
    expected = [
        obvious_score(y[i], means, mixture.scale, [degrees] * m, shares[i])
        for i, means in enumerate(mixture.predict_components(X))
    ]
    # Near the middle of a regime, the width of its interval is the root of a rounded difference.
    found = mixture.outlier_score(X, y, shares)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@settings(max_examples=25)
@given(seeds, st.sampled_from([1.0, 3.0, 4.7, 6.0, math.inf]), st.sampled_from([0.1, 0.95, 0.999]))
def test_quantiles_are_those_that_halving_finds(seed, degrees, level):
    rng = np.random.default_rng(seed)
    mixture = dataclasses.replace(random_mixture(rng), noise_degrees=degrees)
    X, _ = rows_for(rng, mixture)
    shares = rng.dirichlet(np.full(mixture.n_components, 0.3), len(X))
    for given_shares in (None, shares):
        found = mixture.predict_interval(X, level, given_shares)
        weights = mixture.weights / mixture.weights.sum()
        share = np.broadcast_to(weights, shares.shape) if given_shares is None else shares
        laws = student(degrees, mixture.predict_components(X), mixture.scale)
        for end, tail in zip(found.T, (0.5 - level / 2, 0.5 + level / 2), strict=True):
            low, high = laws.ppf(tail).min(axis=1), laws.ppf(tail).max(axis=1)
            width = high - low
            for _ in range(60):
                middle = 0.5 * (low + high)
                below = (share * laws.cdf(middle[:, None])).sum(axis=1) < tail
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            assert (
                np.abs(end - low) <= np.maximum(1e-12 * np.abs(low), 1e-11 * width + 1e-12)
            ).all()


@pytest.mark.parametrize("degrees", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 12.0, 31.0, 100.0])
def test_whole_degrees_have_a_finite_sum(degrees):
    away = np.concatenate([np.linspace(-20, 20, 401), [-np.inf, -1e200, 1e200, np.inf]])
    found = predictive.StudentLaw(degrees).below(away)
    np.testing.assert_allclose(found, student.cdf(away, degrees), rtol=0, atol=1e-15)


def test_newtons_steps_end_soon(monkeypatch):
    """Halving took forty; regimes may be far apart, and an end may lie between them."""
    rng, sizes = np.random.default_rng(0), []
    density = predictive._Responses.density

    def counted(responses, places):
        sizes.append(places.size)
        return density(responses, places)

    monkeypatch.setattr(predictive._Responses, "density", counted)
    X = rng.standard_normal((2000, 2))
    for apart in (0.0, 1.0, 100.0):
        mixture = mixture_of(apart * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]]))
        for degrees in (3.0, np.inf):
            sizes.clear()
            dataclasses.replace(mixture, noise_degrees=degrees).predict_interval(X)
            assert sum(sizes) < 2 * 8 * len(X)
            assert len(sizes) < 2 * 25


# --- all that labels need, at once ----------------------------------------------------------------


def test_rows_are_judged_as_one_question_after_the_other_judges_them():
    rng = np.random.default_rng(3)
    mixture = random_mixture(rng, m=3, d=2)
    X, y = rows_for(rng, mixture)
    shares = rng.dirichlet(np.ones(3), len(y))
    for given_shares in (None, shares):
        labels, probabilities, scores = mixture.judge(X, y, given_shares)
        assert np.array_equal(labels, mixture.assign(X, y, given_shares))
        assert np.array_equal(probabilities, mixture.responsibilities(X, y, given_shares))
        assert np.array_equal(scores, mixture.outlier_score(X, y, given_shares))


def test_a_block_of_rows_is_predicted_once(monkeypatch):
    rng = np.random.default_rng(3)
    mixture = random_mixture(rng, m=3, d=2)
    X = rng.standard_normal((20_000, 2))
    rows, lengths = [], []
    means, densities = mixture_module._Block.means.func, mixture_module.NoiseLaw.kernel

    def counted(block):
        rows.append(len(block.X))
        return means(block)

    def weighed(law, squares):
        lengths.append(squares.shape[1])
        return densities(law, squares)

    once = functools.cached_property(counted)
    once.__set_name__(mixture_module._Block, "means")
    monkeypatch.setattr(mixture_module._Block, "means", once)
    monkeypatch.setattr(mixture_module.NoiseLaw, "kernel", weighed)
    mixture.judge(X, X[:, 0])
    assert len(rows) > 1  # blocks that fit the cache
    assert sum(rows) == sum(lengths) == len(X)


@pytest.mark.parametrize("degrees", [1.0, 4.0, 30.0, 999.0])
def test_students_tails_keep_their_digits_however_far(degrees):
    law = predictive.StudentLaw(degrees)
    away = -np.array([0.5, 3.0, 50.0, 1e4, 1e50, 1e100])
    expected = student.logsf(-away[:4], degrees)
    expected[np.isneginf(expected)] = np.nan
    found = law.log_below(away)
    near = expected > -600
    np.testing.assert_allclose(found[:4][near], expected[near], rtol=1e-8)
    # Far out, a tail falls by the power of the degrees.
    assert np.isfinite(found).all()
    assert found[5] - found[4] == pytest.approx(-degrees * 50 * math.log(10))
    # The series is the same as the function where both are known.
    both = predictive._log_far_below(degrees, np.array([-3.0]))
    np.testing.assert_allclose(both, student.logsf(3.0, degrees), rtol=1e-8)


@pytest.mark.parametrize(("n", "d"), [(25, 3), (30, 10)])
def test_small_fits_flag_new_clean_rows_at_the_chosen_rate(n, d, base_seed):
    """Deviations of the noise alone would flag two to four times as many."""
    rng = np.random.default_rng(base_seed)
    flagged = {0.05: [], 0.01: []}
    for _ in range(60):
        X = rng.standard_normal((n + 400, d))
        y = X.sum(axis=1) + rng.standard_normal(n + 400)
        fit = global_ilts(
            X[:n], y[:n], n_components=1, search="partition", fit_intercept=True, random_state=0
        )
        for rate, shares in flagged.items():
            shares.append(fit.flag(X[n:], y[n:], rate).mean())
    for rate, shares in flagged.items():
        assert abs(np.mean(shares) - rate) <= 5 * np.std(shares) / math.sqrt(60), base_seed


def test_where_the_noise_is_not_known_no_response_is_unlikely():
    X, far = np.zeros((1, 1)), np.array([1e3])
    nothing = with_degrees(known_mixture(), [0.0, 0.5])
    assert nothing.outlier_score(X, far) == 0.0
    half = with_degrees(known_mixture(), [1e6, 0.0])
    share = half.weights[1] / half.weights.sum()
    assert half.outlier_score(X, far)[0] == pytest.approx(-math.log10(share))
    assert half.outlier_score(X, far, shares=[[1.0, 0.0]])[0] > 100


@pytest.mark.parametrize("rate", [0, 1, 5, "few"])
def test_a_rate_is_a_probability(rate):
    with pytest.raises(ParameterError, match="rate must be a number above 0 and below 1"):
        mixture_of([[1.0]]).flag([[1.0]], [1.0], rate)


# --- intervals for responses ----------------------------------------------------------------------


@settings(max_examples=15)
@given(seeds, st.sampled_from([0.5, 0.8, 0.95, 0.999]))
def test_equal_parts_of_the_mixture_lie_below_and_above_the_interval(seed, level):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng)
    X, _ = rows_for(rng, mixture)
    low, high = mixture.predict_interval(X, level).T
    means, shares = mixture.predict_components(X), mixture.weights / mixture.weights.sum()
    for ends, tail in ((low, (1 - level) / 2), (high, (1 + level) / 2)):
        below = norm.cdf((ends[:, None] - means) / mixture.scale) @ shares
        np.testing.assert_allclose(below, tail, atol=1e-9)


def test_intervals_of_one_regime_are_those_of_regression():
    """Noise and the error of the line, by Student's law: the textbook's formula."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, 25)
    y = 3 + 2 * x + rng.standard_normal(25)
    mixture = global_ilts(
        x[:, None], y, n_components=1, search="partition", fit_intercept=True, random_state=0
    )
    A = np.column_stack([x, np.ones(25)])
    theta, square = np.linalg.lstsq(A, y, rcond=None)[:2]
    new = np.array([[-5.0], [5.0], [1e3]])
    at = np.column_stack([new, np.ones(3)])
    leverage = np.einsum("ij,jk,ik->i", at, np.linalg.inv(A.T @ A), at)
    reach = student.ppf(0.95, 23) * np.sqrt(square / 23 * (1 + leverage))
    expected = np.column_stack([at @ theta - reach, at @ theta + reach])
    np.testing.assert_allclose(mixture.predict_component_intervals(new, 0.9)[:, 0], expected)
    np.testing.assert_allclose(mixture.predict_interval(new, 0.9), expected)


def test_intervals_cover_new_responses_as_often_as_they_say(base_seed):
    """Small tables, so that the errors of the coefficients matter; four errors of the mean."""
    level, tables, shares, regimes = 0.9, 40, [], []
    for i in range(tables):
        X, y, truth = make_mlrc(
            360,
            3,
            2,
            noise=[0.1, 0.3],
            corruption=0.0,
            random_state=base_seed + i,
            intercepts=[0, 4],
        )
        mixture = fitted(X[:60], y[:60], truth)
        X, y = X[60:], y[60:]
        low, high = mixture.predict_interval(X, level).T
        shares.append(np.mean((low <= y) & (y <= high)))
        gaps = ((mixture.intercept[:, None] - truth.intercept) ** 2).argmin(axis=0)
        own = mixture.predict_component_intervals(X, level)[
            np.arange(300), gaps[truth.component[60:]]
        ]
        regimes.append(np.mean((own[:, 0] <= y) & (y <= own[:, 1])))
    for found in (shares, regimes):
        error = 4 * np.std(found) / math.sqrt(tables)
        assert level - 0.02 - error <= np.mean(found) <= level + 0.02 + error, base_seed


def test_where_no_row_is_to_spare_intervals_have_no_end():
    """As many coefficients as rows: the fit is exact, and says nothing about the noise."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((4, 6)), rng.standard_normal(4)
    mixture = global_ilts(X, y, fit_intercept=True, random_state=0)
    assert mixture.inference.degrees[0] < 1
    np.testing.assert_array_equal(mixture.predict_interval(X), [[-np.inf, np.inf]] * 4)
    assert np.isinf(mixture.predict_component_intervals(X)).all()
    X, y = rng.standard_normal((12, 2)), rng.standard_normal(12)
    mixture = global_ilts(
        X, y, n_components=5, search="partition", fit_intercept=True, random_state=0
    )
    unknown = mixture.inference.degrees < 1
    assert unknown.any()
    pieces = mixture.predict_component_intervals(X)
    np.testing.assert_array_equal(np.isinf(pieces).all(axis=(0, 2)), unknown)


def test_a_regime_of_unknown_noise_has_half_of_its_rows_below_any_number():
    mixture = known_mixture()
    found = dataclasses.replace(mixture.inference, degrees=np.array([30.0, 0.0]))
    mixture = dataclasses.replace(mixture, inference=found)
    X = np.array([[0.0], [2.0]])
    shares = np.array([[0.96, 0.04], [0.9, 0.1]])
    bounds = mixture.predict_interval(X, 0.95, shares)
    # Of the first row's tail, 0.025, the unknown regime has 0.02: the other's part of it is 0.005.
    own = mixture.predict_component_intervals(X, 1 - 2 * 0.005 / 0.96)[:, 0]
    np.testing.assert_allclose(bounds[0], own[0])
    np.testing.assert_array_equal(bounds[1], [-np.inf, np.inf])
    # Where it has no share, it does not count.
    alone = mixture.predict_interval(X, 0.95, [[1.0, 0.0]] * 2)
    np.testing.assert_allclose(alone, mixture.predict_component_intervals(X, 0.95)[:, 0])


def test_without_recorded_errors_intervals_hold_the_noise_alone():
    mixture = mixture_of([[1.0], [2.0]])
    bounds = mixture.predict_component_intervals([[1.0]], 0.95)
    means = mixture.predict_components([[1.0]])[..., None]
    np.testing.assert_allclose(bounds, means + 0.5 * norm.ppf([0.025, 0.975]))


def test_where_no_covariance_helps_the_average_error_of_predictions_does():
    mixture = known_mixture()
    unknown = dataclasses.replace(mixture.inference, covariance=None)
    average = np.sqrt(0.25 * (1 + 2 / np.array([12.0, 32.0])))
    expected = 2 * student.ppf(0.975, [10.0, 30.0]) * average
    for changes in ({"inference": unknown}, {}):
        changed = dataclasses.replace(mixture, **changes)
        # So far from zero that the covariance, in user units, has no digits left.
        at = [[3.0]] if changes else [[1e9]]
        bounds = changed.predict_component_intervals(at)[0]
        if changes:
            np.testing.assert_allclose(bounds[:, 1] - bounds[:, 0], expected)
        else:
            assert np.isfinite(bounds).all()


def test_many_degrees_are_taken_for_the_normal_law_without_a_jump():
    mixture = known_mixture()
    ends = []
    for degrees in (MANY_DEGREES - 1, MANY_DEGREES):
        found = dataclasses.replace(mixture.inference, degrees=np.full(2, degrees))
        ends.append(dataclasses.replace(mixture, inference=found).predict_interval([[0.5]]))
    np.testing.assert_allclose(ends[0], ends[1], rtol=0.003)


# --- shares for each row --------------------------------------------------------------------------


@settings(max_examples=10)
@given(seeds)
def test_the_mixtures_own_shares_change_nothing(seed):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng)
    X, y = rows_for(rng, mixture)
    own = np.tile(3 * mixture.weights, (len(y), 1))  # brought to a sum of one
    for name in ("log_densities", "responsibilities", "assign", "score_samples", "outlier_score"):
        question = getattr(mixture, name)
        np.testing.assert_allclose(question(X, y, shares=own), question(X, y), rtol=1e-9)
    np.testing.assert_allclose(mixture.predict(X, shares=own), mixture.predict(X))
    np.testing.assert_allclose(mixture.predict_interval(X, shares=own), mixture.predict_interval(X))
    for name in ("loglik", "bic", "icl"):
        question = getattr(mixture, name)
        assert question(X, y, shares=own) == pytest.approx(question(X, y))


def test_rows_whose_regime_is_known_are_predicted_by_it():
    rng = np.random.default_rng(2)
    mixture = random_mixture(rng, m=3, d=2)
    X, y = rows_for(rng, mixture)
    label = rng.integers(0, 3, len(y))
    shares = np.eye(3)[label]
    rows = np.arange(len(y))
    means = mixture.predict_components(X)[rows, label]
    np.testing.assert_allclose(mixture.predict(X, shares), means)
    low, high = mixture.predict_interval(X, 0.9, shares).T
    np.testing.assert_allclose(0.5 * (low + high), means, atol=1e-9)
    np.testing.assert_allclose(high - low, 2 * norm.ppf(0.95) * mixture.scale[label], rtol=1e-9)
    chances = mixture.responsibilities(X, y, shares)
    assert (chances[:, :3][shares == 0] == 0).all()
    labels = mixture.assign(X, y, shares)
    assert np.isin(labels[labels >= 0], label).all()
    assert (labels[labels >= 0] == label[labels >= 0]).all()
    # Outliers keep their share.
    joint = mixture.log_densities(X, y, shares)
    np.testing.assert_allclose(joint[:, -1], mixture.log_densities(X, y)[:, -1])


@pytest.mark.parametrize(
    "shares", [[[0.5, 0.5]], [[1.0], [1.0]], [[0, 0], [1, 0]], [[-1, 2], [1, 0]]]
)
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(DataError, match="shares must be 2 rows of 2 probabilities"):
        mixture_of([[1.0], [2.0]]).predict([[1.0], [2.0]], shares)


# --- criteria -------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(seeds)
def test_icl_charges_the_entropy_of_assignments(seed):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng)
    X, y = rows_for(rng, mixture)
    weights = rng.integers(1, 4, len(y))
    entropy = 0.0
    for chances, weight in zip(mixture.responsibilities(X, y), weights, strict=True):
        entropy -= weight * sum(chance * math.log(chance) for chance in chances if chance > 0)
    expected = mixture.bic(X, y, weights) + 2 * entropy
    assert mixture.icl(X, y, weights) == pytest.approx(expected)


def test_regimes_that_are_far_apart_have_no_entropy():
    X, y, truth = far_apart(0, corruption=0.0)
    mixture = fitted(X, y, truth)
    assert mixture.icl(X, y) - mixture.bic(X, y) < 0.05 * len(y)
