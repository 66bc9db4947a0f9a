"""The report in a real browser: it draws, answers, and runs nothing that a name contains."""

import re

import numpy as np
import pytest

from regimix import report
from tests.report.conftest import DATE, HOSTILE, made

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def coordinates(page):
    paths = page.locator("#plot .points path").evaluate_all("all => all.map(p => p.outerHTML)")
    return [[float(number) for number in NUMBER.findall(path)] for path in paths]


def column(page, index):
    cells = page.locator(f"#outlier-table tbody tr:not([hidden]) td:nth-child({index + 1})")
    return cells.all_inner_texts()


# --- scatter plot ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tone_page", "plain_page"])
def test_the_script_draws_what_python_drew(visit, request, name):
    text = request.getfixturevalue(name)
    still, live = visit(text, java_script_enabled=False), visit(text)
    live.wait_for_selector("#plot .ring", state="attached")
    labels = "#plot .grid text"
    assert live.locator(labels).all_text_contents() == still.locator(labels).all_text_contents()
    drawn, redrawn = coordinates(still), coordinates(live)
    assert [len(path) for path in redrawn] == [len(path) for path in drawn]
    # The data are rounded to what the plot shows.
    off = [
        abs(a - b) for p, q in zip(drawn, redrawn, strict=True) for a, b in zip(p, q, strict=True)
    ]
    assert max(off) <= 0.3


def test_another_feature_redraws_the_plot(visit, plain_page):
    page = visit(plain_page)
    name = page.locator("#plot .grid text.name").last
    before, called = coordinates(page), name.text_content()
    page.select_option("#feature", "1")
    assert name.text_content() != called
    assert coordinates(page) != before
    assert page.locator("#plot svg title").first.text_content().startswith("price against ")
    adjusted = coordinates(page)
    page.uncheck("#adjust")
    assert coordinates(page) != adjusted


def test_the_plot_fits_a_small_screen(visit, plain_page):
    page = visit(plain_page, width=400)
    page.wait_for_selector("#plot .ring", state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.locator("#plot svg").bounding_box()["width"] <= 400
    assert page.locator("#plot svg").get_attribute("viewBox").startswith("0 0 368 ")


def test_pointing_at_a_row_says_what_it_is(visit, tone_page):
    page = visit(tone_page)
    page.wait_for_selector("#plot .ring", state="attached")
    start = re.match(
        r"M([\d.]+) ([\d.]+)", page.locator("#plot .mark.out").first.get_attribute("d")
    )
    assert page.locator("#tip").is_hidden()
    page.locator("#plot").hover(position={"x": float(start[1]), "y": float(start[2])})
    words = page.locator("#tip").inner_text()
    assert "outlier, nearest to regime" in words
    assert "stretchratio:" in words
    assert "× noise" in words
    page.mouse.move(0, 0)
    assert page.locator("#tip").is_hidden()


def test_the_keyboard_walks_through_rows_and_outliers(visit, tone_page):
    page = visit(tone_page)
    page.wait_for_selector("#plot .ring", state="attached")
    page.locator("#plot").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#said").inner_text()
    page.keyboard.press("ArrowRight")
    assert first.startswith("Row ")
    assert page.locator("#said").inner_text() != first
    page.keyboard.press("ArrowDown")
    assert "outlier" in page.locator("#said").inner_text()
    assert page.locator("#tip").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_the_legend_hides_a_regime(visit, tone_page):
    page = visit(tone_page)
    page.wait_for_selector("#plot .ring", state="attached")
    button = page.locator("#legend button").nth(1)
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert page.locator("#plot .points .r1").count() == 0
    assert page.locator("#plot .lines .r1").count() == 0
    button.click()
    assert page.locator("#plot .points .r1").count() == 1


# --- outliers -------------------------------------------------------------------------------------


def test_outliers_sort_by_any_column(visit, tone_page):
    page = visit(tone_page)
    headers = page.locator("#outlier-table thead th")
    as_written = column(page, 5)
    assert headers.nth(5).get_attribute("aria-sort") == "descending"
    for index in (1, 4, 5):
        for order in ("descending", "ascending"):
            while headers.nth(index).get_attribute("aria-sort") != order:
                headers.nth(index).get_by_role("button").press("Enter")
            values = [float(text.replace("\u2212", "-")) for text in column(page, index)]
            assert values == sorted(values, reverse=order == "descending")
            assert page.locator("#outlier-table [aria-sort]").count() == 1
    headers.nth(5).get_by_role("button").click()
    assert column(page, 5) == as_written
    headers.nth(0).get_by_role("button").click()
    assert column(page, 0) == sorted(column(page, 0), key=int, reverse=True)


def test_keys_stay_in_one_piece(visit):
    mixture, X, y = made(60, 8, 2, names=[f"a long name {i}" for i in range(8)])
    page = visit(report.render(mixture, X, y, keys=[f"2026-01-01-no-{i}" for i in range(60)]))
    heights = "rows => rows.map(row => row.cells[0].getClientRects()[0].height)"
    one_line = page.locator("#outlier-table tbody tr").evaluate_all(heights)
    assert max(one_line) < 40
    long = visit(report.render(mixture, X, y, keys=[f"{'word-' * 12}{i}" for i in range(60)]))
    assert min(long.locator("#outlier-table tbody tr").evaluate_all(heights)) > 40


def test_searching_filters_and_says_how_many(visit, tone_page):
    page = visit(tone_page)
    total = len(column(page, 0))
    page.fill("#search", "150")
    shown = column(page, 0)
    assert "150" in shown
    assert 0 < len(shown) < total
    assert page.locator("#found").inner_text() == f"{len(shown)} of {total} rows"
    page.fill("#search", "nowhere")
    assert page.locator("#found").inner_text() == f"0 of {total} rows"
    page.fill("#search", "")
    assert len(column(page, 0)) == total


def test_an_export_runs_nothing_in_a_spreadsheet(visit, hostile_page, tmp_path):
    page = visit(hostile_page, accept_downloads=True)
    with page.expect_download() as download:
        page.click("#export")
    text = download.value.path().read_bytes().decode("utf-8-sig")
    header, *lines = text.split("\r\n")[:-1]
    assert len(lines) == len(column(page, 0))
    starts = {line.lstrip('"')[:2] for line in lines}
    assert {"'=", "'+", "'@"} <= starts
    assert not {start for start in starts if start[0] in "=+@\t\r"}
    # A negative number is a number.
    assert any(line.startswith("-5,") for line in lines)
    assert header.startswith("Row,")


# --- hostile names --------------------------------------------------------------------------------


def test_hostile_names_are_shown_and_never_run(visit, hostile_page):
    page = visit(hostile_page)
    page.wait_for_selector("#plot .ring", state="attached")
    assert page.locator("h1").inner_text() == HOSTILE[0]
    for index in range(4):
        page.select_option("#feature", str(index))
        page.locator("#plot").focus()
        page.keyboard.press("ArrowDown")
    page.fill("#search", "<script>")
    page.locator("#outlier-table thead button").first.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert "{{7*7}}" in page.locator("#feature").inner_text()


def test_the_policy_stops_what_escaping_would_have_missed(visit, tone_page):
    break_in = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script><main"
    page = visit(tone_page.replace("<main", break_in), complains=True)
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("getComputedStyle(document.body).margin") == "0px"


# --- looks ----------------------------------------------------------------------------------------

COLOURS = """selector => [...document.querySelectorAll(selector)].slice(0, 3).map(node => {
  let back = node;
  while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
  const style = getComputedStyle(node), svg = node instanceof SVGElement;
  return [svg ? style.fill : style.color, getComputedStyle(back).backgroundColor];
})"""
TEXTS = [
    *("p", "h1", "h2", "h3", ".top span", ".regimes .share", ".equation", "a[href='#regimes']"),
    *("caption span", "thead th", "tbody td", ".faint td", "#outlier-table td", "figcaption"),
    *(".verdict.holds", ".verdict.unclear", ".note", "summary", "pre", ".facts dt", "footer"),
    *(".chart text", ".chart text.name", "#theme", "#export", "#search", "#legend button"),
]


def contrast(first, second):
    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(
            share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
        )

    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


def faint(page):
    pairs = {text: page.evaluate(COLOURS, text) for text in TEXTS}
    assert [text for text, found in pairs.items() if not found] == []
    return {t: pair for t, found in pairs.items() for pair in found if contrast(*pair) < 4.5}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_schemes(visit, tone_page, scheme):
    page = visit(tone_page, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert faint(page) == {}
    page.click("#theme")
    assert faint(page) == {}


def test_the_scheme_follows_the_reader_and_the_button(visit, tone_page):
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = visit(tone_page, color_scheme="light"), visit(tone_page, color_scheme="dark")
    bright, dim = light.evaluate(background), dark.evaluate(background)
    assert contrast(bright, dim) > 10
    assert light.locator("#theme").inner_text() == "Dark"
    light.click("#theme")
    dark.click("#theme")
    assert light.evaluate(background) == dim
    assert dark.evaluate(background) == bright
    assert light.locator("#theme").inner_text() == "Light"


def test_paper_is_white_and_holds_the_first_outliers(visit):
    mixture, X, y = made(2000, 2, 2)
    page = visit(report.render(mixture, X, y, date=DATE), color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#export").is_hidden()
    assert page.locator("#outlier-table tbody tr").nth(39).is_visible()
    assert page.locator("#outlier-table tbody tr").nth(40).is_hidden()


FOCUSED = """() => {
  const node = document.activeElement;
  return [node.id || node.className, getComputedStyle(node).outlineStyle];
}"""


def test_everything_is_reached_with_the_tab_key_and_shows_it(visit, plain_page):
    page = visit(plain_page)
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(FOCUSED)
        seen.append(name)
        assert outline != "none" or not name
    assert seen[0] == "skip"
    assert {"theme", "feature", "adjust", "plot", "search", "export", "scroll tall"} <= set(seen)


def test_without_scripts_everything_is_there_to_read(visit, tone, tone_page):
    page = visit(tone_page, java_script_enabled=False)
    assert page.locator("#plot .points path").count() >= 3
    assert page.locator("#outlier-table tbody tr").count() == np.count_nonzero(tone.labels < 0)
    assert page.locator("#export").is_hidden()
    assert page.locator("#theme").is_hidden()
