"""All experiments, in the order of the paper: one module for each claim or few related ones."""

from collections.abc import Mapping
from types import MappingProxyType

from lab.claims.affine import AFFINE
from lab.claims.basin import BASIN
from lab.claims.contraction import CONTRACTION
from lab.claims.convergence import CONVERGENCE
from lab.claims.corruption import CORRUPTION
from lab.claims.cost import COST
from lab.claims.covariances import COVARIANCES
from lab.claims.flow import FLOW
from lab.claims.global_starts import GLOBALLY
from lab.claims.gradient import GRADIENT
from lab.claims.later import ALTERNATING, IMBALANCE, LOW_SIGNAL
from lab.claims.passing import ROUNDS, THRESHOLD
from lab.claims.picture import PICTURE
from lab.claims.regularity import REGULARITY
from lab.claims.samples import ONE_COMPONENT, SAMPLES
from lab.claims.subgaussian import SUBGAUSSIAN
from lab.claims.subspace import SUBSPACE
from lab.claims.tilted import TILTED
from lab.experiment import Experiment

__all__ = ["EXPERIMENTS"]

_ALL = (
    PICTURE,
    REGULARITY,
    AFFINE,
    CONTRACTION,
    CONVERGENCE,
    BASIN,
    SAMPLES,
    ONE_COMPONENT,
    CORRUPTION,
    COVARIANCES,
    SUBGAUSSIAN,
    SUBSPACE,
    TILTED,
    GLOBALLY,
    COST,
    FLOW,
    GRADIENT,
    ROUNDS,
    THRESHOLD,
    ALTERNATING,
    IMBALANCE,
    LOW_SIGNAL,
)

#: Every experiment by its name.
EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({each.name: each for each in _ALL})
