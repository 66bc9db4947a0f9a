"""The answer: what a fit found, in the words and numbers that every display of it shares.

The terminal, ``print``, ``summary()``, the notebook and the report lay out what is here. Names in
its sentences are marked by ``words.named``: a page makes them italic, ``words.bare`` plain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from regimix.errors import StopReason
from regimix.model.em import REGIME_GAIN
from regimix.model.labelling import SURE
from regimix.result.gate import one_has_all
from regimix.result.inference import conf_int, errors
from regimix.result.rivals import noise_named
from regimix.result.rowlaw import MOMENT_ROWS
from regimix.search.numbers import SEARCH
from regimix.words import (
    DIGITS,
    UNKNOWN,
    bare,
    choice,
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
    short,
    spelled,
)

if TYPE_CHECKING:
    from regimix.result.mixture import Mixture
    from regimix.result.rivals import Rival

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# Columns of a terminal; longer names are cut in the middle; the shortest term is " + 1 x".
WIDTH, LONGEST_NAME, SHORTEST_TERM = 80, 24, 6
# What rounding a coefficient of an equation may change, in units of noise, and the most digits.
ROUNDED, MOST_DIGITS = 0.1, 8
# A regime that explains less of the variation among its rows only describes them.
EXPLAINS = 0.05
# Features that a sentence names; of more, it counts the others.
MOST_NAMED = 3
# What evidence is called, and below how many nats (the logarithm of the odds): exp(3) is 20 to one,
# exp(10) 22,000 to one, exp(50) 5e21 to one. ``docs/inference.rst`` has the same table.
GRADES = (("thin", 3.0), ("fair", 10.0), ("strong", 50.0), ("overwhelming", np.inf))
# What errors take for granted.
BY_LABEL = (
    "Errors, tests and intervals are conditional on the labels: they take for granted which row "
    "belongs where. bootstrap(X, y) does not."
)
BY_RESPONSIBILITY = (
    "Errors, tests and intervals are conditional on the regimes that were found. Rows of uncertain "
    "label count by their probabilities, and widen them."
)
# How regimes are compared with a curve, beside as they are.
IF_SHARES_DEPENDED = "if their shares depended on the features"
# A feature of no more values than this is shown like a category: axes name its values.
FEW_VALUES = 5
# What lies further outside the middle 98 % of the rows than so many times their range is far away.
REACH = 1.0
# What is done in a picture of one feature about the others (`typical_row`).
HELD = "other features at their medians"
ENDS: dict[str, str] = {
    StopReason.NOTHING_IMPROVES: "no change improved the model",
    StopReason.ALL_FOUND: "every regime was found",
    StopReason.NONE_ACCEPTED: "no further regime was accepted",
    StopReason.MAX_ITER: "the allowed number of rounds was used",
}
EARLY: dict[str, str] = {
    StopReason.MAX_STARTS: "the allowed number of starts was used",
    StopReason.TIME_LIMIT: "the time limit was reached",
    StopReason.CALLBACK: "it was asked to stop",
    StopReason.INTERRUPTED: "it was interrupted",
}


@dataclass(frozen=True)
class RegimeLine:
    """A regime, or the outliers (index -1), in numbers and words; empty if not known."""

    index: int
    share: str
    rows: str
    noise: str = ""
    r_squared: str = ""
    lost: str = ""  # evidence without it, the others left as they are
    sentence: str = ""  # what moves the response, and how its rows scatter
    doubt: str = ""  # that it did not come back from resampled rows, if so

    @property
    def name(self) -> str:
        """Its name, with the word doubtful if it is."""
        return f"Regime {self.index}{' (doubtful)' if self.doubt else ''}"


@dataclass(frozen=True, eq=False)
class Answer:
    """What was found.

    Rows are called those of the source, if one is named; the level is that of intervals; outliers
    may be counted by the caller, where the mixture did not count them.
    """

    mixture: Mixture = field(repr=False)
    source: str = ""
    level: float = 0.95
    counted: int | None = None

    @property
    def _rows(self) -> str:
        # Repetitions are rows, and absent rows are not: a file may have fewer or more.
        rows = count(round(self.mixture.mass), "row")
        of = "by the weights of" if self._repeated else "of"
        return f"{rows} {of} {self.source}" if self.source else rows

    @property
    def _repeated(self) -> bool:
        mixture = self.mixture
        return mixture.weighting != "importances" and round(mixture.mass) != mixture.n_rows

    @property
    def _target(self) -> str:
        return named(clean(self.mixture.target_name))

    @property
    def constant(self) -> str:
        """That all responses are equal, if they are and nothing was found; no full stop."""
        mixture, rows = self.mixture, self.mixture.rows
        if rows is None or rows.values != 1 or not mixture.found_nothing:
            return ""
        who = "All responses are equal"
        if mixture.n_rows > MOMENT_ROWS:
            who = f"All responses of a sample of {fixed(MOMENT_ROWS, 0)} rows are equal"
        return f"{who}: {self._target} is constant at {number(rows.middle)}"

    @property
    def title(self) -> str:
        """How many regimes in how many rows, or that one relation is better; no full stop."""
        if self.constant:
            return bare(self.constant)
        better = self.rival and self.mixture.n_components > 1
        return bare(self.rival).removesuffix(".") if better else self._number

    @property
    def _number(self) -> str:
        found = count(self.mixture.n_components, "linear regime")
        asked = self.mixture.settings.n_components or 0
        if self.mixture.found_nothing and (self.favours or asked > 1):
            # Another number has evidence, or may have: it is not that there is no regime.
            return f"{self._rows} do not support {count(asked, 'linear regime')}"
        if self.thin:
            found += ", on thin evidence,"
        return f"{'No linear regime' if self.mixture.found_nothing else found} in {self._rows}"

    @property
    def thin(self) -> str:
        """That regimes of a given number have less evidence than a finding takes, if they do."""
        mixture = self.mixture
        scored = mixture.settings.search != "net"
        known = mixture.evidence_of_features
        if mixture.found_nothing or not (scored and known < REGIME_GAIN):
            return ""
        slopes = " at the same levels" if slopes_matter_less(mixture) else ""
        return (
            f"The number of regimes was given; the evidence is thin, {number(known)} "
            f"nats over {constants(mixture)}{slopes}, where a finding takes {REGIME_GAIN:g}."
        )

    @property
    def headline(self) -> str:
        """How many regimes and how many rows in doubt, above a table of them."""
        mixture = self.mixture
        if mixture.found_nothing:
            m = mixture.n_components
            lines = "line" if m == 1 else f"{spelled(m)} lines"
            if self.constant:
                return f"{bare(self.constant)}. The best {lines} all the same:"
            return f"{self._number}; the best {lines} all the same:"
        if mixture.doubtful_rows is None:
            return self._number
        share = mixture.doubtful_rows / mixture.mass
        return f"{self._number}, {percent(share) if share else 'none'} of them in doubt"

    @property
    def rival(self) -> str:
        """The sentence that one relation explains the rows as well as the regimes, if one does."""
        rival, m = self.mixture.rival, self.mixture.n_components
        if rival is None:
            return ""
        features = [named(clean(name)) for name in self.mixture.feature_names]
        said = rival.describe(self._target, features, self.line_noise)
        several_lines = f"{spelled(m)} straight lines"
        lines = "one straight line does" if m == 1 else f"{several_lines} do"
        if self.mixture.found_nothing:
            line = "a straight line" if m == 1 else several_lines
            lines = f"{line} or {constants(self.mixture)} do"
        clearly = min(self._ahead[0], rival.lead - self.mixture.gain_of_shares) >= REGIME_GAIN
        how = "better than" if clearly else "as well as"
        comma = "," if ", with" in said else ""
        if self.mixture.found_nothing:
            if not clearly and lead_over_constants(self.mixture) >= REGIME_GAIN:
                how = f"better than {constants(self.mixture)} do, and as well as"
                lines = f"{line} {'does' if m == 1 else 'do'}"
        elif not clearly and rival.lead >= REGIME_GAIN:
            # Only with such shares are the regimes as likely.
            lines += " whose shares depend on the features"
        return f"O{said[1:]}{comma} explains these rows {how} {lines}."

    @property
    def line_noise(self) -> str:
        """The noise law of the straight line that single relations are compared with."""
        alone = self.mixture.n_components == 1
        return noise_named(self.mixture.noise_degrees if alone else np.inf)

    @property
    def rival_ahead(self) -> str:
        """The same with the figure behind it: by how much it is likelier."""
        if self.mixture.rival is None:
            return ""
        return f"{self.rival.removesuffix('.')}: it is {self._likelier()}."

    @property
    def _ahead(self) -> tuple[float, str]:
        """By how many nats a rival is likelier, and than what.

        Where nothing was found, constants may be better than the lines: one figure is enough, that
        over the better of both.
        """
        mixture = self.mixture
        lead, over = mixture.rivals[0].lead, lead_over_constants(mixture)
        if mixture.found_nothing and over < lead:
            return over, constants(mixture)
        return lead, self._shown

    @property
    def _shown(self) -> str:
        if self.mixture.n_components == 1:
            return "the line"
        return "the lines" if self.mixture.found_nothing else "the regimes"

    def _likelier(self, where: str = "") -> str:
        """Say by how much a rival is likelier than the regimes (below): they are as they are shown.

        Its lead can be added to their evidence, unless it is that on some of the rows.
        """
        lead, what = self._ahead
        over = what == constants(self.mixture)
        below = "" if over else where
        said = f"{number(lead)} nats likelier{self.on_some_rows} than {what}{below}"
        if over or not lead - self.mixture.gain_of_shares < REGIME_GAIN <= lead:
            return said
        return f"{said}, whose shares do not depend on the features"

    @property
    def on_some_rows(self) -> str:
        """On how many rows rivals were compared, if not on all that the evidence is of."""
        rows = self.mixture.rivals_rows
        return "" if rows is None else f" on {fixed(rows, 0)} of the rows"

    @property
    def single(self) -> str:
        """Whether one relation explains the rows as well as the regimes; if not, why not."""
        mixture = self.mixture
        if self.rival or not mixture.rivals:
            return self.rival
        lead, gain = mixture.rivals[0].lead, mixture.gain_of_shares
        if lead < 0:
            which = "other" if mixture.n_components == 1 else "single"
            return f"No {which} relation that was tried explains the rows as well."
        if self.without_gate:
            return self.without_gate
        if simpler := likelier_still(mixture):
            return (
                f"A single relation is likelier than {self._shown}, but {simpler} likelier still."
            )
        return (
            f"A single relation is {number(lead)} nats likelier{self.on_some_rows} than "
            f"{self._shown}, but these would gain {number(gain)} {IF_SHARES_DEPENDED} (gating)."
        )

    @property
    def gating(self) -> str:
        """What follows the shares of each row, with a gate, and what is of the fit before it."""
        gate = self.mixture.gate
        if gate is None:
            return ""
        if self.mixture.n_components == 1:
            return one_has_all(self.noun)
        columns = "the features" if gate.from_features else "the gating columns"
        own = f"each row has its own{gate.averages and f', {gate.averages}'}"
        return (
            f"Shares depend on {columns} here: {own}. Labels, rows in doubt and the expected "
            "response follow them. Equations, noise, errors, evidence, R² of the regimes and the "
            "shares shown are those of the fit before the gating, with one share for all rows."
        )

    @property
    def without_gate(self) -> str:
        """That a single relation is likelier than the regimes without their gating, if one is."""
        mixture, gain = self.mixture, self.mixture.gain_of_shares
        # Of one regime the gating changes nothing.
        alone = mixture.n_components == 1
        if mixture.gate is None or alone or not mixture.rivals or likelier_still(mixture):
            return ""
        lead = mixture.rivals[0].lead
        if lead < 0:
            return ""
        said = (
            f"Before the gating, a single relation is {number(lead)} nats likelier"
            f"{self.on_some_rows} than {self._shown}; it was not compared with the gating."
        )
        if gain <= 0:
            return said
        names = [named(clean(name)) for name in mixture.feature_names]
        by = listing(names) if len(names) <= MOST_NAMED else "the features"
        even = ", so it is likelier even then" if lead - gain >= REGIME_GAIN else ""
        return f"{said} Shares that depend on {by} would gain {number(gain)} nats{even}."

    @property
    def leads_over(self) -> tuple[str, float]:
        """What a list of single relations counts their leads from, and how far below the lines.

        Where nothing was found that are constants, as for all evidence.
        """
        base = evidence_beside_rivals(self.mixture)
        if self.mixture.found_nothing and np.isfinite(base):
            return constants(self.mixture), base
        return self._shown, 0.0

    # --- how much of the rows is explained --------------------------------------------------------

    @property
    def allows_outliers(self) -> bool:
        """Whether a row could be an outlier at all."""
        settings = self.mixture.settings
        return settings.outliers != 0 and settings.search != "partition"

    @property
    def no_outlier(self) -> str:
        """Why no row is an outlier, where none is."""
        if not self.allows_outliers:
            return "no row was allowed to be one"
        return f"every row lies within reach of a {self.noun}"

    @property
    def noun(self) -> str:
        """What is shown: a regime, or a line that is none."""
        return "line" if self.mixture.found_nothing else "regime"

    @property
    def lead(self) -> str:
        """Which part of the rows the regimes explain, and which rows are in doubt, in sentences."""
        mixture, (m, d) = self.mixture, self.mixture.coef.shape
        by = named(clean(mixture.feature_names[0])) if d == 1 else several(d, "feature")
        if mixture.found_nothing:
            said = f"{self._nothing(by)}: a description, not a finding."
            return f"{said} {self.given_values}".strip()
        explained, rest = self._explained()
        known = mixture.inference
        some = known is None or float(np.nanmin(known.r_squared, initial=1.0)) >= EXPLAINS
        # To account for the rows is a claim.
        claimed = some and not self.thin
        one, verb = ("accounts for", "account for") if claimed else ("describes", "describe")
        who = f"One equation in {by} {one} {self._target} in {explained}."
        if m > 1:
            each = f"{spelled(m).capitalize()} different equations in {by}"
            who = f"{each} {verb} {self._target} in {explained}, each in its own."
        return f"{who} {rest} {self._in_doubt()}".strip()

    def _explained(self) -> tuple[str, str]:
        """Say how many rows have a regime, and how many have none."""
        mixture, rows = self.mixture, self._rows
        outliers = rows_labelled(mixture, -1) if self.counted is None else self.counted
        share = mixture.outlier_share if outliers is None else outliers / mixture.mass
        if not share:
            is_one = "is an outlier" if self.allows_outliers else "was allowed to be an outlier"
            return f"all {rows}", f"No row {is_one}."
        # Rows without labels cannot be counted: what is known are the shares.
        explained, rest = f"an estimated {percent(1 - share)} of the {rows}", percent(share)
        labelled = "are taken for outliers"
        if outliers is not None:
            explained = f"{fixed(mixture.mass - outliers, 0)} of the {rows} ({percent(1 - share)})"
            rest = f"{'one' if outliers == 1 else fixed(outliers, 0)} ({percent(share)})"
            labelled = "is labelled an outlier" if outliers == 1 else "are labelled outliers"
        return explained, f"The other {rest} {labelled}."

    def _in_doubt(self) -> str:
        """Say how many rows of the fit could belong elsewhere."""
        rows = self.mixture.doubtful_rows
        if rows is None:
            return ""
        if not rows:
            return "No row is in doubt."
        likeliest = "its likeliest label" if rows == 1 else "the likeliest label of each"
        sure = f"{likeliest} is less than" if self.allows_outliers else "no regime is"
        return (
            f"{count(rows, 'row')} ({percent(rows / self.mixture.mass)}) "
            f"{'is' if rows == 1 else 'are'} in doubt: {sure} {SURE:.0%} likely."
        )

    def _nothing(self, by: str) -> str:
        """Say that constants do as well, and what is shown all the same."""
        mixture, target, rows = self.mixture, self._target, self._rows
        evidence, asked = mixture.evidence_of_features, mixture.settings.n_components
        if self.constant:
            said = f"{self.constant}. There is nothing to explain in the {rows}"
        elif mixture.settings.search == "net":
            said = f"Algorithm 2 accepted no linear relation of {target} to {by} in the {rows}"
        elif mixture.stopped in EARLY:
            said = f"No linear relation of {target} to {by} was found in the {rows} before "
            said += EARLY[mixture.stopped]
        elif evidence < 0:
            # Of a number that was asked for, that one: others may be better.
            which, do = "linear relations", "do"
            if asked is not None:
                which = several(mixture.n_components, "linear relation")
                do = "does" if mixture.n_components == 1 else "do"
            said = (
                f"{constants(mixture).capitalize()} explain {target} in the {rows} better than "
                f"{which} to {by} {do}, by {number(-evidence)} nats"
            )
        else:
            best = likeliest(mixture)
            they = "they" if best is None else several(best, "regime")
            said = (
                f"There is too little evidence for a linear relation of {target} to {by} in the "
                f"{rows}: {they} would gain {number(evidence)} nats over {constants(mixture)}, and "
                f"{REGIME_GAIN:g} are needed"
            )
        if asked is None or mixture.settings.search == "net":
            # It is robust, or least squares where nothing speaks for outliers.
            line = f"the best line that most rows follow{self.not_scored}".removesuffix(",")
            return f"{said}. What follows is {line}"
        m = mixture.n_components
        which = "is the line" if m == 1 else f"are the best {spelled(m)} lines"
        end = ", as asked for" if m == asked else f"; {spelled(asked)} were asked for"
        return f"{said}. What follows {which} all the same{end}"

    @property
    def given_values(self) -> str:
        """That all rows show a relation, given their values, which most rows do not show."""
        mixture = self.mixture
        if not mixture.gain_of_line or mixture.given_values:
            return ""
        return (
            f"All the same {self._target} depends on the features: given its values, whatever "
            f"their law, a line through all rows gains {number(mixture.gain_of_line)} nats. But "
            "without the rows whose features lie far from the bulk it does not."
        )

    @property
    def not_scored(self) -> str:
        """The evidence of the line shown where nothing was found, if another is a nearer miss."""
        mixture = self.mixture
        shown, best = mixture.rivals_evidence, mixture.evidence
        if not mixture.found_nothing or mixture.rivals_rows is not None or not shown < best:
            return ""
        return "" if number(shown) == number(best) else f", which has {number(shown)} nats,"

    # --- each regime ------------------------------------------------------------------------------

    @property
    def lines(self) -> list[RegimeLine]:
        """The regimes and, if there are any, the outliers."""
        return [*self.regimes, *([] if self.outliers is None else [self.outliers])]

    @cached_property
    def regimes(self) -> tuple[RegimeLine, ...]:
        """Each regime in numbers and words."""
        mixture, inference = self.mixture, self.mixture.inference
        # Of a line alone it would be that over outliers alone; over constants, it is the model's.
        alone = mixture.found_nothing or mixture.n_components == 1
        worth = None if alone else mixture.component_evidence
        return tuple(
            RegimeLine(
                index=j,
                share=percent(float(mixture.weights[j])),
                rows=_counted(mixture, j),
                noise=number(float(mixture.scale[j])),
                r_squared="" if inference is None else probability(float(inference.r_squared[j])),
                lost="" if worth is None else number(float(worth[j])),
                sentence=f"{self._effects(j)} {_spread(mixture, j)}",
                doubt=_doubt(mixture, j),
            )
            for j in range(mixture.n_components)
        )

    @property
    def outliers(self) -> RegimeLine | None:
        """The outliers; None if there are none."""
        rows, share = rows_labelled(self.mixture, -1), self.mixture.outlier_share
        # Where no row is one, the share is what to expect of new rows. However small, it is what
        # the shares of the regimes lack of 100 %.
        if not share and not rows:
            return None
        words = "outliers"
        if rows == 0:
            words += " (no row labelled so)"
        elif rows is not None:
            words += f" ({count(rows, 'row')} labelled so, {percent(rows / self.mixture.mass)})"
        return RegimeLine(-1, percent(share), _counted(self.mixture, -1), sentence=words)

    def _effects(self, j: int) -> str:
        """Say what moves the response in a regime."""
        mixture, target, order = self.mixture, self._target, ranked(self.mixture, j)
        names = [named(clean(mixture.feature_names[i])) for i in order[:MOST_NAMED]]
        if not order:
            constant = number(float(mixture.intercept[j]))
            return f"Whatever the features, {target} is about {constant}."
        known = mixture.inference is not None
        error = errors(mixture)[j] if known else np.full(mixture.coef.shape[1], np.nan)
        some = order[:MOST_NAMED]
        slopes = [measured(float(mixture.coef[j, i]), float(error[i]))[0] for i in some]
        # What is rounded to zero has no sign.
        signed = [
            f"+{slope}" if slope.strip("0.") and slope[0] != "-" else slope for slope in slopes
        ]
        ends_of = conf_int(mixture, self.level)[j] if known else np.full((len(error), 2), np.nan)
        unclear = {i for i in order if ends_of[i, 0] <= 0 <= ends_of[i, 1]}
        if len(order) > 1:
            left = len(order) - len(some)
            more = [count(left, "other feature")] if left else []
            each = list(zip(names, signed, strict=True))
            if len(unclear) == len(order):
                moving = [f"{name} ({slope} a unit)" for name, slope in each]
                return f"{target} does not clearly depend on {choice([*moving, *more])}."
            doubts = ["; not clear" if i in unclear else "" for i in some]
            moving = [
                f"{name} ({slope} a unit{doubt})"
                for (name, slope), doubt in zip(each, doubts, strict=True)
            ]
            step = "one unit" if mixture.rows is None else "one standard deviation"
            first, *others = [*moving, *more]
            ranking = f"{first}, then with {listing(others)}"
            return f"By {step} of each, {target} moves most with {ranking}."
        verb = "falls" if slopes[0].startswith("-") else "rises"
        moves = f"With each unit of {names[0]}, {target} {verb} by {slopes[0].removeprefix('-')}"
        low, high = ends_of[order[0]]
        if not np.isfinite([low, high]).all():
            return f"{moves}."
        sizes = (-high, -low) if high < 0 else (low, high)  # of a fall
        ends = f"{100 * self.level:g}% interval {interval(*sizes, float(error[order[0]]))}"
        if unclear:
            # An interval around zero does not show that the slope is small.
            return f"{target} does not clearly depend on {names[0]}: {signed[0]} a unit ({ends})."
        return f"{moves} ({ends})."

    @property
    def noise_law(self) -> str:
        """What the noise is measured by, where it is no standard deviation."""
        scale = student_scale(self.mixture)
        return scale and f"Noise is {scale}, not a standard deviation."

    # --- how sure it is ---------------------------------------------------------------------------

    @property
    def r_squared(self) -> str:
        """Say what R² of a regime is not: how well the response of a new row can be predicted."""
        rows = self.mixture.rows
        each = any(regime.r_squared not in ("", UNKNOWN) for regime in self.regimes)
        # So it differs a little from that of the same rows, counted fully.
        how = "" if self.mixture.fitted_by_label else ", by their probabilities"
        how += ", far ones counting less" if np.isfinite(self.mixture.noise_degrees) else ""
        said = f"R² of a regime is that among the rows sorted to it{how}." if each else ""
        if each and not self.mixture.fit_intercept:
            said = f"Without an intercept, R² counts from zero, not from the mean. {said}"
        if rows is None or not np.isfinite(rows.r_squared_expected):
            return said
        which = "all rows" if self.mixture.mass <= MOMENT_ROWS else f"{MOMENT_ROWS} random rows"
        which += ", outliers included" if self.allows_outliers else ""
        line = ""
        if np.isfinite(rows.r_squared_least_squares):
            line = f", least squares {probability(rows.r_squared_least_squares)}"
        expected = probability(rows.r_squared_expected)
        return f"{said} Over {which}, {self._expected_response} has R² {expected}{line}.".strip()

    @property
    def _expected_response(self) -> str:
        """What R² of all rows is of: what predict returns, unless a power of the target was fitted.

        Then it is of that power, and no R² of predictions in units of the target.
        """
        recipe = self.mixture.encoding
        if recipe is None or recipe.power == 1.0:
            return "the expected response (predict)"
        return f"the expected {bare(self._target)}"

    @property
    def sure(self) -> str:
        """How strong the evidence is, and how different the closest regimes are."""
        mixture, pair = self.mixture, closest(self.mixture)
        if self.constant:
            return "No relation can be found where the response does not vary; check the column."
        if mixture.found_nothing and self.favours:
            # Another number would have been found.
            best = evidence_by_number(mixture)[likeliest(mixture) or 0]
            return f"{self.favours} It has {number(best)} nats over {constants(mixture)}."
        ahead = lead_over_constants(mixture) if mixture.rival is not None else -np.inf
        if mixture.found_nothing and ahead >= REGIME_GAIN:
            return "The data support no straight line, but the one relation named above."
        if mixture.found_nothing and self.given_values:
            return (
                "The evidence supports no straight regime, although all rows together show a "
                "relation: plot the response against the features before you rely on either."
            )
        if mixture.found_nothing and mixture.rival is not None:
            return (
                "The data do not support any straight line, nor the one relation named above, "
                f"which has {number(ahead)} nats over {constants(mixture)}{self.on_some_rows}, "
                f"where {REGIME_GAIN:g} are needed."
            )
        if mixture.found_nothing:
            return "The data do not support any relation; more rows or other columns might."
        said = "" if mixture.settings.search == "net" else self._evidence
        if pair is None:
            return said
        which, hardest = "The two equations", ""
        if mixture.n_components > 2:
            # Beside their errors: others may be nearer, and of more rows.
            which = f"The equations of regimes {pair[0]} and {pair[1]}"
            hardest = ", the fewest of any two"
        errors = f"{number(pair[2], 2)} standard errors apart{hardest}"
        apart = f"{which} are {errors}, all coefficients together"
        chance = np.sqrt(mixture.coef.shape[1] + mixture.fit_intercept)
        return f"{said} {apart}; equal ones would be about {number(chance, 2)}.".strip()

    @property
    def _evidence(self) -> str:
        return _evidence(self.mixture, self.mixture.rival, self.on_some_rows)

    # --- how the search ended, and what to know beside --------------------------------------------

    @property
    def ended(self) -> str:
        """Why the search ended."""
        stopped, attempts = self.mixture.stopped, self.mixture.attempts
        why = f"Search finished: {ENDS.get(stopped, clean(stopped))}"
        if stopped in EARLY:
            why = f"Search ended early: {EARLY[stopped]}"
        if not attempts:
            return f"{why}."
        taken = sum(attempt.accepted for attempt in attempts)
        if taken:
            why = why.replace("no change", "no other change")
        return f"{why} ({count(len(attempts), 'change')} tried, {fixed(taken, 0)} taken)."

    @property
    def details(self) -> str:
        """Evidence, time and seed."""
        mixture, said = self.mixture, list[str]()
        if mixture.settings.search != "net":
            features = ""
            if slopes_matter_less(mixture):
                features = f", {number(mixture.evidence_of_features)} of them due to the features"
            said.append(f"{self.evidence_name} {number(mixture.evidence)} nats{features}")
        if mixture.timings:
            took = number(sum(mixture.timings.values()), 2)
            said.append(f"{took} second{'s' * (took != '1')}")
        return f"{', '.join([*said, f'seed {mixture.seed}'])}.".capitalize()

    @property
    def without_slopes(self) -> str:
        """How much of the evidence is due to the features, if that is not all."""
        mixture = self.mixture
        if not slopes_matter_less(mixture):
            return ""
        known, rest = number(mixture.evidence_of_features), number(mixture.without_slopes)
        return (
            f"Of the evidence, {known} nats are due to the features; the same regimes without "
            f"slopes would have the other {rest}."
        )

    @property
    def evidence_name(self) -> str:
        """What the evidence is called.

        Of a table without a regime, it is that of the best model, which need not be the line that
        is shown; of a number that was asked for, that of the lines shown.
        """
        mixture = self.mixture
        best = mixture.found_nothing and mixture.settings.n_components is None
        return "best evidence" if best else "evidence"

    @property
    def fewer(self) -> str:
        """Says so if fewer regimes were found than were asked for."""
        mixture, asked = self.mixture, self.mixture.settings.n_components
        if asked is None or mixture.n_components >= asked or mixture.found_nothing:
            return ""
        instead = found_instead(mixture.n_components, mixture.stopped)
        return f"{asked} regimes were asked for; {instead}."

    @property
    def unrepeated(self) -> str:
        """Says so if fewer independent searches than were wanted came to these regimes."""
        mixture = self.mixture
        if mixture.came_back or mixture.found_nothing or mixture.stopped in EARLY:
            return ""
        return (
            f"Only {mixture.n_agreed} of {mixture.n_searches} independent searches ended with "
            "these regimes. They are the likeliest that were seen, but others may be likelier "
            "still."
        )

    @property
    def favours(self) -> str:
        """Says so if the evidence favours another number of regimes than that asked for."""
        asked, best = self.mixture.settings.n_components, likeliest(self.mixture)
        known = evidence_by_number(self.mixture)
        # Of one number alone, it would have to say among what.
        if asked is None or best in (None, asked) or len(known) < 2:
            return ""
        if max(known.values()) < REGIME_GAIN:
            return ""
        verb = "was" if asked == 1 else "were"
        return f"{count(asked, 'regime')} {verb} asked for; the evidence favours {best}."

    @property
    def coarse(self) -> str:
        """That the response has few different values, or a regime one, if that shows within it.

        Few: each comes more often than there are values. It shows where the noise is below two of
        their steps, so that rows of the same features take a handful of values, or a regime one.
        """
        mixture, rows, so = self.mixture, self.mixture.rows, ""
        if mixture.given_values:
            so = "the evidence is counted given these values, whatever their law"
        if rows is None or not rows.values**2 <= min(mixture.mass, MOMENT_ROWS):
            who = f"The noise of {self._target} is neither normal nor Student's (skew, heaps)"
            return f"{who}: {so.replace('these', 'its')}." if so else self._single_values
        noise = float(mixture.scale.min())
        if not (so or noise < 2 * rows.step):
            return ""
        which = "the noise"
        if mixture.n_components > 1:
            which, so = "the smallest noise", "a regime may be one of these values, no relation"
        return (
            f"{self._target} takes only {rows.values} different values, at least "
            f"{number(rows.step)} apart, and {which} is {number(noise)}{so and f': {so}'}. A model "
            "for counts or classes may suit better."
        )

    @property
    def _single_values(self) -> str:
        """Which regimes are one value of the response each, whatever the features, if any is.

        They stay within one step of the response: many people report round numbers.
        """
        mixture, rows = self.mixture, self.mixture.rows
        if rows is None or mixture.n_components == 1:
            return ""
        reach = 2 * (np.abs(mixture.coef) @ rows.deviation + mixture.scale)
        which = np.flatnonzero(reach < rows.step)
        if not which.size:
            return ""
        values = mixture.intercept[which] + mixture.coef[which] @ rows.mean
        each = [
            f"regime {j}: {number(rows.step * round(value / rows.step))}"
            for j, value in zip(which.tolist(), values.tolist(), strict=True)
        ]
        some = "A regime is" if which.size == 1 else "Some regimes are"
        return (
            f"{some} one value of {self._target}, whatever the features ({listing(each)}): a round "
            "number that many rows share, rather than a relation."
        )

    @property
    def by_weight(self) -> str:
        """What rows count for, where that is not one each."""
        mixture = self.mixture
        if mixture.weighting == "importances":
            return (
                "Rows count by their weights, which are relative: their mean is one. Numbers of "
                "rows, pictures and lists have each row once."
            )
        if not self._repeated:
            return ""
        return (
            f"Rows count by their weights: {fixed(mixture.mass, 0)} in all, from "
            f"{count(mixture.n_rows, 'row')} of the table. Pictures and lists show each of "
            "those once, if it has any weight."
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """What to know before reading the rest."""
        mixture, rival, said = self.mixture, self.mixture.rival, list[str]()
        if rival is not None and mixture.n_components > 1:
            pieces = "" if mixture.found_nothing else "; they may be nothing but its pieces"
            said.append(f"That relation is {self._likelier(' below')}{pieces}.")
        elif rival is not None:
            said.append(bare(self.rival_ahead))
        said += [self.without_gate] if self.without_gate else []
        if mixture.stopped in EARLY:
            said.append(
                f"The search ended early: {EARLY[mixture.stopped]}. There may be more to find; "
                "this is the best so far."
            )
        said += filter(None, [self.thin, self.fewer, self.unrepeated, self.coarse, self.by_weight])
        columns = mixture.coef.shape[1] + mixture.fit_intercept
        if mixture.ranks and min(mixture.ranks) < columns:
            said.append(
                f"The rows of a regime determine {min(mixture.ranks)} of its {columns} "
                "coefficients: columns depend on each other, or rows are few. Read single "
                "coefficients with care."
            )
        said += [self.gating] if self.gating else []
        return tuple(said)


def law_name(degrees: float) -> str:
    """Name the law of the noise: Student's with so many degrees of freedom, or the normal one."""
    if not np.isfinite(degrees):
        return "the normal law"
    return f"Student's law with {number(degrees)} degrees of freedom"


def student_scale(mixture: Mixture) -> str:
    """Say what the noise is measured by where it is no standard deviation; empty if it is one."""
    known = mixture.noise_degrees
    return f"the scale of {law_name(known)}" if np.isfinite(known) else ""


def _doubt(mixture: Mixture, j: int) -> str:
    """Say that a regime does not come back often enough, if that was tried."""
    found = mixture.resampled
    if found is None or not found.doubtful[j]:
        return ""
    share = percent(float(found.recurrence[j]))
    return f"Doubtful: it came back in {share} of {count(found.n_resamples, 'resample')}."


def _spread(mixture: Mixture, j: int) -> str:
    """Say how the rows of a regime scatter around it."""
    noise = float(mixture.scale[j])
    if not noise:
        return "Its rows lie exactly on it."
    law = student_scale(mixture) or "one standard deviation"
    spread = f"Its rows scatter around it by {number(noise)}, {law}"
    if mixture.inference is None or not np.isfinite(mixture.inference.r_squared[j]):
        return f"{spread}."
    share = float(mixture.inference.r_squared[j])
    explained = percent(share) if share > 0 else "nothing"
    rows = f"{'among' if mixture.fit_intercept else 'around zero of'} the rows sorted to it"
    if np.isfinite(mixture.noise_degrees):
        rows += ", far ones counting less"
    return f"{spread}; of the variation {rows}, it explains {explained}."


def _evidence(mixture: Mixture, rival: Rival | None, on_some: str) -> str:
    """Say how strong the evidence is, and that for the number of regimes; rivals had some rows."""
    whole, known = mixture.evidence, mixture.evidence_of_features
    beside = "10 nats are already 22,000 to one"
    if known < REGIME_GAIN:
        beside = f"a finding takes {REGIME_GAIN:g}, 20 to one"
    said = (
        f"The evidence is {grade(known)}: {number(whole)} nats over {compared_with(mixture)} "
        f"for the model as a whole ({beside})."
    )
    if slopes_matter_less(mixture):
        said = (
            f"The evidence is {grade(known)}: the model as a whole has {number(whole)} nats over "
            f"{constants(mixture)}; {number(mixture.without_slopes)} of them the same regimes "
            f"would have without slopes, as levels or single values of the response, so that "
            f"{number(known)} are due to the features ({beside})."
        )
    if rival is not None:
        said += f" But the one relation named above has {number(rival.lead)} more{on_some}."
    return f"{said} {_evidence_of_number(mixture)}".strip()


def _evidence_of_number(mixture: Mixture) -> str:
    """Say how strong the evidence is for this number of regimes; nothing if it is not known.

    One regime fewer is another model, fitted anew: what the score loses where a regime is left out
    and the others stay as they are (``component_evidence``) is far more, and says less.
    """
    m, known = mixture.n_components, evidence_by_number(mixture)
    if m < 2 or mixture.evidence_of_features < REGIME_GAIN or not {m - 1, m} <= known.keys():
        return ""
    fewer, less = several(m - 1, "regime"), known[m] - known[m - 1]
    who = f"{fewer}, fitted anew,"
    if less < 0:
        return f"{who.capitalize()} {'has' if m == 2 else 'have'} {number(-less)} nats more."
    if known[m - 1] < 0:
        return f"{who.capitalize()} {'is' if m == 2 else 'are'} worse than {constants(mixture)}."
    return (
        f"The evidence for {several(m, 'regime')} rather than {spelled(m - 1)} is {grade(less)}: "
        f"{who} {'has' if m == 2 else 'have'} {number(less)} nats less."
    )


def constants(mixture: Mixture) -> str:
    """Name what a response without any relation is explained by."""
    return "constants" if mixture.fit_intercept else "constants at zero"


def compared_with(mixture: Mixture) -> str:
    """Name what the evidence of the answer is counted from (a plural)."""
    return "other orders of the same values" if mixture.given_values else constants(mixture)


def grade(evidence: float) -> str:
    """Call evidence in nats thin, fair, strong or overwhelming."""
    return next((name for name, limit in GRADES if evidence < limit), GRADES[-1][0])


def slopes_matter_less(mixture: Mixture) -> bool:
    """Say whether some of the evidence that matters is not due to the features."""
    known = mixture.evidence_of_features
    # Below half a nat, scores are alike; not where the rest decides whether there is a relation.
    matters = mixture.without_slopes >= SEARCH.same_score or known < REGIME_GAIN
    return matters and number(known) != number(mixture.evidence)


def granted(mixture: Mixture) -> str:
    """Say what errors, tests and intervals take for granted."""
    if mixture.fitted_by_label:
        return BY_LABEL
    if not mixture.found_nothing:
        return BY_RESPONSIBILITY
    lines = "the line shown" if mixture.n_components == 1 else "the lines shown"
    return BY_RESPONSIBILITY.replace("the regimes that were found", lines)


def closest(mixture: Mixture) -> tuple[int, int, float] | None:
    """Find the two regimes that are hardest to tell apart, and their distance; None if unknown."""
    if mixture.n_components < 2 or mixture.inference is None:
        return None
    apart = np.array(mixture.separation(), dtype=np.float64)
    np.fill_diagonal(apart, np.inf)
    if not np.isfinite(apart).any():
        return None
    i, j = sorted(int(k) for k in np.unravel_index(np.nanargmin(apart), apart.shape))
    return i, j, float(apart[i, j])


def evidence_by_number(mixture: Mixture) -> dict[int, float]:
    """Return the numbers of regimes of which the evidence is known, and that evidence."""
    path = mixture.selection
    if path is None:
        return {}
    pairs = zip(path.n_components.tolist(), path.evidence.tolist(), strict=True)
    return {m: evidence for m, evidence in pairs if np.isfinite(evidence)}


def likeliest(mixture: Mixture) -> int | None:
    """Return the number of regimes of the highest evidence, which need not be that shown."""
    known = evidence_by_number(mixture)
    return max(known, key=lambda m: known[m]) if known else None


def other_criteria(mixture: Mixture) -> str:
    """Say which number of regimes BIC and ICL favour, and what they are; nothing if not known."""
    path = mixture.selection
    if path is None or len(path.n_components) < 2:
        return ""
    best = {
        name: several(int(path.n_components[np.nanargmin(values)]), "regime")
        for name, values in (("BIC", path.bic), ("ICL", path.icl))
        if np.isfinite(values).any()
    }
    why = {
        "BIC": "which leaves out the prior,",
        "ICL": "which counts rows in doubt against a model,",
    }
    if len(set(best.values())) == 1 and len(best) == 2:
        return f"BIC and ICL favour {best['BIC']}."
    said = [f"{name}, {why[name]} favours {number}" for name, number in best.items()]
    return f"{'; '.join(said)}." if said else ""


def lead_over_constants(mixture: Mixture) -> float:
    """Return by how much the likeliest single relation is likelier than constants, in nats."""
    return mixture.rivals[0].lead + evidence_beside_rivals(mixture)


def likelier_still(mixture: Mixture) -> str:
    """Say what simpler model is likelier than the likeliest rival, if one is, with its verb.

    Regimes whose number was asked for may be worse than constants, or than one straight line.
    """
    over, line = lead_over_constants(mixture), evidence_by_number(mixture).get(1, -np.inf)
    if mixture.found_nothing and over < 0:
        return f"{constants(mixture)} are"
    alone = mixture.n_components == 1 or mixture.rivals_rows is not None
    return "" if alone or line <= over else "one straight line is"


def evidence_beside_rivals(mixture: Mixture) -> float:
    """Return the evidence of the regimes that are shown, on the rows that rivals are compared on.

    Where nothing was found, the evidence of the mixture may be that of another number of lines.
    """
    if mixture.rivals_rows is not None or np.isfinite(mixture.rivals_evidence):
        return mixture.rivals_evidence
    return evidence_by_number(mixture).get(mixture.n_components, mixture.evidence)


def found_instead(m: int, stopped: str) -> str:
    """Say how many regimes were found where more were asked for; no full stop."""
    if stopped in EARLY:
        return f"{m} {'was' if m == 1 else 'were'} found before {EARLY[stopped]}"
    return f"the rows support {m}"


# --- rows ---------------------------------------------------------------------------------------


def _counted(mixture: Mixture, label: int) -> str:
    rows = rows_labelled(mixture, label)
    return "" if rows is None else fixed(rows, 0)


def rows_labelled(mixture: Mixture, label: int) -> int | None:
    """Count the rows of a label, -1 for outliers; None if they were not counted.

    Repetitions count, absent rows do not: labels alone do not say so.
    """
    counts = mixture.label_counts
    if counts is not None and len(counts) == mixture.n_components + 1:
        return counts[label]
    if not mixture.labels.size or not mixture.counts_once:
        return None
    return int(np.count_nonzero(mixture.labels == label))


def label_shares(mixture: Mixture) -> tuple[float, ...] | None:
    """Return the share of the rows of each label, outliers last; None if they were not counted."""
    counts = [rows_labelled(mixture, label) for label in (*range(mixture.n_components), -1)]
    known = [rows / mixture.mass for rows in counts if rows is not None]
    return tuple(known) if len(known) == len(counts) else None


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


def belonging(mixture: Mixture, labels: Labels, probabilities: Floats) -> Floats:
    """Return how far each row counts for each regime, (n, m): by its probability, or its label."""
    if mixture.fitted_by_label:
        return np.asarray(labels[:, None] == np.arange(mixture.n_components), dtype=np.float64)
    return probabilities[:, :-1]


def quantiles(distance: Floats, weights: Floats, degrees: float) -> Floats:
    """Return where residuals that follow the law of the noise would lie, counted by weights, (n,).

    By their probabilities of belonging to a regime, rows follow its law whatever crosses it, where
    those that are sorted to it lack what went elsewhere. What has next to no weight, as outliers,
    is held at the ends that so many rows reach.
    """
    order = np.argsort(distance, kind="stable")
    reached = np.cumsum(weights[order]) - weights[order] / 2
    total = float(weights.sum())
    end = 0.25 / max(total, 1.0)
    levels = np.empty(distance.size)
    levels[order] = np.clip(reached / (total or 1.0), end, 1 - end)
    return np.asarray(stdtrit(degrees, levels))


def typical_row(X: NDArray[Any]) -> Floats:
    """Return the features of the row for which pictures of one feature draw the lines, (d,).

    Medians: one absurd value of a feature would move its mean, and with it every line, to where no
    row is; and the median of a 0/1 column is one of its values.
    """
    return np.asarray(np.median(X, axis=0), dtype=np.float64)


def bulk(values: Floats) -> tuple[float, float]:
    """Return a range around most values: what lies further out would flatten a picture."""
    low, high = np.quantile(values, [0.01, 0.99])
    margin = REACH * ((high - low) or 1.0)
    return float(low - margin), float(high + margin)


def few_values(x: Floats) -> Floats:
    """Return the values of a feature that has few of them, as a category does; else none."""
    values = np.unique(x)
    return values if 2 <= values.size <= FEW_VALUES else values[:0]


def lines_over(coef: Floats, intercept: Floats, held: Floats, feature: int) -> Floats:
    """Return intercept and slope of each regime over one feature, the others held, (m, 2)."""
    slope = coef[:, feature]
    return np.column_stack([intercept + coef @ held - slope * held[feature], slope])


# --- as text --------------------------------------------------------------------------------------


def describe(mixture: Mixture, width: int) -> str:
    """Say what was found; see ``Mixture.describe``."""
    found = Answer(mixture)
    noisy = max(5, *(len(regime.noise) for regime in found.regimes))
    rival = wrap(bare(found.rival_ahead), width)
    # What makes all regimes doubtful comes first.
    lines = [*rival, ""] if rival and mixture.n_components > 1 else []
    lines += [
        *wrap(found.headline, width),
        "",
        f"{'':>2}  {'share':>6}  {'noise':>{noisy}}  equation",
    ]
    for line in found.lines:
        start = f"{line.index:>2}  {line.share:>6}  {line.noise:>{noisy}}  "
        space = width - len(start)
        words = equation(mixture, line.index, space) if line.index >= 0 else line.sentence
        lines.append(start + (words if line.index >= 0 or len(words) <= space else "outliers"))
        lines += ["    " + line.doubt] if line.doubt else []
    lines += ["", *wrap(found.noise_law, width)] if found.noise_law else []
    if rival and mixture.n_components == 1:
        lines += ["", *rival]
    told = found.coarse, found.given_values, found.without_gate, found.gating, found.unrepeated
    for said in filter(None, told):
        lines += ["", *wrap(bare(said), width)]
    return "\n".join(
        [
            *lines,
            "",
            found.ended,
            found.details,
            *wrap(found.thin, width),
            *wrap(found.favours or found.fewer, width),
            *wrap(found.by_weight, width),
        ]
    )


def ranked(mixture: Mixture, component: int) -> list[int]:
    """List the features that a regime uses by their effect: coefficient times deviation."""
    coef = mixture.coef[component]
    sizes = np.abs(coef if mixture.rows is None else coef * mixture.rows.deviation)
    return [int(i) for i in np.argsort(-sizes, kind="stable") if coef[i] != 0]


def equation(mixture: Mixture, component: int, width: int | None = None) -> str:
    """Write a component as an equation; see ``Mixture.equation``."""
    order, names = ranked(mixture, component), mixture.feature_names
    *coef, intercept = _written(mixture, component)
    terms = [_term(coef[i], short(names[i], LONGEST_NAME)) for i in order]
    if mixture.fit_intercept or not terms:
        terms.insert(0, _term(intercept, ""))
    space = np.inf if width is None else max(width, 0)  # the shares may take all of the width
    name = short(mixture.target_name, LONGEST_NAME)
    shown = int(min(len(terms), 1 + space // SHORTEST_TERM))  # the first may be a single digit
    while shown > 1 and len(_joined(name, terms, shown)) > space:
        shown -= 1
    return _joined(name, terms, shown)


def _written(mixture: Mixture, component: int) -> list[str]:
    """Write the coefficients of a component, the intercept last, as exactly as fits its noise.

    What rounding a coefficient moves a fitted value by is less than ``ROUNDED`` of the noise: of
    years, four digits may move it by more than the noise.
    """
    values = np.append(mixture.coef[component], mixture.intercept[component])
    digits = np.full(values.size, DIGITS)
    noise = float(mixture.scale[component])
    if mixture.rows is not None and noise > 0:
        large = np.append(np.abs(mixture.rows.mean) + 2 * mixture.rows.deviation, 1.0)
        with np.errstate(divide="ignore"):
            # Rounding moves a value by half a unit of its last decimal.
            decimals = np.ceil(np.log10(large / (2 * ROUNDED * noise)))
            digits = np.floor(np.log10(np.abs(values))) + 1 + decimals
    each = np.clip(np.nan_to_num(digits), DIGITS, MOST_DIGITS).astype(int)
    return [number(value, int(n)) for value, n in zip(values.tolist(), each, strict=True)]


def _term(value: str, name: str) -> str:
    sign = "-" if value.startswith("-") else "+"
    return f"{sign} {value.removeprefix('-')} {name}".rstrip()


def _joined(target: str, terms: list[str], shown: int) -> str:
    head, *rest = terms[:shown]
    head = head.removeprefix("+ ") if head[0] == "+" else "-" + head[2:]
    left = len(terms) - shown
    more = [f"+ {left} more"] if left else []
    return f"{target} = " + " ".join([head, *rest, *more])
