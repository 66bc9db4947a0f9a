"""
Two ways to hear an octave
==========================

A trained musician hears a tone whose overtones are stretched, and tunes a second tone to the octave
above it (Cohen, 1980). Sometimes the ear follows the stretched overtones: tuned = stretchratio.
More often it stays with the true octave: tuned = 2. Nobody wrote down which trial is which.
:class:`~regimix.MixedLinearRegression` is given the 150 trials and nothing else: not the number of
regimes, not their sizes, not their noise, not the trials that went wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from regimix import MixedLinearRegression
from regimix.datasets import load_tone

tone = load_tone()
model = MixedLinearRegression(random_state=0).fit(tone.X, tone.y)
print(model.mixture_)

# %%
# Regime 1 is the musician who follows the overtones, almost to the third decimal. Regime 0 stays
# with the octave, ten times less precisely. Rows labelled -1 follow neither.

blue, orange, grey = "#1f6fb2", "#c75f00", "#6b6b6b"
meanings = ("stays with the octave", "follows the overtones")
stretch, ends = tone.X[:, 0], np.array([[1.3], [3.08]])

fig, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
for j, color in enumerate((blue, orange)):
    mine = model.labels_ == j
    ax.plot(ends[:, 0], model.predict_components(ends)[:, j], color=color, linewidth=1.8, zorder=1)
    ax.scatter(stretch[mine], tone.y[mine], s=30, color=color, alpha=0.75, edgecolor="white")
outlier = model.labels_ == -1
ax.scatter(stretch[outlier], tone.y[outlier], s=42, color=grey, marker="x", linewidth=1.6)

places = ((3.10, 1.87), (2.45, 2.90))
for j, color in enumerate((blue, orange)):
    line = f"tuned = {model.intercept_[j]:.2f} + {model.coef_[j, 0]:.2f} · stretchratio"
    text = f"{meanings[j]}: {model.weights_[j]:.0%}\n{line}"
    ax.annotate(text, places[j], color=color, ha="right", va="top")
ax.annotate(f"{outlier.sum()} outliers", (2.96, 3.49), color=grey, ha="right", va="center")
ax.set_title("150 trials, nothing else given", loc="left", color=grey, fontsize=11)
ax.set(xlabel="stretchratio: how far the overtones were stretched", ylabel="tuned")
ax.set(xlim=(1.27, 3.12), ylim=(1.2, 3.6))
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# New trials can be told apart as well, and each label comes with its probability.

stretches, tunings = [[2.6], [2.6], [2.6]], [2.60, 2.02, 2.30]
print(model.assign(stretches, tunings))
print(model.responsibilities(stretches, tunings).round(3))
