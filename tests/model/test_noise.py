"""Laws of the noise of a regime, beside scipy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from regimix.model.laws import NORMAL, NoiseLaw

degrees = st.floats(0.5, 200.0)
squares = st.lists(st.floats(0.0, 1e8), min_size=1, max_size=8).map(np.array)
LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)


@given(degrees, squares)
def test_the_kernel_is_students_density(nu, far):
    log_density, _, _ = NoiseLaw(nu).kernel(far)
    wanted = stats.t.logpdf(np.sqrt(far), nu)
    np.testing.assert_allclose(log_density - LOG_ROOT_2PI, wanted, rtol=1e-6, atol=1e-7)


@given(degrees, squares)
def test_density_is_slack_less_half_the_weighted_square(nu, far):
    log_density, weight, slack = NoiseLaw(nu).kernel(far)
    np.testing.assert_allclose(slack - 0.5 * weight * far, log_density, rtol=1e-9, atol=1e-9)
    # The weight is the slope of the density: the bound touches it.
    step = 1e-6 * (nu + far)
    beyond, before = NoiseLaw(nu).kernel(far + step)[0], NoiseLaw(nu).kernel(far)[0]
    np.testing.assert_allclose(-2 * (beyond - before) / step, weight, rtol=1e-3, atol=1e-9)


@given(degrees, st.floats(0, 1e4), st.floats(0, 1e4))
def test_the_bound_holds_at_every_other_square(nu, here, there):
    """At one row's best weight the quadratic is below the density, wherever the row may be."""
    law = NoiseLaw(nu)
    _, weight, slack = (float(part[0]) for part in law.kernel(np.array([here])))
    log_density = float(law.kernel(np.array([there]))[0][0])
    assert slack - 0.5 * weight * there <= log_density + 1e-7 * (1 + abs(log_density))


@given(squares)
def test_infinitely_many_degrees_are_the_normal_law(far):
    log_density, weight, slack = NORMAL.kernel(far)
    np.testing.assert_allclose(log_density - LOG_ROOT_2PI, stats.norm.logpdf(np.sqrt(far)))
    assert weight is None
    assert slack is None
    near = np.minimum(far, 10.0)
    np.testing.assert_allclose(
        NoiseLaw(1e7).kernel(near)[0], NORMAL.kernel(near)[0], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("nu", [1.0, 4.0, np.inf])
def test_draws_follow_the_law(nu):
    drawn = NoiseLaw(nu).draw(20_000, np.random.default_rng(0))
    law = stats.norm if np.isinf(nu) else stats.t(nu)
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-4
