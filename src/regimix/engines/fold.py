"""Adding up what blocks of rows say, in the order of the blocks.

A reduction over all rows is a function of one block; its results are small and are added. In what
order, and on how many threads or machines, is not the function's business; the order of the
additions is fixed, so that the answer does not depend on who was ready first.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, TypeVar

__all__ = ["Nothing", "combine", "combine_all"]

T = TypeVar("T")


class Nothing:
    """What a block without rows says."""


def combine(left: Any, right: Any) -> Any:
    """Add two results: numbers, arrays, lists (which grow), or tuples of these, part by part."""
    if isinstance(left, Nothing) or isinstance(right, Nothing):
        return right if isinstance(left, Nothing) else left
    if isinstance(left, tuple):
        return tuple(combine(a, b) for a, b in zip(left, right, strict=True))
    return None if left is None else left + right


def combine_all(results: Iterable[T]) -> T:
    """Add results in their order."""
    return reduce(combine, results)
