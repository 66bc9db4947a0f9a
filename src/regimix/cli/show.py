"""What was found, for a terminal: as tables that people read, and as plain data for ``--json``."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from regimix.cli.console import Code, Voice
from regimix.model.em import REGIME_GAIN
from regimix.model.relation import COUNTS
from regimix.result.answer import (
    Answer,
    distances,
    evidence_beside_rivals,
    likeliest,
    rows_labelled,
)
from regimix.result.inference import errors, estimates
from regimix.result.mixture import Mixture
from regimix.result.profile import Profile
from regimix.result.rivals import advice, advised, constants_gain
from regimix.result.stability import Stability
from regimix.tables import DataSet, ParquetTable
from regimix.words import UNKNOWN, aligned, bare, count, fixed, measured, number, percent

Floats = NDArray[np.float64]

# The colours of the plots and the report, as the user's terminal has them; one for outliers.
COLOURS = ("bright_blue", "red", "green", "magenta", "yellow", "cyan")
OUTLIER = "bright_black"
# Blanks between columns, and the least width of an equation.
GAP, NARROWEST_EQUATION = 2, 24
# Version of what --json prints: raised when a field is removed or changes its meaning.
SCHEMA = 1
# Outliers in --json; the file of --labels has all of them.
MOST_OUTLIERS = 100


@dataclass(eq=False)
class Outcome:
    """What a fit came to: of which table, what can be shown of its rows, and what was written."""

    mixture: Mixture
    table: DataSet | ParquetTable
    labels: Any  # of all rows that were used
    notes: list[str]
    warnings: list[str]
    key_name: str
    n_dropped: int
    # Rows that can be shown one by one (X, y, labels, keys, weights or None): all rows of a table
    # in memory, of a table in parts those that the mixture holds; ``among`` says so where they are
    # only some.
    rows: tuple[Any, Any, Any, Any, Any] | None = None
    among: str = ""
    code: Code = Code.DONE
    files: dict[str, str] = field(default_factory=dict)  # that were written, by what they hold
    failure: Exception | None = None  # why one was not written
    profile: Profile | None = None

    @classmethod
    def of(cls, mixture: Mixture, labels: Any, table: DataSet | ParquetTable) -> Outcome:
        """Look at the table of a fit."""
        rows, among = None, ""
        if isinstance(table, DataSet):
            dropped, key_name, notes = table.n_dropped, table.key_name, table.notes
            rows = table.X, table.y, mixture.labels, table.keys, table.weights
        else:
            dropped = table.n_read - mixture.n_rows
            # The rows that were used are numbered without those that were dropped.
            key_name = "row used" if dropped else "row"
            notes = table.notes_and_dropped(dropped)
            if (some := mixture.excerpt) is not None:
                rows = some.X, some.y, some.labels, some.numbers + 1, some.weights
                among = "" if some.complete else " of a sample"
        gate = list[str]()
        # Of one regime there is nothing to say but what is printed below it.
        if mixture.gate is not None and mixture.n_components > 1:
            largest = float(mixture.weights.max() / mixture.weights.sum())
            gate = [mixture.gate.told(largest), bare(Answer(mixture).without_gate)]
        said = [*notes, *filter(None, gate)]
        return cls(mixture, table, labels, said, [], key_name, dropped, rows, among)


def print_mixture(outcome: Outcome, most_terms: int, most_outliers: int, voice: Voice) -> None:
    """Print what was found: the regimes, their coefficients, and the outliers."""
    mixture, table = outcome.mixture, outcome.table
    found = Answer(mixture, table.source)
    regimes = _regimes(mixture, found, voice)
    parts: list[Any] = [Text(voice.clean(found.headline), style="bold"), regimes]
    if found.rival and mixture.n_components > 1:
        parts.insert(0, Text(voice.clean(bare(found.rival)), style="bold"))
    if most_terms:
        parts += _coefficients(mixture, voice, most_terms)
    outliers = rows_labelled(mixture, -1) or 0
    shown = _farthest_outliers(outcome, most_outliers) if outliers else []
    if shown:
        which = "" if len(shown) == outliers else f", the farthest{outcome.among} first"
        parts.append(Text(f"{count(outliers, 'outlier')}{which}", style="bold"))
        parts.append(_outliers(shown, outcome.key_name, table.target_name, voice))
    if mixture.resampled is not None:
        parts += _stability(mixture.resampled)
    for part in parts:
        voice.answer(part)
        voice.answer()
    if found.rival and mixture.n_components == 1:
        voice.answer(_rival(found, table))
    if voice.clean("R²") in [column.header for column in regimes.columns]:
        voice.answer(found.r_squared, style="dim")
    for said in filter(None, (found.noise_law, found.gating)):
        voice.answer(said)
    voice.answer(found.ended, style="dim")
    voice.answer(found.details, style="dim")
    favours = found.favours and f"{found.favours} Try: --components {likeliest(mixture)}"
    for said in filter(None, (found.by_weight, bare(found.coarse), found.thin, favours)):
        voice.answer(said)


def print_profile(found: Profile, voice: Voice) -> None:
    """Print who is in each regime: the columns, the most telling first, and the sentences last."""
    voice.answer()
    head, *lines = found.describe(voice.out.width).split("\n")
    voice.answer(head, style="bold")
    for line in lines:
        voice.answer(line, whole=True)


def _rival(found: Answer, table: DataSet | ParquetTable) -> str:
    """Say which relation is as likely as one line, and what to do; of several, a warning does."""
    mixture, counts = found.mixture, found.mixture.rivals[0].noise == COUNTS
    if mixture.found_nothing and not _reaches(mixture, table):
        # That fit would find nothing, too.
        return " ".join([bare(found.rival_ahead), *([mixture.rivals[0].advice] * counts)])
    # What to type may then be about another relation.
    todo = [advice(mixture.rivals)] if counts else []
    return " ".join([bare(found.rival_ahead), *todo, refit(mixture, table)]).rstrip()


def _reaches(mixture: Mixture, table: DataSet | ParquetTable) -> bool:
    """Estimate whether a line of the power that is advised would have the evidence of a finding.

    A power that is given costs nothing, but constants may gain from it, too.
    """
    rival, some = advised(mixture.rivals), mixture.excerpt
    if isinstance(table, DataSet) and table.y is not None:
        y, weights = table.y, table.weights
    elif some is not None:
        y, weights = some.y, some.weights
    else:
        return True
    weights = np.ones(y.size) if weights is None else np.asarray(weights, dtype=np.float64)
    gained = constants_gain(y, weights * mixture.mass / weights.sum(), rival.power)
    over = evidence_beside_rivals(mixture) + rival.lead
    return over + REGIME_GAIN - gained >= REGIME_GAIN


def refit(mixture: Mixture, table: DataSet | ParquetTable) -> str:
    """Say what to type where one relation of a power of the target is likelier."""
    if mixture.rival is None:
        return ""
    rival, before = advised(mixture.rivals), table.recipe.power
    # A power of a logarithm is no power of the target.
    if rival.power == 1.0 or rival.noise == COUNTS or before == 0.0:
        return ""
    power = rival.power * before
    return f"Try: regimix fit ... {'--log' if power == 0.0 else f'--power {power:g}'}"


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")


def _name(j: int) -> Text:
    """Write the label of a regime in its colour."""
    return Text(str(j), style=COLOURS[j % len(COLOURS)] if j >= 0 else OUTLIER)


def _regimes(mixture: Mixture, found: Answer, voice: Voice) -> Table:
    """Draw one line a regime: share, noise, R² and the equation, largest terms first."""
    lines = found.lines
    columns = {
        "regime": [str(line.index) for line in lines],
        "share": [line.share for line in lines],
        "noise": [line.noise for line in lines],
        voice.clean("R²"): [voice.clean(line.r_squared) for line in lines],
    }
    if not any(line.r_squared for line in lines):
        columns.popitem()
    # The name of the target is written once.
    target = mixture.equation(0, 1).partition(" = ")[0] + " = "
    needed = max(_shortest(mixture, line.index, target) for line in found.regimes)
    if _width_left(columns, voice) < needed and len(columns) == 4:
        # A slope is worth more than R².
        columns.popitem()
    space = max(_width_left(columns, voice), needed, NARROWEST_EQUATION)
    table = _table()
    for head in columns:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column(voice.clean(target).rstrip(), overflow="fold")
    for line, (_, *cells) in zip(lines, zip(*columns.values(), strict=True), strict=True):
        words = line.sentence
        if line.index >= 0:
            words = mixture.equation(line.index, space + len(target)).removeprefix(target)
        last = Text(voice.clean(words))
        if line.doubt:
            last.append(f"\n{line.doubt}", style="yellow")
        table.add_row(_name(line.index), *cells, last)
    return table


def _stability(found: Stability) -> list[Table | Text]:
    """Draw how often each regime came back from resampled rows."""
    table = _table()
    for head in ("regime", "came back", "mean Jaccard"):
        table.add_column(head, justify="right", no_wrap=True)
    for j, (back, similar) in enumerate(zip(found.recurrence, found.mean_jaccard, strict=True)):
        table.add_row(_name(j), percent(float(back)), fixed(float(similar), 2))
    title = Text(f"Stability: {count(found.n_resamples, 'resample')}", style="bold")
    return [title, table, Text(f"Regimes found: {found.numbers} of the resamples.")]


def _width_left(columns: dict[str, list[str]], voice: Voice) -> int:
    """Return how wide an equation may be beside the other columns."""
    widths = [max(map(len, (head, *cells))) for head, cells in columns.items()]
    return voice.out.width - sum(widths) - GAP * len(widths)


def _shortest(mixture: Mixture, j: int, target: str) -> int:
    """Return the width of the shortest equation that shows a slope, if there is one."""
    bare, whole = mixture.equation(j, 1), mixture.equation(j)
    if not mixture.fit_intercept or bare == whole:
        return len(bare) - len(target)
    widths = range(1, len(whole) + 1)
    equations = (mixture.equation(j, width) for width in widths)
    return len(next(words for words in equations if words != bare)) - len(target)


def _coefficients(mixture: Mixture, voice: Voice, most: int) -> list[Table | Text]:
    """Draw coefficients and standard errors, regimes side by side, as many as the width allows."""
    # Those that contribute most to any regime.
    sizes = np.abs(mixture.coef * (1.0 if mixture.rows is None else mixture.rows.deviation))
    shown = np.argsort(-sizes.max(axis=0), kind="stable")[:most].tolist()
    left = len(mixture.feature_names) - len(shown)
    titles = [voice.clean(mixture.feature_names[i]) for i in shown]
    if mixture.fit_intercept:
        titles.insert(0, "(intercept)")
        shown.insert(0, -1)
    values = estimates(mixture)
    known = np.full_like(values, np.nan) if mixture.inference is None else errors(mixture)
    columns = [
        [voice.clean(text) for text in _with_errors(values[j, shown], known[j, shown])]
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
        drawn.append(Text(f"{count(left, 'smaller term')} not shown (--terms N).", style="dim"))
    return drawn


def _with_errors(values: Floats, known: Floats) -> list[str]:
    """Write values with their standard errors, aligned at the plus-minus sign."""
    pairs = [measured(float(v), float(e)) for v, e in zip(values, known, strict=True)]
    pairs = [(value, error.replace(UNKNOWN, "")) for value, error in pairs]
    widest, longest = (max(len(pair[side]) for pair in pairs) for side in (0, 1))
    if not longest:
        return [f"{value:>{widest}}" for value, _ in pairs]
    return [
        f"{value:>{widest}} {'±' if error else ' '} {error:<{longest}}" for value, error in pairs
    ]


def _outliers(outliers: list[dict[str, Any]], key: str, target: str, voice: Voice) -> Table:
    """Draw outliers: which row, what it has, what the nearest regime predicts."""
    table = _table()
    table.add_column(voice.clean(key), overflow="fold", max_width=voice.out.width // 3)
    for head in (target, "nearest regime", "predicted", "residual", "× noise"):
        table.add_column(voice.clean(head), justify="right", overflow="fold")
    values, predicted, residuals = (
        aligned([row[name] for row in outliers]) for name in ("value", "predicted", "residual")
    )
    for i, row in enumerate(outliers):
        off = abs(row["deviations"])
        table.add_row(
            voice.clean(row["key"]),
            values[i],
            _name(row["nearest"]),
            predicted[i],
            residuals[i],
            number(off, 2) if math.isfinite(off) else "",
        )
    return table


# --- plain data -----------------------------------------------------------------------------------


def summary(outcome: Outcome) -> dict[str, Any]:
    """Put everything that a program may ask of a fit into dictionaries, lists and numbers.

    ``docs/cli.rst`` describes each field. Numbers that are not finite are None.
    """
    import regimix

    mixture, table, profile = outcome.mixture, outcome.table, outcome.profile
    names, noise = (mixture.target_name, mixture.feature_names), Answer(mixture).line_noise
    resampled, gate = mixture.resampled, mixture.gate
    plain: dict[str, Any] = _plain(
        {
            "schema": SCHEMA,
            "regimix": regimix.__version__,
            "source": table.source,
            "target": table.recipe.target,
            "power": table.recipe.power,
            "features": table.recipe.feature_names,
            "rows": {
                "read": table.n_read,
                "dropped": outcome.n_dropped,
                "used": mixture.n_rows,
                "mass": mixture.mass,
                "in_doubt": mixture.doubtful_rows,
            },
            "regimes": [_plain_regime(mixture, j) for j in range(mixture.n_components)],
            "outliers": {
                "share": mixture.outlier_share,
                "rows": rows_labelled(mixture, -1),
                "key": outcome.key_name,
                "farthest": _farthest_outliers(outcome, MOST_OUTLIERS),
            },
            "rivals": [
                {"describe": rival.describe(*names, noise)} | asdict(rival)
                for rival in mixture.rivals
            ],
            "rivals_rows": mixture.rivals_rows,
            "gain_of_shares": mixture.gain_of_shares,
            "stability": resampled and _plain_stability(resampled),
            "profile": profile
            and {
                "sentences": profile.sentences,
                "values": profile.records(),
                "left_out": profile.left_out,
                "notes": profile.notes,
            },
            "gating": gate
            and {
                "kind": gate.kind,
                "columns": gate.names,
                "hit_rate": gate.hit_rate,
                "average": None if gate.average is None else gate.average.tolist(),
            },
            "found": not mixture.found_nothing,
            "evidence": mixture.evidence,
            "evidence_without_slopes": mixture.without_slopes,
            "gain_of_line": mixture.gain_of_line,
            "stopped": mixture.stopped,
            "seconds": sum(mixture.timings.values()),
            "seed": mixture.seed,
            "warnings": outcome.warnings,
            "files": outcome.files,
            "exit_code": int(outcome.code),
            "notes": outcome.notes,
        }
    )
    return plain


def _plain_stability(found: Stability) -> dict[str, Any]:
    each = zip(found.recurrence, found.mean_jaccard, found.doubtful, strict=True)
    return {
        "resamples": found.n_resamples,
        "numbers": found.counts,
        "regimes": [
            {"label": j, "came_back": back, "mean_jaccard": similar, "doubtful": doubtful}
            for j, (back, similar, doubtful) in enumerate(each)
        ],
    }


def _plain_regime(mixture: Mixture, j: int) -> dict[str, Any]:
    inference, d = mixture.inference, len(mixture.feature_names)
    known = np.full(d, np.nan) if inference is None else inference.standard_error[j]
    intercept_error = np.nan if inference is None else inference.intercept_error[j]
    terms = zip(mixture.feature_names, mixture.coef[j], known, strict=True)
    return {
        "label": j,
        "share": mixture.weights[j],
        "rows": rows_labelled(mixture, j),
        "noise": mixture.scale[j],
        "noise_degrees": mixture.noise_degrees,
        "r_squared": None if inference is None else inference.r_squared[j],
        "intercept": {"value": mixture.intercept[j], "std_err": intercept_error},
        "terms": [
            {"feature": name, "value": value, "std_err": error} for name, value, error in terms
        ],
    }


def _farthest_outliers(outcome: Outcome, most: int) -> list[dict[str, Any]]:
    """Describe the outliers that are farthest from every regime, farthest first."""
    if outcome.rows is None:
        return []
    X, y, labels, keys, weights = outcome.rows
    present = True if weights is None else np.asarray(weights) > 0
    outliers = np.flatnonzero((np.asarray(labels) < 0) & present)
    if not outliers.size:
        return []
    found = distances(outcome.mixture, X[outliers], y[outliers], labels[outliers])
    return [
        {
            "key": keys[outliers[i]],
            "value": y[outliers[i]],
            "nearest": int(found.nearest[i]),
            "predicted": found.predicted[i],
            "residual": found.residual[i],
            "deviations": found.distance[i],
        }
        for i in found.farthest(np.arange(outliers.size))[:most]
    ]


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers into Python's, and those that JSON cannot hold into None."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
