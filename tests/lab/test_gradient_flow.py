"""Gradient flow (Propositions 14 and 15): simulated, bounded, and stopped at the ideal time."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import gradient_flow as flow
from lab.gradient_flow import FlowRates
from regimix import theory
from regimix.errors import DataError, ParameterError
from regimix.synth import make_mlrc
from regimix.trimmed.gradient import ideal_steps

seeds = st.integers(0, 2**32 - 1)
UNIT = FlowRates(1.0, 1.0)


def some_rows(seed, d=3, n=20):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(0.7 * rng.standard_normal(d))
    return X, rng.standard_normal(n), 3 * rng.standard_normal(d)


def test_the_flow_is_what_many_small_steps_do():
    X, y, theta = some_rows(0)
    expected = flow.gradient_flow(X, y, theta, [0.5])[0]
    walked, steps = theta.copy(), 20_000
    for _ in range(steps):
        walked -= 0.5 / steps * X.T @ (X @ walked - y) / len(X)
    assert walked == pytest.approx(expected, rel=1e-3)


def test_the_flow_begins_at_the_start_and_ends_at_least_squares():
    X, y, theta = some_rows(1)
    begin, end = flow.gradient_flow(X, y, theta, [0.0, 1e6])
    assert begin == pytest.approx(theta)
    assert end == pytest.approx(np.linalg.lstsq(X, y, rcond=None)[0])
    flat = np.column_stack([X, X[:, 0]])  # one direction is not determined
    moved = flow.gradient_flow(flat, y, np.append(theta, 1.0), [1e6])[0]
    assert flat @ moved == pytest.approx(X @ end, abs=1e-6)


def test_the_proximal_point_is_a_minimum():
    X, y, theta = some_rows(2)
    point = flow.proximal_point(X, y, theta, 0.3)
    gradient = X.T @ (X @ point - y) / len(X) + (point - theta) / 0.3
    assert np.abs(gradient).max() < 1e-9


@settings(max_examples=60)
@given(seeds, st.integers(1, 4), st.floats(1e-3, 30))
def test_flow_and_proximal_point_stay_within_the_bound(seed, d, relative):
    X, y, theta = some_rows(seed, d)
    rates = flow.flow_rates(X)
    time = relative / rates.high
    path = flow.gradient_flow(X, y, theta, [time])[0]
    point = flow.proximal_point(X, y, theta, flow.nu(time, rates))
    gradient = np.linalg.norm(X.T @ (X @ theta - y)) / len(X)
    bound = gradient / rates.low * flow.flow_gap_bound(time, rates)
    assert np.linalg.norm(path - point) <= bound * (1 + 1e-6) + 1e-9 * gradient / rates.low


def test_the_bound_is_met_along_the_slowest_direction():
    X = np.diag([1.0, 2.0, 3.0])
    rates = flow.flow_rates(X)
    assert (rates.low, rates.high) == pytest.approx((1 / 3, 3.0))
    theta, y = np.array([5.0, 0.0, 0.0]), np.zeros(3)
    for time in (0.1, 1.0, 4.0):
        path = flow.gradient_flow(X, y, theta, [time])[0]
        point = flow.proximal_point(X, y, theta, flow.nu(time, rates))
        gap = flow.flow_gap_bound(time, rates)
        # ‖∇f(θ_0)‖/m is the length of the start.
        assert np.linalg.norm(path - point) == pytest.approx(5 * gap)


def test_with_one_rate_flow_and_proximal_point_are_the_same():
    assert flow.nu(2.0, UNIT) == pytest.approx(math.exp(2) - 1)
    assert flow.flow_gap_bound(2.0, UNIT) == pytest.approx(0.0, abs=1e-15)
    assert flow.nu(1e9, UNIT) == math.inf


@pytest.mark.parametrize("seed", range(6))
def test_a_round_of_flow_obeys_proposition_14(seed):
    # γ* = 0, as the proposition has it; its constants are replaced by what they bound.
    X, y, truth = make_mlrc(120, 2, 2, norms=1.0, separation=1.0, random_state=seed)
    rng = np.random.default_rng(seed)
    step = rng.standard_normal(2)
    theta = truth.coef[0] + 0.2 * step / np.linalg.norm(step)
    kept = np.argsort(np.abs(y - X @ theta))[:48]
    foreign = int((truth.labels[kept] != 0).sum())
    regularity = theory.Regularity(X, most_directions=500)
    rates = flow.flow_rates(X[kept])
    alien = 2 * regularity.plus(foreign).upper / len(kept)
    condition = regularity.plus(len(kept)).upper / (len(kept) * rates.low)
    times = np.array([0.0, 0.1, 0.5, 2.0, 10.0])
    for time, point in zip(times, flow.gradient_flow(X[kept], y[kept], theta, times), strict=True):
        ratio = np.linalg.norm(point - truth.coef[0]) / 0.2
        assert ratio <= flow.flow_bound(time, alien, rates.low, rates, condition) * (1 + 1e-9)


def test_proposition_14_needs_its_last_term():
    # An error along the slow one of two axes, one component: the bound is below one, and without
    # ω(u) the flow would break it.
    X = np.repeat(np.diag([1.0, 2.0]), 50, axis=0)
    rates = flow.flow_rates(X)
    for time in (1.0, 3.0, 10.0):
        point = flow.gradient_flow(X, np.zeros(100), [1.0, 0.0], [time])[0]
        bound = flow.flow_bound(time, 0.0, rates.low, rates)
        ratio = np.linalg.norm(point)
        assert bound - flow.omega(time, rates) < ratio <= bound
    assert bound < 0.5


def test_more_time_lowers_the_bound_to_that_of_least_squares():
    rates = FlowRates(0.5, 2.0)
    bounds = [flow.flow_bound(time, 0.01, 1.0, rates) for time in (0.0, 20.0, 60.0)]
    assert bounds[0] == 1.0
    assert bounds[-1] == pytest.approx(0.01, rel=1e-3)
    # ω is at most c_4 e^{−c_5 u}, with c_4 = M/m and c_5 = m.
    for time in (0.1, 1.0, 5.0):
        assert flow.omega(time, rates) <= 4 * math.exp(-0.5 * time)


@pytest.mark.parametrize("error", [0.3, 0.03, 1e-4])
@pytest.mark.parametrize("cost", [0.5, 3.0, 20.0])
def test_the_best_time_is_a_maximum_of_the_size(error, cost):
    best = flow.best_time(error, 1.0, cost, UNIT)
    sizes = [
        -flow.approximate_efficiency(factor * best, error, 1.0, cost, UNIT)
        for factor in (0.5, 0.9, 1.0, 1.1, 2.0)
    ]
    assert min(sizes) > 0  # negative as printed
    assert np.argmax(sizes) == 2


@pytest.mark.parametrize("cost", [1.0, 3.0, 10.0])
def test_the_ideal_time_of_proposition_15_approaches_the_best(cost):
    lost = []
    for error in (1e-1, 1e-2, 1e-4, 1e-8):
        best = flow.best_time(error, 1.0, cost, UNIT)
        sizes = [
            flow.approximate_efficiency(time, error, 1.0, cost, UNIT)
            for time in (best, flow.ideal_time(error, cost))
        ]
        lost.append(1 - sizes[1] / sizes[0])
    assert max(lost) < 0.06
    assert lost[-1] < 1e-3


def lost(time, foreign, own, cost):
    """Return the share of the best efficiency that a time loses."""
    best = flow.best_time(foreign, own, cost, UNIT)
    sizes = [flow.approximate_efficiency(t, foreign, own, cost, UNIT) for t in (best, time)]
    return 1 - sizes[1] / sizes[0]


def test_the_corrected_time_loses_least_where_the_error_is_small():
    # Proposition 15's proof takes C_2ν for large, where its solution has C_2ν = w/log(C_1/C_2) < 1.
    foreign, own = 3e-6, 0.03
    printed = math.log(1 / (foreign * math.log(own / foreign)))
    assert lost(printed, foreign, own, 1.0) == pytest.approx(0.039, abs=0.001)
    assert lost(flow.ideal_time(foreign / own, 1.0), foreign, own, 1.0) == pytest.approx(
        0.295, abs=0.001
    )
    assert lost(flow.corrected_time(foreign, own, 1.0), foreign, own, 1.0) < 0.004
    # A selection that costs much is the other case: C_2ν is above one, and the printed one better.
    printed = math.log(10 / (foreign * math.log(own / foreign)))
    assert lost(printed, foreign, own, 10.0) < lost(
        flow.corrected_time(foreign, own, 10.0), foreign, own, 10.0
    )


def test_the_solver_schedules_by_the_same_formula():
    for error in (0.4, 0.01, 1e-5):
        assert ideal_steps(error, 2.0, 0.25) == round(flow.ideal_time(error, 2.0) / 0.25)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(DataError, match="do not determine all 3 coefficients"):
        flow.flow_rates(np.ones((2, 3)))
    with pytest.raises(ParameterError, match="low one at most the high"):
        FlowRates(2.0, 1.0)
    with pytest.raises(ParameterError, match="time must be"):
        flow.nu(-1.0, UNIT)
    with pytest.raises(ParameterError, match="below own"):
        flow.best_time(2.0, 1.0, 1.0, UNIT)
    with pytest.raises(ParameterError, match="error must be below 1"):
        flow.ideal_time(1.0, 2.0)
