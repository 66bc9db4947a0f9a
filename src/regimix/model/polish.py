"""EM on all rows: usually one round; an estimate of the remaining gain decides on more.

A round of EM takes away a part of the error: all but the share of the information that is missing
because rows may belong elsewhere. That share is summed in the same pass (Louis 1982), so what is
left to gain after a round is known without another look at the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regimix.engines.base import Engine, RowSums
from regimix.engines.parts import PassStopped
from regimix.errors import StopReason
from regimix.model.blocks import Law, MixtureSums, mixture_sums
from regimix.model.em import late
from regimix.model.numbers import MODEL
from regimix.trimmed.ilts import factored, solved

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Polished:
    """Where EM ended.

    Attributes
    ----------
    law : Law
    sums : MixtureSums or None
        Sums over the rows with residuals at the law, their shares those of the round before; None
        without a round, or without doubt.
    stopped : StopReason or None
        Why the rows could not be looked at until the end.
    settled : bool
        Whether next to nothing is left to gain; rounds may have run out.
    """

    law: Law
    sums: MixtureSums | None = None
    stopped: StopReason | None = None
    settled: bool = True


@dataclass(frozen=True, eq=False)
class Begun:
    """Where a round of EM begins: from here the rest can be done again, to the last bit.

    Attributes
    ----------
    law : Law
    step : int
        Rounds before this one.
    gains : tuple of float
        Log-likelihoods of the rounds before.
    path : tuple of Law
        Where the last rounds came through.
    landing : Law or None
        Where EM had come to before it leapt here; None if it did not leap.
    """

    law: Law
    step: int = 0
    gains: tuple[float, ...] = (-np.inf,)
    path: tuple[Law, ...] = ()
    landing: Law | None = None


def polish(
    engine: Engine, begun: Begun | Law, note: Callable[[Begun], None] | None = None
) -> Polished:
    """Run EM on all rows until next to nothing is left to gain.

    ``note`` is told of every round when it begins.
    """
    now = begun if isinstance(begun, Begun) else Begun(begun)
    mass, p = engine.problem.mass, engine.problem.n_columns
    with_doubt = len(now.law.scale) * p**2 <= MODEL.largest_sums
    polished = Polished(now.law)
    while now.step < MODEL.rounds:
        if now.step > 0 and late():
            return replace(polished, settled=False, stopped=StopReason.TIME_LIMIT)
        if note is not None:
            note(now)
        try:
            found = mixture_sums(engine, now.law, with_doubt=with_doubt)
        except PassStopped as stop:
            return replace(polished, stopped=stop.reason)
        if now.landing is not None and found.log_gain < now.gains[-1]:
            # The leap went too far: go on from where EM itself had come to.
            now = Begun(now.landing, now.step + 1, now.gains)
            continue
        new, left = _improved(now.law, found, mass, found.log_gain - now.gains[-1])
        steps = new.thetas - now.law.thetas
        polished = Polished(new, _advanced(found, steps) if with_doubt else None)
        if left < MODEL.polish_left * np.sqrt(mass):
            return polished
        now = _next(now, new, found.log_gain, mass)
    return replace(polished, settled=False)


def _next(now: Begun, new: Law, gain: float, mass: float) -> Begun:
    """Begin another round; after two, where many would end (SQUAREM).

    Slow directions shrink by nearly the same factor every round, so that steps can be added up.
    """
    step, gains = now.step + 1, (*now.gains, gain)
    path = (*now.path, new) if now.path else (now.law, new)
    if len(path) < 3:
        return Begun(new, step, gains, path)
    points = [_flat(law, new, mass) for law in path]
    first, second = points[1] - points[0], points[2] - points[1]
    bend = second - first
    stride = float(np.linalg.norm(first) / max(float(np.linalg.norm(bend)), 1e-300))
    if not 1.0 < stride < MODEL.rounds:
        return Begun(new, step, gains, path[1:])
    point = points[0] + 2 * stride * first + stride**2 * bend
    return Begun(_bent(point, new, mass), step, gains, landing=new)


def _flat(law: Law, unit: Law, mass: float) -> Floats:
    """Write a law as one vector, about in units of standard errors."""
    size = np.sqrt(unit.share * mass)
    slopes = law.thetas * (size / unit.scale)[:, None]
    return np.concatenate([slopes.ravel(), np.log(law.scale) * size, np.log(law.share) * size])


def _bent(point: Floats, unit: Law, mass: float) -> Law:
    """Read a law from such a vector."""
    m, p = unit.thetas.shape
    size = np.sqrt(unit.share * mass)
    share = np.exp(point[m * p + m :] / size)
    return replace(
        unit,
        thetas=point[: m * p].reshape(m, p) * (unit.scale / size)[:, None],
        scale=np.maximum(np.exp(point[m * p : m * p + m] / size), unit.smallest_scale),
        share=share * min(1.0, (1 - 1e-9) / float(share.sum())),
    )


def maximised(law: Law, found: MixtureSums, mass: float) -> Law:
    """Fit each component to its rows; one of too few rows stays as it is.

    Noise is corrected for the coefficients that were fitted; without a background it is that of
    plain maximum likelihood.
    """
    plain, p = bool(np.isneginf(law.log_background)), law.thetas.shape[1]
    thetas, scale = law.thetas.copy(), law.scale.copy()
    for j, (sums, size) in enumerate(zip(found.sums, found.size.tolist(), strict=True)):
        if size <= p + 1:
            continue
        thetas[j], _ = solved(sums, law.thetas[j])
        step = thetas[j] - law.thetas[j]
        left = max(found.square[j] - float(step @ (2 * sums.moment - sums.gram @ step)), 0.0)
        scale[j] = max(np.sqrt(left / (size if plain else size - p)), law.smallest_scale)
    return replace(law, thetas=thetas, scale=scale, share=shares_of(law, found.size, mass))


def shares_of(law: Law, size: Floats, mass: float) -> Floats:
    """Return the shares of components of given sizes among rows of a total weight."""
    plain = bool(np.isneginf(law.log_background))
    whole, most = (float(size.sum()), 1.0) if plain else (mass, 1 - 1e-9)
    return np.clip(size / whole, MODEL.rounding, most)


def _advanced(found: MixtureSums, steps: Floats) -> MixtureSums:
    """Move the residuals of sums to new coefficients."""
    sums, square = [], found.square.copy()
    for j, (old, step) in enumerate(zip(found.sums, steps, strict=True)):
        moment = old.moment - old.gram @ step
        square[j] = max(square[j] - float(step @ (old.moment + moment)), 0.0)
        sums.append(RowSums(old.gram, moment))
    return replace(found, sums=tuple(sums), square=square)


def _improved(law: Law, found: MixtureSums, mass: float, gained: float) -> tuple[Law, float]:
    """Make a round, and foresee what further ones gain.

    Where components are clear of each other, what EM leaves of an error is known, and taken away
    too: what is left then is due to the doubt that components share.
    """
    new = maximised(law, found, mass)
    if found.doubt is None or found.shared_doubt is None:
        return new, gained / MODEL.clear
    left, shared, slow, most = 0.0, 0.0, 0.0, 0.0
    thetas = new.thetas.copy()
    for j, sums in enumerate(found.sums):
        if found.size[j] <= len(sums.moment) + 1:
            continue
        step = (new.thetas[j] - law.thetas[j]) / new.scale[j]
        rest, gain, missing = _missed(sums.gram, found.doubt[j], step)
        thetas[j] += rest * new.scale[j]
        all_doubt, others = found.shared_doubt[j]
        left += gain
        tied = min(abs(others) / max(all_doubt, 1e-300), 1.0)
        shared += gain * (tied + missing) ** 2
        # Scales and shares close in as slowly as the slowest direction.
        stretch = np.log(new.scale[j] / law.scale[j]) ** 2
        growth = 0.5 * np.log(new.share[j] / law.share[j]) ** 2
        slow += missing**2 * float(found.size[j] * (stretch + growth))
        most = max(most, missing)
    if most < MODEL.clear:
        return replace(new, thetas=thetas), shared + slow
    return new, max(left + slow, gained / MODEL.clear)


def _missed(gram: Floats, doubt: Floats, step: Floats) -> tuple[Floats, float, float]:
    """Return what a step of EM leaves of an error, what is to gain by it, and the share missing.

    In the basis where the Gram matrix is one and doubt is diagonal, an error shrinks to its share
    that is missing; the step is the rest of it.
    """
    if (found := factored(gram)) is not None:
        root = found[1][:, None] * found[0]
        inverse = np.linalg.inv(root).T
    else:
        values, vectors = np.linalg.eigh(gram)
        usable = values > MODEL.rounding * values[-1]
        root = vectors[:, usable] * np.sqrt(values[usable])
        inverse = vectors[:, usable] / np.sqrt(values[usable])
    missing, basis = np.linalg.eigh(inverse.T @ doubt @ inverse)
    missing = np.clip(missing, 0.0, 1 - MODEL.clear)
    error = missing / (1 - missing) * (basis.T @ (root.T @ step))
    gain = 0.5 * float((1 - missing) @ error**2)
    return inverse @ (basis @ error), gain, float(missing.max(initial=0.0))
