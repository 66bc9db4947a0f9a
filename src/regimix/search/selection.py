"""How many components: the best model of every number that was looked at, and its criteria."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from regimix.model.em import Fitted, Parameters, refit, responsibilities
from regimix.model.rows import Rows
from regimix.search.prune import shrink

__all__ = ["SAME_SCORE", "Attempt", "Path", "Repeats", "Selection"]

Floats = NDArray[np.float64]

# Scores that agree to within this many nats are the same answer.
SAME_SCORE = 0.5
# EM for a model that is on the path only to be compared: a few rounds show its worth.
PATH_ROUNDS = 5
# The halves of a split begin this many deviations above and below the component.
APART = 0.8


@dataclass(frozen=True)
class Attempt:
    """Something that was tried on the way to the model.

    Attributes
    ----------
    move, source : str
        What was to be done to the model ("add", "replace", ...), with components from where.
    gain, accepted, reason : float, bool, str
        By how much the score of the whole model would rise, whether it was done, and why (not).
    """

    move: str
    source: str
    gain: float
    accepted: bool
    reason: str

    def __str__(self) -> str:
        verdict = "taken" if self.accepted else "left"
        return f"{self.move} ({self.source}): {self.gain:+.1f}, {verdict}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Selection:
    """Criteria of the best model found with each number of components.

    All are those of the rows that were searched (a sample, if the table is large). ``evidence``
    is the score by which the search decides, beyond that of constants; it contains the prior of
    each component, 3 nats, and the answer is its maximum.
    ``bic`` and ``icl`` (BIC plus twice the entropy of the assignments) are there to compare, and
    lower is better. Their differences count: they are in the search's own units of the response
    and against its background, so they are not those of ``Mixture.bic``.

    Attributes
    ----------
    n_components : ndarray of shape (k,), int
    evidence, bic, icl : ndarray of shape (k,)
    chosen : int
        The number of components of the answer.
    """

    n_components: NDArray[np.int64]
    evidence: Floats
    bic: Floats
    icl: Floats
    chosen: int

    def as_dict(self) -> dict[str, NDArray[np.generic]]:
        """Return the columns by name, ready for a data frame."""
        return {
            "n_components": self.n_components,
            "evidence": self.evidence,
            "bic": self.bic,
            "icl": self.icl,
        }


@dataclass(frozen=True)
class Repeats:
    """Independent searches of the same rows.

    Attributes
    ----------
    scores : tuple of float
        Of the model that each search ended with.
    """

    scores: tuple[float, ...]

    @property
    def agreed(self) -> int:
        """How many of them reached the best score."""
        best = max(self.scores, default=0.0)
        return sum(score > best - SAME_SCORE for score in self.scores)


@dataclass
class Path:
    """The best fitted model of each number of components that a search came across."""

    best: dict[int, Fitted] = field(default_factory=dict)

    def see(self, fitted: Fitted) -> None:
        """Remember a model if it is the best of its size."""
        known = self.best.get(fitted.model.m)
        if fitted.model.m and (known is None or fitted.score > known.score):
            self.best[fitted.model.m] = fitted

    def complete(self, rows: Rows, chosen: Fitted) -> None:
        """Fill in the smaller numbers and the next larger one."""
        self._step_up(rows, chosen)
        self._step_down(rows, chosen)

    def select(self, rows: Rows, chosen: Fitted) -> Selection:
        """Weigh the models."""
        # The answer stands for its number, even if chance saw a better one on the way.
        self.best[chosen.model.m] = chosen
        counts = sorted(self.best)
        weighed = np.array([_criteria(rows, self.best[count]) for count in counts])
        return Selection(
            np.array(counts, dtype=np.int64),
            weighed[:, 0],
            weighed[:, 1],
            weighed[:, 2],
            chosen.model.m,
        )

    def _step_up(self, rows: Rows, chosen: Fitted) -> None:
        """Part the broadest component into the rows above it and those below."""
        broadest = int(np.argmax(chosen.model.scale))
        larger = refit(rows, _halved(rows, chosen.model, broadest), PATH_ROUNDS)
        if larger.model.m > chosen.model.m:
            self.see(larger)

    def _step_down(self, rows: Rows, chosen: Fitted) -> None:
        """Merge or delete what is missed least, one component at a time."""
        fitted = chosen
        while fitted.model.m > 1:
            smaller = shrink(rows, fitted, PATH_ROUNDS)
            self.see(smaller)
            fitted = self.best.get(fitted.model.m - 1, smaller)


def _halved(rows: Rows, model: Parameters, j: int) -> Parameters:
    """Return the model with component j twice, once higher and once lower."""
    twice = np.append(np.arange(model.m), j)
    halved = model.pick(twice)
    coef, share, scale = halved.coef.copy(), halved.share.copy(), halved.scale.copy()
    share[[j, -1]] /= 2
    scale[[j, -1]] *= np.sqrt(1 - APART**2)
    step = APART * model.scale[j]
    if rows.intercept:
        coef[j, 0] += step
        coef[-1, 0] -= step
    else:
        # Without an intercept the halves lean to either side of the component.
        direction = coef[j] / max(float(np.linalg.norm(coef[j])), 1e-300)
        coef[j] += step * direction
        coef[-1] -= step * direction
    return Parameters.point(coef, scale, share, halved.origin, halved.noise)


def _criteria(rows: Rows, fitted: Fitted) -> tuple[float, float, float]:
    """Return evidence, BIC and ICL of a model on the searched rows."""
    point = Parameters.point(
        fitted.model.coef,
        fitted.model.scale,
        fitted.sums.size / rows.mass,
        fitted.model.origin,
        fitted.model.noise,
        fitted.model.outlier_law,
        fitted.model.outlier_scale,
    )
    posterior, log_total = responsibilities(rows, point)
    # Coefficients, scale and share of each component; the background's share is the rest.
    free = fitted.model.m * (rows.width + 2) - (not rows.outliers)
    bic = free * float(np.log(rows.mass)) - 2 * float(log_total @ rows.weights)
    entropy = float(entr(posterior).sum(axis=0) @ rows.weights)
    return fitted.score, bic, bic + 2 * entropy
