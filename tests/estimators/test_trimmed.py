"""TrimmedRegressor: scikit-learn's checks, known data, statistics of keep="auto", algebra."""

import pickle
import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from regimix import TrimmedRegressor
from regimix.datasets import load_calls, load_tone
from regimix.errors import (
    ConvergenceWarning,
    DataError,
    EvidenceWarning,
    ParameterError,
    RankWarning,
)
from tests.oracles import (
    all_subsets_lts,
    design,
    kept_by_sorting,
    least_squares,
    multi_start_lts,
    noisy_table,
    one_regime,
    random_rotation,
    repeat_rows,
    sizes_of_systems,
    slow_ilts,
)

seeds = st.integers(0, 2**32 - 1)


def theta_of(fit):
    return np.concatenate([[fit.intercept_], fit.coef_])


def raw_theta_of(fit):
    return np.concatenate([[fit.raw_intercept_], fit.raw_coef_])


def half_of(n, d):
    """Rows of the trimmed fit with the highest breakdown point; it has an intercept."""
    return (n + d + 2) // 2


def spread_within(share):
    """Deviation of the normal law within its central part."""
    end = norm.ppf((1 + share) / 2)
    return np.sqrt(1 - 2 * end * norm.pdf(end) / share)


# --- scikit-learn ---------------------------------------------------------------------------------


# The checks fit noise and tables of few rows; both warnings are the right answer to those.
@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")
@pytest.mark.filterwarnings("ignore::regimix.errors.RankWarning")
@parametrize_with_checks(
    [
        TrimmedRegressor(n_starts=4, random_state=0),
        TrimmedRegressor(keep=0.75, n_starts=4, solver="cg", random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_pickling_and_cloning():
    X, y, _ = one_regime(1, n=120, d=2)
    fit = TrimmedRegressor(keep=0.7, n_starts=3, random_state=4).fit(X, y)
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.predict(X), fit.predict(X))
    np.testing.assert_array_equal(again.inlier_mask_, fit.inlier_mask_)
    blank = clone(fit)
    assert blank.get_params() == fit.get_params()
    assert not hasattr(blank, "coef_")
    np.testing.assert_array_equal(blank.fit(X, y).coef_, fit.coef_)


def test_it_works_in_a_pipeline_and_a_grid_search():
    X, y, truth = one_regime(2, n=300, d=2, corruption=0.2)
    pipeline = make_pipeline(StandardScaler(), TrimmedRegressor(n_starts=3, random_state=0))
    alone = TrimmedRegressor(n_starts=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(pipeline.fit(X, y).predict(X), alone.predict(X), rtol=1e-6)
    search = GridSearchCV(
        TrimmedRegressor(n_starts=3, random_state=0),
        {"keep": ["auto", 0.5, 0.75]},
        cv=3,
        scoring="neg_median_absolute_error",
    ).fit(X, y)
    assert search.best_params_["keep"] in ("auto", 0.5, 0.75)
    assert np.abs(search.best_estimator_.coef_ - truth.coef[0]).max() <= 0.2


def test_parameters_are_stored_and_left_alone():
    X, y, _ = one_regime(3, n=100, d=2)
    init = np.zeros((1, 2))
    estimator = TrimmedRegressor(keep=0.6, n_starts=3, init=init, random_state=1)
    before = dict(estimator.get_params())
    estimator.fit(X, y)
    assert all(estimator.get_params()[name] is value for name, value in before.items())


# --- known data -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_calls_recorded_in_other_units_are_flagged(seed):
    """1964 to 1969, rows 15 to 20; the years beside them were recorded so in part."""
    calls = load_calls()
    fit = TrimmedRegressor(random_state=seed).fit(calls.X, calls.y)
    flagged = set((np.flatnonzero(~fit.inlier_mask_) + 1).tolist())
    assert set(range(15, 21)) <= flagged <= set(range(14, 22))
    assert fit.coef_[0] == pytest.approx(0.11, abs=0.005)
    assert fit.keep_ <= 18 / 24


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(("keep", "line"), [(0.75, (1.92, 0.04)), (0.5, (0.02, 0.99))])
def test_the_two_lines_of_the_tone_data(keep, line, seed):
    tone = load_tone()
    fit = TrimmedRegressor(keep=keep, random_state=seed).fit(tone.X, tone.y)
    assert (round(fit.raw_intercept_, 2), round(float(fit.raw_coef_[0]), 2)) == line


# --- keep="auto" ----------------------------------------------------------------------------------


@settings(max_examples=5, deadline=None)
@given(seeds, st.sampled_from(["gaussian", "student-elliptical", "half-binary"]))
@example(2712383506, "gaussian")  # whose good rows happen to be 11 % closer to the line
def test_auto_is_close_to_an_oracle_that_knows_the_good_rows(seed, features):
    """30 % gross outliers: consistent scale, and hardly more error than on the true rows.

    Means and deviations in the comments are those of 300 draws. Limits are about five deviations
    away: chance alone exceeds one of them in less than one of 100,000 draws.
    """
    n, d, noise = 800, 3, 0.1
    X, y, truth = one_regime(
        seed, n=n, d=d, noise=noise, norms=1.0, intercepts=0.5, features=features
    )
    fit = TrimmedRegressor(n_starts=16, random_state=seed % 1000).fit(X, y)
    clean = ~truth.corrupted
    A = design(X, True)
    errors = noise * np.sqrt(np.diag(np.linalg.inv(A[clean].T @ A[clean])))
    oracle = least_squares(A[clean], y[clean])
    # In standard errors of the oracle: trimming costs some efficiency, no seed costs six.
    assert np.abs((theta_of(fit) - oracle) / errors).max() <= 6
    assert 0.88 <= fit.scale_ / noise <= 1.26  # 1.07 ± .036
    # A majority decides. Its rows are taken for the better half of good rows, and are more of them.
    assert fit.keep_ == half_of(n, d) / n
    expected = spread_within(fit.keep_ / clean.mean()) / spread_within(fit.keep_)
    assert 0.8 <= fit.raw_scale_ / noise / expected <= 1.2  # 1.00 ± .041
    # The same rows but for the errors of its coefficients: much of that deviation is of the rows.
    best = np.sort((y - A @ oracle) ** 2)[: half_of(n, d)]
    of_oracle = np.sqrt(best.mean()) / spread_within(fit.keep_)
    assert 0.965 <= fit.raw_scale_ / of_oracle <= 1.05  # 1.008 ± .0076
    assert fit.inlier_mask_[clean].mean() >= 0.94
    assert fit.inlier_mask_[~clean].mean() <= 0.15
    assert fit.evidence_ > 0


@settings(max_examples=5, deadline=None)
@given(seeds, st.integers(1, 4), st.sampled_from(["gross", "same-scale", "adversarial"]))
def test_an_exact_relation_has_scale_zero_and_flags_exactly_the_others(seed, d, kind):
    X, y, truth = one_regime(seed, n=200, d=d, noise=0.0, intercepts=2.0, corruption_kind=kind)
    fit = TrimmedRegressor(n_starts=16, random_state=0).fit(X, y)
    size = np.abs(y).max()
    np.testing.assert_allclose(fit.coef_, truth.coef[0], atol=1e-9 * size)
    np.testing.assert_allclose(fit.intercept_, 2.0, atol=1e-9 * size)
    assert fit.scale_ <= 1e-12 * size
    np.testing.assert_array_equal(fit.inlier_mask_, ~truth.corrupted)


@settings(max_examples=4, deadline=None)
@given(seeds)
def test_one_clean_regime_is_least_squares(seed):
    """Nothing is wrong with these rows: nearly all count, and the answer is the usual one."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((500, 2))
    y = X @ np.array([2.0, -1.0]) + 1 + rng.standard_normal(500)
    fit = TrimmedRegressor(n_starts=8, random_state=0).fit(X, y)
    usual = LinearRegression().fit(X, y)
    # Standard errors are 1 / sqrt(500); 1.2 % of good rows beyond the cutoff cost little.
    assert np.abs(fit.coef_ - usual.coef_).max() <= 0.12
    assert fit.keep_ == half_of(500, 2) / 500
    assert 0.85 <= fit.scale_ <= 1.12
    assert fit.inlier_mask_.mean() >= 0.95


@pytest.mark.parametrize("seed", [3, 12, 13, 19, 20, 21])
def test_a_line_through_two_heaps_of_responses_is_no_relation(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, 400).astype(float)
    y = rng.choice([20.0, 75.0, 160.0], 400, p=[0.45, 0.2, 0.35]) + 18 * rng.standard_normal(400)
    with pytest.warns(EvidenceWarning, match="constants explain y"):
        model = TrimmedRegressor(random_state=0).fit(x[:, None], y)
    assert model.evidence_ < 3
    assert 2 * np.count_nonzero(model.inlier_mask_) > y.size


@pytest.mark.parametrize(("intercept", "who"), [(True, "constants"), (False, "constants at zero")])
def test_a_line_is_compared_with_constants_of_its_intercept(intercept, who):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 1)), rng.standard_normal(200)
    with pytest.warns(EvidenceWarning, match=f"^{who} explain y"):
        TrimmedRegressor(fit_intercept=intercept, random_state=0).fit(X, y)


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_pure_noise_is_said_to_be_noise(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    with pytest.warns(EvidenceWarning, match="constants explain y") as caught:
        fit = TrimmedRegressor(n_starts=8, random_state=0).fit(X, y)
    assert fit.evidence_ < 3
    said = (
        "as well as a line does: it gains" if fit.evidence_ >= 0 else "better than a line does, by"
    )
    assert said in str(caught[0].message)
    # Still the best there is: a robust fit to noise, coefficients near zero.
    assert np.abs(fit.coef_).max() <= 0.6
    assert 0.6 <= fit.scale_ <= 1.3


@settings(max_examples=4, deadline=None)
@given(seeds, st.integers(2, 6))
def test_copies_of_noise_are_noise(seed, copies):
    """p coefficients fit p distinct rows for free, however often those are written."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((200, 2)), rng.standard_normal(200)
    with pytest.warns(EvidenceWarning, match="constants explain y"):
        fit = TrimmedRegressor(n_starts=8, random_state=0).fit(
            X, y, sample_weight=np.full(200, copies)
        )
    assert fit.scale_ >= 0.5


def test_the_choice_made_is_an_attribute():
    X, y, _ = one_regime(0, n=200, d=2)
    auto = TrimmedRegressor(n_starts=4, random_state=0).fit(X, y)
    assert 0 < auto.keep_ < 1
    assert auto.start_ in {"least squares", "reweighted", "elemental"}
    fixed = TrimmedRegressor(keep=0.6, n_starts=4, random_state=0).fit(X, y)
    assert fixed.keep_ == 0.6
    assert not hasattr(fixed, "evidence_")
    again = auto.set_params(keep=0.6).fit(X, y)
    assert not hasattr(again, "evidence_")


@pytest.mark.parametrize("size", [1e6, 1e15, 1e25, -1e25])
@pytest.mark.parametrize("keep", ["auto", 0.6])
def test_one_huge_error_does_not_move_the_answer(size, keep):
    """In the response or in a column: a row that is wrong enough is simply out."""
    X, y, truth = one_regime(5, n=300, d=2, norms=1.0)
    row = int(np.flatnonzero(truth.corrupted)[0])
    options = {"keep": keep, "n_starts": 8, "random_state": 0}
    y_wrong, X_wrong = y.copy(), X.copy()
    y_wrong[row], X_wrong[row, 1] = size, size
    for fit in (
        TrimmedRegressor(**options).fit(X, y_wrong),
        TrimmedRegressor(**options).fit(X_wrong, y),
    ):
        assert np.abs(fit.coef_ - truth.coef[0]).max() <= 0.1
        assert not fit.inlier_mask_[row]


# --- a given fraction -----------------------------------------------------------------------------


@settings(max_examples=5, deadline=None)
@given(seeds, st.integers(1, 2))
def test_enough_starts_find_the_best_of_all_subsets(seed, d):
    """The fits to all subsets as starts: the search must not lose the best of them."""
    X, y = noisy_table(np.random.default_rng(seed), 10, d)
    A = design(X, True)
    square, theta, _ = all_subsets_lts(A, y, 7)
    fits = [least_squares(A[rows], y[rows]) for rows in map(list, combinations(range(10), 7))]
    init = np.roll(fits, -1, axis=1)  # the intercept comes last
    fit = TrimmedRegressor(keep=0.7, init=init, random_state=seed % 99).fit(X, y)
    np.testing.assert_allclose(fit.objective_, square, rtol=1e-9)
    np.testing.assert_allclose(raw_theta_of(fit), theta, atol=1e-8)


def test_the_objective_is_no_higher_than_that_of_plain_restarts():
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = noisy_table(rng, 100, 2)
        fit = TrimmedRegressor(keep=0.6, random_state=seed).fit(X, y)
        ratios.append(fit.objective_ / multi_start_lts(design(X, True), y, 60, rng, 20))
    assert max(ratios) <= 1.02
    assert np.mean(ratios) <= 1.001


@settings(max_examples=5, deadline=None)
@given(seeds, st.booleans(), st.floats(0.5, 0.9))
def test_raw_and_reweighted_fits_are_what_they_say(seed, intercept, keep):
    X, y, _ = one_regime(seed, n=150, d=2, noise=0.2)
    options = {"keep": keep, "n_starts": 6, "fit_intercept": intercept, "random_state": 0}
    fit = TrimmedRegressor(**options).fit(X, y)
    A = design(X, True)
    sizes = np.abs(y - A @ raw_theta_of(fit))
    kept = kept_by_sorting(sizes, int(np.floor(150 * keep + 1e-9)))
    np.testing.assert_allclose(fit.objective_, np.sum(sizes[kept] ** 2), rtol=1e-8)
    columns = slice(0 if intercept else 1, None)
    np.testing.assert_allclose(
        raw_theta_of(fit)[columns], least_squares(A[kept][:, columns], y[kept]), atol=1e-9
    )
    # One step: least squares on the rows within 2.5 raw scales.
    near = sizes <= 2.5 * fit.raw_scale_
    np.testing.assert_allclose(
        theta_of(fit)[columns], least_squares(A[near][:, columns], y[near]), atol=1e-9
    )
    np.testing.assert_array_equal(
        fit.inlier_mask_, np.abs(y - A @ theta_of(fit)) <= 2.5 * fit.scale_
    )
    if not intercept:
        assert fit.intercept_ == fit.raw_intercept_ == 0.0
    plain = TrimmedRegressor(**options, reweight=False).fit(X, y)
    np.testing.assert_array_equal(theta_of(plain), raw_theta_of(plain))
    np.testing.assert_array_equal(plain.raw_coef_, fit.raw_coef_)
    assert plain.scale_ == plain.raw_scale_ == fit.raw_scale_
    np.testing.assert_array_equal(plain.inlier_mask_, near)


@settings(max_examples=4, deadline=None)
@given(seeds, st.floats(0.5, 1.0))
def test_the_scale_is_consistent_at_the_normal_law_whatever_is_kept(seed, keep):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3000, 2))
    y = X @ np.ones(2) + 3 * rng.standard_normal(3000)
    fit = TrimmedRegressor(keep=keep, n_starts=2, random_state=0).fit(X, y)
    # A trimmed fit picks its rows, so its scale is a little small, the smaller keep is.
    assert 2.3 <= fit.raw_scale_ <= 3.3
    assert 2.6 <= fit.scale_ <= 3.3


# --- starts and solvers ---------------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("several", [False, True])
def test_given_starts_are_used(width, several):
    """A small second regime that only the given start leads to."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 2))
    theta = np.array([5.0, -5.0, 1.0])
    y = X @ np.array([1.0, 1.0]) + 0.5 * rng.standard_normal(400)
    y[:150] = X[:150] @ theta[:2] + theta[2]
    init = theta[:width]
    if several:
        init = np.stack([np.zeros(width), init])
    fit = TrimmedRegressor(keep=0.35, n_starts=0, init=init, random_state=0).fit(X, y)
    assert fit.start_ == "given"
    np.testing.assert_allclose(fit.raw_coef_, theta[:2], atol=1e-9)
    np.testing.assert_allclose(fit.raw_intercept_, 1.0, atol=1e-9)


@pytest.mark.parametrize("solver", ["gradient", "cg"])
@pytest.mark.parametrize("keep", ["auto", 0.6])
def test_solvers_agree_without_noise(solver, keep):
    for seed in range(3):
        X, y, truth = one_regime(seed, n=200, d=3, noise=0.0, intercepts=1.0)
        fits = [
            TrimmedRegressor(keep=keep, solver=name, n_starts=8, random_state=0).fit(X, y)
            for name in ("exact", solver)
        ]
        np.testing.assert_allclose(theta_of(fits[1]), theta_of(fits[0]), atol=1e-7)
        np.testing.assert_array_equal(fits[1].inlier_mask_, fits[0].inlier_mask_)
        np.testing.assert_allclose(fits[1].coef_, truth.coef[0], atol=1e-7)


def test_random_states_of_every_kind():
    X, y, _ = one_regime(4, n=150, d=2)

    def fit(state):
        return TrimmedRegressor(n_starts=4, random_state=state).fit(X, y)

    for make in (lambda: 7, lambda: np.random.default_rng(7), lambda: np.random.RandomState(7)):
        one, other = fit(make()), fit(make())
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.scale_ == other.scale_
    assert np.isfinite(fit(None).coef_).all()
    assert np.isfinite(fit(2**80).coef_).all()


def test_nothing_is_seeded_globally():
    X, y, _ = one_regime(4, n=100, d=2)
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - it is looked at, not drawn from
    TrimmedRegressor(n_starts=4, random_state=0).fit(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002 - it is looked at, not drawn from


# --- algebra --------------------------------------------------------------------------------------


def same_fit(one, other, tolerance=1e-8):
    np.testing.assert_allclose(theta_of(other), theta_of(one), atol=tolerance)
    np.testing.assert_allclose(raw_theta_of(other), raw_theta_of(one), atol=tolerance)
    np.testing.assert_allclose(other.scale_, one.scale_, rtol=1e-6)
    np.testing.assert_allclose(other.objective_, one.objective_, rtol=1e-6)
    np.testing.assert_allclose(other.keep_, one.keep_, rtol=1e-9)


@settings(max_examples=4, deadline=None)
@given(seeds, st.sampled_from(["auto", 0.6]), st.sampled_from(["exact", "cg"]))
def test_whole_weights_equal_repeated_rows_in_any_order(seed, keep, solver):
    """The random draws included: they run over distinct rows in an order of their own."""
    rng = np.random.default_rng(seed)
    X, y, _ = one_regime(seed, n=150, d=2, norms=1.0)
    weights = rng.integers(0, 4, 150)
    X_long, y_long = repeat_rows(X, y, weights)
    order = rng.permutation(len(y_long))
    estimator = TrimmedRegressor(keep=keep, solver=solver, n_starts=6, random_state=5)
    weighted = clone(estimator).fit(X, y, sample_weight=weights)
    repeated = clone(estimator).fit(X_long[order], y_long[order])
    same_fit(weighted, repeated, 1e-7)
    np.testing.assert_array_equal(
        np.repeat(weighted.inlier_mask_, weights)[order], repeated.inlier_mask_
    )


@pytest.mark.parametrize("keep", ["auto", 0.6])
def test_weights_equal_repeated_rows_in_large_tables_too(keep):
    """More rows written out than a search looks at; no more distinct ones than it does."""
    rng = np.random.default_rng(0)
    X, y = noisy_table(rng, 2500, 2)
    weights = rng.integers(0, 6, 2500)
    X_long, y_long = repeat_rows(X, y, weights)
    estimator = TrimmedRegressor(keep=keep, n_starts=4, random_state=5)
    weighted = clone(estimator).fit(X, y, sample_weight=weights)
    same_fit(weighted, clone(estimator).fit(X_long, y_long))


@settings(max_examples=5, deadline=None)
@given(seeds, st.sampled_from(["auto", 0.6]))
def test_units_turn_and_shift_as_algebra_says(seed, keep):
    rng = np.random.default_rng(seed)
    X, y, _ = one_regime(seed, n=150, d=2, noise=0.01, norms=1.0)
    estimator = TrimmedRegressor(keep=keep, n_starts=20, random_state=0)

    def fit(X, y):
        return clone(estimator).fit(X, y)

    one = fit(X, y)
    order = rng.permutation(150)
    same_fit(one, fit(X[order], y[order]))
    scaled = fit(X * np.array([1e3, 1e-3]), 50 * y + 7)
    # The draws see other numbers, so only the optimum, not the way to it, is the same.
    np.testing.assert_allclose(scaled.coef_ * np.array([20, 2e-5]), one.coef_, atol=5e-3)
    np.testing.assert_allclose(scaled.scale_, 50 * one.scale_, rtol=0.1)
    turn = random_rotation(rng, 2)
    np.testing.assert_allclose(fit(X @ turn, y).coef_, one.coef_ @ turn, atol=5e-3)


def test_single_precision_gives_the_same_answer_up_to_precision():
    X, y, _ = one_regime(6, n=300, d=3)
    X, y = X.astype(np.float32), y.astype(np.float32)
    for keep in ("auto", 0.6):
        estimator = TrimmedRegressor(keep=keep, n_starts=4, random_state=0)
        single = clone(estimator).fit(X, y)
        double = clone(estimator).fit(X.astype(float), y.astype(float))
        same_fit(single, double, 1e-5)


def test_user_arrays_are_not_modified():
    X, y, _ = one_regime(8, n=100, d=2)
    weights = np.ones(100)
    weights[:5] = 2.0
    for array in (X, y, weights):
        array.flags.writeable = False
    TrimmedRegressor(n_starts=2, random_state=0).fit(X, y, sample_weight=weights).predict(X)


def test_predictions_are_the_relation():
    X, y, _ = one_regime(8, n=100, d=2)
    fit = TrimmedRegressor(n_starts=2, random_state=0).fit(X, y)
    np.testing.assert_allclose(fit.predict(X[:7]), X[:7] @ fit.coef_ + fit.intercept_, rtol=1e-12)


def test_a_large_table_is_finished_on_all_rows():
    """Nested samples only begin: the raw fit is a fixed point of the whole table."""
    n = 30_000
    X, y, truth = one_regime(9, n=n, d=3, norms=1.0)
    fit = TrimmedRegressor(keep=0.5, n_starts=8, random_state=0).fit(X, y)
    A = design(X, True)
    twin = slow_ilts(A, y, raw_theta_of(fit), n // 2, max_iter=3)
    assert twin.n_iter <= 1
    assert (
        fit.objective_
        <= slow_ilts(A, y, np.array([0.0, *truth.coef[0]]), n // 2).objective[-1] * 1.001
    )


@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")
@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from([60, 300, 900]), st.sampled_from(["exact", "cg"]))
def test_a_power_of_two_changes_nothing_but_the_unit(seed, n, solver):
    # Where two regimes compete, a start from other rows may end in the other one.
    rng = np.random.default_rng(seed)
    X, slopes = rng.normal(size=(n, 2)), 2 * rng.normal(size=(2, 2))
    y = np.einsum("ij,ij->i", X, slopes[rng.integers(2, size=n)]) + 0.3 * rng.normal(size=n)
    in_y, in_x = 2.0**20, 2.0 ** rng.integers(-20, 20, 2)
    plain, other = (
        TrimmedRegressor(solver=solver, random_state=seed).fit(*rows)
        for rows in ((X, y), (X * in_x, y * in_y))
    )
    np.testing.assert_array_equal(plain.inlier_mask_, other.inlier_mask_)
    np.testing.assert_array_equal(plain.coef_ / in_x * in_y, other.coef_)
    assert plain.intercept_ * in_y == other.intercept_
    assert plain.scale_ * in_y == other.scale_
    assert plain.objective_ * in_y**2 == other.objective_
    assert plain.evidence_ == other.evidence_


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_wide_tables_make_no_matrix_of_their_columns(monkeypatch):
    sizes = sizes_of_systems(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 600))
    order = rng.permutation(30)
    y = X[:, 0] + 0.1 * rng.normal(size=30)
    fit, other = (
        TrimmedRegressor(keep=1.0, random_state=0).fit(X[rows], y[rows])
        for rows in (np.arange(30), order)
    )
    assert max(sizes) <= 30
    # The shortest exact fit: columns are standardised by powers of two, and centred.
    np.testing.assert_allclose(fit.predict(X), y, atol=1e-8)
    np.testing.assert_allclose(fit.coef_, other.coef_, atol=1e-10)
    assert fit.standard_error_ is None
    assert np.isfinite(fit.scale_)


# --- warnings and refusals ------------------------------------------------------------------------


def test_a_limit_that_ends_the_work_is_said():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3))
    y = X @ np.ones(3) + 2 * rng.standard_normal(20_000)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        TrimmedRegressor(keep=0.5, n_starts=0, max_iter=1, random_state=0).fit(X, y)


def test_columns_that_depend_on_each_other_are_said():
    X, y, _ = one_regime(1, n=100, d=2)
    with pytest.warns(RankWarning, match="2 of 3|3 of 4"):
        fit = TrimmedRegressor(keep=0.7, n_starts=2, random_state=0).fit(X[:, [0, 1, 1]], y)
    alone = TrimmedRegressor(keep=0.7, n_starts=2, random_state=0).fit(X, y)
    assert fit.coef_[1] == pytest.approx(fit.coef_[2])
    np.testing.assert_allclose(fit.coef_[1] + fit.coef_[2], alone.coef_[1], atol=0.05)


def test_a_good_table_gives_no_warning():
    X, y, _ = one_regime(1, n=300, d=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TrimmedRegressor(n_starts=4, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("keep", "half"),
        ("keep", 0.0),
        ("keep", 1.5),
        ("keep", None),
        ("solver", "newton"),
        ("n_starts", -1),
        ("n_starts", 2.5),
        ("max_iter", -1),
        ("max_iter", "many"),
        ("tol", -1.0),
        ("tol", 1.0),
        ("tol", "small"),
        ("random_state", -1),
        ("random_state", "seed"),
        ("init", np.zeros(5)),
        ("init", [np.nan, 0.0]),
    ],
)
def test_settings_outside_what_is_allowed_are_refused(option, value):
    X, y, _ = one_regime(0, n=50, d=2)
    with pytest.raises(ParameterError, match=option):
        TrimmedRegressor(**{option: value}).fit(X, y)


def test_data_outside_what_is_allowed_are_refused():
    X, y, _ = one_regime(0, n=50, d=2)
    with pytest.raises(DataError, match="NaN"):
        TrimmedRegressor().fit(np.where(X > 2, np.nan, X) * np.nan, y)
    with pytest.raises(DataError, match="rows"):
        TrimmedRegressor().fit(X, y[:-1])
    fit = TrimmedRegressor(n_starts=2, random_state=0).fit(X, y)
    with pytest.raises(DataError, match="NaN"):
        fit.predict(X * np.nan)
    with pytest.raises(ValueError, match="features"):
        fit.predict(X[:, :1])


RESPONSES = {
    "exponential": lambda rng: rng.exponential(size=1500),
    "log-normal": lambda rng: rng.lognormal(size=1500),
    "two bumps": lambda rng: rng.choice([-3.0, 3.0], 1500) + rng.standard_normal(1500),
    "0/1": lambda rng: rng.integers(0, 2, 1500).astype(float),
    "counts": lambda rng: rng.poisson(3, 1500).astype(float),
}


@pytest.mark.parametrize("law", RESPONSES)
@pytest.mark.parametrize("seed", range(3))
def test_a_response_of_any_law_that_ignores_the_features_is_no_relation(law, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((1500, 3)), RESPONSES[law](rng)
    with pytest.warns(EvidenceWarning, match="constants explain y"):
        TrimmedRegressor(random_state=0).fit(X, y)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(3))
def test_a_line_of_zeros_has_no_slope(seed):
    """Of affairs, 451 of 601 at zero, slopes were 1e-268, their t values infinite, p <0.001."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4))
    y = np.where(rng.random(300) < 0.75, 0.0, rng.choice([1.0, 2.0, 3.0, 7.0, 12.0], 300))
    model = TrimmedRegressor(random_state=0).fit(X, y)
    assert model.scale_ == 0.0
    assert not np.append(model.coef_, model.intercept_).any()
    assert "inf" not in str(model.summary())
    assert "<0.001" not in str(model.summary())


def test_a_summary_has_the_errors_of_least_squares_on_the_good_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2)) * [1, 300] + [5, 1000]
    y = 3 + X @ [2.0, 0.01] + 0.2 * rng.standard_normal(120)
    y[:30] += 50 * rng.standard_t(2, 30)
    model = TrimmedRegressor(random_state=0).fit(X, y)
    good = np.abs(y - X @ model.raw_coef_ - model.raw_intercept_) <= 2.5 * model.raw_scale_
    A = np.column_stack([X[good], np.ones(good.sum())])
    error = model.scale_ * np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    assert model.standard_error_ == pytest.approx(error, rel=1e-6)
    records = model.summary(0.9).records()
    assert [record["term"] for record in records] == ["intercept", "x0", "x1"]
    slope, p = records[1], records[1]["p_value"]
    reach = student.ppf(0.95, good.sum() - 3) * error[0]
    assert slope["upper"] - slope["lower"] == pytest.approx(2 * reach, rel=1e-6)
    assert p == pytest.approx(2 * student.sf(abs(slope["t"]), good.sum() - 3))
    text = str(model.summary())
    assert f"{good.sum()} of them fitted" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert len(model.summary().frame()) == 3


def test_a_summary_names_the_terms_that_text_becomes():
    rng = np.random.default_rng(0)
    kinds = np.array(["a", "b", "c"])[rng.integers(0, 3, 90)]
    frame = pd.DataFrame({"kind": kinds, "x": rng.standard_normal(90)})
    y = 7 + 2 * frame["x"] + (kinds == "c") * 5 + 0.1 * rng.standard_normal(90)
    model = TrimmedRegressor(random_state=0).fit(frame, y)
    known = {record["term"]: record["coef"] for record in model.summary().records()}
    names = list(model.encoding_.feature_names)
    assert len(names) == 3
    assert known == dict(zip(["intercept", *names], [model.intercept_, *model.coef_], strict=True))
    assert known["x"] == pytest.approx(2, abs=0.1)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_a_summary_tells_the_rows_that_were_fitted_from_those_within_the_result():
    """They are other rows: errors are those of the first, inlier_mask_ has the second."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 1))
    y = 2 * X[:, 0] + rng.standard_t(2, 40)
    weights = 1 + np.arange(40) % 2
    different = 0
    for seed, repeated in product(range(8), (None, weights)):
        shown = y + np.random.default_rng(seed).standard_normal(40)
        model = TrimmedRegressor(random_state=0).fit(X, shown, repeated)
        counts = np.ones(40) if repeated is None else repeated
        raw = np.abs(shown - X @ model.raw_coef_ - model.raw_intercept_)
        fitted = counts[raw <= 2.5 * model.raw_scale_].sum()
        within = counts[model.inlier_mask_].sum()
        text = " ".join(str(model.summary()).split())
        assert f" {fitted:.0f} of them fitted" in text
        assert f"{within:.0f} rows lie within 2.5 times the noise (inlier_mask_)" in text
        assert "take for granted which rows were fitted" in text
        assert all(len(line) <= 80 for line in str(model.summary()).splitlines())
        different += fitted != within
    assert different


def test_a_summary_without_errors_says_so():
    calls = load_calls()
    for options, weights in (({"reweight": False}, None), ({}, np.linspace(0.5, 1.7, 24))):
        model = TrimmedRegressor(random_state=0, **options).fit(calls.X, calls.y, weights)
        assert model.standard_error_ is None
        assert "There are no errors" in str(model.summary())
        assert np.isnan(model.summary().records()[0]["std_err"])


@pytest.mark.parametrize(("unit", "y_unit"), [(1e120, 1e-120), (1e-120, 1e120)])
def test_squares_of_errors_need_not_be_numbers(unit, y_unit):
    X, y = noisy_table(np.random.default_rng(3), 60, 2)
    plain = TrimmedRegressor(keep=0.7, random_state=0).fit(X, y).summary().frame()
    large = TrimmedRegressor(keep=0.7, random_state=0).fit(unit * X, y_unit * y).summary().frame()
    np.testing.assert_allclose(large["t"], plain["t"], rtol=1e-4)
