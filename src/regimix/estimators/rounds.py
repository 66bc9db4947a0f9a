"""The rounds of a TrimmedEstimator: which rows are kept, what a row loses, the best fit so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import _safe_indexing, get_tags

from regimix.engines.selection import ROUNDING, smallest
from regimix.errors import DataError, ParameterError
from regimix.search.settings import read_count
from regimix.trimmed.ilts import check_limits

__all__ = ["FEWEST_OF_CLASS", "LOSSES", "Rows", "Run", "check_parameters"]

Floats = NDArray[np.float64]

# Rows that every class keeps at the least: enough for an inner 5-fold cross-validation.
FEWEST_OF_CLASS = 5
# Errors below this share of the spread of y, and log losses below it, are rounding.
EXACT = 1e-10
# Losses by kind of estimator; "auto" takes the first for which the estimator has the method.
LOSSES = {
    "regressor": {"squared": "predict", "absolute": "predict"},
    "classifier": {"log": "predict_proba", "hinge": "decision_function", "zero-one": "predict"},
}


@dataclass
class Run:
    """The rounds from one start, and the best fit among them."""

    objective: list[float] = field(default_factory=list)
    stopped: str = "max_iter"
    best: float = math.inf
    model: Any = None
    kept: Floats = field(default_factory=lambda: np.empty(0))
    losses: Floats = field(default_factory=lambda: np.empty(0))

    def take(self, objective: float, model: Any, kept: Floats, losses: Floats) -> None:
        """Remember a fit that is no worse than the best so far."""
        if objective <= self.best:
            self.best, self.model, self.kept, self.losses = objective, model, kept, losses


@dataclass(frozen=True)
class Rows:
    """The rows present: how they are weighed, kept and fitted. ``kept`` is a weight for each."""

    X: Any
    y: NDArray[Any]
    weights: Floats
    whole: bool
    codes: NDArray[np.intp] | None
    names: list[str]
    unit: float
    present: NDArray[np.intp]
    n_rows: int

    def fit(self, model: Any, kept: Floats) -> Any:
        """Fit the kept rows; a weight that the model does not take repeats its row."""
        rows = np.flatnonzero(kept)
        weights = dict.fromkeys(self.names, kept[rows] * self.unit)
        if not self.names:
            rows = np.repeat(rows, kept[rows].astype(np.intp))
        return model.fit(_safe_indexing(self.X, rows), self.y[rows], **weights)

    def select(self, losses: Floats, fraction: float, balance: float) -> Floats:
        """Keep rows of smallest loss: of each class its floor, then whichever are best."""
        kept = np.zeros_like(self.weights)
        for code, floor in enumerate(self._floors(fraction, balance)):
            rows = np.flatnonzero(self.codes == code)
            kept[rows] = _keep_smallest(losses[rows], floor, self.weights[rows])
        mass = fraction * float(self.weights.sum())
        if self.whole:
            mass = max(1.0, math.floor(mass * (1 + ROUNDING)))
        room = mass - float(kept.sum())
        if room > ROUNDING * mass:
            kept += _keep_smallest(losses, room, self.weights - kept)
        return kept

    def held(self, kept: Floats, fraction: float, balance: float) -> list[str]:
        """Name the classes of which nothing is kept but the floor, unless that was asked for."""
        floors, codes = self._floors(fraction, balance), self.codes
        if codes is None or balance == 1.0:
            return []
        names, masses = np.unique(self.y), np.bincount(codes, self.weights)
        full = np.bincount(codes, kept) > floors * (1 + ROUNDING)
        return [repr(name) for name in names[~full & (floors < masses)].tolist()]

    def _floors(self, fraction: float, balance: float) -> Floats:
        """Mass of each class that is kept whatever the losses say."""
        if self.codes is None:
            return np.empty(0)
        masses = np.bincount(self.codes, self.weights)
        floors = balance * fraction * masses
        if self.whole:
            floors = np.floor(floors * (1 + ROUNDING))
        return np.asarray(np.minimum(masses, np.maximum(floors, FEWEST_OF_CLASS)))

    def losses(self, model: Any, loss: Any) -> Floats:
        """Loss of each row."""
        if callable(loss):
            losses = np.asarray(loss(model, self.X, self.y), dtype=np.float64)
        else:
            losses = self._named_losses(model, loss)
        if losses.shape != self.y.shape or not np.isfinite(losses).all():
            raise DataError(
                f"the loss must be one finite number for each of {self.y.size} rows; got shape "
                f"{losses.shape}, {np.count_nonzero(~np.isfinite(losses))} of them not finite."
            )
        return losses

    def rounding(self, loss: Any) -> float:
        """Return the loss below which a row is fitted exactly."""
        if callable(loss):
            return -math.inf
        if self.codes is not None:
            return EXACT
        spread = EXACT * float(np.ptp(self.y.astype(np.float64)))
        return spread**2 if loss == "squared" else spread

    def _named_losses(self, model: Any, loss: str) -> Floats:
        if self.codes is None:
            errors = np.abs(self.y.astype(np.float64) - np.ravel(model.predict(self.X)))
            return errors**2 if loss == "squared" else errors
        if loss == "zero-one":
            return np.asarray(model.predict(self.X) != self.y, dtype=np.float64)
        scores = np.array(getattr(model, LOSSES["classifier"][loss])(self.X), dtype=np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores]) / 2
        if scores.shape[1] != self.codes.max() + 1:
            raise ParameterError(
                f"loss={loss!r} needs one column of {LOSSES['classifier'][loss]} for each of "
                f"{self.codes.max() + 1} classes; got {scores.shape[1]}. Pass loss as a function."
            )
        rows = np.arange(self.y.size)
        own = scores[rows, self.codes]
        if loss == "log":
            return np.asarray(-np.log(np.maximum(own, np.finfo(np.float64).eps)))
        scores[rows, self.codes] = -np.inf
        return np.asarray(np.maximum(0.0, 1.0 - own + scores.max(axis=1)))


def _keep_smallest(losses: Floats, mass: float, weights: Floats) -> Floats:
    choice = smallest(losses, mass, weights)
    kept = np.where(choice.kept, weights, 0.0)
    if choice.boundary >= 0:
        kept[choice.boundary] = choice.boundary_weight
    return kept


def check_parameters(trimmed: Any) -> None:
    """Refuse settings of a TrimmedEstimator that make no sense."""
    inner, growing = trimmed.estimator, trimmed.keep_start is not None
    if not hasattr(inner, "fit") or not (is_classifier(inner) or is_regressor(inner)):
        raise ParameterError(f"estimator must be a regressor or a classifier; got {inner!r}.")
    if get_tags(inner).input_tags.pairwise:
        raise ParameterError(f"{inner!r} takes distances between rows; give it features.")
    losses = LOSSES[get_tags(inner).estimator_type]
    if not callable(trimmed.loss) and trimmed.loss not in ("auto", *losses):
        raise ParameterError(
            f'loss must be "auto", one of {", ".join(map(repr, losses))} for this kind of '
            f"estimator, or a function of (estimator, X, y); got {trimmed.loss!r}."
        )
    _check_share("keep", trimmed.keep)
    if growing:
        _check_share("keep_start", trimmed.keep_start)
    _check_share("class_balance", trimmed.class_balance, zero=True)
    check_limits(trimmed.max_iter, trimmed.tol)
    if trimmed.n_starts != 0:
        read_count("n_starts", trimmed.n_starts, "0 or ")
    if trimmed.max_iter <= (read_count("growth", trimmed.growth) if growing else 0):
        raise ParameterError(
            f"max_iter={trimmed.max_iter} leaves no refit at the final keep; it must be above 0, "
            f"and with keep_start above growth={trimmed.growth}."
        )


def _check_share(name: str, value: Any, *, zero: bool = False) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1 or (value == 0 and not zero):
        allowed = "from 0 to 1" if zero else "above 0 and at most 1"
        raise ParameterError(f"{name} must be a number {allowed}; got {value!r}.")
