"""
A classifier whose labels are partly wrong
==========================================

:class:`~regimix.TrimmedEstimator` trims any regressor or classifier of scikit-learn: fit, keep the
rows that it explains best, and fit again. Here three classes of points have 30 % of their labels
moved to the next class, as a sloppy annotator would. What trimming brings, and what it costs
without wrong labels, is measured in ``benchmarks/results/label-noise.md``.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from regimix import TrimmedEstimator

X, true = make_blobs(600, centers=[[-2, 0], [2, 0], [0, 3]], cluster_std=1.0, random_state=0)
rng = np.random.default_rng(0)
wrong = rng.random(600) < 0.3
given = np.where(wrong, (true + 1) % 3, true)

plain = LogisticRegression(C=100).fit(X, given)
trimmed = TrimmedEstimator(LogisticRegression(C=100), keep=0.7, random_state=0).fit(X, given)
for name, model in (("all rows", plain), ("trimmed", trimmed)):
    print(f"{name}: {np.mean(model.predict(X) == true):.1%} of the true labels")

# %%
# Colours are the labels as given. On the right, crosses are the rows that were left out: most of
# them are wrong indeed.

left_out = ~trimmed.kept_
print(f"{(left_out & wrong).sum()} of the {left_out.sum()} rows left out have wrong labels")

colours = ListedColormap(["#0072b2", "#d55e00", "#009e73"])
across, along = np.meshgrid(np.linspace(-5, 5, 200), np.linspace(-4, 6, 200))
figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), sharey=True, layout="constrained")
for ax, model, title in zip(axes, (plain, trimmed), ("All rows", "Trimmed"), strict=True):
    classes = model.predict(np.c_[across.ravel(), along.ravel()]).reshape(across.shape)
    ax.pcolormesh(across, along, classes, cmap=colours, alpha=0.15)
    ax.scatter(*X.T, c=given, s=10, cmap=colours)
    ax.set_title(title)
axes[1].plot(*X[left_out].T, "x", color="black", markersize=4)
plt.show()
