"""Rivals: one curved, uneven or skewed relation is named, and true regimes are left in peace."""

from dataclasses import replace

import numpy as np
import pytest

from regimix import MixedLinearRegression
from regimix.engines.base import Sample
from regimix.errors import EvidenceWarning, RivalWarning
from regimix.model.rows import whitened_rows
from regimix.result.answer import Answer
from regimix.result.rivals import (
    PLAIN,
    Contest,
    Rival,
    advice,
    check_regimes,
    find_rivals,
    tried,
)
from regimix.words import bare, number

pytestmark = pytest.mark.usefixtures("searched_once")


def table(kind, n, rng):
    """Draw rows of one relation that looks like several lines."""
    x = rng.standard_normal(n)
    y = {
        "fan": lambda: 1 + 2 * np.abs(x) + 0.4 * np.abs(x) * rng.standard_normal(n),
        "exponential": lambda: np.exp(1 + x + 0.4 * rng.standard_normal(n)),
        "square": lambda: x**2 + 0.3 * rng.standard_normal(n),
        "skewed": lambda: 1 + x + 0.5 * rng.exponential(size=n),
        "counts": lambda: rng.poisson(np.exp(1 + 0.7 * x)).astype(float),
    }[kind]()
    return (np.abs(x) if kind == "fan" else x)[:, None], y


def rivals_of(X, y, **options):
    return MixedLinearRegression(random_state=0, **options).fit(X, y).mixture_


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize(
    ("kind", "ingredient", "values"),
    [
        ("fan", "spread", {"fitted", "log fitted", "features"}),
        ("exponential", "power", {0.0}),
        ("square", "terms", {"quadratic"}),
        ("skewed", "skewed", {True}),
        ("counts", "noise", {"counts"}),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_one_relation_is_named(kind, ingredient, values, seed):
    X, y = table(kind, 200, np.random.default_rng(seed))
    mixture = rivals_of(X, y)
    assert len(mixture.weights) > 1
    assert mixture.rival is not None
    assert mixture.rival.lead > 3
    assert ingredient in mixture.rival.ingredients
    assert getattr(mixture.rival, ingredient) in values


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", [0, 3])
def test_many_counts_are_no_constants_at_single_values(seed):
    """With the noise of rounding, 0.29 steps, constants at 0, 1, 2, ... were 60 to 130 nats ahead.

    Of each value, that is, they had a probability of 1.4.
    """
    X, y = table("counts", 2000, np.random.default_rng([seed, 2000]))
    mixture = rivals_of(X, y)
    assert mixture.rival is not None
    assert mixture.rival.noise == "counts"
    assert mixture.rival.lead > 30


@pytest.mark.parametrize("noise", ["normal", "student"])
@pytest.mark.parametrize("seed", [0, 1])
def test_true_regimes_have_no_rival(noise, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 2))
    lines = np.stack([1 + X @ [1, 2], -1 + X @ [2, -1]])
    e = rng.standard_normal(200) if noise == "normal" else rng.standard_t(5, 200)
    y = lines[rng.integers(0, 2, 200), np.arange(200)] + 0.7 * e
    mixture = rivals_of(X, y)
    assert len(mixture.weights) == 2
    assert mixture.rivals
    assert mixture.rival is None


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_units_do_not_matter():
    X, y = table("exponential", 150, np.random.default_rng(3))
    plain = rivals_of(X, y)
    scaled = rivals_of(100 + 7 * X, 1000 * y)
    assert [r.ingredients for r in plain.rivals[:3]] == [r.ingredients for r in scaled.rivals[:3]]
    assert scaled.rival.lead == pytest.approx(plain.rival.lead, abs=1.5)


def test_the_likeliest_comes_first_and_the_straight_line_is_none():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1))
    mixture = rivals_of(X, X[:, 0] + 0.3 * rng.standard_normal(60))
    leads = [rival.lead for rival in mixture.rivals]
    assert leads == sorted(leads, reverse=True)
    assert PLAIN not in mixture.rivals
    # One regime is compared with rivals of one ingredient only.
    assert {len(rival.ingredients) for rival in mixture.rivals} == {1}


def test_ingredients():
    assert Rival().ingredients == ()
    assert Rival(power=0.0, skewed=True).ingredients == ("power", "skewed")


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_what_is_described_in_the_same_words_is_listed_once():
    X, y = table("exponential", 150, np.random.default_rng(3))
    words = [rival.describe() for rival in rivals_of(X, y).rivals]
    assert len(set(words)) == len(words)


def test_only_what_was_tried_is_said_to_be():
    few = Rival(spread="fitted"), Rival(noise="student6"), Rival(skewed=True)
    assert tried(few) == "Spreads that are not even and other noise laws were tried, one by one."
    more = Rival(terms="spline"), Rival(power=0.0, skewed=True)
    assert tried(more) == (
        "Curves, other noise laws and powers of the response were tried, one by one and together "
        "where that gained."
    )


def test_a_power_nearly_as_likely_as_counts_is_advised_first():
    counts, near, far = Rival(noise="counts", lead=9.0), Rival(power=0.0, lead=6.5), Rival(lead=5.0)
    both = "Fit the logarithm of the response instead, which is nearly as likely. If the response"
    assert advice((counts, near)).startswith(both)
    assert advice((counts, far, Rival(power=0.0, lead=5.5))) == counts.advice
    assert advice((near, counts)) == near.advice


def test_a_power_of_a_curved_relation_is_not_advised_without_the_curve():
    assert Rival(power=0.5).advice == "Fit the power 0.5 of the response instead."
    # What the power leaves would be taken for regimes again; heavy tails belong to a regime.
    assert Rival(power=0.5, spread="fitted", noise="student6", skewed=True).advice == (
        "Fit the power 0.5 of the response instead. Skewed noise and a spread that depends on the "
        "expected response may look like regimes there, too."
    )
    assert Rival(power=0.5, terms="spline").advice == (
        "Fit the power 0.5 of the response instead, with squares and products of the features."
    )


@pytest.mark.parametrize("rival", [Rival(spread="fitted"), Rival(noise="student3")])
def test_advice_claims_nothing_of_the_regimes(rival):
    assert "may be all there is" in rival.advice


@pytest.mark.parametrize("asked", ["auto", 2])
@pytest.mark.parametrize("rows", [6, 9000])
@pytest.mark.filterwarnings("ignore::regimix.errors.ConvergenceWarning")
def test_a_constant_response_is_called_one_first_and_has_no_rival(asked, rows):
    X = np.linspace(1, 6, rows)[:, None]
    said = "responses are equal: y is constant at 2"
    if rows > 8192:
        said = "responses of a sample of 8192 rows are equal: y is constant at 2"
    with pytest.warns(EvidenceWarning, match=f"^all {said}"):
        fit = MixedLinearRegression(asked, random_state=0).fit(X, np.full(rows, 2.0))
    assert fit.mixture_.rivals == ()
    assert " ".join(str(fit.mixture_).split()).startswith(f"All {said}. The best ")
    found = Answer(fit.mixture_)
    assert found.title == f"All {said}"
    assert bare(found.lead).startswith(f"All {said}. There is nothing to explain")


def test_the_phrase_names_response_features_and_ingredients():
    names = ["carat", "depth", "table"]
    assert (
        Rival(power=0.0).describe("price", names[:1]) == "one relation between log price and carat"
    )
    assert Rival(terms="spline").describe("price", names[:2]) == (
        "one curved relation between price and both carat and depth"
    )
    assert Rival(spread="fitted", noise="student3", skewed=True).describe("price", names) == (
        "one relation between price and three features, with heavy-tailed, skewed noise and a "
        "spread that depends on the expected response"
    )
    assert Rival(noise="counts").describe("n", names[:1]) == (
        "one relation between the logarithm of the expected n and carat, with the noise of counts"
    )


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_the_first_sentence_says_so():
    X, y = table("exponential", 150, np.random.default_rng(3))
    shown = str(rivals_of(X, y)).splitlines()
    assert shown[0].startswith("One relation between log y and x0 explains these rows better than")
    straight = str(rivals_of(X, np.log(y))).splitlines()
    assert straight[0] == "1 linear regime in 150 rows, none of them in doubt"


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_many_rows_are_judged_by_the_first(monkeypatch):
    seen = []
    from regimix.result import fit

    def spy(contest, *rest):
        seen.append(contest.rows.n)
        return ()

    monkeypatch.setattr(fit, "find_rivals", spy)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 1))
    rivals_of(X, X[:, 0] + 0.3 * rng.standard_normal(20_000))
    assert seen == [1500]


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_regimes_are_not_fitted_anew_for_hopeless_rivals(monkeypatch):
    from regimix.result import fit

    seen = []
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 2))
    y = np.where(rng.random(3000) < 0.6, 5.0, -3.0) * X[:, 0] + 0.1 * rng.standard_normal(3000)
    whole = fit.refit
    monkeypatch.setattr(fit, "refit", lambda rows, *more: seen.append(rows.n) or whole(rows, *more))
    mixture = rivals_of(X, y, n_components=2)
    assert mixture.rivals_rows == 500
    assert mixture.rivals[0].lead < -500
    assert 500 not in seen


@pytest.mark.parametrize("kind", ["square", "exponential", "skewed"])
def test_no_relation_is_likelier_than_its_bound(monkeypatch, kind):
    """Where least squares shows that a relation has no hope, it need not be fitted."""
    X, y = table(kind, 150, np.random.default_rng(2))
    rows, units = whitened_rows(Sample(X, y, np.ones(150)), intercept=False, outliers=False)
    contest = Contest(Sample(X, y, np.ones(150)), rows, units.y_scale, 0.0)
    even = [Rival(terms=terms) for terms in ("linear", "quadratic", "spline")]
    even += [Rival(power=0.5), Rival(power=0.0)] if y.min() > 0 else []
    for rival in even:
        assert contest.fit(rival).lead <= contest.bound(rival) + 1e-6
    assert contest.bound(Rival(skewed=True)) == np.inf
    fitted = []
    whole = Contest.fit
    monkeypatch.setattr(
        Contest, "fit", lambda self, rival: fitted.append(rival) or whole(self, rival)
    )
    found = find_rivals(replace(contest, regimes=1e5))
    assert not {rival.terms for rival in fitted} - {"linear"}
    assert {rival.terms for rival in found} > {"linear"}  # they were looked at, and are named


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_weights_are_repetitions():
    X, y = table("exponential", 80, np.random.default_rng(3))
    twice = rivals_of(X, y, n_components=2)
    weighted = MixedLinearRegression(n_components=2, random_state=0)
    weighted = weighted.fit(X, y, sample_weight=np.full(80, 3.0)).mixture_
    # Copies of a row say nothing new: evidence counts distinct rows.
    assert weighted.rival.lead == pytest.approx(twice.rival.lead, abs=0.5)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(3))
def test_what_is_favoured_is_what_is_chosen(seed):
    """Heavy tails pass for two regimes, but for a noise law that has them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 1))
    y = X[:, 0] + 0.3 * rng.standard_t(2.5, 150)
    free, given = rivals_of(X, y), rivals_of(X, y, n_components=2)
    for selection in (free.selection, given.selection):
        assert selection.n_components[np.argmax(selection.evidence)] == free.n_components
    assert free.selection.chosen == free.n_components


def test_each_regime_is_checked_on_its_own_rows():
    rng = np.random.default_rng(0)
    n = 150
    x = rng.uniform(0.2, 3, 4 * n)
    e = rng.standard_normal(4 * n)
    labels = np.repeat(np.arange(4), n)
    y = np.select(
        [labels == 0, labels == 1, labels == 2, labels == 3],
        [x + 0.3 * e, x**2 + 0.3 * e, x + 0.3 * x * e, x + rng.exponential(size=4 * n)],
    )
    straight, curved, uneven, skewed = check_regimes(
        x[:, None], y, labels, np.ones(y.size), 4, fit_intercept=True
    )
    assert max(straight.curve, straight.spread, straight.noise) < 0
    assert curved.curve > 20
    assert uneven.spread > 10 > 0 > uneven.curve
    assert skewed.noise > 10 > 0 > skewed.curve
    few = check_regimes(x[:5, None], y[:5], labels[:5], np.ones(5), 1, fit_intercept=True)
    assert np.isnan(few[0].curve)


def test_regimes_with_a_gate_have_no_rival():
    """A curve imitates regimes that depend on x; the shares of a gate are not in the score."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (200, 1))
    y = np.abs(x[:, 0]) + 0.1 * rng.standard_normal(200)
    gated = MixedLinearRegression(2, gating="logistic", random_state=0).fit(x, y).mixture_
    assert gated.rivals[0].lead > 0
    assert gated.rival is None


def test_shares_that_follow_the_features_are_worth_as_much_as_a_curve():
    """Two lines, one where x is small and one where it is large, with rows of both in between."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 300)
    second = rng.random(300) < 1 / (1 + np.exp(-2 * x))
    y = np.where(second, -3 + x, x) + 0.25 * rng.standard_normal(300)
    mixture = rivals_of(x[:, None], y)
    assert mixture.n_components == 2
    assert mixture.rival is None


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_what_shares_would_gain_is_no_part_of_a_lead(monkeypatch):
    """A lead is over the regimes as they are shown; with their evidence, it is the relation's."""
    from regimix.result import fit

    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (150, 1))
    y = np.abs(x[:, 0]) + 0.1 * rng.standard_normal(150)
    found = []
    for gain in (0.0, 13.0, 1e4):
        monkeypatch.setattr(fit, "gain_of_shares", lambda *_, gain=gain: gain)
        found.append(rivals_of(x, y, n_components=2))
    least, some, most = found
    assert least.rivals[0].lead == some.rivals[0].lead == most.rivals[0].lead > 20
    # The price of an ingredient is paid.
    assert [one.gain_of_shares for one in found] == [0.0, 10.0, 9997.0]
    assert least.rival == some.rival == some.rivals[0]
    assert most.rival is None
    lead = number(most.rivals[0].lead)
    said = f"A single relation is {lead} nats likelier than the regimes, but these would gain 9997 "
    assert bare(Answer(most).single).startswith(said)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_a_relation_is_judged_on_its_own_rows(monkeypatch):
    """Leads on some rows are not added to the evidence of all; constants are scored on those."""
    from regimix.result import fit

    monkeypatch.setattr(fit, "SEARCH", replace(fit.SEARCH, first_rows=150))
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((500, 1)), np.exp(rng.standard_normal(500))
    mixture = rivals_of(X, y)
    assert mixture.found_nothing
    assert mixture.rivals_rows == 150
    # The line is far worse than constants on 500 rows, and a logarithm better on 150.
    line = dict(zip(mixture.selection.n_components, mixture.selection.evidence, strict=True))[1]
    assert mixture.rivals[0].lead + line < 0
    assert mixture.rival is not None
    over = mixture.rivals[0].lead + mixture.rivals_evidence
    said = f"it is {number(over)} nats likelier on 150 of the rows than constants."
    assert bare(Answer(mixture).rival_ahead).endswith(said)


@pytest.mark.parametrize(
    ("lead", "said"),
    [
        (1.5, "as well as two straight lines do: it is 1.5 nats likelier than the regimes; they"),
        (5.0, "better than two straight lines do: it is 5 nats likelier than the regimes; they"),
    ],
)
def test_the_warning_says_how_much_better(monkeypatch, lead, said):
    from regimix.result import fit

    monkeypatch.setattr(fit, "find_rivals", lambda *_: (Rival(power=0.0, lead=lead),))
    monkeypatch.setattr(fit, "gain_of_shares", lambda *_: 0.0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 1))
    y = np.where(rng.random(80) < 0.5, 3 + X[:, 0], -X[:, 0]) + 0.1 * rng.standard_normal(80)
    with pytest.warns(RivalWarning, match=said):
        MixedLinearRegression(random_state=0).fit(X, y)


@pytest.mark.parametrize("seed", [1, 2, 11])
@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_a_relation_is_as_likely_whichever_number_was_asked_for(seed, monkeypatch):
    """Some of these numbers of regimes pay for a regime in place of outliers, others do not."""
    monkeypatch.undo()  # one search may miss the best levels of the response
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 1))
    y = np.exp(2 + 0.1 * X[:, 0] + 0.5 * rng.normal(size=100))
    over = []
    for asked in (1, 2, 3):
        mixture = MixedLinearRegression(n_components=asked, random_state=0).fit(X, y).mixture_
        over.append(mixture.evidence + mixture.rivals[0].lead)
    np.testing.assert_allclose(over, over[0], atol=0.01)
