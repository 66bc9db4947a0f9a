"""What the plots of rows have in common: a fitted model's view of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from regimix.data.validation import Table, read_target
from regimix.errors import DataError, ParameterError
from regimix.model.laws import NoiseLaw
from regimix.result.mixture import Mixture
from regimix.search.settings import read_count
from regimix.trimmed.reweight import CUTOFF

__all__ = [
    "RowView",
    "contrast",
    "draw",
    "find_mixture",
    "last_step",
    "mixture_of",
    "positive_scale",
    "rows_of_estimator",
    "rows_of_mixture",
]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

# A plot shows a few thousand points; more rows than this would not change what it says. Of wide
# tables fewer are taken, so that a plot never needs much memory.
MOST_ROWS, FEWEST_ROWS, MOST_NUMBERS = 100_000, 5_000, 20_000_000
# Residuals smaller than this share of the spread of y are rounding, not noise.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class RowView:
    """Rows as a model sees them."""

    X: NDArray[Any]
    y: Floats
    labels: Labels  # the regime of each row, -1 for outliers
    nearest: Labels  # the likeliest regime of each row, outliers included
    means: Floats  # what that regime predicts
    coef: Floats  # of the regimes, (m, d)
    intercept: Floats
    scale: Floats
    cut: Floats  # rows further than so many scales from their regime are outliers; may be infinite
    feature_names: tuple[str, ...]
    target_name: str
    n_rows: int  # rows of the table that these were drawn from

    @property
    def residuals(self) -> Floats:
        """Distance of each response from what its nearest regime predicts, (n,)."""
        return self.y - self.means

    @property
    def standardised(self) -> Floats:
        """Residuals in units of the noise of their regime, (n,)."""
        return self.residuals / positive_scale(self.scale, self.y)[self.nearest]


def positive_scale(scale: Floats, y: Floats) -> Floats:
    """Noise levels to divide by: those of exact fits are what rounding leaves."""
    floor = ROUNDING * (float(np.ptp(y)) or 1.0)
    return np.maximum(scale, floor)


def contrast(coef: Floats) -> Floats:
    """How far regimes differ in each coefficient, (d,); of a single regime, its size."""
    return np.asarray(np.ptp(coef, axis=0) if len(coef) > 1 else np.abs(coef[0]))


def find_mixture(estimator: Any) -> Mixture | None:
    """Return the mixture that an estimator, or the last step of a pipeline, has fitted, if any."""
    mixture = getattr(last_step(estimator), "mixture_", None)
    return mixture if isinstance(mixture, Mixture) else None


def mixture_of(estimator: Any) -> Mixture:
    """Return the mixture that an estimator has fitted; refuse one that has none."""
    return find_mixture(estimator) or _refuse(estimator, "a MixedLinearRegression")


def rows_of_estimator(estimator: Any, X: Any, y: Any) -> RowView:
    """See rows as a fitted MixedLinearRegression or TrimmedRegressor does.

    Of a pipeline, the last step is meant, and X is first transformed by the others. Without X and
    y, the excerpt that a mixture keeps of its own rows is used. Labels are those of the mixture,
    as in ``labels_``, whatever a gating says.
    """
    last = last_step(estimator)
    name = getattr(y, "name", None)
    if X is not None and last is not estimator:
        X = estimator[:-1].transform(X)
    mixture = find_mixture(last)
    if mixture is not None:
        return rows_of_mixture(mixture, X, y)
    if not hasattr(last, "inlier_mask_"):
        _refuse(estimator, "a MixedLinearRegression or a TrimmedRegressor")
    values, target, n_rows = _drawn(X, y)
    last.predict(X[:1])  # refuses other columns than those of the fit
    return _rows_of_line(last, values, target, n_rows, "y" if name is None else str(name))


def rows_of_mixture(mixture: Mixture, X: Any = None, y: Any = None) -> RowView:
    """See rows as a mixture does; without X and y, the excerpt it keeps of its own rows."""
    excerpt = mixture.excerpt
    if X is None and y is None and excerpt is not None:
        n_rows = excerpt.y.size if excerpt.complete else mixture.n_rows
        return _rows_of_regimes(mixture, excerpt.X, excerpt.y, n_rows, excerpt.labels)
    values, target, n_rows = _drawn(X, y)
    mixture.predict_components(X[:1])  # refuses other columns than those of the fit
    return _rows_of_regimes(mixture, values, target, n_rows)


def last_step(estimator: Any) -> Any:
    """Return the last step of a pipeline, or the estimator itself."""
    steps = getattr(estimator, "steps", None)
    return steps[-1][1] if steps else estimator


def _refuse(estimator: Any, wanted: str) -> NoReturn:
    raise ParameterError(
        f"the estimator must be {wanted}, fitted, or a pipeline that ends with one; got "
        f"{type(estimator).__name__}. Call fit(X, y) first; of a search over parameters, pass "
        "best_estimator_."
    )


def _drawn(X: Any, y: Any) -> tuple[NDArray[Any], Floats, int]:
    """Check rows and draw some if they are many; also say how many there were."""
    if X is None or y is None:
        raise DataError(
            "there are no rows to plot: the model keeps no excerpt of the rows it was fitted to "
            "(or only one of X and y was passed). Pass X and y."
        )
    table = Table.read(X, fewest_rows=1)
    target = read_target(y, table.n_rows)
    most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_NUMBERS // len(table.names)))
    rows = draw(table.n_rows, most)
    values = table.values[rows]
    Table(values, table.names).extent()
    return values, target[rows], table.n_rows


def draw(n_rows: int, most: int) -> NDArray[np.intp] | slice:
    """Draw at most so many rows, the same ones every time, in their order."""
    if n_rows <= read_count("max_points", most):
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def _fallen_by(law: NoiseLaw, nats: Floats) -> Floats:
    """Return the squared distance at which the kernel of a law is so many nats below zero."""
    if np.isinf(law.degrees):
        return 2 * nats
    top = law.kernel(np.zeros(1))[0]
    return np.asarray(law.degrees * np.expm1(2 * (nats + top) / (law.degrees + 1)))


def _rows_of_regimes(
    mixture: Mixture, X: NDArray[Any], y: Floats, n_rows: int, labels: Labels | None = None
) -> RowView:
    joint = mixture.log_densities(X, y)
    nearest = np.argmax(joint[:, :-1], axis=1)
    if labels is None:
        labels = mixture.assign(X, y)
    # Where labels were not simply the likeliest, a labelled row still belongs to its label.
    nearest = np.where(labels >= 0, labels, nearest)
    each = np.arange(y.size)
    means = mixture.predict_components(X)[each, nearest]
    distance = (y - means) / positive_scale(mixture.scale, y)[nearest]
    # Where the background becomes likelier than the regime, in units of the noise.
    law = NoiseLaw(mixture.noise_degrees)
    with np.errstate(invalid="ignore", over="ignore"):
        lead = joint[each, nearest] - joint[:, -1] - law.kernel(distance**2)[0]
        square = _fallen_by(law, lead)
    edge = np.sqrt(np.clip(np.nan_to_num(square, nan=np.inf), 0.0, None))
    cut = np.full(mixture.n_components, np.inf)
    for j in np.unique(nearest):
        cut[j] = np.median(edge[nearest == j])
    return RowView(
        X=X,
        y=y,
        labels=labels,
        nearest=nearest,
        means=means,
        coef=mixture.coef,
        intercept=mixture.intercept,
        scale=mixture.scale,
        cut=np.minimum(cut, mixture.cutoff),
        feature_names=mixture.feature_names,
        target_name=mixture.target_name,
        n_rows=n_rows,
    )


def _rows_of_line(line: Any, X: NDArray[Any], y: Floats, n_rows: int, target: str) -> RowView:
    """See rows as a TrimmedRegressor does: one regime, and rows beyond its cutoff."""
    means = X.astype(np.float64) @ line.coef_ + line.intercept_
    scale = np.array([line.scale_])
    inlier = np.abs(y - means) <= CUTOFF * positive_scale(scale, y)[0]
    names = getattr(line, "feature_names_in_", [f"x{i}" for i in range(X.shape[1])])
    return RowView(
        X=X,
        y=y,
        labels=np.where(inlier, 0, -1),
        nearest=np.zeros(y.size, dtype=np.int64),
        means=means,
        coef=np.atleast_2d(line.coef_),
        intercept=np.array([line.intercept_]),
        scale=scale,
        cut=np.array([CUTOFF]),
        feature_names=tuple(str(name) for name in names),
        target_name=target,
        n_rows=n_rows,
    )
