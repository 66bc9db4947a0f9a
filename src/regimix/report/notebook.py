"""A mixture at the end of a notebook's cell: the answer, a table and a picture, no script."""

from __future__ import annotations

from importlib.resources import files

from regimix.report.charts import Html, prose, swatch, tag
from regimix.report.rows import Terms, read_rows
from regimix.report.scatter import Cloud
from regimix.report.sentences import Sentences, sentences
from regimix.result.mixture import Mixture

__all__ = ["mixture_html"]

LEVEL = 0.95
# A notebook keeps every output: its pictures are small.
MOST_POINTS = 600
SIZE = (560.0, 320.0)
EQUATION = 72


def mixture_html(mixture: Mixture) -> str:
    """Show a mixture in a notebook; jinja2 is not needed.

    Parameters
    ----------
    mixture : Mixture

    Returns
    -------
    str
        HTML that stands alone, with its style and without a script.
    """
    rows = read_rows(mixture, None, None, None)
    terms = Terms.of(mixture, None if rows is None else rows.X, LEVEL)
    answer = sentences(mixture, rows, terms, EQUATION)
    parts = [
        tag("style", Html(files("regimix.report").joinpath("notebook.css").read_text("utf-8"))),
        tag("div", prose(answer.title), class_="regimix-title"),
        tag("p", prose(answer.lead)),
        *(tag("p", notice) for notice in answer.notices),
        _table(answer),
    ]
    if rows is not None:
        cloud = Cloud.of(rows, terms, MOST_POINTS)
        parts += [cloud.draw(*SIZE), tag("p", _below(cloud), class_="regimix-soft")]
    return tag("div", *parts, class_="regimix")


def _table(said: Sentences) -> Html:
    head = [tag("th", name, scope="col") for name in ("", "share of the model", "noise")]
    head.append(tag("th", "equation", scope="col", class_="words"))
    last = [*(regime.equation for regime in said.regimes), "outliers"]
    body = []
    for line, words in zip(said.answer.lines, last, strict=False):
        name = tag("th", swatch(line.index), str(line.index), scope="row")
        cells = tag("td", line.share), tag("td", line.noise), tag("td", words, class_="words")
        body.append(tag("tr", name, *cells))
    return tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))


def _below(cloud: Cloud) -> str:
    others = "Other features are held at their means, by each row's own regime. "
    said = others if cloud.terms.order.size > 1 else ""
    return f"{said}{cloud.sampled} report(path) writes the whole story.".replace("  ", " ").strip()
