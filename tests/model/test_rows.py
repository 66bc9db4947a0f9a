"""Rows ready for search: units, prior and background; and what must not depend on them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from regimix.engines.base import Sample
from regimix.model.em import Parameters, evaluate
from regimix.model.rows import whitened_rows

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=20)


def sample(seed, n=200, d=3, *, intercept=True, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 2
    y = X @ rng.standard_normal(d) + 5 + rng.standard_t(3, n)
    weights = rng.uniform(0.1, 4.0, n) if weighted else np.ones(n)
    return Sample(np.column_stack([np.ones(n), X]) if intercept else X, y, weights)


def model_through(rows, theta):
    """A model of two parallel components, given by what they predict."""
    coef = np.linalg.lstsq(rows.design, theta, rcond=None)[0].T
    return Parameters.point(coef, np.array([0.5, 1.0]), np.array([0.4, 0.4]), ("a", "b"))


@few
@given(seeds, st.booleans(), st.booleans())
def test_the_response_has_unit_spread_and_no_row_counts_twice(seed, intercept, weighted):
    drawn = sample(seed, intercept=intercept, weighted=weighted)
    rows, units = whitened_rows(drawn, intercept=intercept)
    assert rows.spread() == pytest.approx(1)
    # The mean row counts as one, and no row as more.
    np.testing.assert_allclose(rows.weights, np.minimum(drawn.weights / drawn.weights.mean(), 1))
    np.testing.assert_allclose(rows.y * units.y_scale + units.y_center, drawn.y)
    assert (units.y_center == 0) == (not intercept)
    assert rows.width == 3 + intercept
    assert rows.features.shape == (200, 3)
    if intercept:
        assert (rows.design[:, 0] == 1).all()
    # The background is in the middle of the response and about as wide as it.
    middle = (units.middle - units.y_center) / units.y_scale
    wanted = stats.t.logpdf(rows.y, 2, loc=middle, scale=units.width / units.y_scale)
    np.testing.assert_allclose(rows.log_background, wanted, rtol=1e-9)
    assert units.width / units.y_scale >= 1


@few
@given(seeds, st.booleans())
def test_coefficients_go_back_and_forth(seed, intercept):
    drawn = sample(seed, intercept=intercept)
    rows, units = whitened_rows(drawn, intercept=intercept)
    coef = np.random.default_rng(seed).standard_normal((2, rows.width))
    theta = units.back(coef)
    wanted = (rows.design @ coef.T) * units.y_scale + units.y_center
    np.testing.assert_allclose(drawn.Z @ theta.T, wanted, atol=1e-8)
    np.testing.assert_allclose(units.forth(theta), coef, atol=1e-8)


@few
@given(seeds, st.integers(1, 8), st.booleans())
def test_all_slopes_together_predict_the_same_spread_whatever_their_number(seed, d, intercept):
    rows, _ = whitened_rows(sample(seed, d=d, intercept=intercept), intercept=intercept)
    deviation = rows.prior.deviation
    assert (deviation[int(intercept) :] ** 2).sum() == pytest.approx(2)
    if intercept:
        assert deviation[0] == pytest.approx(2)
    assert deviation.shape == (rows.width,)


@few
@given(seeds, st.floats(0.01, 1.0))
def test_noise_ends_at_the_resolution_of_the_response(seed, step):
    drawn = sample(seed)
    rounded = Sample(drawn.Z, np.round(drawn.y / step) * step, drawn.weights)
    plain, _ = whitened_rows(drawn, intercept=True)
    rows, units = whitened_rows(rounded, intercept=True)
    assert rows.smallest_scale * units.y_scale == pytest.approx(step / np.sqrt(2 * np.pi), rel=1e-3)
    assert plain.smallest_scale < 1e-4
    # Its prior density is the same in both, as far as they have a range in common.
    assert rows.prior.log_span == pytest.approx(plain.prior.log_span, abs=0.05)


@few
@given(seeds, st.sampled_from([1e-6, 0.3, 1e4]), st.floats(-100, 100), st.booleans())
def test_the_unit_of_the_response_changes_nothing(seed, unit, shift, intercept):
    """Scores are of responses in units of their spread: not even the Jacobian is left."""
    drawn = sample(seed, intercept=intercept)
    shift = shift if intercept else 0.0
    moved = Sample(drawn.Z, unit * (drawn.y + shift), drawn.weights)
    rows, units = whitened_rows(drawn, intercept=intercept)
    again, other = whitened_rows(moved, intercept=intercept)
    np.testing.assert_allclose(again.y, rows.y, atol=1e-6)
    assert other.y_scale == pytest.approx(unit * units.y_scale)
    assert other.width == pytest.approx(unit * units.width)
    model = model_through(rows, np.column_stack([rows.y, rows.y + 1]))
    assert evaluate(again, model).score == pytest.approx(evaluate(rows, model).score, abs=1e-3)


@few
@given(seeds, st.floats(0.2, 5.0), st.booleans())
def test_at_a_fixed_model_the_score_changes_by_the_jacobian(seed, unit, intercept):
    """In the user's units the density of every response is that over its unit."""
    drawn = sample(seed, intercept=intercept)
    rows, units = whitened_rows(drawn, intercept=intercept)
    nothing = evaluate(rows, Parameters.point(*_none(rows.width), ()))
    score = nothing.score - rows.n * np.log(units.y_scale)
    moved = Sample(drawn.Z, unit * drawn.y, drawn.weights)
    again, other = whitened_rows(moved, intercept=intercept)
    empty = evaluate(again, Parameters.point(*_none(rows.width), ()))
    there = empty.score - rows.n * np.log(other.y_scale)
    assert there == pytest.approx(score - rows.n * np.log(unit), abs=1e-6)


def _none(width):
    return np.empty((0, width)), np.empty(0), np.empty(0)


@few
@given(seeds, st.booleans())
def test_an_affine_recoding_of_features_changes_nothing(seed, weighted):
    """The whitened rows are turned, no more, and all slopes have the same prior."""
    drawn = sample(seed, weighted=weighted)
    rng = np.random.default_rng(seed + 1)
    recoded = drawn.Z[:, 1:] @ _well_conditioned(rng, 3) + 3 * rng.standard_normal(3)
    again = Sample(np.column_stack([np.ones(len(recoded)), recoded]), drawn.y, drawn.weights)
    one, _ = whitened_rows(drawn, intercept=True)
    other, _ = whitened_rows(again, intercept=True)
    # Far rows are told by their length in scaled columns at first: whitening moves a little.
    theta = one.design @ rng.standard_normal((one.width, 2))
    before = evaluate(one, model_through(one, theta)).score
    after = evaluate(other, model_through(other, theta)).score
    assert after == pytest.approx(before, abs=0.5)


def _well_conditioned(rng, d):
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return turn * rng.uniform(0.2, 5.0, d)


@few
@given(seeds, st.booleans(), st.booleans())
def test_parts_of_rows_keep_background_and_prior(seed, intercept, outliers):
    rows, _ = whitened_rows(
        sample(seed, intercept=intercept), intercept=intercept, outliers=outliers
    )
    index = np.random.default_rng(seed).permutation(rows.n)[:50]
    part = rows.take(index)
    assert part.n == 50
    assert part.outliers == outliers
    np.testing.assert_array_equal(part.log_background, rows.log_background[index])
    np.testing.assert_array_equal(part.design, rows.design[index])
    np.testing.assert_array_equal(rows.head(7).y, rows.y[:7])
    assert part.prior is rows.prior
    coef = np.ones(rows.width)
    np.testing.assert_allclose(rows.around(coef).y, rows.y - rows.design.sum(axis=1))
    alone = rows.constants()
    assert alone.width == 1
    assert (alone.design == float(intercept)).all()
    np.testing.assert_array_equal(alone.log_background, rows.log_background)


@pytest.mark.parametrize("kind", ["constant", "mostly one value", "two values"])
def test_responses_of_few_values_have_usable_units(kind):
    rng = np.random.default_rng(0)
    y = {
        "constant": np.full(50, 7.0),
        "mostly one value": np.where(np.arange(50) < 3, 9.0, 7.0),
        "two values": rng.integers(0, 2, 50).astype(float),
    }[kind]
    design = np.column_stack([np.ones(50), rng.standard_normal(50)])
    rows, units = whitened_rows(Sample(design, y, np.ones(50)), intercept=True)
    assert units.y_scale > 0
    assert np.isfinite(rows.log_background).all()
    assert rows.prior.log_precision[0] < rows.prior.log_precision[1]
    model = Parameters.point(np.zeros((1, 2)), np.ones(1), np.array([0.9]), ("test",))
    assert np.isfinite(evaluate(rows, model).score)
