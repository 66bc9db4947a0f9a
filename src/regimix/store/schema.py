"""What a model file says of a mixture: every field, its kind and its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from regimix.errors import ModelFileError
from regimix.result.gate import Gate
from regimix.result.inference import Inference
from regimix.result.mixture import Mixture
from regimix.result.rowlaw import RowLaw
from regimix.search.selection import Attempt, Selection
from regimix.search.settings import NoiseKind, SearchKind, Settings, SolverKind
from regimix.search.subspace import Subspace, SubspaceKind
from regimix.store.kinds import (
    Array,
    Flag,
    ListOf,
    Maybe,
    Named,
    Number,
    Place,
    Record,
    Text,
    Whole,
)

__all__ = ["LEFT_OUT", "MIXTURE", "RECIPE", "read_mixture", "write_mixture"]

Arrays = dict[str, NDArray[Any]]

# Fields that do not belong into a file: rows of the user's table, and what belongs to the run.
LEFT_OUT = {Mixture: ("excerpt", "label_counts"), Settings: ("callback", "checkpoint", "keep_rows")}
# As the room of tables reads columns; rooms on one level do not import each other.
COLUMN_KINDS = ("number", "flag", "date", "levels")
LARGEST = float(np.finfo(np.float64).max)
FINITE = Number(-LARGEST, LARGEST)
NOT_NEGATIVE = Number(0.0, LARGEST)
SHARE = Number(0.0, 1.0)
ANY = Number(nan=True)
POSITIVE = Number(math.ulp(0.0), LARGEST)


@dataclass(frozen=True)
class _GateKind:
    """A gate made of arrays; a classifier of the user's own is code, and refused."""

    record: Record

    def write(self, value: Any, place: Place) -> Any:
        """Write a gate."""
        if not isinstance(value, Gate):
            raise ModelFileError(
                f"its gate is a {type(value).__name__}, a classifier of your own, and model files "
                'hold no code. Fit with gating="logistic" to save the gate, or save '
                "dataclasses.replace(mixture, gate=None) and keep the classifier by other means."
            )
        return self.record.write(value, place)

    def read(self, plain: Any, place: Place) -> Any:
        """Read a gate."""
        return self.record.read(plain, place)


SETTINGS = Record(
    Settings,
    {
        "n_components": Maybe(Whole(1)),
        "outliers": Maybe(SHARE),
        "noise": Text(get_args(NoiseKind)),
        "search": Text(get_args(SearchKind)),
        "subspace": Maybe(Text(get_args(SubspaceKind))),
        "solver": Text(get_args(SolverKind)),
        "max_iter": Whole(0),
        "tol": NOT_NEGATIVE,
        "seed": Whole(),
        "n_jobs": Maybe(Whole(-(2**31))),
        "max_starts": Maybe(Whole(1)),
        "time_limit": Maybe(POSITIVE),
        "granularity": POSITIVE,
        "tolerance": Maybe(POSITIVE),
        "taus": Maybe(ListOf(SHARE)),
    },
)

ATTEMPT = Record(
    Attempt,
    {"move": Text(), "source": Text(), "gain": ANY, "accepted": Flag(), "reason": Text()},
)

# The directions are those of whitened features: q of them, which need not be d.
SUBSPACE = Record(
    Subspace,
    {
        "basis": Array(("q", "r")),
        "spectrum": Array(("q",), odd=True),
        "noise_level": Maybe(ANY),
        "certain": Whole(),
        "kind": Text(get_args(SubspaceKind)),
    },
)

ROWS = Record(
    RowLaw,
    {
        "mean": Array(("d",)),
        "deviation": Array(("d",), low=0.0),
        "correlation": Maybe(Array(("d", "d"))),
        "middle": FINITE,
    },
)

INFERENCE = Record(
    Inference,
    {
        "standard_error": Array(("m", "d"), odd=True),
        "intercept_error": Array(("m",), odd=True),
        "degrees": Array(("m",), odd=True),
        "r_squared": Array(("m",), odd=True),
        "r_squared_overall": ANY,
        "size": Array(("m",), low=0.0),
        "covariance": Maybe(Array(("m", "p", "p"), odd=True)),
        "notes": ListOf(Text()),
    },
)

SELECTION = Record(
    Selection,
    {
        "n_components": Array(("k",), low=0, whole=True),
        "evidence": Array(("k",), odd=True),
        "bic": Array(("k",), odd=True),
        "icl": Array(("k",), odd=True),
        "chosen": Whole(),
    },
)

# A component without rows has the intercept minus infinity.
GATE = Record(
    Gate,
    {
        "coef": Array(("m", "gate columns")),
        "intercept": Array(("m",), odd=True),
        "center": Array(("gate columns",)),
        "scale": Array(("gate columns",), low=0.0),
        "names": ListOf(Text(), "gate columns"),
        "from_features": Flag(),
    },
)

MIXTURE = Record(
    Mixture,
    {
        "coef": Array(("m", "d")),
        "intercept": Array(("m",)),
        "weights": Array(("m",), low=0.0, high=1.0),
        "scale": Array(("m",), low=0.0),
        "labels": Array(("n",), low=-1, whole=True),
        "outlier_share": SHARE,
        "background": NOT_NEGATIVE,
        "background_middle": FINITE,
        "background_width": Number(0.0),
        "background_degrees": Number(0.0),
        "noise_degrees": Number(0.0),
        "cutoff": Number(0.0),
        "evidence": Number(),
        "stopped": Text(),
        "n_rows": Whole(),
        "mass": NOT_NEGATIVE,
        "fit_intercept": Flag(),
        "feature_names": ListOf(Text(), "d"),
        "settings": SETTINGS,
        "seed": Whole(),
        "target_name": Text(),
        "component_evidence": Maybe(Array(("m",), odd=True)),
        "origin": ListOf(Text(), "m"),
        "attempts": ListOf(ATTEMPT),
        "timings": Named(ANY),
        "spectrum": Maybe(SUBSPACE),
        "selection": Maybe(SELECTION),
        "rows": Maybe(ROWS),
        "ranks": Maybe(ListOf(Whole(), "m")),
        "n_iter": Whole(),
        "inference": Maybe(INFERENCE),
        "gate": Maybe(_GateKind(GATE)),
        "search_evidence": ListOf(ANY),
        "settled": Flag(),
    },
)

RECIPE = Record(
    dict,
    {
        "target": Text(),
        "columns": ListOf(
            Record(dict, {"name": Text(), "kind": Text(COLUMN_KINDS), "levels": ListOf(Text())}),
        ),
        "weights": Maybe(Text()),
        "key": Maybe(Text()),
    },
)


def write_mixture(mixture: Mixture, *, labels: bool) -> tuple[dict[str, Any], Arrays]:
    """Turn a mixture into a document and arrays."""
    place = Place("model")
    if not labels:
        mixture = replace(mixture, labels=np.empty(0, dtype=np.int64))
    return MIXTURE.write(mixture, place), place.arrays


def read_mixture(plain: Any, arrays: Arrays) -> Mixture:
    """Turn a document and arrays into a mixture, or refuse them."""
    place = Place("model", dict(arrays))
    mixture: Mixture = MIXTURE.read(plain, place)
    if place.arrays:
        raise ModelFileError(f"it holds an array that belongs nowhere: {min(place.arrays)!r}.")
    m, d = mixture.coef.shape
    labels, names = place.at("labels"), place.at("feature_names")
    place.at("coef").expect(m and d, "of at least one component and one feature")
    names.expect(len(mixture.feature_names) == d, "one name for each feature")
    place.at("gate.names").expect(_named(mixture.gate), "one name for each column")
    place.at("inference.covariance").expect(_covers(mixture), "that of all coefficients")
    labels.expect(mixture.labels.max(initial=-1) < m, "made of numbers of components")
    labels.expect(mixture.labels.size in (0, mixture.n_rows), "one number for each row")
    return mixture


def _named(gate: Gate | None) -> bool:
    return gate is None or len(gate.names) == gate.center.size


def _covers(mixture: Mixture) -> bool:
    """Whether the covariance, if there is one, is that of coefficients and intercept."""
    inference = mixture.inference
    if inference is None or inference.covariance is None:
        return True
    return bool(inference.covariance.shape[1] == mixture.coef.shape[1] + mixture.fit_intercept)
