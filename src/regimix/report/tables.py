"""The tables of the page: regimes, coefficients, outliers, attempts."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

import numpy as np

from regimix.report.rows import Rows
from regimix.report.terms import MOST_FEATURES, Terms
from regimix.report.words import (
    aligned,
    clean,
    count,
    interval,
    number,
    percent,
    probability,
    regime,
)
from regimix.result.mixture import Mixture
from regimix.result.show import rows_labelled

__all__ = ["OutlierList", "attempts", "coefficients", "outlier_list", "regimes", "selection"]

MOST_OUTLIERS = 2000
# What their cells may weigh: long keys leave room for fewer.
MOST_BYTES = 300_000
# An export has this many digits more than the page.
EXPORTED = 2
# Features beside each outlier: those that matter most.
MOST_BESIDE = 4
MOST_ATTEMPTS = 100
LONGEST_KEY, LONGEST_HEADER = 64, 24
# Digits of the columns of the outliers.
DIGITS = (4, 1, 4, 4, 3, 3) + MOST_BESIDE * (4,)


def regimes(mixture: Mixture) -> dict[str, Any]:
    """Summarise each regime in a line: columns and rows of cells."""
    columns = ["Share of the model", "Rows labelled", "Noise"]
    shares = mixture.weights
    noise = aligned(mixture.scale.tolist())
    cells = [
        [
            percent(float(shares[j])),
            _labelled(mixture, j),
            noise[j],
        ]
        for j in range(mixture.n_components)
    ]
    if mixture.inference is not None:
        columns.append("R²")
        for row, value in zip(cells, mixture.inference.r_squared.tolist(), strict=True):
            row.append(probability(value))
    if mixture.component_evidence is not None:
        columns.append("Evidence")
        for row, value in zip(cells, aligned(mixture.component_evidence.tolist()), strict=True):
            row.append(value)
    outliers = None
    if mixture.outlier_share > 0 or rows_labelled(mixture, -1):
        found = _labelled(mixture, -1)
        outliers = [percent(mixture.outlier_share), found, *[""] * (len(columns) - 2)]
    return {"columns": columns, "rows": cells, "outliers": outliers}


def _labelled(mixture: Mixture, label: int) -> str:
    """Write how many rows have a label, if that is known."""
    rows = rows_labelled(mixture, label)
    return "–" if rows is None else f"{rows:,}"


def coefficients(mixture: Mixture, terms: Terms) -> dict[str, Any]:
    """List every term of every regime, the largest first, with what is known of its precision."""
    known = mixture.inference is not None
    columns = ["Coefficient"]
    if known:
        columns += ["Std. error", f"{terms.percent} interval", "t", "p"]
    groups = []
    for j in range(mixture.n_components):
        shown = [i for i in terms.order_in(j) if i in set(terms.order.tolist())]
        lines = [_line(mixture, terms, j, i) for i in shown]
        if mixture.fit_intercept:
            lines.insert(0, _line(mixture, terms, j, None))
        groups.append({"index": j, "name": regime(j).capitalize(), "lines": lines})
    left = mixture.coef.shape[1] - MOST_FEATURES
    note = f"{count(left, 'feature')} of smaller effect are left out." if left > 0 else ""
    return {"columns": columns, "groups": groups, "note": note}


def _line(mixture: Mixture, terms: Terms, index: int, feature: int | None) -> dict[str, Any]:
    """Write one term; None is the intercept, which comes last in the arrays."""
    place = mixture.coef.shape[1] if feature is None else feature
    value = mixture.intercept[index] if feature is None else mixture.coef[index, feature]
    name = "intercept" if feature is None else terms.name(feature)
    cells, sure = [number(float(value))], True
    inference, bounds = mixture.inference, terms.bounds
    if inference is not None and bounds is not None:
        error = inference.intercept_error if feature is None else inference.standard_error[:, place]
        low, high = (float(end) for end in bounds[index, place])
        cells += [
            number(float(error[index]), 3),
            interval(low, high),
            number(float(terms.tests[0][index, place]), 3),
            probability(float(terms.tests[1][index, place])),
        ]
        sure = not low <= 0 <= high
    return {"name": name, "constant": feature is None, "cells": cells, "sure": sure}


@dataclass(frozen=True)
class OutlierList:
    """The rows that fit no regime, the farthest first.

    Attributes
    ----------
    columns : list of str
    rows : list of list of str
        Cells as they are read; the first is the key.
    data : dict
        The same for the page's own use: sorting and export.
    note : str
        What is left out.
    """

    columns: list[str]
    rows: list[list[str]]
    data: dict[str, Any]
    note: str


def outlier_list(rows: Rows, terms: Terms) -> OutlierList:
    """List the outliers, as many as the page holds."""
    places = rows.outliers[:MOST_OUTLIERS]
    beside = [int(i) for i in terms.order[:MOST_BESIDE]]
    numbers = [
        rows.y[places],
        rows.home[places],
        rows.expected[places],
        rows.residual[places],
        np.abs(rows.distance[places]),
        rows.outlying[places],
        *(np.asarray(rows.X[places, i], dtype=np.float64) for i in beside),
    ]
    keys = [clean(rows.keys[i], LONGEST_KEY) for i in places]
    columns = [
        "Row",
        clean(terms.target, LONGEST_HEADER),
        "Regime",
        "Expected",
        "Off by",
        "Deviations",
        "P(outlier)",
    ]
    columns += [clean(terms.name(i), LONGEST_HEADER) for i in beside]
    written = [
        aligned(column.tolist(), digits) for column, digits in zip(numbers, DIGITS, strict=False)
    ]
    written[1] = [str(home) for home in numbers[1].tolist()]
    written[5] = [probability(p) for p in numbers[5].tolist()]
    cells = [list(row) for row in zip(keys, *written, strict=True)]
    shown = _that_fit(cells)
    data = {
        "columns": columns,
        "numbered": rows.numbered,
        "numbers": [
            [_rounded(value, digits + EXPORTED) for value in column[:shown].tolist()]
            for column, digits in zip(numbers, DIGITS, strict=False)
        ],
    }
    return OutlierList(columns, cells[:shown], data, _left_out(rows, shown))


def _that_fit(cells: list[list[str]]) -> int:
    """Count the first rows that weigh no more than the page allows."""
    tags = len("<td></td>")
    weights = [tags * len(row) + len(html.escape("".join(row)).encode()) for row in cells]
    return int(np.searchsorted(np.cumsum(weights), MOST_BYTES, side="right"))


def _rounded(value: float, digits: int) -> float | int | None:
    """Round to what an export needs, and write whole numbers as such: they are shorter."""
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


def _left_out(rows: Rows, shown: int) -> str:
    total = int(rows.outliers.size)
    said = []
    if shown < total:
        said.append(f"The farthest {shown:,} of {count(total, 'outlier')} are listed.")
    if rows.of > rows.n:
        said.append(
            f"Only the {rows.n:,} rows that the fit kept as an excerpt are listed, of {rows.of:,}: "
            "pass X and y to the report to see all."
        )
    if rows.numbered:
        said.append("Rows are numbered from 0.")
    return " ".join(said)


def attempts(mixture: Mixture) -> dict[str, Any]:
    """List what the search tried."""
    shown = mixture.attempts[:MOST_ATTEMPTS]
    left = len(mixture.attempts) - len(shown)
    return {
        "rows": [
            [a.move, a.source, number(a.gain), "taken" if a.accepted else "left", a.reason]
            for a in shown
        ],
        "note": f"{count(left, 'later attempt')} not shown." if left else "",
    }


def selection(mixture: Mixture) -> dict[str, Any] | None:
    """Compare numbers of regimes, if the search did."""
    chosen = mixture.selection
    if chosen is None or len(chosen.n_components) == 0:
        return None
    scores = (chosen.evidence, chosen.bic, chosen.icl)
    return {
        "mark": _mark(mixture.settings.n_components, int(chosen.chosen)),
        "rows": [
            {
                "count": int(k),
                "chosen": int(k) == int(chosen.chosen),
                "cells": [number(float(s[i])) for s in scores],
            }
            for i, k in enumerate(chosen.n_components)
        ],
    }


def _mark(asked: int | None, chosen: int) -> str:
    """Say in a word how the number of regimes came about."""
    return "chosen" if asked is None else "asked for" if asked == chosen else "found"
