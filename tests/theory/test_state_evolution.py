"""State evolution: the rows that message passing needs."""

import math

import pytest

from regimix.errors import ParameterError
from regimix.theory import passing_rows


def test_more_outliers_and_more_noise_need_more_rows():
    rows = [passing_rows(beside, noise=0.01) for beside in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert rows == sorted(rows)
    assert rows[0] == 1.0  # as many rows as coefficients
    assert passing_rows(1.0, noise=0.5) > passing_rows(1.0, noise=0.01)
    # Outliers that are far wider than the component are known at once.
    assert passing_rows(2.0, noise=0.01, others=30.0) < passing_rows(2.0, noise=0.01)
    assert passing_rows(1.0, noise=1e4) == math.inf


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ParameterError, match="outliers_per_coefficient must be 0 or more"):
        passing_rows(-1.0)
