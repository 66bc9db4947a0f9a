"""
Two lines in one table
======================

A trained musician hears a tone whose overtones are stretched, and tunes a second tone to the octave
above it (Cohen, 1980). Sometimes the ear follows the stretched overtones: tuned = stretchratio.
More often it stays with the true octave: tuned = 2. One trimmed fit finds one line; how large a
part of the rows it must keep decides which.
"""

import matplotlib.pyplot as plt
import numpy as np

from regimix import TrimmedRegressor
from regimix.datasets import load_tone

tone = load_tone()
models = {
    keep: TrimmedRegressor(keep=keep, random_state=0).fit(tone.X, tone.y) for keep in (0.75, 0.5)
}
for keep, model in models.items():
    line = f"{model.raw_intercept_:.2f} + {model.raw_coef_[0]:.2f} * stretchratio"
    print(f"keep={keep:<5} tuned = {line}")

# %%
# To keep three quarters of the rows, the line must stay with the octave. To keep only half of them,
# the rows that follow the overtones are enough, and they lie closer together.

blue, grey = "#2166ac", "#999999"
ends = np.array([[1.3], [3.05]])
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharex=True, sharey=True)
for ax, (keep, model) in zip(axes, models.items(), strict=True):
    follows = model.inlier_mask_
    ax.plot(tone.X[~follows, 0], tone.y[~follows], "o", color=grey, markersize=4, alpha=0.6)
    ax.plot(tone.X[follows, 0], tone.y[follows], "o", color=blue, markersize=4, alpha=0.8)
    ax.plot(ends[:, 0], model.predict(ends), color=blue, linewidth=1.5)
    ax.set(title=f"keep = {keep}: {follows.sum()} rows follow the line", xlabel="stretchratio")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("tuned")
plt.show()
