"""Tables, exponents, crossings, starts, and the engine that counts."""

import numpy as np
import pytest

from lab.counting import SELECTION, counted_run, gradient_solver
from lab.simulation import closest, errors_by_round, mixture, start_at, with_decoys
from lab.table import Table, crossing, power_law, slope
from regimix import gd_ilts, ilts


def test_a_table_splits_filters_and_averages():
    table = Table([{"a": 1, "v": 2.0}, {"a": 2, "v": True}, {"a": 1, "v": 4.0, "w": "x"}])
    assert table.columns == ("a", "v", "w")
    assert [key for key, _ in table.groups("a")] == [(1,), (2,)]
    assert len(table.where(a=1)) == 2
    assert table.mean("v", "a") == [(1, 3.0), (2, 1.0)]
    assert table.mean("v", ["a", "w"])[0] == ((1, None), 2.0)
    assert table.to_csv() == "a,v,w\n1,2.0,\n2,True,\n1,4.0,x\n"
    with pytest.raises(KeyError):
        table["none"]


def test_exponents_are_found_and_missing_ones_are_not_invented():
    d = np.array([2.0, 4.0, 8.0])
    assert slope(5 * d**1.5, d) == pytest.approx(1.5)
    assert power_law(2 * d**2, d) == pytest.approx((2.0,))
    assert np.isnan(slope([1.0], [2.0]))


def test_the_crossing_next_to_success_counts():
    assert crossing([1, 2, 4], [0.0, 1.0, 1.0]) == pytest.approx(2**0.5)
    assert crossing([1, 2, 4], [1.0, 1.0, 0.0]) == pytest.approx(8**0.5)
    assert crossing([4, 1, 2], [0.0, 1.0, 1.0]) == pytest.approx(8**0.5), "order is no matter"
    rising = crossing([1, 2, 4, 8, 16], [0, 1, 0, 1, 1])
    falling = crossing([1, 2, 4, 8, 16], [1, 0, 1, 0, 0])
    assert (4 < rising < 8, 1 < falling < 2) == (True, True)
    assert np.isnan(crossing([1, 2], [1.0, 1.0]))


def test_starts_have_the_distance_that_was_asked_for():
    rng = np.random.default_rng(0)
    coef = rng.standard_normal((3, 4))
    nearest = min(np.linalg.norm(coef[1] - coef[j]) for j in (0, 2))
    assert closest(coef, 1) == pytest.approx(nearest)
    start = start_at(rng, coef, 1, 0.3)
    assert np.linalg.norm(start - coef[1]) == pytest.approx(0.3 * nearest)


def test_decoys_lie_on_the_way_and_touch_corrupted_rows_only():
    rng = np.random.default_rng(1)
    data = mixture(rng, 300, 4, 2, corruption_ratio=0.3)
    truth = data.truth
    start = start_at(rng, truth.coef, 0, 0.3)
    y = with_decoys(rng, data, 0, start)
    np.testing.assert_array_equal(y[~truth.corrupted], data.y[~truth.corrupted])
    at_goal = y - data.X @ truth.coef[0]
    part = at_goal[truth.corrupted] / (data.X[truth.corrupted] @ (start - truth.coef[0]))
    assert ((part > 0) & (part <= 1)).all()


def test_errors_by_round_end_at_the_component():
    rng = np.random.default_rng(2)
    data = mixture(rng, 500, 4, 2)
    start = start_at(rng, data.truth.coef, 0, 0.1)
    errors, fit = errors_by_round(data.X, data.y, start, 0.45, data.truth.coef[0])
    assert len(errors) == fit.n_iter + 1
    assert errors[0] == pytest.approx(np.linalg.norm(start - data.truth.coef[0]))
    assert errors[-1] < 1e-12


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    data = mixture(rng, 400, 5, 2)
    return data.X, data.y, start_at(rng, data.truth.coef, 0, 0.1), 0.45, data.truth.coef[0]


def test_counting_changes_nothing_about_the_answer(problem):
    X, y, start, keep, _ = problem
    counted = counted_run(*problem)
    fit = ilts(X, y, start, keep=keep)
    assert counted.run.n_iter == fit.n_iter
    assert counted.error[-1] < 1e-12
    steps = counted_run(*problem, make_solver=gradient_solver("ideal")).run.n_steps
    assert tuple(steps) == gd_ilts(X, y, start, keep=keep).n_steps


def test_exact_work_is_what_the_formula_says(problem):
    n, d, kept = 400, 5, 180
    counted = counted_run(*problem)
    selection, solve = n * (d + SELECTION), kept * d * (d + 1) + d**3 / 3
    rounds = np.arange(1, len(counted.work) + 1)
    np.testing.assert_allclose(counted.work, rounds * (selection + solve))
    assert counted_run(*problem, updates=True).work[-1] < counted.work[-1]


def test_gradient_work_is_what_the_formula_says(problem):
    n, d, kept = 400, 5, 180
    counted = counted_run(*problem, make_solver=gradient_solver(3), max_iter=3)
    # The second and third round begin with a selection and a gradient and make three steps; no
    # column is measured again before the fourth round.
    each = n * (d + SELECTION) + kept * d + 3 * 2 * kept * d
    np.testing.assert_allclose(np.diff(counted.work)[1:], each)


def test_work_until_an_accuracy_is_never_too_early(problem):
    counted = counted_run(*problem)
    assert counted.work_until(1.0) == counted.work[0]
    assert counted.work_until(1e-9) == counted.work[np.flatnonzero(counted.error > 1e-9)[-1] + 1]
    assert counted_run(*problem, max_iter=1).work_until(1e-9) == np.inf
