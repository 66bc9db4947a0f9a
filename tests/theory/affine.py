"""Definition 3 spelt out, and rows to try it on."""

import numpy as np


def affine_by_definition(own, other, v1, v2, slack):
    """Return the largest V of the definition, V by V."""
    falling = sorted(np.abs(own @ v1), reverse=True)
    rising = sorted(np.abs(other @ v2))
    largest = 0
    for v in range(1, len(rising) + 1):
        if v + slack <= len(falling) and falling[v + slack - 1] >= rising[v - 1]:
            largest = v
    return largest


def two_groups(seed, d, n_own=40, n_other=60):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_own, d)), rng.standard_normal((n_other, d)), rng
