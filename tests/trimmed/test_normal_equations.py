"""Normal equations that follow the rows: after any number of moves, a solve from scratch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix.engines.base import RowSums
from regimix.trimmed.ilts import NormalEquations
from tests.oracles import least_squares, random_rotation

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=60, deadline=None)


def sums_of(Z, residuals, weights):
    weighted = Z * weights[:, None]
    return RowSums(weighted.T @ Z, residuals @ weighted)


class Rounds:
    """Rows that enter and leave at random, and equations told of every move."""

    def __init__(self, rng, Z, y, count):
        self.rng, self.Z, self.y = rng, Z, y
        self.kept = np.zeros(len(y), dtype=bool)
        self.theta = np.zeros(Z.shape[1])
        self.normal = NormalEquations(Z.shape[1])
        self.fresh_sums = 0
        self.move(rng.permutation(len(y))[:count])

    def move(self, rows):
        """Let rows change sides, then go to the new least squares solution."""
        residuals = self.y[rows] - self.Z[rows] @ self.theta
        signs = np.where(self.kept[rows], -1.0, 1.0)
        self.kept[rows] = ~self.kept[rows]
        square = float(signs @ residuals**2)
        self.normal.add(sums_of(self.Z[rows], residuals, signs), square, len(rows))
        if self.normal.stale(float(self.kept.sum())):
            self.normal.refresh(self.afresh())
        solution, rank = self.normal.solve(self.theta, self.afresh)
        self.normal.shift(solution - self.theta)
        self.theta = solution
        return rank

    def afresh(self):
        """Sum over all kept rows, as an engine does when asked."""
        self.fresh_sums += 1
        Z, y = self.Z[self.kept], self.y[self.kept]
        return sums_of(Z, y - Z @ self.theta, np.ones(len(y)))

    def swap(self, count):
        """A few kept rows leave, as many others enter."""
        inside, outside = np.flatnonzero(self.kept), np.flatnonzero(~self.kept)
        return self.move(
            np.concatenate([self.rng.choice(side, count, False) for side in (inside, outside)])
        )

    def error(self):
        from_scratch = least_squares(self.Z[self.kept], self.y[self.kept])
        return np.abs(self.theta - from_scratch).max() / np.abs(from_scratch).max()


@settings(max_examples=5, deadline=None)
@given(seeds, st.sampled_from([1.0, 30.0, 1e3, 1e6]))
def test_after_a_thousand_rounds_the_solution_is_that_of_a_solve_from_scratch(seed, leverage):
    """Rows up to a million times as long as the others come and go, and leave no trace.

    (While such rows are in, double precision itself ends earlier, in any solve.)
    """
    rng = np.random.default_rng(seed)
    n, d = 300, 5
    Z = rng.standard_normal((n, d))
    y = Z @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n)
    long = np.arange(6)
    Z[long] *= leverage
    rounds = Rounds(rng, Z, y, 150)
    worst = 0.0
    for round_ in range(1000):
        rounds.swap(int(rng.integers(1, 8)))
        if round_ % 20 == 0:
            rounds.move(long[rounds.kept[long]])
            worst = max(worst, rounds.error())
    assert worst <= 1e-9


@settings(max_examples=5, deadline=None)
@given(seeds)
def test_fresh_sums_are_rare_while_rows_are_alike(seed):
    """Counted work: a thousand small moves must not cost a thousand sums over all kept rows."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((2000, 3))
    y = Z @ rng.standard_normal(3) + rng.standard_normal(2000)
    rounds = Rounds(rng, Z, y, 1000)
    for _ in range(300):
        rounds.swap(2)
    assert rounds.fresh_sums <= 3


@few
@given(seeds, st.integers(1, 5), st.integers(0, 3))
def test_the_running_square_is_the_sum_of_squares(seed, d, more):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((60, d))
    y = rng.standard_normal(60)
    rounds = Rounds(rng, Z, y, 20 + d)
    for _ in range(5):
        rounds.swap(1 + more)
        residuals = y[rounds.kept] - Z[rounds.kept] @ rounds.theta
        np.testing.assert_allclose(rounds.normal.square, residuals @ residuals, rtol=1e-9)
        np.testing.assert_allclose(rounds.normal.moment, 0, atol=1e-9)


@few
@given(seeds, st.integers(2, 6), st.data())
def test_dependent_columns_give_the_shortest_solution_and_the_rank(seed, d, data):
    rng = np.random.default_rng(seed)
    rank = data.draw(st.integers(1, d - 1))
    Z = rng.standard_normal((40, rank)) @ random_rotation(rng, d)[:rank]
    y = rng.standard_normal(40)
    rounds = Rounds(rng, Z, y, 30)
    assert rounds.swap(3) == rank
    shortest = least_squares(Z[rounds.kept], y[rounds.kept])
    np.testing.assert_allclose(rounds.theta, shortest, atol=1e-9)


@few
@given(seeds, st.integers(3, 8), st.data())
def test_fewer_rows_than_columns_give_the_shortest_solution(seed, d, data):
    rng = np.random.default_rng(seed)
    count = data.draw(st.integers(1, d - 1))
    Z, y = rng.standard_normal((20, d)), rng.standard_normal(20)
    rounds = Rounds(rng, Z, y, count)
    assert rounds.swap(1) == count
    np.testing.assert_allclose(
        rounds.theta, least_squares(Z[rounds.kept], y[rounds.kept]), atol=1e-7
    )


@pytest.mark.parametrize("kind", ["repeated column", "zero column", "zero rows"])
def test_degenerate_columns(kind):
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((30, 3))
    y = rng.standard_normal(30)
    if kind == "repeated column":
        Z[:, 2] = Z[:, 0]
    elif kind == "zero column":
        Z[:, 1] = 0.0
    else:
        Z[:] = 0.0
    rounds = Rounds(rng, Z, y, 20)
    assert rounds.swap(2) == (0 if kind == "zero rows" else 2)
    np.testing.assert_allclose(
        rounds.theta, least_squares(Z[rounds.kept], y[rounds.kept]), atol=1e-12
    )


@few
@given(seeds, st.floats(-12, 12))
def test_units_of_a_column_are_no_dependence(seed, exponent):
    """A column in other units is not a dependent column."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((50, 3))
    Z[:, 1] *= 10.0**exponent
    y = rng.standard_normal(50)
    rounds = Rounds(rng, Z, y, 40)
    assert rounds.swap(2) == 3
    unit = np.array([1.0, 10.0**exponent, 1.0])
    expected = least_squares(Z[rounds.kept] / unit, y[rounds.kept])
    np.testing.assert_allclose(rounds.theta * unit, expected, atol=1e-9)
