"""
Rows in doubt: where two regimes cross
======================================

Near a crossing nobody can tell which regime a row follows. Its label is then close to a guess,
and ``responsibilities`` says so: probabilities near one half. The equations do not suffer, because
every row counts in each regime by its probability.
"""

import matplotlib.pyplot as plt
import numpy as np

from regimix import MixedLinearRegression
from regimix.synth import make_mlrc

X, y, truth = make_mlrc(
    400, 1, 2, coef=[[1.0], [-1.0]], noise=0.25, corruption=0.03, random_state=2
)
model = MixedLinearRegression(random_state=0).fit(X, y)
probability = model.responsibilities(X, y)
print(model.mixture_)

# %%
# Colour shows the probability of regime 0; rings mark rows in doubt, for which no label is 80 %
# probable.

doubt = probability.max(axis=1) < 0.8
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
drawn = ax.scatter(X[:, 0], y, c=probability[:, 0], cmap="coolwarm", s=18, vmin=0, vmax=1)
ax.scatter(X[doubt, 0], y[doubt], s=70, facecolors="none", edgecolors="black", linewidths=0.7)
ends = np.array([[X.min()], [X.max()]])
ax.plot(ends, model.predict_components(ends), color="black", linewidth=1)
figure.colorbar(drawn, label="probability of regime 0")
ax.set(xlabel="x", ylabel="y", ylim=(-4, 4))
plt.show()

# %%
# How often labels are right, by how certain they are:

order = model.coef_[:, 0].argmax()  # the regime with slope 1 is component 0 of the truth
named = np.where(model.labels_ == -1, -1, np.where(model.labels_ == order, 0, 1))
for name, rows in (("certain", ~doubt), ("in doubt", doubt)):
    print(f"{name}: {np.mean(named[rows] == truth.labels[rows]):.0%} of {rows.sum()} labels right")
