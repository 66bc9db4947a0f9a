"""Plain fits of K regimes: search="partition" and a given number of components."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.kregime import alternating_minimisation, diabetes, nearest_residual, simulated
from regimix.datasets import load_penguins
from regimix.errors import EvidenceWarning
from regimix.estimators.mixture import MixedLinearRegression
from tests.oracles import design, least_squares, repeat_rows

seeds = st.integers(0, 2**32 - 1)
# Regimes are asked for whether or not the rows support them.
pytestmark = [
    pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning"),
    pytest.mark.filterwarnings("ignore::regimix.errors.RankWarning"),
    pytest.mark.filterwarnings("ignore::regimix.errors.UnrepeatedWarning"),
]


def plain(X, y, count=2, seed=0, **options):
    model = MixedLinearRegression(n_components=count, search="partition", random_state=seed)
    return model.fit(X, y, **options)


def best_of_all_partitions(X, y, count):
    """Fit every labelling of the rows by least squares; the smallest sum of squares wins."""
    A, best = design(X, True), np.inf
    for labels in product(range(count), repeat=len(y) - 1):
        rows = np.array([0, *labels])
        total = 0.0
        for j in range(count):
            mine = rows == j
            if mine.any():
                total += np.sum((y[mine] - A[mine] @ least_squares(A[mine], y[mine])) ** 2)
        best = min(best, total)
    return np.sqrt(best / len(y))


@settings(max_examples=6)
@given(seeds)
def test_few_rows_are_fitted_as_well_as_can_be(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((9, 1)), rng.standard_normal(9)
    fit = plain(X, y, seed=seed % 100)
    smallest = best_of_all_partitions(X, y, 2)
    assert nearest_residual(y, fit.predict_components(X)) <= smallest * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize(
    "make",
    [
        diabetes,
        lambda: (load_penguins().X, load_penguins().y),
        lambda: simulated("0/1", 0),
        lambda: simulated("skewed", 1, noise=1.0),
        lambda: simulated("0/1 and skewed", 2),
    ],
    ids=["diabetes", "penguins", "0/1", "skewed", "both"],
)
def test_alternating_minimisation_does_no_better(make):
    X, y = make()
    peer = alternating_minimisation(X, y, np.random.default_rng(0))
    assert nearest_residual(y, plain(X, y).predict_components(X)) <= peer * (1 + 1e-9)


def test_every_row_belongs_to_its_nearest_regime():
    X, y = simulated("0/1 and skewed", 3)
    fit = plain(X, y, 3)
    distance = np.abs(y[:, None] - fit.predict_components(X))
    np.testing.assert_array_equal(fit.labels_, distance.argmin(axis=1))
    assert fit.outlier_share_ == 0
    np.testing.assert_allclose(fit.weights_, np.bincount(fit.labels_) / len(y))
    assert fit.mixture_.origin == ("nearest",) * 3
    for j in range(3):
        mine = fit.labels_ == j
        coef = least_squares(design(X[mine], True), y[mine])
        np.testing.assert_allclose(coef, [fit.intercept_[j], *fit.coef_[j]], atol=1e-6)
        left = np.sum(distance[mine, j] ** 2) / (mine.sum() - 7)
        assert fit.scale_[j] == pytest.approx(np.sqrt(left))


def test_one_regime_is_least_squares():
    X, y = simulated("skewed", 4)
    fit = plain(X, y, 1)
    coef = least_squares(design(X, True), y)
    np.testing.assert_allclose([fit.intercept_[0], *fit.coef_[0]], coef, atol=1e-9)


def test_weights_are_repetitions_and_large_tables_are_sampled():
    X, y = simulated("skewed", 5, n=2200, d=2)
    weights = np.random.default_rng(0).integers(0, 3, 2200)
    weighted, repeated = plain(X, y, sample_weight=weights), plain(*repeat_rows(X, y, weights))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_)


def test_wide_tables_follow_the_search_alone():
    """Starts would cost more than the search; its answer is still brought downhill."""
    rng = np.random.default_rng(6)
    X, z = rng.standard_normal((900, 120)), rng.integers(2, size=900)
    slopes = rng.standard_normal((2, 120))
    y = np.einsum("ij,ij->i", X, slopes[z]) + 0.1 * rng.standard_normal(900)
    fit = plain(X, y)
    assert nearest_residual(y, fit.predict_components(X)) < 0.1


def test_regimes_that_the_rows_do_not_support_are_still_returned():
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((100, 2)), rng.standard_normal(100)
    with pytest.warns(EvidenceWarning, match="of the 4 regimes asked for.* There may be outliers"):
        fit = plain(X, y, 4)
    assert fit.n_components_ == 4
    assert (fit.labels_ >= 0).all()


def test_more_regimes_than_rows_need_leave_nothing():
    X, y = np.arange(6.0)[:, None], np.array([0.0, 5.0, 1.0, 7.0, 2.0, 9.0])
    fit = plain(X, y, 3)
    assert nearest_residual(y, fit.predict_components(X)) < 1e-6
    assert np.isfinite(fit.coef_).all()
