"""The generator: counts, γ* and Q come out as asked, and the truth is true."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from regimix.errors import ParameterError
from regimix.synth import local_separation_of, make_mlrc, separation_of

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)

# A fair draw fails a Kolmogorov-Smirnov test at this level once in a million seeds.
LEVEL = 1e-6
KINDS = ("gross", "same-scale", "adversarial")
FEATURES = ("gaussian", "student", "student-elliptical", "lognormal", "half-binary")


def residuals(X, y, truth):
    """Row by row, from the definition of MLR-C."""
    return np.array(
        [y[i] - X[i] @ truth.coef[j] - truth.intercept[j] for i, j in enumerate(truth.component)]
    )


def ratio(corrupted, component):
    clean = [np.sum(~corrupted & (component == j)) for j in np.unique(component)]
    return corrupted.sum() / min(clean)


def arrays(data):
    X, y, truth = data
    return [X, y, *(part for part in vars(truth).values() if isinstance(part, np.ndarray))]


# --- the truth is true -------------------------------------------------------------------------


@few
@given(
    seed=seeds,
    n=st.integers(60, 150),
    d=st.integers(1, 5),
    m=st.integers(1, 4),
    kind=st.sampled_from(KINDS),
    rows=st.sampled_from(["random", "leverage"]),
    features=st.sampled_from(FEATURES),
    share=st.floats(0, 0.3),
    intercepts=st.sampled_from([None, 3.0, "each"]),
)
def test_clean_rows_obey_their_model_and_corrupted_rows_do_not(
    seed, n, d, m, kind, rows, features, share, intercepts
):
    if intercepts == "each":
        intercepts = np.arange(m) - 1.0
    X, y, truth = make_mlrc(
        n,
        d,
        m,
        corruption=share,
        corruption_kind=kind,
        corrupted_rows=rows,
        features=features,
        intercepts=intercepts,
        random_state=seed,
    )
    assert X.shape == (n, d)
    assert y.shape == (n,)
    left = residuals(X, y, truth)
    rounding = 1e-13 * (1 + np.abs(y).max() + np.abs(X).max() * np.abs(truth.coef).sum())
    np.testing.assert_allclose(left, truth.corruption, atol=10 * rounding)
    assert np.all(truth.corruption[~truth.corrupted] == 0)
    assert np.all(truth.corruption[truth.corrupted] != 0)
    assert truth.corrupted.sum() == round(share * n)
    np.testing.assert_array_equal(truth.labels, np.where(truth.corrupted, -1, truth.component))
    clean = np.array([np.sum(truth.labels == j) for j in range(m)])
    np.testing.assert_array_equal(truth.clean_fraction, clean / n)
    assert truth.clean_fraction_min == clean.min() / n
    assert truth.corruption_ratio == ratio(truth.corrupted, truth.component)


@few
@given(
    seed=seeds,
    n=st.integers(40, 400),
    weights=st.lists(st.floats(1, 5), min_size=1, max_size=6),
)
def test_component_sizes_are_the_weights_rounded(seed, n, weights):
    truth = make_mlrc(n, 2, len(weights), weights=weights, random_state=seed).truth
    counts = np.bincount(truth.component)
    assert counts.sum() == n
    # Largest remainder stays within the quota of every component.
    assert np.all(np.abs(counts - n * np.array(weights) / np.sum(weights)) < 1)


def test_largest_remainders_get_the_rows_left_over():
    truth = make_mlrc(10, 2, 3, weights=[0.58, 0.27, 0.15], random_state=0).truth
    np.testing.assert_array_equal(np.bincount(truth.component), [6, 3, 1])  # .8 and .7 beat .5


def test_rows_are_shuffled():
    component = make_mlrc(1000, 2, 2, corruption=0.1, random_state=0).truth.component
    changes = np.sum(component[1:] != component[:-1])
    assert 400 < changes < 600  # 500 ± 16 for a fair shuffle, 1 without


# --- how many rows, which rows -----------------------------------------------------------------


@few
@given(
    seed=seeds,
    n=st.integers(30, 300),
    m=st.integers(1, 4),
    wanted=st.floats(0, 2),
    rows=st.sampled_from(["random", "leverage"]),
    bound=st.sampled_from([1.0, 4.0]),
)
def test_gamma_is_the_nearest_that_whole_rows_allow(seed, n, m, wanted, rows, bound):
    options = {
        "weights": np.arange(1, m + 1),
        "corrupted_rows": rows,
        "covariance_bound": bound,
        "random_state": seed,
    }
    try:
        truth = make_mlrc(n, 2, m, corruption_ratio=wanted, **options).truth
    except ParameterError:
        assume(False)
    k = int(truth.corrupted.sum())
    assert truth.corruption_ratio == ratio(truth.corrupted, truth.component)
    # One row more or one row less is no nearer.
    for other in {max(k - 1, 0), k + 1}:
        try:
            near = make_mlrc(n, 2, m, corruption=other / n, **options).truth.corruption_ratio
        except ParameterError:  # a component would lose its last clean row
            near = np.inf
        assert abs(truth.corruption_ratio - wanted) <= abs(near - wanted)


@pytest.mark.parametrize("rows", ["random", "leverage"])
def test_gamma_of_the_recovery_benchmark(rows):
    truth = make_mlrc(8000, 50, 8, corruption_ratio=0.3, corrupted_rows=rows, random_state=3).truth
    smallest = 8000 * truth.clean_fraction_min
    assert abs(truth.corruption_ratio - 0.3) <= 1 / smallest


@few
@given(seed=seeds, n=st.integers(40, 300), m=st.integers(1, 6), share=st.floats(0, 0.5))
def test_random_rows_are_spread_evenly_over_components(seed, n, m, share):
    truth = make_mlrc(
        n, 1, m, weights=np.arange(2, m + 2), corruption=share, random_state=seed
    ).truth
    sizes = np.bincount(truth.component)
    lost = np.bincount(truth.component[truth.corrupted], minlength=m)
    quota = truth.corrupted.sum() * sizes / n
    # Webster's rounding: half a row, and the common divisor is off by at most m/2 rows.
    assert np.all(np.abs(lost - quota) <= 0.5 + m / 2 * sizes / n + 1e-9)


def test_random_rows_differ_with_the_seed_and_avoid_no_row():
    hit = np.zeros(40, dtype=bool)
    for seed in range(100):
        hit |= make_mlrc(40, 2, 2, corruption=0.25, random_state=seed).truth.corrupted
    assert hit.all()  # a row is never hit with probability .75¹⁰⁰


@few
@given(seed=seeds, features=st.sampled_from(FEATURES))
def test_leverage_takes_the_longest_rows(seed, features):
    X, _, truth = make_mlrc(
        90, 3, 2, corruption=0.2, corrupted_rows="leverage", features=features, random_state=seed
    )
    lengths = np.linalg.norm(X, axis=1)
    assert lengths[truth.corrupted].min() >= lengths[~truth.corrupted].max()


# --- what corruption does ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_gross_errors_have_the_scale_asked_for(seed):
    truth = make_mlrc(4000, 2, corruption=0.5, corruption_scale=20, random_state=seed).truth
    assert stats.kstest(truth.corruption[truth.corrupted] / 20, "norm").pvalue > LEVEL


@pytest.mark.parametrize("seed", range(3))
def test_gross_errors_are_large_by_default(seed):
    _, y, truth = make_mlrc(4000, 2, corruption=0.5, intercepts=[-3, 3], random_state=seed)
    clean = y - truth.corruption
    errors = truth.corruption[truth.corrupted]
    assert stats.kstest(errors / (10 * clean.std()), "norm").pvalue > LEVEL


@pytest.mark.parametrize("seed", range(3))
def test_same_scale_responses_hide_among_the_others(seed):
    _, y, truth = make_mlrc(
        4000, 3, corruption=0.5, corruption_kind="same-scale", intercepts=50.0, random_state=seed
    )
    clean = y - truth.corruption
    redrawn = (y[truth.corrupted] - clean.mean()) / clean.std()
    assert stats.kstest(redrawn, "norm").pvalue > LEVEL
    # Redrawn means unrelated to the response that was there.
    correlation = stats.pearsonr(redrawn, clean[truth.corrupted])
    assert correlation.pvalue > LEVEL


@few
@given(
    seed=seeds,
    d=st.integers(1, 8),
    m=st.integers(1, 5),
    norms=st.sampled_from([None, 0.0, 2.0]),
    rows=st.sampled_from(["random", "leverage"]),
)
def test_adversarial_rows_agree_on_one_model_far_from_all(seed, d, m, norms, rows):
    X, y, truth = make_mlrc(
        200,
        d,
        m,
        norms=norms,
        intercepts=np.arange(m),
        corruption=0.2,
        corruption_kind="adversarial",
        corrupted_rows=rows,
        random_state=seed,
    )
    bad = truth.corrupted
    fitted = X[bad] @ truth.wrong_coef + truth.wrong_intercept
    np.testing.assert_allclose(y[bad], fitted, atol=1e-10)
    assert truth.wrong_intercept == pytest.approx((m - 1) / 2)
    largest = np.linalg.norm(truth.coef, axis=1).max() or 1.0
    away = np.linalg.norm(truth.wrong_coef - truth.coef, axis=1).min()
    assert away >= largest * (1 - 1e-9)
    assert np.linalg.norm(truth.wrong_coef) <= 2 * largest * (1 + 1e-9)


def test_adversarial_rows_carry_noise_like_any_component():
    X, y, truth = make_mlrc(
        3000, 4, corruption=0.4, corruption_kind="adversarial", noise=0.1, random_state=0
    )
    left = (y - X @ truth.wrong_coef)[truth.corrupted]
    assert stats.kstest(left / 0.1, "norm").pvalue > LEVEL


@pytest.mark.parametrize("kind", ["gross", "same-scale"])
def test_only_adversarial_corruption_has_a_wrong_model(kind):
    truth = make_mlrc(50, corruption=0.2, corruption_kind=kind, random_state=0).truth
    assert truth.wrong_coef is None
    assert truth.wrong_intercept is None


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_per_component(seed):
    X, y, truth = make_mlrc(4000, 3, 2, noise=[0.1, 2.0], corruption=0.1, random_state=seed)
    left = residuals(X, y, truth) - truth.corruption
    for j, scale in enumerate([0.1, 2.0]):
        assert stats.kstest(left[truth.component == j] / scale, "norm").pvalue > LEVEL
    np.testing.assert_array_equal(truth.noise, [0.1, 2.0])


# --- components --------------------------------------------------------------------------------


def separation_twin(coef):
    """Definition 1, written out."""
    norms = [np.sqrt(sum(v * v for v in row)) for row in coef]
    gaps = {
        frozenset(pair): np.linalg.norm(coef[pair[0]] - coef[pair[1]])
        for pair in combinations(range(len(coef)), 2)
    }
    q = min(gaps.values()) / max(norms)
    q_local = [
        min(gap for pair, gap in gaps.items() if j in pair) / norms[j] for j in range(len(coef))
    ]
    return q, q_local


@few
@given(seed=seeds, m=st.integers(2, 6), d=st.integers(1, 5))
def test_separation_is_definition_1(seed, m, d):
    truth = make_mlrc(50, d, m, random_state=seed).truth
    q, q_local = separation_twin(truth.coef)
    assert truth.separation == pytest.approx(q)
    np.testing.assert_allclose(truth.local_separation, q_local)
    assert np.all(truth.separation <= truth.local_separation * (1 + 1e-12))


def test_separation_at_its_edges():
    assert separation_of(np.ones((1, 3))) == np.inf
    np.testing.assert_array_equal(local_separation_of(np.ones((1, 3))), [np.inf])
    same = np.ones((2, 3))
    assert separation_of(same) == 0
    np.testing.assert_array_equal(local_separation_of(same), [0, 0])
    assert separation_of(np.zeros((2, 3))) == 0
    np.testing.assert_array_equal(local_separation_of(np.zeros((2, 3))), [0, 0])
    with_zero = np.array([[0.0], [2.0]])
    assert separation_of(with_zero) == 1
    np.testing.assert_array_equal(local_separation_of(with_zero), [np.inf, 1])


# The widest arrangement of equal norms that is known, by (m, d): simplices, the square, the
# pentagon, the octahedron and the icosahedron.
WIDEST = {
    (2, 2): 2.0,
    (2, 9): 2.0,
    (3, 2): np.sqrt(3),
    (4, 3): np.sqrt(8 / 3),
    (8, 50): np.sqrt(16 / 7),
    (4, 2): np.sqrt(2),
    (5, 2): 2 * np.sin(np.pi / 5),
    (6, 3): np.sqrt(2),
    (12, 3): 1.0514622,
}


@settings(max_examples=60, deadline=None)
@given(seed=seeds, shape=st.sampled_from(sorted(WIDEST)), part=st.floats(1e-3, 0.99))
def test_separation_is_met_with_unit_norms(seed, shape, part):
    m, d = shape
    wanted = part * WIDEST[shape]
    truth = make_mlrc(50, d, m, separation=wanted, random_state=seed).truth
    assert truth.separation == pytest.approx(wanted, rel=1e-9)
    np.testing.assert_allclose(np.linalg.norm(truth.coef, axis=1), 1)


@few
@given(seed=seeds, shape=st.sampled_from([(2, 2), (3, 2), (4, 3), (8, 50)]))
def test_a_simplex_can_be_asked_for(seed, shape):
    m, d = shape
    truth = make_mlrc(50, d, m, separation=WIDEST[shape], random_state=seed).truth
    assert truth.separation == pytest.approx(WIDEST[shape])


@few
@given(
    seed=seeds,
    d=st.integers(2, 6),
    norms=st.lists(st.just(0.0) | st.floats(0.01, 5), min_size=2, max_size=4),
    part=st.floats(0, 0.99),
)
def test_norms_and_separation_together(seed, d, norms, part):
    assume(max(norms) > 0)
    norms = np.array(norms)
    # Possible is at least what lies between all on one ray and some random directions.
    narrow = np.diff(np.sort(norms)).min() / norms.max()
    wide = make_mlrc(20, d, len(norms), norms=norms, random_state=seed).truth.separation
    wanted = narrow + part * (wide - narrow)
    assume(wanted > 1e-6)
    truth = make_mlrc(
        20, d, len(norms), norms=norms, separation=wanted, random_state=seed + 1
    ).truth
    assert truth.separation == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(np.linalg.norm(truth.coef, axis=1), norms, atol=1e-12)


def test_unequal_norms_reach_their_widest_arrangement():
    # Norms 1, 2, 3: the first two can lie 3 apart, as far as the largest norm, not further.
    for seed in range(5):
        truth = make_mlrc(50, 3, 3, norms=[1, 2, 3], separation=0.999, random_state=seed).truth
        assert truth.separation == pytest.approx(0.999)


@few
@given(seed=seeds, m=st.integers(2, 6), part=st.floats(0.01, 1))
def test_separation_on_a_line(seed, m, part):
    wanted = part * 2 / (m - 1)
    truth = make_mlrc(50, 1, m, separation=wanted, random_state=seed).truth
    assert truth.separation == pytest.approx(wanted, rel=1e-9)
    assert np.abs(truth.coef).max() == pytest.approx(1)


@few
@given(seed=seeds, norms=st.lists(st.just(0.0) | st.floats(1e-3, 1e3), min_size=1, max_size=5))
def test_norms_are_met(seed, norms):
    coef = make_mlrc(50, 3, len(norms), norms=norms, random_state=seed).truth.coef
    np.testing.assert_allclose(np.linalg.norm(coef, axis=1), norms, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_components_are_standard_normal_by_default(seed):
    coef = make_mlrc(50, 100, 10, random_state=seed).truth.coef
    assert stats.kstest(coef.ravel(), "norm").pvalue > LEVEL


def test_given_components_are_taken_and_copied():
    coef = np.array([[1.0, 2.0], [3.0, 4.0]])
    truth = make_mlrc(50, 2, 2, coef=coef, random_state=0).truth
    np.testing.assert_array_equal(truth.coef, coef)
    coef[:] = 0
    assert truth.coef.all()


# --- features ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("features", ["gaussian", "student", "lognormal"])
def test_independent_features_have_their_distribution(features, seed):
    X = make_mlrc(3000, 4, features=features, degrees_of_freedom=4, random_state=seed).X
    law = {
        "gaussian": stats.norm(),
        "student": stats.t(4, scale=np.sqrt(0.5)),
        "lognormal": stats.lognorm(1, loc=-1 / np.sqrt(np.e - 1), scale=1 / stats.lognorm(1).std()),
    }[features]
    assert law.mean() == pytest.approx(0)
    assert law.var() == pytest.approx(1)
    assert stats.kstest(X.ravel(), law.cdf).pvalue > LEVEL


@pytest.mark.parametrize("seed", range(3))
def test_elliptical_rows_are_multivariate_t(seed):
    d, df = 6, 5
    X = make_mlrc(3000, d, features="student-elliptical", random_state=seed).X
    lengths = np.sum(X**2, axis=1) / d * df / (df - 2)
    assert stats.kstest(lengths, stats.f(d, df).cdf).pvalue > LEVEL
    assert stats.kstest(X[:, 0], stats.t(df, scale=np.sqrt(1 - 2 / df)).cdf).pvalue > LEVEL


@pytest.mark.parametrize("d", [1, 4, 5])
def test_half_of_the_columns_are_binary(d):
    X = make_mlrc(3000, d, features="half-binary", random_state=0).X
    binary, rest = X[:, : d // 2], X[:, d // 2 :]
    assert np.isin(binary, [0, 1]).all()
    assert np.all(np.abs(binary.mean(axis=0) - 0.5) < 0.06)  # six standard deviations
    assert stats.kstest(rest.ravel(), "norm").pvalue > LEVEL


@few
@given(seed=seeds, d=st.integers(1, 6), m=st.integers(1, 3), bound=st.floats(1.01, 100))
def test_covariances_lie_between_their_bounds(seed, d, m, bound):
    covariances = make_mlrc(20, d, m, covariance_bound=bound, random_state=seed).truth.covariances
    assert covariances.shape == (m, d, d)
    values = np.linalg.eigvalsh(covariances)
    assert np.all(values >= 1 - 1e-9 * bound)
    assert np.all(values <= bound * (1 + 1e-9))
    if d > 1:
        np.testing.assert_allclose(values[:, 0], 1, atol=1e-9 * bound)
        np.testing.assert_allclose(values[:, -1], bound)
    if m > 1:
        assert not np.allclose(covariances[0], covariances[1])


@pytest.mark.parametrize("seed", range(3))
def test_each_component_has_its_own_covariance(seed):
    X, _, truth = make_mlrc(4000, 5, 2, covariance_bound=10, random_state=seed)
    for j, covariance in enumerate(truth.covariances):
        values, vectors = np.linalg.eigh(covariance)
        white = X[truth.component == j] @ vectors / np.sqrt(values)
        for column in white.T:
            assert stats.kstest(column, "norm").pvalue > LEVEL


def test_isotropic_features_have_no_covariances():
    assert make_mlrc(20, random_state=0).truth.covariances is None


# --- randomness --------------------------------------------------------------------------------


@few
@given(seed=seeds)
def test_the_same_seed_gives_the_same_data(seed):
    options = {
        "corruption": 0.1,
        "corruption_kind": "adversarial",
        "noise": 0.1,
        "separation": 1.0,
        "covariance_bound": 3,
    }
    first = make_mlrc(60, 4, 3, random_state=seed, **options)
    again = make_mlrc(60, 4, 3, random_state=np.int64(seed), **options)
    from_generator = make_mlrc(60, 4, 3, random_state=np.random.default_rng(seed), **options)
    for one, two, three in zip(arrays(first), arrays(again), arrays(from_generator), strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)


def test_a_generator_moves_on_and_none_is_fresh():
    generator = np.random.default_rng(0)
    draws = [make_mlrc(random_state=generator).X for _ in range(2)]
    draws += [make_mlrc().X for _ in range(2)]
    for one, two in combinations(draws, 2):
        assert not np.allclose(one, two)


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - it is looked at, not drawn from
    make_mlrc(corruption=0.1, noise=0.1)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002 - it is looked at, not drawn from


@pytest.mark.parametrize(
    "change",
    [{"noise": 1.0}, {"corruption": 0.3}, {"corruption_kind": "same-scale", "corruption": 0.1}],
)
def test_parts_of_the_data_do_not_disturb_each_other(change):
    plain = make_mlrc(200, 3, random_state=5)
    changed = make_mlrc(200, 3, random_state=5, **change)
    np.testing.assert_array_equal(plain.X, changed.X)
    np.testing.assert_array_equal(plain.truth.coef, changed.truth.coef)
    np.testing.assert_array_equal(plain.truth.component, changed.truth.component)


def test_more_corruption_keeps_the_rows_already_corrupted():
    little, much = (make_mlrc(200, corruption=c, random_state=5).truth for c in (0.1, 0.3))
    assert np.all(much.corrupted[little.corrupted])
    np.testing.assert_array_equal(
        little.corruption[little.corrupted], much.corruption[little.corrupted]
    )


def test_data_unpack_and_stay():
    data = make_mlrc(20, 3, random_state=0)
    X, y, truth = data
    assert X is data.X
    assert y is data.y
    assert truth is data.truth
    with pytest.raises(AttributeError):
        data.X = X


# --- refusals ----------------------------------------------------------------------------------

REFUSED = [
    ({"n_samples": 0}, "n_samples must be a whole number from 1; got 0"),
    ({"n_features": 2.5}, "n_features must be a whole number from 1; got 2.5"),
    ({"n_components": True}, "n_components must be a whole number from 1; got True"),
    ({"weights": [1, 2, 3]}, r"weights has shape \(3,\), but there are 2 components"),
    ({"weights": [1, -1]}, "weights must be finite and at least 0"),
    ({"weights": [1, 0]}, "each needs at least one. Raise n_samples"),
    ({"weights": [0, 0]}, "each needs at least one"),
    ({"weights": [1, 1e-9]}, r"gives the components \[1000, 0\] rows"),
    ({"n_samples": 3, "n_components": 4}, "each needs at least one"),
    ({"corruption": 1.0}, "corruption must be a share of all rows from 0 to below 1; got 1.0"),
    ({"corruption": -0.1}, "corruption must be a share"),
    ({"corruption": "half"}, "corruption must be a share"),
    ({"corruption": np.nan}, "corruption must be a share"),
    ({"corruption": 0.999}, "at most 998 can be corrupted"),
    ({"corruption_ratio": 1e6}, "would leave a component without a clean row"),
    ({"corruption_ratio": -1}, "corruption_ratio must be 0 or more"),
    ({"corruption": 0.1, "corruption_ratio": 0.1}, "both say how many rows are corrupted"),
    ({"corruption_kind": "rude"}, "corruption_kind must be one of 'gross', 'same-scale'"),
    ({"corrupted_rows": "all"}, "corrupted_rows must be one of 'random', 'leverage'"),
    ({"corruption_scale": 0}, "corruption_scale must be positive"),
    ({"corruption_scale": 1, "corruption_kind": "adversarial"}, "is of no use"),
    ({"noise": -1}, "noise must be finite and at least 0"),
    ({"noise": [1, 2, 3]}, "Give one number for all of them, or 2 numbers"),
    ({"noise": "loud"}, "which is not made of numbers"),
    ({"norms": [1, np.inf]}, "norms must be finite"),
    ({"intercepts": [[1, 2]]}, "intercepts has shape"),
    ({"separation": 0}, "separation must be above 0 and at most 2"),
    ({"separation": 2.1}, "separation must be above 0 and at most 2"),
    ({"separation": 1, "n_components": 1}, "nothing to be separated from"),
    ({"separation": 1.8, "n_components": 4}, "the widest arrangement found has Q = 1.63299"),
    ({"separation": 1.2, "n_components": 5, "n_features": 2}, "widest arrangement found has Q"),
    ({"separation": 0.1, "norms": [1, 2]}, "even on one ray they lie 0.5 of the largest"),
    ({"separation": 1, "norms": 0}, "all have norm 0"),
    ({"separation": 0.8, "n_components": 4, "n_features": 1}, "at most Q = 0.666667"),
    ({"separation": 1, "norms": 1, "n_features": 1}, "fix the components up to sign"),
    ({"coef": np.ones((2, 5)), "norms": 1}, "it already decides both"),
    ({"coef": np.ones((2, 5)), "separation": 1}, "it already decides both"),
    ({"coef": np.ones((3, 5))}, r"n_components=2 and n_features=5 ask for \(2, 5\)"),
    ({"coef": np.full((2, 5), np.nan)}, "coef must be finite"),
    ({"coef": "ones"}, "which is not made of numbers"),
    ({"covariance_bound": 0.5}, "covariance_bound must be 1 or more"),
    ({"covariance_bound": 2, "features": "half-binary"}, "would rotate the columns"),
    ({"features": "cauchy"}, "features must be one of 'gaussian'"),
    ({"features": "student", "degrees_of_freedom": 2}, "need more than 2"),
    ({"degrees_of_freedom": "many"}, "degrees_of_freedom must be above 2"),
    ({"random_state": -1}, "random_state must be None, a non-negative integer or"),
    ({"random_state": "luck"}, "random_state must be None"),
    ({"random_state": True}, "random_state must be None"),
    ({"norms": 0, "corruption": 0.1}, "gives no scale for corrupted ones"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[str(list(o)) for o, _ in REFUSED])
def test_refusals_say_what_is_wrong(options, message):
    with pytest.raises(ParameterError, match=message):
        make_mlrc(**({"random_state": 0} | options))


def test_pure_noise_and_constant_responses_are_possible():
    _, y, truth = make_mlrc(2000, 3, 1, norms=0, noise=1, random_state=0)
    assert truth.separation == np.inf
    assert stats.kstest(y, "norm").pvalue > LEVEL
    _, y, truth = make_mlrc(50, 3, 1, norms=0, corruption=0.1, corruption_scale=1, random_state=0)
    assert np.all((y != 0) == truth.corrupted)
