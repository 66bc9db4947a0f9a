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
from regimix.plots import RegimesDisplay
from regimix.plots.palette import OUTLIERS, colour

tone = load_tone()
model = MixedLinearRegression(random_state=0).fit(tone.X, tone.y)
print(model.mixture_)

# %%
# Regime 1 is the musician who follows the overtones, almost to the third decimal. Regime 0 stays
# with the octave, ten times less precisely. Rows labelled -1 follow neither.

meanings = ("stays with the octave", "follows the overtones")
places = ((3.10, 1.87), (2.45, 2.90))

fig, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
RegimesDisplay.from_estimator(model, tone.X, tone.y, bands=False, legend=False, ax=ax)
for j in range(2):
    line = f"tuned = {model.intercept_[j]:.2f} + {model.coef_[j, 0]:.2f} · stretchratio"
    text = f"{meanings[j]}: {model.weights_[j]:.0%}\n{line}"
    ax.annotate(text, places[j], color=colour(j), ha="right", va="top")
outliers = np.sum(model.labels_ == -1)
ax.annotate(f"{outliers} outliers", (2.96, 3.49), color=OUTLIERS, ha="right", va="center")
ax.set_title("150 trials, nothing else given", loc="left", color="#6b6b6b", fontsize=11)
ax.set(xlabel="stretchratio: how far the overtones were stretched", ylabel="tuned")
ax.set(xlim=(1.27, 3.12), ylim=(1.2, 3.6))
plt.show()

# %%
# New trials can be told apart as well, and each label comes with its probability.

stretches, tunings = [[2.6], [2.6], [2.6]], [2.60, 2.02, 2.30]
print(model.assign(stretches, tunings))
print(model.responsibilities(stretches, tunings).round(3))
