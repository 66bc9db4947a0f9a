"""Evidence of one regression, beside sums over grids of coefficients and noise."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regimix.model import evidence
from regimix.model.evidence import Posterior, Prior, Sums, posterior
from tests.model.brute import Rows1, brute_force, brute_force_alike, some_rows, wide_prior
from tests.oracles import random_rotation

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=12)
log_noises = st.floats(-7.0, 0.5)


def probes(rng, width):
    """New rows, near and far."""
    return 3 * rng.standard_normal((5, width)), 3 * rng.standard_normal(5)


def mean_square(found, x, y):
    """What a posterior says of precision times squared residual at a row."""
    return float(found.precision * (y - x @ found.coef) ** 2 + ((x @ found.factor) ** 2).sum())


def agrees(found, grid, rng, *, rtol=1e-5, atol=1e-5):
    """Compare a posterior with sums over a grid."""
    tau = np.exp(grid.log_tau)[:, None]
    assert found.log_evidence == pytest.approx(grid.log_evidence, abs=atol)
    assert found.precision == pytest.approx(grid.mean(tau), rel=rtol)
    assert found.log_precision == pytest.approx(grid.mean(grid.log_tau[:, None]), abs=atol)
    for x, y in zip(*probes(rng, found.coef.size), strict=True):
        wanted = grid.mean(tau * (y - grid.beta @ x) ** 2)
        assert mean_square(found, x, y) == pytest.approx(wanted, rel=rtol)


# --- beside grids ---------------------------------------------------------------------------------


@few
@given(seeds, st.integers(1, 8), st.integers(1, 2), log_noises, st.booleans())
def test_evidence_and_moments_are_those_of_sums_over_a_grid(seed, n, width, log_noise, tails):
    """Responsibilities are fractions; with heavy tails squares count less than rows do."""
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, n, width, noise=np.exp(log_noise), tails=tails)
    prior = wide_prior(width)
    found = posterior(rows.sums(rng.standard_normal(width)), prior)
    grid = brute_force_alike(rows, prior, found.log_evidence)
    # Fewer rows than coefficients leave open whether there is noise at all: all sizes of it count.
    enough = rows.count.sum() > width + 1
    agrees(found, grid, rng, **({} if enough else {"rtol": 1e-3, "atol": 1e-3}))


@settings(max_examples=8)
@given(seeds, st.integers(150, 500), st.floats(0.1, 1.0))
def test_of_many_rows_the_noise_is_known(seed, n, noise):
    """One node is enough then, and the integral around it is known."""
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, n, 1, noise=noise, fractions=False)
    prior = wide_prior(1, smallest_noise=0.05)
    found = posterior(rows.sums(np.zeros(1)), prior)
    agrees(found, brute_force(rows, prior), rng, rtol=1e-2, atol=1e-3)


@few
@given(seeds, st.integers(1, 2), st.floats(0.01, 1.0))
def test_noise_below_the_resolution_is_taken_to_be_the_resolution(seed, width, resolution):
    """The integrand rises up to the end of its range: there is no mode inside it."""
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, 8, width, noise=0.01 * resolution)
    prior = wide_prior(width, smallest_noise=resolution)
    found = posterior(rows.sums(np.zeros(width)), prior)
    agrees(found, brute_force(rows, prior), rng)
    assert 0.1 < found.precision * resolution**2 < 1


@few
@given(seeds, st.integers(1, 2))
def test_noiseless_rows(seed, width):
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, 7, width, noise=0.0, fractions=False)
    prior = wide_prior(width, smallest_noise=1e-6)
    coef = np.linalg.lstsq(rows.X, rows.y, rcond=None)[0]
    found = posterior(rows.sums(coef), prior)
    agrees(found, brute_force(rows, prior), rng)
    np.testing.assert_allclose(found.coef, coef, rtol=1e-8, atol=1e-8)
    # From far away the squares cancel to rounding, which must not become noise or less than none.
    far = posterior(rows.sums(coef + 1.0), prior)
    assert 1 / np.sqrt(far.precision) < 1e-5
    assert far.log_evidence == pytest.approx(float(found.log_evidence), abs=2 * 7 * 3)
    assert np.isfinite(far.log_evidence)


@few
@given(seeds, st.sampled_from([1e-4, 1e-2, 1.0, 1e2, 1e4]), st.integers(1, 2))
def test_units_of_features_change_nothing_if_the_prior_has_them_too(seed, unit, width):
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, 8, width)
    prior = wide_prior(width)
    found = posterior(rows.sums(np.zeros(width)), prior)
    scaled = Rows1(rows.X * unit, rows.y, rows.count, rows.tail)
    again = posterior(
        scaled.sums(np.zeros(width)),
        Prior(prior.deviation / unit, prior.log_precision, prior.log_span),
    )
    assert again.log_evidence == pytest.approx(float(found.log_evidence), abs=1e-8)
    assert again.precision == pytest.approx(float(found.precision), rel=1e-8)
    np.testing.assert_allclose(again.coef * unit, found.coef, rtol=1e-8, atol=1e-10)
    agrees(
        again,
        brute_force(scaled, Prior(prior.deviation / unit, prior.log_precision, prior.log_span)),
        rng,
    )


@few
@given(seeds, st.integers(1, 2))
def test_features_far_larger_than_their_prior_supposes(seed, width):
    """Gram matrices of 1e8: coefficients next to zero."""
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, 8, width, fractions=False)
    scaled = Rows1(rows.X * 1e4, rows.y, rows.count, rows.tail)
    prior = wide_prior(width)
    agrees(posterior(scaled.sums(np.zeros(width)), prior), brute_force(scaled, prior), rng)


# --- in closed form -------------------------------------------------------------------------------


@settings(max_examples=40)
@given(seeds, st.integers(1, 6), st.integers(12, 300), st.floats(-4.0, 0.5), st.booleans())
def test_where_rows_determine_both_a_closed_form_is_as_good_as_the_quadrature(
    seed, width, spare, log_noise, with_factor
):
    """It is taken only where it is; else the answer is that of the quadrature."""
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, width + spare, width, noise=np.exp(log_noise))
    prior = wide_prior(width)
    sums = rows.sums(np.zeros(width))
    found = posterior(sums, prior, with_factor=with_factor)
    exact = evidence._by_quadrature(sums, prior, with_factor=True)
    assert found.log_evidence == pytest.approx(float(exact.log_evidence), abs=1e-3)
    assert found.log_precision == pytest.approx(float(exact.log_precision), abs=1e-3)
    assert found.precision == pytest.approx(float(exact.precision), rel=1e-3)
    for x, y in zip(*probes(rng, width), strict=True):
        if with_factor:
            assert mean_square(found, x, y) == pytest.approx(mean_square(exact, x, y), rel=1e-2)
        else:
            assert found.factor is None
    assert found.uncertainty == pytest.approx(float(exact.uncertainty), abs=0.05)


def test_many_rows_need_no_eigenvectors(monkeypatch):
    calls = []
    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda table: (calls.append(1), eigh(table))[1])
    rng = np.random.default_rng(0)
    prior = wide_prior(3)
    posterior(some_rows(rng, 300, 3).sums(np.zeros(3)), prior)
    assert not calls
    # Few rows, a column that does not vary, or noise next to its least: the exact integral.
    posterior(some_rows(rng, 8, 3).sums(np.zeros(3)), prior)
    flat = some_rows(rng, 300, 3)
    flat.X[:, 1] = 0.0
    posterior(flat.sums(np.zeros(3)), prior)
    exact = some_rows(rng, 300, 3, noise=0.0)
    posterior(exact.sums(np.linalg.lstsq(exact.X, exact.y)[0]), prior)
    assert len(calls) == 3


# --- orders of magnitude --------------------------------------------------------------------------


def steep_rows(rng, n, order):
    """Rows of a line whose slope is of some order of magnitude."""
    X = rng.standard_normal((n, 1))
    slope = 10.0**order * rng.uniform(1.0, 3.0)
    y = slope * X[:, 0] + 0.1 * rng.standard_normal(n)
    return Rows1(X, y, np.ones(n), np.ones(n)), slope


@few
@given(seeds, st.integers(0, 5))
def test_steep_lines_are_judged_at_their_own_order_of_magnitude(seed, order):
    rng = np.random.default_rng(seed)
    rows, slope = steep_rows(rng, 20, order)
    prior = wide_prior(1)
    found = posterior(rows.sums(np.array([slope])), prior)
    orders = [brute_force(rows, prior, k).log_evidence for k in range(7)]
    # One order is taken where the sum over all would be right: the likeliest, or one like it.
    assert found.log_evidence <= np.logaddexp.reduce(orders) + 1e-4
    assert found.log_evidence > max(orders) - 2
    assert np.abs(np.array(orders) - found.log_evidence).min() < 1e-4
    assert 0.05 < 1 / np.sqrt(found.precision) < 0.2


@few
@given(seeds, st.floats(1e-4, 1.0))
def test_a_slope_that_rows_hardly_show_is_not_taken_to_be_steep(seed, region):
    """Rows in a small region of a feature fit steep slopes as well as none: none is likelier."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(30), 0.5 + region * rng.standard_normal(30)])
    rows = Rows1(X, 1 + 0.3 * rng.standard_normal(30), np.ones(30), np.ones(30))
    prior = wide_prior(2)
    found = posterior(rows.sums(np.zeros(2)), prior)
    assert found.log_evidence > brute_force(rows, prior).log_evidence - 1


@few
@given(seeds)
def test_each_order_of_magnitude_costs_little(seed):
    """Were the prior as flat as the steepest line, no line of usual slope would be found."""
    values = []
    for order in range(6):
        rows, slope = steep_rows(np.random.default_rng(seed), 20, order)
        found = posterior(rows.sums(np.array([slope])), wide_prior(1))
        values.append(float(found.log_evidence))
    lost = -np.diff(values)
    # The coefficient and the order itself: twice log 10, on the whole.
    assert (lost > -1e-6).all()
    assert lost.sum() == pytest.approx(2 * 5 * np.log(10), abs=3)


# --- what rows leave open -------------------------------------------------------------------------


@few
@given(seeds, st.floats(0.2, 3.0), st.floats(0.2, 3.0))
# The prior holds the slope back: for less noise it gives way, and squares fall.
@example(14901615, 0.25, 0.25)
def test_a_repeated_column_is_one_column_with_both_priors(seed, first, second):
    rng = np.random.default_rng(seed)
    one = some_rows(rng, 8, 1)
    twice = Rows1(np.hstack([one.X, one.X]), one.y, one.count, one.tail)
    span = wide_prior(1)
    both = Prior(np.array([first, second]), span.log_precision, span.log_span)
    single = Prior(np.array([np.hypot(first, second)]), span.log_precision, span.log_span)
    found = posterior(twice.sums(np.array([0.3, -0.2])), both)
    wanted = posterior(one.sums(np.zeros(1)), single)
    assert found.log_evidence == pytest.approx(float(wanted.log_evidence), abs=1e-6)
    assert found.precision == pytest.approx(float(wanted.precision), rel=1e-6)
    assert found.coef.sum() == pytest.approx(float(wanted.coef[0]), abs=1e-6)
    agrees(found, brute_force_alike(twice, both, found.log_evidence), rng)


@few
@given(seeds, st.integers(2, 6))
def test_a_direction_without_rows_keeps_its_prior(seed, width):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, width))
    X[:, -1] = 0.0
    rows = Rows1(X, X @ rng.standard_normal(width), np.ones(12), np.ones(12))
    prior = wide_prior(width)
    found = posterior(rows.sums(rng.standard_normal(width)), prior)
    assert found.coef[-1] == 0
    x = np.zeros(width)
    x[-1] = 2.0
    # Mean of precision (0 - 2 beta)²: the prior's variance at the mean precision.
    wanted = found.precision * (2.0 * prior.deviation[-1]) ** 2
    assert mean_square(found, x, 0.0) == pytest.approx(float(wanted), rel=1e-6)
    without = posterior(
        Rows1(X[:, :-1], rows.y, rows.count, rows.tail).sums(np.zeros(width - 1)),
        Prior(prior.deviation[:-1], prior.log_precision, prior.log_span),
    )
    assert found.log_evidence == pytest.approx(float(without.log_evidence), abs=1e-6)


@pytest.mark.parametrize("width", [1, 3])
def test_no_rows_are_as_likely_as_the_range_of_noise(width):
    """Noise below the resolution is ruled out, and that is all there is to say."""
    prior = wide_prior(width)
    nothing = Sums(
        np.array(0.0), np.zeros((width, width)), np.zeros(width), np.array(0.0), np.ones(width)
    )
    found = posterior(nothing, prior)
    low, high = prior.log_precision
    assert found.log_evidence == pytest.approx(np.log(0.9 * (high - low)) - prior.log_span, abs=0.1)
    np.testing.assert_array_equal(found.coef, np.zeros(width))


@few
@given(seeds, st.integers(2, 5))
def test_more_coefficients_than_rows(seed, width):
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, width - 1, width)
    found = posterior(rows.sums(np.zeros(width)), wide_prior(width))
    assert all(np.isfinite(getattr(found, f.name)).all() for f in fields(Posterior))
    # Rows that can be fitted in any case say little about noise: neither large nor none.
    assert found.log_evidence < 5


@few
@given(seeds, st.integers(1, 5))
def test_a_rotation_of_features_changes_nothing(seed, width):
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, 12, width)
    prior = wide_prior(width, deviation=np.full(width, 1.3))
    turn = random_rotation(rng, width)
    turned = Rows1(rows.X @ turn, rows.y, rows.count, rows.tail)
    found = posterior(rows.sums(np.zeros(width)), prior)
    again = posterior(turned.sums(np.ones(width)), prior)
    assert again.log_evidence == pytest.approx(float(found.log_evidence), abs=1e-6)
    np.testing.assert_allclose(turn @ again.coef, found.coef, rtol=1e-6, atol=1e-8)
    for x, y in zip(*probes(rng, width), strict=True):
        assert mean_square(again, x @ turn, y) == pytest.approx(mean_square(found, x, y), rel=1e-6)


# --- sums -----------------------------------------------------------------------------------------


def same_sums(one, other, rtol=1e-9):
    for f in fields(Sums):
        a, b = getattr(one, f.name), getattr(other, f.name)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-9)


@few
@given(seeds, st.integers(1, 5))
def test_sums_move_to_other_coefficients(seed, width):
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, 9, width, tails=True)
    here, there = rng.standard_normal((2, width))
    same_sums(rows.sums(here).at(there), rows.sums(there))


@few
@given(seeds, st.integers(1, 4))
def test_sums_of_parts_add_up_wherever_their_residuals_are(seed, width):
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, 9, width)
    here, there = rng.standard_normal((2, width))
    parts = rows.take(slice(4)).sums(here) + rows.take(slice(4, None)).sums(there)
    same_sums(parts, rows.sums(here))


@few
@given(seeds)
def test_squares_are_never_negative(seed):
    rng = np.random.default_rng(seed)
    rows = some_rows(rng, 9, 2, noise=0.0)
    coef = np.linalg.lstsq(rows.X, rows.y, rcond=None)[0]
    assert rows.sums(coef + 1e6).at(coef).square >= 0


def batch_of(sums):
    """Put sums of components beside each other."""
    return Sums(*(np.stack([getattr(s, f.name) for s in sums]) for f in fields(Sums)))


@few
@given(seeds, st.integers(1, 4))
def test_a_batch_is_one_by_one(seed, width):
    rng = np.random.default_rng(seed)
    # Of very different kinds: noisy, noiseless, steep, too few rows.
    kinds = [
        some_rows(rng, 9, width),
        some_rows(rng, 9, width, noise=0.0),
        some_rows(rng, 1, width, noise=3.0),
        some_rows(rng, 30, width, noise=1e-3),
    ]
    kinds += [Rows1(kinds[0].X, 1e4 * kinds[0].y, kinds[0].count, kinds[0].tail), kinds[0]]
    prior = wide_prior(width)
    alone = [rows.sums(rng.standard_normal(width)) for rows in kinds]
    batch = batch_of(alone)
    same_sums(batch.pick(2), alone[2])
    same_sums(batch.pick(np.array([3, 1])), batch_of([alone[3], alone[1]]))
    grid = Sums(
        *(
            getattr(batch, f.name).reshape(2, 3, *getattr(batch, f.name).shape[1:])
            for f in fields(Sums)
        )
    )
    flat, square = posterior(batch, prior), posterior(grid, prior)
    for k, sums in enumerate(alone):
        one = posterior(sums, prior)
        for name in ("coef", "precision", "log_precision", "log_evidence"):
            wanted = getattr(one, name)
            for many in (getattr(flat, name)[k], getattr(square, name)[divmod(k, 3)]):
                np.testing.assert_allclose(many, wanted, rtol=1e-7, atol=1e-7)
        outer = one.factor @ one.factor.T
        together = flat.factor[k] @ flat.factor[k].T
        np.testing.assert_allclose(together, outer, rtol=1e-6, atol=1e-8 * np.abs(outer).max())
    moved = batch.at(rng.standard_normal((6, width)))
    for k, sums in enumerate(alone):
        same_sums(moved.pick(k), sums.at(moved.coef[k]))
