"""The rows that a report shows carry the labels of the fit where they are its rows."""

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.report.rows import read_rows
from regimix.synth import make_mlrc


@pytest.mark.filterwarnings("ignore::regimix.errors.EvidenceWarning")  # outliers need a place
@pytest.mark.filterwarnings("ignore::regimix.errors.RivalWarning")  # or heavy tails
@pytest.mark.parametrize("keep_rows", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"outliers": 0.2},
        {"outliers": False, "n_components": 2},
        {"search": "partition", "n_components": 2},
        {"search": "net", "n_components": 2},
    ],
)
def test_rows_of_the_fit_keep_their_labels(options, keep_rows):
    X, y, _ = make_mlrc(300, 2, 2, noise=0.2, corruption=0.05, random_state=0)
    fit = MixedLinearRegression(random_state=0, keep_rows=keep_rows, **options).fit(X, y)
    rows = read_rows(fit.mixture_, X, y, None)
    assert rows.fitted
    np.testing.assert_array_equal(rows.labels, fit.labels_)
    others = read_rows(fit.mixture_, X[::-1], y[::-1], None)
    assert not others.fitted
    np.testing.assert_array_equal(others.labels, fit.assign(X[::-1], y[::-1]))


def test_other_rows_than_those_of_the_fit_are_not_taken_for_them():
    """As many, of the same law, in one regime and without an outlier."""
    X, y, _ = make_mlrc(300, 2, 1, noise=0.2, random_state=0)
    mixture = MixedLinearRegression(n_components=1, random_state=0).fit(X, y).mixture_
    assert read_rows(mixture, X, y, None).fitted
    assert read_rows(mixture, X.astype(np.float32), y.astype(np.float32), None).fitted
    other, response, _ = make_mlrc(300, 2, 1, noise=0.2, random_state=1)
    assert not read_rows(mixture, other, response, None).fitted
    assert not read_rows(mixture, X, y + 1, None).fitted
