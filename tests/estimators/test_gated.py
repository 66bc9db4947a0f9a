"""With a gate, labels, counts, rows in doubt, probabilities and R² follow from its shares."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.neighbors import KNeighborsClassifier

from regimix import MixedLinearRegression
from regimix.datasets import load_penguins
from regimix.engines.parts import PartTable, RawRows
from regimix.errors import DataError
from regimix.plots.display import view_rows
from regimix.report import render
from regimix.report.page import assumptions
from regimix.report.rows import read_rows
from regimix.result.answer import Answer, describe
from regimix.result.rivals import Rival
from regimix.result.rowlaw import SURE
from regimix.result.summary import Summary
from regimix.words import bare
from tests.result.test_answer import mixture_of

pytestmark = pytest.mark.usefixtures("searched_once")

N = 400
START = np.array([[2.0, 1.0], [1.0, 0.0]])  # slope and intercept of both regimes


def rows_of(seed=0, noise=0.6, wrong=10):
    """Two regimes that overlap; W says which one a row follows, mostly."""
    rng = np.random.default_rng(seed)
    X, W = rng.uniform(-2, 2, (N, 1)), rng.standard_normal((N, 2))
    z = (rng.random(N) < expit(4 * W[:, 0])).astype(int)
    y = X[:, 0] * START[z, 0] + START[z, 1] + noise * rng.standard_normal(N)
    if wrong:
        y[:wrong] += 30 * rng.standard_normal(wrong)
    return X, y, W


def fitted(data, gating="logistic", weights=None, **options):
    X, y, W = data
    model = MixedLinearRegression(2, gating=gating, random_state=0, init=START, **options)
    return model.fit(X, y, weights, gating_features=W)


@pytest.fixture(scope="module")
def gated():
    return fitted(rows_of(), keep_rows=True)


def agree(fit, X, y, W=None, weights=None):
    """All that is shown of the rows of a fit is what it says of them when it is asked."""
    beside = {} if W is None else {"gating_features": W}
    mixture, labels = fit.mixture_, np.asarray(fit.labels_)
    np.testing.assert_array_equal(labels, fit.assign(X, y, **beside))
    np.testing.assert_array_equal(mixture.labels if mixture.labels.size else labels, labels)
    counted = np.ones(len(y)) if weights is None else weights
    counts = np.bincount(labels % 3, counted, minlength=3)
    np.testing.assert_array_equal(mixture.label_counts, counts)
    chances = np.asarray(fit.responsibilities(X, y, **beside))
    assert mixture.doubtful_rows == counted[chances.max(axis=1) < SURE].sum()
    score = fit.score(X, y, weights, **beside)
    assert mixture.rows.r_squared_expected == pytest.approx(score, rel=1e-9)


# --- the rows of the fit --------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, 1.0 + np.arange(N) % 3], ids=["once", "counts"])
@pytest.mark.parametrize("gating", ["logistic", "trees", KNeighborsClassifier(15)], ids=str)
def test_labels_counts_doubt_and_r_squared_are_those_of_the_gate(gating, weights):
    data = rows_of()
    fit = fitted(data, gating, weights)
    agree(fit, *data, weights=weights)
    plain = MixedLinearRegression(2, random_state=0, init=START).fit(*data[:2], weights)
    assert (plain.labels_ != fit.labels_).sum() > 10
    for name in ("coef_", "weights_", "evidence_"):  # the fit itself stays
        np.testing.assert_array_equal(getattr(fit, name), getattr(plain, name))


@pytest.mark.filterwarnings("ignore::regimix.errors.LeftOutWarning")  # of penguins without a sex
def test_the_penguins_are_where_the_gate_says():
    table = load_penguins(features=("bill_length_mm",))
    tells = table.frame[["bill_length_mm", "body_mass_g", "sex"]]
    fit = MixedLinearRegression(gating="logistic", random_state=0, init=[[0.0, 18.0], [0.2, 5.0]])
    fit.fit(table.X, table.y, gating_features=tells)
    agree(fit, table.X, table.y, tells)
    assert fit.mixture_.rows.r_squared_expected > 0.5


def test_importances_count_rows_once():
    data, weights = rows_of(), np.random.default_rng(0).uniform(0.2, 1.8, N)
    fit = fitted(data, weights=weights)
    assert sum(fit.mixture_.label_counts) == N
    score = fit.score(*data[:2], weights, gating_features=data[2])
    assert fit.mixture_.rows.r_squared_expected == pytest.approx(score, rel=1e-9)


def test_copies_of_a_row_that_the_gate_tells_apart_count_each():
    X, y, W = rows_of(wrong=0)
    twice = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.vstack([W, -W]).reshape(2, N, 2)
    columns = np.ascontiguousarray(twice[2].transpose(1, 0, 2)).reshape(-1, 2)
    fit = fitted((twice[0], twice[1], columns))
    agree(fit, twice[0], twice[1], columns)


@pytest.mark.parametrize("options", [{"outliers": 0.1}, {"search": "partition"}], ids=str)
def test_a_given_share_of_outliers_stays(options):
    X, y, W = rows_of()
    options = {"n_components": 2, "random_state": 0, **options}
    options |= {} if "search" in options else {"init": START}
    plain = MixedLinearRegression(**options).fit(X, y)
    fit = MixedLinearRegression(gating="logistic", **options).fit(X, y, gating_features=W)
    np.testing.assert_array_equal(fit.labels_ == -1, plain.labels_ == -1)
    assert (fit.labels_ != plain.labels_).any()
    shares = fit.predict_shares(X, gating_features=W)
    likeliest = fit.mixture_.log_densities(X, y, shares)[:, :-1].argmax(axis=1)
    inside = fit.labels_ >= 0
    np.testing.assert_array_equal(fit.labels_[inside], likeliest[inside])
    assert fit.mixture_.label_counts == tuple(np.bincount(fit.labels_ % 3, minlength=3))


def test_rows_that_lie_exactly_on_a_regime_stay_with_it():
    X, y, W = rows_of(noise=0.0)
    options = {"n_components": 2, "random_state": 0, "init": START}
    plain = MixedLinearRegression(**options).fit(X, y)
    assert plain.scale_.max() < 1e-6
    # The shares say the opposite of what is true.
    fit = MixedLinearRegression(gating="logistic", **options)
    fit.fit(X, y, gating_features=np.random.default_rng(0).permutation(W))
    np.testing.assert_array_equal(fit.labels_, plain.labels_)


def test_rows_that_are_read_in_parts_are_labelled_as_in_memory():
    X, y, W = rows_of()
    both = np.column_stack([X, W])
    cuts = [slice(0, 150), slice(150, 160), slice(160, N)]
    readers = tuple(lambda rows=rows: iter([RawRows(both[rows], y[rows])]) for rows in cuts)
    table = PartTable(("x", "v", "w"), "y", readers, ("one", "two", "three"))
    for options in ({}, {"outliers": 0.1}):
        starts = np.column_stack([START[:, :1], np.zeros((2, 2)), START[:, 1:]])
        how = {"gating": "logistic", "random_state": 0, "init": starts, "keep_rows": True}
        model = MixedLinearRegression(2, **how, **options)
        there = model.fit(table)
        labels, known, excerpt = there.labels_, there.mixture_, there.mixture_.excerpt
        np.testing.assert_array_equal(excerpt.labels, labels[excerpt.numbers])
        np.testing.assert_allclose(excerpt.shares, known.gate.shares(excerpt.X))
        assert known.label_counts == tuple(np.bincount(labels % 3, minlength=3))
        named = pd.DataFrame(both, columns=["x", "v", "w"])
        if not options:
            agree(there, named, y)
        here = MixedLinearRegression(2, **how, **options).fit(both, y)
        assert (here.labels_ != labels).mean() < 0.01  # gates learn from rows in another order
        r_squared = [fit.mixture_.rows.r_squared_expected for fit in (here, there)]
        assert r_squared[0] == pytest.approx(r_squared[1], abs=1e-3)


# --- where they are shown -------------------------------------------------------------------------


def test_a_report_knows_the_rows_of_a_gated_fit(gated):
    X, y, W = rows_of()
    shares = gated.predict_shares(X, gating_features=W)
    bare_one = replace(gated.mixture_, excerpt=None)  # as a model file holds it
    rows = read_rows(bare_one, X, y, None, shares)
    assert rows.fitted
    np.testing.assert_array_equal(rows.labels, gated.labels_)
    assert (rows.sure < SURE).sum() == gated.mixture_.doubtful_rows
    others = read_rows(bare_one, X[::-1], y[::-1], None, shares[::-1])
    assert not others.fitted
    page = render(bare_one, X, y, shares=shares)
    assert "not those that the model was fitted to" not in page
    smallest = min(gated.mixture_.label_counts[:2])
    words = " ".join(finding.words for finding in assumptions(bare_one, rows))
    assert f"smallest regime has about {smallest} rows" in words
    with pytest.raises(DataError, match=r"shares=mixture\.gate\.shares\(Z\)"):
        read_rows(bare_one, X, y, None)


def test_rows_that_a_gated_model_keeps_are_shown_by_their_shares(gated):
    X, y, W = rows_of()
    excerpt = gated.mixture_.excerpt
    np.testing.assert_array_equal(excerpt.labels, gated.labels_)
    np.testing.assert_allclose(excerpt.shares, gated.gate_.shares(W))
    rows = read_rows(gated.mixture_, None, None, None)
    assert (rows.sure < SURE).sum() == gated.mixture_.doubtful_rows
    again = pickle.loads(pickle.dumps(gated.mixture_))
    np.testing.assert_array_equal(again.excerpt.shares, excerpt.shares)
    for seen in (view_rows(gated), view_rows(replace(gated.mixture_, excerpt=None), X, y)):
        np.testing.assert_array_equal(seen.labels, gated.labels_)


def test_a_gate_of_the_features_is_asked_wherever_rows_are_shown():
    X, y, W = rows_of()
    both = np.column_stack([X, W])
    starts = np.column_stack([START[:, :1], np.zeros((2, 2)), START[:, 1:]])
    model = MixedLinearRegression(2, gating="logistic", random_state=0, init=starts)
    fit = model.fit(both, y)
    agree(fit, both, y)
    new, response = both[::-1] + 0.01, y[::-1]
    for seen in (view_rows(fit, new, response), read_rows(fit.mixture_, new, response, None)):
        np.testing.assert_array_equal(seen.labels, fit.assign(new, response))


# --- in words -------------------------------------------------------------------------------------


def everywhere(mixture):
    """What each display says, without its line breaks."""
    shown = {"print": describe(mixture, 80), "summary": str(Summary(mixture))}
    shown |= {"page": bare(" ".join(Answer(mixture).notices))}
    return {where: " ".join(words.split()) for where, words in shown.items()}


def test_shares_of_a_gate_are_named_by_its_columns_and_told_from_those_of_the_fit(gated):
    mixture = gated.mixture_
    first, second = (f"{share:.1%}" for share in mixture.gate.average)
    own = f"each row has its own, on average {first} and {second}. Labels, rows in doubt"
    for where, said in everywhere(mixture).items():
        assert f"Shares depend on the gating columns here: {own}" in said, where
        assert "the shares shown are those of the fit before the gating" in said, where
        assert "those shown are averages" not in said, where
    features = replace(mixture, gate=replace(mixture.gate, from_features=True))
    assert "Shares depend on the features here" in Answer(features).gating
    assert Answer(replace(mixture, gate=None)).gating == ""


@pytest.mark.parametrize("kind", ["logistic", "trees"])
def test_averages_of_the_shares_are_averages(kind):
    X, y, W = rows_of()
    fit = fitted((X, y, W), kind)
    shares = fit.predict_shares(X, gating_features=W).mean(axis=0)
    np.testing.assert_allclose(fit.gate_.average, shares, rtol=1e-9)
    said = fit.gate_.describe
    assert "which count by their probabilities before the gating" in said
    beside = "before the gating; the largest regime alone would be right in 65.0%. The shares"
    assert beside in fit.gate_.told(0.65)
    assert f"on average {shares[0]:.1%} and {shares[1]:.1%}" in said


def test_a_relation_that_is_likelier_than_the_regimes_before_the_gating_is_told(gated):
    mixture = replace(gated.mixture_, rivals=(Rival(lead=20.0),), gain_of_shares=30.0)
    told = "Before the gating, a single relation is 20 nats likelier than the regimes"
    for where, said in everywhere(mixture).items():
        assert told in said, where
        assert "Shares that depend on x0 would gain 30 nats." in said, where
    assert mixture.rival is None
    # 3 nats are what a finding takes.
    for gain, ends in ((16.9, "16.9 nats, so it is likelier even then."), (17.1, "17.1 nats.")):
        told = Answer(replace(mixture, gain_of_shares=gain)).without_gate
        assert told.endswith(f"would gain {ends}"), gain
    behind = replace(mixture, rivals=(Rival(lead=-1.0),))
    assert Answer(behind).without_gate == ""
    assert Answer(replace(mixture, gate=None)).without_gate == ""


def test_one_regime_has_nothing_that_a_gating_could_tell_apart():
    X, y, W = rows_of(wrong=0)
    model = MixedLinearRegression(1, gating="logistic", random_state=0)
    mixture = replace(model.fit(X, y, gating_features=W).mixture_, rivals=())
    told = "There is one regime: the gating has nothing to tell apart."
    assert mixture.gate.describe == told
    rival = replace(mixture, rivals=(Rival(terms="quadratic", lead=20.0),))
    for where, said in everywhere(mixture).items():
        assert said.count(told) == 1, where
        assert "each row has its own" not in said, where
        assert "before the gating" not in said, where
    for where, said in everywhere(rival).items():
        assert "it is 20 nats likelier than the line" in said, where
        assert "the gating." not in said.replace(told, ""), where
    assert Answer(rival).rival == Answer(replace(rival, gate=None)).rival != ""
    nothing = replace(mixture, evidence=-2.0)
    assert Answer(nothing).gating == told.replace("regime", "line")


def test_a_regime_that_explains_hardly_anything_does_not_account_for_the_response(gated):
    mixture = gated.mixture_
    known = mixture.inference
    assert "account for" in Answer(mixture).lead
    little = replace(known, r_squared=np.array([0.7, 0.0005]))
    assert " describe y in " in bare(Answer(replace(mixture, inference=little)).lead)
    unknown = replace(known, r_squared=np.array([np.nan, np.nan]))
    assert "account for" in Answer(replace(mixture, inference=unknown)).lead
    assert "accounts for" in Answer(mixture_of([[1.0]])).lead
