"""A model file with one strange value is refused, by name, or good for everything."""

import re
import warnings
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regimix import MixedLinearRegression
from regimix.errors import ModelFileError, RegimixError, RegimixWarning
from regimix.store import decode, encode
from tests.store.examples import RECIPE, example, with_trees
from tests.store.mutations import mutants, uses

# So much that arithmetic with it overflows, with a warning: no crash, and no answer either.
EXTREME = re.compile(r"e[+-]?(30|150|308|324)\b|0{30}")
# Pages take a second each: one in so many is drawn.
PAGES = 60


def fitted():
    """Return a model that was found in data, with a gate of its features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 1] > 0, 3 * X[:, 0], 5 - 3 * X[:, 0]) + 0.1 * rng.normal(size=80)
    y[:4] += 30
    return MixedLinearRegression(2, gating="logistic", random_state=0).fit(X, y).mixture_


def broken(steps, *, extreme):
    """Do all steps, and say which of them fail."""
    found = []
    for name, step in steps.items():
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                step()
            except RegimixError as error:
                found += [] if extreme else [f"{name}: {error}"]
            except Exception as error:
                found.append(f"{name}: {type(error).__name__}: {error}")
        if not extreme:
            odd = [w for w in warned if not issubclass(w.category, RegimixWarning)]
            found += [f"{name}: {w.message}" for w in odd]
    return found


@cache
def files():
    """Return all changes of three models by name."""
    made = (example(), with_trees(), fitted())
    datas = [encode(mixture, labels=True, recipe=RECIPE) for mixture in made]
    return [change for data in datas for change in mutants(data)]


@settings(max_examples=100)
@given(st.integers(0, 10_000))
def test_a_strange_value_is_refused_or_harmless(number):
    name, make = files()[number % len(files())]
    try:
        mixture = decode(make()).mixture
    except ModelFileError:
        return
    texts, pages = uses(mixture)
    some = texts | pages if number % PAGES == 0 else texts
    extreme = EXTREME.search(name) is not None
    assert broken(some, extreme=extreme) == [], name
    plt.close("all")


@pytest.mark.parametrize(
    "name",
    [
        "mass = '0'",
        "noise_degrees = '0'",
        "background_width = '0'",
        "inference.notes = \"['']\"",
        "weights: all 0.0",
        "weights: all 1.0",
        "scale: all 1e+308",
        "rows.correlation: all 1e+308",
        "spectrum.spectrum: first -1.0",
        "spectrum.spectrum: all nan",
        "inference.standard_error: all -1.0",
        "inference.covariance: all -1.0",
        "gate.average: all 0.0",
        "gate.value: all 0.0",
        "gate.intercept: all -inf",
        "gate.scale: first 0.0",
    ],
)
def test_what_was_taken_once_is_refused(name):
    some = [make for known, make in files() if known == name]
    assert some
    for make in some:
        with pytest.raises(ModelFileError, match=re.split("[ :]", name)[0].partition(".")[0]):
            decode(make())
