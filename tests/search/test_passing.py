"""Message passing: it finds one component among other rows, and knows when it has."""

from dataclasses import replace

import numpy as np
import pytest

import regimix.search.message_passing
import regimix.search.propose
from regimix.model.em import refit
from regimix.model.evidence import Prior
from regimix.model.rows import Rows
from regimix.search.joint import smallest_component
from regimix.search.message_passing import _variance_of_others, hunt_one, passing, prepare
from regimix.search.numbers import SEARCH
from regimix.search.propose import Proposer


def pool(seed, clean, others, d, *, wide=1.0, noise=0.05):
    """Rows of one component of unit size among others that are ``wide`` times as spread."""
    rng = np.random.default_rng(seed)
    coef = rng.standard_normal(d) / np.sqrt(d)
    X = rng.standard_normal((clean + others, d))
    y = X @ coef + noise * rng.standard_normal(clean + others)
    y[clean:] = wide * rng.standard_normal(others)
    flat = np.full(len(y), -np.log(10.0 * wide))
    prior = Prior(np.ones(d), (-4.0, 30.0), 3.5)
    return Rows(X, y, np.ones(len(y)), False, flat, 0.0, wide, prior), coef


def from_nothing(rows, signal=None, batch=2, spike=0.02, **options):
    start, ones = np.zeros((batch, rows.n)), np.ones(batch)
    return passing(prepare(rows, signal), start, ones, 0.5 * ones, spike * ones, **options)


@pytest.mark.parametrize("seed", range(5))
def test_a_component_is_found_from_nothing(seed):
    rows, coef = pool(seed, 200, 200, 30)
    found = from_nothing(rows)
    best = int(np.argmin(found.error))
    assert found.error[best] < 0.01
    assert np.linalg.norm(found.coef[best] - coef) < 0.1
    member = found.member[best]
    assert member[:200].mean() > 0.5
    assert member[200:].mean() < 0.15


@pytest.mark.parametrize("seed", range(5))
def test_where_there_is_none_the_error_says_so(seed):
    rows, _ = pool(seed, 0, 400, 30)
    assert from_nothing(rows).error.min() > 0.1


def test_the_error_estimate_is_about_the_true_error():
    ratios = []
    for seed in range(8):
        rows, coef = pool(seed, 100, 100, 40, noise=0.2)
        found = from_nothing(rows, batch=1)
        true = float(np.sum((found.coef[0] - coef) ** 2))  # white features: prediction error
        ratios.append(true / found.error[0])
    assert 0.3 < np.median(ratios) < 3.0


def test_knowing_the_size_of_a_component_finds_it_among_wide_errors():
    """Rows far out are known not to be the component's: fewer rows will do."""
    near = {None: 0, 1.0: 0}
    for seed in range(20):
        rows, coef = pool(seed, 135, 100, 100, wide=2.2, noise=0.005)
        for signal in near:
            found = from_nothing(rows, signal, batch=1, spike=0.005)
            near[signal] += np.linalg.norm(found.coef[0] - coef) < 0.15
    assert near[1.0] >= near[None] + 4


def test_the_variance_of_the_others_is_found():
    rng = np.random.default_rng(0)
    y = np.append(rng.standard_normal(4000), 3 * rng.standard_normal(2000))
    others = _variance_of_others(np.abs(y), np.ones(y.size), 1.0)
    assert others == pytest.approx(9.0, rel=0.15)
    narrow = _variance_of_others(np.abs(0.5 * rng.standard_normal(500)), np.ones(500), 1.0)
    assert narrow == 1.0  # never narrower than the component


def test_weights_count_as_repetitions():
    rows, _ = pool(3, 120, 60, 20)
    times = np.random.default_rng(1).integers(1, 3, rows.n)
    repeated = rows.take(np.repeat(np.arange(rows.n), times))
    weighted = replace(rows, weights=times.astype(float))
    one, other = from_nothing(weighted, batch=1), from_nothing(repeated, batch=1)
    np.testing.assert_allclose(one.coef, other.coef, atol=0.02)


def test_the_first_to_find_ends_the_others(monkeypatch):
    rows, coef = pool(0, 300, 60, 20, noise=1e-4)
    start = np.vstack([rows.design @ coef, np.zeros(rows.n)])  # the first is there at once
    error, ones, rounds = np.array([1e-3, 1.0]), np.ones(2), []
    spike = np.array([5e-4, 0.4])  # the second takes the noise for large: it never converges
    one_round = regimix.search.message_passing._round

    def counted(*args, **options):
        rounds[-1] += 1
        return one_round(*args, **options)

    monkeypatch.setattr(regimix.search.message_passing, "_round", counted)
    for first_wins in (False, True):
        rounds.append(0)
        found = passing(prepare(rows), start, error, 0.5 * ones, spike, first_wins=first_wins)
        assert np.linalg.norm(found.coef[0] - coef) < 0.01
    assert rounds[1] < rounds[0]


def test_passes_that_go_in_circles_are_ended(monkeypatch):
    """Two broad components across one another: most passes come to no end by themselves."""
    rounds, one_round = [], regimix.search.message_passing._round

    def counted(*args, **options):
        rounds[-1] += 1
        return one_round(*args, **options)

    monkeypatch.setattr(regimix.search.message_passing, "_round", counted)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows, _ = pool(seed, 0, 200, 1)
        sign = rng.choice([-1.0, 1.0], rows.n)
        rows = replace(rows, y=sign * rows.design[:, 0] + rng.standard_normal(rows.n))
        rounds.append(0)
        from_nothing(rows, batch=4, spike=np.array(SEARCH.zero_noise))
    assert np.median(rounds) < 0.3 * SEARCH.turns


def passes(monkeypatch):
    made = []

    def counted(*given, **more):
        made.append(1)
        return passing(*given, **more)

    monkeypatch.setattr(regimix.search.message_passing, "passing", counted)
    return made


@pytest.mark.parametrize("seed", range(3))
def test_what_most_rows_of_a_wide_pool_follow_is_found_without_a_pass(monkeypatch, seed):
    made = passes(monkeypatch)
    rows, coef = pool(seed, 300, 100, 30)
    found = hunt_one(rows)
    assert not made
    assert np.linalg.norm(refit(rows, found, 10).model.coef[0] - coef) < 0.1
    hunt_one(pool(seed, 150, 250, 30)[0])  # a minority is left to passing
    assert made


@pytest.mark.parametrize("n", [40, 400])
def test_a_line_through_as_many_rows_as_coefficients_is_none_of_most_rows(monkeypatch, n):
    """Coefficients that could follow any rows do so: the score says that these show nothing."""
    made = passes(monkeypatch)
    hunt_one(pool(1, 0, n, 30)[0])
    assert made


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_ends_where_a_component_takes_hardly_a_row(monkeypatch, seed):
    rows, _ = pool(seed, 1000, 1000, 20, wide=3.0, noise=2.0)
    real, pools = regimix.search.propose.hunt_one, []

    def noted(part, signal):
        pools.append(part.n)
        return real(part, signal)

    monkeypatch.setattr(regimix.search.propose, "hunt_one", noted)
    proposer = Proposer(np.random.default_rng(0))
    (found,) = proposer.propose(rows, "passing", count=4)
    assert found.m == len(pools)
    assert (-np.diff(pools) >= smallest_component(rows.width)).all()
