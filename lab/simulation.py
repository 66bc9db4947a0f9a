"""Data, starts and traces of errors that experiments share."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from regimix.synth import MLRCData, make_mlrc
from regimix.trimmed.ilts import RoundState, TrimmedFit, ilts

__all__ = [
    "RECOVERED",
    "arrival",
    "arrivals",
    "closest",
    "errors_by_round",
    "fit_from",
    "mixture",
    "responses",
    "start_at",
    "starts_at",
    "with_decoys",
]

Floats = NDArray[np.float64]

# Noiseless data are recovered to rounding or not at all; anything between these two will do.
RECOVERED = 1e-6


def mixture(rng: np.random.Generator, n: int, d: int, m: int, **options: Any) -> MLRCData:
    """Draw noiseless data of the paper's model with components of length one."""
    if not {"coef", "norms"} & options.keys():
        options["norms"] = 1.0
    return make_mlrc(n, d, m, random_state=rng, **options)


def closest(coef: Floats, j: int) -> float:
    """Distance from component j to the nearest other; twice its length if it is alone."""
    others = np.delete(coef, j, axis=0)
    if not len(others):
        return float(2 * np.linalg.norm(coef[j]))
    return float(np.linalg.norm(others - coef[j], axis=1).min())


def start_at(rng: np.random.Generator, coef: Floats, j: int, ratio: float) -> Floats:
    """Start in a random direction from component j, ``ratio`` times as far as the next one is."""
    direction = rng.standard_normal(coef.shape[1])
    return np.asarray(coef[j] + ratio * closest(coef, j) * direction / np.linalg.norm(direction))


def starts_at(rng: np.random.Generator, coef: Floats, j: int, ratio: float, count: int) -> Floats:
    """Draw several starts at the same distance from component j, (count, d)."""
    return np.stack([start_at(rng, coef, j, ratio) for _ in range(count)])


def responses(X: Floats, coef: Floats, component: NDArray[np.int64]) -> Floats:
    """Return the noiseless responses of rows whose components are known."""
    return np.asarray(np.einsum("nd,nd->n", X, coef[component]))


def with_decoys(
    rng: np.random.Generator, data: MLRCData, j: int, start: Floats, decades: float = 8.0
) -> Floats:
    """Give the corrupted rows responses of models on the straight way from the start to θ*_(j).

    The worst that we know how to do to ILTS: at every distance from the component, down to
    10^-decades of the first, there are corrupted rows that the current estimate explains well.
    """
    truth = data.truth
    left = 10.0 ** -rng.uniform(0.0, decades, int(truth.corrupted.sum()))
    models = truth.coef[j] + left[:, None] * (start - truth.coef[j])
    y = data.y.copy()
    y[truth.corrupted] = np.einsum("nd,nd->n", data.X[truth.corrupted], models)
    return y


def fit_from(X: Floats, y: Floats, start: Floats, keep: float, **options: Any) -> TrimmedFit:
    """Run Algorithm 1 (``alg:local``) from one start."""
    return cast(TrimmedFit, ilts(X, y, start, keep=keep, **options))


def errors_by_round(
    X: Floats, y: Floats, start: Floats, keep: float, target: Floats, **options: Any
) -> tuple[list[float], TrimmedFit]:
    """Run Algorithm 1; return the distance from the target at the start and after each round."""
    errors: list[float] = []

    def note(state: RoundState) -> None:
        errors.append(float(np.linalg.norm(state.coef - target)))

    fit = fit_from(X, y, start, keep, callback=note, **options)
    return errors, fit


def arrival(theta: Floats, target: Floats) -> bool:
    """Say whether an estimate is the component, up to what rounding leaves."""
    return bool(np.linalg.norm(theta - target) <= RECOVERED * np.linalg.norm(target))


def arrivals(X: Floats, y: Floats, target: Floats, starts: Floats, keep: float) -> float:
    """Run Algorithm 1 from each row of ``starts``; return the share that ends at the target."""
    fits = cast(tuple[TrimmedFit, ...], ilts(X, y, starts, keep=keep))
    return float(np.mean([arrival(fit.coef, target) for fit in fits]))
