"""Summary: a fitted mixture as tables of coefficients, to print or to compute with."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import MissingExtraError
from regimix.result.answer import WIDTH, Answer, RegimeLine, granted, rows_labelled
from regimix.result.inference import conf_int, errors, estimates, p_values, read_level, t_values
from regimix.words import (
    UNKNOWN,
    bare,
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

Floats = NDArray[np.float64]

INTERCEPT = "intercept"
# Terms of a regime that are printed; of more, those with the largest t values.
MOST_TERMS = 20
LONGEST_TERM, LONGEST_TARGET = 20, 24
# What a table of coefficients holds, and the width of each column.
COLUMNS = ("coef", "std_err", "t", "p_value", "lower", "upper")
NAME_WIDTH = 21
WIDTHS = (11, 10, 9, 7, 11, 11)


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
        mixture, found = self.mixture, Answer(self.mixture)
        lines = _header(mixture)
        table = coefficient_table(mixture, self.level)
        for regime, values in zip(found.regimes, table, strict=True):
            lines += _block(mixture, regime, values, self.level)
        lines.append("=" * WIDTH)
        said = (
            bare(found.rival_ahead),
            bare(found.without_gate),
            found.gating,
            bare(found.coarse),
            bare(found.given_values),
            found.without_slopes,
            found.thin,
            found.favours or found.fewer,
            found.by_weight,
            found.noise_law,
            granted(mixture),
        )
        for words in (*mixture.notes, *said, found.r_squared):
            lines += wrap(words, WIDTH)
        return "\n".join(lines)

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


def summary_frame(mixture: Mixture, level: float) -> Any:
    """Return one row for each component and term; see ``Mixture.summary_frame``."""
    table, (order, names) = coefficient_table(mixture, level), _terms(mixture)
    m = len(table)
    columns: dict[str, Any] = {"component": np.repeat(np.arange(m), len(order)), "term": names * m}
    values = table[:, order].reshape(-1, len(COLUMNS))
    return as_frame(columns | {name: values[:, i].copy() for i, name in enumerate(COLUMNS)})


def as_frame(table: dict[str, Any] | list[dict[str, Any]]) -> Any:
    """Return columns, or records, as a pandas data frame; a polars one where pandas is missing."""
    for library in ("pandas", "polars"):
        try:
            return import_module(library).DataFrame(table)
        except ModuleNotFoundError:
            continue
    raise MissingExtraError(
        "a data frame needs pandas or polars, and neither is installed; install one of them "
        "(pip install pandas), or use what is there as arrays and records: conf_int(), t_values(), "
        "p_values(), records()."
    )


# --- a printed table ------------------------------------------------------------------------------


def _header(mixture: Mixture) -> list[str]:
    """Say what was fitted, in two columns."""
    inference, rows = mixture.inference, mixture.rows
    overall = np.nan if inference is None else inference.r_squared_overall
    evidence = UNKNOWN if mixture.settings.search == "net" else number(mixture.evidence)
    name = Answer(mixture).evidence_name.capitalize()
    left = {
        "Response": short(mixture.target_name, LONGEST_TARGET),
        "Features": str(len(mixture.feature_names)),
        "Rows": fixed(mixture.mass, 0),
        "Rows in doubt": _part(mixture, mixture.doubtful_rows),
        f"{name}, nats": evidence,
        "Seed": short(str(mixture.seed), LONGEST_TARGET),
    }
    right = {
        "Regimes": _regimes(mixture),
        "Outliers, by label": _part(mixture, rows_labelled(mixture, -1)),
        "Outliers, share": percent(mixture.outlier_share),
        "R², each by its regime": probability(overall),
        "R², expected response": probability(np.nan if rows is None else rows.r_squared_expected),
        "R², least squares": probability(np.nan if rows is None else rows.r_squared_least_squares),
    }
    half = WIDTH // 2 - 2
    lines = [
        "    ".join(f"{name}: ".ljust(half - len(value)) + value for name, value in pair)
        for pair in zip(left.items(), right.items(), strict=True)
    ]
    return ["Mixture of linear regimes".center(WIDTH).rstrip(), "=" * WIDTH, *lines]


def _regimes(mixture: Mixture) -> str:
    """Write how many regimes there are; of lines that are none, how many are shown."""
    m = mixture.n_components
    if not mixture.found_nothing:
        return str(m)
    if Answer(mixture).favours:
        return f"{count(m, 'line')}, not supported"
    return f"none, {count(m, 'line')} shown"


def _part(mixture: Mixture, rows: int | None) -> str:
    """Write a number of rows with their share of all rows."""
    return UNKNOWN if rows is None else f"{fixed(rows, 0)} ({percent(rows / mixture.mass)})"


def _block(mixture: Mixture, regime: RegimeLine, values: Floats, level: float) -> list[str]:
    """Print one regime: what is known of it, and its coefficients."""
    order, names = _terms(mixture)
    shown = _largest(values[order], has_intercept=mixture.fit_intercept)
    bounds = f"[{0.5 - level / 2:.4g}", f"{0.5 + level / 2:.4g}]"
    head = print_row("", ("coef", "std err", "t", "P>|t|", *bounds))
    lines = ["=" * WIDTH, _title(mixture, regime), "-" * WIDTH, head, "-" * WIDTH]
    lines += [print_row(names[i], print_cells(values[order[i]])) for i in shown]
    if len(shown) < len(order):
        left = np.delete(values[order][:, 2], shown)
        largest = np.max(np.abs(left), initial=0.0, where=np.isfinite(left))
        most = number(float(largest), 3)
        lines.append(f"... {len(left)} more terms, |t| up to {most}; summary_frame() has all")
    notes = mixture.inference.notes if mixture.inference else ()
    note = notes[regime.index] if notes else ""
    lines += [f"Note: {note}."] if note else []
    return [*lines, regime.doubt] if regime.doubt else lines


def _title(mixture: Mixture, regime: RegimeLine) -> str:
    rows = rows_labelled(mixture, regime.index)
    labelled = [] if rows is None else [f"{count(rows, 'row')} by label"]
    parts = [f"share {regime.share}", *labelled]
    parts.append(f"noise {regime.noise}")
    if regime.r_squared:
        parts.append(f"R² {regime.r_squared}")
    return regime.name + f"  {', '.join(parts)}".rjust(WIDTH - len(regime.name))


def _largest(values: Floats, *, has_intercept: bool) -> list[int]:
    """Choose the terms to print: all in order if they are few, else by t, the intercept first."""
    if len(values) <= MOST_TERMS:
        return list(range(len(values)))
    sizes = np.nan_to_num(np.abs(values[:, 2]), nan=-1.0, posinf=np.inf)
    if has_intercept:
        sizes[0] = np.inf
    return [int(i) for i in np.argsort(-sizes, kind="stable")[:MOST_TERMS]]


def print_cells(values: Floats) -> tuple[str, ...]:
    """Write coefficient, error, t, p and the ends of the interval, each as its column is wide."""
    coef, error, t, p, lower, upper = (float(value) for value in values)
    cells = measured(coef, error, lower, upper)
    widths = (*WIDTHS[:2], *WIDTHS[-2:])
    if any(len(cell) >= width for cell, width in zip(cells, widths, strict=True)):
        cells = tuple(number(value) for value in (coef, error, lower, upper))
    # What is next to nothing beside its error is nothing.
    t_value = number(0.0 if abs(t) <= 5e-5 else t, 3)
    if len(t_value) >= WIDTHS[2]:
        t_value = scientific(t, 3)
    return *cells[:2], t_value, probability(p), *cells[2:]


def print_row(name: str, cells: tuple[str, ...]) -> str:
    """Write a line of the table."""
    return f"{short(name, LONGEST_TERM):<{NAME_WIDTH}}" + "".join(
        f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)
    )
