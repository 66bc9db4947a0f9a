"""
One curve is not three regimes
==============================

Pieces of a curve look like straight regimes, and a mixture of lines fits them well. Every fit
therefore compares its regimes with single relations: curved, uneven or skewed ones. Here y grows
exponentially with x, and the fit says so in a warning.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from regimix import MixedLinearRegression
from regimix.plots import RegimesDisplay

rng = np.random.default_rng(0)
x = rng.uniform(0, 3, (300, 1))
y = np.exp(1 + x[:, 0] + 0.4 * rng.standard_normal(300))

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = MixedLinearRegression(random_state=0).fit(x, y)
print(caught[0].message)

# %%
# A positive lead means that the rival is better than the regimes, in nats.

for rival in model.mixture_.rivals[:3]:
    print(f"{rival.lead:6.1f}  {rival.describe()}")

# %%
# Left, the regimes that were found: pieces of the curve. Right, the same rows after the logarithm:
# one regime, and no rival.

straight = MixedLinearRegression(random_state=0).fit(x, np.log(y))
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
RegimesDisplay.from_estimator(model, x, y, bands=False, ax=left)
RegimesDisplay.from_estimator(straight, x, np.log(y), ax=right)
left.set_title("y: three regimes, and a warning")
right.set(title="log y: one regime", ylabel="log y")
plt.show()
