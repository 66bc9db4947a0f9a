"""How much is kept: from a fraction to a mass of rows. Which rows: ``engines.select``."""

from __future__ import annotations

import math
from typing import Any

from regimix.data.problem import Frame
from regimix.errors import ParameterError

__all__ = ["kept_mass"]

# 0.29 * 100 is 28.999999999999996 in floating point, and means 29.
ROUNDING = 1e-12


def kept_mass(keep: Any, problem: Frame) -> float:
    """Turn a keep fraction into the mass of rows to keep.

    The paper's ``floor(tau n)`` rows; with weights the floor of ``tau`` times their sum if they are
    whole numbers (a weight of 3 equals three copies), that product itself otherwise.
    """
    if not _is_fraction(keep):
        raise ParameterError(
            f"keep must be a fraction above 0 and at most 1; got {keep!r}. keep=0.75 trims the "
            "worst quarter of the rows."
        )
    mass = float(keep) * problem.mass
    if problem.counts:
        mass = float(math.floor(mass * (1 + ROUNDING)))
        if mass < 1:
            raise ParameterError(
                f"keep={keep!r} of {problem.mass:g} rows keeps no row at all; the smallest useful "
                f"value here is {1 / problem.mass:.3g}."
            )
    return mass


def _is_fraction(keep: Any) -> bool:
    if isinstance(keep, (bool, str)):
        return False
    try:
        return 0.0 < float(keep) <= 1.0
    except (TypeError, ValueError):
        return False
