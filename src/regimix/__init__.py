"""Find several linear regimes in one table, label every row, and flag the outliers.

The public names are resolved when they are first used, so that ``import regimix`` stays quick and
loads scikit-learn only for those who ask for an estimator. Errors and warnings are in
`regimix.errors`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regimix import (
        datasets,
        errors,
        metrics,
        plots,
        report,
        store,
        synth,
        tables,
        theory,
    )
    from regimix.estimators.meta import TrimmedEstimator
    from regimix.estimators.mixture import MixedLinearRegression
    from regimix.estimators.trimmed import TrimmedRegressor
    from regimix.result.global_ilts import global_ilts
    from regimix.result.mixture import Mixture
    from regimix.store import load, save
    from regimix.tables.parquet import scan_parquet
    from regimix.trimmed.gradient import gd_ilts
    from regimix.trimmed.ilts import TrimmedFit, ilts

__version__: str
__all__ = [
    "MixedLinearRegression",
    "Mixture",
    "TrimmedEstimator",
    "TrimmedFit",
    "TrimmedRegressor",
    "__version__",
    "datasets",
    "errors",
    "gd_ilts",
    "global_ilts",
    "ilts",
    "load",
    "metrics",
    "plots",
    "report",
    "save",
    "scan_parquet",
    "store",
    "synth",
    "tables",
    "theory",
]

# Each public name that is not a module, and the module that defines it.
_HOME = {
    "MixedLinearRegression": "regimix.estimators.mixture",
    "Mixture": "regimix.result.mixture",
    "TrimmedEstimator": "regimix.estimators.meta",
    "TrimmedFit": "regimix.trimmed.ilts",
    "TrimmedRegressor": "regimix.estimators.trimmed",
    "gd_ilts": "regimix.trimmed.gradient",
    "global_ilts": "regimix.result.global_ilts",
    "ilts": "regimix.trimmed.ilts",
    "load": "regimix.store",
    "save": "regimix.store",
    "scan_parquet": "regimix.tables.parquet",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in __all__:
        message = f"module 'regimix' has no attribute {name!r}"
        raise AttributeError(message)
    value: Any
    if name == "__version__":
        value = import_module("importlib.metadata").version("regimix")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        value = import_module(f"regimix.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return list(__all__)
