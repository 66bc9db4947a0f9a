"""One cell that is off by any factor is an outlier like others: the rest of the fit stays."""

import numpy as np
import pytest

from regimix import MixedLinearRegression, TrimmedRegressor
from regimix.data.problem import Problem
from regimix.model.em import _choose_law
from regimix.model.laws import Background
from tests.model.mixtures import mixed_rows

ROW = 7
SIZES = [1e6, 1e12, 1e28]


def two_regimes(kind: str):
    """Make two regimes of three columns; the first may be a rare 0/1 column."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 3))
    if kind == "rare":
        X[:, 0] = rng.random(300) < 0.2
    coef = np.array([[2.0, -1.0, 3.0], [-3.0, 2.0, 1.0]])
    noise = 0.0 if kind == "exact" else 0.1
    regime = rng.integers(0, 2, 300)
    y = (X * coef[regime]).sum(axis=1) + noise * rng.normal(size=300)
    return X, y, coef


@pytest.mark.parametrize("kind", ["normal", "rare", "exact"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("where", ["X", "y"])
def test_one_far_cell_leaves_the_regimes_alone(kind, size, where, request):
    if size < max(SIZES):  # the farthest meets all that a search does
        request.getfixturevalue("searched_once")
    X, y, coef = two_regimes(kind)
    if where == "X":
        X[ROW, 0] = size
    else:
        y[ROW] = size
    model = MixedLinearRegression(random_state=0).fit(X, y)  # warnings are errors
    gaps = np.abs(model.coef_[:, None] - coef).max(axis=2)
    assert model.coef_.shape == coef.shape
    assert gaps.min(axis=0).max() < 0.1
    assert model.labels_[ROW] == -1


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("where", ["X", "y"])
def test_one_far_cell_leaves_the_line_alone(size, where):
    X, _, coef = two_regimes("rare")
    y = X @ coef[0] + 0.1 * np.random.default_rng(1).normal(size=300)
    if where == "X":
        X[ROW, 0] = size
    else:
        y[ROW] = size
    model = TrimmedRegressor(random_state=0).fit(X, y)
    assert np.abs(model.coef_ - coef[0]).max() < 0.1
    assert not model.inlier_mask_[ROW]


def test_the_unit_of_a_rare_column_is_that_of_its_bulk():
    X = np.zeros((100, 1))
    X[:10] = 1.0
    y = np.arange(100.0)
    before = Problem.from_arrays(X, y).scale[0]
    X[50] = 1e12
    assert Problem.from_arrays(X, y).scale[0] / before in (1.0, 2.0, 4.0)


def test_outliers_that_no_row_belongs_to_have_the_plain_law():
    rows, _ = mixed_rows(0, n=20_000)
    # Together more than one row, each less than what enters a sum.
    assert _choose_law(rows, np.full(rows.n, 9e-5))[0] == Background.PLAIN
