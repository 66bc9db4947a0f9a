"""One quantity, one name, one value: what the terminal, summary, notebook, report and plots say."""

import html
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regimix import MixedLinearRegression, load, save, theory
from regimix.data.recipe import Column, Recipe
from regimix.datasets import load_tone
from regimix.errors import StopReason
from regimix.estimators.mixture import _nothing
from regimix.model.labelling import SURE
from regimix.plots import QQDisplay, RegimesDisplay, SelectionDisplay
from regimix.report import render
from regimix.report.charts import _tails, panels
from regimix.report.notebook import mixture_html
from regimix.report.page import (
    _gain,
    assumptions,
    checks,
    compared,
    comparison,
    headline,
    rivals,
    selection,
)
from regimix.report.rows import Terms, read_rows
from regimix.report.scatter import Cloud
from regimix.result.answer import GRADES, HELD, Answer, grade, granted, rows_labelled
from regimix.result.rivals import Rival, check_regimes
from regimix.result.rowlaw import RowLaw, are_fitted
from regimix.result.stability import Stability
from regimix.result.summary import Summary
from regimix.search import loop
from regimix.search.numbers import SEARCH
from regimix.search.selection import Attempt, Selection
from regimix.search.settings import Settings
from regimix.synth import make_mlrc
from regimix.theory.audit import Finding
from regimix.words import UNKNOWN, bare, number, percent
from tests.result.test_inference import known_mixture
from tests.result.test_mixture import mixture_of

DOCS = Path(__file__).parents[2] / "docs"


pytestmark = pytest.mark.usefixtures("module_searched_once")


@pytest.fixture(scope="module")
def tone(module_searched_once):
    data = load_tone()
    return MixedLinearRegression(random_state=0, keep_rows=True).fit(data.X, data.y).mixture_


@pytest.fixture(scope="module")
def weighted(module_searched_once):
    """A fit whose rows repeat, some never, and its weights."""
    X, y, _ = make_mlrc(300, 2, 2, noise=0.3, corruption=0.05, random_state=1)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    model = MixedLinearRegression(random_state=0, keep_rows=True)
    return model.fit(X, y, sample_weight=weights).mixture_, X, y, weights


def everywhere(mixture):
    """All texts about a mixture."""
    return {
        "terminal": str(mixture),
        "summary": str(Summary(mixture)),
        "notebook": mixture_html(mixture),
        "report": render(mixture),
    }


def test_a_share_is_called_share_everywhere(tone):
    """And not also "of the model"; how many rows have a label is another number."""
    for place, text in everywhere(tone).items():
        plain = " ".join(re.sub("<[^>]*>", " ", text).split())
        assert re.search(rf"[Ss]hare\b.* {percent(tone.weights[0])}", plain), place
        assert not re.search("(share|%) of the model", plain, re.IGNORECASE), place


def test_the_share_of_rows_in_doubt_is_the_same_everywhere(tone):
    excerpt = tone.excerpt
    doubtful = tone.responsibilities(excerpt.X, excerpt.y).max(axis=1) < SURE
    assert tone.doubtful_rows == np.count_nonzero(doubtful) > 0
    for place, text in everywhere(tone).items():
        assert percent(tone.doubtful_rows / 150) in text, place
        assert "in doubt" in text, place
    assert Answer(tone).headline.endswith(f", {percent(tone.doubtful_rows / 150)} of them in doubt")
    none = replace(tone, doubtful_rows=0)
    assert Answer(none).headline.endswith(", none of them in doubt")
    assert Answer(none).lead.endswith("No row is in doubt.")


def test_one_regime_is_a_relation_too(tone):
    """Where no rival is as good, it is no other relation that explains the rows."""
    behind = replace(tone, rivals=(Rival(terms="quadratic", lead=-2.0),))
    said = "relation that was tried explains the rows as well."
    assert Answer(behind).single == f"No single {said}"
    assert Answer(replace(mixture_of([[1.0]]), rivals=behind.rivals)).single == f"No other {said}"


def test_one_row_in_doubt_is_one(tone):
    one = Answer(replace(tone, doubtful_rows=1)).lead
    assert one.endswith("1 row (0.7%) is in doubt: its likeliest label is less than 80% likely.")


@pytest.mark.parametrize("gating", [None, "logistic"])
def test_no_row_is_in_doubt_where_the_share_of_outliers_was_given(tone, gating):
    """Trimming goes by rank: by a law of outliers that suits it, all rows would be in doubt."""
    data = load_tone()
    model = MixedLinearRegression(2, outliers=0.1, gating=gating, random_state=0)
    mixture = model.fit(data.X, data.y).mixture_
    assert mixture.label_counts[-1] == 15
    assert mixture.doubtful_rows is None
    assert Answer(mixture).headline == "2 linear regimes in 150 rows"
    assert re.search(f"Rows in doubt: +{UNKNOWN} ", str(Summary(mixture)))


def test_rows_in_doubt_are_counted_by_weight(weighted):
    mixture, X, y, weights = weighted
    doubtful = mixture.responsibilities(X, y).max(axis=1) < SURE
    assert mixture.doubtful_rows == weights[doubtful].sum()


def test_outliers_are_counted_by_label_and_their_share_is_that_of_the_count(tone):
    rows = int(np.count_nonzero(tone.labels < 0))
    counted, modelled = percent(rows / 150), percent(tone.outlier_share)
    assert counted != modelled
    summary = str(Summary(tone))
    assert re.search(rf"Outliers, by label: +{rows} \({counted}\)", summary)
    assert re.search(rf"Outliers, share: +{modelled}", summary)
    for place, text in everywhere(tone).items():
        assert f"{rows} ({modelled})" not in text, place
    assert f"outliers ({rows} rows labelled so, {counted})" in str(tone)
    legend = RegimesDisplay.from_mixture(tone).ax_.get_legend().get_texts()
    assert f"outliers ({counted} of rows)" in [text.get_text() for text in legend]


def test_weighted_rows_are_counted_alike_in_summary_and_report(weighted):
    mixture, X, y, weights = weighted
    counts = [int(weights[mixture.labels == j].sum()) for j in (0, 1, -1)]
    assert [line.rows for line in Answer(mixture).lines] == [str(rows) for rows in counts]
    summary, total = str(Summary(mixture)), weights.sum()
    assert all(f", {rows} rows by label, " in summary for rows in counts[:2])
    said = headline(mixture, read_rows(mixture, X, y, None), 0.95)
    assert said["answer"].title.endswith(f"in {total} rows")
    assert f" in {total - counts[2]} of the {total} rows" in bare(said["answer"].lead)
    assert any("Rows count by their weights" in notice for notice in said["notices"])
    there, out = np.count_nonzero(weights), (mixture.labels < 0) & (weights > 0)
    share = f"{out.sum()} of the {there} rows shown ({out.sum() / there:.1%})"
    assert said["which"].startswith(f"{share} are")


def test_the_expected_response_has_an_r_squared_of_its_own(tone):
    X, y = tone.excerpt.X, tone.excerpt.y
    total = np.sum((y - y.mean()) ** 2)
    expected = 1 - np.sum((y - tone.predict(X)) ** 2) / total
    design = np.column_stack([np.ones(150), X])
    line = 1 - np.sum((y - design @ np.linalg.lstsq(design, y)[0]) ** 2) / total
    assert tone.rows.r_squared_expected == pytest.approx(expected)
    assert tone.rows.r_squared_least_squares == pytest.approx(line)
    summary = str(Summary(tone))
    for name, value in (("expected response", expected), ("least squares", line)):
        assert re.search(rf"R², {name}: +{value:.3f}", summary)
    said = Answer(tone).r_squared
    assert said.startswith("R² of a regime is that among the rows sorted to it, by their ")
    assert " probabilities. Over all rows, " in said
    assert said in render(tone)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize(("power", "name"), [(0.0, "log tuned"), (0.5, "√tuned")])
def test_r_squared_of_a_power_of_the_target_is_not_that_of_predictions(tone, power, name):
    """Predictions are put back into units of the target; that R² is not known at the fit."""
    recipe = Recipe("tuned", (Column("stretchratio", "number"),), power=power)
    fitted = replace(tone, encoding=recipe, target_name=recipe.response)
    assert recipe.response == name
    said = f"Over all rows, outliers included, the expected {name} has R² "
    for text in (Answer(fitted).r_squared, " ".join(str(Summary(fitted)).split()), render(fitted)):
        assert said in text
        assert "(predict)" not in text
    plain = replace(tone, encoding=replace(recipe, power=1.0))
    assert "the expected response (predict) has R² " in Answer(plain).r_squared


def test_no_least_squares_where_rows_are_few():
    wide = np.random.default_rng(1).standard_normal((12, 12))
    mixture = MixedLinearRegression(random_state=0).fit(wide[:, 1:], wide[:, 0]).mixture_
    assert np.isnan(mixture.rows.r_squared_least_squares)
    assert "least squares" not in Answer(mixture).r_squared


def test_grades_of_evidence_are_those_of_the_page():
    text = (DOCS / "inference.rst").read_text(encoding="utf-8")
    limits = [0.0, *(limit for _, limit in GRADES)]
    for (name, limit), low in zip(GRADES, limits, strict=False):
        bounds = f"below {limit:g}" if low == 0 else f"{low:g} to {limit:g}"
        assert (
            f"* - {name}\n     - {bounds if np.isfinite(limit) else f'{low:g} or more'}\n" in text
        )
        assert grade(low) == name
    assert grade(np.nextafter(3.0, 0.0)) == "thin"


def test_what_errors_take_for_granted_is_said_once(tone):
    page = render(tone)
    assert granted(tone) in page
    assert "as known" not in page
    assert granted(tone) in " ".join(str(Summary(tone)).split())


def test_a_ranking_by_deviations_is_not_called_one_by_units():
    mixture = mixture_of([[500.0, 2.0]])
    unit = Answer(mixture).regimes[0].sentence
    assert bare(unit).startswith("By one unit of each, y moves most with x0 (+500 a unit), then")
    ranked = replace(mixture, rows=law([0.001, 10.0]))
    said = bare(Answer(ranked).regimes[0].sentence)
    assert said.startswith("By one standard deviation of each, y moves most with x1 (+2 a unit)")


def law(deviation):
    return RowLaw(np.zeros(2), np.array(deviation), np.eye(2), 0.0)


def test_an_effect_that_is_not_clear_is_not_told_as_one():
    """Of several features as of one: an interval around zero shows no effect."""
    known = known_mixture()
    error = np.array([[0.1, 0.01, 9.0, 9.0, 9.0], [9.0] * 5])
    inference = replace(known.inference, standard_error=error, degrees=np.full(2, 99.0))
    wide = replace(
        known,
        coef=np.array([[3.0, -0.2, 0.1, 0.05, 0.01]] * 2),
        feature_names=("a", "b", "c", "d", "e"),
        inference=inference,
    )
    some, none = (bare(regime.sentence) for regime in Answer(wide).regimes)
    assert some.startswith(
        "By one unit of each, y moves most with a (+3.00 a unit), then with b (-0.200 a unit), c ("
    )
    assert some.count("not clear") == 1
    assert " a unit; not clear) and 2 other features. " in some
    assert none.startswith("y does not clearly depend on a (+3.0 a unit), b (-0.2 a unit), c (+0.1")
    assert " or 2 other features. " in none
    assert "moves" not in none


def test_a_fall_has_an_interval_of_falls():
    mixture = replace(known_mixture(), coef=np.array([[-1.0], [0.0]]))
    said = bare(Answer(mixture).regimes[0].sentence)
    assert said.startswith("With each unit of x0, y falls by 1.00 (95% interval 0.78 to 1.22).")


def test_noise_of_students_law_is_no_standard_deviation():
    said = Answer(replace(known_mixture(), noise_degrees=4.0)).regimes[0].sentence
    assert "0.5, the scale of Student's law with 4 degrees of freedom; of the" in said
    assert "0.5, one standard deviation" in Answer(known_mixture()).regimes[0].sentence


def test_a_change_that_was_left_gives_its_true_reason():
    """Gains of next to nothing, which are positive, are not called no gain."""
    X, y, _ = make_mlrc(300, 2, 2, noise=0.3, corruption=0.05, random_state=1)
    attempts = MixedLinearRegression(random_state=0).fit(X, y).mixture_.attempts
    left = [attempt for attempt in attempts if attempt.gain > 0 and not attempt.accepted]
    assert left
    assert all(attempt.gain <= SEARCH.same_score for attempt in left)
    assert {attempt.reason for attempt in left} == {"the same model: no more than 0.5 nats better"}


def test_algorithm_2_knows_no_evidence():
    X, y, _ = make_mlrc(200, 1, 1, noise=0.1, random_state=0)
    mixture = MixedLinearRegression(1, search="net", random_state=0).fit(X, y).mixture_
    assert np.isnan(mixture.evidence)
    assert not mixture.found_nothing
    page = render(mixture, X, y)
    assert "nats over" not in page  # the checks of a regime have nats of their own
    assert "Measured 0; at least 0" not in page
    assert compared(Finding("a", "holds", 0.0, 0.0, "", at_least=True)) == ""
    assert compared(Finding("a", "holds", 31.0, 0.0, "", at_least=True)) != ""


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_evidence_is_that_of_the_selection_path(weighted):
    """The model is refined once more at the end: both numbers are of what was found then."""
    for mixture in (weighted[0], overlapping()):
        path = mixture.selection
        chosen = path.evidence[path.n_components == path.chosen]
        assert mixture.evidence == pytest.approx(chosen[0], abs=1e-9)


def overlapping():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 4, 150)
    y = np.where(rng.random(150) < 0.5, 0.35, 0.48) * x + rng.normal(0, 0.12, 150)
    return MixedLinearRegression(2, random_state=0).fit(x[:, None], y).mixture_


def test_single_relations_of_the_same_words_are_listed_once():
    both = Rival(spread="fitted", lead=-1.0), Rival(spread="log fitted", lead=-2.0)
    listed = rivals(replace(known_mixture(), rivals=both))
    assert [lead for _, lead in listed] == ["-1"]


def test_residuals_are_compared_with_the_noise_not_with_a_deviation(tone):
    page = render(replace(tone, noise_degrees=3.0))
    assert "of its rows, by their probabilities, are further off than twice the noise" in page
    assert "standard deviations off" not in page
    assert "noise of Student’s law of that regime’s size" in page
    assert "Noise is the scale of Student’s law" in page


def test_the_law_of_the_noise_is_named_beside_it_everywhere(tone):
    said = "the scale of Student's law with 3.5 degrees of freedom"
    shown = everywhere(replace(tone, noise_degrees=3.5))
    for where, text in shown.items():
        plain = " ".join(html.unescape(text).replace("’", "'").split())
        assert f"Noise is {said}" in plain, where
    for where, text in everywhere(tone).items():
        assert "Student" not in text, where


def test_residuals_are_compared_with_the_law_that_was_fitted(tone):
    """Of Student's law with 2 degrees of freedom, 18.35 % lie beyond 2: 1 - 2 / sqrt(2 + 4)."""
    student = replace(tone, noise_degrees=2.0)
    page = html.unescape(render(student))
    assert "of Student's law with 2 degrees of freedom 18.4% would be" in page
    assert "quantile of Student's law with 2 degrees of freedom" in page
    assert "Student’s law, as the model has it, follows the dashed line" in page
    plain = html.unescape(render(tone))
    assert "of the normal law 4.6% would be" in plain
    heavy = np.sort(np.random.default_rng(0).standard_t(2, 1000))
    assert _tails(heavy, Terms.of(student, None, 0.95)).endswith(
        "chance may explain the difference."
    )
    assert _tails(heavy, Terms.of(tone, None, 0.95)).endswith("the noise has heavier tails.")


def overlapping_rows():
    """Rows of two regimes that overlap, as the mixture says."""
    rng = np.random.default_rng(0)
    mixture = replace(known_mixture(), outlier_share=0.0, weights=np.array([0.5, 0.5]))
    X, own = rng.normal(size=(4000, 1)), rng.integers(0, 2, 4000)
    y = X[:, 0] * mixture.coef[own, 0] + mixture.intercept[own]
    y += mixture.scale[own] * rng.normal(size=y.size)
    return mixture, read_rows(mixture, X, y, None)


def test_regimes_that_overlap_are_straight_even_and_normal_if_they_are():
    """The rows that are nearest to one of two lines that cross are none of these."""
    mixture, rows = overlapping_rows()
    for _, cells in checks(mixture, rows, Answer(mixture)):
        assert not any(cell.startswith("no") for cell in cells)
    by_label = replace(rows, belongs=1.0 * (rows.labels[:, None] == np.arange(2)))
    np.testing.assert_array_equal(by_label.by_lot, rows.labels)
    for _, cells in checks(mixture, by_label, Answer(mixture)):
        assert any(cell.startswith("no") for cell in cells)


def test_lots_are_drawn_by_the_probabilities_and_leave_the_rest_to_outliers():
    _, rows = overlapping_rows()
    shares = np.tile([0.5, 0.2], (rows.n, 1))
    lots = replace(rows, belongs=shares).by_lot
    for label, share in ((0, 0.5), (1, 0.2), (-1, 0.3)):
        assert abs(np.mean(lots == label) - share) < 5 * np.sqrt(share * (1 - share) / rows.n)


def test_tails_are_of_all_rows_by_their_probabilities():
    """Where regimes overlap, far rows of one are sorted to the other: both have normal tails."""
    mixture, rows = overlapping_rows()
    drawn = panels(rows, Terms.of(mixture, None, 0.95))
    assert len(drawn) == 2
    for one in drawn:
        assert one["words"].endswith("chance may explain the difference.")
    short = np.random.default_rng(0).uniform(-1.9, 1.9, 1000)
    assert _tails(short, Terms.of(mixture, None, 0.95)).endswith("the noise has lighter tails.")
    assert _tails(3 * short, Terms.of(mixture, None, 0.95)).endswith("the noise has heavier tails.")


@pytest.fixture(scope="module")
def repeated(module_searched_once):
    """One regime whose far rows came once and near ones often, and the same rows written out."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 12, 800) / 4
    y = np.round(2 * x + rng.standard_normal(800), 1)
    distinct, counts = np.unique(np.column_stack([x, y]), axis=0, return_counts=True)
    model = MixedLinearRegression(1, outliers=0.0, random_state=0, keep_rows=True)
    short = model.fit(distinct[:, :1], distinct[:, 1], sample_weight=counts).mixture_
    return short, model.fit(x[:, None], y).mixture_, (distinct[:, :1], distinct[:, 1], counts)


def test_tails_are_those_of_the_rows_however_they_are_counted(repeated):
    said = [html.unescape(render(mixture)) for mixture in repeated[:2]]
    tails = [re.search(r"[\d.]+% of its rows, by .* and [^.]*\.", page) for page in said]
    assert tails[0].group() == tails[1].group()
    assert tails[0].group().endswith("chance may explain the difference.")
    # The quantiles, too: row by row, what is farthest is as far out as there are rows.
    drawn = [panels(rows, Terms.of(mixture, None, 0.95))[0] for mixture in repeated[:2]
             for rows in [read_rows(mixture, None, None, None)]]  # fmt: skip
    ends = [re.findall(r'data-quantiles="([^"]*)"', one["charts"][1]) for one in drawn]
    assert ends[0] == ends[1]
    short, long, (X, y, counts) = repeated
    quantiles, found = QQDisplay.from_mixture(short).quantiles, QQDisplay.from_mixture(long)
    for i in np.flatnonzero(counts == 1)[::9]:
        same = (long.excerpt.X[:, 0] == X[i, 0]) & (long.excerpt.y == y[i])
        assert quantiles[i] == pytest.approx(found.quantiles[same][0], abs=1e-6)


def test_tails_of_relative_weights_say_so_and_count_the_rows_that_they_are_worth(tone):
    terms = Terms.of(replace(tone, weighting="importances"), None, 0.95)
    far, weights = np.r_[np.zeros(90), np.full(10, 3.0)], np.r_[np.ones(90), np.full(10, 0.1)]
    assert _tails(far, terms, weights).startswith(
        "1.1% of its rows, by their weights and probabilities, are"
    )
    # A tenth of 200 rows is too many for chance, a tenth of the 50 that have weight is not.
    far, some = np.tile(np.r_[3.0, np.zeros(9)], 20), np.repeat([1.0, 1e-6], [50, 150])
    assert _tails(far, terms, np.ones(200)).endswith("the noise has heavier tails.")
    assert _tails(far, terms, some).endswith("chance may explain the difference.")


def test_an_audit_counts_repetitions_as_rows(repeated):
    short, long, (X, y, counts) = repeated
    audits = [
        theory.audit(short),
        theory.audit(short, X, y, sample_weight=counts),
        theory.audit(long),
    ]
    assert [audit.n_rows for audit in audits] == [800] * 3
    for name in ("rows", "corruption", "noise", "regimes"):
        value = audits[2][name].value
        assert [audit[name].value for audit in audits] == pytest.approx([value] * 3, rel=1e-6)
    on_page = next(
        finding
        for finding in assumptions(short, read_rows(short, None, None, None))
        if "enough rows" in finding.name
    )
    assert on_page.words.startswith("The smallest regime has about 800 rows for")
    # Relative weights are no repetitions, but absent rows are absent.
    part = np.where(np.arange(len(y)) < 20, 0.0, 0.5)
    assert theory.audit(short, X, y, sample_weight=part).n_rows == len(y) - 20


def test_an_audit_does_not_call_labelled_rows_a_share(tone):
    """A share counts every row by its probability: of these regimes another number."""
    audit = theory.audit(tone)
    printed = str(audit)
    for j, regime in enumerate(audit.regimes):
        labelled = percent(rows_labelled(tone, j) / tone.mass)
        assert percent(regime.labelled) == labelled != Answer(tone).regimes[j].share
        assert re.search(rf"^ +{j} +{re.escape(labelled)} ", printed, re.MULTILINE)
    assert re.search(r"^regime labelled  rows/coef ", printed, re.MULTILINE)
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_where_nothing_was_found_no_regime_is_counted_chosen_or_evident():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 2)), rng.standard_normal(120)
    mixture = MixedLinearRegression(random_state=0).fit(X, y).mixture_
    assert mixture.found_nothing
    assert str(mixture).startswith("No linear regime in 120 rows; ")
    assert re.search(r"Regimes: +none, 1 line shown", str(Summary(mixture)))
    assert [line.lost for line in Answer(mixture).regimes] == [""]
    page = render(mixture)
    assert "None was chosen: none has evidence of 3 nats." in page
    assert "(chosen)" not in page
    assert "(shown)" in page
    legend = SelectionDisplay.from_mixture(mixture).ax_.get_legend().get_texts()
    assert legend[0].get_text() == "shown: 1 (the rows support none)"


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_was_found_the_best_evidence_is_that_of_the_selection_path(seed):
    """The search may end with a model that hardly a row follows: not the one that is shown."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((100, 1)), rng.standard_t(2, 100)
    mixture = MixedLinearRegression(random_state=0).fit(X, y).mixture_
    assert mixture.found_nothing
    assert mixture.evidence == pytest.approx(mixture.selection.evidence.max(), abs=1e-9)
    assert f"Best evidence {number(mixture.evidence)} nats" in str(mixture)


def test_lines_that_nothing_speaks_for_are_counted_in_the_headline():
    two = replace(known_mixture(), evidence=-5.0)
    assert Answer(two).headline.endswith("; the best two lines all the same:")


def test_a_relation_that_is_named_is_not_denied():
    """Where no straight line is supported but a curve is, the data support a relation."""
    curve = Rival(terms="quadratic", lead=58.0)
    nothing = replace(known_mixture(), evidence=1.0, rivals=(curve,))
    assert Answer(nothing).rival
    assert Answer(nothing).sure.endswith("but the one relation named above.")
    assert "do not support any relation" in Answer(replace(nothing, rivals=())).sure


def lines_asked_for(lead, evidence=(2.0, -5.0)):
    """Two lines that were asked for and are worse than constants, and a relation beside them."""
    path = Selection(np.array([1, 2]), np.array(evidence), np.ones(2), np.ones(2), chosen=2)
    rival, asked = Rival(spread="fitted", lead=lead), Settings(n_components=2)
    known = known_mixture()
    return replace(known, evidence=evidence[1], selection=path, rivals=(rival,), settings=asked)


def test_a_relation_is_compared_with_constants_where_these_are_better_than_lines():
    both = -6.0, -5.0
    found = Answer(lines_asked_for(5.5, both))
    assert found.rival.endswith("these rows as well as two straight lines or constants do.")
    # One figure: the lead over lines that are worse than constants, 5.5, says nothing.
    assert "That relation is 0.5 nats likelier than constants." in found.notices
    assert "nor the one relation named above, which has 0.5 nats over constants" in found.sure
    better = Answer(lines_asked_for(9.0, both))
    assert "better than two straight lines or constants do" in better.rival
    assert better.sure.endswith("but the one relation named above.")
    worse = Answer(lines_asked_for(4.5, both))
    assert not worse.rival
    said = "A single relation is likelier than the lines, but constants are likelier still."
    assert worse.single == said
    assert said in render(worse.mixture)


@pytest.mark.parametrize("both", [(-6.0, -5.0), (2.0, -5.0), (-6.0, 9.0), (5.0, 2.0)])
def test_without_an_intercept_evidence_is_counted_from_constants_at_zero(both):
    """Doctor's visits: 212 nats "over constants", which were 213 behind those at other levels."""
    mixture = replace(lines_asked_for(5.5, both), fit_intercept=False, inference=None)
    chosen = replace(mixture, settings=Settings())
    for known in (mixture, chosen, replace(mixture, without_slopes=1.0)):
        said = [page_text(render(known)), _nothing(known)]
        said += [finding.words for finding in assumptions(known, None)]
        assert "constants at zero" in said[0]
        assert not re.search("constants(?! at zero)", " ".join(said), re.IGNORECASE)


@pytest.mark.parametrize(
    ("slope", "said"), [(-0.002, "0.00"), (0.002, "0.00"), (-0.02, "-0.02"), (0.02, "+0.02")]
)
def test_a_slope_that_is_rounded_to_zero_has_no_sign(slope, said):
    """-0.0002 with an error of 0.013 was +0.000 in words."""
    found = known_mixture()
    flat = replace(found, coef=np.array([[slope], *found.coef[1:]]))
    assert f": {said} a unit" in Answer(flat).regimes[0].sentence


def test_the_lead_of_a_relation_is_over_the_line_that_is_shown():
    """The evidence of the mixture may be that of two lines, where one is shown."""
    path = Selection(np.array([1, 2]), np.array([-17.5, -12.5]), np.ones(2), np.ones(2), chosen=1)
    alone = replace(mixture_of([[1.0]]), evidence=-12.5, selection=path)
    assert not Answer(replace(alone, rivals=(Rival(power=0.5, lead=15.0),))).rival
    found = Answer(replace(alone, rivals=(Rival(power=0.5, lead=33.0),)))
    assert found.notices[0].endswith(": it is 15.5 nats likelier than constants.")
    # All figures are counted from constants.
    page = render(found.mixture)
    assert "Lead over constants, nats" in page
    assert "<td>15.5</td>" in page
    assert "33" not in bare(page_text(page))
    # A line that is better than constants, if not by enough, is what it is compared with.
    path = replace(path, evidence=np.array([2.0, 2.5]))
    some = replace(found.mixture, evidence=2.5, selection=path)
    said = "or constants do: it is 33 nats likelier than the line."
    assert bare(Answer(some).rival_ahead).endswith(said)


def test_a_relation_that_is_better_than_constants_is_not_called_as_good_as_these():
    """A line that falls short of 3 nats is near both; the relation has them."""
    path = Selection(np.array([1]), np.array([1.9]), np.ones(1), np.ones(1), chosen=1)
    alone = replace(mixture_of([[1.0]]), evidence=1.9, selection=path)
    near, far, clear = (
        Answer(replace(alone, rivals=(Rival(power=0.5, lead=lead),))) for lead in (0.9, 2.4, 3.5)
    )
    assert near.rival.endswith(" as well as a straight line or constants do.")
    assert far.rival.endswith(" better than constants do, and as well as a straight line does.")
    assert far.sure == "The data support no straight line, but the one relation named above."
    assert clear.rival.endswith(" better than a straight line or constants do.")
    assert "too little evidence for a linear relation of y to x0 in the" in bare(far.lead)
    assert "would gain 1.9 nats over constants, and 3 are needed" in far.lead
    assert "nearly" not in far.lead


def test_sentences_are_those_of_a_textbook(tone):
    """Terms of the trade have a clause that explains them, and none is a figure of speech."""
    shown = everywhere(tone)
    assert "in doubt: the likeliest label of each is less than 80% likely." in Answer(tone).lead
    for where, text in shown.items():
        for figure in ("knows no", "punishes", "neither a regime nor", "blurs"):
            assert figure not in text, (where, figure)


def test_the_line_that_is_shown_is_not_said_to_be_the_scored_one():
    path = Selection(np.array([1]), np.array([1.9]), np.ones(1), np.ones(1), chosen=1)
    shown = replace(mixture_of([[1.0]]), evidence=1.9, selection=path)
    assert "The line that is shown need not be the one that was scored." in render(shown)
    # Where its own evidence is known, and is another, both are told apart everywhere.
    other = replace(shown, rivals_evidence=-1.5)
    page = render(other)
    assert "The line that is shown is another, which has -1.5 nats." in page
    assert selection(other)["mark"] == "another is shown"
    said = "What follows is the best line that most rows follow, which has -1.5 nats: a description"
    assert said in bare(Answer(other).lead)
    assert "The line that most rows follow, which has -1.5 nats, is returned." in str(
        _nothing(other)
    )
    # Leads of single relations are over the line that is shown.
    beside = replace(other, rivals=(Rival(power=0.0, lead=6.0),))
    assert "4.5 nats likelier than constants" in Answer(beside).rival_ahead


def test_a_relation_must_be_better_than_one_straight_line_where_several_are_not():
    """A number that was asked for may be worse than one line, which is the likeliest then."""
    assert not Answer(lines_asked_for(5.5, evidence=(1.0, -5.0))).rival
    assert Answer(lines_asked_for(5.5, evidence=(0.4, -5.0))).rival
    worse = Answer(lines_asked_for(5.5, evidence=(40.0, 30.0)))
    assert not worse.rival
    said = (
        "A single relation is likelier than the regimes, but one straight line is likelier still."
    )
    assert worse.single == said
    # Evidence of all rows says nothing about a lead on some of them.
    assert Answer(replace(worse.mixture, rivals_rows=1500, rivals_evidence=9.0)).rival


def test_fewer_regimes_than_asked_for_are_told_everywhere(tone):
    asked = replace(tone, settings=replace(tone.settings, n_components=4), selection=None)
    for place, text in everywhere(asked).items():
        assert "4 regimes were asked for; the rows support 2." in " ".join(text.split()), place


def page_text(page):
    """The words of a page, between its title and its script."""
    return re.sub(r"<[^>]*>", " ", page.partition("<main")[2].partition("<script")[0])


@pytest.mark.parametrize(
    ("gain", "more"),
    [
        (0.0, ""),
        (1.0, ""),
        (4.0, ", whose shares do not depend on the features"),
    ],
)
def test_shares_that_would_depend_on_the_features_are_named_where_they_matter(gain, more):
    rival = Rival(terms="quadratic", lead=5.0)
    mixture = replace(known_mixture(), evidence=30.0, rivals=(rival,), gain_of_shares=gain)
    how = "as well as" if more else "better than"
    with_such = " whose shares depend on the features" if more else ""
    lines = f"two straight lines do{with_such}"
    said = f" {how} {lines}: it is 5 nats likelier than the regimes{more}."
    assert Answer(mixture).rival_ahead.endswith(said)
    assert "But the one relation named above has 5 more." in Answer(mixture).sure
    assert Answer(replace(mixture, gain_of_shares=5.5)).rival == ""


def test_a_relation_compared_on_some_rows_says_so_everywhere(tone):
    rival = Rival(terms="quadratic", lead=20.0)
    mixture = replace(tone, rivals=(rival,), rivals_rows=1500, rivals_evidence=7.0)
    for place, text in everywhere(mixture).items():
        plain = " ".join(re.sub("<[^>]*>", "", bare(text)).split())
        assert "20 nats likelier on 1500 of the rows than the regimes" in plain, place
    assert "has 20 more on 1500 of the rows." in Answer(mixture).sure
    assert "the likeliest first, compared on 1500 of the rows." in render(mixture)


def test_a_relation_is_not_denied_where_it_was_not_compared_with_the_gate(tone):
    mixture = replace(tone, rivals=(Rival(lead=20.0),), gate=object())
    assert "a single relation is 20 nats likelier than the regimes" in Answer(mixture).single


def test_constants_are_compared_with_the_lines_that_were_asked_for():
    mixture = lines_asked_for(-9.0)
    lead = bare(Answer(mixture).lead)
    assert "better than two linear relations to" in lead
    assert "What follows are the best two lines all the same, as asked for" in lead
    # It is that of these lines, not the best of all numbers.
    assert "Evidence -5 nats" in str(mixture)
    assert re.search(r"^Evidence, nats: +-5 ", str(Summary(mixture)), re.MULTILINE)
    nothing = replace(mixture, settings=Settings())
    assert "Best evidence -5 nats" in str(nothing)
    assert re.search(r"^Best evidence, nats: +-5 ", str(Summary(nothing)), re.MULTILINE)


def test_another_number_that_would_have_been_found_is_named():
    found = Answer(lines_asked_for(-9.0, evidence=(8.0, -5.0)))
    assert found.favours == "2 regimes were asked for; the evidence favours 1."
    assert found.sure == f"{found.favours} It has 8 nats over constants."
    assert not Answer(lines_asked_for(-9.0)).favours


def test_another_number_is_favoured_everywhere(tone):
    path = Selection(np.array([2, 3]), np.array([113.0, 90.0]), np.ones(2), np.ones(2), chosen=3)
    asked = replace(tone, settings=replace(tone.settings, n_components=3), selection=path)
    said = "3 regimes were asked for; the evidence favours 2."
    assert Answer(asked).favours == said
    for place, text in everywhere(asked).items():
        assert said in " ".join(text.split()), place
    assert SelectionDisplay.from_mixture(asked).ax_.get_title("right") == said
    for place, text in everywhere(tone).items():
        assert "evidence favours" not in text, place
    assert SelectionDisplay.from_mixture(tone).ax_.get_title("right") == ""


def test_the_evidence_favours_no_number_where_no_other_was_compared(tone):
    path = Selection(np.array([2]), np.array([113.0]), np.ones(1), np.ones(1), chosen=2)
    asked = replace(tone, settings=replace(tone.settings, n_components=4), selection=path)
    assert Answer(asked).favours == ""
    assert "the rows support 2. No other numbers were compared." in render(asked)


@pytest.mark.parametrize("m", [1, 2])
def test_below_three_nats_nothing_reads_like_support(tone, repeated, m):
    """A given number of regimes is shown from 0 nats on; a finding takes 3, whoever asks."""
    known = np.array([1.967, -4.0]) if m == 1 else np.array([1.2, 1.967])
    path = Selection(np.array([1, 2]), known, np.ones(2), np.ones(2), chosen=m)
    asked = {"settings": Settings(n_components=m), "selection": path, "evidence": 1.967}
    given = replace(repeated[1] if m == 1 else tone, rivals=(), **asked)
    assert not given.found_nothing
    found, said = Answer(given), "the evidence is thin, 1.967 nats over constants, where a finding"
    assert found.title.startswith(f"{m} linear regime{'s' * (m > 1)}, on thin evidence, in ")
    for where, text in everywhere(given).items():
        text = " ".join(html.unescape(text).split())
        assert said in text, where
        for claim in ("favours", "accounts for", "account for", " rather than "):
            assert claim not in text, (where, claim)
    assert "1.967 nats over constants for the model as a whole (a finding takes 3" in found.sure
    page = render(given)
    assert "asked for; none of the numbers that were compared has evidence of 3 nats." in page
    (first, *_) = assumptions(tone, read_rows(tone, None, None, None))
    assert (first.verdict, first.threshold) == ("holds", 3.0)
    rows = tone.excerpt.X, tone.excerpt.y
    thin = theory.audit(replace(tone, evidence=2.9, settings=Settings(n_components=2)), *rows)
    assert (thin["regimes"].verdict, thin["regimes"].threshold) == ("unclear", 3.0)
    assert thin["regimes"].words.endswith("they are here because their number was given.")
    for evidence, asked_for in ((3.0, 2), (3.0, None)):
        known = replace(tone, evidence=evidence, settings=Settings(n_components=asked_for))
        assert theory.audit(known, *rows)["regimes"].verdict == "holds"
        assert not Answer(known).thin


def test_one_regime_has_one_evidence():
    """What it has over outliers alone is another number, and not what the sentences mean."""
    one = replace(mixture_of([[1.0]]), evidence=17.7, component_evidence=np.array([20.1]))
    assert [line.lost for line in Answer(one).regimes] == [""]
    page = render(one)
    assert "17.7 nats over constants" in page
    assert "20.1" not in page


def test_a_number_that_would_do_is_not_shown_beside_another_verdict():
    assert compared(Finding("a", "not proven", 0.0, 1.0, "")) == ""
    assert compared(Finding("a", "not proven", 2.0, 1.0, "")) == "Measured 2; at most 1 would do."
    assert compared(Finding("a", "holds", 0.0, 1.0, "")) == "Measured 0; at most 1 would do."


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_nothing_is_said_about_an_r_squared_that_is_not_known():
    X = np.random.default_rng(0).standard_normal((50, 1))
    mixture = MixedLinearRegression(random_state=0).fit(X, np.zeros(50)).mixture_
    assert Answer(mixture).regimes[0].r_squared == UNKNOWN
    assert Answer(mixture).r_squared == ""


def test_a_regime_is_called_doubtful_with_the_figure_behind_it(tone):
    again = Stability(
        np.zeros((4, 2)), np.full(4, 2), np.full((4, 2, 1), np.nan), np.full((4, 2), np.nan)
    )
    for place, text in everywhere(tone.with_stability(again)).items():
        assert "Doubtful: it came back in 0% of 4 resamples." in text, place


def test_rows_of_weights_are_counted_with_a_word_everywhere(weighted, tone):
    mixture = weighted[0]
    said = f"Rows count by their weights: {mixture.mass:.0f} in all, from 300 rows of the table."
    for where, text in everywhere(mixture).items():
        assert said in " ".join(text.split()), where
    title = Answer(mixture, "t.csv").title
    assert title.endswith(f" in {mixture.mass:.0f} rows by the weights of t.csv")
    assert Answer(tone, "t.csv").title == "2 linear regimes in 150 rows of t.csv"


def test_weights_that_add_up_to_the_rows_are_not_counted_twice(tone):
    rounded = replace(tone, mass=tone.mass + 3e-14)
    assert rounded.mass != rounded.n_rows
    assert not any("in all, from" in notice for notice in Answer(rounded).notices)
    assert "by the weights of" not in render(rounded)


def test_the_lead_of_a_relation_is_said_once_and_by_its_size():
    for lead in (1.0, 20.0):
        rival = Rival(terms="quadratic", lead=lead)
        sure = Answer(replace(known_mixture(), evidence=30.0, rivals=(rival,))).sure
        assert sure.count("named above") == 1
        assert f"But the one relation named above has {lead:g} more." in sure
        assert "likelier still" not in sure


@pytest.mark.parametrize(("m", "what"), [(1, "the line"), (2, "the regimes")])
def test_the_lead_of_a_relation_is_the_same_everywhere(m, what):
    rivals = (Rival(terms="quadratic", lead=20.5),)
    X, y, _ = make_mlrc(200, 2, m, noise=0.1, random_state=0)
    mixture = replace(MixedLinearRegression(m, random_state=0).fit(X, y).mixture_, rivals=rivals)
    for place, text in everywhere(mixture).items():
        plain = " ".join(re.sub("<[^>]*>", "", bare(text)).split())
        assert f"20.5 nats likelier than {what}" in plain, place


def test_a_rival_is_named_in_the_summary_too(tone):
    rival = Rival(terms="quadratic", lead=20.0)
    mixture = replace(tone, rivals=(rival,))
    for place, text in everywhere(mixture).items():
        plain = " ".join(re.sub("<[^>]*>", "", bare(text)).split())
        assert "explains these rows better than two straight lines do" in plain, place


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_other_features_are_held_at_the_same_values_in_plots_and_pages(weighted):
    _, X, y, _ = weighted
    X = np.column_stack([X[:, 0], np.exp(2 * X[:, 1])])  # mean and median are far apart
    mixture = MixedLinearRegression(random_state=0, keep_rows=True).fit(X, y).mixture_
    display = RegimesDisplay.from_mixture(mixture, feature=0)
    rows = read_rows(mixture, None, None, None)
    cloud = Cloud.of(rows, Terms.of(mixture, rows.X, 0.95))
    view = next(view for view in cloud.views if view.name == "x0")
    for (base, slope), line in zip(view.lines, display.lines, strict=True):
        np.testing.assert_allclose(base + slope * line[:, 0], line[:, 1])
    assert HELD in display.ax_.get_ylabel()
    assert HELD in render(mixture)
    assert HELD in mixture_html(mixture)


def test_legends_count_rows_by_their_weights(weighted):
    mixture, X, y, _ = weighted
    shown = [percent(rows / mixture.mass) for rows in mixture.label_counts]
    assert shown != [percent(float(np.mean(mixture.labels == j))) for j in (0, 1, -1)]
    for display in (
        RegimesDisplay.from_mixture(mixture),
        RegimesDisplay.from_mixture(mixture, X, y),
    ):
        legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        names = ("regime 0", "regime 1", "outliers")
        for name, share in zip(names, shown, strict=True):
            assert f"{name} ({share} of rows)" in legend
    # Other rows have no weights.
    some = RegimesDisplay.from_mixture(mixture, X[:60], y[:60])
    share = percent(float(np.mean(mixture.assign(X[:60], y[:60]) == 0)))
    assert f"regime 0 ({share} of rows)" in some.ax_.get_legend().get_texts()[0].get_text()


def test_shares_that_are_shown_add_up():
    """A share of outliers that is expected of new rows is shown even where no row is one."""
    mixture = replace(
        mixture_of([[1.0], [2.0]]),
        weights=np.array([0.7, 0.298]),
        outlier_share=0.002,
        label_counts=(70, 30, 0),
        n_rows=100,
        mass=100.0,
    )
    found = Answer(mixture)
    assert [line.share for line in found.lines] == ["70.0%", "29.8%", "0.2%"]
    assert found.lines[-1].sentence == "outliers (no row labelled so)"
    none = replace(mixture, weights=np.array([0.7, 0.3]), outlier_share=0.0)
    assert Answer(none).outliers is None


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_checks_of_a_regime_count_rows_as_the_rivals_do():
    """Copies of a row say nothing new; else a check would deny what no rival is named for."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 40)
    y = x + 0.35 * x**2 + 0.2 * rng.standard_normal(40)
    weights = 4 * rng.integers(0, 3, 40)
    model = MixedLinearRegression(1, random_state=0, outliers=False, keep_rows=True)
    weighted = model.fit(x[:, None], y, sample_weight=weights).mixture_
    rows = np.repeat(x, weights)[:, None], np.repeat(y, weights)
    repeated = model.fit(*rows).mixture_
    said = [
        checks(mixture, read_rows(mixture, *given, None), Answer(mixture))
        for mixture, given in (
            (weighted, (x[:, None], y)),
            (weighted, (None, None)),
            (repeated, rows),
        )
    ]
    assert said[0] == said[1] == said[2]
    assert weighted.rivals[0].lead < 3
    assert not said[0][0][1][0].startswith("no")


def test_r_squared_without_an_intercept_is_not_called_one_around_the_mean(tone):
    through_zero = Answer(replace(tone, fit_intercept=False))
    said = "Without an intercept, R² counts from zero, not from the mean."
    assert through_zero.r_squared.startswith(said)
    assert "; of the variation around zero of the rows sorted" in through_zero.regimes[0].sentence
    assert said not in Answer(tone).r_squared
    assert "zero" not in Answer(tone).regimes[0].sentence


def test_far_rows_of_students_law_count_less_in_r_squared(tone):
    assert "far ones" not in Answer(tone).r_squared
    heavy = Answer(replace(tone, noise_degrees=4.0))
    said = heavy.r_squared
    assert "the rows sorted to it, by their probabilities, far ones counting less." in said
    assert "the rows sorted to it, far ones counting less, it explains" in heavy.regimes[0].sentence
    labelled = replace(tone, settings=replace(tone.settings, search="partition", n_components=2))
    assert Answer(labelled).r_squared.startswith(
        "R² of a regime is that among the rows sorted to it. Over"
    )


def test_a_line_without_outliers_is_not_called_robust_nor_a_stable_regime_least_certain(tone):
    """Least squares is shown where nothing speaks for outliers; evidence is not stability."""
    assert "robust" not in Answer(replace(tone, evidence=1.0)).lead
    assert "certain" not in Answer(tone).sure


def test_the_evidence_for_the_number_of_regimes_is_that_of_the_table_of_numbers(tone):
    one, two = (tone.selection.evidence[tone.selection.n_components == m][0] for m in (1, 2))
    said = f"one regime, fitted anew, has {number(two - one)} nats less"
    page = render(tone)
    assert f"rather than one is {grade(two - one)}: {said}." in page
    assert (grade(two - one), grade(tone.component_evidence.min())) == ("strong", "overwhelming")
    assert [line.lost for line in Answer(tone).regimes] == [
        number(value) for value in tone.component_evidence
    ]
    assert '<th scope="col">Lost without it</th>' in page


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
@pytest.mark.parametrize("seed", range(2))
def test_a_model_has_one_evidence_whichever_number_was_asked_for(seed, monkeypatch):
    """Evidence is counted from constants, and heaps of y are constants that one regime hides."""
    monkeypatch.setattr(loop, "SEARCH", SEARCH)  # what is seen depends on how it is searched
    rng = np.random.default_rng(seed)
    x = rng.uniform(3, 50, 240)
    y = np.round(1 + 0.1 * x + 0.6 * rng.standard_normal(240), 2)
    y[:50] = 2.0
    seen = []
    for count in (1, 2, "auto"):
        selection = MixedLinearRegression(count, random_state=0).fit(x[:, None], y).selection_
        seen.append(dict(zip(selection["n_components"], selection["evidence"], strict=True)))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        # (One regime is seen with Student's noise where it is the answer.)
        for count in (seen[one].keys() & seen[other].keys()) - {1}:
            assert seen[one][count] == pytest.approx(seen[other][count], abs=10)


@pytest.mark.parametrize("noise", ["normal", "student"])
def test_what_a_curve_gains_is_the_same_among_rivals_and_checks(noise):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 1))
    e = rng.standard_normal(200) if noise == "normal" else rng.standard_t(3, 200)
    y = x[:, 0] + 0.15 * x[:, 0] ** 2 + 0.3 * e
    mixture = MixedLinearRegression(1, noise=noise, random_state=0).fit(x, y).mixture_
    words = render(mixture, x, y)
    leads = {rival.terms: rival.lead for rival in mixture.rivals if rival.terms != "linear"}
    assert max(leads.values()) > 0
    assert f": {number(max(leads.values()), 2)} nats</td>" in words
    # The law of the noise that is judged is the one that was fitted.
    assert ("Normal noise?" in words) == (noise == "normal")
    assert ("Student’s law?" in words) == (noise == "student")
    assert "<td>yes</td></tr>" in words


def test_noise_is_judged_beside_the_law_that_was_fitted():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 1))
    y = x[:, 0] + 0.3 * rng.standard_t(3, 400)
    known = x, y, np.zeros(400, dtype=np.int64), np.ones(400), 1
    (normal,) = check_regimes(*known, fit_intercept=True)
    (student,) = check_regimes(*known, fit_intercept=True, degrees=3.0)
    assert normal.noise > 20
    assert student.noise < 0
    assert max(student.curve, student.spread) < 0


def test_gains_of_a_check_are_counted_in_words():
    assert _gain(0.9984) == "perhaps: 1 nat"
    assert _gain(18.0) == "no: 18 nats"
    # That every regime has rows enough to be found is another question, and may well hold.
    assert _gain(np.nan) == "too few rows to tell"


def test_the_page_holds_other_features_only_where_there_are_some(tone, weighted):
    assert tone.coef.shape[1] == 1
    assert "of a feature, in each regime" in render(tone)
    assert "of a feature, the others held, in each regime" in render(weighted[0])


def test_the_page_speaks_of_regimes_not_of_components(tone):
    page = re.sub(r"<(script|style|code)\b.*?</\1>", "", render(tone), flags=re.DOTALL)
    assert "<dt>Regimes from</dt>" in page
    assert "component" not in page.lower()


def test_the_page_compares_regimes_by_the_weights_of_the_rows():
    """Weights that are not whole numbers add up to the number of rows, as if there were none."""
    X, y, _ = make_mlrc(300, 2, 2, noise=0.3, corruption=0.05, random_state=1)
    weights = np.random.default_rng(0).uniform(0.1, 3, 300)
    model = MixedLinearRegression(2, random_state=0, keep_rows=True)
    mixture = model.fit(X, y, sample_weight=weights).mixture_
    assert mixture.mass == mixture.n_rows
    shown = comparison(mixture, read_rows(mixture, X, y, None), 0.95)["found"]
    np.testing.assert_allclose(shown.t, mixture.compare(X, y, sample_weight=weights).t)


@pytest.mark.parametrize(
    ("weights", "weighting"),
    [
        (np.linspace(0.1, 1.9, 300), "importances"),
        (np.tile([0, 2], 150), "counts"),  # these, too, add up to the number of rows
        (np.ones(300), "none"),
    ],
)
def test_a_loaded_model_knows_how_rows_counted(tmp_path, weights, weighting):
    X, y, truth = make_mlrc(300, 2, 2, noise=0.3, corruption=0.05, random_state=1)
    model = MixedLinearRegression(2, random_state=0, init=truth.coef, keep_rows=False)
    fitted = model.fit(X, y, sample_weight=weights).mixture_
    save(fitted, tmp_path / "m.regimix")
    mixture = load(tmp_path / "m.regimix")
    assert mixture.mass == pytest.approx(mixture.n_rows)
    assert mixture.weighting == fitted.weighting == weighting
    # A file that did not count labels: of weighted rows, labels do not say how many there are.
    uncounted = replace(mixture, label_counts=None)
    assert (rows_labelled(uncounted, 0) is None) == (weighting != "none")
    assert are_fitted(mixture, X, y)
    rows = read_rows(mixture, X, y, None)
    assert rows.fitted
    assert comparison(mixture, rows, 0.95)["found"].joint == (weighting == "none")
    for page in (render(mixture), render(mixture, X, y)):
        assert ("Rows count by their weights, which are relative" in page) == (
            weighting == "importances"
        )
        assert ("300, by relative weights" in page) == (weighting == "importances")


def test_a_number_that_is_not_supported_is_not_called_no_regime_where_another_is():
    """Three lines that are worse than constants do not deny the one that has evidence."""
    two = replace(lines_asked_for(-np.inf, (4.5, -5.0)), rivals=())
    assert two.found_nothing
    for where, text in everywhere(two).items():
        assert "No linear regime" not in text, where
        assert "2 regimes were asked for; the evidence favours 1." in " ".join(text.split()), where
    rows = f"{two.n_rows} rows do not support 2 linear regimes"
    assert Answer(two).title == rows
    assert str(two).startswith(f"{rows}; the best two lines all the same:")
    assert re.search(r"Regimes: +2 lines, not supported", str(Summary(two)))
    legend = SelectionDisplay.from_mixture(two).ax_.get_legend().get_texts()
    assert legend[0].get_text() == "shown: 2 (not supported)"
    said = str(_nothing(two))
    assert said.endswith("The best found is returned. The evidence favours one regime.")


@pytest.mark.parametrize("settings", [Settings(outliers=0.0), Settings(search="partition")])
def test_where_no_outliers_are_allowed_none_is_denied(tone, settings):
    """That no row is an outlier was asked for there, and not found."""
    none = replace(tone, outlier_share=0.0, doubtful_rows=3, settings=settings)
    none = replace(none, labels=np.maximum(none.labels, 0), label_counts=None, excerpt=None)
    for where, text in everywhere(none).items():
        for claim in ("No row is an outlier.", "within reach", "being an outlier", "rs included"):
            assert claim not in text, (where, claim)
    assert "No row was allowed to be an outlier. 3 rows" in Answer(none).lead
    assert Answer(none).lead.endswith("in doubt: no regime is 80% likely.")
    page = render(none)
    assert "None: no row was allowed to be one." in page
    assert "Rows that follow none may be anything." not in page
    assert "Rows that follow none may be anything." in render(tone)


def test_a_line_that_is_no_regime_is_not_called_one_beside_its_outliers():
    nothing = replace(known_mixture(), evidence=-5.0)
    assert Answer(nothing).no_outlier == "every row lies within reach of a line"
    assert Answer(known_mixture()).no_outlier == "every row lies within reach of a regime"
    some = replace(nothing, label_counts=(10, 10, 10))
    assert headline(some, None, 0.95)["which"].endswith(" labelled as outliers.")


def test_a_relation_with_the_noise_law_of_the_line_is_told_from_one_with_another():
    """A line with heavy tails leads over one with other heavy tails, not over itself."""
    other, same = Rival(noise="student6", lead=-6.6), Rival(noise="student3", power=0.5, lead=9.0)
    line = replace(mixture_of([[1.0]]), noise_degrees=3.0, rivals=(same, other), evidence=90.0)
    words = [bare(said) for said, _ in rivals(line)]
    assert words[0].endswith(", with heavy-tailed noise")
    assert words[1].endswith(", with heavy-tailed noise of another law")
    assert ", with heavy-tailed noise" in bare(Answer(line).rival)
    normal = replace(line, noise_degrees=np.inf)
    assert all("another law" not in said for said, _ in rivals(normal))


def test_attempts_have_the_same_numbers_in_the_picture_and_the_table(tone):
    tried = (
        Attempt("first", "joint", 9.0, True, "better"),
        Attempt("add", "joint", -np.inf, False, "nothing proposed"),
        Attempt("replace", "split", -0.5, False, "no better", search=1),
    )
    page = render(replace(tone, attempts=tried))
    assert "3. replace (split): -0.5, left" in page
    assert "-inf" not in page
    assert "Attempts that proposed nothing are not drawn." in page
    assert '<th scope="row">2</th><td class="words">replace</td>' in page
    assert "Attempts that proposed nothing" not in render(replace(tone, attempts=tried[:1]))


def test_changes_that_were_taken_are_not_denied(tone):
    taken = Attempt("first", "joint", 9.0, True, "better")
    none = replace(taken, accepted=False)
    some = Answer(replace(tone, attempts=(taken, none))).ended
    assert some == "Search finished: no other change improved the model (2 changes tried, 1 taken)."
    assert "no change improved" in Answer(replace(tone, attempts=(none,))).ended


def test_the_report_claims_no_more_of_evidence_than_was_measured(tone):
    page = render(tone)
    assert "Lost without it is the evidence, in nats, that the model would lose if the" in page
    assert "regime were left out and the others were not fitted anew: how much it" in page
    assert "The best model of each size that was seen." in page
    assert "for one deviation" not in page
    assert page.count("for one standard deviation of a feature, in each regime") == 2


def test_outliers_beside_the_smallest_regime_are_counted_alike_with_and_without_rows(tone):
    corruption = "Outliers are fewer than the rows of the smallest regime"
    bare_one = replace(tone, excerpt=None)
    with_rows = assumptions(tone, read_rows(tone, None, None, None))
    values = [
        next(finding.value for finding in found if finding.name == corruption)
        for found in (with_rows, assumptions(bare_one, None))
    ]
    assert values[0] > 0
    assert values[1] == pytest.approx(values[0], rel=1e-12)


def test_regimes_that_are_single_values_are_called_that():
    """Round numbers that many rows share: of the evidence, they owe nothing to a feature."""
    law = RowLaw(np.array([20.0]), np.array([9.0]), None, 3.0, values=120, step=0.01)
    mixture = replace(
        mixture_of([[0.15], [1e-5]]),
        intercept=np.array([0.2, 2.0]),
        scale=np.array([0.8, 0.004]),
        rows=law,
        evidence=164.0,
        without_slopes=118.0,
        mass=240.0,
    )
    said = "A regime is one value of y, whatever the features (regime 1: 2)"
    assert said in bare(Answer(mixture).coarse)
    assert Answer(mixture).coarse in Answer(mixture).notices
    assert said in " ".join(str(mixture).split())
    assert Answer(replace(mixture, scale=np.array([0.8, 0.1]))).coarse == ""
    # Its levels are no evidence of a relation, and the figure for that stands beside.
    assert "164 nats, 46 of them due to the features" in Answer(mixture).details
    told = "Of the evidence, 46 nats are due to the features; the same regimes without slopes would"
    assert told in Answer(mixture).without_slopes
    known = replace(known_mixture(), evidence=164.0, without_slopes=118.0, rows=None)
    assert told in " ".join(str(Summary(known)).split())
    assert "The evidence is strong: the model as a whole has 164 nats over constants; 118" in (
        Answer(mixture).sure
    )
    # Less than half a nat is no difference.
    near = replace(mixture, without_slopes=0.04)
    assert "164 nats, " in Answer(near).details
    assert "features" not in Answer(near).details
    thin = Answer(replace(mixture, without_slopes=162.5, settings=Settings(2)))
    assert "the evidence is thin, 1.5 nats over constants at the same levels" in thin.thin


def test_searches_that_disagree_are_named_wherever_the_regimes_are(tone):
    """The warning of the fit is gone when the page is read, or the model is loaded."""
    said = "Only 1 of 3 independent searches ended with these regimes."
    alone = replace(tone, search_evidence=(113.0, 110.0, 109.0), n_agreed=1)
    for where in (render(alone), alone._repr_html_(), str(alone)):
        assert said in " ".join(where.split())
    for where in (render(tone), tone._repr_html_(), str(tone)):
        assert "independent searches ended" not in where
    early = replace(alone, stopped=StopReason.TIME_LIMIT)
    assert said not in render(early)
