"""Cases that broke something once, and the generator itself."""

import numpy as np
import pytest

from tests.fuzz.tables import CALLS, CHOICES, Case, draw, failure, make, simplest

FOUND = [
    Case(seed=1110, call="net by gradients", weights="tiny and huge"),
    Case(seed=20003, call="a tenth of outliers", rows=10, columns=1, weights="tiny and huge"),
    Case(seed=20155, call="no intercept", columns=1, weights="tiny and huge"),
    Case(seed=20222, call="no intercept", rows=2),
    Case(seed=20377, call="net by gradients", rows=3, columns=1, container="int"),
    Case(seed=20508, call="trimmed to half", rows=2, columns=1, cell="date", container="polars"),
    Case(seed=0, cell="far", rows=60),
    Case(seed=0, call="mixture", names="mixed", container="pandas"),
    Case(seed=0, call="trimmed", names="mixed", container="pandas"),
    Case(seed=0, call="any regressor", cell="text"),
    Case(seed=0, call="any classifier", cell="nan", container="list"),
    Case(seed=71000148, call="trimmed by cg", rows=2, columns=4, numbers="0/1"),
    Case(seed=72000068, call="any regressor", rows=0, columns=1, container="list"),
    Case(72000128, "mixture of 2", rows=2, response="exact", weights="tiny and huge"),
    Case(80002085, "no intercept", rows=3, columns=1, unit=1e-120, y_unit=1e120),
    Case(80005010, "net by cg", rows=2, weights="tiny and huge"),
    Case(73000522, "trimmed", rows=2, response="noise", weights="tiny and huge"),
    Case(73000638, "any classifier", rows=2, container="float32", weights="tiny and huge"),
    Case(95000281, "net", rows=2, columns=1, cell="y far"),
    Case(80003199, "mixture of 2", rows=2, y_unit=1e-120, weights="tiny and huge"),
    Case(42421877, "any regressor", rows=10, cell="too large", y_unit=1e-30),
    Case(42422319, "no outliers", columns=1, weights="tiny and huge"),
    Case(918358, "partition", rows=2, columns=1),
    Case(32354, "global", rows=2, columns=1, response="few values", y_unit=1e120),
    Case(32856, "no intercept", rows=150, response="constant", cell="y far"),
    Case(33929, "global", rows=2, columns=30, unit=1e-30, container="int"),
    Case(557336, "any regressor", rows=2, unit=1e120, container="float32"),
    Case(50012373, "any regressor", rows=150, columns=1, unit=1e30, weights="tiny and huge"),
    Case(60000004, "report", rows=2, columns=1, y_unit=1e-30),
    Case(60000107, "short", rows=2, weights="huge"),
    Case(60000256, "any regressor", rows=2, columns=1, weights="one number"),
    Case(60000452, "report alone", columns=1, unit=1e-120),
    Case(60001117, "trimmed to all", rows=1, cell="nan", container="nullable"),
    Case(61001528, "any classifier", rows=2, columns=1, cell="y text"),
    Case(61001696, "stability", columns=4, weights="tiny and huge"),
    Case(71000199, "any regressor from few rows", rows=2, columns=0),
    Case(71000339, "any regressor from few rows", rows=0, columns=1),
    Case(81001167, "report", rows=10, response="constant", cell="far"),
    Case(81001628, "bootstrap", rows=5, columns=1, unit=1e-120, y_unit=1e120),
    Case(92000017, "compare", rows=10, columns=1, unit=1e-120, y_unit=1e120),
    Case(92000522, "compare", rows=3, numbers="constant", unit=1e-120, y_unit=1e120),
    Case(92001312, "theory", rows=2, columns=1, numbers="constant", unit=1e120, y_unit=1e120),
    Case(92004691, "report alone", columns=3, numbers="collinear", unit=1e-120, y_unit=1e120),
    Case(112001702, "report", unit=1e30, weights="tiny and huge"),
    Case(62001421, "theory", rows=150, columns=30, unit=1e30, weights="tiny and huge"),
    Case(5000448, "any regressor", rows=3, columns=1, container="extended"),
    Case(4000375, "other rows", rows=2, columns=1, container="moments"),
    Case(1722304, "gating", rows=3, columns=1, container="polars"),
    Case(0, "other rows", rows=40, container="pandas"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", FOUND, ids=lambda case: f"{case.call}-{case.seed}")
def test_what_broke_once(case):
    assert failure(case, seconds=600) is None


def test_cases_come_again_and_every_choice_comes():
    cases = [draw(seed) for seed in range(2000)]
    assert cases[7] == draw(7)
    for name, some in CHOICES.items():
        assert {getattr(case, name) for case in cases} == set(some)
    first, second = make(Case(seed=3)), make(Case(seed=3))
    assert np.array_equal(first[0], second[0])


def breaks(how):
    """A call that breaks a rule when the table has a column of ones and zeros."""

    def call(X, y, weights):
        if np.isin(X, [0, 1]).all():
            how(X)
        return ()

    return call


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (lambda X: [][0], "IndexError"),
        (lambda X: np.log(X - 1), "RuntimeWarning"),
        (lambda X: X.fill(7.0), "the input was changed"),
    ],
)
def test_what_breaks_is_seen_and_made_simpler(monkeypatch, how, words):
    monkeypatch.setitem(CALLS, "mixture", breaks(how))
    case = Case(seed=5, rows=150, columns=12, numbers="0/1", response="heavy", weights="counts")
    found = failure(case)
    assert words in found
    small = simplest(case, found)
    assert small.numbers == "0/1"
    assert (small.response, small.weights, small.columns) == ("regimes", "none", 1)
    namespace = {}
    exec(small.snippet().replace("print(", "found = ("), namespace)
    assert words in namespace["found"]


def test_an_answer_that_is_not_finite_is_seen(monkeypatch):
    monkeypatch.setitem(CALLS, "mixture", lambda X, y, weights: (np.array([np.nan]),))
    assert failure(Case()) == "an answer that is not finite, 0 of those returned"
