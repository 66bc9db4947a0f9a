"""State evolution: against an integral over all responses, closed forms, and its own threshold."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from lab.state_evolution import passing_errors
from regimix.errors import ParameterError
from regimix.theory import passing_rows


def information(v, p, noise, others):
    """Integrate the squared score of a row over all responses and messages, on a grid."""
    total = v + noise**2
    scores = []
    messages = np.linspace(-6, 6, 161)
    for m in messages * math.sqrt(max(1 - v, 0)):
        steps = np.linspace(-9, 9, 4001)
        y = np.unique(np.concatenate([steps, m + steps * math.sqrt(total)]))
        own, rest = p * norm.pdf(y, m, math.sqrt(total)), (1 - p) * norm.pdf(y, 0, others)
        scores.append(np.trapezoid(own**2 / (own + rest + 1e-300) * ((y - m) / total) ** 2, y))
    return np.trapezoid(np.array(scores) * norm.pdf(messages), messages)


@pytest.mark.parametrize(
    ("delta", "p", "noise", "others"),
    [(2.0, 0.5, 0.01, 1.0), (8.0, 0.1, 0.3, 2.5), (0.7, 0.9, 0.05, 0.6), (4.0, 0.3, 0.1, 1.0)],
)
def test_a_round_adds_up_the_information_of_all_rows(delta, p, noise, others):
    errors = passing_errors(delta, p, noise=noise, others=others, rounds=3)
    for before, after in pairwise(errors):
        expected = 1 / (1 + delta * information(before, p, noise, others))
        assert after == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(("delta", "noise"), [(0.5, 0.3), (2.0, 0.3), (5.0, 0.01)])
def test_without_other_rows_it_ends_at_ridge_regression(delta, noise):
    end = passing_errors(delta, 1.0, noise=noise)[-1]
    assert end == pytest.approx(1 / (1 + delta / (end + noise**2)), rel=1e-4)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
def test_the_threshold_is_where_the_recursion_stops_being_stuck(noise):
    for beside in (0.5, 2.0):
        own = passing_rows(beside, noise=noise)
        stuck, found = (
            passing_errors(beside + k, k / (beside + k), noise=noise)[-1]
            for k in (0.97 * own, 1.03 * own)
        )
        assert stuck > 0.1 > found


def test_errors_fall_from_one():
    errors = passing_errors(4.0, 0.5, noise=0.1, rounds=7)
    assert errors.shape == (8,)
    assert errors[0] == 1.0
    assert (np.diff(errors) < 0).all()


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ParameterError, match="share"):
        passing_errors(3.0, 0.0)
    with pytest.raises(ParameterError, match="noise must be 0 or more"):
        passing_errors(3.0, 0.5, noise=-1.0)
