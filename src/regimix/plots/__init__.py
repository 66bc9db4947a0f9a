"""Plots of fitted models, in scikit-learn's ``Display`` convention.

Each display is made by ``from_estimator`` or ``from_mixture``, stores the numbers that it shows,
and draws them with ``plot(ax=None)``; ``ax_`` and ``figure_`` are for what you want to change.
matplotlib (``pip install 'regimix[plot]'``) is loaded when the first plot is drawn, and nothing is
loaded for a name that is not used. The charts of the report are not here but in ``regimix.report``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regimix.plots.model_displays import (
        CoefficientsDisplay,
        ComparisonDisplay,
        ConvergenceDisplay,
        ProfileDisplay,
        SelectionDisplay,
        StabilityDisplay,
    )
    from regimix.plots.row_displays import (
        OverviewDisplay,
        QQDisplay,
        RegimesDisplay,
        ResidualsDisplay,
    )

__all__ = [
    "CoefficientsDisplay",
    "ComparisonDisplay",
    "ConvergenceDisplay",
    "OverviewDisplay",
    "ProfileDisplay",
    "QQDisplay",
    "RegimesDisplay",
    "ResidualsDisplay",
    "SelectionDisplay",
    "StabilityDisplay",
]

_OF_ROWS = ("OverviewDisplay", "QQDisplay", "RegimesDisplay", "ResidualsDisplay")


def __getattr__(name: str) -> Any:
    """Import a display when it is asked for."""
    if name not in __all__:
        message = f"module 'regimix.plots' has no attribute {name!r}"
        raise AttributeError(message)
    home = "row_displays" if name in _OF_ROWS else "model_displays"
    return getattr(import_module(f"regimix.plots.{home}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return list(__all__)
