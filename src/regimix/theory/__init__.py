"""The paper's definitions and bounds as functions, and an audit of real data.

Everything here observes; no solver imports it. Functions take the paper's model as it is: rows X
of shape (n, d) without an intercept (append a constant column to have one), components ``coef`` of
shape (m, d), ``labels`` with -1 for corrupted rows. What only experiments need (V(Δ) over all
directions, rounds beside Theorem 4, gradient flow, fits of unknown constants) is not here but in
``lab/`` of the repository.
"""

from regimix.theory.audit import Audit, Finding, RegimeAudit, audit
from regimix.theory.bounds import (
    affine_shape,
    basin_granularity,
    contraction_shape,
    local_radius,
    net_size_bound,
    regularity_rows,
    regularity_shape,
    required_rows,
    start_count,
    starts_for_confidence,
)
from regimix.theory.definitions import (
    affine_error_at,
    local_separation,
    own_slack,
    separation,
    subspace_distance,
)
from regimix.theory.detectable import Detectable, detectable
from regimix.theory.regularity import (
    FeatureRegularity,
    Interval,
    Regularity,
    exact_feature_regularity,
    feature_regularity,
)
from regimix.theory.state_evolution import passing_rows

__all__ = [
    "Audit",
    "Detectable",
    "FeatureRegularity",
    "Finding",
    "Interval",
    "RegimeAudit",
    "Regularity",
    "affine_error_at",
    "affine_shape",
    "audit",
    "basin_granularity",
    "contraction_shape",
    "detectable",
    "exact_feature_regularity",
    "feature_regularity",
    "local_radius",
    "local_separation",
    "net_size_bound",
    "own_slack",
    "passing_rows",
    "regularity_rows",
    "regularity_shape",
    "required_rows",
    "separation",
    "start_count",
    "starts_for_confidence",
    "subspace_distance",
]
