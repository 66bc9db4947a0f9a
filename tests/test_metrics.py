"""Scores against the truth, beside slow twins that try everything."""

import warnings
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, t
from sklearn.linear_model import LinearRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from regimix import MixedLinearRegression, TrimmedRegressor, metrics
from regimix.errors import DataError, ParameterError, RegimixWarning
from regimix.synth import make_mlrc

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=60, deadline=None)


def draw(seed, k, m, d=2, grid=False):
    """Estimates and truth; on a grid, distances tie and coincide."""
    rng = np.random.default_rng(seed)
    shape = (k + m, d)
    both = rng.integers(-2, 3, shape).astype(float) if grid else rng.standard_normal(shape)
    return both[:k], both[k:]


def gaps(estimate, true, order):
    return [np.linalg.norm(estimate[i] - row) for i, row in zip(order, true, strict=False)]


# --- components --------------------------------------------------------------------------------


@few
@given(seed=seeds, k=st.integers(1, 5), m=st.integers(1, 5), grid=st.booleans())
def test_matching_has_the_smallest_sum(seed, k, m, grid):
    estimate, true = draw(seed, k, m, grid=grid)
    match = metrics.match_components(estimate, true)
    few_rows, many_rows = (estimate, true) if k <= m else (true, estimate)
    best = min(
        sum(gaps(many_rows, few_rows, order))
        for order in permutations(range(len(many_rows)), len(few_rows))
    )
    paired = match.estimate_of >= 0
    assert paired.sum() == min(k, m)
    assert match.distance[paired].sum() == pytest.approx(best)
    assert np.isinf(match.distance[~paired]).all()
    # Both directions tell the same story, and the distances are theirs.
    for j in np.flatnonzero(paired):
        i = match.estimate_of[j]
        assert match.true_of[i] == j
        assert match.distance[j] == pytest.approx(np.linalg.norm(estimate[i] - true[j]))
    assert np.sum(match.true_of >= 0) == min(k, m)


@few
@given(seed=seeds, k=st.integers(1, 5), m=st.integers(1, 5), grid=st.booleans())
def test_recovery_error_is_definition_10(seed, k, m, grid):
    estimate, true = draw(seed, k, m, grid=grid)
    orders = permutations(range(k), m)  # none if k < m
    twin = min((max(gaps(estimate, true, order)) for order in orders), default=np.inf)
    assert metrics.recovery_error(estimate, true, allow_extra=True) == pytest.approx(twin)
    strict = metrics.recovery_error(estimate, true)
    assert strict == (pytest.approx(twin) if k == m else np.inf)


def test_the_bottleneck_is_not_the_smallest_sum():
    true = np.array([[0.0, 0.0], [2.0, 0.0]])
    estimate = np.array([[2.0, 0.0], [3.9, 0.5]])
    # Smallest sum: 0 for the second, 3.93 for the first. Smallest maximum: 2 and 1.96.
    assert metrics.match_components(estimate, true).distance.max() > 3.9
    assert metrics.recovery_error(estimate, true) == pytest.approx(2.0)


@few
@given(
    seed=seeds,
    k=st.integers(0, 5),
    m=st.integers(1, 5),
    grid=st.booleans(),
    epsilon=st.sampled_from([0.0, 0.5, 1.0, 2.0, 10.0]),
)
def test_components_found_is_the_largest_matching_within(seed, k, m, grid, epsilon):
    estimate, true = draw(seed, k, m, grid=grid)
    close = {
        (i, j)
        for i in range(k)
        for j in range(m)
        if np.linalg.norm(estimate[i] - true[j]) <= epsilon
    }
    twin = max(
        size
        for size in range(min(k, m) + 1)
        if any(
            all(pair in close for pair in zip(rows, columns, strict=True))
            for rows in permutations(range(k), size)
            for columns in combinations(range(m), size)
        )
    )
    assert metrics.components_found(estimate, true, epsilon) == twin
    assert metrics.is_recovery(estimate, true, epsilon, allow_extra=True) == (twin == m)
    assert metrics.is_recovery(estimate, true, epsilon) == (twin == m == k)


def test_one_estimate_does_not_find_two_components():
    true = np.array([[0.0], [0.1]])
    assert metrics.components_found([[0.05]], true, 0.2) == 1
    assert metrics.components_found([[0.05], [9.0]], true, 0.2) == 1
    assert not metrics.is_recovery([[0.05], [9.0]], true, 0.2)


@few
@given(seed=seeds, m=st.integers(1, 8), size=st.floats(0, 0.2))
def test_shuffled_truth_is_recovered(seed, m, size):
    rng = np.random.default_rng(seed)
    true = 10.0 * np.eye(m)
    order = rng.permutation(m)
    shift = rng.standard_normal(m)
    shift *= size / np.linalg.norm(shift)
    estimate = true[order] + shift
    np.testing.assert_array_equal(metrics.match_components(estimate, true).true_of, order)
    assert metrics.recovery_error(estimate, true) == pytest.approx(size)
    assert metrics.is_recovery(estimate, true, size + 1e-9)
    assert size < 1e-6 or not metrics.is_recovery(estimate, true, 0.99 * size)


def test_nothing_found():
    none, true = np.empty((0, 3)), np.ones((2, 3))
    match = metrics.match_components(none, true)
    np.testing.assert_array_equal(match.estimate_of, [-1, -1])
    assert match.true_of.shape == (0,)
    assert metrics.recovery_error(none, true) == np.inf
    assert metrics.components_found(none, true, 1.0) == 0


def test_intercepts_are_judged_when_appended():
    coef = np.array([[1.0], [1.0]])
    true = metrics.with_intercept(coef, [0.0, 5.0])
    np.testing.assert_array_equal(true, [[1, 0], [1, 5]])
    np.testing.assert_array_equal(metrics.with_intercept(coef, 2), [[1, 2], [1, 2]])
    estimate = metrics.with_intercept(coef, [5.1, 0.0])
    np.testing.assert_array_equal(metrics.match_components(estimate, true).true_of, [1, 0])
    assert metrics.recovery_error(estimate, true) == pytest.approx(0.1)


# --- labels ------------------------------------------------------------------------------------

labellings = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-1, 3), min_size=n, max_size=n)] * 2)
)


@few
@given(pair=labellings)
def test_accuracy_is_the_best_renaming(pair):
    given_labels, true = pair
    twin = 0
    # More names than components, so that a label may also stay without a match.
    for names in permutations(range(8), 4):
        renamed = [-1 if label == -1 else names[label] for label in given_labels]
        twin = max(twin, sum(a == b for a, b in zip(renamed, true, strict=True)))
    assert metrics.label_accuracy(given_labels, true) == pytest.approx(twin / len(true))


def test_accuracy_with_the_matching_of_the_components():
    true_coef = np.array([[0.0], [1.0], [2.0]])
    match = metrics.match_components([[2.1], [0.1], [1.1], [7.0]], true_coef)
    labels = [0, 0, 1, 2, 3, -1, -1, 1]
    true = [2, 1, 0, 1, 1, -1, 0, -1]
    assert metrics.label_accuracy(labels, true, match) == 4 / 8
    unsigned = np.array([0, 1], dtype=np.uint8)
    assert metrics.label_accuracy(unsigned, [2, 0], match) == 1


def test_outliers_are_never_renamed():
    assert metrics.label_accuracy([-1, -1, 0], [0, 0, -1]) == 0
    assert metrics.label_accuracy([-1, -1], [-1, -1]) == 1
    # An estimate without a match is no outlier.
    match = metrics.match_components([[0.0], [9.0]], [[0.0]])
    assert metrics.label_accuracy([0, 1], [0, -1], match) == 0.5


@few
@given(pair=labellings)
def test_rand_index_counts_pairs(pair):
    given_labels, true = pair
    assert metrics.adjusted_rand_index(*pair) == pytest.approx(
        adjusted_rand_score(true, given_labels)
    )
    pairs = list(combinations(range(len(true)), 2))
    same = [(given_labels[i] == given_labels[j], true[i] == true[j]) for i, j in pairs]
    a, b = (sum(side) for side in zip(*same, strict=True)) if same else (0, 0)
    both = sum(x and y for x, y in same)
    if both == a == b:
        assert metrics.adjusted_rand_index(*pair) == 1
    else:
        chance = a * b / len(pairs)
        twin = (both - chance) / ((a + b) / 2 - chance)
        assert metrics.adjusted_rand_index(*pair) == pytest.approx(twin)


def test_rand_index_of_many_rows_does_not_overflow():
    labels = np.repeat([0, 1], 200_000)
    assert metrics.adjusted_rand_index(labels, 1 - labels) == 1
    nearly = labels.copy()
    nearly[0] = 1
    assert 0.999 < metrics.adjusted_rand_index(nearly, labels) < 1


@few
@given(pair=labellings)
def test_outlier_scores_are_their_definitions(pair):
    given_labels, true = pair
    flagged = {i for i, label in enumerate(given_labels) if label == -1}
    wrong = {i for i, label in enumerate(true) if label == -1}
    scores = metrics.outlier_scores(*pair)
    assert scores.precision == (len(flagged & wrong) / len(flagged) if flagged else 1)
    assert scores.recall == (len(flagged & wrong) / len(wrong) if wrong else 1)
    if scores.precision + scores.recall > 0 and flagged | wrong:
        harmonic = 2 * scores.precision * scores.recall / (scores.precision + scores.recall)
        assert scores.f1 == pytest.approx(harmonic)
    if not flagged and not wrong:
        assert scores.f1 == 1


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.match_components([1.0, 2.0], [[1.0, 2.0]]), r"got shape \(2,\)"),
        (lambda: metrics.match_components([[1.0]], [[1.0, 2.0]]), "1 columns and true_coef 2"),
        (lambda: metrics.match_components([[np.nan]], [[1.0]]), "coef has NaN"),
        (lambda: metrics.recovery_error([[1.0]], [[np.inf]]), "true_coef has NaN"),
        (lambda: metrics.recovery_error([["a"]], [[1.0]]), "coef must be a matrix of numbers"),
        (lambda: metrics.recovery_error([[1.0]], np.empty((0, 1))), "at least one true"),
        (lambda: metrics.with_intercept([[1.0], [2.0]], [1, 2, 3]), "or 2 numbers"),
        (lambda: metrics.outlier_scores([0, 1], [0]), "same rows, at least one; got 2 and 1"),
        (lambda: metrics.label_accuracy([], []), "one whole number per row"),
        (lambda: metrics.label_accuracy([0.5], [0]), "one whole number per row"),
        (lambda: metrics.adjusted_rand_index([[0]], [0]), "labels must be one whole number"),
        (lambda: metrics.adjusted_rand_index([0], [-2]), "true_labels must be one whole number"),
        (
            lambda: metrics.label_accuracy([3], [0], metrics.match_components([[1.0]], [[1.0]])),
            "labels go up to 3, but the matching has 1",
        ),
    ],
)
def test_refusals_say_what_is_wrong(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_epsilon_is_a_distance():
    for epsilon in (-1.0, np.nan):
        with pytest.raises(ParameterError, match="epsilon must be a distance"):
            metrics.components_found([[1.0]], [[1.0]], epsilon)
        with pytest.raises(ParameterError, match="epsilon must be a distance"):
            metrics.is_recovery([[1.0]], [[1.0]], epsilon)


# --- rows that were held out ---------------------------------------------------------------------


def lines(n, noise=0.3, seed=0):
    """Two regimes, of which the first feature decides."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] > 0, 4 + X[:, 1], -X[:, 1])
    return X, y + noise * rng.standard_normal(n)


def slow_density(model, X, y):
    """The mean log density, one row and one regime at a time."""
    mixture = model.mixture_
    total = 0.0
    for i, (row, response) in enumerate(zip(X, y, strict=True)):
        # The shares are of rows that are no outliers.
        shares = model.predict_shares(X)[i] * (1 - mixture.outlier_share)
        density = 0.0
        for j, share in enumerate(shares):
            mean = row @ mixture.coef[j] + mixture.intercept[j]
            law = norm if np.isinf(mixture.noise_degrees) else t(mixture.noise_degrees)
            distance = (response - mean) / mixture.scale[j]
            density += share * law.pdf(distance) / mixture.scale[j]
        if mixture.outlier_share:
            away = (response - mixture.background_middle) / mixture.background_width
            law = t(mixture.background_degrees)
            density += mixture.outlier_share * mixture.background * law.pdf(away) / law.pdf(0)
        total += np.log(density)
    return total / len(y)


@pytest.mark.parametrize("gating", [None, "logistic"])
@pytest.mark.parametrize("outliers", [False, "auto"])
def test_the_log_density_is_that_of_a_slow_twin(gating, outliers):
    X, y = lines(160)
    if outliers:
        y[:10] = np.linspace(-30, 30, 10)
    model = MixedLinearRegression(
        n_components=2, gating=gating, outliers=outliers, noise="normal", random_state=0
    ).fit(X[:120], y[:120])
    assert bool(model.outlier_share_) == bool(outliers)
    for held in (slice(120, 160), slice(0, 40)):
        score = metrics.log_density_scorer(model, X[held], y[held])
        assert score == pytest.approx(slow_density(model, X[held], y[held]), rel=1e-9)
    twice = metrics.log_density_scorer(model, X[:2], y[:2], sample_weight=[2.0, 1.0])
    copied = metrics.log_density_scorer(model, X[[0, 0, 1]], y[[0, 0, 1]])
    assert twice == pytest.approx(copied)


@pytest.mark.usefixtures("searched_once")
def test_held_out_density_prefers_the_true_number_of_regimes():
    for seed in range(2):
        X, y, _ = make_mlrc(150, 2, 2, noise=0.2, separation=1.0, random_state=seed)
        grid = GridSearchCV(
            MixedLinearRegression(random_state=0, outliers=False, noise="normal"),
            {"n_components": [1, 2, 3]},
            scoring=metrics.log_density_scorer,
            cv=KFold(3, shuffle=True, random_state=0),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RegimixWarning)
            grid.fit(X, y)
        means = grid.cv_results_["mean_test_score"]
        error = grid.cv_results_["std_test_score"] / np.sqrt(3)
        enough = means >= (means - error)[grid.best_index_]
        assert np.argmax(enough) == 1  # the smallest number within a standard error of the best
        assert means[1] - means[0] > 0.1  # nats a row: far more than chance


@pytest.mark.usefixtures("searched_once")
def test_cross_validation_sees_that_gating_knows_the_regime():
    X, y = lines(160)
    settings = {"n_components": 2, "random_state": 0}
    scores = {
        gating: cross_val_score(
            make_pipeline(StandardScaler(), MixedLinearRegression(gating=gating, **settings)),
            X, y, cv=3, scoring=metrics.log_density_scorer,
        )
        for gating in (None, "logistic")
    }  # fmt: skip
    # Two equal shares cost log 2 where the row tells its regime.
    assert scores["logistic"].mean() - scores[None].mean() == pytest.approx(np.log(2), abs=0.25)


def test_units_of_a_pipeline_leave_the_density_as_it_is():
    X, y = lines(120)
    bare = MixedLinearRegression(2, random_state=0).fit(X[:90], y[:90])
    for steps in [(StandardScaler(),), ("passthrough", StandardScaler()), ()]:
        last = MixedLinearRegression(2, random_state=0)
        piped = make_pipeline(*steps, last).fit(X[:90], y[:90])
        score = metrics.log_density_scorer(piped, X[90:], y[90:])
        assert score == pytest.approx(metrics.log_density_scorer(bare, X[90:], y[90:]), rel=1e-4)


@pytest.mark.parametrize("model", [TrimmedRegressor(), LinearRegression()])
def test_a_model_without_a_density_is_refused(model):
    X, y = lines(60)
    for fit in (model, make_pipeline(StandardScaler(), model)):
        with pytest.raises(ParameterError, match=f"got {type(model).__name__}"):
            metrics.log_density_scorer(fit.fit(X, y), X, y)
