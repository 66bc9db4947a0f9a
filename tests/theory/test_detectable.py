"""What would have been found: far regimes of many rows are, near ones of few rows are not."""

import sys

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.errors import ParameterError
from regimix.theory import detectable


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


@pytest.mark.parametrize("shares", [(), (0.0,), (1.0,), 0.5])
def test_shares_are_checked(fitted, shares):
    with pytest.raises(ParameterError, match="shares must be numbers between 0 and 1"):
        detectable(*fitted, shares=shares)
