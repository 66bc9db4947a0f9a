"""Gating: a classifier that learns from a row's columns which regime it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from regimix.data.cells import FrameCells
from regimix.data.encoding import choose_columns
from regimix.data.problem import NORMAL_IQR, Problem
from regimix.data.recipe import Column
from regimix.data.validation import Table, is_frame, read_names
from regimix.engines.parts import PartTable
from regimix.errors import DataError, DataKindError, LeftOutWarning, ParameterError
from regimix.estimators.inputs import NewRows, Rows, is_remote, warn_user
from regimix.result.gate import (
    FARTHEST_IN_TREES,
    ColumnGate,
    Gate,
    TreeGate,
    encode_columns,
    read_columns,
    scale_columns,
)
from regimix.result.gated import with_gate
from regimix.result.mixture import Mixture

Floats = NDArray[np.float64]

# A row enters the classifier under every component that it belongs to with more than this chance.
MEMBER = 1e-3
# Shares determine responsibilities, which determine shares: a few rounds of EM settle them.
ROUNDS = 10
SETTLED = 1e-3  # largest change of a share in the last round
# Newton steps settle whatever the columns; beyond this many numbers to learn, gradients cost less.
NEWTON_SIZE = 400
MAX_ITER = 1000
# A forest: trees, their leaves and depth, the fewest rows of a leaf, and the most rows that a tree
# is grown from. Shares need no more: an average over many small trees changes gently, and a tree
# of 32 leaves takes a few kilobytes of a model file.
TREES, LEAVES, DEPTH, LEAF_ROWS, TREE_ROWS = 50, 32, 8, 5, 20_000
# Rows that a gate is learnt from: of more, a random sample of so many.
GATE_ROWS = 50_000
# Rows that are written out for a classifier that takes no weights, repetitions included.
MOST_REPEATED = 10_000_000


@dataclass(frozen=True, eq=False)
class ClassifierGate:
    """A gate made of the user's own classifier."""

    classifier: Any  # fitted; None: all rows belong to one component
    present: NDArray[np.int64]  # the components that it knows: those with rows
    n_components: int
    from_features: bool = True  # whether it was learnt from X; otherwise from ``gating_features``
    of_numbers: bool = False  # whether it was learnt from X as an array, whatever is passed later
    averages = ""  # the shares of the regimes on average: not known

    def shares(self, Z: Any) -> Floats:
        """Return the shares of the components among the rows like each row, (n, m)."""
        shares = np.zeros((_num_samples(Z), self.n_components))
        known = 1.0 if self.classifier is None else self.classifier.predict_proba(Z)
        shares[:, self.present] = known
        return shares


LearnedGate = ColumnGate | ClassifierGate


def check_gating(gating: Any, gating_features: Any, X: Any) -> None:
    """Refuse what is no gating, and ``gating_features`` that do not go with it, or with X."""
    classifies = isinstance(gating, BaseEstimator) and is_classifier(gating)
    named = isinstance(gating, str) and gating in ("logistic", "trees")
    if not (gating is None or named or (classifies and hasattr(gating, "predict_proba"))):
        raise ParameterError(
            'gating must be None, "logistic", "trees" or a scikit-learn classifier that has '
            f"predict_proba; got {gating!r}."
        )
    if gating_features is None:
        return
    if gating is None:
        raise ParameterError(
            "gating_features were passed, but gating=None learns nothing from them: set gating="
            '"logistic", "trees" or a classifier, or leave them out.'
        )
    if is_remote(X):
        raise ParameterError(
            "gating_features are columns of rows in memory, and these rows are not: leave them "
            "out, and the gating is learnt from the features of a sample; or name the columns "
            "when the table is opened, scan_parquet(..., gating=[...])."
        )
    _check_rows(gating_features, _num_samples(X))


def learn_gate(
    gating: Any, mixture: Mixture, rows: Rows, X: Any, gating_features: Any = None
) -> LearnedGate:
    """Learn the regime of a row from X, or from the columns passed for it.

    A row counts for each component by the chance that it belongs to it, so that outliers are left
    out and a row where regimes cross, whose label is uncertain, counts for all of them. Classifiers
    that take no weights learn the labels instead; whole weights repeat their rows. Of rows that are
    not in memory, a sample is learnt from.
    """
    frame, named = rows.engine.problem, isinstance(gating, str)
    if isinstance(frame, Problem):
        problem, labels, columns = frame, mixture.labels, rows.of(gating_features)
        # Classifiers of the user's see the columns as they were passed.
        own = rows.of(X) if rows.encoded is None or not named else rows.encoded.table
    else:
        drawn: Any
        columns = None
        if isinstance(X, PartTable) and X.gating:
            drawn, columns = X.some_rows(GATE_ROWS, mixture.seed, X.gating)
        else:
            drawn = rows.engine.draw(GATE_ROWS, mixture.seed).distinct(GATE_ROWS)
        problem = Problem.framed(frame, drawn.X, drawn.y, drawn.weights)
        labels = mixture.assign(drawn.X, drawn.y)
        own = Table(drawn.X, problem.feature_names) if named else drawn.X
    Z = own if columns is None else columns
    _check_rows(Z, problem.n_rows)
    if not named:
        gate = _learn_classifier(gating, mixture, problem, Z, labels, own=columns is None)
        return replace(gate, of_numbers=problem is not frame)
    learn = _learn_logistic if gating == "logistic" else _learn_trees
    known = _read_columns(Z, own=columns is None)
    return learn(mixture, *known.sampled(problem, mixture.seed))


def apply_gate(
    gate: LearnedGate, mixture: Mixture, rows: Rows, X: Any, gating_features: Any = None
) -> Mixture:
    """Return the mixture with the gate, which decides where the rows of the fit belong."""
    if isinstance(rows.engine.problem, Problem):
        columns = rows.of(gating_features)
        encoded = rows.encoded if isinstance(gate, ColumnGate) else None
        own = rows.of(X) if encoded is None else encoded.table
        shares = np.asarray(gate.shares(own if columns is None else columns))
        return with_gate(mixture, gate, rows.engine, shares)
    return with_gate(mixture, gate, rows.engine, readers=() if gate.from_features else X.readers)


def gate_shares(
    gate: LearnedGate | None, X: Any, rows: NewRows, gating_features: Any
) -> Floats | None:
    """Return the shares of the components in rows that can be used, (n, m); None without a gate.

    ``X`` are the features as they were passed, ``rows`` the same as numbers.
    """
    if gate is None or gate.from_features:
        if np.ndim(gating_features) == 1 and len(gating_features) == _num_samples(X):
            raise ParameterError(
                "predict(X) takes no y: it is what is predicted. (The second argument is "
                "gating_features, columns that tell the regime of a row; a single column was "
                "passed.) To judge rows whose response is known, use assign(X, y), "
                "responsibilities(X, y) or outlier_score(X, y)."
            )
        if gating_features is not None:
            learnt = "there is no gating" if gate is None else "the gating was learnt from X"
            raise ParameterError(
                f"gating_features were passed, but {learnt}: leave them out, or fit with gating "
                "and gating_features."
            )
        if gate is None:
            return None
        if isinstance(gate, ColumnGate):
            return gate.shares(rows.table)
        return gate.shares(rows.X if gate.of_numbers else rows.of(X))
    if gating_features is None:
        named = [repr(column.name) for column in getattr(gate, "columns", ())]
        raise ParameterError(
            "the gating was learnt from gating_features: pass the same columns for these rows, "
            f"gating_features=...{' with ' * bool(named)}{', '.join(named)}."
        )
    _check_rows(gating_features, _num_samples(X))
    return gate.shares(rows.of(gating_features))


def gate_parameters(gate: LearnedGate | None) -> int:
    """Count what a gate learnt beyond constant shares, for criteria that charge for it."""
    if gate is None:
        return 0
    if isinstance(gate, Gate):
        return gate.n_parameters
    kind = "trees" if isinstance(gate, ColumnGate) else type(gate.classifier).__name__
    raise ParameterError(
        "bic and icl charge for every parameter that was learnt, and those of the gating "
        f"{kind} cannot be counted: use mixture_.bic(X, y) or mixture_.icl(X, y), which leave the "
        'gating out, or gating="logistic".'
    )


def _check_rows(Z: Any, n_rows: int) -> None:
    """Refuse columns for the gating that are not one row for each row of X."""
    found = Z.n_rows if isinstance(Z, Table) else _num_samples(Z)
    if found != n_rows:
        raise DataError(
            f"gating_features and X have inconsistent numbers of rows: X has {n_rows}, "
            f"gating_features have {found}. Pass one row of them for each row of X."
        )


# --- the user's classifier ------------------------------------------------------------------------


def _learn_classifier(
    gating: Any, mixture: Mixture, problem: Problem, Z: Any, labels: Any, *, own: bool
) -> ClassifierGate:
    takes_weights = has_fit_parameter(gating, "sample_weight")
    if takes_weights:
        posterior = mixture.responsibilities(problem.X, problem.y)[:, :-1]
        rows, component, chance = _members(posterior, problem.row_weights)
    else:
        rows = _repeated(labels, problem, gating)
        component = labels[rows]
    present = np.unique(component)
    classifier = None
    if present.size > 1:
        counted = {"sample_weight": chance} if takes_weights else {}
        classifier = clone(gating).fit(_safe_indexing(Z, rows), component, **counted)
    elif not present.size:  # every row is an outlier: nothing to learn, the largest regime stands
        present = np.zeros(1, dtype=np.int64)
    return ClassifierGate(classifier, present, mixture.n_components, own)


def _repeated(labels: Any, problem: Problem, gating: Any) -> NDArray[np.intp]:
    """List the rows that are no outliers, as often as their weight counts them.

    A classifier that takes no weights cannot use relative importances: those rows are listed once.
    """
    rows = np.flatnonzero((labels >= 0) & (problem.row_weights > 0))
    if problem.weights is None or not problem.counts:
        return rows
    times = problem.weights[rows].astype(np.int64)
    if times.sum() > MOST_REPEATED:
        raise ParameterError(
            f"the gating {type(gating).__name__} takes no sample_weight, and the weights count "
            f"{times.sum()} rows, more than can be repeated for it ({MOST_REPEATED}): use "
            'gating="logistic" or a classifier whose fit takes sample_weight.'
        )
    return np.repeat(rows, times)


def _members(
    posterior: Floats, weights: Floats
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """List rows once for each component that they may belong to, with their chances."""
    chance = posterior * weights[:, None]
    rows, component = np.nonzero((posterior > MEMBER) & (chance > 0))
    return rows, component, chance[rows, component]


# --- columns for the gates that are made of numbers -----------------------------------------------


@dataclass(frozen=True, eq=False)
class _Columns:
    """Columns to learn from, as numbers, and how they became that."""

    values: NDArray[Any]
    names: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    from_features: bool = True

    @property
    def named(self) -> dict[str, Any]:
        """What a gate keeps of the columns."""
        names = ("names", "from_features", "columns")
        return {name: getattr(self, name) for name in names}

    def sampled(self, problem: Problem, seed: int) -> tuple[Problem, _Columns]:
        """Take rows that count and lack no column, at most ``GATE_ROWS`` of them."""
        there = np.isfinite(self.values).all(axis=1)
        if not there.all():
            warn_user(
                LeftOutWarning,
                "A column for the gating has no value in "
                f"{np.count_nonzero(~there)} of {there.size} rows: the average shares of the "
                "regimes are used there.",
            )
        there &= problem.row_weights > 0
        if there.all() and there.size <= GATE_ROWS:
            return problem, self
        rows = np.flatnonzero(there)
        if rows.size > GATE_ROWS:
            rng = np.random.default_rng(seed)
            rows = np.sort(rng.choice(rows, GATE_ROWS, replace=False))
        weights = None if problem.weights is None else problem.weights[rows]
        some = Problem.framed(problem, problem.X[rows], problem.y[rows], weights)
        return some, replace(self, values=self.values[rows])


def _read_columns(Z: Any, *, own: bool) -> _Columns:
    """Read columns to learn from; those of a data frame may be text, and may be missing."""
    if own or not is_frame(Z):
        table = read_columns(Z, "X" if own else "gating_features")
        return _Columns(table.values, table.names, from_features=own)
    read_names(Z)
    columns, _, left_out = choose_columns(FrameCells(Z))
    if left_out or not columns:
        raise DataKindError(
            f"gating_features: {' '.join(left_out) or 'there is no column.'} Pass columns of "
            "numbers, true/false, dates, or text of few values."
        )
    names = tuple(name for column in columns for name in column.feature_names)
    return _Columns(encode_columns(Z, columns), names, columns, from_features=False)


def _hit_rate(shares: Floats, members: Floats) -> float:
    """How often the likeliest regime is that of the row, by the weight of each regime in it."""
    total = float(members.sum())
    hits = members[np.arange(len(members)), shares.argmax(axis=1)].sum()
    return float(hits / total) if total > 0 else np.nan


# --- multinomial logistic regression --------------------------------------------------------------


def _learn_logistic(mixture: Mixture, problem: Problem, known: _Columns) -> Gate:
    """Learn shares that depend on the row by EM; coefficients and noise of the regimes stay."""
    # Imported where it is used: it is a large part of scikit-learn.
    from sklearn.linear_model import LogisticRegression

    weights = problem.row_weights
    center, scale = _location_and_spread(known.values, weights)
    scaled = scale_columns(known.values, center, scale)
    few = scaled.shape[1] * mixture.n_components <= NEWTON_SIZE
    model = LogisticRegression(solver="newton-cholesky" if few else "lbfgs", max_iter=MAX_ITER)
    shares: Floats | None = None
    for _ in range(ROUNDS):
        posterior = mixture.responsibilities(problem.X, problem.y, shares)[:, :-1]
        coef, intercept = _fit_logistic(model, scaled, posterior, weights)
        before, shares = shares, softmax(scaled @ coef.T + intercept, axis=1)
        if before is not None and np.abs(shares - before).max() < SETTLED:
            break
    assert shares is not None
    average = np.average(shares, axis=0, weights=weights)
    # By the chances without a gate, which would confirm itself.
    alone = mixture.responsibilities(problem.X, problem.y)[:, :-1]
    hit_rate = _hit_rate(shares, alone * weights[:, None])
    gate = Gate(coef, intercept, center=center, scale=scale, **known.named)
    return replace(gate, average=average, hit_rate=hit_rate)


def _location_and_spread(values: NDArray[Any], weights: Floats) -> tuple[Floats, Floats]:
    """Return medians, and deviations by quartiles; 0/1 columns, whose quartiles agree, by squares.

    Rows count by their weights. Constant columns have spread one.
    """
    present = weights > 0
    rows, counted = values[present].astype(np.float64), weights[present]
    # Smallest values with so much of the weight at or below them: repeated rows give the same.
    low, center, high = np.quantile(
        rows, [0.25, 0.5, 0.75], axis=0, method="inverted_cdf", weights=counted
    )
    spread = (high - low) / NORMAL_IQR
    mean = np.average(rows, axis=0, weights=counted)
    deviation = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=counted))
    # Rounding of the mean must not make a column vary that is constant.
    spread = np.where(spread > 0, spread, np.where(np.ptp(rows, axis=0) > 0, deviation, 0.0))
    return center, np.where(spread > 0, spread, 1.0)


def _fit_logistic(
    model: Any, scaled: Floats, posterior: Floats, weights: Floats
) -> tuple[Floats, Floats]:
    """Fit the regime of rows that count by their chances; coefficients (m, q), intercepts (m,)."""
    m = posterior.shape[1]
    coef, intercept = np.zeros((m, scaled.shape[1])), np.full(m, -np.inf)
    rows, component, chance = _members(posterior, weights)
    present = np.unique(component)
    if present.size < 2:
        intercept[present if present.size else 0] = 0.0
        return coef, intercept
    model.fit(scaled[rows], component, sample_weight=chance)
    # Of two classes, scikit-learn only keeps the second's.
    both = present.size == 2
    coef[present[both:]], intercept[present[both:]] = model.coef_, model.intercept_
    if both:
        intercept[present[0]] = 0.0
    return coef, intercept


# --- trees ----------------------------------------------------------------------------------------


def _learn_trees(mixture: Mixture, problem: Problem, known: _Columns) -> TreeGate:
    """Learn a forest from the columns to the regime, and keep its nodes as plain arrays."""
    from sklearn.ensemble import RandomForestClassifier

    values = known.values
    center, scale = _location_and_spread(values, problem.row_weights)
    scaled = scale_columns(values, center, scale, FARTHEST_IN_TREES)
    posterior = mixture.responsibilities(problem.X, problem.y)[:, :-1]
    rows, component, chance = _members(posterior, problem.row_weights)
    m, present = mixture.n_components, np.unique(component)
    average = np.bincount(component, chance, minlength=m) + (0.0 if present.size else np.eye(m)[0])
    average /= average.sum()
    how: dict[str, Any] = {"center": center, "scale": scale, "average": average, **known.named}
    if present.size < 2:
        leaf = np.full(1, -1)
        nodes: Any = leaf, np.zeros(1), leaf, leaf, average[None], np.zeros(1, dtype=np.int64)
        return TreeGate(*nodes, **how)
    small = {"max_leaf_nodes": LEAVES, "max_depth": DEPTH, "min_samples_leaf": LEAF_ROWS}
    most, seed = min(rows.size, TREE_ROWS), mixture.seed % 2**32
    forest = RandomForestClassifier(TREES, **small, max_samples=most, random_state=seed)
    forest.fit(scaled[rows], component, sample_weight=chance)
    gate = TreeGate(*forest_arrays(forest, present, average), **how)
    shares, weights = gate.shares(values), problem.row_weights
    hits = _hit_rate(shares, posterior * weights[:, None])
    return replace(gate, average=np.average(shares, axis=0, weights=weights), hit_rate=hits)


def forest_arrays(forest: Any, present: NDArray[np.intp], average: Floats) -> tuple[Any, ...]:
    """Return the nodes of a forest of classes ``present`` as the arrays of a ``TreeGate``.

    The shares of a node count the average as one more row, so that no regime is ruled out by a few
    rows that none of its own were among.
    """
    trees = [estimator.tree_ for estimator in forest.estimators_]
    roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
    value = np.zeros((sum(tree.node_count for tree in trees), average.size))
    value[:, present] = np.concatenate([tree.value[:, 0, :] for tree in trees])
    weight = np.concatenate([tree.weighted_n_node_samples for tree in trees])[:, None]
    value = (value / value.sum(axis=1, keepdims=True) * weight + average) / (weight + 1)

    def moved(name: str) -> NDArray[np.int64]:
        """Return numbers of nodes, counted over all trees."""
        below = [(getattr(tree, name), root) for tree, root in zip(trees, roots, strict=True)]
        return np.concatenate([np.where(b >= 0, b + root, -1) for b, root in below])

    feature = np.maximum(np.concatenate([tree.feature for tree in trees]), -1)
    threshold = np.concatenate([tree.threshold for tree in trees])
    return feature, threshold, moved("children_left"), moved("children_right"), value, roots
