"""Sentences, charts and code as the reader of a page wants them."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from regimix import MixedLinearRegression, global_ilts, report, words
from regimix.report.charts import (
    Html,
    convergence,
    frame,
    prose,
    shape,
    tag,
    ticks,
)
from regimix.report.page import headline, snippet
from regimix.report.rows import read_rows
from regimix.search.selection import Attempt, Selection
from regimix.search.settings import Settings
from regimix.synth import make_mlrc
from regimix.words import tick_labels
from tests.report.conftest import made

pytestmark = pytest.mark.usefixtures("searched_once")


def test_markup_is_escaped_once():
    assert tag("b", "<", Html("<i>"), title='"') == '<b title="&quot;">&lt;<i></b>'
    assert tag("line", x1=1.26, class_="a", text_anchor=None) == '<line x1="1.3" class="a"></line>'


def test_names_are_set_apart_in_a_sentence():
    sentence = f"{words.named(words.clean('<b>' + words.END))} rises"
    assert prose(sentence) == '<bdi class="name">&lt;b&gt;\ufffd</bdi> rises'
    assert words.bare(sentence) == "<b>\ufffd rises"


@pytest.mark.parametrize("low", [-3.0, 0.0, 1e6, 1e-9])
@pytest.mark.parametrize("span", [1e-10, 0.7, 13.0, 4e8])
def test_ticks_are_few_round_and_inside(low, span):
    values = ticks(low, low + span, 6)
    assert 1 <= len(values) <= 7
    assert all(low - 1e-6 * span <= value <= low + span * (1 + 1e-6) for value in values)
    assert len(set(tick_labels(values))) == len(values)


@given(st.floats(-1e6, 1e6), st.floats(1e-2, 1e6), st.integers(3, 11))
def test_an_axis_has_two_ticks_at_least(low, span, most):
    """A range of 9.4 around zero had one, at zero: 5 is the first step of which four reach."""
    assert ticks(-4.7, 4.7, 4) == [-4.0, -2.0, 0.0, 2.0, 4.0]
    values = ticks(low, low + span, most)
    assert 2 <= len(values) <= most + 2


def test_ticks_are_the_values_of_a_feature_that_has_few():
    assert ticks(-0.04, 1.04, 11, [0.0, 1.0]) == [0.0, 1.0]
    assert ticks(-1.08, 1.08, 4, [-1.0, 1.0]) == [-1.0, 1.0]
    assert tick_labels([1.0, 2.0, 4.0]) == ["1", "2", "4"]
    assert tick_labels([0.0, 2.5, 10.0]) == ["0.0", "2.5", "10.0"]
    assert tick_labels([1.0, 2.0, 2.25]) == ["1.00", "2.00", "2.25"]
    # Where they are too close to be written beside each other, round values are.
    assert ticks(-4.0, 104.0, 11, [0.0, 1.0, 100.0]) == ticks(-4.0, 104.0, 11)


def test_a_frame_leaves_far_outliers_out():
    low, high = frame(np.array([0.0, 1.0]), np.array([1.2, 50.0]))
    assert -0.2 < low < 0
    assert 1.2 < high < 1.4
    assert frame(np.array([2.0]), np.array([])) == (1.9, 2.1)
    assert frame(np.array([]), np.array([])) == (0.0, 1.0)


def test_regimes_differ_in_shape_as_well_as_colour():
    assert len({shape(index, 3.0) for index in range(-1, 8)}) == 9
    # Colours come back after eight regimes, with another shape.
    assert shape(8, 3.0) == shape(1, 3.0)


def described(mixture, X, y, level=0.95):
    return plainly(mixture, read_rows(mixture, X, y, None), level)


def plainly(mixture, rows, level=0.95):
    """The headline as plain text."""
    said = headline(mixture, rows, level)
    found = said.pop("answer")
    regimes = [replace(regime, sentence=words.bare(regime.sentence)) for regime in found.regimes]
    return SimpleNamespace(**said, title=found.title, lead=words.bare(found.lead), regimes=regimes)


def test_the_headline_counts_and_names():
    mixture, X, y = made(500, 2, 3, names=("age", "income"), target="spend")
    said = described(mixture, X, y)
    assert said.title == "3 linear regimes in 500 rows"
    assert "Three different equations in two features account for spend in " in said.lead
    assert [regime.index for regime in said.regimes] == [0, 1, 2]
    assert all("age (" in regime.sentence for regime in said.regimes)
    assert " rows (" in said.which
    assert said.notices == []


def test_the_headline_tells_a_slope_from_none(tone):
    said = plainly(tone, read_rows(tone, None, None, None))
    assert "tuned rises by 0.9988 (95% interval" in said.regimes[1].sentence
    wide = replace(tone.inference, standard_error=np.full((2, 1), 9.0))
    unsure = replace(tone, inference=wide)
    said = plainly(unsure, None)
    # An interval around zero does not say that the slope is small.
    said = said.regimes[1].sentence
    assert said.startswith("tuned does not clearly depend on stretchratio: ")


def test_rows_that_were_left_out_have_outliers_of_their_own():
    mixture, X, y = made(100, 2, 2, outliers=0.0)
    y[7] += 1000
    labels = np.where(np.arange(100) == 7, -1, mixture.labels)
    said = described(replace(mixture, outlier_share=1e-6, labels=labels), X, y)
    assert said.which == "1 row (1.0%) is labelled an outlier: 7."


def test_a_regime_without_features_or_noise():
    mixture, X, y = made(50, 1, 1)
    flat = replace(mixture, coef=np.zeros((1, 1)), scale=np.zeros(1))
    said = described(flat, X, y)
    assert said.regimes[0].sentence.startswith("Whatever the features, y is about")
    assert said.regimes[0].sentence.endswith("Its rows lie exactly on it.")


@pytest.mark.parametrize(
    ("evidence", "grade"), [(1.0, "thin"), (5.0, "fair"), (20.0, "strong"), (99.0, "overwhelming")]
)
def test_evidence_is_graded(evidence, grade):
    mixture, X, y = made(50, 1, 1)
    asked = replace(mixture, evidence=evidence, settings=Settings(n_components=1))
    assert described(asked, X, y).sure.startswith(
        f"The evidence is {grade}: {evidence:g} nats over"
    )


@pytest.mark.parametrize(
    ("settings", "evidence", "said"),
    [
        (
            {},
            -2.5,
            "Constants explain y in the 50 rows better than linear relations to x0 do, by 2.5",
        ),
        ({}, 2.1, "y to x0 in the 50 rows: they would gain 2.1 nats over constants, and 3 are"),
        ({"n_components": 1}, -2.5, "by 2.5 nats. What follows is the line all the same, as asked"),
        ({"n_components": 4}, -2.5, "What follows is the line all the same; four were asked for"),
        (
            {"search": "net"},
            -np.inf,
            "Algorithm 2 accepted no linear relation of y to x0 in the 50",
        ),
    ],
)
def test_where_there_is_nothing_the_nearest_miss_is_told(settings, evidence, said):
    mixture, X, y = made(50, 1, 1)
    nothing = described(replace(mixture, evidence=evidence, settings=Settings(**settings)), X, y)
    # Of several that were asked for, one may be supported all the same.
    several = settings.get("n_components", 1) > 1
    title = "50 rows do not support 4 linear regimes" if several else "No linear regime in 50 rows"
    assert nothing.title == title
    assert said in nothing.lead
    assert nothing.lead.endswith(": a description, not a finding.")


def sure_of(known, m=2):
    """What is said of so many regimes, where this is the evidence of each number."""
    mixture, X, y = made(50, 1, m)
    counts, values = np.array([*known]), np.array([*known.values()])
    path = Selection(counts, values, 0 * values, 0 * values, chosen=m)
    each = replace(mixture, evidence=known[m], selection=path, component_evidence=np.full(m, 700.0))
    return described(each, X, y).sure


def test_the_number_of_regimes_has_the_evidence_over_one_regime_fewer():
    """Not what is lost where one is left out and the others do not take over its rows."""
    sure = sure_of({1: 603.0, 2: 623.0, 3: 622.0})
    assert sure.startswith(
        "The evidence is overwhelming: 623 nats over constants for the model as a"
    )
    said = "The evidence for two regimes rather than one is strong: one regime, fitted anew, has 20"
    assert f"{said} nats less." in sure
    assert "700" not in sure
    thin = "evidence for three regimes rather than two is thin: two regimes, fitted anew, have 2.5"
    assert f"{thin} nats less." in sure_of({2: 20.0, 3: 22.5}, 3)


def test_one_regime_fewer_that_is_better_or_worse_than_constants_is_called_that():
    assert "Two regimes, fitted anew, have 4 nats more." in sure_of({2: 20.0, 3: 16.0}, 3)
    assert "One regime, fitted anew, is worse than constants." in sure_of({1: -2.0, 2: 4.0})
    for unknown in ({2: 20.0}, {1: np.nan, 2: 20.0}):
        assert "rather than" not in sure_of(unknown)
        assert "anew" not in sure_of(unknown)


def test_rows_are_counted_by_their_labels():
    mixture, X, y = made(200, 2, 2, outliers=0.0)
    y[:1] += 1000
    labels = np.where(np.arange(200) == 0, -1, mixture.labels)
    one = described(replace(mixture, outlier_share=1e-6, labels=labels), X, y)
    assert "account for y in 199 of the 200 rows (99.5%), each in its own." in one.lead
    rest = "The other one (0.5%) is labelled an outlier."
    assert one.lead.endswith(rest)
    assert one.which.startswith("1 row (0.5%) is labelled an outlier")
    unlabelled = replace(mixture, labels=np.empty(0, dtype=np.int64), outlier_share=0.1)
    said = plainly(unlabelled, None)
    assert "an estimated 90.0% of the 200 rows" in said.lead
    assert "The other 10.0% are taken for outliers." in said.lead


def test_other_rows_than_those_of_the_fit_are_called_so(tone, tone_rows):
    X, y = (part.to_numpy() for part in tone_rows)
    assert described(tone, X, y).notices == []
    part = described(tone, X[:60], y[:60])
    out = int(np.count_nonzero(tone.assign(X[:60], y[:60]) < 0))
    assert part.notices[0].startswith("This page shows 60 rows, not the 150 that the model was")
    inside = int(np.count_nonzero(tone.labels >= 0))
    shown = (
        f"account for tuned in {inside} of the 150 rows of the fit ({words.percent(inside / 150)})"
    )
    assert shown in part.lead
    assert part.which.startswith(f"Of the 60 rows shown, {out} ({words.percent(out / 60)}) are")
    assert "Of the 60 rows shown, " in part.sure
    others = described(tone, X[::-1], y[::-1])
    assert others.notices[0].startswith("This page shows 150 rows, not those that the model was")
    inner = np.flatnonzero(tone.labels >= 0)[:5]
    good = described(tone, X[inner], y[inner])
    assert good.which == "None of the 5 rows shown: each lies within reach of a regime."
    outer = np.flatnonzero(tone.labels < 0)[:1]
    only = described(tone, X[outer], y[outer])
    assert only.which.startswith("The one row shown is labelled an outlier: 0.")


def test_an_outlier_that_a_regime_may_explain_is_called_doubtful(tone):
    """One of P(outlier) 0.5 to 0.8 lies near a regime: it is not said to fit none."""
    x = np.full((2000, 1), 2.0)
    y = np.linspace(1.5, 3.5, 2000)
    chance = tone.responsibilities(x, y)[:, -1]
    near = np.flatnonzero((tone.assign(x, y) < 0) & (chance < 0.79))[:1]
    far = np.flatnonzero(chance > 0.9)[:1]
    both = np.append(near, far)
    doubt = " It is in doubt: P(outlier) is below 80%."
    assert described(tone, x[near], y[near]).which.endswith(f"an outlier: 0.{doubt}")
    assert described(tone, x[far], y[far]).which.endswith("an outlier: 0.")
    assert "Of these, 1 is in doubt: P(outlier)" in described(tone, x[both], y[both]).which


def test_what_must_be_known_first_is_said(tone):
    settings = replace(tone.settings, n_components=5)
    odd = replace(tone, settings=settings, ranks=(1, 2), stopped="interrupted")
    notices = " ".join(headline(odd, None, 0.95)["notices"])
    assert "interrupted" in notices
    assert "5 regimes were asked for; 2 were found before it was interrupted." in notices
    done = replace(odd, stopped="nothing improves")
    assert "5 regimes were asked for; the rows support 2." in headline(done, None, 0.95)["notices"]
    assert "1 of its 2 coefficients" in notices


def test_the_snippet_fits_the_same_model(tone):
    settings = replace(tone.settings, n_components=2, outliers=0.1)
    code = snippet(replace(tone, settings=settings))
    assert "MixedLinearRegression(n_components=2, outliers=0.1, random_state=0)" in code
    assert "table[['stretchratio']], table['tuned']" in code
    compile(code, "snippet", "exec")
    plain = replace(tone.settings, outliers=0.0, noise="student", keep_rows=True)
    options = "outliers=0.0, noise='student', random_state=0"
    assert f"MixedLinearRegression({options})" in snippet(replace(tone, settings=plain))
    hostile = replace(tone, feature_names=("'\n\u202e",), target_name='"')
    compile(snippet(hostile), "snippet", "exec")
    assert snippet(hostile).isascii()
    foreign = replace(tone, feature_names=("Größe",), target_name="高さ\u200b")
    assert "table[['Größe']], table['高さ\\u200b']" in snippet(foreign)


@pytest.mark.parametrize(
    "options",
    [
        {"n_components": 2, "search": "net"},
        {"n_components": 2, "search": "net", "solver": "cg", "shares": 0.3, "tolerance": 0.1},
        {"n_components": 2, "search": "net", "max_iter": 50, "fit_intercept": False},
        {"n_components": 2, "outliers": 0.1, "fit_intercept": False},
        {"n_components": 2, "search": "partition", "fit_intercept": True},
    ],
)
def test_the_snippet_of_any_fit_runs_and_says_the_same(options, capsys):
    X, y, _ = make_mlrc(120, 2, 2, noise=0.05, corruption=0.05, random_state=0)
    mixture = global_ilts(X, y, random_state=3, **options)
    exec(compile(snippet(mixture), "snippet", "exec"), {"X": X, "y": y})
    printed = capsys.readouterr().out.strip()
    assert printed.partition("Search")[0] == str(mixture).partition("Search")[0]


def test_the_snippet_asks_for_what_the_model_does_not_know():
    X, y, _ = make_mlrc(200, 2, 2, noise=0.05, random_state=0)
    weights = np.arange(200) % 3
    model = MixedLinearRegression(gating=LogisticRegression(), random_state=0)
    code = snippet(model.fit(X, y, weights, gating_features=X[:, :1]).mixture_)
    asked = {"X": X, "y": y, "weights": weights, "gating": model.gating}
    for name in (*list(asked)[1:], "gating_features"):
        assert re.search(rf"^# .*\b{name}: ", code, re.MULTILINE), name
    exec(compile(code, "snippet", "exec"), asked | {"gating_features": X[:, :1], "print": id})
    plain = snippet(model.set_params(gating=None).fit(X, y).mixture_)
    assert "weights" not in plain
    assert plain.splitlines()[2] == "# X, y: the features and the response of the rows of the fit"


def test_attempts_of_any_gain_can_be_drawn():
    gains = [0.0, 1e9, -1e9, np.inf, np.nan]
    drawn = convergence([Attempt("add", "joint", gain, gain > 0, "") for gain in gains])
    assert drawn.count("<circle") == 3
    assert "nan" not in drawn
    assert convergence([]) == ""


def test_of_many_numbers_of_regimes_some_are_written_below_their_points():
    """Beside each other in print, all of them would run into one another."""

    def written(most):
        counts = np.arange(1, most + 1)
        path = Selection(counts, -1.0 * counts, 1.0 * counts, 1.0 * counts, chosen=3)
        page = report.render(replace(made(40, 1, 3)[0], selection=path))
        return [int(n) for n in re.findall(r'y="184" text-anchor="middle">(\d+)<', page)]

    assert written(11) == 3 * list(range(1, 12))
    assert written(13) == 3 * list(range(1, 14, 2))
