"""A mixture in words: equations, and a table that fits a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture

__all__ = ["WIDTH", "describe", "equation", "number", "rows_labelled", "short"]

# Columns of a terminal; longer names are cut in the middle; the shortest term is " + 1 x".
WIDTH, LONGEST_NAME, SHORTEST_TERM = 80, 24, 6


def number(value: float) -> str:
    """Write a number with four digits, and without an exponent where it can be read."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut a long name in the middle."""
    half = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half:]}"


def rows_labelled(mixture: Mixture, label: int) -> int | None:
    """Count the rows of a label, -1 for outliers; None if nobody counted them."""
    if mixture.labels.size:
        return int(np.count_nonzero(mixture.labels == label))
    return None if mixture.label_counts is None else mixture.label_counts[label]


def equation(mixture: Mixture, component: int, width: int | None = None) -> str:
    """Write a component as an equation; see ``Mixture.equation``."""
    coef = mixture.coef[component]
    sizes = np.abs(coef if mixture.rows is None else coef * mixture.rows.deviation)
    order = [int(i) for i in np.argsort(-sizes, kind="stable") if coef[i] != 0]
    terms = [_term(float(coef[i]), short(mixture.feature_names[i])) for i in order]
    if mixture.fit_intercept or not terms:
        terms.insert(0, _term(float(mixture.intercept[component]), ""))
    room = np.inf if width is None else width
    name, shown = short(mixture.target_name), max(1, int(min(len(terms), room // SHORTEST_TERM)))
    while shown > 1 and len(_joined(name, terms, shown)) > room:
        shown -= 1
    return _joined(name, terms, shown)


def describe(mixture: Mixture, width: int) -> str:
    """Say what was found; see ``Mixture.describe``."""
    m = mixture.n_components
    noise = [number(float(scale)) for scale in mixture.scale]
    room = max(5, *map(len, noise))
    lines = [
        f"{m} linear regime{'s' * (m != 1)} in {mixture.n_rows} rows\n",
        f"{'':>2}  {'share':>6}  {'noise':>{room}}  equation",
    ]
    for j in range(m):
        start = f"{j:>2}  {mixture.weights[j]:>6.1%}  {noise[j]:>{room}}  "
        lines.append(start + equation(mixture, j, width - len(start)))
    if mixture.outlier_share > 0:
        lines.append(f"-1  {mixture.outlier_share:>6.1%}  {'':>{room}}  outliers")
    taken = sum(attempt.accepted for attempt in mixture.attempts)
    tried = f" ({len(mixture.attempts)} moves tried, {taken} taken)" if mixture.attempts else ""
    lines += ["", f"Stopped: {mixture.stopped}{tried}."]
    seconds = f"{sum(mixture.timings.values()):.2g} seconds, " if mixture.timings else ""
    score = "" if mixture.settings.search == "net" else f"evidence {mixture.evidence:.1f}, "
    lines.append(f"{score}{seconds}seed {mixture.seed}.".capitalize())
    return "\n".join(lines)


def _term(value: float, name: str) -> str:
    sign = "-" if value < 0 else "+"
    return f"{sign} {number(abs(value))} {name}".rstrip()


def _joined(target: str, terms: list[str], shown: int) -> str:
    head, *rest = terms[:shown]
    head = head.removeprefix("+ ") if head[0] == "+" else "-" + head[2:]
    left = len(terms) - shown
    more = [f"+ {left} more"] if left else []
    return f"{target} = " + " ".join([head, *rest, *more])
