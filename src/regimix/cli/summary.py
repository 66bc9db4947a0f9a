"""What was found, as plain data: what ``--json`` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from regimix.cli.scanned import seen_rows
from regimix.result.show import rows_labelled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regimix.cli.scanned import Scanned
    from regimix.result.mixture import Mixture
    from regimix.tables import DataSet

__all__ = ["SCHEMA", "farthest_outliers", "summary"]

# Raised when a field changes its meaning or goes; new fields do not raise it.
SCHEMA = 1
# Outliers in the summary; the file of --labels has all of them.
MOST_OUTLIERS = 100


def summary(mixture: Mixture, data: DataSet | Scanned, **more: Any) -> dict[str, Any]:
    """Put everything that a program may ask of a fit into dictionaries, lists and numbers.

    ``docs/cli.rst`` tells what each field means. Numbers that are not finite are None.
    """
    import regimix

    plain: dict[str, Any] = _plain(
        {
            "schema": SCHEMA,
            "regimix": regimix.__version__,
            "source": data.source,
            "target": data.target_name,
            "features": list(data.feature_names),
            "rows": {"read": data.n_read, "dropped": data.n_dropped, "used": data.n_rows},
            "regimes": [_regime(mixture, j) for j in range(mixture.n_components)],
            "outliers": {
                "share": mixture.outlier_share,
                "rows": rows_labelled(mixture, -1),
                "key": data.key_name,
                "farthest": farthest_outliers(mixture, data, MOST_OUTLIERS),
            },
            "found": not mixture.found_nothing,
            "evidence": mixture.evidence,
            "stopped": mixture.stopped,
            "seconds": sum(mixture.timings.values()),
            "seed": mixture.seed,
            **more,
            "notes": list(data.notes),
        }
    )
    return plain


def _regime(mixture: Mixture, j: int) -> dict[str, Any]:
    inference, d = mixture.inference, len(mixture.feature_names)
    errors = np.full(d, np.nan) if inference is None else inference.standard_error[j]
    intercept_error = np.nan if inference is None else inference.intercept_error[j]
    terms = zip(mixture.feature_names, mixture.coef[j], errors, strict=True)
    return {
        "label": j,
        "share": mixture.weights[j],
        "rows": rows_labelled(mixture, j),
        "noise": mixture.scale[j],
        "r_squared": None if inference is None else inference.r_squared[j],
        "intercept": {"value": mixture.intercept[j], "std_err": intercept_error},
        "terms": [
            {"feature": name, "value": value, "std_err": error} for name, value, error in terms
        ],
    }


def farthest_outliers(mixture: Mixture, data: DataSet | Scanned, most: int) -> list[dict[str, Any]]:
    """Describe the outliers that are farthest from every regime, farthest first."""
    seen = seen_rows(mixture, data)
    rows = np.empty(0, np.intp) if seen is None else np.flatnonzero(seen.labels < 0)
    if seen is None or not rows.size:
        return []
    means = mixture.predict_components(seen.X[rows])
    residuals = seen.y[rows, None] - means
    deviations = _deviations(residuals, mixture.scale)
    nearest = np.argmin(np.abs(deviations), axis=1)
    each = np.arange(rows.size)
    order = np.argsort(-np.abs(deviations[each, nearest]), kind="stable")[:most]
    exact = mixture.scale[nearest] == 0
    return [
        {
            "key": seen.keys[rows[i]],
            "value": seen.y[rows[i]],
            "nearest": int(nearest[i]),
            "predicted": means[i, nearest[i]],
            "residual": residuals[i, nearest[i]],
            # Without noise there is nothing to count in.
            "deviations": None if exact[i] else deviations[i, nearest[i]],
        }
        for i in order
    ]


def _deviations(residuals: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return residuals in units of noise; components without noise count in the smallest other."""
    noisy = scale[scale > 0]
    units = np.where(scale > 0, scale, noisy.min() if noisy.size else 1.0)
    return np.asarray(residuals / units)


def _plain(value: Any) -> Any:
    """Turn numpy's numbers into Python's, and those that JSON does not know into None."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
