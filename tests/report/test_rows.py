"""The rows that a report shows carry the labels of the fit where they are its rows."""

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.report.rows import read_rows
from regimix.synth import make_mlrc


@pytest.mark.parametrize("options", [{}, {"keep": 0.8}, {"search": "net", "n_components": 2}])
def test_rows_of_the_fit_keep_their_labels(options):
    X, y, _ = make_mlrc(300, 2, 2, noise=0.2, corruption=0.05, random_state=0)
    fit = MixedLinearRegression(random_state=0, **options).fit(X, y)
    rows = read_rows(fit.mixture_, X, y, None)
    assert rows.fitted
    np.testing.assert_array_equal(rows.labels, fit.labels_)
    others = read_rows(fit.mixture_, X[::-1], y[::-1], None)
    assert not others.fitted
    np.testing.assert_array_equal(others.labels, fit.assign(X[::-1], y[::-1]))
