"""From a mixture and rows to one page that stands alone: its parts, and how to get it again."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import os
import platform
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np

from regimix.atomic import write_bytes
from regimix.errors import MissingExtraError
from regimix.report import charts, tables
from regimix.report.charts import Html
from regimix.report.notebook import equations
from regimix.report.rows import Rows, Terms, outlier_words, read_rows
from regimix.report.scatter import Cloud
from regimix.result.answer import Answer, answer, rows_labelled
from regimix.result.inference import read_level
from regimix.result.mixture import Mixture
from regimix.search.settings import Settings
from regimix.words import clean, count, fixed, named, number

__all__ = ["render", "snippet", "write"]

# Characters of a title, and of an equation.
LONGEST_TITLE, EQUATION = 200, 96
# Attempts of the search that are listed.
MOST_ATTEMPTS = 100
# Keys of no more characters than this stay on one line.
LONG_KEY = 32
# Settings that the estimator knows by the same name. The seed has another name; n_jobs changes
# nothing.
SAME_NAME = ("n_components", "outliers", "noise", "search", "max_starts", "time_limit")
# Those that only Algorithm 2 as a function knows; the shares have another name, too.
OF_THE_NET = ("subspace", "solver", "max_iter", "tol", "granularity", "tolerance")
MOST_NAMES, MOST_CHARACTERS = 12, 400


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
        | {"snippet": snippet(mixture) if command is None else _visible(command)}
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
    environment.filters.update(
        prose=charts.prose,
        number=number,
        whole=lambda value: fixed(value, 0),
        count=count,
        clean=clean,
        name=lambda text: charts.prose(named(text)),
        sha=_hash,
        compared=tables.compared,
    )
    return environment


def headline(mixture: Mixture, rows: Rows | None, level: float) -> dict[str, Any]:
    """Put into words what was found, and what it means for the rows that are shown."""
    out = rows_labelled(mixture, -1)
    if rows is not None and rows.fitted and rows.n == mixture.n_rows:
        # The mixture may not have counted them.
        out = int(np.count_nonzero(rows.labels < 0))
    source = "" if rows is None or rows.fitted else "the fit"
    found = answer(mixture, source, level=level, outliers=out)
    notices, sure = list(found.notices), found.sure
    if rows is not None and not rows.fitted:
        notices.insert(0, rows.notice(mixture.n_rows))
    if rows is not None and mixture.n_components > 1 and not mixture.found_nothing:
        sure = f"{sure} {rows.doubtful()}".strip()
    share = mixture.outlier_share if out is None else out / mixture.n_rows
    return {
        "answer": found,
        "equations": equations(mixture, EQUATION),
        "which": outlier_words(rows, mixture.n_rows, share),
        "sure": sure,
        "notices": notices,
    }


def _context(
    mixture: Mixture, rows: Rows | None, terms: Terms, title: str | None, date: str
) -> dict[str, Any]:
    words = headline(mixture, rows, terms.level)
    found: Answer = words["answer"]
    cloud = None if rows is None else Cloud.of(rows, terms)
    listed = None if rows is None else tables.outlier_list(rows, terms)
    data = {
        "scatter": None if cloud is None else cloud.data(),
        "outliers": listed["data"] if listed is not None and listed["rows"] else None,
    }
    # One feature of one regime needs no picture of effects.
    several = terms.effects.size > 1
    return words | {
        "title": found.title if title is None else clean(title, LONGEST_TITLE),
        "date": date,
        "mixture": mixture,
        "terms": terms,
        "rows": rows,
        "css": _asset("page.css"),
        "js": _asset("page.js"),
        "data": embedded(data),
        "swatch": charts.swatch,
        "cloud": cloud,
        "forest": charts.forest(terms) if several else "",
        "most_forest": charts.MOST_FOREST,
        "coefficients": tables.coefficients(mixture, terms),
        "outliers": listed,
        "longest_key": LONG_KEY,
        "residuals": [] if rows is None else charts.panels(rows, terms),
        "selection": tables.selection(mixture),
        "most_attempts": MOST_ATTEMPTS,
        "tried": charts.convergence(mixture.attempts),
        "findings": tables.assumptions(mixture, rows),
        "signs": tables.SIGNS,
        "python": platform.python_version(),
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


def _hash(text: str) -> str:
    """Name a style or a script in the policy of the page, which allows no others."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


# --- how to get it again --------------------------------------------------------------------------


def snippet(mixture: Mixture) -> str:
    """Write the Python that fits the same model to the same rows."""
    given, usual = mixture.settings, Settings()
    options = [
        f"{name}={getattr(given, name)!r}"
        for name in (*SAME_NAME, *OF_THE_NET)
        if getattr(given, name) != getattr(usual, name)
    ]
    if given.taus is not None:
        options.append(f"shares={list(given.taus)!r}")
    by_function = any(option.partition("=")[0] not in SAME_NAME for option in options)
    if by_function:
        options = ["X", "y", *options]
    if by_function == mixture.fit_intercept:  # the function and the estimator have other defaults
        options.append(f"fit_intercept={mixture.fit_intercept}")
    options.append(f"random_state={mixture.seed}")
    inside = ", ".join(options)
    if len(inside) > 60:
        inside = "\n    " + ",\n    ".join(options) + ",\n"
    name = "global_ilts" if by_function else "MixedLinearRegression"
    lines = [f"from regimix import {name}", "", *_columns(mixture)]
    if by_function:
        return "\n".join([*lines, f"print(global_ilts({inside}))"])
    lines += [f"fit = MixedLinearRegression({inside}).fit(X, y)", "print(fit.mixture_)"]
    return "\n".join(lines)


def _visible(command: str) -> str:
    """Spell out what is invisible in a command, or could turn the direction of its text."""
    return "".join(
        sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in command
    )


def _columns(mixture: Mixture) -> list[str]:
    """Name the columns, if the table had names."""
    names = mixture.feature_names
    unnamed = names == tuple(f"x{i}" for i in range(len(names)))
    # repr() spells out what is invisible or could turn the direction of the text, and only that.
    listed = repr(list(names))
    if unnamed or len(names) > MOST_NAMES or len(listed) > MOST_CHARACTERS:
        return []
    return [f"X, y = table[{listed}], table[{mixture.target_name!r}]"]
