"""From a mixture and rows to one page that stands alone: its parts, and how to get it again."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import os
import platform
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np

from regimix.atomic import write_bytes
from regimix.data.recipe import Recipe
from regimix.errors import RegimixError, need
from regimix.model.em import REGIME_GAIN
from regimix.report import charts
from regimix.report.charts import Html
from regimix.report.notebook import equations
from regimix.report.rows import LONGEST_KEY, Rows, Terms, label_data, outlier_words, read_rows
from regimix.report.scatter import MOST_BESIDE, Cloud
from regimix.result.answer import (
    HELD,
    Answer,
    closest,
    compared_with,
    constants,
    evidence_by_number,
    found_instead,
    granted,
    label_shares,
    other_criteria,
    ranked,
    rows_labelled,
    student_scale,
)
from regimix.result.gate import ColumnGate
from regimix.result.inference import read_level
from regimix.result.mixture import Mixture
from regimix.result.profile import Profile
from regimix.result.rivals import check_of, check_regimes, distinct, tried
from regimix.search.settings import Settings
from regimix.theory.audit import (
    Finding,
    Verdict,
    audit,
    expected_ratio,
    little_corruption,
    searched_gap,
)
from regimix.words import (
    UNKNOWN,
    aligned,
    clean,
    count,
    fixed,
    interval,
    listing,
    measured,
    named,
    number,
    percent,
    probability,
    several,
)

# Characters of a title, and of an equation.
LONGEST_TITLE, EQUATION = 200, 96
# Attempts of the search that are listed.
MOST_ATTEMPTS = 100
# Single relations that are listed.
MOST_RIVALS = 6
# Keys of no more characters than this stay on one line.
LONG_KEY = 32
# Settings that are parameters of the estimator under the same name. The seed has another name;
# n_jobs changes nothing.
SAME_NAME = ("n_components", "outliers", "noise", "search", "max_starts", "time_limit")
# Parameters of the function for Algorithm 2 only; the shares have another name, too.
OF_THE_NET = ("subspace", "solver", "max_iter", "tol", "granularity", "tolerance")
MOST_NAMES, MOST_CHARACTERS = 12, 400
# Outliers that are listed where no script runs; the script lists all rows that the page holds.
MOST_OUTLIERS = 200
LONGEST_HEADER = 24
# More regimes than this have a short card each, and their noise is folded away.
MANY_REGIMES, SHORT_EQUATION = 4, 80
# What the findings of an audit mean to someone who has not read the paper.
NAMES = {
    "regimes": "There is something to find",
    "separation": "Regimes differ enough",
    "noise": "Noise is small enough",
    "corruption": "Outliers are fewer than the rows of the smallest regime",
    "rows": "Every regime has enough rows",
    "feature tails": "No row dominates by extreme features",
    "same features": "Features spread alike in every regime",
    "subspace gap": "A few directions of the features stand out",
    "subspace": "As many directions as regimes hold every regime",
    "contraction, seen": "Rounds of the fit shrink the error",
    "contraction, proven": "Convergence is proven even in the worst case",
}
# Colour alone would not do.
SIGNS = {"holds": "✓", "unclear": "?", "not proven": "–"}
# Regimes closer than this, in units of their uncertainty, may be one and the same.
DISTINCT, DOUBTFUL = 5.0, 3.0
# More terms than this are folded away.
LONG_TABLE = 40
EVIDENCE = (
    "how much likelier the data are with the regimes than with {}, in nats, after a price for "
    "every coefficient and of 3 nats for every regime"
)
# Digits of the columns of the outliers.
DIGITS = (4, 4, 4, 3) + MOST_BESIDE * (4,)


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
    profile: Profile | None = None,
    sample_weight: Any = None,
) -> str:
    """Write a report as the text of one HTML page, which loads nothing.

    Parameters
    ----------
    mixture : Mixture
    X, y : array or data frame of shape (n, d), array of shape (n,), optional
        The rows to show. Default: those that the mixture remembers of its fit (``excerpt``). X
        alone may be a table that is read in parts (``regimix.scan_parquet``): it is read once, its
        labels are counted, and as many rows as an excerpt has are drawn at random; none else are
        held in memory.
    keys : sequence of length n, optional
        What to call the rows. Default: the index of X, if it is a data frame that has one of its
        own; else their numbers, from 0.
    title : str, optional
        Default: the answer in a line.
    level : float, default=0.95
        Of the intervals.
    shares : array of shape (n, m), optional
        Shares of the regimes in each row, where a gate knows them. Default: what a gate that was
        learnt from the features says; one that was learnt from other columns needs them
        (``mixture.gate.shares(Z)``). For a table that is read in parts a function that returns them
        for rows of X, and for a frame of their columns for the gating, if the table was opened with
        such (``gating=[...]``).
    date : str, optional
        When the report was written. Default: today. The rest depends on the arguments alone.
    command : str, optional
        What to run to get the same again, as a shell takes it. Default: Python, which assumes that
        the columns of the fit are those of a table.
    profile : Profile, optional
        Who is in each regime, as ``mixture.profile(frame)`` found it.
    sample_weight : array of shape (n,), optional
        Weights of X and y, if these are the rows of the fit: checks of what was assumed count them
        by these. Default: those that the mixture remembers, else one each.

    Returns
    -------
    str
    """
    environment = _environment()
    rows = read_rows(mixture, X, y, keys, shares, sample_weight)
    terms = Terms.of(mixture, None if rows is None else rows.X, read_level(level))
    written = dt.datetime.now().astimezone().date().isoformat() if date is None else date
    page: str = environment.get_template("page.html.j2").render(
        _context(mixture, rows, terms, title),
        date=clean(written),
        snippet=snippet(mixture) if command is None else _visible(command),
        profile=profile,
    )
    return page


def write(path: str | os.PathLike[str], mixture: Mixture, *args: Any, **options: Any) -> None:
    """Write a report to a file, whole or not at all; see `render` for the other arguments."""
    write_bytes(path, render(mixture, *args, **options).encode("utf-8"))


def _environment() -> Any:
    need("jinja2", "cli", "a report needs")
    import jinja2

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
        gained=lambda gain: number(gain) if np.isfinite(gain) else UNKNOWN,
        sha=_hash,
        compared=compared,
    )
    return environment


def headline(mixture: Mixture, rows: Rows | None, level: float) -> dict[str, Any]:
    """Put into words what was found, and what it means for the rows that are shown."""
    out = rows_labelled(mixture, -1)
    whole = rows is not None and rows.fitted and rows.n == mixture.n_rows and mixture.counts_once
    if out is None and whole and rows is not None:
        # The mixture has not counted them.
        out = int(np.count_nonzero(rows.labels < 0))
    source = "" if rows is None or rows.fitted else "the fit"
    found = Answer(mixture, source, level, out)
    notices, sure = list(found.notices), found.sure
    if rows is not None and not rows.fitted:
        notices.insert(0, rows.notice(mixture.n_rows))
    if rows is not None and not mixture.found_nothing:
        sure = f"{sure} {rows.doubtful()}".strip()
    share = mixture.outlier_share if out is None else out / mixture.mass
    many = mixture.n_components > MANY_REGIMES
    return {
        "many": many,
        "answer": found,
        "equations": equations(mixture, SHORT_EQUATION if many else EQUATION),
        "which": outlier_words(rows, round(mixture.mass), share, found),
        "sure": sure,
        "notices": notices,
    }


def rivals(mixture: Mixture) -> list[tuple[str, str]]:
    """List the likeliest single relations, each with its lead (``Answer.leads_over``)."""
    found = Answer(mixture)
    base = found.leads_over[1]
    target = named(clean(mixture.target_name))
    features = [named(clean(name)) for name in mixture.feature_names]
    return [
        (f"O{rival.describe(target, features, found.line_noise)[1:]}", number(base + rival.lead))
        # Those of an earlier version may repeat.
        for rival in distinct(mixture.rivals)[:MOST_RIVALS]
    ]


def checks(
    mixture: Mixture, rows: Rows | None, found: Answer
) -> list[tuple[str, tuple[str, str, str]]]:
    """Say of each regime whether it is straight, even in spread and normal, by its own rows.

    Rows in doubt are given to their regimes by lot: the rows of a regime then follow its law, from
    which those sorted to it by their distance differ.
    """
    if rows is None:
        return []
    if mixture.n_components == 1 and mixture.rivals:
        # The rivals of one regime are these relations: one quantity, one value.
        seen = [check_of(mixture.rivals, found.line_noise)]
    else:
        seen = check_regimes(
            np.asarray(rows.X, dtype=np.float64),
            rows.y,
            rows.by_lot,
            rows.weights,
            mixture.n_components,
            fit_intercept=mixture.fit_intercept,
            degrees=mixture.noise_degrees,
        )
    return [
        (line.name, (_gain(one.curve), _gain(one.spread), _gain(one.noise)))
        for line, one in zip(found.regimes, seen, strict=True)
    ]


def _gain(value: float) -> str:
    if np.isnan(value):
        return "too few rows to tell"
    if value <= 0:
        return "yes"
    gain = number(value, 2)
    unit = "nat" if gain == "1" else "nats"
    return f"{'no' if value >= REGIME_GAIN else 'perhaps'}: {gain} {unit}"


def stability(mixture: Mixture, found: Answer) -> dict[str, Any] | None:
    """Say which regimes came back from resampled rows, if that was tried."""
    seen = mixture.resampled
    if seen is None:
        return None
    rows = zip(found.regimes, seen.recurrence, seen.mean_jaccard, strict=True)
    return {
        "words": f"{count(seen.n_resamples, 'resample')} of the rows were searched from the "
        f"beginning. Regimes found: {seen.numbers} of them. A regime comes back if it shares "
        "more than half of its rows with one that is found again; in less than 60% it is doubtful.",
        "rows": [
            (line.name, percent(float(back)), fixed(float(similar), 2))
            for line, back, similar in rows
        ],
    }


def _context(
    mixture: Mixture, rows: Rows | None, terms: Terms, title: str | None
) -> dict[str, Any]:
    words = headline(mixture, rows, terms.level)
    found: Answer = words["answer"]
    cloud = None if rows is None else Cloud.of(rows, terms)
    data = {
        "scatter": None if cloud is None else cloud.data(),
        "labels": None if rows is None else label_data(rows),
    }
    # One feature of one regime needs no picture of effects.
    compares = terms.effects.size > 1
    return words | {
        "title": found.title if title is None else clean(title, LONGEST_TITLE),
        "mixture": mixture,
        "terms": terms,
        "rows": rows,
        "css": _asset("page.css"),
        "js": _asset("page.js"),
        "data": embedded(data),
        "swatch": charts.swatch,
        "cloud": cloud,
        "forest": charts.forest(terms) if compares else "",
        "most_forest": charts.MOST_FOREST,
        "most_numbers": charts.MOST_NUMBERS,
        "coefficients": coefficients(mixture, terms),
        "comparison": comparison(mixture, rows, terms.level),
        "most_columns": LONG_TABLE,
        "outliers": None if rows is None else outlier_list(rows, terms),
        "longest_key": LONG_KEY,
        "residuals": [] if rows is None else charts.panels(rows, terms),
        "checks": checks(mixture, rows, found),
        "rivals": rivals(mixture),
        "tried_relations": tried(mixture.rivals),
        "stability": stability(mixture, found),
        "selection": selection(mixture),
        "most_attempts": MOST_ATTEMPTS,
        "tried": charts.convergence(mixture.attempts),
        "undrawn": any(not np.isfinite(attempt.gain) for attempt in mixture.attempts),
        "granted": granted(mixture),
        "student_scale": student_scale(mixture).replace("'", "’"),
        "held": HELD,
        "findings": assumptions(mixture, rows),
        "signs": SIGNS,
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


# --- tables --------------------------------------------------------------------------------------


def coefficients(mixture: Mixture, terms: Terms) -> dict[str, Any]:
    """List every term of every regime, the largest first, with what is known of its precision."""
    columns, groups = ["Coefficient"], list[dict[str, Any]]()
    if terms.table is not None:
        columns += ["Std. error", f"{terms.percent} interval", "t", "p"]
    shown, last = set(terms.order.tolist()), [mixture.coef.shape[1]] * mixture.fit_intercept
    for j in range(mixture.n_components):
        places = [*last, *(i for i in ranked(mixture, j) if i in shown)]
        groups.append({"index": j, "lines": [_line(mixture, terms, j, i) for i in places]})
    lines = [line for group in groups for line in group["lines"]]
    unsure = any(not line["sure"] for line in lines)
    long = len(lines) > LONG_TABLE
    return {"columns": columns, "groups": groups, "unsure": unsure, "long": long}


def _line(mixture: Mixture, terms: Terms, index: int, place: int) -> dict[str, Any]:
    """Write one term; the intercept comes last in the arrays."""
    constant = place == mixture.coef.shape[1]
    value = float(mixture.intercept[index] if constant else mixture.coef[index, place])
    cells, sure = [number(value)], True
    if terms.table is not None:
        _, error, t, p, low, high = terms.table[index, place].tolist()
        known = interval(low, high, error), number(t, 3), probability(p)
        cells, sure = [*measured(value, error), *known], not low <= 0 <= high
    name = "intercept" if constant else terms.name(place)
    return {"name": name, "constant": constant, "cells": cells, "sure": sure}


def comparison(mixture: Mixture, rows: Rows | None, level: float) -> dict[str, Any] | None:
    """List the differences of coefficients between regimes, those of a pair together."""
    if mixture.n_components < 2 or mixture.inference is None or mixture.found_nothing:
        return None
    # The rows that are shown may be others, or count by weights that are not known here.
    same = rows is not None and rows.fitted and rows.n == mixture.n_rows and mixture.counts_once
    # Those that the mixture remembers have their weights.
    remembered = mixture.excerpt is not None and mixture.excerpt.complete
    shown = (rows.X, rows.y) if same and rows and not remembered else ()
    found = mixture.compare(*shown, level=level)
    groups = list[dict[str, Any]]()
    for i, k in found.order:
        if not groups or groups[-1]["pair"] != found.pairs[i]:
            groups.append({"pair": found.pairs[i], "lines": []})
        sure = not found.lower[i, k] <= 0 <= found.upper[i, k]
        name = {"name": clean(found.terms[k]), "constant": False}
        groups[-1]["lines"].append(name | {"cells": found.cells(i, k), "sure": sure})
    unsure = any(not line["sure"] for group in groups for line in group["lines"])
    long, left = len(found.order) > LONG_TABLE // 2, found.t.size - len(found.order)
    return {"found": found, "groups": groups, "unsure": unsure, "left": left, "long": long}


def outlier_list(rows: Rows, terms: Terms) -> dict[str, Any]:
    """List the first outliers, the farthest first; the first cell is the key."""
    places = rows.outliers[:MOST_OUTLIERS]
    beside = [int(i) for i in terms.order[:MOST_BESIDE]]
    far = rows.far
    numbers = [rows.y, far.predicted, far.residual, np.abs(far.distance)]
    numbers += [np.asarray(rows.X[:, i], dtype=np.float64) for i in beside]
    pairs = zip(numbers, DIGITS, strict=False)
    written = [aligned(column[places].tolist(), digits) for column, digits in pairs]
    written.insert(0, [clean(rows.keys[i], LONGEST_KEY) for i in places])
    written.insert(2, [f"outlier, near {near}" for near in rows.far.nearest[places]])
    written.insert(6, [probability(p) for p in rows.outlying[places].tolist()])
    columns = ["Row", clean(terms.target, LONGEST_HEADER), "Regime", "Predicted", "Residual"]
    columns += ["Residual / noise", "P(outlier)"]
    columns += [clean(terms.name(i), LONGEST_HEADER) for i in beside]
    return {"columns": columns, "rows": list(zip(*written, strict=True))}


def selection(mixture: Mixture) -> dict[str, Any]:
    """Compare numbers of regimes, if the search did, or say why not."""
    asked, path = mixture.settings.n_components, mixture.selection
    if path is None or len(path.n_components) == 0:
        words = "What other numbers of regimes would be worth was not recorded with this model."
        if asked is not None:
            words = f"{_asked_for(asked)}; no others were compared."
        return {"charts": [], "words": words}
    means = EVIDENCE.format(constants(mixture))
    if mixture.given_values:
        means += f"; that of one regime is over {compared_with(mixture)}"
    counts, here = [int(k) for k in path.n_components], int(path.chosen)
    mark = "chosen" if asked is None else "asked for" if asked == here else "found"
    if asked is None and mixture.found_nothing:
        mark = "another is shown" if Answer(mixture).not_scored else "shown"
    scores = {"Evidence": path.evidence, "BIC": path.bic, "ICL": path.icl}
    drawn = {name: charts.path(counts, values) for name, values in scores.items()}
    words = (
        f"The model with {several(here, 'regime')} was chosen, by evidence: {means}. "
        f"{other_criteria(mixture)}"
    ).strip()
    if asked is None and mixture.found_nothing:
        other = Answer(mixture).not_scored.strip(",")
        line = f"The line that is shown is another{other.replace(' which', ', which')}."
        if not other:
            line = "The line that is shown need not be the one that was scored."
        words = (
            f"None was chosen: none has evidence of 3 nats. {line} Evidence is {means}. "
            f"{other_criteria(mixture)}"
        ).strip()
    return {
        "charts": {name: points for name, points in drawn.items() if len(points) > 1},
        "words": words if asked is None else _favoured(mixture, asked, here, means),
        "mark": mark,
        "here": here,
        "rows": np.column_stack([counts, *scores.values()]).tolist(),
    }


def _favoured(mixture: Mixture, asked: int, found: int, means: str) -> str:
    """Say that the number was given, and what the evidence says of it."""
    instead, known = found_instead(found, mixture.stopped), evidence_by_number(mixture)
    said = f"{_asked_for(asked)}; {instead}."
    if asked == found:
        instead = "the number was given, not chosen by evidence"
        said = f"{_asked_for(asked)}: {instead}."
    if len(known) < 2:
        return f"{said} No other numbers were compared."
    if max(known.values()) < REGIME_GAIN:
        said = (
            f"{_asked_for(asked)}; none of the numbers that were compared has evidence of 3 nats."
        )
    else:
        said += f" The evidence favours {several(asked, 'regime')}, too."
    if favours := Answer(mixture).favours:
        said = f"{favours} {instead[0].upper()}{instead[1:]}."
    return (
        f"{said} Numbers that were looked at on the way are {listing([str(k) for k in known])}. "
        f"Evidence is {means}. {other_criteria(mixture)}"
    ).strip()


def _asked_for(number: int) -> str:
    verb = "was" if number == 1 else "were"
    return f"{several(number, 'regime').capitalize()} {verb} asked for"


# --- assumptions ----------------------------------------------------------------------------------


def assumptions(mixture: Mixture, rows: Rows | None) -> list[Finding]:
    """Audit the mixture on the rows, in the words of the page; without rows, the mixture alone."""
    found = None
    if rows is not None:
        # Too few rows for the question: the mixture itself can still be asked.
        with suppress(RegimixError):
            # The audit itself takes an excerpt for the rows that it stands for.
            if rows.of > rows.n and rows.counts is None:
                found = audit(mixture).findings
            else:
                # A gate has decided which regime each row belongs to.
                labels = rows.labels if mixture.gate is not None else None
                X, y, weights = rows.X, rows.y, rows.weights
                found = audit(mixture, X, y, labels=labels, sample_weight=weights).findings
    if found is None:
        # By labels, as the audit counts them; by shares, where they were not counted.
        shares = label_shares(mixture) or (*mixture.weights.tolist(), mixture.outlier_share)
        ratio = shares[-1] / max(min(shares[:-1]), 1e-300)
        allowed, expected = Answer(mixture).allows_outliers, expected_ratio(mixture)
        few = little_corruption(ratio, allowed=allowed, expected=expected)
        gap = [] if mixture.spectrum is None else [searched_gap(mixture.spectrum)]
        found = (few, *_distinct(mixture), *gap)
    return [replace(finding, name=NAMES.get(finding.name, finding.name)) for finding in found]


def compared(finding: Finding) -> str:
    """Say what was measured and what would do; nothing where there is no such number."""
    if not np.isfinite([finding.value, finding.threshold]).all():
        return ""
    if finding.value == finding.threshold == 0:
        return ""  # nothing was measured
    sign = 1 if finding.at_least else -1
    if finding.verdict != "holds" and sign * (finding.value - finding.threshold) > 0:
        return ""  # the number would do; the words say what else is in the way
    bound = "at least" if finding.at_least else "at most"
    limit = f"{bound} {number(finding.threshold, 3)}"
    return f"Measured {number(finding.value, 3)}; {limit} would do."


def _distinct(mixture: Mixture) -> list[Finding]:
    """Judge the distance of the two closest regimes, which needs no rows."""
    pair = closest(mixture)
    if pair is None:
        return []
    least = pair[2]
    words = (
        f"The two closest differ by {number(least, 2)} times the uncertainty of their coefficients."
    )
    verdict: Verdict = "unclear" if least > DOUBTFUL else "not proven"
    verdict = "holds" if least > DISTINCT else verdict
    return [Finding("Regimes are distinct", verdict, least, DISTINCT, words, at_least=True)]


# --- how to get it again --------------------------------------------------------------------------


def snippet(mixture: Mixture, recipe: Recipe | None = None) -> str:
    """Write the Python that fits the same model to the same rows.

    ``recipe`` says which columns of a table became X, y and the weights. Default: that of the
    mixture, if it has one. What the mixture does not know is asked for in a comment.
    """
    given, usual = mixture.settings, Settings()
    options = [
        f"{name}={getattr(given, name)!r}"
        for name in (*SAME_NAME, *OF_THE_NET)
        if getattr(given, name) != getattr(usual, name)
    ]
    if given.taus is not None:
        options.append(f"shares={list(given.taus)!r}")
    by_function = any(option.partition("=")[0] not in SAME_NAME for option in options)
    gate = None if by_function else mixture.gate
    if gate is not None:
        options.append(f"gating={gate.kind!r}" if isinstance(gate, ColumnGate) else "gating=gating")
    if by_function == mixture.fit_intercept:  # the function and the estimator have other defaults
        options.append(f"fit_intercept={mixture.fit_intercept}")
    options.append(f"random_state={mixture.seed}")
    lines, rows = _rows_of_fit(mixture, mixture.encoding if recipe is None else recipe, gate)
    name = "global_ilts" if by_function else "MixedLinearRegression"
    needs = ["import numpy as np"] if any(" np." in line for line in lines) else []
    lines = [*needs, f"from regimix import {name}", "", *lines]
    if by_function:
        return "\n".join([*lines, f"print(global_ilts({_arguments([*rows, *options])}))"])
    fit = f"fit = MixedLinearRegression({_arguments(options)}).fit({_arguments(rows)})"
    return "\n".join([*lines, fit, "print(fit.mixture_)"])


def _arguments(given: list[str]) -> str:
    """Put arguments side by side, or each on its own line if they are long."""
    inside = ", ".join(given)
    return inside if len(inside) <= 60 else "\n    " + ",\n    ".join(given) + ",\n"


def _rows_of_fit(mixture: Mixture, recipe: Recipe | None, gate: Any) -> tuple[list[str], list[str]]:
    """Write where the rows come from, and how they are passed to a fit."""
    names = list(mixture.feature_names)
    target = f"table[{mixture.target_name!r}]"
    if recipe is not None:
        # Columns as they were, before text became 0 and 1, and the target before its power.
        names = [column.name for column in recipe.columns]
        if recipe.power != 1.0:
            target = f"table[{recipe.target!r}]"
            root = f"{target} ** {recipe.power!r}"
            target = f"np.log({target})" if recipe.power == 0.0 else root
    unnamed = names == [f"x{i}" for i in range(len(names))]
    lines, missing, passed = [f"X, y = {_some(names)}, {target}"], list[str](), ["X", "y"]
    if unnamed or not _some(names):
        lines, missing = [], ["X, y: the features and the response of the rows of the fit"]
    if not mixture.counts_once:
        column = None if recipe is None else recipe.weights
        passed.append(f"sample_weight={'weights' if column is None else f'table[{column!r}]'}")
        missing += ["weights: those of the rows"] if column is None else []
    if gate is not None and not isinstance(gate, ColumnGate):
        missing.append("gating: the classifier of the fit")
    if gate is not None and not gate.from_features:
        # A classifier of one's own does not know what its columns were called.
        numbers = isinstance(gate, ColumnGate)
        columns = [column.name for column in gate.columns] or list(gate.names) if numbers else []
        named = columns != [f"x{i}" for i in range(len(columns))] and _some(columns)
        passed.append(f"gating_features={named or 'gating_features'}")
        missing += [] if named else ["gating_features: the columns that predict the regime"]
    if any("table[" in words for words in (*lines, *passed)):
        missing.insert(0, "table: the rows of the fit, as a data frame")
    return [*(f"# {words}" for words in missing), *lines], passed


def _some(names: list[str]) -> str:
    """Write columns of the table; nothing if they are too many to be named."""
    # repr() spells out what is invisible or could turn the direction of the text, and only that.
    listed = repr(names)
    few = len(names) <= MOST_NAMES and len(listed) <= MOST_CHARACTERS
    return f"table[{listed}]" if few else ""


def _visible(command: str) -> str:
    """Spell out what is invisible in a command, or could turn the direction of its text."""
    hidden = (sign for sign in set(command) if not sign.isprintable() and sign != "\n")
    return command.translate({ord(sign): repr(sign)[1:-1] for sign in hidden})
