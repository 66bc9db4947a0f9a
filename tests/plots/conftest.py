"""Fits that the tests of plots share, and figures that are closed after each test."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from regimix import MixedLinearRegression, TrimmedRegressor
from regimix.datasets import load_calls, load_tone
from regimix.synth import make_mlrc

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    plt.close("all")  # tests elsewhere may have left some
    yield
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()  # what cannot be drawn is no plot
    plt.close("all")


@pytest.fixture(scope="session")
def tone():
    """Two regimes, one feature, a dozen outliers; a data frame with names."""
    data = load_tone()
    X, y = pd.DataFrame(data.X, columns=["stretchratio"]), pd.Series(data.y, name="tuned")
    return MixedLinearRegression(keep_rows=True, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="session")
def three():
    """Three regimes, four features, a tenth of the rows far away."""
    X, y, _ = make_mlrc(
        600,
        4,
        n_components=3,
        weights=[0.5, 0.3, 0.2],
        intercepts=[1.0, 0.0, -1.0],
        noise=0.1,
        corruption=0.1,
        corruption_scale=5.0,
        random_state=0,
    )
    return MixedLinearRegression(keep_rows=True, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="session")
def one():
    """One regime, no outliers, a 0/1 feature."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 200), rng.normal(size=200)])
    y = 1 + X @ [2.0, 0.2] + 0.3 * rng.normal(size=200)
    return MixedLinearRegression(outliers=False, n_components=1, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="session")
def calls():
    data = load_calls()
    return TrimmedRegressor(random_state=0).fit(data.X, data.y), data.X, data.y
