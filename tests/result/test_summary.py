"""Summaries: numbers in a frame, a table that fits a terminal, and reports on demand."""

import builtins
import dataclasses
import re
import sys
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix import global_ilts
from regimix.errors import MissingExtraError
from regimix.result import summary
from regimix.result.answer import WIDTH
from regimix.result.inference import Inference
from regimix.result.summary import MOST_TERMS
from regimix.search.settings import Settings
from tests.result.test_inference import far_apart, fitted, known_mixture
from tests.result.test_mixture import mixture_of

pytestmark = pytest.mark.usefixtures("searched_once")

seeds = st.integers(0, 2**32 - 1)
COLUMNS = ["component", "term", "coef", "std_err", "t", "p_value", "lower", "upper"]


def named_fit():
    X, y, truth = far_apart(0, n=200)
    frame = pd.DataFrame(X, columns=["age", "height", "a_very_long_name_of_a_column"])
    return fitted(frame, y, truth)


# --- frames ---------------------------------------------------------------------------------------


def test_the_frame_has_one_row_for_each_component_and_term():
    mixture = named_fit()
    frame = mixture.summary_frame(0.9)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == COLUMNS
    terms = ["intercept", "age", "height", "a_very_long_name_of_a_column"]
    assert frame["term"].tolist() == terms * 2
    assert frame["component"].tolist() == [0] * 4 + [1] * 4
    bounds = mixture.conf_int(0.9)
    for j in range(2):
        part = frame[frame["component"] == j].set_index("term")
        np.testing.assert_array_equal(part.loc[terms[1:], "coef"], mixture.coef[j])
        assert part.loc["intercept", "coef"] == mixture.intercept[j]
        assert part.loc["intercept", "std_err"] == mixture.inference.intercept_error[j]
        np.testing.assert_array_equal(part.loc["age", ["lower", "upper"]], bounds[j, 0])
        np.testing.assert_array_equal(part.loc["intercept", ["lower", "upper"]], bounds[j, -1])
        np.testing.assert_array_equal(part.loc[terms[1:], "t"], mixture.t_values()[j, :3])
        np.testing.assert_array_equal(part.loc[terms[1:], "p_value"], mixture.p_values()[j, :3])
    pd.testing.assert_frame_equal(mixture.summary(0.9).frame(), frame)


def test_without_an_intercept_there_is_no_such_term():
    mixture = known_mixture(fit_intercept=False)
    assert mixture.summary_frame()["term"].tolist() == ["x0", "x0"]
    assert not re.search("^intercept", str(mixture.summary()), re.MULTILINE)


def test_polars_takes_the_place_of_pandas_and_neither_is_an_error(monkeypatch):
    mixture = known_mixture()
    monkeypatch.setitem(sys.modules, "pandas", None)
    frame = mixture.summary_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == COLUMNS
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match="pandas or polars"):
        mixture.summary_frame()
    assert str(mixture.summary())


# --- the printed table ----------------------------------------------------------------------------


def test_it_prints_as_a_table():
    mixture = known_mixture(
        labels=np.array([0] * 6 + [1] * 3 + [-1]),
        outlier_share=0.12,
        doubtful_rows=2,
        feature_names=("stretchratio",),
        target_name="tuned",
        scale=np.array([0.5, 12345.6]),
    )
    assert str(mixture.summary(0.9)).splitlines() == [
        "                           Mixture of linear regimes",
        "=" * 80,
        "Response:                        tuned    Regimes:                             2",
        "Features:                            1    Outliers, by label:          1 (10.0%)",
        "Rows:                               10    Outliers, share:                 12.0%",
        "Rows in doubt:               2 (20.0%)    R², each by its regime:          0.800",
        "Evidence, nats:                   12.5    R², expected response:               –",
        "Seed:                                3    R², least squares:                   –",
        "=" * 80,
        "Regime 0                       share 60.0%, 6 rows by label, noise 0.5, R² 0.900",
        "-" * 80,
        "                            coef   std err        t  P>|t|      [0.05      0.95]",
        "-" * 80,
        "intercept                   0.00      0.20        0  1.000      -0.36       0.36",
        "stretchratio                1.00      0.10       10 <0.001       0.82       1.18",
        "=" * 80,
        "Regime 1                    share 30.0%, 3 rows by label, noise 12,346, R² 0.500",
        "-" * 80,
        "                            coef   std err        t  P>|t|      [0.05      0.95]",
        "-" * 80,
        "intercept                   1.00      0.22     4.47 <0.001       0.62       1.38",
        "stretchratio                0.00      0.17        0  1.000      -0.29       0.29",
        "=" * 80,
        "Errors, tests and intervals are conditional on the regimes that were found. Rows",
        "of uncertain label count by their probabilities, and widen them.",
        "R² of a regime is that among the rows sorted to it, by their probabilities.",
    ]
    assert repr(mixture.summary()) == str(mixture.summary())


def shown_rows(mixture):
    """What a summary says about numbers of rows: all, outliers, each regime."""
    text = str(mixture.summary())
    found = re.findall(r"(?:Rows|Outliers, by label): +(\d+) ", text)[::-1]
    return [int(number) for number in (*found, *re.findall(r", (\d+) rows by label, ", text))]


def test_rows_are_counted_by_weights_that_count():
    X, y, truth = far_apart(2, n=200)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    mixture = fitted(X, y, truth, sample_weight=weights)
    counts = [int(weights[mixture.labels == label].sum()) for label in (-1, 0, 1)]
    assert shown_rows(mixture) == [weights.sum(), *counts]
    held = fitted(X, y, truth, sample_weight=weights, keep_rows=True)
    assert shown_rows(held) == [weights.sum(), *counts]
    # Without counts nothing is said: shares are no counts.
    assert shown_rows(dataclasses.replace(mixture, label_counts=None)) == [weights.sum()]
    # Importances count nothing; absent rows are absent.
    mixture = fitted(X, y, truth, sample_weight=0.3 * weights)
    present = mixture.labels[weights > 0]
    expected = [np.count_nonzero(present == label) for label in (-1, 0, 1)]
    assert shown_rows(mixture) == [present.size, *expected]


def test_numbers_that_are_too_wide_for_their_column_have_fewer_digits():
    known = dataclasses.replace(known_mixture(), coef=np.array([[123456.789], [1e6]]))
    inference = dataclasses.replace(
        known.inference, standard_error=np.array([[1e-6], [0.5]]), covariance=None
    )
    lines = str(dataclasses.replace(known, inference=inference).summary()).splitlines()
    terms = [line.split() for line in lines if line.startswith("x0")]
    assert [cells[1:4] for cells in terms] == [
        ["123,457", "1e-6", "1.23e11"],
        ["1,000,000", "0.5", "2e6"],
    ]


def test_fits_by_label_say_what_they_take_for_granted():
    text = str(known_mixture(settings=Settings(outliers=0.1)).summary())
    assert "conditional on the labels" in text
    net = str(known_mixture(settings=Settings(search="net")).summary())
    assert "Evidence, nats:                      –" in net


def wide_mixture(rng, d, m=2, size=1.0):
    error = np.abs(size * rng.standard_normal((m, d + 1)))
    found = Inference(
        standard_error=error[:, :-1],
        intercept_error=error[:, -1],
        degrees=np.full(m, 50.0),
        r_squared=np.full(m, -0.12345),
        r_squared_overall=float("nan"),
        size=np.full(m, 60.0),
        notes=("", "its rows determine 3 of 4 coefficients")[:m],
    )
    names = tuple("n" * int(rng.integers(1, 40)) + str(i) for i in range(d))
    coef = size * rng.standard_normal((m, d)) * 10.0 ** rng.integers(-3, 4, (m, d))
    return mixture_of(coef, inference=found, feature_names=names, target_name="y" * 50)


@settings(max_examples=30)
@given(seeds, st.integers(1, 60), st.sampled_from([1e-12, 1e-3, 1.0, 1e5, 1e12]))
def test_tables_stay_within_their_width_and_columns_apart(seed, d, size):
    mixture = wide_mixture(np.random.default_rng(seed), d, size=size)
    lines = str(mixture.summary()).splitlines()
    assert max(map(len, lines)) <= WIDTH
    terms = [line for line in lines if line.startswith(("n", "intercept"))]
    assert len(terms) == 2 * min(d + 1, MOST_TERMS)
    assert all(len(line.split()) == 7 for line in terms)
    assert "Note: its rows determine 3 of 4 coefficients." in lines


def test_of_many_terms_those_that_matter_are_shown():
    mixture = wide_mixture(np.random.default_rng(0), 50, m=1)
    lines = str(mixture.summary()).splitlines()
    sizes = np.sort(np.abs(mixture.t_values()[0, :-1]))[::-1]
    first = next(i for i, line in enumerate(lines) if line.startswith("intercept"))
    shown = [
        abs(float(line.split()[3].replace(",", "")))
        for line in lines[first + 1 : first + MOST_TERMS]
    ]
    np.testing.assert_allclose(shown, sizes[: MOST_TERMS - 1], rtol=0.05, atol=0.01)
    left = lines[first + MOST_TERMS]
    assert left.startswith("... 31 more terms, |t| up to ")
    assert left.endswith("; summary_frame() has all")
    assert len(left) <= WIDTH


def test_exact_and_open_coefficients_can_be_printed():
    X, y, truth = far_apart(0, n=200, noise=0.0)
    exact = fitted(np.column_stack([X, X[:, 0]]), y, widened(truth))
    lines = str(exact.summary()).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert sum("–" in line for line in lines) == 4  # two copies of a column, in two regimes
    assert sum(line.startswith("Note: its rows determine 4 of 5") for line in lines) == 2


def widened(truth):
    return dataclasses.replace(truth, coef=np.column_stack([truth.coef, np.zeros(2)]))


def test_fits_of_every_kind_have_a_summary():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)  # nothing to be found
    for options in ({}, {"outliers": 0.1}, {"search": "net"}, {"fit_intercept": False}):
        mixture = global_ilts(X, y, random_state=0, **options)
        assert max(map(len, str(mixture.summary()).splitlines())) <= WIDTH
        assert len(mixture.summary_frame()) == mixture.n_components * (
            2 + options.get("fit_intercept", False)
        )


# --- reports --------------------------------------------------------------------------------------


def test_reports_are_written_by_their_own_folder(monkeypatch):
    calls = []
    folder = types.ModuleType("regimix.report")
    folder.write = lambda *given, **options: calls.append((given, options))
    notebook = types.ModuleType("regimix.report.notebook")
    notebook.mixture_html = lambda mixture: f"<b>{mixture.n_components}</b>"
    monkeypatch.setitem(sys.modules, "regimix.report", folder)
    monkeypatch.setitem(sys.modules, "regimix.report.notebook", notebook)
    mixture = known_mixture()
    mixture.report("page.html", [[1.0]], [2.0], title="T")
    assert calls == [(("page.html", mixture, [[1.0]], [2.0]), {"title": "T"})]
    assert mixture._repr_html_() == "<b>2</b>"


def test_notebooks_without_the_extra_show_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "regimix.report.notebook", None)
    assert known_mixture()._repr_html_() is None
    assert builtins.str(known_mixture()).startswith("2 linear regimes")


def test_names_and_seeds_of_any_kind_are_printed_in_their_place():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a\x1b[31mred", "b\x07\r\n"])
    y = X.to_numpy() @ [1.0, 2.0]
    mixture = global_ilts(X, y, random_state=10**400)
    for text in (str(mixture), repr(mixture), str(mixture.summary())):
        assert "".join(text.split("\n")).isprintable()
    assert max(map(len, str(mixture.summary()).split("\n"))) <= WIDTH


def test_a_t_value_is_rounded_once_and_next_to_nothing_is_nothing():
    """The report writes the same digits: -3.37, not -3.38 by way of -3.375."""
    assert summary.print_cells(np.array([-3.7, 1.1, -3.37497, 0.001, -5.9, -1.5]))[2] == "-3.37"
    assert summary.print_cells(np.array([0.0, 1.0, 3e-17, 1.0, -2.0, 2.0]))[2] == "0"
    assert summary.print_cells(np.array([0.0, *[np.nan] * 5]))[1:] == ("–",) * 5
