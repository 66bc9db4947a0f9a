"""A mixture at the end of a notebook's cell: the answer, a table and a picture, no script."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from regimix.report.charts import Html, prose, swatch, tag
from regimix.report.rows import Terms, read_rows
from regimix.report.scatter import Cloud
from regimix.result.answer import HELD, Answer
from regimix.result.compare import Comparison
from regimix.result.mixture import Mixture
from regimix.result.profile import Profile
from regimix.words import clean

# A notebook keeps every output: its pictures are small.
MOST_POINTS = 600
SIZE = (560.0, 320.0)
EQUATION = 72


def mixture_html(mixture: Mixture) -> str:
    """Return HTML for a notebook, with its style and without a script; jinja2 is not needed."""
    rows = read_rows(mixture, None, None, None)
    found = Answer(mixture)
    parts = [
        tag("div", found.title, class_="regimix-title"),
        tag("p", prose(found.lead)),
        *(tag("p", notice) for notice in found.notices),
        _table(mixture, found),
    ]
    parts += [tag("p", said) for said in (found.noise_law, found.favours) if said]
    if rows is not None:
        cloud = Cloud.of(rows, Terms.of(mixture, rows.X, 0.95), MOST_POINTS)
        others = f"Rows are shown with the {HELD}, by each row's own regime. "
        held = others if cloud.terms.order.size > 1 else ""
        below = f"{held}{cloud.sampled} report(path) writes the whole page.".replace("  ", " ")
        parts += [cloud.draw(*SIZE), tag("p", below.strip(), class_="regimix-soft")]
    return _card(*parts)


def profile_html(found: Profile) -> str:
    """Return a profile as HTML for a notebook: the sentences, then a table."""
    pairs = zip(found.groups, found.names, strict=True)
    heads = ["", "all rows", *(tag("span", swatch(group), name) for group, name in pairs)]
    body = []
    for column in found.columns:
        title = tag("b", clean(column.name)), f" {column.said()}"
        body.append(tag("tr", tag("th", *title, scope="rowgroup", colspan=len(heads))))
        body += [_line(clean(name), cells) for name, cells in column.lines()]
    return _found("Who is in each regime", found, _grid(heads, body))


def comparison_html(found: Comparison) -> str:
    """Return a comparison as HTML for a notebook: the sentences, then a table."""
    body = []
    for i, k in found.order:
        first, second = found.pairs[i]
        difference, error, ends, _, p = found.cells(i, k)
        name = f"{second} less {first}: {clean(found.terms[k])}"
        body.append(_line(name, [difference, error, ends, p]))
    level = f"{100 * found.level:g}% interval, all together"
    table = _grid(["", "difference", "std err", level, "p (Holm)"], body)
    return _found("How the regimes differ", found, table)


def _found(title: str, found: Profile | Comparison, table: Html) -> str:
    """Put a table between the sentences and the notes of what was found."""
    return _card(
        tag("div", title, class_="regimix-title"),
        *(tag("p", said) for said in found.sentences),
        table,
        tag("p", " ".join(found.notes), class_="regimix-soft"),
    )


def _card(*parts: Html) -> Html:
    style = Html(files("regimix.report").joinpath("notebook.css").read_text("utf-8"))
    return tag("div", tag("style", style), *parts, class_="regimix")


def _line(name: object, cells: Iterable[object]) -> Html:
    return tag("tr", tag("th", name, scope="row"), *(tag("td", cell) for cell in cells))


def _grid(heads: Iterable[object], body: Iterable[Html]) -> Html:
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    return tag("table", tag("thead", head), tag("tbody", *body))


def equations(mixture: Mixture, width: int) -> list[str]:
    """Write the equation of each regime with about so many characters, fit for a page."""
    return [clean(mixture.equation(j, width), 2 * width) for j in range(mixture.n_components)]


def _table(mixture: Mixture, found: Answer) -> Html:
    head = [tag("th", name, scope="col") for name in ("", "share", "noise")]
    head.append(tag("th", "equation", scope="col", class_="words"))
    last = equations(mixture, EQUATION)
    body = []
    for line in found.lines:
        words: list[Html | str] = [last[line.index] if line.index >= 0 else line.sentence]
        words += [tag("div", line.doubt)] if line.doubt else []
        doubt = " (doubtful)" if line.doubt else ""
        name = tag("th", swatch(line.index), f"{line.index}{doubt}", scope="row")
        cells = tag("td", line.share), tag("td", line.noise), tag("td", *words, class_="words")
        body.append(tag("tr", name, *cells))
    return tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
