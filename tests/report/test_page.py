"""The text of the page: whole, safe, small, and the same for the same input."""

import html
import json
import pickle
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from regimix import MixedLinearRegression, report
from regimix.errors import DataError, MissingExtraError, ParameterError
from regimix.report.charts import prose
from regimix.report.notebook import mixture_html
from regimix.result.answer import Answer
from regimix.result.rowlaw import Excerpt
from tests.report.conftest import DATE, HOSTILE, PAYLOAD, made

pytestmark = pytest.mark.usefixtures("searched_once")

VOID = {"meta", "link", "input", "br", "img"}


class Reader(HTMLParser):
    """Reads strictly: every tag is closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def named(self, *names):
        return [attrs for tag, attrs, _ in self.tags if tag in names]


PAGES = ["tone_page", "plain_page", "hostile_page"]


@pytest.fixture(params=range(len(PAGES)), ids=PAGES)
def read(request, tone_page, plain_page, hostile_page):
    return Reader((tone_page, plain_page, hostile_page)[request.param])


def test_the_page_is_well_formed(read):
    ids = [attrs["id"] for _, attrs, _ in read.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for attrs in read.named("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= set(ids)
    named = [attrs["aria-labelledby"] for _, attrs, _ in read.tags if "aria-labelledby" in attrs]
    assert set(named) <= set(ids)


def test_the_page_loads_nothing_and_styles_nothing_in_place(read):
    attributes = [(name, value) for _, attrs, _ in read.tags for name, value in attrs.items()]
    assert [name for name, _ in attributes if name == "style" or name.startswith("on")] == []
    sources = [value for name, value in attributes if name in ("src", "href", "srcset", "action")]
    assert [value for value in sources if not value.startswith("#") and value != "data:,"] == []
    assert [tag for tag, _, _ in read.tags if tag in ("img", "iframe", "object", "form")] == []
    assert len(read.named("script")) == 2


def test_the_page_makes_sense_to_a_screen_reader(read):
    levels = [int(tag[1]) for tag, _, _ in read.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 1
    assert {"header", "main", "nav", "footer"} <= {tag for tag, _, _ in read.tags}
    assert all("scope" in attrs for attrs in read.named("th"))
    assert len(read.named("caption")) == len(read.named("table"))
    pictures = [(attrs, up) for tag, attrs, up in read.tags if tag == "svg" and "svg" not in up]
    assert all(a.get("role") == "img" or a.get("aria-hidden") == "true" for a, _ in pictures)
    titles = [up for tag, _, up in read.tags if tag == "title" and up[-1] == "svg"]
    assert len(titles) == sum(attrs.get("role") == "img" for attrs, _ in pictures)
    fields = {attrs["id"] for attrs in read.named("select") if "id" in attrs} | {"search"}
    assert fields <= {attrs.get("for") for attrs in read.named("label")} | {"search"}


def test_hostile_text_stays_text(hostile_page):
    read = Reader(hostile_page)
    assert PAYLOAD not in hostile_page
    assert any(HOSTILE[0] in text for where, text in read.texts if where == "option")
    assert not any("\u202e" in text or "\u2028" in text for _, text in read.texts)
    data = re.search(
        r'<script type="application/json" id="data">(.*?)</script>', hostile_page, re.DOTALL
    )
    assert re.search("[<>&\u2028\u2029]", data[1]) is None
    features = json.loads(data[1])["scatter"]["features"]
    assert HOSTILE[0] in [feature["name"] for feature in features]


def test_the_policy_names_the_style_and_the_script(tone_page):
    policy = Reader(tone_page).named("meta")[1]["content"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.parametrize(("d", "m"), [(1, 3), (10, 3), (10, 10), (40, 10)])
def test_a_large_table_stays_below_a_megabyte_and_says_so(d, m):
    mixture, X, y = made(100_000, d, m, names=[f"a rather long feature name {i}" for i in range(d)])
    page = report.render(mixture, X, y, keys=[f"customer-{i:010d}" for i in range(100_000)])
    assert len(page.encode("utf-8")) < 1_000_000
    assert re.search(r"A random sample of [\d,]+ of 100,000 rows", page)
    assert re.search(r"[\d,]+ of 100,000 rows are on this page: [\d,]+ of [\d,]+ outliers", page)
    assert re.search(r"The farthest 200 of [\d,]+ outliers are listed", page)


def test_keys_of_any_size_do_not_break_the_limit():
    mixture, X, y = made(20_000, 10, 3, outliers=0.3)
    page = report.render(mixture, X, y, keys=[("<\u4e2d&" * 500) + str(i) for i in range(20_000)])
    assert len(page.encode("utf-8")) < 1_000_000


def test_more_features_than_a_page_holds_are_counted():
    mixture, X, y = made(200, 60, 2)
    page = report.render(mixture, X, y)
    assert "20 features of smaller effect cannot be chosen here" in page
    assert len(Reader(page).named("option")) == 40


def test_the_same_input_gives_the_same_page(tone, tone_rows, tone_page):
    keys = [str(i) for i in range(1, 151)]
    again = pickle.loads(pickle.dumps(tone))
    assert report.render(again, *tone_rows, keys=keys, date=DATE) == tone_page
    later = report.render(again, *tone_rows, keys=keys, date="2026-01-02")
    assert later == tone_page.replace(DATE, "2026-01-02")


@pytest.fixture(scope="module")
def held(tone_rows):
    return MixedLinearRegression(keep_rows=True, random_state=0).fit(*tone_rows).mixture_


def test_rows_that_the_model_holds_need_not_be_handed_over(held, tone, tone_rows):
    X, y = tone_rows
    held = replace(held, timings=tone.timings)
    assert report.render(held, date=DATE) == report.render(tone, X, y, date=DATE)


def test_a_page_is_written_whole_or_not_at_all(tmp_path, tone, tone_rows):
    path = tmp_path / "report.html"
    tone.report(path, *tone_rows, date=DATE)
    assert path.read_text(encoding="utf-8") == report.render(tone, *tone_rows, date=DATE)
    before = path.read_bytes()
    with pytest.raises(DataError, match="149 keys"):
        report.write(path, tone, *tone_rows, keys=range(149))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_a_model_without_rows_still_has_a_page(tone):
    bare = replace(
        tone, excerpt=None, inference=None, selection=None, rows=None, attempts=(), rivals=()
    )
    read = Reader(report.render(bare))
    sections = [attrs.get("id") for attrs in read.named("section")]
    assert sections == [None, "regimes", "search-path", "assumed", "again"]
    words = " ".join(text for _, text in read.texts)
    assert "Standard errors were not recorded" in words
    assert "was not recorded with this model" in words
    assert "What the search tried was not recorded" in words


def test_nothing_found_is_said_first(tone):
    page = report.render(replace(tone, evidence=-1.0))
    assert '<h1 id="answer">No linear regime in 150 rows</h1>' in page
    assert "<title>No linear regime in 150 rows</title>" in page
    assert 'Constants explain <bdi class="name">tuned</bdi> in the 150 rows better' in page
    assert "a description, not a finding" in page


def test_no_outliers_is_said():
    mixture, X, y = made(100, 2, 1, outliers=0.0)
    page = report.render(mixture, X, y)
    assert "<title>1 linear regime in 100 rows</title>" in page
    assert "None: every row lies within reach of a regime." in page
    assert 'class="scroll tall js-only"' in page


def test_an_early_end_is_a_warning(tone):
    page = report.render(replace(tone, stopped="time_limit"))
    assert "The search ended early: the time limit was reached." in page
    assert "Search ended early: the time limit was reached (" in page
    assert "<dt>Ended</dt><dd>Search ended early: the time limit was reached (" in page
    assert "time_limit" not in page


def test_a_number_that_was_asked_for_was_not_chosen(tone):
    assert "The model with two regimes was chosen, by evidence" in report.render(tone)
    path = replace(
        tone.selection,
        n_components=np.array([1, 2, 3]),
        evidence=np.array([60.0, 178.0, 181.0]),
        bic=np.ones(3),
        icl=np.ones(3),
    )
    settings = replace(tone.settings, n_components=2)
    page = report.render(replace(tone, settings=settings, selection=path))
    said = "2 regimes were asked for; the evidence favours 3. The number was given, not chosen by"
    assert said in page
    assert "looked at on the way are 1, 2 and 3." in page
    assert '<th scope="row">2 (asked for)</th>' in page
    assert "(chosen)" not in page
    fewer = replace(settings, n_components=4)
    page = report.render(replace(tone, settings=fewer, selection=replace(path, chosen=3)))
    assert "4 regimes were asked for; the evidence favours 3. The rows support 3." in page
    assert '<th scope="row">3 (found)</th>' in page
    same = replace(path, evidence=np.array([60.0, 181.0, 178.0]))
    page = report.render(replace(tone, settings=settings, selection=same))
    assert "not chosen by evidence. The evidence favours two regimes, too." in page
    none = replace(path, evidence=np.array([2.0, -1.0, -3.0]))
    page = report.render(replace(tone, settings=settings, selection=none, evidence=-1.0))
    assert "Two regimes were asked for; none of the numbers that were compared has" in page
    assert "evidence favours" not in page


def test_a_command_is_shown_instead_of_python(tone):
    command = "regimix fit 'a\u202e<b>.csv' \\\n  --target größe"
    page = report.render(tone, command=command)
    assert "regimix fit &#39;a\\u202e&lt;b&gt;.csv&#39; \\\n  --target größe</code>" in page
    assert "MixedLinearRegression(" not in page


def test_the_index_of_a_frame_names_the_rows():
    mixture, X, y = made(60, 1, 1)
    first = int(np.flatnonzero(mixture.labels < 0)[0])
    named = report.render(mixture, pd.DataFrame(X, index=[f"id-{i}" for i in range(60)]), y)
    assert f"<td>id-{first}</td>" in named
    pairs = pd.MultiIndex.from_product([["a"], range(60)])
    assert f"<td>a, {first}</td>" in report.render(mixture, pd.DataFrame(X, index=pairs), y)
    later = report.render(mixture, pd.DataFrame(X, index=range(100, 160)), y)
    assert f"<td>{100 + first}</td>" in later
    assert "Rows are numbered from 0." not in later
    for plain in (pd.DataFrame(X), X.tolist()):
        page = report.render(mixture, plain, y)
        assert f"<td>{first}</td>" in page
        assert "Rows are numbered from 0." in page
    given = report.render(mixture, pd.DataFrame(X, index=range(100, 160)), y, keys=range(500, 560))
    assert f"<td>{500 + first}</td>" in given


@pytest.mark.parametrize("number", [0, 59])
def test_a_single_row_still_shows_every_line(tone, tone_rows, number):
    X, y = (part.to_numpy()[[number]] for part in tone_rows)
    page = report.render(tone, X, y)
    assert "This page shows 1 row, not the 150" in page
    plot = re.search(r'<g class="lines">(.*?)</g>', page, re.DOTALL)[1]
    ends = re.findall(r'x1="(\S+)" y1="(\S+)" x2="(\S+)" y2="(\S+)"><title>', plot)
    assert len(ends) == 2
    for line in ends:
        x1, y1, x2, y2 = map(float, line)
        assert 0 < x1 < x2 < 944
        assert 0 < min(y1, y2) <= max(y1, y2) < 440


def test_shares_are_not_called_shares_of_rows(tone, tone_page):
    share = f"{100 * tone.weights[0]:.1f}%"
    assert f"share {share}</span>" in tone_page
    assert f"{share} of the rows" not in tone_page
    headers = [text for where, text in Reader(tone_page).texts if where == "th"]
    assert {"Share", "Rows labelled"} <= set(headers)


def test_intervals_are_of_the_level_asked_for(tone):
    assert "90% interval" in report.render(tone, level=0.9)
    with pytest.raises(ParameterError, match="level"):
        report.render(tone, level=2)


def test_half_of_the_rows_is_refused(tone):
    with pytest.raises(DataError, match="X and y"):
        report.render(tone, X=[[1.0]])


def test_an_excerpt_is_called_one():
    mixture, X, y = made(500, 2, 2)
    kept = np.arange(0, 500, 5)
    excerpt = Excerpt(X[kept], y[kept], mixture.labels[kept], kept, complete=False)
    mixture = replace(mixture, excerpt=excerpt)
    page = report.render(mixture)
    assert "A random sample of 100 of 500 rows of the fit, which kept an excerpt of 100." in page
    assert "To see all, pass X and y to the report." in page
    # The rows are still called by their place in the whole table, or by its keys.
    first = int(kept[mixture.labels[kept] < 0][0])
    assert f"<tr><td>{first}</td>" in page
    assert f"<tr><td>row {first}</td>" in report.render(
        mixture, keys=[f"row {i}" for i in range(500)]
    )


def test_every_display_says_the_same(tone, tone_rows, tone_page):
    found = Answer(tone)
    card, printed = mixture_html(tone), str(tone)
    for shown in (tone_page, card, printed):
        assert found.title in shown
        assert all(line.share in shown and line.noise in shown for line in found.lines)
    assert prose(found.lead) in tone_page
    assert prose(found.lead) in card
    assert all(prose(regime.sentence) in tone_page for regime in found.regimes)
    assert found.sure in tone_page
    assert found.ended in tone_page
    assert found.ended in printed
    summary = str(tone.summary())
    assert all(f"share {line.share}, " in summary for line in found.regimes)


def test_a_missing_extra_is_one_sentence(tone, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'regimix\[cli\]'"):
        report.render(tone)
    assert "2 linear regimes in 150 rows" in mixture_html(tone)


def test_a_notebook_shows_the_answer_without_a_script(tone, tone_rows):
    held = MixedLinearRegression(keep_rows=True, random_state=0).fit(*tone_rows).mixture_
    for mixture, drawings in ((tone, 3), (held, 4)):  # swatches, and rows if there are any
        read = Reader(mixture._repr_html_())
        assert read.named("script") == []
        assert len(read.named("svg")) == drawings
    assert "2 linear regimes in 150 rows" in [text for _, text in read.texts]
    hostile, _, _ = made(100, 4, 2, names=HOSTILE, target=PAYLOAD)
    assert PAYLOAD not in mixture_html(hostile)


@pytest.mark.filterwarnings("ignore::regimix.errors.RegimixWarning")
def test_the_page_names_only_relations_that_were_tried():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(11)
    fit = MixedLinearRegression(random_state=0).fit(x[:, None], x + 0.3 * rng.standard_normal(11))
    assert {rival.terms for rival in fit.mixture_.rivals} == {"linear"}
    words = report.render(fit.mixture_, x[:, None], x)
    assert "and other noise laws were tried, one by one. Scores" in words
    assert "Curves" not in words
    assert "powers of the response" not in words


@pytest.mark.filterwarnings("ignore::regimix.errors.RivalWarning")
def test_the_page_says_what_else_it_could_be():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(150)
    y = np.exp(1 + x + 0.4 * rng.standard_normal(150))
    model = MixedLinearRegression(2, random_state=0).fit(x[:, None], y)
    model.stability(x[:, None], y, n_resamples=2, random_state=0)
    read = Reader(report.render(model.mixture_, x[:, None], y))
    words = " ".join(text for _, text in read.texts)
    (title,) = [text for tag, text in read.texts if tag == "h1"]
    assert title.startswith("One relation between log y and x0")
    assert title.endswith("explains these rows better than two straight lines do")
    assert "Could it be something else?" in words
    assert "2 resamples of the rows were searched from the beginning" in words
    assert "Is each regime straight, even in spread, and normal?" in words
    assert len(read.named("caption")) == len(read.named("table"))


def test_the_page_says_who_is_in_each_regime_and_how_they_differ(tone, tone_rows):
    rows = len(tone.labels)
    values = np.where(tone.labels == 1, PAYLOAD, "plain")
    found = tone.profile({"{{7*7}}" + PAYLOAD: values, "chance": np.arange(rows) % 2})
    page = report.render(tone, *tone_rows, date=DATE, profile=found)
    assert PAYLOAD not in page
    assert "{{7*7}}" in page
    assert '<h2 id="profile-heading">Who is in each regime</h2>' in page
    text = " ".join(html.unescape(re.sub("<[^>]+>", " ", page)).split())
    compared = tone.compare(*tone_rows)
    assert compared.sentences[0] in text
    assert compared.joint
    assert "Regime 1 less regime 0" in text
    assert "Who is in each regime" not in report.render(tone, *tone_rows, date=DATE)


def test_a_notebook_shows_profile_comparison_and_estimator(tone, tone_rows):
    found = tone.profile({PAYLOAD: np.where(tone.labels == 1, PAYLOAD, "plain")})
    compared = tone.compare()
    for page in (found._repr_html_(), compared._repr_html_()):
        assert page.startswith('<div class="regimix">')
        assert PAYLOAD not in page
    assert html.escape(found.sentences[0]) in found._repr_html_()
    model = MixedLinearRegression(random_state=0)
    before = model._repr_html_()
    assert 'class="regimix"' not in before
    model.fit(*tone_rows)
    after = model._repr_html_()
    assert after.startswith(model.mixture_._repr_html_())
    assert "sk-top-container" in after
    assert model._repr_mimebundle_()["text/html"].startswith('<div class="regimix">')
