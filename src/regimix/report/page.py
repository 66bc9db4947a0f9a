"""From a mixture and rows to one page that stands alone."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import os
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from regimix.atomic import write_bytes
from regimix.errors import MissingExtraError
from regimix.report import sections, tables
from regimix.report.assumptions import assumptions
from regimix.report.headline import headline
from regimix.report.reproduce import facts, snippet, visible
from regimix.report.residuals import panels
from regimix.report.rows import Rows, read_rows
from regimix.report.scatter import Cloud
from regimix.report.svg import Html, prose, swatch
from regimix.report.terms import Terms
from regimix.report.words import bare, clean
from regimix.result.mixture import Mixture
from regimix.result.wald import read_level

__all__ = ["render", "write"]

LONGEST_TITLE = 200


def render(
    mixture: Mixture,
    X: Any = None,
    y: Any = None,
    *,
    keys: Any = None,
    title: str | None = None,
    level: float = 0.95,
    shares: Any = None,
    date: str | None = None,
    command: str | None = None,
) -> str:
    """Write a report as the text of one HTML page, which loads nothing.

    Parameters
    ----------
    mixture : Mixture
    X, y : array or data frame of shape (n, d), array of shape (n,), optional
        The rows to show. Default: those that the mixture remembers of its fit (``excerpt``).
    keys : sequence of length n, optional
        What to call the rows. Default: the index of X, if it is a data frame that has one of its
        own; else their numbers, from 0.
    title : str, optional
        Default: the answer in a line.
    level : float, default=0.95
        Of the intervals.
    shares : array of shape (n, m), optional
        Shares of the regimes in each row, where they depend on the row.
    date : str, optional
        When the report was written. Default: today. The rest depends on the arguments alone.
    command : str, optional
        What to run to get the same again, as a shell takes it. Default: Python, which assumes that
        the columns of the fit are those of a table.

    Returns
    -------
    str
    """
    environment = _environment()
    rows = read_rows(mixture, X, y, keys, shares)
    terms = Terms.of(mixture, None if rows is None else rows.X, read_level(level))
    written = dt.datetime.now().astimezone().date().isoformat() if date is None else date
    page: str = environment.get_template("page.html.j2").render(
        _context(mixture, rows, terms, title, clean(written))
        | {"snippet": snippet(mixture) if command is None else visible(command)}
    )
    return page


def write(path: str | os.PathLike[str], mixture: Mixture, *args: Any, **options: Any) -> None:
    """Write a report to a file, whole or not at all; see `render` for the other arguments."""
    write_bytes(path, render(mixture, *args, **options).encode("utf-8"))


def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError(
            "a report needs jinja2, which is not installed; run: pip install 'regimix[cli]'"
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("regimix.report", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters.update(prose=prose, bare=bare)
    return environment


def _context(
    mixture: Mixture, rows: Rows | None, terms: Terms, title: str | None, date: str
) -> dict[str, Any]:
    answer = headline(mixture, rows, terms)
    css, js = _asset("page.css"), _asset("page.js")
    cloud = None if rows is None else Cloud.of(rows, terms)
    listed = None if rows is None else tables.outlier_list(rows, terms)
    data = {
        "scatter": None if cloud is None else cloud.data(),
        "outliers": listed.data if listed is not None and listed.rows else None,
    }
    spectrum = mixture.spectrum
    return {
        "title": answer.title if title is None else clean(title, LONGEST_TITLE),
        "answer": answer,
        "date": date,
        "target": terms.target,
        "policy": _policy(css, js),
        "css": css,
        "js": js,
        "data": embedded(data),
        "swatch": swatch,
        "shares": sections.shares(mixture),
        "scatter": None if cloud is None else sections.scatter(cloud),
        "regimes": tables.regimes(mixture),
        "forest": sections.forest(terms),
        "coefficients": sections.coefficients(mixture, terms),
        "outliers": None if listed is None else sections.outliers(listed),
        "residuals": [] if rows is None else panels(rows, terms),
        "selection": sections.selection(mixture),
        "no_selection": sections.no_selection(mixture),
        "tried": sections.tried(mixture),
        "findings": assumptions(mixture, rows),
        "spectrum": "" if spectrum is None else spectrum.describe(),
        "facts": facts(mixture, date),
        "version": version("regimix"),
    }


def embedded(data: Any) -> Html:
    """Write data so that no text in it can end the element that holds it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Html(text)


def _asset(name: str) -> Html:
    return Html(files("regimix.report").joinpath(name).read_text(encoding="utf-8"))


def _policy(css: str, js: str) -> str:
    """Allow this style, this script and nothing else: whatever a name contains, nothing runs."""
    return (
        f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(js)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
