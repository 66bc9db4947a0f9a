"""All experiments, in the order of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from regimix.lab.claims.affine import AFFINE
from regimix.lab.claims.basin import BASIN
from regimix.lab.claims.contraction import CONTRACTION
from regimix.lab.claims.convergence import CONVERGENCE
from regimix.lab.claims.corruption import CORRUPTION
from regimix.lab.claims.cost import COST
from regimix.lab.claims.covariances import COVARIANCES
from regimix.lab.claims.flow import FLOW
from regimix.lab.claims.globally import GLOBALLY
from regimix.lab.claims.gradient import GRADIENT
from regimix.lab.claims.picture import PICTURE
from regimix.lab.claims.regularity import REGULARITY
from regimix.lab.claims.samples import ONE_COMPONENT, SAMPLES
from regimix.lab.claims.subgaussian import SUBGAUSSIAN
from regimix.lab.claims.subspace import SUBSPACE
from regimix.lab.experiment import Experiment

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
    GLOBALLY,
    COST,
    FLOW,
    GRADIENT,
)

#: Every experiment by its name.
EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType({each.name: each for each in _ALL})
