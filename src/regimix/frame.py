"""What solvers may know of a table: its size and its units. The rows are with the engine.

Standardised units: ``z = (x - center) / scale`` with a leading constant column when there is an
intercept, and ``(y - target_center) / target_scale``. Solvers work with coefficients ``theta`` in
those units; ``to_user`` and ``from_user`` translate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regimix.errors import DataError, ParameterError

__all__ = ["Frame"]

Floats = NDArray[np.float64]

# Coefficients that a user starts from, standardised: beyond this, squared residuals may overflow.
LARGEST_THETA = 1e60


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Size and units of a checked table, wherever its rows are.

    Attributes
    ----------
    n_rows : int
        Rows of the table, absent ones included.
    n_present : int
        Rows of positive weight.
    weighted : bool
        Whether rows have weights.
    counts : bool
        Whether weights are whole numbers (or absent), so that the kept mass is whole too.
    mass : float
        Total weight, the ``n`` of every formula.
    fit_intercept : bool
    center, scale : ndarray of shape (d,)
        Units of the columns; the center is zero without an intercept.
    target_center, target_scale : float
        Units of the response.
    feature_names : tuple of str
        Names of the columns, for messages.
    distinct_response : bool
        Whether the table is large and the response alone tells its rows apart, nearly always.
    """

    n_rows: int
    n_present: int
    weighted: bool
    counts: bool
    mass: float
    fit_intercept: bool
    center: Floats
    scale: Floats
    target_center: float
    target_scale: float
    feature_names: tuple[str, ...]
    distinct_response: bool = False

    @property
    def n_features(self) -> int:
        """Columns of the user's table."""
        return int(self.scale.size)

    @property
    def n_columns(self) -> int:
        """Coefficients of one component: the features, and the constant if there is one."""
        return self.n_features + self.fit_intercept

    def raw(self, theta: Floats) -> tuple[Floats, Floats]:
        """Turn standardised coefficients into slopes on raw columns and a constant.

        The response stays standardised: ``(y - target_center) / target_scale`` is predicted by
        ``X @ slopes.T + constant``. Serves passes over X that must not standardise it.

        Parameters
        ----------
        theta : ndarray of shape (..., n_columns)

        Returns
        -------
        slopes : ndarray of shape (..., d)
        constant : ndarray of shape (...)
        """
        first = int(self.fit_intercept)
        slopes = theta[..., first:] / self.scale
        constant = -(slopes @ self.center) if first else np.zeros(theta.shape[:-1])
        if first:
            constant = constant + theta[..., 0]
        return slopes, constant

    def to_user(self, theta: Floats) -> tuple[Floats, Floats]:
        """Translate standardised coefficients into the user's units.

        Returns
        -------
        coef : ndarray of shape (..., d)
        intercept : ndarray of shape (...)
            Zero without an intercept.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            slopes, constant = self.raw(theta)
            coef = slopes * self.target_scale
            intercept = np.asarray(constant * self.target_scale + self.target_center)
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise DataError(
                "a coefficient is too large to be written as a number in the units of this table "
                f"(response of size {self.target_scale:.3g}, columns of size "
                f"{self.scale.min():.3g} to {self.scale.max():.3g}); rescale the columns or the "
                "response."
            )
        return coef, intercept

    def from_user(self, coef: Floats, intercept: Floats | float = 0.0) -> Floats:
        """Translate coefficients in the user's units into standardised ones.

        Parameters
        ----------
        coef : ndarray of shape (..., d)
        intercept : ndarray of shape (...)

        Returns
        -------
        theta : ndarray of shape (..., n_columns)
        """
        coef = np.asarray(coef, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            relative = coef / self.target_scale
            theta = relative * self.scale
            if self.fit_intercept:
                first = (np.asarray(intercept) - self.target_center) / self.target_scale
                first = np.asarray(first + relative @ self.center)
                theta = np.concatenate([first[..., None], theta], axis=-1)
            usable = (np.abs(theta) <= LARGEST_THETA).all()
        if not usable:
            raise ParameterError(
                f"coefficients up to {np.abs(coef).max():.3g} (intercept up to "
                f"{np.abs(intercept).max():.3g}) predict values so far from this table (response "
                f"of size {self.target_scale:.3g}) that their squares overflow; pass coefficients "
                "in the units of the table."
            )
        return theta

    def residual_floor(self, theta: Floats) -> Floats:
        """Bound the rounding error of a typical residual, for each of a batch of coefficients.

        Residuals below it are rounding noise: they count as equal, so that the kept set of an
        exact fit is decided by row order and not by the last bit.
        """
        first = int(self.fit_intercept)
        digits = 1.0 + np.abs(self.center) / self.scale
        size = (
            1.0 + np.abs(theta[..., first:]) @ digits + abs(self.target_center / self.target_scale)
        )
        if first:
            size = size + np.abs(theta[..., 0])
        precision = 4 * np.finfo(np.float64).eps * math.sqrt(max(1, self.n_columns))
        return np.asarray(precision * size)
