"""Is there a relation at all: regimes with slopes against regimes that are constants."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix import MixedLinearRegression
from regimix.engines.base import Sample
from regimix.errors import EvidenceWarning
from regimix.model import em
from regimix.model.em import Parameters, refit
from regimix.model.laws import NoiseLaw
from regimix.model.numbers import MODEL
from regimix.model.rows import whitened_rows
from regimix.result.answer import Answer
from regimix.result.fit import _given_values, _of_any_law
from regimix.search import selection
from regimix.search.loop import bulk_model
from regimix.search.selection import (
    Weighed,
    score_of_constants,
    score_without_slopes,
    weigh,
)
from regimix.search.settings import Settings
from regimix.words import bare

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=12)

# Responses that know nothing of the features, and look nothing like a bell.
LAWS = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "two bumps": lambda rng, n: rng.choice([-3.0, 3.0], n) + rng.standard_normal(n),
    "counts": lambda rng, n: rng.poisson(1.0, n).astype(float),
    "rounded": lambda rng, n: np.round(rng.standard_normal(n)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "constant": lambda rng, n: np.full(n, 3.0),
}


def rows_of(X, y, intercept=True):
    design = np.column_stack([np.ones(len(y)), X]) if intercept else X
    return whitened_rows(Sample(design, y, np.ones(len(y))), intercept=intercept)[0]


def constants_beside(rows, fitted):
    """The best that constants do: at levels of the response, or the model's own regimes."""
    return max(score_of_constants(rows, "auto"), score_without_slopes(rows, fitted))


def one_line(rows):
    return refit(rows, bulk_model(rows), 30)


@few
@given(seeds, st.integers(20, 200), st.booleans())
def test_noise_needs_no_slope(seed, n, intercept):
    rng = np.random.default_rng(seed)
    rows = rows_of(rng.standard_normal((n, 2)), rng.standard_normal(n), intercept)
    fitted = one_line(rows)
    assert fitted.score < constants_beside(rows, fitted) + 3


@few
@given(seeds, st.booleans())
def test_a_line_is_better_than_constants(seed, intercept):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 2))
    rows = rows_of(X, X @ [1.0, -1.0] + 0.3 * rng.standard_normal(60), intercept)
    fitted = one_line(rows)
    assert fitted.score > constants_beside(rows, fitted) + 20


def slow_constants(rows):
    """All numbers of levels followed to the end, with outliers and without."""
    best = -np.inf
    for outliers in {rows.outliers, False}:
        alone = replace(rows.constants(), outliers=outliers)
        starts = [selection._levels(alone, count) for count in range(1, 6)]
        fits = [refit(alone, start, MODEL.rounds) for start in starts]
        likeliest = max(fits, key=lambda fit: fit.score)
        best = max(best, refit(alone, likeliest.model, MODEL.rounds).score)
    return best


@few
@given(seeds, st.booleans(), st.sampled_from(sorted(LAWS)))
def test_constants_that_are_given_up_would_not_be_the_best(seed, wrong, law):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((120, 2)), LAWS[law](rng, 120)
    y[:12] += 20 * wrong * rng.standard_normal(12)
    rows = rows_of(X, y)
    assert score_of_constants(rows, "normal") == pytest.approx(slow_constants(rows), abs=0.1)


@pytest.mark.parametrize("beside", [False, True])
def test_constants_that_cannot_win_are_not_followed(monkeypatch, beside):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 1))
    y = X[:, 0] * rng.choice([-1.0, 1.0], 400) + 0.1 * rng.standard_normal(400)
    y[:40] = 5 * rng.standard_normal(40)
    rows = rows_of(X, y)
    coef, share = np.array([[0.0, 1.0], [0.0, -1.0]]), np.full(2, 0.45)
    lines = Parameters.point(coef / rows.spread(), np.full(2, 0.1), share, ("a", "b"))
    fitted, constants = refit(rows, lines, 30), score_of_constants(rows, "normal")

    def searched(**changed):
        rounds = []
        monkeypatch.setattr(selection, "refit", counting(rounds, **changed))
        if beside:
            return max(constants, score_without_slopes(rows, fitted, constants)), sum(rounds)
        return score_of_constants(rows, "normal"), sum(rounds)

    (short, fewer), (whole, more) = searched(), searched(goal=-np.inf)
    assert short == pytest.approx(whole, abs=MODEL.settled)
    assert fewer < more


def counting(rounds, **changed):
    """A refit that notes its rounds."""

    def counted(rows, model, *args, **settings):
        seen, plain = [], em.maximise
        em.maximise = lambda *round: (seen.append(1), plain(*round))[1]
        try:
            return refit(rows, model, *args, **{**settings, **changed})
        finally:
            em.maximise = plain
            rounds.append(len(seen))

    return counted


@few
@given(seeds)
def test_bumps_of_the_response_are_explained_by_constants(seed):
    """Two lines that are flat but far apart: as many constants do as well."""
    rng = np.random.default_rng(seed)
    X, high = rng.standard_normal((200, 2)), rng.random(200) < 0.5
    rows = rows_of(X, 20.0 * high + rng.standard_normal(200))
    levels = [rows.y[high].mean(), rows.y[~high].mean()]
    coef = np.array([[level, 0.0, 0.0] for level in levels])
    scale, share = np.full(2, rows.y[high].std()), np.full(2, 0.45)
    fitted = refit(rows, Parameters.point(coef, scale, share, ("a", "b")), 30)
    assert fitted.score < constants_beside(rows, fitted)


def test_the_best_constants_do_not_depend_on_the_labels_alone():
    """Regimes that cross say nothing of levels: those are looked for in the response itself."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1))
    y = rng.choice([0.0, 30.0], 300) + 0.1 * rng.standard_normal(300)
    rows = rows_of(X, y)
    crossing = Parameters.point(
        np.array([[0.5, 1.0], [0.5, -1.0]]), np.ones(2), np.full(2, 0.45), ("a", "b")
    )
    fitted = refit(rows, crossing, 1)
    two = Parameters.point(
        np.quantile(rows.y, [0.1, 0.9])[:, None], np.full(2, 0.05), np.full(2, 0.45), ("a", "b")
    )
    wanted = refit(rows.constants(), two, 30).score
    assert constants_beside(rows, fitted) > wanted - 1


@pytest.mark.filterwarnings("ignore::regimix.errors.UnrepeatedWarning")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seed", range(2))
def test_the_law_of_the_response_alone_is_no_relation(law, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 2))
    with pytest.warns(EvidenceWarning, match="constants explain y better|y is constant"):
        fit = MixedLinearRegression(random_state=0).fit(X, LAWS[law](rng, 100))
    assert fit.n_components_ == 1
    assert fit.evidence_ < 3


@pytest.mark.usefixtures("searched_once")
@pytest.mark.parametrize("seed", range(4))
def test_the_line_shown_where_nothing_is_found_is_that_of_most_rows(seed):
    """Half of the rows lie close to zero: a line through these would leave the others out."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((150, 1)), rng.exponential(size=150) ** 2
    with pytest.warns(EvidenceWarning, match="constants explain y better"):
        fit = MixedLinearRegression(random_state=0).fit(X, y)
    assert 2 * np.count_nonzero(fit.labels_ == 0) > y.size


@pytest.mark.parametrize("seed", range(4))
def test_heaps_of_a_rounded_response_are_no_outliers_beside_its_line(seed):
    """The commonest value alone is more concentrated than any line with rounded noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((350, 2))
    y = np.clip(np.round(3 + 0.35 * X[:, 0] + 0.25 * rng.standard_normal(350)), 2, 4)
    fit = MixedLinearRegression(random_state=0).fit(X, y)
    assert fit.n_components_ == 1
    assert np.count_nonzero(fit.labels_ == 0) > 0.9 * y.size


def test_regimes_that_need_the_features_stay_though_the_response_has_bumps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1))
    high = rng.random(300) < 0.4
    y = np.where(high, 10 + X[:, 0], 0.5 * X[:, 0]) + 0.3 * rng.standard_normal(300)
    fit = MixedLinearRegression(random_state=0).fit(X, y)
    assert fit.n_components_ == 2
    assert fit.evidence_ > 20


@pytest.mark.parametrize("wrong", [0, 20, 200])
def test_sums_tell_that_there_are_outliers_and_rounds_that_there_are_none(monkeypatch, wrong):
    rng = np.random.default_rng(wrong)
    X, y = rng.standard_normal((2000, 2)), 0.1 * rng.standard_normal(2000)
    y += X @ [1.0, -1.0]
    y[rng.permutation(2000)[:wrong]] += 20 * rng.standard_normal(wrong)
    rows, searched = rows_of(X, y), []

    def counted(rows, *settings, **more):
        searched.append(rows.n)
        return refit(rows, *settings, **more)

    fitted = one_line(rows)
    monkeypatch.setattr(selection, "refit", counted)
    weighed = weigh(rows, rows, fitted, "normal", free=True)
    assert (weighed.fitted is weighed.dirty) == (wrong > 0)
    assert set(searched) == (set() if wrong else {rows.n})


def heaped(seed, n=240):
    """A relation whose response is 2 or 3 in many rows, as tips are, and has two decimals else."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(5, 35, (n, 1))
    y = 0.6 + 0.12 * X[:, 0] + rng.standard_normal(n)
    shared = np.isin(np.round(y), (2, 3)) & (rng.random(n) < 0.6)
    return X, np.where(shared, np.round(y), np.round(y, 2))


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(2))
def test_a_model_of_heaped_responses_has_one_evidence_whichever_number_was_asked_for(seed):
    """Constants at single values, which only some searches come across, are no baseline of all."""
    X, y = heaped(seed)
    one, three = (MixedLinearRegression(n_components=m, random_state=0).fit(X, y) for m in (1, 3))
    # A larger search may find a better line, and never a worse one.
    assert three.selection_["evidence"][0] > one.selection_["evidence"][0] - 1
    # Values that rows share, which need no slope, are not called evidence of a relation.
    mixture = three.mixture_
    assert mixture.without_slopes > 80
    assert mixture.evidence_of_features == pytest.approx(three.evidence_ - mixture.without_slopes)
    assert 50 < mixture.evidence_of_features < 100


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_heaped_responses_that_are_shuffled_show_no_relation():
    X, y = heaped(0)
    shuffled = np.random.default_rng(1).permutation(y)
    for m in ("auto", 1, 3):
        fit = MixedLinearRegression(n_components=m, random_state=0).fit(X, shuffled)
        assert fit.mixture_.evidence_of_features < 3
        assert fit.selection_["evidence"].max() < 3


@pytest.mark.usefixtures("searched_once")
@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(2))
def test_the_nearest_miss_is_the_best_line_and_not_the_one_that_is_shown(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((100, 2)), rng.gamma(2, size=100)
    free, one = (MixedLinearRegression(n_components=m, random_state=0) for m in ("auto", 1))
    with pytest.warns(EvidenceWarning, match=r"line that most rows follow, which has -\S+ nats,"):
        free.fit(X, y)
    one.fit(X, y)
    assert free.evidence_ == pytest.approx(one.evidence_, abs=0.2)
    assert free.selection_["evidence"][0] == pytest.approx(one.evidence_, abs=0.2)
    assert free.mixture_.rivals_evidence < free.evidence_


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(3))
def test_heavy_tails_are_no_evidence_of_levels(seed):
    """Constants may have them, too: a line without outliers does not owe them its evidence."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 1))
    y = X[:, 0] + 0.6 * rng.standard_t(2, 80)
    fit = MixedLinearRegression(outliers=0, noise="student", random_state=0).fit(X, y)
    assert fit.evidence_ > 3
    assert fit.mixture_.without_slopes < 0.5


@pytest.mark.usefixtures("searched_once")
@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["levels", "grades"])
def test_few_values_and_heaps_do_not_hide_a_relation(kind, seed):
    """Constants at the values explain them better than lines with even noise do."""
    rng = np.random.default_rng(seed)
    if kind == "levels":
        X = rng.standard_normal((300, 2))
        low = rng.random(300) < 1 / (1 + np.exp(-1.2 * X[:, 0]))
        y = np.where(low, 0.0, 30.0) + rng.standard_normal(300)
    else:  # 300 rows, few of them different
        X = rng.integers(0, 2, (300, 2)).astype(float)
        y = np.where(
            rng.random(300) < 0.5, np.where(X[:, 0] > 0, 5.0, 1.0), rng.integers(1, 6, 300)
        )
    fit, one, alone = (MixedLinearRegression(m, random_state=0) for m in ("auto", 1, "auto"))
    fit.fit(X, y)
    # The logarithm of a likelihood ratio, less about half a logarithm of the rows for each slope.
    table = np.column_stack([np.ones(300), X])
    theta = np.linalg.lstsq(table, y, rcond=None)[0]
    ratio = 150 * np.log(y.var() / np.mean((y - table @ theta) ** 2))
    assert 0.7 * ratio - 2 * np.log(300) < fit.evidence_ < 1.1 * ratio
    assert fit.mixture_.given_values
    assert fit.selection_["evidence"][0] == fit.evidence_
    assert fit.mixture_.component_evidence == fit.evidence_
    np.testing.assert_allclose(fit.coef_[0], theta[1:], rtol=1e-6)
    assert (fit.labels_ == 0).all()
    for shown in str(fit.mixture_), str(fit.summary()), " ".join(Answer(fit.mixture_).notices):
        assert "the evidence is counted given" in " ".join(bare(shown).split())
    assert one.fit(X, y).evidence_ == pytest.approx(fit.evidence_, abs=0.01)
    alone.fit(X, rng.permutation(y))
    assert alone.mixture_.found_nothing
    assert alone.mixture_.gain_of_line == 0


@pytest.mark.usefixtures("searched_once")
@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(2))
def test_one_line_given_the_values_goes_through_all_rows_also_of_a_large_table(monkeypatch, seed):
    """Other numbers of regimes may show a relation; among rows not searched may be outliers."""
    monkeypatch.setattr("regimix.result.fit.SEARCH_ROWS", 1000)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3000, 2))
    exact = rng.random(3000) < 0.5
    y = np.where(exact, np.where(X[:, 0] > 0, 5.0, 1.0), rng.integers(1, 6, 3000))
    one = MixedLinearRegression(1, random_state=0).fit(X, y)
    assert one.evidence_ > 20
    assert one.mixture_.given_values
    assert (one.labels_ == 0).all()
    table = np.column_stack([np.ones(3000), X])
    theta = np.linalg.lstsq(table, y, rcond=None)[0]
    np.testing.assert_allclose(one.coef_[0], theta[1:], atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_given_the_values_the_line_is_least_squares_whatever_the_tails(seed):
    """The evidence is that the mean of counts depends on x; the line of heavy tails was flatter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((500, 1))
    y = rng.negative_binomial(1, 1 / (1 + np.exp(1 + 0.5 * X[:, 0]))) * 1.0
    sample = Sample(np.column_stack([np.ones(500), X]), y, np.ones(500))
    rows = replace(whitened_rows(sample, intercept=True)[0], outliers=False)
    tails = Weighed(None, refit(rows, replace(bulk_model(rows), noise=NoiseLaw(3.0)), 30))
    least = np.linalg.lstsq(rows.design, rows.y, rcond=None)[0]
    assert tails.fitted.model.coef[0, 1] < 0.9 * least[1]

    def shown(noise):
        assert _given_values(rows, sample, "none")[2] is not None
        return _of_any_law(rows, tails, Settings(noise=noise)).fitted.model

    np.testing.assert_allclose(shown("auto").coef[0], least, rtol=0.01)  # the prior shrinks it
    assert shown("student").coef[0, 1] == tails.fitted.model.coef[0, 1]  # as asked for


@pytest.mark.parametrize("seed", range(3))
def test_a_few_rows_far_from_the_others_are_no_relation_of_these(seed):
    """As in hbk: rows far away in the features have other responses, the rest has no slope."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((150, 3)), rng.integers(0, 3, 150) * 1.0
    X[:15] += 10
    y[:15] = 4

    def asked():
        sample = Sample(np.column_stack([np.ones(150), X]), y, np.ones(150))
        rows = replace(whitened_rows(sample, intercept=True)[0], outliers=False)
        return _given_values(rows, sample, "none")

    gain, core, counted = asked()
    assert gain > 10
    assert core == 0
    assert counted is None
    # A line that all rows have is one.
    X[:] = rng.standard_normal((150, 3))
    X[:, 0] += y
    gain, core, counted = asked()
    assert gain >= core > 3
    assert counted is not None
