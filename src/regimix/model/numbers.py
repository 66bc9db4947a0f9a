"""The chosen numbers of the model, each with its unit and its reason.

``benchmarks/ablations.py`` changes them one at a time and writes down what gets worse.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelNumbers:
    """What the score assumes, and when EM ends."""

    # --- the prior ---
    # Nats that a regime must gain: a priori each is 20 times less likely than none.
    regime_gain: float = 3.0
    # Variances of what all slopes together, and the intercept, predict; the spread of y is one.
    slopes_variance: float = 2.0
    intercept_variance: float = 4.0
    # Smallest noise, as a share of the spread of y, where y is not rounded.
    smallest_noise: float = 1e-7
    # The background is as wide as y is between this quantile and its mirror image, and there the
    # rounding of y is looked for: a few values far away would hide it.
    bulk_level: float = 0.1
    # Degrees of freedom of the background: tails that reach any outlier.
    background_degrees: float = 2.0
    # Share of the range of y that seven written digits leave open: smaller gaps are no gaps.
    written_digits: float = 1e-6
    # A grid of y finer than this share of its range is none.
    finest_grid: float = 5e-5
    # Values of a response that a relation given these values tells apart.
    values_apart: int = 100
    # --- whitening ---
    # A row longer than this many times the median length is shrunk to that length: few far rows
    # must not set the units. Gaussian rows of three or more columns practically never are.
    far: float = 2.0
    # A whitened value or a response, in units of its spread, is cut here: its square keeps four
    # digits of those of the bulk.
    farthest: float = 1e6
    # --- EM ---
    # Nats: rounds end when all further ones are foreseen to gain less.
    settled: float = 0.05
    # Rows per coefficient that are many: all rows of a component then know their regime equally
    # well, message passing does not interpolate, and a relation may have so many coefficients.
    many_rows: float = 10.0
    # Rounds of EM at most.
    rounds: int = 30
    # Rows with a smaller responsibility do not enter the sums of a component.
    member: float = 1e-4
    # Rounds of small inner iterations: whitening, the scale of the background, the likeliest noise.
    inner_rounds: int = 3
    # EM on all rows: what may be left to gain, for each square root of a row.
    polish_left: float = 1e-3
    # Share of its information that a component may miss and still be clear of the others; and the
    # share of an error that a round of EM takes away at least.
    clear: float = 0.1
    # Numbers that the sums of one pass may hold (512 MiB).
    largest_sums: int = 1 << 26
    # --- one relation in place of regimes ---
    # The tip of the Laplace law is rounded over this share of its scale: it has a derivative then.
    tip: float = 0.05
    # Logarithm of the largest ratio of noise above a relation to noise in between, or of that to
    # noise below: exponential noise is 20 to one.
    most_skewed: float = 3.0
    # Deviation of the logarithm of the dispersion of counts, a priori.
    dispersion: float = 3.0
    # --- arithmetic ---
    # Share of the largest value below which a number is rounding.
    rounding: float = 1e-12
    # The same for products of a matrix with itself, and the ridge that keeps them solvable.
    gram_rounding: float = 1e-10


MODEL = ModelNumbers()
