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
from regimix.report.rows import Rows, Terms, read_rows
from regimix.report.scatter import Cloud
from regimix.report.sentences import sentences
from regimix.result.answer import Answer
from regimix.result.mixture import Mixture
from regimix.result.wald import read_level
from regimix.search.settings import Settings
from regimix.words import bare, clean, count, fixed, listing, named, number, several

__all__ = ["render", "snippet", "write"]

LONGEST_TITLE = 200
# More terms than this are folded away.
LONG_TABLE = 40
# Keys of no more characters than this stay on one line.
LONG_KEY = 32
EVIDENCE = (
    "how much likelier the data are with the regimes than with constants, in nats, after a price "
    "for every coefficient and of 3 nats for every regime"
)
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
    environment.filters.update(prose=charts.prose, bare=bare)
    return environment


def _context(
    mixture: Mixture, rows: Rows | None, terms: Terms, title: str | None, date: str
) -> dict[str, Any]:
    answer = sentences(mixture, rows, terms)
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
        "swatch": charts.swatch,
        "shares": charts.shares(mixture.weights.tolist(), mixture.outlier_share),
        "scatter": None if cloud is None else _scatter(cloud),
        "regimes": tables.regimes(answer.answer),
        "forest": _forest(terms),
        "coefficients": _coefficients(mixture, terms),
        "outliers": listed,
        "longest_key": LONG_KEY,
        "residuals": [] if rows is None else charts.panels(rows, terms),
        "selection": _selection(mixture),
        "tried": _tried(mixture, answer.answer),
        "findings": tables.assumptions(mixture, rows),
        "spectrum": "" if spectrum is None else spectrum.describe(),
        "facts": _facts(mixture, answer.answer, date),
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


# --- sections -------------------------------------------------------------------------------------


def _scatter(cloud: Cloud) -> dict[str, Any]:
    """Draw the rows, and say how to read them."""
    said = ["Each mark is a row, each line a regime."]
    if cloud.terms.order.size > 1:
        said.append(
            "Rows are shown as if their other features were at their means, by the equation of "
            "their own regime: so the distance from its line is its residual."
        )
    if cloud.hides_some:
        said.append("Arrows at the edge stand for outliers beyond it.")
    hidden = cloud.terms.mixture.coef.shape[1] - cloud.terms.order.size
    if hidden:
        said.append(f"{count(hidden, 'feature')} of smaller effect cannot be chosen here.")
    return {
        "svg": cloud.draw(),
        "features": [cloud.terms.name(int(i)) for i in cloud.terms.order],
        "has_outliers": cloud.inside < cloud.points.size,
        "caption": " ".join([*said, cloud.sampled]).strip(),
    }


def _forest(terms: Terms) -> dict[str, Any] | None:
    """Draw the effects; one feature of one regime needs no picture."""
    if terms.effects.shape[1] < 2 and terms.mixture.n_components < 2:
        return None
    unit = "one standard deviation" if terms.ranked else "one unit"
    said = (
        f"Change of {named(terms.target)} for {unit} of a feature, the others held, in each regime"
    )
    said += "." if terms.bounds is None else f", with {terms.percent} intervals."
    left = terms.effects.shape[1] - charts.MOST_FOREST
    if left > 0:
        said += f" {count(left, 'feature')} of smaller effect are left out."
    return {"svg": charts.forest(terms), "caption": said}


def _coefficients(mixture: Mixture, terms: Terms) -> dict[str, Any]:
    """List the coefficients, and say what is paler and what is missing."""
    table = tables.coefficients(mixture, terms)
    faint = any(not line["sure"] for group in table["groups"] for line in group["lines"])
    caption = "In the units of the data, the largest effect first."
    if faint:
        caption += f" Paler terms: the {terms.percent} interval includes zero."
    notes = [table["note"]] if table["note"] else []
    if mixture.inference is None:
        notes.append("Standard errors were not recorded with this model.")
    lines = sum(len(group["lines"]) for group in table["groups"])
    return {**table, "caption": caption, "notes": notes, "long": lines > LONG_TABLE}


def _selection(mixture: Mixture) -> dict[str, Any]:
    """Compare numbers of regimes, if the search did, or say why not."""
    asked, path, table = mixture.settings.n_components, mixture.selection, tables.selection(mixture)
    if table is None or path is None:
        words = "What other numbers of regimes would be worth was not recorded with this model."
        if asked is not None:
            words = f"{_asked_for(asked)}; no others were compared."
        return {"charts": [], "words": words}
    counts, marked = [int(k) for k in path.n_components], (int(path.chosen), str(table["mark"]))
    scores = [
        ("Evidence", path.evidence, "higher"),
        ("BIC", path.bic, "lower"),
        ("ICL", path.icl, "lower"),
    ]
    drawn = [charts.path(counts, values, marked, name, way) for name, values, way in scores]
    words = f"The model with {several(marked[0], 'regime')} was chosen, by evidence: {EVIDENCE}."
    words += " BIC and ICL are there to compare."
    if asked is not None:
        words = _favoured(asked, marked[0], counts, path.evidence)
    return {**table, "charts": [chart for chart in drawn if chart], "words": words}


def _favoured(asked: int, found: int, counts: list[int], evidence: Any) -> str:
    """Say that the number was given, and what the evidence says of it."""
    end = "the number was not chosen." if asked == found else f"the rows support {found}."
    said = f"{_asked_for(asked)}; {end}"
    known = [k for k, value in zip(counts, evidence, strict=True) if np.isfinite(value)]
    if len(known) < 2:
        return f"{said} No other numbers were compared."
    best = counts[int(np.nanargmax(np.where(np.isfinite(evidence), evidence, np.nan)))]
    favours = f"{several(best, 'regime')}{' too' if best == found else ''}"
    looked = listing([str(k) for k in known])
    return (
        f"{said} Of the numbers that were looked at on the way ({looked}), the evidence favours "
        f"{favours}. Evidence is {EVIDENCE}. BIC and ICL are there to compare."
    )


def _asked_for(number: int) -> str:
    verb = "was" if number == 1 else "were"
    return f"{several(number, 'regime').capitalize()} {verb} asked for"


def _tried(mixture: Mixture, found: Answer) -> dict[str, Any]:
    """Say what the search tried, and why it ended."""
    words = found.ended if mixture.attempts else "What the search tried was not recorded."
    drawn = charts.convergence(mixture.attempts)
    return {**tables.attempts(mixture), "svg": drawn, "words": words}


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


def _facts(mixture: Mixture, found: Answer, date: str) -> list[tuple[str, str]]:
    """List what else belongs to the record."""
    seconds = [f"{stage} {number(took, 2)}" for stage, took in mixture.timings.items()]
    listed = [
        ("Written", date),
        ("With", f"regimix {version('regimix')}, Python {platform.python_version()}"),
        ("Rows", fixed(mixture.n_rows, 0)),
        ("Features", fixed(mixture.coef.shape[1], 0)),
        ("Seed", str(mixture.seed)),
        ("Ended", found.ended),
        ("Components from", ", ".join(dict.fromkeys(map(clean, mixture.origin)))),
        ("Seconds", ", ".join(map(clean, seconds))),
    ]
    return [(name, value) for name, value in listed if value]
