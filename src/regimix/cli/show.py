"""What was found, as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table
from rich.text import Text

from regimix.cli.digits import many, measured, number, percent
from regimix.cli.scanned import seen_rows
from regimix.cli.summary import farthest_outliers
from regimix.result.show import rows_labelled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regimix.cli.console import Voice
    from regimix.cli.scanned import Scanned
    from regimix.result.mixture import Mixture
    from regimix.tables import DataSet

    Floats = NDArray[np.float64]

__all__ = ["tell_mixture"]

# The colours of the plots and the report, as the user's terminal has them; one for outliers.
COLOURS = ("bright_blue", "red", "green", "magenta", "yellow", "cyan")
OUTLIER = "bright_black"
# Why the search stopped.
STOPPED = {
    "nothing improves": "The search ended where nothing improves the model.",
    "all found": "The search ended with every regime found.",
    "none accepted": "The search ended with nothing more to accept.",
    "max_starts": "The search ended with its budget of starts.",
    "time_limit": "The search ended at its time limit.",
    "callback": "The search was interrupted.",
    "interrupted": "The search was interrupted.",
}
# Columns before the equation; the last is the first to go where there is no room.
HEADS = ("regime", "share", "noise", "R²")
# Between columns, and the narrowest equation that says something.
GAP, NARROWEST_EQUATION = 2, 24


def tell_mixture(
    mixture: Mixture, data: DataSet | Scanned, most_terms: int, most_outliers: int, voice: Voice
) -> None:
    """Print what was found: the regimes, their coefficients, and the rows that follow none."""
    voice.answer(_headline(mixture, data.source), style="bold")
    voice.answer()
    voice.answer(_regimes(mixture, voice))
    if most_terms:
        for table in _coefficients(mixture, voice, most_terms):
            voice.answer()
            voice.answer(table)
    count = rows_labelled(mixture, -1) or 0
    shown = farthest_outliers(mixture, data, most_outliers) if count and most_outliers else []
    if shown:
        seen = seen_rows(mixture, data)
        among = "" if seen is None else seen.among
        which = "" if len(shown) == count else f", the farthest{among} first"
        voice.answer()
        voice.answer(f"{many(count, 'outlier')}{which}", style="bold")
        voice.answer()
        voice.answer(_outliers(shown, data.key_name, data.target_name, voice))
    voice.answer()
    why = STOPPED.get(mixture.stopped, mixture.stopped)
    seconds = sum(mixture.timings.values())
    voice.answer(f"{why} {seconds:.2g} s, seed {mixture.seed}.", style="dim")
    if favoured := _favoured(mixture):
        voice.answer(favoured)


def _favoured(mixture: Mixture) -> str:
    """Say so if the evidence is for another number of regimes than the one asked for."""
    asked, selection = mixture.settings.n_components, mixture.selection
    if asked is None or selection is None or not selection.evidence.size or mixture.found_nothing:
        return ""
    best = int(selection.n_components[np.argmax(selection.evidence)])
    if best == asked:
        return ""
    return (
        f"{many(asked, 'regime')} {'was' if asked == 1 else 'were'} asked for; the evidence "
        f"favours {best} (--components auto)."
    )


def _headline(mixture: Mixture, source: str) -> str:
    rows = f"{many(mixture.n_rows, 'row')} of {source}"
    if mixture.found_nothing:
        return f"No linear regime in {rows}; the best line through most of them:"
    return f"{many(mixture.n_components, 'linear regime')} in {rows}"


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")


def _name(j: int) -> Text:
    """Write the label of a regime in its colour."""
    return Text(str(j), style=COLOURS[j % len(COLOURS)] if j >= 0 else OUTLIER)


def _regimes(mixture: Mixture, voice: Voice) -> Table:
    """Draw one line a regime: share, noise, R² and the equation, largest terms first."""
    cells = [_regime(mixture, j) for j in range(mixture.n_components)]
    if mixture.outlier_share > 0:
        cells.append(["-1", percent(mixture.outlier_share), "", ""])
    heads = [voice.clean(head) for head in HEADS]
    if not any(row[-1] for row in cells):
        heads, cells = heads[:-1], [row[:-1] for row in cells]
    # The name of the target is written once.
    target = mixture.equation(0, 1).partition(" = ")[0] + " = "
    needed = max(_shortest(mixture, j, target) for j in range(mixture.n_components))
    room = _room(heads, cells, voice)
    if room < needed and len(heads) == len(HEADS):
        # An equation without a slope says less than one without R².
        heads, cells = heads[:-1], [row[:-1] for row in cells]
        room = _room(heads, cells, voice)
    room = max(room, needed, NARROWEST_EQUATION)
    table = _table()
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column(voice.clean(target).rstrip(), overflow="fold")
    for j, (label, *row) in enumerate(cells):
        words = "outliers"
        if label != "-1":
            words = mixture.equation(j, room + len(target)).removeprefix(target)
        table.add_row(_name(int(label)), *row, voice.clean(words))
    return table


def _room(heads: list[str], cells: list[list[str]], voice: Voice) -> int:
    """Return how wide an equation may be beside the other columns."""
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    return voice.out.width - sum(widths) - GAP * len(widths)


def _shortest(mixture: Mixture, j: int, target: str) -> int:
    """Return the width of the shortest equation that shows a slope, if there is one."""
    bare, whole = mixture.equation(j, 1), mixture.equation(j)
    if not mixture.fit_intercept or bare == whole:
        return len(bare) - len(target)
    widths = range(1, len(whole) + 1)
    equations = (mixture.equation(j, width) for width in widths)
    return len(next(words for words in equations if words != bare)) - len(target)


def _regime(mixture: Mixture, j: int) -> list[str]:
    fit = np.nan if mixture.inference is None else float(mixture.inference.r_squared[j])
    return [
        str(j),
        percent(float(mixture.weights[j])),
        number(float(mixture.scale[j])),
        f"{fit:.3f}" if np.isfinite(fit) else "",
    ]


def _coefficients(mixture: Mixture, voice: Voice, most: int) -> list[Table | Text]:
    """Draw coefficients and standard errors, regimes side by side, as many as the width allows."""
    shown, left = _largest_terms(mixture, most)
    titles = [voice.clean(mixture.feature_names[i]) for i in shown]
    if mixture.fit_intercept:
        titles.insert(0, "(intercept)")
    columns = [
        [voice.clean(text) for text in _with_errors(*_terms(mixture, j, shown))]
        for j in range(mixture.n_components)
    ]
    first = min(max(map(len, titles)), voice.out.width // 3)
    each = max(len("regime 0"), *(len(text) for column in columns for text in column))
    fits = max(1, (voice.out.width - first) // (each + GAP))
    drawn: list[Table | Text] = []
    for begin in range(0, len(columns), fits):
        group = range(begin, min(begin + fits, len(columns)))
        table = _table()
        table.add_column("", max_width=first, overflow="fold")
        for j in group:
            head = Text("regime ") + _name(j)
            head.pad_left(max(map(len, columns[j])) - len(head))
            table.add_column(head, no_wrap=True)
        for line, title in enumerate(titles):
            table.add_row(title, *(columns[j][line] for j in group))
        drawn.append(table)
    if left:
        drawn.append(Text(f"{many(left, 'smaller term')} not shown (--terms N).", style="dim"))
    return drawn


def _largest_terms(mixture: Mixture, most: int) -> tuple[list[int], int]:
    """Return the terms that contribute most to any regime, and how many others there are."""
    deviation = 1.0 if mixture.rows is None else mixture.rows.deviation
    sizes = np.abs(mixture.coef * deviation).max(axis=0)
    order = np.argsort(-sizes, kind="stable")
    return [int(i) for i in order[:most]], max(0, order.size - most)


def _terms(mixture: Mixture, j: int, shown: list[int]) -> tuple[Floats, Floats]:
    """Return the intercept and the chosen coefficients of a regime, and their standard errors."""
    inference = mixture.inference
    values, errors = mixture.coef[j, shown], np.full(len(shown), np.nan)
    if inference is not None:
        errors = inference.standard_error[j, shown]
    if mixture.fit_intercept:
        error = np.nan if inference is None else inference.intercept_error[j]
        values, errors = np.r_[mixture.intercept[j], values], np.r_[error, errors]
    return values, errors


def _with_errors(values: Floats, errors: Floats) -> list[str]:
    """Write values with their errors, the signs between them in one line."""
    pairs = [measured(float(v), float(e)) for v, e in zip(values, errors, strict=True)]
    widest, longest = (max(len(pair[side]) for pair in pairs) for side in (0, 1))
    if not longest:
        return [f"{value:>{widest}}" for value, _ in pairs]
    return [
        f"{value:>{widest}} {'±' if error else ' '} {error:<{longest}}" for value, error in pairs
    ]


def _outliers(outliers: list[dict[str, Any]], key: str, target: str, voice: Voice) -> Table:
    """Draw outliers: which row, what it has, what the nearest regime says."""
    table = _table()
    table.add_column(voice.clean(key), overflow="fold", max_width=voice.out.width // 3)
    for head in (target, "nearest regime", "says", "off by", "× noise"):
        table.add_column(voice.clean(head), justify="right", overflow="fold")
    for row in outliers:
        off = row["deviations"]
        table.add_row(
            voice.clean(row["key"]),
            number(row["value"]),
            _name(row["nearest"]),
            number(row["predicted"]),
            number(row["residual"]),
            "" if off is None else number(abs(off), 2),
        )
    return table
