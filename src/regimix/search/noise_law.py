"""Which law the noise has, and whether there are outliers at all.

Heavy tails belong to a regime, not to two. A search takes noise to be normal. What it found is then
fitted with Student's law, and so is the single regime: where tails are heavy, one regime with such
noise scores higher than a narrow and a wide one on the same line.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from regimix.model.em import (
    REGIME_GAIN,
    Fitted,
    Parameters,
    evaluate,
    refit,
    responsibilities,
    squares_of,
)
from regimix.model.noise import NoiseLaw
from regimix.model.rows import Rows
from regimix.search.prune import prune
from regimix.search.selection import SAME_SCORE, Path

__all__ = ["choose_background", "choose_noise"]

# Degrees of freedom that are tried: from tails that hardly have a variance to hardly any tails.
DEGREES = (3.0, 6.0, 12.0)
# Rounds of a first look, and of those that are pursued: models that come near the best so far (in
# nats; of a single regime in place of several, which has a longer way to go, in parts of the way).
SHORT_ROUNDS = 5
ROUNDS = 30
NEAR, NEAR_WAY = 3.0, 0.1


def choose_noise(
    rows: Rows, few: Rows, path: Path, fitted: Fitted, kind: str, count: int | None
) -> Fitted:
    """Return the model with the likelier noise law, or with Student's if that was asked for.

    With a given number of components (``count``) only models of that many compete. Of many rows,
    the first ones say which law it is.
    """
    if kind == "normal":
        return fitted
    if few is not rows:
        chosen = choose_noise(few, few, path, evaluate(few, fitted.model), kind, count)
        if chosen.model.noise == fitted.model.noise:
            return fitted
        return refit(rows, chosen.model, ROUNDS)
    found = [fitted]
    if count is None and fitted.model.m > 1 and 1 in path.best:
        found.append(evaluate(rows, path.best[1].model))
    best = None if kind == "student" else fitted
    for candidate in found:
        if kind == "auto" and not _heavy(rows, candidate):
            continue
        near = NEAR + NEAR_WAY * (fitted.score - candidate.score)
        for degrees in DEGREES:
            model = replace(candidate.model, noise=NoiseLaw(degrees), factor=None)
            trial = refit(rows, model, SHORT_ROUNDS)
            if best is not None and trial.score < best.score - near:
                continue
            trial = refit(rows, trial.model, ROUNDS)
            trial = trial if count is not None else prune(rows, trial)
            # Tails are 20 times less likely to be heavy than normal, a priori.
            ahead = REGIME_GAIN if best is fitted else 0.0
            if best is None or trial.score > best.score + ahead:
                best = trial
    return fitted if best is None else best


def choose_background(
    rows: Rows, path: Path, fitted: Fitted, kind: str, count: int | None
) -> tuple[Rows, Path, Fitted]:
    """Return rows, path and model without a background, if that is the likelier model.

    Where outliers are possible, any share of them is as likely as any other a priori: next to none
    is improbable, and in a small table the farthest row is soon called one, which makes the noise
    too small. That there are none at all is the rival. Both are equally likely a priori.
    """
    clean = replace(rows, outliers=False)
    best = refit(clean, fitted.model, ROUNDS)
    if not rows.outliers or best.score < fitted.score:
        return rows, path, fitted
    others = Path({best.model.m: best})
    for m, seen in path.best.items():
        if m != best.model.m:
            others.see(refit(clean, seen.model, SHORT_ROUNDS))
    if count is None:
        likeliest = max(others.best.values(), key=lambda seen: seen.score)
        best = likeliest if likeliest.score > best.score + SAME_SCORE else best
    if np.isinf(best.model.noise.degrees):
        best = choose_noise(clean, clean, others, best, kind, count)
    return clean, others, best


def _heavy(rows: Rows, fitted: Fitted) -> bool:
    """Say whether tails are heavier than normal: whether a little of Student's law would be a gain.

    The log density of Student's law is that of the normal one plus (D² - 2 D - 1) / (4 degrees) and
    smaller terms, D the squared residual in units of the noise.
    """
    model = fitted.model
    point = Parameters.point(model.coef, model.scale, model.share, model.origin)
    point = replace(point, outlier_law=model.outlier_law, outlier_scale=model.outlier_scale)
    squares = squares_of(rows, point)[1]
    members = responsibilities(rows, point)[0][:-1] * rows.weights
    return float((members * (squares**2 - 2 * squares - 1)).sum()) > 0
