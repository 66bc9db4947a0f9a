"""
Years that were written down in another unit
============================================

The yearly number of international calls from Belgium grows along a line, except that from 1964 to
1969 the minutes of the calls were recorded instead of their number. Least squares believes all of
it. :class:`~regimix.TrimmedRegressor` finds the line that most rows follow, how many rows that are,
and which rows are outliers. Their number need not be given.
"""

import matplotlib.pyplot as plt
import numpy as np

from regimix import TrimmedRegressor
from regimix.datasets import load_calls

calls = load_calls()
model = TrimmedRegressor(random_state=0).fit(calls.X, calls.y)
follows = model.inlier_mask_

print(f"Calls = {model.intercept_:.2f} + {model.coef_[0]:.3f} * (Year - 1900)")
print(f"{follows.sum()} of {follows.size} years follow it; these do not:")
print(", ".join(np.array(calls.row_names)[~follows]))

# %%
# The robust line passes through the years that were recorded as numbers of calls. The least squares
# line follows nobody.

year = 1900 + calls.X[:, 0]
naive = np.polyval(np.polyfit(calls.X[:, 0], calls.y, 1), calls.X[:, 0])

blue, red, grey = "#2166ac", "#b2182b", "#777777"
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(year, naive, color=grey, linestyle="--", linewidth=1.2)
ax.plot(year, model.predict(calls.X), color=blue, linewidth=2)
ax.plot(year[follows], calls.y[follows], "o", color=blue, markersize=6)
ax.plot(year[~follows], calls.y[~follows], "X", color=red, markersize=8)

ax.annotate("least squares on all years", (1957.2, 3.5), color=grey, ha="right")
ax.annotate("the line that regimix finds", (1953, -0.9), color=blue, va="top")
ax.annotate("recorded in other units", (1966.4, 17.2), color=red, ha="right")
ax.set(xlabel="year", ylabel="calls (tens of millions)", ylim=(-2.5, 23))
ax.spines[["top", "right"]].set_visible(False)
plt.show()
