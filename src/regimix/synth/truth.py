"""What the generator returns: the data, and everything that is true about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MLRCData", "Truth"]


@dataclass(frozen=True, eq=False)
class Truth:
    """The whole truth about one data set, in the paper's quantities (section "Problem Setup").

    Attributes
    ----------
    coef : ndarray of shape (m, d)
        The linear models θ*_(j).
    intercept : ndarray of shape (m,)
        Their intercepts; zeros in the paper's model.
    component : ndarray of shape (n,)
        The component each row was drawn from (S_(j)), corrupted or not.
    labels : ndarray of shape (n,)
        ``component`` with -1 on corrupted rows.
    corrupted : ndarray of shape (n,)
        Which rows are corrupted (R*).
    corruption : ndarray of shape (n,)
        What was added to each response (r_i); exactly zero on clean rows.
    clean_fraction : ndarray of shape (m,)
        Clean rows of each component as a share of all n rows (τ*_(j)).
    clean_fraction_min : float
        The smallest of them (τ*_min).
    corruption_ratio : float
        Corrupted rows over the clean rows of the smallest component (γ*).
    separation : float
        Q of Definition 1 for ``coef``; infinite for one component.
    local_separation : ndarray of shape (m,)
        Q_j of Definition 1 for ``coef``.
    noise : ndarray of shape (m,)
        Standard deviation of the additive noise in each component.
    covariances : ndarray of shape (m, d, d) or None
        The feature covariance of each component where every component has its own, else None.
    wrong_coef : ndarray of shape (d,) or None
        The model that the corrupted rows agree on when the corruption is adversarial.
    wrong_intercept : float or None
        Its intercept.
    """

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    component: NDArray[np.int64]
    labels: NDArray[np.int64]
    corrupted: NDArray[np.bool_]
    corruption: NDArray[np.float64]
    clean_fraction: NDArray[np.float64]
    clean_fraction_min: float
    corruption_ratio: float
    separation: float
    local_separation: NDArray[np.float64]
    noise: NDArray[np.float64]
    covariances: NDArray[np.float64] | None = None
    wrong_coef: NDArray[np.float64] | None = None
    wrong_intercept: float | None = None


@dataclass(frozen=True, eq=False)
class MLRCData:
    """One data set; unpacks as ``X, y, truth``.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Features.
    y : ndarray of shape (n,)
        Responses, the corrupted ones among them.
    truth : Truth
        Everything that is true about them.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    truth: Truth

    def __iter__(self) -> Iterator[Any]:
        yield self.X
        yield self.y
        yield self.truth
