"""
What predict returns, and what else there is
============================================

``predict`` gives one number a row: the average of the regimes, weighted by their shares. It cannot
know the regime of a row whose response is not known. Where regimes are far apart, no row lies near
the average. Three other answers are often better.
"""

import matplotlib.pyplot as plt
import numpy as np

from regimix import MixedLinearRegression
from regimix.plots.palette import colour

rng = np.random.default_rng(0)
n = 300
x = rng.uniform(0, 10, n)
fast = rng.random(n) < np.where(x > 5, 0.9, 0.1)  # the regime depends on x, but not strictly
y = np.where(fast, 2 + 1.5 * x, 12 - 0.5 * x) + rng.normal(0, 0.6, n)

plain = MixedLinearRegression(random_state=0).fit(x[:, None], y)
gated = MixedLinearRegression(gating="logistic", random_state=0).fit(x[:, None], y)

# %%
# Left: each regime and the average. Middle: the interval that holds 95 % of the responses. Right:
# with gating, shares depend on the row, and the average follows the likely regime.

grid = np.linspace(0, 10, 200)[:, None]
figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
for ax in axes:
    ax.plot(x, y, ".", color="#9a9a9a", markersize=4)
    ax.set_xlabel("x")
for j, line in enumerate(plain.predict_components(grid).T):
    axes[0].plot(grid, line, color=colour(j), label=f"predict_components, regime {j}")
axes[0].plot(grid, plain.predict(grid), "k--", label="predict")
low, high = plain.predict_interval(grid).T
axes[1].fill_between(grid[:, 0], low, high, color=colour(0), alpha=0.25, label="predict_interval")
axes[1].plot(grid, plain.predict(grid), "k--")
axes[2].plot(grid, gated.predict(grid), "k--", label='predict, gating="logistic"')
for ax in axes:
    ax.legend(loc="upper left", fontsize=9)
    ax.set_ylim(0, 22)
plt.show()

# %%
# R² of ``predict`` on the rows of the fit: gating pays where columns tell the regime.

print(f"one share for all rows: {plain.score(x[:, None], y):.2f}")
print(f"shares by row:          {gated.score(x[:, None], y):.2f}")
