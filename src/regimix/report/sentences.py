"""The answer in sentences, for a page: regimes, their equations, the outliers, how sure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regimix.model.em import REGIME_GAIN
from regimix.report.rows import SURE, Rows, Terms
from regimix.result.answer import Answer, answer, rows_labelled
from regimix.result.mixture import Mixture
from regimix.words import (
    clean,
    count,
    fixed,
    interval,
    listing,
    measured,
    named,
    number,
    percent,
    several,
    spelled,
)

__all__ = ["RegimeSentence", "Sentences", "sentences"]

# Features that a sentence can hold, and rows.
MOST_NAMED, MOST_ROWS = 3, 8
# How much likelier the data are, as a logarithm: exp(3) = 20 to one, exp(10) = 22,000 to one.
THIN, FAIR, STRONG = 3.0, 10.0, 50.0


@dataclass(frozen=True)
class RegimeSentence:
    """One regime in words."""

    index: int
    equation: str
    sentence: str


@dataclass(frozen=True)
class Sentences:
    """The top of the page."""

    answer: Answer  # what every display of the mixture shares
    title: str  # the answer in a line
    lead: str  # and in a few
    regimes: list[RegimeSentence]
    outliers: str  # which rows fit no regime
    sure: str  # how sure all this is
    notices: list[str]  # what must be known before anything is believed


def sentences(mixture: Mixture, rows: Rows | None, terms: Terms, width: int = 96) -> Sentences:
    """Put the answer into words, with equations of at most so many characters."""
    found = answer(mixture)
    return Sentences(
        answer=found,
        title=_title(mixture, terms),
        lead=_lead(mixture, rows, terms),
        regimes=[_regime(mixture, terms, j, width) for j in range(mixture.n_components)],
        outliers=_outlying_rows(mixture, rows),
        sure=_sure(mixture, rows),
        notices=[*_other_rows(mixture, rows), *found.notices],
    )


def _title(mixture: Mixture, terms: Terms) -> str:
    target, m = named(terms.target), mixture.n_components
    if mixture.found_nothing:
        return f"No linear relation explains {target}"
    if m == 1:
        return f"One linear relation explains {target}"
    return f"{spelled(m).capitalize()} linear regimes explain {target}"


def _lead(mixture: Mixture, rows: Rows | None, terms: Terms) -> str:
    d, n = mixture.coef.shape[1], count(mixture.n_rows, "row")
    if rows is not None and not rows.fitted:
        n += " of the fit"
    by = named(terms.name(0)) if d == 1 else several(d, "feature")
    if mixture.found_nothing:
        return f"{_nothing(mixture, named(terms.target), by, n)}: a description, not a finding."
    explained, rest = _explained(mixture, rows, n)
    if mixture.n_components == 1:
        return f"One equation in {by} accounts for {explained}. {rest}"
    each = f"{spelled(mixture.n_components).capitalize()} different equations in {by}"
    return f"{each} account for {explained}, each for its own. {rest}"


def _explained(mixture: Mixture, rows: Rows | None, n: str) -> tuple[str, str]:
    """Say how many rows have a regime, and how many have none."""
    out, share = _outliers(mixture, rows)
    if not share:
        return f"all {n}", "No row is an outlier."
    # Rows without labels cannot be counted: what is known are the shares of the model.
    explained, rest = f"an estimated {percent(1 - share)} of the {n}", percent(share)
    if out is not None:
        explained = f"{fixed(mixture.n_rows - out, 0)} of the {n} ({percent(1 - share)})"
        rest = f"{fixed(out, 0)} ({percent(share)})"
    one, alone = out == 1, mixture.n_components == 1
    fits = (
        ("does not fit it" if one else "do not fit it") if alone else f"fit{'s' * one} none of them"
    )
    aside = "is set aside as an outlier" if one else "are set aside as outliers"
    return explained, f"The other {rest} {fits} and {aside}."


def _outliers(mixture: Mixture, rows: Rows | None) -> tuple[int | None, float]:
    """Count outliers among the rows of the fit, if labels are known; return also their share."""
    out = rows_labelled(mixture, -1)
    if rows is not None and rows.fitted and rows.n == mixture.n_rows:
        out = int(np.count_nonzero(rows.labels < 0))
    return out, mixture.outlier_share if out is None else out / mixture.n_rows


def _nothing(mixture: Mixture, target: str, by: str, n: str) -> str:
    """Say that constants do as well, and what is shown all the same."""
    evidence, asked = mixture.evidence, mixture.settings.n_components
    if mixture.settings.search == "net":
        said = f"Algorithm 2 accepted no linear relation of {target} to {by} in the {n}"
    elif evidence < 0:
        said = (
            f"Constants explain {target} in the {n} better than linear relations to {by} do, by "
            f"{number(-evidence)} nats"
        )
    else:
        said = (
            f"Constants explain {target} in the {n} nearly as well as linear relations to {by} do, "
            f"which gain {number(evidence)} nats where {REGIME_GAIN:g} are needed"
        )
    if asked is None or mixture.settings.search == "net":
        return f"{said}. What follows is a robust line through the rows"
    which = "the line" if asked == 1 else f"the best {spelled(asked)} lines"
    return f"{said}. What follows is {which} all the same, as asked for"


def _other_rows(mixture: Mixture, rows: Rows | None) -> list[str]:
    """Say so if the rows shown are not those of the fit."""
    if rows is None or rows.fitted:
        return []
    those = "those" if rows.n == mixture.n_rows else f"the {fixed(mixture.n_rows, 0)}"
    said = (
        f"This page shows {count(rows.n, 'row')}, not {those} that the model was fitted to: "
        "regimes, shares and errors are those of the fit; outliers, pictures and checks of what "
        "was assumed are those of the rows shown."
    )
    return [said]


def _regime(mixture: Mixture, terms: Terms, index: int, width: int) -> RegimeSentence:
    equation = clean(mixture.equation(index, width), 2 * width)
    return RegimeSentence(
        index, equation, f"{_effects(mixture, terms, index)} {_spread(mixture, index)}"
    )


def _effects(mixture: Mixture, terms: Terms, index: int) -> str:
    """Say what moves the response in a regime."""
    order, target = terms.order_in(index), named(terms.target)
    if not order:
        level = number(float(mixture.intercept[index]))
        return f"Whatever the features, {target} is about {level}."
    slopes = [measured(float(mixture.coef[index, i]), terms.error(index, i))[0] for i in order]
    signed = [slope if slope.startswith("-") else f"+{slope}" for slope in slopes]
    if len(order) > 1:
        pairs = zip(order, signed, strict=True)
        moving = [f"{named(terms.name(i))} ({slope})" for i, slope in pairs]
        others = "other feature" if len(order) == MOST_NAMED + 1 else "other features"
        return f"Per unit, {target} moves most with {listing(moving, MOST_NAMED, others)}."
    feature, bounds = order[0], terms.bounds
    name = named(terms.name(feature))
    verb = "falls" if slopes[0].startswith("-") else "rises"
    moves = f"With each unit of {name}, {target} {verb} by {slopes[0].removeprefix('-')}"
    if bounds is None or not np.isfinite(bounds[index, feature]).all():
        return f"{moves}."
    low, high = (float(end) for end in bounds[index, feature])
    known = f"{terms.percent} interval {interval(low, high, terms.error(index, feature))}"
    if low <= 0 <= high:
        return f"It hardly depends on {name}: {signed[0]} a unit ({known})."
    return f"{moves} ({known})."


def _spread(mixture: Mixture, index: int) -> str:
    noise = float(mixture.scale[index])
    if not noise:
        return "Its rows lie exactly on it."
    spread = f"Its rows scatter around it by {number(noise)}, one standard deviation"
    if mixture.inference is None or not np.isfinite(mixture.inference.r_squared[index]):
        return f"{spread}."
    explained = percent(max(0.0, float(mixture.inference.r_squared[index])))
    return f"{spread}; it explains {explained} of their variation."


def _outlying_rows(mixture: Mixture, rows: Rows | None) -> str:
    """Say which rows fit no regime."""
    _, share = _outliers(mixture, rows)
    known = f"{count(round(share * mixture.n_rows), 'row')} ({percent(share)}) fit no regime"
    none = "None: every row lies within reach of a regime."
    if rows is None:
        return f"{known}." if share else none
    outliers = rows.outliers
    if not outliers.size and rows.of > rows.n and share:
        return f"{known}; none of them is in the excerpt of {fixed(rows.n, 0)} that is shown here."
    if not outliers.size and not rows.fitted:
        return f"None of the {count(rows.n, 'row')} shown: each lies within reach of a regime."
    if not outliers.size:
        return none
    part = outliers.size / rows.n
    said = f"{count(int(outliers.size), 'row')} ({percent(part)})"
    if not rows.fitted and rows.n == 1:
        said = "The one row shown"
    elif not rows.fitted:
        said = f"Of the {count(rows.n, 'row')} shown, {fixed(outliers.size, 0)} ({percent(part)})"
    elif rows.of > rows.n:
        said += f" of the {fixed(rows.n, 0)} kept as an excerpt"
    keys = listing([clean(rows.keys[i], 24) for i in outliers], MOST_ROWS)
    worst = float(np.abs(rows.far.distance[outliers[0]]))
    order = f", farthest first (the first by {number(worst, 2)} times the noise)"
    many = f": {keys}{order if np.isfinite(worst) and outliers.size > 1 else ''}"
    return f"{said} {'fits' if outliers.size == 1 else 'fit'} no regime{many}."


def _sure(mixture: Mixture, rows: Rows | None) -> str:
    said = []
    if mixture.found_nothing:
        return "The data do not support any relation; more rows or other columns might."
    if mixture.settings.search != "net":
        said.append(_evidence(mixture))
    closest = _closest(mixture)
    if closest:
        said.append(closest)
    if rows is not None and mixture.n_components > 1:
        said.append(_doubtful(rows))
    return " ".join(said)


def _doubtful(rows: Rows) -> str:
    """Say how many rows could belong elsewhere."""
    doubtful, shown = int(rows.doubtful.size), "" if rows.fitted else " shown"
    if not doubtful:
        return f"Every row{shown} has one regime that is far likelier than the others."
    of = "" if rows.fitted else f" of the {fixed(rows.n, 0)} shown"
    return (
        f"{count(doubtful, 'row')}{of} ({percent(doubtful / rows.n)}) could belong to more than "
        f"one regime, or to none: the likeliest is less than {SURE:.0%} likely."
    )


def _evidence(mixture: Mixture) -> str:
    whole, each = mixture.evidence, mixture.component_evidence
    said = (
        f"The evidence is {_grade(whole)}: {number(whole)} nats over constants for the "
        "model as a whole (10 nats are already 22,000 to one)."
    )
    if each is None or mixture.n_components == 1:
        return said
    least = float(np.min(each))
    lost = f"{number(least)} would be lost" if least > 0 else "nothing would be lost"
    # What is left without a regime is scored as it is: the others do not take over its rows.
    if least > whole:
        lost += ", which is more than the whole, since the others alone are worse than no model"
    return (
        f"{said} For regime {int(np.argmin(each))}, the least certain, it is {_grade(least)}: "
        f"without it, and with the others unchanged, {lost}."
    )


def _grade(evidence: float) -> str:
    grades = ((THIN, "thin"), (FAIR, "fair"), (STRONG, "strong"))
    return next((grade for limit, grade in grades if evidence < limit), "overwhelming")


def _closest(mixture: Mixture) -> str:
    """Name the two regimes that are hardest to tell apart."""
    if mixture.n_components < 2 or mixture.inference is None:
        return ""
    apart = np.array(mixture.separation(), dtype=np.float64)
    np.fill_diagonal(apart, np.inf)
    if not np.isfinite(apart).any():
        return ""
    i, j = sorted(int(k) for k in np.unravel_index(np.nanargmin(apart), apart.shape))
    words = f"{number(float(apart[i, j]), 2)} times what chance explains"
    if mixture.n_components == 2:
        return f"The two equations differ by {words}."
    return f"The most similar equations, of regimes {i} and {j}, differ by {words}."
