"""The last step: what was found, put in order, translated into the user's units and labelled."""

from __future__ import annotations

from typing import Any

import numpy as np

from regimix.engines.base import Engine
from regimix.engines.parts import PassStopped
from regimix.model.blocks import Labelling, Law, MixtureSums
from regimix.model.labelling import Ordered, label_counts
from regimix.result.excerpt import Excerpt
from regimix.result.inference import infer
from regimix.result.mixture import Mixture
from regimix.result.rowlaw import RowLaw
from regimix.search.settings import Settings

__all__ = ["to_mixture"]


def to_mixture(
    engine: Engine,
    law: Law,
    labelling: Labelling,
    settings: Settings,
    by_component: dict[str, Any],
    known: MixtureSums | None = None,
    **record: Any,
) -> Mixture:
    """Put components in order of share, and translate them into the user's units.

    ``by_component`` has what else is known of each component: arrays or tuples; ``known`` are sums
    over their rows, by responsibility.
    """
    problem = engine.problem
    order = np.argsort(-law.share, kind="stable")
    law, labelling = law.pick(order), Ordered(labelling, order)
    for name, values in by_component.items():
        many = isinstance(values, tuple)
        record[name] = tuple(values[i] for i in order) if many else values[order]
    coef, intercept = problem.to_user(law.thetas)
    share = law.share / max(1.0, float(law.share.sum()))
    # EM counts rows by their responsibilities; trimming and Algorithm 2 by their labels.
    by_label = settings.by_label
    try:
        known = None if known is None else known.pick(order)
        inference = infer(engine, law, labelling if by_label else None, known)
    except PassStopped:
        inference = None  # there is an answer, but no time to say how sure it is
    labels = engine.map_rows(labelling)
    return Mixture(
        coef=coef,
        intercept=intercept,
        weights=share,
        scale=law.scale * problem.target_scale,
        labels=labels,
        label_counts=_label_counts(engine, labelling, len(order)),
        outlier_share=max(0.0, 1.0 - float(share.sum())) if law.log_background > -np.inf else 0.0,
        background=float(np.exp(law.log_background)) / problem.target_scale,
        background_middle=law.middle * problem.target_scale + problem.target_center,
        background_width=law.width * problem.target_scale,
        background_degrees=law.outlier_degrees,
        noise_degrees=law.degrees,
        cutoff=float("inf"),
        settings=settings,
        seed=settings.seed,
        feature_names=problem.feature_names,
        fit_intercept=problem.fit_intercept,
        n_rows=problem.n_rows,
        mass=problem.mass,
        rows=RowLaw.of(engine, settings.seed),
        inference=inference,
        excerpt=Excerpt.of(engine, labelling, settings.seed) if settings.keep_rows else None,
        n_iter=max(1, len(record.get("attempts", ()))),
        **record,
    )


def _label_counts(engine: Engine, labelling: Labelling, count: int) -> tuple[int, ...] | None:
    """Count the rows of each component, and last the outliers."""
    try:
        return tuple(engine.fold(label_counts, labelling, count).tolist())
    except PassStopped:
        return None
