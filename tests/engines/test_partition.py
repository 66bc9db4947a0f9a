"""The engine for tables in parts answers as memory does: every draw, every reduction."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix.data.problem import Problem
from regimix.engines.base import kept_rows
from regimix.engines.memory import MemoryEngine
from regimix.engines.selection import Near, is_within, masked_mass, present, within_sums
from regimix.model.blocks import Law, labelled_sums, mixture_sums
from regimix.model.labelling import Likeliest, Trimmed, unlikeliness
from tests.engines.cutting import cut_anywhere, table_in_parts, weights_of

seeds = st.integers(0, 2**32 - 1)
some = settings(max_examples=15, deadline=None)
weightings = st.sampled_from([None, "whole", "real"])


class Pair:
    """The same table in memory and in parts."""

    def __init__(self, seed, n=90, d=3, *, weighting=None, fit_intercept=True, repeated=False):
        self.rng = rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d)) * [1.0, 50.0, 0.01][:d] + [0.0, 100.0, 1.0][:d]
        if repeated:
            X = rng.integers(0, 3, (n, d)).astype(float)
        y = X @ rng.standard_normal(d) + (0 if repeated else rng.standard_normal(n))
        weights = weights_of(rng, n, weighting)
        problem = Problem.from_arrays(X, y, weights, fit_intercept=fit_intercept)
        self.memory = MemoryEngine(problem)
        self.ends = cut_anywhere(rng, n, int(rng.integers(1, 8)))
        self.parts = table_in_parts(self.ends, X, y, weights, fit_intercept=fit_intercept)
        p = problem.n_columns
        self.theta = rng.standard_normal(p)
        self.law = Law(
            rng.standard_normal((2, p)),
            np.array([0.5, 1.5]),
            np.array([0.5, 0.3]),
            float(np.log(0.05)),
        )

    def mass(self, share):
        mass = share * self.memory.problem.mass
        return max(1.0, np.floor(mass)) if self.memory.problem.counts else mass

    def both(self, question):
        return question(self.memory), question(self.parts)


def same_sums(one, other):
    """Sums in another order agree to the rounding of their largest terms."""
    for a, b in zip(one.sums, other.sums, strict=True):
        close(a.gram, b.gram)
        close(a.moment, b.moment)
    close(one.size, other.size)
    close(one.square, other.square)
    assert one.log_gain == pytest.approx(other.log_gain, rel=1e-9, abs=1e-9)
    if one.doubt is not None or other.doubt is not None:
        close(one.doubt, other.doubt)


def close(one, other):
    one, other = np.asarray(one), np.asarray(other)
    assert one.shape == other.shape
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10 * np.abs(other).max(initial=1e-9))


# --- draws ----------------------------------------------------------------------------------------


@some
@given(seeds, weightings, st.booleans(), st.integers(1, 120), seeds)
def test_draws_and_samples_are_those_of_memory(seed, weighting, repeated, rows, draw):
    pair = Pair(seed, weighting=weighting, repeated=repeated)
    one, other = pair.both(lambda engine: engine.sample(rows, draw))
    np.testing.assert_array_equal(one.Z, other.Z)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-12)
    one, other = pair.both(lambda engine: engine.draw(rows, draw))
    count = min(rows, one.keys.size)
    np.testing.assert_array_equal(one.numbers[:count], other.numbers[:count])
    np.testing.assert_array_equal(one.X[:count], other.X[:count])
    np.testing.assert_allclose(one.weights[:count], other.weights[:count], rtol=1e-12)


def test_a_draw_is_one_pass_and_is_remembered():
    pair = Pair(1, n=30_000)
    before = pair.parts.parts.n_passes
    pair.parts.draw(500, 3)
    pair.parts.sample(500, 3)
    pair.parts.draw(100, 3)
    assert pair.parts.parts.n_passes == before + 1
    pair.parts.draw(500, 4)
    assert pair.parts.parts.n_passes == before + 2


def test_a_large_table_that_repeats_responses_draws_the_same_rows():
    """Keys come from the response alone there; the rest of a row decides between equal ones."""
    rng = np.random.default_rng(2)
    n = 70_000
    X = rng.standard_normal((n, 2))
    y = np.round(X.sum(axis=1) + rng.standard_normal(n), 7)
    y[rng.integers(0, n, 20)] = 1.0
    memory = MemoryEngine(Problem.from_arrays(X, y))
    parts = table_in_parts(cut_anywhere(rng, n, 5), X, y)
    assert memory.problem.distinct_response
    one, other = memory.sample(3_000, 5), parts.sample(3_000, 5)
    np.testing.assert_array_equal(one.Z, other.Z)


# --- reductions -----------------------------------------------------------------------------------


@some
@given(seeds, weightings, st.booleans(), st.booleans(), st.sampled_from([1.0, 2.0]))
def test_sums_of_all_components_are_those_of_memory(seed, weighting, intercept, doubt, power):
    pair = Pair(seed, weighting=weighting, fit_intercept=intercept)
    same_sums(*pair.both(lambda e: mixture_sums(e, pair.law, with_doubt=doubt, power=power)))


@some
@given(seeds, weightings, st.floats(0.1, 1.0), st.sampled_from([1.0, 2.0]))
def test_sums_by_label_are_those_of_memory(seed, weighting, share, power):
    pair = Pair(seed, weighting=weighting)
    mass = pair.mass(share)

    def ask(engine):
        keeper = engine.choose(unlikeliness, (pair.law,), mass)
        labelling = Trimmed(pair.law, keeper)
        labels = engine.map_rows(labelling)
        return labels, labelled_sums(engine, pair.law, labelling, keeper, power)

    (labels, sums), (others, beside) = pair.both(ask)
    np.testing.assert_array_equal(labels, others)
    assert labels.dtype == others.dtype
    same_sums(sums, beside)
    one, other = pair.both(lambda e: e.map_rows(Likeliest(pair.law)))
    np.testing.assert_array_equal(one, other)


@some
@given(seeds, weightings, st.floats(0.01, 3.0))
def test_rows_near_a_fit_are_those_of_memory(seed, weighting, bound):
    pair = Pair(seed, weighting=weighting)
    near = Near(pair.theta, bound)
    for one, other in (
        pair.both(lambda e: e.map_rows(is_within, pair.theta, bound)),
        pair.both(lambda e: e.map_rows(kept_rows, near)),
        pair.both(lambda e: e.map_rows(present)),
    ):
        np.testing.assert_array_equal(one, other)
    one, other = pair.both(lambda e: e.fold(within_sums, pair.theta, bound))
    close(one[:2], other[:2])
    close(one[2].gram, other[2].gram)
    close(one[2].moment, other[2].moment)
    close(*pair.both(lambda e: e.fold(masked_mass, near)))


@some
@given(seeds, weightings, st.booleans(), st.floats(0.05, 1.0))
def test_a_follower_follows_as_memory_does(seed, weighting, intercept, share):
    pair = Pair(seed, weighting=weighting, fit_intercept=intercept)
    mass, p = pair.mass(share), pair.theta.size
    thetas = pair.rng.standard_normal((3, p))
    followers = pair.both(lambda e: e.follow(3, mass))
    rounds = [(thetas, [0, 1, 2]), (thetas[[1, 0]] * 1.1, [2, 0]), (thetas[[1, 0]] * 1.1, [2, 0])]
    for round_, (at, starts) in enumerate(rounds):
        one, other = (follower.select(at, starts) for follower in followers)
        for a, b in zip(one, other, strict=True):
            assert a.threshold == pytest.approx(b.threshold, rel=1e-12)
            assert a.objective == pytest.approx(b.objective, rel=1e-9)
            assert (a.n_moved == 0) == (b.n_moved == 0)
            assert b.n_moved == 0 or round_ < 2
        names = [[selected.signature for selected in found] for found in (one, other)]
        assert [len(set(name)) for name in names] == [len(set(names[0]))] * 2
    direction = pair.rng.standard_normal(p)
    for start in range(3):
        (kept, weights), (others, beside) = (f.kept(start) for f in followers)
        np.testing.assert_array_equal(kept, others)
        if weights is not None:
            close(weights, beside)
        close(*(f.kept_sums(start, pair.theta).gram for f in followers))
        close(*(f.kept_sums(start, pair.theta).moment for f in followers))
        close(*(f.gradients([start], pair.theta[None, :]) for f in followers))
        close(*(f.diagonal(start) for f in followers))
        close(*(f.product(start, direction) for f in followers))
        assert [f.moved_sums(start) is None for f in followers][1]
    close(*(f.gradients([2, 0], thetas[:2]) for f in followers))


def test_equal_sets_have_equal_names_and_others_have_others():
    pair = Pair(5, weighting="real")
    follower = pair.parts.follow(2, pair.mass(0.6))
    theta = pair.theta
    first, same = follower.select(np.stack([theta, theta]), [0, 1])
    assert first.signature == same.signature
    (other,) = follower.select(theta[None] + 0.5, [1])
    assert other.signature != first.signature
    (back,) = follower.select(theta[None], [1])
    assert back.signature == first.signature
    assert back.n_moved > 0


def test_the_name_of_a_set_is_the_same_in_every_process():
    """Workers name their part of a set; a part may be with another worker in the next round."""
    code = (
        "import numpy as np; from regimix.engines.selection import Cut; "
        "from regimix.engines.partition import _hash; "
        "cut = Cut(abs, (), 1.0, 0.0, 5, 3, 0.1234567); print(_hash(cut, np.arange(6)))"
    )
    names = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(names) == 1


@some
@given(seeds, weightings, st.floats(0.2, 0.8), seeds)
def test_rows_that_were_left_out_are_absent(seed, weighting, share, draw):
    """Twice in turn: rows near a fit, then the best of what is left."""
    pair = Pair(seed, weighting=weighting)

    def leave_out(engine):
        engine = engine.without(Near(pair.theta, 0.4))
        mass = share * engine.problem.mass
        return engine.without(engine.choose(unlikeliness, (pair.law,), np.floor(mass) + 1))

    one, other = pair.both(leave_out)
    np.testing.assert_array_equal(*(e.map_rows(present) for e in (one, other)))
    assert one.problem.mass == pytest.approx(other.problem.mass)
    if one.problem.mass < 2:
        return
    drawn = [e.sample(20, draw) for e in (one, other)]
    np.testing.assert_array_equal(drawn[0].Z, drawn[1].Z)
    mass = max(1.0, np.floor(one.problem.mass / 2))
    followers = [e.follow(1, mass) for e in (one, other)]
    for follower in followers:
        follower.select(pair.theta[None], [0])
    np.testing.assert_array_equal(*(f.kept(0)[0] for f in followers))
    close(*(f.kept_sums(0, pair.theta).gram for f in followers))
