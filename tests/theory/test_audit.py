"""The audit: each verdict can go either way, odd models are survived, and the table can be read."""

import re
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from regimix import MixedLinearRegression, theory
from regimix.errors import DataError, ParameterError, RegimixWarning
from regimix.report.page import compared
from regimix.result.answer import closest
from regimix.result.rowlaw import Excerpt
from regimix.synth import make_mlrc
from regimix.words import number

pytestmark = pytest.mark.usefixtures("searched_once")

NAMES = [
    "regimes",
    "separation",
    "noise",
    "corruption",
    "rows",
    "feature tails",
    "same features",
    "subspace gap",
    "subspace",
    "contraction, seen",
    "contraction, proven",
]


def fitted(X, y, init=None, **settings):
    """Fit without a long search: the audit is about the data."""
    settings = {"random_state": 0, "search": "joint", **settings}
    if init is not None:
        settings["init"] = init
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RegimixWarning)
        return MixedLinearRegression(**settings).fit(X, y).mixture_


def audited(n=600, d=3, m=2, seed=0, fit_intercept=False, **data):
    X, y, truth = make_mlrc(n, d, m, random_state=seed, **{"noise": 0.01, **data})
    mixture = fitted(X, y, truth.coef, n_components=m, fit_intercept=fit_intercept)
    return theory.audit(mixture, X, y), truth


@pytest.fixture(scope="module")
def easy():
    return audited(norms=1.0, separation=1.2, corruption_ratio=0.2)


def test_easy_data_meet_what_the_paper_assumes(easy):
    audit, _ = easy
    assert [finding.name for finding in audit.findings] == NAMES
    verdicts = {finding.name: finding.verdict for finding in audit.findings}
    assert (
        verdicts.pop("contraction, proven") == "not proven"
    )  # a worst case, far from what is seen
    assert set(verdicts.values()) == {"holds"}


def test_estimates_are_near_the_truth(easy):
    audit, truth = easy
    assert audit.corruption_ratio == pytest.approx(truth.corruption_ratio, abs=0.02)
    assert audit.n_rows == audit.sample_rows == 600
    assert audit.n_coefficients == 3
    shares = sorted(regime.labelled for regime in audit.regimes)
    assert shares == pytest.approx(sorted(truth.clean_fraction), abs=0.01)
    local = sorted(regime.separation for regime in audit.regimes)
    # Features are white up to chance.
    assert local == pytest.approx(sorted(truth.local_separation), rel=0.15)
    for regime in audit.regimes:
        assert regime.rows_per_coefficient == pytest.approx(regime.labelled * 600 / 3)
        assert regime.noise == pytest.approx(0.01 / 1.2, rel=0.3)
        assert 0 < regime.contraction < 0.9


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("separation", {"norms": 1.0, "separation": 0.09, "noise": 1e-4}),
        ("noise", {"norms": 1.0, "separation": 0.1, "noise": 0.06}),
        ("corruption", {"corruption_ratio": 1.5, "norms": 1.0, "separation": 1.2}),
        ("feature tails", {"features": "student", "degrees_of_freedom": 2.1, "n": 3000}),
        ("same features", {"covariance_bound": 60.0, "n": 2000}),
    ],
)
def test_each_assumption_can_fail(name, data):
    assert audited(**data)[0][name].verdict == "not proven"


def test_too_few_rows_are_told():
    X, y, truth = make_mlrc(300, 10, 2, noise=0.01, random_state=0)
    mixture = fitted(X, y, truth.coef, n_components=2)
    assert theory.audit(mixture, X, y)["rows"].verdict == "holds"
    assert theory.audit(mixture, X[:60], y[:60])["rows"].verdict == "unclear"
    assert theory.audit(mixture, X[:24], y[:24])["rows"].verdict == "not proven"


def test_a_subspace_that_noise_decides_is_told():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 8)), rng.standard_normal(300)
    mixture = fitted(X, y, n_components=1)
    assert theory.audit(mixture, X, y)["subspace gap"].verdict != "holds"


def test_the_table_fits_a_terminal(easy):
    text = str(easy[0])
    assert max(map(len, text.splitlines())) <= 80
    for name in NAMES:
        assert f"\n{name} " in text
    assert "10 hold, 0 unclear, 1 not proven" in text


def test_findings_are_looked_up_by_name(easy):
    assert easy[0]["rows"].value == pytest.approx(90, rel=0.1)
    assert easy[0]["rows"].at_least
    with pytest.raises(KeyError, match="gap; there are regimes, separation"):
        easy[0]["gap"]


def test_units_do_not_matter():
    X, y, _ = make_mlrc(400, 2, 2, noise=0.05, intercepts=[0.0, 1.0], random_state=1)
    mixture = fitted(X, y, n_components=2)
    first = theory.audit(mixture, X, y)
    scales, shift = np.array([64.0, 0.125]), np.array([128.0, 0.0])
    other = fitted(X * scales + shift, 8 * y + 512, n_components=2)
    second = theory.audit(other, X * scales + shift, 8 * y + 512)
    for one, two in zip(first.findings, second.findings, strict=True):
        assert one.verdict == two.verdict
    for one, two in zip(first.regimes, second.regimes, strict=True):
        assert one.distance == pytest.approx(two.distance, rel=0.01)
        assert one.separation == pytest.approx(two.separation, rel=0.01)
        assert one.noise == pytest.approx(two.noise, rel=0.01)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_feature_and_one_regime(fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 1))
    y = 2 * X[:, 0] + 0.1 * rng.standard_normal(100)
    audit = theory.audit(fitted(X, y, fit_intercept=fit_intercept), X, y)
    assert len(audit.regimes) == 1
    # What was missed cannot be judged: a regime alone is not called separated.
    assert audit["separation"].verdict == "unclear"
    assert "theory.detectable" in audit["separation"].words
    assert audit["subspace gap"].value == np.inf
    assert audit["corruption"].value == 0.0
    # Theorems 4 and 7 are about rows without noise.
    assert audit["contraction, proven"].verdict == "not proven"
    assert audit["contraction, proven"].value < 1
    assert "Theorem 7" not in str(audit)
    exact = theory.audit(fitted(X, 2 * X[:, 0], fit_intercept=fit_intercept), X, 2 * X[:, 0])
    assert exact["contraction, proven"].verdict == "holds"
    assert "Theorem 7" in exact["corruption"].words
    assert "1 regime found" in str(audit)


def test_nothing_found_is_said_first():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((120, 2)), rng.standard_normal(120)
    mixture = fitted(X, y)
    assert mixture.found_nothing
    audit = theory.audit(mixture, X, y)
    assert audit.findings[0].verdict == "not proven"
    assert "no linear regime" in audit.findings[0].words
    text = " ".join(str(audit).split())
    assert "3 coefficients, no regime found, 1 line judged" in text
    assert "regime found" not in text.replace("no regime found", "")
    assert "Only the line shown is judged; theory.detectable(model, X)" in text


def test_the_search_of_the_paper_has_no_score():
    X, y, _ = make_mlrc(200, 2, 2, random_state=0)
    mixture = fitted(X, y, search="net", n_components=2, fit_intercept=False)
    audit = theory.audit(mixture, X, y)
    assert audit["regimes"].verdict == "holds"
    assert "has no score" in audit["regimes"].words
    assert np.isnan(audit["regimes"].value)  # nothing is measured, so nothing is compared


def test_constant_columns_and_few_rows_are_survived():
    X, y, _ = make_mlrc(80, 2, 1, noise=0.1, random_state=0)
    X = np.column_stack([X, np.full(80, 7.0)])
    audit = theory.audit(fitted(X, y), X, y)
    assert audit.n_coefficients == 3  # the constant column tells nothing
    few = theory.audit(fitted(X, y), X[:5], y[:5])
    assert few["rows"].verdict == "not proven"
    assert max(map(len, str(few).splitlines())) <= 80


def test_large_tables_are_judged_on_a_sample():
    X, y, truth = make_mlrc(30_000, 2, 2, noise=0.01, random_state=0)
    mixture = fitted(X, y, truth.coef, n_components=2)
    audit = theory.audit(mixture, X, y)
    assert (audit.n_rows, audit.sample_rows) == (30_000, 20_000)
    assert "judged on 20,000 of the rows: numbers are estimates" in str(audit)
    assert "an estimate from 1000 rows: " in audit["contraction, proven"].words
    assert "at least" not in audit["contraction, proven"].words
    assert "one round of 4000 rows" in audit["contraction, seen"].words
    assert audit["rows"].value == pytest.approx(30_000 * truth.clean_fraction_min / 3, rel=0.05)


def test_a_round_without_foreign_rows_has_a_factor_of_zero():
    X, y, truth = make_mlrc(60, 2, 1, noise=0.3, random_state=0)
    found = theory.audit(fitted(X, y, truth.coef, n_components=1), X, y)["contraction, proven"]
    assert (found.value, found.verdict) == (0.0, "not proven")
    assert "takes in rows of regime 0 alone: the factor of Theorem 4 is 0." in found.words
    assert "is about rows without noise, and these have some" in found.words


def test_where_nothing_was_found_as_many_lines_are_named_as_are_shown():
    X, y, truth = make_mlrc(200, 2, 2, noise=0.3, random_state=0)
    nothing = replace(fitted(X, y, truth.coef, n_components=2), evidence=-5.0)
    audit = theory.audit(nothing, X, y)
    assert "no regime found, 2 lines judged" in str(audit)
    assert "Only the lines shown are judged;" in " ".join(str(audit).split())
    words = audit["regimes"].words
    assert "the model is the best two lines, and" in words
    # Of one regime, say, nothing was measured.
    assert words.startswith("Constants score 5 nats more than the two regimes asked for;")


def test_repeated_rows_are_rows():
    X, y, truth = make_mlrc(200, 2, 2, noise=0.01, random_state=0)
    twice, mixture = np.repeat(X, 2, axis=0), fitted(X, y, truth.coef, n_components=2)
    audit = theory.audit(mixture, twice, np.repeat(y, 2))
    assert audit.n_rows == audit.sample_rows == 400
    assert "is at least" in audit["contraction, proven"].words
    assert "rows" not in audit["contraction, seen"].words
    once = theory.audit(mixture, X, y)
    for one, two in zip(once.regimes, audit.regimes, strict=True):
        assert two.distance == pytest.approx(one.distance)
        assert two.rows_per_coefficient == pytest.approx(2 * one.rows_per_coefficient)


def test_an_estimator_will_do_and_rows_may_be_remembered():
    X, y, _ = make_mlrc(200, 2, 2, noise=0.01, random_state=0)
    fit = MixedLinearRegression(random_state=0, n_components=2, keep_rows=True).fit(X, y)
    whole = str(theory.audit(fit.mixture_, X, y))
    assert str(theory.audit(fit, X, y)) == whole
    assert str(theory.audit(fit)) == str(theory.audit(fit.mixture_)) == whole
    with pytest.raises(DataError, match="y is missing"):
        theory.audit(fit, X)
    with pytest.raises(DataError, match="X and y are missing"):
        theory.audit(MixedLinearRegression(random_state=0, n_components=2).fit(X, y))


@pytest.mark.parametrize("model", [MixedLinearRegression(), None, "model.json"])
def test_what_is_no_fitted_model_is_refused(model):
    with pytest.raises(ParameterError, match=f"got {type(model).__name__}"):
        theory.audit(model, np.ones((4, 1)), np.ones(4))


def test_an_excerpt_stands_for_all_rows():
    X, y, truth = make_mlrc(2000, 2, 2, noise=0.01, random_state=0)
    mixture = fitted(X, y, truth.coef, n_components=2)
    kept = np.arange(0, 2000, 4)
    excerpt = Excerpt(X[kept], y[kept], mixture.labels[kept], kept, complete=False)
    audit = theory.audit(replace(mixture, excerpt=excerpt))
    assert (audit.n_rows, audit.sample_rows) == (2000, 500)
    assert audit["rows"].value == pytest.approx(theory.audit(mixture, X, y)["rows"].value, rel=0.2)


def test_what_has_no_limit_is_said_in_words():
    rng = np.random.default_rng(0)
    # A column that is 1 in a few rows: the others leave its coefficient open.
    X = np.column_stack([rng.standard_normal(100), np.arange(100) < 3])
    y = X @ [1.0, 2.0] + 0.1 * rng.standard_normal(100)
    audit = theory.audit(fitted(X, y, n_components=1), X, y)
    assert audit["contraction, proven"].value == np.inf
    assert "Theorem 4 gives no factor for regime 0" in audit["contraction, proven"].words
    assert "unlimited" in str(audit)
    assert " inf" not in str(audit)


def test_columns_must_be_those_of_the_fit():
    X, y, _ = make_mlrc(80, 2, 1, noise=0.1, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"])
    mixture = fitted(frame, y)
    assert theory.audit(mixture, frame, y).findings
    with pytest.raises(DataError, match="column 0 is 'b', but 'a' in the fit"):
        theory.audit(mixture, frame[["b", "a"]], y)
    with pytest.raises(DataError, match=r"3 column\(s\)"):
        theory.audit(mixture, np.ones((80, 3)), y)


def test_distances_are_in_standard_deviations_of_the_response():
    rng = np.random.default_rng(0)
    X, label = rng.standard_normal((400, 1)), rng.random(400) < 0.5
    y = 3 * X[:, 0] + np.where(label, 0.0, 5.0) + 0.01 * rng.standard_normal(400)
    mixture = fitted(X, y, n_components=2)
    for regime in theory.audit(mixture, X, y).regimes:
        assert regime.distance == pytest.approx(5 / y.std(), rel=0.02)
    # Gross errors are no part of the spread.
    wrong = np.where(np.arange(400) < 8, 1e4, y)
    audit = theory.audit(mixture, X, wrong)
    assert audit["separation"].value == pytest.approx(5 / y[8:].std(), rel=0.05)
    assert "Regimes 0 and 1 are the nearest" in audit["separation"].words


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_noise_is_in_units_of_what_the_sentence_names(fit_intercept):
    # Outliers and a centre far from zero: lengths of whitened coefficients are something else.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) + 2.0
    y = X @ [1.0, -2.0] + 0.5 * rng.standard_normal(300)
    X[:30] *= 4
    y[:30] = rng.uniform(50, 150, 30)  # one value for all would be a regime, and without noise
    alone = fitted(X, y, n_components=1, fit_intercept=fit_intercept)
    own = alone.assign(X, y) == 0
    assert 200 < np.count_nonzero(own) < 300
    explained = np.std(alone.predict_components(X)[own, 0])
    audit = theory.audit(alone, X, y)
    assert audit["noise"].value == pytest.approx(alone.scale[0] / explained, rel=1e-6)
    assert audit.regimes[0].noise == audit["noise"].value
    assert "of the standard deviation of its fitted values" in audit["noise"].words
    assert "noise/fitted" in str(audit)
    assert "nearest regime" not in str(audit)  # there is none


def test_noise_of_several_is_in_units_of_their_distance():
    X, y, truth = make_mlrc(300, 2, 2, noise=0.1, corruption_ratio=0.2, random_state=0)
    X[0] *= 8  # a far row of a regime is a row
    y[0] += 7 * float(X[0] / 8 @ truth.coef[truth.labels[0]])
    mixture = fitted(X, y, truth.coef, n_components=2)
    rows = mixture.assign(X, y) >= 0
    assert rows[0]
    assert not rows.all()
    lines = mixture.predict_components(X)[rows]
    distance = np.sqrt(np.mean((lines[:, 0] - lines[:, 1]) ** 2))
    audit = theory.audit(mixture, X, y)
    for j, regime in enumerate(audit.regimes):
        assert regime.noise == pytest.approx(mixture.scale[j] / distance, rel=1e-6)
        assert regime.distance == pytest.approx(distance / np.std(y[rows]), rel=1e-6)
    assert "of the distance to the nearest regime" in audit["noise"].words


def test_bounds_in_words_have_the_digits_of_the_table(easy):
    # With fewer, the most that a round left would be below what the table measures.
    audit, _ = easy
    seen, proven = audit["contraction, seen"], audit["contraction, proven"]
    assert f"left at most {number(seen.value, 3)} of the error" in seen.words
    assert f" {number(proven.value, 3)} at such a start" in proven.words
    assert number(seen.value, 3) != number(seen.value, 2)


def test_what_was_missed_is_not_judged():
    # Three regimes, too near for 60 rows to show more than one: as far as it goes, all is well.
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, 60)
    y = rng.choice([1.8, 2.0, 2.2], 60) * x + rng.standard_normal(60)
    mixture = fitted(x[:, None], y)
    assert mixture.n_components == 1
    audit = theory.audit(mixture, x[:, None], y)
    assert audit["noise"].verdict == audit["rows"].verdict == "holds"
    assert audit["separation"].verdict == "unclear"
    text = " ".join(str(audit).split())
    assert "1 regime found" in text
    assert "Only the regimes that were found are judged; theory.detectable(model, X)" in text


def test_what_would_have_been_found_is_added_if_asked_for(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 1))
    y = X[:, 0] + 0.3 * rng.standard_normal(80)
    fit = MixedLinearRegression(random_state=0, keep_rows=True).fit(X, y)
    assert theory.audit(fit).detectable is None
    known = theory.detectable(fit, X, shares=(0.4,), n_trials=1, random_state=0)
    text = str(theory.audit(fit, detectable=known))
    assert text.endswith(str(known))
    assert max(map(len, text.splitlines())) <= 80

    simulated = []

    def simulate(mixture, X, random_state):
        simulated.append((mixture, X.shape, random_state))
        return known

    monkeypatch.setattr(sys.modules["regimix.theory.audit"], "simulate", simulate)
    assert theory.audit(fit, X, y, detectable=True).detectable is known
    assert theory.audit(fit, detectable=True).detectable is known
    assert simulated == [(fit.mixture_, (80, 1), 0)] * 2
    # Fewer rows would show less.
    part = replace(fit.mixture_, excerpt=replace(fit.mixture_.excerpt, complete=False))
    with pytest.raises(DataError, match="remembers a part of its rows"):
        theory.audit(part, detectable=True)


def test_outliers_in_doubt_count_in_parts_beside_their_labels():
    """Nearly as many rows as regimes have are outliers by their probabilities, few by labels."""
    X, y, _ = make_mlrc(400, 2, 2, noise=0.1, corruption=0.05, random_state=0)
    mixture = fitted(X, y)
    found = theory.audit(mixture, X, y)["corruption"]
    doubtful = replace(mixture, weights=np.array([0.3, 0.3]), outlier_share=0.4)
    beside = theory.audit(doubtful, X, y)["corruption"]
    assert max(found.value, beside.value) < 0.5  # labels follow the shares, a little
    assert "by their labels; by the shares of the model, 1.3" in beside.words
    assert (found.verdict, beside.verdict) == ("holds", "not proven")
    # No figure that would do stands beside a verdict that it does not explain.
    assert compared(found)
    assert compared(beside) == ""


def test_pairs_that_two_distances_call_nearest_are_both_named():
    """A regime of few rows may be farther away and harder to tell apart."""
    rng = np.random.default_rng(0)
    X, label = rng.standard_normal((600, 1)), rng.permutation(np.repeat([0, 1, 2], [290, 290, 20]))
    y = (
        X[:, 0]
        + np.array([0.0, 10.0, 24.0])[label]
        + np.array([0.1, 0.1, 4.0])[label] * (rng.standard_normal(600))
    )
    mixture = fitted(X, y, n_components=3, outliers=0.0)
    pair = closest(mixture)[:2]
    words = theory.audit(mixture, X, y)["separation"].words
    nearest = tuple(
        int(j) for j in re.match(r"Regimes (\d) and (\d) are the nearest", words).groups()
    )
    assert nearest != pair
    assert f"(Beside their standard errors, it is regimes {pair[0]} and {pair[1]}.)" in words


def test_what_counts_as_alike_is_said_where_chance_is():
    X, y, _ = make_mlrc(400, 3, 2, noise=0.1, random_state=0)
    found = theory.audit(fitted(X, y), X, y)["same features"]
    chance = float(re.search(r"by chance alone up to ([\d.]+)", found.words)[1])
    assert f"up to {found.threshold / chance:.0f} times that counts as alike" in found.words
