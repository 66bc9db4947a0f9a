"""Awkward tables, case by case: a clear error, or the right answer.

Every case goes through the door, through ``ilts`` and through ``TrimmedRegressor``. Right answers
are certified with rational arithmetic: the coefficients are the least squares fit to the kept rows,
and the kept rows are those of smallest residual.
"""

import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix import TrimmedRegressor, ilts
from regimix.data.problem import Problem
from regimix.errors import DataError, DataKindError, EvidenceWarning, RankWarning, RegimixWarning

few = settings(max_examples=30, deadline=None)
seeds = st.integers(0, 2**32 - 1)

N, D = 40, 2
COEF, CONSTANT, NOISE = np.array([2.0, -3.0]), 4.0, 0.1
rng = np.random.default_rng(20190214)
X = rng.normal(size=(N, D))
Y = X @ COEF + CONSTANT + NOISE * rng.normal(size=N)
Y[:4] += 20.0
NAMES = ["height", "weight"]
FRAME = pd.DataFrame(X, columns=NAMES)
TEXT = "str" if pd.__version__ >= "3" else "string"  # pandas 2 takes "str" for objects
POLARS = pl.DataFrame(X, schema=NAMES)
ROWS = np.arange(N)


def enter_door(X, y, weights=None):
    return Problem.from_arrays(X, y, weights)


def enter_ilts(X, y, weights=None):
    return ilts(X, y, keep=0.8, fit_intercept=True, sample_weight=weights)


def enter_estimator(X, y, weights=None):
    # Numbers alone; what is made of other data frames is tested with the estimators.
    strict = TrimmedRegressor(n_starts=8, random_state=0, encode=None)
    return strict.fit(X, y, sample_weight=weights)


entrances = pytest.mark.parametrize("enter", [enter_door, enter_ilts, enter_estimator])


def with_value(values, row, value, column=None):
    """A copy in which one number is another."""
    changed = np.array(values)
    changed[row if column is None else (row, column)] = value
    return changed


# --- refused -------------------------------------------------------------------------------------

NOT_NUMBERS = "cannot be read as numbers"
MISSING = ("Input contains NaN", "Drop such rows, or fill")
INFINITE = ("Input contains infinity", "Drop such rows, or fill")
TOO_LARGE = ("too large", "1e+140", "power of ten")
TOO_SMALL = ("too little", "1e-140", "power of ten")

# What is passed, and words that the message must contain.
REFUSED = {
    # shapes
    "no rows": (X[:0], Y[:0], None, ("0 row(s)", "minimum of 2", "more rows")),
    "one row": (X[:1], Y[:1], None, ("1 row(s)", "minimum of 2", "more rows")),
    "no columns": (X[:, :0], Y, None, ("0 feature(s)", "(40, 0)", "at least one column")),
    "empty list": ([], [], None, ("got 1D array", "(0,)")),
    "one dimension": (X[:, 0], Y, None, ("got 1D array", "(40,)", "X.reshape(-1, 1)")),
    "three dimensions": (
        X[:, :, None],
        Y,
        None,
        ("got 3D array", "(40, 2, 1)", "one row for each"),
    ),
    "a number": (3.5, Y, None, ("got 0D array",)),
    "ragged": ([[1.0, 2.0], [3.0]], [1.0, 2.0], None, ("X ", "differ in length")),
    "y too short": (X, Y[:-1], None, ("inconsistent", "X has 40", "y has 39")),
    "y too long": (X[:-1], Y, None, ("inconsistent", "X has 39", "y has 40")),
    "y of two columns": (X, X, None, ("one number a row", "(40, 2)", "one response at a time")),
    "y a number": (X, 1.0, None, ("one number a row", "()")),
    "y missing": (X, None, None, ("requires y", "None")),
    "y ragged": (X, [[1.0]] * (N - 1) + [[1.0, 2.0]], None, ("y ", "differ in length")),
    # containers
    "nothing": (None, Y, None, ("NoneType", "pass an array")),
    "dictionary": ({"a": 1}, Y, None, ("dict", "pass an array")),
    "generator": ((row for row in X), Y, None, ("generator", "pass an array")),
    "polars lazy": (POLARS.lazy(), Y, None, ("LazyFrame", "data frame")),
    "sparse": (scipy.sparse.csr_matrix(X), Y, None, ("sparse", "(40, 2)", "X.toarray()", "GiB")),
    "sparse array": (scipy.sparse.coo_array(X), Y, None, ("sparse", "X.toarray()")),
    "sparse, large": (
        scipy.sparse.dok_array((10**6, 10**6)),
        Y,
        None,
        ("sparse", "7.45e+03 GiB", "select columns"),
    ),
    "y sparse": (X, scipy.sparse.csr_matrix(Y[:, None]), None, ("y is a sparse", "y.toarray()")),
    "pandas sparse": (FRAME.astype(pd.SparseDtype(float)), Y, None, ("'height'", "Sparse")),
    "masked": (
        np.ma.array(X, mask=with_value(X, 7, 9, 1) == 9),
        Y,
        None,
        ("X is a masked array", "[7, 1]", "drop those rows"),
    ),
    "y masked": (X, np.ma.array(Y, mask=ROWS == 3), None, ("y is a masked array", "[3]", "drop")),
    "weights masked": (
        X,
        Y,
        np.ma.array(np.ones(N), mask=ROWS == 3),
        ("sample_weight is a masked array", "[3]", "drop"),
    ),
    "two columns of one name": (
        FRAME.set_axis(["a", "a"], axis=1),
        Y,
        None,
        ("more than one column named 'a'", "rename"),
    ),
    # kinds
    "complex": (X + 1j, Y, None, ("complex", "not supported")),
    "y complex": (X, Y + 0j, None, ("y holds complex", "not supported")),
    "pandas complex": (FRAME.astype(complex), Y, None, ("'height'", "complex128")),
    "dates": (X.astype("M8[D]"), Y, None, ("datetime64[D]", "days since")),
    "durations": (X.astype("m8[s]"), Y, None, ("timedelta64[s]", "convert")),
    "y dates": (X, Y.astype("M8[D]"), None, ("y holds datetime64[D]", "days since")),
    "text": (X.astype(str), Y, None, ("X holds ", "not numbers", "astype(float)")),
    "bytes": (X.astype("S"), Y, None, ("X holds ", "not numbers", "astype(float)")),
    "string type": (
        X.astype(np.dtypes.StringDType()),
        Y,
        None,
        ("X holds ", "not numbers", "astype(float)"),
    ),
    "y text": (X, ["high"] * N, None, ("y holds ", "not numbers", "astype(float)")),
    "y text that spells numbers": (
        X,
        Y.astype(str),
        None,
        ("y holds ", "not numbers", "astype(float)"),
    ),
    "y one word": (
        X,
        with_value(Y.astype(object), 5, "high"),
        None,
        ("y holds 'high'", "row 5", "not a number"),
    ),
    "weights text": (X, Y, ["high"] * N, ("sample_weight holds ", "astype(float)")),
    "records": (np.zeros((N, 2), dtype=[("a", float)]), Y, None, ("not numbers", "convert")),
    "object of text": (
        with_value(X.astype(object), 6, "tall", 1),
        Y,
        None,
        ("column 'x1'", "'tall'", "row 6", "not a number"),
    ),
    "object of lists": (
        with_value(X.astype(object), 6, {}, 1),
        Y,
        None,
        ("column 'x1'", "{}", "row 6", "not a number"),
    ),
    "pandas text": (
        FRAME.assign(name="Ada", born=pd.Timestamp("1815-12-10")).astype({"name": TEXT}),
        Y,
        None,
        (NOT_NUMBERS, "'name'", "'born'", "datetime64", "0/1 column"),
    ),
    "pandas object of text": (
        FRAME.assign(name=with_value(ROWS.astype(object), 9, "Ada")),
        Y,
        None,
        ("column 'name'", "'Ada'", "row 9", "not a number"),
    ),
    "pandas categories": (
        FRAME.assign(group=pd.Categorical(ROWS % 3)),
        Y,
        None,
        (NOT_NUMBERS, "'group'", "category", "0/1 column"),
    ),
    "pandas periods": (
        FRAME.assign(month=pd.period_range("2020-01", periods=N, freq="M")),
        Y,
        None,
        (NOT_NUMBERS, "'month'", "period"),
    ),
    "pandas y categories": (X, pd.Series(pd.Categorical(ROWS % 3)), None, ("y (category)",)),
    "polars text": (
        POLARS.with_columns(name=pl.lit("Ada"), born=pl.date(1815, 12, 10)),
        Y,
        None,
        (NOT_NUMBERS, "'name'", "String", "'born'", "Date", "0/1 column"),
    ),
    "polars categories": (
        POLARS.with_columns(group=pl.lit("a").cast(pl.Categorical)),
        Y,
        None,
        (NOT_NUMBERS, "'group'", "Categorical"),
    ),
    "polars lists": (
        POLARS.with_columns(pair=pl.concat_list(NAMES)),
        Y,
        None,
        (NOT_NUMBERS, "'pair'", "List"),
    ),
    "polars 128 bits": (
        POLARS.with_columns(long=pl.lit(1).cast(pl.Int128)),
        Y,
        None,
        (NOT_NUMBERS, "'long'", "Int128"),
    ),
    "polars y text": (X, pl.Series(["1"] * N), None, ("y (String)",)),
    # missing and infinite
    "NaN": (with_value(X, 7, np.nan, 1), Y, None, (*MISSING, "column 'x1'", "row 7")),
    "inf": (with_value(X, 7, np.inf, 1), Y, None, (*INFINITE, "column 'x1'", "row 7")),
    "-inf": (with_value(X, 7, -np.inf, 1), Y, None, (*INFINITE, "'x1'", "-inf", "row 7")),
    "y NaN": (X, with_value(Y, 8, np.nan), None, (*MISSING, "y is nan", "row 8")),
    "y inf": (X, with_value(Y, 8, np.inf), None, (*INFINITE, "y is inf", "row 8")),
    "y -inf": (X, with_value(Y, 8, -np.inf), None, (*INFINITE, "y is -inf", "row 8")),
    "weight NaN": (X, Y, with_value(np.ones(N), 9, np.nan), (*MISSING, "sample_weight", "row 9")),
    "weight inf": (X, Y, with_value(np.ones(N), 9, np.inf), (*INFINITE, "sample_weight", "row 9")),
    "NaN in an absent row": (
        with_value(X, 7, np.nan, 1),
        Y,
        with_value(np.ones(N), 7, 0.0),
        (*MISSING, "column 'x1'", "row 7"),
    ),
    "float16 inf": (with_value(X.astype("f2"), 7, np.inf, 0), Y, None, (*INFINITE, "row 7")),
    "float32 inf": (with_value(X.astype("f4"), 7, np.inf, 0), Y, None, (*INFINITE, "row 7")),
    "big-endian NaN": (with_value(X.astype(">f8"), 7, np.nan, 0), Y, None, (*MISSING, "row 7")),
    "object NaN": (with_value(X.astype(object), 7, None, 1), Y, None, (*MISSING, "'x1'", "row 7")),
    "list with None": ([[1.0, None], [2.0, 3.0]], [1.0, 2.0], None, (*MISSING, "'x1'", "row 0")),
    "y with None": (X, [None, *Y[1:]], None, (*MISSING, "y is nan", "row 0")),
    "pandas NaN": (
        FRAME.mask(FRAME.iloc[7, 1] == FRAME),
        Y,
        None,
        (*MISSING, "column 'weight'", "row 7"),
    ),
    "pandas Float64 missing": (
        FRAME.astype("Float64").mask(FRAME.iloc[7, 1] == FRAME),
        Y,
        None,
        (*MISSING, "column 'weight'", "row 7"),
    ),
    "pandas Int64 missing": (
        FRAME.assign(age=pd.Series(ROWS, dtype="Int64").mask(ROWS == 11)),
        Y,
        None,
        (*MISSING, "column 'age'", "row 11"),
    ),
    "pandas boolean missing": (
        FRAME.assign(ill=pd.Series(ROWS > 3, dtype="boolean").mask(ROWS == 11)),
        Y,
        None,
        (*MISSING, "column 'ill'", "row 11"),
    ),
    "pandas NA in objects": (
        FRAME.assign(age=with_value(ROWS.astype(object), 11, pd.NA)),
        Y,
        None,
        (*MISSING, "column 'age'", "row 11"),
    ),
    "pandas y missing": (
        X,
        pd.Series(ROWS, dtype="Int64").mask(ROWS == 11),
        None,
        (*MISSING, "y ", "row 11"),
    ),
    "pandas weight missing": (
        X,
        Y,
        pd.Series(ROWS, dtype="Int64").mask(ROWS == 11),
        (*MISSING, "sample_weight", "row 11"),
    ),
    "polars null": (
        POLARS.with_columns(age=pl.Series([*range(5), None, *range(6, N)])),
        Y,
        None,
        (*MISSING, "column 'age'", "row 5"),
    ),
    "polars boolean null": (
        POLARS.with_columns(ill=pl.Series([True, None] * (N // 2))),
        Y,
        None,
        (*MISSING, "column 'ill'", "row 1"),
    ),
    "polars nothing but null": (
        POLARS.with_columns(empty=pl.lit(None)),
        Y,
        None,
        (*MISSING, "column 'empty'", "row 0"),
    ),
    "polars y null": (X, pl.Series([*Y[:-1], None]), None, (*MISSING, "y ", "row 39")),
    # weights
    "weights too few": (X, Y, np.ones(N - 1), ("sample_weight", "(40,)", "(39,)")),
    "weights of two dimensions": (X, Y, np.ones((N, 1)), ("sample_weight", "(40,)", "(40, 1)")),
    "negative weight": (X, Y, with_value(np.ones(N), 3, -1.0), ("negative", "row 3", "positive")),
    "all weights zero": (X, Y, np.zeros(N), ("all rows but 0", "absent", "positive weights")),
    "one weight": (X, Y, (ROWS == 3).astype(float), ("all rows but 1", "minimum of 2")),
    # sizes
    "1e300": (1e300 * X, Y, None, (*TOO_LARGE, "column 'x0'", "row 0")),
    "one 1e300": (with_value(X, 7, 1e300, 1), Y, None, (*TOO_LARGE, "column 'x1'", "row 7")),
    "y 1e300": (X, 1e300 * Y, None, (*TOO_LARGE, "y is", "row 0")),
    "y one 1e300": (X, with_value(Y, 8, -1e300), None, (*TOO_LARGE, "y is -1e+300", "row 8")),
    "longdouble 1e400": (
        X * np.longdouble("1e400"),
        Y,
        None,
        ("too large for dtype('float64')", "column 'x0'", "row 0"),
    ),
    "1e-300": (1e-300 * X, Y, None, (*TOO_SMALL, "column 'x0'", "e-30")),
    "one column of 1e-300": (X * [1.0, 1e-300], Y, None, (*TOO_SMALL, "column 'x1'")),
    "subnormal": (X * [1.0, 1e-315], Y, None, (*TOO_SMALL, "column 'x1'")),
    "y 1e-300": (X, 1e-300 * Y, None, (*TOO_SMALL, "y varies")),
    "longdouble 1e-400": (
        X * np.longdouble("1e-400"),
        Y,
        None,
        ("column 'x0'", "e-40", "too small", "power of ten"),
    ),
    "a placeholder": (
        with_value(X, 7, -1e35, 1),
        Y,
        None,
        ("column 'x1'", "varies by about 1", "-1e+35 in row 7", "placeholder"),
    ),
    "y a placeholder": (X, with_value(Y, 8, 1e35), None, ("y varies", "1e+35 in row 8", "Drop")),
    "two scales": (
        with_value(1e-40 * X, 7, 1.0, 1),
        Y,
        None,
        ("column 'x1'", "is 1 in row 7", "set the tiny values to zero"),
    ),
    "an offset of 1e12": (
        X + np.array([0.0, 1e12]),
        Y,
        None,
        ("column 'x1'", "Subtract 1e+12", "digits"),
    ),
    "y with an offset": (X, Y + 1e13, None, ("y varies", "Subtract 1e+13", "digits")),
    "constant but for rounding": (
        np.column_stack([X, np.where(ROWS % 2, 0.3, 0.1 + 0.2)]),
        Y,
        None,
        ("column 'x2'", "around 0.3", "constant"),
    ),
    "whole numbers beyond double precision": (
        np.column_stack([ROWS, ROWS]).astype(np.uint64) + np.uint64(2**64 - 100),
        Y,
        None,
        ("column 'x0'", "18446744073709551516", "subtract"),
    ),
    "whole numbers beyond double precision in a frame": (
        FRAME.assign(key=2**62 + ROWS),
        Y,
        None,
        ("column 'key'", str(2**62), "subtract"),
    ),
    "y beyond double precision": (X, 2**62 + ROWS, None, ("y holds", str(2**62), "subtract")),
}

if np.finfo(np.longdouble).maxexp == np.finfo(np.float64).maxexp:
    del REFUSED["longdouble 1e400"], REFUSED["longdouble 1e-400"]

KINDS = (
    *("nothing", "dictionary", "generator", "polars lazy", "complex", "y complex", "dates"),
    *("durations", "y dates", "text", "bytes", "string type", "y text", "weights text", "records"),
    *("sparse", "y sparse", "pandas text", "pandas categories", "polars text"),
)


@entrances
@pytest.mark.parametrize("case", REFUSED)
def test_a_table_that_cannot_be_used_is_refused_clearly(case, enter):
    table, y, weights, words = REFUSED[case]
    if case == "generator":
        table = (row for row in X)  # the one above is used up by the first entrance
    with pytest.raises(DataError) as caught:
        enter(table, y, weights)
    message = str(caught.value)
    for word in words:
        assert word in message
    assert message.endswith((".", "!"))
    assert len(message) < 500
    assert isinstance(caught.value, DataKindError) or case not in KINDS


# --- the same numbers in another container -------------------------------------------------------


def memory_map(path):
    np.save(path / "X.npy", X)
    return np.load(path / "X.npy", mmap_mode="r")


CONTAINERS = {
    "fortran": (np.asfortranarray(X), Y),
    "strided": (np.repeat(X, 3, axis=1)[:, ::3], np.repeat(Y, 2)[::2]),
    "backwards": (X[::-1][::-1], Y[::-1][::-1]),
    "big-endian": (X.astype(">f8"), Y.astype(">f8")),
    "longdouble": (X.astype(np.longdouble), Y.astype(np.longdouble)),
    "objects": (X.astype(object), Y.astype(object)),
    "lists": (X.tolist(), Y.tolist()),
    "unmasked": (np.ma.array(X), np.ma.array(Y)),
    "pandas": (FRAME, pd.Series(Y)),
    "pandas, other index": (FRAME.set_axis(ROWS[::-1]), pd.Series(Y, index=ROWS + 100)),
    "pandas nullable": (FRAME.astype("Float64"), pd.Series(Y, dtype="Float64")),
    "pandas objects": (FRAME.astype(object), pd.Series(Y, dtype=object)),
    "pandas, one object": (FRAME.astype({"weight": object}), Y),
    "pandas big-endian": (FRAME.astype(">f8"), Y),
    "polars": (POLARS, pl.Series(Y)),
    "polars, fortran": (pl.DataFrame(np.asfortranarray(X), schema=NAMES), Y),
}


@cache
def plain_estimate():
    return enter_estimator(X, Y)


def same_fit(one, other):
    """Two trimmed fits that differ by rounding alone."""
    np.testing.assert_allclose(one.coef, other.coef, rtol=1e-12)
    np.testing.assert_allclose(one.intercept, other.intercept, rtol=1e-12)
    np.testing.assert_array_equal(one.kept, other.kept)


def same_estimate(one, other):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-11)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=1e-11)
    np.testing.assert_allclose(one.scale_, other.scale_, rtol=1e-9)
    np.testing.assert_array_equal(one.inlier_mask_, other.inlier_mask_)


@pytest.mark.parametrize("case", [*CONTAINERS, "memory map"])
def test_the_container_does_not_matter(case, tmp_path):
    table, y = (memory_map(tmp_path), Y) if case == "memory map" else CONTAINERS[case]
    same_fit(enter_ilts(table, y), enter_ilts(X, Y))
    estimate = enter_estimator(table, y)
    same_estimate(estimate, plain_estimate())
    np.testing.assert_allclose(estimate.predict(table), estimate.predict(pd_or_plain(table)))


def pd_or_plain(table):
    """The numbers of a table, with names if it has names: scikit-learn asks for them."""
    if isinstance(table, (pd.DataFrame, pl.DataFrame)):
        return FRAME
    return X


SMALL = np.clip(np.round(5 * X), -12, 12)


@pytest.mark.parametrize("kind", ["f2", "f4", "i1", "i2", "i4", "i8", ">i4", ">f4"])
def test_the_kind_of_number_does_not_matter(kind):
    y = np.round(SMALL @ COEF + 40)
    same_fit(enter_ilts(SMALL.astype(kind), y.astype(kind)), enter_ilts(SMALL, y))
    same_estimate(enter_estimator(SMALL.astype(kind), y), enter_estimator(SMALL, y))


@pytest.mark.parametrize("kind", ["u1", "u8", "?"])
def test_unsigned_numbers_and_truth_values_are_numbers(kind):
    table = (X > 0 if kind == "?" else np.abs(SMALL)).astype(kind)
    plain = table.astype(float)
    y = plain @ COEF + Y
    same_fit(enter_ilts(table, y), enter_ilts(plain, y))
    same_estimate(enter_estimator(table, y), enter_estimator(plain, y))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_columns_of_many_kinds_are_numbers(library):
    parts = {"ill": X[:, 0] > 0, "age": np.arange(N, dtype=np.int16), "height": X[:, 1]}
    plain = np.column_stack([part.astype(float) for part in parts.values()])
    y = plain @ [5.0, 0.1, 1.0] + NOISE * Y
    same_fit(enter_ilts(library(parts), y), enter_ilts(plain, y))
    same_estimate(enter_estimator(library(parts), y), enter_estimator(plain, y))


# --- right answers -------------------------------------------------------------------------------


def exact_fit(X, y, weights=None):
    """Least squares with an intercept in rational arithmetic: constant first."""
    rows = [[Fraction(1), *(Fraction(float(v)) for v in row)] for row in X]
    targets = [Fraction(float(v)) for v in y]
    masses = [Fraction(1)] * len(rows) if weights is None else [Fraction(float(w)) for w in weights]
    p = len(rows[0])
    system = [[Fraction(0)] * (p + 1) for _ in range(p)]
    for row, target, mass in zip(rows, targets, masses, strict=True):
        for i in range(p):
            for j, value in enumerate((*row, target)):
                system[i][j] += mass * row[i] * value
    for i in range(p):
        system[i] = [value / system[i][i] for value in system[i]]
        for k in range(p):
            if k != i:
                factor = system[k][i]
                system[k] = [a - factor * b for a, b in zip(system[k], system[i], strict=True)]
    return [row[p] for row in system]


def exact_residuals(solution, X, y):
    return [
        Fraction(float(target))
        - solution[0]
        - sum(c * Fraction(float(v)) for c, v in zip(solution[1:], row, strict=True))
        for row, target in zip(X, y, strict=True)
    ]


def certify(fit, X, y, *, rtol=1e-11):
    """Check a fit of 80 % of the rows against its definition, in rational arithmetic."""
    count = int(0.8 * len(y))
    assert fit.stopped == "fixed point"
    assert fit.kept.sum() == count
    solution = exact_fit(X[fit.kept], y[fit.kept])
    residuals = exact_residuals(solution, X, y)
    smallest = sorted(range(len(y)), key=lambda row: abs(residuals[row]))[:count]
    assert set(smallest) == set(np.flatnonzero(fit.kept).tolist())
    np.testing.assert_allclose(fit.coef, [float(c) for c in solution[1:]], rtol=rtol)
    size = abs(solution[0]) + sum(
        abs(c) * Fraction(float(v))
        for c, v in zip(solution[1:], np.abs(X).max(axis=0), strict=True)
    )
    assert abs(Fraction(fit.intercept) - solution[0]) <= Fraction(rtol) * size
    square = float(sum(residuals[row] ** 2 for row in smallest))
    return square, solution


def certify_estimate(estimate, X, y, *, rtol=1e-7):
    """Check a reweighted fit: least squares on its inliers, which are not the corrupted rows."""
    inliers = estimate.inlier_mask_
    assert not inliers[1:4].any()  # what row 0 says depends on the case
    assert inliers.sum() > 0.8 * len(y)
    solution = exact_fit(X[inliers], y[inliers])
    np.testing.assert_allclose(estimate.coef_, [float(c) for c in solution[1:]], rtol=rtol)
    predicted = estimate.predict(X[inliers])
    exact = [
        Fraction(float(v)) - r for v, r in zip(y, exact_residuals(solution, X, y), strict=True)
    ]
    exact = np.array([float(v) for v in exact])[inliers]
    np.testing.assert_allclose(predicted, exact, rtol=1e-9, atol=1e-4 * estimate.scale_)


AWKWARD = {
    "plain": (X, Y),
    "huge columns": (1e120 * X, Y),
    "tiny columns": (1e-120 * X, Y),
    "huge response": (X, 1e120 * Y),
    "tiny response": (X, 1e-120 * Y),
    "all huge": (1e135 * X, 1e135 * Y),
    "all tiny": (1e-135 * X, 1e-135 * Y),
    "a huge and a tiny column": (X * [1e135, 1e-135], Y),
    "huge over tiny": (1e-120 * X, 1e120 * Y),
    "tiny over huge": (1e120 * X, 1e-120 * Y),
    "an offset of 1e4": (X + 1e4, Y),
    "an offset of 1e8": (X + 1e8, Y),
    "offsets of both signs": (X + np.array([1e8, -1e9]), Y),
    "an offset in y": (X, Y + 1e8),
    "offsets everywhere": (X + 1e8, Y - 1e9),
    "one value of 1e-300": (with_value(X, 9, 1e-300, 1), Y),
    "y one value of 1e-300": (X, with_value(Y, 0, 1e-300)),
    "one value of 1e25": (with_value(X, 0, 1e25, 1), Y),
    "y one value of 1e8": (X, with_value(Y, 0, -1e8)),
    "y one value of 1e25": (X, with_value(Y, 0, -1e25)),
    "large whole numbers": (np.round(X * 1e6).astype(np.int64) + 10**12, Y),
    "times in nanoseconds": (np.round(X * 1e13).astype(np.int64) + 17 * 10**17, Y),
}


@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_numbers_are_fitted_correctly(case):
    table, y = AWKWARD[case]
    start, constant = None, 0.0
    if "1e25" in case:
        # Least squares on all rows obeys such a value, and ILTS may stay with it: start elsewhere.
        start, constant = COEF, CONSTANT
    fit = ilts(table, y, start, keep=0.8, start_intercept=constant, fit_intercept=True)
    square, _ = certify(fit, table, y)
    np.testing.assert_allclose(fit.objective[-1], square, rtol=1e-4)
    # One row in forty is more than the tail that keep="auto" disregards.
    keep = 0.8 if case == "y one value of 1e25" else "auto"
    estimate = TrimmedRegressor(keep=keep, random_state=0).fit(table, y)
    certify_estimate(estimate, table, y)


@few
@given(seeds)
def test_units_do_not_matter(seed):
    """Rescaling and translating changes neither kept rows nor fitted values."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(60, 3))
    y = table @ rng.normal(size=3) + 0.3 * rng.normal(size=60)
    scale, target_scale = 10 ** rng.uniform(-8, 8, 3), 10 ** rng.uniform(-8, 8)
    shift, target_shift = rng.uniform(-1e3, 1e3, 3), rng.uniform(-1e3, 1e3)
    moved, moved_y = (table + shift) * scale, (y + target_shift) * target_scale
    fit, moved_fit = enter_ilts(table, y), enter_ilts(moved, moved_y)
    np.testing.assert_array_equal(moved_fit.kept, fit.kept)
    fitted = table @ fit.coef + fit.intercept
    moved_fitted = (moved @ moved_fit.coef + moved_fit.intercept) / target_scale - target_shift
    np.testing.assert_allclose(moved_fitted, fitted, rtol=0, atol=1e-8)
    plain = ilts(table, y, keep=0.8)
    scaled = ilts(table * scale, y * target_scale, keep=0.8)
    np.testing.assert_array_equal(scaled.kept, plain.kept)
    np.testing.assert_allclose(scaled.coef * scale / target_scale, plain.coef, rtol=1e-9)


@few
@given(seeds, st.booleans())
def test_powers_of_two_do_not_even_change_the_last_digit(seed, intercept):
    rng = np.random.default_rng(seed)
    table, y = rng.normal(size=(50, 3)) + 2, rng.normal(size=50)
    scale, target_scale = 2.0 ** rng.integers(-60, 60, 3), 2.0 ** int(rng.integers(-60, 60))
    fit = ilts(table, y, keep=0.7, fit_intercept=intercept)
    scaled = ilts(table * scale, y * target_scale, keep=0.7, fit_intercept=intercept)
    np.testing.assert_array_equal(scaled.coef * scale / target_scale, fit.coef)
    assert scaled.intercept / target_scale == fit.intercept
    np.testing.assert_array_equal(scaled.objective / target_scale**2, fit.objective)


# --- tables that do not determine everything -----------------------------------------------------

DEPENDENT = {
    "a column of 0": np.zeros(N),
    "a column of 1": np.ones(N),
    "a column of 0.1": np.full(N, 0.1),
    "a column of 123456.789": np.full(N, 123456.789),
    "a column of 1e-300": np.full(N, 1e-300),
    "a duplicate": X[:, 0],
    "a multiple": -7.3 * X[:, 1],
    "a sum": X[:, 0] + X[:, 1],
    "a combination": 5 + X @ [0.3, -11.0],
    "a combination far away": 1000 + X @ [0.3, -11.0],
}


@pytest.mark.parametrize("case", DEPENDENT)
@pytest.mark.parametrize("offset", [0.0, 10.0, 1e6])
def test_a_dependent_column_is_reported_and_changes_no_prediction(case, offset):
    base = X + offset
    column = DEPENDENT[case]
    if case in ("a duplicate", "a multiple"):
        column = column + offset
    table = np.column_stack([base, column])
    fit, plain = enter_ilts(table, Y), enter_ilts(base, Y)
    assert fit.rank == plain.rank == 3
    np.testing.assert_array_equal(fit.kept, plain.kept)
    atol = 1e-9 * max(1.0, offset)
    fitted = table @ fit.coef + fit.intercept
    np.testing.assert_allclose(fitted, base @ plain.coef + plain.intercept, rtol=0, atol=atol)
    assert np.abs(fit.coef).max() < 20
    if case.startswith("a column"):
        assert abs(fit.coef[2] * column[0]) < 1e-9


@pytest.mark.parametrize("case", DEPENDENT)
def test_a_dependent_column_is_warned_of(case):
    table = np.column_stack([X, DEPENDENT[case]])
    with pytest.warns(RankWarning, match="3 of 4 coefficients"):
        estimate = enter_estimator(table, Y)
    inliers = estimate.inlier_mask_
    assert inliers.sum() > 0.8 * N
    solution = [float(c) for c in exact_fit(X[inliers], Y[inliers])]
    np.testing.assert_allclose(estimate.predict(table), X @ solution[1:] + solution[0], rtol=1e-9)


def test_a_table_of_nothing_fits_the_response_alone():
    fit = enter_ilts(np.zeros((N, 2)), Y)
    np.testing.assert_array_equal(fit.coef, 0.0)
    assert fit.rank == 1
    np.testing.assert_allclose(fit.intercept, Y[fit.kept].mean())
    with pytest.warns(RankWarning, match="1 of 3"), pytest.warns(EvidenceWarning):
        estimate = enter_estimator(np.zeros((N, 2)), Y)
    np.testing.assert_array_equal(estimate.coef_, 0.0)


@pytest.mark.parametrize("value", [0.0, 7.0, -0.1, 1e120, 1e-300])
def test_a_constant_response_is_fitted_by_itself(value):
    y = np.full(N, value)
    fit = enter_ilts(X, y)
    np.testing.assert_allclose(fit.coef, 0.0, atol=1e-15 * value if value > 0 else 1e-15)
    np.testing.assert_allclose(fit.intercept, value, rtol=1e-15)
    with pytest.warns(EvidenceWarning):  # no line explains a constant better than a constant does
        estimate = enter_estimator(X, y)
    np.testing.assert_allclose(estimate.predict(X), value, rtol=1e-13)
    assert estimate.scale_ <= 1e-13 * abs(value)
    assert estimate.inlier_mask_.all()


def test_a_response_that_is_constant_but_for_rounding_is_constant():
    y = np.where(ROWS % 2, 0.3, 0.1 + 0.2)
    np.testing.assert_allclose(enter_ilts(X, y).coef, 0.0, atol=1e-15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvidenceWarning)
        estimate = enter_estimator(X, y)
    np.testing.assert_allclose(estimate.predict(X), 0.3, rtol=1e-15)
    assert estimate.inlier_mask_.all()


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("intercept", [True, False])
def test_fewer_rows_than_coefficients_are_interpolated(n, intercept):
    table = np.random.default_rng(n).normal(size=(n, 6))
    y = table @ np.arange(1.0, 7.0) + 3
    fit = ilts(table, y, keep=1.0, fit_intercept=intercept)
    assert fit.rank == n
    np.testing.assert_allclose(table @ fit.coef + fit.intercept, y, rtol=1e-9)
    assert fit.objective[-1] < 1e-18
    part = ilts(table, y, keep=0.8, fit_intercept=intercept)
    assert part.rank == part.kept.sum() == int(0.8 * n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RegimixWarning)
        estimate = TrimmedRegressor(fit_intercept=intercept, random_state=0).fit(table, y)
    inliers = estimate.inlier_mask_
    assert inliers.any()
    np.testing.assert_allclose(estimate.predict(table)[inliers], y[inliers], rtol=1e-6)


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [0.37, 1e-200, 1e200])
def test_the_unit_of_importances_does_not_matter(unit):
    weights = np.random.default_rng(1).uniform(0.1, 2, N)
    same_fit(enter_ilts(X, Y, weights * unit), enter_ilts(X, Y, weights))
    same_estimate(enter_estimator(X, Y, weights * unit), enter_estimator(X, Y, weights))


@pytest.mark.parametrize("weights", [np.ones(N), 1, [True] * N, pd.Series(np.ones(N, dtype=int))])
def test_weights_of_one_are_no_weights(weights):
    same_fit(enter_ilts(X, Y, weights), enter_ilts(X, Y))
    same_estimate(enter_estimator(X, Y, weights), plain_estimate())


def test_an_importance_fit_is_weighted_least_squares():
    weights = np.random.default_rng(2).uniform(0.1, 2, N)
    fit = enter_ilts(X, Y, weights)
    kept_weight = fit.kept_weight * (weights.sum() / N)
    np.testing.assert_allclose(kept_weight.sum(), 0.8 * weights.sum())
    # One row is kept in part, the others as they are.
    assert np.sum(~np.isclose(kept_weight, np.where(fit.kept, weights, 0.0))) <= 1
    solution = exact_fit(X, Y, fit.kept_weight)
    np.testing.assert_allclose(fit.coef, [float(c) for c in solution[1:]], rtol=1e-11)
    np.testing.assert_allclose(fit.intercept, float(solution[0]), rtol=1e-11)


def test_what_an_absent_row_says_does_not_matter():
    weights = np.ones(N)
    weights[::5] = 0
    garbage = np.where(weights[:, None] > 0, X, 1e20)
    fit, plain = enter_ilts(garbage, Y, weights), enter_ilts(X[weights > 0], Y[weights > 0])
    np.testing.assert_allclose(fit.coef, plain.coef, rtol=1e-11)
    np.testing.assert_array_equal(fit.kept[weights > 0], plain.kept)
    assert not fit.kept[weights == 0].any()
    estimate = enter_estimator(garbage, Y, weights)
    expected = enter_estimator(X[weights > 0], Y[weights > 0])
    np.testing.assert_allclose(estimate.coef_, expected.coef_, rtol=1e-9)
