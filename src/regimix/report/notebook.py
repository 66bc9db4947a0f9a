"""A mixture at the end of a notebook's cell: the answer, a table and a picture, no script."""

from __future__ import annotations

from importlib.resources import files

from regimix.report.charts import Html, prose, swatch, tag
from regimix.report.rows import Terms, read_rows
from regimix.report.scatter import Cloud
from regimix.result.answer import HELD, Answer, answer
from regimix.result.mixture import Mixture
from regimix.words import clean

__all__ = ["equations", "mixture_html"]

# A notebook keeps every output: its pictures are small.
MOST_POINTS = 600
SIZE = (560.0, 320.0)
EQUATION = 72


def mixture_html(mixture: Mixture) -> str:
    """Return HTML for a notebook, with its style and without a script; jinja2 is not needed."""
    rows = read_rows(mixture, None, None, None)
    found = answer(mixture)
    parts = [
        tag("style", Html(files("regimix.report").joinpath("notebook.css").read_text("utf-8"))),
        tag("div", found.title, class_="regimix-title"),
        tag("p", prose(found.lead)),
        *(tag("p", notice) for notice in found.notices),
        _table(mixture, found),
    ]
    if rows is not None:
        cloud = Cloud.of(rows, Terms.of(mixture, rows.X, 0.95), MOST_POINTS)
        parts += [cloud.draw(*SIZE), tag("p", _below(cloud), class_="regimix-soft")]
    return tag("div", *parts, class_="regimix")


def equations(mixture: Mixture, width: int) -> list[str]:
    """Write the equation of each regime with about so many characters, fit for a page."""
    return [clean(mixture.equation(j, width), 2 * width) for j in range(mixture.n_components)]


def _table(mixture: Mixture, found: Answer) -> Html:
    head = [tag("th", name, scope="col") for name in ("", "share of the model", "noise")]
    head.append(tag("th", "equation", scope="col", class_="words"))
    last = equations(mixture, EQUATION)
    body = []
    for line in found.lines:
        words = last[line.index] if line.index >= 0 else line.sentence
        doubt = " (doubtful)" if line.doubt else ""
        name = tag("th", swatch(line.index), f"{line.index}{doubt}", scope="row")
        cells = tag("td", line.share), tag("td", line.noise), tag("td", words, class_="words")
        body.append(tag("tr", name, *cells))
    return tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))


def _below(cloud: Cloud) -> str:
    others = f"Rows are shown with the {HELD}, by each row's own regime. "
    said = others if cloud.terms.order.size > 1 else ""
    return f"{said}{cloud.sampled} report(path) writes the whole page.".replace("  ", " ").strip()
