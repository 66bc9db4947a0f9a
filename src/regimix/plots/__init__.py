"""Plots of fitted models, in scikit-learn's ``Display`` convention.

Each display is made by ``from_estimator`` or ``from_mixture``, stores the numbers that it shows,
and draws them with ``plot(ax=None)``; ``ax_`` and ``figure_`` are for what you want to change.
matplotlib (``pip install 'regimix[plot]'``) is loaded when the first plot is drawn, and nothing is
loaded for a name that is not used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regimix.plots.coefficients import CoefficientsDisplay
    from regimix.plots.convergence import ConvergenceDisplay
    from regimix.plots.qq import QQDisplay
    from regimix.plots.regimes import RegimesDisplay
    from regimix.plots.residuals import ResidualsDisplay
    from regimix.plots.selection import SelectionDisplay

__all__ = [
    "CoefficientsDisplay",
    "ConvergenceDisplay",
    "QQDisplay",
    "RegimesDisplay",
    "ResidualsDisplay",
    "SelectionDisplay",
]


def __getattr__(name: str) -> Any:
    """Import a display when it is first asked for."""
    if name not in __all__:
        message = f"module 'regimix.plots' has no attribute {name!r}"
        raise AttributeError(message)
    home = import_module(f"regimix.plots.{name.removesuffix('Display').lower()}")
    globals()[name] = getattr(home, name)
    return globals()[name]


def __dir__() -> list[str]:
    """Return the public names."""
    return list(__all__)
