"""The subspace of the components: who finds it under what, and what the spectrum says."""

import numpy as np
import pytest

from regimix.data.problem import Problem
from regimix.engines.memory import MemoryEngine
from regimix.errors import ParameterError
from regimix.model.rows import whiten
from regimix.search.subspace import find_subspace, shapeless
from regimix.synth import make_mlrc

SEEDS = range(4)  # means over a few tables: any four seeds do


def whitened(seed, n, d, m, *, fit_intercept=False, **options):
    """Whitened rows, y, and the directions of the true components there."""
    X, y, truth = make_mlrc(n, d, m, norms=1.0, random_state=seed, **options)
    problem = Problem.from_arrays(X, y, fit_intercept=fit_intercept)
    sample = MemoryEngine(problem).sample(n, seed)
    map_ = whiten(sample, intercept=fit_intercept)
    slopes = problem.from_user(truth.coef, truth.intercept)[:, int(fit_intercept) :]
    true = slopes @ np.linalg.pinv(map_.transform).T
    return map_.apply(sample.Z), sample.y, true / np.linalg.norm(true, axis=1, keepdims=True)


def distance(kind, n, d, m, seeds=SEEDS, **options):
    """Mean distance of a true component from the subspace."""
    total = []
    for seed in seeds:
        W, y, true = whitened(seed, n, d, m, **options)
        basis = find_subspace(W, y, None, m, kind, permutations=0).basis
        total.append(np.linalg.norm(true - true @ basis @ basis.T, axis=1).mean())
    return float(np.mean(total))


def test_all_kinds_find_it_in_clean_data():
    for kind in ("bounded", "svd", "filter"):
        assert distance(kind, 3000, 20, 3) < 0.4  # a random subspace: 0.92


def test_corruption_breaks_svd_not_the_others():
    corrupted = {"corruption_ratio": 0.2}
    svd, filtered, bounded = (
        distance(kind, 3000, 20, 3, **corrupted) for kind in ("svd", "filter", "bounded")
    )
    assert svd > 0.75
    assert filtered < svd - 0.1
    assert bounded < 0.35


def test_many_components_in_many_dimensions():
    corrupted = {"corruption_ratio": 0.2, "seeds": range(1)}
    svd, bounded = (distance(kind, 16_000, 60, 6, **corrupted) for kind in ("svd", "bounded"))
    assert svd > 0.75
    assert bounded < 0.5


@pytest.mark.parametrize(
    "hardship",
    [
        {"intercepts": 5.0, "fit_intercept": True},
        {"intercepts": [-2.0, 0.0, 2.0], "fit_intercept": True},
        {"features": "student-elliptical"},
        {"features": "student"},
        {"features": "half-binary", "fit_intercept": True},
    ],
    ids=["common intercept", "own intercepts", "elliptical", "student", "binary"],
)
def test_intercepts_and_tails_do_not_break_bounded(hardship):
    assert distance("bounded", 3000, 20, 3, **hardship) < 0.35


def test_equal_lengths_leave_no_trace_in_the_other_directions():
    # Without taking away what all other directions have in common: 0.2 to 0.4.
    assert distance("bounded", 3000, 10, 3, features="student-elliptical") < 0.17


def test_svd_is_the_left_singular_space():
    W, y, _ = whitened(0, 400, 6, 2)
    found = find_subspace(W, y, None, 2, "svd", permutations=0)
    left, values, _ = np.linalg.svd((W * y[:, None]).T, full_matrices=False)
    np.testing.assert_allclose(found.basis @ found.basis.T, left[:, :2] @ left[:, :2].T, atol=1e-9)
    np.testing.assert_allclose(found.spectrum, values**2 / len(y))


@pytest.mark.parametrize("kind", ["bounded", "svd", "filter"])
def test_the_basis_is_orthonormal_and_turns_with_the_rows(kind):
    W, y, _ = whitened(1, 800, 6, 2)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    here = find_subspace(W, y, None, 2, kind, permutations=0).basis
    there = find_subspace(W @ turn, y, None, 2, kind, permutations=0).basis
    np.testing.assert_allclose(here.T @ here, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(turn.T @ here @ here.T @ turn, there @ there.T, atol=1e-7)


@pytest.mark.parametrize("kind", ["bounded", "svd"])
def test_weights_are_copies(kind):
    W, y, _ = whitened(2, 300, 5, 2)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    short = find_subspace(W, y, times.astype(float), 2, kind, permutations=0)
    long = find_subspace(
        np.repeat(W, times, axis=0), np.repeat(y, times), None, 2, kind, permutations=0
    )
    np.testing.assert_allclose(short.spectrum, long.spectrum, rtol=1e-9)
    np.testing.assert_allclose(short.basis @ short.basis.T, long.basis @ long.basis.T, atol=1e-8)


def test_permuted_responses_count_what_is_certain():
    counts = []
    for seed in range(6):
        W, y, _ = whitened(seed, 4000, 20, 3)
        rng = np.random.default_rng(seed)
        counts.append(find_subspace(W, y, None, 3, rng=rng).certain)
        noise = find_subspace(W, rng.permutation(y), None, 3, rng=rng)
        assert noise.certain <= 2  # one of five exchangeable maxima is the largest now and then
    assert 2 <= np.mean(counts) <= 3.5


@pytest.mark.parametrize("kind", ["bounded", "svd", "filter"])
def test_the_diagnostic_tells_a_gap_from_none(kind):
    W, y, _ = whitened(0, 6000, 10, 1)
    rng = np.random.default_rng(0)
    clear = find_subspace(W, y, None, 1, kind, rng)
    assert clear.has_gap
    assert ": a gap" in clear.describe()
    assert "above noise" in clear.describe()
    none = find_subspace(W, y, None, 5, kind, rng)
    assert not none.has_gap
    assert "no clear gap" in none.describe()
    whole = find_subspace(W, y, None, 99, kind, rng)
    assert whole.basis.shape == (10, 10)
    assert whole.gap == float("inf")
    assert "nothing to project" in whole.describe()


@pytest.mark.parametrize("kind", ["bounded", "svd", "filter"])
def test_a_constant_response_and_no_columns_are_survived(kind):
    W = np.random.default_rng(0).standard_normal((50, 3))
    for y in (np.zeros(50), np.full(50, 3.0), (np.arange(50) == 7).astype(float)):
        basis = find_subspace(W, y, None, 2, kind, np.random.default_rng(0)).basis
        np.testing.assert_allclose(basis.T @ basis, np.eye(2), atol=1e-12)
    empty = find_subspace(W[:, :0], y, None, 2, kind, np.random.default_rng(0))
    assert empty.basis.shape == (0, 0)
    assert "0 of 0" in empty.describe()


def test_wrong_settings_are_refused():
    W, y = np.ones((4, 1)), np.ones(4)
    with pytest.raises(ParameterError, match="'bounded', 'svd', 'filter'; got 'pca'"):
        find_subspace(W, y, None, 1, "pca", permutations=0)
    with pytest.raises(ParameterError, match="at least one direction"):
        find_subspace(W, y, None, 0, permutations=0)
    with pytest.raises(ParameterError, match="rng"):
        find_subspace(W, y, None, 1)


@pytest.mark.parametrize("features", ["gaussian", "long rows"])
def test_single_precision_finds_the_same_directions(features):
    W, y, _ = whitened(0, 3000, 15, 3)
    if features == "long rows":  # these are brought to equal length
        W = W * np.random.default_rng(0).lognormal(size=(len(W), 1))
    found = [
        find_subspace(W, y, None, 3, rng=np.random.default_rng(0), single=single)
        for single in (False, True)
    ]
    np.testing.assert_allclose(found[1].spectrum, found[0].spectrum, rtol=1e-4, atol=1e-7)
    assert found[1].certain == found[0].certain
    assert np.linalg.svd(found[0].basis.T @ found[1].basis)[1].min() > 1 - 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_shapeless_is_what_shows_no_direction(seed):
    W, y, _ = whitened(seed, 3000, 15, 2)
    rng = np.random.default_rng(seed)
    ones = np.ones(len(y))
    assert not shapeless(W, y, ones, 3, "bounded", rng)
    answers = [shapeless(W, rng.permutation(y), ones, 3, "bounded", rng) for _ in range(12)]
    # One in thirteen is above twelve others by chance.
    assert sum(answers) >= 9
