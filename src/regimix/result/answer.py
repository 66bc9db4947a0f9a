"""The answer: what a fit found, in the words and numbers that every display of it shares.

The terminal, ``print``, ``summary()``, the notebook and the report lay out what is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regimix.errors import StopReason
from regimix.words import clean, count, fixed, number, percent, probability, short

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture

__all__ = [
    "WIDTH",
    "Answer",
    "Distances",
    "RegimeLine",
    "answer",
    "describe",
    "distances",
    "equation",
    "rows_labelled",
]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# Columns of a terminal; longer names are cut in the middle; the shortest term is " + 1 x".
WIDTH, LONGEST_NAME, SHORTEST_TERM = 80, 24, 6
# Where rows were not counted, a smaller share of outliers is not shown: it would be "<0.1%".
SMALLEST_SHARE = 0.0005
ENDS: dict[str, str] = {
    StopReason.NOTHING_IMPROVES: "no change improved the model",
    StopReason.ALL_FOUND: "every regime was found",
    StopReason.NONE_ACCEPTED: "no further regime was accepted",
}
EARLY: dict[str, str] = {
    StopReason.MAX_STARTS: "the allowed number of starts was used",
    StopReason.TIME_LIMIT: "the time limit was reached",
    StopReason.CALLBACK: "it was asked to stop",
    StopReason.INTERRUPTED: "it was interrupted",
}


@dataclass(frozen=True)
class RegimeLine:
    """The numbers of a regime, or of the outliers (index -1), as text; empty if not known."""

    index: int
    share: str
    rows: str
    noise: str = ""
    r_squared: str = ""
    evidence: str = ""


@dataclass(frozen=True)
class Answer:
    """What was found."""

    headline: str  # how many regimes in how many rows, without a full stop
    regimes: tuple[RegimeLine, ...]
    outliers: RegimeLine | None  # None if there are none
    ended: str  # why the search ended
    details: str  # evidence, time and seed
    favours: str  # says so if the evidence favours another number of regimes than that asked for
    notices: tuple[str, ...]  # what must be known before anything is believed

    @property
    def lines(self) -> list[RegimeLine]:
        """The regimes and, if there are any, the outliers."""
        return [*self.regimes, *([] if self.outliers is None else [self.outliers])]


def answer(mixture: Mixture, source: str = "") -> Answer:
    """Put into words and numbers what was found, perhaps with the name of the table."""
    return Answer(
        headline=_headline(mixture, f" of {source}" if source else ""),
        regimes=_regimes(mixture),
        outliers=_outliers(mixture),
        ended=_ended(mixture),
        details=_details(mixture),
        favours=_favours(mixture),
        notices=_notices(mixture),
    )


def _headline(mixture: Mixture, source: str) -> str:
    rows = f"{count(mixture.n_rows, 'row')}{source}"
    if mixture.found_nothing:
        return f"No linear regime in {rows}; the best line through most of them:"
    return f"{count(mixture.n_components, 'linear regime')} in {rows}"


def _regimes(mixture: Mixture) -> tuple[RegimeLine, ...]:
    inference, worth = mixture.inference, mixture.component_evidence
    return tuple(
        RegimeLine(
            index=j,
            share=percent(float(mixture.weights[j])),
            rows=_rows(mixture, j),
            noise=number(float(mixture.scale[j])),
            r_squared="" if inference is None else probability(float(inference.r_squared[j])),
            evidence="" if worth is None else number(float(worth[j])),
        )
        for j in range(mixture.n_components)
    )


def _outliers(mixture: Mixture) -> RegimeLine | None:
    rows, share = rows_labelled(mixture, -1), mixture.outlier_share
    # No row is labelled as one, and their share is less than a row.
    if (rows == 0 and share * mixture.n_rows < 1) or (rows is None and share < SMALLEST_SHARE):
        return None
    return RegimeLine(-1, percent(mixture.outlier_share), _rows(mixture, -1))


def _rows(mixture: Mixture, label: int) -> str:
    rows = rows_labelled(mixture, label)
    return "" if rows is None else fixed(rows, 0)


def rows_labelled(mixture: Mixture, label: int) -> int | None:
    """Count the rows of a label, -1 for outliers; None if they were not counted."""
    if mixture.labels.size:
        return int(np.count_nonzero(mixture.labels == label))
    return None if mixture.label_counts is None else mixture.label_counts[label]


def _ended(mixture: Mixture) -> str:
    stopped, attempts = mixture.stopped, mixture.attempts
    why = f"Search finished: {ENDS.get(stopped, clean(stopped))}"
    if stopped in EARLY:
        why = f"Search ended early: {EARLY[stopped]}"
    if not attempts:
        return f"{why}."
    taken = sum(attempt.accepted for attempt in attempts)
    return f"{why} ({count(len(attempts), 'change')} tried, {fixed(taken, 0)} taken)."


def _details(mixture: Mixture) -> str:
    said = [] if mixture.settings.search == "net" else [f"evidence {number(mixture.evidence)} nats"]
    if mixture.timings:
        said.append(f"{sum(mixture.timings.values()):.2g} seconds")
    return f"{', '.join([*said, f'seed {mixture.seed}'])}.".capitalize()


def _favours(mixture: Mixture) -> str:
    asked, selection = mixture.settings.n_components, mixture.selection
    if asked is None or selection is None or not selection.evidence.size or mixture.found_nothing:
        return ""
    best = int(selection.n_components[np.argmax(selection.evidence)])
    if best == asked:
        return ""
    verb = "was" if asked == 1 else "were"
    return f"{count(asked, 'regime')} {verb} asked for; the evidence favours {best}."


def _notices(mixture: Mixture) -> tuple[str, ...]:
    said = []
    if mixture.stopped in EARLY:
        said.append(
            f"The search ended early: {EARLY[mixture.stopped]}. There may be more to find; this is "
            "the best so far."
        )
    asked = mixture.settings.n_components
    if asked is not None and mixture.n_components < asked and not mixture.found_nothing:
        said.append(f"{asked} regimes were asked for; the rows support {mixture.n_components}.")
    columns = mixture.coef.shape[1] + mixture.fit_intercept
    if mixture.ranks and min(mixture.ranks) < columns:
        said.append(
            f"The rows of a regime determine {min(mixture.ranks)} of its {columns} coefficients: "
            "columns depend on each other, or rows are few. Read single coefficients with care."
        )
    if mixture.gate is not None:
        said.append("Shares depend on the features here; those shown are averages over the rows.")
    return tuple(said)


# --- rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Distances:
    """How far rows are from their regimes."""

    nearest: Labels  # the regime of each row, or the nearest one
    predicted: Floats  # by that regime
    residual: Floats
    distance: Floats  # the residual in units of that regime's noise; infinite beside an exact one

    def farthest(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Sort rows by their distance, the farthest first."""
        return rows[np.lexsort((-np.abs(self.residual[rows]), -np.abs(self.distance[rows])))]


def distances(mixture: Mixture, X: Any, y: Floats, labels: Labels) -> Distances:
    """Compare rows with their regimes, outliers (-1) with the regime that is nearest."""
    means = mixture.predict_components(X)
    residuals = y[:, None] - means
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(residuals == 0, 0.0, residuals / mixture.scale)
    # Where all regimes are exact, there is no noise to count in.
    counted = np.where(np.isfinite(scaled).any(axis=1, keepdims=True), scaled, residuals)
    nearest = np.where(labels < 0, np.argmin(np.abs(counted), axis=1), labels).astype(np.int64)
    each = np.arange(y.size)
    return Distances(nearest, means[each, nearest], residuals[each, nearest], scaled[each, nearest])


# --- as text --------------------------------------------------------------------------------------


def describe(mixture: Mixture, width: int) -> str:
    """Say what was found; see ``Mixture.describe``."""
    found = answer(mixture)
    noisy = max(5, *(len(regime.noise) for regime in found.regimes))
    lines = [found.headline, "", f"{'':>2}  {'share':>6}  {'noise':>{noisy}}  equation"]
    for line in found.lines:
        start = f"{line.index:>2}  {line.share:>6}  {line.noise:>{noisy}}  "
        last = "outliers" if line.index < 0 else equation(mixture, line.index, width - len(start))
        lines.append(start + last)
    return "\n".join([*lines, "", found.ended, found.details])


def equation(mixture: Mixture, component: int, width: int | None = None) -> str:
    """Write a component as an equation; see ``Mixture.equation``."""
    coef = mixture.coef[component]
    sizes = np.abs(coef if mixture.rows is None else coef * mixture.rows.deviation)
    order = [int(i) for i in np.argsort(-sizes, kind="stable") if coef[i] != 0]
    terms = [_term(float(coef[i]), short(mixture.feature_names[i], LONGEST_NAME)) for i in order]
    if mixture.fit_intercept or not terms:
        terms.insert(0, _term(float(mixture.intercept[component]), ""))
    room = np.inf if width is None else width
    name = short(mixture.target_name, LONGEST_NAME)
    shown = int(min(len(terms), 1 + room // SHORTEST_TERM))  # the first may be a single digit
    while shown > 1 and len(_joined(name, terms, shown)) > room:
        shown -= 1
    return _joined(name, terms, shown)


def _term(value: float, name: str) -> str:
    sign = "-" if value < 0 else "+"
    return f"{sign} {number(abs(value))} {name}".rstrip()


def _joined(target: str, terms: list[str], shown: int) -> str:
    head, *rest = terms[:shown]
    head = head.removeprefix("+ ") if head[0] == "+" else "-" + head[2:]
    left = len(terms) - shown
    more = [f"+ {left} more"] if left else []
    return f"{target} = " + " ".join([head, *rest, *more])
