"""The chosen numbers of the search, each with its unit and its reason.

They say where proposals come from and how long they are pursued; what is accepted, the score alone
says. ``benchmarks/ablations.py`` changes them one at a time and writes down what gets worse.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchNumbers:
    """Budgets, sizes of samples, and thresholds of the search."""

    # --- how long ---
    # Searches go on until the best score has been reached so many times, and are at most so many,
    # of so many numbers of the table in all: a large table is searched once.
    agreeing_searches: int = 3
    most_searches: int = 12
    searched_numbers: int = 50_000
    # Nats: scores that are nearer are the same answer.
    same_score: float = 0.5
    # Rounds of EM of a model that is only compared with others.
    short_rounds: int = 5
    # Turns of what ends by itself, assignments to the nearest regime, EM or message passing: ties
    # go on for ever.
    turns: int = 400
    # What is left when a pass, an assignment or a likelihood has converged: a relative error, a
    # share of the rows, nats.
    converged: float = 1e-5
    # --- rows ---
    # A first stage has so many rows, and so many for each coefficient; the next has so many times
    # as many.
    first_rows: int = 1500
    rows_per_coefficient: int = 50
    growth: int = 2
    # --- moves ---
    # A component wider than this share of the spread of y may be several.
    blur: float = 0.25
    # Pairs of components that are searched again, most doubtful first.
    pairs_tried: int = 15
    # Pairs that are refitted as one, and components that are left out, cheapest first.
    merges_tried: int = 3
    # Degrees of freedom of heavy tails that are tried.
    degrees: tuple[float, ...] = (3.0, 6.0, 12.0)
    # --- joint search ---
    # Starts; and those of a pair or a split, which are also a group that shares matrix products.
    starts: int = 48
    few_starts: int = 16
    # Rounds before each cut of the field, and the share of starts that survives it.
    joint_rounds: tuple[int, ...] = (6, 8, 12)
    joint_survivors: tuple[float, ...] = (0.4, 0.3)
    # Values farther from the middle, in units of the spread, are cut: their squares, added up in
    # single precision, still leave digits to the bulk.
    reach: float = 1e3
    # Up to so many features no projection is needed.
    raw_width: int = 12
    # --- subspace ---
    # Bounded functions level off where the squared response is this many times its median.
    clip: float = 4.0
    # Rows are brought to equal length where the ratio of the 95 % quantile of their length to the
    # median exceeds that of Gaussian rows by this factor.
    length_spread: float = 1.1
    # Spectra under permuted responses: the largest of a few is level enough for a lower bound on
    # the number of directions, and each costs as much as the spectrum itself. Where the question
    # is only whether there is any, most often the first few answer it.
    permutations: int = 4
    more_permutations: int = 12
    # Ratio of neighbouring eigenvalues from which there is a gap between them.
    clear_gap: float = 1.5
    # Filter: more than this many times the rows that the tail of a squared normal, stretched by
    # this factor, allows (and so many more) are too many.
    tail_factor: float = 2.0
    tail_stretch: float = 1.25
    tail_rows: float = 4.0
    # --- message passing ---
    damping: float = 0.7
    # Part of the other rows whose response is flat rather than normal.
    tail: float = 0.1
    # Noise that passes from no information assume, with half of the rows.
    zero_noise: tuple[float, ...] = (0.005, 0.02, 0.1, 0.4)
    # --- one line (least trimmed squares) ---
    # Rounds that tell promising starts from the rest (FAST-LTS's observation); how many are
    # promising, and how many rounds near them may bring nothing.
    first_rounds: int = 2
    promising: int = 8
    # Share of the rows nearest to a start that say how wide it is.
    nearest_share: float = 0.25
    # The largest of the nested samples.
    largest_sample: int = 250_000
    # --- every row in a regime ---
    # Numbers that are worked on at a time.
    batch_numbers: int = 4_000_000
    # A component narrower than this share of y has no noise to speak of.
    noiseless: float = 1e-4


SEARCH = SearchNumbers()
