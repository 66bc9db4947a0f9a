"""Model files of which one field was changed to another value of its type."""

import hashlib
import io
import json
from functools import partial

import numpy as np
import polars as pl

from regimix import report
from regimix.store import MANIFEST
from tests.store.examples import pack, unpack

ROWS = 40
HUGE = 10**38
TEXTS = ("", " ", "\n\x1b[31m", "{0}<b>&amp;$_^{", "é" * 300)
NUMBERS = (0, 1, -1, 0.5, 2.0, 5e-324, 1e308, -1e308, "NaN", "Infinity", "-Infinity")
WHOLE = (0, 1, 2, 3, -1, 2**31, HUGE)


def mutants(data):
    """Give the name of each change, and a function that makes the bytes of the changed file."""
    parts = unpack(data)
    text = parts[MANIFEST]
    for path, value in _leaves(json.loads(text)["model"]):
        for other in _others(value):
            name = f"{'.'.join(map(str, path))} = {str(other)[:40]!r}"
            yield name, partial(_with_value, parts, path, other)
    for name in json.loads(text)["arrays"]:
        array = np.load(io.BytesIO(parts[f"arrays/{name}.npy"]))
        for what, other in _other_arrays(array):
            yield f"{name}: {what}", partial(_with_array, parts, name, other)


def _with_value(parts, path, value):
    manifest = json.loads(parts[MANIFEST])
    place = manifest["model"]
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return pack({**parts, MANIFEST: json.dumps(manifest).encode()})


def _with_array(parts, name, array):
    manifest, file = json.loads(parts[MANIFEST]), io.BytesIO()
    np.lib.format.write_array(file, array, (1, 0))
    entry = {"dtype": array.dtype.str, "shape": list(array.shape)}
    manifest["arrays"][name] = entry | {"sha256": hashlib.sha256(file.getvalue()).hexdigest()}
    text = json.dumps(manifest).encode()
    return pack({**parts, MANIFEST: text, f"arrays/{name}.npy": file.getvalue()})


def _leaves(plain, path=()):
    """Give all places of a document: containers, too, but not references to arrays."""
    if path:
        yield path, plain
    if isinstance(plain, dict) and "array" not in plain:
        for name, value in plain.items():
            yield from _leaves(value, (*path, name))
    if isinstance(plain, list):
        for index, value in enumerate(plain[:2]):
            yield from _leaves(value, (*path, index))


def _others(value):
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, str) and value not in ("NaN", "Infinity", "-Infinity"):
        return [*TEXTS, None]
    if isinstance(value, int):
        return [*WHOLE, None]
    if isinstance(value, float | str):
        return [*NUMBERS, None]
    if isinstance(value, list):
        return [[], value[:1], value * 2, value[:1] * len(value), value[::-1], None]
    if value is None:
        return [*NUMBERS[:4], *TEXTS[:2], HUGE, True, [], {}]
    return [None, {}]


def _other_arrays(array):
    fills = (
        (0, 1, -1, 100)
        if array.dtype.kind == "i"
        else (0.0, 1.0, -1.0, 5e-324, 1e-30, 1e150, 1e308, -1e308, np.nan, np.inf, -np.inf)
    )
    for fill in fills:
        yield f"all {fill}", np.full_like(array, fill)
        one = array.copy()
        one.flat[:1] = fill
        yield f"first {fill}", one
    yield "reversed", np.ascontiguousarray(array[::-1])
    for axis in range(array.ndim):
        yield f"shorter along {axis}", np.ascontiguousarray(np.delete(array, 0, axis))
        yield f"empty along {axis}", np.ascontiguousarray(np.take(array, [], axis))


def uses(mixture):
    """Return what users do with a model, by name: texts, answers for rows, and pages."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, mixture.coef.shape[1]))
    y = X[:, 0] + rng.normal(size=ROWS)
    frame = pl.DataFrame({"group": ["a", "b"] * (ROWS // 2), "size": rng.normal(size=ROWS)})
    labels, gate, how = np.arange(ROWS) % mixture.n_components, mixture.gate, {}
    if gate is not None and not gate.from_features:
        how = {"shares": np.ones((ROWS, mixture.n_components))}
    texts = {
        "str": lambda: (str(mixture), repr(mixture), mixture.describe(40), mixture.equation(0)),
        "summary": lambda: (str(mixture.summary()), mixture.summary_frame()),
        "card": lambda: mixture._repr_html_(),
        "errors": lambda: (mixture.p_values(), mixture.conf_int(), mixture.separation()),
        "gate": lambda: gate and (gate.shares(rng.normal(size=(ROWS, len(gate.names)))), str(gate)),
        "predict": lambda: (mixture.predict_components(X), mixture.predict(X, **how)),
        "interval": lambda: mixture.predict_interval(X, **how),
        "intervals": lambda: mixture.predict_component_intervals(X),
        "assign": lambda: (mixture.assign(X, y, **how), mixture.responsibilities(X, y, **how)),
        "score": lambda: (mixture.score_samples(X, y, **how), mixture.bic(X, y, **how)),
        "outliers": lambda: mixture.outlier_score(X, y, **how),
        "sample": lambda: mixture.sample(5, random_state=0),
        "compare": lambda: str(mixture.compare(X, y)),
        "profile": lambda: str(mixture.profile(frame, labels=labels)),
    }
    pages = {
        "plot": lambda: mixture.plot(X, y),
        "report": lambda: report.render(mixture, X, y, **how),
        "report alone": lambda: report.render(mixture),
    }
    return texts, pages
