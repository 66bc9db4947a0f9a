"""Which rows are corrupted, and what is added to their responses."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regimix.errors import Message, ParameterError, Setting
from regimix.synth.features import random_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "CORRUPTED_ROWS",
    "CORRUPTION_KINDS",
    "Errors",
    "choose_rows",
    "corruption_order",
    "draw_errors",
    "ratio_of",
]

CORRUPTION_KINDS = ("gross", "same-scale", "adversarial")
CORRUPTED_ROWS = ("random", "leverage")

# A gross error's standard deviation in units of that of the clean responses: large enough that
# most corrupted rows leave the range of the others.
GROSS_FACTOR = 10.0


@dataclass(frozen=True, eq=False)
class Errors:
    """What was added to each response (n,), and the model that adversarial errors lead to."""

    added: NDArray[np.float64]
    wrong_coef: NDArray[np.float64] | None = None
    wrong_intercept: float | None = None


def corruption_order(
    rng: np.random.Generator,
    X: NDArray[np.float64],
    component: NDArray[np.int64],
    corrupted_rows: str,
) -> NDArray[np.int64]:
    """Return all rows in the order in which they are corrupted.

    ``leverage`` takes the longest rows of X first. ``random`` draws rows at random but evenly:
    every component loses the same share up to rounding, so that τ*_(j) does not vary by chance.
    """
    if corrupted_rows == "leverage":
        lengths = np.einsum("nd,nd->n", X, X)
        return np.argsort(-lengths, kind="stable")
    shuffled = rng.permutation(len(component))
    by_component = shuffled[np.argsort(component[shuffled], kind="stable")]
    counts = np.bincount(component)
    position = np.arange(len(component)) - np.repeat(np.cumsum(counts) - counts, counts)
    # Webster's rule as a queue: the k-th row of a component of size s comes at (k + ½)/s.
    turn = (position + 0.5) / np.repeat(counts, counts)
    return by_component[np.lexsort((rng.random(len(turn)), turn))]


def choose_rows(
    order: NDArray[np.int64],
    component: NDArray[np.int64],
    share: float,
    ratio: float | None,
) -> NDArray[np.bool_]:
    """Mark the first rows of ``order`` as corrupted, as many as a share or γ* asks for."""
    n_samples = len(order)
    in_order = component[order]
    n_components = int(component.max()) + 1

    def ratio_after(n_corrupted: int) -> float:
        return ratio_of(n_corrupted, in_order[n_corrupted:], n_components)

    # Corrupting a row raises γ* twice over, by its own count and by what it takes from the
    # smallest component, so γ* grows along the order and bisection solves its definition.
    most = bisect_left(range(n_samples + 1), np.inf, key=ratio_after) - 1
    if ratio is None:
        n_corrupted = round(share * n_samples)
        in_reach, wish = n_corrupted <= most, Setting("corruption", share)
    else:
        above = bisect_right(range(most + 1), ratio, key=ratio_after)
        nearest = (above - 1, min(above, most))
        n_corrupted = min(nearest, key=lambda rows: abs(ratio_after(rows) - ratio))
        in_reach, wish = ratio <= ratio_after(most), Setting("corruption_ratio", ratio)
    if not in_reach:
        message = Message(
            wish,
            f" would leave a component without a clean row: of these {n_samples} rows at most "
            f"{most} can be corrupted, a share of {most / n_samples:.6g} or a γ* of "
            f"{ratio_after(most):.6g}. Ask for less, raise ",
            Setting("n_samples"),
            " or balance the ",
            Setting("weights"),
            ".",
        )
        raise ParameterError(message)
    corrupted = np.zeros(n_samples, dtype=np.bool_)
    corrupted[order[:n_corrupted]] = True
    return corrupted


def ratio_of(n_corrupted: int, clean: NDArray[np.int64], n_components: int) -> float:
    """Return γ* = |R*| / (n τ*_min); infinite where a component has no clean row left."""
    smallest = np.bincount(clean, minlength=n_components).min()
    return n_corrupted / int(smallest) if smallest else np.inf


def draw_errors(
    rng: np.random.Generator,
    kind: str,
    scale: float | None,
    X: NDArray[np.float64],
    clean: NDArray[np.float64],
    coef: NDArray[np.float64],
    intercept: NDArray[np.float64],
    component: NDArray[np.int64],
    corrupted: NDArray[np.bool_],
) -> Errors:
    """Return what corruption of the given kind adds to the clean responses of corrupted rows."""
    added = np.zeros(len(clean))
    if kind == "adversarial":
        wrong_coef, wrong_intercept = _wrong_model(rng, coef), float(intercept.mean())
        origin = component[corrupted]
        added[corrupted] = np.einsum("nd,nd->n", X[corrupted], wrong_coef - coef[origin])
        added[corrupted] += wrong_intercept - intercept[origin]
        return Errors(added, wrong_coef, wrong_intercept)
    if not corrupted.any():
        return Errors(added)
    # Drawn for all rows, used on the corrupted: a row keeps its error when more are corrupted.
    draws = rng.standard_normal(len(clean))
    if kind == "same-scale":
        draws = clean.mean() + _spread(clean) * draws - clean
    else:
        draws *= GROSS_FACTOR * _spread(clean) if scale is None else scale
    added[corrupted] = draws[corrupted]
    return Errors(added)


def _wrong_model(rng: np.random.Generator, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a model at least R = max ‖θ*_(j)‖ (1 if all are zero) from every true one.

    The direction is random; the norm is the smallest from R up that keeps the distance. Along
    the ray s·v, ‖s v − θ‖² ≥ R² holds beyond the larger root a + √(a² + R² − ‖θ‖²), a = ⟨v, θ⟩,
    which is at most 2R; in many dimensions a is small and the wrong model has norm about R.
    """
    norms = np.linalg.norm(coef, axis=1)
    radius = float(norms.max()) or 1.0
    direction: NDArray[np.float64] = random_frame(rng, 1, coef.shape[1])[0]
    along = coef @ direction
    roots = along + np.sqrt(along**2 + radius**2 - norms**2)
    return direction * max(radius, float(roots.max()))


def _spread(clean: NDArray[np.float64]) -> float:
    """Return the standard deviation of the clean responses."""
    spread = float(clean.std())
    if spread == 0:
        message = (
            "the clean responses are all the same, so their spread gives no scale for corrupted "
            "ones. Give noise or components that are not zero, or corruption_kind='gross' with "
            "a corruption_scale."
        )
        raise ParameterError(message)
    return spread
