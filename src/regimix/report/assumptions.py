"""What was assumed, and whether the data agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regimix.errors import RegimixError
from regimix.report.rows import Rows
from regimix.report.words import number, percent
from regimix.result.mixture import Mixture
from regimix.theory.audit import Finding, audit

__all__ = ["Assumption", "assumptions"]

# What the findings of an audit mean to someone who has not read the paper.
NAMES = {
    "regimes": "There is something to find",
    "separation": "Regimes differ enough",
    "noise": "Noise is small beside the distance between regimes",
    "corruption": "Outliers are fewer than the rows of the smallest regime",
    "rows": "Every regime has enough rows",
    "feature tails": "No row dominates by extreme features",
    "same features": "Features spread alike in every regime",
    "subspace gap": "A few directions of the features stand out",
    "subspace": "Those directions hold every regime",
    "contraction, seen": "Rounds of the fit shrink the error",
    "contraction, proven": "Convergence is proven even in the worst case",
}
SIGNS = {"holds": "✓", "unclear": "?", "violated": "✗"}
# Regimes closer than this, in units of their uncertainty, may be one and the same.
DISTINCT, DOUBTFUL = 5.0, 3.0


@dataclass(frozen=True)
class Assumption:
    """One assumption and what the data say of it."""

    name: str
    verdict: str
    words: str
    measured: str

    @property
    def sign(self) -> str:
        """A sign for the verdict: colour alone would not do."""
        return SIGNS.get(self.verdict, "?")


def assumptions(mixture: Mixture, rows: Rows | None) -> list[Assumption]:
    """Audit the mixture on the rows; without rows, say what the mixture alone can tell."""
    found = [] if rows is None else _audited(mixture, rows)
    return found or [_corruption(mixture), *_separation(mixture), *_gap(mixture)]


def _audited(mixture: Mixture, rows: Rows) -> list[Assumption]:
    try:
        # Of an excerpt, the audit knows itself how many rows it stands for.
        shown = () if rows.of > rows.n else (rows.X, rows.y)
        return [_plain(finding) for finding in audit(mixture, *shown).findings]
    except RegimixError:
        # Too few rows for the question: the mixture itself can still be asked.
        return []


def _plain(finding: Finding) -> Assumption:
    """Say what was asked in the words of the page."""
    name = NAMES.get(finding.name, finding.name[:1].upper() + finding.name[1:])
    measured = ""
    if np.isfinite(finding.value) and np.isfinite(finding.threshold):
        bound = "at least" if finding.at_least else "at most"
        limit = f"{bound} {number(finding.threshold, 3)}"
        measured = f"Measured {number(finding.value, 3)}; {limit} would do."
    verdict = finding.verdict
    if finding.name == "contraction, proven" and verdict == "violated":
        # A bound that is seldom below one: what it leaves open is no fault of the data.
        verdict = "unclear"
    return Assumption(name, verdict, finding.words, measured)


def _corruption(mixture: Mixture) -> Assumption:
    ratio = mixture.outlier_share / max(float(mixture.weights.min()), 1e-300)
    verdict = "holds" if ratio < 0.5 else "unclear" if ratio < 1 else "violated"
    words = (
        f"There are {number(ratio, 2)} times as many outliers ({percent(mixture.outlier_share)} of "
        f"the model) as rows of the smallest regime ({percent(float(mixture.weights.min()))}). "
        "Outliers that conspired could pass for a regime only if they were as many."
    )
    return Assumption("Outliers are fewer than the rows of any regime", verdict, words, "")


def _separation(mixture: Mixture) -> list[Assumption]:
    if mixture.n_components < 2 or mixture.inference is None:
        return []
    apart = np.array(mixture.separation(), dtype=np.float64)[
        np.triu_indices(mixture.n_components, 1)
    ]
    if not np.isfinite(apart).any():
        return []
    least = float(np.nanmin(apart))
    verdict = "holds" if least > DISTINCT else "unclear" if least > DOUBTFUL else "violated"
    words = (
        f"The two closest differ by {number(least, 2)} times the uncertainty of their coefficients."
    )
    return [Assumption("Regimes are distinct", verdict, words, "")]


def _gap(mixture: Mixture) -> list[Assumption]:
    spectrum = mixture.spectrum
    if spectrum is None:
        return []
    d, kept = spectrum.basis.shape
    if kept >= d:
        words = "All directions of the features were searched: nothing was projected away."
        return [Assumption("No direction was missed", "holds", words, "")]
    verdict = "holds" if spectrum.has_gap else "unclear"
    words = (
        f"{kept} of {d} directions were searched first; the last of them matters "
        f"{number(spectrum.gap, 3)} times as much as the first that was left out"
    )
    words += ": a clear gap." if spectrum.has_gap else ": no clear gap, so the cut is arbitrary."
    return [Assumption("The regimes span few directions", verdict, words, "")]
