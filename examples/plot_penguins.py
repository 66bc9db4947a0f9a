"""
Penguins that hide their species
================================

Within each of three species a longer bill is a deeper one; over all 342 penguins it is shallower.
The fit is not shown the species. By default :class:`~regimix.MixedLinearRegression` finds a line of
most of the Gentoo, and leaves the others together: given its length, the depth of a bill says too
little of the species. :doc:`/data-penguins` tells why. Asked to sort every penguin to the nearer of
two lines, it draws one through the Gentoo, and one through the other two species.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from regimix import MixedLinearRegression
from regimix.datasets import load_penguins
from regimix.plots.palette import colour

penguins = load_penguins()
length, depth, species = penguins.X[:, 0], penguins.y, penguins.others["species"]

found = MixedLinearRegression(random_state=0).fit(penguins.X, depth)
two = MixedLinearRegression(n_components=2, search="partition", random_state=0)
two.fit(penguins.X, depth)

# %%
# The markers are the species, which only we know; the colours are the regimes of the fit.

ends = np.array([[31.0], [61.0]])
fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
titles = "nothing given", "two regimes by least squares"
for ax, model, title in zip(axes, (found, two), titles, strict=True):
    for name, marker in zip(np.unique(species), "o^s", strict=True):
        mine = species == name
        shades = [colour(label) for label in model.labels_[mine]]
        ax.scatter(length[mine], depth[mine], s=22, marker=marker, c=shades, alpha=0.6, lw=0)
        ax.scatter([], [], s=22, marker=marker, c="#6b6b6b", label=name)
    for j, line in enumerate(model.predict_components(ends).T):
        ax.plot(ends[:, 0], line, color=colour(j), lw=2)
    ax.set_title(title, loc="left", color="#6b6b6b", fontsize=11)
    ax.set(xlabel="bill length (mm)", ylim=(12.5, 22))
axes[0].set_ylabel("bill depth (mm)")
axes[0].legend(frameon=False, loc="lower left")
plt.show()

# %%
# Flippers tell the species apart. A gating that learns the regime from them nearly halves the error
# of ``predict``, which without it has to average the two lines.

flippers = penguins.others["flipper_length_mm"][:, None]
gated = clone(two).set_params(gating="logistic")
gated.fit(penguins.X, depth, gating_features=flippers)
for name, predicted in (
    ("one share for all penguins", two.predict(penguins.X)),
    ("gated by flipper length   ", gated.predict(penguins.X, gating_features=flippers)),
):
    print(f"{name}: {np.sqrt(np.mean((predicted - depth) ** 2)):.2f} mm")
