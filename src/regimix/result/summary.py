"""Summary: a fitted mixture as tables of coefficients, to print or to compute with."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import MissingExtraError
from regimix.result.answer import WIDTH, RegimeLine, answer
from regimix.result.inference import conf_int, errors, estimates, p_values, read_level, t_values
from regimix.words import (
    UNKNOWN,
    count,
    fixed,
    measured,
    number,
    percent,
    probability,
    scientific,
    short,
)

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture

__all__ = ["Summary", "coefficient_table", "summary_columns", "summary_frame"]

Floats = NDArray[np.float64]

INTERCEPT = "intercept"
# Terms of a regime that are printed; of more, those with the largest t values.
MOST_TERMS = 20
LONGEST_TERM, LONGEST_TARGET = 20, 24
# What a table of coefficients holds, and the width of each column.
COLUMNS = ("coef", "std_err", "t", "p_value", "lower", "upper")
NAME_WIDTH = 21
WIDTHS = (11, 10, 9, 7, 11, 11)
# What errors take for granted.
BY_LABEL = (
    "Errors, tests and intervals are conditional on the labels: they take for granted",
    "which row belongs where. bootstrap(X, y) does not.",
)
BY_RESPONSIBILITY = (
    "Errors, tests and intervals are conditional on the regimes that were found. Rows",
    "of uncertain label count by their probabilities, and widen them.",
)


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Coefficients of every regime with their errors, tests and intervals.

    Attributes
    ----------
    mixture : Mixture
    level : float
        Of the intervals.
    """

    mixture: Mixture
    level: float = 0.95

    def __post_init__(self) -> None:
        read_level(self.level)

    def frame(self) -> Any:
        """Return the numbers as a data frame; see ``Mixture.summary_frame``."""
        return summary_frame(self.mixture, self.level)

    def __str__(self) -> str:
        lines = _header(self.mixture)
        found = answer(self.mixture).regimes
        for regime, values in zip(found, coefficient_table(self.mixture, self.level), strict=True):
            lines += _block(self.mixture, regime, values, self.level)
        granted = BY_LABEL if self.mixture.fitted_by_label else BY_RESPONSIBILITY
        return "\n".join([*lines, "=" * WIDTH, *granted])

    def __repr__(self) -> str:
        return str(self)


def coefficient_table(mixture: Mixture, level: float) -> Floats:
    """Return each coefficient with its error, t, p and interval, (m, d + 1, 6), intercepts last."""
    bounds = conf_int(mixture, level)
    parts = (estimates(mixture), errors(mixture), t_values(mixture), p_values(mixture))
    return np.stack([*parts, bounds[..., 0], bounds[..., 1]], axis=-1)


def _terms(mixture: Mixture) -> tuple[list[int], list[str]]:
    """Return the order in which coefficients are shown, the intercept first, and their names."""
    names, order = list(mixture.feature_names), list(range(len(mixture.feature_names)))
    if not mixture.fit_intercept:
        return order, names
    return [len(order), *order], [INTERCEPT, *names]


# --- a data frame ---------------------------------------------------------------------------------


def summary_columns(mixture: Mixture, level: float) -> dict[str, Any]:
    """Return one array a column: one row for each component and term, the intercept first."""
    table, (order, names) = coefficient_table(mixture, level), _terms(mixture)
    m = len(table)
    columns: dict[str, Any] = {
        "component": np.repeat(np.arange(m), len(order)),
        "term": names * m,
    }
    values = table[:, order].reshape(-1, len(COLUMNS))
    return columns | {name: values[:, i].copy() for i, name in enumerate(COLUMNS)}


def summary_frame(mixture: Mixture, level: float) -> Any:
    """Return the columns as a pandas data frame, or a polars one where pandas is missing."""
    columns = summary_columns(mixture, level)
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(columns)
        except ModuleNotFoundError:
            continue
    raise MissingExtraError(
        "summary_frame needs pandas or polars, and neither is installed; install one of them "
        "(pip install pandas), or use summary(), conf_int(), t_values() and p_values()."
    )


# --- a printed table ------------------------------------------------------------------------------


def _header(mixture: Mixture) -> list[str]:
    """Say what was fitted, in two columns."""
    outliers = _sizes(mixture)[-1]
    inference = mixture.inference
    overall = np.nan if inference is None else inference.r_squared_overall
    evidence = UNKNOWN if mixture.settings.search == "net" else number(mixture.evidence)
    left = {
        "Response": short(mixture.target_name, LONGEST_TARGET),
        "Rows": fixed(mixture.mass, 0),
        "Features": str(len(mixture.feature_names)),
        "Evidence": evidence,
    }
    right = {
        "Regimes": str(mixture.n_components),
        "Outliers": f"{fixed(outliers, 0)} ({percent(mixture.outlier_share)})",
        "R², each by its regime": probability(overall),
        "Seed": str(mixture.seed),
    }
    half = WIDTH // 2 - 2
    lines = [
        "    ".join(f"{name + ':':<{half - len(value)}}{value}" for name, value in pair)
        for pair in zip(left.items(), right.items(), strict=True)
    ]
    return ["Mixture of linear regimes".center(WIDTH).rstrip(), "=" * WIDTH, *lines]


def _sizes(mixture: Mixture) -> Floats:
    """Count the rows of each label, outliers last, (m + 1,): repetitions count, absent rows do not.

    A model file does not hold the weights of its rows, but it holds the shares of their
    labels.
    """
    m, labels = mixture.n_components, mixture.labels
    if mixture.label_counts is not None:
        return np.array(mixture.label_counts, dtype=np.float64)
    if mixture.mass != mixture.n_rows:
        return mixture.mass * np.append(mixture.weights, mixture.outlier_share)
    return np.bincount(np.where(labels < 0, m, labels), minlength=m + 1).astype(np.float64)


def _block(mixture: Mixture, regime: RegimeLine, values: Floats, level: float) -> list[str]:
    """Print one regime: what is known of it, and its coefficients."""
    order, names = _terms(mixture)
    shown = _largest(values[order], has_intercept=mixture.fit_intercept)
    bounds = f"[{0.5 - level / 2:.4g}", f"{0.5 + level / 2:.4g}]"
    head = _row("", ("coef", "std err", "t", "P>|t|", *bounds))
    lines = ["=" * WIDTH, _title(mixture, regime), "-" * WIDTH, head, "-" * WIDTH]
    lines += [_row(short(names[i], LONGEST_TERM), _cells(values[order[i]])) for i in shown]
    if len(shown) < len(order):
        left = np.delete(values[order][:, 2], shown)
        largest = np.max(np.abs(left), initial=0.0, where=np.isfinite(left))
        most = number(float(largest), 3)
        lines.append(f"... {len(left)} more terms, |t| up to {most}; summary_frame() has all")
    notes = mixture.inference.notes if mixture.inference else ()
    note = notes[regime.index] if notes else ""
    return [*lines, f"Note: {note}."] if note else lines


def _title(mixture: Mixture, regime: RegimeLine) -> str:
    rows = round(float(_sizes(mixture)[regime.index]))
    parts = [f"share {regime.share}", count(rows, "row"), f"noise {regime.noise}"]
    if regime.r_squared:
        parts.append(f"R² {regime.r_squared}")
    return f"{regime.name:<{NAME_WIDTH}}{', '.join(parts):>{WIDTH - NAME_WIDTH}}"


def _largest(values: Floats, *, has_intercept: bool) -> list[int]:
    """Choose the terms to print: all in order if they are few, else by t, the intercept first."""
    if len(values) <= MOST_TERMS:
        return list(range(len(values)))
    sizes = np.nan_to_num(np.abs(values[:, 2]), nan=-1.0, posinf=np.inf)
    if has_intercept:
        sizes[0] = np.inf
    return [int(i) for i in np.argsort(-sizes, kind="stable")[:MOST_TERMS]]


def _cells(values: Floats) -> tuple[str, ...]:
    coef, error, t, p, lower, upper = (float(value) for value in values)
    cells = measured(coef, error, lower, upper)
    widths = (*WIDTHS[:2], *WIDTHS[-2:])
    if any(len(cell) >= width for cell, width in zip(cells, widths, strict=True)):
        cells = tuple(number(value) for value in (coef, error, lower, upper))
    # What is next to nothing beside its error is nothing.
    t_value = number(round(t, 4), 3)
    if len(t_value) >= WIDTHS[2]:
        t_value = scientific(t, 3)
    return *cells[:2], t_value, probability(p), *cells[2:]


def _row(name: str, cells: tuple[str, ...]) -> str:
    return f"{name:<{NAME_WIDTH}}" + "".join(
        f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)
    )
