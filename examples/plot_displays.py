"""
Six plots of a fit
==================

After a fit come the questions: which rows follow which regime, is the noise normal, why this many
regimes, which features tell them apart, and how did the search get there? :mod:`regimix.plots` has
a plot for each, in scikit-learn's ``Display`` convention. Here a year of power readings is
simulated: machines run in three modes that nobody wrote down, and some meters were read wrongly.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from regimix import MixedLinearRegression
from regimix.plots import (
    CoefficientsDisplay,
    ConvergenceDisplay,
    QQDisplay,
    RegimesDisplay,
    ResidualsDisplay,
    SelectionDisplay,
)

rng = np.random.default_rng(0)
n = 1500
table = pd.DataFrame(
    {
        "load": rng.uniform(0, 10, n),
        "temperature": rng.normal(20, 5, n),
        "age": rng.gamma(2, 3, n),
        "night": rng.integers(0, 2, n),
    }
)
# Slopes and intercepts of three modes: idling, working, working with a worn bearing.
slopes = np.array([[0.4, 0.1, 0.0, 0.0], [3.0, 0.1, 0.1, -2.0], [4.5, 0.1, 0.8, -2.0]])
intercepts, noise = np.array([5.0, 8.0, 8.0]), np.array([0.4, 0.8, 1.0])
mode = rng.choice(3, n, p=[0.3, 0.45, 0.25])
power = (table.to_numpy() * slopes[mode]).sum(axis=1) + intercepts[mode]
power += noise[mode] * rng.normal(size=n)
misread = rng.random(n) < 0.04
power[misread] += rng.normal(0, 60, misread.sum())
power = pd.Series(power, name="power (kW)")

model = MixedLinearRegression(keep_rows=True, random_state=0).fit(table, power)
print(model.mixture_)

# %%
# Rows and regimes
# ----------------
# One feature at a time, by default the one whose effect differs most between regimes. There are
# other features too, which move the power of every row: their effect, according to the row's own
# regime, is taken away first. Rows far outside are arrows at the edge.

RegimesDisplay.from_estimator(model, table, power)
plt.show()

# %%
# A column of zeros and ones is spread out, so that rows do not hide each other. Idling machines do
# not care for the night.

RegimesDisplay.from_estimator(model, table, power, feature="night")
plt.show()

# %%
# Residuals
# ---------
# 19 of 20 rows of a regime should lie between the guides, as many above zero as below. Without X
# and y the plots show rows that the model itself holds (``keep_rows=True``).

ResidualsDisplay.from_estimator(model)
plt.show()

# %%
# Over fitted values a fan would tell that the noise grows, a bow that a line is not enough.

ResidualsDisplay.from_estimator(model, kind="fitted", standardise=False)
plt.show()

# %%
# Are they normal? The kept rows follow the diagonal. The trimmed ones leave it at once, as real
# outliers do; those that are only the tail of normal noise would go on along it.

QQDisplay.from_estimator(model)
plt.show()

# %%
# Number of regimes
# -----------------
# What evidence, BIC and ICL lose against their best count, in nats.

SelectionDisplay.from_estimator(model)
plt.show()

# %%
# Coefficients
# ------------
# The most separating features first, with 95 % intervals. Standardised, features of different
# units can be compared.

CoefficientsDisplay.from_estimator(model, standardise=True)
plt.show()

# %%
# The way to the answer
# ---------------------
# Every move that the search tried: the score of the model so far, and where the moves that were
# left would have led.

ConvergenceDisplay.from_estimator(model)
plt.show()

# %%
# A figure of your own
# --------------------
# Each display draws on axes of yours, and keeps them as ``ax_`` to be changed afterwards.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
RegimesDisplay.from_estimator(model, table, power, feature="age", legend=False, ax=left)
display = RegimesDisplay.from_estimator(model, table, power, feature="temperature", ax=right)
display.ax_.set_ylabel("")
figure.suptitle("The modes differ in how they age, not in how they bear the heat")
plt.show()
