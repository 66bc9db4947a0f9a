"""The sections of the page: pictures and tables, each with what a reader must be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from regimix.report import fluid, tables
from regimix.report.scatter import Cloud
from regimix.report.svg import Html, tag
from regimix.report.terms import Terms
from regimix.report.words import count, ended, listing, named, several
from regimix.result.mixture import Mixture

if TYPE_CHECKING:
    from regimix.search.selection import Selection

__all__ = [
    "coefficients",
    "forest",
    "no_selection",
    "outliers",
    "scatter",
    "selection",
    "shares",
    "tried",
]

# More terms than this are folded away.
LONG_TABLE = 40
# Keys of no more characters than this stay on one line.
LONG_KEY = 32
EVIDENCE = (
    "how much likelier the data are with the regimes than with constants, in nats, after a price "
    "for every coefficient and of 3 nats for every regime"
)


def shares(mixture: Mixture) -> Html:
    """Draw the shares of the regimes as one bar."""
    left, drawn = 0.0, []
    for index, share in [*enumerate(mixture.weights.tolist()), (-1, mixture.outlier_share)]:
        kind = f"r{index % 8}" if index >= 0 else "out"
        place = {"x": f"{100 * left:.3f}%", "width": f"{100 * share:.3f}%"}
        drawn.append(tag("rect", class_=kind, height="100%", **place))
        left += share
    label = "Shares of the model: the regimes and, last, the outliers"
    return tag("svg", tag("title", label), *drawn, class_="shares", role="img")


def scatter(cloud: Cloud) -> dict[str, Any]:
    """Draw the rows, and say how to read them."""
    said = ["Each mark is a row, each line a regime."]
    if cloud.terms.order.size > 1:
        said.append(
            "Rows are shown as if their other features were at their means, by the equation of "
            "their own regime: so the distance from its line is what the row is off by."
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


def forest(terms: Terms) -> dict[str, Any] | None:
    """Draw the effects; one feature of one regime needs no picture."""
    if terms.effects.shape[1] < 2 and terms.mixture.n_components < 2:
        return None
    unit = "one standard deviation" if terms.ranked else "one unit"
    said = (
        f"Change of {named(terms.target)} for {unit} of a feature, the others held, in each regime"
    )
    said += "." if terms.bounds is None else f", with {terms.percent} intervals."
    left = terms.effects.shape[1] - fluid.MOST_FOREST
    if left > 0:
        said += f" {count(left, 'feature')} of smaller effect are left out."
    return {"svg": fluid.forest(terms), "caption": said}


def coefficients(mixture: Mixture, terms: Terms) -> dict[str, Any]:
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


def outliers(listed: tables.OutlierList) -> dict[str, Any]:
    """List the outliers."""
    return {
        "rows": listed.rows,
        "longest": LONG_KEY,
        "columns": listed.columns,
        "note": listed.note,
        "count": f"{len(listed.rows):,} of {count(len(listed.rows), 'row')}",
    }


def selection(mixture: Mixture) -> dict[str, Any] | None:
    """Compare numbers of regimes, if the search did."""
    table, path = tables.selection(mixture), mixture.selection
    if table is None or path is None:
        return None
    counts = [int(k) for k in path.n_components]
    scores = [
        ("Evidence", path.evidence, "higher"),
        ("BIC", path.bic, "lower"),
        ("ICL", path.icl, "lower"),
    ]
    marked = int(path.chosen), str(table["mark"])
    charts = [fluid.path(counts, values, marked, name, way) for name, values, way in scores]
    words = _chosen(path) if mixture.settings.n_components is None else _asked_for(mixture, path)
    return {**table, "charts": [chart for chart in charts if chart], "words": words}


def _chosen(path: Selection) -> str:
    return (
        f"The model with {several(int(path.chosen), 'regime')} was chosen, by evidence: "
        f"{EVIDENCE}. BIC and ICL are there to compare."
    )


def _asked_for(mixture: Mixture, path: Selection) -> str:
    """Say that the number was given, and what the evidence says of it."""
    asked, here = mixture.settings.n_components, int(path.chosen)
    said = _asked(here if asked is None else asked)
    said += "; the number was not chosen." if asked == here else f"; the rows support {here}."
    known = np.isfinite(path.evidence)
    if np.count_nonzero(known) < 2:
        return f"{said} No other numbers were compared."
    best = int(path.n_components[np.nanargmax(np.where(known, path.evidence, np.nan))])
    looked = listing([str(int(k)) for k in path.n_components[known]])
    favours = f"{several(best, 'regime')}{' too' if best == here else ''}"
    return (
        f"{said} Of the numbers that were looked at on the way ({looked}), the evidence favours "
        f"{favours}. Evidence is {EVIDENCE}. BIC and ICL are there to compare."
    )


def _asked(number: int) -> str:
    verb = "was" if number == 1 else "were"
    return f"{several(number, 'regime').capitalize()} {verb} asked for"


def no_selection(mixture: Mixture) -> str:
    """Say why numbers of regimes are not compared."""
    asked = mixture.settings.n_components
    if asked is not None:
        return f"{_asked(asked)}; no others were compared."
    return "What other numbers of regimes would be worth was not recorded with this model."


def tried(mixture: Mixture) -> dict[str, Any]:
    """Say what the search tried, and why it ended."""
    table, total = tables.attempts(mixture), len(mixture.attempts)
    if not total:
        return {**table, "svg": "", "words": "What the search tried was not recorded."}
    taken = sum(attempt.accepted for attempt in mixture.attempts)
    words = (
        f"The search tried {count(total, 'change')} to the model, took {taken:,}, and ended "
        f"because {ended(mixture.stopped)}."
    )
    return {**table, "svg": fluid.convergence(mixture.attempts), "words": words}
