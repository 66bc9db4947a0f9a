"""What would have been found: far regimes of many rows are, near ones of few rows are not."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.errors import ParameterError
from regimix.theory import Detectable, detectable


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 1))
    y = X[:, 0] + 0.3 * rng.standard_normal(80)
    return MixedLinearRegression(random_state=0).fit(X, y).mixture_, X


def test_more_rows_show_nearer_regimes(fitted):
    mixture, X = fitted
    seen = []
    found = detectable(
        mixture, X, shares=(0.05, 0.4), n_trials=3, random_state=0,
        progress=lambda *at: seen.append(at),
    )  # fmt: skip
    assert seen == [(1, 2), (2, 2)]
    few, many = found.distances
    # The noise is a third of the spread of y: nobody finds a regime within a tenth of it.
    assert 0.1 < many <= 1.6
    assert np.isnan(few) or few > many
    assert found.rates[1, 0] == 1.0
    assert "40.0%" in str(found)


def test_a_regime_that_came_back_as_one_with_the_largest_is_not_found(fitted, monkeypatch):
    # Most rows are planted so near to the largest regime that both are found as one.
    monkeypatch.setattr(sys.modules["regimix.theory.detectable"], "DISTANCES", (0.05,))
    mixture, X = fitted
    found = detectable(mixture, X, shares=(0.8,), n_trials=3, random_state=0, n_jobs=1)
    assert found.rates.tolist() == [[0.0]]


def test_the_answer_does_not_depend_on_the_processes(fitted):
    mixture, X = fitted
    one, two = (
        detectable(mixture, X, shares=(0.4,), n_trials=2, random_state=3, n_jobs=jobs)
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.rates, two.rates)


def test_a_limit_for_many_normal_features_and_for_no_others(fitted):
    mixture, _ = fitted
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12))
    y = X @ rng.standard_normal(12) + 0.1 * rng.standard_normal(300)
    model = MixedLinearRegression(n_components=1, outliers=0.1, random_state=0).fit(X, y).mixture_
    smallest = sys.modules["regimix.theory.detectable"]._smallest_share
    limit = smallest(model, X, 0)
    # 13 coefficients among 300 rows: more than as many rows as coefficients, and not many more.
    assert 13 / 300 <= limit < 30 / 300
    table = replace(detectable_of(limit), smallest_share=limit)
    assert "message passing finds no further regime" in str(table)
    assert "message passing" not in str(detectable_of(limit))
    assert np.isnan(smallest(model, np.exp(2 * X), 0))  # tails far from normal
    assert np.isnan(smallest(model, X[:, [0] * 12], 0))  # columns that repeat
    assert np.isnan(smallest(mixture, X[:, :1], 0))  # few features


def detectable_of(share):
    one = np.array([[1.0]])
    return Detectable(np.array([share]), np.array([0.8]), one, np.array([0.8]), 2)


@pytest.mark.parametrize("shares", [(), (0.0,), (1.0,), 0.5])
def test_shares_are_checked(fitted, shares):
    with pytest.raises(ParameterError, match="shares must be numbers between 0 and 1"):
        detectable(*fitted, shares=shares)
