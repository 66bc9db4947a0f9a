"""Random tables and calls, what each must keep to, and the smallest case that still fails.

A call either answers, without a NaN, or refuses with an error of regimix. It warns with warnings of
regimix only, leaves its input as it was, and ends in time. A case is a few choices, so that it can
be written down, made again, and made simpler one choice at a time.
"""

from __future__ import annotations

import random
import re
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning as InnerConvergenceWarning
from sklearn.exceptions import DataConversionWarning, UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from regimix import (
    MixedLinearRegression,
    TrimmedEstimator,
    TrimmedRegressor,
    gd_ilts,
    global_ilts,
    ilts,
    load,
    metrics,
    report,
    save,
    scan_parquet,
    theory,
)
from regimix.errors import LeftOutWarning, RegimixError, RegimixWarning

SECONDS = 30  # of processor time
# What scikit-learn's own estimators refuse, though the table is one that others take.
DOCUMENTED = {
    "any classifier": ("needs samples of at least 2 classes",),
    "any regressor without weights": ("Expected n_neighbors <= n_samples",),
    # Trees take missing values, so that what they say of other cells stands.
    "any regressor from few rows": (
        "too large for dtype('float32')",
        "Expected 2D array, got 1D array instead",
        "could not convert string to float",
        "must be a string or a real number",
    ),
}
NO_MATRIX = ("np.matrix is not supported",)  # by any of scikit-learn's
ALLOWED_WARNINGS = (
    RegimixWarning,
    DataConversionWarning,
    InnerConvergenceWarning,
    UndefinedMetricWarning,
)


@dataclass(frozen=True)
class Case:
    """One table and one call; the first value of every list of choices is the simplest."""

    seed: int = 0
    call: str = "mixture"
    rows: int = 20
    columns: int = 2
    numbers: str = "normal"
    response: str = "regimes"
    cell: str = "fine"
    unit: float = 1.0
    y_unit: float = 1.0
    container: str = "array"
    names: str = "plain"
    weights: str = "none"

    def snippet(self) -> str:
        """Return code that makes this case again."""
        plain = asdict(Case())
        given = ", ".join(f"{k}={v!r}" for k, v in asdict(self).items() if v != plain[k])
        return f"from tests.fuzz.tables import Case, failure\nprint(failure(Case({given})))"


# --- the call ---


def _mixture(
    then: Callable[..., Any] = lambda model, X, y, weights: (), **options: Any
) -> Callable[..., Any]:
    """Fit, ask everything that costs little, and ``then`` what costs more."""

    def call(X: Any, y: Any, weights: Any) -> Any:
        model = MixedLinearRegression(random_state=0, **options).fit(X, y, sample_weight=weights)
        _check_words(model.mixture_, model.summary(), model.mixture_.describe(width=20))
        shares = np.asarray(model.responsibilities(X, y))
        if model.left_out_ is not None:  # rows that could not be used have no answers
            shares = shares[~np.isnan(shares).all(axis=1)]
        assert np.allclose(shares.sum(axis=1), 1.0), "responsibilities that do not add up to one"
        # Errors are unknown, and not finite, where the summary says so; that is no bad answer.
        model.summary_frame(), model.conf_int(), model.mixture_.separation()
        model.flag(X, y), model.predict(X[:1]), model.score_samples(X)
        found = (model.coef_, model.intercept_, model.scale_, model.weights_, model.labels_)
        return (
            *(*found, model.assign(X, y), model.outlier_score(X, y), model.score_samples(X, y)),
            *(model.predict(X), model.predict_components(X), model.predict_shares(X)),
            *map(_ends, (model.predict_interval(X), model.predict_component_intervals(X))),
            *(_criteria(model, X, y, weights), *model.sample(3, random_state=0)),
            *then(model, X, y, weights),
        )

    return call


def _ends(intervals: Any) -> Any:
    """Intervals where nothing is known are infinite: that is an answer."""
    return np.nan_to_num(np.asarray(intervals), nan=np.nan)


def _criteria(model: Any, X: Any, y: Any, weights: Any) -> Any:
    named = {"sample_weight": weights}
    found = [model.score(X, y, **named)]
    if model.gating != "trees":  # whose parameters cannot be counted
        found += [model.bic(X, y, **named), model.icl(X, y, **named)]
    return np.array(found)


def _check_words(*shown: Any) -> None:
    for words in map(str, shown):
        assert not re.search(r"(?<![\w.])nan(?![\w.])", words), "a text that shows NaN"


def _stability(model: Any, X: Any, y: Any, weights: Any) -> Any:
    found = model.stability(X, y, n_resamples=2, random_state=0, sample_weight=weights)
    _check_words(found, model.mixture_)
    return (found.recurrence,)


def _bootstrap(model: Any, X: Any, y: Any, weights: Any) -> Any:
    found = model.bootstrap(X, y, n_resamples=3, random_state=0, sample_weight=weights)
    _check_words(found)
    found.standard_error, found.conf_int()  # unknown where a regime was lost
    return ()


def _compare(model: Any, X: Any, y: Any, weights: Any) -> Any:
    if model.n_components_ < 2:
        return ()
    found = model.compare(X, y, sample_weight=weights)
    _check_words(found, *found.sentences, *found.notes)
    return (found.difference,)


def _profile(model: Any, X: Any, y: Any, weights: Any) -> Any:
    rng, n = np.random.default_rng(0), len(X)
    texts = rng.choice(["a", "b", "a\x1b[31m", "", "nan"], n)
    dates = np.datetime64("2020-01-01") + rng.integers(0, 99, n).astype("m8[D]")
    numbers = np.where(rng.random(n) < 0.2, np.nan, rng.standard_cauchy(n) * 1e120)
    columns = {"t": texts, "d": dates, "n": numbers, "f": rng.random(n) < 0.1, "c": np.ones(n)}
    made = pl.DataFrame if isinstance(X, pl.DataFrame) else pd.DataFrame
    found = model.profile(made(columns), sample_weight=weights)
    _check_words(*found.sentences, *found.notes)
    return str(found), found.frame()


def _elsewhere(model: Any, X: Any, y: Any, weights: Any) -> Any:
    """Ask about other rows and columns: each question is answered, or refused in our words."""
    others = [X[:0], X[:1], X[::-1], np.asarray(X), np.asarray(X)[:, ::-1], np.asarray(X)[0], None]
    if isinstance(X, pd.DataFrame):
        objects = pd.DataFrame(np.asarray(X, dtype=object), X.index, X.columns)
        others += [
            _spelled(objects),
            objects.mask(np.eye(*X.shape) > 0),
            X.iloc[:, ::-1],
            X.iloc[:, 1:],
        ]
        others += [X.set_axis(range(X.shape[1]), axis=1), X.T, X.iloc[0], X.to_dict("list")]
    for other in others:
        asked = [getattr(model, name) for name in ("predict", "predict_interval", "predict_shares")]
        asked += [partial(getattr(model, name), y=y) for name in ("assign", "score_samples")]
        asked += [partial(model.responsibilities, y=np.asarray(y)[:1]), model.predict_components]
        for ask in asked:
            with suppress(RegimixError):
                ask(other)
    return ()


def _report(model: Any, X: Any, y: Any, weights: Any) -> Any:
    return report.render(model.mixture_, X, y), str(model.mixture_._repr_html_())


def _report_alone(model: Any, X: Any, y: Any, weights: Any) -> Any:
    found = model.stability(n_resamples=2, random_state=0)
    _compare(model, None, None, None)
    return report.render(model.mixture_), found.recurrence


def _file(model: Any, X: Any, y: Any, weights: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(model, path)
        again = load(path)
    assert np.array_equal(again.coef, model.coef_), "a file that holds another model"
    assert str(again) == str(model.mixture_), "a file that says something else"
    return again.predict(X), again.score_samples(X, y)


def _theory(model: Any, X: Any, y: Any, weights: Any) -> Any:
    str(theory.audit(model, X, y))
    metrics.match_components(model.coef_, model.coef_)
    values = np.asarray(X)
    if values.dtype.kind == "f" and len(values) < 100:
        str(theory.detectable(model, values, shares=(0.3,), n_trials=1, random_state=0))
    return (np.array(metrics.recovery_error(model.coef_, model.coef_)),)


def _parquet(X: Any, y: Any, weights: Any) -> Any:
    """Fit a file of the same rows, if there can be one."""
    if np.iscomplexobj(X):
        return ()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        try:
            columns = {f"x{i}": list(column) for i, column in enumerate(np.asarray(X).T)}
            columns |= {"y": list(y)} | ({} if weights is None else {"w": list(weights)})
            pl.DataFrame(columns).write_parquet(path)
        except (TypeError, ValueError, OverflowError, RuntimeError, pl.exceptions.PolarsError):
            return ()
        table = scan_parquet(path, "y", weights=None if weights is None else "w")
        model = MixedLinearRegression(random_state=0).fit(table)
    _check_words(model.mixture_, model.summary())
    return model.coef_, model.intercept_, model.scale_, model.weights_, model.labels_


def _trimmed(**options: Any) -> Callable[..., Any]:
    def call(X: Any, y: Any, weights: Any) -> Any:
        model = TrimmedRegressor(random_state=0, **options).fit(X, y, sample_weight=weights)
        _check_words(model.summary())
        model.summary().frame(), model.predict(X[:1])
        score = np.array(model.score(X, y, weights))
        return model.coef_, model.intercept_, model.scale_, model.predict(X), score

    return call


def _meta(inner: Any, **options: Any) -> Callable[..., Any]:
    def call(X: Any, y: Any, weights: Any) -> Any:
        if inner is LogisticRegression:
            y = _signs(y)
        model = TrimmedEstimator(inner(), random_state=0, **options)
        model.fit(X, y, sample_weight=weights)
        model.score(X, y, weights)
        if inner is LogisticRegression:
            return model.predict_proba(X), model.predict(X)
        return getattr(model.estimator_, "coef_", ()), model.predict(X)

    return call


def _signs(y: Any) -> Any:
    if np.iscomplexobj(y):
        return y
    try:
        return (np.asarray(y, dtype=float) > 0).astype(int)
    except (TypeError, ValueError):
        return y


def _start(run: Callable[..., Any]) -> Callable[..., Any]:
    def call(X: Any, y: Any, weights: Any) -> Any:
        start = np.zeros(np.shape(X)[1] if np.ndim(X) == 2 else 1)
        found = run(X, y, start, keep=0.5, sample_weight=weights)
        return found.coef, found.intercept

    return call


def _net(**options: Any) -> Callable[..., Any]:
    def call(X: Any, y: Any, weights: Any) -> Any:
        found = global_ilts(X, y, sample_weight=weights, random_state=0, **options)
        return found.coef, found.intercept, found.scale, found.labels

    return call


CALLS = {
    "mixture": _mixture(),
    "mixture of 2": _mixture(n_components=2),
    "no outliers": _mixture(n_components=2, outliers=False),
    "a tenth of outliers": _mixture(outliers=0.1),
    "joint": _mixture(search="joint"),
    "partition": _mixture(search="partition", n_components=2),
    "student": _mixture(noise="student"),
    "no intercept": _mixture(fit_intercept=False),
    "normal, outliers given as none": _mixture(noise="normal", outliers=0),
    "gating": _mixture(gating="logistic", n_components=2),
    "gating by trees": _mixture(gating="trees", n_components=2),
    "plain numbers": _mixture(encode=None, n_components=3),
    "short": _mixture(time_limit=0.05),
    "stability": _mixture(_stability),
    "bootstrap": _mixture(_bootstrap, n_components=2),
    "compare": _mixture(_compare, n_components=2, outliers=False),
    "profile": _mixture(_profile, n_components=2),
    "other rows": _mixture(_elsewhere, n_components=2),
    "other rows, gated": _mixture(_elsewhere, n_components=2, gating="logistic"),
    "report": _mixture(_report),
    "report alone": _mixture(_report_alone, keep_rows=True, n_components=2),
    "file": _mixture(_file, gating="logistic"),
    "theory": _mixture(_theory),
    "parquet": _parquet,
    "trimmed": _trimmed(),
    "trimmed to all": _trimmed(keep=1.0, reweight=False, n_starts=0),
    "trimmed to half": _trimmed(keep=0.5),
    "trimmed by gradients": _trimmed(keep=0.7, solver="gradient"),
    "trimmed by cg": _trimmed(keep=0.7, solver="cg", fit_intercept=False),
    "any regressor": _meta(LinearRegression),
    "any classifier": _meta(LogisticRegression),
    "any regressor without weights": _meta(partial(KNeighborsRegressor, 2)),
    "any regressor from few rows": _meta(
        partial(DecisionTreeRegressor, max_depth=2), n_starts=2, keep_start=0.3
    ),
    "ilts": _start(ilts),
    "gd_ilts": _start(gd_ilts),
    "global": _net(),
    "net": _net(search="net"),
    "net by gradients": _net(search="net", solver="gradient"),
    "net by cg": _net(search="net", solver="cg", subspace="svd"),
}

META = tuple(name for name in CALLS if name.startswith("any "))

# --- the table ---

UNITS = (1.0, 1e-3, 1e6, 1e-30, 1e30, 1e-120, 1e120)
CHOICES: dict[str, tuple[Any, ...]] = {
    "call": tuple(CALLS),
    "rows": (20, 60, 150, 40, 11, 7, 5, 3, 2, 1, 0),
    "columns": (2, 1, 3, 4, 7, 12, 30, 0),
    "numbers": (
        *("normal", "few values", "0/1", "constant", "repeated", "heavy", "collinear"),
        *("one row", "negative zeros", "subnormal", "huge integers", "several units"),
    ),
    "response": (
        "regimes",
        "line",
        "exact",
        "few values",
        "constant",
        "noise",
        "heavy",
        "two columns",
        "column",
        "one odd",
        "true/false",
        "counts",
        "huge integers",
        "subnormal",
    ),
    "cell": (
        *("fine", "far", "y far", "nan", "inf", "y nan", "text", "none", "date", "too large"),
        *("y text", "y none", "complex", "na", "y na", "missing column", "y missing"),
    ),
    "unit": UNITS,
    "y_unit": UNITS,
    "container": (
        *("array", "fortran", "float32", "int", "bool", "object", "list", "pandas", "polars"),
        *("nullable", "read-only", "reversed", "indexed", "texts", "polars texts"),
        *("arrow", "arrow table", "categories", "moments", "decimals", "fractions", "complex"),
        *("levels", "spelled", "sparse", "sparse frame", "masked", "strided", "matrix", "extended"),
        *("foreign bytes", "half", "shuffled", "vector", "python integers", "frame of y"),
    ),
    "names": ("plain", "mixed", "twice", "odd", "numbers"),
    "weights": (
        "none",
        "ones",
        "fractions",
        "counts",
        "zeros",
        "one",
        "tiny and huge",
        "tiny",
        "huge",
        "series",
        "list",
        "one number",
        "too few",
        "negative",
        "nan",
        "some subnormal",
        "true/false",
        "nullable",
        "frame",
        "objects",
        "text",
        "inf",
    ),
}
# Containers that cannot hold an odd object.
NUMBERS_ALONE = (
    *("float32", "int", "bool", "nullable", "arrow", "arrow table", "complex", "sparse"),
    *("sparse frame", "masked", "extended", "foreign bytes", "half", "decimals", "fractions"),
    *("python integers", "moments", "categories"),
)
# How often a choice is the simplest one: tables with everything wrong are refused at once.
PLAIN = {"call": 0.0, "rows": 0.3, "columns": 0.3, "numbers": 0.4, "response": 0.4, "cell": 0.75}
PLAIN |= {"unit": 0.7, "y_unit": 0.7, "container": 0.5, "names": 0.85, "weights": 0.6}


def draw(seed: int) -> Case:
    """Draw a case."""
    rng = random.Random(seed)
    picked = {
        name: some[0] if rng.random() < PLAIN[name] else rng.choice(some)
        for name, some in CHOICES.items()
    }
    return Case(seed, **picked)


def _features(case: Case, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(case.rows, case.columns))
    made = {
        "few values": lambda: rng.integers(0, 3, X.shape).astype(float),
        "0/1": lambda: (X > 1).astype(float),
        "constant": lambda: np.where(np.arange(case.columns) == 0, 3.0, X),
        "repeated": lambda: X[rng.integers(0, max(1, case.rows // 5), case.rows)],
        "heavy": lambda: rng.standard_cauchy(X.shape),
        "collinear": lambda: np.where(np.arange(case.columns) == case.columns - 1, X[:, :1] - 1, X),
        "one row": lambda: X[np.zeros(case.rows, dtype=int)],
        "negative zeros": lambda: np.where(X < 0, -0.0, 0.0),
        "subnormal": lambda: X * 1e-310,
        "huge integers": lambda: np.floor(X * 2.0**60),
        "several units": lambda: X * 10.0 ** rng.uniform(-60, 60, case.columns),
    }
    return made[case.numbers]() if case.numbers in made and X.size else X


def _response(case: Case, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n, d = X.shape
    coef = (
        rng.normal(size=(2, d))[rng.integers(0, 2, n)]
        if case.response == "regimes"
        else rng.normal(size=d)
    )
    y = (X * coef).sum(axis=1)
    made = {
        "few values": lambda: rng.integers(0, 3, n).astype(float),
        "constant": lambda: np.zeros(n),
        "noise": lambda: rng.normal(size=n),
        "heavy": lambda: rng.standard_cauchy(n),
        "exact": lambda: y,
        "one odd": lambda: np.where(np.arange(n) == n // 2, -1.0, 3.0),
        "true/false": lambda: (y > 0).astype(float),
        "counts": lambda: rng.poisson(np.exp(np.clip(y, -5, 5))).astype(float),
        "huge integers": lambda: np.floor(y * 2.0**60),
        "subnormal": lambda: y * 1e-310,
    }
    y = made.get(case.response, lambda: y + 0.1 * rng.normal(size=n))()
    if case.response == "column":
        return y[:, None]
    return np.column_stack([y, y]) if case.response == "two columns" else y


def _weights(case: Case, rng: np.random.Generator) -> Any:
    n = case.rows
    made = {
        "ones": np.ones(n),
        "fractions": rng.random(n) * (rng.random(n) < 0.8),
        "counts": rng.integers(0, 4, n),
        "zeros": np.zeros(n),
        "one": np.arange(n) == 0,
        "tiny and huge": 10.0 ** rng.uniform(-300, 300, n),
        "tiny": np.full(n, 1e-310),
        "huge": 1e300 * rng.random(n),
        "series": pd.Series(rng.random(n), np.arange(n)[::-1]),
        "list": rng.integers(0, 4, n).tolist(),
        "one number": 2.5,
        "too few": np.ones(max(0, n - 1)),
        "negative": -np.ones(n),
        "nan": np.full(n, np.nan),
        "some subnormal": np.where(rng.random(n) < 0.3, 5e-324, 1.0),
        "true/false": rng.random(n) < 0.8,
        "nullable": pd.array([None, *[1] * (n - 1)][:n], dtype="Int64"),
        "frame": pd.DataFrame({"w": np.ones(n)}),
        "objects": np.array([Decimal(1), *[Fraction(1, 2)] * n][:n], dtype=object),
        "text": np.array(["1"] * n),
        "inf": np.where(np.arange(n) == 0, np.inf, 1.0),
    }
    return made.get(case.weights)


def _with_cell(case: Case, X: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    """Put something odd into one cell."""
    X, y = X * case.unit, y * case.y_unit
    if not (X.size and y.size) or case.cell == "fine":
        return X, y
    row, column = case.rows // 2, case.columns // 2
    if case.cell == "missing column":
        X[:, column] = np.nan
        return X, y
    if case.cell == "y missing":
        y[1:] = np.nan
        return X, y
    if case.cell in ("text", "none", "date", "complex", "na"):
        X = X.astype(object)
    odd = {"far": 1e15 * case.unit, "nan": np.nan, "inf": -np.inf, "too large": 1e300}
    odd |= {"text": "a\x1b[31m", "none": None, "date": np.datetime64("2020-01-01")}
    odd |= {"complex": 1j, "na": pd.NA}
    if case.cell.startswith("y"):
        y = y.astype(object) if case.cell in ("y text", "y none", "y na") else y
        odd = {"y far": 1e15 * case.y_unit, "y nan": np.nan, "y text": "a", "y none": None}
        odd |= {"y na": pd.NA}
        y[row] = odd[case.cell]
    else:
        X[row, column] = odd[case.cell]
    return X, y


def _contained(case: Case, X: Any, y: Any) -> tuple[Any, Any]:
    columns = X.shape[1]
    names: list[Any] = [f"x{i}" for i in range(columns)]
    if case.names == "mixed" and columns > 1:
        names[0] = 1
    elif case.names == "twice" and columns > 1 and "polars" not in case.container:
        names[0] = names[1]
    elif case.names == "odd" and columns:
        names[0] = "\x1b[31m\n\u202e" * 30
    elif case.names == "numbers":
        names = list(range(columns))
    kind = case.container
    if object in (X.dtype, y.dtype) and kind in NUMBERS_ALONE:
        kind = "object"
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: dict[str, Callable[[], Any]] = {
            "array": lambda: (X, y),
            "fortran": lambda: (np.asfortranarray(X), y),
            "float32": lambda: (X.astype(np.float32), y.astype(np.float32)),
            "int": lambda: (np.nan_to_num(X).clip(-1e9, 1e9).astype(int), y),
            "bool": lambda: (X > 0, y > 0),
            "object": lambda: (X.astype(object), y.astype(object)),
            "list": lambda: (X.tolist(), y.tolist()),
            "pandas": lambda: (
                pd.DataFrame(X, columns=names),
                pd.Series(list(y)) if y.ndim == 1 else pd.DataFrame(y),
            ),
            "polars": lambda: (_polars(X, names), _polars_series(y)),
            "nullable": lambda: (
                pd.DataFrame(X, columns=names).convert_dtypes(),
                pd.DataFrame(y).convert_dtypes() if y.ndim == 2 else pd.Series(y).convert_dtypes(),
            ),
            "indexed": lambda: (pd.DataFrame(X, ["a"] * len(X), names), y),
            "texts": lambda: (_described(X, names), y),
            "polars texts": lambda: (pl.from_pandas(_described(X, map(str, names))), y),
            "read-only": lambda: (_read_only(X), _read_only(y)),
            "reversed": lambda: (X[::-1, ::-1], y[::-1]),
            "arrow": lambda: _arrow(X, y, names),
            "arrow table": lambda: (
                pa.table(list(X.T), [f"x{i}" for i in range(columns)]) if columns else X,
                pa.array(y) if y.ndim == 1 else y,
            ),
            "categories": lambda: (_by_turns(X, names, CATEGORIES), y),
            "moments": lambda: (_by_turns(X, names, MOMENTS), y),
            "decimals": lambda: (pd.DataFrame(_each(Decimal, X), columns=names), _each(Decimal, y)),
            "fractions": lambda: (_each(Fraction, X), y),
            "complex": lambda: (X.astype(complex), y.astype(complex)),
            "levels": lambda: (
                pd.DataFrame(
                    X,
                    pd.MultiIndex.from_product([["a"], range(len(X))]),
                    pd.MultiIndex.from_product([["a"], names]) if columns else names,
                ),
                y,
            ),
            "spelled": lambda: (_spelled(pd.DataFrame(X, columns=names)), y),
            "sparse": lambda: (sparse.csr_matrix(X), y),
            "sparse frame": lambda: (
                pd.DataFrame(X, columns=range(columns)).astype(pd.SparseDtype(float, 0.0)),
                y,
            ),
            "masked": lambda: (np.ma.masked_less(X, -2.0), np.ma.masked_invalid(y)),
            "strided": lambda: (np.repeat(X, 3, 1)[:, ::3], np.repeat(y, 2, 0)[::2]),
            "matrix": lambda: (np.asmatrix(X), y),
            "extended": lambda: (X.astype(np.longdouble), y.astype(np.longdouble)),
            "foreign bytes": lambda: (X.astype(">f8"), y.astype(">f4")),
            "half": lambda: (X.astype(np.float16), y.astype(np.float16)),
            "shuffled": lambda: (
                pd.DataFrame(X, np.arange(len(X))[::-1], names),
                pd.Series(list(y), name="y") if y.ndim == 1 else y,
            ),
            "vector": lambda: (X[:, 0] if columns else X, y),
            "python integers": lambda: (_each(_long_integer, X), y),
            "frame of y": lambda: (pd.DataFrame(X, columns=names), pd.DataFrame({"y": list(y)})),
        }
        return made[kind]()


def _polars(X: np.ndarray, names: list[Any]) -> Any:
    if X.dtype == object:  # polars has no mixture of dates and numbers
        X = np.where(np.vectorize(lambda v: isinstance(v, np.datetime64), [bool])(X), None, X)
    named = zip(map(str, names), X.T, strict=True)
    return pl.DataFrame([pl.Series(name, list(column), strict=False) for name, column in named])


def _polars_series(y: np.ndarray) -> Any:
    if y.ndim == 2:
        return y
    return pl.Series("y", list(y), strict=False)


def _described(X: np.ndarray, names: Any) -> Any:
    """Make a frame of columns that are text, a category, dates and true/false, by turns."""
    columns = []
    for i, column in enumerate(X.T):
        real = [isinstance(cell, float) for cell in column]
        places = pd.Series(np.where(real, column, np.nan), dtype=float).rank(method="dense")
        kinds = (
            places.mod(3).map({0.0: "low", 1.0: "high\x1b[31m", 2.0: "7"}),
            places.mod(2).map({0.0: "no", 1.0: "yes"}).astype("category"),
            pd.to_timedelta(places, unit="D") + pd.Timestamp("2020-02-28"),
            places.mod(2).eq(0).astype("boolean").mask(places.eq(3)),
            pd.Series(column),
        )
        columns.append(kinds[i % len(kinds)])
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(len(X)))
    frame.columns = list(names)
    return frame


def _arrow(X: np.ndarray, y: np.ndarray, names: list[Any]) -> tuple[Any, Any]:
    """Make pandas objects that Arrow holds, missing values where there were NaN."""
    frames = pd.DataFrame(X, columns=names), pd.DataFrame(y)
    X, y = (frame.convert_dtypes(dtype_backend="pyarrow") for frame in frames)
    return X, y if y.shape[1] > 1 else y.iloc[:, 0]


def _spelled(frame: pd.DataFrame) -> pd.DataFrame:
    """Write numbers as people do, and nothing where there is none."""
    return frame.map(
        lambda cell: f"{cell:,.3f} €" if isinstance(cell, float) and cell == cell else ""
    )


def _codes(column: np.ndarray) -> np.ndarray:
    """Give whole numbers, from 0 to 2, to a column; -1 where it is NaN."""
    return np.where(np.isnan(column), -1, np.digitize(column, [-0.5, 0.5]))


# Kinds of columns that frames of users have, by turns.
CATEGORIES = (
    lambda column: pd.Categorical.from_codes(_codes(column), ["a", "b", "c", "never"]),
    lambda column: pd.Categorical.from_codes(_codes(column), [1, 2, 3, 4], ordered=True),
    lambda column: pd.Categorical.from_codes(_codes(column), pd.interval_range(0, 3)),
    lambda column: pd.Categorical.from_codes(np.full(len(column), -1), ["never"]),
)
MOMENTS = (
    lambda column: pd.to_datetime(_codes(column), unit="D", utc=True).tz_convert("Asia/Tokyo"),
    lambda column: pd.to_timedelta(_codes(column), unit="h"),
    lambda column: pd.period_range("2020-01", periods=len(column), freq="M"),
    lambda column: pd.Series(pd.to_datetime(_codes(column), unit="D").date, dtype=object),
    lambda column: pd.to_datetime(_codes(column), unit="s").as_unit("s"),
    lambda column: pd.arrays.IntervalArray.from_breaks(np.arange(len(column) + 1)),
    lambda column: column,
)


def _by_turns(X: np.ndarray, names: list[Any], kinds: tuple[Callable[..., Any], ...]) -> Any:
    columns = [pd.Series(kinds[i % len(kinds)](column)) for i, column in enumerate(X.T)]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(len(X)))
    frame.columns = names
    return frame


def _each(make: Callable[..., Any], values: np.ndarray) -> np.ndarray:
    """Make objects of numbers, None where they are not finite."""
    made = np.empty(values.shape, dtype=object)
    for place in np.ndindex(values.shape):
        made[place] = make(float(values[place])) if np.isfinite(values[place]) else None
    return made


def _long_integer(value: float) -> int:
    return int(value) * 2**70


def _read_only(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flags.writeable = False
    return values


def make(case: Case) -> tuple[Any, Any, Any]:
    """Make the table: features, response, weights."""
    rng = np.random.default_rng(case.seed)
    X = _features(case, rng)
    y = _response(case, X, rng)
    return *_contained(case, *_with_cell(case, X, y)), _weights(case, rng)


# --- what must hold ---


class TooSlow(Exception):  # noqa: N818
    """A call took longer than it may."""


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Bound processor time, and, twenty times as long, the time by the clock: who waits hangs."""

    def ring(*_: Any) -> None:
        raise TooSlow(f"more than {seconds} seconds")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, 1), (signal.SIGALRM, signal.ITIMER_REAL, 20))
    before = [signal.signal(number, ring) for number, _, _ in timers]
    for _, timer, times in timers:
        signal.setitimer(timer, times * seconds)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def failure(case: Case, seconds: int = SECONDS) -> str | None:
    """Run a case; say in one line what it breaks, None if nothing."""
    given = make(case)
    before = deepcopy(given)
    with warnings.catch_warnings(record=True) as warned, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always")
        try:
            with _at_most(seconds):
                answer = CALLS[case.call](*given)
        except RegimixError:
            answer = ()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            known = (*DOCUMENTED.get(case.call, ()), *(NO_MATRIX if case.call in META else ()))
            if any(words in str(error) for words in known):
                return None
            return f"{type(error).__name__}: {str(error)[:100]!r} at {_place(error)}"
    for warning in warned:
        scikit_learn = str(warning.message).startswith("X does not have valid feature names")
        if not (scikit_learn or issubclass(warning.category, ALLOWED_WARNINGS)):
            where = f"{warning.filename.rpartition('/')[2]}:{warning.lineno}"
            return f"{warning.category.__name__}: {str(warning.message)[:100]!r} at {where}"
    if not all(map(_same, given, before)):
        return "the input was changed"
    left_out = any(issubclass(warning.category, LeftOutWarning) for warning in warned)
    bad = [i for i, part in enumerate(answer) if not _is_finite(np.asarray(part), left_out)]
    return f"an answer that is not finite, {bad[0]} of those returned" if bad else None


def _is_finite(numbers: np.ndarray, left_out: bool) -> bool:
    if numbers.dtype.kind != "f":
        return True
    if left_out and numbers.ndim:
        # Rows that could not be used have no answers at all, not bad ones.
        numbers = numbers[~np.isnan(numbers.reshape(len(numbers), -1)).all(axis=1)]
    return bool(np.isfinite(numbers).all())


def _same(now: Any, before: Any) -> bool:
    if isinstance(now, pl.DataFrame):
        return repr(now.rows()) == repr(before.rows())
    if isinstance(now, pl.Series | pa.Table | pa.Array):
        return repr(_plain(now)) == repr(_plain(before))
    if hasattr(now, "equals"):
        return bool(now.equals(before))
    if sparse.issparse(now):
        return _same(now.data, before.data)
    if isinstance(now, np.ma.MaskedArray):
        return _same(now.data, before.data) and _same(now.mask, before.mask)
    return repr(now) == repr(before) if isinstance(now, list) else bool(_bits(now) == _bits(before))


def _plain(values: Any) -> Any:
    return values.to_list() if isinstance(values, pl.Series) else values.to_pylist()


def _bits(values: Any) -> bytes:
    values = np.asarray(values)
    return repr(values.tolist()).encode() if values.dtype == object else values.tobytes()


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "regimix" in frame.filename] or frames
    return f"{ours[-1].filename.rpartition('/')[2]}:{ours[-1].lineno}"


def _kind(found: str | None) -> str:
    """Return what tells one failure from another: the class and the place."""
    return "" if found is None else found.partition(":")[0] + found.rpartition(" at ")[2]


def simplest(case: Case, found: str, seconds: int = SECONDS) -> Case:
    """Return a simpler case that fails in the same way: one choice at a time, as long as any is."""
    for _ in range(3):
        before = case
        for name, some in CHOICES.items():
            if name in ("call", "rows", "columns"):
                continue
            trial = replace(case, **{name: some[0]})
            if trial != case and _kind(failure(trial, seconds)) == _kind(found):
                case = trial
        for name, fewer in (("rows", (2, 3, 5, 10)), ("columns", (1, 2))):
            for size in fewer:
                trial = replace(case, **{name: size})
                if size < getattr(case, name) and _kind(failure(trial, seconds)) == _kind(found):
                    case = trial
                    break
        if case == before:
            break
    return case
