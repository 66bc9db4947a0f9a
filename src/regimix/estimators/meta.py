"""TrimmedEstimator: any scikit-learn regressor or classifier, on the rows that it fits best.

The paper's general principle (``sec:discussion``), of which Algorithm 1 is the simplest instance:
repeat: keep the samples that the model fits best currently, fit it to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from regimix.data.validation import (
    Table,
    check_shape,
    is_missing,
    read_names,
    read_target,
    read_weights,
)
from regimix.engines.selection import ROUNDING, smallest
from regimix.errors import (
    ConvergenceWarning,
    DataError,
    EvidenceWarning,
    ParameterError,
    RegimixError,
    read_count,
    read_number,
)
from regimix.estimators.inputs import warn_user
from regimix.search.settings import read_seed
from regimix.trimmed.ilts import check_limits

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
# A fit costs what the inner estimator costs; few data sets move on after a dozen rounds.
MAX_ITER = 50
# Inexact inner fits (boosting, penalties) may lose a little before they gain again.
PATIENCE = 3
# Further starts fit this share of the kept mass: few rows, so that some have hardly a wrong one.
START_SHARE = 0.1
# Tags that say what kind of estimator the inner one is.
KIND_TAGS = ("estimator_type", "classifier_tags", "regressor_tags", "transformer_tags")


def _offered(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Offer a method where the inner estimator has it."""

    def there(trimmed: Any) -> bool:
        return hasattr(getattr(trimmed, "estimator_", trimmed.estimator), name)

    return lambda method: available_if(there)(method)


def _delegated(name: str, does: str) -> Any:
    """Make a method that asks the fit found; ``does`` is its docstring."""

    def ask(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        with _in_our_words(self.estimator, X):
            return getattr(self.estimator_, name)(X)

    ask.__name__, ask.__doc__ = name, does
    return _offered(name)(ask)


@contextmanager
def _in_our_words(inner: Any, X: Any) -> Iterator[None]:
    """Where an estimator refuses X, say which cell it is, if numbers are all that it takes.

    Pipelines may take text, and others missing values: what they say stands.
    """
    try:
        # scikit-learn adds the values up to see whether all are finite: infinities of both signs
        # would warn before they are refused. Losses that are no numbers are refused, too.
        with np.errstate(invalid="ignore"):
            yield
    except (RegimixError, InvalidParameterError, NotFittedError):
        raise
    except (TypeError, ValueError):
        takes = get_tags(inner).input_tags
        if not (hasattr(inner, "steps") or hasattr(X, "tocsr") or takes.allow_nan):
            Table.read(X, fewest_rows=1).extent()
        raise


class TrimmedEstimator(MetaEstimatorMixin, BaseEstimator):
    """Fit any regressor or classifier to the rows that it fits best.

    Repeat: compute the loss of every row, keep the fraction of rows with the smallest, refit.
    Wrong labels and outliers fit badly as long as the estimator is too rigid to learn them by
    heart; the more flexible it is, the more regularisation it needs here. Rows that are right but
    hard to fit are trimmed too, which costs accuracy: keep what you believe to be right.

    Parameters
    ----------
    estimator : regressor or classifier
        Pipelines too. It is cloned, never modified.
    keep : float, default=0.8
        Fraction of rows to fit, in (0, 1].
    loss : str or callable, default="auto"
        Loss of each row. Regressors: "squared" (the default) or "absolute". Classifiers: "log" if
        there is ``predict_proba``, otherwise "hinge" if there is ``decision_function``, otherwise
        "zero-one". Or ``loss(estimator, X, y) -> (n,)``; smaller is better.
    keep_start : float, optional
        Fraction kept at first, above or below ``keep``. Default: ``keep``. With wrong labels,
        trimming gradually from 1 is often better.
    growth : int, default=5
        Rounds in which ``keep_start`` becomes ``keep``.
    class_balance : float, default=0.5
        Classifiers: each class keeps at least this share of what it would keep if all classes were
        trimmed alike, and at least five rows. 1 trims them alike, 0 leaves it to the loss.
    n_starts : int, default=0
        Random subsets of rows to start from, beside all rows; the smallest trimmed loss wins.
    max_iter : int, default=50
        Most refits from a start.
    tol : float, default=0.0
        A round that lowers the trimmed loss by less than this fraction is no gain.
    warm_start : bool, default=False
        Whether refits go on from the last fit, by the inner estimator's own ``warm_start``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the subsets; if not None, also of inner estimators whose own is None.

    Attributes
    ----------
    estimator_ : estimator
        The fit of smallest trimmed loss.
    kept_ : ndarray of shape (n,), bool
        The rows that it fits best, those of class floors included.
    losses_ : ndarray of shape (n,)
        Its loss of each row; NaN for rows of weight zero.
    loss_ : str or callable
        The loss used.
    objective_ : ndarray
        Mean loss of the kept rows, per round.
    n_iter_ : int
        Refits.
    stopped_ : {"fixed point", "cycle", "no gain", "max_iter", "exact fit"}
        The kept rows came again, from the round before or an earlier one; three rounds brought no
        gain; the limit was reached; or the fit to all rows left nothing to trim.
    start_ : {"all rows", "subset"}
        Which kind of start led to the answer.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        If X has column names.

    Examples
    --------
    >>> from regimix.datasets import load_calls
    >>> from regimix.estimators.meta import TrimmedEstimator
    >>> from sklearn.linear_model import LinearRegression
    >>> calls = load_calls()
    >>> fit = TrimmedEstimator(LinearRegression(), keep=0.7).fit(calls.X, calls.y)
    >>> fit.stopped_
    'fixed point'
    """

    def __init__(
        self,
        estimator: Any,
        keep: float = 0.8,
        loss: Any = "auto",
        keep_start: float | None = None,
        growth: int = 5,
        class_balance: float = 0.5,
        n_starts: int = 0,
        max_iter: int = MAX_ITER,
        tol: float = 0.0,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.keep = keep
        self.loss = loss
        self.keep_start = keep_start
        self.growth = growth
        self.class_balance = class_balance
        self.n_starts = n_starts
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit, trim, and fit again until the kept rows settle.

        Parameters
        ----------
        X : whatever the inner estimator takes, of n rows
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
            Whole numbers count repetitions of a row, other numbers are relative importances; a row
            of weight zero is absent. Passed on to the inner estimator, or to each step of a
            pipeline that takes it; where none does, rows are repeated.

        Returns
        -------
        self
        """
        _check_parameters(self)
        if hasattr(X, "to_numpy") and hasattr(X, "columns"):
            read_names(X)
        shape = getattr(X, "shape", ())
        if isinstance(X, list | tuple):
            shape = len(X), *np.shape(X[:1])[1:]
        if shape:
            check_shape(shape, fewest_rows=1)
        with _in_our_words(self.estimator, X):
            rows, run = self._fit(X, y, sample_weight)
        self._warn(rows, run)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[_Rows, _Run]:
        validate_data(self, X, skip_check_array=True)
        rows = self._read(X, y, sample_weight)
        seed = read_seed(self.random_state)
        first = self._blank(seed)
        start = rows.fit(first, rows.weights)
        self.loss_, self.start_ = self._loss_for(start), "all rows"
        losses = rows.losses(start, self.loss_)
        if losses.max() > rows.rounding(self.loss_):
            run = self._run(rows, start)
        else:  # the fit to all rows leaves nothing to trim
            mean = float(np.average(losses, weights=rows.weights))
            run = _Run([mean], "exact fit", mean, start, rows.weights, losses)
        generator = np.random.default_rng(seed)
        for _ in range(0 if run.stopped == "exact fit" else self.n_starts):
            mass = START_SHARE * self._fraction(0)
            subset = rows.select(generator.random(rows.weights.size), mass, self.class_balance)
            other = self._run(rows, rows.fit(clone(first), subset))
            if other.best < run.best:
                run, self.start_ = other, "subset"
        self.estimator_, self.stopped_ = run.model, run.stopped
        self.kept_ = np.zeros(rows.n_rows, dtype=np.bool_)
        self.losses_ = np.full(rows.n_rows, np.nan)
        self.kept_[rows.present], self.losses_[rows.present] = run.kept > 0, run.losses
        self.objective_ = np.array(run.objective)
        self.n_iter_ = len(run.objective) - 1
        return rows, run

    predict = _delegated("predict", "Predict by the fit found.")
    predict_proba = _delegated("predict_proba", "Probability of each class.")
    predict_log_proba = _delegated(
        "predict_log_proba", "Logarithm of the probability of each class."
    )
    decision_function = _delegated("decision_function", "Score of each class.")
    transform = _delegated("transform", "Transform by the fit found.")

    @_offered("score")
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Score of the inner estimator, on all rows given."""
        check_is_fitted(self)
        weights, _ = read_weights(sample_weight, _num_samples(X))
        given = {}
        if weights is not None:  # rows of weight zero are absent, as in a fit
            present = np.flatnonzero(weights)
            X, y = _safe_indexing(X, present), _safe_indexing(y, present)
            given = {"sample_weight": weights[present]}
        with _in_our_words(self.estimator, X):
            return self.estimator_.score(X, y, **given)

    @property
    def classes_(self) -> Any:
        """Classes, if the inner estimator is a classifier."""
        check_is_fitted(self)
        return self.estimator_.classes_

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn where ``sample_weight`` goes: here, and to the inner fit."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in (*KIND_TAGS, "input_tags", "non_deterministic"):
            setattr(tags, name, getattr(inner, name))
        tags.target_tags.required = True
        return tags

    def _blank(self, seed: int) -> Any:
        """Clone the inner estimator; seed it and let it start warm, if asked for."""
        model = clone(self.estimator)
        given = model.get_params()
        last = {name: name.rpartition("__")[2] for name in given}
        changes: dict[str, Any] = {}
        if self.random_state is not None:
            unseeded = (n for n in given if last[n] == "random_state" and given[n] is None)
            changes = dict.fromkeys(unseeded, seed % 2**32)
        if self.warm_start:
            names = [name for name in given if last[name] == "warm_start"]
            # Ensembles take it for more members, beside those that were fitted to other rows.
            if not names or {"n_estimators", "max_leaf_nodes"} & set(last.values()):
                raise ParameterError(
                    f"warm_start=True needs an estimator that goes on from its last coefficients; "
                    f"{self.estimator!r} does not. Leave warm_start=False."
                )
            changes |= dict.fromkeys(names, True)
        return model.set_params(**changes)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> _Rows:
        """Check labels and weights, and leave out rows of weight zero."""
        (X,) = indexable(X)
        n_rows = _num_samples(X)
        y = _read_labels(y, n_rows) if is_classifier(self.estimator) else read_target(y, n_rows)
        weights, whole = read_weights(sample_weight, n_rows)
        names: list[str] = []
        if weights is not None:
            names = _weight_names(self.estimator)
            if get_config()["enable_metadata_routing"]:
                routed = process_routing(self, "fit", sample_weight=sample_weight)
                names = list(routed.estimator.fit)
            if not names and not whole:
                raise ParameterError(
                    f"{self.estimator!r} takes no sample_weight, and the weights given are not "
                    "whole numbers, which could be counted as repeated rows."
                )
        present = np.flatnonzero(np.ones(n_rows) if weights is None else weights)
        if present.size < n_rows:
            X, y = _safe_indexing(X, present), y[present]
        codes = None
        if is_classifier(self.estimator):
            try:
                check_classification_targets(y)
                codes = np.unique(y, return_inverse=True)[1]
            except (TypeError, ValueError) as error:
                raise DataError(
                    f"y holds no classes ({error}). Pass texts alone, or whole numbers alone."
                ) from error
        values = np.ones(n_rows) if weights is None else weights[present]
        # Relative weights were scaled; the inner estimator gets those of the user, unless products
        # of weights and values might be no numbers in the precision of X.
        unit = 1.0 if whole else float(np.max(sample_weight)) / float(values.max())
        precision = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        most = math.sqrt(np.finfo(precision).max)
        unit = unit if 1 / most < unit * float(values.sum()) < most else 1.0
        return _Rows(X, y, values, whole, codes, names, unit, present, n_rows)

    def _loss_for(self, model: Any) -> Any:
        """Name the loss, now that the first fit shows what it can predict."""
        if callable(self.loss):
            return self.loss
        methods = LOSSES[get_tags(self.estimator).estimator_type]
        usable = [name for name, method in methods.items() if hasattr(model, method)]
        if self.loss != "auto" and self.loss not in usable:
            raise ParameterError(
                f"loss={self.loss!r} needs {methods[self.loss]}, which {self.estimator!r} lacks; "
                f"it can be one of {usable}."
            )
        return usable[0] if self.loss == "auto" else self.loss

    def _fraction(self, iteration: int) -> float:
        """Fraction to keep in a round."""
        if self.keep_start is None or iteration >= self.growth:
            return self.keep
        return self.keep_start + (self.keep - self.keep_start) * iteration / self.growth

    def _run(self, rows: _Rows, model: Any) -> _Run:
        """Trim and refit from a first fit; only fits to the final fraction may win."""
        run, seen = _Run(), dict[bytes, int]()
        final, fruitless = 0 if self.keep_start is None else self.growth, 0
        for i in range(self.max_iter + 1):
            losses = rows.losses(model, self.loss_)
            kept = rows.select(losses, self._fraction(i), self.class_balance)
            objective = float(kept @ losses / kept.sum())
            run.objective.append(objective)
            if i > final:
                gain = math.isinf(run.best) or objective < run.best - self.tol * abs(run.best)
                fruitless = 0 if gain else fruitless + 1
                if objective <= run.best:
                    run.best, run.model, run.kept, run.losses = objective, model, kept, losses
            if i >= final:
                # Single precision: sums of parts of a weight carry rounding.
                last = seen.setdefault(kept.astype(np.float32).tobytes(), i)
                if last < i:
                    run.stopped = "fixed point" if last == i - 1 else "cycle"
                    break
                if fruitless == PATIENCE:
                    run.stopped = "no gain"
                    break
            if i < self.max_iter:
                model = rows.fit(deepcopy(model) if self.warm_start else clone(model), kept)
        return run

    def _warn(self, rows: _Rows, run: _Run) -> None:
        if run.stopped == "max_iter":
            warn_user(
                ConvergenceWarning,
                f"the kept rows still change after max_iter={self.max_iter} refits; the best fit "
                "so far is returned. Raise max_iter, or set tol above 0.",
            )
        if run.stopped == "exact fit":
            warn_user(
                EvidenceWarning,
                "the estimator fits every row exactly, so that no row stands out, and nothing was "
                "trimmed. If some rows should be wrong, it is too flexible: regularise it.",
            )
        held = rows.held(run.kept, self.keep, self.class_balance)
        if held:
            warn_user(
                EvidenceWarning,
                f"rows of class(es) {', '.join(held)} fit worse than others, and the class would "
                f"shrink further if class_balance={self.class_balance} did not hold it. Rare "
                "classes fit badly without being wrong: raise class_balance or keep; lower it if "
                "most labels of the class are wrong.",
            )


def _read_labels(y: Any, n_rows: int) -> NDArray[Any]:
    """Check the labels of a classifier: one for each row, of any type, none missing."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None: pass one label a row.")
    shape = np.asarray(y).shape
    if len(shape) != 1 and shape != (n_rows, 1):
        raise DataError(f"y must be one label a row; got an array of shape {shape}.")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if labels.size != n_rows:
        raise DataError(
            f"X and y have inconsistent numbers of rows: X has {n_rows}, y has {labels.size}. "
            "Pass one label in y for each row of X."
        )
    for row, label in enumerate(labels.tolist()):
        infinite = isinstance(label, float) and math.isinf(label)
        if infinite or is_missing(label):
            raise DataError(
                f"Input y contains {'infinity' if infinite else 'NaN'}.\ny is {labels[row]} in row "
                f"{row} (counting from 0). Drop such rows."
            )
    return labels


def _weight_names(model: Any) -> list[str]:
    """Name the fit parameters by which an estimator, or steps of a pipeline, take weights."""
    if not hasattr(model, "steps"):
        return ["sample_weight"] * has_fit_parameter(model, "sample_weight")
    steps = [(name, step) for name, step in model.steps if hasattr(step, "fit")]
    return [f"{name}__{inner}" for name, step in steps for inner in _weight_names(step)]


# --- the rounds -----------------------------------------------------------------------------------


@dataclass
class _Run:
    """The rounds from one start, and the best fit among them."""

    objective: list[float] = field(default_factory=list)
    stopped: str = "max_iter"
    best: float = math.inf
    model: Any = None
    kept: Floats = field(default_factory=lambda: np.empty(0))
    losses: Floats = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True)
class _Rows:
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
        left = mass - float(kept.sum())
        if left > ROUNDING * mass:
            kept += _keep_smallest(losses, left, self.weights - kept)
        return kept

    def held(self, kept: Floats, fraction: float, balance: float) -> list[str]:
        """Name the classes of which nothing is kept but the floor, unless that was asked for."""
        if self.codes is None or balance == 1.0:
            return []
        floors, masses = self._floors(fraction, balance), np.bincount(self.codes, self.weights)
        full = np.bincount(self.codes, kept) > floors * (1 + ROUNDING)
        return [repr(name) for name in np.unique(self.y)[~full & (floors < masses)].tolist()]

    def _floors(self, fraction: float, balance: float) -> Floats:
        """Mass of each class that is kept whatever its losses are."""
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
            with np.errstate(over="ignore"):  # a row beyond all numbers is the worst of all
                predicted = np.asarray(model.predict(self.X), dtype=np.float64).ravel()
                errors = np.abs(self.y.astype(np.float64) - predicted)
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


def _check_parameters(trimmed: Any) -> None:
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
    for name in ("keep", "keep_start") if growing else ("keep",):
        allowed = "a number above 0 and at most 1"
        read_number(name, getattr(trimmed, name), lambda share: 0 < share <= 1, allowed)
    allowed = "a number from 0 to 1"
    read_number("class_balance", trimmed.class_balance, lambda share: 0 <= share <= 1, allowed)
    check_limits(trimmed.max_iter, trimmed.tol)
    if trimmed.n_starts != 0:
        read_count("n_starts", trimmed.n_starts, otherwise="0 or ")
    if trimmed.max_iter <= (read_count("growth", trimmed.growth) if growing else 0):
        raise ParameterError(
            f"max_iter={trimmed.max_iter} leaves no refit at the final keep; it must be above 0, "
            f"and with keep_start above growth={trimmed.growth}."
        )
