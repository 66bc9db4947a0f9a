"""Do the paper's assumptions hold on a user's data? A verdict in words for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from regimix.errors import DataError, ParameterError
from regimix.result.mixture import Mixture
from regimix.theory.assumptions import (
    Finding,
    WhitenedFit,
    corruption_ratio,
    findings,
    whitened_fit,
)
from regimix.theory.definitions import local_separation

__all__ = ["Audit", "Finding", "RegimeAudit", "audit"]

# Columns of a terminal.
WIDTH = 80


@dataclass(frozen=True)
class RegimeAudit:
    """The paper's quantities of one regime, estimated in whitened coordinates.

    Attributes
    ----------
    share : float
        τ*_(j), its share of all rows.
    rows_per_coefficient : float
        Its rows over the coefficients of a regime.
    separation : float
        Q_j of Definition 1.
    noise : float
        Its noise over the distance to the nearest regime (alone: over its own length).
    contraction : float
        What one round left of the error from a displaced start; nan if it could not be tried.
    """

    share: float
    rows_per_coefficient: float
    separation: float
    noise: float
    contraction: float


@dataclass(frozen=True)
class Audit:
    """What the paper assumes, beside what the data show; prints as a table.

    Attributes
    ----------
    findings : tuple of Finding
        One for each assumption.
    regimes : tuple of RegimeAudit
        The quantities of each regime.
    corruption_ratio : float
        γ*, outliers over rows of the smallest regime.
    n_rows, n_coefficients : int
        Rows of the table, and coefficients of a regime (with the intercept).
    sample_rows : int
        Rows that were looked at.
    """

    findings: tuple[Finding, ...]
    regimes: tuple[RegimeAudit, ...]
    corruption_ratio: float
    n_rows: int
    n_coefficients: int
    sample_rows: int

    def __getitem__(self, name: str) -> Finding:
        """Look up a finding by its name."""
        by_name = {finding.name: finding for finding in self.findings}
        if name not in by_name:
            raise KeyError(f"no finding is called {name}; there are {', '.join(by_name)}.")
        return by_name[name]

    def __str__(self) -> str:
        return "\n".join([*self._head(), "", *self._regime_table(), "", *self._table()])

    def _head(self) -> list[str]:
        p, m = self.n_coefficients, len(self.regimes)
        size = f"{self.n_rows} rows, {p} coefficient{'s' * (p != 1)}, {m} regime{'s' * (m != 1)}"
        lines = [f"The paper's assumptions: {size}"]
        if self.sample_rows < self.n_rows:
            lines.append(f"(judged on {self.sample_rows} of the rows)")
        return lines

    def _regime_table(self) -> list[str]:
        lines = ["regime   share   rows/coef   separation   noise/distance   left by a round"]
        for j, regime in enumerate(self.regimes):
            lines.append(
                f"{j:>6}  {regime.share:>6.1%}  {regime.rows_per_coefficient:>10.1f}  "
                f"{_number(regime.separation):>11}  {_number(regime.noise):>15}  "
                f"{_number(regime.contraction):>16}"
            )
        return lines

    def _table(self) -> list[str]:
        lines = [f"{'assumption':<21}{'verdict':<10}{'number':>9}   wanted"]
        for finding in self.findings:
            side = "at least" if finding.at_least else "at most"
            lines.append(
                f"{finding.name:<21}{finding.verdict:<10}{_number(finding.value):>9}   "
                f"{side} {_number(finding.threshold)}"
            )
            lines += ["  " + line for line in wrap(finding.words, WIDTH - 2)]
        counts = {
            verdict: sum(finding.verdict == verdict for finding in self.findings)
            for verdict in ("holds", "unclear", "violated")
        }
        closing = (
            f"In all: {counts['holds']} hold, {counts['unclear']} unclear, {counts['violated']} "
            "violated. The paper's conditions are sufficient, not necessary, and its "
            "constants are unknown: what is wanted here is where its algorithms were seen to work."
        )
        return [*lines, "", *wrap(closing, WIDTH)]


def audit(mixture: Any, X: Any = None, y: Any = None) -> Audit:
    """Check the paper's assumptions on the rows of a fit, in whitened coordinates.

    Separation (Definition 1), noise, corruption γ*, rows against d·max(1, log log d)/τ_min
    (Theorems 7 and 11), tails of the features (Lemmas 5 and 6), their covariances (Corollary 8),
    the subspace (Definition 9) and the contraction of a round (Theorem 4). The work is bounded,
    whatever the size of the table, but for one pass that labels all rows: beyond 20,000 rows a
    sample is judged.

    Parameters
    ----------
    mixture : Mixture or MixedLinearRegression
        A fitted model.
    X, y : array or data frame of shape (n, d), array of shape (n,), optional
        The rows of the fit, or new ones. Default: those that the mixture remembers of its fit
        (``excerpt``).

    Returns
    -------
    Audit
        ``str(audit)`` is a table.

    Examples
    --------
    >>> from regimix import MixedLinearRegression, theory
    >>> from regimix.synth import make_mlrc
    >>> X, y, _ = make_mlrc(600, 2, 2, noise=0.01, separation=1.0, random_state=0)
    >>> found = theory.audit(MixedLinearRegression(random_state=0).fit(X, y), X, y)
    >>> found["rows"].verdict
    'holds'
    """
    # Many small eigenproblems: several threads would make each one wait.
    with threadpool_limits(limits=1, user_api="blas"):
        known = _mixture_of(mixture)
        return _judged(known, _fit_of(known, X, y))


def _mixture_of(model: Any) -> Mixture:
    """Return a mixture, or that of a fitted estimator."""
    mixture = getattr(model, "mixture_", model)
    if not isinstance(mixture, Mixture):
        raise ParameterError(
            "an audit needs a Mixture or a fitted MixedLinearRegression; got "
            f"{type(model).__name__}. Call fit(X, y) first; of a pipeline, pass the last step and "
            "the rows as it sees them."
        )
    return mixture


def _fit_of(mixture: Mixture, X: Any, y: Any) -> WhitenedFit:
    """Whiten the rows given, or those that the mixture remembers."""
    if X is not None and y is not None:
        return whitened_fit(mixture, X, y)
    excerpt = mixture.excerpt
    if X is not None or y is not None or excerpt is None:
        missing = "X and y are" if X is None and y is None else "X is" if X is None else "y is"
        raise DataError(
            f"there are no rows to audit: {missing} missing, and only a mixture that remembers "
            "rows of its fit (excerpt) can do without both. Pass X and y."
        )
    fit = whitened_fit(mixture, excerpt.X, excerpt.y)
    # An excerpt is a uniform draw: it stands for all rows of the fit.
    return fit if excerpt.complete else replace(fit, n_rows=mixture.n_rows, complete=False)


def _judged(mixture: Mixture, fit: WhitenedFit) -> Audit:
    """Put all findings together."""
    judged, left = findings(mixture, fit)
    columns = zip(
        fit.shares,
        fit.shares * fit.n_rows / fit.X.shape[1],
        local_separation(fit.coef),
        fit.scale / fit.distance,
        left,
        strict=True,
    )
    return Audit(
        findings=judged,
        regimes=tuple(RegimeAudit(*(float(value) for value in row)) for row in columns),
        corruption_ratio=corruption_ratio(fit),
        n_rows=fit.n_rows,
        n_coefficients=fit.X.shape[1],
        sample_rows=len(fit.X) if not fit.complete else fit.n_rows,
    )


def _number(value: float) -> str:
    """Write a number in at most nine characters."""
    if np.isnan(value) or value == -np.inf:
        return "-"
    if np.isinf(value):
        return "unlimited"
    return (
        f"{value:.3g}"
        if abs(value) < 1000
        else f"{value:.3e}"
        if abs(value) >= 1e6
        else f"{value:.0f}"
    )
