"""Mixtures to save: one that is always the same, and any that Hypothesis can think of."""

import dataclasses
import io
import zipfile

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from regimix.data.recipe import Column, Recipe
from regimix.result.gate import Gate, TreeGate
from regimix.result.inference import Inference
from regimix.result.mixture import Mixture
from regimix.result.rivals import Rival
from regimix.result.rowlaw import RowLaw
from regimix.result.stability import Stability
from regimix.search.selection import Attempt, Selection
from regimix.search.settings import Settings
from regimix.search.subspace import Subspace

RECIPE = {
    "target": "price",
    "columns": [
        {"name": "area", "kind": "number", "levels": []},
        {"name": "colour", "kind": "levels", "levels": ["red", "blue"]},
    ],
    "weights": None,
    "key": "id",
}


def example() -> Mixture:
    """Return a mixture with every field set; tests/store/data/version-2.regimix holds it."""
    return Mixture(
        coef=np.array([[1.5, -2.0], [0.1, 1e-300]]),
        intercept=np.array([0.25, -0.0]),
        weights=np.array([0.6, 0.3]),
        scale=np.array([0.5, 0.0]),
        labels=np.array([0, 1, -1, 0]),
        outlier_share=0.1,
        background=0.01,
        background_middle=-3.5,
        background_width=20.0,
        background_degrees=float("inf"),
        noise_degrees=4.0,
        cutoff=float("inf"),
        evidence=float("-inf"),
        stopped="nothing improves",
        n_rows=4,
        mass=4.0,
        fit_intercept=True,
        feature_names=("area", "colour=blue"),
        settings=Settings(
            n_components=2,
            outliers=0.1,
            noise="student",
            search="net",
            taus=(0.5, 0.25),
            seed=2**100,
        ),
        seed=2**100,
        target_name="price é ∑",
        component_evidence=np.array([10.0, np.nan]),
        origin=("joint", "net"),
        attempts=(Attempt("add", "joint", float("nan"), accepted=True, reason="better"),),
        timings={"search": 0.125, "polish": 1.0},
        spectrum=Subspace(np.eye(3, 2), np.array([3.0, 2.0, 1.0]), 1.5, 2, "bounded"),
        selection=Selection(
            np.array([1, 2, 300]), np.array([1.0, 2.0, 1.0]), np.ones(3), np.ones(3), chosen=2
        ),
        rows=RowLaw(np.array([1.0, 0.5]), np.array([1.0, 0.25]), np.eye(2), 3.0, 0.5, float("nan")),
        ranks=(3, 3),
        n_iter=7,
        inference=Inference(
            standard_error=np.full((2, 2), 0.1),
            intercept_error=np.array([np.nan, 0.2]),
            degrees=np.array([1.0, 0.0]),
            r_squared=np.array([0.9, np.nan]),
            r_squared_overall=0.95,
            size=np.array([2.0, 1.0]),
            covariance=np.arange(18.0).reshape(2, 3, 3),
            notes=("", "too few rows"),
        ),
        gate=Gate(
            coef=np.array([[1.0], [0.0]]),
            intercept=np.array([0.0, -np.inf]),
            center=np.array([2.0]),
            scale=np.array([0.5]),
            names=("area",),
            columns=(Column("area", mark=","),),
            average=np.array([0.7, 0.3]),
        ),
        search_evidence=(12.5, float("-inf"), 12.25),
        rivals=(Rival(0.0, "spline", "fitted", "student3", skewed=True, lead=3.5),),
        rivals_rows=1500,
        rivals_evidence=9.5,
        gain_of_shares=1.25,
        without_slopes=2.5,
        gain_of_line=4.5,
        resampled=Stability(
            np.array([[0.9, 0.2]]), np.array([2]), np.full((1, 2, 2), np.nan), np.ones((1, 2))
        ),
        settled=False,
        label_counts=(2, 1, 1),
        doubtful_rows=3,
        encoding=Recipe.from_json(RECIPE),
        notes=("Column 'colour' is text of 2 values.",),
        weighting="importances",
    )


def with_trees() -> Mixture:
    """Return the same with a gate of two trees: one of a single leaf, one of five nodes."""
    trees = TreeGate(
        feature=np.array([-1, 0, 1, -1, -1, -1]),
        threshold=np.array([0.0, 0.5, -1.0, 0.0, 0.0, 0.0]),
        left=np.array([-1, 2, 4, -1, -1, -1]),
        right=np.array([-1, 3, 5, -1, -1, -1]),
        value=np.array([[0.5, 0.5], [0.5, 0.5], [0.25, 0.75], [1.0, 0.0], [0.125, 0.875], [0, 1]]),
        roots=np.array([0, 1]),
        center=np.array([2.0, 0.0]),
        scale=np.array([0.5, 1.0]),
        names=("area", "colour=blue"),
        from_features=False,
        columns=(Column("area"), Column("colour", "levels", ("red", "blue"))),
        average=np.array([0.7, 0.3]),
    )
    return dataclasses.replace(example(), gate=trees)


def second_example() -> Mixture:
    """Return what tests/store/data/version-2.regimix holds: less was known then."""
    now = example()
    return dataclasses.replace(
        now,
        label_counts=None,
        doubtful_rows=None,
        rivals=(),
        rivals_rows=None,
        rivals_evidence=float("nan"),
        gain_of_shares=0.0,
        without_slopes=0.0,
        gain_of_line=0.0,
        resampled=None,
        rows=dataclasses.replace(now.rows, r_squared_expected=float("nan")),
        notes=(),
        weighting=None,
        gate=dataclasses.replace(now.gate, columns=(), average=None),
    )


def first_example() -> Mixture:
    """Return what tests/store/data/version-1.regimix holds: even less."""
    now = second_example()
    return dataclasses.replace(
        now,
        background_middle=0.0,
        background_width=float("inf"),
        background_degrees=2.0,
        noise_degrees=float("inf"),
        settled=True,
        settings=dataclasses.replace(now.settings, noise="auto"),
        search_evidence=(),
        rivals=(),
        resampled=None,
    )


def pack(members, method=zipfile.ZIP_STORED):
    """Put members, a dictionary or pairs, into an archive as any other program would."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, data)
    return buffer.getvalue()


def unpack(data):
    """Take an archive apart."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def differences(one, other, place="mixture"):
    """List the places where two values differ, to the bit; an excerpt does not count."""
    if type(one) is not type(other):
        return [f"{place}: {type(one).__name__} and {type(other).__name__}"]
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one) if field.name != "excerpt"]
        pairs = [(name, getattr(one, name), getattr(other, name)) for name in names]
    elif isinstance(one, dict):
        if list(one) != list(other):
            return [f"{place}: other keys"]
        pairs = [(name, one[name], other[name]) for name in one]
    elif isinstance(one, tuple):
        if len(one) != len(other):
            return [f"{place}: other length"]
        pairs = [(str(i), a, b) for i, (a, b) in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, np.ndarray):
        same = (one.dtype.kind, one.shape) == (other.dtype.kind, other.shape)
        if one.dtype.kind == "i":  # a file holds as few bytes as the numbers need
            one, other = one.astype(np.int64), other.astype(np.int64)
        return [] if same and one.tobytes() == other.tobytes() else [place]
    else:
        return [] if repr(one) == repr(other) else [f"{place}: {one!r} and {other!r}"]
    return [line for name, a, b in pairs for line in differences(a, b, f"{place}.{name}")]


finite = st.floats(-1e200, 1e200)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def finite_array(*shape):
    return arrays(np.float64, shape, elements=finite)


def any_array(*shape):
    return arrays(np.float64, shape, elements=st.floats(width=64))


def covariances(m, p):
    """Anything whose variances are not negative."""
    return any_array(m, p, p).map(lambda array: np.where(np.eye(p) > 0, np.abs(array), array))


@st.composite
def mixtures(draw):
    """Draw a mixture, sensible only where the format demands it."""
    m, d, n = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(0, 6))
    shares = arrays(np.float64, m, elements=st.floats(1e-300, 1 / m))
    positive = arrays(np.float64, m, elements=st.floats(0, 1e200))
    above_zero = st.floats(1e-300, allow_infinity=True)
    fit_intercept = draw(st.booleans())
    p = d + fit_intercept
    inference = Inference(
        standard_error=draw(any_array(m, d).map(np.abs)),
        intercept_error=draw(any_array(m).map(np.abs)),
        degrees=draw(any_array(m)),
        r_squared=draw(any_array(m)),
        r_squared_overall=draw(st.floats()),
        size=draw(positive),
        covariance=draw(st.none() | covariances(m, p)),
    )
    settings = Settings(
        n_components=draw(st.none() | st.integers(1, 9)),
        outliers=draw(st.none() | st.floats(0, 1)),
        noise=draw(st.sampled_from(["auto", "normal", "student"])),
        time_limit=draw(st.none() | st.floats(1e-9, 1e9)),
        seed=draw(st.integers(0, 2**63)),
        n_jobs=draw(st.none() | st.sampled_from([-1, 1, 4])),
    )
    return Mixture(
        coef=draw(finite_array(m, d)),
        intercept=draw(finite_array(m)),
        weights=draw(shares),
        scale=draw(positive),
        labels=draw(arrays(np.int64, n, elements=st.integers(-1, m - 1))),
        outlier_share=draw(st.floats(0, 1)),
        background=draw(st.floats(0, 1e300)),
        background_middle=draw(finite),
        background_width=draw(above_zero),
        background_degrees=draw(st.sampled_from([2.0, np.inf])),
        noise_degrees=draw(above_zero),
        settled=draw(st.booleans()),
        cutoff=draw(st.floats(0, allow_infinity=True)),
        evidence=draw(st.floats(allow_nan=False)),
        stopped=draw(texts),
        n_rows=n,
        mass=draw(st.floats(1, 1e300)),
        fit_intercept=fit_intercept,
        feature_names=tuple(draw(st.lists(texts, min_size=d, max_size=d))),
        settings=settings,
        seed=draw(st.integers(0, 2**127)),
        target_name=draw(texts),
        timings=draw(st.dictionaries(texts, st.floats(), max_size=3)),
        rows=draw(
            st.none() | st.builds(RowLaw, finite_array(d), st.just(np.ones(d)), st.none(), finite)
        ),
        inference=draw(st.none() | st.just(inference)),
        search_evidence=tuple(draw(st.lists(st.floats(), max_size=3))),
    )
