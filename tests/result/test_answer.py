"""The answer: the same words and numbers for every display."""

from dataclasses import replace

import numpy as np
import pytest

from regimix import global_ilts
from regimix.errors import StopReason
from regimix.report.page import selection
from regimix.result.answer import Answer, closest, distances, granted, other_criteria
from regimix.result.inference import Inference
from regimix.search.selection import Selection
from regimix.search.settings import Settings
from regimix.theory.audit import _supported
from regimix.words import bare
from tests.result.test_mixture import mixture_of

pytestmark = pytest.mark.usefixtures("searched_once")


def test_where_there_are_no_outliers_none_are_shown():
    none = {"outlier_share": 0.0, "labels": np.zeros(10, dtype=np.int64)}
    assert Answer(mixture_of([[1.0]], **none)).outliers is None
    assert "outliers" not in str(mixture_of([[1.0]], **none))
    part = none | {"outlier_share": 0.05}  # of ten rows: half a row, to be expected of new ones
    new = Answer(mixture_of([[1.0]], **part)).outliers
    assert (new.share, new.rows) == ("5.0%", "0")
    labels = np.array([0] * 9 + [-1])
    one = Answer(mixture_of([[1.0]], outlier_share=1e-9, labels=labels)).outliers
    assert (one.index, one.share, one.rows) == (-1, "<0.1%", "1")
    unlabelled = {"labels": np.empty(0, dtype=np.int64)}
    shares = {"weights": np.array([0.98]), "outlier_share": 0.02}
    assert Answer(mixture_of([[1.0]], **unlabelled, **shares)).outliers.share == "2.0%"


# The first three end the fit of one component.
@pytest.mark.parametrize("reason", list(StopReason)[3:])
def test_every_reason_to_stop_is_a_sentence(reason):
    found = Answer(mixture_of([[1.0]], stopped=str(reason)))
    assert found.ended.startswith(("Search finished: ", "Search ended early: "))
    assert found.ended.endswith(".")
    assert "_" not in found.ended
    early = reason in ("max_starts", "time_limit", "callback", "interrupted")
    assert found.ended.startswith("Search ended early") == early == bool(found.notices)


def test_an_unknown_reason_of_a_foreign_file_is_shown_as_it_is():
    found = Answer(mixture_of([[1.0]], stopped="what\nelse"))
    assert found.ended == "Search finished: what else."


def test_a_response_of_few_values_is_called_one():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    counts = np.minimum(rng.poisson(np.exp(0.3 * x[:, 0])), 5.0)
    mixture = global_ilts(x, counts, n_components=1, random_state=0)
    said = bare(Answer(mixture).coarse)
    values = np.unique(counts).size
    few = f"y takes only {values} different values, at least 1 apart, and the"
    assert said.startswith(f"{few} noise is ")
    # One relation through several of the values is not one of them.
    assert "one of these values" not in said
    each = ("coef", "intercept", "weights", "scale")
    two = replace(mixture, **{name: np.repeat(getattr(mixture, name), 2, 0) for name in each})
    assert f"{few} smallest noise" in bare(Answer(two).coarse)
    assert "a regime may be one of these values" in bare(Answer(two).coarse)
    assert said in " ".join(str(mixture).split())
    assert Answer(mixture).coarse in Answer(mixture).notices
    # Given these values, nothing else is a regime that they could be taken for.
    assert mixture.given_values
    assert said.endswith("whatever their law. A model for counts or classes may suit better.")
    mixture = replace(mixture, gain_of_line=0.0)
    assert "evidence" not in Answer(mixture).coarse
    # As many values where the noise hides the steps, and exact prices, are like any response.
    noisy = replace(mixture, scale=mixture.scale + 2)
    prices = replace(mixture, rows=replace(mixture.rows, values=200, step=0.01))
    for other in (noisy, prices, replace(mixture, rows=None)):
        assert Answer(other).coarse == ""
        assert "different values" not in str(other)
    smooth = global_ilts(x, x[:, 0] + rng.normal(size=300), n_components=1, random_state=0)
    assert smooth.rows.step == 0.0
    assert Answer(smooth).coarse == ""


def test_one_second_is_singular():
    mixture = mixture_of([[1.0]])
    for took, said in (1.0, "1 second,"), (1.5, "1.5 seconds,"), (102.3, "102 seconds,"):
        assert said in Answer(replace(mixture, timings={"search": took})).details


def test_nothing_denies_what_all_rows_together_show():
    nothing = mixture_of([[1.0]], evidence=-2.5, settings=Settings())
    seen = replace(nothing, gain_of_line=59.13)
    assert "do not support any" in Answer(nothing).sure
    assert Answer(nothing).given_values == ""
    assert not seen.given_values
    assert "do not support" not in Answer(seen).sure
    assert "although all rows together show a relation" in Answer(seen).sure
    assert "a line through all rows gains 59.13 nats" in Answer(seen).given_values
    assert Answer(seen).given_values in Answer(seen).lead
    # Where that is the evidence, it is told once.
    found = replace(seen, evidence=20.0)
    assert found.given_values
    assert Answer(found).given_values == ""
    # It is not over constants, nor what independent searches looked for.
    over = "20 nats {} other orders of the same values"
    assert over.format("over") in Answer(found).sure
    assert over.format("more than") in _supported(found).words
    searched = replace(found, search_evidence=(1.0, 2.0, 3.0), n_agreed=1)
    assert Answer(searched).unrepeated == ""
    assert Answer(replace(searched, gain_of_line=0.0)).unrepeated
    path = Selection(np.array([1, 2]), np.array([20.0, -9.0]), np.ones(2), np.ones(2), chosen=1)
    for settings in Settings(), Settings(n_components=1):
        words = selection(replace(found, selection=path, settings=settings))["words"]
        assert "that of one regime is over other orders of the same values" in words
    skewed = bare(Answer(found).coarse)
    assert skewed == (
        "The noise of y is neither normal nor Student's (skew, heaps): the evidence is counted "
        "given its values, whatever their law."
    )


def test_where_nothing_was_found_the_headline_says_so():
    nothing = mixture_of([[1.0]], evidence=-2.5, settings=Settings())
    assert Answer(nothing, "a.csv").headline == (
        "No linear regime in 10 rows of a.csv; the best line all the same:"
    )
    assert Answer(mixture_of([[1.0]], n_rows=20_000)).headline == "1 linear regime in 20,000 rows"


def test_errors_of_lines_that_are_no_regimes_are_conditional_on_the_lines():
    for coef, lines in (([[1.0]], "line"), ([[1.0], [2.0]], "lines")):
        known = mixture_of(coef)
        assert "conditional on the regimes that were found. Rows" in granted(known)
        nothing = granted(replace(known, evidence=-2.5))
        assert f"conditional on the {lines} shown. Rows of uncertain label" in nothing
        assert "regimes" not in nothing


def test_the_two_most_similar_regimes_are_named():
    known = {"intercept_error": np.zeros(3), "degrees": np.full(3, 50.0)}
    known |= {"r_squared": np.ones(3), "r_squared_overall": 1.0, "size": np.full(3, 60.0)}
    known |= {"covariance": np.full((3, 1, 1), 0.25), "notes": ("", "", "")}
    errors = Inference(standard_error=np.full((3, 1), 0.5), **known)
    mixture = mixture_of([[0.0], [9.0], [10.0]], inference=errors, fit_intercept=False)
    assert closest(mixture) == (1, 2, pytest.approx(2**0.5))
    said = (
        "The equations of regimes 1 and 2 are 1.4 standard errors apart, the fewest of any two, "
        "all coefficients together; equal ones would be about 1."
    )
    assert Answer(mixture).sure.endswith(said)
    unknown = replace(errors, covariance=None)
    assert closest(replace(mixture, inference=unknown)) is None


def test_which_number_bic_and_icl_favour_is_said():
    path = Selection(
        n_components=np.array([1, 2, 3]),
        evidence=np.array([1.0, 9.0, 5.0]),
        bic=np.array([30.0, 20.0, 10.0]),
        icl=np.array([3.0, np.inf, 4.0]),
        chosen=2,
    )
    mixture = mixture_of([[0.0], [9.0]], selection=path)
    assert other_criteria(mixture) == (
        "BIC, which leaves out the prior, favours three regimes; ICL, which counts rows in doubt "
        "against a model, favours one regime."
    )
    alike = replace(mixture, selection=replace(path, icl=path.bic))
    assert other_criteria(alike) == "BIC and ICL favour three regimes."
    unknown = np.full(3, np.nan)
    silent = replace(mixture, selection=replace(path, bic=unknown, icl=unknown))
    assert other_criteria(silent) == other_criteria(replace(mixture, selection=None)) == ""


def test_rows_are_compared_with_their_regime_and_outliers_with_the_nearest():
    mixture = mixture_of([[0.0], [1.0]], intercept=np.zeros(2), scale=np.array([0.5, 2.0]))
    X, y, labels = np.full((3, 1), 10.0), np.array([1.0, 7.0, 40.0]), np.array([0, -1, -1])
    found = distances(mixture, X, y, labels)
    assert found.nearest.tolist() == [0, 1, 1]
    assert found.predicted.tolist() == [0.0, 10.0, 10.0]
    assert found.residual.tolist() == [1.0, -3.0, 30.0]
    assert found.distance.tolist() == [2.0, -1.5, 15.0]
    assert found.farthest(np.array([1, 2])).tolist() == [2, 1]


def test_beside_exact_regimes_rows_are_infinitely_far_and_sorted_by_their_residual():
    mixture = mixture_of([[0.0], [1.0]], intercept=np.zeros(2), scale=np.zeros(2))
    X, y, labels = np.full((3, 1), 10.0), np.array([0.0, 7.0, 40.0]), np.array([0, -1, -1])
    found = distances(mixture, X, y, labels)
    assert found.nearest.tolist() == [0, 1, 1]
    assert found.distance.tolist() == [0.0, -np.inf, np.inf]
    assert found.farthest(np.arange(3)).tolist() == [2, 1, 0]
