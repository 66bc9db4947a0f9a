"""The paper's quantities as functions: definitions, bounds, and an audit of real data.

Everything here observes; no solver imports it. Functions take the paper's model as it is: rows X
of shape (n, d) without an intercept (append a constant column to have one), components ``coef`` of
shape (m, d), ``labels`` with -1 for corrupted rows.
"""

from regimix.theory.affine import (
    AffineCurve,
    AffineError,
    affine_curve,
    affine_error_at,
    own_slack,
)
from regimix.theory.audit import Audit, RegimeAudit, audit
from regimix.theory.contraction import Contraction, contraction, contraction_trace
from regimix.theory.findings import Finding
from regimix.theory.flow import (
    FlowRates,
    approximate_efficiency,
    best_time,
    flow_bound,
    flow_gap_bound,
    flow_rates,
    gradient_flow,
    ideal_time,
    nu,
    omega,
    proximal_point,
)
from regimix.theory.gaussian import (
    RegularityConstants,
    affine_constant,
    affine_shape,
    contraction_constant,
    contraction_shape,
    local_radius,
    regularity_constants,
    regularity_limit,
    regularity_rows,
    regularity_shape,
    required_rows,
)
from regimix.theory.interval import Interval
from regimix.theory.recovery import (
    basin_granularity,
    net_size_bound,
    start_count,
    starts_for_confidence,
    subspace_distance,
)
from regimix.theory.regularity import Regularity, feature_regularity
from regimix.theory.separation import local_separation, separation
from regimix.theory.subsets import FeatureRegularity, exact_feature_regularity

__all__ = [
    "AffineCurve",
    "AffineError",
    "Audit",
    "Contraction",
    "FeatureRegularity",
    "Finding",
    "FlowRates",
    "Interval",
    "RegimeAudit",
    "Regularity",
    "RegularityConstants",
    "affine_constant",
    "affine_curve",
    "affine_error_at",
    "affine_shape",
    "approximate_efficiency",
    "audit",
    "basin_granularity",
    "best_time",
    "contraction",
    "contraction_constant",
    "contraction_shape",
    "contraction_trace",
    "exact_feature_regularity",
    "feature_regularity",
    "flow_bound",
    "flow_gap_bound",
    "flow_rates",
    "gradient_flow",
    "ideal_time",
    "local_radius",
    "local_separation",
    "net_size_bound",
    "nu",
    "omega",
    "own_slack",
    "proximal_point",
    "regularity_constants",
    "regularity_limit",
    "regularity_rows",
    "regularity_shape",
    "required_rows",
    "separation",
    "start_count",
    "starts_for_confidence",
    "subspace_distance",
]
