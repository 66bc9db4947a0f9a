"""The door for the generator's parameters: each check returns a clean value or refuses."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from regimix.errors import Message, ParameterError, Setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["choice", "count", "generators", "matrix", "number", "per_component"]


def count(name: str, value: object) -> int:
    """Return ``value`` as a positive integer."""
    if isinstance(value, Integral) and not _is_bool(value) and int(value) >= 1:
        return int(value)
    wanted = f" must be a positive integer, got {value!r}. Give a whole number from 1 up."
    raise ParameterError(Message(Setting(name), wanted))


def number(name: str, value: object, *, low: float, allowed: str, below: float = np.inf) -> float:
    """Return ``value`` as a float with low <= value < below; ``allowed`` says so in words."""
    if isinstance(value, Real) and not _is_bool(value) and low <= float(value) < below:
        return float(value)
    wanted = f" must be {allowed}, got {value!r}. Give a number in that range."
    raise ParameterError(Message(Setting(name), wanted))


def choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise ParameterError(Message(Setting(name), f" must be one of {words}; got {value!r}."))
    return value


def per_component(
    name: str, value: Any, n_components: int, *, low: float = -np.inf
) -> NDArray[np.float64]:
    """Return one number per component from a scalar (the same for all) or one number each."""
    values = _floats(name, value, f"a number, or {n_components} numbers, one per component")
    if values.ndim == 0:
        values = np.full(n_components, values)
    if values.shape != (n_components,):
        message = (
            f" has shape {values.shape}, but there are {n_components} components. "
            f"Give one number for all of them, or {n_components} numbers."
        )
        raise ParameterError(Message(Setting(name), message))
    if not np.isfinite(values).all() or (values < low).any():
        bound = "" if np.isneginf(low) else f" and at least {low:g}"
        wanted = f" must be finite{bound}, got {values.tolist()}. Replace the others."
        raise ParameterError(Message(Setting(name), wanted))
    return values


def matrix(name: str, value: Any, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return a finite matrix of the given shape (a copy: the truth must not change later)."""
    values = _floats(name, value, f"a matrix of shape {shape}")
    if values.shape != shape:
        message = (
            f"{name} has shape {values.shape}, but n_components={shape[0]} and "
            f"n_features={shape[1]} ask for {shape}. Change the matrix or these two numbers."
        )
        raise ParameterError(message)
    if not np.isfinite(values).all():
        message = f"{name} must be finite, got NaN or infinity. Replace those entries."
        raise ParameterError(message)
    return values


def generators(random_state: object, how_many: int) -> list[np.random.Generator]:
    """Return independent generators that all derive from ``random_state``.

    Each part of the data draws from a generator of its own, so that changing, say, the noise
    leaves the features, the models and the choice of corrupted rows as they were.
    """
    seed = random_state
    if isinstance(seed, Integral) and not _is_bool(seed) and int(seed) >= 0:
        seed = int(seed)
    elif seed is not None and not isinstance(seed, np.random.Generator):
        message = (
            " must be None, a non-negative integer or a numpy.random.Generator, "
            f"got {random_state!r}. Pass a seed such as 0, or numpy.random.default_rng(0)."
        )
        raise ParameterError(Message(Setting("random_state"), message))
    source = np.random.default_rng(seed)
    seeds = source.integers(np.iinfo(np.int64).max, size=how_many)
    return [np.random.default_rng(seed) for seed in seeds]


def _is_bool(value: object) -> bool:
    """Tell True and False from numbers, which Python's number types do not."""
    return isinstance(value, bool)


def _floats(name: str, value: Any, allowed: str) -> NDArray[np.float64]:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        message = f"{name} must be {allowed}; got {value!r}, which is not made of numbers."
        raise ParameterError(message) from None
